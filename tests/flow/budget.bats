#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Budgets: what runs may use together is reserved before each and settled after it.

load common
load sandbox
load kept
load serve

setup() {
    common_setup
}

teardown() {
    local status=0
    serve_end || status=$?
    destroy_all
    return $status
}

# policy ENTRY…: p.yaml allows everything, with these budgets.
policy() {
    printf 'version: 1\ndefault: allow\nbudget:\n' >p.yaml
    printf '  - %s\n' "$@" >>p.yaml
}

# amount KIND MEMBER: of the first budget that is shown.
amount() {
    brig budget show --policy p.yaml --json |
        jq -r ".budgets[0].amounts[] | select(.kind == \"$1\") | .$2"
}

@test "as many runs as there are; the next is denied, with a receipt that says so" {
    policy '{per: principal, within: 1h, runs: 2}'
    run -0 brig sandbox exec --policy p.yaml -- true
    run -0 brig sandbox exec --policy p.yaml -- true
    run -77 brig sandbox exec --policy p.yaml -- true
    says "the runs budget of principal uid:$(id -u) is used up: 2 in 1h, of which 2 is used"
    says "(set by line 4 of the policy); it renews at 20"
    receipt_is .kind denial
    receipt_is .reason_code BUDGET_EXCEEDED
    [ "$(amount runs used)" = 2 ]
    [ "$(amount runs reserved)" = 0 ]
    run -0 brig sandbox exec -- true # under another policy there is no such limit
    policy '{per: principal, within: 1s, runs: 1}'
    eventually 5 brig sandbox exec --policy p.yaml -- true
    eventually 5 brig sandbox exec --policy p.yaml -- true # another second, another run
}

@test "what is left of the time is all a run gets, and its receipts say whose budget ended it" {
    policy '{per: tenant, within: 1h, wall: 700ms}'
    run brig sandbox exec --policy p.yaml -- sleep 30
    [ "$status" -ne 0 ]
    says BUDGET_EXCEEDED
    receipt_is .reason_code BUDGET_EXCEEDED
    receipt_is .kind outcome
    receipt_is .outcome.timed_out true
    receipt_is .budget.wall_ms 700
    [[ "$(receipt .outcome.failure)" == "the wall budget of tenant default leaves no more time: 700ms in 1h"* ]]
    run -77 brig sandbox exec --policy p.yaml -- true
    says "the wall budget of tenant default is used up"
}

@test "processor time is bounded by the processors a run has" {
    policy '{per: principal, within: 1h, cpu: 1s}'
    run brig sandbox exec --policy p.yaml --cpu 2 -- sleep 30
    receipt_is .budget.wall_ms 500
    receipt_is .reason_code BUDGET_EXCEEDED
    if [ "$(receipt .limits.cpu_millis.means)" = cgroup ]; then
        run -0 brig sandbox exec --policy p.yaml -- true # it slept: nearly all is still there
        [ "$(amount cpu used)" -lt 500000 ]
    else
        run -77 brig sandbox exec --policy p.yaml -- true # nobody has seen that it slept
        [ "$(amount cpu used)" -ge 1000000 ]
    fi
}

@test "processor time that a command hides is paid for" {
    policy '{per: principal, within: 1h, cpu: 1h}'
    make --policy "$PWD/p.yaml"
    # Left behind, killed when its time is over, and waited for by nobody.
    for hidden in '(sh -c "while :; do :; done" &); sleep 1' 'trap "" TERM; while :; do :; done' \
        'perl -e '\''$SIG{CHLD} = "IGNORE"; if (!fork) { 1 while time < $^T + 2; exit } sleep 2'\'; do
        for where in "--policy p.yaml" "$id"; do
            used=$(amount cpu used)
            # shellcheck disable=SC2086
            brig sandbox exec --quiet --timeout 1s $where -- sh -c "$hidden" || true
            spent=$(receipt '.outcome.duration_us')
            # On a busy machine it gets a part of a processor; 3 ms are what the shell itself takes.
            [ "$(($(amount cpu used) - used))" -ge $((spent / 50)) ] || { echo "$where: $hidden" >&2; return 1; }
        done
    done
}

