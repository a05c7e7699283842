# SPDX-License-Identifier: Apache-2.0
# Servers for clients in real sandboxes, in the world of ../flow/network.bash; loaded behind it and
# behind egress-tls.bash.
#
#     servers_begin       starts egress-client-servers.py where the world's servers are
#     servers_end
#     policy_for BINARY…  policy.yaml: each of these may GET /ok/** and /hello of public.test
#     client CMD…         in a sandbox under policy.yaml; what it says into $output
#     asked               what the servers were asked
#
# public.test is the name of both servers; $DIR is theirs.

PATH=$PATH:/usr/sbin # where Debian has servers, whoever starts them

servers_begin() {
    local tool
    for tool in openssl nghttpd nghttp node git python3 curl; do
        command -v "$tool" >/dev/null || {
            echo "$tool is not installed" >&2
            return 1
        }
    done
    DIR=$BATS_TEST_TMPDIR/servers
    mkdir -p "$DIR/git"
    root root
    issue good DNS:public.test root 2
    in_servers_net python3 "$BATS_TEST_DIRNAME/egress-client-servers.py" "$DIR" \
        >"$DIR/servers.out" 2>&1 3>&- </dev/null &
    servers_job=$!
    disown "$servers_job"
    eventually 60 test -e "$DIR/ready" || {
        cat "$DIR/servers.out" >&2
        return 1
    }
    export SSL_CERT_FILE=$DIR/root.crt # egress has it of whoever starts it
}

servers_end() {
    [ -z "${servers_job-}" ] || kill -9 "$servers_job" 2>/dev/null || true
}

in_servers_net() {
    local there rights=(--net)
    there=$(cat "$BATS_TEST_TMPDIR/world/server.pid")
    is_root || rights+=(--user --preserve-credentials)
    exec nsenter -t "$there" "${rights[@]}" -- "$@"
}

policy_for() {
    local path binaries=
    for path in "$@"; do binaries+="{path: $path, interpreter: true}, "; done
    policy_of '  clients:' "    binaries: [${binaries%, }]" '    endpoints:' \
        '      - {host: public.test, port: 8443, protocol: rest, rules: [{allow: {method: GET, path: "/ok/**"}}]}' \
        '      - {host: public.test, port: 9443, protocol: rest, rules: [{allow: {method: GET, path: /hello}}]}'
}

client() {
    run in_world timeout -k 5 "$PATIENCE" "$BRIG" sandbox exec --quiet --policy policy.yaml -- "$@"
}

asked() {
    cat "$DIR/asked"
}
