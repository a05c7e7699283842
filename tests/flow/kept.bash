# SPDX-License-Identifier: Apache-2.0
# For tests of sandboxes that stay; loaded behind common.bash and sandbox.bash. Adds:
#
#     make ARGS…          brig sandbox create; its id is in $id
#     in_it [OPT…] -- CMD brig sandbox exec in $id, quiet
#     pid_one             PID 1 of $id as this machine sees it
#     outer_of PID        its outer process
#     descendants PID     all of them
#     eventually S CMD…   until it succeeds, at most so many seconds
#     gone PID…           none of them exists
#     no_sandbox_left     no folder, lock, cgroup, mount of any run or sandbox
#     ended_with REASON   the newest receipt is the end of $id for this reason
#
# Every test ends the sandboxes it made.

make() {
    id=$(timeout -k 5 $PATIENCE "$BRIG" sandbox create --json "$@" | jq -r .sandbox_id) || return
    [ "${#id}" -eq 20 ]
}

in_it() {
    timeout -k 5 $PATIENCE "$BRIG" sandbox exec "$id" --quiet "$@"
}

destroy_all() {
    local each
    for each in $("$BRIG" sandbox list --json 2>/dev/null | jq -r '.sandboxes[].sandbox_id'); do
        "$BRIG" sandbox destroy "$each" 2>/dev/null || true
    done
}

pid_one() {
    "$BRIG" sandbox show "$id" | jq -er .pid
}

# descendants PID: all of them, as this machine sees them.
descendants() {
    local child
    for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
        echo "$child"
        descendants "$child"
    done
}

outer_of() {
    awk '/^PPid:/ { print $2 }' "/proc/$1/status"
}

gone() {
    local pid
    for pid in "$@"; do
        [ ! -e "/proc/$pid" ] || [ "$(awk '/^State:/ { print $2 }' "/proc/$pid/status")" = Z ] || return 1
    done
}

no_sandbox_left() {
    local left
    left=$({
        [ ! -d "$BRIG_HOME/boxes" ] || find "$BRIG_HOME/boxes" -mindepth 1
        run_folders
        run_cgroups
        grep -F "$BRIG_HOME" /proc/self/mountinfo || true
    }) || return
    [ -z "$left" ] || {
        printf 'left behind:\n%s\n' "$left" >&2
        return 1
    }
}

# Its PID 1 is gone a moment before its outer process has cleared up and lets go of the lock.
ended_with() {
    eventually 2 flock -n "$BRIG_HOME/boxes/$id.lock" true 2>/dev/null || true
    brig sandbox list >/dev/null 2>&1 || return
    receipt_is .reason_code "$1" || return
    receipt_is .sandbox_id "$id"
}

# each_run_ended: no intent without its end; shows those that lack one.
each_run_ended() {
    local open
    open=$(ledger "SELECT body FROM receipts r WHERE kind = 'intent' AND NOT EXISTS
        (SELECT 1 FROM receipts e WHERE e.run_id = r.run_id AND e.seq > r.seq)")
    [ -z "$open" ] || {
        printf 'without an end:\n%s\n' "$open" >&2
        return 1
    }
}
