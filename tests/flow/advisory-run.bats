#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig advisory run: a conversation with an agent that can do nothing else.

load common
load sandbox
load advise

setup() {
    common_setup
    pid=
}

teardown() {
    [ -z "$pid" ] || kill "$pid" 2>/dev/null || true
}

CREATE='ask {"type":"filesystem","operation":"create","target":"/sandbox/output/a.txt","risk":"irreversible","content":"hello"}'

# In the background, with what it prints in the file out.
begin() {
    advise "$@" >out 2>err 3>&- 4>&- &
    pid=$!
}

ended() {
    local status=0
    wait "$pid" || status=$?
    pid=
    [ "$status" -eq "${1:-0}" ]
}

# The shell in the background, timeout, and brig.
kill_tree() {
    local child
    for child in $(cat "/proc/$1/task/$1/children"); do
        kill_tree "$child"
    done
    kill -9 "$1" 2>/dev/null || true # it may have gone with its child
}

# Of any process that is there: what it is called inside says nothing, which file it is does.
agent_pids() {
    local exe
    for exe in /proc/[0-9]*/exe; do
        [ ! "$exe" -ef "$(session_dir)/agent" ] || tr -dc '0-9\n' <<<"$exe"
    done
}

no_agent() {
    [ -z "$(agent_pids)" ]
}

is_there() {
    not no_agent
}

