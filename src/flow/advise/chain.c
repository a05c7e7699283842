/* SPDX-License-Identifier: Apache-2.0 */

/* Telemetry, one event a line. hash = SHA-256("brig/advisory-event/1", NUL, the line's canonical
 * JSON without "hash"), and prev_hash is in there: nothing can be changed, moved or left out in the
 * middle. That the end is the end says the ledger. */

#include "flow/advise/parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/base/io.h"

#define DOMAIN "brig/advisory-event/1"
#define COMPLIANCE_LEAST 95

/* Whoever holds a session adds a turn or does what was confirmed. One that is stopped meanwhile
 * must not stop those who wait. */
#define HOLD_WAIT_MS 5000

static void hash_event(struct str body, struct hash *out)
{
    struct hasher hasher;

    hasher_init(&hasher);
    hasher_add(&hasher, DOMAIN, sizeof DOMAIN); /* with its NUL */
    hasher_add(&hasher, body.p, body.n);
    hasher_end(&hasher, out);
}

/* ---- what is known of it ---- */

void tally_begin(struct advise_tally *tally)
{
    *tally = (struct advise_tally){.compliance = 100};
    hash_text(&(struct hash){{0}}, tally->head);
}

static bool text_of(const struct json *event, const char *key, struct str *out)
{
    return json_is_text(json_get(event, key), out);
}

static void count(struct advise_tally *tally, enum advisory_category category, uint64_t n)
{
    tally->counts[category] += n;
    if (!tally->first[category])
        tally->first[category] = tally->events;
}

static void tally_finding(struct advise_tally *tally, const struct json *event)
{
    struct str name = {0}, drift = {0};
    int64_t attempts = 0;

    (void)text_of(event, "category", &name);
    (void)json_is_int(json_get(event, "attempts"), &attempts);
    (void)text_of(event, "drift", &drift);
    for (int i = 0; i < ADVISORY_CATEGORY_COUNT; i++)
        if (str_is(name, advisory_category_name((enum advisory_category)i)))
            count(tally, (enum advisory_category)i, attempts > 1 ? (uint64_t)attempts : 1);
    for (enum advisory_drift d = tally->drift; d <= DRIFT_CONSTITUTIONAL; d++)
        if (str_is(drift, advisory_drift_code(d)))
            tally->drift = d;
}

static void tally_turn(struct advise_tally *tally, const struct json *event)
{
    int64_t compliance = 0, unlisted = 0;
    bool valid = false, closes = false;

    (void)json_is_bool(json_get(event, "valid"), &valid);
    (void)json_is_bool(json_get(event, "closes"), &closes);
    (void)json_is_int(json_get(event, "compliance"), &compliance);
    (void)json_is_int(json_get(event, "unlisted"), &unlisted);
    tally->turns++;
    tally->answered += closes;
    tally->invalid += !valid;
    tally->labels_low += valid && compliance < COMPLIANCE_LEAST;
    if (valid && compliance < (int64_t)tally->compliance)
        tally->compliance = (unsigned)compliance;
    /* More was found than is listed: it counts where it weighs most. */
    if (unlisted > 0)
        count(tally, ADVISORY_IS_STRUCTURE, (uint64_t)unlisted);
}

static void tally_event(struct advise *advise, const struct json *event)
{
    struct advise_tally *tally = &advise->tally;
    struct str kind = {0}, hash = {0}, why = {0};

    (void)text_of(event, "kind", &kind);
    if (str_is(kind, "constitution") && text_of(event, "constitution_sha256", &hash))
        tally->has_constitution =
            tally->turns == 0 && tally->prompts == 0 && str_is(hash, advise->constitution_sha256);
    if (str_is(kind, "prompt"))
        tally->prompts++;
    if (str_is(kind, "turn"))
        tally_turn(tally, event);
    if (str_is(kind, "finding"))
        tally_finding(tally, event);
    if (str_is(kind, "box"))
        tally->is_box_gone = true;
    if (str_is(kind, "end")) {
        tally->is_ended = true;
        (void)text_of(event, "why", &why);
        (void)snprintf(tally->ended_by, sizeof tally->ended_by, STR_FMT, STR_ARG(why));
    }
    (void)json_is_int(json_get(event, "at"), &tally->last_at);
}

/* ---- reading ---- */

static int broken(const struct advise *advise, const char *what, struct err *err)
{
    return err_set(err, ERR_INTEGRITY, "telemetry of session %s, event %llu: %s", advise->id,
                   (unsigned long long)advise->tally.events + 1, what);
}

static bool says(const struct json *event, const char *key, const char *wanted)
{
    struct str text = {0};

    return text_of(event, key, &text) && str_is(text, wanted);
}

