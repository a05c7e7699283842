#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Images: into the store and out of it again, and what becomes of a store somebody changed.

load common
load image-kit

setup() {
    common_setup
    need jq tar gzip busybox
}

content() { echo "$BRIG_HOME/images/content"; }

layers_of() { # NAME: the folders of its layers, lowest first
    brig image show "$1" --json | jq -r '.layers[].diff_id' | sed "s|^sha256:|$(content)/layers/|"
}

# What is seen through the layers, as a sandbox would see it; as root inside the user namespace.
through() {
    local lower user
    mkdir -p "$WORK/m"
    lower=$(layers_of "$1" | tac | paste -sd:)
    user=$(stat -c %u "$(content)")
    shift
    if is_root; then
        unshare -m sh -c "mount -t overlay -o ro,userxattr,lowerdir=$lower o $WORK/m && cd $WORK/m && $*"
    else
        unshare -Urm sh -c "mount -t overlay -o ro,userxattr,lowerdir=$lower o $WORK/m && cd $WORK/m && $*"
    fi
}

@test "a layout directory is imported under its name" {
    digest=$(busybox_layout "$WORK/layout" example.org/team/bb:1)
    run brig image import "$WORK/layout" --json
    status_is 0
    json_is .image_digest "$digest"
    json_is '.names[0]' example.org/team/bb:1
    json_is '.env[1]' GREETING=hello
    json_is .workdir /srv
    json_is '.command[0]' /bin/sh
    json_is '.layers | length' 2
    run brig image list --json
    json_is '.images | length' 1
    run brig image verify example.org/team/bb:1
    status_is 0
    [ -z "$(ls -A "$(content)/temp")" ]
}

@test "everything unpacked belongs to the user of the sandboxes" {
    busybox_layout "$WORK/layout" bb
    brig image import "$WORK/layout"
    if is_root; then want=$((0x70000000 + 1000)); else want=$(id -u); fi
    [ "$(find "$(content)" ! -uid "$want" | wc -l)" -eq 0 ]
    if is_root; then [ "$(stat -c %u "$BRIG_HOME/images/records")" -eq 0 ]; fi
}

@test "whiteouts and opaque folders hide what lies below" {
    need unshare
    busybox_layout "$WORK/layout" bb
    brig image import "$WORK/layout"
    run through bb 'test ! -e etc/gone && test ! -e etc/old/hidden && cat etc/old/new etc/kept srv/two'
    status_is 0
    says above
    says one
    says two
}

@test "tars: plain, gzip, zstd, and layers compressed in every way" {
    need zstd
    for how in gzip zstd none; do
        rm -rf "$WORK/layout"
        digest=$(busybox_layout "$WORK/layout" "bb-$how:1" "$how")
        tar -C "$WORK/layout" -cf "$WORK/$how.tar" .
        run brig image import "$WORK/$how.tar"
        status_is 0
        says "$digest"
    done
    gzip -k "$WORK/gzip.tar"
    zstd -q "$WORK/gzip.tar" -o "$WORK/gzip.tar.zst"
    for file in gzip.tar.gz gzip.tar.zst; do
        run brig image import "$WORK/$file" --name "again/$file"
        status_is 0
    done
    # One first layer for all of them.
    [ "$(ls -d "$(content)"/layers/*.list | wc -l)" -eq 2 ]
}

@test "what docker save writes is imported, with layers that are links" {
    mkdir -p "$WORK/a/bin" "$WORK/save/one" "$WORK/save/two"
    cp "$(command -v busybox)" "$WORK/a/bin/"
    layer_tar "$WORK/a" "$WORK/save/one/layer.tar"
    ln -s ../one/layer.tar "$WORK/save/two/layer.tar"
    id=sha256:$(sha256sum <"$WORK/save/one/layer.tar" | cut -d' ' -f1)
    jq -nc --arg id "$id" --arg arch "$(host_architecture)" \
        '{architecture: $arch, os: "linux", config: {}, rootfs: {type: "layers", diff_ids: [$id, $id]}}' \
        >"$WORK/save/c.json"
    echo '[{"Config":"c.json","RepoTags":["saved:3"],"Layers":["one/layer.tar","two/layer.tar"]}]' \
        >"$WORK/save/manifest.json"
    tar -C "$WORK/save" -cf "$WORK/save.tar" .
    run brig image import "$WORK/save.tar" --json
    status_is 0
    json_is '.names[0]' docker.io/library/saved:3
    json_is '.layers | length' 2
    first=$output
    run brig image import "$WORK/save.tar" --json
    [ "$(jq -r .image_digest <<<"$first")" = "$(jq -r .image_digest <<<"$output")" ]
}

