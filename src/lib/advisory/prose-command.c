/* SPDX-License-Identifier: Apache-2.0 */

/* Commands in plain words.
 *
 * A banned name counts where what follows it has the shape of an operand: "rm -rf build" does, "git
 * is a tool" does not. Where commands stand anyway - alone on a line, behind "run", behind "&&" or
 * "sudo" - any word counts that no sentence goes on with: "rm notes" does, "rm is gone" does not.
 */

#include "lib/advisory/advisory-private.h"

#include "lib/base/attrs.h"
#include "lib/base/limits.h"

#include <string.h>

#define TAIL_MAX 16      /* words of a command */
#define LINE_WORDS_MAX 6 /* of a line that is one command */
#define NAME_BYTES_MAX 32

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_wrap(char c)
{
    return strchr("\"'`()[]{}<>,;!?", c) != NULL;
}

/* The next word, without what prose puts around words. */
bool token_next(struct str s, size_t *from, struct token *out)
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

struct str token_str(struct str s, struct token t)
{
    return (struct str){s.p + t.start, t.end - t.start};
}

/* ---- what follows a name ---- */

/* A line under a heading is none. */
static bool is_option(struct str word)
{
    return word.n >= 2 && word.p[0] == '-' &&
           (word.p[1] != '-' ? word.p[1] != '\0' : word.n > 2 && word.p[2] != '-');
}

/* if=/dev/zero */
static bool is_assignment(struct str word)
{
    return word.n && is_letter(word.p[0]) && memchr(word.p, '=', word.n);
}

static bool has_dot_inside(struct str word)
{
    for (size_t i = 0; i + 1 < word.n; i++)
        if (word.p[i] == '.' && word.p[i + 1] != '.')
            return true;
    return false;
}

/* An option, a path, a pattern, a mode, an address, and what a shell makes of more than one. */
static bool is_operand(struct str word)
{
    bool digits = word.n >= 3;

    for (size_t i = 0; i < word.n; i++) {
        digits &= word.p[i] >= '0' && word.p[i] <= '7';
        if (word.p[i] && strchr("/*+=|$", word.p[i]))
            return true;
    }
    return word.n && (is_option(word) || digits || has_dot_inside(word));
}

static bool has_word(const char *list, struct str word)
{
    size_t n = strlen(list);

    for (size_t i = 0; word.n && i + word.n < n; i++)
        if (list[i] == ' ' && strncmp(list + i + 1, word.p, word.n) == 0 &&
            list[i + 1 + word.n] == ' ')
            return true;
    return false;
}

/* What a sentence goes on with behind the name of a program. */
static const char sentence_words[] =
    " about access after again all already also always am an and any are as at be because been "
    "before being both but by can command commands copies could deletes did do does during each "
    "either else every flag flags for from function functions had has have here how if in instead "
    "into is it itself its just may means might moves must my need needs never no nor not of off on "
    "only onto operation operations option options or our over password permission permissions "
    "privilege privileges program programs removes rights shall should since so some stands syntax "
    "than that the their them then there these they this those to tool tools under unless until up "
    "used users uses using utility via was were what when where whether which while who why will "
    "with within without work works would you your ";

/* Any word of a command, where there is one. */
static bool is_plain_operand(struct str word)
{
    if (word.n == 0 ||
        !(is_letter(word.p[0]) || is_digit(word.p[0]) || strchr("_.~\"'", word.p[0])))
        return false;
    return !has_word(sentence_words, word) && !(word.n > 4 && str_ends(word, "ly"));
}

/* ---- names ---- */

/* " a b ": with one of `next` behind it a name is a command anywhere (NULL: with any operand), with
 * one of `third` when one more operand follows, with one of `lone` where commands stand. */
