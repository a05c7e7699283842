# SPDX-License-Identifier: Apache-2.0
# For tests of sandboxes with a network; loaded behind sandbox.bash.
#
# A world of the test's own: a network namespace in which brig and egress run, and another one with
# servers, joined by a pair of interfaces. Names are in an /etc/hosts of that world. Nothing of it
# reaches the machine, and it works for an ordinary user. public.test has an address that is not
# private, so rules for it need no allowed_ips.
#
#     world_begin     sets $world (a pid) and starts the server at 10.77.0.2
#     world_end
#     in_world CMD…   runs there, with the rights of whoever runs the test
#     served          what the server was asked, one line a request
#     policy_of YAML  writes policy.yaml with these lines below network_policies

WORLD_SERVER=10.77.0.2

world_begin() {
    local n
    need ip unshare nsenter perl curl
    mkdir -p "$BATS_TEST_TMPDIR/world"
    printf '127.0.0.1 localhost\n%s allowed.test other.test third.test\n11.77.0.2 public.test\n' "$WORLD_SERVER" \
        >"$BATS_TEST_TMPDIR/world/hosts"
    local rights=(--net --mount)
    is_root || rights+=(--user --map-current-user --keep-caps)
    unshare "${rights[@]}" --propagation private bash "$BRIG_ROOT/tests/flow/network-world" \
        "$BATS_TEST_TMPDIR/world" "$BRIG_ROOT" "$WORLD_SERVER" \
        >"$BATS_TEST_TMPDIR/world/log" 2>&1 3>&- </dev/null &
    world_job=$!
    disown "$world_job"
    for n in $(seq 1500); do
        [ ! -s "$BATS_TEST_TMPDIR/world/pid" ] || break
        kill -0 "$world_job" 2>/dev/null || break
        sleep 0.02
    done
    [ -s "$BATS_TEST_TMPDIR/world/pid" ] || {
        cat "$BATS_TEST_TMPDIR/world/log" >&2
        return 1
    }
    world=$(cat "$BATS_TEST_TMPDIR/world/pid")
}

world_end() {
    local name pid
    for name in server perl; do
        pid=$(cat "$BATS_TEST_TMPDIR/world/$name.pid" 2>/dev/null) || continue
        kill -9 "$pid" 2>/dev/null || true
    done
    [ -z "${world_job-}" ] || kill -9 "$world_job" 2>/dev/null || true
}

in_world() {
    local rights=(--net --mount)
    is_root || rights+=(--user --preserve-credentials)
    nsenter -t "$world" "${rights[@]}" --wd="$PWD" -- "$@"
}

# world_begin_as FILE CMD…: the same in the background; its pid is in FILE and $job
world_begin_as() {
    local file=$1 n
    shift
    in_world sh -c 'echo $$ >"$1.new"; mv "$1.new" "$1"; shift; exec "$@"' sh "$file" "$@" \
        >"$file.out" 2>&1 3>&- </dev/null &
    disown $!
    for n in $(seq 1500); do
        [ ! -s "$file" ] || break
        sleep 0.02
    done
    job=$(cat "$file")
}

# world_json ARGS… -- CMD: brig sandbox exec --json in the world, into $output and $status
world_json() {
    run --separate-stderr in_world timeout -k 5 "$PATIENCE" "$BRIG" sandbox exec --json "$@"
}

served() {
    cat "$BATS_TEST_TMPDIR/world/served"
}

policy_of() {
    {
        printf 'version: 1\nnetwork_policies:\n'
        printf '%s\n' "$@"
    } >policy.yaml
}

# allow NAME HOST [KEYS]: an entry for curl, on port 80
allow() {
    printf '  %s:\n    endpoints: [{host: %s, port: 80, allowed_ips: [10.77.0.0/24]%s}]\n    binaries: [{path: /usr/bin/curl}]\n' \
        "$1" "$2" "${3:+, $3}"
}

no_egress() {
    [ -z "$(egress_pid)" ]
}

egress_pid() {
    local pid
    for pid in $(pgrep -x egress); do
        [ "$(readlink "/proc/$pid/ns/net")" != "$(readlink "/proc/$world/ns/net")" ] || echo "$pid"
    done
}
