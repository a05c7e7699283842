/* SPDX-License-Identifier: Apache-2.0 */

/* multipart/form-data.
 *
 *     body      = [CRLF] "--" boundary CRLF part *( delimiter CRLF part ) delimiter "--" rest
 *     delimiter = CRLF "--" boundary
 *     part      = 1*( header CRLF ) CRLF content
 *
 * CR stands in the delimiter only at its start, so when a match breaks off, what had matched is
 * content and the search starts anew at the byte that broke it. Those bytes are the delimiter's
 * own first ones, which is where they are taken from when the input that had them is gone. */

#include "lib/http/http-multipart.h"

#include <string.h>

#include "lib/http/chars-private.h"

enum state {
    STATE_START,
    STATE_AFTER, /* behind a delimiter */
    STATE_AFTER_LF,
    STATE_AFTER_DASH,
    STATE_HEAD,
    STATE_CONTENT,
    STATE_END,
};

/* ---- parameters: ; name=value, ; name="value" ---- */

/* Reads a quoted string, without its quotes, over the place where it stands. A backslash escapes
 * only a quote or a backslash: some senders put whole Windows paths there. */
static int read_quoted(char *text, size_t n, size_t *used, struct str *out)
{
    size_t to = 0;

    for (size_t i = 1; i < n; i++) {
        if (text[i] == '"') {
            *used = i + 1;
            *out = (struct str){text, to};
            return 0;
        }
        if (text[i] == '\\' && i + 1 < n && (text[i + 1] == '"' || text[i + 1] == '\\'))
            i++;
        text[to++] = text[i];
    }
    return -1;
}

static size_t skip_blanks(const char *text, size_t n)
{
    size_t i = 0;

    while (i < n && (text[i] == ' ' || text[i] == '\t'))
        i++;
    return i;
}

/* 1: a parameter, 0: the end, -1: malformed. The text is consumed and overwritten. */
static int next_parameter(char **text, size_t *n, struct http_header *out)
{
    size_t i = skip_blanks(*text, *n);
    size_t used = 0;
    size_t name;

    if (i == *n)
        return 0;
    if ((*text)[i++] != ';')
        return -1;
    i += skip_blanks(*text + i, *n - i);
    name = http_span(*text + i, *n - i, HTTP_C_TOKEN);
    out->name = (struct str){*text + i, name};
    i += name;
    if (name == 0 || i == *n || (*text)[i++] != '=')
        return -1;
    if (i < *n && (*text)[i] == '"') {
        if (read_quoted(*text + i, *n - i, &used, &out->value) < 0)
            return -1;
    } else {
        used = http_span(*text + i, *n - i, HTTP_C_TOKEN);
        out->value = (struct str){*text + i, used};
        if (used == 0)
            return -1;
    }
    *text += i + used;
    *n -= i + used;
    return 1;
}

/* ---- the boundary ---- */

static bool is_boundary(struct str s)
{
    static const char marks[] = "'()+_,-./:=? ";

    if (s.n == 0 || s.n > HTTP_BOUNDARY_MAX || s.p[s.n - 1] == ' ')
        return false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              memchr(marks, c, sizeof(marks) - 1) != NULL))
            return false;
    }
    return true;
}

static void set_delimiter(struct http_multipart *m, struct str boundary)
{
    memcpy(m->delimiter, "\r\n--", 4);
    memcpy(m->delimiter + 4, boundary.p, boundary.n);
    m->delimiter_length = 4 + boundary.n;
}

