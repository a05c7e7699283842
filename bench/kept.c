/* SPDX-License-Identifier: Apache-2.0 */

/* kept: what a sandbox that stays costs a process that calls the flow library itself.
 *
 *     kept [-n SAMPLES] [-i SANDBOXES] [-r ROWS] [-s] [DIRECTORY]
 *
 * -s has a spawner make them. Rows take turns; the first is what every other one is divided by.
 * With -r only those whose name begins so are measured, besides the first. Afterwards so many idle
 * sandboxes are made and what the machine's memory grew by is divided by their number. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common.h"
#include "flow/decide/decide.h"
#include "flow/equip/equip.h"
#include "flow/execute/execute.h"
#include "flow/govern.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/linux/beside.h"

#define SAMPLES_MAX 20000
#define IDLE_MAX 2000
#define WARM_UP 10
#define SETTLE_MS 3000
#define CPU_WINDOW_MS 5000

extern char **environ;

static struct {
    char *dir;
    struct policy *policy;
    struct govern *govern;
    struct spawner *spawner; /* NULL: a box of its own for every sandbox */
    struct execute *execute;
    struct equip *equip;
    char sandbox[ID_BYTES];
    char stamp_mount[PATH_BYTES_MAX + 16];
    const char *rows;
    size_t samples;
    size_t idle;
} bench = {.samples = 300};

static const char *const program[] = {"/bin/true", NULL};
static const struct streams no_streams = {.in_fd = -1, .out_fd = -1, .err_fd = -1};

static struct request request_for(enum action_kind kind)
{
    return (struct request){
        .kind = kind,
        .principal = "bench",
        .tenant = "default",
        .provider = "local",
        .image = "host",
        .name = "",
        .argv = {program, 1}
    };
}

static void expect_success(const struct run *run)
{
    if (run->verdict.kind != VERDICT_ALLOW)
        give_up("denied", run->verdict.text ? run->verdict.text : reason_code(run->verdict.reason));
    if (!run->outcome.ended || run->outcome.exit_code != 0 || run->outcome.signal != 0 ||
        run->outcome.reason != REASON_NONE)
        give_up("the run failed",
                run->outcome.failure ? run->outcome.failure : reason_code(run->outcome.reason));
}

static void create(char id[ID_BYTES])
{
    struct request request = request_for(ACTION_CREATE);
    struct run run;
    struct err err;

    run_init(&run);
    if (govern_create(bench.govern, &request, &run, &err) < 0)
        give_up("creating", err.text);
    expect_success(&run);
    (void)strcpy(id, run.sandbox_id);
    run_done(&run);
}

static uint64_t change(const char *id, enum action_kind kind, uint64_t *order_ns)
{
    struct request request = request_for(kind);
    struct run run;
    struct err err;
    uint64_t began = now_ns();

    request.sandbox = id;
    run_init(&run);
    if (govern_change(bench.govern, &request, &run, &err) < 0)
        give_up("changing", err.text);
    expect_success(&run);
    began = now_ns() - began;
    if (order_ns)
        *order_ns = run.outcome.duration_us * 1000U;
    run_done(&run);
    return began;
}

/* ---- rows ---- */

static uint64_t row_spawn(void)
{
    static char name[] = "/bin/true";
    char *argv[] = {name, NULL};
    uint64_t began = now_ns();
    pid_t pid = -1;
    int status = 0;

    if (posix_spawn(&pid, name, NULL, NULL, argv, environ) != 0)
        give_up("cannot start", name);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return now_ns() - began;
}

static uint64_t row_governed(void)
{
    struct request request = request_for(ACTION_EXEC);
    struct run run;
    struct err err;
    uint64_t began = now_ns();

    request.sandbox = bench.sandbox;
    run_init(&run);
    if (govern_exec(bench.govern, &request, &no_streams, &run, &err) < 0)
        give_up("running", err.text);
    began = now_ns() - began;
    expect_success(&run);
    run_done(&run);
    return began;
}

static void plan(struct run *run, enum action_kind kind)
{
    struct request request = request_for(kind);
    struct err err;

    request.sandbox = bench.sandbox;
    run_init(run);
    if (admit_run(&request, run, &err) < 0 || decide_run(bench.policy, run, &err) < 0 ||
        execute_offer(bench.execute, run, &err) < 0 || equip_plan(bench.equip, run, &err) < 0)
        give_up("planning", err.text);
}

/* Looked at again, compared, run; no policy, no plan, no receipt. */
static uint64_t row_execute(void)
{
    uint64_t began;
    struct run run;
    struct err err;

    plan(&run, ACTION_EXEC);
    began = now_ns();
    if (execute_begin(bench.execute, &run, &err) < 0 ||
        execute_park(bench.execute, &run, &err) < 0 || equip_compare(bench.equip, &run, &err) < 0 ||
        execute_release(bench.execute, &run, &no_streams, &err) < 0)
        give_up("executing", err.text);
    began = now_ns() - began;
    expect_success(&run);
    run_done(&run);
    return began;
}

