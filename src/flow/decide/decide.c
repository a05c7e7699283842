/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict.
 *
 * Every rule is held against the words of the command. The strictest that matches decides: deny
 * beats ask beats allow; of equals the first in the file is named. When none matches, the
 * default of the policy decides.
 *
 * A carrier (carrier.h) is judged twice: as itself, and by what is inside. The stricter verdict
 * holds. What cannot be seen counts as ask, except
 *   - under a policy that refuses nothing (default allow, no deny or ask rule), and
 *   - when an allow rule without any wildcard spells out this very command.
 * A script given to an interpreter is an argument like others, so an allow rule need not name it
 * once more; but a shell is allowed only by a rule without wildcards. Deny and ask rules that
 * match inside hold in every case. */
#include "flow/decide/decide.h"

#include <string.h>

#include "flow/decide/carrier.h"
#include "flow/decide/policy.h"
#include "lib/base/limits.h"

#define CARRIER_DEPTH_MAX 8
#define SCAN_WORDS_MAX 256

/* How a verdict came about, while it is being looked for. */
struct finding {
    enum verdict_kind kind;
    const struct rule *rule; /* NULL: the default, or something unseen */
    const char *opaque;      /* the carrier that hides something, or NULL */
    const char *within;      /* the carrier around what the rule matched, or NULL */
};

struct judge {
    const struct policy *policy;
    struct arena *mem;
    bool bare_names_trusted; /* the request does not bring a PATH of its own */
};

/* ---- does a rule match ---- */

static bool has_dot_dot(struct str path)
{
    struct str rest = path;

    while (rest.n)
        if (str_is(str_cut(&rest, '/'), ".."))
            return true;
    return false;
}

/* Absolute, with no empty, "." or ".." component: only then does the text say which file. */
static bool is_plain_path(struct str path)
{
    struct str rest = path;

    if (path.n < 2 || path.p[0] != '/')
        return false;
    rest = (struct str){path.p + 1, path.n - 1};
    while (rest.n) {
        struct str part = str_cut(&rest, '/');

        if (part.n == 0 || str_is(part, ".") || str_is(part, ".."))
            return false;
    }
    return path.p[path.n - 1] != '/';
}

/* An absolute path without empty, "." and ".." components, and with /usr/bin written /bin. */
static struct str resolved(struct str path, char *out)
{
    struct str rest = path;
    struct str result;
    size_t n = 0;

    while (rest.n) {
        struct str part = str_cut(&rest, '/');

        if (part.n == 0 || str_is(part, "."))
            continue;
        if (str_is(part, "..")) {
            while (n && out[--n] != '/')
                continue;
            continue;
        }
        out[n++] = '/';
        memcpy(out + n, part.p, part.n);
        n += part.n;
    }
    result = (struct str){out, n};
    if (str_starts(result, "/usr/bin/") || str_starts(result, "/usr/sbin/"))
        result = (struct str){out + 4, n - 4};
    return result;
}

static bool names_site(const struct program *program, struct str typed)
{
    char path[PATH_BYTES_MAX];

    return typed.n < sizeof path && glob_match(program->site, resolved(typed, path));
}

/* For deny and ask: by name wherever the program lies, by path where the path is known. */
static bool names_program(const struct program *program, struct str typed, struct str base)
{
    if (glob_match(program->word, typed))
        return true;
    if (!program->has_slash)
        return base.n < typed.n && glob_match(program->word, base);
    if (typed.n == 0 || typed.p[0] != '/' || typed.n >= PATH_BYTES_MAX)
        return glob_match(program->base, base);
    return names_site(program, typed);
}

/* For allow: a bare name is looked up in read-only folders, so it may stand for the program; a
 * path is only ever allowed as a path. */
static bool allows_program(const struct judge *judge, const struct program *program,
                           struct str typed, struct str base)
{
    if (!program->has_slash)
        return judge->bare_names_trusted && base.n == typed.n && glob_match(program->word, typed);
    return glob_match(program->path, typed) && is_plain_path(typed);
}

static bool place_matches(const struct place *place, struct str word, bool allowing)
{
    for (size_t i = 0; i < place->n; i++) {
        /* "/workspace/" and a star must not reach out of /workspace. */
        if (allowing && place->has_slash[i] && !glob_is_literal(place->any[i]) && has_dot_dot(word))
            continue;
        if (glob_match(place->any[i], word))
            return true;
    }
    return false;
}

/* Words against places, both from their first one. After a ** only the latest one ever needs to
 * be widened: what earlier ones took is the least they can take. */
static bool words_match(const struct place *places, size_t place_n, struct slice words,
                        bool allowing)
{
    size_t p = 0, w = 0, rest_p = SIZE_MAX, rest_w = 0;

    while (w < words.n) {
        if (p < place_n && places[p].rest) {
            rest_p = p++;
            rest_w = w;
        } else if (p < place_n && place_matches(&places[p], str_of(words.v[w]), allowing)) {
            p++;
            w++;
        } else if (rest_p != SIZE_MAX) {
            p = rest_p + 1;
            w = ++rest_w;
        } else {
            return false;
        }
        if (p == place_n && p && places[p - 1].rest)
            return true; /* a final ** takes all that is left */
    }
    while (p < place_n && places[p].rest)
        p++;
    return p == place_n;
}

