/* SPDX-License-Identifier: Apache-2.0 */

/* The rows of snapshots, restore and fork. */

#include "surface/cli/commands.h"
#include "surface/cli/options.h"

/* clang-format off: tables are written as tables */

static const struct cli_option sandbox_snapshot_options[] = {
    {"--name", "NAME", VALUE_TEXT, .help = "a name for it; the newest of a name is the one meant"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option sandbox_fork_options[] = {
    {"--count",                                                       "N", VALUE_COUNT, .letter = "-n",                                                      .help = "how many (default: 1; also -n)"},
    {"--name",                                                               "NAME",                                                           VALUE_TEXT,  .help = "a name for it; with --count, NAME-1, NAME-2, ..."},
    {"--label",                                                               "K=V",                                                          VALUE_TEXT,  .repeatable = true,  .help = "a label to find it by"},
    {"--ttl",                                "DUR",                                   VALUE_DURATION,
     .help = "end it after this long, unless extended (default: 1h)"                                                                     },
    {"--idle", "DUR",    VALUE_DURATION,        .help = "end it when nothing ran in it for this long"},
    {"--lifetime",          "DUR",             VALUE_DURATION,
     .help = "end it after this long, whatever is extended (default: 24h)"                                                          },
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option snapshot_tend_options[] = {
    {"--if-free", .help = "leave when somebody else is at it, instead of waiting"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option snapshot_export_options[] = {
    {"--output",                      "FILE", VALUE_FILE, .help = "the archive to write"},
    {"--everything", .help = "also what looks like a credential"      },
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option snapshot_import_options[] = {
    {"--name", "NAME", VALUE_TEXT, .help = "a name for it (default: the one it carries)"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option json_option[] = {OPTION_JSON, OPTIONS_END};

/* clang-format on */

const struct command sandbox_snapshot = {
    .path = "sandbox snapshot",
    .operands = "ID",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "put aside what a sandbox has written, to go back to or to fork from",
    .help =
        "All that was written to its own files is in it, files of this machine that are mounted "
        "are not. With nobody in the sandbox nothing is copied; otherwise "
        "its processes are held still while files are copied, and the answer says for how "
        "long. The sandbox goes on.",
    .options = sandbox_snapshot_options,
    .run = run_sandbox_snapshot,
};

const struct command sandbox_restore = {
    .path = "sandbox restore",
    .operands = "ID SNAPSHOT",
    .operand_min = 2,
    .operand_max = 2,
    .values = "",
    .summary = "put a sandbox back to a snapshot",
    .help = "Whatever runs in it ends, and what it wrote since is gone. Id, name, limits and time "
            "stay. Nothing is ended when it could not be built again.",
    .options = json_option,
    .run = run_sandbox_restore,
};

const struct command sandbox_fork = {
    .path = "sandbox fork",
    .operands = "SNAPSHOT|ID",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "make sandboxes that begin where a snapshot or a sandbox is",
    .help =
        "Image, mounts, limits, policy and profile are those of the sandbox it comes from; each "
        "has its own files from there on. From a sandbox, a snapshot is taken first; it goes "
        "when the last sandbox that stands on it has ended.",
    .options = sandbox_fork_options,
    .run = run_sandbox_fork,
};

const struct command snapshot_list_row = {
    .path = "snapshot list",
    .operands = "",
    .summary = "list the snapshots there are",
    .help = "One line each, oldest first: id, when, of which sandbox, name, digest.",
    .options = json_option,
    .run = run_snapshot_list,
};

const struct command snapshot_show_row = {
    .path = "snapshot show",
    .operands = "SNAPSHOT",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "show one snapshot in full, as JSON",
    .help =
        "SNAPSHOT is an id, a name or a digest. The digest covers all that it shows; it is there "
        "a moment after the snapshot.",
    .options = json_option,
    .run = run_snapshot_show,
};

const struct command snapshot_remove_row = {
    .path = "snapshot remove",
    .operands = "SNAPSHOT...",
    .operand_min = 1,
    .operand_max = ANY_NUMBER,
    .values = "",
    .summary = "remove a snapshot",
    .help = "It cannot be found any more at once; its space is free when no sandbox and no other "
            "snapshot stands on it.",
    .options = json_option,
    .run = run_snapshot_remove,
};

const struct command snapshot_verify_row = {
    .path = "snapshot verify",
    .operands = "SNAPSHOT",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "read everything of a snapshot again and say whether it is what it was",
    .help = "Exit status 76 when it is not.",
    .options = json_option,
    .run = run_snapshot_verify,
};

const struct command snapshot_tend_row = {
    .path = "snapshot tend",
    .operands = "",
    .summary = "do now what is otherwise done in the background",
    .help = "Computes missing digests, makes stacks of more than eight snapshots one, and removes "
            "what nobody needs any more.",
    .options = snapshot_tend_options,
    .run = run_snapshot_tend,
};

const struct command snapshot_export_row = {
    .path = "snapshot export",
    .operands = "SNAPSHOT",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "write a snapshot to a file, without credentials",
    .help = "The file is a tar of an OCI layout whose one layer holds all that the snapshot shows. "
            "Files that hold credentials are left out or changed, and the answer says which and "
            "why; docs/images.md has the rules. What the sandbox was made of (variables, mounts, "
            "policy) is not in it.",
    .options = snapshot_export_options,
    .run = run_snapshot_export,
};

const struct command snapshot_import_row = {
    .path = "snapshot import",
    .operands = "FILE",
    .operand_min = 1,
    .operand_max = 1,
    .summary = "take a snapshot from a file that \"snapshot export\" wrote",
    .help = "Its image must be here. Forks of it have default limits and no mounts.",
    .options = snapshot_import_options,
    .run = run_snapshot_import,
};
