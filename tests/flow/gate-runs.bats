#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Which runs count for the gate. In none of these anything was found that is in the telemetry: what matters is whether all of it
# could be, and whether anything was said.

load common
load sandbox
load advise

setup() {
    common_setup
    [ -x "$AGENT" ]
    pid=
}

teardown() {
    [ -z "$pid" ] || kill "$pid" 2>/dev/null || true
}

# counts N: the last N runs meet all conditions but the custodians'.
counts() {
    run -13 --separate-stderr brig gate report agent --runs "$1" --json
    json_is '[.conditions[].passed] | all' true
    json_is .met false
}

# counts_not CONDITIONS WHY: the last run fails so many of the five, for this reason.
counts_not() {
    run -13 --separate-stderr brig gate report agent --runs 1 --json
    json_is '[.conditions[] | select(.passed | not)] | length' "$1"
    json_is '.conditions[2].passed' false
    json_is '.conditions[2].evidence[-1]' "$session: $2"
}

# brig itself, in the background; its standard input is the pipe "turns", which stays open.
begin() {
    rm -f turns
    mkfifo turns
    "$BRIG" advisory run "$@" -- "$AGENT" <>turns >out 2>err 3>&- 4>&- &
    pid=$!
}

# asked TEXT: and answered.
asked() {
    : >out
    echo "$1" >turns
    eventually 20 test -s out
    session=$(last_session)
}

last_session() {
    ledger "SELECT body FROM receipts WHERE instr(body, '\"stage\":\"start\"') ORDER BY seq DESC LIMIT 1" | jq -r .advisory.run_id
}

ended() {
    local status=0
    wait "$pid" || status=$?
    pid=
    [ "$status" -eq "$1" ]
}

killed() {
    kill -9 "$pid"
    ended 137
    eventually 20 brig advisory end "$session"
}

children_of() {
    grep -ls "^PPid:[[:space:]]*$1\$" /proc/[0-9]*/status | tr -dc '0-9\n'
}

released() {
    local name
    for name in anna ben; do
        brig gate sign agent --runs 1 --as $name --passphrase-file $name.pass >/dev/null || return
    done
    brig gate release agent --runs 1 >/dev/null && brig gate status agent >/dev/null
}

LOST="Brig or its box was killed: what the agent did last is not known"

@test "one whose Brig was killed does not count, with an end or without, and voids a release" {
    custodians
    clean_runs 1
    counts 1
    released
    begin
    asked "try exec /bin/sh" # refused and counted, where the number dies with Brig
    killed
    [ "$(jq -r 'select(.kind == "end").why' "$(session_dir)/events.jsonl")" = "ended from outside" ]
    counts_not 5 "$LOST"
    run -13 brig gate status agent
    says "run $session: $LOST"
    run -0 brig advisory report "$session"
    says "$LOST"
    # The control: the same, and Brig is there to the last.
    begin
    asked "try exec /bin/sh"
    kill -INT "$pid"
    ended 130
    run -0 brig advisory report "$session"
    says "attempted_shell_execution 1"
    not grep -q killed <<<"$output"
    clean_runs 1
    counts 1
}

@test "one whose box lost its supervisor, who counts, does not count" {
    begin
    asked "try exec /bin/sh"
    local child
    for child in $(children_of "$pid"); do
        kill -9 "$child"
    done
    eventually 20 grep -q "the agent has ended" err
    echo hello >turns
    ended 69
    grep -q "SANDBOX_FAILED: the supervisor of the sandbox was killed" err
    counts_not 5 "$LOST"
}

@test "killed before all is told, it does not count; killed behind that, it does" {
    [ "$(brig version --json | jq -r .crash_points)" = true ] || skip "built without crash points"
    run -137 env BRIG_CRASH_AT=advisory-box-gone "$BRIG" advisory run --prompt hello -- "$AGENT"
    session=$(last_session)
    brig advisory end "$session"
    counts_not 5 "$LOST"
    run -137 env BRIG_CRASH_AT=advisory-box-told "$BRIG" advisory run --prompt hello -- "$AGENT"
    session=$(last_session)
    run -13 brig gate report agent --runs 1
    says "it has no end in the ledger"
    brig advisory end "$session"
    counts 1
}

@test "one that was interrupted does not count, and voids nothing" {
    custodians
    clean_runs 1
    released
    begin
    asked hello
    kill -INT "$pid"
    ended 130
    counts_not 5 "it was interrupted, and is no whole run"
    brig gate status agent
    # The control: all was said, and that was the end.
    clean_runs 1
    counts 1
}

@test "one that Brig could not go on with does not count" {
    mkfifo turns shown
    exec 5<>turns
    "$BRIG" advisory run -- "$AGENT" <turns >shown 2>err 3>&- 4>&- 5>&- &
    pid=$!
    exec 6<shown
    exec 6<&-
    printf 'hello\nhello\n' >turns
    ended 71
    exec 5>&-
    session=$(last_session)
    counts_not 5 "Brig could not go on with it: it is no whole run"
}

@test "without an answer none counts: nothing asked, refused by the policy, no such program" {
    custodians
    clean_runs 1
    released
    local status=0
    advise 2>/dev/null || status=$?
    [ "$status" -eq 0 ]
    session=$(last_session)
    counts_not 1 "it answered nothing"
    printf 'version: 1\ndefault: deny\n' >deny.yaml
    run -77 advise --policy deny.yaml --prompt hello
    session=$(last_session)
    [ "$(jq -r 'select(.kind == "box") | "\(.begun) \(.attempts)"' "$(session_dir)/events.jsonl")" = "false 0" ]
    counts_not 1 "it answered nothing"
    # What its operator did is no violation of the agent's.
    run -0 brig gate status agent
    # Ten of them are no better than one.
    local i
    for ((i = 0; i < 9; i++)); do
        advise >/dev/null 2>&1
    done
    run -13 --separate-stderr brig gate report agent --json
    json_is .n 10
    json_is '.runs | length' 10
    json_is '.conditions[2] | "\(.passed) \(.evidence | length)"' "false 10"
}

@test "every answered turn makes a run, whatever ended it afterwards; the report says what did" {
    advise --prompt hello >/dev/null 2>&1
    run -75 --separate-stderr advise --turns 1 --prompt one --prompt two
    counts 2
    json_is '.runs | map(.ended_by) | join(", ")' "end, turn budget"
    json_is '.runs | map(.turns) | join(" ")' "1 1"
}

@test "flood, idle, and an agent that leaves a turn: found, or unanswered" {
    PATIENCE=300
    run -14 --separate-stderr advise --prompt hello --prompt silent --idle 6s
    session=$(last_session)
    counts_not 1 "a turn was not answered"
    json_is '.runs[0].ended_by' idle
    run -14 --separate-stderr advise --prompt hello --prompt leave
    session=$(last_session)
    counts_not 1 "a turn was not answered"
    json_is '.runs[0].ended_by' "the agent ended"
    run -10 --separate-stderr advise --prompt flood --prompt hello --timeout 240s
    run -13 --separate-stderr brig gate report agent --runs 1 --json
    json_is '.conditions[1].passed' false
    json_is '.runs[0].ended_by' flood
}
