#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Commands that run without their caller: exec --detach, logs, attach, ps.

load common
load sandbox
load kept

setup() {
    common_setup
    make --name here
}

teardown() {
    destroy_all
}

detach() {
    exec=$(timeout -k 5 $PATIENCE "$BRIG" sandbox exec here --detach "$@" </dev/null) || return
    [ "${#exec}" -eq 20 ]
}

state_of() {
    "$BRIG" sandbox ps here --json | jq -r ".execs[] | select(.exec_id == \"$1\") | .state"
}

is_ended() {
    [ "$(state_of "$1")" = ended ]
}

logs_say() {
    "$BRIG" sandbox logs here "$exec" 2>&1 | grep -qF -- "$1"
}

@test "exec --detach answers at once, with ids" {
    run --separate-stderr timeout -k 5 $PATIENCE "$BRIG" sandbox exec here --detach --json -- sleep 300 </dev/null
    status_is 0 # not that of our patience
    json_is .sandbox_id "$id"
    json_is .verdict ALLOW
    exec=$(jq -r .exec_id <<<"$output")
    [ "$(ledger "SELECT json_extract(body, '\$.receipt_id') FROM receipts WHERE run_id = '$exec'")" = \
        "$(jq -r .intent_receipt_id <<<"$output")" ]
    [ "$(state_of "$exec")" = running ]
}

@test "logs shows both streams, also when it has ended" {
    detach -- sh -c 'echo out; echo err >&2; exit 3'
    eventually 2 is_ended "$exec"
    run --separate-stderr brig sandbox logs here "$exec"
    status_is 0
    [ "$output" = out ]
    [ "$stderr" = err ]
    run --separate-stderr brig sandbox logs here
    [ "$output" = out ]
    run --separate-stderr brig sandbox ps here --json
    json_is '.execs[0].exit_code' 3
    json_is '.execs[0].stdout_bytes' 4
}

@test "its outcome is recorded by the next command, once, with what is known" {
    detach -- sh -c 'echo out; exit 3'
    eventually 2 is_ended "$exec"
    brig sandbox list >/dev/null
    brig sandbox list >/dev/null
    [ "$(ledger "SELECT count(*) FROM receipts WHERE run_id = '$exec' AND kind = 'outcome'")" -eq 1 ]
    body=$(ledger "SELECT body FROM receipts WHERE run_id = '$exec' AND kind = 'outcome'")
    json_is .outcome.exit_code 3 "$body"
    json_is .outcome.ended true "$body"
    json_is .outcome.stdout_bytes 4 "$body"
    json_is .outcome.stdout_hash "sha256:$(printf 'out\n' | sha256sum | cut -d ' ' -f 1)" "$body"
    chain_holds
}

@test "of much output the last 256 KiB of each stream are kept, and the rest is counted" {
    detach -- sh -c 'seq 200000; seq 100000 >&2'
    eventually 5 is_ended "$exec"
    run --separate-stderr brig sandbox ps here --json
    json_is '.execs[0].stdout_bytes' "$(seq 200000 | wc -c)"
    brig sandbox logs here >out 2>err
    [ "$(wc -c <out)" -eq 262144 ]
    cmp out <(seq 200000 | tail -c 262144)
    grep -q "$(($(seq 200000 | wc -c) - 262144)) bytes of its output are no longer there" err
    [ "$(du -s --block-size=1 "$BRIG_HOME/runs/$exec" | cut -f 1)" -lt 1000000 ]
    brig sandbox list >/dev/null
    body=$(ledger "SELECT body FROM receipts WHERE run_id = '$exec' AND kind = 'outcome'")
    json_is .outcome.truncated true "$body"
    json_is '.outcome | has("stdout_hash")' false "$body"
}

