#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Policies against each other, against the table next to them, and rule by rule.

load common

setup() {
    common_setup
    cat >a.yaml <<'Y'
version: 1
default: deny
limits: {memory: 1G, pids: 10}
commands:
  - {name: look, allow: [git, [status, log], "**"]}
  - {name: push, ask: [git, push, "**"]}
  - {name: no-force, deny: [git, "**", --force, "**"], reason: nothing is forced}
Y
}

# ---- diff ----

@test "policies that say the same do not differ, however they are written" {
    { echo '# other words'; sed 's/{memory: 1G, pids: 10}/{pids: 10, memory: 1G}/' a.yaml; } >b.yaml
    run -0 brig policy diff a.yaml b.yaml
    [ "$output" = "no difference" ]
    run -0 brig policy diff --json a.yaml b.yaml
    json_is .same true
    json_is .complete true
    json_is '.commands | length' 0
}

@test "a change is told by rule, and by commands whose verdict changes" {
    sed 's/ask: \[git, push/allow: [git, push/' a.yaml >b.yaml
    run -1 brig policy diff a.yaml b.yaml
    says "command: git push: ASK by push, line 6 -> ALLOW by push, line 6"
    says "others may change, too"
    # What the deny rule is about stays denied, and is no change.
    [[ $output != *"--force: "*"-> ALLOW"* ]]
    run -1 brig policy diff --json b.yaml a.yaml
    json_is .same false
    json_is .complete false
    json_is '[.commands[] | select(.before.verdict == "ALLOW" and .after.verdict == "ASK")] | length > 0' true
    json_is '.sections | map(.section) | unique | join(",")' commands
}

@test "a rule that is gone opens what two rules were about together" {
    grep -v no-force a.yaml >b.yaml
    run -1 brig policy diff --json a.yaml b.yaml
    json_is '[.commands[] | select(.before.rule == "no-force" and .after.verdict == "ASK")] | length > 0' true
    json_is '[.commands[] | select(.before.rule == "no-force" and .after.verdict == "ALLOW")] | length > 0' true
    json_is '.sections[0].before | fromjson | .name' no-force
}

@test "another rule over paths is told, and seen by a command that names one" {
    { cat a.yaml; printf 'paths:\n  - {name: hooks, deny: "/workspace/.git/**"}\n'; } >b.yaml
    sed -i 's/default: deny/default: allow/' a.yaml b.yaml
    run -1 brig policy diff --json a.yaml b.yaml
    json_is .complete false
    json_is '.sections | map(.section) | unique | join(",")' paths
    json_is '[.commands[] | select(.before.verdict == "ALLOW" and .after.rule == "hooks")] | length > 0' true
    sed 's/[.]git/.github/' b.yaml >c.yaml
    run -1 brig policy diff --json b.yaml c.yaml
    json_is '.sections | length' 2
    { cat a.yaml; echo 'mode: advisory'; } >b.yaml
    run -1 brig policy diff --json a.yaml b.yaml
    json_is .complete false
}

@test "another default is seen by a command no rule names" {
    sed 's/default: deny/default: allow/' a.yaml >b.yaml
    run -1 brig policy diff --json a.yaml b.yaml
    json_is '[.commands[] | select(.command[0] == "brig-example") | .after.verdict][0]' ALLOW
    json_is '[.sections[] | select(.section == "default") | .after][0]' '"allow"'
}

@test "sections that are not about commands are compared member by member, completely" {
    sed 's/memory: 1G/memory: 2G/' a.yaml >b.yaml
    printf 'network_policies:\n  docs: {endpoints: [{host: docs.example.org, port: 443}], binaries: [{path: /usr/bin/curl}]}\n' >>b.yaml
    run -1 brig policy diff a.yaml b.yaml
    says 'limits.memory: "1G" -> "2G"'
    says 'network_policies: nothing -> {"docs"'
    says "no verdict on a command changes"
    [[ $output != *pids* ]]
    run -1 brig policy diff --json a.yaml b.yaml
    json_is .complete true
}

@test "a list without rules is not the same as none" {
    printf 'version: 1\n' >none.yaml
    printf 'version: 1\ncommands: []\n' >empty.yaml
    run -1 brig policy diff none.yaml empty.yaml
    says 'commands: nothing -> []'
    says "ALLOW -> DENY by default"
    [[ $output != *"no difference"* ]]
    run -1 brig policy diff --json empty.yaml none.yaml
    json_is .same false
}

