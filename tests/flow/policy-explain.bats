#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig policy explain and preset: what network rules come to, without a network.

load common
load sandbox

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
