/* SPDX-License-Identifier: Apache-2.0 */

/* JSON in, canonical JSON out: lets other implementations be compared with ours. */

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

#include <stdio.h>

int main(void)
{
    AUTO_ARENA struct arena mem = ARENA(64 * MIB);
    AUTO_BUF struct buf text = BUF(JSON_TEXT_MAX);
    AUTO_BUF struct buf out = BUF(16 * MIB);
    const struct json *value = NULL;
    struct mark where = {0, 0};
    struct err err;

    if (read_all(STDIN_FILENO, &text, &err) < 0 ||
        json_parse(&mem, buf_str(&text), &value, &where, &err) < 0 ||
        json_canonical(value, &out, &err) < 0 || write_all(STDOUT_FILENO, out.p, out.n, &err) < 0) {
        (void)fprintf(stderr, "%u:%u: %s\n", where.line, where.column, err.text);
        return 1;
    }
    return 0;
}
