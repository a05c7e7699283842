#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# How much may pass, and how fast: what a rule's budget gives is given once to a sandbox, over whatever
# protocol it is used, and what would be too much does not pass.

load attack
load egress
load egress-tls

setup() {
    egress_setup
}

tls_needed() {
    tls_setup
}

# Inside: CONNECT, other rules, and what becomes of bytes that are sent.
client='
import os, signal, socket, time
def connect(to="api.test:7000"):
    c = socket.create_connection(("127.0.0.1", 3128)); c.settimeout(20)
    c.sendall(f"CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n".encode())
    got = b""
    while b"\r\n\r\n" not in got:
        d = c.recv(1)
        if not d: break
        got += d
    return c, got.split(b" ")[1].decode()
def echo(c, n):
    try:
        c.sendall(b"x" * n)
        left = n
        while left:
            d = c.recv(min(left, 65536))
            if not d: return "ended"
            left -= len(d)
        return "echoed"
    except OSError as e: return type(e).__name__
def swap(text):
    dir = os.environ["DIR"]
    open(dir + "/rules.swap", "w").write(text)
    try: os.unlink(dir + "/state/swapped")
    except FileNotFoundError: pass
    os.kill(int(open(dir + "/box.pid").read()), signal.SIGUSR1)
    for i in range(1000):
        try: return open(dir + "/state/swapped").read()[:6]
        except FileNotFoundError: time.sleep(0.01)
'
export client

