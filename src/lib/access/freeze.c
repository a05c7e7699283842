/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/access/freeze.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

#define LIST_BYTES_MAX (1 * MIB)
#define MAKERS_MEMORY_MAX (256 * KIB)

struct list {
    struct frozen *of;
    size_t n;
};

static void list_done(struct list *list)
{
    free(list->of);
    *list = (struct list){0};
}
#define AUTO_LIST __attribute__((cleanup(list_done)))

/* ---- the file ---- */

static bool copy_member(const struct json *object, const char *key, char *out, size_t size)
{
    struct str text = {0};

    if (!json_is_text(json_get(object, key), &text) || text.n >= size ||
        memchr(text.p, '\0', text.n))
        return false;
    memcpy(out, text.p, text.n);
    out[text.n] = '\0';
    return true;
}

/* Lists of before have no by_tenant. */
static bool read_entry(const struct json *object, struct frozen *out)
{
    return (!json_get(object, "by_tenant") ||
            copy_member(object, "by_tenant", out->by_tenant, sizeof out->by_tenant)) &&
           copy_member(object, "tenant", out->tenant, sizeof out->tenant) &&
           copy_member(object, "principal", out->principal, sizeof out->principal) &&
           copy_member(object, "by", out->by, sizeof out->by) &&
           copy_member(object, "reason", out->reason, sizeof out->reason) &&
           json_is_int(json_get(object, "since"), &out->since);
}

static int list_parse(struct str text, struct list *out, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(4 * LIST_BYTES_MAX);
    const struct json *root = NULL, *entries;
    struct mark where;

    if (json_parse(&mem, text, &root, &where, err) < 0)
        return err_in(err, "the list of what is frozen, line %u", where.line);
    entries = json_get(root, "frozen");
    if (!entries || entries->kind != JSON_ARRAY || entries->n > FROZEN_MAX)
        return err_set(err, ERR_INTEGRITY, "the list of what is frozen holds something else");
    out->of = xcalloc(entries->n + 1, sizeof *out->of);
    json_each(entry, entries)
    {
        if (!read_entry(entry, &out->of[out->n]))
            return err_set(err, ERR_INTEGRITY, "an entry of what is frozen is none");
        out->n++;
    }
    return 0;
}

static char *list_path(const char *state_dir, const char *name)
{
    size_t size = strlen(state_dir) + 1 + strlen(name) + 1;
    char *path = xmalloc(size);

    (void)snprintf(path, size, "%s/%s", state_dir, name);
    return path;
}

/* Nothing frozen is an empty list, and a missing file. */
static int list_read(const char *path, struct list *out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(LIST_BYTES_MAX);

    *out = (struct list){0};
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    if (file_read(AT_FDCWD, path, &text, err) < 0)
        return -1;
    if (list_parse(buf_str(&text), out, err) == 0)
        return 0;
    list_done(out);
    err->code = ERR_INTEGRITY;
    return err_in(err, "%s freezes everybody until it is mended or removed", path);
}

static int list_write(const char *path, const struct list *list, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(4 * LIST_BYTES_MAX);
    AUTO_BUF struct buf text = BUF(LIST_BYTES_MAX);
    struct json *root = json_object(&mem), *entries = json_array(&mem);

    for (size_t i = 0; i < list->n; i++) {
        struct json *entry = json_object(&mem);

        json_put_text(&mem, entry, "tenant", list->of[i].tenant);
        json_put_text(&mem, entry, "principal", list->of[i].principal);
        json_put_int(&mem, entry, "since", list->of[i].since);
        json_put_text(&mem, entry, "by", list->of[i].by);
        json_put_text(&mem, entry, "by_tenant", list->of[i].by_tenant);
        json_put_text(&mem, entry, "reason", list->of[i].reason);
        json_push(entries, entry);
    }
    json_put(root, "frozen", entries);
    if (json_canonical(root, &text, err) < 0)
        return -1;
    return file_replace(path, buf_str(&text).p, buf_str(&text).n, 0600, err);
}

/* ---- changing it ---- */

