/* SPDX-License-Identifier: Apache-2.0 */

/* The rows of advisory sessions and of the gate they lead to. */

#include "surface/cli/commands.h"

#include "surface/cli/options.h"

/* clang-format off */

static const struct cli_option run_options[] = {
    {"--agent-id", "NAME", VALUE_TEXT, .help = "what the agent is called (default: its file's name)"},
    {"--constitution", "FILE", VALUE_FILE,
     .help = "what it begins with, before the first turn (default: the built-in one)"},
    {"--input", "DIR", VALUE_DIRECTORY, .help = "folder shown to it, read-only, at /sandbox/input"},
    {"--prompt", "TEXT", VALUE_TEXT, .repeatable = true,
     .help = "one turn (default: each line of standard input is one)"},
    {"--turns", "N", VALUE_COUNT, .help = "at most so many (default: 50)"},
    {"--timeout", "DUR", VALUE_DURATION, .help = "the whole session (default: 1h)"},
    {"--idle", "DUR", VALUE_DURATION, .help = "the agent has so long for an answer (default: 10m)"},
    {"--action-timeout", "DUR", VALUE_DURATION,
     .help = "a custodian has so long for a word (default: 5m)"},
    {"--strict-seed", .help = "only the fifteen banned forms of the public document, no aliases"},
    {"--policy", "FILE", VALUE_FILE, .help = "decide by this policy (default: the standing one)"},
    {"--profile", "FILE", VALUE_FILE, .help = "limits and pins (default: none)"},
    {"--memory", "SIZE", VALUE_SIZE, .help = "memory of the agent"},
    {"--pids", "N", VALUE_COUNT, .help = "processes of the agent"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option report_options[] = {
    {"--last", "N", VALUE_COUNT, .help = "the last so many (default: 10)"},
    {"--agent-id", "NAME", VALUE_TEXT, .help = "only of this agent"},
    {"--events", .help = "with every event of the session"},
    {"--envelopes", .help = "with every answer as it was said; never for a screen"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option replay_options[] = {
    {"--agent-id", "NAME", VALUE_TEXT, .help = "the sessions of this agent"},
    {"--last", "N", VALUE_COUNT, .help = "the last so many of them (default: 10)"},
    {"--profile", "PROFILE", VALUE_CHOICE, .values = "default strict-seed",
     .help = "by which rules: default, as they are in this Brig, or strict-seed (default: default)"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option export_options[] = {
    {"--agent-id", "NAME", VALUE_TEXT, .help = "only of this agent"},
    {"--last", "N", VALUE_COUNT, .help = "only the last so many (default: all)"},
    {"--output", "FILE", VALUE_FILE, .help = "write there instead of to standard output"},
    {"--force", .help = "also where a file is already"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option word_options[] = {
    {"--as", "NAME", VALUE_TEXT, .help = "the custodian who says so; required"},
    {"--passphrase-file", "FILE", VALUE_FILE, .help = "read it from there instead of the terminal"},
    {"--digest", "HASH", VALUE_TEXT, .help = "what was looked at (default: what there is)"},
    {"--words", "TEXT", VALUE_TEXT, .may_be_empty = true,
     .help = "HUMAN_CONFIRMED: true (default: one line of standard input)"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option reject_options[] = {
    {"--as", "NAME", VALUE_TEXT, .help = "the custodian who says so; required"},
    {"--passphrase-file", "FILE", VALUE_FILE, .help = "read it from there instead of the terminal"},
    OPTION_JSON,
    OPTIONS_END,
};

#define OPTION_RUNS {.name = "--runs", .argument = "N", .kind = VALUE_COUNT, \
     .help = "how many of its last runs count (default: 10)"}
#define OPTION_VERSION {.name = "--agent-version", .argument = "HASH", .kind = VALUE_TEXT, \
     .help = "of the agent (default: that of its last run)"}

static const struct cli_option gate_report_options[] = {
    OPTION_RUNS,
    OPTION_VERSION,
    {"--as", "NAME", VALUE_TEXT, .help = "say what this custodian would sign, elsewhere"},
    {"--expires-at", "WHEN", VALUE_TEXT,
     .help = "until when his word holds: a day, a moment, or how long from now (default: 7d)"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option gate_sign_options[] = {
    {"--as", "NAME", VALUE_TEXT, .help = "the custodian who signs; required"},
    {"--passphrase-file", "FILE", VALUE_FILE, .help = "read it from there instead of the terminal"},
    {"--signature", "HEX", VALUE_TEXT,
     .help = "made elsewhere, over the preimage \"gate report --as NAME\" shows"},
    {"--expires-at", "WHEN", VALUE_TEXT,
     .help = "until when it holds: a day, a moment, or how long from now (default: 7d)"},
    {"--report", "HASH", VALUE_TEXT, .help = "the report that was read; another one is not signed"},
    OPTION_RUNS,
    OPTION_VERSION,
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option gate_release_options[] = {
    OPTION_RUNS,
    OPTION_VERSION,
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option json_options[] = {OPTION_JSON, OPTIONS_END};

#define APART "its sessions are its operator's: ask there"

const struct command advisory_run_row = {
    .path = "advisory run",
    .operands = "-- AGENT [ARG...]",
    .operand_min = 1,
    .operand_max = ANY_NUMBER,
    .takes_command = true,
    .summary = "let an agent advise, in a box where it can do nothing else",
    .help = "AGENT is one program file; a copy of it runs, and its hash is the agent's version. It "
            "runs no second program, has no network, writes only to /sandbox/tmp, and is spoken with "
            "line by line (docs/advisory.md). Shown is what its envelopes have as client_view and "
            "nothing else. Exit status: 0, nothing was found and every turn was answered; 10, something "
            "was found; 13, an action was rejected, aborted or expired; 14, a turn was left without an "
            "answer; 69, its box could not be built, or was killed; 75, its turns, its time or its "
            "telemetry were used up; 126 and 127, AGENT cannot be executed; 128+n, signal n interrupted "
            "it.",
    .options = run_options,
    .run = run_advisory_run,
    .apart = APART,
};

const struct command advisory_report_row = {
    .path = "advisory report",
    .operands = "[RUN]",
    .operand_max = 1,
    .values = "",
    .summary = "show what was found in advisory sessions",
    .help = "Counts by category, drift, compliance, what waits for a custodian, and whether the chain "
            "of events holds and ends where the ledger says. Exit status 76: that of RUN does not.",
    .options = report_options,
    .takes_time = "checking the ledger",
    .run = run_advisory_report,
    .apart = APART,
};

const struct command advisory_replay_row = {
    .path = "advisory replay",
    .operands = "[RUN]",
    .operand_max = 1,
    .values = "",
    .summary = "judge stored answers by other rules, and show what differs",
    .help = "Of one session or of an agent's last ones. Each must hold and end where the ledger says; "
            "nothing is changed. Exit status: 0, every answer was judged and none differs; 1, one "
            "does, or is not stored; 76, what is kept is not what the ledger says.",
    .options = replay_options,
    .takes_time = "checking the ledger",
    .run = run_advisory_replay,
    .apart = APART,
};

const struct command advisory_export_row = {
    .path = "advisory export",
    .operands = "[RUN]",
    .operand_max = 1,
    .values = "",
    .summary = "write sessions as a dataset: JSON lines, redacted",
    .help = "One line a turn and one an event, without secrets, paths of this machine and names of "
            "people (docs/formats/advisory-dataset.md). The file is for its owner alone. With "
            "--output, --json says what was written.",
    .options = export_options,
    .takes_time = "checking the ledger",
    .run = run_advisory_export,
    .apart = APART,
};

const struct command advisory_actions_row = {
    .path = "advisory actions",
    .operands = "[RUN]",
    .operand_max = 1,
    .values = "",
    .summary = "show what agents asked for and a custodian has yet to decide",
    .help = "Of one session or of all: what Brig reads in the request, its digest, until when it waits, "
            "and then the agent's own words, at most 4096 bytes of them; --json has all of them.",
    .options = json_options,
    .run = run_advisory_actions,
    .apart = APART,
};

const struct command advisory_confirm_row = {
    .path = "advisory confirm",
    .operands = "RUN ACTION",
    .operand_min = 2,
    .operand_max = 2,
    .values = "",
    .summary = "confirm what an agent asked for; then it is done, once",
    .help = "Shows what Brig reads in the request, then the request, and takes exactly "
            "HUMAN_CONFIRMED: true; anything else, and nothing, aborts it. It "
            "must still be what was asked, its target unchanged, and its time not over.",
    .options = word_options,
    .run = run_advisory_confirm,
    .apart = APART,
};

const struct command advisory_reject_row = {
    .path = "advisory reject",
    .operands = "RUN ACTION",
    .operand_min = 2,
    .operand_max = 2,
    .values = "",
    .summary = "reject what an agent asked for",
    .help = "The agent is told, and may advise otherwise.",
    .options = reject_options,
    .run = run_advisory_reject,
    .apart = APART,
};

const struct command advisory_end_row = {
    .path = "advisory end",
    .operands = "RUN",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "end a session whose Brig or harness is gone",
    .help = "Writes the end into its chain and into the ledger; without it the deployment gate fails. "
            "While the Brig that runs it is alive, it is refused: interrupt that one.",
    .options = json_options,
    .run = run_advisory_end,
    .apart = APART,
};

#define GATE_APART "its gate is its operator's: ask there"

const struct command gate_report_row = {
    .path = "gate report",
    .operands = "AGENT",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "say whether an agent may leave advisory mode",
    .help = "Six conditions over its last runs, each with what speaks against it. Everything comes "
            "from chains of events that hold and end where the ledger says. Exit status: 0, all six "
            "are met; 13, not all.",
    .options = gate_report_options,
    .takes_time = "checking the ledger",
    .run = run_gate_report,
    .apart = GATE_APART,
};

const struct command gate_sign_row = {
    .path = "gate sign",
    .operands = "AGENT",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "sign the report of an agent, as a custodian",
    .help = "Only a report whose five other conditions are met, by somebody who was a custodian "
            "before the first of the runs.",
    .options = gate_sign_options,
    .takes_time = "checking the ledger",
    .run = run_gate_sign,
    .apart = GATE_APART,
};

const struct command gate_release_row = {
    .path = "gate release",
    .operands = "AGENT",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "release an agent that two custodians signed for",
    .help = "From then on policies with requires_release let it run. Anything found in a later run, "
            "another version or another constitution ends that by itself.",
    .options = gate_release_options,
    .takes_time = "checking the ledger",
    .run = run_gate_release,
    .apart = GATE_APART,
};

const struct command gate_revoke_row = {
    .path = "gate revoke",
    .operands = "AGENT",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "take a release back",
    .help = "At once; what runs goes on. Also while everything is frozen.",
    .options = json_options,
    .run = run_gate_revoke,
    .apart = GATE_APART,
};

const struct command gate_status_row = {
    .path = "gate status",
    .operands = "AGENT",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "say whether a release stands at this moment",
    .help = "And if not, why. Exit status: 0, it does; 13, not.",
    .options = json_options,
    .takes_time = "checking the ledger",
    .run = run_gate_status,
    .apart = GATE_APART,
};
/* clang-format on */
