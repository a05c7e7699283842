/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to flow/budget. */

#include "flow/budget/budget.h"
#include "lib/store/store.h"

#include <sys/types.h>

struct budgets {
    struct store *store;
};

/* What a run may cost when it lasts so long; BUDGET_MOST when that is more. */
struct budget_rate {
    struct budget_prices prices;
    uint64_t cpu_millis;
    uint64_t memory_bytes;
};
uint64_t rate_cost(const struct budget_rate *rate, uint64_t wall_us);
/* What processors give in that time, likewise. */
uint64_t rate_cpu_us(const struct budget_rate *rate, uint64_t wall_us);
/* The longest that costs at most so much; what there is must be enough for the price of a run. */
uint64_t rate_wall_us(const struct budget_rate *rate, uint64_t cost);

/* The sum, or BUDGET_MOST. */
uint64_t budget_add(uint64_t a, uint64_t b);
/* What is left, or nothing. */
uint64_t budget_less(uint64_t a, uint64_t b);

/* The time, which does not go back; inside a transaction it is kept when it went on. */
int budget_now(struct budgets *budgets, bool keep, int64_t *out, struct err *err) MUST_CHECK;

/* Columns used_… and held_… from `first` on, in the order of the kinds. */
void read_amounts(const struct statement *st, int first, uint64_t out[BUDGET_KINDS]);
int bind_amounts(struct statement *st, int first, const uint64_t of[BUDGET_KINDS]);

/* An account that is over begins anew: now, with what is reserved. */
void account_renew(struct budget_account *account, int64_t now);
/* 1: it is there; *out is the account as it is now, empty when it is not. The names are ask's. With
 * budgets NULL there is none. */
int account_read(struct budgets *budgets, enum budget_scope scope, const char *name,
                 uint64_t window_s, int64_t now, struct budget_account *out,
                 struct err *err) MUST_CHECK;
int account_write(struct budgets *budgets, const struct budget_account *account,
                  struct err *err) MUST_CHECK;

/* A process and when it began: another one of the same number is another one. False: it is gone. */
#define OWNER_BYTES 64
bool owner_text(pid_t pid, char *out, size_t size);
