/* SPDX-License-Identifier: Apache-2.0 */

/* What a kept sandbox was made from, as canonical JSON:
 *
 *     made      base, image, env, mounts, workspace, workdir, limits, provider, network, policy,
 *               profile, allow_protected, sockets_none, user: what it is
 *     protected what is read-only or held in place below its writable mounts
 *     id, created_at, principal, tenant, name, labels, scope, lifetime: whose and for how long
 *     config_hash, policy_hash, image_digest, inside_user, preimage_hash: what it was planned to be
 *     network_hash: of its network rules, if it has some
 *
 *     base: the snapshot that lies below it now; made.base, if any, is the one it was made from
 *
 * config_hash covers `made` and preimage_hash: two sandboxes with the same one are the same. */

#include "flow/admit/admit.h"

#include "lib/base/limits.h"
#include "lib/crypto/crypto.h"
#include "lib/json/json.h"

#include <string.h>

static int put_words(struct arena *mem, struct json *object, const char *key, struct words words,
                     struct err *err)
{
    struct json *array = json_array(mem);

    for (size_t i = 0; i < words.n; i++) {
        if (!str_is_utf8(str_of(words.v[i])))
            return err_set(err, ERR_INVALID, "%s of a kept sandbox must be UTF-8", key);
        json_push(array, json_text(mem, str_of(words.v[i])));
    }
    json_put(object, key, array);
    return 0;
}

static struct json *limits_object(struct arena *mem, const uint64_t limits[LIMIT_COUNT])
{
    struct json *object = json_object(mem);

    for (enum limit_kind kind = 0; kind < LIMIT_COUNT; kind++)
        if (limits[kind])
            json_put_int(mem, object, limit_name(kind), (int64_t)limits[kind]);
    return object;
}

static int made_object(struct arena *mem, const struct request *request, const struct run *run,
                       struct json **out, struct err *err)
{
    struct json *made = json_object(mem);

    /* Values as admit resolved them: a variable forwarded by name keeps the value it had. */
    if (put_words(mem, made, "env", run->action.env, err) < 0 ||
        put_words(mem, made, "mounts", request->mounts, err) < 0)
        return -1;
    if (request->base)
        json_put_text(mem, made, "base", request->base);
    json_put_text(mem, made, "image", request->image);
    json_put(made, "limits", limits_object(mem, request->limits));
    json_put_text(mem, made, "network", network_name(request->network));
    if (request->policy_text)
        json_put_text(mem, made, "policy", request->policy_text);
    if (request->profile_text)
        json_put_text(mem, made, "profile", request->profile_text);
    json_put_text(mem, made, "provider", request->provider);
    if (request->allow_protected)
        json_put_bool(mem, made, "allow_protected", true);
    if (request->sockets_none)
        json_put_bool(mem, made, "sockets_none", true);
    if (request->user)
        json_put_text(mem, made, "user", request->user);
    if (request->workdir)
        json_put_text(mem, made, "workdir", request->workdir);
    if (request->workspace)
        json_put_text(mem, made, "workspace", request->workspace);
    *out = made;
    return 0;
}

static int hash_config(struct arena *mem, const struct json *made, const char *preimage_hash,
                       char out[HASH_TEXT_BYTES], struct err *err)
{
    AUTO_BUF struct buf text = BUF(JSON_TEXT_MAX);

    (void)mem;
    if (json_canonical(made, &text, err) < 0 || buf_addf(&text, err, "|%s", preimage_hash) < 0)
        return -1;
    hash_text_of(buf_str(&text), out);
    return 0;
}

