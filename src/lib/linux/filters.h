/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <linux/filter.h>
#include <stddef.h>

/* The filters sandboxed processes run under, exported by libseccomp when Brig is built
 * (filters-export.c has the rules, and the reason for two):
 *
 *     names      an allowlist by system call number; what it does not know answers ENOSYS,
 *                what it knows to be dangerous EPERM
 *     arguments  refuses some arguments of calls the first one lets through
 *
 *     segments   where memory is watched and not held by a cgroup: refuses System V shared
 *                memory, which outlives its processes and belongs to none of them, and memory
 *                files, which can be where no one sees them: on their way through a socket
 *
 *     sockets    where a profile allows none: refuses to make any, with EACCES
 *
 *     egress     in place of arguments, where connections have a way out: besides, every connect()
 *                is told to a listener first; refuses what would connect without it, and a second
 *                listener
 *
 * Nothing of libseccomp is needed at run time. */
extern const struct sock_filter seccomp_names[];
extern const size_t seccomp_names_n;
extern const struct sock_filter seccomp_arguments[];
extern const size_t seccomp_arguments_n;
extern const struct sock_filter seccomp_segments[];
extern const size_t seccomp_segments_n;
extern const struct sock_filter seccomp_sockets[];
extern const size_t seccomp_sockets_n;
extern const struct sock_filter seccomp_egress[];
extern const size_t seccomp_egress_n;
