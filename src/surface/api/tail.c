/* SPDX-License-Identifier: Apache-2.0 */

/* The ledger, followed: each receipt once, in order, as it becomes durable.
 *
 * The number of the last one that was told is all there is to remember, so whoever comes back with
 * it misses nothing and hears nothing twice. What this process appends rings a bell; what others
 * append is found by looking once a second. A piece is read whole before any of it is sent: a slow
 * client holds its own thread, and no lock. */

#include "surface/api/api-private.h"
#include "surface/api/tables.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "flow/record/record.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "surface/api/stream.h"

#define LOOK_MS 1000
#define ALIVE_MS 15000 /* a comment to a silent event stream, for proxies that count silence */
#define PIECE_ROWS 256
#define PIECE_BYTES (256 * KIB)

struct tail_query {
    uint64_t after;
    bool has_after;
    uint64_t limit;
    uint64_t wait_ms;
};

/* clang-format off */
static const struct field tail_query[] = {
    {"after", FIELD_COUNT, offsetof(struct tail_query, after),
     .given = 1 + offsetof(struct tail_query, has_after),
     .help = "Begin behind the receipt of this number; 0: with the first. By default with the next "
             "one that is made. Last-Event-ID says the same."},
    {"limit", FIELD_COUNT, offsetof(struct tail_query, limit), .min = 1,
     .help = "It ends after so many; by default when the client leaves."},
    {"wait_ms", FIELD_COUNT, offsetof(struct tail_query, wait_ms), .min = 1, .max = 86400000,
     .help = "It ends after this long."},
    {0},
};
/* clang-format on */

struct tail {
    struct call *call;
    struct record *record;
    bool is_sse;
    uint64_t seq;  /* of the last that was told */
    uint64_t left; /* how many may still be; UINT64_MAX: all */
    uint64_t ends_us, told_us;
    int bell_fd;
    int fd; /* to the client */
    struct buf piece;
    unsigned in_piece;
};

/* ---- pieces ---- */

static int add_line(void *context, uint64_t seq, struct str line, struct err *err)
{
    struct tail *tail = context;

    if (tail->is_sse) {
        char id[24];

        (void)snprintf(id, sizeof id, "%llu", (unsigned long long)seq);
        if (http_sse_write(STR_LIT("receipt"), str_of(id), line, &tail->piece, err) < 0)
            return -1;
    } else if (buf_add_str(&tail->piece, line, err) < 0 ||
               buf_add_byte(&tail->piece, '\n', err) < 0) {
        return -1;
    }
    tail->seq = seq;
    tail->in_piece++;
    return tail->piece.n < PIECE_BYTES ? 0 : 1;
}

/* 1: there may be more right away. */
static int tell_piece(struct tail *tail, struct err *err)
{
    unsigned most = tail->left < PIECE_ROWS ? (unsigned)tail->left : PIECE_ROWS;

    buf_clear(&tail->piece);
    tail->in_piece = 0;
    if (record_after(tail->record, tail->seq, most, add_line, tail, err) < 0)
        return -1;
    if (!tail->in_piece)
        return 0;
    if (write_all(tail->fd, tail->piece.p, tail->piece.n, err) < 0)
        return -1;
    tail->told_us = clock_us();
    if (tail->left != UINT64_MAX)
        tail->left -= tail->in_piece;
    return 1;
}

static int tell_alive(struct tail *tail, struct err *err)
{
    if (!tail->is_sse || clock_us() - tail->told_us < ALIVE_MS * 1000ULL)
        return 0;
    tail->told_us = clock_us();
    return write_all(tail->fd, ":\n\n", 3, err);
}

/* ---- waiting ---- */

static bool is_over(const struct tail *tail)
{
    return tail->left == 0 || clock_us() >= tail->ends_us ||
           __atomic_load_n(&tail->call->api->is_stopping, __ATOMIC_RELAXED);
}

