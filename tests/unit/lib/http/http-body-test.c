/* SPDX-License-Identifier: Apache-2.0 */

/* Bodies by length, compressed bodies, boundaries. Chunks and parts are in the vectors. */

#include "test.h"

#include <stdlib.h>
#include <zlib.h>

#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/http/http-gzip.h"
#include "lib/http/http-multipart.h"

static struct err err;

static struct http_body body_of(enum http_framing framing, uint64_t length, uint64_t max)
{
    AUTO_FREE struct http_head *head = xcalloc(1, sizeof(*head));
    struct http_body body;

    head->framing = framing;
    head->length = length;
    http_body_init(&body, head, max);
    return body;
}

TEST(no_body_ends_at_once)
{
    struct http_body none = body_of(HTTP_NO_BODY, 0, 0);
    struct http_body zero = body_of(HTTP_LENGTH, 0, 0);
    struct str in = STR_LIT("GET");
    struct str out;

    CHECK_INT(http_body_next(&none, &in, &out), HTTP_BODY_END);
    CHECK_INT(http_body_next(&zero, &in, &out), HTTP_BODY_END);
    CHECK_INT(in.n, 3);
    CHECK_INT(http_body_close(&none), 0);
}

TEST(length_is_exact)
{
    struct http_body body = body_of(HTTP_LENGTH, 5, 5);
    struct str in = STR_LIT("hel");
    struct str out;

    CHECK_INT(http_body_next(&body, &in, &out), HTTP_BODY_DATA);
    CHECK(str_is(out, "hel"));
    CHECK_INT(http_body_next(&body, &in, &out), HTTP_BODY_MORE);
    in = STR_LIT("loGET");
    CHECK_INT(http_body_next(&body, &in, &out), HTTP_BODY_DATA);
    CHECK(str_is(out, "lo"));
    CHECK_INT(http_body_next(&body, &in, &out), HTTP_BODY_END);
    CHECK(str_is(in, "GET"));
}

TEST(length_cut_off_is_a_fault)
{
    struct http_body body = body_of(HTTP_LENGTH, 5, 5);
    struct str in = STR_LIT("hel");
    struct str out;

    CHECK_INT(http_body_next(&body, &in, &out), HTTP_BODY_DATA);
    CHECK_INT(http_body_close(&body), -1);
    CHECK_INT(body.fault, HTTP_FAULT_BODY_ENDED_EARLY);
    CHECK_INT(http_body_next(&body, &in, &out), HTTP_BODY_REFUSED);
}

TEST(length_above_the_ceiling_is_refused_before_a_byte)
{
    struct http_body body = body_of(HTTP_LENGTH, 6, 5);
    struct str in = {"", 0};
    struct str out;

    CHECK_INT(http_body_next(&body, &in, &out), HTTP_BODY_REFUSED);
    CHECK_INT(body.fault, HTTP_FAULT_BODY_TOO_LARGE);
}

TEST(answer_until_close_ends_with_it)
{
    struct http_body body = body_of(HTTP_UNTIL_CLOSE, 0, 4);
    struct str in = STR_LIT("abcd");
    struct str out;

    CHECK_INT(http_body_next(&body, &in, &out), HTTP_BODY_DATA);
    CHECK_INT(http_body_next(&body, &in, &out), HTTP_BODY_MORE);
    CHECK_INT(http_body_close(&body), 0);
    in = STR_LIT("e");
    CHECK_INT(http_body_next(&body, &in, &out), HTTP_BODY_REFUSED);
    CHECK_INT(body.fault, HTTP_FAULT_BODY_TOO_LARGE);
}

