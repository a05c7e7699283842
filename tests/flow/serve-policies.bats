#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Policies, doctor, explain and recreate over HTTP; and that no verb of the command line is forgotten.

load common
load sandbox
load kept
load serve

setup() {
    common_setup
    need curl jq
}

teardown() {
    local status=0
    serve_end || status=$?
    destroy_all
    return $status
}

is_status() {
    [ "$http" = "$1" ] || {
        printf 'status is %s, should be %s: %s\n' "$http" "$1" "$output" >&2
        return 1
    }
}

@test "policies are shown, checked and asked; the machine is looked at by admins" {
    printf 'version: 1\ndefault: allow\ncommands:\n  - {name: no-rm, deny: [rm, "**"], reason: nothing is removed here}\n' >p.yaml
    serve
    TOKEN=$(token --scope read)
    api /v1/policy
    is_status 200
    json_is .source built-in
    json_is .valid true
    hash=$(printf '%s' "$output" | jq -r .policy_hash)
    post /v1/policies/check "$(jq -nc --rawfile t p.yaml '{text:$t}')"
    is_status 200
    json_is .valid true
    [ "$(printf '%s' "$output" | jq -S .)" = "$("$BRIG" policy check --json p.yaml | jq -S '.policies[0] | del(.file)')" ]
    printf 'version: 1\nnonsense: true\n' >bad.yaml
    post /v1/policies/check "$(jq -nc --rawfile t bad.yaml '{text:$t}')"
    is_status 200
    json_is .valid false
    json_is .error.line 2
    json_is .error.column 1
    post /v1/policies/check '{}'
    refused 400 invalid
    post /v1/policies/explain '{"command":["echo","hi"]}'
    is_status 200
    json_is .verdict ALLOW
    json_is .policy_hash "$hash"
    post /v1/policies/explain "$(jq -nc --rawfile t p.yaml '{command:["env","A=b","rm","x"],policy:$t}')"
    is_status 200
    json_is .verdict DENY
    json_is .rule no-rm
    json_is .line 4
    post /v1/policies/explain "$(jq -nc --rawfile t bad.yaml '{command:["true"],policy:$t}')"
    refused 400 invalid
    # Nothing was recorded: nothing happened.
    api /v1/receipts
    refused 403 forbidden
    [ -z "$("$BRIG" receipts list --json --limit 5 | jq -r '.. | objects | select(.action? == "run")')" ]

    api /v1/doctor
    refused 403 forbidden
    TOKEN=$(token --scope admin)
    api /v1/doctor
    is_status 200
    json_is '.findings | length' "$("$BRIG" doctor --json | jq '.findings | length')"
    json_is '.providers[0].name' local
}

