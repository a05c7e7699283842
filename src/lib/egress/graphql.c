/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/egress/graphql.h"

#include "lib/base/attrs.h"

#include <string.h>

enum token {
    TOKEN_END = 0,
    TOKEN_PUNCTUATOR, /* one of !$&()[]{}:=@| */
    TOKEN_SPREAD,     /* ... */
    TOKEN_NAME,
    TOKEN_NUMBER,
    TOKEN_TEXT,
    TOKEN_BAD,
};

/* A member of a root selection: a field, or a fragment by its name. */
struct selected {
    struct str name;
    bool is_fragment;
    struct selected *next;
};

struct selection {
    struct selected *first;
    struct selected *last;
    size_t n;
};

struct fragment {
    struct str name;
    struct selection root;
    bool is_open; /* being expanded: meeting it again is a cycle */
};

struct parser {
    struct arena *mem;
    struct str text;
    size_t at;
    enum token token;
    struct str value; /* of the token */
    unsigned depth;
    const char *fault;
    struct graphql_operation *operations;
    struct selection *roots;
    size_t operation_n;
    struct fragment *fragments;
    size_t fragment_n;
};

static bool fail(struct parser *p, const char *fault)
{
    if (!p->fault)
        p->fault = fault;
    return false;
}

/* ---- tokens ---- */

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char peek(const struct parser *p, size_t ahead)
{
    if (p->at + ahead >= p->text.n)
        return 0;
    return p->text.p[p->at + ahead];
}

static void skip_ignored(struct parser *p)
{
    while (p->at < p->text.n) {
        char c = p->text.p[p->at];

        if (c == '#')
            while (p->at < p->text.n && p->text.p[p->at] != '\n' && p->text.p[p->at] != '\r')
                p->at++;
        else if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',')
            p->at++;
        else
            return;
    }
}

static enum token read_block_text(struct parser *p)
{
    for (p->at += 3; p->at < p->text.n; p->at++) {
        if (p->text.p[p->at] == '\\' && peek(p, 1) == '"' && peek(p, 2) == '"' && peek(p, 3) == '"')
            p->at += 3;
        else if (p->text.p[p->at] == '"' && peek(p, 1) == '"' && peek(p, 2) == '"') {
            p->at += 3;
            return TOKEN_TEXT;
        }
    }
    return TOKEN_BAD;
}

static enum token read_string(struct parser *p)
{
    if (peek(p, 1) == '"' && peek(p, 2) == '"')
        return read_block_text(p);
    for (p->at++; p->at < p->text.n; p->at++) {
        char c = p->text.p[p->at];

        if (c == '\n' || c == '\r')
            return TOKEN_BAD;
        if (c == '"') {
            p->at++;
            return TOKEN_TEXT;
        }
        if (c == '\\')
            p->at++;
    }
    return TOKEN_BAD;
}

static enum token read_number(struct parser *p)
{
    if (peek(p, 0) == '-')
        p->at++;
    if (!is_digit(peek(p, 0)))
        return TOKEN_BAD;
    while (is_digit(peek(p, 0)) || (peek(p, 0) && strchr(".eE+-", peek(p, 0))))
        p->at++;
    return is_name_start(peek(p, 0)) ? TOKEN_BAD : TOKEN_NUMBER;
}

static enum token read_token(struct parser *p)
{
    char c = peek(p, 0);

    if (is_name_start(c)) {
        while (is_name_start(peek(p, 0)) || is_digit(peek(p, 0)))
            p->at++;
        return TOKEN_NAME;
    }
    if (c == '-' || is_digit(c))
        return read_number(p);
    if (c == '"')
        return read_string(p);
    if (c == '.' && peek(p, 1) == '.' && peek(p, 2) == '.') {
        p->at += 3;
        return TOKEN_SPREAD;
    }
    if (c && strchr("!$&()[]{}:=@|", c)) {
        p->at++;
        return TOKEN_PUNCTUATOR;
    }
    return TOKEN_BAD;
}

static void next(struct parser *p)
{
    size_t start;

    skip_ignored(p);
    start = p->at;
    p->token = p->at < p->text.n ? read_token(p) : TOKEN_END;
    p->value = (struct str){p->text.p + start, p->at - start};
    if (p->token == TOKEN_BAD)
        (void)fail(p, "it has a character or a text that GraphQL does not know");
}

static bool is_at(const struct parser *p, char c)
{
    return p->token == TOKEN_PUNCTUATOR && p->value.p[0] == c;
}

