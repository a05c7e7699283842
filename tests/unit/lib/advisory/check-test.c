/* SPDX-License-Identifier: Apache-2.0 */

/* The cases of tests/vectors/advisory, and what they cannot say. */

#include "test.h"

#include "lib/advisory/advisory.h"
#include "lib/base/attrs.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct json *read_cases(struct arena *mem, const char *name)
{
    AUTO_BUF struct buf text = BUF(4 * MIB);
    char path[PATH_BYTES_MAX];
    const struct json *root = NULL;
    struct mark where = {0, 0};
    struct err err;

    (void)snprintf(path, sizeof path, "%s/%s", VECTORS, name);
    if (file_read(AT_FDCWD, path, &text, &err) < 0 ||
        json_parse(mem, arena_str(mem, buf_str(&text)), &root, &where, &err) < 0) {
        test_fail(__FILE__, __LINE__, "%s:%u: %s", path, where.line, err.text);
        return json_array(mem);
    }
    return root;
}

static struct str member(const struct json *item, const char *key)
{
    struct str text = STR_LIT("");

    (void)json_is_text(json_get(item, key), &text);
    return text;
}

/* "a b": the categories that were found, in the order of the table. */
static const char *found_categories(struct arena *mem, const struct advisory_result *result)
{
    const char *list = "";

    for (enum advisory_category c = 0; c < ADVISORY_CATEGORY_COUNT; c++)
        if (result->counts[c])
            list = arena_printf(mem, "%s%s%s", list, *list ? " " : "", advisory_category_name(c));
    return list;
}

static const char *wanted_categories(struct arena *mem, const struct json *item)
{
    const struct json *list = json_get(item, "category");
    const char *text = "";

    if (list)
        json_each(name, list) text =
            arena_printf(mem, "%s%s" STR_FMT, text, *text ? " " : "", STR_ARG(name->text));
    return text;
}

static void check_text(const char *what, struct str value, struct str got, struct str wanted)
{
    if (!str_eq(got, wanted))
        test_fail(__FILE__, __LINE__, STR_FMT ": %s is \"" STR_FMT "\", not \"" STR_FMT "\"",
                  STR_ARG(value), what, STR_ARG(got), STR_ARG(wanted));
}

static void check_number(const char *what, struct str value, const struct json *wanted, int64_t got)
{
    int64_t number;

    if (wanted && json_is_int(wanted, &number) && number != got)
        test_fail(__FILE__, __LINE__, STR_FMT ": %s is %lld, not %lld", STR_ARG(value), what,
                  (long long)got, (long long)number);
}

static void check_case(enum advisory_kind kind, const struct json *item)
{
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    struct str value = member(item, "value"), access = member(item, "access");
    struct advisory_options options = {
        .cwd = member(item, "cwd"),
        .strict_seed = str_is(member(item, "profile"), "strict-seed"),
    };
    const struct json *span = json_get(item, "span");
    struct advisory_result result;
    struct err err;

    if (access.n)
        CHECK(advisory_access_read(access, &options.access));
    CHECK_INT(advisory_check(&mem, kind, value, &options, &result, &err), 0);
    check_text("verdict", value, str_of(advisory_verdict_name(result.verdict)),
               member(item, "verdict"));
    check_text("rule", value, str_of(result.rule), member(item, "rule"));
    check_text("category", value, str_of(found_categories(&mem, &result)),
               str_of(wanted_categories(&mem, item)));
    if (json_get(item, "normalized"))
        check_text("normalized", value, result.normalized, member(item, "normalized"));
    if (json_get(item, "client_view"))
        check_text("client_view", value, result.client_view, member(item, "client_view"));
    if (json_get(item, "advisory_text"))
        check_text("advisory_text", value, result.advisory_text, member(item, "advisory_text"));
    if (json_get(item, "drift"))
        check_text("drift", value, str_of(advisory_drift_code(result.drift)),
                   member(item, "drift"));
    check_number("exit", value, json_get(item, "exit"), advisory_exit(&result));
    check_number("line", value, json_get(item, "line"), result.where.line);
    check_number("column", value, json_get(item, "column"), result.where.column);
    check_number("byte", value, json_get(item, "byte"), (int64_t)result.offset);
    check_number("compliance", value, json_get(item, "compliance"), result.compliance);
    if (span) {
        check_number("span.start", value, span->first, (int64_t)result.span.start);
        check_number("span.end", value, span->last, (int64_t)result.span.end);
    }
    CHECK(result.span.start <= result.span.end && result.span.end <= value.n);
}

