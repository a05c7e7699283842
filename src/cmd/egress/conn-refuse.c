/* SPDX-License-Identifier: Apache-2.0 */

/* Saying no, in the words the client understands: JSON over HTTP, a code over SOCKS, a reset where
 * nothing else can be said. */

#include "cmd/egress/conn-private.h"

#include <stdio.h>
#include <string.h>

#include "cmd/egress/first.h"
#include "lib/json/json.h"

#define ANSWER_MAX (8 * KIB)

static void count(struct conn *conn, const struct denial *denial)
{
    const struct exchange *exchange = conn->exchange;
    struct refusal refusal = {.host = str_of(conn->host),
                              .port = conn->port,
                              .method = denial->method,
                              .path = denial->path,
                              .binary = conn_binary(conn),
                              .reason = denial->reason};
    struct event event = {.class = exchange ? EVENT_REQUEST : EVENT_CONNECTION,
                          .host = refusal.host,
                          .port = refusal.port,
                          .method = refusal.method,
                          .path = refusal.path,
                          .rule = denial->rule,
                          .reason = denial->reason,
                          .binary = refusal.binary,
                          .status = denial->status};

    sandbox_refuse(conn->sandbox, denial->rule, &refusal);
    sandbox_event(conn->sandbox, &event);
}

void conn_note(struct conn *conn, struct str method, const char *rule, const char *reason,
               bool is_allowed)
{
    struct refusal refusal = {.host = str_of(conn->host),
                              .port = conn->port,
                              .method = method,
                              .path = conn->exchange->head.path,
                              .binary = conn_binary(conn),
                              .reason = reason};
    struct event event = {.class = EVENT_REQUEST,
                          .allowed = is_allowed,
                          .host = refusal.host,
                          .port = refusal.port,
                          .method = method,
                          .path = refusal.path,
                          .rule = rule,
                          .reason = reason,
                          .binary = refusal.binary};

    if (!is_allowed)
        sandbox_refuse(conn->sandbox, rule, &refusal);
    sandbox_event(conn->sandbox, &event);
}

/* ---- answers ---- */

static void put_step(struct arena *mem, struct json *list, const char *action, const char *method,
                     const char *path)
{
    struct json *step = json_object(mem);

    json_put_text(mem, step, "action", action);
    json_put_text(mem, step, "method", method);
    json_put_text(mem, step, "url", arena_printf(mem, "http://" NET_LOCAL_NAME "%s", path));
    json_push(list, step);
}

/* Where to ask for what a rule could allow, if that may be asked for at all. */
static void put_way_out(struct arena *mem, struct json *object)
{
    struct json *steps = json_array(mem);

    put_step(mem, steps, "inspect_policy", "GET", "/v1/policy/current");
    put_step(mem, steps, "inspect_denials", "GET", "/v1/denials?last=10");
    put_step(mem, steps, "submit_proposal", "POST", "/v1/proposals");
    put_step(mem, steps, "wait_for_decision", "GET", "/v1/proposals/{id}/wait?timeout=300");
    json_put(object, "next_steps", steps);
    json_put_text(mem, object, "agent_guidance",
                  "The policy does not allow this. Do not look for a way around it: propose the "
                  "narrowest rule that allows it at http://" NET_LOCAL_NAME "/v1/proposals, wait "
                  "for a person's answer, and try again once policy_reloaded is true.");
}

/* What the sandbox said, cut, and without bytes that are not visible. */
static void put_said(struct arena *mem, struct json *object, const char *key, struct str said)
{
    char *text;

    if (said.n == 0)
        return;
    said.n = said.n < SAID_PATH_MAX ? said.n : SAID_PATH_MAX;
    text = arena_text(mem, said);
    for (size_t i = 0; i < said.n; i++)
        if (text[i] <= ' ' || text[i] >= 0x7f)
            text[i] = '?';
    json_put(object, key, json_text(mem, (struct str){text, said.n}));
}

