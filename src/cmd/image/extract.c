/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/image/extract.h"

#include "lib/base/limits.h"
#include "lib/linux/sys.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#define NAME_BYTES_MAX 255
#define WHITEOUT ".wh."
#define WHITEOUT_META ".wh..wh."
#define OPAQUE ".wh..wh..opq"
#define OPAQUE_XATTR "user.overlay.opaque"
#define TIMES_MAX (128 * MIB)
#define MODE_IS_SET ((mode_t)-1)
#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV)

struct folder_time {
    struct folder_time *next;
    struct timespec time;
    mode_t mode; /* to set with it, or MODE_IS_SET */
    char path[];
};

void extractor_done(struct extractor *x)
{
    if (x->parent_fd >= 0)
        (void)close(x->parent_fd);
    x->parent_fd = -1;
    free(x->parent);
    x->parent = NULL;
    arena_done(&x->times_mem);
}

/* ---- names ---- */

int layer_path(struct str given, char out[4096], struct err *err)
{
    struct str rest = given;
    size_t n = 0, depth = 0;

    if (given.n && given.p[0] == '/')
        return err_set(err, ERR_INVALID, "an absolute path");
    if (memchr(given.p, '\0', given.n))
        return err_set(err, ERR_INVALID, "a NUL in the path");
    while (rest.n) {
        struct str part = str_cut(&rest, '/');

        if (!part.n || str_is(part, "."))
            continue;
        if (str_is(part, ".."))
            return err_set(err, ERR_INVALID, "\"..\" in the path");
        if (part.n > NAME_BYTES_MAX)
            return err_set(err, ERR_LIMIT, "a name of more than %d bytes", NAME_BYTES_MAX);
        if (n + part.n + 2 > PATH_BYTES_MAX || ++depth > IMAGE_DEPTH_MAX)
            return err_set(err, ERR_LIMIT, "a path of more than %d bytes or %d folders",
                           PATH_BYTES_MAX, IMAGE_DEPTH_MAX);
        if (n)
            out[n++] = '/';
        memcpy(out + n, part.p, part.n);
        n += part.n;
    }
    out[n] = '\0';
    return 0;
}

/* ---- folders ---- */

static bool is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

static int make_opaque(int folder_fd, struct err *err)
{
    if (fsetxattr(folder_fd, OPAQUE_XATTR, "y", 1, 0) == 0)
        return 0;
    if (errno == EOPNOTSUPP)
        return err_set(err, ERR_UNAVAILABLE,
                       "the file system of the image store has no user attributes, which this "
                       "layer needs: set BRIG_HOME to a folder on another one");
    return err_os(err, "hiding what lies below a folder");
}

/* One step down, made when it is missing. A whiteout on the way becomes a folder that hides what
 * lies below it: both say that nothing of the lower one remains. */
static int step_down(int at, const char *name, mode_t mode, int *out, bool *made, struct err *err)
{
    bool hides = false;
    struct stat st;

    if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_whiteout(&st)) {
        if (unlinkat(at, name, 0) < 0)
            return err_os(err, "replacing a whiteout");
        hides = true;
    }
    *made = mkdirat(at, name, mode) == 0;
    if (!*made && errno != EEXIST)
        return err_os(err, "creating a folder");
    *out = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*out < 0 && (errno == ELOOP || errno == ENOTDIR))
        return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode)
                   ? err_set(err, ERR_INVALID, "its path goes through a symbolic link")
                   : err_set(err, ERR_INVALID, "its path goes through something that is no folder");
    if (*out < 0)
        return err_os(err, "opening a folder");
    if (hides && make_opaque(*out, err) < 0) {
        (void)close(*out);
        return -1;
    }
    return 0;
}

static int remember_time(struct extractor *x, struct str path, struct timespec time, mode_t mode,
                         struct err *err)
{
    struct folder_time *item;

    if (x->times_mem.used + sizeof *item + path.n + 1 > TIMES_MAX)
        return err_set(err, ERR_LIMIT, "too many folders");
    item = arena_alloc(&x->times_mem, sizeof *item + path.n + 1);
    item->time = time;
    item->mode = mode;
    memcpy(item->path, path.p, path.n);
    /* In the order of the entries, so that the last one about a folder counts. */
    *(x->last_time ? &x->last_time->next : &x->times) = item;
    x->last_time = item;
    return 0;
}

