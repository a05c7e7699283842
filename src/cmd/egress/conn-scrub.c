/* SPDX-License-Identifier: Apache-2.0 */

/* Answers of HTTP/1 over a connection that has carried a secret: the secret is struck out of heads
 * and bodies, and an answer that cannot be looked through is none. */

#include "cmd/egress/wanted.h"

#define CHUNK_FRAME (HTTP_CHUNK_HEAD_BYTES + 2 + sizeof HTTP_LAST_CHUNK)

void scrubbing_free(struct scrubbing *scrubbing)
{
    vault_scrub_free(scrubbing->scrub);
    buf_done(&scrubbing->out);
}

static void flag(struct conn *conn)
{
    struct scrubbing *scrubbing = &conn->exchange->scrubbing;
    const struct wanted_what what = {conn->exchange->head.method_text, conn->exchange->head.path};

    values_flag(conn, scrubbing->scrub, &scrubbing->flagged, &what);
}

/* The head lies in the server's block, which is ours to write to. */
static void strike(struct conn *conn, struct str text)
{
    char *block = conn->server.in.block;

    if (text.n)
        (void)vault_scrub_text(conn->exchange->scrubbing.scrub, block + (text.p - block), text.n);
}

bool scrub_head(struct conn *conn, enum vault_fault *fault)
{
    struct scrubbing *scrubbing = &conn->exchange->scrubbing;
    const struct http_head *answer = conn->exchange->answer;
    struct err err;

    *fault = VAULT_NO_FAULT;
    if (scrubbing->scrub || conn->value_n == 0)
        return true;
    if (values_scrub(conn, &scrubbing->scrub, &err) < 0)
        return false;
    scrubbing->out = BUF(2 * BLOCK_BYTES + vault_scrub_held_max(scrubbing->scrub));
    if (answer->framing != HTTP_NO_BODY)
        *fault = vault_answer_check(answer->headers, answer->header_count);
    if (*fault)
        return false;
    strike(conn, answer->reason);
    for (size_t i = 0; i < answer->header_count; i++) {
        strike(conn, answer->headers[i].name);
        strike(conn, answer->headers[i].value);
    }
    flag(conn);
    return true;
}

/* Puts on what was looked through. False: there is no room for all of it. */
static bool put_on(struct conn *conn)
{
    struct scrubbing *scrubbing = &conn->exchange->scrubbing;

    while (scrubbing->put < scrubbing->out.n) {
        struct str piece = {scrubbing->out.p + scrubbing->put, scrubbing->out.n - scrubbing->put};
        size_t room = bytes_room(&conn->client.out);

        if (room <= CHUNK_FRAME)
            return false;
        if (piece.n > room - CHUNK_FRAME)
            piece.n = room - CHUNK_FRAME;
        exchange_put_piece(&conn->client.out, piece, conn->exchange->answer_chunked);
        scrubbing->put += piece.n;
    }
    buf_clear(&scrubbing->out);
    scrubbing->put = 0;
    return true;
}

static bool look_through(struct conn *conn, struct str piece, bool is_last)
{
    struct scrubbing *scrubbing = &conn->exchange->scrubbing;
    struct err err;

    if (vault_scrub_feed(scrubbing->scrub, piece, is_last, &scrubbing->out, &err) < 0)
        return false;
    scrubbing->ended = is_last;
    flag(conn);
    return true;
}

static enum http_body_event end(struct conn *conn)
{
    if (!put_on(conn) ||
        (conn->exchange->answer_chunked && bytes_room(&conn->client.out) < sizeof HTTP_LAST_CHUNK))
        return HTTP_BODY_MORE;
    if (conn->exchange->answer_chunked)
        (void)bytes_put(&conn->client.out, HTTP_LAST_CHUNK, sizeof HTTP_LAST_CHUNK - 1);
    return HTTP_BODY_END;
}

enum http_body_event scrub_body(struct conn *conn, bool *moved)
{
    struct exchange *exchange = conn->exchange;
    const struct str none = {"", 0};

    while (put_on(conn) && !exchange->scrubbing.ended) {
        struct str in = bytes_str(&conn->server.in), piece = {NULL, 0};
        size_t had = in.n;
        enum http_body_event event = http_body_next(&exchange->answer_body, &in, &piece);
        bool is_last = event == HTTP_BODY_END;

        if ((event == HTTP_BODY_DATA || is_last) &&
            !look_through(conn, is_last ? none : piece, is_last))
            return HTTP_BODY_REFUSED;
        *moved = *moved || had != in.n;
        bytes_take(&conn->server.in, had - in.n);
        if (event == HTTP_BODY_MORE || event == HTTP_BODY_REFUSED)
            return event;
    }
    return exchange->scrubbing.ended ? end(conn) : HTTP_BODY_MORE;
}

enum http_body_event scrub_close(struct conn *conn)
{
    const struct str none = {"", 0};

    if (!conn->exchange->scrubbing.ended && !look_through(conn, none, true))
        return HTTP_BODY_REFUSED;
    return end(conn);
}
