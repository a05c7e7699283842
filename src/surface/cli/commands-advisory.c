/* SPDX-License-Identifier: Apache-2.0 */

/* The rows of "brig advisory". */

#include "surface/cli/commands.h"

#include "surface/cli/options.h"

/* clang-format off */

static const struct cli_option check_options[] = {
    {"--kind", "KIND", VALUE_CHOICE, .values = "command path output action",
     .help = "what VALUE is: command, a line for a shell; path; output, an agent's envelope; action, an ACTION REQUEST"},
    {"--access", "ACCESS", VALUE_CHOICE, .values = "read list create modify delete execute",
     .help = "what is meant to be done with a path: read, list, create, modify, delete or execute (default: read)"},
    {"--cwd", "DIR", VALUE_TEXT, .help = "where relative paths begin (default: /sandbox)"},
    {"--profile", "PROFILE", VALUE_CHOICE, .values = "default strict-seed",
     .help = "strict-seed: the fifteen banned commands by name, without other programs for the same (default: default)"},
    {.name = "--lines", .help = "check every line of standard input: {\"kind\",\"value\",...}; answers are lines"},
    OPTION_JSON,
    OPTIONS_END,
};

const struct command advisory_check_row = {
    .path = "advisory check",
    .operands = "[-- VALUE]",
    .operand_max = 1,
    .values = "",
    .summary = "say what advisory mode makes of a command, a path, an output or an action",
    .help = "VALUE \"-\" is standard input. Nothing is run, opened or recorded. Exit status: 0 allow, 10 "
            "advisory, 11 reject, 12 gate, 14 neither an envelope nor a request. With --lines it is 0 "
            "once every line was checked, else that of the first that could not be.",
    .options = check_options,
    .run = run_advisory_check,
    .local = true,
};
/* clang-format on */