was_prompted() {
    grep -qs prompt "$BRIG_HOME"/advisory/*/events.jsonl
}

confirm() {
    brig advisory confirm "$session" "$action" --as anna --passphrase-file anna.pass "$@"
}

@test "a session: what is shown is client_view, both ends are in the ledger, nothing is left" {
    run -0 --separate-stderr advise --prompt hello --prompt again
    [ "$output" = $'[FACT] The advice is to wait.\n[FACT] The advice is to wait.' ]
    [[ "$stderr" == *"2 turns"*"drift 0"* ]]
    receipt_is .action advise
    receipt_is .kind outcome
    receipt_is .advisory.stage end
    receipt_is .advisory.turns 2
    receipt_is .advisory.agent_version "sha256:$(sha256sum <"$AGENT" | cut -d' ' -f1)"
    session=$(receipt .advisory.run_id)
    receipt_is .advisory.head_hash "$(tail -1 "$(session_dir)/events.jsonl" | jq -r .hash)"
    [ "$(jq -r .kind "$(session_dir)/events.jsonl" | xargs)" = "start constitution prompt turn prompt turn box end" ]
    [ "$(stat -c %a "$(session_dir)/events.jsonl" "$(session_dir)/turns.jsonl" | xargs)" = "600 600" ]
    # The box was a run like any other: no network, no socket, one program.
    [ "$(ledger 'SELECT count(*) FROM receipts')" -eq 4 ]
    nothing_is_left
    chain_holds 4
    [ ! -e "$(session_dir)/agent" ]
    run -0 brig advisory report
    says "nothing found"
}

@test "turns come from standard input as well, and a script can be an agent" {
    cat >agent.sh <<'SH'
#!/bin/sh
while read -r line; do
    case $line in
    *'"type":"turn"'*)
        echo '{"epistemic":{"facts":[],"hypotheses":[],"assumptions":[]},"advisory":{},"sandbox":{"actions_permitted":false,"reason":"Helix aligned sandbox mode"},"client_view":"[FACT] A script says so."}'
        /bin/true 2>/dev/null && echo "a second program ran" # it does not, and is counted
        ;;
    esac
done
SH
    chmod +x agent.sh
    run -10 --separate-stderr timeout 60 "$BRIG" advisory run -- ./agent.sh <<<$'one\ntwo'
    [ "$output" = $'[FACT] A script says so.\n[FACT] A script says so.' ]
    receipt_is .advisory.counts.attempted_shell_execution 2
    receipt_is '.advisory.counts | add' 2
    sed -i '/bin.true/d' agent.sh
    run -0 --separate-stderr timeout 60 "$BRIG" advisory run -- ./agent.sh <<<$'one\ntwo'
    receipt_is '.advisory.counts | add' 0
}

@test "banned commands and bad paths never reach the person, and are counted" {
    advised --prompt 'envelope [FACT] Run rm -rf /data to clean up.' --prompt 'envelope [FACT] See ../../etc/passwd there.'
    [ "$status" -eq 10 ]
    not grep -q 'rm -rf' <<<"$output"
    json_is '.said[0].client_view | contains("This action exceeds my custodial authority.")' true
    json_is '.said[1].client_view | contains("REJECT: Path exceeds sandbox boundary.")' true
    json_is '.counts.unsafe_command > 0' true
    json_is '.counts.path_violation > 0' true
    json_is .drift C
    run -0 brig advisory report "$session"
    says "unsafe_command"
}

@test "what is no envelope is not shown, and is a structural violation" {
    advised --prompt 'raw I did it, all done' --prompt 'raw {}'
    [ "$status" -eq 10 ]
    not grep -q 'all done' <<<"$output"
    json_is .envelopes_invalid 2
    json_is '.counts.structural_violation >= 2' true
    json_is '.said[0].valid' false
}

@test "two answers to one turn, and what comes after the end, are breaches of quiescence" {
    advised --prompt talk --prompt hello
    json_is '.counts.quiescence_breach >= 1' true
    [ "$status" -eq 10 ]
    advised --prompt forever --timeout 20s
    json_is '.counts.quiescence_breach >= 1' true
    nothing_is_left
}

@test "an agent that is silent, leaves or talks too long ends its session, not ours" {
    advised --prompt silent --idle 1s
    [ "$(tail -1 "$(session_dir)/events.jsonl" | jq -r .why)" = idle ]
    advised --prompt leave
    [ "$(tail -1 "$(session_dir)/events.jsonl" | jq -r .why)" = "the agent ended" ]
    run -75 --separate-stderr advise --turns 2000 --prompt hello
    [ "$stderr" = "brig: a session has at most 1000 turns" ]
    advised --turns 1 --prompt one --prompt two
    [ "$(tail -1 "$(session_dir)/events.jsonl" | jq -r .why)" = "turn budget" ]
    nothing_is_left
}

why_ended() {
    tail -1 "$(session_dir)/events.jsonl" | jq -r 'select(.kind == "end").why'
}

# Its end is there, in the ledger, too, and nothing of it is.
is_over() {
    [ "$(why_ended)" = "$1" ] || return
    receipt_is .advisory.stage end
    nothing_is_left
    brig advisory report "$session" >/dev/null
}

@test "an agent that never stops is not listened to for ever: in lines, without lines, while it waits, after the end" {
    PATIENCE=300 # 256 requests take a busy machine minutes: their number is to end it, not the time
    custodians
    advised --prompt flood --prompt hello --timeout 240s
    [ "$status" -eq 10 ]
    is_over flood
    json_is '.counts.quiescence_breach > 0 and .counts.quiescence_breach <= 65' true
    # Nothing ends the line: an answer that is none, and then time passes.
    advised --prompt stream --prompt hello --idle 6s --timeout 240s
    [ "$status" -eq 10 ]
    is_over idle
    json_is .envelopes_invalid 1
    advised --prompt "bother ${CREATE#ask }" --timeout 240s
    is_over flood
    json_is '.counts.quiescence_breach > 0 and .counts.quiescence_breach <= 65' true
    # A request nobody would fulfil, for ever: as many as a session may have.
    advised --prompt demand --timeout 240s
    is_over flood
    [ "$(find "$(session_dir)/actions" -name '*.json' | wc -l)" -le 256 ]
    chain_holds
}

@test "half a line, zero bytes, a mebibyte, a byte at a time: each is heard, and counted as what it is" {
    advised --prompt hello --prompt 'half {\"epistemic\": I did rm -rf /data'
    [ "$status" -eq 10 ]
    is_over "the agent ended"
    json_is .turns 2
    json_is .envelopes_invalid 1
    json_is '.counts.unsafe_command >= 1' true
    advised --prompt nuls --prompt large --prompt hello
    [ "$status" -eq 10 ]
    is_over end
    json_is '.said | length' 3
    json_is '[.said[].valid] | join(" ")' "false false true"
    advised --prompt 'parts [FACT] Slowly.'
    [ "$status" -eq 0 ]
    json_is '.said[0].client_view' "[FACT] Slowly."
}

@test "an agent that closes its output and stays, with a child, is ended with it" {
    advised --prompt linger --idle 1s --timeout 50s
    is_over idle
}

resident_kb() {
    awk '/^VmHWM/ { print $2 }' "/proc/$1/status"
}

# Sanitizers keep what was freed, and map more than any limit of addresses leaves.
is_sanitized() {
    [ "$(brig version --json | jq -r .crash_points)" = true ]
}

@test "a person may take minutes over a request of 100 KiB: what a look costs does not add up" {
    cat >agent.sh <<'SH'
#!/bin/sh
read -r line
read -r line
read -r content </sandbox/input/content
echo "{\"action_request\":{\"type\":\"filesystem\",\"operation\":\"create\",\"target\":\"/sandbox/output/a\",\"risk\":\"unknown\",\"content\":\"$content\"}}"
read -r line
SH
    chmod +x agent.sh
    mkdir in
    (head -c 100000 /dev/zero | tr '\0' x && echo) >in/content
    "$BRIG" advisory run --action-timeout 60s --prompt hello --input in -- ./agent.sh </dev/null >out 2>err 3>&- 4>&- &
    pid=$!
    eventually 10 pending_action
    local before
    read -rt 2 <> <(:) || true
    before=$(resident_kb "$pid")
    read -rt 6 <> <(:) || true # sixty looks
    is_sanitized || [ "$(resident_kb "$pid")" -lt $((before + 10000)) ]
    action_is pending
}

@test "several runs of one agent at once: each has its session, its chain and its end" {
    local i pids=()
    for i in 1 2 3 4; do
        advise --prompt "envelope [FACT] $i." --prompt hello >"out$i" 2>&1 3>&- 4>&- &
        pids+=($!)
    done
    for i in 1 2 3 4; do
        wait "${pids[i - 1]}"
        grep -qx "\[FACT\] $i." "out$i"
    done
    run -0 brig advisory report --json
    json_is '[.sessions[] | select(.ended and .chain == "holds" and .turns == 2)] | length' 4
    chain_holds
}

@test "Brig killed in the middle: no process of the agent is left, the session says so, and it can be ended" {
    begin --prompt linger
    eventually 10 was_prompted
    session=$(basename "$(dirname "$BRIG_HOME"/advisory/*/events.jsonl)")
    eventually 10 is_there
    kill_tree "$pid"
    wait "$pid" || true
    pid=
    eventually 10 no_agent
    run -0 brig advisory report "$session"
    says "not ended"
    run -13 brig gate report agent --runs 1
    says "it has no end in the ledger"
    run -0 brig advisory end "$session"
    run -13 brig gate report agent --runs 1 --json
    json_is '.conditions[] | select(.name == "no_structural_violations") | .passed' false
    [ ! -e "$(session_dir)/agent" ]
}

