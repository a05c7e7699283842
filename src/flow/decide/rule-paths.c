/* SPDX-License-Identifier: Apache-2.0 */
/* Which words of a command are paths cannot be known. For deny and ask, everything that could be
 * one is looked at: each word, what follows a "=", "@" or ":" in it, what stands between two
 * quotes, and what begins at its first slash. For allow, every operand has to be a plain path.
 * Links are not followed.
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

const char *subject_workdir(const struct subject *subject)
{
    const char *workdir = subject->run->action.workdir;

    return workdir ? workdir : WORKSPACE_TARGET;
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
    struct str folder;
    bool (*each)(void *context, struct str path);
    void *context;
    size_t left; /* bytes that may still be looked at */
    bool over;   /* there were more */
};

static bool look_at(struct looking *looking, struct str text)
{
    UNFILLED char path[2 * PATH_BYTES_MAX + 2];
    size_t bytes = text.n + looking->folder.n + 1;

    /* The kernel opens no path of that length. */
    if (text.n == 0 || text.n >= PATH_BYTES_MAX || looking->folder.n >= PATH_BYTES_MAX)
        return true;
    if (bytes > looking->left) {
        looking->over = true;
        return false;
    }
    looking->left -= bytes;
    return looking->each(looking->context, path_resolve(looking->folder, text, path));
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

static bool look_at_word(struct looking *looking, struct str word)
{
    bool is_option = word.n && word.p[0] == '-';
    const char *slash = word.n ? memchr(word.p, '/', word.n) : NULL;
    size_t quote = word.n; /* the next one behind where we are */

    if (!is_option && !look_at(looking, word))
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

bool paths_each(struct slice words, const char *workdir, bool (*each)(void *context, struct str),
                void *context)
{
    struct looking looking = {str_of(workdir), each, context, LOOKED_BYTES_LEAST, false};

    for (size_t i = 1; i < words.n; i++)
        looking.left += LOOKED_TIMES * (strlen(words.v[i]) + looking.folder.n + 1);
    for (size_t i = 1; i < words.n; i++)
        if (!look_at_word(&looking, str_of(words.v[i])))
            break;
    return !looking.over;
}

/* ---- plain operands only ---- */

static bool option_is_plain(struct str option)
{
    for (size_t i = 0; i < option.n; i++)
        if (strchr("/=@:~", option.p[i]) || (i && option.p[i] == '.' && option.p[i - 1] == '.'))
            return false;
    return true;
}

bool paths_all_plain(struct slice words, const char *workdir,
                     bool (*fits)(void *context, struct str), void *context)
{
    size_t paths = 0;

    for (size_t i = 1; i < words.n; i++) {
        struct str word = str_of(words.v[i]);
        UNFILLED char path[2 * PATH_BYTES_MAX + 2];

        if (word.n && word.p[0] == '-') {
            if (!option_is_plain(word))
                return false;
            continue;
        }
        if (word.n >= PATH_BYTES_MAX || strlen(workdir) >= PATH_BYTES_MAX || !is_plain_name(word))
            return false;
        if (word.p[0] != '/') {
            int n = snprintf(path, sizeof path, "%s/%s", workdir, words.v[i]);

            word = (struct str){path, (size_t)n};
        }
        if (!is_plain_path(word) || !fits(context, word))
            return false;
        paths++;
    }
    return paths != 0;
}
