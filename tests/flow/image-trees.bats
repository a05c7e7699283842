# SPDX-License-Identifier: Apache-2.0
# Folders of a sandbox as one OCI layer, and back; tests/flow/trees.c calls the functions.

load common
load image-kit

setup() {
    common_setup
    need jq tar python3
    # The program `image` is looked for beside whoever starts it.
    mkdir "$WORK/programs"
    cp "$BRIG_BUILD/tests/flow/trees" "$BRIG_BUILD/src/cmd/image/image" "$WORK/programs/"
    mkdir -p "$WORK/state" "$WORK/a" "$WORK/b" "$WORK/x" "$WORK/y"
    chmod 755 "$WORK"
}

trees() {
    local verb=$1
    shift
    "$WORK/programs/trees" "$verb" "$WORK/state" "$@"
}

# mine PATH…: what a sandbox makes belongs to its user.
mine() {
    if is_root; then chown -hR 1879049192:1879049192 "$@"; fi
}

# as_sandbox CMD…: as the user whose files they are.
as_sandbox() {
    if is_root; then
        setpriv --reuid=1879049192 --regid=1879049192 --clear-groups "$@"
    else
        "$@"
    fi
}

# attr FILE NAME [VALUE]: prints a user attribute, or sets it.
attr() {
    python3 -c '
import os, sys
if len(sys.argv) > 3: os.setxattr(sys.argv[1], "user." + sys.argv[2], sys.argv[3].encode())
else: print(os.getxattr(sys.argv[1], "user." + sys.argv[2]).decode())' "$@"
}

# layer_of FILE: the layer in it, as a tar on standard output.
layer_of() {
    mkdir -p "$WORK/layout"
    tar -C "$WORK/layout" -xf "$1"
    local manifest layer
    manifest=$(jq -r '.manifests[0].digest' "$WORK/layout/index.json")
    layer=$(jq -r '.layers[0].digest' "$WORK/layout/blobs/sha256/${manifest#sha256:}")
    cat "$WORK/layout/blobs/sha256/${layer#sha256:}"
}

make_tree() {
    mkdir -p "$1/d/deep"
    echo one >"$1/d/one"
    echo closed >"$1/d/closed"
    ln "$1/d/one" "$1/d/two"
    ln -s ../../outside "$1/link"
    touch -d @1700000001.5 "$1/d/one"
    mkdir "$1/d/shut"
    echo in >"$1/d/shut/in"
    chmod 750 "$1/d/deep"
    mine "$1"
    as_sandbox chmod 000 "$1/d/closed" "$1/d/shut"
}

teardown() {
    chmod -R u+rwX "$WORK" 2>/dev/null || true
}

@test "trees come back as they were, whatever is closed to their owner" {
    make_tree a
    echo tmp >b/file
    mine b x y
    run -0 trees pack out.tar home/user="$WORK/a" tmp="$WORK/b"
    json_is .dropped 0
    json_is .specials 0
    packed=$output
    run -0 trees unpack out.tar home/user="$WORK/x" tmp="$WORK/y"
    json_is .notes.a 1
    json_is .notes.b 2
    json_is .image_digest "$(jq -r .image_digest <<<"$packed")"
    json_is .diff_id "$(jq -r .diff_id <<<"$packed")"
    [ "$(stat -c %a x/d/closed)" = 0 ]
    [ "$(as_sandbox stat -c %a x/d/shut)" = 0 ]
    [ "$(stat -c %a x/d/deep)" = 750 ]
    [ "$(stat -c %.9Y x/d/one)" = 1700000001.500000000 ]
    [ "$(readlink x/link)" = ../../outside ]
    [ x/d/one -ef x/d/two ]
    [ "$(cat y/file)" = tmp ]
    # The hash of a folder says the same of both, and changes with any of it.
    run -0 trees hash a
    before=$(jq -r .digest <<<"$output")
    json_is .entries 9
    run -0 trees hash x
    json_is .digest "$before"
    as_sandbox chmod 600 x/d/closed
    [ "$(as_sandbox cat x/d/closed)" = closed ]
    run -0 trees hash x
    [ "$(jq -r .digest <<<"$output")" != "$before" ]
}

