/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A signing key of a person's, behind a passphrase: Ed25519, its seed sealed by XSalsa20-Poly1305
 * under a key that Argon2id makes of the passphrase. What is stored tells nothing without it. */

#include "lib/crypto/crypto.h"

#define PASSPHRASE_MIN 12 /* bytes */
#define PASSPHRASE_MAX 1024
#define SEALED_KEY_BYTES (16 + 24 + 16 + 32) /* salt, nonce, tag, seed */

struct sealed_key {
    unsigned char b[SEALED_KEY_BYTES];
};

/* A new key. ERR_INVALID: the passphrase is too short or too long. */
int sealed_key_make(struct str passphrase, struct sealed_key *out, struct public_key *public_key,
                    struct err *err) MUST_CHECK;
/* ERR_FORBIDDEN: that is not the passphrase. */
int sealed_key_sign(const struct sealed_key *sealed, struct str passphrase, const struct hash *hash,
                    struct signature *out, struct err *err) MUST_CHECK;
