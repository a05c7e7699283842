#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Sandboxes made by a spawner (docs/decisions/0013): the same walls, seen by the same preflight, and
# whoever of Brig is killed, nothing of them is alive 2 s later.

load attack

PLAIN=$BRIG_BUILD/src/cmd/cli/brig
BRIG=$BRIG_BUILD/tests/flow/spawner/brig-spawner
export BRIG

setup() {
    common_setup
    name=$(a_name)
}

teardown() {
    wait
}

# ahead_of PID: of a spawner's children the one that makes sets ahead (docs/decisions/0023); outer_of
# PID: the first other one.
ahead_of() {
    local child
    for child in $(<"/proc/$1/task/$1/children"); do
        [ "$(<"/proc/$child/comm")" != box-ahead ] || echo "$child"
    done
}

outer_of() {
    local child
    for child in $(<"/proc/$1/task/$1/children"); do
        [ "$(<"/proc/$child/comm")" = box-ahead ] || {
            echo "$child"
            return
        }
    done
}

# start: a sandbox with 20 processes that do not want to go; sets $brig, $spawner, $outer and $ahead.
start() {
    start_box -- /mnt/attack/linger "$name" 20 detach ignore stop
    brig=$box
    eventually 10 grep -q "$name" "$WORK/said"
    spawner=$(child_of "$brig")
    outer=$(outer_of "$spawner")
    ahead=$(ahead_of "$spawner")
    [ -n "$outer" ] && [ -n "$ahead" ]
    [ "$(tr '\0' ' ' <"/proc/$spawner/cmdline")" = "box spawner " ]
    [ "$(called "$name")" -ge 20 ] # control: they are there
}

gone_in_2s() {
    eventually 2 none_called "$name"
    eventually 2 eval "! kill -0 $outer 2>/dev/null"
    eventually 2 eval "! kill -0 $ahead 2>/dev/null"
    eventually 2 eval "! kill -0 $spawner 2>/dev/null"
    wait "$brig" || true
}

cleared_up() {
    run -0 box -- true
    nothing_left
    each_run_ended_once
}

# posture PROGRAM [OPTION…]: what a run's outcome says of its walls, without the version, which names
# the program.
posture() {
    local program=$1
    shift
    "$program" sandbox exec --quiet "$@" -- true </dev/null &&
        receipts 'last | .posture | [.sandbox_spec_hash, .image_digest, .mounts_hash,
            .egress_policy_hash, .resource_limits_hash, .evidence, (.degraded | length)] | @tsv'
}

@test "the posture is the same with and without a spawner" {
    mkdir in out
    plain=$(posture "$PLAIN" --mount "$PWD/in:/workspace" --mount "$PWD/out:/mnt/out:rw" --memory 64M)
    spawned=$(posture "$BRIG" --mount "$PWD/in:/workspace" --mount "$PWD/out:/mnt/out:rw" --memory 64M)
    [ -n "$plain" ]
    [ "$plain" = "$spawned" ]
    # control: another sandbox has another one
    [ "$(posture "$BRIG" --memory 64M)" != "$spawned" ]
}

# kept CMD…: in the sandbox $id.
kept() {
    "$BRIG" sandbox exec --quiet "$id" -- "$@" </dev/null
}

@test "a sandbox that stays outlives its spawner, and is what it would be without one" {
    id=$("$BRIG" sandbox create --json </dev/null | jq -r .sandbox_id)
    [ -n "$id" ]
    # Whoever made it has ended, and has waited for its spawner to end before that.
    run -1 kept sh -c "echo before >/tmp/a; touch /mark"
    says 'Read-only file system'
    run -0 "$BRIG" sandbox snapshot --json "$id"
    snapshot=$(jq -er .snapshot_id <<<"$output")
    run -0 kept sh -c 'cat /tmp/a; echo after >/tmp/a'
    says before
    run -0 "$BRIG" sandbox fork --json "$snapshot"
    branch=$(jq -er '.sandboxes[0].sandbox_id' <<<"$output")
    first=$id id=$branch
    run -0 kept cat /tmp/a
    says before
    run -0 "$PLAIN" sandbox destroy "$first"
    run -0 kept cat /tmp/a # control: one does not end with another
    run -0 "$PLAIN" sandbox destroy "$branch"
    run -0 "$PLAIN" snapshot remove "$snapshot"
    nothing_left
}

