/* SPDX-License-Identifier: Apache-2.0 */
/* Layers: the ceiling of the machine, the policy, and overlays.
 *
 * Each is asked by itself and the strictest holds, so no layer can widen another, whatever it
 * says. Of equals the policy is named. What they demand of the sandbox is met the same way: the
 * smaller limit, the paths that all of them list, the network only if none of them closes it. */
#include "flow/decide/layers.h"

#include <string.h>

#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/json/json.h"

#define LAYERS_TAG "brig/policy-layers/1"
#define PREIMAGE_MAX (16 * KIB)

/* ---- the hash ---- */

static int write_preimage(const struct policy *ceiling, const struct policy *policy,
                          struct buf *out, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(KIB * 64);
    struct json *object = json_object(&mem), *overlays = json_array(&mem);

    if (ceiling)
        json_put_text(&mem, object, "ceiling", ceiling->own_hash);
    json_put_text(&mem, object, "policy", policy->own_hash);
    for (size_t i = 0; i < policy->overlay_n; i++)
        json_push(overlays, json_text(&mem, str_of(policy->overlays[i]->own_hash)));
    json_put(object, "overlays", overlays);
    return buf_add(out, LAYERS_TAG, sizeof LAYERS_TAG, err) < 0 ||
                   json_canonical(object, out, err) < 0
               ? -1
               : 0;
}

void layers_hash(const struct policy *ceiling, const struct policy *policy,
                 char out[HASH_TEXT_BYTES])
{
    AUTO_BUF struct buf preimage = BUF(PREIMAGE_MAX);
    struct err err;

    memcpy(out, policy->own_hash, HASH_TEXT_BYTES);
    if (!ceiling && !policy->overlay_n)
        return;
    /* A handful of hashes always fits. */
    if (write_preimage(ceiling, policy, &preimage, &err) < 0)
        out[0] = '\0';
    else
        hash_text_of(buf_str(&preimage), out);
}

/* ---- what the layers demand of the sandbox ---- */

static struct words words_copy(struct arena *mem, struct words words)
{
    const char **v;

    if (words.n == 0)
        return (struct words){0};
    v = arena_array(mem, const char *, words.n + 1);
    for (size_t i = 0; i < words.n; i++)
        v[i] = arena_text(mem, str_of(words.v[i]));
    return (struct words){v, words.n};
}

static struct demand demand_copy(struct arena *mem, const struct demand *demand)
{
    struct demand copy = *demand;

    copy.read_only = words_copy(mem, demand->read_only);
    copy.read_write = words_copy(mem, demand->read_write);
    if (demand->network_rules.n)
        copy.network_rules = arena_str(mem, demand->network_rules);
    copy.budgets = NULL;
    copy.budget_n = 0;
    if (demand->requires_release)
        copy.requires_release = arena_text(mem, str_of(demand->requires_release));
    if (demand->not_enforceable)
        copy.not_enforceable = arena_text(mem, str_of(demand->not_enforceable));
    return copy;
}

/* Those of all layers hold, each by itself. */
static void meet_budgets(struct arena *mem, struct demand *demand, const struct demand *layer,
                         const char *name)
{
    size_t n = demand->budget_n + layer->budget_n;
    struct budget_limit *all;

    if (layer->budget_n == 0)
        return;
    all = arena_array(mem, struct budget_limit, n);
    for (size_t i = 0; i < n; i++)
        all[i] = i < demand->budget_n ? demand->budgets[i] : layer->budgets[i - demand->budget_n];
    for (size_t i = demand->budget_n; i < n; i++)
        all[i].layer = name;
    demand->budgets = all;
    demand->budget_n = n;
}

static void meet_limits(struct demand *demand, const struct demand *layer)
{
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        uint64_t most = layer->limits.of[i].value;

        if (!most)
            continue;
        if (!demand->most[i] || most < demand->most[i])
            demand->most[i] = most;
        if (demand->limits.of[i].value > most)
            demand->limits.of[i].value = most;
    }
}

