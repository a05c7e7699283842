#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Each wall missing for real: boxes built without one (degraded/meson.build) must be noticed, each
# with its own reason, and the command must not run.

load common
load sandbox

# attempt: a run that would leave a trace.
attempt() {
    mkdir -p out
    chmod 0755 out
    run --separate-stderr timeout -k 5 "$PATIENCE" "$BRIG" sandbox exec --mount "$PWD/out:/workspace:rw" "$@" -- \
        touch /workspace/ran </dev/null
}

# noticed REASON CHECK OBSERVED…: denied for it, with a receipt, and nothing ran or is left.
noticed() {
    status_is 77
    [[ $stderr == *"DENY $1: "*"$2"* ]] || {
        printf 'said: %s\n' "$stderr" >&2
        return 1
    }
    [ ! -e out/ran ]
    receipt_is .kind denial
    receipt_is .status DENIED
    receipt_is .reason_code "$1"
    [ "$(receipts_of intent)" -eq 1 ]
    [ "$(receipts_of outcome)" -eq 0 ]
    nothing_is_left
}

# The posture of the denial differs from the planned one of its intent, and says in what.
degraded_receipt() {
    receipt_is '.posture.degraded | length > 0' true
    [ "$(receipt .posture.preimage_hash)" != "$(ledger "SELECT json_extract(body, '\$.posture.preimage_hash') FROM receipts WHERE kind = 'intent'")" ]
}

failed_checks() {
    "$BRIG" sandbox preflight --json | jq -r '[.checks[] | select(.result == "fail") | .name] | join(", ")'
}

@test "control: the box as it is built runs the command" {
    beside_box "$BRIG_BUILD/src/cmd/box/box"
    attempt
    status_is 0
    [ -e out/ran ]
    [ "$(failed_checks)" = "" ]
}

@test "no seccomp filter" {
    degraded_box seccomp
    attempt
    noticed PREFLIGHT_ISOLATION "preflight: "
    degraded_receipt
    [[ $(failed_checks) == *"seccomp filters, seccomp refuses"* ]]
}

@test "no Landlock" {
    degraded_box landlock
    attempt
    noticed PREFLIGHT_ISOLATION "landlock refuses: expected yes, observed no"
    degraded_receipt
}

@test "capabilities kept" {
    degraded_box capabilities
    attempt
    noticed PREFLIGHT_ISOLATION "capabilities empty: expected yes, observed no"
    degraded_receipt
}

@test "new privileges possible" {
    degraded_box no-new-privs
    attempt
    noticed PREFLIGHT_ISOLATION "preflight: "
    degraded_receipt
    [[ $(failed_checks) == *"no new privileges"* ]]
}

@test "new privileges possible, nothing else: the kernel itself refuses the next wall" {
    degraded_box only-no-new-privs
    attempt
    noticed SANDBOX_FAILED "Landlock: Operation not permitted"
}

@test "the user inside is root outside" {
    is_root || skip "only root could be mapped"
    degraded_box foreign-id
    attempt
    noticed PREFLIGHT_ISOLATION "host user is root: expected no, observed yes"
    degraded_receipt
}

@test "supplementary groups kept" {
    is_root || skip "only root can leave groups"
    degraded_box group-loss
    mkdir out
    run --separate-stderr setpriv --groups 4,24 "$BRIG" sandbox exec --mount "$PWD/out:/workspace:rw" -- \
        touch /workspace/ran </dev/null
    noticed PREFLIGHT_ISOLATION "supplementary groups left: expected yes, observed no"
}

@test "control: supplementary groups of the caller are left" {
    is_root || skip "only root can leave groups"
    run setpriv --groups 4,24 "$BRIG" sandbox exec --quiet -- grep Groups /proc/self/status </dev/null
    status_is 0
    [[ $output =~ ^Groups:[[:space:]]*$ ]]
}

@test "resource limits not set" {
    degraded_box rlimits
    attempt
    noticed PREFLIGHT_RESOURCE_LIMITS "limits: expected as planned"
    degraded_receipt
}

@test "not kept on its processors" {
    [ "$(nproc)" -gt 1 ] || skip "one processor only"
    is_root && skip "root holds it by cgroup"
    [ "$(brig sandbox exec --json -- true </dev/null | jq -r .limits.cpu_millis.means)" = affinity ] ||
        skip "held by something else"
    rm -rf "$BRIG_HOME"
    degraded_box affinity
    attempt --cpu 1
    noticed PREFLIGHT_RESOURCE_LIMITS "by affinity instead of 1000 by affinity"
}

@test "cgroups without limits" {
    [ "$(brig sandbox exec --json -- true </dev/null | jq -r .limits.memory_bytes.means)" = cgroup ] ||
        skip "no cgroups for this user"
    rm -rf "$BRIG_HOME"
    degraded_box group-limits
    attempt
    noticed PREFLIGHT_RESOURCE_LIMITS "by cgroup instead of"
    degraded_receipt
}

@test "not a member of its cgroups" {
    [ "$(brig sandbox exec --json -- true </dev/null | jq -r .limits.memory_bytes.means)" = cgroup ] ||
        skip "no cgroups for this user"
    rm -rf "$BRIG_HOME"
    degraded_box group-membership
    attempt
    noticed PREFLIGHT_RESOURCE_LIMITS "by cgroup instead of"
    degraded_receipt
}

@test "mounts writable that should not be" {
    degraded_box read-only
    attempt
    noticed PREFLIGHT_MOUNT_POLICY "has other flags"
    degraded_receipt
}

@test "sockets that should not be" {
    printf 'version: 1\nsockets: none\n' >profile.yaml
    degraded_box sockets
    attempt --profile profile.yaml
    noticed PREFLIGHT_ISOLATION "preflight: "
    degraded_receipt
    beside_box "$BRIG_BUILD/src/cmd/box/box" # control
    attempt --profile profile.yaml
    status_is 0
}

@test "nothing masked below /proc" {
    degraded_box masks
    attempt
    noticed PREFLIGHT_MOUNT_POLICY "instead of /proc/"
    degraded_receipt
}

@test "the root writable" {
    degraded_box sealed-root
    attempt
    noticed PREFLIGHT_MOUNT_POLICY "/ has other flags"
    degraded_receipt
}

@test "the network of the host" {
    degraded_box netns
    attempt
    noticed PREFLIGHT_EGRESS_POLICY "egress policy: expected sha256:"
    degraded_receipt
}

@test "a namespace shared with the host" {
    for name in ipcns utsns cgroupns; do
        rm -rf "$BRIG_HOME"
        degraded_box $name
        attempt
        noticed PREFLIGHT_ISOLATION "own namespaces: expected 127, observed "
        degraded_receipt
    done
}

@test "the namespaces without which nothing can be built" {
    for name in userns mountns pidns; do
        rm -rf "$BRIG_HOME"
        degraded_box $name
        attempt
        noticed SANDBOX_FAILED "Operation not permitted"
    done
}

@test "a box that never stands is ended, and brig with it" {
    degraded_box supervision
    attempt
    noticed SANDBOX_FAILED "the sandbox did not stand in time"
}

@test "a program that is no box is refused" {
    beside_box /bin/true
    attempt
    noticed SANDBOX_FAILED "box ended before the sandbox stood"
    rm -rf "$BRIG_HOME"
    beside_box /bin/cat
    attempt
    noticed SANDBOX_FAILED ""
}
