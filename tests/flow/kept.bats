#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Sandboxes that stay: made, listed, found by name and label, paused, extended, ended.

load common
load sandbox
load kept

teardown() {
    destroy_all
}

# ---- create, list, show ----

@test "create answers what it made" {
    run --separate-stderr brig sandbox create --json --name one --label a=1 --label b=2
    status_is 0
    id=$(jq -r .sandbox_id <<<"$output")
    json_is .state running
    json_is .name one
    json_is .provider local
    json_is .image host
    json_is '.labels | join(" ")' "a=1 b=2"
    for key in image_digest config_hash policy_hash preflight_hash; do
        [[ $(jq -r ".$key" <<<"$output") =~ ^sha256:[0-9a-f]{64}$ ]]
    done
    [[ $(jq -r .expires_at <<<"$output") =~ ^20[0-9-]+T[0-9:]+Z$ ]]
    left=$(($(date -d "$(jq -r .expires_at <<<"$output")" +%s) - $(date +%s)))
    [ "$left" -gt 3500 ] && [ "$left" -le 3600 ]
}

@test "list shows those there are, by label, and nothing else" {
    run --separate-stderr brig sandbox list
    status_is 0
    [ -z "$output" ]
    [[ $stderr == *"no sandboxes"* ]]
    make --label team=a --name first
    make --label team=b --name second
    run --separate-stderr brig sandbox list --json
    json_is '.sandboxes | length' 2
    run --separate-stderr brig sandbox list --json --label team=b
    json_is '.sandboxes | length' 1
    json_is '.sandboxes[0].sandbox_id' "$id"
    run --separate-stderr brig sandbox list
    says first
    says second
}

@test "show finds it by id and by name" {
    make --name here
    run --separate-stderr brig sandbox show "$id"
    status_is 0
    json_is .name here
    run --separate-stderr brig sandbox show here
    json_is .sandbox_id "$id"
    json_is .processes 1
}

@test "two of the same name must be told apart by id" {
    make --name twin
    make --name twin
    run --separate-stderr brig sandbox show twin
    [ "$status" -ne 0 ]
    [[ $stderr == *"2 sandboxes are called"* ]]
    run --separate-stderr brig sandbox show "$id"
    status_is 0
}

@test "an id is whose it is, even if another one is called so" {
    make --name mine
    mine=$id
    make --name "$mine"
    run --separate-stderr brig sandbox show "$mine"
    status_is 0
    json_is .name mine
}

@test "an id nobody has is not found, by every command" {
    for words in "show nobody" "pause nobody" "resume nobody" "extend nobody" "destroy nobody" \
        "exec nobody -- true" "show aaaaaaaaaaaaaaaaaaaa" "exec ../../etc -- true" "show ../boxes"; do
        # shellcheck disable=SC2086 # several words
        run --separate-stderr brig sandbox $words </dev/null
        status_is 66
        [[ $stderr == *"there is no sandbox"* ]]
    done
    [ "$(receipts_of intent)" -eq 0 ]
}

@test "labels and names that are none are refused, and nothing is made" {
    for words in "--label plain" "--label =x" "--ttl soon" "--idle 0"; do
        # shellcheck disable=SC2086 # option and value
        run brig sandbox create $words
        status_is 64
    done
    run brig sandbox create --name "$(head -c 300 /dev/zero | tr '\0' x)"
    status_is 64
    run brig sandbox list --json
    json_is '.sandboxes | length' 0
}

@test "a denied sandbox does not stand" {
    mkdir "$WORK/ro"
    run brig sandbox create --mount /etc/shadow:/x
    status_is 77
    receipt_is .kind denial
    run --separate-stderr brig sandbox list --json
    json_is '.sandboxes | length' 0
}

# ---- how long ----

@test "its time to live ends it, and the next command says so" {
    make --ttl 8s # enough for a busy machine to get in
    in_it -- true </dev/null
    pid=$(pid_one)
    eventually 8 gone "$pid"
    ended_with SANDBOX_EXPIRED
    receipt_is .kind outcome
    no_sandbox_left
    chain_holds
}

@test "with nothing running in it, idleness ends it" {
    make --idle 6s # enough for a busy machine to get in
    pid=$(pid_one)
    in_it -- sleep 7 </dev/null
    run ! gone "$pid"
    eventually 5 gone "$pid"
    ended_with SANDBOX_IDLE
}

@test "what runs in the background is not idleness" {
    make --idle 6s
    in_it --keep -- sh -c 'sleep 300 >/dev/null 2>&1 & echo $! >/tmp/pid' </dev/null
    sleep 7
    run brig sandbox show "$id"
    status_is 0
    in_it -- sh -c 'kill $(cat /tmp/pid)' </dev/null
    eventually 5 ended_with SANDBOX_IDLE
}

