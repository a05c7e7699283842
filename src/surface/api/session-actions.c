/* SPDX-License-Identifier: Apache-2.0 */

/* What an agent in advisory mode asks for, and a custodian's word on that. */

#include "flow/advise/advise.h"

#include "surface/api/api-private.h"
#include "surface/api/session.h"
#include "surface/api/tables.h"

#include <string.h>

#include "flow/approve/approve.h"
#include "lib/base/limits.h"
#include "lib/base/text.h"
#include "model/run.h"

#define LIST_MAX 100
#define LIST_DEFAULT 50

/* ---- asked for ---- */

struct ask_body {
    const struct json *request;
};

/* clang-format off */
static const struct field ask_fields[] = {
    {"action_request", FIELD_JSON, offsetof(struct ask_body, request), .required = true,
     .help = "The object as the agent made it: type, operation, target, risk; at most 128 KiB."},
    {0},
};
/* clang-format on */

/* It is asked for, whether or not anybody can be told. */
static void tell(struct call *call, const struct advise *advise, const struct advise_action *action)
{
    struct err ignored;
    struct lent lent;

    if (action->state != ADVISE_PENDING || call_govern(call, &lent, &ignored) < 0)
        return;
    govern_advise_tell(lent.govern, call->caller.tenant, advise, action);
    call_release(call, &lent);
}

static int ask(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    AUTO_BUF struct buf text = BUF(API_BODY_MAX);
    AUTO(advise) struct advise *advise = NULL;
    const struct ask_body *asked = body;
    struct advise_answer answer;
    struct advise_action action;
    struct json *json;

    (void)query;
    if (asked->request->kind != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "/action_request: an object");
    if (json_compact(asked->request, &text, err) < 0 || session_open_own(call, &advise, err) < 0 ||
        advise_ask(advise, &mem, buf_str(&text), &answer, &action, err) < 0)
        return -1;
    counts_found(call->api->counts, &answer.result);
    tell(call, advise, &action);
    json = advise_action_json(&call->mem, &action);
    json_put(json, "findings", session_findings(&call->mem, &answer.result));
    return call_answer(call, 201, json, err);
}

/* ---- looking ---- */

struct page_query {
    const char *after;
    uint64_t limit;
};

/* clang-format off */
static const struct field page_fields[] = {
    {"after", FIELD_TEXT, offsetof(struct page_query, after), .max = ID_BYTES - 1,
     .help = "The request_id of the last one seen."},
    {"limit", FIELD_COUNT, offsetof(struct page_query, limit), .min = 1, .max = LIST_MAX},
    {0},
};
/* clang-format on */

/* What Brig reads in one that is pending. It is small; what was read to find it is not, and does
 * not stay. */
static int put_reading(struct call *call, const struct advise *advise,
                       const struct advise_action *action, struct json *json, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    AUTO_BUF struct buf text = BUF(API_BODY_MAX);
    struct json *reading = NULL;
    const struct json *copy = NULL;
    struct mark where;

    if (action->state != ADVISE_PENDING)
        return 0;
    if (advise_action_reading(advise, &mem, action, &reading, err) < 0 ||
        json_compact(reading, &text, err) < 0 ||
        json_parse(&call->mem, arena_str(&call->mem, buf_str(&text)), &copy, &where, err) < 0)
        return -1;
    /* It was made a moment ago, for us alone. */
    json_put(json, "reading", (struct json *)(uintptr_t)copy);
    return 0;
}

struct listing {
    struct call *call;
    struct advise *advise;
    const char *after;
    uint64_t limit;
    struct json *list;
    const char *last;
    size_t bytes;
    bool is_full;
};

static int list_one(void *context, const struct advise_action *found, struct err *err)
{
    struct listing *listing = context;
    struct arena *mem = &listing->call->mem;
    struct advise_action action;
    struct json *json;
    struct err why;

    if (strcmp(found->id, listing->after) <= 0 || listing->list->n >= listing->limit ||
        listing->is_full)
        return 0;
    /* Once more, for what is too late by now. */
    if (advise_action_show(listing->advise, mem, found->id, &action, err) < 0)
        return -1;
    json = advise_action_json(mem, &action);
    /* One that cannot be read is named, and the others are shown all the same. */
    if (put_reading(listing->call, listing->advise, &action, json, &why) < 0)
        json_put_text(mem, json, "fault", why.text);
    listing->is_full = !session_page_takes(&listing->bytes, json);
    if (listing->is_full)
        return 0;
    json_push(listing->list, json);
    listing->last = action.id;
    return 0;
}

