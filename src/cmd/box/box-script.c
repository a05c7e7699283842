/* SPDX-License-Identifier: Apache-2.0 */

/* Which file an interpreter runs, by its arguments: the first that is no option. That is what the
 * process claims, no more; a rule may ask for it in addition to the interpreter, never instead. */

#include "cmd/box/box-identity.h"

#include <string.h>

/* `inline_code`: letters of options after which no file follows, NULL: what its words mean is not
 * guessed; `valued`: letters whose value is
 * the next word unless it is attached. Long options that take one are listed; all others have it
 * behind a "=", or none. */
static const struct interpreter {
    const char *name;
    bool versioned; /* the name may go on with digits and dots */
    const char *inline_code;
    const char *valued;
    const char *const *inline_long, *const *valued_long;
} interpreters[] = {
  /* clang-format off */
#define WORDS(...) (const char *const[]){__VA_ARGS__, NULL}
#define NO_WORDS WORDS(NULL)
    {"sh",     false, "cs", "oO",   NO_WORDS,                     WORDS("--rcfile", "--init-file")},
    {"bash",   false, "cs", "oO",   NO_WORDS,                     WORDS("--rcfile", "--init-file")},
    {"dash",   false, "cs", "o",    NO_WORDS,                     NO_WORDS},
    {"ash",    false, "cs", "o",    NO_WORDS,                     NO_WORDS},
    {"ksh",    true,  "cs", "o",    NO_WORDS,                     NO_WORDS},
    {"zsh",    true,  "cs", "o",    NO_WORDS,                     NO_WORDS},
    {"fish",   false, "c",  "C",    WORDS("--command"),           WORDS("--init-command")},
    {"python", true,  "cm", "WX",   NO_WORDS,                     WORDS("--check-hash-based-pycs")},
    {"pypy",   true,  "cm", "WX",   NO_WORDS,                     NO_WORDS},
    {"perl",   true,  "eE", "I",    NO_WORDS,                     NO_WORDS},
    {"ruby",   true,  "e",  "IrEC", NO_WORDS,                     WORDS("--encoding")},
    {"node",   true,  "ep", "rC",   WORDS("--eval", "--print"),   WORDS("--require", "--import", "--loader", "--conditions", "--env-file")},
    {"nodejs", false, "ep", "rC",   WORDS("--eval", "--print"),   WORDS("--require", "--import", "--loader", "--conditions", "--env-file")},
    {"php",    true,  "rBRE", "cdtz", WORDS("--run"),             NO_WORDS},
    {"lua",    true,  "e",  "l",    NO_WORDS,                     NO_WORDS},
    {"luajit", true,  "e",  "lj",   NO_WORDS,                     NO_WORDS},
    {"tclsh",  true,  "",   "",     NO_WORDS,                     WORDS("-encoding")},
    {"wish",   true,  "",   "",     NO_WORDS,                     NO_WORDS},
    {"Rscript", false, "e", "",     NO_WORDS,                     NO_WORDS},
    {"awk",    false, NULL,   "",     NO_WORDS,                     NO_WORDS},
    {"gawk",   true,  NULL,   "",     NO_WORDS,                     NO_WORDS},
    {"mawk",   true,  NULL,   "",     NO_WORDS,                     NO_WORDS},
    {"deno",   false, NULL,   "",     NO_WORDS,                     NO_WORDS},
    {"bun",    false, NULL,   "",     NO_WORDS,                     NO_WORDS},
    {"java",   false, NULL,   "",     NO_WORDS,                     NO_WORDS},
    {"busybox", true, NULL,   "",     NO_WORDS,                     NO_WORDS},
  /* clang-format on */
};

static bool is_version(struct str rest)
{
    for (size_t i = 0; i < rest.n; i++)
        if (!strchr("0123456789.-", rest.p[i]))
            return false;
    return true;
}

static const struct interpreter *interpreter_of(struct str exe_path)
{
    struct str name = exe_path;

    for (size_t i = 0; i < exe_path.n; i++)
        if (exe_path.p[i] == '/')
            name = (struct str){exe_path.p + i + 1, exe_path.n - i - 1};
    for (size_t i = 0; i < COUNT(interpreters); i++) {
        const struct interpreter *of = &interpreters[i];
        size_t n = strlen(of->name);

        if (str_starts(name, of->name) && name.n >= n &&
            (name.n == n || (of->versioned && is_version((struct str){name.p + n, name.n - n}))))
            return of;
    }
    return NULL;
}

bool script_is_possible(struct str exe_path)
{
    return interpreter_of(exe_path) != NULL;
}

static bool is_among(struct str word, const char *const *words)
{
    for (; *words; words++)
        if (str_is(word, *words))
            return true;
    return false;
}

enum option { OPTION_ALONE, OPTION_VALUED, OPTION_INLINE };

static enum option option_of(const struct interpreter *of, struct str word)
{
    if (str_starts(word, "--") || is_among(word, of->valued_long)) {
        if (is_among(str_cut(&(struct str){word.p, word.n}, '='), of->inline_long))
            return OPTION_INLINE;
        return is_among(word, of->valued_long) ? OPTION_VALUED : OPTION_ALONE;
    }
    for (size_t i = 1; i < word.n; i++) {
        if (strchr(of->inline_code, word.p[i]))
            return OPTION_INLINE;
        if (strchr(of->valued, word.p[i]))
            return i + 1 == word.n ? OPTION_VALUED : OPTION_ALONE;
    }
    return OPTION_ALONE;
}

enum script script_claim(struct str exe_path, struct str cmdline, struct str *out)
{
    const struct interpreter *of = interpreter_of(exe_path);
    struct str rest = cmdline;

    if (!of)
        return SCRIPT_NONE;
    if (!of->inline_code)
        return SCRIPT_UNKNOWN;
    (void)str_cut(&rest, '\0'); /* its own name, whatever it says */
    while (rest.n) {
        struct str word = str_cut(&rest, '\0');
        enum option option;

        if (str_is(word, "--")) {
            *out = str_cut(&rest, '\0');
            return out->n ? SCRIPT_CLAIMED : SCRIPT_UNKNOWN;
        }
        if (word.n == 0 || str_is(word, "-"))
            return SCRIPT_UNKNOWN; /* its standard input */
        if (word.p[0] != '-' && word.p[0] != '+') {
            *out = word;
            return SCRIPT_CLAIMED;
        }
        option = option_of(of, word);
        if (option == OPTION_INLINE)
            return SCRIPT_UNKNOWN;
        if (option == OPTION_VALUED)
            (void)str_cut(&rest, '\0');
    }
    return SCRIPT_UNKNOWN;
}
