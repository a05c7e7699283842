/* SPDX-License-Identifier: Apache-2.0 */
#include "model/budget.h"

#include "lib/base/text.h"

#define MILLION 1000000ULL
#define TIME_MAX_US (BUDGET_WINDOW_MAX_S * 16 * MILLION) /* of many at once */

const char *budget_scope_name(enum budget_scope scope)
{
    static const char *const names[BUDGET_SCOPE_COUNT] = {"principal", "tenant", "session"};

    return names[scope];
}

const char *budget_kind_name(enum budget_kind kind)
{
    static const char *const names[] = {
#define X(id, name, unit) name,
        BUDGET_KIND_TABLE(X)
#undef X
    };

    return names[kind];
}

/* "5.00" as millionths, exactly. */
static bool parse_millionths(struct str text, uint64_t *out)
{
    struct str fraction = text;
    struct str whole = str_cut(&fraction, '.');
    uint64_t units, part = 0;

    if (!str_u64(whole, &units) || units > 1000 * MILLION || fraction.n > 6 ||
        (whole.n < text.n && !str_u64(fraction, &part)))
        return false;
    for (size_t i = fraction.n; i < 6; i++)
        part *= 10;
    *out = units * MILLION + part;
    return true;
}

static bool parse_amount(enum budget_kind kind, struct str text, uint64_t *out)
{
    struct err ignored; /* the caller says what would be right: budget_amount_advice() */

    switch (kind) {
    case BUDGET_RUNS:
        return str_u64(text, out);
    case BUDGET_WALL:
    case BUDGET_CPU:
        if (duration_parse(text, out, &ignored) < 0 || *out > TIME_MAX_US / 1000)
            return false;
        *out *= 1000;
        return true;
    case BUDGET_EGRESS:
        return size_parse(text, out, &ignored) == 0;
    case BUDGET_COST:
        return parse_millionths(text, out);
    case BUDGET_KINDS:
        break;
    }
    return false;
}

bool budget_amount_parse(enum budget_kind kind, struct str text, uint64_t *out)
{
    uint64_t amount = 0;

    if (!parse_amount(kind, text, &amount) || amount == 0 || amount > BUDGET_MOST / 8)
        return false;
    *out = amount;
    return true;
}

bool cost_parse(struct str text, uint64_t *out)
{
    uint64_t cost = 0;

    if (!parse_millionths(text, &cost) || cost > BUDGET_MOST / 8)
        return false;
    *out = cost;
    return true;
}

const char *budget_amount_advice(enum budget_kind kind)
{
    static const char *const advice[BUDGET_KINDS] = {
        [BUDGET_RUNS] = "a whole number above 0",
        [BUDGET_WALL] = "a duration like 30m",
        [BUDGET_CPU] = "a duration like 10m",
        [BUDGET_EGRESS] = "a size up to 1024T, like 1G",
        [BUDGET_COST] = "an amount with at most six decimals, like 5.00",
    };

    return advice[kind];
}

bool budget_window_parse(struct str text, uint64_t *out_s)
{
    uint64_t number, seconds;
    struct err ignored; /* as above */

    if (str_ends(text, "d")) {
        if (!str_u64((struct str){text.p, text.n - 1}, &number) ||
            number > BUDGET_WINDOW_MAX_S / 86400)
            return false;
        seconds = number * 86400;
    } else {
        if (duration_parse(text, &number, &ignored) < 0 || number % 1000)
            return false;
        seconds = number / 1000;
    }
    if (seconds == 0 || seconds > BUDGET_WINDOW_MAX_S)
        return false;
    *out_s = seconds;
    return true;
}