static int list(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(advise) struct advise *advise = NULL;
    const struct page_query *page = query;
    struct listing listing = {.call = call,
                              .after = page->after ? page->after : "",
                              .limit = page->limit ? page->limit : LIST_DEFAULT,
                              .list = json_array(&call->mem),
                              .last = page->after ? page->after : ""};
    struct json *answer = json_object(&call->mem);

    (void)body;
    if (session_open(call, &advise, err) < 0)
        return -1;
    listing.advise = advise;
    if (advise_action_each(advise, list_one, &listing, err) < 0)
        return -1;
    json_put(answer, "actions", listing.list);
    json_put_text(&call->mem, answer, "next_after", listing.last);
    return call_answer(call, 200, answer, err);
}

static int show(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(advise) struct advise *advise = NULL;
    struct advise_action action;
    struct json *json;

    (void)body;
    (void)query;
    if (session_open(call, &advise, err) < 0 ||
        advise_action_show(advise, &call->mem, call->params[1], &action, err) < 0)
        return -1;
    json = advise_action_json(&call->mem, &action);
    return put_reading(call, advise, &action, json, err) < 0 ? -1
                                                             : call_answer(call, 200, json, err);
}

/* ---- a custodian's word ---- */

struct word_body {
    const struct json *confirmed;
    const char *digest;
    const char *custodian;
    const char *signature;
};

#define SIGNATURE_HELP(word)                                                                       \
    "128 hex digits: Ed25519 over SHA-256 of brig/advisory-confirm/1, NUL, " word                  \
    ", NUL, request_id, NUL, digest."

/* clang-format off */
static const struct field confirm_fields[] = {
    {"human_confirmed", FIELD_JSON, offsetof(struct word_body, confirmed), .required = true,
     .help = "true, or the text HUMAN_CONFIRMED: true. Any other text, and false, aborts it."},
    {"digest", FIELD_TEXT, offsetof(struct word_body, digest), .required = true, .max = HASH_TEXT_BYTES - 1,
     .help = "Of the request that was looked at. Another one aborts it."},
    {"custodian", FIELD_TEXT, offsetof(struct word_body, custodian), .required = true, .max = APPROVAL_NAME_MAX,
     .help = "Who says so; proven by the signature."},
    {"signature", FIELD_TEXT, offsetof(struct word_body, signature), .required = true, .max = 2 * SIGNATURE_BYTES,
     .help = SIGNATURE_HELP("confirm")},
    {0},
};

static const struct field reject_fields[] = {
    {"custodian", FIELD_TEXT, offsetof(struct word_body, custodian), .required = true, .max = APPROVAL_NAME_MAX,
     .help = "Who says so; proven by the signature."},
    {"signature", FIELD_TEXT, offsetof(struct word_body, signature), .required = true, .max = 2 * SIGNATURE_BYTES,
     .help = SIGNATURE_HELP("reject")},
    {0},
};
/* clang-format on */

static int read_words(const struct json *confirmed, struct str *out, struct err *err)
{
    bool yes = false;

    if (json_is_text(confirmed, out))
        return 0;
    if (!json_is_bool(confirmed, &yes))
        return err_set(err, ERR_INVALID,
                       "/human_confirmed: true, or the text " ADVISE_CONFIRM_WORDS);
    *out = yes ? STR_LIT(ADVISE_CONFIRM_WORDS) : STR_LIT("false");
    return 0;
}

/* Whoever speaks for the agent does not carry the word on what it asked for, either. */
static int refuse_requester(struct call *call, const struct advise *advise, struct err *err)
{
    const char *requester = advise->terms.requester;
    bool is_maker = false;

    if (strcmp(call->caller.principal, requester) == 0)
        return err_set(err, ERR_FORBIDDEN, "%.64s began the session, and cannot decide about it",
                       requester);
    if (call_is_made_by(call, requester, &is_maker, err) < 0)
        return -1;
    if (is_maker)
        return err_set(err, ERR_FORBIDDEN,
                       "%.64s began the session and made this token, or one it was made with; "
                       "it cannot decide about it",
                       requester);
    return 0;
}

