/* SPDX-License-Identifier: Apache-2.0 */
#include "stand-in.h"

#include "lib/egress/handover.h"
#include "lib/linux/fd-pass.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6/ip6_tables.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define CALLERS_MAX 4096

static struct {
    uint64_t cookie;
    char *line;
} known[CALLERS_MAX]; /* the last ones */
static size_t known_n;

/* ---- callers ---- */

static void add_program(FILE *out, const struct handover_program *program)
{
    char hash[HASH_TEXT_BYTES] = "-";

    if (program->flags & HANDOVER_HASHED)
        for (size_t i = 0; i < HASH_BYTES; i++)
            (void)snprintf(hash + 2 * i, 3, "%02x", program->hash.b[i]);
    (void)fprintf(out, STR_FMT " %s%s", STR_ARG(program->path), hash,
                  program->flags & HANDOVER_UNNAMED ? " deleted" : "");
}

static char *line_of(const struct handover_caller *caller)
{
    char *line = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&line, &n);

    add_program(out, &caller->exe);
    if (caller->flags & CALLER_HAS_SCRIPT) {
        (void)fputs(" script=", out);
        add_program(out, &caller->script);
    }
    if (caller->flags & CALLER_SCRIPT_UNKNOWN)
        (void)fputs(" script=unknown", out);
    if (caller->flags & CALLER_ANCESTOR_LOST)
        (void)fputs(" lost", out);
    if (caller->flags & CALLER_ANCESTORS_CUT)
        (void)fputs(" cut", out);
    for (uint32_t i = 0; i < caller->ancestor_n; i++)
        (void)fprintf(out, " <- " STR_FMT, STR_ARG(caller->ancestors[i].path));
    (void)fputs("\n", out);
    (void)fclose(out);
    return line;
}

/* False: the sandbox is gone, or what came is no message. */
static bool hear(int pair_fd)
{
    static char bytes[HANDOVER_MESSAGE_MAX + 1];
    struct handover got;
    struct err err;
    ssize_t n = recv(pair_fd, bytes, sizeof bytes, MSG_DONTWAIT);
    size_t at = known_n % CALLERS_MAX;

    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    if (n == 0 || handover_read((struct str){bytes, (size_t)n}, 0, &got, &err) < 0)
        return false;
    free(known[at].line);
    known[at].cookie = got.caller.cookie;
    known[at].line = line_of(&got.caller);
    known_n++;
    return true;
}

static const char *caller_of(uint64_t cookie)
{
    for (size_t i = 0; cookie && i < CALLERS_MAX; i++)
        if (known[i].cookie == cookie)
            return known[i].line;
    return "nobody\n";
}

/* ---- connections ---- */

struct ends {
    struct sockaddr_storage near, far; /* the caller's, and where it was going */
};

static bool find_ends(int fd, bool redirected, struct ends *out)
{
    socklen_t n = sizeof out->near;
    bool is_6;

    if (getpeername(fd, (struct sockaddr *)&out->near, &n) < 0)
        return false;
    is_6 = out->near.ss_family == AF_INET6;
    n = sizeof out->far;
    if (!redirected)
        return getsockname(fd, (struct sockaddr *)&out->far, &n) == 0;
    return getsockopt(fd, is_6 ? SOL_IPV6 : SOL_IP, is_6 ? IP6T_SO_ORIGINAL_DST : SO_ORIGINAL_DST,
                      &out->far, &n) == 0;
}

static uint16_t put_end(const struct sockaddr_storage *end, __be32 address[4])
{
    const struct sockaddr_in *in = (const void *)end;
    const struct sockaddr_in6 *in6 = (const void *)end;

    if (end->ss_family == AF_INET) {
        address[0] = in->sin_addr.s_addr;
        return in->sin_port;
    }
    memcpy(address, &in6->sin6_addr, sizeof in6->sin6_addr);
    return in6->sin6_port;
}

