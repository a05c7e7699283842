#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig sandbox exec --elevated: a command on the machine itself, only where the standing policy
# spells it out and a person has confirmed it.

load common
load sandbox
load serve

# Nothing runs as root, elevated or not: a rule has to name somebody else then.
setup() {
    common_setup
    echo a-long-passphrase >pass
    user=""
    uid=$(id -u)
    if [ "$uid" -eq 0 ]; then
        user=", user: nobody"
        uid=$(id -u nobody)
    fi
}

teardown() {
    serve_end
}

# standing RULE…: a standing policy with these elevated rules.
standing() {
    printf 'version: 1\ndefault: allow\nelevated:\n' >standing.yaml
    printf '  - {%s}\n' "$@" >>standing.yaml
    brig policy apply standing.yaml >/dev/null
}

# confirmed ARGS…: asked for, confirmed by a custodian, and run.
confirm_latest() {
    local id
    brig approvals custodians | grep -q ann ||
        brig approvals enroll ann --passphrase-file pass >/dev/null
    id=$(brig approvals list --json | jq -r '[.approvals[] | select(.state == "pending")][-1].approval_id')
    brig approvals confirm "$id" --as ann --passphrase-file pass >/dev/null
}

@test "off by default: refused, with a receipt" {
    run -77 brig sandbox exec --elevated -- /usr/bin/id -u
    says "no rule of \"elevated\" in the standing policy spells out this command"
    receipt_is .reason_code ELEVATED_FORBIDDEN
    receipt_is .kind denial
    receipt_is .isolation none
}

@test "a rule alone lets nothing run: it waits for a person, who sees what it is" {
    standing "name: who, allow: [/usr/bin/id, -u]$user"
    run -77 brig sandbox exec --elevated -- /usr/bin/id -u
    receipt_is .status PENDING
    receipt_is .reason_code ELEVATED_ASK
    run -0 brig approvals list --json
    json_is '.approvals | length' 1
    json_is '.approvals[0].subject.isolation' none
    json_is '.approvals[0].subject.ELEVATED' "runs on this machine itself, without any walls"
    json_is '.approvals[0].subject.uid' "$uid"
    json_is '.approvals[0].subject.program_sha256' "sha256:$(sha256sum </usr/bin/id | cut -d' ' -f1)"
    json_is '.approvals[0].subject.network' true # nothing is between it and the machine's
    id=$(printf '%s' "$output" | jq -r '.approvals[0].approval_id')
    run -77 brig approvals confirm "$id" # whoever asks cannot answer
}

@test "its time is bounded by policy and ceiling as that of any run" {
    standing "name: nap, allow: [/usr/bin/sleep, 20]$user"
    printf 'version: 1\nlimits: {timeout: 1s}\n' >c.yaml
    brig policy ceiling set c.yaml >/dev/null
    run -77 brig sandbox exec --elevated --timeout 2s -- /usr/bin/sleep 20
    receipt_is .reason_code LIMIT_ABOVE_POLICY
    run -77 brig sandbox exec --elevated -- /usr/bin/sleep 20
    receipt_is .reason_code ELEVATED_ASK
    confirm_latest
    run brig sandbox exec --elevated -- /usr/bin/sleep 20
    receipt_is .reason_code LIMIT_TIME
}

@test "whose word the policy wants is whose word it needs" {
    printf 'version: 1\ndefault: allow\napprovals: {default: {by: ["custodian:*"], quorum: 2}}\n' >standing.yaml
    printf 'elevated:\n  - {name: who, allow: [/usr/bin/id, -u]%s}\n' "$user" >>standing.yaml
    brig policy apply standing.yaml >/dev/null
    run -77 brig sandbox exec --elevated -- /usr/bin/id -u
    receipt_is .reason_code ELEVATED_ASK
    run -0 brig approvals list --json
    json_is '.approvals[0].quorum' 2
    confirm_latest
    run -77 brig sandbox exec --elevated -- /usr/bin/id -u # one of two
    receipt_is .status PENDING
}

