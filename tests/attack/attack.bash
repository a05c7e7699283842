# SPDX-License-Identifier: Apache-2.0
# Loaded by every file here. Each holds one class of escape: what is attempted, that it fails, and
# for the reason it is meant to fail; and a control, the nearest thing that must succeed, so that
# no test passes because nothing worked at all.
#
# The programs in this folder attack and judge nothing: they print "ATTEMPT: ERRNO", or "ATTEMPT:
# worked". All files run unchanged as root and as an ordinary user.

load ../flow/common

ATTACK=$BRIG_BUILD/tests/attack

# box [OPTION…] -- CMD…: in a sandbox that has the programs in /mnt/attack.
box() {
    "$BRIG" sandbox exec --quiet --mount "$ATTACK:/mnt/attack:ro" "$@"
}

# For "sh -c" inside: a socket of one's own, connected to as soon as somebody listens.
# shellcheck disable=SC2016,SC2034 # its shell, not ours; for the tests that load this
own_socket='/mnt/attack/sockets listen @mine &
    for i in $(seq 200); do
        said=$(/mnt/attack/sockets connect @mine)
        case $said in *worked*) break ;; esac
        sleep 0.05
    done
    echo "$said"
    kill $!'

# start_box [OPTION…] -- CMD…: the same in the background, as $box, for longer than any test takes; what it says
# is in $WORK/said.
# shellcheck disable=SC2034 # box is for the test that loads this
start_box() {
    "$BRIG" sandbox exec --quiet --timeout 10m --mount "$ATTACK:/mnt/attack:ro" "$@" </dev/null >"$WORK/said" 2>&1 3>&- &
    box=$!
}

# denied CODE TEXT [OPTION…] -- CMD…: the run is refused with that code, says so to the caller in
# these words, and leaves a receipt.
denied() {
    local code=$1 text=$2
    shift 2
    run "$BRIG" sandbox exec "$@"
    status_is 77 && says "$code" && says "$text" && [ "$(receipts 'last | .kind')" = denial ] &&
        [ "$(receipts 'last | .reason_code')" = "$code" ]
}

# refuses ERRNO: every attempt in $output ended so, and there were some.
refuses() {
    [ -n "$output" ] || {
        echo "nothing was attempted" >&2
        return 1
    }
    if grep -vE ": ($1)\$" <<<"$output" >&2; then
        return 1
    fi
}

# answers ATTEMPT ERRNO: this attempt in $output ended so.
answers() {
    grep -qxF -- "$1: $2" <<<"$output" || {
        printf 'should say "%s: %s":\n%s\n' "$1" "$2" "$output" >&2
        return 1
    }
}

# without ATTEMPT…: $output without the lines of these attempts.
without() {
    local name
    for name in "$@"; do
        output=$(grep -vF -- "$name:" <<<"$output")
    done
}

# called NAME: how many processes of the machine bear that name (a sandbox's are among them).
called() {
    cat /proc/[0-9]*/comm 2>/dev/null | grep -cx -- "$1" || true
}

none_called() {
    [ "$(called "$1")" -eq 0 ]
}

some_called() {
    [ "$(called "$1")" -gt 0 ]
}

# pid_called NAME: on the host, the oldest of them.
pid_called() {
    grep -lx -- "$1" /proc/[0-9]*/comm 2>/dev/null | sed 's,[^0-9],,g' | sort -n | head -n 1
}

# a_name: one that no other process has; the kernel keeps 15 letters.
a_name() {
    printf 'atk%s%s' "$$" "$RANDOM" | cut -c 1-15
}

# receipts JQ-FILTER…: the ledger as one array, oldest first.
receipts() {
    "$BRIG" receipts export 2>/dev/null | jq -s -r "$@"
}

# each_run_ended_once: no intent without an end, none with two.
each_run_ended_once() {
    local wrong
    wrong=$(receipts '[group_by(.run_id)[] | [.[].kind] | select(. != ["intent", "outcome"] and
        . != ["intent", "denial"] and . != ["denial"])] | length')
    [ "$wrong" -eq 0 ] || {
        receipts '.[] | [.run_id, .kind, .reason_code] | @tsv' >&2
        return 1
    }
}

# child_of PID: its first child.
child_of() {
    local children
    read -r children _ <"/proc/$1/task/$1/children"
    [ -n "$children" ] && echo "$children"
}

# none_held: nobody clears up behind a run any more.
none_held() {
    local lock
    for lock in "$BRIG_HOME"/runs/*.lock; do
        [ ! -e "$lock" ] || flock -n "$lock" true || return 1
    done
}

# nothing_left: no run folder, no cgroup, no mount of any run of this state directory.
nothing_left() {
    local id
    [ -z "$(ls -A "$BRIG_HOME/runs" 2>/dev/null)" ] || {
        echo "run folders: $(ls -A "$BRIG_HOME/runs")" >&2
        return 1
    }
    for id in $(receipts '[.[].run_id] | unique[]'); do
        if find /sys/fs/cgroup -type d -name "brig-$id" 2>/dev/null | grep .; then
            return 1
        fi
        if grep -F "$id" /proc/self/mountinfo; then
            return 1
        fi
    done
}
