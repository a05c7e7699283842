/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One request on its way through the endpoints that match it. Private to lib/egress. */

#include "lib/egress/rules-private.h"

#define JUDGED_PATH_MAX 4096
#define JUDGED_QUERY_MAX 16384

struct judged_path {
    char normal[JUDGED_PATH_MAX]; /* as sent, the digits of escapes in upper case */
    size_t n;
    char decoded[JUDGED_PATH_MAX]; /* for deny rules: all escapes undone */
    size_t decoded_n;
    bool has_slash; /* an escaped one */
};

enum document_state {
    DOCUMENT_UNREAD = 0,
    DOCUMENT_READ,
    DOCUMENT_BAD,
};

struct judged {
    struct arena *mem;
    const struct net_request *request;
    struct judged_path path;
    const struct str *body; /* NULL: not there yet */
    enum document_state state;
    const struct json *document; /* the body as JSON */
    const char *fault;           /* DOCUMENT_BAD */
};

/* What one endpoint says. Zero: no rule of it allows the request. */
enum stance {
    STANCE_SILENT = 0,
    STANCE_NEEDS_BODY,
    STANCE_ALLOWS,
    STANCE_DENIES,
};

struct opinion {
    enum stance stance;
    bool is_hard; /* DENIES: also where the endpoint only audits */
    enum net_reason reason;
    unsigned line;
    char text[256];
};

void opine(struct opinion *out, enum stance stance, enum net_reason reason, unsigned line,
           const char *fmt, ...) PRINTF(5, 6);

/* ---- rules-path.c: NULL, or what is wrong ---- */

const char *path_read(struct str path, struct judged_path *out);
const char *query_fault(struct str query);

/* ---- rules-match.c ---- */

struct str header_of(const struct net_request *request, const char *name);
bool is_method(struct str rule, struct str method);
/* Whether the keys of the query are what a rule wants: for allow all of them and every value, for
 * deny one value of each. */
bool query_allows(const struct rule *rule, struct str query);
bool query_denies(const struct rule *rule, struct str query);
bool wants_allow(const struct want *wants, const struct json *root, bool is_strict);
bool wants_deny(const struct want *wants, const struct json *root);
/* Reads the body as JSON, once. False: judged->fault says why it is none. */
bool document_of(struct judged *judged);

/* ---- one protocol each ---- */

/* Both give their opinion on the head as long as judged->body is NULL. `denies_only`: of an
 * endpoint that another one outranks, only its deny rules count. */
void rest_judge(const struct endpoint *endpoint, struct judged *judged, bool denies_only,
                struct opinion *out);
void websocket_judge(const struct endpoint *endpoint, struct judged *judged, struct opinion *out);
void graphql_judge(const struct endpoint *endpoint, struct judged *judged, struct opinion *out);
void rpc_judge(const struct endpoint *endpoint, struct judged *judged, struct opinion *out);

/* {"query": ...} as it stands in a body and in a message of a WebSocket. */
void graphql_judge_payload(const struct endpoint *endpoint, struct arena *mem,
                           const struct json *payload, struct opinion *out);

/* ---- rules-shapes.c ---- */

/* Looks for what has the shape of a credential, as the endpoints want it: flags or denies. */
void shapes_judge(const struct judged *judged, const struct found *found, size_t top,
                  struct net_verdict *out);

/* The same for a message of a WebSocket, where an endpoint denies them. */
void shapes_judge_message(struct str message, const struct found *found, size_t top,
                          struct net_verdict *out);

/* ---- rules-request.c ---- */

/* What has been said so far, and by whom. */
struct sum {
    const struct endpoint *allows;
    const struct endpoint *needs_body;
    const struct endpoint *denies;
    const struct endpoint *silent;
    const struct endpoint *audits;
    struct opinion allow, deny, silence, audit;
    size_t body_max;
};

void sum_add(struct sum *sum, const struct endpoint *endpoint, const struct opinion *opinion,
             bool is_top);
void sum_conclude(const struct sum *sum, struct net_verdict *out);

/* The endpoints of *found that the path belongs to come first; *top of them have the most specific
 * path. False: none. */
/* What one endpoint says of the request. `denies_only`: another one outranks it. */
void judge_endpoint(const struct endpoint *endpoint, struct judged *judged, bool denies_only,
                    struct opinion *out);
void judge_request(struct judged *judged, const struct net_rules *rules,
                   const struct net_knock *knock, struct net_verdict *out);
bool select_by_path(const struct judged *judged, struct found *found, size_t *top);
