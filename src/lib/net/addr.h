/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One reading of addresses and host names, for everybody who judges where bytes go. No input or
 * output, no allocation, no resolver. */

#include "lib/base/str.h"

/* An address: 16 bytes, IPv4 as ::ffff:a.b.c.d. Two that reach the same place compare equal. */
struct net_addr {
    unsigned char b[16];
};

/* What an address is, from "never" to "like any other". Zero is never. */
enum net_range {
    NET_RANGE_RESERVED = 0, /* 240/4, what nobody has assigned, deprecated forms */
    NET_RANGE_UNSPECIFIED,  /* 0/8, :: */
    NET_RANGE_LOOPBACK,
    NET_RANGE_LINK_LOCAL,
    NET_RANGE_METADATA,   /* the services of clouds that hand out credentials */
    NET_RANGE_MULTICAST,  /* and broadcast */
    NET_RANGE_OURS,       /* 198.18/15: what the sandbox's names are answered with */
    NET_RANGE_TRANSITION, /* 6to4, Teredo, ISATAP, IPv4-compatible: hide an IPv4 address */
    NET_RANGE_PRIVATE,    /* 10/8, 172.16/12, 192.168/16, fc00::/7: from here on by allowed_ips */
    NET_RANGE_SHARED,     /* 100.64/10 */
    NET_RANGE_SPECIAL,    /* 192.0.0/24, documentation */
    NET_RANGE_GLOBAL,     /* any other */
};

/* NAT64 (64:ff9b::/96) is what its IPv4 address is; the forms that hide one are what it is when
 * that is forbidden, else NET_RANGE_TRANSITION. */
enum net_range net_range_of(const struct net_addr *addr);
const char *net_range_name(enum net_range range); /* "link-local" */
bool net_range_is_never(enum net_range range);    /* no policy can allow it */
bool net_range_is_private(enum net_range range);  /* only where allowed_ips says so */

bool net_addr_is_v4(const struct net_addr *addr);
bool net_addr_is_same(const struct net_addr *a, const struct net_addr *b);
struct net_addr net_addr_v4(const unsigned char b[4]);

/* The one plain spelling: 192.0.2.7 without leading zeros, or RFC 4291 text without brackets and
 * zone. IPv4-mapped text is read as IPv4. */
bool net_addr_read(struct str text, struct net_addr *out);
/* The other way: dotted quad, or RFC 5952. */
#define NET_ADDR_TEXT_BYTES 46
struct str net_addr_text(const struct net_addr *addr, char out[NET_ADDR_TEXT_BYTES]);

/* A network: 10.4.0.0/24, fd00::/8, or one address. bits counts in the 16 bytes, so an IPv4
 * network has 96 and more. */
struct net_block {
    struct net_addr addr;
    unsigned bits;
};

bool net_block_read(struct str text, struct net_block *out);
bool net_block_has(const struct net_block *block, const struct net_addr *addr);
/* What makes a network one that cannot be allowed: a range that is never allowed lies in it, or
 * overlaps it. NULL when it can. */
const char *net_block_forbidden(const struct net_block *block);

/* ---- hosts ---- */

#define NET_NAME_BYTES_MAX 253
#define NET_LABEL_BYTES_MAX 63
#define NET_LABELS_MAX 127

enum net_host_kind {
    NET_HOST_BAD = 0, /* nothing that can be matched; `fault` says why */
    NET_HOST_NAME,
    NET_HOST_ADDRESS,
};

struct net_host {
    enum net_host_kind kind;
    bool is_odd; /* not the plain spelling: somebody else may read another host in it */
    const char *fault;
    struct net_addr addr;
    size_t n; /* of text */
    /* A name: lower case, A-labels, no dot at its end. An address: net_addr_text(). */
    char text[NET_NAME_BYTES_MAX + 1];
};

/* What any resolver or library could take this text for. Decimal, octal, hexadecimal and short
 * forms, brackets, zones, percent escapes, fullwidth characters and dots at the end are
 * understood, so that what they mean can be told, and marked odd. */
void net_host_read(struct str text, struct net_host *out);

/* Where programs inside a sandbox ask for other rules; answered by egress, never looked up. */
#define NET_LOCAL_NAME "policy.local"
#define NET_LOCAL_PORT 80

/* Names that lead to a metadata service or back to where they are asked, whatever they resolve
 * to: localhost, metadata.google.internal, instance-data, ... */
bool net_name_is_never(struct str name);

/* "host:port", "[v6]:port"; without a port it is `fallback`, and 0 without that is a failure. */
bool net_authority_cut(struct str authority, uint16_t fallback, struct str *host, uint16_t *port);

/* ---- patterns of hosts ----
 *
 *     api.example.com     this name                a*.example.com    part of the first label
 *     *.example.com       one label before it      **.example.com    one or more labels before it
 *     api.*.example.com   one whole label in the middle
 *
 * At least two labels are plain, and the last one is. NULL when the pattern is one of these, else
 * what is wrong with it. */
const char *net_pattern_fault(struct str pattern);
bool net_pattern_match(struct str pattern, struct str name); /* both lower case */
