/* SPDX-License-Identifier: Apache-2.0 */

/* The client hello, read before OpenSSL sees it (RFC 8446 4.1.2, 5.1; RFC 6066 3; RFC 7301).
 *
 *     records      22, 3, 1..4, length; a hello may be cut over several of them
 *     handshake    1, length (3)
 *     hello        version (2), random (32), session <0..32>, ciphers <2..>, compressions <1..255>,
 *                  extensions <..>
 *
 * Every length must fit exactly into the one around it, no extension may come twice, and a name
 * that is not a host name is no hello: what is judged here is what OpenSSL and, where bytes are
 * passed on, the server will read. */

#include <string.h>

#include "lib/tls/tls.h"

#define RECORD_HEAD 5
#define RECORD_MAX 16384
#define HANDSHAKE_HEAD 4
#define EXTENSIONS_MAX 128

enum {
    RECORD_HANDSHAKE = 22,
    CLIENT_HELLO = 1,
    EXTENSION_NAME = 0,
    EXTENSION_ALPN = 16,
    EXTENSION_VERSIONS = 43,
    EXTENSION_ENCRYPTED_HELLO = 0xfe0d,
};

/* Bytes of the hello that are left to be read; a read past their end leaves it failed for good. */
struct view {
    const unsigned char *p;
    size_t n;
    bool failed;
};

static unsigned take_number(struct view *view, unsigned bytes)
{
    unsigned number = 0;

    if (view->n < bytes)
        view->failed = true;
    if (view->failed)
        return 0;
    for (unsigned i = 0; i < bytes; i++)
        number = number << 8 | view->p[i];
    view->p += bytes;
    view->n -= bytes;
    return number;
}

static struct view take_bytes(struct view *view, size_t n)
{
    struct view taken = {view->p, n, false};

    if (view->failed || view->n < n) {
        view->failed = true;
        return (struct view){NULL, 0, true};
    }
    view->p += n;
    view->n -= n;
    return taken;
}

/* A vector with its length in front, which has `bytes` bytes. */
static struct view take_vector(struct view *view, unsigned bytes)
{
    unsigned n = take_number(view, bytes);

    return take_bytes(view, n);
}

/* ---- records ---- */

static size_t number_at(const unsigned char *p, unsigned bytes)
{
    struct view view = {p, bytes, false};

    return take_number(&view, bytes);
}

static bool is_record_head(const unsigned char *p, size_t n)
{
    return p[0] == RECORD_HANDSHAKE && (n < 2 || p[1] == 3) && (n < 3 || (p[2] >= 1 && p[2] <= 4));
}

bool tls_hello_is_start(struct str in)
{
    return in.n > 0 && is_record_head((const unsigned char *)in.p, in.n);
}

/* Length of the hello with its head, once its first bytes are there; 0 before. */
static int hello_length(const unsigned char *hello, size_t have, size_t *out)
{
    *out = 0;
    if (have >= 1 && hello[0] != CLIENT_HELLO)
        return -1;
    if (have < HANDSHAKE_HEAD)
        return 0;
    *out = HANDSHAKE_HEAD + number_at(hello + 1, 3);
    return *out > TLS_HELLO_MAX ? -1 : 0;
}

/* Undoes the records: 1 and the whole message in hello[0..*n), 0 for more, -1. A record that has
 * not arrived whole counts as far as it goes, so that nonsense is refused at its first byte. */
static int join_records(struct str in, unsigned char hello[TLS_HELLO_MAX], size_t *n)
{
    const unsigned char *p = (const unsigned char *)in.p;
    size_t left = in.n < TLS_HELLO_MAX ? in.n : TLS_HELLO_MAX;
    size_t have = 0;
    size_t whole = 0;

    for (unsigned records = 0; left > 0; records++) {
        size_t length;
        size_t here;

        if (!is_record_head(p, left) || records == TLS_HELLO_RECORDS_MAX)
            return -1;
        if (left < RECORD_HEAD)
            break;
        length = number_at(p + 3, 2);
        if (length == 0 || length > RECORD_MAX)
            return -1;
        p += RECORD_HEAD;
        left -= RECORD_HEAD;
        here = length < left ? length : left;
        memcpy(hello + have, p, here);
        have += here;
        if (hello_length(hello, have, &whole) < 0)
            return -1;
        /* A second message behind the hello has no business in its record. */
        if (whole > 0 && have - here + length > whole)
            return -1;
        if (whole > 0 && have == whole) {
            *n = whole;
            return 1;
        }
        p += here;
        left -= here;
    }
    return in.n >= TLS_HELLO_MAX ? -1 : 0;
}

/* ---- extensions ---- */

static bool is_name_byte(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

static unsigned char lower(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c + ('a' - 'A')) : c;
}

