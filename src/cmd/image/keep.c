/* SPDX-License-Identifier: Apache-2.0 */

/* Looking after the store: reading everything again, and removing what nothing names. */

#include "cmd/image/worker.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* ---- verify ---- */

static int verify_blob(struct job *job, const struct json *object, const char *digest_key,
                       const char *size_key, struct err *err)
{
    struct str text = STR_LIT("");
    int64_t size = 0;
    struct hash hash;

    if (!json_is_text(json_get(object, digest_key), &text) || !hash_from_text(text, &hash))
        return err_set(err, ERR_INTERNAL, "a request without digests");
    (void)json_is_int(json_get(object, size_key), &size);
    return blob_verify(job, arena_text(&job->mem, text), (uint64_t)size, err);
}

static int verify_layer(struct job *job, const struct json *layer, struct err *err)
{
    struct str diff_id = STR_LIT(""), wanted = STR_LIT("");
    char name[2 * HASH_BYTES + 8], digits[2 * HASH_BYTES + 1], seen[HASH_TEXT_BYTES];
    AUTO_FD int root = -1;
    AUTO_FD int list = -1;
    struct hash hash;
    struct seal seal;

    if (!json_is_text(json_get(layer, "diff_id"), &diff_id) || !hash_from_text(diff_id, &hash) ||
        !json_is_text(json_get(layer, "seal"), &wanted))
        return err_set(err, ERR_INTERNAL, "a request without digests");
    hex_encode(hash.b, sizeof hash.b, digits);
    (void)snprintf(name, sizeof name, "%s.list", digits);
    root = openat(job->layers_fd, digits, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    list = openat(job->layers_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (root < 0)
        return err_set(err, ERR_INTEGRITY, "layer sha256:%s is gone from the store", digits);
    /* The list only helps to name the entry; without it the seal alone decides. */
    if (seal_tree(job, root, -1, list, &seal, err) < 0)
        return err_in(err, "layer sha256:%s", digits);
    hash_text(&seal.hash, seen);
    if (!str_is(wanted, seen))
        return err_set(err, ERR_INTEGRITY,
                       "layer sha256:%s and its list were changed in the store after it was sealed",
                       digits);
    return 0;
}

int run_verify(struct job *job, struct err *err)
{
    const struct json *image = json_get(job->request, "image");
    const struct json *layers = json_get(image, "layers");

    if (!layers)
        return err_set(err, ERR_INTERNAL, "a check of nothing");
    if (verify_blob(job, image, "digest", "manifest_bytes", err) < 0 ||
        verify_blob(job, image, "config", "config_bytes", err) < 0)
        return -1;
    json_each(layer, layers) if (verify_blob(job, layer, "blob", "blob_bytes", err) < 0 ||
                                 verify_layer(job, layer, err) < 0) return -1;
    return event_done(job, json_object(&job->mem), err);
}

/* ---- sweep ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int read_keep(struct job *job, const char *key, const char ***out, size_t *n,
                     struct err *err)
{
    const struct json *list = json_get(job->request, key);
    const char **keep;

    if (!list || list->kind != JSON_ARRAY)
        return err_set(err, ERR_INTERNAL, "a sweep without \"%s\"", key);
    keep = arena_array(&job->mem, const char *, list->n + 1);
    *n = 0;
    json_each(item, list) keep[(*n)++] = arena_text(&job->mem, item->text);
    qsort(keep, *n, sizeof *keep, by_text);
    *out = keep;
    return 0;
}

/* By its digits; a layer's list goes with the layer. */
static bool is_kept(const char *name, const char **keep, size_t n)
{
    char digits[2 * HASH_BYTES + 1];
    const char *key = digits;
    struct str base = str_of(name);

    if (str_ends(base, ".list"))
        base.n -= strlen(".list");
    if (base.n != 2 * HASH_BYTES)
        return false;
    memcpy(digits, base.p, base.n);
    digits[base.n] = '\0';
    return n && bsearch(&key, keep, n, sizeof *keep, by_text) != NULL;
}

static int sweep_folder(struct job *job, int fd, const char **keep, size_t n, struct err *err)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    const struct dirent *entry;
    int failed = 0;

    if (!dir) {
        if (copy >= 0)
            (void)close(copy);
        return err_os(err, "listing the store");
    }
    while (!failed && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            is_kept(entry->d_name, keep, n))
            continue;
        failed = dir_remove(fd, entry->d_name, err) < 0 || job_in_time(job, err) < 0;
    }
    (void)closedir(dir);
    return failed ? -1 : 0;
}

int run_sweep(struct job *job, struct err *err)
{
    const char **blobs = NULL, **layers = NULL;
    size_t blob_n = 0, layer_n = 0;

    if (read_keep(job, "blobs", &blobs, &blob_n, err) < 0 ||
        read_keep(job, "layers", &layers, &layer_n, err) < 0 ||
        sweep_folder(job, job->temp_fd, NULL, 0, err) < 0 ||
        sweep_folder(job, job->blobs_fd, blobs, blob_n, err) < 0 ||
        sweep_folder(job, job->layers_fd, layers, layer_n, err) < 0)
        return -1;
    return event_done(job, json_object(&job->mem), err);
}
