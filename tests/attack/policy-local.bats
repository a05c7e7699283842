#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# policy.local against whoever is inside: nothing there but what it says, nobody else's, nothing that
# can be had by asking much, and nothing outside by that name. Each has a question that is answered
# as its control.

load attack
load egress

setup() {
    egress_setup
    # Somebody outside has the name, too.
    echo "45.33.32.10 policy.local" >>"$DIR/hosts"
}

asking() { # as allow, and proposals are on
    allow "$@" | python3 -c 'import json, sys; r = json.load(sys.stdin); r["agent_proposals"] = True
print(json.dumps(r, sort_keys=True, separators=(",", ":")), end="")'
}

HELPERS='
say() { curl -s --max-time 100 -x $PROXY "$@"; }
code() { say -o /dev/null -w "%{http_code} " "$@"; }
body() { # NAME HOST PORT
    printf "{\"intent_summary\":\"x\",\"operations\":[{\"addRule\":{\"ruleName\":\"%s\",\"rule\":{\"binaries\":[{\"path\":\"/usr/bin/curl\"}],\"endpoints\":[{\"host\":\"%s\",\"port\":%s}]}}}]}" "$1" "$2" "$3"
}
# Bodies are read so many a second: until this one is.
post() {
    local n
    for n in $(seq 100); do
        say -w "\n%{http_code}" -d "$(body "$@")" http://policy.local/v1/proposals >$DIR/said.$$
        [ "$(tail -n 1 $DIR/said.$$)" = 429 ] || break
        sleep 0.3
    done
    head -n 1 $DIR/said.$$
}
'

