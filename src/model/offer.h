/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "model/limits.h"

#include <stdbool.h>

/* All names of providers there are, also of those this version cannot drive; NULL ends them. */
extern const char *const provider_names[];

/* What a provider can do on this machine, for this user: filled by execute, used by equip. Zero
 * offers nothing. */
struct offer {
    const char *provider;
    const char *version;   /* provider_version of the posture */
    const char *isolation; /* "none" or "namespaces", for people */
    bool runs_nothing;     /* mock: every limit holds, because nothing happens */
    bool started_by_root;
    bool holds_network;          /* network rules can be held for its sandboxes */
    unsigned means[LIMIT_COUNT]; /* bits 1 << enum limit_means */
    unsigned processors;
    unsigned landlock_abi;
    unsigned seccomp_filters;
    const char *seccomp_hash;
    uint32_t host_uid; /* whom the sandbox's user is outside; never 0 */
    uint32_t host_gid;
    /* Per limit: why there is no stronger means, and what would change that; or NULL. */
    const char *why[LIMIT_COUNT];
};