static void check_file(enum advisory_kind kind, const char *name, size_t at_least)
{
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    const struct json *cases = read_cases(&mem, name);

    CHECK(cases->n >= at_least);
    json_each(item, cases) check_case(kind, item);
}

TEST(paths_by_vectors)
{
    check_file(ADVISORY_PATH, "paths.json", 90);
}

TEST(actions_by_vectors)
{
    check_file(ADVISORY_ACTION, "actions.json", 35);
}

TEST(a_bad_path_gets_the_sentence_and_nothing_else)
{
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    struct advisory_options options = {.strict_seed = false};
    struct advisory_result result;
    struct err err;

    CHECK_INT(advisory_check(&mem, ADVISORY_PATH, STR_LIT("../x"), &options, &result, &err), 0);
    CHECK_TEXT(result.advisory_text.p, "REJECT: Path exceeds sandbox boundary.");
    CHECK_INT(result.normalized.n, 0);
    CHECK_INT(advisory_exit(&result), 11);
}

TEST(a_value_past_its_ceiling_is_an_error)
{
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    struct advisory_options options = {.strict_seed = false};
    struct advisory_result result;
    struct str much = {arena_alloc(&mem, ADVISORY_VALUE_MAX + 1), ADVISORY_VALUE_MAX + 1};
    struct err err;

    CHECK_INT(advisory_check(&mem, ADVISORY_ACTION, much, &options, &result, &err), -1);
    CHECK_INT(err.code, ERR_LIMIT);
}

TEST(a_digest_changes_with_everything_it_binds)
{
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    struct advisory_action action = {.type = ACTION_TYPE_FILESYSTEM,
                                     .operation = ACTION_OP_CREATE,
                                     .target = STR_LIT("output/a"),
                                     .content = STR_LIT("x")};
    struct advisory_target target = {
        .exists = true, .inode = 7, .size_bytes = 1, .sha256 = "sha256:0"};
    struct advisory_binding binding = {"q1", "r1", "a1", 100, 400, "0"};
    char first[HASH_TEXT_BYTES], other[HASH_TEXT_BYTES];
    struct err err;

    CHECK_INT(advisory_action_digest(&mem, &action, &target, &binding, first, &err), 0);
    CHECK_INT(advisory_action_digest(&mem, &action, &target, &binding, other, &err), 0);
    CHECK_TEXT(other, first);
#define CHANGES(place, value)                                                                      \
    do {                                                                                           \
        __typeof__(place) before = (place);                                                        \
        (place) = (value);                                                                         \
        CHECK_INT(advisory_action_digest(&mem, &action, &target, &binding, other, &err), 0);       \
        CHECK(strcmp(first, other) != 0);                                                          \
        (place) = before;                                                                          \
    } while (0)
    CHANGES(action.target, STR_LIT("output/b"));
    CHANGES(action.content, STR_LIT("y"));
    CHANGES(action.operation, ACTION_OP_MODIFY);
    CHANGES(target.exists, false);
    CHANGES(target.inode, 8U);
    CHANGES(target.size_bytes, 2U);
    CHANGES(binding.request_id, "q2");
    CHANGES(binding.run_id, "r2");
    CHANGES(binding.agent_id, "a2");
    CHANGES(binding.created_at, 101);
    CHANGES(binding.expires_at, 401);
    CHANGES(binding.drift, "C");
}

TEST(commands_by_vectors)
{
    check_file(ADVISORY_COMMAND, "commands.json", 190);
}

TEST(a_banned_command_gets_the_sentence_and_what_it_would_do)
{
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    struct advisory_options options = {.strict_seed = false};
    struct advisory_result result;
    struct err err;

    CHECK_INT(
        advisory_check(&mem, ADVISORY_COMMAND, STR_LIT("rm -rf build"), &options, &result, &err),
        0);
    CHECK_TEXT(result.advisory_text.p,
               "This action exceeds my custodial authority. Here is a safe advisory version "
               "instead\xe2\x80\xa6 It would delete files or directories.");
    CHECK_INT(advisory_exit(&result), 10);
}

TEST(outputs_by_vectors)
{
    check_file(ADVISORY_OUTPUT, "outputs.json", 75);
}

/* ---- much, and hostile ---- */

