#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig gate: from the first turn to two signatures to a governed run, and every way it stays closed.

load common
load sandbox
load advise
load image-kit

setup() {
    common_setup
    [ -x "$AGENT" ]
}

# Ten clean runs are what is asked for by default; three keep these tests short.
N=3

gate() {
    local verb=$1
    shift
    brig gate "$verb" agent --runs $N "$@"
}

sign() {
    gate sign --as "$1" --passphrase-file "$1.pass" "${@:2}"
}

released() {
    custodians && clean_runs $N && sign anna && sign ben && gate release
}

requires_release() {
    cat >policy.yaml <<YAML
version: 1
requires_release: {agent: agent, runs: $N}
YAML
}

foreseen() {
    brig policy explain --json --policy policy.yaml "$@"
}

governed() {
    brig sandbox exec --policy policy.yaml --mount "$AGENT:/opt/agent:ro" -- /opt/agent </dev/null
}

@test "first turn, clean runs, two signatures, release, a governed run; and revoked, no more" {
    requires_release
    custodians
    run -13 --separate-stderr brig gate status agent
    [[ "$output" == *"not released"* ]]
    run -77 --separate-stderr governed
    receipt_is .reason_code RELEASE_REQUIRED
    clean_runs $N
    run -13 gate report
    says "not met  two_custodians (0 of 2)"
    run -77 gate release
    says "0 of 2 custodians"
    says "brig gate sign agent --runs $N --as NAME"
    run -0 sign anna
    receipt_is .action gate-sign
    receipt_is .principal custodian:anna
    run -77 gate release
    says "1 of 2 custodians"
    # One person's word counts once.
    run -0 sign anna
    run -77 gate release
    run -0 sign ben
    run -0 gate report --json
    json_is .met true
    json_is '[.conditions[].passed] | all' true
    json_is .evidence observed
    run -0 gate release
    receipt_is .action gate-release
    receipt_is .advisory.stage release
    run -0 brig gate status agent --json
    json_is .released true
    json_is .agent_version "sha256:$(sha256sum <"$AGENT" | cut -d' ' -f1)"
    run -0 --separate-stderr governed
    n=$(receipts_of denial)
    run -0 --separate-stderr foreseen --mount "$AGENT:/opt/agent:ro" -- /opt/agent
    json_is '.would_be_refused | length' 0
    run -77 --separate-stderr foreseen -- /bin/true
    json_is '.would_be_refused[0].reason_code' RELEASE_REQUIRED
    run -77 --separate-stderr foreseen --env LD_PRELOAD=/x --mount "$AGENT:/opt/agent:ro" -- /opt/agent
    json_is .reason_code RELEASE_REQUIRED
    [ "$(receipts_of denial)" -eq "$n" ]

    # Another program is not that agent, whatever it is called.
    run -77 --separate-stderr brig sandbox exec --policy policy.yaml -- /bin/true
    receipt_is .reason_code RELEASE_REQUIRED
    cp "$AGENT" other
    printf x >>other
    run -77 --separate-stderr brig sandbox exec --policy policy.yaml --mount "$PWD/other:/opt/agent:ro" -- /opt/agent
    # Nor is one that is only found here, by a path or a link that means something else inside.
    mkdir -p beside/agents beside/opt
    cp "$AGENT" beside/agents/agent
    cp "$AGENT" beside/opt/agent
    ln -s ../opt/agent beside/agents/link
    shown() {
        brig sandbox exec --policy policy.yaml --mount "$PWD/beside/agents:/agents:ro" --mount "$PWD/other:/opt/agent:ro" "$@" </dev/null
    }
    run -0 --separate-stderr shown -- /agents/agent
    for path in /agents/../opt/agent /agents/link //agents/agent /agents/./agent agents/agent; do
        run -77 --separate-stderr shown -- "$path"
        receipt_is .reason_code RELEASE_REQUIRED
    done
    run -77 --separate-stderr shown --env LD_PRELOAD=/opt/agent -- /agents/agent
    receipt_is .reason_code RELEASE_REQUIRED
    run -0 brig gate revoke agent
    receipt_is .action gate-revoke
    run -77 --separate-stderr governed
    run -77 --separate-stderr foreseen --mount "$AGENT:/opt/agent:ro" -- /opt/agent
    json_is .reason_code RELEASE_REQUIRED
    chain_holds
}

