/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/admit/admit.h"
#include "test.h"

#include "lib/base/limits.h"

#include <stdlib.h>

static const char *const hello[] = {"echo", "Hello", NULL};

static struct request request_of(void)
{
    return (struct request){
        .principal = "uid:1000",
        .tenant = "default",
        .provider = "mock",
        .image = "host",
        .argv = {hello, 2},
        .stdin_stream = true,
    };
}

static void check_refused(const struct request *request, enum err_code code, const char *text)
{
    struct run run;
    struct err err = {0};

    run_init(&run);
    CHECK_INT(admit_run(request, &run, &err), -1);
    CHECK_INT(err.code, code);
    CHECK_TEXT(err.text, text);
    run_done(&run);
}

TEST(request_without_a_command_is_refused)
{
    static const char *const empty[] = {"", NULL};
    struct request request = request_of();

    request.argv = (struct words){hello, 0};
    check_refused(&request, ERR_INVALID, "there is no command; write it behind --");
    request.argv = (struct words){empty, 1};
    check_refused(&request, ERR_INVALID, "there is no command; write it behind --");
}

TEST(words_are_copied_byte_for_byte)
{
    static const char *const argv[] = {"echo", "a; id", "", "\xff\n", NULL};
    struct request request = request_of();
    struct run run;
    struct err err;

    run_init(&run);
    request.argv = (struct words){argv, 4};
    CHECK_INT(admit_run(&request, &run, &err), 0);
    CHECK_INT(run.action.argv.n, 4);
    for (size_t i = 0; i < 4; i++) {
        CHECK(run.action.argv.v[i] != argv[i]);
        CHECK_TEXT(run.action.argv.v[i], argv[i]);
    }
    CHECK(run.action.argv.v[4] == NULL);
    run_done(&run);
}

TEST(too_many_and_too_long_words_are_refused)
{
    struct request request = request_of();
    const char **many = xcalloc(ARGV_WORDS_MAX + 2, sizeof *many);
    char *longest = xmalloc(ARGV_BYTES_MAX + 1);

    for (size_t i = 0; i <= ARGV_WORDS_MAX; i++)
        many[i] = "x";
    request.argv = (struct words){many, ARGV_WORDS_MAX + 1};
    check_refused(&request, ERR_LIMIT, "more than 65536 arguments");
    memset(longest, 'x', ARGV_BYTES_MAX);
    longest[ARGV_BYTES_MAX] = '\0';
    many[0] = longest;
    request.argv = (struct words){many, 1};
    check_refused(&request, ERR_LIMIT, "arguments of more than 2097152 bytes");
    free(longest);
    free(many);
}

TEST(variables_are_sorted_and_taken_as_written)
{
    static const char *const env[] = {"Z=1", "A=x=y", "B=", "_a9=\xff", NULL};
    static const char *const sorted[] = {"A=x=y", "B=", "Z=1", "_a9=\xff"};
    struct request request = request_of();
    struct run run;
    struct err err;

    run_init(&run);
    request.env = (struct words){env, 4};
    CHECK_INT(admit_run(&request, &run, &err), 0);
    CHECK_INT(run.action.env.n, 4);
    for (size_t i = 0; i < COUNT(sorted); i++)
        CHECK_TEXT(run.action.env.v[i], sorted[i]);
    run_done(&run);
}

TEST(variable_is_forwarded_by_name)
{
    static const char *const env[] = {"BRIG_TEST_FORWARDED", NULL};
    struct request request = request_of();
    struct run run;
    struct err err;

    run_init(&run);
    CHECK_INT(setenv("BRIG_TEST_FORWARDED", "a b", 1), 0);
    request.env = (struct words){env, 1};
    CHECK_INT(admit_run(&request, &run, &err), 0);
    CHECK_TEXT(run.action.env.v[0], "BRIG_TEST_FORWARDED=a b");
    run_done(&run);
}

