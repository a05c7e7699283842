/* SPDX-License-Identifier: Apache-2.0 */

/* Whether the ledger has the words that a list of approvals says there are.
 *
 * Whoever can write approvals.db can write "confirmed" there. What he cannot do is sign a receipt,
 * and every word has one. Its run stands beside the word and is only where to look: what counts is
 * what the receipt says, once its signature holds.
 *
 *    the word's run ended with an outcome, by whom, "approve", of this approval and this digest
 *    the last word is no older than words may be
 *    behind the first word nothing ran by them, nobody rejected it, none of them was dismissed */

#include "flow/advisory-parts.h"
#include "flow/govern-parts.h"

#include "flow/record/record.h"
#include "lib/base/clock.h"
#include "lib/json/json.h"

#include <string.h>
#include <time.h>

#define RECEIPT_WAIT_US (10ULL * 1000 * 1000) /* for one that is just being written */
#define LOOK_EVERY_MS 10
#define CUSTODIAN "custodian:"

#define ASK_AGAIN "ask again, and let it be confirmed again"

struct hearing {
    const struct approval *approval;
    const struct approval_voice *word; /* the one that is looked at */
    uint64_t first_seq;                /* of the earliest word */
    int64_t last_at;                   /* when the latest was given */
};

static bool says(const struct json *json, const char *key, const char *text)
{
    struct str said = {0};

    return json_is_text(json_get(json, key), &said) && str_is(said, text);
}

/* ---- each word ---- */

static const struct json *approval_of(const struct json *receipt)
{
    return json_get(json_get(receipt, "outcome"), "approval");
}

static int on_word(void *context, const struct json *receipt, struct err *err)
{
    struct hearing *hearing = context;
    const struct json *about = approval_of(receipt);
    int64_t seq = 0, at = receipt_seconds(receipt);

    if (!receipt_is_done(receipt))
        return err_set(err, ERR_FORBIDDEN, "whoever gave it was stopped before that was recorded");
    if (!says(receipt, "action", "approve") || !says(receipt, "principal", hearing->word->by) ||
        !says(about, "approval_id", hearing->approval->id) ||
        !says(about, "digest", hearing->approval->digest) ||
        !json_is_int(json_get(receipt, "seq"), &seq) || seq < 1)
        return err_set(err, ERR_FORBIDDEN, "its receipt in the ledger says something else");
    if (!hearing->first_seq || (uint64_t)seq < hearing->first_seq)
        hearing->first_seq = (uint64_t)seq;
    if (at > hearing->last_at)
        hearing->last_at = at;
    return 0;
}

/* Who confirms has his word in the list a moment before its receipt is there, and may be killed in
 * between: then it was no word. */
static int hear_word(struct record *record, struct hearing *hearing, struct err *err)
{
    static const struct timespec moment = {.tv_nsec = LOOK_EVERY_MS * 1000000L};
    uint64_t until_us = clock_us() + RECEIPT_WAIT_US;
    int got;

    if (!*hearing->word->run_id)
        return err_set(err, ERR_FORBIDDEN,
                       "an older Brig took it, which did not say where the ledger has it");
    while ((got = record_end_of(record, hearing->word->run_id, on_word, hearing, err)) == 0 &&
           clock_us() < until_us)
        (void)nanosleep(&moment, NULL);
    if (got == 0)
        return err_set(err, ERR_FORBIDDEN, "it has no receipt in the ledger");
    if (got < 0 && err->code == ERR_NOT_FOUND)
        return err_set(err, ERR_FORBIDDEN, "the ledger does not know it");
    return got < 0 ? -1 : 0;
}

static int hear_words(struct record *record, struct hearing *hearing, struct err *err)
{
    const struct approval *approval = hearing->approval;

    for (size_t i = 0; i < approval->word_n; i++) {
        struct err why;

        hearing->word = &approval->words[i];
        if (hear_word(record, hearing, &why) < 0)
            return err_set(err, why.code,
                           "the word of %.100s on approval %s does not count: %.200s; %s",
                           hearing->word->by, approval->id, why.text, ASK_AGAIN);
    }
    return 0;
}

/* ---- what came after them ---- */

static bool is_of_custodian(const struct approval *approval, const struct json *receipt)
{
    struct str name = {0};

    if (!json_is_text(json_get(approval_of(receipt), "custodian"), &name))
        return false;
    for (size_t i = 0; i < approval->word_n; i++) {
        const char *by = approval->words[i].by;

        if (strncmp(by, CUSTODIAN, strlen(CUSTODIAN)) == 0 && str_is(name, by + strlen(CUSTODIAN)))
            return true;
    }
    return false;
}

/* What this receipt means for the words before it; NULL: nothing. */
static const char *ended_by(const struct approval *approval, const struct json *receipt)
{
    const struct json *of_run = json_get(receipt, "approval");

    if (of_run && json_get(of_run, "by") && says(of_run, "approval_id", approval->id) &&
        (says(receipt, "kind", "intent") || says(receipt, "kind", "decision")))
        return "it was used before, says the ledger, and the list of approvals does not know it: "
               "an older one was put back";
    if (!receipt_is_done(receipt))
        return NULL;
    if (says(receipt, "action", "reject") &&
        says(approval_of(receipt), "approval_id", approval->id))
        return "it was rejected since";
    if (says(receipt, "action", "dismiss") && is_of_custodian(approval, receipt))
        return "one of those who confirmed it is no custodian any more";
    if (says(receipt, "action", "approvals-renew"))
        return "the list of approvals was begun anew since";
    return NULL;
}

static int on_later(void *context, const struct json *receipt, struct err *err)
{
    const struct hearing *hearing = context;
    const char *why = ended_by(hearing->approval, receipt);

    return why ? err_set(err, ERR_CONFLICT, "what was said on approval %s does not count: %s; %s",
                         hearing->approval->id, why, ASK_AGAIN)
               : 0;
}

static int check_time(const struct hearing *hearing, const struct approval_terms *terms,
                      struct err *err)
{
    int64_t use_s = terms && terms->use_s ? (int64_t)terms->use_s : APPROVAL_USE_S;

    if ((int64_t)time(NULL) <= hearing->last_at + use_s)
        return 0;
    return err_set(err, ERR_CONFLICT,
                   "what was said on approval %s does not count: it is too long ago, says the "
                   "ledger; %s",
                   hearing->approval->id, ASK_AGAIN);
}

int govern_check_words(struct govern *govern, const struct run *run,
                       const struct approval *approval, bool first_use, struct err *err)
{
    AUTO(record) struct record *record = NULL;
    const struct approval_terms *terms = run->verdict.terms;
    struct hearing hearing = {.approval = approval};

    if (approval_enough(approval, terms, run->action.principal, err) < 0)
        return err_in(err, "approval %s is not confirmed as it would have to be", approval->id);
    if (govern_read_ledger(govern, &record, err) < 0 || hear_words(record, &hearing, err) < 0)
        return -1;
    if (!first_use)
        return 0;
    return check_time(&hearing, terms, err) < 0
               ? -1
               : record_about_approval(record, approval->id, hearing.first_seq, on_later, &hearing,
                                       err);
}