@test "explain says what a run would get now, and what refuses it besides the rules; it has no effect" {
    need jq curl
    refusals() {
        json_is '[.would_be_refused[].reason_code] | join(" ")' "$1"
    }
    # same JSON: the run gets the verdict that was told.
    same() {
        local code
        code=$(jq -r .reason_code <<<"$output")
        post /v1/runs "$1"
        if [ "$http" = 200 ]; then json_is .reason_code "$code"; else json_is .error.reason_code "$code"; fi
    }
    printf 'version: 1\ndefault: deny\ncommands: [{name: cheap, allow: [make], cost: "<=0.5"}]\n' >cost.yaml
    printf 'version: 1\ndefault: allow\n' >open.yaml
    brig policy bundle make --out b.json --key k --name n --version 1 open.yaml >/dev/null
    serve
    other=$(token --tenant acme --scope read --scope run)
    TOKEN=$(token --scope read --scope run)
    # A cost is what is said, as on the command line.
    for case in '"0.5" ALLOW' '"0.51" DENY' 'null DENY'; do
        read -r cost verdict <<<"$case"
        post /v1/policies/explain "$(jq -nc --rawfile t cost.yaml --argjson c "$cost" '{command:["make"],policy:$t} + if $c then {cost:$c} else {} end')"
        is_status 200
        json_is .verdict "$verdict"
        refusals ""
    done
    for cost in '"much"' '"-1"' '"0.1234567"' '1'; do
        post /v1/policies/explain '{"command":["make"],"cost":'"$cost"'}'
        refused 400 invalid
    done
    # A bundle nobody trusts.
    post /v1/policies/explain "$(jq -nc --rawfile t b.json '{command:["true"],policy:$t}')"
    is_status 200
    json_is .reason_code BUNDLE_UNTRUSTED
    json_is '.would_be_refused[0].policy_layer' policy
    # What is seen in it, as on the command line.
    # shellcheck disable=SC2016 # its words
    script='rm -rf $X; "$0" | base64'
    post /v1/policies/explain "$(jq -nc --arg s "$script" '{command: ["sh", "-c", $s]}')"
    [ "$(jq -c '[.seen, .seen_count]' <<<"$output")" = "$(brig policy explain --json -- sh -c "$script" | jq -c '[.seen, .seen_count]')" ]
    json_is '.seen_count > 1' true
    # A release that is missing.
    post /v1/policies/explain '{"command":["true"],"policy":"version: 1\ndefault: allow\nrequires_release: agent\n"}'
    json_is .requires_release agent
    refusals RELEASE_REQUIRED
    # A budget.
    brig budget set --per tenant --within 1h --runs 1 >/dev/null
    post /v1/policies/explain '{"command":["true"]}'
    json_is .verdict ALLOW
    same '{"command":["true"]}'
    before=$(ledger 'SELECT count(*) FROM receipts')
    for _ in 1 2 3; do
        post /v1/policies/explain '{"command":["true"]}'
        refusals BUDGET_EXCEEDED
    done
    [ "$(ledger 'SELECT count(*) FROM receipts')" -eq "$before" ]
    api /v1/budgets
    json_is '.budgets[0].amounts[0].used' 1
    json_is '.budgets[0].amounts[0].reserved' 0
    post /v1/policies/explain '{"command":["true"]}'
    same '{"command":["true"]}'
    # A freeze, which is stronger; of the tenant it concerns.
    brig freeze --tenant default >/dev/null
    post /v1/policies/explain '{"command":["true"]}'
    refusals "SYSTEM_FROZEN BUDGET_EXCEEDED"
    json_is .reason_code SYSTEM_FROZEN
    same '{"command":["true"]}'
    TOKEN=$other
    post /v1/policies/explain '{"command":["true"]}'
    json_is .verdict ALLOW
    refusals ""
    brig unfreeze --tenant default >/dev/null
    brig freeze >/dev/null
    post /v1/policies/explain '{"command":["true"]}'
    json_is .reason_code SYSTEM_FROZEN
    brig unfreeze >/dev/null
    # And the tenant's own budget, told by the command line, too.
    BRIG_HOME=$BRIG_HOME/tenants/acme brig budget set --per tenant --within 1h --runs 1 >/dev/null
    post /v1/runs '{"command":["true"]}'
    is_status 200
    post /v1/policies/explain '{"command":["true"]}'
    refusals BUDGET_EXCEEDED
    run -77 brig policy explain --tenant acme --json -- true
    refusals BUDGET_EXCEEDED
    serve_end
}

