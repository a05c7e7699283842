#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The command line beside a daemon: what it prints, and how it ends, does not depend on who did the
# work. Each verb is asked twice, once of the daemon and once here (BRIG_SOCKET=off), and compared.

load common
load sandbox
load kept
load serve

setup() {
    common_setup
    need jq
}

teardown() {
    local status=0
    serve_end || status=$?
    BRIG_SOCKET=off destroy_all
    return $status
}

# asked ROUTE…: the daemon was asked for exactly these since the last time. It says so behind its answer.
asked() {
    local wanted="$*" got
    asked_is_wanted() {
        got=$(tail -c +"${LOG_AT:-1}" "$WORK/serve.err" | sed -n 's/.*"route":"\([A-Za-z]*\)".*/\1/p' | xargs)
        [ "$got" = "$wanted" ]
    }
    eventually 2 asked_is_wanted || true
    LOG_AT=$(($(stat -c %s "$WORK/serve.err") + 1))
    [ "$got" = "$wanted" ] || {
        printf 'asked was: %s; should be: %s\n' "$got" "$wanted" >&2
        return 1
    }
}

# What differs between any two runs.
normal() {
    sed -E -e 's/r0[0-9a-z]{18}/RECEIPT/g' -e 's/"[a-z0-9]{20}"/"ID"/g' -e 's/\b[a-z][a-z0-9]{19}\b/ID/g' \
        -e 's/, [0-9]+\.[0-9]{3} s$/, TIME s/' -e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z/MOMENT/g' \
        -e 's/"(duration_ms|duration_us|cpu_us|peak_memory_bytes|memory_bytes|disk_bytes|disk_read_bytes|disk_written_bytes|lamport_clock|pid|processes)": [0-9]+/"\1": N/' \
        -e 's/[0-9]+ processes/N processes/'
}

# same ARGS…: standard input, output, error and status are the same both ways. stdin is $IN.
same() {
    local one=0 two=0
    timeout -k 5 $PATIENCE "$BRIG" "$@" <"${IN:-/dev/null}" >a.out 2>a.err || one=$?
    BRIG_SOCKET=off timeout -k 5 $PATIENCE "$BRIG" "$@" <"${IN:-/dev/null}" >b.out 2>b.err || two=$?
    [ "$one" -eq "$two" ] || {
        printf '%s: status %s by the daemon, %s here\n' "$*" "$one" "$two" >&2
        cat a.out a.err >&2
        return 1
    }
    status=$one
    diff <(normal <a.out) <(normal <b.out) >&2 && diff <(normal <a.err) <(normal <b.err) >&2
}

@test "a command of its own: streams, statuses, documents and refusals are the same" {
    serve
    same sandbox exec -- sh -c 'echo out; echo err >&2; exit 3'
    [ "$status" -eq 3 ]
    asked runSocket
    head -c 300000 /dev/urandom >random
    IN=random same sandbox exec --quiet -- cat
    cmp a.out random
    same sandbox exec --json -- sh -c 'printf "\377\001é"; echo err >&2; kill -9 $$'
    [ "$status" -eq 137 ]
    jq -e .stdout_b64 a.out
    same sandbox exec --json --timeout 1s -- sleep 20
    [ "$status" -eq 124 ]
    same sandbox exec -- no-such-command
    [ "$status" -eq 127 ]
    A=forwarded same sandbox exec --quiet --env A --env B=$'\377' --workdir /tmp -- sh -c 'pwd; printf "$A$B"'
    same sandbox exec --env NOT_SET_ANYWHERE -- true
    [ "$status" -eq 64 ]
    same sandbox exec --env 'bad name=1' -- true
    [ "$status" -eq 64 ]
    same sandbox exec --memory 1 --json -- true
    same sandbox exec --provider mock -- echo hi
    asked runSocket runSocket runSocket runSocket runSocket runSocket runSocket runSocket
    printf 'version: 1\ndefault: allow\ncommands:\n  - {name: no-ids, deny: [id, "**"]}\n' >deny.yaml
    printf 'nonsense: [\n' >broken.yaml
    same sandbox exec --policy deny.yaml -- id
    [ "$status" -eq 77 ]
    same sandbox exec --policy deny.yaml --json -- id
    same sandbox exec --policy broken.yaml -- id
    same sandbox exec --policy missing.yaml -- id
    mkdir there
    echo content >there/file
    same sandbox exec --quiet --mount there:/mnt/there -- cat /mnt/there/file
    [ "$(cat a.out)" = content ]
    same sandbox exec --mount missing:/mnt -- true
    same sandbox exec --workspace there:rw -- sh -c 'mkdir -p .git/hooks; echo x >.envrc; rm .envrc'
    same sandbox exec --json --memory 64M --pids 20 --cpu 0.5 --user 1234 --sockets none -- id -u
    ! is_root || jq -e '.stdout == "1234\n"' a.out
}

