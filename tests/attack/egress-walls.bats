#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A sandbox with a way out: there is no other one, and whoever uses it is who they are. At the other
# end is a stand-in for egress that answers every connection with what box told it of the caller.

load attack

STAND_IN=$BRIG_BUILD/tests/attack/egress-stand-in

setup() {
    common_setup
    BRIG=$STAND_IN/brig
}

# As people call it, and with what a spawner has prepared.
both() {
    BRIG=$STAND_IN/brig
    "$@"
    BRIG=$STAND_IN/brig-spawner
    "$@"
}

hash_of() {
    sha256sum "$1" | cut -d' ' -f1
}

connects() {
    box -- /mnt/attack/connects "$@"
}

# is_seen PATH FILE [REST]: the answer names this path with the content of this file.
is_seen() {
    local wanted
    wanted="$1 $(hash_of "$2")${3:+ $3}"
    [ "$output" = "$wanted" ] || {
        printf 'should say "%s":\n%s\n' "$wanted" "$output" >&2
        return 1
    }
}

named_ports() {
    for target in "93.184.216.34 443" "2001:db8::1 80" "127.0.0.1 3128" "198.18.0.1 53"; do
        # shellcheck disable=SC2086 # two words
        run -0 connects plainly $target
        is_seen /mnt/attack/connects "$ATTACK/connects"
    done
}

@test "what some rule names reaches egress, with who called" {
    both named_ports
}

nothing_else() {
    for target in "93.184.216.34 22" "93.184.216.34 15001" "169.254.169.254 8080" "10.0.0.1 8443" \
        "2001:db8::1 22" "198.18.0.1 443" "127.0.0.1 443" "::1 443" "0.0.0.0 80"; do
        # shellcheck disable=SC2086 # two words
        run -0 connects plainly $target
        [ "$output" = "connect: ECONNREFUSED" ]
    done
}

@test "everything else is refused at once" {
    both nothing_else
}

@test "datagrams go nowhere but to names" {
    for target in "8.8.8.8 53" "93.184.216.34 443" "198.18.0.2 53" "2001:db8::1 53"; do
        # shellcheck disable=SC2086 # two words
        run -0 connects datagram $target
        [ "$output" = "recv: ECONNREFUSED" ]
    done
    run -0 connects datagram 198.18.0.1 53
    [ "$output" = name ]
}

@test "a server inside is reached on the loopback interface, not egress" {
    run -0 connects serve 127.0.0.1 8443
    [ "$output" = inside ]
    run -0 connects serve ::1 8443
    [ "$output" = inside ]
    run -0 connects unix 127.0.0.1 1
    answers connect worked
}

@test "neither routes nor rules can be changed from inside" {
    need ip
    run -0 box -- ip route show table local
    says "local default dev lo" # control
    run box -- ip route del local default dev lo table local
    [ "$status" -ne 0 ]
    says "Operation not permitted"
    if command -v nft >/dev/null; then
        run box -- nft list ruleset
        [ "$status" -ne 0 ]
    fi
    run -0 box -- cat /proc/sys/net/ipv4/tcp_fastopen /proc/sys/net/ipv4/tcp_syncookies
    [ "$output" = $'0\n0' ]
}

# ---- who it is ----

@test "a name is only a name: link and argv[0] change nothing" {
    run -0 box -- bash -c 'exec -a /usr/bin/curl /mnt/attack/connects plainly 9.9.9.9 443'
    is_seen /mnt/attack/connects "$ATTACK/connects"
    run -0 box -- bash -c 'ln -s /mnt/attack/connects /tmp/curl; exec /tmp/curl plainly 9.9.9.9 443'
    is_seen /mnt/attack/connects "$ATTACK/connects"
    run -0 box -- bash -c 'cp /mnt/attack/connects "/tmp/curl (deleted)"; exec "/tmp/curl (deleted)" plainly 9.9.9.9 443'
    is_seen "/tmp/curl (deleted)" "$ATTACK/connects"
}

# Started, then its file is another one, or none.
@test "a replaced or deleted program is what runs, and is said to have no name" {
    run -0 box -- bash -c 'cp /mnt/attack/connects /tmp/p; mkfifo /tmp/a /tmp/b; /tmp/p waits 9.9.9.9 443 /tmp/a /tmp/b &
        echo >/tmp/a; cp /usr/bin/true /tmp/new; mv /tmp/new /tmp/p; echo >/tmp/b; wait'
    is_seen /tmp/p "$ATTACK/connects" "deleted <- /usr/bin/bash"
    run -0 box -- bash -c 'cp /mnt/attack/connects /tmp/p; mkfifo /tmp/a /tmp/b; /tmp/p waits 9.9.9.9 443 /tmp/a /tmp/b &
        echo >/tmp/a; rm /tmp/p; echo >/tmp/b; wait'
    is_seen /tmp/p "$ATTACK/connects" "deleted <- /usr/bin/bash"
}

