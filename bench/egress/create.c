/* SPDX-License-Identifier: Apache-2.0 */

/* create: what a way out adds to a sandbox, for a process that calls the flow library itself.
 *
 *     create [-n SAMPLES] [DIRECTORY]
 *
 * A governed /bin/true with its two receipts, built by a spawner, without rules for the network,
 * with rules for tunnels, and with rules that look into TLS (certificates are then laid into the
 * sandbox). They take turns, each round in another order. The egress program stands already, as it
 * does in a daemon: the first round, which starts it, is not counted. */

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "../common.h"
#include "flow/decide/decide.h"
#include "flow/govern.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"

#define SAMPLES_MAX 20000
#define WARM_UP 5
#define RULES(keys)                                                                                \
    "version: 1\nnetwork_policies:\n  one:\n    binaries: [{path: /usr/bin/curl}]\n"               \
    "    endpoints: [{host: api.example.org, port: 443" keys "}]\n"

static struct row {
    const char *name;
    const char *policy_text; /* NULL: the built-in one */
    struct policy *policy;
    struct govern *govern;
    uint64_t *ns;
} rows[] = {
    {"no network",           NULL,                                    NULL, NULL, NULL},
    {"egress, a tunnel",     RULES(""),                               NULL, NULL, NULL},
    {"egress, looks inside", RULES(", protocol: rest, access: full"), NULL, NULL, NULL},
};

static char *dir;
static struct spawner *spawner;
static struct govern_shared *shared;

static uint64_t run_once(struct govern *govern)
{
    static const char *const argv[] = {"/bin/true", NULL};
    static const struct streams none = {.in_fd = -1, .out_fd = -1, .err_fd = -1};
    struct request request = {
        .kind = ACTION_RUN,
        .principal = "bench",
        .tenant = "default",
        .provider = "local",
        .image = "host",
        .argv = {argv, 1}
    };
    uint64_t began = now_ns();
    struct run run;
    struct err err;

    run_init(&run);
    if (govern_run(govern, &request, &none, &run, &err) < 0)
        give_up("running", err.text);
    began = now_ns() - began;
    if (run.verdict.kind != VERDICT_ALLOW)
        give_up("denied", run.verdict.text ? run.verdict.text : reason_code(run.verdict.reason));
    if (!run.outcome.ended || run.outcome.exit_code != 0 || run.outcome.reason != REASON_NONE)
        give_up("the run failed",
                run.outcome.failure ? run.outcome.failure : reason_code(run.outcome.reason));
    run_done(&run);
    return began;
}

static void open_row(struct row *row, size_t samples)
{
    struct govern_config config = {.state_dir = dir, .spawner = spawner, .shared = shared};
    struct mark where;
    struct err err;

    if ((row->policy_text ? policy_parse(str_of(row->policy_text), &row->policy, &where, &err)
                          : policy_builtin(&row->policy, &err)) < 0)
        give_up(row->name, err.text);
    config.policy = row->policy;
    if (govern_open(&config, &row->govern, &err) < 0)
        give_up(row->name, err.text);
    row->ns = xcalloc(samples, sizeof *row->ns);
}

static void close_row(struct row *row)
{
    govern_free(row->govern);
    policy_free(row->policy);
    free(row->ns);
}

static void open_all(const char *where, size_t samples)
{
    AUTO_FREE char *full = realpath(where, NULL);
    struct err err;

    if (!full || asprintf(&dir, "%s/bench-create-XXXXXX", full) < 0 || !mkdtemp(dir))
        give_up("cannot make a folder in", where);
    if (spawner_open(&spawner, &err) < 0)
        give_up("starting a spawner", err.text);
    shared = govern_shared_new(dir, NULL);
    for (size_t i = 0; i < COUNT(rows); i++)
        open_row(&rows[i], samples);
}

static void close_all(void)
{
    struct err err;

    for (size_t i = 0; i < COUNT(rows); i++)
        close_row(&rows[i]);
    govern_shared_free(shared);
    spawner_free(spawner);
    if (dir_remove(AT_FDCWD, dir, &err) < 0)
        give_up("cleaning up", err.text);
    free(dir);
}

static void print_rows(size_t n)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        sort_ns(rows[i].ns, n);
    (void)printf("%-24s %8s %8s %8s %8s\n", "ms", "min", "p50", "p99", "added");
    for (size_t i = 0; i < COUNT(rows); i++)
        (void)printf("%-24s %8.2f %8.2f %8.2f %8.2f\n", rows[i].name, ms_at(rows[i].ns, n, 0),
                     ms_at(rows[i].ns, n, 500), ms_at(rows[i].ns, n, 990),
                     ms_at(rows[i].ns, n, 500) - ms_at(rows[0].ns, n, 500));
}

int main(int argc, char **argv)
{
    size_t samples = 200;
    int option;

    while ((option = getopt(argc, argv, "n:")) != -1) {
        if (option != 'n')
            return 64;
        samples = strtoul(optarg, NULL, 10);
    }
    if (samples == 0 || samples > SAMPLES_MAX)
        give_up("-n", "a number from 1 to 20000");
    open_all(argv[optind] ? argv[optind] : ".", samples);
    for (size_t round = 0; round < WARM_UP + samples; round++)
        for (size_t i = 0; i < COUNT(rows); i++) {
            size_t at = (i + round) % COUNT(rows);
            uint64_t took = run_once(rows[at].govern);

            if (round >= WARM_UP)
                rows[at].ns[round - WARM_UP] = took;
        }
    print_rows(samples);
    close_all();
    return 0;
}
