/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/image/image.h"
#include "lib/json/json.h"

struct image_store {
    char *dir;      /* STATE/images, absolute */
    int dir_fd;     /* of it */
    int content_fd; /* of its part that `image` may write */
    struct image_owner owner;
};

/* ---- record.c: images/records/HEX.json ---- */

/* Reads a record, or what `image` says an image is; strict, for the latter comes from a program
 * that has read strangers' bytes. Layers' paths are filled from the store. */
int image_record_parse(const struct image_store *store, struct arena *mem, struct str text,
                       struct image *out, struct err *err) MUST_CHECK;
struct json *record_json(struct arena *mem, const struct image *image);
int image_record_write(const struct image_store *store, const struct image *image,
                       struct err *err) MUST_CHECK;
/* digest: "sha256:HEX". ERR_NOT_FOUND when there is none. */
int image_record_read(const struct image_store *store, struct arena *mem, const char *digest,
                      struct image *out, struct err *err) MUST_CHECK;
/* The digests of all records, sorted. */
int image_record_list(const struct image_store *store, struct arena *mem, const char ***out,
                      size_t *n, struct err *err) MUST_CHECK;
int image_record_path(const char *digest, char *out, size_t size, struct err *err) MUST_CHECK;

/* Fills the facts of each layer's folder; ERR_INTEGRITY when there is none. */
int layer_look(const struct image_store *store, struct image_layer *layer,
               struct err *err) MUST_CHECK;

/* ---- names.c: images/names.json ---- */

struct image_name {
    const char *name;
    const char *digest;
};

int names_read(const struct image_store *store, struct arena *mem, struct image_name **out,
               size_t *n, struct err *err) MUST_CHECK;
/* Under the lock of the names: sets one (digest), or takes away every entry with this name (digest
 * NULL) or, without a name, with this digest. */
int names_change(const struct image_store *store, const char *name, const char *digest,
                 struct err *err) MUST_CHECK;

/* ---- change.c ---- */

/* Shared by everything that adds to the store or reads it whole; ends with the descriptor. */
int store_lock(const struct image_store *store, int *out_fd, struct err *err) MUST_CHECK;
/* Removes what nothing names. What cannot be removed now costs space, not correctness. */
void store_tidy(const struct image_store *store);
/* Makes or replaces a file: write() gets a temporary one beside it, which then takes its name. */
int file_make(const char *path, unsigned mode, int (*write)(int fd, void *context, struct err *err),
              void *context, struct err *err) MUST_CHECK;

/* ---- worker.c: the program `image` ---- */

/* What it is started with, besides the request. */
struct worker_hands {
    int lock_fd;
    int extra_fd;  /* an archive to read, a file to write, certificates; or -1 */
    int folder_fd; /* an OCI layout whose files it may ask for; or -1 */
    uint64_t timeout_ms;
    const struct image_tree *trees;
    size_t tree_n;
};

/* Runs one request to its end; *answer is the member "result" of its last event. */
int worker_run(const struct image_store *store, struct arena *mem, struct json *request,
               const struct worker_hands *hands, const struct image_progress *progress,
               const struct json **answer, struct err *err) MUST_CHECK;
