/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict.
 *
 * Every rule is held against the words of the command. The strictest that matches decides: deny
 * beats ask beats allow; of equals the first in the file is named. When none matches, the
 * default of the policy decides.
 *
 * A carrier (lib/shell) is judged twice: as itself, and by every command inside. The strictest
 * verdict holds. What cannot be seen counts as ask, except
 *   - under a policy that refuses nothing (default allow, no deny or ask rule), and
 *   - when an allow rule without any wildcard spells out this very command.
 * A script given to an interpreter is an argument like others, so an allow rule need not name it
 * once more; but a shell that runs one is allowed only by a rule without wildcards. Deny and ask
 * rules that match inside hold in every case. */
#include "flow/decide/decide.h"

#include <string.h>

#include "flow/decide/carrier.h"
#include "flow/decide/layers.h"
#include "flow/decide/policy.h"
#include "flow/decide/rule-match.h"
#include "lib/base/clock.h"
#include "lib/base/limits.h"

#define SCAN_WORDS_MAX 256
#define CONCERNS_MAX 1024 /* commands of one text whose words are looked at twice */
#define PLACE_BYTES_MAX 60

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
    struct subject *subject;
};

/* ---- which verdict follows ---- */

/* Those of the rule, or (NULL, or it names none) of the group "default". */
static const struct approvers *approvers_of(const struct policy *policy, const struct rule *rule)
{
    if (rule && rule->approvers)
        return rule->approvers;
    for (size_t i = 0; i < policy->approvers_n; i++)
        if (strcmp(policy->approvers[i].terms.group, "default") == 0)
            return &policy->approvers[i];
    return NULL;
}

static unsigned quorum_of(const struct policy *policy, const struct finding *finding)
{
    const struct approvers *approvers = approvers_of(policy, finding->rule);

    return approvers ? approvers->terms.quorum : 1;
}

/* The stricter one; of equals one that can name a rule, then the first. */
static struct finding stricter(const struct policy *policy, struct finding a, struct finding b)
{
    if (a.kind != b.kind)
        return a.kind < b.kind ? a : b;
    if (a.kind == VERDICT_ASK) {
        unsigned of_a = quorum_of(policy, &a), of_b = quorum_of(policy, &b);

        if (of_a != of_b) /* few people's word does not carry what needs that of more */
            return of_a > of_b ? a : b;
    }
    return !a.rule && b.rule ? b : a;
}

/* Rules against the words from their first one. */
static struct finding judge_words(const struct judge *judge, struct slice words, bool later)
{
    const struct rule *rule = rule_find(judge->subject, words, later);

    return (struct finding){.kind = rule ? rule->kind : judge->policy->fallback, .rule = rule};
}

/* Deny and ask rules against every place where a command could begin. */
static struct finding scan_words(const struct judge *judge, struct slice words, struct finding best)
{
    for (size_t at = 1; at < words.n && at < SCAN_WORDS_MAX; at++) {
        struct finding found = judge_words(judge, (struct slice){words.v + at, words.n - at}, true);

        if (found.rule && found.kind != VERDICT_ALLOW)
            best = stricter(judge->policy, best, found);
    }
    return best;
}

/* ---- what is inside ---- */

/* Everything a carrier runs, and what is found about each. */
struct looked {
    const struct judge *judge;
    struct shell_script script;
    struct arena *mem;
    struct finding *own;
    struct finding *best;
};

static struct slice words_of(struct arena *mem, const struct shell_command *command)
{
    const char **v = arena_array(mem, const char *, command->word_n + 1);

    for (size_t i = 0; i < command->word_n; i++)
        v[i] = command->words[i].text.p;
    return (struct slice){v, command->word_n};
}

/* An assignment alone, or a group that is redirected, runs nothing by itself. */
static struct finding judge_alone(const struct looked *looked, size_t i)
{
    const struct shell_command *command = &looked->script.commands[i];

    if (command->word_n == 0)
        return (struct finding){.kind = VERDICT_ALLOW};
    return judge_words(looked->judge, words_of(looked->mem, command), false);
}

static bool is_by_rule(const struct finding *own)
{
    return own->kind == VERDICT_ALLOW && own->rule;
}

static bool is_spelled_out(const struct finding *own)
{
    return is_by_rule(own) && own->rule->literal;
}

/* Files that a redirection opens are no words of a command, so no rule has seen them. */
static bool opens_files(const struct shell_command *command)
{
    for (size_t i = 0; i < command->redirect_n; i++) {
        const struct shell_redirect *redirect = &command->redirects[i];

        if (redirect->kind != SHELL_COPIES && redirect->kind != SHELL_TEXT &&
            !(redirect->target.known == SHELL_LITERAL &&
              str_is(redirect->target.text, "/dev/null")))
            return true;
    }
    return false;
}

