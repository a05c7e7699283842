/* SPDX-License-Identifier: Apache-2.0 */
/* Which options of which programs run their value. Each is documented by its program; those of
 * programs that most machines have are seen to do it in the test of this name,
 * tests/unit/lib/shell/option-oracle-test.c. */
#include "lib/shell/option-private.h"

/* clang-format off */
#define END {0}
#define OPTIONS(...) (const struct run_option[]){__VA_ARGS__, END}

/* ---- archives and copies ---- */

const struct run_options runs_tar = {
    .is_led = true, .look = look_tar, .values = "bCfgHKLNTVX", .v = OPTIONS(
        {.name = "--to-command", .as = RUNS_TEXT},
        {.letters = "I", .name = "--use-compress-program", .as = RUNS_START},
        {.name = "--checkpoint-action", .at_least = 13, .as = RUNS_TEXT, .only = "exec="},
        {.letters = "F", .name = "--info-script", .as = RUNS_TEXT},
        {.name = "--new-volume-script", .as = RUNS_TEXT},
        {.name = "--rsh-command", .as = RUNS_PROGRAM})};

const struct run_options runs_cpio = {
    .v = OPTIONS({.name = "--rsh-command", .as = RUNS_PROGRAM})};

const struct run_options runs_zip = {
    .v = OPTIONS({.letters = "TT", .name = "--unzip-command", .as = RUNS_START})};

/* Without the option it is ssh, too. */
const struct run_options runs_rsync = {
    .values = "fBTM@", .v = OPTIONS(
        {.letters = "e", .name = "--rsh", .as = RUNS_START, .except = " ssh "},
        {.name = "--rsync-path", .as = RUNS_REMOTE, .except = " rsync "})};

/* ---- ssh ---- */

static const struct run_key ssh_keys[] = {
    {"proxycommand",      RUNS_START,  " none ", NULL, NULL},
    {"localcommand",      RUNS_START,  NULL,     NULL, NULL},
    {"knownhostscommand", RUNS_START,  " none ", NULL, NULL},
    {"remotecommand",     RUNS_REMOTE, " none ", NULL, NULL},
    {"xauthlocation",     RUNS_UNSEEN, NULL,     NULL, NULL},
    {"*provider",         RUNS_UNSEEN, NULL,     NULL, NULL},
    END};

#define SSH_CONFIG {.letters = "o", .as = RUNS_KEYS, .keys = ssh_keys, .ends = "= \t"}

const struct run_options runs_ssh = {
    .values = "BbcDEeFIiJLlmOPpQRSWw", .v = OPTIONS(SSH_CONFIG)};

const struct run_options runs_scp = {
    .values = "ciJlPX", .v = OPTIONS(
        SSH_CONFIG,
        {.letters = "S", .as = RUNS_PROGRAM},
        {.letters = "D", .as = RUNS_START},
        {.letters = "F", .as = RUNS_UNSEEN})};

/* A batch has lines "!TEXT". */
const struct run_options runs_sftp = {
    .values = "BciJlPRsX", .v = OPTIONS(
        SSH_CONFIG,
        {.letters = "S", .as = RUNS_PROGRAM},
        {.letters = "D", .as = RUNS_START},
        {.letters = "F", .as = RUNS_UNSEEN},
        {.letters = "b", .as = RUNS_UNSEEN})};

/* ---- texts ---- */

const struct run_options runs_sed = {.look = look_sed, .values = "l", .glued = "i"};

const struct run_options runs_sort = {
    .v = OPTIONS({.name = "--compress-program", .as = RUNS_PROGRAM})};

const struct run_options runs_split = {
    .v = OPTIONS({.name = "--filter", .as = RUNS_TEXT})};

const struct run_options runs_fd = {
    .values = "dteESojc", .v = OPTIONS(
        {.letters = "x", .name = "--exec", .at_least = 6, .as = RUNS_REST},
        {.letters = "X", .name = "--exec-batch", .at_least = 12, .as = RUNS_REST})};

const struct run_options runs_rg = {
    .v = OPTIONS({.name = "--pre", .at_least = 5, .as = RUNS_PROGRAM},
                 {.name = "--hostname-bin", .as = RUNS_PROGRAM})};

const struct run_options runs_man = {
    .values = "CRLmMSserEp", .glued = "TX", .v = OPTIONS(
        {.letters = "P", .name = "--pager", .as = RUNS_START, .except = " cat "},
        {.letters = "H", .name = "--html", .as = RUNS_START, .glued = true})};

const struct run_options runs_less = {.look = look_less};

const struct run_options runs_vim = {
    .look = look_vim, .v = OPTIONS(
        {.letters = "c", .name = "--cmd", .as = RUNS_EDITOR},
        {.letters = "S", .as = RUNS_FILE},
        {.letters = "u", .as = RUNS_FILE})};

