#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Pulling from a registry as Debian packages it, and from one that misbehaves in every way we know.

load common
load image-kit

setup() {
    common_setup
    need jq tar gzip busybox curl
    CURL_AUTH=()
    unset https_proxy HTTPS_PROXY BRIG_REGISTRY_USER BRIG_REGISTRY_PASSWORD BRIG_REGISTRY_CA
}

teardown() {
    [ -z "${server_pid-}" ] || kill "$server_pid" 2>/dev/null || true
}

content() { echo "$BRIG_HOME/images/content"; }

nothing_left() {
    [ ! -d "$(content)/temp" ] || [ -z "$(ls -A "$(content)/temp")" ]
    [ ! -d "$BRIG_HOME/images/records" ] || [ -z "$(ls -A "$BRIG_HOME/images/records")" ]
}

# A port nobody listens on at this moment.
free_port() {
    perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1")->sockport'
}

wait_for() { # COMMAND…: until it succeeds
    eventually 10 "$@" >/dev/null 2>&1
}

registry_answers() {
    kill -0 "$server_pid" && curl -s -o /dev/null "http://$registry/v2/"
}

start_registry() { # [HTPASSWD]
    need docker-registry perl
    local tries
    for tries in 1 2 3 4 5; do # somebody else may have taken the port meanwhile
        begin_registry "$@"
        wait_for registry_answers && return || echo "nothing came of try $tries: $(cat "$WORK/registry.log")" >&2
    done
    return 1
}

begin_registry() {
    registry=127.0.0.1:$(free_port)
    {
        printf 'version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %s}\n' \
            "$WORK/registry" "$registry"
        [ -z "${1-}" ] || printf 'auth: {htpasswd: {realm: here, path: %s}}\n' "$1"
    } >"$WORK/registry.yml"
    docker-registry serve "$WORK/registry.yml" >"$WORK/registry.log" 2>&1 3>&- &
    server_pid=$!
}

start_bad() { # [TLS FOLDER]
    need node
    layout=$WORK/layout
    digest=$(busybox_layout "$layout" x)
    : >"$WORK/requests"
    node "$BRIG_ROOT/tests/flow/bad-registry.mjs" "$layout" "$@" >"$WORK/bad.out" 2>"$WORK/bad.err" 3>&- &
    server_pid=$!
    wait_for grep -q port "$WORK/bad.out"
    bad=127.0.0.1:$(sed -n 's/^port //p' "$WORK/bad.out")
}

@test "an image is pulled by tag and by digest, its layers once" {
    start_registry
    digest=$(busybox_layout "$WORK/layout" x)
    push "$WORK/layout" "$registry" team/bb 1
    run brig image pull "$registry/team/bb:1" --json
    status_is 0
    json_is .image_digest "$digest"
    json_is '.names[0]' "$registry/team/bb:1"
    run brig image pull "$registry/team/bb@$digest"
    status_is 0
    says "$digest"
    run brig image verify "$registry/team/bb:1"
    status_is 0
    run brig image pull "$registry/team/bb@sha256:$(printf '0%.0s' {1..64})"
    status_is 66
    run brig image pull "$registry/team/none"
    status_is 66
    says 'the registry has no manifest'
}

@test "a moved tag brings the new image, and the old one goes" {
    start_registry
    one=$(busybox_layout "$WORK/one" x)
    two=$(busybox_layout "$WORK/two" x none)
    [ "$one" != "$two" ]
    push "$WORK/one" "$registry" bb latest
    brig image pull "$registry/bb"
    push "$WORK/two" "$registry" bb latest
    run brig image pull "$registry/bb" --json
    json_is .image_digest "$two"
    brig image remove "$registry/bb"
    [ "$(find "$(content)" -mindepth 2 -type f | wc -l)" -eq 0 ]
}

