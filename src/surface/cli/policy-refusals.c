/* SPDX-License-Identifier: Apache-2.0 */

/* Refusals for brig policy suggest: of a file, or of one sandbox or run in the journal of egress.
 */

#include "surface/cli/suggest.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "flow/execute/execute.h"
#include "flow/record/record.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "surface/cli/sandbox.h"

#define REFUSALS_FILE_MAX (8 * MIB)
#define LINE_MEMORY (1 * MIB)
#define DOCUMENT_MEMORY (256 * MIB)

/* Which events are meant; what is empty is any. */
struct wanted {
    struct str sandbox;
    struct str since, until; /* RFC 3339, UTC: in order as texts */
};

/* ---- events ---- */

static struct str text_of(const struct json *map, const char *key)
{
    struct str text = {"", 0};

    (void)json_is_text(json_get(map, key), &text); /* absent is empty */
    return text;
}

static bool is_wanted(const struct wanted *wanted, const struct json *event)
{
    struct str time = text_of(event, "time");

    if (!str_is(text_of(event, "disposition"), "Blocked"))
        return false;
    if (wanted->sandbox.n && !str_eq(text_of(event, "sandbox"), wanted->sandbox))
        return false;
    return (!wanted->since.n || str_cmp(time, wanted->since) >= 0) &&
           (!wanted->until.n || str_cmp(time, wanted->until) <= 0);
}

/* With `torn_ok` a line that cannot be read is passed over: whoever wrote it may have died. */
static int add_lines(struct suggest *suggest, struct str text, const struct wanted *wanted,
                     bool torn_ok, struct err *err)
{
    for (unsigned number = 1; text.n; number++) {
        AUTO_ARENA struct arena mem = ARENA(LINE_MEMORY);
        struct str line = str_cut(&text, '\n');
        const struct json *event = NULL;
        struct mark where;

        if (str_trim(line).n == 0)
            continue;
        if (line.n > LINE_MEMORY / 64 || json_parse(&mem, line, &event, &where, err) < 0) {
            if (torn_ok)
                continue;
            return err_set(err, ERR_INVALID, "line %u is no JSON", number);
        }
        if (is_wanted(wanted, event) && suggest_add(suggest, event, err) < 0)
            return err_in(err, "line %u", number);
    }
    return 0;
}

static int add_journal(struct invocation *inv, struct suggest *suggest, const char *state_dir,
                       const struct wanted *wanted, struct err *err)
{
    static const char *const names[] = {"journal.0", "journal.1"};
    bool any = false;

    for (size_t i = 0; i < COUNT(names); i++) {
        AUTO_BUF struct buf text = BUF(REFUSALS_FILE_MAX);
        const char *path = arena_printf(&inv->mem, "%s/egress/%s", state_dir, names[i]);

        if (file_read(AT_FDCWD, path, &text, err) < 0) {
            if (err->os == ENOENT)
                continue;
            return -1;
        }
        any = true;
        if (add_lines(suggest, buf_str(&text), wanted, true, err) < 0)
            return -1;
    }
    return any ? 0
               : err_set(err, ERR_NOT_FOUND,
                         "%s/egress has no journal: no sandbox here had a network", state_dir);
}

/* ---- which ---- */

/* The policy it was made with, or got since. */
static int read_kept(struct invocation *inv, struct execute *execute, const char *id,
                     const char **policy, struct err *err)
{
    struct config config;
    const char *made = NULL;

    if (execute_kept_config(execute, &inv->mem, id, &made, err) < 0 ||
        config_read(&inv->mem, str_of(made), &config, err) < 0)
        return -1;
    *policy = config.request.policy_text ? config.request.policy_text : "";
    return 0;
}

/* A name of one that is kept, or the id of any that was. */
static int want_sandbox(struct invocation *inv, const char *state_dir, const char *name,
                        struct wanted *out, const char **policy, struct err *err)
{
    AUTO(execute) struct execute *execute = NULL;
    const char *id = NULL;
    struct err gone; /* its refusals are in the journal longer than it stands */

    out->sandbox = str_of(name);
    if (execute_open(state_dir, &execute, err) < 0)
        return -1;
    if (sandbox_find_in(inv, execute, name, &id, &gone) < 0)
        return 0;
    out->sandbox = str_of(id);
    return read_kept(inv, execute, id, policy, err);
}

struct run_found {
    struct arena *mem;
    struct wanted *out;
};

/* Newest first: the last to come is the intent, before which nothing of it happened. */
static int on_receipt(void *context, const struct json *receipt, struct err *err)
{
    struct run_found *found = context;
    struct wanted *out = found->out;
    struct str time = arena_str(found->mem, text_of(receipt, "timestamp"));

    (void)err;
    out->sandbox = arena_str(found->mem, text_of(receipt, "sandbox_id"));
    if (out->since.n && !out->until.n)
        out->until = out->since;
    out->since = time;
    return 0;
}

static int want_run(struct invocation *inv, const char *state_dir, const char *id,
                    struct wanted *out, struct err *err)
{
    AUTO(record) struct record *record = NULL;
    struct record_query query = {.run_id = id};
    struct run_found found = {&inv->mem, out};

    if (record_open(state_dir, &record, err) < 0 ||
        record_list(record, &query, on_receipt, &found, err) < 0)
        return -1;
    if (out->sandbox.n == 0)
        return err_set(err, ERR_NOT_FOUND, "no run %s with a sandbox in this ledger", id);
    return 0;
}

/* ---- files ---- */

static int add_list(struct suggest *suggest, const struct json *list, struct err *err)
{
    size_t number = 0;

    json_each(item, list)
    {
        number++;
        if (suggest_add(suggest, item, err) < 0)
            return err_in(err, "refusal %zu", number);
    }
    return 0;
}

/* Counters of egress, a list of refusals, or lines of its journal. */
static int add_file(struct suggest *suggest, const char *path, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(DOCUMENT_MEMORY);
    AUTO_BUF struct buf text = BUF(REFUSALS_FILE_MAX);
    const struct json *root = NULL, *list;
    struct wanted any = {0};
    struct mark where;
    struct err lines; /* then it is not one document */

    if (file_read(AT_FDCWD, path, &text, err) < 0)
        return -1;
    if (json_parse(&mem, buf_str(&text), &root, &where, &lines) == 0) {
        list = root->kind == JSON_ARRAY ? root : json_get(root, "refusals");
        if (list && list->kind == JSON_ARRAY)
            return add_list(suggest, list, err) < 0 ? err_in(err, "%s", path) : 0;
    }
    return add_lines(suggest, buf_str(&text), &any, false, err) < 0 ? err_in(err, "%s", path) : 0;
}

int refusals_read(struct invocation *inv, struct suggest *suggest, const char **policy,
                  struct err *err)
{
    const char *file = option_text(inv, "--refusals"), *run = option_text(inv, "--run");
    const char *sandbox = option_text(inv, "--sandbox"), *state_dir = NULL;
    struct wanted wanted = {0};

    *policy = NULL;
    if (!!file + !!run + !!sandbox != 1)
        return err_set(err, ERR_INVALID, "give one of --sandbox, --run and --refusals");
    if (file)
        return add_file(suggest, file, err);
    if (cli_state(inv, &state_dir, err) < 0 ||
        (run ? want_run(inv, state_dir, run, &wanted, err)
             : want_sandbox(inv, state_dir, sandbox, &wanted, policy, err)) < 0)
        return -1;
    return add_journal(inv, suggest, state_dir, &wanted, err);
}
