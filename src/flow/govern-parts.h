/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to flow: the steps of govern.c, for what else is made of them. */

#include "flow/govern.h"

#include "model/run.h"

#include <pthread.h>

struct approvals;
struct record;
struct equip;
struct intercept;

/* Nothing in it belongs to one of them. */
struct govern_shared {
    char *state_dir;
    pthread_mutex_t lock;  /* for opening the ledger */
    struct record *record; /* NULL until there is something to record */
    bool is_swept;
    struct plan_memory *plans;
    struct offer_memory *offers;
    struct freezer *freezer;
};

struct govern {
    const struct policy *policy;
    char *state_dir;
    struct govern_shared *shared;
    struct govern_shared *shared_owned; /* the same, when it is ours alone */
    struct record *record; /* that of shared; NULL until there is something to record */
    struct equip *equip;
    struct execute *execute;
    struct intercept *intercept;
    struct approvals *approvals; /* NULL until a person is to be asked */
};

static inline bool is_allowed(const struct run *run)
{
    return run->verdict.kind == VERDICT_ALLOW;
}

/* What a sandbox that stays is said to run. */
extern const struct words govern_no_command;

/* Opens the ledger, if it is not open yet. */
int govern_ready(struct govern *govern, struct err *err) MUST_CHECK;
/* Refuses the run if new effects of its principal are frozen. */
bool govern_is_frozen(struct govern *govern, struct run *run);
/* The intent of an action that makes no sandbox and that no rule is about: claimed, so that
 * somebody tells its end if we cannot, and durable. ERR_FROZEN: refused, which is recorded. */
int govern_intend(struct govern *govern, struct run *run, struct err *err) MUST_CHECK;
/* An action that is neither about a sandbox nor about an image: who may come in, who must stop,
 * what a person confirmed. A failure has its receipt, too, and is the caller's to tell. */
struct deed {
    struct govern *govern;
    struct run *run;
    uint64_t began_us;
};
int deed_begin(struct deed *deed, struct govern *govern, const struct request *request,
               enum action_kind kind, struct run *run, struct err *err) MUST_CHECK;
/* REASON_NONE: it is done. Otherwise it failed as *err says, and -1 comes back with that. */
int deed_end(struct deed *deed, enum reason failure, struct err *err) MUST_CHECK;
/* Another policy for the kept sandbox request->sandbox, made while nobody else changes it. */
struct swap_ask {
    enum action_kind kind;
    void *context;
    /* The text of the new policy, from what the sandbox is made from. -1: nothing changes. */
    int (*make)(void *context, struct arena *mem, const struct config *config, const char **text,
                struct err *err);
    /* The rules are in force; the outcome is not written yet. Or NULL. */
    void (*done)(void *context, struct run *run);
};
int govern_swap_as(struct govern *govern, const struct request *request, const struct swap_ask *ask,
                   struct run *run, struct err *err) MUST_CHECK;
/* Steps 2 and 3: the verdict, and the plan if it is ALLOW. */
void govern_judge(struct govern *govern, struct run *run);
/* A planned run, or a question, whose verdict is ASK gets a person's word, or is refused. A run
 * that has one already (run->approval.by, set by whoever holds the answer to its question) keeps
 * it. */
void govern_seek_word(struct govern *govern, struct run *run);
/* Step 5: any difference between the parked sandbox and its plan is a denial. */
void govern_compare(struct govern *govern, struct run *run);
/* What a kept sandbox is made from, kept with it under the id it has. */
int govern_write_config(const struct request *request, struct run *run, struct err *err) MUST_CHECK;
/* Steps 4 to 7 of a run that was judged. */
int govern_carry_out(struct govern *govern, const struct request *request, struct run *run,
                     const struct streams *streams, struct err *err) MUST_CHECK;
/* Step 7. */
int govern_conclude(struct govern *govern, struct run *run, struct err *err) MUST_CHECK;
/* A plan that is not the one the sandbox was made by is a denial. */
void govern_check_drift(struct run *run, const struct config *config);
/* The snapshot request->base as its principal may have it: itself, or, when it is somebody else's,
 * a copy without credentials (*filtered), which goes once it is removed and nobody stands on it. */
int govern_own_base(struct govern *govern, const struct request *request, struct arena *mem,
                    const char **base, bool *filtered, struct err *err) MUST_CHECK;
/* Such a copy goes with the last sandbox that stands on it. */
int govern_forget_base(struct govern *govern, const struct request *request,
                       struct err *err) MUST_CHECK;
/* Removes snapshots that only a sandbox which is gone still needed. */
int govern_sweep_snapshots(struct govern *govern, struct err *err) MUST_CHECK;
/* A kept sandbox that ended without being destroyed. */
int govern_record_end(struct govern *govern, const struct dead *dead, struct err *err) MUST_CHECK;
