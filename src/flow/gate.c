/* SPDX-License-Identifier: Apache-2.0 */

/* The deployment gate: what the ledger and the chains say of an agent, two custodians' words on
 * that, and the release that follows.
 *
 * STATE/gate/NAME, NAME being the hash of the agent's id, holds what was signed and released. It is
 * believed as far as the ledger says the same: the last word on an agent is the last receipt.
 * STATE/gate/ledger-checked is how far the ledger was verified by governed runs. */

#include "flow/advisory-parts.h"
#include "flow/govern-parts.h"

#include "flow/advise/advise.h"
#include "flow/approve/approve.h"
#include "flow/record/record.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <time.h>

#define GATE_TEXT_MAX (1024UL * 1024)
#define LOCK_WAIT_MS 5000
#define CLOCK_STEP_S 10 /* clocks are set right by some seconds, back as well */

static const char *text_at(struct arena *mem, const struct json *json, const char *key)
{
    struct str text = {"", 0};

    (void)json_is_text(json_get(json, key), &text);
    return arena_text(mem, text);
}

/* ---- what the chains know ---- */

static void read_run(struct govern *govern, struct arena *mem, const struct anchor *anchor,
                     struct gate_run *out)
{
    AUTO(advise) struct advise *advise = NULL;
    struct err err;

    *out = (struct gate_run){.id = anchor->id,
                             .agent_version = anchor->version,
                             .constitution_sha256 = anchor->constitution,
                             .requester = "",
                             .channel = anchor->channel,
                             .started_at = anchor->started,
                             .seq = anchor->seq};
    if (advise_open(govern->state_dir, anchor->id, &advise, &err) < 0) {
        out->fault = arena_text(mem, str_of(err.text));
        return;
    }
    out->fault = anchor_differs(mem, anchor, advise);
    out->requester = arena_text(mem, str_of(advise->terms.requester));
    out->profile = advise_profile(&advise->terms);
    out->tally = advise->tally;
}

/* All runs of an agent, oldest first; chains are read of the last ones only. */
struct known {
    struct anchors anchors;
    struct gate_run *runs;
    size_t n;
};

static void know_runs(struct govern *govern, struct arena *mem, struct known *out)
{
    out->n = out->anchors.n;
    out->runs = arena_array(mem, struct gate_run, out->n + 1);
    for (size_t i = 0; i < out->n; i++) {
        if (out->n - i <= 2 * GATE_RUNS_MAX)
            read_run(govern, mem, &out->anchors.of[i], &out->runs[i]);
        else
            out->runs[i] = (struct gate_run){.id = out->anchors.of[i].id,
                                             .agent_version = out->anchors.of[i].version,
                                             .constitution_sha256 = out->anchors.of[i].constitution,
                                             .channel = out->anchors.of[i].channel,
                                             .fault = "it is too long ago"};
    }
}

static int know(struct govern *govern, struct arena *mem, const char *agent_id, struct known **out,
                struct err *err)
{
    struct known *known = arena_new(mem, struct known);

    if (anchors_read(govern, mem, agent_id, &known->anchors, err) < 0 ||
        anchors_add_strays(govern, &known->anchors, 0, err) < 0)
        return -1;
    know_runs(govern, mem, known);
    *out = known;
    return 0;
}

int govern_gate_report(struct govern *govern, struct arena *mem, const char *agent_id,
                       const char *version, unsigned n, struct gate_report *out, struct err *err)
{
    struct known *known = NULL;

    if (n == 0)
        n = GATE_RUNS_DEFAULT;
    if (n > GATE_RUNS_MAX)
        return err_set(err, ERR_LIMIT, "a gate looks at no more than %d runs", GATE_RUNS_MAX);
    if (know(govern, mem, agent_id, &known, err) < 0)
        return -1;
    if (!version && known->n == 0)
        return err_set(err, ERR_NOT_FOUND, "agent \"%.100s\" has no advisory run", agent_id);
    if (gate_evaluate(mem, agent_id, version ? version : known->runs[known->n - 1].agent_version, n,
                      known->runs, known->n, out, err) < 0)
        return -1;
    out->ledger = &known->anchors.gate;
    return 0;
}

