/* SPDX-License-Identifier: Apache-2.0 */
/* What a command runs besides itself. */
#include "lib/shell/carrier-private.h"

#include "lib/base/limits.h"
#include "lib/shell/option-private.h"
#include "lib/shell/reader-private.h"

#include <string.h>

void flag(const struct carried *c, unsigned flags)
{
    c->look->v[c->at].flags |= flags;
}

/* ---- what is found ---- */

static enum shell_known least_known(const struct shell_word *words, size_t n, unsigned flags)
{
    enum shell_known known = flags & SHELL_MORE ? SHELL_PARTLY : SHELL_LITERAL;

    for (size_t i = 0; i < n; i++)
        if (words[i].known < known)
            known = i == 0 ? words[i].known : SHELL_PARTLY;
    return known;
}

/* Words of the parent that are a command of their own; SHELL_NONE: there is no room for it. */
size_t add_child(struct look *look, size_t parent, const char *within,
                 const struct shell_word *words, size_t n, unsigned flags)
{
    size_t at = add_command(look);
    struct shell_command *outer = parent == SHELL_NONE ? NULL : &look->v[parent];
    struct shell_command *command;

    if (at == SHELL_NONE)
        return SHELL_NONE;
    command = &look->v[at];
    *command = empty_command;
    command->words = words;
    command->word_n = n;
    command->known = least_known(words, n, flags);
    command->flags = flags;
    command->within = within;
    command->parent = parent;
    look->about[at] = (struct about){0};
    if (outer) {
        bool certain = outer->known == SHELL_LITERAL || !(outer->flags & SHELL_HIDES);

        look->about[at] = look->about[parent];
        look->about[at].splits = look->about[at].same = look->about[at].dull = false;
        look->about[at].streams = false;
        command->depth = outer->depth + 1;
        command->input_kind = outer->input_kind;
        command->input_from = outer->input_from;
        command->input = outer->input;
        command->flags |= outer->flags & (SHELL_FUNCTION | SHELL_DECODED | SHELL_REMOTE);
        command->span =
            n ? (struct shell_span){words[0].span.start, words[n - 1].span.end} : outer->span;
        if (!certain && command->known == SHELL_LITERAL)
            command->known = SHELL_PARTLY;
    }
    return at;
}

void carry(const struct carried *c, const struct shell_word *words, size_t n, unsigned flags)
{
    if (n == 0)
        return;
    if (c->look->v[c->at].depth == SHELL_CARRIERS_MAX ||
        add_child(c->look, c->at, c->name, words, n, flags) == SHELL_NONE)
        flag(c, SHELL_HIDES);
}

static void carry_from(const struct carried *c, size_t at, unsigned flags)
{
    if (at < c->n)
        carry(c, c->words + at, c->n - at, flags);
}

static struct inner inner_of(const struct carried *c, struct shell_word word, unsigned flags)
{
    const unsigned inherited = SHELL_FUNCTION | SHELL_DECODED | SHELL_REMOTE;

    return (struct inner){.word = word,
                          .parent = c->at,
                          .within = c->name,
                          .flags = flags | (c->look->v[c->at].flags & inherited)};
}

void carry_text(const struct carried *c, struct shell_word word, bool bash, unsigned flags,
                const struct var *vars)
{
    struct inner inner = inner_of(c, word, flags);

    inner.bash = bash;
    inner.vars = vars;
    read_inner(c->look, &inner, c->outermost);
}

/* For this very shell, some time, when nothing is known of it. */
static void carry_later(const struct carried *c, struct shell_word word, unsigned flags)
{
    struct inner inner = inner_of(c, word, flags);

    inner.bash = c->look->about[c->at].bash;
    inner.lost = true;
    read_inner(c->look, &inner, c->outermost);
}

/* No byte of it means anything to a shell, and it stands there as it is. */
static bool is_as_written(const struct shell_word *word, struct str outermost)
{
    struct str text = word->text;

    if (word->known != SHELL_LITERAL || text.n == 0 || word->span.end > outermost.n ||
        word->span.end - word->span.start != text.n)
        return false;
    for (size_t i = 0; i < text.n; i++)
        if (is_kind((unsigned char)text.p[i], KIND_META | KIND_WORD | KIND_EXPAND | KIND_SPACE))
            return false;
    return memcmp(outermost.p + word->span.start, text.p, text.n) == 0;
}

