/* SPDX-License-Identifier: Apache-2.0 */

/* An agent in a box, and the conversation with it: one JSON document a line (docs/advisory.md).
 *
 *     Brig → agent   {"type":"constitution"}, {"type":"turn"}, {"type":"result"}, {"type":"end"}
 *     agent → Brig   an envelope, which answers the turn; or {"action_request":{…}}, any number of
 *                    times before it
 *
 * The box is a run like any other, in a thread of its own; this one speaks. Whatever the agent
 * does, every wait here has an end, and then the box is ended, too. */

#include "flow/advisory-parts.h"
#include "flow/govern-parts.h"

#include "flow/advise/advise.h"
#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES_MAX (2 * ADVISE_TURN_BYTES_MAX)
#define LEAVE_MS 3000  /* it has been told that this is the end */
#define LOOK_MS 100    /* whether a person has said something */
#define UNASKED_MAX 64 /* lines nobody asked for; then it is not listened to any more */
#define READS_MAX 64   /* of what came in time, once the time is over */

struct conversation {
    struct govern *govern;
    struct advise *advise;
    const struct advise_talk *talk;
    struct arena mem; /* of the turn */

    struct request request; /* of the box */
    struct streams streams;
    struct run *run;
    struct err run_err;
    int run_failed;
    pthread_t thread;
    int orders[2]; /* to the box; read, write */

    int to_fd;
    int from_fd;
    struct buf got;
    atomic_bool is_there; /* the agent runs */
    bool is_gone;         /* it has closed its output, or does not read */
    bool is_overlong;     /* what is left of a line that was too long is thrown away */
    unsigned unasked;     /* lines so far that nobody asked for */
    bool is_flood;        /* it said or asked for more than it may */
    bool is_all;          /* there is nothing more to say to it */
    bool is_stopped;      /* whoever began it wants it to end */
    uint64_t until_us;    /* of the session */
};

/* ---- lines ---- */

/* Until the descriptor is ready (true), the time is over, or it is to end: is_stopped. */
static bool await(struct conversation *talk, int fd, short events, uint64_t until_us)
{
    struct pollfd polled[] = {
        {.fd = talk->talk->stop_fd, .events = POLLIN},
        {.fd = fd,                  .events = events},
    };
    int n;

    do
        n = poll(polled, COUNT(polled), clock_ms_until(until_us));
    while (n < 0 && errno == EINTR);
    talk->is_stopped |= n > 0 && polled[0].revents;
    return n > 0 && !talk->is_stopped;
}

static int stopped(struct err *err)
{
    return err_set(err, ERR_CONFLICT, "the session was interrupted");
}

