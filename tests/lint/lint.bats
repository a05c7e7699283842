#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What the tools say about the tree, and that they would say it.

bats_require_minimum_version 1.5.0

setup() {
    : "${BRIG_ROOT:=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}"
    cd "$BRIG_ROOT" || return
}

# All of them are in tools/packages: a lint that did not run has found nothing out.
need() {
    command -v "$1" >/dev/null 2>&1 || { echo "$1 is not installed: tools/install-packages test" && return 1; }
}

# A tree that check-includes accepts, to be spoilt.
small_tree() {
    tree=$BATS_TEST_TMPDIR/tree
    mkdir -p "$tree"/src/lib/base "$tree"/src/lib/json "$tree"/src/flow/decide \
        "$tree"/src/flow/record "$tree"/src/surface/cli "$tree"/docs
    cp docs/ARCHITECTURE.md "$tree/docs/"
    echo '#include <stdlib.h>' >"$tree/src/lib/base/err.c"
    echo '#include "lib/base/err.h"' >"$tree/src/lib/json/json.c"
    printf '#include "flow/decide/decide.h"\n#include "flow/decide/rules.h"\n' \
        >"$tree/src/flow/decide/decide.c"
    printf '#include "flow/govern.h"\n#include "flow/record/record.h"\n' \
        >"$tree/src/surface/cli/exec.c"
}

