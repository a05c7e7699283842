#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig policy suggest, with a sandbox: a run is refused, a person applies what is suggested, and the
# same run passes, step by step; nothing passes before.

load common
load sandbox
load kept
load network

setup() {
    common_setup
    world_begin
}

teardown() {
    destroy_all
    world_end
}

fetch() { # METHOD PATH
    world_json --network policy -- curl -sS --max-time 20 -o /dev/null -w '%{http_code}' -X "$1" "http://public.test$2"
}

suggest() {
    brig policy suggest --run "$(jq -r .run_id <<<"$output")" >new.yaml
}

@test "what a run was refused is suggested, applied by a person, and passes" {
    policy_of "$(allow web allowed.test)"
    brig policy apply policy.yaml
    fetch POST /items/17
    [ "$(jq -r .stdout <<<"$output")" != 200 ]
    suggest
    [ -z "$(served)" ]
    grep -q '^# It would newly allow exactly:$' new.yaml
    grep -q 'POST public.test:80/items/\[0-9\]\*, any query' new.yaml
    # Nothing was applied by asking.
    fetch POST /items/17
    [ "$(jq -r .stdout <<<"$output")" != 200 ]
    [ -z "$(served)" ]

    brig policy apply new.yaml
    fetch POST /items/18
    [ "$(jq -r .stdout <<<"$output")" = 200 ]
    served | grep -q '^80 POST public.test /items/18 '
    fetch POST /items/me
    [ "$(jq -r .stdout <<<"$output")" != 200 ]
    fetch GET /items/18
    [ "$(jq -r .stdout <<<"$output")" != 200 ]
    [ "$(served | wc -l)" -eq 1 ]
    # A second lesson is of that run alone.
    suggest
    grep -q 'GET public.test:80/items/\[0-9\]\*, any query' new.yaml
    run grep -c '/items/me' new.yaml
    [ "$output" -eq 0 ]
}

@test "where a name leads to a private address, that is left to people" {
    policy_of "$(allow web allowed.test)"
    brig policy apply policy.yaml
    world_json --network policy -- curl -sS --max-time 20 -o /dev/null http://other.test/x
    suggest
    grep -q 'GET other.test:80/x' new.yaml
    brig policy apply new.yaml
    world_json --network policy -- curl -sS --max-time 20 -o /dev/null -w '%{http_code}' http://other.test/x
    [ "$(jq -r .stdout <<<"$output")" != 200 ]
    [ -z "$(served)" ]
    suggest
    grep -q '# There is nothing to suggest.' new.yaml
    grep -q 'EGRESS_ADDRESS_PRIVATE, .*never suggested' new.yaml
}

@test "a sandbox that stands learns from its own policy, without a restart" {
    policy_of "  own:
    binaries: [{path: /usr/bin/curl}]
    endpoints: [{host: public.test, port: 80, protocol: rest, rules: [{allow: {method: GET, path: /a}}]}]"
    in_world "$BRIG" sandbox create --name s --policy policy.yaml
    say() { # METHOD PATH
        in_world "$BRIG" sandbox exec s -- curl -sS --max-time 20 -o /dev/null -w '%{http_code}' -X "$1" "http://public.test$2"
    }
    [ "$(say GET /a)" = 200 ]
    [ "$(say PUT /b)" = 403 ]
    brig policy suggest --sandbox s >new.yaml
    grep -q '^  own:$' new.yaml
    grep -q '/usr/bin/curl: PUT public.test:80/b, any query' new.yaml
    in_world "$BRIG" policy apply --sandbox s new.yaml
    [ "$(say PUT /b)" = 200 ]
    [ "$(say GET /a)" = 200 ]
    [ "$(say PUT /c)" = 403 ]
    [ "$(served | grep -c ' public.test ')" -eq 3 ]
    # Gone, but what it was refused is known by its id.
    id=$("$BRIG" sandbox show s --json | jq -r .sandbox_id)
    in_world "$BRIG" sandbox destroy s
    [ "$("$BRIG" policy suggest --json --sandbox "$id" --policy policy.yaml | jq .refusals)" -eq 2 ]
}