@test "fifty at once with ten runs left: exactly ten run" {
    policy '{per: principal, within: 1h, runs: 10}'
    brig sandbox exec --provider mock --policy p.yaml -- true >/dev/null # the files are there
    brig budget reset >/dev/null
    for i in $(seq 50); do
        (
            status=0
            "$BRIG" sandbox exec --quiet --provider mock --policy p.yaml -- true >/dev/null 2>&1 || status=$?
            echo $status >"status$i"
        ) &
    done
    wait
    [ "$(grep -lx 0 status* | wc -l)" -eq 10 ]
    [ "$(grep -lx 77 status* | wc -l)" -eq 40 ]
    [ "$(amount runs used)" = 10 ]
    [ "$(amount runs reserved)" = 0 ]
}

@test "a cost needs prices; with them it is counted and cut" {
    policy '{per: principal, within: 1h, cost: 1.00}'
    run -77 brig sandbox exec --policy p.yaml -- true
    says "nothing has a price"
    receipt_is .reason_code POLICY_NOT_ENFORCEABLE
    run -0 brig budget price --run 0.40 --vcpu-second 0.50
    says "these prices count from now on; receipt"
    receipt_is .outcome.budget.price_run 400000
    run -0 brig budget set --per tenant --within 30d --cost 1000
    run -0 brig budget show
    says "tenant (each), within 30d, set by operator"
    says "price of a run: 0.400000"
    says "price of a second of a processor: 0.500000"
    run brig sandbox exec --policy p.yaml --cpu 1 -- sleep 30
    receipt_is .budget.wall_ms 1200
    receipt_is .reason_code BUDGET_EXCEEDED
    run -77 brig sandbox exec --policy p.yaml -- true
    says "the cost budget"
    run -64 brig budget price --run 1.2345678
    # Who only wants to see the prices does not take them away.
    run -64 brig budget price
    says "say what costs how much"
    run -0 brig budget show
    says "price of a run: 0.400000"
    run -0 brig budget price --run 0
    run -0 brig budget show
    not grep -q "price of" <<<"$output"
}

@test "no policy widens the operator's limit; it can be taken away and forgotten" {
    policy '{per: principal, within: 1h, runs: 1000}'
    run -0 brig budget set --per principal --within 24h --runs 1
    says "this limit holds from now on; receipt"
    receipt_is .action budget
    receipt_is .outcome.budget.verb set
    receipt_is .outcome.budget.limit.runs 1
    run -0 brig sandbox exec --policy p.yaml -- true
    run -77 brig sandbox exec --policy p.yaml -- true
    says "(set by the operator)"
    run -77 brig sandbox exec -- true
    run -0 brig budget reset --principal "uid:$(id -u)"
    says "these counts begin anew; receipt"
    run -0 brig sandbox exec -- true
    run -0 brig budget remove --per principal --within 24h
    says "there is no such limit any more; receipt"
    run -0 brig sandbox exec -- true
    run -66 brig budget remove --per principal --within 24h
    run -64 brig budget set --per principal --within 24h
    run -64 brig budget set --per principal --within session --runs 1
    run -64 brig budget set --per principal --within 400d --runs 1
    run -64 brig budget set --per principal --within 1h --wall 0
    run -0 brig receipts verify
}

@test "a budget of the ceiling holds beside the policy's" {
    policy '{per: principal, within: 1h, runs: 1000}'
    printf 'version: 1\nbudget: [{per: principal, within: 2h, runs: 1}]\n' >ceiling.yaml
    run -0 brig policy ceiling set ceiling.yaml
    run -0 brig sandbox exec --policy p.yaml -- true
    run -77 brig sandbox exec --policy p.yaml -- true
    says "1 in 2h, of which 1 is used"
    says "(set by line 2 of the ceiling)"
}

@test "the commands of a kept sandbox are one session" {
    policy '{per: session, runs: 2}'
    run -0 brig sandbox exec --policy p.yaml -- true
    run -0 brig sandbox exec --policy p.yaml -- true
    run -0 brig sandbox exec --policy p.yaml -- true # each is its own
    make --policy "$PWD/p.yaml"
    run -0 brig sandbox exec "$id" -- true
    run -0 brig sandbox exec "$id" -- true
    run -77 brig sandbox exec "$id" -- true
    says "it does not renew"
}

