/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who may knock: tokens, and what each may do.
 *
 * A token is "brig_" ID "_" SECRET. Only the hash of it is stored (STATE/access.db); the text is
 * told once, to whoever made it. The secret has 256 bits, so one round of SHA-256 is as good at
 * rest as a slow hash would be for a password.
 *
 * A struct access belongs to one thread. What other processes change is seen by the next look. */

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/memory.h"

/* What a token may do. Zero may do nothing. */
#define SCOPES(X)                                                                                  \
    X(READ, "read", "look at sandboxes, files, images and usage")                                  \
    X(RUN, "run", "make, use and end sandboxes")                                                   \
    X(HOST, "host", "show folders of the machine to sandboxes")                                    \
    X(IMAGES, "images", "get and remove images")                                                   \
    X(RECEIPTS, "receipts", "read and check receipts")                                             \
    X(POLICY, "policy", "change the policy")                                                       \
    X(APPROVE, "approve", "confirm what a person must confirm")                                    \
    X(METRICS, "metrics", "read the counters of the whole machine")                                \
    X(ADMIN, "admin", "make and revoke tokens, freeze and unfreeze")                               \
    X(VAULT, "vault", "set, bind and remove secrets; nobody reads them")

enum scope_bit {
#define X(id, name, what) SCOPE_BIT_##id,
    SCOPES(X)
#undef X
        SCOPE_COUNT
};

enum scope {
    SCOPE_NONE = 0,
#define X(id, name, what) SCOPE_##id = 1 << SCOPE_BIT_##id,
    SCOPES(X)
#undef X
};

const char *scope_name(enum scope_bit bit);
const char *scope_what(enum scope_bit bit);
/* One of the names; ERR_INVALID lists them all. */
int scope_parse(struct str name, unsigned *out, struct err *err) MUST_CHECK;
/* "read,run". */
const char *scopes_text(struct arena *mem, unsigned scopes);

#define TENANT_DEFAULT "default"
#define TENANT_BYTES 33      /* [a-z0-9-], at most 32, letter or digit first */
#define TOKEN_ID_BYTES 13    /* [a-z0-9], 12 */
#define TOKEN_TEXT_BYTES 128 /* the whole token, with the NUL */
#define PRINCIPAL_BYTES 65

bool is_tenant_name(struct str name);

struct token {
    char id[TOKEN_ID_BYTES];
    char tenant[TENANT_BYTES];
    char principal[PRINCIPAL_BYTES]; /* who acts with it, as receipts name them */
    unsigned scopes;
    unsigned per_second;           /* requests; 0: the daemon's default */
    unsigned at_once;              /* requests under way; 0: the daemon's default */
    int64_t created_at;            /* seconds since 1970 */
    int64_t expires_at;            /* 0: never */
    int64_t used_at;               /* 0: never; told with some delay */
    int64_t revoked_at;            /* 0: it holds */
    char made_by[PRINCIPAL_BYTES]; /* who acts through it, too; "": nobody knows */
};

struct access;
int access_open(const char *state_dir, struct access **out, struct err *err) MUST_CHECK;
void access_free(struct access *access);
AUTO_TYPE(access)

/* Of *ask counts what a token is for: tenant, principal ("": named after the token), scopes,
 * limits, expires_at, and who makes it. *out is the token as it stands, text the only copy of its
 * words. */
int access_issue(struct access *access, const struct token *ask, struct token *out,
                 char text[TOKEN_TEXT_BYTES], struct err *err) MUST_CHECK;
/* Ends one for good. ERR_NOT_FOUND: there is none of this id; in a tenant: none of that tenant. */
int access_revoke(struct access *access, const char *id, const char *tenant, struct token *out,
                  struct err *err) MUST_CHECK;
/* Whose words these are. NULL, without a word why: nobody's who may come in now. Valid until the
 * next call. */
const struct token *access_check(struct access *access, struct str text);
/* All there are, oldest first; of one tenant, or NULL. */
int access_each(struct access *access, const char *tenant,
                int (*on_token)(void *context, const struct token *token, struct err *err),
                void *context, struct err *err) MUST_CHECK;
/* Whoever has made a token of this principal, in any tenant and whether or not it still holds, and
 * whoever has made one of theirs, and so on: each once, in no order, with a space between. */
int access_makers(struct access *access, struct arena *mem, const char *principal, const char **out,
                  struct err *err) MUST_CHECK;
/* The token of this id, if it may still come in; else NULL. Valid until the next call. */
const struct token *access_held(struct access *access, const char *id);
/* Writes down which were used since the last time. */
int access_settle(struct access *access, struct err *err) MUST_CHECK;
