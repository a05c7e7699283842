/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/memory.h"
#include "test.h"

#define BIG_BYTES (1024UL * 1024)

static void add(struct buf *buf, const void *bytes, size_t n)
{
    struct err err;

    if (buf_add(buf, bytes, n, &err) < 0)
        abort();
}

static void add_line(struct buf *buf, const uint8_t *name, size_t name_n, const uint8_t *value,
                     size_t value_n)
{
    add(buf, name, name_n);
    add(buf, ": ", 2);
    add(buf, value, value_n);
    add(buf, "\n", 1);
}

const char *seen_text(const struct buf *buf)
{
    return buf_text(buf);
}

/* "a: b\n" lines (names may begin with a colon) as a list; the text is cut up. */
static size_t make_list(char *text, nghttp2_nv *nv, size_t max)
{
    size_t n = 0;

    while (*text && n < max) {
        char *end = strchr(text, '\n');
        char *colon = strstr(text + 1, ": ");

        *end = '\0';
        *colon = '\0';
        nv[n++] = (nghttp2_nv){(uint8_t *)text, (uint8_t *)colon + 2, strlen(text),
                               strlen(colon + 2), NGHTTP2_NV_FLAG_NONE};
        text = end + 1;
    }
    return n;
}

/* ---- the server ---- */

static struct served *served_of(struct world *world, int32_t id)
{
    return &world->served[((unsigned)id / 2) % WORLD_STREAMS];
}

static ssize_t read_answer(nghttp2_session *session, int32_t id, uint8_t *out, size_t room,
                           uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    struct served *served = source->ptr;
    bool is_big = strcmp(served->path, "/big") == 0;
    size_t size = is_big ? BIG_BYTES : served->body.n;
    size_t left = size - served->sent;
    size_t n = left < room ? left : room;

    (void)user_data;
    if (is_big)
        memset(out, 'b', n);
    else if (n > 0)
        memcpy(out, served->body.p + served->sent, n);
    served->sent += n;
    if (served->sent == size) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (strcmp(served->path, "/grpc") == 0) {
            char text[] = "grpc-status: 0\ngrpc-message: fine\n";
            nghttp2_nv nv[4];

            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            CHECK_INT(nghttp2_submit_trailer(session, id, nv, make_list(text, nv, 4)), 0);
        }
    }
    return (ssize_t)n;
}

static void answer(nghttp2_session *session, int32_t id, struct served *served, const char *lines)
{
    nghttp2_data_provider source = {{.ptr = served}, read_answer};
    char text[512];
    nghttp2_nv nv[16];

    (void)snprintf(text, sizeof text, "%s", lines);
    CHECK_INT(nghttp2_submit_response(session, id, nv, make_list(text, nv, 16), &source), 0);
}

static void serve(nghttp2_session *session, int32_t id, struct served *served)
{
    if (strcmp(served->path, "/nothing") == 0)
        return;
    if (strcmp(served->path, "/reset") == 0 || strcmp(served->path, "/busy") == 0) {
        (void)nghttp2_submit_rst_stream(
            session, 0, id,
            strcmp(served->path, "/busy") == 0 ? NGHTTP2_REFUSED_STREAM : NGHTTP2_INTERNAL_ERROR);
        return;
    }
    if (strcmp(served->path, "/hints") == 0) {
        char text[] = ":status: 103\nlink: </a>\n";
        nghttp2_nv nv[4];

        (void)nghttp2_submit_headers(session, 0, id, NULL, nv, make_list(text, nv, 4), NULL);
    }
    answer(session, id, served,
           ":status: 200\ncontent-type: text/plain\nalt-svc: h3=\":443\"\nx-seen: a#b\n");
}

static int server_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                         size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags,
                         void *user_data)
{
    struct served *served = served_of(user_data, frame->hd.stream_id);

    (void)session;
    (void)flags;
    if (name_n == 5 && memcmp(name, ":path", 5) == 0)
        (void)snprintf(served->path, sizeof served->path, "%.*s", (int)value_n,
                       (const char *)value);
    add_line(&served->head, name, name_n, value, value_n);
    return 0;
}

static int server_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct world *world = user_data;
    struct served *served = served_of(world, frame->hd.stream_id);

    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        world->served_n++;
        if (strcmp(served->path, "/early") == 0)
            answer(session, frame->hd.stream_id, served, ":status: 200\n");
    }
    if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
        served->ended = true;
        if (strcmp(served->path, "/early") != 0)
            serve(session, frame->hd.stream_id, served);
    }
    return 0;
}

static int server_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
                       size_t n, void *user_data)
{
    (void)session;
    (void)flags;
    add(&served_of(user_data, id)->body, bytes, n);
    return 0;
}

/* ---- the client ---- */

static struct seen *seen_of(struct world *world, int32_t id)
{
    return &world->seen[((unsigned)id / 2) % WORLD_STREAMS];
}

