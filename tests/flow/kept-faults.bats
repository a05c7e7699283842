#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Any process of a kept sandbox killed at any moment: what is said afterwards is true, and nothing
# is left.

load common
load sandbox
load kept

setup() {
    common_setup
    make
    pid=$(pid_one)
    outer=$(outer_of "$pid")
}

teardown() {
    destroy_all
}

background() {
    in_it --keep -- sh -c 'for i in 1 2 3; do setsid sleep 300 >/dev/null 2>&1 & done' </dev/null
    inside=$(descendants "$pid")
    [ "$(wc -w <<<"$inside")" -eq 4 ]
}

@test "without its outer process everything is gone within two seconds" {
    background
    kill -9 "$outer"
    # shellcheck disable=SC2086 # pids
    eventually 2 gone "$pid" "$outer" $inside
    run --separate-stderr brig sandbox exec "$id" -- true </dev/null
    status_is 66
    ended_with RUN_ABANDONED
    no_sandbox_left
    chain_holds
}

@test "without its PID 1 everything is gone within two seconds" {
    background
    kill -9 "$pid"
    # shellcheck disable=SC2086 # pids
    eventually 2 gone "$pid" "$outer" $inside
    run brig sandbox show "$id"
    status_is 66
    no_sandbox_left
    chain_holds
}

@test "its end is told once, whoever looks, and however many" {
    kill -9 "$outer"
    eventually 2 gone "$pid" "$outer"
    for _ in 1 2 3 4; do
        brig sandbox list >/dev/null 2>&1 &
    done
    wait
    [ "$(ledger "SELECT count(*) FROM receipts WHERE json_extract(body, '\$.sandbox_id') = '$id'
        AND json_extract(body, '\$.reason_code') = 'RUN_ABANDONED' AND kind = 'outcome'")" -eq 1 ]
    no_sandbox_left
    chain_holds
}

@test "a command whose Brig is killed ends, and its run is closed by the next command" {
    "$BRIG" sandbox exec "$id" --quiet -- sh -c 'echo here; sleep 300' >out </dev/null &
    caller=$!
    eventually 3 grep -q here out
    kill -9 "$caller"
    eventually 2 alone
    eventually 2 no_run_is_held # whoever has ended it lets go of it a moment later
    run --separate-stderr brig sandbox show "$id"
    status_is 0
    receipt_is .reason_code RUN_ABANDONED
    each_run_ended
    brig sandbox destroy "$id"
    no_sandbox_left
    chain_holds
}

alone() {
    [ -z "$(descendants "$pid")" ]
}

session_of() {
    awk '{ print $6 }' "/proc/$1/stat" 2>/dev/null
}

# The first child of PID 1 that is not a command: those have sessions of their own.
keeper() {
    local each
    for each in $(cat "/proc/$pid/task/$pid/children"); do
        if [ "$(session_of "$each")" = "$(session_of "$pid")" ]; then
            echo "$each"
            return
        fi
    done
    return 1
}

# PID 1 runs one command itself; whoever comes meanwhile has a keeper.
occupy() {
    timeout -k 5 300 "$BRIG" sandbox exec --timeout 5m "$id" -- sh -c 'echo here; sleep 299' >occupied 2>&1 </dev/null 3>&- &
    occupier=$!
    eventually 3 grep -q here occupied
}

@test "a command whose keeper is killed ends, its caller is told, the sandbox goes on" {
    occupy
    timeout -k 5 60 "$BRIG" sandbox exec "$id" -- sh -c 'setsid sleep 300 & echo here; sleep 300' >out 2>err </dev/null &
    caller=$!
    eventually 3 grep -q here out
    kill -9 "$(keeper)"
    status=0
    wait "$caller" || status=$?
    [ "$status" -eq 69 ]
    grep -q SANDBOX_FAILED err
    eventually 2 not_running 'sleep 300'
    running 'sleep 299'
    kill "$occupier"
    wait "$occupier" || true
    eventually 2 alone
    run in_it -- echo on </dev/null
    [ "$output" = on ]
    each_run_ended
}

@test "what was kept ends with its keeper, and only that" {
    in_it --keep -- sh -c 'setsid sleep 301 >/dev/null 2>&1 &' </dev/null
    first=$(keeper)
    in_it --keep -- sh -c 'setsid sleep 302 >/dev/null 2>&1 &' </dev/null
    kill -9 "$first"
    eventually 2 not_running 'sleep 301'
    eventually 1 running 'sleep 302'
    sleep 0.2
    running 'sleep 302'
}

running() {
    local each
    for each in $(descendants "$pid"); do
        tr '\0' ' ' <"/proc/$each/cmdline" 2>/dev/null | grep -qF "$1" && return
    done
    return 1
}

not_running() {
    not running "$1"
}

@test "a command that kills all it can ends its own answer at most" {
    run in_it --timeout 2s -- sh -c 'kill -9 -1; sleep 300' </dev/null
    [ "$status" -ne 0 ]
    eventually 2 alone
    run in_it -- echo on </dev/null
    [ "$output" = on ]
}

# What was being built or ended goes on without who wanted it, for a moment.
all_is_cleared() {
    destroy_all
    brig sandbox list >/dev/null 2>&1
    no_sandbox_left 2>/dev/null
}

@test "a Brig killed while it creates leaves a sandbox that is told about, or none" {
    for wait in 0.001 0.003 0.005 0.008 0.012 0.02; do
        "$BRIG" sandbox create --json --ttl 20s >/dev/null 2>&1 &
        maker=$!
        sleep "$wait"
        kill -9 "$maker" 2>/dev/null || true
        wait "$maker" 2>/dev/null || true
    done
    eventually 3 all_is_cleared
    each_run_ended
    chain_holds
}

@test "a Brig killed while it destroys: the sandbox is gone, and that is told" {
    for wait in 0.001 0.003 0.006; do
        make
        "$BRIG" sandbox destroy "$id" >/dev/null 2>&1 &
        ender=$!
        sleep "$wait"
        kill -9 "$ender" 2>/dev/null || true
        wait "$ender" 2>/dev/null || true
    done
    eventually 3 all_is_cleared
    each_run_ended
    chain_holds
}

@test "a stopped outer process does not hang those who ask" {
    kill -STOP "$outer"
    run --separate-stderr timeout -k 5 60 "$BRIG" sandbox exec "$id" -- true </dev/null
    kill -CONT "$outer"
    [ "$status" -ne 0 ] && [ "$status" -ne 124 ]
    [[ $stderr == *"does not answer"* ]]
    run in_it -- echo on </dev/null
    [ "$output" = on ]
}

@test "connections that say nothing, or nonsense, cost nobody anything" {
    need perl
    for socket in execs control; do
        for _ in 1 2 3; do
            (
                cd "$BRIG_HOME/boxes/$id"
                perl -MSocket -e 'socket S, AF_UNIX, SOCK_SEQPACKET, 0; connect S, sockaddr_un($ARGV[0]) or die;
                    send S, "x" x $ARGV[1], 0' "$socket" "$((RANDOM % 2000 + 1))"
            ) || true
        done
    done
    run in_it -- echo on </dev/null
    [ "$output" = on ]
    run brig sandbox show "$id"
    status_is 0
}
