/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts and addresses of network rules: what may be named at all.
 *
 * Loopback, link-local and unspecified addresses can never be allowed, under any spelling. */
#include "flow/decide/load.h"

#include <arpa/inet.h>
#include <string.h>

#define HOST_BYTES_MAX 253
#define LABEL_BYTES_MAX 63
#define LABELS_MAX 127

/* ---- addresses ---- */

struct net {
    unsigned char b[16];
    unsigned bits;  /* of the prefix */
    unsigned total; /* 32 or 128 */
};

struct named_net {
    const char *text;
    unsigned bits;
    const char *what;
};

static const struct named_net forbidden4[] = {
    {"127.0.0.0",   8,  "loopback"   },
    {"169.254.0.0", 16, "link-local" },
    {"0.0.0.0",     32, "unspecified"},
};

/* Besides the three kinds: forms that carry an IPv4 address inside, through which one of them
 * could come back. */
static const struct named_net forbidden6[] = {
    {"::1",       128, "loopback"                                   },
    {"::",        128, "unspecified"                                },
    {"fe80::",    10,  "link-local"                                 },
    {"::",        96,  "IPv4-compatible, which hides IPv4 addresses"},
    {"64:ff9b::", 96,  "NAT64, which hides IPv4 addresses"          },
    {"2002::",    16,  "6to4, which hides IPv4 addresses"           },
    {"2001::",    32,  "Teredo, which hides IPv4 addresses"         },
    {"fec0::",    10,  "site-local"                                 },
};

static bool same_prefix(const unsigned char *a, const unsigned char *b, unsigned bits)
{
    unsigned bytes = bits / 8, rest = bits % 8;

    if (memcmp(a, b, bytes) != 0)
        return false;
    return rest == 0 || ((a[bytes] ^ b[bytes]) >> (8 - rest)) == 0;
}

/* Two networks overlap when they agree in the shorter of the two prefixes. */
static const char *forbidden_overlap(const struct net *net)
{
    const struct named_net *table = net->total == 32 ? forbidden4 : forbidden6;
    size_t n = net->total == 32 ? COUNT(forbidden4) : COUNT(forbidden6);

    for (size_t i = 0; i < n; i++) {
        unsigned char other[16];
        unsigned bits = net->bits < table[i].bits ? net->bits : table[i].bits;

        if (inet_pton(net->total == 32 ? AF_INET : AF_INET6, table[i].text, other) == 1 &&
            same_prefix(net->b, other, bits))
            return table[i].what;
    }
    return NULL;
}

/* ::ffff:a.b.c.d is the IPv4 address; anything wider than the mapped block is not. */
static void unmap(struct net *net)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

    if (net->total != 128 || net->bits < 96 || memcmp(net->b, mapped, sizeof mapped) != 0)
        return;
    memmove(net->b, net->b + 12, 4);
    net->bits -= 96;
    net->total = 32;
}

static bool parse_net(struct str text, struct net *out)
{
    struct str prefix = text;
    struct str address = str_cut(&prefix, '/');
    bool has_prefix = address.n < text.n;
    char copy[INET6_ADDRSTRLEN];
    uint64_t bits = 0;

    if (address.n == 0 || address.n >= sizeof copy)
        return false;
    memcpy(copy, address.p, address.n);
    copy[address.n] = '\0';
    if (strlen(copy) != address.n)
        return false;
    if (inet_pton(AF_INET, copy, out->b) == 1)
        out->total = 32;
    else if (inet_pton(AF_INET6, copy, out->b) == 1)
        out->total = 128;
    else
        return false;
    out->bits = out->total;
    if (has_prefix && (!str_u64(prefix, &bits) || bits > out->total || prefix.n > 3 ||
                       (prefix.n > 1 && prefix.p[0] == '0')))
        return false;
    if (has_prefix)
        out->bits = (unsigned)bits;
    unmap(out);
    return true;
}

/* The mapped block itself lies inside wider networks. */
static bool covers_mapped(const struct net *net)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

    return net->total == 128 && net->bits < 96 && same_prefix(net->b, mapped, net->bits);
}

int load_allowed_ip(struct load *load, const struct json *value)
{
    struct net net;
    const char *what;

    if (load_text(load, value, 64, "an address in allowed_ips") < 0)
        return -1;
    if (!parse_net(value->text, &net))
        return load_bad(load, value->mark,
                        "\"%s\" is neither an IP address nor a network like 10.4.0.0/24",
                        shown(load, value->text));
    what = forbidden_overlap(&net);
    if (!what && covers_mapped(&net))
        what = "IPv4-mapped, which hides IPv4 addresses";
    if (what)
        return load_bad(load, value->mark,
                        "allowed_ips \"%s\" includes addresses that can never be allowed (%s)",
                        shown(load, value->text), what);
    return 0;
}

