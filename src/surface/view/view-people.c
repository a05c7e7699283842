/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/view/view.h"

#include "flow/approve/approve.h"
#include "flow/govern.h"
#include "lib/access/freeze.h"
#include "lib/base/limits.h"
#include "lib/base/text.h"
#include "lib/json/json.h"

struct json *view_frozen(struct arena *mem, const struct frozen *entry)
{
    struct json *object = json_object(mem);

    if (entry->tenant[0])
        json_put_text(mem, object, "tenant", entry->tenant);
    if (entry->principal[0])
        json_put_text(mem, object, "principal", entry->principal);
    json_put_bool(mem, object, "everything", !entry->tenant[0] && !entry->principal[0]);
    if (entry->since)
        json_put_text(mem, object, "since", view_moment(mem, entry->since));
    if (entry->by[0])
        json_put_text(mem, object, "by", entry->by);
    if (entry->reason[0])
        json_put_text(mem, object, "reason", entry->reason);
    return object;
}

/* It was written by us; what it says is the requester's. */
static struct json *subject_json(struct arena *mem, const char *text)
{
    const struct json *subject = NULL;
    struct json *object = json_object(mem);
    struct mark where;
    struct err err;

    if (json_parse(mem, str_of(text), &subject, &where, &err) < 0)
        return object;
    json_each(member, subject) json_copy_member(mem, object, member);
    return object;
}

static struct json *by_json(struct arena *mem, struct words by)
{
    struct json *list = json_array(mem);

    for (size_t i = 0; i < by.n; i++)
        json_push(list, json_text(mem, str_of(by.v[i])));
    return list;
}

/* Lists of other layers, each of which must name him, too. */
static void put_also(struct arena *mem, const struct approval_terms *also, struct json *object)
{
    struct json *lists = json_array(mem);

    for (; also; also = also->also)
        if (also->by.n)
            json_push(lists, by_json(mem, also->by));
    if (lists->n)
        json_put(object, "may_confirm_also", lists);
}

static void put_terms(struct arena *mem, const struct approval *approval, struct json *object)
{
    if (approval->terms.group)
        json_put_text(mem, object, "group", approval->terms.group);
    if (approval->terms.by.n)
        json_put(object, "may_confirm", by_json(mem, approval->terms.by));
    put_also(mem, approval->terms.also, object);
    json_put_int(mem, object, "quorum", approval->terms.quorum ? approval->terms.quorum : 1);
    json_put_int(mem, object, "confirmations", approval->confirmations);
    json_put_bool(mem, object, "reason_required", approval->terms.reason_required);
}

static struct json *words_json(struct arena *mem, const struct approval *approval)
{
    struct json *list = json_array(mem);

    for (size_t i = 0; i < approval->word_n; i++) {
        const struct approval_voice *word = &approval->words[i];
        struct json *object = json_object(mem);

        json_put_text(mem, object, "by", word->by);
        json_put_bool(mem, object, "confirms", word->confirm);
        json_put_text(mem, object, "at", view_moment(mem, word->at));
        json_put_bytes(mem, object, "comment", str_of(word->comment));
        json_push(list, object);
    }
    return list;
}

struct json *view_approval(struct arena *mem, const struct approval *approval)
{
    struct json *object = json_object(mem);

    json_put_text(mem, object, "approval_id", approval->id);
    json_put_int(mem, object, "seq", (int64_t)approval->seq);
    json_put_text(mem, object, "state", approval_state_name(approval->state));
    json_put_text(mem, object, "requester", approval->requester);
    json_put_text(mem, object, "digest", approval->digest);
    json_put_text(mem, object, "asked_at", view_moment(mem, approval->asked_at));
    json_put_text(mem, object, "expires_at", view_moment(mem, approval->expires_at));
    if (approval->decided_at) {
        json_put_text(mem, object, "decided_at", view_moment(mem, approval->decided_at));
        json_put_text(mem, object, "decided_by", approval->decided_by);
        json_put_bytes(mem, object, "comment", str_of(approval->comment));
    }
    put_terms(mem, approval, object);
    if (approval->word_n)
        json_put(object, "words", words_json(mem, approval));
    json_put(object, "subject", subject_json(mem, approval->subject));
    return object;
}

struct json *view_custodian(struct arena *mem, const struct custodian *custodian)
{
    struct json *object = json_object(mem);
    char hex[2 * PUBLIC_KEY_BYTES + 1], id[KEY_ID_BYTES];

    hex_encode(custodian->key.b, sizeof custodian->key.b, hex);
    key_id(&custodian->key, id);
    json_put_text(mem, object, "name", custodian->name);
    json_put_text(mem, object, "key_id", id);
    json_put_text(mem, object, "public_key", hex);
    json_put_bool(mem, object, "signs_here", custodian->has_passphrase);
    json_put_text(mem, object, "enrolled_at", view_moment(mem, custodian->enrolled_at));
    if (custodian->revoked_at)
        json_put_text(mem, object, "revoked_at", view_moment(mem, custodian->revoked_at));
    return object;
}

struct json *view_usage(struct arena *mem, const struct usage *usage)
{
    struct json *object = json_object(mem);

    json_put_bytes(mem, object, "day", usage->day);
    json_put_bytes(mem, object, "principal", usage->principal);
    json_put_int(mem, object, "commands", (int64_t)usage->commands);
    json_put_int(mem, object, "sandboxes", (int64_t)usage->sandboxes);
    json_put_int(mem, object, "denied", (int64_t)usage->denied);
    json_put_int(mem, object, "duration_us", (int64_t)usage->duration_us);
    json_put_int(mem, object, "cpu_us", (int64_t)usage->cpu_us);
    json_put_int(mem, object, "output_bytes", (int64_t)usage->output_bytes);
    json_put_int(mem, object, "disk_written_bytes", (int64_t)usage->disk_written_bytes);
    return object;
}
