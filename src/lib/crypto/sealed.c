/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/crypto/sealed.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/crypto/key.h"

/* A guess costs a tenth of a second and this much memory, and so does each honest use. */
#define ARGON_PASSES 4
#define ARGON_BYTES (24 * MIB)

#define SALT_BYTES 16
#define NONCE_BYTES 24

static_assert(SALT_BYTES == crypto_pwhash_SALTBYTES, "Argon2id");
static_assert(NONCE_BYTES == crypto_secretbox_NONCEBYTES, "secretbox");
static_assert(SEALED_KEY_BYTES ==
                  SALT_BYTES + NONCE_BYTES + crypto_secretbox_MACBYTES + crypto_sign_SEEDBYTES,
              "all of it");

static int derive(struct str passphrase, const unsigned char salt[SALT_BYTES],
                  unsigned char out[crypto_secretbox_KEYBYTES], struct err *err)
{
    crypto_ready();
    if (passphrase.n < PASSPHRASE_MIN || passphrase.n > PASSPHRASE_MAX)
        return err_set(err, ERR_INVALID, "a passphrase has %d to %d bytes", PASSPHRASE_MIN,
                       PASSPHRASE_MAX);
    if (crypto_pwhash(out, crypto_secretbox_KEYBYTES, passphrase.p, passphrase.n, salt,
                      ARGON_PASSES, ARGON_BYTES, crypto_pwhash_ALG_ARGON2ID13) != 0)
        return err_set(err, ERR_LIMIT, "not enough memory to use a passphrase");
    return 0;
}

int sealed_key_make(struct str passphrase, struct sealed_key *out, struct public_key *public_key,
                    struct err *err)
{
    unsigned char *salt = out->b, *nonce = salt + SALT_BYTES, *box = nonce + NONCE_BYTES;
    unsigned char seed[crypto_sign_SEEDBYTES], secret[crypto_sign_SECRETKEYBYTES];
    unsigned char key[crypto_secretbox_KEYBYTES];
    int failed;

    crypto_ready();
    randombytes_buf(salt, SALT_BYTES);
    randombytes_buf(nonce, NONCE_BYTES);
    failed = derive(passphrase, salt, key, err);
    if (!failed) {
        randombytes_buf(seed, sizeof seed);
        (void)crypto_sign_seed_keypair(public_key->b, secret, seed);     /* always 0 */
        (void)crypto_secretbox_easy(box, seed, sizeof seed, nonce, key); /* always 0 */
    }
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(secret, sizeof secret);
    sodium_memzero(key, sizeof key);
    return failed;
}

int sealed_key_sign(const struct sealed_key *sealed, struct str passphrase, const struct hash *hash,
                    struct signature *out, struct err *err)
{
    const unsigned char *salt = sealed->b, *nonce = salt + SALT_BYTES, *box = nonce + NONCE_BYTES;
    unsigned char seed[crypto_sign_SEEDBYTES], secret[crypto_sign_SECRETKEYBYTES];
    unsigned char key[crypto_secretbox_KEYBYTES];
    struct public_key ignored;
    int failed = derive(passphrase, salt, key, err);

    if (!failed && crypto_secretbox_open_easy(seed, box, crypto_secretbox_MACBYTES + sizeof seed,
                                              nonce, key) != 0)
        failed = err_set(err, ERR_FORBIDDEN, "that is not the passphrase");
    if (!failed) {
        (void)crypto_sign_seed_keypair(ignored.b, secret, seed);                   /* always 0 */
        (void)crypto_sign_detached(out->b, NULL, hash->b, sizeof hash->b, secret); /* always 0 */
    }
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(secret, sizeof secret);
    sodium_memzero(key, sizeof key);
    return failed;
}
