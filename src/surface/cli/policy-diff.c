/* SPDX-License-Identifier: Apache-2.0 */

/* brig policy diff: what changes from one policy to another.
 *
 * What is written differently is told exactly, section by section. What that does to commands is
 * found by asking both about commands that are made of the rules of both; those are samples, and
 * unless the command sections are the same it is said so. */

#include "surface/cli/commands.h"

#include <string.h>

#include "flow/decide/decide.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "model/run.h"
#include "surface/cli/sandbox.h"

#define CHANGES_MAX 500 /* kinds of change that are told */
#define VALUE_SHOWN_MAX 200

struct side {
    struct policy *policy;
    size_t layer_n;
    const struct json *layers[1 + POLICY_OVERLAYS_MAX]; /* the policy and its overlays */
};

/* Commands whose verdict changes in the same way: one of them, and how many were tried. */
struct change {
    struct verdict before, after;
    struct words command;
    size_t n;
};

struct diff {
    struct invocation *inv;
    struct side a, b;
    struct json *sections;
    struct change *changes;
    size_t change_n;
    size_t section_n;
    bool is_complete;
};

/* ---- reading ---- */

static int add_layer(struct invocation *inv, struct str text, struct side *out, struct err *err)
{
    struct mark where;

    return yaml_parse(&inv->mem, text, &out->layers[out->layer_n++], &where, err);
}

static int open_side(struct invocation *inv, const char *path, struct side *out, struct err *err)
{
    AUTO_POLICY_PROBLEM struct policy_problem problem = {0};
    struct policy_texts texts;
    struct str text;

    if (policy_open_showing(path, &out->policy, &problem, err) < 0) {
        cli_show_place(inv, problem.mark, buf_str(&problem.text));
        return -1;
    }
    text = arena_str(&inv->mem, buf_str(&problem.text));
    if (policy_texts(&inv->mem, text, &texts, err) < 0 ||
        add_layer(inv, texts.policy, out, err) < 0)
        return err_in(err, "%s", path);
    for (size_t i = 0; i < texts.overlay_n; i++)
        if (add_layer(inv, texts.overlays[i], out, err) < 0)
            return err_in(err, "%s", path);
    return 0;
}

/* ---- sections ---- */

static const char *canonical(struct invocation *inv, const struct json *value)
{
    AUTO_BUF struct buf text = BUF(8 * POLICY_TEXT_MAX);
    struct err err;

    if (!value)
        return NULL;
    return json_canonical(value, &text, &err) == 0 ? arena_text(&inv->mem, buf_str(&text)) : "?";
}

static bool is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void print_value(struct invocation *inv, const char *value)
{
    struct str text = str_of(value ? value : "nothing");

    print_escaped(inv->out,
                  text.n > VALUE_SHOWN_MAX ? (struct str){text.p, VALUE_SHOWN_MAX} : text);
    if (text.n > VALUE_SHOWN_MAX)
        (void)fputs("...", inv->out);
}

static void tell(struct diff *diff, const char *section, const char *member, const char *before,
                 const char *after)
{
    struct invocation *inv = diff->inv;
    struct json *entry = json_object(&inv->mem);

    diff->section_n++;
    json_put_bytes(&inv->mem, entry, "section", str_of(section));
    if (member)
        json_put_bytes(&inv->mem, entry, "member", str_of(member));
    if (before)
        json_put_bytes(&inv->mem, entry, "before", str_of(before));
    if (after)
        json_put_bytes(&inv->mem, entry, "after", str_of(after));
    json_push(diff->sections, entry);
    if (inv->json)
        return;
    print_escaped(inv->out, str_of(section));
    if (member) {
        (void)fputc('.', inv->out);
        print_escaped(inv->out, str_of(member));
    }
    (void)fputs(": ", inv->out);
    print_value(inv, before);
    (void)fputs(" -> ", inv->out);
    print_value(inv, after);
    (void)fputc('\n', inv->out);
}

