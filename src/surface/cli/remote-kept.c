/* SPDX-License-Identifier: Apache-2.0 */

/* brig sandbox create, list, show, recreate, pause, resume, extend, destroy, by a daemon. */

#include "surface/cli/remote.h"

#include <string.h>

#include "lib/base/limits.h"
#include "model/run.h"
#include "surface/cli/sandbox.h"

static void print_line(struct invocation *inv, const struct json *doc)
{
    (void)fprintf(inv->out, "%s  %-8s %-16s expires %s, %llu processes\n",
                  doc_text(&inv->mem, doc, "sandbox_id"), doc_text(&inv->mem, doc, "state"),
                  doc_text(&inv->mem, doc, "name"), doc_text(&inv->mem, doc, "expires_at"),
                  (unsigned long long)doc_number(doc, "processes"));
}

/* ---- list and show ---- */

static bool is_wanted(struct invocation *inv, const struct json *doc)
{
    const struct json *list = json_get(doc, "labels");
    struct words wanted = option_words(inv, "--label");
    const char **labels = arena_array(&inv->mem, const char *, (list ? list->n : 0) + 1);
    size_t n = 0;
    struct str text;

    for (const struct json *item = list ? list->first : NULL; item; item = item->next)
        if (json_is_text(item, &text))
            labels[n++] = arena_text(&inv->mem, text);
    return sandbox_has_labels(&wanted, &(struct words){labels, n});
}

/* One page; *next is where the one behind it begins, or NULL. */
static int list_page(struct invocation *inv, struct remote *remote, struct json *shown,
                     const char **next, struct err *err)
{
    const char *after = *next, *target = "/v1/sandboxes";
    const struct json *doc = NULL, *list;

    if (after)
        target = arena_printf(&inv->mem, "/v1/sandboxes?after=%s", remote_escape(inv, after));
    if (remote_ask(inv, remote, HTTP_GET, target, NULL, &doc, err) < 0)
        return -1;
    list = json_get(doc, "sandboxes");
    for (const struct json *item = list ? list->first : NULL; item; item = item->next) {
        if (!is_wanted(inv, item))
            continue;
        json_push(shown, doc_without(&inv->mem, item, (const char *const[]){NULL}));
        if (!inv->json)
            print_line(inv, item);
    }
    *next = json_get(doc, "next_after") ? doc_text(&inv->mem, doc, "next_after") : NULL;
    if (*next && after && strcmp(*next, after) <= 0)
        return err_set(err, ERR_INTEGRITY, "the daemon lists the same sandboxes again");
    return 0;
}

int remote_sandbox_list(struct invocation *inv, struct remote *remote)
{
    struct json *result = json_object(&inv->mem), *shown = json_array(&inv->mem);
    const char *next = NULL;
    struct err err;

    do
        if (list_page(inv, remote, shown, &next, &err) < 0)
            return remote_failed(inv, remote, &err);
    while (next);
    if (shown->n == 0)
        cli_none(inv, "no sandboxes");
    json_put(result, "sandboxes", shown);
    return inv->json ? cli_json(inv, result) : 0;
}

int remote_sandbox_show(struct invocation *inv, struct remote *remote)
{
    const char *id = inv->operands.v[0];
    const char *target = remote_sandbox_path(inv, id, "");
    const struct json *doc = NULL;
    struct err err;

    if (!target)
        return REMOTE_NOT_DONE;
    if (remote_ask(inv, remote, HTTP_GET, target, NULL, &doc, &err) < 0) {
        if (remote->status == 404)
            (void)sandbox_unknown(inv, id, &err);
        return remote_failed(inv, remote, &err);
    }
    inv->json = true; /* one sandbox in full is an object */
    return cli_json(inv, doc);
}

/* ---- create ---- */

static struct json *create_body(struct invocation *inv, const struct sandbox_call *call)
{
    const struct request *request = &call->request;
    struct json *body = json_object(&inv->mem);

    if (*request->name)
        json_put_text(&inv->mem, body, "name", request->name);
    remote_put_pairs(&inv->mem, body, "labels", request->labels);
    json_put_text(&inv->mem, body, "scope", request->scope);
    json_put_int(&inv->mem, body, "ttl_ms", (int64_t)request->lifetime.ttl_ms);
    if (request->lifetime.idle_ms)
        json_put_int(&inv->mem, body, "idle_ms", (int64_t)request->lifetime.idle_ms);
    json_put_int(&inv->mem, body, "lifetime_ms", (int64_t)request->lifetime.max_ms);
    remote_put_sandbox(inv, call, body);
    return body;
}

/* Denied, or it could not be built: told as it is here. */
int remote_refused(struct invocation *inv, const struct remote *remote, const struct err *err)
{
    struct run run;
    int status;

    run_init(&run);
    if (strcmp(doc_text(&inv->mem, remote->details, "verdict"), verdict_name(VERDICT_ALLOW)) == 0) {
        run.verdict.kind = VERDICT_ALLOW;
        run.outcome.reason = remote->reason;
        run.outcome.failure = err->text;
    } else {
        run.verdict = (struct verdict){.reason = remote->reason, .text = err->text};
    }
    status = sandbox_refused(inv, &run);
    run_done(&run);
    return status;
}

static void warn_mirror(struct invocation *inv, const struct json *doc)
{
    const struct json *mirrored = json_get(doc, "mirrored");
    struct run run;

    if (!mirrored)
        return;
    run_init(&run);
    run.plan.mirror_source = "";
    run.outcome.moved.skipped = doc_number(mirrored, "skipped");
    run.outcome.moved.unsteady = doc_number(mirrored, "unsteady");
    run.outcome.moved.left_out = arena_text(&run.mem, doc_bytes(&run.mem, mirrored, "left_out"));
    sandbox_warn_mirror(inv, &run);
    run_done(&run);
}

