#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# B23: nothing that was not given can be read, whatever the path.

load attack

setup() {
    common_setup
    mkdir private given
    echo canary >private/secret
    echo given >given/file
}

@test "a file of the host cannot be read by any path to it" {
    for path in "$WORK/private/secret" "/proc/self/root$WORK/private/secret" \
        "/proc/1/root$WORK/private/secret" "/proc/self/cwd/../../../..$WORK/private/secret" \
        "/workspace/../../..$WORK/private/secret" "/workspace/../private/secret" \
        "/proc/self/fd/0/../../..$WORK/private/secret" "/proc/thread-self/root$WORK/private/secret"; do
        run box --mount "$WORK/given:/workspace" -- cat "$path"
        [ "$status" -ne 0 ]
        [[ $output != *canary* ]]
    done
    run -0 box --mount "$WORK/given:/workspace" -- cat /workspace/file # control
    [ "$output" = given ]
    run -0 box --mount "$WORK/private:/workspace" -- cat /workspace/secret
    [ "$output" = canary ]
}

@test "the host's accounts, homes and state are not there" {
    run -0 box -- /mnt/attack/open read /etc/shadow /etc/gshadow /etc/sudoers /root /etc/ssh \
        /etc/machine-id /etc/hostid /etc/fstab /etc/ssl/private /var/lib/dpkg/status /var/log \
        "$BRIG_HOME/receipts.key" "$BRIG" "$HOME/.ssh" /lost+found /boot /srv/x /opt/x
    refuses 'ENOENT|EACCES'
    run -0 box -- cat /etc/passwd /etc/group /etc/hostname /etc/hosts /etc/resolv.conf
    [[ $output != *"$(hostname)"* ]] || [ "$(hostname)" = sandbox ]
    [ "$(box -- wc -l </dev/null /etc/passwd | cut -d ' ' -f 1)" -eq 3 ]
}

@test "what the root folder holds is this and no more" {
    run -0 box -- ls -A /
    for name in "${lines[@]}"; do
        case $name in
        bin | dev | etc | home | lib | lib32 | lib64 | libx32 | mnt | proc | run | sandbox | sbin | tmp | usr | var | workspace) ;;
        *)
            echo "not expected: /$name" >&2
            return 1
            ;;
        esac
    done
    run -0 box -- sh -c 'ls -A /home /mnt /run /workspace /sandbox/input'
    [[ $output == *"/home:"$'\n'"sandbox"* ]]
}

@test "a policy that lists paths narrows what can be read, by Landlock" {
    cat >policy.yaml <<'Y'
version: 1
filesystem_policy:
  include_workdir: false
  read_only: [/usr, /lib, /proc, /etc, /mnt]
  read_write: [/tmp, /dev]
Y
    mkdir other
    echo other >other/file
    run box --policy policy.yaml -- sh -c 'echo x >/sandbox/output/x; ls /home/sandbox; echo y >/tmp/y && cat /tmp/y'
    says y
    run box --policy policy.yaml --mount "$WORK/other:/srv/other" -- cat /srv/other/file
    status_is 77
    run -0 box --policy policy.yaml --mount "$WORK/other:/mnt/other" -- cat /mnt/other/file # control
    [ "$output" = other ]
}

@test "files of other users are not readable for having been mounted" {
    is_root || skip "only root can make a file of another user's"
    echo canary >given/locked
    chown 12345:12345 given/locked
    chmod 0600 given/locked
    run box --mount "$WORK/given:/workspace" -- cat /workspace/locked
    [ "$status" -ne 0 ]
    says "Permission denied"
}
