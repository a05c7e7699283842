#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A sandbox that tries to lead the copier astray, and a folder of this machine that does.

load common
load files

setup() {
    common_setup
    echo "host secret" >secret
    chmod 0644 secret
    chmod 0755 "$WORK"
}

teardown() {
    [ -z "${swapper-}" ] || kill "$swapper" 2>/dev/null || true
    destroy_boxes
}

@test "no spelling of a path leads out of the sandbox" {
    make_box
    inside "ln -s '$WORK/secret' /tmp/absolute; ln -s '../../../../../../../..$WORK/secret' /tmp/relative
            ln -s / /tmp/root; ln -s /proc/1/root /tmp/one"
    for path in "$WORK/secret" "../../../../../../../../../..$WORK/secret" /tmp/absolute /tmp/relative \
        "/tmp/root/$WORK/secret" "/tmp/one/$WORK/secret" "/proc/self/root$WORK/secret" \
        "/proc/1/cwd/../../../$WORK/secret"; do
        run files cat "$path"
        [ "$status" -ne 0 ]
        [[ $output != *"host secret"* ]]
        run copy "$id:$path" got
        [ "$status" -ne 0 ]
        [ ! -e got ]
        run files write "$path" <secret
        [ "$(cat secret)" = "host secret" ]
        run files rm -r "$path"
        [ -e secret ]
    done
    [ "$(files cat /tmp/root/etc/passwd)" = "$(inside 'cat /etc/passwd')" ]
    [ "$(files cat ../../../../../etc/passwd)" = "$(inside 'cat /etc/passwd')" ]
}

@test "FIFOs, sockets, devices and files of the kernel are refused, and nothing waits" {
    make_box
    inside 'mkfifo /tmp/fifo; perl -MIO::Socket::UNIX -e "IO::Socket::UNIX->new(Local => q(/tmp/socket), Listen => 1)"
            ln -s fifo /tmp/link; ln -s /dev/zero /tmp/zero; : >/tmp/file'
    for path in /tmp/fifo /tmp/socket /tmp/link /tmp/zero /dev/zero /dev/tty /dev/ptmx /proc/self/mem \
        /proc/kmsg /proc/self/fd/4 /proc/1/environ; do
        for command in "files cat $path" "copy $id:$path out"; do
            run $command
            [ "$status" -ne 0 ]
            [ "$status" -ne 124 ] # its own end, not that of our patience
            [ ! -e out ]
        done
    done
    for path in /tmp/fifo /tmp/socket /dev/null; do
        run files write "$path" <secret
        status_is 64
        says "no regular file"
    done
    run copy -r "$id:/tmp" out --json
    status_is 0
    [ "$(find out ! -type d ! -type f ! -type l)" = "" ]
    [ ! -L out/zero ]
}

@test "a lease on a file makes nobody wait" {
    make_box
    need perl
    inside 'echo x >/tmp/leased'
    "$BRIG" sandbox exec --quiet "$id" -- perl -e \
        'open F, "+</tmp/leased"; fcntl(F, 1024, 1) or die $!; $SIG{IO} = "IGNORE"; open G, ">/tmp/held"; sleep 300' </dev/null &
    holder=$!
    eventually 10 inside 'test -e /tmp/held'
    run files cat /tmp/leased
    [ "$status" -ne 124 ] # the kernel would have it wait for 45 s, longer than we do
    kill "$holder"
}

@test "links that lead out of a copy are left out, and said to be" {
    make_box
    inside "mkdir -p /tmp/t/a/b; cd /tmp/t; echo x >x
            ln -s '$WORK/secret' absolute; ln -s ../.. out; ln -s a/b/c/../../../.. through
            ln -s ../.. a/b/c; ln -s ../../../up a/b/up; ln -s x in; ln -s ../../x a/b/in"
    run copy -r "$id:/tmp/t" t
    status_is 0
    says "4 left out"
    [ "$(find t -type l -printf '%P ' | tr ' ' '\n' | sort | xargs)" = "a/b/c a/b/in in" ]
    find t -type l -exec realpath {} + | while read -r place; do
        [[ $place == "$WORK/t"* ]]
    done
    [ "$(last_receipt .outcome.files.skipped)" = 4 ]
}

@test "a copy out replaces links of the destination and never goes through them" {
    make_box
    mkdir victim dst dst/t
    echo mine >victim/file
    ln -s ../victim/file dst/file
    ln -s ../../victim dst/t/sub
    inside 'mkdir -p /tmp/t/sub; echo theirs >/tmp/t/sub/file; echo theirs >/tmp/file'
    copy "$id:/tmp/file" dst/file
    [ ! -L dst/file ]
    [ "$(cat dst/file)" = theirs ]
    run copy -r "$id:/tmp/t" dst
    [ "$status" -ne 0 ]
    [ "$(cat victim/file)" = mine ]
    [ "$(ls victim)" = file ]
}

