/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"

#include <linux/filter.h>
#include <stdint.h>

/* Rights of this process that can only shrink. */

/* Empties the bounding, ambient, inheritable, permitted and effective sets and locks the
 * securebits so that no exec gives anything back. */
int caps_drop_all(struct err *err) MUST_CHECK;

/* Empties only what it has, for a program that runs no other one. */
int caps_give_up(struct err *err) MUST_CHECK;

/* Nobody of the same user may look into us, and nothing of us lands in a file. */
int dumps_forbid(struct err *err) MUST_CHECK;

int no_new_privs(struct err *err) MUST_CHECK;

/* Loads one ready-made filter for this process and its children. */
int seccomp_load(const struct sock_filter *filter, size_t n, struct err *err) MUST_CHECK;

/* The same for one that tells somebody of calls: *out is where it is heard. */
int seccomp_load_heard(const struct sock_filter *filter, size_t n, int *out,
                       struct err *err) MUST_CHECK;

/* Brings up the loopback interface of the current network namespace. */
int loopback_up(struct err *err) MUST_CHECK;

/* setgroups, uid and gid maps of a child in a new user namespace: one id each. */
int idmap_write(int pid, uint32_t inside_uid, uint32_t host_uid, uint32_t inside_gid,
                uint32_t host_gid, int deny_setgroups, struct err *err) MUST_CHECK;
