#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig policy explain and preset: what network rules come to, without a network; and what a command
# would come to now, without running it.

load common
load sandbox

teardown() {
    [ -z "${server-}" ] || kill "$server" 2>/dev/null || true
}

write() {
    cat >policy.yaml <<'P'
version: 1
network_policies:
  api:
    binaries: [{path: /usr/bin/curl}]
    endpoints:
      - host: api.example.com
        port: 443
        protocol: rest
        rules:
          - allow: {method: GET, path: "/v1/**"}
          - allow: {method: POST, path: /v1/say, body: {/to: "me"}}
  git:
    binaries: [{path: /usr/bin/git}]
    endpoints: [{host: git.example.com, port: 443}]
P
}

@test "a request is allowed, and every endpoint says why" {
    write
    run brig policy explain --policy policy.yaml --request "GET https://api.example.com/v1/x"
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "+ api, line 6: allows it, line 10" ]
    [ "${lines[1]}" = "- git, line 14: its host git.example.com is another" ]
    [ "${lines[2]}" = "allow by api, line 10" ]
}

@test "a request is denied, with the code and what to do" {
    write
    run brig policy explain --policy policy.yaml --request "DELETE https://api.example.com/v1/x"
    [ "$status" -eq 77 ]
    [[ ${lines[2]} == "deny by api, line 6 (EGRESS_REQUEST): no rule allows DELETE /v1/x here; add one"* ]]
    run brig policy explain --policy policy.yaml --binary /usr/bin/wget --connect api.example.com:443
    [ "$status" -eq 77 ]
    [[ ${lines[2]} == *"(EGRESS_BINARY)"*"not for /usr/bin/wget"* ]]
    run brig policy explain --request "GET https://api.example.com/"
    [ "$status" -eq 77 ]
    [[ $output == *"EGRESS_NO_RULES"* ]]
}

@test "a body decides where a rule looks into it" {
    write
    line="POST https://api.example.com/v1/say"
    run brig policy explain --policy policy.yaml --request "$line"
    [ "$status" -eq 0 ]
    [[ ${lines[2]} == "body by api"*"give it with --body" ]]
    echo '{"to":"me"}' >body
    run brig policy explain --policy policy.yaml --request "$line" --header "Content-Type: application/json" --body body
    [ "$status" -eq 0 ]
    [ "${lines[2]}" = "allow by api, line 11" ]
    echo '{"to":"you"}' >body
    run brig policy explain --policy policy.yaml --request "$line" --header "Content-Type: application/json" --body body
    [ "$status" -eq 77 ]
    [[ ${lines[2]} == *"EGRESS_BODY"* ]]
}

@test "a WebSocket is asked for, then its messages" {
    cat >ws.yaml <<'END'
version: 1
network_policies:
  ws:
    binaries: [{path: /usr/bin/curl}]
    endpoints:
      - host: ws.example.com
        port: 443
        protocol: websocket
        rules:
          - allow: {method: GET, path: "/**"}
          - allow: {method: WEBSOCKET_TEXT, path: /talk}
END
    echo hello >text
    printf '\377' >bytes
    run brig policy explain --policy ws.yaml --request "GET wss://ws.example.com/talk"
    [ "$status" -eq 0 ]
    [[ ${lines[1]} == "allow by ws, line 10: every message of the client is judged"* ]]
    run brig policy explain --policy ws.yaml --request "GET wss://ws.example.com/talk" --message text
    [ "$status" -eq 0 ]
    [ "${lines[1]}" = "allow by ws, line 11" ]
    run brig policy explain --policy ws.yaml --request "GET wss://ws.example.com/talk" --message bytes
    [ "$status" -eq 77 ]
    [[ ${lines[1]} == *EGRESS_MESSAGE*binary* ]]
    run brig policy explain --policy ws.yaml --request "GET wss://ws.example.com/listen" --message text
    [ "$status" -eq 77 ]
    [[ ${lines[1]} == *EGRESS_MESSAGE*WEBSOCKET_TEXT* ]]
    run brig policy explain --policy ws.yaml --request "GET https://ws.example.com/talk"
    [ "$status" -eq 77 ]
    run brig policy explain --policy ws.yaml --request "GET https://ws.example.com/talk" --message text
    [ "$status" -eq 64 ]
}

