/* SPDX-License-Identifier: Apache-2.0 */

/* brig policy proposals: what programs inside asked for at policy.local, and a person's word.
 *
 * Every text of a proposal is the sandbox's own, and is escaped before a terminal sees it. */

#include "surface/cli/sandbox.h"

#include <string.h>

#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "model/run.h"
#include "surface/cli/remote.h"
#include "surface/cli/suggest.h"

#define SAID_MAX (32 * KIB)

static void print_said(FILE *to, struct str text)
{
    AUTO_BUF struct buf shown = BUF(SAID_MAX);
    struct err ignored;

    (void)fputs(text_escape(text, &shown, &ignored) == 0 ? buf_text(&shown) : "(too long)", to);
}

static void print_member(FILE *to, struct arena *mem, const struct json *record, const char *key)
{
    print_said(to, str_of(doc_text(mem, record, key)));
}

/* ---- list ---- */

static bool is_wanted(struct invocation *inv, const struct json *record)
{
    const char *sandbox = option_text(inv, "--sandbox");

    if (sandbox && strcmp(doc_text(&inv->mem, record, "sandbox"), sandbox) != 0)
        return false;
    return option_flag(inv, "--all") ||
           strcmp(doc_text(&inv->mem, record, "status"), "pending") == 0;
}

static void print_line(struct invocation *inv, const struct json *record)
{
    struct arena *mem = &inv->mem;

    (void)fprintf(inv->out, "%s  %-8s  %s  %s  %s  ", doc_text(mem, record, "id"),
                  doc_text(mem, record, "status"), doc_text(mem, record, "created_at"),
                  doc_text(mem, record, "sandbox"), doc_text(mem, record, "rule_name"));
    print_member(inv->out, mem, record, "intent_summary");
    (void)fputc('\n', inv->out);
}

static int list(struct invocation *inv, const char *state_dir, struct err *err)
{
    struct json *answer = json_object(&inv->mem), *wanted = json_array(&inv->mem);
    const struct json *all = NULL;
    bool any = false;

    if (govern_proposals(state_dir, &inv->mem, &all, err) < 0)
        return cli_error(inv, err);
    json_each(record, json_get(all, "proposals"))
    {
        struct json *one;

        if (!is_wanted(inv, record))
            continue;
        any = true;
        if (!inv->json) {
            print_line(inv, record);
            continue;
        }
        one = json_object(&inv->mem);
        json_each(member, record) json_copy_member(&inv->mem, one, member);
        json_push(wanted, one);
    }
    if (!any)
        cli_none(inv, option_flag(inv, "--all") ? "no proposals"
                                                : "no proposals wait (--all shows the others)");
    json_put(answer, "proposals", wanted);
    return inv->json ? cli_json(inv, answer) : 0;
}

/* ---- show ---- */

struct showing {
    struct invocation *inv;
    struct proposal_asked asked;
    struct proposal_effect effect;
    bool has_effect;
    struct err no_effect;   /* why there is none */
    bool is_credentialed;   /* a binding of the vault names one of its hosts */
    const char *vault_note; /* why that is not known, or NULL */
    struct json *grants;
};

static void on_bound(void *context, struct str host, unsigned port)
{
    struct showing *showing = context;
    const struct proposal *proposal = &showing->asked.proposal;

    for (size_t e = 0; e < proposal->endpoint_n; e++)
        for (size_t p = 0; p < proposal->endpoints[e].port_n; p++)
            if (proposal->endpoints[e].ports[p] == port &&
                str_eq(proposal->endpoints[e].host, host))
                showing->is_credentialed = true;
}

static unsigned warnings_of(const struct showing *showing)
{
    return proposal_warnings(&showing->asked.proposal) |
           (showing->is_credentialed ? 1U << SUGGEST_WARN_AT_CREDENTIALED : 0);
}

static void print_grant(void *context, const struct proposal_grant *grant)
{
    FILE *out = ((const struct showing *)context)->inv->out;
    struct str method = str_is(grant->method, "*") ? STR_LIT("any method on") : grant->method;

    (void)fprintf(out, "  " STR_FMT ": ", STR_ARG(grant->binary));
    if (grant->method.n == 0)
        (void)fprintf(out, "connect to " STR_FMT ":%u, any bytes", STR_ARG(grant->host),
                      grant->port);
    else
        (void)fprintf(out, STR_FMT " " STR_FMT ":%u" STR_FMT ", any query, any body",
                      STR_ARG(method), STR_ARG(grant->host), grant->port, STR_ARG(grant->path));
    (void)fprintf(out, "%s%s\n", str_is(grant->method, "GET") ? "; HEAD too" : "",
                  grant->is_known ? " (allowed already)" : "");
}

