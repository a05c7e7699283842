/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/equip/parts.h"
#include "test.h"

#define BIT(means) (1U << MEANS_##means)

static void set_up(struct run *run)
{
    run_init(run);
    run->verdict.kind = VERDICT_ALLOW;
    run->offer.processors = 4;
    run->offer.means[LIMIT_MEMORY] = BIT(CGROUP) | BIT(WATCH);
    run->offer.means[LIMIT_PIDS] = BIT(CGROUP) | BIT(RLIMIT);
    run->offer.means[LIMIT_CPU] = BIT(CGROUP) | BIT(AFFINITY);
    run->offer.means[LIMIT_DISK] = run->offer.means[LIMIT_INODES] = BIT(WATCH);
    run->offer.means[LIMIT_WALL] = run->offer.means[LIMIT_OUTPUT] = BIT(RELAY);
}

TEST(defaults_take_the_strongest_means)
{
    static const struct {
        unsigned offered;
        enum limit_means chosen;
    } cases[] = {
        {BIT(CGROUP) | BIT(WATCH),                 MEANS_CGROUP  },
        {BIT(WATCH),                               MEANS_WATCH   },
        {BIT(RLIMIT) | BIT(WATCH),                 MEANS_RLIMIT  },
        {BIT(AFFINITY) | BIT(WATCH),               MEANS_AFFINITY},
        {BIT(RELAY) | BIT(CGROUP) | BIT(AFFINITY), MEANS_RELAY   },
        {0,                                        MEANS_NONE    },
    };
    const struct profile profile = {0};

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct run run;
        struct err err;

        set_up(&run);
        run.offer.means[LIMIT_MEMORY] = cases[i].offered;
        CHECK_INT(plan_limits(&profile, &run, &err), 0);
        CHECK_INT(run.verdict.kind, VERDICT_ALLOW);
        CHECK_INT(run.plan.limits.of[LIMIT_MEMORY].means, cases[i].chosen);
        CHECK_INT(run.plan.limits.of[LIMIT_MEMORY].value, 512 << 20);
        CHECK_INT(run.plan.limits.of[LIMIT_MEMORY].origin, ORIGIN_DEFAULT);
        run_done(&run);
    }
}

TEST(who_asks_last_wins)
{
    static const struct {
        uint64_t flag, profile, policy;
        uint64_t value;
        enum limit_origin origin;
    } cases[] = {
        {0,   0,  0,  256, ORIGIN_DEFAULT},
        {0,   0,  90, 90,  ORIGIN_POLICY },
        {0,   80, 90, 80,  ORIGIN_PROFILE},
        {70,  80, 90, 70,  ORIGIN_FLAG   },
        {70,  0,  0,  70,  ORIGIN_FLAG   },
        {90,  80, 90, 90,  ORIGIN_FLAG   },
        {300, 0,  0,  300, ORIGIN_FLAG   },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct profile profile = {0};
        struct run run;
        struct err err;

        set_up(&run);
        run.action.limits.of[LIMIT_PIDS] =
            (struct limit){.value = cases[i].flag, .origin = ORIGIN_FLAG};
        profile.limits.of[LIMIT_PIDS] =
            (struct limit){.value = cases[i].profile, .origin = ORIGIN_PROFILE};
        run.demand.limits.of[LIMIT_PIDS] =
            (struct limit){.value = cases[i].policy, .origin = ORIGIN_POLICY};
        CHECK_INT(plan_limits(&profile, &run, &err), 0);
        CHECK_INT(run.verdict.kind, VERDICT_ALLOW);
        CHECK_INT(run.plan.limits.of[LIMIT_PIDS].value, cases[i].value);
        CHECK_INT(run.plan.limits.of[LIMIT_PIDS].origin, cases[i].origin);
        run_done(&run);
    }
}

static void check_refused(struct run *run, const struct profile *profile, enum reason reason,
                          const char *text)
{
    struct err err;

    CHECK_INT(plan_limits(profile, run, &err), 0);
    CHECK_INT(run->verdict.kind, VERDICT_DENY);
    CHECK_TEXT(reason_code(run->verdict.reason), reason_code(reason));
    CHECK_TEXT(run->verdict.text, text);
    run_done(run);
}

TEST(nobody_goes_above_the_policy)
{
    struct profile profile = {0};
    struct run run;

    set_up(&run);
    run.demand.limits.of[LIMIT_PIDS].value = 10;
    run.action.limits.of[LIMIT_PIDS].value = 11;
    check_refused(&run, &profile, REASON_LIMIT_ABOVE_POLICY,
                  "pids of 11: the policy allows at most 10");
    set_up(&run);
    run.demand.limits.of[LIMIT_PIDS].value = 10;
    profile.limits.of[LIMIT_PIDS].value = 11;
    check_refused(&run, &profile, REASON_LIMIT_ABOVE_POLICY,
                  "pids of 11: the policy allows at most 10");
}

TEST(what_was_asked_for_and_cannot_be_held_is_refused)
{
    struct profile profile = {0};
    struct run run;

    set_up(&run);
    run.offer.means[LIMIT_MEMORY] = 0;
    run.offer.why[LIMIT_MEMORY] = "no controller";
    run.action.limits.of[LIMIT_MEMORY] = (struct limit){.value = 64 << 20, .origin = ORIGIN_FLAG};
    check_refused(&run, &profile, REASON_LIMIT_NOT_ENFORCEABLE,
                  "memory_bytes of 67108864 bytes (from the flag) cannot be held here: no "
                  "controller; see brig doctor");
    set_up(&run);
    run.offer.means[LIMIT_CPU] = BIT(AFFINITY);
    run.demand.limits.of[LIMIT_CPU] = (struct limit){.value = 500, .origin = ORIGIN_POLICY};
    check_refused(&run, &profile, REASON_LIMIT_NOT_ENFORCEABLE,
                  "cpu_millis of 500 thousandths of a CPU (from the policy) cannot be held here; "
                  "see brig doctor");
    set_up(&run);
    run.offer.means[LIMIT_MEMORY] = BIT(WATCH);
    profile.least[LIMIT_MEMORY] = MEANS_CGROUP;
    check_refused(
        &run, &profile, REASON_LIMIT_NOT_ENFORCEABLE,
        "memory_bytes of 536870912 bytes (from the default) cannot be held as strongly as "
        "the profile asks; see brig doctor");
}

TEST(a_provider_that_runs_nothing_holds_everything)
{
    struct profile profile = {.least = {[LIMIT_MEMORY] = MEANS_CGROUP}};
    struct run run;
    struct err err;

    run_init(&run);
    run.verdict.kind = VERDICT_ALLOW;
    run.offer.runs_nothing = true;
    run.action.limits.of[LIMIT_PIDS] = (struct limit){.value = 5, .origin = ORIGIN_FLAG};
    CHECK_INT(plan_limits(&profile, &run, &err), 0);
    CHECK_INT(run.verdict.kind, VERDICT_ALLOW);
    CHECK_INT(run.plan.rlimit_n, 0);
    run_done(&run);
}
