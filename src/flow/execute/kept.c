/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/execute/kept.h"

#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/linux/fd-pass.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#define BACKLOG 64
#define TURN_WAIT_US 10000000U
#define TURN_PAUSE_MS 1
#define ANSWER_WAIT_S 5
#define ENDING_TRIES 100U
#define ENDING_PAUSE_MS 2

/* A socket's path has 108 bytes, a state directory may have more: go through its descriptor. */
static int socket_address(const char *dir, const char *name, int *dir_fd, struct sockaddr_un *out,
                          struct err *err)
{
    *dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (*dir_fd < 0)
        return err_os(err, "opening %s", dir);
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(out->sun_path, sizeof out->sun_path, "/proc/self/fd/%d/%s", *dir_fd, name);
    return 0;
}

int kept_listen(const char *dir, const char *name, int *out, struct err *err)
{
    AUTO_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    AUTO_FD int dir_fd = -1;
    struct sockaddr_un address;

    if (fd < 0)
        return err_os(err, "making a socket");
    if (socket_address(dir, name, &dir_fd, &address, err) < 0)
        return -1;
    if (bind(fd, (const struct sockaddr *)&address, sizeof address) < 0 || listen(fd, BACKLOG) < 0)
        return err_os(err, "listening at %s/%s", dir, name);
    *out = TAKE_FD(fd);
    return 0;
}

int kept_connect(const char *run_dir, const char *name, int *out, struct err *err)
{
    AUTO_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    AUTO_FD int dir_fd = -1;
    struct timeval patience = {.tv_sec = ANSWER_WAIT_S};
    struct sockaddr_un address;

    if (fd < 0)
        return err_os(err, "making a socket");
    if (socket_address(run_dir, name, &dir_fd, &address, err) < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0 ||
        connect(fd, (const struct sockaddr *)&address, sizeof address) < 0)
        return err_os(err, "connecting to the sandbox");
    *out = TAKE_FD(fd);
    return 0;
}

int kept_write_config(const struct run *run, const struct local *local, struct err *err)
{
    char path[RUN_DIR_BYTES + 16];
    char temporary[RUN_DIR_BYTES + 16];
    AUTO_FD int fd = -1;

    (void)snprintf(path, sizeof path, "%s/config", local->run_dir);
    (void)snprintf(temporary, sizeof temporary, "%s/config.new", local->run_dir);
    fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_os(err, "creating %s", temporary);
    if (write_all(fd, run->action.config, strlen(run->action.config), err) < 0)
        return err_in(err, "%s", temporary);
    return rename(temporary, path) < 0 ? err_os(err, "renaming %s", temporary) : 0;
}

