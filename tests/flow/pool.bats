#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Sandboxes built ahead: taken by those who ask for exactly that, once, and looked at again.

load common
load sandbox
load kept
load pool

setup() {
    common_setup
}

teardown() {
    empty_pools
}

from_pool() {
    grep -qxF "$1" <<<"$before"
}

@test "what is in the pool is nobody's sandbox yet" {
    fill 2
    [ "$(pooled_n)" -eq 2 ]
    run brig sandbox list --json
    json_is '.sandboxes | length' 0
    id=$(pooled | head -n 1)
    for verb in show pause destroy explain; do
        run brig sandbox $verb "$id"
        status_is 66
    done
    run brig sandbox exec "$id" -- true </dev/null
    status_is 66
    [ "$(pooled_n)" -eq 2 ]
    [ "$(receipts_of intent)" -eq 2 ]
    receipt_is .action prepare
    each_run_ended
}

@test "a command takes one, runs in it, and it is gone; the pool is filled up behind it" {
    fill 2
    before=$(pooled)
    exec_json -- sh -c 'echo out; echo err >&2; exit 3' </dev/null
    status_is 3
    json_is '.stdout | rtrimstr("\n")' out
    json_is '.stderr | rtrimstr("\n")' err
    id=$(of_command .sandbox_id)
    from_pool "$id"
    command_is .outcome.exit_code 3
    [ ! -e "$BRIG_HOME/boxes/$id" ]
    [ ! -e "$BRIG_HOME/boxes/$id.lock" ]
    settled 2
    run ! grep -qxF "$id" <<<"$(pooled)"
    empty_pools
    no_sandbox_left
    each_run_ended
    chain_holds
}

@test "the contract of a command is that of one in a sandbox of its own" {
    fill 1
    for flags in '' --no-pool; do
        settled 1
        run --separate-stderr timeout -k 5 $PATIENCE "$BRIG" sandbox exec --quiet $flags -- cat <<<"through"
        status_is 0
        [ "$output" = through ]
        settled 1
        run timeout -k 5 $PATIENCE "$BRIG" sandbox exec --quiet $flags -- sh -c 'kill -9 $$' </dev/null
        status_is 137
        settled 1
        run -127 timeout -k 5 $PATIENCE "$BRIG" sandbox exec --quiet $flags -- no-such-command </dev/null
        settled 1
        run timeout -k 5 $PATIENCE "$BRIG" sandbox exec --quiet $flags --timeout 1s -- sleep 60 </dev/null
        status_is 124
        command_is .outcome.timed_out true
        settled 1
        run timeout -k 5 $PATIENCE "$BRIG" sandbox exec --quiet $flags -- sh -c 'setsid sleep 300 & echo $$' </dev/null
        status_is 0
        settled 1
        run timeout -k 5 $PATIENCE "$BRIG" sandbox exec --quiet $flags --tty -- tty </dev/null
        says /dev/pts/
        settled 1
        run timeout -k 5 $PATIENCE "$BRIG" sandbox exec --quiet $flags --disk 1M -- sh -c \
            'for part in 1 2; do head -c 1000000 /dev/zero >/tmp/$part; done; sleep 60' </dev/null
        command_is .reason_code LIMIT_DISK
    done
    settled 1
}

@test "a limit that ends a sandbox out of the pool is named" {
    fill 1 --disk 1M
    before=$(pooled)
    run timeout -k 5 $PATIENCE "$BRIG" sandbox exec --quiet --disk 1M -- sh -c \
        'for part in 1 2; do head -c 1000000 /dev/zero >/tmp/$part; done; sleep 60' </dev/null
    command_is .reason_code LIMIT_DISK
    from_pool "$(of_command .sandbox_id)"
}

@test "create is a hand-over: name, labels, time are those that were asked for" {
    fill 2 --ttl 10m
    before=$(pooled)
    make --name work --label task=demo --ttl 2h --lifetime 3h
    from_pool "$id"
    run brig sandbox show work
    json_is .name work
    json_is '.labels[0]' task=demo
    json_is .state running
    expires=$(date -u -d "$(jq -r .expires_at <<<"$output")" +%s)
    [ "$expires" -gt $(($(date +%s) + 7000)) ]
    run in_it -- echo inside </dev/null
    [ "$output" = inside ]
    run brig sandbox explain work --json
    json_is .drift false
    settled 2
    run ! grep -qxF "$id" <<<"$(pooled)"
    brig sandbox destroy work
    empty_pools
    no_sandbox_left
    each_run_ended
    chain_holds
}

@test "its idle time begins with the hand-over" {
    fill 1
    make --idle 1s
    eventually 5 ended
    eventually 3 ended_for SANDBOX_IDLE "$id"
}

ended() {
    not "$BRIG" sandbox show "$id" >/dev/null 2>&1
}

