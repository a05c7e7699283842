/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to lib/vault: what the files behind vault.h share. */

#include "lib/crypto/seal.h"
#include "lib/json/json.h"
#include "lib/vault/vault.h"

#define MASTER_REF_BYTES 65

/* Which master key, as the first line of the file says it: not secret, and not to be trusted
 * before the MAC under that key holds. */
struct master_ref {
    enum vault_master kind;
    char ref[MASTER_REF_BYTES]; /* name of the key file, name in the keyring, or salt in hex */
};

struct entry {
    struct vault_record record;
    struct str sealed_key; /* as bytes */
    struct str sealed_value;
};

struct vault {
    int dir_fd;
    char *dir; /* NULL: only for looking */
    struct master_ref ref;
    struct secret *master;
    struct secret *mac_key;
    struct secret *wrap_key;
    uint64_t generation; /* 0: nothing was ever kept */
    /* What was read last; all of it is in mem. */
    struct arena mem;
    struct entry *entries; /* by name; room for one more */
    size_t n;
};

/* master.c: another key of this kind, made; and the one that is there. */
int master_make(struct vault *vault, enum vault_master kind, struct str passphrase,
                struct master_ref *ref, struct secret **out, struct err *err) MUST_CHECK;
int master_find(const struct vault *vault, const struct master_ref *ref, struct str passphrase,
                struct secret **out, struct err *err) MUST_CHECK;
void master_forget(const struct vault *vault, const struct master_ref *ref);
int master_keys(struct vault *vault, struct err *err) MUST_CHECK; /* those of vault->master */

/* file.c */
int vault_file_look(int dir_fd, struct master_ref *out, bool *exists, struct err *err) MUST_CHECK;
int vault_file_load(struct vault *vault, struct err *err) MUST_CHECK;
int vault_file_save(struct vault *vault, struct err *err) MUST_CHECK;

/* binding.c */
struct json *binding_json(struct arena *mem, const struct vault_binding *binding);
int binding_read(const struct json *json, struct vault_binding *out, struct err *err) MUST_CHECK;

/* entry.c: what a data key is sealed under is of this name, version and bindings. */
int vault_entry_seal(const struct vault *vault, struct arena *mem, struct entry *entry,
                     struct str value, struct err *err) MUST_CHECK;
int vault_entry_reseal(const struct vault *vault, struct arena *mem, struct entry *entry,
                       struct str data_key, struct err *err) MUST_CHECK;
int vault_entry_data_key(const struct vault *vault, const struct entry *entry, struct secret **out,
                         struct err *err) MUST_CHECK;
int vault_entry_open(const struct vault *vault, const struct entry *entry, struct secret **out,
                     struct err *err) MUST_CHECK;
