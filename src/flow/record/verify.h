/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to flow/record: the judge of a chain, fed entry by entry from wherever they come. */

#include "flow/record/receipt.h"

struct verifier {
    const struct record_check *check;
    struct record_report *report;
    struct chain_head last;
    uint64_t line;  /* of the file, 0 in a ledger */
    bool searching; /* an entry was not in its place: is it further on? */
    bool head_seen; /* the entry the head names was there and was that one */
    uint64_t intents;
    uint64_t endings;
};

void verifier_begin(struct verifier *v, const struct record_check *check,
                    struct record_report *report);
/* False once nothing that follows can change the report. */
bool verifier_wants_more(const struct verifier *v);
void verifier_entry(struct verifier *v, const struct entry *entry);
/* Something that stands where the next entry should and is none; id may be empty. */
void verifier_fault(struct verifier *v, enum record_fault fault, struct str id, const char *what);
void verifier_end(struct verifier *v);

/* ---- the ledger ---- */

/* An entry that was good when it was looked at. */
struct place {
    uint64_t seq;
    struct hash hash;
};

/* record_verify() from this number on (0: all there is). Every good entry is shown. */
typedef int entry_visitor(void *context, const struct entry *entry, struct err *err);
int ledger_verify(struct record *record, const struct record_check *check, uint64_t from,
                  entry_visitor *visit, void *context, struct record_report *out,
                  struct err *err) MUST_CHECK;
/* What is wrong with the row of this number, or "": that it is not what was signed with the key,
 * or does not follow the entry before it. What that one says of itself is believed. */
int ledger_fault(struct record *record, int64_t seq, const struct public_key *key,
                 struct arena *mem, const char **out, struct err *err) MUST_CHECK;
/* These once more, each shown when it is authentic and still the same. ERR_INTEGRITY. */
int ledger_verify_again(struct record *record, const struct public_key *key,
                        const struct place *places, size_t n, record_visitor *visit, void *context,
                        struct err *err) MUST_CHECK;
