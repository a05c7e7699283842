/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "test.h"
#include "world.h"

static void upload(struct world *world, const char *text)
{
    struct err err;

    buf_clear(&world->upload);
    CHECK_INT(buf_add_text(&world->upload, text, &err), 0);
}

static void upload_much(struct world *world, size_t n)
{
    struct err err;

    buf_clear(&world->upload);
    for (size_t i = 0; i < n; i += 16)
        CHECK_INT(buf_add(&world->upload, "0123456789abcdef", 16, &err), 0);
}

TEST(requests_and_answers_pass_at_any_cut)
{
    static const size_t steps[] = {1, 2, 7, 100, 16384};

    for (size_t i = 0; i < COUNT(steps); i++) {
        struct world world;
        size_t a;
        size_t b;

        world_init(&world);
        upload(&world, "ping");
        a = world_ask(&world, "POST", "/echo?q=1", "x-one: 1\ncontent-length: 4\n", true);
        b = world_ask(&world, "GET", "/echo", "", false);
        world_pump(&world, steps[i]);
        CHECK_INT(world.seen[a].status, 200);
        CHECK_TEXT(seen_text(&world.seen[a].body), "ping");
        CHECK_INT(world.seen[b].status, 200);
        CHECK(world.seen[a].is_closed && world.seen[a].code == 0);
        CHECK_TEXT(seen_text(&world.served[0].head),
                   ":method: POST\n:scheme: https\n:authority: api.example.org\n"
                   ":path: /echo?q=1\nx-one: 1\ncontent-length: 4\n");
        /* What no rule has judged is not offered to the client. */
        CHECK(strstr(seen_text(&world.seen[a].headers), "alt-svc") == NULL);
        CHECK_INT(world.judged, 2);
        CHECK_INT(world.ended, 2);
        CHECK_INT(world.ending, H2_DONE);
        CHECK_INT(h2_relay_streams(world.relay), 0);
        world_done(&world);
    }
}

TEST(trailers_pass_both_ways)
{
    struct world world;
    size_t a;

    world_init(&world);
    upload(&world, "message");
    world.has_upload_trailers = true;
    a = world_ask(&world, "POST", "/grpc", "te: trailers\ncontent-type: application/grpc\n", true);
    world_pump(&world, 5);
    CHECK_INT(world.seen[a].status, 200);
    CHECK(strstr(seen_text(&world.seen[a].headers), "--\ngrpc-status: 0\ngrpc-message: fine\n") !=
          NULL);
    CHECK(strstr(seen_text(&world.served[0].head), "te: trailers\n") != NULL);
    CHECK(strstr(seen_text(&world.served[0].head), "x-checksum: abc\n") != NULL);
    CHECK_INT(world.ending, H2_DONE);
    world_done(&world);
}

TEST(interim_answers_pass)
{
    struct world world;
    size_t a;

    world_init(&world);
    a = world_ask(&world, "GET", "/hints", "", false);
    world_pump(&world, 16384);
    CHECK_INT(world.seen[a].interim, 103);
    CHECK_INT(world.seen[a].status, 200);
    world_done(&world);
}

TEST(large_bodies_flow_both_ways)
{
    struct world world;
    size_t a;
    size_t b;

    world_init(&world);
    upload_much(&world, 2000000);
    a = world_ask(&world, "POST", "/echo", "", true);
    b = world_ask(&world, "GET", "/big", "", false);
    world_pump(&world, 10000);
    CHECK_INT(world.seen[a].body.n, 2000000);
    CHECK(memcmp(world.seen[a].body.p, world.upload.p, 2000000) == 0);
    CHECK_INT(world.seen[b].body.n, 1024 * 1024);
    CHECK_INT(world.ended, 2);
    world_done(&world);
}

