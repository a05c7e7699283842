/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/egress/dns.h"

#include <string.h>

#define FLAG_ANSWER 0x8000U
#define FLAG_OPCODE 0x7800U
#define FLAG_CUT 0x0200U
#define FLAG_RECURSION 0x0100U
#define FLAG_RECURSION_HERE 0x0080U
#define CLASS_INTERNET 1
#define TYPE_OPT 41
#define LABEL_MAX 63
#define QUESTION_TAIL 4 /* type and class */
#define RECORD_HEAD 10  /* type, class, lifetime, length */
#define EDNS_SIZE 1232

static unsigned read16(const char *p)
{
    return (unsigned)(unsigned char)p[0] << 8 | (unsigned char)p[1];
}

static char *put16(char *p, unsigned value)
{
    p[0] = (char)(value >> 8);
    p[1] = (char)value;
    return p + 2;
}

static char *put32(char *p, uint32_t value)
{
    return put16(put16(p, value >> 16), value & 0xffffU);
}

/* Lower case, or 0 for a byte no host name has. */
static char letter(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_')
        return c;
    return 0;
}

/* Bytes of the name on the wire, 0 when it is none. No pointers: there is nothing before a
 * question that one could point to. */
static size_t read_name(struct str in, struct dns_question *out)
{
    size_t at = 0;

    out->name_n = 0;
    for (;;) {
        size_t n = at < in.n ? (unsigned char)in.p[at] : LABEL_MAX + 1;

        if (n > LABEL_MAX || at + 1 + n > in.n)
            return 0;
        at++;
        if (n == 0)
            break;
        if (out->name_n + (out->name_n > 0) + n >= sizeof out->name)
            return 0;
        if (out->name_n)
            out->name[out->name_n++] = '.';
        for (size_t i = 0; i < n; i++, at++) {
            char c = letter(in.p[at]);

            if (!c)
                return 0;
            out->name[out->name_n++] = c;
        }
    }
    out->name[out->name_n] = '\0';
    return at;
}

/* What may follow the question: one OPT record of the root, and nothing behind it. */
static bool read_rest(struct str rest, unsigned records, struct dns_question *out)
{
    if (records == 0)
        return rest.n == 0;
    if (records > 1 || rest.n < 1 + RECORD_HEAD || rest.p[0] != 0 ||
        read16(rest.p + 1) != TYPE_OPT || rest.n != 1 + RECORD_HEAD + read16(rest.p + 9))
        return false;
    out->has_edns = true;
    return true;
}

static int refuse(enum dns_code why, enum dns_code *code)
{
    *code = why;
    return -1;
}

int dns_question_read(struct str message, struct dns_question *out, enum dns_code *code)
{
    unsigned flags;
    size_t name_n;
    struct str in;

    *out = (struct dns_question){
        .wire = {"", 0}
    };
    if (message.n < DNS_HEAD_BYTES)
        return refuse(DNS_OK, code);
    flags = read16(message.p + 2);
    if (flags & FLAG_ANSWER)
        return refuse(DNS_OK, code);
    out->id = (uint16_t)read16(message.p);
    out->recursion = flags & FLAG_RECURSION;
    if (flags & FLAG_OPCODE)
        return refuse(DNS_NOT_DONE, code);
    if ((flags & FLAG_CUT) || read16(message.p + 4) != 1 || read16(message.p + 6) != 0 ||
        read16(message.p + 8) != 0)
        return refuse(DNS_MALFORMED, code);
    in = (struct str){message.p + DNS_HEAD_BYTES, message.n - DNS_HEAD_BYTES};
    name_n = read_name(in, out);
    if (name_n == 0 || in.n - name_n < QUESTION_TAIL)
        return refuse(DNS_MALFORMED, code);
    if (!read_rest((struct str){in.p + name_n + QUESTION_TAIL, in.n - name_n - QUESTION_TAIL},
                   read16(message.p + 10), out))
        return refuse(DNS_MALFORMED, code);
    out->wire = (struct str){in.p, name_n + QUESTION_TAIL};
    out->type = (uint16_t)read16(in.p + name_n);
    if (read16(in.p + name_n + 2) != CLASS_INTERNET)
        return refuse(DNS_REFUSED, code);
    return 0;
}

static char *put_address(char *p, const unsigned char *address, uint32_t ttl_s)
{
    p = put16(p, 0xc000U | DNS_HEAD_BYTES); /* the name is the question's */
    p = put16(p, DNS_A);
    p = put16(p, CLASS_INTERNET);
    p = put32(p, ttl_s);
    p = put16(p, 4);
    memcpy(p, address, 4);
    return p + 4;
}

static char *put_edns(char *p)
{
    *p++ = 0;
    p = put16(p, TYPE_OPT);
    p = put16(p, EDNS_SIZE);
    p = put32(p, 0);
    return put16(p, 0);
}

size_t dns_answer_write(const struct dns_question *question, enum dns_code code,
                        const unsigned char *address, uint32_t ttl_s, char out[DNS_ANSWER_BYTES])
{
    unsigned flags = FLAG_ANSWER | FLAG_RECURSION_HERE | (unsigned)code |
                     (question->recursion ? FLAG_RECURSION : 0);
    char *p = put16(out, question->id);

    p = put16(p, flags);
    p = put16(p, question->wire.n ? 1 : 0);
    p = put16(p, address ? 1 : 0);
    p = put16(p, 0);
    p = put16(p, question->has_edns ? 1 : 0);
    if (question->wire.n)
        memcpy(p, question->wire.p, question->wire.n);
    p += question->wire.n;
    if (address)
        p = put_address(p, address, ttl_s);
    if (question->has_edns)
        p = put_edns(p);
    return (size_t)(p - out);
}
