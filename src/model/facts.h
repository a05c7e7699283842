/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "model/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a sandbox is, as plain facts: equip writes down those it plans, the provider those it
 * sees, and both are hashed and compared by the same code. Zero is the open side on purpose:
 * a wall nobody looked at does not stand. */

struct mount_fact {
    const char *target;
    const char *kind;   /* "bind", "layer", "tmpfs", "proc", "devpts", "readonly", "mask",
                           "protected" */
    const char *source; /* of a bind or protected: the path that was validated; otherwise "" */
    bool writable;
    bool nosuid;
    bool nodev;
    bool noexec;
};

/* Bits of struct facts.namespaces. */
enum namespace_fact {
    NAMESPACE_USER = 1 << 0,
    NAMESPACE_MOUNT = 1 << 1,
    NAMESPACE_PID = 1 << 2,
    NAMESPACE_NETWORK = 1 << 3,
    NAMESPACE_IPC = 1 << 4,
    NAMESPACE_UTS = 1 << 5,
    NAMESPACE_CGROUP = 1 << 6,
};
#define NAMESPACES_ALL 127U

/* A resource limit of the kernel, per process or per user namespace. */
struct rlimit_fact {
    const char *name;
    uint32_t resource;
    uint64_t value;
};

#define RLIMITS_MAX 16

struct facts {
    const char *provider_version;
    const char *image_digest;

    const struct mount_fact *mounts; /* sorted by target */
    size_t mount_n;

    const char *const *interfaces; /* of its network namespace, sorted */
    size_t interface_n;
    const char
        *egress_hash; /* of the rules that hold for it, by whoever holds them; NULL: none do */
    const char *egress_fault; /* why none do, for people; or NULL */

    struct limits limits; /* value and means */
    struct rlimit_fact rlimits[RLIMITS_MAX];
    size_t rlimit_n;

    unsigned namespaces; /* own ones */
    bool no_new_privs;
    bool capabilities_empty; /* all five sets */
    bool host_user_is_root;  /* planned false; a provider that cannot tell says true */
    bool host_groups_left;   /* supplementary groups are gone, where they can be dropped */
    unsigned seccomp_filters;
    bool landlock_refuses; /* what it forbids was tried and refused */
    bool seccomp_refuses;
    bool sockets_refused; /* making one was tried and refused by the filter meant for that */
    bool exec_refused;    /* the same for running a second program */
    unsigned landlock_abi;
};
