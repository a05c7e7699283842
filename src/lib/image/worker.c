/* SPDX-License-Identifier: Apache-2.0 */

/* Starts the program `image` for one request and hears it out. What it says is bounded and
 * checked: it has read strangers' bytes. */

#include "lib/image/store-private.h"

#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/image/wire.h"
#include "lib/linux/beside.h"
#include "lib/linux/fd-pass.h"
#include "lib/linux/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define GRACE_US 5000000U /* it ends itself at its deadline; after this we do it */
#define WORKER_ENV_MAX 8
#define WORKER_FDS_MAX (IMAGE_FD_TREES + IMAGE_TREES_MAX)

struct worker {
    pid_t pid;
    int events_fd;
    const struct worker_hands *hands;
    const struct image_progress *progress;
};

/* ---- starting ---- */

static int seal_request(struct json *request, int *out_fd, struct err *err)
{
    AUTO_BUF struct buf text = BUF(IMAGE_REQUEST_MAX);
    AUTO_FD int fd = memfd_create("image-request", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return err_os(err, "making room for a request");
    if (json_compact(request, &text, err) < 0 || write_all(fd, text.p, text.n, err) < 0)
        return err_in(err, "request to the program \"image\"");
    if (lseek(fd, 0, SEEK_SET) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        return err_os(err, "sealing a request");
    *out_fd = TAKE_FD(fd);
    return 0;
}

/* Only what the way to a registry depends on. */
static void worker_environment(const char *env[WORKER_ENV_MAX], char *space, size_t size)
{
    static const char *const names[] = {
        "https_proxy",   "HTTPS_PROXY", "no_proxy", "NO_PROXY",
#ifdef BRIG_CRASH_POINTS
        "BRIG_CRASH_AT",
#endif
    };
    size_t n = 0, used = 0;

    for (size_t i = 0; i < COUNT(names); i++) {
        const char *value = getenv(names[i]);
        size_t need = value ? strlen(names[i]) + strlen(value) + 2 : 0;

        if (!value || used + need > size)
            continue;
        env[n++] = space + used;
        used += (size_t)snprintf(space + used, need, "%s=%s", names[i], value) + 1;
    }
    env[n] = NULL;
}

static int worker_start(const struct image_store *store, struct json *request,
                        struct worker *worker, struct err *err)
{
    AUTO_FD int request_fd = -1;
    AUTO_FD int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    AUTO_FD int ours = -1;
    AUTO_FD int theirs = -1;
    const struct worker_hands *hands = worker->hands;
    const char *argv[] = {"image", NULL}, *env[WORKER_ENV_MAX];
    char space[4096];
    int pair[2], fds[WORKER_FDS_MAX];

    if (null_fd < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_os(err, "preparing the program \"image\"");
    ours = pair[0];
    theirs = pair[1];
    if (seal_request(request, &request_fd, err) < 0)
        return -1;
    fds[STDIN_FILENO] = fds[STDOUT_FILENO] = null_fd;
    fds[STDERR_FILENO] = STDERR_FILENO;
    fds[IMAGE_FD_REQUEST] = request_fd;
    fds[IMAGE_FD_EVENTS] = theirs;
    fds[IMAGE_FD_CONTENT] = store->content_fd;
    fds[IMAGE_FD_LOCK] = hands->lock_fd;
    fds[IMAGE_FD_EXTRA] = hands->extra_fd >= 0 ? hands->extra_fd : null_fd;
    for (size_t i = 0; i < hands->tree_n; i++)
        fds[IMAGE_FD_TREES + i] = hands->trees[i].fd;
    worker_environment(env, space, sizeof space);
    if (program_start(argv, env, fds, (size_t)IMAGE_FD_TREES + hands->tree_n, &worker->pid, err) <
        0)
        return -1;
    worker->events_fd = TAKE_FD(ours);
    return 0;
}

/* ---- hearing ---- */

static void hear_progress(const struct worker *worker, const struct json *event)
{
    AUTO_BUF struct buf shown = BUF(PATH_BYTES_MAX);
    struct str what = STR_LIT("");
    int64_t done = 0, total = 0;
    struct err ignored;

    (void)json_is_text(json_get(event, "what"), &what);
    (void)json_is_int(json_get(event, "done"), &done);
    (void)json_is_int(json_get(event, "total"), &total);
    if (worker->progress && done >= 0 && total >= 0 && text_escape(what, &shown, &ignored) == 0)
        worker->progress->tell(worker->progress->context, buf_text(&shown), (uint64_t)done,
                               (uint64_t)total);
}

/* A regular file beneath the folder the user named, and nothing else, whatever it asks for. */
static int open_for_it(const struct worker *worker, const struct json *event, struct err *err)
{
    struct str path = STR_LIT("");
    char name[PATH_BYTES_MAX];
    AUTO_FD int fd = -1;
    struct stat st;

    if (json_is_text(json_get(event, "path"), &path) && path.n < sizeof name &&
        worker->hands->folder_fd >= 0) {
        (void)snprintf(name, sizeof name, STR_FMT, STR_ARG(path));
        fd = sys_openat2(worker->hands->folder_fd, name, O_RDONLY | O_NOCTTY | O_NONBLOCK,
                         RESOLVE_BENEATH);
    }
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
        (void)close(fd);
        fd = -1;
    }
    return fds_send(worker->events_fd, fd >= 0 ? "1" : "0", 1, &fd, fd >= 0, err);
}

static int hear_failed(const struct json *event, struct err *err)
{
    struct str code = STR_LIT(""), message = STR_LIT("");
    int64_t os = 0;

    (void)json_is_text(json_get(event, "code"), &code);
    (void)json_is_text(json_get(event, "message"), &message);
    (void)json_is_int(json_get(event, "os"), &os);
    err->code = ERR_INTERNAL;
#define X(id, name, http, status)                                                                  \
    if (str_is(code, name))                                                                        \
        err->code = ERR_##id;
    ERR_CODES(X)
#undef X
    err->os = os > 0 && os < 4096 ? (int)os : 0;
    (void)snprintf(err->text, sizeof err->text, STR_FMT, STR_ARG(message));
    return -1;
}

/* 1: the last event, the answer is there; 0: more to come. */
static int hear(const struct worker *worker, struct arena *mem, struct str text,
                const struct json **answer, struct err *err)
{
    AUTO_ARENA struct arena passing = ARENA(IMAGE_MEMORY_MAX);
    const struct json *event = NULL;
    struct str kind = STR_LIT("");
    struct mark where;

    if (json_parse(&passing, text, &event, &where, err) < 0)
        return err_in(err, "what the program \"image\" says");
    (void)json_is_text(json_get(event, "event"), &kind);
    if (str_is(kind, "progress")) {
        hear_progress(worker, event);
        return 0;
    }
    if (str_is(kind, "open"))
        return open_for_it(worker, event, err);
    if (str_is(kind, "failed"))
        return hear_failed(event, err);
    if (!str_is(kind, "done") || json_parse(mem, text, &event, &where, err) < 0 ||
        !json_get(event, "result"))
        return err_set(err, ERR_INTERNAL, "the program \"image\" says something unknown");
    *answer = json_get(event, "result");
    return 1;
}

static int hear_end(const struct worker *worker, struct err *err)
{
    siginfo_t info = {0};

    if (waitid(P_PID, (id_t)worker->pid, &info, WEXITED | WNOWAIT) < 0)
        return err_os(err, "waiting for the program \"image\"");
    return err_set(err, ERR_INTERNAL, "the program \"image\" ended without an answer (%s %d)",
                   info.si_code == CLD_EXITED ? "status" : "signal", info.si_status);
}

static int hear_all(const struct worker *worker, struct arena *mem, const struct json **answer,
                    struct err *err)
{
    AUTO_FREE char *message = xmalloc(IMAGE_EVENT_MAX);
    uint64_t until = clock_us() + worker->hands->timeout_ms * 1000U + GRACE_US;
    int heard = 0;

    while (!heard) {
        struct pollfd polled = {worker->events_fd, POLLIN, 0};
        int ready = clock_us() >= until ? 0 : poll(&polled, 1, clock_ms_until(until));
        ssize_t n;

        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return ready < 0 ? err_os(err, "waiting for the program \"image\"")
                             : err_set(err, ERR_TIMEOUT, "not finished within %llu ms",
                                       (unsigned long long)worker->hands->timeout_ms);
        n = recv(worker->events_fd, message, IMAGE_EVENT_MAX, MSG_TRUNC | MSG_CMSG_CLOEXEC);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return hear_end(worker, err);
        if ((size_t)n > IMAGE_EVENT_MAX)
            return err_set(err, ERR_LIMIT, "the program \"image\" says too much at once");
        heard = hear(worker, mem, (struct str){message, (size_t)n}, answer, err);
    }
    return heard < 0 ? -1 : 0;
}

int worker_run(const struct image_store *store, struct arena *mem, struct json *request,
               const struct worker_hands *hands, const struct image_progress *progress,
               const struct json **answer, struct err *err)
{
    struct worker worker = {.pid = -1, .events_fd = -1, .hands = hands, .progress = progress};
    int failed;

    if (hands->tree_n > IMAGE_TREES_MAX)
        return err_set(err, ERR_LIMIT, "more than %d folders at once", IMAGE_TREES_MAX);
    json_put_int(mem, request, "uid", (int64_t)store->owner.uid);
    json_put_int(mem, request, "gid", (int64_t)store->owner.gid);
    json_put_int(mem, request, "parent", getpid());
    json_put_int(mem, request, "timeout_ms", (int64_t)hands->timeout_ms);
    if (worker_start(store, request, &worker, err) < 0)
        return -1;
    failed = hear_all(&worker, mem, answer, err);
    (void)close(worker.events_fd);
    /* Whatever it was still doing: it has answered, or may not go on. */
    (void)kill(worker.pid, SIGKILL);
    while (waitpid(worker.pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return failed;
}
