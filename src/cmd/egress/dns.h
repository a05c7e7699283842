/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Questions of a resolver and our answers, RFC 1035 and 6891, as bytes. We are the only server a
 * sandbox knows and answer from what we know, so nothing is ever handed on. */

#include "lib/base/str.h"

#define DNS_NAME_BYTES 254
#define DNS_ANSWER_BYTES 512 /* enough for any of ours */
#define DNS_HEAD_BYTES 12

enum dns_type {
    DNS_A = 1,
    DNS_AAAA = 28,
};

enum dns_code {
    DNS_OK = 0,
    DNS_MALFORMED = 1,
    DNS_NO_SUCH_NAME = 3,
    DNS_NOT_DONE = 4, /* a question of a kind nobody here answers */
    DNS_REFUSED = 5,
};

struct dns_question {
    uint16_t id;
    uint16_t type;
    bool recursion; /* was wished for */
    bool has_edns;
    char name[DNS_NAME_BYTES]; /* lower case, without a dot at its end; "" is the root */
    size_t name_n;
    struct str wire; /* the question as sent: name, type, class; a slice of the message */
};

/* One query with one question of the internet class. 0, or -1 and *code: what is answered, or
 * DNS_OK for a message that deserves no answer (an answer itself, a stump). Then out->id and
 * out->wire are what could be read, wire maybe empty. Labels have letters, digits, "-" and "_". */
int dns_question_read(struct str message, struct dns_question *out, enum dns_code *code);

/* The answer's bytes; with `address` (of an A question) it has one record of ttl_s. */
size_t dns_answer_write(const struct dns_question *question, enum dns_code code,
                        const unsigned char *address, uint32_t ttl_s, char out[DNS_ANSWER_BYTES]);