@test "sandboxes that stay: made, listed, shown, used, changed and ended the same way" {
    serve
    for how in daemon myself; do
        [ "$how" = daemon ] || export BRIG_SOCKET=off
        brig sandbox create --json --name "by-$how" --label a=1 --label a=2 --ttl 10m >made.$how
        brig sandbox create --name second --label b=1 >line.$how
        brig sandbox list --label a=2 >list.$how
        id=$(jq -r .sandbox_id made.$how)
        brig sandbox show "by-$how" >show.$how
        not brig sandbox show nobody 2>unknown.$how
        brig sandbox exec "by-$how" --env A=1 -- sh -c 'echo $A; cat; exit 7' >exec.$how 2>exec-err.$how <<<input || [ $? -eq 7 ]
        brig sandbox exec "by-$how" --json --timeout 500ms -- sleep 9 >time.$how </dev/null || [ $? -eq 124 ]
        brig sandbox pause "$id" --json >pause.$how
        not brig sandbox exec "$id" -- true 2>paused.$how </dev/null
        brig sandbox resume "$id" 2>resume.$how
        brig sandbox extend "$id" --ttl 20m 2>extend.$how
        not brig sandbox destroy nobody "$id" second 2>destroy.$how
        not brig sandbox exec "$id" -- true 2>gone.$how </dev/null
        brig sandbox list 2>none.$how
        unset BRIG_SOCKET
    done
    for what in made line list show unknown exec exec-err time pause paused resume extend destroy gone none; do
        diff <(normal <$what.daemon | sed 's/by-daemon/by-myself/') <(normal <$what.myself) >&2
    done
    asked createSandbox createSandbox listSandboxes getSandbox getSandbox execSocket execSocket pauseSandbox execSocket \
        resumeSandbox extendSandbox destroySandbox getSandbox destroySandbox destroySandbox execSocket listSandboxes
}

@test "files, processes and receipts are shown and changed the same way" {
    serve
    make --name box
    in_it -- sh -c 'mkdir -p d/e; echo x >d/f; ln -s f d/link; touch -d @0 d/old' </dev/null
    asked createSandbox execSocket
    for how in daemon myself; do
        [ "$how" = daemon ] || export BRIG_SOCKET=off
        brig sandbox files mkdir box d/new 2>&1
        brig sandbox files mkdir box d/a/b/c -r 2>&1
        brig sandbox files mv box d/new d/newer --json
        brig sandbox files rm box d/newer -r 2>&1
        brig sandbox files rm box d/a --json -r
        brig sandbox files ls box d
        brig sandbox files ls box d --json
        brig sandbox files stat box d/link
        brig sandbox files stat box d/old --json
        not brig sandbox files stat box d/missing 2>&1
        not brig sandbox files rm box d/e/missing --json
        not brig sandbox files ls nobody / 2>&1
        not brig sandbox files frobnicate box / 2>&1
        brig sandbox ps box | sed -E 's/ +[0-9]+ms +[0-9]+K / /'
        brig sandbox ps box --json
        not brig sandbox ps nobody 2>&1
        brig receipts show 1 | jq .kind
        not brig receipts show nothing 2>&1
        unset BRIG_SOCKET
    done >all
    n=$(($(wc -l <all) / 2))
    diff <(head -n $n all | normal) <(tail -n $n all | normal) >&2
    asked makeFolder makeFolder moveFile removeFile removeFile listFiles listFiles statFile statFile statFile getSandbox removeFile \
        getSandbox listFiles getSandbox listExecs listExecs listExecs getSandbox getReceipt getReceipt
    same receipts list
    same receipts list --limit 3 --json
    cmp a.out b.out
    brig receipts head | jq -e .seq
    asked listReceipts listReceipts getReceiptsHead
    # By another daemon also what is read here otherwise.
    export BRIG_SOCKET=$WORK/d.sock
    brig receipts export --output all.jsonl 2>said
    grep -q "brig: $(wc -l <all.jsonl) receipts" said
    brig sandbox files cat box d/f >f
    [ "$(cat f)" = x ]
    run -69 brig receipts verify
    asked exportReceipts readFile
    unset BRIG_SOCKET
    run -0 brig verify all.jsonl
}

