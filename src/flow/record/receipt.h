/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to flow/record: one receipt, made and read. */

#include "flow/record/record.h"
#include "lib/json/json.h"

/* Everything that goes into the hash stands behind this, its NUL included. */
#define RECEIPT_DOMAIN "brig/receipt/1"
#define RECEIPT_VERSION 1
#define SEQ_MAX ((INT64_C(1) << 53) - 1) /* what every JSON reader holds exactly */

/* A run has one receipt of each; others have none. */
enum receipt_role {
    ROLE_OPENS,
    ROLE_CLOSES,
};

/* The last entry of the chain, or all zero and the hash of nothing. */
struct chain_head {
    uint64_t seq;
    uint64_t lamport_clock;
    struct hash hash;
};

/* One receipt on its way into the ledger. What it points to belongs to its arena. */
struct receipt {
    struct receipt_ref ref;
    enum receipt_role role;
    const char *kind;
    const char *run_id;
    struct json *json; /* the body as a tree, until it is sealed */
    struct buf body;   /* canonical */
    struct hash hash;
    struct signature signature;
    bool is_signed;
};

void receipt_done(struct receipt *receipt);

/* What a run has to say, without its place in the chain. */
void receipt_of_run(struct arena *mem, const struct run *run, enum receipt_role role,
                    struct receipt *out);
/* The end of a run nobody saw end, from the receipt that began it. */
void receipt_of_abandoned(struct arena *mem, const struct json *intent, const struct outcome *known,
                          struct receipt *out);

/* Gives it its place behind the head, which moves on, and its hash. */
int receipt_seal(struct arena *mem, const char *key_id, struct chain_head *head,
                 struct receipt *receipt, struct err *err) MUST_CHECK;

void receipt_hash(struct str body, struct hash *out);

/* A receipt as somebody else gives it: parsed, not yet believed. Texts are borrowed. */
struct entry {
    const struct json *json; /* complete */
    struct str body;         /* canonical, without hash and signature */
    struct hash hash;        /* as stated */
    struct signature signature;
    uint64_t seq;
    uint64_t lamport_clock;
    struct str receipt_id;
    struct str kind;
    struct str run_id; /* empty: none */
    struct str key_id;
    struct hash prev_hash;
    bool misfiled; /* in a ledger: the columns do not repeat the members */
};

/* One to 20 of a-z and 0-9: also safe to print. */
bool is_receipt_id(struct str name);

/* ERR_INVALID says which member is missing or of the wrong form. */
int entry_parse(struct arena *mem, struct str line, struct buf *body, struct entry *out,
                struct err *err) MUST_CHECK;
/* Hash and signature, under this key. NULL when both hold, else what does not. */
const char *entry_fault(const struct entry *entry, const struct public_key *key);

/* The complete object: body, hash, signature; the body's tree is used up. */
void receipt_complete(struct arena *mem, struct json *body, const struct hash *hash,
                      const struct signature *signature);
