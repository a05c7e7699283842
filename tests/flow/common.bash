# SPDX-License-Identifier: Apache-2.0
# Loaded by every bats file of tests/flow and tests/attack:
#
#     load ../flow/common        (from tests/attack; in tests/flow: load common)
#
# Gives each test a state directory and a scratch directory of its own, and:
#
#     BRIG_ROOT    the sources (tests, policies, docs)
#     BRIG_BUILD   the build directory; helper programs are in $BRIG_BUILD/tests/...
#     $BRIG $HELM  the programs under test
#     $WORK        an empty directory of this test
#     brig ARGS…   runs the program (also under bats' run)
#     helm ARGS…   the same program under its other name
#     eventually N CMD…   until the command succeeds, N seconds at most
#     await PID           waits for a child of the test and sets $status, as run does for what is no child
#
# With BRIG_TEST_DAEMON=1 a daemon serves the state directory of each test, so that every promise of
# a file is asked of it a second time: by hand, see HACKING.md.

bats_require_minimum_version 1.5.0

: "${BRIG_ROOT:=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}"
: "${BRIG_BUILD:=$BRIG_ROOT/build}"
: "${BRIG:=$BRIG_BUILD/src/cmd/cli/brig}"
export BRIG_ROOT BRIG_BUILD BRIG

# not COMMAND…: it fails. "! COMMAND" is a failure to nobody in the middle of a test. A grep that could
# not read has found nothing out.
not() {
    local status=0
    "$@" || status=$?
    [ "$status" -ne 0 ] && { [ "$1" != grep ] || [ "$status" -eq 1 ]; }
}

# eventually SECONDS COMMAND…: it comes true; a machine that is busy with other tests has longer.
eventually() {
    local end=$((SECONDS + 4 * $1 + 10))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.05
    done
}

await() {
    status=0
    wait "$1" || status=$?
}

# jq takes 20 ms to start, gojq two, and a whole run has tens of thousands of them. It sorts keys always and
# has no option to.
jq() {
    case ${1-} in
    -*S*) command jq "$@" ;;
    *) gojq "$@" ;;
    esac
}

brig() {
    "$BRIG" "$@"
}

helm() {
    (exec -a helm "$BRIG" "$@")
}

# A test file that needs more defines setup itself and calls this first.
common_setup() {
    WORK=$BATS_TEST_TMPDIR/work
    mkdir -p "$WORK"
    export BRIG_HOME=$BATS_TEST_TMPDIR/state
    cd "$WORK" || return
    [ -z "${BRIG_TEST_DAEMON-}" ] || daemon_beside
}

# daemon_beside [OPT…]: one that serves BRIG_HOME until the test ends. It is no child of the test,
# which may wait for its children, and ends with the test's process, because files have teardowns of
# their own.
daemon_beside() {
    local socket log=$BATS_TEST_TMPDIR/beside
    socket=$(mktemp -u /tmp/brig-test-XXXXXX.sock)
    (
        "$BRIG_BUILD/src/cmd/cli/brig" serve --socket "$socket" "$@" >"$log.out" 2>"$log.err" &
        daemon=$!
        (
            while kill -0 $$ 2>/dev/null; do sleep 0.2; done
            kill "$daemon" 2>/dev/null
            rm -f "$socket"
        ) >/dev/null 2>&1 &
    ) </dev/null 3>&-
    for _ in $(seq 1500); do
        ! grep -q "listening on unix" "$log.out" || return 0
        sleep 0.02
    done
    cat "$log.err" >&2
    return 1
}

# without_daemon WHY: skips a test whose promise is not a daemon's.
without_daemon() {
    [ -z "${BRIG_TEST_DAEMON-}" ] || skip "beside a daemon: $1"
}

setup() {
    common_setup
}

is_root() {
    [ "$(id -u)" -eq 0 ]
}

# need COMMAND…: skips the test when the machine lacks one of them.
need() {
    local name
    for name in "$@"; do
        command -v "$name" >/dev/null 2>&1 || skip "$name is not installed"
    done
}

# json_is 'JQ FILTER' VALUE [TEXT]: what jq -r answers, on $output unless TEXT is given.
json_is() {
    local got
    got=$(printf '%s' "${3-$output}" | jq -r "$1") || return
    [ "$got" = "$2" ] || {
        printf '%s is %s, should be %s\n' "$1" "$got" "$2" >&2
        return 1
    }
}

# status_is N: like [ "$status" -eq N ], but shows what was printed.
status_is() {
    [ "$status" -eq "$1" ] || {
        printf 'status is %s, should be %s; output:\n%s\n' "$status" "$1" "$output" >&2
        return 1
    }
}

# says TEXT: $output contains it.
says() {
    [[ $output == *"$1"* ]] || {
        printf 'not said: %s; output:\n%s\n' "$1" "$output" >&2
        return 1
    }
}
