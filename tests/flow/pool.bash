# SPDX-License-Identifier: Apache-2.0
# For tests of the pool; loaded behind common.bash, sandbox.bash and kept.bash. Adds:
#
#     fill N [ARGS…]      brig pool fill; its key is in $key
#     pooled              ids of what can be taken, one a line
#     pooled_n            how many
#     settled N           eventually so many can be taken and nobody fills
#     of_command FILTER   of the newest receipt of a command; others may be written behind it
#     command_is FILTER VALUE
#     empty_pools         drains them and ends all sandboxes; nothing is left then

fill() {
    key=$(timeout -k 5 $PATIENCE "$BRIG" pool fill --json --size "$@" | jq -er .pool) || return
}

pooled() {
    "$BRIG" pool list --json | jq -r '.pools[].ready[].sandbox_id'
}

pooled_n() {
    pooled | wc -l
}

# Whoever fills behind a command holds the lock while it does.
is_settled() {
    [ "$(pooled_n)" -eq "$1" ] && flock -n "$BRIG_HOME/pool/fill.lock" true
}

settled() {
    eventually 10 is_settled "$1" || {
        echo "in the pool: $(pooled_n), should be $1" >&2
        return 1
    }
}

empty_pools() {
    [ ! -d "$BRIG_HOME/pool" ] || timeout -k 5 $PATIENCE "$BRIG" pool drain >/dev/null 2>&1 || true
    destroy_all
    [ ! -d "$BRIG_HOME/pool" ] || timeout -k 5 $PATIENCE "$BRIG" pool drain >/dev/null 2>&1 || true
}

# pool_pid ID: its PID 1.
pool_pid() {
    "$BRIG" pool list --json | jq -er ".pools[].ready[] | select(.sandbox_id == \"$1\") | .pid"
}

# ends_of ID: reason codes of the ends that are recorded of a sandbox.
ends_of() {
    ledger "SELECT json_extract(body, '\$.reason_code') FROM receipts WHERE kind = 'outcome'
        AND json_extract(body, '\$.action') = 'destroy' AND json_extract(body, '\$.sandbox_id') = '$1'"
}

of_command() {
    ledger "SELECT body FROM receipts WHERE json_extract(body, '\$.action') IS NULL
        ORDER BY seq DESC LIMIT 1" | jq -r "$1"
}

command_is() {
    local got
    got=$(of_command "$1") || return
    [ "$got" = "$2" ] || {
        printf 'receipt: %s is %s, should be %s\n' "$1" "$got" "$2" >&2
        return 1
    }
}
