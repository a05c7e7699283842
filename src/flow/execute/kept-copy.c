/* SPDX-License-Identifier: Apache-2.0 */

/* Bytes between this machine and a kept sandbox.
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

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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
#define FOLDER_MEMORY_MAX (64 * MIB)
#define MODE_MAX 0777U

struct copy {
    struct files *files;
    struct hasher tree;
    unsigned depth;
};

/* Between chunks: whether to go on. */
static int go_on(struct files *files, uint64_t n, struct err *err)
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
        if (write_at(to, chunk, (size_t)n, at, err) < 0 || go_on(files, (uint64_t)n, err) < 0)
            return -1;
        at += n;
    }
    return 0;
}

/* As long as it was when we looked, holes as holes. */
static int copy_content(struct files *files, int from, int to, off_t size,
                        char out[HASH_TEXT_BYTES], struct err *err)
{
    struct hasher hasher;
    struct hash hash;
    off_t at = 0;

    if ((uint64_t)size > FILE_BYTES_MAX)
        return err_set(err, ERR_LIMIT, "a file of more than %lu GiB", FILE_BYTES_MAX / GIB);
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

static int open_inside(struct files *files, const char *path, bool follow, int *out,
                       struct stat *st, struct err *err)
{
    struct file_request request;

    if (file_request_fill(&request, FILE_READ, follow ? FILE_FOLLOW : 0, path, "", err) < 0 ||
        files_ask(files, &request, out, err) < 0)
        return -1;
    return fstat(*out, st) < 0 ? err_os(err, "looking at a file") : 0;
}

/* A sink may be a pipe whose reader takes its time, or is gone. */
static int write_out(struct files *files, int fd, const char *bytes, size_t n, struct err *err)
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

int files_cat(struct files *files, const char *path, int out_fd, struct err *err)
{
    AUTO_FD int from = -1;
    char chunk[CHUNK_BYTES];
    struct hasher hasher;
    struct hash hash;
    struct stat st;
    off_t at = 0;

    if (open_inside(files, path, true, &from, &st, err) < 0)
        return -1;
    hasher_init(&hasher);
    while (at < st.st_size) {
        size_t want =
            st.st_size - at < (off_t)sizeof chunk ? (size_t)(st.st_size - at) : sizeof chunk;
        ssize_t n = pread(from, chunk, want, at);

        if (n < 0 && errno != EINTR)
            return err_os(err, "reading %.300s", path);
        if (n == 0)
            return err_set(err, ERR_CONFLICT, "%.300s became shorter while it was read", path);
        if (n < 0)
            continue;
        hasher_add(&hasher, chunk, (size_t)n);
        if (write_out(files, out_fd, chunk, (size_t)n, err) < 0 ||
            go_on(files, (uint64_t)n, err) < 0)
            return -1;
        at += n;
    }
    hasher_end(&hasher, &hash);
    hash_text(&hash, files->moved->hash);
    files->moved->entries++;
    return 0;
}

/* Opens the new file beside its place; whoever fails later leaves it to the keeper, which removes
 * what is not committed with the next request or the end of the connection. */
static int create_inside(struct files *files, const char *path, int *out, struct err *err)
{
    struct file_request request;

    if (file_request_fill(&request, FILE_CREATE, 0, path, "", err) < 0)
        return -1;
    return files_ask(files, &request, out, err) < 0 ? -1 : 0;
}

static int commit_inside(struct files *files, uint32_t flags, uint32_t mode,
                         const struct timespec *mtime, struct err *err)
{
    struct file_request request;

    if (file_request_fill(&request, FILE_COMMIT, flags | (mtime ? FILE_TIMES : 0), "", "", err) < 0)
        return -1;
    request.mode = mode & MODE_MAX;
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

    if (create_inside(files, path, &to, err) < 0)
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
        if (write_at(to, chunk, (size_t)n, at, err) < 0)
            return err_in(err, "%.300s", path);
        if (go_on(files, (uint64_t)n, err) < 0)
            return -1;
        at += n;
    }
    hasher_end(&hasher, &hash);
    hash_text(&hash, files->moved->hash);
    return commit_inside(files, FILE_KEEP_MODE, 0, NULL, err);
}

