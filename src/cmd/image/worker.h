/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The program `image`: reads what strangers made — registry answers, archives, layers — for a
 * brig that does not. It can reach its store, the network, certificates and name resolution,
 * and nothing else; what it says to brig is one bounded message at a time (lib/image/wire.h). */

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/crypto/crypto.h"
#include "lib/image/image.h"
#include "lib/image/manifest.h"
#include "lib/json/json.h"

struct job {
    const struct json *request;
    struct arena mem;
    uint64_t deadline_us;
    int content_fd;
    int blobs_fd; /* content/blobs/sha256 */
    int layers_fd;
    int temp_fd;
    uint64_t told_us;        /* when progress was last reported */
    _Atomic uint64_t *moved; /* it is shown here instead; NULL: to brig */
    struct image_tree trees[IMAGE_TREES_MAX];
    size_t tree_n;
};

/* Whether the job's time is over; ERR_TIMEOUT. Called wherever something can take long. */
int job_in_time(const struct job *job, struct err *err) MUST_CHECK;

/* Members of the request, which is brig's. */
const char *request_text(struct job *job, const char *key); /* NULL when absent */
bool request_flag(const struct job *job, const char *key);
uint64_t request_number(const struct job *job, const char *key);

/* ---- confine.c ---- */

/* Gives up everything that is not needed, before the first byte of a stranger's. */
int become(uid_t uid, gid_t gid, struct err *err) MUST_CHECK;
/* In a user namespace of our own that knows this one user: reads of its files what it has closed
 * to itself, and of nobody else's. */
int open_own_files(uid_t uid, gid_t gid, struct err *err) MUST_CHECK;

struct walls {
    bool network;
    bool write_trees; /* else they can only be read */
};
int confine(const struct job *job, const struct walls *walls, struct err *err) MUST_CHECK;

/* ---- events.c ---- */
void event_progress(struct job *job, const char *what, uint64_t done, uint64_t total);
int event_done(struct job *job, struct json *result, struct err *err) MUST_CHECK;
void event_failed(const struct err *failure);
/* A regular file of the layout directory brig has open; ERR_NOT_FOUND. */
int event_open(struct job *job, const char *path, int *out_fd, struct err *err) MUST_CHECK;

/* ---- blob.c: content/blobs, and temporary names ---- */

/* A blob being written: hashed on its way, bounded, under a temporary name until its digest is
 * known to be right. */
struct blob_writer {
    struct job *job;
    int fd;
    char name[ID_BYTES]; /* in temp */
    struct hasher hasher;
    uint64_t n;
    uint64_t max;
};

int blob_begin(struct job *job, uint64_t max, struct blob_writer *out, struct err *err) MUST_CHECK;
int blob_add(struct blob_writer *w, const void *bytes, size_t n, struct err *err) MUST_CHECK;
/* wanted: its digest, or NULL for whatever it is; *size what it must have, or NULL. */
int blob_end(struct blob_writer *w, const char *wanted, const uint64_t *size,
             char out_digest[HASH_TEXT_BYTES], struct err *err) MUST_CHECK;
void blob_done(struct blob_writer *w); /* removes what was not ended */
#define AUTO_BLOB __attribute__((cleanup(blob_done)))

bool blob_exists(const struct job *job, const struct image_descriptor *blob);
int blob_open(const struct job *job, const char *digest, int *out_fd, struct err *err) MUST_CHECK;
/* A document, checked against its digest again. */
int blob_read(const struct job *job, const char *digest, struct buf *out,
              struct err *err) MUST_CHECK;
int blob_put(struct job *job, struct str bytes, char out_digest[HASH_TEXT_BYTES],
             struct err *err) MUST_CHECK;
/* From a descriptor that brig opened for us. */
int blob_copy(struct job *job, int from_fd, uint64_t max, const char *wanted, const char *what,
              char out_digest[HASH_TEXT_BYTES], struct err *err) MUST_CHECK;
/* Reads a blob again and compares it with its name. */
int blob_verify(struct job *job, const char *digest, uint64_t size, struct err *err) MUST_CHECK;

/* ---- unpack.c, extract.c ---- */

