#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The command line as a whole: help, refusals, names and the wrapper.

load common

teardown() {
    [ -z "${APART-}" ] || rm -rf "$APART"
}

@test "every command of the overview has help" {
    run brig --help
    status_is 0
    paths=$(printf '%s\n' "$output" | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on' |
        sed -n 's/^  \([a-z][a-z ]*[a-z]\)  .*/\1/p')
    [ -n "$paths" ]
    while read -r path; do
        # shellcheck disable=SC2086 # a path is one or two words
        run brig $path --help
        status_is 0
        says "Usage: brig $path"
    done <<<"$paths"
}

@test "an unknown command is refused with a suggestion" {
    run brig verson
    status_is 64
    says 'did you mean "version"?'
}

@test "an unknown option is refused with a suggestion" {
    run brig version --jsno
    status_is 64
    says 'unknown option --jsno; did you mean --json?'
}

@test "with --json a refusal is an object on standard output" {
    run --separate-stderr brig version --json --bogus
    status_is 64
    json_is .error.type invalid_request
    json_is .error.reason_code REQUEST_INVALID
    [ -z "$stderr" ]
}

@test "called as helm, usage errors are 2" {
    run helm sandbox nonsense
    status_is 2
    says "helm: "
}

@test "version says the same in text and in JSON" {
    version=$(brig version --json | jq -r .version)
    run brig version
    says "brig $version "
}

@test "a result that cannot be written is an error" {
    [ -e /dev/full ] || skip "no /dev/full"
    run bash -c '"$BRIG" version >/dev/full'
    status_is 75
    says "writing to standard output"
}

@test "the bash completion parses and offers commands, options and values" {
    brig completion bash >c.bash
    bash -n c.bash
    run bash -c 'source ./c.bash
        try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _brig; echo "${COMPREPLY[*]}"; }
        try brig ver; try brig version --j; try brig completion z'
    status_is 0
    [[ ${lines[0]} == *version* ]]
    [ "${lines[1]}" = "--json" ]
    [ "${lines[2]}" = "zsh" ]
}

@test "the bash completion offers files behind a verb that takes one" {
    brig completion bash >c.bash
    touch rules.yaml
    run bash -c 'source ./c.bash
        try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _brig; echo "$*: ${COMPREPLY[*]}"; }
        try brig policy ceiling s
        try brig policy ceiling set r
        try brig policy ceiling --json set r
        try brig policy bundle make --name x rules.yaml r
        try brig policy trust add r
        try brig policy proposals show r
        try brig approvals notify se'
    status_is 0
    [ "${lines[0]}" = "brig policy ceiling s: show set" ]
    [ "${lines[1]}" = "brig policy ceiling set r: rules.yaml" ]
    [ "${lines[2]}" = "brig policy ceiling --json set r: rules.yaml" ]
    [ "${lines[3]}" = "brig policy bundle make --name x rules.yaml r: rules.yaml" ]
    [ "${lines[4]}" = "brig policy trust add r: rules.yaml" ]
    [ "${lines[5]}" = "brig policy proposals show r: " ]
    [ "${lines[6]}" = "brig approvals notify se: set" ]
}

@test "the other completions name every command" {
    for shell in zsh fish; do
        brig completion $shell >out
        for word in version completion help; do
            grep -q "$word" out
        done
    done
    ! command -v zsh || zsh -n <(brig completion zsh)
    ! command -v fish || fish -n <(brig completion fish)
}

@test "every command and option of the table is in the manual" {
    manual=$BRIG_BUILD/man/brig.1
    [ -e "$manual" ] || skip "the manual was not built: no scdoc"
    sed 's/\\//g' "$manual" >manual
    brig completion man | sed -n 's/^## \(brig [a-z ]*[a-z]\).*/\1/p' >commands
    [ -s commands ]
    while read -r command; do
        grep -qF "$command" manual
    done <commands
    brig completion man | grep -oE '^\*--[a-z-]+' | tr -d '*' | sort -u >options
    while read -r option; do
        grep -qF -e "$option" manual
    done <options
}

@test "who looks at a terminal is told what takes long" {
    brig sandbox exec -- true 2>/dev/null
    brig receipts export --output ledger.jsonl
    mkfifo slow
    timeout -k 5 60 script -qefc "'$BRIG' verify slow" seen </dev/null >/dev/null 3>&- &
    running=$!
    told() { [ -e seen ] && grep -q "brig: still checking receipts" seen; }
    eventually 20 told
    cat ledger.jsonl >slow
    await "$running"
    [ "$status" -eq 0 ]
    grep -q "integrity intact" seen
}

@test "a list with nothing in it says so, to people" {
    while IFS='|' read -r words said; do
        # shellcheck disable=SC2086
        run -0 --separate-stderr brig $words </dev/null
        [ -z "$output" ]
        [ "$stderr" = "brig: $said" ] || { echo "$words: $stderr" >&2; return 1; }
        # shellcheck disable=SC2086
        run -0 --separate-stderr brig $words --json </dev/null
        jq -e 'type == "object"' <<<"$output"
        [ -z "$stderr" ]
    done <<W
receipts list|no receipts
approvals list|nothing waits for a person
approvals list --state used|no such approvals
approvals custodians|nobody is a custodian ("brig approvals enroll")
advisory report|no advisory sessions
budget show|no budgets
token list|no tokens
vault list|no secrets
image list|no images
snapshot list|no snapshots
sandbox list|no sandboxes
pool list|no pools
policy proposals list|no proposals wait (--all shows the others)
policy trust list|no publisher is trusted
W
}

@test "a state directory of somebody else says whose it is" {
    need setpriv
    is_root || skip "needs another user"
    APART=$(mktemp -d /tmp/brig-test-XXXXXX) # where everybody can go
    cp "$BRIG" "$APART/brig"
    chmod 711 "$APART"
    mkdir -m 0700 "$APART/state"
    for words in "receipts list" "approvals list" "advisory report" "token list"; do
        # shellcheck disable=SC2086
        BRIG_HOME=$APART/state run -77 setpriv --reuid=65534 --regid=65534 --clear-groups "$APART/brig" $words
        says "the state directory $APART/state belongs to user 0, not to you (65534): set BRIG_HOME to one of your own"
    done
}

@test "the manual names what is in the state directory" {
    manual=$BRIG_ROOT/man/brig.1.scd
    [ -e "$manual" ] || skip "only the programs are here"
    echo 'correct horse battery' >pass
    chmod 600 pass
    printf 'version: 1\ndefault: ask\n' >ask.yaml
    brig policy apply ask.yaml
    brig policy ceiling set ask.yaml
    brig policy trust add "$(printf '%064d' 1 | tr 0 a)" || true
    run -77 brig sandbox exec -- true
    brig approvals enroll anna --passphrase-file pass
    brig approvals notify set --command /bin/true
    brig budget set --per principal --within 1h --runs 5
    brig freeze --principal nobody
    brig token create >/dev/null
    brig usage >/dev/null
    echo 'value of it' | brig vault set NAME
    run -0 ls "$BRIG_HOME"
    [ "${#lines[@]}" -gt 12 ]
    sed -n 's/\\//g; /^# FILES/,/^# EXAMPLES/p' "$manual" | grep -oE '_[A-Za-z.$][^ ]*_' | tr -d _/ | sort >named
    for name in "${lines[@]}"; do
        case $name in
        *-wal | *-shm | *.lock) [[ $name = daemon.lock ]] || continue ;;
        esac
        grep -qxF "$name" named || { echo "$name is not in the manual"; return 1; }
    done
}
