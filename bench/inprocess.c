/* SPDX-License-Identifier: Apache-2.0 */

/* inprocess: what a sandbox costs a process that calls the flow library itself, without the start
 * of a program around it.
 *
 *     inprocess [--quick] [-n SAMPLES] [-s SECONDS] [DIRECTORY]
 *
 * Rows take turns, each round in another order, so whatever else the machine does falls on all of
 * them; the first row is what every other one is divided by. Throughput comes afterwards: workers
 * are threads of this process, each with a governor, and share what those can. The directory
 * (default: the current one) decides which disk the receipts are synced to. */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"
#include "flow/decide/decide.h"
#include "flow/equip/equip.h"
#include "flow/govern.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/linux/beside.h"

#define SAMPLES_MAX 20000
#define WARM_UP 10
#define WORKERS 8
#define AT_ONCE 100

extern char **environ;

static struct {
    char *dir;
    struct policy *policy;
    struct spawner *spawner;
    struct govern_shared *shared;
    struct govern *govern;         /* a box of its own for every sandbox */
    struct govern *govern_spawner; /* a spawner for all of them */
    struct govern *govern_deaf;    /* the same, with a profile of sockets: none */
    struct execute *execute;       /* with the spawner */
    struct equip *equip;
    size_t samples;
    double seconds;
    char floor[PATH_BYTES_MAX]; /* "": not there */
} bench = {.samples = 300, .seconds = 3};

/* ---- a sandbox ---- */

static struct request request_for_true(void)
{
    static const char *const argv[] = {"/bin/true", NULL};

    return (struct request){
        .kind = ACTION_RUN,
        .principal = "bench",
        .tenant = "default",
        .provider = "local",
        .image = "host",
        .argv = {argv, 1}
    };
}

static struct govern *open_govern(struct spawner *spawner, bool deaf)
{
    struct govern_config config = {.state_dir = bench.dir,
                                   .policy = bench.policy,
                                   .spawner = spawner,
                                   .shared = bench.shared,
                                   .profile_text = deaf ? "version: 1\nsockets: none\n" : NULL};
    struct govern *govern = NULL;
    struct err err;

    if (govern_open(&config, &govern, &err) < 0)
        give_up("opening", err.text);
    return govern;
}

/* What failed fast is not fast. */
static void expect_success(const struct run *run)
{
    if (run->verdict.kind != VERDICT_ALLOW)
        give_up("denied", run->verdict.text ? run->verdict.text : reason_code(run->verdict.reason));
    if (!run->outcome.ended || run->outcome.exit_code != 0 || run->outcome.signal != 0 ||
        run->outcome.reason != REASON_NONE)
        give_up("the run failed",
                run->outcome.failure ? run->outcome.failure : reason_code(run->outcome.reason));
}

static const struct streams no_streams = {.in_fd = -1, .out_fd = -1, .err_fd = -1};

static void run_governed(struct govern *govern)
{
    struct request request = request_for_true();
    struct run run;
    struct err err;

    run_init(&run);
    if (govern_run(govern, &request, &no_streams, &run, &err) < 0)
        give_up("running", err.text);
    expect_success(&run);
    run_done(&run);
}

/* Everything before the sandbox, untimed. */
static void plan(struct run *run)
{
    struct request request = request_for_true();
    struct err err;

    run_init(run);
    if (admit_run(&request, run, &err) < 0 || decide_run(bench.policy, run, &err) < 0 ||
        execute_offer(bench.execute, run, &err) < 0 || equip_plan(bench.equip, run, &err) < 0)
        give_up("planning", err.text);
}

/* ---- rows ---- */

