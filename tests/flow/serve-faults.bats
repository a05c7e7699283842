#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What is taken away from a running daemon: descriptors, processes, room on the disk, the calendar, its life. Each time: typed
# errors, nothing run that is not recorded, health meanwhile, and all is well again without a restart when it comes back.

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

# pulse FILE: asks for its health on one connection until FILE.end is there; leaves in FILE how often, and the slowest in ms.
pulse() {
    perl -MIO::Socket::INET -MTime::HiRes=time,sleep -e '
        my ($port, $file) = @ARGV; my ($n, $slowest) = (0, 0);
        my $s = IO::Socket::INET->new("127.0.0.1:$port") or die "connect: $!"; $s->autoflush(1); $/ = undef;
        open my $on, ">", "$file.on"; close $on;
        until (-e "$file.end") {
            my $start = time; print $s "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
            my $got = ""; while ($got !~ /\r\n\r\nok/) { sysread $s, $got, 4096, length $got or die "gone: $got" }
            die $got if $got !~ m{^HTTP/1.1 200 }; my $ms = (time - $start) * 1000; $slowest = $ms if $ms > $slowest; $n++; sleep 0.02;
        }
        open my $out, ">", $file; printf $out "%d %.1f\n", $n, $slowest' "$PORT" "$1" >"$1.err" 2>&1 3>&- &
    PULSE=$!
    eventually 10 test -e "$1.on"
}

pulse_held() {
    touch "$1.end"
    wait "$PULSE" || {
        cat "$1.err" >&2
        return 1
    }
    read -r n slowest <"$1"
    echo "# health: $n answers, the slowest after $slowest ms" >&3
    [ "$n" -ge 3 ]
}

# crowd N BODY: so many runs at once; their answers are in the files answer-1…
crowd() {
    local i clients=
    rm -f answer-*
    for i in $(seq "$1"); do
        (
            http=000 output=
            post /v1/runs "$2" --max-time 600 2>/dev/null || true
            printf '%s %s\n' "$http" "$output" >"answer-$i"
        ) &
        clients+=" $!"
    done
    for i in $clients; do
        wait "$i"
    done
}

# each_is_typed: answers are results, or errors of a kind that says "not now"; or nobody was there.
each_is_typed() {
    local answer
    for answer in answer-*; do
        read -r http output <"$answer"
        case $http in
        200) json_is '.exit_code' 0 ;;
        429 | 503) jq -e '.error.code and .error.message' <<<"$output" >/dev/null ;;
        000) ;;
        *) false ;;
        esac || {
            printf '%s: %s %s\n' "$answer" "$http" "$output" >&2
            return 1
        }
    done
}

some_were() { # STATUS…
    local status
    for status; do
        ! grep -q "^$status" answer-* || return 0
    done
    sort answer-* | cut -c 1-200 | uniq -c >&2
    return 1
}

runs_again() {
    post /v1/runs '{"command":["echo","again"]}'
    [ "$http" = 200 ] && json_is .stdout again
}

# as_many_ran: so many results were answered as the ledger has ends of commands that ran. An intent is the only other thing
# there may be without a result: its client was told of an error.
ledger_agrees() {
    local answered recorded
    answered=$(cat answer-* | grep -c '^200') || true
    recorded=$(ledger "SELECT count(*) FROM receipts WHERE kind = 'outcome' AND body LIKE '%\"exit_code\":0%'")
    [ "$recorded" -ge "$answered" ] || {
        echo "answered $answered, recorded $recorded" >&2
        return 1
    }
    run -0 brig receipts verify --json
    json_is .ok true
}

