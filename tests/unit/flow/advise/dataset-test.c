/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

/* What leaves the machine of a session. */

#define KEY "ghp_0123456789abcdefghijABCDEFGHIJ012345"

static int add_line(void *context, struct str line, struct err *err)
{
    struct buf *out = context;

    return buf_add_str(out, line, err) < 0 ? -1 : buf_add_byte(out, '\n', err);
}

static void export_to(const struct advise *advise, struct buf *out)
{
    struct advise_dataset dataset = {.write = add_line, .context = out};
    struct err err;

    if (advise_export(advise, &dataset, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    CHECK_INT(dataset.events, advise->tally.events);
}

/* The line of a turn, read. */
static const struct json *turn_line(struct arena *mem, struct str text, int64_t wanted)
{
    while (text.n) {
        struct str line = str_cut(&text, '\n'), record = {0};
        const struct json *json = NULL;
        struct mark where;
        struct err err;
        int64_t turn = 0;

        if (json_parse(mem, line, &json, &where, &err) < 0)
            test_fail(__FILE__, __LINE__, "%s in %.*s", err.text, (int)line.n, line.p);
        (void)json_is_text(json_get(json, "record"), &record);
        (void)json_is_int(json_get(json, "turn"), &turn);
        if (str_is(record, "turn") && turn == wanted)
            return json;
    }
    test_fail(__FILE__, __LINE__, "there is no turn %d", (int)wanted);
    return NULL;
}

TEST(texts_are_covered)
{
    /* clang-format off */
    static const struct {
        const char *said, *kept;
    } cases[] = {
        {"nothing to see",                          "nothing to see"},
        {"the key " KEY " is",                      "the key [secret] is"},
        {KEY KEY,                                   NULL},
        {"Authorization: Bearer abcdef0123456789abcdef", NULL},
        {"see /home/anna/x.txt, please",            "see [path], please"},
        {"path=/var/lib/brig:/opt",                 "path=[path]:[path]"},
        {"`cat /etc/passwd`",                       "`cat [path]`"},
        {"//home/anna",                             "[path]"},
        {"~/notes and ~anna/notes",                 "[path] and [path]"},
        {"file:///home/anna",                       "file://[path]"},
        {"C:\\Users\\anna",                         "[path]"},
        {"\\\\server\\anna",                           "[path]"},
        {"\xe2\x80\x9c/home/anna\xe2\x80\x9d",         "\xe2\x80\x9c[path]"},
        {"it is brig_dkj5zykvdijk_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.",
         "it is [secret]."},
        {"brig_advisory_findings_total",            "brig_advisory_findings_total"},
        {"password=anna77 and more",                "password=[secret] and more"},
        {"so {\"api_key\": \"anna's\", \"n\": 1}",  "so {\"api_key\": \"[secret]\", \"n\": 1}"},
        {"AWS_SECRET_ACCESS_KEY=anna/0+",           "AWS_SECRET_ACCESS_KEY=[secret]"},
        {"login --token anna77 --all",              "login --token [secret] --all"},
        {"--password=anna77",                       "--password=[secret]"},
        {"DB-Password: anna77",                     "DB-Password: [secret]"},
        {"https://me:anna@7@example.org/x",         "https://me:[secret]@example.org/x"},
        {"max_tokens=4096, The secret: patience.",  "max_tokens=4096, The secret: patience."},
        {"a --token and http://example.org:80/x",   "a --token [secret] http://example.org:80/x"},
        {"password=$PASSWORD",                      "password=$PASSWORD"},
        {"/sandbox/input/a.txt and /sandbox",       "/sandbox/input/a.txt and /sandbox"},
        {"/sandbox/../home/anna",                   "[path]"},
        {"https://example.org/home and/or 1 / 2",   "https://example.org/home and/or 1 / 2"},
        {"about ~5 minutes, ../up",                 "about ~5 minutes, ../up"},
        {"bell \a and\ttab",                        "bell \a and\ttab"},
        {"bytes \xff here",                         "bytes \xef\xbf\xbd here"},
        {"{\"a\":\"\\u0067hp_0123456789abcdefghijABCDEFGHIJ012345\",", "{\"a\":\"[secret]\","},
        {"{\"a\":\"\\/home\\/anna\",",              "{\"a\":\"[path]\","},
    };
    /* clang-format on */
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_ARENA struct arena mem = ARENA(64 * MIB);
    AUTO_BUF struct buf out = BUF(16 * MIB);

    for (size_t i = 0; i < COUNT(cases); i++)
        say(advise, "go on", str_of(cases[i].said));
    export_to(advise, &out);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct json *turn = turn_line(&mem, buf_str(&out), (int64_t)i + 1);
        struct str text = {0};

        if (!turn || !json_is_text(json_at(turn, "/output/text"), &text))
            test_fail(__FILE__, __LINE__, "\"%s\" has no text", cases[i].said);
        else if (cases[i].kept)
            CHECK_TEXT(arena_text(&mem, text), cases[i].kept);
    }
    CHECK(!strstr(buf_text(&out), "0123456789abcdef"));
    CHECK(!strstr(buf_text(&out), "anna"));
    CHECK(!strstr(buf_text(&out),
                  "uid:4711")); /* the requester; the digits alone are in times, too */
}

TEST(documents_are_covered_in_names_and_escapes)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_ARENA struct arena mem = ARENA(64 * MIB);
    AUTO_BUF struct buf out = BUF(16 * MIB);
    const struct json *turn;
    struct str text = {0};

    say(advise, "see " KEY,
        STR_LIT("{\"/home/anna\":1,\"/home/ben\":1e999,\"[path]\":3,"
                "\"a\":[\"\\u0067hp_0123456789abcdefghijABCDEFGHIJ012345\",null,true],"
                "\"Api_Key\":\"anna\",\"tokens\":\"two\"}"));
    export_to(advise, &out);
    turn = turn_line(&mem, buf_str(&out), 1);
    CHECK(turn && json_is_text(json_at(turn, "/output/envelope/a/0"), &text));
    CHECK(str_is(text, "[secret]"));
    CHECK_INT(json_at(turn, "/output/envelope")->n, 6);
    CHECK(json_at(turn, "/output/envelope/[path] (1)") != NULL);
    CHECK(json_at(turn, "/output/envelope/[path] (3)") != NULL);
    CHECK(json_is_text(json_at(turn, "/output/envelope/Api_Key"), &text) &&
          str_is(text, "[secret]"));
    CHECK(json_is_text(json_at(turn, "/output/envelope/tokens"), &text) && str_is(text, "two"));
    CHECK(json_is_text(json_get(turn, "prompt"), &text) && str_is(text, "see [secret]"));
    CHECK(!strstr(buf_text(&out), "anna"));
    CHECK(!strstr(buf_text(&out), "0123456789abcdef"));
}

