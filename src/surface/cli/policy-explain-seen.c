/* SPDX-License-Identifier: Apache-2.0 */

/* What rules get to see of a command, as lines; as JSON it is view-seen.c's. */

#include "surface/cli/policy-request.h"

#include "surface/cli/sandbox.h"

#include "lib/base/limits.h"
#include "lib/shell/shell.h"
#include "surface/view/view.h"

static bool is_plain(const struct shell_script *script)
{
    return script->n == 1 && script->commands[0].known == SHELL_LITERAL &&
           !(script->commands[0].flags & SHELL_HIDES);
}

static void print_command(FILE *to, const struct shell_command *command)
{
    (void)fprintf(to, "sees bytes %zu to %zu, %s", command->span.start, command->span.end,
                  view_known_name(command->known));
    if (command->within) {
        (void)fputs(", inside ", to);
        print_escaped(to, str_of(command->within));
    }
    (void)fputs(command->flags & SHELL_HIDES ? ", with something unseen:" : ":", to);
    for (size_t i = 0; i < command->word_n && i < VIEW_SEEN_WORDS_MAX; i++) {
        (void)fputc(' ', to);
        print_escaped(to, command->words[i].text);
    }
    (void)fputs(command->word_n > VIEW_SEEN_WORDS_MAX ? " …\n" : "\n", to);
}

void print_seen(FILE *to, struct words argv)
{
    AUTO_ARENA struct arena mem = ARENA(SHELL_MEMORY_MAX);
    struct shell_script script;

    shell_look(&mem, argv.v, argv.n, &script);
    if (is_plain(&script))
        return; /* the rules below show it as it is */
    for (size_t i = 0; i < script.n && i < VIEW_SEEN_MAX; i++)
        print_command(to, &script.commands[i]);
    if (script.n > VIEW_SEEN_MAX)
        (void)fprintf(to, "… (%zu more commands)\n", script.n - VIEW_SEEN_MAX);
}
