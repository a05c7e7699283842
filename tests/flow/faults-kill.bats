#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The program is ended at any moment, by a signal or at the crash points of the write path: the
# chain verifies, nothing goes on running, and the next command finds and closes what was open.

load common
load sandbox

# moment N OF: seconds from 0 to about twice what a run takes here, in OF steps.
measure_run() {
    local start=${EPOCHREALTIME/./}
    brig sandbox exec --quiet -- true </dev/null
    RUN_US=$((${EPOCHREALTIME/./} - start))
}

moment() {
    printf '0.%06d' $((RUN_US * 2 * $1 / $2 % 1000000))
}

# struck SIGNAL SECONDS ARGS…: one run that gets the signal after so long; its status in $struck.
struck() {
    local signal=$1 after=$2 pid
    shift 2
    "$BRIG" sandbox exec --quiet "$@" >/dev/null 2>&1 </dev/null &
    pid=$!
    sleep "$after"
    kill "-$signal" "$pid" 2>/dev/null || true
    struck=0
    wait "$pid" || struck=$?
}

# struck_at_work SIGNAL: one run that gets it while its command runs. On a machine that is busier than it was
# when it was measured, all the others may have been struck before they began.
struck_at_work() {
    local pid
    "$BRIG" sandbox exec --quiet -- sh -c 'sleep 300' "$marker-at-work" >/dev/null 2>&1 </dev/null &
    pid=$!
    works() { [ "$(pgrep -fc "$marker-at-work")" -gt 1 ]; } # Brig itself, and its command
    eventually 10 works
    kill "-$1" "$pid"
    wait "$pid" || true
    gone_soon "$marker-at-work"
}

still_running() {
    pgrep -f "$1" >/dev/null
}

gone_soon() {
    eventually 2 not still_running "$1" || {
        echo "still running: $(pgrep -af "$1")" >&2
        return 1
    }
}

# The next command closes what is open; then nothing is.
next_command_clears_up() {
    eventually 2 no_run_is_held
    run timeout -k 5 "$PATIENCE" "$BRIG" sandbox exec --quiet -- true </dev/null
    status_is 0
    chain_holds
    run brig receipts verify --json
    json_is .open_runs 0
    nothing_is_left
}

@test "SIGKILL at sixty moments" {
    measure_run
    marker=kill-me-$$-$RANDOM
    for i in $(seq 60); do
        struck KILL "$(moment "$i" 60)" -- sh -c 'sleep 300' "$marker"
        [ "$struck" -eq 137 ]
    done
    gone_soon "$marker"
    struck_at_work KILL
    next_command_clears_up
    [ "$(ledger "SELECT count(*) FROM receipts WHERE body LIKE '%RUN_ABANDONED%'")" -gt 0 ]
}

@test "SIGTERM and SIGINT at sixty moments: the run ends itself, with its receipt" {
    measure_run
    marker=end-me-$$-$RANDOM
    for i in $(seq 60); do
        signal=$([ $((i % 2)) -eq 0 ] && echo TERM || echo INT)
        struck "$signal" "$(moment "$i" 60)" -- sh -c 'sleep 300' "$marker"
        [ "$struck" -ne 0 ]
        run ! still_running "$marker"
        run brig receipts verify --json
        if [ -e "$BRIG_HOME/receipts.db" ]; then
            json_is .open_runs 0
        fi
    done
    struck_at_work TERM
    next_command_clears_up
    [ "$(ledger "SELECT count(*) FROM receipts WHERE body LIKE '%CANCELLED%'")" -gt 0 ]
    [ "$(ledger "SELECT count(*) FROM receipts WHERE body LIKE '%RUN_ABANDONED%'")" -eq 0 ]
}

