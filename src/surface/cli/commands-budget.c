/* SPDX-License-Identifier: Apache-2.0 */

/* Rows about budgets. */

#include "surface/cli/commands.h"

#include "surface/cli/options.h"

/* Version 14 of clang-format garbles tables that share rows through macros. */
/* clang-format off */

static const struct cli_option show_options[] = {
    {"--principal", "NAME", VALUE_TEXT, .help = "only what is for this one"},
    {"--policy", "FILE", VALUE_FILE, .help = "with the budgets of this policy instead of the standing one's"},
    OPTION_JSON,
    OPTIONS_END,
};

#define OPTIONS_PLACE \
    {"--per", "WHOM", VALUE_CHOICE, .values = "principal tenant session", .help = "for whom: principal, tenant or session"}, \
    {"--name", "NAME", VALUE_TEXT, .help = "only for this one (default: for each)"}, \
    {"--within", "DUR", VALUE_TEXT, .help = "so long, like 1h or 30d; of a session: session"}

static const struct cli_option set_options[] = {
    OPTIONS_PLACE,
    {"--runs", "N", VALUE_TEXT, .help = "commands"},
    {"--wall", "DUR", VALUE_TEXT, .help = "time they take, added up"},
    {"--cpu", "DUR", VALUE_TEXT, .help = "processor time"},
    {"--egress", "SIZE", VALUE_TEXT, .help = "bytes to and from the network"},
    {"--egress-run", "SIZE", VALUE_TEXT, .help = "at most so many for one run (default: all that are left)"},
    {"--cost", "AMOUNT", VALUE_TEXT, .help = "cost by the prices of \"budget price\", like 5.00"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option remove_options[] = {
    OPTIONS_PLACE,
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option reset_options[] = {
    {"--principal", "NAME", VALUE_TEXT, .help = "only of this one"},
    {"--tenant", "NAME", VALUE_TEXT, .help = "only of this tenant as a whole"},
    {"--session", "ID", VALUE_TEXT, .help = "only of this session"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option renew_options[] = {
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option price_options[] = {
    {"--run", "AMOUNT", VALUE_TEXT, .help = "of a run, whatever it takes (default: 0)"},
    {"--vcpu-second", "AMOUNT", VALUE_TEXT, .help = "of a processor it may use, for a second (default: 0)"},
    {"--gib-second", "AMOUNT", VALUE_TEXT, .help = "of a GiB of memory it may use, for a second (default: 0)"},
    OPTION_JSON,
    OPTIONS_END,
};

/* clang-format on */

const struct command budget_show_row = {
    .path = "budget show",
    .operands = "",
    .summary = "what may be used together, and what is left of it",
    .help = "Every limit, of the operator and of the standing policy, with whom it is for, what is "
            "used, what is reserved by runs that have not ended, and when it renews.",
    .options = show_options,
    .run = run_budget_show,
};

const struct command budget_set_row = {
    .path = "budget set",
    .operands = "",
    .summary = "limit what runs may use together",
    .help = "Holds beside the budgets of every policy, also of one that a request brings: none can "
            "widen it. Replaces the limit of the same --per, --name and --within.",
    .options = set_options,
    .run = run_budget_set,
};

const struct command budget_remove_row = {
    .path = "budget remove",
    .operands = "",
    .summary = "take such a limit away",
    .help = "The one that \"budget set\" made with the same --per, --name and --within.",
    .options = remove_options,
    .run = run_budget_remove,
};

const struct command budget_reset_row = {
    .path = "budget reset",
    .operands = "",
    .summary = "forget what was used",
    .help = "Counts begin anew; what runs have reserved stays. Without an option everybody's, and "
            "then the clock's word counts again, if it was ever ahead.",
    .options = reset_options,
    .run = run_budget_reset,
};

const struct command budget_renew_row = {
    .path = "budget renew",
    .operands = "",
    .summary = "begin anew where budget.db is gone",
    .help =
        "What was used and what \"budget set\" and \"budget price\" said is gone with it: set it "
        "again. Until then every run is refused with BUDGET_ERROR. Changes nothing where the "
        "file is there.",
    .options = renew_options,
    .run = run_budget_renew,
};

const struct command budget_price_row = {
    .path = "budget price",
    .operands = "",
    .summary = "say what runs cost",
    .help = "In a currency of your own, with at most six decimals. What is not said costs nothing; "
            "while nothing costs anything, a limit of cost cannot be held and refuses every run.",
    .options = price_options,
    .run = run_budget_price,
};
