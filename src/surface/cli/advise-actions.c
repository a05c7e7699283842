/* SPDX-License-Identifier: Apache-2.0 */

/* brig advisory actions, and how a request is shown to whoever decides about it: first what Brig
 * reads in it, then the agent's own words, of which no more is shown than leaves that in sight. */

#include "flow/advise/advise.h"

#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "surface/cli/advise.h"
#include "surface/cli/remote.h"
#include "surface/cli/sandbox.h"
#include "surface/view/view.h"

#include <string.h>
#include <time.h>

/* ---- one ---- */

bool action_waits(const struct advise *advise, const struct advise_action *action)
{
    return !advise->tally.is_ended && action->state == ADVISE_PENDING &&
           time(NULL) < action->expires_at;
}

static void begin_row(FILE *to, const char *name)
{
    (void)fprintf(to, "%-12s ", name);
}

static void print_row(FILE *to, const char *name, struct str text)
{
    begin_row(to, name);
    print_escaped(to, text);
    (void)fputc('\n', to);
}

static struct str text_at(const struct json *json, const char *key)
{
    struct str text = STR_LIT("");

    (void)json_is_text(json_get(json, key), &text);
    return text;
}

static void print_content(FILE *to, const struct json *reading)
{
    if (!json_get(reading, "content_sha256"))
        return;
    begin_row(to, "content");
    (void)fprintf(to, "%llu bytes, " STR_FMT "\n",
                  (unsigned long long)doc_number(reading, "content_bytes"),
                  STR_ARG(text_at(reading, "content_sha256")));
}

static void print_target_now(FILE *to, const struct json *now)
{
    struct str refused = text_at(now, "refused");

    begin_row(to, "target now");
    if (refused.n)
        (void)fprintf(to, "cannot be looked at: " STR_FMT "\n", STR_ARG(refused));
    else if (!doc_bool(now, "exists"))
        (void)fputs("does not exist\n", to);
    else
        (void)fprintf(to, "%llu bytes, " STR_FMT "\n",
                      (unsigned long long)doc_number(now, "size_bytes"),
                      STR_ARG(text_at(now, "sha256")));
}

void print_intent(FILE *to, const struct json *reading)
{
    struct str destination = text_at(reading, "destination");

    (void)fprintf(to, STR_FMT " ", STR_ARG(text_at(reading, "operation")));
    print_escaped(to, text_at(reading, "target"));
    if (destination.n) {
        (void)fputs(" to ", to);
        print_escaped(to, destination);
    }
    (void)fprintf(to, " (" STR_FMT ")", STR_ARG(text_at(reading, "risk")));
}

void print_action_shown(FILE *to, struct arena *mem, const struct advise *advise,
                        const struct advise_action *action, const struct json *reading)
{
    (void)fprintf(to, "%-12s %s of session %s\n", "action", action->id, advise->id);
    print_row(to, "agent", str_of(advise->terms.agent_id));
    begin_row(to, "would");
    print_intent(to, reading);
    (void)fputc('\n', to);
    print_content(to, reading);
    print_target_now(to, json_get(reading, "target_now"));
    if (!doc_bool(reading, "as_asked"))
        print_row(to, "CHANGED",
                  STR_LIT("the target is not what it was when this was asked; a confirmation "
                          "aborts it"));
    begin_row(to, "drift");
    print_escaped(to, str_of(action->drift));
    (void)fputs(" in the session until then\n", to);
    print_row(to, "digest", str_of(action->digest));
    print_row(to, "expires at", str_of(view_moment(mem, action->expires_at)));
    print_row(to, "agent's words", action->request);
}

void print_action_decide(FILE *to, const struct advise *advise, const struct advise_action *action)
{
    (void)fprintf(to, "%-12s brig advisory confirm %s %s --as NAME\n", "to decide", advise->id,
                  action->id);
}

struct json *action_doc(struct arena *mem, const struct advise *advise,
                        const struct advise_action *action)
{
    struct json *json = advise_action_json(mem, action), *reading = NULL;
    struct err err;

    json_put_text(mem, json, "agent_id", advise->terms.agent_id);
    json_put_text(mem, json, "run_id", advise->id);
    if (!action_waits(advise, action))
        return json;
    if (advise_action_reading(advise, mem, action, &reading, &err) < 0)
        json_put_text(mem, json, "fault", err.text);
    else
        json_put(json, "reading", reading);
    return json;
}

/* ---- all that wait ---- */

struct waiting {
    struct invocation *inv;
    const char *state_dir;
    struct advise *advise;
    struct json *list;
    size_t n;
    bool is_incomplete;
};

static int print_waiting(struct waiting *waiting, const struct advise_action *action,
                         struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    FILE *out = waiting->inv->out;
    struct json *reading = NULL;

    if (advise_action_reading(waiting->advise, &mem, action, &reading, err) < 0)
        return -1;
    if (waiting->n > 1)
        (void)fputc('\n', out);
    print_action_shown(out, &mem, waiting->advise, action, reading);
    print_action_decide(out, waiting->advise, action);
    return 0;
}

static int on_action(void *context, const struct advise_action *action, struct err *err)
{
    struct waiting *waiting = context;

    if (!action_waits(waiting->advise, action))
        return 0;
    waiting->n++;
    if (!waiting->inv->json)
        return print_waiting(waiting, action, err);
    json_push(waiting->list, action_doc(&waiting->inv->mem, waiting->advise, action));
    return 0;
}

static int add_session(struct waiting *waiting, const char *id, struct err *err)
{
    AUTO(advise) struct advise *advise = NULL;

    if (advise_open(waiting->state_dir, id, &advise, err) < 0)
        return -1;
    waiting->advise = advise;
    return advise_action_each(advise, on_action, waiting, err);
}

/* One that cannot be read is named, and the others are shown all the same. */
static int on_session(void *context, const char *id, struct err *err)
{
    struct waiting *waiting = context;
    struct err why;

    (void)err;
    if (add_session(waiting, id, &why) == 0)
        return 0;
    waiting->is_incomplete = true;
    (void)fprintf(waiting->inv->err, "brig: session %s: ", id);
    print_escaped(waiting->inv->err, str_of(why.text));
    (void)fputc('\n', waiting->inv->err);
    return 0;
}

int run_advisory_actions(struct invocation *inv)
{
    struct waiting waiting = {.inv = inv, .list = json_array(&inv->mem)};
    struct json *doc = json_object(&inv->mem);
    struct err err;

    inv->mem.max = ADVISE_MEMORY_MAX;
    if (cli_state(inv, &waiting.state_dir, &err) < 0 ||
        (inv->operands.n ? add_session(&waiting, inv->operands.v[0], &err)
                         : advise_each(waiting.state_dir, on_session, &waiting, &err)) < 0)
        return cli_error(inv, &err);
    json_put(doc, "actions", waiting.list);
    json_put_bool(&inv->mem, doc, "complete", !waiting.is_incomplete);
    if (inv->json)
        (void)cli_json(inv, doc);
    else if (!waiting.n)
        (void)fputs("no action waits for a custodian\n", inv->out);
    return waiting.is_incomplete ? cli_status(inv, ERR_INTEGRITY) : 0;
}
