/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/egress/events.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/memory.h"
#include "lib/egress/control-wire.h"

static const struct {
    int uid;
    const char *name;
} classes[] = {
    [EVENT_CONNECTION] = {4001, "Network Activity" },
    [EVENT_REQUEST] = {4002, "HTTP Activity"    },
    [EVENT_NAME] = {4003, "DNS Activity"     },
    [EVENT_RULES] = {3004, "Entity Management"},
};

#define SEVERITY_INFORMATIONAL 1
#define SEVERITY_MEDIUM 3

/* ---- one event ---- */

static void put_said(struct arena *mem, struct json *object, const char *key, struct str said,
                     size_t most)
{
    char text[SAID_PATH_MAX + 1];
    size_t n = said.n < most ? said.n : most;

    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++)
        text[i] = (char)(said.p[i] > ' ' && said.p[i] < 0x7f ? said.p[i] : '?');
    json_put(object, key, json_text(mem, (struct str){text, n}));
}

static struct json *event_json(const struct event *event, uint64_t number, struct arena *mem)
{
    struct json *object = json_object(mem);
    char time[TIMESTAMP_BYTES];

    clock_timestamp(time);
    json_put_int(mem, object, "number", (int64_t)number);
    json_put_text(mem, object, "time", time);
    json_put_int(mem, object, "class_uid", classes[event->class].uid);
    json_put_text(mem, object, "class_name", classes[event->class].name);
    json_put_text(mem, object, "disposition", event->allowed ? "Allowed" : "Blocked");
    json_put_int(mem, object, "severity_id",
                 event->allowed ? SEVERITY_INFORMATIONAL : SEVERITY_MEDIUM);
    json_put_text(mem, object, "sandbox", event->sandbox);
    put_said(mem, object, "host", event->host, SAID_HOST_MAX);
    if (event->port)
        json_put_int(mem, object, "port", event->port);
    put_said(mem, object, "method", event->method, SAID_METHOD_MAX);
    put_said(mem, object, "path", event->path, SAID_PATH_MAX);
    if (event->rule && *event->rule)
        json_put_text(mem, object, "rule", event->rule);
    if (event->reason && *event->reason)
        json_put_text(mem, object, "reason", event->reason);
    put_said(mem, object, "binary", event->binary, SAID_BINARY_MAX);
    if (event->status)
        json_put_int(mem, object, "status", event->status);
    return object;
}

/* ---- the journal ---- */

int events_open(struct events *events, int dir_fd, struct err *err)
{
    static const char *const names[] = {"journal.0", "journal.1"};
    struct stat st[2];

    *events = (struct events){.next = 1};
    for (unsigned i = 0; i < COUNT(names); i++) {
        events->journal[i] =
            openat(dir_fd, names[i], O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (events->journal[i] < 0 || fstat(events->journal[i], &st[i]) < 0)
            return err_os(err, "opening %s", names[i]);
    }
    events->turn = st[1].st_mtim.tv_sec > st[0].st_mtim.tv_sec;
    events->size = (uint64_t)st[events->turn].st_size;
    return 0;
}

/* A journal that cannot be written is no reason to stop: counts are what receipts are made of. */
static void write_line(struct events *events, struct str line)
{
    struct err err;

    if (events->size + line.n > JOURNAL_MAX) {
        events->turn = !events->turn;
        events->size = 0;
        if (ftruncate(events->journal[events->turn], 0) < 0)
            return;
    }
    if (write_all(events->journal[events->turn], line.p, line.n, &err) == 0)
        events->size += line.n;
}

void events_add(struct events *events, const struct event *event)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    AUTO_BUF struct buf line = BUF(EVENT_MAX);
    char **place = &events->ring[events->next % EVENTS_KEPT];
    struct err err;

    if (json_compact(event_json(event, events->next, &mem), &line, &err) < 0 ||
        buf_add_byte(&line, '\n', &err) < 0)
        return; /* cannot be: every text in it is cut and escaped */
    write_line(events, buf_str(&line));
    free(*place);
    line.p[line.n - 1] = '\0';
    *place = buf_take(&line, &(size_t){0});
    events->next++;
}

/* ---- telling ---- */

int events_json(const struct events *events, uint64_t after, struct buf *out, struct err *err)
{
    uint64_t oldest = events->next > EVENTS_KEPT ? events->next - EVENTS_KEPT : 1;
    uint64_t first = after + 1 > oldest ? after + 1 : oldest;
    uint64_t at = first;

    if (buf_add_text(out, "{\"events\":[", err) < 0)
        return -1;
    for (; at < events->next; at++) {
        const char *text = events->ring[at % EVENTS_KEPT];

        if (out->n + strlen(text) + 128 > out->max)
            break;
        if ((at > first && buf_add_byte(out, ',', err) < 0) || buf_add_text(out, text, err) < 0)
            return -1;
    }
    return buf_addf(out, err, "],\"next\":%llu,\"lost\":%llu}", (unsigned long long)(at - 1),
                    (unsigned long long)(after < oldest - 1 ? oldest - 1 - after : 0));
}

/* Marks stand in a line only as we wrote them: what a sandbox said has its quotes escaped. */
int events_denials(const struct events *events, const char *sandbox, unsigned last, struct buf *out,
                   struct err *err)
{
    uint64_t oldest = events->next > EVENTS_KEPT ? events->next - EVENTS_KEPT : 1;
    char mark[EGRESS_NAME_BYTES + 32];
    unsigned told = 0;

    (void)snprintf(mark, sizeof mark, "\"sandbox\":\"%s\"", sandbox);
    if (buf_add_byte(out, '[', err) < 0)
        return -1;
    for (uint64_t at = events->next; at-- > oldest && told < last;) {
        const char *text = events->ring[at % EVENTS_KEPT];

        if (!strstr(text, "\"disposition\":\"Blocked\"") || !strstr(text, mark) ||
            out->n + strlen(text) + 128 > out->max)
            continue;
        if ((told++ && buf_add_byte(out, ',', err) < 0) || buf_add_text(out, text, err) < 0)
            return -1;
    }
    return buf_add_byte(out, ']', err);
}
