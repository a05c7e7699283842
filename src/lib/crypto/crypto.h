/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/buf.h"

/* Hashes: SHA-256, written "sha256:" and 64 lower-case hex digits. */
#define HASH_BYTES 32
#define HASH_TEXT_BYTES 72 /* with the NUL */

struct hash {
    unsigned char b[HASH_BYTES];
};

/* A running hash; holds no resources. */
struct hasher {
    _Alignas(16) unsigned char state[128];
};

void hasher_init(struct hasher *h);
void hasher_add(struct hasher *h, const void *bytes, size_t n);
void hasher_end(struct hasher *h, struct hash *out);

void hash_of(struct str bytes, struct hash *out);
void hash_text(const struct hash *hash, char out[HASH_TEXT_BYTES]);
bool hash_from_text(struct str text, struct hash *out);
/* hash_of() and hash_text() in one step. */
void hash_text_of(struct str bytes, char out[HASH_TEXT_BYTES]);

/* HMAC-SHA256 (RFC 2104), with a key as long as a hash, and with any. */
void hmac_of(const struct hash *key, struct str bytes, struct hash *out);
void hmac_with(struct str key, struct str bytes, struct hash *out);
/* In the same time wherever they differ. */
bool hash_is_same(const struct hash *a, const struct hash *b);

/* Ed25519. One acceptance rule everywhere: S is reduced (S < L), R and the public key are
 * canonical encodings, neither is of small order, and SB = R + kA holds exactly (the equation
 * without the cofactor, so a low-order residue fails). OpenSSL accepts whatever we accept. */
#define SIGNATURE_BYTES 64
#define PUBLIC_KEY_BYTES 32
#define KEY_ID_BYTES 25 /* "ed25519:", 16 hex digits of SHA-256(public key), NUL */

struct signature {
    unsigned char b[SIGNATURE_BYTES];
};

struct public_key {
    unsigned char b[PUBLIC_KEY_BYTES];
};

/* The secret half lives in locked memory and is wiped on release. */
struct signing_key;

/* Opens the key file, making key and file (0600) at first use. A file others may read or write,
 * that is not ours, not regular or not of the right form is refused. */
int signing_key_open(const char *path, struct signing_key **out, struct err *err) MUST_CHECK;
/* The file `name` in a folder that is open, if only as a path; errors call it `shown`. */
int signing_key_open_at(int dir_fd, const char *name, const char *shown, struct signing_key **out,
                        struct err *err) MUST_CHECK;
void signing_key_free(struct signing_key *key);
AUTO_TYPE(signing_key)

void signing_key_sign(const struct signing_key *key, const struct hash *hash,
                      struct signature *out);
const struct public_key *signing_key_public(const struct signing_key *key);
void key_id(const struct public_key *key, char out[KEY_ID_BYTES]);
bool signature_holds(const struct signature *signature, const struct hash *hash,
                     const struct public_key *key);

/* The public half for other people's tools: SubjectPublicKeyInfo in PEM, as openssl reads it. */
#define PUBLIC_KEY_PEM_BYTES 114 /* with the NUL */
void public_key_pem(const struct public_key *key, char out[PUBLIC_KEY_PEM_BYTES]);
/* Reads that form, or 64 hex digits; blanks and line ends around either are no matter. */
int public_key_read(struct str text, struct public_key *out, struct err *err) MUST_CHECK;

/* Bytes that a signature under our signature scheme covers are always one hash: these two are
 * the primitive below signing_key_sign() and signature_holds(), for the published vectors. */
void signing_key_sign_bytes(const struct signing_key *key, struct str bytes, struct signature *out);
bool signature_holds_bytes(const struct signature *signature, struct str bytes,
                           const struct public_key *key);

/* ---- whoever signs ---- */

/* Makes signatures under one key, wherever that lies: in this process, or in one that does nothing
 * else. Any thread may call it. */
#define SIGNER_BATCH_MAX 128

struct signer {
    struct public_key public_key;
    size_t batch; /* so many hashes at once are worth waiting for; at most SIGNER_BATCH_MAX */
    /* All n of them (at most batch), or -1 and none. */
    int (*sign)(struct signer *signer, const struct hash *hashes, size_t n, struct signature *out,
                struct err *err);
    void (*free)(struct signer *signer);
};

void signer_free(struct signer *signer);
AUTO_TYPE(signer)

/* With the key file of this path, as signing_key_open() has it. */
int signer_open(const char *path, struct signer **out, struct err *err) MUST_CHECK;
