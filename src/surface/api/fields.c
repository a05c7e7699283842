/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/api/fields.h"

#include <string.h>

#include "lib/base/text.h"
#include "lib/json/json.h"

#define COUNT_MAX ((UINT64_C(1) << 53) - 1)
#define B64_SUFFIX "_b64"

struct place {
    const struct place *above;
    const char *name;
};

static const char *pointer_to(struct arena *mem, const struct place *place)
{
    return place ? arena_printf(mem, "%s/%s", pointer_to(mem, place->above), place->name) : "";
}

static int wrong(struct arena *mem, const struct place *place, const char *what, struct err *err)
{
    return err_set(err, ERR_INVALID, "%s %s", pointer_to(mem, place), what);
}

static void *at(void *out, const struct field *field)
{
    return (char *)out + field->offset;
}

static bool has_nul(struct str text)
{
    return memchr(text.p, '\0', text.n) != NULL;
}

static bool is_choice(const char *choices, struct str text)
{
    struct str rest = str_of(choices);

    while (rest.n)
        if (str_eq(str_cut(&rest, ' '), text))
            return true;
    return false;
}

/* A text, or the bytes that a text of base64 stands for. */
static bool text_of(struct arena *mem, const struct json *value, bool base64, struct str *out)
{
    struct str text;
    char *decoded;
    size_t n = 0;

    if (!json_is_text(value, &text))
        return false;
    *out = text;
    if (!base64)
        return true;
    decoded = arena_alloc(mem, text.n / 4 * 3 + 1);
    if (!base64_decode(text, decoded, &n))
        return false;
    *out = (struct str){decoded, n};
    return true;
}

static int read_text(struct arena *mem, const struct field *field, const struct place *place,
                     const struct json *value, bool base64, void *out, struct err *err)
{
    struct str text;

    if (!text_of(mem, value, base64, &text) || has_nul(text))
        return wrong(mem, place, "must be a text without NUL", err);
    if (field->max && text.n > field->max)
        return wrong(mem, place,
                     arena_printf(mem, "has more than %llu bytes", (unsigned long long)field->max),
                     err);
    if (field->choices && !is_choice(field->choices, text))
        return wrong(mem, place, arena_printf(mem, "must be one of: %s", field->choices), err);
    *(const char **)at(out, field) = arena_text(mem, text);
    return 0;
}

static int read_bytes(struct arena *mem, const struct field *field, const struct place *place,
                      const struct json *value, bool base64, void *out, struct err *err)
{
    struct str bytes;

    if (!text_of(mem, value, base64, &bytes))
        return wrong(mem, place, base64 ? "must be base64 with padding" : "must be a text", err);
    *(struct str *)at(out, field) = arena_str(mem, bytes);
    return 0;
}

static int read_count(struct arena *mem, const struct field *field, const struct place *place,
                      const struct json *value, void *out, struct err *err)
{
    uint64_t max = field->max ? field->max : COUNT_MAX;
    int64_t number = 0;

    if (!json_is_int(value, &number) || number < 0 || (uint64_t)number < field->min ||
        (uint64_t)number > max)
        return wrong(mem, place,
                     arena_printf(mem, "must be a whole number from %llu to %llu",
                                  (unsigned long long)field->min, (unsigned long long)max),
                     err);
    *(uint64_t *)at(out, field) = (uint64_t)number;
    return 0;
}

static int read_words(struct arena *mem, const struct field *field, const struct place *place,
                      const struct json *value, bool base64, void *out, struct err *err)
{
    bool map = field->kind == FIELD_MAP && !base64;
    const char **words;
    size_t n = 0;

    if (!value || value->kind != (map ? JSON_OBJECT : JSON_ARRAY))
        return wrong(
            mem, place,
            map ? "must be an object whose members are texts" : "must be an array of texts", err);
    if (field->max && value->n > field->max)
        return wrong(mem, place,
                     arena_printf(mem, "has more than %llu items", (unsigned long long)field->max),
                     err);
    words = arena_array(mem, const char *, value->n + 1);
    json_each(item, value)
    {
        struct str text;

        if (!text_of(mem, item, base64, &text) || has_nul(text))
            return wrong(mem, place, "must hold texts without NUL only", err);
        if (field->kind == FIELD_MAP && base64 &&
            (text.n == 0 || text.p[0] == '=' || !memchr(text.p, '=', text.n)))
            return wrong(mem, place, "must hold K=V only", err);
        if (map &&
            (item->key.n == 0 || has_nul(item->key) || memchr(item->key.p, '=', item->key.n)))
            return wrong(mem, place, "has a name that is empty or has = in it", err);
        words[n++] = map ? arena_printf(mem, STR_FMT "=" STR_FMT, STR_ARG(item->key), STR_ARG(text))
                         : arena_text(mem, text);
    }
    *(struct words *)at(out, field) = (struct words){words, n};
    return 0;
}

