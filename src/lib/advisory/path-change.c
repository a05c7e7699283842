/* SPDX-License-Identifier: Apache-2.0 */

/* Files changed by a person's word: what is new is whole before anybody sees it, and what goes is
 * what was looked at.
 *
 * There is no call that renames or removes a descriptor. So a name is moved first, where nobody
 * overwrites anything, and then what it named is looked at: what turns out to be another file goes
 * back. What is on its way lies beside the zones, in /sandbox itself, as .new-ID or .old-ID: no
 * agent is shown that folder, and no request can name anything in it. Whoever is killed leaves it
 * there, and the next one clears it away. */

#include "lib/advisory/advisory-private.h"

#include "lib/base/attrs.h"
#include "lib/base/clock.h"
#include "lib/base/crash.h"
#include "lib/base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEW_PREFIX ".new-"
#define OLD_PREFIX ".old-"
#define FILE_MODE 0644

struct aside {
    char name[sizeof NEW_PREFIX + ID_BYTES]; /* in /sandbox */
};

static struct aside name_aside(const char *prefix)
{
    struct aside aside;
    char id[ID_BYTES];

    id_new(id);
    (void)snprintf(aside.name, sizeof aside.name, "%s%s", prefix, id);
    return aside;
}

static bool is_same(int fd, int folder_fd, const char *name)
{
    struct stat ours, there;

    return fstat(fd, &ours) == 0 && fstatat(folder_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

/* The names are written down; what the files hold was. What a file system cannot keep is there for
 * everybody all the same. */
static void sync_folder(int folder_fd)
{
    AUTO_FD int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0)
        (void)fsync(fd);
}

/* ---- another name, or none ---- */

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

int advisory_path_remove(int root_fd, const struct advisory_opened *opened, struct err *err)
{
    struct aside aside = name_aside(OLD_PREFIX);

    if (move_name(opened, root_fd, aside.name, err) < 0)
        return -1;
    CRASH_POINT("advisory-file-aside");
    return unlinkat(root_fd, aside.name, 0) < 0 ? err_os(err, "removing %s", opened->name) : 0;
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
        return path_refuse(rule, *rule, err);
    folder = path_folder(mem, root_fd, read.path, &name, rule, err);
    return folder < 0 ? -1 : move_name(opened, folder, name, err);
}

/* ---- other content ---- */

/* As the file that is to be replaced; what is new is as it was made. */
static int take_after(int fd, const struct advisory_opened *opened, struct err *err)
{
    struct stat ours, theirs;

    if (opened->fd < 0)
        return 0;
    if (fstat(fd, &ours) < 0 || fstat(opened->fd, &theirs) < 0)
        return err_os(err, "looking at %s", opened->name);
    if ((ours.st_uid != theirs.st_uid || ours.st_gid != theirs.st_gid) &&
        fchown(fd, theirs.st_uid, theirs.st_gid) < 0)
        return err_os(err, "giving what is to replace %s its owner", opened->name);
    return fchmod(fd, theirs.st_mode & 0777) < 0
               ? err_os(err, "giving what is to replace %s its mode", opened->name)
               : 0;
}

static int fill(int fd, const struct advisory_opened *opened, struct str content, struct err *err)
{
    if (take_after(fd, opened, err) < 0)
        return -1;
    if (write_all(fd, content.p, content.n, err) < 0)
        return err_in(err, "writing %s", opened->name);
    return fsync(fd) < 0 ? err_os(err, "keeping %s", opened->name) : 0;
}

static int publish_new(int root_fd, const char *aside, const struct advisory_opened *opened,
                       struct err *err)
{
    if (renameat2(root_fd, aside, opened->folder_fd, opened->name, RENAME_NOREPLACE) == 0)
        return 0;
    return errno == EEXIST ? err_set(err, ERR_CONFLICT, "%s exists", opened->name)
                           : err_os(err, "naming %s", opened->name);
}

/* What took the place of another file than the one that was looked at gives it back. */
static int give_back(int root_fd, const char *aside, const struct advisory_opened *opened,
                     struct err *err)
{
    struct err why = *err;

    if (renameat2(root_fd, aside, opened->folder_fd, opened->name, RENAME_EXCHANGE) == 0)
        return -1;
    if (errno == ENOENT &&
        renameat2(root_fd, aside, opened->folder_fd, opened->name, RENAME_NOREPLACE) == 0)
        return -1;
    (void)err_os(err, "giving %s back", opened->name);
    return err_in(err, "%s", why.text);
}

/* The two change places, so that what was replaced can be looked at. */
static int publish_changed(int root_fd, const char *aside, const struct advisory_opened *opened,
                           advisory_still *still, void *context, struct err *err)
{
    if (renameat2(root_fd, aside, opened->folder_fd, opened->name, RENAME_EXCHANGE) < 0)
        return errno == ENOENT ? err_set(err, ERR_CONFLICT, "%s is gone", opened->name)
                               : err_os(err, "replacing %s", opened->name);
    CRASH_POINT("advisory-file-exchanged");
    if (!is_same(opened->fd, root_fd, aside)) {
        (void)err_set(err, ERR_CONFLICT, "%s was exchanged meanwhile", opened->name);
        return give_back(root_fd, aside, opened, err);
    }
    return still(context, opened, err) < 0 ? give_back(root_fd, aside, opened, err) : 0;
}

static int publish(int root_fd, const char *aside, const struct advisory_opened *opened,
                   advisory_still *still, void *context, struct err *err)
{
    CRASH_POINT("advisory-file-written");
    return opened->fd < 0 ? publish_new(root_fd, aside, opened, err)
                          : publish_changed(root_fd, aside, opened, still, context, err);
}

int advisory_path_put(int root_fd, const struct advisory_opened *opened, struct str content,
                      advisory_still *still, void *context, struct err *err)
{
    struct aside aside = name_aside(NEW_PREFIX);
    AUTO_FD int fd = openat(root_fd, aside.name,
                            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    int failed;

    if (fd < 0)
        return err_os(err, "making what is to be %s", opened->name);
    failed = fill(fd, opened, content, err) < 0 ||
             publish(root_fd, aside.name, opened, still, context, err) < 0;
    /* The old one, or the new one that did not take its place; what stays the next one clears. */
    if (!failed || is_same(fd, root_fd, aside.name))
        (void)unlinkat(root_fd, aside.name, 0);
    if (failed)
        return -1;
    sync_folder(opened->folder_fd);
    CRASH_POINT("advisory-file-published");
    return 0;
}

/* ---- what is left ---- */

static bool begins_with(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

void advisory_path_clear(int root_fd)
{
    AUTO_FD int fd = openat(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir)
        return;
    (void)TAKE_FD(fd);
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (begins_with(entry->d_name, NEW_PREFIX) || begins_with(entry->d_name, OLD_PREFIX))
            (void)unlinkat(root_fd, entry->d_name, 0); /* what stays the next one clears */
    (void)closedir(dir);
}
