/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "lib/base/attrs.h"
#include "lib/crypto/crypto.h"

TEST(sha256_gives_the_answers_of_fips_180)
{
    static const struct {
        const char *text;
        const char *hash;
    } cases[] = {
        {"",                                                         "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc",                                                      "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "sha256:248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"                                                            },
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrl"
         "mnopqrsmnopqrstnopqrstu",                         "sha256:cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[HASH_TEXT_BYTES];

        hash_text_of(str_of(cases[i].text), text);
        CHECK_TEXT(text, cases[i].hash);
    }
}

TEST(hmac_gives_the_answers_of_rfc_4231)
{
    static const struct {
        struct hash key; /* a shorter one is filled up with zeros there, too */
        const char *text;
        const char *mac;
    } cases[] = {
  /* clang-format off */
        {{"\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b"},
         "Hi There",
         "sha256:b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {{"Jefe"},
         "what do ya want for nothing?",
         "sha256:5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
  /* clang-format on */
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[HASH_TEXT_BYTES];
        struct hash mac, other;

        hmac_of(&cases[i].key, str_of(cases[i].text), &mac);
        hash_text(&mac, text);
        CHECK_TEXT(text, cases[i].mac);
        other = mac;
        CHECK(hash_is_same(&mac, &other));
        other.b[HASH_BYTES - 1] ^= 1;
        CHECK(!hash_is_same(&mac, &other));
    }
}

TEST(a_million_letters_hash_the_same_in_pieces_of_any_size)
{
    static const char letters[] =
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    for (size_t piece = 1; piece < sizeof letters; piece += 7) {
        struct hasher h;
        struct hash hash;
        char text[HASH_TEXT_BYTES];

        hasher_init(&h);
        for (size_t left = 1000000; left;) {
            size_t n = left < piece ? left : piece;

            hasher_add(&h, letters, n);
            left -= n;
        }
        hasher_end(&h, &hash);
        hash_text(&hash, text);
        CHECK_TEXT(text, "sha256:cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    }
}

#define DIGITS "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

TEST(the_text_of_a_hash_reads_back_and_nothing_else_does)
{
    static const struct {
        const char *text;
        bool good;
    } cases[] = {
        {"sha256:" DIGITS,                                                          true },
        {DIGITS,                                                                    false},
        {"sha256:" DIGITS "0",                                                      false},
        {"sha256:" DIGITS " ",                                                      false},
        {"SHA256:" DIGITS,                                                          false},
        {"sha256:BA7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", false},
        {"sha256:ba7816bf",                                                         false},
        {"",                                                                        false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hash hash = {{0}};
        char back[HASH_TEXT_BYTES];

        CHECK_INT(hash_from_text(str_of(cases[i].text), &hash), cases[i].good);
        hash_text(&hash, back);
        CHECK_INT(strcmp(back, cases[i].text) == 0, cases[i].good);
    }
}
