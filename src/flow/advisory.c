/* SPDX-License-Identifier: Apache-2.0 */

/* Advisory sessions in the ledger: both ends of every chain, and what people confirmed. */

#include "flow/advisory-parts.h"
#include "flow/govern-parts.h"

#include "flow/advise/advise.h"
#include "flow/approve/approve.h"
#include "flow/record/record.h"
#include "lib/access/freeze.h"
#include "lib/base/io.h"
#include "lib/json/json.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The session and the run of its receipts are called the same: the ledger lets a run begin once and
 * end once. */
static int admit_session(const struct request *request, const struct advise *advise,
                         struct run *run, struct err *err)
{
    struct request made = *request;

    made.kind = ACTION_ADVISE;
    memcpy(run->id, advise->id, sizeof run->id);
    memcpy(run->session_id, advise->id, sizeof run->session_id);
    memcpy(run->sandbox_id, advise->id, sizeof run->sandbox_id);
    return admit_change(&made, run, err);
}

static struct json *about(struct arena *mem, const struct advise *advise, const char *stage)
{
    struct json *json = json_object(mem);

    json_put_text(mem, json, "agent_id", advise->terms.agent_id);
    json_put_text(mem, json, "agent_version", advise->terms.agent_version);
    json_put_text(mem, json, "channel", advise->terms.channel);
    json_put_text(mem, json, "constitution_sha256", advise->constitution_sha256);
    json_put_text(mem, json, "run_id", advise->id);
    json_put_text(mem, json, "stage", stage);
    return json;
}

static int record_start(struct govern *govern, const struct request *request, struct advise *advise,
                        struct run *run, struct err *err)
{
    if (govern_ready(govern, err) < 0 || admit_session(request, advise, run, err) < 0)
        return -1;
    run->verdict = (struct verdict){.kind = VERDICT_ALLOW, .reason = REASON_POLICY_DEFAULT_ALLOW};
    (void)govern_is_frozen(govern, run);
    run->outcome.advisory = about(&run->mem, advise, "start");
    run_enter(run, STAGE_INTEND);
    if (record_intent(govern->record, run, err) < 0)
        return err_in(err, "not beginning what cannot be recorded");
    if (!is_allowed(run))
        return err_set(err, ERR_FROZEN, "%s (receipt %s)", run->verdict.text, run->intent.id);
    return advise_anchored(advise, run->intent.id, err);
}

int govern_advise_start(struct govern *govern, const struct request *request,
                        const struct advise_terms *terms, struct run *run, struct advise **out,
                        struct err *err)
{
    AUTO(advise) struct advise *advise = NULL;
    AUTO_FD int folder_fd = -1; /* held */
    struct err ignored;

    if (sessions_hold(arena_printf(&run->mem, "%s/advisory", govern->state_dir), &folder_fd, err) <
        0)
        return -1;
    if (advise_start(govern->state_dir, terms, &advise, err) < 0)
        return -1;
    if (record_start(govern, request, advise, run, err) < 0) {
        (void)!dir_remove(AT_FDCWD, advise->dir, &ignored); /* it was never begun */
        return -1;
    }
    *out = TAKE(advise);
    return 0;
}

/* Who was killed the moment the ledger had its beginning has not written down which receipt that
 * is. */
static int find_beginning(struct govern *govern, struct advise *advise, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(ADVISE_MEMORY_MAX);
    const struct anchor *anchor;
    struct anchors anchors;

    if (*advise->intent_id)
        return 0;
    if (anchors_read(govern, &mem, advise->terms.agent_id, &anchors, err) < 0)
        return -1;
    anchor = anchor_find(&anchors, advise->id);
    return anchor
               ? advise_anchored(advise, anchor->intent, err)
               : err_set(err, ERR_CONFLICT, "session %s was never begun in the ledger", advise->id);
}

int govern_advise_end(struct govern *govern, const struct request *request, struct advise *advise,
                      const char *why, struct run *run, struct err *err)
{
    struct json *json;

    if (find_beginning(govern, advise, err) < 0 || advise_end(advise, why, err) < 0 ||
        govern_ready(govern, err) < 0 || admit_session(request, advise, run, err) < 0)
        return -1;
    json = about(&run->mem, advise, "end");
    json_each(member, advise_tally_json(&run->mem, &advise->tally))
        json_copy_member(&run->mem, json, member);
    run->outcome.advisory = json;
    run->outcome.started = run->outcome.ended = true;
    run->verdict = (struct verdict){.kind = VERDICT_ALLOW, .reason = REASON_POLICY_DEFAULT_ALLOW};
    (void)snprintf(run->intent.id, sizeof run->intent.id, "%s", advise->intent_id);
    (void)unlinkat(advise->dir_fd, "agent", 0); /* whose Brig died; its hash stays */
    if (record_close(govern->record, run, err) == 0)
        return 0;
    return err->code == ERR_CONFLICT ? 0 : err_in(err, "the end of session %s", advise->id);
}

