#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig sandbox exec ID: the contract of the one-shot form, and what is shared between commands.

load common
load sandbox
load kept

setup() {
    common_setup
    make
}

teardown() {
    destroy_all
}

# ---- streams ----

@test "output and input of every byte value pass through unmodified" {
    perl -e 'binmode STDOUT; print map { chr } 0 .. 255' >data
    in_it -- cat <data >got
    cmp got data
    in_it -- sh -c 'cat >&2' <data 2>got >out
    cmp got data
    [ ! -s out ]
}

@test "ten megabytes arrive complete, in order, on both streams at once" {
    in_it -- perl -e 'for (1 .. 160000) { printf STDOUT "%063d\n", $_; printf STDERR "%07d\n", $_ }' \
        >out 2>err </dev/null
    [ "$(wc -c <out)" -eq 10240000 ]
    [ "$(wc -c <err)" -eq 1280000 ]
    [ "$(tail -n 1 out)" = "$(printf %063d 160000)" ]
}

@test "a large input is read whole, and counted" {
    head -c 5000000 /dev/urandom >data
    in_it -- sha256sum <data >got
    [ "$(cut -d ' ' -f 1 got)" = "$(sha256sum <data | cut -d ' ' -f 1)" ]
    receipt_is .outcome.stdin_bytes 5000000
}

@test "closed and empty input is end of file" {
    run in_it -- wc -c </dev/null
    [ "$output" = 0 ]
    run bash -c '"$BRIG" sandbox exec "$1" --quiet -- wc -c <&-' _ "$id"
    [ "$output" = 0 ]
}

@test "a reader that goes away ends the command" {
    run bash -c 'timeout -k 5 30 "$BRIG" sandbox exec "$1" --quiet --timeout 20s -- yes </dev/null | head -n 1' _ "$id"
    status_is 0
    [ "$output" = y ]
    receipt_is .outcome.signal 13
}

# ---- exit statuses ----

@test "the exit status is the command's, signals are 128 + n" {
    for code in 0 1 77 124 255; do
        run in_it -- sh -c "exit $code" </dev/null
        status_is $code
        receipt_is .outcome.exit_code $code
    done
    for signal in 9 15; do
        run in_it -- sh -c "kill -$signal \$\$" </dev/null
        status_is $((128 + signal))
        receipt_is .outcome.signal $signal
    done
}

@test "126 and 127 as ever" {
    run -127 in_it -- no-such-command </dev/null
    receipt_is .reason_code COMMAND_NOT_FOUND
    run in_it -- /etc/passwd </dev/null
    status_is 126
    receipt_is .reason_code COMMAND_NOT_EXECUTABLE
    run in_it -- true </dev/null
    status_is 0
}

@test "124: its own time ran out; the sandbox goes on" {
    run in_it --timeout 300ms -- sleep 100 </dev/null
    status_is 124
    receipt_is .reason_code LIMIT_TIME
    receipt_is .outcome.timed_out true
    run in_it --timeout 300ms -- perl -e '$SIG{$_} = "IGNORE" for qw(TERM INT HUP QUIT); fork; sleep 100' </dev/null
    status_is 124
    eventually 2 only_pid_one
    run in_it -- echo on </dev/null
    [ "$output" = on ]
}

@test "124 also ends a command that may leave others behind" {
    run in_it --keep --timeout 300ms -- perl -e '$SIG{TERM} = "IGNORE"; sleep 100' </dev/null
    status_is 124
    eventually 2 only_pid_one
}

only_pid_one() {
    [ "$("$BRIG" sandbox show "$id" | jq .processes)" -eq 1 ]
}

@test "a JSON answer has the keys of the one-shot form" {
    exec_json -- true </dev/null
    jq -r 'keys[]' <<<"$output" | sort >one
    run --separate-stderr brig sandbox exec "$id" --json -- sh -c 'echo out; echo err >&2; exit 4' </dev/null
    status_is 4
    jq -r 'keys[]' <<<"$output" | sort >other
    diff one other
    json_is .exit_code 4
    json_is '.stdout + .stderr' "$(printf 'out\nerr')"
    json_is .verdict ALLOW
}

# ---- environment, folder, user ----

