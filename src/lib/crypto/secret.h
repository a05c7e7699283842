/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Bytes nobody else may see: in memory of their own that is locked, left out of core dumps,
 * between guard pages, and wiped on release. There is one way to look at them, which a search
 * finds. */

#include "lib/base/buf.h"

struct secret;

/* A copy; the source stays the caller's to wipe. ERR_LIMIT: no memory can be had. */
int secret_new(struct str bytes, struct secret **out, struct err *err) MUST_CHECK;
/* n zero bytes, for whoever fills them in through *room. */
int secret_blank(size_t n, struct secret **out, char **room, struct err *err) MUST_CHECK;
void secret_free(struct secret *secret);
AUTO_TYPE(secret)

struct str secret_reveal(const struct secret *secret);
/* Fewer bytes than there were; the others are wiped. */
void secret_shorten(struct secret *secret, size_t n);

/* For buffers that held one; the compiler leaves it in. */
void secret_wipe(void *bytes, size_t n);
/* In the same time wherever they differ. */
bool secret_is_same(struct str a, struct str b);
