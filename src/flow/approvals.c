/* SPDX-License-Identifier: Apache-2.0 */

/* A person's word: asked for where the policy says so, given with a receipt of its own. */

#include "flow/govern-parts.h"

#include "flow/approve/approve.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"

#include <string.h>
#include <time.h>

#define LOOK_EVERY_MS 100

static struct approvals *approvals_of(struct govern *govern, struct err *err)
{
    if (!govern->approvals && approvals_open(govern->state_dir, &govern->approvals, err) < 0)
        return NULL;
    return govern->approvals;
}

static void doze(void)
{
    const struct timespec moment = {.tv_nsec = LOOK_EVERY_MS * 1000000L};

    (void)nanosleep(&moment, NULL);
}

/* Once, and as long as the caller is ready to wait for the person. */
static int ask_and_wait(struct approvals *approvals, struct run *run, struct approval *out,
                        struct err *err)
{
    uint64_t until_us = clock_us() + run->action.approval_wait_ms * 1000;
    int failed = approvals_ask(approvals, &run->mem, run, out, err);

    while (!failed && out->state == APPROVAL_PENDING && clock_us() < until_us) {
        doze();
        failed = approvals_show(approvals, &run->mem, out->id, out, err);
        /* His word is taken by asking again: only that uses it up. */
        if (!failed && out->state == APPROVAL_CONFIRMED)
            failed = approvals_ask(approvals, &run->mem, run, out, err);
    }
    return failed;
}

static struct verdict verdict_by(struct run *run, const struct approval *approval)
{
    struct verdict verdict = run->verdict;

    switch (approval->state) {
    case APPROVAL_USED:
        verdict.kind = VERDICT_ALLOW;
        verdict.reason = REASON_APPROVAL_CONFIRMED;
        verdict.text = arena_printf(&run->mem, "confirmed by %s", approval->decided_by);
        return verdict;
    case APPROVAL_REJECTED:
        verdict.kind = VERDICT_DENY;
        verdict.reason = REASON_APPROVAL_REJECTED;
        verdict.text = arena_printf(&run->mem, "rejected by %s%s%s", approval->decided_by,
                                    *approval->comment ? ": " : "", approval->comment);
        return verdict;
    case APPROVAL_PENDING:
        verdict.text = arena_printf(
            &run->mem,
            "%s%sapproval %s waits for a person; ask for exactly this again once it is "
            "confirmed",
            verdict.text ? verdict.text : "", verdict.text ? "; " : "", approval->id);
        return verdict;
    case APPROVAL_CONFIRMED:
    case APPROVAL_EXPIRED:
    case APPROVAL_STATE_COUNT:
        break;
    }
    verdict.kind = VERDICT_DENY;
    verdict.reason = REASON_APPROVAL_FAILED;
    verdict.text = "nobody confirmed it in time";
    return verdict;
}

void govern_seek_word(struct govern *govern, struct run *run)
{
    struct approvals *approvals;
    struct approval approval;
    struct err err;

    if (run->verdict.kind != VERDICT_ASK)
        return;
    /* It follows from a question that a person said yes to. */
    if (run->approval.by) {
        run->verdict.kind = VERDICT_ALLOW;
        run->verdict.reason = REASON_APPROVAL_CONFIRMED;
        run->verdict.text = arena_printf(&run->mem, "confirmed by %s", run->approval.by);
        return;
    }
    run_enter(run, STAGE_APPROVE);
    approvals = approvals_of(govern, &err);
    if (!approvals || ask_and_wait(approvals, run, &approval, &err) < 0) {
        run->verdict.kind = VERDICT_DENY;
        run->verdict.reason = REASON_APPROVAL_FAILED;
        run->verdict.text = arena_text(&run->mem, str_of(err.text));
        return;
    }
    run->approval.id = approval.id;
    run->approval.digest = approval.digest;
    run->approval.by = approval.state == APPROVAL_PENDING ? NULL : approval.decided_by;
    run->verdict = verdict_by(run, &approval);
}

/* ---- his word ---- */

/* A custodian's name is proven by his signature, and then is who acts. */
static int check_signature(struct approvals *approvals, const struct approval_word *word,
                           const struct approval *approval, struct err *err)
{
    struct hash preimage;

    approval_preimage(approval, word->confirm, &preimage);
    return custodian_check(approvals, word->custodian, &preimage, &word->signature, err);
}

static void tell_word(struct run *run, const struct approval_word *word,
                      const struct approval *approval)
{
    char signature[2 * SIGNATURE_BYTES + 1];

    run->outcome.approval.id = approval->id;
    run->outcome.approval.digest = approval->digest;
    run->outcome.approval.requester = approval->requester;
    run->outcome.approval.comment = approval->comment;
    if (word->custodian) {
        hex_encode(word->signature.b, sizeof word->signature.b, signature);
        run->outcome.approval.signature = arena_text(&run->mem, str_of(signature));
    }
}

int govern_approve(struct govern *govern, const struct request *request,
                   const struct approval_word *word, struct run *run, struct approval *out,
                   struct err *err)
{
    struct approvals *approvals = approvals_of(govern, err);
    struct request made = *request;
    struct deed deed;
    bool failed;

    if (!approvals || approvals_show(approvals, &run->mem, word->id, out, err) < 0)
        return -1;
    if (word->custodian) {
        if (check_signature(approvals, word, out, err) < 0)
            return -1;
        made.principal = arena_printf(&run->mem, "custodian:%s", word->custodian);
    }
    if (deed_begin(&deed, govern, &made, word->confirm ? ACTION_APPROVE : ACTION_REJECT, run, err) <
        0)
        return -1;
    failed = approvals_decide(approvals, &run->mem, out->id, word->confirm, made.principal,
                              word->comment ? word->comment : "", out, err) < 0;
    if (!failed)
        tell_word(run, word, out);
    return deed_end(&deed, failed ? REASON_APPROVAL_FAILED : REASON_NONE, err);
}

int govern_enroll(struct govern *govern, const struct request *request,
                  const struct enrollment *ask, struct run *run, struct custodian *out,
                  struct err *err)
{
    struct approvals *approvals = approvals_of(govern, err);
    struct deed deed;
    bool failed;

    if (!approvals || deed_begin(&deed, govern, request, ACTION_ENROLL, run, err) < 0)
        return -1;
    failed = custodian_enroll(approvals, ask->name, ask->passphrase, &ask->key, ask->by,
                              ask->by_passphrase, out, err) < 0;
    if (!failed) {
        char id[KEY_ID_BYTES];

        key_id(&out->key, id);
        run->outcome.approval.custodian = arena_text(&run->mem, str_of(out->name));
        run->outcome.approval.key_id = arena_text(&run->mem, str_of(id));
    }
    return deed_end(&deed, failed ? REASON_APPROVAL_FAILED : REASON_NONE, err);
}
