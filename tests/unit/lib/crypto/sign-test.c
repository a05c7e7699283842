/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/text.h"
#include "lib/crypto/crypto.h"

static char dir[] = "/tmp/brig-sign-XXXXXX";

static struct signing_key *key_of_seed(const char *seed_hex)
{
    struct signing_key *key = NULL;
    char path[64];
    char text[128];
    struct err err;

    CHECK(mkdtemp(dir) != NULL);
    (void)snprintf(path, sizeof path, "%s/key", dir);
    (void)snprintf(text, sizeof text, "brig-ed25519-v1:%s\n", seed_hex);
    if (file_replace(path, text, strlen(text), 0600, &err) < 0 ||
        signing_key_open(path, &key, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    (void)unlink(path);
    (void)rmdir(dir);
    return key;
}

static void decode(const char *hex, void *out, size_t n)
{
    CHECK(hex_decode(str_of(hex), out, n));
}

struct rfc_case {
    const char *seed;
    const char *public_key;
    const char *message;
    const char *signature;
};

static void check_rfc_case(const struct rfc_case *c)
{
    AUTO(signing_key) struct signing_key *key = key_of_seed(c->seed);
    unsigned char message[64];
    struct str bytes = {(const char *)message, strlen(c->message) / 2};
    struct signature signature;
    char text[2 * SIGNATURE_BYTES + 1];

    decode(c->message, message, bytes.n);
    hex_encode(signing_key_public(key)->b, PUBLIC_KEY_BYTES, text);
    CHECK_TEXT(text, c->public_key);
    signing_key_sign_bytes(key, bytes, &signature);
    hex_encode(signature.b, SIGNATURE_BYTES, text);
    CHECK_TEXT(text, c->signature);
    CHECK(signature_holds_bytes(&signature, bytes, signing_key_public(key)));
}

TEST(ed25519_gives_the_answers_of_rfc_8032)
{
    static const struct rfc_case empty = {
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701c"
        "f9b46bd25bf5f0595bbe24655141438e7a100b"};

    check_rfc_case(&empty);
}

TEST(ed25519_gives_the_answers_of_rfc_8032_for_one_byte)
{
    static const struct rfc_case one = {
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0"
        "f11d8c387b2eaeb4302aeeb00d291612bb0c00"};

    check_rfc_case(&one);
}

TEST(ed25519_gives_the_answers_of_rfc_8032_for_64_bytes)
{
    static const struct rfc_case sha_abc = {
        "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3"
        "feebbd454d4423643ce80e2a9ac94fa54ca49f",
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c664"
        "31e0303dca179c138ac17ad9bef1177331a704"};

    check_rfc_case(&sha_abc);
}

/* The cases of "Taming the many EdDSAs" (Chalkias, Garillot, Nikolaenko, 2020, table 6c). */
TEST(the_acceptance_rule_is_the_documented_one)
{
    static const struct {
        const char *what;
        const char *message;
        const char *key;
        const char *r;
        const char *s;
        bool holds;
    } cases[] = {
        {"small A, small R, S = 0",
         "8c93255d71dcab10e8f379c26200f3c7bd5f09d9bc3068d3ef4edeb4853022b6",                                                                   "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
         "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",                                                                                                                                                                                                           "0000000000000000000000000000000000000000000000000000000000000000", false},
        {"small A, mixed R",                                               "9bd9f44f4dcc75bd531b56b2cd280b0bb38fc1cd6d1230e14861d861de092e79",
         "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",                                                                                                                                       "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43",
         "a5bb704786be79fc476f91d3f3f89b03984d8068dcf1bb7dfc6637b45450ac04",                                                                                                                                                                                                                                                                               false},
        {"mixed A, small R",                                               "aebf3f2601a0c8c5d39cc7d8911642f740b78168218da8471772b35f9d35b9ab",
         "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43",                                                                                                                                       "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
         "8c4bd45aecaca5b24fb97bc10ac27ac8751a7dfe1baff8b953ec9f5833ca260e",                                                                                                                                                                                                                                                                               false},
        {"mixed A and R, both equations hold",
         "9bd9f44f4dcc75bd531b56b2cd280b0bb38fc1cd6d1230e14861d861de092e79",                                                                   "cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d",
         "9046a64750444938de19f227bb80485e92b83fdb4b6506c160484c016cc1852f",                                                                                                                                                                                                           "87909e14428a7a1d62e9f22f3d3ad7802db02eb2e688b6c52fcd6648a98bd009", true },
        {"a low-order residue: only the equation with the cofactor holds",
         "e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec4011eaccd55b53f56c",                                                                   "cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d",
         "160a1cb0dc9c0258cd0a7d23e94d8fa878bcb1925f2c64246b2dee1796bed512",                                                                                                                                                                                                           "5ec6bc982a269b723e0668e540911a9a6a58921d6925e434ab10aa7940551a09", false},
        {"a low-order residue, k reduced after multiplying",
         "e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec4011eaccd55b53f56c",                                                                   "cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d",
         "21122a84e0b5fca4052f5b1235c80a537878b38f3142356b2c2384ebad4668b7",                                                                                                                                                                                                           "e40bc836dac0f71076f9abe3a53f9c03c1ceeeddb658d0030494ace586687405", false},
        {"S above L",                                                      "85e241a07d148b41e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec40",
         "442aad9f089ad9e14647b1ef9099a1ff4798d78589e66f28eca69c11f582a623",                                                                                                                                       "e96f66be976d82e60150baecff9906684aebb1ef181f67a7189ac78ea23b6c0e",
         "547f7690a0e2ddcd04d87dbc3490dc19b3b3052f7ff0538cb68afb369ba3a514",                                                                                                                                                                                                                                                                               false},
        {"S far above L",                                                  "85e241a07d148b41e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec40",
         "442aad9f089ad9e14647b1ef9099a1ff4798d78589e66f28eca69c11f582a623",                                                                                                                                       "8ce5b96c8f26d0ab6c47958c9e68b937104cd36e13c33566acd2fe8d38aa1942",
         "7e71f98a4734e74f2f13f06f97c20d58cc3f54b8bd0d272f42b695dd7e89a8c2",                                                                                                                                                                                                                                                                               false},
        {"R not canonical",                                                "9bedc267423725d473888631ebf45988bad3db83851ee85c85e241a07d148b41",
         "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43",                                                                                                                                       "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
         "03be9678ac102edcd92b0210bb34d7428d12ffc5df5f37e359941266a4e35f0f",                                                                                                                                                                                                                                                                               false},
        {"R not canonical, hashed after reduction",
         "9bedc267423725d473888631ebf45988bad3db83851ee85c85e241a07d148b41",                                                                   "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43",
         "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",                                                                                                                                                                                                           "ca8c5b64cd208982aa38d4936621a4775aa233aa0505711d8fdcfdaa943d4908", false},
        {"A not canonical",                                                "e96b7021eb39c1a163b6da4e3093dcd3f21387da4cc4572be588fafae23c155b",
         "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",                                                                                                                                       "a9d55260f765261eb9b84e106f665e00b867287a761990d7135963ee0a7d59dc",
         "a5bb704786be79fc476f91d3f3f89b03984d8068dcf1bb7dfc6637b45450ac04",                                                                                                                                                                                                                                                                               false},
        {"A not canonical, hashed after reduction",
         "39a591f5321bbe07fd5a23dc2f39d025d74526615746727ceefd6e82ae65c06f",                                                                   "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
         "a9d55260f765261eb9b84e106f665e00b867287a761990d7135963ee0a7d59dc",                                                                                                                                                                                                           "a5bb704786be79fc476f91d3f3f89b03984d8068dcf1bb7dfc6637b45450ac04", false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hash hash;
        struct public_key key;
        struct signature signature;

        decode(cases[i].message, hash.b, sizeof hash.b);
        decode(cases[i].key, key.b, sizeof key.b);
        decode(cases[i].r, signature.b, 32);
        decode(cases[i].s, signature.b + 32, 32);
        if (signature_holds(&signature, &hash, &key) != cases[i].holds)
            test_fail(__FILE__, __LINE__, "%s: should %s", cases[i].what,
                      cases[i].holds ? "hold" : "be refused");
    }
}

/* Adding L to S gives the same sum; only the demand that S is reduced refuses it. */
static void add_order(unsigned char s[32])
{
    static const unsigned char order[32] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58,
                                            0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
                                            0,    0,    0,    0,    0,    0,    0,    0,
                                            0,    0,    0,    0,    0,    0,    0,    0x10};
    unsigned carry = 0;

    for (size_t i = 0; i < 32; i++) {
        carry += (unsigned)s[i] + order[i];
        s[i] = (unsigned char)carry;
        carry >>= 8;
    }
}

#define SEED "0707070707070707070707070707070707070707070707070707070707070707"

TEST(a_signature_holds_for_its_hash_and_key_only)
{
    AUTO(signing_key) struct signing_key *key = key_of_seed(SEED);
    struct public_key other = *signing_key_public(key);
    struct hash hash;
    struct signature signature;

    hash_of(STR_LIT("a body"), &hash);
    signing_key_sign(key, &hash, &signature);
    CHECK(signature_holds(&signature, &hash, signing_key_public(key)));
    add_order(signature.b + 32);
    CHECK(!signature_holds(&signature, &hash, signing_key_public(key)));
    for (size_t bit = 0; bit < 8 * sizeof signature.b; bit++) {
        signing_key_sign(key, &hash, &signature);
        signature.b[bit / 8] ^= (unsigned char)(1U << bit % 8);
        CHECK(!signature_holds(&signature, &hash, signing_key_public(key)));
    }
    signing_key_sign(key, &hash, &signature);
    hash.b[31] ^= 1;
    CHECK(!signature_holds(&signature, &hash, signing_key_public(key)));
    hash.b[31] ^= 1;
    other.b[0] ^= 1;
    CHECK(!signature_holds(&signature, &hash, &other));
}

TEST(a_key_id_names_the_public_key)
{
    AUTO(signing_key) struct signing_key *key = key_of_seed(SEED);
    struct hash hash;
    char wanted[2 * HASH_BYTES + 1];
    char id[KEY_ID_BYTES];

    key_id(signing_key_public(key), id);
    hash_of((struct str){(const char *)signing_key_public(key)->b, PUBLIC_KEY_BYTES}, &hash);
    hex_encode(hash.b, sizeof hash.b, wanted);
    CHECK_INT(strlen(id), 24);
    CHECK(strncmp(id, "ed25519:", 8) == 0);
    CHECK(strncmp(id + 8, wanted, 16) == 0);
}

TEST(a_forked_child_holds_no_key)
{
    AUTO(signing_key) struct signing_key *key = key_of_seed(SEED);
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        const unsigned char *secret = (const unsigned char *)key;
        unsigned sum = 0;

        for (size_t i = 0; i < 64; i++)
            sum |= secret[i];
        _exit(sum == 0 ? 0 : 1);
    }
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK_INT(status, 0);
}

/* The PEM of RFC 8410, section 10.1. */
#define PEM                                                                                        \
    "-----BEGIN PUBLIC KEY-----\n"                                                                 \
    "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n"                               \
    "-----END PUBLIC KEY-----\n"
#define PEM_HEX "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1"

TEST(a_public_key_is_written_and_read_as_openssl_does)
{
    static const char *const good[] = {PEM, PEM_HEX, PEM_HEX "\n", "\n  " PEM " \r\n"};
    char text[PUBLIC_KEY_PEM_BYTES];
    char hex[2 * PUBLIC_KEY_BYTES + 1];

    for (size_t i = 0; i < COUNT(good); i++) {
        struct public_key key = {{0}};
        struct err err;

        CHECK_INT(public_key_read(str_of(good[i]), &key, &err), 0);
        public_key_pem(&key, text);
        CHECK_TEXT(text, PEM);
        hex_encode(key.b, sizeof key.b, hex);
        CHECK_TEXT(hex, PEM_HEX);
    }
}

TEST(what_is_not_a_public_key_is_refused)
{
    static const char *const bad[] = {
        "",
        "-----BEGIN PUBLIC KEY-----",
        "-----BEGIN PUBLIC KEY----------END PUBLIC KEY-----",
        PEM_HEX "00",
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQ\n"
        "-----END PUBLIC KEY-----\n",
        /* X25519, one number further */
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VuAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n"
        "-----END PUBLIC KEY-----\n",
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE\n"
        "-----END PUBLIC KEY-----\n",
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct public_key key = {{0}};
        struct err err;

        CHECK_INT(public_key_read(str_of(bad[i]), &key, &err), -1);
        CHECK_INT(err.code, ERR_INVALID);
        CHECK_TEXT(err.text, "not an Ed25519 public key: expected \"-----BEGIN PUBLIC KEY-----\" "
                             "or 64 hex digits");
        CHECK_INT(key.b[0], 0);
    }
}

/* Bytes of the right length that no secret key leads to: no point, written in a second way, of low
 * order, or with a part of low order. */
TEST(what_nobody_can_sign_with_is_no_public_key)
{
    static const char *const bad[] = {
        "0000000000000000000000000000000000000000000000000000000000000000",
        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "0200000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        /* the key of RFC 8410 and the point of order two */
        "d440bbf6967b32017abe453e9823c46937af7955cf494934f3a3c7528fce991e",
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct public_key key = {{0}};
        struct err err;

        CHECK_INT(public_key_read(str_of(bad[i]), &key, &err), -1);
        CHECK_INT(err.code, ERR_INVALID);
        CHECK_TEXT(err.text, "not an Ed25519 public key: nobody can have the other half of these "
                             "32 bytes");
        CHECK_INT(key.b[0], 0);
    }
}
