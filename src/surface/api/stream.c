/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/api/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <uv.h>

#include "lib/base/limits.h"
#include "lib/base/text.h"
#include "lib/http/http-ws.h"
#include "surface/api/api-private.h"

#define PIECE_BYTES (64 * KIB)
#define UTF8_REST_MAX 3
#define PIPE_BYTES (256 * KIB)

struct source {
    uv_poll_t poll;
    struct stream *stream;
    int fd; /* our end; -1: it has ended */
    bool has_handle;
    bool is_polled;
    uint64_t bytes;           /* so far, from its beginning on */
    uint64_t taken;           /* of them, as the client says */
    char rest[UTF8_REST_MAX]; /* the beginning of a character whose end has not come */
    size_t rest_n;
};

struct stream {
    struct call *call;
    struct stream_config config;
    struct source sources[STREAM_SOURCES];
    bool has_begun;
    bool has_head; /* the client has that of the answer */
    bool is_done;  /* the handler has said its last word */
    bool is_full;  /* the client is behind */
    bool is_gone;
    struct buf line; /* the event that is being told */
};

static const char *const source_names[STREAM_SOURCES] = {"stdout", "stderr"};

/* ---- in the handler's thread ---- */

static void begin(struct http_exchange *x, void *argument);

static int open_pipe(int *ours, int *theirs, struct err *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_os(err, "making a pipe");
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(ends[1], F_SETPIPE_SZ, (int)PIPE_BYTES); /* a smaller one only costs turns */
    *ours = ends[0];
    *theirs = ends[1];
    return 0;
}

int stream_open(struct call *call, const struct stream_config *config, int fds[STREAM_SOURCES],
                struct err *err)
{
    struct stream *stream = xcalloc(1, sizeof *stream);

    stream->call = call;
    stream->config = *config;
    stream->line = BUF(JSON_TEXT_MAX);
    for (unsigned i = 0; i < STREAM_SOURCES; i++) {
        stream->sources[i].fd = fds[i] = -1;
        stream->sources[i].stream = stream;
        stream->sources[i].bytes = config->from[i];
    }
    for (unsigned i = 0; i < config->sources; i++)
        if (open_pipe(&stream->sources[i].fd, &fds[i], err) < 0) {
            for (unsigned j = 0; j < i; j++) {
                (void)close(stream->sources[j].fd);
                (void)close(fds[j]);
            }
            stream_free(stream);
            return -1;
        }
    posts_add(call->api->posts, call->exchange, begin, stream);
    return 0;
}

void stream_free(struct stream *stream)
{
    if (!stream)
        return;
    buf_done(&stream->line);
    free(stream);
}

/* ---- in the loop ---- */

static void on_closed(uv_handle_t *handle)
{
    struct source *source = handle->data;

    call_drop(source->stream->call);
}

/* Its call stays until libuv has let go of the handle. */
static void close_source(struct source *source)
{
    if (source->fd < 0)
        return;
    (void)close(source->fd);
    source->fd = -1;
    if (source->has_handle)
        uv_close((uv_handle_t *)&source->poll, on_closed);
}

static bool send_event(struct stream *stream, struct http_exchange *x, const char *name,
                       const char *id, struct str text)
{
    struct err ignored; /* our own names have no line ends */
    bool go_on = true;

    switch (stream->config.frame) {
    case FRAME_NDJSON:
        return http_send(x, text);
    case FRAME_SSE:
        if (http_send_event(x, str_of(name), str_of(id), str_trim(text), &go_on, &ignored) < 0)
            http_abort(x);
        return go_on;
    case FRAME_WS:
        return stream->call->ws ? http_ws_send(stream->call->ws, true, text) : true;
    case FRAME_RAW:
        break;
    }
    return true;
}

static const char *position(struct arena *mem, const struct stream *stream)
{
    return arena_printf(mem, "%llu.%llu", (unsigned long long)stream->sources[0].bytes,
                        (unsigned long long)stream->sources[1].bytes);
}

/* One event as a line of JSON. */
static bool emit(struct stream *stream, struct http_exchange *x, const char *name,
                 struct json *event, struct arena *mem)
{
    const char *id = position(mem, stream);
    struct err err;