/* What the request asked for decides whether there is a body. */
TEST(answers_to_head_and_connect_have_no_body)
{
    static const struct {
        enum http_method asked;
        const char *text;
        enum http_framing framing;
    } cases[] = {
        {HTTP_GET,     "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",          HTTP_LENGTH     },
        {HTTP_HEAD,    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",          HTTP_NO_BODY    },
        {HTTP_HEAD,    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_NO_BODY    },
        {HTTP_CONNECT, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",          HTTP_NO_BODY    },
        {HTTP_CONNECT, "HTTP/1.1 403 No\r\nContent-Length: 5\r\n\r\n",          HTTP_LENGTH     },
        {HTTP_GET,     "HTTP/1.1 200 OK\r\n\r\n",                               HTTP_UNTIL_CLOSE},
    };
    AUTO_FREE struct http_head *head = xcalloc(1, sizeof(*head));

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct http_scan scan = {0};

        CHECK(http_answer_read(&scan, str_of(cases[i].text), cases[i].asked, head) > 0);
        CHECK_INT(head->framing, cases[i].framing);
    }
}

/* ---- gzip ---- */

static void compress_into(struct buf *out, const void *bytes, size_t n)
{
    z_stream z = {0};
    unsigned char piece[4096];
    int answer = Z_OK;

    CHECK_INT(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)bytes;
    z.avail_in = (uInt)n;
    while (answer == Z_OK) {
        z.next_out = piece;
        z.avail_out = sizeof(piece);
        answer = deflate(&z, Z_FINISH);
        CHECK_INT(buf_add(out, piece, sizeof(piece) - z.avail_out, &err), 0);
    }
    (void)deflateEnd(&z);
}

/* The fault, after feeding `in` in pieces of `step`. */
static enum http_fault gunzip_all(struct str in, size_t step, uint64_t max, struct buf *out)
{
    AUTO(http_gunzip) struct http_gunzip *z = http_gunzip_new(max);
    enum http_fault fault = HTTP_NO_FAULT;

    while (in.n > 0) {
        struct str piece = {in.p, in.n < step ? in.n : step};
        enum http_body_event event;
        struct str data;

        in = (struct str){in.p + piece.n, in.n - piece.n};
        while ((event = http_gunzip_next(z, &piece, &data, &fault)) == HTTP_BODY_DATA)
            CHECK_INT(buf_add_str(out, data, &err), 0);
        if (event == HTTP_BODY_REFUSED)
            return fault;
    }
    return http_gunzip_end(z, &fault) < 0 ? fault : HTTP_NO_FAULT;
}

TEST(gzip_comes_back_however_it_is_cut)
{
    static const char text[] = "a text, a text, a text, and another one";
    AUTO_BUF struct buf packed = BUF(KIB);

    compress_into(&packed, text, sizeof(text));
    for (size_t step = 1; step <= packed.n; step++) {
        AUTO_BUF struct buf out = BUF(KIB);

        CHECK_INT(gunzip_all(buf_str(&packed), step, KIB, &out), HTTP_NO_FAULT);
        CHECK(out.n == sizeof(text) && memcmp(out.p, text, sizeof(text)) == 0);
    }
}

TEST(gzip_cut_off_or_followed_is_refused)
{
    AUTO_BUF struct buf packed = BUF(KIB);
    AUTO_BUF struct buf out = BUF(KIB);
    size_t n;

    compress_into(&packed, "hello", 5);
    n = packed.n;
    for (size_t cut = 1; cut < n; cut++)
        CHECK_INT(gunzip_all((struct str){packed.p, cut}, KIB, KIB, &out), HTTP_FAULT_GZIP);
    CHECK_INT(buf_add_byte(&packed, 'x', &err), 0);
    CHECK_INT(gunzip_all(buf_str(&packed), KIB, KIB, &out), HTTP_FAULT_GZIP);
    CHECK_INT(gunzip_all(buf_str(&packed), 1, KIB, &out), HTTP_FAULT_GZIP);
    CHECK_INT(gunzip_all(STR_LIT("hello"), KIB, KIB, &out), HTTP_FAULT_GZIP);
    packed.p[n - 5] ^= 1; /* the checksum */
    CHECK_INT(gunzip_all((struct str){packed.p, n}, KIB, KIB, &out), HTTP_FAULT_GZIP);
}

TEST(gzip_bomb_stops_early)
{
    AUTO_BUF struct buf packed = BUF(MIB);
    AUTO_BUF struct buf out = BUF(64 * MIB);
    AUTO_FREE char *zeros = xcalloc(1, 32 * MIB);

    compress_into(&packed, zeros, 32 * MIB);
    CHECK_INT(gunzip_all(buf_str(&packed), 512, 64 * MIB, &out), HTTP_FAULT_GZIP_TOO_LARGE);
    CHECK(out.n <= HTTP_GZIP_RATIO_FREE + HTTP_GZIP_RATIO_MAX * KIB);
}

TEST(gzip_stops_at_the_ceiling_of_the_route)
{
    AUTO_BUF struct buf packed = BUF(KIB);
    AUTO_BUF struct buf out = BUF(KIB);

    compress_into(&packed, "0123456789", 10);
    CHECK_INT(gunzip_all(buf_str(&packed), KIB, 10, &out), HTTP_NO_FAULT);
    CHECK_INT(gunzip_all(buf_str(&packed), KIB, 9, &out), HTTP_FAULT_GZIP_TOO_LARGE);
}

/* ---- boundaries ---- */

TEST(boundaries_are_read_or_refused)
{
    static const struct {
        const char *type;
        const char *delimiter; /* NULL: refused */
    } cases[] = {
        {"multipart/form-data; boundary=abc",                                                "\r\n--abc"  },
        {"Multipart/Form-Data;boundary=\"a b:c\"",                                           "\r\n--a b:c"},
        {"multipart/form-data; charset=utf-8; boundary=x",                                   "\r\n--x"    },
        {"multipart/form-data; Boundary=x ",                                                 "\r\n--x"    },
        {"multipart/form-data",                                                              NULL         },
        {"multipart/form-data; boundary=",                                                   NULL         },
        {"multipart/form-data; boundary=\"\"",                                               NULL         },
        {"multipart/form-data; boundary=\"a",                                                NULL         },
        {"multipart/form-data; boundary=\"a \"",                                             NULL         },
        {"multipart/form-data; boundary=\"a\\\"\"",                                          NULL         },
        {"multipart/form-data; boundary=a; boundary=b",                                      NULL         },
        {"multipart/form-data boundary=a",                                                   NULL         },
        {"multipart/form-data; boundary=a b",                                                NULL         },
        {"multipart/form-datax; boundary=a",                                                 NULL         },
        {"multipart/mixed; boundary=a",                                                      NULL         },
        {"text/plain",                                                                       NULL         },
        {"",                                                                                 NULL         },
        {"multipart/form-data; boundary="
         "01234567890123456789012345678901234567890123456789012345678901234567890", NULL         },
    };
    AUTO_FREE struct http_multipart *m = xcalloc(1, sizeof(*m));

    for (size_t i = 0; i < COUNT(cases); i++) {
        int got = http_multipart_init(m, str_of(cases[i].type));

        CHECK_INT(got, cases[i].delimiter ? 0 : -1);
        if (got == 0 && cases[i].delimiter != NULL)
            CHECK(str_is((struct str){m->delimiter, m->delimiter_length}, cases[i].delimiter));
    }
}
