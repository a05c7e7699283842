/* SPDX-License-Identifier: Apache-2.0 */

#include "test.h"

#include <stdio.h>

#include "lib/base/limits.h"
#include "surface/helm/helm-private.h"

static struct err err;
static const struct pending_owner owner = {"t", "p", "s"};

/* clang-format off */
#define WORDS(...) ((struct words){(const char *const[]){__VA_ARGS__, NULL}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)})
/* clang-format on */

static int add(struct pending *pending, struct words argv)
{
    return pending_add(pending, &owner, &(struct pending_command){.argv = argv}, &err);
}

static int take_as(struct pending *pending, const struct pending_owner *who, const char *text,
                   struct pending_command asked, size_t *words)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    struct pending_command out;
    int failed = pending_take(pending, who, text, &asked, &mem, &out, &err);

    *words = failed ? 0 : out.argv.n;
    return failed;
}

static int take(struct pending *pending, const char *text, size_t *words)
{
    return take_as(pending, &owner, text, (struct pending_command){0}, words);
}

TEST(what_was_approved_is_taken_once_and_whole)
{
    struct pending *pending = pending_new();
    size_t n;

    CHECK_INT(add(pending, WORDS("echo", "a b", "", "c")), 0);
    CHECK_INT(take(pending, "echo a b c", &n), -1);
    CHECK_INT(err.code, ERR_FORBIDDEN);
    CHECK_INT(take(pending, "echo a b  c", &n), 0);
    CHECK_INT(n, 4);
    CHECK_INT(take(pending, "echo a b  c", &n), -1);
    pending_free(pending);
}

TEST(two_that_read_the_same_are_both_refused)
{
    struct pending *pending = pending_new();
    size_t n;

    CHECK_INT(add(pending, WORDS("echo", "a b")), 0);
    CHECK_INT(add(pending, WORDS("echo", "a", "b")), -1);
    CHECK_INT(err.code, ERR_CONFLICT);
    CHECK_INT(add(pending, WORDS("echo", "a b")), -1); /* nor is it by asking again */
    CHECK_INT(take(pending, "echo a b", &n), -1);
    CHECK_INT(err.code, ERR_CONFLICT);
    CHECK_INT(take(pending, "echo a b", &n), -1);
    CHECK_INT(err.code, ERR_FORBIDDEN);
    CHECK_INT(add(pending, WORDS("echo", "a", "b")), 0); /* only one is meant now */
    CHECK_INT(take(pending, "echo a b", &n), 0);
    CHECK_INT(n, 3);
    pending_free(pending);
}

TEST(another_owner_finds_nothing)
{
    static const struct pending_owner others[] = {
        {"u", "p", "s"},
        {"t", "q", "s"},
        {"t", "p", "r"},
    };
    struct pending *pending = pending_new();
    size_t n;

    CHECK_INT(add(pending, WORDS("id")), 0);
    for (size_t i = 0; i < COUNT(others); i++)
        CHECK_INT(take_as(pending, &others[i], "id", (struct pending_command){0}, &n), -1);
    CHECK_INT(take(pending, "id", &n), 0);
    pending_free(pending);
}

TEST(environment_folder_and_time_are_part_of_it)
{
    const struct pending_command approved = {
        .argv = WORDS("env"), .env = WORDS("A=1", "B=2"), .cwd = "/usr", .timeout_s = 5};
    const struct pending_command wrong[] = {
        {0              },
        {              .env = WORDS("A=1"), .cwd = "/usr", .timeout_s = 5},
        {              .env = WORDS("A=1",  "B=3"), .cwd = "/usr", .timeout_s = 5},
        { .env = WORDS("A=1",                    "B=2", "C=3"), .cwd = "/usr", .timeout_s = 5},
        {        .env = WORDS("A=1",    "B=2"), .timeout_s = 5},
        {   .env = WORDS("A=1",             "B=2"), .cwd = "/", .timeout_s = 5},
        {        .env = WORDS("A=1",         "B=2"), .cwd = "/usr", .timeout_s = 6},
        {              .env = WORDS("A=1",        "B=2"), .cwd = "/usr"},
    };
    struct pending *pending = pending_new();
    size_t n;

    CHECK_INT(pending_add(pending, &owner, &approved, &err), 0);
    for (size_t i = 0; i < COUNT(wrong); i++)
        CHECK_INT(take_as(pending, &owner, "env", wrong[i], &n), -1);
    CHECK_INT(
        take_as(pending, &owner, "env",
                (struct pending_command){.env = WORDS("B=2", "A=1"), .cwd = "/usr", .timeout_s = 5},
                &n),
        0);
    pending_free(pending);
}

TEST(there_is_an_end_to_what_waits)
{
    struct pending *pending = pending_new();
    char word[16];
    int added = 0;
    size_t n;

    for (int i = 0; i < 100; i++) {
        (void)snprintf(word, sizeof word, "%d", i);
        added += add(pending, WORDS("echo", word)) == 0;
    }
    CHECK_INT(added, 64);
    CHECK_INT(err.code, ERR_LIMIT);
    pending_forget(pending, &owner);
    CHECK_INT(take(pending, "echo 1", &n), -1);
    CHECK_INT(add(pending, WORDS("echo")), 0);
    pending_free(pending);
}
