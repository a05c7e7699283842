/* SPDX-License-Identifier: Apache-2.0 */

#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/http/http-client.h"
#include "lib/http/http-limits.h"

static struct err err;

/* ---- frames ---- */

TEST(frames_of_a_client_are_masked_and_in_their_shortest_form)
{
    static const unsigned char mask[4] = {1, 2, 3, 4};
    static const struct {
        enum http_ws_kind kind;
        size_t n;
        const char *head;
        size_t head_n;
    } cases[] = {
        {HTTP_WS_TEXT,   0,     "\x81\x80\1\2\3\4",                 6 },
        {HTTP_WS_BINARY, 125,   "\x82\xfd\1\2\3\4",                 6 },
        {HTTP_WS_BINARY, 126,   "\x82\xfe\x00\x7e\1\2\3\4",         8 },
        {HTTP_WS_BINARY, 65535, "\x82\xfe\xff\xff\1\2\3\4",         8 },
        {HTTP_WS_BINARY, 65536, "\x82\xff\0\0\0\0\0\1\0\0\1\2\3\4", 14},
        {HTTP_WS_PONG,   4,     "\x8a\x84\1\2\3\4",                 6 },
    };
    AUTO_FREE char *payload = xcalloc(1, 65536);

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_BUF struct buf out = BUF(128 * KIB);

        memset(payload, 'a', cases[i].n);
        CHECK_INT(http_ws_write(cases[i].kind, (struct str){payload, cases[i].n}, mask, &out, &err),
                  0);
        CHECK_INT(out.n, cases[i].head_n + cases[i].n);
        CHECK(memcmp(out.p, cases[i].head, cases[i].head_n) == 0);
        for (size_t j = 0; j < cases[i].n; j++)
            CHECK((out.p[cases[i].head_n + j] ^ mask[j % 4]) == 'a');
    }
}

TEST(control_frames_are_short)
{
    static const unsigned char mask[4] = {0};
    char payload[126] = {0};
    AUTO_BUF struct buf out = BUF(KIB);

    CHECK_INT(http_ws_write(HTTP_WS_PING, (struct str){payload, 126}, mask, &out, &err), -1);
    CHECK_TEXT(err.text, "a control frame holds at most 125 bytes");
    CHECK_INT(out.n, 0);
}

TEST(frames_of_a_server_are_read)
{
    static const struct {
        struct str in;
        long n;
        enum http_ws_kind kind;
        const char *payload;
    } cases[] = {
        {{"\x81\x02hi", 4},       4, HTTP_WS_TEXT,   "hi"      },
        {{"\x81\x02hi\x81", 5},   4, HTTP_WS_TEXT,   "hi"      },
        {{"\x82\x00", 2},         2, HTTP_WS_BINARY, ""        },
        {{"\x88\x02\x03\xe8", 4}, 4, HTTP_WS_CLOSE,  "\x03\xe8"},
        {{"", 0},                 0, 0,              NULL      },
        {{"\x81", 1},             0, 0,              NULL      },
        {{"\x81\x02h", 3},        0, 0,              NULL      },
        {{"\x81\x7e\x00", 3},     0, 0,              NULL      },
        {{"\x81\x7e\x00\x7e", 4}, 0, 0,              NULL      },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        enum http_ws_kind kind = 0;
        struct str payload = {0};

        CHECK_INT(http_ws_read(cases[i].in, 1000, &kind, &payload, &err), cases[i].n);
        CHECK_INT(kind, cases[i].kind);
        if (cases[i].payload)
            CHECK(str_is(payload, cases[i].payload));
        else
            CHECK(payload.p == NULL); /* outputs are untouched */
    }
}

