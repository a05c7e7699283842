/* SPDX-License-Identifier: Apache-2.0 */
/* Questions and answers of outside deciders, as OPA's data API and AuthZEN 1.0 have them.
 *
 * Names of variables are sent, never their values: those may be secrets. An answer that says yes
 * and asks for something in return (obligations) is none, because nothing here would do it. */
#include "flow/consult/consult.h"

#include <string.h>

#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "model/external.h"
#include "model/run.h"

/* ---- the question ---- */

static int add_word(struct arena *mem, struct json *list, struct str word, struct err *err)
{
    if (!str_is_utf8(word))
        return err_set(err, ERR_INVALID,
                       "the command has bytes that are not UTF-8, which it cannot be asked about");
    json_push(list, json_text(mem, word));
    return 0;
}

static int put_command(struct arena *mem, struct json *object, const struct action *action,
                       struct err *err)
{
    struct json *command = json_array(mem), *names = json_array(mem);

    for (size_t i = 0; i < action->argv.n; i++)
        if (add_word(mem, command, str_of(action->argv.v[i]), err) < 0)
            return -1;
    for (size_t i = 0; i < action->env.n; i++) {
        struct str rest = str_of(action->env.v[i]);

        if (add_word(mem, names, str_cut(&rest, '='), err) < 0)
            return -1;
    }
    json_put(object, "command", command);
    json_put(object, "env_names", names);
    if (action->workdir)
        json_put_bytes(mem, object, "workdir", str_of(action->workdir));
    json_put_text(mem, object, "image", action->image ? action->image : "");
    json_put_text(mem, object, "provider", action->provider ? action->provider : "");
    if (action->sandbox)
        json_put_text(mem, object, "sandbox_id", action->sandbox);
    if (action->args_hash[0])
        json_put_text(mem, object, "args_hash", action->args_hash);
    return 0;
}

static void put_decision(struct arena *mem, struct json *object, const struct run *run)
{
    json_put_text(mem, object, "verdict", verdict_name(run->verdict.kind));
    json_put_text(mem, object, "reason_code", reason_code(run->verdict.reason));
    if (run->verdict.rule)
        json_put_bytes(mem, object, "rule", str_of(run->verdict.rule));
    json_put_text(mem, object, "policy_hash", run->policy_hash);
    json_put_text(mem, object, "request_hash", run->action.request_hash);
}

static int opa_question(struct arena *mem, const struct run *run, struct json **out,
                        struct err *err)
{
    struct json *root = json_object(mem), *input = json_object(mem);

    json_put_bytes(mem, input, "principal", str_of(run->action.principal));
    json_put_bytes(mem, input, "tenant", str_of(run->action.tenant));
    json_put_text(mem, input, "action", action_name(run->action.kind));
    if (run->action.tool)
        json_put_bytes(mem, input, "tool", str_of(run->action.tool));
    if (put_command(mem, input, &run->action, err) < 0)
        return -1;
    put_decision(mem, input, run);
    json_put(root, "input", input);
    *out = root;
    return 0;
}

static int authzen_question(struct arena *mem, const struct run *run, struct json **out,
                            struct err *err)
{
    const struct action *action = &run->action;
    struct json *root = json_object(mem), *subject = json_object(mem), *verb = json_object(mem);
    struct json *resource = json_object(mem), *context = json_object(mem);
    struct json *of_subject = json_object(mem), *of_resource = json_object(mem);

    if (put_command(mem, of_resource, action, err) < 0)
        return -1;
    json_put_bytes(mem, of_subject, "tenant", str_of(action->tenant));
    json_put_text(mem, subject, "type", "principal");
    json_put_bytes(mem, subject, "id", str_of(action->principal));
    json_put(subject, "properties", of_subject);
    json_put_text(mem, verb, "name", action_name(action->kind));
    json_put_text(mem, resource, "type", action->tool ? "tool" : "command");
    json_put_bytes(mem, resource, "id", str_of(action->tool ? action->tool : action->argv.v[0]));
    json_put(resource, "properties", of_resource);
    put_decision(mem, context, run);
    json_put(root, "subject", subject);
    json_put(root, "action", verb);
    json_put(root, "resource", resource);
    json_put(root, "context", context);
    *out = root;
    return 0;
}