/* ---- who signs ---- */

static const char *folder_of(struct govern *govern, struct arena *mem, const char *agent_id)
{
    char hash[HASH_TEXT_BYTES];

    hash_text_of(str_of(agent_id), hash);
    return arena_printf(mem, "%s/gate/%.32s", govern->state_dir, hash + strlen("sha256:"));
}

struct wanted_custodian {
    const char *name;
    struct custodian found;
    bool is_found;
};

static int on_custodian(void *context, const struct custodian *custodian, struct err *err)
{
    struct wanted_custodian *wanted = context;

    (void)err;
    if (strcmp(custodian->name, wanted->name) == 0) {
        wanted->found = *custodian;
        wanted->is_found = true;
    }
    return 0;
}

static bool is_requester(const struct gate_report *report, const char *name)
{
    for (size_t i = 0; i < report->run_n; i++) {
        const char *by = report->runs[i].requester;
        const char *colon = strrchr(by, ':');

        if (strcasecmp(by, name) == 0 || (colon && strcasecmp(colon + 1, name) == 0))
            return true;
    }
    return false;
}

/* Why this one's word does not count for this report, or NULL. */
static const char *unfit(struct govern *govern, struct approvals *approvals,
                         const struct gate_report *report, const char *name, struct public_key *key)
{
    struct wanted_custodian wanted = {.name = name};
    struct public_key own;
    uint64_t enrolled;
    struct err err;

    if (custodian_each(approvals, on_custodian, &wanted, &err) < 0 || !wanted.is_found)
        return "he is no custodian here";
    if (wanted.found.revoked_at)
        return "he is no custodian any more";
    if (strcasecmp(name, report->agent_id) == 0)
        return "an agent does not release itself";
    if (is_requester(report, name))
        return "he let the agent run, and cannot judge it";
    if (record_own_key(govern->state_dir, &own, &err) == 0 &&
        memcmp(own.b, wanted.found.key.b, sizeof own.b) == 0)
        return "that key signs receipts, and is nobody's";
    enrolled = gate_ledger_enrolled(report->ledger, name, &wanted.found.key);
    if (!enrolled)
        return "the ledger does not say that this is his key";
    if (report->run_n && enrolled > report->runs[0].seq)
        return "he became a custodian when the first of the runs had begun";
    *key = wanted.found.key;
    return NULL;
}

/* ---- words on disk ---- */

struct word {
    struct gate_signoff signoff;
    struct signature signature;
    const char *report;
};

static int read_doc(struct arena *mem, const char *path, const struct json **out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(GATE_TEXT_MAX);
    struct mark where;

    if (access(path, F_OK) < 0)
        return err_set(err, ERR_NOT_FOUND, "%s is not there", path);
    if (file_read(AT_FDCWD, path, &text, err) < 0)
        return -1;
    if (json_parse(mem, arena_str(mem, buf_str(&text)), out, &where, err) == 0)
        return 0;
    err->code = ERR_INTEGRITY; /* it was written here */
    return err_in(err, "%s", path);
}

static int write_doc(const char *path, const struct json *json, struct err *err)
{
    AUTO_BUF struct buf text = BUF(GATE_TEXT_MAX);

    if (json_canonical(json, &text, err) < 0 || buf_add_byte(&text, '\n', err) < 0)
        return -1;
    return file_replace(path, text.p, text.n, 0600, err);
}

static struct json *word_json(struct arena *mem, const struct word *word)
{
    struct json *json = json_object(mem);
    char signature[2 * SIGNATURE_BYTES + 1];

    hex_encode(word->signature.b, sizeof word->signature.b, signature);
    json_put_text(mem, json, "custodian", word->signoff.custodian);
    json_put_int(mem, json, "expires_at", word->signoff.expires_at);
    json_put_text(mem, json, "gate_report_sha256", word->report);
    json_put_text(mem, json, "signature", signature);
    return json;
}