static int client_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                         size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags,
                         void *user_data)
{
    struct seen *seen = seen_of(user_data, frame->hd.stream_id);

    (void)session;
    (void)flags;
    if (name_n == 7 && memcmp(name, ":status", 7) == 0) {
        int status = atoi((const char *)value);

        *(status < 200 ? &seen->interim : &seen->status) = status;
    }
    if (frame->headers.cat == NGHTTP2_HCAT_HEADERS && name[0] != ':' && seen->status &&
        memmem(seen->headers.p, seen->headers.n, "--\n", 3) == NULL)
        add(&seen->headers, "--\n", 3);
    add_line(&seen->headers, name, name_n, value, value_n);
    return 0;
}

static int client_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
                       size_t n, void *user_data)
{
    (void)session;
    (void)flags;
    add(&seen_of(user_data, id)->body, bytes, n);
    return 0;
}

static int client_close(nghttp2_session *session, int32_t id, uint32_t code, void *user_data)
{
    struct seen *seen = seen_of(user_data, id);

    (void)session;
    seen->is_closed = true;
    seen->code = code;
    return 0;
}

static ssize_t read_upload(nghttp2_session *session, int32_t id, uint8_t *out, size_t room,
                           uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    struct world *world = user_data;
    size_t *sent = &world->uploaded[((unsigned)id / 2) % WORLD_STREAMS];
    size_t left = world->upload.n - *sent;
    size_t n = left < room ? left : room;

    (void)source;
    if (n > 0)
        memcpy(out, world->upload.p + *sent, n);
    *sent += n;
    if (*sent == world->upload.n) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (world->has_upload_trailers) {
            char text[] = "x-checksum: abc\n";
            nghttp2_nv nv[2];

            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            CHECK_INT(nghttp2_submit_trailer(session, id, nv, make_list(text, nv, 2)), 0);
        }
    }
    return (ssize_t)n;
}

size_t world_ask_raw(struct world *world, const char *lines, bool with_body)
{
    nghttp2_data_provider source = {{.ptr = NULL}, read_upload};
    size_t size = strlen(lines) + 1;
    char *text = xmalloc(size);
    nghttp2_nv nv[256];
    int32_t id;

    memcpy(text, lines, size);
    id = nghttp2_submit_request(world->client, NULL, nv, make_list(text, nv, 256),
                                with_body ? &source : NULL, NULL);
    free(text);
    CHECK(id > 0);
    return ((size_t)id / 2) % WORLD_STREAMS;
}

size_t world_ask(struct world *world, const char *method, const char *path, const char *lines,
                 bool with_body)
{
    struct buf text = BUF(WORLD_BODY_MAX);
    struct err err;
    size_t place;

    if (buf_addf(&text, &err,
                 ":method: %s\n:scheme: https\n:authority: api.example.org\n:path: %s\n%s", method,
                 path, lines) < 0)
        abort();
    place = world_ask_raw(world, buf_text(&text), with_body);
    buf_done(&text);
    return place;
}

/* ---- the owner ---- */

static void judge(void *owner, struct h2_stream *stream, const struct http_head *head,
                  bool has_body, struct h2_word *out)
{
    static const struct http_header changed[] = {
        {{"Authorization", 13}, {"Bearer s3cret", 13}},
        {{"Connection", 10},    {"close", 5}         },
    };
    struct world *world = owner;

    (void)has_body;
    world->judged++;
    stream->data = world;
    out->answer = H2_PASS;
    if (str_is(head->path, "/deny"))
        *out = (struct h2_word){.reply = STR_LIT("{\"error\":\"policy_denied\"}")};
    if (str_is(head->path, "/zero"))
        *out = (struct h2_word){.answer = H2_REFUSE};
    if (str_is(head->path, "/hold"))
        *out = (struct h2_word){.answer = H2_HOLD, .hold_max = 100000};
    if (str_is(head->path, "/wait")) {
        out->answer = H2_WAIT;
        world->waiting = stream;
    }
    if (str_is(head->path, "/end"))
        out->answer = H2_END;
    if (str_is(head->path, "/change")) {
        out->path = STR_LIT("/changed?x=1");
        out->headers = changed;
        out->header_count = 2;
    }
}

static void judge_body(void *owner, struct h2_stream *stream, const struct http_head *head,
                       struct str body, struct h2_word *out)
{
    struct world *world = owner;

    CHECK(str_is(head->path, "/hold"));
    world->waiting = stream;
    if (str_starts(body, "bad"))
        return;
    out->answer = H2_PASS;
    if (str_starts(body, "secret"))
        out->body = STR_LIT("a longer body than it was");
    if (str_starts(body, "later"))
        out->answer = H2_WAIT;
}

static bool response(void *owner, struct h2_stream *stream, struct http_head *head)
{
    const struct world *world = owner;

    (void)stream;
    for (size_t i = 0; world->is_scrubbing && i < head->header_count; i++) {
        char *at =
            memchr((char *)(uintptr_t)head->headers[i].value.p, '#', head->headers[i].value.n);

        if (at)
            *at = '*';
    }
    return true;
}

static bool request_data(void *owner, struct h2_stream *stream, struct str piece)
{
    struct world *world = owner;

    (void)piece;
    return world->budget == 0 || stream->request_bytes <= world->budget;
}

