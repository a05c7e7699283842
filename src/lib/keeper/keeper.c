/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/keeper/keeper.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "lib/base/clock.h"
#include "lib/base/memory.h"
#include "lib/keeper/keeper-wire.h"
#include "lib/linux/beside.h"
#include "lib/linux/fd-pass.h"

#define SIGN_WAIT_US 2000000U /* a batch takes milliseconds */
#define OPEN_WAIT_US 8000000U /* a new key is synced */
#define END_WAIT_MS 1000
#define STARTS_MAX 4           /* at once; then */
#define START_EVERY_US 500000U /* one each */
#define ATTEMPTS 2
#define CHUNK_LEAST 4 /* fewer hashes are not worth a message of their own */

struct keeper {
    char *state_dir;
    keeper_replaced *on_replaced;
    pthread_mutex_t lock; /* one conversation at a time */
    pthread_cond_t changed;
    /* Under the lock: */
    int fd; /* -1: there is none */
    pid_t pid;
    int pidfd;
    uint64_t generation; /* which one it is; slots are its own */
    uint32_t serial;
    uint64_t credit_us; /* what it may still spend on starts, START_EVERY_US each */
    uint64_t counted_us;
    uint64_t failed_us; /* when one could not be started, or 0; and why: */
    struct err failed;
};

struct kept_signer {
    struct signer signer; /* first */
    struct keeper *keeper;
    char *state_dir;
    uint64_t generation; /* the keeper that gave the slot */
    uint32_t slot;
};

/* ---- its life ---- */

/* Without its socket it has nothing to do and ends by itself, if it is given the time. */
static void end(struct keeper *keeper, int wait_ms)
{
    struct pollfd ended = {.fd = keeper->pidfd, .events = POLLIN};

    if (keeper->fd < 0)
        return;
    (void)close(TAKE_FD(keeper->fd));
    if (keeper->pidfd < 0 || poll(&ended, 1, wait_ms) != 1) {
        (void)kill(keeper->pid, SIGKILL);
        if (keeper->pidfd >= 0)
            (void)poll(&ended, 1, END_WAIT_MS);
    }
    /* One that even a kill does not end is stuck in the kernel; it holds nothing of ours. */
    (void)waitpid(keeper->pid, NULL, keeper->pidfd >= 0 ? WNOHANG : 0);
    if (keeper->pidfd >= 0)
        (void)close(TAKE_FD(keeper->pidfd));
    keeper->pid = -1;
}

static int born(const char *state_dir, int socket_fd, pid_t *out, struct err *err)
{
    static const char *const argv[] = {"keeper", NULL};
    AUTO_FD int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    AUTO_FD int state_fd = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int fds[KEEPER_FD_N] = {null_fd, null_fd, STDERR_FILENO, socket_fd, state_fd};

    if (null_fd < 0 || state_fd < 0)
        return err_os(err, "opening %s for the keeper", state_dir);
    return program_start(argv, NULL, fds, KEEPER_FD_N, out, err);
}

static int start(struct keeper *keeper, struct err *err)
{
    AUTO_FD int ours = -1;
    AUTO_FD int theirs = -1;
    int sockets[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        return err_os(err, "making a socket to the keeper");
    ours = sockets[0];
    theirs = sockets[1];
    if (born(keeper->state_dir, theirs, &keeper->pid, err) < 0)
        return -1;
    keeper->pidfd = pidfd_open(keeper->pid, 0);
    keeper->fd = TAKE_FD(ours);
    keeper->generation++;
    return 0;
}

/* ---- one conversation ---- */

/* Who does not hear it by then is stuck, which is as good as gone. */
static int await(int fd, short events, uint64_t until_us, struct err *err)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = events};
        int got = poll(&p, 1, clock_ms_until(until_us));

        if (got > 0)
            return 0;
        if (got < 0 && errno != EINTR)
            return err_os(err, "waiting for the keeper");
        if (got == 0 && clock_us() >= until_us)
            return err_set(err, ERR_KEEPER, "the keeper of the signing keys does not answer");
    }
}

