#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# B11: read-only means that neither bytes nor what is known of them change, by any call.

load attack

setup() {
    common_setup
    mkdir -p given/folder
    echo original >given/file
    chmod 0777 given
    chmod 0666 given/file
    setfattr -n user.kept -v 1 given/file 2>/dev/null || true
}

# Everything the file system knows, times included. What we read ourselves is read before.
known() {
    sha256sum given/file
    find given >/dev/null
    find given -printf '%p %i %m %U %G %n %s %y %A@ %T@ %C@\n' | sort
}

@test "no call changes a read-only mount, and every refusal is the mount's" {
    before=$(known)
    run -0 box --mount "$WORK/given:/workspace" -- /mnt/attack/change /workspace
    answers read worked # control: it is there
    answers "open for writing" EROFS
    answers "truncate" EROFS
    answers "chmod" EROFS
    answers "utimensat" EROFS
    answers "setxattr" EROFS
    answers "attributes" EROFS
    answers "link beside" EROFS
    answers "mmap shared for writing" EACCES
    without read
    # What has no write access to begin with answers by the descriptor (EBADF, EINVAL), by the
    # mapping (EACCES) or by the two mounts (EXDEV).
    refuses 'EROFS|EACCES|EBADF|EINVAL|EXDEV|EPERM|EOPNOTSUPP|EEXIST'
    [ "$before" = "$(known)" ]
}

@test "control: the same mount, writable, does change" {
    before=$(known)
    run -0 box --mount "$WORK/given:/workspace:rw" -- /mnt/attack/change /workspace
    answers "open for writing" worked
    answers "truncate" worked
    answers "fchmod" worked
    [ "$before" != "$(known)" ]
}

@test "a read-only file cannot be changed either" {
    before=$(known)
    run box --mount "$WORK/given/file:/mnt/file" -- sh -c 'echo more >>/mnt/file'
    [ "$status" -ne 0 ]
    says "Read-only file system"
    run box --mount "$WORK/given/file:/mnt/file" -- sh -c 'rm -f /mnt/file; mv /mnt/file /tmp/x; chmod 777 /mnt/file'
    [ "$status" -ne 0 ]
    [ "$before" = "$(known)" ]
}

@test "remounting, binding over and unmounting are refused by the filter" {
    for command in 'mount -o remount,rw,bind /workspace' 'mount --bind /tmp /workspace' 'umount /workspace' 'umount -l /'; do
        run box --mount "$WORK/given:/workspace" -- sh -c "$command"
        [ "$status" -ne 0 ]
    done
    run -0 box -- /mnt/attack/calls mount
    refuses EPERM
}

@test "reading leaves no trace in the access time" {
    touch -a -d 2001-01-01 given/file given/folder
    before=$(stat -c '%X %Y %Z' given/file given/folder)
    run -0 box --mount "$WORK/given:/workspace" -- sh -c 'cat /workspace/file; ls /workspace; find /workspace'
    [ "$before" = "$(stat -c '%X %Y %Z' given/file given/folder)" ]
    cat given/file >/dev/null # control: outside, reading does
    [ "$before" != "$(stat -c '%X %Y %Z' given/file given/folder)" ]
}

@test "the system's own folders are read-only" {
    run -0 box -- /mnt/attack/open write /usr/bin/env /etc/passwd /etc/hosts /bin/sh
    refuses 'EROFS|EACCES'
    run box -- sh -c 'touch /usr/x /etc/x /x /lib/x /var/x /workspace/x /sandbox/input/x /home/x'
    [ "$status" -ne 0 ]
    [ "$(grep -cE 'Read-only file system|Permission denied' <<<"$output")" -eq 8 ]
    run -0 box -- touch /tmp/x /sandbox/output/x /sandbox/tmp/y /home/sandbox/x /dev/shm/x # control
}

@test "a nested mount comes along read-only" {
    is_root || skip "only root can make the mount that is nested here"
    mkdir other
    echo nested >other/file
    run unshare --mount --propagation private bash -c 'mount --bind "$1/other" "$1/given/folder" &&
        "$BRIG" sandbox exec --quiet --mount "$1/given:/workspace" -- sh -c "cat /workspace/folder/file; echo x >/workspace/folder/file"' sh "$WORK"
    [ "$status" -ne 0 ]
    says nested
    says "Read-only file system"
    [ "$(cat other/file)" = nested ]
}
