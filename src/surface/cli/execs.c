/* SPDX-License-Identifier: Apache-2.0 */

/* brig sandbox logs, attach, ps: the commands of a kept sandbox, after their start. */

#include "surface/cli/sandbox.h"

#include "lib/base/buf.h"
#include "lib/base/io.h"
#include "lib/json/json.h"
#include "model/run.h"
#include "surface/view/view.h"

#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLLOW_PAUSE_MS 50
#define TAIL_BYTES_MAX (1UL << 20)

/* ---- finding one ---- */

struct exec_search {
    struct invocation *inv;
    const char *wanted; /* the beginning of its id; "": the newest detached one */
    struct kept_exec found;
    unsigned matches;
};

static int on_candidate(void *context, const struct kept_exec *exec, struct err *err)
{
    struct exec_search *search = context;

    (void)err;
    if (!exec->detached || strncmp(exec->id, search->wanted, strlen(search->wanted)) != 0)
        return 0;
    search->matches++;
    if (search->found.id && search->found.began_at > exec->began_at)
        return 0;
    search->found = *exec;
    search->found.id = arena_text(&search->inv->mem, str_of(exec->id));
    return 0;
}

/* The detached command that the operands name. */
static int find_exec(struct invocation *inv, struct sandbox_call *call, const char **out,
                     struct err *err)
{
    struct exec_search search = {.inv = inv,
                                 .wanted = inv->operands.n > 1 ? inv->operands.v[1] : ""};
    const char *id = NULL;

    if (sandbox_find(inv, call->govern, inv->operands.v[0], &id, err) < 0 ||
        execute_exec_each(govern_execute(call->govern), id, on_candidate, &search, err) < 0)
        return -1;
    if (search.matches == 0)
        return err_set(err, ERR_NOT_FOUND,
                       "sandbox %s has no detached command%s%.40s; \"%s sandbox ps %s\" shows "
                       "those there are",
                       id, *search.wanted ? " " : "", search.wanted, inv->program, id);
    if (search.matches > 1 && *search.wanted)
        return err_set(err, ERR_CONFLICT, "%u commands begin with %.40s; write more of the id",
                       search.matches, search.wanted);
    *out = search.found.id;
    return 0;
}

/* ---- logs ---- */

struct position {
    uint64_t at[2];
};

static int print_new(struct invocation *inv, struct execute *execute, const char *exec,
                     struct position *position, struct err *err)
{
    for (unsigned stream = 0; stream < 2; stream++) {
        AUTO_BUF struct buf text = BUF(TAIL_BYTES_MAX);
        uint64_t from = position->at[stream], next = 0;
        FILE *to = stream == 0 ? inv->out : inv->err;

        if (execute_exec_read(execute, exec, stream, &from, &text, &next, err) < 0)
            return -1;
        if (from > position->at[stream])
            (void)fprintf(inv->err, "%s: %llu bytes of %s are no longer there\n", inv->program,
                          (unsigned long long)(from - position->at[stream]),
                          stream == 0 ? "its output" : "its error output");
        if (text.n && fwrite(text.p, 1, text.n, to) != text.n)
            return err_set(err, ERR_OS, "writing the output");
        (void)fflush(to);
        position->at[stream] = next;
    }
    return 0;
}

int run_sandbox_logs(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    bool follow = option_flag(inv, "--follow");
    struct position position = {
        {0, 0}
    };
    struct kept_exec exec;
    const char *id = NULL;
    struct err err;
    int status;

    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    if (find_exec(inv, &call, &id, &err) < 0)
        return cli_error(inv, &err);
    do {
        /* Looked at before it is read: what it wrote until then is in the log. */
        if (execute_exec_look(govern_execute(call.govern), id, &exec, &err) < 0 ||
            print_new(inv, govern_execute(call.govern), id, &position, &err) < 0)
            return cli_error(inv, &err);
        if (follow && exec.running)
            (void)poll(NULL, 0, FOLLOW_PAUSE_MS);
    } while (follow && exec.running);
    return 0;
}

