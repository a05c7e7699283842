/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to lib/crypto: the secret half, and the file it is kept in. */

#include "lib/crypto/crypto.h"

#define SEED_BYTES 32

/* In memory that is locked, left out of core dumps, read-only, and empty in a forked child: a
 * sandbox builder cloned from us carries no key. */
struct signing_key {
    unsigned char secret[64]; /* libsodium's form: seed, public key */
    struct public_key public_key;
    unsigned char present; /* 1; reads as 0 after a fork */
};

/* libsodium picks its implementations once; every function that needs it calls this. */
void crypto_ready(void);

/* What a key file begins with, and what errors call it. */
#define KEY_FILE_HEAD_BYTES 16UL
struct key_file_kind {
    char head[KEY_FILE_HEAD_BYTES + 1];
    const char *what;
};

/* The seed of the key file `name` in a folder, made at first use; errors call it `path`. The caller
 * wipes the seed. */
int key_file_open(int dir_fd, const char *name, const char *path, const struct key_file_kind *kind,
                  unsigned char seed[SEED_BYTES], struct err *err) MUST_CHECK;
