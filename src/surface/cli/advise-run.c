/* SPDX-License-Identifier: Apache-2.0 */

/* brig advisory run: a conversation of which people see client_view, and nothing else. */

#include "flow/advise/advise.h"

#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "surface/cli/advise.h"
#include "surface/cli/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* What an agent begins with when nobody says otherwise: the invariants, as sentences. */
static const char builtin_constitution[] =
    "You are an advisor. Humans are the only authority.\n"
    "You do not act: you write no file, run no command, open no connection.\n"
    "Answer every turn with one advisory envelope, as JSON on one line.\n"
    "State each claim once, as a fact, a hypothesis or an assumption.\n"
    "Label every sentence of client_view with [FACT], [HYPOTHESIS] or [ASSUMPTION].\n"
    "Give no orders, claim no permission, announce no action.\n"
    "What can only be done by changing a file you propose as an action request; a custodian "
    "decides.\n";

#define SAID_BYTES_MAX (64UL * 1024 * 1024) /* of client_view, in what --json prints */

struct chat {
    struct invocation *inv;
    struct words prompts; /* of the command line; or lines of standard input */
    size_t asked;
    struct buf line;
    char piece[4096]; /* of standard input, and what was taken out of it */
    size_t piece_n, taken;
    struct json *turns;
    size_t bytes;     /* of what is in them */
    bool is_waiting;  /* for a person's word on an action */
    unsigned aborted; /* actions on which it was no, or none */
    bool is_unread;   /* what was said did not reach its reader in time */

    int stop_fd;       /* readable once a signal says that this is the end */
    int agent_fd;      /* hangs up when there is no agent any more; -1: that was said */
    uint64_t until_us; /* of the session, by clock_us() */
    sigset_t before;
};

/* ---- signals ---- */

/* From here on a signal is something to read, and a reader that is gone an error of the write: the
 * session gets its end. */
static int hold_signals(struct chat *chat, struct err *err)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t ours, held;

    (void)sigemptyset(&ours);
    for (size_t i = 0; i < COUNT(ending); i++)
        (void)sigaddset(&ours, ending[i]);
    held = ours;
    (void)sigaddset(&held, SIGPIPE);
    if (sigprocmask(SIG_BLOCK, &held, &chat->before) < 0)
        return err_os(err, "holding back signals");
    chat->stop_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    return chat->stop_fd < 0 ? err_os(err, "listening for signals") : 0;
}

/* The first that came, or 0. What was acted on does not act again; the next one does, as ever. */
static int release_signals(struct chat *chat)
{
    const struct timespec none = {0};
    struct signalfd_siginfo info;
    sigset_t pipe_only;
    int first = 0;

    while (read(chat->stop_fd, &info, sizeof info) == (ssize_t)sizeof info)
        first = first ? first : (int)info.ssi_signo;
    (void)close(TAKE_FD(chat->stop_fd));
    (void)sigemptyset(&pipe_only);
    (void)sigaddset(&pipe_only, SIGPIPE);
    (void)sigtimedwait(&pipe_only, NULL, &none);
    (void)sigprocmask(SIG_SETMASK, &chat->before, NULL);
    return first;
}

/* False: this is the end, whatever comes. */
static bool await(const struct chat *chat, int fd, short events)
{
    struct pollfd polled[] = {
        {.fd = chat->stop_fd, .events = POLLIN},
        {.fd = fd,            .events = events},
    };

    int n;

    do
        n = poll(polled, COUNT(polled), clock_ms_until(chat->until_us));
    while (n < 0 && errno == EINTR);
    return n > 0 && !polled[0].revents;
}

/* ---- what people read ---- */

/* A reader that is slow is waited for until this is the end: so much at a time can be written
 * without waiting. */
static void show(struct chat *chat, FILE *to, struct str text)
{
    while (text.n && await(chat, fileno(to), POLLOUT)) {
        size_t n = text.n < PIPE_BUF ? text.n : PIPE_BUF;

        if (fwrite(text.p, 1, n, to) != n || fflush(to) != 0)
            return;
        text.p += n;
        text.n -= n;
    }
    chat->is_unread |= text.n > 0;
}

/* Whoever thinks about the next turn is told when nobody will hear it. */
static void tell_gone(struct chat *chat)
{
    chat->agent_fd = -1;
    show(chat, chat->inv->err,
         STR_LIT("brig: the agent has ended; the next line, or the end of the input, ends the "
                 "session\n"));
}

/* ---- what is said to it ---- */

