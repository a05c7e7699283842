/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/api/proxy.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/limits.h"

#define INSIDE_HOST_BYTES 24

/* What never reaches a sandbox: what belongs to this connection, who the client is to us, and where
 * it found the link. "x-forwarded-" and what Connection names are left out as well. */
static const char *const kept_back[] = {
    "host",
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "content-length",
    "upgrade",
    "expect",
    "date",
    "authorization",
    "x-api-key",
    "idempotency-key",
    "cookie",
    "cookie2",
    "referer",
    "origin",
    "forwarded",
    "x-real-ip",
    "via",
};

/* What of an answer is shown, besides names that begin with "x-": nothing that changes what our
 * origin may do, or that a browser keeps for it. */
static const char *const shown[] = {
    "accept-ranges",
    "age",
    "allow",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-range",
    "etag",
    "expires",
    "last-modified",
    "pragma",
    "retry-after",
    "server",
    "sourcemap",
    "vary",
};

static const char *const own[] = {
    "x-request-id",
    "x-content-type-options",
};

static const char *const of_socket[] = {
    "sec-websocket-accept",
    "sec-websocket-protocol",
    "sec-websocket-extensions",
};

#define PAGE_WALLS "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads"

static bool is_one_of(struct str name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (http_name_is(name, list[i]))
            return true;
    return false;
}

static bool begins(struct str name, const char *lower)
{
    size_t n = strlen(lower);

    return name.n > n && http_name_is((struct str){name.p, n}, lower);
}

/* ---- there ---- */

static bool is_named_by_connection(const struct passed *passed, struct str name)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);

    for (size_t i = 0; i < passed->header_n; i++)
        if (http_name_is(passed->headers[i].name, "connection") &&
            http_list_has(passed->headers[i].value, arena_text(&mem, name)))
            return true;
    return false;
}

static bool goes_in(const struct passed *passed, struct str name)
{
    return !is_one_of(name, kept_back, COUNT(kept_back)) && !begins(name, "x-forwarded-") &&
           !is_named_by_connection(passed, name);
}

static bool has_header(const struct passed *passed, const char *name)
{
    for (size_t i = 0; i < passed->header_n; i++)
        if (http_name_is(passed->headers[i].name, name))
            return true;
    return false;
}

int proxy_ask(struct call *call, uint16_t port, struct buf *out, struct err *err)
{
    const struct passed *passed = call->passed;
    struct http_header *headers = arena_array(&call->mem, struct http_header, passed->header_n + 3);
    const char *host = arena_printf(&call->mem, "localhost:%u", port);
    struct http_ask ask = {
        .method = passed->method_text,
        .target = passed->path,
        .host = str_of(host),
        .headers = headers,
        .framing = passed->framing,
        .length = passed->length,
        .close = !passed->is_socket,
        .upgrade = passed->is_socket,
    };

    if (passed->query.n)
        ask.target = str_of(arena_printf(&call->mem, STR_FMT "?" STR_FMT, STR_ARG(passed->path),
                                         STR_ARG(passed->query)));
    for (size_t i = 0; i < passed->header_n; i++)
        if (goes_in(passed, passed->headers[i].name))
            headers[ask.header_count++] = passed->headers[i];
    /* Servers that compare Origin with Host find what they expect. */
    if (has_header(passed, "origin"))
        headers[ask.header_count++] = (struct http_header){
            STR_LIT("origin"), str_of(arena_printf(&call->mem, "http://%s", host))};
    if (passed->is_socket)
        headers[ask.header_count++] =
            (struct http_header){STR_LIT("upgrade"), STR_LIT("websocket")};
    return http_ask_write(&ask, out, err);
}

/* ---- where a redirect leads ---- */

static bool is_inside(struct str authority, uint16_t port)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};

    for (size_t i = 0; i < COUNT(names); i++) {
        char with[INSIDE_HOST_BYTES];

        (void)snprintf(with, sizeof with, "%s:%u", names[i], port);
        if (http_name_is(authority, with) || (port == 80 && http_name_is(authority, names[i])))
            return true;
    }
    return false;
}

static size_t span(struct str s, const char *stops)
{
    size_t n = 0;

    while (n < s.n && !strchr(stops, s.p[n]))
        n++;
    return n;
}

static struct str behind(struct str s, size_t n)
{
    return (struct str){s.p + n, s.n - n};
}

/* The path, query and fragment of it as the server inside means them; false: it leads elsewhere. */
static bool mean(struct arena *mem, struct str path, uint16_t port, struct str location,
                 struct str *out)
{
    size_t scheme = span(location, ":/?#\\");

