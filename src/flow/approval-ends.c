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

#define ENDS_AT_ONCE 16 /* each is a synced receipt, and somebody waits */

static int write_end(struct govern *govern, const struct approval_end *end, const char *tenant,
                     struct err *err)
{
    struct request request = {.kind = ACTION_APPROVAL_EXPIRE,
                              .principal = end->requester,
                              .tenant = tenant,
                              .provider = "local"};
    struct run run;
    int failed;

    run_init(&run);
    memcpy(run.id, end->run_id, sizeof run.id);
    memcpy(run.sandbox_id, end->run_id, sizeof run.sandbox_id);
    failed = admit_change(&request, &run, err);
    run.verdict = (struct verdict){.kind = VERDICT_DENY, .reason = REASON_APPROVAL_FAILED};
    run.approval.id = end->id;
    run.approval.digest = end->digest;
    if (!failed)
        failed = record_intent(govern->record, &run, err);
    run_done(&run);
    return failed;
}

static int tell_end(struct govern *govern, struct approvals *approvals,
                    const struct approval_end *end, const char *tenant, struct err *err)
{
    bool is_known = false;
    struct err why;

    if (record_knows(govern->record, end->run_id, &is_known, err) < 0)
        return -1;
    if (!is_known && write_end(govern, end, tenant, &why) < 0) {
        /* Somebody else may have been quicker. */
        if (record_knows(govern->record, end->run_id, &is_known, err) < 0)
            return -1;
        if (!is_known) {
            *err = why;
            return -1;
        }
    }
    return approvals_end_told(approvals, end, err);
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
    for (size_t i = 0; i < n; i++)
        if (tell_end(govern, approvals, &ends[i], tenant, err) < 0)
            return -1;
    return 0;
}
