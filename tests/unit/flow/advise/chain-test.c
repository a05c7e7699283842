/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <signal.h>
#include <sys/resource.h>

/* What a chain of events makes of every change to it. */

static int open_again(const struct advise *advise, struct err *err)
{
    AUTO(advise) struct advise *again = NULL;

    return advise_open(state_dir, advise->id, &again, err);
}

/* Line k of text, from 1, and its length with its end. */
static const char *line_at(const char *text, unsigned k, size_t *n)
{
    for (unsigned i = 1; i < k; i++)
        text = strchr(text, '\n') + 1;
    *n = (size_t)(strchr(text, '\n') - text) + 1;
    return text;
}

static unsigned line_count(const char *text)
{
    unsigned n = 0;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

TEST(events_are_chained_and_read_again)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO(advise) struct advise *again = NULL;
    struct err err;

    say(advise, "hello", STR_LIT(ENVELOPE("[FACT] Wait.")));
    CHECK_INT(advise_end(advise, "end", &err), 0);
    CHECK_INT(advise_open(state_dir, advise->id, &again, &err), 0);
    CHECK_INT(again->tally.events, 5);
    CHECK_INT(again->tally.turns, 1);
    CHECK(again->tally.is_ended && again->tally.has_constitution);
    CHECK_TEXT(again->tally.head, advise->tally.head);
    CHECK(advise_is_clean(&again->tally));
}

/* Each member of each event, changed by one character. */
TEST(no_member_of_an_event_can_be_changed)
{
    static const char *const members[] = {
        "agent_id",
        "agent_version",
        "at",
        "category",
        "constitution_sha256",
        "drift",
        "excerpt",
        "hash",
        "kind",
        "prev_hash",
        "requester",
        "rule",
        "run_id",
        "seq",
        "span",
        "text_sha256",
        "ts",
        "turn",
        "v",
        "valid",
        "verdict",
        "where",
    };
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_FREE char *text = NULL;
    unsigned changed = 0;
    struct err err;

    say(advise, "hello", STR_LIT(ENVELOPE("[FACT] Use `rm -rf x` now.")));
    text = read_whole(advise, "events.jsonl");
    for (size_t i = 0; i < COUNT(members); i++) {
        char key[64];
        char *found;

        (void)snprintf(key, sizeof key, "\"%s\":", members[i]);
        for (found = strstr(text, key); found; found = strstr(found + 1, key)) {
            char *at = found + strlen(key) + strspn(found + strlen(key), "\"{[");
            char was = *at;

            /* A digit stays one: it must not be the JSON that is noticed. */
            *at = was >= '0' && was <= '8' ? (char)(was + 1) : was == '9' ? '8' : 'Z';
            write_whole(advise, "events.jsonl", text);
            if (open_again(advise, &err) == 0)
                test_fail(__FILE__, __LINE__, "%s was changed, and nobody noticed", members[i]);
            else
                CHECK_INT(err.code, ERR_INTEGRITY);
            *at = was;
            changed++;
        }
    }
    CHECK(changed > 60);
    write_whole(advise, "events.jsonl", text);
    CHECK_INT(open_again(advise, &err), 0);
}

TEST(no_event_can_be_left_out_or_moved)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_FREE char *text = NULL;
    AUTO_FREE char *other = NULL;
    unsigned lines;
    struct err err;

    say(advise, "hello", STR_LIT(ENVELOPE("[FACT] Wait.")));
    CHECK_INT(advise_end(advise, "end", &err), 0);
    text = read_whole(advise, "events.jsonl");
    other = xcalloc(1, 2 * strlen(text) + 1);
    lines = line_count(text);
    for (unsigned k = 1; k < lines; k++) {
        size_t n, m;
        const char *one = line_at(text, k, &n);
        const char *next = line_at(text, k + 1, &m);

        /* Left out; the two swapped; one of them twice. */
        (void)sprintf(other, "%.*s%s", (int)(one - text), text, next);
        write_whole(advise, "events.jsonl", other);
        CHECK_INT(open_again(advise, &err), -1);
        CHECK_INT(err.code, ERR_INTEGRITY);
        (void)sprintf(other, "%.*s%.*s%.*s%s", (int)(one - text), text, (int)m, next, (int)n, one,
                      next + m);
        write_whole(advise, "events.jsonl", other);
        CHECK_INT(open_again(advise, &err), -1);
        CHECK_INT(err.code, ERR_INTEGRITY);
        (void)sprintf(other, "%.*s%.*s%s", (int)(next - text), text, (int)n, one, next);
        write_whole(advise, "events.jsonl", other);
        CHECK_INT(open_again(advise, &err), -1);
        CHECK(strstr(err.text, "missing or moved") != NULL);
    }
}

