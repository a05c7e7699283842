/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/image/store-private.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define RECORD_VERSION 1
#define HEX_DIGITS 64

/* ---- reading ---- */

static int need_text(struct arena *mem, const struct json *object, const char *key,
                     const char **out, struct err *err)
{
    struct str text = {NULL, 0};

    if (!json_is_text(json_get(object, key), &text) || memchr(text.p, '\0', text.n))
        return err_set(err, ERR_INTEGRITY, "\"%s\" is not a text", key);
    *out = arena_text(mem, text);
    return 0;
}

static int need_digest(const struct json *object, const char *key, char out[HASH_TEXT_BYTES],
                       struct err *err)
{
    struct str text = {NULL, 0};
    struct hash hash;

    if (!json_is_text(json_get(object, key), &text) || !hash_from_text(text, &hash))
        return err_set(err, ERR_INTEGRITY, "\"%s\" is not a digest", key);
    hash_text(&hash, out);
    return 0;
}

static int need_number(const struct json *object, const char *key, uint64_t *out, struct err *err)
{
    int64_t n = -1;

    if (!json_is_int(json_get(object, key), &n) || n < 0)
        return err_set(err, ERR_INTEGRITY, "\"%s\" is not a number", key);
    *out = (uint64_t)n;
    return 0;
}

static int need_words(struct arena *mem, const struct json *object, const char *key,
                      struct words *out, struct err *err)
{
    const struct json *list = json_get(object, key);
    const char **words;
    size_t n = 0;

    if (!list || list->kind != JSON_ARRAY)
        return err_set(err, ERR_INTEGRITY, "\"%s\" is not a list", key);
    words = arena_array(mem, const char *, list->n + 1);
    json_each(item, list)
    {
        struct str text = {NULL, 0};

        if (!json_is_text(item, &text) || memchr(text.p, '\0', text.n))
            return err_set(err, ERR_INTEGRITY, "\"%s\" has an entry that is no text", key);
        words[n++] = arena_text(mem, text);
    }
    *out = (struct words){words, n};
    return 0;
}

/* Device and inode numbers may have all 64 bits, which a JSON number has not. */
static int need_long(const struct json *object, const char *key, uint64_t *out, struct err *err)
{
    struct str text = {NULL, 0};

    if (!json_is_text(json_get(object, key), &text) || !str_u64(text, out))
        return err_set(err, ERR_INTEGRITY, "\"%s\" is not a number as text", key);
    return 0;
}

/* The facts of the folder are ours to add: they are absent in what `image` answers. */
static int take_facts(const struct json *item, struct image_layer *layer, struct err *err)
{
    const struct json *folder = json_get(item, "folder");

    if (!folder)
        return 0;
    return need_long(folder, "device", &layer->device, err) < 0 ||
                   need_long(folder, "inode", &layer->inode, err) < 0 ||
                   need_number(folder, "changed_s", &layer->changed_s, err) < 0 ||
                   need_number(folder, "changed_ns", &layer->changed_ns, err) < 0
               ? -1
               : 0;
}

static int take_layer(const struct image_store *store, struct arena *mem, const struct json *item,
                      struct image_layer *layer, struct err *err)
{
    if (need_digest(item, "diff_id", layer->diff_id, err) < 0 ||
        need_digest(item, "blob", layer->blob, err) < 0 ||
        need_digest(item, "seal", layer->seal, err) < 0 ||
        need_text(mem, item, "media_type", &layer->media_type, err) < 0 ||
        need_number(item, "blob_bytes", &layer->blob_bytes, err) < 0 ||
        need_number(item, "bytes", &layer->bytes, err) < 0 ||
        need_number(item, "entries", &layer->entries, err) < 0 ||
        need_number(item, "left_out", &layer->left_out, err) < 0 ||
        take_facts(item, layer, err) < 0)
        return err_in(err, "layer");
    layer->path =
        arena_printf(mem, "%s/content/layers/%s", store->dir, layer->diff_id + strlen("sha256:"));
    return 0;
}

static int take_layers(const struct image_store *store, struct arena *mem, const struct json *list,
                       struct image *image, struct err *err)
{
    struct image_layer *layers;

    if (!list || list->kind != JSON_ARRAY || list->n > IMAGE_LAYERS_MAX)
        return err_set(err, ERR_INTEGRITY, "\"layers\" is not a list of layers");
    layers = arena_array(mem, struct image_layer, list->n + 1);
    json_each(item, list)
    {
        if (take_layer(store, mem, item, &layers[image->layer_n], err) < 0)
            return -1;
        image->layer_n++;
    }
    image->layers = layers;
    return 0;
}

