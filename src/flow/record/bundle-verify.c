/* SPDX-License-Identifier: Apache-2.0 */

/* A bundle somebody brings, held against its own index, its signatures, its order, the rule that
 * nothing happens without a yes, and (a replay) against the ledger it says it is from. */

#include "flow/record/record.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "flow/record/bundle.h"
#include "flow/record/receipt.h"
#include "flow/record/tar.h"
#include "lib/base/limits.h"

#define FILES_MAX 16
#define IDS_SLOTS_MIN 1024

/* Names of intents that were allowed, to find again what an outcome points to. */
struct ids {
    char (*of)[ID_BYTES];
    size_t slots, n;
};

struct judge {
    const struct record_bundle_check *check;
    struct record_bundle_report *report;
    struct tar_file files[FILES_MAX];
    bool is_named[FILES_MAX]; /* by the index */
    size_t file_n;
    const char *name; /* of the session, or BUNDLE_ALL */
    struct ids intents;
    struct chain_head last;
    uint64_t line;
};

enum part {
    PART_SIGNATURES,
    PART_CHAIN,
    PART_POLICY,
};

static void complain(struct judge *j, enum part part, const char *fmt, ...) PRINTF(3, 4);

static void complain(struct judge *j, enum part part, const char *fmt, ...)
{
    struct record_bundle_report *report = j->report;
    bool *const parts[] = {&report->signatures, &report->causal_chain, &report->policy_compliance};
    va_list args;

    *parts[part] = false;
    if (report->error_n == BUNDLE_ERRORS_MAX)
        return;
    va_start(args, fmt);
    (void)vsnprintf(report->errors[report->error_n++], BUNDLE_ERROR_BYTES, fmt, args);
    va_end(args);
}

/* ---- names ---- */

static size_t slot_of(const struct ids *ids, struct str id)
{
    uint64_t h = 1469598103934665603ULL;

    for (size_t i = 0; i < id.n; i++)
        h = (h ^ (unsigned char)id.p[i]) * 1099511628211ULL;
    return (size_t)(h & (ids->slots - 1));
}

static bool ids_has(const struct ids *ids, struct str id)
{
    if (!ids->slots)
        return false;
    for (size_t at = slot_of(ids, id); ids->of[at][0]; at = (at + 1) & (ids->slots - 1))
        if (str_is(id, ids->of[at]))
            return true;
    return false;
}

static void ids_put(struct ids *ids, struct str id)
{
    size_t at = slot_of(ids, id);

    while (ids->of[at][0])
        at = (at + 1) & (ids->slots - 1);
    memcpy(ids->of[at], id.p, id.n);
    ids->n++;
}

static void ids_add(struct ids *ids, struct str id)
{
    struct ids larger = {.slots = ids->slots ? ids->slots * 2 : IDS_SLOTS_MIN};

    if (ids->n * 2 >= ids->slots) {
        larger.of = xcalloc(larger.slots, sizeof *larger.of);
        for (size_t i = 0; i < ids->slots; i++)
            if (ids->of[i][0])
                ids_put(&larger, str_of(ids->of[i]));
        free(ids->of);
        *ids = larger;
    }
    ids_put(ids, id);
}

/* ---- files ---- */

static const struct tar_file *find_file(const struct judge *j, struct str name)
{
    for (size_t i = 0; i < j->file_n; i++)
        if (str_eq(j->files[i].name, name))
            return &j->files[i];
    return NULL;
}

static bool read_files(struct judge *j, struct str tar)
{
    struct tar_file file;
    struct err err;
    int got;

    while ((got = tar_next(&tar, &file, &err)) == 1) {
        if (j->file_n == FILES_MAX || find_file(j, file.name)) {
            complain(j, PART_CHAIN, "structure: a file too many: \"" STR_FMT "\"",
                     STR_ARG(file.name));
            return false;
        }
        j->files[j->file_n++] = file;
    }
    if (got < 0)
        complain(j, PART_CHAIN, "structure: %s", err.text);
    return got == 0;
}

