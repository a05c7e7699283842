/* SPDX-License-Identifier: Apache-2.0 */
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/tls/tls.h"
#include "test.h"

/* ---- a hello in pieces ---- */

struct bytes {
    unsigned char b[40000];
    size_t n;
};

static void put(struct bytes *out, const void *bytes, size_t n)
{
    memcpy(out->b + out->n, bytes, n);
    out->n += n;
}

static void put_number(struct bytes *out, size_t number, unsigned bytes)
{
    for (unsigned i = bytes; i-- > 0;)
        out->b[out->n++] = (unsigned char)(number >> (8 * i));
}

static void put_extension(struct bytes *out, unsigned kind, const void *bytes, size_t n)
{
    put_number(out, kind, 2);
    put_number(out, n, 2);
    put(out, bytes, n);
}

static void put_name(struct bytes *out, const char *name)
{
    struct bytes body = {.n = 0};
    size_t n = strlen(name);

    put_number(&body, n + 3, 2);
    put_number(&body, 0, 1);
    put_number(&body, n, 2);
    put(&body, name, n);
    put_extension(out, 0, body.b, body.n);
}

/* The message around these extensions, without records. */
static void put_hello(struct bytes *out, const struct bytes *extensions)
{
    static const unsigned char random[32];
    struct bytes body = {.n = 0};

    put_number(&body, 0x0303, 2);
    put(&body, random, sizeof random);
    put_number(&body, 0, 1);
    put_number(&body, 2, 2);
    put_number(&body, 0x1301, 2);
    put_number(&body, 0x0100, 2);
    put_number(&body, extensions->n, 2);
    put(&body, extensions->b, extensions->n);
    put_number(out, 1, 1);
    put_number(out, body.n, 3);
    put(out, body.b, body.n);
}

/* In records of `size` bytes each. */
static void put_records(struct bytes *out, const struct bytes *message, size_t size)
{
    for (size_t at = 0; at < message->n; at += size) {
        size_t n = message->n - at < size ? message->n - at : size;

        put_number(out, 22, 1);
        put_number(out, 0x0301, 2);
        put_number(out, n, 2);
        put(out, message->b + at, n);
    }
}

static int read_bytes(const struct bytes *bytes, struct tls_hello *out)
{
    return tls_hello_read((struct str){(const char *)bytes->b, bytes->n}, out);
}

static int read_name(const char *name, struct tls_hello *out)
{
    struct bytes extensions = {.n = 0};
    struct bytes message = {.n = 0};
    struct bytes wire = {.n = 0};

    put_name(&extensions, name);
    put_hello(&message, &extensions);
    put_records(&wire, &message, 16384);
    return read_bytes(&wire, out);
}

TEST(names_are_host_names)
{
    static const struct {
        const char *sent;
        const char *read; /* NULL: refused */
    } cases[] = {
        {"example.org",           "example.org"          },
        {"EXAMPLE.Org",           "example.org"          },
        {"example.org.",          "example.org"          },
        {"a_b-c.example.org",     "a_b-c.example.org"    },
        {"xn--bcher-kva.example", "xn--bcher-kva.example"},
        {"localhost",             "localhost"            },
        {"",                      NULL                   },
        {".",                     NULL                   },
        {"example.org..",         NULL                   },
        {".example.org",          NULL                   },
        {"a..b",                  NULL                   },
        {"127.0.0.1",             NULL                   },
        {"2130706433",            NULL                   },
        {"::1",                   NULL                   },
        {"[::1]",                 NULL                   },
        {"exa mple.org",          NULL                   },
        {"example.org:443",       NULL                   },
        {"*.example.org",         NULL                   },
        {"b\xc3\xbc"
         "cher.example", NULL                   },
        {"a/b",                   NULL                   },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tls_hello hello = {.name = "untouched"};

        CHECK_INT(read_name(cases[i].sent, &hello), cases[i].read ? 1 : -1);
        CHECK_TEXT(hello.name, cases[i].read ? cases[i].read : "untouched");
    }
}

