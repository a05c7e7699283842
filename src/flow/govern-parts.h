/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to flow: the steps of govern.c, for what else is made of them. */

#include "flow/approve/approve.h"
#include "flow/govern.h"

#include "model/run.h"

#include <pthread.h>

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
    char *root_dir; /* whose ceiling holds, and whose publishers are trusted */
};

/* The ceiling as it was read last, and which file that was. */
struct ceiling {
    struct policy *policy; /* NULL: there is none */
    struct file_mark {
        uint64_t device, inode, size;
        int64_t changed_s, changed_ns;
    } mark;
};

struct govern {
    const struct policy *policy;
    struct ceiling ceiling;
    char *state_dir;
    struct govern_shared *shared;
    struct govern_shared *shared_owned; /* the same, when it is ours alone */
    struct record *record; /* that of shared; NULL until there is something to record */
    struct equip *equip;
    struct execute *execute;
    struct intercept *intercept;
    struct approvals *approvals; /* NULL until a person is to be asked */
    struct budgets *budgets;     /* NULL until something is limited */
    bool only_looks;             /* says what would be, and leaves everything as it is */
    struct {
        struct operand_view *view;
        struct operand_reader reader;
        struct files *files; /* while it looks, where only somebody inside can */
        bool is_inside;
        const struct operands *operands; /* as they were when the word was asked for */
    } target;                            /* of the run that has a person's word */
};

static inline bool is_allowed(const struct run *run)
{
    return run->verdict.kind == VERDICT_ALLOW;
}

/* What a sandbox that stays is said to run. */
extern const struct words govern_no_command;

/* Opens the ledger, if it is not open yet. */
int govern_ready(struct govern *govern, struct err *err) MUST_CHECK;
/* The ledger once more, to read it. That of govern_ready() is everybody's: several threads may
 * append to it at once, and nobody may read it meanwhile. */
int govern_read_ledger(struct govern *govern, struct record **out, struct err *err) MUST_CHECK;
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
/* Step 2: the verdict of the policy below the ceiling of now (layers.c). No verdict is a denial. */
void govern_decide(struct govern *govern, struct run *run);
/* A person may have taken his time: refuses what was decided below another ceiling, or by a bundle
 * that does not count any more. */
void govern_check_layers(struct govern *govern, struct run *run);
/* Deciders outside that the ceiling and the policy name: the verdict stays, or becomes stricter. */
void govern_consult(struct govern *govern, struct run *run);
void ceiling_done(struct ceiling *ceiling);
/* -1: below the ceiling of now, this policy does not count; *why and err say why. */
int govern_policy_counts(struct govern *govern, const struct policy *policy, bool stands,
                         struct arena *mem, enum reason *why, struct err *err) MUST_CHECK;
/* From now on no older version of the bundle counts. */
int bundle_version_raise(const char *state_dir, const struct policy_bundle *bundle,
                         struct err *err) MUST_CHECK;
/* An error on the way to a verdict is a denial that names it. */
void govern_refuse_by(struct run *run, enum reason reason, const struct err *err);
/* Refuses what a policy lets nobody but released agents do, or nobody at all. A planned run. */
void govern_check_release(struct govern *govern, struct run *run);
/* govern_gate_stands() for a run, where the ledger is not verified from its beginning. */
struct gate_report;
const char *gate_stands_for_run(struct govern *govern, struct arena *mem, const char *agent_id,
                                const char *version, struct gate_report *out);
/* -1 of govern_policy_counts() as a verdict. */
void govern_refuse_uncounted(struct run *run, enum reason why, const struct err *err);
/* Who would run it and what that one can do here, into run->offer; false: nobody, it is refused. */
bool govern_offer(struct govern *govern, struct run *run);
/* Steps 2 and 3: the verdict, and the plan if it is ALLOW. */
void govern_judge(struct govern *govern, struct run *run);
/* A planned run, or a question, whose verdict is ASK gets a person's word, or is refused. A run
 * that has one already (run->approval, set by whoever holds the answer to its question) keeps it if
 * it is what that was given for, and is refused if not. */
void govern_seek_word(struct govern *govern, struct run *run);
/* The same for a question about a command in the kept sandbox request->sandbox: who is asked is
 * asked about the command as it would run now, so that his word holds for that run. */
void govern_seek_word_ahead(struct govern *govern, const struct request *request,
                            struct run *question);
/* execute_turn() alone; where somebody is in the way for too long, err says which approval he waits
 * for. */
int govern_turn_alone(struct govern *govern, const char *sandbox, struct err *err) MUST_CHECK;
/* Whether there is a list of approvals: opening it makes one. */
bool govern_has_approvals(const struct govern *govern);
/* What waits for a person, and that person's word: opened when it is wanted first. NULL: err. */
struct approvals *govern_approvals(struct govern *govern, struct err *err) MUST_CHECK;
/* Whether the ledger has the words that a list of approvals says there are, for exactly this and
 * enough for this run (approval-words.c). The first time it is used also: whether they are in time,
 * and whether nothing since has ended them or used them up. ERR_FORBIDDEN. */
int govern_check_words(struct govern *govern, const struct run *run,
                       const struct approval *approval, bool first_use, struct err *err) MUST_CHECK;
/* The receipt of a run whose verdict is ASK is durable: from now on people see what it asks. */
int govern_stand_request(struct govern *govern, struct run *run, struct err *err) MUST_CHECK;
/* Somebody else is told, by whatever the operator has said; nobody waits for it (tell.c). */
void govern_tell(struct govern *govern, const char *type, struct run *run,
                 const struct approval *approval);
/* Before a person is asked: what has no budget left is refused. Then, for what is allowed: what it
 * may use is reserved, or it is refused. And at its end, however it came: what it has used. */
void govern_look_at_budget(struct govern *govern, struct run *run);
/* Whether anything could limit it; and, of a run that has limits but no plan, whether it would be
 * refused. No store is made where there is none. */
bool govern_has_budget(const struct govern *govern, const struct run *run);
void govern_foresee_budget(struct govern *govern, struct run *run);
void govern_reserve_budget(struct govern *govern, struct run *run);
void govern_settle_budget(struct govern *govern, struct run *run);
/* What a run that is being decided costs at most: never less than it will reserve. The context of a
 * cost_source is a struct cost_ask. */
struct cost_ask {
    struct govern *govern;
    bool is_done, failed;
    uint64_t most;
    struct err err;
};
int govern_cost(void *context, const struct run *run, uint64_t *out, struct err *err) MUST_CHECK;
/* A kept sandbox is gone: what its commands used together is nobody's any more. */
void govern_end_session(struct govern *govern, const char *sandbox);
/* What was confirmed is hashed once more, right before it is released: a difference is a denial. */
void govern_check_target(struct govern *govern, struct run *run);
void govern_forget_target(struct govern *govern);
/* Step 5: any difference between the parked sandbox and its plan is a denial. */
void govern_compare(struct govern *govern, struct run *run);
/* The same for one without walls. */
void govern_compare_elevated(struct run *run);
/* What a kept sandbox is made from, kept with it under the id it has. */
int govern_write_config(const struct request *request, struct run *run, struct err *err) MUST_CHECK;
/* Steps 4 to 7 of a run that was judged. */
int govern_carry_out(struct govern *govern, const struct request *request, struct run *run,
                     const struct streams *streams, struct err *err) MUST_CHECK;
/* Step 7. */
int govern_conclude(struct govern *govern, struct run *run, struct err *err) MUST_CHECK;
/* The time of a planned command that nobody waits for. */
void govern_give_time(struct run *run);
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
