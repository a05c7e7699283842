/* SPDX-License-Identifier: Apache-2.0 */

/* A person's word: asked for where the policy says so, given with a receipt of its own. */

#include "flow/advisory-parts.h"
#include "flow/govern-parts.h"

#include "flow/approve/approve.h"
#include "flow/record/record.h"
#include "lib/access/access.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOOK_EVERY_MS 100

bool govern_has_approvals(const struct govern *govern)
{
    AUTO_ARENA struct arena mem = ARENA(2 * PATH_BYTES_MAX);

    return access(arena_printf(&mem, "%s/approvals.db", govern->state_dir), F_OK) == 0;
}

struct approvals *govern_approvals(struct govern *govern, struct err *err)
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

/* ---- what it works on ---- */

/* The root of the kept sandbox a command happens in, as the sandbox sees it; or of the machine. */
static int open_root(struct govern *govern, const struct run *run, int *out, struct err *err)
{
    struct kept_state before, after;
    char path[64];
    AUTO_FD int fd = -1;

    *out = -1;
    if (run->action.kind == ACTION_ELEVATE) {
        *out = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        return *out < 0 ? err_os(err, "opening /") : 0;
    }
    if (run->action.kind != ACTION_EXEC)
        return 0;
    if (execute_kept_state(govern->execute, run->action.sandbox, &before, err) < 0)
        return -1;
    (void)snprintf(path, sizeof path, "/proc/%d/root", before.pid);
    fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && (errno == EACCES || errno == EPERM))
        return 0; /* not for us; then somebody inside opens files one by one */
    if (fd < 0)
        return err_os(err, "looking into sandbox %s", run->action.sandbox);
    /* A number that was somebody else's in between would be another number now. */
    if (execute_kept_state(govern->execute, run->action.sandbox, &after, err) < 0)
        return -1;
    if (after.pid != before.pid)
        return err_set(err, ERR_CONFLICT, "sandbox %s is being exchanged", run->action.sandbox);
    *out = TAKE_FD(fd);
    return 0;
}

static int open_inside(void *context, const char *path, int *out, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    struct govern *govern = context;
    struct file_entry entry;

    if (files_stat(govern->target.files, &mem, path, true, &entry, err) < 0)
        return err->code == ERR_NOT_FOUND ? 0 : -1;
    if (S_ISREG(entry.mode) && files_open_file(govern->target.files, path, out, err) < 0)
        return err->code == ERR_NOT_FOUND ? 0 : -1;
    return 1;
}

static int view_operands(struct govern *govern, struct run *run, struct err *err)
{
    int root_fd = -1;

    if (action_is_question(run->action.kind))
        return 0; /* nothing will run that could be looked at */
    if (open_root(govern, run, &root_fd, err) < 0)
        return -1;
    govern->target.reader = (struct operand_reader){open_inside, govern};
    govern->target.is_inside = run->action.kind == ACTION_EXEC && root_fd < 0;
    return operand_view_open(run, root_fd, govern->target.is_inside ? &govern->target.reader : NULL,
                             &govern->target.view, err);
}

static int look(struct govern *govern, struct run *run, struct operands *out, struct err *err)
{
    struct run visit = {.action.sandbox = run->action.sandbox};
    int failed;

    *out = (struct operands){0};
    if (!govern->target.view)
        return 0;
    if (govern->target.is_inside &&
        files_open(govern->execute, &visit, NULL, &govern->target.files, err) < 0)
        return -1;
    failed = operand_view_look(govern->target.view, &run->mem, run, out, err);
    files_free(govern->target.files);
    govern->target.files = NULL;
    return failed;
}

static int ask(struct govern *govern, struct approvals *approvals, struct run *run,
               struct approval *out, struct err *err)
{
    struct operands *operands = arena_new(&run->mem, struct operands);

    if (look(govern, run, operands, err) < 0 ||
        approvals_ask(approvals, &run->mem, run, operands, out, err) < 0)
        return -1;
    if (out->state == APPROVAL_USED && govern_check_words(govern, run, out, true, err) < 0)
        return -1;
    govern->target.operands = operands;
    return 0;
}

