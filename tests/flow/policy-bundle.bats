#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Signed policies: whose count, until when, and never an older one again.

load common
load sandbox

setup() {
    common_setup
    printf 'version: 1\ncommands: [{name: look, allow: [uname]}, {allow: [id]}]\n' >p.yaml
    printf 'version: 1\ncommands: [{name: no-id, deny: [id]}]\n' >o.yaml
    make_bundle b1.json 1
}

teardown() {
    [ -z "${id-}" ] || brig sandbox destroy "$id"
}

# make_bundle FILE VERSION [ARGS…]
make_bundle() {
    local file=$1 version=$2
    shift 2
    brig policy bundle make --out "$file" --key pub.key --name acme/dev --version "$version" "$@" p.yaml o.yaml
}

trusted() {
    brig policy trust add --name acme "$(jq -r .public_key b1.json)"
}

@test "a bundle of a trusted publisher is used like a policy, with its overlays" {
    trusted
    receipt_is .outcome.policy.layer publisher
    receipt_is .outcome.policy.key_id "$(jq -r .key_id b1.json)"
    run -0 brig policy bundle verify b1.json
    says "acme/dev version 1, signed by ed25519:"
    run -0 brig policy check b1.json
    run -0 brig sandbox exec --policy b1.json -- uname
    receipt_is .policy_hash "$(jq -r .policy_hash b1.json)"
    run -77 brig sandbox exec --policy b1.json -- id
    receipt_is .policy_layer "overlay 1"
    run -77 brig policy explain --policy b1.json -- id
    says "+ no-id, line 2 of overlay 1 (DENY): it matches"
    says "DENY by no-id, line 2 of overlay 1 "
    run -77 brig sandbox exec --policy b1.json -- ls
    # One more overlay on top.
    printf 'version: 1\ncommands: [{name: no-uname, deny: [uname]}]\n' >mine.yaml
    run -77 brig sandbox exec --policy b1.json --overlay mine.yaml -- uname
    receipt_is .policy_layer "overlay 2"
    run -0 brig policy trust list --json
    json_is '.publishers[0].name' acme
    run -0 brig policy trust remove "$(jq -r .key_id b1.json)"
    run -77 brig sandbox exec --policy b1.json -- uname
    receipt_is .reason_code BUNDLE_UNTRUSTED
    run -66 brig policy trust remove ed25519:0000000000000000
}

@test "its signature is what the page says, by other tools" {
    need openssl xxd
    jq -cSj 'del(.hash, .signature)' b1.json >body
    printf 'brig/policy-bundle/1\0' | cat - body | openssl dgst -sha256 -binary >digest
    [ "sha256:$(xxd -p -c 64 digest)" = "$(jq -r .hash b1.json)" ]
    (printf 302a300506032b6570032100; jq -r .public_key b1.json) | xxd -r -p |
        openssl pkey -pubin -inform DER -out public.pem
    jq -r .signature b1.json | xxd -r -p >signature
    openssl pkeyutl -verify -pubin -inkey public.pem -rawin -in digest -sigfile signature
    run -0 brig policy trust add public.pem
    run -0 brig policy bundle verify --key public.pem b1.json
}

