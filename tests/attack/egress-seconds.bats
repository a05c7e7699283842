#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What is promised to happen within a second (D07, F21, G11, R11, R13): that it happens is what is
# tested, in real sandboxes where there is one to lose something; how long it took is said beside.

load attack
load ../flow/sandbox
load egress
load egress-tls
load egress-clients

setup() {
    common_setup
    egress_setup
}

teardown() {
    [ -z "${world-}" ] || world_end
    servers_end
}

# took WHAT FILE: shows what the client measured.
took() {
    echo "# $1: $(tr '\n' ' ' <"$2")" >&3
}

@test "D07: out of descriptors a proxy says no, and serves again when there are some" {
    WORLD_SECONDS=400 run in_world "$(allow api.test:80)" 'ulimit -n 4096; python3 - <<E
import os, resource, socket, subprocess, time
def ask():
    try:
        c = socket.create_connection(("127.0.0.1", 3128), 10); c.settimeout(10)
        c.sendall(b"GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n")
        return c.recv(100)[9:12].decode() or "closed"
    except OSError as e: return type(e).__name__
print("before", ask())
pids = [int(p) for p in subprocess.check_output(["pgrep", "-x", "egress"]).split()]
main = min(pids, key=lambda p: open(f"/proc/{p}/stat").read().split()[3] in map(str, pids))
has = len(os.listdir(f"/proc/{main}/fd"))
resource.prlimit(main, resource.RLIMIT_NOFILE, (has + 20, resource.prlimit(main, resource.RLIMIT_NOFILE)[1]))
held = []
for i in range(200):
    try: held.append(socket.create_connection(("127.0.0.1", 3128), 10))
    except OSError: pass
print("without", ask() != "200")
for c in held: c.close()
began = time.monotonic()
while (said := ask()) != "200" and time.monotonic() - began < 60: pass
print("again", said)
open(os.environ["DIR"] + "/took", "w").write("%.2f s" % (time.monotonic() - began))
E'
    echo "$output"
    [ "$output" = $'before 200\nwithout True\nagain 200' ]
    [ "$(counted '[r["reason"] for r in c["refusals"]]')" = "['EGRESS_BUSY']" ]
    took "served again after" "$DIR/took"
}

# A client with a tunnel, a connection of HTTP/1.1 and one of HTTP/2, all of them open and idle.
holding='
import net from "node:net";
import http2 from "node:http2";
import https from "node:https";
let began = Date.now();
const connect = (to) => new Promise((done) => {
    const socket = net.connect(3128, "127.0.0.1");
    socket.on("error", () => {});
    socket.write("CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n\r\n");
    socket.once("data", (said) => done([socket, String(said).split(" ")[1]]));
    socket.once("close", () => done([socket, "closed"]));
});
const ended = (name, thing) => thing.on("error", () => {}).once("close", () => console.log("closed", name));
const [tunnel, said] = await connect("public.test:8080");
console.log("tunnel", said);
ended("tunnel", tunnel);
const agent = new https.Agent({ keepAlive: true });
await new Promise((done) => https.get({ host: "public.test", port: 8443, path: "/ok/1", agent }, (r) => {
    console.log("http1", r.statusCode);
    ended("http1", r.socket);
    r.resume().on("end", done);
}));
const session = http2.connect("https://public.test:9443");
ended("http2", session);
await new Promise((done) => session.request({ ":path": "/hello" }).on("response", (h) => console.log("http2", h[":status"]))
    .resume().on("end", done).end());
console.log("open");
setInterval(async () => {
    const [socket, status] = await connect("public.test:8080");
    socket.destroy();
    if (status !== "200") { console.log("again", status); process.exit(0); }
}, 200);
'

