/* SPDX-License-Identifier: Apache-2.0 */
/* For comparing with another implementation: reads lines of {"expr": TEXT, "vars": {NAME: VALUE}}
 * and answers each with one line: {"value": V}, {"refused": WHY} when it does not compile, or
 * {"error": WHY} when it does not evaluate. An int is {"int": "TEXT"} both ways, because it may
 * have 64 bits. Variables have the types of their values. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/limits.h"
#include "lib/expr/expr.h"
#include "lib/json/json.h"

static struct expr_value value_of(struct arena *mem, const struct json *json);

static struct expr_value object_of(struct arena *mem, const struct json *json)
{
    struct expr_entry *v = arena_array(mem, struct expr_entry, json->n + 1);
    struct expr_value value = {.kind = EXPR_MAP};
    struct str number;
    size_t n = 0;

    if (json_is_text(json_get(json, "int"), &number))
        return (struct expr_value){.kind = EXPR_INT,
                                   .number = strtoll(arena_text(mem, number), NULL, 10)};
    json_each(member, json)
    {
        v[n].key = (struct expr_value){.kind = EXPR_STRING, .text = member->key};
        v[n++].value = value_of(mem, member);
    }
    value.map.v = v;
    value.map.n = n;
    return value;
}

static struct expr_value value_of(struct arena *mem, const struct json *json)
{
    struct expr_value value = {.kind = EXPR_NULL};
    struct expr_value *v = NULL;
    size_t n = 0;

    if (json->kind == JSON_BOOL)
        return (struct expr_value){.kind = EXPR_BOOL, .boolean = json->boolean};
    if (json->kind == JSON_STRING)
        return (struct expr_value){.kind = EXPR_STRING, .text = json->text};
    if (json->kind == JSON_OBJECT)
        return object_of(mem, json);
    if (json->kind != JSON_ARRAY)
        return value;
    v = arena_array(mem, struct expr_value, json->n + 1);
    json_each(item, json) v[n++] = value_of(mem, item);
    value.kind = EXPR_LIST;
    value.list.v = v;
    value.list.n = n;
    return value;
}

static struct json *json_of(struct arena *mem, const struct expr_value *value);

static struct json *map_json(struct arena *mem, const struct expr_value *value)
{
    struct json *entries = json_array(mem);
    struct json *out = json_object(mem);

    for (size_t i = 0; i < value->map.n; i++) {
        struct json *pair = json_array(mem);

        json_push(pair, json_of(mem, &value->map.v[i].key));
        json_push(pair, json_of(mem, &value->map.v[i].value));
        json_push(entries, pair);
    }
    json_put(out, "map", entries);
    return out;
}

static struct json *json_of(struct arena *mem, const struct expr_value *value)
{
    struct json *out;

    switch (value->kind) {
    case EXPR_UNKNOWN:
    case EXPR_NULL:
        return json_null(mem);
    case EXPR_BOOL:
        return json_bool(mem, value->boolean);
    case EXPR_INT:
        out = json_object(mem);
        json_put(out, "int", json_text(mem, str_of(arena_printf(mem, "%" PRId64, value->number))));
        return out;
    case EXPR_STRING:
        return json_text(mem, value->text);
    case EXPR_LIST:
        out = json_array(mem);
        for (size_t i = 0; i < value->list.n; i++)
            json_push(out, json_of(mem, &value->list.v[i]));
        return out;
    case EXPR_MAP:
        break;
    }
    return map_json(mem, value);
}

static struct json *answer(struct arena *mem, const struct json *line)
{
    static char space[EXPR_SPACE_MAX] __attribute__((aligned(16)));
    struct expr_name names[EXPR_NAMES_MAX] = {0};
    struct expr_value values[EXPR_NAMES_MAX] = {0};
    struct expr_scope scope = {
        .values = values, .space = space, .space_bytes = sizeof space, .steps = EXPR_STEPS_MAX};
    const struct json *vars = json_get(line, "vars");
    struct json *out = json_object(mem);
    const struct expr *expr = NULL;
    struct expr_value value = {0};
    struct str text = {0};
    struct mark where;
    struct err err = {0};
    size_t n = 0;

    (void)json_is_text(json_get(line, "expr"), &text);
    if (vars)
        json_each(var, vars)
        {
            values[n] = value_of(mem, var);
            names[n].name = arena_text(mem, var->key);
            names[n].type.kind = values[n].kind;
            n++;
        }
    if (expr_compile(mem, text, names, n, &expr, &where, &err) < 0)
        json_put(out, "refused", json_text(mem, str_of(err.text)));
    else if (expr_eval(expr, &scope, &value, &err) < 0)
        json_put(out, "error", json_text(mem, str_of(err.text)));
    else
        json_put(out, "value", json_of(mem, &value));
    return out;
}

static int answer_line(struct str text)
{
    AUTO_ARENA struct arena mem = ARENA(64 * MIB);
    AUTO_BUF struct buf out = BUF(4 * MIB);
    const struct json *line = NULL;
    struct mark where;
    struct err err = {0};

    if (json_parse(&mem, text, &line, &where, &err) < 0 ||
        json_compact(answer(&mem, line), &out, &err) < 0)
        return fprintf(stderr, "expr-lines: %s\n", err.text), -1;
    return printf(STR_FMT "\n", STR_ARG(buf_str(&out))) < 0 || fflush(stdout) != 0 ? -1 : 0;
}

int main(void)
{
    AUTO_FREE char *line = NULL;
    size_t room = 0;
    ssize_t n;

    while ((n = getline(&line, &room, stdin)) > 0)
        if (answer_line((struct str){line, (size_t)n}) < 0)
            return 1;
    return 0;
}