@test "one that is untrusted, altered or over is refused, each with its own words" {
    run -77 brig sandbox exec --policy b1.json -- uname
    says "whom nobody here trusts"
    receipt_is .reason_code BUNDLE_UNTRUSTED
    run -77 brig policy apply b1.json
    [ ! -e "$BRIG_HOME/policy.yaml" ]
    run -77 brig policy bundle verify b1.json
    trusted
    # A byte of the policy, of the version, one more blank; a signature of somebody else.
    sed 's/\[uname\]/[uname,x]/' b1.json >altered.json
    run -76 brig sandbox exec --policy altered.json -- uname
    says "the bundle was altered"
    jq -cSj '.version = 9' b1.json >altered.json
    run -76 brig policy apply altered.json
    { cat b1.json; echo; } >altered.json
    run -76 brig policy bundle verify altered.json
    brig policy bundle make --out other.json --key other.key --name acme/dev --version 1 p.yaml o.yaml
    jq -cSj --slurpfile o other.json '.signature = $o[0].signature' b1.json >altered.json
    run -76 brig policy bundle verify altered.json
    run -77 brig policy bundle verify other.json
    # A clock that is put back begins nothing again: as if it had been there before.
    brig sandbox exec --quiet --policy b1.json -- uname >/dev/null
    [ "$(stat -c %Y "$BRIG_HOME/bundle-clock")" -ge "$(stat -c %Y b1.json)" ]
    touch -d '+91 days' "$BRIG_HOME/bundle-clock"
    for _ in 1 2; do
        run -77 brig sandbox exec --policy b1.json -- uname
        receipt_is .reason_code BUNDLE_EXPIRED
        says "was over before this machine's clock was put back"
    done
    run -77 brig policy explain --policy b1.json -- uname
    says "would be refused: BUNDLE_EXPIRED"
    touch -d '+89 days' "$BRIG_HOME/bundle-clock"
    run -0 brig sandbox exec --policy b1.json -- uname
    rm "$BRIG_HOME/bundle-clock"
    run -0 brig policy explain --policy b1.json -- uname
    [ ! -e "$BRIG_HOME/bundle-clock" ] # who only looks writes nothing
    # Time: made for a second, by a clock that stands in the past.
    make_bundle short.json 2 --expires 1s
    expired() { brig policy bundle verify short.json 2>&1 | grep -q "is over"; }
    eventually 10 expired
    run -77 brig sandbox exec --policy short.json -- uname
    receipt_is .reason_code BUNDLE_EXPIRED
    run -0 brig sandbox exec --policy b1.json -- uname
}

@test "there is no way back to a lower version, but what stands goes on" {
    trusted
    make_bundle b2.json 2
    run -0 brig policy apply b1.json
    run -0 brig sandbox create --json
    id=$(jq -r .sandbox_id <<<"$output")
    run -0 brig policy apply b2.json
    run -0 brig policy apply b2.json
    run -77 brig policy apply b1.json
    says "version 2 was applied already"
    run -77 brig sandbox exec --policy b1.json -- uname
    receipt_is .reason_code BUNDLE_ROLLBACK
    run -0 brig policy reset
    run -77 brig policy apply b1.json
    run -0 brig sandbox exec "$id" -- uname
    # What cannot be read has seen everything.
    name=$(jq -r .name b1.json)
    for text in '[]' "{\"$name\":\"2\"}" '{'; do
        printf '%s' "$text" >"$BRIG_HOME/bundle-versions.json"
        run -77 brig sandbox exec --policy b1.json -- uname
        receipt_is .reason_code BUNDLE_ROLLBACK
    done
}

@test "somebody who keeps the list of publishers does not keep others from an answer" {
    trusted
    exec 5>"$BRIG_HOME/publishers.lock"
    flock 5
    run -69 timeout -k 5 60 "$BRIG" policy trust add --name other "$(jq -r .public_key b1.json)" 5>&-
    says "somebody else has kept"
    exec 5>&-
    run -0 brig policy trust add --name other "$(jq -r .public_key b1.json)"
}

@test "a ceiling can ask for bundles, and then nothing else counts" {
    trusted
    printf 'version: 1\nbundles: required\n' >ceiling.yaml
    run -0 brig policy ceiling set ceiling.yaml
    run -77 brig sandbox exec -- uname
    receipt_is .reason_code POLICY_UNSIGNED
    run -77 brig sandbox exec --policy p.yaml -- uname
    says "bundles: required"
    run -77 brig policy apply p.yaml
    run -0 brig sandbox exec --policy b1.json -- uname
    run -0 brig policy apply b1.json
    run -0 brig sandbox exec -- uname
    run -77 brig sandbox exec -- id
    printf 'version: 1\nbundles: required\n' >own.yaml
    run -64 brig sandbox exec --policy own.yaml -- uname
    says "bundles can only stand in the ceiling"
}

@test "a daemon holds its tenants to it" {
    without_daemon "it has one of its own"
    trusted
    printf 'version: 1\nbundles: required\n' >ceiling.yaml
    run -0 brig policy ceiling set ceiling.yaml
    daemon_beside
    run -77 brig sandbox exec --policy p.yaml -- uname
    says POLICY_UNSIGNED
    run -0 brig sandbox exec --policy b1.json -- uname
    run -0 brig policy trust remove "$(jq -r .key_id b1.json)"
    run -77 brig sandbox exec --policy b1.json -- uname
    says BUNDLE_UNTRUSTED
}
