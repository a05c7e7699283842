/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "cmd/egress/meter.h"

/* Claims as a sandbox's windows have them. */
struct claims {
    struct meter_claim of[2];
    size_t n;
    size_t at;
};

static const struct meter_claim *next_claim(void *context)
{
    struct claims *claims = context;

    return claims->at < claims->n ? &claims->of[claims->at++] : NULL;
}

static void bind_to(struct meter *meter, struct claims *claims)
{
    claims->at = 0;
    meter_bind(meter, next_claim, claims);
}

TEST(without_a_bound_any_number_passes)
{
    struct meter meter = METER_OPEN;
    const struct meters meters = {
        {&meter, NULL}
    };
    struct claims claims = {.n = 1};

    CHECK(meters_left(&(struct meters){0}) == METER_NO_END);
    CHECK(meters_left(&meters) == METER_NO_END);
    claims.of[0] = meter_claim(&meter, METER_NO_END);
    bind_to(&meter, &claims);
    meters_pay(&meters, 1000);
    CHECK(meters_left(&meters) == METER_NO_END);
    claims.n = 0;
    bind_to(&meter, &claims);
    CHECK(meters_left(&meters) == METER_NO_END);
}

TEST(the_one_with_the_least_left_decides_and_each_pays)
{
    struct meter meter = METER_OPEN;
    const struct meters meters = {
        {&meter, NULL}
    };
    struct claims claims = {.n = 2};

    meters_pay(&meters, 77); /* before anybody is counted */
    claims.of[0] = meter_claim(&meter, 100);
    claims.of[1] = meter_claim(&meter, 300);
    bind_to(&meter, &claims);
    CHECK_INT(meters_left(&meters), 100);
    meters_pay(&meters, 100);
    CHECK_INT(meters_left(&meters), 0);
    CHECK(!meter_is_spent(&meter, &claims.of[0])); /* all of it, and nothing was kept back */
    meters_keep(&meters);
    CHECK(meter_is_spent(&meter, &claims.of[0]));
    CHECK(!meter_is_spent(&meter, &claims.of[1]));
    claims.of[0] = claims.of[1];
    claims.n = 1;
    bind_to(&meter, &claims);
    CHECK_INT(meters_left(&meters), 200);
}

TEST(after_a_bound_nothing_passes_while_nobody_is_counted)
{
    struct meter meter = METER_OPEN;
    const struct meters meters = {
        {&meter, NULL}
    };
    struct claims claims = {.n = 1};

    claims.of[0] = meter_claim(&meter, 100);
    bind_to(&meter, &claims);
    meters_pay(&meters, 40);
    claims.n = 0;
    bind_to(&meter, &claims);
    CHECK_INT(meters_left(&meters), 0);
    claims.n = 1;
    claims.of[0] = meter_claim(&meter, METER_NO_END);
    bind_to(&meter, &claims);
    CHECK(meters_left(&meters) == METER_NO_END);
}

TEST(both_ends_have_their_say)
{
    struct meter here = METER_OPEN, there = METER_OPEN;
    const struct meters meters = {
        {&here, &there}
    };
    struct claims claims = {.n = 1};

    claims.of[0] = meter_claim(&there, 10);
    bind_to(&there, &claims);
    CHECK_INT(meters_left(&meters), 10);
    meters_pay(&meters, 10);
    meters_keep(&meters);
    CHECK_INT(here.paid, 10);
    CHECK_INT(here.kept, 0);
    CHECK_INT(there.kept, 1);
}

TEST(amounts_do_not_wrap_and_zero_is_nothing)
{
    struct meter meter = METER_OPEN;
    const struct meters meters = {
        {&meter, NULL}
    };
    struct claims claims = {.n = 1};

    meters_pay(&meters, 1000);
    claims.of[0] = meter_claim(&meter, METER_NO_END - 1);
    bind_to(&meter, &claims);
    CHECK(meters_left(&meters) == METER_NO_END);
    claims.of[0] = meter_claim(&meter, 0);
    bind_to(&meter, &claims);
    CHECK_INT(meters_left(&meters), 0);
    CHECK_INT(meters_left(&(struct meters){
                  {&(struct meter){0}, NULL}
    }),
              0);
}