static uint64_t cookie_of(int diag_fd, const struct ends *ends)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 ask;
    } request = {
        .head = {.nlmsg_len = sizeof request,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST                                    },
        .ask = { .sdiag_family = (uint8_t)ends->near.ss_family,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_states = ~0U,
                 .id = {.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}}
    };
    struct {
        struct nlmsghdr head;
        struct inet_diag_msg of;
        char rest[512];
    } got;

    request.ask.id.idiag_sport = put_end(&ends->near, request.ask.id.idiag_src);
    request.ask.id.idiag_dport = put_end(&ends->far, request.ask.id.idiag_dst);
    if (send(diag_fd, &request, sizeof request, 0) < 0 ||
        recv(diag_fd, &got, sizeof got, 0) < (ssize_t)sizeof got.head ||
        got.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
        return 0;
    return got.of.id.idiag_cookie[0] | (uint64_t)got.of.id.idiag_cookie[1] << 32;
}

static uint16_t port_of(const struct sockaddr_storage *end)
{
    __be32 unused[4];

    return ntohs(put_end(end, unused));
}

/* Which port it was going to. */
static uint16_t answer(int fd, bool redirected, int diag_fd)
{
    struct ends ends;
    const char *line;

    if (!find_ends(fd, redirected, &ends))
        return 0;
    line = caller_of(cookie_of(diag_fd, &ends));
    (void)!write(fd, line, strlen(line));
    return port_of(&ends.far);
}

static void answer_name(int fd)
{
    char bytes[512];
    struct sockaddr_storage from;
    socklen_t n = sizeof from;

    if (recvfrom(fd, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &n) >= 0)
        (void)sendto(fd, "name\n", 5, 0, (struct sockaddr *)&from, n);
}

/* All that was said so far. */
static bool hear_all(int pair_fd)
{
    struct pollfd polled = {.fd = pair_fd, .events = POLLIN};

    while (poll(&polled, 1, 0) == 1)
        if (!hear(pair_fd))
            return false;
    return true;
}

/* The port one connection was going to; 0: there was none. Its caller was told of before it could
 * be accepted. */
static uint16_t take(int pair_fd, bool deaf, const int *fds, int which)
{
    bool redirected = which == HANDOVER_CATCH_ALL_4 || which == HANDOVER_CATCH_ALL_6;
    int fd = accept(fds[which], NULL, NULL);
    uint16_t port;

    if (fd < 0)
        return 0;
    if (!deaf)
        (void)hear_all(pair_fd);
    port = answer(fd, redirected, fds[HANDOVER_DIAG]);
    /* Whoever asked goes on when its connection ends: by then there must be nobody any more. */
    for (int i = 0; port == STAND_IN_QUIT_PORT && i < HANDOVER_FD_COUNT; i++)
        (void)close(fds[i]);
    (void)close(fd);
    return port;
}

static bool receive_listeners(int pair_fd, int fds[HANDOVER_FD_COUNT])
{
    char bytes[HANDOVER_MESSAGE_MAX];
    struct handover got;
    struct err err;
    int n = fds_receive(pair_fd, bytes, sizeof bytes, fds, HANDOVER_FD_COUNT, &err);

    return n > 0 &&
           handover_read((struct str){bytes, (size_t)n}, HANDOVER_FD_COUNT, &got, &err) == 0 &&
           got.kind == HANDOVER_LISTENERS;
}

void stand_in_serve(int pair_fd)
{
    struct pollfd polled[HANDOVER_FD_COUNT];
    struct pollfd *pair = &polled[HANDOVER_DIAG]; /* the diag socket is only asked */
    int fds[HANDOVER_FD_COUNT];
    bool deaf = false;

    if (!receive_listeners(pair_fd, fds))
        return;
    for (int i = 0; i < HANDOVER_FD_COUNT; i++)
        polled[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    pair->fd = pair_fd;
    polled[HANDOVER_MINT].fd = polled[HANDOVER_SEED].fd = -1; /* there are no other sandboxes */
    for (;;) {
        pair->events = deaf ? 0 : POLLIN;
        (void)poll(polled, HANDOVER_FD_COUNT, -1);
        if ((deaf && pair->revents & POLLHUP) || (!deaf && !hear_all(pair_fd)))
            return;
        if (polled[HANDOVER_NAMES_UDP].revents)
            answer_name(fds[HANDOVER_NAMES_UDP]);
        for (int i = 0; i < HANDOVER_DIAG; i++) {
            uint16_t port =
                i == HANDOVER_NAMES_UDP || !polled[i].revents ? 0 : take(pair_fd, deaf, fds, i);

            if (port == STAND_IN_QUIT_PORT)
                return;
            deaf |= port == STAND_IN_DEAF_PORT;
        }
    }
}
