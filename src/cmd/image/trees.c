/* SPDX-License-Identifier: Apache-2.0 */

/* Layers back into folders: each entry by the longest prefix that holds it. */

#include "cmd/image/extract.h"

#include "lib/base/io.h"

#include <archive.h>
#include <archive_entry.h>
#include <string.h>

struct forest {
    struct job *job;
    struct extractor trees[IMAGE_TREES_MAX];
};

int trees_check(const struct job *job, struct err *err)
{
    char plain[PATH_BYTES_MAX];

    for (size_t i = 0; i < job->tree_n; i++) {
        const char *prefix = job->trees[i].prefix;

        if (layer_path(str_of(prefix), plain, err) < 0)
            return err_in(err, "place \"%.100s\"", prefix);
        if (strcmp(plain, prefix) != 0)
            return err_set(err, ERR_INVALID, "place \"%.100s\": should be \"%.100s\"", prefix,
                           plain);
        for (size_t j = 0; j < i; j++)
            if (strcmp(prefix, job->trees[j].prefix) == 0)
                return err_set(err, ERR_INVALID, "place \"%.100s\" is there twice", prefix);
    }
    return 0;
}

/* ---- which tree ---- */

/* What is left of path below prefix, or NULL. */
static const char *below(const char *path, const char *prefix)
{
    size_t n = strlen(prefix);

    if (!n)
        return path;
    if (strncmp(path, prefix, n) != 0 || (path[n] != '/' && path[n] != '\0'))
        return NULL;
    return path[n] ? path + n + 1 : path + n;
}

static size_t find_tree(const struct job *job, const char *path, const char **out_rest)
{
    size_t best = job->tree_n, best_n = 0;

    for (size_t i = 0; i < job->tree_n; i++) {
        const char *rest = below(path, job->trees[i].prefix);
        size_t n = strlen(job->trees[i].prefix);

        if (rest && (best == job->tree_n || n > best_n)) {
            best = i;
            best_n = n;
            *out_rest = rest;
        }
    }
    return best;
}

/* Folders on the way to a tree may be named; nothing is made for them. */
static bool is_above(const struct job *job, const char *path)
{
    for (size_t i = 0; i < job->tree_n; i++)
        if (below(job->trees[i].prefix, path))
            return true;
    return false;
}

/* ---- placing ---- */

static int rename_entry(const struct job *job, size_t tree, const char *rest,
                        struct archive_entry *entry, struct err *err)
{
    const char *given = archive_entry_hardlink(entry), *target_rest = NULL;
    char target[PATH_BYTES_MAX], place[PATH_BYTES_MAX];

    if (given) {
        if (layer_path(str_of(given), target, err) < 0)
            return err_in(err, "target of the hard link");
        if (find_tree(job, target, &target_rest) != tree)
            return err_set(err, ERR_INVALID, "a hard link from one place to another");
        archive_entry_copy_hardlink(entry, target_rest);
    }
    (void)strcpy(place, rest);
    archive_entry_copy_pathname(entry, place);
    return 0;
}

static int check_sums(const struct forest *f, struct err *err)
{
    uint64_t entries = 0, bytes = 0;

    for (size_t i = 0; i < f->job->tree_n; i++) {
        entries += f->trees[i].entries;
        bytes += f->trees[i].bytes;
    }
    if (entries > IMAGE_ENTRIES_MAX)
        return err_set(err, ERR_LIMIT, "the layer has more than %d entries", IMAGE_ENTRIES_MAX);
    if (bytes > IMAGE_UNPACKED_MAX)
        return err_set(err, ERR_LIMIT, "the layer holds more than %lu bytes", IMAGE_UNPACKED_MAX);
    return 0;
}

static int place_in_tree(void *context, struct archive *archive, struct archive_entry *entry,
                         struct err *err)
{
    struct forest *f = context;
    const char *given = archive_entry_pathname(entry), *rest = NULL;
    char path[PATH_BYTES_MAX];
    size_t tree;

    if (!given)
        return err_set(err, ERR_INVALID, "the layer has an entry whose name cannot be read");
    if (layer_path(str_of(given), path, err) < 0)
        return err_in(err, "entry \"%.100s\"", given);
    tree = find_tree(f->job, path, &rest);
    if (tree == f->job->tree_n) {
        if (archive_entry_filetype(entry) == AE_IFDIR && is_above(f->job, path))
            return 0;
        return err_set(err, ERR_INVALID, "entry \"%.150s\": belongs to none of the places", path);
    }
    if (rename_entry(f->job, tree, rest, entry, err) < 0)
        return err_in(err, "entry \"%.100s\"", path);
    if (extract_entry(&f->trees[tree], archive, entry, err) < 0)
        return err_in(err, "in \"%.100s\"", f->job->trees[tree].prefix);
    return check_sums(f, err);
}

