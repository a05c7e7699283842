#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --workspace DIR:mirror, sandbox diff, sandbox sync: a copy to work on, and the way back.

load common
load sandbox
load kept

setup() {
    common_setup
    mkdir -p p/sub
    echo one >p/a
    seq 9 >p/n
    echo two >p/sub/b
    echo gone >p/gone
}

teardown() {
    destroy_all
}

mirror() {
    make --workspace "$WORK/p:mirror" "$@" 2>"$WORK/said"
}

# changes: as "A path", with what holds it back.
changes() {
    brig sandbox diff "$id" --json | jq -r \
        '.changes[] | (.change[0:1] | ascii_upcase) + " " + .path + (if .held_back then " " + .held_back else "" end)'
}

# synced "DONE CONFLICTS HELD" ARGS…: applied, with so many of each.
synced() {
    local wanted=$1
    shift
    run --separate-stderr brig sandbox sync "$id" --apply --json "$@"
    json_is '"\(.done) \(.conflicts) \(.held_back)"' "$wanted"
}

is_running() {
    [ "$(brig sandbox show "$id" | jq -r .state)" = running ]
}

@test "the copy has what the folder has: modes, times, links as links, holes" {
    chmod 0640 p/a
    touch -d '2001-02-03 04:05:06.789' p/a
    ln -s a p/link
    ln -s /etc/passwd p/outward
    truncate -s 10M p/sparse
    echo end >>p/sparse
    mkfifo p/fifo
    chmod 4755 p/n
    mirror
    grep -q "1 left out of the workspace" said
    run in_it -- sh -c 'pwd; stat -c "%n %a" a n sub; stat -c %y a; readlink link outward; stat -c %s sparse; id -un'
    status_is 0
    says "/workspace
a 640
n 755
sub 755"
    says "2001-02-03 04:05:06.789"
    says "a
/etc/passwd
10485764
sandbox"
    [ "$(in_it -- stat -c %b sparse)" -lt 1000 ]
    [ "$(in_it -- sha256sum sparse)" = "$(cd p && sha256sum sparse)" ]
    receipt_of_create=$(ledger "SELECT body FROM receipts WHERE kind = 'outcome' AND body LIKE '%\"action\":\"create\"%'")
    json_is .outcome.mirror.entries 8 "$receipt_of_create"
    json_is .outcome.mirror.skipped 1 "$receipt_of_create"
    json_is .outcome.mirror.unsteady 0 "$receipt_of_create"
    [ -z "$(changes)" ]
}

@test "what is done inside stays inside until it is synced, and the disk limit covers it" {
    mirror
    in_it -- sh -c 'echo new >new; rm a'
    [ -e p/a ]
    [ ! -e p/new ]
    head -c 3000000 /dev/urandom >p/large
    run brig sandbox create --workspace p:mirror --disk 1M
    status_is 77
    says "more than the 1048576 bytes"
    says "--disk"
    run brig sandbox create --workspace p:mirror --inodes 3
    says "--inodes"
    [ "$(brig sandbox list --json | jq '.sandboxes | length')" -eq 1 ]
}

@test "a one-shot sandbox cannot mirror, and what may not be mounted may not be copied" {
    run brig sandbox exec --workspace p:mirror -- true
    status_is 77
    says "make one that stays"
    mkdir -p home/.ssh
    for source in home /etc "$BRIG_HOME" p/a; do
        run brig sandbox create --workspace "$source:mirror"
        status_is 77
        says MOUNT_FORBIDDEN
    done
    run brig sandbox create --workspace p:mirror --mount "$WORK/p:/workspace/x"
    status_is 77
    says "a copy is there"
}

