/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whose sandboxes they are. Every tenant has a state directory of its own: sandboxes, images,
 * snapshots, ledger, key. Nothing is looked up across that border, so there is nothing to filter:
 * what another tenant has answers like what does not exist.
 *
 *    default          the state directory itself, which the command line uses, too
 *    any other NAME   STATE/tenants/NAME
 *
 * Any thread may call these. */

#include "flow/govern.h"
#include "surface/api/asks.h"

struct policy;
struct tenant;
struct tenants;

struct tenants_config {
    const char *state_dir;
    const char *policy_text;  /* of every tenant that has none of its own; NULL: the built-in one */
    const char *profile_text; /* or NULL */
    bool no_spawner;
};

int tenants_open(const struct tenants_config *config, struct tenants **out,
                 struct err *err) MUST_CHECK;
/* All that was borrowed must be back. */
void tenants_free(struct tenants *tenants);
AUTO_TYPE(tenants)

/* The one of this name, which is made when there is none; lives as long as *tenants. */
int tenants_get(struct tenants *tenants, const char *name, struct tenant **out,
                struct err *err) MUST_CHECK;
/* Gets all that there are in the state directory. */
int tenants_find_all(struct tenants *tenants, struct err *err) MUST_CHECK;
/* Each that has been got since the start. */
int tenants_each(struct tenants *tenants,
                 int (*on_tenant)(void *context, struct tenant *tenant, struct err *err),
                 void *context, struct err *err) MUST_CHECK;

const char *tenant_name(const struct tenant *tenant);
const char *tenant_state_dir(const struct tenant *tenant);
const char *tenant_root_dir(const struct tenant *tenant); /* of the daemon that serves it */
/* Its questions; of asks.c alone. */
struct clerk *tenant_clerk(struct tenant *tenant);

/* One more that follows its ledger; ERR_LIMIT: there are as many as may be. */
int tenant_tail_enter(struct tenant *tenant, struct err *err) MUST_CHECK;
void tenant_tail_leave(struct tenant *tenant);

/* A folder in it for what is on its way in or out; empty whenever a daemon starts. */
int tenant_spool(const struct tenant *tenant, struct arena *mem, const char **out,
                 struct err *err) MUST_CHECK;

/* The rules new sandboxes live under, copied into mem; NULL: built in, or none. */
int tenant_rules(struct tenant *tenant, struct arena *mem, const char **policy_text,
                 const char **profile_text, struct err *err) MUST_CHECK;

/* A governor under rules, for one thread, until it is given back. */
struct lent {
    struct govern *govern;
    struct rules *rules; /* private */
};
int tenant_borrow(struct tenant *tenant, const char *policy_text, const char *profile_text,
                  struct lent *out, struct err *err) MUST_CHECK;
void tenant_return(struct tenant *tenant, struct lent *lent);
/* Whether one of them took something out of a pool since the last time this was asked. */
bool tenant_wants_refill(struct tenant *tenant);