static bool counts(const struct json *event, const char *key, int64_t wanted)
{
    int64_t number = 0;

    return json_is_int(json_get(event, key), &number) && number == wanted;
}

/* Who let the agent run, by which rules it was judged, how many turns and how much time it had. */
static bool starts_session(const struct advise *advise, const struct json *event)
{
    const struct advise_terms *terms = &advise->terms;

    return says(event, "channel", terms->channel) && says(event, "requester", terms->requester) &&
           says(event, "profile", advise_profile(terms)) &&
           counts(event, "turns_max", terms->turns_max) &&
           counts(event, "created_at", advise->created_at) &&
           counts(event, "deadline_s", terms->deadline_s) &&
           counts(event, "idle_s", terms->idle_s) && counts(event, "action_s", terms->action_s);
}

/* session.json is no link of a chain: it is believed as far as the events say the same. */
static bool is_of_session(const struct advise *advise, const struct json *event)
{
    const struct advise_terms *terms = &advise->terms;

    if (!says(event, "run_id", advise->id) || !says(event, "agent_id", terms->agent_id) ||
        !says(event, "agent_version", terms->agent_version) ||
        !says(event, "constitution_sha256", advise->constitution_sha256))
        return false;
    return !says(event, "kind", "start") || starts_session(advise, event);
}

/* The line without its last member in canonical order would do; it is written again instead, so
 * that only one form of it can hold. */
static int body_of(struct arena *mem, const struct json *event, struct buf *out, struct err *err)
{
    struct json *body = json_object(mem);

    json_each(member, event) if (!str_is(member->key, "hash")) json_copy_member(mem, body, member);
    return json_canonical(body, out, err);
}

int chain_line(struct advise *advise, struct arena *mem, struct str line, const struct json **out,
               struct err *err)
{
    AUTO_BUF struct buf body = BUF(EVENT_LINE_MAX);
    struct advise_tally *tally = &advise->tally;
    const struct json *event = NULL;
    struct str prev = {0}, said = {0};
    struct hash hash, claimed;
    struct mark where;
    int64_t seq = 0;

    if (json_parse(mem, line, &event, &where, err) < 0 || event->kind != JSON_OBJECT)
        return broken(advise, "it is no event", err);
    if (!json_is_int(json_get(event, "seq"), &seq) || seq != (int64_t)tally->events + 1)
        return broken(advise, "its number is another one: an event is missing or moved", err);
    if (!text_of(event, "prev_hash", &prev) || !str_is(prev, tally->head))
        return broken(advise, "it does not follow the one before it", err);
    if (body_of(mem, event, &body, err) < 0)
        return -1;
    hash_event(buf_str(&body), &hash);
    if (!text_of(event, "hash", &said) || !hash_from_text(said, &claimed) ||
        !hash_is_same(&hash, &claimed))
        return broken(advise, "it was changed", err);
    if (!is_of_session(advise, event))
        return broken(advise, "it is of another session than session.json says", err);
    tally->events++;
    hash_text(&hash, tally->head);
    tally_event(advise, event);
    if (out)
        *out = event;
    return 0;
}

static int read_lines(struct advise *advise, struct str rest, struct err *err)
{
    while (rest.n) {
        AUTO_ARENA struct arena mem = ARENA(1024UL * 1024);
        const char *end = memchr(rest.p, '\n', rest.n);
        struct str line = rest;

        /* Whoever wrote it died over it, and told nobody that it was written. */
        if (!end)
            return ftruncate(advise->events_fd, (off_t)advise->events_bytes) < 0
                       ? err_os(err, "cutting off half an event")
                       : 0;
        line = str_cut(&rest, '\n');
        if (line.n > EVENT_LINE_MAX)
            return broken(advise, "its line is too long", err);
        if (chain_line(advise, &mem, line, NULL, err) < 0)
            return -1;
        advise->events_bytes += line.n + 1;
    }
    return 0;
}

int chain_read(struct advise *advise, struct err *err)
{
    AUTO_BUF struct buf text = BUF(ADVISE_EVENTS_BYTES_MAX);
    struct stat st;

    if (fstat(advise->events_fd, &st) < 0)
        return err_os(err, "looking at the telemetry of session %s", advise->id);
    if ((uint64_t)st.st_size < advise->events_bytes)
        return broken(advise, "what was there is gone", err);
    if ((uint64_t)st.st_size == advise->events_bytes)
        return 0;
    if (lseek(advise->events_fd, (off_t)advise->events_bytes, SEEK_SET) < 0)
        return err_os(err, "reading the telemetry of session %s", advise->id);
    if (read_all(advise->events_fd, &text, err) < 0)
        return err_in(err, "the telemetry of session %s", advise->id);
    return read_lines(advise, buf_str(&text), err);
}