@test "a registry that wants a user gets one, and its refusal is told" {
    need perl
    # As htpasswd -B writes it.
    perl -e 'print "me:", crypt("se cret", q($2b$05$abcdefghijklmnopqrstuu)), "\n"' >"$WORK/htpasswd"
    start_registry "$WORK/htpasswd"
    busybox_layout "$WORK/layout" x
    CURL_AUTH=(-u 'me:se cret')
    push "$WORK/layout" "$registry" bb 1
    run brig image pull "$registry/bb:1"
    status_is 77
    BRIG_REGISTRY_USER=me BRIG_REGISTRY_PASSWORD='se cret' run brig image pull "$registry/bb:1"
    status_is 0
}

@test "a registry on loopback that behaves is pulled from" {
    start_bad
    run brig image pull "$bad/index" --json
    status_is 0
    json_is .image_digest "$digest"
    [[ $(jq -r .index_digest <<<"$output") == sha256:* ]]
    run brig image pull "$bad/good" --json
    status_is 0
    json_is .image_digest "$digest"
}

@test "a registry that lies is caught, and nothing is kept" {
    start_bad
    while read -r how want text; do
        run brig image pull "$bad/$how" --timeout 20s --json
        echo "$how: $status $output"
        status_is "$want"
        says "$text"
        nothing_left
    done <<'CASES'
short-body 76 ended before its length
long-body 76 longer than
wrong-bytes 76 its digest is
digest 76 the registry says
html 64 line 1
big 75 more than
endless 75 headers
error-body 75 does not end
schema1 64 schema 1
no-platform 66 does not exist for linux/
loop 75 redirected more than 5 times
elsewhere 77 no registry can have
far-http 77 plain HTTP
file 64 is not an address
ftp 77 ftp:
far-token 77 plain HTTP
bad-token 64 no proper token
http09 64 not HTTP
CASES
}

@test "a registry that stalls or trickles ends at its limits" {
    start_bad
    # Their own ends, not that of our patience.
    run timeout -k 5 60 "$BRIG" image pull "$bad/stall" --stall 1s
    status_is 75
    says 'sent nothing for 1000 ms'
    run timeout -k 5 60 "$BRIG" image pull "$bad/trickle" --timeout 2s --json
    status_is 75
    json_is .error.code timeout
    nothing_left
}

@test "what breaks is tried again, a few times" {
    start_bad
    run brig image pull "$bad/flaky:latest" --json
    status_is 0
    json_is .image_digest "$digest"
    # The manifest, the configuration and two layers, each three times.
    [ "$(grep -c /v2/flaky/ "$WORK/requests")" -eq 12 ]
    run brig image pull "$bad/broken:latest"
    status_is 69
    says "the registry answers 503"
    [ "$(grep -c /v2/broken/ "$WORK/requests")" -eq 4 ]
}

@test "a registry that says when to come back is not asked before" {
    start_bad
    run brig image pull "$bad/wait:latest" --json
    status_is 0
    json_is .image_digest "$digest"
    [ "$(grep -c '^waited' "$WORK/requests")" -eq 4 ]
    for ms in $(sed -n 's/^waited //p' "$WORK/requests"); do [ "$ms" -ge 1000 ]; done
}

@test "a registry that wants us to wait for an hour is not waited for" {
    start_bad
    run brig image pull "$bad/wait-long:latest"
    status_is 75
    says "the registry answers 503 for manifest: try again in 3600 s"
    [ "$(grep -c /v2/wait-long/ "$WORK/requests")" -eq 1 ]
    # Within the ceiling, but not within the time that was given.
    run brig image pull "$bad/wait:latest" --timeout 1s
    [ "$status" -ne 0 ]
    [ "$(grep -c /v2/wait/ "$WORK/requests")" -eq 1 ]
}

