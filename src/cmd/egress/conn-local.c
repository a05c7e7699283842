/* SPDX-License-Identifier: Apache-2.0 */

/* http://policy.local: programs inside ask which rules they have, what was refused, and for more.
 *
 * Nothing here changes a rule: what is asked for is kept, and a person answers outside. It is
 * spoken in plain HTTP to this one name and port, by whoever is inside; every answer ends its
 * connection. */

#include "cmd/egress/conn-private.h"

#include <string.h>

#include "flow/decide/decide.h"
#include "lib/base/memory.h"

#define ANSWER_MEMORY (4 * MIB)
#define AUTHORITY NET_LOCAL_NAME
#define AUTHORITY_WITH_PORT NET_LOCAL_NAME ":80"

_Static_assert(NET_LOCAL_PORT == 80, "as the authority has it");

bool local_is_meant(const struct conn *conn)
{
    return conn->port == NET_LOCAL_PORT && strcmp(conn->host, NET_LOCAL_NAME) == 0;
}

bool local_is_named(const struct sandbox *sandbox, struct str name)
{
    return str_is(name, NET_LOCAL_NAME) && net_rules_takes_proposals(sandbox->rules);
}

void local_done(struct conn *conn)
{
    if (conn->counts_as_local)
        conn->sandbox->local_n--;
    conn->counts_as_local = false;
}

/* ---- answering ---- */

static int write_answer(int status, struct str body, struct buf *out, struct err *err)
{
    static const struct http_header headers[] = {
        {STR_LIT("Content-Type"),  STR_LIT("application/json")},
        {STR_LIT("Cache-Control"), STR_LIT("no-store")        },
    };
    struct http_reply reply = {.status = status,
                               .headers = headers,
                               .header_count = COUNT(headers),
                               .framing = HTTP_LENGTH,
                               .length = body.n,
                               .close = true};

    return http_reply_write(&reply, out, err) < 0 ? -1 : buf_add_str(out, body, err);
}

static enum step say_text(struct conn *conn, int status, struct str body)
{
    struct err err;

    conn->exchange->waits_for[0] = '\0';
    conn->exchange->local_out = BUF(LOCAL_ANSWER_MAX + 4 * KIB);
    if (write_answer(status, body, &conn->exchange->local_out, &err) < 0)
        return STEP_CLOSE;
    conn->phase = PHASE_LOCAL;
    conn_wait(conn, BODY_MS);
    return STEP_AGAIN;
}

static enum step say(struct conn *conn, int status, const struct json *document)
{
    AUTO_BUF struct buf body = BUF(LOCAL_ANSWER_MAX);
    struct err err;

    if (json_compact(document, &body, &err) < 0)
        return STEP_CLOSE;
    return say_text(conn, status, buf_str(&body));
}

static enum step say_no(struct conn *conn, int status, const char *error, const char *text)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    struct json *document = json_object(&mem);

    json_put_text(&mem, document, "error", error);
    json_put_bytes(&mem, document, "message", str_of(text));
    return say(conn, status, document);
}

static enum step send_answer(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;
    struct buf *out = &exchange->local_out;

    exchange->local_put +=
        bytes_put(&conn->client.out, out->p + exchange->local_put, out->n - exchange->local_put);
    if (exchange->local_put < out->n)
        return conn->client.broken ? STEP_CLOSE : STEP_WAIT;
    local_done(conn);
    return conn_last(conn);
}

/* ---- what is asked for ---- */

static enum step tell_policy(struct conn *conn, struct str rest)
{
    AUTO_BUF struct buf body = BUF(LOCAL_ANSWER_MAX);
    struct str text = net_rules_text(conn->sandbox->rules);
    struct err err;

    (void)rest;
    if (text.n + 256 > LOCAL_ANSWER_MAX || text.n < 2)
        return say_no(conn, 413, "policy_too_large", "the rules are too long to be told");
    /* The text is an object with members, and goes on where ours begins. */
    if (buf_addf(&body, &err, "{\"version\":1,\"policy_hash\":\"%s\",",
                 net_rules_hash(conn->sandbox->rules)) < 0 ||
        buf_add(&body, text.p + 1, text.n - 1, &err) < 0)
        return STEP_CLOSE;
    return say_text(conn, 200, buf_str(&body));
}

