#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig sandbox exec: streams, arguments, standard input and exit statuses, byte for byte.

load common
load sandbox

quiet() {
    timeout -k 5 "$PATIENCE" "$BRIG" sandbox exec --quiet "$@"
}

# ---- streams ----

@test "output of every byte value passes through unmodified" {
    quiet -- perl -e 'binmode STDOUT; print map { chr } 0 .. 255' >got </dev/null
    perl -e 'binmode STDOUT; print map { chr } 0 .. 255' >wanted
    cmp got wanted
}

@test "both streams arrive apart, and nothing else is mixed in" {
    quiet -- sh -c 'printf out; printf err >&2' >out 2>err </dev/null
    [ "$(cat out)" = out ]
    [ "$(cat err)" = err ]
}

@test "ten megabytes arrive complete, in order, on both streams at once" {
    quiet -- perl -e 'for (1 .. 160000) { printf STDOUT "%063d\n", $_; printf STDERR "%07d\n", $_ }' \
        >out 2>err </dev/null
    perl -e 'for (1 .. 160000) { printf STDOUT "%063d\n", $_; printf STDERR "%07d\n", $_ }' \
        >out.wanted 2>err.wanted
    cmp out out.wanted
    cmp err err.wanted
}

@test "output appears while the command runs" {
    mkfifo go
    quiet -- sh -c 'echo first; read line; echo "$line"' <go >out &
    pid=$!
    exec {go}>go
    eventually 10 test -s out
    [ "$(cat out)" = first ]
    echo second >&$go
    exec {go}>&-
    wait "$pid"
    [ "$(cat out)" = "first
second" ]
}

@test "a reader that goes away ends the command as it would without Brig" {
    run bash -c 'timeout -k 5 30 "$BRIG" sandbox exec --quiet --timeout 20s -- yes </dev/null | head -n 1'
    status_is 0
    [ "$output" = y ]
    receipt_is .outcome.signal 13
}

# ---- arguments ----

@test "the command is what was written, not what a shell would make of it" {
    run quiet -- echo 'a; id' '$HOME' '*' '`id`' </dev/null
    status_is 0
    [ "$output" = 'a; id $HOME * `id`' ]
}

@test "empty, quoted, broken and non-UTF-8 arguments arrive exactly" {
    quiet -- printf '[%s]' '' ' ' $'a\nb' "'" '"' $'\377\376' '\' -- --json >got </dev/null
    printf '[%s]' '' ' ' $'a\nb' "'" '"' $'\377\376' '\' -- --json >wanted
    cmp got wanted
}

@test "an argument of 100 000 bytes arrives whole" {
    long=$(head -c 100000 /dev/zero | tr '\0' x)
    run quiet -- sh -c 'printf %s "${#1}"' sh "$long" </dev/null
    status_is 0
    [ "$output" = 100000 ]
}

@test "ten thousand arguments arrive" {
    # shellcheck disable=SC2046 # many words are the point
    run quiet -- sh -c 'echo $#' sh $(seq 10000) </dev/null
    status_is 0
    [ "$output" = 10000 ]
}

@test "without a command there is no run" {
    run brig sandbox exec --
    status_is 64
    says "-- CMD"
    run brig sandbox exec -- ""
    status_is 64
    says "there is no command"
    [ "$(receipts_of intent)" -eq 0 ]
}

# ---- standard input ----

@test "standard input is piped through, however large" {
    head -c 20000000 /dev/urandom >data
    quiet -- sha256sum <data >got
    [ "$(cut -d ' ' -f 1 got)" = "$(sha256sum <data | cut -d ' ' -f 1)" ]
    receipt_is .outcome.stdin_bytes 20000000
    receipt_is .outcome.stdin_hash "sha256:$(sha256sum <data | cut -d ' ' -f 1)"
}

@test "piped input of every byte value is the same inside" {
    perl -e 'binmode STDOUT; print map { chr } 0 .. 255' >data
    # shellcheck disable=SC2002 # a pipe is the point
    cat data | quiet -- cat >got
    cmp got data
}

@test "empty input is end of file" {
    : >empty
    run quiet -- wc -c <empty
    status_is 0
    [ "$output" = 0 ]
    run quiet -- wc -c </dev/null
    status_is 0
    [ "$output" = 0 ]
}

@test "closed input is end of file" {
    run bash -c '"$BRIG" sandbox exec --quiet -- wc -c <&-'
    status_is 0
    [ "$output" = 0 ]
}

@test "closed output loses nothing but the output" {
    run bash -c '"$BRIG" sandbox exec --quiet -- sh -c "echo lost; exit 3" </dev/null >&- 2>&-'
    status_is 3
    receipt_is .outcome.stdout_bytes 5
}

@test "a command that does not read its input does not hang on it" {
    run bash -c 'yes | timeout -k 5 30 "$BRIG" sandbox exec --quiet -- true'
    status_is 0
}

# ---- the closing line ----

@test "one line at the end names verdict, receipt and duration" {
    run --separate-stderr brig sandbox exec -- true </dev/null
    status_is 0
    [ -z "$output" ]
    [[ $stderr =~ ^brig:\ ALLOW\;\ receipt\ [a-z0-9]{20},\ [0-9]+\.[0-9]{3}\ s$ ]]
    [[ $stderr == *"receipt $(receipt .receipt_id),"* ]]
}

@test "--quiet leaves it out" {
    run --separate-stderr brig sandbox exec --quiet -- true </dev/null
    status_is 0
    [ -z "$output$stderr" ]
}

@test "a refusal is told in a line, quiet or not" {
    run --separate-stderr brig sandbox exec --quiet --memory 0.5 -- true </dev/null
    status_is 64
    [ -n "$stderr" ]
}

# ---- exit statuses ----

@test "the exit status is the command's" {
    for code in 0 1 2 63 77 124 126 200 255; do
        run quiet -- sh -c "exit $code" </dev/null
        status_is $code
        receipt_is .outcome.exit_code $code
    done
}

@test "128 + n says that signal n ended it" {
    for signal in 9 15 6 11; do
        run quiet -- sh -c "kill -$signal \$\$" </dev/null
        status_is $((128 + signal))
        receipt_is .outcome.signal $signal
    done
}

@test "124: the time ran out, and nothing is left" {
    run --separate-stderr timeout -k 5 30 "$BRIG" sandbox exec --timeout 300ms -- sleep 100 </dev/null
    status_is 124
    [[ $stderr == *"ALLOW LIMIT_TIME: the time limit ended it"* ]]
    receipt_is .outcome.timed_out true
    receipt_is .reason_code LIMIT_TIME
    nothing_is_left
    run quiet --timeout 5s -- sleep 0.1 </dev/null
    status_is 0
}

@test "124 also for a command that ignores every signal" {
    run timeout -k 5 30 "$BRIG" sandbox exec --timeout 300ms -- \
        perl -e '$SIG{$_} = "IGNORE" for qw(TERM INT HUP QUIT); for (1 .. 20) { fork } sleep 100' </dev/null
    status_is 124
    nothing_is_left
}

@test "127: there is no such command" {
    run -127 --separate-stderr brig sandbox exec -- no-such-command </dev/null
    [[ $stderr == *"COMMAND_NOT_FOUND"* ]]
    receipt_is .reason_code COMMAND_NOT_FOUND
    run -127 quiet -- sh -c 'exit 127' </dev/null
    receipt_is .reason_code POLICY_DEFAULT_ALLOW
}

@test "126: it cannot be executed" {
    run --separate-stderr brig sandbox exec -- /etc/passwd </dev/null
    status_is 126
    [[ $stderr == *"COMMAND_NOT_EXECUTABLE"* ]]
    run brig sandbox exec -- /usr/bin </dev/null
    status_is 126
    receipt_is .reason_code COMMAND_NOT_EXECUTABLE
}

@test "77: denied by the policy, which is named with its rule" {
    cat >policy.yaml <<'EOF'
version: 1
default: allow
commands:
  - name: no-removing
    deny: [rm, "**"]
  - name: push
    ask: [git, push, "**"]
EOF
    mkdir out
    chmod 0777 out
    run --separate-stderr brig sandbox exec --policy policy.yaml --mount "$PWD/out:/workspace:rw" -- \
        rm -rf /workspace </dev/null
    status_is 77
    [[ $stderr == *"DENY POLICY_DENY: "* ]]
    [[ $stderr == *"no-removing"* ]]
    [ -d out ]
    receipt_is .kind denial
    receipt_is .rule "no-removing"
    receipt_is .rule_line 4
    receipt_is .status DENIED
    run --separate-stderr brig sandbox exec --policy policy.yaml -- git push origin </dev/null
    status_is 77
    [[ $stderr == *"ASK POLICY_ASK: "* ]]
    receipt_is .status PENDING
    run brig sandbox exec --policy policy.yaml -- echo fine </dev/null
    status_is 0
    says fine
}

@test "a policy without a rule for it denies by default" {
    cat >policy.yaml <<'EOF'
version: 1
commands:
  - name: only-echo
    allow: [echo, "**"]
EOF
    run brig sandbox exec --policy policy.yaml -- id </dev/null
    status_is 77
    says "POLICY_DEFAULT_DENY"
    run brig sandbox exec --policy policy.yaml -- echo yes </dev/null
    status_is 0
    receipt_is .rule "only-echo"
}

@test "64: options that make no sense, each with its sentence" {
    for words in "--timeout soon" "--memory lots" "--pids 0" "--pids -1" "--cpu 0" "--network open" \
        "--disk 1Q" "--no-such" "--env 1A=b" "--mount /tmp" "--mount /tmp:/mnt:rwx"; do
        # shellcheck disable=SC2086 # option and value
        run brig sandbox exec $words -- true </dev/null
        status_is 64
        says "brig: "
    done
    [ "$(receipts_of outcome)" -eq 0 ]
}

@test "a provider nobody knows, and one this version does not have, are refused with a receipt" {
    run brig sandbox exec --provider nowhere -- true </dev/null
    status_is 77
    says 'PROVIDER_UNKNOWN: there is no provider "nowhere"'
    receipt_is .reason_code PROVIDER_UNKNOWN
    for provider in gvisor microvm docker ssh kubernetes opensandbox e2b daytona; do
        run brig sandbox exec --provider $provider -- true </dev/null
        status_is 77
        says "PROVIDER_UNAVAILABLE"
        receipt_is .kind denial
    done
}

@test "the mock provider says that it ran nothing" {
    run --separate-stderr brig sandbox exec --provider mock -- rm -rf / </dev/null
    status_is 0
    [ "$output" = "[mock: nothing was run] rm -rf /" ]
    [[ $stderr == *"MOCK"* ]]
    receipt_is .reason_code MOCK
    receipt_is .outcome.started false
    receipt_is .posture.evidence claimed
}

@test "every run has an intent and exactly one end" {
    quiet -- true </dev/null
    quiet -- false </dev/null || true
    quiet -- no-such </dev/null || true
    quiet --provider mock -- true </dev/null
    brig sandbox exec --provider nowhere -- true </dev/null || true
    [ "$(receipts_of intent)" -eq 4 ]
    [ "$(receipts_of outcome)" -eq 4 ]
    [ "$(receipts_of denial)" -eq 1 ]
    chain_holds 9
    nothing_is_left
}

# ---- environment ----

@test "the environment is a short list, plus what was asked for" {
    SECRET=x FORWARDED='a b' run quiet --env A=1 --env B= --env FORWARDED --env 'C=x=y z' -- env </dev/null
    status_is 0
    printf '%s\n' "$output" | sort >got
    sort >wanted <<'EOF'
A=1
B=
C=x=y z
FORWARDED=a b
HOME=/home/sandbox
LANG=C.UTF-8
LOGNAME=sandbox
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
SHELL=/bin/sh
USER=sandbox
EOF
    diff got wanted
}

@test "a variable of the short list can be replaced" {
    run quiet --env HOME=/tmp --env PATH=/usr/bin -- sh -c 'echo $HOME $PATH' </dev/null
    status_is 0
    [ "$output" = "/tmp /usr/bin" ]
}

@test "loader and interpreter variables are not forwarded" {
    for name in LD_PRELOAD LD_LIBRARY_PATH BASH_ENV ENV PYTHONPATH PERL5LIB NODE_OPTIONS GIT_DIR \
        GCONV_PATH GLIBC_TUNABLES RUBYOPT JAVA_TOOL_OPTIONS IFS; do
        run env "$name=/x" "$BRIG" sandbox exec --env $name -- true </dev/null
        status_is 64
        says "--env $name: such variables are not forwarded; write $name=VALUE"
    done
    run quiet --env PYTHONPATH=/x -- sh -c 'echo $PYTHONPATH' </dev/null
    [ "$output" = /x ]
}

@test "OpenShell 94: a credential given as a variable is passed on, and the vault is named" {
    run --separate-stderr brig sandbox exec --env MY_TOKEN=ghp_abcdefghijklmnopqrstuvwxyz0123456789 -- sh -c 'echo ${#MY_TOKEN}' </dev/null
    status_is 0
    [ "$output" = 40 ]
    [[ "$stderr" == *"the value of MY_TOKEN looks like a credential"*"brig vault set"* ]]
    [[ "$stderr" != *ghp_* ]]
    run --separate-stderr env MY_TOKEN=ghp_abcdefghijklmnopqrstuvwxyz0123456789 "$BRIG" sandbox exec --env MY_TOKEN -- true </dev/null
    [[ "$stderr" == *"the value of MY_TOKEN looks like a credential"* ]]
    run --separate-stderr brig sandbox exec --env MY_TOKEN=sk-OPENSHELL-RESOLVE-ENV-KEY --env A=b -- true </dev/null
    [[ "$stderr" != *credential* ]]
    run --separate-stderr quiet --env MY_TOKEN=ghp_abcdefghijklmnopqrstuvwxyz0123456789 -- true </dev/null
    [[ "$stderr" != *credential* ]]
}

@test "a variable that is not set here, or given twice, is refused" {
    run env -u NOT_HERE "$BRIG" sandbox exec --env NOT_HERE -- true </dev/null
    status_is 64
    says "--env NOT_HERE: not set here"
    run brig sandbox exec --env A=1 --env A=2 -- true </dev/null
    status_is 64
    says "--env A: given twice"
}