    buf_clear(&stream->line);
    json_put_text(mem, event, "id", id);
    if (json_compact(event, &stream->line, &err) < 0 || buf_add_byte(&stream->line, '\n', &err) < 0)
        return true;
    return send_event(stream, x, name, id, buf_str(&stream->line));
}

/* How much of it can be told at once, and whether as text: a character that is cut off waits for
 * its rest. */
static size_t text_part(struct str bytes, bool *is_text)
{
    size_t good = str_utf8_prefix(bytes);
    size_t left = bytes.n - good;
    unsigned char lead = left ? (unsigned char)bytes.p[good] : 0;
    size_t wanted = lead >= 0xf0 && lead < 0xf5 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
    bool waits = left && left < wanted && left <= UTF8_REST_MAX && lead < 0xf5;

    *is_text = waits || left == 0;
    return waits ? good : bytes.n;
}

static bool send_data(struct source *source, struct http_exchange *x, struct str bytes,
                      bool is_text)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    struct stream *stream = source->stream;
    const char *name = source_names[source - stream->sources];
    struct json *event = json_object(&mem);
    struct json text = {.kind = JSON_STRING, .text = bytes}; /* where it lies: it is much */

    source->bytes += bytes.n;
    json_put_text(&mem, event, "event", name);
    if (is_text)
        json_put(event, "data", &text);
    else
        json_put_bytes(&mem, event, "data", bytes);
    return emit(stream, x, name, event, &mem);
}

/* What was held back comes first. */
static bool pass_on(struct source *source, struct http_exchange *x, char *piece, size_t n)
{
    struct str bytes;
    bool is_text;
    size_t part;

    if (source->stream->config.is_binary && source->stream->call->ws) {
        source->bytes += n;
        memmove(piece + 1, piece, n);
        piece[0] = (char)(1 + (source - source->stream->sources));
        return http_ws_send(source->stream->call->ws, false, (struct str){piece, n + 1});
    }
    memmove(piece + source->rest_n, piece, n);
    memcpy(piece, source->rest, source->rest_n);
    bytes = (struct str){piece, source->rest_n + n};
    part = text_part(bytes, &is_text);
    source->rest_n = bytes.n - part;
    memcpy(source->rest, bytes.p + part, source->rest_n);
    return part ? send_data(source, x, (struct str){bytes.p, part}, is_text) : true;
}

static bool has_room(const struct source *source)
{
    uint64_t window = source->stream->config.window;

    return !source->stream->is_full && (!window || source->bytes - source->taken < window);
}

/* Listens to it as long as there is room for what it says. */
static void update(struct source *source)
{
    bool room = has_room(source);

    if (source->fd < 0 || !source->has_handle || source->is_polled == room)
        return;
    source->is_polled = room;
    if (room)
        (void)uv_poll_start(&source->poll, UV_READABLE, source->poll.poll_cb);
    else
        (void)uv_poll_stop(&source->poll);
}

static void hold(struct stream *stream, bool full)
{
    stream->is_full = full;
    for (unsigned i = 0; i < stream->config.sources; i++)
        update(&stream->sources[i]);
}

static bool has_ended(const struct stream *stream)
{
    for (unsigned i = 0; i < stream->config.sources; i++)
        if (stream->sources[i].fd >= 0)
            return false;
    return stream->is_done && stream->has_begun;
}

static void send_last(struct stream *stream, struct http_exchange *x)
{
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    struct call *call = stream->call;
    struct json *event = json_object(&mem);
    const struct json *answer = NULL;
    const char *name = call->failed ? "error" : "exit";
    struct mark where;
    struct err err;

    json_put_text(&mem, event, "event", name);
    if (call->answer.n && json_parse(&mem, buf_str(&call->answer), &answer, &where, &err) == 0)
        for (const struct json *member = answer->first; member; member = member->next) {
            struct json *copy = arena_new(&mem, struct json);

            *copy = *member;
            copy->next = NULL;
            json_put(event, arena_text(&mem, member->key), copy);
        }
    (void)emit(stream, x, name, event, &mem);
}

static const char *content_type(const struct stream_config *config)
{
    switch (config->frame) {
    case FRAME_RAW:
        return config->type;
    case FRAME_NDJSON:
        return "application/x-ndjson";
    case FRAME_SSE:
        return HTTP_SSE_TYPE;
    case FRAME_WS:
        break; /* it has none: its answer stands already */
    }
    return "";
}