# held_layout N: a layout of N layers, and a registry that holds them back until there is a file "go".
held_layout() {
    local i
    need node pgrep
    layout=$WORK/layout
    layout_new "$layout"
    for i in $(seq "$1"); do
        mkdir -p "$WORK/part$i"
        head -c 300000 /dev/urandom >"$WORK/part$i/file$i"
        layer_tar "$WORK/part$i" "$WORK/part$i.tar"
        layout_add "$layout" "$WORK/part$i.tar" none
    done
    digest=$(layout_finish "$layout" held)
    : >"$WORK/requests"
    node "$BRIG_ROOT/tests/flow/bad-registry.mjs" "$layout" >"$WORK/bad.out" 2>"$WORK/bad.err" 3>&- &
    server_pid=$!
    wait_for grep -q port "$WORK/bad.out"
    bad=127.0.0.1:$(sed -n 's/^port //p' "$WORK/bad.out")
}

began_are() { [ "$(grep -c '^begin' "$WORK/requests")" -ge "$1" ]; }

# pull_held: in the background, until three layers are on their way and none has come.
pull_held() {
    rm -f "$WORK/go"
    : >"$WORK/requests"
    "$BRIG" image pull "$bad/hold:latest" --json >"$WORK/pulled" 2>"$WORK/pulled.err" 3>&- &
    pull_pid=$!
    wait_for began_are 3
    worker=$(pgrep -P "$pull_pid" -x image)
    mapfile -t fetchers < <(pgrep -P "$worker" -x image)
}

pull_ends() { # STATUS
    local got=0
    wait "$pull_pid" || got=$?
    [ "$got" -eq "$1" ]
}

gone() { # PID…
    local pid
    for pid; do [ ! -e "/proc/$pid" ] || return 1; done
}

goes_on() { # whatever was there: the next pull gets the image, and leaves nothing behind
    touch "$WORK/go"
    run brig image list --json
    status_is 0
    run brig image pull "$bad/hold:latest" --json
    status_is 0
    json_is .image_digest "$digest"
    run brig image verify "$bad/hold:latest"
    status_is 0
    [ -z "$(ls -A "$(content)/temp")" ]
    brig image remove "$bad/hold:latest"
    [ "$(find "$(content)" -mindepth 2 -type f | wc -l)" -eq 0 ]
    run brig receipts verify
    status_is 0
}

@test "layers come three at a time, and not more" {
    held_layout 5
    pull_held
    [ "${#fetchers[@]}" -eq 3 ]
    touch "$WORK/go"
    pull_ends 0
    json_is .image_digest "$digest" "$(cat "$WORK/pulled")"
    perl -ne '$now++ if /^begin/; $now-- if /^end/; $most = $now if $now > $most;
        END { die "$most at once\n" if $most != 3 }' "$WORK/requests"
    run brig image verify "$bad/hold:latest"
    status_is 0
    brig image remove "$bad/hold:latest"
    goes_on
}

@test "SIGKILL of whoever pulls, while layers are on their way" {
    held_layout 4
    for victim in worker fetcher brig; do
        pull_held
        case $victim in
        worker) kill -KILL "$worker" && pull_ends 70 && grep -q 'signal 9' "$WORK/pulled" ;;
        fetcher) kill -KILL "${fetchers[1]}" && pull_ends 70 && grep -q 'ended without a word' "$WORK/pulled" ;;
        brig) kill -KILL "$pull_pid" && pull_ends 137 ;;
        esac
        wait_for gone "$worker" "${fetchers[@]}"
        goes_on
    done
}

@test "SIGKILL of the worker at any point of a pull" {
    [ "$(brig version --json | jq -r .crash_points)" = true ] || skip "built without crash points"
    held_layout 2
    touch "$WORK/go"
    for at in image-blob-synced image-blob-kept image-layer-synced image-list-kept image-layer-kept; do
        BRIG_CRASH_AT=$at run brig image pull "$bad/hold:latest"
        status_is 70
        goes_on
    done
}

