/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

/* The cases of tests/vectors/advisory/gate.json, over real sessions. The ledger's part, where a
 * chain ended, is played here; tests/flow/gate-vectors.bats has a true one. */

#define MEMORY (64 * MIB)

static const struct json *read_cases(struct arena *mem)
{
    AUTO_BUF struct buf text = BUF(1 * MIB);
    const struct json *root = NULL;
    struct mark where = {0, 0};
    struct err err;

    if (file_read(AT_FDCWD, VECTORS "/gate.json", &text, &err) < 0 ||
        json_parse(mem, arena_str(mem, buf_str(&text)), &root, &where, &err) < 0) {
        test_fail(__FILE__, __LINE__, "gate.json:%u: %s", where.line, err.text);
        return json_array(mem);
    }
    return root;
}

static const char *member(struct arena *mem, const struct json *item, const char *key,
                          const char *otherwise)
{
    struct str text = {0};

    return json_is_text(json_get(item, key), &text) ? arena_text(mem, text) : otherwise;
}

/* ---- one run ---- */

static void hear(struct advise *advise, struct arena *mem, const char *said)
{
    struct advise_answer answer;
    struct advise_action action;
    struct err err;
    int failed;

    if (strncmp(said, "ask ", 4) == 0)
        failed = advise_ask(advise, mem, str_of(said + 4), &answer, &action, &err);
    else if (strncmp(said, "raw ", 4) == 0)
        failed = advise_exchange(advise, mem, STR_LIT("hello"), str_of(said + 4), &answer, &err);
    else
        failed =
            advise_exchange(advise, mem, STR_LIT("hello"),
                            str_of(arena_printf(mem, ENVELOPE("%s"), said + 5)), &answer, &err);
    if (failed)
        test_fail(__FILE__, __LINE__, "%s: %s", said, err.text);
}

static void replace(const struct advise *advise, const char *file, const char *what,
                    const char *with)
{
    AUTO_FREE char *text = read_whole(advise, file);
    AUTO_FREE char *made = NULL;
    char *at = strstr(text, what);

    CHECK(at != NULL);
    if (!at || asprintf(&made, "%.*s%s%s", (int)(at - text), text, with, at + strlen(what)) < 0)
        return;
    write_whole(advise, file, made);
}

/* Line n, from 1; 0: the last. */
static void leave_out(const struct advise *advise, unsigned n)
{
    AUTO_FREE char *text = read_whole(advise, "events.jsonl");
    char *line = text;
    char *end;

    for (unsigned i = 1; (end = strchr(line, '\n')) && end[1] && i != n; i++)
        line = end + 1;
    memmove(line, end + 1, strlen(end + 1) + 1);
    write_whole(advise, "events.jsonl", text);
}

static void spoil(const struct advise *advise, const char *how)
{
    struct err err;

    if (strcmp(how, "changed") == 0)
        replace(advise, "events.jsonl", "\"compliance\":100", "\"compliance\":99");
    if (strcmp(how, "requester") == 0)
        replace(advise, "session.json", "uid:4711", "uid:4712");
    if (strcmp(how, "gap") == 0)
        leave_out(advise, 3);
    if (strcmp(how, "tail") == 0)
        leave_out(advise, 0);
    if (strcmp(how, "gone") == 0)
        CHECK_INT(dir_remove(AT_FDCWD, advise->dir, &err), 0);
}

/* What the ledger would say: it has counted them when the session ended. */
static const char *fault_of(struct arena *mem, const char *id, uint64_t counted, bool has_end,
                            struct advise_tally *out)
{
    AUTO(advise) struct advise *again = NULL;
    struct err err;

    if (advise_open(state_dir, id, &again, &err) < 0)
        return arena_text(mem, str_of(err.text));
    *out = again->tally;
    if (!has_end)
        return "it has no end in the ledger";
    return again->tally.events == counted
               ? NULL
               : arena_printf(mem, "the ledger counted %d events, there are %d", (int)counted,
                              (int)again->tally.events);
}

