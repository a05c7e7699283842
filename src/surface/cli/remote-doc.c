/* SPDX-License-Identifier: Apache-2.0 */

/* Documents of a daemon: what they say, and the bodies that ask for them. */

#include "surface/cli/remote.h"

#include <string.h>

#include "lib/base/limits.h"
#include "lib/base/text.h"
#include "model/run.h"
#include "surface/cli/sandbox.h"

/* ---- reading ---- */

const char *doc_text(struct arena *mem, const struct json *doc, const char *key)
{
    struct str text = {0};

    return json_is_text(json_get(doc, key), &text) ? arena_text(mem, text) : "";
}

uint64_t doc_number(const struct json *doc, const char *key)
{
    int64_t number = 0;

    return json_is_int(json_get(doc, key), &number) && number > 0 ? (uint64_t)number : 0;
}

bool doc_bool(const struct json *doc, const char *key)
{
    bool value = false;

    return json_is_bool(json_get(doc, key), &value) && value;
}

struct str doc_bytes(struct arena *mem, const struct json *doc, const char *key)
{
    struct str text = {"", 0};
    char *bytes;
    size_t n = 0;

    if (json_is_text(json_get(doc, key), &text) ||
        !json_is_text(json_get(doc, arena_printf(mem, "%s_b64", key)), &text))
        return text;
    bytes = arena_alloc(mem, text.n / 4 * 3 + 1);
    return base64_decode(text, bytes, &n) ? (struct str){bytes, n} : (struct str){"", 0};
}

static bool is_one_of(struct str name, const char *const *keys)
{
    for (; *keys; keys++)
        if (str_is(name, *keys))
            return true;
    return false;
}

struct json *doc_without(struct arena *mem, const struct json *doc, const char *const *keys)
{
    struct json *object = json_object(mem);

    json_each(member, doc)
    {
        struct json *copy = arena_new(mem, struct json);

        if (is_one_of(member->key, keys))
            continue;
        *copy = *member;
        copy->next = NULL;
        json_put(object, arena_text(mem, member->key), copy);
    }
    return object;
}

static enum reason reason_of(const struct json *doc, const char *key)
{
    struct str code = {0};

    (void)json_is_text(json_get(doc, key), &code);
    for (enum reason reason = 0; reason < REASON_COUNT; reason++)
        if (str_is(code, reason_code(reason)))
            return reason;
    return REASON_NONE;
}

static void copy_id(const struct json *doc, const char *key, char out[ID_BYTES])
{
    struct str text = {0};

    if (json_is_text(json_get(doc, key), &text) && text.n < ID_BYTES)
        memcpy(out, text.p, text.n);
}

static void read_protected(const struct json *doc, struct run *run)
{
    static const char *const kinds[] = {
        [PROTECTED_NEW] = "new", [PROTECTED_CHANGED] = "changed", [PROTECTED_REMOVED] = "removed"};
    struct protected_changes *changes = &run->outcome.protected_changes;
    const struct json *list = json_get(doc, "protected_changes");
    struct protected_change *of;

    if (!list)
        return;
    of = arena_array(&run->mem, struct protected_change, list->n + 1);
    json_each(item, list)
    {
        struct protected_change *change = &of[changes->n++];
        const char *kind = doc_text(&run->mem, item, "change");

        change->path = arena_text(&run->mem, doc_bytes(&run->mem, item, "path"));
        for (unsigned i = 0; i < COUNT(kinds); i++)
            if (strcmp(kind, kinds[i]) == 0)
                change->kind = (enum protected_kind)i;
    }
    changes->of = of;
    changes->looked = true;
    changes->count = doc_number(doc, "protected_changes_count");
    changes->incomplete = !doc_bool(doc, "protected_complete");
}

void doc_run(const struct json *doc, struct run *run)
{
    struct outcome *outcome = &run->outcome;
    const char *verdict = doc_text(&run->mem, doc, "verdict");
    const char *text = arena_text(&run->mem, doc_bytes(&run->mem, doc, "reason"));

    run->verdict = (struct verdict){.reason = reason_of(doc, "reason_code"), .text = text};
    if (strcmp(verdict, verdict_name(VERDICT_ALLOW)) == 0)
        run->verdict.kind = VERDICT_ALLOW;
    else if (strcmp(verdict, verdict_name(VERDICT_ASK)) == 0)
        run->verdict.kind = VERDICT_ASK;
    copy_id(doc, "receipt_id", run->closing.id);
    copy_id(doc, "intent_receipt_id", run->intent.id);
    outcome->reason = reason_of(doc, "outcome_reason_code");
    outcome->failure = text;
    outcome->exit_code = (int)doc_number(doc, "exit_code");
    outcome->signal = (int)doc_number(doc, "signal");
    outcome->timed_out = doc_bool(doc, "timed_out");
    outcome->duration_us = doc_number(doc, "duration_ms") * 1000U;
    read_protected(doc, run);
}

