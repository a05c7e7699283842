/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to execute: orders to what runs, as struct signalfd_siginfo out of a descriptor. */

#include "lib/base/err.h"
#include "model/reason.h"

#include <signal.h>
#include <stdbool.h>

struct execute;
struct signalfd_siginfo;
struct winsize;

/* ssi_code of orders that are no signal of this process; the kernel gives none of these. */
#define ORDER_PLAIN_SIGNAL 0x4201 /* for the command; it does not end the run */
#define ORDER_NOBODY_LEFT 0x4203  /* to end, because whoever it runs for is gone */
#define ORDER_HAS_SIZE 0x4202     /* ssi_int has the rows in its upper half, the columns below */

/* A signal is something to read from here on, not something that ends us: whatever phase we are
 * in, the run gets its closing receipt. */
int orders_open(const struct execute *execute, int *out, struct err *err) MUST_CHECK;
/* The same until it is released: signals are as they were before then. Sizes are not told. */
int orders_hold(const struct execute *execute, sigset_t *before, int *out,
                struct err *err) MUST_CHECK;
void orders_release(const struct execute *execute, const sigset_t *before, int fd);

/* Why what it ends ends. */
enum reason order_reason(const struct signalfd_siginfo *order);

/* How large a terminal is to be: what the order says, else what ours is. NULL: no order. */
bool order_size(const struct signalfd_siginfo *order, struct winsize *out);