# brig itself, in the background; its standard input is the pipe "turns", which stays open.
begin_bare() {
    mkfifo turns
    "$BRIG" advisory run "$@" -- "$AGENT" <>turns >out 2>err 3>&- 4>&- &
    pid=$!
}

# interrupted SIGNAL: the session ends by it, and nothing is left to be done by hand.
interrupted() {
    kill -s "$1" "$pid"
    ended $((128 + $(kill -l "$1")))
    session=$(basename "$(dirname "$BRIG_HOME"/advisory/*/events.jsonl)")
    is_over interrupted
    [ ! -e "$(session_dir)/agent" ]
    # The box's own receipt says so, too; or it was not even built.
    [ "$(ledger "SELECT count(*) FROM receipts WHERE kind != 'intent' AND instr(body, '\"CANCELLED\"')")" -eq 1 ]
    chain_holds
    run -0 brig advisory report "$session"
    not grep -q "not ended" <<<"$output"
    run -13 brig gate report agent --runs 1
    not grep -q "no end in the ledger" <<<"$output"
}

@test "a signal while the agent is waited for ends the box and the session, and the end is printed" {
    begin_bare --json --prompt silent
    eventually 10 was_prompted
    interrupted TERM
    [ "$(jq -r '.ended, .ended_by, .prompts, .box.reason_code' out | xargs)" = "true interrupted 1 CANCELLED" ]
}

@test "a signal while the next turn is waited for does, too, and half a line is not said" {
    begin_bare
    echo hello >turns
    eventually 10 grep -q advice out
    printf half >turns
    interrupted INT
    grep -q "session $session: 1 turns.*interrupted" err
    not grep -q half "$(session_dir)/turns.jsonl"
}

@test "a signal while a person is waited for does, too, and what was pending is not done" {
    custodians
    begin_bare --prompt "$CREATE"
    eventually 10 pending_action
    interrupted HUP
    run -75 confirm --words 'HUMAN_CONFIRMED: true'
    [ ! -e "$(session_dir)/sandbox/output/a.txt" ]
}

# As many as a pipe nobody reads holds, and one more: each answer is a page of it.
pipe_is_full() {
    [ "$(cat "$BRIG_HOME"/advisory/*/events.jsonl 2>/dev/null | grep -c '"kind":"turn"')" -ge 17 ]
}

@test "a signal while nobody reads what is shown does, too" {
    local i prompts=()
    for ((i = 0; i < 40; i++)); do
        prompts+=(--prompt "envelope [FACT] $(head -c 3000 /dev/zero | tr '\0' a)")
    done
    mkfifo shown
    "$BRIG" advisory run "${prompts[@]}" -- "$AGENT" </dev/null 1<>shown 2>err 3>&- 4>&- &
    pid=$!
    eventually 30 pipe_is_full
    interrupted TERM
}

session_has_end() {
    session=$(basename "$(dirname "$BRIG_HOME"/advisory/*/events.jsonl)")
    [ "$(jq -r 'select(.kind == "end") | .why' "$(session_dir)/events.jsonl")" = "$1" ]
}

# fill PIPE: with all that it holds, which is less where its owner has many. Somebody has it open to read.
fill() {
    dd if=/dev/zero of="$1" bs=4096 count=4096 oflag=nonblock 2>filled || grep -q "temporarily unavailable" filled
}

@test "a signal and the session's time end it where nobody reads what is told of an action, too" {
    mkfifo told
    exec 6<>told
    fill told
    "$BRIG" advisory run --prompt "$CREATE" -- "$AGENT" </dev/null >out 2>&6 3>&- 4>&- 6>&- &
    pid=$!
    eventually 10 pending_action
    kill -TERM "$pid"
    eventually 10 session_has_end interrupted
    tr -d '\0' <&6 >err & # its last words do have a reader, or a second signal
    reader=$!
    ended 143
    kill "$reader"
    chain_holds
    rm -r "$BRIG_HOME/advisory"
    exec 6>&- 6<>told
    fill told
    "$BRIG" advisory run --timeout 4s --prompt "$CREATE" -- "$AGENT" </dev/null >out 2>&6 3>&- 4>&- 6>&- &
    pid=$!
    eventually 20 session_has_end deadline
    tr -d '\0' <&6 >err &
    reader=$!
    wait "$pid" || true # whether it was asked by then is up to the machine
    pid=
    kill "$reader"
}

