/* SPDX-License-Identifier: Apache-2.0 */

/* Which files a command works on, as far as its words tell: every word, and every piece of one that
 * could be a path, is looked for where the command would find it, in whatever somebody can change:
 * folders of the user, and in a kept sandbox all that is not the image. So are the words of what
 * carriers and shells among them would run, as a shell reads them. What is there is bound by
 * content. Too many are found rather than too few: a file that only happens to be called like a
 * word costs another question when it changes. So are files that the caller's variables name. What
 * runs without walls is shown the machine itself. */

#include "flow/approve/operands.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/shell/shell.h"

#define OPERANDS_MAX 64
#define LOOKS_MAX 16384
#define BASES_MAX 16
#define CLUSTER_MAX 4 /* letters of an option before the name that is joined to it */
#define STRETCHES_MAX 16

/* ---- the words ---- */

struct look {
    struct operand_view *view;
    struct arena *mem;
    const char *workdir;
    struct operand *of;
    struct operands *out;
    struct operand_bounds left;
    unsigned looks;
    bool files_only; /* folders that are named are places to look in, not what is worked on */
    /* Folders nobody can change, above some that somebody can: a shell may go there first. */
    const char *bases[BASES_MAX];
    size_t base_n;
};

static bool is_known(const struct look *look, const char *path)
{
    for (size_t i = 0; i < look->out->n; i++)
        if (strcmp(look->of[i].path, path) == 0)
            return true;
    return false;
}

static void miss(struct look *look, const char *path, const char *why)
{
    if (!look->out->unbound)
        look->out->unbound = arena_printf(look->mem, "%s %s", path, why);
}

/* NULL: it is there already, or there is no room for it, which is told. */
static struct operand *add_one(struct look *look, const char *path)
{
    struct operand *one;

    if (is_known(look, path))
        return NULL;
    if (look->out->n == OPERANDS_MAX) {
        miss(look, path, "is one of more files than are bound");
        return NULL;
    }
    one = &look->of[look->out->n++];
    *one = (struct operand){.path = arena_text(look->mem, str_of(path))};
    return one;
}

static void add(struct look *look, struct operand_way *way)
{
    const char *path = *way->path ? way->path : "/";
    bool is_left_out = look->files_only && !way->why && !S_ISREG(way->st.st_mode);
    struct operand *one = is_left_out ? NULL : add_one(look, path);

    if (!one)
        return;
    if (way->why)
        one->why = arena_text(look->mem, str_of(way->why));
    else
        operand_hash(look->mem, way->fd, &way->st, &look->left, one);
    if (one->why)
        miss(look, path, one->why);
}

/* What a sandbox wrote itself, opened by somebody inside; paths are as written then. */
static void look_inside(struct look *look, const char *path)
{
    const struct operand_reader *reader = look->view->reader;
    AUTO_FD int fd = -1;
    struct operand *one;
    struct stat st;
    struct err err;
    int got = reader->open(reader->context, path, &fd, &err);

    one = got == 0 || (got > 0 && fd < 0 && look->files_only) ? NULL : add_one(look, path);
    if (!one)
        return;
    if (got < 0)
        one->why = arena_text(look->mem, str_of(err.text));
    else if (fd < 0 || fstat(fd, &st) < 0)
        one->why = "is no file, and only root can look at folders of a sandbox";
    else
        operand_hash(look->mem, fd, &st, &look->left, one);
    if (one->why)
        miss(look, path, one->why);
}

static void add_base(struct look *look, const char *path)
{
    for (size_t i = 0; i < look->base_n; i++)
        if (strcmp(look->bases[i], path) == 0)
            return;
    if (look->base_n == BASES_MAX)
        miss(look, path, "is one of more folders than are looked in");
    else
        look->bases[look->base_n++] = arena_text(look->mem, str_of(path));
}

static void look_at(struct look *look, const char *path)
{
    const struct operand_place *place = operand_place_of(look->view, path);
    struct operand_way way;

    if (look->looks++ >= LOOKS_MAX) {
        miss(look, path, "stands behind more words than are looked at");
        return;
    }
    if (look->view->reader && place && place->is_open && place->fd < 0) {
        look_inside(look, path);
        return;
    }
    operand_go(look->view, path, &way);
    if (way.fd >= 0 || way.why)
        add(look, &way);
    else if (operand_place_below(look->view, way.path))
        add_base(look, *way.path ? way.path : "/");
    if (way.fd >= 0)
        (void)close(way.fd);
}

