/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Secrets at rest, and what each is bound to. STATE/vault holds:
 *
 *     vault.key      the master key, when it is kept in a file (0600)
 *     secrets        everything else, one text that is replaced as a whole (docs/formats/vault.md)
 *     mark           which generation was the last: an older `secrets` put back is noticed
 *     uses           secrets that were handed out and have no receipt yet (vault-journal.h)
 *     lock           held by whoever changes something
 *
 * A value is sealed under a key of its own, which is sealed under the master key; name, version and
 * bindings are authenticated with both, and all of the file by a MAC that is checked before a byte
 * of it is read. Whatever a crash leaves is the state before or the state after. There is no
 * way to a value but vault_reveal(), for a request that a binding names. */

#include "lib/base/memory.h"
#include "lib/crypto/secret.h"
#include "lib/vault/vault-slot.h"

#define VAULT_FOLDER "vault"
#define VAULT_SECRETS "secrets" /* the one file in it that says what is bound */
#define VAULT_SECRETS_MAX 512
#define VAULT_BINDINGS_MAX 32 /* of one secret */
#define VAULT_TEXT_MAX (4UL * 1024 * 1024)

#define VAULT_TENANT_BYTES 33
#define VAULT_WHO_BYTES 129 /* subject, pack: patterns */
#define VAULT_HOST_BYTES 254
#define VAULT_METHOD_BYTES 33
#define VAULT_PATH_BYTES 1025
#define VAULT_BINDING_ID_BYTES 13

/* Where a secret may go. All of it must fit, so what is empty fits nothing. */
struct vault_binding {
    char id[VAULT_BINDING_ID_BYTES]; /* "b" and the beginning of its hash */
    char tenant[VAULT_TENANT_BYTES]; /* exactly */
    char subject[VAULT_WHO_BYTES];   /* glob over who acts */
    char pack[VAULT_WHO_BYTES];      /* glob over the pack; a command without one is "" */
    char host[VAULT_HOST_BYTES];     /* exactly, lower case */
    unsigned port;
    char scheme[6];                  /* https or http */
    char method[VAULT_METHOD_BYTES]; /* exactly, or "*" */
    char path[VAULT_PATH_BYTES];     /* glob; * stays within a segment, ** does not */
    struct vault_slot slot;
};

/* Checks every member and fills in the id. What is empty gets its default first: tenant default,
 * subject, pack and method any, scheme https, port by scheme, every path. */
int vault_binding_check(struct vault_binding *binding, struct err *err) MUST_CHECK;

struct vault_record {
    char name[VAULT_NAME_BYTES];
    uint64_t version;   /* 1, and one more with each new value */
    int64_t created_at; /* seconds since 1970 */
    int64_t changed_at;
    size_t size; /* of the value */
    struct vault_binding *bindings;
    size_t binding_n;
};

/* Where the master key comes from. */
enum vault_master {
    VAULT_KEY_FILE,
    VAULT_KEY_KEYRING,    /* the user's, in the kernel: gone when the machine restarts */
    VAULT_KEY_PASSPHRASE, /* Argon2id */
};
const char *vault_master_name(enum vault_master master);
int vault_master_parse(struct str name, enum vault_master *out, struct err *err) MUST_CHECK;

struct vault;

/* Which kind of key it has now; with no vault there: a file. */
int vault_look(const char *state_dir, enum vault_master *out, struct err *err) MUST_CHECK;
/* Opens it, making it (with a key file) when there is none. The passphrase counts only where one
 * is needed; ERR_FORBIDDEN: it is another one, or missing. */
int vault_open(const char *state_dir, struct str passphrase, struct vault **out,
               struct err *err) MUST_CHECK;
/* The folder itself, and the master key (32 bytes; empty: that of its key file). For a process
 * that has been handed both; it can only read and reveal. */
int vault_open_at(int dir_fd, struct str master, struct vault **out, struct err *err) MUST_CHECK;
void vault_free(struct vault *vault);
AUTO_TYPE(vault)

/* A first value, or another one: the old one is gone. ERR_INVALID: name or size are wrong. With
 * must_exist: ERR_NOT_FOUND when there is none. The record lives in mem. */
int vault_set(struct vault *vault, struct arena *mem, const char *name, struct str value,
              bool must_exist, struct vault_record *out, struct err *err) MUST_CHECK;
int vault_bind(struct vault *vault, struct arena *mem, const char *name,
               const struct vault_binding *binding, struct vault_record *out,
               struct err *err) MUST_CHECK;
int vault_unbind(struct vault *vault, struct arena *mem, const char *name, const char *binding_id,
                 struct vault_record *out, struct err *err) MUST_CHECK;
int vault_remove(struct vault *vault, const char *name, struct err *err) MUST_CHECK;
/* Another master key, of this kind: every data key is sealed anew, in one step. */
int vault_rekey(struct vault *vault, enum vault_master master, struct str passphrase,
                struct err *err) MUST_CHECK;

int vault_show(struct vault *vault, struct arena *mem, const char *name, struct vault_record *out,
               struct err *err) MUST_CHECK;
/* All of them, by name; the array lives in mem. */
int vault_list(struct vault *vault, struct arena *mem, struct vault_record **out, size_t *n,
               struct err *err) MUST_CHECK;
uint64_t vault_generation(const struct vault *vault);
/* The master key, for whoever hands it to the keeper; empty for a key file. */
struct str vault_master_reveal(const struct vault *vault);

/* One request that wants one secret. */
struct vault_question {
    const char *tenant;
    const char *subject;
    const char *pack;
    const char *host; /* lower case */
    unsigned port;
    const char *scheme;
    const char *method;
    const char *path; /* as it is sent, without the query */
    struct vault_slot slot;
    const char *name;
};

/* Whether the request is one that the binding is about; the name does not count. */
bool vault_binding_fits(const struct vault_binding *binding, const struct vault_question *question,
                        bool with_slot);

struct vault_answer {
    struct secret *value; /* the caller's to free */
    uint64_t version;
    char binding[VAULT_BINDING_ID_BYTES];
};

/* ERR_FORBIDDEN: no binding fits; it does not say whether there is such a secret. */
int vault_reveal(struct vault *vault, const struct vault_question *question,
                 struct vault_answer *out, struct err *err) MUST_CHECK;
/* The slots that are bound for requests like this one (slot and name do not count): at most
 * VAULT_BOUND_MAX, without repetition. */
#define VAULT_BOUND_MAX 16
int vault_bound(struct vault *vault, const struct vault_question *question,
                struct vault_slot out[VAULT_BOUND_MAX], size_t *n, struct err *err) MUST_CHECK;
