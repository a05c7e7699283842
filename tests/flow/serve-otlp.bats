#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Telemetry over OTLP/HTTP: what a collector gets, and what a bad one can do, which is nothing.

load common
load sandbox
load kept
load serve

CANARY=canary-8f41c7
TRACE=0af7651916cd43dd8448eb211c80319c
SPAN=b7ad6b7169203331

setup() {
    common_setup
    need curl jq node
    COLLECTOR=
    unset OTEL_EXPORTER_OTLP_ENDPOINT OTEL_EXPORTER_OTLP_HEADERS OTEL_EXPORTER_OTLP_CERTIFICATE
}

teardown() {
    local status=0
    serve_end || status=$?
    collector_end
    return $status
}

# collector MODE [KEY CERTIFICATE]: one on loopback, its port in $OTLP, what it gets in $WORK/got.
collector() {
    : >got
    rm -f collector.out
    node "$BRIG_ROOT/tests/flow/otlp-collector.mjs" "$1" "$WORK/got" "${@:2}" >collector.out 2>collector.err </dev/null 3>&- &
    COLLECTOR=$!
    eventually 10 test -s collector.out
    OTLP=$(cat collector.out)
}

collector_end() {
    [ -z "$COLLECTOR" ] || kill "$COLLECTOR" 2>/dev/null || true
    [ -z "$COLLECTOR" ] || wait "$COLLECTOR" 2>/dev/null || true
    COLLECTOR=
}

check() {
    node "$BRIG_ROOT/tests/flow/otlp-check.mjs" "$WORK/got" "$@"
}

# number NAME: of /metrics
number() {
    curl -sS --max-time 20 --unix-socket "$WORK/d.sock" http://localhost/metrics | sed -n "s/^$1 //p"
}

more_than() {
    [ "$(number "$1")" -gt "$2" ]
}

got_some() {
    [ "$(grep -c "\"path\":\"$1" got)" -ge "${2-1}" ]
}

# many N: so many requests that only look, each answered
many() {
    curl -sS --max-time 60 --unix-socket "$WORK/d.sock" -o many.out -w '%{http_code}\n' "http://localhost/v1/sandboxes#[1-$1]" >many.status
    [ "$(sort many.status | uniq -c | awk '{ print $1, $2 }')" = "$1 200" ]
}

sender() {
    pgrep -P "$DAEMON" -x otlp
}

peak_kib() {
    awk '/^VmHWM:/ { print $2 }' "/proc/$1/status"
}

@test "a run is a trace, its stages are spans, and no word of what was run is told" {
    collector good
    OTEL_EXPORTER_OTLP_HEADERS='x-api-key=a%20b%2Cc' serve --otlp "http://127.0.0.1:$OTLP/"
    TOKEN=$(token)
    make
    post /v1/runs "{\"command\":[\"sh\",\"-c\",\"cat; echo $CANARY-argv; echo \$SECRET >&2; exit 3\"],
        \"stdin\":\"$CANARY-stdin\",\"sandbox\":{\"env\":{\"SECRET\":\"$CANARY-env\"}}}" \
        -H "traceparent: 00-$TRACE-$SPAN-01" -D head
    [ "$http" = 200 ]
    json_is .exit_code 3
    [[ "$output" == *"$CANARY-argv"* && "$output" == *"$CANARY-stdin"* && "$output" == *"$CANARY-env"* ]]
    first=$output
    post "/v1/sandboxes/$id/exec" '{"command":["true"]}' -H "traceparent: 00-$TRACE-$SPAN-01-more"
    second=$output
    post "/v1/sandboxes/$id/exec" "{\"command\":[\"$CANARY-missing\"]}" -H "traceparent: 00-$TRACE-$SPAN-00"
    third=$output
    post /v1/runs "{\"command\":[\"$CANARY-refused\"],\"env\":{}}"
    [ "$http" = 400 ]
    api "/v1/sandboxes/$CANARY-path"
    [ "$http" = 404 ]
    eventually 10 got_some /v1/traces
    brig sandbox destroy "$id" >/dev/null
    serve_end # tells its numbers, and everything that waits

    check >all
    jq -e '.spans > 20 and .logs >= 5 and (.metrics | contains(["brig_http_requests_total", "brig_http_request_seconds", "brig_connections"]))' all
    jq -s -e 'all(.headers["x-api-key"] == "a b,c")' got
    trace=$(check run "$(jq -r .run_id <<<"$first")")
    json_is .trace "$TRACE" "$trace"
    json_is .root.parent "$SPAN" "$trace"
    json_is .root.kind 2 "$trace"
    json_is '.root["http.route"]' /v1/runs "$trace"
    json_is '.root["http.request.method"]' POST "$trace"
    json_is '.root["http.response.status_code"]' 200 "$trace"
    json_is '.root["brig.tenant"]' default "$trace"
    json_is '.run["brig.verdict"]' ALLOW "$trace"
    json_is '.run["brig.exit_code"]' 3 "$trace"
    json_is '.run["brig.receipt_id"]' "$(jq -r .receipt_id <<<"$first")" "$trace"
    json_is '.stages | join(" ")' "admit decide equip intend park execute record" "$trace"
    json_is '.log.trace' "$TRACE" "$trace"
    json_is '.log.span' "$(jq -r .root.id <<<"$trace")" "$trace"
    grep -qi "^traceparent: 00-$TRACE-$(jq -r .root.id <<<"$trace")-01" head
    # A malformed one begins a trace of its own.
    trace=$(check run "$(jq -r .run_id <<<"$second")")
    json_is .root.parent null "$trace"
    [ "$(jq -r .trace <<<"$trace")" != $TRACE ]
    json_is '.run["brig.sandbox_id"]' "$id" "$trace"
    # Whoever does not want a trace gets none; the log has its id all the same.
    run -1 check run "$(jq -r .run_id <<<"$third")"
    # The log on standard error is the same.
    line=$(grep "\"run_id\":\"$(jq -r .run_id <<<"$first")\"" serve.err)
    json_is .trace_id $TRACE "$line"
    json_is .exit_code 3 "$line"
    json_is .verdict ALLOW "$line"
    jq -e -s 'map(select(.event == "request")) | length > 4' serve.err
    # Arguments, environment, input, output, names: nowhere.
    [ -s got ]
    run -1 grep -q "$CANARY" got serve.err
}