int config_write(const struct request *request, const struct run *run, struct buf *out,
                 struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    struct json *root = json_object(&mem);
    struct json *life = json_object(&mem);
    struct json *made = NULL;
    char hash[HASH_TEXT_BYTES];
    char now[TIMESTAMP_BYTES];

    clock_timestamp(now);
    if (made_object(&mem, request, run, &made, err) < 0 ||
        hash_config(&mem, made, run->planned.preimage_hash, hash, err) < 0 ||
        put_words(&mem, root, "labels", request->labels, err) < 0 ||
        put_words(&mem, root, "protected", request->held, err) < 0)
        return -1;
    json_put_text(&mem, root, "base", request->base ? request->base : "");
    json_put_text(&mem, root, "config_hash", hash);
    json_put_text(&mem, root, "created_at", now);
    json_put_text(&mem, root, "id", run->sandbox_id);
    json_put_text(&mem, root, "image_digest", run->planned.image_digest);
    json_put_int(&mem, life, "idle_ms", (int64_t)request->lifetime.idle_ms);
    json_put_int(&mem, life, "max_ms", (int64_t)request->lifetime.max_ms);
    json_put_int(&mem, life, "ttl_ms", (int64_t)request->lifetime.ttl_ms);
    json_put_text(&mem, root, "inside_user",
                  arena_printf(&mem, "%u:%u", run->plan.inside_uid, run->plan.inside_gid));
    json_put(root, "lifetime", life);
    json_put(root, "made", made);
    json_put_text(&mem, root, "name", request->name ? request->name : "");
    if (plan_has_network(&run->plan.egress))
        json_put_text(&mem, root, "network_hash", run->plan.egress.hash);
    json_put_text(&mem, root, "policy_hash", run->policy_hash);
    json_put_text(&mem, root, "preimage_hash", run->planned.preimage_hash);
    json_put_text(&mem, root, "principal", request->principal);
    json_put_text(&mem, root, "scope", request->scope ? request->scope : "session");
    json_put_text(&mem, root, "tenant", request->tenant);
    json_put_int(&mem, root, "v", 1);
    return json_canonical(root, out, err);
}

/* ---- reading: written by ourselves, into a folder only we can reach; checked all the same ---- */

static const char *take_text(struct arena *mem, const struct json *object, const char *key)
{
    struct str text;

    return json_is_text(json_get(object, key), &text) ? arena_text(mem, text) : NULL;
}

static struct words take_words(struct arena *mem, const struct json *object, const char *key)
{
    const struct json *array = json_get(object, key);
    const char **words;
    size_t n = 0;

    if (!array || array->kind != JSON_ARRAY)
        return (struct words){0};
    words = arena_array(mem, const char *, array->n + 1);
    json_each(item, array)
    {
        struct str text;

        if (json_is_text(item, &text))
            words[n++] = arena_text(mem, text);
    }
    return (struct words){words, n};
}

static uint64_t take_number(const struct json *object, const char *key)
{
    int64_t value = 0;

    return json_is_int(json_get(object, key), &value) && value > 0 ? (uint64_t)value : 0;
}

static bool take_flag(const struct json *object, const char *key)
{
    bool flag = false;

    return json_is_bool(json_get(object, key), &flag) && flag;
}

/* One that does not say was made when there was no network. */
static enum network_ask take_network(const char *name)
{
    for (enum network_ask ask = NETWORK_NONE; name && ask <= NETWORK_DEFAULT; ask++)
        if (strcmp(name, network_name(ask)) == 0)
            return ask;
    return NETWORK_NONE;
}

static void take_request(struct arena *mem, const struct json *root, struct request *out)
{
    const struct json *made = json_get(root, "made");
    const struct json *life = json_get(root, "lifetime");

    *out = (struct request){
        .name = take_text(mem, root, "name"),
        .labels = take_words(mem, root, "labels"),
        .scope = take_text(mem, root, "scope"),
        .principal = take_text(mem, root, "principal"),
        .tenant = take_text(mem, root, "tenant"),
        .provider = take_text(mem, made, "provider"),
        .base = take_text(mem, made, "base"),
        .image = take_text(mem, made, "image"),
        .env = take_words(mem, made, "env"),
        .mounts = take_words(mem, made, "mounts"),
        .user = take_text(mem, made, "user"),
        .workdir = take_text(mem, made, "workdir"),
        .workspace = take_text(mem, made, "workspace"),
        .held = take_words(mem, root, "protected"),
        .policy_text = take_text(mem, made, "policy"),
        .profile_text = take_text(mem, made, "profile"),
    };
    out->lifetime = (struct lifetime){.ttl_ms = take_number(life, "ttl_ms"),
                                      .idle_ms = take_number(life, "idle_ms"),
                                      .max_ms = take_number(life, "max_ms")};
    out->allow_protected = take_flag(made, "allow_protected");
    out->network = take_network(take_text(mem, made, "network"));
    out->sockets_none = take_flag(made, "sockets_none");
    for (enum limit_kind kind = 0; kind < LIMIT_COUNT; kind++)
        out->limits[kind] = take_number(json_get(made, "limits"), limit_name(kind));
}

