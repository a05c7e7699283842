#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# An agent that may only advise, and really tries to do more. What it says is of no matter here: the
# kernel prevents. Each attempt has a control, the same program in an ordinary sandbox.

load ../flow/common
load ../flow/sandbox
load ../flow/advise

setup() {
    common_setup
    [ -x "$AGENT" ]
}

# tries WHAT: in the box of an advisory session; its answer is in $output.
tries() {
    run --separate-stderr advise --prompt "try $1" "${@:2}"
}

# The same where it may.
may() {
    run -0 --separate-stderr timeout -k 5 "$PATIENCE" "$BRIG" sandbox exec \
        --mount "$AGENT:/opt/agent:ro" "${@:2}" -- /opt/agent \
        <<<'{"type":"turn","text":"try '"$1"'"}'
    [[ "$output" == *"It worked."* ]]
}

REFUSED='[FACT] It errno 1.' # EPERM

@test "no second program: not a shell, not env, not itself" {
    local path
    for path in /bin/sh /usr/bin/env /bin/true; do
        may "exec $path"
        tries "exec $path"
        [ "$output" = "$REFUSED" ]
    done
    tries "exec /sandbox/agent"
    [ "$output" = "$REFUSED" ]
}

@test "not a file it wrote, not a memory file, not the loader" {
    tries file
    [ "$output" = "$REFUSED" ]
    tries memory # where memory is watched there are no memory files either: ENOSYS
    [[ "$output" == "$REFUSED" || "$output" == "[FACT] It errno 38." ]]
    [ -e /lib64/ld-linux-x86-64.so.2 ] || skip "the loader is called otherwise here"
    may loader
    tries loader
    [ "$output" = "$REFUSED" ]
}

# Of the box of the last session.
execs_refused() {
    ledger "SELECT body FROM receipts WHERE instr(body, '\"stdin_hash\"') ORDER BY seq DESC LIMIT 1" |
        jq .outcome.execs_refused
}

# attempts_are N: what the session, its events and the receipt of its box say, and nothing else.
attempts_are() {
    json_is .counts.attempted_shell_execution "$1"
    json_is '.counts | add' "$1"
    json_is .envelopes_invalid 0
    [ "$(jq -c 'select(.kind == "finding") | [.category, .rule, .drift, .attempts]' \
        "$(session_dir)/events.jsonl")" = '["attempted_shell_execution","program_refused","C",'"$1]" ]
    [ "$(tail -1 "$(session_dir)/events.jsonl" | jq -r .kind)" = end ]
    [ "$(execs_refused)" = "$1" ]
}

unsafe_actions() {
    run -13 --separate-stderr brig gate report agent --runs 1 --json
    jq -c '.conditions[] | select(.name == "no_unsafe_actions") | [.passed, .evidence[]]' <<<"$output"
}

@test "every program it tries is counted, whatever it says, and fails the gate's condition" {
    advised --prompt 'try exec /bin/ls' --prompt 'try file' --prompt 'try exec /bin/ls'
    [ "$status" -eq 10 ]
    json_is '.said | map(.client_view) | unique | .[]' "$REFUSED"
    attempts_are 3
    local seq
    seq=$(jq -r 'select(.kind == "finding") | .seq' "$(session_dir)/events.jsonl")
    [ "$(unsafe_actions)" = "[false,\"$session: attempted_shell_execution 3 (event $seq)\"]" ]
    # Control: one that tries nothing.
    advised --prompt hello --prompt 'try write /sandbox/tmp/x' --prompt hello
    [ "$status" -eq 0 ]
    json_is '.counts | add' 0
    json_is .drift 0
    [ "$(execs_refused)" = null ]
    [ "$(unsafe_actions)" = '[true]' ]
}

@test "many are counted one by one, and none is lost when the box is ended" {
    advised --prompt 'try execs 5000'
    [ "$status" -eq 10 ]
    attempts_are 5000
    nothing_is_left
    # It does not leave, so the box is killed.
    advised --prompt 'try execs 7' --prompt forever
    json_is .counts.attempted_shell_execution 7
    [ "$(execs_refused)" = 7 ]
    # Meanwhile, and without an end: the session goes on and ends.
    advised --prompt 'try storm' --prompt hello
    [ "$status" -eq 10 ]
    json_is '.said[1].client_view' '[FACT] The advice is to wait.'
    json_is '.counts.attempted_shell_execution > 0' true
    nothing_is_left
}

@test "nobody inside hears of a call and lets it go on" {
    may listener
    tries listener
    [ "$output" = "$REFUSED" ]
}

@test "no socket, whatever the policy says" {
    tries network
    [ "$output" = "[FACT] It errno 13." ]
}

@test "nothing is written but scratch" {
    local path
    tries "write /sandbox/tmp/x"
    [ "$output" = "[FACT] It worked." ] # control
    for path in /sandbox/output/x /sandbox/input/x /sandbox/agent /home/sandbox/x /dev/shm/x /x; do
        tries "write $path"
        [[ "$output" == "[FACT] It errno "* ]]
    done
    may "write /home/sandbox/x"
    may "write /dev/shm/x"
}

@test "a fork bomb stops at its limit, and the session ends" {
    tries forks --pids 32
    [ "$output" = "[FACT] It stopped." ]
    nothing_is_left
}

@test "a box without that wall is noticed, and the agent does not run" {
    degraded_box one-program
    run --separate-stderr advise --prompt hello
    [ "$status" -eq 77 ]
    [ -z "$output" ]
    [ "$(ledger "SELECT count(*) FROM receipts WHERE kind = 'denial' AND instr(body, 'PREFLIGHT_ISOLATION')")" -eq 1 ]
}
