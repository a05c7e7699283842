/* SPDX-License-Identifier: Apache-2.0 */

/* What changes the store. The lock of the store is shared by everything that adds to it or reads
 * it whole, and taken alone by the sweep: so the sweep never meets a layer that is complete but
 * not yet named by a record. */

#include "lib/image/store-private.h"

#include "lib/base/clock.h"
#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/image/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define LOCK_WAIT_US 30000000U /* a sweep removes trees; nothing else takes the lock alone */
#define LOCK_PAUSE_NS 5000000L
#define SWEEP_TIMEOUT_MS 600000U
#define VERIFY_TIMEOUT_MS 7200000U

static int open_lock(const struct image_store *store, int *out_fd, struct err *err)
{
    *out_fd = openat(store->dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return *out_fd < 0 ? err_os(err, "opening %s/lock", store->dir) : 0;
}

int store_lock(const struct image_store *store, int *out_fd, struct err *err)
{
    AUTO_FD int fd = -1;
    uint64_t until = clock_us() + LOCK_WAIT_US;

    if (open_lock(store, &fd, err) < 0)
        return -1;
    while (flock(fd, LOCK_SH | LOCK_NB) < 0) {
        struct timespec pause = {0, LOCK_PAUSE_NS};

        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_os(err, "locking %s/lock", store->dir);
        if (clock_us() > until)
            return err_set(err, ERR_TIMEOUT,
                           "another brig is still cleaning up %s; try again later", store->dir);
        (void)nanosleep(&pause, NULL); /* flock has no deadline of its own */
    }
    *out_fd = TAKE_FD(fd);
    return 0;
}

/* ---- sweeping ---- */

static void push_digits(struct arena *mem, struct json *list, const char *digest)
{
    json_push(list, json_text(mem, str_of(digest + strlen("sha256:"))));
}

static void keep_image(struct arena *mem, const struct image *image, struct json *blobs,
                       struct json *layers)
{
    push_digits(mem, blobs, image->digest);
    push_digits(mem, blobs, image->config);
    for (size_t i = 0; i < image->layer_n; i++) {
        push_digits(mem, blobs, image->layers[i].blob);
        push_digits(mem, layers, image->layers[i].diff_id);
    }
}

static bool is_named(const struct image_name *names, size_t n, const char *digest)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i].digest, digest) == 0)
            return true;
    return false;
}

