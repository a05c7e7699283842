/* SPDX-License-Identifier: Apache-2.0 */

/* Sessions judged anew, and as a dataset. Both read what agents said, so they are for those who
 * govern; and both believe only sessions that hold and end where the ledger says. */

#include "flow/advise/advise.h"

#include "surface/api/session.h"
#include "surface/api/tables.h"

#include <poll.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "surface/api/stream.h"
#include "surface/view/view.h"

#define REPLAY_LAST_MAX 1000
#define REPLAY_LAST_DEFAULT 10

/* ---- which ---- */

static int choose(struct call *call, struct govern *govern, struct advise_choice *choice,
                  struct err *err)
{
    if (choice->run_id && choice->agent_id)
        return err_set(err, ERR_INVALID, "name a session (run_id) or an agent_id, not both");
    if (govern_advise_choose(govern, &call->mem, choice, err) < 0)
        return -1;
    if (choice->agent_id && choice->run_n + choice->open_n == 0)
        return err_set(err, ERR_NOT_FOUND, "agent \"%.100s\" has no advisory session",
                       choice->agent_id);
    return 0;
}

/* Many sessions take long; nobody works on for a client that is gone, or a daemon that stops. */
static int go_on(const struct call *call, struct err *err)
{
    struct pollfd orders = {.fd = call->orders[0], .events = POLLIN};

    return poll(&orders, 1, 0) > 0
               ? err_set(err, ERR_UNAVAILABLE, "nobody waits for it, or the daemon stops")
               : 0;
}