static bool take(struct parser *p, char c)
{
    if (!is_at(p, c))
        return fail(p, "it is not a well-formed GraphQL document");
    next(p);
    return true;
}

static bool take_name(struct parser *p, struct str *out)
{
    if (p->token != TOKEN_NAME)
        return fail(p, "it is not a well-formed GraphQL document");
    *out = p->value;
    next(p);
    return true;
}

static bool go_in(struct parser *p)
{
    return ++p->depth <= GRAPHQL_DEPTH_MAX || fail(p, "it is nested too deeply");
}

/* ---- values, arguments, directives: read over ---- */

static bool read_value(struct parser *p);

static bool read_list(struct parser *p)
{
    next(p);
    while (!is_at(p, ']'))
        if (!read_value(p))
            return false;
    next(p);
    return true;
}

/* (a: 1) and {a: 1}. */
static bool read_pairs(struct parser *p, char close)
{
    struct str name;

    next(p);
    while (!is_at(p, close))
        if (!take_name(p, &name) || !take(p, ':') || !read_value(p))
            return false;
    next(p);
    return true;
}

static bool read_value(struct parser *p)
{
    struct str name;
    bool ok = true;

    if (!go_in(p))
        return false;
    if (is_at(p, '$')) {
        next(p);
        ok = take_name(p, &name);
    } else if (is_at(p, '[')) {
        ok = read_list(p);
    } else if (is_at(p, '{')) {
        ok = read_pairs(p, '}');
    } else if (p->token == TOKEN_NAME || p->token == TOKEN_NUMBER || p->token == TOKEN_TEXT) {
        next(p);
    } else {
        ok = fail(p, "it has a value that is none");
    }
    p->depth--;
    return ok;
}

static bool read_directives(struct parser *p)
{
    struct str name;

    while (is_at(p, '@')) {
        next(p);
        if (!take_name(p, &name) || (is_at(p, '(') && !read_pairs(p, ')')))
            return false;
    }
    return true;
}

static bool read_type(struct parser *p)
{
    struct str name;

    if (!go_in(p))
        return false;
    if (is_at(p, '[')) {
        next(p);
        if (!read_type(p) || !take(p, ']'))
            return false;
    } else if (!take_name(p, &name)) {
        return false;
    }
    if (is_at(p, '!'))
        next(p);
    p->depth--;
    return true;
}

static bool read_variables(struct parser *p)
{
    struct str name;

    if (!is_at(p, '('))
        return true;
    next(p);
    while (!is_at(p, ')')) {
        if (!take(p, '$') || !take_name(p, &name) || !take(p, ':') || !read_type(p))
            return false;
        if (is_at(p, '=')) {
            next(p);
            if (!read_value(p))
                return false;
        }
        if (!read_directives(p))
            return false;
    }
    next(p);
    return true;
}

/* ---- selections ---- */

static bool read_selection(struct parser *p, struct selection *root);

static bool keep(struct parser *p, struct selection *root, struct str name, bool is_fragment)
{
    struct selected *selected;

    if (!root)
        return true;
    if (root->n++ == GRAPHQL_FIELDS_MAX)
        return fail(p, "it selects too many fields");
    selected = arena_new(p->mem, struct selected);
    *selected = (struct selected){name, is_fragment, NULL};
    if (root->last)
        root->last->next = selected;
    else
        root->first = selected;
    root->last = selected;
    return true;
}

/* "...name", "... on T {", "... @x {": what an inline one selects belongs to where it stands. */
static bool read_spread(struct parser *p, struct selection *root)
{
    struct str name;

    next(p);
    if (p->token == TOKEN_NAME && !str_is(p->value, "on")) {
        name = p->value;
        next(p);
        return keep(p, root, name, true) && read_directives(p);
    }
    if (p->token == TOKEN_NAME) {
        next(p);
        if (!take_name(p, &name))
            return false;
    }
    return read_directives(p) && read_selection(p, root);
}

static bool read_field(struct parser *p, struct selection *root)
{
    struct str name;

    if (!take_name(p, &name))
        return false;
    if (is_at(p, ':')) { /* that was an alias */
        next(p);
        if (!take_name(p, &name))
            return false;
    }
    if (!keep(p, root, name, false) || (is_at(p, '(') && !read_pairs(p, ')')) ||
        !read_directives(p))
        return false;
    return !is_at(p, '{') || read_selection(p, NULL);
}

