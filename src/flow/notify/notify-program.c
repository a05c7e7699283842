/* SPDX-License-Identifier: Apache-2.0 */

/* One message to a program of the operator's: on its standard input, without a shell. */

#include "flow/notify/notify-private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/limits.h"
#include "lib/linux/memory-file.h"

#define RUN_MS 10000

/* ---- whose it is ---- */

static bool is_ours(const struct stat *st)
{
    return st->st_uid == 0 || st->st_uid == geteuid();
}

/* Nobody else can put another one in its place: neither in its folder nor in one above. */
static int check_folders(const char *found, struct err *err)
{
    char folder[PATH_BYTES_MAX];
    struct stat st;
    char *slash;

    (void)snprintf(folder, sizeof folder, "%s", found);
    while ((slash = strrchr(folder, '/'))) {
        slash[slash == folder] = '\0';
        if (stat(folder, &st) < 0)
            return err_os(err, "looking at %s", folder);
        if (!is_ours(&st) || ((st.st_mode & (S_IWGRP | S_IWOTH)) && !(st.st_mode & S_ISVTX)))
            return err_set(err, ERR_FORBIDDEN,
                           "others can change what is in %.200s; keep %.200s where only root or "
                           "you can write",
                           folder, found);
        if (slash == folder)
            return 0;
    }
    return err_set(err, ERR_INVALID, "%.200s is not an absolute path", found);
}

int notify_check_program(const char *path, char *out, struct err *err)
{
    struct stat st;

    if (path[0] != '/' || strlen(path) >= PATH_BYTES_MAX || !str_is_utf8(str_of(path)))
        return err_set(err, ERR_INVALID,
                       "a command that is told is named by its whole path, like /usr/local/bin/x");
    if (!realpath(path, out) || stat(out, &st) < 0)
        return err_os(err, "looking for %.200s", path);
    if (!S_ISREG(st.st_mode) || access(out, X_OK) < 0)
        return err_set(err, ERR_INVALID, "%.200s is not a program that can be run", path);
    if (!is_ours(&st) || (st.st_mode & (S_IWGRP | S_IWOTH)))
        return err_set(err, ERR_FORBIDDEN,
                       "others can change %.200s; give it to root or to yourself, and take the "
                       "right to write from everybody else",
                       path);
    return check_folders(out, err);
}

/* ---- running it ---- */

/* exec never writes to its words; its prototype is older than const. */
static char *const *as_exec_wants(const char *const *words)
{
    return (char *const *)(uintptr_t)words;
}

static int spawn(const char *path, const char *const *argv, int body_fd, pid_t *out)
{
    static const char *const env[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    int error;

    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETSID);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setsigdefault(&attr, &all);
    (void)posix_spawn_file_actions_adddup2(&files, body_fd, 0);
    (void)posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    (void)posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    (void)posix_spawn_file_actions_addclosefrom_np(&files, 3);
    (void)posix_spawn_file_actions_addchdir_np(&files, "/");
    error = posix_spawn(out, path, &files, &attr, as_exec_wants(argv), as_exec_wants(env));
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attr);
    return error;
}

/* Its group goes with it. Until it is waited for, nobody else can have its number. */
static int wait_for(pid_t pid, struct err *err)
{
    AUTO_FD int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    int status = 0, got;

    do
        got = pidfd < 0 ? 0 : poll(&ended, 1, RUN_MS);
    while (got < 0 && errno == EINTR);
    (void)kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (got <= 0)
        return err_set(err, ERR_TIMEOUT, "it did not end within %d s and was killed",
                       RUN_MS / 1000);
    if (WIFSIGNALED(status))
        return err_set(err, ERR_UNAVAILABLE, "signal %d ended it", WTERMSIG(status));
    return WEXITSTATUS(status) == 0
               ? 0
               : err_set(err, ERR_UNAVAILABLE, "it ended with status %d", WEXITSTATUS(status));
}

int notify_run_program(const char *path, struct words args, struct str body, struct err *err)
{
    const char *argv[NOTIFY_ARGS_MAX + 2] = {path};
    char found[PATH_BYTES_MAX];
    AUTO_FD int fd = -1;
    pid_t pid = -1;

    if (args.n > NOTIFY_ARGS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d arguments", NOTIFY_ARGS_MAX);
    for (size_t i = 0; i < args.n; i++)
        argv[i + 1] = args.v[i];
    if (notify_check_program(path, found, err) < 0 ||
        memory_file_make("brig-notify", body, &fd, err) < 0)
        return -1;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_os(err, "turning back a memory file");
    errno = spawn(found, argv, fd, &pid);
    return errno ? err_os(err, "starting %.200s", path) : wait_for(pid, err);
}
