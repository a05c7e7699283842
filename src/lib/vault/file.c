/* SPDX-License-Identifier: Apache-2.0 */

/* The file `secrets` (docs/formats/vault.md):
 *
 *     brig-vault-v1 KIND REF\n        which master key
 *     <64 hex digits>\n               HMAC-SHA256 over SHA-256(first line, "\n", body)
 *     {"generation":…,"secrets":[…]}  canonical JSON
 *
 * It is replaced as a whole: written beside, synced, renamed. `mark` follows and is never ahead. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/text.h"
#include "lib/crypto/crypto.h"
#include "lib/vault/vault-parts.h"

#define HEAD "brig-vault-v1"
#define FILE_NAME VAULT_SECRETS
#define MARK_NAME "mark"
#define MARK_MAX 64

static int spoiled(struct err *err, const char *what)
{
    return err_set(err, ERR_INTEGRITY, "the vault is damaged: %s; restore it from a backup", what);
}

/* ---- reading ---- */

static int read_first_line(struct str line, struct master_ref *out, struct err *err)
{
    struct str rest = line;
    struct str head = str_cut(&rest, ' ');
    struct str kind = str_cut(&rest, ' ');

    if (!str_is(head, HEAD) || vault_master_parse(kind, &out->kind, err) < 0 || rest.n == 0 ||
        rest.n >= sizeof out->ref || memchr(rest.p, '\0', rest.n))
        return spoiled(err, "its first line is not ours");
    memcpy(out->ref, rest.p, rest.n);
    out->ref[rest.n] = '\0';
    return 0;
}

/* False: there is no such file. */
static int read_text(int dir_fd, struct buf *out, bool *exists, struct err *err)
{
    if (faccessat(dir_fd, FILE_NAME, F_OK, 0) < 0 && errno == ENOENT) {
        *exists = false;
        return 0;
    }
    *exists = true;
    return file_read(dir_fd, FILE_NAME, out, err);
}

int vault_file_look(int dir_fd, struct master_ref *out, bool *exists, struct err *err)
{
    AUTO_BUF struct buf text = BUF(VAULT_TEXT_MAX);
    struct str rest;

    *out = (struct master_ref){.kind = VAULT_KEY_FILE, .ref = "vault.key"};
    if (read_text(dir_fd, &text, exists, err) < 0)
        return -1;
    rest = buf_str(&text);
    return *exists ? read_first_line(str_cut(&rest, '\n'), out, err) : 0;
}

static void mac_of(const struct vault *vault, struct str line, struct str body, struct hash *out)
{
    struct hasher hasher;
    struct hash key, all;

    /* Over the hash of all of it: hmac_of() takes one piece. */
    hasher_init(&hasher);
    hasher_add(&hasher, line.p, line.n);
    hasher_add(&hasher, "\n", 1);
    hasher_add(&hasher, body.p, body.n);
    hasher_end(&hasher, &all);
    memcpy(key.b, secret_reveal(vault->mac_key).p, sizeof key.b);
    hmac_of(&key, (struct str){(const char *)all.b, sizeof all.b}, out);
    secret_wipe(&key, sizeof key);
}

static int read_sealed(struct arena *mem, const struct json *json, struct str *out, struct err *err)
{
    struct str text;
    char *bytes;
    size_t n = 0;

    if (!json_is_text(json, &text))
        return spoiled(err, "a secret without its seals");
    bytes = arena_alloc(mem, text.n / 4 * 3 + 1);
    if (!base64_decode(text, bytes, &n))
        return spoiled(err, "a seal that is not base64");
    *out = (struct str){bytes, n};
    return 0;
}

static int read_bindings(struct arena *mem, const struct json *list, struct vault_record *out,
                         struct err *err)
{
    if (!list || list->kind != JSON_ARRAY || list->n > VAULT_BINDINGS_MAX)
        return spoiled(err, "a secret without its bindings");
    out->bindings = arena_array(mem, struct vault_binding, list->n + 1);
    json_each(item,
              list) if (binding_read(item, &out->bindings[out->binding_n++], err) < 0) return -1;
    return 0;
}

