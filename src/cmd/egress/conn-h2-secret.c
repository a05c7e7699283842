/* SPDX-License-Identifier: Apache-2.0 */

/* Secrets in requests of HTTP/2: a stream waits while the keeper is asked, and its answer is looked
 * through. */

#include "cmd/egress/conn-h2.h"

#include <stddef.h>

#include "cmd/egress/intercept.h"

static struct wanted_what what_of(const struct asked *asked)
{
    return (struct wanted_what){asked->request.method, asked->request.path};
}

static struct vault_request request_of(const struct asked *asked, const struct http_head *head,
                                       struct str body)
{
    struct vault_request request = {.method = head->method_text,
                                    .target = head->target,
                                    .body = body,
                                    .has_more = asked->has_body && !asked->is_held};

    request.headers = h2_headers(head, &request.header_count);
    return request;
}

static void refuse(struct asked *asked, const struct wanted_no *no, struct h2_word *out)
{
    h2_refuse(asked->conn, asked, no, out);
}

/* ---- asking ---- */

static void on_answer(struct ask *ask);
static void on_late(struct timer *timer);

/* The word is to wait, unless nobody can be asked. */
static void wait(struct asked *asked, struct h2_word *out)
{
    struct wanted_no no;

    if (asked->wanted->ask.is_done) {
        no = wanted_failed(&asked->wanted->ask);
        refuse(asked, &no, out);
        return;
    }
    asked->timer.on = on_late;
    loop_after(&asked->conn->hub->loop, &asked->timer, SECRET_MS);
    out->answer = H2_WAIT;
}

static void fill(struct asked *asked, const struct vault_request *request, struct h2_word *out)
{
    const struct vault_filled *filled = &asked->wanted->filled;
    struct wanted_no no;
    struct h2_sent sent;

    if (!wanted_fill(asked->wanted, asked->conn, request, &no)) {
        if (asked->conn->value_n == VAULT_SCRUB_MAX)
            h2_relay_finish(asked->conn->intercept->h2); /* it has carried what it may */
        refuse(asked, &no, out);
        return;
    }
    sent = (struct h2_sent){filled->headers, filled->header_count, filled->target, filled->body};
    h2_pass(asked->conn, asked, &sent, out);
}

/* The first use, the next one, or all of them are there. */
static void reveal(struct asked *asked, const struct vault_request *request, struct h2_word *out)
{
    struct wanted_what what = what_of(asked);

    if (asked->wanted->value_n == asked->wanted->uses.n) {
        fill(asked, request, out);
        return;
    }
    wanted_ask_value(asked->wanted, asked->conn, &what);
    wait(asked, out);
}

static void find(struct asked *asked, const struct http_head *head, struct str body,
                 struct h2_word *out)
{
    struct vault_request request = request_of(asked, head, body);
    struct h2_sent sent = {.headers = request.headers, .header_n = request.header_count};
    struct wanted_what what = what_of(asked);
    struct wanted_no no;

    if (!wanted_find(asked->wanted, asked->conn, &what, &asked->verdict, &request, &no))
        refuse(asked, &no, out);
    else if (!asked->wanted || asked->wanted->uses.n == 0)
        h2_pass(asked->conn, asked, &sent, out);
    else
        reveal(asked, &request, out);
}

static void take_bound(struct asked *asked, const struct http_head *head, struct str body,
                       struct h2_word *out)
{
    struct vault_request request = request_of(asked, head, body);
    struct wanted *wanted = asked->wanted;

    wanted->bound_n = wanted->ask.slot_n;
    for (size_t i = 0; i < wanted->bound_n; i++)
        wanted->bound[i] = wanted->ask.slots[i];
    if (asked->has_body && !asked->is_held && wanted_needs_body(wanted, &request)) {
        out->answer = H2_HOLD;
        out->hold_max = VAULT_BODY_MAX;
        return;
    }
    find(asked, head, body, out);
}

void h2_secret_look(struct asked *asked, const struct http_head *head, struct str body,
                    struct h2_word *out)
{
    struct wanted_what what = what_of(asked);

    if (!secrets_are_open(&asked->conn->hub->secrets)) {
        find(asked, head, body, out);
        return;
    }
    asked->wanted = wanted_new(asked, on_answer);
    wanted_ask_bound(asked->wanted, asked->conn, &what);
    if (asked->wanted->ask.is_done && !asked->wanted->ask.failed)
        take_bound(asked, head, body, out); /* it was known */
    else
        wait(asked, out);
}

bool h2_secret_held(struct asked *asked, const struct http_head *head, struct str body,
                    struct h2_word *out)
{
    asked->is_held = true;
    if (!asked->wanted)
        return false;
    find(asked, head, body, out);
    return true;
}

