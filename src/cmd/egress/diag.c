/* SPDX-License-Identifier: Apache-2.0 */

/* One exact question to sock_diag. The kernel answers before the call that asks returns, so there
 * is nothing to wait for. */

#include "cmd/egress/callers.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <sys/socket.h>

struct question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 ask;
};

static uint32_t serial;

static struct question question_of(const struct tuple *tuple)
{
    size_t n = tuple->family == AF_INET ? 4 : 16;
    struct question q = {
        .head = {.nlmsg_len = sizeof q,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST,
                 .nlmsg_seq = ++serial                                          },
        .ask = {.sdiag_family = (uint8_t)tuple->family,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_states = ~0U,
                 .id = {.idiag_sport = htons(tuple->from_port),
                       .idiag_dport = htons(tuple->to_port),
                       .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
    };

    memcpy(q.ask.id.idiag_src, tuple->from, n);
    memcpy(q.ask.id.idiag_dst, tuple->to, n);
    return q;
}

static int read_answer(const char *bytes, size_t n, uint64_t *out, struct err *err)
{
    struct nlmsghdr head;
    struct inet_diag_msg found;

    if (n < sizeof head)
        return err_set(err, ERR_NOT_FOUND, "sock_diag answered with a stump");
    memcpy(&head, bytes, sizeof head);
    if (head.nlmsg_seq != serial || head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        n < NLMSG_HDRLEN + sizeof found)
        return err_set(err, ERR_NOT_FOUND, "no socket has these ends");
    memcpy(&found, bytes + NLMSG_HDRLEN, sizeof found);
    *out = (uint64_t)found.id.idiag_cookie[1] << 32 | found.id.idiag_cookie[0];
    return 0;
}

int tuple_cookie(int diag_fd, const struct tuple *tuple, uint64_t *out, struct err *err)
{
    struct question q = question_of(tuple);
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    char answer[4096];
    ssize_t got;

    /* Answers nobody waited for: an earlier question whose answer was late would be taken for this.
     */
    while (recv(diag_fd, answer, sizeof answer, MSG_DONTWAIT) > 0)
        ;
    if (sendto(diag_fd, &q, sizeof q, MSG_DONTWAIT, (struct sockaddr *)&kernel, sizeof kernel) < 0)
        return err_os(err, "asking sock_diag");
    got = recv(diag_fd, answer, sizeof answer, MSG_DONTWAIT);
    if (got < 0)
        return err_os(err, "hearing sock_diag");
    return read_answer(answer, (size_t)got, out, err);
}
