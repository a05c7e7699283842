/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/view/view.h"

#include "flow/record/record.h"
#include "lib/access/access.h"
#include "lib/json/json.h"

bool view_is_good(const struct record_report *report)
{
    return report->integrity == INTEGRITY_INTACT && report->completeness != COMPLETENESS_TRUNCATED;
}

static struct json *fault_json(struct arena *mem, const struct record_report *r)
{
    struct json *fault = json_object(mem);

    json_put_text(mem, fault, "kind", record_fault_name(r->fault));
    json_put_int(mem, fault, "seq", (int64_t)r->fault_seq);
    if (r->fault_id[0])
        json_put_text(mem, fault, "receipt_id", r->fault_id);
    if (r->fault_line)
        json_put_int(mem, fault, "line", (int64_t)r->fault_line);
    json_put_bytes(mem, fault, "text", str_of(r->fault_text));
    return fault;
}

struct json *view_verification(struct arena *mem, const struct record_check *check,
                               const struct record_report *r)
{
    struct json *json = json_object(mem);
    struct json *key = json_object(mem);

    json_put_bool(mem, json, "ok", view_is_good(r));
    json_put_text(mem, json, "integrity", record_integrity_name(r->integrity));
    json_put_text(mem, json, "completeness", record_completeness_name(r->completeness));
    json_put_int(mem, json, "entries", (int64_t)r->entries);
    json_put_int(mem, json, "open_runs", (int64_t)r->open_runs);
    json_put_int(mem, json, "last_seq", (int64_t)r->last_seq);
    json_put_text(mem, json, "last_hash", r->last_hash);
    json_put_text(mem, key, "key_id", r->key_id);
    json_put_bytes(mem, key, "why", str_of(r->key_why));
    json_put(json, "trusted_key", key);
    if (check->head)
        json_put_int(mem, json, "head_seq", (int64_t)check->head->seq);
    if (r->fault != FAULT_NONE)
        json_put(json, "fault", fault_json(mem, r));
    return json;
}

static struct json *scopes_json(struct arena *mem, unsigned scopes)
{
    struct json *list = json_array(mem);

    for (unsigned i = 0; i < SCOPE_COUNT; i++)
        if (scopes & 1U << i)
            json_push(list, json_text(mem, str_of(scope_name((enum scope_bit)i))));
    return list;
}

struct json *view_token(struct arena *mem, const struct token *token)
{
    struct json *object = json_object(mem);

    json_put_text(mem, object, "token_id", token->id);
    json_put_text(mem, object, "tenant", token->tenant);
    json_put_text(mem, object, "principal", token->principal);
    json_put(object, "scopes", scopes_json(mem, token->scopes));
    json_put_int(mem, object, "requests_per_second", token->per_second);
    json_put_int(mem, object, "requests_at_once", token->at_once);
    json_put_text(mem, object, "created_at", view_moment(mem, token->created_at));
    json_put_text(mem, object, "expires_at", view_moment(mem, token->expires_at));
    json_put_text(mem, object, "used_at", view_moment(mem, token->used_at));
    json_put_text(mem, object, "revoked_at", view_moment(mem, token->revoked_at));
    json_put_text(mem, object, "made_by", token->made_by);
    return object;
}

struct json *view_doubted(struct arena *mem, const struct json *receipt)
{
    struct json *details = json_object(mem), *copy = json_object(mem);

    json_each(member, receipt) json_copy_member(mem, copy, member);
    json_put(details, "receipt", copy);
    return details;
}