TEST(long_names_and_labels_are_refused)
{
    struct tls_hello hello = {0};
    char name[300];

    memset(name, 'a', sizeof name);
    name[63] = '\0';
    CHECK_INT(read_name(name, &hello), 1);
    name[63] = 'a';
    name[64] = '\0';
    CHECK_INT(read_name(name, &hello), -1);
    memset(name, 'a', sizeof name);
    for (size_t i = 50; i < sizeof name; i += 50)
        name[i] = '.';
    name[253] = '\0';
    CHECK_INT(read_name(name, &hello), 1);
    CHECK_INT(strlen(hello.name), 253);
    name[253] = 'a';
    name[254] = '\0';
    CHECK_INT(read_name(name, &hello), -1);
}

TEST(a_nul_in_a_name_is_refused)
{
    static const unsigned char body[] = "\x00\x06\x00\x00\x03"
                                        "a\0b";
    struct bytes extensions = {.n = 0};
    struct bytes message = {.n = 0};
    struct bytes wire = {.n = 0};
    struct tls_hello hello;

    put_extension(&extensions, 0, body, sizeof(body) - 1);
    put_hello(&message, &extensions);
    put_records(&wire, &message, 16384);
    CHECK_INT(read_bytes(&wire, &hello), -1);
}

/* One extension of any kind and content. */
static int read_extension(unsigned kind, const char *body, size_t n, unsigned times,
                          struct tls_hello *out)
{
    struct bytes extensions = {.n = 0};
    struct bytes message = {.n = 0};
    struct bytes wire = {.n = 0};

    for (unsigned i = 0; i < times; i++)
        put_extension(&extensions, kind, body, n);
    put_hello(&message, &extensions);
    put_records(&wire, &message, 16384);
    return read_bytes(&wire, out);
}

TEST(extensions_are_read_strictly)
{
#define BODY(text) text, sizeof(text) - 1
    struct tls_hello hello = {0};

    CHECK_INT(read_extension(16, BODY("\0\x0c\x02h2\x08http/1.1"), 1, &hello), 1);
    CHECK(hello.has_protocols && hello.offers_h2 && hello.offers_http1);
    CHECK_INT(read_extension(16, BODY("\0\x03\x02xx"), 1, &hello), 1);
    CHECK(hello.has_protocols && !hello.offers_h2 && !hello.offers_http1);
    CHECK_INT(read_extension(16, BODY("\0\0"), 1, &hello), -1);          /* empty */
    CHECK_INT(read_extension(16, BODY("\0\x01\0"), 1, &hello), -1);      /* an empty one */
    CHECK_INT(read_extension(16, BODY("\0\x03\x03h2"), 1, &hello), -1);  /* too long inside */
    CHECK_INT(read_extension(16, BODY("\0\x03\x02h2x"), 1, &hello), -1); /* something behind */
    CHECK_INT(read_extension(0,
                             BODY("\0\x04\x01\0\x01"
                                  "a"),
                             1, &hello),
              -1); /* other kind */
    CHECK_INT(read_extension(0,
                             BODY("\0\x08\0\0\x01"
                                  "a\0\0\x01"
                                  "b"),
                             1, &hello),
              -1); /* two */
    CHECK_INT(read_extension(43, BODY("\x02\x03\x04"), 1, &hello), 1);
    CHECK(hello.offers_tls12);
    CHECK_INT(read_extension(43, BODY("\x02\x03\x02"), 1, &hello), 1);
    CHECK(!hello.offers_tls12);
    CHECK_INT(read_extension(43, BODY("\x01\x03"), 1, &hello), -1);
    CHECK_INT(read_extension(0xfe0d, BODY("\0\1\2"), 1, &hello), 1);
    CHECK(hello.encrypted_hello);
    CHECK_INT(read_extension(0x1234, BODY("x"), 1, &hello), 1);
    CHECK(!hello.encrypted_hello && !hello.has_protocols && hello.name[0] == '\0');
    CHECK_INT(read_extension(0x1234, BODY("x"), 2, &hello), -1); /* twice */
#undef BODY
}