TEST(frames_of_a_server_that_break_the_rules_are_refused)
{
    static const struct {
        struct str in;
        const char *text;
    } cases[] = {
        {{"\xc1\x00", 2},                      "a frame uses an extension nobody asked for"        },
        {{"\x01\x00", 2},                      "a frame of a kind that is not spoken here"         },
        {{"\x80\x00", 2},                      "a frame of a kind that is not spoken here"         },
        {{"\x83\x00", 2},                      "a frame of a kind that is not spoken here"         },
        {{"\x81\x80", 2},                      "a frame of a server is masked"                     },
        {{"\x89\x7e", 2},                      "a control frame that is too long"                  },
        {{"\x81\x7e\x00\x7d", 4},              "a frame's length is not in its shortest form"      },
        {{"\x81\x7f\0\0\0\0\0\0\xff\xff", 10}, "a frame's length is not in its shortest form"      },
        {{"\x81\x7f\xff\0\0\0\0\0\0\0", 10},   "a frame's length is not in its shortest form"      },
        {{"\x81\x7e\x03\xe9", 4},              "a message of 1001 bytes is more than is taken here"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        enum http_ws_kind kind = 0;
        struct str payload = {0};

        CHECK_INT(http_ws_read(cases[i].in, 1000, &kind, &payload, &err), -1);
        CHECK_TEXT(err.text, cases[i].text);
        CHECK(payload.p == NULL);
    }
}

TEST(a_handshake_is_answered_as_the_rfc_says)
{
    char accept[HTTP_WS_ACCEPT_BYTES];

    http_ws_accept_key(STR_LIT("dGhlIHNhbXBsZSBub25jZQ=="), accept);
    CHECK_TEXT(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

/* ---- answers ---- */

static char place[64];

/* A server that says this, whatever it is asked, and closes. */
static pid_t answering(struct str answer)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char request[4096];
    pid_t pid;

    (void)snprintf(place, sizeof place, "/tmp/http-client-%d.sock", (int)getpid());
    memcpy(address.sun_path, place, strlen(place));
    (void)unlink(place);
    CHECK(bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0);
    pid = fork();
    if (pid == 0) {
        int peer = accept(fd, NULL, NULL);

        if (read(peer, request, sizeof request) < 0 ||
            (answer.n && write(peer, answer.p, answer.n) < 0))
            _exit(1);
        (void)shutdown(peer, SHUT_WR);
        _exit(0);
    }
    (void)close(fd);
    return pid;
}

static int ask(struct buf *body, int *status)
{
    AUTO(http_client) struct http_client *client = NULL;
    const struct http_ask get = {
        .method = STR_LIT("GET"), .target = STR_LIT("/"), .host = STR_LIT("localhost")};
    AUTO_FREE struct http_head *head = xcalloc(1, sizeof *head);

    if (http_client_open(place, &client, &err) < 0)
        return -1;
    CHECK_INT(http_client_peer(client), geteuid());
    if (http_client_ask(client, &get, (struct str){0}, &err) < 0 ||
        http_client_answer(client, HTTP_GET, head, &err) < 0)
        return -1;
    *status = head->status;
    return http_client_body_all(client, body, &err);
}

TEST(answers_are_read_whole_or_refused)
{
    static const struct {
        const char *answer;
        int status; /* 0: an error */
        const char *text;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",                                     200, "ok"                                     },
        {"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",                                404, ""                                       },
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n", 200,
         "ok"                                                                                                                                },
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",                       204, ""                                       },
        {"HTTP/1.1 200 OK\r\n\r\nall of it",                                                   200, "all of it"                              },
        {"",                                                                                   0,   "the other side closed without an answer"},
        {"HTTP/1.1 200 OK\r\nContent-Len",                                                     0,   "the other side closed without an answer"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok",                                     0,   "the answer broke off"                   },
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok",                       0,   "the answer broke off"                   },
        {"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",                                           0,
         "an answer that is not HTTP as we speak it: a line ends without a carriage return"                                                  },
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok",       0,
         "an answer that is not HTTP as we speak it: both Content-Length and Transfer-Encoding"                                              },
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",                         0,
         "an answer that is not HTTP as we speak it: malformed chunk size"                                                                   },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_BUF struct buf body = BUF(KIB);
        pid_t server = answering(str_of(cases[i].answer));
        int status = 0, ended = 0;
        int got = ask(&body, &status);

        CHECK_INT(got, cases[i].status ? 0 : -1);
        CHECK_TEXT(got == 0 ? buf_text(&body) : err.text, cases[i].text);
        if (cases[i].status)
            CHECK_INT(status, cases[i].status);
        CHECK(waitpid(server, &ended, 0) == server && ended == 0);
        (void)unlink(place);
    }
}

TEST(nobody_there_is_told_apart)
{
    AUTO(http_client) struct http_client *client = NULL;

    CHECK_INT(http_client_open("/nonexistent/socket", &client, &err), -1);
    CHECK_INT(err.code, ERR_UNAVAILABLE);
    CHECK(client == NULL);
}

TEST(a_handshake_that_is_not_answered_right_is_refused)
{
    pid_t server = answering(STR_LIT("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                                     "Upgrade: websocket\r\nSec-WebSocket-Accept: no\r\n\r\n"));
    AUTO(http_client) struct http_client *client = NULL;
    int status = 0, ended = 0;

    CHECK_INT(http_client_open(place, &client, &err), 0);
    CHECK_INT(http_client_upgrade(client, STR_LIT("/"), NULL, 0, &status, &err), -1);
    CHECK_INT(err.code, ERR_INTEGRITY);
    CHECK_TEXT(err.text, "the handshake was not answered as it must be");
    CHECK(waitpid(server, &ended, 0) == server);
    (void)unlink(place);
}

TEST(waiting_for_an_answer_has_its_end)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    AUTO(http_client) struct http_client *client = NULL;
    const struct http_ask get = {
        .method = STR_LIT("GET"), .target = STR_LIT("/"), .host = STR_LIT("localhost")};
    AUTO_FREE struct http_head *head = xcalloc(1, sizeof *head);

    (void)snprintf(place, sizeof place, "/tmp/http-client-%d.sock", (int)getpid());
    memcpy(address.sun_path, place, strlen(place));
    (void)unlink(place);
    CHECK(bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0);
    CHECK_INT(http_client_open(place, &client, &err), 0);
    http_client_patience(client, 50);
    CHECK_INT(http_client_ask(client, &get, (struct str){0}, &err), 0);
    CHECK_INT(http_client_answer(client, HTTP_GET, head, &err), -1);
    CHECK_INT(err.code, ERR_TIMEOUT);
    (void)unlink(place);
}
