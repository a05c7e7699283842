/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/record/record.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "flow/record/ledger.h"
#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"

#define TOGETHER_MAX 64         /* receipts of other threads that are written with ours */
#define SPARE_BYTES (256 * KIB) /* a closing receipt needs a tenth of it */

static char *path_in(const char *dir, const char *name)
{
    char *path = NULL;

    return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

/* The public half beside the key, for people; nothing here reads it again. */
static int publish_key(const struct record *record, struct err *err)
{
    AUTO_FREE char *path = path_in(record->dir, "receipts.pub");
    char pem[PUBLIC_KEY_PEM_BYTES];

    if (path && access(path, F_OK) == 0)
        return 0;
    public_key_pem(&record->signer->public_key, pem);
    return path ? file_replace(path, pem, strlen(pem), 0644, err)
                : err_os(err, "naming the public key");
}

/* Without room for it there is also none for an intent, and that is reported there. */
static void set_aside_room(const struct record *record)
{
    AUTO_FREE char *path = path_in(record->dir, "receipts.spare");
    AUTO_FD int fd = -1;
    struct stat st;

    if (!path || (lstat(path, &st) == 0 && st.st_size >= (off_t)SPARE_BYTES))
        return;
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && posix_fallocate(fd, 0, SPARE_BYTES) != 0)
        (void)unlink(path);
}

static bool give_up_room(const struct record *record)
{
    AUTO_FREE char *path = path_in(record->dir, "receipts.spare");

    return path && unlink(path) == 0;
}

/* Not being allowed to write here is a fault of the installation, not a denial of the run. */
static int not_available(struct err *err)
{
    if (err->code == ERR_FORBIDDEN || err->code == ERR_NOT_FOUND)
        err->code = ERR_UNAVAILABLE;
    return -1;
}

/* Who signs for this process; NULL: it does so itself. Set before there are threads. */
static const struct record_signing *elsewhere;

void record_sign_elsewhere(const struct record_signing *signing)
{
    elsewhere = signing;
}

static int open_signer(const char *state_dir, struct signer **out, struct err *err)
{
    AUTO_FREE char *path = path_in(state_dir, "receipts.key");

    if (elsewhere)
        return elsewhere->open(elsewhere->context, state_dir, out, err);
    return path ? signer_open(path, out, err) : err_os(err, "naming the signing key");
}

bool record_exists(const char *state_dir)
{
    AUTO_FREE char *path = path_in(state_dir, "receipts.db");

    return !path || access(path, F_OK) == 0 || errno != ENOENT;
}

static int open_record(const char *state_dir, bool only_reads, struct record **out, struct err *err)
{
    AUTO(record) struct record *record = xcalloc(1, sizeof *record);

    queue_init(&record->queue);
    record->dir = xstrdup(state_dir);
    if (open_signer(state_dir, &record->signer, err) < 0)
        return not_available(err);
    key_id(&record->signer->public_key, record->key_id);
    if ((!only_reads && publish_key(record, err) < 0) ||
        ledger_open(state_dir, &record->store, err) < 0)
        return not_available(err);
    CRASH_POINT("ledger-opened");
    if (!only_reads)
        set_aside_room(record);
    *out = TAKE(record);
    return 0;
}

int record_open(const char *state_dir, struct record **out, struct err *err)
{
    return open_record(state_dir, false, out, err);
}

int record_open_to_read(const char *state_dir, struct record **out, struct err *err)
{
    return open_record(state_dir, true, out, err);
}

void record_free(struct record *record)
{
    if (!record)
        return;
    signers_free(record->signers);
    statement_done(&record->head);
    statement_done(&record->insert);
    statement_done(&record->of_run);
    store_free(record->store);
    signer_free(record->signer);
    queue_done(&record->queue);
    free(record->dir);
    free(record);
}

int record_own_key(const char *state_dir, struct public_key *out, struct err *err)
{
    AUTO(signer) struct signer *signer = NULL;
    AUTO_FREE char *path = path_in(state_dir, "receipts.key");

    if (!path || access(path, F_OK) < 0)
        return err_set(err, ERR_NOT_FOUND, "there is no key in %s", state_dir);
    if (open_signer(state_dir, &signer, err) < 0)
        return -1;
    *out = signer->public_key;
    return 0;
}

/* A closing receipt needs an intent that is still open, and says which. */
static int check_open(struct record *record, struct arena *mem, const char *run_id, struct err *err)
{
    enum run_state state = RUN_UNKNOWN;

    if (ledger_run(record, mem, run_id, &state, NULL, err) < 0)
        return -1;
    switch (state) {
    case RUN_UNKNOWN:
        return err_set(err, ERR_NOT_FOUND, "the ledger knows no run %s", run_id);
    case RUN_ENDED:
        return err_set(err, ERR_CONFLICT, "the run %s has ended already", run_id);
    case RUN_OPEN:
        break;
    }
    return 0;
}

