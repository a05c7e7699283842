/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"

#include <stdbool.h>

struct run;

/* Inside what a run happens: one provider out of a table. */
struct execute;

/* Where the streams of the command go. Descriptors are borrowed. */
struct streams {
    int in_fd;  /* -1: the command reads end of file */
    int out_fd; /* -1: kept in the outcome only */
    int err_fd;
    bool keep; /* keep the first bytes of both in the outcome */
};

int execute_open(const char *state_dir, struct execute **out, struct err *err) MUST_CHECK;
void execute_free(struct execute *execute);
AUTO_TYPE(execute)

/* Fills run->offer for the provider the action names. ERR_NOT_FOUND: there is no such provider;
 * ERR_UNAVAILABLE: it cannot be used here, and the text says what would help. */
int execute_offer(struct execute *execute, struct run *run, struct err *err) MUST_CHECK;

/* Begins to build the sandbox; what takes time goes on in another process. Then waits until it
 * is parked, and fills run->seen. Between the two the caller has its hands free: that is where
 * the intent becomes durable. */
int execute_begin(struct execute *execute, struct run *run, struct err *err) MUST_CHECK;
int execute_park(struct execute *execute, struct run *run, struct err *err) MUST_CHECK;

/* Runs the command in the parked sandbox until nothing of it is left; fills run->outcome. */
int execute_release(struct execute *execute, struct run *run, const struct streams *streams,
                    struct err *err) MUST_CHECK;

/* Takes down a sandbox that was begun or parked and will not be released. Never fails: what
 * cannot be removed now is found by execute_sweep(). */
void execute_drop(struct execute *execute, struct run *run);

/* Finds what runs whose Brig died have left, removes it, and names each of those runs. */
int execute_sweep(struct execute *execute,
                  int (*on_dead_run)(void *context, const char *run_id, struct err *err),
                  void *context, struct err *err) MUST_CHECK;

/* For doctor and help. */
const char *const *execute_providers(void); /* ends with NULL */
