# SPDX-License-Identifier: Apache-2.0
# For tests that count what is left. They run in namespaces of their own, in which everything that
# exists is theirs:
#
#     in_own_namespaces CMD…   with processes, mounts, sockets and network of its own
#     inventory FILE           what there is, one thing a line; by the first process in there
#     kernel_objects           NAME COUNT of what the kernel keeps for sandboxes, machine-wide; root
#     grown N BEFORE AFTER     those of which there are more than N more
#
# $BRIG_HOME and $TMPDIR are looked through as well. What a state directory keeps for good, the
# ledger, its key and what is known of the machine, is left out.

# A user has no rights over these namespaces without one of users around them.
in_own_namespaces() {
    local user=()
    is_root || user=(--user --map-current-user)
    unshare "${user[@]}" --mount --pid --net --ipc --fork --mount-proc --kill-child "$@"
}

# Starts none itself. One that has ended, and is still to be waited for, is none.
inventory_processes() {
    local dir words
    for dir in /proc/[0-9]*; do
        [ "$dir" != /proc/1 ] && grep_state "$dir" || continue
        mapfile -d '' words <"$dir/cmdline" && printf 'process %s\n' "${words[*]}"
    done 2>/dev/null
}

grep_state() {
    local line
    while read -r line; do
        [[ $line == State:* ]] || continue
        [[ $line != *Z* ]]
        return
    done <"$1/status"
    return 1
}

inventory_namespaces() {
    find /proc/[0-9]*/ns -type l -printf 'namespace %l\n' 2>/dev/null
    awk '$0 ~ / - nsfs / { print "namespace mounted at", $5 }' /proc/self/mountinfo
}

# Only those named after a run of this ledger are ours; other sandboxes may live on the machine.
inventory_cgroups() {
    [ -e "$BRIG_HOME/receipts.db" ] || return 0
    comm -12 <(find /sys/fs/cgroup -type d -name 'brig-*' 2>/dev/null | sed 's,.*/brig-,,' | sort -u) \
        <(sqlite3 -cmd '.timeout 5000' "$BRIG_HOME/receipts.db" 'SELECT DISTINCT run_id FROM receipts' | sort) |
        sed 's/^/cgroup /'
}

inventory() {
    inventory_processes >"$1.unsorted"
    {
        inventory_namespaces
        inventory_cgroups
        awk '{ print "mount", $5 }' /proc/self/mountinfo
        awk 'NR > 1 { print "socket", $NF }' /proc/net/unix
        awk 'FNR > 1 { print "socket", $2 }' /proc/net/tcp /proc/net/tcp6
        find "$BRIG_HOME" "$TMPDIR" -mindepth 1 ! -path "$BRIG_HOME/receipts.*" ! -path "$BRIG_HOME/host-packages" \
            \( -type d -printf 'folder %p\n' -o -printf 'file %p, %b blocks\n' \)
        find /dev/shm -mindepth 1 -user "$(id -u)" -printf 'file %p\n'
    } >>"$1.unsorted"
    sort -u "$1.unsorted" >"$1"
    rm "$1.unsorted"
}

# Objects in use. Several kinds may share a cache, so not every name is there. Dentries, and what
# they hold of files in cgroups that are gone, are a cache that gives way when memory is wanted.
kernel_objects() {
    awk '$1 ~ /^(mnt_cache|net_namespace|nsproxy|pid_namespace|user_namespace|uts_namespace|task_struct|cred_jar|sock_inode_cache|shmem_inode_cache|ovl_inode|signal_cache|files_cache|pid)$/ { print $1, $2 }' /proc/slabinfo
    awk 'NR > 1 { print "cgroups/" $1, $3 }' /proc/cgroups
}

grown() {
    join <(sort "$2") <(sort "$3") | awk -v most="$1" '$3 - $2 > most { print $1, $2, $3; n++ } END { exit !n }'
}
