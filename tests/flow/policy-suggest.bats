#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig policy suggest: from refusals to a policy that a person may apply; nothing is changed by it.

load common
load sandbox

write() {
    cat >policy.yaml <<'P'
# what we allow
version: 1
default: allow
network_policies:
  read:
    binaries: [{path: /usr/bin/curl}]
    endpoints:
      - host: api.example.com
        port: 443
        protocol: rest
        rules:
          - allow: {method: GET, path: "/v1/**"} # reading
P
    cat >counters.json <<'J'
{"connections":9,"requests":9,"refused":9,"refusals":[
 {"host":"api.example.com","port":443,"method":"POST","path":"/v1/issues/{}/comments","binary":"/usr/bin/curl","reason":"EGRESS_REQUEST","count":4},
 {"host":"db.example.com","port":5432,"method":"","path":"","binary":"/usr/bin/psql","reason":"EGRESS_NO_RULE","count":2},
 {"host":"api.example.com","port":443,"method":"GET","path":"/v1/x","binary":"/usr/bin/python3","reason":"EGRESS_BINARY","count":1},
 {"host":"10.1.2.3","port":80,"method":"GET","path":"/","binary":"/usr/bin/curl","reason":"EGRESS_NO_RULE","count":1},
 {"host":"169.254.169.254","port":80,"method":"GET","path":"/","binary":"/usr/bin/curl","reason":"EGRESS_ADDRESS","count":1}],
 "refusals_left_out":0,"policy_hash":"sha256:0"}
J
}

asks() { # STATUS ARGS…
    local want=$1
    shift
    run brig policy explain --policy new.yaml "$@"
    [ "$status" -eq "$want" ]
}

@test "what is printed is a policy, and allows what was refused and not its neighbours" {
    write
    brig policy suggest --refusals counters.json --policy policy.yaml >new.yaml
    brig policy check new.yaml
    grep -q '^# what we allow$' new.yaml
    grep -q '# reading$' new.yaml
    asks 0 --request "POST https://api.example.com/v1/issues/17/comments"
    asks 77 --request "POST https://api.example.com/v1/issues/17"
    asks 77 --request "POST https://api.example.com/v1/issues/latest/comments"
    asks 77 --request "DELETE https://api.example.com/v1/issues/17/comments"
    asks 77 --binary /usr/bin/wget --request "POST https://api.example.com/v1/issues/17/comments"
    asks 0 --binary /usr/bin/psql --connect db.example.com:5432
    asks 77 --binary /usr/bin/psql --connect db.example.com:5433
    asks 77 --binary /usr/bin/curl --connect db.example.com:5432
    asks 0 --binary /usr/bin/python3 --request "GET https://api.example.com/v1/x"
    asks 77 --binary /usr/bin/python3 --request "GET https://api.example.com/v1/y"
    asks 77 --connect 10.1.2.3:80
    asks 77 --connect 169.254.169.254:80
}

@test "it says what is newly allowed, what to mind and what stays refused, in front" {
    write
    run --separate-stderr brig policy suggest --refusals counters.json --policy policy.yaml
    [ "$status" -eq 0 ]
    [[ $output == *"# From 9 refusals; nothing has been changed."* ]]
    [[ $output == *"#   /usr/bin/curl: POST api.example.com:443/v1/issues/[0-9A-Fa-f]*/comments, any query, any body (asked for 4 times; EGRESS_REQUEST)"* ]]
    [[ $output != *"/usr/bin/curl: GET api"* ]]
    [[ $output == *"#   /usr/bin/psql: connect to db.example.com:5432, any bytes (asked for 2 times"* ]]
    [[ $output == *"#   /usr/bin/python3: HEAD api.example.com:443/v1/x, any query, any body (not asked for, comes along; EGRESS_BINARY)"* ]]
    [[ $output == *"# Mind (interpreter): /usr/bin/python3 to api.example.com:443"* ]]
    [[ $output == *"# Mind (database_port): /usr/bin/psql"* ]]
    [[ $output == *"# Mind (tunnel): /usr/bin/psql"* ]]
    [[ $output == *"#   /usr/bin/curl: GET 10.1.2.3:80/ (EGRESS_NO_RULE, 1): "*"never suggested"* ]]
    [[ $output == *"169.254.169.254:80/ (EGRESS_ADDRESS, 1)"* ]]
}

