/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define ANSWER_BYTES 8192
#define WAIT_S                                                                                     \
    5 /* the kernel answers before the request returns; a module may have to be loaded             \
       */

void netlink_done(struct netlink *nl)
{
    buf_done(&nl->out);
}

static void put(struct netlink *nl, const void *bytes, size_t n)
{
    static const char zeros[NLMSG_ALIGNTO];
    struct err ignored;

    if (nl->full || buf_add(&nl->out, bytes, n, &ignored) < 0 ||
        (n % NLMSG_ALIGNTO && buf_add(&nl->out, zeros, NLMSG_ALIGN(n) - n, &ignored) < 0))
        nl->full = true;
}

/* Messages and attributes name their length before it is known. */
static void put_length(struct netlink *nl)
{
    uint32_t length = (uint32_t)(nl->out.n - nl->at);

    if (!nl->full)
        memcpy(nl->out.p + nl->at, &length, sizeof length);
}

static void begin(struct netlink *nl, uint16_t type, uint16_t flags, const void *head, size_t n)
{
    struct nlmsghdr message = {.nlmsg_type = type, .nlmsg_flags = flags};

    nl->at = nl->out.n;
    put(nl, &message, sizeof message);
    put(nl, head, n);
    put_length(nl);
}

void netlink_begin(struct netlink *nl, uint16_t type, uint16_t flags, const void *head, size_t n)
{
    begin(nl, type, flags | NLM_F_REQUEST | NLM_F_ACK, head, n);
    nl->asked++;
}

void netlink_begin_quiet(struct netlink *nl, uint16_t type, const void *head, size_t n)
{
    begin(nl, type, NLM_F_REQUEST, head, n);
}

void netlink_add(struct netlink *nl, uint16_t type, const void *bytes, size_t n)
{
    struct nlattr attr = {(uint16_t)(sizeof attr + n), type};

    put(nl, &attr, sizeof attr);
    put(nl, bytes, n);
    put_length(nl);
}

void netlink_add_text(struct netlink *nl, uint16_t type, const char *text)
{
    netlink_add(nl, type, text, strlen(text) + 1);
}

void netlink_add_be32(struct netlink *nl, uint16_t type, uint32_t value)
{
    uint32_t wire = htonl(value);

    netlink_add(nl, type, &wire, sizeof wire);
}

size_t netlink_nest(struct netlink *nl, uint16_t type)
{
    struct nlattr attr = {sizeof attr, type | NLA_F_NESTED};
    size_t at = nl->out.n;

    put(nl, &attr, sizeof attr);
    put_length(nl);
    return at;
}

void netlink_nest_end(struct netlink *nl, size_t at)
{
    size_t n = nl->out.n - at;
    uint16_t length = (uint16_t)n;

    nl->full |= n > UINT16_MAX;
    if (!nl->full)
        memcpy(nl->out.p + at, &length, sizeof length);
}

int netlink_open(int protocol, int *out, struct err *err)
{
    AUTO_FD int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    const struct timeval wait = {.tv_sec = WAIT_S};
    int short_answers = 1; /* without the request, which can be longer than our buffer */

    if (fd < 0)
        return err_os(err, "opening a netlink socket");
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) < 0 ||
        setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &short_answers, sizeof short_answers) < 0)
        return err_os(err, "preparing a netlink socket");
    *out = TAKE_FD(fd);
    return 0;
}

/* How many answers a datagram holds, or -1 with errno set for the first that is no success. */
static int count_answers(void *bytes, size_t n)
{
    struct nlmsghdr *message = bytes; /* the macros to walk it know no const */
    int answers = 0;

    for (; NLMSG_OK(message, n); message = NLMSG_NEXT(message, n)) {
        struct nlmsgerr answer;

        if (message->nlmsg_type != NLMSG_ERROR || message->nlmsg_len < NLMSG_LENGTH(sizeof answer))
            continue;
        memcpy(&answer, NLMSG_DATA(message), sizeof answer);
        errno = -answer.error;
        if (answer.error)
            return -1;
        answers++;
    }
    return answers;
}

int netlink_exchange(struct netlink *nl, int fd, const char *what, struct err *err)
{
    _Alignas(struct nlmsghdr) char bytes[ANSWER_BYTES];
    uint32_t left = nl->asked;

    if (nl->full)
        return err_set(err, ERR_LIMIT, "%s: more than one request to the kernel can hold", what);
    if (send(fd, nl->out.p, nl->out.n, 0) != (ssize_t)nl->out.n)
        return err_os(err, "%s: asking the kernel", what);
    while (left > 0) {
        ssize_t got = recv(fd, bytes, sizeof bytes, 0);
        int answers;

        if (got < 0 && errno == EINTR)
            continue;
        answers = got < 0 ? -1 : count_answers(bytes, (size_t)got);
        if (answers < 0)
            return err_os(err, "%s", what);
        left = (uint32_t)answers > left ? 0 : left - (uint32_t)answers;
    }
    return 0;
}
