/* SPDX-License-Identifier: Apache-2.0 */

/* Who is told of what waits for a person: said by the operator, with a receipt, for all tenants. */

#include "flow/govern-parts.h"

#include "flow/advise/advise.h"
#include "flow/notify/notify.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

void govern_tell(struct govern *govern, const char *type, struct run *run,
                 const struct approval *approval)
{
    struct notify_word *words = arena_array(&run->mem, struct notify_word, approval->word_n + 1);
    struct notify_event event = {
        .type = type,
        .tenant = run->action.tenant ? run->action.tenant : "",
        .id = approval->id,
        .digest = approval->digest,
        .requester = approval->requester,
        .state = approval_state_name(approval->state),
        .subject = approval->subject,
        .expires_at = approval->expires_at,
        .quorum = approval->terms.quorum ? approval->terms.quorum : 1,
        .confirmations = approval->confirmations,
        .words = words,
        .word_n = approval->word_n,
    };

    for (size_t i = 0; i < approval->word_n; i++)
        words[i] = (struct notify_word){approval->words[i].by, approval->words[i].confirm,
                                        approval->words[i].at};
    notify_start(govern->shared->root_dir, &event);
}

/* In Brig's words: "create", the path, what it is taken for. */
static struct json *asked_words(struct arena *mem, const struct json *reading)
{
    static const char *const keys[] = {"operation", "target", "destination", "risk"};
    struct json *list = json_array(mem);
    struct str text;

    for (size_t i = 0; i < COUNT(keys); i++)
        if (json_is_text(json_get(reading, keys[i]), &text))
            json_push(list, json_text(mem, text));
    return list;
}

void govern_advise_tell(struct govern *govern, const char *tenant, const struct advise *advise,
                        const struct advise_action *action)
{
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    AUTO_BUF struct buf subject = BUF(NOTIFY_BODY_MAX);
    struct json *about = json_object(&mem), *reading = NULL;
    struct notify_event event = {
        .type = "advisory.action_pending",
        .tenant = tenant ? tenant : "",
        .id = action->id,
        .run_id = advise->id,
        .agent_id = advise->terms.agent_id,
        .digest = action->digest,
        .requester = advise->terms.requester,
        .state = advise_state_name(action->state),
        .expires_at = action->expires_at,
        .quorum = 1,
    };
    struct err ignored; /* whoever looks sees more than he is told */

    if (action->state != ADVISE_PENDING ||
        advise_action_reading(advise, &mem, action, &reading, &ignored) < 0)
        return;
    json_put_text(&mem, about, "action", action_name(ACTION_ADVISE_ACT));
    json_put(about, "command", asked_words(&mem, reading));
    if (json_canonical(about, &subject, &ignored) == 0)
        event.subject = buf_text(&subject);
    notify_start(govern->shared->root_dir, &event);
}

int govern_notify_set(struct govern *govern, const struct request *request,
                      const struct notify_config *config, struct str secret, struct run *run,
                      struct err *err)
{
    char hash[HASH_TEXT_BYTES] = "";
    struct deed deed;
    bool failed;

    if (deed_begin(&deed, govern, request, ACTION_POLICY, run, err) < 0)
        return -1;
    failed = (config ? notify_write(govern->shared->root_dir, config, secret, hash, err)
                     : notify_remove(govern->shared->root_dir, err)) < 0;
    if (!failed) {
        run->outcome.policy.layer = "notify";
        run->outcome.policy.hash = arena_text(&run->mem, str_of(hash));
        run->outcome.policy.is_standing = config != NULL;
    }
    return deed_end(&deed, failed ? REASON_POLICY_FAILED : REASON_NONE, err);
}
