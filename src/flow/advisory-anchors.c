/* SPDX-License-Identifier: Apache-2.0 */

/* Both ends of every session's chain, as the ledger has them. */

#include "flow/advisory-parts.h"
#include "flow/govern-parts.h"

#include "flow/advise/advise.h"
#include "flow/record/record.h"
#include "lib/base/io.h"
#include "lib/json/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUNS_SEEN_MAX 100000

static const char *text_at(struct arena *mem, const struct json *json, const char *key)
{
    struct str text = {"", 0};

    (void)json_is_text(json_get(json, key), &text);
    return arena_text(mem, text);
}

struct anchor *anchor_find(const struct anchors *anchors, const char *id)
{
    for (size_t i = anchors->n; i > 0; i--)
        if (strcmp(anchors->of[i - 1].id, id) == 0)
            return &anchors->of[i - 1];
    return NULL;
}

static int make_room(struct anchors *anchors, struct err *err)
{
    size_t cap = anchors->cap ? anchors->cap * 2 : 64;
    struct anchor *more;

    if (anchors->n == RUNS_SEEN_MAX)
        return err_set(err, ERR_LIMIT, "%s has more than %d runs",
                       anchors->agent_id ? anchors->agent_id : "the ledger", RUNS_SEEN_MAX);
    if (anchors->n < anchors->cap)
        return 0;
    more = arena_array(anchors->mem, struct anchor, cap);
    if (anchors->n)
        memcpy(more, anchors->of, anchors->n * sizeof *more);
    anchors->of = more;
    anchors->cap = cap;
    return 0;
}

static int add_anchor(struct anchors *anchors, const struct json *about, const struct json *receipt,
                      struct err *err)
{
    int64_t seq = 0;

    if (make_room(anchors, err) < 0)
        return -1;
    (void)json_is_int(json_get(receipt, "seq"), &seq);
    anchors->of[anchors->n++] =
        (struct anchor){.id = text_at(anchors->mem, about, "run_id"),
                        .version = text_at(anchors->mem, about, "agent_version"),
                        .constitution = text_at(anchors->mem, about, "constitution_sha256"),
                        .agent_id = text_at(anchors->mem, about, "agent_id"),
                        .channel = text_at(anchors->mem, about, "channel"),
                        .started = receipt_seconds(receipt),
                        .intent = text_at(anchors->mem, receipt, "receipt_id"),
                        .seq = (uint64_t)seq};
    return 0;
}

static void end_anchor(struct anchors *anchors, const struct json *about)
{
    struct anchor *anchor = anchor_find(anchors, text_at(anchors->mem, about, "run_id"));
    int64_t events = 0;

    if (!anchor)
        return;
    (void)json_is_int(json_get(about, "events"), &events);
    anchor->has_end = true;
    anchor->events = (uint64_t)events;
    anchor->head = text_at(anchors->mem, about, "head_hash");
}

static int on_receipt(void *context, const struct json *receipt, struct err *err)
{
    struct anchors *anchors = context;
    const struct json *about = json_get(receipt, "advisory");
    struct str agent = {0}, kind = {0}, stage = {0};

    if (about && (!json_is_text(json_get(about, "agent_id"), &agent) ||
                  (anchors->agent_id && !str_is(agent, anchors->agent_id))))
        return 0;
    if (anchors->agent_id)
        gate_ledger_hear(&anchors->gate, receipt);
    if (!about)
        return 0;
    (void)json_is_text(json_get(receipt, "kind"), &kind);
    (void)json_is_text(json_get(about, "stage"), &stage);
    if (str_is(stage, "start") && str_is(kind, "intent"))
        return add_anchor(anchors, about, receipt, err);
    if (str_is(stage, "end") && str_is(kind, "outcome"))
        end_anchor(anchors, about);
    if (str_is(stage, "release") && str_is(kind, "outcome")) {
        anchors->released = text_at(anchors->mem, about, "gate_report_sha256");
        anchors->released_at = receipt_seconds(receipt);
    }
    if (str_is(stage, "revoke") && str_is(kind, "outcome"))
        anchors->released = NULL;
    return 0;
}

