/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/egress/callers.h"

#include <string.h>

#include "cmd/egress/ceilings.h"
#include "lib/base/memory.h"

#define SLOTS (2U * CALLERS_MAX) /* of the index by cookie; a power of two */
#define SEEN_SLOTS (2U * PROGRAMS_SEEN_MAX)

struct entry {
    uint64_t cookie; /* 0: free */
    uint64_t at_ms;
    struct caller *caller;
    bool ambiguous;
};

struct seen {
    uint64_t path; /* a hash; 0: free */
    struct hash content;
};

/* Entries lie in a ring in the order they came; the oldest makes room. */
struct callers {
    struct entry ring[CALLERS_MAX];
    uint64_t head;         /* the next place */
    uint64_t tail;         /* the oldest */
    uint16_t index[SLOTS]; /* 0: free, else the place and 1 */
    struct seen *seen;     /* programs whose content is known */
    size_t seen_n;
};

_Static_assert(CALLERS_MAX < UINT16_MAX, "a place fits the index");

struct callers *callers_new(void)
{
    return xcalloc(1, sizeof(struct callers));
}

void caller_free(struct caller *caller)
{
    free(caller); /* one piece: see caller_new() */
}

void callers_free(struct callers *callers)
{
    if (!callers)
        return;
    for (size_t i = 0; i < CALLERS_MAX; i++)
        caller_free(callers->ring[i].caller);
    free(callers->seen);
    free(callers);
}

/* ---- the index: open, with the holes closed ---- */

static uint32_t slot_of(uint64_t cookie)
{
    return (uint32_t)((cookie * 0x9e3779b97f4a7c15ULL) >> 40) & (SLOTS - 1);
}

static uint32_t find(const struct callers *callers, uint64_t cookie)
{
    uint32_t at = slot_of(cookie);

    while (callers->index[at] && callers->ring[callers->index[at] - 1U].cookie != cookie)
        at = (at + 1) & (SLOTS - 1);
    return at;
}

static void close_hole(struct callers *callers, uint32_t hole)
{
    uint32_t at = hole;

    for (;;) {
        uint32_t home;

        callers->index[hole] = 0;
        do {
            at = (at + 1) & (SLOTS - 1);
            if (!callers->index[at])
                return;
            home = slot_of(callers->ring[callers->index[at] - 1U].cookie);
            /* It may stay where it is if its home lies behind the hole. */
        } while (((at - home) & (SLOTS - 1)) < ((at - hole) & (SLOTS - 1)));
        callers->index[hole] = callers->index[at];
        hole = at;
    }
}

static struct caller *take_out(struct callers *callers, uint32_t slot)
{
    struct entry *entry = &callers->ring[callers->index[slot] - 1U];
    struct caller *caller = TAKE(entry->caller);

    close_hole(callers, slot);
    *entry = (struct entry){0};
    return caller;
}

/* ---- programs ---- */

static uint64_t hash_path(struct str path)
{
    uint64_t hash = 14695981039346656037ULL; /* FNV-1a */

    for (size_t i = 0; i < path.n; i++)
        hash = (hash ^ (unsigned char)path.p[i]) * 1099511628211ULL;
    return hash ? hash : 1;
}

/* Whether the path had another content before. What does not fit the table is taken for new: the
 * hash in the rule still holds. */
static bool was_another(struct callers *callers, const struct handover_program *program)
{
    uint64_t path = hash_path(program->path);
    uint64_t at = path & (SEEN_SLOTS - 1);

    if (!callers->seen)
        callers->seen = xcalloc(SEEN_SLOTS, sizeof *callers->seen);
    while (callers->seen[at].path && callers->seen[at].path != path)
        at = (at + 1) & (SEEN_SLOTS - 1);
    if (callers->seen[at].path)
        return !hash_is_same(&callers->seen[at].content, &program->hash);
    if (callers->seen_n < PROGRAMS_SEEN_MAX) {
        callers->seen[at] = (struct seen){path, program->hash};
        callers->seen_n++;
    }
    return false;
}

static bool is_known(const struct handover_program *program)
{
    return (program->flags & HANDOVER_HASHED) && !(program->flags & HANDOVER_NO_PATH);
}

