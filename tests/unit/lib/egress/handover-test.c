/* SPDX-License-Identifier: Apache-2.0 */

#include "test.h"

#include <stdio.h>
#include <sys/socket.h>

#include "lib/egress/handover.h"

static struct err err;
static char message[HANDOVER_MESSAGE_MAX + 64];

static struct handover_program program(const char *path, unsigned char hash)
{
    struct handover_program made = {.flags = HANDOVER_HASHED, .path = str_of(path)};

    memset(made.hash.b, hash, sizeof made.hash.b);
    return made;
}

static struct handover_caller caller(void)
{
    return (struct handover_caller){
        .cookie = 7,
        .flags = CALLER_HAS_SCRIPT | CALLER_ANCESTORS_CUT,
        .pid = 123,
        .family = AF_INET6,
        .exe = program("/usr/bin/python3.11", 1),
        .script = program("/srv/a.py", 2),
        .ancestors = {program("/usr/bin/make", 3), {.flags = HANDOVER_NO_PATH}},
        .ancestor_n = 2,
    };
}

static void check_program(const struct handover_program *got, const struct handover_program *wanted)
{
    CHECK(memcmp(&got->hash, &wanted->hash, sizeof got->hash) == 0);
    CHECK_INT(got->flags, wanted->flags);
    CHECK(str_eq(got->path, wanted->path));
}

TEST(a_caller_arrives_as_it_was_sent)
{
    struct handover_caller sent = caller();
    struct str bytes = {message, handover_caller(&sent, message)};
    struct handover got;

    CHECK_INT(handover_read(bytes, 0, &got, &err), 0);
    CHECK_INT(got.kind, HANDOVER_CALLER);
    CHECK_INT(got.caller.cookie, 7);
    CHECK_INT(got.caller.flags, sent.flags);
    CHECK_INT(got.caller.pid, 123);
    CHECK_INT(got.caller.family, AF_INET6);
    CHECK_INT(got.caller.ancestor_n, 2);
    check_program(&got.caller.exe, &sent.exe);
    check_program(&got.caller.script, &sent.script);
    check_program(&got.caller.ancestors[0], &sent.ancestors[0]);
    check_program(&got.caller.ancestors[1], &sent.ancestors[1]);
}

TEST(the_longest_caller_fits)
{
    struct handover_caller sent = caller();
    char path[HANDOVER_PATH_MAX + 1] = "/";
    struct handover got;

    memset(path + 1, 'x', sizeof path - 2);
    sent.exe = sent.script = program(path, 9);
    sent.ancestor_n = HANDOVER_ANCESTORS_MAX;
    for (size_t i = 0; i < HANDOVER_ANCESTORS_MAX; i++)
        sent.ancestors[i] = sent.exe;
    CHECK_INT(handover_caller(&sent, message), HANDOVER_MESSAGE_MAX);
    CHECK_INT(handover_read((struct str){message, HANDOVER_MESSAGE_MAX}, 0, &got, &err), 0);
}

TEST(listeners_bring_all_descriptors_and_callers_none)
{
    struct handover_caller sent = caller();
    struct str bytes = {message, handover_listeners(message)};
    struct handover got = {.kind = HANDOVER_NOTHING};

    CHECK_INT(handover_read(bytes, HANDOVER_FD_COUNT - 1, &got, &err), -1);
    CHECK_TEXT(err.text, "7 descriptors with a message of kind 1");
    CHECK_INT(got.kind, HANDOVER_NOTHING);
    CHECK_INT(handover_read(bytes, HANDOVER_FD_COUNT, &got, &err), 0);
    CHECK_INT(got.kind, HANDOVER_LISTENERS);
    bytes.n = handover_caller(&sent, message);
    CHECK_INT(handover_read(bytes, 1, &got, &err), -1);
    CHECK_TEXT(err.text, "1 descriptors with a message of kind 2");
}

TEST(no_shorter_and_no_longer_message_is_taken)
{
    struct handover_caller sent = caller();
    size_t n = handover_caller(&sent, message);
    struct handover got;

    for (size_t i = 0; i < n; i++)
        CHECK_INT(handover_read((struct str){message, i}, 0, &got, &err), -1);
    CHECK_INT(handover_read((struct str){message, n + 1}, 0, &got, &err), -1);
    CHECK_TEXT(err.text, "1 bytes behind the end of a message");
}

static void change_none(struct handover_caller *c)
{
    c->cookie = 0;
}

static void change_family(struct handover_caller *c)
{
    c->family = AF_UNIX;
}

static void change_flags(struct handover_caller *c)
{
    c->flags = CALLER_FLAGS + 1;
}

static void change_script(struct handover_caller *c)
{
    c->flags = CALLER_HAS_SCRIPT | CALLER_SCRIPT_UNKNOWN;
}

static void change_hash(struct handover_caller *c)
{
    c->exe.flags = 0; /* the hash is not to be had, and stands there */
}

static void change_path(struct handover_caller *c)
{
    c->exe.path = STR_LIT("usr/bin/x");
}

static void change_nul(struct handover_caller *c)
{
    c->exe.path = STR_LIT("/usr\0bin");
}

static void change_no_path(struct handover_caller *c)
{
    c->exe.flags |= HANDOVER_NO_PATH; /* and there is one */
}

static void change_empty(struct handover_caller *c)
{
    c->exe.path.n = 0;
}

static void change_program(struct handover_caller *c)
{
    c->ancestors[1].flags |= HANDOVER_PROGRAM_FLAGS + 1;
}

TEST(a_caller_that_breaks_its_promises_is_refused)
{
    void (*const changes[])(struct handover_caller *) = {
        change_none, change_family, change_flags,   change_script, change_hash,
        change_path, change_nul,    change_no_path, change_empty,  change_program,
    };

    for (size_t i = 0; i < COUNT(changes); i++) {
        struct handover_caller sent = caller();
        struct handover got = {.kind = HANDOVER_NOTHING};

        changes[i](&sent);
        CHECK_INT(
            handover_read((struct str){message, handover_caller(&sent, message)}, 0, &got, &err),
            -1);
        CHECK_TEXT(err.text, "a caller that does not hold together");
        CHECK_INT(err.code, ERR_INTEGRITY);
        CHECK_INT(got.kind, HANDOVER_NOTHING);
    }
}

TEST(another_build_is_refused)
{
    struct str bytes = {message, handover_listeners(message)};
    struct handover got;

    message[4] = HANDOVER_VERSION + 1; /* the version */
    CHECK_INT(handover_read(bytes, HANDOVER_FD_COUNT, &got, &err), -1);
    CHECK_TEXT(err.text, "a message that no box of this build sends");
    message[4] = HANDOVER_VERSION;
    message[6] = 3; /* the kind */
    CHECK_INT(handover_read(bytes, HANDOVER_FD_COUNT, &got, &err), -1);
    CHECK_TEXT(err.text, "a message of kind 3");
}