/* ---- the index ---- */

static const char *path_text(struct judge *j, struct str path)
{
    return arena_text(&j->report->mem, path);
}

static void check_entry(struct judge *j, const struct json *entry)
{
    struct str path, stated;
    struct hash hash;
    char hex[2 * HASH_BYTES + 1];
    const struct tar_file *file;
    int64_t size = -1;

    if (!json_is_text(json_get(entry, "path"), &path) ||
        !json_is_text(json_get(entry, "sha256"), &stated) ||
        !json_is_int(json_get(entry, "size_bytes"), &size)) {
        complain(j, PART_CHAIN, "index: an entry without path, sha256 or size_bytes");
        return;
    }
    file = find_file(j, path);
    if (!file) {
        complain(j, PART_CHAIN, "index: \"%.100s\" is missing", path_text(j, path));
        return;
    }
    if (j->is_named[file - j->files]) {
        complain(j, PART_CHAIN, "index: \"%.100s\" is named twice", path_text(j, path));
        return;
    }
    j->is_named[file - j->files] = true;
    hash_of(file->content, &hash);
    hex_encode(hash.b, sizeof hash.b, hex);
    if (size != (int64_t)file->content.n || !str_is(stated, hex))
        complain(j, PART_CHAIN, "index: \"%.100s\" is not what it was", path_text(j, path));
}

static bool check_index(struct judge *j)
{
    const struct tar_file *file = find_file(j, STR_LIT(BUNDLE_INDEX));
    const struct json *index = NULL, *entries;
    struct mark where;
    struct str text;
    struct err err;

    if (!file || json_parse(&j->report->mem, file->content, &index, &where, &err) < 0) {
        complain(j, PART_CHAIN, "structure: there is no " BUNDLE_INDEX);
        return false;
    }
    entries = json_get(index, "entries");
    if (!json_is_text(json_get(index, "format_version"), &text) || !str_is(text, BUNDLE_FORMAT) ||
        !json_is_text(json_get(index, "run_id"), &text) || !entries ||
        entries->kind != JSON_ARRAY || entries->n > FILES_MAX) {
        complain(j, PART_CHAIN, "index: not one of format " BUNDLE_FORMAT);
        return false;
    }
    j->name = arena_text(&j->report->mem, text);
    j->is_named[file - j->files] = true;
    json_each(entry, entries) check_entry(j, entry);
    for (size_t i = 0; i < j->file_n; i++)
        if (!j->is_named[i])
            complain(j, PART_CHAIN, "index: there is a file it does not name");
    return true;
}

/* ---- the receipts ---- */

static void check_seal(struct judge *j, const struct entry *entry)
{
    const char *fault = entry_fault(entry, &j->check->trust->key);

    if (fault)
        complain(j, PART_SIGNATURES, "signatures: line %llu: %s", (unsigned long long)j->line,
                 fault);
}

static bool is_same_hash(const struct hash *a, const struct hash *b)
{
    return memcmp(a->b, b->b, sizeof a->b) == 0;
}

static void check_order(struct judge *j, const struct entry *entry)
{
    bool whole = strcmp(j->name, BUNDLE_ALL) == 0;
    bool follows = entry->seq == j->last.seq + 1;
    struct str session = {0};

    if (j->last.seq && (entry->seq <= j->last.seq || entry->lamport_clock <= j->last.lamport_clock))
        complain(j, PART_CHAIN, "causal_chain: line %llu is out of order",
                 (unsigned long long)j->line);
    else if (follows && !is_same_hash(&entry->prev_hash, &j->last.hash))
        complain(j, PART_CHAIN, "causal_chain: line %llu does not follow the one before",
                 (unsigned long long)j->line);
    else if (whole && !follows)
        complain(j, PART_CHAIN, "causal_chain: something is missing before line %llu",
                 (unsigned long long)j->line);
    (void)json_is_text(json_get(entry->json, "session_id"), &session);
    if (!whole && !str_is(session, j->name))
        complain(j, PART_CHAIN, "causal_chain: line %llu is of another session",
                 (unsigned long long)j->line);
    j->last = (struct chain_head){entry->seq, entry->lamport_clock, entry->hash};
}

