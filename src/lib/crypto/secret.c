/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/crypto/secret.h"

#include <assert.h>
#include <sodium.h>
#include <stddef.h>
#include <string.h>

#include "lib/crypto/key.h"

struct secret {
    size_t n;
    char bytes[];
};

int secret_blank(size_t n, struct secret **out, char **room, struct err *err)
{
    struct secret *secret;
    size_t size = sizeof *secret + n + 1; /* a NUL behind it, for C strings */

    crypto_ready();
    /* What libsodium gives ends where a page does, so a whole number of alignments begins at one.
     */
    size = (size + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
    secret = sodium_malloc(size);
    if (!secret)
        return err_set(err, ERR_LIMIT, "no locked memory for a secret of %zu bytes", n);
    memset(secret, 0, size);
    secret->n = n;
    *room = secret->bytes;
    *out = secret;
    return 0;
}

int secret_new(struct str bytes, struct secret **out, struct err *err)
{
    char *room;

    if (secret_blank(bytes.n, out, &room, err) < 0)
        return -1;
    if (bytes.n)
        memcpy(room, bytes.p, bytes.n);
    return 0;
}

void secret_free(struct secret *secret)
{
    sodium_free(secret); /* wipes it; accepts NULL */
}

struct str secret_reveal(const struct secret *secret)
{
    return (struct str){secret->bytes, secret->n};
}

void secret_shorten(struct secret *secret, size_t n)
{
    assert(n <= secret->n);
    sodium_memzero(secret->bytes + n, secret->n - n);
    secret->n = n;
}

void secret_wipe(void *bytes, size_t n)
{
    if (n)
        sodium_memzero(bytes, n);
}

bool secret_is_same(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || sodium_memcmp(a.p, b.p, a.n) == 0);
}