int consult_question(const struct external *external, const struct run *run, struct buf *out,
                     struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    struct json *question = NULL;
    int failed = external->protocol == EXTERNAL_OPA ? opa_question(&mem, run, &question, err)
                                                    : authzen_question(&mem, run, &question, err);

    if (failed)
        return -1;
    return json_compact(question, out, err) < 0
               ? err_in(err, "too long a command to be asked about")
               : 0;
}

/* ---- the answer ---- */

static void keep_reason(struct str text, char reason[CONSULT_REASON_BYTES])
{
    size_t n = text.n < CONSULT_REASON_BYTES - 1 ? text.n : CONSULT_REASON_BYTES - 1;

    while (n && n < text.n && ((unsigned char)text.p[n] & 0xc0) == 0x80)
        n--; /* not in the middle of a character */
    memcpy(reason, text.p, n);
    reason[n] = '\0';
}

/* A text, or the first of several for different readers. */
static void find_reason(const struct json *object, char reason[CONSULT_REASON_BYTES])
{
    static const char *const keys[] = {"reason", "reason_user", "reason_admin"};

    for (size_t i = 0; i < COUNT(keys); i++) {
        const struct json *value = json_get(object, keys[i]);
        struct str text;

        if (value && value->kind == JSON_OBJECT)
            value = value->first;
        if (value && json_is_text(value, &text)) {
            keep_reason(text, reason);
            return;
        }
    }
}

static bool wants_more(const struct json *object)
{
    const struct json *more = json_get(object, "obligations");

    return more && more->kind != JSON_NULL && !(more->kind == JSON_ARRAY && more->n == 0) &&
           !(more->kind == JSON_OBJECT && more->n == 0);
}

/* A yes or no with what belongs to it; extra may be NULL. Obligations count beside it, too. */
static int read_word(const struct json *root, const struct json *said, const struct json *extra,
                     enum consult_word *out, char reason[CONSULT_REASON_BYTES], struct err *err)
{
    const struct json *ask = extra ? json_get(extra, "ask") : NULL;
    bool is_yes, wants_person = false;

    if (!json_is_bool(said, &is_yes))
        return err_set(err, ERR_INTEGRITY, "its answer does not say yes or no");
    if (ask && !json_is_bool(ask, &wants_person))
        return err_set(err, ERR_INTEGRITY, "its answer has an \"ask\" that is not true or false");
    if (extra)
        find_reason(extra, reason);
    if (is_yes && (wants_more(root) || (extra && wants_more(extra))))
        return err_set(err, ERR_INTEGRITY,
                       "it says yes under obligations, which nothing here would meet");
    *out = !is_yes ? CONSULT_NO : wants_person ? CONSULT_ASK : CONSULT_YES;
    return 0;
}

static int read_opa(const struct json *root, enum consult_word *out,
                    char reason[CONSULT_REASON_BYTES], struct err *err)
{
    const struct json *result = json_get(root, "result");

    if (!result)
        return err_set(err, ERR_INTEGRITY,
                       "its answer has no \"result\": there is no such rule, or it is undefined");
    if (result->kind == JSON_OBJECT)
        return read_word(root, json_get(result, "allow"), result, out, reason, err);
    return read_word(root, result, NULL, out, reason, err);
}

static int read_authzen(const struct json *root, enum consult_word *out,
                        char reason[CONSULT_REASON_BYTES], struct err *err)
{
    const struct json *context = json_get(root, "context");

    if (context && context->kind != JSON_OBJECT && context->kind != JSON_NULL)
        return err_set(err, ERR_INTEGRITY, "its answer has a \"context\" that is none");
    return read_word(root, json_get(root, "decision"),
                     context && context->kind == JSON_OBJECT ? context : NULL, out, reason, err);
}

int consult_read(const struct external *external, struct str text, enum consult_word *out,
                 char reason[CONSULT_REASON_BYTES], struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    const struct json *root = NULL;
    struct mark where;

    reason[0] = '\0';
    if (json_parse(&mem, text, &root, &where, err) < 0)
        return err_in(err, "its answer is not JSON");
    if (root->kind != JSON_OBJECT)
        return err_set(err, ERR_INTEGRITY, "its answer is not an object");
    switch (external->protocol) {
    case EXTERNAL_OPA:
        return read_opa(root, out, reason, err);
    case EXTERNAL_AUTHZEN:
        return read_authzen(root, out, reason, err);
    }
    return err_set(err, ERR_INTERNAL, "a protocol nobody knows");
}
