#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# B01-B04: no sysctl, cgroup or binary format can be written, and what tells of the machine is masked.

load attack

@test "not one file below /proc/sys opens for writing" {
    run -0 box --timeout 60s -- /mnt/attack/open write-below /proc/sys
    [ "$output" = "tried many, opened 0" ]
}

@test "the sysctls that lead to the host are read-only whoever one is" {
    before=$(cat /proc/sys/kernel/core_pattern)
    for file in kernel/core_pattern kernel/modprobe kernel/hotplug vm/overcommit_memory \
        kernel/ns_last_pid fs/binfmt_misc/register net/ipv4/ip_forward kernel/hostname; do
        run box -- sh -c "echo '|/tmp/x' >/proc/sys/$file"
        [ "$status" -ne 0 ]
    done
    [ "$before" = "$(cat /proc/sys/kernel/core_pattern)" ]
    run -0 box -- grep ' /proc/sys ' /proc/self/mounts
    says " ro,"
    run -0 box -- cat /proc/sys/kernel/osrelease # control: reading works
    [ "$output" = "$(uname -r)" ]
}

@test "no cgroup tree is there or can be mounted" {
    run -1 box -- grep -E ' cgroup2? ' /proc/self/mounts
    run -2 box -- ls /sys
    run box -- mount -t cgroup2 none /tmp
    [ "$status" -ne 0 ]
    [[ $output == *"ermission denied"* || $output == *"must be superuser"* || $output == *"not permitted"* ]]
    run -0 box -- sh -c 'cut -d: -f3 /proc/self/cgroup | sort -u'
    for path in "${lines[@]}"; do
        [[ $path != *..* ]]
    done
}

@test "the sandbox sees its own cgroup as the root of all, when it has one" {
    means=$(box --json -- true | jq -r .limits.pids.means)
    [ "$means" = cgroup ] || skip "no cgroup here: pids are held by $means"
    run -0 box -- grep -E ':(pids|memory|):' /proc/self/cgroup
    for line in "${lines[@]}"; do
        [[ $line == *:/ ]]
    done
}

@test "no binary format can be registered" {
    run box -- sh -c 'echo ":atk:M::ATK::/bin/sh:" >/proc/sys/fs/binfmt_misc/register'
    [ "$status" -ne 0 ]
    [ ! -e /proc/sys/fs/binfmt_misc/atk ]
}

@test "what tells of the machine is absent, empty or unreadable" {
    run -0 box -- /mnt/attack/open read /proc/kcore /proc/kmsg /proc/kallsyms /proc/keys \
        /proc/key-users /proc/timer_list /proc/sched_debug /proc/config.gz /proc/slabinfo \
        /proc/vmallocinfo /proc/modules /proc/kpagecount /proc/kpageflags /proc/kpagecgroup \
        /proc/interrupts /proc/zoneinfo /proc/latency_stats /sys/firmware /sys/kernel/debug \
        /sys/kernel/security /sys/kernel/vmcoreinfo /sys/devices/virtual/powercap /dev/mem \
        /dev/kmem /dev/port /dev/kmsg /dev/core /dev/cpu/0/msr /dev/fuse /dev/kvm /dev/net/tun \
        /dev/vhost-net /dev/mapper/control /dev/loop-control /dev/userfaultfd /dev/disk
    refuses 'ENOENT|EACCES|EPERM|empty'
    run -0 box -- sh -c 'ls -A /proc/acpi /proc/scsi /proc/tty /proc/asound 2>/dev/null | grep -v : | grep . || echo nothing'
    [ "$output" = nothing ]
    run -0 box -- /mnt/attack/open write /proc/sysrq-trigger /proc/kmsg /proc/timer_list /proc/irq/default_smp_affinity
    refuses 'ENOENT|EACCES|EPERM|EROFS'
    run -0 box -- /mnt/attack/open read /proc/meminfo /proc/cpuinfo /proc/self/status # control
    refuses worked
}
