#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig freeze: one command stops all new effects; ending things stays possible.

load common
load sandbox
load kept
load serve

setup() {
    common_setup
}

teardown() {
    local status=0
    serve_end || status=$?
    brig unfreeze >/dev/null 2>&1 || true
    destroy_all
    return $status
}

@test "frozen, nothing new happens and each refusal has its receipt; thawed, everything does" {
    make --name one
    run -0 brig freeze --reason "looking into it"
    says "frozen: everything"
    receipt_is .action freeze
    receipt_is .outcome.freeze.why "looking into it"

    run -77 brig sandbox exec -- touch /tmp/x
    says "everything is frozen, looking into it"
    receipt_is .reason_code SYSTEM_FROZEN
    receipt_is .kind denial
    run -77 brig sandbox exec --json "$id" -- true
    json_is .reason_code SYSTEM_FROZEN
    run -77 brig sandbox create --json
    json_is .error.reason_code SYSTEM_FROZEN
    run -77 brig sandbox extend --json "$id" --ttl 2h
    json_is .error.reason_code SYSTEM_FROZEN
    receipt_is .reason_code SYSTEM_FROZEN
    echo hi >file
    run ! brig sandbox cp file "$id:/tmp/file"
    receipt_is .reason_code SYSTEM_FROZEN
    run -77 brig sandbox snapshot "$id"
    run -77 brig token create

    run -0 brig sandbox pause "$id"
    run -0 brig sandbox list
    run -0 brig unfreeze
    run -0 brig sandbox resume "$id"
    run -0 brig sandbox exec "$id" -- true
    run -0 brig freeze
    run -0 brig sandbox destroy "$id"
    run -0 brig unfreeze
    run -0 brig receipts verify
}

@test "a name nobody has is frozen, and said to be unknown" {
    # The tokens are of the state directory, whoever serves it.
    brig token create --tenant acme --principal boss --scope read >/dev/null
    for words in "--tenant nosuch" "--principal bos" "--tenant acme --principal agent" "--tenant acme --principal uid:0" "--principal uid:1o"; do
        # shellcheck disable=SC2086
        run -0 --separate-stderr brig freeze $words
        [[ "$stderr" == *"no token was ever made for"* ]]
        # shellcheck disable=SC2086
        run -0 --separate-stderr brig freeze --json $words
        json_is .known false
    done
    for words in "--tenant acme" "--principal boss" "--tenant acme --principal boss" "--tenant default" "--principal uid:4242" \
        "--principal custodian:anna"; do
        # shellcheck disable=SC2086
        run -0 --separate-stderr brig freeze --json $words
        json_is .known true
        [ -z "$stderr" ]
    done
    rm "$BRIG_HOME/frozen.json"
}

@test "no way to an effect goes past it, and every refusal has its receipt" {
    make --name one
    echo a-long-passphrase >pass
    echo hello >file
    printf 'version: 1\ndefault: allow\n' >p.yaml
    run -0 brig freeze
    while read -r words; do
        before=$(ledger 'SELECT max(seq) FROM receipts')
        # shellcheck disable=SC2086
        run ! brig $words </dev/null
        says "is frozen"
        [ "$(ledger 'SELECT max(seq) FROM receipts')" -gt "$before" ] || { echo "no receipt: $words" >&2; return 1; }
        receipt_is .reason_code SYSTEM_FROZEN
        receipt_is .kind denial
    done <<W
sandbox exec --provider mock -- true
sandbox exec --detach one -- true
sandbox preflight
sandbox files mkdir one /tmp/x
sandbox cp file one:/tmp/file
sandbox port one 80
sandbox snapshot one
policy apply p.yaml
policy apply --sandbox one p.yaml
policy ceiling set p.yaml
budget set --per tenant --within 1h --runs 5
vault set KEY --file file
approvals enroll ann --passphrase-file pass
token create
sandbox exec --elevated -- /usr/bin/id
W
    run -0 brig sandbox list
    run -0 brig receipts verify
    run -0 brig sandbox destroy one
    run -0 brig unfreeze --json
    json_is .everything true
}

