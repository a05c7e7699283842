#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# B, D and E in sandboxes that stay, on the host's root and on an image: what a one-shot sandbox
# withstands, one that is used again and again does too, by whatever way a command gets into it.

load attack
load ../flow/image-kit

setup() {
    common_setup
    unset id
}

teardown() {
    local each
    for each in $("$BRIG" sandbox list --json 2>/dev/null | jq -r '.sandboxes[].sandbox_id'); do
        "$BRIG" sandbox destroy "$each" 2>/dev/null || true
    done
}

# a_box ROOT [OPTION…]: a sandbox on "host" or "image" that has run a command before; its id in $id.
a_box() {
    local root=()
    if [ "$1" = image ]; then
        if [ ! -d "$WORK/layout" ]; then
            busybox_layout "$WORK/layout" bb >/dev/null
            "$BRIG" image import "$WORK/layout" --name bb >/dev/null
        fi
        root=(--image bb)
    fi
    shift
    id=$("$BRIG" sandbox create --json "${root[@]}" --mount "$ATTACK:/mnt/attack:ro" "$@" | jq -r .sandbox_id)
    kept -- true </dev/null
}

kept() {
    "$BRIG" sandbox exec "$id" --quiet "$@" </dev/null
}

roots() {
    echo host
    ! command -v busybox >/dev/null || echo image
}

# ---- B: files, mounts, proc, sys ----

@test "not one file below /proc/sys opens for writing: second command, terminal, detached, image" {
    for root in $(roots); do
        a_box "$root"
        run -0 kept --timeout 60s -- /mnt/attack/open write-below /proc/sys
        [ "$output" = "tried many, opened 0" ]
        run -0 kept --tty --timeout 60s -- /mnt/attack/open write-below /proc/sys
        says "tried many, opened 0"
        "$BRIG" sandbox exec "$id" --detach -- /mnt/attack/open write-below /proc/sys
        run "$BRIG" sandbox logs "$id" --follow
        says "tried many, opened 0"
    done
}

@test "what tells of the machine, and its devices, are as closed as elsewhere" {
    for root in $(roots); do
        a_box "$root"
        run -0 kept -- /mnt/attack/open read /proc/kcore /proc/kmsg /proc/kallsyms /proc/keys /proc/slabinfo \
            /proc/timer_list /sys/firmware /sys/kernel/debug /dev/mem /dev/kmem /dev/kmsg /dev/fuse /dev/kvm \
            /dev/net/tun /dev/loop-control /dev/disk
        refuses 'ENOENT|EACCES|EPERM|empty'
        run -0 kept -- /mnt/attack/open read /proc/meminfo /dev/null # control
        refuses 'worked|empty'
        run kept -- /mnt/attack/calls mount
        refuses EPERM
    done
}

known() {
    sha256sum given/file
    find given >/dev/null
    find given -printf '%p %i %m %U %G %n %s %y %A@ %T@ %C@\n' | sort
}

@test "read-only stays read-only for every command and for the file commands" {
    mkdir -p given/folder
    echo original >given/file
    chmod 0777 given
    chmod 0666 given/file
    for root in $(roots); do
        a_box "$root" --mount "$WORK/given:/data"
        before=$(known)
        run -0 kept -- /mnt/attack/change /data
        answers read worked
        answers "open for writing" EROFS
        without read
        refuses 'EROFS|EACCES|EBADF|EINVAL|EXDEV|EPERM|EOPNOTSUPP|EEXIST'
        run ! "$BRIG" sandbox files write "$id" /data/file <<<changed
        run ! "$BRIG" sandbox files rm "$id" /data/file
        run ! "$BRIG" sandbox files mkdir "$id" /data/new
        run ! "$BRIG" sandbox files mv "$id" /data/file /data/other
        run ! "$BRIG" sandbox cp given/file "$id:/data/copy"
        [ "$(known)" = "$before" ]
        "$BRIG" sandbox destroy "$id"
    done
    a_box host --mount "$WORK/given:/data:rw" # control
    "$BRIG" sandbox files write "$id" /data/file <<<changed
    [ "$(cat given/file)" = changed ]
}

# ---- D: resources ----

