#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# D05, R09: what passes through Brig's own processes does not stay in them. The ceilings are those of
# docs/ARCHITECTURE.md, "Memory"; sizes are small here, so growth with the size is looked at, too.

load attack
load ../flow/image-kit
load ../flow/network

ceiling_kib() { # PROGRAM: as the table has it
    local mib
    mib=$(sed -n "s/^| \`$1\` | \([0-9]*\) MiB .*/\1/p" "$BRIG_ROOT/docs/ARCHITECTURE.md")
    echo $((mib * 1024))
}

# peak_kib CMD…: the most that any process of it had resident, children and theirs included.
peak_kib() {
    "$ATTACK/measure" peak "$@" </dev/null >/dev/null && cat peak
}

output_peak() { peak_kib "$BRIG" sandbox exec --quiet -- head -c "$1" /dev/zero; }

@test "output passes through: a hundred times as much takes no more memory" {
    little=$(output_peak 3M)
    much=$(output_peak 300M)
    [ "$much" -le "$(ceiling_kib brig)" ]
    [ $((much - little)) -le 2048 ]
}

layer_of() { # NAME MIB: an image of one layer of so many bytes that do not compress
    mkdir -p "$1.tree"
    head -c "$2M" /dev/urandom >"$1.tree/file"
    layer_tar "$1.tree" "$1.tar"
    layout_new "$1"
    layout_add "$1" "$1.tar" gzip
    layout_finish "$1" "$1" >/dev/null
}

@test "an image passes through: a layer of any size takes no more memory" {
    need jq tar gzip node
    layer_of small 1
    layer_of large 96
    for name in small large; do
        (cd "$WORK" && exec node "$BRIG_ROOT/tests/flow/bad-registry.mjs" "$WORK/$name") >"$name.out" 2>&1 3>&- &
        server=$!
        eventually 10 grep -q port "$name.out"
        declare "$name=$(peak_kib "$BRIG" image pull "127.0.0.1:$(sed -n 's/^port //p' "$name.out")/good:latest")"
        kill "$server"
        wait "$server" || true
    done
    # shellcheck disable=SC2154 # declared in the loop
    echo "small $small KiB, large $large KiB"
    [ "$large" -le "$(ceiling_kib image)" ]
    [ $((large - small)) -le 4096 ]
}

# carry KIND BYTES: from a server in one sandbox to another, by a request to the proxy or a tunnel
carry() {
    local how=()
    [ "$1" = request ] || how=(--proxytunnel)
    in_world "$BRIG" sandbox exec --quiet --timeout 5m "$front" -- curl -sS --max-time 200 -o /dev/null -w '%{size_download}' "${how[@]}" \
        "http://back.sandbox.internal:8080/$2" </dev/null
}

# A refusal by the proxy is an answer, too: only the bytes tell that the server was reached.
arrives() { # KIND BYTES
    [ "$(carry "$1" "$2")" = "$2" ]
}

# Of egress and of its resolver, whichever had more.
egress_peak() {
    for pid in $(egress_pid); do
        sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$pid/status"
    done | sort -n | tail -n 1
}

teardown() {
    local each
    for each in ${back-} ${front-}; do
        "$BRIG" sandbox destroy "$each" >/dev/null 2>&1 || true
    done
    world_end
}

@test "traffic passes through: a hundred times as much takes no more memory" {
    need curl perl jq
    world_begin
    printf '%s\n' 'version: 1' 'network_peers: {all: {sandbox: "*", port: 8080}}' >back.yaml
    printf '%s\n' 'version: 1' 'network_policies:' '  back:' '    endpoints: [{sandbox: back, port: 8080}]' \
        '    binaries: [{path: /usr/bin/curl}]' >front.yaml
    back=$(in_world "$BRIG" sandbox create --name back --policy back.yaml --json | jq -er .sandbox_id)
    front=$(in_world "$BRIG" sandbox create --policy front.yaml --json | jq -er .sandbox_id)
    in_world "$BRIG" sandbox exec --detach "$back" -- perl -MIO::Socket::INET -e '
        my $l = IO::Socket::INET->new(Listen => 8, LocalAddr => "127.0.0.1", LocalPort => 8080) or die;
        while (my $c = $l->accept) {
            my ($n) = scalar(<$c>) =~ m{/([0-9]+)} or next;
            while (<$c>) { last if /^\r?$/ }
            print $c "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: $n\r\n\r\n";
            for (; $n > 0; $n -= 1 << 16) { print $c "x" x ($n < 1 << 16 ? $n : 1 << 16) }
        }' >/dev/null
    eventually 60 arrives request 1
    for how in request tunnel; do
        arrives "$how" 3000000
        little=$(egress_peak)
        arrives "$how" 300000000
        much=$(egress_peak)
        echo "$how: $little KiB, then $much KiB"
        [ "$much" -le "$(ceiling_kib egress)" ]
        [ $((much - little)) -le 2048 ]
    done
}
