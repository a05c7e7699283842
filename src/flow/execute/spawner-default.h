/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/* Whether an execute stage that was given no spawner starts one of its own. A program that runs one
 * command and ends gains nothing by it: false. Tests link a program in which it is true, so that
 * whatever holds of a sandbox can be tried on those of a spawner (tests/flow/spawner). */
extern const bool spawner_by_default;
