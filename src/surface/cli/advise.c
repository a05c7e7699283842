/* SPDX-License-Identifier: Apache-2.0 */

/* brig advisory report, confirm, reject, end. */

#include "flow/advise/advise.h"

#include "flow/approve/approve.h"
#include "lib/json/json.h"
#include "surface/cli/advise.h"
#include "surface/cli/passphrase.h"
#include "surface/cli/remote.h"
#include "surface/cli/sandbox.h"

#include <string.h>

#define LAST_DEFAULT 10
#define REPORT_BYTES_MAX (64UL * 1024 * 1024) /* of answers or events, in one report */

/* ---- report ---- */

struct reporting {
    struct invocation *inv;
    const char *state_dir;
    struct govern *govern;
    struct advise_ledger *ledger;
    const char *agent_id; /* only this one, or NULL */
    const struct advise *advise;
    struct json *list;
    size_t bytes; /* of what is in it */
};

/* Its chain holds, and is the one the ledger has both ends of, or its beginning while it goes on.
 */
static int open_session(const struct reporting *reporting, const char *id, struct advise **out,
                        struct err *err)
{
    AUTO(advise) struct advise *advise = NULL;

    if (advise_open(reporting->state_dir, id, &advise, err) < 0 ||
        govern_advise_agrees(reporting->govern, reporting->ledger, advise, err) < 0)
        return -1;
    *out = TAKE(advise);
    return 0;
}

static int add_session(void *context, const char *id, struct err *err)
{
    struct reporting *reporting = context;
    struct arena *mem = &reporting->inv->mem;
    AUTO(advise) struct advise *advise = NULL;
    struct json *json;

    if (open_session(reporting, id, &advise, err) < 0) {
        /* What cannot be read is worth more than a word. */
        json = json_object(mem);
        json_put_text(mem, json, "chain", err->text);
        json_put_text(mem, json, "run_id", id);
        json_put_int(mem, json, "created_at", 0);
        json_push(reporting->list, json);
        return 0;
    }
    if (reporting->agent_id && strcmp(reporting->agent_id, advise->terms.agent_id) != 0)
        return 0;
    json = advise_json(mem, advise);
    json_put_text(mem, json, "chain", "holds");
    json_push(reporting->list, json);
    return 0;
}

static int64_t created_at(const struct json *json)
{
    int64_t at = 0;

    (void)json_is_int(json_get(json, "created_at"), &at);
    return at;
}

static int by_time(const void *a, const void *b)
{
    int64_t x = created_at(*(const struct json *const *)a);
    int64_t y = created_at(*(const struct json *const *)b);

    return x < y ? 1 : x > y ? -1 : 0;
}

/* The newest first, so many. */
static struct json *newest(struct arena *mem, struct json *list, uint64_t most)
{
    struct json **all = arena_array(mem, struct json *, list->n + 1);
    struct json *out = json_array(mem);
    size_t n = 0;

    for (struct json *one = list->first; one; one = one->next)
        all[n++] = one;
    qsort(all, n, sizeof *all, by_time);
    for (size_t i = 0; i < n && i < most; i++) {
        all[i]->next = NULL;
        json_push(out, all[i]);
    }
    return out;
}

static void print_counts(struct invocation *inv, const struct json *counts)
{
    bool any = false;

    if (counts)
        json_each(one, counts) if (!str_is(one->text, "0"))
        {
            (void)fprintf(inv->out, "%s" STR_FMT " " STR_FMT, any ? ", " : "  ", STR_ARG(one->key),
                          STR_ARG(one->text));
            any = true;
        }
    (void)fputs(any ? "\n" : "  nothing found\n", inv->out);
}

static const char *text_of(struct arena *mem, const struct json *json, const char *key)
{
    const struct json *value = json_get(json, key);

    return value ? arena_text(mem, value->text) : "";
}