static bool read_word(struct arena *mem, const struct json *json, struct word *out)
{
    struct str signature = {0};

    *out = (struct word){.signoff = {.custodian = text_at(mem, json, "custodian")},
                         .report = text_at(mem, json, "gate_report_sha256")};
    return json_is_int(json_get(json, "expires_at"), &out->signoff.expires_at) &&
           json_is_text(json_get(json, "signature"), &signature) &&
           hex_decode(signature, out->signature.b, sizeof out->signature.b);
}

/* Why a word does not hold now, or NULL. */
static const char *hollow(struct govern *govern, struct approvals *approvals,
                          const struct gate_report *report, const struct word *word,
                          struct public_key *key)
{
    const char *why = unfit(govern, approvals, report, word->signoff.custodian, key);
    int64_t now = (int64_t)time(NULL);
    struct hash preimage;
    struct err err;

    if (why)
        return why;
    if (strcmp(word->report, report->sha256) != 0)
        return "it is on another report";
    if (word->signoff.expires_at <= now)
        return "its time is over";
    if (word->signoff.expires_at > now + GATE_VALID_S + CLOCK_STEP_S)
        return "it would hold for longer than any may; or the clock went back";
    if (gate_preimage(report, &word->signoff, &preimage, &err) < 0 ||
        !signature_holds(&word->signature, &preimage, key))
        return "the signature does not hold";
    return NULL;
}

/* ---- looking at an agent ---- */

#define WORDS_MAX 64

struct counting {
    struct govern *govern;
    struct arena *mem;
    struct approvals *approvals;
    const struct gate_report *report;
    struct gate_words *words;
    struct public_key keys[COUNT(((struct gate_words *)0)->custodians)];
};

/* Why it is not another person's word, or NULL. */
static const char *count_word(struct counting *counting, const struct word *word)
{
    struct gate_words *words = counting->words;
    struct public_key key;
    const char *why = hollow(counting->govern, counting->approvals, counting->report, word, &key);
    char signature[2 * SIGNATURE_BYTES + 1];

    hex_encode(word->signature.b, sizeof word->signature.b, signature);
    if (!why)
        why = gate_ledger_doubts(counting->report->ledger, signature);
    for (unsigned i = 0; !why && i < words->valid; i++)
        if (memcmp(counting->keys[i].b, key.b, sizeof key.b) == 0 ||
            strcasecmp(words->custodians[i], word->signoff.custodian) == 0)
            why = "one person's word counts once";
    if (!why && words->valid < COUNT(words->custodians)) {
        counting->keys[words->valid] = key;
        words->custodians[words->valid++] = word->signoff.custodian;
    }
    return why;
}

/* The words a document holds on a report, each with the reason when it does not count. */
static int count_words(struct govern *govern, struct arena *mem, const struct gate_report *report,
                       const struct json *doc, struct gate_words *out, struct err *err)
{
    AUTO(approvals) struct approvals *approvals = NULL;
    struct counting counting = {govern, mem, NULL, report, out, {{{0}}}};
    const struct json *list = json_get(doc, "words");

    *out = (struct gate_words){.list = json_array(mem)};
    if (approvals_open(govern->state_dir, &approvals, err) < 0)
        return -1;
    counting.approvals = approvals;
    for (const struct json *one = list ? list->first : NULL; one; one = one->next) {
        struct word word;
        bool is_word = read_word(mem, one, &word);
        const char *why = is_word ? count_word(&counting, &word) : "it cannot be read";
        struct json *shown = word_json(mem, &word);

        json_put_text(mem, shown, "why_not", why ? why : "");
        json_push(out->list, shown);
    }
    return 0;
}

static int read_words(struct govern *govern, struct arena *mem, const struct gate_report *report,
                      struct gate_words *out, struct err *err)
{
    const struct json *doc = NULL;