@test "an export is the image that came, in an empty store as well" {
    digest=$(busybox_layout "$WORK/layout" example.org/bb:1)
    brig image import "$WORK/layout"
    run brig image export example.org/bb:1 --output "$WORK/out.tar"
    status_is 0
    run brig image export example.org/bb:1 --output "$WORK/again.tar"
    cmp "$WORK/out.tar" "$WORK/again.tar"
    export BRIG_HOME=$BATS_TEST_TMPDIR/other
    run brig image import "$WORK/out.tar" --json
    status_is 0
    json_is .image_digest "$digest"
    json_is '.names[0]' example.org/bb:1
}

@test "images are found by name, by digest and by its beginning" {
    digest=$(busybox_layout "$WORK/layout" bb)
    brig image import "$WORK/layout"
    for name in bb docker.io/library/bb bb:latest "$digest" "${digest:0:19}" "${digest:7:12}"; do
        run brig image show "$name" --json
        status_is 0
        json_is .image_digest "$digest"
    done
    run brig image show nothing
    status_is 66
    says 'brig image pull nothing'
    run brig image show 'No Name'
    status_is 64
    run brig image show ../../etc
    status_is 64
}

@test "removing the last name frees the space, shared layers stay" {
    busybox_layout "$WORK/layout" one:1
    brig image import "$WORK/layout"
    brig image import "$WORK/layout" --name two:1
    mkdir "$WORK/x" && echo x >"$WORK/x/x"
    run brig image remove one:1 --json
    status_is 0
    run brig image verify two:1
    status_is 0
    run brig image remove two:1 --json
    json_is .freed true
    [ "$(find "$(content)" -mindepth 2 -type f | wc -l)" -eq 0 ]
    [ -z "$(ls "$BRIG_HOME/images/records")" ]
    run brig image list --json
    json_is '.images | length' 0
}

@test "removing by digest takes all names" {
    digest=$(busybox_layout "$WORK/layout" one:1)
    brig image import "$WORK/layout"
    brig image import "$WORK/layout" --name two:1
    run brig image remove "$digest"
    status_is 0
    run brig image list --json
    json_is '.images | length' 0
}

@test "a changed file deep in a layer is named by verify" {
    busybox_layout "$WORK/layout" bb
    brig image import "$WORK/layout"
    layer=$(layers_of bb | head -n 1)
    printf x | dd of="$layer/etc/kept" conv=notrunc 2>/dev/null
    run brig image verify bb
    status_is 76
    says ': /etc/kept: '
}

@test "entries added to or taken from a layer are named by verify" {
    for change in 'echo >$layer/etc/added' 'rm $layer/etc/kept' 'chmod 777 $layer/etc/kept'; do
        export BRIG_HOME=$BATS_TEST_TMPDIR/state-$RANDOM
        rm -rf "$WORK/layout"
        busybox_layout "$WORK/layout" bb
        brig image import "$WORK/layout"
        layer=$(layers_of bb | head -n 1)
        eval "$change"
        run brig image verify bb
        status_is 76
    done
}

@test "a changed layer is not adopted by another image" {
    busybox_layout "$WORK/layout" one:1
    brig image import "$WORK/layout"
    layer=$(layers_of one:1 | head -n 1)
    echo >"$layer/etc/added"
    run brig image import "$WORK/layout" --name two:1
    status_is 76
    says ': /etc: '
    brig image remove one:1
    run brig image import "$WORK/layout" --name two:1
    status_is 0
}

@test "a changed blob and a missing layer are named" {
    digest=$(busybox_layout "$WORK/layout" bb)
    brig image import "$WORK/layout"
    chmod u+w "$(content)/blobs/sha256/${digest#sha256:}"
    echo >>"$(content)/blobs/sha256/${digest#sha256:}"
    run brig image verify bb --json
    status_is 76
    json_is .error.code integrity
}

