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
