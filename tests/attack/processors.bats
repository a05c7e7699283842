#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# D08: the share of the processors is what was planned, and no class or affinity gets around it.

load attack

teardown() {
    [ -z "${box:-}" ] || kill "$box" 2>/dev/null || true
    wait
}

@test "no real-time class, no better priority, no other processors" {
    run -0 box -- /mnt/attack/scheduling
    answers batch worked # control: giving way is allowed
    answers "all processors" EPERM
    without batch processors
    refuses 'EPERM|EACCES'
    run -0 "$ATTACK/scheduling" # control: outside, one's own affinity can be set
    answers "all processors" worked
}

@test "the quota is in the kernel while the command runs, or a fraction is refused" {
    means=$(box --json -- true | jq -r .limits.cpu_millis.means)
    if [ "$means" != cgroup ]; then
        run box --cpu 0.5 --json -- true
        status_is 77
        json_is .reason_code LIMIT_NOT_ENFORCEABLE
        return
    fi
    name=$(a_name)
    start_box --cpu 0.5 -- /mnt/attack/linger "$name" 1
    eventually 10 grep -q "$name" "$WORK/said"
    pid=$(pid_called "$name")
    group=$(awk -F: '$2 ~ /(^|,)cpu(,|$)/ || $1 == 0 { print $3; exit }' "/proc/$pid/cgroup")
    found=
    for file in /sys/fs/cgroup/cpu*"$group"/cpu.cfs_quota_us; do
        [ -e "$file" ] || continue
        quota=$(cat "$file")
        period=$(cat "${file%quota_us}period_us")
        [ $((quota * 2)) -eq "$period" ]
        found=1
    done
    for file in /sys/fs/cgroup{,/unified}"$group"/cpu.max; do
        [ -e "$file" ] || continue
        read -r quota period <"$file"
        [ $((quota * 2)) -eq "$period" ]
        found=1
    done
    [ -n "$found" ]
}

@test "by affinity, one processor is one processor" {
    means=$(box --json -- true | jq -r .limits.cpu_millis.means)
    [ "$means" = affinity ] || skip "held by $means here"
    run -0 box --cpu 1 -- /mnt/attack/scheduling
    says "processors: 1"
}
