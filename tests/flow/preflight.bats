#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig sandbox preflight, and what a profile pins and demands.

load common
load sandbox

preflight() {
    run --separate-stderr timeout -k 5 "$PATIENCE" "$BRIG" sandbox preflight "$@"
}

@test "every check has a name, what was expected, what was seen, a result" {
    preflight --provider local --json
    status_is 0
    json_is .pass true
    json_is .verdict ALLOW
    json_is .evidence observed
    json_is '.checks | length > 10' true
    json_is '[.checks[] | select((.expected | type) != "string" or (.observed | type) != "string")] | length' 0
    json_is '[.checks[] | select(.result != "pass")] | length' 0
    json_is '[.checks[].reason_code] | unique | join(" ")' \
        "PREFLIGHT_EGRESS_POLICY PREFLIGHT_IMAGE_DIGEST PREFLIGHT_ISOLATION PREFLIGHT_MOUNT_POLICY PREFLIGHT_PROVIDER_VERSION PREFLIGHT_RESOURCE_LIMITS"
    json_is '[.sandbox_spec_hash, .image_digest, .mounts_hash, .egress_policy_hash,
        .resource_limits_hash, .preflight_hash] | all(test("^sha256:[0-9a-f]{64}$"))' true
}

@test "text says the same, and how each limit is held" {
    preflight
    status_is 0
    for name in "provider version" "image digest" "egress policy" "mount policy" "resource limits" \
        "seccomp refuses" "landlock refuses" "no new privileges" "capabilities empty"; do
        says "pass  $name"
    done
    [[ $output =~ memory_bytes\ +536870912,\ held\ by\ (cgroup|watch) ]]
    [[ $stderr == "brig: ALLOW; receipt "* ]]
}

@test "it runs nothing, and leaves nothing but receipts" {
    preflight
    receipt_is .outcome.started false
    [ "$(receipts_of intent)" -eq 1 ]
    [ "$(receipts_of outcome)" -eq 1 ]
    chain_holds 2
    nothing_is_left
}

@test "the same machine gives the same hashes again, and exec those of preflight" {
    preflight --json
    first=$(printf '%s' "$output" | jq -r .preflight_hash)
    preflight --json
    json_is .preflight_hash "$first"
    exec_json -- true </dev/null
    json_is .preflight_hash "$first"
    exec_json --memory 100M -- true </dev/null
    json_is ".preflight_hash == \"$first\"" false
}

@test "the mock provider only claims" {
    preflight --provider mock --json
    status_is 0
    json_is .evidence claimed
    printf '%s\n' 'version: 1' 'evidence: observed' >profile.yaml
    preflight --provider mock --profile profile.yaml --json
    status_is 77
    json_is .reason_code PREFLIGHT_ISOLATION
    preflight --provider local --profile profile.yaml
    status_is 0
}

@test "a provider that is not there fails it" {
    preflight --provider e2b --json
    status_is 77
    json_is .reason_code PROVIDER_UNAVAILABLE
    json_is .pass false
    preflight --provider nowhere
    status_is 77
}

# ---- pins ----

pinned_run_is_denied() {
    mkdir -p out
    run brig sandbox exec --profile profile.yaml --mount "$PWD/out:/workspace:rw" -- touch /workspace/ran </dev/null
    status_is 77
    says "DENY $1: preflight: $2"
    [ ! -e out/ran ]
    receipt_is .kind denial
    receipt_is .reason_code "$1"
    receipt_is '.posture.degraded | length > 0' true
    [ "$(receipts_of intent)" -eq 1 ]
    nothing_is_left
}

pinned_run_is_allowed() {
    mkdir -p out
    run brig sandbox exec --profile profile.yaml --mount "$PWD/out:/workspace:rw" -- touch /workspace/ran </dev/null
    status_is 0
    [ -e out/ran ]
}

@test "a provider version other than the pinned one is denied" {
    printf '%s\n' 'version: 1' 'provider_version: local/0.0.0' >profile.yaml
    pinned_run_is_denied PREFLIGHT_PROVIDER_VERSION "provider version: expected local/0.0.0"
}

@test "the pinned provider version passes" {
    printf 'version: 1\nprovider_version: "%s"\n' "$(brig sandbox preflight --json | jq -r .provider_version)" >profile.yaml
    pinned_run_is_allowed
}

