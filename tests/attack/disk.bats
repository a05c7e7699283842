#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# D04: bytes and files on disk are limited in every shape, and all of it is given back.

load attack

# held KIND [CONTROL]: 64 MiB (3000 files) where 16 MiB (1000 files) are allowed.
held() {
    local limit=(--disk 16M) count=64 reason=LIMIT_DISK
    case $1 in
    *inodes) limit=(--inodes 1000) count=3000 reason=LIMIT_INODES ;;
    esac
    run box "${limit[@]}" --timeout 15s --json -- /mnt/attack/disk "$1" $count 20
    json_is .reason_code $reason
    [[ $(jq -r .stdout <<<"$output") != *kept* ]]
    [ "$(receipts 'last | .reason_code')" = $reason ]
    given_back
    # control: less is fine, in the same shape or, where the shape is what is refused, in another
    run -0 box "${limit[@]}" --timeout 15s --json -- /mnt/attack/disk "${2:-$1}" 4 1
    json_is .reason_code POLICY_DEFAULT_ALLOW
    given_back
}

given_back() {
    nothing_left
    [ "$(du -sk "$BRIG_HOME" | cut -f 1)" -lt 4096 ]
}

@test "one large file ends with an error at the limit" {
    run box --disk 16M --timeout 15s --json -- /mnt/attack/disk one-file 64 20
    json_is .exit_code 1
    json_is .stdout "write: EFBIG"
    given_back
}

@test "many files" {
    held many-files
}

@test "files below more folders than anyone counts" {
    held deep-files many-files
}

@test "files in a folder nobody may look into" {
    held locked-folder
}

@test "deleted files that are still open" {
    held deleted
}

@test "room without bytes" {
    held preallocated
}

@test "many small files" {
    held inodes
}

@test "many deleted files that are still open" {
    held deleted-inodes
}

# watched_by_user: whether disk is watched by somebody who may not look into every process.
watched_by_user() {
    [ "$(id -u)" -ne 0 ] && [ "$(box --json -- true | jq -r .limits.disk_bytes.means)" = watch ]
}

@test "deleted files that only a mapping keeps" {
    ! watched_by_user || skip "watched by an ordinary user, whom the kernel shows no map_files (decision 0016)"
    held mapped
}

@test "deleted files in a process that hides its descriptors" {
    ! watched_by_user || skip "watched by an ordinary user, whom the kernel shows no hidden process (decision 0016)"
    held hidden-deleted
}

@test "deleted files that wait in a socket" {
    means=$(box --json -- true | jq -r .limits.disk_bytes.means)
    [ "$means" != watch ] || skip "disk is watched, and nobody can look into a socket; an image of its own costs over 5 ms a sandbox (decision 0016)"
    held in-flight
}

@test "folders no one may enter or remove are given back as well" {
    run box -- sh -c 'mkdir -p /tmp/a/b/c && touch /tmp/a/b/c/f && chmod 000 /tmp/a/b/c /tmp/a/b /tmp/a; mkdir /sandbox/output/x; chmod 0 /sandbox/output/x; ln -s / /tmp/root-link'
    status_is 0
    given_back
    [ -d / ] && [ -d /usr ]
}

@test "a link out of the layer is not followed when it is cleared away" {
    mkdir precious
    touch precious/file
    run box -- sh -c "ln -s $WORK/precious /tmp/link; ln -s $WORK/precious /home/sandbox/link"
    status_is 0
    given_back
    [ -e precious/file ]
}
