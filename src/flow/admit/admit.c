/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/admit/admit.h"

#include "lib/base/limits.h"
#include "lib/crypto/crypto.h"
#include "lib/json/json.h"

#include <string.h>

/* Variables that make the loader or an interpreter run something else. They are taken when the
 * caller spells out a value, never over from our own environment. */
static const char *const steering[] = {
    "BASH_ENV",
    "CDPATH",
    "ENV",
    "GCONV_PATH",
    "GIT_",
    "GLIBC_",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LD_",
    "LOCPATH",
    "MALLOC_",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PERL5",
    "PERLLIB",
    "PROMPT_COMMAND",
    "PYTHON",
    "RUBYLIB",
    "RUBYOPT",
};

static int copy_words(struct arena *mem, struct words from, size_t words_max, size_t bytes_max,
                      const char *what, struct words *out, struct err *err)
{
    const char **copy;
    size_t bytes = 0;

    if (from.n > words_max)
        return err_set(err, ERR_LIMIT, "more than %zu %s", words_max, what);
    for (size_t i = 0; i < from.n; i++)
        bytes += strlen(from.v[i]) + 1;
    if (bytes > bytes_max)
        return err_set(err, ERR_LIMIT, "%s of more than %zu bytes", what, bytes_max);
    copy = arena_array(mem, const char *, from.n + 1);
    for (size_t i = 0; i < from.n; i++)
        copy[i] = arena_text(mem, str_of(from.v[i]));
    *out = (struct words){copy, from.n};
    return 0;
}

static bool is_name(struct str name)
{
    if (name.n == 0 || (name.p[0] >= '0' && name.p[0] <= '9'))
        return false;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];

        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
              c == '_'))
            return false;
    }
    return true;
}

static bool is_steering(const char *name)
{
    for (size_t i = 0; i < COUNT(steering); i++)
        if (strncmp(name, steering[i], strlen(steering[i])) == 0)
            return true;
    return false;
}

/* "K": the value our own environment has. */
static int forward(struct arena *mem, const char *name, const char **out, struct err *err)
{
    const char *value;

    if (is_steering(name))
        return err_set(err, ERR_INVALID,
                       "--env %s: such variables are not forwarded; write %s=VALUE if it must be",
                       name, name);
    value = getenv(name);
    if (!value)
        return err_set(err, ERR_INVALID, "--env %s: not set here; write %s=VALUE", name, name);
    *out = arena_printf(mem, "%s=%s", name, value);
    return 0;
}

