/* SPDX-License-Identifier: Apache-2.0 */
/* A host as somebody wrote it, read as anybody could read it.
 *
 * The text goes through the same steps that some library takes: percent escapes, fullwidth
 * characters, brackets, a zone, dots at the end, and then inet_aton()'s forms of numbers. When a
 * step changed something the host is odd. */
#include "lib/base/attrs.h"
#include "lib/net/addr.h"

#include <string.h>

#define HOST_TEXT_MAX 1024 /* as written; escapes make three bytes of one */

struct plain {
    char p[HOST_TEXT_MAX];
    size_t n;
    bool is_odd;
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* ---- steps ---- */

static const char *undo_escapes(struct str text, struct plain *out)
{
    out->n = 0;
    for (size_t i = 0; i < text.n; i++) {
        int high, low;

        if (text.p[i] != '%') {
            out->p[out->n++] = text.p[i];
            continue;
        }
        /* In brackets "%" begins a zone; read_zone() looks at it. */
        if (text.p[0] == '[' || memchr(text.p, ':', i)) {
            out->p[out->n++] = '%';
            continue;
        }
        if (text.n - i < 3 || (high = hex_digit(text.p[i + 1])) < 0 ||
            (low = hex_digit(text.p[i + 2])) < 0)
            return "has a broken percent escape";
        out->p[out->n++] = (char)(high << 4 | low);
        out->is_odd = true;
        i += 2;
    }
    return NULL;
}

/* Three characters for a dot, and the fullwidth forms of ASCII, as IDNA and NFKC take them. */
static size_t fold_wide(const char *p, size_t n, char *out)
{
    const unsigned char *b = (const unsigned char *)p;

    if (n < 3)
        return 0;
    if ((b[0] == 0xe3 && b[1] == 0x80 && b[2] == 0x82) ||
        (b[0] == 0xef && b[1] == 0xbd && b[2] == 0xa1)) {
        *out = '.';
        return 3;
    }
    if (b[0] == 0xef && b[1] == 0xbc && b[2] >= 0x81 && b[2] <= 0xbf) {
        *out = (char)(b[2] - 0x81 + 0x21);
        return 3;
    }
    if (b[0] == 0xef && b[1] == 0xbd && b[2] >= 0x80 && b[2] <= 0x9e) {
        *out = (char)(b[2] - 0x80 + 0x60);
        return 3;
    }
    return 0;
}

static const char *to_ascii(struct plain *host)
{
    size_t to = 0;

    for (size_t i = 0; i < host->n;) {
        char c = host->p[i];
        size_t wide = (unsigned char)c < 0x80 ? 0 : fold_wide(host->p + i, host->n - i, &c);

        if ((unsigned char)host->p[i] >= 0x80 && !wide)
            return "has characters outside ASCII; write it in its xn-- form";
        host->is_odd = host->is_odd || wide;
        if (c >= 'A' && c <= 'Z')
            c = (char)(c | 0x20);
        if (c <= ' ' || c == 0x7f)
            return "has a blank or control character";
        host->p[to++] = c;
        i += wide ? wide : 1;
    }
    host->n = to;
    return NULL;
}

static void drop(struct plain *host, size_t from, size_t n)
{
    memmove(host->p + from, host->p + from + n, host->n - from - n);
    host->n -= n;
}

/* [v6] is how a URL writes it, so brackets around one are plain; around anything else odd. */
static const char *undo_brackets(struct plain *host)
{
    if (!host->n || host->p[0] != '[')
        return NULL;
    if (host->n < 3 || host->p[host->n - 1] != ']')
        return "has a bracket without the other";
    host->n--;
    drop(host, 0, 1);
    host->is_odd = host->is_odd || !memchr(host->p, ':', host->n);
    return NULL;
}

static void undo_zone(struct plain *host)
{
    const char *zone = memchr(host->p, '%', host->n);

    if (!zone || !memchr(host->p, ':', (size_t)(zone - host->p)))
        return;
    host->n = (size_t)(zone - host->p);
    host->is_odd = true;
}

static void undo_last_dots(struct plain *host)
{
    while (host->n && host->p[host->n - 1] == '.') {
        host->n--;
        host->is_odd = true;
    }
}

/* ---- numbers ---- */

/* One part as inet_aton() reads it: 0x.. hexadecimal, 0.. octal, else decimal. */
static bool read_part(struct str s, uint64_t *out)
{
    unsigned base = 10;
    uint64_t value = 0;

    if (s.n == 0)
        return false;
    if (s.n >= 2 && s.p[0] == '0' && s.p[1] == 'x') {
        base = 16;
        s = (struct str){s.p + 2, s.n - 2};
    } else if (s.n >= 2 && s.p[0] == '0') {
        base = 8;
    }
    for (size_t i = 0; i < s.n; i++) {
        int digit = hex_digit(s.p[i]);

        if (digit < 0 || (unsigned)digit >= base)
            return false;
        value = value * base + (unsigned)digit;
        if (value > UINT32_MAX)
            value = (uint64_t)UINT32_MAX + 1; /* stays too large */
    }
    *out = value;
    return true;
}

/* a, a.b, a.b.c, a.b.c.d: the last part fills what is left. */
static bool read_loose_v4(struct str text, struct net_addr *out)
{
    uint64_t parts[4], value = 0;
    struct str rest = text;
    size_t n = 0;
    bool last = false;

    while (!last) {
        struct str part = str_cut(&rest, '.');

        last = part.p + part.n == text.p + text.n;
        if (n == COUNT(parts) || !read_part(part, &parts[n++]))
            return false;
    }
    for (size_t i = 0; i + 1 < n; i++) {
        if (parts[i] > 255)
            return false;
        value |= parts[i] << (24 - 8 * i);
    }
    if (parts[n - 1] > UINT32_MAX >> (8 * (n - 1)))
        return false;
    value |= parts[n - 1];
    *out = net_addr_v4((const unsigned char[4]){
        (unsigned char)(value >> 24), (unsigned char)(value >> 16 & 0xff),
        (unsigned char)(value >> 8 & 0xff), (unsigned char)(value & 0xff)});
    return true;
}

static bool read_address(struct plain *host, struct net_addr *out)
{
    struct str text = {host->p, host->n};
    char plain[NET_ADDR_TEXT_BYTES];

    if (net_addr_read(text, out)) {
        /* fd00:0:0::1 and ::ffff:10.0.0.1 have a plainer spelling. */
        if (!str_eq(net_addr_text(out, plain), text))
            host->is_odd = true;
        return true;
    }
    if (!read_loose_v4(text, out))
        return false;
    host->is_odd = true;
    return true;
}

/* ---- hosts ---- */

static const char *name_fault(struct str name)
{
    const char *fault;

    if (memchr(name.p, '*', name.n))
        return "contains a wildcard";
    fault = net_pattern_fault(name);
    return fault;
}

static const char *read_plain(struct str text, struct plain *host)
{
    const char *fault;

    if (text.n == 0)
        return "is empty";
    if (text.n > HOST_TEXT_MAX)
        return "is too long";
    fault = undo_escapes(text, host);
    if (!fault)
        fault = to_ascii(host);
    if (!fault)
        fault = undo_brackets(host);
    if (fault)
        return fault;
    undo_zone(host);
    undo_last_dots(host);
    return host->n ? NULL : "is empty";
}

void net_host_read(struct str text, struct net_host *out)
{
    struct plain host;
    const char *fault;

    *out = (struct net_host){0};
    host.is_odd = false;
    fault = read_plain(text, &host);
    if (fault) {
        out->fault = fault;
        return;
    }
    if (read_address(&host, &out->addr)) {
        out->kind = NET_HOST_ADDRESS;
        out->is_odd = host.is_odd;
        out->n = net_addr_text(&out->addr, out->text).n;
        return;
    }
    out->fault = name_fault((struct str){host.p, host.n});
    if (out->fault)
        return;
    out->kind = NET_HOST_NAME;
    out->is_odd = host.is_odd;
    out->n = host.n;
    memcpy(out->text, host.p, host.n);
}

bool net_name_is_never(struct str name)
{
    static const char *const names[] = {
        "localhost",
        "localhost.localdomain",
        "ip6-localhost",
        "ip6-loopback",
        "metadata",
        "metadata.google.internal",
        "metadata.goog",
        "metadata.azure.com",
        "metadata.azure.internal",
        "metadata.platformequinix.com",
        "metadata.packet.net",
        "metadata.tencentyun.com",
        "instance-data",
        "instance-data.ec2.internal",
        "kubernetes.default.svc",
        NET_LOCAL_NAME, /* egress itself, for those inside: never anybody outside */
    };

    for (size_t i = 0; i < COUNT(names); i++)
        if (name.n == strlen(names[i]) && strncasecmp(name.p, names[i], name.n) == 0)
            return true;
    return name.n > 10 && strncasecmp(name.p + name.n - 10, ".localhost", 10) == 0;
}

bool net_authority_cut(struct str authority, uint16_t fallback, struct str *host, uint16_t *port)
{
    const char *colon = memrchr(authority.p, ':', authority.n);
    const char *bracket = memrchr(authority.p, ']', authority.n);
    struct str digits;
    uint64_t number;

    if (authority.n == 0 || memchr(authority.p, '@', authority.n))
        return false;
    if (!colon || (bracket && colon < bracket)) {
        *host = authority;
        *port = fallback;
        return fallback != 0;
    }
    *host = (struct str){authority.p, (size_t)(colon - authority.p)};
    /* An IPv6 address without brackets: which colon begins the port nobody can say. */
    if (host->n == 0 || (memchr(host->p, ':', host->n) && host->p[0] != '['))
        return false;
    digits = (struct str){colon + 1, authority.n - host->n - 1};
    if (digits.n == 0 || digits.n > 5 || digits.p[0] == '0' || !str_u64(digits, &number) ||
        number > UINT16_MAX)
        return false;
    *port = (uint16_t)number;
    return true;
}
