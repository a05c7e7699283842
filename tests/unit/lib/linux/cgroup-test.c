/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/cgroup.h"

/* The texts are read everywhere; the groups themselves need a machine on which we may make some
 * (root here, and the pure v2 guest of tests/flow/vm). Groups are named after the process that
 * runs the tests; whatever a crashed test leaves is removed by the last test or the next run. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/linux/cgroup-parts.h"
#include "lib/linux/sys.h"
#include "test.h"

#define PREFIX "brig-cgtest-"
#define PATIENCE_MS 5000

/* ---- texts ---- */

static const char hybrid_groups[] = "9:name=systemd:/\n"
                                    "8:pids:/\n"
                                    "4:memory:/process_api/fa2d\n"
                                    "2:cpuacct:/\n"
                                    "1:cpu:/\n"
                                    "0::/\n";
static const char hybrid_mounts[] =
    "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
    "33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

static const char v2_groups[] =
    "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope\n";
static const char v2_mounts[] =
    "24 1 0:22 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw\n"
    "30 24 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 "
    "rw,nsdelegate,memory_recursiveprot\n"
    "99 1 0:26 / /srv/jail/sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

static const char docker_v1_groups[] = "11:cpu,cpuacct:/docker/0c4e\n"
                                       "7:memory:/docker/0c4e\n"
                                       "3:pids:/docker/0c4e\n"
                                       "0::/system.slice/containerd.service\n";
static const char docker_v1_mounts[] =
    "900 899 0:29 /docker/0c4e /sys/fs/cgroup/cpu,cpuacct ro,nosuid master:11 - cgroup cgroup "
    "rw,cpu,cpuacct\n"
    "901 899 0:32 /docker/0c4e /sys/fs/cgroup/memory ro,nosuid master:15 - cgroup cgroup "
    "rw,memory\n"
    "902 899 0:33 /docker/ffff /sys/fs/cgroup/pids ro,nosuid master:16 - cgroup cgroup rw,pids\n";

static const char docker_v2_groups[] = "0::/\n";
static const char docker_v2_mounts[] =
    "700 699 0:27 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw\n";

static const char odd_groups[] = "2:memory:/a\n0::/../sibling\n";
static const char odd_mounts[] = "50 1 0:40 / /mnt/c\\040g\\134x rw - cgroup cgroup rw,memory\n"
                                 "51 1 0:41 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

static const struct cgroup_hierarchy *hierarchy_of(const struct cgroup_layout *layout,
                                                   const char *controller)
{
    for (size_t i = 0; i < layout->n; i++)
        if (*controller ? cgroup_list_has(layout->of[i].controllers, ',', str_of(controller))
                        : layout->of[i].v2)
            return &layout->of[i];
    return NULL;
}

