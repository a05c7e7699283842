/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/cgroup.h"

/* Who may make groups, how limits hold, how a process gets in. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup-fixture.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/linux/cgroup-parts.h"
#include "lib/linux/sys.h"
#include "test.h"

/* ---- without any right ---- */

TEST(nothing_can_be_limited_on_a_host_without_trees)
{
    struct cgroup_host host = {.tree_n = 0};
    struct cgroup_set set = {.host = NULL};
    struct cgroup_limits limits = {.memory_bytes = MIB};
    struct err err;

    (void)snprintf(host.why[CGROUP_MEMORY], CGROUP_WHY_BYTES, "no tree");
    for (int power = 0; power < CGROUP_POWERS; power++)
        CHECK_INT(cgroup_mode(&host, (enum cgroup_power)power), CGROUP_NONE);
    CHECK_INT(cgroup_set_make(&host, "brig-a", &set, &err), -1);
    CHECK_INT(err.code, ERR_UNAVAILABLE);
    CHECK_TEXT(err.text, "no cgroups can be created: no tree");
    CHECK(set.host == NULL);
    CHECK_INT(cgroup_set_limit(&set, &limits, &err), -1);
    CHECK_INT(err.code, ERR_UNAVAILABLE);
    CHECK_TEXT(err.text, "the memory limit cannot be held by a cgroup: no cgroup was made");
    CHECK_INT(cgroup_set_v2_fd(&set), -1);
    CHECK_INT(cgroup_set_kill(&set, 0, &err), 0);
    CHECK_INT(cgroup_set_remove(&set, 0, &err), 0);
    cgroup_set_done(&set);
}

TEST(an_ordinary_user_without_delegation_may_use_nothing)
{
    struct cgroup_host host;
    struct err err;

    if (geteuid() != 0)
        test_skip("needs root to become a user to whom nothing can be delegated");
    CHECK_INT(setgid(65534), 0);
    CHECK_INT(setuid(65534), 0);
    CHECK_INT(cgroup_probe(&host, &err), 0);
    CHECK_INT(host.tree_n, 0);
    for (int power = 0; power < CGROUP_LIMITS; power++) {
        CHECK_INT(cgroup_mode(&host, (enum cgroup_power)power), CGROUP_NONE);
        CHECK(strstr(host.why[power], "start as root") != NULL);
    }
}

TEST(probing_says_for_each_limit_who_holds_it_or_why_nobody_does)
{
    struct cgroup_host host;
    struct err err;

    CHECK_INT(cgroup_probe(&host, &err), 0);
    for (int power = 0; power < CGROUP_LIMITS; power++) {
        enum cgroup_mode mode = cgroup_mode(&host, (enum cgroup_power)power);

        CHECK((mode == CGROUP_NONE) == (host.why[power][0] != '\0'));
        (void)printf("# %s: %s %s\n", cgroup_power_name((enum cgroup_power)power),
                     cgroup_mode_name(mode), host.why[power]);
    }
    for (size_t i = 0; i < host.tree_n; i++)
        (void)printf("# groups are made in %s\n", host.trees[i].base);
}

/* ---- limits and members ---- */

TEST(names_that_could_lead_elsewhere_are_refused)
{
    static const char too_long[] =
        "brig-0123456789-0123456789-0123456789-0123456789-0123456789-0123";
    static const char *const names[] = {"",     "..",    "../brig", "brig/a",  "a/../../b",
                                        "Brig", "1brig", "brig a",  "brig\n1", too_long};
    struct cgroup_host host = {.tree_n = 0};

    for (size_t i = 0; i < COUNT(names); i++) {
        struct cgroup_set set = {.host = NULL};
        struct err err;

        CHECK_INT(cgroup_set_make(&host, names[i], &set, &err), -1);
        CHECK_INT(err.code, ERR_INVALID);
        CHECK_INT(cgroup_set_find(&host, names[i], &set, &err), -1);
        CHECK_INT(err.code, ERR_INVALID);
    }
}

