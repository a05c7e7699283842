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
