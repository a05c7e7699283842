#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# src/lib/http on real sockets: tests/flow/http/server.c has a route for each promise; curl, openssl,
# Node and raw bytes (tests/flow/http/check.mjs) ask. Every test ends with a graceful stop, after which
# the server must leave with status 0, nothing on standard error and no exchange forgotten.

load common

setup() {
    common_setup
    need node curl
    unset server
}

teardown() {
    [ -n "${server-}" ] || return 0
    kill "$server" 2>/dev/null || true # has stopped already, in some tests
    local status=0
    wait "$server" || status=$?
    cat server.err >&2
    [ "$status" -eq 0 ]
    [ ! -s server.err ]
}

# serve ARGS…: starts the server; sets $server and, unless it only has a unix socket, $port.
serve() {
    rm -f server.out # of the one before
    # Not of this shell's: bats would wait for whoever holds its descriptors.
    "$BRIG_BUILD/tests/flow/http/http-server" "$@" >server.out 2>server.err 3>&- 4>&- </dev/null &
    server=$!
    local n
    for ((n = 0; n < 1000; n++)); do
        grep -q '^ready' server.out && break
        kill -0 "$server"
        sleep 0.02
    done
    port=$(sed -n 's/^port //p' server.out | head -n 1)
}

check() {
    timeout 120 node --no-warnings --experimental-websocket "$BRIG_ROOT/tests/flow/http/check.mjs" "$1" "$port" "${@:2}"
}

rss_kib() {
    awk '/^VmRSS/ { print $2 }' "/proc/$server/status"
}

# The sanitizers' own memory is not the server's.
is_sanitized() {
    grep -q __asan "$BRIG_BUILD/tests/flow/http/http-server"
}

@test "one connection serves many requests, and HEAD, 204 and 304 have no body" {
    serve --listen 127.0.0.1:0
    run curl -sv "http://127.0.0.1:$port/" "http://127.0.0.1:$port/head?a=b"
    [ "$status" -eq 0 ]
    [[ "$output" == *hello* ]]
    [[ "$output" == *"Re-using existing connection"* ]]
    [[ "$output" == *"method=GET path=/head query=a=b host=127.0.0.1:$port unix=0 tls=0 uid=-1 pid=-1 peer=127.0.0.1:"* ]]
    run curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/missing"
    [ "$output" = 404 ]
    check heads
}

@test "both families listen, and a wrong address is refused with a sentence" {
    serve --listen 127.0.0.1:0 --listen '[::1]:0'
    run curl -s "http://[::1]:$(sed -n 's/^port //p' server.out | tail -n 1)/head"
    [[ "$output" == *"peer=[::1]:"* ]]
    for address in 127.0.0.1 localhost:80 127.0.0.1:99999 '[::1]' ''; do
        run "$BRIG_BUILD/tests/flow/http/http-server" --listen "$address"
        [ "$status" -eq 1 ]
        [[ "$output" == *"is not"* ]]
    done
    run "$BRIG_BUILD/tests/flow/http/http-server" --listen "127.0.0.1:$port"
    [ "$status" -eq 1 ]
    [[ "$output" == *"listening on 127.0.0.1:$port: Address already in use"* ]]
}

@test "whatever could be framed in two ways is refused with its reason, and the connection ends" {
    serve --listen 127.0.0.1:0 --linger-ms 100
    check refused "$BRIG_ROOT/tests/vectors/http/request.txt"
    check refused-bodies "$BRIG_ROOT/tests/vectors/http/chunked.txt"
}

@test "requests sent ahead are answered in order, and no faster than the answers are taken" {
    serve --listen 127.0.0.1:0
    check pipelining
    check pipelining-flood
}

@test "a thousand slow clients cost others nothing" {
    ulimit -n 4096 2>/dev/null || [ "$(ulimit -n)" -ge 4096 ] || skip "not enough descriptors"
    serve --listen 127.0.0.1:0 --head-ms 300000 --idle-ms 300000
    before=$(rss_kib)
    check slow-clients 1000
    is_sanitized || [ $(($(rss_kib) - before)) -lt $((24 * 1024)) ]
}

@test "heads, bodies, idle connections and readers that stall have their deadlines" {
    serve --listen 127.0.0.1:0 --head-ms 2000
    check head-deadline
    kill "$server" && wait "$server"
    serve --listen 127.0.0.1:0 --body-ms 1500
    check body-deadline
    kill "$server" && wait "$server"
    serve --listen 127.0.0.1:0 --idle-ms 1500
    check idle-deadline
    kill "$server" && wait "$server"
    serve --listen 127.0.0.1:0 --write-ms 1500
    check write-deadline
}

