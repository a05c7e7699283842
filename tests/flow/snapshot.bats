#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Snapshots of kept sandboxes: taken with nobody in it and with somebody, gone back to, forked from,
# merged, removed; and what is true after a kill at any point.

load common
load sandbox
load kept

setup() {
    common_setup
    make --name home
}

teardown() {
    local each
    destroy_all
    for each in $("$BRIG" snapshot list --json | jq -r '.snapshots[].snapshot_id'); do
        "$BRIG" snapshot remove "$each" 2>/dev/null || true
    done
}

# snap ARGS…: a snapshot of $id; its id is in $snap.
snap() {
    snap=$("$BRIG" sandbox snapshot "$id" --json "$@" | jq -er .snapshot_id)
}

# fork_of SNAPSHOT ARGS…: one sandbox; its id is in $fork.
fork_of() {
    fork=$("$BRIG" sandbox fork "$@" --json | jq -er '.sandboxes[0].sandbox_id')
}

in_fork() {
    timeout -k 5 $PATIENCE "$BRIG" sandbox exec "$fork" --quiet -- "$@"
}

# Everything a snapshot must keep, made by the sandbox itself.
write_all_kinds() {
    in_it -- sh -c '
        cd /tmp
        echo text >file; chmod 640 file; touch -d 2001-02-03T04:05:06Z file
        ln file hard; ln -s file link; ln -s /etc/passwd away
        mkdir -p deep/er; echo below >deep/er/file; chmod 711 deep
        truncate -s 64M holes; printf x | dd of=holes bs=1 seek=1000000 conv=notrunc 2>/dev/null
        echo secret >shut; chmod 000 shut
        mkdir closed; echo in >closed/f; chmod 000 closed
        mkfifo pipe
        echo home >~/note; echo out >/sandbox/output/result'
}

show_all_kinds='
    cd /tmp
    stat -c "%n %A %s %Y" file link away deep deep/er/file holes shut closed pipe
    stat -c "%h" file; cat file hard deep/er/file; readlink link away
    chmod 600 shut; cat shut; chmod 700 closed; cat closed/f
    sha256sum <holes; [ "$(stat -c %b holes)" -lt 1000 ] && echo sparse
    cat ~/note /sandbox/output/result'

# Whoever has run a command says so a moment before it ends itself.
nobody_in_it() {
    [ "$("$BRIG" sandbox show "$id" | jq .processes)" -eq 1 ]
}

@test "with nobody in it the layers become the snapshot and the sandbox goes on above it" {
    write_all_kinds
    eventually 5 nobody_in_it
    run -0 brig sandbox snapshot "$id" --name first --json
    jq -e '.live == false and .held_us == 0 and .bytes_copied == 0 and .done' <<<"$output"
    fork_of first
    expected=$(in_fork sh -c "$show_all_kinds")
    [[ $expected == *sparse* ]]
    [ "$(in_it -- sh -c "$show_all_kinds")" = "$expected" ]
    brig sandbox show "$id" | jq -e '.state == "running" and .base_snapshot_id != ""'
}

@test "with somebody in it the files are copied while it is held still, and it goes on" {
    write_all_kinds
    "$BRIG" sandbox exec "$id" --detach -- sh -c 'while :; do echo tick >>/tmp/ticks; done' >/dev/null
    eventually 5 in_it -- test -s /tmp/ticks
    run -0 brig sandbox snapshot "$id" --name live --json
    jq -e '.live and .held_us > 0 and .bytes_copied > 64000000 and .done' <<<"$output"
    before=$(in_it -- wc -c </dev/null /tmp/ticks | cut -d' ' -f1)
    moved() { [ "$(in_it -- stat -c %s /tmp/ticks)" -gt "$before" ]; }
    eventually 5 moved
    fork_of live
    one=$(in_fork sh -c "$show_all_kinds")
    [ "$(in_it -- sh -c "$show_all_kinds")" = "$one" ]
}

