/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that may be rules: what compiles allows nothing to a caller nobody knows. */
#include "fuzz.h"

#include "lib/egress/rules.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO(net_rules) struct net_rules *rules = NULL;
    struct net_knock knock = {.host = STR_LIT("a.example.com"), .port = 443};
    struct net_verdict verdict;
    struct err err;

    if (net_rules_read((struct str){(const char *)bytes, n}, &rules, &err) < 0)
        return 0;
    net_rules_connect(rules, &knock, &verdict);
    if (verdict.kind != NET_DENY)
        abort();
    return 0;
}