static bool steers(const struct shell_command *command)
{
    for (size_t i = 0; i < command->assignment_n; i++)
        if (is_steering_variable(command->assignments[i].text.p))
            return true;
    return false;
}

/* Words that are not certain: the first one says which rules could be about it at all. */
static bool is_uncertain(const struct looked *looked, size_t i)
{
    const struct shell_command *command = &looked->script.commands[i];

    if (command->known == SHELL_LITERAL)
        return false;
    return command->word_n == 0 || command->words[0].known != SHELL_LITERAL ||
           is_by_rule(&looked->own[i]) || i >= CONCERNS_MAX ||
           rule_concerns(looked->judge->policy, command->words[0].text.p);
}

/* Whether its words make it do something that no rule can be held against. */
static bool hides_in_words(const struct looked *looked, size_t i)
{
    const struct finding *own = &looked->own[i];
    unsigned flags = looked->script.commands[i].flags;

    if (is_spelled_out(own))
        return false;
    return flags & SHELL_HIDES ||
           (is_by_rule(own) && flags & SHELL_RUNS_FILE && flags & SHELL_IS_SHELL);
}

/* Whether something besides its words does. */
static bool hides_beside_words(const struct looked *looked, size_t i)
{
    const struct shell_command *command = &looked->script.commands[i];
    bool strict = is_by_rule(&looked->own[i]) || looked->judge->policy->fallback != VERDICT_ALLOW;

    return is_uncertain(looked, i) || steers(command) || (strict && opens_files(command));
}

static const char *name_of(const struct shell_command *command)
{
    if (command->carrier)
        return command->carrier;
    return command->within ? command->within : "it";
}

/* Where in a text it stands, in its own words. */
static const char *place_of(struct arena *mem, const struct shell_script *script, size_t i)
{
    const struct shell_command *command = &script->commands[i];
    char text[PLACE_BYTES_MAX + 1];
    size_t n = 0;

    if (command->parent == SHELL_NONE || (command->flags & SHELL_FILE) ||
        !(script->commands[command->parent].flags & SHELL_IS_SHELL))
        return command->within;
    for (size_t k = 0; k < command->word_n && n < PLACE_BYTES_MAX; k++) {
        if (k)
            text[n++] = ' ';
        for (size_t b = 0; b < command->words[k].text.n && n < PLACE_BYTES_MAX; b++) {
            char c = command->words[k].text.p[b];

            if (c < ' ' || c > '~')
                c = '?';
            text[n++] = c;
        }
    }
    text[n] = '\0';
    return arena_printf(mem, "%s: %s", command->within, text);
}

/* What is found about one command counts for the carrier around it, too. A file that is run, or
 * what runs on another machine, is an argument like others: only rules that stop it count. */
static void pass_on(struct looked *looked, size_t i)
{
    const struct shell_command *command = &looked->script.commands[i];
    struct finding found = looked->best[i];
    size_t outer = command->parent;
    bool argument = command->flags & (SHELL_FILE | SHELL_REMOTE);

    if (outer == SHELL_NONE)
        return;
    if (!found.within)
        found.within = place_of(looked->mem, &looked->script, i);
    if (!(is_spelled_out(&looked->own[outer]) || argument) ||
        (found.rule && found.kind != VERDICT_ALLOW))
        looked->best[outer] = stricter(looked->judge->policy, looked->best[outer], found);
}

static void settle(struct looked *looked, size_t i)
{
    const struct shell_command *command = &looked->script.commands[i];
    struct finding *best = &looked->best[i];

    if (command->flags & SHELL_SCANS)
        *best = scan_words(looked->judge, words_of(looked->mem, command), *best);
    if (hides_in_words(looked, i) || hides_beside_words(looked, i))
        *best = stricter(looked->judge->policy, *best,
                         (struct finding){.kind = VERDICT_ASK, .opaque = name_of(command)});
}

/* Carriers stand before what they run, so from the last one to the first. */
static struct finding judge_inside(const struct judge *judge, struct slice words)
{
    AUTO_ARENA struct arena mem = ARENA(SHELL_MEMORY_MAX);
    struct looked looked = {.judge = judge, .mem = &mem};
    const struct folders start = judge->subject->folders;
    struct finding result;
    size_t n;

    shell_look(&mem, words.v, words.n, &looked.script);
    judge->subject->assigned = env_assigned(&mem, &looked.script);
    judge->subject->folders = folders_of(&mem, &start, &looked.script);
    n = looked.script.n;
    looked.own = arena_array(&mem, struct finding, n);
    looked.best = arena_array(&mem, struct finding, n);
    for (size_t i = 0; i < n; i++)
        looked.best[i] = looked.own[i] = judge_alone(&looked, i);
    for (size_t i = n; i-- > 0;) {
        settle(&looked, i);
        pass_on(&looked, i);
    }
    result = looked.best[0];
    if (result.opaque)
        result.opaque = arena_text(judge->mem, str_of(result.opaque));
    if (result.within)
        result.within = arena_text(judge->mem, str_of(result.within));
    judge->subject->assigned = (struct words){0};
    judge->subject->folders = start;
    return result;
}

