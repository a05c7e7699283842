/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/approve/store.h"

#include "lib/base/limits.h"
#include "lib/json/json.h"

#define DIGEST_DOMAIN "brig/approval/1"

/* Bytes that are no text are shown as what they are. */
static struct json *word_json(struct arena *mem, const char *word)
{
    struct json *object;

    if (str_is_utf8(str_of(word)))
        return json_text(mem, str_of(word));
    object = json_object(mem);
    json_put_bytes(mem, object, "bytes", str_of(word));
    return object;
}

static struct json *words_json(struct arena *mem, struct words words)
{
    struct json *list = json_array(mem);

    for (size_t i = 0; i < words.n; i++)
        json_push(list, word_json(mem, words.v[i]));
    return list;
}

static struct json *mounts_json(struct arena *mem, const struct action *action)
{
    struct json *list = json_array(mem);

    for (size_t i = 0; i < action->mount_n; i++) {
        struct json *mount = json_object(mem);

        json_put_bytes(mem, mount, "source", str_of(action->mounts[i].source));
        json_put_bytes(mem, mount, "target", str_of(action->mounts[i].target));
        json_put_bool(mem, mount, "writable", action->mounts[i].access == MOUNT_RW);
        json_push(list, mount);
    }
    return list;
}

static void put_if(struct arena *mem, struct json *json, const char *key, const char *text)
{
    if (text && *text)
        json_put_bytes(mem, json, key, str_of(text));
}

struct json *approval_subject(struct arena *mem, const struct run *run)
{
    const struct action *action = &run->action;
    struct json *json = json_object(mem);

    json_put_text(mem, json, "action", action_name(action->kind));
    json_put(json, "command", words_json(mem, action->argv));
    if (action->env.n)
        json_put(json, "env", words_json(mem, action->env));
    put_if(mem, json, "workdir", action->workdir);
    put_if(mem, json, "sandbox_id", action->sandbox);
    put_if(mem, json, "provider", action->provider);
    put_if(mem, json, "image", action->image);
    put_if(mem, json, "user", action->user);
    if (action->mount_n)
        json_put(json, "mounts", mounts_json(mem, action));
    json_put_bool(mem, json, "reads_stdin", action->stdin_kind == STDIN_STREAM);
    json_put_bool(mem, json, "goes_on_alone", action->detach || action->keep_background);
    json_put_bool(mem, json, "network", plan_has_network(&run->plan.egress));
    put_if(mem, json, "rule", run->verdict.rule);
    if (run->verdict.line)
        json_put_int(mem, json, "rule_line", run->verdict.line);
    put_if(mem, json, "why", run->verdict.text);
    put_if(mem, json, "policy_hash", run->policy_hash);
    put_if(mem, json, "request_hash", action->request_hash);
    put_if(mem, json, "posture_hash", run->planned.preimage_hash);
    return json;
}

int approval_digest(const struct run *run, char out[MODEL_HASH_BYTES], struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    AUTO_BUF struct buf text = BUF(JSON_TEXT_MAX);
    struct json *json = json_object(&mem);
    struct hasher hasher;
    struct hash hash;

    if (!run->planned.preimage_hash[0] && !action_is_question(run->action.kind))
        return err_set(err, ERR_INTERNAL, "nothing was planned that could be confirmed");
    put_if(&mem, json, "action", action_name(run->action.kind));
    json_put_bool(&mem, json, "detach", run->action.detach);
    json_put_bool(&mem, json, "keep_background", run->action.keep_background);
    put_if(&mem, json, "policy_hash", run->policy_hash);
    put_if(&mem, json, "posture_hash", run->planned.preimage_hash);
    put_if(&mem, json, "principal", run->action.principal);
    put_if(&mem, json, "provider", run->action.provider);
    put_if(&mem, json, "request_hash", run->action.request_hash);
    put_if(&mem, json, "sandbox_id", run->action.sandbox);
    put_if(&mem, json, "tenant", run->action.tenant);
    if (json_canonical(json, &text, err) < 0)
        return err_in(err, "naming what is to be confirmed");
    hasher_init(&hasher);
    hasher_add(&hasher, DIGEST_DOMAIN, sizeof DIGEST_DOMAIN); /* with its NUL */
    hasher_add(&hasher, buf_str(&text).p, buf_str(&text).n);
    hasher_end(&hasher, &hash);
    hash_text(&hash, out);
    return 0;
}
