#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A06: no program that runs as somebody else can be left behind, also not on the host's own disk.

load attack

@test "no call sets a set-id bit in a writable mount" {
    mkdir shared
    run -0 box --mount "$WORK/shared:/workspace:rw" -- /mnt/attack/set-id /workspace
    answers "an ordinary mode" worked
    # The kernel itself drops the bits of a new folder; the mode is what is judged.
    answers "set-user-id by mkdir" worked
    without "an ordinary mode" "set-user-id by mkdir" "set-group-id by mkdir"
    refuses 'EPERM|ENOSYS'
    answers "set-user-id by O_TMPFILE" EPERM
    answers "a file capability" EPERM
    [ -z "$(find shared -perm /6000)" ]
}

@test "control: outside the same program does set them" {
    mkdir shared
    run -0 "$ATTACK/set-id" shared
    says "set-user-id by fchmod: THE FILE HAS MODE 4755"
    says "set-user-id by O_TMPFILE: THE FILE HAS MODE 4755"
}

@test "an archive with set-id files unpacks without the bits or not at all" {
    mkdir shared source
    cp /bin/true source/suid
    chmod 4755 source/suid
    tar -C source -cf shared/a.tar suid
    run box --mount "$WORK/shared:/workspace:rw" -- tar -C /workspace -xpf /workspace/a.tar
    [ -z "$(find shared -perm /6000)" ]
    run -0 box --mount "$WORK/shared:/workspace:rw" -- tar -C /workspace -tf /workspace/a.tar
}