    if (begins(location, "http://")) {
        struct str rest = behind(location, 7);
        size_t n = span(rest, "/?#\\");

        if (!is_inside((struct str){rest.p, n}, port))
            return false;
        rest = behind(rest, n);
        *out = str_of(
            arena_printf(mem, "%s" STR_FMT, rest.n && rest.p[0] == '/' ? "" : "/", STR_ARG(rest)));
        return true;
    }
    if (scheme < location.n && location.p[scheme] == ':')
        return false;
    if (location.n >= 2 && strchr("/\\", location.p[0]) && strchr("/\\", location.p[1]))
        return false;
    if (location.n && location.p[0] == '/') {
        *out = location;
        return true;
    }
    if (!location.n || location.p[0] == '?' || location.p[0] == '#') {
        *out = str_of(arena_printf(mem, STR_FMT STR_FMT, STR_ARG(path), STR_ARG(location)));
        return true;
    }
    while (path.n && path.p[path.n - 1] != '/')
        path.n--;
    *out = str_of(arena_printf(mem, STR_FMT STR_FMT, STR_ARG(path), STR_ARG(location)));
    return true;
}

/* "." and ".." as clients understand them, escaped or not; 0: neither. */
static unsigned dots(struct str segment)
{
    unsigned n = 0;

    while (segment.n) {
        size_t one = segment.p[0] == '.'                                                 ? 1
                     : segment.n >= 3 && http_name_is((struct str){segment.p, 3}, "%2e") ? 3
                                                                                         : 0;

        if (!one)
            return 0;
        segment = behind(segment, one);
        n++;
    }
    return n <= 2 ? n : 0;
}

/* Bytes that clients leave out or take for a slash must not mean anything. */
static void add_plain(char **to, struct str s)
{
    static const char hex[] = "0123456789ABCDEF";

    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c <= ' ' || c >= 0x7f || c == '\\') {
            *(*to)++ = '%';
            *(*to)++ = hex[c >> 4];
            *(*to)++ = hex[c & 15];
        } else {
            *(*to)++ = (char)c;
        }
    }
}

const char *proxy_location(struct arena *mem, struct str prefix, struct str path, uint16_t port,
                           struct str location)
{
    struct str meant = {0}, rest, tail;
    char *out, *to, *floor;

    if (!mean(mem, path, port, location, &meant))
        return NULL;
    out = to = arena_alloc(mem, prefix.n + 3 * meant.n + 2);
    memcpy(to, prefix.p, prefix.n);
    floor = to += prefix.n;
    rest = (struct str){meant.p, span(meant, "?#")};
    tail = behind(meant, rest.n);
    rest = behind(rest, 1); /* its slash */
    for (bool last = false; !last;) {
        struct str segment;

        last = memchr(rest.p, '/', rest.n) == NULL;
        segment = str_cut(&rest, '/');
        switch (dots(segment)) {
        case 2:
            while (to > floor && *--to != '/')
                continue;
            break;
        case 1:
            break;
        default:
            if (!segment.n && !last)
                continue; /* an empty one */
            *to++ = '/';
            add_plain(&to, segment);
            continue;
        }
        if (last)
            *to++ = '/';
    }
    if (to == floor)
        *to++ = '/';
    add_plain(&to, tail);
    *to = '\0';
    return out;
}

/* ---- and back ---- */

static void put(struct call *call, struct str name, struct str value)
{
    if (!call->extra)
        call->extra = arena_array(&call->mem, struct http_header, CALL_HEADERS_MAX);
    call->extra[call->extra_n++] =
        (struct http_header){arena_str(&call->mem, name), arena_str(&call->mem, value)};
}

static bool is_shown(struct str name)
{
    return is_one_of(name, shown, COUNT(shown)) ||
           (begins(name, "x-") && !is_one_of(name, own, COUNT(own)));
}

/* Whoever follows a redirect with our token must not be led to us; without one there is nothing to
 * be had. */
static void put_location(struct call *call, struct str location, uint16_t port)
{
    const char *path =
        proxy_location(&call->mem, call->passed->prefix, call->passed->path, port, location);

    if (path)
        put(call, STR_LIT("location"), str_of(path));
    else if (call->route->preview && (begins(location, "http://") || begins(location, "https://")))
        put(call, STR_LIT("location"), location);
}

void proxy_answer(struct call *call, const struct http_head *head, uint16_t port)
{
    bool is_socket = head->status == 101;
    struct str type = http_find(head, "content-type");

    call->type = type.p ? arena_text(&call->mem, type) : "application/octet-stream";
    for (size_t i = 0; i < head->header_count; i++) {
        struct str name = head->headers[i].name, value = head->headers[i].value;

        if (is_socket ? is_one_of(name, of_socket, COUNT(of_socket)) : is_shown(name))
            put(call, name, value);
        else if (!is_socket && http_name_is(name, "location"))
            put_location(call, value, port);
    }
    if (is_socket) {
        put(call, STR_LIT("upgrade"), STR_LIT("websocket"));
        return;
    }
    put(call, STR_LIT("content-security-policy"), STR_LIT(PAGE_WALLS));
    put(call, STR_LIT("x-content-type-options"), STR_LIT("nosniff"));
    put(call, STR_LIT("referrer-policy"), STR_LIT("no-referrer"));
    /* Its pages have an origin of their own, so that what they fetch here comes from another one.
     */
    if (call->route->preview)
        put(call, STR_LIT("access-control-allow-origin"), STR_LIT("*"));
}
