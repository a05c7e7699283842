/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/equip/parts.h"

#include <string.h>

/* How the facts name each kind; NULL is no mount. A layer is one whether or not a snapshot or an
 * image lies below it: what it shows is not what it is. */
static const char *kind_name(enum mount_kind kind)
{
    switch (kind) {
    case MOUNT_BIND:
        return "bind";
    case MOUNT_LAYER:
        return "layer";
    case MOUNT_TMPFS:
        return "tmpfs";
    case MOUNT_PROC:
        return "proc";
    case MOUNT_DEVPTS:
        return "devpts";
    case MOUNT_READONLY:
        return "readonly";
    case MOUNT_MASK:
        return "mask";
    case MOUNT_PROTECTED:
        return "protected";
    case MOUNT_NESTED:
        return "nested";
    case MOUNT_SYMLINK:
    case MOUNT_FOLDER:
    case MOUNT_FILE:
        return NULL;
    }
    return NULL;
}

static int by_target(const void *a, const void *b)
{
    const struct mount_fact *left = a, *right = b;

    return strcmp(left->target, right->target);
}

static void plan_mount_facts(struct run *run)
{
    const struct plan *plan = &run->plan;
    struct mount_fact *facts = arena_array(&run->mem, struct mount_fact, plan->mount_n + 1);
    size_t n = 0;

    if (plan->mount_n == 0 || strcmp(plan->mounts[0].target, "/") != 0)
        facts[n++] = (struct mount_fact){
            .target = "/", .kind = "tmpfs", .source = "", .nosuid = true, .nodev = true};
    for (size_t i = 0; i < plan->mount_n; i++) {
        const struct plan_mount *mount = &plan->mounts[i];
        const char *kind = kind_name(mount->kind);
        bool bound = mount->kind == MOUNT_BIND || mount->kind == MOUNT_NESTED ||
                     mount->kind == MOUNT_PROTECTED;

        if (!kind)
            continue;
        facts[n++] = (struct mount_fact){
            .target = mount->target,
            .kind = kind,
            .source = bound ? mount->source : "",
            .writable = mount->access == MOUNT_RW,
            .nosuid = true,
            .nodev = !mount->is_device && mount->kind != MOUNT_DEVPTS,
            .noexec = mount->noexec,
        };
    }
    qsort(facts, n, sizeof *facts, by_target);
    run->intended.mounts = facts;
    run->intended.mount_n = n;
}

void plan_facts(struct run *run)
{
    static const char *const interfaces[] = {"lo"};
    struct facts *facts = &run->intended;

    facts->provider_version = run->offer.version;
    facts->limits = run->plan.limits;
    if (plan_has_network(&run->plan.egress))
        facts->egress_hash = run->plan.egress.hash;
    if (run->offer.runs_nothing)
        return;
    plan_mount_facts(run);
    facts->interfaces = interfaces;
    facts->interface_n = COUNT(interfaces);
    memcpy(facts->rlimits, run->plan.rlimits, sizeof facts->rlimits);
    facts->rlimit_n = run->plan.rlimit_n;
    facts->namespaces = NAMESPACES_ALL;
    facts->no_new_privs = true;
    facts->capabilities_empty = true;
    facts->host_groups_left = run->offer.started_by_root;
    facts->seccomp_filters = run->offer.seccomp_filters;
    if (run->plan.limits.of[LIMIT_MEMORY].means == MEANS_WATCH)
        facts->seccomp_filters++; /* against memory that belongs to no process */
    facts->sockets_refused = run->plan.sockets_none;
    if (facts->sockets_refused)
        facts->seccomp_filters++;
    facts->exec_refused = run->plan.exec_once;
    if (facts->exec_refused)
        facts->seccomp_filters++;
    facts->landlock_refuses = true;
    facts->seccomp_refuses = true;
    facts->landlock_abi = run->offer.landlock_abi;
}