struct unpack_report {
    uint64_t entries;
    uint64_t bytes;    /* of file contents */
    uint64_t left_out; /* device nodes, pipes, sockets */
    struct hash diff_id;
};

/* Unpacks a layer into an empty folder; never writes, reads or links outside of it. */
int unpack_layer(struct job *job, int blob_fd, uint64_t blob_bytes, int root_fd, bool skip_devices,
                 struct unpack_report *out, struct err *err) MUST_CHECK;

/* ---- seal.c ---- */

struct seal {
    struct hash hash; /* of the list */
    uint64_t entries;
    uint64_t bytes;
};

/* Lists a tree, every entry with its hash, to list_fd unless that is -1; against_fd, unless -1, is
 * an earlier list: the first entry that differs is an ERR_INTEGRITY. */
int seal_tree(struct job *job, int root_fd, int list_fd, int against_fd, struct seal *out,
              struct err *err) MUST_CHECK;
/* The same for a tree that is not a layer's: it may hold pipes and sockets. */
int seal_any(struct job *job, int root_fd, struct seal *out, struct err *err) MUST_CHECK;

/* What is in a folder, in byte order; the array is the caller's to free. */
int folder_names(int fd, struct arena *mem, const char ***out, size_t *n,
                 struct err *err) MUST_CHECK;
/* Its user attributes, in byte order; both are the caller's to free. */
int xattr_names(int fd, char **out_space, const char ***out, size_t *n, struct err *err) MUST_CHECK;

/* ---- trees.c ---- */

/* Each prefix is a plain path and there once. */
int trees_check(const struct job *job, struct err *err) MUST_CHECK;

/* ---- layers.c ---- */

/* The unpacked layer, made now or there already; fills diff_id, seal, bytes, entries. */
int layer_provide(struct job *job, const struct image_descriptor *blob, const char *diff_id,
                  struct image_layer *out, struct err *err) MUST_CHECK;

/* ---- assemble.c ---- */

/* How manifests, configurations and layers get into the blobs. */
struct source {
    int (*fetch)(struct source *source, const struct image_descriptor *blob, const char *what,
                 struct err *err);
    /* The manifest is in the blobs: what is asked for is done with it. */
    int (*use)(struct job *job, struct source *source, const char *manifest, struct err *err);
    /* In a child that fetches one blob: gives up what it must not share with its parent. NULL: one
     * at a time is all there is. */
    int (*alone)(struct source *source, struct err *err);
    void *context;
    const char *name; /* carried by an archive, or NULL */
    char index[HASH_TEXT_BYTES];
};

/* manifest is in the blobs: fetches the rest, unpacks it, and answers brig with the image. */
int assemble(struct job *job, struct source *source, const char *manifest,
             struct err *err) MUST_CHECK;

/* ---- ahead.c ---- */

/* Blobs of a source, fetched a few at a time. */
struct ahead;
int ahead_new(struct job *job, struct source *source, const struct image_descriptor *blobs,
              size_t n, struct ahead **out, struct err *err) MUST_CHECK;
/* Until this one is there; the next ones are on their way meanwhile. */
int ahead_wait(struct ahead *ahead, size_t at, struct err *err) MUST_CHECK;
void ahead_free(struct ahead *ahead); /* and whoever is still fetching */
AUTO_TYPE(ahead)

/* ---- one file a request ---- */
int run_pull(struct job *job, struct err *err) MUST_CHECK;
int run_import(struct job *job, struct err *err) MUST_CHECK;
/* A tar that holds an image, from IMAGE_FD_EXTRA into the blobs; then use(). */
int import_archive(struct job *job,
                   int (*use)(struct job *job, struct source *source, const char *manifest,
                              struct err *err),
                   struct err *err) MUST_CHECK;
int run_export(struct job *job, struct err *err) MUST_CHECK;
int run_verify(struct job *job, struct err *err) MUST_CHECK;
int run_sweep(struct job *job, struct err *err) MUST_CHECK;
int run_pack(struct job *job, struct err *err) MUST_CHECK;
int run_unpack(struct job *job, struct err *err) MUST_CHECK;
int run_hash(struct job *job, struct err *err) MUST_CHECK;
