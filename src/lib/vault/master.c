/* SPDX-License-Identifier: Apache-2.0 */

/* The master key: in a file of its own, in the kernel's keyring of this user, or in a person's
 * head. A new one never overwrites the old one: it has another name, and `secrets` says which
 * counts. */

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "lib/base/text.h"
#include "lib/vault/vault-parts.h"

#define KEY_TYPE "user"

static const char *const names[] = {"file", "keyring", "passphrase"};

const char *vault_master_name(enum vault_master master)
{
    return names[master];
}

int vault_master_parse(struct str name, enum vault_master *out, struct err *err)
{
    for (size_t i = 0; i < COUNT(names); i++)
        if (str_is(name, names[i])) {
            *out = (enum vault_master)i;
            return 0;
        }
    return err_set(err, ERR_INVALID, "the vault's key is kept in a file, keyring or passphrase");
}

static int no_keyring(struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE, "the kernel's keyring cannot be used here: %s",
                   strerror(errno));
}

static int keyring_put(const char *name, struct str key, struct err *err)
{
    if (syscall(SYS_add_key, KEY_TYPE, name, key.p, key.n, KEY_SPEC_USER_KEYRING) < 0)
        return no_keyring(err);
    return 0;
}

static int keyring_get(const char *name, struct secret **out, struct err *err)
{
    AUTO(secret) struct secret *key = NULL;
    long id = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, KEY_TYPE, name, 0);
    char *room;

    if (id < 0 && (errno == ENOKEY || errno == EKEYEXPIRED || errno == EKEYREVOKED))
        return err_set(err, ERR_UNAVAILABLE,
                       "the vault's key is not in the keyring any more: put the copy you kept back "
                       "with keyctl padd user %s @u",
                       name);
    if (id < 0)
        return no_keyring(err);
    if (secret_blank(SEAL_KEY_BYTES, &key, &room, err) < 0)
        return -1;
    if (syscall(SYS_keyctl, KEYCTL_READ, id, room, SEAL_KEY_BYTES) != SEAL_KEY_BYTES)
        return err_set(err, ERR_INTEGRITY, "the key %s in the keyring is not the vault's", name);
    *out = TAKE(key);
    return 0;
}

/* Everything a name may have, so that nothing outside the folder can be meant. */
static bool is_ref(enum vault_master kind, const char *ref)
{
    static const char *const heads[] = {"vault", "brig:vault:", ""};
    size_t n = strlen(heads[kind]);
    unsigned char salt[SEAL_SALT_BYTES];

    if (kind == VAULT_KEY_PASSPHRASE)
        return hex_decode(str_of(ref), salt, sizeof salt);
    if (strncmp(ref, heads[kind], n) != 0)
        return false;
    for (const char *c = ref + n; *c; c++)
        if (!(*c >= 'a' && *c <= 'z') && !(*c >= '0' && *c <= '9') && *c != '-' &&
            (*c != '.' || kind != VAULT_KEY_FILE))
            return false;
    return true;
}

int master_find(const struct vault *vault, const struct master_ref *ref, struct str passphrase,
                struct secret **out, struct err *err)
{
    unsigned char salt[SEAL_SALT_BYTES];

    if (!is_ref(ref->kind, ref->ref))
        return err_set(err, ERR_INTEGRITY, "the vault names a key that cannot be one");
    switch (ref->kind) {
    case VAULT_KEY_FILE:
        /* It would be made, and nothing in here would open with it. */
        if (vault->generation && faccessat(vault->dir_fd, ref->ref, F_OK, 0) < 0)
            return err_set(err, ERR_UNAVAILABLE,
                           "the vault's key %s is missing: restore it from a backup", ref->ref);
        return seal_key_file(vault->dir_fd, ref->ref, ref->ref, out, err);
    case VAULT_KEY_KEYRING:
        return keyring_get(ref->ref, out, err);
    case VAULT_KEY_PASSPHRASE:
        if (passphrase.n == 0)
            return err_set(err, ERR_FORBIDDEN, "the vault needs its passphrase");
        (void)hex_decode(str_of(ref->ref), salt, sizeof salt);
        return seal_key_passphrase(passphrase, salt, out, err);
    }
    return -1;
}

static int make_in_keyring(struct master_ref *ref, const char *id, struct secret **out,
                           struct err *err)
{
    (void)snprintf(ref->ref, sizeof ref->ref, "brig:vault:%s", id);
    if (seal_key_new(out, err) < 0)
        return -1;
    return keyring_put(ref->ref, secret_reveal(*out), err);
}

int master_make(struct vault *vault, enum vault_master kind, struct str passphrase,
                struct master_ref *ref, struct secret **out, struct err *err)
{
    unsigned char random[SEAL_SALT_BYTES];
    char id[2 * SEAL_SALT_BYTES + 1];

    seal_random(random, sizeof random);
    hex_encode(random, sizeof random, id);
    *ref = (struct master_ref){.kind = kind};
    switch (kind) {
    case VAULT_KEY_FILE:
        (void)snprintf(ref->ref, sizeof ref->ref, "vault-%.16s.key", id);
        return seal_key_file(vault->dir_fd, ref->ref, ref->ref, out, err);
    case VAULT_KEY_KEYRING:
        return make_in_keyring(ref, id, out, err);
    case VAULT_KEY_PASSPHRASE:
        (void)snprintf(ref->ref, sizeof ref->ref, "%s", id);
        return seal_key_passphrase(passphrase, random, out, err);
    }
    return -1;
}

/* It opens nothing any more. */
void master_forget(const struct vault *vault, const struct master_ref *ref)
{
    long id;

    if (ref->kind == VAULT_KEY_FILE)
        (void)unlinkat(vault->dir_fd, ref->ref, 0);
    if (ref->kind != VAULT_KEY_KEYRING)
        return;
    id = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, KEY_TYPE, ref->ref, 0);
    if (id >= 0)
        (void)syscall(SYS_keyctl, KEYCTL_UNLINK, id, KEY_SPEC_USER_KEYRING);
}

int master_keys(struct vault *vault, struct err *err)
{
    struct str master = secret_reveal(vault->master);

    secret_free(TAKE(vault->mac_key));
    secret_free(TAKE(vault->wrap_key));
    if (seal_key_for(master, "brig/vault/1/file", &vault->mac_key, err) < 0)
        return -1;
    return seal_key_for(master, "brig/vault/1/wrap", &vault->wrap_key, err);
}