@test "the same trees are the same bytes, wherever they lie" {
    for tree in a x; do
        mkdir -p "$tree/d/e"
        echo one >"$tree/d/one"
        ln "$tree/d/one" "$tree/d/e/two"
        ln -s one "$tree/link"
        mine "$tree"
        find "$tree" -exec touch -h -d @1700000000 {} +
    done
    run -0 trees pack one.tar home="$WORK/a"
    run -0 trees pack two.tar home="$WORK/x"
    cmp one.tar two.tar
    [ "$(stat -c %a one.tar)" = 600 ]
    layer_of one.tar >layer.tar
    [ "$(tar -tf layer.tar | LC_ALL=C sort -c 2>&1)" = "" ]
    not grep -v ' 0/0 ' <(tar --numeric-owner -tvf layer.tar)
}

@test "an archive is an image that other commands know" {
    mkdir -p a/bin
    cp "$(command -v busybox)" a/bin/busybox
    ln -s busybox a/bin/echo
    mine a
    run -0 trees pack out.tar ="$WORK/a"
    run -0 brig image import out.tar --name packed --json
    json_is '.layers | length' 1
    run -0 brig sandbox exec --quiet --image packed -- /bin/echo works
    [ "$output" = works ]
}

@test "whiteouts and hidden folders of an overlay travel" {
    mkdir a/hides
    echo new >a/hides/new
    mine a x
    as_sandbox mknod a/gone c 0 0 2>/dev/null || mknod a/gone c 0 0
    attr a/hides overlay.opaque y
    attr a/hides overlay.origin whatever
    attr a/hides/new kept yes
    attr a/hides/new secret "ghp_0123456789abcdef"
    run -0 trees pack out.tar etc="$WORK/a"
    layer_of out.tar | tar -t >names
    grep -qx 'etc/.wh.gone' names
    grep -qx 'etc/hides/.wh..wh..opq' names
    run -0 trees unpack out.tar etc="$WORK/x"
    [ "$(stat -c %F:%t:%T x/gone)" = "character special file:0:0" ]
    [ "$(attr x/hides overlay.opaque)" = y ]
    not attr x/hides overlay.origin
    [ "$(attr x/hides/new kept)" = yes ]
    [ "$(attr x/hides/new secret)" = ghp_0123456789abcdef ]
    # What the overlay noted for itself is nothing of the contents.
    attr x/hides overlay.impure y
    find a x -exec touch -h -d @1700000000 {} +
    run -0 trees hash a
    before=$(jq -r .digest <<<"$output")
    run -0 trees hash x
    json_is .digest "$before"
    # A filtered one has only the attributes that are no secret.
    run -0 trees filter clean.tar etc="$WORK/a"
    json_is '.left_out[0].rule' attribute
    not grep -q ghp_0123456789abcdef clean.tar
}

@test "what cannot travel is left out and counted" {
    mkfifo a/pipe
    echo not >a/.wh.real
    echo yes >a/file
    mine a
    run -0 trees pack out.tar home="$WORK/a"
    json_is .specials 2
    json_is '[.left_out[] | .path + " " + .rule + " " + .action] | join(",")' \
        "home/.wh.real whiteout-name dropped,home/pipe special dropped"
    [ "$(layer_of out.tar | tar -t | tr '\n' ' ')" = "home/ home/file " ]
}

