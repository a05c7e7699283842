/* SPDX-License-Identifier: Apache-2.0 */

/* The commands of a kept sandbox after their start: listed, followed from where one was, signalled;
 * and its processes. */

#include "surface/api/call.h"
#include "surface/api/tables.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "model/run.h"
#include "surface/api/stream.h"
#include "surface/view/view.h"

#define FOLLOW_PAUSE_MS 20
#define PIECE_MAX (1 * MIB)

/* ---- finding ---- */

struct search {
    const char *wanted;
    bool found;
};

static int on_candidate(void *context, const struct kept_exec *exec, struct err *err)
{
    struct search *search = context;

    (void)err;
    search->found |= strcmp(exec->id, search->wanted) == 0;
    return 0;
}

/* Of this sandbox, not of any: params[1] could name a command of another one. */
static int find_exec(struct call *call, struct execute *execute, const char *sandbox,
                     struct kept_exec *out, struct err *err)
{
    struct search search = {.wanted = call->params[1]};

    if (execute_exec_each(execute, sandbox, on_candidate, &search, err) < 0)
        return -1;
    if (!search.found)
        return err_set(err, ERR_NOT_FOUND, "there is no such command in this sandbox");
    return execute_exec_look(execute, call->params[1], out, err);
}

/* ---- looking ---- */

struct listing {
    struct arena *mem;
    struct json *list;
};

static int on_exec(void *context, const struct kept_exec *exec, struct err *err)
{
    struct listing *listing = context;

    (void)err;
    json_push(listing->list, view_exec(listing->mem, exec));
    return 0;
}

static int on_process(void *context, const struct kept_process *process, struct err *err)
{
    struct listing *listing = context;

    (void)err;
    json_push(listing->list, view_process(listing->mem, process));
    return 0;
}

static int list(struct call *call, const void *body, const void *query, struct err *err)
{
    struct listing execs = {&call->mem, json_array(&call->mem)};
    struct listing processes = {&call->mem, json_array(&call->mem)};
    struct json *answer = json_object(&call->mem);
    const char *id = NULL, *made = NULL;
    struct lent lent;
    int failed;

    (void)body;
    (void)query;
    if (call_sandbox(call, &lent, &id, &made, err) < 0)
        return -1;
    failed =
        execute_exec_each(govern_execute(lent.govern), id, on_exec, &execs, err) < 0 ||
        execute_kept_processes(govern_execute(lent.govern), id, on_process, &processes, err) < 0;
    call_release(call, &lent);
    json_put_text(&call->mem, answer, "sandbox_id", id);
    json_put(answer, "execs", execs.list);
    json_put(answer, "processes", processes.list);
    return failed ? -1 : call_answer(call, 200, answer, err);
}

static int show(struct call *call, const void *body, const void *query, struct err *err)
{
    const char *id = NULL, *made = NULL;
    struct kept_exec exec;
    struct lent lent;
    int failed;

    (void)body;
    (void)query;
    if (call_sandbox(call, &lent, &id, &made, err) < 0)
        return -1;
    failed = find_exec(call, govern_execute(lent.govern), id, &exec, err) < 0 ||
             call_answer(call, 200, view_exec(&call->mem, &exec), err) < 0;
    call_release(call, &lent);
    return failed ? -1 : 0;
}

/* ---- following ---- */

/* "12.40": the bytes of both streams the client has. */
static int read_position(const char *text, uint64_t out[STREAM_SOURCES], struct err *err)
{
    struct str rest = str_of(text ? text : "0.0");
    struct str first = str_cut(&rest, '.');

    if (!str_u64(first, &out[0]) || !str_u64(rest, &out[1]))
        return err_set(err, ERR_INVALID, "Last-Event-ID is two numbers with a point between");
    return 0;
}

/* Writes what there is behind the position; *any: there was something. */
static int pass_new(struct execute *execute, const char *exec, uint64_t at[STREAM_SOURCES],
                    const int fds[STREAM_SOURCES], bool *any, struct err *err)
{
    *any = false;
    for (unsigned i = 0; i < STREAM_SOURCES; i++) {
        AUTO_BUF struct buf text = BUF(PIECE_MAX);
        uint64_t next = 0;

        if (execute_exec_read(execute, exec, i, &at[i], &text, &next, err) < 0 ||
            (text.n && write_all(fds[i], text.p, text.n, err) < 0))
            return -1;
        *any |= text.n > 0;
        at[i] = next;
    }
    return 0;
}

/* Until it has ended and everything it wrote is told, or the client is gone. */
static int follow_it(struct call *call, struct execute *execute, struct kept_exec *exec,
                     uint64_t at[STREAM_SOURCES], const int fds[STREAM_SOURCES], struct err *err)
{
    struct pollfd orders = {.fd = call->orders[0], .events = POLLIN};
    bool any = true;

    while (any || exec->running) {
        if (!any && poll(&orders, 1, FOLLOW_PAUSE_MS) > 0)
            return err_set(err, ERR_CONFLICT, "the client has left");
        /* Looked at before it is read: what it wrote until then is in the log. */
        if (execute_exec_look(execute, call->params[1], exec, err) < 0 ||
            pass_new(execute, call->params[1], at, fds, &any, err) < 0)
            return -1;
    }
    return call_answer(call, 200, view_exec(&call->mem, exec), err);
}