@test "the same as JSON" {
    write
    run --separate-stderr brig policy suggest --json --refusals counters.json --policy policy.yaml
    [ "$status" -eq 0 ]
    json_is .refusals 9
    json_is '[.newly_allows[] | select(.what == "request" and .asked > 0)] | length' 2
    json_is '.newly_allows[] | select(.what == "tunnel") | .host' db.example.com
    json_is '[.warnings[].code] | sort | join(" ")' "database_port interpreter tunnel"
    json_is '.left | length' 2
    printf '%s' "$output" | jq -r .policy >new.yaml
    brig policy check new.yaml
}

@test "a host that the vault has a secret for is said to be one" {
    write
    printf 0123456789abcdef | brig vault set TOKEN
    brig vault bind TOKEN --host api.example.com --slot header:authorization
    run --separate-stderr brig policy suggest --json --refusals counters.json --policy policy.yaml
    [ "$status" -eq 0 ]
    json_is '[.warnings[] | select(.code == "credentialed") | .host] | unique | join(" ")' api.example.com
}

@test "refusals of a sandbox are found in the journal, and the standing policy is where it begins" {
    write
    mkdir -p "$BRIG_HOME/egress"
    cat >"$BRIG_HOME/egress/journal.0" <<'J'
{"number":1,"time":"2026-01-01T00:00:00.000Z","class_uid":4002,"disposition":"Blocked","sandbox":"sbx-one","host":"api.example.com","port":443,"method":"PUT","path":"/v1/items/5","reason":"EGRESS_REQUEST","binary":"/usr/bin/curl"}
{"number":2,"time":"2026-01-01T00:00:00.000Z","class_uid":4002,"disposition":"Allowed","sandbox":"sbx-one","host":"api.example.com","port":443,"method":"PUT","path":"/v1/allowed","binary":"/usr/bin/curl"}
{"number":3,"time":"2026-01-01T00:00:00.000Z","class_uid":4002,"disposition":"Blocked","sandbox":"sbx-two","host":"api.example.com","port":443,"method":"PUT","path":"/v1/other","reason":"EGRESS_REQUEST","binary":"/usr/bin/curl"}
{"number":4,"time":"2026-01-01T00:00:00.000Z","class_uid":4002,"dispo
J
    brig policy apply policy.yaml
    before=$("$BRIG" receipts list --json | jq '.receipts | length')
    run --separate-stderr brig policy suggest --json --sandbox sbx-one
    [ "$status" -eq 0 ]
    json_is .refusals 1
    json_is '[.newly_allows[] | .method + " " + .path] | join(",")' 'PUT /v1/items/[0-9]*'
    [[ $(printf '%s' "$output" | jq -r .policy) == "# what we allow"* ]]
    # Nothing happened: the policy that stands is the one that stood, and there is no receipt.
    [ "$("$BRIG" receipts list --json | jq '.receipts | length')" = "$before" ]
    run --separate-stderr brig policy suggest --sandbox sbx-three
    [ "$status" -eq 0 ]
    [[ $output == *"nothing to suggest"* ]]
    [[ $output != *version* ]]
    cp "$BRIG_HOME/egress/journal.0" lines
    run brig policy suggest --refusals lines
    [ "$status" -eq 64 ]
    [[ $output == *"lines: line 4 is no JSON"* ]]
    sed -i 4d lines
    run --separate-stderr brig policy suggest --json --refusals lines
    json_is .refusals 2
}

@test "what is no question is refused" {
    write
    run brig policy suggest
    [ "$status" -eq 64 ]
    run brig policy suggest --sandbox a --refusals counters.json
    [ "$status" -eq 64 ]
    run brig policy suggest --refusals nothing.json
    [ "$status" -ne 0 ]
    run brig policy suggest --run none
    [ "$status" -eq 66 ]
    echo '{"refusals":[{"host":"a.example.com","port":99999}]}' >bad.json
    run brig policy suggest --refusals bad.json
    [ "$status" -eq 64 ]
    [[ $output == *"bad.json: refusal 1: "* ]]
}
