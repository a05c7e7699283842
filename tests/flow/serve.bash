# SPDX-License-Identifier: Apache-2.0
# For tests of the daemon; loaded behind common.bash and sandbox.bash. Adds:
#
#     serve [OPT…]         brig serve on a free loopback port; waits until it listens
#     serve_end            ends it
#     token [OPT…]         brig token create; its words
#     api [CURL…] PATH     curl with $TOKEN; the body is in $output, the status in $http
#     post PATH JSON [CURL…]
#     refused STATUS CODE  what api answered is this error

DAEMON=

serve() {
    : >"$WORK/serve.out" # what is started below may begin late
    "$BRIG" serve --listen 127.0.0.1:0 --socket "$WORK/d.sock" "$@" >"$WORK/serve.out" 2>"$WORK/serve.err" </dev/null 3>&- &
    DAEMON=$!
    for _ in $(seq 1200); do
        PORT=$(sed -n 's/.*listening on https\{0,1\}:.*:\([0-9]*\)$/\1/p' "$WORK/serve.out")
        [ -z "$PORT" ] || ! grep -q 'listening on unix:' "$WORK/serve.out" || return 0
        kill -0 "$DAEMON" 2>/dev/null || break
        sleep 0.05
    done
    cat "$WORK/serve.out" "$WORK/serve.err" >&2
    return 1
}

serve_end() {
    local status=0
    [ -n "$DAEMON" ] || return 0
    kill -TERM "$DAEMON" 2>/dev/null || true
    wait "$DAEMON" || status=$?
    DAEMON=
    if grep -q 'Sanitizer\|runtime error' "$WORK/serve.err"; then
        cat "$WORK/serve.err" >&2
        return 1
    fi
    return $status
}

token() {
    "$BRIG" token create "$@" 2>/dev/null
}

# The body and, on a line of its own, the status.
api() {
    local path=${!#}
    set -- "${@:1:$#-1}"
    output=$(curl -sS --max-time 60 -H "Authorization: Bearer $TOKEN" -w '\n%{http_code}' "$@" "http://127.0.0.1:$PORT$path")
    http=${output##*$'\n'}
    output=${output%$'\n'*}
}

post() {
    local path=$1 body=$2
    shift 2
    api -X POST --data-binary "$body" "$@" "$path"
}

refused() {
    [ "$http" = "$1" ] || {
        printf 'status is %s, should be %s: %s\n' "$http" "$1" "$output" >&2
        return 1
    }
    json_is .error.code "$2"
}
