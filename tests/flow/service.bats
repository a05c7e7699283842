#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig serve as a service: the units are well-formed, and what they take away nobody needs.

load common
load sandbox
load kept
load serve

UNITS=$BRIG_ROOT/packaging/systemd

setup() {
    common_setup
    APART=
}

teardown() {
    local status=0
    serve_end || status=$?
    destroy_all
    [ -z "$APART" ] || rm -rf "$APART"
    return $status
}

# unit NAME: the file with the program that is tested in it.
unit() {
    sed "s,/usr/bin/brig,$BRIG," "$UNITS/$1" >"$1"
}

# setting NAME: what the unit says.
setting() {
    sed -n "s/^$1=//p" "$UNITS/brig.service"
}

@test "the units are well-formed, and open no more than is written down" {
    need systemd-analyze
    unit brig.service
    unit brig.socket
    run systemd-analyze verify --man=no ./brig.service ./brig.socket
    status_is 0
    [[ $output != *brig.s* ]]
    run systemd-analyze security --offline=true --threshold=45 ./brig.service
    status_is 0
    mkdir brig.service.d
    cp "$UNITS/as-root.conf" brig.service.d/
    run systemd-analyze verify --man=no ./brig.service ./brig.socket
    status_is 0
}

@test "each line that confines is explained, and so is each that cannot be" {
    while IFS='=' read -r name _; do
        grep -q "\`$name=\|\`$name\`" "$BRIG_ROOT/docs/service.md" || {
            echo "docs/service.md does not say why $name is there" >&2
            return 1
        }
    done < <(sed -n '/^Delegate=/,/^\[Install/p' "$UNITS/brig.service" | grep -E '^[A-Z][A-Za-z]+=' | grep -vE '^(AmbientCapabilities|SystemCallErrorNumber)=')
    for name in RestrictNamespaces ProtectHostname ProtectKernelTunables ProtectControlGroups MemoryDenyWriteExecute; do
        grep -q "\`$name=" "$BRIG_ROOT/docs/service.md"
        [ -z "$(setting "$name")" ]
    done
}

@test "the units are installed where systemd looks, with the program's own place in them" {
    need meson
    [ -w "$BRIG_BUILD/meson-info" ] || skip "needs the build directory itself"
    meson install -C "$BRIG_BUILD" --no-rebuild --destdir "$WORK/dest" --tags systemd >/dev/null
    find dest -type f | sed 's,^dest,,' | sort >files
    prefix=$(meson introspect "$BRIG_BUILD" --buildoptions | jq -r '.[] | select(.name == "prefix").value')
    for file in lib/systemd/system/brig.service lib/systemd/system/brig.socket lib/systemd/system/brig-sweep.timer \
        lib/systemd/system/brig-sweep.service lib/sysusers.d/brig.conf lib/tmpfiles.d/brig.conf share/doc/brig/as-root.conf; do
        grep -qx "$prefix/$file" files
    done
    grep -qx "ExecStart=$prefix/bin/brig serve" "dest$prefix/lib/systemd/system/brig.service"
}

