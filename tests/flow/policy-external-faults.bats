#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A decider outside of Brig that is not who it should be, or does not come to an end: nothing runs, the
# receipt says why, and nobody waits longer than the policy's timeout. How much longer a busy machine
# takes than that is not decided here: PATIENCE is far beyond it, and without an end of its own each of
# these would take all of it.

load common
load sandbox

PATIENCE=30

setup() {
    common_setup
    without_daemon "a policy that is brought along cannot name whom a daemon calls"
    server=
}

teardown() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ -z "${names-}" ] || kill "$names" 2>/dev/null || true
}

# start COMMAND…: a server that writes its port to the file "port"; another one before it ends.
start() {
    [ -z "$server" ] || kill "$server"
    rm -f port
    "$@" </dev/null >/dev/null 2>server.err 3>&- &
    server=$!
    eventually 10 test -s port || { cat server.err >&2; return 1; }
    port=$(cat port)
}

plain() {
    need perl
    start perl "$BRIG_ROOT/tests/flow/pdp-server.pl" "$WORK/port" "$WORK/asked"
}

# tls HOW [NAME]: behind the certificate of this name.
tls() {
    need python3
    start python3 "$BRIG_ROOT/tests/flow/pdp-tls.py" "$WORK/port" "$WORK/asked" "$1" "${2-}.pem" "${2-}.key"
}

# authority NAME; certificate NAME AUTHORITY SUBJECT-ALT-NAME [DAYS]
authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" -keyout "$1.key" -out "$1.pem" 2>/dev/null
}

certificate() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -addext "subjectAltName=$3" -keyout "$1.key" -out "$1.csr" 2>/dev/null
    openssl x509 -req -in "$1.csr" -CA "$2.pem" -CAkey "$2.key" -days "${4:-2}" -copy_extensions copy -out "$1.pem" 2>/dev/null
}

policy() {
    printf 'version: 1\ndefault: allow\nexternal: {url: "%s", protocol: %s, timeout: %s}\n' "$1" "${2:-opa}" "${3:-1s}" >p.yaml
}

attempt() {
    run timeout -k 5 "$PATIENCE" "$BRIG" sandbox exec --policy p.yaml -- true
}

# denied TEXT: the last attempt, with one more receipt that says so, and nothing happened.
denied() {
    status_is 77
    says "PDP_ERROR"
    says "$1"
    receipt_is .kind denial
    receipt_is .verdict DENY
    receipt_is .reason_code PDP_ERROR
    receipt_is .rule external
    receipt_is .rule_line 3
    [ "$(receipts_of denial)" -eq $((before + 1)) ]
    [ "$(receipts_of intent)" -eq 0 ]
}

# refuses TEXT: an attempt is denied in time.
refuses() {
    before=$(receipts_of denial)
    attempt
    denied "$1"
}

asked() {
    cat asked 2>/dev/null | wc -l
}

@test "a certificate that is not the decider's is a denial that says what is wrong with it" {
    need openssl
    authority ca
    authority stranger
    certificate right ca IP:127.0.0.1
    certificate elsewhere ca DNS:elsewhere.test
    certificate old ca IP:127.0.0.1 -1
    certificate foreign stranger IP:127.0.0.1
    export SSL_CERT_FILE=$WORK/ca.pem SSL_CERT_DIR=/nowhere
    while read -r name text; do
        tls yes "$name"
        for protocol in opa authzen; do
            policy "https://127.0.0.1:$port/v1/data/brig/allow" "$protocol" 5s
            refuses "the certificate of the upstream: $text"
        done
        [ "$(asked)" -eq 0 ] # whoever that is was told nothing
    done <<'WRONG'
elsewhere IP address mismatch
old certificate has expired
foreign unable to get local issuer certificate
WRONG
    # By its name, too.
    tls yes elsewhere
    policy "https://localhost:$port/v1/data/brig/allow" opa 5s
    refuses "the certificate of the upstream: hostname mismatch"
    [ "$(asked)" -eq 0 ]
    # What would trust it does, so it is the certificate that was refused.
    tls yes right
    policy "https://127.0.0.1:$port/v1/data/brig/allow" opa 5s
    attempt
    status_is 0
    [ "$(asked)" -eq 1 ]
    receipt_is .kind outcome
}