@test "the same as JSON" {
    write
    run --separate-stderr brig policy explain --json --policy policy.yaml --connect git.example.com:443 --binary /usr/bin/git
    [ "$status" -eq 0 ]
    json_is .verdict tunnel
    json_is .entry git
    json_is .line 14
    json_is '.endpoints | length' 2
    json_is '.endpoints[1].matched' true
    json_is '.egress_policy_hash | test("^sha256:[0-9a-f]{64}$")' true
}

@test "what is no question is refused" {
    write
    run brig policy explain --policy policy.yaml
    [ "$status" -eq 64 ]
    run brig policy explain --policy policy.yaml --request "GET /x"
    [ "$status" -eq 64 ]
    run brig policy explain --policy policy.yaml --connect example.com
    [ "$status" -eq 64 ]
    run brig policy explain --policy policy.yaml --connect a.example.com:1 --body policy.yaml
    [ "$status" -eq 64 ]
}

@test "a preset takes its hosts from the machine, and opens no others" {
    mkdir -p home/.config/go
    echo 'GOPROXY=https://goproxy.example.org:8443,https://user:pw@second.example.org/x|direct' >home/.config/go/env
    run env HOME="$PWD/home" GOPROXY= GOSUMDB= "$BRIG" policy preset go
    [ "$status" -eq 0 ]
    printf '%s\n' "$output" >go.yaml
    [[ $output != *pw* ]]
    brig policy check go.yaml
    brig policy explain --policy go.yaml --binary /usr/local/go/bin/go --request "GET https://goproxy.example.org:8443/m/@v/list"
    brig policy explain --policy go.yaml --binary /usr/local/go/bin/go --request "GET https://second.example.org/m/@v/list"
    run brig policy explain --policy go.yaml --binary /usr/local/go/bin/go --request "POST https://second.example.org/m"
    [ "$status" -eq 77 ]
    run brig policy explain --policy go.yaml --binary /usr/bin/curl --request "GET https://second.example.org/m"
    [ "$status" -eq 77 ]
    run brig policy explain --policy go.yaml --binary /usr/local/go/bin/go --request "GET https://third.example.org/m"
    [ "$status" -eq 77 ]
}

@test "a preset without configuration wants a host" {
    mkdir -p home
    run env HOME="$PWD/home" "$BRIG" policy preset crates
    [ "$status" -eq 66 ] || [[ $output == "# crates"* ]] # the machine may have one for everybody
    run env HOME="$PWD/home" "$BRIG" policy preset crates --host crates.example.org --host 10.0.0.7:8080
    [ "$status" -eq 0 ]
    [[ $output == *'host: "crates.example.org", port: 443'* ]]
    [[ $output == *'host: "10.0.0.7", port: 8080'* ]]
    run brig policy preset other
    [ "$status" -eq 64 ]
}

@test "who is let in, and that two have to say yes" {
    printf 'version: 1\nnetwork_peers:\n  web: {sandbox: "web-*", port: 5432}\n' >peers.yaml
    run brig policy explain --policy peers.yaml --peer web-1:5432
    [ "$status" -eq 0 ]
    [ "$output" = "allow by network_peers.web, line 3" ]
    run brig policy explain --policy peers.yaml --peer web-1:80
    [ "$status" -eq 77 ]
    [[ $output == "deny by network_peers.web, line 3 (EGRESS_PEER): "*"not at port 80"* ]]
    run brig policy explain --policy peers.yaml --peer other:5432
    [ "$status" -eq 77 ]
    [[ $output == "deny (EGRESS_PEER): "* ]]
    for wrong in web-1 Web:1 a.b:1 :1 web-1:0; do
        run brig policy explain --policy peers.yaml --peer "$wrong"
        [ "$status" -eq 64 ]
    done
    run brig policy explain --policy peers.yaml --peer web-1:1 --connect a.example.com:1
    [ "$status" -eq 64 ]
    printf 'version: 1\nnetwork_policies:\n  db:\n    binaries: [{path: /usr/bin/curl}]\n    endpoints: [{sandbox: db, port: 5432}]\n' >db.yaml
    run brig policy explain --policy db.yaml --connect db.sandbox.internal:5432
    [ "$status" -eq 0 ]
    [[ ${lines[1]} == "tunnel by db, line 5: "*"if the other sandbox lets this one in"* ]]
}

