/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "cmd/egress/first.h"

#define BYTES(literal) ((struct str){(literal), sizeof(literal) - 1})

TEST(first_bytes_tell_the_protocol)
{
    static const struct {
        struct str in;
        enum first_kind kind;
    } cases[] = {
        {BYTES(""),                                  FIRST_MORE  },
        {BYTES("G"),                                 FIRST_MORE  },
        {BYTES("GET"),                               FIRST_MORE  },
        {BYTES("GET "),                              FIRST_HTTP  },
        {BYTES("CONNECT a:1"),                       FIRST_HTTP  },
        {BYTES(" GET /"),                            FIRST_OTHER },
        {BYTES("GET\t/"),                            FIRST_OTHER },
        {BYTES("\r\nGET /"),                         FIRST_OTHER },
        {BYTES("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),  FIRST_MORE  },
        {BYTES("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), FIRST_OTHER },
        {BYTES("\x16"),                              FIRST_MORE  },
        {BYTES("\x16\x03"),                          FIRST_TLS   },
        {BYTES("\x16\x02"),                          FIRST_OTHER },
        {BYTES("\x05"),                              FIRST_SOCKS5},
        {BYTES("\x04\x01"),                          FIRST_OTHER },
        {BYTES("SSH-2.0-x\r\n"),                     FIRST_OTHER },
        {BYTES("\x80\x2e\x01"),                      FIRST_OTHER },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_INT(first_kind_of(cases[i].in), cases[i].kind);
}

TEST(socks_greetings)
{
    bool open = true;

    CHECK_INT(socks_greeting_read(BYTES("\x05"), &open), 0);
    CHECK_INT(socks_greeting_read(BYTES("\x05\x02\x01"), &open), 0);
    CHECK_INT(socks_greeting_read(BYTES("\x05\x02\x01\x02rest"), &open), 4);
    CHECK(!open);
    CHECK_INT(socks_greeting_read(BYTES("\x05\x02\x00\x02"), &open), 4);
    CHECK(open);
    CHECK_INT(socks_greeting_read(BYTES("\x05\x00"), &open), -1);
    CHECK_INT(socks_greeting_read(BYTES("\x04\x01\x00"), &open), -1);
}

TEST(socks_requests)
{
    static const struct {
        struct str in;
        int n;
        const char *host;
        unsigned port;
        enum socks_reply reply;
    } cases[] = {
        {BYTES("\x05\x01\x00\x03\x03"
               "a.b\x01\xbb"),
         10,                                        "a.b",         443, SOCKS_DONE   },
        {BYTES("\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50"
               "x"),
         10,                                        "127.0.0.1",   80,  SOCKS_DONE   },
        {BYTES(
             "\x05\x01\x00\x04\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00"
             "\x16"),
         22,                                        "2001:db8::1", 22,  SOCKS_DONE   },
        {BYTES("\x05\x01\x00\x03\x03"
               "a.b\x01"),
         0,                                         NULL,          0,   SOCKS_DONE   },
        {BYTES("\x05\x01"),                     0,  NULL,          0,   SOCKS_DONE   },
        {BYTES("\x05\x02"),                     -1, NULL,          0,   SOCKS_COMMAND},
        {BYTES("\x05\x03"),                     -1, NULL,          0,   SOCKS_COMMAND},
        {BYTES("\x04"),                         -1, NULL,          0,   SOCKS_FAILED },
        {BYTES("\x05\x01\x01"),                 -1, NULL,          0,   SOCKS_FAILED },
        {BYTES("\x05\x01\x00\x02\x00"),         -1, NULL,          0,   SOCKS_ADDRESS},
        {BYTES("\x05\x01\x00\x03\x00\x00\x50"), -1, NULL,          0,   SOCKS_ADDRESS},
        {BYTES("\x05\x01\x00\x03\x03"
               "a\x00"
               "b\x00\x50"),
         -1,                                        NULL,          0,   SOCKS_ADDRESS},
        {BYTES("\x05\x01\x00\x03\x03"
               "a b\x00\x50"),
         -1,                                        NULL,          0,   SOCKS_ADDRESS},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct socks_request request = {.port = 0};
        enum socks_reply reply = SOCKS_DONE;

        CHECK_INT(socks_request_read(cases[i].in, &request, &reply), cases[i].n);
        CHECK_TEXT(request.host, cases[i].host ? cases[i].host : "");
        CHECK_INT(request.port, cases[i].port);
        CHECK_INT(reply, cases[i].reply);
    }
}
