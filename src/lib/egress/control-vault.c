/* SPDX-License-Identifier: Apache-2.0 */

/* The keeper of secrets that goes with egress: started where the vault can be opened, and then
 * nobody's child; it ends when egress, which has the only end of its pair, does. */

#include "lib/egress/control-private.h"

#include <stdio.h>
#include <unistd.h>

#include "lib/base/limits.h"
#include "lib/vault/vault-ask.h"

int egress_vault_start(const char *state_dir)
{
    char path[PATH_BYTES_MAX];
    struct err err;
    int fd;

    /* Opening makes one, and who never had a secret needs none. */
    if (snprintf(path, sizeof path, "%s/" VAULT_FOLDER "/secrets", state_dir) >= (int)sizeof path ||
        access(path, R_OK) < 0)
        return -1;
    return vault_keeper_start(state_dir, (struct str){"", 0}, &fd, NULL, &err) < 0 ? -1 : fd;
}
