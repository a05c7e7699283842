/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that the rules of policies are about: what matches each of them, what just does not,
 * what two of them are about together, and what none is about. For asking two policies the same. */
#include "flow/decide/layers.h"

#include <string.h>

#include "lib/base/limits.h"

#define VARIANTS_MAX 8 /* of one rule */
#define WORD_BYTES_MAX 512
#define KEPT_MAX 4096
#define PAIRS_MAX 4000000 /* that are held against each other */
#define SAMPLE_WORDS_MAX (2 * POLICY_PATTERN_WORDS_MAX + 4)

struct sampler {
    struct arena *mem;
    sample_visitor *visit;
    void *context;
    size_t left;
};

/* One way to write a command that a rule matches. */
struct variant {
    const char *v[POLICY_PATTERN_WORDS_MAX + 3];
    size_t n;
    bool anywhere; /* the rule begins with **: it is about words behind any program */
};

static void give(struct sampler *sampler, const char *const *v, size_t n)
{
    if (n == 0 || sampler->left == 0)
        return;
    sampler->left--;
    sampler->visit(sampler->context, (struct words){v, n});
}

static const char *word_for(struct arena *mem, const struct glob *glob, const char *many)
{
    char text[WORD_BYTES_MAX];

    return glob_example(glob, many, text, sizeof text) ? arena_text(mem, str_of(text)) : NULL;
}

/* What a rule about paths is about is named behind everything else. */
static bool add_path(struct arena *mem, const struct rule *rule, size_t at, struct variant *out)
{
    const struct conditions *conditions = rule->conditions;

    if (!conditions || conditions->path_n == 0)
        return true;
    out->v[out->n] = word_for(mem, conditions->paths[at % conditions->path_n].glob, "x");
    return out->v[out->n++] != NULL;
}

/* The at-th alternative where there are several; many stands for a star, rest for a **. */
static bool make_variant(struct arena *mem, const struct rule *rule, size_t at, bool more,
                         struct variant *out)
{
    const char *many = more ? "x" : "";

    *out = (struct variant){.anywhere = rule->program_n == 0};
    if (rule->program_n == 0 && (more || rule->place_n == 0))
        out->v[out->n++] = "example";
    for (size_t i = 0; i < rule->place_n; i++) {
        const struct place *place = &rule->places[i];
        const struct glob *glob;

        if (i == 0 && rule->program_n)
            glob = rule->programs[at % rule->program_n].word;
        else if (!place->rest && place->n)
            glob = place->any[at % place->n];
        else if (more)
            glob = NULL;
        else
            continue;
        out->v[out->n] = glob ? word_for(mem, glob, many) : "x";
        if (!out->v[out->n++])
            return false;
    }
    return add_path(mem, rule, at, out) && out->n > 0;
}

static size_t variants_of(const struct rule *rule)
{
    size_t most = rule->program_n;

    if (rule->conditions && rule->conditions->path_n > most)
        most = rule->conditions->path_n;
    for (size_t i = 0; i < rule->place_n; i++)
        if (rule->places[i].n > most)
            most = rule->places[i].n;
    return most < 1 ? 1 : most > VARIANTS_MAX ? VARIANTS_MAX : most;
}

/* Words behind those that are there; how many there are then. */
static size_t add_words(const char **v, size_t at, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n && at < SAMPLE_WORDS_MAX; i++)
        v[at++] = words[i];
    return at;
}

/* It, one word less, one word more, and inside a carrier. */
static void give_around(struct sampler *sampler, const struct variant *variant)
{
    static const char *const more[] = {"x"}, *const carrier[] = {"env"};
    const char *v[SAMPLE_WORDS_MAX];
    size_t n;

    give(sampler, variant->v, variant->n);
    if (variant->n > 1)
        give(sampler, variant->v, variant->n - 1);
    n = add_words(v, 0, variant->v, variant->n);
    give(sampler, v, add_words(v, n, more, 1));
    n = add_words(v, 0, carrier, 1);
    give(sampler, v, add_words(v, n, variant->v, variant->n));
}

