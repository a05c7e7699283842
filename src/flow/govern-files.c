/* SPDX-License-Identifier: Apache-2.0 */

/* Files and ports of a sandbox that stays. */

#include "flow/govern-parts.h"

#include "flow/record/record.h"
#include "lib/base/clock.h"

/* Its keeper is inside the walls the sandbox was allowed under, so what can be reached has been
 * decided; that it was reached is what is recorded. */
static int intend_files(struct govern *govern, const struct request *request, struct run *run,
                        struct err *err)
{
    struct kept_state state;

    if (admit_files(request, run, err) < 0 ||
        execute_kept_state(govern->execute, request->sandbox, &state, err) < 0 ||
        govern_ready(govern, err) < 0 || execute_claim(govern->execute, run, err) < 0)
        return -1;
    run->verdict = (struct verdict){.kind = VERDICT_ALLOW, .reason = REASON_POLICY_DEFAULT_ALLOW};
    if (state.paused)
        run->verdict = (struct verdict){.kind = VERDICT_DENY,
                                        .reason = REASON_SANDBOX_PAUSED,
                                        .text = "the sandbox is paused; resume it first"};
    (void)govern_is_frozen(govern, run);
    run_enter(run, STAGE_INTEND);
    if (record_intent(govern->record, run, err) < 0)
        return err_in(err, "not doing what cannot be recorded");
    run_enter(run, STAGE_EXECUTE);
    return 0;
}

static int conclude_files(struct govern *govern, struct run *run, uint64_t began_us,
                          enum reason reason, const struct err *failure, struct err *err)
{
    struct outcome *outcome = &run->outcome;

    outcome->started = outcome->ended = true;
    outcome->duration_us = clock_us() - began_us;
    outcome->reason = reason;
    if (reason != REASON_NONE) {
        outcome->exit_code = 1;
        outcome->failure = arena_text(&run->mem, str_of(failure->text));
        outcome->failure_code = failure->code;
    }
    return govern_conclude(govern, run, err);
}

int govern_files(struct govern *govern, const struct request *request,
                 const struct files_work *work, struct run *run, struct err *err)
{
    uint64_t began_us = clock_us();
    enum reason reason = REASON_NONE;
    struct files *files = NULL;
    struct err failure;

    if (intend_files(govern, request, run, err) < 0)
        return -1;
    if (!is_allowed(run))
        return 0;
    if (files_open(govern->execute, run, &work->progress, &files, &failure) < 0)
        reason = REASON_FILE_FAILED;
    else if (work->run(work->context, files, &failure) < 0)
        reason = files_cancelled(files) ? files_cancel_reason(files) : REASON_FILE_FAILED;
    files_free(files);
    return conclude_files(govern, run, began_us, reason, &failure, err);
}

int govern_port_grant(struct govern *govern, const struct request *request, struct run *run,
                      struct err *err)
{
    uint64_t began_us = clock_us();

    if (intend_files(govern, request, run, err) < 0)
        return -1;
    return is_allowed(run) ? conclude_files(govern, run, began_us, REASON_NONE, NULL, err) : 0;
}

int govern_port(struct govern *govern, const struct request *request, const struct port_call *call,
                struct run *run, struct err *err)
{
    uint64_t began_us = clock_us();
    enum reason reason = REASON_NONE;
    struct err failure;

    if (intend_files(govern, request, run, err) < 0)
        return -1;
    if (!is_allowed(run))
        return 0;
    if (execute_port(govern->execute, run, call, &failure) < 0)
        reason = REASON_PORT_FAILED;
    return conclude_files(govern, run, began_us, reason, &failure, err);
}