TEST(own_groups_are_found_in_the_kernels_texts)
{
    static const struct {
        const char *groups;
        const char *mounts;
        const char *controller; /* "" for v2 */
        const char *dir;        /* NULL: no path leads there */
        size_t mount_n;
    } cases[] = {
        {hybrid_groups,    hybrid_mounts,    "memory",  "/sys/fs/cgroup/memory/process_api/fa2d", 21},
        {hybrid_groups,    hybrid_mounts,    "cpu",     "/sys/fs/cgroup/cpu",                     18},
        {hybrid_groups,    hybrid_mounts,    "cpuacct", "/sys/fs/cgroup/cpuacct",                 22},
        {hybrid_groups,    hybrid_mounts,    "",        "/sys/fs/cgroup/unified",                 22},
        {v2_groups,        v2_mounts,        "",
         "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope",     14},
        {docker_v1_groups, docker_v1_mounts, "cpu",     "/sys/fs/cgroup/cpu,cpuacct",             26},
        {docker_v1_groups, docker_v1_mounts, "memory",  "/sys/fs/cgroup/memory",                  21},
        {docker_v1_groups, docker_v1_mounts, "pids",    NULL,                                     0 },
        {docker_v1_groups, docker_v1_mounts, "",        NULL,                                     0 },
        {docker_v2_groups, docker_v2_mounts, "",        "/sys/fs/cgroup",                         14},
        {v2_groups,        hybrid_groups,    "",        NULL,                                     0 },
        {odd_groups,       odd_mounts,       "memory",  "/mnt/c g\\x/a",                          10},
        {odd_groups,       odd_mounts,       "",        NULL,                                     0 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cgroup_layout layout;
        const struct cgroup_hierarchy *hierarchy;
        char dir[CGROUP_PATH_BYTES] = "";
        size_t mount_n = 0;
        struct err err;

        CHECK_INT(
            cgroup_layout_parse(str_of(cases[i].groups), str_of(cases[i].mounts), &layout, &err),
            0);
        hierarchy = hierarchy_of(&layout, cases[i].controller);
        CHECK(hierarchy != NULL);
        if (!hierarchy)
            continue;
        CHECK_INT(cgroup_own_dir(hierarchy, dir, &mount_n), cases[i].dir != NULL);
        if (cases[i].dir) {
            CHECK_TEXT(dir, cases[i].dir);
            CHECK_INT(mount_n, cases[i].mount_n);
        }
    }
}

TEST(a_kernel_without_cgroups_has_an_empty_layout)
{
    struct cgroup_layout layout = {.n = 9};
    struct err err;

    CHECK_INT(cgroup_layout_parse(str_of(""), str_of(hybrid_mounts), &layout, &err), 0);
    CHECK_INT(layout.n, 0);
}

TEST(a_list_of_groups_that_makes_no_sense_is_refused)
{
    static const struct {
        const char *groups;
        const char *text;
    } cases[] = {
        {"memory:/\n",        "/proc/self/cgroup: line 1 is not \"id:list:/path\""},
        {"1:memory\n",        "/proc/self/cgroup: line 1 is not \"id:list:/path\""},
        {"0::/\n1:cpu:a\n",   "/proc/self/cgroup: line 2 is not \"id:list:/path\""},
        {"x:memory:/\n",      "/proc/self/cgroup: line 1 is not \"id:list:/path\""},
        {"0::/\n\n1:cpu:/\n", "/proc/self/cgroup: line 2 is not \"id:list:/path\""},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cgroup_layout layout = {.n = 7};
        struct err err;

        CHECK_INT(cgroup_layout_parse(str_of(cases[i].groups), str_of(""), &layout, &err), -1);
        CHECK_INT(err.code, ERR_INVALID);
        CHECK_TEXT(err.text, cases[i].text);
        CHECK_INT(layout.n, 7);
    }
}

TEST(more_hierarchies_than_any_kernel_has_are_refused)
{
    char groups[64 * (CGROUP_HIERARCHIES_MAX + 1)] = "";
    struct cgroup_layout layout;
    struct err err;

    for (int i = 0; i <= CGROUP_HIERARCHIES_MAX; i++)
        (void)snprintf(groups + strlen(groups), 64, "%d:name=x%d:/\n", i + 1, i);
    CHECK_INT(cgroup_layout_parse(str_of(groups), str_of(""), &layout, &err), -1);
    CHECK_INT(err.code, ERR_LIMIT);
    CHECK_TEXT(err.text, "/proc/self/cgroup: more than 32 hierarchies");
}

TEST(membership_is_by_whole_names)
{
    static const struct {
        const char *controllers;
        const char *group;
        const char *proc;
        bool within;
    } cases[] = {
        {"",       "/",    "0::/brig-a\n",                  true },
        {"",       "/",    "0::/brig-a/sub\n",              true },
        {"",       "/",    "0::/brig-ab\n",                 false},
        {"",       "/",    "0::/\n",                        false},
        {"",       "/",    "0::/x/brig-a\n",                false},
        {"memory", "/p/q", "4:memory:/p/q/brig-a\n0::/\n",  true },
        {"memory", "/p/q", "4:memory:/p/qq/brig-a\n0::/\n", false},
        {"memory", "/p/q", "4:memory:/p/q\n0::/\n",         false},
        {"memory", "/p/q", "0::/p/q/brig-a\n",              false},
        {"cpu",    "/",    "1:cpu,cpuacct:/brig-a\n",       false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cgroup_tree tree = {.v2 = !*cases[i].controllers};

        (void)snprintf(tree.group, sizeof tree.group, "%s", cases[i].group);
        (void)snprintf(tree.controllers, sizeof tree.controllers, "%s", cases[i].controllers);
        CHECK_INT(cgroup_line_within(str_of(cases[i].proc), &tree, "brig-a"), cases[i].within);
    }
}

TEST(counters_are_found_by_their_whole_key)
{
    static const char text[] = "low 0\nmax 17\noom 2\noom_kill 1\noom_group_kill 4\n";
    uint64_t value = 0;

    CHECK(cgroup_flat_value(str_of(text), "oom_kill", &value));
    CHECK_INT(value, 1);
    CHECK(cgroup_flat_value(str_of(text), "max", &value));
    CHECK_INT(value, 17);
    CHECK(!cgroup_flat_value(str_of(text), "kill", &value));
    CHECK(!cgroup_flat_value(str_of(""), "max", &value));
}

TEST(memory_limits_are_whole_pages)
{
    CHECK_INT(cgroup_memory_round(1), 4096);
    CHECK_INT(cgroup_memory_round(4096), 4096);
    CHECK_INT(cgroup_memory_round(10000), 8192);
    CHECK_INT(cgroup_memory_round(512 * MIB), 512 * MIB);
}

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

/* ---- real groups ---- */

static const char *test_name(const char *what)
{
    static char name[CGROUP_NAME_BYTES];

    (void)snprintf(name, sizeof name, PREFIX "%d-%s", (int)getppid(), what);
    return name;
}

/* Every test that makes groups begins here: without the right to make any it is skipped. */
static void open_host(struct cgroup_host *host, unsigned needed)
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
static void sweep(struct cgroup_set *set)
{
    struct err err;

    if (cgroup_set_kill(set, PATIENCE_MS, &err) < 0 ||
        cgroup_set_remove(set, PATIENCE_MS, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    cgroup_set_done(set);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}
#define SWEPT __attribute__((cleanup(sweep)))

static void make_set(const struct cgroup_host *host, const char *what, struct cgroup_set *out)
{
    struct err err;

    /* Whom a test detaches comes back to it to be reaped. */
    CHECK_INT(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    if (cgroup_set_make(host, test_name(what), out, &err) < 0) {
        test_fail(__FILE__, __LINE__, "%s", err.text);
        exit(1);
    }
}

static void limit_set(struct cgroup_set *set, struct cgroup_limits limits)
{
    struct err err;

    if (cgroup_set_limit(set, &limits, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

/* Starts a child that is inside the set before work() begins. */
static pid_t start_inside(const struct cgroup_set *set, int (*work)(void))
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

static int status_of(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

static int rest(void)
{
    while (pause() < 0)
        continue;
    return 0;
}

#define ALL_LIMITS (1U << CGROUP_MEMORY | 1U << CGROUP_PIDS | 1U << CGROUP_CPU)

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

static int eat_memory(void)
{
    char *p = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return 2;
    for (size_t i = 0; i < 64 * MIB; i += 4096)
        ((volatile char *)p)[i] = 1;
    return 0;
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
    CHECK_INT(usage.oom_kills, 1);
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

/* How many children it got, or 100 + errno when the refusal was another than expected. */
static int fork_until_refused(void)
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

static int burn_a_second(void)
{
    uint64_t end = clock_us() + 1000000;

    while (clock_us() < end)
        continue;
    return 0;
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
    CHECK_INT(status_of(start_inside(&set, burn_a_second)), 0);
    took = clock_us() - began;
    CHECK_INT(cgroup_set_usage(&set, &usage, &err), 0);
    (void)printf("# used %llu us in %llu us with a share of 200/1000\n",
                 (unsigned long long)usage.cpu_us, (unsigned long long)took);
    CHECK(usage.cpu_us > took / 20);
    CHECK(usage.cpu_us < took * 35 / 100);
}

/* ---- ending ---- */

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

/* A view of the machine in which there is no v2 tree, as on old systems. */
static void open_v1_host(struct cgroup_host *host)
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
    CHECK_INT(status_of(start_inside(&set, burn_a_second)), 0);
    CHECK_INT(cgroup_set_usage(&set, &usage, &err), 0);
    CHECK(usage.cpu_us > 200000 && usage.cpu_us < 1500000);
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
    CHECK_INT(usage.oom_kills, 1);
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
    CHECK_INT(usage.oom_kills, 1);
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

TEST(a_group_with_other_peoples_processes_is_not_vacated)
{
    run_delegated(true, true, user_among_others);
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
