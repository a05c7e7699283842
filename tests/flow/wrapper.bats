#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ./brig at the root: freshness, names, links, and what it says when it may not build. Works on a
# small copy of the tree whose build is replaced by a script that counts.

load common

setup() {
    common_setup
    tree=$WORK/tree
    mkdir -p "$tree/tools" "$tree/src/deep/er" "$tree/build/src/cmd/cli"
    [ -e "$BRIG_ROOT/brig" ] || skip "the copy of the tests has no wrapper"
    cp "$BRIG_ROOT/brig" "$tree/"
    cp "$BRIG_ROOT/tools/packages" "$tree/tools/"
    touch "$tree/meson.build" "$tree/meson_options.txt" "$tree/src/deep/er/a.c" "$tree/src/b.c"
    printf '#!/bin/sh\nexit 0\n' >"$tree/tools/install-packages"
    cat >"$tree/tools/build" <<'EOF'
#!/bin/sh
cd "$(dirname "$0")/.." || exit
echo built >>builds
printf '#!/bin/sh\necho "I am ${0##*/}: $*"\n' >build/src/cmd/cli/brig
chmod +x build/src/cmd/cli/brig
ln -sf brig build/src/cmd/cli/helm
sleep 0.05
touch build/stamp
EOF
    chmod +x "$tree/tools/"*
}

builds() {
    [ "$(grep -c built "$tree/builds")" -eq "$1" ]
}

@test "it builds once and then only runs" {
    run "$tree/brig" one
    [ "$output" = "I am brig: one" ]
    run "$tree/brig" two
    [ "$output" = "I am brig: two" ]
    builds 1
}

@test "every kind of change is seen" {
    "$tree/brig"
    n=1
    for change in 'echo x >>src/deep/er/a.c' 'rm src/b.c' 'touch src/deep/new.c' \
        'cp -p src/deep/new.c src/deep/er/a.c' 'mv src/deep/new.c src/deep/er/moved.c' \
        'echo x >>meson.build' 'echo "build x" >>tools/packages' 'rm build/stamp'; do
        sleep 0.05
        (cd "$tree" && eval "$change")
        "$tree/brig"
        n=$((n + 1))
        echo "after: $change"
        builds $n
    done
}

@test "through links it finds its tree, and a link named helm is helm" {
    mkdir -p "$WORK/bin" "$WORK/links"
    ln -s "$tree/brig" "$WORK/links/second"
    ln -s ../links/second "$WORK/bin/brig"
    ln -s "$tree/brig" "$WORK/bin/helm"
    run "$WORK/bin/brig" a 'b  c' ''
    [ "$output" = "I am brig: a b  c " ]
    cd "$WORK/bin"
    run ./helm x
    [ "$output" = "I am helm: x" ]
    PATH=$WORK/bin:$PATH run helm_on_path
    [ "$output" = "I am helm: y" ]
}

helm_on_path() {
    command env helm y
}

@test "a failing build is passed on" {
    printf '#!/bin/sh\nexit 70\n' >"$tree/tools/build"
    run "$tree/brig" version
    status_is 70
    printf '#!/bin/sh\nexit 69\n' >"$tree/tools/install-packages"
    run "$tree/brig" version
    status_is 69
}

@test "in a clone one may not write to it says what to do" {
    ! is_root || skip "root may write everywhere"
    cp "$BRIG_ROOT/tools/build" "$tree/tools/build"
    rm -rf "$tree/build"
    chmod a-w "$tree"
    run "$tree/brig" version
    chmod u+w "$tree"
    status_is 69
    says "is not yours to write to"
}
