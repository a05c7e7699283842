/* SPDX-License-Identifier: Apache-2.0 */

/* Commands that run without their caller (exec-wire.h): started, found again, read, joined. */

#include "flow/execute/exec-wire.h"
#include "flow/execute/kept.h"
#include "flow/execute/orders.h"

#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/crypto/crypto.h"
#include "lib/linux/fd-pass.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define START_WAIT_US 5000000U
#define ATTACH_WAIT_MS 5000
#define DETACHED_MAX 64U /* of one sandbox, with what is kept of them */

/* ---- started ---- */

static int count_detached(void *context, const struct kept_exec *exec, struct err *err)
{
    unsigned *n = context;

    (void)err;
    *n += exec->detached;
    return 0;
}

int detached_prepare(struct run *run, struct local *local, struct err *err)
{
    struct execute execute = {.state_dir = local->state_dir};
    char path[RUN_DIR_BYTES + 16];
    unsigned n = 0;

    if (execute_exec_each(&execute, run->action.sandbox, count_detached, &n, err) < 0)
        return -1;
    if (n > DETACHED_MAX) /* ours is one of them */
        return err_set(err, ERR_LIMIT, "the sandbox has %u detached commands; that is the most",
                       DETACHED_MAX);
    if (mkdir(local->exec_dir, 0700) < 0)
        return err_os(err, "creating %s", local->exec_dir);
    local->cleared = false;
    (void)snprintf(path, sizeof path, "%s/log", local->exec_dir);
    local->passed_fds[1] = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (local->passed_fds[1] < 0 || ftruncate(local->passed_fds[1], EXEC_LOG_BYTES) < 0)
        return err_os(err, "creating %s", path);
    return kept_listen(local->exec_dir, "attach", &local->passed_fds[0], err);
}

static void give_up(struct local *local)
{
    struct err ignored; /* what stays is found by the next sweep */

    local->cleared = dir_remove(AT_FDCWD, local->exec_dir, &ignored) == 0;
}

static int wait_for_start(struct run *run, struct local *local, struct err *err)
{
    uint64_t deadline_us = clock_us() + START_WAIT_US;
    struct box_message message;
    bool from_inside = false;

    if (box_wait(local, deadline_us, &message, &from_inside, err) < 0)
        return -1;
    switch (message.kind) {
    case BOX_STARTED:
        run->outcome.started = run->outcome.detached = true;
        return 0;
    case BOX_NOT_STARTED:
        outcome_not_started(run, message.err.os);
        return 0;
    default:
        *err = message.err;
        err->text[sizeof err->text - 1] = '\0';
        return err_in(err, "starting the command");
    }
}

int detached_release(struct run *run, struct local *local, struct err *err)
{
    struct box_message order = {.kind = BOX_EXEC};
    struct handed none = {.n = 0};
    AUTO_FD int plan_fd = -1;
    int failed = box_plan_seal(run, local, &none, &plan_fd, err);

    if (!failed)
        failed = fds_send(
            local->inside_fd, &order, sizeof order,
            (int[]){plan_fd, local->passed_fds[0], local->passed_fds[1], local->lock_fd}, 4, err);
    if (!failed)
        failed = wait_for_start(run, local, err);
    if (!run->outcome.detached)
        give_up(local);
    return failed;
}

/* ---- found again ---- */