@test "a budget of requests ends with them, and a rate says to wait" {
    run in_world "$(allow 'api.test:80,budget={"requests":2}' 'api.test:8080,protocol="rest",access="full",rate={"per_ms":86400000,"requests":2}')" '
        for i in 1 2 3; do curl -s -w " %{http_code}\n" -x $PROXY http://api.test/$i | tr -d "\r" | grep -oE "^GET /.|EGRESS_[A-Z]*.* [0-9]+$"; done
        for i in 1 2 3; do curl -s -w " %{http_code}\n" -x $PROXY http://api.test:8080/$i | tr -d "\r" | grep -oE "^GET /.|EGRESS_[A-Z]*.* [0-9]+$"; done
        curl -s -p -o /dev/null -w "connect %{http_connect}\n" -x $PROXY http://api.test/4'
    echo "$output"
    [ "$(sed 's/".* / /' <<<"$output" | paste -sd,)" = "GET /1,GET /2,EGRESS_BUDGET 403,GET /1,GET /2,EGRESS_RATE 429,connect 403" ]
    [ "$(grep -c GET "$DIR/log")" -eq 4 ]
    [ "$(counted 'sorted((r["reason"], r["count"]) for r in c["refusals"])')" = "[('EGRESS_BUDGET', 1), ('EGRESS_BUDGET', 1), ('EGRESS_RATE', 1)]" ]
}

@test "a tunnel over its bytes is closed, none beyond them passes, and no other is opened" {
    run in_world "$(allow 'api.test:7000,protocol="tcp",budget={"bytes_out":3000000}' 'api.test:2222,protocol="tcp",budget={"bytes_in":14}' 'api.test:7001,protocol="tcp",budget={"requests":1}')" '
        python3 - <<E
import os
exec(os.environ["client"])
c, said = connect(); print(said, echo(c, 1000000))
d, said = connect(); print(said, echo(d, 2000000))
print(connect()[1], echo(c, 1))
c, said = connect("api.test:2222"); print(said, c.recv(100)); print(connect("api.test:2222")[1])
print(connect("api.test:7001")[1], connect("api.test:7001")[1])
E'
    echo "$output"
    [ "$output" = "200 echoed
200 echoed
403 ConnectionResetError
200 b'SSH-2.0-test\\r\\n'
403
200 403" ]
    run in_world "$(allow 'api.test:7000,protocol="tcp",budget={"bytes_out":1500000}')" '
        python3 - <<E
import os
exec(os.environ["client"])
c, said = connect(); print(said, echo(c, 1000000), echo(c, 1000000) != "echoed")
E'
    echo "$output"
    [ "$output" = "200 echoed True" ]
    [ "$(counted 'c["bytes_out"] <= 1500000 and c["refusals"][0]["reason"]')" = EGRESS_BUDGET ]
}

@test "bytes of requests and answers come off the budget, and an answer may be so long" {
    rest='protocol="rest",access="full"'
    run in_world "$(allow "api.test:80,$rest,budget={\"bytes_in\":50000}" "api.test:8080,$rest,budget={\"bytes_out\":50000}" "second.test:80,$rest,response={\"max_bytes\":10}")" '
        c="curl -s -x $PROXY -o /dev/null -w %{http_code}_%{size_download}_%{exitcode}\n"
        $c http://api.test/bytes/40000
        $c http://api.test/bytes/40000
        head -c 20000 /dev/zero | $c -T - http://api.test:8080/bytes/1
        head -c 60000 /dev/zero | $c -T - http://api.test:8080/bytes/1
        $c http://second.test/bytes/10; $c http://second.test/bytes/11; $c http://second.test/chunked; curl -s -x $PROXY http://second.test/bytes/11'
    echo "$output"
    [ "${lines[0]}" = 200_40000_0 ]
    [[ "${lines[1]}" != *_40000_* ]]
    [ "${lines[2]}" = 200_1_0 ]
    [[ "${lines[3]}" != 200_1_* ]]
    [ "${lines[4]}" = 200_10_0 ]
    [[ "${lines[5]}" = 403_* ]]
    [[ "${lines[6]}" != *_11_0 ]]
    [[ "${lines[7]}" == *EGRESS_RESPONSE_TOO_LARGE* ]]
    not grep -q "8080 PUT.* 60000" "$DIR/log"
    [ "$(counted 'sorted({r["reason"] for r in c["refusals"]})')" = "['EGRESS_BUDGET', 'EGRESS_RESPONSE_TOO_LARGE']" ]
}

@test "a connection that changed its protocol goes on paying from its request's budget" {
    run in_world "$(allow 'api.test:80,budget={"bytes_out":3000}')" '
        python3 - <<E
import os
exec(os.environ["client"])
c = socket.create_connection(("127.0.0.1", 3128)); c.settimeout(20)
c.sendall(b"GET http://api.test/upgrade HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
          b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
got = b""
while b"\r\n\r\n" not in got: got += c.recv(1)
print(got.split(b" ")[1].decode(), echo(c, 2000), echo(c, 2000))
E'
    echo "$output"
    [ "$output" = "101 echoed ConnectionResetError" ]
    [ "$(counted 'c["bytes_out"] <= 3000 and c["refusals"][0]["reason"]')" = EGRESS_BUDGET ]
}

@test "other rules: what was used stays used, and a tunnel has what they give it" {
    export MORE="$(allow 'api.test:80,budget={"requests":2}' 'api.test:7000,protocol="tcp",budget={"bytes_out":1000}')"
    run in_world "$(allow 'api.test:80,budget={"requests":1}' 'api.test:7000,protocol="tcp"')" '
        python3 - <<E
import os, subprocess
exec(os.environ["client"])
def get(): return subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-x", os.environ["PROXY"], "http://api.test/"], capture_output=True, text=True).stdout
c, said = connect()
print(get(), get(), echo(c, 900000), swap(os.environ["MORE"]), get(), get(), echo(c, 900), echo(c, 200), connect()[1])
E'
    echo "$output"
    [ "$output" = "200 403 echoed sha256 200 403 echoed ConnectionResetError 200" ]
}

@test "HTTP/2: requests, bytes and the length of answers, each stream by its own rule" {
    tls_needed
    endpoint() { printf 'second.test:443,path="%s",protocol="rest",access="full",%s' "$1" "$2"; }
    run in_tls_world "$(allow "$(endpoint /hello 'budget={"requests":2}')" "$(endpoint /big 'budget={"bytes_in":1000000}')" \
        "$(endpoint /up 'budget={"bytes_out":100000}')" "$(endpoint /long 'response={"max_bytes":10}')")" '
        unset SSL_CERT_FILE
        mkdir -p $DIR/www; head -c 20 /dev/zero > $DIR/www/long
        u=https://second.test
        c="curl -s --cacert $CA -x $PROXY"
        $c -w " %{http_version} %{http_code}\n" $u/hello $u/hello $u/hello
        $c -o /dev/null -w "big %{http_code} %{size_download} %{exitcode}\n" $u/big
        head -c 3000000 /dev/zero | $c -o /dev/null -w "up %{exitcode}\n" --data-binary @- $u/up
        $c -w " long %{http_code}\n" $u/long
        $c -o /dev/null -w "again %{http_code}\n" $u/hello'
    echo "$output"
    [[ "$output" == *"hello over h2"*" 2 200"*"hello over h2"*" 2 200"*EGRESS_BUDGET*" 2 403"* ]]
    not grep -q '^big 200 3000000\|^up 0\| long 200' <<<"$output"
    [ "$(grep '^big' <<<"$output" | cut -d' ' -f3)" -le 1000000 ]
    grep -q '^again 403' <<<"$output"
    [ "$(counted 'sorted({r["reason"] for r in c["refusals"]})')" = "['EGRESS_BUDGET', 'EGRESS_RESPONSE_TOO_LARGE']" ]
}

@test "HTTP/1 and HTTP/2: bodies are judged, and what looks like a credential stays, also without a body" {
    tls_needed
    export SECRET=ghp_$(printf 'a1B2c3D4e5F6%.0s' 1 2 3)
    rules='"protocol":"rest","rules":[{"allow":{"method":"POST","path":"/hello","body":{"/model":{"equals":"small"}}}},{"allow":{"method":"GET","path":"/**"}}],"secret_shapes":"deny"'
    run in_tls_world "{\"network_policies\":{\"open\":{\"binaries\":[{\"interpreter\":true,\"path\":\"/**\"}],\"endpoints\":[{\"host\":\"api.test\",\"line\":1,\"ports\":[443],$rules},{\"host\":\"second.test\",\"line\":1,\"ports\":[443],$rules}],\"line\":1,\"name\":\"open\"}}}" '
        unset SSL_CERT_FILE
        for host in api.test second.test; do
            c="curl -s --cacert $CA -x $PROXY -w |%{http_code}|\n -H Content-Type:application/json"
            $c https://$host/hello | tail -1
            $c https://$host/hello?key=$SECRET
            $c -H "X-Key: $SECRET" https://$host/hello
            $c -d "{\"model\":\"small\"}" https://$host/hello | tail -1
            $c -d "{\"model\":\"large\"}" https://$host/hello
            $c -d "{\"model\":\"small\",\"key\":\"$SECRET\"}" https://$host/hello
        done | grep -oE "EGRESS_[A-Z_]*|[|][0-9]+[|]" | paste -sd" "'
    echo "$output"
    one="|200| EGRESS_SECRET_SHAPE |403| EGRESS_SECRET_SHAPE |403| |200| EGRESS_BODY |403| EGRESS_SECRET_SHAPE |403|"
    [ "$output" = "$one $one" ]
    not grep -q "$SECRET" "$DIR/log" "$DIR/nghttpd.log"
}

@test "F11: a hello without a name, or with one that only the server can read, is for an address alone" {
    run in_world "$(allow 'api.test:7000,protocol="tcp"' '45.33.32.11:7000,protocol="tcp"')" '
        python3 - <<E
import os
exec(os.environ["client"])
def vector(n, b): return len(b).to_bytes(n, "big") + b
def extension(kind, b): return kind.to_bytes(2, "big") + vector(2, b)
def hello(name, ech):
    e = extension(43, b"\x02\x03\x04")
    if name: e += extension(0, vector(2, b"\0" + vector(2, name.encode())))
    if ech: e += extension(0xfe0d, b"\0\0\1\0\1\7" + vector(2, b"k" * 32) + vector(2, b"p" * 64))
    body = b"\3\3" + b"r" * 32 + b"\0" + vector(2, b"\x13\x01") + b"\1\0" + vector(2, e)
    return b"\x16\3\1" + vector(2, b"\1" + vector(3, body))
for host, name, ech in (("api.test", "api.test", False), ("api.test", "api.test", True), ("api.test", None, True), ("45.33.32.11", None, True),
                        ("api.test", None, False), ("45.33.32.11", None, False)):
    c, said = connect(host + ":7000")
    try:
        c.sendall(hello(name, ech)); print(said, host, name, ech, c.recv(5).hex())
    except OSError as e: print(said, host, name, ech, type(e).__name__)
E'
    echo "$output"
    [[ "${lines[0]}" == "200 api.test api.test False 160301"* ]]
    [ "${lines[1]}" = "200 api.test api.test True ConnectionResetError" ]
    [ "${lines[2]}" = "200 api.test None True ConnectionResetError" ]
    [[ "${lines[3]}" == "200 45.33.32.11 None True 160301"* ]]
    [ "${lines[4]}" = "200 api.test None False ConnectionResetError" ]
    [[ "${lines[5]}" == "200 45.33.32.11 None False 160301"* ]]
    [ "$(counted '[(r["reason"], r["count"]) for r in c["refusals"]]')" = "[('EGRESS_SNI_MISMATCH', 3)]" ]
}
