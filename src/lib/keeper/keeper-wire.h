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

/* ---- keeper vault ----
 *
 * The same program in another role ("keeper vault"), with a socket pair to whoever starts it, who
 * opens it and gives that end to the egress program. KEEPER_STATE_FD is the vault's folder.
 *
 *     verb     in which state   brings                             answers
 *     hello    new              nothing                            nothing; ready
 *     open     ready            the master key, or zeros for the   nothing; open
 *                               one in its key file
 *     reveal   open             one request and one name           the value, once the use is
 *                                                                  durable in the journal
 *     bound    open             one request                        the slots bound for such ones
 *
 * A request that no binding names, and more of them than the rate allows, are answers with a code;
 * anything out of turn, of another size, unknown, or with bytes where none belong ends the keeper,
 * and with it every way to a secret. */

#define KEEPER_VAULT_MAGIC 0x4b56554cU
#define KEEPER_VAULT_KEY_BYTES 32
#define KEEPER_VAULT_VALUE_MAX 8192
#define KEEPER_VAULT_SLOTS_MAX 16
#define KEEPER_VAULT_SLOT_BYTES 272
#define KEEPER_VAULT_RATE 200  /* reveals a second, */
#define KEEPER_VAULT_BURST 400 /* and at once after a rest */

enum keeper_vault_verb {
    KEEPER_VAULT_NO_VERB,
    KEEPER_VAULT_HELLO,
    KEEPER_VAULT_OPEN,
    KEEPER_VAULT_REVEAL,
    KEEPER_VAULT_BOUND,
};

/* Texts end in a NUL, and so does everything behind it. */
struct keeper_vault_question {
    char sandbox[32];
    char tenant[40];
    char subject[136];
    char pack[136];
    char host[256];
    char scheme[8];
    char method[40];
    char slot[KEEPER_VAULT_SLOT_BYTES];
    char name[72];
    char path[2048];
    uint32_t port;
    uint32_t unused;
};

struct keeper_vault_request {
    uint32_t magic;
    uint16_t version;
    uint16_t verb;
    uint32_t serial;
    uint32_t unused;
    union {
        unsigned char key[KEEPER_VAULT_KEY_BYTES];
        struct keeper_vault_question question;
        unsigned char bytes[sizeof(struct keeper_vault_question)];
    } body;
};

struct keeper_vault_answer {
    uint32_t magic;
    uint16_t version;
    uint16_t status; /* enum keeper_status */
    uint32_t serial;
    uint32_t n;   /* bytes of the value, or slots */
    int32_t code; /* enum err_code */
    uint32_t unused;
    union {
        char value[KEEPER_VAULT_VALUE_MAX];
        char slots[KEEPER_VAULT_SLOTS_MAX][KEEPER_VAULT_SLOT_BYTES];
        char text[512]; /* why not */
        unsigned char bytes[KEEPER_VAULT_VALUE_MAX];
    } body;
};

_Static_assert(sizeof(struct keeper_vault_request) == 16 + 3048, "no padding");
_Static_assert(sizeof(struct keeper_vault_answer) == 24 + KEEPER_VAULT_VALUE_MAX, "no padding");
