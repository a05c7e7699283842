#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A03: the working directory is an object inside the root, reached through no link.

load attack

setup() {
    common_setup
    mkdir -p work/inner
    ln -s /etc work/to-etc
    ln -s inner work/to-inner
    ln -s /proc/self/fd work/to-fd
}

in_dir() {
    box --mount "$WORK/work:/workspace" --workdir "$1" -- pwd
}

@test "links, also harmless ones, are refused as working directory" {
    for dir in /workspace/to-etc /workspace/to-inner /workspace/to-inner/.. /bin /dev/fd; do
        run in_dir "$dir"
        status_is 77
    done
    denied SANDBOX_FAILED "Too many levels of symbolic links" --mount "$WORK/work:/workspace" \
        --workdir /workspace/to-etc -- true
    # control
    run -0 in_dir /workspace/inner
    [ "$output" = /workspace/inner ]
}

@test "links of /proc are refused as working directory" {
    for dir in /proc/self/fd/5 /proc/self/cwd /proc/self/root /proc/1/root /proc/self /proc/thread-self/cwd; do
        run in_dir "$dir"
        status_is 77
        [[ $output != *"/"$'\n' ]]
    done
}

@test "dots, relative paths and files are refused as working directory" {
    for dir in /workspace/../etc /workspace/./inner . inner //workspace "" /etc/passwd /nonexistent; do
        run in_dir "$dir"
        [ "$status" -eq 77 ] || [ "$status" -eq 64 ]
    done
}

@test "the refusal has a receipt, and nothing ran" {
    run in_dir /workspace/to-etc
    status_is 77
    [ "$(receipts 'map(.kind) | join(" ")')" = "intent denial" ]
    [ "$(receipts 'last | .outcome.started // false')" = false ]
}