/* A shell that reads them again, one blank apart as they are, finds the same words. */
static bool read_the_same(const struct carried *c, size_t from)
{
    for (size_t i = from; i < c->n && !c->look->about[c->at].same; i++) {
        size_t start = c->words[i].span.start;

        if (!is_as_written(&c->words[i], c->outermost) ||
            (i > from &&
             (start != c->words[i - 1].span.end + 1 || c->outermost.p[start - 1] != ' ')))
            return false;
    }
    return !memchr(c->words[from].text.p, '=', c->words[from].text.n);
}

/* Words with blanks between them, as one text. */
static struct shell_word joined(const struct carried *c, size_t from, bool same)
{
    struct shell_word word = {
        SHELL_LITERAL, {"", 0},
         c->look->v[c->at].span
    };
    size_t total = 1, n = 0;
    char *text;

    for (size_t i = from; i < c->n; i++)
        total += c->words[i].text.n + 1;
    if (!spend(c->look, total)) {
        word.known = SHELL_OPAQUE;
        return word;
    }
    word.span = (struct shell_span){c->words[from].span.start, c->words[c->n - 1].span.end};
    if (same) {
        word.text = (struct str){c->outermost.p + word.span.start, total - 2};
        return word;
    }
    text = arena_alloc(c->look->mem, total);
    for (size_t i = from; i < c->n; i++) {
        if (i > from)
            text[n++] = ' ';
        memcpy(text + n, c->words[i].text.p, c->words[i].text.n);
        n += c->words[i].text.n;
        if (c->words[i].known != SHELL_LITERAL)
            word.known = SHELL_PARTLY;
    }
    word.text = (struct str){text, n};
    return word;
}

/* For another shell, or for this very one, as it is then. */
static void carry_joined(const struct carried *c, size_t from, unsigned flags, bool here)
{
    const struct about *about = &c->look->about[c->at];
    bool same = read_the_same(c, from);
    struct inner inner = inner_of(c, joined(c, from, same), flags);

    if (same) {
        inner.words = c->words + from;
        inner.word_n = c->n - from;
    }
    if (here) {
        inner.bash = about->bash;
        inner.lost = about->lost;
        inner.vars = about->vars;
    }
    read_inner(c->look, &inner, c->outermost);
}

/* ---- options ---- */

bool listed(const char *list, const char *name, size_t n)
{
    for (const char *at = list ? strchr(list, ' ') : NULL; at; at = strchr(at, ' ')) {
        at++;
        if (strncmp(at, name, n) == 0 && at[n] == ' ')
            return true;
    }
    return false;
}

static bool has_letter(const char *letters, char c)
{
    return letters && c && strchr(letters, c);
}

static enum options_end long_option(const struct carrier *c, const char *word, size_t *at)
{
    size_t n = strcspn(word, "=");

    if (listed(c->long_stops, word, n))
        return OPTIONS_STOP;
    if (listed(c->long_values, word, n)) {
        *at += word[n] == '=' ? 1 : 2;
        return OPTIONS_DONE;
    }
    if (!listed(c->long_flags, word, n))
        return OPTIONS_UNKNOWN;
    (*at)++;
    return OPTIONS_DONE;
}

static enum options_end short_options(const struct carrier *c, const char *word, size_t *at)
{
    (*at)++;
    for (const char *letter = word + 1; *letter; letter++) {
        if (has_letter(c->stops, *letter))
            return OPTIONS_STOP;
        if (has_letter(c->values, *letter) || (c->text && *letter == c->text)) {
            if (letter[1] == '\0')
                (*at)++; /* the value is the next word */
            return OPTIONS_DONE;
        }
        if (!has_letter(c->flags, *letter))
            return OPTIONS_UNKNOWN;
    }
    return OPTIONS_DONE;
}

