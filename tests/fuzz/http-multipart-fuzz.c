/* SPDX-License-Identifier: Apache-2.0 */

/* The first line is a content type, the rest a body in parts. Whole or byte by byte: the same
 * parts, the same content, the same fault. */

#include "fuzz.h"

#include <stdlib.h>

#include "lib/base/memory.h"
#include "lib/http/http-multipart.h"

#define TEXT_MAX (4 * MIB)

static void note(struct buf *out, char kind, struct str text)
{
    struct err err;

    if (buf_add_byte(out, kind, &err) < 0 || buf_add_str(out, text, &err) < 0)
        abort();
}

static void note_part(struct buf *out, const struct http_part *part)
{
    if (part->name.p == NULL || part->name.n > HTTP_PART_NAME_MAX)
        abort();
    note(out, 'n', part->name);
    note(out, 'f', part->filename);
    note(out, 't', part->type);
    note(out, 'd', STR_LIT(""));
}

/* Events as text; pieces of content run together. */
static enum http_fault read_parts(struct str type, struct str in, size_t step, struct buf *out)
{
    AUTO_FREE struct http_multipart *m = xcalloc(1, sizeof(*m));
    struct err err;

    if (http_multipart_init(m, type) < 0)
        return HTTP_FAULT_ENCODING;
    for (size_t at = 0; at < in.n && m->fault == HTTP_NO_FAULT; at += step) {
        struct str piece = {in.p + at, in.n - at < step ? in.n - at : step};
        enum http_multipart_event event;
        struct http_part part;
        struct str data;

        while ((event = http_multipart_next(m, &piece, &part, &data)) != HTTP_MULTIPART_MORE &&
               event != HTTP_MULTIPART_REFUSED) {
            if (event == HTTP_MULTIPART_PART)
                note_part(out, &part);
            else if (event == HTTP_MULTIPART_DATA && buf_add_str(out, data, &err) < 0)
                abort();
            else if (event != HTTP_MULTIPART_DATA)
                note(out, event == HTTP_MULTIPART_END ? 'E' : 'e', STR_LIT(""));
        }
    }
    return http_multipart_close(m) < 0 ? m->fault : HTTP_NO_FAULT;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO_BUF struct buf whole = BUF(TEXT_MAX);
    AUTO_BUF struct buf single = BUF(TEXT_MAX);
    struct str body = {(const char *)bytes, n};
    struct str type = str_cut(&body, '\n');

    if (read_parts(type, body, body.n ? body.n : 1, &whole) != read_parts(type, body, 1, &single) ||
        !str_eq(buf_str(&whole), buf_str(&single)))
        abort();
    return 0;
}