/* A ledger that does not hold says nothing. */
static int check_ledger(struct govern *govern, struct record *record, struct err *err)
{
    struct record_trust trust = {.why = "its own"};
    const struct record_check check = {.trust = &trust};
    struct record_report report;

    if (record_own_key(govern->state_dir, &trust.key, err) < 0 ||
        record_verify(record, &check, &report, err) < 0)
        return -1;
    return report.integrity == INTEGRITY_INTACT
               ? 0
               : err_set(err, ERR_INTEGRITY, "the ledger does not hold: %s", report.fault_text);
}

static struct anchors anchors_of(struct arena *mem, const char *agent_id)
{
    return (struct anchors){.mem = mem, .agent_id = agent_id, .gate = {.mem = mem}};
}

static int read_custodians(struct record *record, struct anchors *out, struct err *err)
{
    static const char *const words[] = {"\"action\":\"enroll\"", "\"action\":\"dismiss\"",
                                        "\"action\":\"approvals-renew\""};

    for (size_t i = 0; i < COUNT(words); i++)
        if (record_with(record, words[i], on_receipt, out, err) < 0)
            return -1;
    return 0;
}

int custodians_read(struct govern *govern, struct arena *mem, struct gate_ledger *out,
                    struct err *err)
{
    AUTO(record) struct record *record = NULL;
    struct anchors found = anchors_of(mem, ""); /* of no agent */

    if (govern_read_ledger(govern, &record, err) < 0 || check_ledger(govern, record, err) < 0 ||
        read_custodians(record, &found, err) < 0)
        return -1;
    *out = found.gate;
    return 0;
}

int anchors_read(struct govern *govern, struct arena *mem, const char *agent_id,
                 struct anchors *out, struct err *err)
{
    AUTO(record) struct record *record = NULL;

    *out = anchors_of(mem, agent_id);
    if (govern_read_ledger(govern, &record, err) < 0 || check_ledger(govern, record, err) < 0 ||
        (agent_id && read_custodians(record, out, err) < 0))
        return -1;
    return record_with(record, "\"advisory\":{", on_receipt, out, err);
}

/* What was verified once is not verified at every run. */
static int recall(struct govern *govern, const char *path, struct anchors *out, struct err *err)
{
    AUTO(record) struct record *record = NULL;
    struct record_trust trust = {.why = "its own"};
    const struct record_advised ask = {.trust = &trust,
                                       .agent_id = out->agent_id,
                                       .path = path,
                                       .only_look = govern->only_looks,
                                       .visit = on_receipt,
                                       .context = out};
    uint64_t verified;

    if (govern_read_ledger(govern, &record, err) < 0 ||
        record_own_key(govern->state_dir, &trust.key, err) < 0)
        return -1;
    return record_advised(record, &ask, &verified, err);
}

int anchors_recall(struct govern *govern, struct arena *mem, const char *agent_id,
                   struct anchors *out, struct err *err)
{
    const char *folder = arena_printf(mem, "%s/gate", govern->state_dir);
    const char *path = arena_printf(mem, "%s/ledger-checked", folder);

    *out = anchors_of(mem, agent_id);
    if ((govern->only_looks || dir_make(folder, 0700, err) == 0) &&
        recall(govern, path, out, err) == 0)
        return 0;
    /* Whatever it was: what was kept does not count, and all is looked at. */
    if (!govern->only_looks)
        (void)unlink(path);
    return anchors_read(govern, mem, agent_id, out, err);
}

/* ---- sessions the ledger does not know ---- */

