/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "surface/api/jobs.h"

#include <pthread.h>
#include <unistd.h>

#include "lib/base/limits.h"

struct piece {
    struct job job;
    int until_fd; /* runs until something can be read here; -1: at once */
    int began_fd; /* told when it begins; -1: nobody */
    bool ran;
    bool dropped;
};

static void run(struct job *job)
{
    struct piece *piece = (struct piece *)job;
    char byte;

    if (piece->began_fd >= 0)
        CHECK_INT(write(piece->began_fd, "b", 1), 1);
    if (piece->until_fd >= 0)
        CHECK_INT(read(piece->until_fd, &byte, 1), 1);
    piece->ran = true;
}

static void drop(struct job *job)
{
    ((struct piece *)job)->dropped = true;
}

static struct piece piece_of(int until_fd, int began_fd)
{
    return (struct piece){
        .job = {.run = run, .drop = drop},
          .until_fd = until_fd, .began_fd = began_fd
    };
}

TEST(what_waits_when_it_stops_is_dropped_and_what_runs_goes_on)
{
    const struct jobs_config config = {"test", 1, 16, API_STACK_BYTES};
    struct piece first, waiting[3], late;
    struct jobs *jobs = NULL;
    int until[2], began[2];
    struct err err;
    char byte;

    CHECK_INT(pipe(until), 0);
    CHECK_INT(pipe(began), 0);
    CHECK_INT(jobs_open(&config, &jobs, &err), 0);
    first = piece_of(until[0], began[1]);
    CHECK_INT(jobs_take(jobs, &first.job, &err), 0);
    CHECK_INT(read(began[0], &byte, 1), 1);
    for (size_t i = 0; i < 3; i++) {
        waiting[i] = piece_of(-1, -1);
        CHECK_INT(jobs_take(jobs, &waiting[i].job, &err), 0);
    }
    CHECK_INT(jobs_look(jobs).waiting, 3);
    jobs_stop(jobs);
    CHECK_INT(jobs_look(jobs).waiting, 0);
    for (size_t i = 0; i < 3; i++)
        CHECK(waiting[i].dropped && !waiting[i].ran);
    CHECK(!first.dropped && !first.ran);
    late = piece_of(-1, -1);
    CHECK_INT(jobs_take(jobs, &late.job, &err), -1);
    CHECK_INT(err.code, ERR_UNAVAILABLE);
    CHECK_TEXT(err.text, "the daemon is stopping");
    CHECK_INT(write(until[1], "e", 1), 1);
    jobs_free(jobs);
    CHECK(first.ran && !first.dropped);
}