static void forest_init(struct forest *f, struct job *job)
{
    f->job = job;
    for (size_t i = 0; i < job->tree_n; i++)
        f->trees[i] = (struct extractor){
            .job = job,
            .root_fd = job->trees[i].fd,
            .exact_modes = true,
            .root_may_hide = *job->trees[i].prefix != '\0',
            .parent_fd = -1,
            .times_mem = ARENA(IMAGE_MEMORY_MAX),
        };
}

/* ---- the image ---- */

static struct json *notes_json(struct arena *mem, const struct image_notes *notes)
{
    struct json *object = json_object(mem);

    for (size_t i = 0; i < notes->n; i++)
        json_put_text(mem, object, notes->v[i].key, notes->v[i].value);
    return object;
}

static int unpack_trees(struct job *job, const struct image_descriptor *layer, const char *diff_id,
                        struct forest *f, struct err *err)
{
    char seen[HASH_TEXT_BYTES];
    AUTO_FD int fd = -1;
    struct hash hash;

    if (blob_open(job, layer->digest, &fd, err) < 0 ||
        unpack_to(job, fd, layer->size, &(struct placer){place_in_tree, f}, &hash, err) < 0)
        return -1;
    hash_text(&hash, seen);
    if (strcmp(seen, diff_id) != 0)
        return err_set(err, ERR_INTEGRITY, "unpacked it is %s, the configuration says %s", seen,
                       diff_id);
    for (size_t i = 0; i < job->tree_n; i++)
        if (extract_times(&f->trees[i], err) < 0)
            return -1;
    if (job->tree_n && syncfs(job->trees[0].fd) < 0)
        return err_os(err, "syncing what was unpacked");
    return 0;
}

static int answer(struct job *job, const char *manifest, const char *diff_id,
                  const struct image_notes *notes, const struct forest *f, struct err *err)
{
    struct json *result = json_object(&job->mem);
    uint64_t entries = 0, bytes = 0;

    for (size_t i = 0; i < job->tree_n; i++) {
        entries += f->trees[i].entries;
        bytes += f->trees[i].bytes;
    }
    json_put_text(&job->mem, result, "digest", manifest);
    json_put_text(&job->mem, result, "diff_id", diff_id);
    json_put_int(&job->mem, result, "entries", (int64_t)entries);
    json_put_int(&job->mem, result, "bytes", (int64_t)bytes);
    json_put(result, "notes", notes_json(&job->mem, notes));
    return event_done(job, result, err);
}

static int use_single(struct job *job, struct source *source, const char *digest, struct err *err)
{
    AUTO_BUF struct buf text = BUF(IMAGE_DOCUMENT_MAX);
    AUTO_BUF struct buf config_text = BUF(IMAGE_DOCUMENT_MAX);
    AUTO_FREE struct forest *f = xcalloc(1, sizeof *f);
    struct image_manifest manifest;
    struct image_config config;
    struct image_notes notes;
    int failed;

    if (blob_read(job, digest, &text, err) < 0 ||
        image_manifest_parse(&job->mem, buf_str(&text), &manifest, err) < 0 ||
        image_notes_parse(&job->mem, buf_str(&text), &notes, err) < 0 ||
        source->fetch(source, &manifest.config, "configuration", err) < 0 ||
        blob_read(job, manifest.config.digest, &config_text, err) < 0 ||
        image_config_parse(&job->mem, buf_str(&config_text), &config, err) < 0)
        return -1;
    if (manifest.layer_n != 1 || config.diff_id_n != 1)
        return err_set(err, ERR_INVALID, "an image of %zu layers; what was packed has one",
                       manifest.layer_n);
    if (source->fetch(source, &manifest.layers[0], "layer", err) < 0)
        return -1;
    forest_init(f, job);
    failed = job->tree_n && unpack_trees(job, &manifest.layers[0], config.diff_ids[0], f, err) < 0;
    for (size_t i = 0; i < job->tree_n; i++)
        extractor_done(&f->trees[i]);
    return failed ? -1 : answer(job, digest, config.diff_ids[0], &notes, f, err);
}

int run_unpack(struct job *job, struct err *err)
{
    return trees_check(job, err) < 0 ? -1 : import_archive(job, use_single, err);
}

int run_hash(struct job *job, struct err *err)
{
    struct json *result = json_object(&job->mem);
    char digest[HASH_TEXT_BYTES];
    struct seal seal;

    if (job->tree_n != 1)
        return err_set(err, ERR_INTERNAL, "a hash of one folder");
    if (seal_any(job, job->trees[0].fd, &seal, err) < 0)
        return -1;
    hash_text(&seal.hash, digest);
    json_put_text(&job->mem, result, "digest", digest);
    json_put_int(&job->mem, result, "entries", (int64_t)seal.entries);
    json_put_int(&job->mem, result, "bytes", (int64_t)seal.bytes);
    return event_done(job, result, err);
}
