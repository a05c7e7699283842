# SPDX-License-Identifier: Apache-2.0
# For tests of advisory sessions; loaded behind sandbox.bash.
#
#     $AGENT                     the scripted agent (agent.c)
#     advise ARGS…               brig advisory run ARGS… -- $AGENT
#     advised ARGS…              the same with --json, into $output and $session
#     session_dir [ID]           of a session (default: $session)
#     custodians                 anna and ben, with passphrase files anna.pass and ben.pass
#     clean_runs N               so many sessions in which nothing is found

AGENT=${BRIG_BUILD}/tests/flow/agent

advise() {
    timeout -k 5 "$PATIENCE" "$BRIG" advisory run "$@" -- "$AGENT" </dev/null
}

advised() {
    run --separate-stderr advise --json "$@"
    session=$(jq -r .run_id <<<"$output")
}

session_dir() {
    echo "$BRIG_HOME/advisory/${1:-$session}"
}

custodians() {
    echo "a long passphrase of anna" >anna.pass
    echo "a long passphrase of ben" >ben.pass
    chmod 600 ./*.pass
    brig approvals enroll anna --passphrase-file anna.pass >/dev/null || return
    brig approvals enroll ben --passphrase-file ben.pass --by anna \
        --by-passphrase-file anna.pass >/dev/null || return
    # They were there before: whole seconds are compared.
    local now=$EPOCHSECONDS
    eventually 2 later_than "$now"
}

later_than() {
    [ "$EPOCHSECONDS" -gt "$1" ]
}

clean_runs() {
    local i
    for ((i = 0; i < $1; i++)); do
        advise --prompt hello >/dev/null 2>&1 || return
    done
}

# The id of the action that waits, once there is one.
pending_action() {
    local file
    for file in "$BRIG_HOME"/advisory/*/actions/*.json; do
        [ -e "$file" ] && jq -e '.state == "pending"' "$file" >/dev/null && {
            action=$(basename "$file" .json)
            session=$(basename "$(dirname "$(dirname "$file")")")
            return 0
        }
    done
    return 1
}

action_is() {
    [ "$(jq -r .state "$(session_dir)/actions/$action.json")" = "$1" ]
}