TEST(variables_that_are_none_are_refused)
{
    static const struct {
        const char *env[3];
        const char *text;
    } cases[] = {
        {{"", NULL},             "--env \"\": write K=V or K"                                },
        {{"=x", NULL},           "--env \"=x\": write K=V or K"                              },
        {{"1A=x", NULL},         "--env \"1A=x\": write K=V or K"                            },
        {{"A-B=x", NULL},        "--env \"A-B=x\": write K=V or K"                           },
        {{"A B=x", NULL},        "--env \"A B=x\": write K=V or K"                           },
        {{"A=1", "A=2"},         "--env A: given twice"                                      },
        {{"A=1", "A=1"},         "--env A: given twice"                                      },
        {{"BRIG_NOT_SET", NULL}, "--env BRIG_NOT_SET: not set here; write BRIG_NOT_SET=VALUE"},
        {{"LD_PRELOAD", NULL},
         "--env LD_PRELOAD: such variables are not forwarded; write "
         "LD_PRELOAD=VALUE if it must be"                                                    },
        {{"PYTHONPATH", NULL},
         "--env PYTHONPATH: such variables are not forwarded; write "
         "PYTHONPATH=VALUE if it must be"                                                    },
    };

    CHECK_INT(setenv("LD_PRELOAD", "", 1), 0);
    CHECK_INT(setenv("PYTHONPATH", "/x", 1), 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct request request = request_of();

        request.env = (struct words){cases[i].env, cases[i].env[1] ? 2U : 1U};
        check_refused(&request, ERR_INVALID, cases[i].text);
    }
}

TEST(mounts_are_read)
{
    static const char *const mounts[] = {"/a:/b", "rel:/c:ro", "/x y:/d:rw", NULL};
    static const struct mount_ask wanted[] = {
        {"/a",   "/b", MOUNT_RO},
        {"rel",  "/c", MOUNT_RO},
        {"/x y", "/d", MOUNT_RW},
    };
    struct request request = request_of();
    struct run run;
    struct err err;

    run_init(&run);
    request.mounts = (struct words){mounts, 3};
    CHECK_INT(admit_run(&request, &run, &err), 0);
    CHECK_INT(run.action.mount_n, 3);
    for (size_t i = 0; i < COUNT(wanted); i++) {
        CHECK_TEXT(run.action.mounts[i].source, wanted[i].source);
        CHECK_TEXT(run.action.mounts[i].target, wanted[i].target);
        CHECK_INT(run.action.mounts[i].access, wanted[i].access);
    }
    run_done(&run);
}

TEST(mounts_that_are_none_are_refused)
{
    static const char *const cases[] = {
        "", "/a", ":", "/a:", ":/b", "/a:/b:rwx", "/a:/b:", "/a:/b:ro:rw", "/a:/b:RW",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *mounts[] = {cases[i], NULL};
        struct request request = request_of();
        struct run run;
        struct err err = {0};

        if (strcmp(cases[i], "/a:/b:") == 0)
            continue; /* nothing behind the colon says no more than no colon */
        run_init(&run);
        request.mounts = (struct words){mounts, 1};
        CHECK_INT(admit_run(&request, &run, &err), -1);
        CHECK_INT(err.code, ERR_INVALID);
        CHECK(strstr(err.text, "write SRC:DST, SRC:DST:ro or SRC:DST:rw") != NULL);
        run_done(&run);
    }
}

TEST(limits_no_machine_has_are_refused)
{
    struct request request = request_of();

    request.limits[LIMIT_MEMORY] = UINT64_MAX;
    check_refused(&request, ERR_INVALID,
                  "memory_bytes of 18446744073709551615 is more than any machine has");
}

/* The vectors of docs/formats/request.md; changing them is changing the format. */
TEST(request_hash_is_the_documented_one)
{
    static const char *const argv[] = {"printf", "a\xff", "two words", NULL};
    static const char *const env[] = {"Z=1", "B=2", NULL};
    static const char *const mounts[] = {"/srv/a:/workspace:rw", "/srv/b:/mnt", NULL};
    struct request request = request_of();
    struct run run;
    struct err err;

    run_init(&run);
    CHECK_INT(admit_run(&request, &run, &err), 0);
    CHECK_TEXT(run.action.request_hash,
               "sha256:32605192e8cfa3188171ce2aaaadde2c395d2e4c62cc34104fcd114fa0dc5151");
    run_done(&run);
    request.argv = (struct words){argv, 3};
    request.env = (struct words){env, 2};
    request.mounts = (struct words){mounts, 2};
    request.workdir = "/workspace";
    request.limits[LIMIT_WALL] = 5000;
    request.limits[LIMIT_CPU] = 500;
    request.limits[LIMIT_MEMORY] = 67108864;
    request.limits[LIMIT_PIDS] = 9;
    request.limits[LIMIT_DISK] = 1048576;
    request.limits[LIMIT_INODES] = 7;
    run_init(&run);
    CHECK_INT(admit_run(&request, &run, &err), 0);
    CHECK_TEXT(run.action.request_hash,
               "sha256:e0989778883a8375faccfa032910b15362a76247d10deff95c4caad995da026d");
    run_done(&run);
}

