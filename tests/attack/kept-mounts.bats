#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# B05, B08, B09, B16, B19, B20 in sandboxes that stay: what is judged when one is made holds for
# every command in it, and what changes on this machine meanwhile gets nobody further.

load attack

setup() {
    common_setup
    mkdir shared
}

teardown() {
    [ -z "${helper:-}" ] || kill "$helper" 2>/dev/null || true
    for id in $("$BRIG" sandbox list --json 2>/dev/null | jq -r '.sandboxes[].sandbox_id'); do
        "$BRIG" sandbox destroy "$id" 2>/dev/null || true
    done
    wait
}

# make [OPTION…]: a sandbox that has the programs in /mnt/attack, as $id.
make() {
    id=$("$BRIG" sandbox create --json --mount "$ATTACK:/mnt/attack:ro" "$@" 2>"$WORK/made" | jq -r .sandbox_id) &&
        [ "${#id}" -eq 20 ]
}

kept() {
    "$BRIG" sandbox exec "$id" --quiet "$@" </dev/null
}

# not_made CODE [OPTION…]: no sandbox is made, for that reason, and a receipt says so.
not_made() {
    local code=$1
    shift
    run "$BRIG" sandbox create "$@"
    status_is 77 && says "$code" && [ "$(receipts 'last | .kind')" = denial ] &&
        [ "$(receipts 'last | .reason_code')" = "$code" ] &&
        [ -z "$("$BRIG" sandbox list --json | jq -r '.sandboxes[].sandbox_id')" ]
}

# ---- B05 ----

@test "links of a mounted folder, and links made in it later, are resolved inside" {
    mkdir hostile
    echo canary >canary
    ln -s "$WORK" hostile/before
    make --mount "$WORK/hostile:/workspace:rw"
    for name in dev proc etc tmp; do
        ln -s "$WORK" "hostile/$name"
    done
    kept -- ln -s "$WORK" /workspace/mine
    for link in before dev proc etc tmp mine; do
        run kept -- cat "/workspace/$link/canary"
        [ "$status" -ne 0 ]
        [[ $output != *canary ]] || [[ $output == *"No such file"* ]]
    done
    kept -- ln -s ../../../.. /workspace/up
    run -0 kept -- ls /workspace/up/sandbox # control: / inside
}

@test "a target inside another mount or at one of Brig's own places is refused" {
    for target in / /proc /dev/null /dev/pts/x /sys/fs/cgroup /etc /etc/passwd /tmp/x /usr/lib /run /sandbox; do
        not_made MOUNT_FORBIDDEN --mount "$WORK/shared:$target:rw"
    done
    mkdir other
    not_made MOUNT_FORBIDDEN --mount "$WORK/shared:/workspace:rw" --mount "$WORK/other:/workspace/x:rw"
    make --mount "$WORK/shared:/srv/deep/er:rw" # control
    kept -- touch /srv/deep/er/file
    [ -e shared/file ]
}

@test "the masks lie over what they mask, for the second command as well" {
    make
    kept -- true
    run -0 kept -- sh -c 'stat -c %t:%T /proc/kcore /proc/keys 2>/dev/null | sort -u'
    [ "$output" = 1:3 ]
    run -0 kept -- sh -c 'cat /proc/self/root/proc/kallsyms /proc/1/root/proc/kcore 2>/dev/null | wc -c'
    [ "$output" = 0 ]
}

# ---- B08 ----

@test "what is never handed out is not handed to one that stays, however it is spelled" {
    export HOME=$WORK/home
    mkdir -p home/.ssh home/project
    echo key >home/.ssh/id
    ln -s /etc to-etc
    for source in / /etc //etc /etc/../etc /proc/self/root/etc /sys /dev /var/lib "$WORK/to-etc" \
        "$HOME" "$HOME/.ssh" "$HOME/project/../.ssh/id" "$BRIG_HOME" "$BRIG_HOME/receipts.key"; do
        not_made MOUNT_FORBIDDEN --mount "$source:/mnt/x" || {
            echo "source: $source" >&2
            return 1
        }
    done
    make --mount "$HOME/project:/mnt/x" # control
    kept -- ls /mnt/x
}

@test "a source that becomes a forbidden one later shows what was judged" {
    echo good >shared/word
    make --mount "$WORK/shared:/workspace"
    mv shared judged
    ln -s /etc shared
    run kept -- ls /workspace
    [[ $output != *passwd* ]]
    # control: put back, it is the folder it was
    rm shared
    mv judged shared
    run -0 kept -- cat /workspace/word
    [ "$output" = good ]
}

# ---- B09 ----

