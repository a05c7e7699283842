/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Network rules as they are once compiled. Everything lives in the arena of the rules. */

#include "lib/base/glob.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/egress/rules.h"
#include "lib/json/json.h"
#include "lib/vault/vault.h"

/* Endpoints that may match one knock; more are not looked at, and then nothing is allowed. */
#define FOUND_MAX 256

/* A pattern, or several of which one must match. */
struct matcher {
    const struct glob **any;
    size_t n;
};

/* A named value and what it must be: a key of a query, a member of a JSON document. */
enum want_kind {
    WANT_GLOB = 0, /* a text that matches */
    WANT_EQUAL,    /* this number, yes, no or null */
    WANT_RANGE,    /* a number from low to high */
    WANT_ABSENT,   /* not there at all */
};

struct want {
    struct str key; /* of a query; of a document a JSON pointer */
    enum want_kind kind;
    struct matcher matcher;
    struct str equal; /* canonical JSON */
    double low, high;
    struct want *next;
};

/* One rule: what is empty is any. */
struct rule {
    unsigned line;
    bool is_strict;    /* nothing but what is named: keys of the query, members of the document */
    struct str method; /* upper case; empty or "*": any */
    const struct glob *method_glob; /* mcp */
    const struct glob *path;
    struct want *query;
    struct want *body;      /* rest: of the JSON body */
    struct want *arguments; /* mcp: of params.arguments */
    struct str operation_type;
    const struct glob *operation_name;
    struct matcher fields;
    struct matcher tool;
    bool has_graphql;
    struct rule *next;
};

enum access {
    ACCESS_RULES = 0,
    ACCESS_READ_ONLY,
    ACCESS_READ_WRITE,
    ACCESS_FULL,
};

enum host_kind {
    HOST_ANY = 0, /* none named: allowed_ips decide */
    HOST_NAME,
    HOST_PATTERN,
    HOST_ADDRESS,
};

enum secret_shapes {
    SHAPES_FLAG = 0, /* in the URL and the headers, named and let through */
    SHAPES_DENY,     /* there and in the body, refused */
    SHAPES_IGNORE,
};

struct registered_query {
    struct str id;
    struct str operation_type;
    struct str operation_name;
    struct str *fields;
    size_t field_n;
    struct registered_query *next;
};

/* How much may pass, and how fast; 0 is no limit. */
struct allowance {
    uint64_t requests;
    uint64_t bytes_out;
    uint64_t bytes_in;
    uint64_t rate_requests;
    uint64_t rate_ms;
};

struct endpoint {
    const struct entry *entry;
    unsigned number;
    unsigned line;
    enum host_kind host_kind;
    bool is_sandbox; /* host is a sandbox's */
    struct str host; /* lower case */
    struct net_addr addr;
    const uint16_t *ports;
    size_t port_n;
    const struct glob *path; /* NULL: every path */
    struct str path_text;
    size_t path_rank;
    enum net_protocol protocol;
    enum access access;
    bool tls_skip;
    bool audit;
    bool encoded_slash;
    bool ws_rewrite;
    bool body_rewrite;
    enum net_signing signing;
    char signing_scope[NET_SCOPE_BYTES];
    bool mcp_profile;
    bool mcp_loose_names;
    bool registered_only; /* persisted_queries: allow_registered */
    enum secret_shapes shapes;
    size_t body_max;
    uint64_t response_max;
    struct matcher response_types;
    struct allowance allowance;
    const struct net_block *blocks;
    size_t block_n;
    struct rule *allow;
    struct rule *deny;
    struct registered_query *queries;
};

struct binary {
    const struct glob *path;
    struct str text;
    bool children;    /* also what it starts */
    bool interpreter; /* may be one that runs others */
    bool writable;    /* may lie where the sandbox writes */
    bool has_hash;
    struct hash hash;
    const struct glob *script; /* interpreter: what it runs */
};

/* Who of the other sandboxes may come in, and to which ports. */
struct peer {
    const char *rule; /* "network_peers.KEY" */
    unsigned line;
    struct str sandbox; /* a pattern of names and ids */
    const uint16_t *ports;
    size_t port_n;
};

/* A secret that may go out, and where. */
struct rule_secret {
    unsigned line;
    char name[VAULT_NAME_BYTES];
    struct vault_binding binding;
};

struct entry {
    struct str key;
    const char *name;
    unsigned line;
    struct binary *binaries;
    size_t binary_n;
    struct endpoint *endpoints;
    size_t endpoint_n;
};

/* ---- rules-index.c: from a host to its endpoints ---- */

struct hook {
    const struct endpoint *endpoint;
    struct str label; /* of a partial first label, with its stars */
    struct hook *next;
};