/* As await(). */
static bool await_input(struct chat *chat)
{
    for (;;) {
        struct pollfd polled[] = {
            {.fd = chat->stop_fd,  .events = POLLIN},
            {.fd = STDIN_FILENO,   .events = POLLIN},
            {.fd = chat->agent_fd, .events = 0     },
        };
        int n = poll(polled, COUNT(polled), clock_ms_until(chat->until_us));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || polled[0].revents || polled[1].revents)
            return n > 0 && !polled[0].revents;
        tell_gone(chat);
    }
}

/* 1: there is something in the piece; 0: nothing more will come. */
static int read_piece(struct chat *chat, struct err *err)
{
    ssize_t n;

    while (chat->taken == chat->piece_n) {
        if (!await_input(chat)) {
            buf_clear(&chat->line); /* half a line is none */
            return clock_us() < chat->until_us
                       ? 0
                       : err_set(err, ERR_TIMEOUT, "nothing more was said in time");
        }
        n = read(STDIN_FILENO, chat->piece, sizeof chat->piece);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return err_os(err, "reading standard input");
        if (n == 0)
            return 0;
        chat->taken = 0;
        chat->piece_n = n > 0 ? (size_t)n : 0;
    }
    return 1;
}

static int next_line(struct chat *chat, struct str *out, struct err *err)
{
    char byte = 0;
    int more;

    buf_clear(&chat->line);
    while ((more = read_piece(chat, err)) > 0 && (byte = chat->piece[chat->taken++]) != '\n')
        if (buf_add_byte(&chat->line, byte, err) < 0)
            return err_set(err, ERR_LIMIT, "a turn of more than %lu KiB",
                           ADVISE_TURN_BYTES_MAX / KIB);
    if (more < 0)
        return -1;
    if (!more && !chat->line.n)
        return 0;
    *out = buf_str(&chat->line);
    if (!str_is_utf8(*out))
        return err_set(err, ERR_INVALID, "a turn that is no UTF-8 text");
    return 1;
}

static int next(void *context, uint64_t until_us, int agent_fd, struct str *out, struct err *err)
{
    struct chat *chat = context;

    chat->until_us = until_us;
    chat->agent_fd = agent_fd;
    if (chat->is_unread)
        return err_set(err, ERR_TIMEOUT, "nobody read in time what was said");
    if (ferror(chat->inv->out)) {
        clearerr(chat->inv->out); /* it is told here */
        return err_set(err, ERR_OS, "writing to standard output: nobody reads it");
    }
    if (!chat->prompts.n)
        return next_line(chat, out, err);
    if (chat->asked >= chat->prompts.n)
        return 0;
    *out = str_of(chat->prompts.v[chat->asked++]);
    return 1;
}

static void show_answer(struct chat *chat, struct str client_view)
{
    AUTO_FREE char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);

    if (!to)
        return;
    print_prose(to, client_view);
    (void)fputc('\n', to);
    if (fclose(to) == 0)
        show(chat, chat->inv->out, (struct str){text, n});
}

static void on_answer(void *context, const struct advise_answer *answer)
{
    struct chat *chat = context;
    struct arena *mem = &chat->inv->mem;
    struct json *json;

    if (!chat->inv->json) {
        show_answer(chat, answer->client_view);
        return;
    }
    json = json_object(mem);
    /* Of a long session the report says what was found; "advisory report" has the rest. */
    chat->bytes += answer->client_view.n;
    if (chat->bytes <= SAID_BYTES_MAX)
        json_put(json, "client_view", json_text(mem, answer->client_view));
    json_put_text(mem, json, "drift", advisory_drift_code(answer->result.drift));
    json_put_int(mem, json, "first_event", (int64_t)answer->first_seq);
    json_put_int(mem, json, "last_event", (int64_t)answer->last_seq);
    json_put_bool(mem, json, "valid", answer->result.is_valid);
    json_put_text(mem, json, "verdict", advisory_verdict_name(answer->result.verdict));
    json_push(chat->turns, json);
}

/* As Brig reads it, and then as the agent put it: for the person at the terminal. The word itself
 * is given elsewhere, by a custodian. */
static void show_pending(FILE *to, const struct advise *advise, const struct advise_action *action)
{
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    struct json *reading = NULL;
    struct err err;

    if (advise_action_reading(advise, &mem, action, &reading, &err) < 0) {
        print_escaped(to, str_of(err.text));
        (void)fputc('\n', to);
        return;
    }
    print_action_shown(to, &mem, advise, action, reading);
    print_action_decide(to, advise, action);
}

static void write_action(FILE *to, const struct advise *advise, const struct advise_action *action)
{
    (void)fprintf(to, "brig: action %s is %s", action->id, advise_state_name(action->state));
    if (*action->why) {
        (void)fputs(": ", to);
        print_escaped(to, str_of(action->why));
    }
    (void)fputc('\n', to);
    if (action->state == ADVISE_PENDING)
        show_pending(to, advise, action);
}

