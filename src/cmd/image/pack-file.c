/* SPDX-License-Identifier: Apache-2.0 */

/* The contents of one file, into the layer: as they are, or as the filter leaves them.
 *
 * A small file is read once, whole, and what was looked at is what is written. A large one is read
 * twice: once to look at it and to find its zeros, once to write it; that it is the same both
 * times is seen by its ctime, which only the kernel sets. Zeros become holes by the contents, not
 * by how this file system stores them, so the layer is the same everywhere. */

#include "cmd/image/pack.h"
#include "cmd/image/scrub.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define HOLE_BYTES (64 * KIB) /* shorter runs of zeros are written */

static int has_changed(int fd, const struct stat *before, struct err *err)
{
    struct stat now;

    if (fstat(fd, &now) < 0)
        return err_os(err, "looking at a file");
    if (now.st_size != before->st_size || now.st_ctim.tv_sec != before->st_ctim.tv_sec ||
        now.st_ctim.tv_nsec != before->st_ctim.tv_nsec)
        return err_set(err, ERR_CONFLICT, "it was changed while it was read; try again");
    return 0;
}

/* Up to n bytes; fewer only at the end. */
static ssize_t read_some(int fd, char *to, size_t n)
{
    size_t got = 0;

    while (got < n) {
        ssize_t more = read(fd, to + got, n - got);

        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return -1;
        if (more == 0)
            break;
        got += (size_t)more;
    }
    return (ssize_t)got;
}

/* A second name of a file that is in the layer, unchanged. */
static int write_link(struct packer *p, const struct stat *st, const char *target, struct err *err)
{
    struct archive_entry *entry = NULL;

    if (pack_entry(p, -1, st, &entry, err) < 0)
        return -1;
    archive_entry_copy_hardlink(entry, target);
    return pack_header(p, entry, err);
}

static int write_whole(struct packer *p, int fd, const struct stat *st, struct str bytes,
                       struct err *err)
{
    struct archive_entry *entry = NULL;

    if (pack_entry(p, fd, st, &entry, err) < 0)
        return -1;
    archive_entry_set_size(entry, (int64_t)bytes.n);
    p->bytes += bytes.n;
    return pack_header(p, entry, err) < 0 ? -1 : pack_data(p, bytes.p, bytes.n, err);
}

static void note_findings(struct packer *p, const struct scrub_result *result)
{
    const char *action = result->verdict == SCRUB_DROP ? "dropped" : "replaced";

    for (size_t i = 0; i < SCRUB_RULES; i++)
        if (result->counts[i])
            pack_note(p, scrub_rule_name(i), action, result->counts[i]);
    p->report.dropped += result->verdict == SCRUB_DROP;
    p->report.replaced += result->verdict == SCRUB_REPLACE;
}

/* ---- small files ---- */

static int pack_kept(struct packer *p, int fd, const struct stat *st, struct str bytes,
                     struct err *err)
{
    const char *first = st->st_nlink > 1 ? links_find(p->links, st->st_ino) : NULL;

    if (first)
        return write_link(p, st, first, err);
    if (st->st_nlink > 1 && links_add(p->links, st->st_ino, p->path, err) < 0)
        return -1;
    return write_whole(p, fd, st, bytes, err);
}

static int pack_small(struct packer *p, int fd, const struct stat *st, struct err *err)
{
    AUTO_FREE char *bytes = xmalloc((size_t)st->st_size + 1);
    AUTO_BUF struct buf cleaned = BUF(2 * SCRUB_TEXT_MAX);
    struct scrub_result result = {.verdict = SCRUB_KEEP};
    ssize_t n = read_some(fd, bytes, (size_t)st->st_size);
    struct str whole = {bytes, (size_t)n};

    if (n < 0)
        return err_os(err, "reading");
    if (has_changed(fd, st, err) < 0)
        return -1;
    if (n != st->st_size)
        return err_set(err, ERR_CONFLICT, "it was changed while it was read; try again");
    if (p->filter)
        scrub(str_of(p->path), whole, &cleaned, &result);
    note_findings(p, &result);
    switch (result.verdict) {
    case SCRUB_DROP:
        return 0;
    case SCRUB_REPLACE:
        return write_whole(p, fd, st, buf_str(&cleaned), err);
    case SCRUB_KEEP:
        break;
    }
    return pack_kept(p, fd, st, whole, err);
}

/* ---- large files ---- */

struct looker {
    struct packer *p;
    struct scrub_scan *scan;     /* or NULL */
    struct archive_entry *entry; /* gets the pieces that are not zero */
    uint64_t at;
    uint64_t piece_at; /* of the piece of data being collected */
    uint64_t piece_n;
};