@test "a fork bomb in one command stops at the sandbox's number, and the next command runs" {
    for root in $(roots); do
        name=$(a_name)
        a_box "$root" --pids 32
        run kept --timeout 5s -- /mnt/attack/linger "$name" 100 ignore
        says "fork: EAGAIN"
        made=$(sed -n "s/^$name: //p" <<<"$output")
        [ -n "$made" ]
        [ "$made" -ge 10 ]
        [ "$made" -le 32 ]
        eventually 2 none_called "$name"
        run -0 kept -- echo on
        [ "$output" = on ]
        "$BRIG" sandbox destroy "$id"
    done
}

@test "memory over the limit ends the command or its sandbox, says so, and harms no other" {
    a_box host
    other=$id
    for root in $(roots); do
        a_box "$root" --memory 64M
        run "$BRIG" sandbox exec "$id" --timeout 15s --json -- /mnt/attack/memory anon 16 </dev/null # control
        json_is .exit_code 0
        run "$BRIG" sandbox exec "$id" --timeout 15s --json -- /mnt/attack/memory anon 192 </dev/null
        json_is .reason_code LIMIT_MEMORY
        json_is .oom_killed true
        [ "$(receipts '[.[] | select(.kind == "outcome" and .outcome.oom_killed)] | last | .reason_code')" = LIMIT_MEMORY ]
    done
    id=$other
    run -0 kept -- echo on
    [ "$output" = on ]
}

given_back() {
    "$BRIG" sandbox list >/dev/null 2>&1
    [ "$(du -sk "$BRIG_HOME/boxes" | cut -f 1)" -lt 1024 ]
}

@test "the disk limit is one for all commands of a sandbox together" {
    for root in $(roots); do
        a_box "$root" --disk 16M
        run "$BRIG" sandbox exec "$id" --json -- /mnt/attack/disk many-files 8 1 </dev/null
        json_is .exit_code 0
        run kept -- /mnt/attack/disk many-files 4 0 # whether or not its files are others
        run "$BRIG" sandbox exec "$id" --timeout 15s --json -- /mnt/attack/disk many-files 64 20 </dev/null
        json_is .reason_code LIMIT_DISK
        json_is .signal 9
        eventually 10 given_back
    done
}

@test "what the file commands write counts as well, and is given back" {
    head -c 64M /dev/zero >big
    a_box host --disk 16M
    # One file never gets longer than the limit, however seldom the disk is looked at.
    run ! "$BRIG" sandbox files write "$id" /tmp/big <big
    [[ $output == *"disk limit"* ]]
    run ! "$BRIG" sandbox cp big "$id:/tmp/big"
    [[ $output == *"disk limit"* ]]
    eventually 10 given_back
    # Several together end the sandbox.
    head -c 12M /dev/zero >part
    "$BRIG" sandbox files write "$id" /tmp/part1 <part
    "$BRIG" sandbox files write "$id" /tmp/part2 <part 2>/dev/null || true
    eventually 10 given_back
    run ! kept -- true
    a_box host --disk 128M # control
    "$BRIG" sandbox files write "$id" /tmp/big <big
}

@test "a flood of output is counted in full and kept in part" {
    expected=$(head -c 67108864 /dev/zero | sha256sum | cut -d ' ' -f 1)
    a_box host
    run -0 "$BRIG" sandbox exec "$id" --json --timeout 60s -- head -c 67108864 /dev/zero </dev/null
    jq -c 'del(.stdout)' <<<"$output" >short
    output=$(cat short)
    json_is .truncated true
    json_is .stdout_bytes 67108864
    json_is .stdout_hash "sha256:$expected"
}

# ---- E: lifecycle ----

@test "at the deadline of one command nothing of it is left, and all of the others" {
    for root in $(roots); do
        name=$(a_name)
        stays=$(a_name)x
        a_box "$root" --pids 400
        kept --keep -- sh -c "/mnt/attack/linger ${stays:0:15} 1 detach >/dev/null 2>&1 &"
        eventually 3 some_called "${stays:0:15}"
        run "$BRIG" sandbox exec "$id" --timeout 5s --json -- /mnt/attack/linger "$name" 200 detach ignore stop </dev/null
        status_is 124
        json_is .reason_code LIMIT_TIME
        [[ $(jq -r .stdout <<<"$output") == *": 200" ]] # control: they all were there
        eventually 1 none_called "$name"
        some_called "${stays:0:15}"
        "$BRIG" sandbox destroy "$id"
        none_called "${stays:0:15}"
    done
    each_run_ended_once
}