/* ---- out of the pool ---- */

static struct request request_for_stamp(void)
{
    static const char *argv[] = {"/mnt/stamp", NULL};
    static const char *mounts[1];
    struct request request = request_for(ACTION_RUN);

    mounts[0] = bench.stamp_mount;
    request.argv = (struct words){argv, 1};
    request.mounts = (struct words){mounts, 1};
    return request;
}

static void prepare(void)
{
    struct request request = request_for_stamp();
    struct run run;
    struct err err;

    run_init(&run);
    if (govern_prepare(bench.govern, &request, &run, &err) < 0)
        give_up("preparing", err.text);
    expect_success(&run);
    run_done(&run);
}

static uint64_t end_ns; /* when all was over, after began */

static uint64_t stamp_of(const struct run *run, uint64_t began)
{
    uint64_t stamp = 0;

    expect_success(run);
    if (strcmp(run->sandbox_id, run->id) == 0)
        give_up("pool", "it was built");
    if (run->outcome.out.kept.n != sizeof stamp)
        give_up("stamp", "it wrote something else");
    memcpy(&stamp, run->outcome.out.kept.p, sizeof stamp);
    end_ns = now_ns() - began;
    return stamp - began;
}

static uint64_t row_pool_governed(void)
{
    struct streams streams = {.in_fd = -1, .out_fd = -1, .err_fd = -1, .keep = true};
    struct request request = request_for_stamp();
    uint64_t began, took;
    struct run run;
    struct err err;

    prepare();
    run_init(&run);
    began = now_ns();
    if (govern_run(bench.govern, &request, &streams, &run, &err) < 0)
        give_up("running", err.text);
    took = stamp_of(&run, began);
    run_done(&run);
    return took;
}

static uint64_t row_pool_execute(void)
{
    struct streams streams = {.in_fd = -1, .out_fd = -1, .err_fd = -1, .keep = true};
    struct request request = request_for_stamp();
    uint64_t began, took;
    struct run run;
    struct err err;

    prepare();
    run_init(&run);
    if (admit_run(&request, &run, &err) < 0 || decide_run(bench.policy, &run, &err) < 0 ||
        execute_offer(bench.execute, &run, &err) < 0 || equip_plan(bench.equip, &run, &err) < 0)
        give_up("planning", err.text);
    began = now_ns();
    if (!execute_take(bench.execute, &run))
        give_up("pool", "nothing to take");
    if (execute_begin(bench.execute, &run, &err) < 0 ||
        execute_park(bench.execute, &run, &err) < 0 || equip_compare(bench.equip, &run, &err) < 0 ||
        execute_release(bench.execute, &run, &streams, &err) < 0)
        give_up("executing", err.text);
    took = stamp_of(&run, began);
    run_done(&run);
    return took;
}

static uint64_t row_pool_end(void)
{
    return end_ns;
}

static uint64_t order_ns;

static uint64_t row_pause(void)
{
    return change(bench.sandbox, ACTION_PAUSE, &order_ns);
}

static uint64_t row_resume(void)
{
    return change(bench.sandbox, ACTION_RESUME, &order_ns);
}

static uint64_t row_order(void)
{
    return order_ns;
}

static uint64_t row_destroy(void)
{
    char id[ID_BYTES];

    create(id);
    return change(id, ACTION_DESTROY, &order_ns);
}

static struct {
    const char *name;
    uint64_t (*once)(void);
    uint64_t *ns;
} rows[] = {
    {"posix_spawn",             row_spawn,         NULL},
    {"exec, two receipts",      row_governed,      NULL},
    {"exec, execute only",      row_execute,       NULL},
    {"pool to main, governed",  row_pool_governed, NULL},
    {"  to the end",            row_pool_end,      NULL},
    {"pool to main, execute",   row_pool_execute,  NULL},
    {"  to the end",            row_pool_end,      NULL},
    {"pause, two receipts",     row_pause,         NULL},
    {"pause, the order only",   row_order,         NULL},
    {"resume, two receipts",    row_resume,        NULL},
    {"resume, the order only",  row_order,         NULL},
    {"destroy, two receipts",   row_destroy,       NULL},
    {"destroy, the order only", row_order,         NULL},
};

static bool is_wanted(size_t row)
{
    return row == 0 || !bench.rows || strncmp(rows[row].name, bench.rows, strlen(bench.rows)) == 0;
}

