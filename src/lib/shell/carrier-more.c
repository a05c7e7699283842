/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that xargs and find may give any words: with whatever option, they run nothing, load
 * nothing, and write nowhere but to their output.
 *
 * Each is here because its manual (of GNU coreutils, diffutils, grep and util-linux, and of
 * busybox) has no option and no operand that does. What looks alike and is missing does: file -z,
 * diff -l and egrep start other programs, sort, uniq and base64 may write to a file. */
#include "lib/shell/carrier-private.h"

#include "lib/base/attrs.h"

#include <string.h>

/* clang-format off */
#define READER(literal) {NAME_KEY(literal), (literal)}

/* In the order of bytes; see name-private.h. */
static const struct name_row readers[] = {
    READER("b2sum"), READER("basename"), READER("cat"), READER("cksum"), READER("cmp"),
    READER("comm"), READER("cut"), READER("dirname"), READER("du"), READER("echo"),
    READER("expand"), READER("fold"), READER("grep"), READER("head"), READER("ls"),
    READER("md5sum"), READER("nl"), READER("od"), READER("paste"), READER("printf"),
    READER("readlink"), READER("realpath"), READER("rev"), READER("sha1sum"),
    READER("sha224sum"), READER("sha256sum"), READER("sha384sum"), READER("sha512sum"),
    READER("stat"), READER("sum"), READER("tac"), READER("tail"), READER("tr"),
    READER("unexpand"), READER("wc"),
};
/* clang-format on */

/* One of this name elsewhere is somebody's own. */
static const char *system_name(const char *program)
{
    static const char *const folders[] = {"/usr/bin/", "/bin/"};

    for (size_t i = 0; i < COUNT(folders); i++) {
        size_t n = strlen(folders[i]);

        if (strncmp(program, folders[i], n) == 0)
            return strchr(program + n, '/') ? NULL : program + n;
    }
    return strchr(program, '/') ? NULL : program;
}

static bool is_reader(const struct shell_word *program)
{
    const char *name = system_name(program->text.p);

    return program->known == SHELL_LITERAL && name &&
           name_find(readers, COUNT(readers), sizeof readers[0], name, name_key(name));
}

/* The text that -I and its like put input in the place of, if it is an option of that word. */
static const char *replaced_by(const struct carried *c, size_t i)
{
    const char *word = c->words[i].text.p;
    const char *letter = word[0] == '-' && word[1] != '-' ? strchr(word, 'I') : NULL;

    if (strncmp(word, "--replace", 9) == 0)
        return word[9] == '=' ? word + 10 : "{}";
    if (!letter)
        return NULL;
    return letter[1] || i + 1 >= c->n ? letter + 1 : c->words[i + 1].text.p;
}

bool xargs_adds_operands(const struct carried *c, size_t at)
{
    if (at >= c->n || !is_reader(&c->words[at]))
        return false;
    for (size_t i = 1; i < at; i++) {
        const char *part = replaced_by(c, i);

        if (part && strstr(c->words[at].text.p, part))
            return false; /* of busybox and BSD it is the program that is replaced */
    }
    return true;
}

/* An end that is not certain may be one more word of the command, and any word its end. */
bool find_adds_operands(const struct carried *c, size_t at, size_t end)
{
    if (end >= c->n || !is_reader(&c->words[at]))
        return false;
    for (size_t i = at; i <= end; i++)
        if (c->words[i].known != SHELL_LITERAL)
            return false;
    return true;
}