static void refuse_changed(struct run *run, const char *changed)
{
    run->verdict.kind = VERDICT_DENY;
    run->verdict.reason = REASON_APPROVAL_TARGET_CHANGED;
    run->verdict.text = arena_printf(
        &run->mem, "%s changed after it was confirmed; ask again, about what it is now", changed);
}

void govern_check_target(struct govern *govern, struct run *run)
{
    struct operands now;
    const char *changed;
    struct err err;

    if (!govern->target.view || !is_allowed(run))
        return;
    if (look(govern, run, &now, &err) < 0)
        changed = err.text;
    else
        changed = operands_differ(&run->mem, govern->target.operands, &now);
    if (changed)
        refuse_changed(run, changed);
}

void govern_forget_target(struct govern *govern)
{
    operand_view_free(govern->target.view);
    govern->target.view = NULL;
    govern->target.operands = NULL;
}

/* ---- asking ---- */

/* How it stands, read into memory of its own: a person may take an hour, and what is shown him may
 * have megabytes, so that a look a moment would be more than the run has. */
static int look_how_it_stands(struct approvals *approvals, struct approval *out, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    struct approval now;

    if (approvals_show(approvals, &mem, out->id, &now, err) < 0)
        return -1;
    out->confirmations = now.confirmations;
    out->state = now.state;
    return 0;
}

/* No receipt, no request: it is there for people once the ledger says that it is, so that neither a
 * crash nor a full disk leaves one that could be confirmed and that nobody can account for. */
static int let_stand(struct govern *govern, struct approvals *approvals, struct run *run,
                     const char *id, uint64_t receipt_seq, struct err *err)
{
    struct approval approval;
    bool is_new = false;

    if (approvals_stand(approvals, &run->mem, id, receipt_seq, &approval, &is_new, err) < 0)
        return err_in(err, "nobody can be asked");
    if (is_new)
        govern_tell(govern, "approval.pending", run, &approval);
    return 0;
}

int govern_stand_request(struct govern *govern, struct run *run, struct err *err)
{
    if (run->verdict.kind != VERDICT_ASK || !run->approval.is_hidden)
        return 0;
    return let_stand(govern, govern->approvals, run, run->approval.id, run->intent.seq, err);
}

/* A run that waits for the word has its own receipts behind it, so that it was asked for has one
 * before, in which it is another run of the same decision. */
static int record_asked(struct govern *govern, struct run *run, const struct approval *approval,
                        uint64_t *seq, struct err *err)
{
    char id[ID_BYTES];
    int failed;

    if (govern_ready(govern, err) < 0)
        return -1;
    memcpy(id, run->id, sizeof id);
    id_new(run->id);
    run->approval.id = approval->id;
    run->approval.digest = approval->digest;
    failed = record_intent(govern->record, run, err);
    *seq = run->intent.seq;
    run->intent = (struct receipt_ref){0};
    memcpy(run->id, id, sizeof id);
    return failed ? err_in(err, "not asking for what cannot be recorded") : 0;
}

static int stand_before_waiting(struct govern *govern, struct approvals *approvals, struct run *run,
                                const struct approval *approval, struct err *err)
{
    uint64_t seq = 0;

    if (approval->stands || approval->state != APPROVAL_PENDING || !run->action.approval_wait_ms)
        return 0;
    return record_asked(govern, run, approval, &seq, err) < 0
               ? -1
               : let_stand(govern, approvals, run, approval->id, seq, err);
}

static void tell_waiting(struct run *run, const struct approval *approval, uint64_t until_us)
{
    if (approval->state != APPROVAL_PENDING || clock_us() >= until_us || !run->watch.wait)
        return;
    run->approval.id = approval->id;
    run->approval.digest = approval->digest;
    run->watch.wait(run->watch.context, run);
}

/* Whoever waits may be told to end, and the sandbox may end that it is about. What was asked still
 * waits for its answer, which holds for whoever asks for the same again. */
