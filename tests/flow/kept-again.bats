#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Several commands of one process in one sandbox: PID 1 runs them itself, over one connection, and
# looks each time at what can have changed since.

load common
load sandbox
load kept

setup() {
    common_setup
    begin_execs
    ask create
    id=$ended
    [ "${#id}" -eq 20 ]
}

teardown() {
    end_execs
    destroy_all
}

begin_execs() {
    mkdir -p -m 700 "$BRIG_HOME"
    coproc EXECS { exec "$BRIG_BUILD/tests/flow/spawner/execs" "$BRIG_HOME" 2>"$WORK/execs.err"; }
    execs_pid=$EXECS_PID
    number=0
}

end_execs() {
    [ -z "${execs_pid:-}" ] || kill "$execs_pid" 2>/dev/null || true
}

# ask LINE: its answer; what was written before is in $output, how it ended in $ended.
ask() {
    local line
    number=$((number + 1))
    printf '%s\n' "$1" >&"${EXECS[1]}"
    output=
    while IFS= read -r -t "$PATIENCE" line <&"${EXECS[0]}"; do
        case $line in
        "line $number: "*)
            ended=${line#"line $number: "}
            return
            ;;
        esac
        output+=${output:+$'\n'}$line
    done
    return 1
}

# again CMD: one more command of that process in $id.
again() {
    ask "$id $1"
}

# beside SECONDS FILE: another process sleeps so long in it at the same time; its pid is $other.
beside() {
    printf '%s sleep %s\n' "$id" "$1" |
        timeout -k 5 $PATIENCE "$BRIG_BUILD/tests/flow/spawner/execs" "$BRIG_HOME" >"$2" 2>&1 3>&- &
    other=$!
    eventually 5 sleeps "$1"
}

# sleeps SECONDS: somebody in it does.
sleeps() {
    "$BRIG" sandbox ps "$id" --json | jq -e --arg command "sleep $1" '[.. | objects | select(.command? == $command)] | length > 0' >/dev/null
}

# ended_is TEXT: how the last one ended.
ended_is() {
    [ "${ended% }" = "$1" ] || {
        printf 'ended with "%s", should be "%s"; wrote "%s"\n' "$ended" "$1" "$output" >&2
        cat "$WORK/execs.err" >&2
        return 1
    }
}

runs() {
    again "${1:-echo on}"
    ended_is 'exit 0 signal 0'
}

@test "each has its own streams, status and receipts" {
    runs 'echo one; echo two >&2; pwd'
    [ "$(sort <<<"$output")" = $'/home/sandbox\none\ntwo' ]
    again 'exit 7'
    [[ "$ended" == "exit 7 signal 0"* ]]
    again 'kill -9 $$'
    [[ "$ended" == "exit 0 signal 9"* ]]
    runs 'cat | wc -c'
    [ "$output" = 0 ]
    again '/nowhere; exec /nowhere'
    [[ "$ended" == "exit 127 signal 0"* ]]
    runs 'cd /tmp && pwd'
    runs pwd
    [ "$output" = /home/sandbox ]
    each_run_ended
    chain_holds
}

@test "PID 1 is their parent, and no other process is made for them" {
    runs 'awk "/^PPid:/ { print \$2 }" /proc/self/status; cat /proc/$$/status | awk "/^PPid:/ { print \$2 }"'
    [ "$(tail -n 1 <<<"$output")" = 1 ]
    runs 'echo $$'
    first=$output
    runs 'echo $$'
    [ "$output" -eq $((first + 1)) ]
}

@test "what one leaves in the background ends with it, whose parent it ever was" {
    pid=$(pid_one)
    runs '(setsid sh -c "trap : HUP TERM; sleep 300 & wait" >/dev/null 2>&1 &) ; setsid sleep 300 >/dev/null 2>&1 & echo left'
    [ "$output" = left ]
    [ -z "$(descendants "$pid")" ]
    runs 'trap "" CHLD; for i in 1 2 3 4 5; do (sh -c "sleep 300 & sleep 300" &) ; done >/dev/null 2>&1; echo left'
    [ -z "$(descendants "$pid")" ]
    runs
}

alone() {
    [ -z "$(descendants "$pid")" ]
}

@test "others at the same time have a keeper, and neither ends the other's" {
    pid=$(pid_one)
    beside 300 out
    runs 'setsid sleep 301 >/dev/null 2>&1 & echo mine'
    [ "$output" = mine ]
    runs 'pgrep -x -f "sleep 30[01]" | wc -l; pgrep -x -f "sleep 300" | wc -l'
    [ "$output" = $'1\n1' ]
    kill "$other"
    wait "$other" || true
    eventually 2 alone
    runs
}

@test "a list of processes says whose they are, with a keeper or without" {
    beside 300 one
    beside 301 two
    output=$("$BRIG" sandbox ps "$id" --json)
    printf '%s\n' "$output" >&2
    [ "$(jq '[.. | objects | select(.command? // "" | test("^sleep 30[01]$")) | .exec] | unique | length' <<<"$output")" -eq 2 ]
}

@test "a paused sandbox refuses, and takes the next one when it goes on" {
    runs
    brig sandbox pause "$id"
    again 'echo no'
    ended_is 'denied SANDBOX_PAUSED'
    [ -z "$output" ]
    brig sandbox resume "$id"
    runs 'echo again'
    [ "$output" = again ]
}

@test "one that was destroyed is not found, and another process's walls are not taken for its" {
    runs
    brig sandbox destroy "$id"
    again 'echo no'
    ended_is 'error not_found'
    [ -z "$output" ]
}

@test "one that was built again by a snapshot has another PID 1, which is asked" {
    runs 'echo kept >file'
    before=$(pid_one)
    ask "snapshot $id"
    after=$(pid_one)
    runs 'cat file'
    [ "$output" = kept ]
    [ "$before" != "$after" ]
}

@test "a limit that was changed since is noticed" {
    need prlimit
    runs
    prlimit --pid "$(pid_one)" --nofile=64:64
    again 'echo no'
    ended_is 'denied PREFLIGHT_RESOURCE_LIMITS'
    [ -z "$output" ]
}

@test "a mount that came, went or changed since is noticed" {
    is_root || skip "only root can mount into a sandbox"
    need nsenter
    pid=$(pid_one)
    runs
    nsenter -t "$pid" -m mount -t tmpfs none /mnt
    again 'echo no'
    ended_is 'denied PREFLIGHT_MOUNT_POLICY'
    nsenter -t "$pid" -m umount /mnt
    runs
    nsenter -t "$pid" -m mount -o remount,bind,rw /usr
    again 'echo no'
    ended_is 'denied PREFLIGHT_MOUNT_POLICY'
    nsenter -t "$pid" -m mount -o remount,bind,ro,nosuid,nodev /usr
    runs
    nsenter -t "$pid" -m mount --bind /etc/alternatives /etc/fonts
    again 'echo no'
    ended_is 'denied PREFLIGHT_MOUNT_POLICY'
}

@test "an interface that came since is noticed" {
    is_root || skip "only root can give a sandbox an interface"
    need nsenter ip
    pid=$(pid_one)
    runs
    nsenter -t "$pid" -n ip link add probe0 type veth peer name probe1 || skip "this kernel has no veth"
    again 'echo no'
    [[ "$ended" == denied\ PREFLIGHT_* ]]
    nsenter -t "$pid" -n ip link delete probe0
    runs
}