/* Members of one that the other has not, or has otherwise. */
static void compare_members(struct diff *diff, const char *section, const struct json *a,
                            const struct json *b)
{
    struct arena *mem = &diff->inv->mem;

    json_each(member, a)
    {
        const char *key = arena_text(mem, member->key);
        const char *before = canonical(diff->inv, member);
        const char *after = canonical(diff->inv, json_get(b, key));

        if (!is_same(before, after))
            tell(diff, section, key, before, after);
    }
    json_each(member, b)
    {
        const char *key = arena_text(mem, member->key);

        if (!json_get(a, key))
            tell(diff, section, key, NULL, canonical(diff->inv, member));
    }
}

static bool has_item(struct diff *diff, const struct json *list, const char *item)
{
    if (list)
        json_each(one, list)
        {
            if (strcmp(canonical(diff->inv, one), item) == 0)
                return true;
        }
    return false;
}

/* Rules that only one of them has, wherever they stand. */
static void compare_rules(struct diff *diff, const char *section, const struct json *a,
                          const struct json *b)
{
    if (a)
        json_each(rule, a)
        {
            const char *text = canonical(diff->inv, rule);

            if (!has_item(diff, b, text))
                tell(diff, section, NULL, text, NULL);
        }
    if (b)
        json_each(rule, b)
        {
            const char *text = canonical(diff->inv, rule);

            if (!has_item(diff, a, text))
                tell(diff, section, NULL, NULL, text);
        }
}

/* The same rules in another order, or oftener: of those that say the same the first is named, with
 * its reason and whose word it needs. */
static void compare_places(struct diff *diff, const char *section, const struct json *a,
                           const struct json *b)
{
    const struct json *left = a->first, *right = b->first;

    for (size_t i = 0; left || right; i++) {
        const char *before = canonical(diff->inv, left), *after = canonical(diff->inv, right);

        if (!is_same(before, after))
            tell(diff, section, arena_printf(&diff->inv->mem, "%zu", i), before, after);
        left = left ? left->next : NULL;
        right = right ? right->next : NULL;
    }
}

static bool holds_rules(const char *key)
{
    return strcmp(key, "commands") == 0 || strcmp(key, "paths") == 0;
}

static void compare_section(struct diff *diff, const char *name, const char *key,
                            const struct json *a, const struct json *b)
{
    const char *before = canonical(diff->inv, a), *after = canonical(diff->inv, b);
    bool are_maps = a && b && a->kind == JSON_OBJECT && b->kind == JSON_OBJECT;
    size_t told = diff->section_n;

    if (is_same(before, after))
        return;
    if (holds_rules(key))
        compare_rules(diff, name, a, b);
    else if (are_maps)
        compare_members(diff, name, a, b);
    if (diff->section_n != told)
        return;
    if (holds_rules(key) && a && b)
        compare_places(diff, name, a, b);
    else /* also a list without rules, which is not the same as none */
        tell(diff, name, NULL, before, after);
}

/* The policy of both, or an overlay; either may be NULL. */
static void compare_layer(struct diff *diff, const char *layer, const struct json *a,
                          const struct json *b)
{
    struct arena *mem = &diff->inv->mem;

    if (!a || !b) {
        tell(diff, layer, NULL, canonical(diff->inv, a), canonical(diff->inv, b));
        return;
    }
    json_each(member, a)
    {
        const char *key = arena_text(mem, member->key);

        compare_section(diff, layer ? arena_printf(mem, "%s, %s", layer, key) : key, key, member,
                        json_get(b, key));
    }
    json_each(other, b)
    {
        const char *key = arena_text(mem, other->key);

        if (!json_get(a, key))
            compare_section(diff, layer ? arena_printf(mem, "%s, %s", layer, key) : key, key, NULL,
                            other);
    }
}

static size_t most_layers(const struct diff *diff)
{
    return diff->a.layer_n > diff->b.layer_n ? diff->a.layer_n : diff->b.layer_n;
}

static void compare_layers(struct diff *diff)
{
    for (size_t i = 0; i < most_layers(diff); i++)
        compare_layer(diff, i ? arena_printf(&diff->inv->mem, "overlay %zu", i) : NULL,
                      diff->a.layers[i], diff->b.layers[i]);
}

/* ---- whether verdicts on commands can differ ---- */

