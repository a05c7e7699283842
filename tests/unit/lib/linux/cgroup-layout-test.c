/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/cgroup-parts.h"

/* What the kernel writes about cgroups, from texts of several kinds of machine. */

#include <stdio.h>

#include "lib/base/limits.h"
#include "test.h"

static const char hybrid_groups[] = "9:name=systemd:/\n"
                                    "8:pids:/\n"
                                    "4:memory:/session/7\n"
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
        {hybrid_groups,    hybrid_mounts,    "memory",  "/sys/fs/cgroup/memory/session/7",    21},
        {hybrid_groups,    hybrid_mounts,    "cpu",     "/sys/fs/cgroup/cpu",                 18},
        {hybrid_groups,    hybrid_mounts,    "cpuacct", "/sys/fs/cgroup/cpuacct",             22},
        {hybrid_groups,    hybrid_mounts,    "",        "/sys/fs/cgroup/unified",             22},
        {v2_groups,        v2_mounts,        "",
         "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope", 14},
        {docker_v1_groups, docker_v1_mounts, "cpu",     "/sys/fs/cgroup/cpu,cpuacct",         26},
        {docker_v1_groups, docker_v1_mounts, "memory",  "/sys/fs/cgroup/memory",              21},
        {docker_v1_groups, docker_v1_mounts, "pids",    NULL,                                 0 },
        {docker_v1_groups, docker_v1_mounts, "",        NULL,                                 0 },
        {docker_v2_groups, docker_v2_mounts, "",        "/sys/fs/cgroup",                     14},
        {v2_groups,        hybrid_groups,    "",        NULL,                                 0 },
        {odd_groups,       odd_mounts,       "memory",  "/mnt/c g\\x/a",                      10},
        {odd_groups,       odd_mounts,       "",        NULL,                                 0 },
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
