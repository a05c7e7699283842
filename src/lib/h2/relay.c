/* SPDX-License-Identifier: Apache-2.0 */

/* The two sessions and their bytes. */

#include <stdio.h>
#include <string.h>

#include "lib/base/memory.h"
#include "lib/h2/h2-private.h"

#define FEED_MAX (16UL * 1024) /* at once: what follows from it has room in memory */
#define SCRATCH_MAX (2UL * H2_WINDOW_BYTES)

/* ---- beginning and end ---- */

static void write_authority(struct h2_relay *relay)
{
    bool is_v6 = strchr(relay->host, ':') != NULL;
    char port[16] = "";

    if (relay->port != 443)
        (void)snprintf(port, sizeof port, ":%u", relay->port);
    (void)snprintf(relay->authority, sizeof relay->authority, "%s%s%s%s", is_v6 ? "[" : "",
                   relay->host, is_v6 ? "]" : "", port);
}

int h2_relay_new(const struct h2_config *config, struct h2_relay **out, struct err *err)
{
    AUTO(h2_relay) struct h2_relay *relay = xcalloc(1, sizeof(*relay));

    if (strlen(config->host) >= sizeof relay->host)
        return err_set(err, ERR_INVALID, "the host name is too long");
    memcpy(relay->host, config->host, strlen(config->host) + 1);
    relay->port = config->port;
    write_authority(relay);
    relay->calls = config->calls;
    relay->owner = config->owner;
    relay->scratch = BUF(SCRATCH_MAX);
    for (unsigned peer = 0; peer < 2; peer++) {
        collect_init(&relay->collect[peer]);
        meter_init(&relay->meter[peer], peer == H2_CLIENT ? PREFACE_BYTES : 0);
        if (events_session_new(relay, peer, err) < 0)
            return -1;
    }
    *out = TAKE(relay);
    return 0;
}

/* All of them, at once; neither session is used any more. */
static void end_streams(struct h2_relay *relay)
{
    while (relay->first) {
        relay->first->id[H2_CLIENT] = 0; /* nothing is given back to anyone */
        relay->first->id[H2_SERVER] = 0;
        relay->first->to[H2_CLIENT].owed = 0;
        relay->first->to[H2_SERVER].owed = 0;
        stream_end(relay->first);
    }
}

void h2_relay_free(struct h2_relay *relay)
{
    if (relay == NULL)
        return;
    end_streams(relay);
    for (unsigned peer = 0; peer < 2; peer++) {
        nghttp2_session_del(relay->session[peer]);
        queue_done(&relay->wire[peer]);
        collect_done(&relay->collect[peer]);
    }
    buf_done(&relay->scratch);
    free(relay);
}

/* ---- peers that leave ---- */

/* With the client goes the connection to the server. What it is told is taken out of its session
 * first: nothing may look at streams that are gone. */
static void client_gone(struct h2_relay *relay)
{
    if (!relay->is_gone[H2_SERVER]) {
        (void)nghttp2_session_terminate_session(relay->session[H2_SERVER], NGHTTP2_NO_ERROR);
        (void)h2_relay_wire(relay, H2_SERVER);
        relay->is_gone[H2_SERVER] = true;
    }
    end_streams(relay);
}

static void server_gone(struct h2_relay *relay)
{
    struct stream *next;

    h2_relay_finish(relay);
    for (struct stream *stream = relay->first; stream; stream = next) {
        next = stream->next;
        if (stream->id[H2_SERVER])
            stream_closed(stream, H2_SERVER, NGHTTP2_CONNECT_ERROR);
    }
}

void relay_peer_gone(struct h2_relay *relay, enum h2_peer peer)
{
    if (relay->is_gone[peer])
        return;
    relay->is_gone[peer] = true;
    relay->is_finishing = true;
    if (peer == H2_CLIENT)
        client_gone(relay);
    else
        server_gone(relay);
}

void relay_fail(struct h2_relay *relay, const char *fault)
{
    if (!relay->fault)
        relay->fault = fault;
    relay->is_finishing = true;
}

/* ---- bytes ---- */

static const char *flood_or_protocol(long answer)
{
    return answer == NGHTTP2_ERR_FLOODED ? "H2_FLOOD" : "H2_PROTOCOL";
}

/* The client broke the protocol, flooded us, or was sent away: it is told, and nothing goes on. */
static long end_client(struct h2_relay *relay, const char *fault, struct err *err)
{
    uint32_t code = strcmp(fault, "H2_FLOOD") == 0      ? NGHTTP2_ENHANCE_YOUR_CALM
                    : strcmp(fault, "H2_PROTOCOL") == 0 ? NGHTTP2_PROTOCOL_ERROR
                                                        : NGHTTP2_NO_ERROR;

    relay_fail(relay, fault);
    (void)nghttp2_session_terminate_session(relay->session[H2_CLIENT], code);
    (void)h2_relay_wire(relay, H2_CLIENT); /* takes the GOAWAY along while the session stands */
    relay_peer_gone(relay, H2_CLIENT);
    return err_set(err, ERR_INVALID, "the HTTP/2 connection ends: %s", relay->fault);
}