struct change {
    char *path;
    int lock_fd;
    struct list list;
};

static void change_done(struct change *change)
{
    if (change->lock_fd >= 0)
        (void)close(change->lock_fd); /* and the lock with it */
    list_done(&change->list);
    free(change->path);
}
#define AUTO_CHANGE __attribute__((cleanup(change_done)))

/* Readers need no lock: the file is replaced whole. */
static int change_begin(const char *state_dir, struct change *out, struct err *err)
{
    AUTO_FREE char *lock = list_path(state_dir, "frozen.lock");

    out->path = list_path(state_dir, "frozen.json");
    out->lock_fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (out->lock_fd < 0)
        return err_os(err, "opening %s", lock);
    if (file_lock(out->lock_fd, lock, err) < 0)
        return -1;
    return list_read(out->path, &out->list, err);
}

static struct frozen *list_find(const struct list *list, const char *tenant, const char *principal)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->of[i].tenant, tenant) == 0 &&
            strcmp(list->of[i].principal, principal) == 0)
            return &list->of[i];
    return NULL;
}

static bool is_machines(const struct frozen *entry)
{
    return !entry->by_tenant[0] || strcmp(entry->by_tenant, TENANT_DEFAULT) == 0;
}

/* What whoever has the machine stopped does not start again by a tenant's word. */
static int check_standing(const struct frozen *there, const struct frozen *entry, struct err *err)
{
    if (is_machines(there) && !is_machines(entry))
        return err_set(err, ERR_FORBIDDEN,
                       "that was frozen by %.64s, who has this machine; only they can change it",
                       there->by);
    return 0;
}

int freeze_add(const char *state_dir, const struct frozen *entry, struct err *err)
{
    AUTO_CHANGE struct change change = {.lock_fd = -1};
    struct frozen *same;

    if (change_begin(state_dir, &change, err) < 0)
        return -1;
    same = list_find(&change.list, entry->tenant, entry->principal);
    if (same) {
        if (check_standing(same, entry, err) < 0)
            return -1;
        *same = *entry;
        return list_write(change.path, &change.list, err);
    }
    if (change.list.n >= FROZEN_MAX)
        return err_set(err, ERR_LIMIT, "%d are frozen already; freeze the whole tenant",
                       FROZEN_MAX);
    change.list.of = xrealloc(change.list.of, (change.list.n + 1) * sizeof *change.list.of);
    change.list.of[change.list.n++] = *entry;
    return list_write(change.path, &change.list, err);
}

int freeze_remove(const char *state_dir, const struct frozen *entry, struct frozen *out,
                  struct err *err)
{
    AUTO_CHANGE struct change change = {.lock_fd = -1};
    struct frozen *found, removed;

    if (change_begin(state_dir, &change, err) < 0)
        return -1;
    found = list_find(&change.list, entry->tenant, entry->principal);
    if (!found)
        return err_set(err, ERR_NOT_FOUND,
                       "that is not frozen; \"brig freeze --status\" tells what is");
    if (check_standing(found, entry, err) < 0)
        return -1;
    removed = *found;
    memmove(found, found + 1,
            (size_t)(change.list.of + change.list.n - (found + 1)) * sizeof *found);
    change.list.n--;
    if (list_write(change.path, &change.list, err) < 0)
        return -1;
    *out = removed;
    return 0;
}

int freeze_each(const char *state_dir,
                int (*on_entry)(void *context, const struct frozen *entry, struct err *err),
                void *context, struct err *err)
{
    AUTO_FREE char *path = list_path(state_dir, "frozen.json");
    AUTO_LIST struct list list = {0};

    if (list_read(path, &list, err) < 0)
        return -1;
    for (size_t i = 0; i < list.n; i++)
        if (on_entry(context, &list.of[i], err) < 0)
            return -1;
    return 0;
}

/* ---- looking ---- */

struct freezer {
    char *state_dir;
    char *path;
    struct access *access; /* NULL until somebody asks who made a token */
    pthread_mutex_t lock;
    struct stat seen; /* of the file that is in memory; st_ino 0: there was none */
    bool is_readable;
    struct list list;
};