struct node {
    uint32_t parent;
    struct str label;
    uint32_t star;        /* the node behind a whole label "*", or 0 */
    struct hook *here;    /* hosts that end here */
    struct hook *deep;    /* "**" before this */
    struct hook *partial; /* "a*" before this */
};

struct index {
    struct node *nodes; /* nodes[0] stands before every name's last label */
    uint32_t node_n;
    uint32_t *slots; /* (parent, label) to node; 0: none */
    uint32_t slot_n; /* a power of two */
    struct hook **addrs;
    uint32_t addr_n; /* a power of two */
    struct hook *any;
};

struct net_rules {
    struct arena mem;
    char hash[HASH_TEXT_BYTES];
    struct entry *entries;
    size_t entry_n;
    struct endpoint **endpoints; /* by number */
    size_t endpoint_n;
    struct peer *peers;
    size_t peer_n;
    bool limits_secrets; /* only these go */
    struct rule_secret *secrets;
    size_t secret_n;
    uint16_t *ports;
    size_t port_n;
    bool takes_proposals;
    struct str text; /* as it was read, where a sandbox may ask for it; else empty */
    struct index index;
};

struct found {
    const struct endpoint *v[FOUND_MAX];
    size_t n;
    bool too_many;
};

void index_build(struct net_rules *rules);
/* Endpoints whose host this is; those without a host come last. */
void index_find(const struct net_rules *rules, const struct net_host *host, struct found *out);
bool index_has_name(const struct net_rules *rules, struct str name);

/* ---- rules-read.c, rules-read-rule.c ---- */

struct reading {
    struct net_rules *rules;
    struct arena *mem;
    struct err *err;
};

int read_bad(struct reading *in, const struct json *at, const char *what);
/* Members of one kind; NULL when absent, -1 when of another kind. */
int read_member(struct reading *in, const struct json *map, const char *key, enum json_kind kind,
                const struct json **out) MUST_CHECK;
int read_known(struct reading *in, const struct json *map, const char *const *keys) MUST_CHECK;
int read_text(struct reading *in, const struct json *map, const char *key,
              struct str *out) MUST_CHECK;
int read_bool(struct reading *in, const struct json *map, const char *key, bool *out) MUST_CHECK;
int read_count(struct reading *in, const struct json *map, const char *key, uint64_t low,
               uint64_t *out) MUST_CHECK;
int read_glob(struct reading *in, struct str text, enum glob_kind kind,
              const struct glob **out) MUST_CHECK;
int read_matcher(struct reading *in, const struct json *value, struct matcher *out) MUST_CHECK;
int read_globs(struct reading *in, const struct json *list, struct matcher *out) MUST_CHECK;
int read_rules(struct reading *in, const struct json *map, struct endpoint *endpoint) MUST_CHECK;
int read_lines(struct reading *in, const struct json *map, unsigned *out) MUST_CHECK;
int read_ports(struct reading *in, const struct json *map, const uint16_t **out,
               size_t *n) MUST_CHECK;
int read_peers(struct reading *in, const struct json *map) MUST_CHECK;    /* rules-peers.c */
int read_secrets(struct reading *in, const struct json *list) MUST_CHECK; /* rules-secrets.c */

bool matcher_has(const struct matcher *matcher, struct str text);

/* ---- rules-caller.c ---- */

enum binary_match {
    BINARY_OTHER = 0,
    BINARY_INTERPRETER, /* would match, but runs others and is not marked so */
    BINARY_WRITABLE,    /* would match, but the sandbox can write it */
    BINARY_LOST,        /* a parent could match, but not all of them are known */
    BINARY_MATCHES,
};

enum binary_match entry_match(const struct entry *entry, const struct net_caller *caller);
bool is_interpreter(struct str path);

/* ---- verdicts: rules.c ---- */

void verdict_deny(struct net_verdict *out, enum net_reason reason, const struct endpoint *by,
                  const char *fmt, ...) PRINTF(4, 5);
void verdict_allow(struct net_verdict *out, enum net_verdict_kind kind, const struct endpoint *by);

/* A text of the caller's as it can stand in a sentence: escaped, cut. */
struct shown {
    char text[128];
};
const char *show(struct shown *room, struct str s);

/* The sandbox's end of a name: another sandbox of the same tenant. */
#define SANDBOX_SUFFIX ".sandbox.internal"

/* ---- rules-connect.c ---- */

/* The endpoints that match host, port, caller and, when it is known, the address. False: *out says
 * why nothing does. */
bool find_endpoints(const struct net_rules *rules, const struct net_knock *knock,
                    struct found *found, struct net_verdict *out);
