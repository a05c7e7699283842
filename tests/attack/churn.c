/* SPDX-License-Identifier: Apache-2.0 */

/* Makes, uses and ends sandboxes, many times and several at once, in processes that stay:
 *
 *     churn STATE CYCLES WORKERS [descriptor|memory]
 *
 * Sixteen cycles in turn are eight one-shot runs and eight kept sandboxes that are used and then
 * destroyed, paused before, left to their time to live, destroyed with a command in them, or lose
 * their outer process. Every worker looks at its own descriptors and memory after a few rounds and
 * again at its end: a line "worker N: descriptors A B, children A B, heap bytes A B" each. The
 * fourth argument makes every cycle lose one of these, to show that it would be seen. Whatever
 * fails is printed, and the status is 1. box must lie beside. */

#include "flow/decide/decide.h"
#include "flow/govern.h"
#include "lib/base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUND 16U /* cycles until all kinds have been */
#define WARM_UP (4 * ROUND)
#define LEFT_TTL_MS 60
#define LEAKED_BYTES 4096
#define SETTLE_TRIES 1000U
#define SETTLE_MORE 5 /* looks after the last child has ended */
#define SETTLE_PAUSE_MS 20

enum loss { LOSE_NOTHING, LOSE_DESCRIPTOR, LOSE_MEMORY };

struct worker {
    struct govern *govern;
    unsigned failures;
};

static void say_failed(struct worker *worker, const char *what, const char *why)
{
    worker->failures++;
    (void)printf("failed: %s: %s\n", what, why);
}

static struct request a_request(const char *const *argv, size_t argc)
{
    return (struct request){
        .principal = "uid:0",
        .tenant = "default",
        .provider = "local",
        .image = "host",
        .name = "",
        .argv = {argv,             argc            },
        .lifetime = {.ttl_ms = 600000, .max_ms = 600000},
    };
}

static const struct streams no_streams = {.in_fd = -1, .out_fd = -1, .err_fd = -1};

/* What a command in a sandbox may answer whose time is over, besides having run. */
static bool is_end(const struct run *run)
{
    return run->verdict.reason == REASON_SANDBOX_UNKNOWN ||
           run->verdict.reason == REASON_SANDBOX_FAILED ||
           run->outcome.reason == REASON_SANDBOX_FAILED ||
           run->outcome.reason == REASON_SANDBOX_EXPIRED;
}

static void run_one_shot(struct worker *worker)
{
    static const char *const argv[] = {"true", NULL};
    struct request request = a_request(argv, 1);
    struct run run;
    struct err err;

    run_init(&run);
    if (govern_run(worker->govern, &request, &no_streams, &run, &err) < 0)
        say_failed(worker, "run", err.text);
    else if (run.verdict.kind != VERDICT_ALLOW || !run.outcome.ended || run.outcome.exit_code != 0)
        say_failed(worker, "run", reason_code(run.verdict.reason));
    run_done(&run);
}

static bool create(struct worker *worker, uint64_t ttl_ms, char id[ID_BYTES])
{
    struct request request = a_request(NULL, 0);
    struct run run;
    struct err err;
    bool made = false;

    if (ttl_ms)
        request.lifetime.ttl_ms = ttl_ms;
    run_init(&run);
    if (govern_create(worker->govern, &request, &run, &err) < 0)
        say_failed(worker, "create", err.text);
    else if (run.verdict.kind != VERDICT_ALLOW || run.outcome.reason != REASON_NONE)
        say_failed(worker, "create", run.verdict.text ? run.verdict.text : run.outcome.failure);
    else
        made = true;
    memcpy(id, run.sandbox_id, ID_BYTES);
    run_done(&run);
    return made;
}

