/* SPDX-License-Identifier: Apache-2.0 */

/* A sandbox that stands on a snapshot: each writable layer lies over what the snapshot has of it.
 * What that is does not show in the plan's facts; that it is exactly that is checked by box. */

#include "flow/equip/parts.h"

#include "lib/snapshot/snapshot.h"

#include <string.h>

static int add_lowers(struct run *run, struct snapshot_store *store,
                      const struct snapshot *snapshot, struct plan_mount *mount, struct err *err)
{
    const struct snapshot_lower *found = NULL;
    struct plan_lower *lowers;
    size_t n = 0;

    if (snapshot_lowers(store, &run->mem, snapshot, mount->source, &found, &n, err) < 0)
        return -1;
    lowers = arena_array(&run->mem, struct plan_lower, n + mount->lower_n + 1);
    for (size_t i = 0; i < n; i++)
        lowers[i] = (struct plan_lower){found[i].path, found[i].device, found[i].inode};
    for (size_t i = 0; i < mount->lower_n; i++)
        lowers[n + i] = mount->lowers[i];
    mount->lowers = lowers;
    mount->lower_n += n;
    mount->base_n = n;
    return 0;
}

int plan_base(const char *state_dir, struct run *run, struct mount_list *list, struct err *err)
{
    AUTO(snapshot_store) struct snapshot_store *store = NULL;
    struct snapshot snapshot;

    if (!run->action.base)
        return 0;
    if (snapshot_store_open(state_dir, &store, err) < 0 ||
        snapshot_get(store, &run->mem, run->action.base, &snapshot, err) < 0 ||
        (run->plan.base_hold_n == 0 &&
         snapshot_hold(store, &snapshot, run->plan.base_holds, &run->plan.base_hold_n, err) < 0))
        return refuse(run, REASON_PLAN_INVALID, "%s", err->text);
    for (size_t i = 0; i < list->n; i++)
        if (list->of[i].kind == MOUNT_LAYER &&
            add_lowers(run, store, &snapshot, &list->of[i], err) < 0)
            return -1;
    return 0;
}
