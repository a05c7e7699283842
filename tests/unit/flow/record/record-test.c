/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "flow/record/ledger.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"

#define ZERO_HASH "sha256:0000000000000000000000000000000000000000000000000000000000000000"

static void check_members(const char *name, const char *const members[][2], size_t n)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    const struct json *json = fixture_show(&mem, name);

    for (size_t i = 0; json && i < n; i++) {
        const char *got = fixture_member(json, members[i][0]);

        if (strcmp(got, members[i][1]) != 0)
            test_fail(__FILE__, __LINE__, "%s %s is \"%s\", should be \"%s\"", name, members[i][0],
                      got, members[i][1]);
    }
}

TEST(an_allowed_run_has_an_intent_and_an_outcome)
{
    AUTO(record) struct record *record = NULL;
    struct run run;
    struct err err;

    fixture_begin();
    record = fixture_open();
    fixture_run(&run);
    CHECK_INT(record_intent(record, &run, &err), 0);
    CHECK_INT(run.intent.seq, 1);
    CHECK_INT(run.intent.lamport_clock, 1);
    fixture_ended(&run, 3);
    CHECK_INT(record_close(record, &run, &err), 0);
    CHECK_INT(run.closing.seq, 2);
    CHECK_INT(run.closing.lamport_clock, 2);
    {
        const char *const intent[][2] = {
            {"/v",                            "1"                                                          },
            {"/kind",                         "intent"                                                     },
            {"/seq",                          "1"                                                          },
            {"/lamport_clock",                "1"                                                          },
            {"/prev_hash",                    ZERO_HASH                                                    },
            {"/receipt_id",                   run.intent.id                                                },
            {"/run_id",                       run.id                                                       },
            {"/decision_id",                  run.decision_id                                              },
            {"/effect_id",                    run.effect_id                                                },
            {"/session_id",                   run.session_id                                               },
            {"/sandbox_id",                   run.sandbox_id                                               },
            {"/tenant",                       "default"                                                    },
            {"/principal",                    "uid:1000"                                                   },
            {"/provider",                     "local"                                                      },
            {"/mock",                         "(absent)"                                                   },
            {"/status",                       "APPROVED"                                                   },
            {"/verdict",                      "ALLOW"                                                      },
            {"/reason_code",                  "POLICY_ALLOW"                                               },
            {"/rule",                         "build tools"                                                },
            {"/rule_line",                    "12"                                                         },
            {"/policy_hash",                  run.policy_hash                                              },
            {"/request_hash",                 run.action.request_hash                                      },
            {"/posture/evidence",             "planned"                                                    },
            {"/posture/degraded",             "[]"                                                         },
            {"/posture/provider_version",     run.planned.provider_version                                 },
            {"/posture/sandbox_spec_hash",    run.planned.sandbox_spec_hash                                },
            {"/posture/image_digest",         run.planned.image_digest                                     },
            {"/posture/mounts_hash",          run.planned.mounts_hash                                      },
            {"/posture/egress_policy_hash",   run.planned.egress_policy_hash                               },
            {"/posture/resource_limits_hash", run.planned.resource_limits_hash                             },
            {"/posture/preimage_hash",        run.planned.preimage_hash                                    },
            {"/limits/pids",                  "{\"means\":\"cgroup\",\"origin\":\"default\",\"value\":256}"},
            {"/outcome",                      "(absent)"                                                   },
            {"/timestamp",                    run.intent.timestamp                                         },
            {"/hash",                         run.intent.hash                                              },
        };
        const char *const outcome[][2] = {
            {"/kind",                      "outcome"                                                      },
            {"/seq",                       "2"                                                            },
            {"/prev_hash",                 run.intent.hash                                                },
            {"/intent_id",                 run.intent.id                                                  },
            {"/run_id",                    run.id                                                         },
            {"/status",                    "APPROVED"                                                     },
            {"/posture/evidence",          "observed"                                                     },
            {"/outcome/started",           "true"                                                         },
            {"/outcome/ended",             "true"                                                         },
            {"/outcome/exit_code",         "3"                                                            },
            {"/outcome/signal",            "0"                                                            },
            {"/outcome/timed_out",         "false"                                                        },
            {"/outcome/oom_killed",        "false"                                                        },
            {"/outcome/stdout_bytes",      "6"                                                            },
            {"/outcome/stdout_hash",       run.outcome.out.hash                                           },
            {"/outcome/output_hash",       run.outcome.output_hash                                        },
            {"/outcome/truncated",         "false"                                                        },
            {"/outcome/duration_us",       "1234"                                                         },
            {"/outcome/cpu_us",            "567"                                                          },
            {"/outcome/peak_memory_bytes", "89"                                                           },
            {"/outcome/egress",            "{\"bytes_in\":0,\"bytes_out\":0,\"refused\":0,\"requests\":0}"},
            {"/hash",                      run.closing.hash                                               },
        };

        check_members("1", intent, COUNT(intent));
        check_members("2", outcome, COUNT(outcome));
    }
    run_done(&run);
    fixture_end();
}

