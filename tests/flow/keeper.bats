#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The keeper of brig serve: nobody else has the key, and without it nothing runs.

load common
load sandbox
load kept
load serve

setup() {
    common_setup
    need curl perl
}

teardown() {
    local status=0
    serve_end || status=$?
    destroy_all
    return $status
}

# keeper_of PID: the keeper that this daemon has.
keeper_of() {
    local child
    for child in $(cat "/proc/$1/task/"*/children); do
        [ "$(cat "/proc/$child/comm" 2>/dev/null)" != keeper ] || echo "$child"
    done
}

# holds PID FILE: the seed in this key file is in its memory, as bytes or as text.
holds() {
    perl -e '
        my ($pid, $file) = @ARGV;
        open my $k, "<", $file or die "key: $!"; my ($hex) = <$k> =~ /:([0-9a-f]{64})$/ or die "no key";
        my @forms = (pack("H*", $hex), $hex);
        open my $maps, "<", "/proc/$pid/maps" or exit 3; open my $mem, "<:raw", "/proc/$pid/mem" or exit 3;
        my $read = 0;
        while (<$maps>) {
            /^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ \S+ *(\S*)/ or next; next if $3 =~ /^\[v/;
            my ($at, $end) = (hex $1, hex $2); next if $end - $at > 1 << 32;
            my $tail = "";
            while ($at < $end) {
                my $n = $end - $at > 1 << 20 ? 1 << 20 : $end - $at;
                sysseek $mem, $at, 0 or last; my $got = sysread $mem, my $piece, $n; last unless $got;
                $read += $got; $at += $got; $piece = $tail . $piece;
                for (@forms) { exit 0 if index($piece, $_) >= 0 }
                $tail = substr $piece, -64;
            }
        }
        exit($read > 100000 ? 1 : 4)' "$1" "$2"
}

# programs_apart: all programs in a folder of this test, so that one can be taken away.
programs_apart() {
    local folder=$BATS_TEST_TMPDIR/programs name
    mkdir -m 0755 "$folder"
    for name in box daemon image keeper layers; do
        cp "$BRIG_BUILD/src/cmd/$name/$name" "$folder/"
    done
    cp "$BRIG_BUILD/src/cmd/cli/brig" "$folder/"
    BRIG=$folder/brig
    PROGRAMS=$folder
}

@test "the key is in the keeper's memory and not in the daemon's" {
    is_root || [ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" = 0 ] || skip "Yama lets nobody look into another process"
    serve
    TOKEN=$(token --tenant acme)
    post /v1/runs '{"command":["true"]}'
    [ "$http" = 200 ]
    output=$(curl -sS --unix-socket "$WORK/d.sock" http://brig/v1/runs -d '{"command":["true"]}')
    json_is .exit_code 0
    post /v1/receipts/verify ''
    json_is .ok true
    api /v1/receipts/head
    [ "$http" = 200 ]
    keeper=$(keeper_of "$DAEMON")
    for key in "$BRIG_HOME/receipts.key" "$BRIG_HOME/tenants/acme/receipts.key"; do
        run -1 holds "$DAEMON" "$key"
        if is_root; then
            run -0 holds "$keeper" "$key"
        else
            run -3 holds "$keeper" "$key" # its own user may not look
        fi
    done
    # The control: without a daemon, a program of ours that has this key for itself is seen to have it.
    serve_end
    "$BRIG" sandbox exec -- sleep 30 2>/dev/null >/dev/null &
    own=$!
    eventually 10 sh -c "'$BRIG' receipts list --limit 1 | grep -q intent"
    run holds "$own" "$BRIG_HOME/receipts.key"
    kill -TERM "$own"
    wait "$own" || true
    status_is 0
}

@test "the keeper is confined and ends with the daemon, however that ends" {
    serve
    keeper=$(keeper_of "$DAEMON")
    grep -q '^Seccomp:[[:space:]]2' "/proc/$keeper/status"
    grep -q '^NoNewPrivs:[[:space:]]1' "/proc/$keeper/status"
    grep -q '^CapEff:[[:space:]]0000000000000000' "/proc/$keeper/status"
    grep -q '^CapPrm:[[:space:]]0000000000000000' "/proc/$keeper/status"
    for thread in "/proc/$keeper/task/"*; do
        grep -q '^Seccomp:[[:space:]]2' "$thread/status"
    done
    [ "$(awk '/^Max core file size/ { print $5 $6 }' "/proc/$keeper/limits" 2>/dev/null)" = 00 ] || ! is_root
    kill -KILL "$DAEMON"
    wait "$DAEMON" || true
    eventually 2 gone "$keeper"
    serve
    keeper=$(keeper_of "$DAEMON")
    serve_end
    eventually 2 gone "$keeper"
}

@test "a keeper that is killed again and again costs no run and no receipt" {
    serve
    TOKEN=$(token)
    for i in 1 2 3 4; do
        # Five at least, and until there was somebody to kill three times.
        n=0
        while [ $((n += 1)) -le 5 ] || { [ ! -e enough ] && [ $n -le 500 ]; }; do
            post /v1/runs "{\"command\":[\"echo\",\"$i-$n\"]}"
            echo "$http $output" >"answer-$i-$n"
        done &
        clients+=" $!"
    done
    kills=0
    for ((looks = 0; looks < 600 && kills < 3; looks++)); do
        keeper=$(keeper_of "$DAEMON")
        [ -z "$keeper" ] || ! kill -KILL "$keeper" 2>/dev/null || kills=$((kills + 1))
        sleep 0.1
    done
    touch enough
    for client in $clients; do
        wait "$client"
    done
    [ "$kills" -ge 3 ]
    grep '"event":"keeper"' "$WORK/serve.err" | tail -n 1 | jq -e '.number > 1'
    for answer in answer-*; do
        output=$(cat "$answer")
        case $output in
        200*)
            output=${output#200 }
            json_is .stdout "${answer#answer-}"
            api "/v1/receipts/$(jq -r .receipt_id <<<"$output")"
            [ "$http" = 200 ]
            ;;
        503*)
            output=${output#503 }
            json_is .error.reason_code KEEPER_UNAVAILABLE
            ;;
        *)
            printf '%s: %s\n' "$answer" "$output" >&2
            return 1
            ;;
        esac
    done
    grep -l '^200' answer-* | wc -l | xargs test 10 -le
    serve_end
    run -0 brig receipts verify --json
    json_is .ok true
    brig sandbox list >/dev/null
    each_run_ended
}

@test "without a keeper nothing runs, and with the next one all goes on" {
    programs_apart
    serve
    TOKEN=$(token)
    post /v1/sandboxes '{"name":"stays"}'
    [ "$http" = 201 ]
    before=$(ledger 'SELECT count(*) FROM receipts')
    mv "$PROGRAMS/keeper" "$PROGRAMS/keeper.away"
    kill -KILL "$(keeper_of "$DAEMON")"
    for _ in 1 2 3; do
        post /v1/sandboxes/stays/exec '{"command":["touch","/sandbox/tmp/ran"]}'
        refused 503 keeper
        json_is .error.reason_code KEEPER_UNAVAILABLE
        says "no keeper of the signing keys can be started"
    done
    api /v1/receipts
    refused 503 keeper
    [ "$(curl -sS "http://127.0.0.1:$PORT/healthz")" = ok ]
    [ "$(ledger 'SELECT count(*) FROM receipts')" = "$before" ]
    mv "$PROGRAMS/keeper.away" "$PROGRAMS/keeper"
    again() {
        post /v1/sandboxes/stays/exec '{"command":["sh","-c","test ! -e /sandbox/tmp/ran && echo clean"]}'
        [ "$http" = 200 ]
    }
    eventually 5 again
    json_is .stdout clean
    post /v1/receipts/verify ''
    json_is .ok true
}

@test "a key file others can read is refused in the daemon, too" {
    serve
    TOKEN=$(token --tenant late)
    mkdir -p -m 0700 "$BRIG_HOME/tenants/late"
    "$BRIG" receipts list >/dev/null # a key of the same form
    install -m 0644 "$BRIG_HOME/receipts.key" "$BRIG_HOME/tenants/late/receipts.key"
    post /v1/runs '{"command":["true"]}'
    refused 500 integrity
    says "can be reached by others"
    rm "$BRIG_HOME/tenants/late/receipts.key"
    post /v1/runs '{"command":["true"]}'
    [ "$http" = 200 ]
    [ "$(stat -c %a "$BRIG_HOME/tenants/late/receipts.key")" = 600 ]
}
