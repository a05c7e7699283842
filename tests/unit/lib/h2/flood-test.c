/* SPDX-License-Identifier: Apache-2.0 */

/* Frames by hand: what breaks the protocol or moves nothing forward ends the connection, within a
 * bounded number of frames and bytes. */

#include <stdlib.h>

#include "test.h"
#include "world.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
/* GET https api.example.org /nothing, in literals without compression */
#define HEAD                                                                                       \
    "\x82\x87\x04\x08/nothing"                                                                     \
    "\x01\x0f"                                                                                     \
    "api.example.org"

struct raw {
    struct world world;
    struct err err;
    bool has_failed;
};

static void feed(struct raw *raw, const void *bytes, size_t n)
{
    size_t done = 0;

    while (done < n && !raw->has_failed) {
        long taken = h2_relay_feed(raw->world.relay, H2_CLIENT, (const char *)bytes + done,
                                   n - done, &raw->err);

        if (taken < 0)
            raw->has_failed = true;
        else
            done += (size_t)taken;
        if (taken == 0) /* the wire must move; this client reads and forgets */
            h2_relay_sent(raw->world.relay, H2_CLIENT,
                          h2_relay_wire(raw->world.relay, H2_CLIENT).n);
    }
}

static void frame(struct raw *raw, unsigned kind, unsigned flags, uint32_t id, const void *body,
                  size_t n)
{
    unsigned char head[9] = {
        (unsigned char)(n >> 16),  (unsigned char)(n >> 8),  (unsigned char)n,
        (unsigned char)kind,       (unsigned char)flags,     (unsigned char)(id >> 24),
        (unsigned char)(id >> 16), (unsigned char)(id >> 8), (unsigned char)id};

    feed(raw, head, sizeof head);
    if (n > 0)
        feed(raw, body, n);
}