@test "a detached command has reserved until it ends; what goes on uncounted is refused" {
    policy '{per: principal, within: 1h, runs: 2, wall: 10m}'
    mkdir out
    make --policy "$PWD/p.yaml" --mount "$WORK/out:/out"
    run -0 brig sandbox exec --detach "$id" -- sh -c 'sleep 1; until [ -e /out/over ]; do sleep 0.05; done'
    [ "$(amount runs reserved)" = 1 ]
    run -77 brig sandbox exec "$id" -- true # all the time is reserved
    says "10m reserved"
    run -77 brig sandbox exec --keep "$id" -- true
    says "for what a command leaves running"
    touch out/over
    settled() {
        [ "$(amount runs reserved)" = 0 ]
    }
    eventually 5 settled
    [ "$(amount runs used)" = 1 ]
    [ "$(amount wall used)" -gt 900000 ]
    run -0 brig sandbox exec "$id" -- true
}

@test "what a detached command has left is there for the next, before that is cut short" {
    policy '{per: principal, within: 1h, wall: 605s}'
    make --policy "$PWD/p.yaml"
    run -0 brig sandbox exec --detach --timeout 10m "$id" -- sleep 0.2
    over() {
        brig sandbox exec --timeout 20s "$id" -- true && [ "$(receipt .budget.wall_ms)" = null ]
    }
    eventually 10 over
}

@test "a sandbox that is destroyed leaves nothing behind, nor does a window that is over" {
    need sqlite3
    policy '{per: session, runs: 20}' '{per: principal, within: 1s, runs: 50}'
    for _ in 1 2 3; do
        make --policy "$PWD/p.yaml"
        run -0 brig sandbox exec "$id" -- true
        run -0 brig sandbox destroy "$id"
    done
    cleared() {
        sleep 1.1
        brig sandbox exec --policy p.yaml -- true
        [ "$(sqlite3 "$BRIG_HOME/budget.db" 'SELECT count(*) FROM accounts')" -eq 1 ]
    }
    eventually 10 cleared
    id=
}

@test "whoever is killed loses nothing and counts nothing twice" {
    policy '{per: principal, within: 1h, runs: 1000, wall: 10h}'
    for i in $(seq 20); do
        "$BRIG" sandbox exec --quiet --policy p.yaml -- sleep 0.01 >/dev/null 2>&1 &
        pid=$!
        sleep "0.0$((i % 10))$((i % 7))"
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" || true
    done
    none_left() {
        brig sandbox exec --quiet --policy p.yaml -- true
        [ "$(amount runs reserved)" = 0 ] && [ "$(amount wall reserved)" = 0 ]
    }
    eventually 10 none_left
    [ "$(amount runs used)" = "$(receipts_of outcome)" ]
}

@test "killed at each point of the way, likewise" {
    [ "$(brig version --json | jq -r .crash_points)" = true ] || skip "built without crash points"
    policy '{per: principal, within: 1h, runs: 1000, wall: 10h}'
    for point in budget-reserved opening-before opening-committed closing-before closing-committed \
        budget-unsettled budget-settling; do
        BRIG_CRASH_AT=$point brig sandbox exec --quiet --policy p.yaml -- true || true
        eventually 2 no_run_is_held
        run -0 brig sandbox exec --quiet --policy p.yaml -- true
        [ "$(amount runs reserved)" = 0 ]
        [ "$(amount runs used)" = "$(receipts_of outcome)" ]
    done
}

@test "what cannot be told is denied" {
    policy '{per: principal, within: 1h, runs: 5}'
    run -0 brig sandbox exec --policy p.yaml -- true
    rm -f "$BRIG_HOME"/budget.db*
    printf 'no database, but long enough to be taken for one: %0200d' 0 >"$BRIG_HOME/budget.db"
    run -77 brig sandbox exec --policy p.yaml -- true
    receipt_is .reason_code BUDGET_ERROR
    run -77 brig sandbox exec -- true # it may have held a limit of the operator's
    receipt_is .reason_code BUDGET_ERROR
}

