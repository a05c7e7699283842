/* SPDX-License-Identifier: Apache-2.0 */

/* Sandboxes that stay: made, looked at, changed, ended. */

#include "surface/api/call.h"
#include "surface/api/tables.h"

#include <string.h>

#include "flow/decide/decide.h"
#include "lib/base/limits.h"
#include "model/run.h"
#include "surface/api/plug.h"
#include "surface/api/sandbox-body.h"
#include "surface/view/view.h"

#define LIST_MAX 1000

/* ---- what a sandbox is made from ---- */

/* clang-format off */
const struct field limit_fields[] = {
    {"cpu_millis", FIELD_COUNT, offsetof(struct sandbox_body, limits[LIMIT_CPU]), .min = 1,
     .max = 1000000, .help = "Thousandths of a processor."},
    {"memory_bytes", FIELD_COUNT, offsetof(struct sandbox_body, limits[LIMIT_MEMORY]), .min = 1},
    {"pids", FIELD_COUNT, offsetof(struct sandbox_body, limits[LIMIT_PIDS]), .min = 1,
     .max = 4194304},
    {"disk_bytes", FIELD_COUNT, offsetof(struct sandbox_body, limits[LIMIT_DISK]), .min = 1},
    {"inodes", FIELD_COUNT, offsetof(struct sandbox_body, limits[LIMIT_INODES]), .min = 1},
    {"wall_ms", FIELD_COUNT, offsetof(struct sandbox_body, limits[LIMIT_WALL]), .min = 1,
     .help = "How long each command may take."},
    {0},
};

#define OF_SANDBOX                                                                                 \
    {"provider", FIELD_TEXT, offsetof(struct sandbox_body, provider), .max = 32,                   \
     .help = "Where it runs: local by default."},                                                  \
    {"image", FIELD_TEXT, offsetof(struct sandbox_body, image), .max = 1024,                       \
     .help = "An image that is here, or host for the machine's own system."},                      \
    {"env", FIELD_MAP, offsetof(struct sandbox_body, env), .raw = true, .max = ENV_WORDS_MAX},     \
    {"workdir", FIELD_TEXT, offsetof(struct sandbox_body, workdir), .raw = true,                   \
     .max = PATH_BYTES_MAX},                                                                       \
    {"mounts", FIELD_WORDS, offsetof(struct sandbox_body, mounts), .raw = true, .max = MOUNTS_MAX, \
     .help = "SRC:DST[:ro|rw], folders of the machine: needs the scope host."},                    \
    {"workspace", FIELD_TEXT, offsetof(struct sandbox_body, workspace), .raw = true,               \
     .max = PATH_BYTES_MAX,                                                                        \
     .help = "DIR[:none|ro|rw|mirror], of the machine: needs the scope host."},                    \
    {"allow_protected", FIELD_BOOL, offsetof(struct sandbox_body, allow_protected),                \
     .help = "Files that tools of the machine run by themselves may be changed: needs the scope "  \
             "host."},                                                                             \
    {"user", FIELD_TEXT, offsetof(struct sandbox_body, user), .max = USER_BYTES_MAX,               \
     .help = "USER[:GROUP] inside, numbers or names of the image."},                               \
    {"network", FIELD_TEXT, offsetof(struct sandbox_body, network), .choices = "none policy"},     \
    {"sockets", FIELD_TEXT, offsetof(struct sandbox_body, sockets), .choices = "none",             \
     .help = "none: its commands can make no socket of any kind."},                                \
    {"no_pool", FIELD_BOOL, offsetof(struct sandbox_body, no_pool),                                \
     .help = "Build it, even if a prepared one is there."},                                        \
    {"policy", FIELD_TEXT, offsetof(struct sandbox_body, policy), .max = POLICY_TEXT_MAX,          \
     .help = "The text of a policy, instead of the tenant's: needs the scope policy."},            \
    {"overlays", FIELD_WORDS, offsetof(struct sandbox_body, overlays),                             \
     .max = POLICY_OVERLAYS_MAX,                                                                   \
     .help = "Texts of policies that only take away from it; the strictest of all holds."},        \
    {"profile", FIELD_TEXT, offsetof(struct sandbox_body, profile), .max = PROFILE_TEXT_MAX,       \
     .help = "The text of a profile: needs the scope policy."},                                    \
    {"limits", FIELD_OBJECT, .members = limit_fields}