/* An agent that is gone, or a box that never was, shows as an error of the write. */
static ssize_t write_quietly(int fd, const char *p, size_t n)
{
    const struct timespec none = {0};
    sigset_t pipe_only, before;
    ssize_t done;
    int os;

    (void)sigemptyset(&pipe_only);
    (void)sigaddset(&pipe_only, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    done = write(fd, p, n);
    os = errno;
    if (done < 0 && os == EPIPE)
        (void)sigtimedwait(&pipe_only, NULL, &none);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = os;
    return done;
}

/* What it does not read in time, it does not get: the pipe is not waited for beyond the session. */
static int say(struct conversation *talk, const struct json *json, struct err *err)
{
    AUTO_BUF struct buf line = BUF(16UL * MIB);
    size_t done = 0;

    if (talk->is_gone)
        return 0;
    if (json_compact(json, &line, err) < 0 || buf_add_byte(&line, '\n', err) < 0)
        return -1;
    while (done < line.n) {
        ssize_t n = write_quietly(talk->to_fd, line.p + done, line.n - done);

        if (n > 0)
            done += (size_t)n;
        else if (n < 0 && errno != EAGAIN && errno != EINTR)
            talk->is_gone = true;
        else if (!await(talk, talk->to_fd, POLLOUT, talk->until_us) && !talk->is_stopped)
            talk->is_gone = true;
        if (talk->is_stopped)
            return stopped(err);
        if (talk->is_gone)
            return 0;
    }
    return 0;
}

/* A whole line out of what has come: it lives in the turn's arena. */
static bool take_line(struct conversation *talk, struct str *out)
{
    char *end = talk->got.n ? memchr(talk->got.p, '\n', talk->got.n) : NULL;
    size_t n;

    if (!end)
        return false;
    n = (size_t)(end - talk->got.p);
    *out = arena_str(&talk->mem, (struct str){talk->got.p, n});
    memmove(talk->got.p, end + 1, talk->got.n - n - 1);
    talk->got.n -= n + 1;
    if (!talk->is_overlong)
        return true;
    talk->is_overlong = false;
    return take_line(talk, out);
}

/* What has come, though it is no whole line: too long for a turn, or its last words. It counts as
 * one. */
static bool take_rest(struct conversation *talk, struct str *out)
{
    bool is_new = talk->got.n && !talk->is_overlong;

    if (is_new)
        *out = arena_str(&talk->mem, buf_str(&talk->got));
    talk->is_overlong = true; /* what follows it is thrown away, up to its end */
    buf_clear(&talk->got);
    return is_new;
}

/* 1: *out is a line; 0: nothing more will come; -1 with ERR_TIMEOUT, however much comes that is no
 * line, and -1 when it is to end. */
static int hear(struct conversation *talk, uint64_t until_us, struct str *out, struct err *err)
{
    for (unsigned reads = 0;; reads++) {
        char piece[16384];
        ssize_t n;

        if (take_line(talk, out))
            return 1;
        if (talk->is_gone)
            return take_rest(talk, out) ? 1 : 0;
        if (talk->got.n > LINE_BYTES_MAX && take_rest(talk, out))
            return 1;
        if ((reads >= READS_MAX && clock_us() >= until_us) ||
            !await(talk, talk->from_fd, POLLIN, until_us))
            return talk->is_stopped ? stopped(err)
                                    : err_set(err, ERR_TIMEOUT, "the agent said nothing in time");
        n = read(talk->from_fd, piece, sizeof piece);
        if (n > 0 && buf_add(&talk->got, piece, (size_t)n, err) < 0)
            return -1;
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            talk->is_gone = true;
    }
}

/* ---- what is said ---- */

static int say_constitution(struct conversation *talk, const struct advise_terms *terms,
                            struct err *err)
{
    struct json *json = json_object(&talk->mem);

    json_put_text(&talk->mem, json, "type", "constitution");
    json_put_text(&talk->mem, json, "run_id", talk->advise->id);
    json_put_text(&talk->mem, json, "agent_id", talk->advise->terms.agent_id);
    json_put_text(&talk->mem, json, "sha256", talk->advise->constitution_sha256);
    json_put(json, "text", json_text(&talk->mem, terms->constitution));
    return say(talk, json, err);
}

static int say_turn(struct conversation *talk, struct str text, struct err *err)
{
    struct json *json = json_object(&talk->mem);

    json_put_text(&talk->mem, json, "type", "turn");
    json_put_int(&talk->mem, json, "seq", (int64_t)talk->advise->tally.prompts);
    json_put(json, "text", json_text(&talk->mem, text));
    return say(talk, json, err);
}

static int say_result(struct conversation *talk, const struct advise_action *action,
                      struct err *err)
{
    struct json *json = json_object(&talk->mem);

    json_put_text(&talk->mem, json, "type", "result");
    json_put_text(&talk->mem, json, "request_id", action->id);
    json_put_text(&talk->mem, json, "state", advise_state_name(action->state));
    json_put_bool(&talk->mem, json, "done", action->is_done);
    json_put_text(&talk->mem, json, "text", action->why);
    return say(talk, json, err);
}

/* ---- what it asks for ---- */

/* {"action_request": {…}} and nothing beside it. */
static const struct json *request_in(struct conversation *talk, struct str line)
{
    const struct json *json = NULL, *asked;
    struct mark where;
    struct err ignored;

    if (line.n > ADVISE_TURN_BYTES_MAX || json_parse(&talk->mem, line, &json, &where, &ignored) < 0)
        return NULL;
    asked = json_get(json, "action_request");
    return asked && json->n == 1 ? asked : NULL;
}

/* What was heard before is done with. */
static void forget(struct conversation *talk)
{
    arena_done(&talk->mem);
    talk->mem = ARENA(ADVISORY_MEMORY_MAX);
}

/* Nobody asked for it. Who goes on with that all the same is not listened to. */
static int count_unasked(struct conversation *talk, struct err *err)
{
    talk->is_flood = ++talk->unasked > UNASKED_MAX;
    return talk->is_flood
               ? err_set(err, ERR_LIMIT, "the agent said more than %d things nobody asked it for",
                         UNASKED_MAX)
               : 0;
}

static uint64_t next_look_us(const struct conversation *talk)
{
    uint64_t look = clock_us() + LOOK_MS * 1000ULL;

    return look < talk->until_us ? look : talk->until_us;
}

/* Until a person has said something, or it is too late for that; and not beyond the session's time,
 * whatever a clock that can be set says about his. What the agent says meanwhile nobody asked it
 * for. Each look has its own memory: there are thousands. */
static int await_word(struct conversation *talk, struct advise_action *action, struct err *err)
{
    while (clock_us() < talk->until_us) {
        AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
        struct advise_action seen;
        struct str line;
        int got = hear(talk, next_look_us(talk), &line, err);

        if (got < 0 && err->code != ERR_TIMEOUT)
            return -1;
        if (got > 0 &&
            (count_unasked(talk, err) < 0 || advise_note(talk->advise, &mem, ADVISORY_IS_QUIESCENCE,
                                                         "output_while_waiting", line, err) < 0))
            return -1;
        if (got == 0 && !await(talk, -1, 0, next_look_us(talk)) && talk->is_stopped)
            return stopped(err);
        /* Who carries it out may have the session for longer than one waits for that. */
        if (advise_action_show(talk->advise, &mem, action->id, &seen, err) < 0) {
            if (err->code == ERR_UNAVAILABLE)
                continue;
            return -1;
        }
        if (seen.state != ADVISE_PENDING)
            return advise_action_show(talk->advise, &talk->mem, action->id, action, err);
    }
    return err_set(err, ERR_TIMEOUT, "nobody said in time whether action %s may happen",
                   action->id);
}

static void tell_action(const struct conversation *talk, const struct advise_action *action)
{
    if (talk->talk->on_action)
        talk->talk->on_action(talk->talk->context, talk->advise, action);
}

static int handle_request(struct conversation *talk, const struct json *asked, struct err *err)
{
    AUTO_BUF struct buf text = BUF(4 * LINE_BYTES_MAX);
    struct advise_answer answer;
    struct advise_action action;

    if (json_compact(asked, &text, err) < 0)
        return -1;
    if (advise_ask(talk->advise, &talk->mem, buf_str(&text), &answer, &action, err) < 0) {
        talk->is_flood = err->code == ERR_LIMIT;
        return -1;
    }
    tell_action(talk, &action);
    if (action.state == ADVISE_PENDING) {
        govern_advise_tell(talk->govern, talk->request.tenant, talk->advise, &action);
        if (await_word(talk, &action, err) < 0)
            return -1;
        tell_action(talk, &action);
    }
    return say_result(talk, &action, err);
}

/* ---- turns ---- */

static int judge_line(struct conversation *talk, struct str line, struct err *err)
{
    struct advise_answer answer;

    if (advise_heard(talk->advise, &talk->mem, line, &answer, err) < 0)
        return -1;
    if (talk->talk->on_answer)
        talk->talk->on_answer(talk->talk->context, &answer);
    return 0;
}

static uint64_t turn_end_us(const struct conversation *talk)
{
    uint64_t idle = clock_us() + (uint64_t)talk->advise->terms.idle_s * 1000000;

    return idle < talk->until_us ? idle : talk->until_us;
}

/* 1: it has answered; 0: it is gone. */
static int hear_answer(struct conversation *talk, struct err *err)
{
    uint64_t until_us = turn_end_us(talk);
    struct str line;
    int got;

    while ((got = hear(talk, until_us, &line, err)) > 0) {
        const struct json *asked = request_in(talk, line);

        if (!asked)
            return judge_line(talk, line, err) < 0 ? -1 : 1;
        if (handle_request(talk, asked, err) < 0)
            return -1;
        until_us = turn_end_us(talk);
        forget(talk);
    }
    return got;
}

/* Its time begins when it does: how long a busy machine takes to build a box is not the agent's. */
static int await_answer(struct conversation *talk, struct err *err)
{
    bool was_there;
    int got;

    do {
        was_there = atomic_load(&talk->is_there);
        got = hear_answer(talk, err);
    } while (got < 0 && err->code == ERR_TIMEOUT && !was_there && clock_us() < talk->until_us);
    return got;
}

/* What it says before it was asked. */
static int hear_unasked(struct conversation *talk, struct err *err)
{
    struct str line;
    int got;

    while ((got = hear(talk, clock_us(), &line, err)) > 0) {
        if (count_unasked(talk, err) < 0 || judge_line(talk, line, err) < 0)
            return -1;
        forget(talk);
    }
    return got < 0 && err->code != ERR_TIMEOUT ? -1 : 0;
}

/* Why it ended: for the chain. */
static const char *converse(struct conversation *talk, const struct advise_terms *terms,
                            struct err *err)
{
    struct str text;
    int more = say_constitution(talk, terms, err) < 0 ? -1 : 1;

    while (more > 0 && !talk->is_gone) {
        forget(talk);
        more = hear_unasked(talk, err) < 0 ? -1
                                           : talk->talk->next(talk->talk->context, talk->until_us,
                                                              talk->from_fd, &text, err);
        talk->is_all = more == 0;
        if (more <= 0)
            break;
        if (advise_prompt(talk->advise, text, err) < 0 || say_turn(talk, text, err) < 0)
            more = -1;
        if (more > 0)
            more = await_answer(talk, err);
    }
    /* Nothing more to say, too, is what one says who was interrupted while he waited for it. */
    (void)await(talk, -1, 0, 0);
    if (talk->is_stopped)
        return ADVISE_INTERRUPTED;
    if (talk->is_all)
        return ADVISE_ENDED; /* whether or not it waited for that */
    /* Its box has the session's time, too: one that ends at the end of it did not leave. */
    if ((talk->is_gone || err->code == ERR_TIMEOUT) && clock_us() >= talk->until_us)
        return "deadline";
    if (talk->is_gone)
        return "the agent ended";
    if (err->code == ERR_TIMEOUT)
        return "idle";
    if (talk->is_flood)
        return "flood";
    return err->code == ERR_CONFLICT ? "turn budget" : NULL;
}

/* It knows that this is the end; what it says from here on is more than it was asked for. */
static int say_end(struct conversation *talk, struct err *err)
{
    struct json *json = json_object(&talk->mem);
    uint64_t until_us = clock_us() + LEAVE_MS * 1000ULL;
    struct str line;
    int got;

    json_put_text(&talk->mem, json, "type", "end");
    if (say(talk, json, err) < 0)
        return -1;
    (void)close(TAKE_FD(talk->to_fd));
    while ((got = hear(talk, until_us, &line, err)) > 0) {
        if (count_unasked(talk, err) < 0 || talk->advise->tally.is_ended)
            break;
        if (advise_note(talk->advise, &talk->mem, ADVISORY_IS_QUIESCENCE, "output_after_end", line,
                        err) < 0)
            return -1;
        forget(talk);
    }
    return got == 0 ? 0 : order_give(talk->orders[1], ORDER_CANCEL, 0, err);
}

/* ---- the box ---- */

static void *run_box(void *context)
{
    struct conversation *talk = context;

    talk->run_failed =
        govern_run(talk->govern, &talk->request, &talk->streams, talk->run, &talk->run_err);
    /* Whoever listens hears that there is nobody any more. */
    (void)close(TAKE_FD(talk->streams.out_fd));
    (void)close(TAKE_FD(talk->streams.in_fd));
    return NULL;
}

static int open_pipes(struct conversation *talk, struct err *err)
{
    int in[2], out[2];

    if (pipe2(in, O_CLOEXEC) < 0)
        return err_os(err, "making a pipe");
    talk->streams.in_fd = in[0];
    talk->to_fd = in[1];
    if (pipe2(out, O_CLOEXEC) < 0)
        return err_os(err, "making a pipe");
    talk->from_fd = out[0];
    talk->streams.out_fd = out[1];
    talk->streams.err_fd = -1;
    talk->streams.is_released = &talk->is_there;
    if (pipe2(talk->orders, O_CLOEXEC) < 0 || fcntl(talk->to_fd, F_SETFL, O_NONBLOCK) < 0 ||
        fcntl(talk->from_fd, F_SETFL, O_NONBLOCK) < 0 ||
        fcntl(talk->orders[0], F_SETFL, O_NONBLOCK) < 0)
        return err_os(err, "making a pipe");
    return 0;
}

static void conversation_done(struct conversation *talk)
{
    int *const fds[] = {&talk->to_fd,     &talk->from_fd,       &talk->orders[0],
                        &talk->orders[1], &talk->streams.in_fd, &talk->streams.out_fd};

    for (size_t i = 0; i < COUNT(fds); i++)
        if (*fds[i] >= 0)
            (void)close(TAKE_FD(*fds[i]));
    buf_done(&talk->got);
    arena_done(&talk->mem);
}

static void fill_request(struct conversation *talk, const struct request *request,
                         const struct advise_talk *how)
{
    struct arena *mem = &talk->run->mem;
    const char **argv = arena_array(mem, const char *, how->args.n + 2);
    const char **mounts = arena_array(mem, const char *, 4);
    size_t n = 0;

    argv[0] = ADVISORY_AGENT_TARGET;
    for (size_t i = 0; i < how->args.n; i++)
        argv[i + 1] = how->args.v[i];
    mounts[n++] = arena_printf(mem, "%s/agent:%s:ro", talk->advise->dir, ADVISORY_AGENT_TARGET);
    mounts[n++] =
        arena_printf(mem, "%s/sandbox/output:%s:ro", talk->advise->dir, ADVISORY_OUTPUT_TARGET);
    if (how->input)
        mounts[n++] = arena_printf(mem, "%s:%s:ro", how->input, ADVISORY_INPUT_TARGET);
    talk->request = *request;
    talk->request.kind = ACTION_RUN;
    talk->request.argv = (struct words){argv, how->args.n + 1};
    talk->request.mounts = (struct words){mounts, n};
    talk->request.network = NETWORK_NONE;
    talk->request.sockets_none = true;
    talk->request.advisory = true;
    talk->request.no_pool = true;
    talk->request.stdin_stream = true;
    talk->request.tty = false;
    if (!talk->request.workdir)
        talk->request.workdir = ADVISORY_SCRATCH_TARGET;
    talk->request.limits[LIMIT_WALL] = (uint64_t)talk->advise->terms.deadline_s * 1000;
    memcpy(talk->run->session_id, talk->advise->id, sizeof talk->run->session_id);
}

/* The rights of this thread are the box's thread's, too, and no signal is for it. */
static int start_box(struct conversation *talk, struct err *err)
{
    sigset_t all, before;
    int failed;

    execute_obey(talk->govern->execute, talk->orders[0]);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&talk->thread, NULL, run_box, talk);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed)
        return 0;
    errno = failed;
    return err_os(err, "making a thread for the box");
}