struct straying {
    struct govern *govern;
    struct anchors *anchors;
    const char **known; /* in order */
    size_t known_n;
    int64_t since;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void know_names(struct straying *straying)
{
    const struct anchors *anchors = straying->anchors;

    straying->known_n = anchors->n;
    straying->known = arena_array(anchors->mem, const char *, anchors->n + 1);
    for (size_t i = 0; i < anchors->n; i++)
        straying->known[i] = anchors->of[i].id;
    qsort(straying->known, straying->known_n, sizeof *straying->known, by_text);
}

static bool is_old(const struct straying *straying, const char *id)
{
    AUTO_FREE char *path = NULL;
    struct stat st;

    if (asprintf(&path, "%s/advisory/%s", straying->govern->state_dir, id) < 0) {
        path = NULL;
        return false;
    }
    /* A file system's clock is a moment behind, and seconds are rounded down. */
    return straying->since && stat(path, &st) == 0 &&
           (int64_t)st.st_ctim.tv_sec < straying->since - 1;
}

/* Who is killed before its beginning is in the ledger leaves one that never was. One that began
 * since the ledger was read is in it now. */
static int is_stray(struct straying *straying, struct advise *glance, bool *out, struct err *err)
{
    AUTO(record) struct record *record = NULL;
    AUTO(advise) struct advise *whole = NULL;
    struct err ignored;
    bool is_known;

    *out = false;
    if (!*glance->intent_id &&
        advise_open(straying->govern->state_dir, glance->id, &whole, &ignored) == 0 &&
        whole->tally.events <= ADVISE_FIRST_EVENTS)
        return 0;
    if (govern_read_ledger(straying->govern, &record, err) < 0 ||
        record_knows(record, glance->id, &is_known, err) < 0)
        return -1;
    *out = !is_known;
    return 0;
}

static int add_stray(struct anchors *anchors, const struct advise *glance, struct err *err)
{
    const struct advise_terms *terms = &glance->terms;

    if (make_room(anchors, err) < 0)
        return -1;
    anchors->of[anchors->n++] = (struct anchor){
        .id = arena_text(anchors->mem, str_of(glance->id)),
        .agent_id = anchors->agent_id,
        .version = arena_text(anchors->mem, str_of(terms->agent_version)),
        .constitution = arena_text(anchors->mem, str_of(glance->constitution_sha256)),
        .channel = arena_text(anchors->mem, str_of(terms->channel)),
        .started = glance->created_at,
        .intent = "",
        .is_stray = true};
    return 0;
}

static int on_folder(void *context, const char *id, struct err *err)
{
    struct straying *straying = context;
    AUTO(advise) struct advise *glance = NULL;
    struct err ignored;
    bool strays;

    if (bsearch(&id, straying->known, straying->known_n, sizeof *straying->known, by_text) ||
        is_old(straying, id) ||
        advise_glance(straying->govern->state_dir, id, &glance, &ignored) < 0 ||
        strcmp(glance->terms.agent_id, straying->anchors->agent_id) != 0)
        return 0;
    if (is_stray(straying, glance, &strays, err) < 0)
        return -1;
    return strays ? add_stray(straying->anchors, glance, err) : 0;
}

int anchors_add_strays(struct govern *govern, struct anchors *anchors, int64_t since,
                       struct err *err)
{
    struct straying straying = {.govern = govern, .anchors = anchors, .since = since};