static void on_action(void *context, const struct advise *advise,
                      const struct advise_action *action)
{
    struct chat *chat = context;
    AUTO_FREE char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);

    chat->aborted += chat->is_waiting && !action->is_done;
    chat->is_waiting = action->state == ADVISE_PENDING;
    if (!to)
        return;
    write_action(to, advise, action);
    if (fclose(to) == 0)
        show(chat, chat->inv->err, (struct str){text, n});
}

static int read_constitution(struct invocation *inv, struct str *out, struct err *err)
{
    const char *path = option_text(inv, "--constitution");
    AUTO_BUF struct buf text = BUF(ADVISE_CONSTITUTION_MAX);

    *out = str_of(builtin_constitution);
    if (!path)
        return 0;
    if (file_read(AT_FDCWD, path, &text, err) < 0)
        return -1;
    *out = arena_str(&inv->mem, buf_str(&text));
    return 0;
}

static unsigned seconds(const struct invocation *inv, const char *name)
{
    uint64_t ms = option_number(inv, name);

    return ms == 0 ? 0 : ms < 1000 ? 1U : ms / 1000 > INT32_MAX ? INT32_MAX : (unsigned)(ms / 1000);
}

/* What its operator got wrong is no run of the agent: looked at before there is a session. Longer
 * than a turn may be no word of a command line is. */
static int check_prompts(const struct words *prompts, struct err *err)
{
    for (size_t i = 0; i < prompts->n; i++)
        if (!str_is_utf8(str_of(prompts->v[i])))
            return err_set(err, ERR_INVALID, "--prompt: a turn that is no UTF-8 text");
    return 0;
}

static int read_terms(struct invocation *inv, struct advise_terms *terms, struct err *err)
{
    const char *program = inv->operands.v[0];
    const char *slash = strrchr(program, '/');
    const char *name = option_text(inv, "--agent-id");

    *terms = (struct advise_terms){
        .agent_id = name    ? name
                    : slash ? slash + 1
                            : program,
        .requester = arena_printf(&inv->mem, "uid:%u", (unsigned)getuid()),
        .turns_max = option_number(inv, "--turns") > ADVISE_TURNS_MAX
                         ? ADVISE_TURNS_MAX + 1
                         : (unsigned)option_number(inv, "--turns"),
        .deadline_s = seconds(inv, "--timeout"),
        .idle_s = seconds(inv, "--idle"),
        .action_s = seconds(inv, "--action-timeout"),
        .strict_seed = option_flag(inv, "--strict-seed"),
    };
    return read_constitution(inv, &terms->constitution, err);
}

/* ---- the end ---- */

/* The agent was never there to be spoken with. */
static bool is_unstarted(const struct run *run)
{
    return run->outcome.reason == REASON_COMMAND_NOT_FOUND ||
           run->outcome.reason == REASON_COMMAND_NOT_EXECUTABLE ||
           run->outcome.reason == REASON_SANDBOX_FAILED;
}

static bool is_ended_by(const struct advise *advise, const char *why)
{
    return strcmp(advise->tally.ended_by, why) == 0;
}

/* The gravest first. signo: what came meanwhile, or 0; behind the end of the conversation it ended
 * nothing. */
static int end_status(const struct invocation *inv, const struct chat *chat,
                      const struct advise *advise, const struct run *run, int signo)
{
    const struct advise_tally *tally = &advise->tally;

    if (is_ended_by(advise, ADVISE_INTERRUPTED))
        return 128 + signo;
    if (is_unstarted(run))
        return sandbox_status(inv, run);
    if (!advise_is_clean(tally))
        return ADVISORY_FOUND_STATUS;
    if (tally->answered < tally->prompts)
        return ADVISORY_UNANSWERED_STATUS;
    if (!is_ended_by(advise, ADVISE_ENDED))
        return cli_status(inv, ERR_LIMIT);
    return chat->aborted ? ADVISORY_EXIT_ABORTED : 0;
}

static struct json *box_json(struct arena *mem, const struct run *run)
{
    const struct outcome *outcome = &run->outcome;
    bool denied = run->verdict.kind != VERDICT_ALLOW; /* interrupted while it was built */
    struct json *json = json_object(mem);

    json_put(json, "exit_code",
             denied || outcome->signal ? json_null(mem) : json_int(mem, outcome->exit_code));
    json_put_text(mem, json, "reason_code",
                  reason_code(denied ? run->verdict.reason : outcome->reason));
    json_put(json, "signal", outcome->signal ? json_int(mem, outcome->signal) : json_null(mem));
    return json;
}

