#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig sandbox exec --json: every member, its type, and that it says the truth.

load common
load sandbox

hash_of() {
    sha256sum "$@" | sed 's/ .*//; s/^/sha256:/'
}

@test "every member is there, with its type" {
    exec_json -- echo hello </dev/null
    status_is 0
    [ -z "$stderr" ]
    for name in verdict reason_code receipt_id decision_id provider provider_version sandbox_spec_hash \
        image_digest mounts_hash egress_policy_hash resource_limits_hash preflight_hash policy_hash \
        stdout stderr output_hash timestamp; do
        json_is ".$name | type" string
    done
    for name in exit_code stdout_bytes stderr_bytes duration_ms lamport_clock; do
        json_is ".$name | type" number
    done
    for name in timed_out oom_killed truncated; do
        json_is ".$name | type" boolean
    done
    json_is '.signal' null
    json_is '[.sandbox_spec_hash, .image_digest, .mounts_hash, .egress_policy_hash,
        .resource_limits_hash, .preflight_hash, .policy_hash, .output_hash]
        | all(test("^sha256:[0-9a-f]{64}$"))' true
    json_is '.timestamp | test("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]+Z$")' true
    json_is .verdict ALLOW
    json_is .stdout "hello"
    json_is .exit_code 0
    json_is .provider local
}

@test "it says what the receipt says" {
    exec_json -- sh -c 'echo out; echo err >&2; exit 9' </dev/null
    status_is 9
    for name in sandbox_spec_hash image_digest mounts_hash egress_policy_hash resource_limits_hash \
        provider_version; do
        json_is ".$name" "$(receipt .posture.$name)"
    done
    json_is .preflight_hash "$(receipt .posture.preimage_hash)"
    json_is .receipt_id "$(receipt .receipt_id)"
    json_is .decision_id "$(receipt .decision_id)"
    json_is .policy_hash "$(receipt .policy_hash)"
    json_is .lamport_clock "$(receipt .lamport_clock)"
    json_is .timestamp "$(receipt .timestamp)"
    json_is .output_hash "$(receipt .outcome.output_hash)"
    json_is .exit_code "$(receipt .outcome.exit_code)"
}

@test "the preflight hash is over the six values in the documented order" {
    exec_json -- true </dev/null
    printf '%s' "$output" | jq -j '[.provider_version, .sandbox_spec_hash, .image_digest,
        .mounts_hash, .egress_policy_hash, .resource_limits_hash] | join("|")' >preimage
    json_is .preflight_hash "$(hash_of preimage)"
}

@test "output that is not UTF-8 comes as base64" {
    exec_json -- perl -e 'print "a\xff\n"; print STDERR "\xfe"' </dev/null
    status_is 0
    json_is 'has("stdout")' false
    json_is 'has("stderr")' false
    [ "$(printf '%s' "$output" | jq -r .stdout_b64 | base64 -d | od -An -tx1)" = " 61 ff 0a" ]
    [ "$(printf '%s' "$output" | jq -r .stderr_b64 | base64 -d | od -An -tx1)" = " fe" ]
    exec_json -- printf 'ü\0ÿ' </dev/null
    json_is 'has("stdout_b64")' false
    json_is '.stdout | explode | tostring' '[252,0,255]'
}

@test "hashes are over the streams" {
    exec_json -- sh -c 'printf out; printf err >&2' </dev/null
    json_is .stdout_hash "$(printf out | hash_of)"
    json_is .stderr_hash "$(printf err | hash_of)"
    json_is .output_hash "$(printf '%s|%s' "$(printf out | hash_of)" "$(printf err | hash_of)" | hash_of)"
}

# Of outputs this long bats would make an array of lines.
long_json() {
    timeout -k 5 "$PATIENCE" "$BRIG" sandbox exec --json -- sh -c "yes 0123456789abcde | head -c $1" </dev/null >long.json
}

# long_is FILTER VALUE
long_is() {
    local got
    got=$(jq -r "$1" long.json) || return
    [ "$got" = "$2" ] || {
        printf '%s is %s, should be %s\n' "$1" "$got" "$2" >&2
        return 1
    }
}

@test "what is kept is cut at the limit; count and hash cover all of it" {
    long_json 30000000
    long_is .truncated true
    long_is .stdout_bytes 30000000
    long_is '.stdout | length' $((10 << 20))
    long_is .stdout_hash "$(yes 0123456789abcde | head -c 30000000 | hash_of)"
    receipt_is .outcome.truncated true
    long_json 10000000
    long_is .truncated false
    long_is '.stdout | length' 10000000
}

@test "a signal leaves no exit code" {
    exec_json -- sh -c 'kill -9 $$' </dev/null
    status_is 137
    json_is .signal 9
    json_is .exit_code null
}

@test "a timeout says so" {
    exec_json --timeout 300ms -- sleep 100 </dev/null
    status_is 124
    json_is .timed_out true
    json_is .reason_code LIMIT_TIME
    json_is '.duration_ms >= 300' true
    json_is '.duration_ms < 50000' true # it would have slept for 100 s
}

@test "a denial is one object, too, and has no outcome" {
    exec_json --provider nowhere -- true </dev/null
    status_is 77
    [ -z "$stderr" ]
    json_is .verdict DENY
    json_is .reason_code PROVIDER_UNKNOWN
    json_is .exit_code null
    json_is .receipt_id "$(receipt .receipt_id)"
}