memory_file() {
    run -0 connects memfd 9.9.9.9 443
    if [ "$output" = "memfd_create: ENOSYS" ]; then
        return 0 # where memory is watched there are none
    fi
    is_seen /memfd:curl "$ATTACK/connects" deleted
}

@test "a file in memory has the name and content it has, not those it gives itself" {
    both memory_file
}

@test "a program changed a moment ago is not taken for what it was" {
    run -0 box -- bash -c 'for i in 1 2 3 4 5 6 7 8; do
        cp /mnt/attack/connects /tmp/p; printf %04d $i >>/tmp/p; touch -d @1 /tmp/p
        [ "$(/tmp/p plainly 9.9.9.9 443 | cut -d" " -f2)" = "$(sha256sum /tmp/p | cut -d" " -f1)" ] && echo same
        rm /tmp/p; done'
    [ "$(grep -c same <<<"$output")" -eq 8 ]
}

@test "an interpreter is seen with the script its arguments name" {
    cat >who <<'END'
#!/usr/bin/perl
use IO::Socket::INET;
my $c = IO::Socket::INET->new(PeerAddr => q(9.9.9.9:443)) or die;
print <$c>;
END
    chmod 755 who
    perl=$(realpath /usr/bin/perl)
    run -0 box --mount "$PWD:/mnt/w:ro" -- /mnt/w/who
    is_seen "$perl" "$perl" "script=/mnt/w/who $(hash_of who)"
    run -0 box --mount "$PWD:/mnt/w:ro" -- bash -c 'cd /mnt; perl -w -I /tmp ./w/who arg; true'
    is_seen "$perl" "$perl" "script=/mnt/./w/who $(hash_of who) <- $(realpath /usr/bin/bash)"
    run -0 box --mount "$PWD:/mnt/w:ro" -- bash -c 'perl < /mnt/w/who; true'
    is_seen "$perl" "$perl" "script=unknown <- $(realpath /usr/bin/bash)"
    run -0 box --mount "$PWD:/mnt/w:ro" -- perl -e 'do q(/mnt/w/who)'
    is_seen "$perl" "$perl" "script=unknown"
}

ancestors() {
    bash=$(realpath /usr/bin/bash)
    env=$(realpath /usr/bin/env)
    run -0 box -- bash -c 'bash -c "/mnt/attack/connects plainly 9.9.9.9 443; true"; true'
    is_seen /mnt/attack/connects "$ATTACK/connects" "<- $bash <- $bash"
    run -0 connects vfork 9.9.9.9 443
    is_seen /mnt/attack/connects "$ATTACK/connects" "<- /mnt/attack/connects"
    run -0 connects clone 9.9.9.9 443
    is_seen /mnt/attack/connects "$ATTACK/connects" "<- /mnt/attack/connects"
    run -0 connects thread 9.9.9.9 443
    is_seen /mnt/attack/connects "$ATTACK/connects"
}

@test "forks, threads and chains of programs are told apart" {
    both ancestors
}

# What is remembered of a process must not outlive the program it ran.
become_another() {
    bash=$(realpath /usr/bin/bash)
    perl=$(realpath /usr/bin/perl)
    # the caller itself: seen as bash, then another program under the same number
    run -0 box -- bash -c 'exec 5<>/dev/tcp/9.9.9.9/443; cat <&5; exec /mnt/attack/connects plainly 9.9.9.9 443'
    [ "${#lines[@]}" -eq 2 ]
    [ "${lines[0]}" = "$bash $(hash_of "$bash") script=unknown" ]
    output=${lines[1]} is_seen /mnt/attack/connects "$ATTACK/connects"
    # its parent: seen as bash, then another program under the same number
    run -0 box -- bash -c 'mkfifo /tmp/a /tmp/b; /mnt/attack/connects plainly 9.9.9.9 443
        /mnt/attack/connects waits 9.9.9.9 443 /tmp/a /tmp/b &
        exec perl -e "open A, q(>), q(/tmp/a); close A; open B, q(>), q(/tmp/b); close B; wait"'
    [ "${#lines[@]}" -eq 2 ]
    output=${lines[0]} is_seen /mnt/attack/connects "$ATTACK/connects" "<- $bash"
    output=${lines[1]} is_seen /mnt/attack/connects "$ATTACK/connects" "<- $perl"
}

@test "whoever was seen and became another program is seen as that one" {
    both become_another
}

orphans() {
    run -0 connects orphan 9.9.9.9 443
    is_seen /mnt/attack/connects "$ATTACK/connects" lost
    run -0 connects sibling 9.9.9.9 443
    answers clone EPERM
}

