/* SPDX-License-Identifier: Apache-2.0 */

/* brig sandbox create, list, show, pause, resume, extend, destroy: sandboxes that stay. */

#include "surface/cli/sandbox.h"

#include "lib/base/text.h"
#include "lib/json/json.h"
#include "model/run.h"
#include "surface/view/view.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

/* ---- finding one ---- */

int sandbox_find(struct invocation *inv, struct govern *govern, const char *wanted,
                 const char **out, struct err *err)
{
    return sandbox_find_in(inv, govern_execute(govern), wanted, out, err);
}

int sandbox_find_in(struct invocation *inv, struct execute *execute, const char *wanted,
                    const char **out, struct err *err)
{
    if (govern_find(execute, &inv->mem, wanted, out, err) == 0)
        return 0;
    return err->code == ERR_NOT_FOUND ? sandbox_unknown(inv, wanted, err) : -1;
}

int sandbox_unknown(const struct invocation *inv, const char *wanted, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND,
                   "there is no sandbox \"%.40s\"; \"%s sandbox list\" shows those there are",
                   wanted, inv->program);
}

/* ---- showing ---- */

int sandbox_look(struct invocation *inv, struct govern *govern, const char *id,
                 struct config *config, struct kept_state *state, struct err *err)
{
    const char *text = NULL;

    if (execute_kept_config(govern_execute(govern), &inv->mem, id, &text, err) < 0 ||
        config_read(&inv->mem, str_of(text), config, err) < 0)
        return -1;
    if (execute_kept_state(govern_execute(govern), id, state, err) < 0)
        return -1;
    state->network = govern_network(govern_execute(govern), config);
    return 0;
}

int sandbox_add_json(struct invocation *inv, struct govern *govern, const char *id,
                     struct json *list, struct err *err)
{
    struct config config;
    struct kept_state state;

    if (sandbox_look(inv, govern, id, &config, &state, err) < 0)
        return -1;
    json_push(list, view_sandbox(&inv->mem, &config, &state));
    return 0;
}

int sandbox_print(struct invocation *inv, struct govern *govern, const char *id, struct err *err)
{
    struct config config;
    struct kept_state state;

    if (sandbox_look(inv, govern, id, &config, &state, err) < 0)
        return -1;
    if (inv->json)
        return cli_json(inv, view_sandbox(&inv->mem, &config, &state)) == 0
                   ? 0
                   : err_set(err, ERR_OS, "writing the answer");
    (void)fprintf(inv->out, "%s  %-8s %-16s expires %s, %llu processes%s\n", config.id,
                  kept_state_name(&state), config.request.name,
                  view_expiry(&inv->mem, state.left_ms), (unsigned long long)state.processes,
                  strcmp(state.network, "lost") == 0 ? ", network lost: recreate it"
                  : config.network_hash              ? ", network by its policy"
                                                     : "");
    return 0;
}

/* ---- create ---- */

static int check_labels(struct words labels, struct err *err)
{
    for (size_t i = 0; i < labels.n; i++)
        if (!strchr(labels.v[i], '=') || labels.v[i][0] == '=' ||
            strlen(labels.v[i]) > LABEL_BYTES_MAX || !str_is_utf8(str_of(labels.v[i])))
            return err_set(err, ERR_INVALID, "--label \"%.100s\": write K=V", labels.v[i]);
    return 0;
}

int sandbox_check_name(const char *name, struct err *err)
{
    if (name && (strlen(name) > LABEL_BYTES_MAX || !str_is_utf8(str_of(name))))
        return err_set(err, ERR_INVALID, "--name: at most %d bytes of UTF-8", LABEL_BYTES_MAX);
    return 0;
}

int sandbox_fill_create(struct invocation *inv, struct request *request, struct err *err)
{
    uint64_t ttl_ms = option_number(inv, "--ttl");
    uint64_t max_ms = option_number(inv, "--lifetime");

    request->name = option_text(inv, "--name") ? option_text(inv, "--name") : "";
    request->labels = option_words(inv, "--label");
    request->lifetime = (struct lifetime){
        .ttl_ms = ttl_ms ? ttl_ms : SANDBOX_TTL_MS,
        .idle_ms = option_number(inv, "--idle"),
        .max_ms = max_ms ? max_ms : SANDBOX_LIFETIME_MS,
    };
    return sandbox_check_name(request->name, err) < 0 ? -1 : check_labels(request->labels, err);
}