static bool read_selection(struct parser *p, struct selection *root)
{
    if (!go_in(p) || !take(p, '{'))
        return false;
    if (is_at(p, '}'))
        return fail(p, "it has an empty selection");
    while (!is_at(p, '}'))
        if (!(p->token == TOKEN_SPREAD ? read_spread(p, root) : read_field(p, root)))
            return false;
    next(p);
    p->depth--;
    return true;
}

/* ---- definitions ---- */

static bool read_operation(struct parser *p)
{
    struct graphql_operation *operation;
    struct selection *root;

    if (p->operation_n == GRAPHQL_OPERATIONS_MAX)
        return fail(p, "it has too many operations");
    operation = &p->operations[p->operation_n];
    root = &p->roots[p->operation_n++];
    operation->type = STR_LIT("query");
    if (is_at(p, '{'))
        return read_selection(p, root);
    operation->type = p->value;
    next(p);
    if (p->token == TOKEN_NAME && !take_name(p, &operation->name))
        return false;
    return read_variables(p) && read_directives(p) && read_selection(p, root);
}

static bool read_fragment(struct parser *p)
{
    struct fragment *fragment;
    struct str type;

    if (p->fragment_n == GRAPHQL_FRAGMENTS_MAX)
        return fail(p, "it has too many fragments");
    fragment = &p->fragments[p->fragment_n++];
    next(p);
    if (!take_name(p, &fragment->name))
        return false;
    if (p->token != TOKEN_NAME || !str_is(p->value, "on"))
        return fail(p, "it has a fragment without a type");
    next(p);
    for (size_t i = 0; i + 1 < p->fragment_n; i++)
        if (str_eq(p->fragments[i].name, fragment->name))
            return fail(p, "it has two fragments of one name");
    return take_name(p, &type) && read_directives(p) && read_selection(p, &fragment->root);
}

static bool read_definition(struct parser *p)
{
    if (p->token == TOKEN_NAME && str_is(p->value, "fragment"))
        return read_fragment(p);
    if (is_at(p, '{') ||
        (p->token == TOKEN_NAME && (str_is(p->value, "query") || str_is(p->value, "mutation") ||
                                    str_is(p->value, "subscription"))))
        return read_operation(p);
    return fail(p, "it has a definition that is neither an operation nor a fragment");
}

/* ---- real fields ---- */

static struct fragment *find_fragment(struct parser *p, struct str name)
{
    for (size_t i = 0; i < p->fragment_n; i++)
        if (str_eq(p->fragments[i].name, name))
            return &p->fragments[i];
    return NULL;
}

struct fields {
    struct str v[GRAPHQL_FIELDS_MAX];
    size_t n;
};

/* Every fragment ends in fields, so their number bounds the work. */
static bool expand(struct parser *p, const struct selection *from, struct fields *out)
{
    for (const struct selected *at = from->first; at; at = at->next) {
        struct fragment *fragment;
        bool ok;

        if (!at->is_fragment) {
            if (out->n == GRAPHQL_FIELDS_MAX)
                return fail(p, "it selects too many fields");
            out->v[out->n++] = at->name;
            continue;
        }
        fragment = find_fragment(p, at->name);
        if (!fragment || fragment->is_open)
            return fail(p, "it uses a fragment that is missing or uses itself");
        fragment->is_open = true;
        ok = expand(p, &fragment->root, out);
        fragment->is_open = false;
        if (!ok)
            return false;
    }
    return true;
}

static void keep_fields(struct parser *p, size_t i)
{
    struct fields fields;

    fields.n = 0;
    if (!expand(p, &p->roots[i], &fields))
        return;
    p->operations[i].fields = arena_array(p->mem, struct str, fields.n);
    p->operations[i].field_n = fields.n;
    memcpy(p->operations[i].fields, fields.v, fields.n * sizeof fields.v[0]);
}

const char *graphql_read(struct arena *mem, struct str text, struct graphql_document *out)
{
    struct parser p = {.mem = mem, .text = text};

    p.operations = arena_array(mem, struct graphql_operation, GRAPHQL_OPERATIONS_MAX);
    p.roots = arena_array(mem, struct selection, GRAPHQL_OPERATIONS_MAX);
    p.fragments = arena_array(mem, struct fragment, GRAPHQL_FRAGMENTS_MAX);
    next(&p);
    while (!p.fault && p.token != TOKEN_END)
        if (!read_definition(&p))
            break;
    if (!p.fault && p.operation_n == 0)
        (void)fail(&p, "it has no operation");
    for (size_t i = 0; !p.fault && i < p.operation_n; i++)
        keep_fields(&p, i);
    *out = (struct graphql_document){p.operations, p.operation_n};
    return p.fault;
}
