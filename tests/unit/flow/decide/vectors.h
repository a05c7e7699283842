/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Cases as data, for the tests of this folder. Everything stays in one arena per test. */

#include "flow/decide/decide.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "model/run.h"
#include "test.h"

#include <fcntl.h>

static inline struct str vector_text(struct arena *mem, const char *path)
{
    AUTO_BUF struct buf text = BUF(MIB);
    struct err err;

    if (file_read(AT_FDCWD, path, &text, &err) < 0) {
        test_fail(__FILE__, __LINE__, "%s", err.text);
        return (struct str){"", 0};
    }
    return arena_str(mem, buf_str(&text));
}

static inline const struct json *vector_tree(struct arena *mem, const char *path)
{
    const struct json *root = NULL;
    struct mark where = {0, 0};
    struct err err;

    if (yaml_parse(mem, vector_text(mem, path), &root, &where, &err) < 0) {
        test_fail(__FILE__, __LINE__, "%s:%u:%u: %s", path, where.line, where.column, err.text);
        return json_array(mem);
    }
    return root;
}

static inline struct words vector_words(struct arena *mem, const struct json *list)
{
    const char **v = arena_array(mem, const char *, (list ? list->n : 0) + 1);
    size_t n = 0;

    if (list)
        json_each(item, list) v[n++] = arena_text(mem, item->text);
    return (struct words){v, n};
}

/* The text of a member, or NULL. */
static inline const char *vector_get(struct arena *mem, const struct json *object, const char *key)
{
    const struct json *value = json_get(object, key);

    return value ? arena_text(mem, value->text) : NULL;
}

/* Who asks, from where, when, and at what cost: {principal, tenant, provider, tool, workdir, image,
 * says, at, cost}. */
static inline void vector_request(const struct json *one, struct run *run)
{
    struct action *action = &run->action;

    action->argv = vector_words(&run->mem, json_get(one, "run"));
    action->env = vector_words(&run->mem, json_get(one, "env"));
    action->principal = vector_get(&run->mem, one, "principal");
    action->tenant = vector_get(&run->mem, one, "tenant");
    action->provider = vector_get(&run->mem, one, "provider");
    action->workdir = vector_get(&run->mem, one, "workdir");
    action->image = vector_get(&run->mem, one, "image");
    /* In a project, unless the case says on what or where it runs. */
    if (!action->workdir && !action->image)
        action->workdir = WORKSPACE_TARGET;
    action->tool = vector_get(&run->mem, one, "tool");
    action->effect = vector_get(&run->mem, one, "says");
    if (action->tool)
        action->kind = ACTION_TOOL;
    (void)json_is_int(json_get(one, "at"), &run->decided_at);
    if (json_get(one, "cost")) {
        uint64_t *cost = arena_new(&run->mem, uint64_t);

        CHECK(cost_parse(json_get(one, "cost")->text, cost));
        run->cost_source = (struct cost_source){cost_as_said, cost};
    }
}

static inline void vector_effect(struct arena *mem, const struct json *one, const struct run *run,
                                 const char *file)
{
    const char *effect = vector_get(mem, one, "effect");
    const char *risk = vector_get(mem, one, "risk");

    if (effect)
        test_check_text(file, (int)one->mark.line, "effect", run->effect.id, effect);
    if (risk)
        test_check_text(file, (int)one->mark.line, "risk",
                        arena_printf(mem, "E%u", run->effect.risk), risk);
}

/* One case {run, env, expect, rule, line, reason, text, effect, risk, group} and the request's
 * members above, under a policy. */
static inline void vector_decide(struct arena *mem, const struct policy *policy,
                                 const struct json *one, const char *file)
{
    static const char *const words[] = {"deny", "ask", "allow"};
    const char *expect = vector_get(mem, one, "expect");
    const char *rule = vector_get(mem, one, "rule");
    const char *reason = vector_get(mem, one, "reason");
    const char *text = vector_get(mem, one, "text");
    const struct json *line = json_get(one, "line");
    int64_t wanted_line = 0;
    struct run run;
    struct err err;

    run_init(&run);
    vector_request(one, &run);
    if (decide_run(policy, &run, &err) < 0)
        test_fail(file, (int)one->mark.line, "%s", err.text);
    if (!expect || strcmp(words[run.verdict.kind], expect) != 0)
        test_fail(file, (int)one->mark.line, "verdict %s by %s, should be %s",
                  words[run.verdict.kind], run.verdict.rule ? run.verdict.rule : "nothing",
                  expect ? expect : "said");
    if (rule)
        test_check_text(file, (int)one->mark.line, "rule", run.verdict.rule, rule);
    if (reason)
        test_check_text(file, (int)one->mark.line, "reason", reason_code(run.verdict.reason),
                        reason);
    if (text)
        test_check_text(file, (int)one->mark.line, "text", run.verdict.text, text);
    if (line && json_is_int(line, &wanted_line))
        test_check_int(file, (int)one->mark.line, "line", run.verdict.line, wanted_line);
    if (json_get(one, "group"))
        test_check_text(file, (int)one->mark.line, "group",
                        run.verdict.terms ? run.verdict.terms->group : "nobody",
                        vector_get(mem, one, "group"));
    vector_effect(mem, one, &run, file);
    CHECK_TEXT(run.policy_hash, policy_hash(policy));
    run_done(&run);
}