/* ---- attach ---- */

int run_sandbox_attach(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct streams streams = {
        .in_fd = STDIN_FILENO, .out_fd = STDOUT_FILENO, .err_fd = STDERR_FILENO};
    struct raw_terminal terminal = {.changed = false};
    struct kept_exec exec;
    const char *id = NULL;
    struct err err;
    int status;
    int failed;

    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    if (find_exec(inv, &call, &id, &err) < 0 ||
        execute_exec_look(govern_execute(call.govern), id, &exec, &err) < 0)
        return cli_error(inv, &err);
    if (exec.tty)
        terminal_raw(&terminal);
    failed = execute_exec_attach(govern_execute(call.govern), id, &streams, &exec, &err);
    terminal_restore(&terminal);
    if (failed)
        return cli_error(inv, &err);
    if (!exec.ended) {
        (void)fprintf(inv->err, "%s: left %s, which runs on\n", inv->program, id);
        return 0;
    }
    if (govern_sweep(call.govern, &err) < 0)
        return cli_error(inv, &err);
    if (exec.reason == REASON_LIMIT_TIME)
        return 124;
    return WIFSIGNALED(exec.status) ? 128 + WTERMSIG(exec.status) : WEXITSTATUS(exec.status);
}

/* ---- ps ---- */

struct table {
    struct invocation *inv;
    struct json *list;
    size_t n;
};

static int on_exec(void *context, const struct kept_exec *exec, struct err *err)
{
    struct table *table = context;
    struct arena *mem = &table->inv->mem;

    (void)err;
    if (table->inv->json) {
        json_push(table->list, view_exec(mem, exec));
        return 0;
    }
    if (table->n++ == 0)
        (void)fprintf(table->inv->out, "%-20s %-8s %-8s %s\n", "EXEC", "STATE", "HOW", "SINCE");
    (void)fprintf(table->inv->out, "%-20s %-8s %-8s %s\n", exec->id, view_exec_state(exec),
                  exec->detached ? "detached" : "attached", view_moment(mem, exec->began_at));
    return 0;
}

static int on_process(void *context, const struct kept_process *process, struct err *err)
{
    struct table *table = context;

    (void)err;
    if (table->inv->json) {
        json_push(table->list, view_process(&table->inv->mem, process));
        return 0;
    }
    if (table->n++ == 0)
        (void)fprintf(table->inv->out, "%7s %-15s %-5s %9s %10s %s\n", "PID", "EXEC", "STATE",
                      "CPU", "MEMORY", "COMMAND");
    (void)fprintf(table->inv->out, "%7d %-15s %-5c %7llums %9lluK ", process->pid, process->exec,
                  process->state, (unsigned long long)(process->cpu_us / 1000U),
                  (unsigned long long)(process->memory_bytes / 1024U));
    print_escaped(table->inv->out, process->command);
    (void)fputc('\n', table->inv->out);
    return 0;
}

int run_sandbox_ps(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct table execs = {.inv = inv, .list = json_array(&inv->mem)};
    struct table processes = {.inv = inv, .list = json_array(&inv->mem)};
    struct json *result = json_object(&inv->mem);
    const char *id = NULL;
    struct err err;
    int status;

    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    if (sandbox_find(inv, call.govern, inv->operands.v[0], &id, &err) < 0 ||
        execute_exec_each(govern_execute(call.govern), id, on_exec, &execs, &err) < 0 ||
        execute_kept_processes(govern_execute(call.govern), id, on_process, &processes, &err) < 0)
        return cli_error(inv, &err);
    json_put_text(&inv->mem, result, "sandbox_id", id);
    json_put(result, "execs", execs.list);
    json_put(result, "processes", processes.list);
    return inv->json ? cli_json(inv, result) : 0;
}
