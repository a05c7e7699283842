/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/govern-parts.h"

#include "lib/base/clock.h"

#include <errno.h>

int deed_begin(struct deed *deed, struct govern *govern, const struct request *request,
               enum action_kind kind, struct run *run, struct err *err)
{
    struct request made = *request;

    *deed = (struct deed){govern, run, clock_us()};
    made.kind = kind;
    return admit_change(&made, run, err) < 0 ? -1 : govern_intend(govern, run, err);
}

int deed_end(struct deed *deed, enum reason failure, struct err *err)
{
    struct outcome *outcome = &deed->run->outcome;
    struct err why = *err;

    if (failure != REASON_NONE) {
        if (why.code == ERR_FORBIDDEN && why.os == EROFS)
            why.code = ERR_UNAVAILABLE; /* as if its intent could not be written: nobody said no */
        outcome->exit_code = 1;
        outcome->reason = failure;
        outcome->failure = arena_text(&deed->run->mem, str_of(why.text));
        outcome->failure_code = why.code;
    }
    outcome->started = outcome->ended = true;
    outcome->duration_us = clock_us() - deed->began_us;
    if (govern_conclude(deed->govern, deed->run, err) < 0)
        return -1;
    execute_unclaim(deed->govern->execute);
    if (failure != REASON_NONE)
        *err = why;
    return failure == REASON_NONE ? 0 : -1;
}
