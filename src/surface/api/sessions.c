/* SPDX-License-Identifier: Apache-2.0 */

/* Advisory sessions of harnesses that hold the model themselves: they tell what was asked and what
 * the agent said, and show what they are given back. */

#include "flow/advise/advise.h"

#include "surface/api/api-private.h"
#include "surface/api/session.h"
#include "surface/api/tables.h"

#include <string.h>

#include "lib/base/limits.h"
#include "model/run.h"
#include "surface/view/view.h"

#define LIST_MAX 100
#define LIST_DEFAULT 20
#define EVENTS_MAX 500
#define ENVELOPES_MAX 20
#define SECONDS_MAX (24 * 60 * 60)

static uint64_t or_default(uint64_t limit, uint64_t otherwise)
{
    return limit ? limit : otherwise;
}

bool session_is_strict(const char *profile)
{
    return profile && strcmp(profile, "strict-seed") == 0;
}

int session_open(struct call *call, struct advise **out, struct err *err)
{
    return advise_open(tenant_state_dir(call->tenant), call->params[0], out, err);
}

int session_open_own(struct call *call, struct advise **out, struct err *err)
{
    AUTO(advise) struct advise *advise = NULL;

    if (session_open(call, &advise, err) < 0)
        return -1;
    if (strcmp(advise->terms.channel, "api") != 0)
        return err_set(err, ERR_CONFLICT,
                       "session %s is of an agent in a box; nobody else speaks for it", advise->id);
    if (strcmp(advise->terms.requester, call->caller.principal) != 0)
        return err_set(err, ERR_FORBIDDEN, "only who began session %s speaks for its agent",
                       advise->id);
    *out = TAKE(advise);
    return 0;
}

static struct json *session_json(struct arena *mem, const struct advise *advise)
{
    struct json *json = advise_json(mem, advise);

    json_put_text(mem, json, "chain", "holds");
    return json;
}

bool session_page_takes(size_t *bytes, const struct json *one)
{
    AUTO_BUF struct buf text = BUF(API_BODY_MAX);
    bool is_first = *bytes == 0;
    struct err larger;

    *bytes += json_compact(one, &text, &larger) == 0 ? text.n : API_BODY_MAX;
    return is_first || *bytes <= SESSION_PAGE_BYTES_MAX;
}

/* ---- begin, end ---- */

struct begin_body {
    const char *agent_id;
    const char *agent_version;
    const char *constitution;
    const char *profile;
    uint64_t turns;
    uint64_t timeout_s;
    uint64_t idle_s;
    uint64_t action_timeout_s;
};

/* clang-format off */
static const struct field begin_fields[] = {
    {"agent_id", FIELD_TEXT, offsetof(struct begin_body, agent_id), .required = true, .max = ADVISE_NAME_MAX,
     .help = "Which agent it is."},
    {"agent_version", FIELD_TEXT, offsetof(struct begin_body, agent_version), .required = true, .max = ADVISE_NAME_MAX,
     .help = "Which version of it, as the harness says: \"sha256:...\" or a name. It is claimed, not observed."},
    {"constitution", FIELD_TEXT, offsetof(struct begin_body, constitution), .required = true, .max = ADVISE_CONSTITUTION_MAX,
     .help = "The text the agent begins with; at most 256 KiB."},
    {"profile", FIELD_TEXT, offsetof(struct begin_body, profile), .choices = SESSION_PROFILES,
     .help = "By which rules it is judged. strict-seed: the banned commands by name, without other programs for the same."},
    {"turns", FIELD_COUNT, offsetof(struct begin_body, turns), .min = 1, .max = ADVISE_TURNS_MAX, .help = "50 by default."},
    {"timeout_s", FIELD_COUNT, offsetof(struct begin_body, timeout_s), .min = 1, .max = SECONDS_MAX,
     .help = "Seconds the session may take; an hour by default."},
    {"idle_s", FIELD_COUNT, offsetof(struct begin_body, idle_s), .min = 1, .max = SECONDS_MAX,
     .help = "Seconds without a turn that end it; 600 by default."},
    {"action_timeout_s", FIELD_COUNT, offsetof(struct begin_body, action_timeout_s), .min = 1, .max = SECONDS_MAX,
     .help = "Seconds a person has for an action request; 300 by default."},
    {0},
};
/* clang-format on */