TEST(how_a_run_ended_is_its_reason)
{
    AUTO(record) struct record *record = NULL;
    struct run run;
    struct err err;

    fixture_begin();
    record = fixture_open();
    fixture_run(&run);
    CHECK_INT(record_intent(record, &run, &err), 0);
    fixture_ended(&run, 0);
    run.outcome.signal = 9;
    run.outcome.timed_out = true;
    run.outcome.reason = REASON_LIMIT_TIME;
    run.outcome.out.truncated = true;
    run.outcome.failure = "bytes that are not text: \xff";
    CHECK_INT(record_close(record, &run, &err), 0);
    {
        static const char *const outcome[][2] = {
            {"/reason_code",         "LIMIT_TIME"                          },
            {"/verdict",             "ALLOW"                               },
            {"/outcome/exit_code",   "(absent)"                            },
            {"/outcome/signal",      "9"                                   },
            {"/outcome/timed_out",   "true"                                },
            {"/outcome/truncated",   "true"                                },
            {"/outcome/failure",     "(absent)"                            },
            {"/outcome/failure_b64", "Ynl0ZXMgdGhhdCBhcmUgbm90IHRleHQ6IP8="},
        };

        check_members("2", outcome, COUNT(outcome));
    }
    run_done(&run);
    fixture_end();
}

TEST(a_denial_is_one_receipt)
{
    static const struct {
        enum verdict_kind verdict;
        enum reason reason;
        const char *status;
        const char *code;
    } cases[] = {
        {VERDICT_DENY, REASON_POLICY_DENY, "DENIED",  "POLICY_DENY"},
        {VERDICT_ASK,  REASON_POLICY_ASK,  "PENDING", "POLICY_ASK" },
    };

    fixture_begin();
    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO(record) struct record *record = fixture_open();
        struct run run;
        struct err err;

        fixture_run(&run);
        run.planned = (struct posture){0};
        run.plan = (struct plan){0};
        run.verdict.kind = cases[i].verdict;
        run.verdict.reason = cases[i].reason;
        CHECK_INT(record_intent(record, &run, &err), 0);
        {
            const char *const denial[][2] = {
                {"/kind",        "denial"                      },
                {"/status",      cases[i].status               },
                {"/verdict",     verdict_name(cases[i].verdict)},
                {"/reason_code", cases[i].code                 },
                {"/posture",     "(absent)"                    },
                {"/limits",      "(absent)"                    },
                {"/outcome",     "(absent)"                    },
                {"/intent_id",   "(absent)"                    },
            };

            check_members(run.intent.id, denial, COUNT(denial));
        }
        CHECK_INT(record_close(record, &run, &err), -1);
        CHECK_INT(err.code, ERR_CONFLICT);
        CHECK_INT(record_abandoned(record, run.id, &err), 0);
        run_done(&run);
    }
    {
        struct record_report report;

        fixture_verify(&report);
        CHECK_INT(report.entries, COUNT(cases));
        CHECK_INT(report.open_runs, 0);
    }
    fixture_end();
}

