/* SPDX-License-Identifier: Apache-2.0 */

/* Folders of a kept sandbox as tar streams. Out, what a copy would leave out is left out too; in,
 * names that are absolute or lead up are refused, and all the rest happens inside anyway. */

#include "flow/execute/files.h"

#include "lib/base/buf.h"
#include "lib/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_BYTES 65536U
#define FOLDERS_MAX 100000U
#define DRAIN_MAX (1UL << 20) /* what stands behind the end of an archive */
#define HEADERS_MAX (128UL << 10)

static const char zeros[2 * TAR_BLOCK];

static size_t padding(uint64_t size)
{
    return (size_t)((TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK);
}

/* ---- out ---- */

struct tar_out {
    struct copy copy;
    int fd;
};

static int put_header(struct tar_out *tar, struct tar_entry *entry, const char *shown,
                      struct err *err)
{
    AUTO_BUF struct buf headers = BUF(HEADERS_MAX);
    int n = snprintf(entry->path, sizeof entry->path, ".%s%s", shown,
                     entry->kind == TAR_FOLDER ? "/" : "");

    if (n < 0 || (size_t)n >= sizeof entry->path)
        return err_set(err, ERR_LIMIT, "a path of more than %zu bytes", sizeof entry->path - 1);
    if (tar_header_write(entry, &headers, err) < 0)
        return -1;
    return copy_write_out(tar->copy.files, tar->fd, headers.p, headers.n, err);
}

static int put_content(struct tar_out *tar, int from, uint64_t size, char hash_out[HASH_TEXT_BYTES],
                       struct err *err)
{
    char chunk[CHUNK_BYTES];
    struct hasher hasher;
    struct hash hash;
    uint64_t at = 0;

    hasher_init(&hasher);
    while (at < size) {
        size_t want = size - at < sizeof chunk ? (size_t)(size - at) : sizeof chunk;
        ssize_t n = pread(from, chunk, want, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_os(err, "reading");
        if (n == 0)
            return err_set(err, ERR_CONFLICT, "it became shorter while it was read");
        hasher_add(&hasher, chunk, (size_t)n);
        if (copy_write_out(tar->copy.files, tar->fd, chunk, (size_t)n, err) < 0 ||
            copy_go_on(tar->copy.files, (uint64_t)n, err) < 0)
            return -1;
        at += (uint64_t)n;
    }
    hasher_end(&hasher, &hash);
    hash_text(&hash, hash_out);
    return copy_write_out(tar->copy.files, tar->fd, zeros, padding(size), err);
}

static int put_file(struct tar_out *tar, const char *path, const char *shown, struct err *err)
{
    struct tar_entry entry = {.kind = TAR_FILE};
    AUTO_FD int from = -1;
    char hash[HASH_TEXT_BYTES];
    struct stat st;

    if (copy_open(tar->copy.files, path, false, &from, &st, err) < 0)
        return -1;
    entry.mode = st.st_mode & COPY_MODE_MAX;
    entry.size = (uint64_t)st.st_size;
    entry.mtime_s = st.st_mtim.tv_sec;
    entry.mtime_ns = (uint32_t)st.st_mtim.tv_nsec;
    if (put_header(tar, &entry, shown, err) < 0)
        return -1;
    if (put_content(tar, from, entry.size, hash, err) < 0)
        return err_in(err, "%.300s", path);
    tar->copy.files->moved->entries++;
    return copy_note(&tar->copy, 'f', st.st_mode, hash, shown, err);
}

static void take_attributes(const struct file_entry *from, struct tar_entry *to)
{
    to->mode = from->mode & COPY_MODE_MAX;
    to->mtime_s = from->mtime_s;
    to->mtime_ns = from->mtime_ns;
}

static int put_link(struct tar_out *tar, const struct file_entry *link, const char *shown,
                    struct err *err)
{
    struct tar_entry entry = {.kind = TAR_LINK};

    if (link->target.n >= sizeof entry.target ||
        !file_link_stays(link->target, tar->copy.depth - 1)) {
        tar->copy.files->moved->skipped++;
        return 0;
    }
    take_attributes(link, &entry);
    memcpy(entry.target, link->target.p, link->target.n);
    if (put_header(tar, &entry, shown, err) < 0)
        return -1;
    tar->copy.files->moved->entries++;
    return copy_note(&tar->copy, 'l', 0, entry.target, shown, err);
}

static int put_folder(struct tar_out *tar, const char *path, bool follow,
                      const struct file_entry *self, const char *shown, struct err *err);

static int put_entry(struct tar_out *tar, const char *folder, const struct file_entry *entry,
                     const char *shown_folder, struct err *err)
{
    char path[FILE_PATH_BYTES];
    char shown[FILE_PATH_BYTES];
    char name[256];

    memcpy(name, entry->name.p, entry->name.n); /* at most 255 bytes: it was checked */
    name[entry->name.n] = '\0';
    if (copy_join(folder, name, path, err) < 0 || copy_join(shown_folder, name, shown, err) < 0)
        return -1;
    if (S_ISDIR(entry->mode))
        return put_folder(tar, path, false, entry, shown, err);
    if (S_ISREG(entry->mode))
        return put_file(tar, path, shown, err);
    if (S_ISLNK(entry->mode))
        return put_link(tar, entry, shown, err);
    tar->copy.files->moved->skipped++;
    return 0;
}

static int put_folder(struct tar_out *tar, const char *path, bool follow,
                      const struct file_entry *self, const char *shown, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(COPY_FOLDER_MEMORY_MAX);
    struct tar_entry *entry = arena_new(&mem, struct tar_entry);
    struct file_listing listing;

    entry->kind = TAR_FOLDER;
    take_attributes(self, entry);
    if (copy_enter(&tar->copy, err) < 0 ||
        files_list_folder(tar->copy.files, &mem, path, follow, &listing, err) < 0)
        return -1;
    if (listing.more)
        return err_set(err, ERR_LIMIT, "%.300s has more entries than can be copied", path);
    if (put_header(tar, entry, shown, err) < 0 ||
        copy_note(&tar->copy, 'd', self->mode, "", shown, err) < 0)
        return -1;
    tar->copy.files->moved->entries++;
    for (size_t i = 0; i < listing.n; i++)
        if (put_entry(tar, path, &listing.entries[i], shown, err) < 0)
            return -1;
    tar->copy.depth--;
    return 0;
}

int files_tar_out(struct files *files, const char *path, int out_fd, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(COPY_FOLDER_MEMORY_MAX);
    struct tar_out tar = {.copy = {.files = files}, .fd = out_fd};
    struct file_entry self;

    hasher_init(&tar.copy.tree);
    if (files_stat(files, &mem, path, true, &self, err) < 0)
        return -1;
    files->moved->entries = 0;
    if (put_folder(&tar, path, true, &self, "", err) < 0 ||
        copy_write_out(files, out_fd, zeros, sizeof zeros, err) < 0)
        return -1;
    copy_finish(&tar.copy);
    return 0;
}

/* ---- in ---- */

/* Folders get mode and time when everything in them is there. */
struct tar_folder {
    struct tar_folder *next;
    const char *path;
    uint32_t mode;
    int64_t mtime_s;
    uint32_t mtime_ns;
};

struct tar_in {
    struct copy copy;
    int fd;
    const char *top; /* inside */
    struct arena mem;
    struct tar_folder *folders; /* the last one first */
    size_t folder_n;
};

/* Exactly n bytes; 0 when there are none at all. */
static int take_bytes(struct tar_in *tar, char *out, size_t n, struct err *err)
{
    size_t at = 0;

    while (at < n) {
        ssize_t got;

        if (files_wait(tar->copy.files, tar->fd, POLLIN, -1, err) < 0)
            return -1;
        got = read(tar->fd, out + at, n - at);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got < 0)
            return err_os(err, "reading the archive");
        if (got == 0)
            return at ? err_set(err, ERR_INVALID, "the archive ends too early") : 0;
        at += (size_t)got;
    }
    return 1;
}

static int take_all(struct tar_in *tar, char *out, size_t n, struct err *err)
{
    int got = n ? take_bytes(tar, out, n, err) : 1;

    return got == 0 ? err_set(err, ERR_INVALID, "the archive ends too early") : got;
}

static int pass_over(struct tar_in *tar, uint64_t n, struct err *err)
{
    char chunk[CHUNK_BYTES];

    while (n > 0) {
        size_t part = n < sizeof chunk ? (size_t)n : sizeof chunk;

        if (take_all(tar, chunk, part, err) < 0)
            return -1;
        n -= part;
    }
    return 0;
}

static int ask_for(struct tar_in *tar, enum file_op op, uint32_t flags, const char *path,
                   const char *other, const struct tar_entry *entry, struct err *err)
{
    struct file_request request;

    if (file_request_fill(&request, op, flags, path, other, err) < 0)
        return -1;
    request.mode = entry->mode;
    request.mtime_s = entry->mtime_s;
    request.mtime_ns = entry->mtime_ns;
    return files_ask(tar->copy.files, &request, NULL, err) < 0 ? -1 : 0;
}

/* Archives need not name the folders their files are in. */
static int make_parents(struct tar_in *tar, const char *path, struct err *err)
{
    struct tar_entry plain = {.mode = 0755};
    char parent[FILE_PATH_BYTES];
    char *slash;

    (void)strcpy(parent, path);
    slash = strrchr(parent, '/');
    if (!slash || slash == parent)
        return 0;
    *slash = '\0';
    return ask_for(tar, FILE_MAKE_DIR, FILE_RECURSIVE, parent, "", &plain, err);
}

/* Paths of a tree hash begin at its top, which has none. */
static int note(struct tar_in *tar, char type, const char *content, const struct tar_entry *entry,
                struct err *err)
{
    char shown[FILE_PATH_BYTES + 1];

    (void)snprintf(shown, sizeof shown, "%s%s", entry->path[0] ? "/" : "", entry->path);
    return copy_note(&tar->copy, type, type == 'l' ? 0 : entry->mode, content, shown, err);
}

static int take_file(struct tar_in *tar, const struct tar_entry *entry, const char *path,
                     struct err *err)
{
    struct timespec mtime = {.tv_sec = entry->mtime_s, .tv_nsec = entry->mtime_ns};
    AUTO_FD int to = -1;
    char chunk[CHUNK_BYTES];
    char text[HASH_TEXT_BYTES];
    struct hasher hasher;
    struct hash hash;

    if (copy_create(tar->copy.files, path, &to, err) < 0 &&
        (err->code != ERR_NOT_FOUND || make_parents(tar, path, err) < 0 ||
         copy_create(tar->copy.files, path, &to, err) < 0))
        return -1;
    if (copy_fits(tar->copy.files, entry->size, err) < 0)
        return err_in(err, "%.300s", path);
    hasher_init(&hasher);
    for (uint64_t left = entry->size; left > 0;) {
        size_t part = left < sizeof chunk ? (size_t)left : sizeof chunk;

        if (take_all(tar, chunk, part, err) < 0)
            return -1;
        hasher_add(&hasher, chunk, part);
        if (write_all(to, chunk, part, err) < 0)
            return err_in(err, "%.300s", path);
        if (copy_go_on(tar->copy.files, part, err) < 0)
            return -1;
        left -= part;
    }
    hasher_end(&hasher, &hash);
    hash_text(&hash, text);
    if (copy_commit(tar->copy.files, 0, entry->mode, &mtime, err) < 0)
        return -1;
    return note(tar, 'f', text, entry, err);
}

static int take_folder(struct tar_in *tar, const struct tar_entry *entry, const char *path,
                       struct err *err)
{
    struct tar_entry open_mode = {.mode = 0700};
    struct tar_folder *folder;

    if (++tar->folder_n > FOLDERS_MAX)
        return err_set(err, ERR_LIMIT, "more than %u folders in one archive", FOLDERS_MAX);
    if (ask_for(tar, FILE_MAKE_DIR, FILE_RECURSIVE, path, "", &open_mode, err) < 0)
        return -1;
    folder = arena_new(&tar->mem, struct tar_folder);
    *folder = (struct tar_folder){tar->folders, arena_text(&tar->mem, str_of(path)), entry->mode,
                                  entry->mtime_s, entry->mtime_ns};
    tar->folders = folder;
    tar->copy.files->moved->entries++;
    return note(tar, 'd', "", entry, err);
}

static int take_link(struct tar_in *tar, const struct tar_entry *entry, const char *path,
                     struct err *err)
{
    if (ask_for(tar, FILE_MAKE_LINK, 0, path, entry->target, entry, err) < 0 &&
        (err->code != ERR_NOT_FOUND || make_parents(tar, path, err) < 0 ||
         ask_for(tar, FILE_MAKE_LINK, 0, path, entry->target, entry, err) < 0))
        return -1;
    tar->copy.files->moved->entries++;
    return note(tar, 'l', entry->target, entry, err);
}

static int take_entry(struct tar_in *tar, struct tar_entry *entry, struct err *err)
{
    char path[FILE_PATH_BYTES];

    if (!tar_path_clean(entry->path))
        return err_set(err, ERR_INVALID, "%.300s: a path in an archive may not lead out of it",
                       entry->path);
    if (entry->kind == TAR_SPECIAL) {
        tar->copy.files->moved->skipped++;
        return pass_over(tar, entry->size, err);
    }
    if (entry->path[0] ? copy_join(tar->top, entry->path, path, err) < 0
                       : snprintf(path, sizeof path, "%s", tar->top) < 0)
        return -1;
    if (entry->kind == TAR_FOLDER)
        return pass_over(tar, entry->size, err) < 0 ? -1 : take_folder(tar, entry, path, err);
    if (!entry->path[0])
        return err_set(err, ERR_INVALID, "a file of the archive has no name");
    if (entry->kind == TAR_LINK)
        return pass_over(tar, entry->size, err) < 0 ? -1 : take_link(tar, entry, path, err);
    return take_file(tar, entry, path, err);
}

/* What is said about the next entry, ahead of it. */
struct ahead {
    struct buf extended;
    struct buf path;
    struct buf target;
};

static int take_ahead(struct tar_in *tar, const struct tar_entry *entry, struct ahead *ahead,
                      struct err *err)
{
    struct buf *to = entry->kind == TAR_EXTENDED    ? &ahead->extended
                     : entry->kind == TAR_LONG_PATH ? &ahead->path
                                                    : &ahead->target;
    AUTO_FREE char *text = NULL;

    if (entry->size > TAR_EXTENDED_MAX)
        return err_set(err, ERR_LIMIT, "an extended header of more than %lu bytes",
                       TAR_EXTENDED_MAX);
    text = xcalloc((size_t)entry->size + 1, 1);
    if (take_all(tar, text, (size_t)entry->size, err) < 0)
        return -1;
    buf_clear(to);
    return buf_add(to, text, entry->kind == TAR_EXTENDED ? (size_t)entry->size : strlen(text), err);
}

static int apply_ahead(struct ahead *ahead, struct tar_entry *entry, struct err *err)
{
    if (ahead->path.n >= sizeof entry->path || ahead->target.n >= sizeof entry->target)
        return err_set(err, ERR_LIMIT, "a path of more than %zu bytes", sizeof entry->path - 1);
    if (ahead->path.n)
        (void)strcpy(entry->path, buf_text(&ahead->path));
    if (ahead->target.n)
        (void)strcpy(entry->target, buf_text(&ahead->target));
    if (tar_extended_read(buf_str(&ahead->extended), entry, err) < 0)
        return -1;
    buf_clear(&ahead->extended);
    buf_clear(&ahead->path);
    buf_clear(&ahead->target);
    return 0;
}

/* One header and what belongs to it; 0 at the end. */
static int take_next(struct tar_in *tar, struct ahead *ahead, struct err *err)
{
    struct tar_entry entry;
    char block[TAR_BLOCK];
    uint64_t size;
    int got;
    int failed;

    if (take_all(tar, block, sizeof block, err) < 0)
        return -1;
    got = tar_header_read(block, &entry, err);
    if (got <= 0)
        return got;
    if (entry.kind == TAR_GLOBAL) {
        failed = pass_over(tar, entry.size, err);
    } else if (entry.kind == TAR_EXTENDED || entry.kind == TAR_LONG_PATH ||
               entry.kind == TAR_LONG_TARGET) {
        failed = take_ahead(tar, &entry, ahead, err);
    } else {
        failed = apply_ahead(ahead, &entry, err);
        if (!failed)
            failed = take_entry(tar, &entry, err);
    }
    size = entry.size;
    return failed || pass_over(tar, padding(size), err) < 0 ? -1 : 1;
}

/* Whoever writes the archive fills its last block; let it. */
static void drain(struct tar_in *tar)
{
    char chunk[4096];
    struct err ignored; /* the archive itself is complete */

    for (size_t n = 0; n < DRAIN_MAX; n += sizeof chunk)
        if (take_bytes(tar, chunk, sizeof chunk, &ignored) <= 0)
            return;
}

static int take_archive(struct tar_in *tar, struct err *err)
{
    struct ahead ahead = {BUF(TAR_EXTENDED_MAX + 1), BUF(TAR_EXTENDED_MAX + 1),
                          BUF(TAR_EXTENDED_MAX + 1)};
    struct tar_entry top = {.mode = 0755};
    int got = ask_for(tar, FILE_MAKE_DIR, FILE_RECURSIVE, tar->top, "", &top, err) < 0 ? -1 : 1;

    while (got > 0)
        got = take_next(tar, &ahead, err);
    buf_done(&ahead.extended);
    buf_done(&ahead.path);
    buf_done(&ahead.target);
    for (const struct tar_folder *f = tar->folders; got == 0 && f; f = f->next) {
        struct tar_entry set = {.mode = f->mode, .mtime_s = f->mtime_s, .mtime_ns = f->mtime_ns};

        got = ask_for(tar, FILE_SET, FILE_TIMES, f->path, "", &set, err);
    }
    return got;
}

int files_tar_in(struct files *files, const char *path, int in_fd, struct err *err)
{
    struct tar_in tar = {.copy = {.files = files},
                         .fd = in_fd,
                         .top = path,
                         .mem = ARENA(8 * COPY_FOLDER_MEMORY_MAX)};
    int failed;

    hasher_init(&tar.copy.tree);
    failed = take_archive(&tar, err);
    arena_done(&tar.mem);
    if (failed)
        return -1;
    drain(&tar);
    copy_finish(&tar.copy);
    return 0;
}
