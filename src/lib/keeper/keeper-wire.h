/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a daemon and its keeper say to each other: one message of a fixed size each way, over a
 * socket pair that keeps message borders and was there before the keeper was.
 *
 *     verb    in which state     brings                        answers
 *     hello   new                nothing                       nothing; the keeper is ready
 *     open    ready, holding     a folder (one descriptor)     slot and public key; holding
 *     sign    holding            slot, 1 to 16 hashes          as many signatures
 *
 * Open reads the key in that folder, or makes it. What a key is for is said with every request;
 * there is one purpose so far. Anything else — another size, another state, a slot that was not
 * given out, descriptors nobody asked for, bytes where none belong — is refused, and the keeper
 * ends. A key that cannot be opened is an answer with a code, and the keeper goes on.
 *
 * Both sides are of one build, so numbers are in the machine's own order. */

#include "lib/crypto/crypto.h"

#define KEEPER_MAGIC 0x4b454550U
#define KEEPER_VERSION 1
#define KEEPER_BODY_BYTES 1024
#define KEEPER_HASHES_MAX 16 /* in one message */
#define KEEPER_KEYS_MAX 4096
#define KEEPER_KEY_NAME "receipts.key" /* in the folder; as flow/record calls it, too */

/* What it is born with. */
#define KEEPER_SOCKET_FD 3
#define KEEPER_STATE_FD 4 /* the folder whose keys it may open; those of tenants are beneath it */
#define KEEPER_FD_N 5

enum keeper_verb {
    KEEPER_NO_VERB,
    KEEPER_HELLO,
    KEEPER_OPEN,
    KEEPER_SIGN,
};

enum keeper_purpose {
    KEEPER_NO_PURPOSE,
    KEEPER_RECEIPTS, /* Ed25519 over hashes of receipts */
};

struct keeper_request {
    uint32_t magic;
    uint16_t version;
    uint16_t verb;
    uint32_t serial; /* comes back with the answer; answers may overtake each other */
    uint32_t purpose;
    uint32_t slot;
    uint32_t count;
    union {
        struct hash hashes[KEEPER_HASHES_MAX];
        unsigned char bytes[KEEPER_BODY_BYTES];
    } body;
};

enum keeper_status {
    KEEPER_DONE,
    KEEPER_FAILED,  /* code and text say why; the next request may do better */
    KEEPER_REFUSED, /* the same, and the keeper has ended */
};

struct keeper_answer {
    uint32_t magic;
    uint16_t version;
    uint16_t status;
    uint32_t serial;
    uint32_t slot;
    uint32_t count;
    int32_t code; /* enum err_code */
    int32_t os;
    uint32_t unused;
    union {
        struct signature signatures[KEEPER_HASHES_MAX];
        struct public_key public_key;
        char text[KEEPER_BODY_BYTES];
        unsigned char bytes[KEEPER_BODY_BYTES];
    } body;
};

_Static_assert(sizeof(struct keeper_request) == 24 + KEEPER_BODY_BYTES, "no padding");
_Static_assert(sizeof(struct keeper_answer) == 32 + KEEPER_BODY_BYTES, "no padding");
