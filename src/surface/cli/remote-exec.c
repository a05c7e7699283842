/* SPDX-License-Identifier: Apache-2.0 */

/* brig sandbox exec, by a daemon: over a WebSocket, so that input, output and signals pass while
 * the command runs.
 *
 * Everything waits in one poll. Our own descriptors stay blocking, because their open files may be
 * shared with a shell; a stream is written only when poll says so, and then at most as much as is
 * sure to fit. Of the input no more is sent than the daemon has room for, and of the output no more
 * comes than we have: signals and the end never wait behind it, and who reads slowly may. */

#include "surface/cli/remote.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/limits.h"
#include "lib/http/http-limits.h"
#include "model/run.h"
#include "surface/cli/sandbox.h"

#define INPUT_PIECE (32 * KIB)
#define INPUT_AHEAD (256 * KIB) /* sent, and not known to be taken */
#define WINDOW (1 * MIB)        /* of one stream on the way, or here and not written yet */
#define COLLECT_MAX (1 * GIB)   /* for --json; what is kept of it is cut where the limit says */
#define SURE_BYTES 4096U        /* PIPE_BUF: never blocks after POLLOUT */
#define FILE_BYTES (64 * KIB)
#define EVENT_MEMORY_MAX (32 * MIB)

/* One of the command's two outputs. */
struct sink {
    int fd; /* -1: for --json, or nobody listens any more */
    bool is_gone;
    struct buf pending; /* or, for --json, all of it */
    size_t at;
    uint64_t heard, told; /* bytes that came, and that the daemon knows we have done with */
    size_t step;
};

struct session {
    struct invocation *inv;
    struct remote *remote;
    int in_fd; /* -1: at its end, or there is none */
    int signals_fd;
    struct sink sinks[2];
    uint64_t sent, taken;
    bool has_started;
    bool is_cancelled; /* by a signal */
    bool is_over;
    bool is_given_up;       /* a signal after the end: those who do not read are left behind */
    const struct json *doc; /* how it ended */
    bool has_failed;        /* there is an error instead */
    struct err err;
};

static const char *const stream_names[2] = {"stdout", "stderr"};

/* ---- saying ---- */

static int say(struct session *session, const struct json *message, struct err *err)
{
    AUTO_BUF struct buf text = BUF(HTTP_WS_MESSAGE_MAX);

    if (json_compact(message, &text, err) < 0)
        return -1;
    return http_client_say(session->remote->client, HTTP_WS_TEXT, buf_str(&text), err);
}

static struct json *message_of(struct arena *mem, const char *type)
{
    struct json *message = json_object(mem);

    json_put_text(mem, message, "type", type);
    return message;
}

static int say_size(struct session *session, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    struct json *message = message_of(&mem, "resize");
    struct winsize size;

    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
        return 0;
    json_put_int(&mem, message, "rows", size.ws_row);
    json_put_int(&mem, message, "cols", size.ws_col);
    return say(session, message, err);
}

static int say_stream_closed(struct session *session, unsigned stream, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    struct json *message = message_of(&mem, "close");

    json_put_text(&mem, message, "stream", stream_names[stream]);
    return say(session, message, err);
}

static int on_signal(struct session *session, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    struct json *message = message_of(&mem, "cancel");
    struct signalfd_siginfo info;

    if (read(session->signals_fd, &info, sizeof info) != (ssize_t)sizeof info)
        return 0;
    if (session->is_over) {
        session->is_given_up = info.ssi_signo != SIGWINCH;
        return 0;
    }
    if (info.ssi_signo == SIGWINCH)
        return say_size(session, err);
    session->is_cancelled = true;
    json_put_int(&mem, message, "signal", info.ssi_signo);
    return say(session, message, err);
}

