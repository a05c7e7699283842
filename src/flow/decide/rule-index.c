/* SPDX-License-Identifier: Apache-2.0 */
/* Rules by the name of their program.
 *
 * A rule whose programs are spelled out, by name or by path, can only match a command whose program
 * has the same base name: whichever way deny, ask and allow compare (rule-match.c), what stands
 * behind the last slash has to be equal. The exception are paths that end in "", "." or "..", which
 * name something other than what they end in; for those every rule is looked at. Rules with a
 * wildcard in the program, or without one, are in a list that every command walks.
 *
 * Both lists are strictest first, then in the order of the file, so the first match decides. */
#include <stdlib.h>
#include <string.h>

#include "flow/decide/policy.h"
#include "flow/decide/rule-match.h"

#define END UINT32_MAX

struct bucket {
    struct str name;
    uint32_t *rules; /* ends in END */
    size_t n;
    size_t room;
};

struct rule_index {
    const struct rule *rules;
    struct bucket *buckets;
    size_t mask;
    struct bucket rest;
};

static uint64_t name_hash(struct str name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < name.n; i++)
        hash = (hash ^ (unsigned char)name.p[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The bucket of that name, or the empty one where it would be. */
static struct bucket *bucket_of(const struct rule_index *index, struct str name)
{
    size_t at = name_hash(name) & index->mask;

    while (index->buckets[at].name.p && !str_eq(index->buckets[at].name, name))
        at = (at + 1) & index->mask;
    return &index->buckets[at];
}

static void bucket_add(struct arena *mem, struct bucket *bucket, uint32_t rule)
{
    if (bucket->n && bucket->rules[bucket->n - 1] == rule)
        return; /* two spellings of one name in a rule */
    if (bucket->n + 1 >= bucket->room) {
        size_t room = bucket->room ? 2 * bucket->room : 2;
        uint32_t *rules = arena_array(mem, uint32_t, room);

        if (bucket->n)
            memcpy(rules, bucket->rules, bucket->n * sizeof *rules);
        bucket->rules = rules;
        bucket->room = room;
    }
    bucket->rules[bucket->n++] = rule;
    bucket->rules[bucket->n] = END;
}

static const struct glob *name_of(const struct program *program)
{
    return program->has_slash ? program->base : program->word;
}

static bool is_spelled_out(const struct rule *rule)
{
    for (size_t i = 0; i < rule->program_n; i++)
        if (!glob_is_literal(rule->programs[i].word))
            return false;
    return rule->program_n != 0;
}

static void index_rule(struct arena *mem, struct rule_index *index, uint32_t at)
{
    const struct rule *rule = &index->rules[at];

    if (!is_spelled_out(rule)) {
        bucket_add(mem, &index->rest, at);
        return;
    }
    for (size_t i = 0; i < rule->program_n; i++) {
        struct str name = glob_plain(name_of(&rule->programs[i]));
        struct bucket *bucket = bucket_of(index, name);

        if (!bucket->name.p)
            bucket->name = name.n ? name : (struct str){"", 0};
        bucket_add(mem, bucket, at);
    }
}

struct rule_index *rule_index_new(struct arena *mem, const struct rule *rules, size_t n)
{
    struct rule_index *index = arena_new(mem, struct rule_index);
    size_t programs = 0, room = 16;

    for (size_t i = 0; i < n; i++)
        programs += rules[i].program_n;
    while (room < 2 * programs)
        room *= 2;
    *index = (struct rule_index){.rules = rules, .mask = room - 1};
    index->buckets = arena_array(mem, struct bucket, room);
    for (enum verdict_kind kind = VERDICT_DENY; kind <= VERDICT_ALLOW; kind++)
        for (size_t i = 0; i < n; i++)
            if (rules[i].kind == kind)
                index_rule(mem, index, (uint32_t)i);
    return index;
}

bool rule_index_knows(struct str base)
{
    return base.n && !str_is(base, ".") && !str_is(base, "..");
}

struct rule_walk rule_walk_begin(const struct rule_index *index, struct str base)
{
    static const uint32_t none[] = {END};
    const struct bucket *bucket = bucket_of(index, base);

    return (struct rule_walk){.index = index,
                              .named = bucket->n ? bucket->rules : none,
                              .rest = index->rest.n ? index->rest.rules : none};
}

/* Of two places in the file: the stricter rule, of equals the earlier. */
static bool comes_first(const struct rule *rules, uint32_t a, uint32_t b)
{
    if (a == END || b == END)
        return b == END;
    return rules[a].kind != rules[b].kind ? rules[a].kind < rules[b].kind : a < b;
}

const struct rule *rule_walk_next(struct rule_walk *walk)
{
    const uint32_t **from =
        comes_first(walk->index->rules, *walk->named, *walk->rest) ? &walk->named : &walk->rest;

    return **from == END ? NULL : &walk->index->rules[*(*from)++];
}
