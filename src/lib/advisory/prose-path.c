/* SPDX-License-Identifier: Apache-2.0 */

/* Paths in plain words: which of them, and which parts of them, are meant as one that may lead
 * elsewhere. Whether it does is path.c's matter. Addresses on the network are another one. */

#include "lib/advisory/advisory-private.h"

#include "lib/base/attrs.h"

#include <string.h>
#include <strings.h>

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_alnum(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9');
}

static bool is_slash(char c)
{
    return c == '/' || c == '\\';
}

static bool has(struct str word, const char *part)
{
    return memmem(word.p, word.n, part, strlen(part)) != NULL;
}

static bool is_file_address(struct str word)
{
    return word.n >= 5 && strncasecmp(word.p, "file:", 5) == 0;
}

/* ---- one ---- */

static bool has_parent(struct str word)
{
    size_t start = 0;

    for (size_t i = 0; i <= word.n; i++) {
        if (i < word.n && !is_slash(word.p[i]))
            continue;
        if (i - start == 2 && word.p[start] == '.' && word.p[start + 1] == '.' && word.n > 2)
            return true;
        start = i + 1;
    }
    return false;
}

/* A dot, a slash, a backslash or a percent sign behind a percent sign, or what is no UTF-8. */
static bool has_escape(struct str word)
{
    static const char *const escapes[] = {"2e", "2f", "5c", "25", "c0", "c1", "e0"};

    for (size_t i = 0; i + 2 < word.n; i++)
        for (size_t k = 0; word.p[i] == '%' && k < COUNT(escapes); k++)
            if (small_letter(word.p[i + 1]) == escapes[k][0] &&
                small_letter(word.p[i + 2]) == escapes[k][1])
                return true;
    return false;
}

/* %NAME%: bytes of it at i, or 0. */
static size_t percent_name(struct str word, size_t i)
{
    size_t k = i + 1;

    while (k < word.n && (is_alnum(word.p[k]) || word.p[k] == '_'))
        k++;
    return k > i + 2 && k < word.n && word.p[k] == '%' && is_letter(word.p[i + 1]) ? k + 1 - i : 0;
}

/* "$5" is a price. */
static bool has_variable(struct str word)
{
    for (size_t i = 0; i + 1 < word.n; i++) {
        char second = word.p[i + 1];

        if (word.p[i] == '$' && (is_letter(second) || strchr("_{(", second)) && second)
            return true;
        if (word.p[i] == '%' && percent_name(word, i))
            return true;
    }
    return false;
}

/* A folder by its variable, or somebody's, alone; without braces it is a variable like any other,
 * and those are spoken of. The brace that ends it is not part of the word. */
static bool is_folder_name(struct str word)
{
    static const char *const names[] = {"${HOME", "${PWD", "${OLDPWD", "${TMPDIR", "~root"};

    for (size_t i = 0; i < COUNT(names); i++)
        if (str_is(word, names[i]))
            return true;
    return word.n && word.p[0] == '%' && percent_name(word, 0) == word.n;
}

/* "/etc", "~/x", "D:\\x", "\\\\host", "file:": it says where it begins. */
static bool begins_elsewhere(struct str w, bool has_slash)
{
    char second = w.p[1];

    if (w.p[0] == '/')
        return is_alnum(second) || second == '.' || second == '_' || second == '/';
    if (w.p[0] == '~')
        return second == '/' || (is_alnum(second) && has_slash);
    if (w.n >= 3 && second == ':' && is_alnum(w.p[0]))
        return is_slash(w.p[2]);
    return is_file_address(w) || str_starts(w, "\\\\");
}

static bool is_path_like(struct str w)
{
    bool has_slash = memchr(w.p, '/', w.n) || memchr(w.p, '\\', w.n);

    if (w.n < 2)
        return false;
    if (begins_elsewhere(w, has_slash) || has_parent(w) || is_folder_name(w))
        return true;
    if (has_slash && has_variable(w))
        return true;
    return (has_slash || has(w, "..") || w.p[0] == '%') && has_escape(w);
}

/* ---- within a word ---- */

/* What ends a part; the colon of a drive does not. */
static bool is_border(struct str s, size_t start, size_t i)
{
    if (s.p[i] == ':')
        return i != start + 1 || i + 1 >= s.n || !is_slash(s.p[i + 1]) || !is_letter(s.p[start]);
    return s.p[i] && strchr("\"'`()[]{}<>,;|=", s.p[i]);
}

/* </b> */
static bool is_end_tag(struct str s, struct token t)
{
    if (t.start == 0 || s.p[t.start - 1] != '<' || t.end >= s.n || s.p[t.end] != '>')
        return false;
    for (size_t i = t.start + 1; i < t.end; i++)
        if (!is_alnum(s.p[i]))
            return false;
    return true;
}

/* What is printed bold or slanted: as many marks on either side. */
static struct token without_marks(struct str s, struct token t)
{
    while (t.end - t.start > 2 && s.p[t.start] == s.p[t.end - 1] &&
           (s.p[t.start] == '*' || s.p[t.start] == '_'))
        t = (struct token){t.start + 1, t.end - 1};
    return t;
}

/* Where a part of a word begins, from *at on. What stands behind a closing bracket goes on with
 * what was there before it: $(here)/x. A script without blanks between words has a path right
 * behind one, and -I/usr is an option with one. */
static bool next_part(struct str s, struct token t, size_t *at)
{
    for (size_t i = *at; i < t.end; i++) {
        bool is_foreign = (unsigned char)s.p[i] >= 0x80 && i + 1 < t.end && s.p[i + 1] == '/' &&
                          memchr(s.p + i + 2, '/', t.end - i - 2);
        bool is_option = i == t.start + 1 && s.p[t.start] == '-' && is_letter(s.p[i]) &&
                         i + 1 < t.end && s.p[i + 1] == '/';

        if ((is_border(s, t.start, i) && !strchr(")]}", s.p[i])) || is_foreign || is_option) {
            *at = i + 1;
            return true;
        }
    }
    return false;
}

bool prose_path(struct str s, struct token *t)
{
    *t = without_marks(s, *t);
    if (has(token_str(s, *t), "://"))
        return is_file_address(token_str(s, *t));
    return is_path_like(token_str(s, *t)) && !is_end_tag(s, *t);
}

bool prose_path_part(struct str s, struct token t, size_t *from, struct token *out)
{
    if (*from == t.start && has(token_str(s, t), "://"))
        return false;
    while (next_part(s, t, from)) {
        *out = (struct token){*from, *from};
        while (out->end < t.end && !is_border(s, out->start, out->end))
            out->end++;
        *from = out->end;
        if (is_path_like(token_str(s, *out)) && !is_end_tag(s, *out))
            return true;
    }
    return false;
}
