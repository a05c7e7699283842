/* SPDX-License-Identifier: Apache-2.0 */

/* The sandbox's side of the way out: every address is ours, so that no packet has anywhere else to
 * go; what some rule may allow is led to a listener; all the rest meets the kernel's reset. The
 * listeners are made here and served outside. */

#include "cmd/box/box-egress.h"

#include "lib/linux/fd-pass.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define NAMES_PORT 53
#define ROUTE_BYTES_MAX 256

/* ip route add local default dev lo */
static int add_route(int fd, uint8_t family, struct err *err)
{
    AUTO_NETLINK struct netlink nl = NETLINK(ROUTE_BYTES_MAX);
    const struct rtmsg head = {.rtm_family = family,
                               .rtm_table = RT_TABLE_LOCAL,
                               .rtm_protocol = RTPROT_BOOT,
                               .rtm_scope = RT_SCOPE_HOST,
                               .rtm_type = RTN_LOCAL};
    const uint32_t lo = if_nametoindex("lo");

    netlink_begin(&nl, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &head, sizeof head);
    netlink_add(&nl, RTA_OIF, &lo, sizeof lo);
    return netlink_exchange(&nl, fd, "the route that leads nowhere else", err);
}

/* A machine that has no IPv6, or has switched it off, leads nothing anywhere by it. */
static int add_routes(bool *has_ipv6, struct err *err)
{
    AUTO_FD int fd = -1;
    struct err no_ipv6;

    if (netlink_open(NETLINK_ROUTE, &fd, err) < 0 || add_route(fd, AF_INET, err) < 0)
        return -1;
    *has_ipv6 = add_route(fd, AF_INET6, &no_ipv6) == 0;
    return 0;
}

static int add_redirect(const uint16_t *ports, size_t n, struct err *err)
{
    AUTO_NETLINK struct netlink nl = NETLINK(REDIRECT_BYTES_MAX);
    AUTO_FD int fd = -1;

    if (n == 0)
        return 0;
    if (netlink_open(NETLINK_NETFILTER, &fd, err) < 0)
        return -1;
    redirect_write(&nl, ports, n);
    return netlink_exchange(&nl, fd, "the redirect to egress (is nf_tables there?)", err);
}

static int listen_at(const struct sockaddr *at, socklen_t n, int type, int *out, struct err *err)
{
    AUTO_FD int fd = socket(at->sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, at, n) < 0 || (type == SOCK_STREAM && listen(fd, EGRESS_BACKLOG) < 0))
        return err_os(err, "making a listener of egress");
    *out = TAKE_FD(fd);
    return 0;
}

static int listen_4(uint32_t address, uint16_t port, int type, int *out, struct err *err)
{
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};

    return listen_at((const struct sockaddr *)&at, sizeof at, type, out, err);
}

static int listen_6(uint16_t port, int *out, struct err *err)
{
    const struct sockaddr_in6 at = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};

    return listen_at((const struct sockaddr *)&at, sizeof at, SOCK_STREAM, out, err);
}

/* Without IPv6 the place of its listener is taken by the other one, a second time. */
static int make_listeners(bool has_ipv6, int fds[HANDOVER_FD_COUNT], struct err *err)
{
    if (listen_4(INADDR_LOOPBACK, EGRESS_PROXY_PORT, SOCK_STREAM, &fds[HANDOVER_PROXY], err) < 0 ||
        listen_4(INADDR_LOOPBACK, EGRESS_CATCH_ALL_PORT, SOCK_STREAM, &fds[HANDOVER_CATCH_ALL_4],
                 err) < 0 ||
        listen_4(EGRESS_MINT_ADDRESS, EGRESS_MINT_PORT, SOCK_STREAM, &fds[HANDOVER_MINT], err) <
            0 ||
        listen_4(EGRESS_NAMES_ADDRESS, NAMES_PORT, SOCK_DGRAM, &fds[HANDOVER_NAMES_UDP], err) < 0 ||
        listen_4(EGRESS_NAMES_ADDRESS, NAMES_PORT, SOCK_STREAM, &fds[HANDOVER_NAMES_TCP], err) < 0)
        return -1;
    if (has_ipv6)
        return listen_6(EGRESS_CATCH_ALL_PORT, &fds[HANDOVER_CATCH_ALL_6], err);
    fds[HANDOVER_CATCH_ALL_6] = fcntl(fds[HANDOVER_CATCH_ALL_4], F_DUPFD_CLOEXEC, 0);
    return fds[HANDOVER_CATCH_ALL_6] < 0 ? err_os(err, "making a listener of egress") : 0;
}

int egress_build(const uint16_t *ports, size_t n, int fds[HANDOVER_FD_COUNT], struct err *err)
{
    bool has_ipv6;

    for (size_t i = 0; i < HANDOVER_FD_COUNT; i++)
        fds[i] = -1;
    if (add_routes(&has_ipv6, err) < 0 || add_redirect(ports, n, err) < 0 ||
        make_listeners(has_ipv6, fds, err) < 0)
        return -1;
    fds[HANDOVER_DIAG] =
        socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fds[HANDOVER_DIAG] < 0)
        return err_os(err, "opening the diag socket of egress");
    fds[HANDOVER_SEED] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return fds[HANDOVER_SEED] < 0 ? err_os(err, "making the socket that others come from") : 0;
}

int egress_hand_over(int pair_fd, int fds[HANDOVER_FD_COUNT], struct err *err)
{
    char message[HANDOVER_MESSAGE_MAX];
    int failed =
        fds_send(pair_fd, message, handover_listeners(message), fds, HANDOVER_FD_COUNT, err);

    for (size_t i = 0; i < HANDOVER_FD_COUNT; i++)
        (void)close(TAKE_FD(fds[i]));
    return failed;
}
