#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig advisory check, and the same over HTTP: what is said is classified, nothing of it happens.

load common
load sandbox
load serve

setup() {
    common_setup
    need jq
}

teardown() {
    serve_end
}

SENTENCE='This action exceeds my custodial authority. Here is a safe advisory version instead…'

# said EXIT KIND VALUE [OPTION...]
said() {
    local wanted=$1 kind=$2 value=$3
    shift 3
    run brig advisory check --kind "$kind" "$@" -- "$value"
    [ "$status" -eq "$wanted" ] || {
        printf '%s is %s: %s\n' "$value" "$status" "$output" >&2
        return 1
    }
}

# vectors FILE KIND: every case of it, asked in one go; prints those that are answered otherwise.
vectors() {
    local file=$BRIG_ROOT/tests/vectors/advisory/$1
    jq -c --arg kind "$2" '.[] | {kind: $kind, value, cwd: (.cwd // ""), access: (.access // "read"), profile: (.profile // "default")}' \
        "$file" >asked
    brig advisory check --lines <asked >answered
    [ "$(wc -l <asked)" -eq "$(jq length "$file")" ]
    [ "$(wc -l <asked)" -eq "$(wc -l <answered)" ]
    jq -n --slurpfile wanted "$file" --slurpfile got answered '
        [$wanted[0], $got] | transpose[]
        | select(.[0].verdict != .[1].verdict or .[0].rule != .[1].rule or .[0].category != .[1].category
                 or (.[0].exit // .[1].exit_code) != .[1].exit_code
                 or (.[0].span and .[0].span != [.[1].span.start, .[1].span.end]))' >wrong
    cat wrong
    [ ! -s wrong ]
}

@test "every command of the vectors gets its verdict" {
    vectors commands.json command
}

@test "every path of the vectors gets its verdict" {
    vectors paths.json path
}

@test "every output of the vectors gets its verdict" {
    vectors outputs.json output
}

@test "every action of the vectors gets its verdict" {
    vectors actions.json action
}

@test "each verdict has its exit status and its sentence" {
    said 0 command 'ls -l'
    [ "$output" = allow ]
    said 10 command 'rm -rf build'
    [ "${lines[0]}" = "advisory by banned.rm, bytes 0 to 2 (unsafe_command, attempted_shell_execution)" ]
    [ "${lines[1]}" = "$SENTENCE It would delete files or directories." ]
    [[ ${lines[1]} != *"rm -rf"* ]]
    said 11 path ../x
    [ "${lines[1]}" = "REJECT: Path exceeds sandbox boundary." ]
    said 12 path output/new.txt --access create
    said 12 action '{"type":"filesystem","operation":"delete","target":"output/a","risk":"unknown"}'
    said 14 output 'not an envelope'
    [[ ${lines[1]} == "line 1, column 1: "* ]]
    said 64 command ls --cwd
}

@test "the public document's request lacks a comma, and the place is told" {
    printf 'ACTION REQUEST:\n{\n  "type": "filesystem",\n  "operation": "delete",\n  "target": "/sandbox/output/img_001.jpg"\n  "risk": "irreversible"\n}\n' >request
    run brig advisory check --kind action --json -- - <request
    [ "$status" -eq 14 ]
    [ "$(jq -c '.position | [.line, .column, .byte]' <<<"$output")" = '[6,3,111]' ]
    sed -i 's/jpg"/jpg",/' request
    run brig advisory check --kind action -- - <request
    [ "$status" -eq 12 ]
}

@test "standard input is read to its ceiling and not past it" {
    head -c 1048576 /dev/zero | tr '\0' a >much
    run brig advisory check --kind output -- - <much
    [ "$status" -eq 14 ]
    echo >>much
    run brig advisory check --kind output -- - <much
    [ "$status" -eq 75 ]
    run brig advisory check --kind command -- - <<<'echo a; git push'
    [ "$status" -eq 10 ]
    run brig advisory check --kind command -- - </dev/null
    [ "$status" -eq 0 ]
}

@test "what is missing or unknown is said" {
    run brig advisory check -- x
    [ "$status" -eq 64 ]
    [[ $output == *"--kind command, path, output or action"* ]]
    run brig advisory check --kind command
    [ "$status" -eq 64 ]
    run brig advisory check --kind poem -- x
    [ "$status" -eq 64 ]
    run brig advisory check --lines <<<'{"kind":"command"}'
    [ "$status" -eq 64 ]
    [[ $output == *"line 1: "* ]]
    run brig advisory check --lines <<<'x'
    [ "$status" -eq 64 ]
}

@test "lines: every one has its answer, and what is not understood is refused" {
    cat >asked <<'END'
{"kind":"path","value":"input/a"}
{"kind":"path","value":"input/a","acces":"delete"}
x
{"kind":"command","value_b64":"cm0geA=="}
{"kind":"command","value_b64":"/3I="}
{"kind":"command","value":"ls","value_b64":"bHM="}
{"kind":"command","value_b64":"bHM"}
{"kind":"command","value":["ls"]}
{"kind":"command","value":"podman ps","profile":"strict"}
["command","ls"]
{"kind":"command","value":"ls"}
END
    run --separate-stderr brig advisory check --lines <asked
    [ "$status" -eq 64 ]
    [ "${#lines[@]}" -eq 11 ]
    [ "$(jq -rs '[.[] | .rule // .error.code] | join(" ")' <<<"$output")" = \
        " invalid invalid banned.rm unparseable invalid invalid invalid invalid invalid " ]
    [ "$(jq -rs '.[0].verdict, .[10].verdict' <<<"$output")" = allow$'\n'allow ]
    [[ "$(jq -rs '.[1].error.message' <<<"$output")" == *'"acces"'* ]]
    [[ "$(jq -rs '.[5].error.message' <<<"$output")" == *"not both"* ]]
    [[ "$stderr" == *"7 lines could not be checked, the first of them: line 2: "* ]]
    # One that is longer than any.
    { echo '{"kind":"command","value":"ls"}' && head -c 4200000 /dev/zero | tr '\0' a && printf '\n{"kind":"command","value":"rm x"}\n'; } >asked
    run --separate-stderr brig advisory check --lines <asked
    [ "$status" -eq 75 ]
    [ "$(jq -rs '[.[] | .verdict // .error.code] | join(" ")' <<<"$output")" = "allow limit advisory" ]
    [[ "$stderr" == *"line 2: "* ]]
}

@test "aliases count by default and not in the profile of the public document" {
    said 10 command 'apt-get install x'
    said 0 command 'apt-get install x' --profile strict-seed
    said 10 command 'apt install x' --profile strict-seed
}

@test "nothing that is checked happens" {
    touch kept
    said 10 command "rm $PWD/kept"
    said 10 command "\$(touch $PWD/made)"
    said 12 action '{"type":"filesystem","operation":"delete","target":"/sandbox/output/kept","risk":"irreversible"}'
    [ -e kept ]
    [ ! -e made ]
    [ -z "$(find "$BRIG_HOME" -type f)" ]
}

@test "the daemon says the same" {
    need curl
    serve
    TOKEN=$(token --scope read)
    for body in '{"kind":"command","value":"sudo ls"}' '{"kind":"path","value":"input/x","access":"delete"}' \
        '{"kind":"output","value":"I will see to it"}' '{"kind":"action","value":"{}"}' \
        '{"kind":"command","value_b64":"/3I="}' '{"kind":"command","value":"podman ps","profile":"strict-seed"}'; do
        post /v1/advisory/check "$body"
        [ "$http" -eq 200 ]
        [ "$(jq -cS . <<<"$output")" = "$(brig advisory check --lines <<<"$body" | jq -cS .)" ]
        [[ $body != *b64* ]] || [ "$(jq -r .rule <<<"$output")" = unparseable ]
    done
    for body in '{"kind":"poem","value":"x"}' '{"kind":"command","value":"ls","value_b64":"bHM="}' \
        '{"kind":"command","value_b64":"bHM=","value":"ls"}' '{"kind":"path","value":"x","acces":"delete"}'; do
        post /v1/advisory/check "$body"
        refused 400 invalid
        run brig advisory check --lines <<<"$body"
        [ "$status" -eq 64 ]
    done
    post /v1/advisory/check '{"kind":"command","value":null,"value_b64":"bHM="}'
    json_is .verdict allow
    head -c 1048577 /dev/zero | tr '\0' a | jq -Rc '{kind:"output",value:.}' >much
    post /v1/advisory/check @much
    refused 429 limit
    TOKEN=$(token --scope run)
    post /v1/advisory/check '{"kind":"path","value":"x"}'
    refused 403 forbidden
}
