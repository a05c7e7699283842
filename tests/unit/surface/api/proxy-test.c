/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "surface/api/proxy.h"

/* Whoever follows a redirect with our token must end up behind the prefix, however it is written.
 */
TEST(redirects_stay_behind_the_prefix)
{
    static const struct {
        const char *location;
        const char *led; /* behind the prefix; NULL: elsewhere */
    } cases[] = {
        {"/",                               "/"              },
        {"/a/b?c=d#e",                      "/a/b?c=d#e"     },
        {"next",                            "/in/next"       },
        {"",                                "/in/page"       },
        {"?x=1",                            "/in/page?x=1"   },
        {"#top",                            "/in/page#top"   },
        {"./a",                             "/in/a"          },
        {"../up",                           "/up"            },
        {"..",                              "/"              },
        {"../../../../../v1/tokens",        "/v1/tokens"     },
        {"/../../v1/tokens",                "/v1/tokens"     },
        {"/%2e%2E/%2e./.%2e/v1/tokens",     "/v1/tokens"     },
        {"/a/../../b",                      "/b"             },
        {"/a/./b/.",                        "/a/b/"          },
        {"/a/b/..",                         "/a/"            },
        {"/a//b",                           "/a/b"           },
        {"/...",                            "/..."           },
        {"/.\t./.\t./v1",                   "/.%09./.%09./v1"},
        {"/..\\..\\v1",                     "/..%5C..%5Cv1"  },
        {"/a?b=../../c",                    "/a?b=../../c"   },
        {"http://localhost:3000/x",         "/x"             },
        {"HTTP://127.0.0.1:3000/../x",      "/x"             },
        {"http://[::1]:3000",               "/"              },
        {"http://localhost:3000?q",         "/?q"            },
        {"http://localhost:3001/x",         NULL             },
        {"http://localhost/x",              NULL             },
        {"http://localhost:3000@evil/x",    NULL             },
        {"https://localhost:3000/x",        NULL             },
        {"http://127.0.0.1:8080/v1/tokens", NULL             },
        {"//127.0.0.1:8080/v1/tokens",      NULL             },
        {"/\\127.0.0.1:8080/v1/tokens",     NULL             },
        {"\\\\127.0.0.1/v1",                NULL             },
        {"javascript:alert(1)",             NULL             },
        {"http:x",                          NULL             },
        {"https:/x",                        NULL             },
        {"\\v1",                            "/in/%5Cv1"      },
        {"a:b",                             NULL             },
        {"./a:b",                           "/in/a:b"        },
    };
    static const char prefix[] = "/v1/sandboxes/s/ports/3000";

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(64 * KIB);
        const char *led = proxy_location(&mem, STR_LIT(prefix), STR_LIT("/in/page"), 3000,
                                         str_of(cases[i].location));

        if (!cases[i].led) {
            CHECK(led == NULL);
            continue;
        }
        CHECK(led != NULL);
        CHECK_TEXT(led, arena_printf(&mem, "%s%s", prefix, cases[i].led));
    }
}