struct freezer *freezer_new(const char *state_dir)
{
    struct freezer *freezer = xcalloc(1, sizeof *freezer);

    freezer->state_dir = xstrdup(state_dir);
    freezer->path = list_path(state_dir, "frozen.json");
    freezer->is_readable = true;
    (void)pthread_mutex_init(&freezer->lock, NULL);
    return freezer;
}

void freezer_free(struct freezer *freezer)
{
    if (!freezer)
        return;
    (void)pthread_mutex_destroy(&freezer->lock);
    list_done(&freezer->list);
    access_free(freezer->access);
    free(freezer->state_dir);
    free(freezer->path);
    free(freezer);
}

/* A file that is replaced has another inode, or at least another time. */
static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Under the lock. */
static void look_again(struct freezer *freezer)
{
    struct stat now = {0};
    struct err err;

    if (stat(freezer->path, &now) < 0) {
        bool is_missing = errno == ENOENT;

        now = (struct stat){0};
        list_done(&freezer->list);
        freezer->is_readable = is_missing;
    } else if (!is_same_file(&now, &freezer->seen) || !freezer->is_readable) {
        list_done(&freezer->list);
        freezer->is_readable = list_read(freezer->path, &freezer->list, &err) == 0;
    }
    freezer->seen = now;
}

static bool concerns(const struct frozen *entry, const char *tenant, const char *principal)
{
    return (!entry->tenant[0] || strcmp(entry->tenant, tenant) == 0) &&
           (!entry->principal[0] || strcmp(entry->principal, principal) == 0);
}

static const struct frozen *entry_for(const struct list *list, const char *tenant,
                                      const char *principal)
{
    for (size_t i = 0; i < list->n; i++)
        if (concerns(&list->of[i], tenant, principal))
            return &list->of[i];
    return NULL;
}

static bool names_somebody(const struct list *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->of[i].principal[0])
            return true;
    return false;
}

/* The entry of whoever has made one of its tokens, and so on. */
static int entry_above(struct freezer *freezer, const struct actor *actor,
                       const struct frozen **out, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(MAKERS_MEMORY_MAX);
    char name[PRINCIPAL_BYTES];
    const char *makers = "";
    struct str rest;

    *out = NULL;
    if ((!freezer->access && access_open(freezer->state_dir, &freezer->access, err) < 0) ||
        access_makers(freezer->access, &mem, actor->made_by, &makers, err) < 0)
        return -1;
    rest = str_of(makers);
    while (rest.n && !*out) {
        struct str maker = str_cut(&rest, ' ');

        (void)snprintf(name, sizeof name, STR_FMT, STR_ARG(maker));
        *out = entry_for(&freezer->list, actor->tenant, name);
    }
    return 0;
}

/* Under the lock. */
static bool is_stopped(struct freezer *freezer, const struct actor *actor, struct frozen *out)
{
    const struct frozen *entry;
    struct err err;

    *out = (struct frozen){.reason = "the list of what is frozen cannot be read"};
    if (!freezer->is_readable)
        return true;
    entry = entry_for(&freezer->list, actor->tenant, actor->principal);
    if (!entry && actor->made_by && *actor->made_by && names_somebody(&freezer->list)) {
        entry = entry_for(&freezer->list, actor->tenant, actor->made_by);
        if (!entry && entry_above(freezer, actor, &entry, &err) < 0) {
            (void)snprintf(out->reason, sizeof out->reason,
                           "who has made this token cannot be told, and somebody is frozen: %.160s",
                           err.text);
            return true;
        }
    }
    if (entry)
        *out = *entry;
    return entry != NULL;
}

bool freezer_stops(struct freezer *freezer, const struct actor *actor, struct frozen *out)
{
    bool stops;

    (void)pthread_mutex_lock(&freezer->lock);
    look_again(freezer);
    stops = is_stopped(freezer, actor, out);
    (void)pthread_mutex_unlock(&freezer->lock);
    return stops;
}