@test "extend gives it more time, but not beyond its lifetime" {
    make --ttl 8s --lifetime 30s
    run --separate-stderr brig sandbox extend "$id" --ttl 1h --json
    status_is 0
    json_is .action extend
    json_is .done true
    left=$(($(date -d "$(brig sandbox show "$id" | jq -r .expires_at)" +%s) - $(date +%s)))
    [ "$left" -le 30 ]
    sleep 9
    in_it -- true </dev/null
    eventually 15 ended_with SANDBOX_EXPIRED
}

# ---- pause and resume ----

@test "a paused sandbox stands still, refuses commands, and goes on where it stood" {
    make --name p
    in_it --keep -- sh -c 'while :; do echo >>/tmp/ticks; sleep 0.05; done >/dev/null 2>&1 &' </dev/null
    eventually 2 in_it -- test -s /tmp/ticks </dev/null
    run --separate-stderr brig sandbox pause p --json
    status_is 0
    json_is .action pause
    run --separate-stderr brig sandbox show p
    json_is .state paused
    run --separate-stderr brig sandbox exec p -- true </dev/null
    status_is 77
    [[ $stderr == *"SANDBOX_PAUSED"* ]]
    receipt_is .reason_code SANDBOX_PAUSED
    brig sandbox resume p
    before=$(in_it -- sh -c 'wc -l </tmp/ticks' </dev/null)
    eventually 10 in_it -- sh -c "[ \$(wc -l </tmp/ticks) -gt $before ]" </dev/null
    run --separate-stderr brig sandbox show p
    json_is .state running
    brig sandbox pause p
    sleep 0.2
    brig sandbox pause p
    brig sandbox destroy p
    no_sandbox_left
}

@test "a paused sandbox can be destroyed, and its time ends it all the same" {
    make
    in_it --keep -- sh -c 'sleep 100 >/dev/null 2>&1 &' </dev/null
    brig sandbox pause "$id"
    run timeout -k 5 60 "$BRIG" sandbox destroy "$id"
    status_is 0
    no_sandbox_left
    make
    in_it --keep -- sh -c 'sleep 100 >/dev/null 2>&1 &' </dev/null
    brig sandbox pause "$id"
    brig sandbox extend "$id" --ttl 500ms
    eventually 4 ended_with SANDBOX_EXPIRED
    no_sandbox_left
}

# ---- the end ----

@test "destroy leaves nothing, and a second time there is nothing to destroy" {
    make
    in_it --keep -- sh -c 'for i in 1 2 3; do setsid sleep 100 >/dev/null 2>&1 & done' </dev/null
    pid=$(pid_one)
    outer=$(outer_of "$pid")
    run --separate-stderr brig sandbox destroy "$id" --json
    status_is 0
    json_is .action destroy
    json_is .done true
    gone "$pid"
    eventually 2 gone "$outer" # it lets go of its lock last, and is on its way out
    no_sandbox_left
    run --separate-stderr brig sandbox destroy "$id"
    status_is 66
    run --separate-stderr brig sandbox exec "$id" -- true </dev/null
    status_is 66
    chain_holds
}

@test "of two that destroy it at once both see it gone" {
    make
    brig sandbox destroy "$id" >one 2>&1 &
    first=$!
    run brig sandbox destroy "$id"
    [ "$status" -eq 0 ] || [ "$status" -eq 66 ]
    wait "$first" || [ $? -eq 66 ]
    no_sandbox_left
    chain_holds
}

@test "several are destroyed by one command" {
    make
    first=$id
    make
    run brig sandbox destroy "$first" "$id"
    status_is 0
    run --separate-stderr brig sandbox list --json
    json_is '.sandboxes | length' 0
}

@test "thirty times made and destroyed, the machine is as it was" {
    make && in_it -- true </dev/null && brig sandbox destroy "$id" 2>/dev/null
    files=$(state_files)
    mounts=$(wc -l </proc/self/mountinfo)
    pids=()
    for _ in $(seq 30); do
        make
        pid=$(pid_one)
        pids+=("$pid" "$(outer_of "$pid")")
        in_it -- sh -c 'echo x >/tmp/x; sleep 100 &' </dev/null >/dev/null 2>&1
        brig sandbox destroy "$id" 2>/dev/null
    done
    no_sandbox_left
    [ "$(state_files)" = "$files" ]
    [ "$(wc -l </proc/self/mountinfo)" -eq "$mounts" ]
    eventually 2 gone "${pids[@]}"
    chain_holds
}

