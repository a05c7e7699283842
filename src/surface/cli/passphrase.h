/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "surface/cli/cli.h"

/* A passphrase: the first line of the file, or asked for on the terminal, unseen. It lives in
 * inv->mem; passphrase_wipe() when it was used. ERR_UNAVAILABLE: there is neither. */
int passphrase_read(struct invocation *inv, const char *file, const char *prompt, struct str *out,
                    struct err *err) MUST_CHECK;
/* The same, typed twice; files are read once. */
int passphrase_choose(struct invocation *inv, const char *file, struct str *out,
                      struct err *err) MUST_CHECK;
void passphrase_wipe(struct str passphrase);