@test "diff names what changed and shows how" {
    mirror
    in_it -- sh -c 'sed -i s/5/five/ n; echo new >new; rm gone; mkdir d; printf x >d/y; chmod 755 a; ln -s n l; printf "\0bin" >bin'
    run --separate-stderr brig sandbox diff "$id"
    status_is 0
    [ "$output" = "M  a
A  bin
A  d/
A  d/y
D  gone
A  l
M  n
A  new" ]
    [[ $stderr == *"8 changes against $WORK/p; receipt"* ]]
    receipt_is .outcome.files.verb diff
    receipt_is .outcome.files.other "$WORK/p"
    # the patch is one: applied to the folder it gives what is inside
    brig sandbox diff "$id" --patch 2>/dev/null | grep -v '^[AMD]  ' >patch
    grep -q 'Binary files /dev/null and b/bin differ' patch
    cp -r p q
    if command -v patch >/dev/null; then
        grep -v ^Binary patch | (cd q && patch -s -p1)
        for name in n new d/y; do
            [ "$(in_it -- cat "$name")" = "$(cat "q/$name")" ]
        done
        [ ! -s q/gone ]
    fi
    grep -qx -- '-5' patch
    grep -qx -- '+five' patch
    grep -q 'No newline at end of file' patch
    [ -e p/gone ]
}

@test "the tree hash is that of a copy of the same files" {
    ln -s a p/link
    mkdir p/a.b p/a.d
    echo x >p/a.b/x
    mirror
    brig sandbox diff "$id" 2>/dev/null
    hash=$(receipt .outcome.files.tree_hash)
    [[ $hash == sha256:* ]]
    in_it -- chmod 755 /workspace
    brig sandbox diff "$id" 2>/dev/null
    hash=$(receipt .outcome.files.tree_hash)
    brig sandbox cp -r "$id:/workspace" out 2>/dev/null
    receipt_is .outcome.files.tree_hash "$hash"
}

@test "sync only shows unless --apply is given" {
    mirror
    in_it -- sh -c 'echo new >new'
    run brig sandbox sync "$id"
    status_is 0
    says "A  new"
    [ ! -e p/new ]
    receipt_is .outcome.files.verb diff
}

@test "applied, both sides are the same: content, modes, times, links, removals" {
    mirror
    in_it -- sh -c 'sed -i s/5/five/ n; echo new >new; rm gone; mkdir -p d/e; echo x >d/e/y; chmod 750 a d; ln -s n l
        rm -r sub; echo file >sub; touch -d "2001-02-03 04:05:06" new'
    run brig sandbox sync "$id" --apply
    status_is 0
    says "10 changes, 10 applied to $WORK/p"
    receipt_is .outcome.files.verb sync
    receipt_is .outcome.files.entries 10
    receipt_is .outcome.files.path /workspace
    [ "$(sed -n 5p p/n)" = five ]
    [ "$(cat p/d/e/y)" = x ]
    [ "$(stat -c %a:%a p/a)" = 750:750 ]
    [ "$(stat -c %a p/d)" = 750 ]
    [ "$(readlink p/l)" = n ]
    [ "$(cat p/sub)" = file ]
    [ ! -e p/gone ]
    [[ $(stat -c %y p/new) == "2001-02-03 04:05:06"* ]]
    [ "$(stat -c %u:%g p/new)" = "$(id -u):$(id -g)" ]
    [ -z "$(changes)" ]
    chain_holds
    each_run_ended
    is_running
}

@test "what changed on both sides is a conflict and left alone, everything else is not" {
    mirror
    in_it -- sh -c 'echo inside >a; echo inside >same; rm gone; echo inside >sub/b; echo mine >new; rm n; mkdir dir'
    echo outside >p/a      # changed on both sides
    echo inside >p/same    # the same on both sides
    echo outside >p/gone   # changed here, removed inside
    echo outside >p/theirs # only here
    echo outside >p/new    # new on both sides
    rm p/sub/b             # removed here, changed inside
    run changes
    [ "$output" = "C a conflict
A dir
R gone conflict
R n
A new conflict
C sub/b conflict" ]
    synced "2 4 0"
    status_is 75
    receipt_is .outcome.files.conflicts 4
    [ "$(cat p/a p/gone p/new p/theirs)" = "$(printf 'outside\n%.0s' 1 2 3 4)" ]
    [ ! -e p/n ]
    [ ! -e p/sub/b ]
    # still there the next time
    [ "$(changes | wc -l)" -eq 4 ]
    synced "4 0 0" --theirs
    status_is 0
    [ "$(cat p/a p/new p/sub/b)" = "inside
mine
inside" ]
    [ ! -e p/gone ]
    [ "$(cat p/theirs)" = outside ]
    [ -z "$(changes)" ]
}

@test "with --ours this machine's version stays, for good" {
    mirror
    in_it -- sh -c 'echo inside >a; rm gone'
    echo outside >p/a
    echo outside >p/gone
    synced "2 0 0" --ours
    [ "$(cat p/a p/gone)" = "outside
outside" ]
    [ -z "$(changes)" ]
    # but what is done inside later is a change again
    in_it -- sh -c 'echo again >a'
    [ "$(changes)" = "C a conflict" ]
    run brig sandbox sync "$id" --ours --theirs
    status_is 64
}

@test "a folder removed inside stays when there are new files in it here" {
    mirror
    in_it -- rm -r sub
    echo mine >p/sub/mine
    synced "1 1 0"
    [ "$(cat p/sub/mine)" = mine ]
    [ ! -e p/sub/b ]
}

@test "commits made inside come back, hooks and config do not" {
    need git
    (cd p && git init -q . && git config user.email a@b && git config user.name n && git add . && git commit -qm first)
    mirror
    in_it -- sh -c 'echo more >>a; git commit -qam second; git config alias.x "!evil"; echo evil >.git/hooks/pre-commit
        mkdir .vscode; echo {} >.vscode/tasks.json; echo x >.envrc' 2>/dev/null
    run brig sandbox sync "$id" --apply
    status_is 75
    says "5 held back"
    run changes
    [ "$output" = "C .git/config protected
A .git/hooks/pre-commit protected
A .vscode protected
A .vscode/tasks.json protected
A .envrc protected" ] || [ "$output" = "A .envrc protected
C .git/config protected
A .git/hooks/pre-commit protected
A .vscode protected
A .vscode/tasks.json protected" ]
    [ "$(git -C p -c core.fsmonitor=false log --oneline | wc -l)" -eq 2 ]
    [ ! -e p/.git/hooks/pre-commit ]
    [ ! -e p/.envrc ]
    synced "5 0 0" --include-protected
    receipt_is .outcome.files.verb "sync --include-protected"
    [ -e p/.git/hooks/pre-commit ]
}

@test "special files, outward links and closed files are named and stay inside" {
    mirror
    in_it -- sh -c 'ln -s /etc/passwd abs; ln -s ../../x up; ln -s sub/../../x round; ln -s sub/b in; mkfifo pipe
        rm n; mkfifo n; ln -s ../a sub/fine'
    run changes
    [ "$output" = "A abs leads_out
A in
C n special
A pipe special
A round leads_out
A sub/fine
A up leads_out" ]
    synced "2 0 5"
    [ "$(readlink p/in p/sub/fine)" = "sub/b
../a" ]
    [ -f p/n ]
    [ ! -e p/abs ]
    [ ! -L p/abs ]
    synced "3 0 2" --include-links
    [ "$(readlink p/abs)" = /etc/passwd ]
}

@test "while it is read the sandbox holds still, and goes on afterwards" {
    mirror
    "$BRIG" sandbox exec "$id" --detach -- sh -c 'i=0; while :; do i=$((i+1)); echo $i >t; mv t pair1; echo $i >t; mv t pair2; done' >/dev/null
    eventually 10 in_it -- test -e pair2
    for _ in 1 2 3 4 5; do
        run brig sandbox sync "$id" --apply --theirs
        status_is 0
        one=$(cat p/pair1) two=$(cat p/pair2)
        [ $((one - two)) -le 1 ]
        [ $((one - two)) -ge 0 ]
    done
    is_running
    before=$(in_it -- cat pair2)
    eventually 10 eval '[ "$(in_it -- cat pair2)" -gt "$before" ]'
}

@test "a file that changes while it is copied is copied whole or left out and named" {
    head -c 8000000 /dev/zero | tr '\0' a >p/busy
    head -c 8000000 /dev/zero | tr '\0' b >other
    (while :; do cat other >p/busy; tr b a <other >p/busy; done) 3>&- &
    writer=$!
    for _ in 1 2 3 4 5; do
        mirror || true
        if in_it -- test -e busy; then
            in_it -- sh -c '[ "$(tr -d a <busy | head -c 1)" = "" ] || [ "$(tr -d b <busy | head -c 1)" = "" ]'
            copied=1
        else
            grep -q 'changed all the time.*busy' said
        fi
        in_it -- test -e a
        brig sandbox destroy "$id" 2>/dev/null
    done
    kill "$writer"
    wait "$writer" || true
}

@test "killed in the middle of it: nothing half written, no temporary file, and it goes on" {
    mirror
    in_it -- sh -c 'mkdir many; for i in $(seq 1500); do echo $i >many/$i; done'
    for delay in 0.01 0.03 0.08 0.15; do
        "$BRIG" sandbox sync "$id" --apply >/dev/null 2>&1 3>&- & # itself, not a shell around it
        pid=$!
        sleep "$delay"
        kill -9 "$pid" 2>/dev/null || true
        wait "$pid" || true
        [ -z "$(find p -name '.brig-*')" ]
        [ -z "$(find p/many -type f -size 0 2>/dev/null)" ]
        eventually 5 is_running
        in_it -- true
    done
    run brig sandbox sync "$id" --apply
    status_is 0
    [ "$(find p/many -type f | wc -l)" -eq 1500 ]
    [ -z "$(changes)" ]
    each_run_ended
}

@test "the folder must still be the one that was copied" {
    mirror
    in_it -- sh -c 'echo new >new'
    mv p q
    mkdir p
    run brig sandbox sync "$id" --apply
    status_is 75
    says "is another folder"
    [ -z "$(ls -A p)" ]
    rmdir p
    run brig sandbox sync "$id" --apply
    [ "$status" -ne 0 ]
    ln -s q p
    run brig sandbox sync "$id" --apply
    [ "$status" -ne 0 ]
    [ ! -e q/new ]
    rm p
    mv q p
    synced "1 0 0"
    receipt_is .outcome.files.entries 1
}

@test "a paused sandbox and one without a mirror say what to do" {
    mirror
    brig sandbox pause "$id" 2>/dev/null
    run brig sandbox diff "$id"
    status_is 77
    says "resume it first"
    make
    run brig sandbox diff "$id"
    status_is 66
    says "--workspace DIR:mirror"
}

@test "snapshots cover the mirror; a fork holds nothing of this machine for its own" {
    mirror
    in_it -- sh -c 'echo snap >a; echo fresh >fresh'
    run brig sandbox snapshot "$id" --name s
    status_is 0
    in_it -- sh -c 'echo later >a; rm n'
    run brig sandbox restore "$id" s
    status_is 0
    [ "$(in_it -- cat a n | head -n 2)" = "snap
1" ]
    synced "2 0 0"
    [ "$(cat p/a)" = snap ]
    # of a fork nobody knows what both sides had in common
    first=$id
    run --separate-stderr brig sandbox fork "$id" --json
    status_is 0
    id=$(jq -r '[.. | .sandbox_id? // empty | select(. != "'"$first"'")][0]' <<<"$output")
    in_it -- sh -c 'echo forked >a; echo own >own'
    [ "$(changes)" = "A a conflict
A own" ]
    synced "1 1 0"
    [ "$(cat p/a p/own)" = "snap
own" ]
}

@test "started by root: what the folder's owner may not read is not copied, what comes back is theirs" {
    is_root || skip "needs root"
    chown -R 12345:23456 p
    install -m 0600 -o 54321 -g 54321 /dev/null p/theirs
    echo secret >p/theirs
    install -m 0700 -o 54321 -g 54321 -d p/closed
    mirror
    grep -q "2 left out" said
    run in_it -- ls -A
    [[ $output != *theirs* && $output != *closed* ]]
    in_it -- sh -c 'echo new >new; echo more >>a; mkdir d; ln -s a l'
    chown 11111:22222 p/a
    synced "4 0 0"
    [ "$(stat -c %u:%g p/new p/d p/l | sort -u)" = 12345:23456 ]
    [ "$(stat -c %u:%g p/a)" = 11111:22222 ]
    [ "$(cat p/theirs)" = secret ]
}