hold_open() { # sets id; what the client says is in holding.out
    load ../flow/network # its worlds have sandboxes in them, those above have not
    world_begin
    servers_begin
    policy_of '  all:' '    binaries: [{path: /usr/bin/node, interpreter: true}]' '    endpoints:' \
        '      - {host: public.test, port: 8080, protocol: tcp}' \
        '      - {host: public.test, port: 8443, protocol: rest, access: full}' \
        '      - {host: public.test, port: 9443, protocol: rest, access: full}'
    id=$(in_world "$BRIG" sandbox create --policy policy.yaml --json | jq -r .sandbox_id)
    in_world timeout -k 5 240 "$BRIG" sandbox exec --quiet --timeout 5m "$id" -- node --input-type=module -e "$holding" \
        >holding.out 2>&1 3>&- </dev/null &
    holding_job=$!
    eventually 60 grep -qx open holding.out || { cat holding.out; false; }
    [ "$(head -n 3 holding.out | paste -sd' ')" = "tunnel 200 http1 200 http2 200" ]
}

all_closed() {
    [ "$(grep -c ^closed holding.out)" -eq 3 ] && grep -q ^again holding.out
}

@test "F21: connections whose rule is taken away end, and no other is let through" {
    hold_open
    policy_of '  other:' '    binaries: [{path: /usr/bin/node, interpreter: true}]' '    endpoints: [{host: other.test, port: 8443, protocol: rest, access: full, allowed_ips: [10.77.0.0/24]}]'
    in_world "$BRIG" policy apply --sandbox "$id" policy.yaml
    began=$EPOCHREALTIME
    eventually 60 all_closed || { cat holding.out; false; }
    echo "$EPOCHREALTIME $began" | awk '{ printf "%.2f s\n", $1 - $2 }' >took
    grep -qx "again 403" holding.out
    took "all closed after" took
    wait "$holding_job" || true
    in_world "$BRIG" sandbox destroy "$id"
}

@test "F21: connections whose rule stays go on through an exchange of rules" {
    hold_open
    sed 's/access: full}/access: read-only}/' policy.yaml >narrower.yaml
    in_world "$BRIG" policy apply --sandbox "$id" narrower.yaml
    run in_world "$BRIG" sandbox exec --quiet "$id" -- node -e 'fetch("https://public.test:8443/x", {method: "POST"}).then((r) => console.log(r.status))'
    [ "$output" = 403 ]
    grep -q "^closed tunnel" holding.out && false # it has the same rule as before
    grep -q "^again" holding.out && false
    in_world "$BRIG" sandbox destroy "$id"
    wait "$holding_job" || true
}

@test "R11: with egress killed every connection ends, and there is no other way" {
    hold_open
    for pid in $(egress_pid); do kill -9 "$pid" 2>/dev/null || true; done
    began=$EPOCHREALTIME
    eventually 60 all_closed || { cat holding.out; false; }
    echo "$EPOCHREALTIME $began" | awk '{ printf "%.2f s\n", $1 - $2 }' >took
    grep -qx "again closed" holding.out
    took "all closed after" took
    wait "$holding_job" || true
    in_world "$BRIG" sandbox destroy "$id"
}

@test "G11, R13: clients slow to shake hands hurt only themselves" {
    tls_setup
    WORLD_SECONDS=400 run in_tls_world "$(allow 'api.test:443,protocol="rest",access="full"')" 'unset SSL_CERT_FILE; ulimit -n 4096; python3 - <<E
import os, socket, subprocess, time
slow = []
for i in range(400):
    c = socket.create_connection(("127.0.0.1", 3128), 30)
    c.sendall(b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n")
    slow.append(c)
for c in slow:
    try:
        c.recv(100)
        c.sendall(b"\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03")
    except OSError: pass # its own deadline has come: on a slow machine the first ones may meet it
began = time.monotonic()
for i in range(5):
    print(subprocess.check_output(["curl", "-sS", "--max-time", "60", "--cacert", os.environ["CA"], "-x", os.environ["PROXY"],
        "-o", "/dev/null", "-w", "%{http_code}", "https://api.test/quick"]).decode())
open(os.environ["DIR"] + "/took", "w").write("%.2f s for five" % (time.monotonic() - began))
E'
    echo "$output"
    [ "$output" = $'200\n200\n200\n200\n200' ]
    took "beside 400 slow ones" "$DIR/took"
}
