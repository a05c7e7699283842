/* SPDX-License-Identifier: Apache-2.0 */
#include <openssl/pkcs12.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/io.h"
#include "lib/tls/tls.h"
#include "pki.h"
#include "test.h"

TEST(bundle_has_both_on_lines_of_their_own)
{
    AUTO_BUF struct buf out = BUF(TLS_BUNDLE_MAX);
    struct err err;

    CHECK_INT(tls_bundle_write(STR_LIT("roots"), STR_LIT("ours\n"), &out, &err), 0);
    CHECK_TEXT(buf_text(&out), "roots\nours\n");
    buf_clear(&out);
    CHECK_INT(tls_bundle_write(STR_LIT("roots\n"), STR_LIT("ours\n"), &out, &err), 0);
    CHECK_TEXT(buf_text(&out), "roots\nours\n");
}

TEST(trust_store_holds_every_certificate_of_the_bundle)
{
    AUTO_BUF struct buf bundle = BUF(TLS_BUNDLE_MAX);
    AUTO_BUF struct buf store = BUF(TLS_BUNDLE_MAX);
    struct pki a;
    struct pki b;
    struct err err;
    const unsigned char *at;
    STACK_OF(X509) *found = NULL;
    PKCS12 *parsed;

    pki_init(&a);
    pki_init(&b);
    CHECK_INT(tls_bundle_write(buf_str(&a.pem), buf_str(&b.pem), &bundle, &err), 0);
    CHECK_INT(tls_trust_store_write(buf_str(&bundle), &store, &err), 0);
    at = (const unsigned char *)store.p;
    parsed = d2i_PKCS12(NULL, &at, (long)store.n);
    CHECK(parsed != NULL);
    CHECK_INT(PKCS12_verify_mac(parsed, TLS_TRUST_STORE_PASSWORD, -1), 1);
    CHECK_INT(PKCS12_parse(parsed, TLS_TRUST_STORE_PASSWORD, NULL, NULL, &found), 1);
    CHECK_INT(sk_X509_num(found), 2);
    sk_X509_pop_free(found, X509_free);
    PKCS12_free(parsed);
    pki_done(&a);
    pki_done(&b);
}

TEST(what_is_no_bundle_is_refused)
{
    static const char *const bad[] = {"", "hello", "-----BEGIN CERTIFICATE-----\nAAAA\n"};
    AUTO_BUF struct buf store = BUF(TLS_BUNDLE_MAX);
    struct tls_trust *trust = NULL;
    struct err err;

    for (size_t i = 0; i < COUNT(bad); i++) {
        CHECK_INT(tls_trust_store_write(str_of(bad[i]), &store, &err), -1);
        CHECK_INT(err.code, ERR_INVALID);
        CHECK_INT(tls_trust_new(str_of(bad[i]), &trust, &err), -1);
        CHECK(trust == NULL);
    }
}

TEST(operator_names_the_roots)
{
    AUTO_BUF struct buf out = BUF(TLS_BUNDLE_MAX);
    char path[] = "/tmp/tls-roots.XXXXXX";
    struct pki pki;
    struct err err;
    int fd = mkstemp(path);

    pki_init(&pki);
    CHECK_INT(write_all(fd, pki.pem.p, pki.pem.n, &err), 0);
    setenv("SSL_CERT_FILE", path, 1);
    CHECK_INT(tls_roots_read(&out, &err), 0);
    CHECK(str_eq(buf_str(&out), buf_str(&pki.pem)));
    setenv("SSL_CERT_FILE", "/nonexistent", 1); /* never something else instead */
    buf_clear(&out);
    CHECK_INT(tls_roots_read(&out, &err), -1);
    CHECK(strstr(err.text, "SSL_CERT_FILE") != NULL);
    unsetenv("SSL_CERT_FILE");
    setenv("SSL_CERT_DIR", "/proc/self/fdinfo", 1);
    buf_clear(&out);
    CHECK_INT(tls_roots_read(&out, &err), -1);
    CHECK_INT(err.code, ERR_NOT_FOUND);
    (void)unlink(path);
    (void)close(fd);
    pki_done(&pki);
}
