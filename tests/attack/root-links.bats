#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# B05: links in what is mounted redirect neither a mount nor a mask, and a target is never reached
# through one.

load attack

setup() {
    common_setup
    mkdir hostile
    for name in dev proc sys etc tmp usr home sandbox; do
        ln -s "$WORK" "hostile/$name"
    done
    ln -s /proc/1/root hostile/root
    ln -s ../../../../../../../../.. hostile/up
    echo canary >"$WORK/canary"
}

@test "links of a mounted folder are resolved inside, not on the host" {
    for link in dev proc sys etc tmp usr home root up; do
        run box --mount "$WORK/hostile:/workspace" -- cat "/workspace/$link/canary"
        [ "$status" -ne 0 ]
        [[ $output != canary ]]
    done
    run -0 box --mount "$WORK/hostile:/workspace" -- ls /workspace/up/sandbox # control: / inside
}

@test "a mount target inside another mount, or at one of Brig's own places, is refused" {
    mkdir plain
    for target in /workspace/etc /workspace/proc/x; do
        run box --mount "$WORK/hostile:/workspace:rw" --mount "$WORK/plain:$target:rw" -- true
        status_is 77
        [ "$(receipts 'last | .reason_code')" = MOUNT_FORBIDDEN ]
    done
    for target in / /proc /proc/self/fd/0 /dev/null /dev/console /dev/pts/x /sys/fs/cgroup /etc \
        /etc/passwd /bin /lib64/x /tmp/x /var/run/x /usr/lib /run /sandbox/tmp/x /sandbox /var; do
        run box --mount "$WORK/plain:$target:rw" -- true
        status_is 77
        [ "$(receipts 'last | .reason_code')" = MOUNT_FORBIDDEN ]
    done
    [ -z "$(ls -A plain)" ]
    run -0 box --mount "$WORK/plain:/srv/deep/er:rw" -- touch /srv/deep/er/file # control
    [ -e plain/file ]
}

@test "targets with dots, double slashes or no leading slash are refused" {
    mkdir plain
    for target in /mnt/../etc /mnt/./x //mnt/x mnt/x /mnt/x/ /mnt//x ../x ""; do
        run box --mount "$WORK/plain:$target" -- true
        [ "$status" -eq 77 ] || [ "$status" -eq 64 ]
    done
}

@test "the masks lie over what they mask, and nothing is behind them" {
    run -0 box -- sh -c 'stat -c %t:%T /proc/kcore /proc/keys 2>/dev/null | sort -u'
    [ "$output" = 1:3 ] # /dev/null
    run -0 box -- sh -c 'cat /proc/self/root/proc/kallsyms /proc/thread-self/root/proc/kcore 2>/dev/null | wc -c'
    [ "$output" = 0 ]
}
