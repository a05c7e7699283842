/* SPDX-License-Identifier: Apache-2.0 */

/* tests/vectors/http: every case whole, byte by byte, and cut in two at every place. */

#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/http/http-multipart.h"
#include "lib/http/http.h"

#define RESULT_MAX (256 * KIB)
#define EVERY_CUT_UP_TO 2000 /* longer inputs are cut at every 97th byte */
#define BODY_MAX 65536

/* Describes what became of the input when the first `cut` bytes come alone; 0: all at once,
 * SIZE_MAX: byte by byte. Words are separated by \x1f, which no case contains. */
typedef void (*reader)(struct str in, size_t cut, struct buf *out);

static struct err err;

static void say(struct buf *out, const char *name, struct str value)
{
    if (buf_addf(out, &err, "%s", name) < 0 || buf_add_str(out, value, &err) < 0 ||
        buf_add_byte(out, '\x1f', &err) < 0)
        abort();
}

static void say_number(struct buf *out, const char *name, uint64_t value)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    say(out, name, str_of(text));
}

static void say_fault(struct buf *out, enum http_fault fault)
{
    buf_clear(out);
    say(out, "!", str_of(http_fault_name(fault)));
}

/* How many bytes there are after the n that were there. */
static size_t more(size_t n, size_t have, size_t cut)
{
    if (cut == SIZE_MAX)
        return have + 1;
    return have < cut ? cut : n;
}

/* ---- readers ---- */

static const char *const forms[] = {"origin", "absolute", "authority", "asterisk"};
static const char *const framings[] = {"none", "length", "chunked", "close"};

static void describe_head(const struct http_head *h, struct str rest, struct buf *out)
{
    say(out, "ok", STR_LIT(""));
    say(out, "framing=", str_of(framings[h->framing]));
    say_number(out, "length=", h->length);
    say_number(out, "minor=", h->minor);
    say_number(out, "headers=", h->header_count);
    say(out, h->keep_alive ? "keep" : "close", STR_LIT(""));
    say(out, h->has_upgrade ? "upgrade" : "plain", STR_LIT(""));
    say(out, "rest=", rest);
}

static void describe_request(const struct http_head *h, struct buf *out)
{
    say(out, "method=", h->method_text);
    say(out, "form=", str_of(forms[h->form]));
    say(out, "scheme=", h->scheme);
    say(out, "authority=", h->authority);
    say(out, "path=", h->path);
    say(out, "query=", h->query);
    say(out, "host=", h->host);
    say(out, h->expects_continue ? "continue" : "nowait", STR_LIT(""));
}

static void read_head(struct str in, size_t cut, bool request, struct buf *out)
{
    AUTO_FREE struct http_head *h = xcalloc(1, sizeof(*h));
    struct http_scan scan = {0};
    size_t have = 0;
    int n = 0;

    while (have < in.n && n == 0) {
        have = more(in.n, have, cut);
        n = request ? http_request_read(&scan, (struct str){in.p, have}, h)
                    : http_answer_read(&scan, (struct str){in.p, have}, HTTP_GET, h);
    }
    if (n < 0) {
        say_fault(out, scan.fault);
        return;
    }
    if (n == 0) {
        say(out, "more", STR_LIT(""));
        return;
    }
    describe_head(h, (struct str){in.p + n, in.n - (size_t)n}, out);
    if (request)
        describe_request(h, out);
    else
        say_number(out, "status=", (uint64_t)h->status);
}

static void read_request(struct str in, size_t cut, struct buf *out)
{
    read_head(in, cut, true, out);
}

static void read_answer(struct str in, size_t cut, struct buf *out)
{
    read_head(in, cut, false, out);
}

static void read_chunked(struct str in, size_t cut, struct buf *out)
{
    AUTO_FREE struct http_head *h = xcalloc(1, sizeof(*h));
    AUTO_BUF struct buf data = BUF(RESULT_MAX);
    enum http_body_event event = HTTP_BODY_MORE;
    struct http_body body;
    size_t have = 0;
    size_t taken = 0;

    h->framing = HTTP_CHUNKED;
    http_body_init(&body, h, BODY_MAX);
    while (event == HTTP_BODY_MORE && have < in.n) {
        struct str piece = {in.p + have, 0};
        struct str payload;

        have = more(in.n, have, cut);
        piece.n = (size_t)(in.p + have - piece.p);
        while ((event = http_body_next(&body, &piece, &payload)) == HTTP_BODY_DATA)
            if (buf_add_str(&data, payload, &err) < 0)
                abort();
        taken = (size_t)(piece.p - in.p);
    }
    if (event == HTTP_BODY_REFUSED) {
        say_fault(out, body.fault);
    } else if (event == HTTP_BODY_MORE) {
        CHECK_INT(http_body_close(&body), -1);
        CHECK_INT(body.fault, HTTP_FAULT_BODY_ENDED_EARLY);
        say(out, "more", STR_LIT(""));
    } else {
        CHECK_INT(http_body_close(&body), 0);
        say(out, "ok", STR_LIT(""));
        say(out, "data=", buf_str(&data));
        say(out, "rest=", (struct str){in.p + taken, in.n - taken});
    }
}

