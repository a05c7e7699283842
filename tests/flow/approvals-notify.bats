#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Who is told of what waits for a person: signed webhooks, a local command; and that nobody waits for
# either, whatever they do.

load common
load sandbox
load serve

setup() {
    common_setup
    need perl openssl
    mkdir got
    setsid perl "$BRIG_ROOT/tests/flow/hook-server.pl" "$WORK/port" "$WORK/got" </dev/null >/dev/null 2>&1 3>&- &
    server=$!
    eventually 10 test -s port
    port=$(cat port)
    openssl rand 32 >key
    echo "whsec_$(openssl base64 -A -in key)" >secret
    cat >p.yaml <<'Y'
version: 1
approvals:
  default: {by: ["custodian:*", person], quorum: 2}
commands:
  - name: say
    ask: [echo, "**"]
Y
}

teardown() {
    [ -z "$server" ] || kill -- "-$server" 2>/dev/null || true
    serve_end
}

hook() {
    brig approvals notify set --webhook "http://127.0.0.1:$port/$1" --secret-file secret >/dev/null
}

# ask WORD…: it waits for a person; $approval is it.
ask() {
    run -77 brig sandbox exec --json --policy p.yaml -- "$@"
    approval=$(jq -r .approval_id <<<"$output")
}

# header N NAME
header() {
    tr -d '\r' <"got/$1.head" | sed -n "s/^$2: //Ip"
}

# signed N: by the key, as openssl finds it.
signed() {
    { printf '%s.%s.' "$(header "$1" webhook-id)" "$(header "$1" webhook-timestamp)"; cat "got/$1.body"; } >text
    [ "$(header "$1" webhook-signature)" = "v1,$(openssl dgst -sha256 -mac HMAC \
        -macopt "hexkey:$(od -An -tx1 key | tr -d ' \n')" -binary text | openssl base64 -A)" ]
}

# told N: that message has come.
told() {
    eventually 20 test -e "got/$1.head"
}

tally() {
    [ "$(brig approvals notify show --json | jq -r ".sent.$1")" = "$2" ]
}

nobody_sends() {
    for place in "$BRIG_HOME"/notify/sender-*; do
        flock -n "$place" true || return 1
    done
}

@test "a webhook hears of what waits and what was said to it, signed" {
    hook hooks/ok/
    for name in anna ben; do
        echo "$name has a long passphrase" >$name
    done
    brig approvals enroll anna --passphrase-file anna
    brig approvals enroll ben --passphrase-file ben --by anna --by-passphrase-file anna
    ask echo 'a b' $'\e[31m' AKIAIOSFODNN7EXAMPLE "$(printf 'x%.0s' {1..300})"
    told 1
    signed 1
    [ "$(header 1 content-type)" = application/json ]
    grep -q '^POST /hooks/ok/ ' got/1.head
    [ $(($(date +%s) - $(header 1 webhook-timestamp))) -lt 300 ]
    output=$(cat got/1.body)
    json_is .type approval.pending
    json_is .data.id "$approval"
    json_is .data.digest "$(brig approvals show "$approval" --json | jq -r .digest)"
    json_is .data.requester "uid:$(id -u)"
    json_is .data.tenant default
    json_is .data.rule say
    json_is .data.quorum 2
    json_is .data.confirmations 0
    json_is '.data.words | length' 0
    json_is .data.expires_at "$(brig approvals show "$approval" --json | jq -r .expires_at)"
    json_is '.data.summary | startswith("echo a b \\")' true
    json_is '.data.summary | utf8bytelength <= 200' true
    not grep -q AKIA got/1.body
    # Asking again about the same is no news.
    ask echo 'a b' $'\e[31m' AKIAIOSFODNN7EXAMPLE "$(printf 'x%.0s' {1..300})"

    brig approvals confirm "$approval" --as anna --passphrase-file anna
    told 2
    signed 2
    output=$(cat got/2.body)
    json_is .type approval.confirmed
    json_is .data.state pending
    json_is .data.confirmations 1
    json_is '.data.words[0].by' custodian:anna
    brig approvals confirm "$approval" --as ben --passphrase-file ben
    told 3
    output=$(cat got/3.body)
    json_is .data.state confirmed
    json_is .data.confirmations 2
    ask echo no
    told 4
    brig approvals reject "$approval" --as anna --passphrase-file anna
    told 5
    signed 5
    output=$(cat got/5.body)
    json_is .type approval.rejected
    json_is '.data.words[0].confirms' false
    [ "$(cat got/*.head | tr -d '\r' | sed -n 's/^webhook-id: //Ip' | sort -u | wc -l)" -eq 5 ]
    eventually 10 tally webhook.ok 5
    # The secret is in its file and nowhere else.
    [ "$(stat -c %a "$BRIG_HOME"/notify/secret-* "$BRIG_HOME/notify.json" | sort -u)" = 600 ]
    brig approvals notify show >shown
    brig approvals notify show --json >>shown
    brig receipts export >ledger
    not grep -qF "$(cat secret)" shown ledger "$BRIG_HOME/notify.json" "$BRIG_HOME/notify/tally.json"
    not grep -qrF "$(cat secret)" got
    eventually 20 nobody_sends
}

