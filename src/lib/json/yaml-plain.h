/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/json/json.h"

/* What a scalar without quotes means: null, a truth value, a number or a text. Refuses what some
 * YAML reader takes for a number and another does not. */
int yaml_plain(struct arena *mem, struct str text, struct json **out, struct err *err) MUST_CHECK;
