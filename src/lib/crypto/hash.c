/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/crypto/crypto.h"

/* The low-level functions need no provider and no allocation; the EVP ones cost a short-lived
 * program almost a millisecond at first use (docs/decisions/0002). */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <assert.h>
#include <openssl/sha.h>
#include <string.h>

#include "lib/base/text.h"

#define PREFIX "sha256:"

static_assert(sizeof(SHA256_CTX) <= sizeof(struct hasher), "a hasher holds OpenSSL's state");
static_assert(HASH_BYTES == SHA256_DIGEST_LENGTH, "SHA-256");
static_assert(HASH_TEXT_BYTES >= sizeof PREFIX + 2 * (size_t)HASH_BYTES, "text of a hash");

static SHA256_CTX *state_of(struct hasher *h)
{
    return (SHA256_CTX *)(void *)h->state;
}

void hasher_init(struct hasher *h)
{
    (void)SHA256_Init(state_of(h)); /* these three answer 1 whatever they are given */
}

void hasher_add(struct hasher *h, const void *bytes, size_t n)
{
    (void)SHA256_Update(state_of(h), bytes, n);
}

void hasher_end(struct hasher *h, struct hash *out)
{
    (void)SHA256_Final(out->b, state_of(h));
}

void hash_of(struct str bytes, struct hash *out)
{
    struct hasher h;

    hasher_init(&h);
    hasher_add(&h, bytes.p, bytes.n);
    hasher_end(&h, out);
}

void hash_text(const struct hash *hash, char out[HASH_TEXT_BYTES])
{
    memcpy(out, PREFIX, sizeof PREFIX - 1);
    hex_encode(hash->b, sizeof hash->b, out + sizeof PREFIX - 1);
}

bool hash_from_text(struct str text, struct hash *out)
{
    struct hash read;

    if (!str_starts(text, PREFIX))
        return false;
    text.p += sizeof PREFIX - 1;
    text.n -= sizeof PREFIX - 1;
    if (!hex_decode(text, read.b, sizeof read.b))
        return false;
    *out = read;
    return true;
}

void hash_text_of(struct str bytes, char out[HASH_TEXT_BYTES])
{
    struct hash hash;

    hash_of(bytes, &hash);
    hash_text(&hash, out);
}

#define HMAC_BLOCK_BYTES 64

static void hmac_pass(struct str key, unsigned char pad, const void *bytes, size_t n,
                      struct hash *out)
{
    unsigned char block[HMAC_BLOCK_BYTES];
    struct hasher hasher;

    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (unsigned char)((i < key.n ? (unsigned char)key.p[i] : 0) ^ pad);
    hasher_init(&hasher);
    hasher_add(&hasher, block, sizeof block);
    hasher_add(&hasher, bytes, n);
    hasher_end(&hasher, out);
    explicit_bzero(block, sizeof block);
    explicit_bzero(&hasher, sizeof hasher);
}

void hmac_with(struct str key, struct str bytes, struct hash *out)
{
    struct hash inner, short_key;

    if (key.n > HMAC_BLOCK_BYTES) {
        hash_of(key, &short_key);
        key = (struct str){(const char *)short_key.b, sizeof short_key.b};
    }
    hmac_pass(key, 0x36, bytes.p, bytes.n, &inner);
    hmac_pass(key, 0x5c, inner.b, sizeof inner.b, out);
    explicit_bzero(&short_key, sizeof short_key);
}

void hmac_of(const struct hash *key, struct str bytes, struct hash *out)
{
    hmac_with((struct str){(const char *)key->b, sizeof key->b}, bytes, out);
}

bool hash_is_same(const struct hash *a, const struct hash *b)
{
    volatile unsigned char difference = 0;

    for (size_t i = 0; i < HASH_BYTES; i++)
        difference = (unsigned char)(difference | (a->b[i] ^ b->b[i]));
    return difference == 0;
}