@test "confirmed it runs once, and the receipt says isolation: none" {
    standing "name: who, allow: [/usr/bin/id, -u]$user"
    run -77 brig sandbox exec --elevated -- /usr/bin/id -u
    confirm_latest
    run -0 --separate-stderr brig sandbox exec --elevated -- /usr/bin/id -u
    [ "$output" = "$uid" ]
    receipt_is .kind outcome
    receipt_is .isolation none
    receipt_is .elevated true
    receipt_is .action elevate
    receipt_is .provider host
    receipt_is .posture.provider_version host/1
    receipt_is .posture.evidence observed
    receipt_is .outcome.exit_code 0
    run -0 brig receipts show "$(receipt .receipt_id)"
    says '"isolation": "none"'
    run -77 brig sandbox exec --elevated -- /usr/bin/id -u # once
    run -0 brig receipts verify
}

@test "it is spelled out: other words, carriers and wildcards are refused" {
    standing "name: who, allow: [/usr/bin/id, -u]$user"
    run -77 brig sandbox exec --elevated -- /usr/bin/id
    run -77 brig sandbox exec --elevated -- id -u
    run -77 brig sandbox exec --elevated -- /usr/bin/id -u -n
    run -77 brig sandbox exec --elevated -- /bin/sh -c '/usr/bin/id -u'
    receipt_is .reason_code ELEVATED_FORBIDDEN
    for rule in '[/bin/sh, -c, id]' '[/usr/bin/env, id]' '[id]' '[/usr/bin/id, "*"]' '["/usr/bin/*"]' \
        '[/usr/bin/../bin/id]' '[]'; do
        printf 'version: 1\nelevated: [{name: x, allow: %s}]\n' "$rule" >bad.yaml
        run ! brig policy check bad.yaml
    done
    printf 'version: 1\nelevated: [{name: x, allow: [/usr/bin/id], user: root}]\n' >bad.yaml
    run ! brig policy check bad.yaml
    says "nothing of a caller's runs as root"
}

@test "a policy that the caller brings counts for nothing" {
    printf 'version: 1\ndefault: allow\nelevated: [{name: who, allow: [/usr/bin/id]%s}]\n' "$user" >mine.yaml
    run -64 brig sandbox exec --elevated --policy mine.yaml -- /usr/bin/id
    says "by the standing policy alone"
    run -77 brig sandbox exec --elevated -- /usr/bin/id
    receipt_is .reason_code ELEVATED_FORBIDDEN
    run ! brig policy ceiling set mine.yaml # and a ceiling only takes away
    for options in '--workdir /tmp' --tty '--env A=B' '--memory 1G' '--network none' '--mount /tmp:/x'; do
        # shellcheck disable=SC2086
        run -64 brig sandbox exec --elevated $options -- /usr/bin/id
        says "a command, a time limit, and nothing else"
    done
}

@test "commands the policy denies stay denied" {
    cat >standing.yaml <<P
version: 1
default: allow
commands: [{deny: [id, "**"]}]
elevated: [{name: who, allow: [/usr/bin/id]$user}]
P
    run -0 brig policy apply standing.yaml
    run -77 brig sandbox exec --elevated -- /usr/bin/id
    receipt_is .reason_code POLICY_DENY
}

@test "it pays for all the memory there is, since nothing keeps it from that" {
    standing "name: who, allow: [/usr/bin/id, -u]$user"
    brig budget price --gib-second 1 >/dev/null
    brig budget set --per principal --within 1h --cost 100000 >/dev/null
    run -77 brig sandbox exec --elevated -- /usr/bin/id -u
    confirm_latest
    run -0 brig sandbox exec --elevated -- /usr/bin/id -u
    run -0 brig budget show --json
    used=$(jq '.budgets[0].amounts[0].used' <<<"$output")
    all=$(awk '/MemTotal/ { print int($2 / 1024 / 1024 * 0.9) }' /proc/meminfo)
    [ "$used" -ge $((all * $(receipt .outcome.duration_us))) ]
}

@test "frozen, it does not run, confirmed or not" {
    standing "name: who, allow: [/usr/bin/id, -u]$user"
    run -77 brig sandbox exec --elevated -- /usr/bin/id -u
    confirm_latest
    run -0 brig freeze
    run -77 brig sandbox exec --elevated -- /usr/bin/id -u
    receipt_is .reason_code SYSTEM_FROZEN
    run -0 brig unfreeze
    run -0 brig sandbox exec --elevated -- /usr/bin/id -u
}