static int pass_input(struct session *session, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    char piece[INPUT_PIECE];
    ssize_t n = read(session->in_fd, piece, sizeof piece);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n <= 0) {
        session->in_fd = -1;
        return say(session, message_of(&mem, "stdin_end"), err);
    }
    session->sent += (uint64_t)n;
    return http_client_say(session->remote->client, HTTP_WS_BINARY, (struct str){piece, (size_t)n},
                           err);
}

/* ---- output ---- */

static size_t waiting(const struct sink *sink)
{
    return sink->fd >= 0 ? sink->pending.n - sink->at : 0;
}

static void sink_init(struct sink *sink, int fd)
{
    struct stat st;

    sink->fd = fd;
    sink->pending = BUF(fd < 0 ? COLLECT_MAX : 2 * WINDOW);
    sink->step = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? FILE_BYTES : SURE_BYTES;
}

/* There is room again for as much as was written. */
static int say_taken(struct session *session, unsigned stream, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    struct sink *sink = &session->sinks[stream];
    struct json *message;
    uint64_t done = sink->heard - waiting(sink);

    if (done - sink->told < WINDOW / 4 || session->is_over || sink->is_gone)
        return 0;
    sink->told = done;
    message = message_of(&mem, "taken");
    json_put_text(&mem, message, "stream", stream_names[stream]);
    json_put_int(&mem, message, "bytes", (int64_t)done);
    return say(session, message, err);
}

static int sink_write(struct session *session, unsigned stream, struct err *err)
{
    struct sink *sink = &session->sinks[stream];
    size_t left = waiting(sink);
    ssize_t n = write(sink->fd, sink->pending.p + sink->at, left < sink->step ? left : sink->step);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n < 0) {
        /* Whoever listened is gone; the command learns it as it would without us. */
        sink->fd = -1;
        sink->is_gone = true;
        buf_clear(&sink->pending);
        return session->is_over ? 0 : say_stream_closed(session, stream, err);
    }
    sink->at += (size_t)n;
    if (sink->at == sink->pending.n) {
        buf_clear(&sink->pending);
        sink->at = 0;
    }
    return say_taken(session, stream, err);
}

static int on_output(struct session *session, unsigned stream, struct str bytes, struct err *err)
{
    struct sink *sink = &session->sinks[stream];

    if (sink->is_gone)
        return 0;
    sink->heard += bytes.n;
    if (sink->at >= WINDOW / 2) {
        memmove(sink->pending.p, sink->pending.p + sink->at, sink->pending.n - sink->at);
        sink->pending.n -= sink->at;
        sink->at = 0;
    }
    return buf_add_str(&sink->pending, bytes, err) < 0 ? -1 : say_taken(session, stream, err);
}

/* ---- hearing ---- */

/* The last word: a document or an error. It outlives the message it came in. */
static int on_last(struct session *session, struct str text, struct err *err)
{
    static const char *const framing[] = {"event", "id", NULL};
    const struct json *message = NULL;
    struct mark where;

    if (json_parse(&session->inv->mem, text, &message, &where, err) < 0)
        return -1;
    session->is_over = true;
    session->in_fd = -1;
    if (!json_get(message, "error")) {
        session->doc = doc_without(&session->inv->mem, message, framing);
        /* Nobody waits for those who do not read when it was cancelled or ran out of time. */
        session->is_given_up = !session->inv->json && doc_bool(session->doc, "truncated");
        return 0;
    }
    session->has_failed = true;
    (void)remote_read_error(session->remote, message, &session->err);
    session->doc = json_get(session->remote->details, "result");
    return 0;
}

/* A byte for the stream, then what came out of it. */
static int on_bytes(struct session *session, struct str bytes, struct err *err)
{
    if (bytes.n == 0 || (bytes.p[0] != 1 && bytes.p[0] != 2))
        return err_set(err, ERR_INTEGRITY, "output of no stream");
    return on_output(session, (unsigned)bytes.p[0] - 1, (struct str){bytes.p + 1, bytes.n - 1},
                     err);
}