@test "the order of rules is told: the first of equals says whose word is needed" {
    cat >one.yaml <<'Y'
version: 1
approvals: {a: {by: ["custodian:a"]}, b: {by: ["custodian:b"]}}
commands:
  - {name: x, ask: [git, push, "**"], approval: a}
  - {name: y, ask: [git, "**"], approval: b}
  - {name: z, deny: [rm]}
Y
    sed '4{h;d};5G' one.yaml >two.yaml
    run -1 brig policy diff one.yaml two.yaml
    says 'commands.0: {"approval":"a"'
    says 'commands.1: {"approval":"b"'
    [[ $output != *commands.2* ]]
    run -1 brig policy diff --json one.yaml two.yaml
    json_is .same false
    json_is '.sections | length' 2
}

@test "what else verdicts come from is not complete without samples" {
    cat >n.yaml <<'Y'
version: 1
commands: [{name: online, allow: [], when: network}]
network_policies: {docs: {endpoints: [{host: docs.example.org, port: 443}], binaries: [{path: /usr/bin/curl}]}}
Y
    grep -v network_policies n.yaml >o.yaml
    run -1 brig policy diff --json n.yaml o.yaml
    json_is .complete false
    json_is '[.commands[] | select(.before.rule == "online") | .after.verdict][0]' DENY
    printf 'version: 1\ndefault: allow\nnetwork_policies: {db: {endpoints: [{host: db.example.org, port: 1, protocol: sql, access: full}]}}\n' >sql.yaml
    sed 's/, protocol: sql, access: full//' sql.yaml >tcp.yaml
    run -1 brig policy diff sql.yaml tcp.yaml
    says "DENY -> ALLOW"
    [[ $output != *"no verdict on a command changes"* ]]
}

@test "overlays are compared like policies" {
    printf 'version: 1\nlimits: {cpu: 1, pids: 5}\n' >o1.yaml
    { echo '# the same'; printf 'version: 1\nlimits: {pids: 5, cpu: 1}\n'; } >o2.yaml
    printf 'version: 1\nlimits: {cpu: 2, pids: 5}\n' >o3.yaml
    for i in 1 2 3; do
        brig policy bundle make --out "b$i.json" --key k --name n --version 1 a.yaml "o$i.yaml"
    done
    run -0 brig policy diff b1.json b2.json
    run -1 brig policy diff b1.json b3.json
    says 'overlay 1, limits.cpu: 1 -> 2'
    says "no verdict on a command changes"
    run -1 brig policy diff a.yaml b1.json
    says 'overlay 1: nothing -> {'
}

@test "a bundle is compared as what is in it" {
    printf 'version: 1\ncommands: [{name: no-log, deny: [git, log]}]\n' >o.yaml
    brig policy bundle make --out b.json --key k --name n --version 1 a.yaml
    run -0 brig policy diff a.yaml b.json
    brig policy bundle make --out c.json --key k --name n --version 2 a.yaml o.yaml
    run -1 brig policy diff b.json c.json
    says "command: git log: ALLOW by look"
    says "DENY by no-log, line 2 of overlay 1"
}

# ---- test ----