static void print_session(struct invocation *inv, const struct json *one)
{
    struct arena *mem = &inv->mem;
    const struct json *ended = json_get(one, "ended");

    (void)fprintf(inv->out, "%s  %s %.19s%s  %s turns, %s events, drift %s, compliance %s %%%s\n",
                  text_of(mem, one, "run_id"), text_of(mem, one, "agent_id"),
                  text_of(mem, one, "agent_version"),
                  strcmp(text_of(mem, one, "evidence"), "claimed") == 0 ? " (claimed)" : "",
                  text_of(mem, one, "turns"), text_of(mem, one, "events"),
                  text_of(mem, one, "drift"), text_of(mem, one, "compliance"),
                  ended && ended->boolean ? "" : ", not ended");
    if (strcmp(text_of(mem, one, "chain"), "holds") != 0) {
        (void)fputs("  ", inv->out);
        print_escaped(inv->out, str_of(text_of(mem, one, "chain")));
        (void)fputc('\n', inv->out);
        return;
    }
    if (doc_bool(one, "lost"))
        (void)fputs("  " ADVISE_LOST "\n", inv->out);
    print_counts(inv, json_get(one, "counts"));
}

static int on_event(void *context, const struct json *event, struct err *err)
{
    struct reporting *reporting = context;
    AUTO_BUF struct buf text = BUF(16 * ADVISE_TURN_BYTES_MAX);
    const struct json *copy = NULL;
    struct mark where;

    if (json_compact(event, &text, err) < 0)
        return -1;
    reporting->bytes += text.n;
    if (reporting->bytes > REPORT_BYTES_MAX)
        return err_set(err, ERR_LIMIT, "more than %lu MiB: read it page by page, over HTTP",
                       REPORT_BYTES_MAX / 1024 / 1024);
    if (json_parse(&reporting->inv->mem, arena_str(&reporting->inv->mem, buf_str(&text)), &copy,
                   &where, err) < 0)
        return -1;
    /* It was made a moment ago, for us alone. */
    json_push(reporting->list, (struct json *)(uintptr_t)copy);
    return 0;
}

static int on_action(void *context, const struct advise_action *action, struct err *err)
{
    struct reporting *reporting = context;

    (void)err;
    json_push(reporting->list, action_doc(&reporting->inv->mem, reporting->advise, action));
    return 0;
}

/* Somebody is waited for. */
static void print_waiting(struct invocation *inv, const struct json *actions)
{
    json_each(action, actions)
    {
        const struct json *reading = json_get(action, "reading");
        const char *fault = text_of(&inv->mem, action, "fault");

        if (!reading && !*fault)
            continue;
        (void)fprintf(inv->out, "  pending: %s ", text_of(&inv->mem, action, "request_id"));
        if (reading)
            print_intent(inv->out, reading);
        else
            print_escaped(inv->out, str_of(fault));
        (void)fprintf(inv->out, "; \"brig advisory actions %s\" shows it\n",
                      text_of(&inv->mem, action, "run_id"));
    }
}

static int report_one(struct invocation *inv, const struct reporting *reporting, struct err *err)
{
    AUTO(advise) struct advise *advise = NULL;
    struct reporting events = {.inv = inv, .list = json_array(&inv->mem)};
    struct reporting actions = {.inv = inv, .list = json_array(&inv->mem)};
    struct reporting envelopes = {.inv = inv, .list = json_array(&inv->mem)};
    struct json *doc;

    if (open_session(reporting, inv->operands.v[0], &advise, err) < 0)
        return -1;
    actions.advise = advise;
    if (advise_action_each(advise, on_action, &actions, err) < 0)
        return -1;
    if (option_flag(inv, "--events") &&
        advise_events(advise, 0, ADVISE_EVENTS_MAX, on_event, &events, err) < 0)
        return -1;
    if (option_flag(inv, "--envelopes") &&
        advise_envelopes(advise, 0, ADVISE_EVENTS_MAX, on_event, &envelopes, err) < 0)
        return -1;
    doc = advise_json(&inv->mem, advise);
    json_put_text(&inv->mem, doc, "chain", "holds");
    if (!inv->json && !option_flag(inv, "--events") && !option_flag(inv, "--envelopes")) {
        print_session(inv, doc);
        print_waiting(inv, actions.list);
        return 0;
    }
    json_put(doc, "actions", actions.list);
    if (option_flag(inv, "--events"))
        json_put(doc, "log", events.list);
    if (option_flag(inv, "--envelopes"))
        json_put(doc, "envelopes", envelopes.list);
    return cli_json(inv, doc);
}

