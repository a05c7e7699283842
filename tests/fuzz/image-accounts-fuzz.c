/* SPDX-License-Identifier: Apache-2.0 */

/* The first line is who is looked for, the rest a passwd and a group file: whoever is found stands
 * in it, and looking by the number that was found finds that number. */

#include "fuzz.h"

#include "lib/image/image.h"

#include <stdio.h>
#include <stdlib.h>

static bool lies_in(struct str part, struct str whole)
{
    return part.n == 0 || (part.p >= whole.p && part.p + part.n <= whole.p + whole.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct str text = {(const char *)bytes, n};
    struct str who = str_cut(&text, '\n');
    struct account account = {0}, again = {0};
    uint32_t gid = UINT32_MAX;
    char number[16];

    if (account_find_group(text, who, &gid) && gid == UINT32_MAX)
        abort();
    if (!account_find(text, who, &account))
        return 0;
    (void)snprintf(number, sizeof number, "%u", account.uid);
    if (!lies_in(account.name, text) || !lies_in(account.home, text) || account.name.n == 0 ||
        account.uid == UINT32_MAX || !account_find(text, str_of(number), &again) ||
        again.uid != account.uid)
        abort();
    return 0;
}
