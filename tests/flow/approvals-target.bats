#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A person's word is bound to exactly what runs: each member of it, and files by their content.

load common
load sandbox
load kept

setup() {
    common_setup
    printf 'version: 1\ndefault: ask\n' >ask.yaml
    echo 'correct horse battery' >pass
    chmod 600 pass
    mkdir work
    echo 'echo one' >work/deploy.sh
}

teardown() {
    destroy_all
}

# ask OPTIONS… -- WORDS…: what a person is asked; the approval is in $approval.
ask() {
    run brig sandbox exec --json --policy ask.yaml "$@"
    approval=$(jq -r '.approval_id // empty' <<<"$output")
}

# another WHY OPTIONS… -- WORDS…: it is asked anew.
another() {
    local why=$1 before=$first
    shift
    ask "$@"
    [ "$status" -eq 77 ] || { echo "$why: $output"; return 1; }
    [ -n "$approval" ] && [ "$approval" != "$before" ] || { echo "$why: not asked anew"; return 1; }
}

confirm() {
    brig approvals confirm "$1" --as anna --passphrase-file pass >/dev/null
}

used() {
    [ "$(sqlite3 "$BRIG_HOME/approvals.db" "SELECT state FROM approvals WHERE id = '$1'")" = 3 ]
}

@test "each member of what runs is part of it" {
    mkdir other
    ask -- echo one
    first=$approval
    ask -- echo one
    [ "$approval" = "$first" ]
    another word -- echo two
    another "one word more" -- echo one ''
    another variable --env A=1 -- echo one
    another "its value" --env A=2 -- echo one
    another folder --workdir /tmp -- echo one
    another mount --mount "$PWD/work:/mnt/w" -- echo one
    another "a writable one" --mount "$PWD/work:/mnt/w:rw" -- echo one
    another "its source" --mount "$PWD/other:/mnt/w" -- echo one
    another limit --timeout 31s -- echo one
    another provider --provider mock -- echo one
    another sockets --sockets none -- echo one
    another user --user 1234 -- echo one
    echo '# nothing' >>ask.yaml
    ask -- echo one
    [ "$approval" = "$first" ]
    echo 'limits: {timeout: 5m}' >>ask.yaml
    another policy -- echo one
    run -0 brig approvals list --json --limit 1000
    json_is '[.approvals[].digest] | length == (unique | length)' true
}

@test "a script is bound by its content, and a changed one is asked about anew" {
    brig approvals enroll anna --passphrase-file pass
    ask --workspace work -- sh deploy.sh
    first=$approval
    run -0 brig approvals show "$first" --json
    json_is '.subject.operands[0].path' /workspace/deploy.sh
    json_is '.subject.operands[0].sha256' "sha256:$(sha256sum <work/deploy.sh | cut -d' ' -f1)"
    run -0 brig approvals show "$first"
    says "/workspace/deploy.sh  file, 9 bytes, sha256:"
    confirm "$first"
    echo 'echo two' >work/deploy.sh
    ask --workspace work -- sh deploy.sh
    [ "$status" -eq 77 ]
    [ "$approval" != "$first" ]
    json_is .reason "since approval $first this changed: /workspace/deploy.sh; approval $approval waits for a person; ask for exactly this again once it is confirmed"
    # What was confirmed still holds for what was confirmed.
    echo 'echo one' >work/deploy.sh
    ask --workspace work -- sh deploy.sh
    [ "$status" -eq 0 ]
    json_is .stdout one
}