static int begin(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(advise) struct advise *advise = NULL;
    const struct begin_body *asked = body;
    struct request request = call_request(call, ACTION_ADVISE);
    const struct advise_terms terms = {
        .agent_id = asked->agent_id,
        .agent_version = asked->agent_version,
        .requester = call->caller.principal,
        .channel = "api",
        .constitution = str_of(asked->constitution),
        .turns_max = (unsigned)asked->turns,
        .deadline_s = (unsigned)asked->timeout_s,
        .idle_s = (unsigned)asked->idle_s,
        .action_s = (unsigned)asked->action_timeout_s,
        .strict_seed = session_is_strict(asked->profile),
    };
    struct lent lent;
    struct run run;
    int failed;

    (void)query;
    if (call_govern(call, &lent, err) < 0)
        return -1;
    run_init(&run);
    failed = govern_advise_start(lent.govern, &request, &terms, &run, &advise, err);
    call_release(call, &lent);
    run_done(&run);
    return failed ? -1 : call_answer(call, 201, session_json(&call->mem, advise), err);
}

static int end(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(advise) struct advise *advise = NULL;
    struct request request = call_request(call, ACTION_ADVISE);
    struct lent lent;
    struct run run;
    int failed;

    (void)body;
    (void)query;
    if (session_open(call, &advise, err) < 0)
        return -1;
    if (strcmp(advise->terms.channel, "api") != 0)
        return err_set(err, ERR_CONFLICT,
                       "session %s is of an agent in a box; \"brig advisory end\" ends it",
                       advise->id);
    if (call_govern(call, &lent, err) < 0)
        return -1;
    run_init(&run);
    failed = govern_advise_end(lent.govern, &request, advise, "end", &run, err);
    call_release(call, &lent);
    run_done(&run);
    return failed ? -1 : call_answer(call, 200, session_json(&call->mem, advise), err);
}

/* ---- looking ---- */

struct page_query {
    const char *after;
    uint64_t limit;
};

/* clang-format off */
static const struct field page_fields[] = {
    {"after", FIELD_TEXT, offsetof(struct page_query, after), .max = ID_BYTES - 1, .help = "The run_id of the last one seen."},
    {"limit", FIELD_COUNT, offsetof(struct page_query, limit), .min = 1, .max = LIST_MAX},
    {0},
};
/* clang-format on */

struct listing {
    struct call *call;
    const char *after;
    uint64_t limit;
    struct json *list;
    struct json *broken;
    const char *last;
};

static int list_one(void *context, const char *id, struct err *err)
{
    struct listing *listing = context;
    struct arena *mem = &listing->call->mem;
    AUTO(advise) struct advise *advise = NULL;
    struct json *fault;

    if (strcmp(id, listing->after) <= 0 || listing->list->n + listing->broken->n >= listing->limit)
        return 0;
    listing->last = arena_text(mem, str_of(id));
    if (advise_open(tenant_state_dir(listing->call->tenant), id, &advise, err) == 0) {
        json_push(listing->list, session_json(mem, advise));
        return 0;
    }
    /* What cannot be read is worth a word, too. */
    fault = json_object(mem);
    json_put_text(mem, fault, "run_id", id);
    json_put_text(mem, fault, "chain", err->text);
    json_push(listing->broken, fault);
    return 0;
}

static int list(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct page_query *page = query;
    struct listing listing = {.call = call,
                              .after = page->after ? page->after : "",
                              .limit = or_default(page->limit, LIST_DEFAULT),
                              .list = json_array(&call->mem),
                              .broken = json_array(&call->mem),
                              .last = page->after ? page->after : ""};
    struct json *answer = json_object(&call->mem);

    (void)body;
    if (advise_each(tenant_state_dir(call->tenant), list_one, &listing, err) < 0)
        return -1;
    json_put(answer, "sessions", listing.list);
    json_put(answer, "broken", listing.broken);
    json_put_text(&call->mem, answer, "next_after", listing.last);
    return call_answer(call, 200, answer, err);
}

static int show(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(advise) struct advise *advise = NULL;

    (void)body;
    (void)query;
    if (session_open(call, &advise, err) < 0)
        return -1;
    return call_answer(call, 200, session_json(&call->mem, advise), err);
}

struct from_query {
    uint64_t after;
    uint64_t limit;
};

/* clang-format off */
static const struct field view_fields[] = {
    {"after", FIELD_COUNT, offsetof(struct from_query, after), .help = "The number of the last turn seen."},
    {"limit", FIELD_COUNT, offsetof(struct from_query, limit), .min = 1, .max = LIST_MAX},
    {0},
};

static const struct field envelopes_fields[] = {
    {"after", FIELD_COUNT, offsetof(struct from_query, after), .help = "The number of the last turn seen."},
    {"limit", FIELD_COUNT, offsetof(struct from_query, limit), .min = 1, .max = ENVELOPES_MAX},
    {0},
};

static const struct field events_fields[] = {
    {"after", FIELD_COUNT, offsetof(struct from_query, after), .help = "The seq of the last event seen."},
    {"limit", FIELD_COUNT, offsetof(struct from_query, limit), .min = 1, .max = EVENTS_MAX},
    {0},
};
/* clang-format on */

struct pages {
    struct call *call;
    struct json *list;
    uint64_t last;
    size_t bytes;
};