/* "key=N" and nothing else, or nothing at all. */
static bool read_number(struct str query, const char *key, unsigned most, unsigned *out)
{
    struct str value = query;
    struct str name = str_cut(&value, '=');
    unsigned number = 0;

    if (query.n == 0)
        return true;
    if (!str_is(name, key) || value.n == 0 || value.n > 6)
        return false;
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] < '0' || value.p[i] > '9')
            return false;
        number = number * 10 + (unsigned)(value.p[i] - '0');
    }
    *out = number;
    return number >= 1 && number <= most;
}

static enum step tell_denials(struct conn *conn, struct str rest)
{
    AUTO_BUF struct buf body = BUF(LOCAL_ANSWER_MAX);
    unsigned last = LOCAL_DENIALS_MAX;
    struct err err;

    (void)rest;
    if (!read_number(conn->exchange->head.query, "last", LOCAL_DENIALS_MAX, &last))
        return say_no(conn, 400, "invalid_request", "\"last\" is a number from 1 to 100");
    if (buf_add_text(&body, "{\"denials\":", &err) < 0 ||
        events_denials(&conn->hub->events, conn->sandbox->id, last, &body, &err) < 0 ||
        buf_add_byte(&body, '}', &err) < 0)
        return STEP_CLOSE;
    return say_text(conn, 200, buf_str(&body));
}

/* ---- proposals ---- */

static int keep(struct conn *conn, const struct proposal_request *request,
                const struct proposal *proposal, const char **id, struct err *err)
{
    struct sandbox *sandbox = conn->sandbox;
    const struct proposal_new ask = {.sandbox = sandbox->id,
                                     .who = &sandbox->who,
                                     .intent = request->intent,
                                     .binary = conn_binary(conn),
                                     .rules_hash = net_rules_hash(sandbox->rules),
                                     .proposal = proposal};

    if (net_rules_has_entry(sandbox->rules, proposal->name))
        return err_set(err, ERR_CONFLICT, "the policy has an entry of this name; choose another");
    if (policy_proposal_check(proposal, err) < 0)
        return -1;
    return proposals_add(&conn->hub->proposals, &ask, id, err);
}

static void note(struct conn *conn, const char *id)
{
    struct event event = {.class = EVENT_RULES,
                          .allowed = true,
                          .host = str_of(conn->host),
                          .port = conn->port,
                          .method = STR_LIT("POST"),
                          .path = str_of(id),
                          .reason = "PROPOSED",
                          .binary = conn_binary(conn)};

    sandbox_event(conn->sandbox, &event);
}

static enum step take_proposals(struct conn *conn, struct arena *mem,
                                const struct proposal_request *request)
{
    struct json *document = json_object(mem), *ids = json_array(mem), *no = json_array(mem);
    size_t number = 0;

    json_each(operation, request->operations)
    {
        struct proposal *proposal = arena_new(mem, struct proposal);
        const char *id = NULL;
        struct err err;

        number++;
        if (proposal_read(mem, operation, proposal, &err) == 0 &&
            keep(conn, request, proposal, &id, &err) == 0) {
            json_push(ids, json_text(mem, str_of(id)));
            note(conn, id);
        } else {
            json_push(no, json_text(mem, str_of(arena_printf(mem, "operation %zu: %s", number,
                                                             err.text))));
        }
    }
    json_put(document, "accepted_chunk_ids", ids);
    json_put(document, "rejection_reasons", no);
    return say(conn, 202, document);
}

static enum step read_proposals(struct conn *conn)
{
    AUTO_ARENA struct arena mem = ARENA(ANSWER_MEMORY);
    struct proposal_request request;
    struct err err;

    if (proposal_request_read(&mem, buf_str(&conn->exchange->held), &request, &err) < 0)
        return say_no(conn, 400, "invalid_request", err.text);
    return take_proposals(conn, &mem, &request);
}

static bool may_ask_again(struct sandbox *sandbox)
{
    uint64_t second = sandbox->hub->loop.now_ms / 1000;

    if (sandbox->asked_second != second) {
        sandbox->asked_second = second;
        sandbox->asked_n = 0;
    }
    return sandbox->asked_n++ < PROPOSALS_PER_SECOND;
}

