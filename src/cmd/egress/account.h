/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What passed and what did not, counted: in all, by rule, and of refusals by what was asked. Each
 * table has its ceiling; what does not fit is counted as left out, so the sums are always right. */

#include "cmd/egress/ceilings.h"
#include "lib/json/json.h"

struct counts {
    uint64_t connections;
    uint64_t requests;
    uint64_t refused;
    uint64_t bytes_out; /* to servers */
    uint64_t bytes_in;
    uint64_t latency_us;
    uint64_t secrets;  /* put into requests */
    uint64_t scrubbed; /* taken out of answers */
};

/* What was asked for in vain. The texts are the sandbox's own words. */
struct refusal {
    struct str host;
    uint16_t port;
    struct str method; /* empty: a connection */
    struct str path;   /* without its query */
    struct str binary;
    const char *reason; /* a code; a literal */
};

struct account;

struct account *account_new(void);
void account_free(struct account *account);
AUTO_TYPE(account)

/* Adds to the sums and to the rule; an empty name adds to the sums alone. */
void account_add(struct account *account, const char *rule, const struct counts *more);
void account_refuse(struct account *account, const char *rule, const struct refusal *refusal);

/* As lib/egress/control.h has it, without the hash of the rules. */
struct json *account_json(const struct account *account, struct arena *mem);

/* "/users/17/keys/3f2a…" → "/users/{}/keys/{}": segments that look like they name one thing. Cut at
 * SAID_PATH_MAX; bytes that are not visible ASCII become "?". Returns the length. */
size_t path_shape(struct str path, char out[SAID_PATH_MAX + 1]);
