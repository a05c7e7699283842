/* SPDX-License-Identifier: Apache-2.0 */
/* Which words of a command are paths cannot be known. For deny and ask, everything that could be
 * one is looked at: each word, what follows a "=", "@" or ":" in it, what stands between two
 * quotes, what is glued to a letter of an option, and what begins at its first slash. For allow,
 * every operand has to be a plain path. Links are not followed.
 *
 * A word of colons has as many ends as characters. All that is looked at together is bounded by a
 * multiple of what was said, so the time stays linear; where that is not enough, nobody knows. */
#include <stdio.h>
#include <string.h>

#include "flow/decide/rule-match.h"
#include "lib/base/attrs.h"
#include "lib/base/limits.h"

bool is_plain_path(struct str path)
{
    struct str rest = path;

    if (path.n < 2 || path.p[0] != '/')
        return false;
    rest = (struct str){path.p + 1, path.n - 1};
    while (rest.n) {
        struct str part = str_cut(&rest, '/');

        if (part.n == 0 || str_is(part, ".") || str_is(part, ".."))
            return false;
    }
    return path.p[path.n - 1] != '/';
}

static size_t add_components(struct str path, char *out, size_t n)
{
    while (path.n) {
        struct str part = str_cut(&path, '/');

        if (part.n == 0 || str_is(part, "."))
            continue;
        if (str_is(part, "..")) {
            while (n && out[--n] != '/')
                continue;
            continue;
        }
        out[n++] = '/';
        memcpy(out + n, part.p, part.n);
        n += part.n;
    }
    return n;
}

struct str path_resolve(struct str folder, struct str path, char *out)
{
    size_t n = 0;

    if (path.n == 0 || path.p[0] != '/')
        n = add_components(folder, out, 0);
    n = add_components(path, out, n);
    if (n == 0)
        out[n++] = '/';
    return (struct str){out, n};
}

/* ---- everything that could be a path ---- */

/* Letters, digits and what file names usually have besides: nothing that a program could take for a
 * sign that a path begins behind it. */
static bool is_plain_name(struct str word)
{
    for (size_t i = 0; i < word.n; i++) {
        char c = word.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              strchr("._-+,/", c)))
            return false;
    }
    return word.n != 0;
}

/* Enough for one word of nothing but colons, and for any number of usual ones: a colon in every
 * eight bytes, as in JSON, of which the last PATH_BYTES_MAX count. */
#define LOOKED_BYTES_LEAST (8 * MIB)
#define LOOKED_TIMES 256

struct looking {
    const struct folders *folders;
    bool (*each)(void *context, struct str path);
    void *context;
    size_t left; /* bytes that may still be looked at */
    bool over;   /* there were more */
};

static bool look_from(struct looking *looking, struct str folder, struct str text)
{
    UNFILLED char path[2 * PATH_BYTES_MAX + 2];
    size_t bytes = text.n + folder.n + 1;

    /* The kernel opens no path of that length. */
    if (text.n == 0 || text.n >= PATH_BYTES_MAX || folder.n >= PATH_BYTES_MAX)
        return true;
    if (bytes > looking->left) {
        looking->over = true;
        return false;
    }
    looking->left -= bytes;
    return looking->each(looking->context, path_resolve(folder, text, path));
}

static bool look_at(struct looking *looking, struct str text)
{
    const struct folders *folders = looking->folders;
    bool is_relative = text.n && text.p[0] != '/';

    if (is_relative && folders->lost) {
        looking->over = true;
        return false;
    }
    for (size_t i = 0; i < (is_relative ? folders->n : 1); i++)
        if (!look_from(looking, str_of(folders->of[i]), text))
            return false;
    return true;
}