static void say_unstarted(const struct invocation *inv, const struct outcome *outcome)
{
    (void)fprintf(inv->err, "; %s: ", reason_code(outcome->reason));
    print_escaped(inv->err,
                  str_of(outcome->started && outcome->failure ? outcome->failure
                                                              : reason_text(outcome->reason)));
}

/* Why it was not all that it should have been, for people. */
static void say_why(const struct invocation *inv, const struct chat *chat,
                    const struct advise *advise, const struct run *run)
{
    const struct advise_tally *tally = &advise->tally;

    if (!is_ended_by(advise, ADVISE_ENDED))
        (void)fprintf(inv->err, "; ended by: %s", tally->ended_by);
    if (is_unstarted(run))
        say_unstarted(inv, &run->outcome);
    else if (run->outcome.signal)
        (void)fprintf(inv->err, "; signal %d ended the agent", run->outcome.signal);
    else if (run->outcome.exit_code)
        (void)fprintf(inv->err, "; the agent's exit status was %d", run->outcome.exit_code);
    if (tally->answered < tally->prompts)
        (void)fputs("; the agent left a turn without an answer", inv->err);
    if (chat->aborted)
        (void)fprintf(inv->err, "; actions nobody let happen: %u", chat->aborted);
    if (!advise_is_clean(tally))
        (void)fprintf(inv->err, "; \"brig advisory report %s\" says what was found", advise->id);
}

static int print_end(struct invocation *inv, struct chat *chat, const struct advise *advise,
                     const struct run *run, int signo)
{
    int status = end_status(inv, chat, advise, run, signo);

    if (inv->json) {
        struct json *doc = advise_json(&inv->mem, advise);

        json_put(doc, "box", box_json(&inv->mem, run));
        json_put_text(&inv->mem, doc, "box_receipt_id", run->closing.id);
        json_put(doc, "said", chat->turns);
        (void)cli_json(inv, doc);
        return status;
    }
    (void)fprintf(inv->err, "brig: session %s: %llu turns, %llu events, drift %s", advise->id,
                  (unsigned long long)advise->tally.turns, (unsigned long long)advise->tally.events,
                  advisory_drift_code(advise->tally.drift));
    say_why(inv, chat, advise, run);
    (void)fputc('\n', inv->err);
    return status;
}

/* Its own box was refused, or it could not be spoken with: the session has its end all the same. */
static int print_failure(struct invocation *inv, const struct run *run, const struct err *err)
{
    return run->verdict.kind != VERDICT_ALLOW && run->intent.id[0] ? sandbox_refused(inv, run)
                                                                   : cli_error(inv, err);
}

static int talk_to(struct invocation *inv, struct sandbox_call *call,
                   const struct advise_terms *terms)
{
    AUTO(advise) struct advise *advise = NULL;
    struct chat chat = {
        .inv = inv,
        .prompts = option_words(inv, "--prompt"),
        .line = BUF(ADVISE_TURN_BYTES_MAX),
        .turns = json_array(&inv->mem),
        .stop_fd = -1,
        .agent_fd = -1,
    };
    struct advise_talk talk = {
        .program = inv->operands.v[0],
        .args = {inv->operands.v + 1, inv->operands.n - 1},
        .input = option_text(inv, "--input"),
        .context = &chat,
        .next = next,
        .on_answer = on_answer,
        .on_action = on_action
    };
    struct run run;
    struct err err;
    int failed, signo, status;

    if (hold_signals(&chat, &err) < 0)
        return cli_error(inv, &err);
    talk.stop_fd = chat.stop_fd;
    run_init(&run);
    failed = govern_advise_run(call->govern, &call->request, terms, &talk, &run, &advise, &err);
    signo = release_signals(&chat);
    if (failed)
        status = print_failure(inv, &run, &err);
    else if (run.verdict.kind != VERDICT_ALLOW && !is_ended_by(advise, ADVISE_INTERRUPTED))
        status = sandbox_refused(inv, &run);
    else
        status = print_end(inv, &chat, advise, &run, signo);
    run_done(&run);
    buf_done(&chat.line);
    return status;
}

int run_advisory_run(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct words prompts = option_words(inv, "--prompt");
    struct advise_terms terms;
    struct err err;
    int status;

    inv->mem.max = ADVISE_MEMORY_MAX; /* all that is said in a long session */
    if (check_prompts(&prompts, &err) < 0 || read_terms(inv, &terms, &err) < 0)
        return cli_error(inv, &err);
    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    return talk_to(inv, &call, &terms);
}
