/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sets that end with their test, and children to put into them.
 *
 * Real groups need a machine on which we may make some: root here, and the pure v2 guest of
 * tests/flow/vm. They are named after the process that runs the tests; whatever a crashed test
 * leaves is removed by the last test, or by that of the next run. */

#include "lib/linux/cgroup.h"

#define PREFIX "brig-cgtest-"
#define PATIENCE_MS 5000
#define ALL_LIMITS (1U << CGROUP_MEMORY | 1U << CGROUP_PIDS | 1U << CGROUP_CPU)

const char *test_name(const char *what);

/* Every test that makes groups begins here: without the right to make any it is skipped, as it is
 * when one of the needed limits (bits) cannot be held. */
void open_host(struct cgroup_host *host, unsigned needed);
/* The same in a view of the machine in which there is no v2 tree, as on old systems. */
void open_v1_host(struct cgroup_host *host);

void make_set(const struct cgroup_host *host, const char *what, struct cgroup_set *out);
void limit_set(struct cgroup_set *set, struct cgroup_limits limits);
void sweep(struct cgroup_set *set);
#define SWEPT __attribute__((cleanup(sweep)))

/* Starts a child that is inside the set before work() begins. */
pid_t start_inside(const struct cgroup_set *set, int (*work)(void));
int status_of(pid_t pid);

/* Work for children. */
int rest(void);
int eat_memory(void);         /* 64 MiB */
int fork_until_refused(void); /* how many it got; 100 + errno when it was another refusal */
int burn_300_ms(void);
