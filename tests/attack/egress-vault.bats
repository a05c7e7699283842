#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# H01 to H07, H11 on the wire: a placeholder that a sandbox sends becomes the secret in the slot it is
# bound to, on its way to the server and nowhere else; what comes back has none; everything else is
# refused, and every use is written down.

load attack
load ../flow/common
load egress
load egress-tls

CANARY='cAnary7f3a+9c51/Kq8w'

setup() {
    common_setup
    egress_setup
    tls_setup
    export BRIG_HOME=$DIR/state
}

REST='protocol="rest",access="full"'

# As in_tls_world, with processes of its own: the keeper is found among them.
in_vault_world() { # RULES SCRIPT
    local user=()
    [ "$(id -u)" -eq 0 ] || user=(-U -r)
    printf '%s' "$1" > "$DIR/rules"
    BRIG="$BRIG" SERVERS="$BATS_TEST_DIRNAME/egress-tls-servers.py" EGRESS_BIN="$EGRESS_BIN" SCRIPT="$asking$2" \
        SSL_CERT_FILE="$DIR/root.crt" CA="$DIR/state/egress/ca.pem" \
        PROXY=http://127.0.0.1:3128 no_proxy= NO_PROXY= \
        timeout -k 5 240 unshare "${user[@]}" -m -n -p -f --mount-proc bash -c "$egress_world"
}

# Inside: ask NAME CURL-ARGUMENT… keeps the answer in $DIR/answers/NAME and says its status.
asking='
unset SSL_CERT_FILE
ask() { local name=$1; shift; curl -sS --cacert $CA -x $PROXY -o "$DIR/answers/$name" -w "$name %{http_code}\n" "$@" 2>&1; }
code() { jq -r .reason_code "$DIR/answers/$1" 2>/dev/null; }
'

bound() { # NAME BIND-ARGUMENT…
    local name=$1
    shift
    [ -e "$DIR/state/vault/secrets" ] && "$BRIG" vault show "$name" >/dev/null 2>&1 ||
        printf '%s' "$CANARY" | "$BRIG" vault set "$name" >/dev/null
    "$BRIG" vault bind "$name" "$@" >/dev/null
}

# How often the servers saw it, in any common form.
seen() {
    python3 - "$CANARY" "$DIR/seen" <<'P'
import base64, sys, urllib.parse
c, text = sys.argv[1], open(sys.argv[2], "rb").read().decode("latin-1")
print(sum(text.count(f) for f in {c, urllib.parse.quote(c, safe=""), base64.b64encode(("me:" + c).encode()).decode()}))
P
}

