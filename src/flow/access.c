/* SPDX-License-Identifier: Apache-2.0 */

/* Tokens: who was let in, and by whom, is recorded like everything else. */

#include "flow/govern-parts.h"

#include "lib/access/access.h"

#include <stdio.h>

static void tell_token(struct run *run, const struct token *token)
{
    run->outcome.token.id = arena_text(&run->mem, str_of(token->id));
    run->outcome.token.tenant = arena_text(&run->mem, str_of(token->tenant));
    run->outcome.token.principal = arena_text(&run->mem, str_of(token->principal));
    run->outcome.token.scopes = scopes_text(&run->mem, token->scopes);
    run->outcome.token.expires_at = token->expires_at;
}

int govern_token_issue(struct govern *govern, const struct request *request, struct access *access,
                       const struct token *ask, struct run *run, struct token *out, char *text,
                       struct err *err)
{
    struct token made = *ask;
    struct deed deed;
    bool failed;

    (void)snprintf(made.made_by, sizeof made.made_by, "%s", request->principal);
    if (deed_begin(&deed, govern, request, ACTION_TOKEN_CREATE, run, err) < 0)
        return -1;
    failed = access_issue(access, &made, out, text, err) < 0;
    if (!failed)
        tell_token(run, out);
    return deed_end(&deed, failed ? REASON_TOKEN_FAILED : REASON_NONE, err);
}

int govern_token_revoke(struct govern *govern, const struct request *request, struct access *access,
                        const char *id, const char *tenant, struct run *run, struct token *out,
                        struct err *err)
{
    struct deed deed;
    bool failed;

    if (deed_begin(&deed, govern, request, ACTION_TOKEN_REVOKE, run, err) < 0)
        return -1;
    failed = access_revoke(access, id, tenant, out, err) < 0;
    if (!failed)
        tell_token(run, out);
    return deed_end(&deed, failed ? REASON_TOKEN_FAILED : REASON_NONE, err);
}
