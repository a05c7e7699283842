#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The library and its verifier for an ordinary user; tools/run-tests runs this as one.

load ../flow/common

@test "the library drives a daemon of an ordinary user" {
    need node
    [ -d "$BRIG_ROOT/sdk/typescript/dist" ] || skip "the library is not built"
    cd "$BRIG_ROOT"
    BRIG_SDK_READY=yes run tests/clients/run tests/clients/sdk.test.mjs tests/clients/verify.test.mjs tests/clients/advisory.test.mjs
    grep -A 20 '^not ok' <<<"$output" || true
    status_is 0
}