@test "every shipped policy passes its table" {
    for file in "$BRIG_ROOT"/policies/*.yaml "$BRIG_ROOT"/policies/network/*.yaml; do
        [[ $file == *.test.yaml ]] || brig policy test "$file"
    done
}

@test "a case that fails is told with its place" {
    printf -- '- {run: [git, status], expect: allow, rule: look, line: 5}\n- {run: [git, push], expect: allow}\n' >a.test.yaml
    run -1 brig policy test a.yaml
    [ "${lines[0]}" = "a.test.yaml:2: the verdict is ask, should be allow" ]
    [ "${lines[1]}" = "a.yaml: 1 of 2 cases as expected" ]
    run -1 brig policy test --json a.yaml
    json_is '.policies[0].failed' 1
    json_is '.policies[0].failures[0].line' 2
    printf -- '- {run: [git, log, --force], expect: deny, rule: no-force, reason: POLICY_DENY, text: nothing is forced}\n' >t.yaml
    run -0 brig policy test --cases t.yaml a.yaml
    sed -i 's/rule: no-force/rule: look/' t.yaml
    run -1 brig policy test --cases t.yaml a.yaml
    says "t.yaml:1: rule is no-force, should be look"
}

@test "a table that tests nothing, or is not one, is an error" {
    run -66 brig policy test a.yaml
    for table in '[]' 'a: 1' '- {run: [git]}' '- {run: [], expect: deny}' '- {expect: deny}' '- {run: [git], expect: deny, rlue: x}' \
        '- {run: [git], connect: "x:1", expect: deny}' '- {run: git, expect: deny}' '- {connect: "x.org:443", expect: deny, rule: x}'; do
        printf '%s\n' "$table" >a.test.yaml
        run -64 brig policy test a.yaml
    done
    says 'unknown key "rule" in a case about the network'
}

@test "a case has the network of its policy, as a run has where nobody says" {
    cat >n.yaml <<'Y'
version: 1
commands: [{name: online, allow: [], when: network}]
network_policies: {docs: {endpoints: [{host: docs.example.org, port: 443}], binaries: [{path: /usr/bin/curl}]}}
Y
    echo '- {run: [ls], expect: allow, rule: online}' >n.test.yaml
    run -0 brig policy test n.yaml
    run -0 brig policy explain --policy n.yaml -- ls
}

# ---- explain ----

@test "explain says of every rule why it does or does not match" {
    run -77 brig policy explain --policy a.yaml -- git log --force
    says "+ look, line 5 of the policy (ALLOW): it matches"
    says "- push, line 6 of the policy (ASK): no word fits its word 2"
    says "+ no-force, line 7 of the policy (DENY): it matches"
    says "DENY by no-force, line 7 (POLICY_DENY): nothing is forced"
    run -77 brig policy explain --policy a.yaml -- ls
    says "- look, line 5 of the policy (ALLOW): it is not about the program ls"
    run -0 brig policy explain --policy a.yaml -- git status
    run -77 brig policy explain --policy a.yaml --json -- git push
    json_is .verdict ASK
    json_is .rule push
    json_is '.rules | length' 3
    json_is '[.rules[] | select(.matched) | .rule] | join(",")' push
}

@test "explain shows words that are no UTF-8, in JSON as bytes" {
    run -77 --separate-stderr brig policy explain --policy a.yaml --json -- ls $'a\xff' b
    [ -z "$stderr" ]
    json_is .verdict DENY
    json_is '.rules[0].command | tojson' '["ls",{"bytes_b64":"Yf8="},"b"]'
    run -77 --separate-stderr brig policy explain --policy a.yaml --json -- $'l\xff'
    json_is '[.rules[].command | tojson] | unique | join(" ")' '[{"bytes_b64":"bP8="}]'
}

@test "explain shows what is inside a carrier, conditions, and every layer" {
    run -77 brig policy explain --policy a.yaml -- env A=b git push
    says "inside env: git push"
    says "+ push, line 6 of the policy (ASK): it matches"
    printf 'version: 1\ndefault: allow\ncommands: [{name: mine, deny: [git, "**"], principal: "ci-*"}]\n' >w.yaml
    run -0 brig policy explain --policy w.yaml --principal me -- git log
    says '- mine, line 3 of the policy (DENY): its "principal" does not hold'
    run -77 brig policy explain --policy w.yaml --principal ci-1 -- git log
    printf 'version: 1\ncommands: [{name: no-git, deny: [git, "**"]}]\n' >c.yaml
    brig policy ceiling set c.yaml
    run -77 brig policy explain --policy a.yaml -- git status
    says "+ no-git, line 2 of the ceiling (DENY): it matches"
    says "DENY by no-git, line 2 of the ceiling"
}

@test "explain names the decider outside, and asks it only when told to" {
    printf 'version: 1\ndefault: allow\nexternal: {url: "http://127.0.0.1:1/x", protocol: opa}\n' >e.yaml
    run -0 brig policy explain --policy e.yaml -- ls
    says "http://127.0.0.1:1/x is not asked without --external"
    run -77 brig policy explain --external --policy e.yaml -- ls
    says PDP_ERROR
}

@test "explain names the policy that cannot be read" {
    printf 'version: 1\n' >plain.yaml
    brig policy apply plain.yaml >/dev/null
    echo 'x: [' >"$BRIG_HOME/policy.yaml"
    run -64 brig policy explain -- ls
    says 'the standing policy ("brig policy apply" replaces it): line 2'
}

@test "explain does not allow what the mode of a policy refuses" {
    printf 'version: 1\ndefault: allow\nmode: advisory\n' >advisory.yaml
    run -77 brig policy explain --policy advisory.yaml -- ls
    says "ADVISORY_ONLY"
    printf 'version: 1\ndefault: allow\nrequires_release: reviewer\n' >release.yaml
    run -77 brig policy explain --policy release.yaml -- ls
    says "only the program that is released as reviewer, over 10 runs or more, runs"
    run -77 brig policy explain --policy release.yaml --json -- ls
    json_is .requires_release reviewer
    json_is .reason_code RELEASE_REQUIRED
}
