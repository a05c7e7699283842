/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/execute/mirror.h"

#include "lib/base/io.h"
#include "lib/linux/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_BYTES 65536U
#define BASE_FORMAT "brig-mirror 1"

void tree_init(struct mirror_tree *tree)
{
    *tree = (struct mirror_tree){.mem = ARENA(MIRROR_MEMORY_MAX)};
    hasher_init(&tree->tree);
}

void tree_done(struct mirror_tree *tree)
{
    arena_done(&tree->mem);
    free(tree->of);
    tree->of = NULL;
}

int tree_add(struct mirror_tree *tree, const struct mirror_entry *entry, struct err *err)
{
    tree->bytes += strlen(entry->path) + strlen(entry->target) + 2;
    tree->content += entry->type == 'f' ? entry->size : 0;
    if (tree->n == MIRROR_ENTRIES_MAX || tree->bytes > MIRROR_PATHS_MAX)
        return err_set(err, ERR_LIMIT, "a workspace of more than %d files and folders",
                       MIRROR_ENTRIES_MAX);
    if (tree->content > MIRROR_BYTES_MAX)
        return err_set(err, ERR_LIMIT, "a workspace of more than %lu GiB", MIRROR_BYTES_MAX / GIB);
    if (tree->n == tree->cap) {
        tree->cap = tree->cap ? tree->cap * 2 : 256;
        tree->of = xrealloc(tree->of, tree->cap * sizeof *tree->of);
    }
    tree->of[tree->n] = *entry;
    tree->of[tree->n].path = arena_text(&tree->mem, str_of(entry->path));
    tree->of[tree->n].target =
        entry->target[0] ? arena_text(&tree->mem, str_of(entry->target)) : "";
    tree->n++;
    return 0;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct mirror_entry *)a)->path, ((const struct mirror_entry *)b)->path);
}

void tree_sort(struct mirror_tree *tree)
{
    if (tree->n)
        qsort(tree->of, tree->n, sizeof *tree->of, by_path);
}

const struct mirror_entry *tree_find(const struct mirror_tree *tree, const char *path)
{
    const struct mirror_entry wanted = {.path = path};

    return tree->n ? bsearch(&wanted, tree->of, tree->n, sizeof *tree->of, by_path) : NULL;
}

bool entry_same(const struct mirror_entry *a, const struct mirror_entry *b)
{
    if (a->type != b->type || a->type == 'x' || a->type == 's')
        return false;
    if (a->type == 'l')
        return strcmp(a->target, b->target) == 0;
    return a->mode == b->mode && (a->type == 'd' || strcmp(a->hash, b->hash) == 0);
}

void tree_note(struct mirror_tree *tree, const struct mirror_entry *entry)
{
    char head[32];
    const char *content = entry->type == 'f'   ? entry->hash
                          : entry->type == 'l' ? entry->target
                                               : "";
    int n =
        snprintf(head, sizeof head, "%c %o ", entry->type, entry->type == 'l' ? 0 : entry->mode);

    hasher_add(&tree->tree, head, (size_t)n);
    hasher_add(&tree->tree, content, strlen(content));
    hasher_add(&tree->tree, *entry->path ? " /" : " ", *entry->path ? 2 : 1);
    hasher_add(&tree->tree, entry->path, strlen(entry->path) + 1);
}

/* ---- looking at one ---- */

