/* SPDX-License-Identifier: Apache-2.0 */

/* The authority's file: a key (PKCS#8) and its certificate, both in PEM, one file so that there is
 * no moment with one of them alone. It is written under no name, synced, and linked into place:
 * whoever comes second finds the first one's. The certificate alone lies beside it for others to
 * read; it follows from the first file and is written again when it does not match. */

#include <errno.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/clock.h"
#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/base/memory.h"
#include "lib/tls/tls-private.h"

#define FILE_MAX 8192
#define TEMPORARY_BYTES 40

struct folder {
    int fd;
    const char *shown;
};

/* ---- between PEM and the structs ---- */

static int no_passphrase(char *out, int size, int writes, void *unused)
{
    (void)out;
    (void)size;
    (void)writes;
    (void)unused;
    return -1; /* never ask on a terminal */
}

static bool certificate_to_pem(X509 *certificate, struct buf *out, struct err *err)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *text = NULL;
    bool done = false;

    if (bio && PEM_write_bio_X509(bio, certificate) == 1) {
        long n = BIO_get_mem_data(bio, &text);

        done = n > 0 && buf_add(out, text, (size_t)n, err) == 0;
    }
    BIO_free(bio);
    return done;
}

static bool key_to_pem(EVP_PKEY *key, struct buf *out, struct err *err)
{
    BIO *bio = BIO_new(BIO_s_secmem()); /* wiped when it is freed */
    char *text = NULL;
    bool done = false;

    if (bio && PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1) {
        long n = BIO_get_mem_data(bio, &text);

        done = n > 0 && buf_add(out, text, (size_t)n, err) == 0;
    }
    BIO_free(bio);
    return done;
}

static void wipe(struct buf *text)
{
    if (text->p)
        OPENSSL_cleanse(text->p, text->cap);
    buf_done(text);
}

/* A curve of ours, a certificate of an authority, and both of each other. */
static bool is_authority(EVP_PKEY *key, X509 *certificate)
{
    return EVP_PKEY_is_a(key, "EC") == 1 && EVP_PKEY_get_bits(key) == 256 &&
           X509_check_ca(certificate) == 1 && X509_check_private_key(certificate, key) == 1 &&
           X509_verify(certificate, key) == 1;
}

static int parse_file(struct tls_authority *authority, struct str text, struct err *err)
{
    BIO *bio = BIO_new_mem_buf(text.p, (int)text.n);

    if (bio) {
        authority->key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
        authority->certificate = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL);
    }
    BIO_free(bio);
    if (!authority->key || !authority->certificate ||
        !is_authority(authority->key, authority->certificate))
        return tls_err(
            err, ERR_INTEGRITY,
            "it does not hold an authority's key and certificate; move it away and a new "
            "one is made");
    return 0;
}

/* ---- the file ---- */

static int check_file(int fd, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_os(err, "looking at it");
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_INTEGRITY, "it is not a regular file");
    if (st.st_uid != geteuid())
        return err_set(err, ERR_INTEGRITY, "it belongs to somebody else (user %u)", st.st_uid);
    if (st.st_mode & 077)
        return err_set(err, ERR_INTEGRITY,
                       "others may read or write it (mode %03o): whoever read it can pose as any "
                       "server; move it away and a new one is made",
                       st.st_mode & 0777);
    if (st.st_size > FILE_MAX)
        return err_set(err, ERR_INTEGRITY, "it is too large");
    return 0;
}

/* 0 without one. */
static int open_existing(struct tls_authority *authority, const struct folder *folder,
                         struct err *err)
{
    /* O_NONBLOCK: a FIFO in its place must not hold us up. */
    AUTO_FD int fd = openat(folder->fd, TLS_AUTHORITY_FILE,
                            O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    struct buf text = BUF(FILE_MAX);
    int answer;

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 && errno == ELOOP)
        return err_set(err, ERR_INTEGRITY, "it is a symbolic link");
    if (fd < 0)
        return err_os(err, "opening it");
    if (check_file(fd, err) < 0)
        return -1;
    answer = read_all(fd, &text, err);
    if (answer == 0)
        answer = parse_file(authority, buf_str(&text), err);
    wipe(&text);
    return answer < 0 ? -1 : 1;
}

