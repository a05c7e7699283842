/* SPDX-License-Identifier: Apache-2.0 */

/* stamp: what time it is when a program begins; for bench/kept.c. */

#include <stdint.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
    struct timespec now;
    uint64_t ns;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    ns = (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
    return write(STDOUT_FILENO, &ns, sizeof ns) == (ssize_t)sizeof ns ? 0 : 1;
}