static int report(struct invocation *inv, struct reporting *reporting, struct err *err)
{
    uint64_t most = option_number(inv, "--last");
    struct json *doc = json_object(&inv->mem);
    struct json *list;

    /* First: what it has of a session is never ahead of the session. */
    if (govern_advise_ledger(reporting->govern, &inv->mem, &reporting->ledger, err) < 0)
        return -1;
    if (inv->operands.n)
        return report_one(inv, reporting, err);
    if (advise_each(reporting->state_dir, add_session, reporting, err) < 0)
        return -1;
    list = newest(&inv->mem, reporting->list, most ? most : LAST_DEFAULT);
    if (!inv->json) {
        for (const struct json *one = list->first; one; one = one->next)
            print_session(inv, one);
        if (!list->n)
            cli_none(inv, "no advisory sessions");
        return 0;
    }
    json_put(doc, "sessions", list);
    return cli_json(inv, doc);
}

int run_advisory_report(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct reporting reporting = {
        .inv = inv, .agent_id = option_text(inv, "--agent-id"), .list = json_array(&inv->mem)};
    struct err err;
    int status;

    inv->mem.max = ADVISE_MEMORY_MAX; /* all that was said in a long session, or all sessions */
    if (cli_state(inv, &reporting.state_dir, &err) < 0)
        return cli_error(inv, &err);
    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    reporting.govern = call.govern;
    status = report(inv, &reporting, &err);
    return status < 0 ? cli_error(inv, &err) : status;
}

/* ---- a custodian's word ---- */

/* One line, without its end. Nothing is nothing. */
static int read_words(struct invocation *inv, const struct json *reading, struct str *out,
                      struct err *err)
{
    const char *given = option_text(inv, "--words");
    AUTO_FREE char *line = NULL;
    size_t room = 0;
    ssize_t n;

    if (given) {
        *out = str_of(given);
        return 0;
    }
    (void)fputs("To let Brig ", inv->err);
    print_intent(inv->err, reading);
    (void)fprintf(inv->err, ", write " ADVISE_CONFIRM_WORDS "\n> ");
    (void)fflush(inv->err);
    /* All of it: what stands behind a zero byte was said, too. */
    n = getline(&line, &room, stdin);
    if (n > 0 && line[n - 1] == '\n')
        n--;
    *out = n > 0 ? arena_str(&inv->mem, (struct str){line, (size_t)n}) : STR_LIT("");
    return ferror(stdin) ? err_os(err, "reading standard input") : 0;
}

static int sign(struct invocation *inv, const char *state_dir, const struct advise_action *action,
                struct advise_decision *decision, struct err *err)
{
    AUTO(approvals) struct approvals *approvals = NULL;
    struct str passphrase = {0};
    struct hash preimage;
    int failed;

    if (approvals_open(state_dir, &approvals, err) < 0 ||
        passphrase_read(inv, option_text(inv, "--passphrase-file"), "Passphrase: ", &passphrase,
                        err) < 0)
        return -1;
    advise_preimage(action->id, action->digest, decision->confirm, &preimage);
    failed = custodian_sign(approvals, decision->custodian, passphrase, &preimage,
                            &decision->signature, err);
    passphrase_wipe(passphrase);
    return failed;
}