# asked_to_end COMMAND…: it gets a SIGTERM once it has made the file out/ready; its status in $status.
asked_to_end() {
    mkdir out
    "$BRIG" sandbox exec --quiet --mount "$PWD/out:/workspace:rw" -- "$@" >/dev/null 2>&1 </dev/null &
    pid=$!
    eventually 10 test -e out/ready
    kill -TERM "$pid"
    await "$pid"
}

@test "a command that ignores the signal is ended all the same" {
    marker=stubborn-$$-$RANDOM
    asked_to_end perl -e '$SIG{TERM} = $SIG{INT} = "IGNORE"; open my $f, ">", "/workspace/ready"; sleep 300' "$marker"
    run ! still_running "$marker"
    receipt_is .reason_code CANCELLED
    receipt_is .outcome.signal 9
    nothing_is_left
}

@test "a signal reaches the command, which may end in its own way" {
    asked_to_end perl -e '$SIG{TERM} = sub { open my $f, ">", "/workspace/told"; exit 7 };
        open my $f, ">", "/workspace/ready"; sleep 300'
    [ "$status" -eq 7 ]
    [ -e out/told ]
    receipt_is .outcome.exit_code 7
    receipt_is .reason_code CANCELLED
}

@test "the death of brig ends a thousand detached processes" {
    marker=detached-$$-$RANDOM
    "$BRIG" sandbox exec --quiet --pids 2000 --timeout 5m -- perl -e '
        for (1 .. 1000) { my $p = fork; if (defined $p && !$p) { setpgrp; $SIG{$_} = "IGNORE" for qw(TERM INT HUP); sleep 300; exit } }
        sleep 300' "$marker" >/dev/null 2>&1 </dev/null &
    pid=$!
    a_thousand() { [ "$(pgrep -fc "$marker")" -gt 1000 ]; }
    eventually 10 a_thousand
    kill -KILL "$pid"
    gone_soon "$marker"
    wait "$pid" || true
    next_command_clears_up
}

@test "the death of box is the end of the run, which is recorded" {
    marker=orphan-$$-$RANDOM
    "$BRIG" sandbox exec -- sh -c 'sleep 300; true' "$marker" >log 2>&1 </dev/null &
    pid=$!
    has_begun() {
        still_running "sleep 300; true $marker" && box=$(pgrep -P "$pid") && [ -n "$box" ] &&
            [ "$(pgrep -fc "$marker")" -gt 1 ]
    }
    eventually 10 has_begun
    kill -KILL "$box"
    wait "$pid" && status=0 || status=$?
    output=$(cat log)
    status_is 69
    says "SANDBOX_FAILED"
    run ! still_running "$marker"
    receipt_is .reason_code SANDBOX_FAILED
    nothing_is_left
}

# ---- crash points ----

need_crash_points() {
    [ "$(brig version --json | jq -r .crash_points)" = true ] || skip "built without crash points"
}

POINTS="closing-before closing-committed closing-inserted closing-locked key-created key-written
    ledger-opened opening-before opening-committed opening-inserted opening-locked"

