/* SPDX-License-Identifier: Apache-2.0 */

/* Finding protected files below a folder whose content is somebody else's.
 *
 * Every step is one name below a descriptor and follows no link, so whatever is exchanged while we
 * look, nothing outside the folder is opened. Names, depths and sizes are the other side's choice:
 * there is a bound for each, and whoever asks learns when one was reached. */

#include "flow/equip/workspace.h"

#include "lib/base/limits.h"
#include "lib/linux/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>

#define NAME_BYTES_MAX 256

const char *scan_join(struct scan *scan, const char *folder, const char *name)
{
    size_t n = strlen(folder) + strlen(name) + 2;

    scan->bytes += n;
    if (n >= PATH_BYTES_MAX)
        scan->stopped = "a path of more than 4095 bytes";
    if (scan->bytes > PROTECTED_BYTES_MAX)
        scan->stopped = "too many long paths";
    return *folder ? arena_printf(scan->mem, "%s/%s", folder, name)
                   : arena_text(scan->mem, str_of(name));
}

int scan_open(struct scan *scan, const char *path, int flags)
{
    return sys_openat2(scan->root_fd, *path ? path : ".", flags | O_NOFOLLOW,
                       RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

static void *grown(void *of, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return of;
    *cap = *cap ? *cap * 2 : 64;
    return xrealloc(of, *cap * size);
}

static void add_place(struct scan *scan, const struct place *place)
{
    if (scan->place_n == PROTECTED_SEEN_MAX) {
        scan->stopped = "too many protected places";
        return;
    }
    scan->places = grown(scan->places, scan->place_n, &scan->place_cap, sizeof *place);
    scan->places[scan->place_n++] = *place;
}

/* ---- what is in it ---- */

static int hash_file(int fd, const struct stat *st, struct hasher *hasher, struct err *err)
{
    char chunk[64 * KIB];
    uint64_t left = PROTECTED_FILE_MAX;

    /* Larger than any such file is: a change shows in these. */
    if ((uint64_t)st->st_size > left) {
        int n = snprintf(chunk, sizeof chunk, "%lld %lld %ld %lld %ld", (long long)st->st_size,
                         (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
                         (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);

        hasher_add(hasher, chunk, (size_t)n);
        return 0;
    }
    while (left) {
        ssize_t n = read(fd, chunk, sizeof chunk < left ? sizeof chunk : (size_t)left);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_os(err, "reading a protected file");
        if (n == 0)
            break;
        hasher_add(hasher, chunk, (size_t)n);
        left -= (uint64_t)n;
    }
    return 0;
}

/* "": what vanished meanwhile, or may not be read, has no content to compare. */
static int hash_at(int dir_fd, const char *name, const struct stat *st, char out[HASH_TEXT_BYTES],
                   struct err *err)
{
    AUTO_FD int fd = -1;
    struct hasher hasher;
    struct hash hash;
    struct stat opened;
    char target[PATH_BYTES_MAX];

    hasher_init(&hasher);
    if (S_ISLNK(st->st_mode)) {
        ssize_t n = readlinkat(dir_fd, name, target, sizeof target);

        hasher_add(&hasher, "link ", 5);
        hasher_add(&hasher, target, n > 0 ? (size_t)n : 0);
    } else if (S_ISREG(st->st_mode)) {
        fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd >= 0 && fstat(fd, &opened) == 0 && S_ISREG(opened.st_mode)) {
            if (hash_file(fd, &opened, &hasher, err) < 0)
                return -1;
        } else {
            hasher_add(&hasher, "closed", 6);
        }
    } else {
        hasher_add(&hasher, "special", 7);
    }
    hasher_end(&hasher, &hash);
    hash_text(&hash, out);
    return 0;
}

static int add_trace(struct scan *scan, int dir_fd, const char *name, const char *path,
                     const struct stat *st, struct err *err)
{
    struct trace trace = {.path = path};

    if (scan->trace_n == PROTECTED_FILES_MAX) {
        scan->stopped = "too many protected files";
        return 0;
    }
    if (hash_at(dir_fd, name, st, trace.hash, err) < 0)
        return -1;
    scan->traces = grown(scan->traces, scan->trace_n, &scan->trace_cap, sizeof trace);
    scan->traces[scan->trace_n++] = trace;
    return 0;
}

/* ---- walking ---- */

struct name {
    char *text;
    bool maybe_folder;
};

struct names {
    struct name *of;
    size_t n, cap;
};

static void names_done(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->of[i].text);
    free(names->of);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

/* All names of a folder, in order. What may not be listed has none: by us, it cannot be judged;
 * inside, where the same user asks, neither. */
static int list(struct scan *scan, int dir_fd, struct names *out, struct err *err)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!dir) {
        if (fd >= 0)
            (void)close(fd);
        return errno == EACCES || errno == ENOENT ? 0 : err_os(err, "listing a folder");
    }
    while (!scan->stopped && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (++scan->entries > WORKSPACE_ENTRIES_MAX) {
            scan->stopped = "too many files and folders";
            break;
        }
        out->of = grown(out->of, out->n, &out->cap, sizeof *out->of);
        out->of[out->n++] = (struct name){xstrdup(entry->d_name),
                                          entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN};
    }
    (void)closedir(dir);
    if (out->n)
        qsort(out->of, out->n, sizeof *out->of, by_name);
    return 0;
}

static bool has_name(const struct names *names, const char *text)
{
    char wanted[16];
    const struct name name = {strcpy(wanted, text), false};

    return names->n && bsearch(&name, names->of, names->n, sizeof *names->of, by_name) != NULL;
}

static bool is_too_deep(struct scan *scan, unsigned depth)
{
    if (depth >= WORKSPACE_DEPTH_MAX)
        scan->stopped = "folders in too many folders";
    return scan->stopped != NULL;
}

/* Everything in a protected folder, as traces. */
static int trace_all(struct scan *scan, int dir_fd, const char *path, unsigned depth,
                     struct err *err)
{
    __attribute__((cleanup(names_done))) struct names names = {0};

    if (is_too_deep(scan, depth))
        return 0;
    if (list(scan, dir_fd, &names, err) < 0)
        return -1;
    for (size_t i = 0; i < names.n && !scan->stopped; i++) {
        const char *below = scan_join(scan, path, names.of[i].text);
        AUTO_FD int fd = -1;
        struct stat st;

        if (fstatat(dir_fd, names.of[i].text, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (!S_ISDIR(st.st_mode)) {
            if (add_trace(scan, dir_fd, names.of[i].text, below, &st, err) < 0)
                return -1;
            continue;
        }
        fd = openat(dir_fd, names.of[i].text, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && trace_all(scan, fd, below, depth + 1, err) < 0)
            return -1;
    }
    return 0;
}

/* A link cannot be mounted on; where it leads, if that is in the folder, can. The link itself is a
 * trace: exchanging it shows. */
static int note_linked(struct scan *scan, const char *path, const char *why, struct err *err)
{
    AUTO_FD int fd = sys_openat2(scan->root_fd, path, O_PATH, RESOLVE_BENEATH);
    const char *at = fd < 0 ? NULL : path_of(scan->mem, fd);

    if (!at || !path_is_within(at, scan->root) || strlen(at) <= strlen(scan->root))
        return 0;
    return scan_note(scan, scan_join(scan, "", at + strlen(scan->root) + 1), why, err);
}

static void split(struct scan *scan, const char *path, const char **folder, const char **name)
{
    const char *slash = strrchr(path, '/');

    *folder = slash ? arena_text(scan->mem, (struct str){path, (size_t)(slash - path)}) : "";
    *name = slash ? slash + 1 : path;
}

int scan_note(struct scan *scan, const char *path, const char *why, struct err *err)
{
    AUTO_FD int folder_fd = -1;
    AUTO_FD int fd = -1;
    const char *folder, *name;
    struct stat st;

    if (scan->stopped || !*path)
        return 0;
    split(scan, path, &folder, &name);
    folder_fd = scan_open(scan, folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder_fd < 0 || fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0; /* not there; when it comes, it is new */
    if (S_ISLNK(st.st_mode)) {
        if (add_trace(scan, folder_fd, name, path, &st, err) < 0)
            return -1;
        return note_linked(scan, path, why, err);
    }
    add_place(scan, &(struct place){.path = path,
                                    .why = why,
                                    .device = st.st_dev,
                                    .inode = st.st_ino,
                                    .is_file = !S_ISDIR(st.st_mode)});
    if (!S_ISDIR(st.st_mode))
        return add_trace(scan, folder_fd, name, path, &st, err);
    fd = openat(folder_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? 0 : trace_all(scan, fd, path, 0, err);
}

void scan_pin(struct scan *scan, const char *path, const char *why)
{
    AUTO_FD int fd = *path ? scan_open(scan, path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0)
        add_place(
            scan,
            &(struct place){
                .path = path, .why = why, .device = st.st_dev, .inode = st.st_ino, .pinned = true});
}

/* ".git" in a folder: the folder itself, a file that names it, or a link to either. */
static int note_git(struct scan *scan, int dir_fd, const char *folder, unsigned depth,
                    struct err *err)
{
    const char *worktree = arena_text(scan->mem, str_of(folder));
    const char *path = scan_join(scan, folder, ".git");
    struct stat st;

    if (fstatat(dir_fd, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (S_ISDIR(st.st_mode))
        return git_folder(scan, path, worktree, depth + 1, err);
    if (scan_note(scan, path, rule_for("", ".git")->why, err) < 0)
        return -1;
    return S_ISREG(st.st_mode) ? git_file(scan, path, worktree, depth + 1, err) : 0;
}

/* One of its own, or the part of one that belongs to a worktree. */
static bool is_git_folder(const struct names *names)
{
    return has_name(names, "HEAD") && ((has_name(names, "objects") && has_name(names, "refs")) ||
                                       has_name(names, "commondir"));
}

/* What a package brought along for its own makers: nobody's tools are called in there. A repository
 * is one wherever it lies. */
static bool is_packages(const char *path)
{
    const char *at = strstr(path, "node_modules");

    return at && (at == path || at[-1] == '/') && (at[12] == '\0' || at[12] == '/');
}

/* path is a buffer of PATH_BYTES_MAX with n bytes in use: folders that hold nothing of interest,
 * which most do, cost no memory. */
static int walk(struct scan *scan, int dir_fd, char *path, size_t n, unsigned depth,
                struct err *err);

static int walk_into(struct scan *scan, int dir_fd, const char *name, char *path, size_t n,
                     unsigned depth, struct err *err)
{
    AUTO_FD int fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    size_t name_n = strlen(name);
    int failed;

    if (fd < 0)
        return 0;
    if (n + name_n + 2 > PATH_BYTES_MAX) {
        scan->stopped = "a path of more than 4095 bytes";
        return 0;
    }
    if (n)
        path[n] = '/';
    (void)strcpy(path + n + (n > 0), name);
    failed = walk(scan, fd, path, n + (n > 0) + name_n, depth + 1, err);
    path[n] = '\0';
    return failed;
}

static int walk(struct scan *scan, int dir_fd, char *path, size_t n, unsigned depth,
                struct err *err)
{
    __attribute__((cleanup(names_done))) struct names names = {0};
    const char *slash = strrchr(path, '/');
    char holder[NAME_BYTES_MAX]; /* path changes while we go on */
    bool packages = is_packages(path);
    const char *here;

    (void)snprintf(holder, sizeof holder, "%s", slash ? slash + 1 : path);
    if (is_too_deep(scan, depth))
        return 0;
    if (list(scan, dir_fd, &names, err) < 0)
        return -1;
    if (is_git_folder(&names)) {
        here = arena_text(scan->mem, str_of(path));
        if (git_folder(scan, here, here, depth, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < names.n && !scan->stopped; i++) {
        const char *name = names.of[i].text;
        const struct protected_rule *rule = rule_for(holder, name);
        int failed = 0;

        if (strcmp(name, ".git") == 0)
            failed = note_git(scan, dir_fd, path, depth, err);
        else if (rule && !packages)
            failed = scan_note(scan, scan_join(scan, path, name), rule->why, err);
        else if (names.of[i].maybe_folder)
            failed = walk_into(scan, dir_fd, name, path, n, depth, err);
        if (failed)
            return -1;
    }
    return 0;
}

int scan_folder(struct scan *scan, const char *path, unsigned depth, struct err *err)
{
    AUTO_FD int fd = scan_open(scan, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char buffer[PATH_BYTES_MAX];

    if (fd < 0 || strlen(path) >= sizeof buffer)
        return 0;
    (void)strcpy(buffer, path);
    return walk(scan, fd, buffer, strlen(buffer), depth, err);
}

/* ---- in order ---- */

static int by_path(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    int order = strcmp(left->path, right->path);

    return order ? order : left->pinned - right->pinned; /* read-only wins */
}

static int by_trace(const void *a, const void *b)
{
    return strcmp(((const struct trace *)a)->path, ((const struct trace *)b)->path);
}

static void order(struct scan *scan)
{
    size_t kept = 0;

    if (scan->place_n)
        qsort(scan->places, scan->place_n, sizeof *scan->places, by_path);
    for (size_t i = 0; i < scan->place_n; i++) {
        const struct place *place = &scan->places[i];
        bool covered = false;

        for (size_t j = 0; j < kept && !covered; j++)
            covered =
                strcmp(scan->places[j].path, place->path) == 0 ||
                (!scan->places[j].pinned && path_is_within(place->path, scan->places[j].path));
        if (!covered)
            scan->places[kept++] = *place;
    }
    scan->place_n = kept;
    if (scan->trace_n)
        qsort(scan->traces, scan->trace_n, sizeof *scan->traces, by_trace);
    kept = 0;
    for (size_t i = 0; i < scan->trace_n; i++)
        if (kept == 0 || strcmp(scan->traces[kept - 1].path, scan->traces[i].path) != 0)
            scan->traces[kept++] = scan->traces[i];
    scan->trace_n = kept;
}

void scan_done(struct scan *scan)
{
    free(scan->places);
    free(scan->traces);
}

int scan_run(struct scan *scan, struct err *err)
{
    if (scan_folder(scan, "", 0, err) < 0)
        return err_in(err, "looking for protected files in %s", scan->root);
    order(scan);
    return 0;
}
