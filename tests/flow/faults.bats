#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What is broken around Brig: its state, its key, its ledger, its box, the files it is given. Each
# time: a sentence, a documented status, nothing run that is not recorded.

load common
load sandbox

# A first run, so that there is a ledger; and a folder in which a run would leave a trace.
setup() {
    common_setup
    mkdir out
    brig sandbox exec --quiet --provider mock -- true >/dev/null </dev/null
}

teardown() {
    chmod -R u+w "$BRIG_HOME" 2>/dev/null || true
}

attempt() {
    run timeout -k 5 "$PATIENCE" "$BRIG" sandbox exec --mount "$PWD/out:/workspace:rw" "$@" -- \
        touch /workspace/ran </dev/null
}

nothing_ran() {
    [ ! -e out/ran ] || {
        echo "the command ran" >&2
        return 1
    }
}

@test "control: on sound ground it runs" {
    attempt
    status_is 0
    [ -e out/ran ]
    chain_holds 4
}

# ---- the state directory ----

@test "a state directory that cannot be written" {
    is_root && skip "root may write anywhere; see the next test"
    rmdir "$BRIG_HOME/runs"
    chmod 0500 "$BRIG_HOME" # the ledger in it can be: a denial, and recorded
    attempt
    status_is 77
    says "SANDBOX_FAILED: creating $BRIG_HOME/runs: Permission denied"
    nothing_ran
    chmod 0700 "$BRIG_HOME"
    attempt
    status_is 0
    mkdir -m 0500 fresh
    rm out/ran
    BRIG_HOME=$PWD/fresh attempt
    [ "$status" -ne 0 ]
    says "$PWD/fresh"
    nothing_ran
}

@test "a state directory on a read-only file system" {
    is_root || skip "needs root"
    run in_private_mounts "mount --bind '$BRIG_HOME' '$BRIG_HOME' && mount -o remount,bind,ro '$BRIG_HOME' &&
        timeout -k 5 30 '$BRIG' sandbox exec --mount '$PWD/out:/workspace:rw' -- touch /workspace/ran </dev/null"
    status_is 69
    says "$BRIG_HOME"
    nothing_ran
    attempt
    status_is 0
}

@test "a state directory that cannot be made" {
    : >file
    BRIG_HOME=$PWD/file/state attempt
    status_is 71
    says "making the state directory (BRIG_HOME names another)"
    nothing_ran
}

@test "a state directory others may write to" {
    chmod 0777 "$BRIG_HOME"
    attempt
    status_is 77
    says "others may write to the state directory"
    nothing_ran
}

@test "a state directory of somebody else" {
    is_root || skip "needs root"
    chown 12345 "$BRIG_HOME"
    attempt
    status_is 77
    says "belongs to user 12345, not to you (0)"
    nothing_ran
}

# in_full_state COMMAND: with $BRIG_HOME on a file system that has next to no room left.
in_full_state() {
    in_private_mounts "cp -a '$BRIG_HOME' '$PWD/copy' && mount -t tmpfs -o size=$1,mode=0700 none '$BRIG_HOME' &&
        cp -a '$PWD/copy/.' '$BRIG_HOME/' && { cat /dev/zero >'$BRIG_HOME/filler' 2>/dev/null; } ; $2"
}

@test "no receipt, no effect: a full disk" {
    is_root || skip "needs root"
    run in_full_state 4m "'$BRIG' sandbox exec --mount '$PWD/out:/workspace:rw' -- touch /workspace/ran </dev/null
        echo status \$?; rm '$BRIG_HOME/filler'; '$BRIG' receipts verify;
        '$BRIG' sandbox exec --quiet -- echo again </dev/null; echo status \$?"
    says "status 75"
    says "not running what cannot be recorded"
    says "integrity intact"
    says "again
status 0"
    nothing_ran
}

@test "a disk that fills up during the run still takes its end" {
    is_root || skip "needs root"
    in_private_mounts "cp -a '$BRIG_HOME' copy && mount -t tmpfs -o size=6m,mode=0700 none '$BRIG_HOME' && cp -a copy/. '$BRIG_HOME/'
        '$BRIG' sandbox exec --timeout 5m --mount '$PWD/out:/workspace:rw' -- sh -c 'touch /workspace/began
            until [ -e /workspace/full ]; do sleep 0.05; done' </dev/null >log 2>&1 &
        n=0; until [ -e out/began ] || [ \$((n += 1)) -gt 600 ]; do sleep 0.05; done
        cat /dev/zero >'$BRIG_HOME/filler' 2>/dev/null; touch out/full
        wait \$!; echo status \$? >>log
        rm '$BRIG_HOME/filler'; '$BRIG' receipts verify --json >report"
    output=$(cat log)
    says "status 0"
    json_is .integrity intact "$(cat report)"
    json_is .open_runs 0 "$(cat report)"
}