TEST(limits_read_back_as_they_were_written)
{
    static const struct cgroup_limits cases[] = {
        {.memory_bytes = 512 * MIB, .pids = 256, .cpu_millis = 1000},
        {.memory_bytes = 16 * MIB,  .pids = 1,   .cpu_millis = 10  },
        {.memory_bytes = 64 * MIB,  .pids = 32,  .cpu_millis = 1   },
        {.memory_bytes = 1 * GIB,   .pids = 999, .cpu_millis = 1500},
    };
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};
    struct cgroup_limits got;
    struct err err;

    open_host(&host, ALL_LIMITS);
    make_set(&host, "limits", &set);
    CHECK_INT(cgroup_set_read(&set, &got, &err), 0);
    CHECK_INT(got.memory_bytes, 0);
    CHECK_INT(got.pids, 0);
    CHECK_INT(got.cpu_millis, 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        limit_set(&set, cases[i]);
        CHECK_INT(cgroup_set_read(&set, &got, &err), 0);
        CHECK_INT(got.memory_bytes, cases[i].memory_bytes);
        CHECK_INT(got.pids, cases[i].pids);
        CHECK_INT(got.cpu_millis, cases[i].cpu_millis);
    }
    limit_set(&set, (struct cgroup_limits){.memory_bytes = 10 * MIB + 5});
    CHECK_INT(cgroup_set_read(&set, &got, &err), 0);
    CHECK_INT(got.memory_bytes, 10 * MIB);
    CHECK_INT(got.pids, 999); /* 0 left it alone */
}

TEST(limits_beyond_arithmetic_are_refused)
{
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};
    struct cgroup_limits wrong = {.cpu_millis = 1000001};
    struct err err;

    open_host(&host, ALL_LIMITS);
    make_set(&host, "beyond", &set);
    CHECK_INT(cgroup_set_limit(&set, &wrong, &err), -1);
    CHECK_INT(err.code, ERR_INVALID);
    CHECK_TEXT(err.text, "a cpu limit of 1000001 thousandths of a CPU; the most is 1000000");
}

TEST(a_limit_no_tree_serves_is_refused_with_the_hosts_reason)
{
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};
    struct cgroup_limits limits = {.pids = 5};
    struct err err;

    open_host(&host, 0);
    for (size_t i = 0; i < host.tree_n; i++)
        host.trees[i].serves &= ~(1U << CGROUP_PIDS);
    (void)snprintf(host.why[CGROUP_PIDS], CGROUP_WHY_BYTES, "it was taken away");
    make_set(&host, "unserved", &set);
    CHECK_INT(cgroup_set_limit(&set, &limits, &err), -1);
    CHECK_INT(err.code, ERR_UNAVAILABLE);
    CHECK_TEXT(err.text, "the pids limit cannot be held by a cgroup: it was taken away");
}

TEST(a_joined_process_is_contained_and_its_parent_is_not)
{
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};
    bool inside = false;
    struct err err;
    pid_t pid;

    open_host(&host, 0);
    make_set(&host, "join", &set);
    CHECK_INT(cgroup_set_is_empty(&set, &inside, &err), 0);
    CHECK(inside);
    pid = start_inside(&set, rest);
    CHECK_INT(cgroup_set_contains(&set, pid, &inside, &err), 0);
    CHECK(inside);
    CHECK_INT(cgroup_set_contains(&set, getpid(), &inside, &err), 0);
    CHECK(!inside);
    CHECK_INT(cgroup_set_is_empty(&set, &inside, &err), 0);
    CHECK(!inside);
    CHECK_INT(cgroup_set_kill(&set, PATIENCE_MS, &err), 0);
    CHECK_INT(WTERMSIG(status_of(pid)), SIGKILL);
    CHECK_INT(cgroup_set_contains(&set, pid, &inside, &err), -1);
    CHECK_INT(err.code, ERR_NOT_FOUND);
    CHECK_INT(cgroup_set_join(&set, pid, CGROUP_JOIN_ALL, &err), -1);
    CHECK_INT(err.os, ESRCH);
}

TEST(half_joined_is_not_contained)
{
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};
    bool inside = true;
    struct err err;
    pid_t pid;

    open_host(&host, 0);
    if (host.tree_n < 2 || !host.trees[0].v2)
        test_skip("needs v1 and v2 trees side by side");
    make_set(&host, "half", &set);
    pid = fork();
    if (pid == 0)
        _exit(rest());
    CHECK_INT(cgroup_set_join(&set, pid, CGROUP_JOIN_V1, &err), 0);
    CHECK_INT(cgroup_set_contains(&set, pid, &inside, &err), 0);
    CHECK(!inside);
    /* and the kill reaches it all the same */
    CHECK_INT(cgroup_set_kill(&set, PATIENCE_MS, &err), 0);
    CHECK_INT(WTERMSIG(status_of(pid)), SIGKILL);
}