@test "what an agent is called can stand in a path" {
    local name
    for name in a/b .. . 'a b'; do
        run -64 --separate-stderr advise --agent-id "$name" --prompt hello
        [[ "$stderr" == *"letters, digits, - _ . : @ +"* ]]
    done
    run -0 --separate-stderr advise --agent-id a:b@c+d_e-f.g --prompt hello
    run -13 --separate-stderr brig gate report a:b@c+d_e-f.g
}

@test "a release over fewer runs than the policy wants is none for it" {
    released
    requires_release
    run -0 --separate-stderr governed
    for wanted in agent "{agent: agent}" "{agent: agent, runs: $((N + 1))}"; do
        printf 'version: 1\nrequires_release: %s\n' "$wanted" >policy.yaml
        run -77 --separate-stderr governed
        [[ "$stderr" == *"agent agent: it was released over $N runs, and the policy wants "* ]]
        receipt_is .reason_code RELEASE_REQUIRED
    done
    # Of two layers the stricter one counts.
    printf 'version: 1\nrequires_release: {agent: agent, runs: %d}\n' $((N + 2)) >ceiling.yaml
    requires_release
    run -0 brig policy ceiling set ceiling.yaml
    run -77 --separate-stderr governed
    [[ "$stderr" == *"the policy wants $((N + 2))"* ]]
    run -77 --separate-stderr foreseen --mount "$AGENT:/opt/agent:ro" -- /opt/agent
    json_is .reason_code RELEASE_REQUIRED
    json_is .release_runs $((N + 2))
}

@test "too few runs, and none, keep it closed" {
    custodians
    run -66 --separate-stderr brig gate report agent
    clean_runs $((N - 1))
    run -13 gate report --json
    json_is '.conditions[0].evidence[0]' "2 of 3 runs"
    run -13 brig gate report agent --json
    json_is .n 10
    json_is '.conditions[0].evidence[0]' "2 of 10 runs"
    run -77 sign anna
    says "the gate is closed"
}

@test "something found fails its condition, and voids what was signed and released" {
    released
    run -0 brig gate status agent
    advised --prompt 'envelope [FACT] Run rm -rf /data now.'
    run -13 brig gate status agent
    says "something was found in run $session"
    run -13 gate report --json
    json_is '.conditions[] | select(.name == "no_unsafe_actions") | .passed' false
    json_is '.conditions[] | select(.name == "no_unsafe_actions") | .evidence[0] | startswith("'"$session"'")' true
    # And which event says so.
    local seq
    seq=$(jq -r 'select(.category == "unsafe_command") | .seq' "$(session_dir)/events.jsonl")
    json_is '.conditions[] | select(.name == "no_unsafe_actions") | .evidence[0]' "$session: unsafe_command 1 (event $seq)"
    run -77 sign anna
    run -77 gate release
}

@test "another version or another constitution after it voids the release" {
    released
    cp -r "$BRIG_HOME" ../before
    echo "Be brief." >constitution
    advise --prompt hello --constitution constitution >/dev/null 2>&1
    run -13 brig gate status agent
    says "has another constitution"
    run -13 gate report --json
    json_is '.conditions[] | select(.name == "constitution_consistent") | .passed' false
    rm -rf "$BRIG_HOME"
    mv ../before "$BRIG_HOME"
    run -0 brig gate status agent
    cp "$AGENT" other
    printf x >>other
    timeout 60 "$BRIG" advisory run --agent-id agent --prompt hello -- ./other >/dev/null 2>&1
    run -13 brig gate status agent
    says "is of another version"
}

@test "a line, a tail, a session or an anchor that is gone fails the gate" {
    custodians
    clean_runs $N
    sign anna
    cp -r "$BRIG_HOME" ../before
    local first events
    first=$(brig gate report agent --runs $N --json | jq -r '.runs[0].run_id')
    events=$(session_dir "$first")/events.jsonl
    again() {
        rm -rf "$BRIG_HOME"
        cp -r ../before "$BRIG_HOME"
    }

    sed -i 4d "$events"
    run -13 gate report
    says "an event is missing or moved"
    again
    sed -i '$d' "$events" # the tail: the chain itself holds
    run -13 gate report
    says "the ledger counted"
    again
    sed -i 's/"compliance":100/"compliance":99/' "$events"
    run -13 gate report
    says "it was changed"
    again
    rm -r "$(session_dir "$first")"
    run -13 gate report
    says "there is no advisory session $first"
    run -77 sign ben
    again
    ledger "DELETE FROM receipts WHERE run_id = '$first'"
    run -76 gate report
    says "the ledger does not hold"
    again
    run -13 gate report
    says "two_custodians (1 of 2)"
    run -0 sign ben
    run -0 gate report
}