@test "much output, from a home of another name, with folders of it" {
    serve
    "$BRIG" sandbox exec --quiet -- sh -c 'head -c 50000000 /dev/zero; head -c 3000000 /dev/urandom | base64 >&2' >out 2>err </dev/null
    [ "$(stat -c %s out)" -eq 50000000 ]
    [ "$(base64 -d <err | wc -c)" -eq 3000000 ]
    asked runSocket
    # Who does not read at all holds up neither the end nor the other stream.
    mkfifo stuck
    exec 8<>stuck
    status=0
    timeout -k 5 $PATIENCE "$BRIG" sandbox exec --quiet --timeout 8s -- sh -c 'yes & sleep 0.5; head -c 3000000 /dev/zero >&2; wait' \
        >stuck 2>err </dev/null 8>&- || status=$?
    [ "$status" -eq 124 ]
    [ "$(stat -c %s err)" -eq 3000000 ]
    exec 8>&-
    asked runSocket
    mkdir -p home/.ssh
    HOME=$WORK/home same sandbox exec --mount "$WORK/home/.ssh:/mnt" -- ls /mnt
    [ "$status" -eq 77 ]
    asked
}

@test "signals are the command's, the second one ends it, and those who read no more are told" {
    serve
    make
    asked createSandbox
    cat >trap.sh <<'END'
trap 'echo caught; exit 5' TERM
echo ready
while :; do sleep 0.1; done
END
    for how in one kept; do
        [ $how = one ] && set -- || set -- "$id"
        "$BRIG" sandbox exec "$@" --quiet -- sh -c "$(cat trap.sh)" >out.$how </dev/null &
        pid=$!
        eventually 10 grep -qs ready out.$how
        kill -TERM $pid
        status=0
        wait $pid || status=$?
        [ "$status" -eq 5 ]
        [ "$(tail -n 1 out.$how)" = caught ]
        receipt_is .reason_code CANCELLED
    done
    # It does not listen, and is asked a second time while a lot of input waits for it.
    yes | "$BRIG" sandbox exec "$id" --quiet --timeout 50s -- sh -c 'trap "" TERM; echo ready; while :; do sleep 0.1; done' >out 2>err &
    pid=$!
    eventually 10 grep -qs ready out
    brig_pid=$(pgrep -P $$ -f 'sandbox exec .* --timeout 50s' | tail -n 1)
    kill -TERM "$brig_pid"
    sleep 0.4
    kill -TERM "$brig_pid"
    status=0
    wait $pid || status=$?
    [ "$status" -eq 137 ]
    receipt_is .outcome.signal 9
    run bash -c '"$BRIG" sandbox exec "$0" --quiet --timeout 20s -- yes </dev/null | head -n 1' "$id"
    [ "$output" = y ]
    receipt_is .outcome.signal 13
    asked runSocket execSocket execSocket execSocket
}

@test "what waits for a person, the stop button, and a sandbox that is made again" {
    serve
    make --name box
    same sandbox recreate nobody
    [ "$status" -eq 66 ]
    same sandbox recreate box
    same sandbox recreate box --json
    asked createSandbox recreateSandbox getSandbox recreateSandbox getSandbox recreateSandbox
    printf 'version: 1\ndefault: allow\ncommands:\n  - ask: [touch, "**"]\n' >ask.yaml
    run -77 brig sandbox exec --policy ask.yaml -- touch /tmp/a
    approval=$(brig approvals list --json | jq -r '.approvals[0].approval_id')
    same approvals list
    grep -q touch a.out
    same approvals list --json --limit 1
    same approvals list --state used
    same approvals show "$approval"
    same approvals show nothing
    same approvals confirm nothing
    same approvals confirm "$approval" # nobody confirms what he asked for himself
    [ "$status" -eq 77 ]
    asked runSocket listApprovals listApprovals listApprovals listApprovals showApproval showApproval confirmApproval confirmApproval
    # The button is pressed here while there is a here; elsewhere, there.
    brig freeze --principal somebody --reason 'enough of it' >here
    export BRIG_SOCKET=$WORK/d.sock
    brig freeze --status >there.status
    brig unfreeze --principal somebody >there.undone
    brig freeze --principal somebody --reason 'enough of it' >there
    run ! brig unfreeze --principal nobody
    unset BRIG_SOCKET
    asked listFrozen unfreeze freeze unfreeze
    brig freeze --status >here.status
    brig unfreeze --principal somebody >here.undone
    for what in status undone; do
        diff <(normal <there.$what) <(normal <here.$what) >&2
    done
    diff <(normal <there) <(normal <here) >&2
}

