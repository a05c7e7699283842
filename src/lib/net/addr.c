/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/net/addr.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

bool net_addr_is_v4(const struct net_addr *addr)
{
    return memcmp(addr->b, mapped, sizeof mapped) == 0;
}

bool net_addr_is_same(const struct net_addr *a, const struct net_addr *b)
{
    return memcmp(a->b, b->b, sizeof a->b) == 0;
}

struct net_addr net_addr_v4(const unsigned char b[4])
{
    struct net_addr addr;

    memcpy(addr.b, mapped, sizeof mapped);
    memcpy(addr.b + sizeof mapped, b, 4);
    return addr;
}

/* inet_pton() takes exactly the plain spellings: no short, octal or hexadecimal quads, no zone. */
bool net_addr_read(struct str text, struct net_addr *out)
{
    char copy[NET_ADDR_TEXT_BYTES];
    unsigned char v4[4];

    if (text.n == 0 || text.n >= sizeof copy || memchr(text.p, '\0', text.n))
        return false;
    memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    if (inet_pton(AF_INET, copy, v4) == 1) {
        *out = net_addr_v4(v4);
        return true;
    }
    return inet_pton(AF_INET6, copy, out->b) == 1;
}

struct str net_addr_text(const struct net_addr *addr, char out[NET_ADDR_TEXT_BYTES])
{
    bool v4 = net_addr_is_v4(addr);
    const void *bytes = v4 ? addr->b + sizeof mapped : addr->b;

    if (!inet_ntop(v4 ? AF_INET : AF_INET6, bytes, out, NET_ADDR_TEXT_BYTES))
        out[0] = '\0'; /* cannot be: the family is known and the room suffices */
    return str_of(out);
}

static bool same_prefix(const unsigned char *a, const unsigned char *b, unsigned bits)
{
    unsigned bytes = bits / 8, rest = bits % 8;

    if (memcmp(a, b, bytes) != 0)
        return false;
    return rest == 0 || ((a[bytes] ^ b[bytes]) >> (8 - rest)) == 0;
}

bool net_block_has(const struct net_block *block, const struct net_addr *addr)
{
    return same_prefix(block->addr.b, addr->b, block->bits);
}

bool net_block_read(struct str text, struct net_block *out)
{
    struct str prefix = text;
    struct str address = str_cut(&prefix, '/');
    bool has_prefix = address.n < text.n;
    unsigned total;
    uint64_t bits;

    if (!net_addr_read(address, &out->addr))
        return false;
    /* ::ffff:10.0.0.0/104 counts from the front, 10.0.0.0/8 from the dotted part. */
    total = net_addr_is_v4(&out->addr) && !memchr(address.p, ':', address.n) ? 32 : 128;
    bits = total;
    if (has_prefix && (!str_u64(prefix, &bits) || bits > total || prefix.n > 3 ||
                       (prefix.n > 1 && prefix.p[0] == '0')))
        return false;
    out->bits = (unsigned)bits + (128 - total);
    return true;
}
