/* SPDX-License-Identifier: Apache-2.0 */

/* Commands that advisory mode bans, however they are written.
 *
 * lib/shell says what a text would run; here its names are looked up. What cannot be read, or runs
 * something that cannot be seen, counts as banned: the question is whether it is known to be none.
 */

#include "lib/advisory/advisory-private.h"

#include "lib/base/attrs.h"
#include "lib/base/limits.h"
#include "lib/shell/shell.h"

#include <string.h>

#define CHAIN_MAX 64       /* commands of one pipeline, looked back through */
#define WRITES_MAX 64      /* files a text writes; with more, it may be any */
#define XARGS_WORDS_MAX 64 /* its own, before the command: with more it is not looked at */

/* ---- names ---- */

struct group {
    const char *name;    /* as the public document lists it */
    const char *aliases; /* " a b ": other programs for the same thing */
    const char *about;
    const char *rule, *alias_rule;
};

#define GROUP(name, aliases, about)                                                                \
    {                                                                                              \
        name, aliases, about, "banned." name, "alias." name                                        \
    }

/* clang-format off */
static const struct group groups[] = {
    GROUP("rm",      " rmdir unlink shred ",                                  "It would delete files or directories."),
    GROUP("mv",      "",                                                      "It would move or rename files, or replace what has the new name."),
    GROUP("cp",      " install rsync dd ln ",                                 "It would write copies of files, or links to them, over what is there."),
    GROUP("chmod",   "",                                                      "It would change who may read, write or run files."),
    GROUP("chown",   " chgrp ",                                               "It would change whom files belong to."),
    GROUP("sudo",    " doas su pkexec ",                                      "It would do something with another user's rights."),
    GROUP("apt",     " apt-get aptitude dpkg apk yum dnf pacman snap zypper ", "It would install, change or remove software of the system."),
    GROUP("brew",    " port nix-env ",                                        "It would install, change or remove software."),
    GROUP("curl",    " nc ncat netcat socat telnet ftp aria2c httpie ",       "It would exchange data with another machine."),
    GROUP("wget",    "",                                                      "It would download something from another machine."),
    GROUP("git",     " gh svn hg ",                                           "It would read or change a repository, or exchange it with another machine."),
    GROUP("docker",  " podman nerdctl ctr crictl buildah ",                   "It would start, change or remove containers or images."),
    GROUP("kubectl", " helm oc k3s ",                                         "It would look at or change a cluster."),
};
/* clang-format on */

#define ABOUT_INLINE "It would run code that is given on the command line."
#define ABOUT_DYNAMIC "It would run something that is only known once it runs."
#define ABOUT_DECODED "It would decode a hidden text and run it."
#define ABOUT_REMOTE "It would download a program from another machine and run it unseen."
#define ABOUT_UNPARSEABLE "It cannot be read as a command, so what it would do is not known."

static bool has_word(const char *list, struct str word)
{
    size_t n = strlen(list);

    for (size_t i = 0; word.n && i + word.n + 1 < n; i++)
        if (list[i] == ' ' && strncmp(list + i + 1, word.p, word.n) == 0 &&
            list[i + 1 + word.n] == ' ')
            return true;
    return false;
}

/* Without folders and ".exe", in small letters; the buffer has what is left. */
static struct str plain_name(struct str word, char *out, size_t size)
{
    size_t n = 0;

    for (size_t i = word.n; i > 0; i--)
        if (word.p[i - 1] == '/' || word.p[i - 1] == '\\') {
            word = (struct str){word.p + i, word.n - i};
            break;
        }
    for (; n < word.n && n < size; n++)
        out[n] = small_letter(word.p[n]);
    if (n > 4 && memcmp(out + n - 4, ".exe", 4) == 0)
        n -= 4;
    return (struct str){out, n};
}

const char *advisory_command_rule(struct str name, bool strict_seed, const char **about)
{
    char text[64];
    struct str plain = plain_name(name, text, sizeof text);

    for (size_t i = 0; i < COUNT(groups); i++) {
        bool is_alias = !strict_seed && has_word(groups[i].aliases, plain);

        if (!is_alias && !str_is(plain, groups[i].name))
            continue;
        *about = groups[i].about;
        return is_alias ? groups[i].alias_rule : groups[i].rule;
    }
    return NULL;
}

