/* SPDX-License-Identifier: Apache-2.0 */

/* Images: no sandbox is built, so nothing is planned and observed; that it was asked for, by whom,
 * and what came of it is recorded like everything else. */

#include "flow/govern-parts.h"

#include "flow/record/record.h"
#include "lib/base/clock.h"

static int intend(struct govern *govern, const struct request *request, struct run *run,
                  struct err *err)
{
    return admit_image(request, run, err) < 0 ? -1 : govern_intend(govern, run, err);
}

static void tell_failure(struct run *run, const struct err *failure)
{
    const char *text = arena_text(&run->mem, str_of(failure->text));

    run->outcome.exit_code = 1;
    run->outcome.failure = text;
    run->outcome.failure_code = failure->code;
    run->outcome.reason = REASON_IMAGE_FAILED;
    if (failure->code == ERR_FORBIDDEN || failure->code == ERR_INTEGRITY)
        run->verdict =
            (struct verdict){.kind = VERDICT_DENY, .reason = REASON_IMAGE_REFUSED, .text = text};
}

int govern_image(struct govern *govern, const struct request *request,
                 const struct image_work *work, struct run *run, struct err *err)
{
    uint64_t began_us = clock_us();
    struct err failure;

    if (intend(govern, request, run, err) < 0)
        return -1;
    if (work->run(work->context, run, &failure) < 0)
        tell_failure(run, &failure);
    run->outcome.started = run->outcome.ended = true;
    run->outcome.duration_us = clock_us() - began_us;
    if (govern_conclude(govern, run, err) < 0)
        return -1;
    execute_unclaim(govern->execute);
    return 0;
}
