#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A12: nothing can be typed into a terminal from inside, with whatever bits set above the request;
# and the caller's own terminal is not there at all.

load attack

injections_refused() {
    answers "TIOCGWINSZ" worked # control: ordinary requests pass, also with high bits
    answers "TIOCGWINSZ + 0x100000000" worked
    answers "TIOCSTI + 0" EPERM
    answers "TIOCSTI + 0x100000000" EPERM
    without "TIOCGWINSZ" "TIOCGWINSZ + 0x100000000" "descriptor 0"
    output=$(grep ^TIOC <<<"$output")
    [ "$(wc -l <<<"$output")" -eq 16 ]
    refuses EPERM
}

@test "injection is refused on a terminal made inside" {
    run -0 box -- /mnt/attack/terminal
    says "descriptor 0 is not a terminal"
    injections_refused
}

@test "injection is refused on the terminal of an interactive run" {
    run -0 box --tty -- /mnt/attack/terminal
    output=${output//$'\r'/}
    says "descriptor 0 is a terminal"
    injections_refused
}

@test "the caller's terminal is out of reach, with --tty and without" {
    need script
    # script gives Brig a terminal; what runs inside must not have that one.
    run script -qec "$BRIG sandbox exec --quiet -- sh -c 'tty; echo x >/dev/tty'" /dev/null </dev/null
    says "not a tty"
    says "No such device or address"
    run script -qec "$BRIG sandbox exec --quiet --tty -- sh -c 'tty; stat -c %d /dev/pts; stat -c %d /dev/pts/0'" \
        /dev/null </dev/null
    says /dev/pts/0
    outside=$(stat -c %d /dev/pts 2>/dev/null || echo none)
    [[ $output != *$'\n'"$outside"$'\r'* ]]
}

@test "a run without a terminal has no controlling one to get back" {
    run -0 box -- sh -c 'ps -o tty= -p $$ 2>/dev/null || awk "{ print \$7 }" /proc/self/stat'
    [[ $output == *"?"* ]] || [[ $output == *0* ]]
    run box -- sh -c 'exec 3<>/dev/tty'
    [ "$status" -ne 0 ]
    says "No such device or address"
}