static int take_image(const struct image_store *store, struct arena *mem, const struct json *root,
                      struct image *image, struct err *err)
{
    uint64_t version = 0;

    if (need_number(root, "v", &version, err) < 0)
        return -1;
    if (version != RECORD_VERSION)
        return err_set(err, ERR_UNAVAILABLE,
                       "written by another version of Brig; remove the image and get it again");
    if (json_get(root, "index") && need_digest(root, "index", image->index, err) < 0)
        return -1;
    image->added = "";
    if (json_get(root, "added") && need_text(mem, root, "added", &image->added, err) < 0)
        return -1;
    if (need_digest(root, "digest", image->digest, err) < 0 ||
        need_digest(root, "config", image->config, err) < 0 ||
        need_text(mem, root, "media_type", &image->media_type, err) < 0 ||
        need_text(mem, root, "architecture", &image->architecture, err) < 0 ||
        need_number(root, "manifest_bytes", &image->manifest_bytes, err) < 0 ||
        need_number(root, "config_bytes", &image->config_bytes, err) < 0 ||
        need_words(mem, root, "env", &image->env, err) < 0 ||
        need_words(mem, root, "entrypoint", &image->entrypoint, err) < 0 ||
        need_words(mem, root, "command", &image->command, err) < 0 ||
        need_text(mem, root, "workdir", &image->workdir, err) < 0 ||
        need_text(mem, root, "user", &image->user, err) < 0)
        return -1;
    image->names = (struct words){arena_array(mem, const char *, 1), 0};
    return take_layers(store, mem, json_get(root, "layers"), image, err);
}

int image_record_parse(const struct image_store *store, struct arena *mem, struct str text,
                       struct image *out, struct err *err)
{
    const struct json *root = NULL;
    struct image image = {.digest = ""};
    struct mark where = {0, 0};

    if (json_parse(mem, text, &root, &where, err) < 0) {
        err->code = ERR_INTEGRITY;
        return err_in(err, "line %u, column %u", where.line, where.column);
    }
    if (take_image(store, mem, root, &image, err) < 0)
        return -1;
    *out = image;
    return 0;
}

/* ---- writing ---- */

static struct json *words_json(struct arena *mem, const struct words *words)
{
    struct json *list = json_array(mem);

    for (size_t i = 0; i < words->n; i++)
        json_push(list, json_text(mem, str_of(words->v[i])));
    return list;
}

static struct json *layer_json(struct arena *mem, const struct image_layer *layer)
{
    struct json *item = json_object(mem), *folder = json_object(mem);

    json_put_text(mem, item, "diff_id", layer->diff_id);
    json_put_text(mem, item, "blob", layer->blob);
    json_put_text(mem, item, "seal", layer->seal);
    json_put_text(mem, item, "media_type", layer->media_type);
    json_put_int(mem, item, "blob_bytes", (int64_t)layer->blob_bytes);
    json_put_int(mem, item, "bytes", (int64_t)layer->bytes);
    json_put_int(mem, item, "entries", (int64_t)layer->entries);
    json_put_int(mem, item, "left_out", (int64_t)layer->left_out);
    json_put_text(mem, folder, "device",
                  arena_printf(mem, "%llu", (unsigned long long)layer->device));
    json_put_text(mem, folder, "inode",
                  arena_printf(mem, "%llu", (unsigned long long)layer->inode));
    json_put_int(mem, folder, "changed_s", (int64_t)layer->changed_s);
    json_put_int(mem, folder, "changed_ns", (int64_t)layer->changed_ns);
    json_put(item, "folder", folder);
    return item;
}

struct json *record_json(struct arena *mem, const struct image *image)
{
    struct json *root = json_object(mem), *layers = json_array(mem);

