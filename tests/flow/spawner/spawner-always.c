/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/execute/spawner-default.h"

const bool spawner_by_default = true;