static int lost(struct err *err)
{
    return err_set(err, ERR_KEEPER, "the keeper of the signing keys has ended");
}

static int say(struct keeper *keeper, const struct keeper_request *request, const int *fd,
               uint64_t until_us, struct err *err)
{
    if (await(keeper->fd, POLLOUT, until_us, err) < 0)
        return -1;
    if (fds_send(keeper->fd, request, sizeof *request, fd, fd ? 1 : 0, err) < 0)
        return lost(err);
    return 0;
}

static int hear(struct keeper *keeper, struct keeper_answer *out, uint64_t until_us,
                struct err *err)
{
    ssize_t got;

    if (await(keeper->fd, POLLIN, until_us, err) < 0)
        return -1;
    do
        got = recv(keeper->fd, out, sizeof *out, MSG_TRUNC);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof *out || out->magic != KEEPER_MAGIC || out->version != KEEPER_VERSION)
        return lost(err);
    return 0;
}

/* What it could not do is its answer; a refusal is its end, and our mistake. */
static int check(const struct keeper_answer *answer, struct err *err)
{
    const char *text = answer->body.text;
    int text_n = (int)strnlen(text, sizeof err->text - 64);

    if (answer->status == KEEPER_DONE)
        return 0;
    if (answer->status != KEEPER_FAILED || answer->code < 0 || answer->code > ERR_OS)
        return err_set(err, ERR_KEEPER, "the keeper of the signing keys refuses us: %.*s", text_n,
                       text);
    (void)err_set(err, (enum err_code)answer->code, "%.*s", text_n, text);
    err->os = answer->os;
    return -1;
}

static struct keeper_request request_of(struct keeper *keeper, enum keeper_verb verb)
{
    return (struct keeper_request){.magic = KEEPER_MAGIC,
                                   .version = KEEPER_VERSION,
                                   .verb = (uint16_t)verb,
                                   .serial = ++keeper->serial,
                                   .purpose = KEEPER_RECEIPTS};
}

static int ask(struct keeper *keeper, const struct keeper_request *request, const int *fd,
               uint64_t wait_us, struct keeper_answer *out, struct err *err)
{
    uint64_t until_us = clock_us() + wait_us;

    if (say(keeper, request, fd, until_us, err) < 0 || hear(keeper, out, until_us, err) < 0)
        return -1;
    if (out->serial != request->serial)
        return err_set(err, ERR_KEEPER, "the keeper of the signing keys answers something else");
    return check(out, err);
}

static int greet(struct keeper *keeper, struct err *err)
{
    struct keeper_request request = request_of(keeper, KEEPER_HELLO);
    struct keeper_answer answer;

    return ask(keeper, &request, NULL, OPEN_WAIT_US, &answer, err);
}

/* ---- another one ---- */

/* How long until one may be started; 0: now, and it is counted. */
static uint64_t take_start(struct keeper *keeper)
{
    uint64_t now = clock_us();
    uint64_t most = STARTS_MAX * START_EVERY_US;

    keeper->credit_us += now - keeper->counted_us;
    keeper->counted_us = now;
    if (keeper->credit_us > most)
        keeper->credit_us = most;
    if (keeper->credit_us < START_EVERY_US)
        return START_EVERY_US - keeper->credit_us;
    keeper->credit_us -= START_EVERY_US;
    return 0;
}

static void wait_us(struct keeper *keeper, uint64_t us)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(us / 1000000U);
    until.tv_nsec += (long)(us % 1000000U) * 1000;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    (void)pthread_cond_timedwait(&keeper->changed, &keeper->lock, &until);
}

static void tell(struct keeper *keeper)
{
    (void)pthread_cond_broadcast(&keeper->changed);
    if (keeper->generation > 1 && keeper->on_replaced)
        keeper->on_replaced(keeper->generation);
}

