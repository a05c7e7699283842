/* SPDX-License-Identifier: Apache-2.0 */

/* runs STATE: each line of standard input is a shell command; all of them run in sandboxes of one
 * spawner, one after the other, governed. Says "line N: " and how it ended. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "flow/decide/decide.h"
#include "flow/govern.h"

static int run_line(struct govern *govern, const char *line, unsigned number)
{
    const char *const argv[] = {"sh", "-c", line, NULL};
    struct request request = {
        .kind = ACTION_RUN,
        .principal = "test",
        .tenant = "default",
        .provider = "local",
        .image = "host",
        .argv = {argv, 3}
    };
    struct streams streams = {.in_fd = -1, .out_fd = STDOUT_FILENO, .err_fd = STDOUT_FILENO};
    struct run run;
    struct err err;
    int failed;

    run_init(&run);
    failed = govern_run(govern, &request, &streams, &run, &err);
    if (failed)
        (void)printf("line %u: error %s\n", number, err.text);
    else if (run.verdict.kind != VERDICT_ALLOW)
        (void)printf("line %u: denied %s %s\n", number, reason_code(run.verdict.reason),
                     run.verdict.text ? run.verdict.text : "");
    else
        (void)printf("line %u: exit %d signal %d %s\n", number, run.outcome.exit_code,
                     run.outcome.signal, reason_code(run.outcome.reason));
    run_done(&run);
    return failed;
}

int main(int argc, char **argv)
{
    AUTO(spawner) struct spawner *spawner = NULL;
    AUTO(policy) struct policy *policy = NULL;
    AUTO(govern) struct govern *govern = NULL;
    struct govern_config config = {.state_dir = argv[1]};
    char line[4096];
    struct err err;

    (void)setvbuf(stdout, NULL, _IONBF, 0);
    if (argc != 2 || policy_builtin(&policy, &err) < 0 || spawner_open(&spawner, &err) < 0)
        return 64;
    config.policy = policy;
    config.spawner = spawner;
    if (govern_open(&config, &govern, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 71;
    }
    (void)printf("ready\n");
    for (unsigned i = 1; fgets(line, sizeof line, stdin); i++) {
        line[strcspn(line, "\n")] = '\0';
        if (run_line(govern, line, i) < 0)
            return 1;
    }
    return 0;
}
