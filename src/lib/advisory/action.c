/* SPDX-License-Identifier: Apache-2.0 */

/* An ACTION REQUEST: read strictly, and what becomes of it. Only a file below /sandbox/output can
 * ever be made, changed, removed or renamed, by a person's word; everything else is refused here,
 * so that nobody is asked about what will not be done. */

#include "lib/advisory/advisory-private.h"

#include "lib/base/attrs.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

#include <string.h>

#define PREFIX "ACTION REQUEST:"
#define DIGEST_DOMAIN "brig/advisory-action/1"

static const char *const types[] = {
    [ACTION_TYPE_NONE] = "",
    [ACTION_TYPE_FILESYSTEM] = "filesystem",
    [ACTION_TYPE_NETWORK] = "network",
    [ACTION_TYPE_PROCESS] = "process",
    [ACTION_TYPE_CREDENTIAL] = "credential",
    [ACTION_TYPE_ENVIRONMENT] = "environment",
};
static const char *const operations[] = {
    [ACTION_OP_NONE] = "",         [ACTION_OP_CREATE] = "create", [ACTION_OP_MODIFY] = "modify",
    [ACTION_OP_DELETE] = "delete", [ACTION_OP_MOVE] = "move",     [ACTION_OP_EXECUTE] = "execute",
    [ACTION_OP_FETCH] = "fetch",   [ACTION_OP_MOUNT] = "mount",   [ACTION_OP_GRANT] = "grant",
};

const char *action_type_name(enum action_type type)
{
    return types[type];
}

const char *action_operation_name(enum action_operation operation)
{
    return operations[operation];
}

/* ---- reading ---- */

struct reading {
    struct checking *checking;
    size_t base; /* where the JSON begins */
    struct str text;
    struct advisory_action action;
    bool has_content;
    const struct json *target, *destination;
};

static int fault_at(struct reading *r, const char *rule, const char *fault, struct mark mark)
{
    advisory_note_fault(r->checking, rule, fault, r->base + mark_offset(r->text, mark));
    return -1;
}

static unsigned word_of(struct str text, const char *const *words, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (str_is(text, words[i]))
            return (unsigned)i;
    return 0;
}

static int read_content(struct reading *r, const struct json *member, struct str text)
{
    size_t n = 0;
    char *bytes;

    if (r->has_content)
        return fault_at(r, "action.content", "the content is given twice", member->key_mark);
    r->has_content = true;
    r->action.content = text;
    if (str_is(member->key, "content"))
        return 0;
    bytes = arena_alloc(r->checking->mem, text.n / 4 * 3 + 1);
    if (!base64_decode(text, bytes, &n))
        return fault_at(r, "action.content", "content_b64 is no base64", member->mark);
    r->action.content = (struct str){bytes, n};
    return 0;
}

/* One member, whose value is a text. */
static int read_member(struct reading *r, const struct json *member, struct str text)
{
    struct advisory_action *action = &r->action;

    if (str_is(member->key, "type"))
        action->type = (enum action_type)word_of(text, types, COUNT(types));
    else if (str_is(member->key, "operation"))
        action->operation = (enum action_operation)word_of(text, operations, COUNT(operations));
    else if (str_is(member->key, "risk"))
        action->declared_reversible = str_is(text, "reversible");
    else if (str_is(member->key, "target"))
        r->target = member;
    else if (str_is(member->key, "destination"))
        r->destination = member;
    else
        return read_content(r, member, text);
    if (str_is(member->key, "type") && !action->type)
        return fault_at(r, "action.type",
                        "type is filesystem, network, process, credential or environment",
                        member->mark);
    if (str_is(member->key, "operation") && !action->operation)
        return fault_at(r, "action.operation",
                        "operation is create, modify, delete, move, execute, fetch, mount or grant",
                        member->mark);
    if (str_is(member->key, "risk") && !str_is(text, "reversible") &&
        !str_is(text, "irreversible") && !str_is(text, "unknown"))
        return fault_at(r, "action.risk", "risk is reversible, irreversible or unknown",
                        member->mark);
    return 0;
}

static bool is_known(struct str key)
{
    static const char *const keys[] = {"type",        "operation", "target",     "risk",
                                       "destination", "content",   "content_b64"};

    for (size_t i = 0; i < COUNT(keys); i++)
        if (str_is(key, keys[i]))
            return true;
    return false;
}

static int read_members(struct reading *r, const struct json *root)
{
    static const char *const required[] = {"type", "operation", "target", "risk"};
    struct str text;

    json_each(member, root)
    {
        if (!is_known(member->key))
            return fault_at(r, "action.unknown_key",
                            "a request has type, operation, target and risk, and may have "
                            "destination, content or content_b64",
                            member->key_mark);
        if (!json_is_text(member, &text))
            return fault_at(r, "action.kind", "every member of a request is a text", member->mark);
        if (read_member(r, member, text) < 0)
            return -1;
    }
    for (size_t i = 0; i < COUNT(required); i++)
        if (!json_get(root, required[i]))
            return fault_at(r, "action.missing_key",
                            "a request needs all of type, operation, target and risk", root->mark);
    return 0;
}

