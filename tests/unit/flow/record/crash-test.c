/* SPDX-License-Identifier: Apache-2.0 */

/* The process is killed at each named place of the write path. Whatever it had been told is
 * durable must be there, the chain must verify, and the next process must be able to go on. */

#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

/* One process: a run with its two receipts, saying what was acknowledged. */
static void record_one_run(const char *crash_at, int acknowledged)
{
    AUTO(record) struct record *record = NULL;
    struct run run;
    struct err err;

    (void)setenv("BRIG_CRASH_AT", crash_at, 1);
    if (record_open(fixture_dir(), &record, &err) < 0)
        _exit(1);
    fixture_run(&run);
    if (record_intent(record, &run, &err) < 0 || write(acknowledged, "i", 1) != 1)
        _exit(1);
    fixture_ended(&run, 0);
    if (record_close(record, &run, &err) < 0 || write(acknowledged, "o", 1) != 1)
        _exit(1);
    _exit(0);
}

static int run_until(const char *crash_at, unsigned *acknowledged)
{
    int pipe_fds[2];
    int status = 0;
    char byte;
    pid_t pid;

    CHECK_INT(pipe(pipe_fds), 0);
    pid = fork();
    if (pid == 0)
        record_one_run(crash_at, pipe_fds[1]);
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK_INT(close(pipe_fds[1]), 0);
    while (read(pipe_fds[0], &byte, 1) == 1)
        (*acknowledged)++;
    CHECK_INT(close(pipe_fds[0]), 0);
    return status;
}

struct point {
    const char *name;
    unsigned kept;   /* receipts a process killed there leaves behind */
    bool only_first; /* passed only where there is no key yet */
};

static bool chain_has(uint64_t entries, uint64_t open_runs)
{
    struct record_report report;

    fixture_verify(&report);
    if (report.integrity == INTEGRITY_INTACT && report.entries == entries &&
        report.open_runs == open_runs)
        return true;
    test_fail(__FILE__, __LINE__, "%s, %llu entries, %llu open runs; should be %llu and %llu",
              record_integrity_name(report.integrity), (unsigned long long)report.entries,
              (unsigned long long)report.open_runs, (unsigned long long)entries,
              (unsigned long long)open_runs);
    return false;
}

/* In a state directory of its own, empty or with four receipts. */
static bool survives(const struct point *point, bool filled)
{
    unsigned kept = (filled ? 4 : 0) + point->kept;
    unsigned promised = 0;
    unsigned open_runs = point->kept == 1;
    int status;
    bool good;

    fixture_begin();
    if (filled)
        fixture_fill(2);
    status = run_until(point->name, &promised);
    good = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && promised <= point->kept &&
           chain_has(kept, open_runs) && run_until("nowhere", &promised) == 0 &&
           chain_has(kept + 2, open_runs);
    fixture_end();
    return good;
}

static void check_survives(const struct point *point, bool filled)
{
    int status = 1;
    pid_t pid = fork();

    if (pid == 0)
        _exit(survives(point, filled) ? 0 : 1);
    CHECK_INT(waitpid(pid, &status, 0), pid);
    if (status != 0)
        test_fail(__FILE__, __LINE__, "killed at %s in %s ledger: status 0x%x", point->name,
                  filled ? "a filled" : "an empty", (unsigned)status);
}

TEST(killed_at_any_point_of_the_write_path_the_chain_verifies)
{
    static const struct point points[] = {
        {"key-written",       0, true },
        {"key-created",       0, true },
        {"ledger-opened",     0, false},
        {"opening-before",    0, false},
        {"opening-locked",    0, false},
        {"opening-inserted",  0, false},
        {"opening-committed", 1, false},
        {"closing-before",    1, false},
        {"closing-locked",    1, false},
        {"closing-inserted",  1, false},
        {"closing-committed", 2, false},
    };

    for (size_t i = 0; i < COUNT(points); i++) {
        check_survives(&points[i], false);
        if (!points[i].only_first)
            check_survives(&points[i], true);
    }
}

/* A random moment instead of a named one. */
TEST(killed_at_any_moment_the_chain_verifies)
{
    struct record_report report;

    fixture_begin();
    for (unsigned i = 0; i < 40; i++) {
        int pipe_fds[2];
        int status;
        pid_t pid;

        CHECK_INT(pipe(pipe_fds), 0);
        pid = fork();
        if (pid == 0)
            record_one_run("nowhere", pipe_fds[1]);
        (void)usleep(i * 100);
        CHECK_INT(kill(pid, SIGKILL), 0);
        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK_INT(close(pipe_fds[0]), 0);
        CHECK_INT(close(pipe_fds[1]), 0);
        fixture_verify(&report);
        CHECK_INT(report.integrity, INTEGRITY_INTACT);
        CHECK_INT(report.fault, FAULT_NONE);
    }
    fixture_fill(1);
    fixture_verify(&report);
    CHECK_INT(report.integrity, INTEGRITY_INTACT);
    fixture_end();
}