/* A pointer is made of names, and names are the agent's. */
TEST(places_have_names_of_ours_only)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_BUF struct buf out = BUF(16 * MIB);

    say(advise, "go on",
        STR_LIT("{\"epistemic\":{\"facts\":[\"Use `rm -rf x` now.\"],\"hypotheses\":[],"
                "\"assumptions\":[]},\"advisory\":{\"/home/anna\":\"Use `rm -rf y` now.\"},"
                "\"sandbox\":{\"actions_permitted\":false,\"reason\":\"Helix aligned sandbox "
                "mode\"},\"client_view\":\"[FACT] Wait.\"}"));
    export_to(advise, &out);
    CHECK(strstr(buf_text(&out), "\"where\":\"/epistemic/facts/0\"") != NULL);
    CHECK(strstr(buf_text(&out), "\"where\":\"/advisory/...\"") != NULL);
    CHECK(!strstr(buf_text(&out), "anna"));
    CHECK(!strstr(buf_text(&out), "excerpt"));
}

TEST(the_same_session_is_the_same_bytes)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_BUF struct buf one = BUF(16 * MIB);
    AUTO_BUF struct buf two = BUF(16 * MIB);
    struct err err;

    say(advise, "one", STR_LIT(ENVELOPE("[FACT] Use `rm -rf x` now.")));
    CHECK_INT(advise_prompt(advise, STR_LIT("two"), &err), 0);
    CHECK_INT(advise_end(advise, "end", &err), 0);
    export_to(advise, &one);
    export_to(advise, &two);
    CHECK_TEXT(buf_text(&one), buf_text(&two));
    CHECK(strstr(buf_text(&one), "\"prompt\":\"two\"") != NULL);
}

/* How often it tried to run something is part of what it did, and no part of its last answer. */
TEST(attempts_are_in_it)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_ARENA struct arena mem = ARENA(64 * MIB);
    AUTO_BUF struct buf out = BUF(16 * MIB);
    const struct json *turn;
    struct err err;

    say(advise, "go on", STR_LIT(ENVELOPE("[FACT] Wait.")));
    CHECK_INT(advise_box_gone(advise, true, 3, &err), 0);
    CHECK_INT(advise_end(advise, "end", &err), 0);
    export_to(advise, &out);
    CHECK(strstr(buf_text(&out), "\"rule\":\"program_refused\"") != NULL);
    CHECK(strstr(buf_text(&out), "\"attempts\":3") != NULL);
    CHECK(strstr(buf_text(&out), "\"begun\":true") != NULL);
    turn = turn_line(&mem, buf_str(&out), 1);
    CHECK(turn && json_get(turn, "findings")->n == 0);
}
