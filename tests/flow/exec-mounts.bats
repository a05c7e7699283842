#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --mount and --workdir: what is shown inside, who owns what, what is never handed out.

load common
load sandbox

quiet() {
    timeout -k 5 "$PATIENCE" "$BRIG" sandbox exec --quiet "$@" </dev/null
}

setup() {
    common_setup
    mkdir project
    echo content >project/file
}

@test "a mount is read-only unless rw was asked for" {
    run quiet --mount "$PWD/project:/workspace" -- cat /workspace/file
    status_is 0
    [ "$output" = content ]
    run quiet --mount "$PWD/project:/workspace:ro" -- sh -c 'echo x >/workspace/file'
    [ "$status" -ne 0 ]
    says "Read-only file system"
    run quiet --mount "$PWD/project:/workspace" -- touch /workspace/new
    [ "$status" -ne 0 ]
    [ ! -e project/new ]
    [ "$(cat project/file)" = content ]
}

@test "what is written through rw belongs to whoever owns the folder" {
    run quiet --mount "$PWD/project:/workspace:rw" -- \
        sh -c 'id -un; stat -c %U /workspace /workspace/file; echo new >/workspace/new; chmod 0750 /workspace/new'
    status_is 0
    [ "$output" = "sandbox
sandbox
sandbox" ]
    [ "$(stat -c %u:%g:%a project/new)" = "$(id -u):$(id -g):750" ]
    [ "$(cat project/new)" = new ]
}

@test "started by root, a folder of another user stays that user's" {
    is_root || skip "needs root"
    chown -R 12345:23456 project
    quiet --mount "$PWD/project:/workspace:rw" -- sh -c 'mkdir /workspace/d; echo x >/workspace/d/f; ln -s f /workspace/d/l'
    for name in d d/f d/l; do
        [ "$(stat -c %u:%g "project/$name")" = 12345:23456 ]
    done
}

@test "started by root, files of others in a mounted folder stay theirs and closed" {
    is_root || skip "needs root"
    chown 12345:23456 project
    install -m 0600 -o 54321 -g 54321 /dev/null project/theirs
    echo secret >project/theirs
    run quiet --mount "$PWD/project:/workspace:rw" -- cat /workspace/theirs
    [ "$status" -ne 0 ]
    says "Permission denied"
}

@test "a single file can be mounted" {
    run quiet --mount "$PWD/project/file:/mnt/one" -- cat /mnt/one
    status_is 0
    [ "$output" = content ]
    run quiet --mount "$PWD/project/file:/mnt/one:rw" -- sh -c 'echo changed >/mnt/one'
    status_is 0
    [ "$(cat project/file)" = changed ]
}

@test "several mounts and /sandbox/input" {
    mkdir other
    echo two >other/file
    run quiet --mount "$PWD/project:/sandbox/input" --mount "$PWD/other:/opt/other" -- \
        cat /sandbox/input/file /opt/other/file
    status_is 0
    [ "$output" = "content
two" ]
}

@test "a mounted workspace is where the command starts" {
    run quiet --mount "$PWD/project:/workspace" -- pwd
    [ "$output" = /workspace ]
    run quiet -- pwd
    [ "$output" = /home/sandbox ]
    run quiet --workdir /tmp -- pwd
    [ "$output" = /tmp ]
}

@test "a working directory that is none is refused" {
    run quiet --workdir relative -- true
    status_is 77
    run brig sandbox exec --workdir /tmp/../etc -- true </dev/null
    status_is 77
    says "without . or .."
    run brig sandbox exec --workdir /no/such -- true </dev/null
    status_is 77
    says "/no/such"
    run brig sandbox exec --workdir /proc/self/cwd -- true </dev/null
    status_is 77
    run brig sandbox exec --workdir /usr/share -- pwd </dev/null
    status_is 0
}

@test "what is never handed out, under any spelling" {
    ln -s /etc link
    for source in / /etc /etc/ /etc/../etc /proc /sys /dev /run /dev/null /etc/passwd "$PWD/link" \
        "$BRIG_HOME" /./etc //etc /var/lib/dpkg; do
        [ -e "$source" ] || mkdir -p "$source"
        run brig sandbox exec --mount "$source:/mnt/x" -- true </dev/null
        status_is 77
        says "MOUNT_FORBIDDEN"
        receipt_is .reason_code MOUNT_FORBIDDEN
    done
    run brig sandbox exec --mount "$PWD/project:/mnt/x" -- true </dev/null
    status_is 0
}

@test "credential folders of the caller's home are not handed out, nor the home itself" {
    export HOME=$PWD/home
    mkdir -p home/.ssh home/work home/.config/gh
    echo secret >home/.netrc
    for source in home home/.ssh home/.netrc home/.config home/.config/gh; do
        run brig sandbox exec --mount "$PWD/$source:/mnt/x" -- true </dev/null
        status_is 77
        says "which is never handed out"
    done
    run brig sandbox exec --mount "$PWD/home/work:/mnt/x" -- true </dev/null
    status_is 0
}

@test "targets that are Brig's own, overlap or are no path are refused" {
    for target in / /usr /usr/x /etc /etc/x /proc /dev/x /tmp /tmp/x /var relative /a/../b /a//b /a/ /a/. /sys /sandbox/tmp; do
        run brig sandbox exec --mount "$PWD/project:$target" -- true </dev/null
        status_is 77
        says "MOUNT_FORBIDDEN: mount target"
    done
    run brig sandbox exec --mount "$PWD/project:/mnt/a" --mount "$PWD/project:/mnt/a/b" -- true </dev/null
    status_is 77
    says "overlaps with /mnt/a"
    run brig sandbox exec --mount "$PWD/project:/mnt/a" --mount "$PWD/project:/mnt/b" -- true </dev/null
    status_is 0
}

@test "a source that does not exist, or is no file, is refused" {
    run brig sandbox exec --mount "$PWD/nothing:/mnt/x" -- true </dev/null
    status_is 77
    says "No such file or directory"
    mkfifo fifo
    run brig sandbox exec --mount "$PWD/fifo:/mnt/x" -- true </dev/null
    status_is 77
    says "only folders and files can be mounted"
}

@test "a policy's filesystem list narrows what may be mounted" {
    cat >policy.yaml <<'EOF'
version: 1
default: allow
filesystem_policy:
  read_only: [/mnt/data]
  read_write: [/workspace, /tmp]
EOF
    run brig sandbox exec --policy policy.yaml --mount "$PWD/project:/workspace:rw" \
        --mount "$PWD/project:/mnt/data" -- sh -c 'cat /mnt/data/file; echo x >/workspace/w; cat /workspace/w' </dev/null
    status_is 0
    says content
    run brig sandbox exec --policy policy.yaml --mount "$PWD/project:/workspace" \
        --mount "$PWD/project:/mnt/data:rw" -- true </dev/null
    status_is 77
    says "MOUNT_FORBIDDEN: mount target /mnt/data"
}
