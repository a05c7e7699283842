/* SPDX-License-Identifier: Apache-2.0 */

/* The rows of the sandbox commands, and the options they take. */

#include "surface/cli/commands.h"

#include "surface/cli/options.h"

/* clang-format off */

/* What a sandbox may use: the same flags wherever a plan is made. */
#define OPTIONS_LIMITS \
    {"--timeout", "DUR", VALUE_DURATION, .help = "end it after this long, e.g. 30s, 5m"}, \
    {"--cpu", "N", VALUE_CPUS, .help = "processors it may use, e.g. 2 or 0.5"}, \
    {"--memory", "SIZE", VALUE_SIZE, .help = "memory of all its processes, e.g. 512M"}, \
    {"--pids", "N", VALUE_COUNT, .help = "processes and threads at the same time"}, \
    {"--disk", "SIZE", VALUE_SIZE, .help = "bytes its own files may take on disk, e.g. 1G"}, \
    {"--inodes", "N", VALUE_COUNT, .help = "files and folders of its own at the same time"}

/* The folder that is worked on, and what lies in it that other programs run. */
#define OPTIONS_WORKSPACE \
    {"--workspace", "DIR[:ro|rw|none|mirror]", VALUE_TEXT, \
     .help = "the folder to work on, shown as /workspace: read-only unless rw, empty with none, a " \
             "copy with mirror (see \"sandbox sync\")"}, \
    {"--allow-protected", \
     .help = "below what may be written, let it change files that tools of this machine run by " \
             "themselves: git hooks and config, editor tasks, shell files"}

#define OPTION_USER \
    {"--user", "USER[:GROUP]", VALUE_TEXT, \
     .help = "who its commands are inside, a number or a name of the image; nobody is root " \
             "(default: what the policy or the image says, else 1000)"}

#define OPTION_OVERLAY \
    {"--overlay", "FILE", VALUE_FILE, .repeatable = true, \
     .help = "a policy that only takes away from it; the strictest of all holds"}

#define OPTION_SOCKETS \
    {"--sockets", "WHICH", VALUE_CHOICE, .values = "none", \
     .help = "none: its commands can make no socket of any kind, not even to each other"}