@test "a copy in takes links as links" {
    make_box
    mkdir src
    ln -s ../secret src/link
    ln -s .. src/up
    mkfifo src/fifo
    copy -r src "$id:/tmp" --json >said
    [ "$(jq .skipped said)" = 1 ]
    [ "$(inside 'readlink /tmp/src/link /tmp/src/up')" = "../secret
.." ]
    run inside 'cat /tmp/src/link'
    [ "$status" -ne 0 ]
}

@test "set-id bits are carried over in neither direction" {
    mkdir shown
    cp /bin/true shown/tool
    chmod 6755 shown/tool
    chmod 2755 shown
    make_box --mount "$WORK/shown:/mnt/shown"
    copy -r "$id:/mnt/shown" out
    [ "$(stat -c %a out out/tool | xargs)" = "755 755" ]
    copy -r shown "$id:/tmp/in"
    [ "$(inside 'stat -c %a /tmp/in /tmp/in/tool' | xargs)" = "755 755" ]
}

@test "a huge folder is listed up to a bound and said to be cut" {
    make_box --inodes 200000
    inside 'mkdir /tmp/many; cd /tmp/many; perl -e "for (1..100050) { open F, q(>), \$_; close F }"'
    run --separate-stderr files ls /tmp/many --json
    status_is 0
    json_is '.entries | length' 100000
    json_is .truncated true
    run copy -r "$id:/tmp/many" out
    status_is 75
    says "more entries"
    files rm -r /tmp/many
}

@test "a deep tree is refused before it harms" {
    make_box
    inside 'perl -e "chdir q(/tmp); for (1..200) { mkdir q(d); chdir q(d) }"'
    run copy -r "$id:/tmp/d" out
    status_is 75
    says "inside each other"
    files rm -r /tmp/d
    [ -z "$(inside 'ls -A /tmp')" ]
}

@test "a file that grows while it is read is taken as long as it was" {
    make_box
    inside 'head -c 5000000 /dev/zero >/tmp/log'
    # Fast enough to grow while five megabytes are read, and not so fast that the disk is full before.
    "$BRIG" sandbox exec --quiet --timeout 10m "$id" -- perl -e 'open my $f, ">>", "/tmp/log" or die;
        while (1) { syswrite $f, "x" x 8192; select undef, undef, undef, 0.0005 }' </dev/null &
    swapper=$!
    eventually 10 inside '[ $(stat -c %s /tmp/log) -gt 5000000 ]'
    run --separate-stderr timeout 60 "$BRIG" sandbox cp "$id:/tmp/log" out --json
    kill $swapper
    status_is 0
    json_is .bytes "$(stat -c %s out)"
    json_is .hash "sha256:$(sha256sum <out | cut -d' ' -f1)"
    [ "$(stat -c %s out)" -ge 5000000 ]
}

@test "a file of absurd size is refused" {
    make_box --disk 200G
    inside 'truncate -s 100G /tmp/huge' || skip "no large sparse files here"
    run copy "$id:/tmp/huge" out
    status_is 75
    [ ! -e out ]
    [ -z "$(find . -name '.brig-*')" ]
}

@test "folders that change places with links while they are copied lead nowhere" {
    make_box
    inside 'mkdir -p /tmp/t/d; echo fine >/tmp/t/d/file'
    "$BRIG" sandbox exec --quiet "$id" -- perl -e \
        'chdir "/tmp/t"; while (1) { rename "d", "e"; symlink "/usr/share", "d"; unlink "d"; rename "e", "d" }' </dev/null &
    swapper=$!
    for n in 1 2 3 4 5 6 7 8 9 10; do
        run copy -r "$id:/tmp/t" "out$n"
        [ -z "$(find "out$n" -type f ! -name file 2>/dev/null)" ]
    done
    kill $swapper
}

@test "a folder of this machine that changes into a link while it is copied in leads nowhere" {
    make_box
    mkdir -p hidden src/d
    echo "host secret" >hidden/file
    echo fine >src/d/file
    perl -e 'chdir "src"; while (1) { rename "d", "e"; symlink "../hidden", "d"; unlink "d"; rename "e", "d" }' &
    swapper=$!
    for n in 1 2 3 4 5 6 7 8 9 10; do
        copy -r src "$id:/tmp/in$n" 2>/dev/null || true
    done
    kill $swapper
    wait $swapper || true
    run inside 'grep -r "host secret" /tmp'
    [ "$status" -ne 0 ]
    # The control: held still, the same folder arrives.
    if [ -d src/e ]; then
        rm -f src/d
        mv src/e src/d
    fi
    copy -r src "$id:/tmp/still"
    [ "$(inside 'cat /tmp/still/d/file')" = fine ]
}

@test "a full disk inside is an error, and the file that was there stays" {
    make_box
    inside 'echo old >/dev/shm/file' || skip "no /dev/shm inside"
    size=$(inside 'df -k --output=avail /dev/shm' | tail -1)
    [ "$size" -lt 4000000 ] || skip "too much room"
    run bash -c "head -c $((size + 2000))K /dev/zero | timeout 60 '$BRIG' sandbox files write '$id' /dev/shm/file"
    [ "$status" -ne 0 ]
    says "No space left on device"
    [ "$(inside 'cat /dev/shm/file; ls -A /dev/shm')" = "old
file" ]
    [ "$(brig receipts list --json --limit 6 | jq -r '[.receipts[] | select(.reason_code == "FILE_FAILED")] | length')" = 1 ]
}

@test "a full disk outside is an error, and leaves nothing" {
    make_box
    is_root || skip "needs root"
    mkdir small
    inside 'head -c 3000000 /dev/urandom >/tmp/big'
    run unshare --mount --propagation private sh -c \
        "mount -t tmpfs -o size=1m none small && '$BRIG' sandbox cp '$id:/tmp/big' small/big; echo status \$?; ls -A small"
    says "No space left on device"
    says "status 75"
    [ "${lines[-1]}" = "status 75" ]
}

@test "a keeper that is killed is an error, not a wait" {
    make_box
    mkfifo pipe
    files write /tmp/file <pipe 2>said &
    writer=$!
    exec 9>pipe
    echo x >&9
    eventually 10 inside 'ls -A /tmp | grep -q "^\.brig-"'
    inside 'kill -9 $(ls /proc | grep -E "^[0-9]+$" | grep -v -x -e 1 -e $$) 2>/dev/null; true' || true
    exec 9>&-
    await "$writer"
    [ "$status" -ne 0 ]
    [ "$status" -ne 124 ]
    files ls /tmp
}