# ---- a command: what else would refuse it ----

# foreseen STATUS ARG…: explain says what it says, and a run says the same.
foreseen() {
    local status_wanted=$1 code
    shift
    run -"$status_wanted" brig policy explain --json "$@"
    code=$(jq -r .reason_code <<<"$output")
    answer=$output
    run brig sandbox exec --quiet "$@"
    status_is "$status_wanted"
    [ "$(receipt .reason_code)" = "$code" ] || {
        printf 'explain says %s, a run %s\n' "$code" "$(receipt .reason_code)" >&2
        return 1
    }
    output=$answer
}

refusals() {
    json_is '[.would_be_refused[].reason_code] | join(" ")' "$1"
}

entries() {
    [ ! -e "$BRIG_HOME/receipts.db" ] && echo 0 || ledger 'SELECT count(*) FROM receipts'
}

@test "a bundle that does not count is told, and one that does is not" {
    printf 'version: 1\ncommands: [{name: look, allow: [ls, "**"]}]\n' >p.yaml
    brig policy bundle make --out b.json --key k --name n --version 2 p.yaml >/dev/null
    brig policy bundle make --out old.json --key k --name n --version 1 p.yaml >/dev/null
    brig policy bundle make --out short.json --key k --name s --version 1 --expires 1s p.yaml >/dev/null
    foreseen 77 --policy b.json -- ls
    refusals BUNDLE_UNTRUSTED
    json_is .verdict DENY
    json_is .policy_layer policy
    json_is '.would_be_refused[0].policy_layer' policy
    json_is '.would_be_refused[0].reason | test("whom nobody here trusts")' true
    json_is '.rules[0].matched' true # what the rules say is told all the same
    brig policy trust add "$(jq -r .public_key b.json)" >/dev/null
    foreseen 0 --policy b.json -- ls
    refusals ""
    run -77 brig policy explain --policy b.json -- rm x
    [ "${lines[-1]}" = "DENY by default, line 2 (POLICY_DEFAULT_DENY): $(brig policy explain --policy b.json --json -- rm x | jq -r .reason)" ]
    over() {
        run brig policy explain --policy short.json -- ls
        [ "$status" -eq 77 ]
    }
    eventually 10 over
    says "would be refused: BUNDLE_EXPIRED: bundle s, version 1, is over"
    foreseen 77 --policy short.json -- ls
    brig policy apply b.json >/dev/null
    foreseen 0 -- ls
    foreseen 77 --policy old.json -- ls
    refusals BUNDLE_ROLLBACK
    # A ceiling that wants bundles refuses everything else.
    printf 'version: 1\ndefault: allow\nbundles: required\n' >c.yaml
    brig policy ceiling set c.yaml >/dev/null
    foreseen 0 -- ls
    foreseen 77 --policy p.yaml -- ls
    refusals POLICY_UNSIGNED
    json_is .policy_layer ceiling
    # One that cannot be read refuses everything.
    echo 'x: [' >"$BRIG_HOME/ceiling.yaml"
    foreseen 77 -- ls
    refusals POLICY_INVALID
}

