/* SPDX-License-Identifier: Apache-2.0 */

/* The way out of a network namespace, in one of our own: what arrives where, and what nowhere. */

#include "cmd/box/box-egress.h"
#include "flow/execute/box-wire.h"
#include "lib/linux/fd-pass.h"
#include "lib/linux/process.h"
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6/ip6_tables.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>

#define WAIT_MS 5000

static struct err err;
static int fds[HANDOVER_FD_COUNT];
static const uint16_t ports[] = {80, 443, 53, 443};

/* ---- the batch ---- */

TEST(a_batch_is_messages_end_to_end_whatever_the_number_of_ports)
{
    static uint16_t many[BOX_EGRESS_PORTS_MAX];
    static const size_t counts[] = {1, 2, BOX_EGRESS_PORTS_MAX};

    for (size_t i = 0; i < COUNT(counts); i++) {
        AUTO_NETLINK struct netlink nl = NETLINK(REDIRECT_BYTES_MAX);
        struct nlmsghdr *message; /* the macros to walk it know no const */
        size_t left;
        unsigned n = 0;

        redirect_write(&nl, many, counts[i]);
        CHECK(!nl.full);
        left = nl.out.n;
        for (message = (void *)nl.out.p; NLMSG_OK(message, left);
             message = NLMSG_NEXT(message, left))
            n++;
        CHECK_INT(left, 0);
        CHECK_INT(n, nl.asked + 2); /* begin and end are not answered */
    }
}

TEST(a_request_that_does_not_fit_is_not_sent)
{
    AUTO_NETLINK struct netlink nl = NETLINK(100);

    redirect_write(&nl, ports, COUNT(ports));
    CHECK(nl.full);
    CHECK_INT(netlink_exchange(&nl, -1, "the batch", &err), -1);
    CHECK_INT(err.code, ERR_LIMIT);
    CHECK_TEXT(err.text, "the batch: more than one request to the kernel can hold");
}

TEST(what_the_kernel_minds_is_said)
{
    AUTO_NETLINK struct netlink nl = NETLINK(REDIRECT_BYTES_MAX);
    AUTO_FD int fd = -1;

    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
        test_skip("no namespaces here");
    CHECK_INT(netlink_open(NETLINK_NETFILTER, &fd, &err), 0);
    redirect_write(&nl, ports, COUNT(ports));
    nl.out.p[nl.out.n - sizeof(struct nlmsghdr) - 4 - 40] ^= 0x7f; /* inside the last rule */
    CHECK_INT(netlink_exchange(&nl, fd, "the batch", &err), -1);
    CHECK_INT(err.code, ERR_OS);
    CHECK(err.os != 0);
}

/* ---- in a namespace ---- */

static void enter(void)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
        test_skip("no namespaces here");
    CHECK_INT(loopback_up(&err), 0);
    CHECK_INT(egress_build(ports, COUNT(ports), fds, &err), 0);
    CHECK_TEXT(err.text, "");
}

static int dial(int family, int type, const char *address, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 to6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    bool is_6 = family == AF_INET6;
    int fd = socket(family, type | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0);
    CHECK_INT(inet_pton(family, address, is_6 ? (void *)&to6.sin6_addr : (void *)&to.sin_addr), 1);
    if (connect(fd, is_6 ? (const void *)&to6 : (const void *)&to, is_6 ? sizeof to6 : sizeof to) ==
        0)
        return fd;
    (void)close(fd);
    return -errno;
}

static int accepted(int listener)
{
    struct pollfd polled = {.fd = listener, .events = POLLIN};

    if (poll(&polled, 1, 0) != 1)
        return -1; /* a connect that has returned is in the queue */
    return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
}

