/* SPDX-License-Identifier: Apache-2.0 */
/* What waits is in the file before its id is known, is the sandbox's alone, and is there again
 * after a new start; answers end it, and a flood of one sandbox costs no other. */
#include "cmd/egress/proposals.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "test.h"

static const struct egress_who_text who = {.tenant = "default", .subject = "user:1"};

struct folder {
    char path[32];
    int fd;
};

static struct folder folder_new(void)
{
    struct folder folder = {.path = "/tmp/proposals-test.XXXXXX"};

    CHECK(mkdtemp(folder.path) != NULL);
    folder.fd = open(folder.path, O_DIRECTORY | O_CLOEXEC);
    CHECK(folder.fd >= 0);
    return folder;
}

static void folder_done(struct folder *folder)
{
    CHECK_INT(unlinkat(folder->fd, "proposals", 0), 0);
    CHECK_INT(rmdir(folder->path), 0);
    CHECK_INT(close(folder->fd), 0);
}
#define AUTO_FOLDER __attribute__((cleanup(folder_done)))
#define AUTO_PROPOSALS __attribute__((cleanup(proposals_done)))

static int add(struct proposals *proposals, const char *sandbox, const char *host, const char **id,
               struct err *err)
{
    static struct proposal proposal;
    const struct proposal_new ask = {.sandbox = sandbox,
                                     .who = &who,
                                     .intent = STR_LIT("why \x1b[2J"),
                                     .binary = STR_LIT("/usr/bin/curl"),
                                     .rules_hash = "sha256:0",
                                     .proposal = &proposal};

    proposal = (struct proposal){
        .name = STR_LIT("more"),
        .binaries = {{.path = STR_LIT("/usr/bin/curl")}},
        .binary_n = 1,
        .endpoints = {{.host = str_of(host), .ports = {443}, .port_n = 1, .is_wire = true}},
        .endpoint_n = 1};
    return proposals_add(proposals, &ask, id, err);
}

static const char *added(struct proposals *proposals, const char *sandbox, const char *host)
{
    const char *id = "";
    struct err err = {0};

    if (add(proposals, sandbox, host, &id, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return id;
}

TEST(what_waits_is_there_after_a_new_start)
{
    AUTO_FOLDER struct folder folder = folder_new();
    AUTO_PROPOSALS struct proposals proposals = {.fd = -1}, again = {.fd = -1};
    struct waiting *waiting;
    struct err err = {0};
    char first[PROPOSAL_ID_BYTES], second[PROPOSAL_ID_BYTES];

    CHECK_INT(proposals_open(&proposals, folder.fd, &err), 0);
    (void)snprintf(first, sizeof first, "%s", added(&proposals, "one", "a.example"));
    (void)snprintf(second, sizeof second, "%s", added(&proposals, "one", "b.example"));
    CHECK(strcmp(first, second) != 0);
    CHECK_TEXT(added(&proposals, "one", "a.example"), first); /* the same question */
    CHECK(strcmp(added(&proposals, "two", "a.example"), first) != 0);
    waiting = proposals_find(&proposals, "one", str_of(second));
    CHECK(waiting != NULL);
    CHECK(proposals_find(&proposals, "two", str_of(second)) == NULL);
    CHECK_INT(proposals_decide(&proposals, waiting,
                               &(struct proposal_word){.by = STR_LIT("p"), .reason = STR_LIT("no")},
                               &err),
              0);
    CHECK_INT(waiting->status, PROPOSAL_REJECTED);
    CHECK_INT(proposals_decide(&proposals, waiting, &(struct proposal_word){.approve = true}, &err),
              -1);
    CHECK_INT(err.code, ERR_CONFLICT);

    CHECK_INT(proposals_open(&again, folder.fd, &err), 0);
    CHECK_INT(again.n, 2);
    waiting = proposals_find(&again, "one", str_of(first));
    CHECK(waiting && waiting->status == PROPOSAL_PENDING);
    CHECK(proposals_find(&again, "one", str_of(second)) == NULL);
}

TEST(a_torn_line_and_what_is_none_are_passed_over)
{
    AUTO_FOLDER struct folder folder = folder_new();
    AUTO_FD int fd = -1;
    AUTO_PROPOSALS struct proposals proposals = {.fd = -1}, again = {.fd = -1};
    struct err err = {0};
    static const char rest[] = "{\"kind\":\"proposal\"}\nnone\n{\"kind\":\"proposal\",\"id\":\"pr";

    CHECK_INT(proposals_open(&proposals, folder.fd, &err), 0);
    (void)added(&proposals, "one", "a.example");
    fd = openat(folder.fd, "proposals", O_WRONLY | O_APPEND | O_CLOEXEC);
    CHECK_INT(write_all(fd, rest, sizeof rest - 1, &err), 0);
    CHECK_INT(proposals_open(&again, folder.fd, &err), 0);
    CHECK_INT(again.n, 1);
}

TEST(a_flood_of_one_sandbox_costs_no_other)
{
    AUTO_FOLDER struct folder folder = folder_new();
    AUTO_PROPOSALS struct proposals proposals = {.fd = -1};
    const char *id = NULL;
    struct err err = {0};
    unsigned n = 0;

    CHECK_INT(proposals_open(&proposals, folder.fd, &err), 0);
    for (unsigned i = 0; i < 2 * PROPOSALS_PENDING_MAX; i++) {
        char host[32];

        (void)snprintf(host, sizeof host, "h%u.example", i);
        n += add(&proposals, "loud", host, &id, &err) == 0;
    }
    CHECK_INT(n, PROPOSALS_PENDING_MAX);
    CHECK_INT(err.code, ERR_LIMIT);
    CHECK_INT(add(&proposals, "quiet", "a.example", &id, &err), 0);
}

TEST(after_a_day_it_is_gone)
{
    AUTO_FOLDER struct folder folder = folder_new();
    AUTO_PROPOSALS struct proposals proposals = {.fd = -1};
    struct waiting *waiting;
    struct err err = {0};

    CHECK_INT(proposals_open(&proposals, folder.fd, &err), 0);
    waiting = proposals_find(&proposals, "one", str_of(added(&proposals, "one", "a.example")));
    CHECK(waiting->expires_ns > clock_wall_ns() + 86000ULL * 1000000000U);
    waiting->expires_ns = clock_wall_ns();
    CHECK(proposals_find(&proposals, "one", str_of(waiting->id))->status == PROPOSAL_EXPIRED);
    CHECK_INT(proposals_decide(&proposals, waiting, &(struct proposal_word){.approve = true}, &err),
              -1);
}
