/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/snapshot/store-private.h"

#include "lib/base/limits.h"
#include "lib/linux/beside.h"
#include "lib/snapshot/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>

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
    const char *argv[SNAPSHOT_STACK_MAX + 3] = {"layers"};
    int born[LAYERS_FD_FIRST + SNAPSHOT_STACK_MAX]; /* index: the number it has there */
    AUTO_FD int null_fd = -1;
    int ends[2] = {-1, -1};
    pid_t pid = -1;
    int failed;

    for (size_t i = 0; arguments[i]; i++)
        argv[i + 1] = arguments[i];
    if (open_ends(ends, &null_fd, err) < 0)
        return -1;
    born[0] = null_fd;
    born[1] = ends[1];
    born[2] = null_fd;
    memcpy(born + LAYERS_FD_OUT, fds, fd_n * sizeof *fds);
    failed = program_start(argv, NULL, born, LAYERS_FD_OUT + fd_n, &pid, err);
    (void)close(ends[1]);
    if (!failed)
        failed = hear(ends[0], pid, out, err);
    (void)close(ends[0]);
    return failed;
}
