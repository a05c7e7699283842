/* SPDX-License-Identifier: Apache-2.0 */

/* Commands and paths within prose, and the text without them.
 *
 * What stands between backquotes or behind a prompt is read as a shell would; elsewhere
 * prose-command.c and prose-path.c say what is meant as one. Each is replaced by the sentence the
 * public document has for it. */

#include "lib/advisory/advisory-private.h"

#include "lib/base/attrs.h"
#include "lib/base/limits.h"

#include <stdlib.h>
#include <string.h>

#define PROMPT_MAX 128 /* bytes of "user@host:~$" */

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

/* "$ command", "user@host:~$ command" */
static bool is_prompt(struct str s, size_t i, size_t *behind)
{
    size_t last = i < s.n && s.n - i > PROMPT_MAX ? i + PROMPT_MAX : s.n, end = i;
    bool has_host = false;

    for (; end < last && !is_space(s.p[end]); end++)
        has_host |= s.p[end] == '@';
    if (end == i || end + 1 >= s.n || s.p[end] != ' ' || is_space(s.p[end + 1]))
        return false;
    *behind = end + 1;
    return s.p[end - 1] == '$' || s.p[end - 1] == '%' ? has_host || end == i + 1
                                                      : has_host && s.p[end - 1] == '#';
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

static bool judge_path(struct mention *m, struct token t)
{
    AUTO_ARENA struct arena scratch = ARENA(MIB);
    struct sandbox_path path;
    struct str word = token_str(copy_str(&m->copy), t);

    /* Longer than any path may be is all that counts, and has room. */
    word.n = word.n > PATH_BYTES_MAX + 1 ? PATH_BYTES_MAX + 1 : word.n;
    sandbox_path_read(&scratch, word, STR_LIT(""), &path);
    if (!path.rule)
        return false;
    note_at(m, ADVISORY_IS_PATH_VIOLATION, path.rule, t.start, t.end);
    replace(m, t.start, t.end, advisory_path_text, NULL);
    return true;
}

static void look_at_path(struct mention *m, struct token t)
{
    struct str s = copy_str(&m->copy);
    size_t from = t.start;
    struct token part;

    if (t.start == t.end)
        return;
    if (prose_path(s, &t) && judge_path(m, t))
        return;
    for (from = t.start; prose_path_part(s, t, &from, &part);)
        (void)judge_path(m, part);
}

static void note_command(struct mention *m, const struct prose_command *command)
{
    note_at(m, ADVISORY_IS_UNSAFE_COMMAND, command->rule, command->start, command->end);
    note_at(m, ADVISORY_IS_SHELL_EXECUTION, "command_text", command->start, command->end);
    replace(m, command->start, command->end, advisory_custodial_text, command->about);
}

/* Words outside of code. */
static void look_at_words(struct mention *m, size_t start, size_t stop)
{
    struct str s = {m->copy.p, stop};
    bool strict_seed = m->checking->options->strict_seed;
    struct prose_command command = {.end = 0};
    struct token t, before = {start, start};
    size_t from = start;

    for (; token_next(s, &from, &t); before = t) {
        if (t.start < command.end)
            continue;
        command.end = 0;
        if (prose_command(s, before, t, from, strict_seed, &command))
            note_command(m, &command);
        else
            look_at_path(m, t);
    }
}

/* Paths in a piece of code that stays. */
static void look_at_paths(struct mention *m, size_t start, size_t stop)
{
    struct str s = {m->copy.p, stop};
    size_t from = start;
    struct token t;

    while (token_next(s, &from, &t))
        look_at_path(m, t);
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

    fold_copy(&scratch, passage->text, FOLD_ANSI | FOLD_INVISIBLE | FOLD_LOOKS | FOLD_QUOTES,
              &m.copy);
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
