/* SPDX-License-Identifier: Apache-2.0 */

/* The keeper of secrets that goes with egress: started where the vault can be opened, and then
 * nobody's child; it ends when egress, which has the only end of its pair, does. */

#include "lib/egress/control-private.h"

#include <stdio.h>
#include <unistd.h>

#include "lib/base/limits.h"
#include "lib/vault/vault-ask.h"

int egress_vault_start(const char *state_dir, enum egress_absence *why)
{
    char path[PATH_BYTES_MAX];
    struct err err;
    int fd;

    /* Opening makes one, and who never had a secret needs none. */
    if (snprintf(path, sizeof path, "%s/" VAULT_FOLDER "/secrets", state_dir) >= (int)sizeof path ||
        access(path, F_OK) < 0) {
        *why = EGRESS_VAULT_MISSING;
        return -1;
    }
    if (vault_keeper_start(state_dir, (struct str){"", 0}, &fd, NULL, &err) == 0)
        return fd;
    *why = err.code == ERR_FORBIDDEN ? EGRESS_VAULT_LOCKED : EGRESS_VAULT_BROKEN;
    return -1;
}
