/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"
#include "model/reason.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
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

/* Finds what is left of runs whose Brig died and of kept sandboxes that ended, removes it, and
 * names each: kept or not, and why it ended (RUN_ABANDONED when nobody could say). */
struct dead {
    const char *id;
    bool kept;
    enum reason reason;
};
int execute_sweep(struct execute *execute,
                  int (*on_dead)(void *context, const struct dead *dead, struct err *err),
                  void *context, struct err *err) MUST_CHECK;

/* Kept sandboxes. An id without a living sandbox is ERR_NOT_FOUND everywhere. */
struct kept_state {
    bool paused;
    uint64_t left_ms; /* UINT64_MAX: no end set */
    uint64_t processes;
    uint64_t cpu_us;
    uint64_t peak_memory_bytes;
};
int execute_kept_config(struct execute *execute, struct arena *mem, const char *id,
                        const char **out, struct err *err) MUST_CHECK;
int execute_kept_state(struct execute *execute, const char *id, struct kept_state *out,
                       struct err *err) MUST_CHECK;
int execute_kept_each(struct execute *execute,
                      int (*on_sandbox)(void *context, const char *id, struct err *err),
                      void *context, struct err *err) MUST_CHECK;
/* Does what run->action says to its sandbox: pause, resume, extend, destroy. */
int execute_change(struct execute *execute, struct run *run, struct err *err) MUST_CHECK;

/* For doctor and help. */
const char *const *execute_providers(void); /* ends with NULL */
