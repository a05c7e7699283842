/* SPDX-License-Identifier: Apache-2.0 */

/* What is made of box's report: every wall that it does not show does not stand. */

#include "flow/execute/local.h"
#include "test.h"

#include "lib/base/buf.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct sample {
    struct run run;
    struct local local;
    struct cgroup_host host;
    struct buf report;
};

static void set_up(struct sample *sample)
{
    *sample = (struct sample){.report = BUF(1 << 20)};
    run_init(&sample->run);
    sample->local.inside = getpid();
    sample->local.groups = &sample->host;
    sample->run.offer.version = "local/1";
    sample->run.offer.processors = 2;
}

static void add_section(struct sample *sample, const char *name, const char *text)
{
    struct err err;

    CHECK_INT(buf_addf(&sample->report, &err, "= %s %zu\n%s", name, strlen(text), text), 0);
}

static void look(struct sample *sample)
{
    struct err err;

    CHECK_INT(observe_outside(&sample->run, &sample->local, &err), 0);
    observe_inside(&sample->run, &sample->local, buf_str(&sample->report));
}

static void tear_down(struct sample *sample)
{
    buf_done(&sample->report);
    run_done(&sample->run);
}

TEST(empty_report_shows_no_wall)
{
    struct sample sample;

    set_up(&sample);
    look(&sample);
    CHECK(!sample.run.seen.landlock_refuses);
    CHECK(!sample.run.seen.seccomp_refuses);
    CHECK_INT(sample.run.seen.namespaces, 0);
    CHECK_INT(sample.run.seen.mount_n, 0);
    CHECK_INT(sample.run.seen.interface_n, 0);
    CHECK_INT(sample.run.seen.rlimit_n, 0);
    tear_down(&sample);
}

TEST(report_that_is_none_shows_no_wall)
{
    static const char *const cases[] = {
        "x",
        "=",
        "= probes",
        "= probes x\nlandlock_a refused\n",
        "= probes 99999\nlandlock_a refused\n",
        "= probes -1\nlandlock_a refused\n",
        "= probes 18446744073709551615\nlandlock_a refused\n",
        "probes 19\nlandlock_a refused\n",
        "= other 3\nab",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct sample sample;
        struct err err;

        set_up(&sample);
        CHECK_INT(buf_add_text(&sample.report, cases[i], &err), 0);
        look(&sample);
        CHECK(!sample.run.seen.landlock_refuses);
        tear_down(&sample);
    }
}