int denial_write(const struct conn *conn, const struct denial *denial, struct buf *out,
                 struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    struct json *object = json_object(&mem);

    json_put_text(&mem, object, "error", denial->error);
    json_put_text(&mem, object, "reason_code", denial->reason);
    json_put_bytes(&mem, object, "message", str_of(denial->text));
    json_put_bytes(&mem, object, "detail", str_of(denial->text));
    if (*denial->rule)
        json_put_bytes(&mem, object, "rule", str_of(denial->rule));
    json_put_text(&mem, object, "layer", denial->method.n ? "l7" : "l4");
    put_said(&mem, object, "host", str_of(conn->host));
    if (conn->port)
        json_put_int(&mem, object, "port", conn->port);
    put_said(&mem, object, "method", denial->method);
    put_said(&mem, object, "path", denial->path);
    put_said(&mem, object, "binary", conn_binary(conn));
    if (strcmp(denial->error, "policy_denied") == 0 &&
        net_rules_takes_proposals(conn->sandbox->rules))
        put_way_out(&mem, object);
    return json_compact(object, out, err);
}

static int write_answer(const struct conn *conn, const struct denial *denial, bool has_body,
                        struct buf *out, struct err *err)
{
    static const struct http_header headers[] = {
        {STR_LIT("Content-Type"),  STR_LIT("application/json")},
        {STR_LIT("Cache-Control"), STR_LIT("no-store")        },
        {STR_LIT("X-Brig-Egress"), STR_LIT("refused")         },
    };
    AUTO_BUF struct buf body = BUF(ANSWER_MAX);
    struct http_reply reply = {.status = denial->status,
                               .headers = headers,
                               .header_count = COUNT(headers),
                               .framing = HTTP_LENGTH,
                               .close = true};

    if (denial_write(conn, denial, &body, err) < 0)
        return -1;
    reply.length = body.n;
    if (http_reply_write(&reply, out, err) < 0)
        return -1;
    return has_body ? buf_add_str(out, buf_str(&body), err) : 0;
}

/* Everything of the server's that is on its way to the client is cut off: then a reset says so. */
static enum step answer_http(struct conn *conn, const struct denial *denial)
{
    AUTO_BUF struct buf out = BUF(2 * ANSWER_MAX);
    bool has_body = !conn->exchange || conn->exchange->head.method != HTTP_HEAD;
    struct err err;

    if (conn->exchange && conn->exchange->answered)
        return STEP_CLOSE;
    if (write_answer(conn, denial, has_body, &out, &err) < 0 ||
        bytes_put(&conn->client.out, out.p, out.n) != out.n)
        return STEP_CLOSE;
    return conn_last(conn);
}

static enum socks_reply socks_of(int status)
{
    switch (status) {
    case 403:
        return SOCKS_NOT_ALLOWED;
    case 502:
        return SOCKS_UNREACHABLE;
    case 504:
        return SOCKS_EXPIRED;
    default:
        return SOCKS_FAILED;
    }
}

static enum step answer_socks(struct conn *conn, const struct denial *denial)
{
    char reply[SOCKS_REPLY_BYTES];

    socks_reply_write(socks_of(denial->status), reply);
    if (bytes_put(&conn->client.out, reply, sizeof reply) != sizeof reply)
        return STEP_CLOSE;
    return conn_last(conn);
}

static enum step answer(struct conn *conn, const struct denial *denial)
{
    if (conn->exchange || conn->herald == HERALD_CONNECT || conn->phase == PHASE_HEAD)
        return answer_http(conn, denial);
    return conn->herald == HERALD_SOCKS ? answer_socks(conn, denial) : STEP_CLOSE;
}

static struct str method_of(const struct conn *conn)
{
    return conn->exchange ? conn->exchange->head.method_text : (struct str){"", 0};
}

static struct str path_of(const struct conn *conn)
{
    return conn->exchange ? conn->exchange->head.path : (struct str){"", 0};
}

enum step conn_refuse(struct conn *conn, const struct net_verdict *verdict)
{
    struct denial denial = {.status = verdict->reason == NET_REASON_RATE ? 429 : 403,
                            .error = net_reason_error(verdict->reason),
                            .reason = net_reason_code(verdict->reason),
                            .text = verdict->text,
                            .rule = verdict->entry ? verdict->entry : "",
                            .method = method_of(conn),
                            .path = path_of(conn)};

    count(conn, &denial);
    return answer(conn, &denial);
}

enum step conn_fail(struct conn *conn, int status, const char *reason, const char *text)
{
    struct denial denial = {.status = status,
                            .error = status == 403   ? "policy_denied"
                                     : status >= 500 ? "upstream_failed"
                                                     : "bad_request",
                            .reason = reason,
                            .text = text,
                            .rule = conn->way.entry ? conn->way.entry : "",
                            .method = method_of(conn),
                            .path = path_of(conn)};

    count(conn, &denial);
    return answer(conn, &denial);
}