bool detached_lock(int lock_fd, char sandbox[ID_BYTES], bool *recorded)
{
    static const char word[] = "detached ";
    char text[128];
    ssize_t n = pread(lock_fd, text, sizeof text - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    if (strncmp(text, word, sizeof word - 1) != 0 ||
        strcspn(text + sizeof word - 1, "\n") != ID_BYTES - 1)
        return false;
    memcpy(sandbox, text + sizeof word - 1, ID_BYTES - 1);
    sandbox[ID_BYTES - 1] = '\0';
    *recorded = strstr(text, "\nrecorded\n") != NULL;
    return true;
}

static bool read_header(int log_fd, struct exec_log *out)
{
    return pread(log_fd, out, sizeof *out, 0) == (ssize_t)sizeof *out &&
           out->magic == EXEC_LOG_MAGIC && out->version == EXEC_LOG_VERSION;
}

static void take_stream(int log_fd, const struct exec_log *log, unsigned which,
                        struct stream_result *out)
{
    AUTO_FREE char *ring = xmalloc(EXEC_RING_BYTES);
    off_t at = (off_t)(EXEC_RINGS_AT + which * EXEC_RING_BYTES);

    out->bytes = log->total[which];
    out->truncated = log->total[which] > EXEC_RING_BYTES;
    /* Only of what is whole a hash says something. */
    if (!out->truncated && pread(log_fd, ring, out->bytes, at) == (ssize_t)out->bytes)
        hash_text_of((struct str){ring, out->bytes}, out->hash);
}

bool detached_outcome(int runs_fd, const char *id, struct outcome *out)
{
    char path[64];
    struct exec_log log;
    AUTO_FD int fd = -1;

    (void)snprintf(path, sizeof path, "%.20s/log", id);
    fd = openat(runs_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || !read_header(fd, &log) || !log.ended)
        return false;
    *out = (struct outcome){
        .started = true,
        .reason = log.reason < REASON_COUNT ? (enum reason)log.reason : REASON_NONE,
        .timed_out = log.reason == REASON_LIMIT_TIME,
        .cpu_us = log.cpu_us,
        .peak_memory_bytes = log.peak_memory_bytes,
        .read_bytes = log.read_bytes,
        .written_bytes = log.written_bytes,
        .duration_us = log.duration_us,
        .stdin_bytes = log.stdin_bytes,
    };
    outcome_exited(out, log.status);
    take_stream(fd, &log, 0, &out->out);
    take_stream(fd, &log, 1, &out->err);
    return true;
}

void detached_taken(int runs_fd, const char *id, enum reason reason, struct outcome *out)
{
    char path[64];
    struct exec_log log;
    AUTO_FD int fd = -1;

    *out = (struct outcome){.started = true, .ended = true, .reason = reason, .signal = SIGKILL};
    out->oom_killed = reason == REASON_LIMIT_MEMORY;
    (void)snprintf(path, sizeof path, "%.20s/log", id);
    fd = openat(runs_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || !read_header(fd, &log))
        return;
    out->stdin_bytes = log.stdin_bytes;
    take_stream(fd, &log, 0, &out->out);
    take_stream(fd, &log, 1, &out->err);
}

/* ---- for those who list ---- */

/* Its lock: which sandbox it belongs to, since when, and whether it runs. */
static bool look_at_lock(int runs_fd, const char *id, char sandbox[ID_BYTES], struct kept_exec *out)
{
    char name[64];
    char text[128];
    char word[16];
    struct stat st;
    AUTO_FD int fd = -1;
    ssize_t n;

    (void)snprintf(name, sizeof name, "%.20s.lock", id);
    fd = openat(runs_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0)
        return false;
    n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    if (sscanf(text, "%15s %20s", word, sandbox) != 2 ||
        (strcmp(word, "exec") != 0 && strcmp(word, "detached") != 0))
        return false;
    out->detached = strcmp(word, "detached") == 0;
    out->began_at = st.st_mtime;
    out->running = flock(fd, LOCK_SH | LOCK_NB) < 0;
    return true;
}

static void look_at_log(int runs_fd, const char *id, struct kept_exec *out)
{
    char path[64];
    struct exec_log log;
    struct stat st;
    AUTO_FD int fd = -1;

    (void)snprintf(path, sizeof path, "%.20s/attach", id);
    if (fstatat(runs_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
        out->began_at = st.st_mtime; /* the lock is written to once more at the end */
    (void)snprintf(path, sizeof path, "%.20s/log", id);
    fd = openat(runs_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || !read_header(fd, &log))
        return;
    out->tty = log.tty == 1;
    out->ended = log.ended == 1;
    out->status = log.status;
    out->reason = log.reason < REASON_COUNT ? (enum reason)log.reason : REASON_NONE;
    out->duration_us = log.duration_us;
    memcpy(out->bytes, log.total, sizeof out->bytes);
}

static bool look(int runs_fd, const char *id, char sandbox[ID_BYTES], struct kept_exec *out)
{
    *out = (struct kept_exec){.id = id};
    if (!look_at_lock(runs_fd, id, sandbox, out))
        return false;
    if (out->detached)
        look_at_log(runs_fd, id, out);
    return true;
}

int execute_exec_each(struct execute *execute, const char *sandbox,
                      int (*on_exec)(void *context, const struct kept_exec *exec, struct err *err),
                      void *context, struct err *err)
{
    char runs[RUN_DIR_BYTES];
    DIR *dir;
    const struct dirent *entry;
    int failed = 0;

    (void)snprintf(runs, sizeof runs, "%.2000s/runs", execute->state_dir);
    dir = opendir(runs);
    if (!dir)
        return errno == ENOENT ? 0 : err_os(err, "opening %s", runs);
    while (!failed && (entry = readdir(dir)) != NULL) {
        char id[ID_BYTES], owner[ID_BYTES];
        struct kept_exec exec;

        if (strlen(entry->d_name) != ID_BYTES - 1 + strlen(".lock"))
            continue;
        memcpy(id, entry->d_name, ID_BYTES - 1);
        id[ID_BYTES - 1] = '\0';
        if (look(dirfd(dir), id, owner, &exec) && strcmp(owner, sandbox) == 0 &&
            (exec.running || exec.detached))
            failed = on_exec(context, &exec, err);
    }
    (void)closedir(dir);
    return failed;
}

static int open_runs(const struct execute *execute, const char *id, int *out, struct err *err)
{
    char runs[RUN_DIR_BYTES];

    (void)snprintf(runs, sizeof runs, "%.2000s/runs", execute->state_dir);
    *out = open(runs, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (*out < 0 || strlen(id) != ID_BYTES - 1 || strchr(id, '/'))
        return err_set(err, ERR_NOT_FOUND, "there is no command \"%.40s\"", id);
    return 0;
}

int execute_exec_look(struct execute *execute, const char *id, struct kept_exec *out,
                      struct err *err)
{
    AUTO_FD int runs_fd = -1;
    char sandbox[ID_BYTES];

    if (open_runs(execute, id, &runs_fd, err) < 0)
        return -1;
    if (!look(runs_fd, id, sandbox, out))
        return err_set(err, ERR_NOT_FOUND, "there is no command %s", id);
    return 0;
}

int execute_exec_read(struct execute *execute, const char *id, unsigned stream, uint64_t *from,
                      struct buf *out, uint64_t *next, struct err *err)
{
    AUTO_FD int runs_fd = -1;
    AUTO_FD int fd = -1;
    struct exec_log log;
    char path[64];

    if (open_runs(execute, id, &runs_fd, err) < 0)
        return -1;
    (void)snprintf(path, sizeof path, "%.20s/log", id);
    fd = openat(runs_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || !read_header(fd, &log))
        return err_set(err, ERR_NOT_FOUND, "nothing is kept of the output of %s", id);
    if (log.total[stream] > EXEC_RING_BYTES && *from < log.total[stream] - EXEC_RING_BYTES)
        *from = log.total[stream] - EXEC_RING_BYTES;
    for (uint64_t at = *from; at < log.total[stream];) {
        char bytes[4096];
        size_t in_ring = at % EXEC_RING_BYTES;
        size_t n = EXEC_RING_BYTES - in_ring;
        ssize_t got;

        n = n < sizeof bytes ? n : sizeof bytes;
        n = n < log.total[stream] - at ? n : (size_t)(log.total[stream] - at);
        got = pread(fd, bytes, n, (off_t)(EXEC_RINGS_AT + stream * EXEC_RING_BYTES + in_ring));
        if (got <= 0)
            return err_os(err, "reading the output of %s", id);
        if (buf_add(out, bytes, (size_t)got, err) < 0)
            return -1;
        at += (uint64_t)got;
    }
    *next = log.total[stream] > *from ? log.total[stream] : *from;
    return 0;
}

/* ---- joined ---- */

/* What came before us; the rest comes through the streams. */
static int show_tail(struct execute *execute, const char *id, unsigned stream, uint64_t until,
                     int to, struct err *err)
{
    AUTO_BUF struct buf tail = BUF(2 * EXEC_RING_BYTES);
    uint64_t from = 0, next = 0;

    if (execute_exec_read(execute, id, stream, &from, &tail, &next, err) < 0)
        return -1;
    if (to < 0 || from >= until || tail.n == 0)
        return 0;
    return write_all(to, tail.p, next > until ? (size_t)(until - from) : tail.n, err);
}

static int send_streams(int fd, int ours[3], struct box_message *answer, struct err *err)
{
    struct box_message order = {.kind = BOX_ATTACH};
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    int theirs[3] = {-1, -1, -1};
    int failed = 0;

    for (int i = 0; !failed && i < 3; i++) {
        int ends[2];

        if (pipe2(ends, O_CLOEXEC) < 0) {
            failed = err_os(err, "making streams");
        } else {
            theirs[i] = ends[i != 0];
            ours[i] = ends[i == 0];
        }
    }
    if (!failed)
        failed = fds_send(fd, &order, sizeof order, theirs, 3, err);
    for (int i = 0; i < 3; i++)
        if (theirs[i] >= 0)
            (void)close(theirs[i]);
    if (failed)
        return -1;
    if (poll(&polled, 1, ATTACH_WAIT_MS) != 1 ||
        recv(fd, answer, sizeof *answer, 0) != (ssize_t)sizeof *answer)
        return err_set(err, ERR_UNAVAILABLE, "the command does not answer");
    if (answer->kind == BOX_STARTED)
        return 0;
    *err = answer->err;
    err->text[sizeof err->text - 1] = '\0';
    return -1;
}

int execute_exec_attach(struct execute *execute, const char *id, const struct streams *streams,
                        struct kept_exec *out, struct err *err)
{
    char dir[RUN_DIR_BYTES];
    AUTO_FD int fd = -1;
    AUTO_FD int signals_fd = -1;
    int ours[3] = {-1, -1, -1};
    struct box_message answer = {0};
    struct box_message end = {0};

    if (execute_exec_look(execute, id, out, err) < 0)
        return -1;
    if (!out->detached || !out->running)
        return err_set(err, ERR_CONFLICT, "%s %s", id,
                       out->detached ? "has ended; \"logs\" shows what it wrote"
                                     : "has its own caller; only a detached command can be joined");
    (void)snprintf(dir, sizeof dir, "%.2000s/runs/%s", execute->state_dir, id);
    if (kept_connect(dir, "attach", &fd, err) < 0 || orders_open(execute, &signals_fd, err) < 0 ||
        send_streams(fd, ours, &answer, err) < 0)
        return err_in(err, "joining %s", id);
    if (show_tail(execute, id, 0, answer.value, streams->out_fd, err) < 0 ||
        show_tail(execute, id, 1, answer.processes, streams->err_fd, err) < 0 ||
        relay_attached(fd, ours, streams, signals_fd, out->tty, &end, err) < 0)
        return -1;
    out->ended = end.kind == BOX_EXITED;
    out->running = !out->ended;
    out->status = end.status;
    out->reason = (enum reason)(end.reason < REASON_COUNT ? end.reason : REASON_NONE);
    return 0;
}