static int read_object(struct arena *mem, const struct field *fields, const struct place *place,
                       const struct json *object, void *out, struct err *err);

static int read_member(struct arena *mem, const struct field *field, const struct place *place,
                       const struct json *value, bool base64, void *out, struct err *err)
{
    switch (field->kind) {
    case FIELD_TEXT:
        return read_text(mem, field, place, value, base64, out, err);
    case FIELD_BYTES:
        return read_bytes(mem, field, place, value, base64, out, err);
    case FIELD_BOOL:
        if (!json_is_bool(value, at(out, field)))
            return wrong(mem, place, "must be true or false", err);
        return 0;
    case FIELD_COUNT:
        return read_count(mem, field, place, value, out, err);
    case FIELD_WORDS:
    case FIELD_MAP:
        return read_words(mem, field, place, value, base64, out, err);
    case FIELD_OBJECT:
        return read_object(mem, field->members, place, value, out, err);
    case FIELD_JSON:
        *(const struct json **)at(out, field) = value;
        return 0;
    case FIELD_END:
        break;
    }
    return wrong(mem, place, "is of no kind", err);
}

static bool takes_base64(const struct field *field)
{
    return field->kind == FIELD_BYTES || field->raw;
}

static const struct field *field_of(const struct field *fields, struct str name, bool *base64)
{
    *base64 = false;
    for (const struct field *field = fields; field->kind != FIELD_END; field++)
        if (str_is(name, field->name))
            return field;
    if (!str_ends(name, B64_SUFFIX))
        return NULL;
    *base64 = true;
    name.n -= strlen(B64_SUFFIX);
    for (const struct field *field = fields; field->kind != FIELD_END; field++)
        if (takes_base64(field) && str_is(name, field->name))
            return field;
    return NULL;
}

static bool has_member(const struct json *object, const struct field *field)
{
    json_each(member, object)
    {
        struct str name = member->key;

        if (str_is(name, field->name))
            return true;
        if (takes_base64(field) && str_ends(name, B64_SUFFIX) &&
            str_eq((struct str){name.p, name.n - strlen(B64_SUFFIX)}, str_of(field->name)))
            return true;
    }
    return false;
}

static bool is_given(const struct json *object, const char *name)
{
    const struct json *member = json_get(object, name);

    return member && member->kind != JSON_NULL;
}

static int read_object(struct arena *mem, const struct field *fields, const struct place *place,
                       const struct json *object, void *out, struct err *err)
{
    if (object && object->kind != JSON_OBJECT)
        return wrong(mem, place, place ? "must be an object" : "the body must be an object", err);
    for (const struct json *member = object ? object->first : NULL; member; member = member->next) {
        bool base64 = false;
        const struct field *field = field_of(fields, member->key, &base64);
        struct place here = {place, arena_text(mem, member->key)};

        if (!field)
            return wrong(mem, &here, "is not known here", err);
        if (member->kind == JSON_NULL && field->kind != FIELD_JSON)
            continue; /* as good as absent */
        if (base64 && is_given(object, field->name))
            return wrong(mem, &here, "stands beside the same without _b64; give one of them", err);
        if (read_member(mem, field, &here, member, base64, out, err) < 0)
            return -1;
        if (field->given)
            *(bool *)((char *)out + field->given - 1) = true;
    }
    for (const struct field *field = fields; field->kind != FIELD_END; field++) {
        struct place here = {place, field->name};

        if (field->required && (!object || !has_member(object, field)))
            return wrong(mem, &here, "is missing", err);
    }
    return 0;
}