/* True when nobody held it and it is gone. */
static bool drop_record(const struct image_store *store, const char *digest)
{
    char name[HASH_TEXT_BYTES + 32];
    AUTO_FD int fd = -1;
    struct err ignored;

    if (image_record_path(digest, name, sizeof name, &ignored) < 0)
        return false;
    fd = openat(store->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && unlinkat(store->dir_fd, name, 0) == 0;
}

static int drop_records(const struct image_store *store, struct arena *mem, struct json *blobs,
                        struct json *layers, struct err *err)
{
    struct image_name *names = NULL;
    const char **digests = NULL;
    size_t name_n = 0, n = 0;

    if (names_read(store, mem, &names, &name_n, err) < 0 ||
        image_record_list(store, mem, &digests, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct image image;

        if (!is_named(names, name_n, digests[i]) && drop_record(store, digests[i]))
            continue;
        if (image_record_read(store, mem, digests[i], &image, err) < 0)
            return -1;
        keep_image(mem, &image, blobs, layers);
    }
    return 0;
}

/* Removes what nothing names, and what a kill left half-made. *done is false when others are
 * using the store. */
static int sweep(const struct image_store *store, bool *done, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(IMAGE_MEMORY_MAX);
    struct json *request = json_object(&mem);
    struct json *blobs = json_array(&mem), *layers = json_array(&mem);
    const struct json *answer = NULL;
    AUTO_FD int lock = -1;

    *done = false;
    if (open_lock(store, &lock, err) < 0)
        return -1;
    if (flock(lock, LOCK_EX | LOCK_NB) < 0)
        return 0;
    if (drop_records(store, &mem, blobs, layers, err) < 0)
        return err_in(err, "cleaning up");
    CRASH_POINT("image-records-dropped");
    json_put_text(&mem, request, "do", "sweep");
    json_put(request, "blobs", blobs);
    json_put(request, "layers", layers);
    if (worker_run(store, &mem, request,
                   &(struct worker_hands){lock, -1, -1, SWEEP_TIMEOUT_MS, NULL, 0}, NULL, &answer,
                   err) < 0)
        return err_in(err, "cleaning up");
    *done = true;
    return 0;
}

/* ---- adding ---- */

/* A layer that several images share has one seal. */
static int compare_seals(const struct image_store *store, const struct image *image,
                         struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(IMAGE_MEMORY_MAX);
    struct image *all = NULL;
    size_t n = 0;

    if (image_list(store, &mem, &all, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < all[i].layer_n; j++)
            for (size_t k = 0; k < image->layer_n; k++)
                if (strcmp(all[i].layers[j].diff_id, image->layers[k].diff_id) == 0 &&
                    strcmp(all[i].layers[j].seal, image->layers[k].seal) != 0)
                    return err_set(err, ERR_INTEGRITY,
                                   "layer %s was changed in the store after it was sealed for "
                                   "image %s; remove that image and try again",
                                   image->layers[k].diff_id, all[i].digest);
    return 0;
}

/* An image that is there already keeps its record: whoever holds it holds that file. */
static bool is_recorded(const struct image_store *store, const struct image *image)
{
    AUTO_ARENA struct arena mem = ARENA(IMAGE_MEMORY_MAX);
    struct image old;
    struct err ignored;

    return image_record_read(store, &mem, image->digest, &old, &ignored) == 0 &&
           image_check(store, &old, &ignored) == 0;
}

static int adopt(const struct image_store *store, struct arena *mem, const struct json *answer,
                 const char *name, struct image *out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(IMAGE_RECORD_MAX);
    struct image_layer *layers;
    struct image image;
    char *added = arena_alloc(mem, TIMESTAMP_BYTES);

    if (json_compact(json_get(answer, "image"), &text, err) < 0 ||
        image_record_parse(store, mem, buf_str(&text), &image, err) < 0)
        return err_in(err, "answer of the program \"image\"");
    layers = arena_array(mem, struct image_layer, image.layer_n + 1);
    memcpy(layers, image.layers, image.layer_n * sizeof *layers);
    for (size_t i = 0; i < image.layer_n; i++)
        if (layer_look(store, &layers[i], err) < 0)
            return -1;
    clock_timestamp(added);
    image.layers = layers;
    image.added = added;
    if (compare_seals(store, &image, err) < 0)
        return -1;
    if (!is_recorded(store, &image) && image_record_write(store, &image, err) < 0)
        return -1;
    CRASH_POINT("image-recorded");
    if (names_change(store, name, image.digest, err) < 0)
        return -1;
    CRASH_POINT("image-named");
    return image_find(store, mem, image.digest, out, err);
}

void store_tidy(const struct image_store *store)
{
    struct err ignored;
    bool done;

    (void)sweep(store, &done, &ignored);
}

int image_pull(struct image_store *store, struct arena *mem, const struct image_pull *pull,
               const struct image_progress *progress, struct image *out, struct err *err)
{
    const char *name = image_ref_name(mem, &pull->ref);
    struct json *request = json_object(mem);
    const struct json *answer = NULL;
    AUTO_FD int lock = -1;
    AUTO_FD int ca = -1;

    store_tidy(store);
    if (pull->ca_file) {
        ca = open(pull->ca_file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (ca < 0)
            return err_os(err, "opening %s", pull->ca_file);
    }
    json_put_text(mem, request, "do", "pull");
    json_put_text(mem, request, "ref", name);
    json_put_text(mem, request, "architecture", image_architecture());
    if (pull->username)
        json_put_bytes(mem, request, "username", str_of(pull->username));
    if (pull->password)
        json_put_bytes(mem, request, "password", str_of(pull->password));
    json_put_bool(mem, request, "insecure_http", pull->insecure_http);
    json_put_bool(mem, request, "own_ca", pull->ca_file != NULL);
    json_put_bool(mem, request, "skip_devices", pull->skip_devices);
    json_put_int(mem, request, "stall_ms", (int64_t)pull->stall_ms);
    if (store_lock(store, &lock, err) < 0 ||
        worker_run(store, mem, request,
                   &(struct worker_hands){lock, ca, -1, pull->timeout_ms, NULL, 0}, progress,
                   &answer, err) < 0 ||
        adopt(store, mem, answer, name, out, err) < 0)
        return err_in(err, "%s", name);
    return 0;
}

/* The name the user gave, or the one the archive carries when it is a whole name. */
static int import_name(struct arena *mem, const struct image_import *import,
                       const struct json *answer, const char **out, struct err *err)
{
    struct str carried = STR_LIT("");
    struct image_ref ref;

    (void)json_is_text(json_get(answer, "name"), &carried);
    if (!import->name && !carried.n)
        return err_set(err, ERR_INVALID, "the archive names no image: give one with --name");
    if (image_ref_parse(mem, import->name ? str_of(import->name) : carried, &ref, err) < 0)
        return import->name ? -1 : err_in(err, "the name in the archive, use --name");
    if (ref.digest)
        return err_set(err, ERR_INVALID, "an imported image is named without a digest");
    *out = image_ref_name(mem, &ref);
    return 0;
}

int image_import(struct image_store *store, struct arena *mem, const struct image_import *import,
                 const struct image_progress *progress, struct image *out, struct err *err)
{
    struct json *request = json_object(mem);
    const struct json *answer = NULL;
    const char *name = NULL;
    AUTO_FD int lock = -1;
    AUTO_FD int source = open(import->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct worker_hands hands = {-1, -1, -1, import->timeout_ms, NULL, 0};
    struct stat st;

    if (source < 0 || fstat(source, &st) < 0)
        return err_os(err, "opening %s", import->path);
    if (import->name && import_name(mem, import, NULL, &name, err) < 0)
        return -1;
    store_tidy(store);
    json_put_text(mem, request, "do", "import");
    json_put_bool(mem, request, "folder", S_ISDIR(st.st_mode));
    json_put_text(mem, request, "architecture", image_architecture());
    json_put_bool(mem, request, "skip_devices", import->skip_devices);
    if (store_lock(store, &lock, err) < 0)
        return -1;
    hands.lock_fd = lock;
    *(S_ISDIR(st.st_mode) ? &hands.folder_fd : &hands.extra_fd) = source;
    if (worker_run(store, mem, request, &hands, progress, &answer, err) < 0 ||
        import_name(mem, import, answer, &name, err) < 0 ||
        adopt(store, mem, answer, name, out, err) < 0)
        return err_in(err, "%s", import->path);
    return 0;
}

/* ---- reading it whole ---- */

static int run_on_image(struct image_store *store, const struct image *image, const char *verb,
                        int extra_fd, const struct image_progress *progress, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(IMAGE_MEMORY_MAX);
    struct json *request = json_object(&mem);
    const struct json *answer = NULL;
    AUTO_FD int lock = -1;

    json_put_text(&mem, request, "do", verb);
    json_put(request, "image", record_json(&mem, image));
    json_put_text(&mem, request, "name", image->names.n ? image->names.v[0] : "");
    if (store_lock(store, &lock, err) < 0)
        return -1;
    return worker_run(store, &mem, request,
                      &(struct worker_hands){lock, extra_fd, -1, VERIFY_TIMEOUT_MS, NULL, 0},
                      progress, &answer, err);
}

int image_verify(struct image_store *store, const struct image *image,
                 const struct image_progress *progress, struct err *err)
{
    if (run_on_image(store, image, "verify", -1, progress, err) < 0)
        return -1;
    return image_check(store, image, err);
}

int file_make(const char *path, unsigned mode, int (*write)(int fd, void *context, struct err *err),
              void *context, struct err *err)
{
    AUTO_FREE char *temporary = NULL;
    AUTO_FD int fd = -1;

    if (asprintf(&temporary, "%s.%d.tmp", path, (int)getpid()) < 0) {
        temporary = NULL;
        return err_os(err, "naming a temporary file for %s", path);
    }
    fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0)
        return err_os(err, "creating %s", temporary);
    if (write(fd, context, err) < 0 || (fsync(fd) < 0 && err_os(err, "syncing") < 0) ||
        (rename(temporary, path) < 0 && err_os(err, "renaming") < 0)) {
        (void)unlink(temporary); /* the failure that led here is the one to report */
        return err_in(err, "%s", path);
    }
    return 0;
}

struct export_to {
    struct image_store *store;
    const struct image *image;
    const struct image_progress *progress;
};

static int write_export(int fd, void *context, struct err *err)
{
    const struct export_to *to = context;

    return run_on_image(to->store, to->image, "export", fd, to->progress, err);
}

int image_export(struct image_store *store, const struct image *image, const char *path,
                 const struct image_progress *progress, struct err *err)
{
    return file_make(path, 0644, write_export, &(struct export_to){store, image, progress}, err);
}

int image_remove(struct image_store *store, const char *name, bool *freed, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(IMAGE_MEMORY_MAX);
    struct image_ref ref;
    struct image image;
    const char *full = NULL;

    if (image_find(store, &mem, name, &image, err) < 0)
        return -1;
    if (!str_starts(str_of(name), "sha256:") && image_ref_parse(&mem, str_of(name), &ref, err) == 0)
        full = image_ref_name(&mem, &ref);
    /* A beginning of the digest may look like a name: it is one only if it is known as one. */
    for (size_t i = 0; full && i <= image.names.n; i++)
        if (i == image.names.n)
            full = NULL;
        else if (strcmp(image.names.v[i], full) == 0)
            break;
    if (names_change(store, full, full ? NULL : image.digest, err) < 0)
        return -1;
    return sweep(store, freed, err);
}