static uint64_t time_program(char *const *argv)
{
    uint64_t began = now_ns();
    pid_t pid = -1;
    int status = 0;

    if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) != 0)
        give_up("cannot start", argv[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (status != 0)
        give_up("failed", argv[0]);
    return now_ns() - began;
}

static uint64_t row_spawn(void)
{
    static char program[] = "/bin/true";
    char *argv[] = {program, NULL};

    return time_program(argv);
}

static uint64_t row_floor(void)
{
    static char program[] = "/bin/true";
    char *argv[] = {bench.floor, bench.dir, program, NULL};

    return time_program(argv);
}

static uint64_t row_bubblewrap(void)
{
    static char words[][16] = {"/usr/bin/bwrap", "--unshare-all", "--ro-bind", "/", "/",
                               "/bin/true"};
    char *argv[COUNT(words) + 1] = {0};

    for (size_t i = 0; i < COUNT(words); i++)
        argv[i] = words[i];
    return time_program(argv);
}

static uint64_t row_governed(void)
{
    uint64_t began = now_ns();

    run_governed(bench.govern);
    return now_ns() - began;
}

static uint64_t row_governed_spawner(void)
{
    uint64_t began = now_ns();

    run_governed(bench.govern_spawner);
    return now_ns() - began;
}

static uint64_t row_governed_deaf(void)
{
    uint64_t began = now_ns();

    run_governed(bench.govern_deaf);
    return now_ns() - began;
}

/* Build, park, compare, run, destroy; no policy, no plan, no receipt. */
static uint64_t row_execute(void)
{
    uint64_t began, took;
    struct run run;
    struct err err;

    plan(&run);
    began = now_ns();
    if (execute_begin(bench.execute, &run, &err) < 0 ||
        execute_park(bench.execute, &run, &err) < 0 || equip_compare(bench.equip, &run, &err) < 0 ||
        execute_release(bench.execute, &run, &no_streams, &err) < 0)
        give_up("executing", err.text);
    took = now_ns() - began;
    expect_success(&run);
    run_done(&run);
    return took;
}

static uint64_t row_plan(void)
{
    uint64_t began = now_ns();
    struct run run;

    plan(&run);
    began = now_ns() - began;
    run_done(&run);
    return began;
}

static bool always(void)
{
    return true;
}

static bool has_floor(void)
{
    return bench.floor[0] != '\0';
}

static bool has_bubblewrap(void)
{
    return access("/usr/bin/bwrap", X_OK) == 0;
}

static struct {
    const char *name;
    uint64_t (*once)(void);
    bool (*is_there)(void);
    uint64_t *ns;
} rows[] = {
    {"posix_spawn",             row_spawn,            always,         NULL},
    {"governed, spawner",       row_governed_spawner, always,         NULL},
    {"governed, sockets: none", row_governed_deaf,    always,         NULL},
    {"governed, no spawner",    row_governed,         always,         NULL},
    {"plan only",               row_plan,             always,         NULL},
    {"execute only, spawner",   row_execute,          always,         NULL},
    {"program: floor",          row_floor,            has_floor,      NULL},
    {"program: bwrap, 1 mount", row_bubblewrap,       has_bubblewrap, NULL},
};

static void measure_rows(void)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        rows[i].ns = xcalloc(bench.samples, sizeof *rows[i].ns);
    for (size_t round = 0; round < WARM_UP + bench.samples; round++)
        for (size_t i = 0; i < COUNT(rows); i++) {
            size_t at = (i + round) % COUNT(rows);
            uint64_t took = rows[at].is_there() ? rows[at].once() : 0;

            if (round >= WARM_UP)
                rows[at].ns[round - WARM_UP] = took;
        }
}

static void print_times(const char *name, uint64_t *ns, size_t n, double first_ms)
{
    sort_ns(ns, n);
    (void)printf("| %-26s | %7.2f | %7.2f | %7.2f | %7.2f | %7.2f |\n", name, ms_at(ns, n, 0),
                 ms_at(ns, n, 500), ms_at(ns, n, 950), ms_at(ns, n, 990),
                 ms_at(ns, n, 500) / first_ms);
}

static double print_rows(void)
{
    double first_ms;

    sort_ns(rows[0].ns, bench.samples);
    first_ms = ms_at(rows[0].ns, bench.samples, 500);
    (void)printf("| %-26s | %7s | %7s | %7s | %7s | %7s |\n", "ms", "min", "p50", "p95", "p99",
                 "x first");
    (void)puts("| -------------------------- | ------: | ------: | ------: | ------: | ------: |");
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (rows[i].is_there())
            print_times(rows[i].name, rows[i].ns, bench.samples, first_ms);
        free(rows[i].ns);
    }
    return first_ms;
}

/* ---- many at once ---- */

struct worker {
    pthread_t thread;
    uint64_t (*once)(struct govern *govern);
    pthread_barrier_t *start;
    uint64_t until_ns; /* 0: once */
    bool deaf;
    size_t done;
    uint64_t last_ns;
};

static uint64_t once_spawn(struct govern *govern)
{
    (void)govern;
    return row_spawn();
}

static uint64_t once_governed(struct govern *govern)
{
    uint64_t began = now_ns();

    run_governed(govern);
    return now_ns() - began;
}

static void *work(void *context)
{
    struct worker *worker = context;
    AUTO(govern) struct govern *govern = open_govern(bench.spawner, worker->deaf);

    (void)pthread_barrier_wait(worker->start);
    if (worker->until_ns)
        worker->until_ns += now_ns();
    do {
        worker->last_ns = worker->once(govern);
        worker->done++;
    } while (now_ns() < worker->until_ns);
    return NULL;
}

