/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/equip/parts.h"

#include <stdio.h>
#include <string.h>

static void add_check(struct run *run, const char *name, enum reason reason, const char *expected,
                      const char *observed)
{
    struct check *check = &run->checks.of[run->checks.n++];

    *check = (struct check){.name = name,
                            .reason = reason,
                            .expected = arena_text(&run->mem, str_of(expected)),
                            .observed = arena_text(&run->mem, str_of(observed)),
                            .passed = strcmp(expected, observed) == 0};
}

static void add_bool(struct run *run, const char *name, bool expected, bool observed)
{
    add_check(run, name, REASON_PREFLIGHT_ISOLATION, expected ? "yes" : "no",
              observed ? "yes" : "no");
}

static void add_number(struct run *run, const char *name, unsigned expected, unsigned observed)
{
    char left[16], right[16];

    (void)snprintf(left, sizeof left, "%u", expected);
    (void)snprintf(right, sizeof right, "%u", observed);
    add_check(run, name, REASON_PREFLIGHT_ISOLATION, left, right);
}

static void check_pins(struct run *run)
{
    const struct plan *plan = &run->plan;

    add_check(run, "provider version", REASON_PREFLIGHT_PROVIDER_VERSION,
              plan->provider_version_pin ? plan->provider_version_pin
                                         : run->planned.provider_version,
              run->observed.provider_version);
    add_check(run, "image digest", REASON_PREFLIGHT_IMAGE_DIGEST,
              plan->image_digest_pin ? plan->image_digest_pin : run->planned.image_digest,
              run->observed.image_digest);
    if (plan->demand_observed)
        add_bool(run, "evidence is observed", true, run->observed.evidence == EVIDENCE_OBSERVED);
}

static void check_isolation(struct run *run)
{
    const struct facts *plan = &run->intended;
    const struct facts *seen = &run->seen;

    add_bool(run, "host user is root", plan->host_user_is_root, seen->host_user_is_root);
    add_bool(run, "supplementary groups left", plan->host_groups_left, seen->host_groups_left);
    add_bool(run, "capabilities empty", plan->capabilities_empty, seen->capabilities_empty);
    add_bool(run, "no new privileges", plan->no_new_privs, seen->no_new_privs);
    add_number(run, "own namespaces", plan->namespaces, seen->namespaces);
    add_number(run, "seccomp filters", plan->seccomp_filters, seen->seccomp_filters);
    add_bool(run, "seccomp refuses", plan->seccomp_refuses, seen->seccomp_refuses);
    add_bool(run, "sockets refused", plan->sockets_refused, seen->sockets_refused);
    add_bool(run, "second program refused", plan->exec_refused, seen->exec_refused);
    add_number(run, "landlock abi", plan->landlock_abi, seen->landlock_abi);
    add_bool(run, "landlock refuses", plan->landlock_refuses, seen->landlock_refuses);
    /* Last: the hash only says that one of the above differs. */
}

/* Last: it only sums up what the checks before it name. */
static void check_spec(struct run *run)
{
    add_check(run, "sandbox spec", REASON_PREFLIGHT_ISOLATION, run->planned.sandbox_spec_hash,
              run->observed.sandbox_spec_hash);
}

/* The first row of the mount table that differs, in words; the hash only says that one does. */
static const char *mount_difference(struct run *run)
{
    const struct facts *plan = &run->intended;
    const struct facts *seen = &run->seen;
    size_t n = plan->mount_n < seen->mount_n ? plan->mount_n : seen->mount_n;

    for (size_t i = 0; i < n; i++) {
        const struct mount_fact *a = &plan->mounts[i], *b = &seen->mounts[i];

        if (strcmp(a->target, b->target) != 0)
            return arena_printf(&run->mem, "%s instead of %s", b->target, a->target);
        if (strcmp(a->kind, b->kind) != 0 || strcmp(a->source, b->source) != 0)
            return arena_printf(&run->mem, "%s is %s %s instead of %s %s", a->target, b->kind,
                                b->source, a->kind, a->source);
        if (a->writable != b->writable || a->nosuid != b->nosuid || a->nodev != b->nodev ||
            a->noexec != b->noexec)
            return arena_printf(&run->mem, "%s has other flags", a->target);
    }
    if (plan->mount_n != seen->mount_n)
        return arena_printf(&run->mem, "%zu mounts instead of %zu", seen->mount_n, plan->mount_n);
    return "as planned";
}

static const char *limit_difference(struct run *run)
{
    const struct facts *plan = &run->intended;
    const struct facts *seen = &run->seen;

    for (enum limit_kind kind = 0; kind < LIMIT_COUNT; kind++) {
        const struct limit *a = &plan->limits.of[kind], *b = &seen->limits.of[kind];

        if (a->value != b->value || a->means != b->means)
            return arena_printf(&run->mem, "%s is %llu by %s instead of %llu by %s",
                                limit_name(kind), (unsigned long long)b->value,
                                limit_means_name(b->means), (unsigned long long)a->value,
                                limit_means_name(a->means));
    }
    for (size_t i = 0; i < plan->rlimit_n; i++)
        if (i >= seen->rlimit_n || plan->rlimits[i].value != seen->rlimits[i].value)
            return arena_printf(
                &run->mem, "rlimit %s is %llu instead of %llu", plan->rlimits[i].name,
                i < seen->rlimit_n ? (unsigned long long)seen->rlimits[i].value : 0ULL,
                (unsigned long long)plan->rlimits[i].value);
    return "as planned";
}

/* Who holds the rules, in words. */
static void check_egress(struct run *run)
{
    const struct facts *seen = &run->seen;

    if (run->intended.egress_hash)
        add_check(run, "network rules", REASON_PREFLIGHT_EGRESS_POLICY, "held",
                  seen->egress_hash    ? "held"
                  : seen->egress_fault ? seen->egress_fault
                                       : "nobody holds them");
}

static void check_hashes(struct run *run)
{
    check_egress(run);
    add_check(run, "egress policy", REASON_PREFLIGHT_EGRESS_POLICY, run->planned.egress_policy_hash,
              run->observed.egress_policy_hash);
    add_check(run, "mounts", REASON_PREFLIGHT_MOUNT_POLICY, "as planned", mount_difference(run));
    add_check(run, "mount policy", REASON_PREFLIGHT_MOUNT_POLICY, run->planned.mounts_hash,
              run->observed.mounts_hash);
    add_check(run, "limits", REASON_PREFLIGHT_RESOURCE_LIMITS, "as planned", limit_difference(run));
    add_check(run, "resource limits", REASON_PREFLIGHT_RESOURCE_LIMITS,
              run->planned.resource_limits_hash, run->observed.resource_limits_hash);
}

static void judge(struct run *run)
{
    for (size_t i = 0; i < run->checks.n; i++) {
        const struct check *check = &run->checks.of[i];

        if (check->passed)
            continue;
        (void)refuse(run, check->reason, "preflight: %s: expected %.200s, observed %.200s",
                     check->name, check->expected, check->observed);
        return;
    }
}

int equip_compare(struct equip *equip, struct run *run, struct err *err)
{
    char digest[MODEL_HASH_BYTES];

    /* The image is looked at again, now that the sandbox stands on it. */
    if (image_digest(equip->memory, equip->state_dir, run, digest, err) < 0)
        return -1;
    run->seen.image_digest = arena_text(&run->mem, str_of(digest));
    if (posture_seen(run, &run->observed, err) < 0)
        return -1;
    run->checks.n = 0;
    check_pins(run);
    check_hashes(run);
    check_isolation(run);
    check_spec(run);
    judge(run);
    return 0;
}