TEST(a_child_can_be_cloned_into_the_v2_group)
{
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};
    struct clone_request request = {.flags = 0};
    AUTO_FD int pidfd = -1;
    bool inside = false;
    struct err err;
    pid_t pid;

    open_host(&host, 0);
    make_set(&host, "clone", &set);
    request.cgroup_fd = cgroup_set_v2_fd(&set);
    if (request.cgroup_fd < 0)
        test_skip("no v2 tree");
    pid = sys_clone(&request, &pidfd);
    if (pid == 0)
        _exit(rest());
    CHECK(pid > 0);
    CHECK_INT(cgroup_set_join(&set, pid, CGROUP_JOIN_V1, &err), 0);
    CHECK_INT(cgroup_set_contains(&set, pid, &inside, &err), 0);
    CHECK(inside);
    CHECK_INT(cgroup_set_kill(&set, PATIENCE_MS, &err), 0);
    CHECK_INT(WTERMSIG(status_of(pid)), SIGKILL);
}

/* Clones into the v2 group, if there is one, and into the given namespaces; the child enters the
 * rest itself. */
static void clone_and_enter(uint64_t flags)
{
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};
    struct clone_request request = {.flags = flags};
    AUTO_FD int pidfd = -1;
    bool inside = false;
    struct err err;
    int ready[2];
    char byte;
    pid_t pid;

    open_host(&host, 0);
    make_set(&host, "enter", &set);
    request.cgroup_fd = cgroup_set_v2_fd(&set);
    CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
    pid = sys_clone(&request, &pidfd);
    if (pid == 0) {
        uint64_t began = clock_us();

        if (cgroup_set_enter(&set, request.cgroup_fd < 0 ? CGROUP_JOIN_ALL : CGROUP_JOIN_V1, &err) <
            0) {
            (void)printf("# %s\n", err.text);
            _exit(1);
        }
        (void)printf("# entered in %llu us\n", (unsigned long long)(clock_us() - began));
        _exit(write(ready[1], "r", 1) == 1 ? rest() : 1);
    }
    CHECK(pid > 0);
    (void)close(ready[1]);
    CHECK_INT(read(ready[0], &byte, 1), 1);
    CHECK_INT(cgroup_set_contains(&set, pid, &inside, &err), 0);
    CHECK(inside);
    CHECK_INT(cgroup_set_kill(&set, PATIENCE_MS, &err), 0);
    CHECK_INT(WTERMSIG(status_of(pid)), SIGKILL);
}

TEST(a_child_enters_by_itself)
{
    clone_and_enter(0);
}

TEST(a_child_in_new_namespaces_enters_by_itself)
{
    clone_and_enter(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC);
}

/* What the groups would refuse goes through descriptors that somebody else opened. Answers 2 when
 * it was not refused. */
static int enter_as_nobody(const struct cgroup_set *set, const int *fds, size_t n)
{
    struct err err;

    if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
        return 1;
    if (n > 0 && cgroup_set_enter(set, CGROUP_JOIN_V1, &err) == 0)
        return 2;
    if (cgroup_enter_doors(fds, n, &err) < 0) {
        (void)printf("# %s\n", err.text);
        return 3;
    }
    return 0;
}

TEST(a_child_without_rights_enters_by_descriptors)
{
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};
    struct clone_request request = {.flags = 0};
    AUTO_FD int pidfd = -1;
    int fds[CGROUP_TREES_MAX];
    bool inside = false;
    struct err err;
    int ready[2];
    size_t n = 0;
    char answer = 1;
    pid_t pid;

    open_host(&host, 0);
    CHECK_INT(cgroup_set_begin(&host, test_name("parts"), &set, &err), 0);
    request.cgroup_fd = cgroup_set_v2_fd(&set);
    CHECK_INT(cgroup_set_complete(&set, &err), 0);
    CHECK_INT(cgroup_set_doors(&set, fds, &n, &err), 0);
    CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
    pid = sys_clone(&request, &pidfd);
    if (pid == 0) {
        answer = (char)enter_as_nobody(&set, fds, n);
        _exit(write(ready[1], &answer, 1) == 1 ? rest() : 1);
    }
    CHECK(pid > 0);
    for (size_t i = 0; i < n; i++)
        (void)close(fds[i]);
    (void)close(ready[1]);
    CHECK_INT(read(ready[0], &answer, 1), 1);
    CHECK_INT(answer, 0);
    CHECK_INT(cgroup_set_contains(&set, pid, &inside, &err), 0);
    CHECK(inside);
    CHECK_INT(cgroup_set_kill(&set, PATIENCE_MS, &err), 0);
    CHECK_INT(WTERMSIG(status_of(pid)), SIGKILL);
}

