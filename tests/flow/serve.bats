#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig serve: who gets in, what it answers, and that it ends.

load common
load sandbox
load kept
load serve

setup() {
    common_setup
    need curl
}

teardown() {
    local status=0
    serve_end || status=$?
    destroy_all
    return $status
}

# ---- its life ----

@test "it says where it listens, answers, and ends when told to" {
    serve
    [ "$(curl -sS "http://127.0.0.1:$PORT/healthz")" = ok ]
    serve_end
    [ ! -e "$WORK/d.sock" ]
}

@test "one daemon per state directory; killed, it leaves room for the next" {
    serve
    run -75 brig serve --listen 127.0.0.1:0
    says "another daemon serves"
    kill -KILL "$DAEMON"
    wait "$DAEMON" || true
    serve
    [ "$(curl -sS "http://127.0.0.1:$PORT/healthz")" = ok ]
}

@test "sockets it is given are the ones it uses" {
    need perl
    "$BRIG" token create >words 2>/dev/null
    perl -MSocket -MPOSIX -e '
        socket(my $s, AF_INET, SOCK_STREAM, 0) or die; bind($s, pack_sockaddr_in(0, inet_aton("127.0.0.1"))) or die; listen($s, 8) or die;
        my ($port) = unpack_sockaddr_in(getsockname $s); open my $f, ">", "port" or die; print $f $port; close $f;
        POSIX::dup2(fileno $s, 3); fcntl(STDIN, 0, 0); $^F = 10;
        open my $three, "<&=", 3; fcntl($three, 2, 0);
        $ENV{LISTEN_PID} = $$; $ENV{LISTEN_FDS} = 1; exec $ENV{BRIG}, "serve"' >"$WORK/serve.out" 2>"$WORK/serve.err" </dev/null 3>&- &
    DAEMON=$!
    eventually 10 grep -q 'sockets it was given' "$WORK/serve.out"
    [ "$(curl -sS "http://127.0.0.1:$(cat port)/healthz")" = ok ]
}

@test "what runs when it is told to stop may end; kept sandboxes outlive it" {
    serve
    TOKEN=$(token)
    post /v1/sandboxes '{"name":"stays"}'
    [ "$http" = 201 ]
    (post /v1/sandboxes/stays/exec '{"command":["sh","-c","touch /sandbox/tmp/on; sleep 1; echo done"]}'; echo "$http $output" >late) &
    late=$!
    eventually 10 "$BRIG" sandbox exec stays --quiet -- test -e /sandbox/tmp/on 2>said || {
        tail -n 1 said
        return 1
    }
    serve_end
    wait "$late"
    grep -q '^200' late
    [ "$(sed 's/^200 //' late | jq -r .stdout)" = done ]
    [ "$("$BRIG" sandbox exec stays --quiet -- echo here)" = here ]
    serve
    api /v1/sandboxes/stays
    json_is .state running
}

@test "what does not end within the grace is cancelled, and recorded" {
    serve --grace 200ms
    TOKEN=$(token)
    (post /v1/runs '{"command":["sleep","60"]}') 2>/dev/null &
    client=$!
    eventually 10 sh -c "'$BRIG' receipts list --limit 1 | grep -q intent"
    serve_end
    wait "$client" || true
    "$BRIG" receipts list --limit 1 | grep -q CANCELLED
    run -0 brig receipts verify --json
    json_is .open_runs 0
}

# ---- lists ----

@test "sandboxes are listed by id, page by page" {
    serve
    TOKEN=$(token)
    for name in one two three; do
        post /v1/sandboxes "{\"name\":\"$name\"}"
        [ "$http" = 201 ]
    done
    api '/v1/sandboxes?limit=2'
    json_is '.sandboxes | length' 2
    first=$(jq -r '.sandboxes[].sandbox_id' <<<"$output")
    next=$(jq -r .next_after <<<"$output")
    [ "$next" = "$(tail -n 1 <<<"$first")" ]
    api "/v1/sandboxes?limit=2&after=$next"
    json_is '.sandboxes | length' 1
    json_is .next_after null
    all=$(printf '%s\n' "$first" "$(jq -r '.sandboxes[0].sandbox_id' <<<"$output")")
    [ "$all" = "$(sort <<<"$all")" ]
    [ "$(brig sandbox list --json | jq -r '.sandboxes[].sandbox_id')" = "$all" ]
    [ "$(BRIG_SOCKET=off brig sandbox list --json | jq -r '.sandboxes[].sandbox_id')" = "$all" ]
    api '/v1/sandboxes?limit=1001'
    refused 400 invalid
}

@test "the command line asks for every page" {
    need node
    node -e '
        const page = (id, next) => JSON.stringify({ sandboxes: [{ sandbox_id: id, name: id, state: "running", labels: [] }], ...(next && { next_after: next }) });
        require("http").createServer((request, answer) => {
            answer.setHeader("content-type", "application/json");
            answer.end({ "/v1/sandboxes": page("a", "a"), "/v1/sandboxes?after=a": page("b", "b"), "/v1/sandboxes?after=b": page("c", process.argv[2]) }[request.url]);
        }).listen(process.argv[1])' "$WORK/pages.sock" "" </dev/null 3>&- &
    pages=$!
    eventually 10 test -S "$WORK/pages.sock"
    run -0 env BRIG_SOCKET="$WORK/pages.sock" "$BRIG" sandbox list --json
    kill "$pages"
    json_is '[.sandboxes[].sandbox_id] | join(" ")' 'a b c'
}

# ---- who gets in ----

@test "nothing but the health check answers without a token" {
    serve
    for path in /version /v1/sandboxes /v1/receipts /metrics /v1/openapi.json /nowhere; do
        TOKEN=wrong api "$path"
        refused 401 forbidden
    done
    run curl -sS -o /dev/null -w '%{http_code}' "http://127.0.0.1:$PORT/healthz"
    [ "$output" = 200 ]
}

@test "a revoked token is refused from the next request on" {
    serve
    TOKEN=$(token)
    api /v1/whoami
    [ "$http" = 200 ]
    id=${TOKEN#brig_}
    brig token revoke "${id%%_*}"
    api /v1/whoami
    refused 401 forbidden
}

@test "a token does what its scopes say and nothing else" {
    serve
    TOKEN=$(token --scope read)
    api /v1/sandboxes
    [ "$http" = 200 ]
    post /v1/sandboxes '{}'
    refused 403 forbidden
    [[ $output == *'scope \"run\"'* ]]
    api /v1/receipts
    refused 403 forbidden
    api /metrics
    refused 403 forbidden
    TOKEN=$(token --scope run)
    post /v1/runs '{"command":["true"],"sandbox":{"mounts":["/tmp:/workspace"]}}'
    refused 403 forbidden
    [[ $output == *'scope \"host\"'* ]]
}

@test "the owner needs no token on the unix socket" {
    serve
    output=$(curl -sS --unix-socket "$WORK/d.sock" http://brig/v1/whoami)
    json_is .principal "uid:$(id -u)"
    json_is .tenant default
}

@test "names that are not ours and pages of other sites are refused" {
    serve
    TOKEN=$(token)
    api -H 'Host: evil.example' /v1/whoami
    refused 403 forbidden
    api -H 'Origin: https://evil.example' /v1/whoami
    refused 403 forbidden
    api -H 'Origin: http://localhost:3000' /v1/whoami
    [ "$http" = 200 ]
    api -H "Host: localhost:$PORT" /v1/whoami
    [ "$http" = 200 ]
    serve_end
    serve --host box.example
    api -H 'Host: box.example' /v1/whoami
    [ "$http" = 200 ]
}

@test "a tenant sees nothing of another one" {
    serve
    mine=$(token --tenant mine)
    other=$(token --tenant other)
    TOKEN=$mine
    post /v1/sandboxes '{"name":"secret"}'
    [ "$http" = 201 ]
    id=$(jq -r .sandbox_id <<<"$output")
    receipt=$(jq -r .receipt_id <<<"$output")
    TOKEN=$other
    api /v1/sandboxes
    json_is '.sandboxes | length' 0
    for name in "$id" secret; do
        api "/v1/sandboxes/$name"
        refused 404 not_found
        theirs=$output
        api "/v1/sandboxes/${name//[a-z0-9]/x}"
        [ "${theirs//$name/NAME}" = "${output//${name//[a-z0-9]/x}/NAME}" ]
        post "/v1/sandboxes/$name/exec" '{"command":["true"]}'
        refused 404 not_found
        api -X DELETE "/v1/sandboxes/$name"
        refused 404 not_found
    done
    api "/v1/receipts/$receipt"
    refused 404 not_found
    api /v1/receipts
    run ! grep -q "$id" <<<"$output"
    TOKEN=$mine
    api -X DELETE /v1/sandboxes/secret
    [ "$http" = 200 ]
}

# ---- what it does ----

@test "a sandbox is made, used, held, extended and ended, each with a receipt" {
    serve
    TOKEN=$(token)
    post /v1/sandboxes '{"name":"one","labels":{"team":"a"},"ttl_ms":600000,"limits":{"pids":50}}'
    [ "$http" = 201 ]
    json_is .state running
    json_is '.labels[0]' team=a
    post /v1/sandboxes/one/exec '{"command":["sh","-c","cat; echo $WHO >&2; exit 7"],"stdin":"in","env":{"WHO":"me"}}'
    [ "$http" = 200 ]
    json_is .exit_code 7
    json_is .stdout in
    json_is .stderr me
    api "/v1/receipts/$(jq -r .receipt_id <<<"$output")"
    json_is .outcome.exit_code 7
    json_is .principal "token:$(cut -d_ -f2 <<<"$TOKEN")"
    for verb in pause resume extend; do
        post "/v1/sandboxes/one/$verb" ''
        [ "$http" = 200 ]
        json_is .action "$verb"
    done
    api -X DELETE /v1/sandboxes/one
    json_is .done true
    post /v1/receipts/verify ''
    json_is .ok true
}

@test "bytes that are no text travel as base64, both ways" {
    serve
    TOKEN=$(token)
    post /v1/runs '{"command":["cat"],"stdin_b64":"/wD+"}'
    json_is .stdout_b64 /wD+
    post /v1/runs '{"command":["cat"],"stdin_b64":"not base64"}'
    refused 400 invalid
    says "/stdin_b64"
}

@test "a command is streamed as it speaks, in lines or events" {
    serve
    TOKEN=$(token)
    post /v1/runs '{"command":["sh","-c","echo one; echo two >&2; exit 3"]}' -N -H 'Accept: application/x-ndjson'
    [ "$(sed -n 1p <<<"$output" | jq -r .event)" = start ]
    [ "$(jq -r 'select(.event == "stdout") | .data' <<<"$output")" = one ]
    [ "$(jq -r 'select(.event == "stderr") | .data' <<<"$output")" = two ]
    [ "$(jq -c 'select(.event == "exit")' <<<"$output" | jq -r '.event + " " + (.exit_code | tostring) + " " + .id')" = "exit 3 4.4" ]
    post /v1/runs '{"command":["echo","hello"]}' -N -H 'Accept: text/event-stream'
    grep -q '^event: stdout' <<<"$output"
    grep -q '^id: 6.0' <<<"$output"
    grep '^data: {' <<<"$output" | tail -n 1 | sed 's/^data: //' | jq -e '.exit_code == 0'
}

@test "characters that are cut between two reads arrive whole" {
    serve
    TOKEN=$(token)
    post /v1/runs '{"command":["perl","-e","$| = 1; for (1..20) { for my $c (0xe2, 0x82, 0xac) { syswrite STDOUT, chr $c; select undef, undef, undef, 0.002 } }"]}' \
        -N -H 'Accept: application/x-ndjson'
    [ "$(jq -j 'select(.event == "stdout") | .data' <<<"$output")" = "$(printf '€%.0s' {1..20})" ]
}

@test "ten megabytes arrive complete" {
    serve
    TOKEN=$(token)
    curl -sSN -H "Authorization: Bearer $TOKEN" -H 'Accept: application/x-ndjson' "http://127.0.0.1:$PORT/v1/runs" \
        -d '{"command":["perl","-e","for (1..160000) { printf STDOUT \"%063d\\n\", $_ }"]}' >lines
    jq -j 'select(.event == "stdout") | .data' lines >got
    [ "$(wc -c <got)" -eq 10240000 ]
    [ "$(tail -n 1 got)" = "$(printf %063d 160000)" ]
    tail -n 1 lines | jq -e '.exit_code == 0 and .stdout_bytes == 10240000'
}

@test "whoever leaves ends the command" {
    serve
    TOKEN=$(token)
    post /v1/sandboxes '{"name":"left"}'
    curl -sSN -H "Authorization: Bearer $TOKEN" -H 'Accept: application/x-ndjson' "http://127.0.0.1:$PORT/v1/sandboxes/left/exec" \
        -d '{"command":["sh","-c","echo ready; sleep 300"]}' >out 2>/dev/null &
    client=$!
    eventually 10 grep -q ready out
    kill -KILL "$client"
    wait "$client" || true
    eventually 10 sh -c "[ \"\$('$BRIG' sandbox show left | jq .processes)\" = 1 ]"
    eventually 10 sh -c "'$BRIG' receipts list --limit 1 | grep -q RUN_ABANDONED"
}

@test "a denial is 403 with the reason and its receipt" {
    cat >p.yaml <<'Y'
version: 1
default: allow
commands:
  - {name: no-rm, deny: [rm, "**"]}
Y
    "$BRIG" policy check p.yaml
    serve --policy p.yaml
    TOKEN=$(token)
    post /v1/runs '{"command":["rm","x"]}'
    refused 403 forbidden
    json_is .error.reason_code POLICY_DENY
    api "/v1/receipts/$(jq -r .error.details.receipt_id <<<"$output")"
    json_is .verdict DENY
    json_is .rule no-rm
}

@test "bad bodies cost their sender an error that names the place" {
    serve
    TOKEN=$(token)
    while IFS='|' read -r body says; do
        post /v1/runs "$body"
        refused 400 invalid
        [[ $output == *"$says"* ]] || {
            echo "$body: $output" >&2
            return 1
        }
    done <<'T'
{"command":|line 1
[]|the body must be an object
{}|/command is missing
{"command":"ls"}|/command must be an array of texts
{"command":["a\u0000b"]}|without NUL
{"command":["ls"],"colour":1}|/colour is not known here
{"command":["ls"],"sandbox":{"limits":{"pids":0}}}|/sandbox/limits/pids must be a whole number
{"command":["ls"],"command":["rm"]}|duplicate key
T
    api '/v1/receipts?limit=0'
    refused 400 invalid
    api '/v1/receipts?limit=1&limit=2'
    refused 400 invalid
    api '/v1/sandboxes?x=1'
    refused 400 invalid
    printf '{"command":["echo","zipped"]}' | gzip >z
    post /v1/runs @z -H 'Content-Encoding: gzip'
    json_is .stdout zipped
    post /v1/runs @z -H 'Content-Encoding: br'
    refused 400 invalid
}

@test "what is not there is 404, what is there otherwise is 405" {
    serve
    TOKEN=$(token)
    api /v1/nothing
    refused 404 not_found
    api -X PUT /v1/sandboxes
    refused 405 not_found
}

@test "a token has its share of requests" {
    serve
    TOKEN=$(token --rate 2)
    for _ in 1 2 3 4; do
        api /v1/whoami
        [ "$http" = 200 ]
    done
    # All over one connection: a busy machine makes these faster than two a second, too.
    curl -sS --max-time 60 -H "Authorization: Bearer $TOKEN" -o /dev/null -w '%{http_code}\n' "http://127.0.0.1:$PORT/v1/whoami#[1-200]" >codes
    grep -qx 429 codes
    TOKEN=$(token)
    api /v1/whoami
    [ "$http" = 200 ]
}

@test "tokens are made over the API by those who may, without more than they have" {
    serve
    TOKEN=$(token --tenant acme --scope admin --scope run)
    post /v1/tokens '{"scopes":["run"],"principal":"ci"}'
    [ "$http" = 201 ]
    json_is .tenant acme
    made=$(jq -r .token <<<"$output")
    id=$(jq -r .token_id <<<"$output")
    post /v1/tokens '{"scopes":["receipts"]}'
    refused 403 forbidden
    post /v1/tokens '{"scopes":["run"],"tenant":"default"}'
    refused 403 forbidden
    api /v1/tokens
    json_is '[.tokens[].tenant] | unique | join(",")' acme
    run ! grep -qF "${made##*_}" <<<"$output"
    api -X DELETE "/v1/tokens/$id"
    [ "$http" = 200 ]
    TOKEN=$made post /v1/runs '{"command":["true"]}'
    refused 401 forbidden
}

@test "what is sent again under its key happens once" {
    serve
    TOKEN=$(token)
    post /v1/sandboxes '{"name":"once"}' -H 'Idempotency-Key: k1'
    [ "$http" = 201 ]
    first=$output
    post /v1/sandboxes '{"name":"once"}' -H 'Idempotency-Key: k1'
    [ "$http" = 201 ]
    [ "$output" = "$first" ]
    post /v1/sandboxes '{"name":"other"}' -H 'Idempotency-Key: k1'
    refused 409 conflict
    api /v1/sandboxes
    json_is '.sandboxes | length' 1
    TOKEN=$(token --tenant else)
    post /v1/runs '{"command":["echo","mine"]}' -H 'Idempotency-Key: k1'
    json_is .stdout mine
    post /v1/runs '{"command":[]}' -H 'Idempotency-Key: k2'
    refused 400 invalid
    post /v1/runs '{"command":["true"]}' -H 'Idempotency-Key: k2'
    [ "$http" = 200 ]
}

@test "a key outlives the daemon, and an end that nobody saw is not guessed" {
    serve
    TOKEN=$(token)
    post /v1/runs '{"command":["echo","first"]}' -H 'Idempotency-Key: a'
    first=$output
    (post /v1/runs '{"command":["sleep","20"]}' -H 'Idempotency-Key: b') 2>/dev/null &
    client=$!
    eventually 10 sh -c "'$BRIG' receipts list --limit 1 | grep -q intent"
    post /v1/runs '{"command":["sleep","20"]}' -H 'Idempotency-Key: b'
    refused 409 conflict
    says "under way"
    kill -KILL "$DAEMON"
    wait "$DAEMON" "$client" || true
    serve
    post /v1/runs '{"command":["echo","first"]}' -H 'Idempotency-Key: a'
    [ "$output" = "$first" ]
    post /v1/runs '{"command":["sleep","20"]}' -H 'Idempotency-Key: b'
    refused 409 conflict
    says "in the receipts"
}

@test "a detached command is followed from where the client was, and signalled" {
    serve
    TOKEN=$(token)
    post /v1/sandboxes '{"name":"far"}'
    post /v1/sandboxes/far/exec '{"command":["sh","-c","trap \"echo told; exit 5\" TERM; echo one; echo two; while :; do sleep 0.05; done"],"detach":true}'
    [ "$http" = 202 ]
    exec=$(jq -r .exec_id <<<"$output")
    (api -N "/v1/sandboxes/far/execs/$exec/stream"; echo "$output" >all) &
    first=$!
    (api -N -H 'Last-Event-ID: 4.0' -H 'Accept: text/event-stream' "/v1/sandboxes/far/execs/$exec/stream"; echo "$output" >rest) &
    second=$!
    eventually 10 sh -c "'$BRIG' sandbox logs far '$exec' | grep -q two"
    post "/v1/sandboxes/far/execs/$exec/signal" '{"signal":15}'
    [ "$http" = 200 ]
    wait "$first" "$second"
    [ "$(jq -j 'select(.event == "stdout") | .data' all)" = "$(printf 'one\ntwo\ntold')" ]
    [ "$(jq -r 'select(.event == "exit") | .exit_code' all)" = 5 ]
    [ "$(sed -n 's/^data: //p' rest | jq -j 'select(.event == "stdout") | .data')" = "$(printf 'two\ntold')" ]
    api "/v1/sandboxes/far/execs/$exec"
    json_is .state ended
    json_is .exit_code 5
    api /v1/sandboxes/far/execs
    json_is '.execs | length' 1
    post "/v1/sandboxes/far/execs/$exec/signal" '{"signal":15}'
    refused 409 conflict
    api /v1/sandboxes/far/execs/aaaaaaaaaaaaaaaaaaaa
    refused 404 not_found
}

@test "the end of a sandbox is recorded without anybody asking, of every tenant" {
    serve
    for tenant in default other; do
        TOKEN=$(token --tenant $tenant)
        post /v1/sandboxes '{"ttl_ms":3000}' # it has to be there when it is answered
        [ "$http" = 201 ]
    done
    eventually 20 sh -c "sqlite3 '$BRIG_HOME/receipts.db' 'SELECT body FROM receipts' | grep -q SANDBOX_EXPIRED"
    eventually 20 sh -c "sqlite3 '$BRIG_HOME/tenants/other/receipts.db' 'SELECT body FROM receipts' | grep -q SANDBOX_EXPIRED"
}

# socket FIRST [EVENT:TEXT MESSAGE]…: see socket-client.cjs.
socket() {
    timeout 60 node "$BRIG_ROOT/tests/flow/socket-client.cjs" "$PORT" "$TOKEN" /v1/sandboxes/s/exec "$@"
}

@test "a WebSocket carries input, signals and a terminal" {
    need node
    serve
    TOKEN=$(token)
    post /v1/sandboxes '{"name":"s"}'
    socket '{"command":["sh","-c","read a; read b; echo got $a $b; cat"]}' \
        start: $'=one\n' start: '{"type":"stdin","data":"two\nrest"}' start: '{"type":"stdin_end"}' >out
    grep -q '^HTTP/1.1 101' out
    [ "$(grep '^{' out | jq -j 'select(.event == "stdout") | .data')" = "$(printf 'got one two\nrest')" ]
    [ "$(grep '^{' out | jq -r 'select(.event == "exit") | .exit_code')" = 0 ]
    grep -q '^closed 1000' out
    socket '{"command":["sh","-c","trap \"exit 9\" INT; echo ready; while :; do sleep 0.05; done"]}' \
        stdout:ready '{"type":"signal","signal":2}' >out
    [ "$(grep '^{' out | jq -r 'select(.event == "exit") | .exit_code')" = 9 ]
    [ "$(grep '^{' out | jq -r 'select(.event == "exit") | .reason_code')" = POLICY_DEFAULT_ALLOW ]
    socket '{"command":["sh","-c","trap \"stty size; exit 0\" WINCH; tty; while :; do sleep 0.05; done"],"tty":true}' \
        stdout:/dev/pts '{"type":"resize","rows":33,"cols":77}' >out
    grep '^{' out | jq -j 'select(.event == "stdout") | .data' | grep -q '33 77'
}

@test "a WebSocket that says what cannot be said is closed with the reason" {
    need node
    serve
    TOKEN=$(token)
    post /v1/sandboxes '{"name":"s"}'
    socket '{"command":"ls"}' >out
    grep -q '^closed 1008 /command must be an array' out
    socket '{"command":["sleep","60"]}' start: '{"type":"nothing"}' >out
    grep -q '^closed 1008 /type must be one of' out
    eventually 10 sh -c "[ \"\$('$BRIG' sandbox show s | jq .processes)\" = 1 ]"
    api /v1/sandboxes/s/exec
    [ "$http" = 400 ]
}

@test "files come and go, each with its receipt" {
    serve
    TOKEN=$(token)
    post /v1/sandboxes '{"name":"f"}'
    head -c 3000000 /dev/urandom >data
    api -X PUT --data-binary @data '/v1/sandboxes/f/files?path=/sandbox/tmp/a%20b'
    [ "$http" = 200 ]
    json_is .bytes 3000000
    json_is .hash "sha256:$(sha256sum <data | cut -d ' ' -f 1)"
    api "/v1/receipts/$(jq -r .receipt_id <<<"$output")"
    json_is .outcome.files.verb write
    curl -sS -H "Authorization: Bearer $TOKEN" "http://127.0.0.1:$PORT/v1/sandboxes/f/files?path=/sandbox/tmp/a%20b" >got
    cmp got data
    api '/v1/sandboxes/f/files/stat?path=/sandbox/tmp/a%20b'
    json_is .size 3000000
    api -X POST '/v1/sandboxes/f/files/mkdir?path=/sandbox/tmp/d/e&parents=true'
    [ "$http" = 200 ]
    post /v1/sandboxes/f/files/move '{"from":"/sandbox/tmp/a b","to":"/sandbox/tmp/d/e/c"}'
    [ "$http" = 200 ]
    curl -sS -H "Authorization: Bearer $TOKEN" "http://127.0.0.1:$PORT/v1/sandboxes/f/tar?path=/sandbox/tmp/d" >d.tar
    [ "$(tar -xOf d.tar ./e/c 2>/dev/null | sha256sum || tar -xOf d.tar e/c | sha256sum)" = "$(sha256sum <data)" ]
    api -X PUT --data-binary @d.tar '/v1/sandboxes/f/tar?path=/sandbox/tmp/copy'
    [ "$http" = 200 ] || {
        api -X POST '/v1/sandboxes/f/files/mkdir?path=/sandbox/tmp/copy'
        api -X PUT --data-binary @d.tar '/v1/sandboxes/f/tar?path=/sandbox/tmp/copy'
    }
    api '/v1/sandboxes/f/files/list?path=/sandbox/tmp/copy'
    json_is '.entries[0].name' e
    api -X DELETE '/v1/sandboxes/f/files?path=/sandbox/tmp/d'
    [ "$http" != 200 ]
    api -X DELETE '/v1/sandboxes/f/files?path=/sandbox/tmp/d&recursive=true'
    [ "$http" = 200 ]
    api '/v1/sandboxes/f/files?path=/sandbox/tmp/d'
    refused 404 not_found
    api '/v1/sandboxes/f/files?path=../../../etc/shadow'
    [ "$http" != 200 ]
}

@test "an upload that stops half way leaves nothing" {
    need perl
    serve
    TOKEN=$(token)
    post /v1/sandboxes '{"name":"f"}'
    perl -MIO::Socket::INET -e '
        my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $ARGV[0]) or die;
        print $s "PUT /v1/sandboxes/f/files?path=/sandbox/tmp/half HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer $ARGV[1]\r\nContent-Length: 1000000\r\n\r\n";
        print $s "x" x 500000; $s->flush; sleep 1; close $s' "$PORT" "$TOKEN"
    eventually 10 sh -c "'$BRIG' receipts list --limit 1 | grep -q outcome"
    api '/v1/sandboxes/f/files/stat?path=/sandbox/tmp/half'
    refused 404 not_found
    api '/v1/sandboxes/f/files/list?path=/sandbox/tmp'
    json_is '.entries | length' 0
}

@test "changes are told as they happen" {
    serve
    TOKEN=$(token)
    post /v1/sandboxes '{"name":"f"}'
    (api -N '/v1/sandboxes/f/files/watch?path=/sandbox/tmp&wait_ms=8000'; echo "$output" >changes) &
    watcher=$!
    while kill -0 "$watcher" 2>/dev/null; do
        "$BRIG" sandbox exec f --quiet -- mktemp /sandbox/tmp/newXXXXXX >/dev/null
    done
    wait "$watcher"
    [ -n "$(jq -r 'select(.event == "create") | .name' changes | grep '^new')" ]
}

@test "counters tell what happened" {
    serve
    TOKEN=$(token --scope metrics --scope run)
    post /v1/runs '{"command":["true"]}'
    api /metrics
    [[ $output == *'brig_http_requests_total{route="run",status="2xx"} 1'* ]]
    [[ $output == *'process_resident_memory_bytes'* ]]
}

@test "the description names every route once, and its operations are unique" {
    serve
    TOKEN=$(token)
    api /v1/openapi.json
    json_is .openapi 3.1.0
    [ "$(jq '[.paths[][] | .operationId] | length' <<<"$output")" -gt 15 ]
    [ "$(jq '[.paths[][] | .operationId] | (length - (unique | length))' <<<"$output")" -eq 0 ]
    jq -e '.paths["/v1/runs"].post.requestBody.content["application/json"].schema.required == ["command"]' <<<"$output"
}