@test "root is refused without a user to be" {
    [ "$(id -u)" -eq 0 ] || skip "started by root only"
    standing 'name: who, allow: [/usr/bin/id, -u]'
    run -77 brig sandbox exec --elevated -- /usr/bin/id -u
    says "nothing of a caller's runs as root"
    receipt_is .reason_code ELEVATED_FORBIDDEN
}

@test "another user's rule is nobody else's" {
    [ "$(id -u)" -ne 0 ] || skip "root becomes whom the rule names"
    standing 'name: who, allow: [/usr/bin/id, -u], user: daemon'
    run -77 brig sandbox exec --elevated -- /usr/bin/id -u
    says "the rule is for the user daemon"
}

@test "what it is given: an environment of ours, no input, no way to more rights" {
    standing "name: env, allow: [/usr/bin/printenv]$user" \
        "name: rights, allow: [/usr/bin/grep, NoNewPrivs, /proc/self/status]$user" \
        "name: in, allow: [/usr/bin/readlink, /proc/self/fd/0, /proc/self/cwd]$user"
    for command in /usr/bin/printenv '/usr/bin/grep NoNewPrivs /proc/self/status' \
        '/usr/bin/readlink /proc/self/fd/0 /proc/self/cwd'; do
        # shellcheck disable=SC2086
        run -77 brig sandbox exec --elevated -- $command
        confirm_latest
    done
    CANARY=1 run -0 --separate-stderr brig sandbox exec --elevated -- /usr/bin/printenv
    [ "$(printf '%s\n' "$output" | cut -d= -f1 | sort | tr '\n' ' ')" = "HOME LANG PATH USER " ]
    run -0 --separate-stderr brig sandbox exec --elevated -- /usr/bin/grep NoNewPrivs /proc/self/status
    [[ "$output" == *1 ]]
    run -0 --separate-stderr brig sandbox exec --elevated -- /usr/bin/readlink /proc/self/fd/0 /proc/self/cwd
    [ "$output" = $'/dev/null\n/' ]
}

@test "its time ends it, and whoever dies leaves nothing behind" {
    nap=$((100000 + RANDOM))
    standing "name: nap, allow: [/usr/bin/sleep, $nap]$user"
    run -77 brig sandbox exec --elevated --timeout 300ms -- /usr/bin/sleep $nap
    confirm_latest
    run brig sandbox exec --elevated --timeout 300ms -- /usr/bin/sleep $nap
    [ "$status" -ne 0 ]
    receipt_is .reason_code LIMIT_TIME
    receipt_is .outcome.timed_out true
    not pgrep -f "sleep $nap"
    run -77 brig sandbox exec --elevated -- /usr/bin/sleep $nap
    confirm_latest
    "$BRIG" sandbox exec --elevated -- /usr/bin/sleep $nap >/dev/null 2>&1 &
    pid=$!
    eventually 5 pgrep -fx "/usr/bin/sleep $nap"
    kill -KILL $pid
    wait $pid || true
    eventually 5 not pgrep -fx "/usr/bin/sleep $nap"
    # Who kept the command ends a moment behind it.
    eventually 2 no_run_is_held
    run -0 brig sandbox exec -- true
    receipt_says_abandoned() {
        [ "$(ledger "SELECT count(*) FROM receipts WHERE body LIKE '%RUN_ABANDONED%'")" -eq 1 ]
    }
    receipt_says_abandoned
    run -0 brig receipts verify
}

@test "what it leaves running is ended with it" {
    need perl
    nap=$((200000 + RANDOM))
    install -m 755 "$(command -v perl)" "$PWD/mine"
    chmod 755 . "$BATS_TEST_TMPDIR"
    [ "$(id -u)" -ne 0 ] || chown nobody mine
    script="if (!fork) { setpgrp; if (!fork) { exec qw(sleep $nap) } exit } print 1"
    standing "name: mine, allow: [$PWD/mine, -e, \"$script\"]$user"
    run -77 brig sandbox exec --elevated -- "$PWD/mine" -e "$script"
    confirm_latest
    run -0 --separate-stderr brig sandbox exec --elevated -- "$PWD/mine" -e "$script"
    [ "$output" = 1 ]
    not pgrep -fx "sleep $nap"
}

