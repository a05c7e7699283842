/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/* A decider outside of Brig that a policy names: how it is asked, and about what. */
enum external_protocol {
    EXTERNAL_OPA,
    EXTERNAL_AUTHZEN,
};

struct external {
    const char *url;
    enum external_protocol protocol;
    unsigned timeout_ms;
    bool on_allow, on_ask; /* verdicts of our own that are put to it */
    unsigned line;         /* in the policy */
};
