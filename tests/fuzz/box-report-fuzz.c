/* SPDX-License-Identifier: Apache-2.0 */

/* Whatever a parked box reports, the caller reads it to an end; and a report that names no probe
 * as refused shows no wall. */

#include "fuzz.h"

#include "flow/execute/local.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct plan_mount planned[] = {
    {.kind = MOUNT_BIND, .target = "/usr", .source = "/usr", .device = 5,                      .inode = 6, .fd = -1},
    {.kind = MOUNT_PROC,          .target = "/proc",                          .source = "",                         .fd = -1                              },
    {.kind = MOUNT_MASK,          .target = "/proc/kcore",                          .source = "", .fd = -1},
    {.kind = MOUNT_READONLY,          .target = "/proc/sys",                          .source = "",                     .fd = -1                                                    },
    {.kind = MOUNT_TMPFS,          .target = "/run",                          .source = "",    .fd = -1},
    {.kind = MOUNT_NESTED,          .target = "/usr/a b",                          .source = "/usr/a b",                    .fd = -1                                                                },
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const struct cgroup_host host;
    struct local local = {.inside = getpid(), .groups = &host};
    struct run run;
    struct err err = {0};
    struct str report;

    if (n > BOX_REPORT_MAX)
        return 0;
    run_init(&run);
    run.offer.version = "local/1";
    run.plan.mounts = planned;
    run.plan.mount_n = COUNT(planned);
    run.plan.rlimits[0] = (struct rlimit_fact){"core", 4, 0};
    run.plan.rlimit_n = 1;
    run.plan.limits.of[LIMIT_CPU] = (struct limit){.value = 1000, .means = MEANS_AFFINITY};
    report = arena_str(&run.mem, (struct str){(const char *)bytes, n});
    if (observe_outside(&run, &local, &err) < 0)
        abort(); /* our own process is there to be looked at */
    observe_inside(&run, &local, report);
    if ((run.seen.landlock_refuses || run.seen.seccomp_refuses) &&
        !memmem(bytes, n, "refused", strlen("refused")))
        abort();
    for (size_t i = 0; i < run.seen.mount_n; i++)
        if (!run.seen.mounts[i].target || !run.seen.mounts[i].kind || !run.seen.mounts[i].source)
            abort();
    run_done(&run);
    return 0;
}
