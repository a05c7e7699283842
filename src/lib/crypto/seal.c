/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/crypto/seal.h"

#include <assert.h>
#include <openssl/evp.h>
#include <sodium.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/crypto/key.h"
#include "lib/crypto/sealed.h"

#define TAG_BYTES 16
#define ARGON_PASSES 4
#define ARGON_BYTES (64 * MIB)

static_assert(SEAL_EXTRA_BYTES == SEAL_NONCE_BYTES + TAG_BYTES, "what a seal adds");
static_assert(SEAL_SALT_BYTES == crypto_pwhash_SALTBYTES, "Argon2id");

static int failed(struct err *err)
{
    return err_set(err, ERR_INTERNAL, "OpenSSL cannot do AES-256-GCM");
}

static const unsigned char *bytes_of(struct str s)
{
    return (const unsigned char *)(s.n ? s.p : "");
}

static int encrypt(EVP_CIPHER_CTX *context, struct str key, const unsigned char *nonce,
                   struct str bound, struct str plain, unsigned char *out)
{
    unsigned char rest[TAG_BYTES];
    int n = 0;

    return EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), NULL, bytes_of(key), nonce) == 1 &&
           (bound.n == 0 ||
            EVP_EncryptUpdate(context, NULL, &n, bytes_of(bound), (int)bound.n) == 1) &&
           (plain.n == 0 ||
            EVP_EncryptUpdate(context, out, &n, bytes_of(plain), (int)plain.n) == 1) &&
           EVP_EncryptFinal_ex(context, rest, &n) == 1 &&
           EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, TAG_BYTES, out + plain.n) == 1;
}

static int decrypt(EVP_CIPHER_CTX *context, struct str key, struct str bound, struct str sealed,
                   unsigned char *out)
{
    const unsigned char *nonce = bytes_of(sealed), *text = nonce + SEAL_NONCE_BYTES;
    int text_n = (int)(sealed.n - SEAL_EXTRA_BYTES), n = 0;
    unsigned char tag[TAG_BYTES], rest[TAG_BYTES];

    memcpy(tag, text + text_n, sizeof tag);
    return EVP_DecryptInit_ex(context, EVP_aes_256_gcm(), NULL, bytes_of(key), nonce) == 1 &&
           (bound.n == 0 ||
            EVP_DecryptUpdate(context, NULL, &n, bytes_of(bound), (int)bound.n) == 1) &&
           (text_n == 0 || EVP_DecryptUpdate(context, out, &n, text, text_n) == 1) &&
           EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, tag) == 1 &&
           EVP_DecryptFinal_ex(context, rest, &n) == 1;
}

int seal_with_nonce(struct str key, const unsigned char nonce[SEAL_NONCE_BYTES], struct str bound,
                    struct str plain, unsigned char *out, struct err *err)
{
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    int done;

    assert(key.n == SEAL_KEY_BYTES && plain.n < MIB && bound.n < MIB);
    done = context && encrypt(context, key, nonce, bound, plain, out);
    EVP_CIPHER_CTX_free(context);
    return done ? 0 : failed(err);
}

int seal_make(struct str key, struct str bound, struct str plain, struct buf *out, struct err *err)
{
    size_t before = out->n;
    unsigned char nonce[SEAL_NONCE_BYTES];
    static const char blank[64];

    seal_random(nonce, sizeof nonce);
    if (buf_add(out, nonce, sizeof nonce, err) < 0)
        return -1;
    for (size_t left = plain.n + TAG_BYTES; left;) {
        size_t n = left < sizeof blank ? left : sizeof blank;

        if (buf_add(out, blank, n, err) < 0) {
            out->n = before;
            return -1;
        }
        left -= n;
    }
    return seal_with_nonce(key, nonce, bound, plain,
                           (unsigned char *)out->p + before + SEAL_NONCE_BYTES, err);
}

int seal_open(struct str key, struct str bound, struct str sealed, struct secret **out,
              struct err *err)
{
    AUTO(secret) struct secret *plain = NULL;
    EVP_CIPHER_CTX *context;
    char *room;
    int done;

    assert(key.n == SEAL_KEY_BYTES && bound.n < MIB);
    if (sealed.n < SEAL_EXTRA_BYTES || sealed.n > MIB)
        return err_set(err, ERR_INTEGRITY, "sealed bytes of a wrong length");
    if (secret_blank(sealed.n - SEAL_EXTRA_BYTES, &plain, &room, err) < 0)
        return -1;
    context = EVP_CIPHER_CTX_new();
    done = context && decrypt(context, key, bound, sealed, (unsigned char *)room);
    EVP_CIPHER_CTX_free(context);
    if (!done)
        return err_set(err, ERR_INTEGRITY, "sealed bytes were changed, or the key is another one");
    *out = TAKE(plain);
    return 0;
}

int seal_key_new(struct secret **out, struct err *err)
{
    char *room;

    if (secret_blank(SEAL_KEY_BYTES, out, &room, err) < 0)
        return -1;
    seal_random(room, SEAL_KEY_BYTES);
    return 0;
}

int seal_key_for(struct str key, const char *purpose, struct secret **out, struct err *err)
{
    struct hash from, made;
    int result;

    assert(key.n == sizeof from.b);
    memcpy(from.b, key.p, sizeof from.b);
    hmac_of(&from, str_of(purpose), &made);
    result = secret_new((struct str){(const char *)made.b, sizeof made.b}, out, err);
    secret_wipe(&from, sizeof from);
    secret_wipe(&made, sizeof made);
    return result;
}

int seal_key_file(int dir_fd, const char *name, const char *shown, struct secret **out,
                  struct err *err)
{
    static const struct key_file_kind kind = {"brig-aes256g-v1:", "vault's key"};
    AUTO(secret) struct secret *key = NULL;
    char *room;

    if (secret_blank(SEAL_KEY_BYTES, &key, &room, err) < 0 ||
        key_file_open(dir_fd, name, shown, &kind, (unsigned char *)room, err) < 0)
        return -1;
    *out = TAKE(key);
    return 0;
}

int seal_key_passphrase(struct str passphrase, const unsigned char salt[SEAL_SALT_BYTES],
                        struct secret **out, struct err *err)
{
    AUTO(secret) struct secret *key = NULL;
    char *room;

    if (passphrase.n < PASSPHRASE_MIN || passphrase.n > PASSPHRASE_MAX)
        return err_set(err, ERR_INVALID, "a passphrase has %d to %d bytes", PASSPHRASE_MIN,
                       PASSPHRASE_MAX);
    if (secret_blank(SEAL_KEY_BYTES, &key, &room, err) < 0)
        return -1;
    if (crypto_pwhash((unsigned char *)room, SEAL_KEY_BYTES, passphrase.p, passphrase.n, salt,
                      ARGON_PASSES, ARGON_BYTES, crypto_pwhash_ALG_ARGON2ID13) != 0)
        return err_set(err, ERR_LIMIT, "not enough memory to use a passphrase");
    *out = TAKE(key);
    return 0;
}

void seal_random(void *out, size_t n)
{
    crypto_ready();
    randombytes_buf(out, n);
}

void seal_ready(void)
{
    static const unsigned char nonce[SEAL_NONCE_BYTES];
    static const char key[SEAL_KEY_BYTES];
    unsigned char out[TAG_BYTES];
    struct err err;

    crypto_ready();
    if (seal_with_nonce((struct str){key, sizeof key}, nonce, (struct str){0}, (struct str){0}, out,
                        &err) < 0)
        return; /* whoever needs it hears it then */
}
