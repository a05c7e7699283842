/* SPDX-License-Identifier: Apache-2.0 */

/* Commands and paths within prose, and the text without them.
 *
 * What stands between backquotes or behind a prompt is read as a shell would; elsewhere a banned
 * name counts where what follows it has the shape of an operand: "rm -rf build" does, "git is a
 * tool" does not. Each is replaced by the sentence the public document has for it. */

#include "lib/advisory/advisory-private.h"

#include "lib/base/attrs.h"
#include "lib/base/limits.h"

#include <stdlib.h>
#include <string.h>

#define TAIL_MAX 16 /* words of a command in prose */

struct mention {
    struct checking *checking;
    const struct passage *passage;
    struct copy copy;
    struct buf *edits; /* of struct edit */
    bool is_lost;      /* not everything could be replaced */
};

/* Words in place of bytes of the passage. */
struct edit {
    size_t start, end;
    const char *words;
    const char *about; /* or NULL */
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void replace(struct mention *m, size_t start, size_t end, const char *words,
                    const char *about)
{
    struct edit edit = {m->copy.at[start], m->copy.at[end], words, about};
    struct err err;

    m->is_lost |= buf_add(m->edits, &edit, sizeof edit, &err) < 0;
}

static void note_at(struct mention *m, enum advisory_category category, const char *rule,
                    size_t start, size_t end)
{
    advisory_note_plain(m->checking, m->passage, category,
                        category == ADVISORY_IS_PATH_VIOLATION ? ADVISORY_REJECT : ADVISORY_ADVISE,
                        rule, m->copy.at[start], m->copy.at[end]);
}

/* ---- code ---- */

/* A piece of code; is_shell: it says so itself. Returns what it would do when it has to be
 * replaced, by the caller: where a shell is read, our sentences are no better. */
static const char *look_at_code(struct mention *m, size_t start, size_t end, bool is_shell)
{
    unsigned flags = (m->checking->options->strict_seed ? COMMAND_STRICT_SEED : 0U) |
                     (is_shell ? 0U : COMMAND_LENIENT);
    struct command_hit hit;

    if (m->checking->spans++ == ADVISORY_SPANS_MAX)
        note_at(m, ADVISORY_IS_STRUCTURE, "code_spans", start, end);
    if (m->checking->spans > ADVISORY_SPANS_MAX) {
        m->is_lost = true;
        return NULL;
    }
    advisory_command_read((struct str){m->copy.p + start, end - start}, flags, &hit);
    if (hit.rule)
        note_at(m, ADVISORY_IS_UNSAFE_COMMAND, hit.rule, start, end);
    if (hit.rule || is_shell)
        note_at(m, ADVISORY_IS_SHELL_EXECUTION, "command_text", start, end);
    return hit.rule ? hit.about : NULL;
}

static bool is_shell_word(struct str info)
{
    static const char *const words[] = {"sh",   "bash",       "zsh",          "shell",
                                        "fish", "console",    "ksh",          "terminal",
                                        "dash", "sh-session", "shell-session"};

    for (size_t i = 0; i < COUNT(words); i++)
        if (str_is(info, words[i]))
            return true;
    return false;
}

static size_t line_end(struct str s, size_t i)
{
    const char *end = i < s.n ? memchr(s.p + i, '\n', s.n - i) : NULL;

    return end ? (size_t)(end - s.p) : s.n;
}

/* "$ command" */
static bool is_prompt(struct str s, size_t i, size_t *behind)
{
    if (i + 2 >= s.n || (s.p[i] != '$' && s.p[i] != '%') || s.p[i + 1] != ' ' ||
        is_space(s.p[i + 2]))
        return false;
    *behind = i + 2;
    return true;
}

/* Lines behind a prompt, each for itself; whether there is one. */
static bool look_at_prompts(struct mention *m, size_t start, size_t end, const char **about)
{
    bool any = false;
    size_t behind;

    while (start < end) {
        size_t stop = line_end((struct str){m->copy.p, end}, start), at = start;

        while (at < stop && is_space(m->copy.p[at]))
            at++;
        if (is_prompt((struct str){m->copy.p, stop}, at, &behind)) {
            const char *found = look_at_code(m, behind, stop, true);

            *about = *about ? *about : found;
            any = true;
        }
        start = stop + 1;
    }
    return any;
}

/* ``` to ```, or to the end; returns what stands behind it. It is replaced as a whole. */
static size_t look_at_fence(struct mention *m, size_t i)
{
    struct str s = copy_str(&m->copy);
    size_t info_end = line_end(s, i + 3), body = info_end < s.n ? info_end + 1 : s.n;
    struct str info = str_trim((struct str){s.p + i + 3, info_end - i - 3});
    const char *close = memmem(s.p + body, s.n - body, "```", 3), *about = NULL;
    size_t end = close ? (size_t)(close - s.p) : s.n;

    if (!look_at_prompts(m, body, end, &about) && body < end)
        about = look_at_code(m, body, end, is_shell_word(info));
    end = close ? end + 3 : end;
    if (about)
        replace(m, i, end, advisory_custodial_text, about);
    return end;
}

/* "$ command", to the end of its line. */
static size_t look_at_prompt(struct mention *m, size_t i, size_t behind)
{
    size_t end = line_end(copy_str(&m->copy), i);
    const char *about = look_at_code(m, behind, end, true);

    if (about)
        replace(m, i, end, advisory_custodial_text, about);
    return end;
}

/* `code`; a name alone is only mentioned. */
static size_t look_at_span(struct mention *m, size_t i)
{
    struct str s = copy_str(&m->copy);
    const char *close = memchr(s.p + i + 1, '`', s.n - i - 1), *about = NULL;
    size_t end = close ? (size_t)(close - s.p) : 0;

    /* The other sign first: a line may be as long as the text. */
    if (!close || memchr(s.p + i + 1, '\n', end - i - 1))
        return i + 1;
    if (memchr(s.p + i + 1, ' ', end - i - 1) || memchr(s.p + i + 1, '$', end - i - 1))
        about = look_at_code(m, i + 1, end, false);
    if (about)
        replace(m, i, end + 1, advisory_custodial_text, about);
    return end + 1;
}

/* ---- words ---- */

struct token {
    size_t start, end;
};

static bool is_wrap(char c)
{
    return strchr("\"'`()[]{}<>,;!?", c) != NULL;
}

/* The next word, without what prose puts around words. */
static bool token_next(struct str s, size_t *from, struct token *out)
{
    while (*from < s.n && (is_space(s.p[*from]) || !s.p[*from]))
        (*from)++;
    if (*from >= s.n)
        return false;
    out->start = *from;
    while (*from < s.n && !is_space(s.p[*from]) && s.p[*from])
        (*from)++;
    out->end = *from;
    while (out->start < out->end && is_wrap(s.p[out->start]))
        out->start++;
    while (out->end > out->start &&
           (is_wrap(s.p[out->end - 1]) || (strchr(".:", s.p[out->end - 1]) &&
                                           out->end - out->start > 2 && s.p[out->end - 2] != '.')))
        out->end--;
    return true;
}

static struct str token_str(struct str s, struct token t)
{
    return (struct str){s.p + t.start, t.end - t.start};
}

static bool is_option(struct str word)
{
    return word.n >= 2 && word.p[0] == '-' && word.p[1] != '\0' && (word.p[1] != '-' || word.n > 2);
}

static bool has_dot_inside(struct str word)
{
    for (size_t i = 0; i + 1 < word.n; i++)
        if (word.p[i] == '.' && word.p[i + 1] != '.')
            return true;
    return false;
}

/* An option, a path, a pattern, a mode, an address. */
static bool is_operand(struct str word)
{
    bool digits = word.n >= 3;

    for (size_t i = 0; i < word.n; i++)
        digits &= word.p[i] >= '0' && word.p[i] <= '7';
    return word.n && (is_option(word) || digits || memchr(word.p, '/', word.n) ||
                      memchr(word.p, '*', word.n) || memchr(word.p, '+', word.n) ||
                      memchr(word.p, '=', word.n) || has_dot_inside(word));
}

/* Names, and the words that make a command of them. A word in `third` needs one more operand. */
static const struct {
    const char *name;
    const char *next; /* " a b ": these; NULL: any operand */
    const char *third;
} named[] = {
    {"rm",      NULL,                                                                                   NULL},
    {"mv",      NULL,                                                                                   NULL},
    {"cp",      NULL,                                                                                   NULL},
    {"chmod",   NULL,                                                                                   NULL},
    {"chown",   NULL,                                                                                   NULL},
    {"curl",    NULL,                                                                                   NULL},
    {"wget",    NULL,                                                                                   NULL},
    {"sudo",    " rm mv cp apt apt-get chmod chown systemctl su bash sh docker git make reboot mount ",
     NULL                                                                                                   },
    {"apt",     " install remove purge update upgrade autoremove full-upgrade ",                        NULL},
    {"apt-get", " install remove purge update upgrade autoremove dist-upgrade ",                        NULL},
    {"brew",    " install uninstall upgrade tap reinstall ",                                            NULL},
    {"git",     " push pull clone reset rebase fetch add checkout clean restore stash cherry-pick ",
     " commit branch tag log diff status config remote merge init revert rm "                               },
    {"docker",  " run exec rm rmi pull push stop kill prune compose ",
     " build start image container "                                                                        },
    {"kubectl", " apply delete exec get create scale rollout drain cordon edit patch run ",             NULL},
    {"python",  " -c ",                                                                                 NULL},
    {"python3", " -c ",                                                                                 NULL},
    {"node",    " -e --eval -p -pe ",                                                                   NULL},
};

static bool has_word(const char *list, struct str word)
{
    size_t n = strlen(list);

    for (size_t i = 0; word.n && i + word.n < n; i++)
        if (list[i] == ' ' && strncmp(list + i + 1, word.p, word.n) == 0 &&
            list[i + 1 + word.n] == ' ')
            return true;
    return false;
}

static struct str base_of(struct str word)
{
    for (size_t i = word.n; i > 0; i--)
        if (word.p[i - 1] == '/')
            return (struct str){word.p + i, word.n - i};
    return word;
}

/* Whether the word at t, with those behind it, is a command; *end is where that ends. */
static bool is_command(struct str s, struct token t, size_t from, size_t *end)
{
    struct token next = {0}, third = {0};
    struct str name = base_of(token_str(s, t)), second;
    bool wants_third = false, is_it = false;

    if (!token_next(s, &from, &next))
        return false;
    second = token_str(s, next);
    for (size_t i = 0; i < COUNT(named) && !is_it; i++) {
        if (!str_is(name, named[i].name))
            continue;
        wants_third = named[i].third && has_word(named[i].third, second);
        is_it = wants_third || is_option(second) ||
                (named[i].next ? has_word(named[i].next, second) : is_operand(second));
        /* "python -m venv" is no inline code. */
        if (strncmp(named[i].name, "python", 6) == 0 || strcmp(named[i].name, "node") == 0)
            is_it = has_word(named[i].next, second);
    }
    *end = next.end;
    if (!is_it)
        return false;
    for (unsigned i = 0; i < TAIL_MAX && token_next(s, &from, &third); i++) {
        bool fits = is_operand(token_str(s, third));

        if (wants_third && i == 0 && !fits)
            return false;
        if (!fits)
            break;
        *end = third.end;
    }
    return !(wants_third && *end == next.end);
}

/* ---- paths ---- */

static bool has_parent(struct str word)
{
    size_t start = 0;

    for (size_t i = 0; i <= word.n; i++) {
        if (i < word.n && word.p[i] != '/' && word.p[i] != '\\')
            continue;
        if (i - start == 2 && word.p[start] == '.' && word.p[start + 1] == '.' && word.n > 2)
            return true;
        start = i + 1;
    }
    return false;
}

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
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
        return w.p[2] == '\\' || w.p[2] == '/';
    return str_starts(w, "file:") || str_starts(w, "\\\\");
}

