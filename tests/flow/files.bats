#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig sandbox files and brig sandbox cp: what they do, what they keep, what they record.

load common
load files

setup() {
    common_setup
    make_box
}

teardown() {
    destroy_boxes
}

sha() {
    printf 'sha256:%s' "$(sha256sum | cut -d' ' -f1)"
}

# ---- the verbs ----

@test "write, cat, stat and ls agree, and the receipt has path and hash" {
    head -c 300000 /dev/urandom >content
    run files write /tmp/file <content
    status_is 0
    [ "$(last_receipt .action)" = files ]
    [ "$(last_receipt .outcome.files.verb)" = write ]
    [ "$(last_receipt .outcome.files.path)" = /tmp/file ]
    [ "$(last_receipt .outcome.files.bytes)" = 300000 ]
    [ "$(last_receipt .outcome.files.hash)" = "$(sha <content)" ]
    files cat /tmp/file >back
    cmp content back
    [ "$(last_receipt .outcome.files.verb)" = cat ]
    [ "$(last_receipt .outcome.files.hash)" = "$(sha <content)" ]
    run --separate-stderr files stat /tmp/file --json
    json_is .size 300000
    json_is .type file
    json_is .mode 0644
    run --separate-stderr files ls /tmp --json
    json_is '.entries[] | select(.name == "file") | .size' 300000
    json_is .truncated false
    [ "$(inside 'sha256sum </tmp/file' | cut -d' ' -f1)" = "$(sha256sum <content | cut -d' ' -f1)" ]
    brig receipts verify
}

# What a transfer writes stands beside its place until it is whole.
being_written() {
    inside 'ls -A /tmp' | grep -q '^\.brig-'
}

nothing_in_tmp() {
    [ -z "$(inside 'ls -A /tmp')" ]
}

# A watch has begun when it tells of something.
watch_tells() {
    inside 'touch /tmp/first'
    [ -s events ]
}

