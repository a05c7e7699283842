#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What the document says the API answers is what it answers: real answers against its schemas.

load common
load sandbox
load kept
load image-kit
load serve

setup() {
    common_setup
    need curl jq node busybox tar
}

teardown() {
    local status=0
    serve_end || status=$?
    destroy_all
    return $status
}

# kept OPERATION: the last answer is one of it.
kept() {
    printf '%s' "$output" >"answers/$1.$http.${2-1}.json"
    [ "$http" -lt 400 ] || [ -n "${3-}" ] || {
        printf '%s: %s %s\n' "$1" "$http" "$output" >&2
        return 1
    }
}

got() {
    api "$2"
    kept "$1"
}

posted() {
    local name=$1
    shift
    post "$@"
    kept "$name"
}

deleted() {
    api -X DELETE "$2"
    kept "$1"
}

@test "every answer is as the document says, and nothing in it is unknown there" {
    mkdir answers
    busybox_layout "$WORK/layout" bb:1 >/dev/null
    tar -C layout -cf bb.tar .
    serve
    TOKEN=$(token $(for s in read run host images receipts policy approve metrics admin vault; do echo --scope $s; done))
    S=/v1/sandboxes/s
    got getVersion /version
    got whoAmI /v1/whoami
    posted createSandbox /v1/sandboxes '{"name":"s","labels":{"a":"b"}}'
    got listSandboxes /v1/sandboxes
    got getSandbox $S
    got explainSandbox $S/explain
    posted extendSandbox $S/extend '{"ttl_ms":60000}'
    api -X POST $S/pause && kept pauseSandbox
    api -X POST $S/resume && kept resumeSandbox
    posted preflight /v1/preflight '{}'
    posted run /v1/runs '{"command":["echo","hi"]}'
    posted exec $S/exec '{"command":["printf","\\377"]}'
    post $S/exec '{"command":["sleep","600"],"detach":true}'
    kept exec 2
    exec=$(printf '%s' "$output" | jq -r .exec_id)
    got listExecs $S/execs
    got getExec "$S/execs/$exec"
    posted signalExec "$S/execs/$exec/signal" '{"signal":9}'
    api -T bb.tar "$S/files?path=/sandbox/tmp/f" && kept writeFile
    got statFile "$S/files/stat?path=/sandbox/tmp/f"
    got listFiles "$S/files/list?path=/sandbox/tmp"
    api -X POST "$S/files/mkdir?path=/sandbox/tmp/d" && kept makeFolder
    posted moveFile $S/files/move '{"from":"/sandbox/tmp/f","to":"/sandbox/tmp/g"}'
    deleted removeFile "$S/files?path=/sandbox/tmp/g"
    mkdir t && tar -C t -cf t.tar .
    api -T t.tar "$S/tar?path=/sandbox/tmp/d" && kept unpackFolder
    posted previewPort $S/ports/80/preview '{}'

    posted createSnapshot $S/snapshots '{"name":"n"}'
    got listSnapshots /v1/snapshots
    got listSandboxSnapshots $S/snapshots
    got getSnapshot /v1/snapshots/n
    "$BRIG" snapshot tend
    api -X POST /v1/snapshots/n/verify && kept verifySnapshot
    posted restoreSandbox $S/restore '{"snapshot_id":"n"}'
    posted forkSandbox $S/fork '{}'
    posted forkSnapshot /v1/snapshots/n/fork '{}'
    api -o snap.tar /v1/snapshots/n/export
    api -X POST -T snap.tar '/v1/snapshots/import?name=m' && kept importSnapshot
    deleted removeSnapshot /v1/snapshots/m
    api -X POST $S/recreate && kept recreateSandbox
    deleted destroySandbox $S

    api -X POST -T bb.tar '/v1/images/import?name=bb:1' && kept importImage
    got listImages /v1/images
    got getImage '/v1/images/show?image=bb:1'
    api -X POST '/v1/images/verify?image=bb:1' && kept verifyImage
    deleted removeImage '/v1/images?image=bb:1'

    got getPolicy /v1/policy
    post /v1/policies/check '{"text":"version: 1\nx: 1\n"}' && kept checkPolicy 2
    posted checkPolicy /v1/policies/check '{"text":"version: 1\ndefault: allow\n"}'
    posted explainPolicy /v1/policies/explain '{"command":["true"]}'
    got doctor /v1/doctor
    got listReceipts /v1/receipts
    posted verifyReceipts /v1/receipts/verify '{}'
    posted createToken /v1/tokens '{"scopes":["read"]}'
    deleted revokeToken "/v1/tokens/$(printf '%s' "$output" | jq -r .token_id)"
    got listTokens /v1/tokens
    got listFrozen /v1/freeze
    posted checkAdvisory /v1/advisory/check '{"kind":"output","value":"I will rm -rf /etc"}'
    posted beginAdvisorySession /v1/advisory/sessions '{"agent_id":"a","agent_version":"1","constitution":"Advise."}'
    A=/v1/advisory/sessions/$(printf '%s' "$output" | jq -r .run_id)
    got listAdvisorySessions /v1/advisory/sessions
    got showAdvisorySession "$A"
    posted addAdvisoryTurn "$A/turns" '{"text":"what?","output":"I will rm -rf /etc"}'
    got viewAdvisorySession "$A/view"
    got listAdvisoryEnvelopes "$A/envelopes"
    got listAdvisoryEvents "$A/events"
    posted requestAdvisoryAction "$A/actions" '{"action_request":{"type":"filesystem","operation":"delete","target":"/etc/x","risk":"irreversible"}}'
    got showAdvisoryAction "$A/actions/$(printf '%s' "$output" | jq -r .request_id)"
    posted requestAdvisoryAction "$A/actions" '{"action_request":{"type":"filesystem","operation":"create","target":"/sandbox/output/x","risk":"reversible","content":"x"}}'
    got showAdvisoryAction "$A/actions/$(printf '%s' "$output" | jq -r .request_id)"
    got listAdvisoryActions "$A/actions"
    api -X POST "$A/end" && kept endAdvisorySession
    posted replayAdvisory /v1/advisory/replay '{"agent_id":"a","profile":"strict-seed"}'
    got showGate /v1/gate/a
    got showUsage /v1/usage
    got showBudgets /v1/budgets
    api -X PUT --data-binary '{"value":"canary-of-schemas"}' /v1/vault/KEY && kept setSecret
    posted rotateSecret /v1/vault/KEY/rotate '{"value":"canary-of-schemas-2"}'
    posted bindSecret /v1/vault/KEY/bindings '{"host":"api.example.org","slot":"header:authorization"}'
    got listSecrets /v1/vault
    got showSecret /v1/vault/KEY
    deleted unbindSecret "/v1/vault/KEY/bindings/$(printf '%s' "$output" | jq -r '.bindings[0].id')"
    deleted removeSecret /v1/vault/KEY
    api -X PUT --data-binary '{"text":"version: 1\n"}' /v1/policy && kept applyPolicy
    rules='version: 1\nnetwork_policies: {w: {endpoints: [{host: a.example.org, port: 80}], binaries: [{path: /usr/bin/curl}]}}\n'
    post /v1/sandboxes "{\"name\":\"net\",\"policy\":\"$rules\"}"
    api -X PUT --data-binary "{\"text\":\"${rules/a.example/b.example}\"}" /v1/sandboxes/net/policy && kept applySandboxPolicy
    api -X DELETE /v1/sandboxes/net
    api -X DELETE /v1/policy && kept resetPolicy
    got listApprovals /v1/approvals
    # Errors are of one form.
    api /v1/sandboxes/none && kept getSandbox 1 error
    api '/v1/receipts?limit=x' && kept listReceipts 1 error

    api /v1/openapi.json
    printf '%s' "$output" >openapi.json
    node "$BRIG_ROOT/tests/flow/check-schema.mjs" openapi.json answers >unseen
    # These need a registry or custodians; their own tests have them. Anything else was forgotten here.
    forgotten=$(grep -v '^pullImage \|^showApproval \|^confirmApproval \|^rejectApproval \|^confirmAdvisoryAction \|^rejectAdvisoryAction \|^freeze \|^unfreeze ' unseen || true)
    [ -z "$forgotten" ] || {
        echo "no answer was looked at: $forgotten" >&2
        return 1
    }
    # Every route of the native API says what it answers.
    jq -r '.paths | to_entries[] | select(.key | startswith("/v1/sandboxes") or startswith("/v1/snapshots") or startswith("/v1/images") or startswith("/v1/receipts")) | .value[] |
        select([.responses[] | .content? // empty | to_entries[] | select(.key == "application/json" and .value.schema.type == "object")] | length > 0) | .operationId' openapi.json | sort >plain
    [ "$(tr '\n' ' ' <plain)" = 'getReceipt getReceiptsHead ' ]
}
