/* SPDX-License-Identifier: Apache-2.0 */

/* brig pool: sandboxes built ahead. Filling happens in the process that is asked to; when one is
 * taken, a process of its own fills up behind it. */

#include "surface/cli/sandbox.h"

#include "flow/decide/decide.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "model/run.h"
#include "surface/view/view.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>

extern char **environ;

/* ---- behind a command that took one ---- */

/* In a session of its own, with nothing of ours: it goes on when we have ended. */
void pool_refill_behind(const struct sandbox_call *call)
{
    char name[] = "brig", pool[] = "pool", refill[] = "refill";
    char *argv[] = {name, pool, refill, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    pid_t pid;

    if (!call->govern || !govern_wants_refill(call->govern))
        return;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setsigdefault(&attr, &all);
    for (int fd = 0; fd <= 2; fd++)
        (void)posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
    (void)posix_spawn_file_actions_addclosefrom_np(&files, 3);
    /* Without it the pool is filled up by the next command that finds it short. */
    (void)posix_spawn(&pid, "/proc/self/exe", &files, &attr, argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attr);
}

/* ---- telling ---- */

static struct json *report_json(struct arena *mem, const struct pool_report *report)
{
    struct json *object = json_object(mem);

    json_put_text(mem, object, "pool", report->key);
    json_put_int(mem, object, "size", (int64_t)report->size);
    json_put_int(mem, object, "ready", (int64_t)report->ready);
    json_put_int(mem, object, "made", (int64_t)report->made);
    json_put_int(mem, object, "ended", (int64_t)report->ended);
    return object;
}

static int print_report(struct invocation *inv, const struct run *run,
                        const struct pool_report *report)
{
    bool failed =
        run && (run->verdict.kind != VERDICT_ALLOW || run->outcome.reason == REASON_SANDBOX_FAILED);

    if (failed)
        return sandbox_refused(inv, run);
    if (inv->json)
        return cli_json(inv, report_json(&inv->mem, report));
    (void)fprintf(inv->out, "%s  %zu of %zu ready, %zu made, %zu ended\n", report->key,
                  report->ready, report->size, report->made, report->ended);
    return 0;
}

/* ---- fill ---- */

int run_pool_fill(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    uint64_t ttl_ms = option_number(inv, "--ttl");
    struct pool_report report;
    struct run run;
    struct err err;
    int status;

    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    call.request.name = "";
    call.request.scope = "session";
    call.request.policy_text = call.policy_text;
    call.request.profile_text = call.profile_text;
    call.request.lifetime = (struct lifetime){.ttl_ms = ttl_ms ? ttl_ms : SANDBOX_TTL_MS};
    run_init(&run);
    if (govern_pool_fill(call.govern, &call.request, (size_t)option_number(inv, "--size"), &run,
                         &report, &err) < 0)
        status = cli_error(inv, &err);
    else
        status = print_report(inv, &run, &report);
    run_done(&run);
    return status;
}

/* ---- refill ---- */

/* Under the policy and the profile the pool was asked for with. */
static int open_for(struct invocation *inv, const char *state_dir, const struct request *request,
                    struct sandbox_call *call, struct err *err)
{
    struct govern_config config = {.state_dir = state_dir, .profile_text = request->profile_text};
    struct mark where;

    (void)inv;
    if (request->policy_text
            ? policy_parse(str_of(request->policy_text), &call->policy, &where, err) < 0
            : policy_builtin(&call->policy, err) < 0)
        return -1;
    config.policy = call->policy;
    return govern_open(&config, &call->govern, err);
}

static int refill_one(struct invocation *inv, const char *state_dir, struct execute *execute,
                      const char *key, struct json *list, struct err *err)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct pool_report report;
    struct request request;
    struct run run;
    size_t size = 0;
    int failed;

    if (govern_pool_request(execute, &inv->mem, key, &request, &size, err) < 0)
        return err->code == ERR_NOT_FOUND ? 0 : -1; /* drained since, or only leftovers */
    if (open_for(inv, state_dir, &request, &call, err) < 0)
        return -1;
    run_init(&run);
    failed = govern_pool_refill(call.govern, key, &run, &report, err);
    if (failed && err->code == ERR_CONFLICT)
        failed = 0; /* whoever waits for their turn does what we would */
    else if (!failed && inv->json)
        json_push(list, report_json(&inv->mem, &report));
    else if (!failed)
        (void)print_report(inv, NULL, &report);
    run_done(&run);
    return failed;
}

