/* SPDX-License-Identifier: Apache-2.0 */

/* Another policy for a sandbox that stands, without a restart.
 *
 *   1. The policy is read; one that is none changes nothing and is nothing that happened.
 *   2. The sandbox is planned under both. All but the network has to come out the same: walls do
 *      not move while somebody lives between them. Its commands are decided by the new one from
 *      here on.
 *   3. The intent is durable.
 *   4. Egress exchanges the rules at once and acknowledges by hash.
 *   5. What is kept with the sandbox is exchanged. If that fails the old rules are put back; if we
 *      die between the two, what egress holds is not what the next command is planned with, and
 *      that one is denied.
 *   6. The outcome. */

#include "flow/govern-parts.h"

#include "flow/decide/decide.h"
#include "flow/intercept/intercept.h"
#include "flow/record/record.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

#include <string.h>

struct swap {
    struct govern *govern;
    const char *sandbox;
    const char *text; /* of its config */
    struct config config;
    const struct swap_ask *ask;
    const struct policy *policy; /* the new one */
    const char *policy_text;
    struct run was, will; /* the sandbox as it is planned under either */
};

static int plan_under(struct swap *swap, const struct policy *policy, struct run *run,
                      struct err *err)
{
    const struct policy *own = swap->govern->policy;
    struct request request = swap->config.request;

    request.kind = ACTION_CREATE;
    request.argv = govern_no_command;
    request.base = swap->config.base;
    if (admit_run(&request, run, err) < 0)
        return -1;
    (void)strcpy(run->sandbox_id, swap->sandbox);
    swap->govern->policy = policy;
    govern_judge(swap->govern, run);
    swap->govern->policy = own;
    execute_forget(run);
    if (run->verdict.kind == VERDICT_DENY)
        return err_set(err, ERR_FORBIDDEN, "%s: %.300s", reason_code(run->verdict.reason),
                       run->verdict.text ? run->verdict.text : reason_text(run->verdict.reason));
    return 0;
}

/* What else the new policy would change, or NULL. */
static const char *other_change(const struct swap *swap)
{
    const struct posture *a = &swap->was.planned, *b = &swap->will.planned;
    const struct {
        const char *what;
        const char *before, *after;
    } parts[] = {
        {"user, paths or trust", a->sandbox_spec_hash,    b->sandbox_spec_hash   },
        {"image",                a->image_digest,         b->image_digest        },
        {"mounts",               a->mounts_hash,          b->mounts_hash         },
        {"limits",               a->resource_limits_hash, b->resource_limits_hash},
    };

    for (size_t i = 0; i < COUNT(parts); i++)
        if (strcmp(parts[i].before, parts[i].after) != 0)
            return parts[i].what;
    return NULL;
}

static int check_plans(struct swap *swap, struct err *err)
{
    const char *other;

    govern_check_drift(&swap->was, &swap->config);
    if (swap->was.verdict.kind == VERDICT_DENY)
        return err_set(err, ERR_CONFLICT, "%s", swap->was.verdict.text);
    if (!plan_has_network(&swap->was.plan.egress))
        return err_set(err, ERR_CONFLICT,
                       "sandbox %s was made without network rules, and has no way out that could "
                       "get some; make another one",
                       swap->sandbox);
    if (!plan_has_network(&swap->will.plan.egress))
        return err_set(
            err, ERR_CONFLICT,
            "the policy has no network_policies: to take all of its network from sandbox "
            "%s, make it again with --network none",
            swap->sandbox);
    other = other_change(swap);
    if (other)
        return err_set(err, ERR_CONFLICT,
                       "the policy also changes %s of sandbox %s, which stands; only network rules "
                       "and commands can change: make another one for the rest",
                       other, swap->sandbox);
    return 0;
}

static int plan_both(struct swap *swap, struct err *err)
{
    if (plan_under(swap, swap->govern->policy, &swap->was, err) < 0)
        return err_in(err, "the policy it has");
    if (plan_under(swap, swap->policy, &swap->will, err) < 0)
        return err_in(err, "the new policy");
    return check_plans(swap, err);
}

/* ---- what changes, for the receipt ---- */

static const struct json *entries_of(struct arena *mem, struct str rules, const char *section)
{
    const struct json *root = NULL;
    struct mark where;
    struct err err;

    return json_parse(mem, rules, &root, &where, &err) == 0 && json_get(root, section)
               ? json_get(root, section)
               : json_object(mem);
}

static bool is_same_entry(const struct json *a, const struct json *b)
{
    AUTO_BUF struct buf left = BUF(JSON_TEXT_MAX);
    AUTO_BUF struct buf right = BUF(JSON_TEXT_MAX);
    struct err err;

    return json_canonical(a, &left, &err) == 0 && json_canonical(b, &right, &err) == 0 &&
           left.n == right.n && memcmp(left.p, right.p, left.n) == 0;
}

/* By the names of entries: one that is only here was added or, the other way round, removed. */
static void count_change(struct swap *swap, struct run *run, const char *section)
{
    const struct json *before = entries_of(&run->mem, swap->was.plan.egress.rules, section);
    const struct json *after = entries_of(&run->mem, swap->will.plan.egress.rules, section);

    json_each(entry, after)
    {
        const struct json *old = json_get(before, arena_text(&run->mem, entry->key));

        if (!old)
            run->outcome.policy.added++;
        else if (!is_same_entry(old, entry))
            run->outcome.policy.changed++;
    }
    json_each(entry, before)
    {
        if (!json_get(after, arena_text(&run->mem, entry->key)))
            run->outcome.policy.removed++;
    }
}