    *out = (struct gate_words){.list = json_array(mem)};
    if (read_doc(mem, arena_printf(mem, "%s/words.json", folder_of(govern, mem, report->agent_id)),
                 &doc, err) < 0)
        return err->code == ERR_NOT_FOUND ? 0 : -1;
    return count_words(govern, mem, report, doc, out, err);
}

int govern_gate_look(struct govern *govern, struct arena *mem, const char *agent_id,
                     const char *version, unsigned n, struct gate_report *report,
                     struct gate_words *words, struct err *err)
{
    if (govern_gate_report(govern, mem, agent_id, version, n, report, err) < 0)
        return -1;
    return read_words(govern, mem, report, words, err);
}

/* ---- signing ---- */

static struct json *about(struct arena *mem, const struct gate_report *report, const char *stage)
{
    struct json *json = json_object(mem);

    json_put_text(mem, json, "agent_id", report->agent_id);
    json_put_text(mem, json, "agent_version", report->agent_version);
    json_put_text(mem, json, "gate_report_sha256", report->sha256);
    json_put_int(mem, json, "n", report->n);
    json_put_text(mem, json, "stage", stage);
    return json;
}

static int refuse_open(const struct gate_report *report, struct err *err)
{
    if (report->all_passed)
        return 0;
    return err_set(err, ERR_FORBIDDEN,
                   "the gate is closed: \"brig gate report %s\" says which condition is not met",
                   report->agent_id);
}

/* Two who sign at once would each write what the other had not read. It is let go with *out. */
static int lock_folder(const char *folder, int *out, struct err *err)
{
    AUTO_FD int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return err_os(err, "opening %s", folder);
    if (!lock_wait(fd, LOCK_EX, LOCK_WAIT_MS))
        return errno == EWOULDBLOCK
                   ? err_set(err, ERR_UNAVAILABLE,
                             "somebody else has been signing for %d seconds; try again",
                             LOCK_WAIT_MS / 1000)
                   : err_os(err, "locking %s", folder);
    *out = TAKE_FD(fd);
    return 0;
}

/* What there was of others, and this one in place of what he said before. */
static int keep_word(struct govern *govern, struct arena *mem, const struct gate_report *report,
                     const struct word *word, struct err *err)
{
    const char *folder = folder_of(govern, mem, report->agent_id);
    const char *path = arena_printf(mem, "%s/words.json", folder);
    const struct json *doc = NULL, *list;
    struct json *made = json_object(mem), *words = json_array(mem);
    AUTO_FD int lock_fd = -1;
    struct word old;

    if (dir_make(arena_printf(mem, "%s/gate", govern->state_dir), 0700, err) < 0 ||
        dir_make(folder, 0700, err) < 0 || lock_folder(folder, &lock_fd, err) < 0)
        return -1;
    if (read_doc(mem, path, &doc, err) < 0 && err->code != ERR_NOT_FOUND)
        return -1;
    list = doc ? json_get(doc, "words") : NULL;
    for (const struct json *one = list ? list->first : NULL; one; one = one->next)
        if (read_word(mem, one, &old) && words->n < WORDS_MAX - 1 &&
            strcmp(old.report, report->sha256) == 0 &&
            strcmp(old.signoff.custodian, word->signoff.custodian) != 0)
            json_push(words, word_json(mem, &old));
    json_push(words, word_json(mem, word));
    json_put_text(mem, made, "agent_id", report->agent_id);
    json_put(made, "words", words);
    return write_doc(path, made, err);
}

static int refuse_word(const char *custodian, const char *why, struct err *err)
{
    return err_set(err, ERR_FORBIDDEN, "the word of %.64s does not count: %s", custodian, why);
}

int govern_gate_may_sign(struct govern *govern, const struct gate_report *report,
                         const char *custodian, struct err *err)
{
    AUTO(approvals) struct approvals *approvals = NULL;
    struct public_key key;
    const char *why;

    if (approvals_open(govern->state_dir, &approvals, err) < 0)
        return -1;
    why = unfit(govern, approvals, report, custodian, &key);
    return why ? refuse_word(custodian, why, err) : 0;
}

