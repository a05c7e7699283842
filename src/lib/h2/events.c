/* SPDX-License-Identifier: Apache-2.0 */

/* What nghttp2 reports of the two sessions, and what is done with it. nghttp2 has checked frames,
 * header compression, the order of frames and RFC 9113's rules for messages before it reports
 * anything; what it lets pass as ignorable (an invalid header) is a fault here. */

#include "lib/h2/h2-private.h"

static struct h2_relay *relay_of(void *user_data)
{
    return user_data;
}

/* ---- header lists ---- */

static int collect_header(struct collect *collect, nghttp2_rcbuf *name, nghttp2_rcbuf *value)
{
    nghttp2_vec n = nghttp2_rcbuf_get_buf(name);
    nghttp2_vec v = nghttp2_rcbuf_get_buf(value);

    return collect_add(collect, (struct str){(const char *)n.base, n.len},
                       (struct str){(const char *)v.base, v.len})
               ? 0
               : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int on_client_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    (void)session;
    (void)frame;
    collect_clear(&relay_of(user_data)->collect[H2_CLIENT]);
    return 0;
}

static int on_server_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    (void)session;
    (void)frame;
    collect_clear(&relay_of(user_data)->collect[H2_SERVER]);
    return 0;
}

static int on_client_header(nghttp2_session *session, const nghttp2_frame *frame,
                            nghttp2_rcbuf *name, nghttp2_rcbuf *value, uint8_t flags,
                            void *user_data)
{
    (void)session;
    (void)frame;
    (void)flags;
    return collect_header(&relay_of(user_data)->collect[H2_CLIENT], name, value);
}

static int on_server_header(nghttp2_session *session, const nghttp2_frame *frame,
                            nghttp2_rcbuf *name, nghttp2_rcbuf *value, uint8_t flags,
                            void *user_data)
{
    (void)session;
    (void)frame;
    (void)flags;
    return collect_header(&relay_of(user_data)->collect[H2_SERVER], name, value);
}

static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame,
                             nghttp2_rcbuf *name, nghttp2_rcbuf *value, uint8_t flags,
                             void *user_data)
{
    (void)session;
    (void)frame;
    (void)name;
    (void)value;
    (void)flags;
    (void)user_data;
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

/* ---- sessions ---- */

static void set_calls(nghttp2_session_callbacks *calls, enum h2_peer peer)
{
    bool is_client = peer == H2_CLIENT;

    nghttp2_session_callbacks_set_on_begin_headers_callback(calls, is_client ? on_client_begin
                                                                             : on_server_begin);
    nghttp2_session_callbacks_set_on_header_callback2(calls, is_client ? on_client_header
                                                                       : on_server_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback2(calls, on_invalid_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(calls, is_client ? on_client_message
                                                                          : on_server_message);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, is_client ? on_client_data
                                                                               : on_server_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, is_client ? on_client_close
                                                                            : on_server_close);
    if (is_client)
        nghttp2_session_callbacks_set_on_frame_send_callback(calls, on_client_sent);
}

static int send_settings(nghttp2_session *session, enum h2_peer peer)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,    H2_WINDOW_BYTES                       },
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,   HTTP_HEAD_MAX                         },
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, peer == H2_CLIENT ? H2_STREAMS_MAX : 0},
        {NGHTTP2_SETTINGS_ENABLE_PUSH,            0                                     }, /* a client's to say */
    };

    if (nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings,
                                COUNT(settings) - (peer == H2_CLIENT ? 1 : 0)) < 0)
        return -1;
    return nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0,
                                                 H2_CONNECTION_BYTES);
}

static int session_new(struct h2_relay *relay, enum h2_peer peer,
                       const nghttp2_session_callbacks *calls, const nghttp2_option *option)
{
    nghttp2_session **session = &relay->session[peer];

    return peer == H2_CLIENT ? nghttp2_session_server_new2(session, calls, relay, option)
                             : nghttp2_session_client_new2(session, calls, relay, option);
}

int events_session_new(struct h2_relay *relay, enum h2_peer peer, struct err *err)
{
    nghttp2_session_callbacks *calls = NULL;
    nghttp2_option *option = NULL;
    int failed = -1;

    if (nghttp2_session_callbacks_new(&calls) == 0 && nghttp2_option_new(&option) == 0) {
        set_calls(calls, peer);
        nghttp2_option_set_no_auto_window_update(option, 1);
        nghttp2_option_set_no_closed_streams(option, 1);
        nghttp2_option_set_max_outbound_ack(option, 128);
        failed = session_new(relay, peer, calls, option);
    }
    nghttp2_session_callbacks_del(calls);
    nghttp2_option_del(option);
    if (failed || send_settings(relay->session[peer], peer) < 0)
        return err_set(err, ERR_LIMIT, "no memory for an HTTP/2 connection");
    return 0;
}