@test "without a collector a caller's trace is in the log and in the answer" {
    serve
    TOKEN=$(token)
    post /v1/runs '{"command":["true"]}' -H "traceparent: 00-$TRACE-$SPAN-00" -D head
    grep -qi "^traceparent: 00-$TRACE-[0-9a-f]*-00" head
    line=$(grep "\"trace_id\":\"$TRACE\"" serve.err)
    json_is .route run "$line"
    post /v1/runs '{"command":["true"]}' -D head
    run -1 grep -qi traceparent head
    run -1 sender
}

@test "what is no collector's address is refused at the start" {
    for url in http://collector.example:4318 https://user:word@127.0.0.1 ftp://127.0.0.1 'https://h/?k=1'; do
        run -1 --separate-stderr serve --otlp "$url" || true
        DAEMON=
        [[ "$stderr" == *"--otlp: "* ]]
        [[ "$stderr" != *word* ]]
    done
    export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:9 OTEL_EXPORTER_OTLP_HEADERS='a=%0d%0ahidden'
    run -1 --separate-stderr serve
    [[ "$stderr" == *"OTEL_EXPORTER_OTLP_HEADERS: "* ]]
    [[ "$stderr" != *hidden* ]]
    DAEMON=
}

@test "a collector that never answers costs nothing but what it is not told" {
    collector hang
    OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:$OTLP serve
    many 140 # enough not to wait for more
    eventually 10 got_some /v1/
    many 100
    TOKEN=$(token)
    post /v1/runs '{"command":["true"]}'
    [ "$http" = 200 ]
    [ "$(number brig_otlp_sent_total)" = 0 ]
    peak=$(peak_kib "$(sender)")
    [ -n "${BRIG_BUILD##*asan*}" ] || peak=0
    [ "$peak" -lt 65536 ]
    # A sender that stands still is as little of a burden, and one that dies is replaced.
    first=$(sender)
    kill -STOP "$first"
    before=$(number brig_otlp_dropped_total)
    many 600
    more_than brig_otlp_dropped_total "$before"
    kill -KILL "$first"
    replaced() { [ -n "$(sender)" ] && [ "$(sender)" != "$first" ]; }
    eventually 10 replaced
    last=$(sender)
    grep -q '"event":"otlp".*there will be another' serve.err
    many 10
    # Told twice, the daemon does not wait for it.
    kill -TERM "$DAEMON"
    sleep 0.2
    serve_end
    eventually 2 gone "$last"
}

@test "a collector that is busy is asked again when it says; what it then takes is complete" {
    collector busy
    serve --otlp "http://127.0.0.1:$OTLP"
    TOKEN=$(token)
    post /v1/runs '{"command":["true"]}'
    run_id=$(jq -r .run_id <<<"$output")
    eventually 15 more_than brig_otlp_sent_total 1
    [ "$(number brig_otlp_failures_total)" = 2 ]
    [ "$(number brig_otlp_dropped_total)" = 0 ]
    jq -s -e '.[1].at - .[0].at >= 1000 and .[2].at - .[1].at >= 1000' got
    check run "$run_id" >/dev/null
    grep -q '"event":"otlp".*does not take' serve.err
    grep -q '"event":"otlp".*takes telemetry again' serve.err
}

@test "collectors that talk nonsense, hang up, or do not stop talking change nothing" {
    for mode in garbage close picky endless; do
        collector $mode
        serve --otlp "http://127.0.0.1:$OTLP"
        many 140 # enough not to wait for more
        eventually 10 got_some /v1/
        case $mode in
            endless) eventually 10 more_than brig_otlp_sent_total 19 ;;
            picky) eventually 10 more_than brig_otlp_dropped_total 19 ;;
            *) eventually 10 more_than brig_otlp_failures_total 0 ;;
        esac
        many 20
        kill -TERM "$DAEMON"
        sleep 0.2
        serve_end
        run -1 grep -q nonsense serve.err
        collector_end
    done
}

@test "https is spoken to whom a trusted certificate names, and to nobody else" {
    need openssl
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -days 2 \
        -subj /CN=localhost -addext subjectAltName=DNS:localhost >/dev/null 2>&1
    collector good key.pem cert.pem
    OTEL_EXPORTER_OTLP_CERTIFICATE=$WORK/cert.pem serve --otlp "https://localhost:$OTLP"
    many 140
    eventually 10 more_than brig_otlp_sent_total 2
    serve_end
    check >/dev/null
    : >got
    serve --otlp "https://localhost:$OTLP"
    many 140
    eventually 10 more_than brig_otlp_failures_total 0
    [ ! -s got ]
    kill -TERM "$DAEMON"
    sleep 0.2
}