static int seal_all(struct record *record, struct arena *mem, struct receipt *receipts, size_t n,
                    struct err *err)
{
    struct chain_head head;

    if (ledger_head(record, mem, &head, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (receipt_seal(mem, record->key_id, &head, &receipts[i], err) < 0)
            return -1;
        signers_offer(record->signers, i + 1);
    }
    record->known = head; /* if it is not committed, no row has this hash */
    return 0;
}

static int insert_all(struct record *record, const struct receipt *receipts, size_t n,
                      struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (signers_await(record->signers, i, err) < 0 ||
            ledger_insert(record, &receipts[i], err) < 0)
            return -1;
    }
    return 0;
}

static int write_all_receipts(struct record *record, struct arena *mem, struct receipt *receipts,
                              size_t n, struct err *err)
{
    int failed = 0;

    signers_begin(&record->signers, record->signer, receipts, n);
    if (seal_all(record, mem, receipts, n, err) < 0 || insert_all(record, receipts, n, err) < 0)
        failed = -1;
    signers_end(record->signers);
    return failed;
}

/* Within one immediate transaction, so that the head that is read is the head that is followed,
 * whoever else writes. Receipts are durable when this returns 0 and nowhere otherwise. */
static int append(struct record *record, struct arena *mem, struct receipt *receipts, size_t n,
                  struct err *err)
{
    AUTO_TRANSACTION struct transaction t = {0};
    bool closes = receipts[0].role == ROLE_CLOSES;

    CRASH_POINT(closes ? "closing-before" : "opening-before");
    if (transaction_begin(record->store, &t, err) < 0)
        return -1;
    CRASH_POINT(closes ? "closing-locked" : "opening-locked");
    for (size_t i = 0; i < n; i++)
        if (receipts[i].role == ROLE_CLOSES && check_open(record, mem, receipts[i].run_id, err) < 0)
            return -1;
    if (write_all_receipts(record, mem, receipts, n, err) < 0)
        return -1;
    CRASH_POINT(closes ? "closing-inserted" : "opening-inserted");
    if (transaction_commit(&t, err) < 0)
        return -1;
    CRASH_POINT(closes ? "closing-committed" : "opening-committed");
    bell_ring(record->dir);
    return 0;
}

static void make_receipt(struct arena *mem, const struct record_entry *entry, struct receipt *out)
{
    receipt_of_run(mem, entry->run, entry->closing ? ROLE_CLOSES : ROLE_OPENS, out);
}

static void tell_run(const struct record_entry *entry, const struct receipt *receipt)
{
    struct receipt_ref *ref = entry->closing ? &entry->run->closing : &entry->run->intent;

    *ref = receipt->ref;
    hex_encode(receipt->signature.b, sizeof receipt->signature.b, ref->signature);
}

/* With the turn. */
static int append_entries(struct record *record, const struct record_entry *entries, size_t n,
                          struct receipt *receipts, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RECEIPT_MEMORY_MAX);
    int failed;

    for (size_t i = 0; i < n; i++)
        make_receipt(&mem, &entries[i], &receipts[i]);
    failed = append(record, &mem, receipts, n, err);
    for (size_t i = 0; i < n; i++) {
        if (failed == 0)
            tell_run(&entries[i], &receipts[i]);
        receipt_done(&receipts[i]);
    }
    return failed;
}

int record_append_many(struct record *record, const struct record_entry *entries, size_t n,
                       struct err *err)
{
    AUTO_FREE struct receipt *receipts = NULL;
    struct turn turn;
    int failed;

    assert(n <= RECEIPT_BATCH_MAX);
    if (n == 0)
        return 0;
    receipts = xcalloc(n, sizeof *receipts);
    (void)turn_take(&record->queue, &turn, NULL);
    failed = append_entries(record, entries, n, receipts, err);
    turn_end(&record->queue, &turn);
    return failed;
}

/* ---- one at a time, or together with those of other threads ---- */

/* Ours first. Either all of them are written or none; then each tries by itself, because what is
 * wrong with one may be nobody else's. */
static int append_together(struct record *record, struct receipt *receipt, struct turn **others,
                           size_t n, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RECEIPT_MEMORY_MAX);
    struct receipt receipts[TOGETHER_MAX + 1];
    int failed;

    receipts[0] = *receipt;
    for (size_t i = 0; i < n; i++)
        receipts[i + 1] = *others[i]->receipt;
    failed = append(record, &mem, receipts, n + 1, err);
    *receipt = receipts[0];
    for (size_t i = 0; i < n; i++) {
        *others[i]->receipt = receipts[i + 1];
        turn_tell(&record->queue, others[i], failed == 0 ? TURN_WRITTEN : TURN_ALONE);
    }
    return failed;
}