static struct str repeat(struct arena *mem, const char *head, const char *piece, const char *tail,
                         size_t n)
{
    size_t head_n = strlen(head), piece_n = strlen(piece), tail_n = strlen(tail);
    char *text = arena_alloc(mem, n + 1);
    size_t at = head_n;

    memcpy(text, head, head_n);
    while (at + piece_n + tail_n <= n) {
        memcpy(text + at, piece, piece_n);
        at += piece_n;
    }
    memcpy(text + at, tail, tail_n);
    return (struct str){text, at + tail_n};
}

#define IN_VIEW                                                                                    \
    "{\"epistemic\":{\"facts\":[],\"hypotheses\":[],\"assumptions\":[]},\"advisory\":{},"          \
    "\"sandbox\":{\"actions_permitted\":false,\"reason\":\"x\"},\"client_view\":\""
#define IN_ADVICE                                                                                  \
    "{\"epistemic\":{\"facts\":[],\"hypotheses\":[],\"assumptions\":[]},"                          \
    "\"sandbox\":{\"actions_permitted\":false,\"reason\":\"x\"},\"client_view\":\"x\",\"advisory\":{"

static const struct {
    enum advisory_kind kind;
    const char *head, *piece, *tail;
} hostile[] = {
    {ADVISORY_OUTPUT,  IN_VIEW,                        "I will ",          "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "rm -rf /a ",       "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "`rm x` ",          "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "`",                "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "```",              "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "```\\n$ a\\n",     "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "/a ",              "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "../",              "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "%2e",              "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "i ",               "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "i         ",       "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "rm git ",          "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "[FACT]",           "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "[FACT] a. ",       "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "HUMAN_CONFIRMED",  "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "\\u001b]",         "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "\\n",              "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "ghp_",             "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "a",                "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "run rm x ",        "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "rm x\\n",          "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        ";rm",              "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "- - rm ",          "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "a=",               "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "=/sandbox/tmp",    "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "a:",               "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "\xc3\xa9/",        "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "$a",               "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "%ab",              "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "a@b ",             "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "actions ",         "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "password:a ",      "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "token=",           "\"}"},
    {ADVISORY_OUTPUT,  IN_VIEW,                        "://a:",            "\"}"},
    {ADVISORY_OUTPUT,  "",                             "\n",               ""   },
    {ADVISORY_OUTPUT,  "",                             "[",                ""   },
    {ADVISORY_OUTPUT,  "",                             "`a b`",            ""   },
    {ADVISORY_OUTPUT,  IN_ADVICE "\"command\":[\"a\"", ",\"rm x\"",        "]}}"},
    {ADVISORY_OUTPUT,  IN_ADVICE "\"a\":[1",           ",1",               "]}}"},
    {ADVISORY_ACTION,  "{\"content\":\"",              "a",                "\"}"},
    {ADVISORY_ACTION,  "ACTION REQUEST:",              "\n",               ""   },
    {ADVISORY_ACTION,  "",                             "HUMAN_CONFIRMED:", ""   },
    {ADVISORY_PATH,    "",                             "%25",              "2e" },
    {ADVISORY_PATH,    "",                             "../",              ""   },
    {ADVISORY_PATH,    "",                             "%a",               ""   },
    {ADVISORY_COMMAND, "",                             "a;",               ""   },
    {ADVISORY_COMMAND, "",                             "$(",               ""   },
};

TEST(a_mebibyte_of_anything_has_a_verdict)
{
    for (size_t i = 0; i < COUNT(hostile); i++) {
        AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
        struct advisory_options options = {.strict_seed = false};
        struct advisory_result result;
        struct str value =
            repeat(&mem, hostile[i].head, hostile[i].piece, hostile[i].tail, ADVISORY_VALUE_MAX);
        struct err err;

        CHECK_INT(advisory_check(&mem, hostile[i].kind, value, &options, &result, &err), 0);
        CHECK(result.finding_n <= ADVISORY_FINDINGS_MAX);
        for (size_t k = 0; k < result.finding_n; k++) {
            CHECK(result.findings[k].excerpt.n <= ADVISORY_EXCERPT_MAX);
            CHECK(result.findings[k].span.end <= value.n);
        }
    }
}

TEST(excerpts_cover_what_looks_like_a_secret)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    struct str text =
        STR_LIT("curl -H 'Authorization: Bearer abcdefghijklmnopqrstuvwxyz0123456789' h");
    struct str excerpt = advisory_excerpt(&mem, text, 0, text.n);

    CHECK(memmem(excerpt.p, excerpt.n, "abcdefghijklmnop", 16) == NULL);
    CHECK(memmem(excerpt.p, excerpt.n, "curl -H", 7) != NULL);
}
