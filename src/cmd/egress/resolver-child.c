/* SPDX-License-Identifier: Apache-2.0 */

/* The process that looks names up, and the one that looks after it.
 *
 * It may read what names need and nothing else, may not run anything, and ends with its socket. The
 * one above it only waits for it and makes another when it fell; so an answer that brings the C
 * library down costs the lookups that were on their way, not the network of every sandbox. */

#include "cmd/egress/resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/linux/landlock.h"
#include "lib/linux/process.h"

#define AGAIN_MS 200 /* between two that fell */

/* ---- looking up ---- */

static bool take_address(const struct addrinfo *found, struct net_addr *out)
{
    if (found->ai_family == AF_INET) {
        struct sockaddr_in in;

        memcpy(&in, found->ai_addr, sizeof in);
        *out = net_addr_v4((const unsigned char *)&in.sin_addr);
        return true;
    }
    if (found->ai_family == AF_INET6) {
        struct sockaddr_in6 in6;

        memcpy(&in6, found->ai_addr, sizeof in6);
        memcpy(out->b, &in6.sin6_addr, sizeof out->b);
        return in6.sin6_scope_id == 0; /* an address that needs an interface is link-local */
    }
    return false;
}

static void look_up(const struct resolver_question *question, struct resolver_answer *answer)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;

    *answer = (struct resolver_answer){.serial = question->serial};
    answer->failed = getaddrinfo(question->name, NULL, &hints, &found);
    if (answer->failed)
        return;
    for (const struct addrinfo *at = found; at && answer->n < ADDRESSES_MAX; at = at->ai_next)
        if (take_address(at, &answer->addrs[answer->n]))
            answer->n++;
    freeaddrinfo(found);
}

/* Several threads wait at the one socket: a name server that does not answer holds up one of them.
 */
static void *serve(void *of_fd)
{
    int fd = *(const int *)of_fd;
    struct resolver_question question;
    struct resolver_answer answer;

    for (;;) {
        ssize_t got = recv(fd, &question, sizeof question, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            _exit(0); /* whoever asked is gone */
        if (got != (ssize_t)sizeof question || question.name[sizeof question.name - 1])
            continue;
        look_up(&question, &answer);
        (void)send(fd, &answer, sizeof answer, MSG_NOSIGNAL); /* gone: the next recv says so */
    }
}

/* ---- its walls ---- */

static int wall_files(struct err *err)
{
    static const char *const readable[] = {
        "/etc/resolv.conf",
        "/etc/hosts",
        "/etc/host.conf",
        "/etc/nsswitch.conf",
        "/etc/gai.conf",
        "/etc/services",
        "/etc/ld.so.cache",
        "/usr/lib",
        "/lib",
        "/lib64",
        "/run/systemd/resolve",
        "/run/nscd",
        "/etc/netns",
    };
    unsigned abi = landlock_abi();
    AUTO_FD int ruleset = -1;

    if (abi < LANDLOCK_ABI_LEAST)
        return err_set(err, ERR_UNAVAILABLE,
                       "this kernel has no Landlock to confine egress with; boot with "
                       "lsm=landlock,…");
    if (landlock_open(abi, &ruleset, err) < 0)
        return -1;
    for (size_t i = 0; i < COUNT(readable); i++) {
        AUTO_FD int fd = open(readable[i], O_PATH | O_CLOEXEC);

        if (fd >= 0 && landlock_allow(ruleset, abi, fd, LANDLOCK_READ, err) < 0)
            return -1;
    }
    return landlock_enforce(ruleset, err);
}

static int give_up_rights(struct err *err)
{
    const struct rlimit files = {64, 64};

    if (setrlimit(RLIMIT_NOFILE, &files) < 0)
        return err_os(err, "limiting ourselves");
    if (dumps_forbid(err) < 0 || caps_give_up(err) < 0 || no_new_privs(err) < 0)
        return -1;
    return wall_files(err);
}

static NORETURN void be_worker(int fd)
{
    pthread_t thread;
    pthread_attr_t small;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)pthread_attr_init(&small);
    (void)pthread_attr_setstacksize(&small, 256 * KIB);
    for (int i = 1; i < LOOKUP_THREADS; i++)
        (void)pthread_create(&thread, &small, serve, &fd); /* fewer do as well */
    (void)serve(&fd);
    _exit(0);
}

static NORETURN void look_after(int fd)
{
    const struct timespec pause = {0, AGAIN_MS * 1000000L};
    int status = 0;

    do {
        pid_t pid = fork();

        if (pid == 0)
            be_worker(fd);
        while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        if (pid < 0 || !WIFEXITED(status))
            (void)nanosleep(&pause, NULL);
    } while (!WIFEXITED(status));
    _exit(0);
}

int resolver_start(int *out_fd, struct err *err)
{
    int pair[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_os(err, "making a socket to the resolver");
    pid = fork();
    if (pid < 0)
        return err_os(err, "starting the resolver");
    if (pid == 0) {
        struct err why;

        /* Nothing of egress stays open here, or the end of it would not be seen. */
        if (dup2(pair[1], 3) < 0 || close_range(4, ~0U, 0) < 0 || give_up_rights(&why) < 0)
            _exit(1);
        look_after(3);
    }
    (void)close(pair[1]);
    *out_fd = pair[0];
    return 0;
}