static bool stops_waiting(struct govern *govern, struct run *run, const struct approval *approval)
{
    enum reason reason = execute_told_to_end(govern->execute);
    bool is_gone = reason == REASON_NONE && run->action.kind == ACTION_EXEC &&
                   !execute_kept_has(govern->execute, run->action.sandbox);

    if (reason == REASON_NONE && !is_gone)
        return false;
    run->verdict.kind = VERDICT_DENY;
    run->verdict.reason = is_gone ? REASON_SANDBOX_UNKNOWN : reason;
    run->verdict.text =
        is_gone ? arena_printf(&run->mem, "sandbox %s ended while a person was waited for",
                               run->action.sandbox)
                : arena_printf(&run->mem,
                               "nobody waits here any more for approval %s; ask for exactly this "
                               "again once it is confirmed",
                               approval->id);
    return true;
}

/* Once, and as long as the caller is ready to wait for the person. */
static int ask_and_wait(struct govern *govern, struct approvals *approvals, struct run *run,
                        struct approval *out, struct err *err)
{
    uint64_t until_us = clock_us() + run->action.approval_wait_ms * 1000;
    int failed = view_operands(govern, run, err) < 0 || ask(govern, approvals, run, out, err) < 0 ||
                 stand_before_waiting(govern, approvals, run, out, err) < 0;

    if (!failed)
        tell_waiting(run, out, until_us);
    while (!failed && out->state == APPROVAL_PENDING && clock_us() < until_us &&
           !stops_waiting(govern, run, out)) {
        doze();
        failed = look_how_it_stands(approvals, out, err);
        if (failed || out->state == APPROVAL_PENDING)
            continue;
        /* His word is taken by asking again: only that uses it up. Who waited for the same may have
         * been quicker; then there is another request, and that is what is waited for. */
        failed = out->state == APPROVAL_CONFIRMED || out->state == APPROVAL_USED
                     ? ask(govern, approvals, run, out, err) < 0 ||
                           stand_before_waiting(govern, approvals, run, out, err) < 0
                     : approvals_show(approvals, &run->mem, out->id, out, err);
    }
    return failed ? -1 : 0;
}

/* Why something that was asked for before is asked for anew. */
static const char *change_text(struct run *run, const struct approval *approval)
{
    return approval->earlier_id && approval->changed
               ? arena_printf(&run->mem, "since approval %s this changed: %s; ",
                              approval->earlier_id, approval->changed)
               : "";
}

static const char *whom_text(struct run *run, const struct approval *approval)
{
    unsigned quorum = approval->terms.quorum;

    return quorum > 1 ? arena_printf(&run->mem, "%u people (%u of %u)", quorum,
                                     approval->confirmations, quorum)
                      : "a person";
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
            "%s%s%sapproval %s waits for %s; ask for exactly this again once it is confirmed",
            verdict.text ? verdict.text : "", verdict.text ? "; " : "", change_text(run, approval),
            approval->id, whom_text(run, approval));
        return verdict;
    case APPROVAL_CONFIRMED:
    case APPROVAL_EXPIRED:
    case APPROVAL_STATE_COUNT:
        break;
    }
    verdict.kind = VERDICT_DENY;
    verdict.reason = REASON_APPROVAL_FAILED;
    verdict.text = approval->decided_at
                       ? arena_printf(&run->mem,
                                      "what %s confirmed is over: it was not used in time, or one "
                                      "of them is no custodian any more; ask again",
                                      approval->decided_by)
                       : "nobody confirmed it in time; ask again";
    return verdict;
}

static void refuse_unasked(struct run *run, const struct err *err)
{
    run->verdict.kind = VERDICT_DENY;
    run->verdict.reason = REASON_APPROVAL_FAILED;
    run->verdict.text = arena_text(&run->mem, str_of(err->text));
}

