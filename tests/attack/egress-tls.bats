#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# TLS that egress looks into, with real clients and servers: what a rule allows gets through, each
# request is judged, and whatever does not hold is refused for the reason it has.

load attack
load egress
load egress-tls

setup() {
    egress_setup
    tls_setup
}

REST='protocol="rest",access="full"'

# Inside: the address that a name has there.
address_of='address_of() { python3 -c "
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(30)
s.sendto(b\"\0\1\1\0\0\1\0\0\0\0\0\0\" + b\"\".join(bytes([len(l)]) + l.encode() for l in sys.argv[1].split(\".\")) + b\"\0\0\1\0\1\", (\"198.18.0.1\", 53))
print(socket.inet_ntoa(s.recv(600)[-4:]))" "$1"; }
unset SSL_CERT_FILE
'

@test "clients that trust the sandbox's authority get through, over a proxy and without one" {
    run in_tls_world "$(allow "api.test:443,$REST" "second.test:443,$REST" "api.test:9447,$REST")" "$address_of"'
        A=$(address_of api.test)
        B=$(address_of second.test)
        curl -sS --cacert $CA -x $PROXY https://api.test/connect | head -1
        curl -sS --cacert $CA -x socks5h://127.0.0.1:3128 https://api.test/socks | head -1
        curl -sS --cacert $CA --resolve api.test:443:$A https://api.test/caught | head -1
        curl -sS --cacert $CA -x $PROXY https://api.test:9447/no-alpn | head -1
        curl -sS --cacert $CA -o /dev/null -w "h2 %{http_version} %{http_code} %{size_download}\n" -x $PROXY https://second.test/big
        curl -sS --cacert $CA --resolve second.test:443:$B --http2 https://second.test/hello
        curl -sS --cacert $CA --http2 -o /dev/null -w "%{http_version}\n" -x $PROXY https://api.test/mirrored
        SSL_CERT_FILE=$CA https_proxy=$PROXY python3 -c "
import urllib.request
print(urllib.request.urlopen(\"https://api.test/python\").read().decode().split(chr(13))[0])"
        node -e "
const s = require(\"net\").connect(3128, \"127.0.0.1\", () => s.write(\"CONNECT api.test:443 HTTP/1.1\\r\\nHost: api.test:443\\r\\n\\r\\n\"));
s.once(\"data\", () => {
    const t = require(\"tls\").connect({servername: \"api.test\", socket: s, ca: require(\"fs\").readFileSync(process.env.CA)});
    t.write(\"GET /node HTTP/1.1\\r\\nHost: api.test\\r\\nConnection: close\\r\\n\\r\\n\");
    t.pipe(process.stdout);
});"
        printf "GET /openssl HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n" |
            openssl s_client -quiet -verify_return_error -CAfile $CA -proxy 127.0.0.1:3128 -connect api.test:443 -servername api.test 2>/dev/null | grep ^GET
        nghttp -v https://$B/hello -H ":authority: second.test" 2>/dev/null | grep -c "hello over h2\|x-end: yes"'
    echo "$output"
    [ "$status" -eq 0 ]
    for line in "GET /connect HTTP/1.1" "GET /socks HTTP/1.1" "GET /caught HTTP/1.1" "GET /no-alpn HTTP/1.1" \
        "h2 2 200 3000000" "hello over h2" "GET /python HTTP/1.1" "GET /node HTTP/1.1" "GET /openssl HTTP/1.1"; do
        [[ "$output" == *"$line"* ]]
    done
    [[ "$output" == *$'\n1.1'* ]]
    [ "$(counted 'c["refused"]')" -eq 0 ]
    [ "$(counted 'c["requests"]')" -ge 10 ]
}

@test "a server whose certificate does not hold is refused, and the answer says why" {
    run in_tls_world "$(allow "api.test:9441,$REST" "api.test:9442,$REST" "api.test:9443,$REST" \
        "api.test:9444,$REST" "api.test:9445,$REST" "api.test:9446,$REST" "api.test:9449,$REST")" "$address_of"'
        for port in 9441 9442 9443 9444 9445 9446 9449; do
            curl -sS --cacert $CA -w " %{http_code}\n" -x $PROXY https://api.test:$port/secret
        done'
    echo "$output"
    for code in TLS_CERTIFICATE_EXPIRED TLS_CERTIFICATE_SELF_SIGNED TLS_CERTIFICATE_UNKNOWN_ROOT \
        TLS_CERTIFICATE_NAME TLS_PROTOCOL TLS_TRUNCATED; do
        [[ "$output" == *"$code"*502* ]]
    done
    # Over TLS 1.3 a server says only behind the handshake that it wants a certificate.
    [[ "$output" == *TLS_CERTIFICATE_WANTED* || "$output" == *EGRESS_SERVER_LEFT* ]]
    not grep -q /secret "$DIR/log"
}

@test "SNI, Host, :authority and CONNECT must agree" {
    run in_tls_world "$(allow "api.test:443,$REST" "second.test:443,$REST" "www.test:443,$REST")" "$address_of"'
        A=$(address_of api.test)
        openssl s_client -CAfile $CA -proxy 127.0.0.1:3128 -connect api.test:443 -servername www.test </dev/null 2>&1 | grep -o "alert number 112" | head -1
        openssl s_client -CAfile $CA -connect $A:443 -servername www.test </dev/null 2>&1 | grep -o "alert number 112" | head -1
        curl -sS --cacert $CA -x $PROXY -w " %{http_code}\n" -H "Host: www.test" https://api.test/
        curl -sS --cacert $CA -x $PROXY -w " %{http_code}\n" -H "Host: www.test" --http2 https://second.test/
        curl -sS --cacert $CA -x $PROXY -w " %{http_code}\n" -H "Host: api.test:444" https://api.test/'
    echo "$output"
    [ "$(grep -c 'alert number 112' <<<"$output")" -eq 2 ]
    [ "$(grep -c 'EGRESS_HOST_MISMATCH.* 421' <<<"$output")" -eq 3 ]
    [ "$(grep -c GET "$DIR/log")" -eq 0 ]
    [ "$(counted 'sorted({r["reason"] for r in c["refusals"]})')" = "['EGRESS_HOST_MISMATCH', 'TLS_NAME']" ]
}

# A ticket is used once, and comes behind the handshake: who asks for nothing must not use up the last.
@test "the server's session is taken up again after connections that asked for nothing, and by no other host" {
    run in_tls_world "$(allow "api.test:443,$REST" "www.test:443,$REST")" 'python3 - <<"E"
import os, socket, ssl, time
log = os.environ["DIR"] + "/log"
def shaken():
    return [l.split()[2] for l in open(log) if " shaken " in l]
def shake(host):
    s = socket.create_connection(("127.0.0.1", 3128))
    s.sendall(("CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n" % (host, host)).encode())
    assert b" 200 " in s.recv(1000)
    n = len(shaken())
    t = ssl.create_default_context(cafile=os.environ["CA"]).wrap_socket(s, server_hostname=host)
    while len(shaken()) == n:
        time.sleep(0.01)
    time.sleep(0.1) # its tickets are on their way
    t.close()
    return shaken()[-1]
print("first", shake("api.test"))
rest = ""
while "again again" not in rest and len(rest) < 200: # what took one up has left another
    rest += " " + shake("api.test")
print("again", "again again" in rest)
print("other", shake("www.test"))
E'
    echo "$output"
    [[ "$output" == *$'first anew\nagain True\nother anew'* ]]
}

@test "every request of a connection is judged, in HTTP/1 and in HTTP/2" {
    rules='{"network_policies":{"open":{"binaries":[{"interpreter":true,"path":"/**"}],"endpoints":[
{"enforcement":"enforce","host":"api.test","line":1,"ports":[443],"protocol":"rest","rules":[{"allow":{"method":"GET","path":"/ok/**"}}]},
{"enforcement":"enforce","host":"second.test","line":1,"ports":[443],"protocol":"rest","rules":[{"allow":{"method":"GET","path":"/hello"}}]}],"line":1,"name":"open"}}}'
    rules=${rules//$'\n'/}
    run in_tls_world "$rules" "$address_of"'
        curl -sS --cacert $CA -x $PROXY -w " %{http_code} %{num_connects}\n" https://api.test/ok/1 -o /dev/null https://api.test/no https://api.test/ok/2 -o /dev/null -o /dev/null
        curl -sS --cacert $CA -x $PROXY -w " %{http_code}\n" -X DELETE https://api.test/ok/1
        curl -sS --cacert $CA -x $PROXY -w " %{http_code} %{num_connects}\n" https://second.test/hello https://second.test/big https://second.test/hello
        curl -sS --cacert $CA -x $PROXY -w " %{http_code}\n" -d body https://second.test/hello'
    echo "$output"
    [[ "$output" == *"hello over h2"*" 200 1"*'"reason_code":"EGRESS_REQUEST"'*" 403 0"*"hello over h2"*" 200 0"*EGRESS_REQUEST*" 403" ]]
    not grep -q '/no \|DELETE' "$DIR/log"
    not grep -q '/big\|POST' "$DIR/nghttpd.log"
}

@test "what is passed through by rule stays closed, and the server's own certificate is seen" {
    run in_tls_world "$(allow 'api.test:443,tls="skip"')" "$address_of"'
        curl -sS --cacert $CA -x $PROXY https://api.test/ 2>&1 | grep -o "certificate problem\|unable to get local issuer" | head -1
        curl -sS --cacert '"$DIR"'/root.crt -x $PROXY https://api.test/own | head -1'
    echo "$output"
    [[ "$output" == *"GET /own HTTP/1.1"* ]]
    [[ "${lines[0]}" != GET* ]]
}

@test "hellos that are none, too old, or cut off end where they are" {
    run in_tls_world "$(allow "api.test:443,$REST")" "$address_of"'
        A=$(address_of api.test)
        python3 - $A <<E
import socket, sys
def say(*pieces):
    s = socket.create_connection((sys.argv[1], 443), 10); s.settimeout(10)
    try:
        for p in pieces: s.sendall(p)
        s.shutdown(socket.SHUT_WR)
        return s.recv(100).hex() or "end"
    except OSError as e:
        return type(e).__name__
old = bytes.fromhex("16030100310100002d0301" + "00" * 32 + "00" + "0002002f" + "0100" + "0002" + "0000")
print("none", say(b"\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00"))
print("old", say(old))
print("cut", say(b"\x16\x03\x01\x01\x00\x01\x00\x00\xfc"))
E
        curl -sS --tls-max 1.1 --cacert $CA -x $PROXY https://api.test/ 2>/dev/null; echo "curl $?"
        curl -sS --cacert $CA -x $PROXY https://api.test/still | head -1'
    echo "$output"
    [[ "$output" == *"none 15030300020228"* ]]
    [[ "$output" == *"old 1503"* ]]
    [[ "$output" == *"curl 35"* ]]
    [[ "$output" == *"GET /still HTTP/1.1"* ]]
}

@test "the authority's key is its owner's alone, and the sandbox's side has the certificate only" {
    run in_tls_world "$(allow "api.test:443,$REST")" "$address_of"'curl -sS --cacert $CA -x $PROXY https://api.test/ >/dev/null; echo done'
    [ "$(stat -c %a "$DIR/state/egress/ca.key")" = 600 ]
    [ "$(stat -c %a "$DIR/state/egress/ca.pem")" = 644 ]
    not grep -q PRIVATE "$DIR/state/egress/ca.pem"
    openssl x509 -in "$DIR/state/egress/ca.pem" -noout -text | grep -q "CA:TRUE, pathlen:0"
}
