/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Until the pair ends: hears of callers and answers every connection with a line that says who made
 * it, "PATH HASH [deleted] [script=PATH HASH | script=unknown] [lost] [ANCESTOR…]", or "nobody".
 * A connection to port 9 ends it; after one to port 11 it does not listen to the pair any more. */
void stand_in_serve(int pair_fd);
#define STAND_IN_QUIT_PORT 9
#define STAND_IN_DEAF_PORT 11
