/* SPDX-License-Identifier: Apache-2.0 */

/* One stream of a command, passed on, counted, hashed and, if asked, kept.
 *
 * Our own descriptors stay blocking, because their open files may be shared with a shell; a stream
 * is written only when poll says so, and to a pipe or terminal at most as much as then fits. */

#include "flow/execute/relay-flow.h"

#include "lib/base/memory.h"
#include "model/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_BYTES 65536U
#define WIDE_BYTES (1024U * 1024U)
#define FIRST_BYTES 1024U
#define SURE_BYTES 4096U /* PIPE_BUF: never blocks after POLLOUT */

/* How much can be written at once without being made to wait: a writer that cannot wait, and a
 * file, take what they can. */
static size_t step_for(int to)
{
    struct stat st;
    int flags = to >= 0 ? fcntl(to, F_GETFL) : -1;

    if (flags < 0)
        return SURE_BYTES;
    if ((flags & O_NONBLOCK) || (fstat(to, &st) == 0 && S_ISREG(st.st_mode)))
        return CHUNK_BYTES;
    return SURE_BYTES;
}

void flow_init(struct flow *flow, int from, int to, bool keep, uint64_t keep_max)
{
    flow->from = from;
    flow->to = to;
    flow->held = NULL;
    flow->held_at = flow->held_n = 0;
    flow->bytes = 0;
    flow->keep = keep;
    flow->kept = BUF(keep_max < SIZE_MAX ? (size_t)keep_max : SIZE_MAX);
    flow->truncated = flow->unread = false;
    flow->close_to = flow->close_from = false;
    flow->step = step_for(to);
    hasher_init(&flow->hasher);
}

static void keep_bytes(struct flow *flow, const char *bytes, size_t n)
{
    size_t room = flow->kept.max - flow->kept.n;
    struct err ignored; /* the room was just measured */

    if (!flow->keep)
        return;
    if (n > room) {
        flow->truncated = true;
        n = room;
    }
    if (buf_add(&flow->kept, bytes, n, &ignored) < 0)
        flow->truncated = true;
}

void flow_close_source(struct flow *flow)
{
    if (flow->close_from && flow->from >= 0)
        (void)close(flow->from);
    flow->from = -1;
    if (flow->close_to && flow->held_n == 0 && flow->to >= 0) {
        (void)close(flow->to);
        flow->to = -1;
    }
}

/* Most streams end without a byte: those cost no memory. */
static ssize_t read_some(struct flow *flow)
{
    char first[FIRST_BYTES];
    ssize_t got;

    if (flow->held)
        return read(flow->from, flow->held, CHUNK_BYTES);
    got = read(flow->from, first, sizeof first);
    if (got > 0) {
        flow->held = xmalloc(CHUNK_BYTES);
        memcpy(flow->held, first, (size_t)got);
    }
    return got;
}

static void flow_read(struct flow *flow)
{
    ssize_t got = read_some(flow);

    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0) {
        flow_close_source(flow);
        return;
    }
    /* Whoever writes much is worth a wider pipe; where none is to be had, it only costs turns. */
    if (flow->bytes < WIDE_BYTES && flow->bytes + (uint64_t)got >= WIDE_BYTES)
        (void)fcntl(flow->from, F_SETPIPE_SZ, (int)WIDE_BYTES);
    flow->bytes += (uint64_t)got;
    hasher_add(&flow->hasher, flow->held, (size_t)got);
    keep_bytes(flow, flow->held, (size_t)got);
    flow->held_at = 0;
    flow->held_n = flow->to >= 0 ? (size_t)got : 0;
}

static void flow_write(struct flow *flow)
{
    size_t n = flow->held_n < flow->step ? flow->held_n : flow->step;
    ssize_t wrote = write(flow->to, flow->held + flow->held_at, n);

    if (wrote < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (wrote < 0) {
        /* Whoever listened is gone. The writer behind us learns it as it would without us. */
        flow->held_n = 0;
        if (flow->close_to)
            (void)close(flow->to);
        flow->to = -1;
        flow_close_source(flow);
        return;
    }
    flow->held_at += (size_t)wrote;
    flow->held_n -= (size_t)wrote;
    if (flow->held_n == 0 && flow->from < 0)
        flow_close_source(flow);
}

struct pollfd flow_poll(const struct flow *flow)
{
    if (flow->held_n)
        return (struct pollfd){.fd = flow->to, .events = POLLOUT};
    return (struct pollfd){.fd = flow->from, .events = POLLIN};
}

void flow_act(struct flow *flow, const struct pollfd *polled)
{
    if (!polled->revents || polled->fd < 0)
        return;
    if (!flow->held_n)
        flow_read(flow);
    /* A sink that never makes us wait need not be asked first. */
    if (flow->held_n && (polled->fd == flow->to || flow->step == CHUNK_BYTES))
        flow_write(flow);
}

bool flow_is_open(const struct flow *flow)
{
    return flow->from >= 0 || flow->held_n > 0;
}

void flow_take_rest(struct flow *flow)
{
    uint64_t most = flow->bytes + WIDE_BYTES;

    while (flow_is_open(flow) && (flow->held_n || flow->bytes < most)) {
        struct pollfd polled = flow_poll(flow);

        if (poll(&polled, 1, 0) != 1)
            return;
        flow_act(flow, &polled);
    }
}

void flow_leave(struct flow *flow)
{
    flow->unread = flow_is_open(flow);
    flow->truncated |= flow->unread;
}

void flow_end(struct flow *flow, struct arena *mem, struct stream_result *out)
{
    struct hash hash;

    hasher_end(&flow->hasher, &hash);
    hash_text(&hash, out->hash);
    out->bytes = flow->bytes;
    out->truncated = flow->truncated;
    out->unread = flow->unread;
    if (flow->keep)
        out->kept = arena_str(mem, buf_str(&flow->kept));
    buf_done(&flow->kept);
    free(flow->held);
}