/* Folders that no entry names get a fixed mode and time: the same layer gives the same tree. */
static int walk_down(struct extractor *x, const char *path, int *out, struct err *err)
{
    AUTO_FD int at = openat(x->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct str rest = str_of(path);

    if (at < 0)
        return err_os(err, "opening the layer");
    while (rest.n) {
        struct str part = str_cut(&rest, '/');
        char name[NAME_BYTES_MAX + 1];
        bool made = false;
        int next = -1;

        memcpy(name, part.p, part.n);
        name[part.n] = '\0';
        if (step_down(at, name, 0755, &next, &made, err) < 0)
            return -1;
        (void)close(at);
        at = next;
        if (made && remember_time(x, (struct str){path, (size_t)(part.p + part.n - path)},
                                  (struct timespec){0, 0}, MODE_IS_SET, err) < 0)
            return -1;
    }
    *out = TAKE_FD(at);
    return 0;
}

/* The folder at path, made with those on the way when it is missing; borrowed from the cache. No
 * entry removes a folder, so what is cached stays true. */
static int enter(struct extractor *x, const char *path, int *out, struct err *err)
{
    int fd;

    if (x->parent && strcmp(x->parent, path) == 0) {
        *out = x->parent_fd;
        return 0;
    }
    fd = sys_openat2(x->root_fd, *path ? path : ".", O_RDONLY | O_DIRECTORY, BENEATH);
    if (fd < 0 && walk_down(x, path, &fd, err) < 0)
        return -1;
    if (x->parent_fd >= 0)
        (void)close(x->parent_fd);
    free(x->parent);
    x->parent = xstrdup(path);
    x->parent_fd = fd;
    *out = fd;
    return 0;
}

/* ---- what an entry has besides its contents ---- */

static struct timespec entry_time(struct archive_entry *entry)
{
    struct timespec time = {archive_entry_mtime(entry), archive_entry_mtime_nsec(entry)};

    if (time.tv_sec < 0 || time.tv_sec > UINT32_MAX)
        return (struct timespec){0, 0}; /* no file system keeps them all */
    if (time.tv_nsec < 0 || time.tv_nsec > 999999999)
        time.tv_nsec = 0;
    return time;
}

/* Attributes of the kernel's security modules and of privileged mounts mean nothing for one user
 * and stay behind; those that would steer our own overlay are an attack. */
static int set_xattrs(int fd, struct archive_entry *entry, struct err *err)
{
    const char *name = NULL;
    const void *value = NULL;
    size_t n = 0, sum = 0;

    (void)archive_entry_xattr_reset(entry);
    while (archive_entry_xattr_next(entry, &name, &value, &n) == ARCHIVE_OK) {
        if (!name || strncmp(name, "user.", 5) != 0)
            continue;
        if (strncmp(name, "user.overlay.", 13) == 0)
            return err_set(err, ERR_INVALID, "an attribute of overlay file systems");
        sum += n + strlen(name);
        if (strlen(name) > NAME_BYTES_MAX || sum > IMAGE_XATTR_MAX)
            return err_set(err, ERR_LIMIT, "attributes of more than %lu bytes", IMAGE_XATTR_MAX);
        if (fsetxattr(fd, name, value, n, 0) < 0 && errno != EOPNOTSUPP)
            return err_os(err, "setting an attribute");
    }
    return 0;
}

/* ---- the kinds of entries ---- */

/* Clears the way for something that is not a folder. As in every tar, the later entry counts. */
static int clear_way(int parent_fd, const char *name, struct err *err)
{
    struct stat st;

    if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_os(err, "looking at an entry");
    if (S_ISDIR(st.st_mode))
        return err_set(err, ERR_INVALID, "it would replace a folder of the same layer");
    return unlinkat(parent_fd, name, 0) < 0 ? err_os(err, "replacing an entry") : 0;
}

static int copy_contents(struct extractor *x, struct archive *archive, int fd, uint64_t size,
                         struct err *err)
{
    const void *block = NULL;
    size_t n = 0;
    int64_t at = 0;
    int status;

    while ((status = archive_read_data_block(archive, &block, &n, &at)) == ARCHIVE_OK) {
        if (at < 0 || (uint64_t)at > size || n > size - (uint64_t)at)
            return err_set(err, ERR_INVALID, "more contents than its size says");
        while (n) {
            ssize_t wrote = pwrite(fd, block, n, at);

            if (wrote < 0 && errno == EINTR)
                continue;
            if (wrote < 0)
                return err_os(err, "writing");
            block = (const char *)block + wrote;
            at += wrote;
            n -= (size_t)wrote;
        }
        if (job_in_time(x->job, err) < 0)
            return -1;
    }
    if (status != ARCHIVE_EOF)
        return err_set(err, ERR_INTEGRITY, "%.200s", archive_error_string(archive));
    return 0;
}

static int place_file(struct extractor *x, struct archive *archive, struct archive_entry *entry,
                      int parent_fd, const char *name, struct err *err)
{
    uint64_t size = (uint64_t)archive_entry_size(entry);
    struct timespec times[2] = {
        {0, UTIME_NOW},
        entry_time(entry)
    };
    AUTO_FD int fd = -1;

    if (archive_entry_size(entry) < 0 || size > IMAGE_FILE_MAX)
        return err_set(err, ERR_LIMIT, "a file of more than %lu bytes", IMAGE_FILE_MAX);
    /* Holes count as what they pretend to be: copying the file would make them so. */
    if (size > IMAGE_UNPACKED_MAX - x->bytes)
        return err_set(err, ERR_LIMIT, "the layer holds more than %lu bytes", IMAGE_UNPACKED_MAX);
    x->bytes += size;
    fd = openat(parent_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_os(err, "creating");
    if (copy_contents(x, archive, fd, size, err) < 0)
        return -1;
    if (ftruncate(fd, (off_t)size) < 0)
        return err_os(err, "writing");
    if (set_xattrs(fd, entry, err) < 0)
        return -1;
    if (fchmod(fd, (archive_entry_perm(entry) & 0777) | (x->exact_modes ? 0 : 0400)) < 0 ||
        futimens(fd, times) < 0)
        return err_os(err, "finishing");
    return 0;
}

static int place_folder(struct extractor *x, struct archive_entry *entry, int parent_fd,
                        const char *path, const char *name, struct err *err)
{
    AUTO_FD int fd = -1;
    struct stat st;
    bool made;

    if (!*name) {
        fd = openat(x->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            return err_os(err, "opening the layer");
    } else {
        if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode) &&
            !is_whiteout(&st) && unlinkat(parent_fd, name, 0) < 0)
            return err_os(err, "replacing an entry");
        if (step_down(parent_fd, name, 0700, &fd, &made, err) < 0)
            return -1;
    }
    if (set_xattrs(fd, entry, err) < 0)
        return -1;
    if (fchmod(fd, (archive_entry_perm(entry) & 01777) | 0700) < 0)
        return err_os(err, "setting the mode of a folder");
    return remember_time(x, str_of(path), entry_time(entry),
                         x->exact_modes ? archive_entry_perm(entry) & 01777 : MODE_IS_SET, err);
}

static int place_symlink(struct archive_entry *entry, int parent_fd, const char *name,
                         struct err *err)
{
    const char *target = archive_entry_symlink(entry);
    struct timespec times[2] = {
        {0, UTIME_NOW},
        entry_time(entry)
    };

    if (!target || !*target || strlen(target) >= PATH_BYTES_MAX)
        return err_set(err, ERR_INVALID, "a symbolic link to nothing or to too long a path");
    if (symlinkat(target, parent_fd, name) < 0)
        return err_os(err, "linking");
    (void)utimensat(parent_fd, name, times,
                    AT_SYMLINK_NOFOLLOW); /* times of links are decoration */
    return 0;
}

/* Only to a regular file that this layer has already placed. */
static int place_hard_link(struct extractor *x, struct archive_entry *entry, const char *path,
                           int parent_fd, const char *name, struct err *err)
{
    const char *given = archive_entry_hardlink(entry);
    char target[PATH_BYTES_MAX];
    AUTO_FD int folder = -1;
    char *base;
    struct stat st;

    if (!given || layer_path(str_of(given), target, err) < 0)
        return given ? err_in(err, "target of the hard link")
                     : err_set(err, ERR_INVALID, "a hard link to nothing");
    if (strcmp(target, path) == 0)
        return err_set(err, ERR_INVALID, "a hard link to itself");
    base = strrchr(target, '/');
    if (base)
        *base++ = '\0';
    folder = sys_openat2(x->root_fd, base ? target : ".", O_RDONLY | O_DIRECTORY, BENEATH);
    if (folder < 0 || fstatat(folder, base ? base : target, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISREG(st.st_mode))
        return err_set(err, ERR_INVALID,
                       "a hard link to something that is no file placed earlier by this layer");
    if (clear_way(parent_fd, name, err) < 0)
        return -1;
    if (linkat(folder, base ? base : target, parent_fd, name, 0) < 0)
        return err_os(err, "linking");
    return 0;
}

/* "Nothing of the layers below remains here." What this layer itself puts there stays. */
static int place_whiteout(int parent_fd, const char *name, struct err *err)
{
    AUTO_FD int fd = -1;
    struct stat st;

    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return err_set(err, ERR_INVALID, "a whiteout of nothing");
    if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return mknodat(parent_fd, name, S_IFCHR, makedev(0, 0)) < 0
                   ? err_os(err, "making a whiteout")
                   : 0;
    if (!S_ISDIR(st.st_mode))
        return 0;
    fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_os(err, "opening a folder");
    return make_opaque(fd, err);
}

static int place_mark(struct extractor *x, int parent_fd, const char *folder, const char *name,
                      struct err *err)
{
    if (strcmp(name, OPAQUE) == 0)
        return *folder || x->root_may_hide
                   ? make_opaque(parent_fd, err)
                   : err_set(err, ERR_INVALID,
                             "hides all layers below; such an image is built wrongly");
    /* Other names that begin so are notes of a storage driver to itself. */
    if (strncmp(name, WHITEOUT_META, strlen(WHITEOUT_META)) == 0) {
        x->left_out++;
        return 0;
    }
    return place_whiteout(parent_fd, name + strlen(WHITEOUT), err);
}

/* ---- one entry ---- */

static int refuse_special(struct extractor *x, mode_t type, struct err *err)
{
    const char *what = S_ISCHR(type) || S_ISBLK(type) ? "a device node"
                       : S_ISFIFO(type)               ? "a named pipe"
                       : S_ISSOCK(type)               ? "a socket"
                                                      : NULL;

    if (!what)
        return err_set(err, ERR_INVALID, "of a kind that is not known");
    if (x->skip_devices) {
        x->left_out++;
        return 0;
    }
    return err_set(err, ERR_INVALID, "%s, which no sandbox gets; --skip-devices leaves it out",
                   what);
}

static int place(struct extractor *x, struct archive *archive, struct archive_entry *entry,
                 char path[PATH_BYTES_MAX], struct err *err)
{
    mode_t type = archive_entry_filetype(entry);
    char *slash = strrchr(path, '/');
    char whole[PATH_BYTES_MAX];
    const char *name = slash ? slash + 1 : path;
    int parent_fd = -1;

    (void)strcpy(whole, path);
    if (slash)
        *slash = '\0';
    if (enter(x, slash ? path : "", &parent_fd, err) < 0)
        return -1;
    if (strncmp(name, WHITEOUT, strlen(WHITEOUT)) == 0)
        return place_mark(x, parent_fd, slash ? path : "", name, err);
    if (archive_entry_hardlink(entry))
        return place_hard_link(x, entry, whole, parent_fd, name, err);
    if (S_ISDIR(type))
        return place_folder(x, entry, parent_fd, whole, name, err);
    if (!S_ISREG(type) && !S_ISLNK(type))
        return refuse_special(x, type, err);
    if (!*name)
        return err_set(err, ERR_INVALID, "something other than a folder in place of the root");
    if (clear_way(parent_fd, name, err) < 0)
        return -1;
    return S_ISREG(type) ? place_file(x, archive, entry, parent_fd, name, err)
                         : place_symlink(entry, parent_fd, name, err);
}

/* Folders of a storage driver's notes, and what is in them. */
static bool is_below_notes(const char *path)
{
    struct str rest = str_of(path);

    while (rest.n) {
        struct str part = str_cut(&rest, '/');

        if (rest.n && str_starts(part, WHITEOUT_META))
            return true;
    }
    return false;
}

int extract_entry(struct extractor *x, struct archive *archive, struct archive_entry *entry,
                  struct err *err)
{
    AUTO_BUF struct buf shown = BUF(8 * PATH_BYTES_MAX);
    const char *given = archive_entry_pathname(entry);
    char path[PATH_BYTES_MAX];
    struct err ignored;

    if (++x->entries > IMAGE_ENTRIES_MAX)
        return err_set(err, ERR_LIMIT, "the layer has more than %d entries", IMAGE_ENTRIES_MAX);
    if (!given)
        return err_set(err, ERR_INVALID, "the layer has an entry whose name cannot be read");
    if (layer_path(str_of(given), path, err) == 0) {
        if (is_below_notes(path)) {
            x->left_out++;
            return 0;
        }
        if (place(x, archive, entry, path, err) == 0)
            return 0;
    }
    if (text_escape(str_of(given), &shown, &ignored) < 0)
        return err_in(err, "an entry with a very long name");
    return err_in(err, "entry \"%.200s\"", buf_text(&shown));
}

int extract_times(struct extractor *x, struct err *err)
{
    const struct timespec fixed[2] = {
        {0, UTIME_NOW},
        {0, 0        }
    };

    if (futimens(x->root_fd, fixed) < 0) /* unless an entry says otherwise */
        return err_os(err, "setting the time of the layer");
    for (const struct folder_time *item = x->times; item; item = item->next) {
        AUTO_FD int fd = sys_openat2(x->root_fd, *item->path ? item->path : ".",
                                     O_RDONLY | O_DIRECTORY, BENEATH);
        struct timespec times[2] = {
            {0, UTIME_NOW},
            item->time
        };

        if (fd < 0)
            continue; /* replaced by a later entry */
        if (futimens(fd, times) < 0)
            return err_os(err, "setting the time of a folder");
        if (item->mode != MODE_IS_SET && fchmod(fd, item->mode) < 0)
            return err_os(err, "setting the mode of a folder");
    }
    return 0;
}
