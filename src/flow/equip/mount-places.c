/* SPDX-License-Identifier: Apache-2.0 */

/* Which places of this machine are never handed out, and whether a mount source is one.
 *
 * A source is judged by what its descriptor is, never by how it was spelled, in four ways, because
 * each sees what another cannot:
 *
 *  - device and inode of it and of every folder above it: links, dots, a rename under way;
 *  - its file system and the path there: a bind mount has other folders above it;
 *  - the names in its path: credentials in a home nobody told us of;
 *  - the sockets of this machine's programs: whoever can reach one can talk to it, read-only
 *    mount or not. */

#include "flow/equip/parts.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"

#include <fcntl.h>
#include <linux/stat.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define HOMES_MAX 64
#define DEPTH_MAX 256

/* Never handed out, nor anything below; nor a folder that contains them. */
static const char *const forbidden[] = {
    "/etc",          "/proc",           "/sys",
    "/dev",          "/boot",           "/run",
    "/var/run",      "/var/lib/docker", "/var/lib/containerd",
    "/var/lib/brig", "/var/lib/dpkg",   "/var/spool/cron",
};
/* The same below every home we know of; elsewhere only the named file or folder itself. */
static const char *const forbidden_in_home[] = {
    ".ssh",           ".gnupg",
    ".aws",           ".azure",
    ".config/gcloud", ".config/gh",
    ".kube",          ".docker",
    ".netrc",         ".git-credentials",
    ".npmrc",         ".pypirc",
    ".config/op",     ".password-store",
    ".mozilla",       ".local/share/keyrings",
    ".config/brig",   ".local/share/brig",
    ".bash_history",
};
/* A folder with one of these in it is somebody's home. */
static const char *const marks_of_home[] = {".ssh", ".gnupg"};

static bool same_object(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool path_is_within(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    return strncmp(path, folder, n) == 0 &&
           (path[n] == '\0' || path[n] == '/' || strcmp(folder, "/") == 0);
}

const char *path_of(struct arena *mem, int fd)
{
    char link[64], path[PATH_BYTES_MAX];
    ssize_t n;

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof path - 1);
    return n > 0 && path[0] == '/' ? arena_text(mem, (struct str){path, (size_t)n}) : NULL;
}

/* ---- by device and inode ---- */

/* Whether `below` is `above`, or lies somewhere below it. */
static bool lies_below(int below_fd, const struct stat *above)
{
    AUTO_FD int at = fcntl(below_fd, F_DUPFD_CLOEXEC, 0);
    struct stat st, parent_st;

    for (unsigned depth = 0; at >= 0 && depth < DEPTH_MAX; depth++) {
        int parent;

        if (fstat(at, &st) < 0)
            return true; /* what cannot be judged is not handed out */
        if (same_object(&st, above))
            return true;
        if (!S_ISDIR(st.st_mode))
            return false;
        parent = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (parent < 0 || fstat(parent, &parent_st) < 0) {
            if (parent >= 0)
                (void)close(parent);
            return true;
        }
        (void)close(at);
        at = parent;
        if (same_object(&st, &parent_st))
            return false; /* the root of all */
    }
    return true;
}

/* The folder something lies in, by its path: a folder one may not enter does not say by "..". */
static int open_holder(struct arena *mem, int fd)
{
    const char *path = path_of(mem, fd);
    const char *slash = path ? strrchr(path, '/') : NULL;

    if (!slash)
        return -1;
    return open(slash == path ? "/" : arena_text(mem, (struct str){path, (size_t)(slash - path)}),
                O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* ---- by file system and the path there ---- */

struct location {
    struct str device; /* "8:1" */
    const char *path;  /* from the file system's own root; NULL: unknown */
};

/* As the kernel writes them in mountinfo: \040 for a space. */
static const char *unescape(struct arena *mem, struct str text)
{
    char *out = arena_alloc(mem, text.n + 1);
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] == '\\' && i + 3 < text.n) {
            out[n++] = (char)((text.p[i + 1] - '0') << 6 | (text.p[i + 2] - '0') << 3 |
                              (text.p[i + 3] - '0'));
            i += 3;
        } else {
            out[n++] = text.p[i];
        }
    out[n] = '\0';
    return out;
}