@test "an open descriptor never writes into a snapshot" {
    "$BRIG" sandbox exec "$id" --detach -- sh -c 'exec 3>/tmp/held; while :; do echo more >&3; sleep 0.01; done' >/dev/null
    eventually 5 in_it -- test -s /tmp/held
    snap
    brig snapshot tend
    digest=$(brig snapshot show "$snap" | jq -er .digest)
    sleep 0.3
    run -0 brig snapshot verify "$snap"
    [[ $output == *"$digest"* ]]
    # Control: a snapshot that was written to is noticed.
    file=$(find "$BRIG_HOME/snapshots/$snap/layers/tmp" -name held)
    echo more >>"$file"
    run -76 --separate-stderr brig snapshot verify "$snap"
    [[ $stderr == *"has become"* ]]
}

@test "going back to a snapshot ends what runs and undoes what was written" {
    in_it -- sh -c 'echo good >/tmp/state; echo kept >/tmp/other'
    snap --name good
    in_it -- sh -c 'echo bad >/tmp/state; rm /tmp/other; echo new >/tmp/new'
    "$BRIG" sandbox exec "$id" --detach -- sleep 1000 >/dev/null
    pid=$(pid_one)
    run -0 brig sandbox restore "$id" good
    gone "$pid"
    [ "$(in_it -- sh -c 'cat /tmp/state /tmp/other; ls /tmp')" = $'good\nkept\nother\nstate' ]
    receipt=$(brig receipts list --json | jq -c '[.receipts[] | select(.action == "restore" and .kind == "outcome")][0]')
    [ "$(jq -r .outcome.snapshot.id <<<"$receipt")" = "$snap" ]
    each_run_ended
}

@test "forks share nothing but their beginning" {
    in_it -- sh -c 'echo base >/tmp/f'
    snap
    mapfile -t forks < <(brig sandbox fork "$snap" -n 3 --name f --json | jq -r '.sandboxes[].sandbox_id')
    [ "${#forks[@]}" -eq 3 ]
    for i in 0 1 2; do
        brig sandbox exec "${forks[i]}" --quiet -- sh -c "cat /tmp/f; echo $i >/tmp/f; rm -f /tmp/none"
    done
    for i in 0 1 2; do
        [ "$(brig sandbox exec "f-$((i + 1))" --quiet -- cat /tmp/f)" = $i ]
    done
    [ "$(in_it -- cat /tmp/f)" = base ]
    brig receipts list --json | jq -e --arg s "$snap" '[.receipts[] | select(.base_snapshot_id == $s)] | length == 6'
}

@test "a fork of a running sandbox takes a snapshot that goes with the last that stands on it" {
    in_it -- sh -c 'echo here >/tmp/f'
    fork_of home
    [ "$(in_fork cat /tmp/f)" = here ]
    [ "$(brig snapshot list --json | jq '.snapshots | length')" -eq 0 ]
    [ "$(ls "$BRIG_HOME/snapshots" | grep -vc lock)" -eq 1 ]
    brig sandbox destroy "$fork"
    [ "$(in_it -- cat /tmp/f)" = here ]
    [ "$(ls "$BRIG_HOME/snapshots" | grep -vc lock)" -eq 1 ]
    brig sandbox destroy "$id"
    none_is_kept() { [ "$(ls "$BRIG_HOME/snapshots" | grep -vc lock)" -eq 0 ]; }
    eventually 5 none_is_kept
}

@test "deletions are kept over every number of snapshots, and more than eight become one" {
    for i in $(seq 1 10); do
        in_it -- sh -c "rm -f /tmp/f$((i - 1)); mkdir -p /tmp/d; rm -rf /tmp/d; mkdir /tmp/d; echo $i >/tmp/d/only; echo $i >/tmp/f$i"
        snap
    done
    brig snapshot tend
    last=$snap
    # Nine were one by the time the tenth came, or all ten are now.
    brig snapshot show "$last" | jq -e '.stack | length <= 8 and any(endswith("/flat"))'
    brig snapshot verify "$last"
    fork_of "$last"
    [ "$(in_fork sh -c 'ls /tmp /tmp/d; cat /tmp/d/only')" = "$(in_it -- sh -c 'ls /tmp /tmp/d; cat /tmp/d/only')" ]
    [ "$(in_fork sh -c 'ls /tmp | wc -l')" -eq 2 ]
}

