/* SPDX-License-Identifier: Apache-2.0 */

/* brig snapshot list, show, remove, verify, tend; brig sandbox snapshot, restore, fork. */

#include "surface/cli/sandbox.h"

#include "lib/image/image.h"
#include "lib/json/json.h"
#include "lib/snapshot/snapshot.h"
#include "model/run.h"
#include "surface/view/view.h"

#include <string.h>

#define FORKS_MAX 1000

/* ---- showing ---- */

static int open_store(struct invocation *inv, struct snapshot_store **out, struct err *err)
{
    const char *state_dir = NULL;

    if (cli_state(inv, &state_dir, err) < 0)
        return -1;
    return snapshot_store_open(state_dir, out, err);
}

int run_snapshot_list(struct invocation *inv)
{
    AUTO(snapshot_store) struct snapshot_store *store = NULL;
    struct json *result = json_object(&inv->mem), *list = json_array(&inv->mem);
    struct snapshot *all = NULL;
    size_t n = 0;
    struct err err;

    if (open_store(inv, &store, &err) < 0 || snapshot_list(store, &inv->mem, &all, &n, &err) < 0)
        return cli_error(inv, &err);
    for (size_t i = 0; i < n; i++) {
        json_push(list, view_snapshot(&inv->mem, &all[i]));
        if (!inv->json)
            (void)fprintf(inv->out, "%s  %s  of %s  %-16s %s\n", all[i].id, all[i].created_at,
                          all[i].sandbox_id, all[i].name,
                          *all[i].digest ? all[i].digest : "digest to come");
    }
    if (n == 0)
        cli_none(inv, "no snapshots");
    json_put(result, "snapshots", list);
    return inv->json ? cli_json(inv, result) : 0;
}

int run_snapshot_show(struct invocation *inv)
{
    AUTO(snapshot_store) struct snapshot_store *store = NULL;
    struct snapshot snapshot;
    struct err err;

    if (open_store(inv, &store, &err) < 0 ||
        snapshot_find(store, &inv->mem, inv->operands.v[0], &snapshot, &err) < 0)
        return cli_error(inv, &err);
    return cli_json(inv, view_snapshot(&inv->mem, &snapshot));
}

int run_snapshot_verify(struct invocation *inv)
{
    AUTO(snapshot_store) struct snapshot_store *store = NULL;
    struct json *object = json_object(&inv->mem);
    struct snapshot snapshot;
    struct err err;

    if (open_store(inv, &store, &err) < 0 ||
        snapshot_find(store, &inv->mem, inv->operands.v[0], &snapshot, &err) < 0 ||
        snapshot_verify(store, &snapshot, &err) < 0)
        return cli_error(inv, &err);
    json_put_text(&inv->mem, object, "snapshot_id", snapshot.id);
    json_put_text(&inv->mem, object, "digest", snapshot.digest);
    json_put_bool(&inv->mem, object, "intact", true);
    if (inv->json)
        return cli_json(inv, object);
    (void)fprintf(inv->out, "%s is intact: %s\n", snapshot.id, snapshot.digest);
    return 0;
}

int run_snapshot_tend(struct invocation *inv)
{
    AUTO(snapshot_store) struct snapshot_store *store = NULL;
    struct err err;

    if (open_store(inv, &store, &err) < 0 ||
        snapshot_tend(store, !option_flag(inv, "--if-free"), &err) < 0)
        return cli_error(inv, &err);
    return inv->json ? cli_json(inv, json_object(&inv->mem)) : 0;
}

/* ---- what changes something ---- */

/* What came of it, as JSON or as one line; the exit status. */
static int answer(struct invocation *inv, const struct run *run, struct json *object)
{
    const struct outcome *outcome = &run->outcome;
    bool failed = outcome->reason != REASON_NONE;

    view_put_done(&inv->mem, object, run);
    if (inv->json && cli_json(inv, object) != 0)
        return cli_status(inv, ERR_OS);
    if (!inv->json)
        sandbox_change_line(inv, action_name(run->action.kind),
                            outcome->snapshot.id ? outcome->snapshot.id : run->sandbox_id,
                            failed ? outcome->failure : NULL, run->closing.id);
    return failed ? cli_status(inv, outcome->failure_code) : 0;
}

