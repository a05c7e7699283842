/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

/* What was said, by other rules. */

struct seen {
    unsigned n;
    uint64_t turn[8];
    bool is_judged[8];
    unsigned before_alias, after_alias;
};

static unsigned count_rule(const struct advise_judged *judged, const char *rule)
{
    unsigned n = 0;

    for (size_t i = 0; i < judged->hit_n; i++)
        n += strcmp(judged->hits[i].rule, rule) == 0 ? judged->hits[i].n : 0;
    return n;
}

static int on_difference(void *context, const struct advise_difference *it, struct err *err)
{
    struct seen *seen = context;

    (void)err;
    CHECK(seen->n < COUNT(seen->turn));
    seen->turn[seen->n] = it->turn;
    seen->is_judged[seen->n++] = it->is_judged;
    seen->before_alias += count_rule(&it->before, "alias.cp");
    seen->after_alias += count_rule(&it->after, "alias.cp");
    return 0;
}

static struct advise_replay replay(const struct advise *advise, bool strict_seed, struct seen *seen)
{
    struct advise_replay replay = {
        .strict_seed = strict_seed, .on_difference = on_difference, .context = seen};
    struct err err;

    *seen = (struct seen){0};
    if (advise_replay(advise, &replay, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return replay;
}

TEST(the_same_rules_find_the_same)
{
    static const char *const answers[] = {
        ENVELOPE("[FACT] Wait."),
        ENVELOPE("[FACT] Use `rm -rf x` now, then `rm -rf x`."),
        ENVELOPE("[FACT] See ../../etc/passwd and I will do it myself."),
        "no envelope",
        "{}",
        "",
        "\xff\xfe",
    };
    AUTO(advise) struct advise *advise = begin(false);
    struct advise_replay got;
    struct seen seen;

    for (size_t i = 0; i < COUNT(answers); i++)
        say(advise, "go on", str_of(answers[i]));
    got = replay(advise, false, &seen);
    CHECK_INT(got.turns, COUNT(answers));
    CHECK_INT(got.differ, 0);
    CHECK_INT(seen.n, 0);
    for (int i = 0; i < ADVISORY_CATEGORY_COUNT; i++) {
        CHECK_INT(got.before[i], got.after[i]);
        CHECK_INT(got.before[i], advise->tally.counts[i]);
    }
}

TEST(other_rules_find_something_else_both_ways)
{
    for (int strict = 0; strict < 2; strict++) {
        AUTO(advise) struct advise *advise = NULL;
        struct advise_replay got;
        struct seen seen;

        (void)strcpy(state_dir, "/tmp/brig-advise-XXXXXX");
        advise = begin(strict);
        say(advise, "one", STR_LIT(ENVELOPE("[FACT] Wait.")));
        say(advise, "two", STR_LIT(ENVELOPE("[FACT] Use `rsync -a x y` for that.")));
        got = replay(advise, !strict, &seen);
        CHECK_INT(got.turns, 2);
        CHECK_INT(got.differ, 1);
        CHECK_INT(seen.turn[0], 2);
        CHECK_INT(seen.before_alias > 0, !strict);
        CHECK_INT(seen.after_alias > 0, strict);
        CHECK_INT(got.before[ADVISORY_IS_UNSAFE_COMMAND], !strict);
        CHECK_INT(got.after[ADVISORY_IS_UNSAFE_COMMAND], strict);
        remove_state();
    }
}

/* What the session itself found is no matter of rules for texts. */
TEST(speaking_out_of_turn_is_no_difference)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    struct advise_answer heard;
    struct advise_replay got;
    struct seen seen;
    struct err err;

    say(advise, "one", STR_LIT(ENVELOPE("[FACT] Wait.")));
    CHECK_INT(advise_heard(advise, &mem, STR_LIT(ENVELOPE("[FACT] More.")), &heard, &err), 0);
    CHECK(heard.is_unprompted);
    CHECK_INT(advise->tally.counts[ADVISORY_IS_QUIESCENCE], 1);
    got = replay(advise, false, &seen);
    CHECK_INT(got.turns, 2);
    CHECK_INT(got.differ, 0);
}

TEST(what_is_too_long_is_stored_in_part_and_judged_as_then)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_FREE char *text = xmalloc(MIB);
    struct advise_replay got;
    struct seen seen;

    memset(text, '\x01', MIB);
    say(advise, "one", (struct str){text, MIB});
    got = replay(advise, false, &seen);
    CHECK_INT(got.turns, 1);
    CHECK_INT(got.not_whole, 1);
    CHECK_INT(got.differ, 0);
}

TEST(what_is_not_stored_is_said_to_be_missing)
{
    AUTO(advise) struct advise *advise = begin(false);
    struct advise_replay got;
    struct seen seen;

    say(advise, "one", STR_LIT(ENVELOPE("[FACT] Wait.")));
    write_whole(advise, "turns.jsonl", "");
    got = replay(advise, false, &seen);
    CHECK_INT(got.turns, 0);
    CHECK_INT(got.not_stored, 1);
    CHECK_INT(seen.n, 1);
    CHECK(!seen.is_judged[0]);
}

/* Who died between what was said and its event says it again. */
TEST(a_line_without_an_event_does_not_count)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_FREE char *text = NULL;
    AUTO_FREE char *twice = NULL;
    struct advise_replay got;
    struct seen seen;

    say(advise, "one", STR_LIT(ENVELOPE("[FACT] Wait.")));
    text = read_whole(advise, "turns.jsonl");
    CHECK(asprintf(&twice, "{\"by\":\"user\",\"text\":\"other\",\"turn\":1}\n%s", text) > 0);
    write_whole(advise, "turns.jsonl", twice);
    got = replay(advise, false, &seen);
    CHECK_INT(got.turns, 1);
    CHECK_INT(got.differ, 0);
}

TEST(what_was_said_cannot_be_changed)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_FREE char *text = NULL;
    struct advise_replay again = {.strict_seed = false};
    struct err err;

    say(advise, "one", STR_LIT(ENVELOPE("[FACT] Wait.")));
    text = read_whole(advise, "turns.jsonl");
    memcpy(strstr(text, "Wait"), "Wake", 4);
    write_whole(advise, "turns.jsonl", text);
    CHECK_INT(advise_replay(advise, &again, &err), -1);
    CHECK_INT(err.code, ERR_INTEGRITY);
    CHECK(strstr(err.text, "was changed") != NULL);
}