@test "who is refused while it sends still gets the answer" {
    serve --listen 127.0.0.1:0 --linger-ms 20000
    check refused-while-sending
}

@test "connections beyond the ceiling are told 503" {
    serve --listen 127.0.0.1:0 --connections 4 --linger-ms 200
    check ceiling
}

@test "running out of descriptors turns clients away and ends with them" {
    need prlimit
    serve --listen 127.0.0.1:0
    prlimit --pid "$server" --nofile=40:
    check out-of-descriptors
}

@test "clients may go away at every point" {
    serve --listen 127.0.0.1:0
    check disconnects
    kill "$server" && wait "$server"
    serve --listen 127.0.0.1:0
    check halves
}

@test "neither side gets further ahead than the buffers allow" {
    serve --listen 127.0.0.1:0
    before=$(rss_kib)
    check backpressure
    is_sanitized || [ $(($(rss_kib) - before)) -lt $((24 * 1024)) ]
    curl -s "http://127.0.0.1:$port/stream?bytes=300000000" | tail -c +300000000 | wc -c >count
    [ "$(cat count)" -eq 1 ]
    is_sanitized || [ $(($(rss_kib) - before)) -lt $((24 * 1024)) ]
}

@test "bodies come by length, in chunks, compressed and in parts, up to their ceiling" {
    serve --listen 127.0.0.1:0
    check bodies
    check early
    check expect
    seq 100000 | head -c 200000 | gzip -c >good.gz
    run curl -s -H 'Content-Encoding: gzip' --data-binary @good.gz "http://127.0.0.1:$port/gzip"
    [ "$output" = 200000 ]
    run curl -s -H 'Content-Encoding: gzip' -H 'Transfer-Encoding: chunked' --data-binary @good.gz "http://127.0.0.1:$port/gzip"
    [ "$output" = 200000 ]
    run curl -s -H 'Content-Encoding: gzip' --data-binary @good.gz "http://127.0.0.1:$port/gzip?max=1000"
    [[ "$output" == *gzip_too_large* ]]
    head -c 50000000 /dev/zero | gzip -9c >bomb.gz
    run curl -s -w '%{http_code}' -H 'Content-Encoding: gzip' --data-binary @bomb.gz "http://127.0.0.1:$port/gzip"
    [[ "$output" == *gzip_too_large*413 ]]
    head -c 100 good.gz >cut.gz
    run curl -s -H 'Content-Encoding: gzip' --data-binary @cut.gz "http://127.0.0.1:$port/gzip"
    [[ "$output" == *'"code":"gzip"'* ]]
    run curl -s -w '%{http_code}' -H 'Content-Encoding: br' --data-binary @good.gz "http://127.0.0.1:$port/gzip"
    [[ "$output" == *'"code":"encoding"'*415 ]]
    head -c 3000000 /dev/urandom >file.bin
    run curl -s -F field=value -F 'file=@file.bin;type=x/y' "http://127.0.0.1:$port/form"
    [ "$output" = "name=field file= type= bytes=5
name=file file=file.bin type=x/y bytes=3000000" ]
    run curl -s -T file.bin "http://127.0.0.1:$port/count"
    [ "$output" = 3000000 ]
    curl -s -H 'Transfer-Encoding: chunked' -X POST --data-binary @file.bin "http://127.0.0.1:$port/echo" | cmp - file.bin
}

@test "a range is answered with that part" {
    serve --listen 127.0.0.1:0
    run curl -s -w ' %{http_code}' -r 3-5 "http://127.0.0.1:$port/range"
    [ "$output" = "345 206" ]
    run curl -si -r 30- "http://127.0.0.1:$port/range"
    [[ "$output" == *" 416 "* && "$output" == *"Content-Range: bytes */20"* ]]
    run curl -s -w ' %{http_code}' "http://127.0.0.1:$port/range"
    [ "$output" = "0123456789abcdefghij 200" ]
}

@test "events keep their ids and leave at once" {
    serve --listen 127.0.0.1:0
    check events
}

@test "a WebSocket speaks with a client that is not ours" {
    serve --listen 127.0.0.1:0
    check ws-client
    grep -q '^ws close 3000$' server.out
}

@test "a WebSocket refuses what the standard forbids, with its code" {
    serve --listen 127.0.0.1:0
    check ws-frames
}

@test "a silent WebSocket is asked, and ended when it does not answer" {
    serve --listen 127.0.0.1:0 --ping-ms 1500
    check ws-silence
}

@test "a unix socket tells who asks, replaces a dead one and not a living one" {
    serve --unix "$WORK/s"
    [ "$(stat -c %a s)" = 600 ]
    run curl -s --unix-socket s http://h/head
    [[ "$output" == *"unix=1 tls=0 uid=$(id -u) pid="* ]]
    run "$BRIG_BUILD/tests/flow/http/http-server" --unix "$WORK/s"
    [ "$status" -eq 1 ]
    [[ "$output" == *"another server listens on $WORK/s"* ]]
    kill -9 "$server"
    wait "$server" || true
    [ -S s ]
    serve --unix "$WORK/s"
    run curl -s --unix-socket s http://h/
    [ "$output" = hello ]
    kill "$server" && wait "$server"
    [ ! -e s ]
    echo text >s
    run "$BRIG_BUILD/tests/flow/http/http-server" --unix "$WORK/s"
    [ "$status" -eq 1 ]
    [[ "$output" == *"exists and is not a socket"* ]]
}

@test "a listening socket can be handed over" {
    need perl
    cat >activate <<'PERL'
use Socket; use Fcntl;
socket(my $s, PF_INET, SOCK_STREAM, 0) or die; bind($s, sockaddr_in(0, INADDR_LOOPBACK)) or die; listen($s, 10) or die;
my ($port) = sockaddr_in(getsockname($s));
fcntl($s, F_SETFD, 0); $| = 1; print "port $port\n";
exec @ARGV, "--fd", fileno($s);
PERL
    perl activate "$BRIG_BUILD/tests/flow/http/http-server" >server.out 2>server.err 3>&- 4>&- </dev/null &
    server=$!
    for ((n = 0; n < 500; n++)); do
        grep -q '^ready' server.out && break
        sleep 0.02
    done
    port=$(sed -n 's/^port //p' server.out)
    run curl -s "http://127.0.0.1:$port/"
    [ "$output" = hello ]
    run "$BRIG_BUILD/tests/flow/http/http-server" --fd 0 </dev/null
    [ "$status" -eq 1 ]
    [[ "$output" == *"descriptor 0: "* ]]
}

@test "a stop finishes what has begun, and has an end" {
    serve --listen 127.0.0.1:0
    check graceful-stop
    wait "$server"
    serve --listen 127.0.0.1:0 --grace-ms 200
    check hard-stop
    wait "$server"
    [ ! -s server.err ]
    unset server
}

@test "TLS 1.2 and 1.3 with http/1.1, nothing older and nothing else" {
    need openssl
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem \
        -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 2>/dev/null
    serve --listen 127.0.0.1:0 --certificate cert.pem --key key.pem
    for version in 1.2 1.3; do
        run curl -s --cacert cert.pem --tlsv$version --tls-max $version "https://127.0.0.1:$port/head"
        [[ "$output" == *"tls=1"* ]]
    done
    run openssl s_client -connect "127.0.0.1:$port" -tls1_1 -cipher 'ALL:@SECLEVEL=0' </dev/null
    [ "$status" -ne 0 ]
    run openssl s_client -connect "127.0.0.1:$port" -alpn h2 </dev/null
    [ "$status" -ne 0 ]
    run openssl s_client -connect "127.0.0.1:$port" -alpn h2,http/1.1 </dev/null
    [[ "$output" == *"ALPN protocol: http/1.1"* ]]
    run curl -s "http://127.0.0.1:$port/"
    [ "$status" -ne 0 ]
    head -c 20000000 /dev/urandom >file.bin
    curl -s --cacert cert.pem -X POST -H Expect: -H 'Transfer-Encoding: chunked' --data-binary @file.bin \
        "https://127.0.0.1:$port/echo" | cmp - file.bin
    run curl -s --cacert cert.pem "https://127.0.0.1:$port/stream?bytes=50000000&length=1" -o out -w '%{size_download}'
    [ "$output" = 50000000 ]
    run "$BRIG_BUILD/tests/flow/http/http-server" --listen 127.0.0.1:0 --certificate cert.pem --key cert.pem
    [ "$status" -eq 1 ]
    [[ "$output" == *"key cert.pem: "* ]]
}
