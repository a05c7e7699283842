/* SPDX-License-Identifier: Apache-2.0 */

/* Questions: what somebody else is about to do, judged and recorded as if we did it. */

#include "flow/govern-parts.h"

#include <assert.h>

#include "flow/decide/decide.h"
#include "flow/record/record.h"

#define NOT_RECORDED "not answering what cannot be recorded"

/* A tool that runs commands carries them, as a shell does: all are judged, the strictest holds. */
static void decide_inner(struct govern *govern, struct words inner, struct run *run)
{
    const struct words words = run->action.argv;
    struct verdict own = run->verdict;

    run->action.argv = inner;
    govern_decide(govern, run);
    run->action.argv = words;
    if (own.kind == VERDICT_ASK && run->verdict.kind == VERDICT_ASK)
        own.terms = approval_terms_meet(&run->mem, own.terms, run->verdict.terms);
    if (own.kind <= run->verdict.kind)
        run->verdict = own;
}

static int record(struct govern *govern, struct run *run, struct err *err)
{
    run_enter(run, STAGE_INTEND);
    if (govern_ready(govern, err) < 0 || record_intent(govern->record, run, err) < 0)
        return err_in(err, NOT_RECORDED);
    return govern_stand_request(govern, run, err);
}

int govern_consider(struct govern *govern, const struct request *request, struct run *run,
                    struct err *err)
{
    bool is_tool = request->kind == ACTION_TOOL;

    if ((is_tool ? admit_tool(request, run, err) : admit_run(request, run, err)) < 0)
        return -1;
    run_enter(run, STAGE_DECIDE);
    govern_decide(govern, run);
    for (size_t i = 0; i < request->inner_n; i++)
        decide_inner(govern, request->inner[i], run);
    govern_check_release(govern, run);
    (void)govern_is_frozen(govern, run); /* then that is the verdict */
    return 0;
}

int govern_ask(struct govern *govern, const struct request *request, struct run *run,
               struct err *err)
{
    if (govern_consider(govern, request, run, err) < 0)
        return -1;
    govern_consult(govern, run);
    if (request->kind == ACTION_PROPOSE && request->sandbox)
        govern_seek_word_ahead(govern, request, run);
    else
        govern_seek_word(govern, run);
    if (is_allowed(run))
        (void)govern_is_frozen(govern, run); /* while a person was waited for, perhaps */
    return record(govern, run, err);
}

int govern_record_asked(struct govern *govern, struct run *const *runs, size_t n, struct err *err)
{
    struct record_entry entries[ASKED_TOGETHER_MAX];

    assert(n <= ASKED_TOGETHER_MAX);
    for (size_t i = 0; i < n; i++) {
        assert(runs[i]->verdict.kind != VERDICT_ASK);
        run_enter(runs[i], STAGE_INTEND);
        entries[i] = (struct record_entry){runs[i], false};
    }
    if (govern_ready(govern, err) < 0 || record_append_many(govern->record, entries, n, err) < 0)
        return err_in(err, NOT_RECORDED);
    return 0;
}

int govern_refuse(struct govern *govern, const struct request *request, struct str bytes,
                  enum reason reason, const char *text, struct run *run, struct err *err)
{
    if (admit_malformed(request, bytes, run, err) < 0)
        return -1;
    run->verdict = (struct verdict){.kind = VERDICT_DENY, .reason = reason, .text = text};
    return record(govern, run, err);
}