static void measure_rows(void)
{
    double first_ms = 0;

    for (size_t i = 0; i < COUNT(rows); i++)
        rows[i].ns = xcalloc(bench.samples, sizeof *rows[i].ns);
    for (size_t round = 0; round < WARM_UP + bench.samples; round++)
        for (size_t i = 0; i < COUNT(rows); i++) {
            uint64_t took = is_wanted(i) ? rows[i].once() : 0;

            if (round >= WARM_UP)
                rows[i].ns[round - WARM_UP] = took;
        }
    (void)printf("| %-26s | %7s | %7s | %7s | %7s | %7s |\n", "ms", "min", "p50", "p95", "p99",
                 "x first");
    (void)puts("| -------------------------- | ------: | ------: | ------: | ------: | ------: |");
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t *ns = rows[i].ns;
        size_t n = bench.samples;

        sort_ns(ns, n);
        if (i == 0)
            first_ms = ms_at(ns, n, 500);
        if (is_wanted(i))
            (void)printf("| %-26s | %7.3f | %7.3f | %7.3f | %7.3f | %7.2f |\n", rows[i].name,
                         ms_at(ns, n, 0), ms_at(ns, n, 500), ms_at(ns, n, 950), ms_at(ns, n, 990),
                         ms_at(ns, n, 500) / first_ms);
        free(ns);
    }
}

/* ---- memory ---- */

