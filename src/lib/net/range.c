/* SPDX-License-Identifier: Apache-2.0 */
/* What addresses are for: the registries of IANA for special purposes, the places where clouds
 * answer with credentials, and the forms of IPv6 that carry an IPv4 address. */
#include "lib/base/attrs.h"
#include "lib/net/addr.h"

#include <string.h>

struct named_block {
    unsigned char b[16];
    unsigned bits;
    enum net_range range;
};

#define V4(a, b, c, d, bits, range)                                                                \
    {                                                                                              \
        {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d}, 96 + (bits), NET_RANGE_##range     \
    }
#define V6(a, b, bits, range)                                                                      \
    {                                                                                              \
        {(a) >> 8, (a)&0xff, (b) >> 8, (b)&0xff}, bits, NET_RANGE_##range                          \
    }

/* The first that matches counts, so single addresses stand before the blocks around them. */
static const struct named_block blocks[] = {
  /* Metadata: Amazon, Google, Azure, Oracle, DigitalOcean and others; ECS; EKS; Alibaba; Azure's
  * wire server; Oracle's second; Amazon and Google over IPv6. */
    V4(169, 254, 169, 254, 32, METADATA),
    V4(169, 254, 170, 2, 32, METADATA),
    V4(169, 254, 170, 23, 32, METADATA),
    V4(169, 254, 0, 23, 32, METADATA),
    V4(100, 100, 100, 200, 32, METADATA),
    V4(168, 63, 129, 16, 32, METADATA),
    V4(192, 0, 0, 192, 32, METADATA),
    {{0xfd, 0, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54}, 128, NET_RANGE_METADATA   },
    {{0xfd, 0, 0x0e, 0xc2, [14] = 0x00, [15] = 0x23}, 128, NET_RANGE_METADATA   },
    {{0xfd, 0x20, 0, 0xce, [14] = 0x02, [15] = 0x54}, 128, NET_RANGE_METADATA   },

    V4(0, 0, 0, 0, 8, UNSPECIFIED),
    V4(127, 0, 0, 0, 8, LOOPBACK),
    V4(169, 254, 0, 0, 16, LINK_LOCAL),
    V4(198, 18, 0, 0, 15, OURS),
    V4(224, 0, 0, 0, 4, MULTICAST),
    V4(255, 255, 255, 255, 32, MULTICAST),
    V4(240, 0, 0, 0, 4, RESERVED),
    V4(192, 88, 99, 0, 24, TRANSITION),
    V4(10, 0, 0, 0, 8, PRIVATE),
    V4(172, 16, 0, 0, 12, PRIVATE),
    V4(192, 168, 0, 0, 16, PRIVATE),
    V4(100, 64, 0, 0, 10, SHARED),
    V4(192, 0, 0, 0, 24, SPECIAL),
    V4(192, 0, 2, 0, 24, SPECIAL),
    V4(198, 51, 100, 0, 24, SPECIAL),
    V4(203, 0, 113, 0, 24, SPECIAL),
    V4(0, 0, 0, 0, 0, GLOBAL),

    {{0},                                             128, NET_RANGE_UNSPECIFIED},
    {{[15] = 1},                                      128, NET_RANGE_LOOPBACK   },
    {{0},                                             96,  NET_RANGE_TRANSITION }, /* IPv4-compatible */
    V6(0xfe80, 0, 10, LINK_LOCAL),
    V6(0xfec0, 0, 10, RESERVED),
    V6(0xff00, 0, 8, MULTICAST),
    V6(0xfc00, 0, 7, PRIVATE),
    V6(0x2002, 0, 16, TRANSITION),
    V6(0x2001, 0x0000, 32, TRANSITION), /* Teredo */
    V6(0x2001, 0x0db8, 32, SPECIAL),
    V6(0x2001, 0x0000, 23, RESERVED), /* benchmarking, ORCHID and others */
    V6(0x3fff, 0, 20, SPECIAL),
    V6(0x2000, 0, 3, GLOBAL),
};

static const unsigned char nat64[12] = {0x00, 0x64, 0xff, 0x9b};

/* The IPv4 address inside, for the forms that have one. ISATAP is told by its interface part,
 * under any prefix. */
