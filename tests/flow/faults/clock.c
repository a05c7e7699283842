/* SPDX-License-Identifier: Apache-2.0 */

/* Preloaded into a daemon: its calendar is as many seconds off as the file $BRIG_CLOCK_OFFSET says
 * at that moment. Clocks that do not jump are left alone. */

#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long offset(void)
{
    const char *path = getenv("BRIG_CLOCK_OFFSET");
    FILE *file = path ? fopen(path, "re") : NULL;
    long seconds = 0;

    if (file) {
        if (fscanf(file, "%ld", &seconds) != 1)
            seconds = 0;
        (void)fclose(file);
    }
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    if (syscall(SYS_clock_gettime, clock, out) < 0)
        return -1;
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        out->tv_sec += offset();
    return 0;
}

time_t time(time_t *out)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
