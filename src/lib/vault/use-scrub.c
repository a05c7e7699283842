/* SPDX-License-Identifier: Apache-2.0 */

/* At every place of the answer each value is tried in each form. A form reads along and says how
 * long what it found is, that it is something else, or that the bytes end before it is
 * decided; then everything from there on is held. Forms may be mixed within one kind ("%41b%43"),
 * because the one who encodes chooses which characters to escape. */

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "lib/base/memory.h"
#include "lib/crypto/secret.h"
#include "lib/vault/use-parts.h"

#define BASE64_FORMS 6
#define FORM_FACTOR 7 /* so many bytes for one at most: "%2525XX" */
#define MORE (-1)

struct value {
    size_t n;
    size_t base64_n[BASE64_FORMS];
    char *bytes;
    char *base64[BASE64_FORMS];
};

struct vault_scrub {
    struct secret *memory; /* of the values, their forms and what is held */
    struct value values[VAULT_SCRUB_MAX];
    size_t n;
    char *held;
    size_t held_n;
    size_t held_max;
    uint64_t hits;
    bool begins[256];
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* ---- forms: bytes of the match, 0 for none, MORE ---- */

static long match_plain(struct str wanted, struct str in)
{
    size_t n = wanted.n < in.n ? wanted.n : in.n;

    if (memcmp(wanted.p, in.p, n) != 0)
        return 0;
    return n == wanted.n ? (long)n : MORE;
}

/* One character of each form: as many bytes, 0, or MORE; *out is what it stands for. */

/* `nest` times "25" between the percent sign and the digits: encoded so many times more. */
static long read_percent_at(struct str in, unsigned nest, unsigned char *out)
{
    size_t at = 1 + 2 * (size_t)nest;

    *out = (unsigned char)(in.p[0] == '+' ? ' ' : in.p[0]);
    if (in.p[0] != '%')
        return 1;
    for (size_t i = 1; i < at + 2; i++) {
        if (i >= in.n)
            return MORE;
        if (i < at ? in.p[i] != (i % 2 ? '2' : '5') : hex_digit(in.p[i]) < 0)
            return 1;
    }
    *out = (unsigned char)(hex_digit(in.p[at]) * 16 + hex_digit(in.p[at + 1]));
    return (long)at + 2;
}

static long read_percent(struct str in, unsigned char *out)
{
    return read_percent_at(in, 0, out);
}

static long read_percent_twice(struct str in, unsigned char *out)
{
    return read_percent_at(in, 1, out);
}

static long read_percent_thrice(struct str in, unsigned char *out)
{
    return read_percent_at(in, 2, out);
}

static long read_escape(struct str in, unsigned char *out)
{
    static const char shorts[] = "b\bf\fn\nr\rt\t";
    unsigned value = 0;

    if (in.p[0] != '\\') {
        *out = (unsigned char)in.p[0];
        return 1;
    }
    if (in.n < 2)
        return MORE;
    if (in.p[1] != 'u') {
        *out = (unsigned char)in.p[1];
        for (size_t i = 0; i + 1 < sizeof shorts; i += 2)
            if (in.p[1] == shorts[i])
                *out = (unsigned char)shorts[i + 1];
        return 2;
    }
    for (size_t i = 2; i < 6; i++) {
        if (i >= in.n)
            return MORE;
        if (hex_digit(in.p[i]) < 0)
            return 0;
        value = value * 16 + (unsigned)hex_digit(in.p[i]);
    }
    *out = (unsigned char)value;
    return value < 0x80 ? 6 : 0;
}

static long read_hex(struct str in, unsigned char *out)
{
    int high = hex_digit(in.p[0]), low;

    if (high < 0)
        return 0;
    if (in.n < 2)
        return MORE;
    low = hex_digit(in.p[1]);
    *out = (unsigned char)(high * 16 + low);
    return low < 0 ? 0 : 2;
}

static long match_read(struct str wanted, struct str in,
                       long (*read)(struct str in, unsigned char *out))
{
    size_t at = 0;

    for (size_t i = 0; i < wanted.n; i++) {
        unsigned char c = 0;
        long got;

        if (at >= in.n)
            return MORE;
        got = read((struct str){in.p + at, in.n - at}, &c);
        if (got <= 0)
            return got;
        if (c != (unsigned char)wanted.p[i])
            return 0;
        at += (size_t)got;
    }
    return (long)at;
}

static long match_value(const struct value *value, struct str in)
{
    static long (*const readers[])(struct str, unsigned char *) = {
        read_percent, read_percent_twice, read_percent_thrice, read_escape, read_hex};
    struct str wanted = {value->bytes, value->n};
    long got = match_plain(wanted, in);
    bool is_open = got == MORE;

    for (size_t i = 0; i < COUNT(readers) && got <= 0; i++) {
        got = match_read(wanted, in, readers[i]);
        is_open |= got == MORE;
    }
    for (size_t i = 0; i < BASE64_FORMS && got <= 0; i++) {
        got = match_plain((struct str){value->base64[i], value->base64_n[i]}, in);
        is_open |= got == MORE;
    }
    return got > 0 ? got : is_open ? MORE : 0;
}

static long match_any(const struct vault_scrub *scrub, struct str in)
{
    long best = 0;

    for (size_t i = 0; i < scrub->n; i++) {
        long got = match_value(&scrub->values[i], in);

        if (got > 0)
            return got;
        if (got == MORE)
            best = MORE;
    }
    return best;
}

/* ---- making one ---- */

/* The part of a text's base64 that is the same whatever stands around it, with `skip` bytes
 * before it in its group of three. */
static size_t core_of_base64(struct str value, unsigned skip, const char *letters, char *out)
{
    size_t first = (skip * 8 + 5) / 6, last = (value.n + skip) * 8 / 6, n = 0;

    for (size_t i = first; i < last; i++) {
        unsigned bits = 0;

        for (unsigned b = 0; b < 6; b++) {
            size_t bit = i * 6 + b - (size_t)skip * 8;

            bits = bits << 1 | ((unsigned char)value.p[bit / 8] >> (7 - bit % 8) & 1U);
        }
        out[n++] = letters[bits];
    }
    return n;
}

static size_t room_of(size_t value_n)
{
    return value_n + BASE64_FORMS * (value_n / 3 * 4 + 4);
}

static char *put_value(struct str bytes, struct value *out, char *room)
{
    static const char letters[2][65] = {
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
    };

    memcpy(room, bytes.p, bytes.n);
    *out = (struct value){.n = bytes.n, .bytes = room};
    room += bytes.n;
    for (unsigned i = 0; i < BASE64_FORMS; i++) {
        out->base64[i] = room;
        out->base64_n[i] = core_of_base64(bytes, i % 3, letters[i / 3], room);
        room += out->base64_n[i];
    }
    return room;
}

static void note_beginnings(struct vault_scrub *scrub, const struct value *value)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    unsigned char first = (unsigned char)value->bytes[0];