static int take_word(struct govern *govern, struct arena *mem, const struct gate_report *report,
                     const struct word *word, struct err *err)
{
    AUTO(approvals) struct approvals *approvals = NULL;
    struct public_key key;
    const char *why;

    if (refuse_open(report, err) < 0 || approvals_open(govern->state_dir, &approvals, err) < 0)
        return -1;
    if (word->signoff.expires_at > (int64_t)time(NULL) + GATE_VALID_S)
        return err_set(err, ERR_INVALID, "a word on a report holds for at most %d days",
                       GATE_VALID_S / 86400);
    why = hollow(govern, approvals, report, word, &key);
    if (why)
        return refuse_word(word->signoff.custodian, why, err);
    return keep_word(govern, mem, report, word, err);
}

int govern_gate_sign(struct govern *govern, const struct request *request,
                     const struct gate_report *report, const struct gate_signoff *signoff,
                     const struct signature *signature, struct run *run, struct err *err)
{
    struct word word = {*signoff, *signature, report->sha256};
    struct request made = *request;
    char hex[2 * SIGNATURE_BYTES + 1];
    struct json *json;
    struct deed deed;
    bool failed;

    made.principal = arena_printf(&run->mem, "custodian:%.64s", signoff->custodian);
    if (deed_begin(&deed, govern, &made, ACTION_GATE_SIGN, run, err) < 0)
        return -1;
    failed = take_word(govern, &run->mem, report, &word, err) < 0;
    json = gate_signed(&run->mem, report, signoff);
    hex_encode(signature->b, sizeof signature->b, hex);
    json_put_text(&run->mem, json, "signature", hex);
    json_put_text(&run->mem, json, "stage", failed ? "refused" : "sign");
    run->outcome.advisory = json;
    return deed_end(&deed, failed ? REASON_ADVISORY_FAILED : REASON_NONE, err);
}

/* ---- releasing ---- */

static int write_release(struct govern *govern, struct arena *mem, const struct gate_report *report,
                         const struct gate_words *words, struct err *err)
{
    struct json *json = json_object(mem);

    json_put_text(mem, json, "agent_id", report->agent_id);
    json_put_text(mem, json, "agent_version", report->agent_version);
    json_put_text(mem, json, "gate_report_sha256", report->sha256);
    json_put_int(mem, json, "n", report->n);
    json_put_text(mem, json, "last_run", report->runs[report->run_n - 1].id);
    json_put(json, "words", words->list);
    return write_doc(arena_printf(mem, "%s/release.json", folder_of(govern, mem, report->agent_id)),
                     json, err);
}

static int release(struct govern *govern, struct run *run, const struct gate_report *report,
                   struct err *err)
{
    struct gate_words words;

    if (refuse_open(report, err) < 0 || read_words(govern, &run->mem, report, &words, err) < 0)
        return -1;
    if (words.valid < GATE_SIGNATURES)
        return err_set(err, ERR_FORBIDDEN,
                       "%u of %d custodians have signed this report (%.19s); \"brig gate sign %s "
                       "--runs %u --as NAME\"",
                       words.valid, GATE_SIGNATURES, report->sha256, report->agent_id, report->n);
    return write_release(govern, &run->mem, report, &words, err);
}

int govern_gate_release(struct govern *govern, const struct request *request,
                        const struct gate_report *report, struct run *run, struct err *err)
{
    struct deed deed;
    bool failed;

    if (deed_begin(&deed, govern, request, ACTION_GATE_RELEASE, run, err) < 0)
        return -1;
    failed = release(govern, run, report, err) < 0;
    run->outcome.advisory = about(&run->mem, report, failed ? "refused" : "release");
    return deed_end(&deed, failed ? REASON_ADVISORY_FAILED : REASON_NONE, err);
}

int govern_gate_revoke(struct govern *govern, const struct request *request, const char *agent_id,
                       struct run *run, struct err *err)
{
    const struct gate_report nothing = {.agent_id = agent_id, .agent_version = ""};
    const char *folder = folder_of(govern, &run->mem, agent_id);
    struct deed deed;
    bool failed;