@test "without descriptors it sheds load, without processes too, and takes it up again" {
    (
        ulimit -n 512
        run -69 brig serve --listen 127.0.0.1:0
        says "at most 512 files may be open"
    )
    serve
    TOKEN=$(token)
    if ! is_root; then
        # Nobody can be started: not even the thread that would do it.
        prlimit --pid "$DAEMON" --nproc=1:
        post /v1/runs '{"command":["true"]}'
        [ "$http" = 429 ] || [ "$http" = 503 ]
        [ "$(curl -sS "http://127.0.0.1:$PORT/healthz")" = ok ]
        prlimit --pid "$DAEMON" --nproc="$(ulimit -Hu)":
    fi
    runs_again
    before=$(prlimit --pid "$DAEMON" --nofile --noheadings -o SOFT | tr -d ' ')
    pulse health
    prlimit --pid "$DAEMON" --nofile="$(($(ls "/proc/$DAEMON/fd" | wc -l) + 14)):"
    crowd 24 '{"command":["sleep","2"]}' # long enough to meet, however slowly they come
    each_is_typed
    some_were 429 503 000
    prlimit --pid "$DAEMON" --nofile="$before:"
    pulse_held health
    runs_again
    crowd 12 '{"command":["true"]}'
    each_is_typed
    [ "$(cat answer-* | grep -c '^200')" -eq 12 ]
    ledger_agrees
    brig sandbox list >/dev/null
    each_run_ended
}

@test "with a full disk nothing runs, and with room it goes on" {
    if is_root; then
        mkdir -p "$BRIG_HOME"
        export WORK
        unshare --mount --propagation private bash -c '
            mount -t tmpfs -o size=6m,mode=0700 none "$BRIG_HOME"
            exec "$BRIG" serve --listen 127.0.0.1:0 --socket "$WORK/d.sock"' >"$WORK/serve.out" 2>"$WORK/serve.err" </dev/null 3>&- &
        DAEMON=$!
        eventually 10 grep -q 'listening on unix:' "$WORK/serve.out"
        PORT=$(sed -n 's/.*listening on http:.*:\([0-9]*\)$/\1/p' "$WORK/serve.out")
        inside() {
            nsenter --target "$DAEMON" --mount -- "$@"
        }
        TOKEN=$(inside "$BRIG" token create 2>/dev/null)
        fill() {
            inside sh -c 'cat /dev/zero >"$BRIG_HOME/filler" 2>/dev/null' || true
        }
        empty() {
            inside rm "$BRIG_HOME/filler"
        }
    else
        serve
        inside() {
            "$@"
        }
        TOKEN=$(token)
        fill() {
            prlimit --pid "$DAEMON" --fsize=4096:
        }
        empty() {
            prlimit --pid "$DAEMON" --fsize=unlimited:
        }
    fi
    runs_again
    post /v1/sandboxes '{"name":"stays"}'
    [ "$http" = 201 ]
    entries=$(inside "$BRIG" receipts verify --json | jq .entries)
    fill
    pulse health
    for _ in 1 2 3; do
        post /v1/sandboxes/stays/exec '{"command":["touch","/sandbox/tmp/ran"]}'
        if is_root; then
            refused 507 storage
            json_is .error.reason_code NO_SPACE
        else # a file that may not grow is a fault of another kind
            [ "$http" = 500 ]
            jq -e .error.code <<<"$output"
        fi
    done
    pulse_held health
    empty
    if is_root; then # who has begun may end: there is room set aside for that
        (
            post /v1/runs '{"command":["sleep","5"]}'
            printf '%s %s\n' "$http" "$output" >during
        ) &
        client=$!
        eventually 10 sh -c "[ \"\$(nsenter --target $DAEMON --mount -- '$BRIG' receipts list --limit 1 | grep -c intent)\" = 1 ]"
        fill
        wait "$client"
        grep -q '^200' during
        empty
        entries=$((entries + 2))
    fi
    [ "$(inside "$BRIG" receipts verify --json | jq .entries)" = "$entries" ]
    eventually 5 runs_again
    post /v1/sandboxes/stays/exec '{"command":["sh","-c","test ! -e /sandbox/tmp/ran && echo clean"]}'
    json_is .stdout clean
    api -X DELETE /v1/sandboxes/stays
    [ "$http" = 200 ]
    post /v1/receipts/verify ''
    json_is .ok true
    json_is .open_runs 0
}

@test "a calendar that jumps moves no deadline and breaks no chain" {
    local preload=$BRIG_BUILD/tests/flow/faults/clock.so
    [ -e "$preload" ] || skip "$preload was not built"
    export BRIG_CLOCK_OFFSET=$WORK/offset
    echo 0 >offset
    LD_PRELOAD=$preload ASAN_OPTIONS=verify_asan_link_order=0 serve
    TOKEN=$(token)
    runs_again
    (
        post /v1/runs '{"command":["sh","-c","sleep 1; echo slept"]}'
        printf '%s %s\n' "$http" "$output" >across
    ) &
    client=$!
    post /v1/sandboxes '{"name":"stays","ttl_ms":600000}'
    [ "$http" = 201 ]
    echo 400000000 >offset # a dozen years
    runs_again
    echo -400000000 >offset
    runs_again
    wait "$client"
    [ "$(cut -c 1-3 across)" = 200 ]
    [ "$(sed 's/^200 //' across | jq -r .stdout)" = slept ]
    post /v1/runs '{"command":["sleep","30"],"sandbox":{"limits":{"wall_ms":300}}}'
    json_is .reason_code LIMIT_TIME
    api /v1/sandboxes/stays
    json_is .state running
    years=$(ledger 'SELECT body FROM receipts' | jq -r '.timestamp[0:4]' | sort -u | wc -l)
    [ "$years" -ge 3 ] # the control: it has seen the jumps
    [ "$(ledger 'SELECT body FROM receipts ORDER BY seq' | jq -r .lamport_clock | sort -nc && echo rising)" = rising ]
    echo 0 >offset
    post /v1/receipts/verify ''
    json_is .ok true
}

@test "killed in the middle of everything it leaves nobody behind, and the next one tells what was" {
    serve
    TOKEN=$(token)
    post /v1/sandboxes '{"name":"stays"}'
    [ "$http" = 201 ]
    post /v1/sandboxes/stays/exec '{"command":["sh","-c","echo one; while :; do sleep 0.05; done"],"detach":true}'
    exec=$(jq -r .exec_id <<<"$output")
    stays=$("$BRIG" sandbox show stays | jq .pid)
    # Far longer than a busy machine takes to come to their end.
    crowd 6 '{"command":["sleep","600"],"sandbox":{"limits":{"wall_ms":600000}}}' &
    clients=$!
    eventually 20 six_sleep
    mapfile -t ours < <(family "$DAEMON" | grep -vxF "$(outer_of "$stays"; family "$(outer_of "$stays")")")
    [ "${#ours[@]}" -ge 6 ]
    kill -KILL "$DAEMON"
    wait "$DAEMON" || true
    eventually 2 gone "${ours[@]}"
    wait "$clients"
    serve
    runs_again
    api /v1/sandboxes/stays
    json_is .state running
    api "/v1/sandboxes/stays/execs/$exec"
    json_is .state running
    eventually 10 each_run_ended_but "$exec"
    [ "$(ledger "SELECT count(*) FROM receipts WHERE body LIKE '%RUN_ABANDONED%'")" -eq 6 ] || {
        ledger "SELECT seq, kind, run_id, json_extract(body, '\$.action'), json_extract(body, '\$.reason_code') FROM receipts" >&2
        return 1
    }
    post "/v1/sandboxes/stays/execs/$exec/signal" '{"signal":9}'
    [ "$http" = 200 ]
    # Once more, but asked to: the sandbox and what runs in it go on, as documented.
    post /v1/sandboxes/stays/exec '{"command":["sh","-c","echo two; while :; do sleep 0.05; done"],"detach":true}'
    exec=$(jq -r .exec_id <<<"$output")
    serve_end
    serve
    api "/v1/sandboxes/stays/execs/$exec"
    json_is .state running
    api -X DELETE /v1/sandboxes/stays
    [ "$http" = 200 ]
    serve_end
    run -0 brig receipts verify --json
    json_is .ok true
    json_is .open_runs 0
    no_sandbox_left
}

# family PID: all descendants, whichever thread has started them.
family() {
    local child
    for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do
        echo "$child"
        family "$child"
    done
}

six_sleep() {
    [ "$(for child in $(family "$DAEMON"); do tr '\0' ' ' <"/proc/$child/cmdline"; echo; done 2>/dev/null | grep -c '^sleep 600')" -eq 6 ]
}

# each_run_ended_but RUN: as each_run_ended.
each_run_ended_but() {
    [ -z "$(ledger "SELECT body FROM receipts r WHERE kind = 'intent' AND NOT EXISTS
        (SELECT 1 FROM receipts e WHERE e.run_id = r.run_id AND e.seq > r.seq)" | grep -vF "$1")" ]
}