int http_multipart_init(struct http_multipart *m, struct str content_type)
{
    static const char type[] = "multipart/form-data";
    size_t skip = sizeof(type) - 1;
    struct http_header parameter;
    char *text = m->head; /* free until the first part */
    size_t n;
    int found;

    memset(m, 0, offsetof(struct http_multipart, head));
    if (content_type.n < skip || content_type.n > sizeof(m->head) ||
        !http_name_is((struct str){content_type.p, skip}, type))
        return -1;
    n = content_type.n - skip;
    memcpy(text, content_type.p + skip, n);
    while ((found = next_parameter(&text, &n, &parameter)) == 1) {
        if (!http_name_is(parameter.name, "boundary"))
            continue;
        if (m->delimiter_length > 0 || !is_boundary(parameter.value))
            return -1;
        set_delimiter(m, parameter.value);
    }
    return found == 0 && m->delimiter_length > 0 ? 0 : -1;
}

/* ---- heads of parts ---- */

static int set_once(struct str *to, struct str value)
{
    if (to->p != NULL || value.n > HTTP_PART_NAME_MAX)
        return -1;
    *to = value;
    return 0;
}

static int read_disposition(char *text, size_t n, struct http_part *part)
{
    static const char kind[] = "form-data";
    size_t skip = sizeof(kind) - 1;
    struct http_header parameter;
    int found;

    if (n < skip || !http_name_is((struct str){text, skip}, kind))
        return -1;
    text += skip;
    n -= skip;
    while ((found = next_parameter(&text, &n, &parameter)) == 1) {
        if (http_name_is(parameter.name, "name") && set_once(&part->name, parameter.value) < 0)
            return -1;
        if (http_name_is(parameter.name, "filename") &&
            set_once(&part->filename, parameter.value) < 0)
            return -1;
    }
    return found == 0 && part->name.p != NULL ? 0 : -1;
}

static int read_part_header(char *line, size_t n, struct http_part *part)
{
    size_t name = http_span(line, n, HTTP_C_TOKEN);
    size_t at = name + 1;

    if (name == 0 || name >= n || line[name] != ':' ||
        http_span(line + at, n - at, HTTP_C_VALUE) != n - at)
        return -1;
    at += skip_blanks(line + at, n - at);
    if (http_name_is((struct str){line, name}, "content-disposition"))
        return part->name.p == NULL ? read_disposition(line + at, n - at, part) : -1;
    if (http_name_is((struct str){line, name}, "content-type"))
        return set_once(&part->type, str_trim((struct str){line + at, n - at}));
    return 0;
}

static int read_part_head(struct http_multipart *m, struct http_part *part)
{
    char *line = m->head;
    char *end = m->head + m->head_length - 2; /* before the empty line's CR */

    *part = (struct http_part){
        {NULL, 0},
        {NULL, 0},
        {NULL, 0}
    };
    while (line < end) {
        char *lf = memchr(line, '\n', (size_t)(end - line));

        if (lf == NULL || lf == line || lf[-1] != '\r' ||
            read_part_header(line, (size_t)(lf - 1 - line), part) < 0)
            return -1;
        line = lf + 1;
    }
    return part->name.p != NULL ? 0 : -1;
}

/* ---- events ---- */

static enum http_multipart_event refuse(struct http_multipart *m, enum http_fault fault)
{
    m->fault = fault;
    return HTTP_MULTIPART_REFUSED;
}

static void skip(struct str *in, size_t n)
{
    in->p += n;
    in->n -= n;
}

/* Up to the first delimiter, which has no line before it. */
static enum http_multipart_event take_start(struct http_multipart *m, struct str *in)
{
    char c = *in->p;

    if (m->matched == 0)
        m->matched = c == '-' ? 2 : 0;
    if (c != m->delimiter[m->matched])
        return refuse(m, HTTP_FAULT_MULTIPART);
    skip(in, 1);
    if (++m->matched == m->delimiter_length) {
        m->matched = 0;
        m->state = STATE_AFTER;
    }
    return HTTP_MULTIPART_MORE;
}

static enum http_multipart_event take_after(struct http_multipart *m, struct str *in)
{
    char c = *in->p;