/* Whether a word of prose is meant as a path that may lead elsewhere. Addresses on the network are
 * another matter. */
static bool is_path_like(struct str w)
{
    bool has_slash = memchr(w.p, '/', w.n) || memchr(w.p, '\\', w.n);

    if (w.n < 2 || memmem(w.p, w.n, "://", 3))
        return str_starts(w, "file:");
    if (begins_elsewhere(w, has_slash) || has_parent(w))
        return true;
    if (has_slash && (w.p[0] == '$' || w.p[0] == '%'))
        return true;
    return (has_slash || str_starts(w, "%2")) &&
           (memmem(w.p, w.n, "%2", 2) || memmem(w.p, w.n, "%c0", 3));
}

static bool look_at_path(struct mention *m, struct token t)
{
    AUTO_ARENA struct arena scratch = ARENA(MIB);
    struct sandbox_path path;
    struct str word = token_str(copy_str(&m->copy), t);

    if (word.n == 0 || !is_path_like(word))
        return false;
    /* Longer than any path may be is all that counts, and has room. */
    word.n = word.n > PATH_BYTES_MAX + 1 ? PATH_BYTES_MAX + 1 : word.n;
    sandbox_path_read(&scratch, word, STR_LIT(""), &path);
    if (!path.rule)
        return false;
    note_at(m, ADVISORY_IS_PATH_VIOLATION, path.rule, t.start, t.end);
    replace(m, t.start, t.end, advisory_path_text, NULL);
    return true;
}

