/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Bytes that only a key opens, and that cannot be changed or put elsewhere unnoticed: AES-256-GCM
 * (SP 800-38D) with a random nonce of 96 bits. `bound` is authenticated with them and not stored.
 *
 *     nonce (12) | ciphertext (as long as the plain text) | tag (16) */

#include "lib/crypto/secret.h"

#define SEAL_KEY_BYTES 32
#define SEAL_NONCE_BYTES 12
#define SEAL_EXTRA_BYTES (12 + 16)

/* Appends the sealed form. The key has SEAL_KEY_BYTES. */
int seal_make(struct str key, struct str bound, struct str plain, struct buf *out,
              struct err *err) MUST_CHECK;
/* ERR_INTEGRITY: another key, another `bound`, or changed bytes; nothing comes out then. */
int seal_open(struct str key, struct str bound, struct str sealed, struct secret **out,
              struct err *err) MUST_CHECK;

/* The primitive below, for the published vectors: tag behind the ciphertext, n + 16 bytes. */
int seal_with_nonce(struct str key, const unsigned char nonce[SEAL_NONCE_BYTES], struct str bound,
                    struct str plain, unsigned char *out, struct err *err) MUST_CHECK;

/* A key nobody knows. */
int seal_key_new(struct secret **out, struct err *err) MUST_CHECK;
/* A key for one purpose, of another: HMAC-SHA256 over its name. */
int seal_key_for(struct str key, const char *purpose, struct secret **out,
                 struct err *err) MUST_CHECK;
/* One that is kept in a file like signing keys are (brig-aes256g-v1:<64 hex digits>), made at first
 * use, refused when others may read it. */
int seal_key_file(int dir_fd, const char *name, const char *shown, struct secret **out,
                  struct err *err) MUST_CHECK;
/* One of a passphrase and 16 bytes of salt: Argon2id, 4 passes over 64 MiB (decision 0033).
 * ERR_INVALID: too short or too long. */
#define SEAL_SALT_BYTES 16
int seal_key_passphrase(struct str passphrase, const unsigned char salt[SEAL_SALT_BYTES],
                        struct secret **out, struct err *err) MUST_CHECK;
void seal_random(void *out, size_t n);
/* Opens what OpenSSL opens at first use, for a process that is about to wall itself in. */
void seal_ready(void);
