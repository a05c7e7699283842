/* SPDX-License-Identifier: Apache-2.0 */

/* The route table as an OpenAPI 3.1 document. */

#include "surface/api/api.h"
#include "surface/api/route.h"

#include <ctype.h>
#include <string.h>

#include "lib/json/json.h"
#include "surface/api/answers.h"
#include "surface/view/view.h"

#define SHAPES "#/components/schemas/"

static struct json *text_schema(struct arena *mem)
{
    struct json *schema = json_object(mem);

    json_put_text(mem, schema, "type", "string");
    return schema;
}

static struct json *parameter(struct arena *mem, const char *name, const char *in, bool required,
                              struct json *schema)
{
    struct json *object = json_object(mem);

    json_put_text(mem, object, "name", name);
    json_put_text(mem, object, "in", in);
    json_put_bool(mem, object, "required", required);
    json_put(object, "schema", schema);
    return object;
}

static struct json *parameters(struct arena *mem, const struct route *route)
{
    struct json *list = json_array(mem);
    struct str rest = str_of(route->path);

    while (rest.n) {
        struct str segment = str_cut(&rest, '/');

        if (segment.n > 2 && segment.p[0] == '{') {
            struct str name = {segment.p + 1, segment.n - 2};

            if (str_ends(name, "..."))
                name.n -= 3;
            json_push(list, parameter(mem, arena_text(mem, name), "path", true, text_schema(mem)));
        }
    }
    if (route->query) {
        struct json *members = NULL;

        json_each(member, fields_schema(mem, route->query)) if (str_is(member->key, "properties"))
            members = (struct json *)(uintptr_t)member;
        for (const struct field *field = route->query; members && field->kind != FIELD_END;
             field++) {
            const struct json *schema = json_get(members, field->name);
            struct json *copy = arena_new(mem, struct json);

            *copy = *schema;
            copy->next = NULL;
            json_push(list, parameter(mem, field->name, "query", field->required, copy));
        }
    }
    if (route->creates)
        json_push(list, parameter(mem, "Idempotency-Key", "header", false, text_schema(mem)));
    return list;
}

static struct json *content(struct arena *mem, const char *type, struct json *schema)
{
    struct json *by_type = json_object(mem), *media = json_object(mem);

    json_put(media, "schema", schema);
    json_put(by_type, type, media);
    return by_type;
}

static struct json *reference(struct arena *mem, const char *to)
{
    struct json *object = json_object(mem);

    json_put_text(mem, object, "$ref", to);
    return object;
}

/* What is not JSON is a text to generators: of anything at all they could not say what comes. */
static struct json *answer_schema(struct arena *mem, const struct answer *answer)
{
    struct json *any;

    if (!answer->shape)
        return text_schema(mem);
    if (*answer->shape)
        return reference(mem, arena_printf(mem, SHAPES "%s", answer->shape));
    any = json_object(mem);
    json_put_text(mem, any, "type", "object");
    json_put_bool(mem, any, "additionalProperties", true); /* else generators take it for empty */
    return any;
}

/* Several types of content may come with one status. */
static void add_answer(struct arena *mem, struct json *all, const struct route *route,
                       const struct answer *answer)
{
    const char *status = arena_printf(mem, "%d", answer->status);
    struct json *good = (struct json *)(uintptr_t)json_get(all, status);
    struct json *media = json_object(mem), *by_type;

    if (!good) {
        good = json_object(mem);
        json_put_text(mem, good, "description", route->answer);
        json_put(all, status, good);
    }
    if (!answer_type(answer))
        return;
    by_type = (struct json *)(uintptr_t)json_get(good, "content");
    if (!by_type) {
        by_type = json_object(mem);
        json_put(good, "content", by_type);
    }
    json_put(media, "schema", answer_schema(mem, answer));
    json_put(by_type, answer_type(answer), media);
}

static struct json *answers_json(struct arena *mem, const struct route *route)
{
    struct json *all = json_object(mem);

    for (const struct answer *answer = answer_next(route->name, NULL); answer;
         answer = answer_next(route->name, answer))
        add_answer(mem, all, route, answer);
    if (!all->n)
        add_answer(mem, all, route, &(struct answer){.status = 200, .shape = ""});
    json_put(all, "default", reference(mem, "#/components/responses/Error"));
    return all;
}

