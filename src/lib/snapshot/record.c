/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/snapshot/store-private.h"

#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define RECORD_VERSION 1

bool snapshot_is_id(const char *name)
{
    return strlen(name) == ID_BYTES - 1 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz234567") == ID_BYTES - 1;
}

/* ---- writing ---- */

static void put_words(struct arena *mem, struct json *object, const char *key, struct words words)
{
    struct json *array = json_array(mem);

    for (size_t i = 0; i < words.n; i++)
        json_push(array, json_text(mem, str_of(words.v[i])));
    json_put(object, key, array);
}

int snapshot_record_write(struct snapshot_store *store, const struct snapshot *snapshot,
                          const char *file, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    AUTO_BUF struct buf text = BUF(SNAPSHOT_RECORD_MAX);
    struct json *root = json_object(&mem);
    const char *path = arena_printf(&mem, "%s/%s/%s", store->dir, snapshot->id, file);

    json_put_int(&mem, root, "bytes", (int64_t)snapshot->bytes);
    json_put_text(&mem, root, "config", snapshot->config);
    json_put_text(&mem, root, "created_at", snapshot->created_at);
    json_put_int(&mem, root, "entries", (int64_t)snapshot->entries);
    json_put_int(&mem, root, "held_us", (int64_t)snapshot->held_us);
    json_put_text(&mem, root, "id", snapshot->id);
    json_put_text(&mem, root, "image", snapshot->image);
    json_put_text(&mem, root, "image_digest", snapshot->image_digest);
    put_words(&mem, root, "layers", snapshot->names);
    json_put_bool(&mem, root, "live", snapshot->live);
    json_put_text(&mem, root, "name", snapshot->name);
    json_put_text(&mem, root, "principal", snapshot->principal);
    json_put_bool(&mem, root, "removed", snapshot->removed);
    json_put_text(&mem, root, "sandbox_id", snapshot->sandbox_id);
    put_words(&mem, root, "stack", snapshot->stack);
    json_put_text(&mem, root, "tenant", snapshot->tenant);
    json_put_int(&mem, root, "v", RECORD_VERSION);
    if (json_canonical(root, &text, err) < 0)
        return err_in(err, "the record of a snapshot");
    /* One that is only begun means nothing after a power cut, which ends the sandbox, too. */
    return strcmp(file, "pending") == 0 ? file_exchange(path, text.p, text.n, 0600, err)
                                        : file_replace(path, text.p, text.n, 0600, err);
}

/* ---- reading: written by ourselves, into a folder only we can reach; checked all the same ---- */

static int take_text(struct arena *mem, const struct json *root, const char *key, const char **out,
                     struct err *err)
{
    struct str text = {NULL, 0};

    if (!json_is_text(json_get(root, key), &text) || memchr(text.p, '\0', text.n))
        return err_set(err, ERR_INTEGRITY, "\"%s\" is not a text", key);
    *out = arena_text(mem, text);
    return 0;
}

static int take_number(const struct json *root, const char *key, uint64_t *out, struct err *err)
{
    int64_t value = -1;

    if (!json_is_int(json_get(root, key), &value) || value < 0)
        return err_set(err, ERR_INTEGRITY, "\"%s\" is not a number", key);
    *out = (uint64_t)value;
    return 0;
}

static int take_words(struct arena *mem, const struct json *root, const char *key,
                      struct words *out, struct err *err)
{
    const struct json *list = json_get(root, key);
    const char **words;
    size_t n = 0;

    if (!list || list->kind != JSON_ARRAY || list->n > SNAPSHOT_STACK_MAX)
        return err_set(err, ERR_INTEGRITY, "\"%s\" is not a list", key);
    words = arena_array(mem, const char *, list->n + 1);
    json_each(item, list)
    {
        struct str text = {NULL, 0};

        /* They become parts of paths. */
        if (!json_is_text(item, &text) || memchr(text.p, '\0', text.n) || text.n == 0 ||
            memchr(text.p, '.', text.n))
            return err_set(err, ERR_INTEGRITY, "\"%s\" has an entry that is no name", key);
        words[n++] = arena_text(mem, text);
    }
    *out = (struct words){words, n};
    return 0;
}