/* ---- asking ---- */

static struct json *base64_json(struct arena *mem, struct str bytes)
{
    AUTO_BUF struct buf text = BUF(API_BODY_MAX);
    struct err ignored; /* what is longer than a body may be is found when the body is written */

    return base64_encode(bytes, &text, &ignored) < 0 ? json_null(mem)
                                                     : json_text(mem, buf_str(&text));
}

static const char *b64_key(struct arena *mem, const char *key)
{
    return arena_printf(mem, "%s_b64", key);
}

void remote_put_bytes(struct arena *mem, struct json *object, const char *key, const char *text)
{
    if (text && str_is_utf8(str_of(text)))
        json_put_text(mem, object, key, text);
    else if (text)
        json_put(object, b64_key(mem, key), base64_json(mem, str_of(text)));
}

static void put_list(struct arena *mem, struct json *object, const char *key, struct words words,
                     bool base64)
{
    struct json *list = json_array(mem);

    for (size_t i = 0; i < words.n; i++)
        json_push(list, base64 ? base64_json(mem, str_of(words.v[i]))
                               : json_text(mem, str_of(words.v[i])));
    json_put(object, base64 ? b64_key(mem, key) : key, list);
}

void remote_put_words(struct arena *mem, struct json *object, const char *key, struct words words)
{
    bool base64 = false;

    for (size_t i = 0; i < words.n; i++)
        base64 |= !str_is_utf8(str_of(words.v[i]));
    if (words.n)
        put_list(mem, object, key, words, base64);
}

void remote_put_pairs(struct arena *mem, struct json *object, const char *key, struct words words)
{
    if (words.n)
        put_list(mem, object, key, words, true);
}

static void put_count(struct arena *mem, struct json *object, const char *key, uint64_t value)
{
    if (value && value < 1ULL << 53)
        json_put_int(mem, object, key, (int64_t)value);
}

static void put_text(struct arena *mem, struct json *object, const char *key, const char *text)
{
    if (text)
        json_put_text(mem, object, key, text);
}

static void put_flag(struct arena *mem, struct json *object, const char *key, bool value)
{
    if (value)
        json_put_bool(mem, object, key, value);
}

static void put_limits(struct arena *mem, struct json *object, const struct request *request)
{
    static const struct {
        const char *key;
        enum limit_kind kind;
    } members[] = {
        {"cpu_millis",   LIMIT_CPU   },
        {"memory_bytes", LIMIT_MEMORY},
        {"pids",         LIMIT_PIDS  },
        {"disk_bytes",   LIMIT_DISK  },
        {"inodes",       LIMIT_INODES},
        {"wall_ms",      LIMIT_WALL  },
    };
    struct json *limits = json_object(mem);

    for (size_t i = 0; i < COUNT(members); i++)
        put_count(mem, limits, members[i].key, request->limits[members[i].kind]);
    if (limits->n)
        json_put(object, "limits", limits);
}

void remote_put_sandbox(struct invocation *inv, const struct sandbox_call *call,
                        struct json *object)
{
    const struct request *request = &call->request;
    struct arena *mem = &inv->mem;

    if (command_option(inv->command, "--provider"))
        put_text(mem, object, "provider", option_text(inv, "--provider"));
    put_text(mem, object, "image", request->image);
    remote_put_pairs(mem, object, "env", request->env);
    remote_put_bytes(mem, object, "workdir", request->workdir);
    remote_put_words(mem, object, "mounts", request->mounts);
    remote_put_bytes(mem, object, "workspace", request->workspace);
    put_flag(mem, object, "allow_protected", request->allow_protected);
    put_text(mem, object, "user", request->user);
    put_text(mem, object, "network",
             request->network == NETWORK_DEFAULT ? NULL : network_name(request->network));
    put_text(mem, object, "sockets", request->sockets_none ? "none" : NULL);
    put_flag(mem, object, "no_pool", request->no_pool);
    put_text(mem, object, "policy", call->policy_text);
    remote_put_words(mem, object, "overlays", call->overlays);
    put_text(mem, object, "profile", call->profile_text);
    put_limits(mem, object, request);
}
