/* SPDX-License-Identifier: Apache-2.0 */

/* snapshots: what it costs a process that calls the flow library itself to put a sandbox aside and
 * to branch it, with a thousand small files in it.
 *
 *     snapshots [-n SAMPLES] [-f FILES] [-q] [-s] [DIRECTORY]
 *
 * -q leaves out what copies, -s has a spawner make the sandboxes. Rows take turns. "cp -a" copies
 * the same files on the same disk, into a folder of its own. All of them are governed: two receipts
 * each, synced. */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"
#include "flow/decide/decide.h"
#include "flow/execute/execute.h"
#include "flow/govern.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"

#define SAMPLES_MAX 2000

extern char **environ;

static struct {
    char *dir;
    struct policy *policy;
    struct govern *govern;
    struct spawner *spawner; /* NULL: a box of its own for every sandbox */
    size_t samples;
    size_t files;
    bool quick; /* without what copies */
} bench = {.samples = 40, .files = 1000};

/* ---- one governed step ---- */

static const struct streams no_streams = {.in_fd = -1, .out_fd = -1, .err_fd = -1};

static struct request request_of(enum action_kind kind, const char *sandbox)
{
    return (struct request){
        .kind = kind,
        .sandbox = sandbox,
        .name = "",
        .principal = "bench",
        .tenant = "default",
        .provider = "local",
        .image = "host",
        .lifetime = {.ttl_ms = 600000},
    };
}

static void check(int failed, const struct run *run, const struct err *err)
{
    if (failed)
        give_up("failed", err->text);
    if (run->verdict.kind != VERDICT_ALLOW)
        give_up("denied", run->verdict.text ? run->verdict.text : reason_code(run->verdict.reason));
    if (run->outcome.reason != REASON_NONE || run->outcome.exit_code != 0)
        give_up("did not go well",
                run->outcome.failure ? run->outcome.failure : reason_code(run->outcome.reason));
}

static uint64_t create(const char *base, char id[ID_BYTES])
{
    struct request request = request_of(ACTION_CREATE, NULL);
    uint64_t began = now_ns();
    struct run run;
    struct err err;

    request.base = base;
    run_init(&run);
    check(govern_create(bench.govern, &request, &run, &err), &run, &err);
    (void)strcpy(id, run.sandbox_id);
    run_done(&run);
    return now_ns() - began;
}

static void fill(const char *id, const char *script, bool stays)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    struct request request = request_of(ACTION_EXEC, id);
    struct run run;
    struct err err;

    request.argv = (struct words){argv, 3};
    request.keep_background = stays;
    run_init(&run);
    check(govern_exec(bench.govern, &request, &no_streams, &run, &err), &run, &err);
    run_done(&run);
}

static uint64_t snapshot(const char *id, bool live, char snapshot_id[ID_BYTES])
{
    struct request request = request_of(ACTION_SNAPSHOT, id);
    uint64_t began = now_ns();
    uint64_t took;
    struct run run;
    struct err err;

    run_init(&run);
    check(govern_snapshot(bench.govern, &request, &run, &err), &run, &err);
    took = now_ns() - began;
    if (run.outcome.snapshot.live != live)
        give_up("snapshot", live ? "nothing lived in it" : "something lived in it");
    (void)strcpy(snapshot_id, run.outcome.snapshot.id);
    run_done(&run);
    return took;
}

static void destroy(const char *id)
{
    struct request request = request_of(ACTION_DESTROY, id);
    struct run run;
    struct err err;

    run_init(&run);
    check(govern_change(bench.govern, &request, &run, &err), &run, &err);
    run_done(&run);
}

static void forget(const char *id)
{
    struct request request = request_of(ACTION_SNAPSHOT_REMOVE, NULL);
    bool freed = false;
    struct run run;
    struct err err;

    request.base = id;
    run_init(&run);
    check(govern_snapshot_remove(bench.govern, &request, &run, &freed, &err), &run, &err);
    run_done(&run);
}

static void copy_files(const char *from, uint64_t *ns)
{
    char cp[] = "/bin/cp", option[] = "-a";
    char to[PATH_BYTES_MAX];
    char *argv[] = {cp, option, (char *)(uintptr_t)from, to, NULL};
    struct err err;
    uint64_t began;
    pid_t pid = -1;
    int status = 1;

    (void)snprintf(to, sizeof to, "%s/copy", bench.dir);
    began = now_ns();
    if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) == 0)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
    *ns = now_ns() - began;
    if (status != 0 || dir_remove(AT_FDCWD, to, &err) < 0)
        give_up("cp -a", "failed");
}