TEST(refusals_never_reach_the_server)
{
    struct world world;
    size_t a;
    size_t b;

    world_init(&world);
    upload_much(&world, 1000000);
    a = world_ask(&world, "POST", "/deny", "", true); /* with a body nobody wants */
    b = world_ask(&world, "HEAD", "/zero", "", false);
    world_pump(&world, 16384);
    CHECK_INT(world.seen[a].status, 403);
    CHECK_TEXT(seen_text(&world.seen[a].body), "{\"error\":\"policy_denied\"}");
    CHECK_INT(world.seen[b].status, 403);
    CHECK_INT(world.seen[b].body.n, 0);
    CHECK(world.seen[a].is_closed && world.seen[b].is_closed);
    CHECK_INT(world.served_n, 0);
    CHECK_INT(world.ended, 2);
    CHECK_INT(world.ending, H2_REFUSED);
    /* The connection goes on. */
    a = world_ask(&world, "GET", "/echo", "", false);
    world_pump(&world, 16384);
    CHECK_INT(world.seen[a].status, 200);
    world_done(&world);
}

TEST(heads_are_held_to_the_connection)
{
    static const struct {
        const char *lines;
        int status;
        const char *fault;
    } cases[] = {
#define FOR(authority) ":method: GET\n:scheme: https\n:authority: " authority "\n:path: /echo\n"
        {FOR("api.example.org"),                                                      200, ""                    },
        {FOR("API.Example.ORG:443"),                                                  200, ""                    },
        {FOR("api.example.org."),                                                     200, ""                    },
        {FOR("other.example.org"),                                                    421, "EGRESS_HOST_MISMATCH"},
        {FOR("api.example.org:8443"),                                                 421, "EGRESS_HOST_MISMATCH"},
        {FOR("api.example.org:443:443"),                                              421, "EGRESS_HOST_MISMATCH"},
        {FOR("user@api.example.org"),                                                 421, "EGRESS_HOST_MISMATCH"},
        {FOR("xapi.example.org"),                                                     421, "EGRESS_HOST_MISMATCH"},
        {FOR("api.example.org") "host: api.example.org\n",                            200, ""                    },
        {FOR("api.example.org") "host: other.example.org\n",                          400, "H2_HEAD"             },
        {":method: GET\n:scheme: https\n:path: /echo\nhost: api.example.org\n",       200, ""                    },
        {":method: GET\n:scheme: https\n:path: /echo\nhost: other.org\n",             421,
                                                                                                        "EGRESS_HOST_MISMATCH"                                                                                  },
        {":method: GET\n:scheme: http\n:authority: api.example.org\n:path: /echo\n",  400,
                                                                                                        "H2_SCHEME"                                                                                             },
        {":method: CONNECT\n:authority: api.example.org\n",                           405, "H2_CONNECT"          },
        {":method: GET\n:scheme: https\n:authority: api.example.org\n:path: /a b\n",  0,   NULL                  },
        {":method: GET\n:scheme: https\n:authority: api.example.org\n:path: /%zz\n",  400,
                                                                                                        "EGRESS_REQUEST_FRAMING"                                                                                },
        {":method: G@T\n:scheme: https\n:authority: api.example.org\n:path: /echo\n", 0,   NULL                  },
#undef FOR
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct world world;
        size_t a;

        world_init(&world);
        a = world_ask_raw(&world, cases[i].lines, false);
        world_pump(&world, 16384);
        CHECK_INT(world.seen[a].status, cases[i].status);
        if (cases[i].fault)
            CHECK_TEXT(world.fault, cases[i].fault);
        CHECK_INT(world.served_n, cases[i].status == 200);
        CHECK_INT(world.ended, cases[i].fault ? 1 : 0);
        world_done(&world);
    }
}

TEST(heads_have_the_ceilings_of_http1)
{
    struct world world;
    AUTO_BUF struct buf lines = BUF(1000000);
    struct err err;
    size_t a;
    size_t b;

    world_init(&world);
    for (int i = 0; i < 101; i++)
        CHECK_INT(buf_addf(&lines, &err, "x-%d: v\n", i), 0);
    a = world_ask(&world, "GET", "/echo", buf_text(&lines), false);
    buf_clear(&lines);
    for (int i = 0; i < 20; i++)
        CHECK_INT(buf_addf(&lines, &err, "x-%d: %01000d\n", i, 0), 0);
    b = world_ask(&world, "GET", "/echo", buf_text(&lines), false);
    world_pump(&world, 16384);
    CHECK_INT(world.seen[a].status, 431);
    CHECK_INT(world.seen[b].status, 431);
    CHECK_INT(world.served_n, 0);
    world_done(&world);
}

