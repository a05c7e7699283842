/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/str.h"

/* Looks along the heads of a client's frames as they pass, for what wslay does not refuse. */
struct ws_guard {
    unsigned char head[2];
    unsigned have;      /* bytes of the frame's head: 2, then length and mask */
    unsigned wanted;    /* of them; 0 before the second byte is there */
    unsigned fragments; /* frames of the message so far */
    uint64_t length;
    uint64_t left; /* of the payload */
};

/* How many bytes may be handed on. When it is fewer than all, *code is the close code that says
 * why: 1002 for a frame that is not masked, a
 * control frame that is long or cut, or a length in the wrong form; 1009 for too many of one
 * message. */
size_t ws_guard_take(struct ws_guard *guard, struct str bytes, unsigned *code);
