/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/egress/side.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/tls/tls.h"

void side_open(struct side *side, int fd, void (*on)(struct watch *watch, uint32_t events))
{
    *side = (struct side){
        .watch = {.fd = fd, .on = on}
    };
}

void side_close(struct loop *loop, struct side *side, bool reset)
{
    const struct linger at_once = {.l_onoff = 1};

    if (side->watch.fd >= 0) {
        loop_forget(loop, &side->watch);
        if (reset)
            (void)setsockopt(side->watch.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        (void)close(TAKE_FD(side->watch.fd));
    }
    side->is_spent = false;
    tls_side_free(side->tls);
    side->tls = NULL;
    bytes_done(&side->raw);
    bytes_done(&side->in);
    bytes_done(&side->out);
}

/* ---- plain ---- */

void side_keep(struct side *side)
{
    side->is_spent = true;
    meters_keep(&side->meters);
}

size_t side_most(const struct side *side, size_t n)
{
    uint64_t left = meters_left(&side->meters);

    return left < n ? (size_t)left : n;
}

/* Whoever has used up just what there was may still end as it meant to. */
ssize_t side_await_end(struct side *side)
{
    char byte;
    ssize_t got = recv(side->watch.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    if (got <= 0)
        return got;
    side_keep(side);
    errno = EAGAIN;
    return -1;
}

static bool receive(struct side *side, struct bytes *to)
{
    size_t room = bytes_room(to);
    size_t most = side_most(side, room);
    ssize_t got;

    if (room == 0 || side->ended || side->wire_ended)
        return false;
    got = most ? recv(side->watch.fd, bytes_end(to), most, MSG_DONTWAIT) : side_await_end(side);
    bytes_added(to, got > 0 ? (size_t)got : 0);
    if (got > 0) {
        side->bytes_in += (uint64_t)got;
        meters_pay(&side->meters, (uint64_t)got);
        return true;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    side->wire_ended = true;
    side->ended = side->ended || !side->tls;
    side->broken = side->broken || got < 0;
    return true;
}

/* Bytes that went, 0 when the socket takes none now. */
static size_t transmit(struct side *side, struct str bytes)
{
    size_t most = side_most(side, bytes.n);
    ssize_t went;

    if (bytes.n == 0 || side->broken)
        return 0;
    if (most == 0) {
        side_keep(side);
        return 0;
    }
    went = send(side->watch.fd, bytes.p, most, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (went < 0 && errno != EAGAIN && errno != EINTR)
        side->broken = true;
    if (went <= 0)
        return 0;
    side->bytes_out += (uint64_t)went;
    meters_pay(&side->meters, (uint64_t)went);
    return (size_t)went;
}

/* ---- TLS ---- */

static bool read_tls(struct side *side)
{
    bool moved = false;

    for (;;) {
        size_t room = bytes_room(&side->in);
        struct str raw = bytes_str(&side->raw);
        size_t fed = raw.n ? tls_side_feed(side->tls, raw.p, raw.n) : 0;
        bool had_ended = side->ended;
        int got = 0;

        bytes_take(&side->raw, fed);
        if (side->wire_ended && side->raw.n == 0)
            tls_side_feed_end(side->tls);
        if (room) {
            got = tls_side_read(side->tls, bytes_end(&side->in), room);
            bytes_added(&side->in, got > 0 ? (size_t)got : 0);
        }
        if (got < 0 && tls_side_has_ended(side->tls))
            side->ended = true;
        else if (got < 0)
            side->ended = side->broken = true;
        /* An end that is told again is nothing new. */
        moved = moved || fed || got > 0 || side->ended != had_ended;
        if (fed == 0 && got <= 0)
            return moved;
    }
}

static bool send_tls(struct side *side)
{
    bool moved = false;

    for (;;) {
        struct str out = bytes_str(&side->out);
        int taken = out.n ? tls_side_write(side->tls, out.p, out.n) : 0;
        size_t went;

        if (taken < 0)
            side->broken = true;
        else
            bytes_take(&side->out, (size_t)taken);
        went = transmit(side, tls_side_wire(side->tls));
        tls_side_sent(side->tls, went);
        moved = moved || taken > 0 || went;
        if (went == 0 && taken <= 0)
            return moved;
    }
}

/* ---- either ---- */

bool side_fill(struct side *side)
{
    bool moved;

    if (!side->tls)
        return receive(side, &side->in);
    moved = receive(side, &side->raw);
    return read_tls(side) || moved;
}

bool side_decode(struct side *side)
{
    return side->tls && !side->broken && read_tls(side);
}

bool side_is_flushed(const struct side *side)
{
    return side->out.n == 0 && (!side->tls || tls_side_wire(side->tls).n == 0);
}

bool side_flush(struct side *side)
{
    bool moved = false;

    if (side->watch.fd < 0)
        return false;
    if (side->tls) {
        if (side->shut && side->out.n == 0 && !side->has_shut)
            tls_side_shut(side->tls);
        moved = send_tls(side);
    } else {
        size_t went = transmit(side, bytes_str(&side->out));

        bytes_take(&side->out, went);
        moved = went > 0;
    }
    if (side->shut && !side->has_shut && side_is_flushed(side)) {
        side->has_shut = true;
        (void)shutdown(side->watch.fd, SHUT_WR);
    }
    return moved;
}

int side_arm(struct loop *loop, struct side *side, bool reads, struct err *err)
{
    uint32_t events = 0;

    if (side->watch.fd < 0 || side->broken || side->hung)
        return 0;
    if (reads && !side->ended && !side->wire_ended &&
        bytes_room(side->tls ? &side->raw : &side->in))
        events |= EPOLLIN;
    if (!side_is_flushed(side) || side->is_due)
        events |= EPOLLOUT;
    return loop_watch(loop, &side->watch, events, err);
}