static void describe_part(const struct http_part *part, struct buf *out)
{
    if (buf_addf(out, &err, "<" STR_FMT, STR_ARG(part->name)) < 0)
        abort();
    if (part->filename.p != NULL) {
        if (buf_add_byte(out, '[', &err) < 0 || buf_add_str(out, part->filename, &err) < 0 ||
            (part->type.p != NULL &&
             (buf_add_byte(out, ';', &err) < 0 || buf_add_str(out, part->type, &err) < 0)) ||
            buf_add_byte(out, ']', &err) < 0)
            abort();
    }
    if (buf_add_byte(out, ':', &err) < 0)
        abort();
}

static bool take_parts(struct http_multipart *m, struct str piece, struct buf *parts)
{
    enum http_multipart_event event;
    struct http_part part;
    struct str data;
    bool ended = false;

    while ((event = http_multipart_next(m, &piece, &part, &data)) != HTTP_MULTIPART_MORE &&
           event != HTTP_MULTIPART_REFUSED) {
        ended |= event == HTTP_MULTIPART_END;
        if (event == HTTP_MULTIPART_PART)
            describe_part(&part, parts);
        if ((event == HTTP_MULTIPART_DATA && buf_add_str(parts, data, &err) < 0) ||
            (event == HTTP_MULTIPART_PART_END && buf_add_byte(parts, '>', &err) < 0))
            abort();
    }
    return ended;
}

static void read_multipart(struct str in, size_t cut, struct buf *out)
{
    AUTO_FREE struct http_multipart *m = xcalloc(1, sizeof(*m));
    AUTO_BUF struct buf parts = BUF(RESULT_MAX);
    bool ended = false;
    size_t have = 0;

    CHECK_INT(http_multipart_init(m, STR_LIT("multipart/form-data; boundary=b")), 0);
    while (have < in.n && m->fault == HTTP_NO_FAULT) {
        size_t from = have;

        have = more(in.n, have, cut);
        ended |= take_parts(m, (struct str){in.p + from, have - from}, &parts);
    }
    if (m->fault != HTTP_NO_FAULT) {
        say_fault(out, m->fault);
    } else if (!ended) {
        CHECK_INT(http_multipart_close(m), -1);
        say(out, "more", STR_LIT(""));
    } else {
        CHECK_INT(http_multipart_close(m), 0);
        say(out, "ok", STR_LIT(""));
        say(out, "parts=", buf_str(&parts));
    }
}

static void read_path(struct str in, size_t cut, struct buf *out)
{
    AUTO_FREE char *memory = xmalloc(in.n + 1);
    AUTO_BUF struct buf text = BUF(RESULT_MAX);
    struct str segments[HTTP_PATH_SEGMENTS_MAX];
    enum http_fault fault;
    int n = http_path_split(in, memory, segments, &fault);

    (void)cut; /* comes whole */
    if (n < 0) {
        say_fault(out, fault);
        return;
    }
    for (int i = 0; i < n; i++)
        if (buf_add_byte(&text, '[', &err) < 0 || buf_add_str(&text, segments[i], &err) < 0 ||
            buf_add_byte(&text, ']', &err) < 0)
            abort();
    say(out, "ok", STR_LIT(""));
    say(out, "segments=", buf_str(&text));
}

static void read_range(struct str in, size_t cut, struct buf *out)
{
    struct http_range range = http_range_of(in, 10);
    char text[64];

    (void)cut; /* comes whole */
    say(out, "ok", STR_LIT(""));
    (void)snprintf(text, sizeof(text), "%llu+%llu", (unsigned long long)range.first,
                   (unsigned long long)range.length);
    if (range.kind == HTTP_RANGE_PART)
        say(out, "part=", str_of(text));
    else
        say(out, range.kind == HTTP_RANGE_WHOLE ? "whole" : "unsatisfied", STR_LIT(""));
}

/* ---- cases ---- */

