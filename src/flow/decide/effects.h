/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What kind of effect a command or a tool call has, and how grave that is: HELM's catalogue.
 *
 * It is read off names and words. A program can be copied, renamed or written anew inside the
 * sandbox: this sorts what is honest and catches mistakes; the walls are what hold. */

#include "flow/decide/carrier.h"

#define RISK_UNKNOWN 3U
#define RISK_MAX 4U

struct effect {
    const char *id;
    unsigned risk; /* E0 computes or reads, E1 reaches out, E2 soft, E3 hard, E4 critical */
};

/* One of the catalogue, or NULL. */
const struct effect *effect_find(struct str id);
/* "E0" to "E4". */
bool effect_level(struct str text, unsigned *out);
/* All of them, the last one is UNKNOWN. */
const struct effect *effect_catalogue(size_t *n);

struct effect_seen {
    const struct effect *effect; /* UNKNOWN when nothing is known about the program */
    unsigned risk;               /* at least E3 where it is not certain which program that is */
    bool certain; /* a bare name, or a plain path in a folder of the system, that is known */
};

/* Words whose first one names a program or, where they are the call of a tool, is "tool:NAME". */
struct effect_seen effect_of(struct slice words, bool is_tool, bool bare_names_trusted);
/* The same after somebody said what it is: a class, or E0 to E4. It only ever gets graver, and what
 * nobody knows counts as UNKNOWN. */
struct effect_seen effect_as_said(struct effect_seen seen, const char *said);
/* The graver one; of equals the first. */
struct effect_seen effect_graver(struct effect_seen a, struct effect_seen b);