/* It follows from a question that a person said yes to, and is exactly what he was asked about. */
static void recall_word(struct govern *govern, struct run *run)
{
    struct approvals *approvals;
    struct operands *now = arena_new(&run->mem, struct operands);
    struct approval approval;
    const char *changed = NULL;
    struct err err;

    run_enter(run, STAGE_APPROVE);
    approvals = govern_approvals(govern, &err);
    if (!approvals || view_operands(govern, run, &err) < 0 || look(govern, run, now, &err) < 0 ||
        approvals_recall(approvals, &run->mem, run, now, run->approval.id, &changed, &err) < 0 ||
        approvals_show(approvals, &run->mem, run->approval.id, &approval, &err) < 0 ||
        govern_check_words(govern, run, &approval, false, &err) < 0) {
        refuse_unasked(run, &err);
        return;
    }
    if (changed) {
        refuse_changed(run, changed);
        return;
    }
    govern->target.operands = now;
    run->verdict.kind = VERDICT_ALLOW;
    run->verdict.reason = REASON_APPROVAL_CONFIRMED;
    run->verdict.text = arena_printf(&run->mem, "confirmed by %s", run->approval.by);
}

void govern_seek_word(struct govern *govern, struct run *run)
{
    struct approvals *approvals;
    struct approval approval;
    struct err err;

    if (run->approval.by && run->verdict.kind != VERDICT_DENY) {
        recall_word(govern, run);
        return;
    }
    if (run->verdict.kind != VERDICT_ASK)
        return;
    run_enter(run, STAGE_APPROVE);
    approvals = govern_approvals(govern, &err);
    if (!approvals || ask_and_wait(govern, approvals, run, &approval, &err) < 0) {
        refuse_unasked(run, &err);
        return;
    }
    (void)govern_record_expired(govern, run->action.tenant, &err); /* whoever comes next does it */
    run->approval.id = approval.id;
    run->approval.digest = approval.digest;
    run->approval.by = approval.state == APPROVAL_PENDING ? NULL : approval.decided_by;
    run->approval.is_hidden = !approval.stands;
    if (run->verdict.kind == VERDICT_ASK)
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
    run->outcome.approval.quorum = approval->terms.quorum;
    run->outcome.approval.confirmations = approval->confirmations;
    if (word->custodian) {
        hex_encode(word->signature.b, sizeof word->signature.b, signature);
        run->outcome.approval.signature = arena_text(&run->mem, str_of(signature));
    }
}

/* Whoever makes a token acts through it, and through every one that is made with it. */
static int find_makers(struct govern *govern, const struct request *request, struct run *run,
                       const char **out, struct err *err)
{
    AUTO(access) struct access *access = NULL;
    const char *above = "";

    *out = "";
    if (!request->made_by || !*request->made_by)
        return 0;
    if (access_open(govern->shared->root_dir, &access, err) < 0 ||
        access_makers(access, &run->mem, request->made_by, &above, err) < 0)
        return -1;
    *out = arena_printf(&run->mem, "%s%s%s", request->made_by, *above ? " " : "", above);
    return 0;
}

int govern_approve(struct govern *govern, const struct request *request,
                   const struct approval_word *word, struct run *run, struct approval *out,
                   struct err *err)
{
    struct approvals *approvals = govern_approvals(govern, err);
    struct request made = *request;
    struct approval_voice voice = {
        .made_by = "",
        .is_custodian = word->custodian != NULL,
        .confirm = word->confirm,
        .comment = word->comment ? word->comment : "",
        .run_id = run->id,
    };
    struct deed deed;
    bool failed;

    if (!approvals)
        return -1;
    (void)govern_record_expired(govern, request->tenant, err); /* whoever comes next does it */
    if (approvals_show(approvals, &run->mem, word->id, out, err) < 0)
        return -1;
    if (word->custodian) {
        if (check_signature(approvals, word, out, err) < 0)
            return -1;
        /* His signature is his own, whoever carries it here. */
        made.principal = arena_printf(&run->mem, "custodian:%s", word->custodian);
        made.made_by = NULL;
    } else if (find_makers(govern, request, run, &voice.made_by, err) < 0) {
        return -1;
    }
    voice.by = made.principal;
    if (deed_begin(&deed, govern, &made, word->confirm ? ACTION_APPROVE : ACTION_REJECT, run, err) <
        0)
        return -1;
    failed = approvals_decide(approvals, &run->mem, out->id, &voice, out, err) < 0;
    if (!failed)
        tell_word(run, word, out);
    if (deed_end(&deed, failed ? REASON_APPROVAL_FAILED : REASON_NONE, err) < 0)
        return -1;
    govern_tell(govern, word->confirm ? "approval.confirmed" : "approval.rejected", run, out);
    return 0;
}