TEST(probes_count_only_when_all_were_refused)
{
    static const struct {
        const char *text;
        bool landlock, seccomp;
    } cases[] = {
        {"landlock_a refused\nlandlock_b refused\nseccomp_a refused\n", true,  true },
        {"landlock_a refused\nlandlock_b allowed\nseccomp_a refused\n", false, true },
        {"landlock_a refused\n",                                        true,  false},
        {"landlock_a\nseccomp_a refused \n",                            false, false},
        {"landlock_a REFUSED\n",                                        false, false},
        {"",                                                            false, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct sample sample;

        set_up(&sample);
        add_section(&sample, "mountinfo", "");
        add_section(&sample, "probes", cases[i].text);
        look(&sample);
        CHECK_INT(sample.run.seen.landlock_refuses, cases[i].landlock);
        CHECK_INT(sample.run.seen.seccomp_refuses, cases[i].seccomp);
        tear_down(&sample);
    }
}

TEST(namespaces_are_own_ones_only_when_they_differ_from_ours)
{
    struct sample sample;
    struct stat st;
    char text[128];

    CHECK_INT(stat("/proc/self/ns/net", &st), 0);
    (void)snprintf(text, sizeof text, "net %llu\nuser 1\nipc 2\nnonsense 3\nuts x\n",
                   (unsigned long long)st.st_ino);
    set_up(&sample);
    add_section(&sample, "namespaces", text);
    look(&sample);
    CHECK_INT(sample.run.seen.namespaces & NAMESPACE_NETWORK, 0);
    CHECK_INT(sample.run.seen.namespaces & NAMESPACE_USER, NAMESPACE_USER);
    CHECK_INT(sample.run.seen.namespaces & NAMESPACE_IPC, NAMESPACE_IPC);
    CHECK_INT(sample.run.seen.namespaces & NAMESPACE_MOUNT, 0);
    tear_down(&sample);
}

TEST(interfaces_are_sorted)
{
    struct sample sample;

    set_up(&sample);
    add_section(&sample, "net", "Inter-|\n face |bytes\n    lo: 0 0\n  eth0: 1 1\n");
    look(&sample);
    CHECK_INT(sample.run.seen.interface_n, 2);
    CHECK_TEXT(sample.run.seen.interfaces[0], "eth0");
    CHECK_TEXT(sample.run.seen.interfaces[1], "lo");
    tear_down(&sample);
}

TEST(mount_rows_are_called_as_planned_only_when_they_are)
{
    static struct plan_mount planned[] = {
        {.kind = MOUNT_BIND, .target = "/usr", .source = "/usr", .device = 5,               .inode = 6, .fd = -1},
        {.kind = MOUNT_PROC,          .target = "/proc",                          .source = "",                         .fd = -1                       },
        {.kind = MOUNT_BIND,          .target = "/a b",                          .source = "/x", .device = 5,.inode = 7, .fd = -1},
        {.kind = MOUNT_MASK,       .target = "/proc/kcore",             .source = "",                     .fd = -1                                                                    },
    };
    static const struct {
        const char *target, *kind, *source;
        bool writable, nosuid, nodev, noexec;
    } wanted[] = {
        {"/",           "tmpfs", "",          false, true,  true,  false},
        {"/a b",        "ext4",  "unplanned", true,  false, false, false}, /* another inode */
        {"/extra",      "ext4",  "unplanned", true,  false, false, false},
        {"/proc",       "proc",  "",          true,  true,  true,  true },
        {"/proc/kcore", "proc",  "unplanned", true,  false, false, false}, /* not covered */
        {"/usr",        "bind",  "/usr",      false, true,  true,  false},
    };
    struct sample sample;

    set_up(&sample);
    sample.run.plan.mounts = planned;
    sample.run.plan.mount_n = COUNT(planned);
    add_section(&sample, "mountinfo",
                "1 0 0:1 / / ro,nosuid,nodev - tmpfs none rw\n"
                "2 1 8:1 /usr /usr ro,nosuid,nodev master:1 propagate_from:2 - ext4 /dev/sda rw\n"
                "3 1 0:2 / /proc rw,nosuid,nodev,noexec - proc none rw\n"
                "4 1 8:1 /x /a\\040b rw - ext4 /dev/sda rw\n"
                "5 1 8:1 /y /extra rw - ext4 /dev/sda rw\n"
                "6 3 0:2 / /proc/kcore rw - proc none rw\n");
    add_section(&sample, "targets", "0 5 6\n1 9 1\n2 5 8\n");
    look(&sample);
    CHECK_INT(sample.run.seen.mount_n, COUNT(wanted));
    for (size_t i = 0; i < COUNT(wanted) && i < sample.run.seen.mount_n; i++) {
        const struct mount_fact *fact = &sample.run.seen.mounts[i];

        CHECK_TEXT(fact->target, wanted[i].target);
        CHECK_TEXT(fact->kind, wanted[i].kind);
        CHECK_TEXT(fact->source, wanted[i].source);
        CHECK_INT(fact->writable, wanted[i].writable);
        CHECK_INT(fact->nosuid, wanted[i].nosuid);
        CHECK_INT(fact->nodev, wanted[i].nodev);
        CHECK_INT(fact->noexec, wanted[i].noexec);
    }
    tear_down(&sample);
}

TEST(escapes_that_are_none_stay_as_they_are)
{
    struct sample sample;

    set_up(&sample);
    add_section(
        &sample, "mountinfo",
        "1 0 0:1 / /a\\04 rw - x y z\n1 0 0:1 / /b\\xyz rw - x y z\n1 0 0:1 / /c\\134 rw - x y z\n");
    look(&sample);
    CHECK_INT(sample.run.seen.mount_n, 3);
    CHECK_TEXT(sample.run.seen.mounts[0].target, "/a\\04");
    CHECK_TEXT(sample.run.seen.mounts[1].target, "/b\\xyz");
    CHECK_TEXT(sample.run.seen.mounts[2].target, "/c\\");
    tear_down(&sample);
}

TEST(resource_limit_that_could_be_raised_is_none)
{
    struct sample sample;

    set_up(&sample);
    sample.run.plan.rlimits[0] = (struct rlimit_fact){"nofile", 7, 100};
    sample.run.plan.rlimits[1] = (struct rlimit_fact){"core", 4, 0};
    sample.run.plan.rlimit_n = 2;
    add_section(&sample, "rlimits", "7 100 200\n4 0 0\n");
    look(&sample);
    CHECK_INT(sample.run.seen.rlimit_n, 2);
    CHECK_TEXT(sample.run.seen.rlimits[0].name, "nofile");
    CHECK_INT(sample.run.seen.rlimits[0].value, 0); /* soft and hard differ */
    CHECK_TEXT(sample.run.seen.rlimits[1].name, "core");
    tear_down(&sample);
}

TEST(cgroup_limits_nobody_is_in_are_not_held)
{
    struct sample sample;

    set_up(&sample);
    sample.run.plan.limits.of[LIMIT_MEMORY] =
        (struct limit){.value = 1 << 20, .means = MEANS_CGROUP};
    sample.run.plan.limits.of[LIMIT_WALL] = (struct limit){.value = 5, .means = MEANS_RELAY};
    sample.run.plan.limits.of[LIMIT_CPU] = (struct limit){.value = 1000, .means = MEANS_AFFINITY};
    add_section(&sample, "processors", "2\n");
    look(&sample);
    CHECK_INT(sample.run.seen.limits.of[LIMIT_MEMORY].value, 0);
    CHECK_INT(sample.run.seen.limits.of[LIMIT_WALL].value, 5);
    CHECK_INT(sample.run.seen.limits.of[LIMIT_CPU].value, 2000);
    tear_down(&sample);
}

TEST(process_that_is_gone_is_a_failure)
{
    struct sample sample;
    struct err err = {0};

    set_up(&sample);
    sample.local.inside = 0x3fffffff;
    CHECK_INT(observe_outside(&sample.run, &sample.local, &err), -1);
    CHECK(strstr(err.text, "/proc/1073741823/status") != NULL);
    tear_down(&sample);
}