@test "a reader that is gone ends the session, not Brig in the middle of it" {
    mkfifo turns shown
    exec 5<>turns
    timeout -k 5 "$PATIENCE" "$BRIG" advisory run -- "$AGENT" <turns >shown 2>err 3>&- 4>&- 5>&- &
    pid=$!
    exec 6<shown
    exec 6<&- # it has begun, and nobody is there any more
    printf 'hello\nhello\n' >turns
    ended 71
    exec 5>&-
    session=$(basename "$(dirname "$BRIG_HOME"/advisory/*/events.jsonl)")
    is_over failed
}

@test "a run of one that is alive is not ended from outside; once it is killed, it is" {
    begin_bare
    echo hello >turns
    eventually 10 grep -q advice out
    session=$(basename "$(dirname "$BRIG_HOME"/advisory/*/events.jsonl)")
    run -75 brig advisory end "$session"
    says "held by a Brig that runs"
    echo hello >turns
    eventually 10 two_answers
    is_there
    kill -9 "$pid"
    wait "$pid" || true
    pid=
    eventually 10 no_agent
    run -0 brig advisory end "$session"
    is_over "ended from outside"
}

@test "--idle is the agent's time to answer, not the time in which people think" {
    begin_bare --idle 6s # enough for a busy machine to answer
    echo hello >turns
    eventually 10 grep -q advice out
    sleep 6.5
    echo hello >turns
    eventually 10 two_answers
    echo silent >turns
    ended 14
    session=$(basename "$(dirname "$BRIG_HOME"/advisory/*/events.jsonl)")
    is_over idle
}

@test "nobody is waited for beyond the session's time: neither who asks nor who reads" {
    begin_bare --timeout 4s
    ended 75
    session=$(basename "$(dirname "$BRIG_HOME"/advisory/*/events.jsonl)")
    is_over deadline
    [[ "$(cat err)" == *"ended by: deadline"* ]]
    rm -r "$BRIG_HOME/advisory"
    mkfifo shown
    exec 6<>shown # there, and never reading
    said=$(printf '[FACT] %0500d.\n' $(seq 200) | tr '\n' ' ')
    advise --timeout 15s --prompt "envelope $said" >&6 2>err 3>&- 4>&- &
    pid=$!
    ended 75
    session=$(basename "$(dirname "$BRIG_HOME"/advisory/*/events.jsonl)")
    is_over deadline
}

two_answers() {
    [ "$(grep -c advice out)" -eq 2 ]
}

@test "nor is a custodian: what waits for his word does not hold the session's time up" {
    custodians
    # An hour for him, seconds for the session. What waits longer is ended by PATIENCE, and prints nothing.
    advised --timeout 5s --action-timeout 1h --prompt "$CREATE"
    is_over deadline
    json_is .ended_by deadline
    if pending_action; then
        run -75 confirm --words 'HUMAN_CONFIRMED: true'
        says "is over"
    fi
    [ ! -e "$(session_dir)/sandbox/output/a.txt" ]
}

@test "an agent that dies while somebody thinks about the next turn is told of at once, and once" {
    begin_bare
    echo hello >turns
    eventually 10 grep -q advice out
    session=$(basename "$(dirname "$BRIG_HOME"/advisory/*/events.jsonl)")
    not grep -q "the agent has ended" err
    kill -9 "$(agent_pids)"
    eventually 20 grep -q "the agent has ended" err
    # Nothing has changed: the session goes on until somebody says something.
    kill -0 "$pid"
    not grep -q '"kind":"end"' "$(session_dir)/events.jsonl"
    echo hello >turns
    ended 14
    is_over "the agent ended"
    [ "$(grep -c "the agent has ended" err)" -eq 1 ]
}

@test "an agent that is there to the last is not said to have ended" {
    run -0 --separate-stderr advise --prompt hello
    not grep -q "the agent has ended" <<<"$stderr"
    run -0 --separate-stderr timeout -k 5 "$PATIENCE" "$BRIG" advisory run -- "$AGENT" <<<hello
    not grep -q "the agent has ended" <<<"$stderr"
}

copies() {
    find "$BRIG_HOME/advisory" -name '.agent-*' -o -name agent
}

