/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a program inside a sandbox may ask for at http://policy.local: one more entry of
 * network_policies, in words whose whole meaning can be told to a person in lines.
 *
 * So a proposal knows less than a policy: programs and hosts by their names (no patterns), ports,
 * methods and patterns of paths, or a wire. Anything else is refused by name and left to people.
 * What was read is written anew: of the sandbox' own bytes only names, hosts, methods and paths
 * go on, each of visible ASCII.
 *
 * There is no file and no network here. */

#include "lib/egress/rules.h"
#include "lib/json/json.h"

#define PROPOSAL_BODY_MAX (64 * 1024)
#define PROPOSAL_OPERATIONS_MAX 8 /* in one body */
#define PROPOSAL_NAME_MAX 64
#define PROPOSAL_INTENT_MAX 1000 /* bytes of the sentence that says what for */
#define PROPOSAL_BINARIES_MAX 8
#define PROPOSAL_ENDPOINTS_MAX 8
#define PROPOSAL_PORTS_MAX 8
#define PROPOSAL_RULES_MAX 32
#define PROPOSAL_PATH_MAX 256
#define PROPOSAL_BINARY_MAX 256

struct proposal_rule {
    struct str method; /* "*": any */
    struct str path;   /* a pattern */
};

struct proposal_endpoint {
    struct str host;
    uint16_t ports[PROPOSAL_PORTS_MAX];
    size_t port_n;
    bool is_wire;      /* any bytes; else HTTP, looked into */
    struct str access; /* empty: rules */
    struct proposal_rule rules[PROPOSAL_RULES_MAX];
    size_t rule_n;
};

struct proposal_binary {
    struct str path;
    bool interpreter;
};

struct proposal {
    struct str name; /* of the entry */
    struct proposal_binary binaries[PROPOSAL_BINARIES_MAX];
    size_t binary_n;
    struct proposal_endpoint endpoints[PROPOSAL_ENDPOINTS_MAX];
    size_t endpoint_n;
};

/* One body: {"intent_summary": …, "operations": [{"addRule": {"ruleName": …, "rule": {…}}}]}. The
 * operations are not looked into yet. */
struct proposal_request {
    struct str intent;
    const struct json *operations;
};
int proposal_request_read(struct arena *mem, struct str body, struct proposal_request *out,
                          struct err *err) MUST_CHECK;

/* One operation of it. Texts live in the arena. -1: err is the reason, for the one who asked. */
int proposal_read(struct arena *mem, const struct json *operation, struct proposal *out,
                  struct err *err) MUST_CHECK;
/* An entry under a name, as proposal_json() wrote it. */
int proposal_read_rule(struct arena *mem, struct str name, const struct json *rule,
                       struct proposal *out, struct err *err) MUST_CHECK;

/* The entry as it was understood. */
struct json *proposal_json(struct arena *mem, const struct proposal *proposal);
/* The same as lines of a policy, `indent` blanks in front of its name. */
int proposal_write(const struct proposal *proposal, unsigned indent, struct buf *out,
                   struct err *err) MUST_CHECK;

/* What a person says yes to: this proposal, to a sandbox that has these rules. */
void proposal_digest(struct str record_digest, struct str rules_hash, char out[HASH_TEXT_BYTES]);

/* ---- what it comes to ---- */

struct proposal_grant {
    struct str binary, host;
    uint16_t port;
    struct str method; /* "*": any; empty: a wire */
    struct str path;   /* a pattern */
    bool is_known;     /* the rules allow exactly this already */
};

/* Everything the entry allows, whatever other entries do; never less than it newly allows. HEAD
 * comes with GET, any query and any body with both. */
void proposal_each_grant(const struct proposal *proposal, const struct net_rules *now,
                         void (*on_grant)(void *ctx, const struct proposal_grant *grant),
                         void *ctx);

/* What a person should know first: suggest_warning_code() and _text() of each bit. */
unsigned proposal_warnings(const struct proposal *proposal);
