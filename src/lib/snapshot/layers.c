/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/snapshot/store-private.h"

#include "lib/base/limits.h"
#include "lib/linux/beside.h"
#include "lib/snapshot/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#define HIGH_FD 512 /* above every number it is born with */

struct born {
    int fds[LAYERS_FD_FIRST + SNAPSHOT_STACK_MAX]; /* index: the number it has there */
    size_t n;
};

/* Moves everything out of the way first: a source number may be a target number. */
static int lift(struct born *born, struct err *err)
{
    for (size_t i = 0; i < born->n; i++) {
        born->fds[i] = fcntl(born->fds[i], F_DUPFD_CLOEXEC, HIGH_FD);
        if (born->fds[i] < 0) {
            born->n = i;
            return err_os(err, "preparing the descriptors of layers");
        }
    }
    return 0;
}

static int start(const struct born *born, char *const *argv, pid_t *out, struct err *err)
{
    static char *const env[] = {NULL};
    char path[PATH_BYTES_MAX];
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    int error;

    if (program_beside("layers", path, sizeof path, err) < 0)
        return -1;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setsigdefault(&attr, &all);
    for (size_t i = 0; i < born->n; i++)
        (void)posix_spawn_file_actions_adddup2(&files, born->fds[i], (int)i);
    (void)posix_spawn_file_actions_addclosefrom_np(&files, (int)born->n);
    error = posix_spawn(out, path, &files, &attr, argv, env);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attr);
    errno = error;
    return error ? err_os(err, "starting %s", path) : 0;
}

static int hear(int fd, pid_t pid, struct tree_result *out, struct err *err)
{
    struct layers_answer answer = {0};
    size_t n = 0;

    while (n < sizeof answer) {
        ssize_t got = read(fd, (char *)&answer + n, sizeof answer - n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (n < sizeof answer)
        return err_set(err, ERR_UNAVAILABLE, "the program layers ended without an answer");
    answer.err.text[sizeof answer.err.text - 1] = '\0';
    if (answer.failed) {
        *err = answer.err;
        return -1;
    }
    *out = answer.result;
    return 0;
}

static int open_ends(int ends[2], int *null_fd, struct err *err)
{
    *null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (*null_fd < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return err_os(err, "making a pipe to layers");
    return 0;
}

int layers_run(const char *const *arguments, const int *fds, size_t fd_n, struct tree_result *out,
               struct err *err)
{
    char name[] = "layers";
    char *argv[SNAPSHOT_STACK_MAX + 3] = {name};
    AUTO_FD int null_fd = -1;
    struct born born = {.n = LAYERS_FD_OUT + fd_n};
    int ends[2] = {-1, -1};
    pid_t pid = -1;
    int failed;

    for (size_t i = 0; arguments[i]; i++)
        argv[i + 1] = (char *)(uintptr_t)arguments[i]; /* posix_spawn does not write there */
    if (open_ends(ends, &null_fd, err) < 0)
        return -1;
    born.fds[0] = null_fd;
    born.fds[1] = ends[1];
    born.fds[2] = null_fd;
    memcpy(born.fds + LAYERS_FD_OUT, fds, fd_n * sizeof *fds);
    failed = lift(&born, err);
    if (!failed)
        failed = start(&born, argv, &pid, err);
    for (size_t i = 0; i < born.n; i++)
        (void)close(born.fds[i]);
    (void)close(ends[1]);
    if (!failed)
        failed = hear(ends[0], pid, out, err);
    (void)close(ends[0]);
    return failed;
}
