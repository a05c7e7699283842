/* SPDX-License-Identifier: Apache-2.0 */

/* Places to mount at, links and files of the new root. Whoever filled an image may have put
 * anything on the way: no link is followed. */

#include "cmd/box/box-root.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/linux/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>

/* Opens the folder that holds the last name of `path`, never through a link, making folders on
 * the way. */
static int make_parent(int root_fd, const char *path, const char **name, int *out, struct err *err)
{
    AUTO_FD int at = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
    const char *part = path + strspn(path, "/");
    char piece[256];

    if (at < 0)
        return err_os(err, "starting at the new root");
    for (;;) {
        size_t n = strcspn(part, "/");
        const char *rest = part + n + strspn(part + n, "/");
        int next;

        if (*rest == '\0') {
            *name = part;
            *out = TAKE_FD(at);
            return 0;
        }
        if (n == 0 || n >= sizeof piece)
            return err_set(err, ERR_INVALID, "target %s", path);
        memcpy(piece, part, n);
        piece[n] = '\0';
        if (mkdirat(at, piece, 0755) < 0 && errno != EEXIST)
            return err_os(err, "creating %s of %s", piece, path);
        next = openat(at, piece, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            return err_os(err, "opening %s of %s", piece, path);
        (void)close(at);
        at = next;
        part = rest;
    }
}

/* Opens `path` beneath the new root, never through a link. Returns the folder that holds the last
 * name, and that name. The folder is mostly there already, and then this is one call. */
static int open_parent(int root_fd, const char *path, const char **name, int *out, struct err *err)
{
    const char *part = path + strspn(path, "/");
    const char *last = strrchr(part, '/');
    size_t n = last ? (size_t)(last - part) : 0;
    char folder[PATH_BYTES_MAX];
    int fd;

    if (n >= sizeof folder)
        return err_set(err, ERR_INVALID, "target %s", path);
    memcpy(folder, n ? part : ".", n ? n : 1);
    folder[n ? n : 1] = '\0';
    fd = sys_openat2(root_fd, folder, O_PATH | O_DIRECTORY, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    if (fd < 0)
        return make_parent(root_fd, path, name, out, err);
    *name = last ? last + 1 : part;
    *out = fd;
    return 0;
}

int target_make(int root_fd, const struct box_mount *mount, const char *path, int *out,
                struct err *err)
{
    AUTO_FD int parent = -1;
    const char *name = NULL;
    int fd;

    if (open_parent(root_fd, path, &name, &parent, err) < 0)
        return -1;
    if (mount->is_file) {
        fd = openat(parent, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd >= 0)
            (void)close(fd);
        else if (errno != EACCES && errno != EROFS) /* it may exist in what was mounted before */
            return err_os(err, "creating %s", path);
    } else if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST && errno != EROFS) {
        return err_os(err, "creating %s", path);
    }
    fd = openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_os(err, "opening %s", path);
    *out = fd;
    return 0;
}

int target_link(int root_fd, const char *path, const char *to, struct err *err)
{
    AUTO_FD int parent = -1;
    const char *name = NULL;

    if (open_parent(root_fd, path, &name, &parent, err) < 0)
        return -1;
    if (symlinkat(to, parent, name) < 0)
        return err_os(err, "linking %s", path);
    return 0;
}

int target_file(int root_fd, const char *path, const char *text, struct err *err)
{
    AUTO_FD int parent = -1;
    AUTO_FD int fd = -1;
    const char *name = NULL;

    if (open_parent(root_fd, path, &name, &parent, err) < 0)
        return -1;
    /* An image may have something of that name, and it may be a link. */
    if (unlinkat(parent, name, 0) < 0 && errno != ENOENT)
        return err_os(err, "replacing %s", path);
    fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_os(err, "creating %s", path);
    if (write_all(fd, text, strlen(text), err) < 0)
        return err_in(err, "%s", path);
    return 0;
}
