#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig advisory replay and export: sessions judged by other rules, and as a dataset.

load common
load sandbox
load advise

setup() {
    common_setup
}

# Recognised by its shape, and nobody's.
SECRET=ghp_0123456789abcdefghijABCDEFGHIJ012345

lines() {
    jq -c "$1" dataset
}

@test "an alias counts by default and not by strict-seed: that is shown, and status 1" {
    advised --prompt 'envelope [FACT] Use `rsync -a x y` for that.' --prompt hello
    [ "$status" -eq 10 ]
    cp -a "$(session_dir)" before
    run -0 brig advisory replay "$session"
    says "2 answers of 1 sessions"
    says "0 differ"
    run -1 brig advisory replay "$session" --profile strict-seed
    says "turn 1: "
    says "unsafe_command alias.cp  1 → 0"
    says "1 differ"
    run -1 --separate-stderr brig advisory replay --agent-id agent --last 1 --profile strict-seed --json
    json_is .turns 2
    json_is .differ 1
    json_is '.differences[0].turn' 1
    json_is '[.differences[0].before.findings[] | select(.rule == "alias.cp")] | length > 0' true
    json_is '[.differences[0].after.findings[] | select(.rule == "alias.cp")] | length' 0
    json_is .before.unsafe_command 1
    json_is .after.unsafe_command 0
    json_is .left_out 0
    # Nothing was changed, and no receipt made.
    diff -r before "$(session_dir)"
    [ "$(ledger 'SELECT count(*) FROM receipts')" -eq 4 ]
    # The other way round: said under the fewer rules, found by the more.
    advised --strict-seed --prompt 'envelope [FACT] Use `rsync -a x y` for that.'
    run -0 brig advisory replay "$session" --profile strict-seed
    run -1 brig advisory replay "$session"
    says "unsafe_command alias.cp  0 → 1"
}

@test "a session that was changed, cut off or lost is neither replayed nor exported" {
    advised --prompt hello --prompt again
    local dir
    dir=$(session_dir)
    cp -a "$dir" keep
    sed -i 's/"drift":"0"/"drift":"C"/' "$dir/events.jsonl"
    run -76 brig advisory replay "$session"
    says "it was changed"
    run -76 brig advisory export --output out.jsonl
    [ -z "$(find . -name 'out.jsonl*')" ]
    # A chain that is cut off holds in itself; the ledger knows its end.
    head -n -1 keep/events.jsonl >"$dir/events.jsonl"
    run -76 brig advisory report "$session"
    run -76 brig advisory replay "$session"
    says "the ledger counted"
    # What was said has its hash in the chain.
    cp keep/events.jsonl "$dir/events.jsonl"
    sed -i 's/the advice is to wait/the advice is to go on/I' "$dir/turns.jsonl"
    run -76 brig advisory replay "$session"
    says "was changed"
    run -76 brig advisory export "$session"
    # What is not there is said not to be.
    sed '/"by":"agent"/{/"turn":2/d}' keep/turns.jsonl >"$dir/turns.jsonl"
    run -1 brig advisory replay "$session"
    says "turn 2: what was said is not stored"
    says "1 are not stored"
    rm -r "$dir"
    run -76 brig advisory replay --agent-id agent
    says "in the ledger and not on disk"
    cp -a keep "$dir"
    run -0 brig advisory replay --agent-id agent
    run -66 brig advisory replay aaaaaaaaaaaaaaaaaaaa
    run -66 brig advisory replay --agent-id nobody-knows
    run -64 brig advisory replay
}

@test "the dataset has turns and events, and neither secrets, paths of the host nor people" {
    advised --prompt "say $SECRET and look at /home/anna/notes" \
        --prompt "envelope [FACT] The key is $SECRET, see /home/anna/x and /sandbox/input/a." \
        --prompt "raw no JSON: \\u0067hp_${SECRET#ghp_} in \\/home\\/anna"
    run -0 brig advisory export "$session" --output dataset
    says "1 sessions, 3 turns"
    [ "$(stat -c %a dataset)" = 600 ]
    not grep -q "${SECRET#ghp_}" dataset
    not grep -q anna dataset
    # The control: all of it is in what is kept.
    grep -q "$SECRET" "$(session_dir)/turns.jsonl"
    grep -q /home/anna "$(session_dir)/turns.jsonl"
    local requester
    requester=$(jq -r .requester "$(session_dir)/session.json")
    [ -n "$requester" ]
    not grep -qF "\"$requester\"" dataset
    not grep -q 'requester\|decided_by\|prev_hash\|text_sha256' dataset
    not grep -qF "$BRIG_HOME" dataset
    [ "$(lines 'select(.record == "event") | .seq' | xargs)" = "$(seq -s ' ' "$(wc -l <"$(session_dir)/events.jsonl")")" ]
    [ "$(lines 'select(.record == "turn") | .turn' | xargs)" = "1 2 3" ]
    [ "$(lines 'select(.turn == 1 and .record == "turn") | .prompt')" = '"say [secret] and look at [path]"' ]
    [ "$(lines 'select(.turn == 2 and .record == "turn") | .output.envelope.client_view')" = \
        '"[FACT] The key is [secret], see [path] and /sandbox/input/a."' ]
    [ "$(lines 'select(.turn == 3 and .record == "turn") | .output.text')" = '"no JSON: [secret] in [path]"' ]
    [ "$(lines 'select(.turn == 3 and .record == "turn") | .valid')" = false ]
    [ "$(lines 'select(.turn == 3 and .record == "turn") | .findings[0].category')" = '"structural_violation"' ]
    [ "$(lines 'select(.run_id != "'"$session"'" or .v != 1 or .agent_id != "agent")')" = "" ]
    # The same again is the same bytes, and what is there is not written over.
    run -0 brig advisory export "$session"
    [ "$output" = "$(cat dataset)" ]
    echo mine >mine
    run -75 brig advisory export --output mine
    says "--force"
    [ "$(cat mine)" = mine ]
    run -0 --separate-stderr brig advisory export --output mine --force --json
    json_is .turns 3
    cmp mine dataset
    [ "$(stat -c %a mine)" = 600 ]
    [ -z "$(find . -name '*.part*')" ]
}

@test "a prompt nobody answered, actions, and a session that goes on" {
    advised --action-timeout 1s \
        --prompt 'ask {"type":"filesystem","operation":"create","target":"/sandbox/output/a","risk":"irreversible","content":"x"}' \
        --prompt silent --idle 6s
    brig advisory export --agent-id agent >dataset
    [ "$(lines 'select(.record == "turn" and .turn == 1) | .actions | map(.state, .done)')" = '["expired",false]' ]
    [ "$(lines 'select(.record == "turn" and .turn == 2) | [.prompt, .output]')" = '["silent",null]' ]
    run -0 brig advisory export --last 1
    [ "$output" = "$(cat dataset)" ]
}