static bool embedded_v4(const struct net_addr *addr, struct net_addr *out)
{
    const unsigned char *b = addr->b;
    unsigned char v4[4];

    if (net_addr_is_v4(addr))
        return false;
    if (memcmp(b, nat64, sizeof nat64) == 0)
        memcpy(v4, b + 12, 4);
    else if (b[0] == 0x20 && b[1] == 0x02)
        memcpy(v4, b + 2, 4);
    else if (b[0] == 0x20 && b[1] == 0x01 && b[2] == 0 && b[3] == 0)
        for (size_t i = 0; i < 4; i++)
            v4[i] = b[12 + i] ^ 0xff;
    else if ((b[8] & 0xfc) == 0 && (b[8] & 0x01) == 0 && b[9] == 0 && b[10] == 0x5e &&
             b[11] == 0xfe)
        memcpy(v4, b + 12, 4);
    else if (memcmp(b, (const unsigned char[12]){0}, 12) == 0 && (b[12] || b[13] || b[14]))
        memcpy(v4, b + 12, 4);
    else
        return false;
    *out = net_addr_v4(v4);
    return true;
}

static enum net_range range_in_table(const struct net_addr *addr)
{
    for (size_t i = 0; i < COUNT(blocks); i++) {
        struct net_block block = {.bits = blocks[i].bits};

        memcpy(block.addr.b, blocks[i].b, sizeof block.addr.b);
        if (net_block_has(&block, addr))
            return blocks[i].range;
    }
    return NET_RANGE_RESERVED;
}

enum net_range net_range_of(const struct net_addr *addr)
{
    struct net_addr inner;
    enum net_range range, own;

    if (!embedded_v4(addr, &inner))
        return range_in_table(addr);
    range = range_in_table(&inner);
    if (memcmp(addr->b, nat64, sizeof nat64) == 0)
        return range;
    own = range_in_table(addr);
    if (net_range_is_never(range))
        return range;
    return net_range_is_never(own) ? own : NET_RANGE_TRANSITION;
}

const char *net_range_name(enum net_range range)
{
    static const char *const names[] = {
        [NET_RANGE_RESERVED] = "reserved",
        [NET_RANGE_UNSPECIFIED] = "unspecified",
        [NET_RANGE_LOOPBACK] = "loopback",
        [NET_RANGE_LINK_LOCAL] = "link-local",
        [NET_RANGE_METADATA] = "a cloud's metadata service",
        [NET_RANGE_MULTICAST] = "multicast",
        [NET_RANGE_OURS] = "Brig's own",
        [NET_RANGE_TRANSITION] = "a form that hides an IPv4 address",
        [NET_RANGE_PRIVATE] = "private",
        [NET_RANGE_SHARED] = "shared by carriers",
        [NET_RANGE_SPECIAL] = "special purpose",
        [NET_RANGE_GLOBAL] = "global",
    };

    return names[range];
}

bool net_range_is_never(enum net_range range)
{
    return range < NET_RANGE_PRIVATE;
}

bool net_range_is_private(enum net_range range)
{
    return range >= NET_RANGE_PRIVATE && range < NET_RANGE_GLOBAL;
}

/* Two networks overlap when they agree in the shorter of the two prefixes. A network inside one
 * that may be allowed does not meet the wide blocks at the end of the table, which are GLOBAL. */
const char *net_block_forbidden(const struct net_block *block)
{
    static const struct net_block mapped = {{{[10] = 0xff, [11] = 0xff}}, 96};
    bool v4 = block->bits >= mapped.bits && net_block_has(&mapped, &block->addr);

    for (size_t i = 0; i < COUNT(blocks); i++) {
        struct net_block other = {.bits = blocks[i].bits};
        bool other_v4;

        memcpy(other.addr.b, blocks[i].b, sizeof other.addr.b);
        other_v4 = other.bits >= 96 && net_block_has(&mapped, &other.addr);
        if (!net_range_is_never(blocks[i].range) || v4 != other_v4)
            continue;
        /* Single addresses do not spoil a network; they are refused when they are dialled. */
        if (blocks[i].range == NET_RANGE_METADATA && block->bits < other.bits)
            continue;
        if (block->bits < other.bits)
            other.bits = block->bits;
        if (net_block_has(&other, &block->addr))
            return net_range_name(blocks[i].range);
    }
    if (!v4 && block->bits < mapped.bits && net_block_has(block, &mapped.addr))
        return "IPv4-mapped, which hides IPv4 addresses";
    if (!v4) {
        static const struct net_block translated = {{{0x00, 0x64, 0xff, 0x9b}}, 96};
        struct net_block shorter = translated;

        if (block->bits < shorter.bits)
            shorter.bits = block->bits;
        if (net_block_has(&shorter, &block->addr))
            return "NAT64, which hides IPv4 addresses";
    }
    return NULL;
}