/* What there is to tell besides the run's own outcome. */
struct made {
    bool freed;
    struct image_packed packed;
};

/* One that is recorded: what is asked for, how it is done, and what is told of it. */
struct change {
    enum action_kind kind;
    bool of_sandbox; /* its first operand is one */
    bool prints_id;  /* of the snapshot, on standard output */
    int (*ask)(struct invocation *inv, const char *operand, struct request *request,
               struct err *err);
    int (*run)(struct govern *govern, const struct request *request, struct run *run,
               struct made *made, struct err *err);
    struct json *(*tell)(struct invocation *inv, const struct run *run, const struct made *made);
};

/* The subject makes the call open the policy and the profile the sandbox was made with. */
static int open_call(struct invocation *inv, const struct change *change, struct sandbox_call *call,
                     int *status)
{
    if (change->of_sandbox)
        inv->subject = inv->operands.v[0];
    if (sandbox_call_open(inv, call, status) < 0)
        return -1;
    call->request.kind = change->kind;
    if (change->of_sandbox)
        call->request.sandbox = call->sandbox;
    return 0;
}

static int change_one(struct invocation *inv, const struct change *change,
                      struct sandbox_call *call, const char *operand)
{
    struct made made = {0};
    struct run run;
    struct err err;
    int status;

    run_init(&run);
    if (change->ask(inv, operand, &call->request, &err) < 0 ||
        change->run(call->govern, &call->request, &run, &made, &err) < 0)
        status = cli_error(inv, &err);
    else
        status = answer(inv, &run, change->tell(inv, &run, &made));
    if (change->prints_id && !inv->json && !status)
        (void)fprintf(inv->out, "%s\n", run.outcome.snapshot.id);
    run_done(&run);
    return status;
}

static int make_change(struct invocation *inv, const struct change *change)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    int status;

    if (open_call(inv, change, &call, &status) < 0)
        return status;
    return change_one(inv, change, &call, inv->operands.v[change->of_sandbox]);
}

static struct json *tell_made(struct invocation *inv, const struct run *run,
                              const struct made *made)
{
    (void)made;
    return view_snapshot_made(&inv->mem, run);
}

static int ask_name(struct invocation *inv, const char *operand, struct request *request,
                    struct err *err)
{
    (void)operand;
    request->name = option_text(inv, "--name");
    return sandbox_check_name(request->name, err);
}

static int ask_base(struct invocation *inv, const char *operand, struct request *request,
                    struct err *err)
{
    (void)inv, (void)err;
    request->base = operand;
    return 0;
}

static int do_snapshot(struct govern *govern, const struct request *request, struct run *run,
                       struct made *made, struct err *err)
{
    (void)made;
    return govern_snapshot(govern, request, run, err);
}

static int do_restore(struct govern *govern, const struct request *request, struct run *run,
                      struct made *made, struct err *err)
{
    (void)made;
    return govern_restore(govern, request, run, err);
}

static int do_remove(struct govern *govern, const struct request *request, struct run *run,
                     struct made *made, struct err *err)
{
    return govern_snapshot_remove(govern, request, run, &made->freed, err);
}

static struct json *tell_removed(struct invocation *inv, const struct run *run,
                                 const struct made *made)
{
    struct json *object = json_object(&inv->mem);

    json_put_text(&inv->mem, object, "snapshot_id", run->outcome.snapshot.id);
    json_put_bool(&inv->mem, object, "freed", made->freed);
    return object;
}

int run_sandbox_snapshot(struct invocation *inv)
{
    static const struct change change = {ACTION_SNAPSHOT, true,        true,
                                         ask_name,        do_snapshot, tell_made};

    return make_change(inv, &change);
}