enum options_end skip_options(const struct carried *c, size_t *at)
{
    while (*at < c->n && is_option(c->words[*at].text)) {
        const char *word = c->words[*at].text.p;
        enum options_end end;

        if (c->words[*at].known != SHELL_LITERAL)
            return OPTIONS_UNKNOWN;
        if (strcmp(word, "--") == 0) {
            (*at)++;
            return OPTIONS_DONE;
        }
        end = word[1] == '-' ? long_option(c->carrier, word, at)
                             : short_options(c->carrier, word, at);
        if (end != OPTIONS_DONE)
            return end;
    }
    return OPTIONS_DONE;
}

void flag_uncertain(const struct carried *c, size_t at)
{
    for (size_t i = 1; i <= at && i < c->n; i++)
        if (c->words[i].known != SHELL_LITERAL)
            flag(c, SHELL_HIDES | SHELL_SCANS);
}

/* ---- kinds ---- */

/* -c TEXT, -lc TEXT, --command TEXT, anywhere. */
static void look_text_option(const struct carried *c)
{
    for (size_t i = 1; i < c->n; i++) {
        struct str word = c->words[i].text;
        bool short_one = word.n > 1 && word.p[0] == '-' && word.p[1] != '-' &&
                         word.p[word.n - 1] == c->carrier->text;

        if ((short_one || str_is(word, "--command")) && i + 1 < c->n)
            carry_text(c, c->words[++i], false, 0, NULL);
        else if (str_starts(word, "--command="))
            carry_text(c,
                       (struct shell_word){
                           c->words[i].known, {word.p + 10, word.n - 10},
                            c->words[i].span
            },
                       false, 0, NULL);
    }
}

/* env -S TEXT: words in one word. */
static bool look_split_option(const struct carried *c)
{
    for (size_t i = 1; i < c->n && is_option(c->words[i].text); i++) {
        struct str word = c->words[i].text;
        struct shell_word text = c->words[i];
        const char *letter = word.p[1] == '-' ? NULL : strchr(word.p, 'S');

        if (letter && letter[1])
            text.text = str_of(letter + 1);
        else if ((letter || str_is(word, "--split-string")) && i + 1 < c->n)
            text = c->words[i + 1];
        else if (str_starts(word, "--split-string="))
            text.text = (struct str){word.p + 15, word.n - 15};
        else
            continue;
        carry_text(c, text, false, 0, NULL);
        flag(c, SHELL_HIDES | SHELL_SCANS);
        return true;
    }
    return false;
}

/* Options whose values run, among the words before `end`: the others are those of what it runs. */
static void look_own_options(const struct carried *c, size_t end)
{
    struct carried head = *c;

    head.n = end < c->n ? end : c->n;
    if (c->carrier->runs)
        look_options(&head, c->carrier->runs, 1);
}

static void look_prefix(const struct carried *c)
{
    bool is_env = strcmp(c->name, "env") == 0;
    size_t at = 1;
    enum options_end end;

    if (is_env && look_split_option(c))
        return;
    end = skip_options(c, &at);
    look_own_options(c, end == OPTIONS_UNKNOWN ? c->n : at);
    if (c->carrier->hides)
        flag(c, SHELL_HIDES);
    if (end == OPTIONS_STOP) {
        if (strcmp(c->name, "command") == 0)
            flag(c, SHELL_LOOKUP);
        return;
    }
    if (end == OPTIONS_UNKNOWN) {
        flag(c, SHELL_HIDES | SHELL_SCANS);
        return;
    }
    if (c->carrier->assignments && at < c->n && str_is(c->words[at].text, "-"))
        at++;
    for (; c->carrier->assignments && at < c->n && strchr(c->words[at].text.p, '='); at++)
        if (is_steering_variable(c->words[at].text.p))
            flag(c, SHELL_HIDES);
    at += c->carrier->operands;
    flag_uncertain(c, at - (at > 0));
    if (c->carrier->more && !xargs_adds_operands(c, at))
        flag(c, SHELL_HIDES);
    carry_from(c, at, c->carrier->more ? SHELL_MORE : 0);
}

bool is_stream(struct str path)
{
    struct str part = {0};

    while (path.n) {
        part = str_cut(&path, '/');
        if (path.n && (str_is(part, "dev") || str_is(part, "proc")))
            return true;
    }
    return str_is(part, "stdin") || (part.n && strspn(part.p, "0123456789") == part.n);
}

