/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"

/* Gives up everything but what moving bytes needs: no file can be opened any more, nothing be run,
 * nobody looks into us. */
int confine(struct err *err) MUST_CHECK;
