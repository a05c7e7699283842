/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/beside.h"

#include "lib/base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int program_beside(const char *name, char *out, size_t size, struct err *err)
{
    /* Beside us; installed, bin/brig and libexec/brig/NAME; built, cmd/cli/brig and cmd/NAME/NAME.
     */
    static const struct {
        const char *folder;
        bool named; /* in a folder named like the program */
    } places[] = {
        {"",                 false},
        {"../libexec/brig/", false},
        {"../",              true },
        {"../../bin/",       false}, /* from libexec to the program people call, */
        {"../cli/",          false}, /* also where it was built */
    };
    char self[PATH_BYTES_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;

    if (n <= 0)
        return err_os(err, "finding our own program");
    self[n] = '\0';
    slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; i < COUNT(places); i++) {
        struct stat st;

        (void)snprintf(out, size, "%s/%s%s%s%s", self, places[i].folder,
                       places[i].named ? name : "", places[i].named ? "/" : "", name);
        if (stat(out, &st) < 0 || !S_ISREG(st.st_mode) || access(out, X_OK) < 0)
            continue;
        if ((st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & S_IWOTH))
            return err_set(err, ERR_FORBIDDEN,
                           "%s can be changed by others; give it to root or to yourself", out);
        return 0;
    }
    return err_set(err, ERR_UNAVAILABLE, "the program \"%s\" is not beside %s; reinstall Brig",
                   name, self);
}

/* exec never writes to its words; its prototype is older than const. */
static char *const *as_exec_wants(const char *const *words)
{
    static const char *const none[] = {NULL};

    return (char *const *)(uintptr_t)(words ? words : none);
}

static int spawn(const char *path, const char *const *argv, const char *const *env, const int *fds,
                 size_t n, pid_t *out)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    pid_t pid = -1;
    int error;

    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setsigdefault(&attr, &all);
    for (size_t i = 0; i < n; i++)
        (void)posix_spawn_file_actions_adddup2(&files, fds[i], (int)i);
    (void)posix_spawn_file_actions_addclosefrom_np(&files, (int)n);
    error = posix_spawn(&pid, path, &files, &attr, as_exec_wants(argv), as_exec_wants(env));
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attr);
    *out = error ? -1 : pid;
    return error;
}

int program_start(const char *const *argv, const char *const *env, const int *fds, size_t n,
                  pid_t *out, struct err *err)
{
    int lifted[PROGRAM_FDS_MAX];
    char path[PATH_BYTES_MAX];
    size_t lifted_n = 0;
    int error = 0;

    if (n > PROGRAM_FDS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d descriptors for \"%s\"", PROGRAM_FDS_MAX,
                       argv[0]);
    if (program_beside(argv[0], path, sizeof path, err) < 0)
        return -1;
    /* Out of the way first: a number here may be one that is wanted there. */
    while (lifted_n < n && !error) {
        lifted[lifted_n] = fcntl(fds[lifted_n], F_DUPFD_CLOEXEC, (int)n);
        error = lifted[lifted_n] < 0 ? errno : 0;
        lifted_n += !error;
    }
    if (!error)
        error = spawn(path, argv, env, lifted, n, out);
    while (lifted_n)
        (void)close(lifted[--lifted_n]);
    errno = error;
    return error ? err_os(err, "starting %s", path) : 0;
}