static bool rule_matches(const struct judge *judge, const struct rule *rule, struct slice words,
                         struct str typed, struct str base)
{
    bool allowing = rule->kind == VERDICT_ALLOW;
    bool program = false;

    if (rule->program_n == 0)
        return words_match(rule->places, rule->place_n, words, allowing);
    for (size_t i = 0; i < rule->program_n && !program; i++)
        program = allowing ? allows_program(judge, &rule->programs[i], typed, base)
                           : names_program(&rule->programs[i], typed, base);
    return program && words_match(rule->places + 1, rule->place_n - 1,
                                  (struct slice){words.v + 1, words.n - 1}, allowing);
}

/* ---- which verdict follows ---- */

/* The stricter one; of equals one that can name a rule, then the first. */
static struct finding stricter(struct finding a, struct finding b)
{
    if (a.kind != b.kind)
        return a.kind < b.kind ? a : b;
    return !a.rule && b.rule ? b : a;
}

/* Rules against the words from their first one; for words further back (later), rules that begin
 * with ** are left out: they have been held against all of the words already. */
static struct finding judge_words(const struct judge *judge, struct slice words, bool later)
{
    const struct policy *policy = judge->policy;
    struct str typed = str_of(words.v[0]);
    struct str base = str_of(program_base(words.v[0]));
    struct finding best = {.kind = policy->fallback};

    for (size_t i = 0; i < policy->rule_n; i++) {
        const struct rule *rule = &policy->rules[i];

        /* Strictest first (DENY is the smallest): skip what could not change anything. */
        if ((best.rule && rule->kind >= best.rule->kind) || (later && rule->program_n == 0))
            continue;
        if (rule_matches(judge, rule, words, typed, base))
            best = (struct finding){.kind = rule->kind, .rule = rule};
    }
    return best;
}

static struct finding judge_command(const struct judge *judge, struct slice words, unsigned depth);

/* Deny and ask rules against every place where a command could begin. */
static struct finding scan_words(const struct judge *judge, struct slice words, struct finding best)
{
    for (size_t at = 1; at < words.n && at < SCAN_WORDS_MAX; at++) {
        struct finding found = judge_words(judge, (struct slice){words.v + at, words.n - at}, true);

        if (found.rule && found.kind != VERDICT_ALLOW)
            best = stricter(best, found);
    }
    return best;
}

static struct finding judge_inside(const struct judge *judge, struct slice words, unsigned depth,
                                   const struct inside *inside, struct finding own)
{
    bool by_rule = own.kind == VERDICT_ALLOW && own.rule;
    bool spelled_out = by_rule && own.rule->literal;
    bool opaque = inside->opaque || (inside->shell && by_rule);
    struct finding best = own;

    for (size_t i = 0; i < inside->n; i++) {
        struct finding found = {0};

        if (depth == CARRIER_DEPTH_MAX) {
            opaque = true;
            break;
        }
        found = judge_command(judge, inside->commands[i], depth + 1);
        if (!found.within)
            found.within = inside->carrier;
        if (!(spelled_out || inside->script) || (found.rule && found.kind != VERDICT_ALLOW))
            best = stricter(best, found);
    }
    if (inside->scan)
        best = scan_words(judge, words, best);
    if (opaque && !spelled_out)
        best = stricter(best, (struct finding){.kind = VERDICT_ASK, .opaque = inside->carrier});
    return best;
}

static struct finding judge_command(const struct judge *judge, struct slice words, unsigned depth)
{
    struct finding own = judge_words(judge, words, false);
    struct inside inside;

    if (!judge->policy->restricts && judge->policy->fallback == VERDICT_ALLOW)
        return own; /* nothing could be refused, inside or outside */
    carrier_look(judge->mem, words, &inside);
    return inside.carrier ? judge_inside(judge, words, depth, &inside, own) : own;
}

/* An allow rule is about the program it names; a request that also decides where programs and
 * their libraries come from is about something else. */
static const char *steering_variable(const struct action *action)
{
    for (size_t i = 0; i < action->env.n; i++)
        if (is_steering_variable(action->env.v[i]))
            return action->env.v[i];
    return NULL;
}

static bool brings_path(const struct action *action)
{
    for (size_t i = 0; i < action->env.n; i++)
        if (strncmp(action->env.v[i], "PATH=", 5) == 0)
            return true;
    return false;
}

/* ---- the verdict, in words ---- */

static enum reason reason_of(const struct finding *finding)
{
    switch (finding->kind) {
    case VERDICT_DENY:
        return finding->rule ? REASON_POLICY_DENY : REASON_POLICY_DEFAULT_DENY;
    case VERDICT_ASK:
        return REASON_POLICY_ASK;
    case VERDICT_ALLOW:
        return finding->rule ? REASON_POLICY_ALLOW : REASON_POLICY_DEFAULT_ALLOW;
    }
    return REASON_DECISION_ERROR;
}