/* Whether a path is this one or lies below it, by components. */
static bool is_below(const char *path, const char *top)
{
    size_t n = strlen(top);

    while (n > 1 && top[n - 1] == '/')
        n--;
    if (n == 1)
        return true; /* everything is below "/" */
    return strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static bool has_word(const char *const *v, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(v[i], word) == 0)
            return true;
    return false;
}

/* Places that are in both lists, none of them twice: of two that lie within each other the inner
 * one. */
static size_t add_common(struct words a, struct words b, const char **v, size_t n)
{
    for (size_t i = 0; i < a.n; i++)
        for (size_t j = 0; j < b.n; j++) {
            const char *inner = is_below(a.v[i], b.v[j])   ? a.v[i]
                                : is_below(b.v[j], a.v[i]) ? b.v[j]
                                                           : NULL;

            if (inner && !has_word(v, n, inner))
                v[n++] = inner;
        }
    return n;
}

/* Written only where both may write, read where both may at least read. */
static void meet_filesystem(struct arena *mem, struct demand *demand, const struct demand *layer)
{
    struct words a = demand->read_only, b = demand->read_write;
    /* Copies: the run may outlive the layer. */
    struct words c = words_copy(mem, layer->read_only), d = words_copy(mem, layer->read_write);
    const char **v = arena_array(mem, const char *, a.n + b.n + c.n + d.n + 1);
    const char **w = arena_array(mem, const char *, b.n + d.n + 1);
    size_t n = add_common(a, c, v, 0);

    n = add_common(a, d, v, n);
    n = add_common(b, c, v, n);
    demand->read_only = (struct words){v, n};
    demand->read_write = (struct words){w, add_common(b, d, w, 0)};
    demand->include_workdir &= layer->include_workdir;
}

/* Nothing runs where one of them lets agents only advise. A program is the version of one agent: of
 * two none is. */
static void meet_mode(struct run *run, const struct demand *layer, const char *name)
{
    struct demand *demand = &run->demand;

    demand->advisory_only |= layer->advisory_only;
    if (!layer->requires_release)
        return;
    if (demand->release_runs < layer->release_runs)
        demand->release_runs = layer->release_runs;
    if (!demand->requires_release)
        demand->requires_release = arena_text(&run->mem, str_of(layer->requires_release));
    else if (strcmp(demand->requires_release, layer->requires_release) != 0 &&
             !demand->not_enforceable)
        demand->not_enforceable = arena_printf(
            &run->mem, "%s: requires_release names another agent than what is below", name);
}

static void meet(struct run *run, const struct policy *layer, const char *name)
{
    struct demand *demand = &run->demand;

    meet_limits(demand, &layer->demand);
    meet_budgets(&run->mem, demand, &layer->demand, name);
    meet_mode(run, &layer->demand, name);
    if (layer->network_none)
        demand->network_rules = (struct str){"", 0};
    if (demand->not_enforceable)
        return;
    if (layer->demand.not_enforceable)
        demand->not_enforceable =
            arena_printf(&run->mem, "%s, %s", name, layer->demand.not_enforceable);
    else if (layer->demand.has_filesystem && !demand->has_filesystem)
        demand->not_enforceable = arena_printf(
            &run->mem,
            "%s: filesystem_policy takes away from that of the policy, which has none; give "
            "the policy one",
            name);
    else if (layer->demand.has_filesystem)
        meet_filesystem(&run->mem, demand, &layer->demand);
}

/* ---- the verdict ---- */

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return !a || (b && b < a) ? b : a;
}

/* Where several layers ask, whoever confirms must be one that each of them names. */
const struct approval_terms *approval_terms_meet(struct arena *mem, const struct approval_terms *a,
                                                 const struct approval_terms *b)
{
    struct approval_terms *both;

    if (!a || !b)
        return a ? a : b;
    both = arena_new(mem, struct approval_terms);
    *both = *a;
    both->quorum = a->quorum > b->quorum ? a->quorum : b->quorum;
    both->wait_s = sooner(a->wait_s, b->wait_s);
    both->use_s = sooner(a->use_s, b->use_s);
    both->reason_required |= b->reason_required;
    both->allow_unbound &= b->allow_unbound;
    both->also = approval_terms_meet(mem, a->also, b);
    return both;
}

