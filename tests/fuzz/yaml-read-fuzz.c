/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes are read or refused; what is read is a value that JSON can say, with the position of
 * every node inside the text. */

#include "fuzz.h"

#include "lib/base/limits.h"
#include "lib/json/json.h"

#include <stdlib.h>
#include <string.h>

#define MEMORY_MAX (64 * MIB)
#define OUTPUT_MAX (64 * MIB)

static void check_mark(struct mark mark, struct str text)
{
    unsigned line = 1;

    if (mark.line == 0 || mark.column == 0)
        abort();
    while (line < mark.line) {
        const char *feed = text.n ? memchr(text.p, '\n', text.n) : NULL;

        if (!feed)
            abort();
        text = (struct str){feed + 1, text.n - (size_t)(feed + 1 - text.p)};
        line++;
    }
    if (mark.column > str_cut(&text, '\n').n + 1)
        abort();
}

static void check_marks(const struct json *value, struct str text)
{
    check_mark(value->mark, text);
    json_each(item, value)
    {
        if (value->kind == JSON_OBJECT)
            check_mark(item->key_mark, text);
        check_marks(item, text);
    }
}

/* The JSON of it, read back, says the same. */
static void check_json(struct arena *mem, const struct json *value)
{
    AUTO_BUF struct buf written = BUF(OUTPUT_MAX);
    AUTO_BUF struct buf first = BUF(OUTPUT_MAX);
    AUTO_BUF struct buf second = BUF(OUTPUT_MAX);
    const struct json *again = NULL;
    struct mark where;
    struct err err;

    if (json_compact(value, &written, &err) < 0 || json_canonical(value, &first, &err) < 0 ||
        json_parse(mem, buf_str(&written), &again, &where, &err) < 0 ||
        json_canonical(again, &second, &err) < 0 || !str_eq(buf_str(&first), buf_str(&second)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO_ARENA struct arena mem = ARENA(MEMORY_MAX);
    struct str text = {(const char *)bytes, n};
    const struct json *value = NULL;
    struct mark where = {0, 0};
    struct err err;

    if (yaml_parse(&mem, text, &value, &where, &err) < 0) {
        if (!err.text[0] || value)
            abort();
        check_mark(where, text);
        return 0;
    }
    if (n < 4096) /* looking up a line starts from the top each time */
        check_marks(value, text);
    check_json(&mem, value);
    return 0;
}
