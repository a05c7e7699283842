/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/intercept/intercept.h"

#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/egress/control.h"
#include "model/run.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct intercept {
    char *state_dir;
    struct egress *egress; /* NULL: not asked for anything yet */
    int handover_fd;       /* box's end, until it is box's alone; -1: not ours */
    bool counts;           /* a window is open for the run */
};

struct intercept *intercept_new(const char *state_dir)
{
    struct intercept *intercept = xcalloc(1, sizeof *intercept);

    intercept->state_dir = xstrdup(state_dir);
    intercept->handover_fd = -1;
    return intercept;
}

/* A connection keeps egress from ending, so there is one only while a run needs it. */
static void leave(struct intercept *intercept)
{
    if (intercept->handover_fd >= 0)
        (void)close(TAKE_FD(intercept->handover_fd));
    egress_free(TAKE(intercept->egress));
    intercept->counts = false;
}

void intercept_rest(struct intercept *intercept)
{
    leave(intercept);
}

void intercept_free(struct intercept *intercept)
{
    if (!intercept)
        return;
    leave(intercept);
    free(intercept->state_dir);
    free(intercept);
}

static int reach(struct intercept *intercept, struct err *err)
{
    return intercept->egress ? 0 : egress_open(intercept->state_dir, &intercept->egress, err);
}

/* Of what a program that is started now would know nothing. */
static int find(struct intercept *intercept, struct err *err)
{
    return intercept->egress ? 0 : egress_find(intercept->state_dir, &intercept->egress, err);
}

/* Rules that look into anything name a protocol; those that can be asked for may. */
static bool may_open_tls(const struct run *run)
{
    static const char key[] = "\"protocol\":", later[] = "\"agent_proposals\":";
    const struct str rules = run->demand.network_rules;

    return run->action.network != NETWORK_NONE && !run->action.sockets_none &&
           !run->offer.runs_nothing && rules.n &&
           (memmem(rules.p, rules.n, key, sizeof key - 1) ||
            memmem(rules.p, rules.n, later, sizeof later - 1));
}

/* Its authority is made when it begins, and a plan has to know it. If nothing comes of the plan it
 * ends by itself. */
int intercept_ready(struct intercept *intercept, const struct run *run, struct err *err)
{
    char path[PATH_BYTES_MAX];

    if (!may_open_tls(run))
        return 0;
    (void)snprintf(path, sizeof path, "%.3000s/egress/ca.pem", intercept->state_dir);
    return access(path, R_OK) == 0 ? 0 : reach(intercept, err);
}

/* One of this id that stood before, and was stopped to be built again, may not have been missed
 * yet. */
static int give_rules(struct intercept *intercept, const struct run *run, int egress_end_fd,
                      struct err *err)
{
    const struct plan_egress *plan = &run->plan.egress;
    const struct egress_who who = {run->action.tenant ? run->action.tenant : "default",
                                   run->action.principal ? run->action.principal : "", "",
                                   run->action.name ? run->action.name : ""};
    char hash[HASH_TEXT_BYTES];
    struct hash given;

    if (egress_end(intercept->egress, run->sandbox_id, err) < 0 ||
        egress_sandbox(intercept->egress, run->sandbox_id, plan->rules, egress_end_fd, &given,
                       err) < 0 ||
        egress_who(intercept->egress, run->sandbox_id, &who, err) < 0)
        return -1;
    hash_text(&given, hash);
    if (strcmp(hash, plan->hash) != 0)
        return err_set(err, ERR_INTEGRITY, "egress acknowledges other rules (%s) than planned (%s)",
                       hash, plan->hash);
    return 0;
}