@test "a freeze stops what waits for a person, and what a person has confirmed" {
    printf 'version: 1\ndefault: ask\n' >p.yaml
    echo a-long-passphrase >pass
    brig approvals enroll ann --passphrase-file pass >/dev/null
    confirm() {
        local id
        id=$(brig approvals list --json | jq -er '[.approvals[] | select(.state == "pending")][0].approval_id') &&
            brig approvals confirm "$id" --as ann --passphrase-file pass >/dev/null
    }
    run -77 brig sandbox exec --policy p.yaml -- true
    confirm
    run -0 brig freeze --principal "uid:$(id -u)"
    run -77 brig sandbox exec --policy p.yaml -- true
    receipt_is .reason_code SYSTEM_FROZEN
    run -0 brig unfreeze --principal "uid:$(id -u)"
    run -0 brig sandbox exec --policy p.yaml -- true # the confirmation was not used up

    "$BRIG" sandbox exec --policy p.yaml --wait 60s -- touch /tmp/x >log 2>&1 &
    pid=$!
    waits() {
        brig approvals list --json | jq -e '[.approvals[] | select(.state == "pending")] | length == 1'
    }
    eventually 10 waits
    run -0 brig freeze --principal "uid:$(id -u)"
    confirm # custodian:ann is somebody else
    status=0
    wait $pid || status=$?
    [ "$status" -eq 77 ]
    grep -q SYSTEM_FROZEN log
    run -0 brig unfreeze --principal "uid:$(id -u)"
}

@test "one principal is frozen, others are not; the status names each" {
    run -0 brig freeze --principal uid:4242 --reason "not this one"
    run -0 brig sandbox exec -- true
    run -0 brig freeze --principal "uid:$(id -u)"
    run -77 brig sandbox exec -- true
    run -0 brig freeze --status --json
    json_is '.frozen | length' 2
    json_is '.frozen[0].principal' uid:4242
    json_is '.frozen[0].reason' "not this one"
    json_is '.frozen[1].by' "uid:$(id -u)"
    run -66 brig unfreeze
    says 'that is not frozen; "brig freeze --status" tells what is'
    run -0 brig unfreeze --principal "uid:$(id -u)"
    run -0 brig sandbox exec -- true
    run -64 brig freeze --tenant ../x
}

@test "what is frozen is said without control characters, and so is that nothing is" {
    run -0 brig freeze --status
    says "nothing is frozen"
    run -0 brig freeze --principal $'a\e[31mb'
    says 'frozen: a\x1b[31mb;'
    run -0 brig freeze --status
    says 'a\x1b[31mb, by'
    run -0 brig unfreeze --principal $'a\e[31mb'
    says 'no longer frozen: a\x1b[31mb;'
}

@test "a reason of several lines, with escapes, is told on one line that is ours" {
    make --name one
    run -0 brig freeze --reason $'one\nbrig: nothing is frozen\e[2J\u009b2J\u202e'
    for words in "sandbox exec -- true" "sandbox exec one -- true" "sandbox create" "sandbox extend one --ttl 2h" "token create" \
        "policy ceiling remove" "budget set --per tenant --within 1h --runs 5" "freeze --status"; do
        # shellcheck disable=SC2086
        run brig $words
        [ "${#lines[@]}" -eq 1 ] || { echo "$words: $output" >&2; return 1; }
        says one
        not grep -qP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae' <<<"$output"
    done
}

@test "what stands, and what stood, is told with since when and by whom" {
    need curl
    run -0 brig freeze --principal uid:4242 --reason why --json
    done=$output
    json_is .by "uid:$(id -u)"
    run -0 brig freeze --status --json
    for member in since by reason principal everything; do
        json_is ".frozen[0].$member" "$(jq -r ".$member" <<<"$done")"
    done
    run -0 brig unfreeze --principal uid:4242 --json
    for member in since by reason; do
        json_is ".$member" "$(jq -r ".$member" <<<"$done")"
    done
    receipt_is .outcome.freeze.why ""

    serve
    TOKEN=$(token --principal boss --scope admin)
    post /v1/freeze '{"principal":"somebody","reason":"why"}'
    [ "$http" = 200 ]
    json_is .by boss
    since=$(jq -er .since <<<"$output")
    api -X DELETE '/v1/freeze?principal=somebody'
    [ "$http" = 200 ]
    json_is .by boss
    json_is .since "$since"
    json_is .reason why
    serve_end
}

