/* SPDX-License-Identifier: Apache-2.0 */

/* Answers as they were said, with what the runtime knows of each: for those who govern, never for a
 * screen. The governance block is made here, of the chain; an agent that brings its own has said no
 * envelope, and its words are wrapped into one that says so. */

#include "flow/advise/parts.h"

#include <string.h>

#include "lib/base/limits.h"

#define TURN_MEMORY_MAX (64UL * 1024 * 1024)

struct gathering {
    uint64_t after;
    uint64_t until; /* the last turn that is wanted */
    int (*visit)(void *context, const struct json *turn, struct err *err);
    void *context;

    /* Of the turn whose findings are still to come. */
    struct arena mem;
    struct json *turn;
    struct json *events;
    int64_t findings;
};

static void gathering_done(struct gathering *gathering)
{
    arena_done(&gathering->mem);
}
#define AUTO_GATHERING __attribute__((cleanup(gathering_done)))

/* What an event says lives no longer than the event: it is written and read once more. */
static const struct json *own_json(struct arena *mem, const struct json *json)
{
    AUTO_BUF struct buf text = BUF(2 * ADVISORY_VALUE_MAX);
    const struct json *own = NULL;
    struct mark where;
    struct err err;

    return json_compact(json, &text, &err) == 0 &&
                   json_parse(mem, arena_str(mem, buf_str(&text)), &own, &where, &err) == 0
               ? own
               : json_object(mem);
}

static void take_members(struct arena *mem, struct json *to, const struct json *from,
                         const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct json *member = json_get(from, keys[i]);

        if (member)
            json_copy_member(mem, to, member);
    }
}

static struct json *drift_json(struct arena *mem, const struct json *event)
{
    struct json *json = json_object(mem);
    struct str code = {"", 0};
    int64_t compliance = 0, score = 0;

    (void)json_is_text(json_get(event, "drift"), &code);
    (void)json_is_int(json_get(event, "compliance"), &compliance);
    (void)json_is_int(json_get(event, "drift_thousands"), &score);
    json_put(json, "code", json_text(mem, code));
    json_put_int(mem, json, "compliance", compliance);
    json_put_int(mem, json, "score", score);
    return json;
}

static struct json *governance_json(struct arena *mem, const struct json *event,
                                    struct json *events)
{
    static const char *const keys[] = {"run_id", "seq", "constitution_sha256", "prev_hash", "hash"};
    struct json *json = json_object(mem);

    take_members(mem, json, event, keys, COUNT(keys));
    json_put(json, "drift", drift_json(mem, event));
    json_put(json, "events", events);
    return json;
}

/* What was no envelope, inside one. */
static struct json *wrapped(struct arena *mem, struct str text)
{
    static const char *const lists[] = {"facts", "hypotheses", "assumptions"};
    struct json *json = json_object(mem), *epistemic = json_object(mem);
    struct json *advisory = json_object(mem), *sandbox = json_object(mem);

    for (size_t i = 0; i < COUNT(lists); i++)
        json_put(epistemic, lists[i], json_array(mem));
    json_put_bytes(mem, advisory, "unstructured", text);
    json_put_bool(mem, sandbox, "actions_permitted", false);
    json_put_text(mem, sandbox, "reason", "Helix aligned sandbox mode");
    json_put(json, "epistemic", epistemic);
    json_put(json, "advisory", advisory);
    json_put(json, "sandbox", sandbox);
    json_put_text(mem, json, "client_view", advise_not_shown);
    return json;
}

static struct json *envelope_json(struct arena *mem, const struct advise_told *told, bool is_valid)
{
    const struct json *said = NULL;
    struct json *json = json_object(mem);
    struct mark where;
    struct err err;

    /* Valid once, it was read once: it can be read again. */
    if (!is_valid || json_parse(mem, arena_str(mem, told->text), &said, &where, &err) < 0)
        return wrapped(mem, told->text);
    json_each(member, said) json_copy_member(mem, json, member);
    return json;
}

static int emit(struct gathering *gathering, struct err *err)
{
    int failed = gathering->visit(gathering->context, gathering->turn, err);

    gathering->turn = NULL;
    arena_done(&gathering->mem);
    gathering->mem = ARENA(TURN_MEMORY_MAX);
    return failed;
}

static int begin_turn(struct gathering *gathering, const struct advise_told *told, struct err *err)
{
    struct arena *mem = &gathering->mem;
    const struct json *event = own_json(mem, told->event);
    struct json *envelope;
    bool is_valid = false;

    (void)json_is_bool(json_get(event, "valid"), &is_valid);
    (void)json_is_int(json_get(event, "findings"), &gathering->findings);
    gathering->turn = json_object(mem);
    gathering->events = json_array(mem);
    envelope = envelope_json(mem, told, is_valid);
    json_put(envelope, "governance", governance_json(mem, event, gathering->events));
    json_put(gathering->turn, "envelope", envelope);
    json_put_bool(mem, gathering->turn, "stored", told->is_stored);
    json_put_int(mem, gathering->turn, "turn", (int64_t)told->turn);
    json_put_bool(mem, gathering->turn, "valid", is_valid);
    json_put_bool(mem, gathering->turn, "whole", told->is_whole);
    return gathering->findings > 0 ? 0 : emit(gathering, err);
}

static int add_finding(struct gathering *gathering, const struct advise_told *told, struct err *err)
{
    static const char *const keys[] = {"category", "drift", "rule",    "seq",
                                       "severity", "span",  "verdict", "where"};
    struct arena *mem = &gathering->mem;
    struct json *one = json_object(mem);

    take_members(mem, one, own_json(mem, told->event), keys, COUNT(keys));
    json_push(gathering->events, one);
    return --gathering->findings > 0 ? 0 : emit(gathering, err);
}

static int on_told(void *context, const struct advise_told *told, struct err *err)
{
    struct gathering *gathering = context;

    if (gathering->turn && told->kind == ADVISE_TOLD_FINDING)
        return add_finding(gathering, told, err);
    if (told->kind != ADVISE_TOLD_TURN || told->turn <= gathering->after ||
        told->turn > gathering->until)
        return 0;
    return begin_turn(gathering, told, err);
}

int advise_envelopes(const struct advise *advise, uint64_t after, unsigned limit,
                     int (*visit)(void *context, const struct json *turn, struct err *err),
                     void *context, struct err *err)
{
    AUTO_GATHERING struct gathering gathering = {.after = after,
                                                 .until = after + limit,
                                                 .visit = visit,
                                                 .context = context,
                                                 .mem = ARENA(TURN_MEMORY_MAX)};

    return advise_tell(advise, on_told, &gathering, err);
}
