/* SPDX-License-Identifier: Apache-2.0 */

/* What was said, judged by other rules; and where that differs from what the telemetry has. */

#include "flow/advise/parts.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/limits.h"

struct replaying {
    struct advise_replay *replay;
    struct arena mem; /* of one answer */
    bool is_open;     /* there is one, and findings of it may follow */
    uint64_t expected;
    bool is_whole;
    struct advise_difference it;
};

static void replaying_done(struct replaying *replaying)
{
    arena_done(&replaying->mem);
}

/* ---- what was found ---- */

static void add_hit(struct advise_judged *judged, const char *category, const char *rule)
{
    for (size_t i = 0; i < judged->hit_n; i++)
        if (strcmp(judged->hits[i].category, category) == 0 &&
            strcmp(judged->hits[i].rule, rule) == 0) {
            judged->hits[i].n++;
            return;
        }
    if (judged->hit_n < ADVISORY_FINDINGS_MAX)
        judged->hits[judged->hit_n++] = (struct advise_hit){category, rule, 1};
}

static int by_name(const void *a, const void *b)
{
    const struct advise_hit *x = a, *y = b;
    int order = strcmp(x->category, y->category);

    return order ? order : strcmp(x->rule, y->rule);
}

static bool is_same(const struct advise_judged *a, const struct advise_judged *b)
{
    if (a->hit_n != b->hit_n || a->is_valid != b->is_valid || a->unlisted != b->unlisted ||
        a->compliance != b->compliance || strcmp(a->verdict, b->verdict) != 0 ||
        strcmp(a->drift, b->drift) != 0)
        return false;
    for (size_t i = 0; i < a->hit_n; i++)
        if (by_name(&a->hits[i], &b->hits[i]) != 0 || a->hits[i].n != b->hits[i].n)
            return false;
    return true;
}

/* As the telemetry counts: what is not listed weighs as structure. */
static void count_hits(uint64_t counts[ADVISORY_CATEGORY_COUNT], const struct advise_judged *judged)
{
    for (size_t i = 0; i < judged->hit_n; i++)
        for (int c = 0; c < ADVISORY_CATEGORY_COUNT; c++)
            if (strcmp(judged->hits[i].category,
                       advisory_category_name((enum advisory_category)c)) == 0)
                counts[c] += judged->hits[i].n;
    counts[ADVISORY_IS_STRUCTURE] += judged->unlisted;
}

/* ---- one answer ---- */

static const char *text_at(struct arena *mem, const struct json *event, const char *key)
{
    struct str text = {"", 0};

    (void)json_is_text(json_get(event, key), &text);
    return arena_text(mem, text);
}

static uint64_t number_at(const struct json *event, const char *key, uint64_t otherwise)
{
    int64_t value = 0;

    return json_is_int(json_get(event, key), &value) && value >= 0 ? (uint64_t)value : otherwise;
}

static void take_before(struct replaying *replaying, const struct json *event)
{
    struct arena *mem = &replaying->mem;
    struct advise_judged *before = &replaying->it.before;

    *before = (struct advise_judged){
        .verdict = text_at(mem, event, "verdict"),
        .drift = text_at(mem, event, "drift"),
        .compliance = (unsigned)number_at(event, "compliance", 0),
        .unlisted = number_at(event, "unlisted", 0),
        .hits = arena_array(mem, struct advise_hit, ADVISORY_FINDINGS_MAX),
    };
    (void)json_is_bool(json_get(event, "valid"), &before->is_valid);
    replaying->expected = number_at(event, "findings", ADVISORY_FINDINGS_MAX);
}

/* What was cut off was past the ceiling of a turn, and was not read then either. */
static int judge_anew(struct replaying *replaying, const struct advise_told *told, struct err *err)
{
    struct arena *mem = &replaying->mem;
    struct advise_judged *after = &replaying->it.after;
    struct advisory_result result;

    if (judge_text(mem, told->text, replaying->replay->strict_seed, &result, err) < 0)
        return -1;
    *after = (struct advise_judged){
        .verdict = advisory_verdict_name(result.verdict),
        .drift = advisory_drift_code(result.drift),
        .is_valid = result.is_valid,
        .compliance = result.compliance,
        .unlisted = result.unlisted,
        .hits = arena_array(mem, struct advise_hit, ADVISORY_FINDINGS_MAX),
    };
    for (size_t i = 0; i < result.finding_n; i++)
        add_hit(after, advisory_category_name(result.findings[i].category),
                result.findings[i].rule);
    return 0;
}

static int close_turn(struct replaying *replaying, struct err *err)
{
    struct advise_replay *replay = replaying->replay;
    struct advise_difference *it = &replaying->it;

    if (!replaying->is_open)
        return 0;
    replaying->is_open = false;
    if (it->is_judged) {
        qsort(it->before.hits, it->before.hit_n, sizeof *it->before.hits, by_name);
        qsort(it->after.hits, it->after.hit_n, sizeof *it->after.hits, by_name);
        count_hits(replay->before, &it->before);
        count_hits(replay->after, &it->after);
        replay->turns++;
        replay->not_whole += !replaying->is_whole;
        if (is_same(&it->before, &it->after))
            return 0;
        replay->differ++;
    } else {
        replay->not_stored++;
    }
    return replay->on_difference ? replay->on_difference(replay->context, it, err) : 0;
}

static int open_turn(struct replaying *replaying, const struct advise_told *told, struct err *err)
{
    arena_done(&replaying->mem);
    replaying->mem = ARENA(ADVISORY_MEMORY_MAX);
    replaying->is_open = true;
    replaying->is_whole = told->is_whole;
    replaying->it = (struct advise_difference){
        .turn = told->turn, .seq = told->seq, .is_judged = told->is_stored};
    take_before(replaying, told->event);
    return told->is_stored ? judge_anew(replaying, told, err) : 0;
}

/* A finding belongs to the answer it stands behind, unless the session made it: when somebody
 * speaks out of turn is nothing the rules of a text know. */
static void take_finding(struct replaying *replaying, const struct json *event)
{
    const char *category = text_at(&replaying->mem, event, "category");

    if (!replaying->is_open || replaying->expected == 0 ||
        strcmp(category, advisory_category_name(ADVISORY_IS_QUIESCENCE)) == 0)
        return;
    replaying->expected--;
    add_hit(&replaying->it.before, category, text_at(&replaying->mem, event, "rule"));
}

static int on_told(void *context, const struct advise_told *told, struct err *err)
{
    struct replaying *replaying = context;

    if (told->kind == ADVISE_TOLD_FINDING) {
        take_finding(replaying, told->event);
        return 0;
    }
    if (close_turn(replaying, err) < 0)
        return -1;
    return told->kind == ADVISE_TOLD_TURN ? open_turn(replaying, told, err) : 0;
}

int advise_replay(const struct advise *advise, struct advise_replay *replay, struct err *err)
{
    __attribute__((cleanup(replaying_done))) struct replaying replaying = {
        .replay = replay, .mem = ARENA(ADVISORY_MEMORY_MAX)};

    if (advise_tell(advise, on_told, &replaying, err) < 0)
        return -1;
    return close_turn(&replaying, err);
}