static unsigned flags_of(struct callers *callers, const struct handover_caller *said)
{
    bool complete = !(said->flags & (CALLER_ANCESTORS_CUT | CALLER_ANCESTOR_LOST));
    unsigned flags = 0;

    for (uint32_t i = 0; i < said->ancestor_n; i++)
        complete = complete && is_known(&said->ancestors[i]);
    if (is_known(&said->exe))
        flags |= NET_CALLER_KNOWN;
    if (complete)
        flags |= NET_CALLER_COMPLETE;
    if ((said->exe.flags & HANDOVER_UNNAMED) ||
        (is_known(&said->exe) && was_another(callers, &said->exe)))
        flags |= NET_CALLER_REPLACED;
    return flags;
}

static struct net_program put_program(const struct handover_program *from, char **text)
{
    struct net_program program = {
        {*text, from->path.n},
        from->hash
    };

    if (from->path.n)
        memcpy(*text, from->path.p, from->path.n);
    *text += from->path.n;
    return program;
}

/* The caller, its ancestors and all texts in one piece of memory. */
static struct caller *caller_new(struct callers *callers, const struct handover_caller *said)
{
    size_t texts = said->exe.path.n + said->script.path.n;
    struct net_program *ancestors;
    struct caller *caller;
    char *text;

    for (uint32_t i = 0; i < said->ancestor_n; i++)
        texts += said->ancestors[i].path.n;
    caller = xcalloc(1, sizeof *caller + said->ancestor_n * sizeof *ancestors + texts);
    ancestors = (struct net_program *)(caller + 1);
    text = (char *)(ancestors + said->ancestor_n);
    caller->pid = said->pid;
    caller->who.flags = flags_of(callers, said);
    caller->who.exe = put_program(&said->exe, &text);
    if (said->flags & CALLER_HAS_SCRIPT)
        caller->who.script = put_program(&said->script, &text);
    for (uint32_t i = 0; i < said->ancestor_n; i++)
        ancestors[i] = put_program(&said->ancestors[i], &text);
    caller->who.ancestors = ancestors;
    caller->who.ancestor_n = said->ancestor_n;
    return caller;
}

/* ---- adding and claiming ---- */

static bool is_same_program(const struct net_program *a, const struct net_program *b)
{
    return str_eq(a->path, b->path) && hash_is_same(&a->hash, &b->hash);
}

static bool is_same(const struct caller *a, const struct caller *b)
{
    if (a->who.flags != b->who.flags || a->who.ancestor_n != b->who.ancestor_n ||
        !is_same_program(&a->who.exe, &b->who.exe) ||
        !is_same_program(&a->who.script, &b->who.script))
        return false;
    for (size_t i = 0; i < a->who.ancestor_n; i++)
        if (!is_same_program(&a->who.ancestors[i], &b->who.ancestors[i]))
            return false;
    return true;
}

static void drop_oldest(struct callers *callers)
{
    struct entry *entry = &callers->ring[callers->tail++ % CALLERS_MAX];

    if (entry->cookie)
        caller_free(take_out(callers, find(callers, entry->cookie)));
}

static void drop_expired(struct callers *callers, uint64_t now_ms)
{
    while (callers->tail < callers->head) {
        const struct entry *entry = &callers->ring[callers->tail % CALLERS_MAX];

        if (entry->cookie && now_ms - entry->at_ms < CALLERS_MS)
            return;
        drop_oldest(callers);
    }
}

void callers_add(struct callers *callers, const struct handover_caller *said, uint64_t now_ms)
{
    struct caller *caller = caller_new(callers, said);
    uint32_t slot;
    size_t place;

    drop_expired(callers, now_ms);
    slot = find(callers, said->cookie);
    if (callers->index[slot]) {
        struct entry *entry = &callers->ring[callers->index[slot] - 1U];

        entry->ambiguous = entry->ambiguous || !is_same(entry->caller, caller);
        caller_free(caller);
        return;
    }
    if (callers->head - callers->tail == CALLERS_MAX) {
        drop_oldest(callers);
        slot = find(callers, said->cookie);
    }
    place = callers->head++ % CALLERS_MAX;
    callers->ring[place] = (struct entry){said->cookie, now_ms, caller, false};
    callers->index[slot] = (uint16_t)(place + 1);
}

struct caller *callers_claim(struct callers *callers, uint64_t cookie, uint64_t now_ms)
{
    uint32_t slot;
    bool ambiguous;
    struct caller *caller;

    drop_expired(callers, now_ms);
    slot = find(callers, cookie);
    if (!callers->index[slot])
        return NULL;
    ambiguous = callers->ring[callers->index[slot] - 1U].ambiguous;
    caller = take_out(callers, slot);
    if (ambiguous)
        caller->who.flags |= NET_CALLER_AMBIGUOUS;
    return caller;
}
