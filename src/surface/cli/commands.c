/* SPDX-License-Identifier: Apache-2.0 */

/* Every command there is. Help, completion, the manual and the parser are made of these rows. */

#include "surface/cli/commands.h"

#include "surface/cli/options.h"

#include <string.h>

/* Options. Version 14 of clang-format garbles tables that share rows through macros. */
/* clang-format off */

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

static const struct cli_option token_create_options[] = {
    {"--tenant", "NAME", VALUE_TEXT, .help = "whose sandboxes it is for (default: default)"},
    {"--principal", "NAME", VALUE_TEXT,
     .help = "who acts with it, as receipts name them (default: token:ID)"},
    {"--scope", "SCOPE", VALUE_CHOICE, .repeatable = true,
     .values = "read run host images receipts policy approve metrics admin vault",
     .help = "what it may do, repeatable: read, run, host, images, receipts, policy, approve, metrics, admin or vault (default: read, run and receipts)"},
    {"--expires", "DUR", VALUE_DURATION, .help = "it ends by itself after this long"},
    {"--rate", "N", VALUE_COUNT, .help = "requests a second (default: the daemon's)"},
    {"--at-once", "N", VALUE_COUNT, .help = "requests under way (default: the daemon's)"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option token_list_options[] = {
    {"--tenant", "NAME", VALUE_TEXT, .help = "only those of this tenant"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option approvals_list_options[] = {
    {"--state", "STATE", VALUE_CHOICE, .values = "pending confirmed rejected used expired any",
     .help = "only those: pending, confirmed, rejected, used, expired or any (default: pending)"},
    {"--after", "SEQ", VALUE_COUNT, .help = "only those that were asked for after this one"},
    {"--limit", "N", VALUE_COUNT, .help = "at most so many, the oldest (default: 100)"},
    {"--requester", "NAME", VALUE_TEXT, .help = "only what this one has asked for"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option approvals_custodians_options[] = {
    {"--remove", "NAME", VALUE_TEXT, .help = "instead: his word counts no longer"},
    {"--by", "NAME", VALUE_TEXT, .help = "the custodian who says so"},
    {"--by-passphrase-file", "FILE", VALUE_FILE, .help = "and that one's passphrase"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option approvals_word_options[] = {
    {"--as", "NAME", VALUE_TEXT, .help = "the custodian who says so; asks for the passphrase"},
    {"--passphrase-file", "FILE", VALUE_FILE, .help = "read it from there instead of the terminal"},
    {"--comment", "TEXT", VALUE_TEXT, .help = "for whoever asked, and for the receipt"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option approvals_enroll_options[] = {
    {"--public-key", "HEX", VALUE_TEXT,
     .help = "the key stays with its owner, who signs elsewhere (64 hex digits)"},
    {"--passphrase-file", "FILE", VALUE_FILE, .help = "read it from there instead of the terminal"},
    {"--by", "NAME", VALUE_TEXT, .help = "who is a custodian already and wants another one"},
    {"--by-passphrase-file", "FILE", VALUE_FILE, .help = "and that one's passphrase"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option approvals_renew_options[] = {
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option approvals_notify_options[] = {
    {"--webhook", "URL", VALUE_TEXT, .help = "set: https://, or http:// on this machine"},
    {"--secret-file", "FILE", VALUE_FILE,
     .help = "set: the webhook's secret, whsec_ and base64 or 24 to 64 bytes; - is standard input"},
    {"--command", "PROGRAM", VALUE_FILE,
     .help = "set: its whole path; only root or you may be able to change it"},
    {"--arg", "ARG", VALUE_TEXT, .repeatable = true, .help = "set: an argument of the command"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option usage_options[] = {
    {"--since", "DAY", VALUE_TEXT, .help = "only from this day on, e.g. 2026-11-16"},
    {"--principal", "NAME", VALUE_TEXT, .help = "only of this one"},
    {"--limit", "N", VALUE_COUNT, .help = "at most so many lines (default: 1000)"},
    OPTION_JSON,
    OPTIONS_END,
};

#define OPTIONS_FROZEN                                                                             \
    {"--principal", "NAME", VALUE_TEXT, .help = "only of this one, as receipts name them"},        \
    {"--tenant", "NAME", VALUE_TEXT, .help = "only of this tenant (default: of every one)"}

static const struct cli_option freeze_options[] = {
    OPTIONS_FROZEN,
    {"--reason", "TEXT", VALUE_TEXT, .help = "why, for those who are refused"},
    {"--status", .help = "tell what is frozen, and change nothing"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option unfreeze_options[] = {
    OPTIONS_FROZEN,
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option serve_options[] = {
    {"--listen", "ADDR:PORT", VALUE_TEXT, .repeatable = true,
     .help = "listen there (default: 127.0.0.1:8080); port 0 takes a free one"},
    {"--socket", "PATH", VALUE_FILE, .help = "unix socket (default: daemon.sock in the state directory)"},
    {"--host", "NAME", VALUE_TEXT, .repeatable = true,
     .help = "a name it may be called by, besides localhost"},
    {"--policy", "FILE", VALUE_FILE, .help = "rules of tenants that have none of their own"},
    {"--profile", "FILE", VALUE_FILE, .help = "how sandboxes are made"},
    {"--tls-cert", "FILE", VALUE_FILE, .help = "certificate chain (PEM): speak TLS on every address"},
    {"--tls-key", "FILE", VALUE_FILE, .help = "its key (PEM)"},
    {"--runs", "N", VALUE_COUNT, .help = "commands at once (default: 1024); others wait"},
    {"--grace", "DUR", VALUE_DURATION,
     .help = "how long requests may go on when it is told to stop (default: 10s)"},
    {"--upstream", "URL", VALUE_TEXT,
     .help = "where other models than helm-governance are; https, or http on this machine"},
    {"--upstream-key-file", "FILE", VALUE_TEXT, .help = "the key the upstream wants to see"},
    {"--otlp", "URL", VALUE_TEXT,
     .help = "send traces, logs and metrics to this OpenTelemetry collector (OTLP/HTTP, JSON; "
             "default: OTEL_EXPORTER_OTLP_ENDPOINT, or nowhere)"},
    {"--otlp-plain", NULL, VALUE_NONE, .help = "also over plain HTTP to another machine"},
    OPTIONS_END,
};

static const struct cli_option json_option[] = {OPTION_JSON, OPTIONS_END};
static const struct cli_option no_options[] = {OPTIONS_END};

/* clang-format on */

const struct command_group command_groups[] = {
    {"sandbox",   "run commands inside walls"       },
    {"snapshot",  "what sandboxes were, put aside"  },
    {"pool",      "sandboxes built ahead"           },
    {"image",     "get, check and remove images"    },
    {"receipts",  "read and check what was recorded"},
    {"policy",    "work with the rules that decide" },
    {"token",     "who may speak to the daemon"     },
    {"approvals", "what waits for a person's word"  },
    {"vault",     "secrets, and where each may go"  },
    {"budget",    "what runs may use together"      },
    {"advisory",  "agents that only advise"         },
    {"gate",      "when an agent may do more"       },
};
const size_t command_group_n = COUNT(command_groups);

static const struct command receipts_list = {
    .path = "receipts list",
    .operands = "",
    .summary = "list the newest receipts",
    .help =
        "One line a receipt: sequence number, time, kind, action, status, verdict, reason and id.",
    .options = receipts_list_options,
    .run = run_receipts_list,
    .remote = remote_receipts_list,
};

static const struct command receipts_show = {
    .path = "receipts show",
    .operands = "ID",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "show one receipt whole",
    .help = "ID is a receipt id as printed by \"receipts list\" and \"sandbox exec\", the "
            "beginning of one, or a sequence number. One that is not what was signed, or does not "
            "follow the one before it, is shown all the same: what is wrong is said on standard "
            "error, with --json the receipt stands in the details of the error, and the exit "
            "status is 76.",
    .options = json_option,
    .run = run_receipts_show,
    .remote = remote_receipts_show,
};

static const struct command receipts_verify = {
    .path = "receipts verify",
    .operands = "",
    .summary = "check every hash, signature and link of the ledger",
    .help = "Says integrity and completeness separately and names the first bad entry.",
    .options = receipts_verify_options,
    .takes_time = "checking the ledger",
    .run = run_receipts_verify,
    .apart = "a proof is not taken on trust; export the receipts and check them with \"verify\"",
};

static const struct command receipts_head = {
    .path = "receipts head",
    .operands = "",
    .summary = "print a signed head of the ledger, to be kept elsewhere",
    .help = "Whoever holds a head can later prove that nothing up to it was cut off: give it "
            "to \"receipts verify --head FILE\" or \"verify --head FILE\".",
    .options = json_option,
    .run = run_receipts_head,
    .remote = remote_receipts_head,
};

static const struct command receipts_export = {
    .path = "receipts export",
    .operands = "",
    .summary = "write all receipts as JSON lines",
    .help = "The exported file can be checked anywhere with \"verify FILE\".",
    .options = receipts_export_options,
    .run = run_receipts_export,
    .remote = remote_receipts_export,
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
    .takes_time = "checking receipts",
    .run = run_verify,
    .local = true,
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
    .local = true,
};

static const struct cli_option policy_apply_options[] = {
    {"--sandbox", "ID", VALUE_TEXT, .help = "the kept sandbox it is for, by id or name"},
    OPTION_JSON,
    OPTIONS_END,
};

static const struct command policy_apply = {
    .path = "policy apply",
    .operands = "FILE",
    .operand_min = 1,
    .operand_max = 1,
    .summary = "make a policy the standing one, or that of a sandbox that stands",
    .help = "It holds for every run and every new sandbox that brings no --policy of its own, also "
            "for those of a daemon of this state directory. Sandboxes that stand keep theirs, "
            "unless --sandbox names one: its network rules are exchanged at once, all or nothing, "
            "and its commands are decided by the policy from then on. A policy that would change "
            "anything else of it is refused, and nothing changes.",
    .options = policy_apply_options,
    .run = run_policy_apply,
};

static const struct command policy_reset = {
    .path = "policy reset",
    .operands = "",
    .summary = "no standing policy any more: the built-in one holds",
    .help = "A daemon that was started with --policy goes back to that one.",
    .options = json_option,
    .run = run_policy_reset,
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

static const struct command serve = {
    .path = "serve",
    .operands = "",
    .summary = "serve the HTTP API of this state directory",
    .help =
        "Clients need a token (\"token create\"), or reach it over its unix socket as the user "
        "who runs it. One daemon serves one state directory; kept sandboxes outlive it. Sockets "
        "it is given by systemd are used, too.",
    .options = serve_options,
    .run = run_serve,
    .local = true,
};

static const struct command token_create = {
    .path = "token create",
    .operands = "",
    .summary = "make a token for clients of the daemon",
    .help = "Its words are printed once and stored nowhere: only their hash is kept. A tenant sees "
            "nothing of another one.",
    .options = token_create_options,
    .run = run_token_create,
};

static const struct command token_list = {
    .path = "token list",
    .operands = "",
    .summary = "list the tokens there are",
    .help = "One line a token: id, tenant, principal, whether it is valid, and scopes.",
    .options = token_list_options,
    .run = run_token_list,
};

static const struct command token_revoke = {
    .path = "token revoke",
    .operands = "ID...",
    .operand_min = 1,
    .operand_max = ANY_NUMBER,
    .values = "",
    .summary = "end tokens for good",
    .help = "A running daemon refuses them from the next request on.",
    .options = json_option,
    .run = run_token_revoke,
};

static const struct command approvals_list = {
    .path = "approvals list",
    .operands = "",
    .summary = "list what waits for a person",
    .help = "One line each: id, state, when it was asked for, by whom, and the command.",
    .options = approvals_list_options,
    .run = run_approvals_list,
    .remote = remote_approvals_list,
};

static const struct command approvals_show = {
    .path = "approvals show",
    .operands = "ID",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "show exactly what would happen",
    .help = "All that would happen, escaped; what is too long says how much is not shown (--json "
            "has all). ID may be the beginning of one.",
    .options = json_option,
    .run = run_approvals_show,
    .remote = remote_approvals_show,
};

static const struct command approvals_confirm = {
    .path = "approvals confirm",
    .operands = "ID",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "let exactly that happen, once",
    .help =
        "It holds for exactly what was asked, for ten minutes unless the policy says otherwise; "
        "the policy may want several people and a reason. Nobody confirms what he asked "
        "for himself; on a machine of one person a custodian with a passphrase does "
        "(\"approvals enroll\").",
    .options = approvals_word_options,
    .run = run_approvals_confirm,
    .remote = remote_approvals_confirm,
};

static const struct command approvals_reject = {
    .path = "approvals reject",
    .operands = "ID",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "refuse it",
    .help = "The same request is refused until this one would have expired.",
    .options = approvals_word_options,
    .run = run_approvals_reject,
    .remote = remote_approvals_reject,
};

static const struct command approvals_enroll = {
    .path = "approvals enroll",
    .operands = "NAME",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "make somebody a custodian, who confirms with a passphrase",
    .help = "The first is enrolled by whoever owns the state directory, every other one by a "
            "custodian. The key is kept sealed; without the passphrase it is of no use.",
    .options = approvals_enroll_options,
    .run = run_approvals_enroll,
};

static const struct command approvals_renew_row = {
    .path = "approvals renew",
    .operands = "",
    .summary = "begin anew where approvals.db is gone",
    .help =
        "What waited, what was confirmed and the custodians are gone with it: enroll them again. "
        "Until then nobody can be asked. Changes nothing where the file is there.",
    .options = approvals_renew_options,
    .run = run_approvals_renew,
};

static const struct command approvals_custodians = {
    .path = "approvals custodians",
    .operands = "",
    .summary = "list the custodians there are, or remove one",
    .help = "One line each: name, key id, since when and until when. One who was removed confirms "
            "nothing more, and what he has said counts for nothing that has not happened yet.",
    .options = approvals_custodians_options,
    .run = run_approvals_custodians,
};

static const struct command approvals_notify = {
    .path = "approvals notify",
    .operands = "[show | set | remove | test]",
    .operand_max = 1,
    .values = "show set remove test",
    .summary = "say who is told when something waits for a person",
    .help = "A webhook gets each message signed (Standard Webhooks), a command on its standard "
            "input, both as JSON: approval.pending, approval.confirmed, approval.rejected, "
            "advisory.action_pending. \"set\" replaces what was said before, for all tenants of a "
            "daemon; \"show\" also says how it went; \"test\" sends a message and waits. Whether a "
            "message arrives changes no verdict.",
    .options = approvals_notify_options,
    .run = run_approvals_notify,
    .apart = "who is told is for the operator of the daemon's machine to say",
};

static const struct command usage = {
    .path = "usage",
    .operands = "",
    .summary = "what was used, by day and principal",
    .help = "Sums over the ledger: commands, sandboxes made, refusals, seconds, processor seconds "
            "and bytes of output. The first call reads the whole ledger, later ones what is new.",
    .options = usage_options,
    .takes_time = "adding up the ledger",
    .run = run_usage,
};

static const struct command freeze = {
    .path = "freeze",
    .operands = "",
    .summary = "refuse all new effects, of everybody or of some",
    .help = "From the next request on everything new is denied with SYSTEM_FROZEN, whatever the "
            "policy says; a daemon of this state directory obeys at once. With a principal every "
            "token is stopped that it has made, or that was made with one of those. What runs "
            "already goes on: \"sandbox pause\" and \"sandbox destroy\" work as before.",
    .options = freeze_options,
    .run = run_freeze,
    .remote = remote_freeze,
};

static const struct command unfreeze = {
    .path = "unfreeze",
    .operands = "",
    .summary = "take such a refusal back",
    .help = "Takes back exactly the entry that \"freeze\" made with the same options; others stay.",
    .options = unfreeze_options,
    .run = run_unfreeze,
    .remote = remote_unfreeze,
};

static const struct command doctor = {
    .path = "doctor",
    .operands = "",
    .summary = "what this machine can enforce, and how to fix what it cannot",
    .help = "Exit status 0 when the local provider can be used, 69 when it cannot.",
    .options = json_option,
    .run = run_doctor,
    .local = true,
};

static const struct command version = {
    .path = "version",
    .operands = "",
    .summary = "version, build and libraries",
    .help = "",
    .options = json_option,
    .run = run_version,
    .local = true,
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
    .local = true,
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
    .local = true,
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
    &sandbox_snapshot,
    &sandbox_restore,
    &sandbox_fork,
    &sandbox_top,
    &sandbox_files,
    &sandbox_cp,
    &sandbox_port,
    &sandbox_diff,
    &sandbox_sync,
    &sandbox_preflight,
    &sandbox_conform,
    &snapshot_list_row,
    &snapshot_show_row,
    &snapshot_remove_row,
    &snapshot_verify_row,
    &snapshot_tend_row,
    &snapshot_export_row,
    &snapshot_import_row,
    &pool_fill,
    &pool_list,
    &pool_refill,
    &pool_drain,
    &receipts_list,
    &receipts_show,
    &receipts_verify,
    &receipts_head,
    &receipts_export,
    &verify_files,
    &policy_check,
    &policy_explain,
    &policy_preset,
    &policy_suggest_row,
    &policy_proposals_row,
    &policy_apply,
    &policy_reset,
    &policy_ceiling,
    &policy_bundle_row,
    &policy_trust_row,
    &policy_diff_row,
    &policy_test_row,
    &image_pull,
    &image_import,
    &image_list,
    &image_show,
    &image_remove,
    &image_export,
    &image_verify,
    &serve,
    &token_create,
    &token_list,
    &token_revoke,
    &approvals_list,
    &approvals_show,
    &approvals_confirm,
    &approvals_reject,
    &approvals_enroll,
    &approvals_custodians,
    &approvals_renew_row,
    &approvals_notify,
    &advisory_check_row,
    &advisory_run_row,
    &advisory_report_row,
    &advisory_replay_row,
    &advisory_export_row,
    &advisory_actions_row,
    &advisory_confirm_row,
    &advisory_reject_row,
    &advisory_end_row,
    &gate_report_row,
    &gate_sign_row,
    &gate_release_row,
    &gate_revoke_row,
    &gate_status_row,
    &vault_set_row,
    &vault_rotate_row,
    &vault_bind_row,
    &vault_unbind_row,
    &vault_list_row,
    &vault_show_row,
    &vault_remove_row,
    &vault_rekey_row,
    &usage,
    &budget_show_row,
    &budget_set_row,
    &budget_remove_row,
    &budget_reset_row,
    &budget_renew_row,
    &budget_price_row,
    &freeze,
    &unfreeze,
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