/* Only when the box is gone all of it is known. Where whoever counted was killed, it never is: the
 * session does not say so then, and does not count as one in which nothing was tried. One that
 * cannot be told is not ended. */
static int tell_box(struct conversation *talk, struct err *err)
{
    const struct outcome *outcome = &talk->run->outcome;
    bool begun = atomic_load(&talk->is_there);

    CRASH_POINT("advisory-box-gone");
    if (begun && !outcome->execs_counted)
        return 0;
    return advise_box_gone(talk->advise, begun, outcome->execs_refused, err) < 0
               ? err_in(err, "the agent tried to run a program %llu times",
                        (unsigned long long)outcome->execs_refused)
               : 0;
}

static int end_session(struct conversation *talk, const struct request *request, const char *how,
                       struct err *err)
{
    struct run closing;
    int failed;

    run_init(&closing);
    failed = govern_advise_end(talk->govern, request, talk->advise, how, &closing, err);
    run_done(&closing);
    return failed;
}

/* A session that began has an end, also where there is no way to speak with its agent. What is told
 * is why there is none. */
static int never_held(struct conversation *talk, const struct request *request)
{
    struct err err;

    execute_obey(talk->govern->execute, -1);
    if (tell_box(talk, &err) == 0)
        (void)end_session(talk, request, ADVISE_FAILED, &err); /* then somebody gives it one */
    return -1;
}