static void exec_in(struct worker *worker, const char *id, bool detach, bool may_be_over)
{
    static const char *const quick[] = {"true", NULL};
    static const char *const slow[] = {"sleep", "300", NULL};
    struct request request = detach ? a_request(slow, 2) : a_request(quick, 1);
    struct run run;
    struct err err;

    request.sandbox = id;
    request.detach = detach;
    run_init(&run);
    if (govern_exec(worker->govern, &request, &no_streams, &run, &err) < 0) {
        if (!may_be_over || err.code != ERR_NOT_FOUND)
            say_failed(worker, "exec", err.text);
    } else if (!(may_be_over && is_end(&run)) &&
               (run.verdict.kind != VERDICT_ALLOW || !run.outcome.started ||
                run.outcome.exit_code != 0)) {
        say_failed(worker, "exec", run.verdict.text ? run.verdict.text : "it did not end well");
    }
    run_done(&run);
}

static void change(struct worker *worker, enum action_kind kind, const char *id)
{
    struct request request = a_request(NULL, 0);
    struct run run;
    struct err err;

    request.kind = kind;
    request.sandbox = id;
    run_init(&run);
    if (govern_change(worker->govern, &request, &run, &err) < 0)
        say_failed(worker, action_name(kind), err.text);
    else if (run.outcome.reason != REASON_NONE)
        say_failed(worker, action_name(kind), run.outcome.failure);
    run_done(&run);
}

static pid_t parent_of(int pid)
{
    AUTO_BUF struct buf text = BUF(16384);
    char path[64];
    struct err ignored;
    const char *at;

    (void)snprintf(path, sizeof path, "/proc/%d/status", pid);
    if (file_read(AT_FDCWD, path, &text, &ignored) < 0)
        return -1;
    at = strstr(buf_text(&text), "\nPPid:");
    return at ? (pid_t)strtol(at + strlen("\nPPid:"), NULL, 10) : -1;
}

static void kill_outer(struct worker *worker, const char *id)
{
    struct kept_state state;
    struct err err;
    pid_t outer;

    if (execute_kept_state(govern_execute(worker->govern), id, &state, &err) < 0) {
        say_failed(worker, "state", err.text);
        return;
    }
    outer = parent_of(state.pid);
    if (outer <= 1 || kill(outer, SIGKILL) < 0)
        say_failed(worker, "killing outer", strerror(errno));
}

static void cycle(struct worker *worker, unsigned kind)
{
    char id[ID_BYTES];

    if (kind < 8) {
        run_one_shot(worker);
        return;
    }
    if (!create(worker, kind == 13 ? LEFT_TTL_MS : 0, id))
        return;
    if (kind == 12)
        change(worker, ACTION_PAUSE, id);
    if (kind == 12)
        change(worker, ACTION_RESUME, id);
    exec_in(worker, id, kind == 15, kind == 13);
    if (kind == 14)
        kill_outer(worker, id);
    else if (kind != 13)
        change(worker, ACTION_DESTROY, id);
}

/* ---- what this process has ---- */

static unsigned count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    if (!dir)
        return 0;
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n - 3; /* the folder's own, and two names that are none */
}

static unsigned count_children(void)
{
    AUTO_BUF struct buf text = BUF(65536);
    char path[64];
    struct err ignored;
    unsigned n = 0;

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    if (file_read(AT_FDCWD, path, &text, &ignored) < 0)
        return 0;
    for (const char *at = buf_text(&text); *at; at++)
        n += *at == ' ';
    return n;
}

/* Without the cache of the ledger, which has a ceiling of its own and reaches it late. */
static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd - (size_t)sqlite3_memory_used();
}

static void lose(enum loss loss)
{
    if (loss == LOSE_DESCRIPTOR)
        (void)!open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (loss == LOSE_MEMORY) {
        void *volatile lost = malloc(LEAKED_BYTES);

        (void)lost;
    }
}

/* An outer process lets go of its lock a moment before it ends; PID 1 of one that was killed ends a
 * moment after it, and what we keep of its sandbox goes with the sweep behind that. */