static enum step hold_body(struct conn *conn, struct str rest)
{
    struct exchange *exchange = conn->exchange;
    const struct http_head *head = &exchange->head;
    struct str coding = http_find(head, "content-encoding");

    (void)rest;
    if (head->framing == HTTP_LENGTH && head->length > PROPOSAL_BODY_MAX)
        return say_no(conn, 413, "payload_too_large", "a body has at most 65536 bytes");
    if (coding.n && !http_name_is(coding, "identity"))
        return say_no(conn, 415, "invalid_request", "send the body without a content coding");
    if (!may_ask_again(conn->sandbox))
        return say_no(conn, 429, "too_many_requests",
                      "at most 4 bodies a second are read; try again");
    http_body_init(&exchange->body, head, BODY_MAX);
    conn->phase = PHASE_LOCAL;
    conn_wait(conn, LOCAL_BODY_MS);
    if (head->expects_continue)
        (void)bytes_put(&conn->client.out, HTTP_CONTINUE, sizeof HTTP_CONTINUE - 1);
    return STEP_AGAIN;
}

static enum step collect_body(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;
    struct err err;

    for (;;) {
        struct str in = bytes_str(&conn->client.in), piece = {NULL, 0};
        size_t had = in.n;
        enum http_body_event event = http_body_next(&exchange->body, &in, &piece);

        if (event == HTTP_BODY_REFUSED)
            return say_no(conn, http_fault_status(exchange->body.fault), "invalid_request",
                          http_fault_text(exchange->body.fault));
        if (event == HTTP_BODY_DATA && (exchange->held.n + piece.n > PROPOSAL_BODY_MAX ||
                                        buf_add_str(&exchange->held, piece, &err) < 0))
            return say_no(conn, 413, "payload_too_large", "a body has at most 65536 bytes");
        bytes_take(&conn->client.in, had - in.n);
        if (event == HTTP_BODY_END)
            return read_proposals(conn);
        if (event == HTTP_BODY_MORE)
            return conn->client.ended ? STEP_CLOSE : STEP_WAIT;
    }
}

/* ---- what became of one ---- */

static enum step say_status(struct conn *conn, const struct waiting *waiting, bool timed_out)
{
    AUTO_ARENA struct arena mem = ARENA(256 * KIB);
    struct json *document = json_object(&mem);

    json_put_text(&mem, document, "id", waiting->id);
    json_put_text(&mem, document, "rule_name", waiting->name);
    json_put_text(&mem, document, "status", proposal_status_name(waiting->status));
    json_put_bool(&mem, document, "timed_out", timed_out);
    /* Rules are exchanged before the word is given, never after. */
    json_put_bool(&mem, document, "policy_reloaded", waiting->status == PROPOSAL_APPROVED);
    if (waiting->policy_hash[0])
        json_put_text(&mem, document, "policy_hash", waiting->policy_hash);
    json_put_text(&mem, document, "validation_result", "valid");
    if (waiting->status == PROPOSAL_REJECTED)
        json_put_bytes(&mem, document, "rejection_reason",
                       str_of(waiting->reason ? waiting->reason : ""));
    return say(conn, 200, document);
}

static enum step say_unknown(struct conn *conn)
{
    return say_no(conn, 404, "not_found", "this sandbox has made no such proposal");
}

static enum step tell_one(struct conn *conn, struct str id)
{
    const struct waiting *waiting = proposals_find(&conn->hub->proposals, conn->sandbox->id, id);

    return waiting ? say_status(conn, waiting, false) : say_unknown(conn);
}

static enum step wait_for_one(struct conn *conn, struct str id)
{
    const struct waiting *waiting = proposals_find(&conn->hub->proposals, conn->sandbox->id, id);
    unsigned seconds = LOCAL_WAIT_S;

    if (!read_number(conn->exchange->head.query, "timeout", LOCAL_WAIT_MAX_S, &seconds))
        return say_no(conn, 400, "invalid_request", "\"timeout\" is a number from 1 to 300");
    if (!waiting)
        return say_unknown(conn);
    (void)snprintf(conn->exchange->waits_for, sizeof conn->exchange->waits_for, "%s", waiting->id);
    conn->phase = PHASE_LOCAL;
    conn_wait(conn, seconds * 1000ULL);
    return STEP_AGAIN;
}