/* ---- trees ---- */

static int join(const char *path, const char *name, char out[FILE_PATH_BYTES], struct err *err)
{
    size_t n = strlen(path);
    int wrote =
        snprintf(out, FILE_PATH_BYTES, "%s%s%s", path, n && path[n - 1] == '/' ? "" : "/", name);

    return wrote < 0 || wrote >= FILE_PATH_BYTES
               ? err_set(err, ERR_LIMIT, "a path of more than %d bytes", FILE_PATH_BYTES - 1)
               : 0;
}

/* The last name of a path, or "" when it has none of its own. */
static void last_name(const char *path, char out[256])
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

static int note_entry(struct copy *copy, char type, uint32_t mode, const char *content,
                      const char *path, struct err *err)
{
    char head[32];
    int n = snprintf(head, sizeof head, "%c %o ", type, mode & MODE_MAX);

    hasher_add(&copy->tree, head, (size_t)n);
    hasher_add(&copy->tree, content, strlen(content));
    hasher_add(&copy->tree, " ", 1);
    hasher_add(&copy->tree, path, strlen(path) + 1);
    if (copy->files->moved->entries + copy->files->moved->skipped > TREE_ENTRIES_MAX)
        return err_set(err, ERR_LIMIT, "more than %u entries", TREE_ENTRIES_MAX);
    return 0;
}

static int enter(struct copy *copy, struct err *err)
{
    if (copy->depth >= TREE_DEPTH_MAX)
        return err_set(err, ERR_LIMIT, "more than %u folders inside each other", TREE_DEPTH_MAX);
    copy->depth++;
    return 0;
}

/* ---- out of the sandbox ---- */

struct place {
    int dir_fd; /* on this machine */
    char name[256];
};

static int temp_name(char out[64], struct err *err)
{
    char id[ID_BYTES];

    (void)err;
    id_new(id);
    (void)snprintf(out, 64, ".brig-%s", id);
    return 0;
}

static int set_both(int fd, uint32_t mode, int64_t mtime_s, uint32_t mtime_ns, struct err *err)
{
    struct timespec times[] = {
        {.tv_nsec = UTIME_OMIT},
        { .tv_sec = mtime_s,  .tv_nsec = mtime_ns}
    };

    if (fchmod(fd, mode & MODE_MAX) < 0 || futimens(fd, times) < 0)
        return err_os(err, "setting mode and time");
    return 0;
}