@test "only what would be built is taken" {
    fill 1 --memory 256M
    before=$(pooled)
    mkdir shared
    for flags in '' '--memory 257M' "--memory 256M --mount $PWD/shared:/mnt/shared" '--memory 256M --no-pool'; do
        make $flags
        run ! from_pool "$id"
    done
    [ "$(pooled)" = "$before" ]
    make --memory 256M --timeout 5s --env A=b
    from_pool "$id"
    run in_it -- sh -c 'echo $A' </dev/null
    [ "$output" = b ]
}

@test "eight at once, eight different ones, each once" {
    fill 8
    before=$(pooled)
    for i in 1 2 3 4 5 6 7 8; do
        timeout -k 5 $PATIENCE "$BRIG" sandbox create --json >"id.$i" 2>/dev/null &
    done
    wait
    ids=$(jq -r .sandbox_id id.*)
    [ "$(sort -u <<<"$ids" | wc -l)" -eq 8 ]
    # Those who come late may meet what was filled up meanwhile; nobody has to build.
    for id in $ids; do
        [ -n "$(ledger "SELECT 1 FROM receipts WHERE run_id = '$id' AND json_extract(body, '\$.action') = 'prepare'")" ]
    done
    settled 8
    for id in $ids; do
        run ! grep -qxF "$id" <<<"$(pooled)"
        in_it -- true </dev/null
    done
    empty_pools
    no_sandbox_left
    each_run_ended
    chain_holds
}

@test "one whose walls are not as planned is ended and recorded, and another one serves" {
    need prlimit
    fill 2
    for id in $(pooled); do
        prlimit --pid "$(pool_pid "$id")" --nofile=64:64
    done
    spoilt=$(pooled)
    exec_json -- echo served </dev/null
    status_is 0
    json_is '.stdout | rtrimstr("\n")' served
    served=$(of_command .sandbox_id)
    run ! grep -qxF "$served" <<<"$spoilt"
    for id in $spoilt; do
        [ "$(ends_of "$id")" = PREFLIGHT_RESOURCE_LIMITS ]
        [ ! -e "$BRIG_HOME/boxes/$id.lock" ]
    done
    settled 2
    each_run_ended
    chain_holds
}

@test "one that was killed is not given to anybody, and its end is told once" {
    fill 2
    id=$(pooled | head -n 1)
    kill -9 "$(outer_of "$(pool_pid "$id")")"
    exec_json -- echo served </dev/null
    status_is 0
    [ "$(of_command .sandbox_id)" != "$id" ]
    settled 2
    brig sandbox list >/dev/null 2>&1
    [ "$(ends_of "$id")" = RUN_ABANDONED ]
    empty_pools
    no_sandbox_left
    each_run_ended
}

@test "what would be made differently today is ended, and made anew" {
    mkdir shared
    fill 2 --mount "$PWD/shared:/mnt/shared"
    before=$(pooled)
    old=$key
    mv shared aside
    mkdir shared
    make --mount "$PWD/shared:/mnt/shared"
    run ! from_pool "$id"
    brig pool refill
    [ ! -e "$BRIG_HOME/pool/$old" ]
    [ "$(pooled_n)" -eq 2 ]
    for each in $before; do
        [ "$(ends_of "$each")" = SANDBOX_DESTROYED ]
        run ! grep -qxF "$each" <<<"$(pooled)"
    done
}

@test "nobody takes what is too old: it ends by itself, and that is told" {
    fill 2 --ttl 3s # enough for a busy machine to make both
    # Whatever has been made: some may have ended since.
    ids=$(ledger "SELECT DISTINCT run_id FROM receipts WHERE json_extract(body, '\$.action') = 'prepare'")
    [ "$(wc -l <<<"$ids")" -ge 2 ]
    eventually 5 is_settled 0
    for id in $ids; do
        eventually 3 ended_for SANDBOX_EXPIRED "$id"
    done
    each_run_ended
    empty_pools
    no_sandbox_left
}

# ended_for REASON ID: whoever looks next is told.
ended_for() {
    brig sandbox list >/dev/null 2>&1
    [ "$(ends_of "$2")" = "$1" ]
}

@test "a smaller size ends those that are too many; drain ends all and makes no more" {
    fill 3
    fill 1
    [ "$(pooled_n)" -eq 1 ]
    run brig pool drain --json
    json_is '.pools[0].ended' 1
    [ "$(pooled_n)" -eq 0 ]
    run brig sandbox exec --quiet -- true </dev/null
    status_is 0
    no_sandbox_left
    each_run_ended
    chain_holds
}

@test "sizes that make no sense are refused" {
    for size in 0 1025; do
        run brig pool fill --size $size
        [ "$status" -eq 64 ]
    done
    run brig pool fill
    [ "$status" -eq 64 ]
    run brig pool drain 0123
    status_is 66
    mkdir shared
    run brig pool fill --size 1 --mount "$PWD/shared:/mnt:rw"
    status_is 64
    says "cannot be made ahead"
}
