/* SPDX-License-Identifier: Apache-2.0 */

/* daemon: what the way over HTTP adds to what a sandbox costs.
 *
 *     daemon [-n SAMPLES] SOCKET DIRECTORY
 *
 * SOCKET is the unix socket of a running "brig serve", whose state directory is not DIRECTORY:
 * there this process governs the same by itself, with a spawner, as the daemon does. Rows take
 * turns; each row over HTTP is divided by the one above it. */

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "flow/decide/decide.h"
#include "flow/execute/execute.h"
#include "flow/govern.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/http/http-client.h"
#include "lib/json/json.h"

#define SAMPLES_MAX 5000
#define WARM_UP 5

static struct {
    char *dir;
    struct policy *policy;
    struct spawner *spawner;
    struct govern_shared *shared;
    struct govern *govern;
    char inside[ID_BYTES]; /* a sandbox of our own, kept for the warm rows */
    struct http_client *client;
    char remote[ID_BYTES]; /* and one of the daemon's */
    size_t samples;
} bench = {.samples = 200};

/* ---- in this process ---- */

static const char *const program[] = {"/bin/true", NULL};
static const struct streams no_streams = {.in_fd = -1, .out_fd = -1, .err_fd = -1};

static struct request request_for(enum action_kind kind, const char *sandbox)
{
    return (struct request){
        .kind = kind,
        .sandbox = sandbox,
        .principal = "bench",
        .tenant = "default",
        .provider = "local",
        .image = "host",
        .no_pool = true,
        .argv = {program, 1}
    };
}

static void expect_success(const struct run *run)
{
    if (run->verdict.kind != VERDICT_ALLOW || run->outcome.reason != REASON_NONE)
        give_up("a run failed",
                run->verdict.text ? run->verdict.text : reason_code(run->outcome.reason));
}

static void do_here(enum action_kind kind, const char *sandbox, char made[ID_BYTES])
{
    struct request request = request_for(kind, sandbox);
    struct run run;
    struct err err;
    int failed;

    run_init(&run);
    if (kind == ACTION_CREATE)
        failed = govern_create(bench.govern, &request, &run, &err);
    else if (kind == ACTION_EXEC)
        failed = govern_exec(bench.govern, &request, &no_streams, &run, &err);
    else if (kind == ACTION_RUN)
        failed = govern_run(bench.govern, &request, &no_streams, &run, &err);
    else
        failed = govern_change(bench.govern, &request, &run, &err);
    if (failed)
        give_up(action_name(kind), err.text);
    expect_success(&run);
    if (made)
        (void)strcpy(made, run.sandbox_id);
    run_done(&run);
    execute_rest(govern_execute(bench.govern));
}

static void here_cycle(void)
{
    char id[ID_BYTES];

    do_here(ACTION_CREATE, NULL, id);
    do_here(ACTION_EXEC, id, NULL);
    do_here(ACTION_DESTROY, id, NULL);
}

static void here_run(void)
{
    do_here(ACTION_RUN, NULL, NULL);
}

static void here_exec(void)
{
    do_here(ACTION_EXEC, bench.inside, NULL);
}

/* ---- over HTTP ---- */

static void ask(const char *method, const char *path, const char *body, int wanted, struct buf *out)
{
    const struct http_header type = {str_of("Content-Type"), str_of("application/json")};
    struct http_ask question = {
        .method = str_of(method),
        .target = str_of(path),
        .host = str_of("localhost"),
        .headers = &type,
        .header_count = *body ? 1 : 0,
        .framing = *body ? HTTP_LENGTH : HTTP_NO_BODY,
        .length = strlen(body),
    };
    enum http_method asked = strcmp(method, "POST") == 0 ? HTTP_POST : HTTP_DELETE;
    struct http_head head;
    struct err err;

    buf_clear(out);
    if (http_client_ask(bench.client, &question, str_of(body), &err) < 0 ||
        http_client_answer(bench.client, asked, &head, &err) < 0)
        give_up(path, err.text);
    wanted = head.status == wanted ? 0 : head.status;
    if (http_client_body_all(bench.client, out, &err) < 0)
        give_up(path, err.text);
    if (wanted)
        give_up(path, arena_text(&(struct arena)ARENA(1 * MIB), buf_str(out)));
}

static void remote_create(char id[ID_BYTES])
{
    AUTO_BUF struct buf answer = BUF(1 * MIB);
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    const struct json *json = NULL;
    struct str text = {0};
    struct mark where;
    struct err err;

    ask("POST", "/v1/sandboxes", "{}", 201, &answer);
    if (json_parse(&mem, buf_str(&answer), &json, &where, &err) < 0 ||
        !json_is_text(json_get(json, "sandbox_id"), &text) || text.n >= ID_BYTES)
        give_up("/v1/sandboxes", "answers something else");
    memcpy(id, text.p, text.n);
    id[text.n] = '\0';
}