static int read_entry(struct arena *mem, const struct json *json, struct entry *out,
                      struct err *err)
{
    struct vault_record *record = &out->record;
    struct str name;
    int64_t version, size;

    if (!json_is_text(json_get(json, "name"), &name) || !vault_is_name(name) ||
        !json_is_int(json_get(json, "version"), &version) || version < 1 ||
        !json_is_int(json_get(json, "created_at"), &record->created_at) ||
        !json_is_int(json_get(json, "changed_at"), &record->changed_at) ||
        !json_is_int(json_get(json, "size"), &size) || size < 0 || size > VAULT_VALUE_MAX)
        return spoiled(err, "a secret that is none");
    memcpy(record->name, name.p, name.n);
    record->version = (uint64_t)version;
    record->size = (size_t)size;
    if (read_bindings(mem, json_get(json, "bindings"), record, err) < 0 ||
        read_sealed(mem, json_get(json, "key"), &out->sealed_key, err) < 0)
        return -1;
    return read_sealed(mem, json_get(json, "value"), &out->sealed_value, err);
}

static int read_body(struct vault *vault, struct str body, struct err *err)
{
    const struct json *root, *list;
    struct mark where;
    int64_t generation;

    if (json_parse(&vault->mem, body, &root, &where, err) < 0 ||
        !json_is_int(json_get(root, "generation"), &generation) || generation < 1)
        return spoiled(err, "it is no JSON of ours");
    list = json_get(root, "secrets");
    if (!list || list->kind != JSON_ARRAY || list->n > VAULT_SECRETS_MAX)
        return spoiled(err, "it has no list of secrets");
    vault->generation = (uint64_t)generation;
    vault->entries = arena_array(&vault->mem, struct entry, list->n + 1);
    vault->n = 0;
    json_each(item, list) if (read_entry(&vault->mem, item, &vault->entries[vault->n++], err) <
                              0) return -1;
    return 0;
}

/* An older file put in place of a newer one brings back values that were replaced and bindings that
 * were taken away. Whoever puts back the mark as well is not noticed here. */
static int check_mark(const struct vault *vault, struct err *err)
{
    AUTO_BUF struct buf text = BUF(MARK_MAX);
    struct str line;
    uint64_t mark = 0;

    if (faccessat(vault->dir_fd, MARK_NAME, F_OK, 0) < 0 && errno == ENOENT)
        return 0;
    if (file_read(vault->dir_fd, MARK_NAME, &text, err) < 0)
        return -1;
    line = buf_str(&text);
    if (!str_u64(str_cut(&line, '\n'), &mark))
        return spoiled(err, "the mark of its generation is no number");
    if (vault->generation < mark)
        return err_set(err, ERR_INTEGRITY,
                       "the vault is older than it was (generation %llu, it had been %llu): values "
                       "and bindings that were removed may be back; if you restored it yourself, "
                       "remove " VAULT_FOLDER "/" MARK_NAME,
                       (unsigned long long)vault->generation, (unsigned long long)mark);
    return 0;
}

static int check_mac(const struct vault *vault, struct str line, struct str digits, struct str body,
                     struct err *err)
{
    struct hash told, made;

    if (!hex_decode(digits, told.b, sizeof told.b))
        return spoiled(err, "its second line is no MAC");
    mac_of(vault, line, body, &made);
    if (hash_is_same(&told, &made))
        return 0;
    if (vault->ref.kind == VAULT_KEY_PASSPHRASE)
        return err_set(err, ERR_FORBIDDEN, "that is not the vault's passphrase, or it was changed");
    return spoiled(err, "it was changed, or its key is another one");
}