/* ---- a person's word ---- */

static int check_word(struct govern *govern, struct arena *mem, struct advise *advise,
                      const struct advise_decision *decision, struct err *err)
{
    AUTO(approvals) struct approvals *approvals = NULL;
    struct advise_action action;
    struct hash preimage;

    if (approvals_open(govern->state_dir, &approvals, err) < 0 ||
        advise_action_show(advise, mem, decision->action, &action, err) < 0)
        return -1;
    advise_preimage(action.id, action.digest, decision->confirm, &preimage);
    return custodian_check(approvals, decision->custodian, &preimage, &decision->signature, err);
}

static void tell_action(struct run *run, const struct advise *advise,
                        const struct advise_decision *decision, const struct advise_action *action)
{
    struct json *json = about(&run->mem, advise, "action");
    char hash[HASH_TEXT_BYTES];

    hash_text_of(action->request, hash);
    json_put_text(&run->mem, json, "decided_by", action->decided_by);
    json_put_text(&run->mem, json, "digest", action->digest);
    json_put_bool(&run->mem, json, "done", action->is_done);
    json_put_text(&run->mem, json, "request_id", action->id);
    json_put_text(&run->mem, json, "request_sha256", hash);
    json_put_text(&run->mem, json, "state", advise_state_name(action->state));
    if (decision->custodian) {
        char signature[2 * SIGNATURE_BYTES + 1];

        hex_encode(decision->signature.b, sizeof decision->signature.b, signature);
        json_put_text(&run->mem, json, "custodian_signature", signature);
    }
    run->outcome.advisory = json;
}

/* What happens then is an effect of whoever let the agent ask for it, also through others. */
static int check_thawed(struct govern *govern, const struct request *request,
                        const struct advise *advise, struct err *err)
{
    const char *requester = advise->terms.requester;
    const struct actor actor = {request->tenant, requester, requester};
    struct frozen by;

    if (!freezer_stops(govern->shared->freezer, &actor, &by))
        return 0;
    return err_set(err, ERR_FROZEN, "%.64s, who began the session, is frozen%s%s", requester,
                   by.reason[0] ? ", " : "", by.reason);
}

static int decide(struct advise *advise, struct arena *mem, const struct advise_decision *decision,
                  const char *by, struct advise_action *out, struct err *err)
{
    const struct advise_word word = {.words = decision->words,
                                     .digest = decision->digest,
                                     .by = by,
                                     .reject = !decision->confirm};

    return advise_action_settle(advise, mem, decision->action, &word, out, err);
}

int govern_advise_decide(struct govern *govern, const struct request *request,
                         struct advise *advise, const struct advise_decision *decision,
                         struct run *run, struct advise_action *out, struct err *err)
{
    struct request made = *request;
    struct deed deed;
    bool frozen, failed;

    if (decision->custodian) {
        if (strcmp(decision->custodian, advise->terms.requester) == 0)
            return err_set(err, ERR_FORBIDDEN, "%.64s began the session, and cannot confirm",
                           decision->custodian);
        if (check_word(govern, &run->mem, advise, decision, err) < 0)
            return -1;
        made.principal = arena_printf(&run->mem, "custodian:%s", decision->custodian);
    }
    memcpy(run->session_id, advise->id, sizeof run->session_id);
    made.is_refusal = !decision->confirm;
    if (deed_begin(&deed, govern, &made, ACTION_ADVISE_ACT, run, err) < 0)
        return -1;
    frozen = decision->confirm && check_thawed(govern, request, advise, err) < 0;
    failed = frozen || decide(advise, &run->mem, decision, made.principal, out, err) < 0;
    if (!failed)
        tell_action(run, advise, decision, out);
    return deed_end(&deed,
                    frozen   ? REASON_SYSTEM_FROZEN
                    : failed ? REASON_ADVISORY_FAILED
                             : REASON_NONE,
                    err);
}
