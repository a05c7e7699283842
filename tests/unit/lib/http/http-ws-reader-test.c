/* SPDX-License-Identifier: Apache-2.0 */

/* What one side of a WebSocket says, as a table: the frames, and what becomes of them when they
 * come at once and byte by byte. */

#include "test.h"

#include <stdio.h>

#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/http/http-ws-frame.h"

#define SAID_MAX 256

/* "T:text" and "B:bytes" are messages, "[ping:x]" control frames, "!1002" the end. */
struct heard {
    char text[SAID_MAX];
    size_t n;
};

static void say(struct heard *heard, const char *text, size_t n)
{
    if (heard->n + n >= SAID_MAX)
        n = SAID_MAX - 1 - heard->n;
    memcpy(heard->text + heard->n, text, n);
    heard->n += n;
    heard->text[heard->n] = '\0';
}

static const char *word_of(enum http_ws_kind kind)
{
    return kind == HTTP_WS_PING ? "[ping:" : kind == HTTP_WS_PONG ? "[pong:" : "[close:";
}

static bool hear_one(struct http_ws_reader *reader, char *bytes, size_t n, size_t *used,
                     bool *in_message, struct heard *heard)
{
    struct str piece = {"", 0};
    char code[16];

    switch (http_ws_next(reader, bytes, n, used, &piece)) {
    case HTTP_WS_WAIT:
        return false;
    case HTTP_WS_REFUSED:
        (void)snprintf(code, sizeof code, "!%u", reader->code);
        say(heard, code, strlen(code));
        return false;
    case HTTP_WS_CONTROL:
        say(heard, word_of(reader->frame.kind), strlen(word_of(reader->frame.kind)));
        say(heard, piece.p, piece.n);
        say(heard, "]", 1);
        return reader->frame.kind != HTTP_WS_CLOSE;
    case HTTP_WS_PIECE:
        if (!*in_message)
            say(heard, reader->message == HTTP_WS_TEXT ? "T:" : "B:", 2);
        *in_message = !reader->ends;
        say(heard, piece.p, piece.n);
        if (reader->ends)
            say(heard, ";", 1);
        return true;
    }
    return false;
}

/* Hands over so many bytes more each time. */
static struct heard hear(bool is_client, struct str in, size_t step)
{
    struct http_ws_reader reader = {
        .is_client = is_client, .text_max = 20, .binary_max = 70000, .fragments_max = 4};
    AUTO_FREE char *bytes = xcalloc(1, in.n + 1);
    struct heard heard = {0};
    bool in_message = false;
    size_t at = 0, have = 0;

    memcpy(bytes, in.p, in.n);
    while (have < in.n && !strchr(heard.text, '!')) {
        size_t used = 0;

        have = in.n - have < step ? in.n : have + step;
        while (hear_one(&reader, bytes + at, have - at, &used, &in_message, &heard))
            at += used;
        at += strchr(heard.text, '!') ? 0 : used;
    }
    return heard;
}

#define ROW(client, bytes, text)                                                                   \
    {                                                                                              \
        client, {bytes, sizeof bytes - 1}, text                                                    \
    }
#define MASK "\x01\x02\x03\x04"