@test "an image other than the pinned one is denied" {
    printf 'version: 1\nimage_digest: sha256:%064d\n' 0 >profile.yaml
    pinned_run_is_denied PREFLIGHT_IMAGE_DIGEST "image digest: expected sha256:0000"
}

@test "the pinned image passes" {
    printf 'version: 1\nimage_digest: "%s"\n' "$(brig sandbox preflight --json | jq -r .image_digest)" >profile.yaml
    pinned_run_is_allowed
}

@test "another release of the machine is another image" {
    is_root || skip "needs root"
    one=$(brig sandbox preflight --json | jq -r .image_digest)
    cp /usr/lib/os-release other
    echo "CHANGED=1" >>other
    two=$(in_private_mounts "mount --bind other /usr/lib/os-release && '$BRIG' sandbox preflight --json" | jq -r .image_digest)
    [[ $two == sha256:* ]]
    [ "$one" != "$two" ]
}

# ---- the profile ----

@test "a profile names provider and limits; a flag beats it" {
    printf '%s\n' 'version: 1' 'provider: mock' 'limits:' '  memory: 100M' '  timeout: 5s' >profile.yaml
    exec_json --profile profile.yaml -- true </dev/null
    status_is 0
    json_is .provider mock
    json_is .limits.memory_bytes.value $((100 << 20))
    json_is .limits.memory_bytes.origin profile
    exec_json --profile profile.yaml --provider local --memory 50M -- true </dev/null
    json_is .provider local
    json_is .limits.memory_bytes.value $((50 << 20))
    json_is .limits.wall_ms.value 5000
}

@test "means: cgroup is refused where there is none for us" {
    printf '%s\n' 'version: 1' 'limits:' '  memory: {value: 100M, means: cgroup}' >profile.yaml
    if is_root; then
        exec_json --profile profile.yaml -- true </dev/null
        status_is 0
        json_is .limits.memory_bytes.means cgroup
        run in_private_mounts "umount -l /sys/fs/cgroup/memory 2>/dev/null || mount -t tmpfs none /sys/fs/cgroup
            '$BRIG' sandbox exec --profile profile.yaml -- true </dev/null"
    else
        [ "$(brig sandbox exec --json -- true </dev/null | jq -r .limits.memory_bytes.means)" != cgroup ] ||
            skip "this user may use cgroups"
        run brig sandbox exec --profile profile.yaml -- true </dev/null
    fi
    status_is 77
    says "LIMIT_NOT_ENFORCEABLE: memory_bytes of 104857600 bytes (from the profile) cannot be held as strongly as the profile asks"
    says "see brig doctor"
    receipt_is .reason_code LIMIT_NOT_ENFORCEABLE
}

@test "the default says by what weaker means it is held when cgroups are gone" {
    is_root || skip "needs root"
    in_private_mounts "umount -l /sys/fs/cgroup/memory 2>/dev/null || mount -t tmpfs none /sys/fs/cgroup
        '$BRIG' sandbox exec --json -- true </dev/null" >out
    json_is .verdict ALLOW "$(cat out)"
    json_is .limits.memory_bytes.means watch "$(cat out)"
}

@test "a memory cgroup that nobody may make groups in is not used" {
    is_root || skip "needs root"
    [ -d /sys/fs/cgroup/memory ] || skip "no v1 memory hierarchy"
    in_private_mounts "mount -o remount,bind,ro /sys/fs/cgroup/memory
        '$BRIG' sandbox exec --json -- true </dev/null" >out
    json_is .limits.memory_bytes.means watch "$(cat out)"
}

@test "a profile that is wrong names the place and shows it" {
    printf '%s\n' 'version: 1' 'limits:' '  memroy: 1G' >profile.yaml
    run brig sandbox exec --profile profile.yaml -- true </dev/null
    status_is 64
    says 'profile.yaml: line 3, column 3: unknown key "memroy"; known here: cpu, memory, pids, disk, inodes, timeout, output'
    says "    3 |   memroy: 1G"
    says "      |   ^"
    run brig sandbox exec --profile none.yaml -- true </dev/null
    status_is 66
    says "none.yaml"
    [ "$(receipts_of intent)" -eq 0 ]
}