# confined COMMAND…: under what brig.service lays around it, as far as that needs no systemd: no new privileges, no
# capability to be had, its system calls and address families. Becomes it.
confined() {
    export ASAN_OPTIONS=detect_leaks=0 # looks with ptrace, which is refused
    # shellcheck disable=SC2016 # the words are perl's
    exec setpriv --no-new-privs --inh-caps=-all "$@" perl -e '
        my %number = map { /^#define __NR_(\S+)\s+(\d+)/ ? ($1 => $2) : () } do { open my $h, "<", glob "/usr/include/*/asm/unistd_64.h" or die "no header"; <$h> };
        my @refused = grep { defined } @number{split " ", shift @ARGV};
        my @code = ([0x20, 0, 0, 0], map { [0x15, 0, 1, $_], [6, 0, 0, 0x50001] } @refused);
        push @code, [0x15, 0, 6, $number{socket}], [0x20, 0, 0, 16], (map { [0x15, 5 - $_->[1], 0, $_->[0]] } [1, 1], [2, 2], [10, 3]), [0x15, 1, 0, 16], [6, 0, 0, 0x50061], [6, 0, 0, 0x7fff0000];
        my $filter = join "", map { pack "SCCL", @$_ } @code;
        syscall($number{seccomp}, 1, 0, pack "S x6 P", scalar @code, $filter) == 0 or die "seccomp: $!";
        exec @ARGV or die "exec: $!"' "$REFUSED" "${WITHIN[@]}"
}

# What the groups of the unit have in them, as systemd on this machine tells.
groups_of_filter() {
    local group
    for group in $(setting SystemCallFilter | tr -d '~'); do
        systemd-analyze syscall-filter "$group" | sed -n 's/^ \{4\}\([a-z0-9_]*\)$/\1/p'
    done | tr '\n' ' '
}

# works: what a client of the daemon wants of it.
works() {
    TOKEN=$1
    post /v1/runs '{"command":["sh","-c","echo here; hostname; cat /proc/self/status | grep -c Seccomp"],"sandbox":{"limits":{"pids":50}}}'
    [ "$http" = 200 ] || {
        echo "$output" >&2
        cat "$WORK/serve.err" >&2
        return 1
    }
    json_is .exit_code 0
    [[ $output == *here* ]]
    post /v1/sandboxes '{"name":"one"}'
    [ "$http" = 201 ]
    post /v1/sandboxes/one/exec '{"command":["sh","-c","echo kept >/sandbox/tmp/f; cat /sandbox/tmp/f"]}'
    json_is .stdout kept
    api -X DELETE /v1/sandboxes/one
    [ "$http" = 200 ]
    post /v1/receipts/verify ''
    json_is .ok true
}

# listens FILE: until the daemon that writes there does.
listens() {
    eventually 10 grep -q 'listening on unix:' "$1" || {
        cat "$1" "$WORK/serve.err" >&2
        return 1
    }
    PORT=$(sed -n 's/.*listening on http:.*:\([0-9]*\)$/\1/p' "$1")
}

@test "the service's user needs nothing that the unit takes away" {
    need systemd-analyze setpriv perl curl
    [ "$(uname -m)" = x86_64 ] || skip "the filter is written for x86_64"
    ls /usr/include/*/asm/unistd_64.h >/dev/null 2>&1 || skip "no kernel headers"
    REFUSED=$(groups_of_filter)
    [[ $REFUSED == *ptrace* ]]
    if is_root; then
        # Somewhere the user can reach; all else is read-only, as ProtectSystem=strict has it.
        APART=$(mktemp -d /tmp/brig-service-XXXXXX)
        chmod 0755 "$APART"
        for name in box daemon image keeper layers; do
            cp "$BRIG_BUILD/src/cmd/$name/$name" "$APART/"
        done
        cp "$BRIG_BUILD/src/cmd/cli/brig" "$APART/"
        install -d -m 0700 -o 65534 -g 65534 "$APART/state"
        export BRIG_HOME=$APART/state BRIG=$APART/brig REFUSED
        export -f confined
        as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
        unshare --mount --propagation private bash -c '
            mount --bind "$BRIG_HOME" "$BRIG_HOME"
            while read -r _ _ _ _ at _; do
                case $at in /proc* | /sys* | /dev* | "$BRIG_HOME") ;; *) mount -o remount,bind,ro "$at" 2>/dev/null || true ;; esac
            done </proc/self/mountinfo
            ! touch "$BRIG_HOME/../not-here" 2>/dev/null || exit 99
            mount -t tmpfs -o mode=0 none /root
            cd /
            WITHIN=("$BRIG" serve --listen 127.0.0.1:0 --socket "$BRIG_HOME/s")
            confined --bounding-set=-all --reuid=65534 --regid=65534 --clear-groups' >"$WORK/serve.out" 2>"$WORK/serve.err" </dev/null 3>&- &
        DAEMON=$!
    else
        as_user=()
        WITHIN=("$BRIG" serve --listen 127.0.0.1:0 --socket "$WORK/s")
        confined >"$WORK/serve.out" 2>"$WORK/serve.err" </dev/null 3>&- &
        DAEMON=$!
    fi
    listens "$WORK/serve.out"
    works "$("${as_user[@]}" "$BRIG" token create 2>/dev/null)"
}

@test "it tells its manager when it is ready and when it ends" {
    need perl
    perl -MSocket -e '
        socket(my $s, AF_UNIX, SOCK_DGRAM, 0) or die; bind($s, pack_sockaddr_un("notify")) or die;
        open my $on, ">", "notify.on"; close $on; alarm 300;
        for (1, 2) { recv $s, my $text, 512, 0; print "$text\n"; $| = 1 }' >told 3>&- &
    manager=$!
    eventually 10 test -e notify.on
    NOTIFY_SOCKET=$WORK/notify serve
    eventually 5 grep -qx READY=1 told
    serve_end
    wait "$manager"
    grep -qx STOPPING=1 told
}

@test "as root it needs no capability but those it is left" {
    is_root || skip "needs root"
    need setpriv perl curl
    keep=$(sed -n 's/^CapabilityBoundingSet=//p' "$UNITS/as-root.conf" | tr 'A-Z' 'a-z' | sed 's/cap_/+/g; s/ /,/g')
    setpriv --no-new-privs --inh-caps=-all --bounding-set="-all,$keep" "$BRIG" serve --listen 127.0.0.1:0 --socket "$WORK/s" \
        >"$WORK/serve.out" 2>"$WORK/serve.err" </dev/null 3>&- &
    DAEMON=$!
    listens "$WORK/serve.out"
    works "$(token)"
}