static int take_all(struct arena *mem, const struct json *root, struct snapshot *out,
                    struct err *err)
{
    if (take_text(mem, root, "config", &out->config, err) < 0 ||
        take_text(mem, root, "created_at", &out->created_at, err) < 0 ||
        take_text(mem, root, "image", &out->image, err) < 0 ||
        take_text(mem, root, "image_digest", &out->image_digest, err) < 0 ||
        take_text(mem, root, "name", &out->name, err) < 0 ||
        take_text(mem, root, "principal", &out->principal, err) < 0 ||
        take_text(mem, root, "sandbox_id", &out->sandbox_id, err) < 0 ||
        take_text(mem, root, "tenant", &out->tenant, err) < 0 ||
        take_number(root, "bytes", &out->bytes, err) < 0 ||
        take_number(root, "entries", &out->entries, err) < 0 ||
        take_number(root, "held_us", &out->held_us, err) < 0 ||
        take_words(mem, root, "layers", &out->names, err) < 0 ||
        take_words(mem, root, "stack", &out->stack, err) < 0)
        return -1;
    if (!json_is_bool(json_get(root, "live"), &out->live) ||
        !json_is_bool(json_get(root, "removed"), &out->removed))
        return err_set(err, ERR_INTEGRITY, "\"live\" or \"removed\" is missing");
    return 0;
}

static const char *read_digest(struct snapshot_store *store, struct arena *mem, const char *id)
{
    AUTO_BUF struct buf text = BUF(KIB);
    struct hash hash;
    struct err ignored; /* it is not known yet */
    char path[64];

    (void)snprintf(path, sizeof path, "%s/digest", id);
    if (file_read(store->dir_fd, path, &text, &ignored) < 0 ||
        !hash_from_text(buf_str(&text), &hash))
        return "";
    return arena_text(mem, buf_str(&text));
}

int snapshot_record_read(struct snapshot_store *store, struct arena *mem, const char *id,
                         struct snapshot *out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(SNAPSHOT_RECORD_MAX);
    const struct json *root = NULL;
    struct mark where;
    char path[64];

    *out = (struct snapshot){.lock_fd = -1};
    if (!snapshot_is_id(id))
        return err_set(err, ERR_NOT_FOUND, "there is no snapshot \"%.100s\"", id);
    (void)snprintf(path, sizeof path, "%s/record", id);
    if (file_read(store->dir_fd, path, &text, err) < 0)
        return err->os == ENOENT
                   ? err_set(err, ERR_NOT_FOUND, "there is no snapshot \"%.100s\"", id)
                   : -1;
    if (json_parse(mem, buf_str(&text), &root, &where, err) < 0 ||
        take_all(mem, root, out, err) < 0) {
        err->code = ERR_INTEGRITY;
        return err_in(err, "the record of snapshot %s is damaged", id);
    }
    out->id = arena_text(mem, str_of(id));
    out->digest = read_digest(store, mem, id);
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const struct snapshot *one = a, *other = b;

    return strcmp(one->created_at, other->created_at);
}

int snapshot_record_list(struct snapshot_store *store, struct arena *mem, struct snapshot **out,
                         size_t *n, struct err *err)
{
    struct snapshot *list = arena_array(mem, struct snapshot, SNAPSHOT_STORE_MAX);
    DIR *dir = opendir(store->dir);
    const struct dirent *entry;
    size_t count = 0;
    int failed = 0;

    if (!dir)
        return err_os(err, "opening %s", store->dir);
    while (!failed && (entry = readdir(dir)) != NULL) {
        struct err absent;

        if (!snapshot_is_id(entry->d_name))
            continue;
        if (count == SNAPSHOT_STORE_MAX)
            failed =
                err_set(err, ERR_LIMIT, "more than %d snapshots; remove some", SNAPSHOT_STORE_MAX);
        else if (snapshot_record_read(store, mem, entry->d_name, &list[count], &absent) == 0)
            count++;
        else if (absent.code != ERR_NOT_FOUND)
            failed = (*err = absent, -1);
    }
    (void)closedir(dir);
    if (failed)
        return -1;
    qsort(list, count, sizeof *list, by_time);
    *out = list;
    *n = count;
    return 0;
}
