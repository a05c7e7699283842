/* SPDX-License-Identifier: Apache-2.0 */

/* Taking one out of the pool: its outer process says whose it is, its PID 1 says what it is. */

#include "flow/execute/pool.h"

#include "flow/execute/kept.h"
#include "lib/base/crash.h"
#include "lib/base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define ANSWER_WAIT_S 5
#define SETTLE_WAIT_US 5000000U
#define GONE_WAIT_US 5000000U
#define CHOICES_MAX 64

/* A connection that owns it from the answer on. */
static int ask_for(const char *run_dir, int *out, struct box_message *answer)
{
    struct box_message order = {.kind = BOX_TAKE};
    struct timeval patience = {.tv_sec = ANSWER_WAIT_S};
    AUTO_FD int fd = -1;
    struct err ignored; /* then there is another one, or none */

    if (kept_connect(run_dir, "control", &fd, &ignored) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
        send(fd, &order, sizeof order, MSG_NOSIGNAL) != (ssize_t)sizeof order ||
        recv(fd, answer, sizeof *answer, 0) != (ssize_t)sizeof *answer ||
        answer->kind != BOX_STATUS)
        return -1;
    *out = TAKE_FD(fd);
    return 0;
}

static bool take_one(const struct execute *execute, int dir_fd, const char *id, struct run *run,
                     struct local *local)
{
    struct box_message answer;

    kept_dir(execute, id, local->run_dir);
    if (ask_for(local->run_dir, &local->supervisor_fd, &answer) < 0) {
        if (!kept_box_is_held(execute, id))
            (void)unlinkat(dir_fd, id, 0);
        return false;
    }
    CRASH_POINT("pool-taken");
    (void)unlinkat(dir_fd, id, 0);
    CRASH_POINT("pool-unlisted");
    (void)strcpy(run->sandbox_id, id);
    local->inside = answer.pid;
    local->taken = true;
    return true;
}

/* Many may choose at the same time: each begins elsewhere. */
static size_t list_choices(DIR *dir, char choices[CHOICES_MAX][ID_BYTES])
{
    const struct dirent *entry;
    size_t n = 0;

    while (n < CHOICES_MAX && (entry = readdir(dir)) != NULL)
        if (kept_is_id(entry->d_name))
            (void)strcpy(choices[n++], entry->d_name);
    return n;
}

int pool_take(struct execute *execute, struct run *run, struct local *local)
{
    char choices[CHOICES_MAX][ID_BYTES];
    char path[RUN_DIR_BYTES];
    char key[POOL_KEY_BYTES];
    bool found = false;
    size_t n, first;
    DIR *dir;

    (void)snprintf(path, sizeof path, "%.2000s/pool", execute->state_dir);
    if (!pool_fits(run) || access(path, F_OK) < 0)
        return 0; /* most have none: spare them the key */
    pool_key(run, key);
    (void)snprintf(path, sizeof path, "%.2000s/pool/%s", execute->state_dir, key);
    dir = opendir(path);
    if (!dir)
        return 0;
    execute->wants_refill = true;
    n = list_choices(dir, choices);
    first = n ? (size_t)(clock_us() % n) : 0;
    for (size_t i = 0; i < n && !found; i++)
        found = take_one(execute, dirfd(dir), choices[(first + i) % n], run, local);
    (void)closedir(dir);
    return found;
}

int pool_settle(struct run *run, struct local *local, struct err *err)
{
    const struct lifetime *life = &run->action.lifetime;
    struct box_message settle = {.kind = BOX_SETTLE,
                                 .value = life->ttl_ms,
                                 .idle_ms = life->idle_ms,
                                 .max_ms = life->max_ms};
    uint64_t deadline_us = clock_us() + SETTLE_WAIT_US;
    struct box_message answer = {0};
    bool from_inside = false;

    (void)close(TAKE_FD(local->inside_fd)); /* whoever reported is not to be seen in it */
    if (kept_write_config(run, local, err) < 0)
        return -1;
    CRASH_POINT("pool-configured");
    if (send(local->supervisor_fd, &settle, sizeof settle, MSG_NOSIGNAL) != (ssize_t)sizeof settle)
        return err_os(err, "settling the sandbox");
    while (answer.kind != BOX_STATUS)
        if (box_wait(local, deadline_us, &answer, &from_inside, err) < 0)
            return -1;
    CRASH_POINT("pool-settled");
    local->stays = true;
    run->outcome.started = run->outcome.ended = true;
    return 0;
}

void pool_untake(struct local *local)
{
    struct timeval patience = {.tv_sec = GONE_WAIT_US / 1000000U};
    struct box_message message = {0};

    if (local->supervisor_fd < 0)
        return;
    /* One that does not end in time has lost its owner all the same, and is swept when it is
     * over. */
    (void)setsockopt(local->supervisor_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (!local->gone && box_say(local->supervisor_fd, BOX_KILL, 0) == 0)
        while (message.kind != BOX_GONE &&
               recv(local->supervisor_fd, &message, sizeof message, 0) == (ssize_t)sizeof message)
            continue;
    (void)close(TAKE_FD(local->supervisor_fd));
}