static void print_warnings(const struct showing *showing)
{
    FILE *out = showing->inv->out;
    unsigned bits = warnings_of(showing);

    for (unsigned at = 0; at < SUGGEST_WARNING_N; at++)
        if (bits & 1U << at)
            (void)fprintf(out, "mind (%s): %s\n", suggest_warning_code(at),
                          suggest_warning_text(at));
    if (showing->vault_note)
        (void)fprintf(out, "mind (vault): %s\n", showing->vault_note);
}

static void print_effect(struct showing *showing)
{
    const struct proposal_effect *effect = &showing->effect;
    FILE *out = showing->inv->out;

    if (!showing->has_effect) {
        (void)fputs("cannot be approved: ", out);
        print_said(out, str_of(showing->no_effect.text));
        (void)fputc('\n', out);
        return;
    }
    if (effect->is_changed)
        (void)fputs("The policy has changed since this was asked for; what follows is for the "
                    "policy as it is now.\n",
                    out);
    (void)fputs("It would newly allow exactly:\n", out);
    proposal_each_grant(&showing->asked.proposal, effect->before, print_grant, showing);
    print_warnings(showing);
    (void)fprintf(out, "digest: %s\n", effect->digest);
    if (strcmp(showing->asked.status, "pending") == 0)
        (void)fprintf(out, "To allow it: brig policy proposals approve %s --digest %s\n",
                      showing->asked.id, effect->digest);
}

static int print_show(struct showing *showing)
{
    static const char *const keys[] = {
        "id",     "status",    "sandbox", "created_at", "binary", "intent_summary",
        "reason", "rule_name", "subject", NULL};
    struct arena *mem = &showing->inv->mem;
    FILE *out = showing->inv->out;

    for (size_t i = 0; keys[i]; i++) {
        if (!json_get(showing->asked.record, keys[i]))
            continue;
        (void)fprintf(out, "%s: ", keys[i]);
        print_member(out, mem, showing->asked.record, keys[i]);
        (void)fputc('\n', out);
    }
    print_effect(showing);
    return 0;
}

static void grant_json(void *context, const struct proposal_grant *grant)
{
    struct showing *showing = context;
    struct arena *mem = &showing->inv->mem;
    struct json *object = json_object(mem);

    json_put(object, "binary", json_text(mem, grant->binary));
    json_put(object, "host", json_text(mem, grant->host));
    json_put_int(mem, object, "port", grant->port);
    json_put_text(mem, object, "what", grant->method.n ? "request" : "tunnel");
    if (grant->method.n) {
        json_put(object, "method", json_text(mem, grant->method));
        json_put(object, "path", json_text(mem, grant->path));
    }
    json_put_bool(mem, object, "allowed_already", grant->is_known);
    json_push(showing->grants, object);
}

static struct json *warnings_json(const struct showing *showing)
{
    struct arena *mem = &showing->inv->mem;
    struct json *warnings = json_array(mem);
    unsigned bits = warnings_of(showing);

    for (unsigned at = 0; at < SUGGEST_WARNING_N; at++) {
        struct json *one;

        if (!(bits & 1U << at))
            continue;
        one = json_object(mem);
        json_put_text(mem, one, "code", suggest_warning_code(at));
        json_put_text(mem, one, "text", suggest_warning_text(at));
        json_push(warnings, one);
    }
    return warnings;
}

static int show_json(struct showing *showing)
{
    struct arena *mem = &showing->inv->mem;
    struct json *object = json_object(mem);

    json_each(member, showing->asked.record) json_copy_member(mem, object, member);
    if (showing->has_effect) {
        showing->grants = json_array(mem);
        proposal_each_grant(&showing->asked.proposal, showing->effect.before, grant_json, showing);
        json_put(object, "newly_allows", showing->grants);
        json_put(object, "warnings", warnings_json(showing));
        json_put_bool(mem, object, "policy_changed", showing->effect.is_changed);
        json_put_text(mem, object, "approval_digest", showing->effect.digest);
        json_put_bytes(mem, object, "policy", str_of(showing->effect.text));
    } else {
        json_put_bytes(mem, object, "cannot_be_approved", str_of(showing->no_effect.text));
    }
    if (showing->vault_note)
        json_put_bytes(mem, object, "vault", str_of(showing->vault_note));
    return cli_json(showing->inv, object);
}

