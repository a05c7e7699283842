#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig policy check: policies read as a run would read them.

load common

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
    [ "${stderr_lines[0]}" = 'brig: policy.yaml: line 3, column 5: unknown key "exce"; known keys here: name, allow, ask, deny, reason' ]
    [ "${stderr_lines[1]}" = '    3 |   - exce: [ls]' ]
    [ "${stderr_lines[2]}" = '      |     ^' ]
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

@test "what cannot be enforced yet is named" {
    run brig policy check "$BRIG_ROOT/tests/vectors/policy/openshell/b-issue-tracker.yaml"
    [ "$status" -eq 0 ]
    [[ $output == *"line 5: network_policies is not enforceable yet; runs under this policy are refused" ]]
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
    run timeout 5 "$BRIG" policy check policy.yaml
    [ "$status" -eq 64 ]
}
