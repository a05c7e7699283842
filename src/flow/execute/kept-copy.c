/* SPDX-License-Identifier: Apache-2.0 */

/* Bytes between this machine and a kept sandbox; kept-fetch.c and kept-push.c copy trees with this.
 *
 * Inside, paths are resolved by the sandbox's own process. On this machine only the top of a copy
 * is a path, the one its user wrote; everything beneath it is reached name by name from a
 * descriptor, through no link, and files are made under another name and put in place whole. So
 * neither side can lead the other anywhere by changing a folder while it is copied.
 *
 * The hash of a file is that of its content; the hash of a tree is over one line per entry, in
 * the order of their names: type, mode, hash or link text, path, NUL. */

#include "flow/execute/files.h"

#include "lib/base/buf.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_BYTES 65536U
#define SURE_BYTES 4096U /* PIPE_BUF: never blocks after POLLOUT */
#define WAIT_FOREVER (-1)
#define FILE_BYTES_MAX (64 * GIB)
#define TREE_DEPTH_MAX 128U
#define TREE_ENTRIES_MAX 1000000U

/* Between chunks: whether to go on. */
int copy_go_on(struct files *files, uint64_t n, struct err *err)
{
    struct pollfd polled = {.fd = files->signals_fd, .events = POLLIN};

    files->moved->bytes += n;
    files_tell(files);
    if (poll(&polled, 1, 0) == 1) {
        files->cancelled = true;
        return err_set(err, ERR_CONFLICT, "interrupted");
    }
    return 0;
}

/* ---- one file ---- */

static void hash_zeros(struct hasher *hasher, uint64_t n)
{
    static const char zeros[CHUNK_BYTES];

    for (; n > 0; n -= n < sizeof zeros ? n : sizeof zeros)
        hasher_add(hasher, zeros, n < sizeof zeros ? (size_t)n : sizeof zeros);
}

/* A file inside is written through a descriptor of ours, so the kernel holds it against our limit
 * and not against the sandbox's; waiting for the disk to be looked at would let it grow by as much
 * as fits into that time. */
int copy_fits(const struct files *files, uint64_t size, struct err *err)
{
    if (!files->file_max || size <= files->file_max)
        return 0;
    return err_set(err, ERR_LIMIT,
                   "a file of more than %" PRIu64 " bytes, the sandbox's disk limit",
                   files->file_max);
}

static int write_at(int fd, const char *bytes, size_t n, off_t at, struct err *err)
{
    while (n > 0) {
        ssize_t wrote = pwrite(fd, bytes, n, at);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return err_os(err, "writing");
        bytes += wrote;
        n -= (size_t)wrote;
        at += wrote;
    }
    return 0;
}

static int copy_range(struct files *files, int from, int to, off_t at, off_t end,
                      struct hasher *hasher, struct err *err)
{
    char chunk[CHUNK_BYTES];

    while (at < end) {
        size_t want = end - at < (off_t)sizeof chunk ? (size_t)(end - at) : sizeof chunk;
        ssize_t n = pread(from, chunk, want, at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_os(err, "reading");
        if (n == 0)
            return err_set(err, ERR_CONFLICT, "it became shorter while it was copied");
        hasher_add(hasher, chunk, (size_t)n);
        if (write_at(to, chunk, (size_t)n, at, err) < 0 || copy_go_on(files, (uint64_t)n, err) < 0)
            return -1;
        at += n;
    }
    return 0;
}

/* As long as it was when we looked, holes as holes. */
int copy_content(struct files *files, int from, int to, off_t size, char out[HASH_TEXT_BYTES],
                 struct err *err)
{
    struct hasher hasher;
    struct hash hash;
    off_t at = 0;

    if ((uint64_t)size > FILE_BYTES_MAX)
        return err_set(err, ERR_LIMIT, "a file of more than %lu GiB", FILE_BYTES_MAX / GIB);
    if (copy_fits(files, (uint64_t)size, err) < 0)
        return -1;
    if (ftruncate(to, size) < 0)
        return err_os(err, "making room");
    hasher_init(&hasher);
    while (at < size) {
        off_t data = lseek(from, at, SEEK_DATA);
        off_t hole;

        if (data < 0)
            data = errno == ENXIO ? size : at; /* nothing but a hole, or nobody knows */
        data = data > size ? size : data;
        hole = data < size ? lseek(from, data, SEEK_HOLE) : size;
        hole = hole <= data || hole > size ? size : hole;
        hash_zeros(&hasher, (uint64_t)(data - at));
        if (copy_range(files, from, to, data, hole, &hasher, err) < 0)
            return -1;
        at = hole;
    }
    hasher_end(&hasher, &hash);
    hash_text(&hash, out);
    return 0;
}

int copy_open(struct files *files, const char *path, bool follow, int *out, struct stat *st,
              struct err *err)
{
    struct file_request request;

