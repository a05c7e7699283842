/* SPDX-License-Identifier: Apache-2.0 */
/* git: settings that name programs, and commands that run one. */
#include "lib/shell/option-private.h"

#include "lib/shell/reader-private.h"

#include <string.h>

#define BOOLS " true false yes no on off 0 1 "

/* clang-format off */
/* Sections and names of settings have no case. What ends like one that names a program counts as
 * one, so that a newer git is not read as an older one. */
static const struct run_key settings[] = {
    {"alias.*",                 RUNS_BANG,    NULL,      "git ",            NULL},
    {"core.pager",              RUNS_START,   " cat ",   NULL,              NULL},
    {"pager.*",                 RUNS_START,   BOOLS "cat ", NULL,           NULL},
    {"core.editor",             RUNS_START,   " : ",     NULL,              NULL},
    {"sequence.editor",         RUNS_START,   " : ",     NULL,              NULL},
    {"core.sshcommand",         RUNS_START,   " ssh ",   NULL,              NULL},
    {"core.askpass",            RUNS_PROGRAM, NULL,      NULL,              NULL},
    {"core.fsmonitor",          RUNS_START,   BOOLS,     NULL,              NULL},
    {"core.hookspath",          RUNS_UNSEEN,  " /dev/null ", NULL,          NULL},
    {"core.gitproxy",           RUNS_UNSEEN,  NULL,      NULL,              NULL},
    {"core.alternaterefscommand", RUNS_START, NULL,      NULL,              NULL},
    {"diff.external",           RUNS_START,   NULL,      NULL,              NULL},
    {"diff.*.command",          RUNS_START,   NULL,      NULL,              NULL},
    {"diff.*.textconv",         RUNS_START,   NULL,      NULL,              NULL},
    {"difftool.*.cmd",          RUNS_TEXT,    NULL,      NULL,              NULL},
    {"difftool.*.path",         RUNS_UNSEEN,  NULL,      NULL,              NULL},
    {"mergetool.*.cmd",         RUNS_TEXT,    NULL,      NULL,              NULL},
    {"mergetool.*.path",        RUNS_UNSEEN,  NULL,      NULL,              NULL},
    {"merge.*.driver",          RUNS_START,   NULL,      NULL,              NULL},
    {"filter.*.clean",          RUNS_START,   NULL,      NULL,              NULL},
    {"filter.*.smudge",         RUNS_START,   NULL,      NULL,              NULL},
    {"filter.*.process",        RUNS_START,   NULL,      NULL,              NULL},
    {"credential.helper",       RUNS_BANG,    NULL,      "git credential-", NULL},
    {"credential.*.helper",     RUNS_BANG,    NULL,      "git credential-", NULL},
    {"gpg.program",             RUNS_PROGRAM, NULL,      NULL,              NULL},
    {"gpg.*.program",           RUNS_PROGRAM, NULL,      NULL,              NULL},
    {"gpg.ssh.defaultkeycommand", RUNS_START, NULL,      NULL,              NULL},
    {"interactive.difffilter",  RUNS_TEXT,    NULL,      NULL,              NULL},
    {"trailer.*.command",       RUNS_START,   NULL,      NULL,              NULL},
    {"trailer.*.cmd",           RUNS_START,   NULL,      NULL,              NULL},
    {"tar.*.command",           RUNS_START,   NULL,      NULL,              NULL},
    {"remote.*.uploadpack",     RUNS_START,   NULL,      NULL,              NULL},
    {"remote.*.receivepack",    RUNS_START,   NULL,      NULL,              NULL},
    {"remote.*.vcs",            RUNS_UNSEEN,  NULL,      NULL,              NULL},
    {"protocol.allow",          RUNS_UNSEEN,  " never ", NULL,              NULL},
    {"protocol.*.allow",        RUNS_UNSEEN,  " never ", NULL,              NULL},
    {"submodule.*.update",      RUNS_BANG,    NULL,      NULL,              NULL},
    {"include.path",            RUNS_UNSEEN,  NULL,      NULL,              NULL},
    {"includeif.*.path",        RUNS_UNSEEN,  NULL,      NULL,              NULL},
    {"init.templatedir",        RUNS_UNSEEN,  NULL,      NULL,              NULL},
    {"uploadpack.packobjectshook", RUNS_START, NULL,     NULL,              NULL},
    {"sendemail*.smtpserver",   RUNS_BANG,    NULL,      NULL,              NULL},
    {"imap.tunnel",             RUNS_TEXT,    NULL,      NULL,              NULL},
    {"instaweb.httpd",          RUNS_UNSEEN,  NULL,      NULL,              NULL},
    {"*.browser",               RUNS_UNSEEN,  NULL,      NULL,              NULL},
    {"browser.*.path",          RUNS_UNSEEN,  NULL,      NULL,              NULL},
    {"man.*.path",              RUNS_UNSEEN,  NULL,      NULL,              NULL},
    {"hook.*",                  RUNS_UNSEEN,  NULL,      NULL,              NULL},
    {"*command",                RUNS_UNSEEN,  NULL,      NULL,              NULL},
    {"*cmd",                    RUNS_UNSEEN,  NULL,      NULL,              NULL},
    {"*program",                RUNS_UNSEEN,  NULL,      NULL,              NULL},
    {0}};

#define OPTIONS(...) (const struct run_option[]){__VA_ARGS__, {0}}
#define UPLOAD_PACK {.name = "--upload-pack", .as = RUNS_START, .except = " git-upload-pack "}
#define RECEIVE_PACK {.name = "--receive-pack", .as = RUNS_START, .except = " git-receive-pack "}
#define EXEC {.name = "--exec", .as = RUNS_START}
#define FILTER(flag) {.name = (flag), .as = RUNS_TEXT, .at_least = sizeof(flag) - 1}

