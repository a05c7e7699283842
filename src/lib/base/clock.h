/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* Timeouts and durations use this one: it does not jump. */
uint64_t clock_us(void);

/* What poll() takes to wait until then and not a moment less: 0 once it has come, else the
 * milliseconds up to it, rounded up; INT_MAX at most. */
int clock_ms_until(uint64_t until_us);

/* Since 1970, for those who compare it with other machines' clocks. */
uint64_t clock_wall_ns(void);

/* "2026-11-15T20:59:01.123456Z": for people and receipts, never for waiting. */
#define TIMESTAMP_BYTES 28
void clock_timestamp(char out[TIMESTAMP_BYTES]);

/* A new random name: letter first, [a-z0-9], 20 characters, 98 bits. */
#define ID_BYTES 21
void id_new(char out[ID_BYTES]);
