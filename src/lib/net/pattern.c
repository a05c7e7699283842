/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/net/addr.h"

#include <string.h>

static bool is_label_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static bool has_star(struct str s)
{
    return memchr(s.p, '*', s.n) != NULL;
}

/* Resolvers take 0x7f.1, 127.1 and 2130706433 for addresses; no name ends in such a label. */
static bool is_numeric_label(struct str label)
{
    if (label.n >= 2 && label.p[0] == '0' && (label.p[1] | 0x20) == 'x')
        return true;
    for (size_t i = 0; i < label.n; i++)
        if (label.p[i] < '0' || label.p[i] > '9')
            return false;
    return true;
}

static const char *label_fault(struct str label, size_t at, bool is_last)
{
    if (label.n == 0)
        return "has an empty label";
    if (label.n > NET_LABEL_BYTES_MAX)
        return "has a label of more than 63 bytes";
    for (size_t i = 0; i < label.n; i++)
        if (!is_label_char(label.p[i]) && label.p[i] != '*')
            return "contains a character that no host name has";
    if (is_last && has_star(label))
        return "has a wildcard in its last label";
    if (is_last && is_numeric_label(label))
        return "is neither a name nor a plain IP address";
    if (memmem(label.p, label.n, "**", 2) && (at > 0 || label.n > 2))
        return "has \"**\" elsewhere than as the whole first label";
    if (at > 0 && has_star(label) && label.n > 1)
        return "has a wildcard in a part of a label that is not the first";
    return NULL;
}

const char *net_pattern_fault(struct str pattern)
{
    struct str rest = pattern;
    size_t plain = 0;
    bool star = false, last = false;

    if (pattern.n == 0)
        return "is empty";
    if (pattern.n > NET_NAME_BYTES_MAX)
        return "is longer than 253 bytes";
    if (str_is(pattern, "*") || str_is(pattern, "**"))
        return "is every host; name one, or a pattern like *.example.com";
    if (pattern.p[pattern.n - 1] == '.')
        return "ends in a dot; leave it away";
    for (size_t at = 0; !last; at++) {
        struct str label = str_cut(&rest, '.');
        const char *fault;

        last = label.p + label.n == pattern.p + pattern.n;
        fault = label_fault(label, at, last);
        if (fault)
            return fault;
        star = star || has_star(label);
        plain += !has_star(label);
    }
    return star && plain < 2 ? "is too broad: at least two labels must be plain, like *.example.com"
                             : NULL;
}

/* One label against a pattern with any number of single stars. */
static bool label_match(struct str pattern, struct str label)
{
    size_t p = 0, t = 0, star = SIZE_MAX, back = 0;

    while (t < label.n) {
        if (p < pattern.n && pattern.p[p] == '*') {
            star = p++;
            back = t;
        } else if (p < pattern.n && pattern.p[p] == label.p[t]) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++back;
        } else {
            return false;
        }
    }
    while (p < pattern.n && pattern.p[p] == '*')
        p++;
    return p == pattern.n;
}

/* The last label and what stands before its dot; false when nothing is left. */
static bool cut_last(struct str *rest, struct str *label)
{
    size_t at = rest->n;

    if (rest->n == 0)
        return false;
    while (at > 0 && rest->p[at - 1] != '.')
        at--;
    *label = (struct str){rest->p + at, rest->n - at};
    rest->n = at ? at - 1 : 0;
    return true;
}

bool net_pattern_match(struct str pattern, struct str name)
{
    struct str want, have;

    while (cut_last(&pattern, &want)) {
        if (!cut_last(&name, &have) || have.n == 0)
            return false;
        if (pattern.n == 0 && str_is(want, "**"))
            return true;
        if (!label_match(want, have))
            return false;
    }
    return name.n == 0;
}
