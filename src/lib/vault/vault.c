/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/vault/vault-parts.h"

#define LOCK_NAME "lock"
#define LOCK_WAIT_US 4000000U
#define LOCK_PAUSE_US 2000

/* ---- opening ---- */

static struct vault *vault_new(int dir_fd)
{
    struct vault *vault = xcalloc(1, sizeof *vault);

    vault->dir_fd = dir_fd;
    vault->mem = ARENA(512 * MIB);
    return vault;
}

void vault_free(struct vault *vault)
{
    if (!vault)
        return;
    if (vault->dir_fd >= 0)
        (void)close(vault->dir_fd);
    secret_free(vault->master);
    secret_free(vault->mac_key);
    secret_free(vault->wrap_key);
    arena_done(&vault->mem);
    free(vault->dir);
    free(vault);
}

static char *folder_of(const char *state_dir)
{
    char *path = NULL;

    return asprintf(&path, "%s/" VAULT_FOLDER, state_dir) < 0 ? NULL : path;
}

int vault_look(const char *state_dir, enum vault_master *out, struct err *err)
{
    AUTO_FREE char *path = folder_of(state_dir);
    AUTO_FD int fd = path ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    struct master_ref ref;
    bool exists;

    *out = VAULT_KEY_FILE;
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(err, "opening the vault");
    if (vault_file_look(fd, &ref, &exists, err) < 0)
        return -1;
    *out = ref.kind;
    return 0;
}

static int unlock(struct vault *vault, struct str passphrase, struct err *err)
{
    bool exists;

    if (vault_file_look(vault->dir_fd, &vault->ref, &exists, err) < 0)
        return -1;
    vault->generation = exists; /* then its key is there, too */
    if (master_find(vault, &vault->ref, passphrase, &vault->master, err) < 0 ||
        master_keys(vault, err) < 0)
        return -1;
    return vault_file_load(vault, err);
}

int vault_open(const char *state_dir, struct str passphrase, struct vault **out, struct err *err)
{
    AUTO(vault) struct vault *vault = vault_new(-1);

    vault->dir = folder_of(state_dir);
    if (!vault->dir || dir_make(vault->dir, 0700, err) < 0)
        return -1;
    vault->dir_fd = open(vault->dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (vault->dir_fd < 0)
        return err_os(err, "opening %s", vault->dir);
    if (unlock(vault, passphrase, err) < 0)
        return -1;
    *out = TAKE(vault);
    return 0;
}

int vault_open_at(int dir_fd, struct str master, struct vault **out, struct err *err)
{
    AUTO(vault) struct vault *vault = vault_new(fcntl(dir_fd, F_DUPFD_CLOEXEC, 0));
    bool exists;

    if (vault->dir_fd < 0)
        return err_os(err, "keeping the vault's folder");
    if (master.n == 0) {
        if (unlock(vault, (struct str){0}, err) < 0)
            return -1;
    } else if (vault_file_look(vault->dir_fd, &vault->ref, &exists, err) < 0 ||
               secret_new(master, &vault->master, err) < 0 || master_keys(vault, err) < 0 ||
               vault_file_load(vault, err) < 0) {
        return -1;
    }
    *out = TAKE(vault);
    return 0;
}

/* ---- changing ---- */

/* Closing it gives it back. */
static int take_lock(const struct vault *vault, struct err *err)
{
    AUTO_FD int fd =
        openat(vault->dir_fd, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    uint64_t until = clock_us() + LOCK_WAIT_US;

    if (fd < 0)
        return err_os(err, "opening the vault's lock");
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_os(err, "locking the vault");
        if (clock_us() > until)
            return err_set(err, ERR_TIMEOUT, "somebody else is changing the vault");
        (void)usleep(LOCK_PAUSE_US);
    }
    return TAKE_FD(fd);
}

/* The lock, and what is there now: somebody may have given it another key meanwhile. */
static int begin(struct vault *vault, struct err *err)
{
    AUTO_FD int lock = take_lock(vault, err);
    struct master_ref ref;
    bool exists;

    if (lock < 0 || vault_file_look(vault->dir_fd, &ref, &exists, err) < 0)
        return -1;
    if (exists && (ref.kind != vault->ref.kind || strcmp(ref.ref, vault->ref.ref) != 0))
        return err_set(err, ERR_CONFLICT, "the vault has been given another key: try again");
    if (vault_file_load(vault, err) < 0)
        return -1;
    return TAKE_FD(lock);
}

static struct entry *find(const struct vault *vault, const char *name)
{
    for (size_t i = 0; i < vault->n; i++)
        if (strcmp(vault->entries[i].record.name, name) == 0)
            return &vault->entries[i];
    return NULL;
}

static int missing(const char *name, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "there is no secret \"%.64s\" in the vault", name);
}

static void copy_record(struct arena *mem, const struct vault_record *record,
                        struct vault_record *out)
{
    *out = *record;
    out->bindings = arena_array(mem, struct vault_binding, record->binding_n + 1);
    if (record->binding_n)
        memcpy(out->bindings, record->bindings, record->binding_n * sizeof *record->bindings);
}