/* A command in plain words: what it would do is known by its name. */
static void note_command(struct mention *m, struct token t, size_t end)
{
    struct str name = base_of(token_str(copy_str(&m->copy), t));
    const char *about = NULL, *rule = advisory_command_rule(name, false, &about);

    note_at(m, ADVISORY_IS_UNSAFE_COMMAND, rule ? rule : "inline_code", t.start, end);
    note_at(m, ADVISORY_IS_SHELL_EXECUTION, "command_text", t.start, end);
    replace(m, t.start, end, advisory_custodial_text,
            rule ? about : "It would run code that is given on the command line.");
}

/* Words outside of code. */
static void look_at_words(struct mention *m, size_t start, size_t stop)
{
    struct str s = {m->copy.p, stop};
    size_t from = start, end = 0;
    struct token t;

    while (token_next(s, &from, &t)) {
        if (t.start < end)
            continue;
        if (is_command(s, t, from, &end)) {
            note_command(m, t, end);
            continue;
        }
        end = 0;
        (void)look_at_path(m, t);
    }
}

/* Paths in a piece of code that stays. */
static void look_at_paths(struct mention *m, size_t start, size_t stop)
{
    struct str s = {m->copy.p, stop};
    size_t from = start;
    struct token t;

    while (token_next(s, &from, &t))
        (void)look_at_path(m, t);
}