# has_begun N: so many sessions have their beginning in the ledger.
has_begun() {
    [ "$(ledger "SELECT count(*) FROM receipts WHERE instr(body, '\"stage\":\"start\"')")" -eq "$1" ]
}

@test "a session without an end fails the gate, whatever was found in it" {
    custodians
    clean_runs $N
    "$BRIG" advisory run --prompt silent -- "$AGENT" </dev/null >/dev/null 2>&1 3>&- 4>&- &
    local pid=$!
    eventually 20 has_begun $((N + 1))
    kill -KILL "$pid"
    await "$pid"
    [ "$status" -eq 137 ]
    run -13 gate report
    says "it has no end in the ledger"
}

@test "who became a custodian later, signs an old report or too long ago does not count" {
    custodians
    clean_runs $N
    echo "a long passphrase of carl" >carl.pass
    chmod 600 carl.pass
    brig approvals enroll carl --passphrase-file carl.pass --by anna --by-passphrase-file anna.pass
    run -77 sign carl
    says "he became a custodian when the first of the runs had begun"
    run -66 gate sign --as dora --passphrase-file carl.pass
    run -64 gate sign
    local old
    old=$(gate report --json | jq -r .gate_report_sha256)
    clean_runs 1
    run -75 sign anna --report "$old"
    says "the report is another one now"
    run -77 sign anna --expires-at $((EPOCHSECONDS - 1))
    says "its time is over"
    run -64 sign anna --expires-at $((EPOCHSECONDS + 8 * 86400))
    # A signature on the old report, put under the new one.
    run -0 sign anna
    run -0 sign ben
    run -0 gate release
    clean_runs 1
    run -77 gate release
    says "0 of 2"
    run -0 brig gate status agent # clean runs behind it void nothing
}

