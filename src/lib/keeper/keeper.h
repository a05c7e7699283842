/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The owner's side of a keeper (cmd/keeper): the process that alone holds the signing keys.
 *
 * It is started with its owner and ends with it, however that ends. One that ends before is
 * replaced when the next signature is wanted, at most twice a second in the long run; what was
 * asked of the old one is asked again, once. Whoever wants a signature while there is no keeper
 * gets ERR_KEEPER, within seconds. Any thread may call these. */

#include "lib/crypto/crypto.h"

struct keeper;

/* Whoever wants to know that there is another one, the how-manieth; on the thread that needed it.
 */
typedef void keeper_replaced(uint64_t number);

/* For keys in this folder and beneath it; on_replaced may be NULL. */
int keeper_open(const char *state_dir, keeper_replaced *on_replaced, struct keeper **out,
                struct err *err) MUST_CHECK;
void keeper_free(struct keeper *keeper); /* after the last of its signers */
AUTO_TYPE(keeper)

/* The signer of a state directory, whose key is made at first use. */
int keeper_signer(void *keeper, const char *state_dir, struct signer **out,
                  struct err *err) MUST_CHECK;
