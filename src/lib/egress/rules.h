/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The network rules of one policy, compiled: who may reach what, and say what there.
 *
 * Rules know no sockets, no processes and no secrets. They are read once from the canonical JSON
 * of a policy's network sections (docs/egress.md has the format), never change, and answer:
 *
 *     net_rules_name       may this name be answered with an address?
 *     net_rules_connect    may this caller connect there? as a tunnel, or looked into?
 *     net_rules_address    may this address be dialled for it?
 *     net_rules_request    may this request be sent on the connection?
 *     net_rules_body       ... with this body?
 *     net_rules_message    may this message of a WebSocket be sent?
 *     net_rules_secret     may this secret go into it?
 *     net_rules_response   may this answer come back?
 *
 * In that order. Every question carries the whole knock again: nothing is remembered here, so a
 * connection can be asked about under other rules than those it was opened with. How long an
 * answer takes does not depend on how many hosts the rules name.
 *
 * Zero is denial: of a verdict, a caller, a flag. */

#include "lib/base/buf.h"
#include "lib/crypto/crypto.h"
#include "lib/net/addr.h"

struct json;
struct net_rules;
struct vault_question;

/* From canonical JSON, of at most NET_RULES_TEXT_MAX bytes; nothing is compiled partly. The text
 * need not outlive the call. An empty object allows nothing. */
int net_rules_read(struct str canonical_json, struct net_rules **out, struct err *err) MUST_CHECK;
void net_rules_free(struct net_rules *rules);
AUTO_TYPE(net_rules)

/* Of the text: egress_policy_hash. */
const char *net_rules_hash(const struct net_rules *rules);
/* The ports some rule names, ascending: those the catch-all listens for; and that of policy.local.
 */
const uint16_t *net_rules_ports(const struct net_rules *rules, size_t *n);
/* Whether some rule looks into TLS, or one that does may be asked for: then callers have to trust
 * whoever opens it. */
bool net_rules_opens_tls(const struct net_rules *rules);
/* Whether programs inside may ask for more, at http://policy.local; then what they may have is
 * told, as it was read. */
bool net_rules_takes_proposals(const struct net_rules *rules);
struct str net_rules_text(const struct net_rules *rules);
bool net_rules_has_entry(const struct net_rules *rules, struct str key);
size_t net_rules_endpoint_count(const struct net_rules *rules);

/* ---- who asks ---- */

/* An executable that runs, or ran: where it is inside the sandbox, and what is in it. */
struct net_program {
    struct str path;
    struct hash hash;
};

#define NET_ANCESTORS_MAX 64

enum net_caller_flag {
    NET_CALLER_KNOWN = 1,     /* exe was looked at while it asked: path and hash hold */
    NET_CALLER_COMPLETE = 2,  /* ancestors go up to the first process, none is missing */
    NET_CALLER_WRITABLE = 4,  /* the sandbox can write the file */
    NET_CALLER_REPLACED = 8,  /* the path had another content before, in this sandbox */
    NET_CALLER_AMBIGUOUS = 16 /* several different programs have the socket */
};

struct net_caller {
    unsigned flags;
    struct net_program exe;
    struct net_program script; /* what an interpreter runs; path empty: none, or not known */
    const struct net_program *ancestors; /* the nearest first */
    size_t ancestor_n;
};

/* ---- what is asked ---- */

enum net_via {
    NET_VIA_PROXY = 0,   /* CONNECT, or a request in absolute form */
    NET_VIA_SOCKS,       /* the name or address in the request */
    NET_VIA_TRANSPARENT, /* the name whose answer was dialled, or the address as dialled */
};

struct net_knock {
    struct str host; /* as the caller wrote it: a name, or an address */
    uint16_t port;
    enum net_via via;
    const struct net_caller *caller;
    /* Once there is a connection: its other end. NULL before, and for another sandbox. */
    const struct net_addr *dialled;
};

struct net_header {
    struct str name; /* in any case */
    struct str value;
};

struct net_request {
    struct str scheme; /* "http", "https" */
    struct str method; /* exactly as it will be sent */
    struct str path;   /* from the "/", byte for byte as it will be sent */
    bool has_query;
    struct str query; /* behind the "?", byte for byte */
    const struct net_header *headers;
    size_t header_n;
    struct str upgrade; /* what an upgrade asks for: "websocket"; empty: none */
};

/* ---- what is answered ---- */

/* Why not. The codes stand in receipts and answers; the OpenShell word is what its agents know.
 *    id                  code                          error (OpenShell) */