static int fetch_into(struct files *files, int from, const struct stat *st, int dir_fd,
                      const char *temp, char hash[HASH_TEXT_BYTES], struct err *err)
{
    AUTO_FD int to =
        openat(dir_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (to < 0)
        return err_os(err, "creating a file");
    if (copy_content(files, from, to, st->st_size, hash, err) < 0)
        return -1;
    return set_both(to, st->st_mode, st->st_mtim.tv_sec, (uint32_t)st->st_mtim.tv_nsec, err);
}

static int fetch_file(struct copy *copy, const char *path, bool follow, const struct place *place,
                      const char *shown, struct err *err)
{
    AUTO_FD int from = -1;
    char hash[HASH_TEXT_BYTES];
    char temp[64];
    struct stat st;
    int failed;

    if (open_inside(copy->files, path, follow, &from, &st, err) < 0 || temp_name(temp, err) < 0)
        return -1;
    failed = fetch_into(copy->files, from, &st, place->dir_fd, temp, hash, err);
    if (!failed && renameat(place->dir_fd, temp, place->dir_fd, place->name) < 0)
        failed = err_os(err, "putting it in place");
    if (failed) {
        (void)unlinkat(place->dir_fd, temp, 0); /* ours, if it was made at all */
        return err_in(err, "%.300s", path);
    }
    (void)strcpy(copy->files->moved->hash, hash);
    copy->files->moved->entries++;
    return note_entry(copy, 'f', st.st_mode, hash, shown, err);
}

static int fetch_link(struct copy *copy, const struct file_entry *entry, const struct place *place,
                      const char *shown, struct err *err)
{
    char target[FILE_PATH_BYTES];
    char temp[64];

    if (entry->target.n >= sizeof target || !file_link_stays(entry->target, copy->depth - 1)) {
        copy->files->moved->skipped++;
        return 0;
    }
    memcpy(target, entry->target.p, entry->target.n);
    target[entry->target.n] = '\0';
    if (temp_name(temp, err) < 0)
        return -1;
    if (symlinkat(target, place->dir_fd, temp) < 0)
        return err_os(err, "making a link");
    if (renameat(place->dir_fd, temp, place->dir_fd, place->name) < 0) {
        (void)err_os(err, "putting a link in place");
        (void)unlinkat(place->dir_fd, temp, 0); /* ours, made just now */
        return -1;
    }
    copy->files->moved->entries++;
    return note_entry(copy, 'l', 0, target, shown, err);
}

static int open_place(const struct place *place, int *out, struct err *err)
{
    if (mkdirat(place->dir_fd, place->name, 0700) < 0 && errno != EEXIST)
        return err_os(err, "making the folder %.200s", place->name);
    *out = openat(place->dir_fd, place->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *out < 0 ? err_os(err, "opening the folder %.200s", place->name) : 0;
}

static int fetch_folder(struct copy *copy, const char *path, bool follow,
                        const struct file_entry *self, const struct place *place, const char *shown,
                        struct err *err);

static int fetch_entry(struct copy *copy, const char *folder, const struct file_entry *entry,
                       int dir_fd, const char *shown_folder, struct err *err)
{
    char path[FILE_PATH_BYTES];
    char shown[FILE_PATH_BYTES];
    struct place place = {.dir_fd = dir_fd};

    memcpy(place.name, entry->name.p, entry->name.n); /* at most 255 bytes: it was checked */
    place.name[entry->name.n] = '\0';
    if (join(folder, place.name, path, err) < 0 || join(shown_folder, place.name, shown, err) < 0)
        return -1;
    switch (entry->mode & S_IFMT) {
    case S_IFDIR:
        return fetch_folder(copy, path, false, entry, &place, shown, err);
    case S_IFREG:
        return fetch_file(copy, path, false, &place, shown, err);
    case S_IFLNK:
        return fetch_link(copy, entry, &place, shown, err);
    default:
        copy->files->moved->skipped++;
        return 0;
    }
}

static int fetch_folder(struct copy *copy, const char *path, bool follow,
                        const struct file_entry *self, const struct place *place, const char *shown,
                        struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(FOLDER_MEMORY_MAX);
    struct file_listing listing;
    AUTO_FD int fd = -1;

    if (enter(copy, err) < 0 ||
        files_list_folder(copy->files, &mem, path, follow, &listing, err) < 0)
        return -1;
    if (listing.more)
        return err_set(err, ERR_LIMIT, "%.300s has more entries than can be copied", path);
    if (open_place(place, &fd, err) < 0 || note_entry(copy, 'd', self->mode, "", shown, err) < 0)
        return -1;
    copy->files->moved->entries++;
    for (size_t i = 0; i < listing.n; i++)
        if (fetch_entry(copy, path, &listing.entries[i], fd, shown, err) < 0)
            return -1;
    copy->depth--;
    return set_both(fd, self->mode, self->mtime_s, self->mtime_ns, err);
}

/* A folder that is there takes the copy in; otherwise the last name is the copy's. */
static int open_destination(const char *host_path, const char *source, struct place *place,
                            struct err *err)
{
    char parent[FILE_PATH_BYTES];
    size_t end = strlen(host_path);
    struct stat st;

    while (end > 0 && host_path[end - 1] == '/')
        end--;
    while (end > 0 && host_path[end - 1] != '/')
        end--;

    if (stat(host_path, &st) == 0 && S_ISDIR(st.st_mode)) {
        last_name(source, place->name);
        (void)snprintf(parent, sizeof parent, "%s", host_path);
    } else {
        last_name(host_path, place->name);
        (void)snprintf(parent, sizeof parent, "%.*s", end ? (int)end : 1, end ? host_path : ".");
    }
    if (!place->name[0])
        return err_set(err, ERR_INVALID, "%.300s: say what the copy is to be called", host_path);
    place->dir_fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return place->dir_fd < 0 ? err_os(err, "%.300s", parent) : 0;
}

static void finish_tree(struct copy *copy)
{
    struct hash hash;

    hasher_end(&copy->tree, &hash);
    hash_text(&hash, copy->files->moved->hash);
    copy->files->moved->is_tree = true;
}

int files_fetch(struct files *files, const char *path, const char *host_path, bool recursive,
                struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(FOLDER_MEMORY_MAX);
    struct copy copy = {.files = files};
    struct place place = {.dir_fd = -1};
    struct file_entry entry;
    int failed;

    hasher_init(&copy.tree);
    if (files_stat(files, &mem, path, true, &entry, err) < 0)
        return -1;
    files->moved->entries = 0;
    if (S_ISDIR(entry.mode) && !recursive)
        return err_set(err, ERR_INVALID, "%.300s is a directory; give --recursive to copy it",
                       path);
    if (open_destination(host_path, path, &place, err) < 0)
        return -1;
    failed = S_ISDIR(entry.mode) ? fetch_folder(&copy, path, true, &entry, &place, "", err)
                                 : fetch_file(&copy, path, true, &place, "", err);
    (void)close(place.dir_fd);
    if (!failed && S_ISDIR(entry.mode))
        finish_tree(&copy);
    return failed;
}

/* ---- into the sandbox ---- */

static int push_file(struct copy *copy, int from, const struct stat *st, const char *path,
                     const char *shown, struct err *err)
{
    AUTO_FD int to = -1;
    char hash[HASH_TEXT_BYTES];

    if (create_inside(copy->files, path, &to, err) < 0)
        return -1;
    if (copy_content(copy->files, from, to, st->st_size, hash, err) < 0)
        return err_in(err, "%.300s", path);
    if (commit_inside(copy->files, 0, st->st_mode, &st->st_mtim, err) < 0)
        return -1;
    (void)strcpy(copy->files->moved->hash, hash);
    return note_entry(copy, 'f', st->st_mode, hash, shown, err);
}

static int push_link(struct copy *copy, int dir_fd, const char *name, const char *path,
                     const char *shown, struct err *err)
{
    struct file_request request;
    char target[FILE_PATH_BYTES];
    ssize_t n = readlinkat(dir_fd, name, target, sizeof target - 1);

    if (n < 0)
        return err_os(err, "reading the link %.200s", name);
    target[n] = '\0';
    if (file_request_fill(&request, FILE_MAKE_LINK, 0, path, target, err) < 0 ||
        files_ask(copy->files, &request, NULL, err) < 0)
        return -1;
    copy->files->moved->entries++;
    return note_entry(copy, 'l', 0, target, shown, err);
}

static int push_folder(struct copy *copy, int fd, const struct stat *st, const char *path,
                       const char *shown, struct err *err);

static int push_entry(struct copy *copy, int dir_fd, const char *name, const char *folder,
                      const char *shown_folder, struct err *err)
{
    char path[FILE_PATH_BYTES];
    char shown[FILE_PATH_BYTES];
    AUTO_FD int fd = -1;
    struct stat st;

    if (join(folder, name, path, err) < 0 || join(shown_folder, name, shown, err) < 0)
        return -1;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_os(err, "%.300s", shown);
    if (S_ISLNK(st.st_mode))
        return push_link(copy, dir_fd, name, path, shown, err);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        copy->files->moved->skipped++;
        return 0;
    }
    fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_os(err, "%.300s", shown);
    if (S_ISDIR(st.st_mode))
        return push_folder(copy, fd, &st, path, shown, err);
    if (S_ISREG(st.st_mode))
        return push_file(copy, fd, &st, path, shown, err);
    return err_set(err, ERR_CONFLICT, "%.300s changed while it was copied", shown);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int read_names(struct arena *mem, int fd, const char ***out, size_t *out_n, struct err *err)
{
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = own < 0 ? NULL : fdopendir(own);
    const struct dirent *entry;
    const char **names = NULL;
    size_t room = 0;
    size_t n = 0;

    if (!dir)
        return err_os(err, "listing a folder");
    while (n < FILE_ENTRIES_MAX && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (n == room) {
            const char **more = arena_array(mem, const char *, room ? 2 * room : 64);

            if (n)
                memcpy(more, names, n * sizeof *names);
            names = more;
            room = room ? 2 * room : 64;
        }
        names[n++] = arena_text(mem, str_of(entry->d_name));
    }
    (void)closedir(dir);
    if (n == FILE_ENTRIES_MAX)
        return err_set(err, ERR_LIMIT, "a folder of more than %u entries", FILE_ENTRIES_MAX);
    if (n)
        qsort(names, n, sizeof *names, by_text);
    *out = names;
    *out_n = n;
    return 0;
}

static int set_inside(struct files *files, const struct stat *st, const char *path, struct err *err)
{
    struct file_request request;

    if (file_request_fill(&request, FILE_SET, FILE_TIMES, path, "", err) < 0)
        return -1;
    request.mode = st->st_mode & MODE_MAX;
    request.mtime_s = st->st_mtim.tv_sec;
    request.mtime_ns = (uint32_t)st->st_mtim.tv_nsec;
    return files_ask(files, &request, NULL, err) < 0 ? -1 : 0;
}

static int push_folder(struct copy *copy, int fd, const struct stat *st, const char *path,
                       const char *shown, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(FOLDER_MEMORY_MAX);
    struct file_request request;
    const char **names = NULL;
    size_t n = 0;

    if (enter(copy, err) < 0 || read_names(&mem, fd, &names, &n, err) < 0 ||
        file_request_fill(&request, FILE_MAKE_DIR, FILE_RECURSIVE, path, "", err) < 0)
        return -1;
    request.mode = 0700;
    if (files_ask(copy->files, &request, NULL, err) < 0 ||
        note_entry(copy, 'd', st->st_mode, "", shown, err) < 0)
        return -1;
    copy->files->moved->entries++;
    for (size_t i = 0; i < n; i++)
        if (push_entry(copy, fd, names[i], path, shown, err) < 0)
            return -1;
    copy->depth--;
    return set_inside(copy->files, st, path, err);
}

/* As cp does it: into a folder that is there, else under that name. */
static int push_target(struct files *files, const char *host_path, const char *path,
                       char out[FILE_PATH_BYTES], struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(FOLDER_MEMORY_MAX);
    struct file_entry entry;
    struct err missing; /* then it is a new name; whatever else is wrong shows when it is made */
    char name[256];
    bool is_folder = files_stat(files, &mem, path, true, &entry, &missing) == 0;

    files->moved->entries = 0;
    if (files->cancelled)
        return err_set(err, ERR_CONFLICT, "interrupted");
    if (!is_folder || !S_ISDIR(entry.mode)) {
        (void)snprintf(out, FILE_PATH_BYTES, "%s", path);
        return 0;
    }
    last_name(host_path, name);
    if (!name[0])
        return err_set(err, ERR_INVALID, "%.300s: say what the copy is to be called", host_path);
    return join(path, name, out, err);
}

int files_push(struct files *files, const char *host_path, const char *path, bool recursive,
               struct err *err)
{
    AUTO_FD int fd = open(host_path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct copy copy = {.files = files};
    char target[FILE_PATH_BYTES];
    struct stat st;
    int failed;

    hasher_init(&copy.tree);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_os(err, "%.300s", host_path);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return err_set(err, ERR_INVALID, "%.300s is neither a regular file nor a directory",
                       host_path);
    if (S_ISDIR(st.st_mode) && !recursive)
        return err_set(err, ERR_INVALID, "%.300s is a directory; give --recursive to copy it",
                       host_path);
    if (push_target(files, host_path, path, target, err) < 0)
        return -1;
    failed = S_ISDIR(st.st_mode) ? push_folder(&copy, fd, &st, target, "", err)
                                 : push_file(&copy, fd, &st, target, "", err);
    if (!failed && S_ISDIR(st.st_mode))
        finish_tree(&copy);
    return failed;
}
