/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/approve/store.h"

#include <string.h>
#include <strings.h>

#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "lib/shapes/shapes.h"

#define DIGEST_DOMAIN "brig/approval/1"

/* ---- without secrets ---- */

static bool has_word(struct str name, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = 0; i + n <= name.n; i++)
        if (strncasecmp(name.p + i, word, n) == 0)
            return true;
    return false;
}

static bool ends_with(struct str name, const char *end)
{
    size_t n = strlen(end);

    return name.n >= n && has_word((struct str){name.p + name.n - n, n}, end);
}

/* A variable that is called like a secret is taken for one. */
static bool is_secret_name(struct str name)
{
    static const char *const words[] = {"PASSWORD",    "PASSWD",     "PASSPHRASE", "SECRET",
                                        "TOKEN",       "CREDENTIAL", "API_KEY",    "APIKEY",
                                        "PRIVATE_KEY", "ACCESS_KEY"};
    static const char *const ends[] = {"_PASS", "_PWD", "_PAT", "_KEY"};

    for (size_t i = 0; i < COUNT(words); i++)
        if (has_word(name, words[i]))
            return true;
    for (size_t i = 0; i < COUNT(ends); i++)
        if (ends_with(name, ends[i]))
            return true;
    return false;
}

/* An option is, when that is how its name ends: --token-file has a file behind it. */
static bool is_secret_option(struct str name)
{
    static const char *const ends[] = {"PASSWORD",   "PASSWD",  "PASSPHRASE", "SECRET",
                                       "TOKEN",      "API-KEY", "APIKEY",     "PRIVATE-KEY",
                                       "ACCESS-KEY", "API_KEY", "ACCESS_KEY", "PRIVATE_KEY"};

    for (size_t i = 0; i < COUNT(ends); i++)
        if (ends_with(name, ends[i]))
            return true;
    return false;
}

#define HIDDEN "(hidden: %zu bytes that look like a secret)"

static const char *hidden(struct arena *mem, size_t n)
{
    return arena_printf(mem, HIDDEN, n);
}

/* The password of an address, scheme://user:password@host, at or behind from. */
static bool find_password(struct str text, size_t from, struct shape_hit *out)
{
    static const char ends[] = "/?# \t\r\n\"'<>";
    const char *mark;

    while ((mark = memmem(text.p + from, text.n - from, "://", 3))) {
        struct str user = {mark + 3, strcspn(mark + 3, ends)};
        const char *at = memrchr(user.p, '@', user.n);
        const char *colon = at ? memchr(user.p, ':', (size_t)(at - user.p)) : NULL;

        if (colon && at > colon + 1) {
            *out = (struct shape_hit){.at = (size_t)(colon + 1 - text.p),
                                      .n = (size_t)(at - colon - 1)};
            return true;
        }
        from = (size_t)(mark + 3 - text.p);
    }
    return false;
}

/* What looks like a secret is not for whoever may look at requests, nor for the disk. A word may
 * have thousands of them: each is looked for once, and the text is written once. Of one in which
 * that leaves more than a request may have, nothing is shown. */
static const char *without_secrets(struct arena *mem, const char *word)
{
    AUTO_BUF struct buf out = BUF(SUBJECT_BYTES_MAX);
    struct str text = str_of(word);
    struct shape_hit shape = {0}, password = {0};
    bool has_shape = shape_next(text, 0, false, &shape);
    bool has_password = find_password(text, 0, &password);
    size_t at = 0;
    struct err ignored;

    if (!has_shape && !has_password)
        return word;
    while (has_shape || has_password) {
        bool is_shape = has_shape && (!has_password || shape.at <= password.at);
        const struct shape_hit hit = is_shape ? shape : password;

        if (buf_add(&out, text.p + at, hit.at - at, &ignored) < 0 ||
            buf_addf(&out, &ignored, HIDDEN, hit.n) < 0)
            return hidden(mem, text.n);
        at = hit.at + hit.n;
        if (has_shape && shape.at < at)
            has_shape = shape_next(text, at, false, &shape);
        if (has_password && password.at < at)
            has_password = find_password(text, at, &password);
    }
    return buf_add_text(&out, text.p + at, &ignored) < 0 ? hidden(mem, text.n)
                                                         : arena_text(mem, buf_str(&out));
}

static const char *variable_shown(struct arena *mem, const char *variable)
{
    struct str value = str_of(variable);
    struct str name = str_cut(&value, '=');

    if (value.n && is_secret_name(name))
        return arena_printf(mem, STR_FMT "=%s", STR_ARG(name), hidden(mem, value.n));
    return without_secrets(mem, variable);
}

/* --password=…, PGPASSWORD=… */
static const char *argument_shown(struct arena *mem, const char *word)
{
    struct str value = str_of(word);
    struct str name = str_cut(&value, '=');

    if (value.n && is_secret_option(name) && strcspn(word, " \t\r\n\"'") >= name.n)
        return arena_printf(mem, STR_FMT "=%s", STR_ARG(name), hidden(mem, value.n));
    return without_secrets(mem, word);
}

/* ---- */

/* Bytes that are no text are shown as what they are. */
static struct json *word_json(struct arena *mem, const char *word)
{
    struct str shown = str_of(word);
    struct json *object;

    if (str_is_utf8(shown))
        return json_text(mem, shown);
    object = json_object(mem);
    json_put_bytes(mem, object, "bytes", shown);
    return object;
}