static void raw_init(struct raw *raw)
{
    world_init(&raw->world);
    raw->has_failed = false;
    feed(raw, PREFACE, sizeof(PREFACE) - 1);
    frame(raw, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
}

/* A frame again and again; the number it took until the end, or the most. */
static unsigned flood(unsigned kind, unsigned flags, uint32_t id, const void *body, size_t n,
                      const char *fault)
{
    struct raw raw;
    unsigned frames = 0;
    struct str wire;

    raw_init(&raw);
    if (id > 0)
        frame(&raw, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, HEAD, sizeof(HEAD) - 1);
    CHECK(!raw.has_failed);
    while (!raw.has_failed && frames < 10000) {
        frame(&raw, kind, flags, id, body, n);
        frames++;
    }
    CHECK_TEXT(h2_relay_fault(raw.world.relay), fault);
    CHECK(h2_relay_is_over(raw.world.relay));
    wire = h2_relay_wire(raw.world.relay, H2_CLIENT);
    CHECK(wire.n > 0 && wire.n <= H2_WIRE_MAX + 32768); /* the GOAWAY at least */
    world_done(&raw.world);
    return frames;
}

TEST(floods_end_the_connection)
{
    CHECK(flood(NGHTTP2_PING, 0, 0, "12345678", 8, "H2_FLOOD") < 1000);
    CHECK(flood(NGHTTP2_SETTINGS, 0, 0, "\0\3\0\0\0\x64", 6, "H2_FLOOD") < 500);
    CHECK(flood(NGHTTP2_PRIORITY, 0, 1, "\0\0\0\0\0", 5, "H2_FLOOD") < 2000);
    CHECK(flood(NGHTTP2_WINDOW_UPDATE, 0, 1, "\0\0\0\1", 4, "H2_FLOOD") < 3000);
    CHECK(flood(NGHTTP2_DATA, 0, 1, NULL, 0, "H2_FLOOD") < 1000);
    CHECK(flood(0x77, 0, 0, "x", 1, "H2_FLOOD") < 1000);
}

TEST(rapid_resets_end_the_connection)
{
    struct raw raw;
    unsigned streams = 0;

    raw_init(&raw);
    while (!raw.has_failed && streams < 10000) {
        uint32_t id = 1 + 2 * streams++;

        frame(&raw, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, id, HEAD,
              sizeof(HEAD) - 1);
        frame(&raw, NGHTTP2_RST_STREAM, 0, id, "\0\0\0\x08", 4);
    }
    CHECK(streams < 300);
    CHECK_TEXT(h2_relay_fault(raw.world.relay), "H2_FLOOD");
    CHECK_INT(h2_relay_streams(raw.world.relay), 0);
    world_done(&raw.world);
}

TEST(more_streams_than_allowed_are_refused)
{
    struct raw raw;

    raw_init(&raw);
    /* Our settings are in force once the client has acknowledged them. */
    (void)h2_relay_wire(raw.world.relay, H2_CLIENT);
    frame(&raw, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0);
    for (uint32_t i = 0; i < H2_STREAMS_MAX + 50; i++)
        frame(&raw, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 1 + 2 * i,
              HEAD, sizeof(HEAD) - 1);
    CHECK(h2_relay_streams(raw.world.relay) <= H2_STREAMS_MAX);
    world_done(&raw.world);
}

TEST(endless_heads_end_the_connection)
{
    struct raw raw;
    unsigned frames = 0;

    raw_init(&raw);
    frame(&raw, NGHTTP2_HEADERS, 0, 1, HEAD, sizeof(HEAD) - 1);
    while (!raw.has_failed && frames < 10000) {
        frame(&raw, NGHTTP2_CONTINUATION, 0, 1, "\0\1a\1b", 5);
        frames++;
    }
    CHECK(frames < 100);
    world_done(&raw.world);
}

/* A small list that names one large entry of the compressor's table again and again. */
TEST(header_bombs_stay_small)
{
    struct raw raw;
    char bomb[16000];
    char big[4000];

    raw_init(&raw);
    memset(big, 'v', sizeof big);
    memset(bomb, 0xbe, sizeof bomb); /* the newest entry */
    memcpy(bomb, HEAD, sizeof(HEAD) - 1);
    memcpy(bomb + sizeof(HEAD) - 1, "\x40\1x\x7f\xa1\x1e", 6); /* x: 4000 bytes */
    memcpy(bomb + sizeof(HEAD) + 5, big, sizeof big);
    frame(&raw, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 1, bomb,
          sizeof bomb);
    CHECK_INT(raw.world.judged, 0);
    CHECK_INT(raw.world.served_n, 0);
    world_done(&raw.world);
}

TEST(broken_bytes_end_the_connection)
{
    static const struct {
        unsigned kind;
        unsigned flags;
        uint32_t id;
        const char *body;
        size_t n;
    } cases[] = {
        {NGHTTP2_PUSH_PROMISE,  4, 1, "\0\0\0\2\x82",         5               }, /* of a client */
        {NGHTTP2_HEADERS,       4, 2, HEAD,                   sizeof(HEAD) - 1}, /* an even stream */
        {NGHTTP2_HEADERS,       4, 0, HEAD,                   sizeof(HEAD) - 1}, /* no stream */
        {NGHTTP2_DATA,          0, 1, "x",                    1               }, /* of a stream that never was */
        {NGHTTP2_CONTINUATION,  4, 1, "x",                    1               }, /* of nothing */
        {NGHTTP2_HEADERS,       4, 1, "\xff\xff\xff\xff\xff", 5               }, /* no header compression */
        {NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\0",             4               }, /* by nothing */
        {NGHTTP2_PING,          0, 0, "short",                5               },
        {NGHTTP2_SETTINGS,      0, 0, "\0\4\xff\xff\xff\xff", 6               }, /* a window beyond all */
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct raw raw;

        raw_init(&raw);
        frame(&raw, cases[i].kind, cases[i].flags, cases[i].id, cases[i].body, cases[i].n);
        CHECK(raw.has_failed);
        CHECK_TEXT(h2_relay_fault(raw.world.relay), "H2_PROTOCOL");
        CHECK_INT(raw.world.judged, 0);
        world_done(&raw.world);
    }
}

TEST(what_is_not_http2_is_refused)
{
    struct raw raw;

    world_init(&raw.world);
    raw.has_failed = false;
    feed(&raw, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27);
    CHECK(raw.has_failed);
    CHECK_TEXT(h2_relay_fault(raw.world.relay), "H2_PROTOCOL");
    world_done(&raw.world);
}

/* Requests whose messages are against RFC 9113 8 lose their stream, not the connection. */
TEST(malformed_requests_lose_their_stream)
{
    static const char *const lists[] = {
        "\x82\x82\x87\x04\x01/\x01\x0f"
        "api.example.org", /* :method twice */
        "\x82\x04\x01/\x01\x0f"
        "api.example.org", /* no :scheme */
        "\x82\x87\x04\x01/\x01\x0f"
        "api.example.org\x40\x03X-A\x01"
        "b", /* upper case */
        "\x82\x87\x04\x01/\x01\x0f"
        "api.example.org\x40\x0a"
        "connection\x05"
        "close",
        "\x82\x87\x04\x01/\x01\x0f"
        "api.example.org\x40\x01"
        "a\x03x\ry", /* a line end */
        "\x82\x87\x04\x01/\x40\x01"
        "a\x01"
        "b\x01\x0f"
        "api.example.org", /* pseudo behind */
        "\x82\x87\x04\x01/\x01\x0f"
        "api.example.org\x40\x02te\x04gzip",
    };

    for (size_t i = 0; i < COUNT(lists); i++) {
        struct raw raw;

        raw_init(&raw);
        frame(&raw, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 1,
              lists[i], strlen(lists[i]));
        CHECK(!raw.has_failed);
        CHECK_INT(raw.world.judged, 0);
        CHECK_INT(h2_relay_streams(raw.world.relay), 0);
        world_done(&raw.world);
    }
}

TEST(bodies_that_contradict_their_length_never_end)
{
    struct raw raw;

    raw_init(&raw);
    frame(&raw, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1,
          HEAD "\x0f\x0d\x01"
               "5",
          sizeof(HEAD) - 1 + 4); /* content-length: 5 */
    CHECK_INT(raw.world.judged, 1);
    frame(&raw, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, "123", 3);
    CHECK(!raw.has_failed);
    CHECK_INT(h2_relay_streams(raw.world.relay), 1); /* until the reset went to both */
    (void)h2_relay_wire(raw.world.relay, H2_CLIENT);
    (void)h2_relay_wire(raw.world.relay, H2_SERVER);
    CHECK_INT(h2_relay_streams(raw.world.relay), 0);
    CHECK_INT(raw.world.ending, H2_CLIENT_LEFT);
    world_done(&raw.world);
}