static void judge_layer(struct run *run, const struct policy *layer, const char *name)
{
    struct verdict verdict = judge_action(layer, run);

    if (verdict.kind == VERDICT_ASK && run->verdict.kind == VERDICT_ASK)
        run->verdict.terms = approval_terms_meet(&run->mem, run->verdict.terms, verdict.terms);
    if (verdict.kind < run->verdict.kind) {
        run->verdict = verdict;
        run->verdict.layer = name;
    }
}

static const char *overlay_name(struct run *run, size_t at)
{
    return arena_printf(&run->mem, "overlay %zu", at + 1);
}

/* Words in front of the sentence, for those who see no more than that. */
static void say_layer(struct run *run)
{
    struct verdict *verdict = &run->verdict;

    if (verdict->layer && strcmp(verdict->layer, "policy") != 0)
        verdict->text = arena_printf(&run->mem, "%s: %s", verdict->layer,
                                     verdict->text ? verdict->text : reason_text(verdict->reason));
}

static void judge_layers(const struct policy *ceiling, const struct policy *policy, struct run *run)
{
    run->verdict = judge_action(policy, run);
    if (!ceiling && !policy->overlay_n)
        return;
    run->verdict.layer = "policy";
    if (ceiling)
        judge_layer(run, ceiling, "ceiling");
    for (size_t i = 0; i < policy->overlay_n; i++)
        judge_layer(run, policy->overlays[i], overlay_name(run, i));
    /* A ceiling and an overlay name no group, so theirs is the policy's "default". */
    if (run->verdict.kind == VERDICT_ASK && !run->verdict.terms)
        run->verdict.terms = policy_default_terms(policy, &run->mem);
    say_layer(run);
}

static bool is_well_formed(const struct action *action)
{
    if (action->argv.n == 0 || action->argv.n > ARGV_WORDS_MAX)
        return false;
    for (size_t i = 0; i < action->argv.n; i++)
        if (!action->argv.v[i])
            return false;
    return true;
}

static void demand_of_layers(const struct policy *ceiling, const struct policy *policy,
                             struct run *run)
{
    run->demand = demand_copy(&run->mem, &policy->demand);
    meet_budgets(&run->mem, &run->demand, &policy->demand, "policy");
    if (ceiling)
        meet(run, ceiling, "ceiling");
    for (size_t i = 0; i < policy->overlay_n; i++)
        meet(run, policy->overlays[i], overlay_name(run, i));
}

int decide_under(const struct policy *ceiling, const struct policy *policy, struct run *run,
                 struct err *err)
{
    run->verdict = (struct verdict){.kind = VERDICT_DENY, .reason = REASON_DECISION_ERROR};
    demand_of_layers(ceiling, policy, run);
    layers_hash(ceiling, policy, run->policy_hash);
    if (!is_well_formed(&run->action))
        return err_set(err, ERR_INVALID, "deciding: there is no command");

    /* A sandbox that is made runs nothing; rules meet its commands, one by one. */
    if (action_keeps(run->action.kind))
        run->verdict = (struct verdict){.kind = VERDICT_ALLOW, .reason = REASON_SANDBOX_CREATE};
    else
        judge_layers(ceiling, policy, run);
    if (run->demand.not_enforceable && run->verdict.kind != VERDICT_DENY)
        run->verdict = (struct verdict){.kind = VERDICT_DENY,
                                        .reason = REASON_POLICY_NOT_ENFORCEABLE,
                                        .line = policy->not_enforceable_line,
                                        .text = run->demand.not_enforceable};
    return 0;
}

int decide_run(const struct policy *policy, struct run *run, struct err *err)
{
    return decide_under(NULL, policy, run, err);
}
