/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/image/worker.h"

#include "lib/base/limits.h"
#include "lib/image/wire.h"
#include "lib/linux/fd-pass.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define TELL_EVERY_US 100000U

static int send_event(const struct json *event, struct err *err)
{
    AUTO_BUF struct buf text = BUF(IMAGE_EVENT_MAX);

    if (json_compact(event, &text, err) < 0)
        return -1;
    if (send(IMAGE_FD_EVENTS, text.p, text.n, MSG_NOSIGNAL) != (ssize_t)text.n)
        return err_os(err, "telling brig");
    return 0;
}

void event_progress(struct job *job, const char *what, uint64_t done, uint64_t total)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    struct json *event;
    uint64_t now = clock_us();
    struct err ignored;

    if (job->moved) {
        *job->moved = done;
        return;
    }
    if (now - job->told_us < TELL_EVERY_US)
        return;
    job->told_us = now;
    event = json_object(&mem);
    json_put_text(&mem, event, "event", "progress");
    json_put_text(&mem, event, "what", what);
    json_put_int(&mem, event, "done", (int64_t)done);
    json_put_int(&mem, event, "total", (int64_t)total);
    (void)send_event(event, &ignored); /* brig being gone ends us anyway */
}

int event_done(struct job *job, struct json *result, struct err *err)
{
    struct json *event = json_object(&job->mem);

    json_put_text(&job->mem, event, "event", "done");
    json_put(event, "result", result);
    return send_event(event, err);
}

void event_failed(const struct err *failure)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    struct json *event = json_object(&mem);
    struct str text = str_of(failure->text);
    struct err ignored;

    text.n = str_utf8_prefix(text); /* an error text may have been cut inside a character */
    json_put_text(&mem, event, "event", "failed");
    json_put_text(&mem, event, "code", err_name(failure->code));
    json_put_int(&mem, event, "os", failure->os);
    json_put(event, "message", json_text(&mem, text));
    (void)send_event(event, &ignored);
}

int event_open(struct job *job, const char *path, int *out_fd, struct err *err)
{
    struct json *event = json_object(&job->mem);
    char answer = 0;
    int fd = -1;

    json_put_text(&job->mem, event, "event", "open");
    json_put_text(&job->mem, event, "path", path);
    if (send_event(event, err) < 0 || fds_receive(IMAGE_FD_EVENTS, &answer, 1, &fd, 1, err) < 0)
        return -1;
    if (fd < 0)
        return err_set(err, ERR_NOT_FOUND, "the layout has no file \"%.150s\"", path);
    *out_fd = fd;
    return 0;
}
