/* SPDX-License-Identifier: Apache-2.0 */

/* Server-sent events, as the HTML standard frames them: a line ends at LF, CR or both, so each
 * of them in the data begins another "data:" line. */

#include "lib/http/http.h"

#include <string.h>

static bool is_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '\n' || s.p[i] == '\r' || s.p[i] == '\0')
            return false;
    return s.n <= HTTP_SSE_NAME_MAX;
}

static int write_field(const char *field, struct str value, struct buf *out, struct err *err)
{
    if (buf_add_text(out, field, err) < 0 || buf_add(out, ": ", 2, err) < 0 ||
        buf_add_str(out, value, err) < 0)
        return -1;
    return buf_add_byte(out, '\n', err);
}

static struct str cut_line(struct str *rest, bool *more)
{
    size_t n = 0;
    struct str line;

    while (n < rest->n && rest->p[n] != '\n' && rest->p[n] != '\r')
        n++;
    line = (struct str){rest->p, n};
    *more = n < rest->n;
    if (n + 1 < rest->n && rest->p[n] == '\r' && rest->p[n + 1] == '\n')
        n++;
    n += *more ? 1 : 0;
    *rest = (struct str){rest->p + n, rest->n - n};
    return line;
}

static int write_data(struct str data, struct buf *out, struct err *err)
{
    bool more = true;

    while (more)
        if (write_field("data", cut_line(&data, &more), out, err) < 0)
            return -1;
    return 0;
}

int http_sse_write(struct str event, struct str id, struct str data, struct buf *out,
                   struct err *err)
{
    size_t before = out->n;

    if (!is_name(event) || !is_name(id))
        return err_set(err, ERR_INVALID, "an event's name or id is too long or has a line end");
    if ((event.n > 0 && write_field("event", event, out, err) < 0) ||
        (id.n > 0 && write_field("id", id, out, err) < 0) || write_data(data, out, err) < 0 ||
        buf_add_byte(out, '\n', err) < 0) {
        out->n = before;
        return -1;
    }
    return 0;
}