static const struct field create_fields[] = {
    {"name", FIELD_TEXT, offsetof(struct sandbox_body, name), .max = LABEL_BYTES_MAX},
    {"labels", FIELD_MAP, offsetof(struct sandbox_body, labels), .raw = true, .max = 64},
    {"scope", FIELD_TEXT, offsetof(struct sandbox_body, scope), .choices = "session agent shared"},
    {"ttl_ms", FIELD_COUNT, offsetof(struct sandbox_body, ttl_ms), .min = 1000,
     .help = "It ends so long after it was made or extended."},
    {"idle_ms", FIELD_COUNT, offsetof(struct sandbox_body, idle_ms), .min = 1000},
    {"lifetime_ms", FIELD_COUNT, offsetof(struct sandbox_body, lifetime_ms), .min = 1000},
    {"snapshot_id", FIELD_TEXT, offsetof(struct sandbox_body, snapshot_id), .max = ID_BYTES},
    OF_SANDBOX,
    {0},
};
/* clang-format on */

const struct field sandbox_fields[] = {OF_SANDBOX, {0}};

/* Folders of the machine are the operator's to give, not the API's. */
static int check_host_paths(const struct call *call, const struct sandbox_body *body,
                            struct err *err)
{
    if ((body->mounts.n || body->workspace || body->allow_protected) &&
        !(call->caller.scopes & SCOPE_HOST))
        return err_set(err, ERR_FORBIDDEN,
                       "mounts and workspace show folders of the machine: that needs a token with "
                       "the scope \"host\"");
    if ((body->policy || body->profile) && !(call->caller.scopes & SCOPE_POLICY))
        return err_set(err, ERR_FORBIDDEN,
                       "a policy or profile of one's own needs a token with the scope \"policy\"");
    return 0;
}

int sandbox_body_fill(struct call *call, const struct sandbox_body *body, struct request *out,
                      struct err *err)
{
    if (check_host_paths(call, body, err) < 0)
        return -1;
    if (body->provider)
        out->provider = body->provider;
    if (body->image)
        out->image = body->image;
    out->env = body->env;
    out->workdir = body->workdir;
    out->mounts = body->mounts;
    out->workspace = body->workspace;
    out->allow_protected = body->allow_protected;
    out->user = body->user;
    if (body->network)
        out->network = strcmp(body->network, "policy") == 0 ? NETWORK_POLICY : NETWORK_NONE;
    out->sockets_none = body->sockets != NULL;
    out->no_pool = body->no_pool;
    memcpy(out->limits, body->limits, sizeof out->limits);
    return 0;
}

/* They only take away: whoever may run something may bring them. */
static int put_overlays(struct call *call, struct words overlays, const char **policy_text,
                        struct err *err)
{
    AUTO_BUF struct buf stack = BUF(POLICY_TEXT_MAX);
    struct str texts[POLICY_OVERLAYS_MAX];

    for (size_t i = 0; i < overlays.n && i < COUNT(texts); i++)
        texts[i] = str_of(overlays.v[i]);
    if (overlays.n == 0)
        return 0;
    if (policy_stack_text(*policy_text ? str_of(*policy_text) : (struct str){"", 0}, texts,
                          overlays.n, &stack, err) < 0)
        return -1;
    *policy_text = arena_text(&call->mem, buf_str(&stack));
    return 0;
}

int sandbox_body_govern(struct call *call, const struct sandbox_body *body, struct request *request,
                        struct lent *out, struct err *err)
{
    const char *provider;

    if (tenant_rules(call->tenant, &call->mem, &request->policy_text, &request->profile_text, err) <
        0)
        return -1;
    if (body->policy && call_check_policy(call, body->policy, err) < 0)
        return -1;
    if (body->policy)
        request->policy_text = body->policy;
    if (body->profile)
        request->profile_text = body->profile;
    if (put_overlays(call, body->overlays, &request->policy_text, err) < 0 ||
        call_govern_by(call, request->policy_text, request->profile_text, out, err) < 0)
        return -1;
    provider = govern_provider(out->govern);
    if (!body->provider && provider)
        request->provider = arena_text(&call->mem, str_of(provider));
    return 0;
}

/* ---- looking ---- */

int sandbox_json(struct call *call, struct execute *execute, const char *id, struct json **out,
                 struct err *err)
{
    struct config config;
    struct kept_state state;
    const char *text = NULL;

    if (execute_kept_config(execute, &call->mem, id, &text, err) < 0 ||
        config_read(&call->mem, str_of(text), &config, err) < 0 ||
        execute_kept_state(execute, id, &state, err) < 0)
        return -1;
    state.network = govern_network(execute, &config);
    *out = view_sandbox(&call->mem, &config, &state);
    return 0;
}

struct list_query {
    uint64_t limit;
    const char *after;
};