/* clang-format off */
static const struct {
    bool is_client;
    struct str in;
    const char *heard;
} rows[] = {
    /* messages, of servers and of clients */
    ROW(false, "\x81\x02hi",                                    "T:hi;"),
    ROW(false, "\x82\x02hi\x81\x00",                            "B:hi;T:;"),
    ROW(true,  "\x81\x82" MASK "\x69\x6b",                      "T:hi;"),
    ROW(true,  "\x81\x85" MASK "\x60\x60\x60\x60\x60",          "T:abcda;"),
    /* masks: a client's always, a server's never */
    ROW(true,  "\x81\x02hi",                                    "!1002"),
    ROW(false, "\x81\x82" MASK "\x69\x6b",                      "!1002"),
    /* fragments, and what may stand between them */
    ROW(false, "\x01\x01" "a" "\x00\x01" "b" "\x80\x01" "c",    "T:abc;"),
    ROW(false, "\x01\x01" "a" "\x89\x01" "p" "\x80\x01" "c",    "T:a[ping:p]c;"),
    ROW(false, "\x01\x00" "\x80\x00",                           "T:;"),
    ROW(false, "\x80\x01" "a",                                  "!1002"),
    ROW(false, "\x00\x01" "a",                                  "!1002"),
    ROW(false, "\x01\x01" "a" "\x81\x01" "b",                   "T:a!1002"),
    ROW(false, "\x01\x01" "a" "\x02\x01" "b",                   "T:a!1002"),
    ROW(false, "\x02\x00\x00\x00\x00\x00\x00\x00\x80\x00",      "B:!1009"),
    /* control frames are whole and short */
    ROW(false, "\x8a\x00",                                      "[pong:]"),
    ROW(false, "\x09\x01" "p",                                  "!1002"),
    ROW(false, "\x89\x7e\x00\x7e",                              "!1002"),
    ROW(true,  "\x89\x80" MASK,                                 "[ping:]"),
    /* kinds and bits that nobody agreed to */
    ROW(false, "\xc1\x01" "a",                                  "!1002"),
    ROW(false, "\xa1\x01" "a",                                  "!1002"),
    ROW(false, "\x91\x01" "a",                                  "!1002"),
    ROW(false, "\x83\x00",                                      "!1002"),
    ROW(false, "\x8b\x00",                                      "!1002"),
    /* lengths in another form, and too long */
    ROW(false, "\x81\x7e\x00\x01" "a",                          "!1002"),
    ROW(false, "\x82\x7f\x00\x00\x00\x00\x00\x00\x00\x7e",      "!1002"),
    ROW(false, "\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x00",      "!1002"),
    ROW(false, "\x81\x15",                                      "!1009"),
    ROW(false, "\x82\x7f\x00\x00\x00\x00\x00\x01\x11\x71",      "!1009"),
    ROW(false, "\x01\x0a" "0123456789" "\x80\x0b",              "T:0123456789!1009"),
    /* UTF-8, in one piece and cut */
    ROW(false, "\x81\x03\xe2\x82\xac",                          "T:\xe2\x82\xac;"),
    ROW(false, "\x01\x01\xe2\x00\x01\x82\x80\x01\xac",          "T:\xe2\x82\xac;"),
    ROW(false, "\x81\x02\xc0\x80",                              "!1007"),
    ROW(false, "\x81\x03\xed\xa0\x80",                          "!1007"),
    ROW(false, "\x81\x04\xf4\x90\x80\x80",                      "!1007"),
    ROW(false, "\x81\x03\xe0\x9f\xbf",                          "!1007"),
    ROW(false, "\x81\x01\xff",                                  "!1007"),
    ROW(false, "\x81\x02\xe2\x82",                              "!1007"),
    ROW(false, "\x01\x02\xe2\x82\x80\x01" "a",                  "T:\xe2\x82!1007"),
    ROW(false, "\x01\x02\xe2\x82\x80\x00",                      "T:\xe2\x82!1007"),
    ROW(false, "\x82\x01\xff",                                  "B:\xff;"),
    ROW(false, "\x01\x01\xe2\x89\x01\xff\x80\x02\x82\xac",      "T:\xe2[ping:\xff]\x82\xac;"),
    /* a close: its code and its words */
    ROW(false, "\x88\x00",                                      "[close:]"),
    ROW(false, "\x88\x04\x03\xe8ok",                            "[close:\x03\xe8ok]"),
    ROW(false, "\x88\x02\x0f\xa0",                              "[close:\x0f\xa0]"),
    ROW(false, "\x88\x01\x03",                                  "!1002"),
    ROW(false, "\x88\x02\x03\xed",                              "!1002"),
    ROW(false, "\x88\x02\x03\xe7",                              "!1002"),
    ROW(false, "\x88\x02\x0b\xb7",                              "!1002"),
    ROW(false, "\x88\x02\x13\x88",                              "!1002"),
    ROW(false, "\x88\x03\x03\xe8\xff",                          "!1007"),
};
/* clang-format on */

