#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# E10: ten thousand sandboxes made, used and ended in every way leave the machine, the state
# directory and the process that asked for them as they were. Each kind of thing that is counted
# is also left behind on purpose, and must be found.

load attack
load inventory

setup() {
    common_setup
    export TMPDIR=$BATS_TEST_TMPDIR/tmp
    mkdir -p "$TMPDIR" "$BRIG_HOME/runs" "$BRIG_HOME/boxes"
    chmod 755 "$BATS_TEST_TMPDIR"
    mkdir beside
    cp "$ATTACK/churn" "$BRIG_BUILD/src/cmd/box/box" beside/
    export -f inventory inventory_processes inventory_namespaces inventory_cgroups grep_state
}

# around CMD…: into before and after what there is in namespaces of their own.
around() {
    in_own_namespaces bash -c 'inventory before; "$@"; status=$?; inventory after; exit $status' - "$@"
}

churn() {
    around beside/churn "$BRIG_HOME" "$@" >said 2>&1 || {
        head -n 20 said
        return 1
    }
}

# workers_kept_nothing: as much in the end as after they had warmed up; memory within 32 KiB.
workers_kept_nothing() {
    awk '/^worker/ { n++; for (i = 3; i < NF; i++) sub(/,$/, "", $(i + 1)) }
        /^worker/ && ($5 + 0 > $4 + 0 || $8 + 0 > $7 + 0 || $12 + 0 > $11 + most) { print; bad++ }
        END { exit bad || n != 8 }' most=32768 said
}

nothing_more() {
    diff before after
}

@test "what is there before and after thousands of sandboxes" {
    if is_root; then
        cycles=10240 # whole rounds: a worker is looked at after the same kind of cycle
        kernel_objects >kernel-before
    else
        cycles=1024
    fi
    churn $cycles 8
    nothing_more
    workers_kept_nothing
    run -0 "$BRIG" receipts verify --json
    json_is .integrity intact
    json_is .open_runs 0
    each_run_ended_once
    # Every cycle had a sandbox of its own, with the 64 of every worker before it counts.
    [ "$(sqlite3 "$BRIG_HOME/receipts.db" "SELECT count(DISTINCT json_extract(body, '\$.sandbox_id'))
        FROM receipts")" -eq $((cycles + 8 * 64)) ]
    if is_root; then
        # What the kernel puts off, it does soon.
        eventually 20 kernel_has_no_more
    fi
}

kernel_has_no_more() {
    kernel_objects >kernel-after
    not grown $((cycles / 2)) kernel-before kernel-after
}

# ---- each of them is found ----

# leaves LINE SCRIPT: the script leaves behind what the inventory shows so.
leaves() {
    around bash -c "$2"
    diff before after | grep -qE "^> $1" || {
        printf 'not found: %s\n' "$1" >&2
        diff before after >&2
        return 1
    }
}

# until_there PATTERN FILE: for scripts below; what they start has a moment to begin.
until_there() {
    local tries
    for ((tries = 0; tries < 200; tries++)); do
        ! grep -q "$1" "$2" 2>/dev/null || return 0
        sleep 0.05
    done
    return 1
}

@test "control: whatever is left behind is found" {
    "$BRIG" sandbox exec --quiet -- true </dev/null
    export -f until_there
    leaves 'process sleep 300' 'sleep 300 & until_there ^sleep /proc/$!/comm'
    leaves 'namespace net:' 'unshare --user --net sleep 300 & until_there ^sleep /proc/$!/comm'
    leaves 'socket @left' 'perl -MSocket -e '\''socket S, AF_UNIX, SOCK_STREAM, 0; bind S, pack "Sa*", 1, "\0left";
        listen S, 1; sleep 300'\'' & until_there left /proc/net/unix'
    leaves "file $BRIG_HOME/runs/left" 'touch "$BRIG_HOME/runs/left"'
    leaves "file $TMPDIR/left" 'touch "$TMPDIR/left"'
    nothing=$(around true && diff before after)
    [ -z "$nothing" ]
}

@test "control: a mount that is left behind is found" {
    is_root || skip "an ordinary user can mount nothing there"
    mkdir at
    leaves "mount $PWD/at" 'mount -t tmpfs none at'
}

@test "control: a cgroup that is left behind is found" {
    is_root || skip "an ordinary user has no cgroups here"
    "$BRIG" sandbox exec --quiet -- true </dev/null
    group=$(find /sys/fs/cgroup -maxdepth 2 -type d -name pids | head -n 1)
    group=${group:-/sys/fs/cgroup}/brig-$(receipts '.[0].run_id')
    leaves "cgroup ${group##*-}" "mkdir '$group'" || failed=1
    rmdir "$group"
    [ -z "${failed-}" ]
}

@test "control: descriptors and memory that a worker loses are found" {
    churn 128 8
    workers_kept_nothing
    churn 128 8 descriptor
    run ! workers_kept_nothing
    churn 128 8 memory
    run ! workers_kept_nothing
}

@test "control: mounts that the kernel still has are found" {
    is_root || skip "only root may look at the kernel's caches"
    kernel_objects >kernel-before
    grep -q ^mnt_cache kernel-before || skip "mounts share a cache here"
    mkdir at
    unshare --mount perl -e 'my ($at, $type) = ("at", "none");
        for (1 .. 3000) { syscall 165, $at, $at, $type, 4096, 0 and last }
        system "cat /proc/slabinfo >slabs"'
    awk '$1 == "mnt_cache" { print $1, $2 }' slabs >kernel-after
    grown 1500 kernel-before kernel-after
}
