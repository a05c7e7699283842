/* SPDX-License-Identifier: Apache-2.0 */

/* The files of tests/vectors/receipt, made by another program, and our code agree to the byte. */

#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "fixture.h"
#include "flow/record/receipt.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"

static struct str vector(struct buf *into, const char *name)
{
    char path[512];
    struct err err;

    (void)snprintf(path, sizeof path, "%s/%s", VECTORS, name);
    if (file_read(AT_FDCWD, path, into, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return buf_str(into);
}

static struct str without_newline(struct str s)
{
    return str_ends(s, "\n") ? (struct str){s.p, s.n - 1} : s;
}

/* git does not keep mode 0600, so the key is copied to where it may be opened. */
static struct signing_key *vector_key(void)
{
    AUTO_BUF struct buf text = BUF(KIB);
    struct signing_key *key = NULL;
    struct err err;

    (void)vector(&text, "key");
    if (file_replace(fixture_path("key"), text.p, text.n, 0600, &err) < 0 ||
        signing_key_open(fixture_path("key"), &key, &err) < 0) {
        test_fail(__FILE__, __LINE__, "%s", err.text);
        exit(1);
    }
    return key;
}

TEST(the_first_body_has_the_known_hash_and_signature)
{
    AUTO(signing_key) struct signing_key *key = NULL;
    AUTO_BUF struct buf body = BUF(MIB);
    AUTO_BUF struct buf hash_file = BUF(KIB);
    AUTO_BUF struct buf signature_file = BUF(KIB);
    char text[2 * SIGNATURE_BYTES + 1];
    char hashed[HASH_TEXT_BYTES];
    struct signature signature;
    struct hash hash;

    fixture_begin();
    key = vector_key();
    receipt_hash(vector(&body, "first-body.json"), &hash);
    hash_text(&hash, hashed);
    CHECK(str_is(without_newline(vector(&hash_file, "first-hash")), hashed));
    signing_key_sign(key, &hash, &signature);
    hex_encode(signature.b, sizeof signature.b, text);
    CHECK(str_is(without_newline(vector(&signature_file, "first-signature")), text));
    fixture_end();
}

TEST(the_first_body_is_what_our_writer_makes_of_it)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    AUTO_BUF struct buf body = BUF(MIB);
    AUTO_BUF struct buf again = BUF(MIB);
    const struct json *json = NULL;
    struct mark where;
    struct err err;

    CHECK_INT(json_parse(&mem, vector(&body, "first-body.json"), &json, &where, &err), 0);
    CHECK_INT(json_canonical(json, &again, &err), 0);
    CHECK(str_eq(buf_str(&body), buf_str(&again)));
}

TEST(the_chain_verifies_under_the_published_key_and_head)
{
    AUTO_BUF struct buf pem = BUF(KIB);
    AUTO_BUF struct buf head_text = BUF(KIB);
    AUTO_FD int fd = open(VECTORS "/chain.jsonl", O_RDONLY | O_CLOEXEC);
    struct record_trust trust = {.why = "published"};
    struct record_head head;
    struct record_check check = {&trust, &head, false};
    struct record_report report;
    struct err err;

    CHECK_INT(public_key_read(vector(&pem, "public.pem"), &trust.key, &err), 0);
    CHECK_INT(record_head_read(vector(&head_text, "head.json"), &trust, &head, &err), 0);
    CHECK_INT(record_verify_fd(fd, &check, &report, &err), 0);
    CHECK_TEXT(report.fault_text, "");
    CHECK_INT(report.integrity, INTEGRITY_INTACT);
    CHECK_INT(report.completeness, COMPLETENESS_PROVEN);
    CHECK_INT(report.entries, 5);
    CHECK_INT(report.open_runs, 0);
}

TEST(the_public_key_is_written_as_openssl_writes_it)
{
    AUTO(signing_key) struct signing_key *key = NULL;
    AUTO_BUF struct buf pem = BUF(KIB);
    char ours[PUBLIC_KEY_PEM_BYTES];

    fixture_begin();
    key = vector_key();
    public_key_pem(signing_key_public(key), ours);
    CHECK(str_is(vector(&pem, "public.pem"), ours));
    fixture_end();
}