static bool has_same_rules(struct diff *diff, const struct json *a, const struct json *b)
{
    static const char *const keys[] = {"default",  "commands", "paths",
                                       "external", "mode",     "requires_release"};

    if (!a || !b)
        return false;
    for (size_t i = 0; i < COUNT(keys); i++)
        if (!is_same(canonical(diff->inv, json_get(a, keys[i])),
                     canonical(diff->inv, json_get(b, keys[i]))))
            return false;
    return true;
}

/* What else counts: a policy that cannot be held lets nothing run, and rules may go by whether
 * there is a network. */
struct grounds {
    bool is_held, has_network;
};

static struct grounds grounds_of(const struct policy *policy)
{
    static const char *const command[] = {"brig-example", NULL};
    struct grounds grounds = {0};
    struct run run;
    struct err err;

    run_init(&run);
    run.action.argv = (struct words){command, 1};
    if (decide_run(policy, &run, &err) == 0)
        grounds = (struct grounds){!run.demand.not_enforceable, run.demand.network_rules.n != 0};
    run_done(&run);
    return grounds;
}

/* Whether nothing that verdicts on commands come from differs, in any layer. */
static bool judges_alike(struct diff *diff)
{
    struct grounds a = grounds_of(diff->a.policy), b = grounds_of(diff->b.policy);

    if (a.is_held != b.is_held ||
        (a.has_network != b.has_network && policy_asks_for_network(diff->a.policy)))
        return false;
    for (size_t i = 0; i < most_layers(diff); i++)
        if (!has_same_rules(diff, diff->a.layers[i], diff->b.layers[i]))
            return false;
    return true;
}

/* ---- commands ---- */

static struct verdict keep(struct arena *mem, const struct verdict *verdict)
{
    struct verdict kept = {.kind = verdict->kind, .reason = verdict->reason, .line = verdict->line};

    kept.rule = verdict->rule ? arena_text(mem, str_of(verdict->rule)) : NULL;
    kept.layer = verdict->layer ? arena_text(mem, str_of(verdict->layer)) : NULL;
    return kept;
}

static struct verdict ask(struct diff *diff, const struct policy *policy, struct words command)
{
    struct verdict verdict = {.kind = VERDICT_DENY};
    struct run run;
    struct err err;

    run_init(&run);
    run.action.argv = command;
    run.action.principal = "uid:1000";
    run.action.tenant = "default";
    run.action.image = "host";
    run.action.workdir = WORKSPACE_TARGET;
    run.action.provider = "local";
    run.action.network = NETWORK_DEFAULT;
    if (decide_run(policy, &run, &err) == 0)
        verdict = keep(&diff->inv->mem, &run.verdict);
    run_done(&run);
    return verdict;
}

static bool is_same_verdict(const struct verdict *a, const struct verdict *b)
{
    return a->kind == b->kind && a->line == b->line && is_same(a->rule, b->rule) &&
           is_same(a->layer, b->layer);
}

static void on_sample(void *context, struct words command)
{
    struct diff *diff = context;
    struct verdict before = ask(diff, diff->a.policy, command);
    struct verdict after = ask(diff, diff->b.policy, command);
    const char **v;

    if (before.kind == after.kind)
        return;
    for (size_t i = 0; i < diff->change_n; i++)
        if (is_same_verdict(&diff->changes[i].before, &before) &&
            is_same_verdict(&diff->changes[i].after, &after)) {
            diff->changes[i].n++;
            return;
        }
    if (diff->change_n == CHANGES_MAX)
        return;
    v = arena_array(&diff->inv->mem, const char *, command.n + 1);
    for (size_t i = 0; i < command.n; i++)
        v[i] = arena_text(&diff->inv->mem, str_of(command.v[i]));
    diff->changes[diff->change_n++] = (struct change){
        before, after, {v, command.n},
          1
    };
}

static size_t compare_commands(struct diff *diff)
{
    const struct policy *layers[2 * POLICY_LAYERS_MAX];
    size_t n = policy_layers(diff->a.policy, layers);

    n += policy_layers(diff->b.policy, layers + n);
    diff->changes = arena_array(&diff->inv->mem, struct change, CHANGES_MAX);
    return policy_samples(layers, n, &diff->inv->mem, on_sample, diff);
}

