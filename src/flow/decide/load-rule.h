/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reading one rule of the section commands: its words are in policy-commands.c, what else it may
 * say in policy-conditions.c. */

#include "flow/decide/load.h"

/* Each may be NULL. */
struct condition_keys {
    const struct json *principal;
    const struct json *tenant;
    const struct json *provider;
    const struct json *tool;
    const struct json *env;
    const struct json *paths;
    const struct json *effect;
    const struct json *risk;
    const struct json *time;
    const struct json *cost;
    const struct json *when;
};

/* *out stays NULL where nothing is said. */
int load_conditions(struct load *load, const struct condition_keys *keys, bool allowing,
                    const struct conditions **out) MUST_CHECK;
/* Whether they say enough about what is allowed for a rule without words. */
bool conditions_narrow(const struct conditions *conditions);
