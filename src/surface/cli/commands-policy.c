/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the command table: what the network rules of a policy come to. */
#include "surface/cli/commands.h"
#include "surface/cli/options.h"

/* clang-format off */
static const struct cli_option explain_options[] = {
    {"--policy",  "FILE",      VALUE_FILE, .help = "policy to explain (default: the built-in one)"},
    {"--binary",  "PATH",      VALUE_TEXT,
     .help = "program that asks, by its path inside the sandbox (default: /usr/bin/curl)"},
    {"--script",  "PATH",      VALUE_TEXT, .help = "what it runs, when it is an interpreter"},
    {"--parent",  "PATH",      VALUE_TEXT, .repeatable = true,
     .help = "what started it, the nearest first"},
    {"--connect", "HOST:PORT", VALUE_TEXT, .help = "a connection"},
    {"--request", "LINE",      VALUE_TEXT,
     .help = "a request: \"POST https://host/path?query\", \"GET wss://host/path\""},
    {"--header",  "LINE",      VALUE_TEXT, .repeatable = true,
     .help = "of the request: \"Name: value\""},
    {"--body",    "FILE",      VALUE_FILE, .help = "of the request"},
    {"--message", "FILE",      VALUE_FILE,
     .help = "of a WebSocket that the request opens: text, or binary when it is not UTF-8"},
    {"--peer",    "NAME:PORT", VALUE_TEXT,
     .help = "another sandbox, by name or id, that wants to come in to a port of this one"},
    OPTION_JSON,
    OPTIONS_END,
};
/* clang-format on */

const struct command policy_explain = {
    .path = "policy explain",
    .operands = "",
    .summary = "say what a policy's network rules make of a connection or a request, and why",
    .help = "Nothing is connected or looked up: the rules are compiled and asked. Every endpoint "
            "says why it does or does not match, then the verdict with entry and line. The exit "
            "status is that of a run: 0 allowed, 77 denied.",
    .options = explain_options,
    .run = run_policy_explain,
    .local = true,
};

static const struct cli_option preset_options[] = {
    {"--host",   "HOST", VALUE_TEXT, .repeatable = true,
     .help = "a host to open, instead of those of the machine's configuration"},
    {"--binary", "PATH", VALUE_TEXT, .repeatable = true,
     .help = "a program that may reach it, instead of the usual ones"         },
    OPTIONS_END,
};

const struct command policy_preset = {
    .path = "policy preset",
    .operands = "NAME",
    .operand_min = 1,
    .operand_max = 1,
    .values = "registries go crates",
    .summary = "print a policy for the package registries this machine is configured for",
    .help = "Brig names no registry. \"registries\" takes the hosts from the configuration of apt, "
            "npm, pip, cargo and Go that it finds on this machine, \"go\" and \"crates\" from that "
            "of one of them; --host says them instead. They may be read from, with GET and HEAD, "
            "and nothing else. Policies for other services are in policies/.",
    .options = preset_options,
    .run = run_policy_preset,
    .local = true,
};

/* clang-format off */
static const struct cli_option suggest_options[] = {
    {"--sandbox",  "ID",   VALUE_TEXT, .help = "refusals of this sandbox, by id or name; also of one that is gone"},
    {"--run",      "ID",   VALUE_TEXT, .help = "refusals of the sandbox of this run, while it ran"},
    {"--refusals", "FILE", VALUE_FILE, .help = "refusals from a file: counters of egress, or lines of its journal"},
    {"--policy",   "FILE", VALUE_FILE, .help = "policy to begin with (default: that of the sandbox while it stands, else the standing one)"},
    OPTION_JSON,
    OPTIONS_END,
};
/* clang-format on */

const struct command policy_suggest_row = {
    .path = "policy suggest",
    .operands = "",
    .summary = "print a policy that would allow what was refused, and what else that would allow",
    .help = "Refusals of one sandbox, one run or a file become the narrowest rules that allow "
            "them: this program, this host and port, these methods and paths; numbers, UUIDs and "
            "long hexadecimal texts in a path stand for others like them. The rules are asked what "
            "the change newly allows, and that is printed in front, with what a person should "
            "mind: interpreters, hosts that the vault has secrets for, ports of databases, wires "
            "that nobody looks into. What leads to private addresses is never suggested. Nothing "
            "is changed: who agrees keeps the text in a file and runs \"policy apply\".",
    .options = suggest_options,
    .run = run_policy_suggest,
    .apart = "the journal of refusals is on the daemon's machine",
};

/* clang-format off */
static const struct cli_option proposals_options[] = {
    {"--sandbox", "ID",     VALUE_TEXT, .help = "list: those of this sandbox, by id"},
    {"--all",     NULL,     VALUE_NONE, .help = "list: also those that were answered, or have expired"},
    {"--reason",  "TEXT",   VALUE_TEXT, .help = "approve, reject: a sentence, for the receipt and for who asked"},
    {"--digest",  "DIGEST", VALUE_TEXT, .help = "approve: what \"show\" printed; needed when the policy has changed since it was asked for"},
    OPTION_JSON,
    OPTIONS_END,
};
/* clang-format on */

const struct command policy_proposals_row = {
    .path = "policy proposals",
    .operands = "[list | show ID | approve ID | reject ID]",
    .operand_max = 2,
    .values = "list show approve reject",
    .summary = "see what programs inside sandboxes asked to be allowed, and answer",
    .help =
        "Where the policy says \"agent_proposals: true\", a program in a sandbox can ask for one "
        "more entry of network_policies at http://policy.local. Nothing is allowed by asking. "
        "\"show\" says exactly what the entry would newly allow, what to mind, and the policy "
        "with it. \"approve\" exchanges the rules of the sandbox at once, as \"policy apply "
        "--sandbox\" does; if its policy has changed since the entry was asked for, it is "
        "refused until you have looked again and give the digest that \"show\" prints. ID may be "
        "the beginning of one.",
    .options = proposals_options,
    .run = run_policy_proposals,
    .apart = "proposals are on the daemon's machine",
};