TEST(a_denial_at_preflight_names_what_is_degraded)
{
    AUTO(record) struct record *record = NULL;
    struct run run;
    struct err err;

    fixture_begin();
    record = fixture_open();
    fixture_run(&run);
    CHECK_INT(record_intent(record, &run, &err), 0);
    fixture_ended(&run, 0);
    run.checks.n = 2;
    run.checks.of[0] = (struct check){.name = "image", .passed = true};
    run.checks.of[1] = (struct check){.name = "mounts", .passed = false};
    run.verdict = (struct verdict){.kind = VERDICT_DENY, .reason = REASON_PREFLIGHT_MOUNT_POLICY};
    CHECK_INT(record_close(record, &run, &err), 0);
    {
        const char *const denial[][2] = {
            {"/kind",             "denial"                },
            {"/status",           "DENIED"                },
            {"/verdict",          "DENY"                  },
            {"/reason_code",      "PREFLIGHT_MOUNT_POLICY"},
            {"/intent_id",        run.intent.id           },
            {"/posture/degraded", "[\"mounts\"]"          },
            {"/posture/evidence", "observed"              },
            {"/outcome",          "(absent)"              },
        };

        check_members(run.closing.id, denial, COUNT(denial));
    }
    run_done(&run);
    fixture_end();
}

TEST(the_mock_provider_says_so)
{
    static const char *const members[][2] = {
        {"/provider",  "mock"},
        {"/mock",      "true"},
        {"/isolation", "none"}
    };
    AUTO(record) struct record *record = NULL;
    struct run run;
    struct err err;

    fixture_begin();
    record = fixture_open();
    fixture_run(&run);
    run.action.provider = "mock";
    CHECK_INT(record_intent(record, &run, &err), 0);
    check_members("1", members, COUNT(members));
    run_done(&run);
    fixture_end();
}

TEST(a_run_ends_once)
{
    AUTO(record) struct record *record = NULL;
    struct run run;
    struct err err;

    fixture_begin();
    record = fixture_open();
    fixture_run(&run);
    CHECK_INT(record_close(record, &run, &err), -1);
    CHECK_INT(err.code, ERR_NOT_FOUND);
    CHECK_INT(record_intent(record, &run, &err), 0);
    CHECK_INT(record_intent(record, &run, &err), -1);
    CHECK_INT(err.code, ERR_CONFLICT);
    fixture_ended(&run, 0);
    CHECK_INT(record_close(record, &run, &err), 0);
    CHECK_INT(record_close(record, &run, &err), -1);
    CHECK_INT(err.code, ERR_CONFLICT);
    CHECK(strstr(err.text, "has ended already") != NULL);
    {
        struct record_report report;

        fixture_verify(&report);
        CHECK_INT(report.integrity, INTEGRITY_INTACT);
        CHECK_INT(report.entries, 2);
    }
    run_done(&run);
    fixture_end();
}

