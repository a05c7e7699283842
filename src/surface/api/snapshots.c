/* SPDX-License-Identifier: Apache-2.0 */

/* Snapshots: taken, looked at, gone back to, forked from, carried out and in. */

#include "surface/api/call.h"
#include "surface/api/tables.h"

#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/limits.h"
#include "lib/image/image.h"
#include "lib/snapshot/snapshot.h"
#include "model/run.h"
#include "surface/api/sandbox-body.h"
#include "surface/view/view.h"

#define FORKS_MAX 1000
#define ARCHIVE_TYPE "application/x-tar"

static int open_store(struct call *call, struct snapshot_store **out, struct err *err)
{
    return snapshot_store_open(tenant_state_dir(call->tenant), out, err);
}

static int find(struct call *call, const char *wanted, struct snapshot *out, struct err *err)
{
    AUTO(snapshot_store) struct snapshot_store *store = NULL;

    return open_store(call, &store, err) < 0 ? -1
                                             : snapshot_find(store, &call->mem, wanted, out, err);
}

/* ---- looking ---- */

static int answer_list(struct call *call, const char *of_sandbox, struct err *err)
{
    AUTO(snapshot_store) struct snapshot_store *store = NULL;
    struct json *answer = json_object(&call->mem), *list = json_array(&call->mem);
    struct snapshot *all = NULL;
    size_t n = 0;

    if (open_store(call, &store, err) < 0 || snapshot_list(store, &call->mem, &all, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (!of_sandbox || strcmp(all[i].sandbox_id, of_sandbox) == 0)
            json_push(list, view_snapshot(&call->mem, &all[i]));
    json_put(answer, "snapshots", list);
    return call_answer(call, 200, answer, err);
}

static int list(struct call *call, const void *body, const void *query, struct err *err)
{
    (void)body;
    (void)query;
    return answer_list(call, NULL, err);
}

static int list_of_sandbox(struct call *call, const void *body, const void *query, struct err *err)
{
    const char *id = NULL;
    struct lent lent;
    int failed;

    (void)body;
    (void)query;
    if (call_govern(call, &lent, err) < 0)
        return -1;
    failed = govern_find(govern_execute(lent.govern), &call->mem, call->params[0], &id, err);
    call_release(call, &lent);
    return failed ? -1 : answer_list(call, id, err);
}

static int show(struct call *call, const void *body, const void *query, struct err *err)
{
    struct snapshot snapshot;

    (void)body;
    (void)query;
    if (find(call, call->params[0], &snapshot, err) < 0)
        return -1;
    return call_answer(call, 200, view_snapshot(&call->mem, &snapshot), err);
}

static int verify(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(snapshot_store) struct snapshot_store *store = NULL;
    struct json *answer = json_object(&call->mem);
    struct snapshot snapshot;

    (void)body;
    (void)query;
    if (open_store(call, &store, err) < 0 ||
        snapshot_find(store, &call->mem, call->params[0], &snapshot, err) < 0 ||
        snapshot_verify(store, &snapshot, err) < 0)
        return -1;
    json_put_text(&call->mem, answer, "snapshot_id", snapshot.id);
    json_put_text(&call->mem, answer, "digest", snapshot.digest);
    json_put_bool(&call->mem, answer, "intact", true);
    return call_answer(call, 200, answer, err);
}

/* ---- taking one, going back to one, removing one ---- */

struct take_body {
    const char *name;
};

struct restore_body {
    const char *snapshot_id;
};

/* clang-format off */
static const struct field take_fields[] = {
    {"name", FIELD_TEXT, offsetof(struct take_body, name), .max = LABEL_BYTES_MAX,
     .help = "The newest of a name is the one meant by it."},
    {0},
};

static const struct field restore_fields[] = {
    {"snapshot_id", FIELD_TEXT, offsetof(struct restore_body, snapshot_id), .required = true,
     .max = PATH_BYTES_MAX, .help = "An id, a name or a digest."},
    {0},
};
/* clang-format on */

static int answer_made(struct call *call, int status, const struct run *run, struct err *err)
{
    struct json *answer;

    if (call_check_run(call, run, err) < 0)
        return -1;
    answer = view_snapshot_made(&call->mem, run);
    view_put_done(&call->mem, answer, run);
    return call_answer(call, status, answer, err);
}

static int take(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct take_body *wanted = body;
    struct request request = call_request(call, ACTION_SNAPSHOT);
    const char *made = NULL;
    struct lent lent;
    struct run run;
    int failed;

    (void)query;
    request.name = wanted->name;
    if (call_sandbox(call, &lent, &request.sandbox, &made, err) < 0)
        return -1;
    run_init(&run);
    failed = govern_snapshot(lent.govern, &request, &run, err) < 0 ||
             answer_made(call, 201, &run, err) < 0;
    run_done(&run);
    call_release(call, &lent);
    return failed ? -1 : 0;
}

static int restore(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct restore_body *wanted = body;
    struct request request = call_request(call, ACTION_RESTORE);
    const char *made = NULL;
    struct lent lent;
    struct run run;
    int failed;

    (void)query;
    request.base = wanted->snapshot_id;
    if (call_sandbox(call, &lent, &request.sandbox, &made, err) < 0)
        return -1;
    run_init(&run);
    failed = govern_restore(lent.govern, &request, &run, err) < 0 ||
             answer_made(call, 200, &run, err) < 0;
    run_done(&run);
    call_release(call, &lent);
    return failed ? -1 : 0;
}

static int remove_it(struct call *call, const void *body, const void *query, struct err *err)
{
    struct request request = call_request(call, ACTION_SNAPSHOT_REMOVE);
    struct json *answer = json_object(&call->mem);
    bool freed = false;
    struct lent lent;
    struct run run;
    int failed;

    (void)body;
    (void)query;
    request.base = call->params[0];
    if (call_govern(call, &lent, err) < 0)
        return -1;
    run_init(&run);
    failed = govern_snapshot_remove(lent.govern, &request, &run, &freed, err) < 0 ||
             call_check_run(call, &run, err) < 0;
    if (!failed) {
        json_put_text(&call->mem, answer, "snapshot_id", run.outcome.snapshot.id);
        json_put_bool(&call->mem, answer, "freed", freed);
        view_put_done(&call->mem, answer, &run);
        failed = call_answer(call, 200, answer, err);
    }
    run_done(&run);
    call_release(call, &lent);
    return failed ? -1 : 0;
}

/* ---- forks ---- */

struct fork_body {
    uint64_t count;
    const char *name;
    struct words labels;
    uint64_t ttl_ms, idle_ms, lifetime_ms;
};

/* clang-format off */
static const struct field fork_fields[] = {
    {"count", FIELD_COUNT, offsetof(struct fork_body, count), .min = 1, .max = FORKS_MAX,
     .help = "How many; one by default. All of them are made, or none stays."},
    {"name", FIELD_TEXT, offsetof(struct fork_body, name), .max = LABEL_BYTES_MAX - 8,
     .help = "NAME-1, NAME-2, ... when there are several."},
    {"labels", FIELD_MAP, offsetof(struct fork_body, labels), .max = 64},
    {"ttl_ms", FIELD_COUNT, offsetof(struct fork_body, ttl_ms), .min = 1000},
    {"idle_ms", FIELD_COUNT, offsetof(struct fork_body, idle_ms), .min = 1000},
    {"lifetime_ms", FIELD_COUNT, offsetof(struct fork_body, lifetime_ms), .min = 1000},
    {0},
};
/* clang-format on */

/* Sandboxes that are made from one snapshot, under the rules its own sandbox was made with. */
struct forks {
    struct call *call;
    const struct fork_body *wanted;
    struct snapshot snapshot;
    struct config config;
    struct lent lent;
    bool taken; /* for these forks only */
    struct json *list;
    const char **made;
    size_t made_n;
};

/* A fork sees the folders of the machine that its origin saw. */
static int check_host_paths(const struct call *call, const struct config *config, struct err *err)
{
    if ((config->request.mounts.n || config->request.workspace) &&
        !(call->caller.scopes & SCOPE_HOST))
        return err_set(err, ERR_FORBIDDEN,
                       "it was made with folders of the machine: forking it needs a token with the "
                       "scope \"host\"");
    return 0;
}

/* The error of what came of it, if it is one. */
static int check_done(const struct run *run, struct err *err)
{
    if (run->outcome.reason == REASON_NONE)
        return 0;
    return err_set(err, run->outcome.failure_code, "%.400s", run->outcome.failure);
}

static int forget(struct forks *forks, struct err *err)
{
    struct request request = call_request(forks->call, ACTION_SNAPSHOT_REMOVE);
    bool freed = false;
    struct run run;
    int failed;

    request.base = forks->snapshot.id;
    run_init(&run);
    failed = govern_snapshot_remove(forks->lent.govern, &request, &run, &freed, err) < 0 ||
             check_done(&run, err) < 0;
    run_done(&run);
    return failed ? -1 : 0;
}

static void end_made(struct forks *forks)
{
    struct request request = call_request(forks->call, ACTION_DESTROY);
    struct err ignored; /* the failure that led here is the one to report */

    for (size_t i = 0; i < forks->made_n; i++) {
        struct run run;

        request.sandbox = forks->made[i];
        run_init(&run);
        (void)!govern_change(forks->lent.govern, &request, &run, &ignored);
        run_done(&run);
    }
}

static int fork_one(struct forks *forks, size_t number, struct err *err)
{
    const struct fork_body *wanted = forks->wanted;
    struct request request = forks->config.request;
    struct call *call = forks->call;
    struct json *sandbox = NULL;
    struct run run;
    int failed;

    request.kind = ACTION_CREATE;
    request.base = forks->snapshot.id;
    request.principal = call->caller.principal;
    request.tenant = call->caller.tenant;
    request.name = !wanted->name       ? ""
                   : wanted->count > 1 ? arena_printf(&call->mem, "%s-%zu", wanted->name, number)
                                       : wanted->name;
    request.labels = wanted->labels;
    request.lifetime = sandbox_lifetime(wanted->ttl_ms, wanted->idle_ms, wanted->lifetime_ms);
    run_init(&run);
    failed = govern_create(forks->lent.govern, &request, &run, err) < 0 ||
             call_check_run(call, &run, err) < 0;
    if (!failed) {
        forks->made[forks->made_n++] = arena_text(&call->mem, str_of(run.sandbox_id));
        failed =
            sandbox_json(call, govern_execute(forks->lent.govern), run.sandbox_id, &sandbox, err);
    }
    if (!failed)
        json_push(forks->list, sandbox);
    run_done(&run);
    return failed ? -1 : 0;
}

static int make_forks(struct forks *forks, struct err *err)
{
    size_t count = forks->wanted->count ? forks->wanted->count : 1;
    struct call *call = forks->call;
    struct json *answer = json_object(&call->mem);
    struct err ignored;

    forks->list = json_array(&call->mem);
    forks->made = arena_array(&call->mem, const char *, count);
    for (size_t i = 0; i < count; i++)
        if (fork_one(forks, i + 1, err) < 0) {
            end_made(forks);
            if (forks->taken)
                (void)!forget(forks, &ignored);
            return -1;
        }
    if (forks->taken && forget(forks, err) < 0)
        return -1;
    json_put_text(&call->mem, answer, "snapshot_id", forks->snapshot.id);
    json_put(answer, "sandboxes", forks->list);
    return call_answer(call, 201, answer, err);
}

static int fork_snapshot(struct call *call, const void *body, const void *query, struct err *err)
{
    struct forks forks = {.call = call, .wanted = body};
    int failed;

    (void)query;
    if (find(call, call->params[0], &forks.snapshot, err) < 0 ||
        config_read(&call->mem, str_of(forks.snapshot.config), &forks.config, err) < 0 ||
        check_host_paths(call, &forks.config, err) < 0 ||
        call_govern_as(call, &forks.config, &forks.lent, err) < 0)
        return -1;
    failed = make_forks(&forks, err);
    call_release(call, &forks.lent);
    return failed;
}

static int take_source(struct forks *forks, const char *sandbox, struct err *err)
{
    struct request request = call_request(forks->call, ACTION_SNAPSHOT);
    struct run run;
    int failed;

    request.sandbox = sandbox;
    run_init(&run);
    failed = govern_snapshot(forks->lent.govern, &request, &run, err) < 0 ||
             call_check_run(forks->call, &run, err) < 0 ||
             find(forks->call, run.outcome.snapshot.id, &forks->snapshot, err) < 0;
    run_done(&run);
    forks->taken = true;
    return failed ? -1 : 0;
}

static int fork_sandbox(struct call *call, const void *body, const void *query, struct err *err)
{
    struct forks forks = {.call = call, .wanted = body};
    const char *id = NULL, *made = NULL;
    int failed;

    (void)query;
    if (call_sandbox(call, &forks.lent, &id, &made, err) < 0)
        return -1;
    failed = config_read(&call->mem, str_of(made), &forks.config, err) < 0 ||
             check_host_paths(call, &forks.config, err) < 0 || take_source(&forks, id, err) < 0 ||
             config_read(&call->mem, str_of(forks.snapshot.config), &forks.config, err) < 0 ||
             make_forks(&forks, err) < 0;
    call_release(call, &forks.lent);
    return failed ? -1 : 0;
}

/* ---- out and in ---- */

struct export_query {
    bool everything;
};

struct import_query {
    const char *name;
};

/* clang-format off */
static const struct field export_query[] = {
    {"everything", FIELD_BOOL, offsetof(struct export_query, everything),
     .help = "Also what looks like a credential."},
    {0},
};

static const struct field import_query[] = {
    {"name", FIELD_TEXT, offsetof(struct import_query, name), .max = LABEL_BYTES_MAX,
     .help = "By default the one it carries."},
    {0},
};
/* clang-format on */

/* What is told beside the archive itself. */
static void put_report(struct call *call, const struct run *run, const struct image_packed *packed)
{
    call_header(call, "x-receipt-id", run->closing.id);
    call_header(call, "x-image-digest", packed->digest);
    call_header(call, "x-dropped",
                arena_printf(&call->mem, "%llu", (unsigned long long)packed->dropped));
    call_header(call, "x-replaced",
                arena_printf(&call->mem, "%llu", (unsigned long long)packed->replaced));
}

static int export_to(struct call *call, const char *path, bool everything, struct err *err)
{
    struct request request = call_request(call, ACTION_SNAPSHOT_EXPORT);
    struct image_packed packed = {0};
    struct lent lent;
    struct run run;
    int failed;

    request.base = call->params[0];
    request.verb = everything ? "everything" : "filter";
    request.path = "-";
    request.at = path;
    if (call_govern(call, &lent, err) < 0)
        return -1;
    run_init(&run);
    failed = govern_snapshot_export(lent.govern, &request, &run, &packed, err) < 0 ||
             call_check_run(call, &run, err) < 0;
    if (!failed)
        put_report(call, &run, &packed);
    run_done(&run);
    call_release(call, &lent);
    return failed ? -1 : 0;
}

static int export(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct export_query *wanted = query;
    const char *dir = NULL, *path;
    char id[ID_BYTES];

    (void)body;
    if (tenant_spool(call->tenant, &call->mem, &dir, err) < 0)
        return -1;
    id_new(id);
    path = arena_printf(&call->mem, "%s/%s.tar", dir, id);
    if (export_to(call, path, wanted->everything, err) < 0) {
        (void)unlink(path);
        return -1;
    }
    return call_send_file(call, path, ARCHIVE_TYPE, err);
}

static int import(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct import_query *wanted = query;
    struct request request = call_request(call, ACTION_SNAPSHOT_IMPORT);
    struct lent lent;
    struct run run;
    int failed;

    (void)body;
    request.name = wanted->name;
    request.path = "-";
    request.at = call_file_path(call);
    if (call_govern(call, &lent, err) < 0)
        return -1;
    run_init(&run);
    failed = govern_snapshot_import(lent.govern, &request, &run, err) < 0 ||
             answer_made(call, 201, &run, err) < 0;
    run_done(&run);
    call_release(call, &lent);
    return failed ? call_file_failed(call, err) : 0;
}

/* clang-format off */
const struct route routes_snapshots[] = {
    {.method = HTTP_GET,
     .path = "/v1/snapshots",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .name = "listSnapshots",
     .summary = "The snapshots there are.",
     .answer = "All of them, oldest first.",
     .handle = list},
    {.method = HTTP_GET,
     .path = "/v1/sandboxes/{id}/snapshots",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .name = "listSandboxSnapshots",
     .summary = "The snapshots of one sandbox.",
     .answer = "All of them, oldest first.",
     .handle = list_of_sandbox},
    {.method = HTTP_POST,
     .path = "/v1/sandboxes/{id}/snapshots",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .creates = true,
     .body = BODY_JSON,
     .fields = take_fields,
     .body_size = sizeof(struct take_body),
     .name = "createSnapshot",
     .summary = "Put aside what a sandbox has written; it goes on.",
     .answer = "The snapshot's id, how long the sandbox was held, and the receipt.",
     .handle = take},
    {.method = HTTP_POST,
     .path = "/v1/sandboxes/{id}/restore",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .body = BODY_JSON,
     .fields = restore_fields,
     .body_size = sizeof(struct restore_body),
     .name = "restoreSandbox",
     .summary = "Put a sandbox back to a snapshot; whatever runs in it ends.",
     .answer = "The receipt.",
     .handle = restore},
    {.method = HTTP_POST,
     .path = "/v1/sandboxes/{id}/fork",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .creates = true,
     .body = BODY_JSON,
     .fields = fork_fields,
     .body_size = sizeof(struct fork_body),
     .name = "forkSandbox",
     .summary = "Make sandboxes that begin where this one is.",
     .answer = "The sandboxes, and the snapshot they stand on.",
     .handle = fork_sandbox},
    {.method = HTTP_POST,
     .path = "/v1/snapshots/import",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .creates = true,
     .body = BODY_FILE,
     .query = import_query,
     .query_size = sizeof(struct import_query),
     .name = "importSnapshot",
     .summary = "Take a snapshot from an archive that an export gave.",
     .answer = "The snapshot's id and the receipt.",
     .handle = import},
    {.method = HTTP_GET,
     .path = "/v1/snapshots/{snapshot}",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .name = "getSnapshot",
     .summary = "One snapshot, by id, name or digest.",
     .answer = "The snapshot; its digest is there a moment after it was taken.",
     .handle = show},
    {.method = HTTP_DELETE,
     .path = "/v1/snapshots/{snapshot}",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .name = "removeSnapshot",
     .summary = "Remove a snapshot; its space is free when nothing stands on it.",
     .answer = "Whether the space is free already, and the receipt.",
     .handle = remove_it},
    {.method = HTTP_POST,
     .path = "/v1/snapshots/{snapshot}/verify",
     .kind = ROUTE_RUN,
     .scope = SCOPE_READ,
     .name = "verifySnapshot",
     .summary = "Read everything of a snapshot again.",
     .answer = "That it is what it was; otherwise the error \"integrity\".",
     .handle = verify},
    {.method = HTTP_POST,
     .path = "/v1/snapshots/{snapshot}/fork",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .creates = true,
     .body = BODY_JSON,
     .fields = fork_fields,
     .body_size = sizeof(struct fork_body),
     .name = "forkSnapshot",
     .summary = "Make sandboxes that begin where a snapshot is.",
     .answer = "The sandboxes, and the snapshot they stand on.",
     .handle = fork_snapshot},
    {.method = HTTP_GET,
     .path = "/v1/snapshots/{snapshot}/export",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .query = export_query,
     .query_size = sizeof(struct export_query),
     .name = "exportSnapshot",
     .summary = "A snapshot as an archive, without credentials.",
     .answer = "A tar of an OCI layout; X-Receipt-Id, X-Image-Digest, X-Dropped and X-Replaced say "
               "what was recorded and left out.",
     .handle = export},
    {0},
};
/* clang-format on */
