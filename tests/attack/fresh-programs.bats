#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# C11: programs that were just written, have no name, or no longer, run within the same walls or
# not at all.

load attack

walls='grep -E "^(Uid|CapEff|CapBnd|NoNewPrivs|Seccomp|Seccomp_filters):" /proc/self/status'

@test "a program in memory, and a deleted one, has exactly the walls of any other" {
    run -0 box -- sh -c "$walls"
    ordinary=$output
    for kind in memfd deleted; do
        run box -- /mnt/attack/execute "$kind" /bin/sh -c "$walls"
        if [ "$status" -ne 0 ]; then
            refuses 'ENOSYS|EACCES' # not at all is as good
        else
            [ "$output" = "$ordinary" ]
        fi
    done
}

@test "its identity is its own, not that of what it was copied from" {
    run box -- /mnt/attack/execute deleted /bin/readlink /proc/self/exe
    status_is 0
    [[ $output == "/tmp/attack (deleted)" ]]
    run box -- /mnt/attack/execute memfd /bin/readlink /proc/self/exe
    [[ $output != /bin/readlink && $output != /usr/bin/readlink ]]
}

@test "a namespace or a mount is as far away from there" {
    cp "$ATTACK/calls" "$WORK/calls"
    run box --mount "$WORK/calls:/mnt/calls" -- /mnt/attack/execute deleted /mnt/calls mount
    status_is 0
    refuses EPERM
}

@test "memory file systems execute nothing, also not through the loader or a mapping" {
    run box -- sh -c 'cp /bin/true /dev/shm/x && chmod 755 /dev/shm/x && /dev/shm/x'
    status_is 126
    says "Permission denied"
    run -0 box -- sh -c 'cp /bin/true /dev/shm/x && /mnt/attack/execute map /dev/shm/x'
    answers map EPERM
    loader=$(find /lib64/ld-linux-*.so.* /lib/ld-linux-*.so.* 2>/dev/null | head -n 1)
    run box -- sh -c "cp /bin/true /dev/shm/x && $loader /dev/shm/x"
    [ "$status" -ne 0 ]
    run -0 box -- sh -c 'cp /bin/true /tmp/x && /tmp/x' # control: on disk it may
}

@test "a script's interpreter is looked for inside" {
    mkdir given
    printf '#!%s\n' "$BRIG" >given/script
    chmod 755 given/script
    run box --mount "$WORK/given:/workspace" -- /workspace/script
    status_is 127
    printf '#!/bin/sh\necho fine\n' >given/script
    run -0 box --mount "$WORK/given:/workspace" -- /workspace/script # control
    [ "$output" = fine ]
}