TEST(what_a_side_says_is_heard_the_same_however_it_arrives)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct heard whole = hear(rows[i].is_client, rows[i].in, rows[i].in.n);
        struct heard single = hear(rows[i].is_client, rows[i].in, 1);

        CHECK_TEXT(whole.text, rows[i].heard);
        CHECK_TEXT(single.text, rows[i].heard);
    }
}

TEST(a_long_frame_comes_in_pieces_and_a_short_one_whole)
{
    struct http_ws_reader reader = {.text_max = 1, .binary_max = 70000, .fragments_max = 4};
    AUTO_FREE char *bytes = xcalloc(1, 70010);
    struct str piece = {NULL, 0};
    size_t used;

    memcpy(bytes, "\x82\x7f\x00\x00\x00\x00\x00\x01\x11\x70", 10); /* 70000 */
    CHECK_INT(http_ws_next(&reader, bytes, 10 + HTTP_WS_PIECE_MIN - 1, &used, &piece),
              HTTP_WS_WAIT);
    CHECK_INT(used, 10);
    CHECK_INT(http_ws_next(&reader, bytes + 10, HTTP_WS_PIECE_MIN, &used, &piece), HTTP_WS_PIECE);
    CHECK_INT(piece.n, HTTP_WS_PIECE_MIN);
    CHECK(!reader.ends);
    CHECK_INT(http_ws_next(&reader, bytes, 70000 - HTTP_WS_PIECE_MIN, &used, &piece),
              HTTP_WS_PIECE);
    CHECK(reader.ends);
}

/* ---- the handshake ---- */

#define KEY "dGhlIHNhbXBsZSBub25jZQ=="
#define ASK                                                                                        \
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"                   \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY "\r\n"
#define YES                                                                                        \
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"            \
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"

static const struct http_head *request_of(const char *text)
{
    static struct http_head head;
    struct http_scan scan = {0};

    head = (struct http_head){0};
    CHECK(http_request_read(&scan, str_of(text), &head) > 0);
    return &head;
}

TEST(a_request_for_a_websocket_says_all_it_must)
{
    static const struct {
        const char *text;
        enum http_fault fault;
    } cases[] = {
        {ASK "\r\n",                                                                 HTTP_NO_FAULT     },
        {ASK "Content-Length: 1\r\n\r\n",                                            HTTP_FAULT_UPGRADE},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short\r\n\r\n",   HTTP_FAULT_UPGRADE},
        {"POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY "\r\n\r\n",
         HTTP_FAULT_UPGRADE                                                                            },
        {"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY "\r\n\r\n",
         HTTP_FAULT_UPGRADE                                                                            },
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: " KEY "\r\n\r\n",
         HTTP_FAULT_UPGRADE_VERSION                                                                    },
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        CHECK_INT(http_ws_check(request_of(cases[i].text)), cases[i].fault);
}

TEST(an_answer_belongs_to_what_was_asked)
{
    static const struct {
        const char *ask;
        const char *answer;
        const char *fault; /* a part of it; NULL: none */
    } cases[] = {
        {ASK "\r\n",                                 YES "\r\n",                                                       NULL             },
        {ASK "Sec-WebSocket-Protocol: a, b\r\n\r\n", YES "Sec-WebSocket-Protocol: b\r\n\r\n",                          NULL             },
        {ASK "Sec-WebSocket-Protocol: a, b\r\n\r\n", YES "Sec-WebSocket-Protocol: c\r\n\r\n",
         "not offered"                                                                                                                  },
        {ASK "\r\n",                                 YES "Sec-WebSocket-Protocol: a\r\n\r\n",                          "not offered"    },
        {ASK "\r\n",                                 YES "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",       "extension"      },
        {ASK "\r\n",                                 YES "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
         "does not belong"                                                                                                              },
        {ASK "\r\n",
         "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n",                                                 "does not belong"},
        {ASK "\r\n",
         "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n"
         "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",                                                 "something else" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct http_head answer = {0};
        struct http_scan scan = {0};
        const char *fault;

        CHECK(http_answer_read(&scan, str_of(cases[i].answer), HTTP_GET, &answer) > 0);
        fault = http_ws_answer_fault(request_of(cases[i].ask), &answer);
        CHECK(cases[i].fault ? fault && strstr(fault, cases[i].fault) : !fault);
    }
}