/* python3.11 is python. */
static bool is_versioned(struct str name, const char *list)
{
    char text[64];
    struct str plain = plain_name(name, text, sizeof text);

    while (plain.n && ((plain.p[plain.n - 1] >= '0' && plain.p[plain.n - 1] <= '9') ||
                       plain.p[plain.n - 1] == '.'))
        plain.n--;
    return has_word(list, plain);
}

/* Interpreters that the document names with a flag, and others like them. */
static bool is_interpreter(struct str name, bool strict_seed)
{
    return !strict_seed || is_versioned(name, " python pypy py node nodejs bun deno ");
}

/* ---- one reading ---- */

struct judging {
    const struct shell_script *script;
    unsigned flags;
    struct command_hit *out;
    unsigned rank;    /* of what *out says */
    bool has_decoder; /* something in it decodes */
    bool *carries;    /* of each command: one that it runs is in the list */
};

/* The gravest is told; of equals the first. */
enum {
    RANK_NONE,
    RANK_DYNAMIC,
    RANK_INLINE,
    RANK_BANNED,
    RANK_DECODED,
    RANK_REMOTE,
};

static void hit(struct judging *j, unsigned rank, const char *rule, const char *about,
                struct shell_span span)
{
    if (rank <= j->rank)
        return;
    j->rank = rank;
    *j->out = (struct command_hit){.rule = rule,
                                   .about = about,
                                   .start = span.start,
                                   .end = span.end,
                                   .is_banned = rank >= RANK_INLINE};
}

static bool is_named(const struct shell_command *c, const char *list)
{
    char text[64];

    return c->word_n && has_word(list, plain_name(c->words[0].text, text, sizeof text));
}

#define DOWNLOADERS " curl wget aria2c http https fetch lynx "
#define DECODERS                                                                                   \
    " base64 base32 base16 basenc xxd openssl tr rev uudecode gunzip zcat gzip bzip2 xz od "

/* Whether something of that name is among those that write to its input. */
static bool is_fed_by(const struct judging *j, const struct shell_command *c, const char *list)
{
    for (unsigned i = 0; i < CHAIN_MAX && c->input_kind == SHELL_INPUT_PIPE; i++) {
        if (c->input_from >= j->script->n)
            return false;
        c = &j->script->commands[c->input_from];
        if (is_named(c, list))
            return true;
    }
    return false;
}

static bool runs_text(const struct shell_command *c)
{
    return (c->flags & SHELL_IS_SHELL) ||
           is_named(c, " eval source . sh bash dash zsh ksh ash fish ");
}

/* A shell that is told what to do by a pipe. */
static void judge_input(struct judging *j, const struct shell_command *c)
{
    if (!runs_text(c) && !(c->flags & SHELL_INLINE))
        return;
    if (c->input_kind != SHELL_INPUT_PIPE)
        return;
    if (is_fed_by(j, c, DOWNLOADERS))
        hit(j, RANK_REMOTE, "remote_exec", ABOUT_REMOTE, c->span);
    else if (is_fed_by(j, c, DECODERS))
        hit(j, RANK_DECODED, "decoded_exec", ABOUT_DECODED, c->span);
}

/* Whether it runs something that is not in the list. What xargs and find run is; they only add
 * words to it. */
static bool hides_command(const struct shell_command *c)
{
    if (!(c->flags & SHELL_HIDES) || c->flags & SHELL_INLINE)
        return false;
    return c->flags & SHELL_SCANS || !is_named(c, " find xargs ");
}

/* What xargs puts input in the place of: -I R, -tIR, -iR, --replace=R, among its first n words.
 * Without such an option it puts its input behind the words: nothing. */
static struct str replaced_by_xargs(const struct shell_command *c, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct str word = c->words[i].text;
        const char *letter;

        if (str_starts(word, "--replace"))
            return word.n > 10 ? str_of(word.p + 10) : str_of("{}");
        if (word.n < 2 || word.p[0] != '-' || word.p[1] == '-')
            continue;
        letter = word.p + 1 + strspn(word.p + 1, "0prtox"); /* flags may stand before it */
        if (*letter == 'i')
            return letter[1] ? str_of(letter + 1) : str_of("{}");
        if (*letter == 'I' && (letter[1] || i + 1 < c->word_n))
            return letter[1] ? str_of(letter + 1) : c->words[i + 1].text;
    }
    return (struct str){0};
}

static bool has_text(struct str text, struct str part)
{
    return part.n && memmem(text.p, text.n, part.p, part.n) != NULL;
}

