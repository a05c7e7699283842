/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/* The first 8 bytes of this program's build id as 16 hex digits, or "unknown". */
#define BUILD_ID_BYTES 17
void build_id(char out[BUILD_ID_BYTES]);