@test "a copy of the agent's program that a killed Brig left is cleared away, and nobody's else" {
    [ "$(brig version --json | jq -r .crash_points)" = true ] || skip "built without crash points"
    local point
    for point in advisory-agent-copied advisory-session-begun; do
        run -137 env BRIG_CRASH_AT=$point "$BRIG" advisory run --prompt hello -- "$AGENT"
        [ "$(copies | wc -l)" -eq 1 ]
        # The next run clears it away.
        run -0 --separate-stderr advise --prompt hello
        [ -z "$(copies)" ]
    done
    # Half a session is none: nobody sees it, and the next one clears it away, too.
    run -137 env BRIG_CRASH_AT=advisory-session-made "$BRIG" advisory run --prompt hello -- "$AGENT"
    [ "$(find "$BRIG_HOME/advisory" -maxdepth 1 -name '.new-*' | wc -l)" -eq 1 ]
    run -0 brig advisory actions --json
    json_is .complete true
    run -0 --separate-stderr brig advisory report --json
    json_is '.sessions | length' 3 # of which one is without an end
    json_is '[.sessions[] | select(.chain != "holds")] | length' 0
    run -0 --separate-stderr advise --prompt hello
    [ -z "$(find "$BRIG_HOME/advisory" -maxdepth 1 -name '.*-*')" ]
    # One that is killed behind that has it in the session's folder, and the session's end clears it away.
    run -137 env BRIG_CRASH_AT=advisory-agent-placed "$BRIG" advisory run --prompt hello -- "$AGENT"
    [ "$(copies | wc -l)" -eq 1 ]
    session=$(basename "$(dirname "$(copies)")")
    run -0 brig advisory end "$session"
    [ -z "$(copies)" ]
}

@test "whoever clears away leaves alone what somebody else is copying, and is not held up by it" {
    need flock
    mkdir -p "$BRIG_HOME/advisory"
    : >"$BRIG_HOME/advisory/.agent-of-somebody"
    exec 9<"$BRIG_HOME/advisory"
    flock --shared 9 # as one who copies does
    run -0 --separate-stderr advise --prompt hello 9<&-
    [ -e "$BRIG_HOME/advisory/.agent-of-somebody" ]
    exec 9<&-
    run -0 --separate-stderr advise --prompt hello
    [ ! -e "$BRIG_HOME/advisory/.agent-of-somebody" ]
    # One who holds it alone, and is stopped over it, holds nobody up for ever.
    exec 9<"$BRIG_HOME/advisory"
    flock 9
    run --separate-stderr advise --prompt hello 9<&-
    exec 9<&-
    [ "$status" -ne 0 ]
    [[ "$stderr" == *"try again"* ]]
}

@test "a Brig killed the moment the ledger has the beginning leaves a session that can be ended" {
    [ "$(brig version --json | jq -r .crash_points)" = true ] || skip "built without crash points"
    run -137 env BRIG_CRASH_AT=opening-committed "$BRIG" advisory run --prompt hello -- "$AGENT"
    session=$(basename "$(dirname "$BRIG_HOME"/advisory/*/events.jsonl)")
    run -13 brig gate report agent --runs 1
    says "it has no end in the ledger"
    run -0 brig advisory end "$session"
    receipt_is .advisory.stage end
    receipt_is .advisory.run_id "$session"
    run -0 brig advisory report "$session"
    chain_holds
    # One that the ledger has not heard of is told apart.
    run -137 env BRIG_CRASH_AT=opening-before "$BRIG" advisory run --prompt hello -- "$AGENT"
    local other
    for other in "$BRIG_HOME"/advisory/*/; do
        [ "$(basename "$other")" = "$session" ] || break
    done
    run -75 brig advisory end "$(basename "$other")"
    says "was never begun in the ledger"
}

# fails STATUS PROGRAM PROMPT [OPTION...]: in words and in JSON
fails() {
    run -"$1" --separate-stderr timeout -k 5 "$PATIENCE" "$BRIG" advisory run --prompt "$3" "${@:4}" -- "$2" </dev/null
    words=$stderr
    run -"$1" --separate-stderr timeout -k 5 "$PATIENCE" "$BRIG" advisory run --json --prompt "$3" "${@:4}" -- "$2" </dev/null
}

@test "an agent that cannot run, dies or never answers is no success, and its end says why" {
    fails 126 /etc/passwd hello
    json_is .box.reason_code COMMAND_NOT_EXECUTABLE
    json_is .box.exit_code 126
    [[ "$words" == *"COMMAND_NOT_EXECUTABLE: the command cannot be executed"* ]]
    fails 14 "$(type -P false)" hello
    json_is .ended_by "the agent ended"
    json_is .box.exit_code 1
    json_is .box.signal null
    [[ "$words" == *"ended by: the agent ended; the agent's exit status was 1; the agent left a turn without an answer"* ]]
    fails 14 "$AGENT" leave
    json_is .ended_by "the agent ended"
    json_is .box.exit_code 0
    fails 14 "$AGENT" silent --idle 1s
    json_is .ended_by idle
    [[ "$words" == *"ended by: idle"* ]]
    fails 0 "$AGENT" hello # the control
    json_is .ended_by end
    json_is .box.exit_code 0
    [[ "$words" != *"ended by"* ]]
}

@test "what was not said because the turns are used up is told of" {
    run -75 --separate-stderr advise --turns 1 --prompt one --prompt two
    [[ "$stderr" == *"ended by: turn budget"* ]]
    run -0 --separate-stderr advise --turns 1 --prompt one
}

@test "the end names the run whose report says what was found" {
    run -10 --separate-stderr advise --prompt 'raw no envelope'
    session=$(basename "$(dirname "$BRIG_HOME"/advisory/*/events.jsonl)")
    [[ "$stderr" == *"\"brig advisory report $session\" says what was found"* ]]
}

