#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# One session as an agent has it: a sandbox with an image and a workspace to write to; install, edit,
# run the tests, put the state aside, branch, break a branch, go back, rest, go on, end.

load common
load sandbox
load kept
load image-kit

setup() {
    common_setup
    need jq tar gzip busybox
    busybox_layout "$WORK/layout" bb >/dev/null
    brig image import "$WORK/layout" --name bb >/dev/null
    project
}

teardown() {
    destroy_all
}

# A project with a test that fails, a git hook nobody may change, and a package to install.
project() {
    mkdir -p "$WORK/project/.git/hooks" "$WORK/package/srv/greet"
    printf '#!/bin/sh\necho "hello, $1"\n' >"$WORK/package/srv/greet/greet"
    chmod 755 "$WORK/package/srv/greet/greet"
    tar -C "$WORK/package" -cf "$WORK/project/greet.tar" .
    printf '#!/bin/sh\n[ "$(/srv/greet/greet "$(cat name)")" = "hello, world" ]\n' >"$WORK/project/test.sh"
    echo 'wrold' >"$WORK/project/name"
    echo 'true' >"$WORK/project/.git/hooks/pre-commit"
}

# at ID CMD…: a command in it.
at() {
    local where=$1
    shift
    timeout -k 5 $PATIENCE "$BRIG" sandbox exec "$where" --quiet -- "$@"
}

@test "install, edit, test, put aside, branch, break, go back, rest, go on, end" {
    run -0 brig sandbox create --image bb --workspace "$WORK/project:rw" --name agent --label task=greet --ttl 30h --lifetime 48h --json
    id=$(jq -er .sandbox_id <<<"$output")
    jq -e '.state == "running" and .provider == "local" and (.image_digest | startswith("sha256:")) and
        (.config_hash | startswith("sha256:")) and .expires_at != ""' <<<"$output"

    # The test fails: nothing is installed yet. Install; it fails for another reason. Edit; it passes.
    run -1 at agent sh /workspace/test.sh
    at agent sh -c 'tar -xf /workspace/greet.tar -C /'
    [ "$(at agent /srv/greet/greet you)" = "hello, you" ]
    run -1 at agent sh -c 'cd /workspace && sh test.sh'
    at agent sh -c 'sed -i s/wrold/world/ /workspace/name'
    at agent sh -c 'cd /workspace && sh test.sh'
    [ "$(cat "$WORK/project/name")" = world ]
    [ "$(stat -c %u "$WORK/project/name")" = "$(id -u)" ]
    run at agent sh -c 'echo evil >/workspace/.git/hooks/pre-commit'
    [ "$status" -ne 0 ]
    [ "$(cat "$WORK/project/.git/hooks/pre-commit")" = true ]

    brig sandbox snapshot agent --name works
    mapfile -t forks < <(brig sandbox fork works -n 3 --name try --json | jq -er '.sandboxes[].sandbox_id')
    [ "${#forks[@]}" -eq 3 ]
    for fork in "${forks[@]}"; do
        at "$fork" sh -c 'cd /workspace && sh test.sh'
    done

    # One branch breaks itself; the others and the first sandbox do not notice.
    at try-2 sh -c 'rm -rf /srv/greet && echo gone >/srv/note'
    run -1 at try-2 sh -c 'cd /workspace && sh test.sh'
    for fork in try-1 try-3 agent; do
        at "$fork" sh -c 'cd /workspace && sh test.sh && test ! -e /srv/note'
    done
    brig sandbox restore try-2 works
    at try-2 sh -c 'cd /workspace && sh test.sh && test ! -e /srv/note'

    # Rest with something running, and go on where it stood.
    "$BRIG" sandbox exec agent --detach -- sh -c 'i=0; while :; do i=$((i+1)); echo $i >/tmp/new; mv /tmp/new /tmp/count; sleep 0.01; done' >/dev/null
    eventually 5 at agent sh -c 'test -s /tmp/count'
    brig sandbox pause agent
    run -77 at agent /bin/busybox true
    brig sandbox list --label task=greet --json | jq -e '.sandboxes[0].state == "paused"'
    brig sandbox resume agent
    before=$(at agent sh -c 'cat /tmp/count')
    counts() { [ "$(at agent sh -c "cat /tmp/count")" -gt "$before" ]; }
    eventually 5 counts

    brig sandbox explain agent | grep -q bb
    brig sandbox destroy agent try-1 try-2 try-3
    brig snapshot remove works
    [ -z "$(find "$BRIG_HOME/snapshots" -mindepth 1 -maxdepth 1 -type d)" ]
    no_sandbox_left
    each_run_ended
    brig receipts verify >/dev/null
    [ "$(brig receipts list --json | jq '[.receipts[] | select(.reason_code == "SANDBOX_FAILED")] | length')" -eq 0 ]
}