int run_sandbox_restore(struct invocation *inv)
{
    static const struct change change = {ACTION_RESTORE, true,       false,
                                         ask_base,       do_restore, tell_made};

    return make_change(inv, &change);
}

int run_snapshot_remove(struct invocation *inv)
{
    static const struct change change = {
        ACTION_SNAPSHOT_REMOVE, false, false, ask_base, do_remove, tell_removed};
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    int status;

    if (open_call(inv, &change, &call, &status) < 0)
        return status;
    status = 0;
    for (size_t i = 0; i < inv->operands.n; i++) {
        int each = change_one(inv, &change, &call, inv->operands.v[i]);

        status = each ? each : status;
    }
    return status;
}

/* ---- to files and from them ---- */

/* Relative to where we were started, also for the program that writes it. */
static int full_path(struct invocation *inv, const char *path, const char **out, struct err *err)
{
    AUTO_FREE char *here = *path == '/' ? NULL : getcwd(NULL, 0);

    if (*path != '/' && !here)
        return err_os(err, "asking where we are");
    *out = here ? arena_printf(&inv->mem, "%s/%s", here, path) : path;
    return 0;
}

static void print_left_out(struct invocation *inv, const struct image_packed *packed)
{
    for (size_t i = 0; i < packed->left_out_n; i++)
        (void)fprintf(inv->out, "%-8s %s (%s)\n", packed->left_out[i].action,
                      packed->left_out[i].path, packed->left_out[i].rule);
    if (packed->not_listed)
        (void)fprintf(inv->out, "and %llu more\n", (unsigned long long)packed->not_listed);
}

static int ask_export(struct invocation *inv, const char *operand, struct request *request,
                      struct err *err)
{
    request->base = operand;
    request->verb = option_flag(inv, "--everything") ? "everything" : "filter";
    if (!option_text(inv, "--output"))
        return err_set(err, ERR_INVALID, "--output FILE says where to write it");
    return full_path(inv, option_text(inv, "--output"), &request->path, err);
}

static int do_export(struct govern *govern, const struct request *request, struct run *run,
                     struct made *made, struct err *err)
{
    return govern_snapshot_export(govern, request, run, &made->packed, err);
}

static struct json *tell_exported(struct invocation *inv, const struct run *run,
                                  const struct made *made)
{
    (void)run;
    if (!inv->json)
        print_left_out(inv, &made->packed);
    return image_packed_json(&inv->mem, &made->packed);
}

int run_snapshot_export(struct invocation *inv)
{
    static const struct change change = {
        ACTION_SNAPSHOT_EXPORT, false, false, ask_export, do_export, tell_exported};

    return make_change(inv, &change);
}

static int ask_import(struct invocation *inv, const char *operand, struct request *request,
                      struct err *err)
{
    if (ask_name(inv, operand, request, err) < 0)
        return -1;
    return full_path(inv, operand, &request->path, err);
}

static int do_import(struct govern *govern, const struct request *request, struct run *run,
                     struct made *made, struct err *err)
{
    (void)made;
    return govern_snapshot_import(govern, request, run, err);
}

int run_snapshot_import(struct invocation *inv)
{
    static const struct change change = {
        ACTION_SNAPSHOT_IMPORT, false, true, ask_import, do_import, tell_made};

    return make_change(inv, &change);
}

/* ---- fork ---- */

/* Whatever is meant: a snapshot, or a sandbox, of which one is taken now. */
struct source {
    struct snapshot snapshot;
    bool taken; /* for these forks only */
};

static int take_source(struct invocation *inv, struct sandbox_call *call, struct source *out,
                       struct err *err)
{
    AUTO(snapshot_store) struct snapshot_store *store = NULL;
    struct request request = call->request;
    struct run run;
    int failed;

    request.kind = ACTION_SNAPSHOT;
    request.sandbox = call->sandbox;
    run_init(&run);
    failed = govern_snapshot(call->govern, &request, &run, err);
    if (!failed && run.outcome.reason != REASON_NONE)
        failed = err_set(err, run.outcome.failure_code, "%s", run.outcome.failure);
    if (!failed)
        failed = open_store(inv, &store, err);
    if (!failed)
        failed = snapshot_find(store, &inv->mem, run.outcome.snapshot.id, &out->snapshot, err);
    out->taken = true;
    run_done(&run);
    return failed;
}