/* clang-format off */
static const struct field list_query_fields[] = {
    {"limit", FIELD_COUNT, offsetof(struct list_query, limit), .min = 1, .max = LIST_MAX},
    {"after", FIELD_TEXT, offsetof(struct list_query, after), .max = ID_BYTES,
     .help = "Only those behind this id: the next page, when the one before had next_after."},
    {0},
};
/* clang-format on */

/* A page, by id. */
struct listing {
    struct call *call;
    struct execute *execute;
    const char *after;
    size_t limit;
    struct json *list;
    const char *last;
    bool has_more;
};

/* 1: the page is full. */
static int on_sandbox(void *context, const char *id, struct err *err)
{
    struct listing *listing = context;
    struct json *one = NULL;
    struct err gone; /* it may end while we look */

    (void)err;
    if (listing->after && strcmp(id, listing->after) <= 0)
        return 0;
    listing->has_more = listing->list->n >= listing->limit;
    if (listing->has_more)
        return 1;
    if (sandbox_json(listing->call, listing->execute, id, &one, &gone) < 0)
        return 0;
    json_push(listing->list, one);
    listing->last = arena_text(&listing->call->mem, str_of(id));
    return 0;
}

static int list(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct list_query *wanted = query;
    struct json *answer = json_object(&call->mem);
    struct listing listing = {.call = call,
                              .after = wanted->after,
                              .limit = wanted->limit ? wanted->limit : LIST_MAX,
                              .list = json_array(&call->mem)};
    struct lent lent;
    int failed;

    (void)body;
    if (call_govern(call, &lent, err) < 0)
        return -1;
    listing.execute = govern_execute(lent.govern);
    failed = govern_sweep(lent.govern, err) < 0 ||
             execute_kept_each(listing.execute, on_sandbox, &listing, err) < 0;
    call_release(call, &lent);
    json_put(answer, "sandboxes", listing.list);
    if (listing.has_more)
        json_put_text(&call->mem, answer, "next_after", listing.last);
    return failed ? -1 : call_answer(call, 200, answer, err);
}

static int show(struct call *call, const void *body, const void *query, struct err *err)
{
    struct json *answer = NULL;
    const char *id = NULL;
    struct err ignored;
    struct lent lent;
    int failed;

    (void)body;
    (void)query;
    if (call_govern(call, &lent, err) < 0)
        return -1;
    failed = govern_find(govern_execute(lent.govern), &call->mem, call->params[0], &id, err) < 0 ||
             sandbox_json(call, govern_execute(lent.govern), id, &answer, err) < 0;
    if (failed && err->code == ERR_NOT_FOUND)
        (void)!govern_sweep(lent.govern, &ignored); /* what is left of it goes now, not later */
    call_release(call, &lent);
    return failed ? -1 : call_answer(call, 200, answer, err);
}

/* ---- making ---- */

/* What of a mirrored workspace was copied in, and what was not. */
static struct json *mirrored(struct arena *mem, const struct moved *moved)
{
    struct json *object = json_object(mem);

    json_put_int(mem, object, "count", (int64_t)moved->entries);
    json_put_int(mem, object, "bytes", (int64_t)moved->bytes);
    json_put_int(mem, object, "skipped", (int64_t)moved->skipped);
    json_put_int(mem, object, "unsteady", (int64_t)moved->unsteady);
    if (moved->left_out)
        json_put_bytes(mem, object, "left_out", str_of(moved->left_out));
    return object;
}

static int create_run(struct call *call, const struct request *request, struct lent *lent,
                      struct err *err)
{
    struct json *answer = NULL;
    struct run run;
    int failed;

    run_init(&run);
    failed = govern_create(lent->govern, request, &run, err) < 0 ||
             call_check_run(call, &run, err) < 0 ||
             sandbox_json(call, govern_execute(lent->govern), run.sandbox_id, &answer, err) < 0;
    if (!failed) {
        json_put_text(&call->mem, answer, "receipt_id", run.closing.id);
        if (run.plan.mirror_source)
            json_put(answer, "mirrored", mirrored(&call->mem, &run.outcome.moved));
        failed = call_answer(call, 201, answer, err);
    }
    run_done(&run);
    return failed ? -1 : 0;
}

struct lifetime sandbox_lifetime(uint64_t ttl_ms, uint64_t idle_ms, uint64_t lifetime_ms)
{
    return (struct lifetime){
        .ttl_ms = ttl_ms ? ttl_ms : SANDBOX_TTL_MS,
        .idle_ms = idle_ms,
        .max_ms = lifetime_ms ? lifetime_ms : SANDBOX_LIFETIME_MS,
    };
}