# runs: the lines of standard input, each in a sandbox of its own of one and the same spawner.
runs() {
    mkdir -p -m 700 "$BRIG_HOME"
    "$BRIG_BUILD/tests/flow/spawner/runs" "$BRIG_HOME"
}

@test "a template is not written to, and nothing of a sandbox shows in the next" {
    # The shared root belongs to the user inside; only its mount is read-only.
    run -0 runs <<'END'
for f in /mark /etc/mark /usr/mark /mnt/mark /var/empty/mark; do touch $f; done; chmod 700 /; echo mark >>/etc/passwd
touch /tmp/mark /dev/shm/mark /home/sandbox/mark /sandbox/output/mark && ipcmk -Q >/dev/null && sleep 100 & hostname
find / -xdev -name mark; find /tmp /dev /home /sandbox -name mark; grep mark /etc/passwd; ipcs -q | grep 0x; ls -d /proc/[0-9]* | wc -l; stat -c %a /
END
    [ "$(grep -c 'Read-only file system' <<<"$output")" -eq 7 ]
    answers 'line 2' 'exit 0 signal 0 ' # control: its own places are writable
    says $'sandbox\nline 2'
    says $'line 2: exit 0 signal 0 \n'
    [[ ${output#*line 2: exit 0 signal 0 } =~ ^$'\n'[0-9]+$'\n755\nline 3: exit 0' ]]
    nothing_left
}

@test "a spawner that died between two runs is noticed" {
    mkdir -p -m 700 "$BRIG_HOME"
    mkfifo lines
    "$BRIG_BUILD/tests/flow/spawner/runs" "$BRIG_HOME" <lines >said 2>&1 3>&- &
    owner=$!
    exec 4>lines
    echo 'echo one' >&4
    eventually 10 grep -q 'line 1: exit 0' said
    first=$(child_of "$owner")
    kill -KILL "$first"
    # Between two runs: what a dying one was asked is lost with it.
    eventually 10 grep -q '^State:.*Z' "/proc/$first/status"
    echo 'echo two' >&4
    eventually 10 grep -q 'line 2: exit 0' said
    [ "$(child_of "$owner")" != "$first" ]
    exec 4>&-
    wait "$owner"
    nothing_left
}

@test "what is made ahead is given to one sandbox, and nobody had it before" {
    # Each leaves marks that last as long as the namespace does, and says what it finds of others.
    cat >mark <<'END'
tail -n +3 /proc/net/dev | tr -s ' ' | cut -d' ' -f2-4
ls /dev/shm /dev/pts
ipcs -q | grep -c 0x
hostname
perl -MIO::Socket::INET -e 'my $l = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1", LocalPort => 7777) or die;
    IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => 7777) or die; print "connected\n"'
touch /dev/shm/mine
ipcmk -Q >/dev/null
for n in net ipc uts mnt; do readlink /proc/self/ns/$n; done
END
    line=$(tr '\n' ';' <mark)
    for i in 1 2 3 4 5 6 7 8 9 10; do
        echo "$line"
    done | runs >said
    [ "$(grep -c '^line .*: exit 0' said)" -eq 10 ]
    [ "$(grep -c '^connected$' said)" -eq 10 ]
    [ "$(grep -c '^lo: 0 0$' said)" -eq 10 ]
    [ "$(grep -c '^0$' said)" -eq 10 ]
    [ "$(grep -c '^sandbox$' said)" -eq 10 ]
    run ! grep mine said
    for n in net ipc uts mnt; do
        run ! grep -xF "$(readlink "/proc/self/ns/$n")" said
    done
    nothing_left
}

@test "whoever makes sets ahead may die, and sandboxes do without" {
    mkdir -p -m 700 "$BRIG_HOME"
    mkfifo lines
    "$BRIG_BUILD/tests/flow/spawner/runs" "$BRIG_HOME" <lines >said 2>&1 3>&- &
    owner=$!
    exec 4>lines
    echo 'echo one' >&4
    eventually 10 grep -q 'line 1: exit 0' said
    spawner=$(child_of "$owner")
    maker=$(ahead_of "$spawner")
    [ -n "$maker" ]
    kill -KILL "$maker"
    for i in 2 3 4 5 6 7 8; do
        echo 'ls -d /proc/[0-9]* >/dev/null && touch /dev/shm/mine' >&4
        eventually 10 grep -q "line $i: exit 0" said
    done
    [ "$(child_of "$owner")" = "$spawner" ]
    [ -z "$(ahead_of "$spawner")" ]
    exec 4>&-
    wait "$owner"
    nothing_left
}

# held PID…: how many descriptors each of them has open.
held() {
    local pid
    for pid in "$@"; do
        find "/proc/$pid/fd" -mindepth 1 | wc -l
    done
}

@test "forty sandboxes later a spawner holds what it held after the first" {
    mkdir -p -m 700 "$BRIG_HOME"
    mkfifo lines
    "$BRIG_BUILD/tests/flow/spawner/runs" "$BRIG_HOME" <lines >said 2>&1 3>&- &
    owner=$!
    exec 4>lines
    echo true >&4
    eventually 10 grep -q 'line 1: exit 0' said
    spawner=$(child_of "$owner")
    before=$(held "$spawner")
    for i in {2..41}; do
        echo "echo $i" >&4 # of several lengths
    done
    eventually 60 grep -q 'line 41: exit 0' said
    [ "$(held "$spawner")" = "$before" ]
    [ "$(ahead_of "$spawner" | wc -l)" -eq 1 ] # one template for all of them
    exec 4>&-
    wait "$owner"
    nothing_left
}

@test "the spawner is killed" {
    start
    kill -KILL "$spawner"
    gone_in_2s
    nothing_left # Brig itself was there to clear up
    [ "$(receipts '.[1].reason_code')" = SANDBOX_FAILED ]
    cleared_up
}

@test "Brig is killed" {
    start
    kill -KILL "$brig"
    gone_in_2s
    cleared_up
    [ "$(receipts '.[1].reason_code')" = RUN_ABANDONED ]
}

@test "Brig and the spawner are killed" {
    start
    kill -KILL "$brig" "$spawner"
    gone_in_2s
    cleared_up
    [ "$(receipts '.[1].reason_code')" = RUN_ABANDONED ]
}

@test "Brig, the spawner and the supervisor are killed" {
    start
    kill -KILL "$brig" "$spawner" "$outer"
    gone_in_2s
    cleared_up
    [ "$(receipts '.[1].reason_code')" = RUN_ABANDONED ]
}

@test "the supervisor is killed" {
    start
    kill -KILL "$outer"
    gone_in_2s
    nothing_left
    [ "$(receipts '.[1].reason_code')" = SANDBOX_FAILED ]
    cleared_up
}

@test "the spawner is stopped, then Brig is killed" {
    start
    kill -STOP "$spawner"
    kill -KILL "$brig"
    eventually 2 none_called "$name"
    eventually 2 eval "! kill -0 $outer 2>/dev/null || grep -q '^State:.Z' /proc/$outer/status"
    kill -KILL "$spawner"
    wait "$brig" || true
    cleared_up
}

@test "killed at any moment of its building, nothing stays" {
    for ms in 0 2 4 6 8 10 13 16 20 30; do
        for whom in brig spawner both; do
            bash -c 'exec "$BRIG" sandbox exec --quiet --mount "$1:/mnt/attack" -- /mnt/attack/linger "$2" 3 ignore' \
                sh "$ATTACK" "$name" >/dev/null 2>&1 3>&- &
            brig=$!
            sleep "$(printf '0.%03d' $ms)"
            spawner=$(child_of "$brig" 2>/dev/null) || spawner=
            [ $whom = spawner ] || kill -KILL "$brig" 2>/dev/null || true
            [ $whom = brig ] || [ -z "$spawner" ] || kill -KILL "$spawner" 2>/dev/null || true
            kill -KILL "$brig" 2>/dev/null || true
            wait "$brig" 2>/dev/null || true
        done
    done
    eventually 2 none_called "$name"
    # A supervisor that was not told to end yet holds its folder; the next run takes what is free.
    eventually 2 none_held
    run -0 box -- true
    eventually 5 nothing_left
    each_run_ended_once
    run -0 brig receipts verify
}

# Whatever holds of a sandbox holds of one made by a spawner: the files of this folder once more.
# Left out are those that look for processes one generation further up.
again() {
    run timeout -k 5 2000 bats --tap "$BRIG_ROOT/tests/attack/$1.bats"
    status_is 0
    says "ok 1 " # it did run
}

@test "again: namespaces" {
    again namespaces
}

@test "again: neighbours" {
    again neighbours
}

@test "again: descriptors" {
    again descriptors
}

@test "again: read-only" {
    again read-only
}

@test "again: sysctl" {
    again sysctl
}

@test "again: calls" {
    again calls
}

@test "again: survivors" {
    again survivors
}

@test "again: links in the root" {
    again root-links
}