/* What belongs to the operation, no more and no less. */
static int check_shape(struct reading *r, const struct json *root)
{
    enum action_operation op = r->action.operation;
    bool wants_content = op == ACTION_OP_CREATE || op == ACTION_OP_MODIFY;

    if (r->action.type != ACTION_TYPE_FILESYSTEM)
        return 0;
    if (wants_content != r->has_content)
        return fault_at(r, "action.content",
                        wants_content ? "create and modify need content or content_b64"
                                      : "only create and modify have content",
                        root->mark);
    if ((op == ACTION_OP_MOVE) != (r->destination != NULL))
        return fault_at(r, "action.destination",
                        op == ACTION_OP_MOVE ? "move needs a destination"
                                             : "only move has a destination",
                        root->mark);
    return 0;
}

/* The JSON behind "ACTION REQUEST:", which may be left out. */
static struct str find_json(struct str value)
{
    struct str rest = value;

    while (rest.n && strchr(" \t\r\n", rest.p[0]))
        rest = (struct str){rest.p + 1, rest.n - 1};
    if (!str_starts(rest, PREFIX))
        return value;
    return (struct str){rest.p + strlen(PREFIX), rest.n - strlen(PREFIX)};
}

static int read_request(struct reading *r, const struct json **root)
{
    struct arena *mem = r->checking->mem;
    struct mark where = {1, 1};
    struct err err;

    r->text = find_json(r->checking->value);
    r->base = (size_t)(r->text.p - r->checking->value.p);
    if (json_parse(mem, r->text, root, &where, &err) < 0)
        return fault_at(r, "action.json", arena_text(mem, str_of(err.text)), where);
    if ((*root)->kind != JSON_OBJECT)
        return fault_at(r, "action.kind", "a request is an object", (*root)->mark);
    return read_members(r, *root) < 0 || check_shape(r, *root) < 0 ? -1 : 0;
}

/* ---- judging ---- */

static void refuse(struct reading *r, enum advisory_category category, const char *rule,
                   const struct json *member)
{
    struct passage all = {.text = r->checking->value};
    size_t start = r->base + mark_offset(r->text, member->mark);
    size_t end = start + 1;

    /* Written without escapes it is as long as it reads. */
    if (member->kind == JSON_STRING && start + member->text.n + 2 <= all.text.n &&
        memcmp(all.text.p + start + 1, member->text.p, member->text.n) == 0)
        end = start + member->text.n + 2;
    advisory_note_plain(r->checking, &all, category, ADVISORY_REJECT, rule, start, end);
}

static enum advisory_access access_of(enum action_operation op)
{
    switch (op) {
    case ACTION_OP_CREATE:
        return ACCESS_CREATE;
    case ACTION_OP_MODIFY:
        return ACCESS_MODIFY;
    case ACTION_OP_DELETE:
    case ACTION_OP_MOVE:
        return ACCESS_DELETE;
    case ACTION_OP_NONE:
    case ACTION_OP_EXECUTE:
    case ACTION_OP_FETCH:
    case ACTION_OP_MOUNT:
    case ACTION_OP_GRANT:
        break;
    }
    return ACCESS_EXECUTE;
}

/* A path of the request: within bounds, and where a person may let something happen. */
static struct str judge_path(struct reading *r, const struct json *member,
                             enum advisory_access access)
{
    struct sandbox_path path;
    const char *fault;
    bool gated = false;

    sandbox_path_read(r->checking->mem, member->text, STR_LIT(""), &path);
    if (path.rule) {
        refuse(r, ADVISORY_IS_PATH_VIOLATION, path.rule, member);
        r->checking->out->advisory_text = str_of(advisory_path_text);
        return STR_LIT("");
    }
    fault = zone_fault(path.zone, access, &gated);
    if (!fault && !gated)
        fault = "R7.tmp"; /* its owner writes there itself */
    if (!fault && str_is(path.path, "output"))
        fault = "R7.zone";
    if (fault) {
        refuse(r, ADVISORY_IS_FILE_OPERATION, fault, member);
        return STR_LIT("");
    }
    return path.path;
}