int remote_sandbox_create(struct invocation *inv, struct remote *remote)
{
    static const char *const ours[] = {"receipt_id", "mirrored", NULL};
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    const struct json *doc = NULL;
    struct err err;
    int status;

    if (option_flag(inv, "--reuse"))
        return REMOTE_NOT_DONE; /* what would be made is compared with what there is, here */
    if (sandbox_call_read(inv, &call, &status) < 0)
        return status;
    if (remote->other_home && (call.request.mounts.n || call.request.workspace))
        return REMOTE_NOT_DONE;
    if (sandbox_fill_new(inv, &call, &err) < 0)
        return cli_error(inv, &err);
    if (remote_ask(inv, remote, HTTP_POST, "/v1/sandboxes", create_body(inv, &call), &doc, &err) <
        0) {
        /* Not well-formed: nothing was done, and here it is said in terms of the options. */
        remote->not_done |= remote->status == 400;
        return remote->details ? remote_refused(inv, remote, &err)
                               : remote_failed(inv, remote, &err);
    }
    warn_mirror(inv, doc);
    if (inv->json)
        return cli_json(inv, doc_without(&inv->mem, doc, ours));
    print_line(inv, doc);
    return 0;
}

/* ---- recreate ---- */

int remote_sandbox_recreate(struct invocation *inv, struct remote *remote)
{
    const char *id = inv->operands.v[0];
    const char *target = remote_sandbox_path(inv, id, "/recreate");
    const struct json *made = NULL, *doc = NULL;
    struct err err;

    if (!target || remote->other_home)
        return REMOTE_NOT_DONE;
    if (remote_ask(inv, remote, HTTP_POST, target, NULL, &made, &err) < 0) {
        remote_look_unknown(inv, remote, id, &err);
        return remote->details ? remote_refused(inv, remote, &err)
                               : remote_failed(inv, remote, &err);
    }
    if (inv->json)
        return cli_json(inv, made);
    (void)fprintf(inv->err, "%s: %s is gone, %s is made as it was\n", inv->program,
                  doc_text(&inv->mem, made, "old_sandbox_id"),
                  doc_text(&inv->mem, made, "sandbox_id"));
    target = remote_sandbox_path(inv, doc_text(&inv->mem, made, "sandbox_id"), "");
    if (remote_ask(inv, remote, HTTP_GET, target, NULL, &doc, &err) < 0)
        return remote_failed(inv, remote, &err);
    print_line(inv, doc);
    return 0;
}

/* ---- orders ---- */

struct order {
    enum http_method method;
    const char *rest;
};

static int change_one(struct invocation *inv, struct remote *remote, const struct order *order,
                      const struct json *body, const char *id)
{
    const char *target = remote_sandbox_path(inv, id, order->rest);
    const struct json *doc = NULL;
    struct run run;
    struct err err;
    int status = 0;

    if (remote_ask(inv, remote, order->method, target, body, &doc, &err) < 0) {
        doc = json_get(remote->details, "result");
        remote_look_unknown(inv, remote, id, &err);
        if (!doc)
            return remote_failed(inv, remote, &err);
        status = cli_status(inv, ERR_UNAVAILABLE);
    }
    run_init(&run);
    doc_run(doc, &run);
    sandbox_warn_protected(inv, &run);
    if (inv->json && cli_json(inv, doc) != 0)
        status = cli_status(inv, ERR_OS);
    else if (!inv->json)
        sandbox_change_line(
            inv, doc_text(&inv->mem, doc, "action"), doc_text(&inv->mem, doc, "sandbox_id"),
            status ? arena_text(&inv->mem, doc_bytes(&inv->mem, doc, "failure")) : NULL,
            run.closing.id);
    run_done(&run);
    return status;
}

static int change(struct invocation *inv, struct remote *remote, const struct order *order,
                  const struct json *body)
{
    int status = 0;

    for (size_t i = 0; i < inv->operands.n; i++)
        if (!remote_sandbox_path(inv, inv->operands.v[i], ""))
            return REMOTE_NOT_DONE; /* before anything is */
    for (size_t i = 0; i < inv->operands.n; i++) {
        int each = change_one(inv, remote, order, body, inv->operands.v[i]);

        if (each == REMOTE_NOT_DONE)
            return each;
        status = each ? each : status;
        remote->has_done = true;
    }
    return status;
}

int remote_sandbox_pause(struct invocation *inv, struct remote *remote)
{
    return change(inv, remote, &(struct order){HTTP_POST, "/pause"}, NULL);
}

int remote_sandbox_resume(struct invocation *inv, struct remote *remote)
{
    return change(inv, remote, &(struct order){HTTP_POST, "/resume"}, NULL);
}

int remote_sandbox_destroy(struct invocation *inv, struct remote *remote)
{
    return change(inv, remote, &(struct order){HTTP_DELETE, ""}, NULL);
}

int remote_sandbox_extend(struct invocation *inv, struct remote *remote)
{
    struct json *body = json_object(&inv->mem);
    uint64_t ttl_ms = option_number(inv, "--ttl");

    if (ttl_ms)
        json_put_int(&inv->mem, body, "ttl_ms", (int64_t)ttl_ms);
    return change(inv, remote, &(struct order){HTTP_POST, "/extend"}, body);
}
