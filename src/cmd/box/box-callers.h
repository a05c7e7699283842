/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Tells egress who connects, before it happens (docs/decisions/0032). */

#include "lib/base/err.h"

#include <sys/types.h>

#define NOTICE_BYTES 256 /* what a kernel newer than our headers may say and be told */
/* Whether this kernel's notifications have room in that. */
int notices_check(struct err *err) MUST_CHECK;
/* A thread without signals that nobody waits for; an errno. */
int watcher_start(void *(*serves)(void *arg), void *arg);

/* A thread that serves a listener of the filter seccomp_egress until the last process under it is
 * gone. It takes over both descriptors; first is PID 1 of the sandbox, commands what is started in
 * it. */
struct commands;
int callers_start(int heard_fd, int pair_fd, pid_t first, const struct commands *commands,
                  struct err *err) MUST_CHECK;