/* What find and xargs add to the words of a command, which nobody has seen, becomes what it runs:
 * xargs env, xargs -I{} sh -c '{}', find -exec sh -c 'x {}'. */
static bool is_completed(const struct judging *j, size_t at)
{
    const struct shell_command *c = &j->script->commands[at];
    const struct shell_command *more = c;
    const struct shell_command *adds;
    struct str part;
    size_t own_n;

    while (!(more->flags & SHELL_MORE) && more->parent != SHELL_NONE)
        more = &j->script->commands[more->parent];
    if (!(more->flags & SHELL_MORE) || more->parent == SHELL_NONE)
        return false;
    adds = &j->script->commands[more->parent];
    if (!is_named(adds, " find xargs "))
        return false;
    own_n = adds->word_n - (more->word_n < adds->word_n ? more->word_n : 0);
    if (is_named(adds, " xargs ") && own_n > XARGS_WORDS_MAX)
        return true;
    part = is_named(adds, " find ") ? str_of("{}") : replaced_by_xargs(adds, own_n);
    if (part.n == 0)
        return c == more && c->carrier && !j->carries[at];
    if (has_text(c->words[0].text, part))
        return true;
    for (size_t i = 1; runs_text(c) && i < c->word_n; i++)
        if (c->words[i].text.n != part.n && has_text(c->words[i].text, part))
            return true;
    return false;
}

static void judge_name(struct judging *j, const struct shell_command *c)
{
    const struct shell_word *word = &c->words[0];
    const char *about = NULL;
    const char *rule = advisory_command_rule(word->text, j->flags & COMMAND_STRICT_SEED, &about);

    if (rule)
        hit(j, RANK_BANNED, rule, about, word->span);
    else if (word->known != SHELL_LITERAL || hides_command(c) ||
             is_completed(j, (size_t)(c - j->script->commands)))
        hit(j, RANK_DYNAMIC, "dynamic_command", ABOUT_DYNAMIC, c->span);
}

/* awk PROGRAM; behind -f, -E and long options it may be elsewhere. */
static bool is_program_of_awk(const struct shell_command *c)
{
    if (c->word_n < 2 || !is_named(c, " awk gawk mawk nawk "))
        return false;
    for (size_t i = 1; i < c->word_n; i++)
        if (str_starts(c->words[i].text, "-f") || str_starts(c->words[i].text, "-E") ||
            str_starts(c->words[i].text, "--"))
            return false;
    return true;
}

/* ex and its like are told what to do by their input, when that is no terminal. */
static bool is_editor_with_input(const struct shell_command *c)
{
    return is_named(c, " ex vi vim nvim view vimdiff ") &&
           (c->input_kind == SHELL_INPUT_PIPE || c->input_kind == SHELL_INPUT_TEXT);
}

/* bun -e, deno eval: theirs is a grammar of their own. */
static bool evaluates(const struct shell_command *c)
{
    if (is_program_of_awk(c) || is_editor_with_input(c))
        return true;
    if (!is_named(c, " bun deno "))
        return false;
    for (size_t i = 1; i < c->word_n; i++)
        if (has_word(" -e --eval -p --print eval ", c->words[i].text))
            return true;
    return false;
}

/* PS4='$(x)', BASH_ENV=f bash, PAGER=x man: what it says is run by others. What IFS does to words
 * is known to the reader. */
static bool steers(const struct shell_command *c)
{
    for (size_t i = 0; i < c->assignment_n; i++)
        if (is_steering_variable(c->assignments[i].text.p) &&
            !str_starts(c->assignments[i].text, "IFS="))
            return true;
    return false;
}

static void judge_command(struct judging *j, const struct shell_command *c)
{
    if (steers(c))
        hit(j, RANK_DYNAMIC, "dynamic_command", ABOUT_DYNAMIC, c->span);
    if (c->word_n == 0 && c->flags & SHELL_HIDES) /* x=$((y)), ((y)) */
        hit(j, RANK_DYNAMIC, "dynamic_command", ABOUT_DYNAMIC, c->span);
    if (c->word_n == 0 || c->flags & (SHELL_LOOKUP | SHELL_FILE))
        return;
    if (c->flags & SHELL_DECODED && j->has_decoder)
        hit(j, RANK_DECODED, "decoded_exec", ABOUT_DECODED, c->span);
    if (c->flags & SHELL_DELETES)
        hit(j, RANK_BANNED, "banned.rm", groups[0].about, c->span);
    if ((c->flags & SHELL_INLINE || evaluates(c)) && !runs_text(c) &&
        is_interpreter(c->words[0].text, j->flags & COMMAND_STRICT_SEED))
        hit(j, RANK_INLINE, "inline_code", ABOUT_INLINE, c->span);
    judge_input(j, c);
    judge_name(j, c);
}

