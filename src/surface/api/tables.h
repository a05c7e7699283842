/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/api: the rows of each area, in the file of its handlers. */

#include "surface/api/route.h"

extern const struct route routes_system[];
extern const struct route routes_sandboxes[];
extern const struct route routes_exec[];
extern const struct route routes_execs[];
extern const struct route routes_files[];
extern const struct route routes_receipts[];
extern const struct route routes_explain[];
extern const struct route routes_images[];
extern const struct route routes_machine[];
extern const struct route routes_policies[];
extern const struct route routes_ports[];
extern const struct route routes_tail[];
extern const struct route routes_tokens[];
extern const struct route routes_freeze[];
extern const struct route routes_vault[];
extern const struct route routes_usage[];
extern const struct route routes_budgets[];
extern const struct route routes_advisory[];
extern const struct route routes_sessions[];
extern const struct route routes_session_actions[];
extern const struct route routes_session_replay[];
extern const struct route routes_gate[];
extern const struct route routes_approvals[];
extern const struct route routes_snapshots[];
