#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tools/install-packages, with dpkg-query, apt-get, sudo and id played by scripts.

load common

setup() {
    common_setup
    mkdir -p "$WORK/tools" "$WORK/bin"
    [ -e "$BRIG_ROOT/tools/install-packages" ] || skip "the copy of the tests has no tools"
    cp "$BRIG_ROOT/tools/install-packages" "$WORK/tools/"
    printf '# a comment\nbuild gcc\nbuild meson\ntest bats\n' >"$WORK/tools/packages"
    play id 'echo "$UID_PLAYED"'
    play sudo 'exit 1'
    play apt-get 'echo "$*" >>"$WORK/apt"; [ ! -e "$WORK/apt-fails" ] || { echo broken; exit 100; }'
    play dpkg-query 'for p in $INSTALLED; do echo "$p installed"; done'
    export WORK PATH=$WORK/bin:$PATH UID_PLAYED=1000 INSTALLED=
}

play() { # NAME SCRIPT
    printf '#!/bin/sh\n%s\n' "$2" >"$WORK/bin/$1"
    chmod +x "$WORK/bin/$1"
}

@test "nothing missing, nothing done" {
    INSTALLED="gcc meson bats" run tools/install-packages build test
    status_is 0
    [ -z "$output" ]
    [ ! -e apt ]
}

@test "who may not install is told the exact line" {
    INSTALLED=gcc run tools/install-packages build test
    status_is 69
    says "sudo apt-get install -y --no-install-recommends meson bats"
    [ ! -e apt ]
}

@test "only what the purpose needs is asked for" {
    run tools/install-packages build
    status_is 69
    says "no-install-recommends gcc meson"
    [[ $output != *bats* ]]
}

@test "a package that was removed but left its configuration is missing" {
    play dpkg-query 'echo "gcc installed"; echo "meson config-files"'
    run tools/install-packages build
    status_is 69
    says "no-install-recommends meson"
}

@test "root installs, and once more after an update when that fails" {
    UID_PLAYED=0 run tools/install-packages build
    status_is 0
    [ "$(cat apt)" = "install -qq -y --no-install-recommends gcc meson" ]
    rm apt
    touch apt-fails
    UID_PLAYED=0 run tools/install-packages build
    status_is 69
    says broken
    says "installing failed"
    [ "$(sed -n 2p apt)" = "update -qq" ]
    [ "$(wc -l <apt)" -eq 3 ]
}

@test "sudo without a password is used" {
    play sudo '[ "$1" = -n ] && shift && exec "$@"'
    run tools/install-packages build
    status_is 0
    [ "$(cat apt)" = "install -qq -y --no-install-recommends gcc meson" ]
}
