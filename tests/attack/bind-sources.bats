#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# B08: what must never be handed to a sandbox is refused as a mount source, however it is spelled.

load attack

# not_handed_out SOURCE…: each is denied for that reason, with a receipt.
not_handed_out() {
    local source
    for source in "$@"; do
        denied MOUNT_FORBIDDEN "mount source" --mount "$source:/mnt/x" -- ls /mnt/x || {
            echo "source: $source" >&2
            return 1
        }
    done
}

handed_out() {
    run -0 brig sandbox exec --quiet --mount "$1:/mnt/x" -- ls -A /mnt/x
}

@test "the root and the system's own folders" {
    not_handed_out / // /. /etc /etc/ //etc /etc/. /etc/../etc /etc/passwd /etc/ssl /proc /proc/self \
        /sys /sys/kernel /dev /dev/shm /dev/null /boot /run /var/run /usr/.. /proc/self/root \
        /proc/self/root/etc /proc/1/root /proc/self/cwd/../../../../../../../../../../etc
    says "never handed out"
}

@test "folders that contain them" {
    not_handed_out /var /var/lib
}

@test "links to them, and links to links" {
    ln -s /etc to-etc
    ln -s to-etc to-to-etc
    ln -s / to-root
    mkdir folder
    ln -s ../to-etc folder/link
    not_handed_out "$WORK/to-etc" "$WORK/to-etc/" "$WORK/to-to-etc" "$WORK/to-root" \
        "$WORK/to-root/etc" "$WORK/folder/link" "$WORK/to-root/proc" "$WORK/folder/../to-etc/."
    handed_out "$WORK/folder" # control: the link in it leads nowhere inside
    run box --mount "$WORK/folder:/mnt/x" -- cat /mnt/x/link/shadow
    [ "$status" -ne 0 ]
}

@test "descriptors of them" {
    exec 8</etc
    not_handed_out /proc/self/fd/8
    exec 8<&-
}

@test "credentials below a home, the home itself, and what contains it" {
    export HOME=$WORK/home
    mkdir -p home/.ssh home/.aws home/.config/gh home/.gnupg/private home/project/src
    echo key >home/.ssh/id
    echo password >home/.netrc
    not_handed_out "$HOME/.ssh" "$HOME/.ssh/" "$HOME//.ssh" "$HOME/project/../.ssh" "$HOME/.ssh/id" \
        "$HOME/.netrc" "$HOME/.aws" "$HOME/.gnupg/private" "$HOME/.config/gh" "$HOME/.config" \
        "$HOME" "$HOME/." "$WORK" "$WORK/home"
    ln -s ../home/.ssh/id home/project/link
    not_handed_out "$HOME/project/link"
    handed_out "$HOME/project" # control
}

@test "a second name of a credential file" {
    export HOME=$WORK/home
    mkdir -p home/project
    echo password >home/.netrc
    ln home/.netrc home/project/notes.txt
    not_handed_out "$HOME/project/notes.txt"
}

@test "credentials in a home that is not the caller's" {
    # By the name the folder has, wherever it is: \$HOME may be wrong, or somebody else's turn.
    mkdir -p elsewhere/alice/.ssh elsewhere/alice/.aws elsewhere/alice/project
    echo key >elsewhere/alice/.ssh/id
    not_handed_out "$WORK/elsewhere/alice/.ssh" "$WORK/elsewhere/alice/.ssh/id" \
        "$WORK/elsewhere/alice/.aws" "$WORK/elsewhere/alice"
    HOME=/nonexistent not_handed_out "$WORK/elsewhere/alice/.ssh"
    handed_out "$WORK/elsewhere/alice/project" # control
}

@test "Brig's own state, key and sockets" {
    run -0 box -- true
    not_handed_out "$BRIG_HOME" "$BRIG_HOME/receipts.db" "$BRIG_HOME/receipts.key" "$BRIG_HOME/runs" \
        "$(dirname "$BRIG_HOME")"
    ln -s "$BRIG_HOME" state-link
    not_handed_out "$WORK/state-link" "$WORK/state-link/receipts.key"
}

@test "container sockets and other services" {
    not_handed_out /var/run/docker.sock /run/docker.sock /run/containerd /run/systemd /var/run/../run
    "$ATTACK/sockets" listen "$WORK/service" >"$WORK/said" 3>&- &
    server=$!
    eventually 5 grep -q worked "$WORK/said"
    not_handed_out "$WORK/service"
    kill "$server"
}

@test "fifos and devices" {
    mkfifo fifo
    not_handed_out "$WORK/fifo" /dev/zero /dev/tty
}

# ---- under another name, by the mount table; in a mount namespace of our own ----

with_mounts() {
    unshare --mount --propagation private bash -c "$@"
}

@test "a bind mount of /etc under another name" {
    is_root || skip "an ordinary user's own mounts cannot be shown to Brig: it would not be run by that user"
    mkdir alias alias-of-part nest nest/inner
    run with_mounts 'mount --bind /etc "$1/alias" && "$BRIG" sandbox exec --mount "$1/alias:/mnt/x" -- ls /mnt/x' sh "$WORK"
    status_is 77
    says "never handed out"
    run with_mounts 'mount --bind /etc/ssl "$1/alias-of-part" && "$BRIG" sandbox exec --mount "$1/alias-of-part:/mnt/x" -- ls /mnt/x' sh "$WORK"
    status_is 77
    says "never handed out"
    run with_mounts 'mount --bind /etc "$1/nest/inner" && "$BRIG" sandbox exec --mount "$1/nest:/mnt/x" -- cat /mnt/x/inner/passwd' sh "$WORK"
    status_is 77
    says "never handed out"
    # control: an innocent one, alone and nested
    mkdir innocent
    echo fine >innocent/file
    run -0 with_mounts 'mount --bind "$1/innocent" "$1/nest/inner" && "$BRIG" sandbox exec --quiet --mount "$1/nest:/mnt/x" -- cat /mnt/x/inner/file' sh "$WORK"
    [ "$output" = fine ]
}