# mine SCRIPT [TIME]: a copy of perl is confirmed with it, and $script is what it is called with. (perl itself
# runs others.)
mine() {
    need perl
    script=$1
    install -m 755 "$(command -v perl)" "$PWD/mine"
    chmod 755 . "$BATS_TEST_TMPDIR"
    [ "$(id -u)" -ne 0 ] || chown nobody mine
    standing "name: mine, allow: [$PWD/mine, -e, \"$script\"]$user"
    run -77 brig sandbox exec --elevated --timeout "${2-1s}" -- "$PWD/mine" -e "$script"
    confirm_latest
}

# pgrep takes an expression, and scripts have parentheses.
mine_lives() {
    pgrep -fx "$(sed 's/[][().*^$+?{}|\\]/\\&/g' <<<"$PWD/mine -e $script")"
}

@test "one that stops its keeper is ended when its time is over all the same" {
    [ "$(id -u)" -ne 0 ] || skip "root's keeper is nobody else's to stop"
    mine "kill q(STOP), getppid; sleep $((300000 + RANDOM))"
    run timeout -k 5 60 "$BRIG" sandbox exec --elevated --timeout 1s -- "$PWD/mine" -e "$script"
    receipt_is .kind outcome
    receipt_is .reason_code LIMIT_TIME
    eventually 2 not mine_lives
}

@test "one that kills its keeper is not waited for, and its receipt says so" {
    [ "$(id -u)" -ne 0 ] || skip "root's keeper is nobody else's to kill"
    mine "kill q(KILL), getppid; sleep 90"
    run timeout -k 5 60 "$BRIG" sandbox exec --elevated --timeout 1s -- "$PWD/mine" -e "$script"
    receipt_is .kind outcome
    receipt_is .outcome.failure "whoever kept the command was killed; what it left behind may live on"
    run -0 brig receipts verify
}

@test "one that reads nothing of its output does not hold up its end" {
    mine 'print q(x) x 65536 while 1'
    mkfifo pipe
    exec 5<>pipe
    status=0
    timeout -k 5 60 "$BRIG" sandbox exec --elevated --timeout 1s -- "$PWD/mine" -e "$script" >pipe 2>/dev/null || status=$?
    exec 5>&-
    receipt_is .kind outcome
    receipt_is .reason_code LIMIT_TIME
    receipt_is .outcome.timed_out true
    eventually 2 not mine_lives
}

@test "one that goes away before the end is no end without a receipt" {
    mine 'print q(x) x 99, chr 10 for 1..99999' 30s
    "$BRIG" sandbox exec --elevated --timeout 30s -- "$PWD/mine" -e "$script" 2>/dev/null | head -n 1 >first
    [ -s first ]
    receipt_is .kind outcome
    run -0 brig receipts verify
}

@test "interrupted it is cancelled, which its receipt says" {
    nap=$((400000 + RANDOM))
    standing "name: nap, allow: [/usr/bin/sleep, $nap]$user"
    run -77 brig sandbox exec --elevated -- /usr/bin/sleep $nap
    confirm_latest
    "$BRIG" sandbox exec --elevated -- /usr/bin/sleep $nap >/dev/null 2>&1 3>&- &
    pid=$!
    eventually 5 pgrep -fx "/usr/bin/sleep $nap"
    kill -TERM $pid
    await $pid
    receipt_is .kind outcome
    receipt_is .reason_code CANCELLED
    not pgrep -fx "/usr/bin/sleep $nap"
}