static void *rest_in_thread(void *nothing)
{
    (void)rest();
    return nothing;
}

TEST(a_process_with_two_threads_does_not_enter_with_one_of_them)
{
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};
    bool inside = true;
    pthread_t thread;
    struct err err;

    open_host(&host, 0);
    make_set(&host, "threads", &set);
    CHECK_INT(pthread_create(&thread, NULL, rest_in_thread, NULL), 0);
    CHECK_INT(cgroup_set_enter(&set, CGROUP_JOIN_ALL, &err), -1);
    CHECK_INT(err.code, ERR_INVALID);
    CHECK_TEXT(err.text, "only a process with one thread can enter a cgroup");
    CHECK_INT(cgroup_set_is_empty(&set, &inside, &err), 0);
    CHECK(inside);
}

TEST(memory_beyond_the_limit_is_killed_and_counted)
{
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};
    struct cgroup_usage usage;
    struct err err;
    int status;

    open_host(&host, 1U << CGROUP_MEMORY);
    make_set(&host, "oom", &set);
    limit_set(&set, (struct cgroup_limits){.memory_bytes = 16 * MIB});
    status = status_of(start_inside(&set, eat_memory));
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK_INT(cgroup_set_usage(&set, &usage, &err), 0);
    CHECK(usage.oom_kills == 1 || usage.oom_kills == 2); /* v2 counts process and group */
    CHECK(usage.peak_memory_bytes == 0 || usage.peak_memory_bytes == 16 * MIB);
}

TEST(memory_within_the_limit_is_left_alone)
{
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};
    struct cgroup_usage usage;
    struct err err;

    open_host(&host, 1U << CGROUP_MEMORY);
    make_set(&host, "fits", &set);
    limit_set(&set, (struct cgroup_limits){.memory_bytes = 96 * MIB});
    CHECK_INT(status_of(start_inside(&set, eat_memory)), 0);
    CHECK_INT(cgroup_set_usage(&set, &usage, &err), 0);
    CHECK_INT(usage.oom_kills, 0);
    CHECK(usage.peak_memory_bytes == 0 || usage.peak_memory_bytes >= 64 * MIB);
}

TEST(forks_beyond_the_limit_are_refused_and_counted)
{
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};
    struct cgroup_usage usage;
    struct err err;

    open_host(&host, 1U << CGROUP_PIDS);
    make_set(&host, "pids", &set);
    limit_set(&set, (struct cgroup_limits){.pids = 5});
    CHECK_INT(WEXITSTATUS(status_of(start_inside(&set, fork_until_refused))), 4);
    CHECK_INT(cgroup_set_usage(&set, &usage, &err), 0);
    CHECK_INT(usage.pids_refused, 1);
}

TEST(processor_time_stays_within_its_share)
{
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};
    struct cgroup_usage usage;
    struct err err;
    uint64_t began;
    uint64_t took;

    open_host(&host, 1U << CGROUP_CPU);
    make_set(&host, "cpu", &set);
    limit_set(&set, (struct cgroup_limits){.cpu_millis = 200});
    began = clock_us();
    CHECK_INT(status_of(start_inside(&set, burn_300_ms)), 0);
    took = clock_us() - began;
    CHECK_INT(cgroup_set_usage(&set, &usage, &err), 0);
    (void)printf("# used %llu us in %llu us with a share of 200/1000\n",
                 (unsigned long long)usage.cpu_us, (unsigned long long)took);
    CHECK(usage.cpu_us > 200000);
    CHECK(usage.cpu_us < took * 35 / 100);
}

/* ---- recycling ---- */