/* ---- writing ---- */

static void put_finding(struct arena *mem, struct json *json, const struct advisory_finding *found)
{
    struct json *span = json_object(mem);

    json_put_text(mem, json, "category", advisory_category_name(found->category));
    json_put_text(mem, json, "drift", advisory_drift_code(found->drift));
    json_put(json, "excerpt", json_text(mem, found->excerpt));
    json_put_text(mem, json, "rule", found->rule);
    json_put_text(mem, json, "severity", advisory_drift_severity(found->drift));
    json_put_int(mem, span, "end", (int64_t)found->span.end);
    json_put_int(mem, span, "start", (int64_t)found->span.start);
    json_put(json, "span", span);
    json_put_text(mem, json, "verdict", advisory_verdict_name(found->verdict));
    json_put_text(mem, json, "where", found->where ? found->where : "");
}

static struct json *event_json(const struct advise *advise, struct arena *mem,
                               const struct event *event)
{
    struct json *json = json_object(mem);
    char ts[TIMESTAMP_BYTES];

    clock_timestamp(ts);
    json_put_text(mem, json, "agent_id", advise->terms.agent_id);
    json_put_text(mem, json, "agent_version", advise->terms.agent_version);
    json_put_int(mem, json, "at", now_s());
    json_put_text(mem, json, "constitution_sha256", advise->constitution_sha256);
    json_put_text(mem, json, "kind", event->kind);
    json_put_text(mem, json, "prev_hash", advise->tally.head);
    json_put_text(mem, json, "run_id", advise->id);
    json_put_int(mem, json, "seq", (int64_t)advise->tally.events + 1);
    json_put_text(mem, json, "ts", ts);
    json_put_int(mem, json, "v", 1);
    if (event->finding)
        put_finding(mem, json, event->finding);
    if (event->more)
        json_each(member, event->more) json_copy_member(mem, json, member);
    return json;
}

bool chain_has_room(const struct advise *advise)
{
    return advise->tally.events + ADVISE_EVENTS_ROOM <= ADVISE_EVENTS_MAX &&
           advise->events_bytes + ADVISE_EVENTS_BYTES_ROOM <= ADVISE_EVENTS_BYTES_MAX;
}

int chain_add(struct advise *advise, const struct event *event, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(1024UL * 1024);
    AUTO_BUF struct buf line = BUF(EVENT_LINE_MAX);
    struct json *json = event_json(advise, &mem, event);
    char text[HASH_TEXT_BYTES];
    struct hash hash;

    if (advise->tally.events >= ADVISE_EVENTS_MAX ||
        advise->events_bytes + EVENT_LINE_MAX > ADVISE_EVENTS_BYTES_MAX)
        return err_set(err, ERR_LIMIT, "session %s has %llu events, which is all it can have",
                       advise->id, (unsigned long long)advise->tally.events);
    if (json_canonical(json, &line, err) < 0)
        return err_in(err, "writing an event");
    hash_event(buf_str(&line), &hash);
    hash_text(&hash, text);
    json_put_text(&mem, json, "hash", text);
    buf_clear(&line);
    if (json_canonical(json, &line, err) < 0 || buf_add_byte(&line, '\n', err) < 0 ||
        lseek(advise->events_fd, (off_t)advise->events_bytes, SEEK_SET) < 0 ||
        write_all(advise->events_fd, line.p, line.n, err) < 0) {
        (void)!ftruncate(advise->events_fd, (off_t)advise->events_bytes); /* or the next one does */
        return err_in(err, "writing an event");
    }
    return read_lines(advise, buf_str(&line), err);
}

int chain_sync(struct advise *advise, struct err *err)
{
    if (fdatasync(advise->events_fd) < 0)
        return err_os(err, "keeping the telemetry of session %s", advise->id);
    return 0;
}

/* ---- whose turn it is ---- */

int hold_take(struct advise *advise, struct hold *out, struct err *err)
{
    if (!lock_wait(advise->events_fd, LOCK_EX, HOLD_WAIT_MS))
        return errno == EWOULDBLOCK
                   ? err_set(err, ERR_UNAVAILABLE,
                             "somebody else has held session %s for %d seconds; try again",
                             advise->id, HOLD_WAIT_MS / 1000)
                   : err_os(err, "waiting for session %s", advise->id);
    out->advise = advise;
    return chain_read(advise, err);
}

void hold_end(struct hold *hold)
{
    if (hold->advise)
        (void)flock(hold->advise->events_fd, LOCK_UN);
    hold->advise = NULL;
}

int advise_refresh(struct advise *advise, struct err *err)
{
    AUTO_HOLD struct hold hold = {0};

    return hold_take(advise, &hold, err);
}
