/* SPDX-License-Identifier: Apache-2.0 */

/* A client's first bytes, however they are cut: once told, the protocol does not change, and what
 * SOCKS reads from a part is what it reads from the whole. */

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/egress/first.h"

static void check_kind(struct str in)
{
    enum first_kind told = FIRST_MORE;

    for (size_t i = 0; i <= in.n && i < 64; i++) {
        enum first_kind kind = first_kind_of((struct str){in.p, i});

        if (told != FIRST_MORE && kind != told)
            abort();
        told = kind;
    }
}

static void check_greeting(struct str in)
{
    bool whole_open = false, open = false;
    int whole = socks_greeting_read(in, &whole_open);

    if (whole > (int)in.n)
        abort();
    for (size_t i = 0; i <= in.n && i < 300; i++) {
        int n = socks_greeting_read((struct str){in.p, i}, &open);

        if (n != 0 && (n != whole || (n > 0 && open != whole_open)))
            abort();
    }
}

static void check_request(struct str in)
{
    struct socks_request whole_request = {.port = 0}, request = {.port = 0};
    enum socks_reply whole_reply = SOCKS_DONE, reply = SOCKS_DONE;
    int whole = socks_request_read(in, &whole_request, &whole_reply);

    if (whole > (int)in.n || (whole > 0 && whole_request.host[0] == '\0'))
        abort();
    for (size_t i = 0; i <= in.n && i < 300; i++) {
        int n = socks_request_read((struct str){in.p, i}, &request, &reply);

        if (n != 0 && (n != whole || reply != whole_reply ||
                       (n > 0 && strcmp(request.host, whole_request.host) != 0)))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct str in = {(const char *)bytes, n};

    check_kind(in);
    check_greeting(in);
    check_request(in);
    return 0;
}
