/* SPDX-License-Identifier: Apache-2.0 */

/* Named fields: of a query or a form, and of JSON. */

#include <stdio.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "lib/vault/use-parts.h"

/* ---- key=value&key=value ---- */

struct field {
    struct str key; /* both as they stand there */
    struct str value;
};

static bool next_field(struct str *rest, struct field *out)
{
    struct str pair;

    if (rest->n == 0)
        return false;
    pair = str_cut(rest, '&');
    out->value = pair;
    out->key = str_cut(&out->value, '=');
    return true;
}

static bool key_is(struct str raw, struct str key)
{
    char decoded[DECODED_MAX];
    int n = percent_decode(raw, decoded);

    return n >= 0 && str_eq((struct str){decoded, (size_t)n}, key);
}

static unsigned count_keys(struct str text, struct str key)
{
    struct field field;
    unsigned n = 0;

    while (next_field(&text, &field))
        n += key_is(field.key, key);
    return n;
}

bool fields_have(struct str text, struct str key)
{
    return count_keys(text, key) > 0;
}

/* A form's field is a pointer of one step, so what pointers escape is escaped. */
static bool put_slot_name(enum vault_slot_kind kind, struct str key, struct vault_slot *slot)
{
    size_t n = 0;

    slot->kind = kind;
    if (kind == VAULT_BODY)
        slot->name[n++] = '/';
    for (size_t i = 0; i < key.n; i++) {
        bool is_escaped = kind == VAULT_BODY && (key.p[i] == '/' || key.p[i] == '~');

        if (n + 2 > VAULT_SLOT_NAME_MAX || (unsigned char)key.p[i] < 0x20)
            return false;
        if (is_escaped)
            slot->name[n++] = '~';
        slot->name[n++] = (char)(!is_escaped ? key.p[i] : key.p[i] == '/' ? '1' : '0');
    }
    return key.n > 0;
}

static enum vault_fault find_in_field(const struct field *field, struct str all, size_t base,
                                      enum vault_slot_kind kind, struct vault_uses *uses)
{
    char key[DECODED_MAX], value[DECODED_MAX];
    struct vault_use use = {.at = base + (size_t)(field->value.p - all.p), .n = field->value.n};
    int key_n = percent_decode(field->key, key);
    int value_n = percent_decode(field->value, value);

    if (scan_count(field->key) || key_n < 0 || value_n < 0)
        return VAULT_FAULT_MISPLACED;
    if (!placeholder_read((struct str){value, (size_t)value_n}, use.name))
        return placeholder_fault((struct str){value, (size_t)value_n});
    if (!put_slot_name(kind, (struct str){key, (size_t)key_n}, &use.slot))
        return VAULT_FAULT_MISPLACED;
    if (count_keys(all, (struct str){key, (size_t)key_n}) > 1)
        return VAULT_FAULT_SECOND;
    return uses_add(uses, &use);
}

enum vault_fault fields_find(struct str text, size_t base, enum vault_slot_kind kind,
                             struct vault_uses *uses)
{
    struct str rest = text;
    struct field field;

    while (next_field(&rest, &field)) {
        enum vault_fault fault = VAULT_NO_FAULT;

        if (scan_count(field.key) || (field.value.n && scan_count(field.value)))
            fault = find_in_field(&field, text, base, kind, uses);
        if (fault)
            return fault;
    }
    return VAULT_NO_FAULT;
}

/* ---- JSON ---- */

#define JSON_MEMORY_MAX (96 * MIB) /* a held body of nothing but brackets */

struct walk {
    struct str body;
    struct vault_uses *uses;
    char pointer[VAULT_SLOT_NAME_MAX + 1];
};

/* Where a value stands, as the reader of JSON counts: lines by their ends, columns by bytes. */
static size_t offset_of(struct str body, struct mark mark)
{
    size_t at = 0;

    for (unsigned line = 1; line < mark.line && at < body.n; at++)
        line += body.p[at] == '\n';
    return at + mark.column - 1;
}