static uint64_t field_kib(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* Of all processes that run our box: what else the machine does is not in it. */
static uint64_t boxes_kib(const char *file, const char *name)
{
    char box[PATH_BYTES_MAX];
    char exe[PATH_BYTES_MAX];
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    uint64_t sum = 0;
    struct err err;

    if (!proc || program_beside("box", box, sizeof box, &err) < 0)
        give_up("memory", "no /proc, or no box");
    while ((entry = readdir(proc)) != NULL) {
        AUTO_BUF struct buf text = BUF(PROC_TEXT_MAX);
        char path[300];
        ssize_t n;

        (void)snprintf(path, sizeof path, "%.250s/exe", entry->d_name);
        n = readlinkat(dirfd(proc), path, exe, sizeof exe - 1);
        if (n <= 0)
            continue;
        exe[n] = '\0';
        (void)snprintf(path, sizeof path, "%.250s/%s", entry->d_name, file);
        if (strcmp(exe, box) == 0 && file_read(dirfd(proc), path, &text, &err) == 0)
            sum += field_kib(buf_text(&text), name);
    }
    (void)closedir(proc);
    return sum;
}

static uint64_t machine_kib(const char *name)
{
    AUTO_BUF struct buf text = BUF(PROC_TEXT_MAX);
    struct err err;

    if (file_read(AT_FDCWD, "/proc/meminfo", &text, &err) < 0)
        give_up("memory", err.text);
    return field_kib(buf_text(&text), name);
}

static uint64_t memory_kib(bool print)
{
    static const char *const names[] = {"own pages", "page tables",
                                        "Shmem:", "SUnreclaim:", "KernelStack:"};
    static uint64_t before[COUNT(names)];
    uint64_t sum = 0;

    for (size_t i = 0; i < COUNT(names); i++) {
        uint64_t kib = i == 0   ? boxes_kib("smaps_rollup", "Pss_Anon:")
                       : i == 1 ? boxes_kib("status", "VmPTE:")
                                : machine_kib(names[i]);

        if (print)
            (void)printf("    %-14s %+7.1f KiB each\n", names[i],
                         ((double)kib - (double)before[i]) / (double)bench.idle);
        before[i] = kib;
        sum += kib;
    }
    return sum;
}

static uint64_t busy_ticks(void)
{
    AUTO_BUF struct buf text = BUF(PROC_TEXT_MAX);
    unsigned long long user = 0, nice_ = 0, system = 0;
    struct err err;

    if (file_read(AT_FDCWD, "/proc/stat", &text, &err) < 0 ||
        sscanf(buf_text(&text), "cpu %llu %llu %llu", &user, &nice_, &system) != 3)
        give_up("processor time", "/proc/stat");
    return user + nice_ + system;
}

static int on_listed(void *context, const char *id, struct err *err)
{
    struct kept_state state;
    size_t *listed = context;

    ++*listed;
    return execute_kept_state(govern_execute(bench.govern), id, &state, err);
}

/* Found, and each asked how it is. */
static void measure_list(void)
{
    uint64_t began = now_ns();
    size_t listed = 0;
    struct err err;

    if (execute_kept_each(govern_execute(bench.govern), on_listed, &listed, &err) < 0)
        give_up("listing", err.text);
    if (listed != bench.idle)
        give_up("listing", "there are not as many as were made");
    (void)printf("| list, with the state of each | %7.1f ms\n", (double)(now_ns() - began) / 1e6);
}

/* The first and the last hundred apart: what grows with their number shows. */
static void say_each(const char *what, const uint64_t *ns)
{
    size_t n = bench.idle, some = n < 200 ? n / 2 : 100;
    double all = 0, first = 0, last = 0;

    for (size_t i = 0; i < n; i++) {
        all += (double)ns[i];
        first += i < some ? (double)ns[i] : 0;
        last += i >= n - some ? (double)ns[i] : 0;
    }
    (void)printf("| %-28s | %7.2f ms each; the first %zu %.2f, the last %.2f\n", what,
                 all / (double)n / 1e6, some, first / (double)some / 1e6,
                 last / (double)some / 1e6);
}

static void measure_idle(void)
{
    static char ids[IDLE_MAX][ID_BYTES];
    static uint64_t ns[IDLE_MAX];
    struct timespec settle = {.tv_sec = SETTLE_MS / 1000};
    struct timespec window = {.tv_sec = CPU_WINDOW_MS / 1000};
    uint64_t before, after, ticks, idle_ticks;

    ticks = busy_ticks();
    (void)nanosleep(&window, NULL);
    idle_ticks = busy_ticks() - ticks;
    before = memory_kib(false);
    for (size_t i = 0; i < bench.idle; i++) {
        uint64_t began = now_ns();

        create(ids[i]);
        ns[i] = now_ns() - began;
    }
    say_each("create", ns);
    (void)nanosleep(&settle, NULL);
    after = memory_kib(true);
    (void)printf("| %zu idle sandboxes          | %7.1f KiB each\n", bench.idle,
                 ((double)after - (double)before) / (double)bench.idle);
    ticks = busy_ticks();
    (void)nanosleep(&window, NULL);
    ticks = busy_ticks() - ticks;
    (void)printf("| processor they use          | %7.2f %% of one (without them %.2f %%)\n",
                 (double)ticks * 1000.0 / CPU_WINDOW_MS,
                 (double)idle_ticks * 1000.0 / CPU_WINDOW_MS);
    measure_list();
    for (size_t i = 0; i < bench.idle; i++)
        ns[i] = change(ids[i], ACTION_DESTROY, NULL);
    say_each("destroy", ns);
}

/* ---- the command line ---- */

int main(int argc, char **argv)
{
    struct govern_config config = {0};
    bool spawner = false;
    struct err err;
    int option;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    while ((option = getopt(argc, argv, "n:i:r:s")) != -1) {
        if (option == 'n')
            bench.samples = strtoul(optarg, NULL, 10);
        else if (option == 'i')
            bench.idle = strtoul(optarg, NULL, 10);
        else if (option == 'r')
            bench.rows = optarg;
        else if (option == 's')
            spawner = true;
        else
            give_up("usage", "kept [-n SAMPLES] [-i SANDBOXES] [-r ROWS] [-s] [DIRECTORY]");
    }
    if (bench.samples > SAMPLES_MAX || bench.idle > IDLE_MAX)
        give_up("usage", "at most 20000 samples and 2000 sandboxes");
    if (asprintf(&bench.dir, "%s/bench-kept-XXXXXX", argv[optind] ? argv[optind] : ".") < 0 ||
        !mkdtemp(bench.dir) || !(bench.dir = realpath(bench.dir, NULL)))
        give_up("cannot make a folder in", argv[optind] ? argv[optind] : ".");
    if (program_beside("stamp", bench.stamp_mount, PATH_BYTES_MAX, &err) < 0)
        give_up("stamp", err.text);
    (void)strcat(bench.stamp_mount, ":/mnt/stamp");
    config.state_dir = bench.dir;
    if (policy_builtin(&bench.policy, &err) < 0 ||
        execute_open(bench.dir, &bench.execute, &err) < 0 ||
        equip_open(bench.dir, NULL, &bench.equip, &err) < 0)
        give_up("opening", err.text);
    config.policy = bench.policy;
    if (spawner && spawner_open(&bench.spawner, &err) < 0)
        give_up("spawner", err.text);
    config.spawner = bench.spawner;
    if (govern_open(&config, &bench.govern, &err) < 0)
        give_up("opening", err.text);
    create(bench.sandbox);
    if (bench.samples)
        measure_rows();
    (void)change(bench.sandbox, ACTION_DESTROY, NULL);
    if (bench.idle)
        measure_idle();
    govern_free(bench.govern);
    spawner_free(bench.spawner);
    equip_free(bench.equip);
    execute_free(bench.execute);
    policy_free(bench.policy);
    if (dir_remove(AT_FDCWD, bench.dir, &err) < 0)
        give_up("cleaning up", err.text);
    free(bench.dir);
    return 0;
}
