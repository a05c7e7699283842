#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The clients people have, in real sandboxes, with what a sandbox gives them and no option of their
# own: what a rule allows works through TLS that egress looks into, what it does not is refused, the
# server hears nothing of it, and the client is told why.

load attack
load ../flow/sandbox
load ../flow/network
load egress-tls
load egress-clients

setup() {
    common_setup
    world_begin
    servers_begin
}

teardown() {
    servers_end
    world_end
}

only_ok_was_asked() { # N
    [ "$(asked | wc -l)" -eq "$1" ]
    [ "$(asked | grep -c '^GET /ok/')" -eq "$1" ]
}

@test "curl: HTTP/1.1 and HTTP/2, by the proxy, by SOCKS and past it" {
    policy_for /usr/bin/curl
    client sh -c '
        say() { curl -sS --max-time 30 -w "%{http_version} %{http_code}\n" "$@" 2>&1; }
        say https://public.test:8443/ok/proxy
        say --noproxy "*" https://public.test:8443/ok/past
        say -x socks5h://127.0.0.1:3128 https://public.test:8443/ok/socks
        say https://public.test:9443/hello
        say --noproxy "*" --http2 https://public.test:9443/hello
        say https://public.test:8443/no/path
        say -d x https://public.test:8443/ok/method
        say https://public.test:9443/other
        say --noproxy "*" https://public.test:8443/no/past'
    echo "$output"
    flat=${output//$'\n'/ }
    [[ $flat == "GET /ok/proxy seen 1.1 200 GET /ok/past seen 1.1 200 GET /ok/socks seen 1.1 200 hello over h2 2 200 hello over h2 2 200 "* ]]
    [ "$(grep -c 'EGRESS_REQUEST.*403$' <<<"$output")" -eq 4 ]
    only_ok_was_asked 3
    not grep -q /other "$DIR/nghttpd.log"
}

@test "python: urllib, and http.client over a socket of its own" {
    policy_for /usr/bin/python3.*
    client /usr/bin/python3 -c '
import http.client, ssl, urllib.error, urllib.request
print(urllib.request.urlopen("https://public.test:8443/ok/urllib", timeout=30).read().decode(), end="")
try:
    urllib.request.urlopen("https://public.test:8443/no/urllib", timeout=30)
except urllib.error.HTTPError as e:
    print(e.code, e.read().decode())
c = http.client.HTTPSConnection("public.test", 8443, timeout=30)
for path in "/ok/1", "/no/2", "/ok/3":
    c.request("GET", path)
    r = c.getresponse()
    print(r.status, r.read().decode())'
    echo "$output"
    status_is 0
    [[ $output == *"GET /ok/urllib seen"*403*EGRESS_REQUEST*"200 GET /ok/1 seen"*403*EGRESS_REQUEST*"200 GET /ok/3 seen"* ]]
    only_ok_was_asked 3
}

@test "node: https, http2 and what it fetches" {
    policy_for /usr/bin/node
    script='
import https from "node:https";
import http2 from "node:http2";
const get = (path) => new Promise((done, fail) => https.get({host: "public.test", port: 8443, path, timeout: 30000}, (r) => {
    let all = "";
    r.on("data", (d) => (all += d)).on("end", () => done(r.statusCode + " " + all));
}).on("error", fail));
console.log(await get("/ok/https"));
console.log(await get("/no/https"));
const fetched = await fetch("https://public.test:8443/ok/fetch");
console.log(fetched.status, await fetched.text());
const refused = await fetch("https://public.test:8443/ok/fetch", {method: "DELETE"});
console.log(refused.status, (await refused.json()).reason_code);
const session = http2.connect("https://public.test:9443");
const stream = (path) => new Promise((done, fail) => {
    let all = "", status = 0;
    session.on("error", fail);
    session.request({":path": path}).on("response", (h) => (status = h[":status"])).on("data", (d) => (all += d))
        .on("end", () => done("h2 " + status + " " + all)).on("error", fail).end();
});
console.log((await Promise.all([stream("/hello"), stream("/other"), stream("/hello")])).join("\n"));
session.close();'
    client node --input-type=module -e "$script"
    echo "$output"
    status_is 0
    [[ $output == *"200 GET /ok/https seen"*403*EGRESS_REQUEST*"200 GET /ok/fetch seen"*"403 EGRESS_REQUEST"* ]]
    [ "$(grep -c 'h2 200 hello over h2' <<<"$output")" -eq 2 ]
    [ "$(grep -c 'h2 403 .*EGRESS_REQUEST' <<<"$output")" -eq 1 ]
    only_ok_was_asked 2
    not grep -q /other "$DIR/nghttpd.log"
}

@test "openssl s_client and nghttp see a certificate that holds, and are judged like anybody" {
    policy_for /usr/bin/openssl /usr/bin/nghttp
    client sh -c '
        talk() {
            printf "GET %s HTTP/1.1\r\nHost: public.test:8443\r\nConnection: close\r\n\r\n" "$1" |
                timeout 30 openssl s_client -quiet -verify_return_error -CAfile "$SSL_CERT_FILE" \
                    -verify_hostname public.test -connect public.test:8443 -servername public.test 2>/dev/null
        }
        talk /ok/openssl; echo
        talk /no/openssl; echo
        nghttp -t 30 -v https://public.test:9443/hello https://public.test:9443/other 2>&1'
    echo "$output"
    [[ $output == *"GET /ok/openssl seen"*'GET /no/openssl here'* ]]
    says "hello over h2"
    says "GET /other here" # in whichever order
    only_ok_was_asked 1
    not grep -q /other "$DIR/nghttpd.log"
}

@test "git: a repository is cloned, and nothing can be pushed to it" {
    policy_of '  git:' '    binaries: [{path: /usr/lib/git-core/git-remote-http}]' '    endpoints:' \
        '      - host: public.test' '        port: 8443' '        protocol: rest' '        rules:' \
        '          - allow: {method: GET, path: /git/r.git/info/refs, query: {service: git-upload-pack}, strict: true}' \
        '          - allow: {method: POST, path: /git/r.git/git-upload-pack}'
    export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
    git init -q --bare "$DIR/git/r.git"
    git -C "$DIR/git/r.git" config http.receivepack true
    git init -q seed
    head -c 200000 /dev/urandom | base64 >seed/file
    git -C seed add file
    git -C seed commit -q -m first
    # Control: without a sandbox anybody may push.
    in_world env GIT_SSL_CAINFO="$DIR/root.crt" git -C seed push -q https://public.test:8443/git/r.git HEAD:refs/heads/master
    before=$(git -C "$DIR/git/r.git" rev-parse master)
    : >"$DIR/asked"
    client sh -c '
        export GIT_TERMINAL_PROMPT=0 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
        cd /tmp && git clone -q -b master https://public.test:8443/git/r.git c 2>&1 || exit 3
        sha256sum <c/file
        cd c && git commit -q --allow-empty -m mine && git fetch -q && echo fetched
        git push https://public.test:8443/git/r.git HEAD:refs/heads/master 2>&1 || echo "push failed"
        git clone -q https://public.test:8443/git/other.git /tmp/d 2>&1 || echo "other failed"'
    echo "$output"
    asked
    [[ $output == *"$(sha256sum <seed/file)"*fetched*403*"push failed"*403*"other failed"* ]]
    [ "$(git -C "$DIR/git/r.git" rev-parse master)" = "$before" ]
    not grep -q 'receive-pack\|other.git' <(asked)
}

@test "programs that no rule names are refused: those beside, and copies" {
    policy_for /usr/bin/curl
    client sh -c '
        cp /usr/bin/curl /tmp/curl && chmod 755 /tmp/curl
        /tmp/curl -sS --max-time 30 https://public.test:8443/ok/copy 2>&1
        node -e "fetch(\"https://public.test:8443/ok/node\").then((r) => console.log(r.status), (e) => console.log(\"failed\", e.cause?.code))" 2>&1
        /usr/bin/python3 -c "import urllib.request as u; u.urlopen(\"https://public.test:8443/ok/python\", timeout=30)" 2>&1 | tail -1
        curl -sS --max-time 30 https://public.test:8443/ok/named'
    echo "$output"
    [[ $output == *"GET /ok/named seen"* ]]
    only_ok_was_asked 1
}

@test "Java's trust store has the authority and this machine's roots, and its options name it" {
    policy_for /usr/bin/curl
    client sh -c '
        echo "$JAVA_TOOL_OPTIONS"
        store=${JAVA_TOOL_OPTIONS#*trustStore=}; store=${store%% *}
        word=${JAVA_TOOL_OPTIONS#*trustStorePassword=}; word=${word%% *}
        openssl pkcs12 -in "$store" -passin "pass:$word" -nokeys -legacy 2>/dev/null >/tmp/all.pem ||
            openssl pkcs12 -in "$store" -passin "pass:$word" -nokeys >/tmp/all.pem || exit 3
        openssl pkcs12 -in "$store" -passin "pass:$word" -nocerts -nodes 2>/dev/null | grep -c PRIVATE
        curl -sS --max-time 30 --cacert /tmp/all.pem https://public.test:8443/ok/java'
    echo "$output"
    [[ $output == *"trustStoreType=PKCS12"*$'\n0\n'*"GET /ok/java seen"* ]]
}