static int create(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct sandbox_body *wanted = body;
    struct request request = call_request(call, ACTION_CREATE);
    struct lent lent;
    int failed;

    (void)query;
    if (sandbox_body_fill(call, wanted, &request, err) < 0 ||
        sandbox_body_govern(call, wanted, &request, &lent, err) < 0)
        return -1;
    if (wanted->name)
        request.name = wanted->name;
    if (wanted->scope)
        request.scope = wanted->scope;
    request.labels = wanted->labels;
    request.base = wanted->snapshot_id;
    request.lifetime = sandbox_lifetime(wanted->ttl_ms, wanted->idle_ms, wanted->lifetime_ms);
    failed = create_run(call, &request, &lent, err);
    call_release(call, &lent);
    return failed;
}

/* ---- changing ---- */

static int change(struct call *call, enum action_kind kind, uint64_t extend_ms, struct err *err)
{
    struct request request = call_request(call, kind);
    struct lent lent;
    struct run run;
    int failed;

    request.extend_ms = extend_ms;
    if (call_govern(call, &lent, err) < 0)
        return -1;
    run_init(&run);
    /* Not under its own rules: one whose config is damaged can still be ended. */
    failed = govern_find(govern_execute(lent.govern), &call->mem, call->params[0], &request.sandbox,
                         err) < 0 ||
             govern_change(lent.govern, &request, &run, err) < 0 ||
             call_check_result(call, &run, view_change(&call->mem, &run), err) < 0 ||
             call_answer(call, 200, view_change(&call->mem, &run), err) < 0;
    run_done(&run);
    call_release(call, &lent);
    return failed ? -1 : 0;
}

static int pause_it(struct call *call, const void *body, const void *query, struct err *err)
{
    (void)body;
    (void)query;
    return change(call, ACTION_PAUSE, 0, err);
}

static int resume_it(struct call *call, const void *body, const void *query, struct err *err)
{
    (void)body;
    (void)query;
    return change(call, ACTION_RESUME, 0, err);
}

int handle_sandbox_destroy(struct call *call, const void *body, const void *query, struct err *err)
{
    (void)body;
    (void)query;
    return change(call, ACTION_DESTROY, 0, err);
}

struct extend_body {
    uint64_t ttl_ms;
};

/* clang-format off */
static const struct field extend_fields[] = {
    {"ttl_ms", FIELD_COUNT, offsetof(struct extend_body, ttl_ms), .min = 1000,
     .help = "From now on; an hour by default."},
    {0},
};
/* clang-format on */

static int extend(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct extend_body *wanted = body;

    (void)query;
    return change(call, ACTION_EXTEND, wanted->ttl_ms ? wanted->ttl_ms : SANDBOX_TTL_MS, err);
}

/* clang-format off */
const struct route routes_sandboxes[] = {
    {.method = HTTP_GET,
     .path = "/v1/sandboxes",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .query = list_query_fields,
     .query_size = sizeof(struct list_query),
     .name = "listSandboxes",
     .summary = "The sandboxes there are, by id.",
     .answer = "At most limit of them (1000); next_after is there when there are more: the after of the next page.",
     .handle = list},
    {.method = HTTP_POST,
     .path = "/v1/sandboxes",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .creates = true,
     .body = BODY_JSON,
     .fields = create_fields,
     .body_size = sizeof(struct sandbox_body),
     .name = "createSandbox",
     .summary = "Make a sandbox that stays.",
     .answer = "The sandbox, and the receipt of its making.",
     .handle = create},
    {.method = HTTP_GET,
     .path = "/v1/sandboxes/{id}",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .name = "getSandbox",
     .summary = "One sandbox, by id or name.",
     .answer = "What it was made from and how it is.",
     .handle = show},
    {.method = HTTP_DELETE,
     .path = "/v1/sandboxes/{id}",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .name = "destroySandbox",
     .summary = "End a sandbox and everything in it.",
     .answer = "The receipt.",
     .handle = handle_sandbox_destroy},
    {.method = HTTP_POST,
     .path = "/v1/sandboxes/{id}/pause",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .name = "pauseSandbox",
     .summary = "Hold everything in it still.",
     .answer = "The receipt.",
     .handle = pause_it},
    {.method = HTTP_POST,
     .path = "/v1/sandboxes/{id}/resume",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .name = "resumeSandbox",
     .summary = "Let it go on.",
     .answer = "The receipt.",
     .handle = resume_it},
    {.method = HTTP_POST,
     .path = "/v1/sandboxes/{id}/extend",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .body = BODY_JSON,
     .fields = extend_fields,
     .body_size = sizeof(struct extend_body),
     .name = "extendSandbox",
     .summary = "Let it live longer.",
     .answer = "The receipt.",
     .handle = extend},
    {0                     },
};
/* clang-format on */