TEST(tcp_to_a_named_port_reaches_the_catch_all_and_says_where_it_was_going)
{
    struct sockaddr_in was;
    struct sockaddr_in6 was6;
    socklen_t n = sizeof was, n6 = sizeof was6;
    char text[64];
    int fd;

    enter();
    CHECK(dial(AF_INET, SOCK_STREAM, "93.184.216.34", 443) >= 0);
    fd = accepted(fds[HANDOVER_CATCH_ALL_4]);
    CHECK(fd >= 0);
    CHECK_INT(getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, &was, &n), 0);
    CHECK_TEXT(inet_ntop(AF_INET, &was.sin_addr, text, sizeof text), "93.184.216.34");
    CHECK_INT(ntohs(was.sin_port), 443);
    CHECK(dial(AF_INET6, SOCK_STREAM, "2001:db8::1", 80) >= 0);
    fd = accepted(fds[HANDOVER_CATCH_ALL_6]);
    CHECK(fd >= 0);
    CHECK_INT(getsockopt(fd, SOL_IPV6, IP6T_SO_ORIGINAL_DST, &was6, &n6), 0);
    CHECK_TEXT(inet_ntop(AF_INET6, &was6.sin6_addr, text, sizeof text), "2001:db8::1");
    CHECK_INT(ntohs(was6.sin6_port), 80);
}

/* F01 */
TEST(everything_else_is_refused_at_once)
{
    static const struct {
        int family, type;
        const char *address;
        uint16_t port;
    } cases[] = {
        {AF_INET,  SOCK_STREAM, "93.184.216.34",   22   },
        {AF_INET,  SOCK_STREAM, "93.184.216.34",   15001},
        {AF_INET,  SOCK_STREAM, "169.254.169.254", 8080 },
        {AF_INET,  SOCK_STREAM, "10.0.0.1",        8443 },
        {AF_INET,  SOCK_STREAM, "198.18.0.1",      443  },
        {AF_INET6, SOCK_STREAM, "2001:db8::1",     22   },
        {AF_INET6, SOCK_STREAM, "fd00::1",         8443 },
        {AF_INET,  SOCK_STREAM, "127.0.0.1",       443  },
        {AF_INET,  SOCK_STREAM, "127.9.9.9",       80   },
        {AF_INET6, SOCK_STREAM, "::1",             443  },
        {AF_INET,  SOCK_STREAM, "0.0.0.0",         443  },
    };

    enter();
    for (size_t i = 0; i < COUNT(cases); i++)
        CHECK_INT(dial(cases[i].family, cases[i].type, cases[i].address, cases[i].port),
                  -ECONNREFUSED);
    CHECK_INT(accepted(fds[HANDOVER_CATCH_ALL_4]), -1);
    CHECK_INT(accepted(fds[HANDOVER_CATCH_ALL_6]), -1);
}

TEST(the_proxy_and_names_are_where_they_should_be)
{
    enter();
    CHECK(dial(AF_INET, SOCK_STREAM, "127.0.0.1", 3128) >= 0);
    CHECK(accepted(fds[HANDOVER_PROXY]) >= 0);
    CHECK(dial(AF_INET, SOCK_STREAM, "198.18.0.1", 53) >= 0); /* though 53 is led away elsewhere */
    CHECK(accepted(fds[HANDOVER_NAMES_TCP]) >= 0);
    CHECK(dial(AF_INET, SOCK_STREAM, "8.8.8.8", 53) >= 0);
    CHECK(accepted(fds[HANDOVER_CATCH_ALL_4]) >= 0);
}

TEST(udp_goes_nowhere_but_to_names)
{
    static const struct {
        const char *address;
        uint16_t port;
    } cases[] = {
        {"8.8.8.8",    53 },
        {"8.8.8.8",    443},
        {"198.18.0.1", 123},
        {"198.18.0.2", 53 },
    };
    char bytes[8] = "x";

    enter();
    for (size_t i = 0; i < COUNT(cases); i++) {
        int fd = dial(AF_INET, SOCK_DGRAM, cases[i].address, cases[i].port);

        CHECK_INT(send(fd, bytes, 1, 0), 1);
        CHECK_INT(recv(fd, bytes, 1, MSG_DONTWAIT), -1);
        CHECK_INT(errno, ECONNREFUSED);
    }
    CHECK_INT(recv(fds[HANDOVER_NAMES_UDP], bytes, sizeof bytes, 0), -1);
    CHECK_INT(errno, EAGAIN);
    CHECK_INT(send(dial(AF_INET, SOCK_DGRAM, "198.18.0.1", 53), "name", 4, 0), 4);
    CHECK_INT(recv(fds[HANDOVER_NAMES_UDP], bytes, sizeof bytes, 0), 4);
}

