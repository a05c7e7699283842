/* SPDX-License-Identifier: Apache-2.0 */

/* What handlers have in common. They run on a job's thread. */

#include "surface/api/call.h"

#include <assert.h>
#include <string.h>

#include "flow/decide/decide.h"
#include "lib/base/limits.h"
#include "model/run.h"
#include "surface/view/view.h"

int call_govern(struct call *call, struct lent *out, struct err *err)
{
    const char *policy_text = NULL, *profile_text = NULL;

    if (tenant_rules(call->tenant, &call->mem, &policy_text, &profile_text, err) < 0)
        return -1;
    return call_govern_by(call, policy_text, profile_text, out, err);
}

int call_check_policy(struct call *call, const char *text, struct err *err)
{
    AUTO(policy) struct policy *policy = NULL;
    const char *standing = NULL, *profile = NULL;
    struct mark where;

    if (policy_parse(str_of(text), &policy, &where, err) < 0 ||
        tenant_rules(call->tenant, &call->mem, &standing, &profile, err) < 0)
        return -1;
    if (!policy_external(policy) || policy_bundle(policy) ||
        (standing && strcmp(standing, text) == 0))
        return 0;
    return err_set(err, ERR_FORBIDDEN,
                   "external: a policy that is brought along cannot name whom this machine calls; "
                   "its operator can, with \"policy apply\", in the ceiling or in a signed bundle");
}

int call_govern_by(struct call *call, const char *policy_text, const char *profile_text,
                   struct lent *out, struct err *err)
{
    if (tenant_borrow(call->tenant, policy_text, profile_text, out, err) < 0)
        return -1;
    execute_obey(govern_execute(out->govern), call->orders[0]);
    return 0;
}

int call_govern_as(struct call *call, const struct config *config, struct lent *out,
                   struct err *err)
{
    return call_govern_by(call, config->request.policy_text, config->request.profile_text, out,
                          err);
}

int call_sandbox(struct call *call, struct lent *out, const char **id, const char **made,
                 struct err *err)
{
    struct config config;

    if (call_govern(call, out, err) < 0)
        return -1;
    if (govern_find(govern_execute(out->govern), &call->mem, call->params[0], id, err) < 0 ||
        execute_kept_config(govern_execute(out->govern), &call->mem, *id, made, err) < 0 ||
        config_read(&call->mem, str_of(*made), &config, err) < 0) {
        call_release(call, out);
        return -1;
    }
    call_release(call, out);
    return call_govern_as(call, &config, out, err);
}

void call_release(struct call *call, struct lent *lent)
{
    if (lent->govern)
        execute_obey(govern_execute(lent->govern), -1);
    tenant_return(call->tenant, lent);
}

struct request call_request(struct call *call, enum action_kind kind)
{
    static const char *const nothing[] = {"true", NULL};

    return (struct request){
        .kind = kind,
        .principal = call->caller.principal,
        .made_by = call->caller.made_by,
        .tenant = call->caller.tenant,
        .provider = "local",
        .image = "host",
        .name = "",
        .scope = "session",
        .network = NETWORK_DEFAULT,
        .argv = {nothing,               1              },
        .watch = {.tell = call_note_run, .context = call}
    };
}

void call_header(struct call *call, const char *name, const char *value)
{
    size_t i = 0;

    while (i < call->extra_n && !str_is(call->extra[i].name, name))
        i++;
    assert(i < CALL_HEADERS_MAX);
    if (!call->extra)
        call->extra = arena_array(&call->mem, struct http_header, CALL_HEADERS_MAX);
    call->extra[i] = (struct http_header){str_of(name), arena_str(&call->mem, str_of(value))};
    if (i == call->extra_n)
        call->extra_n++;
}

void call_trailer(struct call *call, const char *name, const char *value)
{
    assert(call->trailer_n < CALL_TRAILERS_MAX);
    call->trailers[call->trailer_n++] =
        (struct http_header){str_of(name), arena_str(&call->mem, str_of(value))};
}

size_t call_headers(const struct call *call, bool refused, struct http_header *out, size_t n)
{
    const char *const *refusal = call->route->refusal;

    for (size_t i = 0; i < call->extra_n; i++)
        if (!refused || !refusal[0] || !str_is(call->extra[i].name, refusal[0]))
            out[n++] = call->extra[i];
    if (refused && refusal[0])
        out[n++] = (struct http_header){str_of(refusal[0]), str_of(refusal[1])};
    return n;
}

int call_answer(struct call *call, int status, const struct json *value, struct err *err)
{
    buf_clear(&call->answer);
    if (json_compact(value, &call->answer, err) < 0)
        return -1;
    call->status = status;
    call->type = "application/json";
    return 0;
}

int call_answer_bytes(struct call *call, int status, const char *type, struct str bytes,
                      struct err *err)
{
    buf_clear(&call->answer);
    if (buf_add_str(&call->answer, bytes, err) < 0)
        return -1;
    call->status = status;
    call->type = type;
    return 0;
}

/* A refusal for what the machine cannot do now is no statement about what was asked. */
static enum err_code denial_code(enum reason reason)
{
    return reason == REASON_SANDBOX_FAILED || reason == REASON_PROVIDER_UNAVAILABLE
               ? ERR_UNAVAILABLE
               : ERR_FORBIDDEN;
}

int call_check_run(struct call *call, const struct run *run, struct err *err)
{
    bool denied = run->verdict.kind != VERDICT_ALLOW;
    enum reason reason = denied ? run->verdict.reason : run->outcome.reason;
    const char *text = denied ? run->verdict.text : run->outcome.failure;
    const struct receipt_ref *last = run->closing.id[0] ? &run->closing : &run->intent;

    if (!denied && !run->outcome.failure)
        return 0;
    call->reason = reason;
    call->details = json_object(&call->mem);
    if (run->approval.id)
        json_put_text(&call->mem, call->details, "approval_id", run->approval.id);
    json_put_text(&call->mem, call->details, "receipt_id", last->id);
    json_put_text(&call->mem, call->details, "verdict", verdict_name(run->verdict.kind));
    return err_set(err, denied ? denial_code(reason) : run->outcome.failure_code, "%s",
                   text ? text : reason_text(reason));
}

int call_check_result(struct call *call, const struct run *run, struct json *result,
                      struct err *err)
{
    if (call_check_run(call, run, err) == 0)
        return 0;
    json_put(call->details, "result", result);
    return -1;
}