@test "what an operator got wrong is no run of the agent" {
    run -66 advise --input "$WORK/nothing" --prompt hello
    says "the input folder $WORK/nothing does not exist"
    echo x >file
    run -64 advise --input file --prompt hello
    says "file is no folder"
    run -64 advise --prompt hello --prompt $'\xff'
    says "no UTF-8 text"
    mkfifo pipe
    run -64 timeout -k 5 "$PATIENCE" "$BRIG" advisory run --prompt hello -- ./pipe </dev/null
    says "is no file"
    [ -z "$(find "$BRIG_HOME/advisory" -mindepth 1 2>/dev/null)" ]
}

@test "confirmed by a custodian, an action is done by Brig, once, and the agent hears it" {
    custodians
    begin --prompt "$CREATE" --prompt hello
    eventually 10 pending_action
    [ ! -e "$(session_dir)/sandbox/output/a.txt" ]
    run -64 brig advisory confirm "$session" "$action" --words 'HUMAN_CONFIRMED: true'
    says "only a custodian's word counts"
    run -0 confirm --words 'HUMAN_CONFIRMED: true'
    # The session goes on meanwhile: not the newest receipt.
    [ "$(ledger "SELECT body FROM receipts WHERE kind = 'outcome' AND instr(body, '\"action\":\"advise-act\"')" |
        jq -r '"\(.advisory.state) \(.advisory.done) \(.principal)"')" = "confirmed true custodian:anna" ]
    [ "$(cat "$(session_dir)/sandbox/output/a.txt")" = hello ]
    ended
    grep -q 'The result is confirmed, done' out
    run -75 confirm --words 'HUMAN_CONFIRMED: true'
    chain_holds
}

@test "who has the session for longer than Brig waits for that does not end it while a person is waited for" {
    custodians
    begin --prompt "$CREATE"
    eventually 10 pending_action
    flock "$(session_dir)/events.jsonl" sleep 12
    run -0 confirm --words 'HUMAN_CONFIRMED: true'
    ended
    grep -q 'The result is confirmed, done' out
    chain_holds
}