int fields_read(struct arena *mem, const struct field *fields, const struct json *object, void *out,
                struct err *err)
{
    return read_object(mem, fields, NULL, object, out, err);
}

struct json *fields_from_text(struct arena *mem, const struct field *fields, struct str name,
                              struct str text)
{
    bool base64 = false;
    const struct field *field = fields ? field_of(fields, name, &base64) : NULL;
    uint64_t number = 0;

    if (field && field->kind == FIELD_COUNT && str_u64(text, &number) && number <= COUNT_MAX)
        return json_int(mem, (int64_t)number);
    if (field && field->kind == FIELD_BOOL && (str_is(text, "true") || str_is(text, "1")))
        return json_bool(mem, true);
    if (field && field->kind == FIELD_BOOL && (str_is(text, "false") || str_is(text, "0")))
        return json_bool(mem, false);
    return json_text(mem, text);
}

/* ---- the same as a schema ---- */

static struct json *typed(struct arena *mem, const char *type)
{
    struct json *schema = json_object(mem);

    json_put_text(mem, schema, "type", type);
    return schema;
}

static struct json *choices_json(struct arena *mem, const char *choices)
{
    struct json *list = json_array(mem);
    struct str rest = str_of(choices);

    while (rest.n)
        json_push(list, json_text(mem, str_cut(&rest, ' ')));
    return list;
}

static struct json *member_schema(struct arena *mem, const struct field *field)
{
    struct json *schema = NULL;

    switch (field->kind) {
    case FIELD_TEXT:
        schema = typed(mem, "string");
        if (field->max)
            json_put_int(mem, schema, "maxLength", (int64_t)field->max);
        if (field->choices)
            json_put(schema, "enum", choices_json(mem, field->choices));
        break;
    case FIELD_BYTES:
        schema = typed(mem, "string");
        break;
    case FIELD_BOOL:
        schema = typed(mem, "boolean");
        break;
    case FIELD_COUNT:
        schema = typed(mem, "integer");
        json_put_int(mem, schema, "minimum", (int64_t)field->min);
        json_put_int(mem, schema, "maximum", (int64_t)(field->max ? field->max : COUNT_MAX));
        break;
    case FIELD_WORDS:
        schema = typed(mem, "array");
        json_put(schema, "items", typed(mem, "string"));
        if (field->max)
            json_put_int(mem, schema, "maxItems", (int64_t)field->max);
        break;
    case FIELD_MAP:
        schema = typed(mem, "object");
        json_put(schema, "additionalProperties", typed(mem, "string"));
        break;
    case FIELD_OBJECT:
        schema = fields_schema(mem, field->members);
        break;
    case FIELD_JSON:
    case FIELD_END:
        schema = json_object(mem);
        break;
    }
    if (field->help)
        json_put_text(mem, schema, "description", field->help);
    return schema;
}

/* The same member, for bytes that are no text. */
static struct json *base64_schema(struct arena *mem, const struct field *field)
{
    struct json *encoded = typed(mem, "string");
    struct json *list;

    json_put_text(mem, encoded, "contentEncoding", "base64");
    if (field->kind != FIELD_WORDS && field->kind != FIELD_MAP)
        return encoded;
    list = typed(mem, "array");
    json_put(list, "items", encoded);
    return list;
}

struct json *fields_schema(struct arena *mem, const struct field *fields)
{
    struct json *schema = typed(mem, "object");
    struct json *members = json_object(mem);
    struct json *required = json_array(mem);

    for (const struct field *field = fields; field->kind != FIELD_END; field++) {
        json_put(members, field->name, member_schema(mem, field));
        if (takes_base64(field))
            json_put(members, arena_printf(mem, "%s" B64_SUFFIX, field->name),
                     base64_schema(mem, field));
        if (field->required && field->kind != FIELD_BYTES)
            json_push(required, json_text(mem, str_of(field->name)));
    }
    json_put(schema, "properties", members);
    json_put_bool(mem, schema, "additionalProperties", false);
    if (required->n)
        json_put(schema, "required", required);
    return schema;
}
