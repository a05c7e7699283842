/* SPDX-License-Identifier: Apache-2.0 */

/* Between header lists and struct http_head. A list is written down as the HTTP/1.1 head it means
 * and read by the reader of those, so that a request is the same to a rule whichever way it came:
 * one grammar, one set of ceilings, one kind of fault. What could tell the two apart (line ends in
 * a value, blanks in a method) is refused before it is written. */

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/h2/h2-private.h"

#define METHOD_MAX HTTP_METHOD_MAX
#define SEEN_MAX (4 * HTTP_HEAD_MAX) /* beyond, the rest of a list is not even looked at */

/* ---- collecting ---- */

void collect_init(struct collect *collect)
{
    *collect = (struct collect){
        .method = BUF(METHOD_MAX),
        .scheme = BUF(16),
        .authority = BUF(H2_HOST_BYTES + 16),
        .path = BUF(HTTP_START_LINE_MAX),
        .status = BUF(8),
        .host = BUF(H2_HOST_BYTES + 16),
        .lines = BUF(HTTP_HEAD_MAX),
    };
}

void collect_clear(struct collect *collect)
{
    buf_clear(&collect->method);
    buf_clear(&collect->scheme);
    buf_clear(&collect->authority);
    buf_clear(&collect->path);
    buf_clear(&collect->status);
    buf_clear(&collect->host);
    buf_clear(&collect->lines);
    collect->seen = 0;
    collect->is_full = false;
}

void collect_done(struct collect *collect)
{
    buf_done(&collect->method);
    buf_done(&collect->scheme);
    buf_done(&collect->authority);
    buf_done(&collect->path);
    buf_done(&collect->status);
    buf_done(&collect->host);
    buf_done(&collect->lines);
}

static struct buf *pseudo_of(struct collect *collect, struct str name)
{
    const struct {
        const char *name;
        struct buf *place;
    } places[] = {
        {":method",    &collect->method   },
        {":scheme",    &collect->scheme   },
        {":authority", &collect->authority},
        {":path",      &collect->path     },
        {":status",    &collect->status   },
        {"host",       &collect->host     },
    };

    for (size_t i = 0; i < COUNT(places); i++) {
        if (str_is(name, places[i].name))
            return places[i].place;
    }
    return NULL;
}

static bool add_line(struct buf *lines, struct str name, struct str value, struct err *err)
{
    return buf_add_str(lines, name, err) == 0 && buf_add(lines, ": ", 2, err) == 0 &&
           buf_add_str(lines, value, err) == 0 && buf_add(lines, "\r\n", 2, err) == 0;
}

bool collect_add(struct collect *collect, struct str name, struct str value)
{
    struct buf *pseudo = pseudo_of(collect, name);
    struct err err;

    collect->seen += name.n + value.n + 4;
    if (collect->seen > SEEN_MAX)
        return false;
    /* nghttp2 has looked at both; this is what our writing them down rests on. */
    if (!http_is_value(value) || (!pseudo && !http_is_token(name)))
        return false;
    if (pseudo && pseudo->n > 0)
        return false; /* a second one */
    if (collect->is_full)
        return true;
    if (pseudo ? buf_add_str(pseudo, value, &err) < 0
               : !add_line(&collect->lines, name, value, &err))
        collect->is_full = true;
    return true;
}

/* ---- requests ---- */

