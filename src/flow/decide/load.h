/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reading a tree strictly: tables of known keys, types checked, every complaint with a place. */

#include "flow/decide/policy.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

struct load {
    struct policy *policy;
    struct arena *mem;
    struct str text;      /* of the whole file */
    struct mark where;    /* of the complaint */
    uint32_t *rule_names; /* a hash table: places of rules, from 1 */
    size_t rule_names_n;
    struct err *err;
};

/* Fills err with "line 12, column 5: …" and returns -1. */
int load_bad(struct load *load, struct mark mark, const char *fmt, ...) PRINTF(3, 4);
/* For a control we know and cannot honour: the first one is kept for the verdict. */
void load_not_enforceable(struct load *load, struct mark mark, const char *what);

/* s as it can stand in a complaint: escaped, at most 80 bytes. */
const char *shown(struct load *load, struct str s);

/* Kinds of value a key takes. */
#define TAKES_NULL (1U << JSON_NULL) /* an empty value, the same as none */
#define TAKES_BOOL (1U << JSON_BOOL)
#define TAKES_NUMBER (1U << JSON_NUMBER)
#define TAKES_TEXT (1U << JSON_STRING)
#define TAKES_LIST (1U << JSON_ARRAY)
#define TAKES_MAP (1U << JSON_OBJECT)

/* A key of a map and where, in the struct of node pointers that receives the map, it goes. */
struct field {
    const char *key;
    size_t offset;
    unsigned takes;
    bool required;
};

/* Puts the nodes of a map into the struct at into; keys that are absent leave NULL. */
int load_map(struct load *load, const struct json *map, const struct field *fields, size_t n,
             void *into) MUST_CHECK;

/* The value is of one of these kinds, or a complaint that names it as what. */
int load_kind(struct load *load, const struct json *value, unsigned takes, const char *what);
/* A non-empty text of at most max bytes without control characters. */
int load_text(struct load *load, const struct json *value, size_t max, const char *what);
/* One of the words of a list that ends in NULL; *out is its index. */
int load_choice(struct load *load, const struct json *value, const char *const *words,
                const char *what, size_t *out);
/* A whole number from low to high. */
int load_int(struct load *load, const struct json *value, int64_t low, int64_t high,
             const char *what, int64_t *out);
/* At most POLICY_ENTRIES_MAX members. */
int load_count(struct load *load, const struct json *container, const char *what);
/* A pattern that glob_new() takes, without braces, whose meaning differs between engines. */
int load_glob(struct load *load, const struct json *value, enum glob_kind kind, const char *what);

bool has_dot_dot(struct str path); /* ".." as a part of it */
int load_filesystem(struct load *load, const struct json *section) MUST_CHECK;
int load_landlock(struct load *load, const struct json *section) MUST_CHECK;
int load_process(struct load *load, const struct json *section) MUST_CHECK;
int load_external(struct load *load, const struct json *section) MUST_CHECK;
int load_limits(struct load *load, const struct json *section) MUST_CHECK;
int load_elevated(struct load *load, const struct json *section) MUST_CHECK;
int load_budgets(struct load *load, const struct json *section) MUST_CHECK;
/* Behind the default, and what may confirm. Each may be NULL. */
int load_commands(struct load *load, const struct json *commands,
                  const struct json *paths) MUST_CHECK;
/* Before the rules, which name its groups. */
int load_approvals(struct load *load, const struct json *section) MUST_CHECK;
/* The group a rule names. */
int load_approval_name(struct load *load, const struct json *value, const struct approvers **out);
#define NETWORK_KEY_BYTES_MAX 256 /* the name of an entry */
/* network_policies, network_peers, agent_proposals, secrets: each may be NULL. */
int load_network(struct load *load, const struct json *section, const struct json *peers,
                 const struct json *proposals, const struct json *secrets) MUST_CHECK;
int load_secrets(struct load *load, const struct json *section) MUST_CHECK;
int load_peers(struct load *load, const struct json *section) MUST_CHECK;

/* One list of an endpoint's rules. */
enum protocol {
    PROTOCOL_NONE,
    PROTOCOL_TCP,
    PROTOCOL_REST,
    PROTOCOL_WEBSOCKET,
    PROTOCOL_GRAPHQL,
    PROTOCOL_MCP,
    PROTOCOL_JSON_RPC,
    PROTOCOL_SQL,
};

const char *protocol_name(enum protocol protocol);
int load_allow_rules(struct load *load, const struct json *list, enum protocol protocol) MUST_CHECK;
int load_deny_rules(struct load *load, const struct json *list, enum protocol protocol) MUST_CHECK;

/* A size: a number of bytes, or a text like "10M". */
#define TAKES_SIZE (TAKES_NUMBER | TAKES_TEXT)
int load_size(struct load *load, const struct json *value, const char *what,
              int64_t *out) MUST_CHECK;

/* Brig's own keys of an endpoint; each may be NULL. */
int load_bounds(struct load *load, const struct json *max_body_bytes,
                const struct json *secret_shapes, const struct json *budget,
                const struct json *rate, const struct json *response) MUST_CHECK;
int load_sandbox_name(struct load *load, const struct json *value) MUST_CHECK;
/* Brig's own fields of a rule: members of a JSON document by their pointers. */
int load_document(struct load *load, const struct json *map, const char *what) MUST_CHECK;

/* Endpoints that are for the same place must mean the same by it. */
int load_overlaps(struct load *load, const struct json *section) MUST_CHECK;

/* Keeps the sections, checked, as lib/egress compiles them. Without peers, and without secrets,
 * there is none of theirs: an empty list of secrets is not the same as none. */
int load_network_text(struct load *load, const struct json *section, const struct json *peers,
                      const struct json *secrets, bool takes_proposals) MUST_CHECK;

/* Hosts and addresses; the mark of the value is used in complaints. */
int load_host(struct load *load, const struct json *value, bool *is_address) MUST_CHECK;
int load_allowed_ip(struct load *load, const struct json *value) MUST_CHECK;
