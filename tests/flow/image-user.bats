#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Who a command is inside: USER of the image, --user, the policy; never root.

load common
load image-kit

receipts() { brig receipts export | jq -rs "$1"; }

setup() {
    common_setup
    need jq tar gzip busybox
}

# image USER: an image called app that says so, with a passwd and a group file of its own.
image() {
    rm -rf tree app app.tar
    mkdir -p tree/bin tree/etc tree/home/node
    cp "$(command -v busybox)" tree/bin/busybox
    for name in sh id touch ls; do ln -s busybox tree/bin/$name; done
    printf '%s\n' 'root:x:0:0:root:/root:/bin/sh' 'node:x:1500:1501:Node:/home/node:/bin/sh' \
        'svc:x:1600:0::/:/bin/sh' >tree/etc/passwd
    printf '%s\n' root:x:0: nodes:x:1501: wheel:x:10: >tree/etc/group
    [ -z "${2-}" ] || "$2"
    layer_tar tree app.tar
    layout_new app
    layout_add app app.tar
    IMAGE_USER=$1 layout_finish app app >/dev/null
    brig image import app --name app >/dev/null
}

who() { run --separate-stderr brig sandbox exec --quiet --image app "$@" -- /bin/sh -c 'echo $(id -u):$(id -g) $USER $HOME' </dev/null; }

@test "USER of the image is who its commands are" {
    for row in "node|1500:1501 node /home/node" "1500|1500:1501 node /home/node" "node:wheel|1500:10 node /home/node" \
        "1500:77|1500:77 node /home/node" "4321|4321:4321 sandbox /home/sandbox" "4321:wheel|4321:10 sandbox /home/sandbox"; do
        image "${row%%|*}"
        who
        status_is 0
        [ "$output" = "${row#*|}" ]
    done
}

@test "root of an image, said or not, is the sandbox's own user, and group 0 is never inside" {
    for user in "" root 0 0:0 root:wheel; do
        image "$user"
        who
        status_is 0
        [ "$output" = "1000:1000 sandbox /home/sandbox" ]
    done
    image svc
    who
    [ "$output" = "1600:1000 svc /home/sandbox" ]
}

@test "it owns its home and the image's files" {
    image node
    run brig sandbox exec --quiet --image app -- /bin/sh -c 'touch ~/new /bin/new && ls -ln ~/new /bin/sh' </dev/null
    status_is 0
    [ "$(awk '{print $3 ":" $4}' <<<"$output" | sort -u)" = 1500:1501 ]
}

@test "--user is asked first, and is in the receipt" {
    image node
    who --user 9
    [ "$output" = "9:9 sandbox /home/sandbox" ]
    [ "$(receipts 'last | [.inside_uid, .inside_gid] | @csv')" = 9,9 ]
    who --user 9:nodes
    [ "$output" = "9:1501 sandbox /home/sandbox" ]
    who --user node
    [ "$output" = "1500:1501 node /home/node" ]
    hash=$(receipts 'last | .request_hash')
    spec=$(receipts 'last | .posture.sandbox_spec_hash')
    who
    [ "$(receipts 'last | .request_hash')" != "$hash" ]
    [ "$(receipts 'last | .posture.sandbox_spec_hash')" = "$spec" ]
    run brig sandbox exec --quiet --user 12:13 -- id
    says "uid=12(sandbox) gid=13(sandbox)"
    run brig sandbox exec --quiet -- true
    [ "$(receipts 'last | has("inside_uid")')" = false ]
}

refused() { # TEXT OPTION...
    local text=$1
    shift
    run brig sandbox exec --image app "$@" -- /bin/id
    status_is 77
    says PLAN_INVALID
    says "$text"
    [ "$(receipts 'last | .kind')" = denial ]
}

@test "who is not there, root and its group are refused" {
    image nosuch
    refused 'user "nosuch" (USER of the image): nobody in /etc/passwd is called that'
    who --user 5
    [ "$output" = "5:5 sandbox /home/sandbox" ]
    refused 'group "nosuch" (--user): no group in /etc/group is called that' --user 5:nosuch
    refused 'nothing runs as root' --user root
    refused 'nothing runs as root' --user 0
    refused 'nothing runs as root' --user 5:0
    refused 'nothing runs as root' --user 5:root
    refused 'user "007"' --user 007
    refused 'user "4294967295"' --user 4294967295
    for text in : :5 5: 5:6:7 ''; do
        run brig sandbox exec --image app --user "$text" -- /bin/id
        status_is 64
    done
}

@test "a policy's user comes before the image's, and --user does not get around it" {
    image node
    printf 'version: 1\ndefault: allow\nprocess: {run_as_user: 1700, run_as_group: 1701}\n' >policy.yaml
    who --policy policy.yaml
    status_is 0
    [ "${output%% *}" = 1700:1701 ]
    who --policy policy.yaml --user 1700:1701
    [ "${output%% *}" = 1700:1701 ]
    refused "the policy's process section names another" --policy policy.yaml --user 5
}

link_away() { ln -sf /etc/passwd tree/etc/passwd; }
fill_up() { head -c 2000000 /dev/zero >tree/etc/passwd; }

@test "a passwd file that is a link or a giant names nobody; a number still does" {
    for how in link_away fill_up; do
        image node "$how"
        refused 'user "node" (USER of the image)'
        who --user 1500
        status_is 0
        [ "$output" = "1500:1500 sandbox /home/sandbox" ]
    done
}

@test "a kept sandbox stays who it was made as, and says so" {
    image node
    id=$(brig sandbox create --image app --json | jq -r .sandbox_id)
    run brig sandbox exec --quiet "$id" -- /bin/sh -c 'echo $(id -u):$(id -g) $HOME'
    [ "$output" = "1500:1501 /home/node" ]
    run brig sandbox show "$id" --json
    json_is .user 1500:1501
    run brig sandbox explain "$id"
    says "node (1500:1501), from USER of the image"
    run brig sandbox exec --user 5 "$id" -- /bin/id
    status_is 64
    says "belongs to the sandbox"
    brig sandbox destroy "$id" >/dev/null
    id=$(brig sandbox create --image app --user 5 --json | jq -r .sandbox_id)
    run brig sandbox explain "$id" --json
    json_is .user.uid 5
    json_is .user.origin --user
    json_is .drift false
    brig sandbox destroy "$id" >/dev/null
}