@test "the points below are those in the sources" {
    [ -d "$BRIG_ROOT/src" ] || skip "no sources here"
    run sed -n 's/.*CRASH_POINT(\(.*\));.*/\1/p' "$BRIG_ROOT"/src/{flow/record,lib/crypto,lib/store}/*.c
    # shellcheck disable=SC2086 # words
    [ "$(printf '%s\n' "$output" | grep -oE '"[a-z-]+"' | tr -d '"' | sort -u)" = "$(printf '%s\n' $POINTS)" ]
}

@test "killed at each point of the write path, what asks a person is seen by people with its receipt, or not at all" {
    need_crash_points
    printf 'version: 1\ndefault: ask\n' >ask.yaml
    for wait in "" "--wait 2m"; do
        for point in ledger-opened opening-before opening-committed opening-inserted opening-locked; do
            rm -rf "$BRIG_HOME"
            # shellcheck disable=SC2086 # words
            run env BRIG_CRASH_AT="$point" timeout -k 5 "$PATIENCE" "$BRIG" sandbox exec \
                --policy ask.yaml $wait -- true </dev/null
            status_is 137
            [ "$(brig approvals list --json | jq '.approvals | length')" -eq 0 ] || { echo "$point $wait" >&2; return 1; }
            run brig sandbox exec --json --policy ask.yaml -- true </dev/null
            status_is 77
            [ "$(brig approvals list --json | jq -r '.approvals[].approval_id')" = "$(jq -r .approval_id <<<"$output")" ]
            brig receipts verify >/dev/null
        done
    done
}

# run_asked: what is asked about.
run_asked() {
    run brig sandbox exec --json --policy ask.yaml -- true </dev/null
    approval=$(jq -r '.approval_id // empty' <<<"$output")
}

@test "killed at each point of the write path, a confirmation is one with its receipt, or none" {
    need_crash_points
    need sqlite3
    printf 'version: 1\ndefault: ask\n' >ask.yaml
    echo 'correct horse battery' >pass
    chmod 600 pass
    brig approvals enroll anna --passphrase-file pass >/dev/null
    for point in opening-before opening-locked opening-inserted opening-committed \
        closing-before closing-locked closing-inserted closing-committed; do
        run_asked
        status_is 77
        first=$approval
        run env BRIG_CRASH_AT="$point" timeout -k 5 "$PATIENCE" "$BRIG" approvals confirm "$first" --as anna --passphrase-file pass
        status_is 137
        case $point in
        opening-*) # nothing happened, and he says it once more
            run -0 brig approvals confirm "$first" --as anna --passphrase-file pass
            ;;
        closing-committed) ;;
        *) # it is not used, and is given again
            run_asked
            status_is 77
            says "the word of custodian:anna on approval $first does not count: whoever gave it was stopped before that was recorded"
            run_asked
            [ "$approval" != "$first" ]
            run -0 brig approvals confirm "$approval" --as anna --passphrase-file pass
            ;;
        esac
        run_asked
        status_is 0 || { echo "$point" >&2; return 1; }
        run_asked # once
        status_is 77
        sqlite3 "$BRIG_HOME/approvals.db" "DELETE FROM approvals" # for the next point
        brig receipts verify >/dev/null
    done
}

@test "killed at each point of the write path, what nobody answered in time has its receipt once" {
    need_crash_points
    need sqlite3
    printf 'version: 1\ndefault: ask\n' >ask.yaml
    for point in opening-before opening-locked opening-inserted opening-committed; do
        run_asked
        status_is 77
        sqlite3 "$BRIG_HOME/approvals.db" "UPDATE approvals SET expires_at = unixepoch() - 1"
        run env BRIG_CRASH_AT="$point" timeout -k 5 "$PATIENCE" "$BRIG" approvals list
        status_is 137
        brig approvals list
        brig approvals list
        [ "$(brig receipts export | jq -r --arg id "$approval" 'select(.action == "approval-expire" and .approval.approval_id == $id) | .kind')" = denial ] || {
            echo "$point" >&2
            return 1
        }
        brig receipts verify >/dev/null
    done
}

@test "killed at each point of the write path, with a new state and with an old one" {
    need_crash_points
    for state in new old; do
        for point in $POINTS; do
            rm -rf "$BRIG_HOME" out
            mkdir out
            [ $state = new ] || brig sandbox exec --quiet -- true </dev/null
            run env BRIG_CRASH_AT="$point" timeout -k 5 "$PATIENCE" "$BRIG" sandbox exec \
                --mount "$PWD/out:/workspace:rw" -- touch /workspace/ran </dev/null
            case $state-$point in
            old-key-*)
                status_is 0
                continue
                ;;
            esac
            status_is 137
            case $point in
            closing-*) [ -e out/ran ] ;;
            *) [ ! -e out/ran ] ;;
            esac
            next_command_clears_up
        done
    done
}
