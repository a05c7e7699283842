/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/snapshot/tree.h"

#include "lib/base/limits.h"
#include "lib/base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OPAQUE "user.overlay.opaque"
#define OVERLAY_PREFIX "user.overlay."
#define COPY_BYTES (128 * KIB)
#define LINK_SLOTS 4096U /* a power of two */

/* A file with several names: copied at the first, linked at the others. */
struct link {
    struct link *next;
    uint64_t device, inode;
    char digest[HASH_TEXT_BYTES];
    char path[]; /* beneath the top of the copy */
};

struct merge {
    struct tree_result *result;
    struct hasher hasher;
    int top_fd; /* of the copy, or -1 */
    bool owners;
    char path[PATH_BYTES_MAX]; /* of the entry at hand, "/..."; the top is "" */
    size_t path_n;
    struct arena mem; /* of the links */
    struct link *links[LINK_SLOTS];
    char *block;
};

/* One name of a folder and the uppermost layer that has it. */
struct entry {
    const char *name;
    size_t layer;
};

static int walk(struct merge *merge, const int *dir_fds, size_t dir_n, int out_fd, unsigned depth,
                struct err *err);

/* ---- the hash ---- */

static void hash_entry(struct merge *merge, char type, unsigned mode, const char *content,
                       size_t content_n)
{
    char head[32];
    int n = snprintf(head, sizeof head, "%c %o ", type, mode & 0777);

    hasher_add(&merge->hasher, head, (size_t)n);
    hasher_add(&merge->hasher, content, content_n);
    hasher_add(&merge->hasher, " ", 1);
    hasher_add(&merge->hasher, merge->path, merge->path_n + 1); /* with its NUL */
}

static int push_name(struct merge *merge, const char *name, struct err *err)
{
    size_t n = strlen(name);

    if (merge->path_n + n + 2 > sizeof merge->path)
        return err_set(err, ERR_LIMIT, "a path of more than %d bytes", PATH_BYTES_MAX);
    merge->path[merge->path_n++] = '/';
    memcpy(merge->path + merge->path_n, name, n + 1);
    merge->path_n += n;
    return 0;
}

static void pop_name(struct merge *merge, size_t path_n)
{
    merge->path_n = path_n;
    merge->path[path_n] = '\0';
}

static int failed_at(const struct merge *merge, const char *what, struct err *err)
{
    return err_os(err, "%s %.200s", what, merge->path);
}

/* ---- what is copied of every entry ---- */

static int copy_attribute(struct merge *merge, int from_fd, int to_fd, const char *name,
                          struct err *err)
{
    ssize_t n = fgetxattr(from_fd, name, merge->block, COPY_BYTES);

    if (n < 0 || fsetxattr(to_fd, name, merge->block, (size_t)n, 0) < 0)
        return failed_at(merge, "copying an attribute of", err);
    return 0;
}

/* What overlayfs notes for itself is about the old place; only opaque folders stay so. */
static int copy_attributes(struct merge *merge, int from_fd, int to_fd, struct err *err)
{
    char names[4096];
    ssize_t n = flistxattr(from_fd, names, sizeof names);

    if (n < 0 && errno == ENOTSUP)
        return 0;
    if (n < 0)
        return failed_at(merge, "reading the attributes of", err);
    for (const char *name = names; name < names + n; name += strlen(name) + 1) {
        if (strncmp(name, "user.", strlen("user.")) != 0 ||
            strncmp(name, OVERLAY_PREFIX, strlen(OVERLAY_PREFIX)) == 0)
            continue;
        if (copy_attribute(merge, from_fd, to_fd, name, err) < 0)
            return -1;
    }
    return 0;
}

static int finish(struct merge *merge, int parent_fd, const char *name, const struct stat *st,
                  struct err *err)
{
    const struct timespec times[2] = {st->st_atim, st->st_mtim};

