/* SPDX-License-Identifier: Apache-2.0 */

/* Snapshots of sandboxes that stay, and sandboxes put back to one.
 *
 *   1. Admitted, and the intent made durable.
 *   2. The sandbox is planned again as it is: a machine that would make another one today can
 *      still copy it, but not build it again.
 *   3. Nobody lives in it: it is stopped, its layers become the snapshot, the record makes it
 *      one, and the sandbox is built again over it, parked, compared and released like any other.
 *      Between the stop and the release it ends with us; what was moved by then stays as the
 *      snapshot.
 *   4. Somebody does: it is held still while its layers are copied.
 *   5. The outcome. */

#include "flow/govern-parts.h"

#include "flow/equip/equip.h"
#include "flow/intercept/intercept.h"
#include "lib/base/clock.h"
#include "lib/base/limits.h"
#include "lib/snapshot/snapshot.h"

#include <string.h>

/* One sandbox and the snapshot that is made of it or that it goes back to. */
struct work {
    struct govern *govern;
    struct run *run;
    struct snapshot_store *store;
    const char *text; /* of its config */
    struct config config;
    struct snapshot snapshot;
    struct kept_left left;
    bool ended; /* it was stopped and could not be built again */
};

static int open_work(struct work *work, const struct request *request, struct err *err)
{
    struct govern *govern = work->govern;
    struct arena *mem = &work->run->mem;

    if (snapshot_store_open(govern->state_dir, &work->store, err) < 0 ||
        govern_turn_alone(govern, request->sandbox, err) < 0 ||
        execute_kept_config(govern->execute, mem, request->sandbox, &work->text, err) < 0 ||
        config_read(mem, str_of(work->text), &work->config, err) < 0)
        return -1;
    return 0;
}

/* ---- built again ---- */

/* The sandbox as it was made, over another snapshot. */
static int plan_again(struct work *work, const char *base, struct run *again, struct err *err)
{
    struct request request = work->config.request;

    request.kind = ACTION_CREATE;
    request.argv = govern_no_command;
    request.base = base;
    request.lifetime.ttl_ms = work->left.ttl_ms == UINT64_MAX ? 0 : work->left.ttl_ms;
    request.lifetime.max_ms = work->left.max_ms == UINT64_MAX ? 0 : work->left.max_ms;
    if (admit_run(&request, again, err) < 0)
        return -1;
    (void)strcpy(again->sandbox_id, work->run->sandbox_id);
    govern_judge(work->govern, again);
    govern_check_drift(again, &work->config);
    return 0;
}

static int refused(const struct run *again, struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE, "%s: %.300s", reason_code(again->verdict.reason),
                   again->verdict.text ? again->verdict.text : reason_text(again->verdict.reason));
}

/* What it stands on is known to whoever finds it before anything can run in it. */
static int rewrite_config(struct work *work, const char *base, struct err *err)
{
    AUTO_BUF struct buf config = BUF(JSON_TEXT_MAX);

    if (config_rebase(str_of(work->text), base, &config, err) < 0)
        return -1;
    return execute_kept_rewrite(work->govern->execute, work->run->sandbox_id, buf_text(&config),
                                err);
}

static int pause_again(struct work *work, struct err *err)
{
    struct run pause;
    int failed;

    if (!work->left.paused)
        return 0;
    run_init(&pause);
    pause.action.kind = ACTION_PAUSE;
    pause.action.sandbox = work->run->sandbox_id;
    failed = execute_change(work->govern->execute, &pause, err);
    run_done(&pause);
    return failed;
}

static int build_planned(struct work *work, const char *base, struct run *again, struct err *err)
{
    const struct streams none = {.in_fd = -1, .out_fd = -1, .err_fd = -1};
    struct execute *execute = work->govern->execute;

    if (!is_allowed(again))
        return refused(again, err);
    if (intercept_begin(work->govern->intercept, again, err) < 0 ||
        execute_begin_again(execute, again, err) < 0)
        return -1;
    govern_compare(work->govern, again);
    if (!is_allowed(again))
        return refused(again, err);
    if (rewrite_config(work, base, err) < 0)
        return -1;
    return execute_release(execute, again, &none, err);
}

static int build_again(struct work *work, const char *base, struct err *err)
{
    struct run again;
    int failed;

    run_init(&again);
    failed = plan_again(work, base, &again, err);
    if (!failed)
        failed = build_planned(work, base, &again, err);
    if (failed)
        execute_drop(work->govern->execute, &again);
    intercept_end(work->govern->intercept, &again, !failed);
    run_done(&again);
    work->ended |= failed < 0;
    if (failed < 0)
        return err_in(err, "building the sandbox again");
    return pause_again(work, err);
}