static int append_alone(struct record *record, const struct record_entry *entry, struct err *err)
{
    struct receipt receipt;
    struct turn turn;
    int failed;

    (void)turn_take(&record->queue, &turn, NULL);
    failed = append_entries(record, entry, 1, &receipt, err);
    turn_end(&record->queue, &turn);
    return failed;
}

/* The receipt is made before it is our turn: only its place in the chain is decided there. */
static enum turn_state append_in_turn(struct record *record, struct receipt *receipt,
                                      struct err *err)
{
    struct turn *others[TOGETHER_MAX];
    struct turn turn;
    size_t n;
    int failed;

    if (turn_take(&record->queue, &turn, receipt) != TURN_HELD)
        return turn.state;
    n = turn_others(&record->queue, others, TOGETHER_MAX);
    failed = append_together(record, receipt, others, n, err);
    turn_end(&record->queue, &turn);
    return failed == 0 ? TURN_WRITTEN : n ? TURN_ALONE : TURN_FAILED;
}

static int append_one(struct record *record, const struct record_entry *entry, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RECEIPT_MEMORY_MAX);
    struct receipt receipt;
    enum turn_state state;

    make_receipt(&mem, entry, &receipt);
    state = append_in_turn(record, &receipt, err);
    if (state == TURN_WRITTEN)
        tell_run(entry, &receipt);
    receipt_done(&receipt);
    if (state == TURN_ALONE)
        return append_alone(record, entry, err);
    return state == TURN_WRITTEN ? 0 : -1;
}

int record_intent(struct record *record, struct run *run, struct err *err)
{
    return append_one(record, &(struct record_entry){run, false}, err);
}

int record_close(struct record *record, struct run *run, struct err *err)
{
    const struct record_entry entry = {run, true};
    int failed = append_one(record, &entry, err);

    /* The run has happened; its end must be told even on a full disk. */
    if (failed < 0 && err->code == ERR_STORAGE && give_up_room(record))
        failed = append_one(record, &entry, err);
    return failed;
}

static int append_end(struct record *record, struct arena *mem, const char *run_id,
                      const struct outcome *outcome, struct err *err)
{
    const struct json *intent = NULL;
    enum run_state state = RUN_UNKNOWN;
    struct receipt receipt;
    int failed;

    if (ledger_run(record, mem, run_id, &state, &intent, err) < 0)
        return -1;
    if (state == RUN_UNKNOWN)
        return err_set(err, ERR_NOT_FOUND, "the ledger knows no run %s", run_id);
    if (state == RUN_ENDED)
        return 0;
    receipt_of_abandoned(mem, intent, outcome, &receipt);
    failed = append(record, mem, &receipt, 1, err);
    receipt_done(&receipt);
    return failed;
}

int record_ended(struct record *record, const char *run_id, const struct outcome *outcome,
                 struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RECEIPT_MEMORY_MAX);
    struct turn turn;
    int failed;

    (void)turn_take(&record->queue, &turn, NULL);
    failed = append_end(record, &mem, run_id, outcome, err);
    if (failed < 0 && err->code == ERR_STORAGE && give_up_room(record))
        failed = append_end(record, &mem, run_id, outcome, err);
    turn_end(&record->queue, &turn);
    /* Between looking and writing somebody else may have ended it: just as well. */
    return failed < 0 && err->code == ERR_CONFLICT ? 0 : failed;
}

int record_abandoned(struct record *record, const char *run_id, struct err *err)
{
    return record_ended(record, run_id, NULL, err);
}

int record_knows(struct record *record, const char *run_id, bool *out, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RECEIPT_MEMORY_MAX);
    enum run_state state = RUN_UNKNOWN;
    struct turn turn;
    int failed;

    (void)turn_take(&record->queue, &turn, NULL);
    failed = ledger_run(record, &mem, run_id, &state, NULL, err);
    turn_end(&record->queue, &turn);
    *out = state != RUN_UNKNOWN;
    return failed;
}

int record_rehearse(struct record *record, struct run *run, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RECEIPT_MEMORY_MAX);
    struct chain_head head = {0};
    struct receipt receipt;
    int failed;

    receipt_of_run(&mem, run, ROLE_OPENS, &receipt);
    failed = receipt_seal(&mem, record->key_id, &head, &receipt, err);
    if (failed == 0)
        failed = record->signer->sign(record->signer, &receipt.hash, 1, &receipt.signature, err);
    if (failed == 0)
        run->intent = receipt.ref;
    receipt_done(&receipt);
    return failed;
}