static int follow(struct call *call, const void *body, const void *query, struct err *err)
{
    struct stream_config config = {.frame = FRAME_NDJSON, .sources = STREAM_SOURCES};
    const char *id = NULL, *made = NULL;
    struct kept_exec exec;
    struct lent lent;
    int fds[STREAM_SOURCES];
    int failed;

    (void)body;
    (void)query;
    if (strstr(call->accept, "text/event-stream"))
        config.frame = FRAME_SSE;
    if (read_position(call->last_event, config.from, err) < 0 ||
        call_sandbox(call, &lent, &id, &made, err) < 0)
        return -1;
    failed = find_exec(call, govern_execute(lent.govern), id, &exec, err);
    if (!failed && !exec.detached)
        failed = err_set(err, ERR_CONFLICT, "only the output of a detached command is kept");
    if (!failed)
        failed = stream_open(call, &config, fds, err);
    if (!failed) {
        failed = follow_it(call, govern_execute(lent.govern), &exec, config.from, fds, err);
        for (unsigned i = 0; i < STREAM_SOURCES; i++)
            (void)close(fds[i]);
    }
    if (!failed)
        failed = govern_sweep(lent.govern, err); /* its end gets its receipt */
    call_release(call, &lent);
    return failed;
}

/* ---- signals ---- */

struct signal_body {
    uint64_t signal;
};

/* clang-format off */
static const struct field signal_fields[] = {
    {"signal", FIELD_COUNT, offsetof(struct signal_body, signal), .required = true, .min = 1,
     .max = 64, .help = "Its number: 15 asks a command to end, 9 ends it."},
    {0},
};
/* clang-format on */

/* Joins it, says the one thing, and leaves: two orders that are read one after the other. */
static int give_signal(struct call *call, struct execute *execute, unsigned number,
                       struct kept_exec *exec, struct err *err)
{
    const struct streams none = {.in_fd = -1, .out_fd = -1, .err_fd = -1};
    int ends[2];
    int failed;

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_os(err, "making a pipe");
    failed = order_give(ends[1], ORDER_SIGNAL, number, err) < 0 ||
             order_give(ends[1], ORDER_CANCEL, 0, err) < 0;
    if (!failed) {
        execute_obey(execute, ends[0]);
        failed = execute_exec_attach(execute, call->params[1], &none, exec, err);
        execute_obey(execute, call->orders[0]);
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
    return failed ? -1 : 0;
}

static int signal_it(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct signal_body *wanted = body;
    const char *id = NULL, *made = NULL;
    struct kept_exec exec;
    struct lent lent;
    int failed;

    (void)query;
    if (call_sandbox(call, &lent, &id, &made, err) < 0)
        return -1;
    failed =
        find_exec(call, govern_execute(lent.govern), id, &exec, err) < 0 ||
        give_signal(call, govern_execute(lent.govern), (unsigned)wanted->signal, &exec, err) < 0 ||
        execute_exec_look(govern_execute(lent.govern), call->params[1], &exec, err) < 0 ||
        call_answer(call, 200, view_exec(&call->mem, &exec), err) < 0;
    call_release(call, &lent);
    return failed ? -1 : 0;
}

/* clang-format off */
const struct route routes_execs[] = {
    {.method = HTTP_GET,
     .path = "/v1/sandboxes/{id}/execs",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .name = "listExecs",
     .summary = "The commands and processes of a sandbox.",
     .answer = "Commands that run, detached ones that have ended, and all processes.",
     .handle = list},
    {.method = HTTP_GET,
     .path = "/v1/sandboxes/{id}/execs/{exec}",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .name = "getExec",
     .summary = "One command.",
     .answer = "Whether it runs, and how it ended.",
     .handle = show},
    {.method = HTTP_GET,
     .path = "/v1/sandboxes/{id}/execs/{exec}/stream",
     .kind = ROUTE_RUN,
     .scope = SCOPE_READ,
     .name = "followExec",
     .summary =
         "The output of a detached command, from the event in Last-Event-ID on, until it ends.", .answer = "Events; the last one says how it ended.",
     .handle = follow},
    {.method = HTTP_POST,
     .path = "/v1/sandboxes/{id}/execs/{exec}/signal",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .body = BODY_JSON,
     .fields = signal_fields,
     .body_size = sizeof(struct signal_body),
     .name = "signalExec",
     .summary = "Send a signal to a detached command.",
     .answer = "The command.",
     .handle = signal_it},
    {0                                                                               },
};
/* clang-format on */