    if (m->state == STATE_AFTER && c == '\r')
        m->state = STATE_AFTER_LF;
    else if (m->state == STATE_AFTER && c == '-')
        m->state = STATE_AFTER_DASH;
    else if (m->state == STATE_AFTER_LF && c == '\n')
        m->state = STATE_HEAD;
    else if (m->state == STATE_AFTER_DASH && c == '-')
        m->state = STATE_END;
    else
        return refuse(m, HTTP_FAULT_MULTIPART);
    skip(in, 1);
    if (m->state == STATE_HEAD) {
        m->head_length = 0;
        if (++m->parts > HTTP_PARTS_MAX)
            return refuse(m, HTTP_FAULT_MULTIPART_TOO_LARGE);
    }
    return m->state == STATE_END ? HTTP_MULTIPART_END : HTTP_MULTIPART_MORE;
}

static enum http_multipart_event take_head(struct http_multipart *m, struct str *in,
                                           struct http_part *part)
{
    size_t n = m->head_length;

    if (n == sizeof(m->head))
        return refuse(m, HTTP_FAULT_MULTIPART_TOO_LARGE);
    m->head[n++] = *in->p;
    m->head_length = n;
    skip(in, 1);
    if (n < 4 || memcmp(m->head + n - 4, "\r\n\r\n", 4) != 0)
        return HTTP_MULTIPART_MORE;
    if (read_part_head(m, part) < 0)
        return refuse(m, HTTP_FAULT_MULTIPART);
    m->state = STATE_CONTENT;
    m->matched = 0;
    return HTTP_MULTIPART_PART;
}

/* Goes on matching the delimiter at the start of *in. */
static enum http_multipart_event take_match(struct http_multipart *m, struct str *in,
                                            struct str *data)
{
    while (in->n > 0 && m->matched < m->delimiter_length && *in->p == m->delimiter[m->matched]) {
        m->matched++;
        skip(in, 1);
    }
    if (m->matched == m->delimiter_length) {
        m->matched = 0;
        m->state = STATE_AFTER;
        return HTTP_MULTIPART_PART_END;
    }
    if (in->n == 0)
        return HTTP_MULTIPART_MORE;
    *data = (struct str){m->delimiter, m->matched};
    m->matched = 0;
    return HTTP_MULTIPART_DATA;
}

static enum http_multipart_event take_content(struct http_multipart *m, struct str *in,
                                              struct str *data)
{
    const char *cr;

    if (m->matched > 0 || *in->p == '\r')
        return take_match(m, in, data);
    cr = memchr(in->p, '\r', in->n);
    *data = (struct str){in->p, cr ? (size_t)(cr - in->p) : in->n};
    skip(in, data->n);
    return HTTP_MULTIPART_DATA;
}

static enum http_multipart_event take(struct http_multipart *m, struct str *in,
                                      struct http_part *part, struct str *data)
{
    switch ((enum state)m->state) {
    case STATE_START:
        return take_start(m, in);
    case STATE_AFTER:
    case STATE_AFTER_LF:
    case STATE_AFTER_DASH:
        return take_after(m, in);
    case STATE_HEAD:
        return take_head(m, in, part);
    case STATE_CONTENT:
        return take_content(m, in, data);
    case STATE_END:
        skip(in, in->n);
        break;
    }
    return HTTP_MULTIPART_MORE;
}

enum http_multipart_event http_multipart_next(struct http_multipart *m, struct str *in,
                                              struct http_part *part, struct str *data)
{
    enum http_multipart_event event = HTTP_MULTIPART_MORE;

    if (m->fault != HTTP_NO_FAULT)
        return HTTP_MULTIPART_REFUSED;
    while (in->n > 0 && event == HTTP_MULTIPART_MORE)
        event = take(m, in, part, data);
    return event;
}

int http_multipart_close(struct http_multipart *m)
{
    if (m->fault == HTTP_NO_FAULT && m->state == STATE_END)
        return 0;
    if (m->fault == HTTP_NO_FAULT)
        m->fault = HTTP_FAULT_MULTIPART;
    return -1;
}