/* clang-format off */
static const struct named {
    const char *name;
    const char *next;
    const char *third;
    const char *lone;
} named[] = {
    {.name = "rm"}, {.name = "mv"}, {.name = "cp"}, {.name = "chmod"}, {.name = "chown"},
    {.name = "curl"}, {.name = "wget"},
    {"sudo",
     " rm mv cp apt apt-get chmod chown systemctl su bash sh docker git make reboot mount ls cat "
     "tee vi vim nano kill pkill chroot service journalctl dd mkfs fdisk useradd usermod passwd dnf "
     "yum pacman snap npm pip pip3 python python3 node crontab iptables ufw modprobe shutdown "
     "poweroff halt ln curl wget find sed ",
     NULL, NULL},
    {"apt", " install remove purge update upgrade autoremove full-upgrade ", NULL,
     " list search show clean autoclean policy "},
    {"apt-get", " install remove purge update upgrade autoremove dist-upgrade ", NULL,
     " clean autoclean source download check "},
    {"brew", " install uninstall upgrade tap reinstall ", NULL,
     " list search info update doctor cleanup services link unlink "},
    {"git", " push pull clone reset rebase fetch add checkout clean restore stash cherry-pick ",
     " commit branch tag log diff status config remote merge init revert rm ",
     " show blame bisect reflog grep mv apply submodule worktree gc switch "},
    {"docker", " run exec rm rmi pull push stop kill prune compose ",
     " build start image container ",
     " ps images inspect logs login logout network volume system info restart top tag save load "},
    {"kubectl", " apply delete exec get create scale rollout drain cordon edit patch run ", NULL,
     " logs describe top config cluster-info port-forward cp label annotate expose taint "},
};
/* clang-format on */

/* The name a word ends with as a shell reads it: without quotes and backslashes, without its
 * folder, and without what is glued before it: "x;rm", "**rm". */
struct name {
    char text[NAME_BYTES_MAX + 1];
    size_t n;
    size_t at;      /* where it begins, its folder with it */
    bool is_behind; /* something that ends a command is glued before it */
};

static void read_name(struct str s, struct token t, struct name *out)
{
    *out = (struct name){.at = t.start};
    for (size_t i = t.start; i < t.end; i++) {
        char c = s.p[i];

        if (strchr("\\'\"", c))
            continue;
        if (c == '/' || (c == '_' && out->n == 0)) {
            out->n = 0;
        } else if (strchr(";|&=<>(){}[]`*,:", c)) {
            out->n = 0;
            out->at = i + 1;
            out->is_behind = c == ';' || c == '|' || c == '&';
        } else if (out->n < NAME_BYTES_MAX) {
            out->text[out->n++] = c;
        } else {
            out->n = NAME_BYTES_MAX + 1; /* nobody's */
        }
    }
    out->n = out->n > NAME_BYTES_MAX ? 0 : out->n;
    out->text[out->n] = '\0';
}

/* python -c, python3.12 -Ic, node -e: "python -m venv" is no inline code. */
static bool is_inline_code(const struct name *name, struct str second)
{
    const char *rest = name->text + strlen("python");

    if (strcmp(name->text, "node") == 0 || strcmp(name->text, "nodejs") == 0)
        return has_word(" -e --eval -p -pe --print ", second) || str_starts(second, "--eval=");
    if (strncmp(name->text, "python", strlen("python")) != 0 ||
        rest[strspn(rest, "0123456789.")] != '\0')
        return false;
    return second.n >= 2 && second.p[0] == '-' && is_letter(second.p[1]) &&
           second.p[second.n - 1] == 'c';
}

/* ---- where commands stand ---- */

static bool is_list_mark(char c)
{
    return c == ' ' || c == '\t' || is_digit(c) || strchr("({.)>#*-", c) != NULL;
}

/* A line of few words that is no sentence. */
static bool is_own_line(struct str s, const struct name *name)
{
    size_t i = name->at, from, end;
    struct str line = s;
    struct token t;
    unsigned words = 0;
    const char *stop;

    while (i > 0 && s.p[i - 1] && is_list_mark(s.p[i - 1]))
        i--;
    if (i > 0 && s.p[i - 1] != '\n')
        return false;
    /* Once a line: it may be as long as the text. */
    stop = memchr(s.p + name->at, '\n', s.n - name->at);
    line.n = end = stop ? (size_t)(stop - s.p) : s.n;
    from = name->at;
    while (words <= LINE_WORDS_MAX && token_next(line, &from, &t))
        words++;
    while (end > name->at && (is_space(s.p[end - 1]) || strchr("*_\"'", s.p[end - 1])))
        end--;
    return words <= LINE_WORDS_MAX &&
           !(end > name->at + 1 && strchr(".!?:,;", s.p[end - 1]) && is_letter(s.p[end - 2]));
}

