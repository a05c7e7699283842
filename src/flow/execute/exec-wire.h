/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A command that runs without its caller. What is left of it for later ones:
 *
 *    STATE/runs/RUN.lock      "detached SANDBOX"; held by its keeper while it runs
 *    STATE/runs/RUN/attach    socket of its keeper: BOX_ATTACH with three streams, once at a time
 *    STATE/runs/RUN/log       this header, then a ring for each of its two streams
 *
 * The keeper lives inside the walls: whoever reads the log takes its numbers for claims. */

#include <stdint.h>

#define EXEC_LOG_MAGIC 0x676c7862U /* "bxlg" */
#define EXEC_LOG_VERSION 2U
#define EXEC_RING_BYTES (256U << 10)
#define EXEC_RINGS_AT 4096U
#define EXEC_LOG_BYTES (EXEC_RINGS_AT + 2U * EXEC_RING_BYTES)

struct exec_log {
    uint32_t magic;
    uint32_t version;
    uint32_t ended;
    int32_t status;  /* as wait() gives it, once it has ended */
    uint32_t reason; /* what ended it, or REASON_NONE */
    uint32_t tty;
    uint64_t cpu_us;
    uint64_t peak_memory_bytes;
    uint64_t read_bytes;
    uint64_t written_bytes;
    uint64_t duration_us;
    uint64_t stdin_bytes;
    uint64_t total[2]; /* bytes of each stream so far; the last EXEC_RING_BYTES are in its ring */
};
