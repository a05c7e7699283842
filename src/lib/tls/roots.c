/* SPDX-License-Identifier: Apache-2.0 */

/* What this machine trusts, and what a sandbox is given to trust. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <string.h>

#include "lib/base/io.h"
#include "lib/tls/tls-private.h"

#define ROOTS_FILES_MAX 4096

/* Where distributions keep their bundle: Debian, Fedora, Alpine, SUSE. */
static const char *const usual_files[] = {
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
};

static bool has_certificate(struct str text)
{
    return memmem(text.p, text.n, "-----BEGIN ", 11) != NULL;
}

static int read_usual_files(struct buf *out, struct err *err)
{
    for (size_t i = 0; i < COUNT(usual_files); i++) {
        if (access(usual_files[i], R_OK) == 0 &&
            file_read(AT_FDCWD, usual_files[i], out, err) == 0 && has_certificate(buf_str(out)))
            return 0;
        buf_clear(out);
    }
    return -1;
}

static int is_certificate_file(const struct dirent *entry)
{
    return str_ends(str_of(entry->d_name), ".pem") || str_ends(str_of(entry->d_name), ".crt");
}

static int read_files(int dir_fd, struct dirent **names, int n, struct buf *out, struct err *err)
{
    for (int i = 0; i < n && i < ROOTS_FILES_MAX; i++) {
        /* One that is gone or not ours to read is one root fewer, as OpenSSL has it. */
        if (faccessat(dir_fd, names[i]->d_name, R_OK, 0) < 0)
            continue;
        if (file_read(dir_fd, names[i]->d_name, out, err) < 0 || buf_add_byte(out, '\n', err) < 0)
            return -1;
    }
    return 0;
}

static int read_folder(const char *path, struct buf *out, struct err *err)
{
    AUTO_FD int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dirent **names = NULL;
    int n = dir_fd < 0 ? -1 : scandir(path, &names, is_certificate_file, alphasort);
    int failed = n < 0 ? -1 : read_files(dir_fd, names, n, out, err);

    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
    if (n < 0)
        return err_os(err, "%s", path);
    return failed;
}

int tls_roots_read(struct buf *out, struct err *err)
{
    const char *file = getenv("SSL_CERT_FILE");
    const char *folder = getenv("SSL_CERT_DIR");

    /* What the operator names and cannot be read is not replaced by something else. */
    if (file && file[0]) {
        if (file_read(AT_FDCWD, file, out, err) < 0)
            return err_in(err, "SSL_CERT_FILE");
    } else if (folder && folder[0]) {
        if (read_folder(folder, out, err) < 0)
            return err_in(err, "SSL_CERT_DIR");
    } else if (read_usual_files(out, err) < 0 && read_folder("/etc/ssl/certs", out, err) < 0) {
        buf_clear(out);
    }
    if (!has_certificate(buf_str(out)))
        return err_set(err, ERR_NOT_FOUND,
                       "this machine has no root certificates; install them (ca-certificates) or "
                       "name a bundle in SSL_CERT_FILE");
    return 0;
}

int tls_bundle_write(struct str roots, struct str authority, struct buf *out, struct err *err)
{
    if (buf_add_str(out, roots, err) < 0)
        return -1;
    if (roots.n > 0 && roots.p[roots.n - 1] != '\n' && buf_add_byte(out, '\n', err) < 0)
        return -1;
    return buf_add_str(out, authority, err);
}

/* ---- Java ---- */

/* Java takes a certificate in a PKCS#12 file for trusted when its bag has this attribute (Oracle's,
 * also what keytool writes): any use. */
#define TRUSTED_KEY_USAGE "2.16.840.1.113894.746875.1.1"
#define ANY_USAGE "2.5.29.37.0"

static bool mark_trusted(PKCS12_SAFEBAG *bag)
{
    ASN1_OBJECT *usage = OBJ_txt2obj(ANY_USAGE, 1);
    bool done = usage && PKCS12_add1_attr_by_txt(bag, TRUSTED_KEY_USAGE, V_ASN1_OBJECT,
                                                 (const unsigned char *)usage, -1) == 1;

    ASN1_OBJECT_free(usage);
    return done;
}

static bool add_certificate(STACK_OF(PKCS12_SAFEBAG) * *bags, X509 *certificate, unsigned number)
{
    PKCS12_SAFEBAG *bag = PKCS12_add_cert(bags, certificate);
    char name[32];

    (void)snprintf(name, sizeof name, "root-%u", number);
    return bag && PKCS12_add_friendlyname_utf8(bag, name, -1) == 1 && mark_trusted(bag);
}

static bool add_bundle(struct str bundle, STACK_OF(PKCS12_SAFEBAG) * *bags)
{
    BIO *bio = BIO_new_mem_buf(bundle.p, (int)bundle.n);
    unsigned number = 0;
    X509 *certificate;
    bool done = bio != NULL;

    while (done && (certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
        done = add_certificate(bags, certificate, ++number);
        X509_free(certificate);
    }
    BIO_free(bio);
    /* Reading past the last one is how the walk ends. */
    done = done && number > 0 && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    return done;
}

/* Not encrypted, which old versions of Java read as well: roots are public. The sum over it, which
 * they all insist on, is made with the password everyone knows. */
static PKCS12 *make_store(STACK_OF(PKCS12_SAFEBAG) * bags)
{
    STACK_OF(PKCS7) *safes = NULL;
    PKCS12 *store = NULL;

    if (PKCS12_add_safe(&safes, bags, -1, 0, NULL) == 1)
        store = PKCS12_add_safes(safes, 0);
    sk_PKCS7_pop_free(safes, PKCS7_free);
    if (store &&
        PKCS12_set_mac(store, TLS_TRUST_STORE_PASSWORD, -1, NULL, 0, 2048, EVP_sha256()) != 1) {
        PKCS12_free(store);
        store = NULL;
    }
    return store;
}

static int write_store(PKCS12 *store, struct buf *out, struct err *err)
{
    unsigned char *bytes = NULL;
    int n = i2d_PKCS12(store, &bytes);
    int failed = n > 0 ? buf_add(out, bytes, (size_t)n, err) : -1;

    OPENSSL_free(bytes);
    return n > 0 ? failed : tls_err(err, ERR_INTERNAL, "writing the trust store");
}

int tls_trust_store_write(struct str bundle, struct buf *out, struct err *err)
{
    STACK_OF(PKCS12_SAFEBAG) *bags = NULL;
    PKCS12 *store = NULL;
    int failed = -1;

    tls_ready();
    if (bundle.n > TLS_BUNDLE_MAX || !add_bundle(bundle, &bags))
        (void)err_set(err, ERR_INVALID, "the bundle is not a list of certificates in PEM");
    else if (!(store = make_store(bags)))
        (void)tls_err(err, ERR_INTERNAL, "making the trust store");
    else
        failed = write_store(store, out, err);
    PKCS12_free(store);
    sk_PKCS12_SAFEBAG_pop_free(bags, PKCS12_SAFEBAG_free);
    return failed;
}
