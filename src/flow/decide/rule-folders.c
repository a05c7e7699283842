/* SPDX-License-Identifier: Apache-2.0 */
/* Where relative paths begin: in the working directory, and wherever commands that are seen inside
 * may have gone before. Which of them runs first, or at all, is not followed, so each of these
 * folders counts for each command. */
#include <string.h>

#include "flow/decide/rule-match.h"
#include "lib/base/attrs.h"
#include "lib/base/limits.h"

/* Programs that go somewhere first when an option says so. */
static const struct mover {
    const char *program;
    char letter;
    const char *option;
} movers[] = {
    {"env",    'C', "--chdir"    },
    {"sudo",   'D', "--chdir"    },
    {"git",    'C', "--work-tree"},
    {"make",   'C', "--directory"},
    {"gmake",  'C', "--directory"},
    {"ninja",  'C', "-C"         },
    {"tar",    'C', "--directory"},
    {"bsdtar", 'C', "--directory"},
};

/* Where a shell is that is told "cd" and nothing more. */
static const char *const homes[] = {HOME_TARGET, "/root"};

static bool has_folder(const struct folders *folders, struct str folder)
{
    for (size_t i = 0; i < folders->n; i++)
        if (str_is(folder, folders->of[i]))
            return true;
    return false;
}

/* Below each of those there are, unless it is absolute. */
static void add_folder(struct arena *mem, struct str path, struct folders *folders)
{
    size_t n = path.n && path.p[0] == '/' ? 1 : folders->n;
    UNFILLED char room[2 * PATH_BYTES_MAX + 2];

    for (size_t i = 0; path.n && i < n; i++) {
        struct str from = str_of(folders->of[i]), folder;

        if (path.n >= PATH_BYTES_MAX || from.n >= PATH_BYTES_MAX) {
            folders->lost = true;
            return;
        }
        folder = path_resolve(from, path, room);
        if (has_folder(folders, folder))
            continue;
        if (folders->n == FOLDERS_MAX) {
            folders->lost = true;
            return;
        }
        folders->of[folders->n++] = arena_text(mem, folder);
    }
}

/* cd DIR, cd -P -- DIR; cd. */
static void follow_cd(struct arena *mem, const struct shell_command *command,
                      struct folders *folders)
{
    for (size_t at = 1; at < command->word_n; at++) {
        struct str word = command->words[at].text;

        if (word.n && word.p[0] == '-')
            continue;
        add_folder(mem, word, folders);
        return;
    }
    for (size_t i = 0; i < COUNT(homes); i++)
        add_folder(mem, str_of(homes[i]), folders);
}

/* -C DIR, -CDIR, --chdir DIR, --chdir=DIR. Of -xfC A DIR any of the words behind it, because f
 * takes the first. */
static void follow_options(struct arena *mem, const struct shell_command *command,
                           const struct mover *mover, struct folders *folders)
{
    struct str option = str_of(mover->option);

    for (size_t at = 1; at < command->word_n; at++) {
        struct str word = command->words[at].text, value = {0};
        const char *letter = NULL;
        size_t behind = 1;

        if (word.n > 1 && word.p[0] == '-' && word.p[1] != '-')
            letter = memchr(word.p, mover->letter, word.n);
        if (letter) {
            value = (struct str){letter + 1, (size_t)(word.p + word.n - letter - 1)};
            behind = word.n - 1;
        } else if (str_starts(word, mover->option) && word.n > option.n &&
                   word.p[option.n] == '=') {
            value = (struct str){word.p + option.n + 1, word.n - option.n - 1};
        } else if (!str_eq(word, option)) {
            continue;
        }
        if (value.n)
            add_folder(mem, value, folders);
        for (size_t k = 1; !value.n && k <= behind && at + k < command->word_n; k++)
            add_folder(mem, command->words[at + k].text, folders);
    }
}

static void follow(struct arena *mem, const struct shell_command *command, struct folders *folders)
{
    const char *base = shell_base(command->words[0].text.p);

    if (strcmp(base, "cd") == 0 || strcmp(base, "pushd") == 0 || strcmp(base, "chdir") == 0)
        follow_cd(mem, command, folders);
    for (size_t i = 0; i < COUNT(movers); i++)
        if (strcmp(base, movers[i].program) == 0)
            follow_options(mem, command, &movers[i], folders);
}

struct folders folders_start(const struct run *run)
{
    const char *start = run_start(run);

    return (struct folders){.of = {start ? start : HOME_TARGET}, .n = 1, .lost = !start};
}

struct folders folders_of(struct arena *mem, const struct folders *start,
                          const struct shell_script *script)
{
    struct folders folders = *start;

    for (size_t i = 0; i < script->n && !folders.lost; i++)
        if (script->commands[i].word_n)
            follow(mem, &script->commands[i], &folders);
    return folders;
}
