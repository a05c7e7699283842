/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/image/scrub-private.h"

#include "lib/base/attrs.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"

#include <string.h>

const char *scrub_rule_name(size_t rule)
{
    static const char *const names[] = {
#define X(id, name) name,
        SCRUB_RULE_TABLE(X)
#undef X
    };

    return rule < COUNT(names) ? names[rule] : "unknown";
}

static void drop(struct scrub_result *result, enum scrub_rule rule)
{
    memset(result->counts, 0, sizeof result->counts);
    result->counts[rule] = 1;
    result->verdict = SCRUB_DROP;
}

static void keep_or_replace(struct str bytes, const struct buf *out, struct scrub_result *result)
{
    result->verdict = str_eq(bytes, buf_str(out)) ? SCRUB_KEEP : SCRUB_REPLACE;
}

/* ---- plain texts and settings ---- */

static void scrub_plain(struct str bytes, bool settings, struct buf *out,
                        struct scrub_result *result)
{
    AUTO_BUF struct buf first = BUF(2 * SCRUB_TEXT_MAX);
    AUTO_BUF struct buf second = BUF(2 * SCRUB_TEXT_MAX);
    struct err ignored;

    if (!settings) {
        if (scrub_shapes(bytes, out, result->counts, &ignored) < 0)
            drop(result, SCRUB_TOO_LARGE);
        else
            keep_or_replace(bytes, out, result);
        return;
    }
    if (scrub_settings(bytes, &first, result->counts, &ignored) < 0 ||
        scrub_shapes(buf_str(&first), &second, result->counts, &ignored) < 0 ||
        scrub_urls(buf_str(&second), out, result->counts, &ignored) < 0)
        drop(result, SCRUB_TOO_LARGE);
    else
        keep_or_replace(bytes, out, result);
}

/* ---- documents ---- */

/* Not what its name says: kept as it is when nothing in it rings a bell. */
static void judge_unread(struct str bytes, struct scrub_result *result)
{
    if (scrub_is_suspicious(bytes))
        drop(result, SCRUB_UNREADABLE);
    else
        result->verdict = SCRUB_KEEP;
}

static void finish_tree(enum scrub_tree_end end, struct str bytes, struct scrub_result *result)
{
    switch (end) {
    case SCRUB_TREE_UNREAD:
        judge_unread(bytes, result);
        return;
    case SCRUB_TREE_CLEAN:
        result->verdict = SCRUB_KEEP;
        return;
    case SCRUB_TREE_CHANGED:
        result->verdict = SCRUB_REPLACE;
        return;
    case SCRUB_TREE_TOO_LARGE:
        drop(result, SCRUB_TOO_LARGE);
        return;
    }
}

/* Comments are in no tree: what is in them goes in place, and the rest has to stay readable. */
static void scrub_yaml(struct str bytes, struct buf *out, struct scrub_result *result)
{
    const struct scrub_tree_options options = {.yaml = true};
    enum scrub_tree_end end = scrub_tree(bytes, &options, out, result->counts);

    finish_tree(end, bytes, result);
    if (result->verdict != SCRUB_KEEP || end != SCRUB_TREE_CLEAN)
        return;
    scrub_plain(bytes, false, out, result);
}

static int scrub_line(struct str line, struct buf *out, struct scrub_result *result,
                      struct err *err)
{
    const struct scrub_tree_options options = {.one_line = true};
    AUTO_BUF struct buf cleaned = BUF(2 * SCRUB_TEXT_MAX);

    switch (scrub_tree(line, &options, &cleaned, result->counts)) {
    case SCRUB_TREE_UNREAD:
        if (scrub_is_suspicious(line))
            return err_set(err, ERR_INVALID, "a line that cannot be read");
        break;
    case SCRUB_TREE_CLEAN:
        break;
    case SCRUB_TREE_CHANGED:
        return buf_add_str(out, buf_str(&cleaned), err);
    case SCRUB_TREE_TOO_LARGE:
        return err_set(err, ERR_LIMIT, "a line that is too long");
    }
    return buf_add_str(out, line, err);
}

static void scrub_json_lines(struct str bytes, struct buf *out, struct scrub_result *result)
{
    struct str rest = bytes;
    struct err err;

    while (rest.n) {
        bool ended = memchr(rest.p, '\n', rest.n) != NULL;
        struct str line = str_cut(&rest, '\n');

        if (scrub_line(line, out, result, &err) < 0 ||
            (ended && buf_add_byte(out, '\n', &err) < 0)) {
            drop(result, err.code == ERR_LIMIT ? SCRUB_TOO_LARGE : SCRUB_UNREADABLE);
            return;
        }
    }
    keep_or_replace(bytes, out, result);
}