/* A failure holds for all who ask within the pause, so nobody waits behind the others' attempts. */
static int ready(struct keeper *keeper, struct err *err)
{
    uint64_t pause;

    while (keeper->fd < 0) {
        if (keeper->failed_us && clock_us() - keeper->failed_us < START_EVERY_US) {
            *err = keeper->failed;
            return -1;
        }
        pause = take_start(keeper);
        if (pause) {
            wait_us(keeper, pause); /* somebody else may start it meanwhile */
            continue;
        }
        keeper->failed_us = 0;
        if (start(keeper, err) == 0 && greet(keeper, err) == 0) {
            tell(keeper);
            break;
        }
        end(keeper, 0);
        err->code = ERR_KEEPER;
        (void)err_in(err, "no keeper of the signing keys can be started");
        keeper->failed = *err;
        keeper->failed_us = clock_us();
    }
    return 0;
}

/* ---- what is asked of it ---- */

static int open_slot(struct keeper *keeper, struct kept_signer *kept, struct public_key *out,
                     struct err *err)
{
    struct keeper_request request = request_of(keeper, KEEPER_OPEN);
    AUTO_FD int dir_fd = open(kept->state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct keeper_answer answer;

    if (dir_fd < 0)
        return err_os(err, "opening %s", kept->state_dir);
    if (ask(keeper, &request, &dir_fd, OPEN_WAIT_US, &answer, err) < 0)
        return err_in(err, "%s", kept->state_dir);
    kept->slot = answer.slot;
    kept->generation = keeper->generation;
    *out = answer.body.public_key;
    return 0;
}

/* Slots of an earlier keeper mean nothing to this one; what the new one opens must be the key that
 * the receipts before name. */
static int reopen_slot(struct keeper *keeper, struct kept_signer *kept, struct err *err)
{
    struct public_key key;

    if (kept->generation == keeper->generation)
        return 0;
    if (open_slot(keeper, kept, &key, err) < 0)
        return -1;
    if (memcmp(&key, &kept->signer.public_key, sizeof key) == 0)
        return 0;
    kept->generation = 0;
    return err_set(err, ERR_INTEGRITY,
                   "%s/" KEEPER_KEY_NAME " is not the key it was: restore it, or "
                   "restart the daemon to go on with the other",
                   kept->state_dir);
}

/* Cut into pieces, so that the keeper's threads share the work. */
static size_t chunk_of(size_t n)
{
    size_t chunk = (n + 3) / 4;

    return chunk < CHUNK_LEAST         ? CHUNK_LEAST
           : chunk > KEEPER_HASHES_MAX ? KEEPER_HASHES_MAX
                                       : chunk;
}

static int take_signatures(const struct keeper_answer *answer, uint32_t first, size_t chunk,
                           size_t n, struct signature *out, struct err *err)
{
    size_t at = (size_t)(answer->serial - first) * chunk;

    if (check(answer, err) < 0)
        return -1;
    if (at >= n || answer->count != (n - at < chunk ? n - at : chunk))
        return err_set(err, ERR_KEEPER, "the keeper of the signing keys answers something else");
    memcpy(&out[at], answer->body.signatures, answer->count * sizeof *out);
    return 0;
}

/* All are on their way before the first comes back: SIGNER_BATCH_MAX of them fit its socket. */
static int sign_batch(struct keeper *keeper, const struct kept_signer *kept,
                      const struct hash *hashes, size_t n, struct signature *out, struct err *err)
{
    uint64_t until_us = clock_us() + SIGN_WAIT_US;
    uint32_t first = keeper->serial + 1;
    size_t chunk = chunk_of(n);
    size_t messages = 0;

    for (size_t at = 0; at < n; at += chunk, messages++) {
        struct keeper_request request = request_of(keeper, KEEPER_SIGN);

        request.slot = kept->slot;
        request.count = (uint32_t)(n - at < chunk ? n - at : chunk);
        memcpy(request.body.hashes, &hashes[at], request.count * sizeof *hashes);
        if (say(keeper, &request, NULL, until_us, err) < 0)
            return -1;
    }
    for (; messages; messages--) {
        struct keeper_answer answer;

        if (hear(keeper, &answer, until_us, err) < 0 ||
            take_signatures(&answer, first, chunk, n, out, err) < 0)
            return -1;
    }
    return 0;
}

/* A conversation that broke off leaves answers nobody waits for: with it goes the keeper. Signing
 * the same again gives the same, so it is asked again. */
static int converse(struct keeper *keeper, struct kept_signer *kept, const struct hash *hashes,
                    size_t n, struct signature *out, struct err *err)
{
    for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (ready(keeper, err) < 0)
            return -1;
        if (hashes ? reopen_slot(keeper, kept, err) == 0 &&
                         sign_batch(keeper, kept, hashes, n, out, err) == 0
                   : open_slot(keeper, kept, &kept->signer.public_key, err) == 0)
            return 0;
        if (err->code != ERR_KEEPER)
            return -1;
        end(keeper, 0);
    }
    return -1;
}

