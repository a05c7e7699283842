#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig policy check: policies read as a run would read them.

load common
load sandbox

write() {
    printf '%s\n' "$@" >policy.yaml
}

@test "a policy that is right says so, with its hash" {
    write 'version: 1' 'commands:' '  - deny: [rm]'
    run --separate-stderr brig policy check policy.yaml
    [ "$status" -eq 0 ]
    [[ $output == "policy.yaml: valid, 1 command rule, sha256:"* ]]
    [ -z "$stderr" ]
}

@test "a policy that is wrong shows the place" {
    write 'version: 1' 'commands:' '  - exce: [ls]'
    run --separate-stderr brig policy check policy.yaml
    [ "$status" -eq 64 ]
    [ -z "$output" ]
    [ "${stderr_lines[0]}" = 'brig: policy.yaml: line 3, column 5: unknown key "exce"; known keys here: name, allow, ask, deny, reason, principal, tenant, provider, tool, env, paths, effect, risk, time, cost, when, approval' ]
    [ "${stderr_lines[1]}" = '    3 |   - exce: [ls]' ]
    [ "${stderr_lines[2]}" = '      |     ^' ]
}

@test "a wrong expression is shown where it is wrong" {
    write 'version: 1' 'commands:' '  - deny: []' '    when: risk > 2 && princpal == "eve"'
    run --separate-stderr brig policy check policy.yaml
    [ "$status" -eq 64 ]
    [[ ${stderr_lines[0]} == 'brig: policy.yaml: line 4, column 23: when: unknown name "princpal"; known are: principal, '* ]]
    [ "${stderr_lines[1]}" = '    4 |     when: risk > 2 && princpal == "eve"' ]
    [ "${stderr_lines[2]}" = '      |                       ^' ]
}

@test "whoever reads a wrong policy shows the place" {
    write 'version: 1' 'commands:' '  - exce: [ls]'
    printf 'version: 1\n' >right.yaml
    for command in "apply policy.yaml" "ceiling set policy.yaml" "test policy.yaml" "diff policy.yaml right.yaml" \
        "diff right.yaml policy.yaml" "explain --policy policy.yaml -- ls" "explain --policy policy.yaml --connect x.org:443" \
        "bundle make --out b.json --key k --name n --version 1 policy.yaml" \
        "bundle make --out b.json --key k --name n --version 1 right.yaml policy.yaml"; do
        run -64 brig policy $command
        says "policy.yaml: line 3, column 5: unknown key"
        says '    3 |   - exce: [ls]'
        says '      |     ^'
        run -64 --separate-stderr brig policy ${command/ / --json }
        [ -z "$stderr" ]
    done
    [ ! -e k ]
    for option in --policy --overlay; do
        run -64 brig sandbox exec $option policy.yaml -- true
        says '      |     ^'
    done
}

@test "conditions decide about a real run, whose receipt has its effect" {
    write 'version: 1' 'default: deny' 'commands:' '  - {name: look, allow: [], risk: "<=E1"}' \
        '  - {name: writes, allow: [], effect: DATA_WRITE, when: '"'"'principal != "nobody-at-all" && !network'"'"'}'
    run --separate-stderr brig sandbox exec --json --policy policy.yaml -- ls /
    [ "$status" -eq 0 ]
    json_is .rule look
    json_is .effect_class DATA_READ
    json_is .effect_risk E0
    run --separate-stderr brig sandbox exec --json --policy policy.yaml -- touch /sandbox/tmp/x
    json_is .rule writes
    run --separate-stderr brig sandbox exec --json --policy policy.yaml -- rm /sandbox/tmp/x
    json_is .verdict DENY
    json_is .effect_class DATA_DELETE
    json_is .effect_risk E3
    id=$(jq -r .receipt_id <<<"$output")
    run --separate-stderr brig receipts show "$id"
    [[ $output == *DATA_DELETE* ]]
}

@test "the same as JSON" {
    write 'version: 1' 'commands:' '  - exce: [ls]'
    run --separate-stderr brig policy check --json policy.yaml "$BRIG_ROOT/policies/careful.yaml"
    [ "$status" -eq 64 ]
    json_is '.policies | length' 2
    json_is '.policies[0].valid' false
    json_is '.policies[0].error.code' invalid
    json_is '.policies[0].error.line' 3
    json_is '.policies[0].error.column' 5
    json_is '.policies[1].valid' true
    json_is '.policies[1].policy_hash | test("^sha256:[0-9a-f]{64}$")' true
    json_is '.policies[1].error' null
}