static void check_policy(struct judge *j, const struct entry *entry)
{
    struct str verdict = {0}, intent = {0};
    bool allowed;

    (void)json_is_text(json_get(entry->json, "verdict"), &verdict);
    (void)json_is_text(json_get(entry->json, "intent_id"), &intent);
    allowed = str_is(verdict, "ALLOW");
    if (str_is(entry->kind, "denial") ? allowed : !allowed)
        complain(j, PART_POLICY, "policy_compliance: line %llu: its kind is not its verdict",
                 (unsigned long long)j->line);
    else if (str_is(entry->kind, "intent"))
        ids_add(&j->intents, entry->receipt_id);
    else if (str_is(entry->kind, "outcome") && !ids_has(&j->intents, intent))
        complain(j, PART_POLICY, "policy_compliance: line %llu: nothing allowed it",
                 (unsigned long long)j->line);
}

static int check_ledger(struct judge *j, const struct entry *entry, struct err *err)
{
    bool has = false;

    if (!j->check->ledger)
        return 0;
    if (record_has(j->check->ledger, entry->seq, &entry->hash, &has, err) < 0)
        return -1;
    if (!has)
        complain(j, PART_CHAIN, "replay: line %llu is not in the ledger",
                 (unsigned long long)j->line);
    return 0;
}

static int check_receipts(struct judge *j, struct err *err)
{
    const struct tar_file *file = find_file(j, STR_LIT(BUNDLE_RECEIPTS));
    AUTO_BUF struct buf body = BUF(2 * RECEIPT_TEXT_MAX);
    struct str rest = file ? file->content : (struct str){0};

    if (!file)
        complain(j, PART_CHAIN, "structure: there is no " BUNDLE_RECEIPTS);
    while (rest.n) {
        AUTO_ARENA struct arena mem = ARENA(RECEIPT_MEMORY_MAX);
        struct str line = str_cut(&rest, '\n');
        struct entry entry;
        struct err bad;

        j->line++;
        if (line.n > RECEIPT_TEXT_MAX || entry_parse(&mem, line, &body, &entry, &bad) < 0) {
            complain(j, PART_SIGNATURES, "signatures: line %llu is no receipt",
                     (unsigned long long)j->line);
            continue;
        }
        check_seal(j, &entry);
        check_order(j, &entry);
        check_policy(j, &entry);
        if (check_ledger(j, &entry, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- what a replay asks besides ---- */

static int on_known(void *context, const struct json *receipt, struct err *err)
{
    uint64_t *n = context;

    (void)receipt;
    (void)err;
    ++*n;
    return 0;
}

/* Of a session all that there was up to its last line. */
static int check_complete(struct judge *j, struct err *err)
{
    uint64_t n = 0;

    if (!j->check->ledger || strcmp(j->name, BUNDLE_ALL) == 0 || !j->last.seq)
        return 0;
    if (record_of_session(j->check->ledger, j->name, j->last.seq, on_known, &n, err) < 0)
        return -1;
    if (n != j->line)
        complain(j, PART_CHAIN, "replay: the ledger has %llu receipts of this session, not %llu",
                 (unsigned long long)n, (unsigned long long)j->line);
    return 0;
}

int record_bundle_verify(struct str tar, const struct record_bundle_check *check,
                         struct record_bundle_report *out, struct err *err)
{
    struct judge judge = {.check = check, .report = out};
    int failed = 0;

    out->signatures = out->causal_chain = out->policy_compliance = true;
    if (read_files(&judge, tar) && check_index(&judge))
        failed = check_receipts(&judge, err) < 0 || check_complete(&judge, err) < 0;
    else
        out->signatures = out->policy_compliance = false; /* nothing was there to hold them */
    out->receipts = judge.line;
    free(judge.intents.of);
    return failed ? -1 : 0;
}
