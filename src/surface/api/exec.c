/* SPDX-License-Identifier: Apache-2.0 */

/* Commands: in a sandbox of their own, or in one that stays. Answered as one object, or streamed
 * as lines of JSON, as server-sent events, or as the plain bytes of standard output, whichever the
 * client accepts. */

#include "surface/api/call.h"
#include "surface/api/tables.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "model/run.h"
#include "surface/api/sandbox-body.h"
#include "surface/api/stream.h"
#include "surface/view/view.h"

struct exec_body {
    struct sandbox_body sandbox; /* of a command with a sandbox of its own */
    struct words command;
    struct words env;
    const char *workdir;
    struct str stdin_bytes;
    uint64_t timeout_ms;
    uint64_t approval_wait_ms;
    bool tty;
    bool detach;
    bool keep_background;
    bool limit_output;
    bool binary;
    bool tell_waiting;
    uint64_t window;
    uint64_t rows, cols;
};

/* clang-format off */
#define OF_COMMAND                                                                                 \
    {"command", FIELD_WORDS, offsetof(struct exec_body, command), .required = true, .raw = true,   \
     .max = ARGV_WORDS_MAX, .help = "Exactly what runs; no shell is added."},                      \
    {"approval_wait_ms", FIELD_COUNT, offsetof(struct exec_body, approval_wait_ms),                \
     .max = 600000, .help = "Wait so long for a person, if one must confirm it."},                 \
    {"stdin", FIELD_BYTES, offsetof(struct exec_body, stdin_bytes),                                \
     .help = "What the command reads; nothing by default."},                                       \
    {"limit_output", FIELD_BOOL, offsetof(struct exec_body, limit_output),                         \
     .help = "Of a stream: what is beyond the limit of the output counts as cut off, as it does "  \
             "in one answer. The events have all of it."},                                         \
    {"binary", FIELD_BOOL, offsetof(struct exec_body, binary),                                     \
     .help = "Over a WebSocket: output comes as binary messages, a byte 1 (stdout) or 2 (stderr) " \
             "in front, instead of events."},                                                      \
    {"tell_waiting", FIELD_BOOL, offsetof(struct exec_body, tell_waiting),                         \
     .help = "Of a stream: while a person is waited for, an event \"waiting\" says so, with its "   \
             "approval_id."},                                                                      \
    {"window", FIELD_COUNT, offsetof(struct exec_body, window), .min = 65536,                      \
     .help = "Over a WebSocket: at most about so many bytes of each stream are on the way until "  \
             "the client says with messages \"taken\" that it has them. It may be as slow as it "   \
             "likes then."},                                                                       \
    {"tty", FIELD_BOOL, offsetof(struct exec_body, tty), .help = "Give it a terminal."},           \
    {"rows", FIELD_COUNT, offsetof(struct exec_body, rows), .min = 1, .max = 4096,                 \
     .help = "How large the terminal is at first, with cols."},                                    \
    {"cols", FIELD_COUNT, offsetof(struct exec_body, cols), .min = 1, .max = 4096}

static const struct field exec_fields[] = {
    OF_COMMAND,
    {"env", FIELD_MAP, offsetof(struct exec_body, env), .raw = true, .max = ENV_WORDS_MAX},
    {"workdir", FIELD_TEXT, offsetof(struct exec_body, workdir), .raw = true,
     .max = PATH_BYTES_MAX},
    {"timeout_ms", FIELD_COUNT, offsetof(struct exec_body, timeout_ms), .min = 1,
     .help = "Its own time; the sandbox's by default."},
    {"detach", FIELD_BOOL, offsetof(struct exec_body, detach),
     .help = "It goes on without the caller; its output can be read later."},
    {"keep_background", FIELD_BOOL, offsetof(struct exec_body, keep_background),
     .help = "What it leaves running stays."},
    {0},
};

static const struct field run_fields[] = {
    OF_COMMAND,
    {"sandbox", FIELD_OBJECT, .members = sandbox_fields, .help = "What its sandbox is made from."},
    {0},
};
/* clang-format on */

/* ---- streams ---- */

#define RAW_TYPE "application/octet-stream"
#define EXIT_CODE "brig-exit-code"
#define EXIT_SIGNAL "brig-signal"
#define RECEIPT_ID "brig-receipt-id"
#define OUTPUT_HASH "brig-stdout-hash"

