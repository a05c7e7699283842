/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/equip/parts.h"

#include "lib/linux/cgroup.h"

#include <sys/resource.h>

#define OPEN_FILES 4096U
#define LOCKED_BYTES (8ULL << 20)

/* The strongest means on offer, in the order in which we prefer them. */
static enum limit_means strongest(unsigned offered)
{
    static const enum limit_means order[] = {MEANS_RELAY, MEANS_CGROUP, MEANS_RLIMIT,
                                             MEANS_AFFINITY, MEANS_WATCH};

    for (size_t i = 0; i < COUNT(order); i++)
        if (offered & 1U << order[i])
            return order[i];
    return MEANS_NONE;
}

/* Who asked last wins: the flag, else the profile, else the policy, else the default. */
static struct limit choose(const struct profile *profile, const struct run *run,
                           enum limit_kind kind)
{
    const struct limit *sources[] = {&run->action.limits.of[kind], &profile->limits.of[kind],
                                     &run->demand.limits.of[kind]};

    for (size_t i = 0; i < COUNT(sources); i++)
        if (sources[i]->value)
            return *sources[i];
    /* What a layer above the policy says is no default: it has to be held. */
    if (run->demand.most[kind] && run->demand.most[kind] < limit_default(kind))
        return (struct limit){.value = run->demand.most[kind], .origin = ORIGIN_POLICY};
    return (struct limit){.value = limit_default(kind), .origin = ORIGIN_DEFAULT};
}

static int refuse_means(struct run *run, enum limit_kind kind, const struct limit *limit,
                        const char *what)
{
    const char *why = run->offer.why[kind];

    return refuse(run, REASON_LIMIT_NOT_ENFORCEABLE,
                  "%s of %llu %s (from the %s) %s%s%.300s; see brig doctor", limit_name(kind),
                  (unsigned long long)limit->value, limit_unit(kind),
                  limit_origin_name(limit->origin), what, why ? ": " : "", why ? why : "");
}

/* Affinity knows whole processors only. A built-in default takes the next whole number. */
static unsigned usable_means(const struct run *run, enum limit_kind kind, const struct limit *limit)
{
    unsigned means = run->offer.means[kind];

    if (kind == LIMIT_CPU && limit->value % 1000 != 0)
        means &= ~(1U << MEANS_AFFINITY);
    return means;
}

/* What policy and layers do not allow so much of is refused. */
static void check_most(struct run *run, enum limit_kind kind, uint64_t value)
{
    uint64_t ceiling = run->demand.limits.of[kind].value;
    uint64_t most = run->demand.most[kind];

    if (ceiling && value > ceiling)
        (void)refuse(run, REASON_LIMIT_ABOVE_POLICY, "%s of %llu: the policy allows at most %llu",
                     limit_name(kind), (unsigned long long)value, (unsigned long long)ceiling);
    else if (most && value > most)
        (void)refuse(run, REASON_LIMIT_ABOVE_POLICY,
                     "%s of %llu: a ceiling or overlay allows at most %llu", limit_name(kind),
                     (unsigned long long)value, (unsigned long long)most);
}

static int plan_limit(const struct profile *profile, struct run *run, enum limit_kind kind)
{
    struct limit limit = choose(profile, run, kind);

    check_most(run, kind, limit.value);
    /* A command in a kept sandbox has a time of its own, which is no wall of that. */
    if (kind == LIMIT_WALL)
        check_most(run, kind, run->action.wall_ms);
    if (is_refused(run))
        return 0;
    if (kind == LIMIT_MEMORY)
        limit.value = cgroup_memory_round(limit.value);
    limit.means = strongest(usable_means(run, kind, &limit));
    if (limit.means == MEANS_NONE && limit.origin != ORIGIN_DEFAULT && !run->offer.runs_nothing)
        return refuse_means(run, kind, &limit, "cannot be held here");
    if (limit.means < profile->least[kind] && !run->offer.runs_nothing)
        return refuse_means(run, kind, &limit, "cannot be held as strongly as the profile asks");
    run->plan.limits.of[kind] = limit;
    return 0;
}

static void add_rlimit(struct plan *plan, const char *name, uint32_t resource, uint64_t value)
{
    struct rlimit now;

    /* We can only go down from where we are. */
    if (getrlimit((__rlimit_resource_t)resource, &now) == 0 && now.rlim_max != RLIM_INFINITY &&
        value > now.rlim_max)
        value = now.rlim_max;
    plan->rlimits[plan->rlimit_n++] = (struct rlimit_fact){name, resource, value};
}

/* Per process, whatever else holds the sandbox as a whole. */
static void plan_rlimits(struct plan *plan)
{
    const struct limit *pids = &plan->limits.of[LIMIT_PIDS];

    add_rlimit(plan, "core", RLIMIT_CORE, 0);
    add_rlimit(plan, "nofile", RLIMIT_NOFILE, OPEN_FILES);
    add_rlimit(plan, "memlock", RLIMIT_MEMLOCK, LOCKED_BYTES);
    add_rlimit(plan, "rtprio", RLIMIT_RTPRIO, 0);
    add_rlimit(plan, "nice", RLIMIT_NICE, 0);
    add_rlimit(plan, "fsize", RLIMIT_FSIZE, plan->limits.of[LIMIT_DISK].value);
    /* Counted per user namespace since Linux 5.14, so this is the sandbox's own count. */
    if (pids->means == MEANS_RLIMIT)
        add_rlimit(plan, "nproc", RLIMIT_NPROC, pids->value);
}

int plan_limits(const struct profile *profile, struct run *run, struct err *err)
{
    (void)err;
    for (enum limit_kind kind = 0; kind < LIMIT_COUNT; kind++)
        if (plan_limit(profile, run, kind) < 0 || is_refused(run))
            return 0;
    if (!run->offer.runs_nothing)
        plan_rlimits(&run->plan);
    return 0;
}
