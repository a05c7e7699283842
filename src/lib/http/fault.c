/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/http/http.h"

/* Indexed by fault; the first is none. */
static const char *const names[] = {"",
#define X(id, name, status, text) name,
                                    HTTP_FAULTS(X)
#undef X
};

static const char *const texts[] = {"",
#define X(id, name, status, text) text,
                                    HTTP_FAULTS(X)
#undef X
};

static const int statuses[] = {0,
#define X(id, name, status, text) status,
                               HTTP_FAULTS(X)
#undef X
};

const char *http_fault_name(enum http_fault fault)
{
    return names[fault];
}

const char *http_fault_text(enum http_fault fault)
{
    return texts[fault];
}

int http_fault_status(enum http_fault fault)
{
    return statuses[fault];
}
