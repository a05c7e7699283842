/* SPDX-License-Identifier: Apache-2.0 */

/* Where this user's keys and ledger live, and the refusal to trust a place others control. */

#include "surface/cli/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"

#define STATE_MODE 0700

/* A variable that is set, not empty; relative paths count only where the user typed them. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

static int state_name(struct arena *mem, const char **out, struct err *err)
{
    const char *home = variable("BRIG_HOME");
    const char *data = variable("XDG_DATA_HOME");

    if (home)
        *out = home;
    else if (geteuid() == 0)
        *out = "/var/lib/brig";
    else if (data && data[0] == '/') /* the XDG specification ignores relative ones */
        *out = arena_printf(mem, "%s/brig", data);
    else if ((home = variable("HOME")) && home[0] == '/')
        *out = arena_printf(mem, "%s/.local/share/brig", home);
    else
        return err_set(err, ERR_UNAVAILABLE,
                       "no place for keys and receipts: set HOME or BRIG_HOME to a directory of "
                       "yours");
    return 0;
}

static int check_owner(const char *path, struct err *err)
{
    /* Whose it is can be seen where nothing in it can be read. */
    AUTO_FD int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat s;

    if (fd < 0 || fstat(fd, &s) < 0)
        return err_os(err, "opening the state directory %s", path);
    if (s.st_uid != geteuid())
        return err_set(err, ERR_FORBIDDEN,
                       "the state directory %s belongs to user %u, not to you (%u): set BRIG_HOME "
                       "to one of your own",
                       path, s.st_uid, geteuid());
    if (s.st_mode & (S_IWGRP | S_IWOTH))
        return err_set(err, ERR_FORBIDDEN,
                       "others may write to the state directory %s: run \"chmod go-w %s\" after "
                       "checking what is in it",
                       path, path);
    return 0;
}

int cli_state_find(struct invocation *inv, const char **out, bool *exists, struct err *err)
{
    AUTO_FREE char *resolved = NULL;
    const char *name = NULL;

    if (state_name(&inv->mem, &name, err) < 0)
        return -1;
    resolved = realpath(name, NULL);
    if (!resolved && errno != ENOENT)
        return err_os(err, "resolving the state directory %s", name);
    if (resolved && check_owner(resolved, err) < 0)
        return -1;
    *out = resolved ? arena_text(&inv->mem, str_of(resolved)) : name;
    *exists = resolved != NULL;
    return 0;
}

int cli_state(struct invocation *inv, const char **out, struct err *err)
{
    const char *name = NULL;
    bool exists = false;

    if (state_name(&inv->mem, &name, err) < 0)
        return -1;
    if (dir_make(name, STATE_MODE, err) < 0)
        return err_in(err, "making the state directory (BRIG_HOME names another)");
    if (cli_state_find(inv, &name, &exists, err) < 0)
        return -1;
    if (!exists)
        return err_set(err, ERR_UNAVAILABLE, "the state directory %s is gone again", name);
    *out = name;
    return 0;
}