TEST(a_server_inside_is_reached_and_not_egress)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(443), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int server;

    enter();
    server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(bind(server, (const void *)&at, sizeof at), 0);
    CHECK_INT(listen(server, 1), 0);
    CHECK(dial(AF_INET, SOCK_STREAM, "127.0.0.1", 443) >= 0);
    CHECK(accepted(server) >= 0);
    CHECK_INT(accepted(fds[HANDOVER_CATCH_ALL_4]), -1);
}

TEST(more_connections_than_wait_are_not_taken)
{
    unsigned taken = 0;

    enter();
    for (unsigned i = 0; i < 4 * EGRESS_BACKLOG; i++) {
        struct sockaddr_in to = {.sin_family = AF_INET,
                                 .sin_port = htons(EGRESS_PROXY_PORT),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        if (fd >= 0)
            (void)connect(fd, (const void *)&to, sizeof to);
    }
    while (accepted(fds[HANDOVER_PROXY]) >= 0)
        taken++;
    CHECK(taken > 0 && taken <= EGRESS_BACKLOG + 1);
}

/* What the diag socket says of the far end of a connection is what was seen of it at connect. */
TEST(the_diag_socket_knows_the_cookie_of_who_connects)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 ask;
    } request = {
        .head = {.nlmsg_len = sizeof request,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST                                                   },
        .ask = {.sdiag_family = AF_INET,     .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0U}
    };
    struct {
        struct nlmsghdr head;
        struct inet_diag_msg of;
        char rest[512];
    } got = {.head = {0}};
    struct sockaddr_in from, to;
    socklen_t n = sizeof from, cookie_n;
    uint64_t cookie = 0, seen;
    int fd, near;

    enter();
    near = dial(AF_INET, SOCK_STREAM, "93.184.216.34", 443);
    fd = accepted(fds[HANDOVER_CATCH_ALL_4]);
    CHECK_INT(getpeername(fd, (void *)&from, &n), 0);
    n = sizeof to;
    CHECK_INT(getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, &to, &n), 0);
    request.ask.id = (struct inet_diag_sockid){
        .idiag_sport = from.sin_port,
        .idiag_dport = to.sin_port,
        .idiag_src = {from.sin_addr.s_addr},
        .idiag_dst = {                  to.sin_addr.s_addr                   },
        .idiag_cookie = { INET_DIAG_NOCOOKIE,                    INET_DIAG_NOCOOKIE},
    };
    CHECK_INT(send(fds[HANDOVER_DIAG], &request, sizeof request, 0), sizeof request);
    CHECK(recv(fds[HANDOVER_DIAG], &got, sizeof got, 0) > 0);
    CHECK_INT(got.head.nlmsg_type, SOCK_DIAG_BY_FAMILY);
    seen = got.of.id.idiag_cookie[0] | (uint64_t)got.of.id.idiag_cookie[1] << 32;
    cookie_n = sizeof cookie;
    CHECK_INT(getsockopt(near, SOL_SOCKET, SO_COOKIE, &cookie, &cookie_n), 0);
    CHECK_INT(seen, cookie);
}

TEST(the_listeners_arrive_over_the_pair_and_are_gone_with_it)
{
    char bytes[HANDOVER_MESSAGE_MAX];
    struct handover got;
    int came[HANDOVER_FD_COUNT];
    int pair[2];
    int n;

    enter();
    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    CHECK_INT(egress_hand_over(pair[0], fds, &err), 0);
    n = fds_receive(pair[1], bytes, sizeof bytes, came, HANDOVER_FD_COUNT, &err);
    CHECK(n > 0);
    CHECK_INT(handover_read((struct str){bytes, (size_t)n}, HANDOVER_FD_COUNT, &got, &err), 0);
    CHECK_INT(got.kind, HANDOVER_LISTENERS);
    CHECK(dial(AF_INET, SOCK_STREAM, "93.184.216.34", 443) >= 0);
    for (size_t i = 0; i < HANDOVER_FD_COUNT; i++)
        CHECK_INT(close(came[i]), 0);
    CHECK_INT(dial(AF_INET, SOCK_STREAM, "93.184.216.34", 443), -ECONNREFUSED); /* R11 */
    CHECK_INT(dial(AF_INET, SOCK_STREAM, "127.0.0.1", 3128), -ECONNREFUSED);
}
