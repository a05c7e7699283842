/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts and addresses of network rules: what may be named at all. How they are read, and which can
 * never be allowed, is the business of lib/net. */
#include "flow/decide/load.h"

#include "lib/net/addr.h"

#include <string.h>

int load_allowed_ip(struct load *load, const struct json *value)
{
    struct net_block block;
    const char *what;

    if (load_text(load, value, 64, "an address in allowed_ips") < 0)
        return -1;
    if (!net_block_read(value->text, &block))
        return load_bad(load, value->mark,
                        "\"%s\" is neither an IP address nor a network like 10.4.0.0/24",
                        shown(load, value->text));
    what = net_block_forbidden(&block);
    if (what)
        return load_bad(load, value->mark,
                        "allowed_ips \"%s\" includes addresses that can never be allowed (%s)",
                        shown(load, value->text), what);
    return 0;
}

static int check_name(struct load *load, const struct json *value)
{
    const char *fault = net_pattern_fault(value->text);
    struct str host = value->text;

    if (fault)
        return load_bad(load, value->mark, "host \"%s\" %s", shown(load, host), fault);
    if (net_name_is_never(host))
        return load_bad(load, value->mark, "host \"%s\" can never be allowed", shown(load, host));
    if (str_ends(host, ".sandbox.internal"))
        return load_bad(load, value->mark,
                        "host \"%s\" is another sandbox; write \"sandbox\" and its name",
                        shown(load, host));
    return 0;
}

int load_host(struct load *load, const struct json *value, bool *is_address)
{
    struct str host = value->text;
    struct net_addr addr;

    if (load_text(load, value, NET_NAME_BYTES_MAX, "\"host\"") < 0)
        return -1;
    if (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
        host = (struct str){host.p + 1, host.n - 2};
    *is_address = net_addr_read(host, &addr);
    if (!*is_address)
        return check_name(load, value);
    if (net_range_is_never(net_range_of(&addr)))
        return load_bad(load, value->mark, "host \"%s\" can never be allowed (%s)",
                        shown(load, value->text), net_range_name(net_range_of(&addr)));
    return 0;
}