@test "less trust is possible where everything is frozen, and more is not" {
    printf 'version: 1\ndefault: allow\n' >p.yaml
    brig policy bundle make --out b.json --key publisher.key --name acme/dev --version 1 p.yaml
    key=$(jq -r .public_key b.json)
    run -0 brig policy trust add "$key"
    run -0 brig freeze
    run -77 brig policy trust add "$key"
    receipt_is .reason_code SYSTEM_FROZEN
    run -0 brig policy trust remove "$(jq -r .key_id b.json)"
    receipt_is .kind outcome
    receipt_is .outcome.policy.layer publisher
    run -0 brig policy trust list --json
    json_is '.publishers | length' 0
    run -0 brig unfreeze
    run -77 brig sandbox exec --policy b.json -- true
    receipt_is .reason_code BUNDLE_UNTRUSTED
}

@test "a list that cannot be read freezes everybody" {
    run -0 brig sandbox exec -- true
    echo '{"frozen":[{"tenant":"","principal":""' >"$BRIG_HOME/frozen.json"
    run -77 brig sandbox exec -- true
    says "cannot be read"
    run -76 brig freeze --status
    says "$BRIG_HOME/frozen.json freezes everybody until it is mended or removed"
    run -76 brig unfreeze
    rm "$BRIG_HOME/frozen.json"
    run -0 brig sandbox exec -- true
}

@test "nobody thaws himself, and no tenant what the machine has stopped" {
    need curl
    serve
    agent=$(token --principal agent --scope run --scope admin --scope read)
    other=$(token --tenant acme --principal boss --scope run --scope admin --scope read)
    run -0 brig freeze --principal agent
    TOKEN=$agent post /v1/runs '{"command":["true"]}'
    json_is .error.reason_code SYSTEM_FROZEN
    TOKEN=$agent api -X DELETE '/v1/freeze?principal=agent'
    refused 403 forbidden
    says "cannot take that back"
    run -0 brig unfreeze --principal agent
    TOKEN=$agent post /v1/runs '{"command":["true"]}'
    [ "$http" = 200 ]

    run -0 brig freeze --tenant acme --reason "by the machine"
    TOKEN=$other
    api -X DELETE /v1/freeze
    refused 403 forbidden
    says "who has this machine"
    post /v1/freeze '{"reason":"mine now"}' # which would have been its own to take back
    refused 403 forbidden
    api -X DELETE /v1/freeze
    refused 403 forbidden
    post /v1/runs '{"command":["true"]}'
    json_is .error.reason_code SYSTEM_FROZEN
    run -0 brig unfreeze --tenant acme
    post /v1/runs '{"command":["true"]}'
    [ "$http" = 200 ]
    # Its own it takes back, until the machine freezes the same.
    post /v1/freeze '{}'
    run -0 brig freeze --tenant acme
    api -X DELETE /v1/freeze
    refused 403 forbidden
    run -0 brig unfreeze --tenant acme
    serve_end
}

@test "who is frozen goes on through no token of his, nor through one that was made with it" {
    need curl
    serve
    boss=$(token --principal boss --scope admin --scope run --scope read)
    other=$(token --principal other --scope admin --scope run --scope read)
    # made NAME: a token for another principal, by whoever has $TOKEN.
    made() {
        post /v1/tokens "{\"principal\":\"$1\",\"scopes\":[\"admin\",\"run\",\"read\"]}"
        jq -er .token <<<"$output"
    }
    runs() {
        post /v1/runs '{"command":["true"]}'
        [ "$http" = 200 ] || { echo "$output"; return 1; }
    }
    stopped() {
        post /v1/runs '{"command":["true"]}'
        refused 403 forbidden
        json_is .error.reason_code SYSTEM_FROZEN
        says "boss, who made this token, or one it was made with, is frozen, found out"
    }
    TOKEN=$boss
    mask=$(made mask)
    TOKEN=$mask
    below=$(made below)
    TOKEN=$other
    friend=$(made friend)
    second=$(made mask) # another token of the same name, which is nobody's of his

    run -0 brig freeze --principal boss --reason "found out"
    TOKEN=$boss post /v1/runs '{"command":["true"]}'
    says "boss is frozen, found out"
    for TOKEN in "$mask" "$below"; do
        stopped
    done
    receipt_is .kind denial
    receipt_is .reason_code SYSTEM_FROZEN
    TOKEN=$mask post /v1/sandboxes '{}'
    json_is .error.reason_code SYSTEM_FROZEN
    TOKEN=$mask post /v1/tokens '{"principal":"more","scopes":["run"]}'
    json_is .error.reason_code SYSTEM_FROZEN
    for TOKEN in "$other" "$friend" "$second"; do
        runs
    done
    # Nor do they thaw him.
    for TOKEN in "$mask" "$below"; do
        api -X DELETE '/v1/freeze?principal=boss'
        refused 403 forbidden
        says "cannot take that back"
    done
    TOKEN=$other api -X DELETE '/v1/freeze?principal=boss'
    [ "$http" = 200 ]
    for TOKEN in "$boss" "$mask" "$below"; do
        runs
    done

    # Of a tenant, what he does there: other tenants are not concerned.
    run -0 brig freeze --principal boss --tenant acme
    TOKEN=$mask runs
    run -0 brig unfreeze --principal boss --tenant acme
    run -0 brig freeze --principal somebody
    TOKEN=$mask runs
    run -0 brig unfreeze --principal somebody
    serve_end
}

