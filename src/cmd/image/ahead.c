/* SPDX-License-Identifier: Apache-2.0 */

/* Layers fetched ahead, a few at a time, while those that came are unpacked.
 *
 * Each is fetched by a child of ours that ends with it: what a fetch is in the middle of (a
 * connection, a challenge, a retry) is its own, and nothing of it has to be thought of twice. A
 * child says why it failed in one write, shows how far it is in memory both can see, and dies with
 * us. What it leaves is what fetch() leaves: a blob under its digest, or something for the sweep.
 */

#include "cmd/image/worker.h"

#include "lib/image/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define LOOK_MS 100

struct fetcher {
    pid_t pid; /* 0: nobody */
    int fd;    /* its last words */
    size_t at; /* which blob */
};

struct ahead {
    struct job *job;
    struct source *source;
    const struct image_descriptor *blobs;
    size_t n;
    size_t next; /* the first nobody was sent for */
    bool came[IMAGE_LAYERS_MAX];
    struct fetcher fetchers[IMAGE_FETCHES_MAX];
    _Atomic uint64_t *moved; /* of each blob, how much is there */
};

/* ---- the child ---- */

static _Noreturn void be_fetcher(struct ahead *ahead, size_t at, int fd, pid_t parent)
{
    struct job *job = ahead->job;
    struct err err;

    (void)close(IMAGE_FD_EVENTS); /* its end must show when our parent ends */
    job->moved = &ahead->moved[at];
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
        _exit(1);
    if (ahead->source->alone(ahead->source, &err) == 0 &&
        ahead->source->fetch(ahead->source, &ahead->blobs[at],
                             arena_printf(&job->mem, "layer %zu of %zu", at + 1, ahead->n),
                             &err) == 0)
        _exit(0);
    _exit(write(fd, &err, sizeof err) == (ssize_t)sizeof err ? 1 : 2);
}

static int send_fetcher(struct ahead *ahead, struct fetcher *fetcher, struct err *err)
{
    pid_t parent = getpid();
    int pipes[2];
    pid_t pid;

    if (pipe2(pipes, O_CLOEXEC) < 0)
        return err_os(err, "fetching several layers");
    pid = fork();
    if (pid == 0) {
        (void)close(pipes[0]);
        be_fetcher(ahead, ahead->next, pipes[1], parent);
    }
    (void)close(pipes[1]);
    if (pid < 0) {
        (void)close(pipes[0]);
        return err_os(err, "fetching several layers");
    }
    *fetcher = (struct fetcher){pid, pipes[0], ahead->next};
    return 0;
}

/* ---- the parent ---- */

static bool is_named_before(const struct ahead *ahead, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(ahead->blobs[i].digest, ahead->blobs[at].digest) == 0)
            return true;
    return false;
}

/* As many as may be under way at once. One that is there already, or comes under another number,
 * needs nobody. */
static int send_more(struct ahead *ahead, struct err *err)
{
    for (size_t i = 0; i < IMAGE_FETCHES_MAX; i++) {
        while (ahead->next < ahead->n && (blob_exists(ahead->job, &ahead->blobs[ahead->next]) ||
                                          is_named_before(ahead, ahead->next))) {
            ahead->moved[ahead->next] = ahead->blobs[ahead->next].size;
            ahead->came[ahead->next++] = true;
        }
        if (ahead->next == ahead->n)
            return 0;
        if (ahead->fetchers[i].pid)
            continue;
        if (send_fetcher(ahead, &ahead->fetchers[i], err) < 0)
            return -1;
        ahead->next++;
    }
    return 0;
}

static void show(struct ahead *ahead)
{
    uint64_t done = 0, total = 0;

    for (size_t i = 0; i < ahead->n; i++) {
        done += ahead->moved[i];
        total += ahead->blobs[i].size;
    }
    event_progress(ahead->job,
                   ahead->n == 1 ? "1 layer"
                                 : arena_printf(&ahead->job->mem, "%zu layers", ahead->n),
                   done, total);
}

static int take_back(struct ahead *ahead, struct fetcher *fetcher, struct err *err)
{
    struct err said;
    bool spoke = read(fetcher->fd, &said, sizeof said) == (ssize_t)sizeof said;
    int status = 0;

    (void)close(fetcher->fd);
    while (waitpid(fetcher->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    fetcher->pid = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        ahead->came[fetcher->at] = true;
        return 0;
    }
    if (!spoke)
        return err_set(err, ERR_INTERNAL,
                       "layer %zu of %zu: whoever fetched it ended without a word", fetcher->at + 1,
                       ahead->n);
    *err = said;
    err->text[sizeof err->text - 1] = '\0';
    return -1;
}

static int look(struct ahead *ahead, struct err *err)
{
    struct pollfd polled[IMAGE_FETCHES_MAX];

    for (size_t i = 0; i < IMAGE_FETCHES_MAX; i++)
        polled[i] = (struct pollfd){.fd = ahead->fetchers[i].pid ? ahead->fetchers[i].fd : -1,
                                    .events = POLLIN};
    if (poll(polled, IMAGE_FETCHES_MAX, LOOK_MS) < 0 && errno != EINTR)
        return err_os(err, "waiting for layers");
    for (size_t i = 0; i < IMAGE_FETCHES_MAX; i++)
        if (polled[i].revents && take_back(ahead, &ahead->fetchers[i], err) < 0)
            return -1;
    show(ahead);
    return job_in_time(ahead->job, err);
}

int ahead_wait(struct ahead *ahead, size_t at, struct err *err)
{
    for (;;) {
        if (send_more(ahead, err) < 0)
            return -1;
        if (ahead->came[at])
            return 0;
        if (look(ahead, err) < 0)
            return -1;
    }
}

int ahead_new(struct job *job, struct source *source, const struct image_descriptor *blobs,
              size_t n, struct ahead **out, struct err *err)
{
    AUTO(ahead) struct ahead *ahead = xcalloc(1, sizeof *ahead);
    void *shared = mmap(NULL, IMAGE_LAYERS_MAX * sizeof *ahead->moved, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED)
        return err_os(err, "making room to fetch several layers");
    ahead->moved = shared;
    if (n > IMAGE_LAYERS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d layers", IMAGE_LAYERS_MAX);
    ahead->job = job;
    ahead->source = source;
    ahead->blobs = blobs;
    ahead->n = n;
    *out = TAKE(ahead);
    return 0;
}

void ahead_free(struct ahead *ahead)
{
    if (!ahead)
        return;
    for (size_t i = 0; i < IMAGE_FETCHES_MAX; i++) {
        if (!ahead->fetchers[i].pid)
            continue;
        (void)kill(ahead->fetchers[i].pid, SIGKILL);
        while (waitpid(ahead->fetchers[i].pid, NULL, 0) < 0 && errno == EINTR)
            continue;
        (void)close(ahead->fetchers[i].fd);
    }
    if (ahead->moved)
        (void)munmap(ahead->moved, IMAGE_LAYERS_MAX * sizeof *ahead->moved);
    free(ahead);
}
