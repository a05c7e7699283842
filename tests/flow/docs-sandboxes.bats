#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# docs/sandboxes.md does what it shows; the units it names are right.

load common
load sandbox
load kept

setup() {
    common_setup
    need python3 jq
    ln -s "$BRIG" brig
    PATH=$WORK:$PATH
}

teardown() {
    destroy_all
}

@test "docs/sandboxes.md does what it shows" {
    run "$BRIG_ROOT/tests/flow/run-page" "$BRIG_ROOT/docs/sandboxes.md"
    status_is 0
    says "26 blocks"
    no_sandbox_left
}

@test "the sweep units are well-formed, and their command records what ended" {
    make --ttl 2s # it has to be there when that is answered
    eventually 3 flock -n "$BRIG_HOME/boxes/$id.lock" true
    command=$(sed -n 's,^ExecStart=/usr/bin/brig ,,p' "$BRIG_ROOT/packaging/systemd/brig-sweep.service")
    # shellcheck disable=SC2086 # several words
    "$BRIG" $command >/dev/null
    receipt_is .reason_code SANDBOX_EXPIRED
    no_sandbox_left
    need systemd-analyze
    sed "s,/usr/bin/brig,$BRIG," "$BRIG_ROOT/packaging/systemd/brig-sweep.service" >brig-sweep.service
    cp "$BRIG_ROOT/packaging/systemd/brig-sweep.timer" .
    run systemd-analyze verify --man=no ./brig-sweep.service ./brig-sweep.timer
    [[ $output != *"brig-sweep"* ]]
}
