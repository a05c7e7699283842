/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts of sed: `e TEXT` and `s/x/y/e` of GNU sed run something.
 *
 * A script is read as far as is needed to tell commands from what they are given. One that sed
 * would not read counts as unseen. */
#include "lib/shell/option-private.h"

#include "lib/shell/reader-private.h"

#include <string.h>

struct sed {
    const struct carried *c;
    const struct shell_word *word;
    const char *p;
    bool open; /* the last line of a text goes on in the next script */
};

static void skip_blanks(struct sed *s)
{
    s->p += strspn(s->p, " \t");
}

/* Behind the line; lines that end in a backslash go on. */
static void skip_line(struct sed *s)
{
    while (*s->p && *s->p != '\n') {
        if (*s->p == '\\' && s->p[1])
            s->p++;
        else if (*s->p == '\\')
            s->open = true;
        s->p++;
    }
}

/* Behind the next one of these; a backslash takes what follows. */
static bool skip_until(struct sed *s, char end)
{
    while (*s->p && *s->p != end)
        s->p += s->p[0] == '\\' && s->p[1] ? 2 : 1;
    if (!*s->p)
        return false;
    s->p++;
    return true;
}

/* [^]/[:alpha:]\\]: a list of bytes, in which the delimiter and a backslash are themselves. */
static void skip_list(struct sed *s)
{
    s->p++;
    s->p += *s->p == '^';
    s->p += *s->p == ']';
    for (; *s->p && *s->p != ']'; s->p++) {
        char kind = s->p[1];

        if (*s->p != '[' || !kind || !strchr(".:=", kind))
            continue;
        for (s->p += 2; *s->p && !(s->p[0] == kind && s->p[1] == ']'); s->p++)
            ;
        s->p += *s->p != '\0';
        if (!*s->p)
            return;
    }
    s->p += *s->p != '\0';
}

/* The same behind a pattern. */
static bool skip_pattern(struct sed *s, char end)
{
    while (*s->p && *s->p != end) {
        if (*s->p == '[')
            skip_list(s);
        else
            s->p += s->p[0] == '\\' && s->p[1] ? 2 : 1;
    }
    if (!*s->p)
        return false;
    s->p++;
    return true;
}

/* 1, $, /x/I, \,x,: one of the two before a command. */
static bool skip_address(struct sed *s)
{
    if (*s->p == '/' || (*s->p == '\\' && s->p[1])) {
        char end;

        s->p += *s->p == '\\';
        end = *s->p++;
        if (!skip_pattern(s, end))
            return false;
        s->p += strspn(s->p, "IM");
    } else {
        s->p += strspn(s->p, "0123456789$~+");
    }
    skip_blanks(s);
    return true;
}

static void run_here(struct sed *s)
{
    run_value(s->c, RUNS_UNSEEN, *s->word, NULL);
}

/* To the end of the line, as it stands unless there is a backslash in it, which sed takes out;
 * nothing: what is in the pattern space. */
static void read_run(struct sed *s)
{
    const char *from;
    struct shell_word text;

    skip_blanks(s);
    from = s->p;
    skip_line(s);
    if (s->p == from || memchr(from, '\\', (size_t)(s->p - from)))
        run_here(s);
    if (s->p == from)
        return;
    text = (struct shell_word){
        s->word->known, {from, (size_t)(s->p - from)},
         s->word->span
    };
    text.text = arena_str(s->c->look->mem, text.text);
    run_value(s->c, RUNS_TEXT, text, NULL);
}

/* /x/y/, with any byte for the slash. */
static bool skip_two(struct sed *s, bool (*skip_first)(struct sed *s, char end))
{
    char end = *s->p;

    if (end == '\0' || end == '\n' || end == '\\')
        return false;
    s->p++;
    return skip_first(s, end) && skip_until(s, end);
}

static bool read_substitute(struct sed *s)
{
    if (!skip_two(s, skip_pattern))
        return false;
    for (; *s->p && !strchr("\n;}#", *s->p); s->p++) {
        if (*s->p == 'e')
            run_here(s);
        if (*s->p == 'w') {
            s->p += strcspn(s->p, "\n");
            return true;
        }
        if (!strchr("eiImMpg0123456789 \t\r", *s->p))
            return false;
    }
    return true;
}

