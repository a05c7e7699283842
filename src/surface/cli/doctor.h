/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/cli: one look at the machine, and what to do about it. */

#include <stdbool.h>

struct invocation;
struct finding;
struct json;

/* Zero is the closed side. */
enum finding_result {
    FINDING_MISSING, /* the local provider cannot do without it */
    FINDING_WEAK,    /* works, with less than there could be */
    FINDING_GOOD,
};

struct finding {
    const char *area;
    const char *name;
    enum finding_result result;
    char seen[320]; /* what is the case */
    char fix[400];  /* what to do about it; "" when good */
};

/* Each looks at one thing and fills result, seen and fix. None changes anything outside a child
 * process of its own. */
void look_at_release(struct invocation *inv, struct finding *out);
void look_at_namespaces(struct invocation *inv, struct finding *out);
void look_at_landlock(struct invocation *inv, struct finding *out);
void look_at_seccomp(struct invocation *inv, struct finding *out);
void look_at_memory(struct invocation *inv, struct finding *out);
void look_at_pids(struct invocation *inv, struct finding *out);
void look_at_cpu(struct invocation *inv, struct finding *out);
void look_at_state(struct invocation *inv, struct finding *out);
void look_at_key(struct invocation *inv, struct finding *out);
void look_at_ledger(struct invocation *inv, struct finding *out);

/* Prints what each provider can enforce here, or adds it to the list; false when one cannot be
 * used. */
bool show_providers(struct invocation *inv, struct json *list);

void finding_good(struct finding *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What is the case, then what to do. */
void finding_bad(struct finding *out, enum finding_result result, const char *seen,
                 const char *fix);