static struct json *operation(struct arena *mem, const struct route *route)
{
    struct json *object = json_object(mem), *list = parameters(mem, route);

    json_put_text(mem, object, "operationId", route->name);
    json_put_text(mem, object, "summary", route->summary);
    if (list->n)
        json_put(object, "parameters", list);
    if (route->fields || route->body == BODY_JSON || route->body == BODY_STREAM ||
        route->body == BODY_FILE) {
        struct json *body = json_object(mem);

        json_put(body, "content",
                 route->fields ? content(mem, "application/json", fields_schema(mem, route->fields))
                               : content(mem,
                                         route->body == BODY_JSON ? "application/json"
                                                                  : "application/octet-stream",
                                         json_object(mem)));
        json_put(object, "requestBody", body);
    }
    json_put(object, "responses", answers_json(mem, route));
    if (route->open)
        json_put(object, "security", json_array(mem));
    if (route->scope)
        json_put_text(mem, object, "x-scope",
                      scope_name((enum scope_bit)__builtin_ctz(route->scope)));
    return object;
}

/* {path...} is {path} there. */
static const char *plain_path(struct arena *mem, const char *path)
{
    char *copy = arena_text(mem, str_of(path));
    char *dots = strstr(copy, "...}");

    if (dots)
        memcpy(dots, "}", 2);
    return copy;
}

static struct json *paths(struct arena *mem)
{
    struct json *all = json_object(mem);

    route_each(route)
    {
        const char *path = plain_path(mem, route->path);
        struct json *item = (struct json *)(uintptr_t)json_get(all, path);
        char *method = arena_text(mem, str_of(http_method_name(route->method)));

        for (char *p = method; *p; p++)
            *p = (char)tolower((unsigned char)*p);
        if (!item) {
            item = json_object(mem);
            json_put(all, path, item);
        }
        json_put(item, method, operation(mem, route));
    }
    return all;
}

static struct json *error_schema(struct arena *mem)
{
    static const char *const texts[] = {"message", "type", "code", "reason_code"};
    struct json *schema = json_object(mem), *members = json_object(mem), *error = json_object(mem),
                *outer = json_object(mem);

    for (size_t i = 0; i < COUNT(texts); i++)
        json_put(members, texts[i], text_schema(mem));
    json_put(members, "details", json_object(mem));
    json_put_text(mem, error, "type", "object");
    json_put(error, "properties", members);
    json_put(outer, "error", error);
    json_put_text(mem, schema, "type", "object");
    json_put(schema, "properties", outer);
    return schema;
}

static struct json *schemas(struct arena *mem)
{
    struct json *all = json_object(mem);

    for (const struct shape *shape = view_shapes; shape->name; shape++)
        json_put(all, shape->name, view_schema(mem, shape, SHAPES));
    return all;
}

static struct json *components(struct arena *mem)
{
    struct json *all = json_object(mem), *responses = json_object(mem), *error = json_object(mem),
                *schemes = json_object(mem), *bearer = json_object(mem);

    json_put_text(mem, error, "description", "What went wrong, and what to do about it.");
    json_put(error, "content", content(mem, "application/json", error_schema(mem)));
    json_put(responses, "Error", error);
    json_put(all, "responses", responses);
    json_put(all, "schemas", schemas(mem));
    json_put_text(mem, bearer, "type", "http");
    json_put_text(mem, bearer, "scheme", "bearer");
    json_put(schemes, "token", bearer);
    json_put(all, "securitySchemes", schemes);
    return all;
}

struct json *api_openapi(struct arena *mem)
{
    struct json *document = json_object(mem), *info = json_object(mem), *security = json_array(mem),
                *token = json_object(mem);

    json_put_text(mem, document, "openapi", "3.1.0");
    json_put_text(mem, info, "title", "Brig");
    json_put_text(mem, info, "version", "1");
    json_put(document, "info", info);
    json_put(token, "token", json_array(mem));
    json_push(security, token);
    json_put(document, "security", security);
    json_put(document, "paths", paths(mem));
    json_put(document, "components", components(mem));
    return document;
}
