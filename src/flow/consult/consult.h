/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/buf.h"

struct external;
struct run;

/* Asks a decider outside of Brig about a run that has a verdict, which becomes stricter or stays: a
 * no is a denial (PDP_DENY), a wish for a person makes ALLOW an ASK (PDP_ASK), and whatever is not
 * a clear yes a denial, too (PDP_ERROR). A verdict it is not asked about stays. layer names the
 * policy that names it. Takes no longer than the time the policy gives. */
void consult_run(const struct external *external, const char *layer, struct run *run);

/* Whether it would be asked about this verdict. */
bool consult_is_due(const struct external *external, const struct run *run);

/* What it would be sent, for those who want to see it. */
int consult_question(const struct external *external, const struct run *run, struct buf *out,
                     struct err *err) MUST_CHECK;

/* An answer, read: -1 is no answer, and err says why. */
enum consult_word {
    CONSULT_NO,
    CONSULT_ASK,
    CONSULT_YES,
};
#define CONSULT_REASON_BYTES 257
int consult_read(const struct external *external, struct str text, enum consult_word *out,
                 char reason[CONSULT_REASON_BYTES], struct err *err) MUST_CHECK;
