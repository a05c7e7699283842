/* SPDX-License-Identifier: Apache-2.0 */

/* What this machine can enforce, as "brig doctor --json" says it. Some of its looks try things in a
 * child process; that child is not ours to clone, with all our threads, so the program itself is
 * asked. */

#include "surface/api/call.h"
#include "surface/api/tables.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/limits.h"
#include "lib/linux/beside.h"

#define DOCTOR_MS 30000
#define DOCTOR_MAX (1 * MIB)

/* All it says, within its time. */
static int hear(int fd, struct buf *out, struct err *err)
{
    uint64_t ends_us = clock_us() + DOCTOR_MS * 1000ULL;
    char piece[4096];

    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        ssize_t n;

        if (clock_us() >= ends_us || poll(&wait, 1, clock_ms_until(ends_us)) == 0)
            return err_set(err, ERR_TIMEOUT, "looking at the machine took too long");
        n = read(fd, piece, sizeof piece);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return err_os(err, "hearing what was found");
        if (n > 0 && buf_add(out, piece, (size_t)n, err) < 0)
            return -1;
    }
}

static int ask_program(struct call *call, struct buf *out, struct err *err)
{
    const char *const argv[] = {"brig", "doctor", "--json", NULL};
    const char *const env[] = {
        arena_printf(&call->mem, "BRIG_HOME=%s", tenant_state_dir(call->tenant)),
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    AUTO_FD int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    AUTO_FD int from = -1;
    AUTO_FD int to = -1;
    int ends[2], failed, status = 0;
    pid_t pid = -1;

    if (null_fd < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return err_os(err, "making a pipe");
    from = ends[0];
    to = ends[1];
    if (program_start(argv, env, (int[]){null_fd, to, null_fd}, 3, &pid, err) < 0)
        return -1;
    (void)close(TAKE_FD(to));
    failed = hear(from, out, err);
    if (failed)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return failed;
}

static int doctor(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO_BUF struct buf text = BUF(DOCTOR_MAX);
    const struct json *answer = NULL;
    struct mark where;

    (void)body;
    (void)query;
    if (ask_program(call, &text, err) < 0)
        return -1;
    if (json_parse(&call->mem, buf_str(&text), &answer, &where, err) < 0)
        return err_set(err, ERR_INTERNAL, "\"brig doctor\" gave no answer");
    return call_answer(call, 200, answer, err);
}

/* clang-format off */
const struct route routes_machine[] = {
    {.method = HTTP_GET,
     .path = "/v1/doctor",
     .kind = ROUTE_RUN,
     .scope = SCOPE_ADMIN,
     .name = "doctor",
     .summary = "What this machine can enforce, and how to fix what it cannot.",
     .answer = "\"usable\", the findings, and what each provider offers.",
     .handle = doctor},
    {0},
};
/* clang-format on */