/* ---- telling ---- */

static void print_verdict(struct invocation *inv, const struct verdict *verdict)
{
    (void)fprintf(inv->out, "%s", verdict_name(verdict->kind));
    if (!verdict->rule)
        return;
    (void)fputs(" by ", inv->out);
    print_escaped(inv->out, str_of(verdict->rule));
    (void)fprintf(inv->out, ", line %u%s%s", verdict->line, verdict->layer ? " of " : "",
                  verdict->layer ? verdict->layer : "");
}

static void print_change(struct invocation *inv, const struct change *change)
{
    for (size_t i = 0; i < change->command.n; i++) {
        (void)fputs(i ? " " : "command: ", inv->out);
        print_escaped(inv->out, str_of(change->command.v[i]));
    }
    (void)fputs(": ", inv->out);
    print_verdict(inv, &change->before);
    (void)fputs(" -> ", inv->out);
    print_verdict(inv, &change->after);
    if (change->n > 1)
        (void)fprintf(inv->out, " (and %zu like it)", change->n - 1);
    (void)fputc('\n', inv->out);
}

static struct json *verdict_json(struct arena *mem, const struct verdict *verdict)
{
    struct json *object = json_object(mem);

    json_put_text(mem, object, "verdict", verdict_name(verdict->kind));
    json_put_text(mem, object, "reason_code", reason_code(verdict->reason));
    if (verdict->layer)
        json_put_text(mem, object, "policy_layer", verdict->layer);
    if (verdict->rule)
        json_put_bytes(mem, object, "rule", str_of(verdict->rule));
    if (verdict->line)
        json_put_int(mem, object, "line", verdict->line);
    return object;
}

static struct json *change_json(struct arena *mem, const struct change *change)
{
    struct json *object = json_object(mem), *command = json_array(mem);

    for (size_t i = 0; i < change->command.n; i++)
        json_push(command, json_text(mem, str_of(change->command.v[i])));
    json_put(object, "command", command);
    json_put(object, "before", verdict_json(mem, &change->before));
    json_put(object, "after", verdict_json(mem, &change->after));
    json_put_int(mem, object, "samples", (int64_t)change->n);
    return object;
}

static int print_diff(struct diff *diff, size_t samples, bool is_same_policy)
{
    struct invocation *inv = diff->inv;
    struct json *answer = json_object(&inv->mem), *changed = json_array(&inv->mem);
    int printed;

    for (size_t i = 0; i < diff->change_n; i++) {
        json_push(changed, change_json(&inv->mem, &diff->changes[i]));
        if (!inv->json)
            print_change(inv, &diff->changes[i]);
    }
    if (!inv->json) {
        (void)fprintf(inv->out,
                      is_same_policy ? "no difference\n"
                      : diff->is_complete
                          ? "no verdict on a command changes\n"
                          : "%zu commands made of the rules of both were tried; others "
                            "may change, too\n",
                      samples);
        return is_same_policy ? 0 : 1;
    }
    json_put_bool(&inv->mem, answer, "same", is_same_policy);
    json_put_bool(&inv->mem, answer, "complete", diff->is_complete);
    json_put_int(&inv->mem, answer, "samples", (int64_t)samples);
    json_put(answer, "sections", diff->sections);
    json_put(answer, "commands", changed);
    printed = cli_json(inv, answer);
    return printed ? printed : is_same_policy ? 0 : 1;
}

int run_policy_diff(struct invocation *inv)
{
    struct diff diff = {.inv = inv, .sections = json_array(&inv->mem)};
    size_t samples = 0;
    struct err err;
    int status;

    if (open_side(inv, inv->operands.v[0], &diff.a, &err) < 0 ||
        open_side(inv, inv->operands.v[1], &diff.b, &err) < 0) {
        status = cli_error(inv, &err);
    } else {
        compare_layers(&diff);
        diff.is_complete = judges_alike(&diff);
        if (!diff.is_complete)
            samples = compare_commands(&diff);
        status = print_diff(&diff, samples, diff.section_n == 0);
    }
    policy_free(diff.a.policy);
    policy_free(diff.b.policy);
    return status;
}
