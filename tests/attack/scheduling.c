/* SPDX-License-Identifier: Apache-2.0 */

/* scheduling: more of the processors than one was given. */

#include "attack.h"

#include <linux/ioprio.h>
#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>

/* Of <linux/sched/types.h>, which the C library's <sched.h> does not go together with. */
struct deadline {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

int main(void)
{
    struct sched_param lowest = {.sched_priority = 1};
    struct sched_param none = {0};
    struct deadline deadline = {.size = sizeof deadline,
                                .policy = 6,
                                .runtime = 10000000,
                                .deadline = 30000000,
                                .period = 30000000};
    struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
    cpu_set_t all;

    memset(&all, 0xff, sizeof all);
    (void)attempt("first in, first out", sched_setscheduler(0, SCHED_FIFO, &lowest));
    (void)attempt("round robin", sched_setscheduler(0, SCHED_RR, &lowest));
    (void)attempt("deadline", syscall(SYS_sched_setattr, 0, &deadline, 0));
    (void)attempt("nicer to itself", setpriority(PRIO_PROCESS, 0, -5));
    (void)attempt("real-time disk", syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
                                            IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 0)));
    (void)attempt("more real-time priority", setrlimit(RLIMIT_RTPRIO, &unlimited));
    (void)attempt("more niceness", setrlimit(RLIMIT_NICE, &unlimited));
    (void)attempt("all processors", sched_setaffinity(0, sizeof all, &all));
    (void)attempt("batch", sched_setscheduler(0, SCHED_BATCH, &none));
    (void)sched_getaffinity(0, sizeof all, &all);
    (void)printf("processors: %d\n", CPU_COUNT(&all));
    return 0;
}
