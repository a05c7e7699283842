/* SPDX-License-Identifier: Apache-2.0 */

/* Every command there is. Help, completion, the manual and the parser are made of these rows. */

#include "surface/cli/commands.h"

#include <string.h>

#define ANY_NUMBER SIZE_MAX
#define PROVIDERS "local mock"

/* Options. Version 14 of clang-format garbles tables that share rows through macros. */
/* clang-format off */

#define OPTION_JSON {.name = "--json", .help = "print one JSON object instead of text"}
#define OPTIONS_END {.name = NULL}

/* What a sandbox may use: the same flags wherever a plan is made. */
#define OPTIONS_LIMITS \
    {"--timeout", "DUR", VALUE_DURATION, .help = "end it after this long, e.g. 30s, 5m"}, \
    {"--cpu", "N", VALUE_CPUS, .help = "processors it may use, e.g. 2 or 0.5"}, \
    {"--memory", "SIZE", VALUE_SIZE, .help = "memory of all its processes, e.g. 512M"}, \
    {"--pids", "N", VALUE_COUNT, .help = "processes and threads at the same time"}, \
    {"--disk", "SIZE", VALUE_SIZE, .help = "bytes its own files may take on disk, e.g. 1G"}, \
    {"--inodes", "N", VALUE_COUNT, .help = "files and folders of its own at the same time"}