static struct gate_run run_of(struct arena *mem, const struct json *item)
{
    const char *then = member(mem, item, "then", "");
    const struct advise_terms terms = {
        .agent_id = "agent",
        .agent_version = member(mem, item, "version", "1"),
        .requester = "uid:4711",
        .channel = "api",
        .constitution = str_of(member(mem, item, "constitution", "be good")),
    };
    bool has_end = strcmp(then, "open") != 0;
    AUTO(advise) struct advise *advise = NULL;
    struct gate_run run = {0};
    struct err err;

    if (advise_start(state_dir, &terms, &advise, &err) < 0) {
        test_fail(__FILE__, __LINE__, "%s", err.text);
        return run;
    }
    json_each(said, json_get(item, "said")) hear(advise, mem, arena_text(mem, said->text));
    if (has_end)
        CHECK_INT(advise_end(advise, "end", &err), 0);
    run = (struct gate_run){.id = arena_text(mem, str_of(advise->id)),
                            .agent_version = terms.agent_version,
                            .constitution_sha256 =
                                arena_text(mem, str_of(advise->constitution_sha256)),
                            .requester = terms.requester,
                            .channel = terms.channel,
                            .profile = "default"};
    spoil(advise, then);
    run.fault = fault_of(mem, run.id, advise->tally.events, has_end, &run.tally);
    return run;
}

/* ---- one case ---- */

static bool is_listed(const struct json *list, const char *name)
{
    bool found = false;

    json_each(one, list) found |= str_is(one->text, name);
    return found;
}

static bool is_evidence(const struct gate_report *report, const char *wanted)
{
    bool found = *wanted == '\0';

    json_each(condition, json_get(report->json, "conditions"))
        json_each(line, json_get(condition, "evidence")) found |=
        memmem(line->text.p, line->text.n, wanted, strlen(wanted)) != NULL;
    return found;
}

static void check_case(const struct json *item)
{
    AUTO_ARENA struct arena mem = ARENA(MEMORY);
    const char *name = member(&mem, item, "name", "");
    const struct json *behind = json_get(item, "behind");
    struct gate_run runs[8];
    struct gate_report report;
    size_t n = 0, in_window;
    int64_t wanted = 0;
    const char *why;
    struct err err;

    json_each(one, json_get(item, "runs")) runs[n++] = run_of(&mem, one);
    in_window = n;
    if (behind)
        json_each(one, behind) runs[n++] = run_of(&mem, one);
    CHECK(json_is_int(json_get(item, "n"), &wanted));
    CHECK_INT(gate_evaluate(&mem, "agent", member(&mem, item, "version", "1"), (unsigned)wanted,
                            runs, in_window, &report, &err),
              0);
    for (int i = 0; i < GATE_CONDITION_COUNT; i++) {
        const char *condition = gate_condition_name((enum gate_condition)i);

        if (report.passed[i] == is_listed(json_get(item, "failed"), condition))
            test_fail(__FILE__, __LINE__, "%s: %s is %s", name, condition,
                      report.passed[i] ? "met" : "not met");
    }
    CHECK_INT(report.all_passed, json_get(item, "failed")->n == 0);
    if (!is_evidence(&report, member(&mem, item, "evidence", "")))
        test_fail(__FILE__, __LINE__, "%s: no evidence \"%s\"", name,
                  member(&mem, item, "evidence", ""));
    if (!behind)
        return;
    why = gate_voided(&mem, &report, runs, n);
    if (!why != !*member(&mem, item, "voided", "") ||
        (why && !strstr(why, member(&mem, item, "voided", ""))))
        test_fail(__FILE__, __LINE__, "%s: voided: %s", name, why ? why : "not");
}

TEST(gate_by_vectors)
{
    AUTO_ARENA struct arena mem = ARENA(MEMORY);
    const struct json *cases = read_cases(&mem);

    CHECK(mkdtemp(state_dir) != NULL);
    CHECK(cases->n >= 30);
    json_each(item, cases) check_case(item);
}

