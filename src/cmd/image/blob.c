/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/image/worker.h"

#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define CHUNK (256 * KIB)

static const char *digits(const char *digest)
{
    return digest + strlen("sha256:");
}

int blob_begin(struct job *job, uint64_t max, struct blob_writer *out, struct err *err)
{
    struct blob_writer w = {.job = job, .max = max};

    id_new(w.name);
    w.fd = openat(job->temp_fd, w.name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (w.fd < 0)
        return err_os(err, "creating a file in the image store");
    hasher_init(&w.hasher);
    *out = w;
    return 0;
}

int blob_add(struct blob_writer *w, const void *bytes, size_t n, struct err *err)
{
    if (n > w->max - w->n)
        return err_set(err, ERR_INTEGRITY, "longer than the %llu bytes it should have",
                       (unsigned long long)w->max);
    hasher_add(&w->hasher, bytes, n);
    w->n += n;
    return write_all(w->fd, bytes, n, err);
}

int blob_end(struct blob_writer *w, const char *wanted, const uint64_t *size,
             char out_digest[HASH_TEXT_BYTES], struct err *err)
{
    char digest[HASH_TEXT_BYTES];
    struct hash hash;

    hasher_end(&w->hasher, &hash);
    hash_text(&hash, digest);
    if (size && w->n != *size)
        return err_set(err, ERR_INTEGRITY, "%llu bytes came, %llu should have",
                       (unsigned long long)w->n, (unsigned long long)*size);
    if (wanted && strcmp(wanted, digest) != 0)
        return err_set(err, ERR_INTEGRITY, "its digest is %s, it should be %s", digest, wanted);
    if (fsync(w->fd) < 0)
        return err_os(err, "syncing a blob");
    CRASH_POINT("image-blob-synced");
    if (renameat(w->job->temp_fd, w->name, w->job->blobs_fd, digits(digest)) < 0)
        return err_os(err, "keeping a blob");
    w->name[0] = '\0';
    if (fsync(w->job->blobs_fd) < 0)
        return err_os(err, "syncing the blobs");
    CRASH_POINT("image-blob-kept");
    (void)strcpy(out_digest, digest);
    return 0;
}

void blob_done(struct blob_writer *w)
{
    if (!w->job)
        return;
    if (w->name[0])
        (void)unlinkat(w->job->temp_fd, w->name, 0); /* the sweep finds what stays */
    if (w->fd >= 0)
        (void)close(w->fd);
    w->job = NULL;
}

bool blob_exists(const struct job *job, const struct image_descriptor *blob)
{
    struct stat st;

    return fstatat(job->blobs_fd, digits(blob->digest), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(st.st_mode) && (uint64_t)st.st_size == blob->size;
}

int blob_open(const struct job *job, const char *digest, int *out_fd, struct err *err)
{
    *out_fd = openat(job->blobs_fd, digits(digest), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (*out_fd < 0 && errno == ENOENT)
        return err_set(err, ERR_INTEGRITY, "blob %s is gone from the store", digest);
    return *out_fd < 0 ? err_os(err, "opening blob %s", digest) : 0;
}

int blob_read(const struct job *job, const char *digest, struct buf *out, struct err *err)
{
    char seen[HASH_TEXT_BYTES];
    AUTO_FD int fd = -1;

    if (blob_open(job, digest, &fd, err) < 0 || read_all(fd, out, err) < 0)
        return err_in(err, "%s", digest);
    hash_text_of(buf_str(out), seen);
    if (strcmp(seen, digest) != 0)
        return err_set(err, ERR_INTEGRITY, "blob %s has become %s in the store", digest, seen);
    return 0;
}

int blob_put(struct job *job, struct str bytes, char out_digest[HASH_TEXT_BYTES], struct err *err)
{
    AUTO_BLOB struct blob_writer w = {.job = NULL};

    if (blob_begin(job, bytes.n, &w, err) < 0 || blob_add(&w, bytes.p, bytes.n, err) < 0)
        return -1;
    return blob_end(&w, NULL, NULL, out_digest, err);
}

int blob_copy(struct job *job, int from_fd, uint64_t max, const char *wanted, const char *what,
              char out_digest[HASH_TEXT_BYTES], struct err *err)
{
    AUTO_BLOB struct blob_writer w = {.job = NULL};
    AUTO_FREE char *chunk = xmalloc(CHUNK);

    if (blob_begin(job, max, &w, err) < 0)
        return -1;
    for (;;) {
        ssize_t n = read(from_fd, chunk, CHUNK);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_os(err, "reading %s", what);
        if (n == 0)
            break;
        if (blob_add(&w, chunk, (size_t)n, err) < 0 || job_in_time(job, err) < 0)
            return err_in(err, "%s", what);
        event_progress(job, what, w.n, 0);
    }
    if (blob_end(&w, wanted, NULL, out_digest, err) < 0)
        return err_in(err, "%s", what);
    return 0;
}

int blob_verify(struct job *job, const char *digest, uint64_t size, struct err *err)
{
    AUTO_FREE char *chunk = xmalloc(CHUNK);
    struct hasher hasher;
    struct hash hash;
    char seen[HASH_TEXT_BYTES];
    AUTO_FD int fd = -1;
    uint64_t done = 0;
    ssize_t n = 0;

    if (blob_open(job, digest, &fd, err) < 0)
        return -1;
    hasher_init(&hasher);
    while ((n = read(fd, chunk, CHUNK)) > 0) {
        hasher_add(&hasher, chunk, (size_t)n);
        done += (uint64_t)n;
        event_progress(job, "reading blobs", done, size);
        if (job_in_time(job, err) < 0)
            return -1;
    }
    if (n < 0)
        return err_os(err, "reading blob %s", digest);
    hasher_end(&hasher, &hash);
    hash_text(&hash, seen);
    if (strcmp(seen, digest) != 0)
        return err_set(err, ERR_INTEGRITY, "blob %s has become %s in the store", digest, seen);
    return 0;
}