TEST(an_abandoned_run_is_ended_by_whoever_finds_it)
{
    AUTO(record) struct record *record = NULL;
    struct record_report report;
    struct run run;
    struct err err;

    fixture_begin();
    record = fixture_open();
    fixture_run(&run);
    CHECK_INT(record_abandoned(record, run.id, &err), -1);
    CHECK_INT(err.code, ERR_NOT_FOUND);
    CHECK_INT(record_intent(record, &run, &err), 0);
    fixture_verify(&report);
    CHECK_INT(report.open_runs, 1);
    CHECK_INT(record_abandoned(record, run.id, &err), 0);
    CHECK_INT(record_abandoned(record, run.id, &err), 0);
    {
        const char *const members[][2] = {
            {"/kind",              "outcome"              },
            {"/reason_code",       "RUN_ABANDONED"        },
            {"/run_id",            run.id                 },
            {"/intent_id",         run.intent.id          },
            {"/decision_id",       run.decision_id        },
            {"/request_hash",      run.action.request_hash},
            {"/prev_hash",         run.intent.hash        },
            {"/posture",           "(absent)"             },
            {"/outcome",           "{\"ended\":false}"    },
            {"/limits/pids/means", "cgroup"               },
        };

        check_members("2", members, COUNT(members));
    }
    fixture_ended(&run, 0);
    CHECK_INT(record_close(record, &run, &err), -1);
    CHECK_INT(err.code, ERR_CONFLICT);
    fixture_verify(&report);
    CHECK_INT(report.integrity, INTEGRITY_INTACT);
    CHECK_INT(report.entries, 2);
    CHECK_INT(report.open_runs, 0);
    run_done(&run);
    fixture_end();
}

TEST(arguments_variables_and_particulars_stay_outside)
{
    AUTO_BUF struct buf bytes = BUF(MIB);
    struct err err;

    fixture_begin();
    fixture_fill(2);
    fixture_sql("PRAGMA wal_checkpoint(TRUNCATE)");
    CHECK_INT(file_read(AT_FDCWD, fixture_path("receipts.db"), &bytes, &err), 0);
    CHECK(memmem(bytes.p, bytes.n, "POLICY_ALLOW", 12) != NULL);
    CHECK(memmem(bytes.p, bytes.n, "CANARY", 6) == NULL);
    fixture_end();
}

static bool refuses_after(const char *sql, const char *text)
{
    struct record *record;
    struct run run;
    struct err err = {0};
    bool refused;

    fixture_begin();
    fixture_fill(2);
    fixture_sql(sql);
    record = fixture_open();
    fixture_run(&run);
    refused = record_intent(record, &run, &err) == -1 && err.code == ERR_INTEGRITY &&
              strstr(err.text, "has been changed") && strstr(err.text, text) && run.intent.seq == 0;
    run_done(&run);
    record_free(record);
    fixture_end();
    return refused;
}