TEST(held_bodies_are_judged_whole)
{
    static const struct {
        const char *body;
        int status;
        const char *arrives;
    } cases[] = {
        {"good",   200, "good"                     },
        {"bad",    403, ""                         },
        {"secret", 200, "a longer body than it was"},
        {"",       200, ""                         },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct world world;
        size_t a;

        world_init(&world);
        upload(&world, cases[i].body);
        a = world_ask(&world, "POST", "/hold", "", true);
        world_pump(&world, 3);
        CHECK_INT(world.seen[a].status, cases[i].status);
        CHECK_TEXT(seen_text(&world.served[0].body), cases[i].arrives);
        CHECK_INT(world.served_n, cases[i].status == 200);
        world_done(&world);
    }
}

TEST(held_bodies_have_a_ceiling)
{
    struct world world;
    size_t a;

    world_init(&world);
    upload_much(&world, 100000);
    a = world_ask(&world, "POST", "/hold", "", true);
    world_pump(&world, 16384);
    CHECK_INT(world.seen[a].status, 200);
    CHECK_INT(world.served[0].body.n, 100000);
    upload_much(&world, 100016);
    world.uploaded[1] = 0;
    a = world_ask(&world, "POST", "/hold", "", true);
    world_pump(&world, 16384);
    CHECK_INT(world.seen[a].status, 413);
    CHECK_TEXT(world.fault, "H2_HELD");
    CHECK_INT(world.served_n, 1);
    world_done(&world);
}

TEST(waiting_streams_keep_what_comes_and_hand_on_nothing)
{
    const struct h2_word pass = {.answer = H2_PASS};
    struct world world;
    struct http_head head;
    struct err err;
    size_t a;

    world_init(&world);
    upload_much(&world, 1000000);
    a = world_ask(&world, "POST", "/wait", "x-a: b\n", true);
    world_pump(&world, 16384);
    CHECK(world.waiting != NULL);
    CHECK_INT(world.served_n, 0);
    CHECK(world.uploaded[a] <= H2_WINDOW_BYTES); /* the client waits too */
    CHECK_INT(h2_stream_head(world.waiting, &head), 0);
    CHECK(str_is(http_find(&head, "x-a"), "b"));
    CHECK_INT(h2_relay_answer(world.relay, world.waiting, &pass, &err), 0);
    CHECK_INT(h2_relay_answer(world.relay, world.waiting, &pass, &err), -1);
    world_pump(&world, 16384);
    CHECK_INT(world.seen[a].status, 200);
    CHECK_INT(world.served[0].body.n, 1000000);
    world_done(&world);
}

TEST(waiting_streams_can_end_before_the_word)
{
    struct world world;
    size_t a;

    world_init(&world);
    a = world_ask(&world, "GET", "/wait", "", false);
    world_pump(&world, 16384);
    CHECK(world.waiting != NULL);
    (void)nghttp2_submit_rst_stream(world.client, 0, 1, NGHTTP2_CANCEL);
    world_pump(&world, 16384);
    CHECK(world.waiting == NULL);
    CHECK_INT(world.ending, H2_CLIENT_LEFT);
    CHECK(world.seen[a].is_closed);
    world_done(&world);
}

TEST(heads_and_paths_are_replaced_and_hop_by_hop_is_dropped)
{
    struct world world;

    world_init(&world);
    (void)world_ask(&world, "GET", "/change", "authorization: Bearer ${vault:A}\n", false);
    world_pump(&world, 16384);
    CHECK_TEXT(seen_text(&world.served[0].head),
               ":method: GET\n:scheme: https\n:authority: api.example.org\n"
               ":path: /changed?x=1\nauthorization: Bearer s3cret\n");
    world_done(&world);
}

TEST(answers_can_be_scrubbed)
{
    struct world world;
    size_t a;

    world_init(&world);
    world.is_scrubbing = true;
    upload(&world, "a#b#");
    a = world_ask(&world, "POST", "/echo", "", true);
    world_pump(&world, 1);
    CHECK_TEXT(seen_text(&world.seen[a].body), "a*b*");
    CHECK(strstr(seen_text(&world.seen[a].headers), "x-seen: a*b\n") != NULL);
    world_done(&world);
}

