/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Places on the write path where a test ends the process as a power cut would: compiled in with
 * -Dcrash_points=true, taken when BRIG_CRASH_AT names the place. What is on disk at that moment
 * must be a state from which everything goes on. */

#ifdef BRIG_CRASH_POINTS
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define CRASH_POINT(name)                                                                          \
    do {                                                                                           \
        const char *crash_at_ = getenv("BRIG_CRASH_AT");                                           \
        if (crash_at_ && strcmp(crash_at_, (name)) == 0)                                           \
            (void)raise(SIGKILL);                                                                  \
    } while (0)
#else
#define CRASH_POINT(name) ((void)(name))
#endif