static int on_shown(void *context, uint64_t turn, struct str client_view, struct err *err)
{
    struct pages *pages = context;
    struct arena *mem = &pages->call->mem;
    struct json *one = json_object(mem);

    (void)err;
    json_put_int(mem, one, "turn", (int64_t)turn);
    json_put(one, "client_view", json_text(mem, client_view));
    if (!session_page_takes(&pages->bytes, one))
        return 0;
    json_push(pages->list, one);
    pages->last = turn;
    return 0;
}

/* It is gone when the visitor returns, its names, too. */
static int keep_one(struct pages *pages, const struct json *one, struct err *err)
{
    struct arena *mem = &pages->call->mem;
    AUTO_BUF struct buf text = BUF(API_BODY_MAX);
    struct json *copy = json_object(mem);
    const struct json *own = NULL;
    struct mark where;

    if (!session_page_takes(&pages->bytes, one))
        return 0;
    if (json_compact(one, &text, err) < 0 ||
        json_parse(mem, arena_str(mem, buf_str(&text)), &own, &where, err) < 0)
        return -1;
    json_each(member, own) json_copy_member(mem, copy, member);
    json_push(pages->list, copy);
    pages->last++;
    return 0;
}

static int on_event(void *context, const struct json *event, struct err *err)
{
    return keep_one(context, event, err);
}

static int answer_page(struct call *call, const char *name, const struct pages *pages,
                       struct err *err)
{
    struct json *answer = json_object(&call->mem);

    json_put(answer, name, pages->list);
    json_put_int(&call->mem, answer, "next_after", (int64_t)pages->last);
    return call_answer(call, 200, answer, err);
}

static int view(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(advise) struct advise *advise = NULL;
    const struct from_query *from = query;
    struct pages pages = {call, json_array(&call->mem), from->after, 0};

    (void)body;
    if (session_open(call, &advise, err) < 0 ||
        advise_shown(advise, from->after, (unsigned)or_default(from->limit, LIST_DEFAULT), on_shown,
                     &pages, err) < 0)
        return -1;
    return answer_page(call, "turns", &pages, err);
}

static int envelopes(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(advise) struct advise *advise = NULL;
    const struct from_query *from = query;
    struct pages pages = {call, json_array(&call->mem), from->after, 0};

    (void)body;
    if (session_open(call, &advise, err) < 0 ||
        advise_envelopes(advise, from->after, (unsigned)or_default(from->limit, ENVELOPES_MAX),
                         on_event, &pages, err) < 0)
        return -1;
    return answer_page(call, "turns", &pages, err);
}

static int events(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(advise) struct advise *advise = NULL;
    const struct from_query *from = query;
    struct pages pages = {call, json_array(&call->mem), from->after, 0};

    (void)body;
    if (session_open(call, &advise, err) < 0 ||
        advise_events(advise, from->after, (unsigned)or_default(from->limit, EVENTS_MAX), on_event,
                      &pages, err) < 0)
        return -1;
    return answer_page(call, "events", &pages, err);
}

/* ---- a turn ---- */

struct turn_body {
    const char *text;
    const struct json *output;
};

/* clang-format off */
static const struct field turn_fields[] = {
    {"text", FIELD_TEXT, offsetof(struct turn_body, text), .required = true, .max = ADVISE_TURN_BYTES_MAX,
     .help = "What the agent was asked; at most 128 KiB."},
    {"output", FIELD_JSON, offsetof(struct turn_body, output), .required = true,
     .help = "What it said, whole and as it said it: a text, or the object. What has more than 128 KiB is no envelope."},
    {0},
};
/* clang-format on */

/* A text is taken as it is: a text with an object in it is read like the object. */
static int read_said(struct call *call, const struct json *output, struct str *out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(API_BODY_MAX);

    if (json_is_text(output, out))
        return 0;
    if (output->kind != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "/output: a text or an object");
    if (json_compact(output, &text, err) < 0)
        return -1;
    *out = arena_str(&call->mem, buf_str(&text));
    return 0;
}

struct json *session_findings(struct arena *mem, const struct advisory_result *result)
{
    struct json *findings = json_array(mem);

    for (size_t i = 0; i < result->finding_n; i++)
        json_push(findings, view_advisory_finding(mem, &result->findings[i]));
    return findings;
}