# raw BYTES: what is answered to exactly these bytes at the proxy
RAW='
raw() { python3 -c "
import socket, sys
s = socket.create_connection((\"127.0.0.1\", 3128)); s.settimeout(30)
s.sendall(sys.argv[1].encode().decode(\"unicode_escape\").encode(\"latin1\"))
r = b\"\"
try:
    while True:
        b = s.recv(65536)
        if not b: break
        r += b
except OSError: pass
print(r.decode(\"latin1\").split(chr(13))[0][:30] or \"reset\")" "$1"; }
'

@test "it is this host and port in plain HTTP, and nothing else; nobody outside is asked for it" {
    run in_world "$(asking api.test:80)" "$HELPERS$RAW"'
        code http://policy.local/v1/policy/current; echo
        code http://policy.local:80/v1/policy/current; echo
        say -o /dev/null -w "%{http_connect} " -p http://policy.local/v1/policy/current; echo
        say -o /dev/null -w "%{http_connect} " -k https://policy.local/v1/policy/current; echo
        say -o /dev/null -w "%{http_connect} " -k https://policy.local:80/v1/policy/current; echo
        curl -s -o /dev/null --max-time 20 -x socks5h://127.0.0.1:3128 http://policy.local/v1/policy/current; echo "socks $?"
        code http://policy.local:8080/v1/policy/current; echo
        code http://policy.local./v1/policy/current; echo
        code http://x.policy.local/v1/policy/current; echo
        code -H "Host: api.test" http://policy.local/v1/policy/current; echo
        code -H "Host: policy.local:8080" http://policy.local/v1/policy/current; echo
        raw "GET http://POLICY.local/v1/policy/current HTTP/1.1\r\nHost: policy.local\r\n\r\n"
        raw "GET http://policy.local/v1/policy/current HTTP/1.0\r\n\r\n"
        raw "GET https://policy.local/v1/policy/current HTTP/1.1\r\nHost: policy.local\r\n\r\n"
        raw "POST http://policy.local/v1/proposals HTTP/1.1\r\nHost: policy.local\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        raw "GET http://policy.local/v1/policy/../policy/current HTTP/1.1\r\nHost: policy.local\r\n\r\n"
        raw "GET http://policy.local/v1/policy/current HTTP/1.1\r\nHost: policy.local\r\nContent-Length: 3\r\n\r\nabc"
        raw "DELETE http://policy.local/v1/proposals HTTP/1.1\r\nHost: policy.local\r\n\r\n"
        name=$(python3 -c "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(30)
s.sendto(bytes.fromhex(\"000101000001000000000000\") + b\"\\6policy\\5local\\0\\0\\1\\0\\1\", (\"198.18.0.1\", 53))
print(socket.inet_ntoa(s.recv(600)[-4:]))")
        past() { curl -sk -o /dev/null --noproxy "*" --resolve "policy.local:80:$name" --resolve "policy.local:443:$name" --max-time 20 "$@"; }
        past -w "%{http_code}\n" http://policy.local/v1/policy/current
        past -w "%{http_code}\n" -H "Host: api.test" http://policy.local/v1/policy/current
        past https://policy.local:80/; echo "tls $?"
        past https://policy.local/; echo "443 $?"
        code http://api.test/control; echo'
    [ "${lines[0]}" = "200 " ]
    [ "${lines[1]}" = "200 " ]
    [ "${lines[2]}" = "403 " ]
    [ "${lines[3]}" = "403 " ]
    [ "${lines[4]}" = "403 " ]
    [ "${lines[5]}" = "socks 97" ]
    [ "${lines[6]}" = "403 " ]
    [ "${lines[7]}" = "403 " ]
    [ "${lines[8]}" = "403 " ]
    [ "${lines[9]}" = "400 " ]
    [ "${lines[10]}" = "400 " ]
    [[ "${lines[11]}" == "HTTP/1.1 421 "* ]]
    [[ "${lines[12]}" == "HTTP/1.1 421 "* ]]
    [[ "${lines[13]}" == "HTTP/1.1 400 "* ]]
    [[ "${lines[14]}" == "HTTP/1.1 400 "* ]]
    [[ "${lines[15]}" == "HTTP/1.1 404 "* ]]
    [[ "${lines[16]}" == "HTTP/1.1 400 "* ]]
    [[ "${lines[17]}" == "HTTP/1.1 405 "* ]]
    [ "${lines[18]}" = 200 ]
    [ "${lines[19]}" = 421 ]
    [[ "${lines[20]}" == "tls "[1-9]* ]]
    [[ "${lines[21]}" == "443 "[1-9]* ]]
    [ "${lines[22]}" = "200 " ]
    not grep -q "GET\|policy.local" <(grep -v control "$DIR/log")
}

@test "rules that name policy.local do not lead outside either" {
    run in_world "$(asking api.test:80 | sed 's/api.test/policy.local/')" 'true'
    [ "$status" -ne 0 ]
    run in_world "$(asking api.test:80)" "$HELPERS"'code http://policy.local/v1/denials'
    [ "$output" = "200 " ]
}

@test "what leads to this machine, its neighbours or metadata cannot be asked for" {
    run in_world "$(asking api.test:80)" "$HELPERS"'
        n=0
        for host in 127.0.0.1 0.0.0.0 localhost a.localhost 169.254.169.254 169.254.1.1 metadata.google.internal instance-data 10.0.0.1 192.168.1.1 \
                    100.64.0.1 198.18.0.1 2130706433 0x7f000001 127.1 ::1 fe80::1 ::ffff:127.0.0.1 fd00::1 policy.local b.sandbox.internal "*.test" "*"; do
            n=$((n + 1)); post "n$n" "$host" 80
        done | grep -c "accepted_chunk_ids\":\[\],\"rejection_reasons\":\[\"operation 1: host"
        post c1 api.test 6443 | grep -c "control planes"
        post good other.test 80 | grep -c "accepted_chunk_ids\":\[\"prop-"'
    [ "${lines[0]}" -eq 23 ]
    [ "${lines[1]}" -eq 1 ]
    [ "${lines[2]}" -eq 1 ]
    [ "$(grep -c '"kind":"proposal"' "$DIR/state/egress/proposals")" -eq 1 ]
    not grep -q GET "$DIR/log"
}

@test "bodies that are too much are refused, and cost nothing" {
    run in_world "$(asking api.test:80)" "$HELPERS$RAW"'
        head -c 65537 /dev/zero | tr "\0" a >$DIR/large
        raw "POST http://policy.local/v1/proposals HTTP/1.1\r\nHost: policy.local\r\nContent-Length: 99999999999\r\n\r\n"
        code -H "Expect:" --data-binary @$DIR/large http://policy.local/v1/proposals; echo
        code -H "Expect:" -H "Transfer-Encoding: chunked" --data-binary @$DIR/large http://policy.local/v1/proposals; echo
        sleep 1.2
        python3 -c "print(\"[\" * 60000)" >$DIR/deep
        code -H "Expect:" --data-binary @$DIR/deep http://policy.local/v1/proposals; echo
        code -H "Content-Encoding: gzip" -d "{}" http://policy.local/v1/proposals; echo
        post good other.test 80 | grep -c "prop-"
        code http://api.test/control; echo'
    [[ "${lines[0]}" == "HTTP/1.1 413 "* ]]
    [ "${lines[1]}" = "413 " ]
    [ "${lines[2]}" = "413 " ]
    [ "${lines[3]}" = "400 " ]
    [ "${lines[4]}" = "415 " ]
    [ "${lines[5]}" -eq 1 ]
    [ "${lines[6]}" = "200 " ]
}

@test "floods of questions end at their ceilings, and the rest goes on" {
    WORLD_SECONDS=400 run in_world "$(asking api.test:80)" "$HELPERS"'
        for n in $(seq 24); do post "n$n" "h$n.test" 80; done >$DIR/answers.txt
        grep -c "accepted_chunk_ids\":\[\"prop-" $DIR/answers.txt
        grep -c "wait for a person" $DIR/answers.txt
        # More than are read in a second, all at once.
        # By one program: a busy machine would take seconds to start as many.
        python3 - <<E
import socket
def ask():
    c = socket.create_connection(("127.0.0.1", 3128)); c.settimeout(50)
    c.sendall(b"POST http://policy.local/v1/proposals HTTP/1.1\r\nHost: policy.local\r\nContent-Length: 2\r\n\r\n{}")
    return c.recv(100)[9:12]
print("some" if any(ask() == b"429" for i in range(1000)) else "none")
E
        # And more who wait than may.
        id=$(grep -o "prop-[a-z0-9]*" $DIR/answers.txt | head -n 1)
        for n in $(seq 48); do (code "http://policy.local/v1/proposals/$id/wait?timeout=40" >$DIR/wait.$n) & done
        while [ "$(cat $DIR/wait.* | wc -w)" -lt 16 ]; do sleep 0.1; done
        code http://api.test/control; echo
        wait
        cat $DIR/wait.* | tr " " "\n" | grep -c 200
        cat $DIR/wait.* | tr " " "\n" | grep -c 429'
    [ "${lines[0]}" -eq 16 ]
    [ "${lines[1]}" -eq 8 ]
    [ "${lines[2]}" = some ]
    [ "${lines[3]}" = "200 " ]
    [ "${lines[4]}" -eq 32 ]
    [ "${lines[5]}" -eq 16 ]
    [ "$(grep -c '"kind":"proposal"' "$DIR/state/egress/proposals")" -eq 16 ]
}