static int sign(struct signer *signer, const struct hash *hashes, size_t n, struct signature *out,
                struct err *err)
{
    struct kept_signer *kept = (struct kept_signer *)signer;
    struct keeper *keeper = kept->keeper;
    int failed;

    assert(n && n <= SIGNER_BATCH_MAX);
    (void)pthread_mutex_lock(&keeper->lock);
    failed = converse(keeper, kept, hashes, n, out, err);
    (void)pthread_mutex_unlock(&keeper->lock);
    return failed;
}

static void kept_free(struct signer *signer)
{
    struct kept_signer *kept = (struct kept_signer *)signer;

    free(kept->state_dir);
    free(kept);
}

int keeper_signer(void *of_keeper, const char *state_dir, struct signer **out, struct err *err)
{
    struct keeper *keeper = of_keeper;
    struct kept_signer *kept = xcalloc(1, sizeof *kept);
    int failed;

    kept->signer = (struct signer){.batch = SIGNER_BATCH_MAX, .sign = sign, .free = kept_free};
    kept->keeper = keeper;
    kept->state_dir = xstrdup(state_dir);
    (void)pthread_mutex_lock(&keeper->lock);
    failed = converse(keeper, kept, NULL, 0, NULL, err);
    (void)pthread_mutex_unlock(&keeper->lock);
    if (failed)
        kept_free(&kept->signer);
    else
        *out = &kept->signer;
    return failed;
}

int keeper_open(const char *state_dir, keeper_replaced *on_replaced, struct keeper **out,
                struct err *err)
{
    AUTO(keeper) struct keeper *keeper = xcalloc(1, sizeof *keeper);
    pthread_condattr_t monotonic;
    int failed;

    keeper->fd = keeper->pidfd = keeper->pid = -1;
    keeper->state_dir = xstrdup(state_dir);
    keeper->on_replaced = on_replaced;
    keeper->counted_us = clock_us();
    keeper->credit_us = STARTS_MAX * START_EVERY_US;
    (void)pthread_mutex_init(&keeper->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&keeper->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    (void)pthread_mutex_lock(&keeper->lock);
    failed = ready(keeper, err);
    (void)pthread_mutex_unlock(&keeper->lock);
    if (failed)
        return -1;
    *out = TAKE(keeper);
    return 0;
}

void keeper_free(struct keeper *keeper)
{
    if (!keeper)
        return;
    end(keeper, END_WAIT_MS);
    (void)pthread_cond_destroy(&keeper->changed);
    (void)pthread_mutex_destroy(&keeper->lock);
    free(keeper->state_dir);
    free(keeper);
}