static const struct cli_option exec_options[] = {
    {"--provider", "P", VALUE_TEXT, .values = PROVIDERS,
     .help = "where to run it: local or mock (default: local)"},
    {"--profile", "FILE", VALUE_FILE,
     .help = "profile: version pin, limits, how strictly"},
    {"--image", "REF", VALUE_TEXT, .values = "host",
     .help = "root file system (default: host, the system directories of this machine)"},
    {"--policy", "FILE", VALUE_FILE,
     .help = "policy to decide by (default: run anything, no network)"},
    OPTIONS_LIMITS,
    {"--env", "K[=V]", VALUE_TEXT, .repeatable = true,
     .help = "set a variable, or forward one of yours by name; nothing else is passed on"},
    {"--mount", "SRC:DST[:ro|rw]", VALUE_TEXT, .repeatable = true,
     .help = "show a file or directory of this machine inside, read-only unless rw"},
    {"--workdir", "DIR", VALUE_TEXT,
     .help = "directory inside to start in"},
    {"--network", "MODE", VALUE_CHOICE, .values = "none policy",
     .help = "none, or policy, which is refused as long as network rules cannot be enforced "
             "(default: none)"},
    {"--tty", .help = "give the command a terminal"},
    {"--keep", .help = "in a kept sandbox: leave running what it started in the background"},
    {"--detach", .help = "in a kept sandbox: return at once with an id; see \"sandbox logs\""},
    {"--quiet", .help = "leave out the closing line on standard error, unless it is a denial"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option logs_options[] = {
    {"--follow", .help = "go on until the command ends"},
    OPTIONS_END,
};

/* A sandbox that stays: what it is made of, and for how long. */
static const struct cli_option create_options[] = {
    {"--name", "NAME", VALUE_TEXT, .help = "a name to call it by, besides its id"},
    {"--label", "K=V", VALUE_TEXT, .repeatable = true, .help = "a label to find it by"},
    {"--scope", "SCOPE", VALUE_CHOICE, .values = "session agent shared",
     .help = "for whom it is: session, agent or shared (default: session)"},
    {"--reuse", .help = "answer a running one that is exactly what would be made, if there is one"},
    {"--ttl", "DUR", VALUE_DURATION,
     .help = "end it after this long, unless extended (default: 1h)"},
    {"--idle", "DUR", VALUE_DURATION, .help = "end it when nothing ran in it for this long"},
    {"--lifetime", "DUR", VALUE_DURATION,
     .help = "end it after this long, whatever is extended (default: 24h)"},
    {"--profile", "FILE", VALUE_FILE,
     .help = "profile: version pin, limits, how strictly"},
    {"--image", "REF", VALUE_TEXT, .values = "host",
     .help = "root file system (default: host, the system directories of this machine)"},
    {"--policy", "FILE", VALUE_FILE,
     .help = "policy its commands are decided by (default: run anything, no network)"},
    OPTIONS_LIMITS,
    {"--env", "K[=V]", VALUE_TEXT, .repeatable = true,
     .help = "set a variable for its commands, or forward one of yours by name"},
    {"--mount", "SRC:DST[:ro|rw]", VALUE_TEXT, .repeatable = true,
     .help = "show a file or directory of this machine inside, read-only unless rw"},
    {"--workdir", "DIR", VALUE_TEXT,
     .help = "directory inside its commands start in"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option list_options[] = {
    {"--label", "K=V", VALUE_TEXT, .repeatable = true, .help = "only those with all these labels"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option extend_options[] = {
    {"--ttl", "DUR", VALUE_DURATION, .help = "time to live from now on (default: 1h)"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option files_options[] = {
    {"--recursive", .letter = "-r",
     .help = "rm: with everything in it; mkdir: with its parents (also -r)"},
    {"--timeout", "DUR", VALUE_DURATION, .help = "watch: end after this long"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option cp_options[] = {
    {"--recursive", .letter = "-r", .help = "copy a directory with everything in it (also -r)"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option port_options[] = {
    {"--listen", "ADDRESS", VALUE_TEXT,
     .help = "loopback address to listen at (default: 127.0.0.1 and any free port)"},
    {"--timeout", "DUR", VALUE_DURATION, .help = "end after this long"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option preflight_options[] = {
    {"--provider", "P", VALUE_TEXT, .values = PROVIDERS,
     .help = "provider to look at: local or mock (default: local)"},
    {"--profile", "FILE", VALUE_FILE,
     .help = "profile: version pin, limits, how strictly"},
    {"--image", "REF", VALUE_TEXT, .values = "host",
     .help = "root file system (default: host, the system directories of this machine)"},
    {"--policy", "FILE", VALUE_FILE,
     .help = "policy the sandbox would be planned under"},
    OPTIONS_LIMITS,
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option conform_options[] = {
    {"--provider", "P", VALUE_TEXT, .values = PROVIDERS,
     .help = "provider to test: local or mock (default: local)"},
    {"--tier", "TIER", VALUE_CHOICE, .values = "compatible verified sovereign",
     .help = "how much is asked of it: compatible, verified or sovereign (default: compatible)"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option receipts_list_options[] = {
    {"--limit", "N", VALUE_COUNT, .help = "at most so many, the newest (default: 20)"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option receipts_verify_options[] = {
    {"--head", "FILE", VALUE_FILE,
     .help = "signed head kept elsewhere: proves that nothing up to it was cut off"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option receipts_export_options[] = {
    {"--output", "FILE", VALUE_FILE, .help = "write there instead of to standard output"},
    OPTIONS_END,
};

static const struct cli_option verify_options[] = {
    {"--head", "FILE", VALUE_FILE,
     .help = "signed head kept elsewhere; without one completeness is not proven"},
    {"--key", "FILE", VALUE_FILE,
     .help = "public key to trust (default: the one of your own state directory)"},
    {"--part", .help = "a piece of a chain will do: it may begin anywhere"},
    OPTION_JSON,
    OPTIONS_END,
};

#define OPTION_SKIP_DEVICES {.name = "--skip-devices", \
     .help = "leave out device nodes, pipes and sockets instead of refusing the image"}

static const struct cli_option image_pull_options[] = {
    {"--username", "NAME", VALUE_TEXT,
     .help = "whom the registry knows you as (default: $BRIG_REGISTRY_USER)"},
    {"--password-stdin",
     .help = "read the password from standard input (default: $BRIG_REGISTRY_PASSWORD)"},
    {"--insecure-http", .help = "speak plain HTTP, which anybody on the way can change"},
    OPTION_SKIP_DEVICES,
    {"--timeout", "DUR", VALUE_DURATION, .help = "give up after this long (default: 30m)"},
    {"--stall", "DUR", VALUE_DURATION,
     .help = "give up when nothing arrives for this long (default: 30s)"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option image_import_options[] = {
    {"--name", "NAME", VALUE_TEXT, .help = "what to call it (default: the name it carries)"},
    OPTION_SKIP_DEVICES,
    {"--timeout", "DUR", VALUE_DURATION, .help = "give up after this long (default: 1h)"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option image_export_options[] = {
    {"--output", "FILE", VALUE_FILE, .help = "the archive to write"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option json_option[] = {OPTION_JSON, OPTIONS_END};
static const struct cli_option no_options[] = {OPTIONS_END};

/* clang-format on */

const struct command_group command_groups[] = {
    {"sandbox",  "run commands inside walls"       },
    {"image",    "get, check and remove images"    },
    {"receipts", "read and check what was recorded"},
    {"policy",   "work with the rules that decide" },
};
const size_t command_group_n = COUNT(command_groups);

static const struct command sandbox_exec = {
    .path = "sandbox exec",
    .operands = "[ID] -- CMD [ARG...]",
    .operand_min = 1,
    .operand_max = ANY_NUMBER,
    .takes_command = true,
    .takes_subject = true,
    .summary = "run a command in a sandbox, under a policy, with receipts",
    .help = "The command and its arguments stand behind \"--\" and run exactly as written, "
            "without a shell. Standard input, output and error are passed through. A closing "
            "line on standard error names verdict, receipt and duration.\n"
            "\n"
            "With an ID (or name) the command runs in that kept sandbox, see \"sandbox create\": "
            "of the flags only --timeout, --env, --workdir, --tty, --keep, --detach, --quiet and "
            "--json are possible then.\n"
            "\n"
            "Exit status: the command's; 128+n when signal n ended it; 124 timed out; 126 not "
            "executable; 127 not found; 77 denied.",
    .options = exec_options,
    .run = run_sandbox_exec,
};

static const struct command sandbox_create = {
    .path = "sandbox create",
    .operands = "",
    .summary = "make a sandbox that stays, for many commands",
    .help = "It stays until its time is over or it is destroyed, also when nobody looks: "
            "\"sandbox exec ID -- CMD\" runs commands in it, several at once. Files, limits and "
            "policy are the sandbox's; time is each command's own.",
    .options = create_options,
    .run = run_sandbox_create,
};

static const struct command sandbox_list = {
    .path = "sandbox list",
    .operands = "",
    .summary = "list the sandboxes that stay",
    .help = "One line each: id, state, name, when it ends.",
    .options = list_options,
    .run = run_sandbox_list,
};

static const struct command sandbox_show = {
    .path = "sandbox show",
    .operands = "ID",
    .operand_min = 1,
    .operand_max = 1,
    .summary = "show one sandbox in full, as JSON",
    .help = "ID is an id or a name.",
    .options = json_option,
    .run = run_sandbox_show,
};

static const struct command sandbox_pause = {
    .path = "sandbox pause",
    .operands = "ID...",
    .operand_min = 1,
    .operand_max = ANY_NUMBER,
    .summary = "stop every process of a sandbox where it stands",
    .help = "Its time goes on running; commands are refused until it is resumed.",
    .options = json_option,
    .run = run_sandbox_pause,
};

static const struct command sandbox_resume = {
    .path = "sandbox resume",
    .operands = "ID...",
    .operand_min = 1,
    .operand_max = ANY_NUMBER,
    .summary = "let a paused sandbox go on",
    .help = "Its processes continue where they stood.",
    .options = json_option,
    .run = run_sandbox_resume,
};

static const struct command sandbox_extend = {
    .path = "sandbox extend",
    .operands = "ID...",
    .operand_min = 1,
    .operand_max = ANY_NUMBER,
    .summary = "give a sandbox more time",
    .help = "Counted from now, and never beyond its --lifetime.",
    .options = extend_options,
    .run = run_sandbox_extend,
};

static const struct command sandbox_destroy = {
    .path = "sandbox destroy",
    .operands = "ID...",
    .operand_min = 1,
    .operand_max = ANY_NUMBER,
    .summary = "end a sandbox and everything in it",
    .help = "Returns when nothing of it is left.",
    .options = json_option,
    .run = run_sandbox_destroy,
};

static const struct command sandbox_recreate = {
    .path = "sandbox recreate",
    .operands = "ID",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "destroy a sandbox and make it again as it was made",
    .help = "Name, labels, limits, mounts, policy and profile are those it was made with; its "
            "files and its id are new. Nothing is destroyed when it could not be made again.",
    .options = json_option,
    .run = run_sandbox_recreate,
};

static const struct command sandbox_explain = {
    .path = "sandbox explain",
    .operands = "ID",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "say what a sandbox is, why, and what would change it",
    .help = "Image, mounts, limits and how each is held, network, policy, who made it and when it "
            "ends; and for every \"no\" the flag or key that would make it a \"yes\".",
    .options = json_option,
    .run = run_sandbox_explain,
};

static const struct command sandbox_top = {
    .path = "sandbox top",
    .operands = "[ID]",
    .operand_max = 1,
    .values = "",
    .summary = "show what the sandboxes use",
    .help = "Processor time in percent of one processor, memory now and at most, processes, and "
            "bytes on disk. On a terminal again every second until Ctrl-C; otherwise, and with "
            "--json, once.",
    .options = json_option,
    .run = run_sandbox_top,
};

static const struct command sandbox_logs = {
    .path = "sandbox logs",
    .operands = "ID [EXEC]",
    .operand_min = 1,
    .operand_max = 2,
    .values = "",
    .summary = "show what a detached command wrote",
    .help = "The last 256 KiB of each stream are kept, until the sandbox ends. EXEC is what "
            "\"sandbox exec --detach\" answered, or the beginning of it (default: the newest).",
    .options = logs_options,
    .run = run_sandbox_logs,
};

static const struct command sandbox_attach = {
    .path = "sandbox attach",
    .operands = "ID [EXEC]",
    .operand_min = 1,
    .operand_max = 2,
    .values = "",
    .summary = "join a detached command: its output, then its streams",
    .help = "Ends with the command, and with its exit status. A signal to Brig leaves the command "
            "alone; the end of standard input is the end of the command's.",
    .options = no_options,
    .run = run_sandbox_attach,
};

static const struct command sandbox_ps = {
    .path = "sandbox ps",
    .operands = "ID",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "list the commands and processes of a sandbox",
    .help = "Commands are those that run and detached ones that have ended; processes are shown "
            "with the ids they have inside.",
    .options = json_option,
    .run = run_sandbox_ps,
};

static const struct command sandbox_files = {
    .path = "sandbox files",
    .operands = "VERB ID PATH...",
    .operand_min = 2,
    .operand_max = 4,
    .values = "ls cat write rm mv mkdir stat watch",
    .summary = "read and change the files of a sandbox",
    .help = "VERB is one of\n"
            "ls      list a directory\n"
            "cat     print a file\n"
            "write   make a file of standard input\n"
            "rm      remove a file, or with --recursive a directory\n"
            "mv      move or rename: two paths\n"
            "mkdir   make a directory\n"
            "stat    show one file, links as links\n"
            "watch   print changes of a file or directory, one JSON object a line\n"
            "\n"
            "Paths are those inside; relative ones start in the sandbox's working directory. "
            "Everything happens inside the sandbox, under its rules, and gets a receipt. Only "
            "regular files are read and replaced.",
    .options = files_options,
    .run = run_sandbox_files,
};

static const struct command sandbox_cp = {
    .path = "sandbox cp",
    .operands = "SRC DST",
    .operand_min = 2,
    .operand_max = 2,
    .summary = "copy files into or out of a sandbox",
    .help = "One side is ID:PATH, the other a path of this machine or \"-\". Modes, times, links "
            "and holes are kept; set-id bits are not. Special files, and links that would lead out "
            "of the copy, are left out and counted. \"-\" is one file, or with --recursive a "
            "directory as a tar archive. A path of this machine that has a colon is "
            "written ./like:this.",
    .options = cp_options,
    .run = run_sandbox_cp,
};

static const struct command sandbox_port = {
    .path = "sandbox port",
    .operands = "ID PORT",
    .operand_min = 2,
    .operand_max = 2,
    .values = "",
    .summary = "reach a port inside a sandbox from this machine",
    .help = "Listens on a loopback port, which is the first line printed, and passes connections "
            "on to PORT inside until interrupted. Nothing inside can connect to this machine.",
    .options = port_options,
    .run = run_sandbox_port,
};

static const struct command sandbox_preflight = {
    .path = "sandbox preflight",
    .operands = "",
    .summary = "build a sandbox, run nothing, and show planned against observed",
    .help = "Every check prints what was expected, what was seen, and whether they agree. "
            "Exit status 0 when all do, 77 when a run would be denied.",
    .options = preflight_options,
    .run = run_sandbox_preflight,
};

static const struct command sandbox_conform = {
    .path = "sandbox conform",
    .operands = "",
    .summary = "test a provider against what Brig promises of it",
    .help = "Runs the checks of a tier against the provider and prints one line for each. "
            "Exit status 0 when all pass, 77 otherwise.",
    .options = conform_options,
    .run = run_sandbox_conform,
};

static const struct command receipts_list = {
    .path = "receipts list",
    .operands = "",
    .summary = "list the newest receipts",
    .help = "One line a receipt: sequence number, time, kind, status, verdict, reason and id.",
    .options = receipts_list_options,
    .run = run_receipts_list,
};

static const struct command receipts_show = {
    .path = "receipts show",
    .operands = "ID",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "show one receipt whole",
    .help = "ID is a receipt id as printed by \"receipts list\" and \"sandbox exec\", the "
            "beginning of one, or a sequence number.",
    .options = json_option,
    .run = run_receipts_show,
};

static const struct command receipts_verify = {
    .path = "receipts verify",
    .operands = "",
    .summary = "check every hash, signature and link of the ledger",
    .help = "Says integrity and completeness separately and names the first bad entry.",
    .options = receipts_verify_options,
    .run = run_receipts_verify,
};

static const struct command receipts_head = {
    .path = "receipts head",
    .operands = "",
    .summary = "print a signed head of the ledger, to be kept elsewhere",
    .help = "Whoever holds a head can later prove that nothing up to it was cut off: give it "
            "to \"receipts verify --head FILE\" or \"verify --head FILE\".",
    .options = json_option,
    .run = run_receipts_head,
};

static const struct command receipts_export = {
    .path = "receipts export",
    .operands = "",
    .summary = "write all receipts as JSON lines",
    .help = "The exported file can be checked anywhere with \"verify FILE\".",
    .options = receipts_export_options,
    .run = run_receipts_export,
};

static const struct command verify_files = {
    .path = "verify",
    .operands = "FILE...",
    .operand_min = 1,
    .operand_max = ANY_NUMBER,
    .summary = "check exported receipts, without the ledger they came from",
    .help = "Names the first changed, moved, duplicated or missing entry, and tells a torn "
            "last line from tampering.",
    .options = verify_options,
    .run = run_verify,
};

static const struct command policy_check = {
    .path = "policy check",
    .operands = "FILE...",
    .operand_min = 1,
    .operand_max = ANY_NUMBER,
    .summary = "read policies strictly and say what is wrong with them",
    .help = "Errors name line and column and show the place.",
    .options = json_option,
    .run = run_policy_check,
};

static const struct command image_pull = {
    .path = "image pull",
    .operands = "REF",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "get an image from a registry",
    .help = "REF is a name as docker knows it: busybox, debian:12, ghcr.io/org/app:v1, or with "
            "the digest it must have, NAME@sha256:HEX. Every document and layer is checked "
            "against its digest. Registries are spoken to over HTTPS; plain HTTP is for this "
            "machine's loopback address. BRIG_REGISTRY_CA names a file of certificates to trust "
            "instead of the system's.",
    .options = image_pull_options,
    .run = run_image_pull,
};

static const struct command image_import = {
    .path = "image import",
    .operands = "PATH",
    .operand_min = 1,
    .operand_max = 1,
    .summary = "take an image from an OCI layout or from what \"docker save\" wrote",
    .help = "PATH is a directory or a tar, plain or compressed with gzip or zstd.",
    .options = image_import_options,
    .run = run_image_import,
};

static const struct command image_list = {
    .path = "image list",
    .operands = "",
    .summary = "list the images that are here",
    .help = "One line a name: name, digest, size unpacked, and when it came.",
    .options = json_option,
    .run = run_image_list,
};

static const struct command image_show = {
    .path = "image show",
    .operands = "NAME",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "show what an image is made of",
    .help = "NAME is a name, a digest, or 12 digits or more of the beginning of a digest.",
    .options = json_option,
    .run = run_image_show,
};

static const struct command image_remove = {
    .path = "image remove",
    .operands = "NAME",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "remove a name, and what nothing else needs",
    .help = "A digest removes the image with all its names. What a running sandbox stands on "
            "stays until it ends.",
    .options = json_option,
    .run = run_image_remove,
};

static const struct command image_export = {
    .path = "image export",
    .operands = "NAME",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "write an image as a tar of an OCI layout",
    .help = "The image keeps its digest: what is imported from the archive is the same image.",
    .options = image_export_options,
    .run = run_image_export,
};

static const struct command image_verify = {
    .path = "image verify",
    .operands = "NAME",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "read everything of an image again and say whether it is what it was",
    .help = "Every run looks whether the store was changed from outside, as far as that is cheap; "
            "this looks at every byte and names the first difference. Exit status 76 for one.",
    .options = json_option,
    .run = run_image_verify,
};

static const struct command doctor = {
    .path = "doctor",
    .operands = "",
    .summary = "what this machine can enforce, and how to fix what it cannot",
    .help = "Exit status 0 when the local provider can be used, 69 when it cannot.",
    .options = json_option,
    .run = run_doctor,
};

static const struct command version = {
    .path = "version",
    .operands = "",
    .summary = "version, build and libraries",
    .help = "",
    .options = json_option,
    .run = run_version,
};

static const struct command completion = {
    .path = "completion",
    .operands = "bash|zsh|fish|man",
    .operand_min = 1,
    .operand_max = 1,
    .values = "bash zsh fish man",
    .summary = "print the completion script of a shell",
    .help = "bash:  source <(brig completion bash)\n"
            "zsh:   brig completion zsh > \"${fpath[1]}/_brig\"\n"
            "fish:  brig completion fish | source\n"
            "man prints the COMMANDS section of the manual page as scdoc text.",
    .options = no_options,
    .run = run_completion,
};

static const struct command help = {
    .path = "help",
    .operands = "[COMMAND...]",
    .operand_max = 2,
    .values = "",
    .summary = "show the help of a command",
    .help = "",
    .options = no_options,
    .run = run_help,
};

const struct command *const commands[] = {
    &sandbox_exec,
    &sandbox_create,
    &sandbox_list,
    &sandbox_show,
    &sandbox_pause,
    &sandbox_resume,
    &sandbox_extend,
    &sandbox_destroy,
    &sandbox_logs,
    &sandbox_attach,
    &sandbox_ps,
    &sandbox_recreate,
    &sandbox_explain,
    &sandbox_top,
    &sandbox_files,
    &sandbox_cp,
    &sandbox_port,
    &sandbox_preflight,
    &sandbox_conform,
    &receipts_list,
    &receipts_show,
    &receipts_verify,
    &receipts_head,
    &receipts_export,
    &verify_files,
    &policy_check,
    &image_pull,
    &image_import,
    &image_list,
    &image_show,
    &image_remove,
    &image_export,
    &image_verify,
    &doctor,
    &version,
    &completion,
    &help,
};
const size_t command_n = COUNT(commands);

const struct command *command_find(const char *path)
{
    for (size_t i = 0; i < command_n; i++)
        if (strcmp(commands[i]->path, path) == 0)
            return commands[i];
    return NULL;
}

const struct command_group *command_group_find(const char *name)
{
    for (size_t i = 0; i < command_group_n; i++)
        if (strcmp(command_groups[i].name, name) == 0)
            return &command_groups[i];
    return NULL;
}

const struct cli_option *command_option(const struct command *command, const char *name)
{
    for (const struct cli_option *o = command->options; o->name; o++)
        if (strcmp(o->name, name) == 0 || (o->letter && strcmp(o->letter, name) == 0))
            return o;
    return NULL;
}

const char *command_in_group(const struct command *command, const char *group)
{
    size_t n = strlen(group);

    if (strncmp(command->path, group, n) != 0 || command->path[n] != ' ')
        return NULL;
    return command->path + n + 1;
}
