/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes as a client hello: the verdict is the same however they are cut, what is refused stays
 * refused, and a name that comes out is one. */

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "lib/tls/tls.h"

static void check_name(const char *name)
{
    size_t n = strnlen(name, TLS_NAME_BYTES);

    if (n == TLS_NAME_BYTES || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != n)
        abort();
    if (n > 0 && (name[0] == '.' || name[n - 1] == '.' || strstr(name, "..")))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct tls_hello whole;
    struct tls_hello part;
    int answer;

    memset(&whole, 0xaa, sizeof whole);
    answer = tls_hello_read((struct str){(const char *)bytes, n}, &whole);
    if (answer == 1)
        check_name(whole.name);
    for (size_t i = 0; i < n && i < TLS_HELLO_MAX; i++) {
        int early = tls_hello_read((struct str){(const char *)bytes, i}, &part);

        if (early == 0)
            continue;
        if (early != answer || (early == 1 && memcmp(&part, &whole, sizeof part) != 0))
            abort();
        break;
    }
    return 0;
}
