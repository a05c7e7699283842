/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroup-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/limits.h"
#include "test.h"

const char *test_name(const char *what)
{
    static char name[CGROUP_NAME_BYTES];

    (void)snprintf(name, sizeof name, PREFIX "%d-%s", (int)getppid(), what);
    return name;
}

/* Every test that makes groups begins here: without the right to make any it is skipped. */
void open_host(struct cgroup_host *host, unsigned needed)
{
    struct err err;

    if (cgroup_probe(host, &err) < 0) {
        test_fail(__FILE__, __LINE__, "%s", err.text);
        exit(1);
    }
    if (!host->tree_n)
        test_skip(host->why[CGROUP_MEMORY]);
    for (int power = 0; power < CGROUP_LIMITS; power++)
        if ((needed & 1U << power) && cgroup_mode(host, (enum cgroup_power)power) == CGROUP_NONE)
            test_skip(host->why[power]);
}

/* A set that ends with its test, whatever happened to it. */
void sweep(struct cgroup_set *set)
{
    struct err err;

    if (cgroup_set_kill(set, PATIENCE_MS, &err) < 0 ||
        cgroup_set_remove(set, PATIENCE_MS, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    cgroup_set_done(set);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

void make_set(const struct cgroup_host *host, const char *what, struct cgroup_set *out)
{
    struct err err;

    /* Whom a test detaches comes back to it to be reaped. */
    CHECK_INT(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    if (cgroup_set_make(host, test_name(what), out, &err) < 0) {
        test_fail(__FILE__, __LINE__, "%s", err.text);
        exit(1);
    }
}

void limit_set(struct cgroup_set *set, struct cgroup_limits limits)
{
    struct err err;

    if (cgroup_set_limit(set, &limits, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

/* Starts a child that is inside the set before work() begins. */
pid_t start_inside(const struct cgroup_set *set, int (*work)(void))
{
    int go[2];
    char byte = 0;
    struct err err;
    pid_t pid;

    CHECK_INT(pipe2(go, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        (void)close(go[1]);
        _exit(read(go[0], &byte, 1) == 1 ? work() : 99);
    }
    if (cgroup_set_join(set, pid, CGROUP_JOIN_ALL, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    CHECK_INT(write(go[1], "g", 1), 1);
    (void)close(go[0]);
    (void)close(go[1]);
    return pid;
}

int status_of(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

int rest(void)
{
    while (pause() < 0)
        continue;
    return 0;
}

int eat_memory(void)
{
    char *p = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return 2;
    for (size_t i = 0; i < 64 * MIB; i += 4096)
        ((volatile char *)p)[i] = 1;
    return 0;
}

/* How many children it got, or 100 + errno when the refusal was another than expected. */
int fork_until_refused(void)
{
    for (int n = 0; n < 64; n++) {
        pid_t pid = fork();

        if (pid == 0)
            (void)rest();
        if (pid < 0)
            return errno == EAGAIN ? n : 100 + errno;
    }
    return 99;
}

/* As long as it takes to get so much of a processor, however busy the machine is. */
int burn_300_ms(void)
{
    struct timespec used = {0};

    do
        (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    while (used.tv_sec == 0 && used.tv_nsec < 300000000);
    return 0;
}

/* A view of the machine in which there is no v2 tree, as on old systems. */
void open_v1_host(struct cgroup_host *host)
{
    struct cgroup_host both;

    open_host(&both, 0);
    if (!both.trees[0].v2 || both.tree_n < 2)
        test_skip("needs v1 and v2 trees side by side");
    both.trees[0].base[both.trees[0].mount_n] = '\0';
    CHECK_INT(unshare(CLONE_NEWNS), 0);
    CHECK_INT(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    CHECK_INT(umount2(both.trees[0].base, MNT_DETACH), 0);
    open_host(host, 0);
    CHECK_INT(cgroup_mode(host, CGROUP_KILL), CGROUP_NONE);
    CHECK_INT(cgroup_mode(host, CGROUP_FREEZE), CGROUP_V1);
}
