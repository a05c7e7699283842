#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Snapshots as files, and snapshots of somebody else: what travels, what is left out, what is refused.

load common
load sandbox
load kept
load image-kit

setup() {
    common_setup
    need jq tar
}

teardown() {
    local each
    destroy_all
    for each in $("$BRIG" snapshot list --json | jq -r '.snapshots[].snapshot_id'); do
        "$BRIG" snapshot remove "$each" 2>/dev/null || true
    done
}

# A sandbox with something to keep and something to leave out; its snapshot is "mine".
with_secrets() {
    make --name work
    in_it -- sh -c '
        echo data >/tmp/data; echo result >/sandbox/output/result
        mkdir -p ~/.ssh ~/project; echo key >~/.ssh/id_ed25519; echo text >~/project/file
        printf "{\"api_key\": \"%s\", \"kept\": 1}" topsecretvalue >~/project/config.json
        echo hidden >~/project/shut; chmod 000 ~/project/shut'
    brig sandbox snapshot "$id" --name mine >/dev/null
}

snapshot_is_clean() { # SANDBOX
    brig sandbox exec "$1" --quiet -- sh -c '
        cat /tmp/data /sandbox/output/result ~/project/file
        chmod 600 ~/project/shut && cat ~/project/shut
        grep -q "\"kept\": *1" ~/project/config.json && echo kept
        ! grep -rq topsecretvalue /tmp /home /sandbox/output && [ ! -e ~/.ssh/id_ed25519 ] && echo clean' |
        diff - <(printf 'data\nresult\ntext\nhidden\nkept\nclean\n')
}

@test "a snapshot leaves without credentials, says so, and comes back" {
    with_secrets
    run -0 brig snapshot export mine --output out.tar
    [[ $output == *"dropped  home/sandbox/.ssh/id_ed25519 (file-name)"* ]]
    [[ $output == *"replaced home/sandbox/project/config.json (field)"* ]]
    [[ $output != *topsecretvalue* ]]
    receipt_is .action snapshot-export
    receipt_is .outcome.snapshot.filtered true
    receipt_is .outcome.snapshot.dropped 1
    not grep -q topsecretvalue <(tar -xOf out.tar)
    brig snapshot remove mine
    run -0 brig snapshot import out.tar --name back --json
    brig snapshot show back | jq -e '.live and .principal != ""'
    brig sandbox fork back --name copy
    snapshot_is_clean copy
    # The same snapshot makes the same archive.
    brig sandbox snapshot work --name again >/dev/null
    brig snapshot export again --output one.tar --json | jq -r .diff_id >one
    brig snapshot export again --output two.tar --json | jq -r .diff_id >two
    cmp one two
}

@test "everything goes along only when that is said" {
    with_secrets
    run -0 brig snapshot export mine --output all.tar --everything
    [[ $output != *dropped* ]]
    receipt_is .outcome.snapshot.filtered false
    tar -xOf all.tar | grep -q topsecretvalue
}

@test "with an image, deletions travel too, and the image must be there" {
    need busybox
    busybox_layout "$WORK/layout" bb >/dev/null
    brig image import "$WORK/layout" --name bb >/dev/null
    make --image bb
    in_it -- sh -c 'rm /bin/sh; echo new >/srv/new; echo t >/tmp/t' || in_it -- /bin/busybox sh -c 'rm /bin/sh; echo new >/srv/new; echo t >/tmp/t'
    brig sandbox snapshot "$id" --name over >/dev/null
    brig snapshot export over --output over.tar
    brig snapshot import over.tar --name back
    brig sandbox fork back --name f
    run -0 brig sandbox exec f --quiet -- /bin/busybox sh -c 'cat /srv/new /tmp/t; test ! -e /bin/sh'
    [ "$output" = $'new\nt' ]
    brig sandbox destroy f "$id"
    brig snapshot remove over back
    brig image remove bb
    run ! --separate-stderr brig snapshot import over.tar
    [[ $stderr == *"no image"* ]]
}

@test "a snapshot of somebody else is passed on without credentials" {
    with_secrets
    snap=$(brig snapshot show mine | jq -r .snapshot_id)
    record=$BRIG_HOME/snapshots/$snap/record
    # Control: for whoever made it nothing is left out.
    brig sandbox fork mine --name own
    brig sandbox exec own --quiet -- sh -c 'cat ~/.ssh/id_ed25519' | grep -q key
    jq -c '.principal = "uid:4242"' "$record" >record.new
    cat record.new >"$record"
    brig sandbox fork mine --name other
    snapshot_is_clean other
    brig sandbox restore own mine
    snapshot_is_clean own
    [ "$(brig receipts list --json | jq '[.receipts[] | select(.action == "snapshot-export" and .kind == "outcome")] | length')" -eq 2 ]
    brig sandbox destroy other own work
    brig snapshot remove mine
    [ -z "$(find "$BRIG_HOME/snapshots" -mindepth 1 ! -name '*.lock')" ]
}

@test "what is no snapshot, was changed, or claims other layers is refused and leaves nothing" {
    with_secrets
    brig snapshot export mine --output good.tar >/dev/null
    run -66 brig snapshot import missing.tar
    echo text >text
    run ! brig snapshot import text
    head -c 3000 good.tar >cut.tar
    run ! brig snapshot import cut.tar
    sed 's/result/resuLt/' good.tar >changed.tar
    run ! brig snapshot import changed.tar
    mkdir layout
    tar -C layout -xf good.tar
    manifest=$(jq -r '.manifests[0].digest' layout/index.json)
    rename() { # the list of layers becomes $1, all digests in order
        local file hex
        jq -c --arg l "$1" '.annotations["dev.brig.snapshot.layers"] = $l' "layout/blobs/sha256/${manifest#sha256:}" >m
        hex=$(sha256sum <m | cut -d' ' -f1)
        rm -rf new && cp -r layout new
        cp m "new/blobs/sha256/$hex"
        jq -c --arg d "sha256:$hex" --argjson s "$(stat -c %s m)" '.manifests[0].digest = $d | .manifests[0].size = $s' \
            layout/index.json >new/index.json
        tar -C new -cf renamed.tar oci-layout index.json blobs
    }
    rename home,output,tmp
    brig snapshot import renamed.tar --name control
    for layers in "" ../../etc home,home etc home home,output,tmp,boxes; do
        rename "$layers"
        run ! brig snapshot import renamed.tar --name bad
    done
    run -66 brig snapshot show bad
    brig snapshot remove control mine
    brig sandbox destroy work
    [ -z "$(find "$BRIG_HOME/snapshots" -mindepth 1 ! -name '*.lock')" ]
    each_run_ended
}

@test "a kill while it travels leaves nothing" {
    [ "$(brig version --json | jq -r .crash_points)" = true ] || skip "built without crash points"
    with_secrets
    BRIG_CRASH_AT="snapshot merged for export" run brig snapshot export mine --output killed.tar
    [ "$status" -eq 137 ]
    [ ! -e killed.tar ]
    brig snapshot export mine --output good.tar >/dev/null
    BRIG_CRASH_AT="snapshot unpacked" run brig snapshot import good.tar --name half
    [ "$status" -eq 137 ]
    run -66 brig snapshot show half
    brig snapshot tend
    [ "$(find "$BRIG_HOME/snapshots" -mindepth 1 -maxdepth 1 -type d | wc -l)" -eq 1 ]
    brig sandbox destroy work
    no_sandbox_left
    each_run_ended
}
