#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# B09: what was judged is what is mounted, while the source is renamed all the time.

load attack

setup() {
    common_setup
    mkdir -p good/inner bad/inner
    echo good >good/inner/word
    echo bad >bad/inner/word
}

teardown() {
    [ -z "${swapper:-}" ] || kill "$swapper" 2>/dev/null || true
    wait
}

@test "a source exchanged for a link to /etc is never seen" {
    ln -s /etc link
    "$ATTACK/swap" "$WORK/good" "$WORK/link" 3>&- >/dev/null &
    swapper=$!
    mounted=0 refused=0
    for _ in $(seq 60); do
        run box --mount "$WORK/good:/workspace" -- sh -c 'cat /workspace/inner/word; ls /workspace'
        case $status in
        0)
            [ "$output" = $'good\ninner' ]
            mounted=$((mounted + 1))
            ;;
        77) refused=$((refused + 1)) ;;
        *)
            echo "status $status: $output" >&2
            return 1
            ;;
        esac
        [[ $output != *passwd* ]]
    done
    # control: it came to both, so there was a race, and a run can win it
    [ "$mounted" -gt 0 ]
    [ "$refused" -gt 0 ]
    each_run_ended_once
}

@test "a folder above the source is exchanged: the mounted one is the judged one" {
    "$ATTACK/swap" "$WORK/good" "$WORK/bad" 3>&- >/dev/null &
    swapper=$!
    for _ in $(seq 40); do
        run box --mount "$WORK/good/inner:/workspace" -- cat /workspace/word
        # Either was a fair reading of the name; one half of each would not be.
        [[ $output == good || $output == bad || $status -eq 77 ]]
    done
}
