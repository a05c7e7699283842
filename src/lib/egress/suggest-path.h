/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The shape of a path, as a pattern of rules. */

#include "lib/base/buf.h"

#define SUGGEST_PATH_MAX 256 /* where egress cuts what a sandbox said */

/* "/users/17" → "/users/[0-9]*", and a path that this matches. False: it was cut, or has bytes that
 * are not those that were sent. What was added to the buffers then means nothing. */
bool suggest_path(struct str path, struct buf *pattern, struct buf *sample);

/* A text that stands for itself in a pattern. */
bool suggest_literal(struct str text, struct buf *pattern);
