/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "lib/base/limits.h"
#include "lib/vault/vault-parts.h"

#define BOUND_MAX (256 * KIB)

/* What the seals are bound to: the value's to name and version, the data key's also to the
 * bindings, so that a secret cannot be given those of another one, or older ones. */
static int bound_to(const struct vault_record *record, const char *what, bool with_bindings,
                    struct buf *out, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    struct json *list = json_array(&mem);

    if (buf_addf(out, err, "brig/vault/1/%s%c%s%c%llu%c", what, 0, record->name, 0,
                 (unsigned long long)record->version, 0) < 0)
        return -1;
    for (size_t i = 0; with_bindings && i < record->binding_n; i++)
        json_push(list, binding_json(&mem, &record->bindings[i]));
    return json_canonical(list, out, err);
}

static int seal_into(struct arena *mem, struct str key, struct str bound, struct str plain,
                     struct str *out, struct err *err)
{
    AUTO_BUF struct buf sealed = BUF(VAULT_VALUE_MAX + SEAL_EXTRA_BYTES);

    if (seal_make(key, bound, plain, &sealed, err) < 0)
        return -1;
    *out = arena_str(mem, buf_str(&sealed));
    return 0;
}

int vault_entry_reseal(const struct vault *vault, struct arena *mem, struct entry *entry,
                       struct str data_key, struct err *err)
{
    AUTO_BUF struct buf bound = BUF(BOUND_MAX);

    if (bound_to(&entry->record, "key", true, &bound, err) < 0)
        return -1;
    return seal_into(mem, secret_reveal(vault->wrap_key), buf_str(&bound), data_key,
                     &entry->sealed_key, err);
}

int vault_entry_seal(const struct vault *vault, struct arena *mem, struct entry *entry,
                     struct str value, struct err *err)
{
    AUTO(secret) struct secret *key = NULL;
    AUTO_BUF struct buf bound = BUF(BOUND_MAX);

    entry->record.size = value.n;
    if (seal_key_new(&key, err) < 0 || bound_to(&entry->record, "value", false, &bound, err) < 0 ||
        seal_into(mem, secret_reveal(key), buf_str(&bound), value, &entry->sealed_value, err) < 0)
        return -1;
    return vault_entry_reseal(vault, mem, entry, secret_reveal(key), err);
}

int vault_entry_data_key(const struct vault *vault, const struct entry *entry, struct secret **out,
                         struct err *err)
{
    AUTO_BUF struct buf bound = BUF(BOUND_MAX);

    if (bound_to(&entry->record, "key", true, &bound, err) < 0)
        return -1;
    if (seal_open(secret_reveal(vault->wrap_key), buf_str(&bound), entry->sealed_key, out, err) < 0)
        return err_in(err, "the key of %s", entry->record.name);
    if (secret_reveal(*out).n == SEAL_KEY_BYTES)
        return 0;
    secret_free(TAKE(*out));
    return err_set(err, ERR_INTEGRITY, "the key of %s is none", entry->record.name);
}

int vault_entry_open(const struct vault *vault, const struct entry *entry, struct secret **out,
                     struct err *err)
{
    AUTO(secret) struct secret *key = NULL;
    AUTO_BUF struct buf bound = BUF(BOUND_MAX);

    if (vault_entry_data_key(vault, entry, &key, err) < 0 ||
        bound_to(&entry->record, "value", false, &bound, err) < 0)
        return -1;
    if (seal_open(secret_reveal(key), buf_str(&bound), entry->sealed_value, out, err) < 0)
        return err_in(err, "the value of %s", entry->record.name);
    return 0;
}