/* No file is called that: the command would not find one either. */
static bool is_no_name(struct str piece)
{
    struct str rest = piece;

    if (piece.n == 0 || piece.n >= PATH_BYTES_MAX)
        return true;
    while (rest.n)
        if (str_cut(&rest, '/').n > NAME_MAX)
            return true;
    return false;
}

static void look_below(struct look *look, const char *folder, struct str piece)
{
    char path[2 * PATH_BYTES_MAX];
    const char *slash = *folder && strcmp(folder, "/") != 0 ? "/" : "";

    (void)snprintf(path, sizeof path, "%s%s%.*s", folder, slash, (int)piece.n, piece.p);
    look_at(look, path);
}

static void look_for(struct look *look, struct str piece)
{
    bool is_whole = piece.n && piece.p[0] == '/';

    if (is_no_name(piece) || look->looks > LOOKS_MAX)
        return;
    look_below(look, is_whole ? "" : look->workdir, piece);
    for (size_t i = 0; i < look->base_n && !is_whole; i++)
        look_below(look, look->bases[i], piece);
}

/* What can stand between names can also be part of one: of few pieces every stretch is looked for,
 * of many each one, and all that stands from its beginning on. */
static void look_for_pieces(struct look *look, struct str word)
{
    size_t between = 0;
    bool has_few;

    for (size_t i = 0; i < word.n; i++)
        between += strchr(OPERAND_BETWEEN, word.p[i]) != NULL;
    has_few = between <= STRETCHES_MAX;
    for (size_t from = 0; from <= word.n; from += strcspn(word.p + from, OPERAND_BETWEEN) + 1) {
        size_t to = from;

        do {
            to += strcspn(word.p + to, OPERAND_BETWEEN);
            look_for(look, (struct str){word.p + from, to - from});
        } while (has_few && to++ < word.n);
        if (!has_few)
            look_for(look, (struct str){word.p + from, word.n - from});
    }
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void look_for_word(struct look *look, const char *word)
{
    size_t n = strlen(word);

    look_for(look, str_of(word));
    /* -fNAME, -xzfNAME */
    for (size_t i = 1; word[0] == '-' && i <= CLUSTER_MAX && is_letter(word[i]); i++)
        look_for(look, str_of(word + i + 1));
    if (strcspn(word, OPERAND_BETWEEN) < n)
        look_for_pieces(look, (struct str){word, n});
}

/* ---- all of them ---- */

/* A variable can name what a program loads or runs: LD_PRELOAD, BASH_ENV, GIT_SSH_COMMAND. */
static void look_for_value(struct look *look, const char *variable)
{
    const char *equals = strchr(variable, '=');

    if (equals)
        look_for_word(look, equals + 1);
}

/* One that nobody can change is of the image, however it is called. */
static void look_in_folder(struct look *look, struct str folder, const char *name)
{
    const char *path = arena_printf(look->mem, STR_FMT "/%s", STR_ARG(folder), name);
    const struct operand_place *place = path[0] == '/' ? operand_place_of(look->view, path) : NULL;

    if (path[0] != '/' || (place && place->is_open) || look->view->root_fd >= 0)
        look_for(look, str_of(path));
}

/* A program without a slash is looked for along the path, as the sandbox will. */
static void look_for_program(struct look *look, const struct run *run, const char *name)
{
    if (strchr(name, '/') || look->looks > LOOKS_MAX)
        return;
    for (size_t i = 0; i < run->plan.env.n; i++) {
        struct str rest = str_of(run->plan.env.v[i]);

        if (!str_starts(rest, "PATH="))
            continue;
        (void)str_cut(&rest, '=');
        while (rest.n)
            look_in_folder(look, str_cut(&rest, ':'), name);
    }
}

/* All words with a blank between them: what spans count in. */
static struct str join(struct arena *mem, struct words words)
{
    size_t total = 1, at = 0;
    char *text;

    for (size_t i = 0; i < words.n; i++)
        total += strlen(words.v[i]) + 1;
    text = arena_alloc(mem, total);
    for (size_t i = 0; i < words.n; i++) {
        size_t n = strlen(words.v[i]);

        if (i)
            text[at++] = ' ';
        memcpy(text + at, words.v[i], n);
        at += n;
    }
    return (struct str){text, at};
}

/* A word that is read as it is written was looked for with the text around it, unless a piece
 * would end inside of it. */
static void look_for_read(struct look *look, struct str joined, const struct shell_word *word)
{
    struct str as_written = {joined.p + word->span.start, word->span.end - word->span.start};

    if (word->span.end <= joined.n && str_eq(as_written, word->text) &&
        strcspn(word->text.p, OPERAND_BETWEEN) == word->text.n)
        return;
    look_for_word(look, word->text.p);
}

static void look_for_command(struct look *look, const struct run *run, struct str joined,
                             const struct shell_command *command)
{
    const char *home = operand_value(run, STR_LIT("HOME"));

    if (command->word_n)
        look_for_program(look, run, command->words[0].text.p);
    if (command->word_n == 1 && str_is(command->words[0].text, "cd") && home)
        add_base(look, home);
    for (size_t i = 0; i < command->word_n && command->depth; i++)
        look_for_read(look, joined, &command->words[i]);
    for (size_t i = 0; i < command->assignment_n; i++)
        look_for_read(look, joined, &command->assignments[i]);
    for (size_t i = 0; i < command->redirect_n; i++)
        look_for_read(look, joined, &command->redirects[i].target);
}

/* The words, and what they carry: quotes, backslashes and what is decoded on the way to a shell
 * hide no file. */
static void look_for_commands(struct look *look, const struct run *run, struct words argv)
{
    AUTO_ARENA struct arena mem = ARENA(SHELL_MEMORY_MAX);
    struct str joined = join(&mem, argv);
    struct shell_script script;

    shell_look(&mem, argv.v, argv.n, &script);
    for (size_t i = 0; i < script.n && look->looks <= LOOKS_MAX; i++)
        look_for_command(look, run, joined, &script.commands[i]);
}

static void look_for_argv(struct look *look, const struct run *run, struct words argv)
{
    /* Without walls, the program itself is in the posture. */
    for (size_t i = look->view->is_host; i < argv.n; i++)
        look_for_word(look, argv.v[i]);
    look_for_commands(look, run, argv);
}

static void look_for_all(struct look *look, const struct run *run)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    struct words filled;

    look->files_only = false;
    look_for_argv(look, run, run->action.argv);
    switch (operand_fill(&mem, run, &filled)) {
    case 0:
        break;
    case 1:
        look_for_argv(look, run, filled);
        break;
    default:
        miss(look, "what its variables hold", "is more than is looked at");
    }
    look->files_only = true;
    for (size_t i = 0; i < run->action.env.n; i++)
        look_for_value(look, run->action.env.v[i]);
}