static bool stands_as_command(struct str s, struct token before, const struct name *name)
{
    static const char heads[] =
        " && || | & sudo doas xargs env nohup time exec command builtin eval -exec -execdir -ok -c "
        "-lc -ic -ec run execute type enter invoke issue ";

    if (name->is_behind)
        return true;
    for (size_t i = before.end; before.end && i < name->at; i++)
        if (s.p[i] == ';' || s.p[i] == '|' || s.p[i] == '&')
            return true;
    return has_word(heads, token_str(s, before)) || is_own_line(s, name);
}

/* "rm, mv and cp": the sentence goes on. */
static bool has_comma(struct str s, struct token t)
{
    return t.end < s.n && s.p[t.end] && strchr(",:;.!?", s.p[t.end]);
}

/* The name alone is a command: its operands come from elsewhere. */
static bool takes_operands(struct str before)
{
    return has_word(" xargs -exec -execdir -ok ", before);
}

/* ---- the whole ---- */

/* *wants_third: only with one more operand behind the second word. */
static bool is_called(struct str s, struct token before, struct token t, const struct name *name,
                      const struct named *as, struct str second, bool *wants_third)
{
    *wants_third = false;
    if (is_option(second) || takes_operands(token_str(s, before)) ||
        (as->next ? has_word(as->next, second) : is_operand(second)))
        return true;
    if (has_comma(s, t) || !stands_as_command(s, before, name))
        return *wants_third = as->third && has_word(as->third, second);
    if (as->lone || as->third)
        return (as->lone && has_word(as->lone, second)) ||
               (as->third && has_word(as->third, second));
    return is_plain_operand(second);
}

static const struct named *find_named(struct str name)
{
    for (size_t i = 0; i < COUNT(named); i++)
        if (str_is(name, named[i].name))
            return &named[i];
    return NULL;
}

/* The words behind the second one that belong to it; whether there are any. */
static bool take_tail(struct str s, size_t from, size_t *end)
{
    struct token t;
    unsigned n = 0;

    while (n < TAIL_MAX && token_next(s, &from, &t) && is_operand(token_str(s, t))) {
        *end = t.end;
        n++;
    }
    return n > 0;
}

/* What it is printed in is not its: "**rm -rf x**", "<code>rm -rf x</code>". */
static size_t end_within(struct str s, size_t start, size_t end)
{
    const char *tag = memmem(s.p + start, end - start, "</", 2);

    end = tag ? (size_t)(tag - s.p) : end;
    while (start > 0 && s.p[start - 1] == '*' && end > start && s.p[end - 1] == '*')
        end--;
    return end;
}

bool prose_command(struct str s, struct token before, struct token t, size_t from, bool strict_seed,
                   struct prose_command *out)
{
    struct token next = {t.end, t.end};
    struct prose_command found = {0};
    bool wants_third = false, is_it;
    const struct named *as;
    struct name name;
    struct str second;

    read_name(s, t, &name);
    if (name.n == 0)
        return false;
    (void)token_next(s, &from, &next);
    second = token_str(s, next);
    as = find_named((struct str){name.text, name.n});
    found.rule = advisory_command_rule((struct str){name.text, name.n}, strict_seed, &found.about);
    if (is_inline_code(&name, second)) {
        found.rule = "inline_code";
        found.about = "It would run code that is given on the command line.";
        is_it = true;
    } else {
        /* What has no row is called otherwise, or is another program for the same. */
        is_it = found.rule && (as ? is_called(s, before, t, &name, as, second, &wants_third)
                                  : is_option(second) || is_assignment(second));
    }
    found.start = name.at;
    found.end = is_operand(second) || !takes_operands(token_str(s, before)) ? next.end : t.end;
    if (!is_it || (!take_tail(s, from, &found.end) && wants_third))
        return false;
    found.end = end_within(s, found.start, found.end);
    *out = found;
    return true;
}