/* A policy that refuses nothing allows what cannot be seen, too; it is looked at for its effect. */
static struct finding judge_command(const struct judge *judge, struct slice words)
{
    bool refuses = judge->policy->restricts || judge->policy->fallback != VERDICT_ALLOW;
    struct finding found;

    if (!shell_may_carry(shell_base(words.v[0])))
        return judge_words(judge, words, false); /* nothing inside */
    found = judge_inside(judge, words);
    return refuses ? found : judge_words(judge, words, false);
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

bool action_brings_path(const struct action *action)
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

/* A condition that could not be evaluated counted closed, and people should know. */
static void say_closed(struct arena *mem, const struct subject *subject,
                       const struct finding *finding, struct verdict *verdict)
{
    const struct rule *closed = subject->closed;

    if (!closed || (finding->rule && finding->rule != closed) || finding->opaque)
        return;
    if (finding->rule)
        verdict->text = arena_printf(mem, "%s; its condition could not be evaluated: %s",
                                     verdict->text, subject->closed_why);
    else
        verdict->text = arena_printf(mem,
                                     "rule %s, line %u, does not count: its condition could "
                                     "not be evaluated: %s",
                                     closed->name, closed->line, subject->closed_why);
}

/* Of all that was looked at, in all layers, the gravest. */
static void note_effect(struct run *run, const struct subject *subject)
{
    struct slice words = {run->action.argv.v, run->action.argv.n};
    struct effect_seen seen = subject->effect;

    if (!seen.effect)
        seen = effect_of(words, names_tool(&run->action, words), subject->bare_names_trusted);
    if (run->action.effect)
        seen = effect_as_said(seen, run->action.effect);
    if (run->effect.id && run->effect.risk >= seen.risk)
        return;
    run->effect.id = seen.effect->id;
    run->effect.risk = seen.risk;
}

int64_t decide_now(const struct run *run)
{
    return run->decided_at ? run->decided_at : (int64_t)(clock_wall_ns() / 1000000000);
}

/* ---- whose word it needs ---- */

/* A copy: the run may outlive the policy. */
static const struct approval_terms *terms_of(const struct policy *policy, struct arena *mem,
                                             const struct rule *rule)
{
    const struct approvers *approvers = approvers_of(policy, rule);
    struct approval_terms *terms;
    const char **by;

    if (!approvers)
        return NULL;
    terms = arena_new(mem, struct approval_terms);
    *terms = approvers->terms;
    terms->group = arena_text(mem, str_of(terms->group));
    by = arena_array(mem, const char *, terms->by.n + 1);
    for (size_t i = 0; i < terms->by.n; i++)
        by[i] = arena_text(mem, str_of(terms->by.v[i]));
    terms->by.v = by;
    return terms;
}

const struct approval_terms *policy_default_terms(const struct policy *policy, struct arena *mem)
{
    return terms_of(policy, mem, NULL);
}

struct verdict judge_action(const struct policy *policy, struct run *run)
{
    const struct action *action = &run->action;
    struct subject subject = {.policy = policy,
                              .run = run,
                              .bare_names_trusted = !action_brings_path(action),
                              .now = decide_now(run),
                              .steps = DECIDE_STEPS_MAX};
    struct judge judge = {policy, &run->mem, &subject};
    struct finding finding;
    const char *steering;
    struct verdict verdict;

    subject.folders = folders_start(run);
    finding = judge_command(&judge, (struct slice){action->argv.v, action->argv.n});
    note_effect(run, &subject);
    /* Without rules and without a default the policy has no say about commands. */
    if (!policy->has_commands && !policy->has_default && policy->rule_n == 0)
        return (struct verdict){.kind = VERDICT_ALLOW,
                                .reason = REASON_POLICY_DEFAULT_ALLOW,
                                .text = "the policy has no rules about commands"};
    verdict = verdict_of(policy, &run->mem, &finding);
    say_closed(&run->mem, &subject, &finding, &verdict);
    steering = steering_variable(action);
    if (steering && finding.kind == VERDICT_ALLOW && finding.rule) {
        verdict.kind = VERDICT_ASK;
        verdict.reason = REASON_POLICY_ASK;
        verdict.text =
            arena_printf(&run->mem, "the variable %.*s can make an allowed program run another one",
                         (int)strcspn(steering, "="), steering);
    }
    if (verdict.kind == VERDICT_ASK)
        verdict.terms = terms_of(policy, &run->mem, finding.rule);
    return verdict;
}
