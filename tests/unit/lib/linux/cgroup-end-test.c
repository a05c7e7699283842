/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/cgroup.h"

/* Killing, freezing, removing, and what a dead run leaves behind. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cgroup-fixture.h"
#include "lib/base/clock.h"
#include "test.h"

#define CROWD 60

static int detach_a_crowd(void)
{
    (void)signal(SIGTERM, SIG_IGN);
    for (int i = 0; i < CROWD; i++) {
        if (fork() == 0) {
            (void)setsid();
            if (i % 2)
                (void)raise(SIGSTOP);
            (void)rest();
        }
    }
    return 0;
}

static void kill_a_crowd(struct cgroup_set *set)
{
    uint64_t began;
    bool empty = false;
    struct err err;

    CHECK_INT(status_of(start_inside(set, detach_a_crowd)), 0);
    CHECK_INT(cgroup_set_is_empty(set, &empty, &err), 0);
    CHECK(!empty);
    began = clock_us();
    if (cgroup_set_kill(set, PATIENCE_MS, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    (void)printf("# killed %d in %llu us\n", CROWD, (unsigned long long)(clock_us() - began));
    CHECK_INT(cgroup_set_is_empty(set, &empty, &err), 0);
    CHECK(empty);
}

TEST(killing_leaves_nobody_detached_stopped_or_deaf)
{
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};

    open_host(&host, 0);
    make_set(&host, "kill", &set);
    kill_a_crowd(&set);
}

TEST(killing_works_with_v1_alone)
{
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};

    open_v1_host(&host);
    make_set(&host, "kill-v1", &set);
    CHECK_INT(cgroup_set_v2_fd(&set), -1);
    kill_a_crowd(&set);
}

/* The parent goes, the child goes on: whoever is listed is gone when the signal comes. */
static int fork_without_end(void)
{
    while (fork() <= 0)
        continue;
    return 0;
}

