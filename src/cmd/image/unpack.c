/* SPDX-License-Identifier: Apache-2.0 */

/* A layer, from its compressed bytes to a tree.
 *
 * Two readers of libarchive, one behind the other: the first only decompresses, the second only
 * reads tar. Between them every byte is counted and hashed, so the diff id is that of what was
 * read as tar, and a decompression bomb ends where it passes its ceiling. */

#include "cmd/image/extract.h"

#include "lib/base/limits.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

#define CHUNK (256 * KIB)

struct unpacker {
    struct job *job;
    struct archive *plain; /* decompresses */
    struct archive *tar;
    int blob_fd;
    uint64_t blob_bytes;
    uint64_t read_bytes;
    uint64_t plain_bytes;
    struct hasher hasher;
    bool ended;
    struct err why; /* of a failure inside a callback, which libarchive cannot carry */
    bool failed;
    char *chunk;
};

static void unpacker_done(struct unpacker *u)
{
    if (u->tar)
        (void)archive_read_free(u->tar);
    if (u->plain)
        (void)archive_read_free(u->plain);
    free(u->chunk);
}

/* ---- the first reader ---- */

static la_ssize_t on_read_blob(struct archive *archive, void *context, const void **out)
{
    struct unpacker *u = context;
    ssize_t n;

    do
        n = read(u->blob_fd, u->chunk, CHUNK);
    while (n < 0 && errno == EINTR);
    if (n < 0) {
        archive_set_error(archive, errno, "reading the layer");
        return ARCHIVE_FATAL;
    }
    u->read_bytes += (uint64_t)n;
    *out = u->chunk;
    return n;
}

static int open_plain(struct unpacker *u, struct err *err)
{
    struct archive_entry *entry = NULL;
    int status;

    u->plain = archive_read_new();
    if (!u->plain || archive_read_support_filter_gzip(u->plain) != ARCHIVE_OK ||
        archive_read_support_filter_zstd(u->plain) != ARCHIVE_OK ||
        archive_read_support_format_raw(u->plain) != ARCHIVE_OK ||
        archive_read_support_format_empty(u->plain) != ARCHIVE_OK)
        return err_set(err, ERR_UNAVAILABLE, "libarchive without gzip and zstd");
    if (archive_read_open(u->plain, u, NULL, on_read_blob, NULL) != ARCHIVE_OK)
        return err_set(err, ERR_INTEGRITY, "%.200s", archive_error_string(u->plain));
    status = archive_read_next_header(u->plain, &entry);
    u->ended = status == ARCHIVE_EOF;
    if (status != ARCHIVE_OK && status != ARCHIVE_EOF)
        return err_set(err, ERR_INTEGRITY, "%.200s", archive_error_string(u->plain));
    /* One compression and the bytes below it. */
    if (archive_filter_count(u->plain) > 2)
        return err_set(err, ERR_INVALID, "compressed more than once");
    return 0;
}

/* ---- between ---- */

static int count_plain(struct unpacker *u, const void *bytes, size_t n, struct err *err)
{
    u->plain_bytes += n;
    if (u->plain_bytes > IMAGE_UNPACKED_MAX)
        return err_set(err, ERR_LIMIT, "the layer has more than %lu bytes unpacked",
                       IMAGE_UNPACKED_MAX);
    if (u->plain_bytes > IMAGE_RATIO_FREE && u->plain_bytes / IMAGE_RATIO_MAX > u->read_bytes + 1)
        return err_set(err, ERR_LIMIT,
                       "the layer becomes more than %d times as large when unpacked, which is a "
                       "decompression bomb",
                       IMAGE_RATIO_MAX);
    hasher_add(&u->hasher, bytes, n);
    event_progress(u->job, "unpacking", u->read_bytes, u->blob_bytes);
    return job_in_time(u->job, err);
}

