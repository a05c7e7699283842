/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "cmd/egress/dns.h"

#define HEAD "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
#define NAME                                                                                       \
    "\x03"                                                                                         \
    "api\x07"                                                                                      \
    "example\x03"                                                                                  \
    "com\x00"
#define A "\x00\x01\x00\x01"
#define OPT "\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00"
#define MESSAGE(literal) ((struct str){(literal), sizeof(literal) - 1})

TEST(a_question_is_read)
{
    struct dns_question q;
    enum dns_code code;

    CHECK_INT(dns_question_read(MESSAGE(HEAD NAME A), &q, &code), 0);
    CHECK_TEXT(q.name, "api.example.com");
    CHECK_INT(q.type, DNS_A);
    CHECK_INT(q.id, 0x1234);
    CHECK(q.recursion && !q.has_edns);
    CHECK_INT(dns_question_read(MESSAGE("\x12\x34\x00\x00\x00\x01\x00\x00\x00\x00\x00\x01"
                                        "\x01"
                                        "A\x00\x00\x1c\x00\x01" OPT),
                                &q, &code),
              0);
    CHECK_TEXT(q.name, "a");
    CHECK_INT(q.type, DNS_AAAA);
    CHECK(!q.recursion && q.has_edns);
}

TEST(what_is_no_plain_question_is_refused)
{
    static const struct {
        struct str message;
        enum dns_code code;
    } cases[] = {
        {MESSAGE(""),                                                                DNS_OK       },
        {MESSAGE("\x12\x34\x01"),                                                    DNS_OK       },
 /* an answer */
        {MESSAGE("\x12\x34\x81\x00\x00\x01\x00\x00\x00\x00\x00\x00" NAME A),         DNS_OK       },
 /* another opcode: update */
        {MESSAGE("\x12\x34\x28\x00\x00\x01\x00\x00\x00\x00\x00\x00" NAME A),         DNS_NOT_DONE },
 /* two questions, none, with an answer, with an authority */
        {MESSAGE("\x12\x34\x01\x00\x00\x02\x00\x00\x00\x00\x00\x00" NAME A NAME A),  DNS_MALFORMED},
        {MESSAGE("\x12\x34\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00"),                DNS_MALFORMED},
        {MESSAGE("\x12\x34\x01\x00\x00\x01\x00\x01\x00\x00\x00\x00" NAME A),         DNS_MALFORMED},
        {MESSAGE("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x01\x00\x00" NAME A),         DNS_MALFORMED},
 /* cut off: by a flag, in the name, before type and class */
        {MESSAGE("\x12\x34\x03\x00\x00\x01\x00\x00\x00\x00\x00\x00" NAME A),         DNS_MALFORMED},
        {MESSAGE(HEAD "\x03"
                      "ap"),
         DNS_MALFORMED                                                                            },
        {MESSAGE(HEAD NAME "\x00\x01\x00"),                                          DNS_MALFORMED},
 /* a pointer, a label of 64, a byte no name has, bytes behind the end */
        {MESSAGE(HEAD "\xc0\x0c" A),                                                 DNS_MALFORMED},
        {MESSAGE(HEAD "\x40"
                      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                      "\x00" A),
         DNS_MALFORMED                                                                            },
        {MESSAGE(HEAD "\x03"
                      "a.b\x00" A),
         DNS_MALFORMED                                                                            },
        {MESSAGE(HEAD "\x03"
                      "a\x00"
                      "b\x00" A),
         DNS_MALFORMED                                                                            },
        {MESSAGE(HEAD NAME A "x"),                                                   DNS_MALFORMED},
 /* an additional record that is not OPT, or two, or longer than it says */
        {MESSAGE("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01" NAME A
                 "\x00\x00\x10\x04\xd0\x00\x00\x00\x00\x00\x00"),
         DNS_MALFORMED                                                                            },
        {MESSAGE("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x02" NAME A OPT OPT), DNS_MALFORMED},
        {MESSAGE("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01" NAME A OPT "x"), DNS_MALFORMED},
 /* another class: chaos */
        {MESSAGE(HEAD NAME "\x00\x10\x00\x03"),                                      DNS_REFUSED  },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dns_question q;
        enum dns_code code = DNS_OK;

        CHECK_INT(dns_question_read(cases[i].message, &q, &code), -1);
        CHECK_INT(code, cases[i].code);
    }
}

TEST(a_name_of_254_bytes_is_refused)
{
    char message[400] = HEAD;
    struct dns_question q;
    enum dns_code code;
    size_t n = DNS_HEAD_BYTES;

    for (unsigned i = 0; i < 4; i++) { /* 4 × 63 and three dots: 255 */
        message[n++] = 63;
        memset(message + n, 'a', 63);
        n += 63;
    }
    message[n++] = 0;
    memcpy(message + n, A, 4);
    CHECK_INT(dns_question_read((struct str){message, n + 4}, &q, &code), -1);
    message[DNS_HEAD_BYTES + 3 * 64] = 61; /* 253, with its last two bytes cut off */
    message[DNS_HEAD_BYTES + 3 * 64 + 62] = 0;
    memcpy(message + DNS_HEAD_BYTES + 3 * 64 + 63, A, 4);
    CHECK_INT(dns_question_read((struct str){message, n + 4 - 2}, &q, &code), 0);
    CHECK_INT(q.name_n, 253);
}

TEST(answers_are_what_a_resolver_expects)
{
    static const unsigned char address[4] = {198, 18, 1, 2};
    char out[DNS_ANSWER_BYTES];
    struct dns_question q;
    enum dns_code code;
    size_t n;

    CHECK_INT(dns_question_read(MESSAGE(HEAD NAME A), &q, &code), 0);
    n = dns_answer_write(&q, DNS_OK, address, 60, out);
    CHECK_INT(n, 12 + sizeof(NAME A) - 1 + 16);
    CHECK(memcmp(out, "\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00" NAME A, n - 16) == 0);
    CHECK(memcmp(out + n - 16, "\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc6\x12\x01\x02",
                 16) == 0);
    n = dns_answer_write(&q, DNS_NO_SUCH_NAME, NULL, 0, out);
    CHECK_INT(n, 12 + sizeof(NAME A) - 1);
    CHECK_INT(out[3], (char)0x83);
    CHECK_INT(out[7], 0);
}
