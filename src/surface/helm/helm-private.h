/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/helm. */

#include "flow/admit/admit.h"
#include "model/run.h"
#include "surface/api/plug.h"
#include "surface/helm/helm.h"

#define HELM_MODEL "helm-governance"
#define HELM_STATUS "x-helm-status"
#define HELM_REFUSAL                                                                               \
    {                                                                                              \
        HELM_STATUS, "DENIED"                                                                      \
    } /* of every route: see struct route */

struct pending;

struct http_origin;
struct ssl_ctx_st;

struct helm {
    struct pending *pending;
    struct http_origin *upstream; /* NULL: none */
    struct ssl_ctx_st *tls;       /* NULL: it is plain */
    char *upstream_key;           /* "Bearer …", or NULL */
};

extern const struct route helm_routes_approve[];
extern const struct route helm_routes_chat[];
extern const struct route helm_routes_conformance[];
extern const struct route helm_routes_evidence[];
extern const struct route helm_routes_proof[];
extern const struct route helm_routes_sandbox[];
extern const struct route helm_routes_tools[];

/* ---- answer.c: what HELM's clients look at ---- */

/* The word of HELM's registry for one of ours. */
const char *helm_reason(const char *reason_code);
/* The reason of a verdict: "ALLOW", or why not. */
const char *helm_verdict_reason(const struct verdict *verdict);

/* X-Helm-*, of a question that was judged; the output hash is over the body, so the answer must be
 * there. */
void helm_headers(struct call *call, const struct run *run, size_t tool_calls);
/* The same without what only the end of an answer tells. */
void helm_headers_begun(struct call *call, const struct run *run);
/* The error envelope, with a word of HELM's registry; run: whose receipt it has, or NULL. */
int helm_fail(struct call *call, int status, const struct err *err, const char *reason,
              const struct run *run, struct err *out) MUST_CHECK;
/* The same with a receipt for what no policy had to judge. Of the request kind, sandbox and tool
 * count; what came is what the client sent. */
int helm_refuse(struct call *call, const struct request *request, int status, enum reason reason,
                const struct err *why, struct err *err) MUST_CHECK;
/* For a route's .judge: run, which was begun, is call->question then, if it is plain yes or no;
 * what a person must confirm and what is malformed is done with, and for elsewhere. Returns what
 * was lent. */
enum asked helm_judge(struct call *call, struct lent *lent, const struct request *request,
                      struct run *run);
/* Which session a run without a sandbox belongs to: whoever asks. */
void helm_session(const struct call *call, struct run *run);
/* How long a command may take in the sandbox that made, its config, is of: less time than the
 * sandbox gives it, not more; 0: the sandbox's own. */
uint64_t helm_wall_ms(struct call *call, const char *made, uint64_t asked_s);
/* The sentence of a verdict. */
const char *helm_sentence(const struct verdict *verdict);

/* proof.c: a receipt of ours with the twelve members of theirs. */
struct json *helm_receipt(struct arena *mem, const struct json *receipt);

/* proxy.c: another model, asked at the upstream. */
int proxy_complete(struct call *call, const struct json *body, struct str model,
                   struct err *err) MUST_CHECK;

/* ---- intent.c: what is to be judged ---- */

struct intent {
    bool is_tool;
    const char *provider;
    const char *sandbox;
    struct words command;
    struct words env;
    const char *cwd;
    uint64_t timeout_s;
    const char *tool;
    const struct json *arguments;
};

/* The only message of a governance request. ERR_INVALID says what is wrong with it. */
int intent_read(struct arena *mem, const struct json *body, struct intent *out,
                struct err *err) MUST_CHECK;
/* The commands the arguments of a tool hold, as those who run commands write them: an array, or a
 * text for a shell. Which of several it runs is the tool's affair. Returns how many there are. */
size_t intent_inner(struct arena *mem, const struct json *arguments,
                    struct words out[TOOL_COMMANDS_MAX]);

/* ---- pending.c: commands that were approved and have not run ---- */

/* Who may run it, and where. */
struct pending_owner {
    const char *tenant;
    const char *principal;
    const char *sandbox; /* its id */
};

/* Exactly what was approved. */
struct pending_command {
    struct words argv;
    struct words env;   /* "K=V", any order */
    const char *cwd;    /* NULL: the sandbox's own */
    uint64_t timeout_s; /* 0: not said */
    /* The person's word it has, if it needed one; else NULL. */
    const char *approval_id;
    const char *approval_digest;
    const char *approved_by;
};

struct pending *pending_new(void);
void pending_free(struct pending *pending);

/* Remembers one, for one use. ERR_CONFLICT: another one that is waiting is written the same and is
 * not the same; neither will run. ERR_LIMIT: too many are waiting. */
int pending_add(struct pending *pending, const struct pending_owner *owner,
                const struct pending_command *command, struct err *err) MUST_CHECK;
/* Takes the one that is written like this, copied into mem. ERR_FORBIDDEN: there is none;
 * ERR_CONFLICT: there were two. */
int pending_take(struct pending *pending, const struct pending_owner *owner, const char *text,
                 const struct pending_command *asked, struct arena *mem,
                 struct pending_command *out, struct err *err) MUST_CHECK;
/* Nothing of this sandbox runs any more. */
void pending_forget(struct pending *pending, const struct pending_owner *owner);