int admit_forward(struct arena *mem, struct words env, struct words *out, struct err *err)
{
    const char **words = arena_array(mem, const char *, env.n + 1);

    for (size_t i = 0; i < env.n; i++) {
        words[i] = env.v[i];
        if (is_name(str_of(env.v[i])) && forward(mem, env.v[i], &words[i], err) < 0)
            return -1;
    }
    *out = (struct words){words, env.n};
    return 0;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int admit_env(struct words asked, struct run *run, struct err *err)
{
    const char **env = arena_array(&run->mem, const char *, asked.n + 1);
    size_t n = 0;

    for (size_t i = 0; i < asked.n; i++) {
        struct str value = str_of(asked.v[i]);
        struct str name = str_cut(&value, '=');

        if (!is_name(name))
            return err_set(err, ERR_INVALID, "--env \"%.100s\": write K=V or K", asked.v[i]);
        env[n] = asked.v[i];
        if (name.n == strlen(asked.v[i]) && forward(&run->mem, asked.v[i], &env[n], err) < 0)
            return -1;
        for (size_t j = 0; j < n; j++)
            if (strncmp(env[j], env[n], name.n + 1) == 0)
                return err_set(err, ERR_INVALID, "--env " STR_FMT ": given twice", STR_ARG(name));
        n++;
    }
    qsort(env, n, sizeof *env, by_bytes);
    return copy_words(&run->mem, (struct words){env, n}, ENV_WORDS_MAX, ENV_BYTES_MAX,
                      "environment variables", &run->action.env, err);
}

static int admit_mount(struct arena *mem, const char *text, struct mount_ask *out, struct err *err)
{
    struct str rest = str_of(text);
    struct str source = str_cut(&rest, ':');
    struct str target = str_cut(&rest, ':');

    if (source.n == 0 || target.n == 0 || source.n >= PATH_BYTES_MAX ||
        target.n >= PATH_BYTES_MAX || !(rest.n == 0 || str_is(rest, "ro") || str_is(rest, "rw")))
        return err_set(err, ERR_INVALID,
                       "--mount \"%.200s\": write SRC:DST, SRC:DST:ro or "
                       "SRC:DST:rw",
                       text);
    out->source = arena_text(mem, source);
    out->target = arena_text(mem, target);
    out->access = str_is(rest, "rw") ? MOUNT_RW : MOUNT_RO;
    return 0;
}

/* "DIR" or "DIR:ACCESS". The last colon counts, so a folder may have others in its name; what
 * stands behind it must be an access, lest a slip of the pen names a folder nobody meant. */
static int admit_workspace(const char *text, struct run *run, struct mount_ask *mount,
                           struct err *err)
{
    static const struct {
        const char *name;
        enum workspace_kind kind;
        enum mount_access access;
    } accesses[] = {
        {"ro",     WORKSPACE_BIND,   MOUNT_RO},
        {"rw",     WORKSPACE_BIND,   MOUNT_RW},
        {"none",   WORKSPACE_NONE,   MOUNT_RO},
        {"mirror", WORKSPACE_MIRROR, MOUNT_RW},
    };
    const char *colon = strrchr(text, ':');
    struct str source = colon ? (struct str){text, (size_t)(colon - text)} : str_of(text);
    const char *access = colon ? colon + 1 : "ro";
    size_t i = 0;

    while (i < COUNT(accesses) && strcmp(accesses[i].name, access) != 0)
        i++;
    if (i == COUNT(accesses) || source.n >= PATH_BYTES_MAX ||
        (source.n == 0 && accesses[i].kind != WORKSPACE_NONE))
        return err_set(err, ERR_INVALID,
                       "--workspace \"%.200s\": write DIR, DIR:ro, DIR:rw, DIR:none or DIR:mirror",
                       text);
    run->action.workspace = accesses[i].kind;
    run->action.workspace_source = arena_text(&run->mem, source);
    *mount = (struct mount_ask){.source = run->action.workspace_source,
                                .target = WORKSPACE_TARGET,
                                .access = accesses[i].access};
    return 0;
}

static int admit_mounts(const struct request *request, struct run *run, struct err *err)
{
    const struct words *asked = &request->mounts;
    struct mount_ask *mounts;
    size_t n = 0;

    if (asked->n > MOUNTS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d mounts", MOUNTS_MAX);
    mounts = arena_array(&run->mem, struct mount_ask, asked->n + 1);
    if (request->workspace) {
        if (admit_workspace(request->workspace, run, &mounts[0], err) < 0)
            return -1;
        n += run->action.workspace == WORKSPACE_BIND;
    }
    for (size_t i = 0; i < asked->n; i++)
        if (admit_mount(&run->mem, asked->v[i], &mounts[n++], err) < 0)
            return -1;
    run->action.mounts = mounts;
    run->action.mount_n = n;
    run->action.allow_protected = request->allow_protected;
    if (request->held.v) {
        struct words *held = arena_new(&run->mem, struct words);

        *held = request->held;
        run->action.held = held;
    }
    return 0;
}

/* Bytes as text where they are UTF-8, else as {"bytes_b64": …}. */
static void push_bytes(struct arena *mem, struct json *array, const char *bytes)
{
    struct str text = str_of(bytes);

    if (str_is_utf8(text)) {
        json_push(array, json_text(mem, text));
    } else {
        struct json *object = json_object(mem);

        json_put_bytes(mem, object, "bytes", text);
        json_push(array, object);
    }
}

static struct json *words_array(struct arena *mem, struct words words)
{
    struct json *array = json_array(mem);

    for (size_t i = 0; i < words.n; i++)
        push_bytes(mem, array, words.v[i]);
    return array;
}

static struct json *mounts_array(struct arena *mem, const struct action *action)
{
    struct json *array = json_array(mem);

    for (size_t i = 0; i < action->mount_n; i++) {
        struct json *mount = json_object(mem);

        json_put_text(mem, mount, "access", action->mounts[i].access == MOUNT_RW ? "rw" : "ro");
        json_put_bytes(mem, mount, "source", str_of(action->mounts[i].source));
        json_put_bytes(mem, mount, "target", str_of(action->mounts[i].target));
        json_push(array, mount);
    }
    return array;
}

static struct json *limits_object(struct arena *mem, const struct action *action)
{
    struct json *object = json_object(mem);

    for (enum limit_kind kind = 0; kind < LIMIT_COUNT; kind++)
        if (action->limits.of[kind].value)
            json_put_int(mem, object, limit_name(kind), (int64_t)action->limits.of[kind].value);
    return object;
}

static int hash_request(struct run *run, struct err *err)
{
    AUTO_BUF struct buf text = BUF(8 * (ARGV_BYTES_MAX + ENV_BYTES_MAX));
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    struct action *action = &run->action;
    struct json *root = json_object(&mem);

    if (action->advisory)
        json_put_bool(&mem, root, "advisory", true);
    if (action->allow_protected)
        json_put_bool(&mem, root, "allow_protected", true);
    json_put(root, "argv", words_array(&mem, action->argv));
    if (action->base && action->kind != ACTION_EXEC)
        json_put_bytes(&mem, root, "base", str_of(action->base));
    json_put_bytes(&mem, root, "cwd", str_of(action->workdir ? action->workdir : ""));
    json_put(root, "env", words_array(&mem, action->env));
    json_put_bytes(&mem, root, "image", str_of(action->image));
    json_put(root, "limits", limits_object(&mem, action));
    json_put(root, "mounts", mounts_array(&mem, action));
    json_put_text(&mem, root, "network", network_name(action->network));
    json_put_bytes(&mem, root, "provider", str_of(action->provider));
    if (action->sockets_none)
        json_put_text(&mem, root, "sockets", "none");
    json_put_text(&mem, root, "stdin", action->stdin_kind == STDIN_STREAM ? "stream" : "empty");
    json_put_bool(&mem, root, "tty", action->tty);
    if (action->user)
        json_put_bytes(&mem, root, "user", str_of(action->user));
    if (action->wall_ms)
        json_put_int(&mem, root, "wall_ms", (int64_t)action->wall_ms);
    if (action->workspace == WORKSPACE_NONE)
        json_put_text(&mem, root, "workspace", "none");
    if (action->workspace == WORKSPACE_MIRROR) {
        json_put_text(&mem, root, "workspace", "mirror");
        json_put_bytes(&mem, root, "workspace_source", str_of(action->workspace_source));
    }
    if (json_canonical(root, &text, err) < 0)
        return -1;
    hash_text_of(buf_str(&text), action->request_hash);
    return 0;
}

static int admit_limits(const struct request *request, struct run *run, struct err *err)
{
    for (enum limit_kind kind = 0; kind < LIMIT_COUNT; kind++) {
        if (request->limits[kind] > 1ULL << 52)
            return err_set(err, ERR_INVALID, "%s of %llu is more than any machine has",
                           limit_name(kind), (unsigned long long)request->limits[kind]);
        run->action.limits.of[kind] =
            (struct limit){.value = request->limits[kind], .origin = ORIGIN_FLAG};
    }
    return 0;
}

static int admit_identity(const struct request *request, struct run *run, struct err *err)
{
    struct action *action = &run->action;

    run->watch = request->watch;
    action->kind = request->kind;
    action->lifetime = request->lifetime;
    action->extend_ms = request->extend_ms;
    action->keep_background = request->keep_background;
    action->wall_ms = request->wall_ms;
    action->detach = request->detach;
    action->approval_wait_ms = request->approval_wait_ms;
    action->no_pool = request->no_pool;
    action->principal = arena_text(&run->mem, str_of(request->principal));
    action->made_by = request->made_by ? arena_text(&run->mem, str_of(request->made_by)) : NULL;
    action->tenant = arena_text(&run->mem, str_of(request->tenant));
    action->name = request->name ? arena_text(&run->mem, str_of(request->name)) : NULL;
    action->provider = arena_text(&run->mem, str_of(request->provider));
    action->base = request->base ? arena_text(&run->mem, str_of(request->base)) : NULL;
    if (!request->sandbox)
        return 0;
    if (strlen(request->sandbox) >= sizeof run->sandbox_id)
        return err_set(err, ERR_NOT_FOUND, "there is no sandbox \"%.40s\"", request->sandbox);
    (void)strcpy(run->sandbox_id, request->sandbox);
    action->sandbox = run->sandbox_id;
    return 0;
}

int admit_change(const struct request *request, struct run *run, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    AUTO_BUF struct buf text = BUF(2 * PATH_BYTES_MAX);
    struct json *root = json_object(&mem);

    if (admit_identity(request, run, err) < 0)
        return -1;
    if (request->extend_ms > 1ULL << 52)
        return err_set(err, ERR_INVALID, "a time of more than 140 000 years");
    json_put_text(&mem, root, "action", action_name(request->kind));
    json_put_int(&mem, root, "extend_ms", (int64_t)request->extend_ms);
    json_put_text(&mem, root, "sandbox", run->sandbox_id);
    if (request->base)
        json_put_bytes(&mem, root, "snapshot", str_of(request->base));
    if (json_canonical(root, &text, err) < 0)
        return -1;
    run->action.image = "host";
    run->action.is_refusal = request->is_refusal;
    hash_text_of(buf_str(&text), run->action.request_hash);
    return 0;
}

/* Names are looked up by equip, in the image. */
static int check_user(const char *text, struct err *err)
{
    struct str group = str_of(text);
    struct str user = str_cut(&group, ':');

    if (user.n == 0 || strlen(text) > USER_BYTES_MAX || memchr(group.p, ':', group.n) ||
        !str_is_utf8(str_of(text)) || text[strlen(text) - 1] == ':')
        return err_set(err, ERR_INVALID, "--user \"%.100s\": write USER or USER:GROUP", text);
    return 0;
}

int admit_run(const struct request *request, struct run *run, struct err *err)
{
    struct action *action = &run->action;

    if (request->argv.n == 0 || request->argv.v[0][0] == '\0')
        return err_set(err, ERR_INVALID, "there is no command; write it behind --");
    if (admit_identity(request, run, err) < 0)
        return -1;
    if (request->user && check_user(request->user, err) < 0)
        return -1;
    if (request->workdir && strlen(request->workdir) >= PATH_BYTES_MAX)
        return err_set(err, ERR_LIMIT, "a working directory of more than %d bytes", PATH_BYTES_MAX);
    action->image = arena_text(&run->mem, str_of(request->image));
    action->workdir = request->workdir ? arena_text(&run->mem, str_of(request->workdir)) : NULL;
    action->user = request->user ? arena_text(&run->mem, str_of(request->user)) : NULL;
    action->network = request->network;
    action->sockets_none = request->sockets_none;
    action->advisory = request->advisory;
    action->stdin_kind = request->stdin_stream ? STDIN_STREAM : STDIN_EMPTY;
    action->tty = request->tty;
    action->tty_rows = request->tty_rows;
    action->tty_columns = request->tty_columns;
    if (copy_words(&run->mem, request->argv, ARGV_WORDS_MAX, ARGV_BYTES_MAX, "arguments",
                   &action->argv, err) < 0 ||
        admit_env(request->env, run, err) < 0 || admit_mounts(request, run, err) < 0 ||
        admit_limits(request, run, err) < 0)
        return -1;
    return hash_request(run, err);
}
