/* SPDX-License-Identifier: Apache-2.0 */

/* Names inside a sandbox: an address of our own for those a rule names, and nothing for the rest.
 * No question ever leaves this process, so none can carry anything out. */

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "cmd/egress/dns.h"
#include "cmd/egress/hub.h"

#define PORT 53
#define LABELS_KEPT 3

_Static_assert(DNS_ANSWER_BYTES == 512, "as hub.h has it");

/* Names that carry something in their first labels are one refusal, not thousands. */
static struct str shorten(struct str name, char out[DNS_NAME_BYTES + 2])
{
    const char *at = name.p + name.n;
    unsigned labels = 0;

    while (at > name.p && (at[-1] != '.' || ++labels < LABELS_KEPT))
        at--;
    if (at == name.p)
        return name;
    (void)snprintf(out, DNS_NAME_BYTES + 2, "*.%.*s", (int)(name.p + name.n - at), at);
    return str_of(out);
}

static void count_refused(struct sandbox *sandbox, struct str name)
{
    char shorter[DNS_NAME_BYTES + 2];
    struct refusal refusal = {.host = shorten(name, shorter),
                              .port = PORT,
                              .reason = net_reason_code(NET_REASON_NO_RULE)};
    struct event event = {
        .class = EVENT_NAME, .host = refusal.host, .port = PORT, .reason = refusal.reason};

    sandbox_refuse(sandbox, "", &refusal);
    sandbox_event(sandbox, &event);
}

size_t names_answer(struct sandbox *sandbox, struct str question, char out[512])
{
    struct dns_question asked;
    unsigned char address[4];
    enum dns_code code;
    struct str name;

    if (dns_question_read(question, &asked, &code) < 0)
        return code == DNS_OK ? 0 : dns_answer_write(&asked, code, NULL, 0, out);
    name = (struct str){asked.name, asked.name_n};
    if (name.n == 0 || !(net_rules_name(sandbox->rules, name) || local_is_named(sandbox, name))) {
        count_refused(sandbox, name);
        return dns_answer_write(&asked, DNS_NO_SUCH_NAME, NULL, 0, out);
    }
    if (asked.type != DNS_A)
        return dns_answer_write(&asked, DNS_OK, NULL, 0, out);
    if (!sandbox->names)
        sandbox->names = names_new();
    names_give(sandbox->names, name, address);
    return dns_answer_write(&asked, DNS_OK, address, DNS_TTL_S, out);
}

void names_answer_udp(struct watch *watch, uint32_t events)
{
    struct entrance *entrance =
        (struct entrance *)((char *)watch - offsetof(struct entrance, watch));
    char question[DNS_MESSAGE_MAX + 1], answer[DNS_ANSWER_BYTES];

    (void)events;
    for (unsigned i = 0; i < DNS_AT_ONCE; i++) {
        struct sockaddr_storage from;
        socklen_t from_n = sizeof from;
        ssize_t got = recvfrom(watch->fd, question, sizeof question, MSG_DONTWAIT,
                               (struct sockaddr *)&from, &from_n);
        size_t n;

        if (got < 0)
            return;
        if (got > DNS_MESSAGE_MAX)
            continue;
        n = names_answer(entrance->sandbox, (struct str){question, (size_t)got}, answer);
        if (n) /* one that cannot be sent is asked for again */
            (void)sendto(watch->fd, answer, n, MSG_DONTWAIT | MSG_NOSIGNAL,
                         (struct sockaddr *)&from, from_n);
    }
}