/* Whatever is asked for differently has another hash. */
TEST(request_hash_covers_every_member)
{
    static const char *const other_argv[] = {"echo", "Hell", "o", NULL};
    static const char *const env[] = {"A=1", NULL};
    static const char *const mounts[] = {"/a:/b", NULL};
    struct request variants[11];
    char hashes[COUNT(variants)][MODEL_HASH_BYTES];

    for (size_t i = 0; i < COUNT(variants); i++)
        variants[i] = request_of();
    variants[1].argv = (struct words){other_argv, 3};
    variants[2].env = (struct words){env, 1};
    variants[3].mounts = (struct words){mounts, 1};
    variants[4].workdir = "/tmp";
    variants[5].provider = "local";
    variants[6].stdin_stream = false;
    variants[7].tty = true;
    variants[8].network = NETWORK_POLICY;
    variants[9].limits[LIMIT_PIDS] = 1;
    variants[10].network = NETWORK_DEFAULT;
    for (size_t i = 0; i < COUNT(variants); i++) {
        struct run run;
        struct err err;

        run_init(&run);
        CHECK_INT(admit_run(&variants[i], &run, &err), 0);
        memcpy(hashes[i], run.action.request_hash, sizeof hashes[i]);
        run_done(&run);
        for (size_t j = 0; j < i; j++)
            CHECK(strcmp(hashes[i], hashes[j]) != 0);
    }
}

/* ---- what is kept with a sandbox ---- */

TEST(another_policy_changes_what_it_says_and_nothing_else)
{
    AUTO_BUF struct buf first = BUF(65536);
    AUTO_BUF struct buf second = BUF(65536);
    AUTO_ARENA struct arena mem = ARENA(1 << 20);
    struct request request = request_of();
    struct config before, after;
    struct run run;
    struct err err;

    request.name = "n";
    request.network = NETWORK_DEFAULT;
    request.policy_text = "version: 1";
    run_init(&run);
    CHECK_INT(admit_run(&request, &run, &err), 0);
    (void)strcpy(run.policy_hash, "sha256:1");
    (void)strcpy(run.planned.preimage_hash, "sha256:2");
    (void)strcpy(run.planned.image_digest, "sha256:3");
    (void)strcpy(run.plan.egress.hash, "sha256:4");
    run.plan.egress.rules = STR_LIT("{}");
    CHECK_INT(config_write(&request, &run, &first, &err), 0);
    CHECK_INT(config_read(&mem, buf_str(&first), &before, &err), 0);
    CHECK_INT(before.request.network, NETWORK_DEFAULT);
    CHECK_TEXT(before.network_hash, "sha256:4");

    (void)strcpy(run.policy_hash, "sha256:5");
    (void)strcpy(run.planned.preimage_hash, "sha256:6");
    (void)strcpy(run.plan.egress.hash, "sha256:7");
    CHECK_INT(config_repolicy(buf_str(&first), "version: 1 #", &run, &second, &err), 0);
    CHECK_INT(config_read(&mem, buf_str(&second), &after, &err), 0);
    CHECK_TEXT(after.request.policy_text, "version: 1 #");
    CHECK_TEXT(after.policy_hash, "sha256:5");
    CHECK_TEXT(after.preimage_hash, "sha256:6");
    CHECK_TEXT(after.network_hash, "sha256:7");
    CHECK_TEXT(after.created_at, before.created_at);
    CHECK_TEXT(after.id, before.id);
    CHECK_TEXT(after.request.name, "n");
    CHECK(strcmp(after.config_hash, before.config_hash) != 0);
    run_done(&run);
}