int run_pool_refill(struct invocation *inv)
{
    AUTO(execute) struct execute *execute = NULL;
    struct json *list = json_array(&inv->mem);
    struct json *result = json_object(&inv->mem);
    const char *state_dir = NULL;
    struct words keys = {0};
    struct err err;

    if (cli_state(inv, &state_dir, &err) < 0 || execute_open(state_dir, &execute, &err) < 0 ||
        execute_pool_keys(execute, &inv->mem, &keys, &err) < 0)
        return cli_error(inv, &err);
    for (size_t i = 0; i < keys.n; i++)
        if (refill_one(inv, state_dir, execute, keys.v[i], list, &err) < 0)
            return cli_error(inv, &err);
    json_put(result, "pools", list);
    return inv->json ? cli_json(inv, result) : 0;
}

/* ---- list ---- */

struct listing {
    struct invocation *inv;
    struct execute *execute;
    struct json *boxes;
    size_t n;
};

static int on_box(void *context, const char *id, struct err *err)
{
    struct listing *listing = context;
    struct arena *mem = &listing->inv->mem;
    struct json *object = json_object(mem);
    struct kept_state state;
    struct err gone; /* it may end, or be taken, while we look */

    (void)err;
    if (execute_pool_state(listing->execute, id, &state, &gone) < 0)
        return 0;
    listing->n++;
    json_put_text(mem, object, "sandbox_id", id);
    json_put_text(mem, object, "expires_at", view_expiry(mem, state.left_ms));
    json_put_int(mem, object, "pid", state.pid);
    json_put_int(mem, object, "memory_bytes", (int64_t)state.memory_bytes);
    json_push(listing->boxes, object);
    return 0;
}

static int list_one(struct invocation *inv, struct execute *execute, const char *key,
                    struct json *list, struct err *err)
{
    struct listing listing = {.inv = inv, .execute = execute, .boxes = json_array(&inv->mem)};
    struct json *object = json_object(&inv->mem);
    struct request request = {.image = ""};
    size_t size = 0;

    if (execute_pool_each(execute, key, on_box, &listing, err) < 0)
        return -1;
    if (govern_pool_request(execute, &inv->mem, key, &request, &size, err) < 0 &&
        err->code != ERR_NOT_FOUND)
        return -1;
    if (!inv->json) {
        (void)fprintf(inv->out, "%s  %zu of %zu ready, image %s\n", key, listing.n, size,
                      request.image);
        return 0;
    }
    json_put_text(&inv->mem, object, "pool", key);
    json_put_int(&inv->mem, object, "size", (int64_t)size);
    json_put_text(&inv->mem, object, "image", request.image);
    json_put(object, "ready", listing.boxes);
    json_push(list, object);
    return 0;
}

int run_pool_list(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct json *list = json_array(&inv->mem);
    struct json *result = json_object(&inv->mem);
    struct words keys = {0};
    struct err err;
    int status;

    /* Opening sweeps: what has ended is told and not listed. */
    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    if (execute_pool_keys(govern_execute(call.govern), &inv->mem, &keys, &err) < 0)
        return cli_error(inv, &err);
    for (size_t i = 0; i < keys.n; i++)
        if (list_one(inv, govern_execute(call.govern), keys.v[i], list, &err) < 0)
            return cli_error(inv, &err);
    if (keys.n == 0)
        cli_none(inv, "no pools");
    json_put(result, "pools", list);
    return inv->json ? cli_json(inv, result) : 0;
}

/* ---- drain ---- */

int run_pool_drain(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct json *list = json_array(&inv->mem);
    struct json *result = json_object(&inv->mem);
    struct words keys = inv->operands;
    struct err err;
    int status;

    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    if (keys.n == 0 && execute_pool_keys(govern_execute(call.govern), &inv->mem, &keys, &err) < 0)
        return cli_error(inv, &err);
    for (size_t i = 0; i < keys.n; i++) {
        struct pool_report report;

        if (govern_pool_drain(call.govern, keys.v[i], &report, &err) < 0)
            return cli_error(inv, &err);
        json_push(list, report_json(&inv->mem, &report));
        if (!inv->json)
            (void)print_report(inv, NULL, &report);
    }
    json_put(result, "pools", list);
    return inv->json ? cli_json(inv, result) : 0;
}