    if (file_request_fill(&request, FILE_READ, follow ? FILE_FOLLOW : 0, path, "", err) < 0 ||
        files_ask(files, &request, out, err) < 0)
        return -1;
    return fstat(*out, st) < 0 ? err_os(err, "looking at a file") : 0;
}

/* A sink may be a pipe whose reader takes its time, or is gone. */
int copy_write_out(struct files *files, int fd, const char *bytes, size_t n, struct err *err)
{
    struct stat st;
    size_t step = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? CHUNK_BYTES : SURE_BYTES;

    while (n > 0) {
        ssize_t wrote;

        if (files_wait(files, fd, POLLOUT, WAIT_FOREVER, err) < 0)
            return -1;
        wrote = write(fd, bytes, n < step ? n : step);
        if (wrote < 0 && errno != EINTR && errno != EAGAIN)
            return err_os(err, "writing");
        if (wrote > 0) {
            bytes += wrote;
            n -= (size_t)wrote;
        }
    }
    return 0;
}

static int cat_range(struct files *files, const char *path, int from, const struct files_part *part,
                     struct err *err)
{
    off_t at = (off_t)part->from, end = at + (off_t)part->length;
    char chunk[CHUNK_BYTES];
    struct hasher hasher;
    struct hash hash;

    hasher_init(&hasher);
    while (at < end) {
        size_t want = end - at < (off_t)sizeof chunk ? (size_t)(end - at) : sizeof chunk;
        ssize_t n = pread(from, chunk, want, at);

        if (n < 0 && errno != EINTR)
            return err_os(err, "reading %.300s", path);
        if (n == 0)
            return err_set(err, ERR_CONFLICT, "%.300s became shorter while it was read", path);
        if (n < 0)
            continue;
        hasher_add(&hasher, chunk, (size_t)n);
        if (copy_write_out(files, part->out_fd, chunk, (size_t)n, err) < 0 ||
            copy_go_on(files, (uint64_t)n, err) < 0)
            return -1;
        at += n;
    }
    hasher_end(&hasher, &hash);
    hash_text(&hash, files->moved->hash);
    files->moved->entries++;
    return 0;
}

int files_cat_part(struct files *files, const char *path, struct files_part *part, struct err *err)
{
    struct file_entry entry = {0};
    AUTO_FD int from = -1;
    struct stat st;

    if (copy_open(files, path, true, &from, &st, err) < 0)
        return -1;
    entry.mode = st.st_mode;
    entry.size = (uint64_t)st.st_size;
    entry.mtime_s = st.st_mtim.tv_sec;
    entry.mtime_ns = (uint32_t)st.st_mtim.tv_nsec;
    entry.changed_ns = (uint64_t)st.st_ctim.tv_sec * 1000000000U + (uint64_t)st.st_ctim.tv_nsec;
    if (part->on_open(part->context, &entry, part, err) < 0)
        return -1;
    return part->length ? cat_range(files, path, from, part, err) : 0;
}

int files_open_file(struct files *files, const char *path, int *out, struct err *err)
{
    struct stat st;

    return copy_open(files, path, true, out, &st, err);
}

int files_cat(struct files *files, const char *path, int out_fd, struct err *err)
{
    AUTO_FD int from = -1;
    struct stat st;
    struct files_part whole = {.out_fd = out_fd};

    if (copy_open(files, path, true, &from, &st, err) < 0)
        return -1;
    whole.length = (uint64_t)st.st_size;
    return cat_range(files, path, from, &whole, err);
}

/* Opens the new file beside its place; whoever fails later leaves it to the keeper, which removes
 * what is not committed with the next request or the end of the connection. */
int copy_create(struct files *files, const char *path, int *out, struct err *err)
{
    struct file_request request;

    if (file_request_fill(&request, FILE_CREATE, 0, path, "", err) < 0)
        return -1;
    files->file_max = 0;
    return files_ask(files, &request, out, err) < 0 ? -1 : 0;
}

int copy_commit(struct files *files, uint32_t flags, uint32_t mode, const struct timespec *mtime,
                struct err *err)
{
    struct file_request request;