@test "a daemon's policy is the tenant's; a sandbox is explained and made again as it was" {
    cp "$BRIG_ROOT/policies/default.yaml" p.yaml
    serve --policy p.yaml
    TOKEN=$(token)
    api /v1/policy
    json_is .source file
    [ "$(printf '%s' "$output" | jq -r .text)" = "$(cat p.yaml)" ]
    post /v1/sandboxes '{"name":"s"}'
    is_status 201
    old=$(printf '%s' "$output" | jq -r .sandbox_id)
    api /v1/sandboxes/s/explain
    is_status 200
    json_is .drift false
    [ "$(printf '%s' "$output" | jq -S 'del(.expires_at)')" = "$("$BRIG" sandbox explain s --json | jq -S 'del(.expires_at)')" ]
    post /v1/sandboxes/s/exec '{"command":["touch","/tmp/f"]}'
    api -X POST -H 'Idempotency-Key: r' /v1/sandboxes/s/recreate
    is_status 201
    json_is .old_sandbox_id "$old"
    new=$(printf '%s' "$output" | jq -r .sandbox_id)
    [ "$new" != "$old" ]
    api -X POST -H 'Idempotency-Key: r' /v1/sandboxes/s/recreate
    json_is .sandbox_id "$new"
    post /v1/sandboxes/s/exec '{"command":["test","-e","/tmp/f"]}'
    json_is .exit_code 1
    api "/v1/sandboxes/$old"
    refused 404 not_found
    mkdir shown
    brig sandbox create --name m --mount "$WORK/shown:/shown:ro"
    TOKEN=$(token --scope run) api -X POST /v1/sandboxes/m/recreate
    refused 403 forbidden
    post /v1/preflight '{}'
    is_status 200
    json_is .pass true
    json_is '[.checks[] | select(.result != "pass")] | length' 0
    api /v1/sandboxes/nothing/explain
    refused 404 not_found
}

# What the command line can do is a route, or there is a reason why not.
verbs() {
    cat <<'V'
sandbox exec        run exec execSocket
sandbox create      createSandbox
sandbox list        listSandboxes
sandbox show        getSandbox
sandbox pause       pauseSandbox
sandbox resume      resumeSandbox
sandbox extend      extendSandbox
sandbox destroy     destroySandbox
sandbox logs        followExec
sandbox attach      followExec signalExec
sandbox ps          listExecs
sandbox recreate    recreateSandbox
sandbox explain     explainSandbox
sandbox snapshot    createSnapshot
sandbox restore     restoreSandbox
sandbox fork        forkSandbox forkSnapshot
sandbox top         listSandboxes
sandbox files       readFile writeFile removeFile listFiles statFile makeFolder moveFile watchFiles
sandbox cp          packFolder unpackFolder
sandbox port        reachPort previewPort viewPreview
sandbox preflight   preflight
snapshot list       listSnapshots listSandboxSnapshots
snapshot show       getSnapshot
snapshot remove     removeSnapshot
snapshot verify     verifySnapshot
snapshot export     exportSnapshot
snapshot import     importSnapshot
receipts list       listReceipts tailReceipts
receipts show       getReceipt
receipts verify     verifyReceipts
receipts head       getReceiptsHead
receipts export     exportReceipts
policy check        checkPolicy
policy explain      explainPolicy
policy preset       - the configuration of the machine it is typed on
policy suggest      - prints what a person may then apply; reads the operator's journal
policy proposals    - a person answers on the machine the sandboxes are on; no routes for it yet
policy apply        applyPolicy
policy reset        resetPolicy
policy ceiling      - belongs to the operator of the machine, above every tenant
policy diff         - needs no daemon: the files alone decide
policy test         - needs no daemon: the files alone decide
policy bundle       - signs files of the machine it is typed on; checkPolicy reads one
policy trust        - belongs to the operator of the machine, above every tenant
image pull          pullImage
image import        importImage
image list          listImages
image show          getImage
image remove        removeImage
image export        exportImage
image verify        verifyImage
token create        createToken
token list          listTokens
token revoke        revokeToken
approvals list      listApprovals
approvals show      showApproval
approvals confirm   confirmApproval
approvals reject    rejectApproval
approvals enroll    - whose key counts is the operator's to say
approvals custodians - whose key counts is the operator's to say
approvals notify    - who is told is the operator's to say
approvals renew     - that what was lost begins anew is for the operator at the machine to say
freeze              freeze listFrozen
unfreeze            unfreeze
vault set           setSecret
vault rotate        rotateSecret
vault bind          bindSecret
vault unbind        unbindSecret
vault list          listSecrets
vault show          showSecret
vault remove        removeSecret
vault rekey         - where the vault's key is kept is the operator's to say
usage               showUsage
budget show         showBudgets
budget set          - what may be used is the operator's to say
budget remove       - what may be used is the operator's to say
budget reset        - what may be used is the operator's to say
budget price        - what things cost is the operator's to say
budget renew        - that what was lost begins anew is for the operator at the machine to say
advisory check      checkAdvisory
advisory run        - with an agent, a custodian and a state directory of this machine
advisory report     showAdvisorySession listAdvisorySessions listAdvisoryEvents listAdvisoryEnvelopes
advisory replay     replayAdvisory
advisory export     exportAdvisory
advisory actions    listAdvisoryActions showAdvisoryAction
advisory confirm    confirmAdvisoryAction
advisory reject     rejectAdvisoryAction
advisory end        endAdvisorySession
gate report         showGate
gate sign           - who may leave advisory mode is for custodians at the machine to say
gate release        - who may leave advisory mode is for custodians at the machine to say
gate revoke         - who may leave advisory mode is for custodians at the machine to say
gate status         showGate
doctor              doctor
version             getVersion
sandbox diff        - compares with a folder of the machine, which is its operator's
sandbox sync        - writes to a folder of the machine, which is its operator's
sandbox conform     - tests this build on this machine: its operator's
snapshot tend       - happens in the background by itself
pool fill           - how much is built ahead is the operator's to say
pool list           - how much is built ahead is the operator's to say
pool refill         - happens in the background by itself
pool drain          - how much is built ahead is the operator's to say
verify              - needs no daemon: that is its point
serve               - is the daemon
completion          - of the command line itself
help                - of the command line itself
V
}