@test "sixty at once: each is listed, takes commands, and goes" {
    seq 60 | xargs -P 4 -I{} timeout $PATIENCE "$BRIG" sandbox create --json --label "n={}" >made
    run --separate-stderr brig sandbox list --json
    json_is '.sandboxes | length' 60
    json_is '[.sandboxes[] | select(.state == "running" and .processes == 1)] | length' 60
    json_is '[.sandboxes[].sandbox_id] | unique | length' 60
    for id in $(jq -r .sandbox_id made | sed -n '1p; 30p; 60p'); do
        run -0 in_it -- sh -c 'ls /tmp | wc -l; echo $$ >/tmp/mine'
        [ "$output" = 0 ] # nothing of another one
    done
    jq -r .sandbox_id made | xargs timeout $PATIENCE "$BRIG" sandbox destroy 2>/dev/null
    no_sandbox_left
    chain_holds
}

# The ledger's own files come and go with whoever has it open.
state_files() {
    find "$BRIG_HOME" -not -name 'receipts.db-*' | sort
}

@test "every action has its receipts" {
    make
    in_it -- true </dev/null
    brig sandbox pause "$id"
    brig sandbox resume "$id"
    brig sandbox extend "$id"
    brig sandbox destroy "$id"
    [ "$(receipts_of intent)" -eq 6 ]
    [ "$(receipts_of outcome)" -eq 6 ]
    [ "$(ledger "SELECT count(*) FROM receipts WHERE json_extract(body, '\$.sandbox_id') = '$id'")" -eq 12 ]
    chain_holds 12
}

# ---- what it is stays what it is ----

@test "the policy it was made with decides, by id and by name" {
    cat >policy.yaml <<'YAML'
version: 1
commands:
  - name: only-echo
    allow: [echo, "**"]
YAML
    make --name ruled --policy policy.yaml
    rm policy.yaml
    for name in "$id" ruled; do
        run --separate-stderr brig sandbox exec "$name" -- id </dev/null
        status_is 77
        [[ $stderr == *POLICY_DEFAULT_DENY* ]]
        run --separate-stderr brig sandbox exec "$name" -- echo fine </dev/null
        status_is 0
        [ "$output" = fine ]
        receipt_is .rule only-echo
    done
    printf 'version: 1\ndefault: allow\n' >other.yaml
    run --separate-stderr brig sandbox exec ruled --policy other.yaml -- id </dev/null
    status_is 64
    [[ $stderr == *"--policy"* ]]
}

@test "what belongs to the sandbox cannot be changed by a command" {
    make
    mkdir there
    for words in "--memory 1G" "--pids 5" "--cpu 1" "--disk 1G" "--inodes 5" "--mount $WORK/there:/mnt" \
        "--image host" "--provider mock" "--network none"; do
        # shellcheck disable=SC2086 # option and value
        run --separate-stderr brig sandbox exec "$id" $words -- true </dev/null
        status_is 64
        [[ $stderr == *"${words%% *}"* ]]
    done
    run brig sandbox exec --keep -- true </dev/null
    status_is 64
}

@test "a profile stays with the sandbox" {
    printf 'version: 1\nlimits:\n  memory: 128M\n' >profile.yaml
    make --profile profile.yaml
    rm profile.yaml
    run --separate-stderr brig sandbox exec "$id" --json -- true </dev/null
    status_is 0
    json_is .limits.memory_bytes.value 134217728
}

@test "a sandbox that would be made differently today runs nothing more" {
    mkdir src
    make --mount "$WORK/src:/mnt/src:ro"
    in_it -- true </dev/null
    sed -i 's/"preimage_hash":"sha256:..../"preimage_hash":"sha256:0000/' "$BRIG_HOME/boxes/$id/config"
    run --separate-stderr brig sandbox exec "$id" -- true </dev/null
    status_is 77
    [[ $stderr == *SANDBOX_DRIFT* ]]
    receipt_is .reason_code SANDBOX_DRIFT
    brig sandbox destroy "$id"
    no_sandbox_left
}

@test "a mount whose source is gone is noticed" {
    mkdir src
    make --mount "$WORK/src:/mnt/src:ro"
    mv src elsewhere
    run --separate-stderr brig sandbox exec "$id" -- true </dev/null
    status_is 77
    brig sandbox destroy "$id"
}

@test "a damaged config is said to be one, and the sandbox can still be destroyed" {
    make
    echo '{}' >"$BRIG_HOME/boxes/$id/config"
    run --separate-stderr brig sandbox exec "$id" -- true </dev/null
    status_is 76
    [[ $stderr == *"config"* ]]
    run brig sandbox destroy "$id"
    status_is 0
    no_sandbox_left
}

@test "a mount named from here is the same folder from everywhere" {
    mkdir -p here elsewhere
    echo word >here/file
    make --mount here:/mnt/x
    [ "$(brig sandbox show "$id" | jq -r '.mounts[0]')" = "$WORK/here:/mnt/x" ]
    cd elsewhere
    run -0 in_it -- cat /mnt/x/file </dev/null
    [ "$output" = word ]
}