static bool is_zero(const char *p, size_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

static void end_piece(struct looker *l)
{
    if (l->piece_n)
        archive_entry_sparse_add_entry(l->entry, (int64_t)l->piece_at, (int64_t)l->piece_n);
    l->piece_n = 0;
}

static void look_at(struct looker *l, const char *bytes, size_t n)
{
    if (l->scan)
        scrub_scan_add(l->scan, (struct str){bytes, n});
    for (size_t i = 0; i < n; i += HOLE_BYTES) {
        size_t part = n - i < HOLE_BYTES ? n - i : HOLE_BYTES;

        if (is_zero(bytes + i, part)) {
            end_piece(l);
            continue;
        }
        if (!l->piece_n)
            l->piece_at = l->at + i;
        l->piece_n += part;
    }
    l->at += n;
}

static int look_through(struct looker *l, int fd, const struct stat *st, struct err *err)
{
    while (l->at < (uint64_t)st->st_size) {
        ssize_t n = read_some(fd, l->p->chunk, PACK_CHUNK);

        if (n < 0)
            return err_os(err, "reading");
        if (n == 0)
            break;
        look_at(l, l->p->chunk, (size_t)n);
        if (job_in_time(l->p->job, err) < 0)
            return -1;
        event_progress(l->p->job, "looking through a file", l->at, (uint64_t)st->st_size);
    }
    end_piece(l);
    /* The format has a hole at the end only if a piece of nothing says where it ends. */
    archive_entry_sparse_add_entry(l->entry, (int64_t)l->at, 0);
    return has_changed(fd, st, err);
}

static int copy_large(struct packer *p, int fd, const struct stat *st, struct err *err)
{
    uint64_t done = 0;
    ssize_t n;

    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_os(err, "reading");
    while ((n = read_some(fd, p->chunk, PACK_CHUNK)) > 0) {
        done += (uint64_t)n;
        if (done > (uint64_t)st->st_size || pack_data(p, p->chunk, (size_t)n, err) < 0 ||
            job_in_time(p->job, err) < 0)
            break;
        event_progress(p->job, "packing a file", done, (uint64_t)st->st_size);
    }
    if (n < 0)
        return err_os(err, "reading");
    if (has_changed(fd, st, err) < 0)
        return -1;
    if (n > 0)
        return -1; /* said by whoever broke the loop; a longer file has changed */
    p->bytes += done;
    return 0;
}

static int drop_for(struct packer *p, enum scrub_rule rule)
{
    struct scrub_result result = {.verdict = SCRUB_DROP};

    result.counts[rule] = 1;
    note_findings(p, &result);
    return 0;
}

static int write_large(struct packer *p, int fd, const struct stat *st, struct archive_entry *entry,
                       struct err *err)
{
    if (st->st_nlink > 1 && links_add(p->links, st->st_ino, p->path, err) < 0) {
        archive_entry_free(entry);
        return -1;
    }
    return pack_header(p, entry, err) < 0 ? -1 : copy_large(p, fd, st, err);
}

static int pack_large(struct packer *p, int fd, const struct stat *st, struct err *err)
{
    const char *first = st->st_nlink > 1 ? links_find(p->links, st->st_ino) : NULL;
    struct scrub_scan scan = {0};
    struct looker looker = {.p = p, .scan = p->filter ? &scan : NULL};
    enum scrub_rule found;

    if (first && !p->filter)
        return write_link(p, st, first, err);
    if (p->filter &&
        (scrub_is_structured(str_of(p->path)) || (uint64_t)st->st_size > SCRUB_SCAN_MAX))
        return drop_for(p, SCRUB_TOO_LARGE);
    if ((uint64_t)st->st_size > IMAGE_FILE_MAX)
        return err_set(err, ERR_LIMIT, "a file of more than %lu bytes", IMAGE_FILE_MAX);
    if (pack_entry(p, fd, st, &looker.entry, err) < 0)
        return -1;
    archive_entry_set_size(looker.entry, st->st_size);
    if (look_through(&looker, fd, st, err) < 0) {
        archive_entry_free(looker.entry);
        return -1;
    }
    if (p->filter && scrub_scan_end(&scan, &found)) {
        archive_entry_free(looker.entry);
        return drop_for(p, found);
    }
    if (first) {
        archive_entry_free(looker.entry);
        return write_link(p, st, first, err);
    }
    return write_large(p, fd, st, looker.entry, err);
}

/* ---- any file ---- */

int pack_file(struct packer *p, int at, const char *name, const struct stat *seen, struct err *err)
{
    AUTO_FD int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    const char *first;
    struct stat st;

    if (fd < 0)
        return err_os(err, "opening");
    if (fstat(fd, &st) < 0)
        return err_os(err, "looking at a file");
    if (!S_ISREG(st.st_mode) || st.st_ino != seen->st_ino)
        return err_set(err, ERR_CONFLICT, "it was replaced while it was read; try again");
    first = st.st_nlink > 1 ? links_find(p->links, st.st_ino) : NULL;
    if (p->filter && (scrub_is_dropped(str_of(p->path)) || (first && !*first)))
        return drop_for(p, SCRUB_FILE_NAME);
    return (uint64_t)st.st_size > SCRUB_TEXT_MAX ? pack_large(p, fd, &st, err)
                                                 : pack_small(p, fd, &st, err);
}