static int read_word(const struct word_body *given, bool confirm, struct advise_decision *out,
                     struct err *err)
{
    out->confirm = confirm;
    out->digest = given->digest;
    out->custodian = given->custodian;
    if (!hex_decode(str_of(given->signature), out->signature.b, sizeof out->signature.b))
        return err_set(err, ERR_INVALID, "/signature: %d hex digits", 2 * SIGNATURE_BYTES);
    return confirm ? read_words(given->confirmed, &out->words, err) : 0;
}

static int give_word(struct call *call, const struct word_body *given, bool confirm,
                     struct err *err)
{
    AUTO(advise) struct advise *advise = NULL;
    struct request request = call_request(call, ACTION_ADVISE_ACT);
    struct advise_decision decision = {.action = call->params[1]};
    struct advise_action action;
    struct json *answer;
    struct lent lent;
    struct run run;
    int failed;

    if (read_word(given, confirm, &decision, err) < 0 || session_open(call, &advise, err) < 0 ||
        refuse_requester(call, advise, err) < 0 || call_govern(call, &lent, err) < 0)
        return -1;
    run_init(&run);
    failed = govern_advise_decide(lent.govern, &request, advise, &decision, &run, &action, err);
    call_release(call, &lent);
    if (!failed) {
        answer = advise_action_json(&call->mem, &action);
        json_put_text(&call->mem, answer, "receipt_id", run.closing.id);
        failed = call_answer(call, 200, answer, err);
    }
    run_done(&run);
    return failed;
}

static int confirm_one(struct call *call, const void *body, const void *query, struct err *err)
{
    (void)query;
    return give_word(call, body, true, err);
}

static int reject_one(struct call *call, const void *body, const void *query, struct err *err)
{
    (void)query;
    return give_word(call, body, false, err);
}

/* clang-format off */
const struct route routes_session_actions[] = {
    {.method = HTTP_POST,
     .path = "/v1/advisory/sessions/{id}/actions",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_RUN,
     .creates = true,
     .body = BODY_JSON,
     .fields = ask_fields,
     .body_size = sizeof(struct ask_body),
     .name = "requestAdvisoryAction",
     .summary = "Ask for what only a person can let happen.",
     .answer = "The request: pending until expires_at, or rejected at once. 403: another principal began the session.",
     .handle = ask},
    {.method = HTTP_GET,
     .path = "/v1/advisory/sessions/{id}/actions",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .query = page_fields,
     .query_size = sizeof(struct page_query),
     .name = "listAdvisoryActions",
     .summary = "What an agent asked for.",
     .answer = "In the order of their ids, those that are pending with what Brig reads in them, or why it cannot (fault). At most "
               "limit, and fewer when they are large. The next page begins after next_after.",
     .handle = list},
    {.method = HTTP_GET,
     .path = "/v1/advisory/sessions/{id}/actions/{action}",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .name = "showAdvisoryAction",
     .summary = "One of them.",
     .answer = "The request as the agent made it, its digest, and what became of it. While it is pending also what Brig "
               "reads in it: whoever decides looks at that first.",
     .handle = show},
    {.method = HTTP_POST,
     .path = "/v1/advisory/sessions/{id}/actions/{action}/confirm",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_APPROVE,
     .body = BODY_JSON,
     .fields = confirm_fields,
     .body_size = sizeof(struct word_body),
     .name = "confirmAdvisoryAction",
     .summary = "Let exactly that happen, once: a custodian's signed word. Never by whoever began the session.",
     .answer = "The action as it stands now, and the receipt of it. state says whether it is confirmed, and done whether it "
               "was done; aborted means that nothing was and nothing will be. 403: the signature does not hold, or it comes "
               "from whoever began the session. 409: it is no longer pending.",
     .handle = confirm_one},
    {.method = HTTP_POST,
     .path = "/v1/advisory/sessions/{id}/actions/{action}/reject",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_APPROVE,
     .body = BODY_JSON,
     .fields = reject_fields,
     .body_size = sizeof(struct word_body),
     .name = "rejectAdvisoryAction",
     .summary = "Refuse it.",
     .answer = "The action as it stands now, and the receipt of it.",
     .handle = reject_one},
    {0},
};
/* clang-format on */