@test "relative paths are those of the folder a command starts in" {
    printf '%s\n' 'version: 1' 'default: allow' 'paths:' '  - {name: home, deny: "/home/sandbox/kept/**"}' \
        '  - {name: project, deny: "/workspace/kept/**"}' >kept.yaml
    mkdir project
    run brig sandbox exec --policy kept.yaml -- touch kept/x
    status_is 77
    [[ "$output" == *"rule home, line 4"* ]]
    run brig sandbox exec --policy kept.yaml --workspace project:rw -- touch kept/x
    status_is 77
    [[ "$output" == *"rule project, line 5"* ]]
    run brig sandbox exec --policy kept.yaml --mount project:/workspace -- touch kept/x
    status_is 77
    [[ "$output" == *"rule project, line 5"* ]]
    # The rules see the folder that the command sees.
    run brig sandbox exec --quiet --policy kept.yaml -- pwd
    [ "$output" = /home/sandbox ]
    run brig sandbox exec --quiet --policy kept.yaml --workspace project:rw -- pwd
    [ "$output" = /workspace ]
    run brig sandbox exec --quiet --policy kept.yaml --workdir /tmp -- sh -c 'mkdir kept && touch kept/x'
    status_is 0
    # And so does whoever explains it.
    run brig policy explain --policy kept.yaml -- touch kept/x
    status_is 77
    [[ "$output" == *"home"* ]]
    run brig policy explain --policy kept.yaml --mount project:/workspace -- touch kept/x
    status_is 77
    [[ "$output" == *"POLICY_DENY"*"project"* ]]
}

@test "what cannot be enforced yet is named" {
    write 'version: 1' 'network_policies:' '  db:' '    endpoints:' \
        '      - {host: db.example.com, port: 5432, protocol: sql, rules: [{allow: {command: SELECT}}]}' \
        '    binaries: [{path: /usr/bin/psql}]'
    run brig policy check policy.yaml
    [ "$status" -eq 0 ]
    [[ $output == *"line 5: protocol sql is not enforceable yet; runs under this policy are refused" ]]
}

@test "every shipped policy is right" {
    for file in "$BRIG_ROOT"/policies/*.yaml; do
        [[ $file == *.test.yaml ]] || brig policy check "$file"
    done
}

@test "one wrong file among several decides the exit status, and all are looked at" {
    write 'version: 2'
    run brig policy check policy.yaml "$BRIG_ROOT/policies/default.yaml"
    [ "$status" -eq 64 ]
    [[ $output == *"default.yaml: valid"* ]]
}

@test "a file that is not there, a folder and a terminal's own language" {
    run brig policy check missing.yaml
    [ "$status" -eq 66 ]
    [[ $output == *"opening missing.yaml: No such file or directory"* ]]
    run brig policy check "$WORK"
    [ "$status" -ne 0 ]
    printf 'version: 1\n"\\e]0;x\\a": 1\n' >policy.yaml
    run brig policy check policy.yaml
    [ "$status" -eq 64 ]
    [[ $output != *$'\e'* ]]
}

@test "a FIFO in place of the file does not hang" {
    mkfifo policy.yaml
    run timeout 30 "$BRIG" policy check policy.yaml
    [ "$status" -eq 64 ]
}

@test "a standing policy holds without a flag, here and in a daemon, until it is reset" {
    printf 'version: 1\ncommands:\n  - allow: [cat]\n' >stands.yaml
    run -0 brig policy apply stands.yaml
    says "this policy holds from now on: sha256:"
    receipt_is .action policy
    receipt_is .outcome.policy.standing true
    run -77 brig sandbox exec -- true
    receipt_is .reason_code POLICY_DEFAULT_DENY
    run -0 brig sandbox exec --policy "$BRIG_ROOT/policies/default.yaml" -- true
    run -0 brig sandbox create --json
    id=$(jq -r .sandbox_id <<<"$output")

    # What is none changes nothing; one that was damaged by hand refuses everything but its repair.
    echo 'version: 7' >none.yaml
    run -64 brig policy apply none.yaml
    run -77 brig sandbox exec -- true
    echo 'version: 7' >"$BRIG_HOME/policy.yaml"
    run -64 brig sandbox exec -- true
    says "the standing policy"
    run -0 brig policy reset --json
    json_is .standing false
    run -0 brig sandbox exec -- true
    # The sandbox that stands keeps what it was made under.
    run -77 brig sandbox exec "$id" -- true
    run -0 brig sandbox destroy "$id"
}
