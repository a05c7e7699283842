#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What the pages show is what happens: run-page runs their sh blocks and compares the answers.

load common

setup() {
    common_setup
    need python3 jq
    ln -s "$BRIG" brig
    PATH=$WORK:$PATH
}

run_page() {
    run "$BRIG_ROOT/tests/flow/run-page" "$BRIG_ROOT/$1"
    status_is 0
    says "$2 blocks"
}

@test "README.md does what it shows" {
    run_page README.md 10
}

@test "docs/formats/posture.md does what it shows" {
    run_page docs/formats/posture.md 6
}

@test "docs/formats/request.md does what it shows" {
    run_page docs/formats/request.md 2
}

# The backquotes belong to the page.
# shellcheck disable=SC2016
@test "run-page notices another answer, another status and an open block" {
    printf '```sh\necho a\n```\n```text\nb\n```\n' >answer.md
    run "$BRIG_ROOT/tests/flow/run-page" answer.md
    status_is 1
    says "1 of 1 blocks differ"
    printf '```sh\nexit 3\n```\n' >status.md
    run "$BRIG_ROOT/tests/flow/run-page" status.md
    status_is 1
    printf '```sh\necho a\n' >open.md
    run "$BRIG_ROOT/tests/flow/run-page" open.md
    status_is 1
    says "not closed"
}

# By the table of docs/formats/posture.md, from the mount table as the command sees it.
@test "mounts_hash follows from the mount table inside" {
    mkdir shown
    run --separate-stderr brig sandbox exec --json --mount "$WORK/shown:/workspace:rw" -- cat /proc/self/mountinfo
    status_is 0
    printf '%s' "$output" >run.json
    run python3 - "$WORK/shown" <<'END'
import hashlib, json, sys

run = json.load(open("run.json"))
layers = ("/sandbox/output", "/sandbox/tmp", "/tmp", "/home/sandbox")


def kind_and_source(target, type):
    if target == "/workspace":
        return "bind", sys.argv[1]
    if target in layers:
        return "layer", ""
    if target.startswith("/proc/"):
        return "readonly" if type == "proc" else "mask", ""
    if type in ("tmpfs", "proc", "devpts") and target in ("/", "/dev/pts", "/dev/shm", "/proc", "/run"):
        return type, ""
    return "bind", target


mounts = []
for line in run["stdout"].splitlines():
    fields = line.split(" ")
    flags = fields[5].split(",")
    kind, source = kind_and_source(fields[4], fields[fields.index("-") + 1])
    mounts.append({"access": "rw" if "rw" in flags else "ro", "kind": kind, "nodev": "nodev" in flags,
                   "noexec": "noexec" in flags, "nosuid": "nosuid" in flags, "source": source,
                   "target": fields[4]})
mounts.sort(key=lambda mount: mount["target"].encode())
text = json.dumps({"mounts": mounts}, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
print("sha256:" + hashlib.sha256(text.encode()).hexdigest())
END
    status_is 0
    [ "$output" = "$(jq -r .mounts_hash run.json)" ]
}

@test "the limits README.md calls default are the defaults" {
    run --separate-stderr brig sandbox exec --provider mock --json -- true
    status_is 0
    json_is '[.limits[] | .origin] | unique | join(" ")' default
    json_is '[.limits | .cpu_millis, .memory_bytes, .pids, .disk_bytes, .inodes, .wall_ms, .output_bytes
              | .value] | join(" ")' "1000 $((512 << 20)) 256 $((1 << 30)) 200000 30000 $((10 << 20))"
    grep -q '1 CPU.*cgroup' "$BRIG_ROOT/README.md"
    grep -q '| memory | 512 MiB' "$BRIG_ROOT/README.md"
    grep -q '| processes, threads | 256' "$BRIG_ROOT/README.md"
    grep -q '| disk | 1 GiB' "$BRIG_ROOT/README.md"
    grep -q '| files | 200 000' "$BRIG_ROOT/README.md"
    grep -q '| time | 30 s' "$BRIG_ROOT/README.md"
    grep -q '10 MiB a stream' "$BRIG_ROOT/README.md"
}

# What README.md says of both kinds of starters.
@test "each limit is held as README.md says" {
    run --separate-stderr brig sandbox exec --json -- true
    status_is 0
    json_is '[.limits | .disk_bytes, .inodes, .wall_ms, .output_bytes | .means] | join(" ")' "watch watch relay relay"
    json_is '.limits.memory_bytes.means | . == "cgroup" or . == "watch"' true
    json_is '.limits.pids.means | . == "cgroup" or . == "rlimit"' true
    json_is '.limits.cpu_millis.means | . == "cgroup" or . == "affinity"' true
}

@test "every link of the pages leads to something" {
    cd "$BRIG_ROOT"
    for page in README.md SECURITY.md docs/*.md docs/formats/*.md docs/decisions/*.md; do
        while read -r link; do
            case $link in
            http* | '#'*) continue ;;
            esac
            [ -e "$(dirname "$page")/${link%%#*}" ] || {
                echo "$page: $link"
                return 1
            }
        done < <(grep -o '](\([^)]*\))' "$page" | sed 's/^](//; s/)$//')
    done
}