@test "environment: the sandbox's, then the command's own" {
    brig sandbox destroy "$id"
    FORWARDED=f make --env A=1 --env B=2 --env FORWARDED --workdir /tmp
    run in_it --env B=3 --env C=4 -- sh -c 'echo $A $B $C $FORWARDED; pwd' </dev/null
    [ "$output" = "1 3 4 f
/tmp" ]
    run in_it --workdir /usr -- pwd </dev/null
    [ "$output" = /usr ]
    run in_it -- env </dev/null
    says "A=1"
    [[ $output != *C=4* ]]
}

@test "a folder that is not there is a failure that says so" {
    run --separate-stderr brig sandbox exec "$id" --workdir /no/such -- true </dev/null
    [ "$status" -ne 0 ]
    [[ $stderr == *"/no/such"* ]]
    in_it -- ln -s / /tmp/link </dev/null
    run --separate-stderr brig sandbox exec "$id" --workdir /tmp/link/usr -- true </dev/null
    [ "$status" -ne 0 ]
}

@test "files stay from command to command, and go with the sandbox" {
    in_it -- sh -c 'echo kept >/tmp/f; mkdir ~/d' </dev/null
    run in_it -- sh -c 'cat /tmp/f; ls -d ~/d' </dev/null
    [ "$output" = "kept
/home/sandbox/d" ]
}

@test "every command has the walls of the sandbox around it" {
    run in_it -- sh -c 'grep -E "^(NoNewPrivs|Seccomp|CapEff|CapBnd):" /proc/self/status; cat /proc/1/comm' </dev/null
    says "NoNewPrivs:	1"
    says "Seccomp:	2"
    says "CapEff:	0000000000000000"
    says "CapBnd:	0000000000000000"
    run in_it -- unshare --user true </dev/null
    [ "$status" -ne 0 ]
    run in_it -- sh -c 'ls /proc/self/fd | wc -l' </dev/null
    [ "$output" -le 4 ]
}

# ---- terminal ----

@test "a terminal of its own, with a size and job control" {
    need script
    run timeout -k 5 60 script -qec "stty rows 33 cols 77; '$BRIG' sandbox exec $id --quiet --tty -- sh -c 'stty size; test -t 0 && test -t 1 && echo tty; ps -o tty= -p \$\$ 2>/dev/null'" /dev/null </dev/null
    says "33 77"
    says tty
}

@test "two terminals at once" {
    need script
    # Each stays until the other one is there.
    in_terminal() { # OWN OTHER
        timeout -k 5 "$PATIENCE" script -qec "'$BRIG' sandbox exec $id --quiet --tty -- \
            sh -c 'tty; : >/tmp/$1; until [ -e /tmp/$2 ]; do sleep 0.05; done'" "$1" </dev/null >/dev/null
    }
    in_terminal one two &
    first=$!
    in_terminal two one
    wait "$first"
    grep -o '/dev/pts/[0-9]*' one
    [ "$(grep -o '/dev/pts/[0-9]*' one)" != "$(grep -o '/dev/pts/[0-9]*' two)" ]
}

# ---- signals ----

@test "a signal to Brig is the command's" {
    in_it -- sh -c 'trap "echo caught; exit 9" TERM; echo ready; while :; do sleep 0.1; done' >out </dev/null &
    waiter=$!
    eventually 3 grep -q ready out
    pkill -TERM -P "$waiter" || kill -TERM "$waiter"
    status=0
    wait "$waiter" || status=$?
    grep caught out
    eventually 2 only_pid_one
    receipt_is .reason_code CANCELLED
}

# slow_to_go SECONDS: a command that takes so long to go, of the two it has; what Brig does with a second signal shows.
slow_to_go() {
    "$BRIG" sandbox exec "$id" --quiet -- \
        perl -e '$| = 1; $SIG{TERM} = sub { select undef, undef, undef, $ARGV[0]; print "gone\n"; exit 9 };
                 print "ready\n"; sleep 1 while 1' "$1" >out </dev/null &
    waiter=$!
    eventually 5 grep -q ready out
}

@test "timeout(1) signals the process and its group: the command is asked once" {
    slow_to_go 0.3
    perl -e 'kill TERM => $ARGV[0] for 1 .. 50' "$waiter"
    status=0
    wait "$waiter" || status=$?
    [ "$status" -eq 9 ]
    grep gone out
}

@test "whoever asks again later is not made to wait" {
    slow_to_go 1.8
    kill -TERM "$waiter"
    read -rt 0.5 <> <(:) || true
    kill -TERM "$waiter"
    wait "$waiter" || true
    run ! grep gone out
    receipt_is .reason_code CANCELLED
    receipt_is .outcome.signal 9
}

# ---- several at once, and what they leave behind ----

@test "twenty at once, each with its own streams and status" {
    for i in $(seq 20); do
        (
            status=0
            echo "in $i" | in_it -- sh -c "cat; sleep 0.2; exit $i" >"out.$i" || status=$?
            echo "$status" >"status.$i"
        ) &
    done
    wait
    for i in $(seq 20); do
        [ "$(cat "out.$i")" = "in $i" ]
        [ "$(cat "status.$i")" -eq "$i" ]
    done
    chain_holds 42
}

@test "what a command leaves in the background ends with it" {
    in_it -- sh -c 'for i in 1 2 3; do setsid sh -c "sleep 100 & sleep 100" >/dev/null 2>&1 & done; sleep 0.2' </dev/null
    eventually 2 only_pid_one
}

@test "with --keep it stays, and later commands see it" {
    in_it --keep -- sh -c 'sleep 77.7 >/dev/null 2>&1 & echo $! >/tmp/pid' </dev/null
    run in_it -- sh -c 'tr "\0" " " </proc/$(cat /tmp/pid)/cmdline' </dev/null
    says "sleep 77.7"
    in_it -- sh -c 'kill $(cat /tmp/pid)' </dev/null
    eventually 2 only_pid_one
}

@test "a caller does not wait for what it keeps" {
    run -0 in_it --keep -- sh -c 'sleep 300 & echo done' </dev/null # its own end, not that of our patience
    [ "$output" = "done" ]
}

# ---- limits ----

@test "the limits are those of the sandbox as a whole" {
    brig sandbox destroy "$id"
    make --memory 64M --pids 20
    run in_it -- perl -e '$x = "a" x 200_000_000; print length $x' </dev/null
    [ "$status" -ne 0 ]
    [ "$output" != 200000000 ]
    if ! brig sandbox show "$id" >/dev/null 2>&1; then # the watcher ends all of it
        make --memory 64M --pids 20
    fi
    run in_it -- sh -c 'for i in $(seq 40); do sleep 1 & done; wait' </dev/null
    says fork
}