last_reason_is() {
    "$BRIG" sandbox list >/dev/null 2>&1 # who comes next looks for what was left behind
    [ "$("$BRIG" receipts export 2>/dev/null | tail -n 1 | jq -r .reason_code)" = "$1" ]
}

@test "a command line that is killed leaves the same reason, with a daemon and without" {
    serve
    for how in daemon off; do
        export BRIG_SOCKET=$([ $how = off ] && echo off || echo)
        "$BRIG" sandbox exec --quiet -- sh -c 'echo ready; sleep 300' >out.$how </dev/null 2>/dev/null 3>&- &
        pid=$!
        eventually 10 grep -qs ready out.$how
        kill -KILL $pid
        wait $pid || true
        eventually 20 last_reason_is RUN_ABANDONED
    done
    unset BRIG_SOCKET
    # Somebody was there to see how it ended.
    [ "$("$BRIG" receipts export 2>/dev/null | jq -r 'select(.reason_code == "RUN_ABANDONED") | .outcome.signal != null' | paste -sd ' ')" = "true false" ]
    [ "$("$BRIG" receipts export 2>/dev/null | jq -r 'select(.reason_code == "CANCELLED") | .kind')" = "" ]
}

@test "a terminal is one, as large as ours" {
    serve
    need script
    for how in daemon off; do
        export BRIG_SOCKET=$([ $how = off ] && echo off || echo)
        script -qefc "stty rows 33 cols 77; '$BRIG' sandbox exec --quiet --tty -- sh -c 'test -t 0 && test -t 1 && stty size'" /dev/null </dev/null >out
        grep -q '33 77' out || {
            cat -v out >&2
            return 1
        }
    done
    unset BRIG_SOCKET
    asked runSocket
}

@test "a run that waits for a person says so to who looks at a terminal" {
    serve
    need script
    printf 'version: 1\ncommands:\n  - ask: [echo, "**"]\n' >ask.yaml
    echo 'correct horse battery' >pass
    chmod 600 pass
    BRIG_SOCKET=off brig approvals enroll anna --passphrase-file pass
    told() { [ -e seen ] && grep -q 'waits for a person: "brig approvals show' seen; }
    for how in daemon off; do
        export BRIG_SOCKET=$([ $how = off ] && echo off || echo)
        rm -f seen
        timeout -k 5 "$PATIENCE" script -qefc "'$BRIG' sandbox exec --policy ask.yaml --wait 10m -- echo late" seen </dev/null >/dev/null 3>&- &
        running=$!
        eventually 20 told
        approval=$(brig approvals list --json | jq -r '.approvals[] | select(.subject.command[1] == "late") | .approval_id')
        grep -q "brig: approval $approval waits for a person: \"brig approvals show $approval\"" seen
        brig approvals confirm "$approval" --as anna --passphrase-file pass
        await "$running"
        [ "$status" -eq 0 ]
        grep -q '^late' seen
        # Who wants to hear nothing, or a document, does not.
        for quiet in --quiet --json; do
            script -qec "'$BRIG' sandbox exec $quiet --policy ask.yaml --wait 300ms -- echo never; echo status \$?" quiet </dev/null >/dev/null
            grep -q 'status 77' quiet
            run ! grep -q 'waits for a person: "' quiet
        done
    done
    unset BRIG_SOCKET
    # Over the API it is an event, for whoever wants it.
    echo '{"command":["echo","event"],"approval_wait_ms":300,"sandbox":{"policy":"version: 1\ncommands: [{ask: [echo, \"**\"]}]\n"}}' >body
    for wanted in true false; do
        jq -c ".tell_waiting = $wanted" body >asked
        curl -sS -H "Authorization: Bearer $(token --scope run --scope policy)" -H 'Accept: application/x-ndjson' -d @asked \
            "http://127.0.0.1:$PORT/v1/runs" >events
        id=$(jq -r 'select(.event == "waiting") | .approval_id' events)
        if $wanted; then
            [ "$(brig approvals show "$id" --json | jq -r '.subject.command | join(" ")')" = "echo event" ]
        else
            [ -z "$id" ]
        fi
    done
}

