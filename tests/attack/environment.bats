#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A18: the environment inside is made up of what was asked for, never of what the caller has.

load attack

@test "nothing of the caller's environment arrives" {
    export CANARY=canary-value LD_PRELOAD_CANARY=x AWS_SECRET_ACCESS_KEY=canary-value \
        SSH_AUTH_SOCK=/tmp/canary BASH_ENV=/tmp/canary PYTHONPATH=/canary GIT_DIR=/canary \
        PERL5OPT=-Mcanary NODE_OPTIONS=--canary ENV=/canary IFS=' ' LC_ALL=C.UTF-8
    run -0 box -- env
    [[ $output != *canary* ]]
    for line in "${lines[@]}"; do
        case ${line%%=*} in
        HOME | LANG | LOGNAME | PATH | PWD | SHELL | TERM | TMPDIR | USER | SHLVL | _) ;;
        *)
            echo "not on the list: $line" >&2
            return 1
            ;;
        esac
    done
}

@test "loader variables of the caller's do not reach the sandbox or the launcher" {
    cp /bin/true "$WORK/no-library.so"
    run -0 env LD_PRELOAD="$WORK/no-library.so" LD_LIBRARY_PATH="$WORK" LD_AUDIT="$WORK/no-library.so" \
        "$BRIG" sandbox exec --quiet -- env
    [[ $output != *LD_* ]]
}

@test "control: what is asked for by name or value arrives, and only that" {
    export CANARY=one OTHER=two
    run -0 box --env CANARY --env MINE=three -- env
    says "CANARY=one"
    says "MINE=three"
    [[ $output != *OTHER* ]]
}

@test "the caller's environment is in no receipt" {
    export CANARY=canary-in-receipt
    run -0 box -- true
    run -0 receipts .
    [[ $output != *canary-in-receipt* ]]
}