/* ---- making one ---- */

static void close_work(struct work *work)
{
    execute_turn_end(work->govern->execute);
    snapshot_store_free(work->store);
}

static void describe(struct work *work, const struct request *request, bool live)
{
    char now[TIMESTAMP_BYTES];

    clock_timestamp(now);
    work->snapshot = (struct snapshot){
        .id = work->run->id,
        .name = request->name ? request->name : "",
        .sandbox_id = work->run->sandbox_id,
        .created_at = arena_text(&work->run->mem, str_of(now)),
        .principal = request->principal,
        .tenant = request->tenant,
        .image = work->config.request.image,
        .image_digest = work->config.image_digest,
        .config = work->text,
        .live = live,
        .digest = "",
        .lock_fd = -1,
    };
}

static int begin_snapshot(struct work *work, const struct request *request, bool live,
                          struct err *err)
{
    struct arena *mem = &work->run->mem;
    struct snapshot below;

    describe(work, request, live);
    if (work->config.base) {
        if (snapshot_get(work->store, mem, work->config.base, &below, err) < 0)
            return -1;
        work->snapshot.stack = below.stack;
    }
    if (execute_layer_names(work->govern->execute, mem, work->run->sandbox_id,
                            &work->snapshot.names, err) < 0)
        return -1;
    return snapshot_begin(work->store, mem, &work->snapshot, err);
}

static int copy(struct work *work, const struct request *request, struct err *err)
{
    if (begin_snapshot(work, request, true, err) < 0)
        return -1;
    if (execute_copy_layers(work->govern->execute, &work->run->mem, work->run->sandbox_id,
                            work->store, &work->snapshot, err) < 0 ||
        snapshot_commit(work->store, &work->snapshot, err) < 0) {
        snapshot_drop(work->store, &work->snapshot);
        return -1;
    }
    return 0;
}

/* From here on the sandbox's layers are the snapshot's. */
static int take_layers(struct work *work, struct err *err)
{
    if (execute_move_layers(work->govern->execute, work->store, &work->snapshot, err) < 0 ||
        snapshot_commit(work->store, &work->snapshot, err) < 0) {
        snapshot_drop(work->store, &work->snapshot);
        work->ended = true;
        return -1;
    }
    return 0;
}

/* 1: somebody lives in it, or it could not be built again: it must be copied. */
static int stack_planned(struct work *work, const struct request *request, struct err *err)
{
    if (begin_snapshot(work, request, false, err) < 0)
        return -1;
    if (execute_stop(work->govern->execute, work->run->sandbox_id, false, &work->left, err) < 0) {
        snapshot_drop(work->store, &work->snapshot);
        return err->code == ERR_CONFLICT ? 1 : -1;
    }
    return take_layers(work, err) < 0 ? -1 : build_again(work, work->snapshot.id, err);
}

static int stack(struct work *work, const struct request *request, struct err *err)
{
    struct run as_it_is; /* holds image and snapshots until the sandbox stands again */
    int failed;

    run_init(&as_it_is);
    failed = plan_again(work, work->config.base, &as_it_is, err);
    if (!failed)
        failed = is_allowed(&as_it_is) ? stack_planned(work, request, err) : 1;
    execute_forget(&as_it_is);
    run_done(&as_it_is);
    return failed;
}

static int take_snapshot(struct work *work, const struct request *request, struct err *err)
{
    int failed = stack(work, request, err);

    if (failed != 1)
        return failed;
    execute_turn_end(work->govern->execute); /* a copy is in nobody's way */
    return copy(work, request, err);
}

/* ---- the frame of both ---- */

static int intend(struct work *work, const struct request *request, struct err *err)
{
    if (admit_change(request, work->run, err) < 0)
        return -1;
    return govern_intend(work->govern, work->run, err);
}

/* A sandbox that is gone gets a receipt of its own. */
static int conclude(struct work *work, const struct err *failure, uint64_t began_us,
                    struct err *err)
{
    struct dead dead = {.id = work->run->sandbox_id, .kept = true, .reason = REASON_SANDBOX_FAILED};
    struct outcome *outcome = &work->run->outcome;

