/* SPDX-License-Identifier: Apache-2.0 */
/* The section network_peers: which other sandboxes may come in, and to which ports. */
#include "flow/decide/load.h"

#include "lib/egress/rules.h"

static int load_peer_port(struct load *load, const struct json *value)
{
    int64_t port;

    if (load_int(load, value, 1, 65535, "a port", &port) < 0)
        return -1;
    if (net_port_is_own((uint16_t)port))
        return load_bad(load, value->mark,
                        "port %d is a listener of egress itself and cannot be opened to other "
                        "sandboxes",
                        (int)port);
    return 0;
}

static int load_peer_ports(struct load *load, const struct json *map, const struct json *port,
                           const struct json *ports)
{
    if (!port == !ports)
        return load_bad(load, map->mark, "a peer needs one of \"port\" and \"ports\"");
    if (port)
        return load_peer_port(load, port);
    if (ports->n == 0)
        return load_bad(load, ports->mark, "\"ports\" must not be empty");
    if (load_count(load, ports, "\"ports\"") < 0)
        return -1;
    json_each(item, ports)
    {
        if (load_peer_port(load, item) < 0)
            return -1;
    }
    return 0;
}

static int load_peer(struct load *load, const struct json *map)
{
    struct peer {
        const struct json *sandbox;
        const struct json *port;
        const struct json *ports;
    } in = {0};
    static const struct field fields[] = {
        {"sandbox", offsetof(struct peer, sandbox), TAKES_TEXT,   true },
        {"port",    offsetof(struct peer, port),    TAKES_NUMBER, false},
        {"ports",   offsetof(struct peer, ports),   TAKES_LIST,   false},
    };
    const char *key = shown(load, map->key);

    if (map->key.n == 0 || map->key.n > NETWORK_KEY_BYTES_MAX)
        return load_bad(load, map->key_mark, "the name of a peer has 1 to %d bytes",
                        NETWORK_KEY_BYTES_MAX);
    if (load_kind(load, map, TAKES_MAP, arena_printf(load->mem, "peer \"%s\"", key)) < 0 ||
        load_map(load, map, fields, COUNT(fields), &in) < 0 ||
        load_sandbox_name(load, in.sandbox) < 0)
        return -1;
    return load_peer_ports(load, map, in.port, in.ports);
}

int load_peers(struct load *load, const struct json *section)
{
    if (load_count(load, section, "network_peers") < 0)
        return -1;
    json_each(item, section)
    {
        if (load_peer(load, item) < 0)
            return -1;
    }
    return 0;
}
