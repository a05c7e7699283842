/* SPDX-License-Identifier: Apache-2.0 */

/* Sessions as others read them: JSON, events, turns. */

#include "flow/advise/parts.h"

#include <fcntl.h>
#include <string.h>

#include "lib/base/io.h"

bool advise_is_clean(const struct advise_tally *tally)
{
    for (int i = 0; i < ADVISORY_CATEGORY_COUNT; i++)
        if (tally->counts[i])
            return false;
    return tally->invalid == 0;
}

struct json *advise_tally_json(struct arena *mem, const struct advise_tally *tally)
{
    struct json *json = json_object(mem);
    struct json *counts = json_object(mem);

    for (int i = 0; i < ADVISORY_CATEGORY_COUNT; i++)
        json_put_int(mem, counts, advisory_category_name((enum advisory_category)i),
                     (int64_t)tally->counts[i]);
    json_put_int(mem, json, "compliance", tally->compliance);
    json_put(json, "counts", counts);
    json_put_text(mem, json, "drift", advisory_drift_code(tally->drift));
    json_put_bool(mem, json, "ended", tally->is_ended);
    json_put_int(mem, json, "envelopes_invalid", (int64_t)tally->invalid);
    json_put_int(mem, json, "events", (int64_t)tally->events);
    json_put_text(mem, json, "head_hash", tally->head);
    json_put_int(mem, json, "labels_low", (int64_t)tally->labels_low);
    json_put_int(mem, json, "prompts", (int64_t)tally->prompts);
    json_put_int(mem, json, "turns", (int64_t)tally->turns);
    return json;
}

struct json *advise_json(struct arena *mem, const struct advise *advise)
{
    struct json *json = advise_tally_json(mem, &advise->tally);

    json_put_text(mem, json, "agent_id", advise->terms.agent_id);
    json_put_text(mem, json, "agent_version", advise->terms.agent_version);
    json_put_text(mem, json, "channel", advise->terms.channel);
    json_put_bool(mem, json, "constitution_first", advise->tally.has_constitution);
    json_put_text(mem, json, "constitution_sha256", advise->constitution_sha256);
    json_put_int(mem, json, "created_at", advise->created_at);
    json_put_text(mem, json, "ended_by", advise->tally.ended_by);
    json_put_text(mem, json, "evidence",
                  advise_is_claimed(advise->terms.channel) ? "claimed" : "observed");
    json_put_bool(mem, json, "lost",
                  advise->tally.is_ended && advise_is_lost(advise->terms.channel, &advise->tally));
    json_put_text(mem, json, "profile", advise_profile(&advise->terms));
    json_put_text(mem, json, "requester", advise->terms.requester);
    json_put_text(mem, json, "run_id", advise->id);
    json_put_int(mem, json, "turns_max", advise->terms.turns_max);
    return json;
}

const char *advise_profile(const struct advise_terms *terms)
{
    return terms->strict_seed ? "strict-seed" : "default";
}

bool advise_is_claimed(const char *channel)
{
    return strcmp(channel, "box") != 0;
}

bool advise_is_lost(const char *channel, const struct advise_tally *tally)
{
    return !advise_is_claimed(channel) && !tally->is_box_gone;
}

static int read_file(const struct advise *advise, const char *name, size_t max, struct buf *out,
                     struct err *err)
{
    *out = BUF(max);
    if (faccessat(advise->dir_fd, name, F_OK, 0) < 0)
        return 0; /* nothing was said yet */
    return file_read(advise->dir_fd, name, out, err);
}

int advise_events(struct advise *advise, uint64_t after, unsigned limit,
                  int (*visit)(void *context, const struct json *event, struct err *err),
                  void *context, struct err *err)
{
    AUTO_BUF struct buf text = BUF(0);
    struct str rest;
    uint64_t seq = 0;

    if (read_file(advise, "events.jsonl", ADVISE_EVENTS_BYTES_MAX, &text, err) < 0)
        return -1;
    rest = buf_str(&text);
    while (rest.n && seq < after + limit) {
        AUTO_ARENA struct arena mem = ARENA(1024UL * 1024);
        struct str line = str_cut(&rest, '\n');
        const struct json *event = NULL;
        struct mark where;

        seq++;
        if (seq <= after)
            continue;
        if (json_parse(&mem, line, &event, &where, err) < 0 || visit(context, event, err) < 0)
            return -1;
    }
    return 0;
}

int advise_turns(struct advise *advise,
                 int (*visit)(void *context, const struct advise_said *said, struct err *err),
                 void *context, struct err *err)
{
    AUTO_BUF struct buf text = BUF(0);
    struct str rest;

    if (read_file(advise, "turns.jsonl", 2 * ADVISE_TURNS_BYTES_MAX, &text, err) < 0)
        return -1;
    rest = buf_str(&text);
    while (rest.n) {
        AUTO_ARENA struct arena mem = ARENA(64UL * 1024 * 1024);
        struct str line = str_cut(&rest, '\n');
        struct advise_said said = {0};
        const struct json *json = NULL;
        struct str by = {0};
        struct mark where;
        int64_t turn = 0;

        if (json_parse(&mem, line, &json, &where, err) < 0)
            return err_in(err, "turns of session %s", advise->id);
        (void)json_is_int(json_get(json, "turn"), &turn);
        (void)json_is_text(json_get(json, "by"), &by);
        (void)json_is_text(json_get(json, "text"), &said.text);
        said.turn = (uint64_t)turn;
        said.by_agent = str_is(by, "agent");
        if (visit(context, &said, err) < 0)
            return -1;
    }
    return 0;
}