/* bash <(curl u), sh -c "$(curl u)", eval "$(base64 -d f)": what is within the words of a command
 * that runs them. Commands of one text stand in the order in which they begin. */
static void judge_substitutions(struct judging *j)
{
    const struct shell_command *outer = NULL;

    for (size_t i = 0; i < j->script->n; i++) {
        const struct shell_command *c = &j->script->commands[i];
        bool is_within = outer && c->parent == outer->parent && c->span.start > outer->span.start &&
                         c->span.end <= outer->span.end;

        if (is_within && is_named(c, DOWNLOADERS))
            hit(j, RANK_REMOTE, "remote_exec", ABOUT_REMOTE, outer->span);
        else if (is_within && is_named(c, DECODERS))
            hit(j, RANK_DECODED, "decoded_exec", ABOUT_DECODED, outer->span);
        if (runs_text(c) && !is_within)
            outer = c;
    }
}

/* ---- files that the text writes and runs ---- */

struct writes {
    struct {
        size_t at; /* the command that opens it */
        const struct shell_word *file;
    } v[WRITES_MAX];
    size_t n; /* also of those that are not kept */
};

static void add_write(struct writes *w, size_t at, const struct shell_word *file)
{
    if (str_starts(file->text, "/dev/"))
        return;
    if (w->n < WRITES_MAX) {
        w->v[w->n].at = at;
        w->v[w->n].file = file;
    }
    w->n++;
}

static void find_writes(const struct judging *j, struct writes *w)
{
    for (size_t i = 0; i < j->script->n; i++) {
        const struct shell_command *c = &j->script->commands[i];

        for (size_t k = 0; k < c->redirect_n; k++)
            if (c->redirects[k].kind == SHELL_WRITE)
                add_write(w, i, &c->redirects[k].target);
        for (size_t k = 1; k < c->word_n && is_named(c, " tee "); k++)
            add_write(w, i, &c->words[k]);
    }
}

/* By their last names: it may go to another folder in between. What is not known may be any. */
static bool is_written(const struct writes *w, const struct judging *j, size_t at, const char *file)
{
    size_t parent = j->script->commands[at].parent;

    if (w->n > WRITES_MAX)
        return true;
    for (size_t i = 0; i < w->n; i++) {
        const struct shell_word *written = w->v[i].file;

        if (w->v[i].at == at || w->v[i].at == parent)
            continue; /* where its output goes */
        if (written->known != SHELL_LITERAL ||
            strcmp(shell_base(written->text.p), shell_base(file)) == 0)
            return true;
    }
    return false;
}

/* sed -f FILE, make -fFILE, --file=FILE; make without it. */
static bool is_program_file_written(const struct writes *w, const struct judging *j, size_t at)
{
    const struct shell_command *c = &j->script->commands[at];
    bool is_make = is_named(c, " make gmake ");

    if (is_make && (is_written(w, j, at, "Makefile") || is_written(w, j, at, "makefile") ||
                    is_written(w, j, at, "GNUmakefile")))
        return true;
    if (!is_make && !is_named(c, " sed gsed awk gawk mawk nawk "))
        return false;
    for (size_t i = 1; i < c->word_n; i++) {
        struct str word = c->words[i].text;
        const char *file = NULL;

        if (str_starts(word, "--file=") || str_starts(word, "--makefile="))
            file = strchr(word.p, '=') + 1;
        else if (str_is(word, "--file") || str_is(word, "--makefile"))
            file = i + 1 < c->word_n ? c->words[i + 1].text.p : NULL;
        else if (word.n > 1 && word.p[0] == '-' && word.p[1] != '-' && strchr(word.p, 'f')) {
            file = strchr(word.p, 'f') + 1;
            if (!*file)
                file = i + 1 < c->word_n ? c->words[i + 1].text.p : NULL;
        }
        if (file)
            return is_written(w, j, at, file);
    }
    return false;
}