/* ---- host names and patterns ---- */

static bool is_label_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static bool has_star(struct str s)
{
    return memchr(s.p, '*', s.n) != NULL;
}

/* Resolvers take 0x7f.1, 127.1 and 2130706433 for addresses; no name ends in such a label. */
static bool is_numeric_label(struct str label)
{
    if (label.n >= 2 && label.p[0] == '0' && (label.p[1] | 0x20) == 'x')
        return true;
    for (size_t i = 0; i < label.n; i++)
        if (label.p[i] < '0' || label.p[i] > '9')
            return false;
    return true;
}

static bool equals_folded(struct str s, const char *name)
{
    return s.n == strlen(name) && strncasecmp(s.p, name, s.n) == 0;
}

static bool ends_folded(struct str s, const char *suffix)
{
    size_t n = strlen(suffix);

    return s.n >= n && strncasecmp(s.p + s.n - n, suffix, n) == 0;
}

static int check_label(struct load *load, const struct json *value, struct str label, size_t at,
                       size_t count)
{
    const char *host = shown(load, value->text);

    if (label.n == 0)
        return load_bad(load, value->mark, "host \"%s\" has an empty label", host);
    if (label.n > LABEL_BYTES_MAX)
        return load_bad(load, value->mark, "host \"%s\" has a label of more than %d bytes", host,
                        LABEL_BYTES_MAX);
    for (size_t i = 0; i < label.n; i++)
        if (!is_label_char(label.p[i]) && label.p[i] != '*')
            return load_bad(load, value->mark, "host \"%s\" contains \"%s\"", host,
                            shown(load, (struct str){label.p + i, 1}));
    if (!has_star(label))
        return 0;
    if (at + 1 == count)
        return load_bad(load, value->mark, "host \"%s\" has a wildcard in its last label", host);
    if (memmem(label.p, label.n, "**", 2) && (at > 0 || label.n > 2))
        return load_bad(load, value->mark, "host \"%s\": \"**\" can only be the whole first label",
                        host);
    if (at > 0 && label.n > 1)
        return load_bad(load, value->mark,
                        "host \"%s\": behind the first label only a whole label can be \"*\"",
                        host);
    return 0;
}

/* A pattern must keep to somebody's names: beside the last label one more is plain. */
static int check_labels(struct load *load, const struct json *value)
{
    struct str rest = value->text;
    size_t count = 1, plain = 0;
    bool star = false;

    for (size_t i = 0; i < rest.n; i++)
        count += rest.p[i] == '.';
    for (size_t at = 0; at < count; at++) {
        struct str label = str_cut(&rest, '.');

        if (check_label(load, value, label, at, count) < 0)
            return -1;
        if (at + 1 == count && is_numeric_label(label))
            return load_bad(load, value->mark,
                            "host \"%s\" is neither a name nor a plain IP address",
                            shown(load, value->text));
        star = star || has_star(label);
        plain += !has_star(label);
    }
    if (star && plain < 2)
        return load_bad(load, value->mark,
                        "host \"%s\" is too broad: at least two labels must be plain, like "
                        "*.example.com",
                        shown(load, value->text));
    return 0;
}

static int check_name(struct load *load, const struct json *value)
{
    struct str host = value->text;

    if (host.p[host.n - 1] == '.')
        return load_bad(load, value->mark, "host \"%s\" ends in a dot; leave it away",
                        shown(load, host));
    if (str_is(host, "*") || str_is(host, "**"))
        return load_bad(load, value->mark,
                        "host \"%s\" is every host; name one, or a pattern like *.example.com",
                        shown(load, host));
    if (check_labels(load, value) < 0)
        return -1;
    if (equals_folded(host, "localhost") || ends_folded(host, ".localhost") ||
        equals_folded(host, "metadata.google.internal"))
        return load_bad(load, value->mark, "host \"%s\" can never be allowed", shown(load, host));
    return 0;
}

int load_host(struct load *load, const struct json *value, bool *is_address)
{
    struct str host = value->text;
    const char *what;
    struct net net;

    if (load_text(load, value, HOST_BYTES_MAX, "\"host\"") < 0)
        return -1;
    if (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
        host = (struct str){host.p + 1, host.n - 2};
    *is_address = memchr(host.p, '/', host.n) == NULL && parse_net(host, &net);
    if (!*is_address)
        return check_name(load, value);
    what = forbidden_overlap(&net);
    if (what)
        return load_bad(load, value->mark, "host \"%s\" can never be allowed (%s)",
                        shown(load, value->text), what);
    return 0;
}
