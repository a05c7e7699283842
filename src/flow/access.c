/* SPDX-License-Identifier: Apache-2.0 */

/* Tokens: who was let in, and by whom, is recorded like everything else. */

#include "flow/govern-parts.h"

#include "lib/access/access.h"
#include "lib/base/clock.h"

static int intend(struct govern *govern, const struct request *request, enum action_kind kind,
                  struct run *run, struct err *err)
{
    struct request made = *request;

    made.kind = kind;
    return admit_change(&made, run, err) < 0 ? -1 : govern_intend(govern, run, err);
}

static void tell_token(struct run *run, const struct token *token)
{
    run->outcome.token.id = arena_text(&run->mem, str_of(token->id));
    run->outcome.token.tenant = arena_text(&run->mem, str_of(token->tenant));
    run->outcome.token.principal = arena_text(&run->mem, str_of(token->principal));
    run->outcome.token.scopes = scopes_text(&run->mem, token->scopes);
    run->outcome.token.expires_at = token->expires_at;
}

/* A failure has its receipt, too, and is the caller's to tell. */
static int conclude(struct govern *govern, struct run *run, const struct token *token, bool failed,
                    uint64_t began_us, struct err *err)
{
    struct err failure = *err;

    if (failed) {
        run->outcome.exit_code = 1;
        run->outcome.reason = REASON_TOKEN_FAILED;
        run->outcome.failure = arena_text(&run->mem, str_of(failure.text));
        run->outcome.failure_code = failure.code;
    } else {
        tell_token(run, token);
    }
    run->outcome.started = run->outcome.ended = true;
    run->outcome.duration_us = clock_us() - began_us;
    if (govern_conclude(govern, run, err) < 0)
        return -1;
    execute_unclaim(govern->execute);
    if (failed)
        *err = failure;
    return failed ? -1 : 0;
}

int govern_token_issue(struct govern *govern, const struct request *request, struct access *access,
                       const struct token *ask, struct run *run, struct token *out, char *text,
                       struct err *err)
{
    uint64_t began_us = clock_us();
    bool failed;

    if (intend(govern, request, ACTION_TOKEN_CREATE, run, err) < 0)
        return -1;
    failed = access_issue(access, ask, out, text, err) < 0;
    return conclude(govern, run, out, failed, began_us, err);
}

int govern_token_revoke(struct govern *govern, const struct request *request, struct access *access,
                        const char *id, const char *tenant, struct run *run, struct token *out,
                        struct err *err)
{
    uint64_t began_us = clock_us();
    bool failed;

    if (intend(govern, request, ACTION_TOKEN_REVOKE, run, err) < 0)
        return -1;
    failed = access_revoke(access, id, tenant, out, err) < 0;
    return conclude(govern, run, out, failed, began_us, err);
}