/* The next piece of plain bytes; 0 at the end. */
static int next_plain(struct unpacker *u, const void **out, size_t *n, struct err *err)
{
    int64_t at = 0;
    int status;

    *n = 0;
    if (u->ended)
        return 0;
    status = archive_read_data_block(u->plain, out, n, &at);
    if (status == ARCHIVE_EOF) {
        u->ended = true;
        *n = 0;
        return 0;
    }
    if (status != ARCHIVE_OK)
        return err_set(err, ERR_INTEGRITY, "%.200s", archive_error_string(u->plain));
    return count_plain(u, *out, *n, err);
}

static la_ssize_t on_read_plain(struct archive *archive, void *context, const void **out)
{
    struct unpacker *u = context;
    size_t n = 0;

    if (next_plain(u, out, &n, &u->why) < 0) {
        u->failed = true;
        archive_set_error(archive, EIO, "%s", u->why.text);
        return ARCHIVE_FATAL;
    }
    return (la_ssize_t)n;
}

/* ---- the second reader ---- */

static int open_tar(struct unpacker *u, struct err *err)
{
    u->tar = archive_read_new();
    if (!u->tar || archive_read_support_format_tar(u->tar) != ARCHIVE_OK ||
        archive_read_support_format_empty(u->tar) != ARCHIVE_OK)
        return err_set(err, ERR_UNAVAILABLE, "libarchive without tar");
    if (archive_read_open(u->tar, u, NULL, on_read_plain, NULL) == ARCHIVE_OK)
        return 0;
    if (u->failed)
        *err = u->why;
    return u->failed ? -1 : err_set(err, ERR_INVALID, "not a tar archive");
}

static int place_all(struct unpacker *u, const struct placer *placer, struct err *err)
{
    struct archive_entry *entry = NULL;

    for (;;) {
        int status = archive_read_next_header(u->tar, &entry);

        if (status == ARCHIVE_EOF)
            return 0;
        if (status != ARCHIVE_OK && status != ARCHIVE_WARN) {
            if (u->failed)
                *err = u->why;
            else
                (void)err_set(err, ERR_INTEGRITY, "%.200s", archive_error_string(u->tar));
            return -1;
        }
        if (placer->place(placer->context, u->tar, entry, err) < 0) {
            if (u->failed)
                *err = u->why; /* the cause; what the entry saw is only its shadow */
            return -1;
        }
    }
}

/* A tar ends before its last padding; the diff id covers that as well. */
static int drain(struct unpacker *u, struct err *err)
{
    const void *bytes = NULL;
    size_t n = 0;

    do
        if (next_plain(u, &bytes, &n, err) < 0)
            return -1;
    while (!u->ended);
    return 0;
}

int unpack_to(struct job *job, int blob_fd, uint64_t blob_bytes, const struct placer *placer,
              struct hash *diff_id, struct err *err)
{
    struct unpacker u = {.job = job, .blob_fd = blob_fd, .blob_bytes = blob_bytes};
    struct hash hash;
    int failed;

    u.chunk = xmalloc(CHUNK);
    hasher_init(&u.hasher);
    failed = open_plain(&u, err) < 0 || open_tar(&u, err) < 0 || place_all(&u, placer, err) < 0 ||
             drain(&u, err) < 0;
    hasher_end(&u.hasher, &hash);
    unpacker_done(&u);
    if (failed)
        return -1;
    *diff_id = hash;
    return 0;
}

static int place_one(void *context, struct archive *archive, struct archive_entry *entry,
                     struct err *err)
{
    return extract_entry(context, archive, entry, err);
}

int unpack_layer(struct job *job, int blob_fd, uint64_t blob_bytes, int root_fd, bool skip_devices,
                 struct unpack_report *out, struct err *err)
{
    struct extractor x = {.job = job,
                          .root_fd = root_fd,
                          .skip_devices = skip_devices,
                          .parent_fd = -1,
                          .times_mem = ARENA(IMAGE_MEMORY_MAX)};
    struct unpack_report report = {0};
    int failed;

    failed = unpack_to(job, blob_fd, blob_bytes, &(struct placer){place_one, &x}, &report.diff_id,
                       err) < 0 ||
             extract_times(&x, err) < 0;
    report.entries = x.entries;
    report.bytes = x.bytes;
    report.left_out = x.left_out;
    extractor_done(&x);
    if (failed)
        return -1;
    *out = report;
    return 0;
}
