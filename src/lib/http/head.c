/* SPDX-License-Identifier: Apache-2.0 */

/* Heads of requests and answers.
 *
 * Two steps. The first looks for the empty line, byte order deciding which ceiling or bare LF is
 * met first, so the verdict is the same however the bytes arrive. The second runs once, over the
 * complete head, and makes slices. */

#include "lib/http/http.h"

#include <string.h>
#include <strings.h>

#include "lib/http/chars-private.h"
#include "lib/http/head-private.h"

static int refuse(struct http_scan *scan, enum http_fault fault)
{
    scan->fault = fault;
    return -1;
}

bool http_name_is(struct str name, const char *lower)
{
    return strlen(lower) == name.n && strncasecmp(name.p, lower, name.n) == 0;
}

bool http_is_token(struct str s)
{
    return s.n > 0 && http_span(s.p, s.n, HTTP_C_TOKEN) == s.n;
}

bool http_is_value(struct str s)
{
    return http_span(s.p, s.n, HTTP_C_VALUE) == s.n;
}

/* ---- the first step ---- */

/* 1: another line is complete, 0: more bytes needed, -1: refused. *end is where its LF stands. */
static int find_line(struct http_scan *scan, struct str in, size_t *end)
{
    const char *lf = memchr(in.p + scan->at, '\n', in.n - scan->at);
    size_t here = lf ? (size_t)(lf - in.p) : in.n;

    if (scan->lines == 0 && here - scan->line > HTTP_START_LINE_MAX)
        return refuse(scan, HTTP_FAULT_START_LINE_TOO_LONG);
    if (here >= HTTP_HEAD_MAX)
        return refuse(scan, HTTP_FAULT_HEAD_TOO_LARGE);
    scan->at = here;
    *end = here;
    if (!lf)
        return 0;
    if (here == scan->line || in.p[here - 1] != '\r')
        return refuse(scan, HTTP_FAULT_BARE_LF);
    return 1;
}

/* The length of the head once its empty line is there. */
static int find_end(struct http_scan *scan, struct str in)
{
    size_t end = 0;

    /* Another protocol (TLS on a plain port) is told at once instead of after the deadline. */
    if (scan->at == 0 && in.n > 0 && (http_chars[(unsigned char)in.p[0]] & HTTP_C_TOKEN) == 0)
        return refuse(scan, HTTP_FAULT_START_LINE);
    while (scan->at < in.n) {
        int found = find_line(scan, in, &end);

        if (found <= 0)
            return found;
        if (end - scan->line == 1)
            return (int)end + 1;
        if (++scan->lines > HTTP_HEADERS_MAX + 1)
            return refuse(scan, HTTP_FAULT_TOO_MANY_HEADERS);
        scan->at = scan->line = end + 1;
    }
    return 0;
}

/* ---- headers ---- */

/* Headers that decide something and may come once. */
enum single {
    SINGLE_HOST,
    SINGLE_LENGTH,
    SINGLE_CODING,
    SINGLE_EXPECT,
    SINGLE_TYPE,
    SINGLE_ENCODING,
    SINGLE_AUTHORIZATION,
    SINGLE_ORIGIN,
    SINGLE_RANGE,
    SINGLE_WS_KEY,
    SINGLE_LOCATION,
};

static const struct {
    struct str name;
    enum single which;
} singles[] = {
    {{"host", 4},               SINGLE_HOST         },
    {{"content-length", 14},    SINGLE_LENGTH       },
    {{"transfer-encoding", 17}, SINGLE_CODING       },
    {{"expect", 6},             SINGLE_EXPECT       },
    {{"content-type", 12},      SINGLE_TYPE         },
    {{"content-encoding", 16},  SINGLE_ENCODING     },
    {{"authorization", 13},     SINGLE_AUTHORIZATION},
    {{"origin", 6},             SINGLE_ORIGIN       },
    {{"range", 5},              SINGLE_RANGE        },
    {{"sec-websocket-key", 17}, SINGLE_WS_KEY       },
    {{"location", 8},           SINGLE_LOCATION     },
};