# ---- the key ----

@test "a key that others can read" {
    chmod 0644 "$BRIG_HOME/receipts.key"
    attempt
    status_is 76
    says "receipts.key"
    says "can be reached by others (mode 0644)"
    nothing_ran
    chmod 0600 "$BRIG_HOME/receipts.key"
    attempt
    status_is 0
}

@test "a key that cannot be read" {
    is_root && skip "root reads everything"
    chmod 0000 "$BRIG_HOME/receipts.key"
    attempt
    [ "$status" -ne 0 ]
    says "receipts.key"
    says "Permission denied"
    nothing_ran
}

@test "a key that is no key" {
    for content in "" "short" "$(head -c 4000 /dev/zero | tr '\0' x)"; do
        printf %s "$content" >"$BRIG_HOME/receipts.key"
        attempt
        status_is 76
        says "receipts.key"
        nothing_ran
    done
}

@test "a key that is a link, a folder or a pipe" {
    mv "$BRIG_HOME/receipts.key" elsewhere
    ln -s "$PWD/elsewhere" "$BRIG_HOME/receipts.key"
    attempt
    [ "$status" -ne 0 ]
    says "receipts.key"
    nothing_ran
    rm "$BRIG_HOME/receipts.key"
    mkdir "$BRIG_HOME/receipts.key"
    attempt
    [ "$status" -ne 0 ]
    nothing_ran
    rmdir "$BRIG_HOME/receipts.key"
    mkfifo -m 0600 "$BRIG_HOME/receipts.key"
    attempt
    [ "$status" -ne 0 ]
    [ "$status" -ne 124 ]
    nothing_ran
}

@test "another key does not go on with the chain unnoticed" {
    rm "$BRIG_HOME/receipts.key"
    attempt
    if [ "$status" -eq 0 ]; then
        run brig receipts verify
        [ "$status" -ne 0 ]
    else
        says "key"
        nothing_ran
    fi
}

# ---- the ledger ----

@test "a ledger that is damaged" {
    rm -f "$BRIG_HOME"/receipts.db-*
    printf 'x%.0s' $(seq 4096) | dd of="$BRIG_HOME/receipts.db" bs=1 conv=notrunc status=none
    attempt
    status_is 76
    says "receipts.db"
    nothing_ran
}

@test "a ledger whose pages are damaged behind a sound head" {
    for i in $(seq 30); do brig sandbox exec --quiet --provider mock -- "$i" >/dev/null </dev/null; done
    ledger 'PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null
    size=$(stat -c %s "$BRIG_HOME/receipts.db")
    dd if=/dev/urandom of="$BRIG_HOME/receipts.db" bs=4096 seek=1 count=$((size / 4096 - 1)) conv=notrunc status=none
    attempt
    status_is 76
    nothing_ran
    run brig receipts verify
    [ "$status" -ne 0 ]
}

@test "a ledger whose last entry was changed" {
    ledger "UPDATE receipts SET body = replace(body, 'ALLOW', 'DENY') WHERE seq = (SELECT max(seq) FROM receipts)"
    attempt
    status_is 76
    says "has been changed"
    nothing_ran
}

@test "a file that is no ledger" {
    rm -f "$BRIG_HOME"/receipts.db-*
    echo "dear diary" >"$BRIG_HOME/receipts.db"
    attempt
    status_is 76
    says "receipts.db"
    nothing_ran
    [ "$(cat "$BRIG_HOME/receipts.db")" = "dear diary" ]
}

@test "a database of another program" {
    rm -f "$BRIG_HOME"/receipts.db*
    sqlite3 "$BRIG_HOME/receipts.db" 'CREATE TABLE theirs (x); PRAGMA application_id = 7; PRAGMA user_version = 1'
    attempt
    status_is 76
    nothing_ran
    [ "$(ledger 'SELECT count(*) FROM theirs')" -eq 0 ]
}

@test "a ledger of a newer version" {
    ledger 'PRAGMA user_version = 99'
    attempt
    status_is 69
    says "newer"
    nothing_ran
    ledger 'PRAGMA user_version = 1'
    attempt
    status_is 0
}

