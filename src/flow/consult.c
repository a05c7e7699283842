/* SPDX-License-Identifier: Apache-2.0 */

/* Outside deciders: what the ceiling and the policy name is asked once Brig has a verdict of its
 * own, and can only make it stricter. */

#include "flow/govern-parts.h"

#include "flow/consult/consult.h"
#include "flow/decide/decide.h"

struct deciders {
    const struct external *above, *own; /* NULL: none */
};

static struct deciders deciders_of(const struct govern *govern, const struct run *run)
{
    const struct policy *ceiling = govern->ceiling.policy;

    /* A sandbox that is made runs nothing; its commands are asked about, one by one. */
    if (action_keeps(run->action.kind))
        return (struct deciders){0};
    return (struct deciders){ceiling ? policy_external(ceiling) : NULL,
                             policy_external(govern->policy)};
}

void govern_consult(struct govern *govern, struct run *run)
{
    struct deciders of = deciders_of(govern, run);

    if (run->is_consulted)
        return;
    if (of.above)
        consult_run(of.above, "ceiling", run);
    if (of.own)
        consult_run(of.own, govern->ceiling.policy || run->verdict.layer ? "policy" : NULL, run);
    /* Who wants a person and names no group has the policy's "default", as a rule has. */
    if (run->verdict.kind == VERDICT_ASK && !run->verdict.terms)
        run->verdict.terms = policy_default_terms(govern->policy, &run->mem);
}

bool govern_must_wait(const struct govern *govern, const struct run *run)
{
    struct deciders of = deciders_of(govern, run);

    return run->verdict.kind == VERDICT_ASK || (of.above && consult_is_due(of.above, run)) ||
           (of.own && consult_is_due(of.own, run));
}
