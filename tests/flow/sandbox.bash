# SPDX-License-Identifier: Apache-2.0
# For tests that run sandboxes; loaded behind common.bash. Adds:
#
#     exec_json ARGS… -- CMD   brig sandbox exec --json into $output and $status
#     receipt 'JQ FILTER'      of the newest receipt
#     receipt_is FILTER VALUE  the same, compared
#     receipts_of KIND         how many there are
#     chain_holds [N]          the ledger verifies, with exactly N entries
#     nothing_is_left          no folder, lock or cgroup of any run
#     no_run_is_held           whatever clears up behind one whose Brig is dead is done
#     beside_box FILE          $BRIG and FILE as its box in a folder of their own; sets BRIG

# What a test waits for at most; a program that hangs is a failure, not a hung test run.
PATIENCE=60

exec_json() {
    run --separate-stderr timeout -k 5 "$PATIENCE" "$BRIG" sandbox exec --json "$@"
}

ledger() {
    sqlite3 -cmd '.timeout 5000' "$BRIG_HOME/receipts.db" "$1"
}

receipt() {
    ledger 'SELECT body FROM receipts ORDER BY seq DESC LIMIT 1' | jq -r "$1"
}

receipt_is() {
    local got
    got=$(receipt "$1") || return
    [ "$got" = "$2" ] || {
        printf 'receipt: %s is %s, should be %s\n' "$1" "$got" "$2" >&2
        return 1
    }
}

receipts_of() {
    [ -e "$BRIG_HOME/receipts.db" ] || {
        echo 0
        return
    }
    ledger "SELECT count(*) FROM receipts WHERE kind = '$1'"
}

# By Brig's own verifier, and once more by hand: no gap, no fork, every link in place.
chain_holds() {
    local report bad
    report=$("$BRIG" receipts verify --json) || {
        printf 'the ledger does not verify: %s\n' "$report" >&2
        return 1
    }
    json_is .integrity intact "$report" || return
    bad=$(ledger "SELECT count(*) FROM receipts r LEFT JOIN receipts p ON p.seq = r.seq - 1
        WHERE json_extract(r.body, '\$.prev_hash') IS NOT
            'sha256:' || iif(p.seq IS NULL, printf('%064d', 0), lower(hex(p.hash)))") || return
    [ "$bad" -eq 0 ] || {
        echo "$bad entries do not follow the one before them" >&2
        return 1
    }
    [ -z "${1-}" ] || json_is .entries "$1" "$report"
}

run_folders() {
    [ ! -d "$BRIG_HOME/runs" ] || find "$BRIG_HOME/runs" -mindepth 1
}

run_cgroups() {
    local id
    for id in $(ledger 'SELECT DISTINCT run_id FROM receipts'); do
        find /sys/fs/cgroup -name "brig-$id" 2>/dev/null || true # others' groups are closed to us
    done
}

# It holds the lock of its run while it does, and nobody else closes that meanwhile.
no_run_is_held() {
    local lock
    for lock in "$BRIG_HOME"/runs/*.lock; do
        [ ! -e "$lock" ] || flock -n "$lock" true || return 1
    done
}

nothing_is_left() {
    local left
    left=$(run_folders && run_cgroups) || return
    [ -z "$left" ] || {
        printf 'left behind:\n%s\n' "$left" >&2
        return 1
    }
}

beside_box() {
    local folder=$BATS_TEST_TMPDIR/beside
    rm -rf "$folder"
    mkdir -m 0755 "$folder"
    cp "$BRIG_BUILD/src/cmd/cli/brig" "$folder/brig"
    [ -z "$1" ] || cp "$1" "$folder/box"
    BRIG=$folder/brig
}

degraded_box() {
    local box=$BRIG_BUILD/tests/flow/degraded/box-without-$1
    [ -x "$box" ] || skip "$box was not built"
    beside_box "$box"
}

# A mount namespace of our own, for tests that replace parts of the system. Root only.
in_private_mounts() {
    unshare --mount --propagation private sh -c "$@"
}