@test "trying again does not outlast the time that was given" {
    start_bad
    run brig image pull "$bad/broken:latest" --timeout 100ms
    [ "$status" -ne 0 ]
    [ "$(grep -c /v2/broken/ "$WORK/requests")" -le 1 ] # the shortest pause is longer than that
}

@test "a registry nobody runs is unavailable" {
    need perl
    run brig image pull "127.0.0.1:$(free_port)/x"
    status_is 69
    says 'cannot be reached'
}

@test "a token is fetched with our scope, not the one suggested" {
    start_bad
    run brig image pull "$bad/token"
    status_is 0
    grep -q '^/token/token?service=a%20b&scope=repository:token:pull -$' "$WORK/requests"
    run grep -c other "$WORK/requests"
    [ "$output" = 0 ]
}

@test "user and password go to the registry, from the environment or standard input" {
    start_bad
    run brig image pull "$bad/basic"
    status_is 77
    says BRIG_REGISTRY_USER
    BRIG_REGISTRY_USER=me BRIG_REGISTRY_PASSWORD=wrong run brig image pull "$bad/basic"
    status_is 77
    run brig image pull "$bad/basic" --username me --password-stdin <<<'se cret'
    status_is 0
    run brig image pull "$bad/basic" --username me
    status_is 64
}

@test "credentials do not follow a redirect to another host" {
    start_bad
    BRIG_REGISTRY_USER=me BRIG_REGISTRY_PASSWORD=pw run brig image pull "$bad/twice"
    status_is 0
    grep -q '^/v2/twice/blobs/.* Basic ' "$WORK/requests"
    grep -q '^/blob/.* -$' "$WORK/requests"
    run grep -c '^/blob/.* Basic' "$WORK/requests"
    [ "$output" = 0 ]
}

@test "HTTPS: the certificate counts, and nothing leads back to plain HTTP" {
    need openssl
    mkdir "$WORK/tls"
    openssl req -x509 -newkey rsa:2048 -nodes -keyout "$WORK/tls/key.pem" -out "$WORK/tls/cert.pem" -days 2 \
        -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 2>/dev/null
    start_bad "$WORK/tls"
    BRIG_REGISTRY_CA=$WORK/tls/cert.pem run brig image pull "$bad/good"
    status_is 0
    openssl req -x509 -newkey rsa:2048 -nodes -keyout "$WORK/tls/o.pem" -out "$WORK/tls/other.pem" -days 2 \
        -subj /CN=other 2>/dev/null
    BRIG_REGISTRY_CA=$WORK/tls/other.pem run brig image pull "$bad/good"
    status_is 77
    says certificate
    BRIG_REGISTRY_CA=$WORK/tls/cert.pem run brig image pull "$bad/down"
    status_is 77
    says 'from HTTPS to plain HTTP'
}

@test "plain HTTP is for loopback addresses" {
    run brig image pull registry.invalid:5000/x --timeout 10s
    status_is 69
    run brig image pull 127.0.0.1.example.invalid/x --timeout 10s
    status_is 69
}

@test "whoever reads a stranger's bytes is confined" {
    start_bad
    "$BRIG" image pull "$bad/stall" --timeout 20s >"$WORK/pull.out" 2>&1 3>&- &
    pull=$!
    wait_for grep -q blobs "$WORK/requests"
    worker=$(cat "/proc/$pull/task/$pull/children")
    status=$(cat "/proc/${worker% }/status")
    fds=$(ls -l "/proc/${worker% }/fd" 2>/dev/null || true)
    kill -KILL "$pull"
    wait "$pull" || true
    echo "$status"
    [[ $status == *$'NoNewPrivs:\t1'* ]]
    [[ $status == *$'Seccomp:\t2'* ]]
    [[ $status == *$'CapEff:\t0000000000000000'* ]]
    [[ $status != *$'Uid:\t0'* ]]
    [[ $fds != *"$BRIG_HOME/keys"* ]]
    # It dies with brig.
    eventually 10 gone "${worker% }"
}