/* The hash is over everything that is in the report, and there is no date in it. */
TEST(the_same_runs_are_the_same_report)
{
    AUTO_ARENA struct arena mem = ARENA(MEMORY);
    struct gate_run run = {
        .id = "aaaaaaaaaaaaaaaaaaaa",
        .agent_version = "1",
        .constitution_sha256 = "sha256:0",
        .channel = "box",
        .profile = "default",
        .started_at = 7,
        .tally = {.turns = 1, .answered = 1, .has_constitution = true, .is_box_gone = true}
    };
    struct gate_report first, second;
    struct err err;

    CHECK_INT(gate_evaluate(&mem, "agent", "1", 1, &run, 1, &first, &err), 0);
    CHECK(first.all_passed);
    CHECK_INT(gate_evaluate(&mem, "agent", "1", 1, &run, 1, &second, &err), 0);
    CHECK_TEXT(first.sha256, second.sha256);
    run.profile = "strict-seed"; /* who signs knows by which rules it was judged */
    CHECK_INT(gate_evaluate(&mem, "agent", "1", 1, &run, 1, &second, &err), 0);
    CHECK(strcmp(first.sha256, second.sha256) != 0);
}

/* How a run ended, and whether what happened in its box is known to the last, decides whether it is
 * one of those the gate asks for; and only what is not known voids what stands. */
TEST(what_ended_a_run_decides_whether_it_counts)
{
    static const struct {
        const char *channel;
        const char *ended_by;
        uint64_t turns;
        bool is_box_gone;
        int passed; /* of the five conditions */
        const char *why;
        bool voids;
    } cases[] = {
        {"box", "end",                   1, true,  5, "",                    false},
        {"box", "turn budget",           1, true,  5, "",                    false},
        {"box", "deadline",              1, true,  5, "",                    false},
        {"box", "idle",                  1, true,  5, "",                    false},
        {"box", "the agent ended",       1, true,  5, "",                    false},
        {"box", "its telemetry is full", 1, true,  5, "",                    false},
        {"box", "ended from outside",    1, true,  5, "",                    false}, /* all was told */
        {"box", "interrupted",           1, true,  0, "it was interrupted",  false},
        {"box", "failed",                1, true,  0, "could not go on",     false},
        {"box", "end",                   0, true,  4, "it answered nothing", false},
        {"box", "interrupted",           0, true,  0, "it was interrupted",  false},
        {"box", "end",                   1, false, 0, "was killed",          true },
        {"box", "deadline",              1, false, 0, "was killed",          true },
        {"box", "ended from outside",    1, false, 0, "was killed",          true },
        {"box", "ended from outside",    0, false, 0, "was killed",          true },
        {"api", "end",                   1, false, 5, "",                    false},
        {"api", "idle",                  1, false, 5, "",                    false},
        {"api", "ended from outside",    1, false, 5, "",                    false},
        {"api", "end",                   0, false, 4, "it answered nothing", false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(MEMORY);
        struct gate_run runs[2] = {
            {.id = "aaaaaaaaaaaaaaaaaaaa",
             .agent_version = "1",
             .constitution_sha256 = "sha256:0",
             .channel = "box",
             .tally = {.turns = 1, .answered = 1, .has_constitution = true, .is_box_gone = true}},
        };
        struct gate_report report;
        const char *why;
        struct err err;
        int passed = 0;

        runs[1] = runs[0];
        runs[1].id = "bbbbbbbbbbbbbbbbbbbb";
        runs[1].channel = cases[i].channel;
        runs[1].tally.turns = runs[1].tally.answered = cases[i].turns;
        runs[1].tally.is_box_gone = cases[i].is_box_gone;
        (void)snprintf(runs[1].tally.ended_by, sizeof runs[1].tally.ended_by, "%s",
                       cases[i].ended_by);
        CHECK_INT(gate_evaluate(&mem, "agent", "1", 1, runs, 2, &report, &err), 0);
        for (int c = 0; c < GATE_CONDITION_COUNT; c++)
            passed += report.passed[c];
        if (passed != cases[i].passed || !is_evidence(&report, cases[i].why))
            test_fail(__FILE__, __LINE__, "case %zu (%s): %d met", i, cases[i].ended_by, passed);
        CHECK_INT(gate_evaluate(&mem, "agent", "1", 1, runs, 1, &report, &err), 0);
        CHECK(report.all_passed);
        why = gate_voided(&mem, &report, runs, 2);
        if (cases[i].voids != (why != NULL))
            test_fail(__FILE__, __LINE__, "case %zu (%s): voided: %s", i, cases[i].ended_by,
                      why ? why : "not");
    }
}