static void go_on(struct asked *asked, struct h2_word *out)
{
    struct wanted *wanted = asked->wanted;
    struct str body = asked->is_held ? h2_stream_body(asked->stream) : (struct str){"", 0};
    struct wanted_no no = wanted_failed(&wanted->ask);
    struct vault_request request;
    struct http_head head;

    if (wanted->ask.failed || h2_stream_head(asked->stream, &head) < 0) {
        refuse(asked, &no, out);
        return;
    }
    if (!wanted->ask.wants_value) {
        take_bound(asked, &head, body, out);
        return;
    }
    wanted_take_value(wanted);
    request = request_of(asked, &head, body);
    reveal(asked, &request, out);
}

/* After the word the request may be gone, and with it `asked`. */
static void say(struct asked *asked, const struct h2_word *word)
{
    struct conn *conn = asked->conn;
    struct err err;

    loop_cancel(&conn->hub->loop, &asked->timer);
    if (h2_relay_answer(conn->intercept->h2, asked->stream, word, &err) < 0)
        conn_close(conn); /* cannot be: it waits */
    else
        conn_drive(conn);
}

static void on_answer(struct ask *ask)
{
    struct asked *asked = wanted_of(ask)->owner;
    struct h2_word word = {0};

    go_on(asked, &word);
    if (word.answer != H2_WAIT)
        say(asked, &word);
}

static void on_late(struct timer *timer)
{
    static const struct wanted_no late = {504, "VAULT_TIMEOUT",
                                          "the keeper of the vault does not answer"};
    struct asked *asked = (struct asked *)((char *)timer - offsetof(struct asked, timer));
    struct h2_word word = {0};

    ask_cancel(&asked->wanted->ask);
    refuse(asked, &late, &word);
    say(asked, &word);
}

void h2_secret_done(struct asked *asked)
{
    loop_cancel(&asked->conn->hub->loop, &asked->timer);
    wanted_free(asked->wanted);
    vault_scrub_free(asked->scrub);
}

/* ---- what passes ---- */

bool h2_secret_scan(struct asked *asked, struct str piece)
{
    struct wanted_no no;

    if (vault_scan_feed(&asked->placeholders, piece) == 0)
        return true;
    no = asked->wanted ? wanted_fault(VAULT_FAULT_MISPLACED)
                       : wanted_nothing(&asked->conn->hub->secrets);
    h2_count_refusal(asked->conn, asked, no.status, no.reason, asked->conn->way.entry);
    return false;
}

static void flag(struct asked *asked)
{
    struct wanted_what what = what_of(asked);

    values_flag(asked->conn, asked->scrub, &asked->flagged, &what);
}

static void strike(struct asked *asked, struct str text)
{
    /* It lies in memory of the relay's that is ours to change (h2.h). */
    if (text.n)
        (void)vault_scrub_text(asked->scrub, (char *)(uintptr_t)text.p, text.n);
}

/* A secret that another stream sent meanwhile may come back in this one: from here on it is looked
 * for, too. */
static bool look_for_more(struct asked *asked)
{
    struct vault_scrub *before = asked->scrub;
    struct err err;

    if (asked->turn == asked->conn->value_turn)
        return true;
    asked->scrub = NULL;
    asked->turn = asked->conn->value_turn;
    if (values_scrub(asked->conn, &asked->scrub, &err) == 0 && before)
        vault_scrub_follow(asked->scrub, before);
    vault_scrub_free(before);
    return asked->scrub != NULL;
}

/* What is compressed cannot be looked through, and ends when there is something to look for. */
static bool can_look(struct asked *asked)
{
    if (asked->conn->value_n == 0)
        return true;
    if (!asked->is_coded)
        return look_for_more(asked);
    h2_count_refusal(asked->conn, asked, 502, vault_fault_code(VAULT_FAULT_ENCODED_ANSWER),
                     asked->conn->way.entry);
    return false;
}

bool h2_scrub_head(struct asked *asked, const struct http_head *head)
{
    if (head->status >= 200 && head->framing != HTTP_NO_BODY)
        asked->is_coded = vault_answer_check(head->headers, head->header_count) != VAULT_NO_FAULT;
    if (!can_look(asked))
        return false;
    for (size_t i = 0; asked->scrub && i < head->header_count; i++) {
        strike(asked, head->headers[i].name);
        strike(asked, head->headers[i].value);
    }
    if (asked->scrub)
        flag(asked);
    return true;
}

bool h2_scrub_body(struct asked *asked, struct str piece, bool is_last, struct buf *out)
{
    struct err err;

    if (!can_look(asked))
        return false;
    if (!asked->scrub)
        return buf_add_str(out, piece, &err) == 0;
    if (vault_scrub_feed(asked->scrub, piece, is_last, out, &err) < 0)
        return false;
    flag(asked);
    return true;
}