/* How the client wants to hear of it. */
static bool is_streamed(const struct call *call, enum frame *out)
{
    if (call->route->body == BODY_SOCKET)
        *out = FRAME_WS;
    else if (strstr(call->accept, "text/event-stream"))
        *out = FRAME_SSE;
    else if (strstr(call->accept, "application/x-ndjson"))
        *out = FRAME_NDJSON;
    else if (strstr(call->accept, RAW_TYPE))
        *out = FRAME_RAW;
    else
        return false;
    return true;
}

/* Only standard output is sent; of both streams the receipt has count and hash. How it ended is
 * known when the bytes are out. */
static void raw_config(struct call *call, const struct run *run, struct stream_config *config)
{
    config->sources = 1;
    config->type = RAW_TYPE;
    config->is_lazy = true;
    config->trailer = EXIT_CODE ", " EXIT_SIGNAL ", " RECEIPT_ID ", " OUTPUT_HASH;
    call_header(call, "brig-run-id", run->id);
}

static void raw_end(struct call *call, const struct run *run)
{
    const struct outcome *outcome = &run->outcome;
    char number[16];

    (void)snprintf(number, sizeof number, "%d",
                   outcome->signal ? outcome->signal : outcome->exit_code);
    call_trailer(call, outcome->signal ? EXIT_SIGNAL : EXIT_CODE, number);
    call_trailer(call, RECEIPT_ID, run->closing.id);
    call_trailer(call, OUTPUT_HASH, outcome->out.hash);
}

/* What the command reads: what comes over the socket, or the given bytes, in a file without a name.
 */
static int open_stdin(struct call *call, struct str bytes, int *out, struct err *err)
{
    AUTO_FD int fd = -1;

    *out = call->route->body == BODY_SOCKET ? TAKE_FD(call->body_fd) : -1;
    if (*out >= 0 || !bytes.n)
        return 0;
    fd = memfd_create("stdin", MFD_CLOEXEC);
    if (fd < 0)
        return err_os(err, "making room for the input");
    if (write_all(fd, bytes.p, bytes.n, err) < 0)
        return -1;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_os(err, "rewinding the input");
    *out = TAKE_FD(fd);
    return 0;
}

static int open_streams(struct call *call, const struct exec_body *wanted, const struct run *run,
                        struct streams *out, struct err *err)
{
    struct stream_config config = {.sources = 2};
    struct json *first = json_object(&call->mem);
    int fds[STREAM_SOURCES];

    out->keep = true;
    if (!is_streamed(call, &config.frame))
        return 0;
    json_put_text(&call->mem, first, "run_id", run->id);
    config.first = first;
    if (config.frame == FRAME_RAW)
        raw_config(call, run, &config);
    config.is_binary = wanted->binary && config.frame == FRAME_WS;
    config.window = config.frame == FRAME_WS ? wanted->window : 0;
    if (stream_open(call, &config, fds, err) < 0)
        return -1;
    /* Who relays output waits in poll, not in write: whole pieces at a time. */
    for (size_t i = 0; i < config.sources; i++)
        (void)fcntl(fds[i], F_SETFL, O_NONBLOCK);
    out->keep = wanted->limit_output;
    out->out_fd = fds[0];
    out->err_fd = fds[1];
    return 0;
}

static void on_wait(void *context, const struct run *run)
{
    stream_tell_waiting(context, run->approval.id);
}

static void close_streams(struct streams *streams)
{
    int *fds[] = {&streams->in_fd, &streams->out_fd, &streams->err_fd};

    for (size_t i = 0; i < COUNT(fds); i++) {
        if (*fds[i] >= 0)
            (void)close(*fds[i]);
        *fds[i] = -1;
    }
}

/* A denial is an answer of its own; how a command ended is for whoever asked to judge. What events
 * have told is not told again. */
static int answer_run(struct call *call, struct run *run, struct err *err)
{
    enum frame frame = FRAME_NDJSON;

    if (is_streamed(call, &frame))
        run->outcome.out.kept = run->outcome.err.kept = (struct str){0};
    if (run->verdict.kind != VERDICT_ALLOW)
        return call_check_result(call, run, view_run(&call->mem, run), err);
    if (run->outcome.detached)
        return call_answer(call, 202, view_detached(&call->mem, run), err);
    if (frame == FRAME_RAW)
        raw_end(call, run);
    return call_answer(call, 200, view_run(&call->mem, run), err);
}

static int carry_out(struct call *call, struct govern *govern, const struct exec_body *wanted,
                     struct request *request, struct err *err)
{
    struct streams streams = {.in_fd = -1, .out_fd = -1, .err_fd = -1};
    enum frame frame = FRAME_RAW;
    struct run run;
    int failed;

