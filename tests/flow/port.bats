#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig sandbox port: a server inside, reached from here, on loopback, one way only.

load common
load files

setup() {
    common_setup
    need python3
    make_box
}

teardown() {
    [ -z "${door-}" ] || kill "$door" 2>/dev/null || true
    destroy_boxes
}

# serve 'PYTHON': s is a socket that listens on port 8000 inside.
serve() {
    "$BRIG" sandbox exec --quiet --keep "$id" -- sh -c 'python3 -c "$1" >/tmp/server.log 2>&1 &' sh "
import socket, threading, time, sys
s = socket.create_server(('127.0.0.1', 8000), backlog=100)
$1" </dev/null
    eventually 10 inside 'grep -q :1F40 /proc/net/tcp'
}

# open_door ARGS…: sets $door and $port.
open_door() {
    "$BRIG" sandbox port "$id" "$@" >door.out 2>door.err &
    door=$!
    eventually 10 test -s door.out
    port=$(head -n 1 door.out)
}

close_door() {
    kill -TERM "$door"
    wait "$door"
    door=
}

echo_server='
def one(c):
    data = b""
    while True:
        part = c.recv(65536)
        if not part: break
        data += part
    c.sendall(b"%d " % len(data) + data[:10])
    c.close()
while True:
    threading.Thread(target=one, args=(s.accept()[0],)).start()'

@test "bytes pass both ways, one side may close before the other, and all is counted" {
    serve "$echo_server"
    open_door 8000
    run python3 -c "
import socket
c = socket.create_connection(('127.0.0.1', $port))
c.sendall(b'0123456789' * 100000)
c.shutdown(socket.SHUT_WR)
got = b''
while True:
    part = c.recv(4096)
    if not part: break
    got += part
print(got.decode())"
    [ "$output" = "1000000 0123456789" ]
    close_door
    [ "$(last_receipt .action)" = port ]
    [ "$(last_receipt .outcome.port.port)" = 8000 ]
    [ "$(last_receipt .outcome.port.connections)" = 1 ]
    [ "$(last_receipt .outcome.port.bytes_in)" = 1000000 ]
    [ "$(last_receipt .outcome.port.bytes_out)" = 18 ]
    brig receipts verify
}

@test "a reader that is slow makes the server wait, not us grow" {
    serve '
while True:
    c = s.accept()[0]
    n = 0
    c.settimeout(2)
    try:
        while n < 200000000:
            n += c.send(bytes(100000))
    except OSError: pass
    print(n, flush=True)'
    open_door 8000
    python3 -c "
import socket, time
c = socket.create_connection(('127.0.0.1', $port))
time.sleep(3)"
    [ "$(awk '/VmHWM/ { print $2 }' "/proc/$door/status")" -lt 50000 ]
    eventually 10 inside 'test -s /tmp/server.log'
    [ "$(inside 'cat /tmp/server.log')" -lt 100000000 ]
    close_door
}

@test "many at once, and no more than there is room for" {
    serve "$echo_server"
    open_door 8000
    run timeout 120 python3 -c "
import socket
all = [socket.create_connection(('127.0.0.1', $port)) for i in range(100)]
for c in all: c.sendall(b'x'); c.shutdown(socket.SHUT_WR)
print(sum(c.recv(100) == b'1 x' for c in all))"
    [ "$output" = 100 ]
    close_door
    [ "$(last_receipt .outcome.port.connections)" = 100 ]
}

@test "where nobody listens inside, the connection is closed and counted as refused" {
    open_door 9 --json
    port=$(head -n 1 door.out | jq .port)
    run python3 -c "
import socket
c = socket.create_connection(('127.0.0.1', $port))
c.settimeout(60)
try: print(len(c.recv(1)))
except ConnectionError: print(0)"
    [ "$output" = 0 ]
    close_door
    [ "$(last_receipt .outcome.port.refused)" = 1 ]
    [ "$(tail -n +2 door.out | jq .refused)" = 1 ]
}

@test "we listen on loopback only" {
    for address in 0.0.0.0:0 '[::]:0' 10.0.0.1:80 localhost:80 1.2.3.4 127.0.0.1:99999; do
        run timeout 30 "$BRIG" sandbox port "$id" 8000 --listen "$address"
        status_is 64
        says "loopback"
    done
    for p in 0 65536 x -1; do
        run timeout 30 "$BRIG" sandbox port "$id" -- "$p"
        status_is 64
    done
    open_door 8000 --listen 127.0.0.5:0
    run ss -Hltn "sport = :$port"
    [[ $output == *"127.0.0.5:$port"* ]]
    close_door
}

@test "the other way round there is no way" {
    open_door 8000
    run inside "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", $port), 2)'"
    [ "$status" -ne 0 ]
    says "refused"
    close_door
    [ "$(last_receipt .outcome.port.connections)" = 0 ]
}

@test "it ends in time, and with its sandbox" {
    run timeout 60 "$BRIG" sandbox port "$id" 8000 --timeout 500ms
    status_is 0
    open_door 8000
    brig sandbox destroy "$id"
    run timeout 30 tail --pid="$door" -f /dev/null
    status_is 0
    await "$door"
    status_is 69
    [ "$(brig receipts list --json --limit 4 | jq -r '[.receipts[] | select(.reason_code == "PORT_FAILED")] | length')" = 1 ]
    door=
}

@test "a port that is taken is said to be" {
    open_door 8000
    run timeout 30 "$BRIG" sandbox port "$id" 8000 --listen "127.0.0.1:$port"
    [ "$status" -ne 0 ]
    says "Address already in use"
    close_door
}
