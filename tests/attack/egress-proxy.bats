#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The egress program against real clients and servers, with a stand-in for box (egress-box.c): what a
# rule allows gets through unchanged, everything else ends where it should, and for its reason.

load attack
load egress

setup() {
    egress_setup
}

@test "an allowed request gets through, byte for byte, and is counted" {
    run in_world "$(allow api.test:80)" 'curl -s -x $PROXY "http://api.test/a%20b/d?q=%41&r=1"'
    [ "$status" -eq 0 ]
    [[ "$output" == "GET /a%20b/d?q=%41&r=1 HTTP/1.1"* ]]
    [ "$(counted '(c["requests"], c["refused"])')" = "(1, 0)" ]
    [ "$(counted 'c["rules"][0]["rule"]')" = open ]
}

@test "a host no rule names is refused with a reason, and never looked up or dialled" {
    run in_world "$(allow api.test:80)" 'curl -s -o /dev/null -w "%{http_code}" -x $PROXY http://other.test/; curl -s -x $PROXY http://other.test/'
    [[ "$output" == 403* ]]
    [[ "$output" == *'"reason_code":"EGRESS_NO_RULE"'* ]]
    not grep -q GET "$DIR/log"
    [ "$(counted 'c["refusals"][0]["count"]')" -eq 2 ]
}

@test "other ports of an allowed host are refused" {
    run in_world "$(allow api.test:80)" 'curl -s -x $PROXY http://api.test:8080/; curl -s -o /dev/null -w "%{http_connect}" -x $PROXY -p http://api.test:8080/'
    [[ "$output" == *EGRESS_PORT*403 ]]
}

@test "CONNECT and SOCKS5 are judged like requests, and work" {
    run in_world "$(allow api.test:80 'api.test:7000,protocol="tcp"')" '
        curl -s -p -x $PROXY http://api.test/connect
        curl -s -x socks5h://127.0.0.1:3128 http://api.test/socks
        curl -s -p -x $PROXY http://other.test/ ; echo "connect $?"
        curl -s -x socks5h://127.0.0.1:3128 http://other.test/ ; echo "socks $?"'
    [[ "$output" == *"GET /connect HTTP/1.1"*"GET /socks HTTP/1.1"*"connect 56"*"socks 97"* ]]
}

