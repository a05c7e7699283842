/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a controller and the egress program (cmd/egress) say to each other over
 * STATE/egress/control.sock: one message of a fixed size each way, on a socket that keeps message
 * borders.
 *
 *     verb      brings                                          answers
 *     hello     nothing                                         nothing; the program is ready
 *     sandbox   id, rules and the program's end of the          hash of the compiled rules
 *               handover pair (two descriptors)
 *     swap      id, rules (one descriptor)                      hash of the compiled rules
 *     window    id, mark, how many bytes may pass while it is   nothing
 *               open; with a bound it ends with the conversation
 *     counters  id, mark or none, whether it is the last time   a document (one descriptor)
 *     end       id                                              nothing
 *     events    the number behind which they are wanted         a document (one descriptor)
 *     vault     an end of a pair, with `keeper vault` at the    nothing; one it has is kept
 *               other (one descriptor)
 *     who       id, tenant, subject, pack, name                 nothing
 *     no-vault  why there is none (enum egress_absence)         nothing
 *     proposals id, or none for those of all sandboxes          a document (one descriptor)
 *     decide    id, the proposal's id as mark, `last` for yes,  nothing; the sandbox hears it
 *               and who, why and under which rules (one
 *               descriptor)
 *
 * Rules and documents are sealed memory files: canonical JSON of the network sections of a policy
 * one way, JSON the other. Every answer says whether there is a vault. A request that cannot be
 * done is an answer with a code; a message that is none (another size, an unknown verb, descriptors
 * nobody asked for) ends the conversation.
 *
 * Both sides are of one build, so numbers are in the machine's own order. */

#include "lib/crypto/crypto.h"

#define EGRESS_MAGIC 0x45475245U
#define EGRESS_VERSION 3
#define EGRESS_NAME_BYTES 128 /* of a sandbox or a mark, with the NUL */
#define EGRESS_TEXT_BYTES 480
#define EGRESS_WORD_MAX (16 * 1024) /* what comes with decide */

/* Beneath the state directory; the folder is its owner's alone. */
#define EGRESS_FOLDER "egress"
#define EGRESS_SOCKET "control.sock"
#define EGRESS_LOCK "lock" /* held by whoever connects, and by the program when it ends */
#define EGRESS_LOG "log"

/* What the program is born with: nothing, nothing, its log, and these. */
#define EGRESS_LISTEN_FD 3
#define EGRESS_FOLDER_FD 4
#define EGRESS_LOCK_FD 5
#define EGRESS_FD_N 6

#define EGRESS_REQUEST_FDS 2 /* at most */

enum egress_verb {
    EGRESS_NO_VERB,
    EGRESS_HELLO,
    EGRESS_SANDBOX,
    EGRESS_SWAP,
    EGRESS_WINDOW,
    EGRESS_COUNTERS,
    EGRESS_END,
    EGRESS_EVENTS,
    EGRESS_VAULT,
    EGRESS_WHO,
    EGRESS_NO_VAULT,
    EGRESS_PROPOSALS,
    EGRESS_DECIDE,
};

/* Why no keeper of secrets comes along. */
enum egress_absence {
    EGRESS_VAULT_MISSING, /* there is no vault */
    EGRESS_VAULT_LOCKED,  /* it wants a passphrase, which nobody is there to type */
    EGRESS_VAULT_BROKEN,  /* it cannot be opened */
};

/* Whose sandbox it is, as bindings of secrets name it (lib/vault/vault.h), and what other sandboxes
 * call it besides its id. */
struct egress_who_text {
    char tenant[40];
    char subject[136];
    char pack[136];
    char name[64];
};

struct egress_request {
    uint32_t magic;
    uint16_t version;
    uint16_t verb;
    uint32_t serial; /* comes back with the answer */
    uint32_t last;   /* counters: 1 forgets the window; no-vault: why; decide: 1 is yes */
    uint64_t number; /* events: behind which; window: of bytes, UINT64_MAX: any */
    char id[EGRESS_NAME_BYTES];
    char mark[EGRESS_NAME_BYTES];
    struct egress_who_text who; /* who; else zero */
};

enum egress_status {
    EGRESS_FAILED, /* code and text say why */
    EGRESS_DONE,
};

struct egress_answer {
    uint32_t magic;
    uint16_t version;
    uint16_t status;
    uint32_t serial;
    int32_t code; /* enum err_code */
    int32_t os;
    uint32_t has_vault; /* a keeper of secrets is at hand */
    struct hash hash;   /* sandbox, swap */
    char text[EGRESS_TEXT_BYTES];
};

_Static_assert(sizeof(struct egress_request) == 24 + 2 * EGRESS_NAME_BYTES + 376, "no padding");
_Static_assert(sizeof(struct egress_answer) == 24 + HASH_BYTES + EGRESS_TEXT_BYTES, "no padding");