static const char *sentence(struct arena *mem, const struct finding *finding)
{
    const char *within = finding->within ? arena_printf(mem, " (inside %s)", finding->within) : "";

    if (finding->opaque)
        return arena_printf(mem,
                            "what %s runs cannot be seen from its words; run the command itself, "
                            "or allow this one without wildcards",
                            finding->opaque);
    if (finding->rule && finding->rule->reason)
        return arena_printf(mem, "%s%s", finding->rule->reason, within);
    if (finding->rule)
        return arena_printf(mem, "rule %s, line %u%s", finding->rule->name, finding->rule->line,
                            within);
    if (finding->within)
        return arena_printf(mem, "no rule matched the command inside %s", finding->within);
    return NULL;
}

static struct verdict verdict_of(const struct policy *policy, struct arena *mem,
                                 const struct finding *finding)
{
    struct verdict verdict = {.kind = finding->kind, .reason = reason_of(finding)};

    if (finding->rule) {
        verdict.rule = arena_text(mem, str_of(finding->rule->name));
        verdict.line = finding->rule->line;
    } else if (finding->opaque) {
        verdict.rule = "carrier";
        verdict.line = policy->commands_line;
    } else if (policy->has_default) {
        verdict.rule = "default";
        verdict.line = policy->fallback_line;
    } else if (policy->has_commands) {
        verdict.rule = "default";
        verdict.line = policy->commands_line;
    }
    verdict.text = sentence(mem, finding);
    return verdict;
}

static struct verdict judge_action(const struct policy *policy, struct run *run)
{
    const struct action *action = &run->action;
    struct judge judge = {policy, &run->mem, !brings_path(action)};
    struct finding finding;
    const char *steering;
    struct verdict verdict;

    /* Without commands and without a default the policy has no say about commands. */
    if (!policy->has_commands && !policy->has_default)
        return (struct verdict){.kind = VERDICT_ALLOW,
                                .reason = REASON_POLICY_DEFAULT_ALLOW,
                                .text = "the policy has no rules about commands"};
    finding = judge_command(&judge, (struct slice){action->argv.v, action->argv.n}, 0);
    verdict = verdict_of(policy, &run->mem, &finding);
    steering = steering_variable(action);
    if (steering && finding.kind == VERDICT_ALLOW && finding.rule) {
        verdict.kind = VERDICT_ASK;
        verdict.reason = REASON_POLICY_ASK;
        verdict.text =
            arena_printf(&run->mem, "the variable %.*s can make an allowed program run another one",
                         (int)strcspn(steering, "="), steering);
    }
    return verdict;
}

/* ---- what the policy demands of the sandbox ---- */

static struct words words_copy(struct arena *mem, struct words words)
{
    const char **v;

    if (words.n == 0)
        return (struct words){0};
    v = arena_array(mem, const char *, words.n + 1);
    for (size_t i = 0; i < words.n; i++)
        v[i] = arena_text(mem, str_of(words.v[i]));
    return (struct words){v, words.n};
}

static struct demand demand_copy(struct arena *mem, const struct demand *demand)
{
    struct demand copy = *demand;

    copy.read_only = words_copy(mem, demand->read_only);
    copy.read_write = words_copy(mem, demand->read_write);
    if (demand->network_rules.n)
        copy.network_rules = arena_str(mem, demand->network_rules);
    if (demand->not_enforceable)
        copy.not_enforceable = arena_text(mem, str_of(demand->not_enforceable));
    return copy;
}

static bool is_well_formed(const struct action *action)
{
    if (action->argv.n == 0 || action->argv.n > ARGV_WORDS_MAX)
        return false;
    for (size_t i = 0; i < action->argv.n; i++)
        if (!action->argv.v[i])
            return false;
    return true;
}

int decide_run(const struct policy *policy, struct run *run, struct err *err)
{
    run->verdict = (struct verdict){.kind = VERDICT_DENY, .reason = REASON_DECISION_ERROR};
    run->demand = demand_copy(&run->mem, &policy->demand);
    memcpy(run->policy_hash, policy->hash, sizeof policy->hash);
    if (!is_well_formed(&run->action))
        return err_set(err, ERR_INVALID, "deciding: there is no command");

    /* A sandbox that is made runs nothing; rules meet its commands, one by one. */
    run->verdict = action_keeps(run->action.kind)
                       ? (struct verdict){.kind = VERDICT_ALLOW, .reason = REASON_SANDBOX_CREATE}
                       : judge_action(policy, run);
    if (run->demand.not_enforceable && run->verdict.kind != VERDICT_DENY)
        run->verdict = (struct verdict){.kind = VERDICT_DENY,
                                        .reason = REASON_POLICY_NOT_ENFORCEABLE,
                                        .line = policy->not_enforceable_line,
                                        .text = run->demand.not_enforceable};
    return 0;
}