@test "a preview of one who acts through a frozen one's token ends, too" {
    need curl
    serve
    boss=$(token --principal boss --scope admin --scope run --scope read)
    TOKEN=$boss post /v1/tokens '{"principal":"mask","scopes":["run","read"]}'
    TOKEN=$(jq -er .token <<<"$output")
    post /v1/sandboxes '{}'
    id=$(jq -er .sandbox_id <<<"$output")
    post "/v1/sandboxes/$id/ports/80/preview" '{}'
    path=$(jq -er .path <<<"$output")
    look() {
        curl -sS --max-time 30 -o look.out -w '%{http_code}' "http://127.0.0.1:$PORT$path"
    }
    [ "$(look)" != 403 ] # nobody listens inside, and that is the answer
    run -0 brig freeze --principal boss
    [ "$(look)" = 403 ]
    grep -q SYSTEM_FROZEN look.out
    run -0 brig unfreeze --principal boss
    [ "$(look)" != 403 ]
    TOKEN=$(token)
    api -X DELETE "/v1/sandboxes/$id"
    serve_end
}

@test "a list of before, without whose tenant each entry is, is the machine's" {
    need curl
    mkdir -p "$BRIG_HOME"
    echo '{"frozen":[{"by":"uid:0","principal":"","reason":"old","since":1,"tenant":"acme"}]}' >"$BRIG_HOME/frozen.json"
    serve
    TOKEN=$(token --tenant acme --scope run --scope admin)
    api -X DELETE /v1/freeze
    refused 403 forbidden
    run -0 brig unfreeze --tenant acme
    serve_end
}

@test "the daemon obeys at once; a tenant freezes itself and nobody else" {
    need curl
    serve
    TOKEN=$(token --scope run --scope admin --scope read)
    post /v1/runs '{"command":["true"]}'
    [ "$http" = 200 ]
    brig freeze --principal somebody >/dev/null
    post /v1/runs '{"command":["true"]}'
    [ "$http" = 200 ]
    post /v1/freeze '{"reason":"all of it"}'
    [ "$http" = 200 ]
    json_is .everything true
    run -77 brig sandbox exec -- true
    other=$(brig unfreeze >/dev/null && token --tenant acme --scope run --scope admin)
    post /v1/freeze '{}'
    TOKEN=$other
    post /v1/runs '{"command":["true"]}'
    refused 403 forbidden
    json_is .error.reason_code SYSTEM_FROZEN
    api /v1/freeze
    json_is '.frozen | length' 0
    brig unfreeze >/dev/null
    post /v1/freeze '{"tenant":"default"}'
    refused 403 forbidden
    post /v1/freeze '{"reason":"ours"}'
    json_is .tenant acme
    post /v1/runs '{"command":["true"]}'
    json_is .error.reason_code SYSTEM_FROZEN
    run -0 brig sandbox exec -- true
    api -X DELETE /v1/freeze
    [ "$http" = 200 ]
    post /v1/runs '{"command":["true"]}'
    [ "$http" = 200 ]
    serve_end
}

@test "somebody who keeps the list does not keep others from an answer" {
    brig freeze --principal somebody 2>/dev/null
    exec 5>"$BRIG_HOME/frozen.lock"
    flock 5
    run -69 timeout -k 5 60 "$BRIG" freeze 5>&-
    says "somebody else has kept"
    run -0 brig sandbox exec -- true 5>&- # and nobody is stopped by it
    exec 5>&-
    run -0 brig freeze
}