/* A place for it, where its name belongs. */
static struct entry *insert(struct vault *vault, const char *name)
{
    size_t at = 0;

    while (at < vault->n && strcmp(vault->entries[at].record.name, name) < 0)
        at++;
    memmove(&vault->entries[at + 1], &vault->entries[at], (vault->n - at) * sizeof *vault->entries);
    vault->n++;
    vault->entries[at] = (struct entry){.record = {.created_at = (int64_t)time(NULL)}};
    (void)snprintf(vault->entries[at].record.name, VAULT_NAME_BYTES, "%s", name);
    return &vault->entries[at];
}

static int check_new(const char *name, struct str value, struct err *err)
{
    if (!vault_is_name(str_of(name)))
        return err_set(err, ERR_INVALID,
                       "a secret's name has 1 to 64 letters, digits, _ . or - and does not begin "
                       "like a revision (v1_)");
    if (value.n < VAULT_VALUE_MIN || value.n > VAULT_VALUE_MAX)
        return err_set(
            err, ERR_INVALID,
            "a secret has %d to %d bytes: shorter ones could not be taken out of answers",
            VAULT_VALUE_MIN, VAULT_VALUE_MAX);
    return 0;
}

int vault_set(struct vault *vault, struct arena *mem, const char *name, struct str value,
              bool must_exist, struct vault_record *out, struct err *err)
{
    AUTO_FD int lock = -1;
    struct entry *entry;

    if (check_new(name, value, err) < 0)
        return -1;
    lock = begin(vault, err);
    if (lock < 0)
        return -1;
    entry = find(vault, name);
    if (!entry && must_exist)
        return missing(name, err);
    if (!entry && vault->n == VAULT_SECRETS_MAX)
        return err_set(err, ERR_LIMIT, "the vault holds %d secrets", VAULT_SECRETS_MAX);
    if (!entry)
        entry = insert(vault, name);
    entry->record.version++;
    entry->record.changed_at = (int64_t)time(NULL);
    if (vault_entry_seal(vault, &vault->mem, entry, value, err) < 0 ||
        vault_file_save(vault, err) < 0)
        return -1;
    copy_record(mem, &entry->record, out);
    return 0;
}

static int save_bindings(struct vault *vault, struct arena *mem, struct entry *entry,
                         struct str data_key, struct vault_record *out, struct err *err)
{
    entry->record.changed_at = (int64_t)time(NULL);
    if (vault_entry_reseal(vault, &vault->mem, entry, data_key, err) < 0 ||
        vault_file_save(vault, err) < 0)
        return -1;
    copy_record(mem, &entry->record, out);
    return 0;
}

int vault_bind(struct vault *vault, struct arena *mem, const char *name,
               const struct vault_binding *binding, struct vault_record *out, struct err *err)
{
    AUTO(secret) struct secret *data_key = NULL;
    AUTO_FD int lock = begin(vault, err);
    struct vault_binding checked = *binding;
    struct vault_record with;
    struct entry *entry;

    if (lock < 0 || vault_binding_check(&checked, err) < 0)
        return -1;
    entry = find(vault, name);
    if (!entry)
        return missing(name, err);
    if (entry->record.binding_n == VAULT_BINDINGS_MAX)
        return err_set(err, ERR_LIMIT, "a secret has at most %d bindings", VAULT_BINDINGS_MAX);
    for (size_t i = 0; i < entry->record.binding_n; i++)
        if (strcmp(entry->record.bindings[i].id, checked.id) == 0)
            return err_set(err, ERR_CONFLICT, "%s has that binding: %s", name, checked.id);
    if (vault_entry_data_key(vault, entry, &data_key, err) < 0)
        return -1;
    copy_record(&vault->mem, &entry->record, &with);
    with.bindings[with.binding_n++] = checked;
    entry->record = with;
    return save_bindings(vault, mem, entry, secret_reveal(data_key), out, err);
}

int vault_unbind(struct vault *vault, struct arena *mem, const char *name, const char *binding_id,
                 struct vault_record *out, struct err *err)
{
    AUTO(secret) struct secret *data_key = NULL;
    AUTO_FD int lock = begin(vault, err);
    struct vault_record *record;
    struct entry *entry;
    size_t at = 0;

    if (lock < 0)
        return -1;
    entry = find(vault, name);
    if (!entry)
        return missing(name, err);
    record = &entry->record;
    while (at < record->binding_n && strcmp(record->bindings[at].id, binding_id) != 0)
        at++;
    if (at == record->binding_n)
        return err_set(err, ERR_NOT_FOUND, "%s has no binding \"%.32s\"", name, binding_id);
    if (vault_entry_data_key(vault, entry, &data_key, err) < 0)
        return -1;
    record->binding_n--;
    memmove(&record->bindings[at], &record->bindings[at + 1],
            (record->binding_n - at) * sizeof *record->bindings);
    return save_bindings(vault, mem, entry, secret_reveal(data_key), out, err);
}

