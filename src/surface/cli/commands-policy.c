/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the command table: what the network rules of a policy come to. */
#include "surface/cli/commands.h"
#include "surface/cli/options.h"

/* clang-format off */
static const struct cli_option explain_options[] = {
    {"--policy",  "FILE",      VALUE_FILE, .help = "policy to explain (default: the standing one; of connections and requests the built-in one)"},
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
    {"--principal", "NAME",    VALUE_TEXT, .help = "of a command: who runs it (default: you)"},
    {"--tenant",  "NAME",      VALUE_TEXT, .help = "of a command: whose it is (default: default)"},
    {"--provider", "P",        VALUE_TEXT, .values = PROVIDERS,
     .help = "of a command: where it is to run (default: local)"},
    {"--tool",    "NAME",      VALUE_TEXT,
     .help = "of a command: the tool whose arguments hold it; of the call itself CMD is \"tool:NAME\" and its arguments as JSON"},
    {"--env",     "K=V",       VALUE_TEXT, .repeatable = true, .help = "of a command: a variable it sets"},
    {"--workdir", "DIR",       VALUE_TEXT, .help = "of a command: where it starts, inside"},
    {"--mount",   "SRC:DST[:ro|rw]", VALUE_TEXT, .repeatable = true,
     .help = "of a command: what it sees of this machine, for requires_release"},
    {"--cost",    "AMOUNT",    VALUE_TEXT,
     .help = "of a command: what it would cost at most (default: nobody knows)"},
    {"--external",             .help = "of a command: ask the decider outside that the policy names"},
    OPTION_JSON,
    OPTIONS_END,
};
/* clang-format on */

const struct command policy_explain = {
    .path = "policy explain",
    .operands = "[-- CMD [ARG...]]",
    .operand_max = 65536,
    .summary = "say what a policy makes of a command, a connection or a request, and why",
    .help = "Nothing is run, connected or looked up. Of a command every rule of every layer (the "
            "ceiling, the policy, its overlays) says why it does or does not match it and what is "
            "inside it; the policy is that of --policy, else the standing one. Of a connection or "
            "request every endpoint of the network rules does, of --policy or the built-in one. "
            "Of a command it says what else would refuse it now: a bundle that does not count, a "
            "freeze, a missing release, a budget. Then comes the verdict with rule and line. The "
            "exit status is that of a run: 0 allowed, 77 denied or to be confirmed.",
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

static const struct cli_option ceiling_options[] = {OPTION_JSON, OPTIONS_END};

const struct command policy_ceiling = {
    .path = "policy ceiling",
    .operands = "[show | set FILE | remove]",
    .operand_max = 2,
    .values = "show set remove",
    .then_files = true,
    .summary = "see or change the layer above every policy of this machine",
    .help = "A ceiling is a policy file that only takes away: the strictest of it, the policy and "
            "its overlays holds, for every run and every command in a sandbox, also where a "
            "policy is brought along, and for all tenants of a daemon. What it says nothing about "
            "is left to the policy. A ceiling that cannot be read refuses everything but its "
            "repair.",
    .options = ceiling_options,
    .run = run_policy_ceiling,
    .apart = "the ceiling belongs to the operator of the daemon's machine",
};

/* clang-format off */
static const struct cli_option bundle_options[] = {
    {"--out",     "FILE", VALUE_FILE,     .help = "make: the bundle to write"},
    {"--key",     "FILE", VALUE_FILE,     .help = "make: the key to sign with, made at first use; verify: the public key to trust (default: those of \"policy trust\")"},
    {"--name",    "NAME", VALUE_TEXT,     .help = "make: what it is called; versions are counted by name"},
    {"--version", "N",    VALUE_COUNT,    .help = "make: which version; there is no way back to a lower one"},
    {"--expires", "DUR",  VALUE_DURATION, .help = "make: it counts for this long (default: 90 days)"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option trust_options[] = {
    {"--name", "TEXT", VALUE_TEXT, .help = "add: whose key it is, for people"},
    OPTION_JSON,
    OPTIONS_END,
};
/* clang-format on */

const struct command policy_bundle_row = {
    .path = "policy bundle",
    .operands = "make POLICY [OVERLAY...] | verify FILE",
    .operand_min = 1,
    .operand_max = 10,
    .values = "make verify",
    .then_files = true,
    .summary = "sign a policy and its overlays as one file, or look at such a file",
    .help =
        "A bundle is used wherever a policy is: with --policy, \"policy apply\" and in the API. "
        "It counts while its publisher is trusted (\"policy trust\"), its time is not over, and "
        "no later version of the same name was applied.",
    .options = bundle_options,
    .run = run_policy_bundle,
    .apart = "which publishers are trusted is known on the daemon's machine",
};

const struct command policy_trust_row = {
    .path = "policy trust",
    .operands = "[list | add KEY | remove KEY-ID]",
    .operand_max = 2,
    .values = "list add remove",
    .then_files = true,
    .summary = "see or change whose signed policies count on this machine",
    .help = "KEY is a file with a public key, in PEM or as 64 hex digits, or those digits. Get it "
            "by a way you trust: one that lies next to a bundle proves nothing.",
    .options = trust_options,
    .run = run_policy_trust,
    .apart = "whom a machine trusts is its operator's to say",
};

const struct command policy_diff_row = {
    .path = "policy diff",
    .operands = "A B",
    .operand_min = 2,
    .operand_max = 2,
    .summary = "say what changes from one policy to another",
    .help =
        "Sections and rules that differ are told exactly. Both are asked about commands made of "
        "the rules of both, and each kind of change is shown with one of them: verdict, rule "
        "and line before and after. Those are samples, which is said, unless nothing about "
        "commands differs. The exit status is 0 when the policies say the same, 1 when not.",
    .options = ceiling_options,
    .takes_time = "trying commands on both",
    .run = run_policy_diff,
    .local = true,
};

static const struct cli_option test_options[] = {
    {"--cases", "FILE", VALUE_FILE, .help = "the table (default: NAME.test.yaml beside NAME.yaml)"},
    OPTION_JSON,
    OPTIONS_END,
};

const struct command policy_test_row = {
    .path = "policy test",
    .operands = "FILE...",
    .operand_min = 1,
    .operand_max = 1024,
    .summary = "check policies against the tables of cases next to them",
    .help = "Cases are commands, connections and requests with what should come of them. The exit "
            "status is 1 when one comes out otherwise. A table without cases, and a key nobody "
            "knows, are errors.",
    .options = test_options,
    .run = run_policy_test,
    .local = true,
};