static bool read_command(struct sed *s)
{
    char command = *s->p++;

    switch (command) {
    case 'e':
        read_run(s);
        return true;
    case 's':
        return read_substitute(s);
    case 'y':
        return skip_two(s, skip_until);
    case 'a':
    case 'i':
    case 'c':
        skip_line(s);
        return true;
    case '#':
    case 'r':
    case 'R':
    case 'w':
    case 'W':
        s->p += strcspn(s->p, "\n");
        return true;
    case ':':
    case 'b':
    case 't':
    case 'T':
    case 'v':
        skip_blanks(s);
        s->p += strcspn(s->p, "\n; \t}");
        return true;
    case 'l':
    case 'L':
    case 'q':
    case 'Q':
        skip_blanks(s);
        s->p += strspn(s->p, "0123456789");
        return true;
    default:
        return command && strchr("{}=dDgGhHnNpPxzF", command);
    }
}

static bool read_commands(struct sed *s)
{
    for (;;) {
        s->p += strspn(s->p, " \t\r\n;");
        if (!*s->p)
            return true;
        if (strchr("0123456789$/\\", *s->p) && !skip_address(s))
            return false;
        while (*s->p == ',') {
            s->p++;
            skip_blanks(s);
            if (!skip_address(s))
                return false;
        }
        s->p += strspn(s->p, "! \t");
        if (!read_command(s))
            return false;
    }
}

static void read_script(struct sed *s, const struct shell_word *word)
{
    bool open = s->open;

    s->word = word;
    s->p = word->text.p;
    s->open = false;
    if (open)
        skip_line(s);
    if (!read_commands(s) && word->known == SHELL_LITERAL)
        run_here(s);
}

enum sed_value {
    VALUE_NONE,
    VALUE_SCRIPT,
    VALUE_FILE,
    VALUE_OTHER,
};

/* The option in this word that has a value, which begins at *value, or is the next word if that is
 * empty. */
static enum sed_value find_value(const char *word, const char **value)
{
    size_t n = strcspn(word, "=");
    const char *letter = word + 1;

    *value = word + n + (word[n] == '=');
    if (word[1] == '-') {
        if (n > 2 && strncmp("--expression", word, n) == 0)
            return VALUE_SCRIPT;
        if (n > 3 && strncmp("--file", word, n) == 0)
            return VALUE_FILE;
        return n > 2 && strncmp("--line-length", word, n) == 0 ? VALUE_OTHER : VALUE_NONE;
    }
    while (*letter && !strchr("efli", *letter))
        letter++;
    *value = letter + (*letter != '\0');
    if (*letter == 'e')
        return VALUE_SCRIPT;
    if (*letter == 'f')
        return VALUE_FILE;
    return *letter == 'l' ? VALUE_OTHER : VALUE_NONE; /* that of -i is never the next word */
}

/* Behind all options the first word is the script, unless one of them was. */
void look_sed(const struct carried *c)
{
    struct sed s = {.c = c};
    const struct shell_word *first = NULL;
    bool given = false, ended = false;

    for (size_t i = 1; i < c->n; i++) {
        const struct shell_word *word = &c->words[i];
        const char *value;
        enum sed_value kind;
        struct shell_word script;

        if (ended || word->text.n < 2 || word->text.p[0] != '-') {
            first = first ? first : word;
            continue;
        }
        ended = str_is(word->text, "--");
        kind = ended ? VALUE_NONE : find_value(word->text.p, &value);
        if (kind == VALUE_NONE || (!*value && ++i >= c->n))
            continue;
        script = *value ? tail_of(word, value) : c->words[i];
        if (kind == VALUE_SCRIPT)
            read_script(&s, &script);
        else if (kind == VALUE_FILE)
            run_value(c, RUNS_FILE, script, NULL);
        given |= kind != VALUE_OTHER;
    }
    if (!given && first)
        read_script(&s, first);
}