static enum step look_again(struct conn *conn, bool timed_out)
{
    const struct waiting *waiting =
        proposals_find(&conn->hub->proposals, conn->sandbox->id, str_of(conn->exchange->waits_for));

    if (!waiting)
        return say_unknown(conn);
    return waiting->status == PROPOSAL_PENDING && !timed_out ? STEP_WAIT
                                                             : say_status(conn, waiting, timed_out);
}

void sandbox_tell_waiting(struct sandbox *sandbox)
{
    for (struct conn *conn = sandbox->conns, *next; conn; conn = next) {
        next = conn->next;
        if (conn->phase == PHASE_LOCAL && conn->exchange->waits_for[0])
            conn_drive(conn);
    }
}

/* ---- steps ---- */

enum step step_local(struct conn *conn)
{
    if (conn->exchange->local_out.n)
        return send_answer(conn);
    return conn->exchange->waits_for[0] ? look_again(conn, false) : collect_body(conn);
}

enum step local_give_up(struct conn *conn)
{
    if (conn->exchange->local_out.n)
        return STEP_CLOSE;
    if (conn->exchange->waits_for[0])
        return look_again(conn, true);
    return say_no(conn, 408, "timeout", "the body did not arrive in time");
}

/* What is behind `path`; "{}" in a row stands for the id. */
static bool matches(struct str path, const char *row, struct str *id)
{
    const char *hole = strstr(row, "{}");
    size_t before = hole ? (size_t)(hole - row) : strlen(row);
    size_t after = hole ? strlen(hole + 2) : 0;

    if (!hole)
        return str_is(path, row);
    if (path.n <= before + after || memcmp(path.p, row, before) != 0 ||
        memcmp(path.p + path.n - after, hole + 2, after) != 0)
        return false;
    *id = (struct str){path.p + before, path.n - before - after};
    return !memchr(id->p, '/', id->n);
}

static const struct {
    enum http_method method;
    const char *path;
    bool has_query;
    enum step (*run)(struct conn *conn, struct str id);
} rows[] = {
    {HTTP_GET,  "/v1/policy/current",    false, tell_policy },
    {HTTP_GET,  "/v1/denials",           true,  tell_denials},
    {HTTP_POST, "/v1/proposals",         false, hold_body   },
    {HTTP_GET,  "/v1/proposals/{}",      false, tell_one    },
    {HTTP_GET,  "/v1/proposals/{}/wait", true,  wait_for_one},
};

static enum step route(struct conn *conn)
{
    const struct http_head *head = &conn->exchange->head;
    bool has_path = false;

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct str id = {"", 0};

        if (!matches(head->path, rows[i].path, &id))
            continue;
        has_path = true;
        if (head->method != rows[i].method)
            continue;
        if (head->query.n && !rows[i].has_query)
            return say_no(conn, 400, "invalid_request", "there is nothing to ask for behind \"?\"");
        if (head->method == HTTP_GET && head->framing != HTTP_NO_BODY)
            return say_no(conn, 400, "invalid_request", "a GET has no body");
        return rows[i].run(conn, id);
    }
    return has_path ? say_no(conn, 405, "method_not_allowed", "this is asked in another way")
                    : say_no(conn, 404, "not_found",
                             "there is /v1/policy/current, /v1/denials and /v1/proposals");
}

static bool is_exact(struct str authority)
{
    return str_is(authority, AUTHORITY) || str_is(authority, AUTHORITY_WITH_PORT);
}

enum step local_begin(struct conn *conn)
{
    const struct http_head *head = &conn->exchange->head;

    if (!is_exact(head->host) ||
        (head->form == HTTP_ABSOLUTE &&
         !(http_name_is(head->scheme, "http") && is_exact(head->authority))))
        return say_no(conn, 421, "request_authority_mismatch",
                      "Host must be exactly " NET_LOCAL_NAME);
    if (!net_rules_takes_proposals(conn->sandbox->rules))
        return say_no(conn, 404, "feature_disabled",
                      "proposals are off; a person turns them on with \"agent_proposals: true\" "
                      "in the policy");
    if (conn->sandbox->local_n >= LOCAL_CALLS_MAX)
        return say_no(conn, 429, "too_many_requests", "too many requests are under way");
    conn->sandbox->local_n++;
    conn->counts_as_local = true;
    return route(conn);
}