@test "whoever has lost the process that started it is said to have" {
    both orphans
    id=$("$BRIG" sandbox create --mount "$ATTACK:/mnt/attack:ro" --json | jq -r .sandbox_id)
    run -0 "$BRIG" sandbox exec --quiet "$id" -- /mnt/attack/connects orphan 9.9.9.9 443
    is_seen /mnt/attack/connects "$ATTACK/connects" lost
    run -0 "$BRIG" sandbox exec --quiet --keep "$id" -- /mnt/attack/connects orphan 9.9.9.9 443
    is_seen /mnt/attack/connects "$ATTACK/connects" lost
    run -0 "$BRIG" sandbox destroy "$id"
}

@test "more ancestors than are told of are said to be more" {
    run -0 box -- bash -c 'n=0; f() { if [ $1 -gt 0 ]; then (f $(($1 - 1)); true); else /mnt/attack/connects plainly 9.9.9.9 443; true; fi; }; f 20'
    says " cut <- "
}

@test "a socket connected by another program is that program's" {
    run -0 box -- bash -c 'cp /mnt/attack/connects /tmp/p; /tmp/p other 9.9.9.9 443 /mnt/attack/connects given 9.9.9.9 443'
    is_seen /mnt/attack/connects "$ATTACK/connects" "<- /tmp/p"
}

@test "whoever swaps sockets behind our back is nobody, and nobody else" {
    run -0 connects swapping 9.9.9.9 443
    [ "$output" = "0 taken for another" ]
}

@test "data before a connection is refused, a late one is seen" {
    run -0 connects fast 9.9.9.9 443
    refuses EOPNOTSUPP
    run -0 connects late 9.9.9.9 443
    says "/mnt/attack/connects $(hash_of "$ATTACK/connects")"
}

@test "nobody inside can listen instead, or be another program" {
    run -0 box -- bash -c '/mnt/attack/connects another 9.9.9.9 443; true'
    answers filter worked # control: a filter that only filters
    without filter
    refuses 'EPERM|EACCES'
}

@test "500 processes at once are all seen" {
    run -0 box --pids 600 --timeout 5m -- /mnt/attack/connects many 9.9.9.9 443 500
    [ "$output" = "500 of 500" ]
    # More than wait at a listener: those beyond wait for their turn, none is forgotten.
    run -0 box --pids 1700 --timeout 5m -- /mnt/attack/connects many 9.9.9.9 443 1600
    [ "$output" = "1600 of 1600" ]
}

# ---- kept sandboxes ----

kept_sandbox() {
    id=$("$BRIG" sandbox create --mount "$ATTACK:/mnt/attack:ro" --json | jq -r .sandbox_id)
    for _ in 1 2; do
        run -0 "$BRIG" sandbox exec --quiet "$id" -- /mnt/attack/connects plainly 9.9.9.9 443
        is_seen /mnt/attack/connects "$ATTACK/connects"
    done
    run -0 "$BRIG" sandbox exec --quiet "$id" -- bash -c '/mnt/attack/connects plainly 9.9.9.9 443; true'
    is_seen /mnt/attack/connects "$ATTACK/connects" "<- $(realpath /usr/bin/bash)"
    # Two at once: one of them has a process of ours above it, which is no ancestor.
    "$BRIG" sandbox exec --quiet "$id" -- sleep 60 </dev/null >/dev/null 2>&1 3>&- &
    sleeper=$!
    run -0 "$BRIG" sandbox exec --quiet "$id" -- /mnt/attack/connects plainly 9.9.9.9 443
    is_seen /mnt/attack/connects "$ATTACK/connects"
    run -0 "$BRIG" sandbox destroy "$id"
    wait "$sleeper" || true
}

@test "a kept sandbox keeps its way out" {
    both kept_sandbox
}

# ---- when egress is gone ----

egress_gone() {
    run -0 box -- bash -c '/mnt/attack/connects plainly 9.9.9.9 9; for i in 1 2; do
        /mnt/attack/connects plainly 9.9.9.9 443; /mnt/attack/connects plainly 127.0.0.1 3128; done
        /mnt/attack/connects serve 127.0.0.1 8443'
    [ "$(grep -c "connect: ECONNREFUSED" <<<"$output")" -eq 4 ]
    [ "$(tail -n 1 <<<"$output")" = inside ]
}

@test "with egress gone there is no network, and what is inside works" {
    both egress_gone
}

@test "with egress not listening a connect fails, and the sandbox is still watched" {
    run -0 box --timeout 5m -- bash -c '/mnt/attack/connects plainly 9.9.9.9 11; /mnt/attack/connects flood 127.0.0.1 9999 3000; /mnt/attack/connects flood 127.0.0.1 3128 3000'
    says "connect: EAGAIN"
    run box --timeout 2s -- bash -c '/mnt/attack/connects plainly 9.9.9.9 11 & while :; do /mnt/attack/connects flood 127.0.0.1 3128 3000; done'
    status_is 124
}