static void look(struct mention *m)
{
    struct str s = copy_str(&m->copy);
    size_t from = 0, i = 0, behind = 0;
    bool line_start = true;

    while (i < s.n) {
        bool has_prompt = line_start && is_prompt(s, i, &behind);
        size_t next = i + 1;

        if (has_prompt || s.p[i] == '`') {
            look_at_words(m, from, i);
            next = has_prompt                                       ? look_at_prompt(m, i, behind)
                   : s.n - i >= 3 && memcmp(s.p + i, "```", 3) == 0 ? look_at_fence(m, i)
                                                                    : look_at_span(m, i);
            look_at_paths(m, i, next);
            from = next;
        }
        line_start = s.p[next - 1] == '\n' || (line_start && is_space(s.p[next - 1]));
        i = next;
    }
    look_at_words(m, from, s.n);
}

/* ---- the text without them ---- */

static int edit_order(const void *a, const void *b)
{
    const struct edit *x = a, *y = b;

    return x->start != y->start ? (x->start < y->start ? -1 : 1)
           : x->end != y->end   ? (x->end > y->end ? -1 : 1)
                                : 0;
}

static int rewrite(struct str text, const struct edit *edits, size_t n, struct buf *out,
                   struct err *err)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        const struct edit *edit = &edits[i];

        if (edit->start >= kept && (buf_add(out, text.p + kept, edit->start - kept, err) < 0 ||
                                    buf_add_text(out, edit->words, err) < 0 ||
                                    (edit->about && (buf_add_byte(out, ' ', err) < 0 ||
                                                     buf_add_text(out, edit->about, err) < 0))))
            return -1;
        kept = edit->end > kept ? edit->end : kept;
    }
    return buf_add(out, text.p + kept, text.n - kept, err);
}

void check_mentions(struct checking *checking, const struct passage *passage, struct str *safe)
{
    AUTO_ARENA struct arena scratch = ARENA(ADVISORY_MEMORY_MAX);
    AUTO_BUF struct buf edits = BUF(ADVISORY_EDITS_MAX);
    AUTO_BUF struct buf text = BUF(ADVISORY_SAFE_MAX);
    struct mention m = {.checking = checking, .passage = passage, .edits = &edits};
    struct err err;
    size_t n;

    fold_copy(&scratch, passage->text, FOLD_ANSI | FOLD_INVISIBLE | FOLD_LOOKS, &m.copy);
    look(&m);
    *safe = passage->text;
    n = edits.n / sizeof(struct edit);
    if (n)
        qsort(edits.p, n, sizeof(struct edit), edit_order);
    /* Nothing is said rather than something that was to be replaced. */
    if (m.is_lost || (n && rewrite(passage->text, (const struct edit *)(const void *)edits.p, n,
                                   &text, &err) < 0))
        *safe = STR_LIT("");
    else if (n)
        *safe = arena_str(checking->mem, buf_str(&text));
}
