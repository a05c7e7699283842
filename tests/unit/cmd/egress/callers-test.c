/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "cmd/egress/callers.h"
#include "cmd/egress/ceilings.h"

static struct handover_caller caller_of(uint64_t cookie, const char *path, unsigned char content)
{
    return (struct handover_caller){
        .cookie = cookie,
        .family = AF_INET,
        .exe = {.hash = {{content}}, .flags = HANDOVER_HASHED, .path = str_of(path)}
    };
}

TEST(a_caller_is_claimed_once)
{
    struct callers *callers = callers_new();
    struct handover_caller said = caller_of(7, "/bin/a", 1);
    struct caller *caller;

    callers_add(callers, &said, 0);
    caller = callers_claim(callers, 7, 0);
    CHECK(caller != NULL);
    CHECK_INT(caller->who.flags, NET_CALLER_KNOWN | NET_CALLER_COMPLETE);
    CHECK(str_is(caller->who.exe.path, "/bin/a"));
    caller_free(caller);
    CHECK(callers_claim(callers, 7, 0) == NULL);
    CHECK(callers_claim(callers, 8, 0) == NULL);
    callers_free(callers);
}

TEST(a_socket_with_two_callers_is_nobodys)
{
    struct callers *callers = callers_new();
    struct handover_caller a = caller_of(7, "/bin/a", 1), b = caller_of(7, "/bin/b", 2);
    struct caller *caller;

    callers_add(callers, &a, 0);
    callers_add(callers, &a, 0); /* the same one again is no matter */
    callers_add(callers, &b, 0);
    caller = callers_claim(callers, 7, 0);
    CHECK(caller->who.flags & NET_CALLER_AMBIGUOUS);
    caller_free(caller);
    callers_free(callers);
}

TEST(what_is_not_known_is_said)
{
    struct callers *callers = callers_new();
    struct handover_caller said = caller_of(1, "/bin/a", 1);
    struct caller *caller;

    said.exe.flags = 0; /* its content could not be read */
    said.flags = CALLER_ANCESTOR_LOST;
    callers_add(callers, &said, 0);
    caller = callers_claim(callers, 1, 0);
    CHECK_INT(caller->who.flags, 0);
    caller_free(caller);
    callers_free(callers);
}

TEST(a_program_that_became_another_is_replaced)
{
    struct callers *callers = callers_new();
    struct handover_caller before = caller_of(1, "/bin/a", 1), after = caller_of(2, "/bin/a", 2);
    struct caller *caller;

    callers_add(callers, &before, 0);
    callers_add(callers, &after, 0);
    caller = callers_claim(callers, 2, 0);
    CHECK(caller->who.flags & NET_CALLER_REPLACED);
    caller_free(caller);
    caller = callers_claim(callers, 1, 0);
    CHECK(!(caller->who.flags & NET_CALLER_REPLACED));
    caller_free(caller);
    callers_free(callers);
}

TEST(callers_are_forgotten_in_time_and_number)
{
    struct callers *callers = callers_new();
    struct caller *caller;

    for (uint64_t i = 1; i <= 3 * CALLERS_MAX; i++) {
        struct handover_caller said = caller_of(i, "/bin/a", 1);

        callers_add(callers, &said, i / 1000);
        if (i % 3 == 0)
            caller_free(callers_claim(callers, i, i / 1000));
    }
    CHECK(callers_claim(callers, 1, 20) == NULL);
    caller = callers_claim(callers, 3 * CALLERS_MAX - 1, 20);
    CHECK(caller != NULL);
    caller_free(caller);
    CHECK(callers_claim(callers, 3 * CALLERS_MAX - 2, 20 + CALLERS_MS) == NULL);
    callers_free(callers);
}