/* "host", "host:port", "[v6]:port": this connection's, in any case of letters. */
static bool is_own_authority(const struct h2_relay *relay, struct str authority)
{
    struct str port = {NULL, 0};
    struct str host = authority;
    const char *colon = memrchr(authority.p, ':', authority.n);
    uint64_t number = 443;

    if (colon && (authority.p[0] != '[' || colon[-1] == ']')) {
        host.n = (size_t)(colon - authority.p);
        port = (struct str){colon + 1, authority.n - host.n - 1};
        if (!str_u64(port, &number))
            return false;
    }
    if (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
        host = (struct str){host.p + 1, host.n - 2};
    if (host.n > 0 && host.p[host.n - 1] == '.')
        host.n--;
    return number == relay->port && host.n == strlen(relay->host) &&
           strncasecmp(host.p, relay->host, host.n) == 0;
}

static bool is_same_text(struct str a, struct str b)
{
    return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

/* A blank or a control byte would move what is read behind it. */
static bool is_one_word(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if ((unsigned char)s.p[i] <= ' ' || s.p[i] == 0x7f)
            return false;
    }
    return s.n > 0;
}

static int write_request(const struct collect *collect, struct str authority, struct buf *out,
                         struct err *err)
{
    if (buf_addf(out, err, STR_FMT " " STR_FMT " HTTP/1.1\r\nhost: " STR_FMT "\r\n",
                 STR_ARG(buf_str(&collect->method)), STR_ARG(buf_str(&collect->path)),
                 STR_ARG(authority)) < 0 ||
        buf_add_str(out, buf_str(&collect->lines), err) < 0)
        return -1;
    return buf_add(out, "\r\n", 2, err);
}

int head_read_again(const struct stream *stream, struct http_head *out)
{
    struct http_scan scan = {0};

    if (http_request_read(&scan, buf_str(&stream->head), out) <= 0)
        return -1;
    return 0;
}

static int read_request(struct stream *stream, bool has_body, struct http_head *out)
{
    struct http_scan scan = {0};

    if (http_request_read(&scan, buf_str(&stream->head), out) <= 0) {
        stream_refuse_http(stream, scan.fault ? scan.fault : HTTP_FAULT_START_LINE);
        return -1;
    }
    if (out->framing == HTTP_NO_BODY && has_body)
        out->framing = HTTP_CHUNKED; /* of a length that is not said */
    return 0;
}

int head_of_request(struct stream *stream, const struct collect *collect, bool has_body,
                    struct http_head *out)
{
    struct str authority = buf_str(collect->authority.n ? &collect->authority : &collect->host);
    struct err err;

    stream->is_head_method = str_is(buf_str(&collect->method), "HEAD");
    if (collect->is_full) {
        stream_refuse_http(stream, HTTP_FAULT_HEAD_TOO_LARGE);
        return -1;
    }
    if (str_is(buf_str(&collect->method), "CONNECT")) {
        stream_refuse(stream, H2_FAULT_CONNECT, H2_REFUSED);
        return -1;
    }
    if (!is_one_word(buf_str(&collect->method)) || !is_one_word(buf_str(&collect->path)) ||
        !is_one_word(authority) ||
        (collect->host.n > 0 && !is_same_text(buf_str(&collect->host), authority))) {
        stream_refuse(stream, H2_FAULT_HEAD, H2_REFUSED);
        return -1;
    }
    if (!str_is(buf_str(&collect->scheme), "https")) {
        stream_refuse(stream, H2_FAULT_SCHEME, H2_REFUSED);
        return -1;
    }
    if (!is_own_authority(stream->relay, authority)) {
        stream_refuse(stream, H2_FAULT_AUTHORITY, H2_REFUSED);
        return -1;
    }
    if (write_request(collect, authority, &stream->head, &err) < 0) {
        stream_refuse_http(stream, HTTP_FAULT_HEAD_TOO_LARGE);
        return -1;
    }
    return read_request(stream, has_body, out);
}

/* ---- answers ---- */

int head_of_response(struct collect *collect, bool is_head_method, struct buf *text,
                     struct http_head *out)
{
    struct http_scan scan = {0};
    struct err err;

    buf_clear(text);
    if (collect->is_full ||
        buf_addf(text, &err, "HTTP/1.1 " STR_FMT " \r\n", STR_ARG(buf_str(&collect->status))) < 0 ||
        buf_add_str(text, buf_str(&collect->lines), &err) < 0 || buf_add(text, "\r\n", 2, &err) < 0)
        return -1;
    return http_answer_read(&scan, buf_str(text), is_head_method ? HTTP_HEAD : HTTP_GET, out) > 0
               ? 0
               : -1;
}

int head_of_trailers(const struct collect *collect, struct http_head *out, struct buf *text)
{
    struct http_scan scan = {0};
    struct err err;

    buf_clear(text);
    if (collect->is_full || buf_add_text(text, "HTTP/1.1 204 \r\n", &err) < 0 ||
        buf_add_str(text, buf_str(&collect->lines), &err) < 0 ||
        buf_add(text, "\r\n", 2, &err) < 0 ||
        http_answer_read(&scan, buf_str(text), HTTP_GET, out) <= 0)
        return -1;
    out->status = 0;
    for (size_t i = 0; i < out->header_count; i++) {
        if (!http_is_trailer(out->headers[i].name))
            return -1;
    }
    return 0;
}
