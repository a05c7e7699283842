/* SPDX-License-Identifier: Apache-2.0 */

/* The route table as a page to read: docs/api-reference.md. */

#include "surface/api/answers.h"
#include "surface/api/api.h"
#include "surface/api/route.h"

#include <stdio.h>
#include <string.h>

#include "lib/access/access.h"
#include "surface/view/view.h"

static const char head[] =
    "# API reference\n\n"
    "Made of the tables the daemon itself walks; `ninja -C build api-reference-page` writes it anew. "
    "[api.md](api.md) is the introduction.\n\n"
    "Paths in braces are names or ids. Everything but what is marked open needs a token with the scope "
    "that is named. Members that are not marked required may be left out. Errors have the form of "
    "api.md.\n";

static const char *kind_name(const struct field *field)
{
    switch (field->kind) {
    case FIELD_TEXT:
        return "text";
    case FIELD_BYTES:
        return "text, or `_b64`";
    case FIELD_BOOL:
        return "true or false";
    case FIELD_COUNT:
        return "number";
    case FIELD_WORDS:
        return "array of texts";
    case FIELD_MAP:
        return "object of texts";
    case FIELD_OBJECT:
        return "object";
    case FIELD_JSON:
    case FIELD_END:
        break;
    }
    return "anything";
}

static int write_range(const struct field *field, struct buf *out, struct err *err)
{
    if (field->choices)
        return buf_addf(out, err, ": %s", field->choices);
    if (field->kind == FIELD_COUNT && field->max)
        return buf_addf(out, err, ", %llu to %llu", (unsigned long long)field->min,
                        (unsigned long long)field->max);
    if (field->kind == FIELD_COUNT && field->min)
        return buf_addf(out, err, ", %llu or more", (unsigned long long)field->min);
    return 0;
}

static int write_fields(const struct field *fields, const char *within, struct buf *out,
                        struct err *err)
{
    for (const struct field *field = fields; field->kind != FIELD_END; field++) {
        char name[128];

        (void)snprintf(name, sizeof name, "%s%s%s", within, *within ? "." : "", field->name);
        if (buf_addf(out, err, "| `%s` | %s", name, kind_name(field)) < 0 ||
            write_range(field, out, err) < 0 ||
            buf_addf(out, err, " | %s%s%s |\n", field->required ? "required" : "",
                     field->required && field->help ? "; " : "",
                     field->help ? field->help : "") < 0 ||
            (field->kind == FIELD_OBJECT && write_fields(field->members, name, out, err) < 0))
            return -1;
    }
    return 0;
}

static int write_table(const char *title, const struct field *fields, struct buf *out,
                       struct err *err)
{
    if (!fields || fields->kind == FIELD_END)
        return 0;
    if (buf_addf(out, err, "\n| %s | | |\n|---|---|---|\n", title) < 0)
        return -1;
    return write_fields(fields, "", out, err);
}

static int write_answers(const struct route *route, struct buf *out, struct err *err)
{
    if (buf_addf(out, err, "\nAnswers: %s\n", route->answer) < 0)
        return -1;
    for (const struct answer *answer = answer_next(route->name, NULL); answer;
         answer = answer_next(route->name, answer)) {
        const char *type = answer_type(answer);

        if (buf_addf(out, err, "\n- `%d`", answer->status) < 0 ||
            (type && buf_addf(out, err, " `%s`", type) < 0) ||
            (answer->shape && *answer->shape &&
             buf_addf(out, err, " [%s](#shape-%s)", answer->shape, answer->shape) < 0))
            return -1;
    }
    return buf_add_byte(out, '\n', err);
}

static int write_route(const struct route *route, struct buf *out, struct err *err)
{
    const char *method = route->passes ? "any method" : http_method_name(route->method);

    if (buf_addf(out, err, "\n## %s\n\n`%s %s`", route->name, method, route->path) < 0)
        return -1;
    if (route->open && buf_add_text(out, ", open", err) < 0)
        return -1;
    if (route->scope && buf_addf(out, err, ", scope `%s`",
                                 scope_name((enum scope_bit)__builtin_ctz(route->scope))) < 0)
        return -1;
    if (route->creates && buf_add_text(out, ", takes an `Idempotency-Key`", err) < 0)
        return -1;
    if (buf_addf(out, err, "\n\n%s\n", route->summary) < 0 ||
        write_table("query", route->query, out, err) < 0 ||
        write_table(route->body == BODY_SOCKET ? "first message" : "body", route->fields, out,
                    err) < 0)
        return -1;
    if ((route->body == BODY_STREAM || route->body == BODY_FILE) &&
        buf_add_text(out, "\nThe body is bytes.\n", err) < 0)
        return -1;
    return write_answers(route, out, err);
}

/* ---- shapes ---- */

static int write_member(const struct shape_member *member, struct buf *out, struct err *err)
{
    static const char *const kinds[] = {
        [SHAPE_END] = "",         [SHAPE_TEXT] = "text",          [SHAPE_BYTES] = "text, or `_b64`",
        [SHAPE_INT] = "number",   [SHAPE_BOOL] = "true or false", [SHAPE_TEXTS] = "array of texts",
        [SHAPE_ONE] = "",         [SHAPE_LIST] = "array of ",     [SHAPE_MAP] = "object of ",
        [SHAPE_ANY] = "anything", [SHAPE_ALSO] = "all of ",
    };

    if (buf_addf(out, err, "| %s%s%s | %s", *member->name ? "`" : "", member->name,
                 *member->name ? "`" : "", kinds[member->kind]) < 0 ||
        (member->of &&
         buf_addf(out, err, "[%s](#shape-%s)", member->of->name, member->of->name) < 0))
        return -1;
    return buf_addf(out, err, "%s | %s |\n", member->nullable ? " or null" : "",
                    member->optional ? "when there is one" : "");
}

static int write_shape(const struct shape *shape, struct buf *out, struct err *err)
{
    if (buf_addf(out, err, "\n### <a id=\"shape-%s\"></a>%s\n\n| member | | |\n|---|---|---|\n",
                 shape->name, shape->name) < 0)
        return -1;
    for (const struct shape_member *member = shape->members; member->kind != SHAPE_END; member++)
        if (write_member(member, out, err) < 0)
            return -1;
    return 0;
}

int api_reference(struct buf *out, struct err *err)
{
    if (buf_add_text(out, head, err) < 0)
        return -1;
    route_each(route) if (write_route(route, out, err) < 0) return -1;
    if (buf_add_text(out, "\n## Shapes\n", err) < 0)
        return -1;
    for (const struct shape *shape = view_shapes; shape->name; shape++)
        if (write_shape(shape, out, err) < 0)
            return -1;
    return 0;
}
