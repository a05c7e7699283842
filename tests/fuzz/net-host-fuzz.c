/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts as strangers write them: read once and again, they are the same. */
#include "fuzz.h"

#include "lib/net/addr.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct str text = {(const char *)bytes, n}, host;
    struct net_host once, twice;
    struct net_block block;
    uint16_t port;

    net_host_read(text, &once);
    if (once.kind == NET_HOST_BAD) {
        if (!once.fault)
            abort();
    } else {
        net_host_read((struct str){once.text, once.n}, &twice);
        if (twice.kind != once.kind || twice.is_odd || strcmp(twice.text, once.text) != 0)
            abort();
        if (once.kind == NET_HOST_ADDRESS && !net_addr_is_same(&once.addr, &twice.addr))
            abort();
    }
    (void)net_pattern_fault(text);
    (void)net_pattern_match(text, STR_LIT("a.b.example.com"));
    (void)net_authority_cut(text, 443, &host, &port);
    if (net_block_read(text, &block))
        (void)net_block_forbidden(&block);
    return 0;
}
