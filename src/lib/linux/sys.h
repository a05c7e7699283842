/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* System calls the C library has no name for, and kernel structures newer than its headers.
 * Each behaves like the call itself: -1 and errno. */

struct clone_request {
    uint64_t flags; /* CLONE_* of <sched.h> and below */
    int cgroup_fd;  /* a cgroup2 folder to start in, or -1 */
};

/* fork() into new namespaces: 0 in the child, its pid in the parent, where *pidfd is a
 * close-on-exec descriptor of it. */
pid_t sys_clone(const struct clone_request *request, int *pidfd);

int sys_pivot_root(const char *new_root, const char *put_old);

/* openat2 beneath dir_fd, never through a magic link. resolve: RESOLVE_* of <linux/openat2.h>. */
int sys_openat2(int dir_fd, const char *path, int flags, uint64_t resolve);

/* What a descriptor of a process says of it, in one call; Linux 6.13, ENOTTY before. Numbers are
 * those of our PID namespace. */
struct pidfd_facts {
    pid_t thread, process, parent;
    uint64_t serial; /* no other process or thread of this machine ever has it */
};
int sys_pidfd_facts(int pidfd, struct pidfd_facts *out);