@test "a signature is what the documentation says, in its own words" {
    hook hooks/ok/
    ask echo documented
    told 1
    sed -n '/^\*\*Webhook/,/^\*\*Command/{/^```sh/,/^```$/{/^```/!p}}' "$BRIG_ROOT/docs/approvals.md" >check
    grep -q openssl check
    cp secret hook.secret
    cp got/1.body body
    webhook_id=$(header 1 webhook-id) webhook_timestamp=$(header 1 webhook-timestamp) run -0 bash -u check
    [ "$(header 1 webhook-signature)" = "v1,$output" ]
}

@test "what was sent is counted, also when somebody else has the numbers just then" {
    hook ok
    # shellcheck disable=SC2016 # its shell, not ours
    flock "$BRIG_HOME/notify/tally.lock" sh -c ': >held; until [ -e go ]; do sleep 0.05; done' 3>&- &
    holder=$!
    eventually 5 test -e held
    ask echo 1
    told 1
    sleep 1 # longer than whoever sends needs to give up, and shorter than it waits
    touch go
    wait "$holder"
    eventually 10 tally webhook.ok 1
}

@test "what fails is tried again; what was refused or sent elsewhere is not" {
    hook flaky
    ask echo 1
    eventually 20 tally webhook.ok 1
    signed 1
    signed 2
    [ "$(header 1 webhook-id)" = "$(header 2 webhook-id)" ]
    hook redirect
    ask echo 2
    eventually 20 tally webhook.failed 1
    run -0 brig approvals notify show
    says "it answered with status 302"
    hook refuse
    ask echo 3
    eventually 20 tally webhook.failed 2
    [ ! -e got/5.head ]
    hook garbage
    ask echo 4
    eventually 20 tally webhook.failed 3
    [ -e got/7.head ] && [ ! -e got/8.head ] # three tries
    hook big
    ok=$(brig approvals notify show --json | jq .sent.webhook.ok)
    run -0 brig approvals notify test --json
    json_is .webhook_ok true
    json_is .type notify.test "$(cat got/8.body)"
    tally webhook.ok "$((ok + 1))" # it is counted, too
    hook broken
    run -69 brig approvals notify test
    says "status 500"
    # The messages that failed are no matter to what was asked.
    run -0 brig approvals list --json
    json_is '.approvals | length' 4
}

@test "nobody waits for a receiver that never answers, and no more than eight do" {
    hook slow
    ask echo 1
    # Who asked has its answer, and the message still waits for one.
    not flock -n "$BRIG_HOME/notify/sender-0" true
    told 1
    tally webhook.failed 0
    # The other places are taken by us: messages last as long as their tries, and no test by the clock.
    for i in 1 2 3 4 5 6 7; do
        exec {place}>>"$BRIG_HOME/notify/sender-$i"
        flock -n "$place"
    done
    eventually 60 tally webhook.failed 1 # its three tries
    exec {first}>>"$BRIG_HOME/notify/sender-0"
    eventually 10 flock -n "$first"
    tries=$(find got -name '*.head' | wc -l)
    ask echo 2
    tally dropped 1
    [ "$(find got -name '*.head' | wc -l)" -eq "$tries" ]
    exec {place}>&- # the last of the eight is free again
    ask echo 3
    told $((tries + 1))
    tally dropped 1
    kill -- "-$server"
    server= # its number is somebody else's soon
    eventually 20 tally webhook.failed 2
    exec {first}>&-
}

