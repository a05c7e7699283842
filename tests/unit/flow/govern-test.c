/* SPDX-License-Identifier: Apache-2.0 */

/* What a governor must not do to the process that has it. */

#include "flow/govern.h"
#include "test.h"

#include "flow/decide/decide.h"
#include "lib/base/io.h"
#include "lib/json/json.h"
#include "model/run.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char state[] = "/tmp/brig-govern-XXXXXX";
static char project[64];
static struct policy *policy;

static void set_up(void)
{
    struct err err;

    CHECK(mkdtemp(state) != NULL);
    (void)snprintf(project, sizeof project, "%.30s-project", state);
    CHECK_INT(mkdir(project, 0700), 0);
    CHECK_INT(policy_builtin(&policy, &err), 0);
}

static void tear_down(void)
{
    struct err err;

    policy_free(policy);
    CHECK_INT(dir_remove(AT_FDCWD, state, &err), 0);
    CHECK_INT(rmdir(project), 0);
}

static struct govern *open_govern(struct govern_shared *shared)
{
    struct govern_config config = {.state_dir = state, .policy = policy, .shared = shared};
    struct govern *govern = NULL;
    struct err err;

    if (govern_open(&config, &govern, &err) < 0)
        CHECK_TEXT(err.text, "");
    return govern;
}

static unsigned open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    CHECK(dir != NULL);
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}

static struct request request_with(const char *const *mounts, size_t n)
{
    static const char *const argv[] = {"/bin/true", NULL};

    return (struct request){
        .kind = ACTION_RUN,
        .principal = "test",
        .tenant = "default",
        .provider = "local",
        .image = "host",
        .argv = {argv,   1},
        .mounts = {mounts, n},
    };
}

static unsigned planned_descriptors(const struct run *run)
{
    unsigned n = 0;

    for (size_t i = 0; i < run->plan.mount_n; i++)
        n += run->plan.mounts[i].fd >= 0;
    return n;
}

TEST(what_was_only_planned_leaves_no_descriptor)
{
    char allowed[96];
    const char *asked[] = {allowed, "/etc:/mnt"}; /* which is never handed out */
    struct govern *govern;
    unsigned before = 0;

    set_up();
    (void)snprintf(allowed, sizeof allowed, "%s:/workspace", project);
    govern = open_govern(NULL);
    for (unsigned round = 0; round < 4; round++) {
        struct request request = request_with(asked, 1);
        struct config config;
        struct run run;
        struct err err;

        run_init(&run);
        CHECK_INT(govern_rehearse(govern, &request, &run, &config, &err), 0);
        if (run.verdict.kind != VERDICT_ALLOW)
            test_skip(run.verdict.text);
        CHECK(planned_descriptors(&run) > 0); /* what a pool is filed under counts them */
        execute_forget(&run);
        execute_forget(&run);
        CHECK_INT(planned_descriptors(&run), 0);
        run_done(&run);

        request = request_with(asked, 2);
        run_init(&run);
        CHECK_INT(govern_preflight(govern, &request, &run, &err), 0);
        CHECK_INT(run.verdict.kind, VERDICT_DENY);
        CHECK_TEXT(reason_code(run.verdict.reason), "MOUNT_FORBIDDEN");
        run_done(&run);

        /* The first round opens the ledger, and what stays open with it. */
        if (round == 0)
            before = open_descriptors();
    }
    CHECK_INT(open_descriptors(), before);
    govern_free(govern);
    tear_down();
}

static struct request question(const struct json *arguments)
{
    struct request request = request_with(NULL, 0);

    request.kind = ACTION_TOOL;
    request.tool = "search";
    request.arguments = arguments;
    return request;
}

static void consider(struct govern *govern, struct arena *mem, struct run *run)
{
    struct request request = question(json_object(mem));
    struct err err;

    run_init(run);
    CHECK_INT(govern_consider(govern, &request, run, &err), 0);
    CHECK_INT(run->verdict.kind, VERDICT_ALLOW);
    CHECK_TEXT(run->intent.id, ""); /* judged, and not recorded */
}

TEST(questions_become_durable_together_or_not_at_all)
{
    AUTO_ARENA struct arena mem = ARENA(1 << 20);
    struct run runs[3], *all[] = {&runs[0], &runs[1], &runs[2]};
    struct run *twice[] = {&runs[1], &runs[0], &runs[0]}; /* of a run there is one intent */
    struct govern *govern;
    struct err err;

    set_up();
    govern = open_govern(NULL);
    for (size_t i = 0; i < COUNT(runs); i++)
        consider(govern, &mem, &runs[i]);
    CHECK_INT(govern_record_asked(govern, twice, COUNT(twice), &err), -1);
    CHECK_TEXT(runs[1].intent.id, "");
    CHECK_INT(govern_record_asked(govern, all, COUNT(all), &err), 0);
    for (size_t i = 0; i < COUNT(runs); i++) {
        CHECK_INT(runs[i].intent.seq, i + 1); /* so nothing was left of the first attempt */
        run_done(&runs[i]);
    }
    govern_free(govern);
    tear_down();
}