static bool is_inside_file(const struct carried *c)
{
    for (size_t i = c->at; i != SHELL_NONE; i = c->look->v[i].parent)
        if (c->look->v[i].flags & SHELL_FILE)
            return true;
    return false;
}

/* A script is a file beside the working directory, not a name that is looked up. Its words are a
 * copy; of a file that a file is given to run they count, so that `. . . .` is not copied again and
 * again. */
void carry_script(const struct carried *c, size_t at)
{
    struct shell_word *words;

    flag(c, SHELL_RUNS_FILE);
    if (c->words[at].known != SHELL_LITERAL)
        flag(c, SHELL_HIDES);
    if (is_inside_file(c) && !spend(c->look, (c->n - at) * sizeof *words)) {
        flag(c, SHELL_HIDES);
        return;
    }
    words = arena_array(c->look->mem, struct shell_word, c->n - at);
    memcpy(words, c->words + at, (c->n - at) * sizeof *words);
    if (is_stream(words[0].text))
        flag(c, SHELL_HIDES);
    if (!strchr(words[0].text.p, '/'))
        words[0].text = str_of(arena_printf(c->look->mem, "./%s", words[0].text.p));
    carry(c, words, c->n - at, SHELL_FILE);
}

static bool is_exec_option(struct str word)
{
    return str_is(word, "-exec") || str_is(word, "-execdir") || str_is(word, "-ok") ||
           str_is(word, "-okdir");
}

static void look_find(const struct carried *c)
{
    for (size_t i = 1; i < c->n; i++) {
        size_t end = i + 1;

        if (str_is(c->words[i].text, "-delete"))
            flag(c, SHELL_DELETES);
        if (c->words[i].known == SHELL_OPAQUE ||
            (c->words[i].known == SHELL_PARTLY && strpbrk(c->words[i].text.p, "$`")))
            flag(c, SHELL_HIDES | SHELL_SCANS); /* -exe$X, or several words */
        if (!is_exec_option(c->words[i].text))
            continue;
        while (end < c->n && !str_is(c->words[end].text, ";") && !str_is(c->words[end].text, "+"))
            end++;
        if (!find_adds_operands(c, i + 1, end))
            flag(c, SHELL_HIDES); /* {} becomes names that nobody has seen */
        carry(c, c->words + i + 1, end - i - 1, SHELL_MORE);
        i = end;
    }
}

/* ssh -o ProxyCommand=TEXT and others run on this machine, and so does what a file of its own or a
 * library brings. */
static void flag_local_commands(const struct carried *c, size_t end)
{
    for (size_t i = 1; i < end && i < c->n; i++) {
        const char *word = c->words[i].text.p;

        if (strcasestr(word, "command") || strcasestr(word, "provider") || strcasestr(word, "exec"))
            flag(c, SHELL_HIDES | SHELL_SCANS);
        if (word[0] == '-' && strpbrk(word, "FI"))
            flag(c, SHELL_HIDES);
    }
}

/* eval, watch and ssh: the rest is one text. */
static void look_joins(const struct carried *c)
{
    bool is_eval = strcmp(c->name, "eval") == 0;
    bool remote = strcmp(c->name, "ssh") == 0;
    size_t at = 1;
    enum options_end end = skip_options(c, &at);

    if (c->carrier->hides)
        flag(c, SHELL_HIDES);
    if (end == OPTIONS_STOP)
        return;
    if (end == OPTIONS_UNKNOWN) {
        flag(c, SHELL_HIDES | SHELL_SCANS);
        return;
    }
    at += c->carrier->operands;
    if (remote && (end = skip_options(c, &at)) != OPTIONS_DONE)
        flag(c, SHELL_HIDES | SHELL_SCANS); /* they may also follow the name of the machine */
    flag_uncertain(c, at - (at > 0));
    if (remote) {
        flag_local_commands(c, at);
        look_own_options(c, at);
    }
    if (at < c->n)
        carry_joined(c, at, remote ? SHELL_REMOTE : 0, is_eval);
}

static void look_trap(const struct carried *c)
{
    size_t at = c->n > 1 && str_is(c->words[1].text, "--") ? 2 : 1;
    bool option = at == 1 && c->n > 1 && is_option(c->words[1].text);

    if (at + 1 < c->n && !str_is(c->words[at].text, "-") && !option)
        carry_later(c, c->words[at], 0);
    else if (at < c->n && c->words[at].known != SHELL_LITERAL)
        flag(c, SHELL_HIDES);
}