static struct json *turn_json(struct arena *mem, const struct advise *advise,
                              const struct advise_answer *answer)
{
    const struct advisory_result *result = &answer->result;
    struct json *json = json_object(mem);

    json_put_int(mem, json, "turn", (int64_t)advise->tally.turns);
    json_put_text(mem, json, "verdict", advisory_verdict_name(result->verdict));
    json_put_bool(mem, json, "valid", result->is_valid);
    json_put(json, "client_view", json_text(mem, answer->client_view));
    json_put(json, "findings", session_findings(mem, result));
    json_put_int(mem, json, "unlisted", (int64_t)result->unlisted);
    json_put_text(mem, json, "drift", advisory_drift_code(result->drift));
    json_put_text(mem, json, "severity", advisory_drift_severity(result->drift));
    json_put_int(mem, json, "compliance", result->compliance);
    json_put_int(mem, json, "first_event", (int64_t)answer->first_seq);
    json_put_int(mem, json, "last_event", (int64_t)answer->last_seq);
    json_put_bool(mem, json, "over", answer->is_over);
    return json;
}

static int turn(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    AUTO(advise) struct advise *advise = NULL;
    const struct turn_body *told = body;
    struct advise_answer answer = {.is_past_budget = false};
    struct str said = {0};

    (void)query;
    if (read_said(call, told->output, &said, err) < 0 || session_open_own(call, &advise, err) < 0)
        return -1;
    if (advise_exchange(advise, &mem, str_of(told->text), said, &answer, err) < 0) {
        if (answer.is_past_budget)
            counts_breach(call->api->counts);
        return -1;
    }
    counts_found(call->api->counts, &answer.result);
    return call_answer(call, 200, turn_json(&call->mem, advise, &answer), err);
}

/* clang-format off */
const struct route routes_sessions[] = {
    {.method = HTTP_POST,
     .path = "/v1/advisory/sessions",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_RUN,
     .creates = true,
     .body = BODY_JSON,
     .fields = begin_fields,
     .body_size = sizeof(struct begin_body),
     .name = "beginAdvisorySession",
     .summary = "Begin an advisory session of an agent whose harness holds the model.",
     .answer = "The session, with the hash of its constitution. Its version is what the harness says (evidence claimed).",
     .handle = begin},
    {.method = HTTP_GET,
     .path = "/v1/advisory/sessions",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .query = page_fields,
     .query_size = sizeof(struct page_query),
     .name = "listAdvisorySessions",
     .summary = "Advisory sessions, in the order of their ids.",
     .answer = "Those whose chain holds, and those that cannot be read. The next page begins after next_after.",
     .handle = list},
    {.method = HTTP_GET,
     .path = "/v1/advisory/sessions/{id}",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .name = "showAdvisorySession",
     .summary = "What was found in a session: counts, drift, compliance.",
     .answer = "The report, made of a chain that holds; 500 when it does not.",
     .handle = show},
    {.method = HTTP_POST,
     .path = "/v1/advisory/sessions/{id}/turns",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_RUN,
     .creates = true,
     .body = BODY_JSON,
     .fields = turn_fields,
     .body_size = sizeof(struct turn_body),
     .name = "addAdvisoryTurn",
     .summary = "Tell what the agent was asked and what it said.",
     .answer = "What was found, on disk already, and client_view: the only text of it that may be shown. 403: another principal "
               "began the session. 409: it is over, or its turns are used up.",
     .handle = turn},
    {.method = HTTP_GET,
     .path = "/v1/advisory/sessions/{id}/view",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .query = view_fields,
     .query_size = sizeof(struct from_query),
     .name = "viewAdvisorySession",
     .summary = "What people may be shown of a session.",
     .answer = "The client_view of each turn, and nothing else the agent said; at most limit, and fewer when they are large. The next "
               "page begins after next_after.",
     .handle = view},
    {.method = HTTP_GET,
     .path = "/v1/advisory/sessions/{id}/envelopes",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_RECEIPTS,
     .query = envelopes_fields,
     .query_size = sizeof(struct from_query),
     .name = "listAdvisoryEnvelopes",
     .summary = "What the agent said, whole, for those who govern; never for a screen.",
     .answer = "Each answer as it was said, what was none wrapped in an envelope, with the runtime's block governance: run_id, seq, "
               "constitution_sha256, drift, events, prev_hash, hash. At most limit, and fewer when they are large; the "
               "next page begins after next_after. 500 when it is not what the chain has the hash of.",
     .handle = envelopes},
    {.method = HTTP_GET,
     .path = "/v1/advisory/sessions/{id}/events",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_RECEIPTS,
     .query = events_fields,
     .query_size = sizeof(struct from_query),
     .name = "listAdvisoryEvents",
     .summary = "The chain of a session, event by event.",
     .answer = "Events as docs/formats/advisory-events.md says, oldest first. The next page begins after next_after.",
     .handle = events},
    {.method = HTTP_POST,
     .path = "/v1/advisory/sessions/{id}/end",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_RUN,
     .body = BODY_NONE,
     .name = "endAdvisorySession",
     .summary = "End a session: its last event goes to the ledger.",
     .answer = "The report as it will stay. Twice is once.",
     .handle = end},
    {0},
};
/* clang-format on */