/* A chain without its tail holds in itself; that it ended elsewhere says what the ledger has. */
TEST(a_tail_that_is_cut_off_is_another_head)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO(advise) struct advise *again = NULL;
    AUTO_FREE char *text = NULL;
    struct err err;
    size_t n;

    say(advise, "hello", STR_LIT(ENVELOPE("[FACT] Wait.")));
    text = read_whole(advise, "events.jsonl");
    text[line_at(text, line_count(text), &n) - text] = '\0';
    write_whole(advise, "events.jsonl", text);
    CHECK_INT(advise_open(state_dir, advise->id, &again, &err), 0);
    CHECK_INT(again->tally.events, advise->tally.events - 1);
    CHECK(strcmp(again->tally.head, advise->tally.head) != 0);
    /* Whoever had read it notices by himself. */
    CHECK_INT(advise_refresh(advise, &err), -1);
    CHECK_INT(err.code, ERR_INTEGRITY);
}

TEST(an_event_of_another_session_is_none_of_this_one)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO(advise) struct advise *other = NULL;
    const struct advise_terms terms = {.agent_id = "agent",
                                       .agent_version = "sha256:0",
                                       .requester = "uid:4711",
                                       .channel = "api",
                                       .constitution = STR_LIT("be good")};
    AUTO_FREE char *text = NULL;
    struct err err;

    CHECK_INT(advise_start(state_dir, &terms, &other, &err), 0);
    text = read_whole(other, "events.jsonl");
    write_whole(advise, "events.jsonl", text);
    CHECK_INT(open_again(advise, &err), -1);
    CHECK(strstr(err.text, "of another session") != NULL);
}

/* session.json is no link of the chain; what it says must be what the chain says. */
TEST(session_json_says_what_the_chain_says)
{
    static const struct {
        const char *what, *with;
    } changes[] = {
        {"\"requester\":\"uid:4711\"",     "\"requester\":\"uid:4712\""    },
        {"\"agent_id\":\"agent\"",         "\"agent_id\":\"other\""        },
        {"\"agent_version\":\"sha256:0\"", "\"agent_version\":\"sha256:1\""},
        {"\"channel\":\"api\"",            "\"channel\":\"box\""           },
        {"\"strict_seed\":false",          "\"strict_seed\":true"          },
    };
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_FREE char *text = read_whole(advise, "session.json");
    struct err err;

    for (size_t i = 0; i < COUNT(changes); i++) {
        AUTO_FREE char *made = NULL;
        const char *at = strstr(text, changes[i].what);

        CHECK(at != NULL);
        CHECK(asprintf(&made, "%.*s%s%s", (int)(at - text), text, changes[i].with,
                       at + strlen(changes[i].what)) > 0);
        write_whole(advise, "session.json", made);
        CHECK_INT(open_again(advise, &err), -1);
        CHECK_INT(err.code, ERR_INTEGRITY);
    }
    write_whole(advise, "session.json", text);
    CHECK_INT(open_again(advise, &err), 0);
}

/* However much is found, there is room for the end; and it is read again. */
TEST(a_session_that_is_full_can_be_ended)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO(advise) struct advise *again = NULL;
    AUTO_BUF struct buf bad = BUF(64 * KIB);
    struct err err = {0};
    unsigned turns = 0;

    for (int i = 0; i < 300; i++)
        CHECK_INT(buf_add_text(&bad, "`rm -rf build` ", &err), 0);
    while (turns < 200) {
        AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
        struct advise_answer answer;

        advise->terms.turns_max = ADVISE_TURNS_MAX;
        if (advise_exchange(advise, &mem, STR_LIT("go on"), buf_str(&bad), &answer, &err) < 0)
            break;
        turns++;
    }
    CHECK(turns > 50 && turns < 100);
    CHECK_INT(err.code, ERR_CONFLICT);
    CHECK(strstr(err.text, "its telemetry is full") != NULL);
    CHECK_INT(advise_end(advise, "end", &err), 0);
    CHECK_INT(advise_open(state_dir, advise->id, &again, &err), 0);
    CHECK(again->tally.is_ended);
    CHECK(again->tally.events < ADVISE_EVENTS_MAX);
}

