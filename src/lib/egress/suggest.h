/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* From refusals to the narrowest rules that would allow them.
 *
 * Refusals go in one by one, as egress_counters() and the journal of egress have them. They are
 * gathered by binary, host and port, requests by method and by the shape of their path, and come
 * out as entries of network_policies: one an executable, since an entry allows each of its
 * binaries each of its endpoints. What the entries come to is not told from how they were written
 * but asked of the rules, without them and with them.
 *
 * What no rule can allow, what a rule forbids, and what leads to a private address is never
 * suggested; it is kept with the reason. There is no file and no network here, and nothing that
 * could be changed. */

#include "lib/egress/rules.h"
#include "lib/json/json.h"

#define SUGGEST_PLACES_MAX 64
#define SUGGEST_RULES_MAX 64 /* of one place */
#define SUGGEST_LEFT_MAX 256

enum suggest_kind {
    SUGGEST_REST = 0, /* these requests, by method and path */
    SUGGEST_LOOK,     /* where HTTP is spoken, but none was seen: opened to be looked into */
    SUGGEST_TUNNEL,   /* nothing of HTTP was seen: bytes, unseen */
};

/* What a person should know before saying yes. */
#define SUGGEST_WARNINGS(X)                                                                        \
    X(INTERPRETER, "interpreter",                                                                  \
      "runs what it is told, so this allows whatever it runs; name the \"script\" where you can")  \
    X(CREDENTIALED, "credentialed",                                                                \
      "a vault binding names this host: requests there may carry a secret")                        \
    X(DATABASE, "database_port",                                                                   \
      "a port of databases and queues: what is said there is not looked into")                     \
    X(HIGH_PORT, "high_port", "a port that is handed out at random: tomorrow it may be another's") \
    X(TUNNEL, "tunnel", "nothing of HTTP was seen: this is a wire to that host, unseen")           \
    X(LOOK, "look",                                                                                \
      "what is asked for there was not seen; this opens it to be looked into and lets nothing "    \
      "but \"HEAD /\" pass: run it again and ask again")                                           \
    X(WIRE, "wire", "a wire to that host: what is said there is not looked into")                  \
    X(WIDE, "wide", "any path or any method: more than what one request needs")

enum suggest_warning_at {
#define X(id, code, text) SUGGEST_WARN_AT_##id,
    SUGGEST_WARNINGS(X)
#undef X
        SUGGEST_WARNING_N
};

const char *suggest_warning_code(unsigned at);
const char *suggest_warning_text(unsigned at);

/* Those that program and port are reason enough for, as bits. */
unsigned suggest_place_warnings(struct str binary, uint16_t port);
/* Why a host is never suggested, and cannot be asked for; NULL: it may. */
const char *suggest_host_fault(struct str host);

struct suggest_rule {
    struct str method;
    struct str path;   /* a pattern; what names one thing has become any such thing */
    struct str sample; /* a path that it matches */
    const char *was;   /* code of the refusal */
    uint64_t count;
    struct suggest_rule *next;
};

struct suggest_place {
    struct str binary;
    struct str host;
    uint16_t port;
    enum suggest_kind kind;
    struct suggest_rule *rules;
    size_t rule_n;
    const char *was;
    uint64_t count;
    unsigned warnings; /* bits, by suggest_warning_at */
    bool taken;        /* it stands in the text */
};

/* What stays refused, and why nothing is suggested. */
struct suggest_left {
    struct str binary, host, method, path;
    uint16_t port; /* 0: none was said */
    struct str reason;
    const char *why;
    uint64_t count;
};

struct suggest {
    struct arena mem;
    struct suggest_place places[SUGGEST_PLACES_MAX];
    size_t place_n;
    struct suggest_left left[SUGGEST_LEFT_MAX];
    size_t left_n;
    uint64_t refusals;
    uint64_t left_out; /* refusals for which there was no room */
};

struct suggest *suggest_new(void);
void suggest_free(struct suggest *suggest);
AUTO_TYPE(suggest)

/* One refusal: {"host","port","method","path","binary","reason","count"}; what is missing is
 * empty, and counted once. -1: it is none. */
int suggest_add(struct suggest *suggest, const struct json *refusal, struct err *err) MUST_CHECK;

/* A host that a binding of the vault names: whoever reaches it may carry a secret there. */
void suggest_credentialed(struct suggest *suggest, struct str host, unsigned port);

/* Takes away what these rules allow already, so that more of them would not help. */
void suggest_screen(struct suggest *suggest, const struct net_rules *before);

/* The places that are taken as entries of network_policies, `indent` blanks in front of each; keys
 * that `present` (an object, or NULL) has are not used again. */
int suggest_write(const struct suggest *suggest, const struct json *present, unsigned indent,
                  struct buf *out, struct err *err) MUST_CHECK;

/* Whether rules with the place in them allow what was refused, and take nothing away. Why not, in
 * *why. */
bool suggest_holds(const struct suggest_place *place, const struct net_rules *before,
                   const struct net_rules *after, struct net_verdict *why);
/* Not taken, because of this. */
void suggest_leave(struct suggest *suggest, struct suggest_place *place, const char *why);

/* One thing that was refused and would not be any more. */
struct suggest_grant {
    const struct suggest_place *place;
    struct str method; /* empty: a connection */
    struct str path;   /* a pattern */
    bool is_tunnel;    /* any bytes */
    bool any_query;
    uint64_t asked; /* how often it was asked for; 0: it comes along */
    const char *was;
};

/* What the change newly allows, asked of both: every method that has a name in HTTP, on every path
 * of the suggestion, with and without a query. */
void suggest_compare(const struct suggest *suggest, const struct net_rules *before,
                     const struct net_rules *after,
                     void (*on_grant)(void *ctx, const struct suggest_grant *grant), void *ctx);