/* Until something may be there, or a second has passed. 1: the client has left. */
static int wait_for_more(struct tail *tail, struct err *err)
{
    struct pollfd fds[] = {
        {.fd = tail->bell_fd,         .events = POLLIN},
        {.fd = tail->call->orders[0], .events = POLLIN},
        {.fd = tail->fd,              .events = 0     }, /* nobody reads any more: POLLERR */
    };
    uint64_t now = clock_us(), left_ms = tail->ends_us > now ? (tail->ends_us - now) / 1000 + 1 : 0;
    uint64_t rung;

    if (poll(fds, COUNT(fds), left_ms < LOOK_MS ? (int)left_ms : LOOK_MS) < 0 && errno != EINTR)
        return err_os(err, "waiting for receipts");
    if (fds[0].revents)
        (void)!read(tail->bell_fd, &rung, sizeof rung);
    return fds[1].revents || fds[2].revents ? 1 : 0;
}

static int follow(struct tail *tail, struct err *err)
{
    while (!is_over(tail)) {
        int more = tell_piece(tail, err);

        if (more < 0)
            return -1;
        if (more)
            continue;
        more = wait_for_more(tail, err);
        if (more || tell_alive(tail, err) < 0)
            return more < 0 ? -1 : 0;
    }
    return 0;
}

/* ---- the call ---- */

/* What the client has seen counts more than where it once began. */
static int begin_at(struct tail *tail, const struct tail_query *query, struct err *err)
{
    const char *last = tail->call->last_event;

    if (last && *last)
        return str_u64(str_of(last), &tail->seq)
                   ? 0
                   : err_set(err, ERR_INVALID, "Last-Event-ID must be the number of a receipt");
    tail->seq = query->after;
    return query->has_after ? 0 : record_last(tail->record, &tail->seq, err);
}

static int run_tail(struct tail *tail, const struct tail_query *query, struct err *err)
{
    const char *dir = tenant_state_dir(tail->call->tenant);
    AUTO(record_bell) struct record_bell *bell = NULL;
    AUTO(record) struct record *record = NULL;
    struct stream_config config = {.frame = FRAME_RAW, .sources = 1};
    int fds[STREAM_SOURCES];
    int failed;

    config.type = tail->is_sse ? HTTP_SSE_TYPE : "application/x-ndjson";
    /* The bell is there before the first look: nothing falls between the two. */
    if (record_bell_open(dir, &bell, &tail->bell_fd, err) < 0 || record_open(dir, &record, err) < 0)
        return -1;
    tail->record = record;
    if (begin_at(tail, query, err) < 0 || stream_open(tail->call, &config, fds, err) < 0)
        return -1;
    tail->fd = fds[0];
    tail->told_us = clock_us();
    failed = follow(tail, err);
    (void)close(tail->fd);
    return failed;
}

static int tail(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct tail_query *wanted = query;
    struct tail tail = {
        .call = call,
        .is_sse = strstr(call->accept, "text/event-stream") != NULL,
        .left = wanted->limit ? wanted->limit : UINT64_MAX,
        .ends_us = wanted->wait_ms ? clock_us() + wanted->wait_ms * 1000 : UINT64_MAX,
        .piece = BUF(PIECE_BYTES + 3 * RECEIPT_TEXT_MAX),
    };
    int failed;

    (void)body;
    if (tenant_tail_enter(call->tenant, err) < 0)
        return -1;
    failed = run_tail(&tail, wanted, err);
    buf_done(&tail.piece);
    tenant_tail_leave(call->tenant);
    return failed;
}

/* clang-format off */
const struct route routes_tail[] = {
    {.method = HTTP_GET,
     .path = "/v1/receipts/tail",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RECEIPTS,
     .query = tail_query,
     .query_size = sizeof(struct tail_query),
     .name = "tailReceipts",
     .summary = "Receipts as they are made, each once and in order.",
     .answer = "Lines of JSON as an export has them; or events whose id is the receipt's number, "
               "when the client accepts text/event-stream.",
     .handle = tail},
    {0},
};
/* clang-format on */