/* Of a host name: labels of 1 to 63 bytes, not all of it digits and dots (that is an address). */
static bool is_host_name(const char *name, size_t n)
{
    size_t label = 0;
    bool has_letter = false;

    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)name[i];

        if (!is_name_byte(c) || (c == '.' && label == 0))
            return false;
        label = c == '.' ? 0 : label + 1;
        if (label > 63)
            return false;
        has_letter |= c >= 'a' && c <= 'z';
    }
    return has_letter && label > 0;
}

static bool read_name(struct view body, struct tls_hello *hello)
{
    struct view list = take_vector(&body, 2);
    unsigned kind = take_number(&list, 1);
    struct view name = take_vector(&list, 2);
    size_t n = name.n;

    /* One entry, of the one kind there is. */
    if (list.failed || body.n > 0 || list.n > 0 || kind != 0)
        return false;
    if (n > 0 && name.p[n - 1] == '.')
        n--;
    if (n == 0 || n >= sizeof(hello->name))
        return false;
    for (size_t i = 0; i < n; i++)
        hello->name[i] = (char)lower(name.p[i]);
    hello->name[n] = '\0';
    return is_host_name(hello->name, n);
}

static bool view_is(struct view view, const char *text)
{
    return view.n == strlen(text) && memcmp(view.p, text, view.n) == 0;
}

static bool read_alpn(struct view body, struct tls_hello *hello)
{
    struct view list = take_vector(&body, 2);

    if (list.failed || body.n > 0 || list.n == 0 || list.n > TLS_PROTOCOLS_MAX)
        return false;
    hello->has_protocols = true;
    while (list.n > 0) {
        struct view protocol = take_vector(&list, 1);

        if (list.failed || protocol.n == 0)
            return false;
        hello->offers_h2 |= view_is(protocol, "h2");
        hello->offers_http1 |= view_is(protocol, "http/1.1");
    }
    return true;
}

static bool read_versions(struct view body, struct tls_hello *hello)
{
    struct view list = take_vector(&body, 1);

    hello->offers_tls12 = false; /* with this extension, the old field means nothing */
    if (list.failed || body.n > 0 || list.n == 0 || list.n % 2 != 0)
        return false;
    while (list.n > 0) {
        unsigned version = take_number(&list, 2);

        hello->offers_tls12 |= version == 0x0303 || version == 0x0304;
    }
    return true;
}

static bool read_extension(unsigned kind, struct view body, struct tls_hello *hello)
{
    switch (kind) {
    case EXTENSION_NAME:
        return read_name(body, hello);
    case EXTENSION_ALPN:
        return read_alpn(body, hello);
    case EXTENSION_VERSIONS:
        return read_versions(body, hello);
    case EXTENSION_ENCRYPTED_HELLO:
        hello->encrypted_hello = true;
        return true;
    default:
        return true;
    }
}

static bool read_extensions(struct view list, struct tls_hello *hello)
{
    unsigned seen[EXTENSIONS_MAX];
    size_t seen_n = 0;

    while (list.n > 0) {
        unsigned kind = take_number(&list, 2);
        struct view body = take_vector(&list, 2);

        if (list.failed || seen_n == EXTENSIONS_MAX)
            return false;
        for (size_t i = 0; i < seen_n; i++) {
            if (seen[i] == kind)
                return false;
        }
        seen[seen_n++] = kind;
        if (!read_extension(kind, body, hello))
            return false;
    }
    return true;
}

static bool read_hello(struct view view, struct tls_hello *hello)
{
    unsigned version = take_number(&view, 2);
    struct view random = take_bytes(&view, 32);
    struct view session = take_vector(&view, 1);
    struct view ciphers = take_vector(&view, 2);
    struct view compressions = take_vector(&view, 1);
    struct view extensions;

    if (view.failed || random.failed || version >> 8 != 3 || session.n > 32)
        return false;
    if (ciphers.n < 2 || ciphers.n % 2 != 0 || compressions.n == 0)
        return false;
    hello->offers_tls12 = version >= 0x0303;
    if (view.n == 0)
        return true; /* TLS 1.2 without extensions */
    extensions = take_vector(&view, 2);
    return !view.failed && view.n == 0 && read_extensions(extensions, hello);
}

int tls_hello_read(struct str in, struct tls_hello *out)
{
    unsigned char bytes[TLS_HELLO_MAX];
    struct tls_hello hello = {0};
    size_t n = 0;
    int answer = join_records(in, bytes, &n);

    if (answer <= 0)
        return answer;
    if (!read_hello((struct view){bytes + HANDSHAKE_HEAD, n - HANDSHAKE_HEAD, false}, &hello))
        return -1;
    *out = hello;
    return 1;
}
