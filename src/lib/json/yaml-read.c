/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/json/json.h"

#include "lib/base/limits.h"
#include "lib/json/json-private.h"
#include "lib/json/yaml-plain.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

/* libyaml finds the structure; what a scalar means, and what is not accepted at all, is decided
 * here and in yaml-plain.c.
 *
 * A policy is read by people before it is read by us, so whatever lets the two readings differ is
 * refused: characters that break lines for libyaml but not in an editor (or the other way round),
 * anchors and merges that put content where it is not written, tags that change types. */

/* libyaml counts columns in characters, marks count bytes. Events come in the order of the text,
 * so translating one goes on from the one before. */
struct cursor {
    const char *line_start;
    const char *p;
    size_t line;
    size_t column; /* in characters */
};

struct reader {
    struct arena *mem;
    struct str text;
    struct cursor cursor;
    unsigned depth;
    size_t nodes;
    struct mark *where;
    struct err *err;
    yaml_parser_t parser;
};

static void reader_done(struct reader *r)
{
    yaml_parser_delete(&r->parser);
}

#define AUTO_READER __attribute__((cleanup(reader_done)))

#define AUTO_EVENT __attribute__((cleanup(yaml_event_delete)))

static int read_node(struct reader *r, const yaml_event_t *event, struct json **out);

static void rewind_cursor(struct reader *r)
{
    r->cursor = (struct cursor){r->text.p, r->text.p, 0, 0};
}

/* To the start of the line; false when the text ends before it, as libyaml puts the end of a text
 * without a final line feed on a line of its own. */
static bool move_to_line(struct cursor *c, size_t line, const char *end)
{
    while (c->line < line) {
        const char *feed = c->p < end ? memchr(c->p, '\n', (size_t)(end - c->p)) : NULL;

        if (!feed)
            return false;
        c->line_start = c->p = feed + 1;
        c->line++;
        c->column = 0;
    }
    return true;
}

static void move_to_column(struct cursor *c, size_t column, const char *end)
{
    while (c->column < column && c->p < end && *c->p != '\n') {
        do
            c->p++;
        while (c->p < end && ((unsigned char)*c->p & 0xC0) == 0x80);
        c->column++;
    }
}

static struct mark mark_of(struct reader *r, yaml_mark_t at)
{
    struct cursor *c = &r->cursor;
    const char *end = r->text.p + r->text.n;

    if (at.line < c->line || (at.line == c->line && at.column < c->column))
        rewind_cursor(r);
    move_to_column(c, move_to_line(c, at.line, end) ? at.column : SIZE_MAX, end);
    return (struct mark){(unsigned)c->line + 1, (unsigned)(c->p - c->line_start) + 1};
}

static PRINTF(4, 5) int refuse(struct reader *r, yaml_mark_t at, enum err_code code,
                               const char *fmt, ...)
{
    va_list args;
    char text[200];

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    *r->where = mark_of(r, at);
    return err_set(r->err, code, "%s", text);
}

/* A place in bytes, before libyaml has seen anything. */
static int refuse_byte(struct reader *r, size_t offset, const char *text)
{
    struct mark mark = {1, 1};

    for (size_t i = 0; i < offset; i++) {
        mark.column++;
        if (r->text.p[i] == '\n')
            mark = (struct mark){mark.line + 1, 1};
    }
    *r->where = mark;
    return err_set(r->err, ERR_INVALID, "%s", text);
}

static unsigned decode_utf8(const unsigned char *p)
{
    if (p[0] < 0x80)
        return p[0];
    if (p[0] < 0xE0)
        return (p[0] & 0x1FU) << 6 | (p[1] & 0x3FU);
    if (p[0] < 0xF0)
        return (p[0] & 0x0FU) << 12 | (p[1] & 0x3FU) << 6 | (p[2] & 0x3FU);
    return 0x10000; /* nothing up there is refused */
}

static const char *refused_character(unsigned c)
{
    static const char control[] =
        "a control character: write it as an escape in a text in double quotes";
    static const struct {
        unsigned first, last;
        const char *text;
    } refused[] = {
        {0x00,   0x00,   "a NUL character"                                                   },
        {0x01,   0x08,   control                                                             },
        {0x0B,   0x0C,   control                                                             },
        {0x0E,   0x1F,   control                                                             },
        {0x7F,   0x9F,   control                                                             },
        {0x2028, 0x2029, "a line separator: write it as an escape in a text in double quotes"},
        {0xFEFF, 0xFEFF, "a byte order mark: save the text without one"                      },
        {0xFFFE, 0xFFFF, "not a character"                                                   },
    };

    for (size_t i = 0; i < COUNT(refused); i++)
        if (c >= refused[i].first && c <= refused[i].last)
            return refused[i].text;
    return NULL;
}