/* echo 'rm x' > f; sh f */
static void judge_files(struct judging *j)
{
    struct writes w = {.n = 0};

    find_writes(j, &w);
    for (size_t i = 0; w.n && i < j->script->n && j->rank < RANK_DYNAMIC; i++) {
        const struct shell_command *c = &j->script->commands[i];

        if (c->word_n == 0 || c->flags & SHELL_LOOKUP)
            continue;
        if ((strchr(c->words[0].text.p, '/') && is_written(&w, j, i, c->words[0].text.p)) ||
            is_program_file_written(&w, j, i))
            hit(j, RANK_DYNAMIC, "dynamic_command", ABOUT_DYNAMIC, c->span);
    }
}

/* ---- the text ---- */

static bool has_long_word(struct str s)
{
    size_t run = 0;

    for (size_t i = 0; i < s.n; i++) {
        run = strchr(" \t\r\n;&|()<>", s.p[i]) ? 0 : run + 1;
        if (run > ADVISORY_WORD_MAX)
            return true;
    }
    return false;
}

static void unparseable(struct command_hit *out, struct str text)
{
    *out = (struct command_hit){
        .rule = "unparseable", .about = ABOUT_UNPARSEABLE, .start = 0, .end = text.n};
}

static void read_text(struct str text, unsigned flags, struct command_hit *out)
{
    AUTO_ARENA struct arena scratch = ARENA(SHELL_MEMORY_MAX);
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    struct shell_script script = {0};
    struct judging j = {.script = &script, .flags = flags, .out = out};
    struct err err;

    *out = (struct command_hit){0};
    if (text.n > ADVISORY_COMMAND_MAX || (text.n && memchr(text.p, 0, text.n)) ||
        !str_is_utf8(text) || has_long_word(text) ||
        shell_read(&scratch, text, SHELL_BASH, &script, &err) < 0 ||
        script.n > ADVISORY_SEGMENTS_MAX) {
        unparseable(out, text);
        return;
    }
    j.carries = arena_array(&mem, bool, script.n + 1);
    for (size_t i = 0; i < script.n; i++) {
        j.has_decoder |= is_named(&script.commands[i], DECODERS);
        if (script.commands[i].parent != SHELL_NONE)
            j.carries[script.commands[i].parent] = true;
    }
    for (size_t i = 0; i < script.n; i++)
        judge_command(&j, &script.commands[i]);
    judge_substitutions(&j);
    judge_files(&j);
}

/* As it stands, and as it looks. */
static void read_both(struct str text, unsigned flags, struct copy *copy, struct command_hit *out)
{
    struct command_hit plain;

    read_text(text, flags, out);
    if (copy->n == text.n && memcmp(copy->p, text.p, text.n) == 0)
        return;
    read_text(copy_str(copy), flags, &plain);
    if (!plain.rule || (out->rule && (out->is_banned || !plain.is_banned)))
        return;
    *out = plain;
    out->rule = "confusable";
    out->is_confusable = true;
    out->start = copy->at[plain.start];
    out->end = copy->at[plain.end];
}

void advisory_command_read(struct str text, unsigned flags, struct command_hit *out)
{
    AUTO_ARENA struct arena scratch = ARENA(ADVISORY_MEMORY_MAX);
    struct copy copy = {0};

    fold_copy(&scratch, text, FOLD_ANSI | FOLD_INVISIBLE | FOLD_LOOKS, &copy);
    read_both(text, flags, &copy, out);
    /* What may be no shell at all is no command only because it cannot be read. */
    if (flags & COMMAND_LENIENT && !out->is_banned)
        *out = (struct command_hit){0};
}

void check_command(struct checking *checking)
{
    struct advisory_result *out = checking->out;
    struct passage all = {.text = checking->value};
    struct copy copy = {0};
    struct command_hit found;

    advisory_command_read(checking->value, checking->options->strict_seed ? COMMAND_STRICT_SEED : 0,
                          &found);
    fold_copy(checking->mem, checking->value, FOLD_ANSI | FOLD_INVISIBLE | FOLD_LOOKS, &copy);
    out->normalized = copy_str(&copy);
    out->is_confusable = copy.is_confusable;
    if (!found.rule)
        return;
    advisory_note_plain(checking, &all, ADVISORY_IS_UNSAFE_COMMAND, ADVISORY_ADVISE, found.rule,
                        found.start, found.end);
    advisory_note_plain(checking, &all, ADVISORY_IS_SHELL_EXECUTION, ADVISORY_ADVISE, "command", 0,
                        checking->value.n);
    out->advisory_text =
        str_of(arena_printf(checking->mem, "%s %s", advisory_custodial_text, found.about));
}
