/* SPDX-License-Identifier: Apache-2.0 */

/* brig sandbox port: a port inside a kept sandbox, on a loopback port of this machine. */

#include "surface/cli/sandbox.h"

#include "lib/json/json.h"
#include "model/run.h"

static int on_open(void *context, const char *address, unsigned port, struct err *err)
{
    struct invocation *inv = context;
    struct json *object = json_object(&inv->mem);

    json_put_text(&inv->mem, object, "address", address);
    json_put_int(&inv->mem, object, "port", port);
    if (!inv->json) {
        (void)fprintf(inv->out, "%u\n", port);
    } else {
        AUTO_BUF struct buf line = BUF(4096);

        if (json_compact(object, &line, err) < 0)
            return -1;
        (void)fprintf(inv->out, "%s\n", buf_text(&line));
    }
    return fflush(inv->out) == 0 ? 0 : err_os(err, "writing to standard output");
}

static struct json *closing_json(struct arena *mem, const struct run *run)
{
    struct json *object = json_object(mem);
    const struct moved *moved = &run->outcome.moved;

    json_put_text(mem, object, "sandbox_id", run->sandbox_id);
    json_put_int(mem, object, "connections", (int64_t)moved->entries);
    json_put_int(mem, object, "refused", (int64_t)moved->skipped);
    json_put_int(mem, object, "bytes_in", (int64_t)moved->bytes);
    json_put_int(mem, object, "bytes_out", (int64_t)moved->bytes_out);
    json_put_text(mem, object, "receipt_id", run->closing.id);
    return object;
}

static int report(struct invocation *inv, const struct run *run)
{
    const struct moved *moved = &run->outcome.moved;
    struct err err;

    if (run->verdict.kind != VERDICT_ALLOW)
        return sandbox_refused(inv, run);
    if (run->outcome.reason != REASON_NONE) {
        (void)err_set(&err, run->outcome.failure_code, "%.480s", run->outcome.failure);
        return cli_error_with(inv, &err, run->outcome.reason, NULL);
    }
    if (inv->json)
        return cli_json(inv, closing_json(&inv->mem, run));
    (void)fprintf(inv->err, "%s: port %u, %llu connections, %llu refused; receipt %s\n",
                  inv->program, run->action.port, (unsigned long long)moved->entries,
                  (unsigned long long)moved->skipped, run->closing.id);
    return 0;
}

int run_sandbox_port(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    const char *listen = option_text(inv, "--listen");
    struct port_call port_call = {
        .listen = listen ? listen : "127.0.0.1:0",
        .wait_ms = option_number(inv, "--timeout"),
        .on_open = on_open,
        .context = inv,
    };
    uint64_t port = 0;
    struct run run;
    struct err err;
    int status;

    if (!str_u64(str_of(inv->operands.v[1]), &port) || port == 0 || port > UINT16_MAX) {
        (void)err_set(&err, ERR_INVALID, "\"%.40s\" is not a port from 1 to 65535",
                      inv->operands.v[1]);
        return cli_error(inv, &err);
    }
    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    call.request.kind = ACTION_PORT;
    call.request.port = (uint16_t)port;
    run_init(&run);
    if (sandbox_find(inv, call.govern, inv->operands.v[0], &call.request.sandbox, &err) < 0 ||
        govern_port(call.govern, &call.request, &port_call, &run, &err) < 0)
        status = cli_error(inv, &err);
    else
        status = report(inv, &run);
    run_done(&run);
    return status;
}