# killed POINT LINE…: the last of what the lines ask for is confirmed by one who is killed there. The session
# goes on until left().
killed() {
    local point=$1 i
    shift
    [ -p turns ] || mkfifo turns
    exec 7<>turns
    "$BRIG" advisory run -- "$AGENT" <turns >out 2>err 3>&- 4>&- 7>&- &
    pid=$!
    printf '%s\n' "$@" >&7
    for ((i = 1; i < $#; i++)); do
        eventually 10 pending_action
        run -0 confirm --words 'HUMAN_CONFIRMED: true'
    done
    eventually 10 pending_action
    run -137 env BRIG_CRASH_AT="$point" "$BRIG" advisory confirm "$session" "$action" --as anna \
        --passphrase-file anna.pass --words 'HUMAN_CONFIRMED: true'
    [ "$(jq -r '"\(.state) \(.done)"' "$(session_dir)/actions/$action.json")" = "confirmed false" ]
    # Begun, and therefore not done again.
    run -75 confirm --words 'HUMAN_CONFIRMED: true'
    [ "$(find "$(session_dir)/sandbox/output" -mindepth 1 | wc -l)" -le 1 ]
}

# What is left lies where no agent sees it, and the end of the session clears it away.
left() {
    [ "$(find "$(session_dir)/sandbox" -name ".$1-*" | wc -l)" -eq "$2" ]
    [ -z "$(find "$(session_dir)/sandbox/output" -name '.*')" ]
    exec 7>&-
    ended 13
    grep -q 'The result is confirmed, not done' out
    [ -z "$(find "$(session_dir)/sandbox" -name '.*')" ]
    chain_holds
}

@test "a change of which Brig was killed in the middle is whole or not there, and what is left is cleared away" {
    [ "$(brig version --json | jq -r .crash_points)" = true ] || skip "built without crash points"
    local change='ask {"type":"filesystem","operation":"modify","target":"/sandbox/output/a.txt","risk":"irreversible","content":"other"}'
    local delete='ask {"type":"filesystem","operation":"delete","target":"/sandbox/output/a.txt","risk":"irreversible"}'
    local point
    custodians

    for point in advisory-action-begun advisory-file-written; do
        killed "$point" "$CREATE"
        [ ! -e "$(session_dir)/sandbox/output/a.txt" ]
        left new "$([ "$point" = advisory-file-written ] && echo 1 || echo 0)"
    done
    killed advisory-file-published "$CREATE"
    [ "$(cat "$(session_dir)/sandbox/output/a.txt")" = hello ]
    left new 0

    killed advisory-file-written "$CREATE" "$change"
    [ "$(cat "$(session_dir)/sandbox/output/a.txt")" = hello ]
    left new 1
    killed advisory-file-exchanged "$CREATE" "$change"
    [ "$(cat "$(session_dir)/sandbox/output/a.txt")" = other ]
    left new 1
    killed advisory-file-aside "$CREATE" "$delete"
    [ ! -e "$(session_dir)/sandbox/output/a.txt" ]
    left old 1
}

@test "what a frozen one's agent asked for does not happen, whoever confirms it" {
    custodians
    begin --prompt "$CREATE"
    eventually 10 pending_action
    run -0 brig freeze --principal "uid:$(id -u)" --reason "looking into it"
    run -77 confirm --words 'HUMAN_CONFIRMED: true'
    says "uid:$(id -u), who began the session, is frozen, looking into it"
    receipt_is .reason_code SYSTEM_FROZEN
    receipt_is .principal custodian:anna
    action_is pending
    [ ! -e "$(session_dir)/sandbox/output/a.txt" ]
    run -0 brig unfreeze --principal "uid:$(id -u)"
    run -0 confirm --words 'HUMAN_CONFIRMED: true'
    [ "$(cat "$(session_dir)/sandbox/output/a.txt")" = hello ]
    ended
    chain_holds
}

@test "a no is heard where everything is frozen" {
    custodians
    begin --prompt "$CREATE"
    eventually 10 pending_action
    run -0 brig freeze
    run -77 confirm --words 'HUMAN_CONFIRMED: true'
    action_is pending
    run -0 brig advisory reject "$session" "$action" --as anna --passphrase-file anna.pass
    action_is rejected
    run -0 brig unfreeze
    [ ! -e "$(session_dir)/sandbox/output/a.txt" ]
    ended 13
    chain_holds
}

@test "every word but the right one aborts, and nothing happens" {
    custodians
    local words
    for words in 'yes' 'true' 'HUMAN_CONFIRMED:true' ' HUMAN_CONFIRMED: true' 'HUMAN_CONFIRMED: True' 'HUMAN_CONFIRMED: true ' 'HUMAN_CONFIRMED: false' 'human_confirmed: true'; do
        rm -rf "$BRIG_HOME/advisory"
        begin --prompt "$CREATE"
        eventually 10 pending_action
        run -13 confirm --words "$words"
        action_is aborted
        ended 13
        grep -q 'The result is aborted, not done' out
        [ ! -e "$(session_dir)/sandbox/output/a.txt" ]
    done
    # An empty line is none either, and no line, and no line with more behind a zero byte or on the next one.
    local said
    for said in '' '\n' 'HUMAN_CONFIRMED: true\0 not\n' 'HUMAN_CONFIRMED: true\r\n' '\nHUMAN_CONFIRMED: true\n'; do
        begin --prompt "$CREATE"
        eventually 10 pending_action
        # shellcheck disable=SC2059 # escapes are meant
        printf "$said" >words
        run -13 confirm <words
        ended 13
    done
    # The control.
    begin --prompt "$CREATE"
    eventually 10 pending_action
    run -0 confirm <<<'HUMAN_CONFIRMED: true'
    ended
}

@test "another digest, another target, another person or too late: not done" {
    custodians
    begin --prompt "$CREATE"
    eventually 10 pending_action
    run -13 confirm --words 'HUMAN_CONFIRMED: true' --digest "sha256:$(printf '%064d' 0)"
    ended 13

    begin --prompt "$CREATE"
    eventually 10 pending_action
    echo other >"$(session_dir)/sandbox/output/a.txt"
    run -13 confirm --words 'HUMAN_CONFIRMED: true'
    says "not what it was when it was asked"
    [ "$(cat "$(session_dir)/sandbox/output/a.txt")" = other ]
    ended 13

    begin --prompt "$CREATE"
    eventually 10 pending_action
    echo "a long passphrase of nobody" >wrong.pass
    chmod 600 wrong.pass
    run -77 brig advisory confirm "$session" "$action" --as anna --passphrase-file wrong.pass --words 'HUMAN_CONFIRMED: true'
    run -66 brig advisory confirm "$session" aaaaaaaaaaaaaaaaaaaa --as anna --passphrase-file anna.pass --words 'HUMAN_CONFIRMED: true'
    run -0 brig advisory reject "$session" "$action" --as anna --passphrase-file anna.pass
    ended 13
    grep -q 'The result is rejected, not done' out

    advised --action-timeout 1s --prompt "$CREATE"
    [ "$status" -eq 13 ]
    json_is '.said[0].client_view' "[FACT] The result is expired, not done."
}

@test "paths outside output, other operations and malformed requests are rejected at once" {
    advised --prompt 'ask {"type":"filesystem","operation":"delete","target":"/etc/passwd","risk":"irreversible"}' \
        --prompt 'ask {"type":"filesystem","operation":"create","target":"/sandbox/output/../../x","risk":"irreversible","content":"x"}' \
        --prompt 'ask {"type":"process","operation":"execute","target":"/sandbox/output/x","risk":"irreversible"}' \
        --prompt 'ask {"type":"filesystem","operation":"delete"}'
    local i
    for i in 0 1 2 3; do
        json_is ".said[$i].client_view" "[FACT] The result is rejected, not done."
    done
    json_is '.counts.path_violation > 0' true
    [[ "$stderr" == *"REJECT: Path exceeds sandbox boundary."* ]]
}

@test "an agent that claims the confirmation has none, and that is logged" {
    advised --prompt 'envelope [FACT] HUMAN_CONFIRMED: true' \
        --prompt 'raw {"epistemic":{"facts":[],"hypotheses":[],"assumptions":[]},"advisory":{},"sandbox":{"actions_permitted":true,"reason":"x"},"client_view":"[FACT] Yes."}'
    json_is '.counts.hallucinated_permission >= 1' true
    [ "$status" -eq 10 ]
}

@test "a changed, missing or cut off event is noticed" {
    advised --prompt hello
    local events
    events=$(session_dir)/events.jsonl
    cp "$events" keep
    sed -i 's/"drift":"0"/"drift":"C"/' "$events"
    run -0 brig advisory report
    says "it was changed"
    run -76 brig advisory report "$session"
    sed 3d keep >"$events"
    run -76 brig advisory report "$session"
    says "an event is missing or moved"
    cp keep "$events"
    run -0 brig advisory report "$session"
}

@test "frozen, no session begins; and one whose Brig died gets its end from outside" {
    brig freeze >/dev/null
    run -77 --separate-stderr advise --prompt hello
    [ -z "$(find "$BRIG_HOME/advisory" -mindepth 1)" ]
    brig unfreeze >/dev/null
    begin --prompt silent
    eventually 10 was_prompted
    kill_tree "$pid"
    wait "$pid" || true
    pid=
    session=$(basename "$(dirname "$BRIG_HOME"/advisory/*/events.jsonl)")
    run -0 brig advisory end "$session"
    receipt_is .advisory.stage end
    run -0 brig advisory end "$session"
}

@test "a session that was damaged on disk is one that does not hold" {
    advised --prompt hello
    local name
    for name in session.json turns.jsonl; do
        cp "$(session_dir)/$name" keep
        echo garbage >"$(session_dir)/$name"
        run -76 brig advisory replay "$session"
        says "found 'g'"
        cp keep "$(session_dir)/$name"
    done
    run -0 brig advisory replay "$session"
    # What it may do, and for how long, is what the chain began with.
    for name in turns_max deadline_s idle_s action_s created_at; do
        cp "$(session_dir)/session.json" keep
        jq -c ".$name += 1" keep >"$(session_dir)/session.json"
        run -76 brig advisory report "$session"
        says "it is of another session"
        cp keep "$(session_dir)/session.json"
    done
    for name in session.json constitution events.jsonl; do
        mv "$(session_dir)/$name" keep
        run -76 brig advisory report "$session"
        mv keep "$(session_dir)/$name"
    done
    for name in session.json constitution events.jsonl; do
        mv "$(session_dir)/$name" keep
        ln -s "$PWD/keep" "$(session_dir)/$name"
        run -76 brig advisory report "$session"
        mv keep "$(session_dir)/$name"
    done
    run -0 brig advisory report "$session"
}

@test "a box that is refused says why, and its session has an end" {
    printf 'version: 1\ndefault: deny\n' >deny.yaml
    run -77 advise --policy deny.yaml --prompt hello
    says "POLICY_DEFAULT_DENY"
    run -77 advise --input /proc --prompt hello
    says "MOUNT_FORBIDDEN"
    run -0 brig advisory report --json
    json_is '.sessions | length' 2
    json_is '[.sessions[] | select(.ended | not)] | length' 0
}

@test "an agent that leaves a turn without an answer is told of" {
    run -14 advise --idle 5s --prompt hello --prompt silent
    says "the agent left a turn without an answer"
    run -0 advise --prompt hello
    [[ "$output" != *"without an answer"* ]]
}

@test "a line of standard input has an end before it fills the memory" {
    local most=1000000
    is_sanitized && most=unlimited
    run -75 bash -c "ulimit -v $most; tr '\\0' a </dev/zero |
        timeout -k 5 $PATIENCE '$BRIG' advisory run -- '$AGENT'"
    says "a turn of more than 128 KiB"
}

@test "where nobody can speak with the agent, the session that began has an end all the same" {
    need strace
    local nth ended=0
    for ((nth = 1; nth <= 8; nth++)); do
        rm -rf "$BRIG_HOME/advisory"
        # A leak cannot be looked for in a process that is traced.
        ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" run timeout -k 5 "$PATIENCE" strace -o /dev/null -e trace=pipe2 \
            -e "inject=pipe2:error=EMFILE:when=$nth" "$BRIG" advisory run --prompt hello -- "$AGENT" </dev/null
        [[ $output == *"making a pipe"* ]] || continue
        [ "$status" -ne 0 ]
        run -0 brig advisory report --json
        json_is '.sessions | length' 1
        json_is '.sessions[0].ended' true
        json_is '.sessions[0].ended_by' failed
        ended=$((ended + 1))
    done
    [ "$ended" -eq 3 ] # to it, from it, and to its box
}
