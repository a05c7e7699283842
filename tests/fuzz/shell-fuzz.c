/* SPDX-License-Identifier: Apache-2.0 */

/* Any text is read or refused with its place; what is found lies inside the text, carriers stand
 * before what they run, and memory stays in proportion to the text. The same bytes, cut at line
 * ends, are an argument vector. */

#include "fuzz.h"

#include "lib/base/limits.h"
#include "lib/shell/shell.h"

#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 256

static void require(bool promise)
{
    if (!promise)
        abort();
}

static void check_word(const struct shell_word *word, size_t n)
{
    require(word->text.p && strlen(word->text.p) == word->text.n);
    require(word->span.start <= word->span.end && word->span.end <= n);
}

static void check_command(const struct shell_script *script, size_t i, size_t n)
{
    const struct shell_command *c = &script->commands[i];

    require(c->span.start <= c->span.end && c->span.end <= n);
    require(c->parent == SHELL_NONE ? c->depth == 0 && !c->within : c->parent < i && c->within);
    require(c->parent == SHELL_NONE || c->depth == script->commands[c->parent].depth + 1);
    require(c->depth <= SHELL_CARRIERS_MAX);
    require(c->input_from == SHELL_NONE || c->input_from < script->n);
    for (size_t k = 0; k < c->word_n; k++) {
        check_word(&c->words[k], n);
        require(c->known != SHELL_LITERAL || c->words[k].known == SHELL_LITERAL);
    }
    for (size_t k = 0; k < c->assignment_n; k++)
        check_word(&c->assignments[k], n);
    for (size_t k = 0; k < c->redirect_n; k++)
        check_word(&c->redirects[k].target, n);
}

static void check_script(const struct shell_script *script, const struct arena *mem, size_t n)
{
    for (size_t i = 0; i < script->n; i++)
        check_command(script, i, n);
    require(mem->used <= 4 * MIB + 1024 * n);
}

static void read_as(struct str text, enum shell_dialect dialect)
{
    AUTO_ARENA struct arena mem = ARENA(SHELL_MEMORY_MAX);
    struct shell_script script;
    struct err err = {0};

    if (shell_read(&mem, text, dialect, &script, &err) < 0)
        require(strncmp(err.text, "byte ", 5) == 0);
    else
        check_script(&script, &mem, text.n);
}

static void look_at(const char *const *argv, size_t count, size_t n)
{
    AUTO_ARENA struct arena mem = ARENA(SHELL_MEMORY_MAX);
    struct shell_script script;

    shell_look(&mem, argv, count, &script);
    require(script.n > 0 && script.commands[0].word_n == count);
    check_script(&script, &mem, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const char *argv[WORDS_MAX];
    AUTO_FREE char *copy = malloc(n + 1);
    size_t count = 0;

    require(copy != NULL);
    if (n)
        memcpy(copy, bytes, n);
    copy[n] = '\0';
    /* As it came: nothing is behind its last byte. */
    read_as((struct str){(const char *)bytes, n}, SHELL_ANY);
    read_as((struct str){(const char *)bytes, n}, SHELL_BASH);
    for (char *at = copy; at && count < WORDS_MAX;) {
        char *end = strchr(at, '\n');

        argv[count++] = at;
        if (end)
            *end = '\0';
        at = end ? end + 1 : NULL;
    }
    look_at(argv, count, n);
    return 0;
}
