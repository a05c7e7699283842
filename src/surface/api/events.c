/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/api/events.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "surface/api/api-private.h"
#include "surface/api/stream.h"

int events_open(struct call *call, struct events *out, struct err *err)
{
    struct stream_config config = {.frame = FRAME_RAW, .sources = 1};
    int fds[STREAM_SOURCES];

    *out = (struct events){.call = call, .fd = -1};
    out->is_sse = strstr(call->accept, "text/event-stream") != NULL;
    if (!out->is_sse && !strstr(call->accept, "application/x-ndjson"))
        return 0;
    config.type = out->is_sse ? HTTP_SSE_TYPE : "application/x-ndjson";
    if (stream_open(call, &config, fds, err) < 0)
        return -1;
    out->fd = fds[0];
    return 0;
}

/* {"event":NAME, …} as a line, or as an event. */
static int frame(const struct events *events, const char *name, const struct json *members,
                 struct arena *mem, struct buf *out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(API_ANSWER_MAX);
    struct json *event = json_object(mem);

    json_put_text(mem, event, "event", name);
    for (const struct json *member = members ? members->first : NULL; member;
         member = member->next) {
        struct json *copy = arena_new(mem, struct json);

        *copy = *member;
        copy->next = NULL;
        json_put(event, arena_text(mem, member->key), copy);
    }
    if (json_compact(event, &text, err) < 0)
        return -1;
    if (events->is_sse)
        return http_sse_write(str_of(name), STR_LIT(""), buf_str(&text), out, err);
    return buf_add_str(out, buf_str(&text), err) < 0 ? -1 : buf_add_byte(out, '\n', err);
}

/* Nothing of an event that does not fit is written: pipes take so much whole or not at all. */
void events_tell(struct events *events, const char *name, struct json *members)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    AUTO_BUF struct buf out = BUF(PIPE_BUF);
    struct err ignored;

    if (events->fd < 0 || frame(events, name, members, &mem, &out, &ignored) < 0)
        return;
    (void)fcntl(events->fd, F_SETFL, O_NONBLOCK);
    (void)!write(events->fd, out.p, out.n);
    (void)fcntl(events->fd, F_SETFL, 0);
}

void events_close(struct events *events, const struct err *failure)
{
    struct call *call = events->call;
    AUTO_BUF struct buf out = BUF(2 * API_ANSWER_MAX);
    const struct json *answer = NULL;
    struct mark where;
    struct err err;

    if (events->fd < 0)
        return;
    if (failure)
        call_fail(call, failure);
    if (json_parse(&call->mem, buf_str(&call->answer), &answer, &where, &err) == 0 &&
        frame(events, failure ? "error" : "done", answer, &call->mem, &out, &err) == 0)
        call->told = write_all(events->fd, out.p, out.n, &err) == 0;
    (void)close(events->fd);
    events->fd = -1;
}