@test "holes stay holes" {
    truncate -s 2G a/sparse
    printf 'middle' | dd of=a/sparse bs=1 seek=1G conv=notrunc status=none
    mine a x
    run -0 trees pack out.tar home="$WORK/a"
    json_is .bytes 2147483648
    [ "$(stat -c %s out.tar)" -lt 4000000 ]
    run -0 trees unpack out.tar home="$WORK/x"
    [ "$(stat -c %s x/sparse)" = 2147483648 ]
    [ "$(stat -c %b x/sparse)" -lt 4096 ]
    cmp a/sparse x/sparse
}

@test "a place inside of another hides what lies there" {
    mkdir a/tmp
    echo below >a/tmp/below
    echo root >a/root
    echo above >b/above
    mine a b x y
    run -0 trees pack out.tar ="$WORK/a" tmp="$WORK/b"
    [ "$(layer_of out.tar | tar -t | tr '\n' ' ')" = "root tmp/ tmp/above " ]
    run -0 trees unpack out.tar ="$WORK/x" tmp="$WORK/y"
    [ "$(cat y/above)" = above ]
    [ "$(cat x/root)" = root ]
    [ ! -e x/tmp ]
}

@test "the filter leaves credentials out and says so, never what they were" {
    mkdir -p a/.aws a/.ssh a/app
    canary=CANARY7f3a
    echo "[default] $canary" >a/.aws/credentials
    echo "$canary" >a/.ssh/id_ed25519
    echo "ssh-ed25519 AAAAC3Nza me" >a/.ssh/id_ed25519.pub
    echo "{\"password\": \"$canary\", \"port\": 1}" >a/app/config.json
    printf 'A_TOKEN=%s\nPORT=1\n' "$canary" >a/app/.env
    printf 'x\0ghp_%sabcdefghijkl' "$canary" >a/app/state.db
    ln a/.ssh/id_ed25519 a/app/another-name
    echo kept >a/app/notes.txt
    chmod 640 a/app/config.json
    mine a x
    as_sandbox chmod 000 a/app/.env
    run -0 trees filter out.tar home/user="$WORK/a"
    not grep -q "$canary" out.tar
    [[ $output != *"$canary"* ]]
    json_is .dropped 4
    json_is .replaced 2
    json_is '.left_out[] | select(.path == "home/user/app/config.json") | .rule + .action + (.count | tostring)' fieldreplaced1
    json_is '.left_out[] | select(.path == "home/user/app/another-name") | .rule' file-name
    run -0 trees unpack out.tar home/user="$WORK/x"
    [ "$(jq -r .port x/app/config.json)" = 1 ]
    [ "$(jq -r .password x/app/config.json)" = "[STRIPPED_BY_MIGRATION]" ]
    [ "$(stat -c %a x/app/config.json)" = 640 ]
    [ "$(as_sandbox cat x/app/notes.txt)" = kept ]
    [ "$(cat x/.ssh/id_ed25519.pub)" = "ssh-ed25519 AAAAC3Nza me" ]
    [ ! -e x/.ssh/id_ed25519 ]
    [ ! -e x/app/another-name ]
    [ ! -e x/app/state.db ]
    # Without the filter everything is there.
    run -0 trees pack all.tar home/user="$WORK/a"
    grep -q "$canary" all.tar
}

@test "the filter looks through what is large, and drops what it cannot look at" {
    head -c 9000000 /dev/zero | tr '\0' a >a/text
    head -c 9000000 /dev/urandom >a/random
    cp a/random a/secret
    printf ' ghp_0123456789abcdefghij ' | dd of=a/secret bs=1 seek=5000000 conv=notrunc status=none
    { echo '{"a": "'; cat a/text; echo '"}'; } >a/large.json
    mine a
    run -0 trees filter out.tar home="$WORK/a"
    json_is '[.left_out[] | .path + " " + .rule] | join(",")' "home/large.json too-large,home/secret token"
    [ "$(layer_of out.tar | tar -t | tr '\n' ' ')" = "home/ home/random home/text " ]
}

