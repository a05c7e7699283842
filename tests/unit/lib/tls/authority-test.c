/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/base/io.h"
#include "lib/tls/tls-private.h"
#include "test.h"

static char folder[] = "/tmp/tls-authority-test.XXXXXX";

static int open_folder(void)
{
    CHECK(mkdtemp(folder) != NULL);
    return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void remove_folder(int fd)
{
    struct err err;

    (void)close(fd);
    CHECK_INT(dir_remove(AT_FDCWD, folder, &err), 0);
}

TEST(authority_is_made_once_and_kept)
{
    int fd = open_folder();
    AUTO_BUF struct buf first = BUF(8192);
    AUTO_BUF struct buf beside = BUF(8192);
    struct stat st;
    struct err err;

    for (int i = 0; i < 2; i++) {
        struct tls_authority *authority = NULL;

        CHECK_INT(tls_authority_open(fd, folder, &authority, &err), 0);
        if (i == 0)
            CHECK_INT(buf_add_str(&first, tls_authority_certificate(authority), &err), 0);
        CHECK(str_eq(buf_str(&first), tls_authority_certificate(authority)));
        tls_authority_free(authority);
    }
    CHECK_INT(fstatat(fd, TLS_AUTHORITY_FILE, &st, 0), 0);
    CHECK_INT(st.st_mode & 07777, 0600);
    CHECK_INT(file_read(fd, TLS_AUTHORITY_CERTIFICATE, &beside, &err), 0);
    CHECK(str_eq(buf_str(&first), buf_str(&beside)));
    CHECK(memmem(beside.p, beside.n, "PRIVATE", 7) == NULL);
    remove_folder(fd);
}

TEST(authority_may_sign_servers_only)
{
    int fd = open_folder();
    struct tls_authority *authority = NULL;
    struct err err;

    CHECK_INT(tls_authority_open(fd, folder, &authority, &err), 0);
    CHECK_INT(X509_check_ca(authority->certificate), 1);
    CHECK_INT(X509_get_pathlen(authority->certificate), 0);
    CHECK_INT(X509_get_extended_key_usage(authority->certificate), XKU_SSL_SERVER);
    CHECK_INT(X509_get_key_usage(authority->certificate), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
    tls_authority_free(authority);
    remove_folder(fd);
}

TEST(keys_that_others_can_reach_are_refused)
{
    int fd = open_folder();
    struct tls_authority *authority = NULL;
    struct err err;

    CHECK_INT(tls_authority_open(fd, folder, &authority, &err), 0);
    tls_authority_free(authority);
    authority = NULL;
    CHECK_INT(fchmodat(fd, TLS_AUTHORITY_FILE, 0640, 0), 0);
    CHECK_INT(tls_authority_open(fd, folder, &authority, &err), -1);
    CHECK_INT(err.code, ERR_INTEGRITY);
    CHECK(strstr(err.text, "others may read or write it (mode 640)") != NULL);
    CHECK(authority == NULL);

    CHECK_INT(renameat(fd, TLS_AUTHORITY_FILE, fd, "away"), 0);
    CHECK_INT(symlinkat("away", fd, TLS_AUTHORITY_FILE), 0);
    CHECK_INT(tls_authority_open(fd, folder, &authority, &err), -1);
    CHECK(strstr(err.text, "symbolic link") != NULL);
    CHECK_INT(unlinkat(fd, TLS_AUTHORITY_FILE, 0), 0);

    CHECK_INT(mkfifoat(fd, TLS_AUTHORITY_FILE, 0600), 0);
    CHECK_INT(tls_authority_open(fd, folder, &authority, &err), -1);
    CHECK(strstr(err.text, "not a regular file") != NULL);
    remove_folder(fd);
}

TEST(broken_files_are_refused_and_stay)
{
    int fd = open_folder();
    struct tls_authority *authority = NULL;
    AUTO_BUF struct buf text = BUF(8192);
    char path[64];
    struct err err;

    CHECK_INT(tls_authority_open(fd, folder, &authority, &err), 0);
    tls_authority_free(authority);
    authority = NULL;
    CHECK_INT(file_read(fd, TLS_AUTHORITY_FILE, &text, &err), 0);
    (void)snprintf(path, sizeof path, "%s/%s", folder, TLS_AUTHORITY_FILE);
    for (size_t n = 0; n < text.n - 1; n += 37) {
        CHECK_INT(file_replace(path, text.p, n, 0600, &err), 0);
        CHECK_INT(tls_authority_open(fd, folder, &authority, &err), -1);
        CHECK_INT(err.code, ERR_INTEGRITY);
    }
    remove_folder(fd);
}

TEST(certificate_beside_the_key_is_mended)
{
    int fd = open_folder();
    struct tls_authority *authority = NULL;
    AUTO_BUF struct buf beside = BUF(8192);
    char path[64];
    struct err err;

    CHECK_INT(tls_authority_open(fd, folder, &authority, &err), 0);
    (void)snprintf(path, sizeof path, "%s/%s", folder, TLS_AUTHORITY_CERTIFICATE);
    CHECK_INT(file_replace(path, "torn", 4, 0644, &err), 0);
    tls_authority_free(authority);
    CHECK_INT(tls_authority_open(fd, folder, &authority, &err), 0);
    CHECK_INT(file_read(fd, TLS_AUTHORITY_CERTIFICATE, &beside, &err), 0);
    CHECK(str_eq(buf_str(&beside), tls_authority_certificate(authority)));
    tls_authority_free(authority);
    remove_folder(fd);
}

TEST(of_many_who_start_at_once_all_have_the_same)
{
    int fd = open_folder();
    int ends[2];
    unsigned char digests[8][32];

    CHECK_INT(pipe(ends), 0);
    for (int i = 0; i < 8; i++) {
        if (fork() == 0) {
            struct tls_authority *authority = NULL;
            unsigned char digest[32];
            unsigned n = 0;
            struct err err;

            if (tls_authority_open(fd, folder, &authority, &err) < 0 ||
                X509_digest(authority->certificate, EVP_sha256(), digest, &n) != 1 ||
                write(ends[1], digest, sizeof digest) != sizeof digest)
                _exit(1);
            _exit(0);
        }
    }
    for (int i = 0; i < 8; i++) {
        int status = -1;

        CHECK(wait(&status) > 0);
        CHECK_INT(status, 0);
        CHECK_INT(read(ends[0], digests[i], 32), 32);
        CHECK(memcmp(digests[0], digests[i], 32) == 0);
    }
    remove_folder(fd);
}

static X509 *leaf_of(struct tls_authority *authority, const char *host)
{
    X509 *leaf = NULL;
    struct err err;

    CHECK_INT(tls_leaf_find(authority, host, &leaf, &err), 0);
    return leaf;
}

TEST(leaves_are_for_one_host_and_short)
{
    int fd = open_folder();
    struct tls_authority *authority = NULL;
    time_t later = time(NULL) + TLS_LEAF_SECONDS + 60;
    struct err err;
    X509 *leaf;

    CHECK_INT(tls_authority_open(fd, folder, &authority, &err), 0);
    leaf = leaf_of(authority, "api.example.org");
    CHECK(leaf == leaf_of(authority, "api.example.org")); /* kept */
    CHECK_INT(X509_check_host(leaf, "api.example.org", 0, 0, NULL), 1);
    CHECK_INT(X509_check_host(leaf, "b.example.org", 0, 0, NULL), 0);
    CHECK_INT(X509_check_ca(leaf), 0);
    CHECK_INT(X509_check_issued(authority->certificate, leaf), X509_V_OK);
    CHECK_INT(X509_verify(leaf, authority->key), 1);
    CHECK(X509_cmp_time(X509_get0_notBefore(leaf), NULL) < 0);
    CHECK(X509_cmp_time(X509_get0_notAfter(leaf), &later) < 0);
    CHECK_INT(X509_check_ip_asc(leaf_of(authority, "192.0.2.1"), "192.0.2.1", 0), 1);
    CHECK_INT(X509_check_ip_asc(leaf_of(authority, "2001:db8::1"), "2001:db8::1", 0), 1);
    CHECK_INT(tls_leaf_find(authority, "*.example.org", &leaf, &err), -1);
    CHECK_INT(tls_leaf_find(authority, "a b", &leaf, &err), -1);
    CHECK_INT(tls_leaf_find(authority, "", &leaf, &err), -1);
    tls_authority_free(authority);
    remove_folder(fd);
}

TEST(leaf_cache_is_bounded_and_forgets_the_oldest)
{
    int fd = open_folder();
    struct tls_authority *authority = NULL;
    struct err err;
    X509 *first;
    X509 *used;

    CHECK_INT(tls_authority_open(fd, folder, &authority, &err), 0);
    first = leaf_of(authority, "first.example.org");
    CHECK(X509_up_ref(first)); /* so that its address is not used again */
    used = leaf_of(authority, "used.example.org");
    for (int i = 0; i < TLS_LEAVES_MAX + 8; i++) {
        char host[32];

        (void)snprintf(host, sizeof host, "h%d.example.org", i);
        (void)leaf_of(authority, host);
        CHECK(leaf_of(authority, "used.example.org") == used);
    }
    CHECK(leaf_of(authority, "first.example.org") != first);
    X509_free(first);
    tls_authority_free(authority);
    remove_folder(fd);
}