int operand_view_look(struct operand_view *view, struct arena *mem, const struct run *run,
                      struct operands *out, struct err *err)
{
    struct look look = {
        .view = view,
        .mem = mem,
        .workdir = operand_workdir(run),
        .of = arena_array(mem, struct operand, OPERANDS_MAX),
        .out = out,
        .left = OPERAND_BOUNDS,
    };

    (void)err;
    *out = (struct operands){.of = look.of};
    if (!operand_has_place(view))
        return 0;
    view->workdir = look.workdir;
    look_for_all(&look, run);
    if (look.base_n)
        look_for_all(&look, run); /* once more, below each of them */
    return 0;
}

/* ---- what is other than before ---- */

static const struct operand *operand_at(const struct operands *list, const char *path)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->of[i].path, path) == 0)
            return &list->of[i];
    return NULL;
}

/* Those of a that b has not, or not like that. */
static const char *differing(struct arena *mem, const struct operands *a, const struct operands *b,
                             bool also_changed, const char *so_far)
{
    for (size_t i = 0; i < a->n; i++) {
        const struct operand *other = operand_at(b, a->of[i].path);

        if (other && (!also_changed || strcmp(other->hash, a->of[i].hash) == 0))
            continue;
        so_far = arena_printf(mem, "%s%s%.200s", so_far ? so_far : "", so_far ? ", " : "",
                              a->of[i].path);
    }
    return so_far;
}

const char *operands_differ(struct arena *mem, const struct operands *a, const struct operands *b)
{
    return differing(mem, b, a, false, differing(mem, a, b, true, NULL));
}
