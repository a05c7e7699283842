/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

/* What those who govern read: answers whole, with the runtime's own block. */

struct seen {
    struct arena mem;
    const struct json *turns[8];
    size_t n;
};

static int on_turn(void *context, const struct json *turn, struct err *err)
{
    AUTO_BUF struct buf text = BUF(1 * MIB);
    struct seen *seen = context;
    struct mark where;

    if (json_compact(turn, &text, err) < 0)
        return -1;
    return json_parse(&seen->mem, arena_str(&seen->mem, buf_str(&text)), &seen->turns[seen->n++],
                      &where, err);
}

static const char *text_at(struct seen *seen, const struct json *json, const char *path)
{
    char *rest = arena_text(&seen->mem, str_of(path)), *key;
    struct str text = {0};

    while ((key = strsep(&rest, "/")) && json)
        json = json_get(json, key);
    if (json && json_is_text(json, &text))
        return arena_text(&seen->mem, text);
    return json ? arena_text(&seen->mem, json->text) : "(nothing)";
}

TEST(answers_whole_with_the_runtimes_block)
{
    struct seen seen = {.mem = ARENA(16 * MIB)};
    AUTO(advise) struct advise *advise = begin(false);
    const struct json *governance, *events;
    struct err err;

    say(advise, "hello", STR_LIT(ENVELOPE("[FACT] Use `rm -rf x` now.")));
    say(advise, "again", STR_LIT("no envelope"));
    say(advise, "and", STR_LIT("{\"governance\":{\"hash\":\"mine\"}}"));
    say(advise, "last", STR_LIT(ENVELOPE("[FACT] Wait.")));
    CHECK_INT(advise_envelopes(advise, 0, 8, on_turn, &seen, &err), 0);
    CHECK_INT(seen.n, 4);

    CHECK_TEXT(text_at(&seen, seen.turns[0], "envelope/client_view"), "[FACT] Use `rm -rf x` now.");
    governance = json_get(json_get(seen.turns[0], "envelope"), "governance");
    CHECK_TEXT(text_at(&seen, governance, "run_id"), advise->id);
    CHECK_TEXT(text_at(&seen, governance, "constitution_sha256"), advise->constitution_sha256);
    CHECK_TEXT(text_at(&seen, governance, "drift/code"), "C");
    CHECK_TEXT(text_at(&seen, governance, "drift/compliance"), "100");
    CHECK(json_get(json_get(governance, "drift"), "score") != NULL);
    CHECK_TEXT(text_at(&seen, governance, "seq"), "4");
    events = json_get(governance, "events");
    CHECK(events->n >= 2);
    CHECK_TEXT(text_at(&seen, events->first, "category"), "unsafe_command");
    CHECK_TEXT(text_at(&seen, events->first, "seq"), "5");

    /* What is no envelope, and one with a block of its own, is wrapped. */
    CHECK_TEXT(text_at(&seen, seen.turns[1], "envelope/advisory/unstructured"), "no envelope");
    CHECK_TEXT(text_at(&seen, seen.turns[2], "envelope/advisory/unstructured"),
               "{\"governance\":{\"hash\":\"mine\"}}");
    CHECK(strncmp(text_at(&seen, seen.turns[2], "envelope/governance/hash"), "sha256:", 7) == 0);

    /* Nothing was found in the last: its block is the end of the chain. */
    governance = json_get(json_get(seen.turns[3], "envelope"), "governance");
    CHECK_TEXT(text_at(&seen, governance, "hash"), advise->tally.head);
    CHECK_INT(json_get(governance, "events")->n, 0);

    seen.n = 0;
    CHECK_INT(advise_envelopes(advise, 1, 2, on_turn, &seen, &err), 0);
    CHECK_INT(seen.n, 2);
    CHECK_TEXT(text_at(&seen, seen.turns[0], "turn"), "2");
    arena_done(&seen.mem);
}

TEST(what_was_changed_is_not_shown)
{
    struct seen seen = {.mem = ARENA(16 * MIB)};
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_FREE char *text = NULL;
    struct err err;

    say(advise, "hello", STR_LIT(ENVELOPE("[FACT] Wait.")));
    text = read_whole(advise, "turns.jsonl");
    memcpy(strstr(text, "Wait"), "Haul", 4);
    write_whole(advise, "turns.jsonl", text);
    CHECK_INT(advise_envelopes(advise, 0, 8, on_turn, &seen, &err), -1);
    CHECK_INT(err.code, ERR_INTEGRITY);
    arena_done(&seen.mem);
}