/* What the box was seen to do counts as often as it did it, also behind the end. */
TEST(attempts_count_each_and_to_the_last)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO(advise) struct advise *again = NULL;
    struct err err;

    say(advise, "hello", STR_LIT(ENVELOPE("[FACT] Wait.")));
    CHECK(advise_is_clean(&advise->tally) && !advise->tally.is_box_gone);
    CHECK_INT(advise_box_gone(advise, true, 3, &err), 0);
    CHECK_INT(advise_end(advise, "end", &err), 0);
    CHECK_INT(advise_box_gone(advise, true, 1, &err), 0);
    CHECK_INT(advise_open(state_dir, advise->id, &again, &err), 0);
    CHECK_INT(again->tally.counts[ADVISORY_IS_SHELL_EXECUTION], 4);
    CHECK_INT(again->tally.drift, DRIFT_CONSTITUTIONAL);
    CHECK(again->tally.is_ended && !advise_is_clean(&again->tally));
    CHECK(again->tally.is_box_gone);
    CHECK_INT(advise_box_gone(advise, true, UINT64_MAX, &err), 0);
    CHECK_INT(advise->tally.counts[ADVISORY_IS_SHELL_EXECUTION], 4 + (uint64_t)ADVISE_ATTEMPTS_MAX);
}

TEST(as_many_requests_as_there_may_be)
{
    static const char request[] = "{\"type\":\"process\",\"operation\":\"execute\","
                                  "\"target\":\"/sandbox/output/x\",\"risk\":\"unknown\"}";
    AUTO(advise) struct advise *advise = begin(false);
    struct err err;
    int n = 0;

    while (n < 2 * ADVISE_ACTIONS_MAX) {
        AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
        struct advise_answer answer;
        struct advise_action action;

        if (advise_ask(advise, &mem, STR_LIT(request), &answer, &action, &err) < 0)
            break;
        CHECK_INT(action.state, ADVISE_REJECTED);
        n++;
    }
    CHECK_INT(n, ADVISE_ACTIONS_MAX);
    CHECK_INT(err.code, ERR_LIMIT);
    CHECK_INT(advise_end(advise, "end", &err), 0);
}

/* ---- half a line ---- */

static int count_said(void *context, const struct advise_told *told, struct err *err)
{
    (void)err;
    *(unsigned *)context += told->is_stored;
    return 0;
}

static unsigned said_in(const struct advise *advise)
{
    unsigned n = 0;
    struct err err;

    if (advise_tell(advise, count_said, &n, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return n;
}

/* What is added behind half a line would be part of it. */
TEST(half_of_what_was_said_is_cut_off)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_FREE char *text = NULL;
    AUTO_FREE char *longer = NULL;

    say(advise, "hello", STR_LIT(ENVELOPE("[FACT] Wait.")));
    text = read_whole(advise, "turns.jsonl");
    longer = xcalloc(1, strlen(text) + 10000);
    (void)sprintf(longer, "%s{\"by\":\"user\",\"text\":\"%09000d", text, 0);
    write_whole(advise, "turns.jsonl", longer);
    say(advise, "hello", STR_LIT(ENVELOPE("[FACT] Wait.")));
    CHECK_INT(said_in(advise), 4);
}

/* A disk that is full in the middle of a line. */
TEST(a_full_disk_leaves_nothing_half)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO(advise) struct advise *again = NULL;
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    struct rlimit before, little;
    struct advise_answer answer;
    unsigned failed = 0;
    struct err err;

    (void)signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
    little = before;
    for (rlim_t room = 0; room < 4096; room += 97) {
        little.rlim_cur = room;
        CHECK_INT(setrlimit(RLIMIT_FSIZE, &little), 0);
        failed += advise_exchange(advise, &mem, STR_LIT("hello"), STR_LIT(ENVELOPE("[FACT] Wait.")),
                                  &answer, &err) < 0;
        CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
    }
    CHECK(failed > 10);
    say(advise, "hello", STR_LIT(ENVELOPE("[FACT] Wait.")));
    CHECK_INT(advise_end(advise, "end", &err), 0);
    CHECK_INT(advise_open(state_dir, advise->id, &again, &err), 0);
    CHECK_INT(said_in(again), again->tally.prompts + again->tally.turns);
}

/* Whoever died over it told nobody that it was written. */
TEST(half_an_event_is_cut_off)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_FREE char *text = read_whole(advise, "events.jsonl");
    AUTO_FREE char *longer = NULL;
    AUTO_FREE char *after = NULL;
    struct err err;

    CHECK(asprintf(&longer, "%s{\"agent_id\":\"ag", text) > 0);
    write_whole(advise, "events.jsonl", longer);
    CHECK_INT(open_again(advise, &err), 0);
    after = read_whole(advise, "events.jsonl");
    CHECK_TEXT(after, text);
}
