/* SPDX-License-Identifier: Apache-2.0 */

/* What a client says before anything else: which protocol, and over SOCKS5 where to. */

#include "cmd/egress/conn-private.h"

#include <string.h>

#include "cmd/egress/dns.h"
#include "cmd/egress/first.h"
#include "cmd/egress/intercept.h"

/* At the proxy itself. */
static enum step enter_proxy(struct conn *conn, enum first_kind kind)
{
    switch (kind) {
    case FIRST_HTTP:
        conn->phase = PHASE_HEAD;
        return STEP_AGAIN;
    case FIRST_SOCKS5:
        conn->herald = HERALD_SOCKS;
        conn->phase = PHASE_SOCKS_GREETING;
        return STEP_AGAIN;
    case FIRST_TLS:
    case FIRST_OTHER:
    case FIRST_MORE:
        break;
    }
    return conn_fail(conn, 400, "EGRESS_PROTOCOL", "the proxy speaks HTTP and SOCKS5");
}

/* Inside a connection whose rule looks at requests: nothing else may be said there. */
static enum step enter_inspected(struct conn *conn, enum first_kind kind)
{
    switch (kind) {
    case FIRST_HTTP:
        conn->phase = PHASE_HEAD;
        return STEP_AGAIN;
    case FIRST_TLS:
        if (conn->is_local)
            return conn_fail(conn, 403, "EGRESS_PROTOCOL", "policy.local speaks plain HTTP alone");
        return intercept_begin(conn);
    case FIRST_SOCKS5:
    case FIRST_OTHER:
    case FIRST_MORE:
        break;
    }
    return conn_fail(conn, 403, "EGRESS_PROTOCOL",
                     "the rule looks at requests, and these bytes are none");
}

enum step step_first(struct conn *conn)
{
    enum first_kind kind = first_kind_of(bytes_str(&conn->client.in));

    if (kind == FIRST_MORE)
        return conn->client.ended ? STEP_CLOSE : STEP_WAIT;
    return conn->fixed ? enter_inspected(conn, kind) : enter_proxy(conn, kind);
}

/* ---- SOCKS5 ---- */

enum step step_socks_greeting(struct conn *conn)
{
    char choice[SOCKS_CHOICE_BYTES];
    bool open = false;
    int n = socks_greeting_read(bytes_str(&conn->client.in), &open);

    if (n < 0)
        return STEP_CLOSE;
    if (n == 0)
        return conn->client.ended ? STEP_CLOSE : STEP_WAIT;
    bytes_take(&conn->client.in, (size_t)n);
    socks_choice_write(open, choice);
    if (bytes_put(&conn->client.out, choice, sizeof choice) != sizeof choice)
        return STEP_CLOSE;
    if (!open)
        return conn_last(conn);
    conn->phase = PHASE_SOCKS_REQUEST;
    return STEP_AGAIN;
}

enum step step_socks_request(struct conn *conn)
{
    struct socks_request request;
    enum socks_reply why;
    char reply[SOCKS_REPLY_BYTES];
    int n = socks_request_read(bytes_str(&conn->client.in), &request, &why);

    if (n == 0)
        return conn->client.ended ? STEP_CLOSE : STEP_WAIT;
    if (n < 0) {
        socks_reply_write(why, reply);
        if (bytes_put(&conn->client.out, reply, sizeof reply) != sizeof reply)
            return STEP_CLOSE;
        return conn_last(conn);
    }
    bytes_take(&conn->client.in, (size_t)n);
    if (!conn_aim(conn, str_of(request.host), request.port, NET_VIA_SOCKS))
        return conn_fail(conn, 403, "EGRESS_HOST_FORM", "this is no host");
    return conn_open_fixed(conn);
}

/* ---- names over TCP: each message behind two bytes of its length ---- */

enum step step_names(struct conn *conn)
{
    struct str in = bytes_str(&conn->client.in);
    char answer[2 + DNS_ANSWER_BYTES];
    size_t n, said;

    n = in.n < 2 ? 0 : (size_t)(unsigned char)in.p[0] << 8 | (unsigned char)in.p[1];
    if (n > DNS_MESSAGE_MAX)
        return STEP_CLOSE;
    if (in.n < 2 || in.n < 2 + n)
        return conn->client.ended ? STEP_CLOSE : STEP_WAIT;
    if (bytes_room(&conn->client.out) < sizeof answer)
        return STEP_WAIT;
    said = names_answer(conn->sandbox, (struct str){in.p + 2, n}, answer + 2);
    bytes_take(&conn->client.in, 2 + n);
    if (said == 0)
        return STEP_CLOSE;
    answer[0] = (char)(said >> 8);
    answer[1] = (char)said;
    (void)bytes_put(&conn->client.out, answer, 2 + said); /* there is room */
    return STEP_AGAIN;
}