static void judge_file(struct reading *r, const struct json *root)
{
    enum advisory_access access = access_of(r->action.operation);

    if (access == ACCESS_EXECUTE) {
        refuse(r, ADVISORY_IS_FILE_OPERATION,
               r->action.operation == ACTION_OP_EXECUTE ? "R7.execute" : "action.operation",
               json_get(root, "operation"));
        return;
    }
    r->action.target = judge_path(r, r->target, access);
    if (!r->destination)
        return;
    r->action.destination = judge_path(r, r->destination, ACCESS_CREATE);
    if (r->action.target.n && str_eq(r->action.target, r->action.destination)) {
        refuse(r, ADVISORY_IS_FILE_OPERATION, "action.destination", r->destination);
        r->checking->out->advisory_text = STR_LIT("REJECT: The destination is the target itself.");
    }
}

static void judge(struct reading *r, const struct json *root)
{
    const struct json *type = json_get(root, "type");

    switch (r->action.type) {
    case ACTION_TYPE_FILESYSTEM:
        judge_file(r, root);
        break;
    case ACTION_TYPE_PROCESS:
        refuse(r, ADVISORY_IS_SHELL_EXECUTION, "action.process", type);
        break;
    case ACTION_TYPE_NETWORK:
        refuse(r, ADVISORY_IS_AGENCY, "action.network", type);
        break;
    case ACTION_TYPE_CREDENTIAL:
        refuse(r, ADVISORY_IS_AGENCY, "action.credential", type);
        break;
    case ACTION_TYPE_ENVIRONMENT:
        refuse(r, ADVISORY_IS_AGENCY, "action.environment", type);
        break;
    case ACTION_TYPE_NONE:
        break;
    }
}

static struct json *request_json(struct arena *mem, const struct advisory_action *action)
{
    struct json *object = json_object(mem);
    char hash[HASH_TEXT_BYTES];

    json_put_text(mem, object, "type", types[action->type]);
    json_put_text(mem, object, "operation", operations[action->operation]);
    json_put(
        object, "target",
        json_text(mem, str_of(arena_printf(mem, "/sandbox/" STR_FMT, STR_ARG(action->target)))));
    if (action->destination.n)
        json_put(object, "destination",
                 json_text(mem, str_of(arena_printf(mem, "/sandbox/" STR_FMT,
                                                    STR_ARG(action->destination)))));
    if (action->operation == ACTION_OP_CREATE || action->operation == ACTION_OP_MODIFY) {
        hash_text_of(action->content, hash);
        json_put_text(mem, object, "content_sha256", hash);
        json_put_int(mem, object, "content_bytes", (int64_t)action->content.n);
    }
    /* What takes something away is never reversible, and nobody's word makes it so. */
    json_put_text(mem, object, "risk",
                  action->declared_reversible && action->operation == ACTION_OP_CREATE
                      ? "reversible"
                      : "irreversible");
    return object;
}

void check_action(struct checking *checking)
{
    AUTO_BUF struct buf text = BUF(2 * ADVISORY_VALUE_MAX);
    struct advisory_result *out = checking->out;
    struct passage all = {.text = checking->value};
    const struct json *root = NULL;
    struct reading r = {.checking = checking};
    struct err err;

    check_confirmation(checking, &all);
    if (read_request(&r, &root) < 0)
        return;
    judge(&r, root);
    out->action = r.action;
    if (out->verdict != ADVISORY_ALLOW)
        return;
    out->verdict = ADVISORY_GATE;
    if (json_canonical(request_json(checking->mem, &r.action), &text, &err) == 0)
        out->normalized = arena_str(checking->mem, buf_str(&text));
}

/* ---- what a confirmation is bound to ---- */

int advisory_action_digest(struct arena *mem, const struct advisory_action *action,
                           const struct advisory_target *target,
                           const struct advisory_binding *binding, char out[HASH_TEXT_BYTES],
                           struct err *err)
{
    AUTO_BUF struct buf text = BUF(2 * ADVISORY_VALUE_MAX);
    struct json *root = json_object(mem), *found = json_object(mem);

    json_put(root, "request", request_json(mem, action));
    json_put_bool(mem, found, "exists", target->exists);
    if (target->exists) {
        json_put_text(mem, found, "inode", arena_printf(mem, "%ju", (uintmax_t)target->inode));
        json_put_int(mem, found, "size_bytes", (int64_t)target->size_bytes);
        json_put_text(mem, found, "sha256", target->sha256);
    }
    json_put(root, "target", found);
    json_put_text(mem, root, "request_id", binding->request_id);
    json_put_text(mem, root, "run_id", binding->run_id);
    json_put_text(mem, root, "agent_id", binding->agent_id);
    json_put_int(mem, root, "created_at", binding->created_at);
    json_put_int(mem, root, "expires_at", binding->expires_at);
    json_put_text(mem, root, "drift", binding->drift);
    if (buf_add(&text, DIGEST_DOMAIN, sizeof DIGEST_DOMAIN, err) < 0 ||
        json_canonical(root, &text, err) < 0)
        return -1;
    hash_text_of(buf_str(&text), out);
    return 0;
}