@test "a file that is replaced keeps its mode, and is never seen half" {
    inside 'echo old >/tmp/file; chmod 0750 /tmp/file'
    mkfifo pipe
    files write /tmp/file <pipe &
    exec 9>pipe
    echo new >&9
    eventually 10 being_written
    [ "$(inside 'cat /tmp/file')" = old ]
    echo more >&9
    exec 9>&-
    wait $!
    [ "$(inside 'cat /tmp/file; stat -c %a /tmp/file; ls -A /tmp')" = "new
more
750
file" ]
}

@test "mkdir, mv and rm" {
    run files mkdir /tmp/a/b
    status_is 66
    files mkdir -r /tmp/a/b/c
    files mkdir -r /tmp/a/b/c
    run files mkdir /tmp/a
    [ "$status" -ne 0 ]
    inside 'echo x >/tmp/x'
    files mv /tmp/x /tmp/a/y
    files mv /tmp/a/y /tmp/a/b
    [ "$(inside 'cat /tmp/a/b/y')" = x ]
    run files rm /tmp/a
    status_is 64
    says "--recursive"
    files rm /tmp/a/b/y
    files rm --recursive /tmp/a
    run files rm /tmp/a
    status_is 66
    [ -z "$(inside 'ls -A /tmp')" ]
    [ "$(last_receipt .action)" = exec ]
}

@test "rm and mv act on a link, not on what it leads to" {
    inside 'mkdir /tmp/d; echo x >/tmp/d/f; ln -s d /tmp/l; ln -s d/f /tmp/m'
    run --separate-stderr files stat /tmp/l --json
    json_is .type link
    json_is .target d
    files rm -r /tmp/l
    files mv /tmp/m /tmp/n
    [ "$(inside 'cat /tmp/d/f; readlink /tmp/n')" = "x
d/f" ]
}

@test "relative paths start in the working directory of the sandbox" {
    echo x | files write here
    [ "$(inside 'cat "$HOME/here"')" = x ]
}

@test "names may hold anything; a terminal never sees it raw" {
    inside 'touch "/tmp/$(printf "a\033[31m\nb")" "/tmp/$(printf "\377")"'
    run files ls /tmp
    status_is 0
    [[ $output != *$'\033'* ]]
    [ "${#lines[@]}" -eq 2 ]
    run --separate-stderr files ls /tmp --json
    json_is '.entries[1].name_b64' "/w=="
}

@test "what is not there, not allowed or not understood says so" {
    run files cat /tmp/missing
    status_is 66
    says "/tmp/missing: No such file or directory"
    [ "$(last_receipt .reason_code)" = FILE_FAILED ]
    run files write /usr/file </dev/null
    [ "$status" -ne 0 ]
    run files cat /tmp
    status_is 64
    says "is a directory"
    run files write /tmp </dev/null
    status_is 64
    run files frob /tmp
    status_is 64
    run files mv /tmp
    status_is 64
    run files rm -r /
    [ "$status" -ne 0 ]
    run brig sandbox files ls nosuch /tmp
    status_is 66
    run copy a b
    status_is 64
    run copy "$id:/a" "$id:/b"
    status_is 64
    run files ls "/$(printf 'x%.0s' {1..5000})"
    status_is 75
}

@test "a paused sandbox is left alone, and that is recorded" {
    brig sandbox pause "$id"
    run files ls /tmp
    status_is 77
    says "SANDBOX_PAUSED"
    [ "$(last_receipt .kind)" = denial ]
    brig sandbox resume "$id"
    files ls /tmp
}

@test "watch tells what changes, one object a line" {
    "$BRIG" sandbox files watch "$id" /tmp --timeout 10m >events &
    watcher=$!
    eventually 8 watch_tells
    inside 'echo x >/tmp/new; mv /tmp/new /tmp/other; rm /tmp/other'
    eventually 8 grep -q '"delete"' events
    kill -TERM $watcher
    wait $watcher
    [ "$(jq -r 'select(.event != "modify" and .name != "first") | .event + " " + .name' <events)" = "create new
close_write new
moved_from new
moved_to other
delete other" ]
    [ "$(last_receipt .outcome.files.verb)" = watch ]
    # It has an end of its own, too.
    run -0 files watch /tmp --timeout 300ms
    [ "$(last_receipt .outcome.files.verb)" = watch ]
}

@test "watch ends when it is interrupted, with a receipt" {
    "$BRIG" sandbox files watch "$id" /tmp >events &
    watcher=$!
    eventually 10 watch_tells
    kill -TERM $watcher
    wait $watcher
    [ "$(last_receipt '.outcome.files.verb + .kind')" = watchoutcome ]
}

# ---- copies ----

make_tree() {
    mkdir -p tree/sub/empty
    echo one >tree/one
    head -c 100000 /dev/urandom >tree/sub/two
    : >tree/sub/zero
    ln -s sub/two tree/link
    ln -s ../one tree/sub/up
    truncate -s 50M tree/sparse
    printf end | dd of=tree/sparse bs=1 seek=40000000 conv=notrunc status=none
    chmod 0640 tree/one
    chmod 0750 tree/sub
    touch -d '2001-02-03 04:05:06.789' tree/one tree/sub/two
    touch -d '2002-02-02 02:02:02' tree/sub
}

describe() {
    (cd "$1" && find . -printf '%P %y %m %s %l\n' | grep -v '^ d\|^[^ ]* d' | sort)
    (cd "$1" && find . -type d -printf '%P %m\n' | sort)
    (cd "$1" && find . -type f -exec sha256sum {} + | sort -k2)
    (cd "$1" && stat -c '%n %y' one sub sub/two)
}

@test "a tree goes in and comes back the same: modes, times, links, holes" {
    make_tree
    run --separate-stderr copy -r tree "$id:/tmp" --json
    status_is 0
    json_is .count 9
    json_is .skipped 0
    hash=$(jq -r .tree_hash <<<"$output")
    [ "$(last_receipt .outcome.files.tree_hash)" = "$hash" ]
    [ "$(last_receipt .outcome.files.verb)" = cp-in ]
    run --separate-stderr copy -r "$id:/tmp/tree" back --json
    status_is 0
    json_is .tree_hash "$hash"
    diff <(describe tree) <(describe back)
    [ "$(du -k back/sparse | cut -f1)" -lt 1000 ]
    [ "$(inside 'du -k /tmp/tree/sparse' | cut -f1)" -lt 1000 ]
}

@test "the tree hash is the one the documents describe" {
    mkdir t
    echo a >t/b
    ln -s b t/c
    chmod 755 t
    chmod 644 t/b
    run --separate-stderr copy -r t "$id:/tmp/t" --json
    json_is .tree_hash "$({
        printf 'd 755  \0'
        printf 'f 644 %s /b\0' "$(sha <t/b)"
        printf 'l 0 b /c\0'
    } | sha)"
}

@test "a copy into a folder keeps its name, else it takes the one given; - is a stream" {
    echo x >file
    mkdir dir
    copy file "$id:/tmp"
    copy file "$id:/tmp/other"
    copy - "$id:/tmp/third" <file
    copy "$id:/tmp/other" dir
    copy "$id:/tmp/third" dir/renamed
    copy "$id:/tmp/file" - >streamed
    cmp file dir/other
    cmp file dir/renamed
    cmp file streamed
    [ "$(inside 'cat /tmp/file /tmp/other /tmp/third')" = "x
x
x" ]
    run copy dir "$id:/tmp/dir"
    status_is 64
    says "--recursive"
}

@test "a folder leaves and enters as a tar stream that others read and write" {
    make_tree
    name=$(printf 'n%.0s' {1..180})
    echo long >"tree/sub/$name"
    touch -d '2003-03-03 03:03:03.5' "tree/sub/$name"
    tar -C tree --format=gnu -cf - . | copy -r - "$id:/tmp/gnu"
    tar -C tree --format=pax -cf - . | copy -r - "$id:/tmp/pax"
    for kind in gnu pax; do
        copy -r "$id:/tmp/$kind" - >"$kind.tar"
        [ "$(last_receipt .outcome.files.entries)" = 10 ]
        hash=$(last_receipt .outcome.files.tree_hash)
        mkdir "$kind"
        tar -C "$kind" -xpf "$kind.tar"
        diff <(describe tree | sed 's/\.[0-9]* +/ +/') <(describe "$kind" | sed 's/\.[0-9]* +/ +/')
        copy -r "$id:/tmp/$kind" "$kind.copy"
        [ "$(last_receipt .outcome.files.tree_hash)" = "$hash" ]
    done
    [ "$(stat -c %y "pax/sub/$name")" = "$(stat -c %y "tree/sub/$name")" ]
    copy -r "$id:/tmp/pax" - | copy -r - "$id:/tmp/again"
    [ "$(inside 'cd /tmp && diff -r pax again && echo same')" = same ]
}

@test "an archive that is none, is cut, or leads out is refused" {
    run copy -r - "$id:/tmp/t" <<<"this is no archive, however long it may be$(printf '%600s' x)"
    status_is 64
    says "no tar archive"
    mkdir t
    head -c 100000 /dev/urandom >t/file
    tar -cf whole.tar t
    head -c 50000 whole.tar >cut.tar
    run copy -r - "$id:/tmp/t" <cut.tar
    status_is 64
    says "ends too early"
    [ -z "$(inside 'find /tmp/t -type f')" ]
    tar --transform 's,^t/,../../escape/,' -cf up.tar t/file
    run copy -r - "$id:/tmp/t" <up.tar
    status_is 64
    says "lead out"
    tar -P --transform 's,^t/,/tmp/escape/,' -cf absolute.tar t/file
    run copy -r - "$id:/tmp/t" <absolute.tar
    status_is 64
    mkfifo t/fifo
    chmod 4755 t/file
    tar -cf - t | copy -r - "$id:/tmp/special" --json >said
    [ "$(jq .skipped said)" = 1 ]
    [ "$(inside 'stat -c %a /tmp/special/t/file; ls /tmp/special/t')" = "755
file" ]
    run inside 'ls /tmp/escape /escape'
    [ "$status" -ne 0 ]
}

@test "what is copied belongs to the sandbox inside, and to the caller outside" {
    echo x >file
    copy file "$id:/tmp"
    copy "$id:/tmp/file" back
    [ "$(inside 'stat -c %U /tmp/file')" = sandbox ]
    [ "$(stat -c %u back)" = "$(id -u)" ]
}

@test "an interrupted transfer leaves nothing behind and closes its receipt" {
    mkfifo pipe
    "$BRIG" sandbox files write "$id" /tmp/file <pipe 2>said &
    writer=$!
    exec 9>pipe
    echo beginning >&9
    eventually 10 being_written
    kill -INT $writer
    await "$writer"
    [ "$status" -ne 0 ]
    exec 9>&-
    [ "$(last_receipt .reason_code)" = CANCELLED ]
    eventually 5 nothing_in_tmp
}

@test "a caller that is killed leaves nothing behind inside" {
    mkfifo pipe
    "$BRIG" sandbox files write "$id" /tmp/file <pipe 2>said &
    writer=$!
    exec 9>pipe
    echo beginning >&9
    eventually 10 being_written
    kill -KILL $writer
    exec 9>&-
    eventually 5 nothing_in_tmp
}

@test "several callers at once do not disturb each other" {
    for n in 1 2 3 4 5 6 7 8; do
        head -c 200000 /dev/urandom >"file$n"
        copy "file$n" "$id:/tmp/" 2>/dev/null &
    done
    wait
    for n in 1 2 3 4 5 6 7 8; do
        files cat "/tmp/file$n" | cmp - "file$n"
    done
}
