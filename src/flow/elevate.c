/* SPDX-License-Identifier: Apache-2.0 */

/* A run on the machine itself, without walls: by no policy but the standing one, and by nobody's
 * word but a person's. Everything else about it is as with any run: decided, asked, recorded. */

#include "flow/govern-parts.h"

#include "flow/decide/decide.h"

#include <string.h>

static void refuse(struct run *run, enum reason reason, const char *text)
{
    run->verdict = (struct verdict){.kind = VERDICT_DENY, .reason = reason, .text = text};
}

/* What a sandbox would hold, and what no approval is bound to, is not for this. */
static int check_request(const struct request *request, struct err *err)
{
    bool has_limits = false;

    for (int kind = 0; kind < LIMIT_COUNT; kind++)
        has_limits |= request->limits[kind] && kind != LIMIT_WALL && kind != LIMIT_OUTPUT;
    if (request->env.n || request->mounts.n || request->workspace || request->workdir ||
        request->user || request->tty || request->detach || request->keep_background ||
        request->sandbox || request->base || request->sockets_none || has_limits ||
        request->network != NETWORK_DEFAULT)
        return err_set(err, ERR_INVALID,
                       "an elevated run has a command, a time limit, and nothing else");
    return 0;
}

/* The rule of the policy that stands in the state directory, whatever policy decides. */
static void find_rule(struct govern *govern, struct run *run)
{
    AUTO(policy) struct policy *policy = NULL;
    const struct approval_terms *terms;
    const struct elevated_rule *rule;
    const char *text = NULL;
    struct mark where;
    struct err err;

    if (govern_policy_text(govern->state_dir, &run->mem, &text, &err) < 0 ||
        (text && policy_parse(str_of(text), &policy, &where, &err) < 0)) {
        refuse(run, REASON_POLICY_INVALID, arena_text(&run->mem, str_of(err.text)));
        return;
    }
    rule = policy ? policy_elevated(policy, run->action.argv) : NULL;
    if (!rule) {
        refuse(run, REASON_ELEVATED_FORBIDDEN,
               "no rule of \"elevated\" in the standing policy spells out this command");
        return;
    }
    if (elevated_is_carrier(rule->words.v[0])) {
        refuse(run, REASON_ELEVATED_FORBIDDEN, "the program is a link to one that runs others");
        return;
    }
    /* Whoever is to be asked by the rules that decided about it has a say as well. */
    terms =
        approval_terms_meet(&run->mem, policy_default_terms(policy, &run->mem), run->verdict.terms);
    run->action.user = rule->user ? arena_text(&run->mem, str_of(rule->user)) : NULL;
    run->verdict = (struct verdict){
        .kind = VERDICT_ASK,
        .reason = REASON_ELEVATED_ASK,
        .rule = arena_text(&run->mem, str_of(rule->name)),
        .line = rule->line,
        .terms = terms,
        .text =
            arena_printf(&run->mem, "ELEVATED, isolation: none. It runs on this machine itself%s%s",
                         rule->reason ? ": " : "", rule->reason ? rule->reason : ""),
    };
}

/* What policy and layers allow at most holds here, too. */
static void check_limits(struct run *run)
{
    for (enum limit_kind kind = 0; kind < LIMIT_COUNT; kind++) {
        uint64_t asked = run->action.limits.of[kind].value, most = run_limit_most(run, kind);

        if (most && asked > most)
            refuse(run, REASON_LIMIT_ABOVE_POLICY,
                   arena_printf(&run->mem, "%s of %llu: at most %llu is allowed", limit_name(kind),
                                (unsigned long long)asked, (unsigned long long)most));
    }
}

static void judge(struct govern *govern, struct run *run)
{
    struct err err;

    run_enter(run, STAGE_DECIDE);
    govern_decide(govern, run);
    (void)govern_is_frozen(govern, run); /* stronger than any rule */
    if (run->verdict.kind != VERDICT_DENY)
        find_rule(govern, run);
    if (run->verdict.kind != VERDICT_DENY)
        check_limits(run);
    govern_consult(govern, run); /* about what a person would be asked */
    if (run->verdict.kind == VERDICT_DENY)
        return;
    run_enter(run, STAGE_EQUIP);
    if (execute_offer(govern->execute, run, &err) < 0)
        govern_refuse_by(run,
                         err.code == ERR_FORBIDDEN ? REASON_ELEVATED_FORBIDDEN
                                                   : REASON_PROVIDER_UNAVAILABLE,
                         &err);
}

int govern_elevate(struct govern *govern, const struct request *request,
                   const struct streams *streams, struct run *run, struct err *err)
{
    struct request made = *request;

    made.kind = ACTION_ELEVATE;
    made.provider = PROVIDER_HOST;
    made.image = IMAGE_HOST;
    made.no_pool = true;
    made.stdin_stream = false;
    made.network = NETWORK_DEFAULT;
    if (check_request(request, err) < 0 || admit_run(&made, run, err) < 0)
        return -1;
    judge(govern, run);
    return govern_carry_out(govern, &made, run, streams, err);
}

/* What was confirmed is what is there: the program as it was read, and who it runs as. */
void govern_compare_elevated(struct run *run)
{
    struct check *check = &run->checks.of[run->checks.n++];

    *check = (struct check){
        .name = "elevated",
        .reason = REASON_PREFLIGHT_IMAGE_DIGEST,
        .expected = run->planned.preimage_hash,
        .observed = run->observed.preimage_hash,
        .passed = strcmp(run->planned.preimage_hash, run->observed.preimage_hash) == 0};
    if (!check->passed)
        refuse(run, check->reason, "the program is not the one that was confirmed");
}
