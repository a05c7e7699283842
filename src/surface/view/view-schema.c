/* SPDX-License-Identifier: Apache-2.0 */

/* The shapes of this folder as JSON Schema. */

#include "surface/view/view.h"

#include "lib/json/json.h"

static struct json *typed(struct arena *mem, const char *type)
{
    struct json *schema = json_object(mem);

    json_put_text(mem, schema, "type", type);
    return schema;
}

static struct json *reference(struct arena *mem, const struct shape *shape, const char *prefix)
{
    struct json *schema = json_object(mem);

    json_put_text(mem, schema, "$ref", arena_printf(mem, "%s%s", prefix, shape->name));
    return schema;
}

static struct json *nullable(struct arena *mem, const char *type)
{
    struct json *schema = json_object(mem), *types = json_array(mem);

    json_push(types, json_text(mem, str_of(type)));
    json_push(types, json_text(mem, STR_LIT("null")));
    json_put(schema, "type", types);
    return schema;
}

static struct json *member_schema(struct arena *mem, const struct shape_member *member,
                                  const char *prefix)
{
    struct json *schema;

    switch (member->kind) {
    case SHAPE_TEXT:
    case SHAPE_BYTES:
        return typed(mem, "string");
    case SHAPE_INT:
        return member->nullable ? nullable(mem, "integer") : typed(mem, "integer");
    case SHAPE_BOOL:
        return typed(mem, "boolean");
    case SHAPE_TEXTS:
        schema = typed(mem, "array");
        json_put(schema, "items", typed(mem, "string"));
        return schema;
    case SHAPE_ONE:
        return reference(mem, member->of, prefix);
    case SHAPE_LIST:
        schema = typed(mem, "array");
        json_put(schema, "items", reference(mem, member->of, prefix));
        return schema;
    case SHAPE_MAP:
        schema = typed(mem, "object");
        json_put(schema, "additionalProperties", reference(mem, member->of, prefix));
        return schema;
    case SHAPE_ANY:
    case SHAPE_ALSO:
    case SHAPE_END:
        break;
    }
    return json_object(mem);
}

static void add_members(struct arena *mem, const struct shape *shape, const char *prefix,
                        struct json *members, struct json *required)
{
    for (const struct shape_member *member = shape->members; member->kind != SHAPE_END; member++) {
        if (member->kind == SHAPE_ALSO) {
            add_members(mem, member->of, prefix, members, required);
            continue;
        }
        json_put(members, member->name, member_schema(mem, member, prefix));
        if (member->kind == SHAPE_BYTES) {
            struct json *encoded = typed(mem, "string");

            json_put_text(mem, encoded, "contentEncoding", "base64");
            json_put(members, arena_printf(mem, "%s_b64", member->name), encoded);
        } else if (!member->optional) {
            json_push(required, json_text(mem, str_of(member->name)));
        }
    }
}

struct json *view_schema(struct arena *mem, const struct shape *shape, const char *prefix)
{
    struct json *schema = typed(mem, "object");
    struct json *members = json_object(mem), *required = json_array(mem);

    add_members(mem, shape, prefix, members, required);
    json_put(schema, "properties", members);
    if (required->n)
        json_put(schema, "required", required);
    return schema;
}
