/* SPDX-License-Identifier: Apache-2.0 */
/* Paths and queries: what is judged is what is sent, so a spelling that somebody else could read as
 * another one is refused instead of rewritten. */
#include "lib/egress/rules-judge.h"

#include <string.h>

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("-._~", c));
}

/* What RFC 3986 lets stand in a segment as it is. ";" is left out: some servers end the segment
 * there, so that "/admin;x" is "/admin" to them. */
static bool is_plain(char c)
{
    return is_unreserved(c) || (c && strchr("!$&'()*+,=:@", c));
}

static const char *read_escape(struct str path, size_t at, struct judged_path *out)
{
    int high = at + 2 < path.n ? hex_value(path.p[at + 1]) : -1;
    int low = at + 2 < path.n ? hex_value(path.p[at + 2]) : -1;
    static const char digits[] = "0123456789ABCDEF";
    unsigned char c;

    if (high < 0 || low < 0)
        return "has a broken percent escape";
    c = (unsigned char)(high << 4 | low);
    if (c < 0x20 || c == 0x7f)
        return "hides a control character";
    if (is_unreserved((char)c))
        return "escapes a character that needs no escape, so that two readers see two paths";
    if (c == '/' || c == '\\')
        out->has_slash = true;
    out->normal[out->n++] = '%';
    out->normal[out->n++] = digits[high];
    out->normal[out->n++] = digits[low];
    out->decoded[out->decoded_n++] = (char)c;
    return NULL;
}

static const char *check_segment(struct str segment, bool is_last)
{
    if (segment.n == 0 && !is_last)
        return "has an empty segment (//)";
    if (str_is(segment, ".") || str_is(segment, ".."))
        return "has a . or .. segment";
    return NULL;
}

static const char *check_segments(struct str path)
{
    struct str rest = {path.p + 1, path.n - 1};

    for (;;) {
        struct str segment = rest, tail = rest;
        bool is_last = !memchr(rest.p, '/', rest.n);
        const char *fault;

        if (!is_last)
            segment = str_cut(&tail, '/');
        fault = check_segment(segment, is_last);
        if (fault || is_last)
            return fault;
        rest = tail;
    }
}

const char *path_read(struct str path, struct judged_path *out)
{
    out->n = out->decoded_n = 0;
    out->has_slash = false;
    if (path.n == 0 || path.p[0] != '/')
        return "does not begin with \"/\"";
    if (path.n > JUDGED_PATH_MAX)
        return "is longer than 4096 bytes";
    for (size_t i = 0; i < path.n; i++) {
        char c = path.p[i];
        const char *fault;

        if (c != '%') {
            if (c != '/' && !is_plain(c))
                return c == ';' ? "has a \";\", which some servers read as the end of a segment"
                                : "has a character that must be percent-encoded";
            out->normal[out->n++] = c;
            out->decoded[out->decoded_n++] = c;
            continue;
        }
        fault = read_escape(path, i, out);
        if (fault)
            return fault;
        i += 2;
    }
    return check_segments(path);
}

const char *query_fault(struct str query)
{
    if (query.n > JUDGED_QUERY_MAX)
        return "is longer than 16384 bytes";
    for (size_t i = 0; i < query.n; i++) {
        unsigned char c = (unsigned char)query.p[i];

        if (c <= 0x20 || c >= 0x7f || c == '#')
            return "has a character that must be percent-encoded";
        if (c == '%' &&
            (i + 2 >= query.n || hex_value(query.p[i + 1]) < 0 || hex_value(query.p[i + 2]) < 0))
            return "has a broken percent escape";
    }
    return NULL;
}