@test "operands are found in options, in shell text, behind links and along the path" {
    mkdir -p work/bin work/deep
    echo x >work/conf
    echo y >work/deep/real
    ln -s deep/real work/link
    ln -s /workspace/deep/real work/absolute
    printf '#!/bin/sh\necho tool\n' >work/bin/tool
    chmod +x work/bin/tool
    local -A cases=(
        [/workspace/conf]='cat --file=conf'
        [/workspace/bin/tool]='./bin/tool'
        [/workspace/deep/real]='cat link'
    )
    for path in "${!cases[@]}"; do
        # shellcheck disable=SC2086
        ask --workspace work -- ${cases[$path]}
        run -0 brig approvals show "$approval" --json
        json_is "any(.subject.operands[]; .path == \"$path\")" true
    done
    ask --workspace work -- cat absolute
    run -0 brig approvals show "$approval" --json
    json_is '[.subject.operands[].path] | join(" ")' /workspace/deep/real
    ask --workspace work -- sh -c 'cd /tmp; cat </workspace/conf>out'
    run -0 brig approvals show "$approval" --json
    json_is 'any(.subject.operands[]; .path == "/workspace/conf")' true
    ask --workspace work --env PATH=/workspace/bin:/usr/bin -- tool
    run -0 brig approvals show "$approval" --json
    json_is '.subject.operands[0].path' /workspace/bin/tool
    # A folder is bound with all that is in it.
    ask --workspace work -- ls deep
    first=$approval
    run -0 brig approvals show "$approval" --json
    json_is '.subject.operands[0].kind' folder
    echo z >work/deep/real
    another "content of a folder" --workspace work -- ls deep
    # What is outside of what the sandbox shows is nothing to it.
    ask --workspace work -- cat /etc/passwd nothing
    run -0 brig approvals show "$approval" --json
    json_is '.subject | has("operands")' false
}

@test "quotes, backslashes and codes in shell text hide no operand" {
    local text
    mkdir -p work/bin
    echo x >work/conf
    echo x >work/a,b
    printf '#!/bin/sh\necho tool\n' >work/bin/tool
    chmod +x work/bin/tool
    local texts=('cat \conf' "cat co''nf" 'cat "co"nf' "cat \$'\\x63onf'" 'x=co; cat ${x}nf' 'cat <\conf'
        "echo $(echo 'cat conf' | base64) | base64 -d | sh")
    for text in "${texts[@]}"; do
        ask --workspace work -- sh -c "$text"
        run -0 brig approvals show "$approval" --json
        json_is 'any(.subject.operands[]?; .path == "/workspace/conf")' true || { echo "$text"; return 1; }
    done
    ask --workspace work -- sh -c 'cat a,b'
    run -0 brig approvals show "$approval" --json
    json_is '[.subject.operands[]?.path] | join(" ")' /workspace/a,b
    # A program that another one runs is looked for along the path, too.
    for text in 'sh -c tool' 'env tool' 'timeout 5 nice tool'; do
        # shellcheck disable=SC2086
        ask --workspace work --env PATH=/workspace/bin:/usr/bin -- $text
        run -0 brig approvals show "$approval" --json
        json_is 'any(.subject.operands[]?; .path == "/workspace/bin/tool")' true || { echo "$text"; return 1; }
    done
}

# bound PATH OPTIONS… -- WORDS…: it is among what a person is asked about.
bound() {
    local path=$1
    shift
    ask "$@"
    run brig approvals show "$approval" --json
    jq -e --arg path "$path" 'any(.subject.operands[]?; .path == $path)' <<<"$output" >/dev/null ||
        { echo "$path is not bound: $*: $output"; return 1; }
}

@test "a name may hold what stands between names, and be joined to letters of options" {
    local name
    for name in 'a b.mk' 'a,b.mk' 'k=v.mk' 'x@y:1' "it's" 'b{c}' $'new\nline'; do
        echo x >"work/$name"
        bound "/workspace/$name" --workspace work -- make "--file=$name"
        bound "/workspace/$name" --workspace work -- curl "-d@$name"
        bound "/workspace/$name" --workspace work -- scp "$name:there"
        bound "/workspace/$name" --workspace work --env "TOOL=sh '/workspace/$name'" -- git fetch
    done
    echo x >work/bundle.tar
    bound /workspace/bundle.tar --workspace work -- tar -xfbundle.tar
    bound /workspace/bundle.tar --workspace work -- tar -xvzfbundle.tar
    # What is confirmed holds no longer once such a file is another one.
    ask --workspace work -- make '--file=a,b.mk'
    first=$approval
    echo y >work/a,b.mk
    another "a file behind an option" --workspace work -- make '--file=a,b.mk'
}

