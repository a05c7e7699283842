/* SPDX-License-Identifier: Apache-2.0 */
/* A body as a sandbox posts it to policy.local. What is taken is written into a policy that loads,
 * with exactly the endpoints it has, and is read again from what is kept of it as the same: no word
 * of the sandbox becomes a word of the policy. */
#include "fuzz.h"

#include "flow/decide/decide.h"
#include "lib/base/limits.h"
#include "lib/egress/proposal.h"

#include <stdlib.h>
#include <string.h>

#define MEMORY (16 * MIB)

static void check_again(struct arena *mem, const struct proposal *proposal)
{
    AUTO_BUF struct buf first = BUF(JSON_TEXT_MAX);
    AUTO_BUF struct buf second = BUF(JSON_TEXT_MAX);
    struct proposal *again = arena_new(mem, struct proposal);
    struct err err;

    if (proposal_read_rule(mem, proposal->name, proposal_json(mem, proposal), again, &err) < 0 ||
        json_canonical(proposal_json(mem, proposal), &first, &err) < 0 ||
        json_canonical(proposal_json(mem, again), &second, &err) < 0 ||
        strcmp(buf_text(&first), buf_text(&second)) != 0)
        abort();
}

/* A path may be no pattern, or two endpoints may contradict each other: that the reader says. */
static void check_policy(const struct proposal *proposal)
{
    AUTO_BUF struct buf text = BUF(POLICY_TEXT_MAX);
    AUTO(net_rules) struct net_rules *before = NULL;
    AUTO(net_rules) struct net_rules *after = NULL;
    struct err err;

    if (policy_propose(STR_LIT("version: 1\n"), proposal, &text, &before, &after, &err) == 0 &&
        (net_rules_endpoint_count(after) != proposal->endpoint_n ||
         net_rules_takes_proposals(after) || !net_rules_has_entry(after, proposal->name)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO_ARENA struct arena mem = ARENA(MEMORY);
    struct proposal_request request;
    struct err err;

    if (n > PROPOSAL_BODY_MAX / 4 ||
        proposal_request_read(&mem, (struct str){(const char *)bytes, n}, &request, &err) < 0)
        return 0;
    json_each(operation, request.operations)
    {
        struct proposal *proposal = arena_new(&mem, struct proposal);

        if (proposal_read(&mem, operation, proposal, &err) < 0)
            continue;
        check_again(&mem, proposal);
        check_policy(proposal);
    }
    return 0;
}