@test "wrong digests, truncated layers and missing blobs are told apart" {
    digest=$(busybox_layout "$WORK/good" bb)
    layer=$(jq -r '.layers[0].digest' "$WORK/good/blobs/sha256/${digest#sha256:}")
    cp -r "$WORK/good" "$WORK/flipped"
    printf x | dd of="$WORK/flipped/blobs/sha256/${layer#sha256:}" bs=1 seek=4000 conv=notrunc 2>/dev/null
    cp -r "$WORK/good" "$WORK/short"
    truncate -s 4000 "$WORK/short/blobs/sha256/${layer#sha256:}"
    cp -r "$WORK/good" "$WORK/long"
    echo more >>"$WORK/long/blobs/sha256/${layer#sha256:}"
    cp -r "$WORK/good" "$WORK/missing"
    rm "$WORK/missing/blobs/sha256/${layer#sha256:}"
    for how in flipped short long missing; do
        run brig image import "$WORK/$how"
        case $how in missing) status_is 66 ;; *) status_is 76 ;; esac
        tar -C "$WORK/$how" -cf "$WORK/$how.tar" .
        run brig image import "$WORK/$how.tar"
        status_is 76
    done
    run brig image list --json
    json_is '.images | length' 0
    [ -z "$(ls -A "$(content)/layers")" ]
    [ -z "$(ls -A "$(content)/temp")" ]
}

@test "a layer that unpacks to something else than the configuration says is refused" {
    mkdir -p "$WORK/a" "$WORK/b"
    echo a >"$WORK/a/a"
    echo b >"$WORK/b/b"
    layer_tar "$WORK/a" "$WORK/a.tar"
    layer_tar "$WORK/b" "$WORK/b.tar"
    layout_new "$WORK/layout"
    layout_add "$WORK/layout" "$WORK/a.tar"
    echo '["sha256:'"$(sha256sum <"$WORK/b.tar" | cut -d' ' -f1)"'"]' >"$WORK/layout.ids"
    layout_finish "$WORK/layout" x
    run brig image import "$WORK/layout"
    status_is 76
    says 'unpacked it is'
}

@test "things that are no image are refused with a sentence" {
    echo nonsense >"$WORK/text"
    run brig image import "$WORK/text" --name x
    [ "$status" -ne 0 ]
    mkdir "$WORK/empty"
    run brig image import "$WORK/empty" --name x
    status_is 66
    says 'not an OCI layout'
    run brig image import "$WORK/none" --name x
    [ "$status" -ne 0 ]
    tar -cf "$WORK/plain.tar" -C "$WORK" text
    run brig image import "$WORK/plain.tar" --name x
    status_is 64
    says 'docker save'
    busybox_layout "$WORK/layout"
    run brig image import "$WORK/layout"
    status_is 64
    says --name
    run brig image import "$WORK/layout" --name 'UPPER'
    status_is 64
    jq -c '.manifests[0].platform={os:"linux",architecture:"none"}' "$WORK/layout/index.json" >"$WORK/i"
    mv "$WORK/i" "$WORK/layout/index.json"
    run brig image import "$WORK/layout" --name x
    status_is 66
    says 'does not exist for linux/'
}

@test "a decompression bomb ends at its ceiling and leaves nothing" {
    mkdir "$WORK/bomb"
    truncate -s 400M "$WORK/bomb/zeros"
    tar --sort=name -C "$WORK/bomb" -cf "$WORK/bomb.tar" .
    layout_new "$WORK/layout"
    layout_add "$WORK/layout" "$WORK/bomb.tar" gzip
    layout_finish "$WORK/layout" x
    run brig image import "$WORK/layout"
    status_is 75
    says bomb
    [ -z "$(ls -A "$(content)/layers")" ]
    [ -z "$(ls -A "$(content)/temp")" ]
}

@test "two imports at the same time both succeed" {
    busybox_layout "$WORK/layout" x
    for i in 1 2 3 4 5 6; do
        brig image import "$WORK/layout" --name "at-once:$i" >"$WORK/$i" 2>&1 3>&- &
    done
    wait
    run brig image list --json
    json_is '.images[0].names | length' 6
    run brig image verify at-once:3
    status_is 0
    [ -z "$(ls -A "$(content)/temp")" ]
}