    if (merge->owners && fchownat(parent_fd, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
        return failed_at(merge, "giving an owner to", err);
    if (!S_ISLNK(st->st_mode) && fchmodat(parent_fd, name, st->st_mode & 01777, 0) < 0)
        return failed_at(merge, "setting the mode of", err);
    if (utimensat(parent_fd, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        return failed_at(merge, "setting the times of", err);
    return 0;
}

/* ---- regular files ---- */

static struct link **link_slot(struct merge *merge, const struct stat *st)
{
    size_t at = (size_t)(st->st_ino * 0x9e3779b97f4a7c15ULL >> 32) % LINK_SLOTS;
    struct link **slot = &merge->links[at];

    while (*slot && ((*slot)->inode != st->st_ino || (*slot)->device != st->st_dev))
        slot = &(*slot)->next;
    return slot;
}

static void remember_link(struct merge *merge, const struct stat *st, const char *digest)
{
    struct link **slot = link_slot(merge, st);
    struct link *link = arena_alloc(&merge->mem, sizeof *link + merge->path_n + 1);

    link->device = st->st_dev;
    link->inode = st->st_ino;
    (void)strcpy(link->digest, digest);
    memcpy(link->path, merge->path, merge->path_n + 1);
    *slot = link;
}

static void hash_zeros(struct merge *merge, struct hasher *hasher, uint64_t n)
{
    memset(merge->block, 0, COPY_BYTES);
    for (; n; n -= n < COPY_BYTES ? n : COPY_BYTES)
        hasher_add(hasher, merge->block, n < COPY_BYTES ? n : COPY_BYTES);
}

/* From `at` to `end`, where the file has data. */
static int copy_data(struct merge *merge, int from_fd, int to_fd, struct hasher *hasher,
                     uint64_t at, uint64_t end, struct err *err)
{
    while (at < end) {
        size_t want = end - at < COPY_BYTES ? (size_t)(end - at) : COPY_BYTES;
        ssize_t n = pread(from_fd, merge->block, want, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? failed_at(merge, "reading", err)
                         : err_set(err, ERR_CONFLICT, "%.200s became shorter while it was read",
                                   merge->path);
        hasher_add(hasher, merge->block, (size_t)n);
        if (to_fd >= 0 && pwrite(to_fd, merge->block, (size_t)n, (off_t)at) != n)
            return failed_at(merge, "writing", err);
        at += (uint64_t)n;
    }
    return 0;
}

static int copy_content(struct merge *merge, int from_fd, int to_fd, uint64_t size,
                        char digest[HASH_TEXT_BYTES], struct err *err)
{
    struct hasher hasher;
    struct hash hash;
    uint64_t at = 0;

    hasher_init(&hasher);
    while (at < size) {
        off_t data = lseek(from_fd, (off_t)at, SEEK_DATA);
        off_t hole;
        uint64_t end;

        if (data < 0 && errno != ENXIO)
            return failed_at(merge, "looking for data in", err);
        end = data < 0 || (uint64_t)data > size ? size : (uint64_t)data;
        hash_zeros(merge, &hasher, end - at);
        at = end;
        if (at == size)
            break;
        hole = lseek(from_fd, (off_t)at, SEEK_HOLE);
        if (hole < 0)
            return failed_at(merge, "looking for holes in", err);
        end = (uint64_t)hole > size ? size : (uint64_t)hole;
        if (copy_data(merge, from_fd, to_fd, &hasher, at, end, err) < 0)
            return -1;
        at = end;
    }
    if (to_fd >= 0 && ftruncate(to_fd, (off_t)size) < 0)
        return failed_at(merge, "writing", err);
    hasher_end(&hasher, &hash);
    hash_text(&hash, digest);
    return 0;
}

static int copy_file(struct merge *merge, int parent_fd, int out_fd, const char *name,
                     struct stat *st, struct err *err)
{
    AUTO_FD int from_fd = openat(parent_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    const struct link *known = st->st_nlink > 1 ? *link_slot(merge, st) : NULL;
    AUTO_FD int to_fd = -1;
    char digest[HASH_TEXT_BYTES];

    if (from_fd < 0 || fstat(from_fd, st) < 0)
        return failed_at(merge, "opening", err);
    if (!S_ISREG(st->st_mode))
        return err_set(err, ERR_CONFLICT, "%.200s changed while it was read", merge->path);
    if (known) {
        if (out_fd >= 0 && linkat(merge->top_fd, known->path + 1, out_fd, name, 0) < 0)
            return failed_at(merge, "linking", err);
        hash_entry(merge, 'f', st->st_mode, known->digest, strlen(known->digest));
        return 0;
    }
    if (out_fd >= 0) {
        to_fd = openat(out_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (to_fd < 0)
            return failed_at(merge, "creating", err);
    }
    if (copy_content(merge, from_fd, to_fd, (uint64_t)st->st_size, digest, err) < 0 ||
        (to_fd >= 0 && copy_attributes(merge, from_fd, to_fd, err) < 0))
        return -1;
    if (st->st_nlink > 1)
        remember_link(merge, st, digest);
    merge->result->bytes += (uint64_t)st->st_size;
    hash_entry(merge, 'f', st->st_mode, digest, strlen(digest));
    return out_fd < 0 ? 0 : finish(merge, out_fd, name, st, err);
}

/* ---- links, whiteouts, pipes ---- */

static int copy_symlink(struct merge *merge, int parent_fd, int out_fd, const char *name,
                        const struct stat *st, struct err *err)
{
    char target[PATH_BYTES_MAX];
    ssize_t n = readlinkat(parent_fd, name, target, sizeof target - 1);

    if (n < 0)
        return failed_at(merge, "reading the link", err);
    target[n] = '\0';
    hash_entry(merge, 'l', 0, target, (size_t)n);
    if (out_fd < 0)
        return 0;
    if (symlinkat(target, out_fd, name) < 0)
        return failed_at(merge, "making the link", err);
    return finish(merge, out_fd, name, st, err);
}

static bool is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

static int copy_special(struct merge *merge, int out_fd, const char *name, const struct stat *st,
                        struct err *err)
{
    bool whiteout = is_whiteout(st);
    mode_t mode = whiteout ? S_IFCHR : (st->st_mode & S_IFMT) | 0600;

    if (!whiteout && !S_ISFIFO(st->st_mode) && !S_ISSOCK(st->st_mode)) {
        merge->result->skipped++;
        return 0;
    }
    hash_entry(merge,
               whiteout                ? 'w'
               : S_ISFIFO(st->st_mode) ? 'p'
                                       : 's',
               whiteout ? 0 : st->st_mode, "", 0);
    if (out_fd < 0)
        return 0;
    if (mknodat(out_fd, name, mode, makedev(0, 0)) < 0)
        return failed_at(merge, "creating", err);
    return whiteout ? 0 : finish(merge, out_fd, name, st, err);
}

/* ---- folders ---- */

static int open_folder(int parent_fd, const char *name)
{
    return openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool is_opaque(int fd)
{
    char value = 0;

    return fgetxattr(fd, OPAQUE, &value, 1) == 1 && value == 'y';
}

/* The folders of that name that show through, uppermost first; *opaque: nothing below them does. */
static int open_shown(struct merge *merge, const int *dir_fds, size_t dir_n,
                      const struct entry *entry, int *fds, size_t *n, bool *opaque, struct err *err)
{
    *opaque = false;
    for (size_t i = entry->layer; i < dir_n && !*opaque; i++) {
        struct stat st;

        if (fstatat(dir_fds[i], entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
            if (errno == ENOENT)
                continue;
            return failed_at(merge, "looking at", err);
        }
        if (!S_ISDIR(st.st_mode))
            break;
        fds[*n] = open_folder(dir_fds[i], entry->name);
        if (fds[*n] < 0)
            return failed_at(merge, "opening", err);
        *opaque = is_opaque(fds[(*n)++]);
    }
    return 0;
}

static int fill_folder(struct merge *merge, const int *fds, size_t n, bool opaque, int out_fd,
                       const char *name, unsigned depth, struct err *err)
{
    AUTO_FD int to_fd = -1;

    if (out_fd >= 0) {
        if (mkdirat(out_fd, name, 0700) < 0 || (to_fd = open_folder(out_fd, name)) < 0)
            return failed_at(merge, "creating", err);
        if (copy_attributes(merge, fds[0], to_fd, err) < 0)
            return -1;
        if (opaque && fsetxattr(to_fd, OPAQUE, "y", 1, 0) < 0)
            return failed_at(merge, "marking as opaque", err);
    }
    return walk(merge, fds, n, to_fd, depth + 1, err);
}

static int merge_folder(struct merge *merge, const int *dir_fds, size_t dir_n,
                        const struct entry *entry, const struct stat *st, int out_fd,
                        unsigned depth, struct err *err)
{
    AUTO_FREE int *fds = xcalloc(dir_n, sizeof *fds);
    size_t n = 0;
    bool opaque = false;
    int failed = open_shown(merge, dir_fds, dir_n, entry, fds, &n, &opaque, err);

    if (!failed) {
        hash_entry(merge, opaque ? 'o' : 'd', st->st_mode, "", 0);
        failed = fill_folder(merge, fds, n, opaque, out_fd, entry->name, depth, err);
    }
    for (size_t i = 0; i < n; i++)
        (void)close(fds[i]);
    /* Last: what is put into it changes its times. */
    return failed || out_fd < 0 ? failed : finish(merge, out_fd, entry->name, st, err);
}

static int merge_entry(struct merge *merge, const int *dir_fds, size_t dir_n,
                       const struct entry *entry, int out_fd, unsigned depth, struct err *err)
{
    int parent_fd = dir_fds[entry->layer];
    struct stat st;

    if (++merge->result->entries > SNAPSHOT_ENTRIES_MAX)
        return err_set(err, ERR_LIMIT, "more than %d entries", SNAPSHOT_ENTRIES_MAX);
    if (fstatat(parent_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return failed_at(merge, "looking at", err);
    if (S_ISDIR(st.st_mode))
        return merge_folder(merge, dir_fds, dir_n, entry, &st, out_fd, depth, err);
    if (S_ISREG(st.st_mode))
        return copy_file(merge, parent_fd, out_fd, entry->name, &st, err);
    if (S_ISLNK(st.st_mode))
        return copy_symlink(merge, parent_fd, out_fd, entry->name, &st, err);
    return copy_special(merge, out_fd, entry->name, &st, err);
}

/* ---- one folder of all layers ---- */

struct names {
    struct arena mem;
    struct entry *of;
    size_t n, cap;
};

static int add_names(struct names *names, int dir_fd, size_t layer, struct err *err)
{
    AUTO_FD int fd = open_folder(dir_fd, ".");
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!dir)
        return err_os(err, "opening a folder");
    fd = -1; /* the stream has it */
    while ((errno = 0, entry = readdir(dir)) != NULL && names->n <= SNAPSHOT_ENTRIES_MAX) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (names->n == names->cap) {
            names->cap = names->cap ? 2 * names->cap : 64;
            names->of = xrealloc(names->of, names->cap * sizeof *names->of);
        }
        names->of[names->n++] =
            (struct entry){arena_text(&names->mem, str_of(entry->d_name)), layer};
    }
    if (errno) {
        (void)closedir(dir);
        return err_os(err, "reading a folder");
    }
    (void)closedir(dir);
    return names->n <= SNAPSHOT_ENTRIES_MAX
               ? 0
               : err_set(err, ERR_LIMIT, "more than %d entries in a folder", SNAPSHOT_ENTRIES_MAX);
}

static int by_name(const void *a, const void *b)
{
    const struct entry *one = a, *other = b;
    int order = strcmp(one->name, other->name);

    return order ? order : (one->layer > other->layer) - (one->layer < other->layer);
}

static int walk_names(struct merge *merge, struct names *names, const int *dir_fds, size_t dir_n,
                      int out_fd, unsigned depth, struct err *err)
{
    for (size_t i = 0; i < dir_n; i++)
        if (add_names(names, dir_fds[i], i, err) < 0)
            return err_in(err, "%.200s", merge->path);
    if (names->n)
        qsort(names->of, names->n, sizeof *names->of, by_name);
    for (size_t i = 0; i < names->n; i++) {
        size_t path_n = merge->path_n;
        int failed;

        if (i && strcmp(names->of[i].name, names->of[i - 1].name) == 0)
            continue; /* an upper one has it */
        failed = push_name(merge, names->of[i].name, err);
        if (!failed)
            failed = merge_entry(merge, dir_fds, dir_n, &names->of[i], out_fd, depth, err);
        if (failed)
            return -1;
        pop_name(merge, path_n);
    }
    return 0;
}

static int walk(struct merge *merge, const int *dir_fds, size_t dir_n, int out_fd, unsigned depth,
                struct err *err)
{
    struct names names = {.mem = ARENA(SNAPSHOT_MEMORY_MAX)};
    int failed;

    if (depth > SNAPSHOT_DEPTH_MAX)
        return err_set(err, ERR_LIMIT, "more than %d folders in each other", SNAPSHOT_DEPTH_MAX);
    failed = walk_names(merge, &names, dir_fds, dir_n, out_fd, depth, err);
    arena_done(&names.mem);
    free(names.of);
    return failed;
}

int tree_merge(const int *dir_fds, size_t dir_n, int out_fd, bool owners, struct tree_result *out,
               struct err *err)
{
    AUTO_FREE struct merge *merge = xcalloc(1, sizeof *merge);
    struct hash hash;
    int failed;

    *out = (struct tree_result){0};
    merge->result = out;
    merge->top_fd = out_fd;
    merge->owners = owners;
    merge->mem = ARENA(SNAPSHOT_MEMORY_MAX);
    merge->block = xmalloc(COPY_BYTES);
    hasher_init(&merge->hasher);
    failed = walk(merge, dir_fds, dir_n, out_fd, 0, err);
    hasher_end(&merge->hasher, &hash);
    hash_text(&hash, out->digest);
    free(merge->block);
    arena_done(&merge->mem);
    return failed;
}