static const struct {
    const char *name;
    struct run_options options;
} commands[] = {
    {"archive",       {.v = OPTIONS(EXEC)}},
    {"clone",         {.values = "bjo", .v = OPTIONS(
                          {.letters = "u", .name = "--upload-pack", .as = RUNS_START},
                          {.letters = "c", .name = "--config", .as = RUNS_KEYS, .keys = settings},
                          {.name = "--template", .as = RUNS_UNSEEN})}},
    {"daemon",        {.v = OPTIONS({.name = "--access-hook", .as = RUNS_START})}},
    {"difftool",      {.values = "t", .v = OPTIONS({.letters = "x", .name = "--extcmd", .as = RUNS_START})}},
    {"fetch",         {.v = OPTIONS(UPLOAD_PACK)}},
    {"fetch-pack",    {.v = OPTIONS(UPLOAD_PACK, EXEC)}},
    {"filter-branch", {.v = OPTIONS(
                          FILTER("--setup"), FILTER("--env-filter"), FILTER("--tree-filter"), FILTER("--index-filter"),
                          FILTER("--parent-filter"), FILTER("--msg-filter"), FILTER("--commit-filter"),
                          FILTER("--tag-name-filter"))}},
    {"grep",          {.values = "efABCm", .v = OPTIONS(
                          {.letters = "O", .name = "--open-files-in-pager", .as = RUNS_START, .glued = true})}},
    {"instaweb",      {.v = OPTIONS({.letters = "b", .name = "--browser", .as = RUNS_UNSEEN},
                                    {.letters = "d", .name = "--httpd", .as = RUNS_UNSEEN})}},
    {"ls-remote",     {.v = OPTIONS(UPLOAD_PACK, EXEC)}},
    {"pull",          {.v = OPTIONS(UPLOAD_PACK)}},
    {"push",          {.v = OPTIONS(RECEIVE_PACK, EXEC)}},
    {"rebase",        {.values = "XsC", .glued = "Sr", .v = OPTIONS(
                          {.letters = "x", .name = "--exec", .as = RUNS_TEXT})}},
    {"send-email",    {.v = OPTIONS({.name = "--sendmail-cmd", .as = RUNS_START},
                                    {.name = "--to-cmd", .as = RUNS_START, .at_least = 5},
                                    {.name = "--cc-cmd", .as = RUNS_START, .at_least = 5},
                                    {.name = "--header-cmd", .as = RUNS_START},
                                    {.name = "--smtp-server", .as = RUNS_BANG})}},
    {"send-pack",     {.v = OPTIONS(RECEIVE_PACK, EXEC)}},
};
/* clang-format on */

static const struct run_option setting = {.as = RUNS_KEYS, .keys = settings};

/* Behind git's own options; *at is the command then. */
static void look_settings(const struct carried *c, size_t *at)
{
    for (*at = 1; *at < c->n && c->words[*at].text.p[0] == '-'; (*at)++) {
        const struct shell_word *word = &c->words[*at];
        bool next = *at + 1 < c->n;

        if (str_is(word->text, "-c") && next)
            run_keys(c, &setting, c->words[++(*at)], false);
        else if (str_is(word->text, "--config-env") && next)
            run_keys(c, &setting, c->words[++(*at)], true);
        else if (str_starts(word->text, "--config-env="))
            run_keys(c, &setting, tail_of(word, word->text.p + 13), true);
        else if (str_starts(word->text, "--exec-path="))
            run_value(c, RUNS_UNSEEN, *word, NULL);
        else if (listed(" -C --git-dir --work-tree --namespace --super-prefix --attr-source ",
                        word->text.p, word->text.n))
            (*at)++;
    }
}

/* git submodule foreach TEXT, or words of which the first may be one. */
static void look_foreach(const struct carried *c, size_t at)
{
    while (at < c->n && c->words[at].text.p[0] == '-')
        at++;
    if (at + 1 == c->n)
        run_value(c, RUNS_TEXT, c->words[at], NULL);
    else if (at < c->n && !strpbrk(c->words[at].text.p, "|&;<>()$`\\\"' \t\n*?[#~=%"))
        run_words(c, at, 0);
    else if (at < c->n) {
        run_value(c, RUNS_START, c->words[at], NULL);
        run_value(c, RUNS_UNSEEN, c->words[at], NULL);
    }
}

/* Commands that have commands, from the word behind the first. */
static void look_second(const struct carried *c, struct str command, size_t at)
{
    if (str_is(command, "for-each-repo"))
        run_value(c, RUNS_UNSEEN, c->words[0], NULL); /* whatever else git can do */
    if (str_is(command, "bisect") && at < c->n && str_is(c->words[at].text, "run"))
        run_words(c, at + 1, 0);
    if (!str_is(command, "submodule"))
        return;
    while (at < c->n && c->words[at].text.p[0] == '-')
        at++;
    if (at < c->n && str_is(c->words[at].text, "foreach"))
        look_foreach(c, at + 1);
}

void look_git(const struct carried *c)
{
    size_t at;
    struct str command;

    look_settings(c, &at);
    if (at >= c->n)
        return;
    command = c->words[at].text;
    for (size_t i = 0; i < COUNT(commands); i++)
        if (command.p[0] == commands[i].name[0] && str_is(command, commands[i].name))
            look_options(c, &commands[i].options, at + 1);
    look_second(c, command, at + 1);
}

const struct run_options runs_git = {.is_led = true, .look = look_git};