@test "a brig killed while it imports leaves nothing that the next one does not sweep" {
    mkdir -p "$WORK/big"
    head -c 30000000 /dev/urandom >"$WORK/big/random"
    layer_tar "$WORK/big" "$WORK/big.tar"
    layout_new "$WORK/layout"
    layout_add "$WORK/layout" "$WORK/big.tar" gzip
    layout_finish "$WORK/layout" big
    for wait in 0.01 0.05 0.1 0.2 0.3; do
        "$BRIG" image import "$WORK/layout" >/dev/null 2>&1 3>&- &
        pid=$!
        sleep "$wait"
        kill -KILL $pid 2>/dev/null || true
        wait $pid || true
        run brig image list --json
        status_is 0
    done
    # Its program has died with it and holds the lock no more.
    flock -w 2 "$BRIG_HOME/images/lock" true
    run brig image import "$WORK/layout"
    status_is 0
    run brig image verify big
    status_is 0
    [ -z "$(ls -A "$(content)/temp")" ]
    brig image remove big
    [ "$(find "$(content)" -mindepth 2 -type f | wc -l)" -eq 0 ]
}

@test "the program image is not for hands" {
    run "$BRIG_BUILD/src/cmd/image/image"
    status_is 64
    says 'started by brig'
}

@test "a kill at any point of the write path leaves a store that goes on" {
    [ "$(brig version --json | jq -r .crash_points)" = true ] || skip "built without crash points"
    busybox_layout "$WORK/layout" bb
    for at in image-blob-synced image-blob-kept image-layer-synced image-list-kept image-layer-kept \
        image-recorded image-named; do
        BRIG_CRASH_AT=$at run brig image import "$WORK/layout"
        case $status in
        70) says 'without an answer (signal 9)' ;; # it was the program image
        *) status_is 137 ;;
        esac
        run brig image list --json
        status_is 0
        # Whatever has a name is whole.
        for name in $(jq -r '.images[].names[]' <<<"$output"); do brig image verify "$name"; done
        run brig image import "$WORK/layout"
        status_is 0
        run brig image verify bb
        status_is 0
        [ -z "$(ls -A "$(content)/temp")" ]
        BRIG_CRASH_AT=image-records-dropped run brig image remove bb
        run brig image import "$WORK/layout"
        status_is 0
        run brig image remove bb --json
        json_is .freed true
        [ "$(find "$(content)" -mindepth 2 -type f | wc -l)" -eq 0 ]
    done
}

@test "a full disk is told, and costs nothing that was there" {
    is_root || skip "needs a file system of its own"
    need unshare
    busybox_layout "$WORK/layout" bb
    mkdir -p "$WORK/big" "$WORK/disk"
    head -c 6000000 /dev/urandom >"$WORK/big/random"
    layer_tar "$WORK/big" "$WORK/big.tar"
    layout_new "$WORK/large"
    layout_add "$WORK/large" "$WORK/big.tar" none
    layout_finish "$WORK/large" big
    export WORK BRIG
    run unshare -m sh -c 'mount -t tmpfs -o size=8m none $WORK/disk && export BRIG_HOME=$WORK/disk/state &&
        $BRIG image import $WORK/layout && { $BRIG image import $WORK/large; echo status $?; } &&
        $BRIG image verify bb && $BRIG image import $WORK/layout --name again && ls -A $BRIG_HOME/images/content/temp'
    says 'No space left'
    says 'status 75'
    status_is 0
    says 'is intact'
}

@test "a sandbox stands on an image, and not on a changed one" {
    digest=$(busybox_layout "$WORK/layout" bb)
    brig image import "$WORK/layout"
    run brig sandbox exec --image bb --quiet -- /bin/sh -c 'echo $GREETING; cat /etc/kept /etc/old/new; ls /etc; echo x >/srv/mine'
    status_is 0
    says hello
    says above
    [[ $output != *gone* ]]
    run brig sandbox exec --image bb --json -- /bin/true
    json_is .image_digest "$digest"
    # Nothing of the run reached the store.
    run brig image verify bb
    status_is 0
    echo >"$(layers_of bb | tail -n 1)/added"
    run brig sandbox exec --image bb --json -- /bin/true
    status_is 77
    json_is .reason_code PREFLIGHT_IMAGE_DIGEST
}