static bool begin_answer(struct stream *stream, struct http_exchange *x)
{
    const struct stream_config *config = &stream->config;
    const struct call *call = stream->call;
    struct http_header headers[4 + CALL_HEADERS_MAX + 1] = {
        {STR_LIT("content-type"),  str_of(content_type(config))                  },
        {STR_LIT("x-request-id"),  str_of(call->id)                              },
        {STR_LIT("cache-control"), STR_LIT("no-store")                           },
        {STR_LIT("trailer"),       str_of(config->trailer ? config->trailer : "")},
    };
    size_t n = call_headers(call, config->status >= 400, headers, config->trailer ? 4 : 3);
    struct err err;

    stream->has_head = true;
    if (config->frame == FRAME_WS)
        return true;
    if (config->status == 101)
        return http_upgrade(x, 101, call->extra, call->extra_n, &err) == 0;
    return http_begin(x, config->status ? config->status : 200, headers, n,
                      config->length ? config->length : HTTP_STREAM, &err) == 0;
}

/* What is not complete must not look so; what has not begun can still be an answer of another kind.
 */
static void end_raw(struct stream *stream, struct http_exchange *x)
{
    struct call *call = stream->call;
    bool is_broken = (call->failed && !call->told) || call->is_cut;

    if (is_broken && call->failed && !stream->has_head)
        call_put(call, x);
    else if (is_broken || (!stream->has_head && !begin_answer(stream, x)))
        http_abort(x);
    else
        http_end_with(x, call->trailers, call->trailer_n);
}

static void end_if_ended(struct stream *stream)
{
    struct http_exchange *x =
        http_exchange_find(api_server(stream->call->api), stream->call->exchange);

    if (stream->is_gone || !x || !has_ended(stream))
        return;
    stream->is_gone = true;
    if (stream->config.frame == FRAME_RAW) {
        end_raw(stream, x);
        return;
    }
    send_last(stream, x);
    if (stream->config.frame == FRAME_WS && stream->call->ws)
        http_ws_close(stream->call->ws, 1000, STR_LIT(""));
    else
        http_end(x);
}

/* As read(); whether there is room for more is in *go_on. */
static ssize_t pass_events(struct source *source, struct http_exchange *x, bool *go_on)
{
    UNFILLED char piece[PIECE_BYTES + UTF8_REST_MAX];
    ssize_t n = read(source->fd, piece, PIECE_BYTES);

    if (n > 0)
        *go_on = pass_on(source, x, piece, (size_t)n);
    return n;
}

static ssize_t pass_raw(struct source *source, struct http_exchange *x, bool *go_on)
{
    struct stream *stream = source->stream;
    int waiting = 0;
    ssize_t n;

    if (!stream->has_head && ioctl(source->fd, FIONREAD, &waiting) == 0 && waiting > 0 &&
        !begin_answer(stream, x)) {
        http_abort(x);
        return waiting;
    }
    n = http_send_pipe(x, source->fd, go_on);
    if (n > 0)
        source->bytes += (uint64_t)n;
    return n;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct source *source = poll->data;
    struct stream *stream = source->stream;
    struct http_exchange *x =
        http_exchange_find(api_server(stream->call->api), stream->call->exchange);
    bool go_on = true;
    ssize_t n;

    (void)status;
    (void)events;
    if (!x)
        return;
    n = stream->config.frame == FRAME_RAW ? pass_raw(source, x, &go_on)
                                          : pass_events(source, x, &go_on);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0) {
        if (!go_on)
            hold(stream, true);
        update(source);
        return;
    }
    if (source->rest_n && stream->config.frame != FRAME_RAW)
        (void)send_data(source, x, (struct str){source->rest, source->rest_n}, false);
    source->rest_n = 0;
    close_source(source);
    end_if_ended(stream);
}