@test "a command that is to run elsewhere, or that is a tool's, is judged as such" {
    cat >p.yaml <<Y
version: 1
default: allow
commands:
  - {name: away, deny: [], provider: mock}
  - {name: no-rm, deny: [rm, "**"], tool: bash}
  - {name: writes, ask: [], tool: "write_*"}
Y
    foreseen 0 --policy p.yaml -- true
    foreseen 77 --policy p.yaml --provider mock -- true
    json_is .rule away
    for provider in docker nosuch; do
        foreseen 77 --policy p.yaml --provider $provider -- true
        json_is .would_be_refused[0].reason_code "$(jq -r .reason_code <<<"$output")"
    done
    refusals PROVIDER_UNKNOWN

    run -0 brig policy explain --policy p.yaml -- rm x
    run -77 brig policy explain --policy p.yaml --tool bash --json -- rm x
    json_is .rule no-rm
    run -77 brig policy explain --policy p.yaml --tool write_file --json -- tool:write_file '{"path":"x"}'
    json_is .verdict ASK
    json_is .rule writes
    json_is .effect DATA_WRITE
    # Where it runs is not Brig's to say.
    run -77 brig policy explain --policy p.yaml --tool write_file --provider docker --json -- ls
    refusals ""
}

@test "a freeze is told to whom it concerns: everybody, a tenant, a principal" {
    brig freeze --reason "an incident" >/dev/null
    foreseen 77 -- ls
    refusals SYSTEM_FROZEN
    run -77 brig policy explain -- ls
    [ "${lines[0]}" = 'would be refused: SYSTEM_FROZEN: everything is frozen, an incident: "brig freeze --status" tells by whom' ]
    [[ "${lines[-1]}" == "DENY (SYSTEM_FROZEN): everything is frozen"* ]]
    brig unfreeze >/dev/null
    foreseen 0 -- ls
    brig freeze --tenant acme >/dev/null
    foreseen 0 -- ls
    run -77 brig policy explain --tenant acme --json -- ls
    refusals SYSTEM_FROZEN
    brig unfreeze --tenant acme >/dev/null
    brig freeze --principal bot >/dev/null
    foreseen 0 -- ls
    run -77 brig policy explain --principal bot --json -- ls
    json_is .reason_code SYSTEM_FROZEN
    run -64 brig policy explain --tenant ../x -- ls
}

@test "a budget that is used up is told; asking uses nothing of it" {
    printf 'version: 1\ndefault: allow\nbudget: [{per: principal, within: 1h, runs: 1}]\n' >p.yaml
    for _ in 1 2 3; do
        run -0 brig policy explain --policy p.yaml -- ls
    done
    [ ! -e "$BRIG_HOME" ] # nothing was made to find that out
    run -0 brig sandbox exec --policy p.yaml -- true
    used=$(brig budget show --policy p.yaml --json)
    foreseen 77 --policy p.yaml -- ls
    refusals BUDGET_EXCEEDED
    json_is '.reason | test("the runs budget of principal uid:[0-9]+ is used up: 1 in 1h")' true
    run -0 brig policy explain --principal somebody-else --policy p.yaml -- ls
    [ "$(brig budget show --policy p.yaml --json)" = "$used" ]
    # The operator's, and one that cannot be held.
    brig budget set --per tenant --within 1h --runs 1 >/dev/null
    brig sandbox exec --quiet -- true
    foreseen 77 -- ls
    json_is '.reason | test("set by the operator")' true
    brig budget remove --per tenant --within 1h >/dev/null
    printf 'version: 1\ndefault: allow\nbudget: [{per: principal, within: 1h, cost: 1}]\n' >c.yaml
    foreseen 77 --policy c.yaml -- ls
    refusals POLICY_NOT_ENFORCEABLE
    # What the rules refuse does not come to a budget.
    printf 'version: 1\ndefault: deny\nbudget: [{per: principal, within: 1h, runs: 1}]\n' >d.yaml
    foreseen 77 --policy d.yaml -- ls
    refusals ""
    json_is .reason_code POLICY_DEFAULT_DENY
    # A question for a person does: nobody is asked in vain.
    sed -i 's/default: deny/default: ask/' d.yaml
    foreseen 77 --policy d.yaml -- ls
    refusals BUDGET_EXCEEDED
}