@test "a command has the message on its input, and little else" {
    cat >tell <<X
#!/bin/sh
{ cat; echo; env | grep -v '^_=\|^SHLVL=\|^PWD=\|^OLDPWD=' | sort; pwd; ls /proc/self/fd | wc -w; for a; do echo "[\$a]"; done; } >$WORK/heard.new
mv $WORK/heard.new $WORK/heard
X
    chmod 755 tell
    run -0 brig approvals notify set --command "$WORK/tell" --arg '$(touch bad); `touch bad` | *' --arg 'x y' --json
    receipt_is .action policy
    receipt_is .outcome.policy.layer notify
    receipt_is .outcome.policy.policy_hash "sha256:$(sha256sum <"$BRIG_HOME/notify.json" | cut -d' ' -f1)"
    export SECRET_OF_CALLER=x
    ask echo hello
    eventually 20 test -e heard
    json_is .data.id "$approval" "$(head -1 heard)"
    sed 1d heard >rest
    # 0, 1, 2 and the folder that ls reads.
    printf '%s\n' LANG=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin / 4 '[$(touch bad); `touch bad` | *]' '[x y]' | diff - rest
    [ ! -e bad ] && [ ! -e /bad ]
    eventually 10 tally command.ok 1
    run -0 brig approvals notify remove
    rm heard
    ask echo again
    run -66 brig approvals notify test
    [ ! -e "$BRIG_HOME/notify.json" ] && [ ! -e heard ]
    tally command.ok 1
}

# is_gone PID: it has ended, if nobody may have waited for it yet.
is_gone() {
    case $(sed -n 's/^State:.\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null) in
    '' | Z | X) return 0 ;;
    *) return 1 ;;
    esac
}

@test "a command that hangs is killed with what it has started; a receiver has 5 s, three times" {
    printf '#!/bin/sh\nsleep 1000 &\necho $! >%s/child.new; mv %s/child.new %s/child\nsleep 1000\n' "$WORK" "$WORK" "$WORK" >hang
    chmod 755 hang
    brig approvals notify set --command "$WORK/hang" --webhook "http://127.0.0.1:$port/slow" --secret-file secret
    ask echo hello
    eventually 10 test -e child
    not is_gone "$(cat child)"
    tally command.failed 0
    eventually 40 tally command.failed 1
    eventually 10 tally webhook.failed 1
    eventually 10 is_gone "$(cat child)"
    [ -e got/3.head ] && [ ! -e got/4.head ]
    run -0 brig approvals notify show
    says "did not end within 10 s"
    eventually 10 nobody_sends
}

@test "only what nobody else can change is run, and only with a secret is sent" {
    set_it() {
        run brig approvals notify set "$@"
        [ ! -e "$BRIG_HOME/notify.json" ]
    }
    printf '#!/bin/sh\n' >tell
    chmod 777 tell
    set_it --command "$WORK/tell"
    status_is 77
    says "others can change"
    chmod 755 tell
    mkdir open
    cp tell open
    chmod 777 open
    set_it --command "$WORK/open/tell"
    status_is 77
    ln -s "$WORK/open/tell" link
    set_it --command "$WORK/link"
    status_is 77
    set_it --command tell
    status_is 64
    set_it --command "$WORK"
    status_is 64
    set_it --command "$WORK/none"
    status_is 66
    set_it
    status_is 64
    set_it --webhook http://127.0.0.1:1/
    status_is 64
    says "go together"
    echo short >bad
    set_it --webhook http://127.0.0.1:1/ --secret-file bad
    status_is 64
    echo 'whsec_!!!!' >bad
    set_it --webhook http://127.0.0.1:1/ --secret-file bad
    status_is 64
    head -c 200 /dev/zero >bad
    set_it --webhook http://127.0.0.1:1/ --secret-file bad
    status_is 64
    for url in http://example.com/ ftp://127.0.0.1/ "https://user:word@example.com/" "https://example.com/?a=b" /x; do
        set_it --webhook "$url" --secret-file secret
        status_is 64
        says "--webhook takes https://"
    done
    set_it --webhook http://example.com/ --secret-file secret
    says "an address of another machine begins with https://"
    not ls "$BRIG_HOME"/notify/secret-*
    # What was right when it was said and is not any more does not run either.
    brig approvals notify set --command "$WORK/tell"
    chmod 777 tell
    run -69 brig approvals notify test
    says "others can change"
    run -64 brig approvals notify sometimes
    run -64 brig approvals notify send </dev/null
    says "only Brig itself"
}

@test "a daemon tells, by what its operator said" {
    hook ok
    brig policy apply p.yaml >/dev/null
    serve
    run -77 brig sandbox exec --json -- echo by the daemon
    approval=$(jq -r .approval_id <<<"$output")
    told 1
    signed 1
    json_is .data.id "$approval" "$(cat got/1.body)"
    json_is .data.tenant default "$(cat got/1.body)"
    eventually 20 nobody_sends
    eventually 10 tally webhook.ok 1
    # Nobody who sent is left behind, waiting to be waited for.
    eventually 10 no_zombie_of "$DAEMON"
}

no_zombie_of() {
    local child
    for child in $(cat "/proc/$1/task"/*/children); do
        ! grep -qs '^State:.Z' "/proc/$child/status" || return 1
    done
}
