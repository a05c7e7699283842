/* SPDX-License-Identifier: Apache-2.0 */

/* brig sandbox exec: one governed run, from the command line to its exit status. */

#include "surface/cli/sandbox.h"

#include "model/run.h"
#include "surface/view/view.h"

#include <string.h>
#include <unistd.h>

void terminal_raw(struct raw_terminal *terminal)
{
    struct termios raw;

    if (tcgetattr(STDIN_FILENO, &terminal->before) < 0)
        return; /* not a terminal: the command gets one all the same */
    raw = terminal->before;
    cfmakeraw(&raw);
    terminal->changed = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

void terminal_restore(const struct raw_terminal *terminal)
{
    if (terminal->changed)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal->before);
}

/* What belongs to the sandbox is as it was made; what belongs to a kept one makes no sense for
 * one that ends with its command. */
int sandbox_check_exec(const struct invocation *inv, struct err *err)
{
    static const char *const of_sandbox[] = {"--provider",  "--profile",
                                             "--image",     "--policy",
                                             "--overlay",   "--cpu",
                                             "--memory",    "--pids",
                                             "--disk",      "--inodes",
                                             "--mount",     "--network",
                                             "--workspace", "--allow-protected",
                                             "--sockets",   "--user"};

    for (size_t i = 0; inv->subject && i < inv->value_n; i++)
        for (size_t j = 0; j < COUNT(of_sandbox); j++)
            if (strcmp(inv->values[i].option->name, of_sandbox[j]) == 0)
                return err_set(err, ERR_INVALID,
                               "%s belongs to the sandbox, which is as it was made; make another "
                               "one with \"%s sandbox create %s ...\"",
                               of_sandbox[j], inv->program, of_sandbox[j]);
    if (!inv->subject && (option_flag(inv, "--keep") || option_flag(inv, "--detach")))
        return err_set(err, ERR_INVALID, "%s is for a kept sandbox; this one ends with its command",
                       option_flag(inv, "--keep") ? "--keep" : "--detach");
    return 0;
}

/* By the standing policy and nothing else. */
static int check_elevated(const struct invocation *inv, struct err *err)
{
    static const char *const others[] = {"--policy", "--overlay", "--profile", "--provider",
                                         "--image"};

    if (!option_flag(inv, "--elevated"))
        return 0;
    if (inv->subject)
        return err_set(err, ERR_INVALID, "--elevated runs on this machine, not in a sandbox");
    for (size_t i = 0; i < COUNT(others); i++)
        for (size_t j = 0; j < inv->value_n; j++)
            if (strcmp(inv->values[j].option->name, others[i]) == 0)
                return err_set(err, ERR_INVALID,
                               "--elevated goes by the standing policy alone; leave out %s",
                               others[i]);
    return 0;
}

static int run_in_kept(struct sandbox_call *call, const struct streams *streams, struct run *run,
                       struct err *err)
{
    call->request.sandbox = call->sandbox;
    return govern_exec(call->govern, &call->request, streams, run, err);
}

/* It runs on; what there is to say of its end comes with its outcome. */
static int print_detached(struct invocation *inv, const struct run *run)
{
    if (inv->json)
        return cli_json(inv, view_detached(&inv->mem, run));
    (void)fprintf(inv->out, "%s\n", run->id);
    return 0;
}

void sandbox_closing_words(const struct invocation *inv, const struct run *run)
{
    sandbox_warn_protected(inv, run);
    /* Quiet is for those who want the command's words only; a denial has no others. */
    if (!inv->json && (!option_flag(inv, "--quiet") || run->verdict.kind != VERDICT_ALLOW))
        sandbox_closing_line(inv, run);
}

int run_sandbox_exec(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct streams streams = {.in_fd = STDIN_FILENO, .out_fd = -1, .err_fd = -1};
    struct raw_terminal terminal = {.changed = false};
    struct run run;
    struct err err;
    int status;
    int failed;

    if (sandbox_check_exec(inv, &err) < 0 || check_elevated(inv, &err) < 0)
        return cli_error(inv, &err);
    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    call.request.stdin_stream = true;
    streams.keep = inv->json;
    if (!inv->json) {
        streams.out_fd = STDOUT_FILENO;
        streams.err_fd = STDERR_FILENO;
    }
    if (option_flag(inv, "--detach")) {
        call.request.stdin_stream = false;
        call.request.detach = true;
        streams.in_fd = -1;
    }
    run_init(&run);
    if (call.request.tty && streams.in_fd >= 0)
        terminal_raw(&terminal);
    failed = inv->subject ? run_in_kept(&call, &streams, &run, &err)
             : option_flag(inv, "--elevated")
                 ? govern_elevate(call.govern, &call.request, &streams, &run, &err)
                 : govern_run(call.govern, &call.request, &streams, &run, &err);
    terminal_restore(&terminal);
    if (failed) {
        status = cli_error(inv, &err);
    } else if (run.outcome.detached) {
        status = print_detached(inv, &run);
    } else {
        status = sandbox_status(inv, &run);
        sandbox_closing_words(inv, &run);
        if (inv->json && cli_json(inv, view_run(&inv->mem, &run)) != 0)
            status = cli_status(inv, ERR_OS);
    }
    run_done(&run);
    return status;
}