TEST(budgets_cut_streams)
{
    struct world world;
    size_t a;

    world_init(&world);
    world.budget = 50000;
    upload_much(&world, 100000);
    a = world_ask(&world, "POST", "/echo", "", true);
    world_pump(&world, 16384);
    CHECK_INT(world.seen[a].status, 0);
    CHECK(world.seen[a].is_closed);
    CHECK_INT(world.ending, H2_CUT);
    CHECK(world.served[0].body.n <= 50000);
    world_done(&world);
}

TEST(servers_that_fail_are_told_to_the_client)
{
    struct world world;
    size_t a;
    size_t b;
    size_t c;

    world_init(&world);
    a = world_ask(&world, "GET", "/reset", "", false);
    b = world_ask(&world, "GET", "/busy", "", false);
    c = world_ask(&world, "GET", "/nothing", "", false);
    world_pump(&world, 16384);
    CHECK_INT(world.seen[a].status, 502);
    CHECK(world.seen[b].is_closed);
    CHECK_INT(world.seen[b].code, NGHTTP2_REFUSED_STREAM);
    CHECK(!world.seen[c].is_closed);
    h2_relay_feed_end(world.relay, H2_SERVER);
    world_pump(&world, 16384);
    CHECK_INT(world.seen[c].status, 502);
    CHECK_INT(world.ending, H2_SERVER_LEFT);
    CHECK(h2_relay_is_over(world.relay));
    world_done(&world);
}

TEST(answers_before_the_end_of_a_request_are_whole)
{
    struct world world;
    size_t a;

    world_init(&world);
    upload_much(&world, 1000000);
    a = world_ask(&world, "POST", "/early", "", true);
    world_pump(&world, 16384);
    CHECK_INT(world.seen[a].status, 200);
    CHECK(world.seen[a].is_closed);
    CHECK_INT(world.ended, 1);
    world_done(&world);
}

TEST(server_goaway_is_passed_on)
{
    struct world world;
    size_t a;

    world_init(&world);
    a = world_ask(&world, "GET", "/nothing", "", false);
    world_pump(&world, 16384);
    (void)nghttp2_submit_goaway(world.server, 0, 1, NGHTTP2_NO_ERROR, NULL, 0);
    world_pump(&world, 16384);
    CHECK(!world.seen[a].is_closed);
    CHECK(!nghttp2_session_check_request_allowed(world.client));
    CHECK(!h2_relay_is_over(world.relay));
    (void)nghttp2_submit_rst_stream(world.server, 0, 1, NGHTTP2_INTERNAL_ERROR);
    world_pump(&world, 16384);
    CHECK_INT(world.seen[a].status, 502);
    CHECK(h2_relay_is_over(world.relay));
    world_done(&world);
}

TEST(client_that_leaves_takes_its_streams_along)
{
    struct world world;

    world_init(&world);
    (void)world_ask(&world, "GET", "/nothing", "", false);
    (void)world_ask(&world, "GET", "/wait", "", false);
    world_pump(&world, 16384);
    h2_relay_feed_end(world.relay, H2_CLIENT);
    CHECK(h2_relay_is_over(world.relay));
    world_pump(&world, 16384);
    CHECK_INT(world.ended, 2);
    CHECK_INT(world.ending, H2_CLIENT_LEFT);
    CHECK_INT(h2_relay_streams(world.relay), 0);
    world_done(&world);
}

TEST(owner_can_end_the_connection)
{
    struct world world;

    world_init(&world);
    (void)world_ask(&world, "GET", "/end", "", false);
    world_pump(&world, 16384);
    CHECK(world.relay_failed);
    CHECK_TEXT(h2_relay_fault(world.relay), "H2_ENDED");
    CHECK(!nghttp2_session_check_request_allowed(world.client));
    CHECK_INT(world.ended, 1);
    world_done(&world);
}

TEST(who_does_not_read_is_not_read_for)
{
    struct world world;

    world_init(&world);
    world.client_is_deaf = true;
    (void)world_ask(&world, "GET", "/big", "", false);
    world_pump(&world, 16384);
    /* The window we grant, and what stands in the wire; not the megabyte. */
    CHECK(world.served[0].sent <= H2_WINDOW_BYTES);
    world.client_is_deaf = false;
    world_pump(&world, 16384);
    CHECK_INT(world.seen[0].body.n, 1024 * 1024);
    world_done(&world);
}