int intercept_begin(struct intercept *intercept, struct run *run, struct err *err)
{
    int ends[2];
    int failed;

    if (!plan_has_network(&run->plan.egress) || run->offer.runs_nothing)
        return 0;
    if (run->action.kind == ACTION_EXEC)
        return 0;
    if (reach(intercept, err) < 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_os(err, "making the way from the sandbox to egress");
    intercept->handover_fd = run->plan.egress.handover_fd = ends[0];
    failed = give_rules(intercept, run, ends[1], err);
    (void)close(ends[1]);
    return failed;
}

/* ---- what egress knows of a sandbox ---- */

static uint64_t number_in(const struct json *counters, const char *key)
{
    const struct json *value = json_get(counters, key);
    int64_t number;

    return value && json_is_int(value, &number) && number > 0 ? (uint64_t)number : 0;
}

static int ask(struct intercept *intercept, struct arena *mem, const char *sandbox,
               const char *mark, const struct json **out, struct err *err)
{
    if (find(intercept, err) < 0)
        return -1;
    return egress_counters(intercept->egress, sandbox, mark, mark != NULL, mem, out, err);
}

static void take_counts(const struct json *counters, struct egress_counts *out)
{
    *out = (struct egress_counts){
        .requests = number_in(counters, "requests"),
        .refused = number_in(counters, "refused"),
        .bytes_out = number_in(counters, "bytes_out"),
        .bytes_in = number_in(counters, "bytes_in"),
        .spent = json_get(counters, "spent") != NULL,
    };
}

int intercept_look(struct intercept *intercept, const char *sandbox, char *hash, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(EGRESS_DOCUMENT_MEMORY);
    const struct json *counters = NULL;
    const struct json *held;

    if (ask(intercept, &mem, sandbox, NULL, &counters, err) < 0)
        return -1;
    held = json_get(counters, "policy_hash");
    if (!held || held->text.n != HASH_TEXT_BYTES - 1)
        return err_set(err, ERR_INTEGRITY, "egress does not say which rules it holds");
    memcpy(hash, held->text.p, held->text.n);
    hash[held->text.n] = '\0';
    return 0;
}

void intercept_observe(struct intercept *intercept, struct run *run)
{
    char hash[HASH_TEXT_BYTES];
    struct err err;

    if (!plan_has_network(&run->plan.egress) || run->offer.runs_nothing)
        return;
    if (intercept_look(intercept, run->sandbox_id, hash, &err) == 0)
        run->seen.egress_hash = arena_text(&run->mem, str_of(hash));
    else
        run->seen.egress_fault = arena_text(&run->mem, str_of(err.text));
}

int intercept_count(struct intercept *intercept, struct run *run, struct err *err)
{
    uint64_t bytes = run->budget.egress_bytes;

    /* A sandbox of its own is counted from its beginning, unless there is a bound to that; what
     * goes on alone is nobody's to ask for. */
    if (!bytes && (!intercept->egress || run->action.kind != ACTION_EXEC || run->action.detach))
        return 0;
    if (bytes && !intercept->egress)
        return err_set(err, ERR_UNAVAILABLE, "nobody is there to hold the budget of egress");
    intercept->counts = egress_window(intercept->egress, run->sandbox_id, run->id,
                                      bytes ? bytes : UINT64_MAX, err) == 0;
    return bytes && !intercept->counts ? err_in(err, "the budget of egress") : 0;
}

void intercept_collect(struct intercept *intercept, struct run *run)
{
    AUTO_ARENA struct arena mem = ARENA(EGRESS_DOCUMENT_MEMORY);
    const struct json *counters = NULL;
    bool joined = run->action.kind == ACTION_EXEC || intercept->counts;
    struct err err;

    if (!intercept->egress || (joined && !intercept->counts))
        return;
    if (ask(intercept, &mem, run->sandbox_id, joined ? run->id : NULL, &counters, &err) == 0)
        take_counts(counters, &run->outcome.egress);
    else
        run->outcome.egress.lost = true;
}

void intercept_total(struct intercept *intercept, struct run *run)
{
    AUTO_ARENA struct arena mem = ARENA(EGRESS_DOCUMENT_MEMORY);
    const struct json *counters = NULL;
    struct err err;

    if (ask(intercept, &mem, run->sandbox_id, NULL, &counters, &err) == 0)
        take_counts(counters, &run->outcome.egress);
    leave(intercept);
}

void intercept_end(struct intercept *intercept, struct run *run, bool stays)
{
    struct err err;

    run->plan.egress.handover_fd = -1;
    /* Where that fails the end of the pair says the same. */
    if (intercept->egress && intercept->handover_fd >= 0 && !stays &&
        egress_end(intercept->egress, run->sandbox_id, &err) < 0)
        run->outcome.egress.lost = run->outcome.started;
    leave(intercept);
}

int intercept_swap(struct intercept *intercept, const char *sandbox, struct str rules, char *hash,
                   struct err *err)
{
    struct hash given;

    if (find(intercept, err) < 0 || egress_swap(intercept->egress, sandbox, rules, &given, err) < 0)
        return -1;
    hash_text(&given, hash);
    return 0;
}

int intercept_proposals(const char *state_dir, struct arena *mem, const struct json **out,
                        struct err *err)
{
    AUTO(egress) struct egress *egress = NULL;

    if (egress_open(state_dir, &egress, err) < 0)
        return -1;
    return egress_proposals(egress, NULL, mem, out, err);
}

int intercept_answer(struct intercept *intercept, const char *sandbox, const char *proposal,
                     const struct intercept_word *word, struct err *err)
{
    const struct egress_word said = {word->approve, word->by, word->reason, word->network_hash};

    if (reach(intercept, err) < 0)
        return -1;
    return egress_decide(intercept->egress, sandbox, proposal, &said, err);
}
