/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The addresses a sandbox gets for names: each name has one of 198.18.0.0/15, the same as long as
 * it is remembered. An address whose name was forgotten (there are more names than fit) is nobody's
 * until the numbers have gone round, so that no connection meant for one name reaches another. */

#include "lib/base/str.h"

struct names;

struct names *names_new(void);
void names_free(struct names *names);

/* The address of a name in lower case without a dot at its end, of 1 to 253 bytes. */
void names_give(struct names *names, struct str name, unsigned char out[4]);
/* The name behind an address, or NULL. Valid until the next names_give(). */
const char *names_find(const struct names *names, const unsigned char address[4]);
/* Whether an address is of the block that names are answered from. */
bool names_is_ours(const unsigned char address[4]);