@test "a digest says what a snapshot shows, however it came about" {
    in_it -- sh -c 'echo a >/tmp/a; echo b >~/b'
    snap --name moved
    "$BRIG" sandbox exec "$id" --detach -- sleep 1000 >/dev/null
    snap --name copied
    brig snapshot tend
    [ "$(brig snapshot show moved | jq -er .digest)" = "$(brig snapshot show copied | jq -er .digest)" ]
    in_it -- sh -c 'echo c >>/tmp/a'
    snap --name other
    brig snapshot tend
    [ "$(brig snapshot show moved | jq -er .digest)" != "$(brig snapshot show other | jq -er .digest)" ]
}

@test "a removed snapshot is gone at once for those who look and last for those who stand on it" {
    in_it -- sh -c 'echo x >/tmp/x'
    snap --name s
    fork_of s
    run -0 brig snapshot remove s --json
    jq -e '.freed == false' <<<"$output"
    run -66 brig sandbox fork s
    [ "$(in_fork cat /tmp/x)" = x ]
    [ "$(in_it -- cat /tmp/x)" = x ]
    brig sandbox destroy "$id" "$fork"
    [ ! -e "$BRIG_HOME/snapshots/$snap" ]
}

@test "a paused sandbox stays paused, its time stays its time" {
    brig sandbox extend "$id" --ttl 30m
    in_it -- sh -c 'echo x >/tmp/x'
    brig sandbox pause "$id"
    snap
    brig sandbox show "$id" | jq -e '.state == "paused"'
    brig sandbox resume "$id"
    [ "$(in_it -- cat /tmp/x)" = x ]
    left=$(($(date -d "$(brig sandbox show "$id" | jq -r .expires_at)" +%s) - $(date +%s)))
    [ "$left" -gt 1700 ] && [ "$left" -le 1800 ]
}

@test "commands that come while it is exchanged wait for it" {
    for i in 1 2 3 4 5 6; do
        (in_it -- sh -c "echo $i >/tmp/$i" 2>"$BATS_TEST_TMPDIR/said$i" && : >"$BATS_TEST_TMPDIR/done$i") &
        snap
    done
    wait
    for i in 1 2 3 4 5 6; do
        [ -e "$BATS_TEST_TMPDIR/done$i" ] || { cat "$BATS_TEST_TMPDIR/said$i"; return 1; }
        [ "$(in_it -- cat "/tmp/$i")" = "$i" ]
    done
    each_run_ended
}

@test "a snapshot over another image, one that is not there, a name that is none" {
    run -66 --separate-stderr brig sandbox restore "$id" nothing
    [[ $stderr == *"no snapshot"* ]]
    run -66 brig sandbox fork nothing
    run -66 brig snapshot show ../../etc
    run -66 brig snapshot remove "$id"
    run -64 brig sandbox snapshot "$id" --name "$(printf '%0300d' 1)"
    in_it -- true
}

@test "a sandbox that shuts its own folders cannot keep them out of a snapshot" {
    in_it -- sh -c 'echo x >/tmp/x; echo y >~/y; chmod 000 /tmp; chmod 500 ~'
    snap --name moved
    [ "$(in_it -- sh -c 'stat -c %a /tmp ~; chmod 700 /tmp; cat /tmp/x ~/y')" = $'0\n500\nx\ny' ]
    in_it -- chmod 000 /tmp
    "$BRIG" sandbox exec "$id" --detach -- sleep 1000 >/dev/null
    snap --name copied
    brig snapshot show copied | jq -e .live
    for name in moved copied; do
        fork_of "$name"
        [ "$(in_fork sh -c 'stat -c %a /tmp ~; chmod 700 /tmp; cat /tmp/x ~/y')" = $'0\n500\nx\ny' ]
    done
    brig snapshot tend
    brig snapshot verify moved
    brig snapshot verify copied
}

@test "attributes of overlayfs that a sandbox sets in its own files change nothing but its own files" {
    in_it -- /usr/bin/python3 -c '
import os
os.mkdir("/tmp/d")
open("/tmp/d/f", "w").write("shown\n")
os.setxattr("/tmp/d", "user.overlay.redirect", b"/home")
open("/tmp/d/g", "w").write("mine\n")
os.setxattr("/tmp/d/g", "user.overlay.metacopy", b"")
os.setxattr("/tmp/d/f", "user.overlay.origin", b"x")
os.setxattr("/tmp/d/f", "user.mine", b"kept")' || skip "the machine has no python3 in /usr/bin, or no user attributes"
    shows='import os; print(open("/tmp/d/f").read() + os.getxattr("/tmp/d/f", "user.mine").decode())'
    snap
    fork_of "$snap"
    [ "$(in_fork /usr/bin/python3 -c "$shows")" = $'shown\nkept' ]
    # A file that claims to be only the metadata of another is refused, never something else.
    run in_fork cat /tmp/d/g
    [ "$output" = mine ] || [[ $output == *"Operation not permitted"* ]]
    "$BRIG" sandbox exec "$id" --detach -- sleep 1000 >/dev/null
    in_it -- touch /tmp/d/f
    snap
    brig snapshot show "$snap" | jq -e .live
    fork_of "$snap"
    [ "$(in_fork /usr/bin/python3 -c "$shows")" = $'shown\nkept' ]
}