static const struct cli_option exec_options[] = {
    {"--provider", "P", VALUE_TEXT, .values = PROVIDERS,
     .help = "where to run it: local or mock (default: local)"},
    {"--profile", "FILE", VALUE_FILE,
     .help = "profile: version pin, limits, how strictly"},
    {"--image", "REF", VALUE_TEXT, .values = "host",
     .help = "root file system (default: host, the system directories of this machine)"},
    {"--policy", "FILE", VALUE_FILE,
     .help = "policy to decide by (default: the standing one, else run anything, no network)"},
    OPTION_OVERLAY,
    OPTIONS_LIMITS,
    {"--env", "K[=V]", VALUE_TEXT, .repeatable = true,
     .help = "set a variable, or forward one of yours by name; nothing else is passed on"},
    OPTIONS_WORKSPACE,
    {"--mount", "SRC:DST[:ro|rw]", VALUE_TEXT, .repeatable = true,
     .help = "show a file or directory of this machine inside, read-only unless rw"},
    {"--workdir", "DIR", VALUE_TEXT,
     .help = "directory inside to start in"},
    {"--network", "MODE", VALUE_CHOICE, .values = "none policy",
     .help = "none: closed, whatever the policy says; policy: by its network rules, refused without "
             "(default: by its network rules, closed without)"},
    OPTION_USER,
    OPTION_SOCKETS,
    {"--tty", .help = "give the command a terminal"},
    {"--no-pool", .help = "build the sandbox, even if a prepared one is there"},
    {"--keep", .help = "in a kept sandbox: leave running what it started in the background"},
    {"--detach", .help = "in a kept sandbox: return at once with an id; see \"sandbox logs\""},
    {"--elevated", .help = "on this machine itself, without walls: only what \"elevated\" of the standing "
                           "policy spells out, once a person has confirmed it"},
    {"--wait", "DUR", VALUE_DURATION, .help = "wait so long for a person, if one must confirm it"},
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
     .help = "policy its commands are decided by (default: the standing one, else run anything, no network)"},
    OPTION_OVERLAY,
    OPTIONS_LIMITS,
    {"--env", "K[=V]", VALUE_TEXT, .repeatable = true,
     .help = "set a variable for its commands, or forward one of yours by name"},
    OPTIONS_WORKSPACE,
    {"--mount", "SRC:DST[:ro|rw]", VALUE_TEXT, .repeatable = true,
     .help = "show a file or directory of this machine inside, read-only unless rw"},
    {"--workdir", "DIR", VALUE_TEXT,
     .help = "directory inside its commands start in"},
    OPTION_USER,
    OPTION_SOCKETS,
    {"--no-pool", .help = "build the sandbox, even if a prepared one is there"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option pool_fill_options[] = {
    {"--size", "N", VALUE_COUNT, .help = "how many there should be"},
    {"--ttl", "DUR", VALUE_DURATION,
     .help = "end those that nobody took after this long (default: 1h)"},
    {"--profile", "FILE", VALUE_FILE,
     .help = "profile: version pin, limits, how strictly"},
    {"--image", "REF", VALUE_TEXT, .values = "host",
     .help = "root file system (default: host, the system directories of this machine)"},
    {"--policy", "FILE", VALUE_FILE,
     .help = "policy they are planned under (default: the standing one, else run anything, no network)"},
    OPTION_OVERLAY,
    OPTIONS_LIMITS,
    {"--mount", "SRC:DST[:ro|rw]", VALUE_TEXT, .repeatable = true,
     .help = "show a file or directory of this machine inside, read-only unless rw"},
    OPTION_USER,
    OPTION_SOCKETS,
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

static const struct cli_option diff_options[] = {
    {"--patch", .help = "show what changed in each file, too"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option sync_options[] = {
    {"--apply", .help = "make the changes; without it they are only shown"},
    {"--theirs", .help = "where both sides changed, take what the sandbox has"},
    {"--ours", .help = "where both sides changed, keep what is here, for good"},
    {"--include-protected",
     .help = "also files that tools of this machine run by themselves, such as git hooks"},
    {"--include-links", .help = "also links that lead out of the workspace"},
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
    OPTION_OVERLAY,
    OPTIONS_LIMITS,
    OPTIONS_WORKSPACE,
    OPTION_USER,
    OPTION_SOCKETS,
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

static const struct cli_option json_option[] = {OPTION_JSON, OPTIONS_END};
static const struct cli_option no_options[] = {OPTIONS_END};

/* clang-format on */

const struct command sandbox_exec = {
    .path = "sandbox exec",
    .operands = "[ID] -- CMD [ARG...]",
    .operand_min = 1,
    .operand_max = ANY_NUMBER,
    .takes_command = true,
    .takes_subject = true,
    .summary = "run a command in a sandbox, under a policy, with receipts",
    .help =
        "The command and its arguments stand behind \"--\" and run exactly as written, "
        "without a shell. Standard input, output and error are passed through. A closing "
        "line on standard error names verdict, receipt and duration.\n"
        "\n"
        "With an ID (or name) the command runs in that kept sandbox, see \"sandbox create\": "
        "of the flags only --timeout, --env, --workdir, --tty, --keep, --detach, --wait, --quiet "
        "and --json are possible then.\n"
        "\n"
        "Exit status: the command's; 128+n when signal n ended it; 124 timed out; 126 not "
        "executable; 127 not found; 77 denied.",
    .options = exec_options,
    .run = run_sandbox_exec,
    .remote = remote_sandbox_exec,
};

const struct command sandbox_create = {
    .path = "sandbox create",
    .operands = "",
    .summary = "make a sandbox that stays, for many commands",
    .help = "It stays until its time is over or it is destroyed, also when nobody looks: "
            "\"sandbox exec ID -- CMD\" runs commands in it, several at once. Files, limits and "
            "policy are the sandbox's; time is each command's own.",
    .options = create_options,
    .run = run_sandbox_create,
    .remote = remote_sandbox_create,
};

const struct command sandbox_list = {
    .path = "sandbox list",
    .operands = "",
    .summary = "list the sandboxes that stay",
    .help = "One line each: id, state, name, when it ends.",
    .options = list_options,
    .run = run_sandbox_list,
    .remote = remote_sandbox_list,
};

const struct command sandbox_show = {
    .path = "sandbox show",
    .operands = "ID",
    .operand_min = 1,
    .operand_max = 1,
    .summary = "show one sandbox in full, as JSON",
    .help = "ID is an id or a name.",
    .options = json_option,
    .run = run_sandbox_show,
    .remote = remote_sandbox_show,
};

const struct command sandbox_pause = {
    .path = "sandbox pause",
    .operands = "ID...",
    .operand_min = 1,
    .operand_max = ANY_NUMBER,
    .summary = "stop every process of a sandbox where it stands",
    .help = "Its time goes on running; commands are refused until it is resumed.",
    .options = json_option,
    .run = run_sandbox_pause,
    .remote = remote_sandbox_pause,
};

const struct command sandbox_resume = {
    .path = "sandbox resume",
    .operands = "ID...",
    .operand_min = 1,
    .operand_max = ANY_NUMBER,
    .summary = "let a paused sandbox go on",
    .help = "Its processes continue where they stood.",
    .options = json_option,
    .run = run_sandbox_resume,
    .remote = remote_sandbox_resume,
};

const struct command sandbox_extend = {
    .path = "sandbox extend",
    .operands = "ID...",
    .operand_min = 1,
    .operand_max = ANY_NUMBER,
    .summary = "give a sandbox more time",
    .help = "Counted from now, and never beyond its --lifetime.",
    .options = extend_options,
    .run = run_sandbox_extend,
    .remote = remote_sandbox_extend,
};

const struct command sandbox_destroy = {
    .path = "sandbox destroy",
    .operands = "ID...",
    .operand_min = 1,
    .operand_max = ANY_NUMBER,
    .summary = "end a sandbox and everything in it",
    .help = "Returns when nothing of it is left.",
    .options = json_option,
    .run = run_sandbox_destroy,
    .remote = remote_sandbox_destroy,
};

const struct command sandbox_recreate = {
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
    .remote = remote_sandbox_recreate,
};

const struct command sandbox_explain = {
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

const struct command sandbox_top = {
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

const struct command pool_fill = {
    .path = "pool fill",
    .operands = "",
    .summary = "build sandboxes ahead, so that making one is a hand-over",
    .help =
        "\"sandbox exec\" and \"sandbox create\" take one by themselves when it is exactly what "
        "they would build: the same limits, mounts, image and tenant. Each is taken once and "
        "looked at again before anything runs in it. Behind a command that took one, the pool "
        "is filled up in the background.",
    .options = pool_fill_options,
    .run = run_pool_fill,
};

const struct command pool_list = {
    .path = "pool list",
    .operands = "",
    .summary = "list what was built ahead",
    .help =
        "One line a pool: how many of how many are ready. \"sandbox list\" does not show them: they "
        "are nobody's yet.",
    .options = json_option,
    .run = run_pool_list,
};

const struct command pool_refill = {
    .path = "pool refill",
    .operands = "",
    .summary = "fill up all pools to their size",
    .help =
        "Ends what would be made differently today and makes what is missing. Happens by itself "
        "behind a command that took one.",
    .options = json_option,
    .run = run_pool_refill,
};

const struct command pool_drain = {
    .path = "pool drain",
    .operands = "[POOL...]",
    .operand_max = ANY_NUMBER,
    .values = "",
    .summary = "end what was built ahead and nobody took",
    .help = "All pools, or those named. Sandboxes that were taken stay.",
    .options = json_option,
    .run = run_pool_drain,
};

const struct command sandbox_logs = {
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

const struct command sandbox_attach = {
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

const struct command sandbox_ps = {
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
    .remote = remote_sandbox_ps,
};

const struct command sandbox_files = {
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
    .remote = remote_sandbox_files,
};

const struct command sandbox_cp = {
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
    .apart = "it copies folders of this machine itself",
};

const struct command sandbox_port = {
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

const struct command sandbox_diff = {
    .path = "sandbox diff",
    .operands = "ID",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "show what changed in a mirrored workspace",
    .help =
        "A line for each file, folder or link that is not as it was when the workspace was "
        "copied in or last synced: A added, M changed, D removed, and what would stand in the way "
        "of bringing it back. The sandbox is held still while it is read.",
    .options = diff_options,
    .run = run_sandbox_diff,
    .apart = "it compares with a folder of this machine",
};

const struct command sandbox_sync = {
    .path = "sandbox sync",
    .operands = "ID",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "bring changes of a mirrored workspace back to its folder",
    .help = "Shows what would be done; with --apply it is done. What changed on both sides is a "
            "conflict and left alone, unless --theirs or --ours is given. Files that tools of this "
            "machine run by themselves, links that lead out, and special files are named and not "
            "brought back. Nothing outside the folder is touched, each file is replaced at once.\n"
            "\n"
            "Exit status: 0 when nothing is left to do, 75 when something was held back.",
    .options = sync_options,
    .run = run_sandbox_sync,
    .apart = "it changes a folder of this machine",
};

const struct command sandbox_preflight = {
    .path = "sandbox preflight",
    .operands = "",
    .summary = "build a sandbox, run nothing, and show planned against observed",
    .help = "Every check prints what was expected, what was seen, and whether they agree. "
            "Exit status 0 when all do, 77 when a run would be denied.",
    .options = preflight_options,
    .run = run_sandbox_preflight,
    .apart = "it looks at this machine",
};

const struct command sandbox_conform = {
    .path = "sandbox conform",
    .operands = "",
    .summary = "test a provider against what Brig promises of it",
    .help = "Runs the checks of a tier against the provider and prints one line for each. "
            "Exit status 0 when all pass, 77 otherwise.",
    .options = conform_options,
    .run = run_sandbox_conform,
    .apart = "it looks at this machine",
};