static void look_alias(const struct carried *c)
{
    for (size_t i = 1; i < c->n; i++) {
        struct shell_word word = c->words[i];
        struct str rest = word.text;
        struct str name = str_cut(&rest, '=');

        if (word.known == SHELL_OPAQUE)
            flag(c, SHELL_HIDES);
        if (name.n == word.text.n)
            continue;
        word.text = rest;
        carry_later(c, word, SHELL_MORE);
    }
}

static void look_applet(const struct carried *c)
{
    if (c->n > 1 && is_option(c->words[1].text))
        flag(c, SHELL_HIDES);
    else
        carry_from(c, 1, 0);
}

/* gdb -ex 'shell rm x' and '!rm x', and everything else it can do. */
static void look_opaque(const struct carried *c)
{
    flag(c, SHELL_HIDES | SHELL_SCANS);
    if (c->carrier->text)
        look_text_option(c);
    if (strcmp(c->name, "gdb") != 0)
        return;
    for (size_t i = 1; i + 1 < c->n; i++) {
        struct shell_word word = c->words[i + 1];

        if (!str_is(c->words[i].text, "-ex") && !str_is(c->words[i].text, "--eval-command"))
            continue;
        if (str_starts(word.text, "shell "))
            word.text = (struct str){word.text.p + 6, word.text.n - 6};
        else if (str_starts(word.text, "!"))
            word.text = (struct str){word.text.p + 1, word.text.n - 1};
        else
            continue;
        carry_text(c, word, false, 0, NULL);
    }
}

static void look_source(const struct carried *c)
{
    if (c->n > 1)
        carry_script(c, 1);
}

static void look_by_kind(const struct carried *c)
{
    switch (c->carrier->kind) {
    case CARRIER_OPAQUE:
        look_opaque(c);
        return;
    case CARRIER_PREFIX:
        if (c->carrier->text)
            look_text_option(c);
        look_prefix(c);
        return;
    case CARRIER_SHELL:
        look_shell(c);
        return;
    case CARRIER_CODE:
        look_code(c);
        return;
    case CARRIER_AWK:
        if (!awk_runs_nothing(c))
            look_opaque(c);
        return;
    case CARRIER_APPLET:
        look_applet(c);
        return;
    case CARRIER_FIND:
        look_find(c);
        return;
    case CARRIER_JOINS:
        look_joins(c);
        return;
    case CARRIER_TRAP:
        look_trap(c);
        return;
    case CARRIER_ALIAS:
        look_alias(c);
        return;
    case CARRIER_SOURCE:
        look_source(c);
        return;
    case CARRIER_OPTION:
        look_first(c);
        if (c->carrier->runs->look)
            c->carrier->runs->look(c);
        else
            look_options(c, c->carrier->runs, 1);
        return;
    }
}

/* As carrier_find says, which is mostly known from a command before. */
static const struct carrier *find_carrier(struct look *look, const char *name, uint64_t key)
{
    struct name_kept *place = name_place(look->carriers, key);

    if (!place)
        return carrier_find(name, key);
    if (place->key != key)
        *place = (struct name_kept){key, carrier_find(name, key), false};
    return place->found;
}

void unwrap(struct look *look, size_t at, struct str outermost)
{
    struct shell_command *command = &look->v[at];
    struct carried c = {look, at, NULL, NULL, command->words, command->word_n, outermost};
    uint64_t key;

    if (c.n == 0)
        return;
    if (c.words[0].known == SHELL_OPAQUE) {
        command->flags |= SHELL_HIDES | SHELL_SCANS;
        return;
    }
    c.name = shell_base(c.words[0].text.p);
    key = name_key(c.name);
    c.carrier = find_carrier(look, c.name, key);
    look_builtin(&c, key);
    if (!c.carrier)
        return;
    if (c.carrier->kind != CARRIER_OPAQUE && c.carrier->kind != CARRIER_CODE)
        c.name = c.carrier->row.name; /* in small letters */
    if (c.carrier->kind != CARRIER_OPTION)
        command->carrier = c.name;
    look_by_kind(&c);
}