static void begin(struct http_exchange *x, void *argument)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    struct stream *stream = argument;
    struct call *call = stream->call;
    bool can_begin = x && (stream->config.is_lazy || begin_answer(stream, x));

    call->stream = stream; /* from here on the call's, and only the loop looks at it */
    stream->has_begun = true;
    for (unsigned i = 0; i < stream->config.sources; i++) {
        struct source *source = &stream->sources[i];

        source->poll.data = source;
        if (!can_begin || uv_poll_init(api_loop(call->api), &source->poll, source->fd) < 0) {
            close_source(source); /* whoever writes there finds out */
            continue;
        }
        call->holders++;
        source->has_handle = source->is_polled = true;
        (void)uv_poll_start(&source->poll, UV_READABLE, on_readable);
    }
    if (can_begin && stream->config.first) {
        struct json *event = json_object(&mem);

        json_put_text(&mem, event, "event", "start");
        for (const struct json *m = stream->config.first->first; m; m = m->next) {
            struct json *copy = arena_new(&mem, struct json);

            *copy = *m;
            copy->next = NULL;
            json_put(event, arena_text(&mem, m->key), copy);
        }
        (void)emit(stream, x, "start", event, &mem);
    }
    end_if_ended(stream);
}

struct wait_told {
    struct call *call;
    char approval_id[ID_BYTES];
};

static void tell_waiting(struct http_exchange *x, void *argument)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO_FREE struct wait_told *told = argument;
    struct stream *stream = x ? told->call->stream : NULL;
    struct json *event = json_object(&mem);

    if (!stream || !stream->has_begun || stream->is_gone || stream->config.frame == FRAME_RAW)
        return;
    json_put_text(&mem, event, "approval_id", told->approval_id);
    json_put_text(&mem, event, "event", "waiting");
    (void)emit(stream, x, "waiting", event, &mem);
}

void stream_tell_waiting(struct call *call, const char *approval_id)
{
    struct wait_told *told = xcalloc(1, sizeof *told);

    told->call = call;
    (void)snprintf(told->approval_id, sizeof told->approval_id, "%s", approval_id);
    posts_add(call->api->posts, call->exchange, tell_waiting, told);
}

void stream_finish(struct call *call, struct http_exchange *x)
{
    (void)x;
    call->stream->is_done = true;
    for (unsigned i = 0; call->is_cut && call->stream->has_begun && i < STREAM_SOURCES; i++)
        close_source(&call->stream->sources[i]);
    end_if_ended(call->stream);
}

void stream_writable(struct call *call, struct http_exchange *x)
{
    (void)x;
    if (call->stream && call->stream->has_begun)
        hold(call->stream, false);
}

void stream_gone(struct call *call)
{
    if (!call->stream)
        return;
    call->stream->is_gone = true;
    for (unsigned i = 0; i < call->stream->config.sources; i++)
        if (call->stream->has_begun)
            close_source(&call->stream->sources[i]);
}

void stream_close(struct call *call, unsigned source)
{
    if (!call->stream || !call->stream->has_begun)
        return;
    close_source(&call->stream->sources[source]);
    end_if_ended(call->stream);
}

void stream_taken(struct call *call, unsigned source, uint64_t bytes)
{
    if (!call->stream || !call->stream->has_begun || bytes > call->stream->sources[source].bytes ||
        bytes < call->stream->sources[source].taken)
        return; /* what was not sent cannot be taken */
    call->stream->sources[source].taken = bytes;
    update(&call->stream->sources[source]);
}

/* ---- bodies ---- */

#define SOCKET_WAITING_MAX (1 * MIB) /* then its client has to wait with its orders, too */
#define TOLD_EACH (64 * KIB)

struct inflow {
    uv_poll_t poll;
    struct call *call;
    int fd;        /* -1: the handler has not begun, or reads no more */
    int joined_fd; /* the handler's thread has made it; the loop takes it over */
    struct buf waiting;
    bool is_ended; /* the client's side */
    bool is_over;  /* nobody reads it any more */
    bool has_handle;
    uint64_t taken, told;
};

void inflow_open(struct call *call)
{
    struct inflow *inflow = xcalloc(1, sizeof *inflow);

    inflow->call = call;
    inflow->fd = -1;
    inflow->waiting = BUF(16 * MIB);
    inflow->poll.data = inflow;
    call->inflow = inflow;
}

static void on_inflow_closed(uv_handle_t *handle)
{
    struct inflow *inflow = handle->data;

    call_drop(inflow->call);
}

static void close_inflow(struct inflow *inflow)
{
    inflow->is_over = true;
    buf_clear(&inflow->waiting);
    if (inflow->fd < 0)
        return;
    (void)close(inflow->fd);
    inflow->fd = -1;
    if (inflow->has_handle)
        uv_close((uv_handle_t *)&inflow->poll, on_inflow_closed);
}