/* A text with its quotes, or 0. */
static size_t literal_length(struct str body, size_t at)
{
    size_t i = at + 1;

    if (at >= body.n || body.p[at] != '"')
        return 0;
    while (i < body.n && body.p[i] != '"')
        i += body.p[i] == '\\' ? 2 : 1;
    return i < body.n ? i + 1 - at : 0;
}

static enum vault_fault find_in_text(struct walk *walk, const struct json *value)
{
    struct vault_use use = {.slot = {.kind = VAULT_BODY}};

    if (value->text.n == 0 || scan_count(value->text) == 0)
        return VAULT_NO_FAULT;
    if (!placeholder_read(value->text, use.name))
        return placeholder_fault(value->text);
    use.at = offset_of(walk->body, value->mark);
    use.n = literal_length(walk->body, use.at);
    if (use.n == 0 || walk->pointer[0] == '\0')
        return VAULT_FAULT_MISPLACED;
    memcpy(use.slot.name, walk->pointer, sizeof walk->pointer);
    return uses_add(walk->uses, &use);
}

/* -1: deeper or longer than a slot can name. What is in there is only looked through then. */
static int push_step(char pointer[VAULT_SLOT_NAME_MAX + 1], struct str step)
{
    size_t n = strlen(pointer);

    if (n + 2 * step.n + 1 > VAULT_SLOT_NAME_MAX)
        return -1;
    pointer[n++] = '/';
    for (size_t i = 0; i < step.n; i++) {
        if (step.p[i] == '\0')
            return -1;
        if (step.p[i] == '/' || step.p[i] == '~') {
            pointer[n++] = '~';
            pointer[n++] = step.p[i] == '/' ? '1' : '0';
        } else {
            pointer[n++] = step.p[i];
        }
    }
    pointer[n] = '\0';
    return 0;
}

static enum vault_fault find_in_value(struct walk *walk, const struct json *value);

static enum vault_fault find_in_child(struct walk *walk, const struct json *child, size_t index)
{
    size_t before = strlen(walk->pointer);
    char digits[24];
    struct str step = child->key;
    enum vault_fault fault;

    if (step.n && scan_count(step))
        return VAULT_FAULT_MISPLACED;
    if (!step.p) {
        (void)snprintf(digits, sizeof digits, "%zu", index);
        step = str_of(digits);
    }
    /* Too deep to name: what it holds stays unfound, and the count of all of them says so. */
    if (push_step(walk->pointer, step) < 0)
        return VAULT_NO_FAULT;
    fault = find_in_value(walk, child);
    walk->pointer[before] = '\0';
    return fault;
}

static enum vault_fault find_in_value(struct walk *walk, const struct json *value)
{
    enum vault_fault fault = VAULT_NO_FAULT;
    size_t index = 0;

    if (value->kind == JSON_STRING)
        return find_in_text(walk, value);
    if (value->kind != JSON_ARRAY && value->kind != JSON_OBJECT)
        return VAULT_NO_FAULT;
    for (const struct json *child = value->first; child && !fault; child = child->next)
        fault = find_in_child(walk, child, index++);
    return fault;
}

static const struct json *parse(struct arena *mem, struct str body)
{
    const struct json *root = NULL;
    struct mark where;
    struct err err;

    return json_parse(mem, body, &root, &where, &err) < 0 ? NULL : root;
}

enum vault_fault json_find(struct str body, struct vault_uses *uses)
{
    AUTO_ARENA struct arena mem = ARENA(JSON_MEMORY_MAX);
    struct walk walk = {.body = body, .uses = uses};
    const struct json *root = parse(&mem, body);

    return root ? find_in_value(&walk, root) : VAULT_FAULT_BODY;
}

bool json_has(struct str body, const char *pointer)
{
    AUTO_ARENA struct arena mem = ARENA(JSON_MEMORY_MAX);
    const struct json *root = parse(&mem, body);

    return !root || json_at(root, pointer); /* what we cannot read somebody else may */
}
