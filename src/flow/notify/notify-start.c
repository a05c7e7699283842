/* SPDX-License-Identifier: Apache-2.0 */

/* The side of whoever has something to tell: a place among the senders, and a process to send it.
 * The place is a lock that the process is born with and that ends with it. */

#include "flow/notify/notify-private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/linux/beside.h"
#include "lib/linux/memory-file.h"

#define LEAVE_MS 5000 /* for the process to go on alone; it does so first of all */

static int take_place(const char *root_dir, struct arena *mem, int *out, struct err *err)
{
    for (int i = 0; i < NOTIFY_SENDERS_MAX; i++) {
        const char *path = arena_printf(mem, "%s/" NOTIFY_FOLDER "/sender-%d", root_dir, i);
        AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

        if (fd < 0)
            return err_os(err, "opening %s", path);
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            *out = TAKE_FD(fd);
            return 0;
        }
    }
    return err_set(err, ERR_LIMIT, "%d messages are being sent already", NOTIFY_SENDERS_MAX);
}

/* What was started has a child that sends, and ends at once itself. */
static void see_off(pid_t pid)
{
    AUTO_FD int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    int got;

    do
        got = pidfd < 0 ? 0 : poll(&ended, 1, LEAVE_MS);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static int start(const char *root_dir, struct arena *mem, const struct notify_event *event,
                 struct err *err)
{
    static const char *const argv[] = {"brig", "approvals", "notify", "send", NULL};
    const char *const env[] = {arena_printf(mem, "BRIG_HOME=%s", root_dir), NULL};
    AUTO_BUF struct buf body = BUF(NOTIFY_BODY_MAX);
    AUTO_FD int place = -1, message = -1, nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    pid_t pid = -1;

    if (nothing < 0)
        return err_os(err, "opening /dev/null");
    if (take_place(root_dir, mem, &place, err) < 0 || notify_event_text(event, &body, err) < 0 ||
        memory_file_make("brig-notify", buf_str(&body), &message, err) < 0)
        return -1;
    const int fds[] = {message, nothing, nothing, place};

    if (program_start(argv, env, fds, COUNT(fds), &pid, err) < 0)
        return -1;
    see_off(pid);
    return 0;
}

void notify_start(const char *root_dir, const struct notify_event *event)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    struct err err;

    if (access(arena_printf(&mem, "%s/" NOTIFY_FILE, root_dir), F_OK) < 0)
        return;
    if (start(root_dir, &mem, event, &err) < 0)
        notify_tally_dropped(root_dir, err.text);
}