@test "a failure of Brig is an error object" {
    exec_json --policy /no/such/file -- true </dev/null
    status_is 66
    json_is .error.code not_found
    json_is '.error.message | test("/no/such/file")' true
}

@test "the limits say value, means and origin" {
    exec_json --timeout 5s --memory 100M --pids 20 --disk 10M --inodes 100 --cpu 1 -- true </dev/null
    status_is 0
    json_is .limits.wall_ms.value 5000
    json_is .limits.memory_bytes.value $((100 << 20))
    json_is .limits.pids.value 20
    json_is .limits.disk_bytes.value $((10 << 20))
    json_is .limits.inodes.value 100
    json_is .limits.cpu_millis.value 1000
    json_is '[.limits[] | .origin] | unique | join(" ")' "default flag"
    json_is '[.limits[] | .means] | index("none")' null
    json_is .limits.output_bytes.origin default
}

@test "the defaults are the documented ones, each held by something" {
    exec_json -- true </dev/null
    json_is '.limits | map_values(.value) | tojson' \
        '{"cpu_millis":1000,"disk_bytes":1073741824,"inodes":200000,"memory_bytes":536870912,"output_bytes":10485760,"pids":256,"wall_ms":30000}'
    json_is '[.limits[] | .origin] | unique | join(" ")' default
    json_is '[.limits[] | .means] | index("none")' null
    if is_root; then
        json_is .limits.memory_bytes.means cgroup
    fi
}

@test "limits of a policy are taken, may be lowered by a flag and not raised" {
    printf '%s\n' 'version: 1' 'default: allow' 'limits:' '  memory: 64M' '  timeout: 3s' >policy.yaml
    exec_json --policy policy.yaml -- true </dev/null
    status_is 0
    json_is .limits.memory_bytes.value $((64 << 20))
    json_is .limits.memory_bytes.origin policy
    exec_json --policy policy.yaml --memory 32M -- true </dev/null
    json_is .limits.memory_bytes.value $((32 << 20))
    json_is .limits.memory_bytes.origin flag
    exec_json --policy policy.yaml --memory 65M -- true </dev/null
    status_is 77
    json_is .reason_code LIMIT_ABOVE_POLICY
}

@test "the memory limit ends it, and only it" {
    exec_json --memory 64M -- perl -e '$x = "x" x (300 << 20); print length $x' </dev/null
    [ "$status" -ne 0 ]
    json_is .oom_killed true
    json_is .reason_code LIMIT_MEMORY
    receipt_is .outcome.oom_killed true
    exec_json --memory 64M -- perl -e '$x = "x" x (10 << 20); print length $x' </dev/null
    status_is 0
    json_is .oom_killed false
}

@test "the process limit is reached and named" {
    forks='for (1 .. 30) { my $pid = fork; last unless defined $pid; if ($pid == 0) { sleep 1; exit } $n++ } print $n; sleep 1'
    exec_json --pids 10 -- perl -e "$forks" </dev/null
    json_is .reason_code LIMIT_PIDS
    json_is '.stdout | tonumber < 10' true
    exec_json --pids 100 -- perl -e "$forks" </dev/null
    json_is .reason_code POLICY_DEFAULT_ALLOW
    json_is .stdout 30
}

@test "the disk limit ends it" {
    exec_json --disk 4M -- sh -c 'while :; do head -c 1000000 /dev/zero >>/tmp/$$.$((n += 1)) || sleep 1; done' </dev/null
    [ "$status" -ne 0 ]
    json_is .reason_code LIMIT_DISK
    exec_json --disk 40M -- sh -c 'head -c 1000000 /dev/zero >/tmp/x; wc -c </tmp/x' </dev/null
    status_is 0
}

@test "the file count limit ends it" {
    exec_json --inodes 50 -- sh -c 'n=0; while :; do n=$((n + 1)); : >/tmp/$n; done' </dev/null
    [ "$status" -ne 0 ]
    json_is .reason_code LIMIT_INODES
}

@test "two equal requests have one request hash, another argument another" {
    quiet_hash() {
        "$BRIG" sandbox exec --quiet --provider mock "$@" </dev/null >/dev/null 2>&1
        receipt .request_hash
    }
    a=$(quiet_hash -- echo a)
    b=$(quiet_hash -- echo a)
    c=$(quiet_hash -- echo b)
    d=$(quiet_hash --env X=1 -- echo a)
    [ "$a" = "$b" ]
    [ "$a" != "$c" ]
    [ "$a" != "$d" ]
}

@test "what a command read from and wrote to disk is counted, in the answer and in the receipt" {
    mkdir -p "$BRIG_HOME"
    [ "$(stat -f -c %T "$BRIG_HOME")" != tmpfs ] || skip "the state directory is not on a disk"
    run -0 brig sandbox exec --json -- sh -c 'head -c 3000000 /dev/zero >/tmp/x'
    written=$(jq -r .disk_written_bytes <<<"$output")
    [ "$written" -ge 3000000 ] && [ "$written" -lt 6000000 ]
    [ "$(brig receipts show "$(jq -r .receipt_id <<<"$output")" | jq -r .outcome.disk_written_bytes)" -eq "$written" ]
    run -0 brig sandbox exec --json -- true
    json_is '.disk_written_bytes < 100000 and .disk_read_bytes >= 0' true
}