static void scrub_json(struct str path, struct str bytes, struct buf *out,
                       struct scrub_result *result)
{
    const struct scrub_tree_options options = {.auths = scrub_has_auths(path)};

    finish_tree(scrub_tree(bytes, &options, out, result->counts), bytes, result);
}

static bool looks_like_json(struct str bytes)
{
    size_t i = 0;

    while (i < bytes.n && strchr(" \t\r\n", bytes.p[i]) && bytes.p[i])
        i++;
    return i < bytes.n && (bytes.p[i] == '{' || bytes.p[i] == '[');
}

/* Names that say nothing about the kind: tried as JSON when it begins so. */
static void scrub_any(struct str path, struct str bytes, bool settings, struct buf *out,
                      struct scrub_result *result)
{
    const struct scrub_tree_options options = {.auths = scrub_has_auths(path)};
    enum scrub_tree_end end = SCRUB_TREE_UNREAD;

    if (looks_like_json(bytes))
        end = scrub_tree(bytes, &options, out, result->counts);
    if (end == SCRUB_TREE_UNREAD)
        scrub_plain(bytes, settings, out, result);
    else
        finish_tree(end, bytes, result);
}

/* Their names are those of packages; only when a secret is in it the rest is looked at too. */
static void scrub_lock(struct str path, struct str bytes, struct buf *out,
                       struct scrub_result *result)
{
    if (!scrub_has_secret(bytes))
        result->verdict = SCRUB_KEEP;
    else if (str_ends(path, ".json"))
        scrub_json(path, bytes, out, result);
    else
        scrub_plain(bytes, true, out, result);
}

/* ---- binary files ---- */

/* UTF-16 has a NUL in every other place: looked at without them. */
static bool has_hidden_text(struct str bytes)
{
    AUTO_FREE char *plain = NULL;
    size_t n = 0;

    if (bytes.n < 2 || (memcmp(bytes.p, "\xff\xfe", 2) != 0 && memcmp(bytes.p, "\xfe\xff", 2) != 0))
        return false;
    plain = xmalloc(bytes.n);
    for (size_t i = 2; i < bytes.n; i++)
        if (bytes.p[i])
            plain[n++] = bytes.p[i];
    return scrub_is_suspicious((struct str){plain, n});
}

static void scrub_binary(struct str bytes, struct scrub_result *result)
{
    struct scrub_hit hit;

    result->verdict = SCRUB_KEEP;
    if (scrub_next(bytes, 0, true, &hit))
        drop(result, hit.rule);
    else if (has_hidden_text(bytes))
        drop(result, SCRUB_UNREADABLE);
}

/* ---- all ---- */

static void scrub_by_kind(struct str path, struct str bytes, struct buf *out,
                          struct scrub_result *result)
{
    switch (scrub_kind_of(path)) {
    case SCRUB_KIND_TEXT:
        scrub_any(path, bytes, false, out, result);
        return;
    case SCRUB_KIND_SETTINGS:
        scrub_any(path, bytes, true, out, result);
        return;
    case SCRUB_KIND_JSON:
        scrub_json(path, bytes, out, result);
        return;
    case SCRUB_KIND_JSON_LINES:
        scrub_json_lines(bytes, out, result);
        return;
    case SCRUB_KIND_YAML:
        scrub_yaml(bytes, out, result);
        return;
    case SCRUB_KIND_LOCK:
        scrub_lock(path, bytes, out, result);
        return;
    }
}

void scrub(struct str path, struct str bytes, struct buf *out, struct scrub_result *result)
{
    *result = (struct scrub_result){.verdict = SCRUB_DROP};
    buf_clear(out);
    if (bytes.n > SCRUB_TEXT_MAX) {
        drop(result, SCRUB_TOO_LARGE);
        return;
    }
    if (memchr(bytes.p, '\0', bytes.n)) {
        scrub_binary(bytes, result);
        return;
    }
    scrub_by_kind(path, bytes, out, result);
    /* What was put together anew is looked at once more. */
    if (result->verdict == SCRUB_REPLACE &&
        scrub_next(buf_str(out), 0, false, &(struct scrub_hit){0}))
        drop(result, SCRUB_UNREADABLE);
    if (result->verdict == SCRUB_KEEP)
        memset(result->counts, 0, sizeof result->counts);
}
