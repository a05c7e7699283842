/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What both tests read of tests/vectors/approvals. */

#include "test.h"

#include "lib/base/attrs.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

#include <fcntl.h>
#include <stdio.h>

static inline const struct json *read_cases(struct arena *mem, const char *name)
{
    AUTO_BUF struct buf text = BUF(1 * MIB);
    char path[PATH_BYTES_MAX];
    const struct json *root = NULL;
    struct mark where = {0, 0};
    struct err err;

    (void)snprintf(path, sizeof path, "%s/%s", VECTORS, name);
    if (file_read(AT_FDCWD, path, &text, &err) == 0 &&
        json_parse(mem, arena_str(mem, buf_str(&text)), &root, &where, &err) == 0)
        return root;
    test_fail(__FILE__, __LINE__, "%s:%u: %s", path, where.line, err.text);
    return json_array(mem);
}

/* NULL: it has no such member. */
static inline const char *text_in(struct arena *mem, const struct json *object, const char *key)
{
    struct str text;

    return json_is_text(json_get(object, key), &text) ? arena_text(mem, text) : NULL;
}

static inline int64_t number_in(const struct json *object, const char *key)
{
    int64_t number = 0;

    (void)json_is_int(json_get(object, key), &number);
    return number;
}

static inline bool flag_in(const struct json *object, const char *key, bool otherwise)
{
    bool flag = otherwise;

    (void)json_is_bool(json_get(object, key), &flag);
    return flag;
}

static inline struct words words_in(struct arena *mem, const struct json *object, const char *key)
{
    const struct json *list = json_get(object, key);
    const char **v;
    size_t n = 0;

    if (!list)
        return (struct words){0};
    v = arena_array(mem, const char *, list->n + 1);
    json_each(word, list) v[n++] = arena_text(mem, word->text);
    return (struct words){v, n};
}