/* Bytes that were taken, or -1: nobody reads any more. */
static ssize_t write_some(int fd, struct str bytes)
{
    ssize_t n = write(fd, bytes.p, bytes.n);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return n;
}

/* A client that waits for this before it sends on can always give orders. */
static void tell_taken(struct inflow *inflow, struct http_exchange *x, size_t n)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    struct stream *stream = inflow->call->stream;
    struct json *event;

    inflow->taken += n;
    if (inflow->taken - inflow->told < TOLD_EACH || !x || !stream || !stream->has_begun ||
        stream->config.frame != FRAME_WS)
        return;
    inflow->told = inflow->taken;
    event = json_object(&mem);
    json_put_text(&mem, event, "event", "stdin");
    json_put_int(&mem, event, "bytes", (int64_t)inflow->taken);
    (void)emit(stream, x, "stdin", event, &mem);
}

static void on_room(uv_poll_t *poll, int status, int events)
{
    struct inflow *inflow = poll->data;
    struct http_exchange *x =
        http_exchange_find(api_server(inflow->call->api), inflow->call->exchange);
    ssize_t n = write_some(inflow->fd, buf_str(&inflow->waiting));

    (void)status;
    (void)events;
    if (n < 0) {
        close_inflow(inflow);
        return;
    }
    memmove(inflow->waiting.p, inflow->waiting.p + n, inflow->waiting.n - (size_t)n);
    inflow->waiting.n -= (size_t)n;
    tell_taken(inflow, x, (size_t)n);
    if (inflow->waiting.n)
        return;
    (void)uv_poll_stop(poll);
    if (inflow->is_ended)
        close_inflow(inflow);
    else if (x)
        http_resume(x);
}

/* In the loop, in front of anything else that this job posts. */
static void join(struct http_exchange *x, void *argument)
{
    struct inflow *inflow = argument;

    inflow->fd = inflow->joined_fd;
    if (uv_poll_init(api_loop(inflow->call->api), &inflow->poll, inflow->fd) < 0) {
        if (x)
            http_abort(x); /* the pipe stays: what stopped half way must not look complete */
        return;
    }
    inflow->has_handle = true;
    inflow->call->holders++;
    if (inflow->is_over || (inflow->is_ended && !inflow->waiting.n))
        close_inflow(inflow);
    else if (inflow->waiting.n)
        (void)uv_poll_start(&inflow->poll, UV_WRITABLE, on_room);
}

int inflow_begin(struct call *call, struct err *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_os(err, "making a pipe");
    (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
    (void)fcntl(ends[1], F_SETPIPE_SZ, (int)PIPE_BYTES);
    call->body_fd = ends[0];
    call->inflow->joined_fd = ends[1];
    posts_add(call->api->posts, call->exchange, join, call->inflow);
    return 0;
}

void inflow_bytes(struct call *call, struct http_exchange *x, struct str bytes)
{
    struct inflow *inflow = call->inflow;
    ssize_t n = 0;
    struct err err;

    if (!inflow || inflow->is_over)
        return; /* the handler has read enough */
    if (inflow->waiting.n == 0 && inflow->fd >= 0)
        n = write_some(inflow->fd, bytes);
    if (n < 0) {
        close_inflow(inflow);
        return;
    }
    bytes.p += n;
    bytes.n -= (size_t)n;
    tell_taken(inflow, x, (size_t)n);
    if (!bytes.n)
        return;
    if (buf_add_str(&inflow->waiting, bytes, &err) < 0) {
        close_inflow(inflow);
        return;
    }
    if (x && (call->route->body != BODY_SOCKET || inflow->waiting.n > SOCKET_WAITING_MAX))
        http_pause(x);
    if (inflow->has_handle)
        (void)uv_poll_start(&inflow->poll, UV_WRITABLE, on_room);
}

void inflow_end(struct call *call)
{
    struct inflow *inflow = call->inflow;

    if (!inflow)
        return;
    inflow->is_ended = true;
    if (inflow->fd >= 0 && inflow->waiting.n == 0)
        close_inflow(inflow);
}

void inflow_finish(struct call *call)
{
    if (call->inflow)
        close_inflow(call->inflow);
}

void inflow_free(struct inflow *inflow)
{
    if (!inflow)
        return;
    buf_done(&inflow->waiting);
    free(inflow);
}