@test "a budget.db that was there and is gone is no new one, until somebody says so" {
    run -0 brig sandbox exec -- true # a fresh state directory needs nobody's word
    [ ! -e "$BRIG_HOME/made" ]
    run -75 brig budget renew
    says "nothing is lost"
    run -0 brig budget set --per principal --within 1h --runs 2
    policy '{per: principal, within: 1h, runs: 5}'
    run -0 brig sandbox exec --policy p.yaml -- true
    for how in missing empty header; do
        rm -f "$BRIG_HOME"/budget.db*
        case $how in
        empty) : >"$BRIG_HOME/budget.db" ;;
        header) sqlite3 "$BRIG_HOME/budget.db" 'PRAGMA journal_mode = WAL; VACUUM' >/dev/null ;;
        esac
        [ "$how" = missing ] || chmod 600 "$BRIG_HOME/budget.db"
        run -77 brig sandbox exec --policy p.yaml -- true
        says "budget.db was there and is gone or empty, and with it what it held"
        says '"brig budget renew"'
        receipt_is .reason_code BUDGET_ERROR
        run -77 brig sandbox exec -- true # the operator's limits are gone, too
        receipt_is .reason_code BUDGET_ERROR
        run -76 brig budget show
        run -76 brig budget reset
        says "is gone or empty"
        receipt_is .kind outcome
        receipt_is .reason_code BUDGET_FAILED
        run -76 brig budget set --per principal --within 1h --runs 2
    done
    run -0 brig budget renew
    says "there are no limits and no prices, and nothing is used"
    receipt_is .action budget
    receipt_is .outcome.budget.verb renew
    run -0 brig sandbox exec --policy p.yaml -- true
    [ "$(amount runs used)" = 1 ]
    run -75 brig budget renew # and no second time
    says "the list of budgets $BRIG_HOME/budget.db is there; nothing is lost"
    run -0 brig receipts verify
}

@test "a mark that a crash kept from being written is written by the next" {
    policy '{per: principal, within: 1h, runs: 5}'
    run -0 brig sandbox exec --policy p.yaml -- true
    rm -r "$BRIG_HOME/made"
    run -0 brig sandbox exec --policy p.yaml -- true
    [ "$(amount runs used)" = 2 ]
    rm -f "$BRIG_HOME"/budget.db*
    run -77 brig sandbox exec --policy p.yaml -- true
    receipt_is .reason_code BUDGET_ERROR
}

@test "nobody is asked about what has no budget left" {
    cat >p.yaml <<'P'
version: 1
default: ask
budget:
  - {per: principal, within: 1h, runs: 1}
commands:
  - allow: ["true"]
P
    run -0 brig sandbox exec --policy p.yaml -- true
    run -77 brig sandbox exec --policy p.yaml -- touch /tmp/x
    receipt_is .reason_code BUDGET_EXCEEDED
    run -0 brig approvals list --json
    json_is '.approvals | length' 0
}

@test "through the daemon the same holds, and is shown" {
    need curl
    brig budget set --per tenant --within 1h --runs 1 >/dev/null
    serve
    TOKEN=$(token --scope run --scope read)
    post /v1/runs '{"command":["true"]}'
    [ "$http" = 200 ]
    post /v1/runs '{"command":["true"]}'
    json_is .error.reason_code BUDGET_EXCEEDED
    api /v1/budgets
    [ "$http" = 200 ]
    json_is '.budgets[0].amounts[0].used' 1
    json_is '.budgets[0].set_by' operator
    # Another tenant has its own, and sees nothing of these.
    TOKEN=$(token --tenant acme --scope run --scope read)
    post /v1/runs '{"command":["true"]}'
    [ "$http" = 200 ]
    api /v1/budgets
    [ "$http" = 200 ]
    json_is '.budgets | length' 0
    BRIG_HOME=$BRIG_HOME/tenants/acme brig budget set --per tenant --within 1h --runs 1 >/dev/null
    post /v1/runs '{"command":["true"]}'
    [ "$http" = 200 ]
    post /v1/runs '{"command":["true"]}'
    json_is .error.reason_code BUDGET_EXCEEDED
    api /v1/budgets
    json_is '.budgets[0].name' acme
    serve_end
}
