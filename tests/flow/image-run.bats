#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Sandboxes that stand on an image.

load common
load image-kit

setup() {
    common_setup
    need jq tar gzip busybox
    digest=$(busybox_layout "$WORK/layout" bb)
    brig image import "$WORK/layout" --name bb >/dev/null
}

in_image() { run brig sandbox exec --quiet --image bb -- /bin/sh -c "$1"; }

@test "a command runs in the image, starts in its folder and has its variables" {
    in_image 'pwd; echo $GREETING; test ! -e /usr/bin/perl && echo "not the host"'
    status_is 0
    [ "${lines[0]}" = /srv ]
    [ "${lines[1]}" = hello ]
    [ "${lines[2]}" = "not the host" ]
}

@test "rules do not guess in which folder an image's commands start" {
    printf '%s\n' 'version: 1' 'paths:' '  - {name: kept, deny: "/srv/kept/**"}' >"$WORK/kept.yaml"
    run brig sandbox exec --image bb --policy "$WORK/kept.yaml" -- /bin/cat kept/x
    status_is 77
    [[ "$output" == *"POLICY_DENY"*"only the image says where relative paths begin; say it with --workdir"* ]]
    run brig sandbox exec --image bb --policy "$WORK/kept.yaml" --workdir /srv -- /bin/cat kept/x
    status_is 77
    [[ "$output" != *"only the image says"* ]]
    # The control: where it is said, or the path is whole, other files may be named.
    run brig sandbox exec --quiet --image bb --policy "$WORK/kept.yaml" --workdir /bin -- /bin/ls cat
    status_is 0
    [ "$output" = cat ]
    run brig sandbox exec --quiet --image bb --policy "$WORK/kept.yaml" -- /bin/ls /bin/cat
    status_is 0
}

@test "variables that were asked for win over the image's" {
    run brig sandbox exec --quiet --image bb --env GREETING=bye -- /bin/sh -c 'echo $GREETING'
    status_is 0
    [ "$output" = bye ]
}

@test "the digest of the image is in the answer and observed" {
    run brig sandbox exec --json --image bb -- /bin/true
    status_is 0
    json_is .image_digest "$digest"
    run brig sandbox preflight --image bb --json
    status_is 0
    json_is .pass true
}

@test "the user writes to the image's folders, and the image stays as it was" {
    in_image 'echo changed > /bin/added && cat /bin/added && rm /bin/sh && test ! -e /bin/sh'
    status_is 0
    [ "$output" = changed ]
    in_image 'test ! -e /bin/added && test -e /bin/sh'
    status_is 0
    run brig image verify bb
    status_is 0
}

@test "/dev, /proc and /run are the sandbox's, not the image's" {
    in_image 'echo x > /dev/null && echo device works; touch /dev/x || touch /run/x || touch /x; echo 1 > /proc/sys/kernel/core_pattern'
    [[ "$output" == *"device works"* ]]
    [[ "$output" == *"/dev/x: Read-only file system"* ]]
    [[ "$output" == *"/run/x: Permission denied"* ]]
    [[ "$output" == *"/x: Permission denied"* ]]
    [[ "$output" == *"core_pattern: Read-only file system"* ]]
}

@test "links in place of /dev, /proc, /etc or /sandbox redirect nothing" {
    for name in dev proc etc sandbox; do
        layout=$WORK/link-$name
        mkdir -p "$WORK/tree-$name/bin"
        cp "$(command -v busybox)" "$WORK/tree-$name/bin/sh"
        ln -s /tmp/elsewhere "$WORK/tree-$name/$name"
        layer_tar "$WORK/tree-$name" "$WORK/$name.tar"
        layout_new "$layout"
        layout_add "$layout" "$WORK/$name.tar"
        layout_finish "$layout" "link-$name" >/dev/null
        brig image import "$layout" --name "link-$name" >/dev/null
        run brig sandbox exec --image "link-$name" -- /bin/sh -c 'echo it-has-run'
        status_is 77
        [[ "$output" == *SANDBOX_FAILED* ]]
        [[ "$output" != *it-has-run* ]] # no letters that an id may have
    done
}

@test "a kept sandbox keeps what was written over the image" {
    id=$(brig sandbox create --image bb --json | jq -r .sandbox_id)
    run brig sandbox exec --quiet "$id" -- /bin/sh -c 'echo installed > /bin/tool'
    status_is 0
    run brig sandbox exec --quiet "$id" -- /bin/sh -c 'cat /bin/tool'
    [ "$output" = installed ]
    run brig sandbox destroy "$id"
    status_is 0
}

@test "a changed store is noticed before anything runs" {
    layer=$(find "$BRIG_HOME/images/content/layers" -mindepth 1 -maxdepth 1 -type d | head -n 1)
    mv "$layer" "$layer.moved"
    cp -a "$layer.moved" "$layer"
    run brig sandbox exec --image bb -- /bin/sh -c 'echo it-has-run'
    status_is 77
    [[ "$output" == *PREFLIGHT_IMAGE_DIGEST* ]]
    [[ "$output" != *it-has-run* ]] # no letters that an id may have
}

@test "an image that is not here is refused with a way to get it" {
    run brig sandbox exec --image nosuch -- true
    status_is 77
    [[ "$output" == *"brig image pull nosuch"* ]]
}