    know_names(&straying);
    return advise_each(govern->state_dir, on_folder, &straying, err);
}

const char *anchor_differs(struct arena *mem, const struct anchor *anchor,
                           const struct advise *advise)
{
    if (anchor->is_stray)
        return "it is on disk, and the ledger does not know it: something was cut off there, or put "
               "in its place";
    if (!anchor->has_end)
        return "it has no end in the ledger: \"brig advisory end\" gives it one";
    if (advise->tally.events != anchor->events)
        return arena_printf(mem, "the ledger counted %llu events, there are %llu",
                            (unsigned long long)anchor->events,
                            (unsigned long long)advise->tally.events);
    if (strcmp(advise->tally.head, anchor->head) != 0)
        return "its last event is not the one in the ledger";
    if (strcmp(advise->constitution_sha256, anchor->constitution) != 0 ||
        strcmp(advise->terms.agent_version, anchor->version) != 0 ||
        strcmp(advise->terms.channel, anchor->channel) != 0)
        return "it is not the session the ledger names";
    return NULL;
}

/* ---- sessions that can be believed ---- */

static int choose(const struct anchors *anchors, struct advise_choice *out, struct err *err)
{
    struct advise_known *runs = arena_array(anchors->mem, struct advise_known, anchors->n + 1);
    size_t n = 0;

    for (size_t i = 0; i < anchors->n; i++) {
        const struct anchor *one = &anchors->of[i];

        if (out->run_id && strcmp(one->id, out->run_id) != 0)
            continue;
        if (!one->has_end && out->run_id)
            return err_set(
                err, ERR_CONFLICT,
                "session %s has no end in the ledger: \"brig advisory end\" gives it one", one->id);
        if (one->has_end)
            runs[n++] = (struct advise_known){.id = one->id, .anchor = one};
        else
            out->open_n++;
    }
    if (out->run_id && n == 0)
        return err_set(err, ERR_NOT_FOUND,
                       "the ledger knows no session \"%.40s\"; \"brig advisory report\" shows them",
                       out->run_id);
    out->run_n = out->last && n > out->last ? (size_t)out->last : n;
    out->runs = runs + (n - out->run_n);
    return 0;
}

int govern_advise_choose(struct govern *govern, struct arena *mem, struct advise_choice *choice,
                         struct err *err)
{
    struct anchors *anchors = arena_new(mem, struct anchors);

    if (anchors_read(govern, mem, choice->run_id ? NULL : choice->agent_id, anchors, err) < 0)
        return -1;
    return choose(anchors, choice, err);
}

int govern_advise_believed(struct govern *govern, const struct advise_known *known,
                           struct advise **out, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(64UL * 1024);
    AUTO(advise) struct advise *advise = NULL;
    const char *why;

    if (advise_open(govern->state_dir, known->id, &advise, err) < 0)
        return err->code == ERR_NOT_FOUND
                   ? err_set(err, ERR_INTEGRITY, "session %s is in the ledger and not on disk",
                             known->id)
                   : -1;
    why = anchor_differs(&mem, known->anchor, advise);
    if (!why && strcmp(known->anchor->agent_id, advise->terms.agent_id) != 0)
        why = "it is not the session the ledger names";
    if (why)
        return err_set(err, ERR_INTEGRITY, "session %s: %s", known->id, why);
    *out = TAKE(advise);
    return 0;
}

/* ---- all there are ---- */

struct advise_ledger {
    struct arena *mem;
    struct anchors anchors;
};

int govern_advise_ledger(struct govern *govern, struct arena *mem, struct advise_ledger **out,
                         struct err *err)
{
    struct advise_ledger *ledger = arena_new(mem, struct advise_ledger);

    ledger->mem = mem;
    if (anchors_read(govern, mem, NULL, &ledger->anchors, err) < 0)
        return -1;
    *out = ledger;
    return 0;
}

/* One that began after the ledger was read is found by reading it again. */
static int find_beginning(struct govern *govern, struct advise_ledger *ledger,
                          const struct advise *advise, const struct anchor **out, struct err *err)
{
    *out = anchor_find(&ledger->anchors, advise->id);
    if (*out || !*advise->intent_id)
        return 0;
    if (anchors_read(govern, ledger->mem, NULL, &ledger->anchors, err) < 0)
        return -1;
    *out = anchor_find(&ledger->anchors, advise->id);
    return 0;
}

int govern_advise_agrees(struct govern *govern, struct advise_ledger *ledger,
                         const struct advise *advise, struct err *err)
{
    const struct anchor *anchor;
    const char *why = NULL;

    if (find_beginning(govern, ledger, advise, &anchor, err) < 0)
        return -1;
    if (!anchor)
        why = "it was never begun in the ledger";
    else if (strcmp(anchor->agent_id, advise->terms.agent_id) != 0)
        why = "it is not the session the ledger names";
    else if (anchor->has_end)
        why = anchor_differs(ledger->mem, anchor, advise);
    return why ? err_set(err, ERR_INTEGRITY, "session %s: %s", advise->id, why) : 0;
}