/* ---- the exchange ---- */

static int rewrite_config(struct swap *swap, struct err *err)
{
    AUTO_BUF struct buf config = BUF(JSON_TEXT_MAX);

    if (config_repolicy(str_of(swap->text), swap->policy_text, &swap->will, &config, err) < 0)
        return -1;
    return execute_kept_rewrite(swap->govern->execute, swap->sandbox, buf_text(&config), err);
}

static int exchange(struct swap *swap, struct err *err)
{
    struct intercept *intercept = swap->govern->intercept;
    const struct plan_egress *plan = &swap->will.plan.egress;
    char hash[MODEL_HASH_BYTES];
    struct err ignored;

    if (intercept_swap(intercept, swap->sandbox, plan->rules, hash, err) < 0)
        return err_in(err, "the old rules hold");
    if (strcmp(hash, plan->hash) == 0 && rewrite_config(swap, err) == 0)
        return 0;
    if (strcmp(hash, plan->hash) != 0)
        (void)err_set(err, ERR_INTEGRITY, "egress acknowledges %s instead of %s", hash, plan->hash);
    if (intercept_swap(intercept, swap->sandbox, swap->was.plan.egress.rules, hash, &ignored) < 0)
        return err_in(err, "the old rules are not back, so no command runs until it is made again");
    return -1;
}

static int carry_out(struct swap *swap, const struct request *request, struct run *run,
                     struct err *err)
{
    struct deed deed;
    bool failed;

    if (plan_both(swap, err) < 0 ||
        deed_begin(&deed, swap->govern, request, swap->ask->kind, run, err) < 0)
        return -1;
    failed = exchange(swap, err) < 0;
    if (!failed) {
        run->outcome.policy.hash = arena_text(&run->mem, str_of(policy_hash(swap->policy)));
        run->outcome.policy.network_hash =
            arena_text(&run->mem, str_of(swap->will.plan.egress.hash));
        count_change(swap, run, "network_policies");
        count_change(swap, run, "network_peers");
        if (swap->ask->done)
            swap->ask->done(swap->ask->context, run);
    }
    return deed_end(&deed, failed ? REASON_POLICY_FAILED : REASON_NONE, err);
}

const char *govern_network(struct execute *execute, const struct config *config)
{
    AUTO(intercept) struct intercept *intercept = NULL;
    char hash[MODEL_HASH_BYTES];
    struct err err;

    if (!config->network_hash)
        return "none";
    intercept = intercept_new(execute_state_dir(execute));
    return intercept_look(intercept, config->id, hash, &err) == 0 &&
                   strcmp(hash, config->network_hash) == 0
               ? "policy"
               : "lost";
}

/* Under the turn of the sandbox: what the new text is made from stays what it is. */
static int swap_in_turn(struct swap *swap, const struct request *request, struct run *run,
                        struct err *err)
{
    AUTO(policy) struct policy *policy = NULL;
    struct mark where;

    if (execute_kept_config(swap->govern->execute, &run->mem, swap->sandbox, &swap->text, err) <
            0 ||
        config_read(&run->mem, str_of(swap->text), &swap->config, err) < 0 ||
        swap->ask->make(swap->ask->context, &run->mem, &swap->config, &swap->policy_text, err) <
            0 ||
        policy_parse(str_of(swap->policy_text), &policy, &where, err) < 0)
        return -1;
    swap->policy = policy;
    return carry_out(swap, request, run, err);
}

/* Whoever is frozen is refused with a receipt, before anything is planned for him. */
static int check_frozen(struct govern *govern, const struct request *request,
                        const struct swap_ask *ask, struct run *run, struct err *err)
{
    struct request made = *request;

    made.kind = ask->kind;
    if (admit_change(&made, run, err) < 0)
        return -1;
    if (!govern_is_frozen(govern, run))
        return 0;
    run_enter(run, STAGE_INTEND);
    if (govern_ready(govern, err) < 0 || record_intent(govern->record, run, err) < 0)
        return err_in(err, "not refusing what cannot be recorded");
    return err_set(err, ERR_FROZEN, "%s (receipt %s)", run->verdict.text, run->intent.id);
}

int govern_swap_as(struct govern *govern, const struct request *request, const struct swap_ask *ask,
                   struct run *run, struct err *err)
{
    struct swap swap = {.govern = govern, .sandbox = request->sandbox, .ask = ask};
    int failed;

    if (check_frozen(govern, request, ask, run, err) < 0 ||
        govern_turn_alone(govern, request->sandbox, err) < 0)
        return -1;
    run_init(&swap.was);
    run_init(&swap.will);
    failed = swap_in_turn(&swap, request, run, err);
    run_done(&swap.was);
    run_done(&swap.will);
    intercept_rest(govern->intercept);
    execute_turn_end(govern->execute);
    return failed;
}

/* Overlays that it was made with stay: whoever changes the policy does not widen them. */
static int give_text(void *context, struct arena *mem, const struct config *config,
                     const char **text, struct err *err)
{
    const char *before = config->request.policy_text;

    return policy_restack(mem, str_of(before ? before : ""), str_of(context), text, err);
}

int govern_policy_swap(struct govern *govern, const struct request *request, const char *text,
                       struct run *run, struct err *err)
{
    const struct swap_ask ask = {
        .kind = ACTION_POLICY, .make = give_text, .context = arena_text(&run->mem, str_of(text))};
    AUTO(policy) struct policy *policy = NULL;
    struct mark where;

    if (policy_parse(str_of(text), &policy, &where, err) < 0)
        return -1;
    return govern_swap_as(govern, request, &ask, run, err);
}
