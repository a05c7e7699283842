#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig doctor: what it finds, and that it finds what is broken for real.

load common

# A user namespace in which no other can be made.
without_namespaces() {
    unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"' sh "$@"
}

@test "every row has a result, and every result that is not ok a fix" {
    run --separate-stderr brig doctor --json
    json_is '.findings | length > 8' true
    json_is '[.findings[] | select(.result == "ok" | not) | select(.fix == null)] | length' 0
    json_is '[.findings[].result] - ["ok", "weak", "missing"] | length' 0
    json_is '.usable == ([.findings[].result] | index("missing") == null)' true
}

@test "it changes nothing" {
    run brig doctor
    [ ! -e "$BRIG_HOME" ]
}

@test "text and JSON agree" {
    run brig doctor
    text=$output
    for name in $(brig doctor --json | jq -r '.findings[].name | split(" ")[0]'); do
        [[ $text == *"$name"* ]]
    done
}

@test "without user namespaces it says so, says how to fix it, and ends with 69" {
    without_namespaces true 2>/dev/null || skip "no user namespaces to try this in"
    run without_namespaces "$BRIG" doctor
    status_is 69
    says "no new user namespace"
    says "sysctl -w user.max_user_namespaces"
}

@test "a state directory others may write to is found" {
    mkdir -m 0777 "$BRIG_HOME"
    chmod 0777 "$BRIG_HOME"
    run brig doctor
    status_is 69
    says "others may write to the state directory"
}

@test "a key others can read is found" {
    mkdir -m 0700 "$BRIG_HOME"
    echo secret >"$BRIG_HOME/receipts.key"
    chmod 0644 "$BRIG_HOME/receipts.key"
    run brig doctor
    status_is 69
    says "can be read by others"
}
