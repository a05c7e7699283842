/* SPDX-License-Identifier: Apache-2.0 */

/* The stop button: who pressed it, for whom and why is recorded like everything else. */

#include "flow/govern-parts.h"

#include "lib/access/freeze.h"

#include <stdio.h>
#include <time.h>

static void tell_entry(struct run *run, const struct frozen *entry)
{
    run->outcome.freeze.tenant = arena_text(&run->mem, str_of(entry->tenant));
    run->outcome.freeze.principal = arena_text(&run->mem, str_of(entry->principal));
    run->outcome.freeze.why = arena_text(&run->mem, str_of(entry->reason));
}

/* Whoever does it, as the list keeps it. */
static struct frozen by_requester(const struct frozen *entry, const struct request *request)
{
    struct frozen made = *entry;

    (void)snprintf(made.by, sizeof made.by, "%s", request->principal);
    (void)snprintf(made.by_tenant, sizeof made.by_tenant, "%s", request->tenant);
    return made;
}

int govern_freeze(struct govern *govern, const struct request *request, const char *root_dir,
                  struct frozen *entry, struct run *run, struct err *err)
{
    struct frozen made = by_requester(entry, request);
    struct deed deed;
    bool failed;

    if (deed_begin(&deed, govern, request, ACTION_FREEZE, run, err) < 0)
        return -1;
    made.since = (int64_t)time(NULL);
    failed = freeze_add(root_dir, &made, err) < 0;
    if (!failed) {
        tell_entry(run, &made);
        *entry = made;
    }
    return deed_end(&deed, failed ? REASON_FREEZE_FAILED : REASON_NONE, err);
}

int govern_unfreeze(struct govern *govern, const struct request *request, const char *root_dir,
                    struct frozen *entry, struct run *run, struct err *err)
{
    const struct frozen made = by_requester(entry, request);
    struct deed deed;
    bool failed;

    if (deed_begin(&deed, govern, request, ACTION_UNFREEZE, run, err) < 0)
        return -1;
    failed = freeze_remove(root_dir, &made, entry, err) < 0;
    if (!failed)
        tell_entry(run, &made); /* without why it was frozen, which is not why it is no longer */
    return deed_end(&deed, failed ? REASON_FREEZE_FAILED : REASON_NONE, err);
}
