/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/base/clock.h"

#define LOCK_WAIT_MS 5000
#define LOCK_LOOK_MS 2

int write_all(int fd, const void *bytes, size_t n, struct err *err)
{
    const char *p = bytes;

    while (n) {
        ssize_t wrote = write(fd, p, n);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return err_os(err, "writing %zu bytes", n);
        p += wrote;
        n -= (size_t)wrote;
    }
    return 0;
}

int read_all(int fd, struct buf *out, struct err *err)
{
    char chunk[16384];

    for (;;) {
        ssize_t got = read(fd, chunk, sizeof chunk);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_os(err, "reading");
        if (got == 0)
            return 0;
        if (buf_add(out, chunk, (size_t)got, err) < 0)
            return -1;
    }
}

int file_read(int dir_fd, const char *path, struct buf *out, struct err *err)
{
    /* O_NONBLOCK: a FIFO in place of the file must not hold us up. */
    AUTO_FD int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0)
        return err_os(err, "opening %s", path);
    if (read_all(fd, out, err) < 0)
        return err_in(err, "%s", path);
    return 0;
}

int file_write(int dir_fd, const char *path, const char *text, struct err *err)
{
    AUTO_FD int fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return err_os(err, "opening %s", path);
    if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        return err_os(err, "writing \"%s\" to %s", text, path);
    return 0;
}

static int sync_parent(const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    AUTO_FREE char *parent = strndup(path, slash ? (size_t)(slash - path) : 0);
    AUTO_FD int fd = -1;

    if (!parent)
        return err_os(err, "naming the folder of %s", path);
    fd = open(*parent ? parent : (slash ? "/" : "."), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return err_os(err, "syncing the folder of %s", path);
    return 0;
}

static int replace(const char *path, const void *bytes, size_t n, unsigned mode, bool durable,
                   struct err *err)
{
    AUTO_FREE char *temporary = NULL;
    AUTO_FD int fd = -1;

    /* Threads of one process may replace the same file. */
    if (asprintf(&temporary, "%s.%d.tmp", path, (int)gettid()) < 0) {
        temporary = NULL;
        return err_os(err, "naming a temporary file for %s", path);
    }
    fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0)
        return err_os(err, "creating %s", temporary);
    if (write_all(fd, bytes, n, err) < 0 ||
        (durable && fsync(fd) < 0 && err_os(err, "syncing") < 0) ||
        (rename(temporary, path) < 0 && err_os(err, "renaming") < 0)) {
        (void)unlink(temporary); /* the failure that led here is the one to report */
        return err_in(err, "%s", path);
    }
    return durable ? sync_parent(path, err) : 0;
}

int file_replace(const char *path, const void *bytes, size_t n, unsigned mode, struct err *err)
{
    return replace(path, bytes, n, mode, true, err);
}

int file_exchange(const char *path, const void *bytes, size_t n, unsigned mode, struct err *err)
{
    return replace(path, bytes, n, mode, false, err);
}

int dir_make(const char *path, unsigned mode, struct err *err)
{
    AUTO_FREE char *partial = strdup(path);

    if (!partial)
        return err_os(err, "naming %s", path);
    for (char *p = partial + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(partial, mode) < 0 && errno != EEXIST)
            return err_os(err, "creating %s", partial);
        *p = '/';
    }
    if (mkdir(partial, mode) < 0 && errno != EEXIST)
        return err_os(err, "creating %s", path);
    return 0;
}

/* A hint: other file systems refuse it, and nothing depends on it. */
static void lay_apart(int dir_fd, const char *path)
{
    AUTO_FD int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int flags = 0;

    if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
        return;
    flags |= FS_TOPDIR_FL;
    (void)ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

int dir_make_apart(int dir_fd, const char *path, struct err *err)
{
    if (mkdirat(dir_fd, path, 0700) == 0)
        lay_apart(dir_fd, path);
    else if (errno != EEXIST)
        return err_os(err, "creating %s", path);
    return 0;
}

static int remove_entries(int fd, struct err *err)
{
    DIR *dir = fdopendir(fd);
    const struct dirent *entry;
    int failed = 0;

    if (!dir) {
        (void)close(fd);
        return err_os(err, "listing a folder to remove");
    }
    while (!failed && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        /* An empty folder goes in one call when it is known to be one. */
        if (entry->d_type != DT_DIR || unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR) < 0)
            failed = dir_remove(dirfd(dir), entry->d_name, err);
    }
    (void)closedir(dir);
    return failed;
}

int dir_remove(int dir_fd, const char *name, struct err *err)
{
    int fd;

    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return err_os(err, "removing %s", name);
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0) /* most are empty */
        return 0;
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == EACCES && fchmodat(dir_fd, name, 0700, 0) == 0)
        fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_os(err, "opening %s to remove it", name);
    /* A folder its owner took his own rights from is still his to remove. */
    (void)fchmod(fd, 0700);
    if (remove_entries(fd, err) < 0)
        return -1;
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) < 0)
        return err_os(err, "removing %s", name);
    return 0;
}

bool lock_wait(int fd, int how, unsigned wait_ms)
{
    const struct timespec moment = {.tv_nsec = LOCK_LOOK_MS * 1000000L};
    uint64_t until_us = clock_us() + wait_ms * 1000ULL;

    while (flock(fd, how | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return false;
        if (clock_us() >= until_us) {
            errno = EWOULDBLOCK;
            return false;
        }
        (void)nanosleep(&moment, NULL);
    }
    return true;
}

int file_lock(int fd, const char *path, struct err *err)
{
    if (lock_wait(fd, LOCK_EX, LOCK_WAIT_MS))
        return 0;
    return errno == EWOULDBLOCK ? err_set(err, ERR_UNAVAILABLE,
                                          "somebody else has kept %s for %d seconds; try again",
                                          path, LOCK_WAIT_MS / 1000)
                                : err_os(err, "locking %s", path);
}