/* What the headers said, before the rules that combine them. */
struct said {
    unsigned seen; /* bits of enum single */
    struct str length;
    struct str coding;
    struct str expect;
    bool close;
    bool keep_alive;
    bool upgrade;
    bool upgrade_header;
};

bool http_list_has(struct str list, const char *token)
{
    while (list.n > 0) {
        struct str item = str_trim(str_cut(&list, ','));

        if (http_name_is(item, token))
            return true;
    }
    return false;
}

static int note_single(struct http_scan *scan, const struct http_header *h, struct http_head *head,
                       struct said *said)
{
    for (size_t i = 0; i < COUNT(singles); i++) {
        if (singles[i].name.n != h->name.n ||
            strncasecmp(singles[i].name.p, h->name.p, h->name.n) != 0)
            continue;
        if ((said->seen & 1U << singles[i].which) != 0)
            return refuse(scan, HTTP_FAULT_DUPLICATE_HEADER);
        said->seen |= 1U << singles[i].which;
        if (singles[i].which == SINGLE_HOST)
            head->host = h->value;
        else if (singles[i].which == SINGLE_LENGTH)
            said->length = h->value;
        else if (singles[i].which == SINGLE_CODING)
            said->coding = h->value;
        else if (singles[i].which == SINGLE_EXPECT)
            said->expect = h->value;
        return 0;
    }
    return 0;
}

static int note(struct http_scan *scan, const struct http_header *h, struct http_head *head,
                struct said *said)
{
    if (http_name_is(h->name, "connection")) {
        said->close |= http_list_has(h->value, "close");
        said->keep_alive |= http_list_has(h->value, "keep-alive");
        said->upgrade |= http_list_has(h->value, "upgrade");
        return 0;
    }
    if (http_name_is(h->name, "upgrade")) {
        said->upgrade_header = true;
        return 0;
    }
    return note_single(scan, h, head, said);
}

static enum http_fault split_header(struct str line, struct http_header *out)
{
    size_t name = http_span(line.p, line.n, HTTP_C_TOKEN);
    struct str value;

    if (line.p[0] == ' ' || line.p[0] == '\t')
        return HTTP_FAULT_FOLDED_HEADER;
    if (name == 0 || name == line.n || line.p[name] != ':')
        return HTTP_FAULT_HEADER_NAME;
    value = (struct str){line.p + name + 1, line.n - name - 1};
    if (!http_is_value(value))
        return HTTP_FAULT_HEADER_VALUE;
    *out = (struct http_header){
        {line.p, name},
        str_trim(value)
    };
    return HTTP_NO_FAULT;
}

/* Next line without its CR LF; the first step has made sure that both are there. */
static struct str next_line(struct str *rest)
{
    const char *lf = memchr(rest->p, '\n', rest->n);
    size_t n = (size_t)(lf - rest->p);
    struct str line = {rest->p, n - 1};

    rest->p += n + 1;
    rest->n -= n + 1;
    return line;
}

static int read_headers(struct http_scan *scan, struct str lines, struct http_head *head,
                        struct said *said)
{
    head->header_count = 0;
    while (lines.n > 2) { /* the empty line */
        struct http_header *h = &head->headers[head->header_count];
        enum http_fault fault = split_header(next_line(&lines), h);

        if (fault != HTTP_NO_FAULT)
            return refuse(scan, fault);
        if (note(scan, h, head, said) < 0)
            return -1;
        head->header_count++;
    }
    return 0;
}

/* ---- framing ---- */

static bool is_length(struct str s, uint64_t *out)
{
    return s.n > 0 && s.n <= 18 && http_span(s.p, s.n, HTTP_C_DIGIT) == s.n && str_u64(s, out);
}

static bool was_said(const struct said *said, enum single which)
{
    return (said->seen & 1U << which) != 0;
}