static uint64_t run_workers(struct worker *workers, size_t n, uint64_t (*once)(struct govern *),
                            bool deaf, double seconds)
{
    pthread_barrier_t start;
    uint64_t began;

    (void)pthread_barrier_init(&start, NULL, (unsigned)n + 1);
    for (size_t i = 0; i < n; i++) {
        workers[i] = (struct worker){
            .once = once, .deaf = deaf, .start = &start, .until_ns = (uint64_t)(seconds * 1e9)};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            give_up("thread", strerror(errno));
    }
    (void)pthread_barrier_wait(&start);
    began = now_ns();
    for (size_t i = 0; i < n; i++)
        (void)pthread_join(workers[i].thread, NULL);
    (void)pthread_barrier_destroy(&start);
    return now_ns() - began;
}

static void measure_rate(const char *name, uint64_t (*once)(struct govern *), bool deaf)
{
    struct worker workers[WORKERS];
    uint64_t took = run_workers(workers, WORKERS, once, deaf, bench.seconds);
    size_t done = 0;

    for (size_t i = 0; i < WORKERS; i++)
        done += workers[i].done;
    (void)printf("| %-26s | %7.0f /s with %d workers\n", name, (double)done * 1e9 / (double)took,
                 WORKERS);
}

static void measure_burst(double first_ms)
{
    static struct worker workers[AT_ONCE];
    static uint64_t ns[AT_ONCE];

    (void)run_workers(workers, AT_ONCE, once_governed, false, 0);
    for (size_t i = 0; i < AT_ONCE; i++)
        ns[i] = workers[i].last_ns;
    print_times("100 at once", ns, AT_ONCE, first_ms);
}

/* ---- the command line ---- */

static void open_all(const char *where)
{
    struct err err;

    AUTO_FREE char *full = realpath(where, NULL);
    if (!full || asprintf(&bench.dir, "%s/bench-inprocess-XXXXXX", full) < 0 || !mkdtemp(bench.dir))
        give_up("cannot make a folder in", where);
    if (program_beside("floor", bench.floor, sizeof bench.floor, &err) < 0)
        bench.floor[0] = '\0';
    if (policy_builtin(&bench.policy, &err) < 0 ||
        execute_open(bench.dir, &bench.execute, &err) < 0 ||
        equip_open(bench.dir, NULL, &bench.equip, &err) < 0)
        give_up("opening", err.text);
    if (spawner_open(&bench.spawner, &err) < 0)
        give_up("starting a spawner", err.text);
    execute_use(bench.execute, bench.spawner);
    bench.shared = govern_shared_new(bench.dir, NULL);
    bench.govern = open_govern(NULL, false);
    bench.govern_spawner = open_govern(bench.spawner, false);
    bench.govern_deaf = open_govern(bench.spawner, true);
}

static void close_all(void)
{
    struct err err;

    govern_free(bench.govern);
    govern_free(bench.govern_spawner);
    govern_free(bench.govern_deaf);
    govern_shared_free(bench.shared);
    spawner_free(bench.spawner);
    equip_free(bench.equip);
    execute_free(bench.execute);
    policy_free(bench.policy);
    if (dir_remove(AT_FDCWD, bench.dir, &err) < 0)
        give_up("cleaning up", err.text);
    free(bench.dir);
}

static void read_options(int argc, char **argv)
{
    static const struct option names[] = {
        {"quick", no_argument, NULL, 'q'},
        {NULL,    0,           NULL, 0  }
    };
    int option;

    while ((option = getopt_long(argc, argv, "n:s:", names, NULL)) != -1) {
        if (option == 'q') {
            bench.samples = 60;
            bench.seconds = 1;
        } else if (option == 'n') {
            bench.samples = strtoul(optarg, NULL, 10);
        } else if (option == 's') {
            bench.seconds = strtod(optarg, NULL);
        } else {
            give_up("usage", "inprocess [--quick] [-n SAMPLES] [-s SECONDS] [DIRECTORY]");
        }
    }
    if (bench.samples == 0 || bench.samples > SAMPLES_MAX)
        give_up("-n", "a number from 1 to 20000");
}

int main(int argc, char **argv)
{
    double first_ms;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    read_options(argc, argv);
    open_all(argv[optind] ? argv[optind] : ".");
    measure_rows();
    first_ms = print_rows();
    measure_burst(first_ms);
    measure_rate("posix_spawn", once_spawn, false);
    measure_rate("governed, spawner", once_governed, false);
    measure_rate("governed, sockets: none", once_governed, true);
    close_all();
    return 0;
}