@test "an archive that was changed is refused" {
    echo one >a/one
    mine a x
    run -0 trees pack out.tar home="$WORK/a"
    layer_of out.tar >/dev/null
    for file in layout/blobs/sha256/*; do
        if tar -tf "$file" >/dev/null 2>&1; then layer=$file; fi
    done
    printf X | dd of="$layer" bs=1 seek=700 conv=notrunc status=none
    tar -C layout -cf bad.tar oci-layout index.json blobs
    run -1 trees unpack bad.tar home="$WORK/x"
    [[ $output == integrity:* ]]
    [ -z "$(ls -A x)" ]
    head -c 3000 out.tar >short.tar
    run -1 trees unpack short.tar home="$WORK/x"
    [[ $output == integrity:* ]]
    [ -z "$(ls -A x)" ]
    run -1 trees unpack /dev/null home="$WORK/x"
    [ -z "$(ls -A x)" ]
}

@test "what belongs to none of the places is refused" {
    echo one >a/one
    mine a x
    run -0 trees pack out.tar home/user="$WORK/a"
    run -1 trees unpack out.tar home/other="$WORK/x"
    [[ $output == *'entry "home/user": belongs to none of the places'* ]]
    run -1 trees unpack out.tar home/user/one="$WORK/x"
    [[ $output == *'belongs to none of the places'* || $output == *'in place of the root'* ]]
    run -0 trees unpack out.tar home="$WORK/x"
    [ "$(cat x/user/one)" = one ]
}

# hostile NAME: packs the layer NAME.tar into an image of its own.
hostile() {
    layout_new "$1"
    layout_add "$1" "$1.tar" none
    layout_finish "$1" >/dev/null
    tar -C "$1" -cf "$1.oci" oci-layout index.json blobs
}

@test "a layer that leads out of its place is refused" {
    mkdir in
    echo x >in/file
    mine x
    tar -cf dots.tar --transform 's,^in/file,home/../../out,' -P in/file
    tar -cf linked.tar --transform 's,^in/file,tmp/file,' in/file
    ln in/file in/second
    tar -cf across.tar --transform 's,^in/file,home/file,;s,^in/second,tmp/second,' in/file in/second
    for name in dots across; do hostile "$name"; done
    run -1 trees unpack dots.oci home="$WORK/x" tmp="$WORK/y"
    [[ $output == *'".." in the path'* ]]
    run -1 trees unpack across.oci home="$WORK/x" tmp="$WORK/y"
    [[ $output == *"a hard link from one place to another"* ]]
    [ ! -e "$WORK/out" ]
}

@test "an image of two layers is not what was packed" {
    busybox_layout two-layers
    tar -C two-layers -cf two.oci oci-layout index.json blobs
    mine x
    run -1 trees unpack two.oci ="$WORK/x"
    [[ $output == *"an image of 2 layers"* ]]
}

@test "places are plain and different" {
    mine a b
    run -1 trees pack out.tar home="$WORK/a" home="$WORK/b"
    [[ $output == *'place "home" is there twice'* ]]
    run -1 trees pack out.tar /home="$WORK/a"
    [[ $output == *"an absolute path"* ]]
    run -1 trees pack out.tar a/../b="$WORK/a"
    [ ! -e out.tar ]
    [ -z "$(ls state/images/content/temp)" ]
}

@test "the notes can be read without unpacking anything" {
    echo one >a/one
    mine a
    run -0 trees pack out.tar home="$WORK/a"
    run -0 trees unpack out.tar
    json_is .notes.b 2
    json_is .entries 0
    # Nothing of the archive stays in the store.
    [ -z "$(find state/images/content -type f)" ]
}

@test "a name that is no text travels" {
    name=$(printf 'caf\351')
    echo x >"a/$name"
    echo y >"a/käse"
    mine a x
    run -0 trees pack out.tar home="$WORK/a"
    run -0 trees unpack out.tar home="$WORK/x"
    [ "$(as_sandbox cat "x/$name")" = x ]
    [ "$(as_sandbox cat "x/käse")" = y ]
}