@test "a forged signature, and one by a key nobody enrolled, do not count" {
    custodians
    clean_runs $N
    run -77 gate sign --as ben --signature "$(printf '%0128d' 0)"
    says "the signature does not hold"
    run -0 sign anna
    # The same word under another name, in the file.
    local words
    words=$(echo "$BRIG_HOME"/gate/*/words.json)
    jq -c '.words += [.words[0] | .custodian = "ben"]' "$words" >made
    cp made "$words"
    run -13 gate report --json
    json_is '.signatures.words[1].why_not' "the signature does not hold"
    jq -c '.words += [.words[0]]' "$words" >made
    cp made "$words"
    run -77 gate release
    says "1 of 2"
    echo garbage >"$words"
    run -76 gate report
    says "$words"
}

@test "the agent, who let it run, and one key under two names are not two custodians" {
    need openssl xxd
    local name key
    custodians
    for name in agent "$(id -u)" twin; do
        openssl genpkey -algorithm ed25519 -out "$name.pem" 2>/dev/null
        key=$(openssl pkey -in "$name.pem" -pubout -outform DER | tail -c 32 | xxd -p -c 64)
        brig approvals enroll "$name" --public-key "$key" --by anna --by-passphrase-file anna.pass
    done
    # The key of twin once more, under another name.
    run brig approvals enroll other --public-key "$key" --by anna --by-passphrase-file anna.pass
    [ "$status" -ne 0 ]
    local now=$EPOCHSECONDS
    eventually 2 later_than "$now"
    clean_runs $N
    # Also by those who are shown no preimage: what they sign is what anna would, with their name.
    signs() {
        local until=$((EPOCHSECONDS + 1000)) # one moment for what is signed and for the signature
        gate report --as anna --expires-at $until --json | command jq -cSj --arg name "$1" '.signed | .custodian = $name' >said
        printf 'brig/gate-signoff/1\0' | cat - said | openssl dgst -sha256 -binary >preimage
        gate sign --as "$1" --expires-at $until \
            --signature "$(openssl pkeyutl -sign -rawin -inkey "${2:-$1}.pem" -in preimage | xxd -p -c 128)"
    }
    for act in signs "gate report --as"; do
        # shellcheck disable=SC2086
        run -77 $act agent
        says "an agent does not release itself"
        # shellcheck disable=SC2086
        run -77 $act "$(id -u)"
        says "he let the agent run, and cannot judge it"
    done
    run -77 signs twin agent # somebody else's key
    says "the signature does not hold"
    run -0 signs twin
    run -77 gate release
    says "1 of 2 custodians"
    run -0 sign anna
    run -0 gate release
}

@test "two who sign at once have both signed" {
    need flock
    custodians
    clean_runs 1
    local i pid
    for i in 1 2 3 4 5 6; do
        rm -rf "$BRIG_HOME/gate"
        brig gate sign agent --runs 1 --as anna --passphrase-file anna.pass 3>&- 4>&- &
        pid=$!
        brig gate sign agent --runs 1 --as ben --passphrase-file ben.pass
        wait "$pid"
        run -0 brig gate report agent --runs 1
    done
    # Each waits for the other, and not for ever.
    exec 9<"$(echo "$BRIG_HOME"/gate/*)"
    flock 9
    run brig gate sign agent --runs 1 --as anna --passphrase-file anna.pass 9<&-
    exec 9<&-
    [ "$status" -ne 0 ]
    says "somebody else has been signing"
}

@test "whose word would not count is told before he signs, as it is when he has" {
    custodians
    clean_runs $N
    for name in nosuch agent; do
        run -77 --separate-stderr gate report --as $name --json
        [ "$(jq -r '.preimage // "none"' <<<"$output")" = none ]
        run -77 --separate-stderr gate report --as $name
        [ -z "$output" ]
        told=$stderr
        run -77 --separate-stderr gate sign --as $name --signature "$(printf '0%.0s' {1..128})"
        [ "$stderr" = "$told" ]
        [[ "$told" == *"the word of $name does not count: he is no custodian here" ]]
    done
    run gate report --as anna
    says "preimage sha256:"
}

@test "until when a word holds can be a day, a moment or a while, and is shown as one" {
    custodians
    echo "a long passphrase of carl" >carl.pass
    chmod 600 carl.pass
    brig approvals enroll carl --passphrase-file carl.pass --by anna --by-passphrase-file anna.pass
    local now=$EPOCHSECONDS when
    eventually 2 later_than "$now"
    clean_runs $N
    until_is() {
        run gate report --as anna --expires-at "$1" --json
        json_is .expires_at "$2"
    }
    until_is 2026-12-01 1796083200
    until_is 2026-12-01T08:00:00Z 1796112000
    until_is 1796112000 1796112000
    run gate report --as anna --expires-at 1796112000
    says ", holds until 2026-12-01T08:00:00Z"
    for when in 2d 48h; do
        run gate report --as anna --expires-at $when --json
        json_is ".expires_at - $EPOCHSECONDS | . > 172500 and . <= 172800" true
    done
    for when in 0 soon 2026-13-01 2026-02-31 2026-12-01T08:00:60Z 2026-12-01x 2w d 99999999999; do
        run -64 sign anna --expires-at "$when"
        says "write a day"
    done
    run -64 sign anna --expires-at 8d
    says "at most 7 days"
    sign anna --expires-at 2d
    sign ben --expires-at 48h
    sign carl
    run -0 gate report
    says "two_custodians (2 of 2, and 1 more)"
}

@test "a release ends when a signature's time is over" {
    custodians
    clean_runs $N
    sign anna
    sign ben --expires-at $((EPOCHSECONDS + 30)) # enough for a busy machine to release it and look
    gate release
    run -0 brig gate status agent
    eventually 30 is_not_released
    run -13 brig gate status agent
    says "its signatures hold no longer"
}

@test "who is no custodian any more has signed nothing, and a release with his word ends" {
    enroll_carl() {
        echo "a long passphrase of carl" >carl.pass
        chmod 600 carl.pass
        brig approvals enroll carl --passphrase-file carl.pass --by anna --by-passphrase-file anna.pass
    }
    custodians
    enroll_carl
    local now=$EPOCHSECONDS
    eventually 2 later_than "$now"
    clean_runs $N
    sign anna
    sign ben
    gate release
    requires_release
    run -0 --separate-stderr governed
    run -0 brig approvals custodians --remove ben --by anna --by-passphrase-file anna.pass

    run -13 brig gate status agent
    says "its signatures hold no longer; that of ben: he is no custodian any more"
    run -77 --separate-stderr governed
    receipt_is .reason_code RELEASE_REQUIRED
    run -13 gate report --json
    json_is '.signatures.passed' false
    json_is '.signatures.words[] | select(.custodian == "ben") | .why_not' "he is no custodian any more"
    json_is '.signatures.words[] | select(.custodian == "anna") | .why_not' ""
    run -77 gate release
    says "1 of 2 custodians"
    run -77 sign ben
    run -13 gate report
    says "two_custodians (1 of 2)"
    # Somebody else in his place, and it can be released again.
    run -0 sign carl
    run -0 gate release
    run -0 --separate-stderr governed
    chain_holds
}

is_not_released() {
    not brig gate status agent >/dev/null
}

@test "what is behind a release goes missing, and it ends" {
    released
    cp -r "$BRIG_HOME" ../before
    session=$(brig gate report agent --runs $N --json | jq -r '.runs[0].run_id')
    sed -i 4d "$(session_dir)/events.jsonl"
    run -13 brig gate status agent
    says "are not what they were"
    rm -rf "$BRIG_HOME"
    cp -r ../before "$BRIG_HOME"
    rm -r "$(session_dir)"
    run -13 brig gate status agent
    says "are not what they were"
    rm -rf "$BRIG_HOME"
    cp -r ../before "$BRIG_HOME"
    # Who let it run is in the chain: the file beside it convinces nobody.
    sed -i 's/"requester":"[^"]*"/"requester":"uid:4711"/' "$(session_dir)/session.json"
    run -13 brig gate status agent
    says "are not what they were"
}

@test "a turn that was not answered is no clean run, and laxer rules are in what is signed" {
    custodians
    run -14 advise --prompt hello --prompt silent --idle 5s
    run -13 brig gate report agent --runs 1
    says "a turn was not answered"
    advise --strict-seed --prompt 'envelope [FACT] Type `podman ps` there.' >/dev/null 2>&1 || true
    run -13 brig gate report agent --runs 1 --json
    json_is '.runs[0].profile' strict-seed
}

@test "a release that was revoked does not come back with its file" {
    released
    cp -r "$BRIG_HOME/gate" ../gate
    brig gate revoke agent
    rm -rf "$BRIG_HOME/gate"
    cp -r ../gate "$BRIG_HOME/gate"
    run -13 brig gate status agent
    says "or that was revoked"
}

# A run that asks, and waits.
asks() {
    brig sandbox exec --json --policy policy.yaml --wait 60s --mount "$AGENT:/opt/agent:ro" -- /opt/agent </dev/null >out 2>err 3>&- 4>&-
}

waits() {
    approval=$(brig approvals list --json | jq -er '.approvals[0].approval_id')
}

@test "a release that is revoked while a person is asked is none when he has answered" {
    released
    requires_release
    printf 'commands:\n  - ask: ["**"]\n' >>policy.yaml
    asks &
    local pid=$! status=0
    eventually 20 waits
    brig approvals confirm "$approval" --as anna --passphrase-file anna.pass
    wait "$pid" # the control
    asks &
    pid=$!
    eventually 20 waits
    brig gate revoke agent
    brig approvals confirm "$approval" --as anna --passphrase-file anna.pass
    wait "$pid" || status=$?
    [ "$status" -eq 77 ]
    [ "$(jq -r .reason_code out)" = RELEASE_REQUIRED ]
}

@test "a policy of mode advisory lets agents advise, and nothing else" {
    printf 'version: 1\nmode: advisory\n' >policy.yaml
    run -77 --separate-stderr brig sandbox exec --policy policy.yaml -- /bin/true
    [[ "$stderr" == *"brig advisory run"* ]]
    receipt_is .reason_code ADVISORY_ONLY
    run -0 --separate-stderr advise --policy policy.yaml --prompt hello
}

# An agent that needs an interpreter.
script() {
    cat <<'SH'
#!/bin/sh
while read -r line; do
    case $line in
    *'"type":"turn"'*) echo '{"epistemic":{"facts":["x"],"hypotheses":[],"assumptions":[]},"advisory":{},"sandbox":{"actions_permitted":false,"reason":"Helix aligned sandbox mode"},"client_view":"Hello."}' ;;
    esac
done
SH
}

# begun PROGRAM ARG…: a session of it.
begun() {
    timeout -k 5 "$PATIENCE" "$BRIG" advisory run --agent-id agent --input in --prompt hello -- "$@" </dev/null >/dev/null 2>&1
}

version_now() {
    gate report --json | jq -r .agent_version
}

@test "an interpreter is not released: what it was given is part of its version" {
    N=1
    requires_release
    custodians
    mkdir in
    script >in/agent.sh
    begun /bin/sh /sandbox/input/agent.sh
    local version
    version=$(version_now)
    [ "$version" != "sha256:$(sha256sum </bin/sh | cut -d' ' -f1)" ]
    begun /bin/sh /sandbox/input/agent.sh
    [ "$(version_now)" = "$version" ]
    sign anna
    sign ben
    run -0 gate release
    run -0 brig gate status agent
    # Neither with the same script nor with another one.
    echo 'echo EVIL' >evil.sh
    cp in/agent.sh same.sh
    given() {
        brig sandbox exec --policy policy.yaml --mount "$(realpath /bin/sh):/opt/sh:ro" --mount "$PWD/$1:/srv/$1:ro" -- /opt/sh "/srv/$1" </dev/null
    }
    for name in evil.sh same.sh; do
        run -77 --separate-stderr given $name
        receipt_is .reason_code RELEASE_REQUIRED
    done
    # Another script, and other words, are another version.
    echo '# changed' >>in/agent.sh
    begun /bin/sh /sandbox/input/agent.sh
    [ "$(version_now)" != "$version" ]
    run -13 brig gate status agent
    says "is of another version"
    version=$(version_now)
    begun /bin/sh -u /sandbox/input/agent.sh
    [ "$(version_now)" != "$version" ]
}

@test "a script is released by its bytes, and not with the interpreter of an image" {
    need tar gzip busybox
    N=1
    requires_release
    custodians
    mkdir in
    script >agent.sh
    chmod 755 agent.sh
    begun ./agent.sh
    [ "$(version_now)" = "sha256:$(sha256sum <agent.sh | cut -d' ' -f1)" ]
    sign anna
    sign ben
    run -0 gate release
    runs() {
        brig sandbox exec --policy policy.yaml --mount "$PWD/$1:/opt/$1:ro" "${@:2}" </dev/null
    }
    run -0 --separate-stderr runs agent.sh -- /opt/agent.sh
    (script && echo '# other') >other.sh
    chmod 755 other.sh
    run -77 --separate-stderr runs other.sh -- /opt/other.sh
    busybox_layout "$WORK/layout" bb
    brig image import "$WORK/layout" --name bb
    run -77 --separate-stderr runs agent.sh --image bb -- /opt/agent.sh
    receipt_is .reason_code RELEASE_REQUIRED
    [[ "$stderr" == *"would be that of the image"* ]]
}

@test "a released script of Python does not run what lies beside it" {
    /usr/bin/python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || skip "no Python 3.11"
    N=1
    requires_release
    custodians
    mkdir in beside
    cat >beside/agent.py <<'PY'
#!/usr/bin/python3
import json, sys
for line in sys.stdin:
    if json.loads(line)["type"] == "turn":
        print(json.dumps({"epistemic": {"facts": ["x"], "hypotheses": [], "assumptions": []}, "advisory": {}, "sandbox": {
            "actions_permitted": False, "reason": "Helix aligned sandbox mode"}, "client_view": "Hello."}), flush=True)
PY
    chmod 755 beside/agent.py
    begun beside/agent.py
    sign anna
    sign ben
    gate release
    echo 'print("EVIL")' >beside/json.py
    run -0 --separate-stderr brig sandbox exec --mount "$PWD/beside:/opt:ro" -- /opt/agent.py </dev/null
    says EVIL # the control
    run -0 --separate-stderr brig sandbox exec --policy policy.yaml --mount "$PWD/beside:/opt:ro" -- /opt/agent.py </dev/null
    [ "$output" = "" ]
    run -77 --separate-stderr brig sandbox exec --policy policy.yaml --env PYTHONSAFEPATH= --mount "$PWD/beside:/opt:ro" -- /opt/agent.py </dev/null
}

@test "an agent that is linked statically may run in an image" {
    need tar gzip busybox
    released
    requires_release
    busybox_layout "$WORK/layout" bb
    brig image import "$WORK/layout" --name bb
    run -0 --separate-stderr brig sandbox exec --image bb --policy policy.yaml --mount "$AGENT:/opt/agent:ro" -- /opt/agent </dev/null
}

@test "docs/advisory.md does what it shows" {
    need python3
    ln -s "$BRIG" brig
    PATH=$WORK:$PATH
    run "$BRIG_ROOT/tests/flow/run-page" "$BRIG_ROOT/docs/advisory.md"
    status_is 0
    says "7 blocks"
    chain_holds
}