static long feed_failed(struct h2_relay *relay, enum h2_peer from, const char *fault, long n,
                        struct err *err)
{
    if (from == H2_CLIENT)
        return end_client(relay, fault, err);
    relay_peer_gone(relay, H2_SERVER);
    return n;
}

long h2_relay_feed(struct h2_relay *relay, enum h2_peer from, const void *bytes, size_t n,
                   struct err *err)
{
    long taken;

    if (relay->is_gone[from])
        return (long)n; /* nobody will read it */
    if (h2_relay_wire(relay, from).n >= H2_WIRE_MAX)
        return 0; /* who does not read is not read from */
    n = n < FEED_MAX ? n : FEED_MAX;
    if (!meter_look(&relay->meter[from], (struct str){bytes, n}))
        return feed_failed(relay, from, "H2_FLOOD", (long)n, err);
    taken = nghttp2_session_mem_recv(relay->session[from], bytes, n);
    if (taken < 0)
        return feed_failed(relay, from, flood_or_protocol(taken), (long)n, err);
    /* nghttp2 tells a connection's end by a GOAWAY, which is seen when it goes out. */
    (void)h2_relay_wire(relay, H2_CLIENT);
    if (relay->fault)
        return end_client(relay, relay->fault, err);
    if (from == H2_SERVER && !nghttp2_session_want_read(relay->session[H2_SERVER]) &&
        !nghttp2_session_want_write(relay->session[H2_SERVER]))
        relay_peer_gone(relay, H2_SERVER);
    return taken;
}

void h2_relay_feed_end(struct h2_relay *relay, enum h2_peer from)
{
    relay_peer_gone(relay, from);
}

struct str h2_relay_wire(struct h2_relay *relay, enum h2_peer to)
{
    struct queue *wire = &relay->wire[to];

    /* A server that is gone gets nothing; a client that is sent away gets its GOAWAY. */
    while (wire->n < H2_WIRE_MAX && !relay->is_gone[to]) {
        const uint8_t *bytes = NULL;
        ssize_t n = nghttp2_session_mem_send(relay->session[to], &bytes);

        if (n <= 0)
            break; /* of the failures one is left: no memory, which the next feed reports */
        (void)queue_add(wire, bytes, (size_t)n, SIZE_MAX); /* one frame beyond the ceiling */
    }
    return queue_str(wire);
}

void h2_relay_sent(struct h2_relay *relay, enum h2_peer to, size_t n)
{
    queue_drop(&relay->wire[to], n);
}

/* ---- the owner's words ---- */

int h2_relay_answer(struct h2_relay *relay, struct h2_stream *shown, const struct h2_word *word,
                    struct err *err)
{
    struct stream *stream = (struct stream *)(void *)shown;

    if (stream->relay != relay ||
        (stream->state != STREAM_WAITING && stream->state != STREAM_WAITING_BODY))
        return err_set(err, ERR_CONFLICT, "this stream waits for no word");
    stream_obey(stream, word);
    if (relay->fault && !relay->is_gone[H2_CLIENT])
        (void)end_client(relay, relay->fault, err); /* as it was told */
    return 0;
}

int h2_stream_head(const struct h2_stream *shown, struct http_head *out)
{
    return head_read_again((const struct stream *)(const void *)shown, out);
}

struct str h2_stream_body(const struct h2_stream *shown)
{
    const struct stream *stream = (const struct stream *)(const void *)shown;

    return queue_str(&stream->to[H2_SERVER].bytes);
}

void h2_relay_finish(struct h2_relay *relay)
{
    nghttp2_session *session = relay->session[H2_CLIENT];

    if (relay->is_finishing || relay->is_gone[H2_CLIENT]) {
        relay->is_finishing = true;
        return;
    }
    relay->is_finishing = true;
    (void)nghttp2_submit_goaway(session, NGHTTP2_FLAG_NONE,
                                nghttp2_session_get_last_proc_stream_id(session), NGHTTP2_NO_ERROR,
                                NULL, 0);
}

/* ---- looking at it ---- */

bool h2_relay_is_over(const struct h2_relay *relay)
{
    return relay->is_gone[H2_CLIENT] || (relay->is_finishing && relay->streams == 0);
}

size_t h2_relay_streams(const struct h2_relay *relay)
{
    return relay->streams;
}

uint64_t h2_relay_progress(const struct h2_relay *relay)
{
    return relay->progress;
}

const char *h2_relay_fault(const struct h2_relay *relay)
{
    return relay->fault ? relay->fault : "";
}