#define NET_REASONS(X)                                                                             \
    X(NONE, "", "")                                                                                \
    X(NO_RULES, "EGRESS_NO_RULES", "policy_denied")     /* nothing is allowed at all */            \
    X(NO_RULE, "EGRESS_NO_RULE", "policy_denied")       /* no rule names the host */               \
    X(PORT, "EGRESS_PORT", "policy_denied")             /* the host, with other ports */           \
    X(CALLER, "EGRESS_CALLER_UNKNOWN", "policy_denied") /* who asks is not known */                \
    X(CALLER_CHANGED, "EGRESS_CALLER_CHANGED", "policy_denied")                                    \
    X(BINARY, "EGRESS_BINARY", "policy_denied")           /* not for this program */               \
    X(INTERPRETER, "EGRESS_INTERPRETER", "policy_denied") /* runs others, not said so */           \
    X(HOST_FORM, "EGRESS_HOST_FORM", "policy_denied")     /* a host not spelled plainly */         \
    X(ADDRESS, "EGRESS_ADDRESS", "ssrf_denied")           /* never, whatever a rule says */        \
    X(PRIVATE, "EGRESS_ADDRESS_PRIVATE", "ssrf_denied")   /* not in allowed_ips */                 \
    X(CONTROL_PORT, "EGRESS_CONTROL_PORT", "ssrf_denied") /* of cluster control planes */          \
    X(PATH_FORM, "EGRESS_PATH_FORM", "policy_denied")     /* a path two could read */              \
    X(QUERY_FORM, "EGRESS_QUERY_FORM", "policy_denied")                                            \
    X(METHOD_FORM, "EGRESS_METHOD_FORM", "policy_denied")   /* no token, or an override */         \
    X(REQUEST, "EGRESS_REQUEST", "policy_denied")           /* no rule allows this request */      \
    X(DENY_RULE, "EGRESS_DENY_RULE", "policy_denied")       /* a rule forbids it */                \
    X(UPGRADE, "EGRESS_UPGRADE", "policy_denied")           /* of the connection */                \
    X(BODY_LARGE, "EGRESS_BODY_TOO_LARGE", "policy_denied") /* to be looked into */                \
    X(BODY_FORM, "EGRESS_BODY_FORM", "policy_denied")       /* not what the rule reads */          \
    X(BODY, "EGRESS_BODY", "policy_denied")                 /* says what no rule allows */         \
    X(MESSAGE, "EGRESS_MESSAGE", "policy_denied")           /* of a WebSocket */                   \
    X(SECRET_SHAPE, "EGRESS_SECRET_SHAPE", "policy_denied") /* looks like a credential */          \
    X(BUDGET, "EGRESS_BUDGET", "policy_denied")             /* used up */                          \
    X(BUDGET_RUN, "EGRESS_BUDGET_RUN", "policy_denied")     /* of the run, not of a rule */        \
    X(RATE, "EGRESS_RATE", "policy_denied")                 /* too many at once */                 \
    X(RESPONSE_LARGE, "EGRESS_RESPONSE_TOO_LARGE", "policy_denied")                                \
    X(RESPONSE_TYPE, "EGRESS_RESPONSE_TYPE", "policy_denied")                                      \
    X(AMBIGUOUS, "EGRESS_AMBIGUOUS", "policy_denied") /* more rules than are looked at */          \
    X(PEER, "EGRESS_PEER", "policy_denied")           /* the other sandbox does not let it in */   \
    X(LOST, "EGRESS_RULE_LOST", "policy_denied")      /* allowed once, not any more */

enum net_reason {
#define X(id, code, error) NET_REASON_##id,
    NET_REASONS(X)
#undef X
};

const char *net_reason_code(enum net_reason reason);  /* "EGRESS_NO_RULE" */
const char *net_reason_error(enum net_reason reason); /* "policy_denied" */

enum net_verdict_kind {
    NET_DENY = 0,
    NET_TUNNEL,    /* connect: bytes are relayed unseen */
    NET_INSPECT,   /* connect: HTTP, inside TLS where the caller speaks it; ask for every request */
    NET_ALLOW,     /* address, request, body, message, response */
    NET_NEED_BODY, /* request: collect the body, at most body_max bytes, then net_rules_body() */
};

/* What the endpoints that match can be about; of a tunnel, none. */
enum net_protocol {
    NET_PROTOCOL_NONE = 0,
    NET_PROTOCOL_TCP,
    NET_PROTOCOL_REST,
    NET_PROTOCOL_WEBSOCKET,
    NET_PROTOCOL_GRAPHQL,
    NET_PROTOCOL_MCP,
    NET_PROTOCOL_JSON_RPC,
    NET_PROTOCOL_SQL,
};

enum net_flag {
    NET_FLAG_AUDIT = 1,         /* would be refused; its endpoint only audits. Log it as such */
    NET_FLAG_TLS_SKIP = 2,      /* a rule says that TLS stays closed: show it as passed through */
    NET_FLAG_SANDBOX = 4,       /* the host is another sandbox: never ask a resolver for it */
    NET_FLAG_SECRET_SHAPE = 8,  /* something looks like a credential; it is not refused for it */
    NET_FLAG_BODY_REWRITE = 16, /* request_body_credential_rewrite */
    NET_FLAG_WS_REWRITE = 32,   /* websocket_credential_rewrite */
    NET_FLAG_WS_MESSAGES = 64,  /* after the upgrade, ask net_rules_message() for each */
    NET_FLAG_INTERPRETER = 128, /* the caller is one, and a rule says it may */
    NET_FLAG_ANY_PRIVATE = 256, /* connect: some candidate has allowed_ips */
};

