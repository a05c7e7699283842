/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whose new effects are refused, whatever the policy says, until somebody unfreezes them.
 *
 * Whoever makes a token acts through it, and through those that are made with it: who is frozen
 * does not do so any more. That is told by names, as access_makers() knows them.
 *
 * The list is one small file (STATE/frozen.json), replaced whole. A look costs one stat(2) while it
 * has not changed. A list that cannot be read freezes everybody: it may have named them. */

#include "lib/access/access.h"

#define FREEZE_REASON_BYTES 257
#define FROZEN_MAX 1000 /* entries */

struct frozen {
    char tenant[TENANT_BYTES];       /* "": every tenant */
    char principal[PRINCIPAL_BYTES]; /* "": everybody of it */
    int64_t since;                   /* seconds since 1970 */
    char by[PRINCIPAL_BYTES];
    char by_tenant[TENANT_BYTES];     /* whose principal that is; "": the default one's */
    char reason[FREEZE_REASON_BYTES]; /* for people, or "" */
};

/* One may be used by several threads. */
struct freezer;
struct freezer *freezer_new(const char *state_dir);
void freezer_free(struct freezer *freezer);

/* Who wants to do something. */
struct actor {
    const char *tenant;
    const char *principal;
    const char *made_by; /* who made the token it came with; NULL, "": none, or nobody knows */
};

/* Whether new effects of this one are refused now; then *out says by which entry: its own, or that
 * of somebody who acts through it (out->principal is another one). Since 0: the list, or that of
 * the tokens, cannot be read. Who made tokens is only looked at while some principal is frozen. */
bool freezer_stops(struct freezer *freezer, const struct actor *actor, struct frozen *out);

/* Adds an entry, or replaces the one of the same tenant and principal; and takes one out again,
 * which is *out (ERR_NOT_FOUND: there is none). ERR_FORBIDDEN: the default tenant made it, who has
 * the machine, and entry->by_tenant is another one. Durable when they return. */
int freeze_add(const char *state_dir, const struct frozen *entry, struct err *err) MUST_CHECK;
int freeze_remove(const char *state_dir, const struct frozen *entry, struct frozen *out,
                  struct err *err) MUST_CHECK;
/* All there are, in the order they were added. */
int freeze_each(const char *state_dir,
                int (*on_entry)(void *context, const struct frozen *entry, struct err *err),
                void *context, struct err *err) MUST_CHECK;