@test "logs --follow goes on until it ends" {
    detach -- sh -c 'for i in 1 2 3 4 5; do echo $i; sleep 0.1; done'
    run --separate-stderr timeout -k 5 60 "$BRIG" sandbox logs here --follow
    status_is 0
    [ "$output" = "1
2
3
4
5" ]
}

@test "attach brings the tail, the streams and the exit status" {
    detach -- sh -c 'echo before; read line; echo "got $line"; echo e >&2; exit 7'
    eventually 2 logs_say before
    echo hello >in
    run --separate-stderr timeout -k 5 60 "$BRIG" sandbox attach here "$exec" <in
    status_is 7
    [ "$output" = "before
got hello" ]
    [ "$stderr" = e ]
    each_run_ended
    run --separate-stderr brig sandbox attach here "$exec"
    status_is 75
    [[ $stderr == *"has ended"* ]]
}

@test "the end of the input of whoever is attached is the command's" {
    detach -- cat
    printf 'a\nb\n' >in
    run timeout -k 5 60 "$BRIG" sandbox attach here <in
    status_is 0
    [ "$output" = "a
b" ]
}

@test "who leaves leaves the command alone, and can come back; two at once are refused" {
    mkfifo in
    detach -- sh -c 'while read line; do echo "got $line"; done'
    "$BRIG" sandbox attach here "$exec" <in >one 2>&1 &
    first=$!
    exec {fd}>in
    echo a >&$fd
    eventually 3 grep -q "got a" one
    run --separate-stderr timeout -k 5 60 "$BRIG" sandbox attach here "$exec" </dev/null
    [ "$status" -ne 0 ]
    [[ $stderr == *"somebody else is attached"* ]]
    kill -TERM "$first"
    wait "$first"
    grep -q "runs on" one
    exec {fd}>&-
    [ "$(state_of "$exec")" = running ]
    echo b >input
    run timeout -k 5 60 "$BRIG" sandbox attach here "$exec" <input
    says "got a"
    says "got b"
}

@test "one who is killed while attached costs the command nothing" {
    detach -- sh -c 'i=0; while :; do i=$((i + 1)); echo $i; sleep 0.01; done'
    "$BRIG" sandbox attach here "$exec" </dev/null >one 2>&1 &
    first=$!
    eventually 3 grep -q 5 one
    kill -9 "$first"
    wait "$first" || true
    before=$(brig sandbox logs here | tail -n 1)
    eventually 10 counted_beyond "$before"
}

counted_beyond() {
    [ "$(brig sandbox logs here | tail -n 1)" -gt "$1" ]
}

@test "a terminal can be joined, and has the size of whoever joined" {
    need script
    detach --tty -- sh -c 'read x; stty size; tty; exit 6'
    run timeout -k 5 60 script -qec "stty rows 31 cols 71; (sleep 0.5; echo go) | '$BRIG' sandbox attach here $exec; echo status \$?" /dev/null </dev/null
    says "/dev/pts/"
    says "status 6"
}

@test "time: --timeout ends it, without one it lives as long as its sandbox" {
    detach --timeout 300ms -- perl -e '$SIG{TERM} = "IGNORE"; sleep 300'
    eventually 3 is_ended "$exec"
    brig sandbox list >/dev/null
    receipt_is .reason_code LIMIT_TIME
    receipt_is .outcome.timed_out true
    detach -- sleep 300
    brig sandbox destroy here
    body=$(ledger "SELECT body FROM receipts WHERE run_id = '$exec' AND kind = 'outcome'")
    [ -n "$body" ]
    no_sandbox_left
    chain_holds
}

@test "what it left in the background ends with it, unless kept" {
    detach -- sh -c 'setsid sleep 300 >/dev/null 2>&1 &'
    eventually 2 is_ended "$exec"
    pid=$(pid_one)
    eventually 2 nobody_below
    detach --keep -- sh -c 'setsid sleep 300 & echo on'
    eventually 2 is_ended "$exec"
    sleep 0.3
    brig sandbox ps here | grep -q 'sleep 300'
}

nobody_below() {
    [ -z "$(descendants "$pid")" ]
}

@test "a keeper that is killed is told about; its command ends" {
    detach -- sleep 300
    pid=$(pid_one)
    kill -9 "$(awk '{ print $1 }' "/proc/$pid/task/$pid/children")"
    eventually 2 nobody_below
    brig sandbox list >/dev/null
    receipt_is .reason_code RUN_ABANDONED
    [ "$(state_of "$exec")" = killed ]
    chain_holds
}

@test "commands that cannot be started say so as ever" {
    run -127 --separate-stderr brig sandbox exec here --detach -- no-such </dev/null
    receipt_is .reason_code COMMAND_NOT_FOUND
    run --separate-stderr brig sandbox exec here --detach -- /etc/passwd </dev/null
    status_is 126
    run --separate-stderr brig sandbox exec --detach -- true </dev/null
    status_is 64
    run --separate-stderr brig sandbox logs here
    status_is 66
    run --separate-stderr brig sandbox attach here nobody
    status_is 66
    run_folders >left
    [ ! -s left ]
}

@test "there is a most, and it is said" {
    for _ in $(seq 64); do
        detach -- true
    done
    run --separate-stderr brig sandbox exec here --detach -- true </dev/null
    [ "$status" -ne 0 ]
    [[ $stderr == *"64 detached commands"* ]]
    brig sandbox destroy here
    no_sandbox_left
    chain_holds
}

@test "ps shows commands and processes with their inside ids, escaped" {
    detach -- perl -e '$0 = "evil\e[31m\n"; sleep 300'
    eventually 2 shows_evil
    run --separate-stderr brig sandbox ps here
    [[ $output != *$'\e'* ]]
    run --separate-stderr brig sandbox ps here --json
    json_is '.processes | length' 1
    json_is '.processes[0].exec' "${exec:0:15}"
    [ "$(jq '.processes[0].pid' <<<"$output")" -lt 1000 ]
    [ "$(jq '.processes[0].memory_bytes' <<<"$output")" -gt 0 ]
}

shows_evil() {
    "$BRIG" sandbox ps here | grep -q evil
}
