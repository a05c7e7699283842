/* SPDX-License-Identifier: Apache-2.0 */

/* keeper: holds the signing keys of one daemon and does nothing else; or, as "keeper vault", the
 * key of one vault, behind the same walls and with other requests.
 *
 * It is born with a socket to its daemon and the folder whose keys it may open. It reads messages
 * of one size and key files, nothing else. When the daemon is gone, the socket is, and it ends:
 * that was so before it ran its first instruction, and does not depend on which thread of the
 * daemon has started it, as a parent-death signal would.
 *
 * Several threads wait at the one socket, so that the signatures of a batch are made on several
 * processors. */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cmd/keeper/session.h"
#include "cmd/keeper/vault-session.h"
#include "lib/base/limits.h"
#include "lib/crypto/key.h"
#include "lib/crypto/seal.h"
#include "lib/linux/calls.h"
#include "lib/linux/fd-pass.h"
#include "lib/linux/landlock.h"
#include "lib/linux/process.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define HELPERS_MAX 3 /* beside the first thread */

static bool is_vault; /* the other role */
static struct session session;
static struct vault_session vault_session;
static pthread_barrier_t walls;

/* ---- walls ---- */

/* Locked memory as far as we are allowed; for the rest, what one key file needs. */
static int set_limits(struct err *err)
{
    static const struct {
        __rlimit_resource_t what;
        rlim_t most;
    } limits[] = {
        {RLIMIT_NOFILE, 64     },
        {RLIMIT_FSIZE,  4 * KIB},
    };
    const struct rlimit journal = {64 * MIB, 64 * MIB};
    struct rlimit locked;

    if (getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != locked.rlim_max) {
        locked.rlim_cur = locked.rlim_max;
        (void)setrlimit(RLIMIT_MEMLOCK, &locked); /* fewer keys are locked then */
    }
    for (size_t i = 0; i < COUNT(limits); i++) {
        struct rlimit limit = {limits[i].most, limits[i].most}, now;

        if (is_vault && limits[i].what == RLIMIT_FSIZE)
            limit = journal;

        if (getrlimit(limits[i].what, &now) == 0 && now.rlim_max < limit.rlim_max)
            limit.rlim_cur = limit.rlim_max = now.rlim_max;
        if (setrlimit(limits[i].what, &limit) < 0)
            return err_os(err, "limiting ourselves");
    }
    return 0;
}

static int wall_files(struct err *err)
{
    /* Key files are read, made without a name, linked, and never changed. */
    const uint64_t rights =
        LANDLOCK_READ | LANDLOCK_WRITE_FILE | LANDLOCK_MAKE_REG | LANDLOCK_REMOVE_FILE;
    unsigned abi = landlock_abi();
    AUTO_FD int ruleset = -1;

    if (abi < LANDLOCK_ABI_LEAST)
        return err_set(err, ERR_UNAVAILABLE,
                       "this kernel has no Landlock to confine the keeper with; boot with "
                       "lsm=landlock,…");
    if (landlock_open(abi, &ruleset, err) < 0 ||
        landlock_allow(ruleset, abi, KEEPER_STATE_FD, rights, err) < 0 ||
        landlock_enforce(ruleset, err) < 0)
        return -1;
    if (!is_vault)
        (void)close(KEEPER_STATE_FD);
    return 0;
}

/* ---- work ---- */

static NORETURN void leave(int status)
{
    _exit(status); /* no handlers: other threads are in the middle of something */
}

static int take_one(struct err *err)
{
    unsigned char bytes[sizeof(struct keeper_request) + 1]; /* one more: what is longer shows */
    int fds[FD_PASS_MAX];
    struct session_input in = {.bytes = bytes, .fds = fds};
    struct keeper_answer answer;
    int got = fds_receive_any(KEEPER_SOCKET_FD, bytes, sizeof bytes, fds, &in.fd_n, err);
    bool goes_on;

    if (got <= 0)
        return got;
    in.n = (size_t)got;
    goes_on = session_take(&session, &in, &answer);
    while (in.fd_n)
        (void)close(fds[--in.fd_n]);
    if (send(KEEPER_SOCKET_FD, &answer, sizeof answer, MSG_NOSIGNAL) != (ssize_t)sizeof answer)
        return 0; /* whoever asked is gone */
    return goes_on ? 1 : err_set(err, ERR_INVALID, "refused: %s", answer.body.text);
}

static int take_vault_one(struct err *err)
{
    unsigned char bytes[sizeof(struct keeper_vault_request) + 1];
    struct keeper_vault_answer answer;
    int fds[FD_PASS_MAX];
    size_t fd_n = 0, closed = 0;
    bool goes_on, is_sent;
    int got = fds_receive_any(KEEPER_SOCKET_FD, bytes, sizeof bytes, fds, &fd_n, err);

    if (got <= 0)
        return got;
    while (closed < fd_n)
        (void)close(fds[closed++]);
    goes_on = vault_session_take(&vault_session, bytes, (size_t)got, fd_n, &answer);
    is_sent =
        send(KEEPER_SOCKET_FD, &answer, sizeof answer, MSG_NOSIGNAL) == (ssize_t)sizeof answer;
    if (!goes_on)
        return err_set(err, ERR_INVALID, "refused: %.100s", answer.body.text);
    secret_wipe(bytes, sizeof bytes);
    secret_wipe(&answer, sizeof answer);
    return is_sent;
}