int vault_file_load(struct vault *vault, struct err *err)
{
    AUTO_BUF struct buf text = BUF(VAULT_TEXT_MAX);
    struct str body, line, digits;
    bool exists;

    if (read_text(vault->dir_fd, &text, &exists, err) < 0)
        return -1;
    arena_done(&vault->mem);
    vault->mem = ARENA(512 * MIB);
    vault->entries = arena_array(&vault->mem, struct entry, 1);
    vault->n = 0;
    vault->generation = 0;
    if (!exists)
        return check_mark(vault, err);
    body = buf_str(&text);
    line = str_cut(&body, '\n');
    digits = str_cut(&body, '\n');
    if (check_mac(vault, line, digits, body, err) < 0 || read_body(vault, body, err) < 0)
        return -1;
    return check_mark(vault, err);
}

/* ---- writing ---- */

static int put_sealed(struct arena *mem, struct json *object, const char *key, struct str bytes,
                      struct err *err)
{
    AUTO_BUF struct buf text = BUF(4 * VAULT_VALUE_MAX);

    if (base64_encode(bytes, &text, err) < 0)
        return -1;
    json_put(object, key, json_text(mem, buf_str(&text)));
    return 0;
}

static int entry_json(struct arena *mem, const struct entry *entry, struct json **out,
                      struct err *err)
{
    const struct vault_record *record = &entry->record;
    struct json *object = json_object(mem), *bindings = json_array(mem);

    json_put_text(mem, object, "name", record->name);
    json_put_int(mem, object, "version", (int64_t)record->version);
    json_put_int(mem, object, "created_at", record->created_at);
    json_put_int(mem, object, "changed_at", record->changed_at);
    json_put_int(mem, object, "size", (int64_t)record->size);
    for (size_t i = 0; i < record->binding_n; i++)
        json_push(bindings, binding_json(mem, &record->bindings[i]));
    json_put(object, "bindings", bindings);
    *out = object;
    if (put_sealed(mem, object, "key", entry->sealed_key, err) < 0)
        return -1;
    return put_sealed(mem, object, "value", entry->sealed_value, err);
}

static int write_body(const struct vault *vault, struct buf *out, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(512 * MIB);
    struct json *root = json_object(&mem), *list = json_array(&mem);

    for (size_t i = 0; i < vault->n; i++) {
        struct json *item = NULL;

        if (entry_json(&mem, &vault->entries[i], &item, err) < 0)
            return -1;
        json_push(list, item);
    }
    json_put_int(&mem, root, "generation", (int64_t)vault->generation);
    json_put(root, "secrets", list);
    return json_canonical(root, out, err);
}

static int replace(const struct vault *vault, const char *name, struct str text, struct err *err)
{
    AUTO_FREE char *path = NULL;

    if (asprintf(&path, "%s/%s", vault->dir, name) < 0) {
        path = NULL;
        return err_os(err, "naming %s", name);
    }
    return file_replace(path, text.p, text.n, 0600, err);
}

int vault_file_save(struct vault *vault, struct err *err)
{
    AUTO_BUF struct buf body = BUF(VAULT_TEXT_MAX - 256), text = BUF(VAULT_TEXT_MAX);
    char line[128], digits[2 * HASH_BYTES + 1], mark[MARK_MAX];
    struct hash mac;

    vault->generation++;
    (void)snprintf(line, sizeof line, HEAD " %s %s", vault_master_name(vault->ref.kind),
                   vault->ref.ref);
    (void)snprintf(mark, sizeof mark, "%llu\n", (unsigned long long)vault->generation);
    if (write_body(vault, &body, err) < 0)
        return err_in(err, "the vault is full");
    mac_of(vault, str_of(line), buf_str(&body), &mac);
    hex_encode(mac.b, sizeof mac.b, digits);
    CRASH_POINT("vault-sealed");
    if (buf_addf(&text, err, "%s\n%s\n", line, digits) < 0 ||
        buf_add_str(&text, buf_str(&body), err) < 0 ||
        replace(vault, FILE_NAME, buf_str(&text), err) < 0)
        return -1;
    CRASH_POINT("vault-saved");
    return replace(vault, MARK_NAME, str_of(mark), err);
}
