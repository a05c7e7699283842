/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

uint64_t clock_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail with this clock */
    return (uint64_t)now.tv_sec * 1000000U + (uint64_t)now.tv_nsec / 1000U;
}

int clock_ms_until(uint64_t until_us)
{
    uint64_t now_us = clock_us();
    uint64_t left_us = until_us > now_us ? until_us - now_us : 0;
    uint64_t left_ms = left_us / 1000U + (left_us % 1000U ? 1 : 0);

    return left_ms > INT32_MAX ? INT32_MAX : (int)left_ms;
}

uint64_t clock_wall_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

void clock_timestamp(char out[TIMESTAMP_BYTES])
{
    struct timespec now;
    struct tm utc;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &utc);
    (void)snprintf(out, TIMESTAMP_BYTES, "%04u-%02u-%02uT%02u:%02u:%02u.%06uZ",
                   (unsigned)(utc.tm_year + 1900) % 10000U, (unsigned)(utc.tm_mon + 1) % 100U,
                   (unsigned)utc.tm_mday % 100U, (unsigned)utc.tm_hour % 100U,
                   (unsigned)utc.tm_min % 100U, (unsigned)utc.tm_sec % 100U,
                   (unsigned)(now.tv_nsec / 1000) % 1000000U);
}

void id_new(char out[ID_BYTES])
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
    unsigned char random[ID_BYTES - 1];

    /* Below 256 bytes this does not stop half way once the pool is ready; without randomness
     * there are no names and nothing may run. */
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        abort();
    out[0] = alphabet[random[0] % 26];
    for (unsigned i = 1; i < sizeof random; i++)
        out[i] = alphabet[random[i] & 31];
    out[sizeof random] = '\0';
}
