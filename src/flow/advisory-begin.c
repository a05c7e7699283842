/* SPDX-License-Identifier: Apache-2.0 */

/* Sessions that are being begun, and what is left of those whose Brig was killed over it: the copy
 * of an agent's program, .agent-ID, and half a session, .new-ID.
 *
 * From before there is such a thing until it has its name, whoever makes it holds the folder of all
 * sessions, together with others who do. Who gets that alone knows that nobody does, and that
 * everything of that kind is nobody's. */

#include "flow/advisory-parts.h"
#include "flow/govern-parts.h"

#include "flow/advise/advise.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define HOLD_WAIT_MS 5000

static bool begins_with(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* What stays all the same the next one clears. */
static void clear(int folder_fd)
{
    AUTO_FD int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct err ignored;

    if (!dir)
        return;
    (void)TAKE_FD(fd);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (begins_with(entry->d_name, AGENT_COPY_PREFIX))
            (void)unlinkat(folder_fd, entry->d_name, 0);
        if (begins_with(entry->d_name, ADVISE_NEW_PREFIX))
            (void)!dir_remove(folder_fd, entry->d_name, &ignored);
    }
    (void)closedir(dir);
}

int sessions_hold(const char *folder, int *out, struct err *err)
{
    AUTO_FD int fd = -1;

    if (dir_make(folder, 0700, err) < 0)
        return -1;
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return err_os(err, "opening %s", folder);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        clear(fd);
    if (!lock_wait(fd, LOCK_SH, HOLD_WAIT_MS))
        return errno == EWOULDBLOCK
                   ? err_set(err, ERR_UNAVAILABLE,
                             "somebody else has been clearing %s for %d seconds; try again", folder,
                             HOLD_WAIT_MS / 1000)
                   : err_os(err, "locking %s", folder);
    *out = TAKE_FD(fd);
    return 0;
}