    json_put_int(mem, root, "v", RECORD_VERSION);
    json_put_text(mem, root, "digest", image->digest);
    json_put_text(mem, root, "config", image->config);
    if (*image->index)
        json_put_text(mem, root, "index", image->index);
    json_put_text(mem, root, "media_type", image->media_type);
    json_put_text(mem, root, "architecture", image->architecture);
    if (*image->added)
        json_put_text(mem, root, "added", image->added);
    json_put_int(mem, root, "manifest_bytes", (int64_t)image->manifest_bytes);
    json_put_int(mem, root, "config_bytes", (int64_t)image->config_bytes);
    json_put(root, "env", words_json(mem, &image->env));
    json_put(root, "entrypoint", words_json(mem, &image->entrypoint));
    json_put(root, "command", words_json(mem, &image->command));
    json_put_text(mem, root, "workdir", image->workdir);
    json_put_text(mem, root, "user", image->user);
    for (size_t i = 0; i < image->layer_n; i++)
        json_push(layers, layer_json(mem, &image->layers[i]));
    json_put(root, "layers", layers);
    return root;
}

/* ---- files ---- */

int image_record_path(const char *digest, char *out, size_t size, struct err *err)
{
    struct hash hash;

    /* It becomes a file name: nothing but hex may stand in it. */
    if (!hash_from_text(str_of(digest), &hash))
        return err_set(err, ERR_INTEGRITY, "\"%.80s\" is not a digest", digest);
    (void)snprintf(out, size, "records/%s.json", digest + strlen("sha256:"));
    return 0;
}

int image_record_write(const struct image_store *store, const struct image *image, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(IMAGE_MEMORY_MAX);
    AUTO_BUF struct buf text = BUF(IMAGE_RECORD_MAX);
    char name[HASH_TEXT_BYTES + 32];

    if (image_record_path(image->digest, name, sizeof name, err) < 0)
        return -1;
    if (json_canonical(record_json(&mem, image), &text, err) < 0)
        return err_in(err, "record of the image");
    return file_replace(arena_printf(&mem, "%s/%s", store->dir, name), text.p, text.n, 0600, err);
}

int image_record_read(const struct image_store *store, struct arena *mem, const char *digest,
                      struct image *out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(IMAGE_RECORD_MAX);
    char name[HASH_TEXT_BYTES + 32];
    struct image image;

    if (image_record_path(digest, name, sizeof name, err) < 0)
        return -1;
    if (file_read(store->dir_fd, name, &text, err) < 0) {
        if (err->os == ENOENT)
            return err_set(err, ERR_NOT_FOUND, "there is no image %s", digest);
        return -1;
    }
    if (image_record_parse(store, mem, buf_str(&text), &image, err) < 0)
        return err_in(err, "%s/%s", store->dir, name);
    if (strcmp(image.digest, digest) != 0)
        return err_set(err, ERR_INTEGRITY, "%s/%s is the record of another image", store->dir,
                       name);
    *out = image;
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int image_record_list(const struct image_store *store, struct arena *mem, const char ***out,
                      size_t *n, struct err *err)
{
    const char **found = arena_array(mem, const char *, IMAGE_STORE_MAX);
    int fd = openat(store->dir_fd, "records", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    size_t count = 0;

    if (!dir) {
        if (fd >= 0)
            (void)close(fd);
        return err_os(err, "listing %s/records", store->dir);
    }
    while ((entry = readdir(dir)) != NULL) {
        struct str name = str_of(entry->d_name);
        struct hash hash;
        const char *digest;

        if (name.n != HEX_DIGITS + strlen(".json") || !str_ends(name, ".json"))
            continue; /* a half-written one, under its temporary name */
        digest = arena_printf(mem, "sha256:%.*s", HEX_DIGITS, name.p);
        if (!hash_from_text(str_of(digest), &hash))
            continue;
        if (count == IMAGE_STORE_MAX) {
            (void)closedir(dir);
            return err_set(err, ERR_LIMIT, "more than %d images; remove some", IMAGE_STORE_MAX);
        }
        found[count++] = digest;
    }
    (void)closedir(dir);
    qsort(found, count, sizeof *found, by_text);
    *out = found;
    *n = count;
    return 0;
}

int layer_look(const struct image_store *store, struct image_layer *layer, struct err *err)
{
    char name[HASH_TEXT_BYTES + 16];
    struct stat st;

    (void)snprintf(name, sizeof name, "layers/%s", layer->diff_id + strlen("sha256:"));
    if (fstatat(store->content_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
        return err_set(err, ERR_INTEGRITY, "layer %s is gone from the store", layer->diff_id);
    layer->device = st.st_dev;
    layer->inode = st.st_ino;
    layer->changed_s = (uint64_t)st.st_ctim.tv_sec;
    layer->changed_ns = (uint64_t)st.st_ctim.tv_nsec;
    return 0;
}