TEST(a_reset_set_is_as_good_as_new)
{
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};
    struct cgroup_limits limits;
    struct cgroup_usage usage;
    struct err err;
    pid_t pid;

    open_host(&host, ALL_LIMITS);
    make_set(&host, "reset", &set);
    limit_set(&set, (struct cgroup_limits){.memory_bytes = 16 * MIB, .pids = 5, .cpu_millis = 900});
    (void)status_of(start_inside(&set, eat_memory));
    (void)status_of(start_inside(&set, fork_until_refused));
    CHECK_INT(cgroup_set_reset(&set, &err), -1);
    CHECK_INT(err.code, ERR_CONFLICT);
    CHECK_INT(cgroup_set_kill(&set, PATIENCE_MS, &err), 0);
    CHECK_INT(cgroup_set_usage(&set, &usage, &err), 0);
    CHECK(usage.oom_kills == 1 || usage.oom_kills == 2); /* v2 counts process and group */
    CHECK_INT(usage.pids_refused, 1);

    if (cgroup_set_reset(&set, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    CHECK_INT(cgroup_set_read(&set, &limits, &err), 0);
    CHECK_INT(limits.memory_bytes, 0);
    CHECK_INT(limits.pids, 0);
    CHECK_INT(limits.cpu_millis, 0);
    CHECK_INT(cgroup_set_usage(&set, &usage, &err), 0);
    CHECK_INT(usage.oom_kills, 0);
    CHECK_INT(usage.pids_refused, 0);
    CHECK(usage.cpu_us < 10000);
    CHECK(usage.peak_memory_bytes < 4 * MIB);

    limit_set(&set, (struct cgroup_limits){.memory_bytes = 32 * MIB, .pids = 9, .cpu_millis = 500});
    pid = start_inside(&set, eat_memory);
    CHECK_INT(WTERMSIG(status_of(pid)), SIGKILL);
    CHECK_INT(cgroup_set_usage(&set, &usage, &err), 0);
    CHECK(usage.oom_kills == 1 || usage.oom_kills == 2); /* v2 counts process and group */
    CHECK(usage.cpu_us > 0);
}

/* ---- delegation, in a tree we build ourselves ---- */

#define NOBODY_ID 65534

static void write_number(const char *dir, const char *file, int number)
{
    char path[CGROUP_PATH_BYTES + 64];
    char text[24];
    struct err err;

    (void)snprintf(path, sizeof path, "%s/%s", dir, file);
    (void)snprintf(text, sizeof text, "%d", number);
    if (file_write(AT_FDCWD, path, text, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

static void give_away(const char *dir)
{
    static const char *const files[] = {"", "cgroup.procs", "cgroup.subtree_control",
                                        "cgroup.threads"};
    char path[CGROUP_PATH_BYTES + 64];

    for (size_t i = 0; i < COUNT(files); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        CHECK_INT(chown(path, NOBODY_ID, NOBODY_ID), 0);
    }
}

/* What systemd does for a user: a group that is his, with a group inside in which he starts.
 * Runs work as that user; with `alone` he starts in the upper one. */
static void run_delegated(bool alone, bool crowded, int (*work)(const char *dir))
{
    struct cgroup_host host;
    SWEPT struct cgroup_set set = {.host = NULL};
    char dir[CGROUP_PATH_BYTES + CGROUP_NAME_BYTES];
    char session[sizeof dir + 16];
    int status;
    pid_t other = 0;
    pid_t pid;

    open_host(&host, ALL_LIMITS);
    if (geteuid() != 0 || cgroup_mode(&host, CGROUP_MEMORY) != CGROUP_V2)
        test_skip("needs root in a pure v2 tree, as in tests/flow/vm");
    make_set(&host, "deleg", &set);
    (void)snprintf(dir, sizeof dir, "%s/%s", host.trees[0].base, set.name);
    (void)snprintf(session, sizeof session, "%s/session", dir);
    CHECK_INT(chmod(dir, 0755), 0);
    CHECK_INT(mkdir(session, 0755), 0);
    give_away(dir);
    give_away(session);
    if (crowded && (other = fork()) == 0)
        (void)rest();
    if (crowded)
        write_number(alone ? dir : session, "cgroup.procs", other);
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0) {
        write_number(alone ? dir : session, "cgroup.procs", getpid());
        CHECK_INT(setgid(NOBODY_ID), 0);
        CHECK_INT(setuid(NOBODY_ID), 0);
        (void)fflush(stdout);
        _exit(work(dir));
    }
    status = status_of(pid);
    CHECK_INT(status, 0);
    if (other) {
        (void)kill(other, SIGKILL);
        (void)status_of(other);
    }
    (void)rmdir(session);
    (void)snprintf(session, sizeof session, "%s/" CGROUP_LEFT_NAME, dir);
    (void)rmdir(session);
}

/* Inside the child, where a failed CHECK would be lost. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)printf("# %s:%d: not true: %s (%s)\n", __FILE__, __LINE__, #condition,           \
                         err.text);                                                                \
            (void)fflush(stdout);                                                                  \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static int hold_a_limit(const struct cgroup_host *host, const char *what)
{
    struct cgroup_set set = {.host = NULL};
    struct cgroup_limits limits = {.memory_bytes = 16 * MIB, .pids = 9, .cpu_millis = 300};
    struct cgroup_limits got = {.pids = 0};
    struct err err = {.code = ERR_OS};
    char name[CGROUP_NAME_BYTES];
    pid_t pid;
    int status = 0;

    (void)snprintf(name, sizeof name, PREFIX "%d-%s", (int)getpid(), what);
    EXPECT(cgroup_set_make(host, name, &set, &err) == 0);
    EXPECT(cgroup_set_limit(&set, &limits, &err) == 0);
    EXPECT(cgroup_set_read(&set, &got, &err) == 0);
    EXPECT(got.memory_bytes == limits.memory_bytes && got.pids == 9 && got.cpu_millis == 300);
    pid = start_inside(&set, eat_memory);
    EXPECT(waitpid(pid, &status, 0) == pid);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT(cgroup_set_remove(&set, PATIENCE_MS, &err) == 0);
    return 0;
}

static int user_beside_his_session(const char *dir)
{
    struct cgroup_host host;
    struct err err = {.code = ERR_OS};

    EXPECT(cgroup_probe(&host, &err) == 0);
    EXPECT(cgroup_mode(&host, CGROUP_MEMORY) == CGROUP_V2);
    EXPECT(cgroup_mode(&host, CGROUP_PIDS) == CGROUP_V2);
    EXPECT(cgroup_mode(&host, CGROUP_CPU) == CGROUP_V2);
    EXPECT(strcmp(host.trees[0].base, dir) == 0);
    EXPECT(!host.trees[0].vacate);
    return hold_a_limit(&host, "user");
}

static int user_alone_in_his_group(const char *dir)
{
    struct cgroup_host host;
    struct err err = {.code = ERR_OS};

    EXPECT(cgroup_probe(&host, &err) == 0);
    EXPECT(cgroup_mode(&host, CGROUP_MEMORY) == CGROUP_V2);
    EXPECT(strcmp(host.trees[0].base, dir) == 0);
    EXPECT(host.trees[0].vacate);
    EXPECT(hold_a_limit(&host, "first") == 0);
    /* He has moved; asking again leads to the same place without moving again. */
    EXPECT(cgroup_probe(&host, &err) == 0);
    EXPECT(strcmp(host.trees[0].base, dir) == 0);
    EXPECT(!host.trees[0].vacate);
    return hold_a_limit(&host, "second");
}

static int user_with_helpers(const char *dir)
{
    struct cgroup_host host;
    struct err err = {.code = ERR_OS};
    pid_t helper;
    int failed;

    EXPECT(cgroup_settle(&err) == 0);
    helper = fork();
    if (helper == 0)
        (void)rest();
    EXPECT(helper > 0 && cgroup_probe(&host, &err) == 0);
    EXPECT(strcmp(host.trees[0].base, dir) == 0);
    EXPECT(cgroup_mode(&host, CGROUP_MEMORY) == CGROUP_V2);
    failed = hold_a_limit(&host, "helped");
    EXPECT(kill(helper, SIGKILL) == 0 && waitpid(helper, NULL, 0) == helper);
    return failed;
}

static int user_among_others(const char *dir)
{
    struct cgroup_host host;
    struct cgroup_set set = {.host = NULL};
    struct err err = {.code = ERR_OS};

    EXPECT(cgroup_probe(&host, &err) == 0);
    EXPECT(cgroup_mode(&host, CGROUP_MEMORY) == CGROUP_NONE);
    EXPECT(strstr(host.why[CGROUP_MEMORY], "holds other processes") != NULL);
    /* No limits, but the kill and the freeze. */
    EXPECT(cgroup_mode(&host, CGROUP_KILL) == CGROUP_V2);
    EXPECT(strcmp(host.trees[0].base, dir) == 0);
    EXPECT(cgroup_set_make(&host, "brig-cgtest-plain", &set, &err) == 0);
    EXPECT(start_inside(&set, rest) > 0);
    EXPECT(cgroup_set_kill(&set, PATIENCE_MS, &err) == 0);
    EXPECT(cgroup_set_remove(&set, PATIENCE_MS, &err) == 0);
    return 0;
}

TEST(a_user_with_a_delegated_parent_makes_limited_groups_beside_his_session)
{
    run_delegated(false, true, user_beside_his_session);
}

TEST(a_user_alone_in_a_delegated_group_vacates_it)
{
    run_delegated(true, false, user_alone_in_his_group);
}

TEST(who_settles_first_can_have_helpers_beside_him)
{
    run_delegated(true, false, user_with_helpers);
}

TEST(a_group_with_other_peoples_processes_is_not_vacated)
{
    run_delegated(true, true, user_among_others);
}
