/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/json/json.h"

#include "lib/base/attrs.h"
#include "lib/json/json-private.h"

#include <assert.h>
#include <string.h>

/* The integers a double holds exactly, and so the ones every JSON reader agrees on. */
#define INT_MAX_EXACT ((INT64_C(1) << 53) - 1)

struct json *json_node(struct arena *mem, enum json_kind kind)
{
    struct json *node = arena_new(mem, struct json);

    node->kind = kind;
    return node;
}

struct json *json_leaf(struct arena *mem, enum json_kind kind, size_t text_bytes, char **out_text)
{
    struct json *node = arena_alloc(mem, sizeof *node + text_bytes + 1);

    node->kind = kind;
    *out_text = (char *)(node + 1);
    node->text = (struct str){*out_text, text_bytes};
    return node;
}

void json_append(struct json *container, struct json *value)
{
    if (container->last)
        container->last->next = value;
    else
        container->first = value;
    container->last = value;
    container->n++;
}

struct json *json_object(struct arena *mem)
{
    return json_node(mem, JSON_OBJECT);
}

struct json *json_array(struct arena *mem)
{
    return json_node(mem, JSON_ARRAY);
}

struct json *json_text(struct arena *mem, struct str text)
{
    char *copy;
    struct json *node = json_leaf(mem, JSON_STRING, text.n, &copy);

    if (text.n)
        memcpy(copy, text.p, text.n);
    return node;
}

struct json *json_int(struct arena *mem, int64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    uint64_t rest = value < 0 ? (uint64_t)-value : (uint64_t)value;
    struct json *node;
    char *copy;

    assert(value >= -INT_MAX_EXACT && value <= INT_MAX_EXACT);
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (value < 0)
        digits[--at] = '-';
    node = json_leaf(mem, JSON_NUMBER, sizeof digits - at, &copy);
    memcpy(copy, digits + at, sizeof digits - at);
    return node;
}

struct json *json_bool(struct arena *mem, bool value)
{
    struct json *node = json_node(mem, JSON_BOOL);

    node->boolean = value;
    return node;
}

struct json *json_null(struct arena *mem)
{
    return json_node(mem, JSON_NULL);
}

void json_put(struct json *object, const char *key, struct json *value)
{
    assert(object->kind == JSON_OBJECT);
    value->key = str_of(key);
    json_append(object, value);
}

void json_put_text(struct arena *mem, struct json *object, const char *key, const char *text)
{
    json_put(object, key, json_text(mem, str_of(text)));
}

void json_put_int(struct arena *mem, struct json *object, const char *key, int64_t value)
{
    json_put(object, key, json_int(mem, value));
}

void json_put_bool(struct arena *mem, struct json *object, const char *key, bool value)
{
    json_put(object, key, json_bool(mem, value));
}

void json_push(struct json *array, struct json *value)
{
    assert(array->kind == JSON_ARRAY);
    json_append(array, value);
}

void json_put_bytes(struct arena *mem, struct json *object, const char *key, struct str bytes)
{
    AUTO_BUF struct buf encoded = BUF((bytes.n + 2) / 3 * 4);
    struct err err;

    if (str_is_utf8(bytes)) {
        json_put(object, key, json_text(mem, bytes));
        return;
    }
    if (base64_encode(bytes, &encoded, &err) < 0)
        abort(); /* the ceiling above is the exact size of the result */
    json_put(object, arena_printf(mem, "%s_b64", key), json_text(mem, buf_str(&encoded)));
}

static const struct json *find_member(const struct json *object, struct str key)
{
    json_each(member, object) if (str_eq(member->key, key)) return member;
    return NULL;
}

const struct json *json_get(const struct json *object, const char *key)
{
    if (!object || object->kind != JSON_OBJECT)
        return NULL;
    return find_member(object, str_of(key));
}

/* Whether a reference token, with "~1" for '/' and "~0" for '~', names this key. */
static bool names_key(struct str token, struct str key)
{
    size_t at = 0;

    for (size_t i = 0; i < token.n; i++) {
        char c = token.p[i];

        if (c == '~') {
            if (++i == token.n || (token.p[i] != '0' && token.p[i] != '1'))
                return false;
            c = token.p[i] == '1' ? '/' : '~';
        }
        if (at == key.n || key.p[at] != c)
            return false;
        at++;
    }
    return at == key.n;
}

static const struct json *find_item(const struct json *array, struct str token)
{
    uint64_t index;

    if (!str_u64(token, &index) || (token.n > 1 && token.p[0] == '0') || index >= array->n)
        return NULL;
    json_each(item, array) if (index-- == 0) return item;
    return NULL;
}

static const struct json *step_into(const struct json *container, struct str token)
{
    if (container->kind == JSON_ARRAY)
        return find_item(container, token);
    if (container->kind != JSON_OBJECT)
        return NULL;
    json_each(member, container) if (names_key(token, member->key)) return member;
    return NULL;
}

const struct json *json_at(const struct json *root, const char *pointer)
{
    while (root && *pointer) {
        struct str token;

        if (*pointer != '/')
            return NULL;
        token = (struct str){pointer + 1, strcspn(pointer + 1, "/")};
        root = step_into(root, token);
        pointer += 1 + token.n;
    }
    return root;
}

bool json_is_text(const struct json *value, struct str *out)
{
    if (!value || value->kind != JSON_STRING)
        return false;
    *out = value->text;
    return true;
}

bool json_is_int(const struct json *value, int64_t *out)
{
    struct str digits;
    bool negative;
    uint64_t size;

    if (!value || value->kind != JSON_NUMBER)
        return false;
    digits = value->text;
    negative = digits.n && digits.p[0] == '-';
    if (negative)
        digits = (struct str){digits.p + 1, digits.n - 1};
    if (!str_u64(digits, &size) || size > INT_MAX_EXACT)
        return false;
    *out = negative ? -(int64_t)size : (int64_t)size;
    return true;
}

bool json_is_bool(const struct json *value, bool *out)
{
    if (!value || value->kind != JSON_BOOL)
        return false;
    *out = value->boolean;
    return true;
}

void json_copy_member(struct arena *mem, struct json *object, const struct json *member)
{
    struct json *copy = arena_new(mem, struct json);

    *copy = *member;
    copy->next = NULL;
    json_put(object, "", copy);
    copy->key = member->key; /* may hold any bytes, unlike a key of ours */
}
