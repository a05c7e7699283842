/* SPDX-License-Identifier: Apache-2.0 */

/* Paths as files: R6 and R8. The kernel resolves every path once, beneath the folder it is given,
 * through no link and no mount; what is looked at afterwards is the descriptor it gave. */

#include "lib/advisory/advisory-private.h"

#include "lib/base/attrs.h"
#include "lib/base/limits.h"
#include "lib/linux/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WITHIN (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)
#define TRIES_MAX 64 /* a lookup that a rename crosses is to be made again */

void advisory_opened_done(struct advisory_opened *opened)
{
    if (opened->fd >= 0)
        (void)close(opened->fd);
    if (opened->folder_fd >= 0)
        (void)close(opened->folder_fd);
    *opened = ADVISORY_OPENED;
}

int path_refuse(const char **rule, const char *which, struct err *err)
{
    *rule = which;
    return err_set(err, ERR_FORBIDDEN, "%s", advisory_path_text);
}

/* What kept the kernel from opening it. */
static int say_why(const char *path, const char **rule, struct err *err)
{
    switch (errno) {
    case ELOOP:
        return path_refuse(rule, "R6.symlink", err);
    case EXDEV:
        return path_refuse(rule, "R6.mount", err);
    case ENOENT:
        return err_set(err, ERR_NOT_FOUND, "%s does not exist", path);
    case ENOTDIR:
        return err_set(err, ERR_NOT_FOUND, "%s leads through something that is no folder", path);
    case EEXIST:
        return err_set(err, ERR_CONFLICT, "%s exists", path);
    default:
        return err_os(err, "opening %s", path);
    }
}

static int open_within(int dir_fd, const char *path, int flags, const char **rule, struct err *err)
{
    int fd = -1;

    for (unsigned i = 0; i < TRIES_MAX; i++) {
        fd = sys_openat2(dir_fd, path, flags, WITHIN);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    return fd >= 0 ? fd : say_why(path, rule, err);
}

int path_folder(struct arena *mem, int root_fd, struct str path, const char **name,
                const char **rule, struct err *err)
{
    char *text = arena_text(mem, path), *slash = strrchr(text, '/');

    *name = slash ? slash + 1 : text;
    if (slash)
        *slash = '\0';
    return open_within(root_fd, slash ? text : ".", O_PATH | O_DIRECTORY, rule, err);
}

static int check_looks(int fd, enum advisory_access access, const char **rule, struct err *err)
{
    bool is_look = access == ACCESS_READ || access == ACCESS_LIST;
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_os(err, "looking at a file of the sandbox");
    if (!S_ISREG(st.st_mode) && !(is_look && S_ISDIR(st.st_mode)))
        return path_refuse(rule, "R6.kind", err);
    if (!is_look && st.st_nlink > 1)
        return path_refuse(rule, "R6.hard_link", err);
    return 0;
}

/* Where it will be: there is nothing to open yet. */
static int open_new(struct arena *mem, int root_fd, struct str path, struct advisory_opened *out,
                    const char **rule, struct err *err)
{
    AUTO_FD int folder = path_folder(mem, root_fd, path, &out->name, rule, err);
    struct stat st;

    if (folder < 0)
        return -1;
    if (fstatat(folder, out->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        errno = EEXIST;
    if (errno != ENOENT)
        return say_why(out->name, rule, err);
    out->folder_fd = TAKE_FD(folder);
    return 0;
}

static int open_old(struct arena *mem, int root_fd, struct str path, enum advisory_access access,
                    struct advisory_opened *out, const char **rule, struct err *err)
{
    int flags = access == ACCESS_MODIFY ? O_RDWR : O_RDONLY;
    AUTO_FD int folder = -1;
    AUTO_FD int fd = -1;

    if (access == ACCESS_DELETE || access == ACCESS_MODIFY) {
        folder = path_folder(mem, root_fd, path, &out->name, rule, err);
        if (folder < 0)
            return -1;
    }
    /* A pipe somebody left there must not keep us waiting. */
    fd = open_within(folder >= 0 ? folder : root_fd,
                     folder >= 0 ? out->name : (path.n ? arena_text(mem, path) : "."),
                     flags | O_NONBLOCK | O_NOCTTY, rule, err);
    if (fd < 0 || check_looks(fd, access, rule, err) < 0)
        return -1;
    out->fd = TAKE_FD(fd);
    out->folder_fd = TAKE_FD(folder);
    return 0;
}

int advisory_path_open(struct arena *mem, int root_fd, struct str path, enum advisory_access access,
                       struct advisory_opened *out, const char **rule, struct err *err)
{
    struct advisory_opened opened = ADVISORY_OPENED;
    struct sandbox_path read;
    bool gated;
    int failed;

    *rule = NULL;
    /* Asked again: what is opened is what passes, whoever calls. */
    sandbox_path_read(mem, path, STR_LIT(""), &read);
    if (read.rule)
        return path_refuse(rule, read.rule, err);
    *rule = zone_fault(read.zone, access, &gated);
    if (*rule)
        return path_refuse(rule, *rule, err);
    failed = access == ACCESS_CREATE
                 ? open_new(mem, root_fd, read.path, &opened, rule, err)
                 : open_old(mem, root_fd, read.path, access, &opened, rule, err);
    if (failed)
        return -1;
    *out = opened;
    return 0;
}

/* ---- what is there now ---- */

static int hash_file(int fd, struct advisory_target *out, struct err *err)
{
    struct hasher hasher;
    struct hash hash;
    char block[16 * KIB];
    ssize_t n;

    hasher_init(&hasher);
    out->size_bytes = 0;
    for (;;) {
        n = read(fd, block, sizeof block);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        out->size_bytes += (uint64_t)n;
        if (out->size_bytes > ADVISORY_FILE_MAX)
            return err_set(err, ERR_LIMIT, "the file is larger than %lu MiB",
                           ADVISORY_FILE_MAX / MIB);
        hasher_add(&hasher, block, (size_t)n);
    }
    if (n < 0)
        return err_os(err, "reading a file of the sandbox");
    hasher_end(&hasher, &hash);
    hash_text(&hash, out->sha256);
    return 0;
}

int advisory_target_of(const struct advisory_opened *opened, struct advisory_target *out,
                       const char **rule, struct err *err)
{
    struct advisory_target target = {.exists = true};
    struct stat st;

    if (check_looks(opened->fd, ACCESS_MODIFY, rule, err) < 0)
        return -1;
    if (fstat(opened->fd, &st) < 0 || lseek(opened->fd, 0, SEEK_SET) < 0)
        return err_os(err, "looking at a file of the sandbox");
    if (hash_file(opened->fd, &target, err) < 0)
        return -1;
    target.inode = st.st_ino;
    *out = target;
    return 0;
}

int advisory_target_look(struct arena *mem, int root_fd, struct str path,
                         struct advisory_target *out, const char **rule, struct err *err)
{
    struct advisory_opened opened = ADVISORY_OPENED;
    int failed = advisory_path_open(mem, root_fd, path, ACCESS_READ, &opened, rule, err);

    if (failed && err->code == ERR_NOT_FOUND) {
        *out = (struct advisory_target){0};
        return 0;
    }
    if (failed)
        return -1;
    failed = advisory_target_of(&opened, out, rule, err);
    advisory_opened_done(&opened);
    return failed;
}