static int check_characters(struct reader *r)
{
    const unsigned char *p = (const unsigned char *)r->text.p;
    size_t good = str_utf8_prefix(r->text);

    if (good < r->text.n)
        return refuse_byte(r, good, "not UTF-8");
    for (size_t i = 0; i < r->text.n; i++) {
        const char *text;

        if ((p[i] >= 0x20 && p[i] < 0x7F) || (p[i] & 0xC0) == 0x80)
            continue;
        if (p[i] == '\r' && (i + 1 == r->text.n || p[i + 1] != '\n'))
            return refuse_byte(r, i, "a carriage return without a line feed behind it");
        text = refused_character(decode_utf8(p + i));
        if (text)
            return refuse_byte(r, i, text);
    }
    return 0;
}

/* What libyaml says, in words for somebody who writes a file and not a parser. */
static const char *explain_problem(const char *problem, char found)
{
    static const struct {
        const char *problem;
        const char *text;
    } known[] = {
        {"mapping values are not allowed in this context",
         "a ':' is not allowed here: check the indentation, or put the text in quotes"                    },
        {"block sequence entries are not allowed in this context",
         "a list item is not allowed here: start it on a line of its own"                                 },
        {"did not find expected key",                              "expected a key: check the indentation"},
        {"did not find expected '-' indicator",                    "expected '-': check the indentation"  },
        {"could not find expected ':'",                            "expected ':' after the key"           },
        {"did not find expected ',' or ']'",                       "expected ',' or ']'"                  },
        {"did not find expected ',' or '}'",                       "expected ',' or '}'"                  },
        {"did not find expected node content",                     "expected a key or a value"            },
        {"did not find expected <document start>",                 "expected the end of the document"     },
        {"found unexpected end of stream",                         "a text without its closing quote"     },
    };

    for (size_t i = 0; i < COUNT(known); i++)
        if (strcmp(problem, known[i].problem) == 0)
            return known[i].text;
    if (strcmp(problem, "found character that cannot start any token") != 0)
        return problem;
    if (found == '\t')
        return "a tab cannot indent: use blanks";
    return "a text cannot start with this character: put it in quotes";
}

static int refuse_syntax(struct reader *r)
{
    const char *problem = r->parser.problem;
    yaml_mark_t at = r->parser.problem_mark;
    char found = '\0';

    if (r->parser.error == YAML_MEMORY_ERROR || !problem)
        return refuse(r, at, ERR_LIMIT, "not enough memory to read this");
    /* An open quote is noticed at the end, but is wrong where it begins. */
    if (strcmp(problem, "found unexpected end of stream") == 0)
        at = r->parser.context_mark;
    (void)mark_of(r, at);
    if (r->cursor.p < r->text.p + r->text.n)
        found = *r->cursor.p;
    return refuse(r, at, ERR_INVALID, "%s", explain_problem(problem, found));
}

static int next_event(struct reader *r, yaml_event_t *out)
{
    if (!yaml_parser_parse(&r->parser, out))
        return refuse_syntax(r);
    return 0;
}

/* What every node may carry in YAML and none may carry here. */
static int refuse_properties(struct reader *r, const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;

    if (event->type == YAML_ALIAS_EVENT)
        return refuse(r, event->start_mark, ERR_INVALID,
                      "aliases (*name) are not accepted: write the value out");
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    }
    if (anchor)
        return refuse(r, event->start_mark, ERR_INVALID, "anchors (&name) are not accepted");
    if (tag)
        return refuse(r, event->start_mark, ERR_INVALID, "tags (!name) are not accepted");
    return 0;
}

static struct str scalar_text(const yaml_event_t *event)
{
    return (struct str){(const char *)event->data.scalar.value, event->data.scalar.length};
}