static void remote_exec(const char *id)
{
    AUTO_BUF struct buf answer = BUF(1 * MIB);
    char path[96];

    (void)snprintf(path, sizeof path, "/v1/sandboxes/%s/exec", id);
    ask("POST", path, "{\"command\":[\"/bin/true\"]}", 200, &answer);
}

static void remote_destroy(const char *id)
{
    AUTO_BUF struct buf answer = BUF(1 * MIB);
    char path[96];

    (void)snprintf(path, sizeof path, "/v1/sandboxes/%s", id);
    ask("DELETE", path, "", 200, &answer);
}

static void http_cycle(void)
{
    char id[ID_BYTES];

    remote_create(id);
    remote_exec(id);
    remote_destroy(id);
}

static void http_run(void)
{
    AUTO_BUF struct buf answer = BUF(1 * MIB);

    ask("POST", "/v1/runs", "{\"command\":[\"/bin/true\"]}", 200, &answer);
}

static void http_exec(void)
{
    remote_exec(bench.remote);
}

/* ---- rows ---- */

static struct {
    const char *name;
    void (*once)(void);
    uint64_t ns[SAMPLES_MAX];
} rows[] = {
    {"create, exec, destroy, in process", here_cycle, {0}},
    {"the same over HTTP",                http_cycle, {0}},
    {"one command, in process",           here_run,   {0}},
    {"the same over HTTP",                http_run,   {0}},
    {"exec in a kept one, in process",    here_exec,  {0}},
    {"the same over HTTP",                http_exec,  {0}},
};

static void measure(void)
{
    for (size_t i = 0; i < bench.samples + WARM_UP; i++)
        for (size_t row = 0; row < COUNT(rows); row++) {
            uint64_t began = now_ns();

            rows[row].once();
            if (i >= WARM_UP)
                rows[row].ns[i - WARM_UP] = now_ns() - began;
        }
}

static double row_ms(size_t row, unsigned permille)
{
    return ms_at(rows[row].ns, bench.samples, permille);
}

static void print(void)
{
    (void)printf(
        "| %-34s | least ms | p50 ms | p99 ms | to the row above |\n|---|---|---|---|---|\n", "");
    for (size_t row = 0; row < COUNT(rows); row++)
        sort_ns(rows[row].ns, bench.samples);
    for (size_t row = 0; row < COUNT(rows); row++) {
        (void)printf("| %-34s | %8.3f | %6.3f | %6.3f | ", rows[row].name, row_ms(row, 0),
                     row_ms(row, 500), row_ms(row, 990));
        if (row % 2)
            (void)printf("%.2f×, %+.3f ms at p50 |\n", row_ms(row, 500) / row_ms(row - 1, 500),
                         row_ms(row, 500) - row_ms(row - 1, 500));
        else
            (void)printf("|\n");
    }
}

/* ---- the frame ---- */

static void open_all(const char *socket, const char *where)
{
    AUTO_FREE char *full = realpath(where, NULL);
    struct govern_config config = {0};
    struct err err;

    if (!full || asprintf(&bench.dir, "%s/bench-daemon-XXXXXX", full) < 0 || !mkdtemp(bench.dir))
        give_up("cannot make a folder in", where);
    if (policy_builtin(&bench.policy, &err) < 0 || spawner_open(&bench.spawner, &err) < 0)
        give_up("opening", err.text);
    bench.shared = govern_shared_new(bench.dir, NULL);
    config.state_dir = bench.dir;
    config.policy = bench.policy;
    config.spawner = bench.spawner;
    config.shared = bench.shared;
    if (govern_open(&config, &bench.govern, &err) < 0 ||
        http_client_open(socket, &bench.client, &err) < 0)
        give_up("opening", err.text);
    do_here(ACTION_CREATE, NULL, bench.inside);
    remote_create(bench.remote);
}

static void close_all(void)
{
    struct err err;

    remote_destroy(bench.remote);
    do_here(ACTION_DESTROY, bench.inside, NULL);
    http_client_free(bench.client);
    govern_free(bench.govern);
    govern_shared_free(bench.shared);
    spawner_free(bench.spawner);
    policy_free(bench.policy);
    if (dir_remove(AT_FDCWD, bench.dir, &err) < 0)
        give_up("cleaning up", err.text);
    free(bench.dir);
}

int main(int argc, char **argv)
{
    int option;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    while ((option = getopt(argc, argv, "n:")) != -1) {
        if (option != 'n')
            give_up("usage", "daemon [-n SAMPLES] SOCKET DIRECTORY");
        bench.samples = strtoul(optarg, NULL, 10);
    }
    if (argc - optind != 2 || bench.samples == 0 || bench.samples > SAMPLES_MAX)
        give_up("usage", "daemon [-n SAMPLES] SOCKET DIRECTORY");
    open_all(argv[optind], argv[optind + 1]);
    measure();
    print();
    close_all();
    return 0;
}
