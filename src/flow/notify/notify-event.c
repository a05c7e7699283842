/* SPDX-License-Identifier: Apache-2.0 */

/* What is told. Everything about the request is the requester's word, so it is escaped and short;
 * whoever wants all of it asks Brig. */

#include "flow/notify/notify-private.h"

#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/limits.h"
#include "lib/base/text.h"
#include "lib/json/json.h"

#define SUMMARY_MAX 200
#define MORE "…"
#define ESCAPED_GROWTH_MAX 16

static const char *moment(struct arena *mem, int64_t at)
{
    char text[32] = "";
    time_t seconds = (time_t)at;
    struct tm parts;

    if (gmtime_r(&seconds, &parts))
        (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return arena_text(mem, str_of(text));
}

/* At most SUMMARY_MAX bytes, cut between characters. */
static const char *shortened(struct arena *mem, struct str text)
{
    size_t n = SUMMARY_MAX - (sizeof MORE - 1);

    if (text.n <= SUMMARY_MAX)
        return arena_text(mem, text);
    while (n && (text.p[n] & 0xc0) == 0x80)
        n--;
    return arena_printf(mem, STR_FMT MORE, STR_ARG(((struct str){text.p, n})));
}

/* No more than could be shown is escaped. */
static const char *escaped(struct arena *mem, struct str text)
{
    AUTO_BUF struct buf shown = BUF(ESCAPED_GROWTH_MAX * (SUMMARY_MAX + 8));
    struct str some = {text.p, text.n < SUMMARY_MAX + 4 ? text.n : SUMMARY_MAX + 4};
    struct err ignored;

    while (some.n < text.n && some.n && (text.p[some.n] & 0xc0) == 0x80)
        some.n--;
    return text_escape(some, &shown, &ignored) < 0 ? "" : shortened(mem, buf_str(&shown));
}

static struct str word_of(const struct json *word)
{
    struct str text = STR_LIT("(bytes)");

    (void)json_is_text(word, &text);
    return text;
}

static const char *summary_of(struct arena *mem, const struct json *command)
{
    AUTO_BUF struct buf line = BUF(4 * KIB);
    struct err ignored;

    if (!command || command->kind != JSON_ARRAY)
        return "";
    json_each(word, command)
    {
        if (line.n > SUMMARY_MAX)
            break;
        if ((line.n && buf_add_byte(&line, ' ', &ignored) < 0) ||
            buf_add_text(&line, escaped(mem, word_of(word)), &ignored) < 0)
            break;
    }
    return shortened(mem, buf_str(&line));
}

static struct json *words_json(struct arena *mem, const struct notify_event *event)
{
    struct json *list = json_array(mem);

    for (size_t i = 0; i < event->word_n; i++) {
        const struct notify_word *word = &event->words[i];
        struct json *json = json_object(mem);

        json_put_text(mem, json, "by", escaped(mem, str_of(word->by)));
        json_put_bool(mem, json, "confirms", word->confirms);
        json_put_text(mem, json, "at", moment(mem, word->at));
        json_push(list, json);
    }
    return list;
}

static void put_subject(struct arena *mem, struct json *data, const char *subject)
{
    const struct json *json = NULL;
    struct mark where;
    struct err ignored;
    struct str text;

    if (!subject || json_parse(mem, str_of(subject), &json, &where, &ignored) < 0)
        return;
    if (json_is_text(json_get(json, "action"), &text))
        json_put_text(mem, data, "action", escaped(mem, text));
    json_put_text(mem, data, "summary", summary_of(mem, json_get(json, "command")));
    if (json_is_text(json_get(json, "rule"), &text))
        json_put_text(mem, data, "rule", escaped(mem, text));
}

static struct json *data_json(struct arena *mem, const struct notify_event *event)
{
    struct json *data = json_object(mem);

    json_put_text(mem, data, "id", event->id);
    if (event->run_id)
        json_put_text(mem, data, "run_id", event->run_id);
    if (event->agent_id)
        json_put_text(mem, data, "agent_id", escaped(mem, str_of(event->agent_id)));
    json_put_text(mem, data, "digest", event->digest);
    json_put_text(mem, data, "state", event->state);
    json_put_text(mem, data, "tenant", escaped(mem, str_of(event->tenant)));
    json_put_text(mem, data, "requester", escaped(mem, str_of(event->requester)));
    put_subject(mem, data, event->subject);
    json_put_text(mem, data, "expires_at", moment(mem, event->expires_at));
    json_put_int(mem, data, "quorum", event->quorum);
    json_put_int(mem, data, "confirmations", event->confirmations);
    json_put(data, "words", words_json(mem, event));
    return data;
}

int notify_event_text(const struct notify_event *event, struct buf *out, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    struct json *json = json_object(&mem);
    char now[TIMESTAMP_BYTES];

    clock_timestamp(now);
    json_put_text(&mem, json, "type", event->type);
    json_put_text(&mem, json, "timestamp", now);
    if (event->id)
        json_put(json, "data", data_json(&mem, event));
    else
        json_put(json, "data", json_object(&mem));
    return json_compact(json, out, err);
}
