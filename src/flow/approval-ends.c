/* SPDX-License-Identifier: Apache-2.0 */

/* What nobody answered in time has a receipt that says so, whether or not it is asked for again.
 *
 * The list says under which run that is written, before it is: whoever comes across the same end at
 * the same time, or after somebody was killed on the way, writes it under the same one, and the
 * ledger has a run's beginning once. */

#include "flow/govern-parts.h"

#include "flow/record/record.h"
#include "lib/base/limits.h"

#include <string.h>

#define ENDS_AT_ONCE 16 /* in one receipt's time; and somebody waits */

static int make_end(const struct approval_end *end, const char *tenant, struct run *run,
                    struct err *err)
{
    struct request request = {.kind = ACTION_APPROVAL_EXPIRE,
                              .principal = end->requester,
                              .tenant = tenant,
                              .provider = "local"};

    memcpy(run->id, end->run_id, sizeof run->id);
    memcpy(run->sandbox_id, end->run_id, sizeof run->sandbox_id);
    if (admit_change(&request, run, err) < 0)
        return -1;
    run->verdict = (struct verdict){.kind = VERDICT_DENY, .reason = REASON_APPROVAL_FAILED};
    run->approval.id = end->id;
    run->approval.digest = end->digest;
    return 0;
}

/* All that the ledger does not have, or none of them. */
static int write_ends(struct govern *govern, const struct approval_end *ends, size_t n,
                      const char *tenant, struct err *err)
{
    AUTO_FREE struct run *runs = xcalloc(ENDS_AT_ONCE, sizeof *runs);
    struct record_entry entries[ENDS_AT_ONCE];
    size_t unknown = 0;
    bool failed = false;

    for (size_t i = 0; i < n && !failed; i++) {
        struct run *run = &runs[unknown];
        bool is_known = false;

        failed = record_knows(govern->record, ends[i].run_id, &is_known, err) < 0;
        if (failed || is_known)
            continue;
        run_init(run);
        entries[unknown++] = (struct record_entry){.run = run};
        failed = make_end(&ends[i], tenant, run, err) < 0;
    }
    failed = failed || record_append_many(govern->record, entries, unknown, err) < 0;
    for (size_t i = 0; i < unknown; i++)
        run_done(&runs[i]);
    return failed ? -1 : 0;
}

static int tell_ends(struct govern *govern, struct approvals *approvals,
                     const struct approval_end *ends, size_t n, const char *tenant, struct err *err)
{
    /* Somebody else may have been quicker with one of them; then the rest are ours. */
    if (write_ends(govern, ends, n, tenant, err) < 0 &&
        (err->code != ERR_CONFLICT || write_ends(govern, ends, n, tenant, err) < 0))
        return -1;
    return approvals_ends_told(approvals, ends, n, err);
}

int govern_record_expired(struct govern *govern, const char *tenant, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    struct approval_end *ends = arena_array(&mem, struct approval_end, ENDS_AT_ONCE);
    struct approvals *approvals;
    bool is_some = false;
    size_t n = 0;

    if (govern->only_looks || !govern_has_approvals(govern))
        return 0;
    approvals = govern_approvals(govern, err);
    if (!approvals || approvals_have_ends(approvals, &is_some, err) < 0)
        return -1;
    if (!is_some)
        return 0;
    if (govern_ready(govern, err) < 0 ||
        approvals_ends(approvals, &mem, ends, ENDS_AT_ONCE, &n, err) < 0)
        return -1;
    return tell_ends(govern, approvals, ends, n, tenant, err);
}
