/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"

struct execute;
struct run;
struct streams;

/* Runs the program in this descriptor as run->plan says, until nothing of it is left; fills
 * run->outcome. */
int host_run(struct execute *execute, struct run *run, int program_fd,
             const struct streams *streams, struct err *err) MUST_CHECK;
