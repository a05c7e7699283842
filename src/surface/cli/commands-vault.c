/* SPDX-License-Identifier: Apache-2.0 */

/* The rows of "brig vault". */

#include "surface/cli/commands.h"

#include "surface/cli/options.h"

/* clang-format off */

#define OPTION_PASSPHRASE {.name = "--passphrase-file", .argument = "FILE", .kind = VALUE_FILE, \
     .help = "the vault's passphrase, when its key is one (default: asks)"}
#define OPTION_VALUE {.name = "--file", .argument = "FILE", .kind = VALUE_FILE, \
     .help = "read the value from there (default: standard input, or asks on a terminal)"}

static const struct cli_option value_options[] = {
    OPTION_VALUE,
    OPTION_PASSPHRASE,
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option plain_options[] = {
    OPTION_PASSPHRASE,
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option bind_options[] = {
    {"--host", "HOST", VALUE_TEXT, .help = "the one host it may go to; required"},
    {"--slot", "SLOT", VALUE_TEXT, .values = "header:authorization basic:password",
     .help = "where it goes: header:NAME, query:KEY, body:/POINTER, basic:user, basic:password, sigv4:SERVICE/REGION, websocket:/POINTER; "
             "required"},
    {"--port", "N", VALUE_COUNT, .help = "default: 443, or 80 with http"},
    {"--scheme", "SCHEME", VALUE_CHOICE, .values = "https http", .help = "https or http (default: https)"},
    {"--method", "METHOD", VALUE_TEXT, .values = "GET POST PUT PATCH DELETE",
     .help = "only with this one (default: any)"},
    {"--path", "GLOB", VALUE_TEXT,
     .help = "only for these paths; * stays within a segment, ** does not (default: any)"},
    {"--subject", "GLOB", VALUE_TEXT, .help = "only for what these principals run (default: any)"},
    {"--pack", "GLOB", VALUE_TEXT, .help = "only for these packs (default: any, and none)"},
    {"--tenant", "NAME", VALUE_TEXT, .help = "only for this tenant (default: default)"},
    OPTION_PASSPHRASE,
    OPTION_JSON,
    OPTIONS_END,
};

static const struct cli_option rekey_options[] = {
    {"--master", "KIND", VALUE_CHOICE, .values = "file keyring passphrase",
     .help = "where the key is kept from now on: file, keyring or passphrase (default: file)"},
    {"--new-passphrase-file", "FILE", VALUE_FILE,
     .help = "the passphrase from now on (default: asks, twice)"},
    OPTION_PASSPHRASE,
    OPTION_JSON,
    OPTIONS_END,
};

#define APART "its secrets are its operator's: ask there"

const struct command vault_set_row = {
    .path = "vault set",
    .operands = "NAME",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "put a secret into the vault, or another value of it",
    .help = "The value is never taken from the command line; one line end at its end is cut off. It "
            "is used nowhere before it is bound. Inside a sandbox write ${vault:NAME} where it "
            "belongs.",
    .options = value_options,
    .run = run_vault_set,
    .apart = APART,
};

const struct command vault_rotate_row = {
    .path = "vault rotate",
    .operands = "NAME",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "give a secret that is there another value",
    .help = "The old one is gone; bindings stay.",
    .options = value_options,
    .run = run_vault_rotate,
    .apart = APART,
};

const struct command vault_bind_row = {
    .path = "vault bind",
    .operands = "NAME",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "say which requests a secret may go into",
    .help = "All of it must fit, and it goes into that slot and no other.",
    .options = bind_options,
    .run = run_vault_bind,
    .apart = APART,
};

const struct command vault_unbind_row = {
    .path = "vault unbind",
    .operands = "NAME BINDING",
    .operand_min = 2,
    .operand_max = 2,
    .values = "",
    .summary = "take a binding away",
    .help = "BINDING is an id as \"vault show\" prints it. It holds from the next request on.",
    .options = plain_options,
    .run = run_vault_unbind,
    .apart = APART,
};

const struct command vault_list_row = {
    .path = "vault list",
    .operands = "",
    .summary = "list the secrets there are",
    .help = "One line each: name, version, when it was changed, and how many bindings it has. Values "
            "are never shown.",
    .options = plain_options,
    .run = run_vault_list,
    .apart = APART,
};

const struct command vault_show_row = {
    .path = "vault show",
    .operands = "NAME",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "show what a secret is bound to",
    .help = "Its value is never shown.",
    .options = plain_options,
    .run = run_vault_show,
    .apart = APART,
};

const struct command vault_remove_row = {
    .path = "vault remove",
    .operands = "NAME",
    .operand_min = 1,
    .operand_max = 1,
    .values = "",
    .summary = "remove a secret and its bindings",
    .help = "It is gone for good.",
    .options = plain_options,
    .run = run_vault_remove,
    .apart = APART,
};

const struct command vault_rekey_row = {
    .path = "vault rekey",
    .operands = "",
    .summary = "give the vault another master key",
    .help = "Every secret is sealed anew in one step; the old key is removed. A key in the keyring is "
            "gone when the machine restarts: keep a copy (keyctl pipe).",
    .options = rekey_options,
    .run = run_vault_rekey,
    .apart = APART,
};
/* clang-format on */
