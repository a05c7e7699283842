/* SPDX-License-Identifier: Apache-2.0 */

/* Request targets: the four forms, paths and queries. */

#include "lib/http/http.h"

#include <string.h>

#include "lib/http/chars-private.h"
#include "lib/http/head-private.h"

static bool is_port(struct str s)
{
    uint64_t port = 0;

    return s.n >= 1 && s.n <= 5 && str_u64(s, &port) && port <= 65535;
}

/* "[::1]" at the start of s, which becomes what stands behind it. */
static bool cut_address6(struct str *s)
{
    const char *end = memchr(s->p, ']', s->n);
    size_t n = end ? (size_t)(end - s->p) + 1 : 0;

    if (n < 4)
        return false;
    for (size_t i = 1; i + 1 < n; i++)
        if (s->p[i] != ':' && s->p[i] != '.' && http_hex_digit(s->p[i]) < 0)
            return false;
    s->p += n;
    s->n -= n;
    return true;
}

static bool is_name(struct str s)
{
    return s.n > 0 && memchr(s.p, '[', s.n) == NULL && memchr(s.p, ']', s.n) == NULL;
}

bool http_is_host(struct str s)
{
    struct str port = s;

    if (s.n == 0 || http_span(s.p, s.n, HTTP_C_HOST) != s.n)
        return false;
    if (s.p[0] == '[') {
        if (!cut_address6(&port))
            return false;
        if (port.n == 0)
            return true;
        return port.p[0] == ':' && is_port((struct str){port.p + 1, port.n - 1});
    }
    if (!is_name(str_cut(&port, ':')))
        return false;
    return memchr(s.p, ':', s.n) == NULL || is_port(port);
}

static bool has_escapes_right(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '%' &&
            (s.n - i < 3 || http_hex_digit(s.p[i + 1]) < 0 || http_hex_digit(s.p[i + 2]) < 0))
            return false;
    return true;
}

static bool is_path(struct str s)
{
    return http_span(s.p, s.n, HTTP_C_PATH) == s.n;
}

static enum http_fault read_origin(struct str target, struct http_head *head)
{
    struct str query = target;
    struct str path = str_cut(&query, '?');

    if (!is_path(path) || http_span(query.p, query.n, HTTP_C_QUERY) != query.n ||
        (memchr(target.p, '%', target.n) != NULL && !has_escapes_right(target)))
        return HTTP_FAULT_TARGET;
    head->path = path;
    head->query = query;
    return HTTP_NO_FAULT;
}

static enum http_fault read_absolute(struct str target, size_t scheme, struct http_head *head)
{
    struct str rest = {target.p + scheme, target.n - scheme};
    size_t host = 0;

    while (host < rest.n && rest.p[host] != '/' && rest.p[host] != '?')
        host++;
    head->form = HTTP_ABSOLUTE;
    head->scheme = (struct str){target.p, scheme - 3};
    head->authority = (struct str){rest.p, host};
    if (!http_is_host(head->authority))
        return HTTP_FAULT_TARGET;
    rest = (struct str){rest.p + host, rest.n - host};
    if (rest.n == 0) {
        head->path = STR_LIT("/");
        return HTTP_NO_FAULT;
    }
    return rest.p[0] == '/' ? read_origin(rest, head) : HTTP_FAULT_TARGET;
}

static enum http_fault read_authority(struct str target, struct http_head *head)
{
    head->form = HTTP_AUTHORITY;
    head->authority = target;
    /* RFC 9110 9.3.6: always with the port. */
    if (!http_is_host(target) || memchr(target.p, ':', target.n) == NULL ||
        target.p[target.n - 1] == ']')
        return HTTP_FAULT_TARGET;
    return HTTP_NO_FAULT;
}

enum http_fault http_target_read(struct str target, struct http_head *head)
{
    if (target.n == 0)
        return HTTP_FAULT_START_LINE;
    head->target = target;
    if (head->method == HTTP_CONNECT)
        return target.p[0] == '/' || target.p[0] == '*' ? HTTP_FAULT_TARGET_FORM
                                                        : read_authority(target, head);
    if (target.p[0] == '/') {
        head->form = HTTP_ORIGIN;
        return read_origin(target, head);
    }
    if (str_is(target, "*")) {
        head->form = HTTP_ASTERISK;
        head->path = target;
        return head->method == HTTP_OPTIONS ? HTTP_NO_FAULT : HTTP_FAULT_TARGET_FORM;
    }
    if (str_starts(target, "http://"))
        return read_absolute(target, 7, head);
    if (str_starts(target, "https://"))
        return read_absolute(target, 8, head);
    return http_is_host(target) ? HTTP_FAULT_TARGET_FORM : HTTP_FAULT_TARGET;
}

/* ---- decoding ---- */

/* Decodes s to the place *to, which moves on. -1: an escape that is none. */
static int decode(struct str s, bool plus_is_blank, char **to, struct str *out)
{
    char *p = *to;

    out->p = p;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (c == '%') {
            int high = s.n - i < 3 ? -1 : http_hex_digit(s.p[i + 1]);
            int low = s.n - i < 3 ? -1 : http_hex_digit(s.p[i + 2]);

            if (high < 0 || low < 0)
                return -1;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && plus_is_blank) {
            c = ' ';
        }
        *p++ = c;
    }
    out->n = (size_t)(p - out->p);
    *to = p;
    return 0;
}

static enum http_fault read_segment(struct str raw, bool last, char **to, struct str *out)
{
    if (decode(raw, false, to, out) < 0)
        return HTTP_FAULT_PATH_ESCAPE;
    if (memchr(out->p, '\0', out->n) != NULL || memchr(out->p, '/', out->n) != NULL)
        return HTTP_FAULT_PATH_ESCAPE;
    if (str_is(*out, ".") || str_is(*out, ".."))
        return HTTP_FAULT_PATH_DOTS;
    if (out->n == 0 && !last)
        return HTTP_FAULT_PATH_EMPTY;
    return HTTP_NO_FAULT;
}

int http_path_split(struct str path, char *memory, struct str out[HTTP_PATH_SEGMENTS_MAX],
                    enum http_fault *fault)
{
    struct str rest = path;
    int n = 0;

    *fault = path.n == 0 || path.p[0] != '/' ? HTTP_FAULT_TARGET : HTTP_NO_FAULT;
    if (*fault != HTTP_NO_FAULT)
        return -1;
    (void)str_cut(&rest, '/');
    while (*fault == HTTP_NO_FAULT) {
        bool last = memchr(rest.p, '/', rest.n) == NULL;

        if (n == HTTP_PATH_SEGMENTS_MAX) {
            *fault = HTTP_FAULT_PATH_TOO_DEEP;
            break;
        }
        *fault = read_segment(str_cut(&rest, '/'), last, &memory, &out[n++]);
        if (last)
            break;
    }
    return *fault == HTTP_NO_FAULT ? n : -1;
}

int http_query_next(struct str *rest, char *memory, struct http_header *out)
{
    char *to = memory;
    struct str value;

    while (rest->n > 0) {
        value = str_cut(rest, '&');
        if (value.n == 0)
            continue;
        if (decode(str_cut(&value, '='), true, &to, &out->name) < 0 ||
            decode(value, true, &to, &out->value) < 0)
            return -1;
        return 1;
    }
    return 0;
}
