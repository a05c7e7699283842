/* SPDX-License-Identifier: Apache-2.0 */
/* What ships and what is written about it: every policy in policies/ passes the table next to it,
 * and every example of the reference does what the reference says. */
#include "vectors.h"

#include <glob.h>

TEST(shipped_policies_pass_the_tables_next_to_them)
{
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    glob_t found = {0};

    CHECK_INT(glob(SOURCE_ROOT "/policies/*.yaml", 0, NULL, &found), 0);
    CHECK(found.gl_pathc >= 8);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *file = found.gl_pathv[i];
        const char *table = arena_printf(&mem, "%.*s.test.yaml", (int)strlen(file) - 5, file);
        AUTO(policy) struct policy *policy = NULL;
        struct err err;

        if (str_ends(str_of(file), ".test.yaml"))
            continue;
        if (policy_open(file, &policy, &err) < 0) {
            test_fail(file, 0, "%s", err.text);
            continue;
        }
        CHECK(policy_not_enforceable(policy) == NULL);
        json_each(one, vector_tree(&mem, table)) vector_decide(&mem, policy, one, table);
    }
    globfree(&found);
}

/* ---- docs/policy.md ---- */

/* A block is followed by nothing (it loads) or by a line `<!-- refused: TEXT -->` or
 * `<!-- not enforceable: TEXT -->` or by a block of cases, ```yaml cases. */
struct example {
    struct str text;
    struct str note;
    unsigned line;
    bool is_cases;
};

static bool next_example(struct str *rest, unsigned *line, struct example *out)
{
    *out = (struct example){0};
    while (rest->n) {
        struct str at = str_cut(rest, '\n');

        (*line)++;
        if (!out->text.p && (str_is(at, "```yaml") || str_is(at, "```yaml cases"))) {
            out->text = (struct str){rest->p, 0};
            out->is_cases = str_is(at, "```yaml cases");
            out->line = *line;
        } else if (out->text.p && str_is(at, "```")) {
            struct str peek = *rest;

            out->text.n = (size_t)(at.p - out->text.p);
            at = str_cut(&peek, '\n');
            if (str_starts(at, "<!-- "))
                out->note = (struct str){at.p + 5, at.n - 5 - 4};
            return true;
        }
    }
    return false;
}

static void check_note(struct arena *mem, const struct example *example,
                       const struct policy *policy, const char *error, const char *file)
{
    const char *note = arena_text(mem, example->note);

    if (strncmp(note, "refused: ", 9) == 0)
        test_check_text(file, (int)example->line, "error", error, note + 9);
    else if (!policy)
        test_fail(file, (int)example->line, "%s", error);
    else if (strncmp(note, "not enforceable: ", 17) == 0)
        test_check_text(file, (int)example->line, "not enforceable", policy_not_enforceable(policy),
                        note + 17);
    else
        test_check_text(file, (int)example->line, "not enforceable", policy_not_enforceable(policy),
                        NULL);
}

TEST(examples_of_the_reference_do_what_it_says)
{
    static const char file[] = SOURCE_ROOT "/docs/policy.md";
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    AUTO(policy) struct policy *policy = NULL;
    struct str rest = vector_text(&mem, file);
    struct example example;
    unsigned line = 0, count = 0;

    while (next_example(&rest, &line, &example)) {
        const struct json *cases = NULL;
        struct mark where;
        struct err err = {0};

        count++;
        if (!example.is_cases) {
            policy_free(TAKE(policy));
            if (policy_parse(example.text, &policy, &where, &err) == 0)
                err.text[0] = '\0';
            check_note(&mem, &example, policy, err.text, file);
            continue;
        }
        CHECK(policy != NULL);
        CHECK_INT(yaml_parse(&mem, example.text, &cases, &where, &err), 0);
        if (policy && cases)
            json_each(one, cases) vector_decide(&mem, policy, one, file);
    }
    CHECK(count >= 10);
}