static int show(struct invocation *inv, const char *state_dir, const char *id, struct err *err)
{
    AUTO(execute) struct execute *execute = NULL;
    struct showing *showing = arena_new(&inv->mem, struct showing);
    int status;

    showing->inv = inv;
    if (govern_proposal_find(state_dir, &inv->mem, id, &showing->asked, err) < 0 ||
        execute_open(state_dir, &execute, err) < 0)
        return cli_error(inv, err);
    showing->has_effect = govern_proposal_look(execute, &inv->mem, &showing->asked,
                                               &showing->effect, &showing->no_effect) == 0;
    showing->vault_note = vault_hosts(inv, state_dir, on_bound, showing);
    status = inv->json ? show_json(showing) : print_show(showing);
    proposal_effect_done(&showing->effect);
    return status;
}

/* ---- the word ---- */

static int print_word(struct invocation *inv, const struct proposal_asked *asked, bool approve,
                      const struct run *run)
{
    struct json *object;

    if (!inv->json) {
        (void)fprintf(inv->out, "%s %s; receipt %s\n",
                      approve ? "approved, and in force from now on:" : "rejected:", asked->id,
                      run->closing.id);
        return 0;
    }
    object = json_object(&inv->mem);
    json_put_text(&inv->mem, object, "id", asked->id);
    json_put_text(&inv->mem, object, "status", approve ? "approved" : "rejected");
    json_put_text(&inv->mem, object, "sandbox", asked->sandbox);
    json_put_text(&inv->mem, object, "receipt_id", run->closing.id);
    if (run->outcome.policy.network_hash)
        json_put_text(&inv->mem, object, "network_hash", run->outcome.policy.network_hash);
    return cli_json(inv, object);
}

static int decide(struct invocation *inv, const char *state_dir, const char *id, bool approve,
                  struct err *err)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {.by_no_rules = true};
    const char *reason = option_text(inv, "--reason");
    const struct proposal_decision decision = {
        .approve = approve, .reason = reason ? reason : "", .digest = option_text(inv, "--digest")};
    struct proposal_asked *asked = arena_new(&inv->mem, struct proposal_asked);
    struct run run;
    int status;

    if (reason && strlen(reason) > PROPOSAL_INTENT_MAX) {
        (void)err_set(err, ERR_LIMIT, "--reason has at most %d bytes", PROPOSAL_INTENT_MAX);
        return cli_error(inv, err);
    }
    if (govern_proposal_find(state_dir, &inv->mem, id, asked, err) < 0)
        return cli_error(inv, err);
    /* A no needs nothing of the sandbox, which may be gone. */
    inv->subject = approve ? asked->sandbox : NULL;
    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    run_init(&run);
    status = govern_proposal_decide(call.govern, &call.request, asked, &decision, &run, err) < 0
                 ? cli_error(inv, err)
                 : print_word(inv, asked, approve, &run);
    run_done(&run);
    return status;
}

int run_policy_proposals(struct invocation *inv)
{
    const char *verb = inv->operands.n ? inv->operands.v[0] : "list";
    const char *id = inv->operands.n > 1 ? inv->operands.v[1] : NULL;
    const char *state_dir = NULL;
    struct err err;

    if (cli_state(inv, &state_dir, &err) < 0)
        return cli_error(inv, &err);
    if (strcmp(verb, "list") == 0 && !id)
        return list(inv, state_dir, &err);
    if (strcmp(verb, "show") == 0 && id)
        return show(inv, state_dir, id, &err);
    if ((strcmp(verb, "approve") == 0 || strcmp(verb, "reject") == 0) && id)
        return decide(inv, state_dir, id, verb[0] == 'a', &err);
    (void)err_set(
        &err, ERR_INVALID,
        "write \"list\", or \"show\", \"approve\" or \"reject\" and the id of a proposal");
    return cli_error(inv, &err);
}
