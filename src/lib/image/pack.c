/* SPDX-License-Identifier: Apache-2.0 */

/* Trees as layers, and back: requests to the program `image`, and its answers checked. */

#include "lib/image/store-private.h"

#include "lib/base/limits.h"
#include "lib/image/manifest.h"

#include <fcntl.h>
#include <string.h>

/* ---- requests ---- */

static void put_trees(struct arena *mem, struct json *request, const struct image_tree *trees,
                      size_t n)
{
    struct json *list = json_array(mem);

    for (size_t i = 0; i < n; i++)
        json_push(list, json_text(mem, str_of(trees[i].prefix)));
    json_put(request, "trees", list);
}

static int put_notes(struct arena *mem, struct json *request, const struct image_pack *pack,
                     struct err *err)
{
    struct json *notes = json_object(mem);
    struct image_notes checked;

    for (size_t i = 0; i < pack->note_n; i++)
        json_put_text(mem, notes, pack->notes[i].key, pack->notes[i].value);
    if (image_notes_read(mem, notes, &checked, err) < 0)
        return -1;
    json_put(request, "notes", notes);
    return 0;
}

/* ---- answers ---- */

static int take_digest(const struct json *answer, const char *key, char out[HASH_TEXT_BYTES],
                       struct err *err)
{
    struct str text = STR_LIT("");
    struct hash hash;

    if (!json_is_text(json_get(answer, key), &text) || !hash_from_text(text, &hash))
        return err_set(err, ERR_INTERNAL, "the program \"image\" answers without \"%s\"", key);
    hash_text(&hash, out);
    return 0;
}

static int take_number(const struct json *answer, const char *key, uint64_t *out, struct err *err)
{
    int64_t n = 0;

    if (!json_is_int(json_get(answer, key), &n) || n < 0)
        return err_set(err, ERR_INTERNAL, "the program \"image\" answers without \"%s\"", key);
    *out = (uint64_t)n;
    return 0;
}

static int take_text(struct arena *mem, const struct json *item, const char *key, const char **out,
                     struct err *err)
{
    AUTO_BUF struct buf shown = BUF(IMAGE_EVENT_MAX);
    struct str text = STR_LIT("");

    if (!json_is_text(json_get(item, key), &text) || memchr(text.p, '\0', text.n) ||
        text_escape(text, &shown, err) < 0)
        return err_set(err, ERR_INTERNAL, "the program \"image\" answers without \"%s\"", key);
    /* It has escaped the path already; anything that would still need it is not from us. */
    *out = arena_text(mem, strcmp(key, "path") == 0 ? text : buf_str(&shown));
    return 0;
}

static int take_left_out(struct arena *mem, const struct json *list, struct image_packed *out,
                         struct err *err)
{
    struct image_left_out *items;

    if (!list || list->kind != JSON_ARRAY || list->n > IMAGE_LEFT_OUT_MAX)
        return err_set(err, ERR_INTERNAL, "the program \"image\" answers without a report");
    items = arena_array(mem, struct image_left_out, list->n + 1);
    json_each(item, list)
    {
        struct image_left_out *left = &items[out->left_out_n++];

        if (take_text(mem, item, "path", &left->path, err) < 0 ||
            take_text(mem, item, "rule", &left->rule, err) < 0 ||
            take_text(mem, item, "action", &left->action, err) < 0 ||
            take_number(item, "count", &left->count, err) < 0)
            return -1;
    }
    out->left_out = items;
    return 0;
}

/* ---- packing ---- */

struct pack_run {
    struct image_store *store;
    struct arena *mem;
    const struct image_pack *pack;
    const struct image_progress *progress;
    const struct json *answer;
};

static int write_pack(int fd, void *context, struct err *err)
{
    struct pack_run *run = context;
    const struct image_pack *pack = run->pack;
    struct json *request = json_object(run->mem);
    AUTO_FD int lock = -1;

    json_put_text(run->mem, request, "do", "pack");
    json_put_text(run->mem, request, "architecture", image_architecture());
    json_put_bool(run->mem, request, "filter", pack->filter);
    if (pack->name)
        json_put_text(run->mem, request, "name", pack->name);
    put_trees(run->mem, request, pack->trees, pack->tree_n);
    if (put_notes(run->mem, request, pack, err) < 0 || store_lock(run->store, &lock, err) < 0)
        return -1;
    return worker_run(
        run->store, run->mem, request,
        &(struct worker_hands){lock, fd, -1, pack->timeout_ms, pack->trees, pack->tree_n},
        run->progress, &run->answer, err);
}