/* What both directions share: at most one of the two, and each only in its one form. */
static int read_framing(struct http_scan *scan, struct http_head *head, const struct said *said)
{
    head->framing = HTTP_NO_BODY;
    head->length = 0;
    if (was_said(said, SINGLE_CODING)) {
        if (was_said(said, SINGLE_LENGTH))
            return refuse(scan, HTTP_FAULT_LENGTH_AND_CODING);
        if (head->minor == 0 || !http_name_is(said->coding, "chunked"))
            return refuse(scan, HTTP_FAULT_CODING);
        head->framing = HTTP_CHUNKED;
    } else if (was_said(said, SINGLE_LENGTH)) {
        if (!is_length(said->length, &head->length))
            return refuse(scan, HTTP_FAULT_LENGTH);
        head->framing = HTTP_LENGTH;
    }
    return 0;
}

static void read_connection(struct http_head *head, const struct said *said)
{
    head->keep_alive = !said->close && (head->minor == 1 || said->keep_alive);
    head->has_upgrade = head->minor == 1 && said->upgrade && said->upgrade_header;
}

/* ---- requests ---- */

static const struct {
    struct str text;
    enum http_method method;
} methods[] = {
    {{"GET", 3},     HTTP_GET    },
    {{"HEAD", 4},    HTTP_HEAD   },
    {{"POST", 4},    HTTP_POST   },
    {{"PUT", 3},     HTTP_PUT    },
    {{"PATCH", 5},   HTTP_PATCH  },
    {{"DELETE", 6},  HTTP_DELETE },
    {{"OPTIONS", 7}, HTTP_OPTIONS},
    {{"CONNECT", 7}, HTTP_CONNECT},
    {{"TRACE", 5},   HTTP_TRACE  },
};

static enum http_method method_of(struct str text)
{
    for (size_t i = 0; i < COUNT(methods); i++)
        if (str_eq(methods[i].text, text))
            return methods[i].method;
    return HTTP_OTHER_METHOD;
}

static enum http_fault read_version(struct str text, unsigned *minor)
{
    if (str_is(text, "HTTP/1.1")) {
        *minor = 1;
        return HTTP_NO_FAULT;
    }
    if (str_is(text, "HTTP/1.0")) {
        *minor = 0;
        return HTTP_NO_FAULT;
    }
    /* HTTP/2.0 is another version; HTTP/1.1.1 and http/1.1 are mistakes. */
    if (text.n == 8 && str_starts(text, "HTTP/") && text.p[6] == '.' &&
        http_span(text.p + 5, 1, HTTP_C_DIGIT) == 1 && http_span(text.p + 7, 1, HTTP_C_DIGIT) == 1)
        return HTTP_FAULT_VERSION;
    return HTTP_FAULT_START_LINE;
}

static enum http_fault read_request_line(struct str line, struct http_head *head)
{
    struct str rest = line;
    struct str method = str_cut(&rest, ' ');
    struct str target = str_cut(&rest, ' ');
    enum http_fault fault;

    if (!http_is_token(method) || method.n > HTTP_METHOD_MAX)
        return HTTP_FAULT_METHOD;
    if (method.n + 1 + target.n + 1 + rest.n != line.n)
        return HTTP_FAULT_START_LINE; /* fewer than two blanks */
    fault = read_version(rest, &head->minor);
    if (fault != HTTP_NO_FAULT)
        return fault;
    head->method_text = method;
    head->method = method_of(method);
    return http_target_read(target, head);
}

static enum http_fault check_host(const struct http_head *head, const struct said *said)
{
    if (!was_said(said, SINGLE_HOST))
        return head->minor == 1 ? HTTP_FAULT_HOST : HTTP_NO_FAULT;
    if (!http_is_host(head->host))
        return HTTP_FAULT_HOST;
    if (head->authority.n > 0 && (head->authority.n != head->host.n ||
                                  strncasecmp(head->authority.p, head->host.p, head->host.n) != 0))
        return HTTP_FAULT_HOST_MISMATCH;
    return HTTP_NO_FAULT;
}