TEST(nothing_is_appended_behind_a_changed_head)
{
    static const struct {
        const char *sql;
        const char *text;
    } cases[] = {
        {"UPDATE receipts SET body = replace(body, 'local', 'cloud') WHERE seq = 4",
         "its content does not match its hash"                                                                                },
        {"UPDATE receipts SET hash = zeroblob(32) WHERE seq = 4",
         "its content does not match its hash"                                                                                },
        {"UPDATE receipts SET body = '' WHERE seq = 4",                              "its content does not match its "
                                                        "hash"         },
        {"UPDATE receipts SET seq = 9 WHERE seq = 4",                                "it stands in another place than it says"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        pid_t pid = fork(); /* a state directory for each */
        int status = 1;

        if (pid == 0)
            _exit(refuses_after(cases[i].sql, cases[i].text) ? 0 : 1);
        CHECK_INT(waitpid(pid, &status, 0), pid);
        if (status != 0)
            test_fail(__FILE__, __LINE__, "not refused: %s", cases[i].sql);
    }
}

TEST(the_key_and_its_public_half_lie_beside_the_ledger)
{
    AUTO_BUF struct buf pem = BUF(KIB);
    struct public_key own;
    struct public_key published;
    struct stat st;
    struct err err;

    fixture_begin();
    CHECK_INT(record_own_key(fixture_dir(), &own, &err), -1);
    CHECK_INT(err.code, ERR_NOT_FOUND);
    fixture_fill(1);
    CHECK_INT(stat(fixture_path("receipts.key"), &st), 0);
    CHECK_INT(st.st_mode & 07777, 0600);
    CHECK_INT(stat(fixture_path("receipts.db"), &st), 0);
    CHECK_INT(st.st_mode & 07777, 0600);
    CHECK_INT(file_read(AT_FDCWD, fixture_path("receipts.pub"), &pem, &err), 0);
    CHECK_INT(public_key_read(buf_str(&pem), &published, &err), 0);
    CHECK_INT(record_own_key(fixture_dir(), &own, &err), 0);
    CHECK(memcmp(own.b, published.b, sizeof own.b) == 0);
    fixture_end();
}

TEST(a_key_that_others_may_read_stops_everything)
{
    struct record *record = NULL;
    struct err err = {0};

    fixture_begin();
    fixture_fill(1);
    CHECK_INT(chmod(fixture_path("receipts.key"), 0644), 0);
    CHECK_INT(record_open(fixture_dir(), &record, &err), -1);
    CHECK_INT(err.code, ERR_INTEGRITY);
    CHECK(strstr(err.text, "chmod 600") != NULL);
    CHECK(record == NULL);
    fixture_end();
}

static void check_unavailable(void)
{
    struct record *record = NULL;
    struct err err = {0};

    if (geteuid() == 0)
        CHECK_INT(setresuid(54321, 54321, 54321), 0);
    CHECK_INT(record_open(fixture_dir(), &record, &err), -1);
    CHECK_INT(err.code, ERR_UNAVAILABLE);
    CHECK(strstr(err.text, "Permission denied") != NULL);
    _exit(err.code == ERR_UNAVAILABLE && strstr(err.text, "Permission denied") ? 0 : 1);
}

TEST(a_state_directory_without_write_permission_is_unavailable_not_a_denial)
{
    int status = 1;
    pid_t pid;

    fixture_begin();
    CHECK_INT(chmod(fixture_dir(), 0555), 0);
    pid = fork();
    if (pid == 0)
        check_unavailable();
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK_INT(status, 0);
    fixture_end();
}

#define BATCH 64

TEST(many_receipts_become_durable_together)
{
    AUTO(record) struct record *record = NULL;
    static struct run runs[BATCH];
    struct record_entry entries[BATCH];
    struct record_report report;
    struct err err;

    fixture_begin();
    fixture_fill(1);
    record = fixture_open();
    CHECK_INT(record_append_many(record, entries, 0, &err), 0);
    for (unsigned i = 0; i < BATCH; i++) {
        fixture_run(&runs[i]);
        entries[i] = (struct record_entry){&runs[i], false};
    }
    CHECK_INT(record_append_many(record, entries, BATCH, &err), 0);
    CHECK_INT(runs[0].intent.seq, 3);
    CHECK_INT(runs[BATCH - 1].intent.seq, 2 + BATCH);
    for (unsigned i = 0; i < BATCH; i++) {
        fixture_ended(&runs[i], 0);
        entries[i].closing = true;
    }
    CHECK_INT(record_append_many(record, entries, BATCH, &err), 0);
    CHECK_INT(runs[BATCH - 1].closing.seq, 2 + 2 * BATCH);
    fixture_verify(&report);
    CHECK_INT(report.integrity, INTEGRITY_INTACT);
    CHECK_INT(report.entries, 2 + 2 * BATCH);
    for (unsigned i = 0; i < BATCH; i++)
        run_done(&runs[i]);
    fixture_end();
}

TEST(of_many_receipts_all_or_none_are_kept)
{
    AUTO(record) struct record *record = NULL;
    struct run first;
    struct run second;
    struct record_entry entries[3];
    struct record_report report;
    struct err err;

    fixture_begin();
    record = fixture_open();
    fixture_run(&first);
    fixture_run(&second);
    entries[0] = (struct record_entry){&first, false};
    entries[1] = (struct record_entry){&second, false};
    entries[2] = (struct record_entry){&first, false}; /* twice */
    CHECK_INT(record_append_many(record, entries, 3, &err), -1);
    CHECK_INT(err.code, ERR_CONFLICT);
    CHECK_INT(first.intent.seq, 0);
    CHECK_INT(record_append_many(record, entries, 2, &err), 0);
    fixture_verify(&report);
    CHECK_INT(report.entries, 2);
    run_done(&first);
    run_done(&second);
    fixture_end();
}

#define THREADS 12

struct thread {
    pthread_t id;
    struct record *record;
    struct run run;
    bool closing;
    int failed;
    struct err err;
};

static void *append_in_thread(void *of_thread)
{
    struct thread *thread = of_thread;

    thread->failed = (thread->closing ? record_close : record_intent)(thread->record, &thread->run,
                                                                      &thread->err);
    return NULL;
}

static size_t waiting(struct record *record)
{
    size_t n = 0;

    (void)pthread_mutex_lock(&record->queue.lock);
    for (const struct turn *turn = record->queue.first; turn; turn = turn->next)
        n++;
    (void)pthread_mutex_unlock(&record->queue.lock);
    return n;
}

/* All of them come while somebody else writes, so the first one writes for all. */
static void append_at_once(struct record *record, struct thread *threads)
{
    struct turn turn;

    CHECK_INT(turn_take(&record->queue, &turn, NULL), TURN_HELD);
    for (size_t i = 0; i < THREADS; i++) {
        threads[i].record = record;
        CHECK_INT(pthread_create(&threads[i].id, NULL, append_in_thread, &threads[i]), 0);
    }
    while (waiting(record) < THREADS)
        (void)sched_yield();
    turn_end(&record->queue, &turn);
    for (size_t i = 0; i < THREADS; i++)
        CHECK_INT(pthread_join(threads[i].id, NULL), 0);
    CHECK_INT(waiting(record), 0);
}

TEST(threads_append_together)
{
    static struct thread threads[THREADS];
    AUTO(record) struct record *record = NULL;
    struct record_report report;
    uint64_t seen = 0;

    fixture_begin();
    record = fixture_open();
    for (size_t i = 0; i < THREADS; i++)
        fixture_run(&threads[i].run);
    append_at_once(record, threads);
    for (size_t i = 0; i < THREADS; i++) {
        CHECK_INT(threads[i].failed, 0);
        seen |= UINT64_C(1) << threads[i].run.intent.seq;
        threads[i].closing = true;
        fixture_ended(&threads[i].run, (int)i);
    }
    CHECK_INT(seen, (UINT64_C(1) << (THREADS + 1)) - 2); /* every number once, from 1 on */
    append_at_once(record, threads);
    for (size_t i = 0; i < THREADS; i++) {
        CHECK_INT(threads[i].failed, 0);
        CHECK(threads[i].run.closing.seq > THREADS);
        run_done(&threads[i].run);
    }
    fixture_verify(&report);
    CHECK_INT(report.integrity, INTEGRITY_INTACT);
    CHECK_INT(report.entries, 2 * THREADS);
    CHECK_INT(report.open_runs, 0);
    record_free(TAKE(record));
    fixture_end();
}

/* What is wrong with one receipt is not wrong with those that were to be written with it. */
TEST(one_thread_fails_alone)
{
    static struct thread threads[THREADS];
    AUTO(record) struct record *record = NULL;
    struct record_report report;

    fixture_begin();
    record = fixture_open();
    for (size_t i = 0; i < THREADS; i++) {
        fixture_run(&threads[i].run);
        threads[i].closing = i % 4 == 1; /* of a run nobody has opened */
    }
    append_at_once(record, threads);
    for (size_t i = 0; i < THREADS; i++) {
        CHECK_INT(threads[i].failed, threads[i].closing ? -1 : 0);
        if (threads[i].closing)
            CHECK_INT(threads[i].err.code, ERR_NOT_FOUND);
        CHECK_INT(threads[i].run.closing.seq, 0);
        run_done(&threads[i].run);
    }
    fixture_verify(&report);
    CHECK_INT(report.integrity, INTEGRITY_INTACT);
    CHECK_INT(report.entries, THREADS - THREADS / 4);
    record_free(TAKE(record));
    fixture_end();
}

#define WRITERS 8
#define EACH 25

static void write_some(unsigned writer)
{
    for (unsigned i = 0; i < EACH; i++) {
        AUTO(record) struct record *record = NULL;
        struct run run;
        struct err err;

        fixture_run(&run);
        if (record_open(fixture_dir(), &record, &err) < 0 ||
            record_intent(record, &run, &err) < 0) {
            (void)printf("# writer %u: %s\n", writer, err.text);
            _exit(1);
        }
        fixture_ended(&run, 0);
        if (record_close(record, &run, &err) < 0) {
            (void)printf("# writer %u: %s\n", writer, err.text);
            _exit(1);
        }
        run_done(&run);
    }
    _exit(0);
}

TEST(processes_append_to_one_chain_without_gaps_or_forks)
{
    pid_t pids[WRITERS];
    struct record_report report;

    fixture_begin();
    for (unsigned i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            write_some(i);
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        int status = 1;

        CHECK_INT(waitpid(pids[i], &status, 0), pids[i]);
        CHECK_INT(status, 0);
    }
    fixture_verify(&report);
    CHECK_INT(report.integrity, INTEGRITY_INTACT);
    CHECK_INT(report.entries, WRITERS * EACH * 2);
    CHECK_INT(report.last_seq, WRITERS * EACH * 2);
    CHECK_INT(report.open_runs, 0);
    fixture_end();
}

static void become_root_inside(void)
{
    char uids[32];
    char gids[32];
    struct err err;

    (void)snprintf(uids, sizeof uids, "0 %u 1", geteuid());
    (void)snprintf(gids, sizeof gids, "0 %u 1", getegid());
    if (unshare(CLONE_NEWUSER) < 0 ||
        file_write(AT_FDCWD, "/proc/self/setgroups", "deny", &err) < 0 ||
        file_write(AT_FDCWD, "/proc/self/uid_map", uids, &err) < 0 ||
        file_write(AT_FDCWD, "/proc/self/gid_map", gids, &err) < 0)
        test_skip("no user namespaces for an ordinary user");
}

static void fill_disk(void)
{
    AUTO_FD int fd = open(fixture_path("filler"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    char bytes[4096] = "x";

    while (write(fd, bytes, sizeof bytes) > 0)
        continue;
    while (write(fd, bytes, 1) > 0)
        continue;
}

TEST(on_a_full_disk_nothing_begins_and_what_runs_still_ends)
{
    AUTO(record) struct record *record = NULL;
    struct record_report report;
    struct run run;
    struct run next;
    struct err err;

    fixture_begin();
    if (geteuid() != 0)
        become_root_inside();
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", fixture_dir(), "tmpfs", 0, "size=2m,mode=0700") < 0)
        test_skip("no private mounts here");
    record = fixture_open();
    fixture_run(&run);
    fixture_run(&next);
    CHECK_INT(record_intent(record, &run, &err), 0);
    fill_disk();
    CHECK_INT(record_intent(record, &next, &err), -1);
    CHECK_INT(err.code, ERR_STORAGE);
    CHECK(strstr(err.text, "is full; make room") != NULL);
    fixture_ended(&run, 0);
    CHECK_INT(record_close(record, &run, &err), 0);
    CHECK_INT(unlink(fixture_path("filler")), 0);
    CHECK_INT(record_intent(record, &next, &err), 0);
    fixture_verify(&report);
    CHECK_INT(report.integrity, INTEGRITY_INTACT);
    CHECK_INT(report.entries, 3);
    run_done(&run);
    run_done(&next);
    record_free(TAKE(record));
    CHECK_INT(umount2(fixture_dir(), MNT_DETACH), 0);
    fixture_end();
}