static struct json *words_json(struct arena *mem, struct words words,
                               const char *(*show)(struct arena *mem, const char *word))
{
    struct json *list = json_array(mem);

    for (size_t i = 0; i < words.n; i++)
        json_push(list, word_json(mem, show(mem, words.v[i])));
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

static struct json *operands_json(struct arena *mem, const struct operands *operands)
{
    struct json *list = json_array(mem);

    for (size_t i = 0; i < operands->n; i++) {
        const struct operand *operand = &operands->of[i];
        struct json *object = json_object(mem);

        json_put_bytes(mem, object, "path", str_of(operand->path));
        json_put_text(mem, object, "kind", operand->kind == OPERAND_FOLDER ? "folder" : "file");
        json_put_int(mem, object, "bytes", (int64_t)operand->bytes);
        if (operand->kind == OPERAND_FOLDER)
            json_put_int(mem, object, "entries", (int64_t)operand->entries);
        if (operand->why)
            json_put_text(mem, object, "not_bound", operand->why);
        else
            json_put_text(mem, object, "sha256", operand->hash);
        json_push(list, object);
    }
    return list;
}

static void put_if(struct arena *mem, struct json *json, const char *key, const char *text)
{
    if (text && *text)
        json_put_bytes(mem, json, key, str_of(text));
}

/* What it would be held to; nothing where nothing was planned. */
static void put_limits(struct arena *mem, struct json *json, const struct run *run)
{
    struct json *limits = json_object(mem);

    for (enum limit_kind kind = 0; kind < LIMIT_COUNT; kind++)
        if (run->plan.limits.of[kind].value)
            json_put_int(mem, limits, limit_name(kind), (int64_t)run->plan.limits.of[kind].value);
    if (limits->n)
        json_put(json, "limits", limits);
}

/* How the policy takes it. */
static void put_effect(struct arena *mem, struct json *json, const struct run *run)
{
    if (!run->effect.id)
        return;
    json_put_text(mem, json, "effect", run->effect.id);
    json_put_text(mem, json, "risk", arena_printf(mem, "E%u", run->effect.risk));
}

struct json *approval_subject(struct arena *mem, const struct run *run,
                              const struct operands *operands)
{
    const struct action *action = &run->action;
    struct json *json = json_object(mem);

    json_put_text(mem, json, "action", action_name(action->kind));
    if (action->kind == ACTION_ELEVATE) {
        json_put_text(mem, json, "ELEVATED", "runs on this machine itself, without any walls");
        json_put_text(mem, json, "isolation", "none");
        json_put_int(mem, json, "uid", run->plan.inside_uid);
        put_if(mem, json, APPROVAL_PROGRAM, run->planned.image_digest);
    }
    json_put(json, "command", words_json(mem, action->argv, argument_shown));
    if (action->env.n)
        json_put(json, "env", words_json(mem, action->env, variable_shown));
    if (operands->n)
        json_put(json, "operands", operands_json(mem, operands));
    if (operands->unbound)
        json_put_bytes(mem, json, "not_bound", str_of(operands->unbound));
    put_if(mem, json, "workdir", action->workdir ? action->workdir : run->plan.workdir);
    put_if(mem, json, "sandbox_id", action->sandbox);
    put_if(mem, json, "provider", action->provider);
    put_if(mem, json, "image", action->image);
    if (action->kind != ACTION_ELEVATE)
        put_if(mem, json, "image_digest", run->planned.image_digest);
    put_if(mem, json, "user", action->user);
    if (action->mount_n)
        json_put(json, "mounts", mounts_json(mem, action));
    put_limits(mem, json, run);
    put_effect(mem, json, run);
    json_put_bool(mem, json, "reads_stdin", action->stdin_kind == STDIN_STREAM);
    json_put_bool(mem, json, "goes_on_alone", action->detach || action->keep_background);
    /* Without walls it is the machine's. */
    json_put_bool(mem, json, "network",
                  action->kind == ACTION_ELEVATE || plan_has_network(&run->plan.egress));
    put_if(mem, json, "policy_layer", run->verdict.layer);
    put_if(mem, json, "rule", run->verdict.rule);
    if (run->verdict.line)
        json_put_int(mem, json, "rule_line", run->verdict.line);
    put_if(mem, json, "why", run->verdict.text);
    put_if(mem, json, "policy_hash", run->policy_hash);
    put_if(mem, json, "request_hash", action->request_hash);
    put_if(mem, json, "posture_hash", run->planned.preimage_hash);
    return json;
}

static void hash_json(struct str text, char out[MODEL_HASH_BYTES])
{
    struct hasher hasher;
    struct hash hash;

    hasher_init(&hasher);
    hasher_add(&hasher, DIGEST_DOMAIN, sizeof DIGEST_DOMAIN); /* with its NUL */
    hasher_add(&hasher, text.p, text.n);
    hasher_end(&hasher, &hash);
    hash_text(&hash, out);
}

static int digest_json(const struct json *json, char out[MODEL_HASH_BYTES], struct err *err)
{
    AUTO_BUF struct buf text = BUF(JSON_TEXT_MAX);

    if (json_canonical(json, &text, err) < 0)
        return err_in(err, "naming what is to be confirmed");
    hash_json(buf_str(&text), out);
    return 0;
}

int approval_digest(const struct run *run, const struct operands *operands,
                    char out[MODEL_HASH_BYTES], char frame[MODEL_HASH_BYTES], struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    struct json *json = json_object(&mem);

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
    if (digest_json(json, frame, err) < 0)
        return -1;
    if (operands->n)
        json_put(json, "operands", operands_json(&mem, operands));
    return digest_json(json, out, err);
}