# No form of it is anywhere the sandbox, its owner or a reader of logs could look.
clean() {
    python3 - "$CANARY" "$DIR/answers" "$DIR/state" <<'P'
import base64, json, os, sys, urllib.parse
c = sys.argv[1]
b = c.encode()
forms = {c, json.dumps(c)[1:-1], urllib.parse.quote(c, safe=""), b.hex()}
for skip in range(3):
    text = base64.b64encode(b"\0" * skip + b).decode().rstrip("=")
    forms.add(text[-(-skip * 8 // 6):(skip + len(b)) * 8 // 6])
for top in sys.argv[2:]:
    for root, _, files in os.walk(top):
        for name in files:
            path = os.path.join(root, name)
            if not os.path.isfile(path):
                continue
            text = open(path, "rb").read().decode("latin-1")
            for f in forms:
                assert f not in text, "%s has %s" % (path, f)
P
}

uses() {
    "$BRIG" sandbox list >/dev/null
    "$BRIG" receipts list --json | jq -r '.. | objects | select(.kind? == "secret_use" or .record? == "secret_use") | 1' | wc -l
}

@test "in the bound slot it reaches the server once, and nothing else" {
    bound KEY --host api.test --slot header:authorization --method GET --path '/v1/**'
    bound KEY --host api.test --slot query:key --path /query
    bound KEY --host api.test --slot body:/auth/token --path /body --method POST
    bound KEY --host api.test --slot basic:password --path /basic
    run in_vault_world "$(allow "api.test:443,$REST")" '
        ask header -H "Authorization: Bearer \${vault:KEY}" https://api.test/v1/x
        ask query "https://api.test/query?a=1&key=%24%7Bvault:KEY%7D&b=2"
        ask body -H "Content-Type: application/json" -d "{\"auth\":{\"token\":\"\${vault:KEY}\"},\"a\":[1, 2]}" https://api.test/body
        ask basic -u "me:\${vault:KEY}" https://api.test/basic
        ask openshell -H "Authorization: Bearer openshell:resolve:env:KEY" https://api.test/v1/y
        ask none https://api.test/v1/z'
    echo "$output"
    for name in header query body basic openshell none; do [[ "$output" == *"$name 200"* ]]; done
    cat "$DIR/seen"
    grep -q "^Authorization: Bearer $CANARY" "$DIR/seen"
    grep -qF "{\"auth\":{\"token\":\"$CANARY\"},\"a\":[1, 2]}" "$DIR/seen"
    grep -q "Authorization: Bearer \*\*\*\*\*" "$DIR/answers/header"
    clean
    [ "$(seen)" -eq 5 ]
    [ "$(counted 'c["secrets"]')" -eq 5 ]
    [ "$(counted 'c["scrubbed"]')" -ge 5 ]
    [ "$(uses)" -eq 5 ]
    grep -q VAULT_SECRET_REFLECTED "$DIR"/state/egress/*
}

# Every signature that a server saw, recomputed by somebody else's arithmetic.
check_signatures() { # COUNT
    python3 - "$CANARY" "$DIR/seen" "$1" <<'P'
import hashlib, hmac, re, sys, urllib.parse
secret, text, wanted = sys.argv[1], open(sys.argv[2], "rb").read().decode("latin-1"), int(sys.argv[3])
q = lambda s: urllib.parse.quote(s, safe="-_.~")
mac = lambda k, m: hmac.new(k, m.encode(), hashlib.sha256).digest()
sha = lambda s: hashlib.sha256(s.encode("latin-1")).hexdigest()
count = 0
for method, target, rest in re.findall(r"(GET|POST|PUT) (\S+) HTTP/1.1\r\n(.*?\r\n\r\n(?:body [a-z]+)?)", text, re.S):
    head, body = rest.split("\r\n\r\n", 1)
    headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in head.split("\r\n"))}
    m = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/(\d{8})/([^/]+)/([^/]+)/aws4_request, SignedHeaders=(\S+), Signature=([0-9a-f]{64})",
                     headers.get("authorization", ""))
    if not m:
        continue
    day, region, service, names, said = m.groups()
    path, _, query = target.partition("?")
    pairs = sorted((q(k), q(v)) for k, v in urllib.parse.parse_qsl(query, keep_blank_values=True))
    canonical = "\n".join([method, path if service == "s3" else urllib.parse.quote(path, safe="/-_.~"),
                           "&".join("%s=%s" % p for p in pairs),
                           "".join("%s:%s\n" % (n, " ".join(headers[n].split())) for n in names.split(";")),
                           names, headers.get("x-amz-content-sha256") or sha(body)])
    key = ("AWS4" + secret).encode()
    for word in (day, region, service, "aws4_request"):
        key = mac(key, word)
    scope = "/".join((day, region, service, "aws4_request"))
    right = mac(key, "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, sha(canonical)])).hex()
    assert right == said, "%s %s: %s\n%s" % (method, target, said, canonical)
    count += 1
assert count == wanted, "%d signatures" % count
P
}

@test "a request signed with a placeholder is signed anew, with a key the sandbox never sees" {
    printf 'AKIDEXAMPLE:%s' "$CANARY" | "$BRIG" vault set AWS >/dev/null
    "$BRIG" vault bind AWS --host api.test --slot sigv4:s3/us-east-1 >/dev/null
    "$BRIG" vault bind AWS --host api.test --slot sigv4:bedrock/us-east-1 --path '/model/**' >/dev/null
    run in_vault_world "$(allow "api.test:443,$REST")" '
        sign() { local name=$1 service=$2; shift 2; ask $name --aws-sigv4 "aws:amz:us-east-1:$service" --user "x-OPENSHELL-RESOLVE-ENV-AWS:none" "$@"; }
        sign get s3 "https://api.test/bucket/a%20b?list-type=2&prefix=x%2Fy&a"
        sign put s3 -X PUT -H "Content-Type: text/plain" -d "body put" https://api.test/bucket/c
        sign post bedrock -H "Content-Type: application/json" -d "body post" "https://api.test/model/a%3A1/invoke"
        sign service sqs https://api.test/bucket/d; code service
        sign path bedrock https://api.test/other; code path
        ask own -H "Authorization: AWS4-HMAC-SHA256 Credential=AKIAMINE/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=00" https://api.test/bucket/e; code own'
    echo "$output"
    for name in get put post; do [[ "$output" == *"$name 200"* ]]; done
    [[ "$output" == *$'service 403\nVAULT_NOT_BOUND'* ]]
    [[ "$output" == *$'path 403\nVAULT_NOT_BOUND'* ]]
    [[ "$output" == *$'own 403\nVAULT_SECOND_CREDENTIAL'* ]]
    cat "$DIR/seen"
    check_signatures 3
    run ! grep -q "OPENSHELL-RESOLVE\|bucket/d\|/other\|bucket/e" "$DIR/seen"
    clean
    [ "$(seen)" -eq 0 ]
    [ "$(uses)" -eq 3 ]
}

@test "OpenShell 91: a rotated value goes out under the same placeholder, an unbound or removed one no more" {
    bound KEY --host api.test --slot header:authorization
    run in_vault_world "$(allow "api.test:443,$REST")" '
        auth="Authorization: Bearer \${vault:KEY}"
        ask first -H "$auth" https://api.test/first
        printf %s another-value-0815 | "$BRIG" vault rotate KEY >/dev/null && ask second -H "$auth" https://api.test/second
        "$BRIG" vault unbind KEY "$("$BRIG" vault show KEY --json | jq -r ".bindings[0].id")" >/dev/null && ask third -H "$auth" https://api.test/third; code third
        "$BRIG" vault bind KEY --host api.test --slot header:authorization >/dev/null && ask fourth -H "$auth" https://api.test/fourth
        "$BRIG" vault remove KEY >/dev/null && ask fifth -H "$auth" https://api.test/fifth; code fifth'
    echo "$output"
    for name in first second fourth; do [[ "$output" == *"$name 200"* ]]; done
    for name in third fifth; do [[ "$output" == *"$name 403"$'\n'VAULT_NOT_BOUND* ]]; done
    [ "$(grep -c "^Authorization: Bearer $CANARY" "$DIR/seen")" -eq 1 ]
    [ "$(grep -c "^Authorization: Bearer another-value-0815" "$DIR/seen")" -eq 2 ]
}

@test "OpenShell 90: what nobody reads gets no secret, whatever the rule says" {
    bound KEY --host api.test --slot header:authorization
    run in_vault_world "$(allow "api.test:443,allow_uninspected_credentials=true")" '
        ask tunnel --cacert "$DIR/root.crt" -H "Authorization: Bearer \${vault:KEY}" https://api.test/tunnel'
    echo "$output"
    [[ "$output" == *"tunnel 200"* ]]
    grep -qF 'Authorization: Bearer ${vault:KEY}' "$DIR/seen"
    [ "$(seen)" -eq 0 ]
    [ "$(uses)" -eq 0 ]
}

@test "credential_signing: what is not signed so is refused" {
    printf 'AKIDEXAMPLE:%s' "$CANARY" | "$BRIG" vault set AWS >/dev/null
    "$BRIG" vault bind AWS --host api.test --slot sigv4:s3/us-east-1 >/dev/null
    "$BRIG" vault bind AWS --host api.test --slot sigv4:s3/eu-west-1 >/dev/null
    run in_vault_world "$(allow "api.test:443,$REST,credential_signing=\"sigv4:body\",signing_service=\"s3\",signing_region=\"us-east-1\"")" '
        sign() { local name=$1 region=$2; shift 2; ask $name --aws-sigv4 "aws:amz:$region:s3" --user "x-OPENSHELL-RESOLVE-ENV-AWS:none" "$@"; }
        sign signed us-east-1 https://api.test/bucket/a
        sign region eu-west-1 https://api.test/bucket/b; code region
        sign unsigned us-east-1 -H "X-Amz-Content-Sha256: UNSIGNED-PAYLOAD" https://api.test/bucket/c; code unsigned
        ask nothing https://api.test/bucket/d; code nothing'
    echo "$output"
    [[ "$output" == *"signed 200"* ]]
    for name in region unsigned nothing; do [[ "$output" == *"$name 403"$'\n'VAULT_SIGNING_REQUIRED* ]]; done
    check_signatures 1
    run ! grep -q "bucket/[bcd]" "$DIR/seen"
}

@test "another host, port, method, path or slot is refused, and the server hears nothing" {
    bound KEY --host api.test --slot header:authorization --method GET --path '/v1/**'
    run in_vault_world "$(allow "api.test:443,$REST" "api.test:9447,$REST" "www.test:443,$REST")" '
        for what in "host https://www.test/v1/x" "port https://api.test:9447/v1/x" "method -XPOST https://api.test/v1/x" "path https://api.test/v2/x"; do
            set -- $what; name=$1; shift
            ask $name -H "Authorization: Bearer \${vault:KEY}" "$@"; code $name
        done
        ask slot -H "X-Api-Key: \${vault:KEY}" https://api.test/v1/x; code slot
        ask name -H "Authorization: Bearer \${vault:OTHER}" https://api.test/v1/x; code name'
    echo "$output"
    [ "$output" = "$(for n in host port method path slot name; do printf '%s 403\nVAULT_NOT_BOUND\n' $n; done)" ]
    [ ! -s "$DIR/seen" ]
    [ "$(counted 'c["refused"]')" -eq 6 ]
    [ "$(counted 'c["secrets"]')" -eq 0 ]
    [ "$(uses)" -eq 0 ]
    clean
}

@test "a placeholder anywhere else is refused: path, host, in pieces, encoded, beside another credential" {
    bound KEY --host api.test --slot header:authorization
    run in_vault_world "$(allow "api.test:443,$REST")" '
        P="\${vault:KEY}"
        B=$(printf "%s" "x$P" | base64)
        ask path "https://api.test/v1/%24%7Bvault:KEY%7D"; code path
        ask middle -H "Authorization: Bearer a${P}b" https://api.test/; code middle
        ask twice -H "Authorization: Bearer $P" -H "X-Other: $P" https://api.test/; code twice
        ask base64 -H "X-Data: $B" https://api.test/; code base64
        ask body -H "Content-Type: text/plain" -d "say $P" https://api.test/; code body
        ask own -H "Authorization: Bearer something-of-its-own" https://api.test/; code own
        ask beside -H "Authorization: Bearer $P" -H "Cookie: session=something-of-its-own" https://api.test/; code beside
        ask cookie -H "Cookie: session=$P" https://api.test/; code cookie
        ask cookies -H "Cookie: $P" https://api.test/; code cookies
        ask tail "https://api.test/bot%24%7Bvault:KEY%7D/send"; code tail
        ask openshell -H "Cookie: t=openshell:resolve:env:KEY" https://api.test/; code openshell
        python3 - "$P" <<E
import socket, ssl, sys
p = sys.argv[1].encode()
s = socket.create_connection(("127.0.0.1", 3128)); s.sendall(b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n"); s.recv(1000)
c = ssl.create_default_context(cafile="$CA"); t = c.wrap_socket(s, server_hostname="api.test")
t.sendall(b"POST /split HTTP/1.1\r\nHost: api.test\r\nContent-Length: 40\r\n\r\n")
for i in range(8):
    t.sendall(p[i:i + 1])
print("split", t.recv(4000).decode().split("\r\n")[0])
E'
    echo "$output"
    for want in "path 403 VAULT_PLACEHOLDER_MISPLACED" "middle 403 VAULT_" "twice 403 VAULT_NOT_BOUND" "base64 403 VAULT_PLACEHOLDER_MISPLACED" \
        "body 403 VAULT_" "own 403 VAULT_SECOND_CREDENTIAL" "beside 403 VAULT_SECOND_CREDENTIAL" "cookie 403 VAULT_PLACEHOLDER_MISPLACED" \
        "cookies 403 VAULT_PLACEHOLDER_MISPLACED" "tail 403 VAULT_PLACEHOLDER_MISPLACED" "openshell 403 VAULT_PLACEHOLDER_MISPLACED"; do
        [[ "$(printf '%s' "$output" | paste -sd' ')" == *"$want"* ]]
    done
    [[ "$output" == *"split HTTP/1.1 403"* ]]
    [[ "$(jq -r .message "$DIR/answers/cookie")" == *"never into a path or a cookie"* ]]
    not grep -q "something-of-its-own" "$DIR/seen"
    [ "$(seen)" -eq 0 ]
    [ "$(uses)" -eq 0 ]
    clean
}

@test "what the server sends back has no secret in it, however it is cut, and compressed is refused" {
    bound KEY --host api.test --slot header:authorization
    run in_vault_world "$(allow "api.test:443,$REST")" '
        A="Authorization: Bearer \${vault:KEY}"
        ask pieces -H "$A" https://api.test/pieces
        ask close -D "$DIR/answers/close-head" -H "$A" https://api.test/until-close
        ask gzip -H "$A" -H "Accept-Encoding: gzip" https://api.test/gzip; code gzip
        ask later -H "$A" https://api.test/a -o "$DIR/answers/again" https://api.test/pieces'
    echo "$output"
    [[ "$output" == *"pieces 200"*"close 200"*"gzip 502"*"VAULT_ANSWER_ENCODED"*"later 200"* ]]
    [ "$(seen)" -ge 4 ]
    grep -q "Bearer \*\*\*" "$DIR/answers/pieces"
    grep -q "Bearer \*\*\*" "$DIR/answers/close"
    grep -q "X-Seen: .*Bearer \*\*\*" "$DIR/answers/close-head"
    [ "$(stat -c %s "$DIR/answers/pieces")" -gt 100 ]
    clean
}

# The keeper is stopped, not ended: whoever asks it waits, and whoever need not does not.
@test "what nothing is bound to is asked once, and a binding made meanwhile holds for the next request" {
    bound KEY --host www.test --slot header:authorization
    run in_vault_world "$(allow "api.test:443,$REST" "second.test:443,$REST")" '
        keeper() { for p in /proc/[0-9]*; do
            [ "$(tr "\0" " " <$p/cmdline 2>/dev/null)" = "keeper vault apart " ] && kill -$1 ${p#/proc/}
        done; }
        own() { ask $1 -H "Authorization: Bearer of-its-own" https://api.test/$2; }
        sleep 3 # of a vault changed a moment ago nothing is remembered
        h2() { ask $1 --http2 -H "Authorization: Bearer of-its-own" https://second.test/hello; }
        own asked x
        h2 asked2
        keeper STOP
        own remembered x
        h2 remembered2; h2 remembered2
        own another y; code another
        keeper CONT
        own answered y
        "$BRIG" vault bind KEY --host api.test --slot header:authorization >/dev/null
        own late x; code late
        ask filled -H "Authorization: Bearer \${vault:KEY}" https://api.test/x
        "$BRIG" vault bind KEY --host second.test --slot header:authorization >/dev/null
        h2 late2; code late2'
    echo "$output"
    for want in "asked 200" "asked2 200" "remembered 200" $'remembered2 200\nremembered2 200' $'late2 403\nVAULT_SECOND_CREDENTIAL' $'another 504\nVAULT_TIMEOUT' "answered 200" $'late 403\nVAULT_SECOND_CREDENTIAL' "filled 200"; do
        [[ "$output" == *"$want"* ]]
    done
    [ "$(seen)" -eq 1 ]
    clean
}

# Here because its egress is the only one that this world sees.
@test "a server that leaves behind the handshake keeps egress from nothing, and is missed when it is asked" {
    run in_vault_world "$(allow "api.test:9451,$REST")" 'python3 - <<"E"
import os, socket, ssl, subprocess, time
s = socket.create_connection(("127.0.0.1", 3128))
s.sendall(b"CONNECT api.test:9451 HTTP/1.1\r\nHost: api.test:9451\r\n\r\n")
s.recv(1000)
t = ssl.create_default_context(cafile=os.environ["CA"]).wrap_socket(s, server_hostname="api.test")
def ticks():
    return sum(sum(map(int, open("/proc/%s/stat" % p.decode()).read().rsplit(")", 1)[1].split()[11:13]))
               for p in subprocess.check_output(["pgrep", "-x", "egress"]).split())
before = ticks()
time.sleep(4)
print("busy", ticks() - before > 20)
t.sendall(b"GET / HTTP/1.1\r\nHost: api.test:9451\r\n\r\n")
print(t.recv(200)[:12].decode())
E'
    echo "$output"
    [[ "$output" == *$'busy False\nHTTP/1.1 502'* ]]
}

@test "without a vault a placeholder is refused and says so; everything else goes on" {
    run in_vault_world "$(allow "api.test:443,$REST")" '
        ask plain https://api.test/
        ask header -H "Authorization: Bearer \${vault:KEY}" https://api.test/; code header
        ask body -H "Content-Type: application/octet-stream" -d "x\${vault:KEY}" https://api.test/; code body'
    echo "$output"
    [ "$output" = $'plain 200\nheader 403\nVAULT_NONE\nbody 403\nVAULT_NONE' ]
}

@test "a vault with a passphrase gives sandboxes nothing, and one that cannot be opened neither; both say so" {
    bound KEY --host api.test --slot header:authorization
    printf 'correct horse battery staple' >"$DIR/words"
    "$BRIG" vault rekey --master passphrase --new-passphrase-file "$DIR/words" >/dev/null
    ask='ask header -H "Authorization: Bearer \${vault:KEY}" https://api.test/; code header; jq -r .message "$DIR/answers/header"
        ask plain https://api.test/'
    run in_vault_world "$(allow "api.test:443,$REST")" "$ask"
    echo "$output"
    [[ "$output" == $'header 403\nVAULT_LOCKED\nthe vault needs a passphrase'*$'\nplain 200' ]]
    [ "$(counted 'c["secrets"]')" -eq 0 ]
    # Control: with its key in a file again it opens; and without that file it does not.
    "$BRIG" vault rekey --master file --passphrase-file "$DIR/words" >/dev/null
    rm "$DIR/log" # the servers of the last world wrote "ready" to it
    run in_vault_world "$(allow "api.test:443,$REST")" "$ask"
    echo "$output"
    [[ "$output" == $'header 200\n'* ]]
    rm "$DIR"/state/vault/*.key "$DIR/log"
    run in_vault_world "$(allow "api.test:443,$REST")" "$ask"
    echo "$output"
    [[ "$output" == $'header 503\nVAULT_UNAVAILABLE\nthe vault cannot be opened'*$'\nplain 200' ]]
    clean
}

@test "a keeper that is gone gives nothing, and what asks is refused" {
    bound KEY --host api.test --slot header:authorization
    run in_vault_world "$(allow "api.test:443,$REST")" '
        A="Authorization: Bearer \${vault:KEY}"
        ask before -H "$A" https://api.test/
        for p in /proc/[0-9]*; do
            [ "$(tr "\0" " " <$p/cmdline 2>/dev/null)" = "keeper vault apart " ] && kill -9 ${p#/proc/}
        done
        ask after -H "$A" https://api.test/; code after
        ask plain https://api.test/'
    echo "$output"
    [ "$output" = $'before 200\nafter 503\nVAULT_UNAVAILABLE\nplain 200' ]
    [ "$(seen)" -eq 1 ]
    clean
}

@test "HTTP/2: each stream gets the secret it is bound to, and none comes back" {
    bound KEY --host second.test --slot header:authorization --path '/hello'
    bound KEY --host second.test --slot body:/token --method POST --path /echo
    run in_vault_world "$(allow "second.test:443,$REST")" '
        A="Authorization: Bearer \${vault:KEY}"
        J="Content-Type: application/json"
        h2() { ask "$@" --http2; }
        h2 header -H "$A" https://second.test/hello
        h2 body -H "$J" -d "{\"token\":\"\${vault:KEY}\",\"a\":[1, 2]}" https://second.test/echo
        curl -sS --cacert $CA -x $PROXY --http2 -H "$A" -o /dev/null https://second.test/hello -o "$DIR/answers/later" https://second.test/hello -w "same %{http_version} %{http_code}\n"
        h2 path -H "$A" https://second.test/other; code path
        h2 slot -H "X-Api-Key: \${vault:KEY}" https://second.test/hello; code slot
        h2 misplaced -H "$J" -d "{\"other\":\"a\${vault:KEY}\"}" https://second.test/echo; code misplaced
        h2 own -H "Authorization: Bearer of-its-own" https://second.test/hello; code own
        h2 plain https://second.test/big
        head -c 100000 /dev/zero | tr "\0" x >$DIR/large; printf "\${vault:KEY}" >>$DIR/large
        h2 streamed -H "Content-Type: text/plain" --data-binary @$DIR/large https://second.test/upload
        for p in /proc/[0-9]*; do
            [ "$(tr "\0" " " <$p/cmdline 2>/dev/null)" = "keeper vault apart " ] && kill -9 ${p#/proc/}
        done
        h2 gone -H "$A" https://second.test/hello; code gone'
    echo "$output"
    flat=$(printf '%s' "$output" | paste -sd' ')
    for want in "header 200" "body 200" "same 2 200" "path 403 VAULT_NOT_BOUND" "slot 403 VAULT_NOT_BOUND" "misplaced 403 VAULT_" \
        "own 403 VAULT_SECOND_CREDENTIAL" "plain 200" "gone 503 VAULT_UNAVAILABLE"; do
        [[ "$flat" == *"$want"* ]] || { echo "missing: $want"; false; }
    done
    [[ "$flat" != *"streamed 200"* ]]
    [ "$(grep -c "authorization: Bearer $CANARY" "$DIR/nghttpd.log")" -eq 3 ]
    not grep -q "of-its-own\|vault:KEY" "$DIR/nghttpd.log"
    grep -q "^{\"token\":\"\*\*\*\*\*\**\",\"a\":\[1, 2\]}" "$DIR/answers/body"
    [ "$(stat -c %s "$DIR/answers/plain")" -eq 3000000 ]
    [ "$(counted 'c["secrets"]')" -eq 4 ]
    [ "$(counted 'c["scrubbed"]')" -eq 1 ]
    [ "$(uses)" -eq 4 ]
    clean
}

# Inside: node with a session of HTTP/2 to the server that says in one stream what it heard in another.
echo_client='
import net from "node:net";
import http2 from "node:http2";
import { readFileSync } from "node:fs";
const socket = net.connect(3128, "127.0.0.1");
socket.write("CONNECT second.test:9450 HTTP/1.1\r\nHost: second.test:9450\r\n\r\n");
await new Promise((done) => socket.once("data", done));
import tls from "node:tls";
const session = http2.connect("https://second.test:9450", {
    createConnection: () => tls.connect({ socket, servername: "second.test", ALPNProtocols: ["h2"], ca: readFileSync(process.env.CA) }) });
session.on("error", (e) => console.log("session", e.code));
const ask = (path, headers = {}) => {
    const stream = session.request({ ":path": path, ...headers });
    const got = { path, status: 0, body: "", more: [] };
    got.begun = new Promise((done) => stream.once("data", done).once("close", done));
    got.done = new Promise((done) => stream.once("close", () => done(got)));
    stream.on("headers", (h) => got.more.push(JSON.stringify(h)));
    stream.on("response", (h) => { got.status = h[":status"]; got.more.push(JSON.stringify(h)); });
    stream.on("trailers", (h) => got.more.push(JSON.stringify(h)));
    stream.on("data", (d) => (got.body += d.toString("latin1")));
    stream.on("error", (e) => (got.error = e.code));
    return got;
};
const key = (name) => ({ authorization: "Bearer ${vault:" + name + "}" });
const show = (got) => console.log(got.path, got.status, got.error ?? "whole", got.body.trim().replace(/\n/g, "|"), ...got.more);
'

in_echo_world() { # SCRIPT, as a module behind $echo_client
    ECHO_SERVER="$BATS_TEST_DIRNAME/egress-echo.mjs" MODULE="$echo_client$1
session.close(); socket.destroy(); process.exit(0);" in_vault_world "$(allow "second.test:9450,$REST")" \
        'timeout 40 node --input-type=module -e "$MODULE" 2>&1 | tee "$DIR/answers/said"'
}

@test "HTTP/2: a secret comes back in no other stream, begun before it or not" {
    CANARY=canary-7f3a9c51kq8w # one that may also be the name of a header
    bound KEY --host second.test --port 9450 --slot header:authorization
    run in_echo_world '
        const slow = ask("/slow"); await slow.begun;
        const coded = ask("/coded"); await coded.begun;
        const late = ask("/late", { "accept-encoding": "gzip" });
        const before = ask("/slow"); await before.begun;
        show(await ask("/key", key("KEY")).done);
        for (const got of [slow, before, coded, late]) show(await got.done);
        const after = ask("/slow"); await after.begun;
        show(await ask("/key", key("KEY")).done);
        show(await after.done);
        show(await ask("/hints", key("KEY")).done);'
    echo "$output"
    [ "$(grep -c "^Bearer $CANARY" "$DIR/heard")" -eq 2 ] # control: it did go out
    [ "$(grep -c "^/slow 200 whole begun|heard Bearer \*\*\*\*" <<<"$output")" -eq 3 ]
    [ "$(grep -c "^/key 200 whole taken" <<<"$output")" -eq 2 ]
    grep -q "^/coded 200 ERR_HTTP2_STREAM_ERROR" <<<"$output"
    grep -q "^/late 502 " <<<"$output"
    grep -q '^/hints 200 whole hinted.*:103.*"link":"<\*\*\*.*"x-value":"\*\*\*.*"x-\*\*\*.*"x-trailer":"\*\*\*' <<<"$output"
    [[ "$output" != *"$CANARY"* ]]
    [ "$(counted 'c["scrubbed"]')" -ge 7 ]
    clean
}

@test "HTTP/2: a connection that has carried eight secrets gets no ninth, and another one does" {
    for n in 1 2 3 4 5 6 7 8 9; do
        CANARY=canary-number-$n-c51kq8w
        bound "K$n" --host second.test --port 9450 --slot header:authorization
    done
    run in_echo_world '
        const slow = ask("/slow"); await slow.begun;
        for (const n of [1, 2, 3, 4, 5, 6, 7, 8, 9]) show(await ask("/key", key("K" + n)).done);
        show(await slow.done);'
    echo "$output"
    [ "$(grep -c "^/key 200 whole taken" <<<"$output")" -eq 8 ]
    grep -q "^/key 429 .*VAULT_LIMIT" <<<"$output"
    [ "$(wc -l <"$DIR/heard")" -eq 8 ]
    [[ "$output" != *canary-number* ]]
    rm "$DIR/log"
    run in_echo_world 'show(await ask("/key", key("K9")).done);'
    grep -q "^/key 200 whole taken" <<<"$output"
}

# Inside: who has it in memory, of egress, its resolver and the keeper.
memory='
looked() { python3 "$LOOK" "$TURNED" $(pgrep -x "egress|keeper"); }
forgotten() { ! looked | grep -v ": 0 times"; }
'

@test "H01: when a secret has gone out nobody has it in memory any more, and nobody leaves a core" {
    bound KEY --host second.test --port 9450 --slot header:authorization
    bound KEY --host api.test --slot header:authorization
    bound KEY --host api.test --slot body:/token --path /body
    bound KEY --host api.test --slot basic:password --path /basic
    LOOK="$BATS_TEST_DIRNAME/memory-of" TURNED=$(rev <<<"$CANARY") ECHO_SERVER="$BATS_TEST_DIRNAME/egress-echo.mjs" \
        MODULE="$echo_client"'
        const slow = ask("/slow", key("KEY")); await slow.begun;
        console.log("begun"); await new Promise((done) => process.stdin.once("data", done));
        show(await ask("/key", key("KEY")).done);
        show(await slow.done);
        session.close(); socket.destroy(); process.exit(0);' \
        run in_vault_world "$(allow "second.test:9450,$REST" "api.test:443,$REST")" "$memory"'
        mkfifo "$DIR/go"
        node --input-type=module -e "$MODULE" <"$DIR/go" >"$DIR/answers/said" 2>&1 &
        exec 7>"$DIR/go"
        for n in $(seq 600); do grep -q begun "$DIR/answers/said" && break; sleep 0.1; done
        echo "under way"; looked
        echo >&7
        wait $!
        cat "$DIR/answers/said"
        A="Authorization: Bearer \${vault:KEY}"
        ask header -H "$A" https://api.test/v1/x -o "$DIR/answers/two" https://api.test/pieces
        ask close -H "$A" https://api.test/until-close
        ask body -H "Content-Type: application/json" -d "{\"token\":\"\${vault:KEY}\"}" https://api.test/body
        ask basic -u "me:\${vault:KEY}" https://api.test/basic
        ask refused -H "$A" -H "Cookie: a=b" https://api.test/
        for n in $(seq 20); do forgotten >/dev/null && break; sleep 0.5; done
        for p in $(pgrep -x "egress|keeper"); do awk "/^Max core file size/ { print \"core\", \$5, \$6 }" /proc/$p/limits; done
        echo "after"; looked'
    echo "$output"
    [[ "${output%%after*}" == *"egress: "[1-9]*" times"* ]] # control: it is found while it is needed
    [[ "$output" == *"basic 200"*after* ]]
    [ "$(grep -cx "core 0 0" <<<"$output")" -ge 3 ]
    [ "$(grep -c "^core" <<<"$output")" -eq "$(grep -cx "core 0 0" <<<"$output")" ]
    after=${output##*after}
    [ "$(grep -c ": 0 times" <<<"$after")" -ge 3 ]
    [ "$(grep -c " times" <<<"$after")" -eq "$(grep -c ": 0 times" <<<"$after")" ]
    clean
}
