/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* One input. Whatever it is, the target returns 0; a broken promise is an abort. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);