int config_read(struct arena *mem, struct str text, struct config *out, struct err *err)
{
    const struct json *root = NULL;
    struct mark where;
    struct config config;

    if (json_parse(mem, text, &root, &where, err) < 0)
        return err_in(err, "the config of the sandbox");
    take_request(mem, root, &config.request);
    config.id = take_text(mem, root, "id");
    config.created_at = take_text(mem, root, "created_at");
    config.config_hash = take_text(mem, root, "config_hash");
    config.policy_hash = take_text(mem, root, "policy_hash");
    config.image_digest = take_text(mem, root, "image_digest");
    config.preimage_hash = take_text(mem, root, "preimage_hash");
    config.network_hash = take_text(mem, root, "network_hash");
    config.inside_user = take_text(mem, root, "inside_user");
    config.base = take_text(mem, root, "base");
    if (config.base && !*config.base)
        config.base = NULL;
    if (!config.id || !config.created_at || !config.config_hash || !config.policy_hash ||
        !config.image_digest || !config.preimage_hash || !config.request.provider ||
        !config.request.image || !config.request.principal || !config.request.tenant)
        return err_set(err, ERR_INTEGRITY, "the config of the sandbox is damaged");
    *out = config;
    return 0;
}

/* An object without some of its members. */
static struct json *copy_but(struct arena *mem, const struct json *object, const char *const *but)
{
    struct json *changed = json_object(mem);

    json_each(member, object)
    {
        struct json *copy = arena_new(mem, struct json);
        bool stays = true;

        *copy = *member;
        copy->next = NULL;
        for (size_t i = 0; but[i]; i++)
            stays &= !str_is(member->key, but[i]);
        if (stays)
            json_put(changed, arena_text(mem, member->key), copy);
    }
    return changed;
}

int config_rebase(struct str text, const char *base, struct buf *out, struct err *err)
{
    static const char *const but[] = {"base", NULL};
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    const struct json *root = NULL;
    struct json *changed;
    struct mark where;

    if (json_parse(&mem, text, &root, &where, err) < 0)
        return err_in(err, "the config of the sandbox");
    changed = copy_but(&mem, root, but);
    json_put_text(&mem, changed, "base", base);
    return json_canonical(changed, out, err);
}

int config_repolicy(struct str text, const char *policy, const struct run *run, struct buf *out,
                    struct err *err)
{
    static const char *const but[] = {"config_hash", "made",          "network_hash",
                                      "policy_hash", "preimage_hash", NULL};
    static const char *const made_but[] = {"policy", NULL};
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    const struct json *root = NULL;
    struct json *changed, *made;
    char hash[HASH_TEXT_BYTES];
    struct mark where;

    if (json_parse(&mem, text, &root, &where, err) < 0)
        return err_in(err, "the config of the sandbox");
    if (!json_get(root, "made"))
        return err_set(err, ERR_INTEGRITY, "the config of the sandbox is damaged");
    changed = copy_but(&mem, root, but);
    made = copy_but(&mem, json_get(root, "made"), made_but);
    json_put_text(&mem, made, "policy", policy);
    if (hash_config(&mem, made, run->planned.preimage_hash, hash, err) < 0)
        return -1;
    json_put_text(&mem, changed, "config_hash", hash);
    json_put(changed, "made", made);
    json_put_text(&mem, changed, "network_hash", run->plan.egress.hash);
    json_put_text(&mem, changed, "policy_hash", run->policy_hash);
    json_put_text(&mem, changed, "preimage_hash", run->planned.preimage_hash);
    return json_canonical(changed, out, err);
}