static int hex(char c)
{
    const char *digits = "0123456789abcdef";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

static size_t unescape_one(struct str s, size_t i, struct buf *out)
{
    static const char names[] = "rnts\\";
    static const char bytes[] = "\r\n\t \\";
    const char *at = i + 1 < s.n ? memchr(names, s.p[i + 1], sizeof(names) - 1) : NULL;
    char c = s.p[i];
    size_t used = 1;

    if (c == '\\' && at != NULL) {
        c = bytes[at - names];
        used = 2;
    } else if (c == '\\' && i + 3 < s.n && s.p[i + 1] == 'x' && hex(s.p[i + 2]) >= 0 &&
               hex(s.p[i + 3]) >= 0) {
        c = (char)(hex(s.p[i + 2]) << 4 | hex(s.p[i + 3]));
        used = 4;
    }
    if (buf_add_byte(out, c, &err) < 0)
        abort();
    return used;
}

/* "{3*text}" at i: how often, and where text stands. 0 when it is something else. */
static size_t repetition(struct str s, size_t i, struct str *text)
{
    size_t depth = 1;
    size_t times = 0;
    size_t at = i + 1;
    size_t end;

    while (at < s.n && s.p[at] >= '0' && s.p[at] <= '9')
        times = times * 10 + (size_t)(s.p[at++] - '0');
    if (s.p[i] != '{' || times == 0 || at == s.n || s.p[at] != '*')
        return 0;
    for (end = ++at; end < s.n && depth > 0; end++)
        depth += s.p[end] == '{' ? 1 : s.p[end] == '}' ? (size_t)-1 : 0;
    *text = (struct str){s.p + at, end - 1 - at};
    return times;
}

static void unescape(struct str s, bool repeats, struct buf *out) // NOLINT(misc-no-recursion)
{
    for (size_t i = 0; i < s.n;) {
        struct str text = {NULL, 0};
        size_t times = repeats ? repetition(s, i, &text) : 0;

        if (times == 0) {
            i += unescape_one(s, i, out);
            continue;
        }
        for (size_t k = 0; k < times; k++)
            unescape(text, true, out);
        i = (size_t)(text.p + text.n + 1 - s.p);
    }
}

static bool has_word(const struct buf *result, struct str word)
{
    struct str rest = buf_str(result);

    while (rest.n > 0)
        if (str_eq(str_cut(&rest, '\x1f'), word))
            return true;
    return false;
}

static bool matches(struct str expected, const struct buf *result)
{
    while (expected.n > 0) {
        AUTO_BUF struct buf word = BUF(RESULT_MAX);
        struct str raw = str_cut(&expected, ' ');

        if (raw.n == 0)
            continue;
        unescape(raw, false, &word);
        if (!has_word(result, buf_str(&word)))
            return false;
    }
    return true;
}

static bool check_cut(reader read, struct str expected, struct str in, size_t cut, unsigned line)
{
    AUTO_BUF struct buf result = BUF(RESULT_MAX);
    AUTO_FREE char *exact = xmalloc(in.n + (in.n == 0)); /* so that ASan sees the end */

    if (in.n > 0)
        memcpy(exact, in.p, in.n);
    read((struct str){exact, in.n}, cut, &result);
    if (matches(expected, &result))
        return true;
    for (size_t i = 0; i < result.n; i++)
        if (result.p[i] == '\x1f')
            result.p[i] = ' ';
    test_fail(__FILE__, __LINE__, "line %u cut at %zd: wanted " STR_FMT ", got %.300s", line,
              (ssize_t)cut, STR_ARG(expected), buf_text(&result));
    return false;
}

static void check_case(reader read, struct str expected, struct str in, unsigned line)
{
    size_t step = in.n > EVERY_CUT_UP_TO ? 97 : 1;

    if (!check_cut(read, expected, in, 0, line) || !check_cut(read, expected, in, SIZE_MAX, line))
        return;
    for (size_t cut = 1; cut < in.n; cut += step)
        if (!check_cut(read, expected, in, cut, line))
            return;
}

static unsigned check_line(reader read, struct str text, unsigned line)
{
    AUTO_BUF struct buf in = BUF(RESULT_MAX);
    const char *bar;

    if (text.n == 0 || text.p[0] == '#')
        return 0;
    bar = memmem(text.p, text.n, " | ", 3);
    if (bar == NULL) {
        test_fail(__FILE__, __LINE__, "line %u has no bar", line);
        return 0;
    }
    unescape((struct str){bar + 3, (size_t)(text.p + text.n - bar - 3)}, true, &in);
    check_case(read, (struct str){text.p, (size_t)(bar - text.p)}, buf_str(&in), line);
    return 1;
}

static void check_file(const char *name, reader read, unsigned at_least)
{
    AUTO_BUF struct buf text = BUF(RESULT_MAX);
    char path[4096];
    struct str rest;
    unsigned cases = 0;

    (void)snprintf(path, sizeof(path), "%s/http/%s", getenv("VECTORS"), name);
    if (file_read(AT_FDCWD, path, &text, &err) < 0) {
        test_fail(__FILE__, __LINE__, "%s", err.text);
        return;
    }
    rest = buf_str(&text);
    for (unsigned line = 1; rest.n > 0; line++)
        cases += check_line(read, str_cut(&rest, '\n'), line);
    CHECK(cases >= at_least);
}

TEST(requests_are_read_or_refused)
{
    check_file("request.txt", read_request, 240);
}

TEST(answers_are_read_or_refused)
{
    check_file("answer.txt", read_answer, 30);
}

TEST(chunks_are_read_or_refused)
{
    check_file("chunked.txt", read_chunked, 60);
}

TEST(multipart_is_read_or_refused)
{
    check_file("multipart.txt", read_multipart, 40);
}

TEST(paths_are_split_or_refused)
{
    check_file("path.txt", read_path, 30);
}

TEST(ranges_are_understood_or_ignored)
{
    check_file("range.txt", read_range, 20);
}