/* credential_signing: a request must be signed with a key of the vault, and how. */
enum net_signing {
    NET_SIGNING_NONE = 0,
    NET_SIGNING_ANY,
    NET_SIGNING_BODY,
    NET_SIGNING_NO_BODY,
};
#define NET_SCOPE_BYTES 130 /* "service/" or "service/region" */

#define NET_VERDICT_TEXT_MAX 480

struct net_verdict {
    enum net_verdict_kind kind;
    enum net_reason reason; /* NONE unless denied (or audited) */
    enum net_protocol protocol;
    unsigned flags;    /* enum net_flag */
    const char *entry; /* key in network_policies of what decided, "" when nothing did */
    unsigned line;     /* of the rule or endpoint that decided, 0 when not known */
    unsigned endpoint; /* number of the endpoint, for net_budget; UINT_MAX: none */
    size_t body_max;   /* NEED_BODY */
    enum net_signing signing;
    char signing_scope[NET_SCOPE_BYTES];
    uint64_t response_max; /* bytes of the answer's body that may come back; 0: any number */
    char text[NET_VERDICT_TEXT_MAX]; /* a sentence: what is not allowed, and what to do */
};

/* ---- the questions ---- */

/* Ports of cluster control planes, which no rule can allow. */
bool net_port_is_never(uint16_t port);

/* Whether some rule names it, on any port, for anybody. Hosts of rules without a host are not
 * answered: who wants those asks the proxy for them. */
bool net_rules_name(const struct net_rules *rules, struct str name);

void net_rules_connect(const struct net_rules *rules, const struct net_knock *knock,
                       struct net_verdict *out);

/* After connect said yes and the host was looked up: ALLOW or DENY. `own` are the addresses of
 * this machine's interfaces, which are never dialled. */
void net_rules_address(const struct net_rules *rules, const struct net_knock *knock,
                       const struct net_addr *addr, const struct net_addr *own, size_t own_n,
                       struct net_verdict *out);

void net_rules_request(const struct net_rules *rules, const struct net_knock *knock,
                       const struct net_request *request, struct net_verdict *out);

/* The whole body, framing and content coding undone; `request` as it was asked with. */
void net_rules_body(const struct net_rules *rules, const struct net_knock *knock,
                    const struct net_request *request, struct str body, struct net_verdict *out);

/* The verdict for a body that is longer than `need` said it may be. */
void net_rules_body_too_large(const struct net_verdict *need, struct net_verdict *out);

/* One whole message of the client on a connection that `upgraded` opened, decompressed. */
void net_rules_message(const struct net_rules *rules, const struct net_knock *knock,
                       const struct net_request *upgraded, bool is_text, struct str message,
                       struct net_verdict *out);

/* Whether the policy lists the secret that a request, which is allowed, asks for: by name, host,
 * port, scheme, method, path and slot. The vault has to have bound it all the same. */
bool net_rules_secret(const struct net_rules *rules, const struct vault_question *question);
/* An entry of that list as a policy has it, its keys and kinds checked; -1 says what is wrong. */
int net_secret_check(const struct json *map, struct err *err) MUST_CHECK;

/* The head of an answer: length when it says one (else UINT64_MAX), the content type as sent. */
void net_rules_response(const struct net_rules *rules, const struct net_knock *knock,
                        const struct net_request *request, uint64_t length, struct str type,
                        struct net_verdict *out);

/* ---- other sandboxes ---- */

/* "NAME.sandbox.internal": a sandbox of the same tenant, and nobody else's. The label is NAME, or
 * empty. */
bool net_host_is_sandbox(struct str host);
struct str net_sandbox_label(struct str host);
/* Whether a sandbox can be reached by this name: one label of a-z, 0-9 and "-". */
bool net_is_sandbox_name(struct str name);
/* Listeners of egress inside a sandbox: never opened to another one. */
bool net_port_is_own(uint16_t port);

/* One that wants to come in. */
struct net_guest {
    struct str id;
    struct str name; /* as it was given: any text, or empty */
    uint16_t port;
};

/* Whether the rules of the sandbox that is reached let it in: ALLOW or DENY. The rules of the one
 * that connects have said yes before. */
void net_rules_guest(const struct net_rules *rules, const struct net_guest *guest,
                     struct net_verdict *out);

/* ---- why ---- */

/* What was looked at on the way to a verdict: one call for each entry, in their order, with why it
 * did or did not match. */
struct net_step {
    const char *entry;
    unsigned line;
    bool matched;
    const char *why; /* valid during the call */
};

/* Connect, then request, then body (each when there is one), as they would be asked. */
void net_rules_explain(const struct net_rules *rules, const struct net_knock *knock,
                       const struct net_request *request, const struct str *body,
                       void (*on_step)(void *ctx, const struct net_step *step), void *ctx,
                       struct net_verdict *out);

/* ---- other rules ---- */

/* For a connection that stands when the rules change: whether it could be opened under these, in
 * the same way. `was` is what connect had answered; knock has `dialled`. */
bool net_rules_still_allows(const struct net_rules *rules, const struct net_knock *knock,
                            const struct net_verdict *was);