@test "one that accepts and never shakes hands is a denial in the policy's time" {
    tls mute
    policy "https://127.0.0.1:$port/v1/data/brig/allow" opa 3s
    refuses "it did not answer within 3000 ms"
    [ "$(asked)" -eq 1 ]
}

@test "an answer that comes a byte at a time has the same end as none" {
    plain
    for how in drip drip-body; do
        policy "http://127.0.0.1:$port/v1/data/brig/$how" opa 3s
        refuses "it did not answer within 3000 ms"
    done
    [ "$(asked)" -eq 2 ]
    need openssl
    authority ca
    certificate right ca IP:127.0.0.1
    tls drip right
    policy "https://127.0.0.1:$port/v1/data/brig/allow" opa 4s
    before=$(receipts_of denial)
    SSL_CERT_FILE=$WORK/ca.pem SSL_CERT_DIR=/nowhere attempt
    denied "it did not answer within 4000 ms"
    [ "$(asked)" -eq 3 ] # it was told, and began to answer
}

@test "an answer of more than 64 KiB is read no further, whether it says so or not" {
    plain
    for how in huge endless; do
        policy "http://127.0.0.1:$port/v1/data/brig/$how" opa 5s
        refuses "the upstream's answer has more than 65536 bytes"
    done
}

@test "a redirect is not followed, and named" {
    plain
    policy "http://127.0.0.1:$port/v1/data/brig/redirect" opa 5s
    refuses "it answered with status 302, and a redirect is not followed"
    [ "$(asked)" -eq 1 ]
    attempt # once more, and nobody was asked in between
    [ "$(asked)" -eq 2 ]
}

# A network of its own in which names are asked of somebody who never answers.
world='
    ip link set lo up
    printf "nameserver 127.0.0.1\noptions timeout:30 attempts:5\n" >resolv.conf
    printf "hosts: files dns\n" >nsswitch.conf
    mount --bind resolv.conf "$(realpath /etc/resolv.conf)"
    [ ! -e /etc/nsswitch.conf ] || mount --bind nsswitch.conf /etc/nsswitch.conf
    exec perl -MIO::Socket::INET -e '\''
        my $udp = IO::Socket::INET->new(LocalAddr => "127.0.0.1:53", Proto => "udp") or die "port 53: $!";
        open(my $ready, ">", "ready"); close $ready;
        while (defined $udp->recv(my $question, 512)) { open(my $l, ">>", "named"); print $l $question =~ /pdp/ ? "pdp\n" : "?\n"; close $l }'\'''

@test "a name that nobody looks up is a denial in the policy's time" {
    need ip unshare nsenter perl
    [ -e /etc/resolv.conf ] || skip "there is no /etc/resolv.conf to replace"
    rights=(--net --mount)
    is_root || rights+=(--user --map-current-user --keep-caps)
    unshare "${rights[@]}" true 2>/dev/null || skip "no network of its own for this user"
    unshare "${rights[@]}" --propagation private bash -euc "$world" </dev/null >world.log 2>&1 3>&- &
    names=$!
    eventually 10 test -e ready || { cat world.log >&2; return 1; }
    within=(--net --mount)
    is_root || within+=(--user --preserve-credentials)
    policy "https://pdp.example.test/v1/data/brig/allow" opa 3s
    before=$(receipts_of denial)
    run timeout -k 5 "$PATIENCE" nsenter -t "$names" "${within[@]}" --wd="$WORK" -- \
        "$BRIG" sandbox exec --policy p.yaml -- true
    denied "it did not answer within 3000 ms"
    grep -q pdp named # it was asked for
}