static int hold_conversation(struct conversation *talk, const struct request *request,
                             const struct advise_terms *terms, struct err *err)
{
    struct err why = {0}, leaving;
    const char *end;

    talk->until_us = clock_us() + (uint64_t)talk->advise->terms.deadline_s * 1000000;
    fill_request(talk, request, talk->talk);
    if (open_pipes(talk, err) < 0 || start_box(talk, err) < 0)
        return never_held(talk, request);
    end = converse(talk, terms, &why);
    if (talk->is_stopped || say_end(talk, &leaving) < 0)
        (void)!order_give(talk->orders[1], ORDER_CANCEL, 0, err); /* it ends at its deadline */
    (void)pthread_join(talk->thread, NULL);
    execute_obey(talk->govern->execute, -1);
    if (tell_box(talk, err) < 0)
        return -1;
    CRASH_POINT("advisory-box-told");
    if (end_session(talk, request, end ? end : ADVISE_FAILED, err) < 0)
        return -1;
    if (talk->run_failed) {
        *err = talk->run_err;
        return -1;
    }
    if (!end)
        *err = why;
    return end ? 0 : -1;
}

int govern_advise_run(struct govern *govern, const struct request *request,
                      const struct advise_terms *terms, const struct advise_talk *talk,
                      struct run *run, struct advise **out, struct err *err)
{
    AUTO(advise) struct advise *advise = NULL;
    struct conversation conversation = {
        .govern = govern,
        .talk = talk,
        .mem = ARENA(ADVISORY_MEMORY_MAX),
        .run = run,
        .to_fd = -1,
        .from_fd = -1,
        .orders = {-1,            -1          },
        .streams = { .in_fd = -1, .out_fd = -1, .err_fd = -1},
        .got = BUF(2 * LINE_BYTES_MAX)
    };
    int failed;

    if (agent_begin(govern, request, terms, talk, &run->mem, &advise, err) < 0)
        return -1;
    conversation.advise = advise;
    failed = hold_conversation(&conversation, request, terms, err);
    conversation_done(&conversation);
    (void)unlink(arena_printf(&run->mem, "%s/agent", advise->dir)); /* its hash stays */
    *out = TAKE(advise);
    return failed;
}
