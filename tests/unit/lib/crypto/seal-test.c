/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <sodium.h>

#include "lib/base/text.h"
#include "lib/crypto/seal.h"

static struct str unhex(const char *hex, char *out)
{
    size_t n = strlen(hex) / 2;

    CHECK(hex_decode(str_of(hex), out, n));
    return (struct str){out, n};
}

/* Cases 13 to 16 of "The Galois/Counter Mode of Operation" (McGrew, Viega), as NIST took them over.
 */
TEST(aes_256_gcm_gives_the_answers_of_its_authors)
{
    static const struct {
        const char *key, *nonce, *bound, *plain, *sealed;
    } cases[] = {
  /* clang-format off */
        {"0000000000000000000000000000000000000000000000000000000000000000", "000000000000000000000000", "", "",
         "530f8afbc74536b9a963b4f1c4cb738b"},
        {"0000000000000000000000000000000000000000000000000000000000000000", "000000000000000000000000", "",
         "00000000000000000000000000000000",
         "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"},
        {"feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888", "",
         "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255",
         "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015adb094dac5d93471bdec1a502270e3cc6c"},
        {"feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
         "feedfacedeadbeeffeedfacedeadbeefabaddad2",
         "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
         "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f66276fc6ece0f4e1768cddf8853bb2d551b"},
  /* clang-format on */
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char key[32], nonce[12], bound[64], plain[128], text[2 * 128 + 1];
        unsigned char sealed[128];
        struct str p = unhex(cases[i].plain, plain), b = unhex(cases[i].bound, bound);
        struct err err;

        (void)unhex(cases[i].nonce, nonce);
        CHECK_INT(
            seal_with_nonce(unhex(cases[i].key, key), (unsigned char *)nonce, b, p, sealed, &err),
            0);
        hex_encode(sealed, p.n + 16, text);
        CHECK_TEXT(text, cases[i].sealed);
    }
}

/* The first of libsodium's own. */
TEST(argon2id_gives_the_published_answers)
{
    static const char password[] =
        "a347ae92bce9f80f6f595a4480fc9c2fe7e7d7148d371e9487d75f5c23008ffae065577a928febd9b1973a5a9507"
        "3acdbeb6a030cfc0d79caa2dc5cd011cef02c08da232d76d52dfbca38ca8dcbd665b17d1665f7cf5fe59772ec909"
        "733b24de97d6f58d220b20c60d7c07ec1fd93c52c31020300c6c1facd77937a597c7a6";
    char p[128], salt[16], text[2 * 155 + 1];
    unsigned char out[155];
    struct str pass = unhex(password, p);

    (void)unhex("5541fbc995d5c197ba290346d2c559de", salt);
    CHECK_INT(crypto_pwhash(out, sizeof out, pass.p, pass.n, (unsigned char *)salt, 5, 7256678,
                            crypto_pwhash_ALG_ARGON2ID13),
              0);
    hex_encode(out, sizeof out, text);
    CHECK(strncmp(text, "18acec5d6507739f203d1f5d9f1d862f7c2cdac4f19d2bdff64487e60d969e3c", 64) ==
          0);
}

TEST(every_bit_of_a_seal_counts)
{
    AUTO(secret) struct secret *key = NULL, *plain = NULL;
    AUTO_BUF struct buf sealed = BUF(256);
    struct err err;

    CHECK_INT(seal_key_new(&key, &err), 0);
    CHECK_INT(seal_make(secret_reveal(key), STR_LIT("name"), STR_LIT("value"), &sealed, &err), 0);
    CHECK_INT(sealed.n, 5 + SEAL_EXTRA_BYTES);
    for (size_t bit = 0; bit < sealed.n * 8; bit++) {
        sealed.p[bit / 8] ^= (char)(1 << bit % 8);
        CHECK_INT(seal_open(secret_reveal(key), STR_LIT("name"), buf_str(&sealed), &plain, &err),
                  -1);
        CHECK_INT(err.code, ERR_INTEGRITY);
        CHECK(plain == NULL);
        sealed.p[bit / 8] ^= (char)(1 << bit % 8);
    }
    CHECK_INT(seal_open(secret_reveal(key), STR_LIT("other"), buf_str(&sealed), &plain, &err), -1);
    CHECK_INT(
        seal_open(secret_reveal(key), STR_LIT("name"), (struct str){sealed.p, 20}, &plain, &err),
        -1);
    CHECK_INT(seal_open(secret_reveal(key), STR_LIT("name"), buf_str(&sealed), &plain, &err), 0);
    CHECK(str_is(secret_reveal(plain), "value"));
}

TEST(a_passphrase_gives_the_same_key_with_the_same_salt)
{
    AUTO(secret) struct secret *a = NULL, *b = NULL, *c = NULL;
    unsigned char salt[SEAL_SALT_BYTES] = {1}, other[SEAL_SALT_BYTES] = {2};
    struct err err;

    CHECK_INT(seal_key_passphrase(STR_LIT("correct horse battery"), salt, &a, &err), 0);
    CHECK_INT(seal_key_passphrase(STR_LIT("correct horse battery"), salt, &b, &err), 0);
    CHECK_INT(seal_key_passphrase(STR_LIT("correct horse battery"), other, &c, &err), 0);
    CHECK(secret_is_same(secret_reveal(a), secret_reveal(b)));
    CHECK(!secret_is_same(secret_reveal(a), secret_reveal(c)));
    CHECK_INT(seal_key_passphrase(STR_LIT("short"), salt, &c, &err), -1);
    CHECK_TEXT(err.text, "a passphrase has 12 to 1024 bytes");
}
