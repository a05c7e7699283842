#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A04: the program that started us, and runs as PID 1, cannot be opened for writing or reading
# through any link of /proc.

load attack

@test "PID 1's program, descriptors, memory and root are closed to the command" {
    run -0 box -- /mnt/attack/open write /proc/1/exe /proc/1/mem /proc/1/fd/3 /proc/1/fd/4 \
        /proc/1/fd/5 /proc/1/fd/6 /proc/1/task/1/exe /proc/1/oom_score_adj
    refuses EACCES
    run -0 box -- /mnt/attack/open read /proc/1/exe /proc/1/mem /proc/1/environ /proc/1/maps \
        /proc/1/root/etc/passwd /proc/1/cwd/x /proc/1/map_files /proc/1/stack /proc/1/auxv
    refuses 'EACCES|EPERM'
    # control: one's own
    run -0 box -- /mnt/attack/open read /proc/self/exe /proc/self/environ /proc/self/maps
    refuses worked
}

@test "at no moment of many starts the launcher's program is open to write" {
    # As in the race for a container runtime's binary: whoever is executed next might be it.
    run -0 box --timeout 20s -- sh -c 'i=0
        while [ $i -lt 3000 ]; do
            i=$((i + 1))
            for exe in /proc/[0-9]*/exe; do
                (: >>$exe) 2>/dev/null && echo "$exe: worked"
            done
            [ $i -gt 20 ] && break
        done
        /mnt/attack/open write /proc/self/exe /usr/bin/sh /proc/1/exe'
    [[ $output != *": worked"* ]]
    answers /proc/1/exe EACCES
    answers /usr/bin/sh EACCES # Landlock's answer; the mount's would be EROFS
}

@test "Brig's own programs are nowhere inside" {
    run -0 box -- sh -c 'find / -xdev \( -name brig -o -name box \) -type f 2>/dev/null; echo looked'
    without_own=$(grep -v '^/usr/' <<<"$output")
    [ "$without_own" = looked ]
}

@test "the launcher's program is the same afterwards" {
    before=$(sha256sum "$BRIG_BUILD/src/cmd/box/box" "$BRIG")
    run box -- sh -c 'cp /bin/true /proc/1/exe; cp /bin/true /proc/self/exe; dd if=/dev/zero of=/proc/1/mem count=1'
    [ "$status" -ne 0 ]
    [ "$before" = "$(sha256sum "$BRIG_BUILD/src/cmd/box/box" "$BRIG")" ]
}
