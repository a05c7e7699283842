/* SPDX-License-Identifier: Apache-2.0 */

/* Heads on their way out. Everything is copied by nghttp2 when it is submitted. */

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/h2/h2-private.h"

#define PSEUDO_MAX 5

struct list {
    nghttp2_nv nv[HTTP_HEADERS_MAX + PSEUDO_MAX];
    size_t n;
    char names[HTTP_HEAD_MAX]; /* in lower case, as HTTP/2 wants them */
    size_t used;
    bool is_secret; /* the other side's compressor keeps none of it */
};

static uint8_t *bytes_of(const char *p)
{
    return (uint8_t *)(uintptr_t)p; /* nghttp2 reads through it only */
}

static struct str lower_name(struct list *list, struct str name)
{
    char *to = list->names + list->used;

    if (name.n > sizeof(list->names) - list->used)
        return (struct str){NULL, 0};
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];

        if (c >= 'A' && c <= 'Z')
            c = (char)(c + ('a' - 'A'));
        to[i] = c;
    }
    list->used += name.n;
    return (struct str){to, name.n};
}

static int add(struct list *list, struct str name, struct str value)
{
    struct str lower = lower_name(list, name);

    if (!lower.p || list->n == COUNT(list->nv))
        return -1;
    list->nv[list->n++] =
        (nghttp2_nv){bytes_of(lower.p), bytes_of(value.p), lower.n, value.n,
                     list->is_secret ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE};
    return 0;
}

/* Headers of one connection only (RFC 9113 8.2.2, RFC 9110 7.6.1), those for proxies, and places
 * that no rule has judged (Alt-Svc). */
static bool is_dropped(const struct http_header *header)
{
    static const char *const names[] = {"connection", "keep-alive", "transfer-encoding",
                                        "upgrade",    "host",       "alt-svc"};

    for (size_t i = 0; i < COUNT(names); i++) {
        if (http_name_is(header->name, names[i]))
            return true;
    }
    if (http_name_is(header->name, "te"))
        return !str_is(header->value, "trailers");
    return header->name.n > 6 && strncasecmp(header->name.p, "proxy-", 6) == 0;
}

static int add_headers(struct list *list, const struct http_header *headers, size_t n,
                       bool has_own_length)
{
    for (size_t i = 0; i < n; i++) {
        if (is_dropped(&headers[i]) ||
            (has_own_length && http_name_is(headers[i].name, "content-length")))
            continue;
        if (!http_is_token(headers[i].name) || !http_is_value(headers[i].value) ||
            add(list, headers[i].name, headers[i].value) < 0)
            return -1;
    }
    return 0;
}

/* ---- requests ---- */

static int add_request(struct list *list, const struct stream *stream, const struct http_head *head,
                       const struct h2_word *word)
{
    struct str path = word->path.p ? word->path : head->target;
    const struct http_header *headers = word->headers ? word->headers : head->headers;
    size_t n = word->headers ? word->header_count : head->header_count;

    list->is_secret = word->headers != NULL;
    if (add(list, STR_LIT(":method"), head->method_text) < 0 ||
        add(list, STR_LIT(":scheme"), STR_LIT("https")) < 0 ||
        add(list, STR_LIT(":authority"), str_of(stream->relay->authority)) < 0 ||
        add(list, STR_LIT(":path"), path) < 0)
        return -1;
    return add_headers(list, headers, n, stream->hold_max > 0);
}

/* Of a body that was held the length is known, and maybe another one than the client said. */
static int add_held_length(struct list *list, const struct stream *stream, char text[24])
{
    (void)snprintf(text, 24, "%zu", stream->to[H2_SERVER].bytes.n);
    return add(list, STR_LIT("content-length"), str_of(text));
}

int submit_request(struct stream *stream, const struct h2_word *word)
{
    struct list list = {.n = 0};
    struct http_head head;
    const struct pipe *body = &stream->to[H2_SERVER];
    nghttp2_data_provider source = pipe_source(stream, H2_SERVER);
    bool has_body = !body->ended || body->bytes.n > 0 || body->trailers.n > 0;
    char length[24];
    int32_t id;

    if (head_read_again(stream, &head) < 0 || add_request(&list, stream, &head, word) < 0)
        return -1;
    if (stream->hold_max > 0 && body->bytes.n > 0 && add_held_length(&list, stream, length) < 0)
        return -1;
    id = nghttp2_submit_request(stream->relay->session[H2_SERVER], NULL, list.nv, list.n,
                                has_body ? &source : NULL, stream);
    if (id < 0)
        return -1;
    stream->id[H2_SERVER] = id;
    return 0;
}

/* ---- answers ---- */

static int add_status(struct list *list, int status, char text[8])
{
    (void)snprintf(text, 8, "%d", status);
    return add(list, STR_LIT(":status"), str_of(text));
}

int submit_interim(struct stream *stream, const struct http_head *head)
{
    struct list list = {.n = 0};
    char status[8];

    if (add_status(&list, head->status, status) < 0 ||
        add_headers(&list, head->headers, head->header_count, false) < 0)
        return -1;
    return nghttp2_submit_headers(stream->relay->session[H2_CLIENT], NGHTTP2_FLAG_NONE,
                                  stream->id[H2_CLIENT], NULL, list.nv, list.n, NULL) < 0
               ? -1
               : 0;
}

int submit_response(struct stream *stream, const struct http_head *head, bool has_body)
{
    struct list list = {.n = 0};
    nghttp2_data_provider source = pipe_source(stream, H2_CLIENT);
    char status[8];

    if (add_status(&list, head->status, status) < 0 ||
        add_headers(&list, head->headers, head->header_count, false) < 0)
        return -1;
    return nghttp2_submit_response(stream->relay->session[H2_CLIENT], stream->id[H2_CLIENT],
                                   list.nv, list.n, has_body ? &source : NULL) < 0
               ? -1
               : 0;
}

int submit_reply(struct stream *stream, int status, struct str body)
{
    struct list list = {.n = 0};
    nghttp2_data_provider source = pipe_source(stream, H2_CLIENT);
    char text[8];
    char length[24];

    (void)snprintf(length, sizeof length, "%zu", body.n);
    if (add_status(&list, status, text) < 0 ||
        add(&list, STR_LIT("content-type"), STR_LIT("application/json")) < 0 ||
        add(&list, STR_LIT("content-length"), str_of(length)) < 0)
        return -1;
    if (!stream->is_head_method)
        pipe_add(stream, H2_CLIENT, body, 0);
    stream->to[H2_CLIENT].ended = stream->client_ended; /* else stream_drop_data() ends it */
    return nghttp2_submit_response(stream->relay->session[H2_CLIENT], stream->id[H2_CLIENT],
                                   list.nv, list.n,
                                   stream->is_head_method || body.n == 0 ? NULL : &source) < 0
               ? -1
               : 0;
}

/* ---- trailers ---- */

int submit_trailers(struct stream *stream, enum h2_peer to)
{
    struct list list = {.n = 0};
    struct str rest = buf_str(&stream->to[to].trailers);

    while (rest.n > 0) {
        struct str value = str_cut(&rest, '\n'); /* ends in \r; both were written by us */
        struct str name = str_cut(&value, ':');

        value.n -= value.n > 0;
        if (add(&list, name, str_trim(value)) < 0)
            return -1;
    }
    return nghttp2_submit_trailer(stream->relay->session[to], stream->id[to], list.nv, list.n) < 0
               ? -1
               : 0;
}