static int print_action(struct invocation *inv, const struct advise_action *action,
                        const struct run *run)
{
    struct json *doc = advise_action_json(&inv->mem, action);
    bool wanted = action->state == ADVISE_REJECTED || action->is_done;

    json_put_text(&inv->mem, doc, "receipt_id", run->closing.id);
    if (inv->json) {
        (void)cli_json(inv, doc);
    } else {
        (void)fprintf(inv->out, "%s %s%s", advise_state_name(action->state), action->id,
                      *action->why ? ": " : "");
        print_escaped(inv->out, str_of(action->why));
        (void)fprintf(inv->out, "; receipt %s\n", run->closing.id);
    }
    return wanted ? 0 : ADVISORY_EXIT_ABORTED;
}

static int read_custodian(const struct advise_decision *decision, struct err *err)
{
    return decision->custodian ? 0
                               : err_set(err, ERR_INVALID,
                                         "only a custodian's word counts: --as NAME (\"brig "
                                         "approvals custodians\")");
}

/* Whoever signs has seen what it is: as Brig reads it, and then as the agent put it. */
static int show_and_ask(struct invocation *inv, const struct advise *advise,
                        const struct advise_action *action, struct str *words, struct err *err)
{
    struct json *reading = NULL;

    if (advise->tally.is_ended)
        return err_set(err, ERR_CONFLICT, "session %s is over", advise->id);
    if (action->state != ADVISE_PENDING)
        return err_set(err, ERR_CONFLICT, "action %s is %s", action->id,
                       advise_state_name(action->state));
    if (advise_action_reading(advise, &inv->mem, action, &reading, err) < 0)
        return -1;
    print_action_shown(inv->err, &inv->mem, advise, action, reading);
    return read_words(inv, reading, words, err);
}

static int give_word(struct invocation *inv, bool confirm)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    AUTO(advise) struct advise *advise = NULL;
    struct advise_decision decision = {
        .action = inv->operands.v[1], .confirm = confirm, .custodian = option_text(inv, "--as")};
    const char *state_dir = NULL;
    struct advise_action action;
    struct run run;
    struct err err;
    int status;

    if (read_custodian(&decision, &err) < 0 || cli_state(inv, &state_dir, &err) < 0 ||
        advise_open(state_dir, inv->operands.v[0], &advise, &err) < 0 ||
        advise_action_show(advise, &inv->mem, decision.action, &action, &err) < 0 ||
        (confirm && show_and_ask(inv, advise, &action, &decision.words, &err) < 0) ||
        sign(inv, state_dir, &action, &decision, &err) < 0)
        return cli_error(inv, &err);
    if (confirm)
        decision.digest = option_text(inv, "--digest");
    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    run_init(&run);
    if (govern_advise_decide(call.govern, &call.request, advise, &decision, &run, &action, &err) <
        0)
        status = cli_error(inv, &err);
    else
        status = print_action(inv, &action, &run);
    run_done(&run);
    return status;
}

int run_advisory_confirm(struct invocation *inv)
{
    return give_word(inv, true);
}

int run_advisory_reject(struct invocation *inv)
{
    return give_word(inv, false);
}

/* ---- end ---- */

int run_advisory_end(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    AUTO(advise) struct advise *advise = NULL;
    const char *state_dir = NULL;
    struct run run;
    struct err err;
    int status;

    if (cli_state(inv, &state_dir, &err) < 0 ||
        advise_open(state_dir, inv->operands.v[0], &advise, &err) < 0)
        return cli_error(inv, &err);
    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    run_init(&run);
    if (govern_advise_end(call.govern, &call.request, advise, "ended from outside", &run, &err) < 0)
        status = cli_error(inv, &err);
    else if (inv->json)
        status = cli_json(inv, advise_json(&inv->mem, advise));
    else
        status = fprintf(inv->out, "ended %s: %llu events\n", advise->id,
                         (unsigned long long)advise->tally.events) < 0;
    run_done(&run);
    return status;
}