static void kill_a_runner(const struct cgroup_host *host, const char *what)
{
    SWEPT struct cgroup_set set = {.host = NULL};
    struct err err;

    make_set(host, what, &set);
    CHECK_INT(status_of(start_inside(&set, fork_without_end)), 0);
    if (cgroup_set_kill(&set, PATIENCE_MS, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

TEST(killing_catches_whoever_forks_faster_than_one_can_look)
{
    struct cgroup_host host;

    open_host(&host, 0);
    kill_a_runner(&host, "chase");
}

TEST(killing_catches_the_fast_with_v1_alone)
{
    struct cgroup_host host;

    open_v1_host(&host);
    kill_a_runner(&host, "chase-v1");
}

/* A child that counts in shared memory, to see whether it runs. */
static volatile uint64_t *ticks;

static int tick(void)
{
    while (++*ticks)
        continue;
    return 0;
}

static void freeze_and_thaw(struct cgroup_set *set)
{
    struct timespec moment = {.tv_nsec = 50000000};
    uint64_t frozen_at;
    struct err err;

    ticks = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(ticks != MAP_FAILED);
    (void)start_inside(set, tick);
    if (cgroup_set_freeze(set, PATIENCE_MS, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    frozen_at = *ticks;
    (void)nanosleep(&moment, NULL); /* long enough for a runner to be seen */
    CHECK_INT(*ticks, frozen_at);
    if (cgroup_set_thaw(set, PATIENCE_MS, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    for (int i = 0; i < 100 && *ticks == frozen_at; i++)
        (void)nanosleep(&moment, NULL);
    CHECK(*ticks > frozen_at);
    /* and the frozen can be killed */
    CHECK_INT(cgroup_set_freeze(set, PATIENCE_MS, &err), 0);
    CHECK_INT(cgroup_set_kill(set, PATIENCE_MS, &err), 0);
}

TEST(the_frozen_stand_still_until_thawed_and_can_be_killed)
{
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};

    open_host(&host, 0);
    if (cgroup_mode(&host, CGROUP_FREEZE) == CGROUP_NONE)
        test_skip("no tree that freezes");
    make_set(&host, "freeze", &set);
    freeze_and_thaw(&set);
}

TEST(freezing_works_with_v1_alone)
{
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};

    open_v1_host(&host);
    make_set(&host, "freeze-v1", &set);
    freeze_and_thaw(&set);
}

TEST(processor_time_is_measured_with_v1_alone)
{
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};
    struct cgroup_usage usage;
    struct err err;

    open_v1_host(&host);
    make_set(&host, "time-v1", &set);
    CHECK_INT(status_of(start_inside(&set, burn_300_ms)), 0);
    CHECK_INT(cgroup_set_usage(&set, &usage, &err), 0);
    CHECK(usage.cpu_us > 200000 && usage.cpu_us < 600000);
}

TEST(a_set_in_use_is_not_removed)
{
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};
    char text[200];
    struct err err;
    pid_t pid;

    open_host(&host, 0);
    make_set(&host, "busy", &set);
    pid = start_inside(&set, rest);
    CHECK_INT(cgroup_set_remove(&set, 30, &err), -1);
    CHECK_INT(err.code, ERR_TIMEOUT);
    (void)snprintf(text, sizeof text,
                   "the cgroup %s cannot be removed after 30 ms: processes are still in it",
                   test_name("busy"));
    CHECK_TEXT(err.text, text);
    CHECK_INT(cgroup_set_kill(&set, PATIENCE_MS, &err), 0);
    CHECK_INT(WTERMSIG(status_of(pid)), SIGKILL);
    CHECK_INT(cgroup_set_remove(&set, PATIENCE_MS, &err), 0);
    CHECK(set.host == NULL);
    CHECK_INT(cgroup_set_remove(&set, 0, &err), 0);
    CHECK_INT(cgroup_set_find(&host, test_name("busy"), &set, &err), -1);
    CHECK_INT(err.code, ERR_NOT_FOUND);
}

TEST(a_name_in_use_is_a_conflict_and_stays_what_it_was)
{
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};
    struct cgroup_set second = {.host = NULL};
    bool inside = false;
    struct err err;
    pid_t pid;

    open_host(&host, 0);
    make_set(&host, "twice", &set);
    pid = start_inside(&set, rest);
    CHECK_INT(cgroup_set_make(&host, test_name("twice"), &second, &err), -1);
    CHECK_INT(err.code, ERR_CONFLICT);
    CHECK(strstr(err.text, "exists already") != NULL);
    CHECK(second.host == NULL);
    CHECK_INT(cgroup_set_contains(&set, pid, &inside, &err), 0);
    CHECK(inside);
}

TEST(a_failed_make_leaves_no_groups)
{
    struct cgroup_host host;
    struct cgroup_set set = {.host = NULL};
    struct err err;

    open_host(&host, 0);
    if (host.tree_n < 2)
        test_skip("needs more than one tree");
    (void)snprintf(host.trees[host.tree_n - 1].base, CGROUP_PATH_BYTES, "/proc/self/nowhere");
    CHECK_INT(cgroup_set_make(&host, test_name("failed"), &set, &err), -1);
    CHECK_INT(err.os, ENOENT);
    CHECK(set.host == NULL);
    host.tree_n--;
    CHECK_INT(cgroup_set_find(&host, test_name("failed"), &set, &err), -1);
    CHECK_INT(err.code, ERR_NOT_FOUND);
}

/* ---- leftovers ---- */

struct seen {
    const char *name;
    unsigned times;
};

static int on_seen(void *context, const char *name, struct err *err)
{
    struct seen *seen = context;

    (void)err;
    seen->times += strcmp(name, seen->name) == 0;
    return 0;
}

TEST(another_process_finds_a_set_but_claims_it_only_after_its_maker)
{
    struct cgroup_host host;
    SWEPT struct cgroup_set found = {.host = NULL};
    const char *name = test_name("orphan");
    struct seen seen = {.name = name};
    bool empty = true;
    struct err err;
    int ready[2];
    char byte;
    pid_t maker;

    open_host(&host, 0);
    CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
    maker = fork();
    if (maker == 0) {
        struct cgroup_set set = {.host = NULL};

        (void)close(ready[0]);
        if (cgroup_set_make(&host, name, &set, &err) < 0 ||
            cgroup_set_join(&set, getpid(), CGROUP_JOIN_ALL, &err) < 0)
            _exit(1);
        if (fork() == 0) { /* somebody inside who outlives the maker */
            cgroup_set_done(&set);
            _exit(write(ready[1], "r", 1) == 1 ? rest() : 1);
        }
        (void)rest();
    }
    (void)close(ready[1]);
    CHECK_INT(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    CHECK_INT(cgroup_list(&host, PREFIX, on_seen, &seen, &err), 0);
    CHECK_INT(seen.times, 1);
    CHECK_INT(cgroup_set_find(&host, name, &found, &err), 0);
    CHECK_INT(cgroup_set_claim(&found, &err), -1);
    CHECK_INT(err.code, ERR_CONFLICT);
    CHECK_INT(cgroup_set_is_empty(&found, &empty, &err), 0);
    CHECK(!empty);

    (void)kill(maker, SIGKILL);
    (void)status_of(maker);
    CHECK_INT(cgroup_set_claim(&found, &err), 0);
    CHECK_INT(cgroup_set_kill(&found, PATIENCE_MS, &err), 0);
    CHECK_INT(cgroup_set_remove(&found, PATIENCE_MS, &err), 0);
    seen.times = 0;
    CHECK_INT(cgroup_list(&host, PREFIX, on_seen, &seen, &err), 0);
    CHECK_INT(seen.times, 0);
}

TEST(a_set_made_elsewhere_in_the_trees_is_found)
{
    struct cgroup_host host;
    struct cgroup_host elsewhere;
    SWEPT struct cgroup_set outer = {.host = NULL};
    SWEPT struct cgroup_set inner = {.host = NULL};
    SWEPT struct cgroup_set found = {.host = NULL};
    struct err err;

    open_host(&host, 0);
    make_set(&host, "outer", &outer);
    elsewhere = host;
    for (size_t i = 0; i < host.tree_n; i++)
        (void)snprintf(elsewhere.trees[i].base, CGROUP_PATH_BYTES, "%.800s/%s", host.trees[i].base,
                       test_name("outer"));
    make_set(&elsewhere, "inner", &inner);
    CHECK_INT(cgroup_set_find(&host, test_name("inner"), &found, &err), 0);
    for (size_t i = 0; i < host.tree_n; i++)
        CHECK(found.dir_fd[i] >= 0);
    CHECK_INT(cgroup_set_remove(&found, PATIENCE_MS, &err), 0);
    CHECK_INT(cgroup_set_find(&elsewhere, test_name("inner"), &found, &err), -1);
    CHECK_INT(err.code, ERR_NOT_FOUND);
}

TEST(others_cannot_look_into_a_set)
{
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};

    open_host(&host, 0);
    make_set(&host, "private", &set);
    for (size_t i = 0; i < host.tree_n; i++) {
        struct stat st;

        CHECK_INT(fstat(set.dir_fd[i], &st), 0);
        CHECK_INT(st.st_mode & 0777, 0700);
    }
}

/* ---- last: what the tests above left ---- */

static int on_leftover(void *context, const char *name, struct err *err)
{
    const struct cgroup_host *host = context;
    AUTO_CGROUP_SET struct cgroup_set set = {.host = NULL};
    char ours[CGROUP_NAME_BYTES];

    (void)snprintf(ours, sizeof ours, PREFIX "%d-", (int)getppid());
    if (strncmp(name, ours, strlen(ours)) == 0)
        test_fail(__FILE__, __LINE__, "%s was left behind", name);
    /* Others may be testing at this moment: a claim says whether they are. */
    if (cgroup_set_find(host, name, &set, err) < 0 || cgroup_set_claim(&set, err) < 0)
        return 0;
    (void)printf("# removing %s, left by a run that died\n", name);
    return cgroup_set_kill(&set, PATIENCE_MS, err) < 0 ||
                   cgroup_set_remove(&set, PATIENCE_MS, err) < 0
               ? -1
               : 0;
}

TEST(no_group_is_left_behind)
{
    struct cgroup_host host;
    struct err err;

    open_host(&host, 0);
    if (cgroup_list(&host, PREFIX, on_leftover, &host, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}