/* A file without a name or, where the file system knows no such thing, one with a random name. */
static int open_unnamed(int dir_fd, char temporary[TEMPORARY_BYTES])
{
    char id[ID_BYTES];
    int fd = openat(dir_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
        return fd;
    id_new(id);
    (void)snprintf(temporary, TEMPORARY_BYTES, "ca.%s.tmp", id);
    return openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static int write_and_link(int fd, const struct folder *folder, struct str text, struct err *err)
{
    char by_fd[32];

    if (write_all(fd, text.p, text.n, err) < 0)
        return -1;
    if (fchmod(fd, 0600) < 0 || fsync(fd) < 0)
        return err_os(err, "syncing it");
    CRASH_POINT("ca-written");
    (void)snprintf(by_fd, sizeof by_fd, "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, by_fd, folder->fd, TLS_AUTHORITY_FILE, AT_SYMLINK_FOLLOW) < 0 &&
        errno != EEXIST)
        return err_os(err, "naming it");
    return 0;
}

static int sync_folder(int dir_fd, struct err *err)
{
    AUTO_FD int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fsync(fd) < 0)
        return err_os(err, "syncing the folder");
    return 0;
}

static int create_file(const struct folder *folder, struct str text, struct err *err)
{
    char temporary[TEMPORARY_BYTES] = "";
    AUTO_FD int fd = open_unnamed(folder->fd, temporary);
    int failed;

    if (fd < 0)
        return err_os(err, "creating it");
    failed = write_and_link(fd, folder, text, err);
    if (temporary[0])
        (void)unlinkat(folder->fd, temporary, 0); /* the name in place is the one that counts */
    if (failed < 0)
        return failed;
    CRASH_POINT("ca-created");
    return sync_folder(folder->fd, err);
}

static void forget_key(struct tls_authority *authority)
{
    EVP_PKEY_free(authority->key);
    X509_free(authority->certificate);
    authority->key = NULL;
    authority->certificate = NULL;
}

/* Makes one and writes it; the one that is then used is read from the file, ours or not. */
static int create(const struct folder *folder, struct err *err)
{
    struct tls_authority made = {0};
    struct buf text = BUF(FILE_MAX);
    int failed = tls_authority_make(&made, err);

    if (failed == 0 &&
        (!key_to_pem(made.key, &text, err) || !certificate_to_pem(made.certificate, &text, err)))
        failed = tls_err(err, ERR_INTERNAL, "writing the key");
    if (failed == 0)
        failed = create_file(folder, buf_str(&text), err);
    forget_key(&made);
    wipe(&text);
    return failed;
}

static int open_or_create(struct tls_authority *authority, const struct folder *folder,
                          struct err *err)
{
    int answer = open_existing(authority, folder, err);

    if (answer != 0)
        return answer;
    if (create(folder, err) < 0)
        return -1;
    answer = open_existing(authority, folder, err);
    if (answer == 0)
        return err_set(err, ERR_CONFLICT, "it was removed while it was made");
    return answer;
}

/* ---- the certificate beside it ---- */

static int replace_certificate(const struct folder *folder, struct str pem, struct err *err)
{
    char temporary[TEMPORARY_BYTES];
    char id[ID_BYTES];
    AUTO_FD int fd = -1;
    int failed;

    id_new(id);
    (void)snprintf(temporary, sizeof temporary, "ca.%s.tmp", id);
    fd = openat(folder->fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return err_os(err, "creating %s", TLS_AUTHORITY_CERTIFICATE);
    failed = write_all(fd, pem.p, pem.n, err);
    if (failed == 0 && (fchmod(fd, 0644) < 0 || fsync(fd) < 0 ||
                        renameat(folder->fd, temporary, folder->fd, TLS_AUTHORITY_CERTIFICATE) < 0))
        failed = err_os(err, "writing %s", TLS_AUTHORITY_CERTIFICATE);
    if (failed < 0)
        (void)unlinkat(folder->fd, temporary, 0); /* the failure is reported already */
    return failed;
}

static int mend_certificate(const struct folder *folder, struct str pem, struct err *err)
{
    AUTO_BUF struct buf there = BUF(FILE_MAX);
    AUTO_FD int fd = openat(folder->fd, TLS_AUTHORITY_CERTIFICATE,
                            O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    struct err ignored;

    if (fd >= 0 && read_all(fd, &there, &ignored) == 0 && str_eq(buf_str(&there), pem))
        return 0;
    return replace_certificate(folder, pem, err);
}

static int prepare(struct tls_authority *authority, struct err *err)
{
    authority->pem = BUF(FILE_MAX);
    authority->leaf_key = EVP_EC_gen("P-256");
    if (!authority->leaf_key || !certificate_to_pem(authority->certificate, &authority->pem, err))
        return tls_err(err, ERR_INTERNAL, "preparing the authority");
    tls_leaves_new(authority);
    return tls_server_context(&authority->context, err);
}

int tls_authority_open(int dir_fd, const char *shown, struct tls_authority **out, struct err *err)
{
    AUTO(tls_authority) struct tls_authority *authority = xcalloc(1, sizeof(*authority));
    const struct folder folder = {dir_fd, shown};

    tls_ready();
    if (open_or_create(authority, &folder, err) < 0)
        return err_in(err, "the interception key %s/%s", shown, TLS_AUTHORITY_FILE);
    if (prepare(authority, err) < 0 || mend_certificate(&folder, buf_str(&authority->pem), err) < 0)
        return err_in(err, "%s", shown);
    *out = TAKE(authority);
    return 0;
}

void tls_authority_free(struct tls_authority *authority)
{
    if (authority == NULL)
        return;
    forget_key(authority);
    EVP_PKEY_free(authority->leaf_key);
    tls_leaves_free(authority);
    SSL_CTX_free(authority->context);
    buf_done(&authority->pem);
    free(authority);
}

struct str tls_authority_certificate(const struct tls_authority *authority)
{
    return buf_str(&authority->pem);
}
