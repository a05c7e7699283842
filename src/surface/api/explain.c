/* SPDX-License-Identifier: Apache-2.0 */

/* What a kept sandbox was made of, told and made again; and a sandbox built to be looked at. */

#include "surface/api/call.h"
#include "surface/api/tables.h"

#include <string.h>

#include "model/run.h"
#include "surface/api/sandbox-body.h"
#include "surface/view/view.h"

struct looked {
    const char *id;
    struct config config;
    struct kept_state state;
    struct view_explanation explanation;
};

/* Under the rules it was made with: the sandbox, and what would be made today. */
static int look(struct call *call, struct lent *lent, struct run *today, struct looked *out,
                struct err *err)
{
    const char *made = NULL;
    struct config now;

    if (call_sandbox(call, lent, &out->id, &made, err) < 0)
        return -1;
    if (config_read(&call->mem, str_of(made), &out->config, err) < 0 ||
        execute_kept_state(govern_execute(lent->govern), out->id, &out->state, err) < 0 ||
        govern_rehearse(lent->govern, &out->config.request, today, &now, err) < 0) {
        call_release(call, lent);
        return -1;
    }
    execute_forget(today);
    out->state.network = govern_network(govern_execute(lent->govern), &out->config);
    out->explanation = (struct view_explanation){
        .config = &out->config,
        .state = &out->state,
        .run = today,
        .drift = !now.id || strcmp(now.preimage_hash, out->config.preimage_hash) != 0,
    };
    return 0;
}

static int explain(struct call *call, const void *body, const void *query, struct err *err)
{
    struct looked looked;
    struct lent lent;
    struct run today;
    int failed;

    (void)body;
    (void)query;
    run_init(&today);
    failed = look(call, &lent, &today, &looked, err);
    if (!failed) {
        failed = call_answer(call, 200, view_explain(&call->mem, &looked.explanation), err);
        call_release(call, &lent);
    }
    run_done(&today);
    return failed;
}

/* ---- made again ---- */

static int destroy(struct call *call, struct lent *lent, const char *id, struct err *err)
{
    struct request request = call_request(call, ACTION_DESTROY);
    struct run run;
    int failed;

    request.sandbox = id;
    run_init(&run);
    failed =
        govern_change(lent->govern, &request, &run, err) < 0 || call_check_run(call, &run, err) < 0;
    run_done(&run);
    return failed ? -1 : 0;
}

static int make_again(struct call *call, struct lent *lent, const struct looked *looked,
                      struct err *err)
{
    struct json *answer = json_object(&call->mem);
    struct run run;
    int failed;

    run_init(&run);
    failed = govern_create(lent->govern, &looked->config.request, &run, err) < 0 ||
             call_check_run(call, &run, err) < 0;
    if (!failed) {
        json_put_text(&call->mem, answer, "old_sandbox_id", looked->id);
        json_put_text(&call->mem, answer, "sandbox_id", run.sandbox_id);
        json_put_text(&call->mem, answer, "receipt_id", run.closing.id);
        failed = call_answer(call, 201, answer, err);
    }
    run_done(&run);
    return failed ? -1 : 0;
}

/* Folders of the machine that it sees are shown anew. */
static int check_host_paths(const struct call *call, const struct config *config, struct err *err)
{
    if ((config->request.mounts.n || config->request.workspace) &&
        !(call->caller.scopes & SCOPE_HOST))
        return err_set(err, ERR_FORBIDDEN,
                       "it was made with folders of the machine: making it again needs a token "
                       "with the scope \"host\"");
    return 0;
}

static int recreate(struct call *call, const void *body, const void *query, struct err *err)
{
    struct looked looked;
    struct lent lent;
    struct run today;
    int failed;

    (void)body;
    (void)query;
    run_init(&today);
    failed = look(call, &lent, &today, &looked, err);
    if (!failed) {
        /* Nothing is ended that could not be made again. */
        failed = check_host_paths(call, &looked.config, err) < 0 ||
                         call_check_run(call, &today, err) < 0 ||
                         destroy(call, &lent, looked.id, err) < 0 ||
                         make_again(call, &lent, &looked, err) < 0
                     ? -1
                     : 0;
        call_release(call, &lent);
    }
    run_done(&today);
    return failed;
}

/* ---- built to be looked at ---- */

static int preflight(struct call *call, const void *body, const void *query, struct err *err)
{
    struct request request = call_request(call, ACTION_RUN);
    struct lent lent;
    struct run run;
    int failed;

    (void)query;
    if (sandbox_body_fill(call, body, &request, err) < 0 || call_govern(call, &lent, err) < 0)
        return -1;
    run_init(&run);
    failed = govern_preflight(lent.govern, &request, &run, err) < 0 ||
             call_answer(call, 200, view_preflight(&call->mem, &run), err) < 0;
    run_done(&run);
    call_release(call, &lent);
    return failed ? -1 : 0;
}

/* clang-format off */
const struct route routes_explain[] = {
    {.method = HTTP_GET,
     .path = "/v1/sandboxes/{id}/explain",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .name = "explainSandbox",
     .summary = "What a sandbox is, why, and what would change it.",
     .answer = "Everything that was decided about it, and whether it would be made so today.",
     .handle = explain},
    {.method = HTTP_POST,
     .path = "/v1/sandboxes/{id}/recreate",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .creates = true,
     .name = "recreateSandbox",
     .summary = "End a sandbox and make it again as it was made.",
     .answer = "The new id, the old one, and the receipt.",
     .handle = recreate},
    {.method = HTTP_POST,
     .path = "/v1/preflight",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .body = BODY_JSON,
     .fields = sandbox_fields,
     .body_size = sizeof(struct sandbox_body),
     .name = "preflight",
     .summary = "Build a sandbox, run nothing, and compare what was planned with what stands.",
     .answer = "Each check with what was expected and observed; \"pass\" says whether a run would "
               "be let in.",
     .handle = preflight},
    {0},
};
/* clang-format on */
