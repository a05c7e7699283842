/* SPDX-License-Identifier: Apache-2.0 */

/* JSON and YAML, read whole and written again as JSON when something in it had to go. */

#include "cmd/image/scrub-private.h"

#include "lib/base/limits.h"
#include "lib/json/json.h"

#include <string.h>

struct tree {
    struct arena *mem;
    uint64_t *counts;
    bool changed;
    bool too_large;
};

static void replace_with(struct tree *t, struct json *node, struct str text)
{
    node->kind = JSON_STRING;
    node->text = arena_str(t->mem, text);
    node->first = node->last = NULL;
    node->n = 0;
    t->changed = true;
}

/* A text with secrets in it, without them. */
static bool clean_text(struct tree *t, struct str *text)
{
    AUTO_BUF struct buf shapes = BUF(2 * SCRUB_TEXT_MAX);
    AUTO_BUF struct buf urls = BUF(2 * SCRUB_TEXT_MAX);
    struct err ignored;

    if (!scrub_has_secret(*text))
        return false;
    if (t->mem->used > IMAGE_MEMORY_MAX / 2 ||
        scrub_shapes(*text, &shapes, t->counts, &ignored) < 0 ||
        scrub_urls(buf_str(&shapes), &urls, t->counts, &ignored) < 0) {
        t->too_large = true;
        return false;
    }
    *text = arena_str(t->mem, buf_str(&urls));
    t->changed = true;
    return true;
}

static bool is_empty(const struct json *node)
{
    switch (node->kind) {
    case JSON_NULL:
    case JSON_BOOL:
        return true;
    case JSON_ARRAY:
    case JSON_OBJECT:
        return node->n == 0;
    case JSON_NUMBER:
        return false;
    case JSON_STRING:
        return scrub_is_harmless(node->text);
    }
    return false;
}

static void walk(struct tree *t, struct json *node, bool packages);

static void walk_member(struct tree *t, struct json *node, bool packages)
{
    enum scrub_rule rule = packages ? SCRUB_RULES : scrub_field(node->key);

    (void)clean_text(t, &node->key);
    /* "x-auth": {…} is a part of a document; the fields in it have names of their own. */
    if (rule == SCRUB_HEADER && node->kind == JSON_OBJECT)
        rule = SCRUB_RULES;
    if (rule == SCRUB_RULES || is_empty(node)) {
        walk(t, node, scrub_names_packages(node->key));
        return;
    }
    t->counts[rule]++;
    replace_with(t, node, STR_LIT(SCRUBBED));
}

static void walk(struct tree *t, struct json *node, bool packages)
{
    switch (node->kind) {
    case JSON_OBJECT:
        for (struct json *child = node->first; child && !t->too_large; child = child->next)
            walk_member(t, child, packages);
        break;
    case JSON_ARRAY:
        for (struct json *child = node->first; child && !t->too_large; child = child->next)
            walk(t, child, false);
        break;
    case JSON_STRING:
        (void)clean_text(t, &node->text);
        break;
    case JSON_NULL:
    case JSON_BOOL:
    case JSON_NUMBER:
        break;
    }
}

/* A section of the document that is a gateway's or a registry's credentials. */
static void cut_section(struct tree *t, struct json *root, const char *name)
{
    struct json *before = NULL;

    if (root->kind != JSON_OBJECT)
        return;
    for (struct json *child = root->first; child; before = child, child = child->next) {
        if (!str_is(child->key, name) ||
            (child->kind != JSON_OBJECT && child->kind != JSON_ARRAY) || !child->n)
            continue;
        *(before ? &before->next : &root->first) = child->next;
        if (root->last == child)
            root->last = before;
        root->n--;
        t->counts[SCRUB_SECTION]++;
        t->changed = true;
        return;
    }
}

static enum scrub_tree_end write_tree(const struct json *root, bool one_line, struct buf *out)
{
    struct err ignored;

    if ((one_line ? json_compact(root, out, &ignored) : json_pretty(root, out, &ignored)) < 0 ||
        (!one_line && buf_add_byte(out, '\n', &ignored) < 0))
        return SCRUB_TREE_TOO_LARGE;
    return SCRUB_TREE_CHANGED;
}

enum scrub_tree_end scrub_tree(struct str text, const struct scrub_tree_options *options,
                               struct buf *out, uint64_t counts[SCRUB_RULES])
{
    AUTO_ARENA struct arena mem = ARENA(IMAGE_MEMORY_MAX);
    struct tree t = {.mem = &mem, .counts = counts};
    const struct json *parsed = NULL;
    struct json *root;
    struct mark where;
    struct err ignored;

    if ((options->yaml ? yaml_parse(&mem, text, &parsed, &where, &ignored)
                       : json_parse(&mem, text, &parsed, &where, &ignored)) < 0)
        return SCRUB_TREE_UNREAD;
    root = (struct json *)(uintptr_t)parsed; /* it is in our own arena */
    cut_section(&t, root, "gateway");
    if (options->auths)
        cut_section(&t, root, "auths");
    walk(&t, root, false);
    if (t.too_large)
        return SCRUB_TREE_TOO_LARGE;
    return t.changed ? write_tree(root, options->one_line, out) : SCRUB_TREE_CLEAN;
}