/* What a real client says. */
static void real_hello(struct bytes *out)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    BIO *wire = BIO_new(BIO_s_mem());
    char name[] = "Api.Example.org";

    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), wire);
    SSL_set_tlsext_host_name(ssl, name);
    SSL_set_alpn_protos(ssl, (const unsigned char *)"\x02h2\x08http/1.1", 12);
    SSL_set_connect_state(ssl);
    CHECK_INT(SSL_do_handshake(ssl), -1);
    out->n = (size_t)BIO_read(wire, out->b, sizeof out->b);
    SSL_free(ssl);
    SSL_CTX_free(context);
}

TEST(every_cut_of_a_real_hello_gives_the_same)
{
    struct bytes wire = {.n = 0};
    struct tls_hello hello = {0};

    real_hello(&wire);
    for (size_t i = 0; i < wire.n; i++) {
        struct str part = {(const char *)wire.b, i};

        CHECK_INT(tls_hello_read(part, &hello), 0);
        CHECK(i == 0 || tls_hello_is_start(part));
    }
    CHECK_INT(read_bytes(&wire, &hello), 1);
    CHECK_TEXT(hello.name, "api.example.org");
    CHECK(hello.offers_h2 && hello.offers_http1 && hello.offers_tls12);
    wire.b[wire.n++] = 'x'; /* what comes behind it is not looked at */
    CHECK_INT(read_bytes(&wire, &hello), 1);
}

TEST(every_length_that_is_wrong_is_refused_or_waits)
{
    struct bytes wire = {.n = 0};
    struct tls_hello hello;

    real_hello(&wire);
    /* Every byte made larger or smaller by one: no read past the end (sanitizers look), and the
     * bytes that are lengths are never accepted. */
    for (size_t i = 0; i < wire.n; i++) {
        struct bytes changed = wire;

        changed.b[i]++;
        (void)!read_bytes(&changed, &hello);
        changed.b[i] = (unsigned char)(changed.b[i] - 2);
        (void)!read_bytes(&changed, &hello);
    }
    for (size_t i = 3; i < 9; i++) {
        struct bytes changed = wire;

        if (i == 5)
            continue; /* the kind of message, below */
        changed.b[i]++;
        CHECK(read_bytes(&changed, &hello) != 1);
    }
    wire.b[5] = 2;
    CHECK_INT(read_bytes(&wire, &hello), -1);
}

TEST(records_are_joined_within_bounds)
{
    struct bytes extensions = {.n = 0};
    struct bytes message = {.n = 0};
    struct tls_hello hello = {0};

    put_name(&extensions, "example.org");
    put_hello(&message, &extensions);
    for (size_t size = 1; size < message.n; size++) {
        struct bytes wire = {.n = 0};
        bool is_few = (message.n + size - 1) / size <= TLS_HELLO_RECORDS_MAX;

        put_records(&wire, &message, size);
        CHECK_INT(read_bytes(&wire, &hello), is_few ? 1 : -1);
    }
}

TEST(giants_and_nonsense_end_early)
{
    struct bytes wire = {.n = 0};
    struct tls_hello hello;
    static const char *const others[] = {"GET / HTTP/1.1\r\n", "SSH-2.0-x",    "\x16\x02\x01",
                                         "\x16\x03\x07",       "\x15\x03\x01", "\x80\x2e\x01"};

    for (size_t i = 0; i < COUNT(others); i++) {
        CHECK_INT(tls_hello_read(str_of(others[i]), &hello), -1);
        CHECK(!tls_hello_is_start(str_of(others[i])));
    }
    put(&wire, "\x16\x03\x01\x40\x00\x01\x00\xff\xff", 9); /* says it has 64 KiB */
    CHECK_INT(read_bytes(&wire, &hello), -1);
    wire.n = 0;
    put(&wire, "\x16\x03\x01\x00\x00", 5); /* an empty record */
    CHECK_INT(read_bytes(&wire, &hello), -1);
    wire.n = 0;
    put(&wire, "\x16\x03\x01\x40\x01\x01", 6); /* a record that is too long */
    CHECK_INT(read_bytes(&wire, &hello), -1);
}