@test "a program that is another one than was confirmed has to be confirmed anew" {
    [ "$(id -u)" -ne 0 ] || chown nobody .
    chmod 755 .
    install -m 755 /usr/bin/id "$PWD/mine"
    [ "$(id -u)" -ne 0 ] || chown nobody mine
    standing "name: mine, allow: [$PWD/mine, -u]$user"
    run -77 brig sandbox exec --elevated -- "$PWD/mine" -u
    confirm_latest
    install -m 755 /usr/bin/whoami "$PWD/mine"
    [ "$(id -u)" -ne 0 ] || chown nobody mine
    run -77 brig sandbox exec --elevated -- "$PWD/mine" -u
    says "this changed: the program $PWD/mine"
    receipt_is .status PENDING
    run -0 brig approvals show "$(brig approvals list --state pending --json | jq -r '.approvals[0].approval_id')"
    says "program_sha256 sha256:$(sha256sum <mine | cut -d' ' -f1)"
    printf '#!/bin/sh\nid\n' >mine
    run -77 brig sandbox exec --elevated -- "$PWD/mine" -u
    says "is a script"
    chmod 777 mine
    run -77 brig sandbox exec --elevated -- "$PWD/mine" -u
    says "can be changed by others"
}

@test "what it works on is bound by content, like everything else that is confirmed" {
    shared=$(mktemp -d /tmp/brig-elevated-XXXXXX) # where whom it runs as can read it
    chmod 755 "$shared"
    echo one >"$shared/conf"
    chmod 644 "$shared/conf"
    standing "name: look, allow: [/usr/bin/cat, $shared/conf, /dev/null]$user"
    run -77 brig sandbox exec --elevated -- /usr/bin/cat "$shared/conf" /dev/null
    run -0 brig approvals list --json
    json_is '[.approvals[0].subject.operands[].path] | join(" ")' "$shared/conf"
    confirm_latest
    echo two >"$shared/conf"
    run -77 brig sandbox exec --elevated -- /usr/bin/cat "$shared/conf" /dev/null
    says "this changed: $shared/conf"
    receipt_is .status PENDING
    echo one >"$shared/conf"
    run -0 --separate-stderr brig sandbox exec --elevated -- /usr/bin/cat "$shared/conf" /dev/null
    [ "$output" = one ]
    rm -r "$shared"
    # What cannot be bound is not asked about.
    mkfifo pipe
    standing "name: look, allow: [/usr/bin/cat, $PWD/pipe]$user"
    run -77 brig sandbox exec --elevated -- /usr/bin/cat "$PWD/pipe"
    says "is neither a file nor a folder"
    receipt_is .reason_code APPROVAL_FAILED
}

@test "whose word it needs is the policy's to say" {
    cat >standing.yaml <<P
version: 1
default: allow
approvals:
  default: {by: ["custodian:ben", "custodian:ann"], quorum: 2}
elevated: [{name: who, allow: [/usr/bin/id, -u]$user}]
P
    run -0 brig policy apply standing.yaml
    run -77 brig sandbox exec --elevated -- /usr/bin/id -u
    confirm_latest
    run -0 brig approvals list --json
    json_is '.approvals[0].state' pending
    json_is '.approvals[0].quorum' 2
    json_is '.approvals[0].confirmations' 1
    run -77 brig sandbox exec --elevated -- /usr/bin/id -u
    says "waits for 2 people (1 of 2)"
    # A rule that wants more people for this command keeps its say.
    cat >>standing.yaml <<'P'
commands: [{ask: [id, "**"], approval: three}]
P
    sed -i 's/^approvals:/&\n  three: {by: ["*"], quorum: 3}/' standing.yaml
    run -0 brig policy apply standing.yaml
    run -77 brig sandbox exec --elevated -- /usr/bin/id -u
    says "waits for 3 people"
    # Both lists are shown: whoever confirms must be in each.
    run -0 brig approvals show "$(brig approvals list --json | jq -r '.approvals[-1].approval_id')"
    for name in '\*' custodian:ben custodian:ann; do
        grep -q "\[[01]\] $name$" <<<"$output"
    done
    grep -q '^if also in ' <<<"$output"
}

@test "no other surface has a word for it" {
    need curl
    standing "name: who, allow: [/usr/bin/id, -u]$user"
    run ! brig sandbox exec --provider host -- /usr/bin/id -u
    says "there is no provider \"host\""
    serve
    TOKEN=$(token --scope run --scope admin --scope read)
    post /v1/runs '{"command":["/usr/bin/id","-u"],"sandbox":{"provider":"host"}}'
    [ "$http" != 200 ]
    post /v1/runs '{"command":["/usr/bin/id","-u"],"elevated":true}'
    refused 400 invalid
    serve_end
}