/* "36 35 98:0 /root /point ...", of the mount with this id. */
static bool find_mount(struct str table, uint64_t id, struct str *device, struct str *root,
                       struct str *point)
{
    while (table.n) {
        struct str line = str_cut(&table, '\n');
        uint64_t each = 0;

        if (!str_u64(str_cut(&line, ' '), &each) || each != id)
            continue;
        (void)str_cut(&line, ' ');
        *device = str_cut(&line, ' ');
        *root = str_cut(&line, ' ');
        *point = str_cut(&line, ' ');
        return true;
    }
    return false;
}

static struct location location_of(struct arena *mem, struct str table, int fd)
{
    struct location location = {.path = NULL};
    const char *path = path_of(mem, fd);
    const char *root_text, *point_text;
    struct str root, point;
    struct statx st;

    if (!path || syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0 ||
        !(st.stx_mask & STATX_MNT_ID) ||
        !find_mount(table, st.stx_mnt_id, &location.device, &root, &point))
        return location;
    root_text = unescape(mem, root);
    point_text = unescape(mem, point);
    if (!path_is_within(path, point_text))
        return location; /* moved meanwhile; the other ways still see it */
    path += strlen(point_text) == 1 ? 0 : strlen(point_text);
    location.path = arena_printf(mem, "%s%s", strcmp(root_text, "/") == 0 ? "" : root_text, path);
    if (location.path[0] == '\0')
        location.path = "/";
    return location;
}

static bool share_a_place(const struct location *a, const struct location *b)
{
    return a->path && b->path && str_eq(a->device, b->device) &&
           (path_is_within(a->path, b->path) || path_is_within(b->path, a->path));
}

/* ---- the places ---- */

struct judge {
    struct arena *mem;
    struct str table; /* mountinfo */
    const struct source *source;
    struct location location;
    const char *path;
};

static bool collides(const struct judge *judge, const char *place)
{
    AUTO_FD int fd = open(place, O_PATH | O_CLOEXEC);
    AUTO_FD int holder = -1;
    struct location location;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return false; /* not on this machine, or not for this user */
    if (same_object(&judge->source->st, &st) || lies_below(judge->source->folder_fd, &st))
        return true;
    location = location_of(judge->mem, judge->table, fd);
    if (share_a_place(&judge->location, &location))
        return true;
    holder = open_holder(judge->mem, fd);
    return holder < 0 || lies_below(holder, &judge->source->st);
}

static const char *collides_with_home(const struct judge *judge, const char *home)
{
    for (size_t i = 0; i < COUNT(forbidden_in_home); i++) {
        const char *place = arena_printf(judge->mem, "%s/%s", home, forbidden_in_home[i]);

        if (collides(judge, place))
            return place;
    }
    return NULL;
}

/* People's accounts and root's, from the file: a name service is not to be asked from here. */
static const char *collides_with_homes(const struct judge *judge)
{
    AUTO_BUF struct buf accounts = BUF(PROC_TEXT_MAX);
    const char *own = getenv("HOME");
    struct err ignored; /* without the file there are still $HOME and the names */
    const char *place = own && *own == '/' ? collides_with_home(judge, own) : NULL;
    struct str rest;
    unsigned homes = 0;

    if (place || file_read(AT_FDCWD, "/etc/passwd", &accounts, &ignored) < 0)
        return place;
    rest = buf_str(&accounts);
    while (!place && rest.n && homes < HOMES_MAX) {
        struct str line = str_cut(&rest, '\n');
        struct str home;
        uint64_t uid = 1;

        (void)str_cut(&line, ':');
        (void)str_cut(&line, ':');
        if (!str_u64(str_cut(&line, ':'), &uid) || (uid != 0 && uid < 1000))
            continue;
        (void)str_cut(&line, ':');
        (void)str_cut(&line, ':');
        home = str_cut(&line, ':');
        homes++;
        if (home.n > 1 && home.p[0] == '/')
            place = collides_with_home(judge, arena_text(judge->mem, home));
    }
    return place;
}