static NORETURN void serve(void)
{
    struct err err;
    int got;

    do
        got = is_vault ? take_vault_one(&err) : take_one(&err);
    while (got > 0);
    if (got < 0)
        (void)dprintf(STDERR_FILENO, "brig keeper: %s\n", err.text);
    leave(got < 0 ? 1 : 0);
}

static void *help(void *unused)
{
    (void)unused;
    (void)pthread_barrier_wait(&walls); /* a thread stands, */
    (void)pthread_barrier_wait(&walls); /* and then the walls do */
    serve();
}

/* After Landlock, which binds threads that are born later, and before the filter, which is laid
 * around all there are and allows no more of them, nor what a thread does to begin. */
static int start_helpers(struct err *err)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned wanted = is_vault                   ? 0
                      : processors > HELPERS_MAX ? HELPERS_MAX
                      : processors > 1           ? (unsigned)processors - 1
                                                 : 0;
    pthread_attr_t small;
    pthread_t thread;

    (void)pthread_attr_init(&small);
    (void)pthread_attr_setstacksize(&small, 256 * KIB);
    (void)pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
    (void)pthread_barrier_init(&walls, NULL, wanted + 1);
    while (wanted) {
        if (pthread_create(&thread, &small, help, NULL) != 0)
            return err_os(err, "starting a thread");
        wanted--;
    }
    (void)pthread_barrier_wait(&walls);
    return 0;
}

static const int allowed[] = {
    SYS_recvmsg,
    SYS_sendto,
    SYS_write,
    /* Key files. */
    SYS_openat,
    SYS_fstat,
    SYS_newfstatat,
    SYS_pread64,
    SYS_fchmod,
    SYS_fsync,
    SYS_linkat,
    SYS_unlinkat,
    SYS_close,
    SYS_getrandom,
    SYS_geteuid,
    /* Locked memory. */
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_madvise,
    SYS_mlock,
    SYS_munlock,
    SYS_brk,
    /* Threads, signals, the end. */
    SYS_futex,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_restart_syscall,
    SYS_gettid,
    SYS_getpid,
    SYS_tgkill,
    SYS_exit,
    SYS_exit_group,
#if SANITIZED
    SYS_sigaltstack,
    SYS_sched_yield,
    SYS_read,
    SYS_prlimit64,
#endif
};

/* What the vault needs besides: its file, its journal, memory for both. */
static const int allowed_vault[] = {
    SYS_read,      SYS_fcntl,      SYS_flock,  SYS_ftruncate,
    SYS_faccessat, SYS_faccessat2, SYS_mremap, SYS_clock_nanosleep,
};

static int wall_calls(struct err *err)
{
    int both[COUNT(allowed) + COUNT(allowed_vault)];

    memcpy(both, allowed, sizeof allowed);
    memcpy(both + COUNT(allowed), allowed_vault, sizeof allowed_vault);
    return calls_allow_only(both, is_vault ? COUNT(both) : COUNT(allowed), err);
}

/* The order is the design: each step uses a right that a later one gives up. */
static const struct {
    const char *name;
    int (*run)(struct err *err);
} steps[] = {
    {"dumps",             dumps_forbid },
    {"limits",            set_limits   },
    {"capabilities",      caps_give_up },
    {"no new privileges", no_new_privs },
    {"landlock",          wall_files   },
    {"threads",           start_helpers},
    {"seccomp",           wall_calls   },
};

/* Of whoever started us: it waits for the first process only. */
static bool leave_parent(void)
{
    pid_t pid = fork();

    if (pid > 0)
        leave(0);
    return pid == 0 && setsid() >= 0;
}

int main(int argc, char **argv)
{
    struct err err;

    is_vault = argc > 1 && strcmp(argv[1], "vault") == 0;
    if (is_vault && argc > 2 && strcmp(argv[2], "apart") == 0 && !leave_parent())
        return 1;
    crypto_ready(); /* looks for randomness, which the walls would hide */
    if (is_vault)
        seal_ready(); /* and so does OpenSSL for what it is made of */
    session_init(&session);
    vault_session_init(&vault_session, KEEPER_STATE_FD);
    for (size_t i = 0; i < COUNT(steps); i++)
        if (steps[i].run(&err) < 0) {
            (void)dprintf(STDERR_FILENO, "brig keeper: %s: %s\n", steps[i].name, err.text);
            return 1;
        }
    (void)pthread_barrier_wait(&walls);
    serve();
}