    scrub->begins[first] = true;
    scrub->begins['%'] = scrub->begins['\\'] = true;
    if (first == ' ')
        scrub->begins['+'] = true;
    scrub->begins[(unsigned char)digits[first >> 4]] = true;
    scrub->begins[(unsigned char)digits[16 + (first >> 4)]] = true;
    for (size_t i = 0; i < BASE64_FORMS; i++)
        scrub->begins[(unsigned char)value->base64[i][0]] = true;
}

static int check_values(const struct str *values, size_t n, struct err *err)
{
    if (n > VAULT_SCRUB_MAX)
        return err_set(err, ERR_LIMIT, "more than %d secrets to look for", VAULT_SCRUB_MAX);
    for (size_t i = 0; i < n; i++)
        if (values[i].n < VAULT_VALUE_MIN || values[i].n > VAULT_VALUE_MAX)
            return err_set(err, ERR_INVALID, "a secret has %d to %d bytes", VAULT_VALUE_MIN,
                           VAULT_VALUE_MAX);
    return 0;
}

int vault_scrub_new(const struct str *values, size_t n, struct vault_scrub **out, struct err *err)
{
    AUTO(secret) struct secret *memory = NULL;
    struct vault_scrub *scrub;
    size_t size = 0, longest = 0;
    char *room;

    if (check_values(values, n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        size += room_of(values[i].n);
        longest = values[i].n > longest ? values[i].n : longest;
    }
    if (secret_blank(size + longest * FORM_FACTOR, &memory, &room, err) < 0)
        return -1;
    scrub = xcalloc(1, sizeof *scrub);
    scrub->memory = TAKE(memory);
    scrub->n = n;
    scrub->held_max = longest * FORM_FACTOR;
    for (size_t i = 0; i < n; i++) {
        room = put_value(values[i], &scrub->values[i], room);
        note_beginnings(scrub, &scrub->values[i]);
    }
    scrub->held = room;
    *out = scrub;
    return 0;
}

void vault_scrub_free(struct vault_scrub *scrub)
{
    if (!scrub)
        return;
    secret_free(scrub->memory);
    free(scrub);
}

/* ---- looking through ---- */

/* Overwrites in [at, n) what is found; returns how far everything is decided. */
static size_t scrub_bytes(struct vault_scrub *scrub, char *bytes, size_t n, bool is_last)
{
    size_t at = 0;

    while (at < n) {
        long got = 0;

        if (scrub->begins[(unsigned char)bytes[at]])
            got = match_any(scrub, (struct str){bytes + at, n - at});
        if (got == MORE && !is_last && n - at <= scrub->held_max)
            return at;
        if (got > 0) {
            memset(bytes + at, '*', (size_t)got);
            scrub->hits++;
            at += (size_t)got;
        } else {
            at++;
        }
    }
    return n;
}

int vault_scrub_feed(struct vault_scrub *scrub, struct str piece, bool is_last, struct buf *out,
                     struct err *err)
{
    size_t before = out->n;
    size_t done;

    if (buf_add(out, scrub->held, scrub->held_n, err) < 0)
        return -1;
    if (buf_add_str(out, piece, err) < 0) {
        out->n = before;
        return -1;
    }
    if (out->n == before)
        return 0;
    done = scrub_bytes(scrub, out->p + before, out->n - before, is_last);
    scrub->held_n = out->n - before - done;
    memcpy(scrub->held, out->p + before + done, scrub->held_n);
    secret_wipe(out->p + before + done, scrub->held_n);
    out->n = before + done;
    return 0;
}

void vault_scrub_follow(struct vault_scrub *scrub, struct vault_scrub *before)
{
    assert(scrub->held_n == 0 && before->held_n <= scrub->held_max);
    memcpy(scrub->held, before->held, before->held_n);
    scrub->held_n = before->held_n;
    scrub->hits = before->hits;
    before->held_n = 0;
}

size_t vault_scrub_held_max(const struct vault_scrub *scrub)
{
    return scrub->held_max;
}

bool vault_scrub_text(struct vault_scrub *scrub, char *text, size_t n)
{
    uint64_t before = scrub->hits;

    (void)scrub_bytes(scrub, text, n, true);
    return scrub->hits > before;
}

uint64_t vault_scrub_hits(const struct vault_scrub *scrub)
{
    return scrub->hits;
}

enum vault_fault vault_answer_check(const struct http_header *headers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (http_name_is(headers[i].name, "content-encoding") && headers[i].value.n &&
            !(headers[i].value.n == 8 && strncasecmp(headers[i].value.p, "identity", 8) == 0))
            return VAULT_FAULT_ENCODED_ANSWER;
    return VAULT_NO_FAULT;
}