static int hash_once(struct files *files, int fd, char out[HASH_TEXT_BYTES], struct err *err)
{
    char chunk[CHUNK_BYTES];
    struct hasher hasher;
    struct hash hash;
    off_t at = 0;

    hasher_init(&hasher);
    for (;;) {
        ssize_t n = pread(fd, chunk, sizeof chunk, at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_os(err, "reading");
        if (n == 0)
            break;
        hasher_add(&hasher, chunk, (size_t)n);
        at += n;
        if (copy_go_on(files, 0, err) < 0)
            return -1;
    }
    hasher_end(&hasher, &hash);
    hash_text(&hash, out);
    return 0;
}

bool same_moment(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
           a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

int hash_steady(struct files *files, int fd, char out[HASH_TEXT_BYTES], struct err *err)
{
    for (unsigned tries = 0; tries < MIRROR_TRIES; tries++) {
        struct stat before, after;

        if (fstat(fd, &before) < 0)
            return err_os(err, "looking at a file");
        if ((uint64_t)before.st_size > MIRROR_BYTES_MAX)
            return err_set(err, ERR_LIMIT, "a file of more than %lu GiB", MIRROR_BYTES_MAX / GIB);
        if (hash_once(files, fd, out, err) < 0)
            return -1;
        if (fstat(fd, &after) < 0)
            return err_os(err, "looking at a file");
        if (same_moment(&before, &after))
            return 0;
    }
    return 1;
}

/* Fills in what its kind asks for. */
static int read_kind(struct files *files, struct arena *mem, int dir_fd, const char *name,
                     const struct stat *st, struct mirror_entry *out, struct err *err)
{
    AUTO_FD int fd = -1;
    char target[PATH_BYTES_MAX];
    struct stat opened;
    ssize_t n;
    int unsteady;

    out->mode = st->st_mode & COPY_MODE_MAX;
    out->target = "";
    out->type = 's';
    if (S_ISDIR(st->st_mode)) {
        out->type = 'd';
        return 0;
    }
    if (S_ISLNK(st->st_mode)) {
        n = readlinkat(dir_fd, name, target, sizeof target);
        out->type = n > 0 && n < (ssize_t)sizeof target ? 'l' : 'x';
        out->mode = 0;
        if (out->type == 'l')
            out->target = arena_text(mem, (struct str){target, (size_t)n});
        return 0;
    }
    if (!S_ISREG(st->st_mode))
        return 0;
    out->type = 'x';
    fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &opened) < 0 || !S_ISREG(opened.st_mode))
        return 0;
    unsteady = hash_steady(files, fd, out->hash, err);
    if (unsteady < 0)
        return -1;
    out->type = unsteady ? 'x' : 'f';
    out->size = (uint64_t)opened.st_size;
    return 0;
}

int entry_parent(int root_fd, const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_BYTES_MAX];
    size_t n = slash ? (size_t)(slash - path) : 0;

    if (n >= sizeof folder) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(folder, n ? path : ".", n ? n : 1);
    folder[n ? n : 1] = '\0';
    *name = slash ? slash + 1 : path;
    return sys_openat2(root_fd, folder, O_RDONLY | O_DIRECTORY,
                       RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

int entry_read(struct files *files, int root_fd, struct arena *mem, const char *path,
               struct mirror_entry *out, struct stat *st, struct err *err)
{
    const char *name = NULL;
    AUTO_FD int dir_fd = entry_parent(root_fd, path, &name);

    *out = (struct mirror_entry){.path = path, .target = ""};
    if (dir_fd < 0) {
        if (errno == ENOENT)
            return 0;
        out->type = 's'; /* something else is on the way */
        return 0;
    }
    if (fstatat(dir_fd, name, st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_os(err, "looking at %.300s", path);
    return read_kind(files, mem, dir_fd, name, st, out, err);
}

/* ---- looking at all ---- */

struct walk {
    struct files *files;
    struct mirror_tree *tree;
    struct err *err;
    char path[PATH_BYTES_MAX];
};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void folder_names_done(struct folder_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->of[i]);
    free(names->of);
}

int folder_names(int dir_fd, size_t most, struct folder_names *out, struct err *err)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!dir) {
        if (fd >= 0)
            (void)close(fd);
        return err_os(err, "listing");
    }
    while (out->n <= most && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (out->n == out->cap) {
            out->cap = out->cap ? out->cap * 2 : 64;
            out->of = xrealloc(out->of, out->cap * sizeof *out->of);
        }
        out->of[out->n++] = xstrdup(entry->d_name);
    }
    (void)closedir(dir);
    if (out->n)
        qsort(out->of, out->n, sizeof *out->of, by_name);
    return 0;
}

static int walk_folder(struct walk *walk, int dir_fd, size_t n, unsigned depth);

static int walk_entry(struct walk *walk, int dir_fd, const char *name, size_t n, unsigned depth)
{
    struct mirror_tree *tree = walk->tree;
    struct mirror_entry entry = {.path = walk->path};
    AUTO_FD int fd = -1;
    struct stat st;
    size_t name_n = strlen(name);

    if (n + name_n + 2 > sizeof walk->path)
        return err_set(walk->err, ERR_LIMIT, "a path of more than %d bytes", PATH_BYTES_MAX - 1);
    (void)snprintf(walk->path + n, sizeof walk->path - n, "%s%s", n ? "/" : "", name);
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_os(walk->err, "looking at %.300s", walk->path);
    if (read_kind(walk->files, &tree->mem, dir_fd, name, &st, &entry, walk->err) < 0)
        return err_in(walk->err, "%.200s", walk->path);
    if (tree_add(tree, &entry, walk->err) < 0)
        return -1;
    tree_note(tree, &entry);
    if (entry.type != 'd')
        return copy_go_on(walk->files, 0, walk->err);
    fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(walk->err, "opening %.300s", walk->path);
    return walk_folder(walk, fd, n + name_n + (n > 0), depth + 1);
}