@test "includes follow the table in docs/ARCHITECTURE.md" {
    run tools/check-includes
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "files are formatted" {
    need clang-format
    run tools/format --check
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "every test that docs/openshell.md names is there" {
    rows=$(sed -n 's/^| [0-9].*| \(tests[^ :]*\): `\(.*\)` |$/\1\t\2/p' docs/openshell.md)
    [ "$(printf '%s\n' "$rows" | wc -l)" = "$(grep -c '^| [0-9]' docs/openshell.md)" ]
    while IFS=$'\t' read -r file name; do
        grep -qF -- "$name" "$file" || { echo "$file has no: $name"; return 1; }
    done <<<"$rows"
}

# By its name or its folder's; those of canonical JSON are named without their ending.
@test "every file of vectors is read by a test, and every file of tests is run" {
    unread=''
    for file in $(find tests/vectors -type f ! -name '*.mjs'); do
        name=${file##*/}
        case $file in
        tests/vectors/json-canonical/*) name="\"${name%.*}\"" ;;
        esac
        grep -rqF --include='*.[ch]' --include='*.mjs' --include='*.bats' --include='*.bash' -- "$name" tests || unread+=" $file"
    done
    for file in tests/flow/*.bats tests/attack/*.bats tests/lint/*.bats; do
        name=${file##*/}
        grep -qF "'${name%.bats}'" "${file%/*}/meson.build" || unread+=" $file"
    done
    for file in $(find tests/unit -name '*-test.c') tests/fuzz/*-fuzz.c; do
        name=${file##*/}
        name=${name%.c}
        grep -qE "'(${name%-*}|$name\.c)'" "${file%/*}/meson.build" || unread+=" $file"
    done
    echo "$unread"
    [ -z "$unread" ]
}

@test "no test has a check that cannot fail" {
    # bash -e does not see a failure behind "!"; "not" and "run !" are seen. Where an "||" follows, it is a condition.
    # bats' run is a subshell: a wait in it has no children, and answers 127 while they still run.
    bad=$(
        grep -nE '^ +! ' tests/*/*.bats | grep -vE ' \|\| | && '
        grep -nE '\brun( -[0-9]+| !)? wait\b' tests/*/*.bats
        true
    )
    echo "$bad"
    [ -z "$bad" ]
}

@test "house rules hold" {
    run tools/lint
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "cppcheck finds nothing" {
    need cppcheck
    # Leaks are left to ASan: cppcheck does not know the cleanup attribute.
    run cppcheck --quiet --enable=warning,portability --inline-suppr --error-exitcode=1 --std=c11 \
        --suppress=memleak --suppress=resourceLeak -Isrc -j 2 src
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "shell scripts pass shellcheck" {
    need shellcheck
    run shellcheck brig .ci/run tools/build tools/build-asan tools/format tools/install-helm tools/install-packages \
        tools/lint tools/run-tests tools/sdk tools/tidy tests/clients/run
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "check-includes accepts a small tree that follows the table" {
    small_tree
    run tools/check-includes "$tree"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "check-includes refuses what the table does not allow" {
    small_tree
    check() { # FILE INCLUDE-LINE SENTENCE
        cp -r "$tree" "$tree.bad"
        echo "$2" >>"$tree.bad/src/$1"
        run tools/check-includes "$tree.bad"
        rm -rf "$tree.bad"
        echo "$1: $output"
        [ "$status" -eq 1 ]
        [[ $output == "src/$1:"[0-9]*": $3"* ]]
    }
    check lib/base/err.c '#include "lib/json/json.h"' \
        'includes "lib/json/json.h"; lib/base may include only itself'
    check lib/json/json.c '#include "flow/decide/decide.h"' \
        'includes "flow/decide/decide.h"; lib/json may include lib/base'
    check flow/decide/decide.c '#include "flow/record/record.h"' \
        'includes "flow/record/record.h"; flow/decide may include model, lib/*'
    check flow/decide/decide.c '#include "flow/govern.h"' 'includes "flow/govern.h"; flow/decide'
    check surface/cli/exec.c '#include "flow/decide/rules.h"' \
        'includes "flow/decide/rules.h"; flow/decide shows others only flow/decide/decide.h'
    check surface/cli/exec.c '#include "lib/json/json-private.h"' \
        'includes "lib/json/json-private.h", which is private to lib/json'
    check surface/cli/exec.c '#include <sqlite3.h>' 'includes <sqlite3.h>; it belongs to lib/store'
    check lib/json/json.c '  #  include "err.h"' 'includes "err.h"; paths are written from src/'
}

@test "check-includes does not pass a tree whose table it cannot read" {
    small_tree
    sed -i 's/^| folder |/| place |/' "$tree/docs/ARCHITECTURE.md"
    run tools/check-includes "$tree"
    [ "$status" -eq 2 ]
    small_tree
    rm "$tree/docs/ARCHITECTURE.md"
    run tools/check-includes "$tree"
    [ "$status" -eq 2 ]
}

@test "check-includes wants a row for every folder" {
    small_tree
    mkdir -p "$tree/src/stray"
    echo '#include "lib/base/err.h"' >"$tree/src/stray/a.c"
    run tools/check-includes "$tree"
    echo "$output"
    [ "$status" -eq 1 ]
    [[ $output == *"no row for the folder stray"* ]]
}

@test "lint refuses a missing SPDX line, goto, typedefs of structs and bare TODOs" {
    tree=$BATS_TEST_TMPDIR/tree
    mkdir -p "$tree/src"
    printf 'int a;\ngoto end;\ntypedef struct a b;\n/* %s: later */\n' TODO >"$tree/src/a.c"
    run tools/lint "$tree"
    echo "$output"
    [ "$status" -eq 1 ]
    [[ $output == *"src/a.c:1: the SPDX line is missing"* ]]
    [[ $output == *"src/a.c:2: goto"* ]]
    [[ $output == *"src/a.c:3: typedef"* ]]
    [[ $output == *"src/a.c:4: a TODO"* ]]
}

@test "the table of plain characters is what this Unicode says" {
    run -0 tools/unicode-folds --check
}

@test "what a user runs is every program there is" {
    for folder in src/cmd/*/; do
        name=$(basename "$folder")
        [ "$name" = cli ] || sed -n '/^programs = /,/]/p' src/cmd/cli/meson.build | grep -qw "${name}_program" ||
            { echo "$name is not one of them"; return 1; }
    done
}