/* Opens the call under the policy and the profile of what is forked. */
static int open_source(struct invocation *inv, struct sandbox_call *call, struct source *out,
                       int *status)
{
    AUTO(snapshot_store) struct snapshot_store *store = NULL;
    struct err err;

    *out = (struct source){0};
    if (open_store(inv, &store, &err) < 0) {
        *status = cli_error(inv, &err);
        return -1;
    }
    if (snapshot_find(store, &inv->mem, inv->operands.v[0], &out->snapshot, &err) == 0) {
        call->made = out->snapshot.config;
        return sandbox_call_open(inv, call, status);
    }
    inv->subject = inv->operands.v[0];
    if (sandbox_call_open(inv, call, status) < 0)
        return -1;
    if (take_source(inv, call, out, &err) == 0)
        return 0;
    *status = cli_error(inv, &err);
    return -1;
}

static int fork_one(struct invocation *inv, struct sandbox_call *call, const struct source *source,
                    const struct config *config, unsigned number, struct json *list)
{
    struct request request = config->request;
    uint64_t count = option_number(inv, "--count");
    struct run run;
    struct err err;
    int status = 0;

    request.base = source->snapshot.id;
    request.principal = call->request.principal;
    if (sandbox_fill_create(inv, &request, &err) < 0)
        return cli_error(inv, &err);
    if (*request.name && count > 1)
        request.name = arena_printf(&inv->mem, "%s-%u", request.name, number);
    run_init(&run);
    if (govern_create(call->govern, &request, &run, &err) < 0)
        status = cli_error(inv, &err);
    else if (run.verdict.kind != VERDICT_ALLOW || run.outcome.reason == REASON_SANDBOX_FAILED)
        status = sandbox_refused(inv, &run);
    else if (!inv->json)
        status =
            sandbox_print(inv, call->govern, run.sandbox_id, &err) < 0 ? cli_error(inv, &err) : 0;
    else if (sandbox_add_json(inv, call->govern, run.sandbox_id, list, &err) < 0)
        status = cli_error(inv, &err);
    run_done(&run);
    return status;
}

/* Only those that were made stand on it from now on. */
static int forget_source(struct sandbox_call *call, const struct source *source, struct err *err)
{
    struct request request = call->request;
    bool freed = false;
    struct run run;
    int failed;

    request.kind = ACTION_SNAPSHOT_REMOVE;
    request.sandbox = NULL;
    request.base = source->snapshot.id;
    run_init(&run);
    failed = govern_snapshot_remove(call->govern, &request, &run, &freed, err);
    run_done(&run);
    return failed;
}

int run_sandbox_fork(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct json *result = json_object(&inv->mem), *list = json_array(&inv->mem);
    uint64_t count = option_number(inv, "--count") ? option_number(inv, "--count") : 1;
    struct source source;
    struct config config;
    struct err err;
    int status = 0;

    if (count > FORKS_MAX) {
        (void)err_set(&err, ERR_LIMIT, "--count: at most %d at once", FORKS_MAX);
        return cli_error(inv, &err);
    }
    if (open_source(inv, &call, &source, &status) < 0)
        return status;
    if (config_read(&inv->mem, str_of(source.snapshot.config), &config, &err) < 0)
        return cli_error(inv, &err);
    for (unsigned i = 0; !status && i < count; i++)
        status = fork_one(inv, &call, &source, &config, i + 1, list);
    if (source.taken && forget_source(&call, &source, &err) < 0 && !status)
        status = cli_error(inv, &err);
    if (!inv->json || status)
        return status;
    json_put_text(&inv->mem, result, "snapshot_id", source.snapshot.id);
    json_put(result, "sandboxes", list);
    return cli_json(inv, result);
}