    if (deed_begin(&deed, govern, request, ACTION_GATE_REVOKE, run, err) < 0)
        return -1;
    /* The receipt revokes it; what lies about is only cleared away. */
    failed = dir_remove(AT_FDCWD, folder, err) < 0;
    run->outcome.advisory = about(&run->mem, &nothing, "revoke");
    return deed_end(&deed, failed ? REASON_ADVISORY_FAILED : REASON_NONE, err);
}

/* ---- whether it stands ---- */

/* The report as it was, over the same runs as they are now. */
static int read_again(struct arena *mem, const struct known *known, const struct json *release,
                      const char *agent_id, struct gate_report *out, struct err *err)
{
    const char *last = text_at(mem, release, "last_run");
    int64_t n = 0;
    size_t until = 0;

    (void)json_is_int(json_get(release, "n"), &n);
    for (size_t i = 0; i < known->n; i++)
        if (strcmp(known->runs[i].id, last) == 0)
            until = i + 1;
    if (n < 1 || n > GATE_RUNS_MAX)
        return err_set(err, ERR_INTEGRITY, "the release of %.100s says nothing", agent_id);
    if (gate_evaluate(mem, agent_id, text_at(mem, release, "agent_version"), (unsigned)n,
                      known->runs, until, out, err) < 0)
        return -1;
    out->ledger = &known->anchors.gate;
    return 0;
}

/* Of the first that holds no longer, why. */
static const char *no_longer_signed(struct arena *mem, const struct gate_words *words)
{
    json_each(word, words->list)
    {
        const char *why = text_at(mem, word, "why_not");

        if (*why)
            return arena_printf(mem, "its signatures hold no longer; that of %.64s: %s",
                                text_at(mem, word, "custodian"), why);
    }
    return "its signatures hold no longer";
}

static const char *stands(struct govern *govern, struct arena *mem, const struct known *known,
                          const char *version, struct gate_report *out)
{
    const char *agent_id = known->anchors.agent_id;
    const struct json *release = NULL;
    struct gate_words words;
    const char *why;
    struct err err;

    if (!known->anchors.released ||
        read_doc(mem, arena_printf(mem, "%s/release.json", folder_of(govern, mem, agent_id)),
                 &release, &err) < 0)
        return "it was not released, or that was revoked";
    if (read_again(mem, known, release, agent_id, out, &err) < 0)
        return arena_text(mem, str_of(err.text));
    if (version && strcmp(version, out->agent_version) != 0)
        return "another version of it was released";
    if (strcmp(out->sha256, known->anchors.released) != 0 || !out->all_passed)
        return "the runs it was released for are not what they were";
    why = gate_voided(mem, out, known->runs, known->n);
    if (why)
        return why;
    if (count_words(govern, mem, out, release, &words, &err) < 0)
        return arena_text(mem, str_of(err.text));
    return words.valid < GATE_SIGNATURES ? no_longer_signed(mem, &words) : NULL;
}

const char *govern_gate_stands(struct govern *govern, struct arena *mem, const char *agent_id,
                               const char *version, struct gate_report *out)
{
    struct known *known = NULL;
    struct err err;

    return know(govern, mem, agent_id, &known, &err) < 0 ? arena_text(mem, str_of(err.text))
                                                         : stands(govern, mem, known, version, out);
}

const char *gate_stands_for_run(struct govern *govern, struct arena *mem, const char *agent_id,
                                const char *version, struct gate_report *out)
{
    struct known *known = arena_new(mem, struct known);
    struct anchors *anchors = &known->anchors;
    struct err err;

    /* What lies about from before the release was looked at then. */
    if (anchors_recall(govern, mem, agent_id, anchors, &err) < 0 ||
        (anchors->released && anchors_add_strays(govern, anchors, anchors->released_at, &err) < 0))
        return arena_text(mem, str_of(err.text));
    know_runs(govern, mem, known);
    return stands(govern, mem, known, version, out);
}