@test "names: those a rule names have an address of ours, the rest does not exist" {
    run in_world "$(allow api.test:80)" 'python3 - <<E
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(30)
def ask(name, kind=1):
    s.sendto(b"\0\1\1\0\0\1\0\0\0\0\0\0" + b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\0\0" + bytes([kind]) + b"\0\1", ("198.18.0.1", 53))
    r = s.recv(600)
    return (r[3] & 15, r[7], socket.inet_ntoa(r[-4:]) if r[7] else "")
print(ask("api.test"), ask("API.test"), ask("api.test", 28), ask("other.test"), ask("secret.of.mine.other.test"), ask("api.test", 16))
t = socket.create_connection(("198.18.0.1", 53)); q = b"\0\2\1\0\0\1\0\0\0\0\0\0\3api\4test\0\0\1\0\1"
t.sendall(bytes([0, len(q)]) + q); r = t.recv(600); print("tcp", socket.inet_ntoa(r[-4:]))
E'
    [ "${lines[0]}" = "(0, 1, '198.18.1.0') (0, 1, '198.18.1.0') (0, 0, '') (3, 0, '') (3, 0, '') (0, 0, '')" ]
    [ "${lines[1]}" = "tcp 198.18.1.0" ]
    [ "$(counted '[r["host"] for r in c["refusals"]]')" = "['other.test', '*.mine.other.test']" ]
}

@test "programs that know no proxy are caught, and judged by the name they asked for" {
    run in_world "$(allow 'api.test:80,protocol="rest",access="full"' 'api.test:2222,protocol="tcp"')" 'python3 - <<E
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(30)
s.sendto(b"\0\1\1\0\0\1\0\0\0\0\0\0\3api\4test\0\0\1\0\1", ("198.18.0.1", 53))
a = socket.inet_ntoa(s.recv(600)[-4:])
def talk(host, port, say=b"", wait=1):
    try:
        c = socket.create_connection((host, port), 5)
        c.settimeout(5)
        if say: c.sendall(say)
        got = c.recv(500)
        return got.split(b"\r\n")[0].decode() or "end"
    except OSError as e:
        return type(e).__name__
print("plain", talk(a, 80, b"GET /caught HTTP/1.1\r\nHost: api.test\r\n\r\n"))
print("other host", talk(a, 80, b"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n"))
print("speaks first", talk(a, 2222))
print("no http", talk(a, 80, b"\x00\x01\x02\x03"))
print("tls", talk(a, 80, b"\x16\x03\x01\x00\x05hello"))
print("other port", talk(a, 443))
print("by address", talk("45.33.32.10", 80, b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n"))
print("made up", talk("198.18.9.9", 80))
print("own", talk("45.33.32.1", 80))
print("metadata", talk("169.254.169.254", 80))
print("v6", talk("2600:3c01::10", 80))
print("no rule names the port", talk("45.33.32.10", 9999))
print("catch-all itself", talk("127.0.0.1", 15001))
E'
    [ "${lines[0]}" = "plain HTTP/1.1 200 OK" ]
    [ "${lines[1]}" = "other host HTTP/1.1 421 Misdirected Request" ]
    [ "${lines[2]}" = "speaks first SSH-2.0-test" ]
    [[ "${lines[4]}" == "tls "* && "${lines[4]}" != *HTTP* ]] # an alert, in its own words
    for i in 3 5 6 7 8 9 10 12; do [[ "${lines[$i]}" == *ConnectionResetError ]] || { echo "${lines[$i]}"; false; }; done
    [ "${lines[11]}" = "no rule names the port ConnectionRefusedError" ]
    [ "$(grep -c GET "$DIR/log")" -eq 1 ]
}

@test "addresses that are never allowed stay closed, whatever a rule says" {
    run in_world "$(allow loop.test:80 meta.test:80 own.test:80 private.test:80 api.test:80)" '
        for h in loop meta own private; do curl -s -x $PROXY http://$h.test/ | grep -o "EGRESS_[A-Z_]*"; done
        curl -s -o /dev/null -w "%{http_code}\n" -x $PROXY http://api.test/'
    [ "${lines[0]}" = EGRESS_ADDRESS ]
    [ "${lines[1]}" = EGRESS_ADDRESS ]
    [ "${lines[2]}" = EGRESS_ADDRESS ]
    [ "${lines[3]}" = EGRESS_ADDRESS_PRIVATE ]
    [ "${lines[4]}" = 200 ]
}

@test "a private address is dialled where allowed_ips says so" {
    run in_world "$(allow 'private.test:80,allowed_ips=["10.9.9.0/24"]')" 'curl -s -o /dev/null -w "%{http_code}" -x $PROXY http://private.test/'
    [ "$output" = 200 ]
}

@test "rebinding: the name's new address is checked again" {
    run in_world "$(allow api.test:80)" '
        curl -s -o /dev/null -w "%{http_code}\n" -x $PROXY -H "Connection: close" http://api.test/close
        sed "s/^45.33.32.10 .*/127.0.0.1 api.test/" "$DIR/hosts" > "$DIR/hosts.new"; cat "$DIR/hosts.new" > "$DIR/hosts"
        for i in $(seq 30); do c=$(curl -s -x $PROXY http://api.test/close | grep -o "EGRESS_[A-Z_]*") && break; sleep 0.1; done; echo "$c"'
    [ "${lines[0]}" = 200 ]
    [ "${lines[1]}" = EGRESS_ADDRESS ]
}

@test "who calls is known, and a caller nobody vouches for is refused" {
    export EGRESS_BOX_SILENT=1
    run in_world "$(allow api.test:80)" 'curl -s -x $PROXY http://api.test/'
    [[ "$output" == *EGRESS_CALLER_UNKNOWN* ]]
    unset EGRESS_BOX_SILENT
    egress_setup
    run in_world "$(allow api.test:80)" 'curl -s -o /dev/null -w "%{http_code}" -x $PROXY http://api.test/; curl -s -x $PROXY http://other.test/ >/dev/null'
    [ "$output" = 200 ]
    [[ "$(counted 'c["refusals"][0]["binary"]')" == */curl ]]
}

@test "any doubt about framing is 400 and the end of the connection" {
    run in_world "$(allow api.test:80)" 'python3 - <<E
import socket
G = b"GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n"
P = b"POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\n"
N = b"GET http://api.test/smuggled HTTP/1.1\r\nHost: api.test\r\n\r\n"
for name, say in {
    "both lengths": P + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + N,
    "two lengths": P + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello" + N,
    "length list": P + b"Content-Length: 5, 5\r\n\r\nhello" + N,
    "plus": P + b"Content-Length: +5\r\n\r\nhello" + N,
    "coding twice": P + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" + N,
    "coding hidden": P + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + N,
    "coding tab": P + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n" + N,
    "blank before colon": G + b"X : y\r\n\r\n",
    "bare lf": b"GET http://api.test/ HTTP/1.1\nHost: api.test\n\n",
    "folded": G + b"X: a\r\n b\r\n\r\n",
    "nul": G + b"X: a\0b\r\n\r\n",
    "two hosts": G + b"Host: other.test\r\n\r\n",
    "host differs": b"GET http://api.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n",
    "chunk size": P + b"Transfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n" + N,
    "chunk sign": P + b"Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n" + N,
    "chunk end": P + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n0\r\n\r\n" + N,
    "trailer length": P + b"Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n" + N,
    "no host": b"GET http://api.test/ HTTP/1.1\r\n\r\n",
    "h2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "origin form": b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n",
    "userinfo": b"GET http://u:p@api.test/ HTTP/1.1\r\nHost: u:p@api.test\r\n\r\n",
    "scheme": b"GET ftp://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n",
    "head": G + b"X: " + b"a" * 20000 + b"\r\n\r\n",
    "line": b"GET http://api.test/" + b"a" * 9000 + b" HTTP/1.1\r\nHost: api.test\r\n\r\n",
}.items():
    c = socket.create_connection(("127.0.0.1", 3128)); c.settimeout(5); c.sendall(say)
    got = b""
    try:
        while True:
            d = c.recv(65536)
            if not d: break
            got += d
    except OSError as e: got += str(e).encode()
    print("%s: %s %d" % (name, got[9:12].decode(), got.count(b"HTTP/1.1 4") + got.count(b"HTTP/1.1 5")))
E'
    not grep -q smuggled "$DIR/log"
    [ "$(grep -vcE ': (4..|505) 1$' <<<"$output")" -eq 0 ] || { echo "$output"; false; }
    [ "$(wc -l <<<"$output")" -eq 24 ]
}

@test "headers of this hop stay here, in both directions" {
    run in_world "$(allow api.test:80)" '
        curl -s -x $PROXY -H "Proxy-Authorization: Basic c2VjcmV0" -H "X-HTTP-Method-Override: DELETE" -H "Keep-Alive: 5" -H "TE: trailers" -H "Connection: x-mine" -H "X-Mine: 1" -H "X-Stays: 1" http://api.test/
        curl -s -D - -o /dev/null -x $PROXY http://api.test/hop'
    [[ "$output" == *"X-Stays: 1"* ]]
    for h in Proxy-Authorization Override "X-Mine" "TE:" "Proxy-Connection"; do [[ "$output" != *"$h"* ]] || { echo "$h"; false; }; done
    [[ "$output" != *"X-Secret-Hop"* && "$output" != *Keep-Alive* && "$output" != *Alt-Svc* ]]
}

@test "keep-alive on both sides, bodies of every framing, and requests behind each other" {
    run in_world "$(allow api.test:80)" '
        curl -s -x $PROXY http://api.test/1 http://api.test/chunked http://api.test/close http://api.test/2 -w "|%{http_code} %{num_connects}|\n" | grep -a "|"
        head -c 300000 /dev/zero | tr "\0" z > "$DIR/big"
        curl -s -x $PROXY --data-binary @"$DIR/big" http://api.test/post | tail -c +1 | tr -dc z | wc -c
        curl -s -x $PROXY -H "Transfer-Encoding: chunked" -H "Expect:" --data-binary @"$DIR/big" http://api.test/post | tr -dc z | wc -c
        curl -s -x $PROXY -H "Expect: 100-continue" --data-binary @"$DIR/big" http://api.test/post | tr -dc z | wc -c
        curl -s -x $PROXY http://api.test/bytes/5000000 | wc -c
        curl -s -I -x $PROXY http://api.test/bytes/77 | grep -i content-length
        curl -s -o /dev/null -x $PROXY http://api.test/cut; echo "cut $?"
        python3 -c "
import socket
c = socket.create_connection((\"127.0.0.1\", 3128)); c.settimeout(30)
r = b\"GET http://api.test/p%d HTTP/1.1\r\nHost: api.test\r\n\r\n\"
c.sendall(b\"\".join(r % i for i in range(20)))
got = b\"\"
while got.count(b\"GET /p\") < 20: got += c.recv(65536)
print(\"pipelined\", [got.index(b\"GET /p%d \" % i) for i in range(20)] == sorted(got.index(b\"GET /p%d \" % i) for i in range(20)))
"'
    [ "$(grep -c '|200' <<<"$output")" -eq 4 ]
    [ "$(grep -cx 300000 <<<"$output")" -eq 3 ] || { echo "$output"; false; }
    [[ "$output" == *5000000* && "$output" == *"ontent-Length: 77"* && "$output" == *"cut "[15][86]* ]]
    [[ "$output" == *"pipelined True"* ]]
}

@test "a server that answers in a way that could be read twice is 502" {
    printf 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!' > "$DIR/answers/two"
    printf 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n' > "$DIR/answers/both"
    printf 'HTTP/1.1 200 OK\nContent-Length: 0\n\n' > "$DIR/answers/lf"
    printf 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n' > "$DIR/answers/switch"
    printf 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison' > "$DIR/answers/more"
    run in_world "$(allow api.test:7002)" 'for a in two both lf switch; do curl -s -o /dev/null -w "%{http_code}\n" -x $PROXY http://api.test:7002/$a; done
        curl -s -x $PROXY http://api.test:7002/more http://api.test:7002/more'
    [ "$output" = "502
502
502
502
okok" ]
}

@test "upgrades only where a rule allows them" {
    run in_world "$(allow 'api.test:80,protocol="rest",access="full"' )" 'python3 - <<E
import socket
c = socket.create_connection(("127.0.0.1", 3128)); c.settimeout(30)
c.sendall(b"GET http://api.test/upgrade HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
print(c.recv(300).split(b"\r\n")[0])
E'
    [[ "$output" != *101* ]]
}

@test "a redirect is the client's to follow, and judged when it does" {
    run in_world "$(allow api.test:80)" 'curl -s -L -x $PROXY http://api.test/redirect'
    [[ "$output" == *EGRESS_NO_RULE* ]]
}

@test "a half-closed tunnel carries on in the other direction" {
    run in_world "$(allow 'api.test:7000,protocol="tcp"')" 'python3 - <<E
import socket, threading
c = socket.create_connection(("127.0.0.1", 3128)); c.settimeout(20)
c.sendall(b"CONNECT api.test:7000 HTTP/1.1\r\nHost: api.test:7000\r\n\r\n")
got = b""
while b"\r\n\r\n" not in got: got += c.recv(1)
def pump():
    for i in range(2000): c.sendall(b"y" * 10000)
    c.shutdown(socket.SHUT_WR)
threading.Thread(target=pump).start()
n = 0; last = b""
while True:
    d = c.recv(1 << 20)
    if not d: break
    n += len(d); last = (last + d)[-40:]
print(n - len(b"end after 20000000\n"), last.endswith(b"end after 20000000\n"))
E'
    [ "$output" = "20000000 True" ]
    [ "$(counted 'c["bytes_out"]')" -eq 20000000 ]
}

@test "a TLS hello with another name ends the tunnel" {
    run in_world "$(allow 'api.test:7000,protocol="tcp"')" 'python3 - <<E
import socket, ssl
for name in ("api.test", "other.test"):
    c = socket.create_connection(("127.0.0.1", 3128)); c.settimeout(30)
    c.sendall(b"CONNECT api.test:7000 HTTP/1.1\r\nHost: api.test:7000\r\n\r\n")
    got = b""
    while b"\r\n\r\n" not in got: got += c.recv(1)
    ctx = ssl.create_default_context(); out = ssl.MemoryBIO()
    s = ctx.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    try: s.do_handshake()
    except ssl.SSLWantReadError: pass
    hello = out.read()
    c.sendall(hello[:100]); c.sendall(hello[100:])
    try: print(name, "echoed" if c.recv(65536) else "ended")
    except OSError as e: print(name, type(e).__name__)
E'
    [ "${lines[0]}" = "api.test echoed" ]
    [ "${lines[1]}" = "other.test ConnectionResetError" ]
    [ "$(counted '[r["reason"] for r in c["refusals"]]')" = "['EGRESS_SNI_MISMATCH']" ]
}

@test "other rules: acknowledged by hash, connections that lost theirs closed, bad ones change nothing" {
    allow 'second.test:80' > "$DIR/rules.swap"
    run in_world "$(allow api.test:80 'api.test:7000,protocol="tcp"')" 'python3 - <<E
import os, signal, socket, time
def connect():
    c = socket.create_connection(("127.0.0.1", 3128)); c.settimeout(10)
    c.sendall(b"CONNECT api.test:7000 HTTP/1.1\r\nHost: api.test:7000\r\n\r\n")
    got = b""
    while b"\r\n\r\n" not in got:
        d = c.recv(1)
        if not d: break
        got += d
    return c, got.split(b"\r\n")[0]
def swap(text=None):
    dir = os.environ["DIR"]
    if text is not None: open(dir + "/rules.swap", "w").write(text)
    try: os.unlink(dir + "/state/swapped")
    except FileNotFoundError: pass
    os.kill(int(open(dir + "/box.pid").read()), signal.SIGUSR1)
    for i in range(1000):
        try: return open(dir + "/state/swapped").read()
        except FileNotFoundError: time.sleep(0.01)
good = open(os.environ["DIR"] + "/rules.swap").read()
c, said = connect(); print(said); c.sendall(b"x"); print(c.recv(1))
print("bad:", "sha256:" in swap("{\"network_policies\":{\"x\":{\"endpoints\":[{\"hots\":1}]}}}"))
c.sendall(b"y"); print(c.recv(1))
began = time.monotonic()
print("good:", swap(good)[:7])
try: print("then", c.recv(1))
except OSError as e: print("then", type(e).__name__)
open(os.environ["DIR"] + "/took", "w").write("%.2f s" % (time.monotonic() - began))
c, said = connect(); print(said)
E'
    [ "$output" = "b'HTTP/1.1 200 Connection established'
b'x'
bad: False
b'y'
good: sha256:
then ConnectionResetError
b'HTTP/1.1 403 Forbidden'" ] || { echo "$output"; false; }
    echo "# the tunnel ended after $(cat "$DIR/took")" >&3
    [ "$(counted 'c["policy_hash"]')" = "sha256:$(sha256sum < "$DIR/rules.swap" | cut -c1-64)" ]
}

@test "a thousand slow clients do not delay one that is not" {
    WORLD_SECONDS=400 run in_world "$(allow api.test:80)" 'ulimit -n 4096; python3 - <<E
import socket, time
slow = []
for i in range(1000):
    c = socket.create_connection(("127.0.0.1", 3128)); c.sendall(b"GET http://api.test/slow HTTP/1.1\r\nX: "); slow.append(c)
for i in range(5):
    c = socket.create_connection(("127.0.0.1", 3128)); c.settimeout(60)
    c.sendall(b"GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n")
    print(c.recv(100)[9:12])
    c.close()
E'
    [ "$(grep -c "b'200'" <<<"$output")" -eq 5 ] || { echo "$output"; false; }
}

@test "beyond its share a sandbox is told no at once, and is served again" {
    WORLD_SECONDS=300 run in_world "$(allow api.test:80 'api.test:7000,protocol="tcp"')" 'ulimit -n 4096; python3 - <<E
import socket, time
def say(words):
    try:
        c = socket.create_connection(("127.0.0.1", 3128)); c.settimeout(60)
        c.sendall(words)
        return c, c.recv(100)[9:12].decode()
    except OSError as e: return None, type(e).__name__
def ask(): return say(b"GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n")[1]
# Tunnels: they stay however long a busy machine takes for all of them.
held = []
for i in range(1100):
    c, said = say(b"CONNECT api.test:7000 HTTP/1.1\r\nHost: api.test:7000\r\n\r\n")
    if said != "200": break
    held.append(c)
print("held", len(held))
print("beyond", ask() != "200")
for c in held: c.close()
began = time.monotonic()
while (said := ask()) != "200" and time.monotonic() - began < 60: pass
print("then", said)
E'
    [ "$output" = "held 1024
beyond True
then 200" ] || { echo "$output"; false; }
}

@test "a server that hangs does not hold up others" {
    run in_world "$(allow api.test:7001 api.test:80)" 'curl -s -m 50 -o /dev/null -x $PROXY http://api.test:7001/ & sleep 0.2; curl -s -m 30 -o /dev/null -w "%{http_code}" -x $PROXY http://api.test/; kill $!; wait'
    [ "$output" = 200 ]
}

@test "egress killed: no network, and the next controller starts another" {
    export AFTER='"$EGRESS_BIN/egress-box" "$DIR/state" "$DIR/rules" curl -s -o /dev/null -w "%{http_code}\n" -x $PROXY http://api.test/'
    run in_world "$(allow api.test:80 'api.test:7000,protocol="tcp"')" 'python3 - <<E
import os, signal, socket, subprocess, time
c = socket.create_connection(("127.0.0.1", 3128)); c.settimeout(30)
c.sendall(b"CONNECT api.test:7000 HTTP/1.1\r\nHost: api.test:7000\r\n\r\n"); print(c.recv(100)[9:12])
for pid in subprocess.check_output(["pgrep", "-x", "egress"]).split():
    try: os.kill(int(pid), signal.SIGKILL)
    except ProcessLookupError: pass # its resolver ends with it
try: print("tunnel", c.recv(10) == b"")
except OSError as e: print("tunnel", True)
for host, port in (("127.0.0.1", 3128), ("127.0.0.1", 15001), ("198.18.0.1", 53), ("198.18.1.0", 80)):
    said = "open"
    for i in range(500): # the kernel takes the sockets of the dead away one by one
        try: socket.create_connection((host, port), 5).close(); time.sleep(0.01)
        except ConnectionRefusedError as e: said = type(e).__name__; break
        except OSError: pass
    print(port, said)
E'
    [ "$output" = "b'200'
tunnel True
3128 ConnectionRefusedError
15001 ConnectionRefusedError
53 ConnectionRefusedError
80 ConnectionRefusedError
200" ] || { echo "$output"; false; }
}

@test "many controllers at once start one program, and it ends after them" {
    export AFTER='
        for i in $(seq 10); do EGRESS_BOX_ID=s$i "$EGRESS_BIN/egress-box" "$DIR/many" "$DIR/rules" sh -c "pgrep -cx egress >> $DIR/seen; sleep 2" & done
        wait; sort "$DIR/seen" | uniq -c
        for i in $(seq 100); do pgrep -x egress >/dev/null || break; sleep 0.1; done; pgrep -cx egress'
    run in_world "$(allow api.test:80)" 'for i in $(seq 100); do [ -e "$DIR/state/egress/lock" ] && break; done'
    [[ "$(tail -1 <<<"$output")" = 0 ]] || { echo "$output"; false; }
    # The program, its resolver, and who looks after that; and three of the sandbox before, at most.
    [ "$(awk '{print $1}' <"$DIR/seen" | sort -n | tail -1)" -le 6 ]
}

@test "what egress may do: no file, no program, no look into it" {
    run in_world "$(allow api.test:80)" '
        for p in $(pgrep -x egress); do
            grep -E "^(NoNewPrivs|Seccomp|CapEff|CapPrm):" /proc/$p/status | tr "\n" " "; echo
        done | sort | uniq -c'
    [[ "$output" == *"CapPrm:	0000000000000000 CapEff:	0000000000000000 NoNewPrivs:	1 Seccomp:	2"* ]]
    [ "$(grep -c "NoNewPrivs:	1" <<<"$output")" -eq "$(wc -l <<<"$output")" ]
    [ "$(grep -vc "CapEff:	0000000000000000" <<<"$output")" -eq 0 ]
}