static enum http_fault check_expect(struct http_head *head, const struct said *said)
{
    head->expects_continue = false;
    if (!was_said(said, SINGLE_EXPECT))
        return HTTP_NO_FAULT;
    if (!http_name_is(said->expect, "100-continue"))
        return HTTP_FAULT_EXPECTATION;
    /* RFC 9110 10.1.1: not from an HTTP/1.0 client, and without a body there is nothing to wait
     * for. */
    head->expects_continue = head->minor == 1 && head->framing != HTTP_NO_BODY;
    return HTTP_NO_FAULT;
}

/* Slices and counts of the last head; the headers themselves are overwritten one by one. */
static void forget(struct http_head *head)
{
    memset((char *)head + sizeof(head->headers), 0, sizeof(*head) - sizeof(head->headers));
}

int http_request_read(struct http_scan *scan, struct str in, struct http_head *out)
{
    int length = find_end(scan, in);
    struct said said = {0};
    struct str lines;
    enum http_fault fault;

    if (length != 0)
        forget(out); /* also when it is refused: what is there is of another one */
    if (length <= 0)
        return length;
    lines = (struct str){in.p, (size_t)length};
    fault = read_request_line(next_line(&lines), out);
    if (fault != HTTP_NO_FAULT)
        return refuse(scan, fault);
    if (read_headers(scan, lines, out, &said) < 0 || read_framing(scan, out, &said) < 0)
        return -1;
    read_connection(out, &said);
    fault = check_host(out, &said);
    if (fault == HTTP_NO_FAULT)
        fault = check_expect(out, &said);
    return fault == HTTP_NO_FAULT ? length : refuse(scan, fault);
}

/* ---- answers ---- */

static enum http_fault read_status_line(struct str line, struct http_head *head)
{
    struct str rest = line;
    struct str version = str_cut(&rest, ' ');
    struct str status = str_cut(&rest, ' ');
    uint64_t number = 0;
    enum http_fault fault = read_version(version, &head->minor);

    if (fault != HTTP_NO_FAULT)
        return fault;
    if (status.n != 3 || !str_u64(status, &number) || number < 100 || number > 599 ||
        !http_is_value(rest))
        return HTTP_FAULT_START_LINE;
    head->status = (int)number;
    head->reason = rest;
    return HTTP_NO_FAULT;
}

/* RFC 9112 6.3. An answer that cannot have a body has none, whatever its headers say; without a
 * length it lasts until the connection ends. */
static void frame_answer(struct http_head *head, enum http_method asked)
{
    bool tunnel = asked == HTTP_CONNECT && head->status / 100 == 2;

    if (asked == HTTP_HEAD || head->status / 100 == 1 || head->status == 204 ||
        head->status == 304 || tunnel) {
        head->framing = HTTP_NO_BODY;
        return;
    }
    if (head->framing == HTTP_NO_BODY) {
        head->framing = HTTP_UNTIL_CLOSE;
        head->keep_alive = false;
    }
}

int http_answer_read(struct http_scan *scan, struct str in, enum http_method asked,
                     struct http_head *out)
{
    int length = find_end(scan, in);
    struct said said = {0};
    struct str lines;
    enum http_fault fault;

    if (length <= 0)
        return length;
    lines = (struct str){in.p, (size_t)length};
    forget(out);
    fault = read_status_line(next_line(&lines), out);
    if (fault != HTTP_NO_FAULT)
        return refuse(scan, fault);
    if (read_headers(scan, lines, out, &said) < 0 || read_framing(scan, out, &said) < 0)
        return -1;
    read_connection(out, &said);
    frame_answer(out, asked);
    return length;
}

/* ---- looking things up ---- */

bool http_find_next(const struct http_head *head, const char *name, size_t *at, struct str *out)
{
    while (*at < head->header_count) {
        const struct http_header *h = &head->headers[(*at)++];

        if (http_name_is(h->name, name)) {
            *out = h->value;
            return true;
        }
    }
    return false;
}

struct str http_find(const struct http_head *head, const char *name)
{
    struct str value = {NULL, 0};
    size_t at = 0;

    (void)http_find_next(head, name, &at, &value); /* stays empty */
    return value;
}