int kept_prepare(const struct run *run, struct local *local, struct err *err)
{
    char turn[RUN_DIR_BYTES + 16];
    AUTO_FD int turn_fd = -1;

    /* One for the pool gets its config from whoever takes it. */
    if (run->action.kind == ACTION_CREATE && kept_write_config(run, local, err) < 0)
        return -1;
    (void)snprintf(turn, sizeof turn, "%s/turn", local->run_dir);
    turn_fd = open(turn, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (turn_fd < 0)
        return err_os(err, "creating %s", turn);
    if (kept_listen(local->run_dir, "execs", &local->execs_fd, err) < 0)
        return -1;
    return kept_listen(local->run_dir, "control", &local->control_fd, err);
}

bool kept_is_id(const char *id)
{
    return strlen(id) == ID_BYTES - 1 &&
           strspn(id, "abcdefghijklmnopqrstuvwxyz234567") == ID_BYTES - 1;
}

/* Whether a lock is held: only then there is a sandbox behind it. */
static bool is_held(const char *lock_path)
{
    AUTO_FD int fd = open(lock_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;
}

void kept_dir(const struct execute *execute, const char *id, char out[RUN_DIR_BYTES])
{
    (void)snprintf(out, RUN_DIR_BYTES, "%.2000s/boxes/%s", execute->state_dir, id);
}

bool kept_box_is_held(const struct execute *execute, const char *id)
{
    char run_dir[RUN_DIR_BYTES];
    char lock[RUN_DIR_BYTES + 16];

    kept_dir(execute, id, run_dir);
    (void)snprintf(lock, sizeof lock, "%s.lock", run_dir);
    return is_held(lock);
}

bool kept_is_paused(const char *run_dir)
{
    char path[RUN_DIR_BYTES + 16];

    (void)snprintf(path, sizeof path, "%s/" PAUSED_MARK, run_dir);
    return access(path, F_OK) == 0;
}

bool kept_is_held(const struct execute *execute, const char *id)
{
    char run_dir[RUN_DIR_BYTES];
    struct err ignored;

    return kept_open(execute, id, run_dir, &ignored) == 0;
}

int kept_open(const struct execute *execute, const char *id, char run_dir[RUN_DIR_BYTES],
              struct err *err)
{
    char config[RUN_DIR_BYTES + 16];

    if (!kept_is_id(id))
        return err_set(err, ERR_NOT_FOUND, "there is no sandbox \"%.40s\"", id);
    kept_dir(execute, id, run_dir);
    (void)snprintf(config, sizeof config, "%s/config", run_dir);
    if (!kept_box_is_held(execute, id) || access(config, F_OK) < 0)
        return err_set(err, ERR_NOT_FOUND, "there is no sandbox %s; it has ended or never was", id);
    return 0;
}

/* No answer from one that has ended since we found it is no failure of its. Whoever clears up
 * behind it holds its lock for a moment. */
static int no_answer(const char *run_dir, struct err *err)
{
    bool silent = errno == EAGAIN || errno == EWOULDBLOCK;
    char lock[RUN_DIR_BYTES + 16];

    (void)snprintf(lock, sizeof lock, "%s.lock", run_dir);
    for (unsigned tries = silent ? 1 : ENDING_TRIES; tries > 0; tries--) {
        if (!is_held(lock))
            return err_set(err, ERR_NOT_FOUND, "there is no sandbox %s; it has just ended",
                           strrchr(run_dir, '/') + 1);
        (void)poll(NULL, 0, ENDING_PAUSE_MS);
    }
    return err_set(err, ERR_UNAVAILABLE, "the sandbox does not answer");
}

int kept_ask(const char *run_dir, const struct box_message *order, struct box_message *answer,
             int *fds, size_t fd_n, int *out_fd, struct err *err)
{
    AUTO_FD int fd = -1;
    struct timeval patience = {.tv_sec = ANSWER_WAIT_S};
    struct err lost;

    if (kept_connect(run_dir, "control", &fd, err) < 0)
        return no_answer(run_dir, err);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
        send(fd, order, sizeof *order, MSG_NOSIGNAL) != (ssize_t)sizeof *order)
        return no_answer(run_dir, err);
    errno = 0; /* the end of the connection is none */
    if (fds_receive(fd, answer, sizeof *answer, fds, fd_n, &lost) != (int)sizeof *answer)
        return no_answer(run_dir, err);
    if (answer->kind == BOX_FAILED) {
        *err = answer->err;
        err->text[sizeof err->text - 1] = '\0';
        return -1;
    }
    *out_fd = TAKE_FD(fd);
    return 0;
}

int kept_order(const char *run_dir, const struct box_message *order, struct box_message *answer,
               struct err *err)
{
    AUTO_FD int fd = -1;

    return kept_ask(run_dir, order, answer, NULL, 0, &fd, err);
}

/* ---- turns ---- */

void execute_turn_end(struct execute *execute)
{
    if (execute->turn_fd >= 0)
        (void)close(TAKE_FD(execute->turn_fd));
}

int execute_turn(struct execute *execute, const char *id, bool alone, struct err *err)
{
    uint64_t deadline_us = clock_us() + TURN_WAIT_US;
    char run_dir[RUN_DIR_BYTES];
    char path[RUN_DIR_BYTES + 16];
    AUTO_FD int fd = -1;

    execute_turn_end(execute);
    if (kept_open(execute, id, run_dir, err) < 0)
        return -1;
    (void)snprintf(path, sizeof path, "%s/turn", run_dir);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return err_set(err, ERR_NOT_FOUND, "there is no sandbox %s; it has just ended", id);
    while (flock(fd, (alone ? LOCK_EX : LOCK_SH) | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_os(err, "locking %s", path);
        if (clock_us() >= deadline_us)
            return err_set(err, ERR_TIMEOUT,
                           alone ? "a command begins in sandbox %s, or waits there for a person; "
                                   "try again"
                                 : "sandbox %s is being snapshotted; try again",
                           id);
        (void)poll(NULL, 0, TURN_PAUSE_MS);
    }
    execute->turn_fd = TAKE_FD(fd);
    return 0;
}

/* ---- for those who list ---- */

int execute_kept_config(struct execute *execute, struct arena *mem, const char *id,
                        const char **out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(KEPT_CONFIG_MAX);
    char run_dir[RUN_DIR_BYTES];
    char path[RUN_DIR_BYTES + 16];

    if (kept_open(execute, id, run_dir, err) < 0)
        return -1;
    (void)snprintf(path, sizeof path, "%s/config", run_dir);
    if (file_read(AT_FDCWD, path, &text, err) < 0)
        return -1;
    *out = arena_text(mem, buf_str(&text));
    return 0;
}

static int ask_state(const char *run_dir, struct kept_state *out, struct err *err)
{
    struct box_message order = {.kind = BOX_STATUS};
    struct box_message answer;

    if (kept_order(run_dir, &order, &answer, err) < 0)
        return -1;
    *out = (struct kept_state){
        .pid = answer.pid,
        .paused = answer.status == 1,
        .creating = answer.status == 2,
        .left_ms = answer.value,
        .processes = answer.processes,
        .cpu_us = answer.cpu_us,
        .memory_bytes = answer.memory_bytes,
        .peak_memory_bytes = answer.peak_memory_bytes,
        .disk_bytes = answer.disk_bytes,
        .read_bytes = answer.read_bytes,
        .written_bytes = answer.written_bytes,
    };
    return 0;
}

const char *kept_state_name(const struct kept_state *state)
{
    return state->creating ? "creating" : state->paused ? "paused" : "running";
}

int execute_kept_state(struct execute *execute, const char *id, struct kept_state *out,
                       struct err *err)
{
    char run_dir[RUN_DIR_BYTES];

    return kept_open(execute, id, run_dir, err) < 0 ? -1 : ask_state(run_dir, out, err);
}

int execute_pool_state(struct execute *execute, const char *id, struct kept_state *out,
                       struct err *err)
{
    char run_dir[RUN_DIR_BYTES];

    kept_dir(execute, id, run_dir);
    return ask_state(run_dir, out, err);
}

bool execute_kept_has(struct execute *execute, const char *id)
{
    char run_dir[RUN_DIR_BYTES];
    struct err ignored; /* there is none */

    return kept_open(execute, id, run_dir, &ignored) == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

int execute_kept_each(struct execute *execute,
                      int (*on_sandbox)(void *context, const char *id, struct err *err),
                      void *context, struct err *err)
{
    char boxes[RUN_DIR_BYTES];
    struct dirent **entries = NULL;
    int failed = 0;
    int n;

    (void)snprintf(boxes, sizeof boxes, "%.2000s/boxes", execute->state_dir);
    n = scandir(boxes, &entries, NULL, by_name);
    if (n < 0)
        return errno == ENOENT ? 0 : err_os(err, "opening %s", boxes);
    for (int i = 0; i < n; i++) {
        char run_dir[RUN_DIR_BYTES];
        struct err ignored; /* a lock file, or a sandbox that has ended just now */

        if (!failed && kept_open(execute, entries[i]->d_name, run_dir, &ignored) == 0)
            failed = on_sandbox(context, entries[i]->d_name, err);
        free(entries[i]);
    }
    free(entries);
    return failed;
}