@test "a copy that cannot be written is no snapshot, and the sandbox goes on" {
    in_it -- sh -c 'head -c 40000000 /dev/zero | tr "\0" x >/tmp/large'
    "$BRIG" sandbox exec "$id" --detach -- sleep 1000 >/dev/null
    run bash -c 'ulimit -f 20000; exec "$BRIG" sandbox snapshot "$1" --name full --json' - "$id"
    [ "$status" -ne 0 ]
    jq -e '.done == false and (has("snapshot_id") | not)' <<<"$output"
    receipt_is .reason_code SNAPSHOT_FAILED
    receipt_is '.outcome | has("snapshot")' false
    run -66 brig snapshot show full
    [ -z "$(find "$BRIG_HOME/snapshots" -mindepth 1 -maxdepth 1 -type d)" ]
    [ "$(in_it -- stat -c %s /tmp/large)" -eq 40000000 ]
    snap --name control
    brig snapshot show control | jq -e .live
}

@test "what was recorded says what was done" {
    in_it -- sh -c 'echo x >/tmp/x'
    eventually 5 nobody_in_it
    snap --name s
    receipt_is .action snapshot
    receipt_is .outcome.snapshot.id "$snap"
    receipt_is .outcome.snapshot.live false
    brig snapshot remove s
    receipt_is .action snapshot-remove
    receipt_is .outcome.snapshot.id "$snap"
    brig receipts verify >/dev/null
}

@test "a kill at any point of a snapshot leaves a true state and nothing else" {
    [ "$(brig version --json | jq -r .crash_points)" = true ] || skip "built without crash points"
    for point in "snapshot begun" "sandbox stopped" "snapshot layer moved" "snapshot recorded"; do
        make --name "kill"
        in_it -- sh -c 'echo x >/tmp/x'
        BRIG_CRASH_AT=$point run brig sandbox snapshot "$id" --name "at-$id"
        [ "$status" -eq 137 ]
        brig sandbox list >/dev/null
        brig snapshot tend
        if brig sandbox show "$id" >/dev/null 2>&1; then
            [ "$(in_it -- cat /tmp/x)" = x ]
            brig sandbox destroy "$id"
        fi
        # Either it is there, whole, or it is not.
        if brig snapshot show "at-$id" >/dev/null 2>&1; then
            fork_of "at-$id"
            [ "$(in_fork cat /tmp/x)" = x ]
            brig sandbox destroy "$fork"
            brig snapshot remove "at-$id"
        fi
        [ "$(ls "$BRIG_HOME/snapshots" | grep -vc lock)" -eq 0 ]
        each_run_ended
    done
    destroy_all
    no_sandbox_left
}

@test "a kill while it is held still lets it go on" {
    [ "$(brig version --json | jq -r .crash_points)" = true ] || skip "built without crash points"
    "$BRIG" sandbox exec "$id" --detach -- sh -c 'while :; do echo tick >>/tmp/ticks; done' >/dev/null
    eventually 5 in_it -- test -s /tmp/ticks
    BRIG_CRASH_AT="snapshot copied" run brig sandbox snapshot "$id" --name dead
    [ "$status" -eq 137 ]
    before=$(in_it -- stat -c %s /tmp/ticks)
    moved() { [ "$(in_it -- stat -c %s /tmp/ticks)" -gt "$before" ]; }
    eventually 5 moved
    run -66 brig snapshot show dead
    brig snapshot tend
    [ "$(ls "$BRIG_HOME/snapshots" | grep -vc lock)" -eq 0 ]
    brig sandbox destroy "$id"
    each_run_ended
}
