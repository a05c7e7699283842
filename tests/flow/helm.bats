#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The commands of HELM's sandbox documentation, as they stand there.

load common
load sandbox

# Providers of other makers are not part of this version: denied, with a receipt that says so.
denied_as_unavailable() {
    status_is 1
    says "helm: DENY PROVIDER_UNAVAILABLE"
    receipt_is .kind denial
    receipt_is .reason_code PROVIDER_UNAVAILABLE
    receipt_is .provider "$1"
}

@test "mock provider" {
    run --separate-stderr helm sandbox exec --provider mock -- echo "Hello" </dev/null
    status_is 0
    [[ $output == *Hello* ]]
    [[ $stderr == "helm: ALLOW MOCK"* ]]
    receipt_is .provider mock
}

@test "real providers" {
    run helm sandbox exec --provider opensandbox -- npm test </dev/null
    denied_as_unavailable opensandbox
    run helm sandbox exec --provider e2b -- python script.py </dev/null
    denied_as_unavailable e2b
    run helm sandbox exec --provider daytona -- cargo build </dev/null
    denied_as_unavailable daytona
}

@test "provider setup, with their keys in the environment" {
    export OPENSANDBOX_API_KEY=canary-one E2B_API_KEY=canary-two DAYTONA_API_KEY=canary-three
    for provider in opensandbox e2b daytona; do
        run helm sandbox exec --provider $provider -- echo "governed" </dev/null
        denied_as_unavailable $provider
    done
    run helm sandbox exec -- env </dev/null
    status_is 0
    [[ $output != *canary* ]]
    run ! grep -c canary "$BRIG_HOME"/receipts.db*
}

@test "switching providers" {
    for provider in opensandbox e2b daytona; do
        run helm sandbox exec --provider $provider -- npm test </dev/null
        denied_as_unavailable $provider
    done
    run helm sandbox exec --provider local -- echo same </dev/null
    status_is 0
    says same
    receipt_is .provider local
}

@test "conformance" {
    run helm sandbox conform --provider opensandbox --tier compatible
    status_is 1
    says "opensandbox is not compatible"
    run helm sandbox conform --provider e2b --tier verified
    status_is 1
    says "e2b is not verified"
    run --separate-stderr helm sandbox conform --provider daytona --tier sovereign --json
    status_is 1
    json_is .provider daytona
    json_is .pass false
    run --separate-stderr helm sandbox conform --provider local --tier compatible --json
    status_is 0
    json_is .pass true
}

@test "denied is 1, usage is 2, the command's own status stays its own" {
    printf '%s\n' 'version: 1' 'commands:' '  - allow: [echo]' >policy.yaml
    run helm sandbox exec --policy policy.yaml -- id </dev/null
    status_is 1
    says "POLICY_DEFAULT_DENY"
    run helm sandbox exec --no-such-option -- true </dev/null
    status_is 2
    run helm sandbox exec
    status_is 2
    run helm sandbox nonsense
    status_is 2
    run helm sandbox exec -- sh -c 'exit 5' </dev/null
    status_is 5
    run brig sandbox exec --policy policy.yaml -- id </dev/null
    status_is 77
}

@test "a failed preflight is 1" {
    printf '%s\n' 'version: 1' 'provider_version: another' >profile.yaml
    run helm sandbox preflight --profile profile.yaml
    status_is 1
    says "PREFLIGHT_PROVIDER_VERSION"
    run helm sandbox preflight
    status_is 0
}
