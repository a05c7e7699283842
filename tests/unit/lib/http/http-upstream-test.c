/* SPDX-License-Identifier: Apache-2.0 */

#include "test.h"

#include "lib/http/http-upstream.h"

static struct err err;

TEST(origins_are_taken_apart)
{
    static const struct {
        const char *url;
        bool is_tls;
        const char *host, *port, *name, *path;
    } cases[] = {
        {"https://api.example.com/v1", true,  "api.example.com", "443",  "api.example.com", "/v1" },
        {"https://api.example.com",    true,  "api.example.com", "443",  "api.example.com", ""    },
        {"https://a.b:8443/x/y//",     true,  "a.b",             "8443", "a.b:8443",        "/x/y"},
        {"https://[2001:db8::1]:1/",   true,  "2001:db8::1",     "1",    "[2001:db8::1]:1", ""    },
        {"http://127.0.0.1:9000/v1/",  false, "127.0.0.1",       "9000", "127.0.0.1:9000",  "/v1" },
        {"http://localhost",           false, "localhost",       "80",   "localhost",       ""    },
        {"http://[::1]:5/v1",          false, "::1",             "5",    "[::1]:5",         "/v1" },
        {"http://127.9.8.7/",          false, "127.9.8.7",       "80",   "127.9.8.7",       ""    },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct http_origin origin;

        CHECK_INT(http_origin_parse(cases[i].url, &origin, &err), 0);
        CHECK_INT(origin.is_tls, cases[i].is_tls);
        CHECK_TEXT(origin.host, cases[i].host);
        CHECK_TEXT(origin.port, cases[i].port);
        CHECK_TEXT(origin.name, cases[i].name);
        CHECK_TEXT(origin.path, cases[i].path);
    }
}

TEST(origins_that_are_refused)
{
    static const char *const cases[] = {
        "",
        "api.example.com",
        "ftp://127.0.0.1/",
        "https://",
        "https:///v1",
        "https://user@host/",
        "https://a b/",
        "https://host:0/",
        "https://host:65536/",
        "https://host:1x/",
        "https://[::1/",
        "https://[::1]x/",
        "https://host/a?b",
        "https://host/a#b",
        "https://host/a\r\nX: y",
        "http://example.com/v1",
        "http://10.0.0.1/",
        "http://128.0.0.1/",
        "http://127.0.0.1.example.com/",
        "http://localhost.example.com/",
        "http://[::2]/",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct http_origin origin;

        if (http_origin_parse(cases[i], &origin, &err) == 0)
            CHECK_TEXT(cases[i], "refused");
        CHECK_INT(err.code, ERR_INVALID);
    }
}