    outcome->started = outcome->ended = true;
    outcome->duration_us = clock_us() - began_us;
    if (work->snapshot.id) {
        outcome->snapshot.id = work->snapshot.id;
        outcome->snapshot.live = work->snapshot.live;
        outcome->snapshot.held_us = work->snapshot.held_us;
        outcome->moved.bytes = work->snapshot.bytes;
        outcome->moved.entries = work->snapshot.entries;
    }
    if (failure) {
        outcome->reason = REASON_SNAPSHOT_FAILED;
        outcome->failure = arena_text(&work->run->mem, str_of(failure->text));
        outcome->failure_code = failure->code;
    }
    if (govern_conclude(work->govern, work->run, err) < 0)
        return -1;
    execute_unclaim(work->govern->execute);
    return work->ended ? govern_record_end(work->govern, &dead, err) : 0;
}

int govern_snapshot(struct govern *govern, const struct request *request, struct run *run,
                    struct err *err)
{
    struct work work = {
        .govern = govern, .run = run, .left = {UINT64_MAX, UINT64_MAX, false}
    };
    uint64_t began_us = clock_us();
    struct err failure;
    int failed = open_work(&work, request, err);

    if (!failed)
        failed = intend(&work, request, err);
    if (!failed) {
        bool taken = take_snapshot(&work, request, &failure) == 0;

        failed = conclude(&work, taken ? NULL : &failure, began_us, err);
        if (!failed && taken)
            snapshot_tend_later(work.store);
    }
    close_work(&work);
    return failed;
}

/* ---- going back to one ---- */

static int find_base(struct work *work, const struct request *request, struct err *err)
{
    if (snapshot_find(work->store, &work->run->mem, request->base, &work->snapshot, err) < 0)
        return -1;
    if (strcmp(work->snapshot.image_digest, work->config.image_digest) != 0)
        return err_set(err, ERR_CONFLICT,
                       "snapshot %s was taken over image %.100s, the sandbox stands on %.100s; "
                       "\"brig sandbox fork %s\" makes one that fits",
                       work->snapshot.id, work->snapshot.image, work->config.request.image,
                       work->snapshot.id);
    return 0;
}

static int go_back(struct work *work, struct err *err)
{
    struct execute *execute = work->govern->execute;

    if (execute_stop(execute, work->run->sandbox_id, true, &work->left, err) < 0)
        return -1;
    if (execute_move_layers(execute, work->store, NULL, err) < 0) {
        work->ended = true;
        return -1;
    }
    return build_again(work, work->snapshot.id, err);
}

/* Nothing is ended that could not be built again. */
static int restore_planned(struct work *work, const struct request *request, struct err *err)
{
    uint64_t began_us = clock_us();
    struct run planned;
    struct err failure;
    int failed;

    run_init(&planned);
    failed = intend(work, request, err);
    if (!failed) {
        failed = plan_again(work, work->snapshot.id, &planned, &failure);
        if (!failed)
            failed = is_allowed(&planned) ? go_back(work, &failure) : refused(&planned, &failure);
        failed = conclude(work, failed ? &failure : NULL, began_us, err);
    }
    execute_forget(&planned);
    run_done(&planned);
    return failed;
}

int govern_restore(struct govern *govern, const struct request *request, struct run *run,
                   struct err *err)
{
    struct work work = {
        .govern = govern, .run = run, .left = {UINT64_MAX, UINT64_MAX, false}
    };
    struct request own = *request;
    bool filtered = false;
    int failed = govern_own_base(govern, request, &run->mem, &own.base, &filtered, err);

    if (!failed)
        failed = open_work(&work, &own, err);
    if (!failed)
        failed = find_base(&work, &own, err);
    if (!failed)
        failed = restore_planned(&work, &own, err);
    close_work(&work);
    return failed || !filtered ? failed : govern_forget_base(govern, &own, err);
}

/* ---- removing one ---- */

int govern_snapshot_remove(struct govern *govern, const struct request *request, struct run *run,
                           bool *freed, struct err *err)
{
    struct work work = {.govern = govern, .run = run};
    uint64_t began_us = clock_us();
    struct err failure;
    bool removed = false;
    int failed = snapshot_store_open(govern->state_dir, &work.store, err);

    if (!failed)
        failed = snapshot_find(work.store, &run->mem, request->base, &work.snapshot, err);
    if (!failed)
        failed = intend(&work, request, err);
    if (!failed) {
        removed = snapshot_remove(work.store, &work.snapshot, freed, &failure) == 0;
        failed = conclude(&work, removed ? NULL : &failure, began_us, err);
    }
    snapshot_store_free(work.store);
    return failed;
}

int govern_sweep_snapshots(struct govern *govern, struct err *err)
{
    AUTO(snapshot_store) struct snapshot_store *store = NULL;

    if (!snapshot_store_exists(govern->state_dir))
        return 0;
    if (snapshot_store_open(govern->state_dir, &store, err) < 0)
        return -1;
    return snapshot_sweep(store, err);
}