@test "a ledger that somebody holds locked: refused in time" {
    coproc holder { sqlite3 "$BRIG_HOME/receipts.db"; }
    echo "BEGIN EXCLUSIVE; SELECT 'held';" >&"${holder[1]}"
    read -r line <&"${holder[0]}"
    [ "$line" = held ]
    attempt # without an end of its own it has that of our patience
    exec {holder[1]}>&- # and that is its end, too
    status_is 75
    nothing_ran
}

@test "a ledger nobody may read" {
    is_root && skip "root reads everything"
    chmod 0000 "$BRIG_HOME/receipts.db"
    attempt
    status_is 69
    nothing_ran
}

# ---- the box ----

box_is_refused() {
    attempt
    status_is 77
    says "DENY PROVIDER_UNAVAILABLE: "
    says "$1"
    nothing_ran
    receipt_is .kind denial
}

@test "a box that is missing" {
    beside_box ""
    box_is_refused 'the program "box" is not beside'
}

@test "a box that is not executable" {
    beside_box "$BRIG_BUILD/src/cmd/box/box"
    chmod 0644 "${BRIG%/*}/box"
    box_is_refused 'the program "box" is not beside'
}

@test "a box that others can change" {
    beside_box "$BRIG_BUILD/src/cmd/box/box"
    chmod 0757 "${BRIG%/*}/box"
    box_is_refused "can be changed by others"
    chmod 0755 "${BRIG%/*}/box"
    attempt
    status_is 0
}

@test "a box that belongs to somebody else" {
    is_root || skip "needs root"
    beside_box "$BRIG_BUILD/src/cmd/box/box"
    chown 12345 "${BRIG%/*}/box"
    box_is_refused "can be changed by others"
}

@test "box started by hand says what it is" {
    run "$BRIG_BUILD/src/cmd/box/box" </dev/null
    status_is 64
    says "box is started by brig, not by hand"
}

# ---- files people write ----

@test "a policy that is no YAML shows the place" {
    printf 'version: 1\ncommands: [\n' >policy.yaml
    attempt --policy policy.yaml
    status_is 64
    says "policy.yaml: line "
    says "^"
    nothing_ran
    printf 'version: 1\ndefault: allow\ndefault: deny\n' >policy.yaml
    attempt --policy policy.yaml
    status_is 64
    says "    3 | default: deny"
    says "      | ^"
    nothing_ran
}

@test "a profile that is no YAML shows the place" {
    printf 'version: 1\nlimits: {memory: 1G\n' >profile.yaml
    attempt --profile profile.yaml
    status_is 64
    says "profile.yaml: line "
    says "^"
    nothing_ran
    printf 'version: 1\nlimits:\n  memory: 1G\n  memory: 2G\n' >profile.yaml
    attempt --profile profile.yaml
    status_is 64
    says "    4 |   memory: 2G"
    nothing_ran
}

@test "files that are none, too large or never end" {
    attempt --policy "$PWD"
    [ "$status" -ne 0 ]
    nothing_ran
    head -c 1000000 /dev/zero | tr '\0' '#' >big.yaml
    attempt --policy big.yaml
    [ "$status" -ne 0 ]
    nothing_ran
    attempt --profile big.yaml
    [ "$status" -ne 0 ]
    nothing_ran
    attempt --policy /dev/zero
    [ "$status" -ne 0 ]
    nothing_ran
}

@test "a control the policy asks for and we cannot hold is refused" {
    printf '%s\n' 'version: 1' 'default: allow' 'network_policies:' '  api:' '    endpoints:' \
        '      - {host: example.org, port: 443, protocol: sql, rules: [{allow: {command: SELECT}}]}' '    binaries:' '      - {path: /usr/bin/curl}' >policy.yaml
    attempt --policy policy.yaml
    status_is 77
    says "POLICY_NOT_ENFORCEABLE"
    nothing_ran
    receipt_is .reason_code POLICY_NOT_ENFORCEABLE
    attempt --network policy
    status_is 77
    nothing_ran
}

# ---- a terminal is not steered ----

@test "what others wrote reaches the terminal escaped" {
    run brig sandbox exec --provider $'\033[2J\033]0;x\007' -- true </dev/null
    status_is 77
    [[ $output != *$'\033'* ]]
    run brig sandbox exec --workdir $'/\033[2J' -- true </dev/null
    [[ $output != *$'\033'* ]]
}