@test "no way around names a file that is not bound: variables, other folders, links of the kernel" {
    local text
    mkdir -p work/deep
    echo x >work/deep/conf
    for text in "sh \$D/conf" "sh \${D}/conf" "sh \"\$D\"/conf" 'sh ~/conf' 'sh "$HOME/conf"' \
        'sh $PWD/deep/conf' 'cd; sh conf' 'cd && sh conf' 'cd / && sh workspace/deep/conf' \
        'cd ..; sh workspace/deep/conf' 'sh workspace/deep/conf; : /'; do
        bound /workspace/deep/conf --workspace work --env D=/workspace/deep --env HOME=/workspace/deep -- sh -c "$text"
    done
    bound /workspace/deep/conf --workspace work -- env -C / sh workspace/deep/conf
    for text in self/cwd/deep self/root/workspace/deep thread-self/cwd/deep 1/cwd/deep self/task/1/root/workspace/deep; do
        bound /workspace/deep/conf --workspace work -- sh "/proc/$text/conf"
    done
    # A folder that nobody can change is none of them, and a variable that nobody knows is nothing.
    ask --workspace work -- sh -c 'ls / /usr; sh $NOWHERE/conf'
    run -0 brig approvals show "$approval" --json
    json_is '.subject | has("operands")' false
}

@test "what cannot be bound is refused, unless the policy says it may be" {
    truncate -s 300M work/large
    ask --workspace work -- cat large
    [ "$status" -eq 77 ]
    json_is .reason_code APPROVAL_FAILED
    says "/workspace/large is larger than is bound by content"
    mkfifo work/pipe
    ask --workspace work -- cat pipe
    says "is neither a file nor a folder"
    printf 'approvals:\n  default: {by: ["*"], allow_unbound: true}\n' >>ask.yaml
    ask --workspace work -- cat large
    json_is .reason_code POLICY_ASK
    run -0 brig approvals show "$approval"
    says "NOT BOUND: it is larger than is bound by content"
}

@test "a command of many words is asked about, and waiting for its answer takes no memory" {
    mapfile -t words < <(yes '' | head -n 20000)
    ask -- true "${words[@]}"
    [ "$status" -eq 77 ]
    json_is .reason_code POLICY_ASK
    run -0 brig approvals list
    [ "${#output}" -lt 1000 ]
    says "more words)"
    # Fifty looks at two megabytes: more than a run has.
    large=$(head -c 120000 /dev/zero | tr '\0' x)
    ask --wait 5s -- true "$large" "$large" "$large" "$large" "$large" "$large" "$large" "$large" \
        "$large" "$large" "$large" "$large" "$large" "$large" "$large"
    [ "$status" -eq 77 ]
    json_is .reason_code POLICY_ASK
    [ -n "$approval" ]
}

@test "a file that a variable names is bound, a folder is not" {
    mkdir work/lib
    echo one >work/lib/rc
    ask --workspace work --env "RC=ssh -F /workspace/lib/rc" --env "LIB=/workspace/lib:/workspace" -- true
    first=$approval
    run -0 brig approvals show "$first" --json
    json_is '[.subject.operands[].path] | join(" ")' /workspace/lib/rc
    touch work/lib/other
    ask --workspace work --env "RC=ssh -F /workspace/lib/rc" --env "LIB=/workspace/lib:/workspace" -- true
    [ "$approval" = "$first" ]
    echo two >work/lib/rc
    another "what a variable names" --workspace work --env "RC=ssh -F /workspace/lib/rc" --env "LIB=/workspace/lib:/workspace" -- true
}

