/* SPDX-License-Identifier: Apache-2.0 */

/* Paths as files: R6 and R8. The kernel resolves every path once, beneath the folder it is given,
 * through no link and no mount; what is looked at afterwards is the descriptor it gave. */

#include "lib/advisory/advisory-private.h"

#include "lib/base/attrs.h"
#include "lib/base/clock.h"
#include "lib/base/limits.h"
#include "lib/linux/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WITHIN (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)
#define TRIES_MAX 64 /* a lookup that a rename crosses is to be made again */
#define FILE_MODE 0644

void advisory_opened_done(struct advisory_opened *opened)
{
    if (opened->fd >= 0)
        (void)close(opened->fd);
    if (opened->folder_fd >= 0)
        (void)close(opened->folder_fd);
    *opened = ADVISORY_OPENED;
}

static int refuse(const char **rule, const char *which, struct err *err)
{
    *rule = which;
    return err_set(err, ERR_FORBIDDEN, "%s", advisory_path_text);
}

/* What kept the kernel from opening it. */
static int say_why(const char *path, const char **rule, struct err *err)
{
    switch (errno) {
    case ELOOP:
        return refuse(rule, "R6.symlink", err);
    case EXDEV:
        return refuse(rule, "R6.mount", err);
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

/* The folder a path's last name is in; *name is that one. */
static int open_folder(struct arena *mem, int root_fd, struct str path, const char **name,
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
        return refuse(rule, "R6.kind", err);
    if (!is_look && st.st_nlink > 1)
        return refuse(rule, "R6.hard_link", err);
    return 0;
}

static int open_new(struct arena *mem, int root_fd, struct str path, struct advisory_opened *out,
                    const char **rule, struct err *err)
{
    AUTO_FD int folder = open_folder(mem, root_fd, path, &out->name, rule, err);

    if (folder < 0)
        return -1;
    out->fd = openat(folder, out->name,
                     O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, FILE_MODE);
    if (out->fd < 0)
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

    if (access == ACCESS_DELETE) {
        folder = open_folder(mem, root_fd, path, &out->name, rule, err);
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
        return refuse(rule, read.rule, err);
    *rule = zone_fault(read.zone, access, &gated);
    if (*rule)
        return refuse(rule, *rule, err);
    failed = access == ACCESS_CREATE
                 ? open_new(mem, root_fd, read.path, &opened, rule, err)
                 : open_old(mem, root_fd, read.path, access, &opened, rule, err);
    if (failed)
        return -1;
    *out = opened;
    return 0;
}

/* ---- names ---- */

static bool is_same(int fd, int folder_fd, const char *name)
{
    struct stat ours, there;

    return fstat(fd, &ours) == 0 && fstatat(folder_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

/* There is no call that renames a descriptor. So the name is moved first, where nobody overwrites
 * it, and then looked at: what turns out to be another file goes back. */
static int move_name(const struct advisory_opened *opened, int folder_fd, const char *name,
                     struct err *err)
{
    if (renameat2(opened->folder_fd, opened->name, folder_fd, name, RENAME_NOREPLACE) < 0)
        return errno == EEXIST   ? err_set(err, ERR_CONFLICT, "%s exists", name)
               : errno == ENOENT ? err_set(err, ERR_CONFLICT, "%s is gone", opened->name)
                                 : err_os(err, "renaming %s", opened->name);
    if (is_same(opened->fd, folder_fd, name))
        return 0;
    if (renameat2(folder_fd, name, opened->folder_fd, opened->name, RENAME_NOREPLACE) < 0)
        return err_os(err, "%s was exchanged meanwhile; what took its place is now %s",
                      opened->name, name);
    return err_set(err, ERR_CONFLICT, "%s was exchanged meanwhile", opened->name);
}

int advisory_path_remove(const struct advisory_opened *opened, struct err *err)
{
    char name[64], id[ID_BYTES];

    id_new(id);
    (void)snprintf(name, sizeof name, ".brig-removed-%s", id);
    if (move_name(opened, opened->folder_fd, name, err) < 0)
        return -1;
    return unlinkat(opened->folder_fd, name, 0) < 0 ? err_os(err, "removing %s", opened->name) : 0;
}

int advisory_path_move(struct arena *mem, int root_fd, const struct advisory_opened *opened,
                       struct str destination, const char **rule, struct err *err)
{
    AUTO_FD int folder = -1;
    struct sandbox_path read;
    const char *name;
    bool gated;

    *rule = NULL;
    sandbox_path_read(mem, destination, STR_LIT(""), &read);
    *rule = read.rule ? read.rule : zone_fault(read.zone, ACCESS_CREATE, &gated);
    if (*rule)
        return refuse(rule, *rule, err);
    folder = open_folder(mem, root_fd, read.path, &name, rule, err);
    return folder < 0 ? -1 : move_name(opened, folder, name, err);
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
