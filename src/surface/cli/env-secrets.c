/* SPDX-License-Identifier: Apache-2.0 */

/* Whoever puts a key into a sandbox's environment gives it to everything that runs there. It is
 * theirs to give; that there is another way is said once. */

#include <stdlib.h>
#include <string.h>

#include "lib/shapes/shapes.h"
#include "surface/cli/commands.h"

static bool is_secret(const char *word)
{
    const char *equals = strchr(word, '=');
    const char *value = equals ? equals + 1 : getenv(word);
    struct shape_hit hit;

    return value && shape_next(str_of(value), 0, false, &hit);
}

void env_say_secrets(struct invocation *inv)
{
    struct words env = option_words(inv, "--env");
    bool is_quiet = command_option(inv->command, "--quiet") && option_flag(inv, "--quiet");

    for (size_t i = 0; i < env.n && !inv->json && !is_quiet; i++)
        if (is_secret(env.v[i]))
            (void)fprintf(inv->err,
                          "%s: the value of %.*s looks like a credential, and everything in the "
                          "sandbox can read it; the vault keeps it outside (brig vault set)\n",
                          inv->program, (int)strcspn(env.v[i], "="), env.v[i]);
}
