/* SPDX-License-Identifier: Apache-2.0 */

/* What sandboxes asked for at policy.local, and a person's word on it.
 *
 * Egress keeps proposals; they are told, and answered, through it. A yes is for one proposal on top
 * of one set of rules: it names a digest of both, and is none when either is another by then. */

#include "flow/govern-parts.h"

#include "flow/decide/decide.h"
#include "flow/intercept/intercept.h"
#include "lib/base/limits.h"
#include "lib/crypto/crypto.h"
#include "lib/egress/rules.h"
#include "lib/json/json.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static struct str text_in(const struct json *map, const char *key)
{
    struct str text = {"", 0};

    (void)json_is_text(json_get(map, key), &text); /* absent is empty */
    return text;
}

/* ---- what waits ---- */

int govern_proposals(const char *state_dir, struct arena *mem, const struct json **out,
                     struct err *err)
{
    const char *path = arena_printf(mem, "%s/egress/proposals", state_dir);
    struct json *none;

    if (access(path, F_OK) == 0)
        return intercept_proposals(state_dir, mem, out, err);
    if (errno != ENOENT)
        return err_os(err, "looking for %s", path);
    none = json_object(mem);
    json_put(none, "proposals", json_array(mem));
    *out = none;
    return 0;
}

/* Of its own members, as it was written: what egress tells is what the sandbox said. */
static int check_record(struct arena *mem, const struct json *record, struct err *err)
{
    static const char *const later[] = {"digest", "status", "reason"};
    AUTO_BUF struct buf text = BUF(JSON_TEXT_MAX);
    struct json *plain = json_object(mem);
    char digest[HASH_TEXT_BYTES];

    json_each(member, record)
    {
        bool is_later = false;

        for (size_t i = 0; i < COUNT(later); i++)
            is_later = is_later || str_is(member->key, later[i]);
        if (!is_later)
            json_copy_member(mem, plain, member);
    }
    if (json_canonical(plain, &text, err) < 0)
        return -1;
    hash_text_of(buf_str(&text), digest);
    if (!str_is(text_in(record, "digest"), digest))
        return err_set(err, ERR_INTEGRITY, "the proposal is not what its digest says");
    return 0;
}

static int find_record(const struct json *list, struct str id, const struct json **out,
                       struct err *err)
{
    *out = NULL;
    json_each(record, list)
    {
        struct str known = text_in(record, "id");

        if (known.n < id.n || memcmp(known.p, id.p, id.n) != 0)
            continue;
        if (*out)
            return err_set(err, ERR_CONFLICT, "several proposals begin with " STR_FMT, STR_ARG(id));
        *out = record;
    }
    if (!*out || id.n == 0)
        return err_set(err, ERR_NOT_FOUND,
                       "no such proposal; \"brig policy proposals list\" shows those there are");
    return 0;
}

int govern_proposal_find(const char *state_dir, struct arena *mem, const char *id,
                         struct proposal_asked *out, struct err *err)
{
    const struct json *all = NULL;

    if (govern_proposals(state_dir, mem, &all, err) < 0 ||
        find_record(json_get(all, "proposals"), str_of(id), &out->record, err) < 0 ||
        check_record(mem, out->record, err) < 0 ||
        proposal_read_rule(mem, text_in(out->record, "rule_name"), json_get(out->record, "rule"),
                           &out->proposal, err) < 0)
        return -1;
    out->id = arena_text(mem, text_in(out->record, "id"));
    out->sandbox = arena_text(mem, text_in(out->record, "sandbox"));
    out->status = arena_text(mem, text_in(out->record, "status"));
    return 0;
}

/* ---- what it would come to ---- */

static int look(const struct proposal_asked *asked, struct arena *mem, const char *policy_text,
                struct proposal_effect *out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(POLICY_TEXT_MAX);

    if (policy_propose(str_of(policy_text ? policy_text : ""), &asked->proposal, &text,
                       &out->before, &out->after, err) < 0)
        return -1;
    out->text = arena_text(mem, buf_str(&text));
    out->is_changed =
        !str_is(text_in(asked->record, "base_policy_hash"), net_rules_hash(out->before));
    proposal_digest(text_in(asked->record, "digest"), str_of(net_rules_hash(out->before)),
                    out->digest);
    return 0;
}

void proposal_effect_done(struct proposal_effect *effect)
{
    net_rules_free(effect->before);
    net_rules_free(effect->after);
}

int govern_proposal_look(struct execute *execute, struct arena *mem,
                         const struct proposal_asked *asked, struct proposal_effect *out,
                         struct err *err)
{
    struct config config;
    const char *made = NULL;