static void tell_custodian(struct run *run, const struct custodian *custodian)
{
    char id[KEY_ID_BYTES];

    key_id(&custodian->key, id);
    run->outcome.approval.custodian = arena_text(&run->mem, str_of(custodian->name));
    run->outcome.approval.key_id = arena_text(&run->mem, str_of(id));
}

/* A receipt says what happened, not what somebody wants to: its key is no person's. */
static int check_key(const struct govern *govern, const struct enrollment *ask, struct err *err)
{
    struct public_key own;

    if (ask->passphrase.p)
        return 0;
    if (record_own_key(govern->state_dir, &own, err) < 0)
        return -1;
    if (memcmp(own.b, ask->key.b, sizeof own.b) != 0)
        return 0;
    return err_set(err, ERR_INVALID, "that key signs receipts here, and is nobody's");
}

/* Whoever was killed between the list and the receipt left one of whom only the list knows. He says
 * it again, and the receipt of that is the one that was lacking; what there is of him stays. */
static bool is_half_made(struct govern *govern, struct approvals *approvals,
                         const struct enrollment *ask, struct arena *mem, struct custodian *out)
{
    struct gate_ledger told = {0};
    struct err ignored;

    return custodian_again(approvals, mem, ask->name, ask->passphrase, &ask->key, ask->by,
                           ask->by_passphrase, out, &ignored) == 0 &&
           custodians_read(govern, mem, &told, &ignored) == 0 &&
           !gate_ledger_tells_of(&told, ask->name);
}

static int enroll(struct govern *govern, struct approvals *approvals, const struct enrollment *ask,
                  struct run *run, struct custodian *out, struct err *err)
{
    if (ask->dismiss)
        return custodian_remove(approvals, &run->mem, ask->name, ask->by, ask->by_passphrase, out,
                                err);
    if (check_key(govern, ask, err) < 0)
        return -1;
    if (custodian_enroll(approvals, ask->name, ask->passphrase, &ask->key, ask->by,
                         ask->by_passphrase, out, err) == 0)
        return 0;
    return (err->code == ERR_CONFLICT || err->code == ERR_FORBIDDEN) &&
                   is_half_made(govern, approvals, ask, &run->mem, out)
               ? 0
               : -1;
}

int govern_enroll(struct govern *govern, const struct request *request,
                  const struct enrollment *ask, struct run *run, struct custodian *out,
                  struct err *err)
{
    struct approvals *approvals = govern_approvals(govern, err);
    struct deed deed;
    bool failed;

    if (!approvals || deed_begin(&deed, govern, request,
                                 ask->dismiss ? ACTION_DISMISS : ACTION_ENROLL, run, err) < 0)
        return -1;
    failed = enroll(govern, approvals, ask, run, out, err) < 0;
    if (!failed)
        tell_custodian(run, out);
    return deed_end(&deed, failed ? REASON_APPROVAL_FAILED : REASON_NONE, err);
}

int govern_approvals_renew(struct govern *govern, const struct request *request, struct run *run,
                           struct err *err)
{
    struct deed deed;
    bool failed;

    if (deed_begin(&deed, govern, request, ACTION_APPROVALS_RENEW, run, err) < 0)
        return -1;
    approvals_free(TAKE(govern->approvals));
    failed = approvals_renew(govern->state_dir, &govern->approvals, err) < 0;
    return deed_end(&deed, failed ? REASON_APPROVAL_FAILED : REASON_NONE, err);
}