int image_pack(struct image_store *store, struct arena *mem, const struct image_pack *pack,
               const struct image_progress *progress, struct image_packed *out, struct err *err)
{
    struct pack_run run = {store, mem, pack, progress, NULL};
    struct image_packed packed = {0};

    /* Somebody's files: nobody else's to read. */
    if (file_make(pack->output, 0600, write_pack, &run, err) < 0)
        return -1;
    if (take_digest(run.answer, "digest", packed.digest, err) < 0 ||
        take_digest(run.answer, "diff_id", packed.diff_id, err) < 0 ||
        take_number(run.answer, "entries", &packed.entries, err) < 0 ||
        take_number(run.answer, "bytes", &packed.bytes, err) < 0 ||
        take_number(run.answer, "specials", &packed.specials, err) < 0 ||
        take_number(run.answer, "dropped", &packed.dropped, err) < 0 ||
        take_number(run.answer, "replaced", &packed.replaced, err) < 0 ||
        take_number(run.answer, "not_listed", &packed.not_listed, err) < 0 ||
        take_left_out(mem, json_get(run.answer, "left_out"), &packed, err) < 0)
        return -1;
    *out = packed;
    return 0;
}

struct json *image_packed_json(struct arena *mem, const struct image_packed *packed)
{
    struct json *root = json_object(mem), *list = json_array(mem);

    json_put_text(mem, root, "image_digest", packed->digest);
    json_put_text(mem, root, "diff_id", packed->diff_id);
    json_put_int(mem, root, "entries", (int64_t)packed->entries);
    json_put_int(mem, root, "bytes", (int64_t)packed->bytes);
    json_put_int(mem, root, "specials", (int64_t)packed->specials);
    json_put_int(mem, root, "dropped", (int64_t)packed->dropped);
    json_put_int(mem, root, "replaced", (int64_t)packed->replaced);
    for (size_t i = 0; i < packed->left_out_n; i++) {
        struct json *item = json_object(mem);

        json_put_text(mem, item, "path", packed->left_out[i].path);
        json_put_text(mem, item, "rule", packed->left_out[i].rule);
        json_put_text(mem, item, "action", packed->left_out[i].action);
        json_put_int(mem, item, "count", (int64_t)packed->left_out[i].count);
        json_push(list, item);
    }
    json_put(root, "left_out", list);
    json_put_int(mem, root, "not_listed", (int64_t)packed->not_listed);
    return root;
}

/* ---- unpacking ---- */

static int run_unpack(struct image_store *store, struct arena *mem,
                      const struct image_unpack *unpack, const struct image_progress *progress,
                      struct image_unpacked *out, struct err *err)
{
    struct json *request = json_object(mem);
    struct image_unpacked unpacked = {0};
    const struct json *answer = NULL;
    struct image_notes notes;
    AUTO_FD int lock = -1;
    AUTO_FD int source = open(unpack->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (source < 0)
        return err_os(err, "opening");
    json_put_text(mem, request, "do", "unpack");
    json_put_text(mem, request, "architecture", image_architecture());
    put_trees(mem, request, unpack->trees, unpack->tree_n);
    if (store_lock(store, &lock, err) < 0 ||
        worker_run(store, mem, request,
                   &(struct worker_hands){lock, source, -1, unpack->timeout_ms, unpack->trees,
                                          unpack->tree_n},
                   progress, &answer, err) < 0 ||
        take_digest(answer, "digest", unpacked.digest, err) < 0 ||
        take_digest(answer, "diff_id", unpacked.diff_id, err) < 0 ||
        take_number(answer, "entries", &unpacked.entries, err) < 0 ||
        take_number(answer, "bytes", &unpacked.bytes, err) < 0 ||
        image_notes_read(mem, json_get(answer, "notes"), &notes, err) < 0)
        return -1;
    unpacked.notes = notes.v;
    unpacked.note_n = notes.n;
    *out = unpacked;
    return 0;
}

int image_unpack(struct image_store *store, struct arena *mem, const struct image_unpack *unpack,
                 const struct image_progress *progress, struct image_unpacked *out, struct err *err)
{
    int failed = run_unpack(store, mem, unpack, progress, out, err);

    store_tidy(store); /* the archive's blobs are no image's */
    return failed ? err_in(err, "%s", unpack->path) : 0;
}

int image_unpack_look(struct image_store *store, struct arena *mem, const char *path,
                      uint64_t timeout_ms, struct image_unpacked *out, struct err *err)
{
    return image_unpack(store, mem, &(struct image_unpack){.path = path, .timeout_ms = timeout_ms},
                        NULL, out, err);
}

/* ---- hashing ---- */

int image_tree_hash(struct image_store *store, int folder_fd, uint64_t timeout_ms,
                    struct image_tree_hash *out, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(IMAGE_MEMORY_MAX);
    struct image_tree tree = {folder_fd, ""};
    struct json *request = json_object(&mem);
    struct image_tree_hash hash = {0};
    const struct json *answer = NULL;
    AUTO_FD int lock = -1;

    json_put_text(&mem, request, "do", "hash");
    put_trees(&mem, request, &tree, 1);
    if (store_lock(store, &lock, err) < 0 ||
        worker_run(store, &mem, request, &(struct worker_hands){lock, -1, -1, timeout_ms, &tree, 1},
                   NULL, &answer, err) < 0 ||
        take_digest(answer, "digest", hash.digest, err) < 0 ||
        take_number(answer, "entries", &hash.entries, err) < 0 ||
        take_number(answer, "bytes", &hash.bytes, err) < 0)
        return -1;
    *out = hash;
    return 0;
}