int sandbox_fill_new(struct invocation *inv, struct sandbox_call *call, struct err *err)
{
    struct request *request = &call->request;

    request->scope = option_text(inv, "--scope") ? option_text(inv, "--scope") : "session";
    request->policy_text = call->policy_text;
    request->profile_text = call->profile_text;
    return sandbox_fill_create(inv, request, err);
}

/* ---- reuse ---- */

bool sandbox_has_labels(const struct words *wanted, const struct words *labels)
{
    for (size_t i = 0; i < wanted->n; i++) {
        bool found = false;

        for (size_t j = 0; j < labels->n; j++)
            found |= strcmp(wanted->v[i], labels->v[j]) == 0;
        if (!found)
            return false;
    }
    return true;
}

struct reuse {
    struct invocation *inv;
    struct execute *execute;
    const struct config *wanted;
    const char *found;
    const char *other; /* of the same name, but not the same */
};

static bool is_same(const struct config *a, const struct config *b)
{
    const struct request *x = &a->request, *y = &b->request;

    return strcmp(a->config_hash, b->config_hash) == 0 && strcmp(x->principal, y->principal) == 0 &&
           strcmp(x->scope ? x->scope : "session", y->scope ? y->scope : "session") == 0 &&
           strcmp(x->name, y->name) == 0 && x->labels.n == y->labels.n &&
           sandbox_has_labels(&x->labels, &y->labels) && sandbox_has_labels(&y->labels, &x->labels);
}

static int on_reusable(void *context, const char *id, struct err *err)
{
    struct reuse *reuse = context;
    struct config config;
    const char *text = NULL;
    struct err gone; /* it may end while we look */

    (void)err;
    if (execute_kept_config(reuse->execute, &reuse->inv->mem, id, &text, &gone) < 0 ||
        config_read(&reuse->inv->mem, str_of(text), &config, &gone) < 0)
        return 0;
    if (is_same(&config, reuse->wanted))
        reuse->found = config.id;
    else if (*config.request.name && strcmp(config.request.name, reuse->wanted->request.name) == 0)
        reuse->other = config.id;
    return 0;
}

/* The one that would be made, if it is there already; NULL: it is not. Two that ask at the same
 * time must not both make one, so whoever asks holds the lock until it is done. */