@test "what changes between the word and the run is not run" {
    brig approvals enroll anna --passphrase-file pass
    ask --workspace work -- sh deploy.sh
    confirm "$approval"
    # Between the word's use and the release stands the intent, which waits for whoever holds the ledger.
    coproc holder { sqlite3 "$BRIG_HOME/receipts.db"; }
    echo 'BEGIN IMMEDIATE; SELECT "held";' >&"${holder[1]}"
    read -r line <&"${holder[0]}"
    [ "$line" = held ]
    brig sandbox exec --json --policy ask.yaml --workspace work -- sh deploy.sh >out 3>&- &
    running=$!
    eventually 4 used "$approval"
    echo 'echo two' >work/deploy.sh
    echo 'ROLLBACK;' >&"${holder[1]}"
    exec {holder[1]}>&-
    status=0
    wait "$running" || status=$?
    output=$(cat out)
    [ "$status" -eq 77 ]
    json_is .reason_code APPROVAL_TARGET_CHANGED
    says "/workspace/deploy.sh changed after it was confirmed"
    receipt_is .reason_code APPROVAL_TARGET_CHANGED
    run -0 brig approvals show "$approval" --json
    json_is .state used
}

@test "what changes while its word is waited for is asked about anew" {
    brig approvals enroll anna --passphrase-file pass
    "$BRIG" sandbox exec --json --policy ask.yaml --wait 20s --workspace work -- sh deploy.sh >waited 2>&1 3>&- &
    running=$!
    has_one() { [ "$(brig approvals list --json | jq '.approvals | length')" = 1 ]; }
    eventually 10 has_one
    first=$(brig approvals list --json | jq -r '.approvals[0].approval_id')
    echo 'echo two' >work/deploy.sh
    confirm "$first"
    await "$running"
    [ "$status" -eq 77 ]
    output=$(<waited)
    json_is .verdict ASK
    json_is ".approval_id == \"$first\"" false
    says "since approval $first this changed: /workspace/deploy.sh"
    not used "$first"
}

@test "in a kept sandbox what it wrote itself is bound, too" {
    brig approvals enroll anna --passphrase-file pass
    printf 'version: 1\ndefault: ask\ncommands:\n  - allow: [tee, "**"]\n' >kept.yaml
    box=$(brig sandbox create --policy kept.yaml --json | jq -r .sandbox_id)
    echo 'echo one' | brig sandbox exec "$box" -- tee /tmp/job.sh >/dev/null
    run -77 brig sandbox exec "$box" --json -- sh /tmp/job.sh
    first=$(jq -r .approval_id <<<"$output")
    run -0 brig approvals show "$first" --json
    json_is '.subject.operands[0].path' /tmp/job.sh
    confirm "$first"
    echo 'echo two' | brig sandbox exec "$box" -- tee /tmp/job.sh >/dev/null
    run -77 brig sandbox exec "$box" --json -- sh /tmp/job.sh
    says "since approval $first this changed: /tmp/job.sh"
    echo 'echo one' | brig sandbox exec "$box" -- tee /tmp/job.sh >/dev/null
    run -0 brig sandbox exec "$box" --json -- sh /tmp/job.sh
    json_is .stdout one
}

@test "in a kept sandbox what is at home is bound, however it is called there" {
    local text
    printf 'version: 1\ndefault: ask\ncommands:\n  - allow: [tee, "**"]\n' >kept.yaml
    box=$(brig sandbox create --policy kept.yaml --json | jq -r .sandbox_id)
    echo 'echo one' | brig sandbox exec "$box" -- tee /home/sandbox/job.sh >/dev/null
    for text in 'sh ~/job.sh' 'sh $HOME/job.sh' 'cd / && sh home/sandbox/job.sh' 'cd /home; sh sandbox/job.sh'; do
        run -77 brig sandbox exec "$box" --json -- sh -c "$text"
        run -0 brig approvals show "$(jq -r .approval_id <<<"$output")" --json
        json_is 'any(.subject.operands[]?; .path == "/home/sandbox/job.sh")' true || { echo "$text"; return 1; }
    done
}