@test "a pool is filled up behind what the daemon took out of it" {
    serve
    "$BRIG" pool fill --size 2 >/dev/null 2>&1
    brig sandbox exec --quiet -- true </dev/null
    asked runSocket
    eventually 10 bash -c '[ "$("$BRIG" pool list --json | jq ".pools[0].ready | length")" = 2 ]'
    brig pool drain >/dev/null 2>&1
}

@test "a daemon that is gone, somebody else's, or another build is not used" {
    serve
    kill -9 "$DAEMON"
    wait "$DAEMON" || true
    DAEMON=
    run -0 --separate-stderr brig sandbox exec --quiet -- echo here </dev/null
    [ "$output" = here ]
    serve
    LOG_AT=1
    # Another build is asked, says so, and the work is done here.
    cp -r "$(dirname "$BRIG")/.." programs
    perl -0pi -e 's/(\d+\.\d+\.\d+) ([0-9a-f]{7})/$1 fffffff/' programs/cli/brig
    cmp -s programs/cli/brig "$BRIG" && skip "the build has no commit in its name"
    run -0 --separate-stderr programs/cli/brig sandbox exec --quiet -- echo here </dev/null
    [ "$output" = here ]
    asked
    run -0 --separate-stderr brig sandbox exec --quiet -- echo there </dev/null
    asked runSocket
    chain_holds
}

@test "BRIG_SOCKET names a daemon; what cannot be done there says so, and its state is its own" {
    serve
    export BRIG_SOCKET=$WORK/d.sock
    mine=$BATS_TEST_TMPDIR/mine
    run -0 --separate-stderr env BRIG_HOME="$mine" "$BRIG" sandbox exec --quiet -- echo there </dev/null
    [ "$output" = there ]
    [ ! -e "$mine/receipts.db" ]
    asked runSocket
    run -69 brig sandbox sync x
    says '"brig sandbox sync" is not done through BRIG_SOCKET: it changes a folder of this machine'
    run -0 brig version
    BRIG_SOCKET=relative run -64 brig sandbox list
    says "BRIG_SOCKET is the absolute path"
    BRIG_SOCKET=$WORK/nobody run -69 brig sandbox list
    says "BRIG_SOCKET: no daemon can be reached"
    TOKEN=$(BRIG_SOCKET=off token --tenant acme --scope read --scope run)
    BRIG_TOKEN=$TOKEN run -0 --separate-stderr brig sandbox create --json
    json_is .state running
    id=$(jq -r .sandbox_id <<<"$output")
    BRIG_TOKEN=$TOKEN run -77 brig sandbox exec --mount /etc:/mnt -- true
    says 'the scope "host"'
    printf 'version: 1\ndefault: allow\n' >policy.yaml
    BRIG_TOKEN=$TOKEN run -77 brig sandbox exec --policy policy.yaml -- true
    says 'the scope "policy"'
    run -66 brig sandbox show "$id"
    BRIG_TOKEN=wrong run -77 brig sandbox list
    says "this token is not valid here"
    BRIG_TOKEN=$TOKEN run -0 brig sandbox destroy "$id"
    is_root || return 0
    # Somebody else's program in somebody else's folder.
    mkdir -m 0777 open
    chmod 0755 "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/.." "$WORK" || true
    setpriv --reuid=65534 --regid=65534 --clear-groups perl -MIO::Socket::UNIX -e \
        'my $s = IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 1) or exit 1; my $c = $s->accept' open/s >/dev/null 2>&1 3>&- &
    pid=$!
    eventually 5 test -S open/s
    BRIG_SOCKET=$WORK/open/s run -77 brig sandbox list
    says "user 65534 listens at"
    wait $pid
}

@test "a receipt that does not hold is shown, and said not to, whoever reads it" {
    need sqlite3
    serve
    brig sandbox exec --provider mock -- echo hello
    sqlite3 "$BRIG_HOME/receipts.db" "UPDATE receipts SET body = replace(body, 'APPROVED', 'DENIED') WHERE seq = 1"
    same receipts show 1
    status_is 76
    jq -e '.status == "DENIED"' a.out
    grep -q "entry 1 of the ledger does not hold" a.err
    same receipts show 1 --json
    status_is 76
    jq -e '.error.code == "integrity" and .error.details.receipt.seq == 1' a.out
    TOKEN=$(token --scope receipts)
    api /v1/receipts/1
    [ "$http" = 500 ]
    json_is .error.details.receipt.status DENIED
    api /v1/receipts/2
    [ "$http" = 200 ]
}