@test "a source that is exchanged all the time is mounted as judged, or not at all" {
    mkdir good
    echo good >good/word
    ln -s /etc link
    "$ATTACK/swap" "$WORK/good" "$WORK/link" 3>&- >/dev/null &
    helper=$!
    made=0 refused=0
    for _ in $(seq 40); do
        if make --mount "$WORK/good:/workspace"; then
            made=$((made + 1))
            # The name may lead elsewhere by now: then nothing runs.
            run kept -- sh -c 'cat /workspace/word; ls /workspace'
            [ "$status" -ne 0 ] || [ "$output" = $'good\nword' ]
            [[ $output != *passwd* ]]
            "$BRIG" sandbox destroy "$id" 2>/dev/null
        else
            refused=$((refused + 1))
        fi
        [ "$made" -eq 0 ] || [ "$refused" -eq 0 ] || [ "$made" -lt 5 ] || break
    done
    # control: it came to both, so there was a race, and one can win it
    [ "$made" -gt 0 ]
    [ "$refused" -gt 0 ]
}

# ---- B16 ----

@test "what host tools run cannot be changed by any command, nor by several together" {
    mkdir -p shared/.git/hooks shared/.git/objects
    echo 'ref: refs/heads/main' >shared/.git/HEAD
    printf '[core]\n' >shared/.git/config
    make --workspace "$WORK/shared:rw"
    for attempt in 'echo x >.git/hooks/pre-commit' 'echo x >>.git/config' 'mv .git moved' 'mv .git/config .git/c' \
        'rm -r .git/hooks' 'ln -sf /tmp/x .git/config'; do
        run kept --workdir /workspace -- sh -c "$attempt"
        [ "$status" -ne 0 ]
    done
    [ "$(cat shared/.git/config)" = '[core]' ]
    [ -z "$(ls -A shared/.git/hooks)" ]
    # one leaves a process that goes on trying while others come
    kept --keep --workdir /workspace -- sh -c '(while :; do echo x >.git/hooks/post-merge; mv .git .x; sleep 0.01; done) >/dev/null 2>&1 &'
    kept -- true
    kept -- true
    [ -z "$(ls -A shared/.git/hooks)" ]
    [ -e shared/.git/HEAD ]
    kept --workdir /workspace -- sh -c 'echo o >.git/objects/o; echo x >file' # control
    [ -e shared/.git/objects/o ]
}

@test "a protected folder that is moved with the one above it stops the next command" {
    mkdir -p shared/project/.git/hooks
    echo 'ref: refs/heads/main' >shared/project/.git/HEAD
    printf '[core]\n' >shared/project/.git/config
    make --workspace "$WORK/shared:rw"
    kept -- true # control
    kept --workdir /workspace -- sh -c 'mv project other && mkdir -p project/.git/hooks' || skip "it cannot be moved at all"
    run "$BRIG" sandbox exec "$id" -- sh -c 'echo evil >/workspace/project/.git/hooks/pre-commit' </dev/null
    status_is 77
    [ ! -e shared/project/.git/hooks/pre-commit ]
    [ "$(receipts 'last | .decision')" = deny ] || [ "$(receipts 'last | .kind')" = denial ]
}

# ---- B19, B20 ----

serve() {
    "$ATTACK/sockets" listen "$1" >"$WORK/said" 3>&- &
    helper=$!
    eventually 5 grep -q "listen: worked" "$WORK/said"
}

@test "no socket of this machine can be seen or reached, whenever it came" {
    make
    run -0 kept -- sh -c 'find / -type s 2>/dev/null; echo looked'
    [ "$output" = looked ]
    serve "@brig-attack-$$"
    run -0 kept -- /mnt/attack/sockets connect "@brig-attack-$$"
    answers connect ECONNREFUSED
    run -0 kept -- cat /proc/net/unix
    [[ $output != *brig-attack* && $output != *"$BRIG_HOME"* && $output != *execs* && $output != *control* ]]
    run -0 "$ATTACK/sockets" connect "@brig-attack-$$" # control: outside it answers
    answers connect worked
    # control: inside, one's own can be used
    run kept -- sh -c "$own_socket"
    answers connect worked
}

@test "two sandboxes that stay do not reach each other's sockets" {
    make
    first=$id
    "$BRIG" sandbox exec "$first" --quiet --detach -- /mnt/attack/sockets listen @mine </dev/null
    eventually 5 "$BRIG" sandbox exec "$first" --quiet -- sh -c '/mnt/attack/sockets connect @mine | grep -q worked' </dev/null # control
    make
    run -0 kept -- /mnt/attack/sockets connect @mine
    answers connect ECONNREFUSED
}

@test "a service's socket in a folder to be mounted is refused" {
    serve "$WORK/shared/service"
    for access in ro rw; do
        not_made MOUNT_FORBIDDEN --mount "$WORK/shared:/workspace:$access"
    done
    kill "$helper"
    wait "$helper" || true
    make --mount "$WORK/shared:/workspace" # control: with the dead socket in it
    run -0 kept -- /mnt/attack/sockets connect /workspace/service
    answers connect ECONNREFUSED
}
