/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/crypto/crypto.h"

#include <assert.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/base/memory.h"
#include "lib/base/text.h"
#include "lib/crypto/key.h"

#define KEY_ID_PREFIX "ed25519:"
#define PEM_FIRST "-----BEGIN PUBLIC KEY-----"
#define PEM_LAST "-----END PUBLIC KEY-----"
#define SPKI_BYTES 44

/* RFC 8410: SEQUENCE { SEQUENCE { 1.3.101.112 }, BIT STRING of the 32 bytes behind this }. */
static const unsigned char spki_head[SPKI_BYTES - PUBLIC_KEY_BYTES] = {
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};

static_assert(SIGNATURE_BYTES == crypto_sign_BYTES, "Ed25519");
static_assert(PUBLIC_KEY_BYTES == crypto_sign_PUBLICKEYBYTES, "Ed25519");
static_assert(SEED_BYTES == crypto_sign_SEEDBYTES, "Ed25519");

void crypto_ready(void)
{
    /* Answers -1 only when there is no source of randomness, and then nothing may run. */
    if (sodium_init() < 0)
        abort();
}

/* The page of an allocation of libsodium's, which ends exactly at a page border. */
static void forget_on_fork(struct signing_key *key)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = (uintptr_t)key & ~(page - 1);

    /* Only kernels before 4.14 refuse; locked and guarded memory still holds there. */
    (void)madvise((void *)start, page, MADV_WIPEONFORK);
}

static struct signing_key *key_new(const unsigned char seed[SEED_BYTES])
{
    struct signing_key *key = sodium_malloc(sizeof *key);

    if (!key)
        return NULL;
    forget_on_fork(key);
    (void)crypto_sign_seed_keypair(key->public_key.b, key->secret, seed); /* always 0 */
    key->present = 1;
    (void)sodium_mprotect_readonly(key);
    return key;
}

int signing_key_open_at(int dir_fd, const char *name, const char *shown, struct signing_key **out,
                        struct err *err)
{
    static const struct key_file_kind kind = {"brig-ed25519-v1:", "signing key"};
    unsigned char seed[SEED_BYTES];
    struct signing_key *key;

    crypto_ready();
    if (key_file_open(dir_fd, name, shown, &kind, seed, err) < 0)
        return -1;
    key = key_new(seed);
    sodium_memzero(seed, sizeof seed);
    if (!key)
        return err_os(err, "locking memory for the signing key");
    *out = key;
    return 0;
}

int signing_key_open(const char *path, struct signing_key **out, struct err *err)
{
    AUTO_FREE char *dir = xstrdup(path);
    AUTO_FD int dir_fd = -1;
    char *slash = strrchr(dir, '/');

    if (!slash)
        return err_set(err, ERR_INVALID, "the signing key \"%s\" needs a path with a folder", path);
    *slash = '\0';
    dir_fd = open(slash == dir ? "/" : dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        return err_os(err, "opening the folder of the signing key %s", path);
    return signing_key_open_at(dir_fd, slash + 1, path, out, err);
}

void signing_key_free(struct signing_key *key)
{
    sodium_free(key); /* wipes; accepts NULL */
}

void signing_key_sign_bytes(const struct signing_key *key, struct str bytes, struct signature *out)
{
    assert(key->present); /* a forked child has none and must not pretend */
    (void)crypto_sign_detached(out->b, NULL, (const unsigned char *)bytes.p, bytes.n,
                               key->secret); /* always 0 */
}

void signing_key_sign(const struct signing_key *key, const struct hash *hash, struct signature *out)
{
    signing_key_sign_bytes(key, (struct str){(const char *)hash->b, sizeof hash->b}, out);
}

const struct public_key *signing_key_public(const struct signing_key *key)
{
    return &key->public_key;
}

void key_id(const struct public_key *key, char out[KEY_ID_BYTES])
{
    struct hash hash;

    static_assert(sizeof KEY_ID_PREFIX + 16 == KEY_ID_BYTES, "prefix, 16 digits, NUL");
    hash_of((struct str){(const char *)key->b, sizeof key->b}, &hash);
    memcpy(out, KEY_ID_PREFIX, sizeof KEY_ID_PREFIX - 1);
    hex_encode(hash.b, 8, out + sizeof KEY_ID_PREFIX - 1);
}

bool signature_holds_bytes(const struct signature *signature, struct str bytes,
                           const struct public_key *key)
{
    crypto_ready();
    return crypto_sign_verify_detached(signature->b, (const unsigned char *)bytes.p, bytes.n,
                                       key->b) == 0;
}

bool signature_holds(const struct signature *signature, const struct hash *hash,
                     const struct public_key *key)
{
    return signature_holds_bytes(signature, (struct str){(const char *)hash->b, sizeof hash->b},
                                 key);
}

void public_key_pem(const struct public_key *key, char out[PUBLIC_KEY_PEM_BYTES])
{
    unsigned char spki[SPKI_BYTES];
    char base64[sodium_base64_ENCODED_LEN(SPKI_BYTES, sodium_base64_VARIANT_ORIGINAL)];

    memcpy(spki, spki_head, sizeof spki_head);
    memcpy(spki + sizeof spki_head, key->b, sizeof key->b);
    (void)sodium_bin2base64(base64, sizeof base64, spki, sizeof spki,
                            sodium_base64_VARIANT_ORIGINAL);
    (void)snprintf(out, PUBLIC_KEY_PEM_BYTES, PEM_FIRST "\n%s\n" PEM_LAST "\n", base64);
}

static struct str trim_lines(struct str s)
{
    static const char blank[] = " \t\r\n";

    while (s.n && memchr(blank, s.p[0], sizeof blank - 1)) {
        s.p++;
        s.n--;
    }
    while (s.n && memchr(blank, s.p[s.n - 1], sizeof blank - 1))
        s.n--;
    return s;
}

static bool read_pem(struct str text, struct public_key *out)
{
    const size_t first = sizeof PEM_FIRST - 1;
    const size_t last = sizeof PEM_LAST - 1;
    unsigned char spki[SPKI_BYTES];
    size_t n = 0;

    if (text.n < first + last || !str_starts(text, PEM_FIRST) || !str_ends(text, PEM_LAST))
        return false;
    if (sodium_base642bin(spki, sizeof spki, text.p + first, text.n - first - last, "\r\n", &n,
                          NULL, sodium_base64_VARIANT_ORIGINAL) < 0 ||
        n != sizeof spki || memcmp(spki, spki_head, sizeof spki_head) != 0)
        return false;
    memcpy(out->b, spki + sizeof spki_head, sizeof out->b);
    return true;
}

int public_key_read(struct str text, struct public_key *out, struct err *err)
{
    struct public_key key;

    text = trim_lines(text);
    if (!hex_decode(text, key.b, sizeof key.b) && !read_pem(text, &key))
        return err_set(err, ERR_INVALID,
                       "not an Ed25519 public key: expected \"" PEM_FIRST "\" or 64 hex digits");
    crypto_ready();
    if (!crypto_core_ed25519_is_valid_point(key.b))
        return err_set(err, ERR_INVALID,
                       "not an Ed25519 public key: nobody can have the other half of these 32 "
                       "bytes");
    *out = key;
    return 0;
}