@test "no verb of the command line is forgotten" {
    serve
    TOKEN=$(token)
    api /v1/openapi.json
    printf '%s' "$output" | jq -r '.paths[][].operationId' | sort >routes
    verbs | sed 's/  .*//; s/ - .*//' | sort >told
    # The command lines of the help are indented by two, their texts begin in the same column.
    brig help | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z -]*[a-z]\)  .*/\1/p' | sort >have
    forgotten=$(comm -13 told have)
    [ -z "$forgotten" ] || {
        echo "no route and no reason: $forgotten" >&2
        return 1
    }
    [ -z "$(comm -23 told have)" ]
    verbs | sed -n 's/^[a-z ]*  \([^- ].*\)$/\1/p' | tr ' ' '\n' | sort -u >named
    missing=$(comm -23 named routes)
    [ -z "$missing" ] || {
        echo "no such route: $missing" >&2
        return 1
    }
}

@test "a tenant's policy is changed by those who may, for what comes, and for that tenant only" {
    serve
    TOKEN=$(token --tenant acme --scope run --scope read)
    put() { api -X PUT --data-binary "$1" /v1/policy; }
    rules='{"text":"version: 1\ncommands:\n  - allow: [cat]\n"}'
    put "$rules"
    refused 403 forbidden
    TOKEN=$(token --tenant acme --scope run --scope read --scope policy --scope receipts)
    put '{"text":"version: 7"}'
    refused 400 invalid
    post /v1/runs '{"command":["true"]}'
    is_status 200
    put "$rules"
    is_status 200
    json_is .standing true
    api "/v1/receipts/$(printf '%s' "$output" | jq -r .receipt_id)"
    json_is .action policy
    post /v1/runs '{"command":["true"]}'
    refused 403 forbidden
    api /v1/policy
    json_is .source file
    run -0 brig sandbox exec -- true
    api -X DELETE /v1/policy
    json_is .standing false
    post /v1/runs '{"command":["true"]}'
    is_status 200
}