    request->argv = wanted->command;
    request->tty = wanted->tty;
    request->tty_rows = (uint16_t)wanted->rows;
    request->tty_columns = (uint16_t)wanted->cols;
    request->approval_wait_ms = wanted->approval_wait_ms;
    if (wanted->tell_waiting && !request->detach && is_streamed(call, &frame))
        request->watch.wait = on_wait;
    request->stdin_stream = wanted->stdin_bytes.n > 0 || call->route->body == BODY_SOCKET;
    if (call->early.has_left && !request->detach)
        return err_set(err, ERR_UNAVAILABLE, "the client left before the command began");
    run_init(&run);
    failed = open_stdin(call, wanted->stdin_bytes, &streams.in_fd, err) < 0 ||
                     (!request->detach && open_streams(call, wanted, &run, &streams, err) < 0)
                 ? -1
                 : 0;
    if (!failed)
        failed = request->kind == ACTION_EXEC ? govern_exec(govern, request, &streams, &run, err)
                                              : govern_run(govern, request, &streams, &run, err);
    close_streams(&streams);
    call->is_cut = run.outcome.out.unread || run.outcome.err.unread;
    if (!failed)
        failed = answer_run(call, &run, err);
    run_done(&run);
    return failed;
}

/* ---- handlers ---- */

static int exec(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct exec_body *wanted = body;
    struct request request = call_request(call, ACTION_EXEC);
    const char *made = NULL;
    struct lent lent;
    int failed;

    (void)query;
    request.env = wanted->env;
    request.workdir = wanted->workdir;
    request.limits[LIMIT_WALL] = wanted->timeout_ms;
    request.detach = wanted->detach;
    request.keep_background = wanted->keep_background;
    if (call_sandbox(call, &lent, &request.sandbox, &made, err) < 0)
        return -1;
    failed = carry_out(call, lent.govern, wanted, &request, err);
    call_release(call, &lent);
    return failed;
}

static int run_once(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct exec_body *wanted = body;
    struct request request = call_request(call, ACTION_RUN);
    struct lent lent;
    int failed;

    (void)query;
    if (sandbox_body_fill(call, &wanted->sandbox, &request, err) < 0 ||
        sandbox_body_govern(call, &wanted->sandbox, &request, &lent, err) < 0)
        return -1;
    failed = carry_out(call, lent.govern, wanted, &request, err);
    call_release(call, &lent);
    return failed;
}

/* clang-format off */
const struct route routes_exec[] = {
    {.method = HTTP_POST,
     .path = "/v1/runs",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .creates = true,
     .body = BODY_JSON,
     .fields = run_fields,
     .body_size = sizeof(struct exec_body),
     .name = "run",
     .summary = "Run one command in a sandbox of its own, which ends with it.",
     .answer = "Verdict, posture, output and outcome; or events, when the client accepts "
               "text/event-stream or application/x-ndjson; or, with " RAW_TYPE ", the bytes of "
               "standard output as they are, and " EXIT_CODE " or " EXIT_SIGNAL ", " RECEIPT_ID
               " and " OUTPUT_HASH " behind them as trailers: an answer without its end is not "
               "complete.",
     .handle = run_once},
    {.method = HTTP_GET,
     .path = "/v1/runs",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .body = BODY_SOCKET,
     .fields = run_fields,
     .body_size = sizeof(struct exec_body),
     .name = "runSocket",
     .summary = "The same over a WebSocket, with input, signals and the size of a terminal.",
     .answer = "Events as text messages.",
     .handle = run_once},
    {.method = HTTP_POST,
     .path = "/v1/sandboxes/{id}/exec",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .creates = true,
     .body = BODY_JSON,
     .fields = exec_fields,
     .body_size = sizeof(struct exec_body),
     .name = "exec",
     .summary = "Run a command in a sandbox that stays.",
     .answer = "Verdict, posture, output and outcome; or events, when the client accepts "
               "text/event-stream or application/x-ndjson; or, with " RAW_TYPE ", the bytes of "
               "standard output as they are, and " EXIT_CODE " or " EXIT_SIGNAL ", " RECEIPT_ID
               " and " OUTPUT_HASH " behind them as trailers: an answer without its end is not "
               "complete. 202 for a detached one.",
     .handle = exec},
    {.method = HTTP_GET,
     .path = "/v1/sandboxes/{id}/exec",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .body = BODY_SOCKET,
     .fields = exec_fields,
     .body_size = sizeof(struct exec_body),
     .name = "execSocket",
     .summary = "The same over a WebSocket, with input, signals and the size of a terminal.",
     .answer = "Events as text messages.",
     .handle = exec},
    {0},
};
/* clang-format on */