int vault_remove(struct vault *vault, const char *name, struct err *err)
{
    AUTO_FD int lock = begin(vault, err);
    struct entry *entry;
    size_t at;

    if (lock < 0)
        return -1;
    entry = find(vault, name);
    if (!entry)
        return missing(name, err);
    at = (size_t)(entry - vault->entries);
    vault->n--;
    memmove(entry, entry + 1, (vault->n - at) * sizeof *entry);
    return vault_file_save(vault, err);
}

/* Every data key, out of the old seal and into the new one. */
static int rewrap(struct vault *vault, struct vault *with, struct err *err)
{
    for (size_t i = 0; i < vault->n; i++) {
        AUTO(secret) struct secret *data_key = NULL;

        if (vault_entry_data_key(vault, &vault->entries[i], &data_key, err) < 0 ||
            vault_entry_reseal(with, &vault->mem, &vault->entries[i], secret_reveal(data_key),
                               err) < 0)
            return -1;
    }
    return 0;
}

/* The new key exists before the file names it, and the old one until the file no longer does. */
int vault_rekey(struct vault *vault, enum vault_master master, struct str passphrase,
                struct err *err)
{
    AUTO(vault) struct vault *with = vault_new(-1);
    AUTO_FD int lock = begin(vault, err);
    struct master_ref old = vault->ref;

    if (lock < 0 || master_make(vault, master, passphrase, &with->ref, &with->master, err) < 0)
        return -1;
    CRASH_POINT("vault-key-made");
    if (master_keys(with, err) < 0 || rewrap(vault, with, err) < 0)
        return -1;
    secret_free(vault->master);
    secret_free(vault->mac_key);
    secret_free(vault->wrap_key);
    vault->ref = with->ref;
    vault->master = TAKE(with->master);
    vault->mac_key = TAKE(with->mac_key);
    vault->wrap_key = TAKE(with->wrap_key);
    if (vault_file_save(vault, err) < 0)
        return -1;
    CRASH_POINT("vault-rekeyed");
    master_forget(vault, &old);
    return 0;
}

/* ---- looking ---- */

int vault_show(struct vault *vault, struct arena *mem, const char *name, struct vault_record *out,
               struct err *err)
{
    const struct entry *entry;

    if (vault_file_load(vault, err) < 0)
        return -1;
    entry = find(vault, name);
    if (!entry)
        return missing(name, err);
    copy_record(mem, &entry->record, out);
    return 0;
}

int vault_list(struct vault *vault, struct arena *mem, struct vault_record **out, size_t *n,
               struct err *err)
{
    if (vault_file_load(vault, err) < 0)
        return -1;
    *out = arena_array(mem, struct vault_record, vault->n + 1);
    *n = vault->n;
    for (size_t i = 0; i < vault->n; i++)
        copy_record(mem, &vault->entries[i].record, &(*out)[i]);
    return 0;
}

uint64_t vault_generation(const struct vault *vault)
{
    return vault->generation;
}

struct str vault_master_reveal(const struct vault *vault)
{
    return vault->ref.kind == VAULT_KEY_FILE ? (struct str){"", 0} : secret_reveal(vault->master);
}

int vault_reveal(struct vault *vault, const struct vault_question *question,
                 struct vault_answer *out, struct err *err)
{
    const struct entry *entry;
    const struct vault_binding *fits = NULL;

    if (vault_file_load(vault, err) < 0)
        return -1;
    entry = find(vault, question->name);
    for (size_t i = 0; entry && !fits && i < entry->record.binding_n; i++)
        if (vault_binding_fits(&entry->record.bindings[i], question, true))
            fits = &entry->record.bindings[i];
    if (!entry || !fits)
        return err_set(err, ERR_FORBIDDEN,
                       "no secret \"%.64s\" is bound to this request: see brig vault bind",
                       question->name);
    if (vault_entry_open(vault, entry, &out->value, err) < 0)
        return -1;
    out->version = entry->record.version;
    memcpy(out->binding, fits->id, sizeof out->binding);
    return 0;
}

static bool has_slot(const struct vault_slot *slots, size_t n, const struct vault_slot *slot)
{
    for (size_t i = 0; i < n; i++)
        if (vault_slot_is_same(&slots[i], slot))
            return true;
    return false;
}

int vault_bound(struct vault *vault, const struct vault_question *question,
                struct vault_slot out[VAULT_BOUND_MAX], size_t *n, struct err *err)
{
    if (vault_file_load(vault, err) < 0)
        return -1;
    *n = 0;
    for (size_t i = 0; i < vault->n; i++)
        for (size_t k = 0; k < vault->entries[i].record.binding_n; k++) {
            const struct vault_binding *binding = &vault->entries[i].record.bindings[k];

            if (!vault_binding_fits(binding, question, false) || has_slot(out, *n, &binding->slot))
                continue;
            if (*n == VAULT_BOUND_MAX)
                return err_set(err, ERR_LIMIT, "more than %d slots are bound to one request",
                               VAULT_BOUND_MAX);
            out[(*n)++] = binding->slot;
        }
    return 0;
}
