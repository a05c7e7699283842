/* SPDX-License-Identifier: Apache-2.0 */

/* execs STATE: each line of standard input is the id of a kept sandbox and a shell command for it,
 * or "create"; all of them run one after the other in this one process, governed. After what a
 * command wrote comes "line N: " and how it ended, or the id of what was made. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "flow/decide/decide.h"
#include "flow/govern.h"

static void make(struct govern *govern, const char *snapshot_of, unsigned number)
{
    struct request request = {
        .kind = snapshot_of ? ACTION_SNAPSHOT : ACTION_CREATE,
        .principal = "test",
        .tenant = "default",
        .provider = "local",
        .image = "host",
        .name = "",
    };
    struct run run;
    struct err err;

    request.sandbox = snapshot_of;
    run_init(&run);
    if (snapshot_of ? govern_snapshot(govern, &request, &run, &err) < 0
                    : govern_create(govern, &request, &run, &err) < 0)
        (void)printf("line %u: error %s\n", number, err.text);
    else if (run.verdict.kind != VERDICT_ALLOW)
        (void)printf("line %u: denied %s\n", number, reason_code(run.verdict.reason));
    else
        (void)printf("line %u: %s\n", number, run.sandbox_id);
    run_done(&run);
}

static void run_line(struct govern *govern, char *line, unsigned number)
{
    char *command = strchr(line, ' ');
    const char *const argv[] = {"sh", "-c", command ? command + 1 : "", NULL};
    struct request request = {
        .kind = ACTION_EXEC,
        .sandbox = line,
        .principal = "test",
        .tenant = "default",
        .provider = "local",
        .image = "host",
        .argv = {argv, 3}
    };
    struct streams streams = {.in_fd = -1, .out_fd = STDOUT_FILENO, .err_fd = STDOUT_FILENO};
    struct run run;
    struct err err;

    line[strcspn(line, " ")] = '\0';
    run_init(&run);
    if (govern_exec(govern, &request, &streams, &run, &err) < 0)
        (void)printf("line %u: error %s\n", number, err_name(err.code));
    else if (run.verdict.kind != VERDICT_ALLOW)
        (void)printf("line %u: denied %s\n", number, reason_code(run.verdict.reason));
    else
        (void)printf("line %u: exit %d signal %d %s\n", number, run.outcome.exit_code,
                     run.outcome.signal, reason_code(run.outcome.reason));
    run_done(&run);
}

int main(int argc, char **argv)
{
    AUTO(policy) struct policy *policy = NULL;
    AUTO(govern) struct govern *govern = NULL;
    struct govern_config config = {.state_dir = argv[1]};
    char line[4096];
    struct err err;

    (void)setvbuf(stdout, NULL, _IONBF, 0);
    (void)setvbuf(stdin, NULL, _IONBF, 0);
    if (argc != 2 || policy_builtin(&policy, &err) < 0)
        return 64;
    config.policy = policy;
    if (govern_open(&config, &govern, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 71;
    }
    for (unsigned i = 1; fgets(line, sizeof line, stdin); i++) {
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, "create") == 0)
            make(govern, NULL, i);
        else if (strncmp(line, "snapshot ", 9) == 0)
            make(govern, line + 9, i);
        else
            run_line(govern, line, i);
    }
    return 0;
}