static bool is_plain(const yaml_event_t *event)
{
    return event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

static int count_node(struct reader *r, const yaml_event_t *event)
{
    if (++r->nodes > YAML_NODES_MAX)
        return refuse(r, event->start_mark, ERR_LIMIT, "more than %d values", YAML_NODES_MAX);
    return 0;
}

static int check_text(struct reader *r, const yaml_event_t *event)
{
    struct str text = scalar_text(event);

    if (text.n && memchr(text.p, '\0', text.n))
        return refuse(r, event->start_mark, ERR_INVALID, "a NUL character in a text");
    return 0;
}

static int read_scalar(struct reader *r, const yaml_event_t *event, struct json **out)
{
    struct str text = scalar_text(event);

    if (check_text(r, event) < 0)
        return -1;
    if (!is_plain(event)) {
        *out = json_text(r->mem, text);
        return 0;
    }
    if (yaml_plain(r->mem, text, out, r->err) < 0) {
        *r->where = mark_of(r, event->start_mark);
        return -1;
    }
    return 0;
}

static int read_key(struct reader *r, const yaml_event_t *event, struct json *out_member)
{
    struct str text = scalar_text(event);

    if (refuse_properties(r, event) < 0)
        return -1;
    if (event->type != YAML_SCALAR_EVENT)
        return refuse(r, event->start_mark, ERR_INVALID, "a key must be a text");
    if (check_text(r, event) < 0)
        return -1;
    if (is_plain(event) && text.n == 0)
        return refuse(r, event->start_mark, ERR_INVALID, "a ':' without a key before it");
    if (is_plain(event) && str_is(text, "<<"))
        return refuse(r, event->start_mark, ERR_INVALID,
                      "merge keys (<<) are not accepted: write the members out");
    out_member->key = arena_str(r->mem, text);
    out_member->key_mark = mark_of(r, event->start_mark);
    return 0;
}

static int read_member(struct reader *r, const yaml_event_t *key_event, struct json *object)
{
    AUTO_EVENT yaml_event_t event = {0};
    struct json name = {0};
    struct json *value = NULL;

    if (read_key(r, key_event, &name) < 0 || next_event(r, &event) < 0 ||
        read_node(r, &event, &value) < 0)
        return -1;
    value->key = name.key;
    value->key_mark = name.key_mark;
    json_append(object, value);
    return 0;
}

static int read_item(struct reader *r, const yaml_event_t *event, struct json *array)
{
    struct json *item = NULL;

    if (read_node(r, event, &item) < 0)
        return -1;
    json_append(array, item);
    return 0;
}

static int read_items(struct reader *r, struct json *container)
{
    bool object = container->kind == JSON_OBJECT;

    for (;;) {
        AUTO_EVENT yaml_event_t event = {0};

        if (next_event(r, &event) < 0)
            return -1;
        if (event.type == YAML_MAPPING_END_EVENT || event.type == YAML_SEQUENCE_END_EVENT)
            break;
        if ((object ? read_member : read_item)(r, &event, container) < 0)
            return -1;
    }
    return object ? json_members_unique(container, r->where, r->err) : 0;
}

static int read_container(struct reader *r, const yaml_event_t *event, struct json **out)
{
    bool object = event->type == YAML_MAPPING_START_EVENT;
    struct json *container;

    if (r->depth == YAML_DEPTH_MAX)
        return refuse(r, event->start_mark, ERR_LIMIT, "nested deeper than %d levels",
                      YAML_DEPTH_MAX);
    container = json_node(r->mem, object ? JSON_OBJECT : JSON_ARRAY);
    r->depth++;
    if (read_items(r, container) < 0)
        return -1;
    r->depth--;
    *out = container;
    return 0;
}

static int read_node(struct reader *r, const yaml_event_t *event, struct json **out)
{
    struct mark mark;

    if (refuse_properties(r, event) < 0 || count_node(r, event) < 0)
        return -1;
    mark = mark_of(r, event->start_mark);
    if (event->type == YAML_SCALAR_EVENT ? read_scalar(r, event, out) < 0
                                         : read_container(r, event, out) < 0)
        return -1;
    (*out)->mark = mark;
    return 0;
}

static int begin_document(struct reader *r)
{
    AUTO_EVENT yaml_event_t stream = {0};
    AUTO_EVENT yaml_event_t document = {0};

    if (next_event(r, &stream) < 0 || next_event(r, &document) < 0)
        return -1;
    if (document.type != YAML_DOCUMENT_START_EVENT)
        return refuse(r, document.start_mark, ERR_INVALID, "the text is empty");
    if (document.data.document_start.version_directive ||
        document.data.document_start.tag_directives.start !=
            document.data.document_start.tag_directives.end)
        return refuse(r, document.start_mark, ERR_INVALID,
                      "directives (lines that begin with %%) are not accepted");
    return 0;
}

static int end_document(struct reader *r)
{
    AUTO_EVENT yaml_event_t document = {0};
    AUTO_EVENT yaml_event_t stream = {0};

    if (next_event(r, &document) < 0 || next_event(r, &stream) < 0)
        return -1;
    if (stream.type != YAML_STREAM_END_EVENT)
        return refuse(r, stream.start_mark, ERR_INVALID, "a second document: one is accepted");
    return 0;
}

static int read_document(struct reader *r, struct json **out)
{
    AUTO_EVENT yaml_event_t event = {0};

    if (begin_document(r) < 0 || next_event(r, &event) < 0 || read_node(r, &event, out) < 0)
        return -1;
    return end_document(r);
}

int yaml_parse(struct arena *mem, struct str text, const struct json **out, struct mark *where,
               struct err *err)
{
    AUTO_READER struct reader r = {.mem = mem, .text = text, .where = where, .err = err};
    struct json *root = NULL;

    *where = (struct mark){1, 1};
    if (text.n > YAML_TEXT_MAX)
        return err_set(err, ERR_LIMIT, "more than %lu bytes", YAML_TEXT_MAX);
    rewind_cursor(&r);
    if (check_characters(&r) < 0)
        return -1;
    if (!yaml_parser_initialize(&r.parser))
        return err_set(err, ERR_LIMIT, "not enough memory to read this");
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text.p, text.n);
    if (read_document(&r, &root) < 0)
        return -1;
    *out = root;
    return 0;
}