/* "/.ssh" as a part of the path, wherever it is. */
static const char *named_like_credentials(const struct judge *judge)
{
    for (size_t i = 0; i < COUNT(forbidden_in_home); i++) {
        const char *name = forbidden_in_home[i];
        size_t n = strlen(name);

        for (const char *at = judge->path; (at = strchr(at, '/')) != NULL; at++)
            if (strncmp(at + 1, name, n) == 0 && (at[n + 1] == '\0' || at[n + 1] == '/'))
                return name;
    }
    return NULL;
}

static const char *is_a_home(const struct judge *judge)
{
    for (size_t i = 0; i < COUNT(marks_of_home); i++) {
        struct stat st;

        if (S_ISDIR(judge->source->st.st_mode) &&
            fstatat(judge->source->fd, marks_of_home[i], &st, 0) == 0 && S_ISDIR(st.st_mode))
            return marks_of_home[i];
    }
    return NULL;
}

const char *source_forbidden(struct run *run, const char *state_dir, struct str table,
                             const struct source *source)
{
    struct judge judge = {.mem = &run->mem,
                          .table = table,
                          .source = source,
                          .location = location_of(&run->mem, table, source->fd),
                          .path = path_of(&run->mem, source->fd)};
    const char *place;
    struct stat root;

    if (stat("/", &root) < 0 || same_object(&source->st, &root) || !judge.path)
        return "/";
    if (collides(&judge, state_dir))
        return "Brig's own state";
    for (size_t i = 0; i < COUNT(forbidden); i++)
        if (collides(&judge, forbidden[i]))
            return forbidden[i];
    place = collides_with_homes(&judge);
    if (!place)
        place = named_like_credentials(&judge);
    return place ? place : is_a_home(&judge);
}

/* ---- sockets ---- */

/* "0000: 00000002 00000000 00010000 0001 01 12345 /path", one a line. */
static const char *path_in_line(struct arena *mem, struct str line)
{
    for (size_t i = 0; i < line.n; i++)
        if (line.p[i] == '/')
            return arena_text(mem, (struct str){line.p + i, line.n - i});
    return NULL; /* without a name, or with an abstract one */
}

const char *source_socket(struct run *run, const struct source *source)
{
    AUTO_BUF struct buf table = BUF(PROC_TEXT_MAX);
    const char *folder = path_of(&run->mem, source->fd);
    struct err ignored; /* a kernel without unix sockets has none to show */
    struct str rest;

    if (!folder || !S_ISDIR(source->st.st_mode) ||
        file_read(AT_FDCWD, "/proc/net/unix", &table, &ignored) < 0)
        return NULL;
    rest = buf_str(&table);
    while (rest.n) {
        const char *path = path_in_line(&run->mem, str_cut(&rest, '\n'));
        AUTO_FD int fd = -1;
        struct stat st;

        /* What lies there is never handed out anyway, and most sockets do. */
        if (!path || path_is_within(path, "/run"))
            continue;
        fd = open(path, O_PATH | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISSOCK(st.st_mode))
            continue;
        path = path_of(&run->mem, fd);
        if (path && path_is_within(path, folder))
            return path;
    }
    return NULL;
}

/* ---- opening ---- */

int source_open(struct run *run, const char *path, struct source *out, struct err *err)
{
    /* The last part may be a link of the user's own; what it points to is what is judged. */
    out->fd = open(path, O_PATH | O_CLOEXEC);
    if (out->fd < 0)
        return err_os(err, "mount source %s", path);
    if (fstat(out->fd, &out->st) < 0)
        return err_os(err, "looking at %s", path);
    if (S_ISDIR(out->st.st_mode))
        out->folder_fd = fcntl(out->fd, F_DUPFD_CLOEXEC, 0);
    else
        out->folder_fd = open_holder(&run->mem, out->fd);
    return out->folder_fd < 0 ? err_os(err, "opening the folder of %s", path) : 0;
}

void source_close(struct source *source)
{
    if (source->fd >= 0)
        (void)close(source->fd);
    if (source->folder_fd >= 0)
        (void)close(source->folder_fd);
    source->fd = source->folder_fd = -1;
}
