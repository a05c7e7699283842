#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# B18: only the harmless device nodes exist, and no other can be made.

load attack

@test "the device nodes are these and no others" {
    # A node that is mounted over a file is listed as what it covers, so each is asked.
    run -0 box -- sh -c 'find / -xdev ! -type d -exec stat -c "%n %F" {} + | sed -n "s/ \(character\|block\) special file//p" | sort
        find /dev/pts /usr /tmp /run /dev/shm /home /sandbox -type b -o -type c 2>/dev/null
        true'
    [ "$output" = "/dev/full
/dev/null
/dev/random
/dev/tty
/dev/urandom
/dev/zero
/dev/pts/ptmx" ]
    run -0 box -- sh -c 'stat -c "%n %t:%T" /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty'
    [ "$output" = "/dev/null 1:3
/dev/zero 1:5
/dev/full 1:7
/dev/random 1:8
/dev/urandom 1:9
/dev/tty 5:0" ]
}

@test "no device can be made, wherever files can" {
    for dir in /tmp /dev/shm /home/sandbox /sandbox/output; do
        run box -- mknod "$dir/disk" b 8 0
        status_is 1
        says "Permission denied" # Landlock's; the kernel's own would be EPERM
        run box -- mknod "$dir/mem" c 1 1
        status_is 1
        says "Permission denied"
        run -0 box -- mkfifo "$dir/fifo" # control
    done
    run box -- mknod /dev/mem c 1 1
    [ "$status" -ne 0 ]
}

@test "a device node in a mounted folder does not open" {
    is_root || skip "only root can make the node this mounts"
    mkdir nodes
    mknod nodes/zero c 1 5
    chmod 0666 nodes/zero
    run box --mount "$WORK/nodes:/workspace:rw" -- head -c 1 /workspace/zero
    [ "$status" -ne 0 ]
    says "Permission denied"
    run -0 head -c 1 nodes/zero # control
}

@test "the devices that are there do only what they do" {
    run -0 box -- sh -c 'head -c 4 /dev/zero | od -An -tx1; echo x >/dev/null; head -c 8 /dev/urandom | wc -c'
    says "00 00 00 00"
    before=$(stat -c '%a %u %g %Z' /dev/null)
    for change in 'chmod 777' 'chown 1000' 'touch' 'rm -f'; do
        # shellcheck disable=SC2086 # a command and its option
        run box -- $change /dev/null
        status_is 1
        says "Read-only file system"
    done
    [ "$before" = "$(stat -c '%a %u %g %Z' /dev/null)" ]
}
