/* SPDX-License-Identifier: Apache-2.0 */

/* Receipts from outside: read strictly, believed only after hash and signature. */

#include "flow/record/receipt.h"

bool is_receipt_id(struct str name)
{
    for (size_t i = 0; i < name.n; i++)
        if (!((name.p[i] >= 'a' && name.p[i] <= 'z') || (name.p[i] >= '0' && name.p[i] <= '9')))
            return false;
    return name.n > 0 && name.n < ID_BYTES;
}

static int missing(const char *member, struct err *err)
{
    return err_set(err, ERR_INVALID, "member \"%s\" is missing or of the wrong form", member);
}

static bool is_count(const struct json *value, uint64_t *out)
{
    int64_t number = 0;

    if (!json_is_int(value, &number) || number < 0)
        return false;
    *out = (uint64_t)number;
    return true;
}

static bool is_hash(const struct json *value, struct hash *out)
{
    struct str text;

    return json_is_text(value, &text) && hash_from_text(text, out);
}

/* Members every receipt has, whatever its kind. */
static int parse_members(const struct json *json, struct entry *out, struct err *err)
{
    struct str signature;
    uint64_t version = 0;

    if (!is_count(json_get(json, "v"), &version) || version != RECEIPT_VERSION)
        return missing("v", err);
    if (!is_hash(json_get(json, "hash"), &out->hash))
        return missing("hash", err);
    if (!json_is_text(json_get(json, "signature"), &signature) ||
        !hex_decode(signature, out->signature.b, sizeof out->signature.b))
        return missing("signature", err);
    if (!json_is_text(json_get(json, "key_id"), &out->key_id))
        return missing("key_id", err);
    if (!json_is_text(json_get(json, "kind"), &out->kind))
        return missing("kind", err);
    if (!is_count(json_get(json, "seq"), &out->seq))
        return missing("seq", err);
    (void)json_is_text(json_get(json, "run_id"), &out->run_id); /* not every kind has one */
    return 0;
}

/* Members of the chain; a head has none of these. */
static int parse_place(const struct json *json, struct entry *out, struct err *err)
{
    if (str_is(out->kind, "head"))
        return 0;
    if (!json_is_text(json_get(json, "receipt_id"), &out->receipt_id) ||
        !is_receipt_id(out->receipt_id))
        return missing("receipt_id", err);
    if (!is_count(json_get(json, "lamport_clock"), &out->lamport_clock))
        return missing("lamport_clock", err);
    if (!is_hash(json_get(json, "prev_hash"), &out->prev_hash))
        return missing("prev_hash", err);
    return 0;
}

/* The same object without what is not signed. */
static const struct json *without_seal(struct arena *mem, const struct json *json)
{
    struct json *body = json_object(mem);

    json_each(member, json) if (!str_is(member->key, "hash") && !str_is(member->key, "signature"))
        json_copy_member(mem, body, member);
    return body;
}

int entry_parse(struct arena *mem, struct str line, struct buf *body, struct entry *out,
                struct err *err)
{
    struct entry entry = {0};
    struct mark where;

    if (json_parse(mem, line, &entry.json, &where, err) < 0)
        return -1;
    if (entry.json->kind != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "not a JSON object");
    if (parse_members(entry.json, &entry, err) < 0 || parse_place(entry.json, &entry, err) < 0)
        return -1;
    buf_clear(body);
    if (json_canonical(without_seal(mem, entry.json), body, err) < 0)
        return -1;
    entry.body = buf_str(body);
    *out = entry;
    return 0;
}

const char *entry_fault(const struct entry *entry, const struct public_key *key)
{
    struct hash hash;

    receipt_hash(entry->body, &hash);
    if (!str_eq((struct str){(const char *)hash.b, sizeof hash.b},
                (struct str){(const char *)entry->hash.b, sizeof entry->hash.b}))
        return "its content does not match its hash";
    if (!signature_holds(&entry->signature, &hash, key))
        return "its signature does not hold";
    return NULL;
}
