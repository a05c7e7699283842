/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <time.h>

/* What an agent asks for, and the time a person has. */

static int64_t off_s; /* so far the calendar is off */

time_t time(time_t *out)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec + off_s;
    return now.tv_sec + off_s;
}

static const char *asked(struct advise *advise, struct arena *mem)
{
    struct advise_answer answer;
    struct advise_action action;
    struct err err;

    if (advise_ask(advise, mem,
                   STR_LIT("{\"type\":\"filesystem\",\"operation\":\"create\",\"target\":"
                           "\"/sandbox/output/a\",\"risk\":\"reversible\",\"content\":\"x\"}"),
                   &answer, &action, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    CHECK_INT(action.state, ADVISE_PENDING);
    return action.id;
}

static int decided(struct advise *advise, struct arena *mem, const char *id, struct err *err)
{
    const struct advise_word word = {.words = STR_LIT(ADVISE_CONFIRM_WORDS), .by = "custodian:a"};
    struct advise_action action;

    return advise_action_decide(advise, mem, id, &word, &action, err);
}

/* The target, new and with this in it. */
static int put_target(const struct advise *advise, const char *text)
{
    int fd =
        openat(advise->dir_fd, "sandbox/output/a", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    struct err err;
    int failed = fd < 0 ? -1 : write_all(fd, text, strlen(text), &err);

    (void)close(fd);
    return failed;
}

TEST(a_clock_that_jumps_is_no_more_time_to_think)
{
    static const struct {
        int64_t off_s;
        enum advise_state state;
        const char *why;
    } cases[] = {
        {0,     ADVISE_PENDING, ""                           },
        {-5,    ADVISE_PENDING, ""                           }, /* it was set right */
        {-60,   ADVISE_EXPIRED, "the clock went back"        },
        {-7200, ADVISE_EXPIRED, "the clock went back"        },
        {200,   ADVISE_PENDING, ""                           },
        {400,   ADVISE_EXPIRED, "nobody confirmed it in time"},
    };
    AUTO(advise) struct advise *advise = begin(false);

    advise->terms.idle_s = advise->terms.deadline_s = 1000000; /* its own time is another matter */
    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
        const char *id = asked(advise, &mem);
        struct advise_action action;
        struct err err;

        off_s = cases[i].off_s;
        CHECK_INT(advise_action_show(advise, &mem, id, &action, &err), 0);
        CHECK_INT(action.state, cases[i].state);
        CHECK_TEXT(action.why, cases[i].why);
        /* What was called too late stays so, whatever the clock says afterwards. */
        off_s = 0;
        if (cases[i].state == ADVISE_PENDING) {
            CHECK_INT(decided(advise, &mem, id, &err), 0);
        } else {
            CHECK_INT(decided(advise, &mem, id, &err), -1);
            CHECK_INT(err.code, ERR_CONFLICT);
        }
    }
}

/* Also when nobody looked in between. */
TEST(a_word_by_a_clock_that_went_back_does_not_count)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    const char *id = asked(advise, &mem);
    struct err err;

    off_s = -3600;
    CHECK_INT(decided(advise, &mem, id, &err), -1);
    CHECK_INT(err.code, ERR_CONFLICT);
    CHECK(strstr(err.text, "is expired") != NULL);
}

/* Two that change one file, both confirmed, and the first of them was done: what the second was
 * confirmed for is not there any more. */
TEST(what_was_changed_between_word_and_deed_is_left_alone)
{
    static const char *const operations[] = {
        "\"modify\",\"content\":\"theirs\"",
        "\"delete\"",
        "\"move\",\"destination\":\"/sandbox/output/b\"",
    };
    AUTO(advise) struct advise *advise = begin(false);

    for (size_t i = 0; i < COUNT(operations); i++) {
        AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
        struct advise_answer answer;
        struct advise_action action;
        struct str request = str_of(arena_printf(
            &mem,
            "{\"type\":\"filesystem\",\"operation\":%s,\"target\":\"/sandbox/output/a\","
            "\"risk\":\"irreversible\"}",
            operations[i]));
        struct err err;

        for (int changed = 0; changed < 2; changed++) {
            AUTO_FREE char *now = NULL;

            CHECK_INT(put_target(advise, "first"), 0);
            CHECK_INT(advise_ask(advise, &mem, request, &answer, &action, &err), 0);
            CHECK_INT(action.state, ADVISE_PENDING);
            CHECK_INT(decided(advise, &mem, action.id, &err), 0);
            if (changed)
                write_whole(advise, "sandbox/output/a", "other");
            CHECK_INT(advise_action_do(advise, &mem, action.id, &action, &err), 0);
            CHECK_INT(action.is_done, !changed);
            CHECK_INT(action.state, changed ? ADVISE_ABORTED : ADVISE_CONFIRMED);
            CHECK_TEXT(action.why,
                       changed ? "its target is not what it was when it was asked" : "done");
            if (!changed)
                continue;
            now = read_whole(advise, "sandbox/output/a");
            CHECK_TEXT(now, "other");
        }
    }
}

/* One that is made: a name that is taken meanwhile, and one that is free again. */
TEST(what_is_made_is_new_as_it_was_confirmed)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    const char *id = asked(advise, &mem);
    struct advise_action action;
    struct err err;

    CHECK_INT(decided(advise, &mem, id, &err), 0);
    CHECK_INT(put_target(advise, "other"), 0);
    CHECK_INT(advise_action_do(advise, &mem, id, &action, &err), 0);
    CHECK(!action.is_done);
    CHECK_INT(action.state, ADVISE_ABORTED);
    CHECK_TEXT(action.why, "a exists");

    id = asked(advise, &mem);
    CHECK_INT(decided(advise, &mem, id, &err), 0);
    CHECK_INT(unlinkat(advise->dir_fd, "sandbox/output/a", 0), 0);
    CHECK_INT(advise_action_do(advise, &mem, id, &action, &err), 0);
    CHECK(!action.is_done);
    CHECK_INT(action.state, ADVISE_ABORTED);
    CHECK_INT(faccessat(advise->dir_fd, "sandbox/output/a", F_OK, 0), -1);

    id = asked(advise, &mem);
    CHECK_INT(decided(advise, &mem, id, &err), 0);
    CHECK_INT(advise_action_do(advise, &mem, id, &action, &err), 0);
    CHECK(action.is_done);
}