/* Does something with each of them that can be believed. */
static int each_of(struct call *call, struct govern *govern, const struct advise_choice *choice,
                   int (*visit)(void *context, const struct advise *advise, struct err *err),
                   void *context, struct err *err)
{
    for (size_t i = 0; i < choice->run_n; i++) {
        AUTO(advise) struct advise *advise = NULL;

        if (go_on(call, err) < 0 ||
            govern_advise_believed(govern, &choice->runs[i], &advise, err) < 0 ||
            visit(context, advise, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- replay ---- */

struct replay_body {
    const char *run_id;
    const char *agent_id;
    uint64_t last;
    const char *profile;
};

/* clang-format off */
static const struct field replay_fields[] = {
    {"run_id", FIELD_TEXT, offsetof(struct replay_body, run_id), .max = ID_BYTES - 1, .help = "One session, or:"},
    {"agent_id", FIELD_TEXT, offsetof(struct replay_body, agent_id), .max = ADVISE_NAME_MAX,
     .help = "The sessions of this agent that have an end."},
    {"last", FIELD_COUNT, offsetof(struct replay_body, last), .min = 1, .max = REPLAY_LAST_MAX,
     .help = "The last so many of them; 10 by default."},
    {"profile", FIELD_TEXT, offsetof(struct replay_body, profile), .choices = SESSION_PROFILES,
     .help = "By which rules; default, as they are in this Brig, when it is not said."},
    {0},
};
/* clang-format on */

struct replaying {
    struct arena *mem;
    struct advise_replay replay;
    const char *run_id;
    struct json *list;
    size_t bytes;
    bool is_full;
};

static int on_difference(void *context, const struct advise_difference *it, struct err *err)
{
    struct replaying *replaying = context;
    struct json *one;

    (void)err;
    if (replaying->is_full)
        return 0;
    one = view_difference(replaying->mem, replaying->run_id, it);
    replaying->is_full = !session_page_takes(&replaying->bytes, one);
    if (!replaying->is_full)
        json_push(replaying->list, one);
    return 0;
}

static int replay_one(void *context, const struct advise *advise, struct err *err)
{
    struct replaying *replaying = context;

    replaying->run_id = advise->id;
    return advise_replay(advise, &replaying->replay, err);
}

static int replay(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct replay_body *asked = body;
    struct advise_choice choice = {.run_id = asked->run_id,
                                   .agent_id = asked->agent_id,
                                   .last = asked->last ? asked->last : REPLAY_LAST_DEFAULT};
    struct replaying replaying = {.mem = &call->mem, .list = json_array(&call->mem)};
    struct lent lent;
    int failed;

    (void)query;
    if (!asked->run_id && !asked->agent_id)
        return err_set(err, ERR_INVALID, "name a session (run_id) or an agent_id");
    replaying.replay = (struct advise_replay){.strict_seed = session_is_strict(asked->profile),
                                              .on_difference = on_difference,
                                              .context = &replaying};
    if (call_govern(call, &lent, err) < 0)
        return -1;
    failed = choose(call, lent.govern, &choice, err) < 0 ||
             each_of(call, lent.govern, &choice, replay_one, &replaying, err) < 0;
    call_release(call, &lent);
    return failed ? -1
                  : call_answer(call, 200,
                                view_replay(&call->mem, &replaying.replay, choice.run_n,
                                            choice.open_n, replaying.list),
                                err);
}

/* ---- export ---- */

struct export_query {
    const char *run_id;
    const char *agent_id;
    uint64_t last;
};

/* clang-format off */
static const struct field export_fields[] = {
    {"run_id", FIELD_TEXT, offsetof(struct export_query, run_id), .max = ID_BYTES - 1, .help = "Only this session."},
    {"agent_id", FIELD_TEXT, offsetof(struct export_query, agent_id), .max = ADVISE_NAME_MAX,
     .help = "Only those of this agent."},
    {"last", FIELD_COUNT, offsetof(struct export_query, last), .min = 1, .max = ADVISE_SESSIONS_MAX,
     .help = "Only the last so many; all by default."},
    {0},
};
/* clang-format on */

static int look_at_one(void *context, const struct advise *advise, struct err *err)
{
    (void)context;
    (void)advise;
    (void)err;
    return 0;
}

static int write_line(void *context, struct str line, struct err *err)
{
    const int *fd = context;

    return write_all(*fd, line.p, line.n, err) < 0 ? -1 : write_all(*fd, "\n", 1, err);
}

static int export_one(void *context, const struct advise *advise, struct err *err)
{
    return advise_export(advise, context, err);
}

static int send_all(struct call *call, struct govern *govern, const struct advise_choice *choice,
                    struct err *err)
{
    const struct stream_config config = {
        .frame = FRAME_RAW, .type = "application/x-ndjson", .sources = 1};
    struct advise_dataset dataset = {.write = write_line};
    int fds[STREAM_SOURCES];
    int failed;

    call_header(call, "x-left-out", arena_printf(&call->mem, "%zu", choice->open_n));
    if (stream_open(call, &config, fds, err) < 0)
        return -1;
    dataset.context = &fds[0];
    failed = each_of(call, govern, choice, export_one, &dataset, err);
    (void)close(fds[0]);
    return failed;
}

/* All of them are looked at before the first line goes out: what was sent cannot be taken back. */
static int export(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct export_query *asked = query;
    struct advise_choice choice = {
        .run_id = asked->run_id, .agent_id = asked->agent_id, .last = asked->last};
    struct lent lent;
    int failed;

    (void)body;
    if (call_govern(call, &lent, err) < 0)
        return -1;
    failed = choose(call, lent.govern, &choice, err) < 0 ||
             each_of(call, lent.govern, &choice, look_at_one, NULL, err) < 0 ||
             send_all(call, lent.govern, &choice, err) < 0;
    call_release(call, &lent);
    return failed ? -1 : 0;
}

/* clang-format off */
const struct route routes_session_replay[] = {
    {.method = HTTP_POST,
     .path = "/v1/advisory/replay",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RECEIPTS,
     .body = BODY_JSON,
     .fields = replay_fields,
     .body_size = sizeof(struct replay_body),
     .name = "replayAdvisory",
     .summary = "Judge every stored answer of a session, or of an agent's last ones, anew.",
     .answer = "What differs, turn by turn, and how often each category was met before and after. A megabyte of differences is "
               "listed; differ and not_stored count all. Nothing is changed. 409: the session has no end. 500: one does not "
               "hold, or does not end where the ledger says.",
     .handle = replay},
    {.method = HTTP_GET,
     .path = "/v1/advisory/export",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RECEIPTS,
     .query = export_fields,
     .query_size = sizeof(struct export_query),
     .name = "exportAdvisory",
     .summary = "Sessions that have an end as a dataset, oldest first.",
     .answer = "A line of JSON for each turn and each event, as docs/formats/advisory-dataset.md says; X-Left-Out counts "
               "sessions that have no end yet. 500: one does not hold, or does not end where the ledger says.",
     .handle = export},
    {0},
};
/* clang-format on */