static void give_rule(struct sampler *sampler, const struct rule *rule)
{
    struct variant variant;

    for (size_t at = 0; at < variants_of(rule); at++)
        for (int more = 0; more < 2; more++)
            if (make_variant(sampler->mem, rule, at, more, &variant))
                give_around(sampler, &variant);
}

/* What rules match, for holding them against each other. */
struct kept {
    const char **v;
    size_t n;
    bool anywhere;
};

struct kept_list {
    struct kept *of;
    size_t n, max;
};

static void keep_rule(struct arena *mem, const struct rule *rule, struct kept_list *list)
{
    struct variant variant;

    for (size_t at = 0; at < variants_of(rule) && list->n < list->max; at++) {
        struct kept *kept = &list->of[list->n];

        if (!make_variant(mem, rule, at, false, &variant))
            continue;
        *kept = (struct kept){arena_array(mem, const char *, variant.n + 1), variant.n,
                              variant.anywhere};
        (void)add_words(kept->v, 0, variant.v, variant.n);
        list->n++;
    }
}

/* Words of the second behind those of the first, when both could be about one program. */
static void give_pair(struct sampler *sampler, const struct kept *first, const struct kept *second)
{
    size_t skip = second->anywhere ? 0 : 1, n;
    const char *v[SAMPLE_WORDS_MAX];

    if (!second->anywhere && (first->anywhere || strcmp(first->v[0], second->v[0]) != 0))
        return;
    n = add_words(v, 0, first->v, first->n);
    give(sampler, v, add_words(v, n, (const char *const *)second->v + skip, second->n - skip));
}

static void give_pairs(struct sampler *sampler, const struct kept_list *list)
{
    size_t tries = PAIRS_MAX;

    for (size_t i = 0; i < list->n; i++)
        for (size_t j = 0; j < list->n && sampler->left && tries; j++, tries--)
            if (i != j)
                give_pair(sampler, &list->of[i], &list->of[j]);
}

size_t policy_samples(const struct policy *const *policies, size_t n, struct arena *mem,
                      sample_visitor *visit, void *context)
{
    static const char *const nothing[] = {"brig-example", "x", NULL};
    struct sampler sampler = {mem, visit, context, POLICY_SAMPLES_MAX};
    struct kept_list list = {arena_array(mem, struct kept, KEPT_MAX), 0, KEPT_MAX};

    give(&sampler, nothing, 1);
    give(&sampler, nothing, 2);
    for (size_t i = 0; i < n; i++)
        for (size_t r = 0; r < policies[i]->rule_n && sampler.left; r++) {
            give_rule(&sampler, &policies[i]->rules[r]);
            keep_rule(mem, &policies[i]->rules[r], &list);
        }
    give_pairs(&sampler, &list);
    return POLICY_SAMPLES_MAX - sampler.left;
}

size_t policy_layers(const struct policy *policy, const struct policy *out[POLICY_LAYERS_MAX])
{
    out[0] = policy;
    for (size_t i = 0; i < policy->overlay_n; i++)
        out[i + 1] = policy->overlays[i];
    return policy->overlay_n + 1;
}

int policy_texts(struct arena *mem, struct str text, struct policy_texts *out, struct err *err)
{
    struct policy_bundle bundle;
    struct stack_parts parts, inner = {0};

    *out = (struct policy_texts){.policy = text};
    if (is_stack_text(text)) {
        if (stack_read(mem, text, &parts, err) < 0)
            return -1;
        out->policy = parts.policy;
    } else {
        parts = (struct stack_parts){0};
    }
    if (is_bundle_text(out->policy)) {
        if (bundle_read(mem, out->policy, &bundle, &inner, err) < 0)
            return -1;
        out->policy = inner.policy;
    }
    for (size_t i = 0; i < inner.overlay_n + parts.overlay_n && i < POLICY_OVERLAYS_MAX; i++)
        out->overlays[out->overlay_n++] =
            i < inner.overlay_n ? inner.overlays[i] : parts.overlays[i - inner.overlay_n];
    return 0;
}