TEST(word_and_deed_are_one)
{
    const struct advise_word yes = {.words = STR_LIT(ADVISE_CONFIRM_WORDS), .by = "custodian:a"};
    const struct advise_word no = {.words = STR_LIT("yes"), .by = "custodian:a"};
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    const char *id = asked(advise, &mem);
    struct advise_action action;
    struct err err;

    CHECK_INT(advise_action_settle(advise, &mem, id, &no, &action, &err), 0);
    CHECK_INT(action.state, ADVISE_ABORTED);
    CHECK_INT(faccessat(advise->dir_fd, "sandbox/output/a", F_OK, 0), -1);
    id = asked(advise, &mem);
    CHECK_INT(advise_action_settle(advise, &mem, id, &yes, &action, &err), 0);
    CHECK(action.is_done);
    CHECK_INT(action.state, ADVISE_CONFIRMED);
    CHECK_INT(faccessat(advise->dir_fd, "sandbox/output/a", F_OK, 0), 0);
    /* Who talks with the agent looks now and then, and tells it what he sees. */
    CHECK_INT(advise_action_show(advise, &mem, id, &action, &err), 0);
    CHECK(action.is_done);
    CHECK_TEXT(action.why, "done");
    CHECK_INT(advise_action_settle(advise, &mem, id, &yes, &action, &err), -1);
    CHECK_INT(err.code, ERR_CONFLICT);
}

static int count_visit(void *context, const struct advise_action *action, struct err *err)
{
    (void)action, (void)err;
    ++*(unsigned *)context;
    return 0;
}

TEST(half_a_record_that_a_killed_one_left_is_no_action)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    const char *id = asked(advise, &mem);
    unsigned n = 0;
    struct err err;

    (void)close(openat(advise->dir_fd, arena_printf(&mem, "actions/%s.json.4711.tmp", id),
                       O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    CHECK_INT(advise_action_each(advise, count_visit, &n, &err), 0);
    CHECK_INT(n, 1);
}
