/* SPDX-License-Identifier: Apache-2.0 */

#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/http/chars-private.h"
#include "lib/http/http.h"

static struct err err;

#define HEADER(name, value) ((struct http_header){STR_LIT(name), STR_LIT(value)})

/* The text with the date, which changes, taken out. */
static const char *without_date(struct buf *out)
{
    char *date = out->p ? strstr(out->p, "Date: ") : NULL;
    char *end = date ? strstr(date, "\r\n") : NULL;

    if (end != NULL)
        memmove(date, end + 2, strlen(end + 2) + 1);
    return buf_text(out);
}

TEST(answer_heads_have_their_framing)
{
    static const struct {
        struct http_reply reply;
        const char *text;
    } cases[] = {
        {{.status = 200, .framing = HTTP_LENGTH, .length = 0},
         "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"                                                                              },
        {{.status = 404, .framing = HTTP_LENGTH, .length = 18446744073709551615ULL, .close = true},
         "HTTP/1.1 404 Not Found\r\nContent-Length: 18446744073709551615\r\nConnection: "
         "close\r\n\r\n"                                                                                                             },
        {{.status = 200, .framing = HTTP_CHUNKED},
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"                                                                     },
        {{.status = 204},                                                                           "HTTP/1.1 204 No Content\r\n\r\n"},
        {{.status = 101, .upgrade = true},
         "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n"                                                           },
        {{.status = 299},                                                                           "HTTP/1.1 299 Unknown\r\n\r\n"   },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_BUF struct buf out = BUF(HTTP_ANSWER_HEAD_MAX);

        CHECK_INT(http_reply_write(&cases[i].reply, &out, &err), 0);
        CHECK_TEXT(without_date(&out), cases[i].text);
    }
}

TEST(answer_headers_cannot_end_a_line)
{
    static const struct {
        struct http_header header;
        const char *text;
    } cases[] = {
        {{{"X", 1}, {"a\r\nSet-Cookie: b", 16}}, "the value of header X contains a control byte"    },
        {{{"X", 1}, {"a\nb", 3}},                "the value of header X contains a control byte"    },
        {{{"X", 1}, {"a\rb", 3}},                "the value of header X contains a control byte"    },
        {{{"X", 1}, {"a\0b", 3}},                "the value of header X contains a control byte"    },
        {{{"X y", 3}, {"a", 1}},                 "header name \"X y\" is not a token"               },
        {{{"X:", 2}, {"a", 1}},                  "header name \"X:\" is not a token"                },
        {{{"", 0}, {"a", 1}},                    "header name \"\" is not a token"                  },
        {{{"X\r\nY", 4}, {"a", 1}},              "header name \"X\r\nY\" is not a token"            },
        {{{"content-LENGTH", 14}, {"1", 1}},
         "header content-LENGTH is written by the server itself"                                    },
        {{{"Transfer-Encoding", 17}, {"x", 1}},
         "header Transfer-Encoding is written by the server itself"                                 },
        {{{"Connection", 10}, {"x", 1}},         "header Connection is written by the server itself"},
        {{{"Date", 4}, {"x", 1}},                "header Date is written by the server itself"      },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_BUF struct buf out = BUF(HTTP_ANSWER_HEAD_MAX);
        struct http_reply reply = {.status = 200, .headers = &cases[i].header, .header_count = 1};

        CHECK_INT(buf_add_text(&out, "before", &err), 0);
        CHECK_INT(http_reply_write(&reply, &out, &err), -1);
        CHECK_INT(err.code, ERR_INVALID);
        CHECK_TEXT(err.text, cases[i].text);
        CHECK_TEXT(buf_text(&out), "before"); /* nothing half written */
    }
}

TEST(answer_status_is_one)
{
    static const int wrong[] = {0, 99, 600, -1, 1000};

    for (size_t i = 0; i < COUNT(wrong); i++) {
        AUTO_BUF struct buf out = BUF(HTTP_ANSWER_HEAD_MAX);
        struct http_reply reply = {.status = wrong[i]};

        CHECK_INT(http_reply_write(&reply, &out, &err), -1);
        CHECK_INT(out.n, 0);
    }
}

/* What we write is what we read. */
TEST(requests_we_write_are_read_back)
{
    AUTO_BUF struct buf out = BUF(HTTP_ANSWER_HEAD_MAX);
    AUTO_FREE struct http_head *head = xcalloc(1, sizeof(*head));
    const struct http_header headers[] = {HEADER("Accept", "*/*"), HEADER("X", "")};
    const struct http_ask ask = {
        STR_LIT("POST"), STR_LIT("/a?b"), STR_LIT("h:1"), headers, 2, HTTP_LENGTH, 12, true, false};
    struct http_scan scan = {0};

    CHECK_INT(http_ask_write(&ask, &out, &err), 0);
    CHECK_INT(http_request_read(&scan, buf_str(&out), head), out.n);
    CHECK(str_is(head->method_text, "POST") && str_is(head->path, "/a") &&
          str_is(head->query, "b") && str_is(head->host, "h:1"));
    CHECK(head->framing == HTTP_LENGTH && head->length == 12 && !head->keep_alive);
    CHECK(str_is(http_find(head, "accept"), "*/*"));
    CHECK(http_find(head, "x").p != NULL && http_find(head, "x").n == 0);
    CHECK(http_find(head, "y").p == NULL);
}

TEST(requests_we_write_cannot_be_two)
{
    static const struct http_ask cases[] = {
        {.method = {"G T", 3}, .target = {"/", 1},           .host = {"h", 1}        },
        {.method = {"", 0},    .target = {"/", 1},           .host = {"h", 1}        },
        {.method = {"GET", 3}, .target = {"/ HTTP/1.1", 10}, .host = {"h", 1}        },
        {.method = {"GET", 3}, .target = {"/\r\nX: y", 7},   .host = {"h", 1}        },
        {.method = {"GET", 3}, .target = {"", 0},            .host = {"h", 1}        },
        {.method = {"GET", 3}, .target = {"/", 1},           .host = {"h\r\nX: y", 7}},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_BUF struct buf out = BUF(HTTP_ANSWER_HEAD_MAX);

        CHECK_INT(http_ask_write(&cases[i], &out, &err), -1);
        CHECK_INT(out.n, 0);
    }
}

TEST(dates_are_as_http_writes_them)
{
    char text[HTTP_DATE_BYTES];

    http_date(784111777, text);
    CHECK_TEXT(text, "Sun, 06 Nov 1994 08:49:37 GMT");
    http_date(0, text);
    CHECK_TEXT(text, "Thu, 01 Jan 1970 00:00:00 GMT");
    CHECK_INT(http_date_now().n, 29);
}

TEST(content_ranges_are_written)
{
    char text[HTTP_CONTENT_RANGE_BYTES];
    struct http_range part = {HTTP_RANGE_PART, 3, 4};
    struct http_range none = {HTTP_RANGE_UNSATISFIED, 0, 0};

    CHECK(str_is(http_content_range(&part, 10, text), "bytes 3-6/10"));
    CHECK(str_is(http_content_range(&none, 10, text), "bytes */10"));
}

TEST(chunk_heads_are_hexadecimal)
{
    char text[HTTP_CHUNK_HEAD_BYTES];

    CHECK_INT(http_chunk_head(26, text), 4);
    CHECK_TEXT(text, "1a\r\n");
    CHECK_INT(http_chunk_head(UINT64_MAX, text), 18);
}

TEST(fields_stand_behind_the_last_chunk)
{
    static const struct http_header good[] = {
        {STR_LIT("brig-exit-code"), STR_LIT("0")},
    };
    static const struct http_header bad[] = {
        {STR_LIT("a"), STR_LIT("b\r\nc: d")},
    };
    AUTO_BUF struct buf out = BUF(256);

    CHECK_INT(http_trailers_write(NULL, 0, &out, &err), 0);
    CHECK_TEXT(buf_text(&out), HTTP_LAST_CHUNK);
    buf_clear(&out);
    CHECK_INT(http_trailers_write(good, 1, &out, &err), 0);
    CHECK_TEXT(buf_text(&out), "0\r\nbrig-exit-code: 0\r\n\r\n");
    buf_clear(&out);
    CHECK_INT(http_trailers_write(bad, 1, &out, &err), -1);
    CHECK_TEXT(buf_text(&out), "");
}

TEST(events_keep_their_lines)
{
    static const struct {
        const char *event, *id, *data, *text;
    } cases[] = {
        {"",    "",  "a",           "data: a\n\n"                          },
        {"out", "7", "a",           "event: out\nid: 7\ndata: a\n\n"       },
        {"",    "",  "",            "data: \n\n"                           },
        {"",    "",  "a\nb",        "data: a\ndata: b\n\n"                 },
        {"",    "",  "a\r\nb\rc\n", "data: a\ndata: b\ndata: c\ndata: \n\n"},
        {"",    "",  "\n\nid: 9",   "data: \ndata: \ndata: id: 9\n\n"      },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_BUF struct buf out = BUF(KIB);

        CHECK_INT(http_sse_write(str_of(cases[i].event), str_of(cases[i].id), str_of(cases[i].data),
                                 &out, &err),
                  0);
        CHECK_TEXT(buf_text(&out), cases[i].text);
    }
}

TEST(event_names_cannot_hold_fields)
{
    AUTO_BUF struct buf out = BUF(KIB);

    CHECK_INT(http_sse_write(STR_LIT("a\nid: 1"), STR_LIT(""), STR_LIT("x"), &out, &err), -1);
    CHECK_INT(http_sse_write(STR_LIT(""), STR_LIT("a\rb"), STR_LIT("x"), &out, &err), -1);
    CHECK_INT(http_sse_write(STR_LIT(""), STR_LIT("a\0b"), STR_LIT("x"), &out, &err), -1);
    CHECK_INT(out.n, 0);
}

TEST(queries_are_decoded)
{
    struct str rest = STR_LIT("a=b&&c=%20+d&e&=f&g=h=i");
    static const char *const wanted[][2] = {
        {"a", "b"  },
        {"c", "  d"},
        {"e", ""   },
        {"",  "f"  },
        {"g", "h=i"}
    };
    char memory[64];
    struct http_header h;

    for (size_t i = 0; i < COUNT(wanted); i++) {
        CHECK_INT(http_query_next(&rest, memory, &h), 1);
        CHECK(str_is(h.name, wanted[i][0]) && str_is(h.value, wanted[i][1]));
    }
    CHECK_INT(http_query_next(&rest, memory, &h), 0);
    rest = STR_LIT("a=%zz");
    CHECK_INT(http_query_next(&rest, memory, &h), -1);
}

/* ---- the table of bytes, against the grammar ---- */

static bool is_one_of(int c, const char *set)
{
    return c != 0 && c < 128 && strchr(set, c) != NULL;
}

static bool is_alnum(int c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

TEST(bytes_are_what_the_grammar_says)
{
    for (int c = 0; c < 256; c++) {
        unsigned got = http_chars[c];
        bool path = is_alnum(c) || is_one_of(c, "-._~%!$&'()*+,;=:@/[]|^");

        CHECK_INT((got & HTTP_C_TOKEN) != 0, is_alnum(c) || is_one_of(c, "!#$%&'*+-.^_`|~"));
        CHECK_INT((got & HTTP_C_VALUE) != 0, c == '\t' || (c >= ' ' && c != 127));
        CHECK_INT((got & HTTP_C_PATH) != 0, path);
        CHECK_INT((got & HTTP_C_QUERY) != 0, path || is_one_of(c, "?{}`\\"));
        CHECK_INT((got & HTTP_C_HOST) != 0, is_alnum(c) || is_one_of(c, ".-_:[]"));
        CHECK_INT((got & HTTP_C_DIGIT) != 0, c >= '0' && c <= '9');
        CHECK_INT((got & HTTP_C_HEX) != 0, http_hex_digit((char)c) >= 0);
    }
}

TEST(every_fault_has_an_answer)
{
    for (int f = HTTP_NO_FAULT + 1; f <= HTTP_FAULT_UPGRADE_VERSION; f++) {
        CHECK(http_fault_status((enum http_fault)f) >= 400);
        CHECK(strcmp(http_status_text(http_fault_status((enum http_fault)f)), "Unknown") != 0);
        CHECK(http_fault_name((enum http_fault)f)[0] != '\0');
        CHECK(http_fault_text((enum http_fault)f)[0] != '\0');
    }
}