/* It goes to a terminal, and is no more than an id. */
static void on_waiting(const struct session *session, const char *approval_id)
{
    if (strspn(approval_id, "abcdefghijklmnopqrstuvwxyz0123456789") == strlen(approval_id))
        sandbox_say_waiting(session->inv, approval_id);
}

static int on_event(struct session *session, struct str text, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(EVENT_MEMORY_MAX);
    const struct json *message = NULL;
    struct mark where;
    const char *event;

    if (json_parse(&mem, text, &message, &where, err) < 0)
        return -1;
    event = doc_text(&mem, message, "event");
    if (strcmp(event, "start") == 0)
        session->has_started = true;
    else if (strcmp(event, "stdin") == 0)
        session->taken = doc_number(message, "bytes");
    else if (strcmp(event, "waiting") == 0)
        on_waiting(session, doc_text(&mem, message, "approval_id"));
    else
        return on_last(session, text, err);
    return 0;
}

static int on_heard(struct session *session, struct err *err)
{
    enum http_ws_kind kind = 0;
    struct str text = {0};
    int got = 0;

    while (!session->is_over) {
        got = http_client_hear(session->remote->client, &kind, &text, err);
        if (got <= 0)
            break;
        if (kind == HTTP_WS_CLOSE)
            return err_set(err, ERR_UNAVAILABLE, "the daemon broke off: %.*s",
                           text.n > 2 ? (int)text.n - 2 : 0, text.n > 2 ? text.p + 2 : "");
        if (kind == HTTP_WS_BINARY ? on_bytes(session, text, err) < 0
                                   : on_event(session, text, err) < 0)
            return -1;
    }
    return got < 0 ? -1 : 0;
}

/* ---- the loop ---- */

enum { WAIT_IN, WAIT_OUT, WAIT_ERR, WAIT_DAEMON, WAIT_SIGNALS, WAIT_COUNT };

static bool is_done(const struct session *session)
{
    return session->is_over &&
           (session->is_given_up || (!waiting(&session->sinks[0]) && !waiting(&session->sinks[1])));
}

static bool can_send(const struct session *session)
{
    return session->has_started && session->sent - session->taken < INPUT_AHEAD;
}

static int pass_on(struct session *session, struct err *err)
{
    while (!is_done(session)) {
        struct pollfd polled[WAIT_COUNT] = {
            [WAIT_IN] = {can_send(session) ? session->in_fd : -1,                         POLLIN,  0},
            [WAIT_OUT] = {waiting(&session->sinks[0]) ? session->sinks[0].fd : -1,         POLLOUT, 0},
            [WAIT_ERR] = {waiting(&session->sinks[1]) ? session->sinks[1].fd : -1,         POLLOUT, 0},
            [WAIT_DAEMON] = {session->is_over ? -1 : http_client_fd(session->remote->client),
                         POLLIN,                                                                   0},
            [WAIT_SIGNALS] = {session->signals_fd,                                             POLLIN,  0},
        };

        if (poll(polled, WAIT_COUNT, -1) < 0 && errno != EINTR)
            return err_os(err, "waiting for the daemon");
        for (unsigned i = 0; i < 2; i++)
            if (polled[WAIT_OUT + i].revents && polled[WAIT_OUT + i].fd >= 0 &&
                sink_write(session, i, err) < 0)
                return -1;
        if ((polled[WAIT_SIGNALS].revents && on_signal(session, err) < 0) ||
            (polled[WAIT_DAEMON].revents && on_heard(session, err) < 0) ||
            (polled[WAIT_IN].revents && session->in_fd >= 0 && pass_input(session, err) < 0))
            return -1;
    }
    return 0;
}

