/* SPDX-License-Identifier: Apache-2.0 */

/* What is not bound is remembered, and no longer than it is so. */

#include "cmd/egress/unbound.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static struct unbound unbound;
static struct unbound_asked asked;
static int state_fd;

static const struct vault_question plain = {.tenant = "t",
                                            .subject = "s",
                                            .pack = "p",
                                            .host = "a.test",
                                            .port = 443,
                                            .scheme = "https",
                                            .method = "GET",
                                            .path = "/x"};

/* As the vault is changed: another file in place of the last one. */
static void put_vault(const char *text)
{
    int fd = openat(state_fd, "vault/new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    CHECK_INT(write(fd, text, strlen(text)), strlen(text));
    (void)close(fd);
    CHECK_INT(renameat(state_fd, "vault/new", state_fd, "vault/secrets"), 0);
}

static void make_state(void)
{
    char path[] = "/tmp/brig-unbound-XXXXXX";

    CHECK(mkdtemp(path) != NULL);
    state_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(state_fd >= 0);
    CHECK_INT(mkdirat(state_fd, "vault", 0700), 0);
    unbound_init(&unbound, state_fd);
}

/* The clock that stamps a file cannot be set back: what was seen of it is. */
static void age(struct unbound_asked *of)
{
    of->file.st_ctim.tv_sec -= 10;
}

static void add_old(void)
{
    CHECK(!unbound_has(&unbound, &plain, &asked));
    age(&asked);
    unbound_add(&unbound, &asked);
    unbound.file.st_ctim.tv_sec += 10;
}

TEST(what_is_not_bound_is_remembered)
{
    make_state();
    put_vault("one");
    add_old();
    CHECK(unbound_has(&unbound, &plain, &asked));
}

TEST(another_question_is_another)
{
    struct vault_question others[] = {plain, plain, plain, plain, plain,
                                      plain, plain, plain, plain};

    make_state();
    put_vault("one");
    add_old();
    others[0].tenant = "u";
    others[1].subject = "u";
    others[2].pack = "u";
    others[3].host = "b.test";
    others[4].port = 80;
    others[5].scheme = "http";
    others[6].method = "POST";
    others[7].path = "/y";
    others[8].tenant = "ts", others[8].subject = ""; /* the same letters in a row */
    for (size_t i = 0; i < COUNT(others); i++)
        CHECK(!unbound_has(&unbound, &others[i], &asked));
    CHECK(unbound_has(&unbound, &plain, &asked));
}

TEST(another_vault_is_asked)
{
    make_state();
    put_vault("one");
    add_old();
    put_vault("two");
    CHECK(!unbound_has(&unbound, &plain, &asked));
    /* of the old one, answered late: not known of the new one, either */
    asked.file = unbound.file;
    unbound_add(&unbound, &asked);
    CHECK(!unbound_has(&unbound, &plain, &asked));
    CHECK_INT(unlinkat(state_fd, "vault/secrets", 0), 0);
    CHECK(!unbound_has(&unbound, &plain, &asked));
    unbound_add(&unbound, &asked); /* of none at all */
    CHECK(!unbound_has(&unbound, &plain, &asked));
}

TEST(of_a_vault_changed_a_moment_ago_nothing_is_remembered)
{
    make_state();
    put_vault("one");
    for (int i = 0; i < 3; i++) {
        CHECK(!unbound_has(&unbound, &plain, &asked));
        unbound_add(&unbound, &asked);
    }
}

TEST(without_a_state_directory_everything_is_asked)
{
    unbound_init(&unbound, -1);
    for (int i = 0; i < 3; i++) {
        CHECK(!unbound_has(&unbound, &plain, &asked));
        unbound_add(&unbound, &asked);
    }
}