    if (file_request_fill(&request, FILE_COMMIT, flags | (mtime ? FILE_TIMES : 0), "", "", err) < 0)
        return -1;
    request.mode = mode & COPY_MODE_MAX;
    if (mtime) {
        request.mtime_s = mtime->tv_sec;
        request.mtime_ns = (uint32_t)mtime->tv_nsec;
    }
    if (files_ask(files, &request, NULL, err) < 0)
        return -1;
    files->moved->entries++;
    return 0;
}

int files_write(struct files *files, const char *path, int in_fd, struct err *err)
{
    AUTO_FD int to = -1;
    char chunk[CHUNK_BYTES];
    struct hasher hasher;
    struct hash hash;
    off_t at = 0;

    if (copy_create(files, path, &to, err) < 0)
        return -1;
    hasher_init(&hasher);
    for (;;) {
        ssize_t n;

        if (files_wait(files, in_fd, POLLIN, WAIT_FOREVER, err) < 0)
            return -1;
        n = read(in_fd, chunk, sizeof chunk);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n < 0)
            return err_os(err, "reading the input");
        if (n == 0)
            break;
        hasher_add(&hasher, chunk, (size_t)n);
        if (copy_fits(files, (uint64_t)(at + n), err) < 0 ||
            write_at(to, chunk, (size_t)n, at, err) < 0)
            return err_in(err, "%.300s", path);
        if (copy_go_on(files, (uint64_t)n, err) < 0)
            return -1;
        at += n;
    }
    hasher_end(&hasher, &hash);
    hash_text(&hash, files->moved->hash);
    return copy_commit(files, FILE_KEEP_MODE, 0, NULL, err);
}

/* ---- trees ---- */

int copy_join(const char *path, const char *name, char out[FILE_PATH_BYTES], struct err *err)
{
    size_t n = strlen(path);
    int wrote =
        snprintf(out, FILE_PATH_BYTES, "%s%s%s", path, n && path[n - 1] == '/' ? "" : "/", name);

    return wrote < 0 || wrote >= FILE_PATH_BYTES
               ? err_set(err, ERR_LIMIT, "a path of more than %d bytes", FILE_PATH_BYTES - 1)
               : 0;
}

/* The last name of a path, or "" when it has none of its own. */
void copy_last_name(const char *path, char out[256])
{
    size_t end = strlen(path);
    size_t start;

    while (end > 0 && path[end - 1] == '/')
        end--;
    for (start = end; start > 0 && path[start - 1] != '/'; start--)
        continue;
    out[0] = '\0';
    if (file_name_is_safe((struct str){path + start, end - start})) {
        memcpy(out, path + start, end - start);
        out[end - start] = '\0';
    }
}

int copy_note(struct copy *copy, char type, uint32_t mode, const char *content, const char *path,
              struct err *err)
{
    char head[32];
    int n = snprintf(head, sizeof head, "%c %o ", type, mode & COPY_MODE_MAX);

    hasher_add(&copy->tree, head, (size_t)n);
    hasher_add(&copy->tree, content, strlen(content));
    hasher_add(&copy->tree, " ", 1);
    hasher_add(&copy->tree, path, strlen(path) + 1);
    if (copy->files->moved->entries + copy->files->moved->skipped > TREE_ENTRIES_MAX)
        return err_set(err, ERR_LIMIT, "more than %u entries", TREE_ENTRIES_MAX);
    return 0;
}

int copy_enter(struct copy *copy, struct err *err)
{
    if (copy->depth >= TREE_DEPTH_MAX)
        return err_set(err, ERR_LIMIT, "more than %u folders inside each other", TREE_DEPTH_MAX);
    copy->depth++;
    return 0;
}

void copy_finish(struct copy *copy)
{
    struct hash hash;

    hasher_end(&copy->tree, &hash);
    hash_text(&hash, copy->files->moved->hash);
    copy->files->moved->is_tree = true;
}