/* What could begin behind a character of a word; to its end, and to the next quote. */
static bool look_behind(struct looking *looking, struct str word, size_t at, size_t quote)
{
    struct str quoted = {word.p + at + 1, quote - at - 1};
    struct str rest = {word.p + at + 1, word.n - at - 1};

    if (word.p[at] != '"' && !look_at(looking, rest))
        return false;
    return quote == word.n || look_at(looking, quoted);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* -C.git, -xfC.git, -tsrc/a: which letter is the last of the options is not known. Letters alone
 * are taken for options. */
static bool look_at_glued(struct looking *looking, struct str word)
{
    if (word.n < 3 || word.p[1] == '-' ||
        !(memchr(word.p, '.', word.n) || memchr(word.p, '/', word.n)))
        return true;
    for (size_t i = 2; i < word.n && is_letter(word.p[i - 1]); i++) {
        struct str glued = {word.p + i, word.n - i};

        if (!str_is(glued, ".") && !look_at(looking, glued)) /* cut -d. */
            return false;
    }
    return true;
}

static bool look_at_word(struct looking *looking, struct str word)
{
    bool is_option = word.n && word.p[0] == '-';
    const char *slash = word.n ? memchr(word.p, '/', word.n) : NULL;
    size_t quote = word.n; /* the next one behind where we are */

    if (!(is_option ? look_at_glued(looking, word) : look_at(looking, word)))
        return false;
    for (size_t i = word.n; i-- > 0;) {
        char c = word.p[i];

        if ((c == '=' || c == '@' || c == ':' || c == '"') && !look_behind(looking, word, i, quote))
            return false;
        if (c == '"')
            quote = i;
    }
    if (!slash || slash == word.p ||
        (!is_option && is_plain_name((struct str){word.p, (size_t)(slash - word.p)})))
        return true;
    return look_at(looking, (struct str){slash, word.n - (size_t)(slash - word.p)});
}

bool paths_each(struct slice words, const struct folders *folders,
                bool (*each)(void *context, struct str), void *context)
{
    struct looking looking = {folders, each, context, LOOKED_BYTES_LEAST, false};
    size_t folder_n = strlen(folders->of[0]);

    for (size_t i = 1; i < words.n; i++)
        looking.left += LOOKED_TIMES * (strlen(words.v[i]) + folder_n + 1);
    for (size_t i = 1; i < words.n; i++)
        if (!look_at_word(&looking, str_of(words.v[i])))
            break;
    return !looking.over;
}

/* ---- plain operands only ---- */

/* Nothing that a path could be glued to, but for letters and digits. */
static bool option_is_plain(struct str option)
{
    bool is_long = option.n > 1 && option.p[1] == '-';

    for (size_t i = 0; i < option.n; i++)
        if (strchr("/=@:~", option.p[i]) ||
            (option.p[i] == '.' && (!is_long || (i && option.p[i - 1] == '.'))))
            return false;
    return true;
}

static bool fits_from(const char *folder, const char *word, bool (*fits)(void *context, struct str),
                      void *context)
{
    UNFILLED char path[2 * PATH_BYTES_MAX + 2];
    struct str plain = str_of(word);

    if (strlen(folder) >= PATH_BYTES_MAX)
        return false;
    if (plain.p[0] != '/') {
        int n = snprintf(path, sizeof path, "%s/%s", folder, word);

        plain = (struct str){path, (size_t)n};
    }
    return is_plain_path(plain) && fits(context, plain);
}

bool paths_all_plain(struct slice words, const struct folders *folders,
                     bool (*fits)(void *context, struct str), void *context)
{
    size_t paths = 0;

    for (size_t i = 1; i < words.n; i++) {
        struct str word = str_of(words.v[i]);

        if (word.n && word.p[0] == '-') {
            if (!option_is_plain(word))
                return false;
            continue;
        }
        if (word.n >= PATH_BYTES_MAX || !is_plain_name(word) || (word.p[0] != '/' && folders->lost))
            return false;
        for (size_t k = 0; k < folders->n; k++)
            if (!fits_from(folders->of[k], words.v[i], fits, context))
                return false;
        paths++;
    }
    return paths != 0;
}
