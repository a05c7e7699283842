# SPDX-License-Identifier: Apache-2.0
# A world for egress: namespaces that stand for this machine, where egress runs, one for the servers
# outside, and names for them. Each test makes its own, and everything in it ends with it.
#
#     in_world RULES SCRIPT     runs SCRIPT in a sandbox's namespace, under rules (as JSON); then, on
#                               the machine, what is in $AFTER
#
# Inside: $PROXY, and what curl and python need. From outside: $DIR/log has what servers were asked,
# $DIR/state/counters.json what was counted.

PATH=$PATH:/usr/sbin # where Debian has servers, whoever starts them
EGRESS_BIN="${EGRESS_BIN:-$BATS_TEST_DIRNAME/../../build/tests/attack}"

egress_setup() {
    DIR=$(mktemp -d "$BATS_TEST_TMPDIR/egress.XXXXXX")
    export DIR
    mkdir -p "$DIR/state" "$DIR/answers"
    cat > "$DIR/hosts" <<END
127.0.0.1 localhost
45.33.32.10 api.test www.test other.test
45.33.32.11 second.test
10.9.9.9 private.test
45.33.32.1 own.test
127.0.0.1 loop.test
169.254.169.254 meta.test
2600:3c01::10 six.test
END
}

# Rules that allow these hosts and ports to everybody: allow HOST:PORT...
allow() {
    python3 - "$@" <<'END'
import json, re, sys
endpoints = []
for arg in sys.argv[1:]:
    parts = re.split(r",(?=[a-z_]+=)", arg)
    host, port = parts[0].rsplit(":", 1)
    e = {"host": host, "ports": [int(port)], "line": 1}
    for p in parts[1:]:
        k, v = p.split("=", 1)
        e[k] = json.loads(v)
    endpoints.append(e)
print(json.dumps({"network_policies": {"open": {"name": "open", "line": 1, "binaries": [{"path": "/**", "interpreter": True}],
      "endpoints": endpoints}}}, sort_keys=True, separators=(",", ":")), end="")
END
}

# Everything below runs inside the namespace that stands for this machine.
egress_world='
set -e
mount --bind "$DIR/hosts" /etc/hosts
printf "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n" > "$DIR/resolv.conf"
[ -e /etc/resolv.conf ] && mount --bind "$DIR/resolv.conf" /etc/resolv.conf
ip link set lo up
# Of an earlier world of the same test nothing counts.
rm -f "$DIR/world.pid"
before=$(grep -c ready "$DIR/log" 2>/dev/null || true)
unshare -n sh -c "echo \$\$ > $DIR/world.pid; exec sleep 1000" >/dev/null 2>&1 &
W=$!
while [ ! -s "$DIR/world.pid" ]; do sleep 0.01; done
while [ "$(readlink /proc/$W/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
ip link add v0 type veth peer name v1 netns $W
ip addr add 45.33.32.1/24 dev v0
ip addr add 10.9.9.1/24 dev v0
ip -6 addr add 2600:3c01::1/64 dev v0 nodad
ip link set v0 up
nsenter -t $W -n sh -c "ip link set lo up; ip link set v1 up; ip addr add 45.33.32.10/24 dev v1;
    ip addr add 45.33.32.11/24 dev v1; ip addr add 10.9.9.9/24 dev v1; ip -6 addr add 2600:3c01::10/64 dev v1 nodad"
nsenter -t $W -n python3 "$SERVERS" "$DIR/log" "$DIR/answers" >"$DIR/servers.out" 2>&1 &
S=$!
for i in $(seq 1500); do [ "$(grep -c ready "$DIR/log" 2>/dev/null)" -gt "${before:-0}" ] 2>/dev/null && break; sleep 0.02; done
set +e
"$EGRESS_BIN/egress-box" "$DIR/state" "$DIR/rules" bash -c "$SCRIPT" &
B=$!
echo $B > "$DIR/box.pid"
wait $B
status=$?
[ -z "$AFTER" ] || bash -c "$AFTER"
kill $S $W 2>/dev/null
exit $status
'

in_world() {
    local user=()
    [ "$(id -u)" -eq 0 ] || user=(-U -r)
    printf '%s' "$1" > "$DIR/rules"
    SERVERS="$BATS_TEST_DIRNAME/egress-servers.py" EGRESS_BIN="$EGRESS_BIN" SCRIPT="$2" \
        PROXY=http://127.0.0.1:3128 no_proxy= NO_PROXY= \
        timeout -k 5 "${WORLD_SECONDS:-240}" unshare "${user[@]}" -m -n -p -f --mount-proc bash -c "$egress_world"
}

counted() { # JSON path of the counters, as python
    python3 -c "import json,sys; c=json.load(open('$DIR/state/counters.json')); print($1)"
}