static void wait_for_children(struct worker *worker)
{
    struct err err;
    unsigned more = SETTLE_MORE;

    execute_rest(govern_execute(worker->govern));
    for (unsigned tries = 0; tries < SETTLE_TRIES && (count_children() > 0 || more-- > 0);
         tries++) {
        (void)poll(NULL, 0, SETTLE_PAUSE_MS);
        if (govern_sweep(worker->govern, &err) < 0)
            say_failed(worker, "clearing up", err.text);
    }
}

static int work(const char *state_dir, unsigned number, unsigned cycles, enum loss loss)
{
    AUTO(policy) struct policy *policy = NULL;
    AUTO(govern) struct govern *govern = NULL;
    struct govern_config config = {.state_dir = state_dir};
    struct worker worker = {0};
    unsigned descriptors = 0, children = 0;
    size_t heap = 0;
    struct err err;

    if (policy_builtin(&policy, &err) < 0) {
        say_failed(&worker, "policy", err.text);
        return 1;
    }
    config.policy = policy;
    if (govern_open(&config, &govern, &err) < 0) {
        say_failed(&worker, "opening", err.text);
        return 1;
    }
    worker.govern = govern;
    for (unsigned i = 0; i < cycles + WARM_UP; i++) {
        if (i == WARM_UP) {
            wait_for_children(&worker);
            descriptors = count_descriptors();
            children = count_children();
            heap = heap_bytes();
        }
        cycle(&worker, (i + number) % ROUND);
        if (i >= WARM_UP)
            lose(loss);
    }
    wait_for_children(&worker);
    (void)printf("worker %u: descriptors %u %u, children %u %u, heap bytes %zu %zu\n", number,
                 descriptors, count_descriptors(), children, count_children(), heap, heap_bytes());
    return worker.failures > 0;
}

/* ---- all of them ---- */

static bool is_empty(const char *state_dir, const char *name)
{
    char path[4096];
    DIR *dir;
    const struct dirent *entry;
    bool empty = true;

    (void)snprintf(path, sizeof path, "%s/%s", state_dir, name);
    dir = opendir(path);
    while (dir && (entry = readdir(dir)) != NULL)
        empty &= entry->d_name[0] == '.';
    if (dir)
        (void)closedir(dir);
    return empty;
}

/* Those that were left to end by themselves, found by whoever opens next. */
static int settle(const char *state_dir)
{
    AUTO(policy) struct policy *policy = NULL;
    AUTO(govern) struct govern *govern = NULL;
    struct govern_config config = {.state_dir = state_dir};
    struct err err;
    int failed = policy_builtin(&policy, &err);

    config.policy = policy;
    if (!failed)
        failed = govern_open(&config, &govern, &err);
    for (unsigned tries = 0; !failed && tries < SETTLE_TRIES; tries++) {
        if (is_empty(state_dir, "runs") && is_empty(state_dir, "boxes"))
            return 0;
        (void)poll(NULL, 0, SETTLE_PAUSE_MS);
        failed = govern_sweep(govern, &err);
    }
    (void)printf("failed: waiting for the last ones: %s\n", failed ? err.text : "they do not end");
    return 1;
}

int main(int argc, char **argv)
{
    unsigned cycles = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    unsigned workers = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
    enum loss loss = argc <= 4                            ? LOSE_NOTHING
                     : strcmp(argv[4], "descriptor") == 0 ? LOSE_DESCRIPTOR
                                                          : LOSE_MEMORY;
    int failed = 0;

    if (cycles == 0 || workers == 0) {
        (void)fprintf(stderr, "usage: churn STATE CYCLES WORKERS [descriptor|memory]\n");
        return 64;
    }
    for (unsigned i = 0; i < workers; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            (void)setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
            return work(argv[1], i, cycles / workers, loss);
        }
        if (pid < 0)
            return 1;
    }
    for (unsigned i = 0; i < workers; i++) {
        int status = 0;

        if (wait(&status) < 0 || status != 0)
            failed = 1;
    }
    return settle(argv[1]) || failed;
}
