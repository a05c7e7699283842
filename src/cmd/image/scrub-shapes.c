/* SPDX-License-Identifier: Apache-2.0 */

/* What a secret looks like when nothing beside it says so: the shapes of lib/shapes, and passwords
 * in URLs. */

#include "cmd/image/scrub-private.h"
#include "lib/shapes/shapes.h"

#include <string.h>

bool scrub_next(struct str text, size_t from, bool binary, struct scrub_hit *out)
{
    static const enum scrub_rule rules[] = {[SHAPE_TOKEN] = SCRUB_TOKEN,
                                            [SHAPE_BEARER] = SCRUB_BEARER,
                                            [SHAPE_PRIVATE_KEY] = SCRUB_PRIVATE_KEY};
    struct shape_hit hit;

    if (!shape_next(text, from, binary, &hit))
        return false;
    *out = (struct scrub_hit){hit.at, hit.n, rules[hit.kind]};
    return true;
}

bool scrub_has_secret(struct str text)
{
    struct scrub_hit hit;

    return scrub_next(text, 0, false, &hit) || scrub_next_url(text, 0, &hit);
}

/* ---- URLs ---- */

static bool is_user(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c && strchr("_-.~+/=%!$&*", c));
}

bool scrub_next_url(struct str text, size_t from, struct scrub_hit *out)
{
    while (from < text.n) {
        const char *mark = memmem(text.p + from, text.n - from, "://", 3);
        size_t at, n = 0;

        if (!mark)
            return false;
        at = (size_t)(mark - text.p) + 3;
        from = at;
        while (at < text.n && text.p[at] != '/' && is_user(text.p[at]))
            at++;
        if (at >= text.n || text.p[at] != ':')
            continue;
        at++;
        /* To the last @ before the path: a password may hold one. */
        for (size_t i = at; i < text.n && text.p[i] > ' ' && !strchr("/\"'`<>", text.p[i]); i++)
            if (text.p[i] == '@')
                n = i - at;
        if (n && !scrub_is_harmless((struct str){text.p + at, n})) {
            *out = (struct scrub_hit){at, n, SCRUB_URL};
            return true;
        }
    }
    return false;
}

/* ---- piece by piece ---- */

static void scan_piece(struct scrub_scan *scan, struct str bytes)
{
    struct scrub_hit hit;

    if (scan->found || !scrub_next(bytes, 0, true, &hit))
        return;
    scan->found = true;
    scan->rule = hit.rule;
}

/* Where two pieces meet is looked at once more, with as much of both as a secret is long. */
void scrub_scan_add(struct scrub_scan *scan, struct str bytes)
{
    size_t head = bytes.n < SCRUB_TAIL_BYTES ? bytes.n : SCRUB_TAIL_BYTES, keep;

    if (scan->found || !bytes.n)
        return;
    memcpy(scan->tail + scan->tail_n, bytes.p, head);
    scan_piece(scan, (struct str){scan->tail, scan->tail_n + head});
    scan_piece(scan, bytes);
    if (head < bytes.n) {
        scan->tail_n = SCRUB_TAIL_BYTES;
        memcpy(scan->tail, bytes.p + bytes.n - SCRUB_TAIL_BYTES, SCRUB_TAIL_BYTES);
        return;
    }
    scan->tail_n += head;
    keep = scan->tail_n < SCRUB_TAIL_BYTES ? scan->tail_n : SCRUB_TAIL_BYTES;
    memmove(scan->tail, scan->tail + scan->tail_n - keep, keep);
    scan->tail_n = keep;
}

bool scrub_scan_end(const struct scrub_scan *scan, enum scrub_rule *rule)
{
    *rule = scan->rule;
    return scan->found;
}