/* ---- one round ---- */

enum row { ROW_CREATE, ROW_FORK, ROW_STACK, ROW_LIVE, ROW_COPY, ROW_COUNT };

static const char *const names[ROW_COUNT] = {
    [ROW_CREATE] = "create",
    [ROW_FORK] = "fork",
    [ROW_STACK] = "snapshot, nobody in it",
    [ROW_LIVE] = "snapshot, somebody in it",
    [ROW_COPY] = "cp -a",
};
static uint64_t times[ROW_COUNT][SAMPLES_MAX];

static void measure_round(size_t i)
{
    char files[128];
    char id[ID_BYTES], copy[ID_BYTES], stacked[ID_BYTES], live[ID_BYTES];
    char layer[PATH_BYTES_MAX];

    (void)snprintf(files, sizeof files,
                   "i=0; while [ $i -lt %zu ]; do echo $i >/tmp/$i; i=$((i+1)); done", bench.files);
    times[ROW_CREATE][i] = create(NULL, id);
    fill(id, files, false);
    times[ROW_STACK][i] = snapshot(id, false, stacked);
    times[ROW_FORK][i] = create(stacked, copy);
    destroy(copy);
    if (bench.quick) {
        destroy(id);
        forget(stacked);
        return;
    }
    fill(id, "rm /tmp/*", false);
    fill(id, files, false);
    fill(id, "sleep 600 >/dev/null 2>&1 &", true);
    (void)snprintf(layer, sizeof layer, "%s/boxes/%s/tmp", bench.dir, id);
    copy_files(layer, &times[ROW_COPY][i]);
    times[ROW_LIVE][i] = snapshot(id, true, live);
    destroy(id);
    forget(stacked);
    forget(live);
}

int main(int argc, char **argv)
{
    struct govern_config config = {0};
    bool spawner = false;
    struct err err;
    int option;

    while ((option = getopt(argc, argv, "n:f:qs")) != -1) {
        if (option == 'n')
            bench.samples = strtoul(optarg, NULL, 10);
        else if (option == 'f')
            bench.files = strtoul(optarg, NULL, 10);
        else if (option == 's')
            spawner = true;
        else if (option == 'q')
            bench.quick = true;
        else
            return 64;
    }
    if (bench.samples == 0 || bench.samples > SAMPLES_MAX)
        give_up("-n", "1 to 2000");
    if (asprintf(&bench.dir, "%s/bench-snapshots-XXXXXX", optind < argc ? argv[optind] : ".") < 0 ||
        !mkdtemp(bench.dir) || !(bench.dir = realpath(bench.dir, NULL)))
        give_up("cannot make a folder", strerror(errno));
    config.state_dir = bench.dir;
    if (policy_builtin(&bench.policy, &err) < 0)
        give_up("policy", err.text);
    config.policy = bench.policy;
    if (spawner && spawner_open(&bench.spawner, &err) < 0)
        give_up("spawner", err.text);
    config.spawner = bench.spawner;
    if (govern_open(&config, &bench.govern, &err) < 0)
        give_up("opening", err.text);
    for (size_t i = 0; i < bench.samples; i++)
        measure_round(i);
    (void)printf("| ms, %6zu files           | %7s | %7s | %7s | %7s |\n", bench.files, "min",
                 "p50", "p95", "max");
    (void)puts("| -------------------------- | ------: | ------: | ------: | ------: |");
    for (enum row row = 0; row < (bench.quick ? ROW_LIVE : ROW_COUNT); row++) {
        sort_ns(times[row], bench.samples);
        (void)printf("| %-26s | %7.2f | %7.2f | %7.2f | %7.2f |\n", names[row],
                     ms_at(times[row], bench.samples, 0), ms_at(times[row], bench.samples, 500),
                     ms_at(times[row], bench.samples, 950), ms_at(times[row], bench.samples, 1000));
    }
    govern_free(bench.govern);
    spawner_free(bench.spawner);
    policy_free(bench.policy);
    return dir_remove(AT_FDCWD, bench.dir, &err) < 0;
}