static int walk_folder(struct walk *walk, int dir_fd, size_t n, unsigned depth)
{
    AUTO_NAMES struct folder_names names = {0};

    if (depth > WORKSPACE_DEPTH_MAX)
        return err_set(walk->err, ERR_LIMIT, "more than %d folders inside each other",
                       WORKSPACE_DEPTH_MAX);
    if (folder_names(dir_fd, MIRROR_ENTRIES_MAX, &names, walk->err) < 0)
        return err_in(walk->err, "%.300s", walk->path);
    for (size_t i = 0; i < names.n; i++) {
        if (walk_entry(walk, dir_fd, names.of[i], n, depth) < 0)
            return -1;
        walk->path[n] = '\0';
    }
    return 0;
}

int tree_read(struct files *files, int root_fd, struct mirror_tree *out, struct err *err)
{
    struct walk walk = {.files = files, .tree = out, .err = err};
    struct mirror_entry top = {.path = "", .target = "", .type = 'd'};
    struct stat st;

    if (fstat(root_fd, &st) < 0)
        return err_os(err, "looking at the workspace");
    top.mode = st.st_mode & COPY_MODE_MAX;
    tree_note(out, &top);
    if (walk_folder(&walk, root_fd, 0, 0) < 0)
        return -1;
    tree_sort(out);
    return 0;
}

/* ---- the base ---- */

static int put_text(struct buf *out, const char *text, struct err *err)
{
    return buf_add(out, text, strlen(text) + 1, err);
}

static int put_number(struct buf *out, uint64_t value, struct err *err)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    return put_text(out, text, err);
}

static int put_entry(struct buf *out, const struct mirror_entry *entry, struct err *err)
{
    const char type[2] = {entry->type, '\0'};

    if (put_text(out, type, err) < 0 || put_number(out, entry->mode, err) < 0 ||
        put_number(out, entry->size, err) < 0 || put_text(out, entry->hash, err) < 0 ||
        put_text(out, entry->target, err) < 0)
        return -1;
    return put_text(out, entry->path, err);
}

int base_write(const char *run_dir, const struct mirror_base *base, struct err *err)
{
    AUTO_BUF struct buf text = BUF(MIRROR_TEXT_MAX);
    char path[RUN_DIR_BYTES + 16];

    if (put_text(&text, BASE_FORMAT, err) < 0 || put_number(&text, base->device, err) < 0 ||
        put_number(&text, base->inode, err) < 0 || put_text(&text, base->source, err) < 0)
        return -1;
    for (size_t i = 0; i < base->tree.n; i++)
        if (put_entry(&text, &base->tree.of[i], err) < 0)
            return -1;
    (void)snprintf(path, sizeof path, "%s/mirror", run_dir);
    return file_replace(path, text.p, text.n, 0600, err);
}

static bool take_entry(struct str *rest, struct mirror_entry *out, char hash[HASH_TEXT_BYTES])
{
    struct str type = str_cut(rest, '\0');
    uint64_t mode = 0;
    struct str content;

    if (type.n != 1 || !str_u64(str_cut(rest, '\0'), &mode) ||
        !str_u64(str_cut(rest, '\0'), &out->size))
        return false;
    content = str_cut(rest, '\0');
    if (content.n >= HASH_TEXT_BYTES)
        return false;
    memcpy(hash, content.p, content.n);
    hash[content.n] = '\0';
    out->type = type.p[0];
    out->mode = (uint32_t)mode & COPY_MODE_MAX;
    /* Each ends with NUL in the text itself. */
    out->target = str_cut(rest, '\0').p;
    out->path = str_cut(rest, '\0').p;
    return true;
}

int base_read(const char *run_dir, struct mirror_base *out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(MIRROR_TEXT_MAX);
    char path[RUN_DIR_BYTES + 16];
    struct str rest;

    tree_init(&out->tree);
    (void)snprintf(path, sizeof path, "%s/mirror", run_dir);
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return err_set(err, ERR_NOT_FOUND, "no base");
    if (file_read(AT_FDCWD, path, &text, err) < 0)
        return -1;
    rest = buf_str(&text);
    if (!str_is(str_cut(&rest, '\0'), BASE_FORMAT) ||
        !str_u64(str_cut(&rest, '\0'), &out->device) || !str_u64(str_cut(&rest, '\0'), &out->inode))
        return err_set(err, ERR_INTEGRITY, "the base of the workspace is damaged");
    out->source = arena_text(&out->tree.mem, str_cut(&rest, '\0'));
    while (rest.n) {
        struct mirror_entry entry = {0};

        if (!take_entry(&rest, &entry, entry.hash))
            return err_set(err, ERR_INTEGRITY, "the base of the workspace is damaged");
        if (tree_add(&out->tree, &entry, err) < 0)
            return -1;
    }
    tree_sort(&out->tree);
    return 0;
}
