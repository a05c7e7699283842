/* SPDX-License-Identifier: Apache-2.0 */

/* sockets families|protocols: which sockets can be had.
 * sockets listen NAME | connect NAME: a unix socket; NAME with a leading @ is abstract. */

#include "attack.h"

#include <linux/if_ether.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define FAMILY_MAX 60
#define HIGH_BITS (1L << 32)

static void try(const char *name, long family, long type, long protocol)
{
    long fd = attempt(name, syscall(SYS_socket, family, type, protocol));

    if (fd >= 0)
        (void)close((int)fd);
}

static void families(void)
{
    char name[64];

    for (int family = 0; family < FAMILY_MAX; family++) {
        (void)snprintf(name, sizeof name, "family %d", family);
        try(name, family, family == AF_NETLINK ? SOCK_RAW : SOCK_DGRAM, 0);
    }
    try("family AF_PACKET with high bits", HIGH_BITS | AF_PACKET, SOCK_RAW, 0);
    try("family AF_VSOCK with high bits", HIGH_BITS | AF_VSOCK, SOCK_STREAM, 0);
    try("family AF_ALG with high bits", HIGH_BITS | AF_ALG, SOCK_SEQPACKET, 0);
    try("family -1", -1, SOCK_STREAM, 0);
}

static void protocols(void)
{
    static const struct {
        const char *name;
        long family, type, protocol;
    } cases[] = {
        {"tcp",                          AF_INET,    SOCK_STREAM, IPPROTO_TCP             },
        {"udp",                          AF_INET6,   SOCK_DGRAM,  IPPROTO_UDP             },
        {"route",                        AF_NETLINK, SOCK_RAW,    NETLINK_ROUTE           },
        {"icmp",                         AF_INET,    SOCK_DGRAM,  IPPROTO_ICMP            },
        {"raw icmp",                     AF_INET,    SOCK_RAW,    IPPROTO_ICMP            },
        {"raw icmp6",                    AF_INET6,   SOCK_RAW,    IPPROTO_ICMPV6          },
        {"raw ip",                       AF_INET,    SOCK_RAW,    IPPROTO_RAW             },
        {"sctp",                         AF_INET,    SOCK_STREAM, IPPROTO_SCTP            },
        {"mptcp",                        AF_INET,    SOCK_STREAM, 262                     },
        {"udplite",                      AF_INET,    SOCK_DGRAM,  IPPROTO_UDPLITE         },
        {"icmp with high bits",          AF_INET,    SOCK_DGRAM,  HIGH_BITS | IPPROTO_ICMP},
        {"netlink audit",                AF_NETLINK, SOCK_RAW,    NETLINK_AUDIT           },
        {"netlink netfilter",            AF_NETLINK, SOCK_RAW,    NETLINK_NETFILTER       },
        {"netlink xfrm",                 AF_NETLINK, SOCK_RAW,    NETLINK_XFRM            },
        {"netlink uevent",               AF_NETLINK, SOCK_RAW,    NETLINK_KOBJECT_UEVENT  },
        {"netlink generic",              AF_NETLINK, SOCK_RAW,    NETLINK_GENERIC         },
        {"packet under the old name",    AF_INET,    SOCK_PACKET, 0                       },
        {"all packets, under that name", AF_INET,    SOCK_PACKET, 0x0300                  },
        {"raw tcp",                      AF_INET,    SOCK_RAW,    IPPROTO_TCP             },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        try(cases[i].name, cases[i].family, cases[i].type, cases[i].protocol);
}

static socklen_t address_of(const char *name, struct sockaddr_un *out)
{
    size_t n = strlen(name);

    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (n >= sizeof out->sun_path)
        usage("sockets listen|connect NAME, which is not that long");
    memcpy(out->sun_path, name, n);
    if (name[0] == '@')
        out->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (name[0] != '@'));
}

static int serve(const char *name)
{
    struct sockaddr_un address;
    socklen_t n = address_of(name, &address);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    if (bind(fd, (struct sockaddr *)&address, n) < 0 || listen(fd, 8) < 0) {
        answer("listen", errno);
        return 1;
    }
    answer("listen", 0);
    for (;;) {
        int peer = accept(fd, NULL, NULL);

        (void)!write(peer, "hello\n", 6);
        (void)close(peer);
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_un address;
    socklen_t n;

    if (argc == 2 && strcmp(argv[1], "families") == 0) {
        families();
    } else if (argc == 2 && strcmp(argv[1], "protocols") == 0) {
        protocols();
    } else if (argc == 3 && strcmp(argv[1], "listen") == 0) {
        return serve(argv[2]);
    } else if (argc == 3 && strcmp(argv[1], "connect") == 0) {
        n = address_of(argv[2], &address);
        (void)attempt("connect",
                      connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, n));
    } else {
        usage("sockets families|protocols|listen NAME|connect NAME");
    }
    return 0;
}