static int find_reusable(struct invocation *inv, struct sandbox_call *call, int *lock_fd,
                         const char **out, struct err *err)
{
    struct reuse reuse = {.inv = inv, .execute = govern_execute(call->govern)};
    const char *state_dir = NULL;
    struct config config;
    struct run run;
    int failed;

    if (cli_state(inv, &state_dir, err) < 0)
        return -1;
    *lock_fd = open(arena_printf(&inv->mem, "%s/reuse.lock", state_dir),
                    O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (*lock_fd < 0 || flock(*lock_fd, LOCK_EX) < 0)
        return err_os(err, "locking %s/reuse.lock", state_dir);
    run_init(&run);
    failed = govern_rehearse(call->govern, &call->request, &run, &config, err);
    reuse.wanted = &config;
    if (!failed && config.id)
        failed = execute_kept_each(reuse.execute, on_reusable, &reuse, err);
    execute_forget(&run);
    run_done(&run);
    if (failed)
        return -1;
    if (!reuse.found && reuse.other)
        return err_set(err, ERR_CONFLICT,
                       "sandbox %s is called \"%.40s\" and was made differently; \"%s sandbox "
                       "recreate %s\" makes it again from what it was made of, or destroy it first",
                       reuse.other, call->request.name, inv->program, reuse.other);
    *out = reuse.found;
    return 0;
}

int run_sandbox_create(struct invocation *inv)
{
    AUTO_FD int lock_fd = -1;
    const char *there = NULL;
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct run run;
    struct err err;
    int status;

    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    run_init(&run);
    if (sandbox_fill_new(inv, &call, &err) < 0 ||
        (option_flag(inv, "--reuse") && find_reusable(inv, &call, &lock_fd, &there, &err) < 0))
        status = cli_error(inv, &err);
    else if (there)
        status = sandbox_print(inv, call.govern, there, &err) < 0 ? cli_error(inv, &err) : 0;
    else if (govern_create(call.govern, &call.request, &run, &err) < 0)
        status = cli_error(inv, &err);
    else if (run.verdict.kind != VERDICT_ALLOW || run.outcome.reason == REASON_SANDBOX_FAILED)
        status = sandbox_refused(inv, &run);
    else {
        sandbox_warn_mirror(inv, &run);
        status =
            sandbox_print(inv, call.govern, run.sandbox_id, &err) < 0 ? cli_error(inv, &err) : 0;
    }
    run_done(&run);
    return status;
}

/* ---- list and show ---- */

struct listing {
    struct invocation *inv;
    struct govern *govern;
    struct words labels;
    struct json *list;
    size_t n;
};

static int on_listed(void *context, const char *id, struct err *err)
{
    struct listing *listing = context;
    struct config config;
    struct kept_state state;
    struct err gone; /* it may end while we look; then it is not there */

    if (sandbox_look(listing->inv, listing->govern, id, &config, &state, &gone) < 0 ||
        !sandbox_has_labels(&listing->labels, &config.request.labels))
        return 0;
    listing->n++;
    if (!listing->inv->json)
        return sandbox_print(listing->inv, listing->govern, id, err);
    json_push(listing->list, view_sandbox(&listing->inv->mem, &config, &state));
    return 0;
}

int run_sandbox_list(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct listing listing = {.inv = inv};
    struct json *result = json_object(&inv->mem);
    struct err err;
    int status;

    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    listing.govern = call.govern;
    listing.labels = option_words(inv, "--label");
    listing.list = json_array(&inv->mem);
    if (execute_kept_each(govern_execute(call.govern), on_listed, &listing, &err) < 0)
        return cli_error(inv, &err);
    if (listing.n == 0)
        cli_none(inv, "no sandboxes");
    json_put(result, "sandboxes", listing.list);
    return inv->json ? cli_json(inv, result) : 0;
}

int run_sandbox_show(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    const char *id = NULL;
    struct err err;
    int status;

    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    if (sandbox_find(inv, call.govern, inv->operands.v[0], &id, &err) < 0)
        return cli_error(inv, &err);
    inv->json = true; /* one sandbox in full is an object */
    return sandbox_print(inv, call.govern, id, &err) < 0 ? cli_error(inv, &err) : 0;
}

/* ---- orders ---- */

static int change_one(struct invocation *inv, struct sandbox_call *call, const char *wanted)
{
    struct run run;
    struct err err;
    int status = 0;

    run_init(&run);
    if (sandbox_find(inv, call->govern, wanted, &call->request.sandbox, &err) < 0 ||
        govern_change(call->govern, &call->request, &run, &err) < 0) {
        status = cli_error(inv, &err);
    } else {
        if (run.outcome.reason != REASON_NONE)
            status = cli_status(inv, ERR_UNAVAILABLE);
        sandbox_warn_protected(inv, &run);
        if (inv->json && cli_json(inv, view_change(&inv->mem, &run)) != 0)
            status = cli_status(inv, ERR_OS);
        else if (!inv->json)
            sandbox_change_line(inv, action_name(run.action.kind), run.sandbox_id,
                                run.outcome.failure, run.closing.id);
    }
    run_done(&run);
    return status;
}

static int change(struct invocation *inv, enum action_kind kind)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    int status;

    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    call.request.kind = kind;
    if (kind == ACTION_EXTEND) {
        uint64_t ttl_ms = option_number(inv, "--ttl");

        call.request.extend_ms = ttl_ms ? ttl_ms : SANDBOX_TTL_MS;
    }
    status = 0;
    for (size_t i = 0; i < inv->operands.n; i++) {
        int each = change_one(inv, &call, inv->operands.v[i]);

        status = each ? each : status;
    }
    return status;
}

int run_sandbox_pause(struct invocation *inv)
{
    return change(inv, ACTION_PAUSE);
}

int run_sandbox_resume(struct invocation *inv)
{
    return change(inv, ACTION_RESUME);
}

int run_sandbox_extend(struct invocation *inv)
{
    return change(inv, ACTION_EXTEND);
}

int run_sandbox_destroy(struct invocation *inv)
{
    return change(inv, ACTION_DESTROY);
}