    if (execute_kept_config(execute, mem, asked->sandbox, &made, err) < 0 ||
        config_read(mem, str_of(made), &config, err) < 0)
        return err_in(err, "only sandboxes that stay can get another policy");
    return look(asked, mem, config.request.policy_text, out, err);
}

/* ---- yes ---- */

struct yes {
    struct govern *govern;
    const struct request *request;
    const struct proposal_asked *asked;
    const struct proposal_decision *decision;
    char digest[HASH_TEXT_BYTES];
    bool is_told;
    struct err untold;
};

static int check_digest(const struct yes *yes, const struct proposal_effect *effect,
                        struct err *err)
{
    const char *given = yes->decision->digest;

    if (given && strcmp(given, effect->digest) != 0)
        return err_set(
            err, ERR_CONFLICT,
            "the digest is not that of this proposal on top of the rules the sandbox has "
            "now; nothing was changed: look at it again with \"brig policy proposals "
            "show %s\"",
            yes->asked->id);
    if (!given && effect->is_changed)
        return err_set(err, ERR_CONFLICT,
                       "the policy of the sandbox has changed since this was asked for, and what "
                       "it would newly allow may be something else; nothing was changed: look at "
                       "it with \"brig policy proposals show %s\", then approve with the --digest "
                       "it prints",
                       yes->asked->id);
    return 0;
}

static int make_text(void *context, struct arena *mem, const struct config *config,
                     const char **text, struct err *err)
{
    AUTO_PROPOSAL_EFFECT struct proposal_effect effect = {0};
    struct yes *yes = context;

    if (look(yes->asked, mem, config->request.policy_text, &effect, err) < 0 ||
        check_digest(yes, &effect, err) < 0)
        return -1;
    memcpy(yes->digest, effect.digest, sizeof yes->digest);
    *text = effect.text;
    return 0;
}

static void tell_word(struct run *run, const struct proposal_asked *asked,
                      const struct proposal_decision *decision, const char *digest)
{
    run->outcome.approval.id = arena_text(&run->mem, str_of(asked->id));
    run->outcome.approval.digest = arena_text(&run->mem, str_of(digest));
    run->outcome.approval.requester = arena_printf(&run->mem, "sandbox:%s", asked->sandbox);
    run->outcome.approval.comment = arena_text(&run->mem, str_of(decision->reason));
}

static void tell_yes(void *context, struct run *run)
{
    struct yes *yes = context;
    const struct intercept_word word = {.approve = true,
                                        .by = yes->request->principal,
                                        .reason = yes->decision->reason,
                                        .network_hash = run->outcome.policy.network_hash};

    tell_word(run, yes->asked, yes->decision, yes->digest);
    yes->is_told = intercept_answer(yes->govern->intercept, yes->asked->sandbox, yes->asked->id,
                                    &word, &yes->untold) == 0;
}

static int approve(struct govern *govern, const struct request *request,
                   const struct proposal_asked *asked, const struct proposal_decision *decision,
                   struct run *run, struct err *err)
{
    struct yes yes = {.govern = govern, .request = request, .asked = asked, .decision = decision};
    const struct swap_ask ask = {
        .kind = ACTION_APPROVE, .context = &yes, .make = make_text, .done = tell_yes};

    if (govern_swap_as(govern, request, &ask, run, err) < 0)
        return -1;
    if (yes.is_told)
        return 0;
    *err = yes.untold;
    return err_in(err, "the rules hold, but whoever waits inside was not told");
}

/* ---- no ---- */

static int reject(struct govern *govern, const struct request *request,
                  const struct proposal_asked *asked, const struct proposal_decision *decision,
                  struct run *run, struct err *err)
{
    const struct intercept_word word = {
        .by = request->principal, .reason = decision->reason, .network_hash = ""};
    struct deed deed;
    bool failed;

    if (deed_begin(&deed, govern, request, ACTION_REJECT, run, err) < 0)
        return -1;
    failed = intercept_answer(govern->intercept, asked->sandbox, asked->id, &word, err) < 0;
    intercept_rest(govern->intercept);
    if (!failed)
        tell_word(run, asked, decision, arena_text(&run->mem, text_in(asked->record, "digest")));
    return deed_end(&deed, failed ? REASON_APPROVAL_FAILED : REASON_NONE, err);
}

int govern_proposal_decide(struct govern *govern, const struct request *request,
                           const struct proposal_asked *asked,
                           const struct proposal_decision *decision, struct run *run,
                           struct err *err)
{
    struct request made = *request;

    made.sandbox = asked->sandbox;
    if (strcmp(asked->status, "pending") != 0)
        return err_set(err, ERR_CONFLICT, "the proposal is %s already", asked->status);
    return decision->approve ? approve(govern, &made, asked, decision, run, err)
                             : reject(govern, &made, asked, decision, run, err);
}