@test "what a dead run has left reserved is not counted, and not settled by asking" {
    need sqlite3
    printf 'version: 1\ndefault: allow\nbudget: [{per: principal, within: 1h, runs: 2}]\n' >p.yaml
    brig sandbox exec --quiet --policy p.yaml -- true
    sqlite3 "$BRIG_HOME/budget.db" "INSERT INTO runs VALUES ('gone', 'nobody', 1000, 1, 0, 0, 0);
        INSERT INTO holds SELECT 'gone', scope, name, window_s, 1, 0, 0, 0, 0 FROM accounts;
        UPDATE accounts SET held_runs = held_runs + 1"
    before=$(sqlite3 "$BRIG_HOME/budget.db" .dump)
    for _ in 1 2; do
        run -0 brig policy explain --policy p.yaml -- ls
        [ "$(sqlite3 "$BRIG_HOME/budget.db" .dump)" = "$before" ]
    done
    run -0 brig sandbox exec --policy p.yaml -- true
    run -77 brig policy explain --policy p.yaml -- ls
    says BUDGET_EXCEEDED
}

@test "all of them at once, and the verdict is the one a run gets" {
    printf 'version: 1\ndefault: allow\nrequires_release: agent\nbudget: [{per: principal, within: 1h, runs: 1}]\n' >p.yaml
    printf 'version: 1\ndefault: allow\nbudget: [{per: principal, within: 1h, runs: 1}]\n' >once.yaml
    brig policy bundle make --out b.json --key k --name n --version 1 p.yaml >/dev/null
    brig sandbox exec --quiet --policy once.yaml -- true
    brig freeze >/dev/null
    n=$(entries)
    run -77 brig policy explain --policy b.json -- ls
    [ "$(grep -c '^would be refused: ' <<<"$output")" -eq 4 ]
    [ "$(entries)" -eq "$n" ]
    foreseen 77 --policy b.json -- ls
    refusals "BUNDLE_UNTRUSTED SYSTEM_FROZEN RELEASE_REQUIRED BUDGET_EXCEEDED"
    json_is .reason_code SYSTEM_FROZEN
    brig unfreeze >/dev/null
    foreseen 77 --policy b.json -- ls
    json_is .reason_code BUNDLE_UNTRUSTED
    brig policy trust add "$(jq -r .public_key b.json)" >/dev/null
    foreseen 77 --policy b.json -- ls
    refusals "RELEASE_REQUIRED BUDGET_EXCEEDED"
    json_is .reason_code RELEASE_REQUIRED
}

@test "a decider outside is not asked about what is refused already" {
    need perl
    perl "$BRIG_ROOT/tests/flow/pdp-server.pl" "$WORK/port" "$WORK/asked" </dev/null >/dev/null 2>&1 3>&- &
    server=$!
    eventually 10 test -s port
    printf 'version: 1\ndefault: allow\nexternal: {url: "http://127.0.0.1:%s/yes", protocol: opa, timeout: 5s}\n' "$(cat port)" >p.yaml
    brig freeze >/dev/null
    run brig policy explain --external --policy p.yaml --json -- ls
    [ "$status" -eq 77 ]
    json_is .reason_code SYSTEM_FROZEN
    [ ! -e asked ]
}

@test "what is seen in a command is told: how much of it is known, and by which bytes" {
    # shellcheck disable=SC2016 # for the shell inside
    run --separate-stderr brig policy explain --json -- sh -c 'ls && rm -rf x; $X y'
    json_is '.seen_count' 4
    json_is '.seen[0] | "\(.known) \(.start) \(.end)"' "literal 0 26"
    json_is '[.seen[1:][] | "\(.known) \(.start) \(.end) \(.within)"] | join(", ")' \
        "literal 6 8 sh, literal 12 20 sh, opaque 22 26 sh"
    json_is '.seen[2].words | join(" ")' "rm -rf x"
    # shellcheck disable=SC2016 # likewise
    run brig policy explain -- sh -c '$X y'
    says 'sees bytes 6 to 10, opaque, inside sh, with something unseen: $X y'
    # A command that is what it says needs no such lines.
    run brig policy explain -- ls -l
    [[ $output != *sees* ]]
}