/* Holds the last byte back, as whoever looks for something over borders does. */
static bool response_data(void *owner, struct h2_stream *stream, struct str piece, bool is_last,
                          struct buf *out)
{
    struct world *world = owner;
    static char held;
    static bool has_held;

    (void)stream;
    if (!world->is_scrubbing) {
        add(out, piece.p, piece.n);
        return true;
    }
    for (size_t i = 0; i < piece.n; i++) {
        if (has_held)
            add(out, &held, 1);
        held = piece.p[i] == '#' ? '*' : piece.p[i];
        has_held = true;
    }
    if (is_last && has_held) {
        add(out, &held, 1);
        has_held = false;
    }
    return true;
}

static void ended(void *owner, struct h2_stream *stream, enum h2_ending ending, const char *fault)
{
    struct world *world = owner;

    if (world->waiting == stream)
        world->waiting = NULL;
    world->ended++;
    world->ending = ending;
    (void)snprintf(world->fault, sizeof world->fault, "%s", fault);
}

static const struct h2_calls calls = {judge,        judge_body,    response,
                                      request_data, response_data, ended};

/* ---- all of them ---- */

static void init_client(struct world *world)
{
    nghttp2_session_callbacks *c = NULL;

    nghttp2_session_callbacks_new(&c);
    nghttp2_session_callbacks_set_on_header_callback(c, client_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, client_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(c, client_close);
    nghttp2_session_client_new(&world->client, c, world);
    nghttp2_session_callbacks_del(c);
    nghttp2_submit_settings(world->client, 0, NULL, 0);
}

static void init_server(struct world *world)
{
    nghttp2_session_callbacks *c = NULL;

    nghttp2_session_callbacks_new(&c);
    nghttp2_session_callbacks_set_on_header_callback(c, server_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, server_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, server_data);
    nghttp2_session_server_new(&world->server, c, world);
    nghttp2_session_callbacks_del(c);
    nghttp2_submit_settings(world->server, 0, NULL, 0);
}

void world_init(struct world *world)
{
    const struct h2_config config = {&calls, world, "api.example.org", 443};
    struct err err;

    memset(world, 0, sizeof *world);
    for (size_t i = 0; i < WORLD_STREAMS; i++) {
        world->seen[i].body = BUF(WORLD_BODY_MAX);
        world->seen[i].headers = BUF(WORLD_BODY_MAX);
        world->served[i].head = BUF(WORLD_BODY_MAX);
        world->served[i].body = BUF(WORLD_BODY_MAX);
    }
    world->upload = BUF(WORLD_BODY_MAX);
    init_client(world);
    init_server(world);
    CHECK_INT(h2_relay_new(&config, &world->relay, &err), 0);
}

void world_done(struct world *world)
{
    h2_relay_free(world->relay);
    nghttp2_session_del(world->client);
    nghttp2_session_del(world->server);
    for (size_t i = 0; i < WORLD_STREAMS; i++) {
        buf_done(&world->seen[i].body);
        buf_done(&world->seen[i].headers);
        buf_done(&world->served[i].head);
        buf_done(&world->served[i].body);
    }
    buf_done(&world->upload);
}

/* From a session into the relay: what nghttp2 hands out must be taken at once. */
static bool send_to_relay(struct world *world, nghttp2_session *session, enum h2_peer from,
                          size_t step)
{
    static struct queue pending[2];
    const uint8_t *bytes = NULL;
    struct queue *queue = &pending[from];
    ssize_t n;

    while (queue->n < 65536 && (n = nghttp2_session_mem_send(session, &bytes)) > 0)
        (void)queue_add(queue, bytes, (size_t)n, SIZE_MAX);
    if (queue->n == 0)
        return false;
    n = h2_relay_feed(world->relay, from, queue_str(queue).p, queue->n < step ? queue->n : step,
                      &world->err);
    if (n < 0) {
        world->relay_failed = true;
        queue_done(queue);
        return false;
    }
    queue_drop(queue, (size_t)n);
    return n > 0;
}

static bool take_from_relay(struct world *world, nghttp2_session *session, enum h2_peer to,
                            size_t step)
{
    struct str wire = h2_relay_wire(world->relay, to);
    size_t n = wire.n < step ? wire.n : step;

    CHECK(wire.n <= H2_WIRE_MAX + 32768);
    if (n == 0)
        return false;
    CHECK(nghttp2_session_mem_recv(session, (const uint8_t *)wire.p, n) >= 0);
    h2_relay_sent(world->relay, to, n);
    return true;
}

void world_pump(struct world *world, size_t step)
{
    bool moved = true;

    for (unsigned i = 0; moved && i < 4000000; i++) {
        moved = send_to_relay(world, world->client, H2_CLIENT, step);
        moved |= !world->server_is_deaf && take_from_relay(world, world->server, H2_SERVER, step);
        moved |= send_to_relay(world, world->server, H2_SERVER, step);
        moved |= !world->client_is_deaf && take_from_relay(world, world->client, H2_CLIENT, step);
    }
    CHECK(!moved);
}