/* From here on a signal is something to read, as it is for a run of our own. */
static int listen_for_signals(int *out, struct err *err)
{
    static const int ours[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
    sigset_t signals;

    (void)sigemptyset(&signals);
    for (size_t i = 0; i < COUNT(ours); i++)
        (void)sigaddset(&signals, ours[i]);
    if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
        return err_os(err, "holding back signals");
    (void)signal(SIGPIPE, SIG_IGN);
    *out = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    return *out < 0 ? err_os(err, "listening for signals") : 0;
}

static int open_session(struct session *session, const char *target, struct err *err)
{
    struct http_header headers[REMOTE_HEADERS];
    size_t n = remote_headers(session->inv, session->remote, NULL, headers);
    int status = 0;

    if (http_client_upgrade(session->remote->client, str_of(target), headers, n, &status, err) < 0)
        return err_in(err, "asking the daemon");
    return status == 101 ? 0 : remote_refusal(session->inv, session->remote, status, err);
}

/* What is kept of the output is as much as the limit says; the daemon has counted all of it. */
static struct json *with_output(struct session *session)
{
    struct arena *mem = &session->inv->mem;
    struct json *doc = json_object(mem);
    uint64_t keep = doc_number(json_at(session->doc, "/limits/output_bytes"), "value");

    json_each(member, session->doc)
    {
        struct json *copy = arena_new(mem, struct json);
        const char *key = arena_text(mem, member->key);
        bool is_stream = false;

        for (unsigned i = 0; i < 2; i++) {
            struct str all = buf_str(&session->sinks[i].pending);

            if (strcmp(key, stream_names[i]) != 0)
                continue;
            is_stream = true;
            all.n = all.n < keep ? all.n : keep;
            json_put_bytes(mem, doc, key, all);
        }
        if (is_stream)
            continue;
        *copy = *member;
        copy->next = NULL;
        json_put(doc, key, copy);
    }
    return doc;
}

/* ---- the command ---- */

/* How we want to hear of it. */
static void put_flow(struct invocation *inv, struct json *body)
{
    json_put_bool(&inv->mem, body, "binary", true);
    json_put_int(&inv->mem, body, "window", (int64_t)WINDOW);
}

static void put_terminal(struct invocation *inv, struct json *body)
{
    struct winsize size;

    json_put_bool(&inv->mem, body, "tty", true);
    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
        return;
    json_put_int(&inv->mem, body, "rows", size.ws_row);
    json_put_int(&inv->mem, body, "cols", size.ws_col);
}

static struct json *run_body(struct invocation *inv, const struct sandbox_call *call)
{
    const struct request *request = &call->request;
    struct json *body = json_object(&inv->mem), *sandbox = json_object(&inv->mem);

    remote_put_words(&inv->mem, body, "command", request->argv);
    if (request->tty)
        put_terminal(inv, body);
    if (inv->json)
        json_put_bool(&inv->mem, body, "limit_output", true);
    if (request->approval_wait_ms) {
        json_put_int(&inv->mem, body, "approval_wait_ms", (int64_t)request->approval_wait_ms);
        if (sandbox_says_waiting(inv))
            json_put_bool(&inv->mem, body, "tell_waiting", true);
    }
    if (!option_flag(inv, "--detach"))
        put_flow(inv, body);
    if (!inv->subject) {
        remote_put_sandbox(inv, call, sandbox);
        json_put(body, "sandbox", sandbox);
        return body;
    }
    remote_put_pairs(&inv->mem, body, "env", request->env);
    remote_put_bytes(&inv->mem, body, "workdir", request->workdir);
    if (request->limits[LIMIT_WALL])
        json_put_int(&inv->mem, body, "timeout_ms", (int64_t)request->limits[LIMIT_WALL]);
    if (request->keep_background)
        json_put_bool(&inv->mem, body, "keep_background", true);
    if (option_flag(inv, "--detach"))
        json_put_bool(&inv->mem, body, "detach", true);
    return body;
}

/* How it ended, or why it did not run. */
static int tell(struct session *session, const struct err *err)
{
    struct invocation *inv = session->inv;
    struct run run;
    int status;

    if (!session->doc) {
        /* Not well-formed: nothing ran, and here it is said in terms of the options. */
        session->remote->not_done |= err->code == ERR_INVALID;
        /* Refused while it waited: nothing ran and nothing was read, so it can be done here. */
        session->remote->not_done |= session->has_failed && !session->is_cancelled &&
                                     session->remote->reason == REASON_DAEMON_STOPPING;
        return remote_failed(inv, session->remote, err);
    }
    run_init(&run);
    doc_run(session->doc, &run);
    status = sandbox_status(inv, &run);
    sandbox_closing_words(inv, &run);
    if (inv->json && cli_json(inv, session->doc) != 0)
        status = cli_status(inv, ERR_OS);
    run_done(&run);
    return status;
}

static int run_attached(struct invocation *inv, struct remote *remote, const char *target,
                        const struct sandbox_call *call)
{
    struct session session = {
        .inv = inv, .remote = remote, .in_fd = STDIN_FILENO, .signals_fd = -1};
    struct raw_terminal terminal = {.changed = false};
    struct err err;
    int failed;
    int status;

    sink_init(&session.sinks[0], inv->json ? -1 : STDOUT_FILENO);
    sink_init(&session.sinks[1], inv->json ? -1 : STDERR_FILENO);
    if (open_session(&session, target, &err) < 0)
        return tell(&session, &err);
    if (call->request.tty)
        terminal_raw(&terminal);
    failed = listen_for_signals(&session.signals_fd, &err) < 0 ||
             say(&session, run_body(inv, call), &err) < 0 || pass_on(&session, &err) < 0;
    terminal_restore(&terminal);
    if (session.signals_fd >= 0)
        (void)close(session.signals_fd);
    if (failed)
        (void)err_in(&err, "the command may have run; \"%s receipts list\" knows", inv->program);
    else if (session.has_failed)
        err = session.err;
    else if (inv->json)
        session.doc = with_output(&session);
    if (failed && !inv->subject && !session.has_started && err.code == ERR_LIMIT)
        remote->not_done = true; /* too long for a message */
    if (session.has_failed && inv->subject && err.code == ERR_NOT_FOUND && !session.doc)
        (void)sandbox_unknown(inv, inv->subject, &err);
    status = tell(&session, &err);
    buf_done(&session.sinks[0].pending);
    buf_done(&session.sinks[1].pending);
    return status;
}

static int run_detached(struct invocation *inv, struct remote *remote, const char *target,
                        const struct sandbox_call *call)
{
    struct session session = {.inv = inv, .remote = remote};
    struct err err;

    if (remote_ask(inv, remote, HTTP_POST, target, run_body(inv, call), &session.doc, &err) < 0) {
        session.doc = json_get(remote->details, "result");
        remote_look_unknown(inv, remote, inv->subject, &err);
        return tell(&session, &err);
    }
    if (!json_get(session.doc, "exec_id"))
        return tell(&session, &err); /* it could not be started, which is an end like any other */
    if (inv->json)
        return cli_json(inv, session.doc);
    (void)fprintf(inv->out, "%s\n", doc_text(&inv->mem, session.doc, "exec_id"));
    return 0;
}

int remote_sandbox_exec(struct invocation *inv, struct remote *remote)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    const char *target =
        inv->subject ? remote_sandbox_path(inv, inv->subject, "/exec") : "/v1/runs";
    struct err err;
    int status;

    /* What runs without walls is nobody's to ask for over a socket. */
    if (!target || option_flag(inv, "--elevated"))
        return REMOTE_NOT_DONE;
    if (sandbox_check_exec(inv, &err) < 0)
        return cli_error(inv, &err);
    if (sandbox_call_read(inv, &call, &status) < 0)
        return status;
    if (remote->other_home && (call.request.mounts.n || call.request.workspace))
        return REMOTE_NOT_DONE;
    return option_flag(inv, "--detach") ? run_detached(inv, remote, target, &call)
                                        : run_attached(inv, remote, target, &call);
}