/* ---- the network ---- */

static const struct run_key wget_keys[] = {{"*askpass*", RUNS_UNSEEN, NULL, NULL, NULL}, END};

const struct run_options runs_wget = {
    .values = "aoiBtOTwQPUlARDIX", .glued = "n", .v = OPTIONS(
        {.name = "--use-askpass", .as = RUNS_PROGRAM},
        {.letters = "e", .name = "--execute", .as = RUNS_KEYS, .keys = wget_keys})};

const struct run_options runs_tcpdump = {
    .values = "BcCEFGijmMQrsTVwWyZ", .v = OPTIONS({.letters = "z", .as = RUNS_PROGRAM})};

const struct run_options runs_ip = {.look = look_ip};

/* ---- building and installing ---- */

const struct run_options runs_make = {
    .look = look_make, .values = "CIoW", .glued = "jlO", .v = OPTIONS(
        {.letters = "E", .name = "--eval", .as = RUNS_UNSEEN},
        {.letters = "f", .name = "--file", .as = RUNS_FILE},
        {.name = "--makefile", .as = RUNS_FILE})};

const struct run_options runs_cargo = {
    .v = OPTIONS({.name = "--config", .at_least = 8, .as = RUNS_UNSEEN})};

const struct run_options runs_go = {
    .v = OPTIONS({.name = "-exec", .as = RUNS_START, .at_least = 5},
                 {.name = "--exec", .as = RUNS_START, .at_least = 6},
                 {.name = "-toolexec", .as = RUNS_START, .at_least = 9},
                 {.name = "--toolexec", .as = RUNS_START, .at_least = 10},
                 {.name = "-vettool", .as = RUNS_PROGRAM, .at_least = 8},
                 {.name = "--vettool", .as = RUNS_PROGRAM, .at_least = 9})};

#define CALL {.letters = "c", .name = "--call", .as = RUNS_TEXT}
#define SCRIPT_SHELL {.name = "--script-shell", .at_least = 14, .as = RUNS_PROGRAM}

const struct run_options runs_npm = {.look = look_npm, .v = OPTIONS(SCRIPT_SHELL)};
const struct run_options runs_pnpm = {.look = look_npm, .v = OPTIONS(SCRIPT_SHELL)};
const struct run_options runs_npx = {.values = "pw", .v = OPTIONS(CALL, SCRIPT_SHELL)};

static const struct run_key apt_keys[] = {
    {"*pre-invoke*",         RUNS_TEXT,   NULL, NULL, NULL    },
    {"*post-invoke*",        RUNS_TEXT,   NULL, NULL, NULL    },
    {"*pre-install-pkgs*",   RUNS_TEXT,   NULL, NULL, NULL    },
    {"*invoke*",             RUNS_UNSEEN, NULL, NULL, NULL    },
    {"*proxy-auto-detect*",  RUNS_UNSEEN, NULL, NULL, NULL    },
    {"*proxyautodetect*",    RUNS_UNSEEN, NULL, NULL, NULL    },
    {"dir::bin*",            RUNS_UNSEEN, NULL, NULL, NULL    },
    {"dir::etc::main*",      RUNS_UNSEEN, NULL, NULL, NULL    },
    {"dir::etc::parts*",     RUNS_UNSEEN, NULL, NULL, NULL    },
    {"dpkg::path*",          RUNS_UNSEEN, NULL, NULL, NULL    },
    {"dpkg::options*",       RUNS_UNSEEN, NULL, NULL, "invoke"},
    {"dpkg::options*",       RUNS_UNSEEN, NULL, NULL, "logger"},
    {"apt::compressor::*",   RUNS_UNSEEN, NULL, NULL, NULL    },
    END};

const struct run_options runs_apt = {
    .values = "act", .v = OPTIONS({.letters = "o", .name = "--option", .as = RUNS_KEYS, .keys = apt_keys})};

const struct run_options runs_dpkg = {
    .v = OPTIONS({.name = "--pre-invoke", .as = RUNS_TEXT},
                 {.name = "--post-invoke", .as = RUNS_TEXT},
                 {.name = "--status-logger", .as = RUNS_TEXT})};

const struct run_options runs_install = {
    .v = OPTIONS({.name = "--strip-program", .at_least = 8, .as = RUNS_PROGRAM})};

const struct run_options runs_prove = {
    .values = "IMPja", .v = OPTIONS({.letters = "e", .name = "--exec", .at_least = 4, .as = RUNS_START})};

const struct run_options runs_cmake = {.look = look_cmake};
const struct run_options runs_run = {.look = look_run};
const struct run_options runs_crontab = {.look = look_crontab};
/* clang-format on */
