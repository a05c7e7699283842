/* SPDX-License-Identifier: Apache-2.0 */

/* From argv to a handler: which command, its options, and the end of the program. */

#include "surface/cli/commands.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/limits.h"

#define PATH_WORDS_MAX 2
#define PATIENCE_S 1

void invocation_init(struct invocation *inv, FILE *out, FILE *err)
{
    *inv = (struct invocation){
        .program = "brig",
        .out = out,
        .err = err,
        .mem = ARENA(RUN_MEMORY_MAX),
    };
}

void invocation_done(struct invocation *inv)
{
    arena_done(&inv->mem);
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* Known before anything is parsed, so that a parse error can answer in the right form. */
static bool has_flag_before_dashes(const char *const *words, size_t n, const char *flag)
{
    for (size_t i = 0; i < n && strcmp(words[i], "--") != 0; i++)
        if (strcmp(words[i], flag) == 0)
            return true;
    return false;
}

static void set_program(struct invocation *inv, const char *argv0)
{
    const char *slash = argv0 ? strrchr(argv0, '/') : NULL;
    const char *name = slash ? slash + 1 : argv0;

    inv->as_helm = name && strcmp(name, "helm") == 0;
    inv->program = inv->as_helm ? "helm" : "brig";
}

static int refuse_word(struct invocation *inv, const struct command_group *group, const char *word)
{
    struct nearest nearest = {.wanted = word};
    const char *in = group ? group->name : NULL;
    struct err err;

    for (size_t i = 0; i < command_n; i++) {
        const char *candidate = in ? command_in_group(commands[i], in) : commands[i]->path;

        if (candidate && !strchr(candidate, ' '))
            nearest_try(&nearest, candidate);
    }
    for (size_t i = 0; !in && i < command_group_n; i++)
        nearest_try(&nearest, command_groups[i].name);
    if (nearest_found(&nearest))
        (void)err_set(&err, ERR_INVALID, "unknown command \"%s%s%s\"; did you mean \"%s%s%s\"?",
                      in ? in : "", in ? " " : "", word, in ? in : "", in ? " " : "",
                      nearest_found(&nearest));
    else
        (void)err_set(&err, ERR_INVALID, "unknown command \"%s%s%s\"; \"%s --help\" lists them all",
                      in ? in : "", in ? " " : "", word, inv->program);
    return cli_error(inv, &err);
}

static int run_group(struct invocation *inv, const struct command_group *group,
                     const char *const *words, size_t n)
{
    struct err err;

    if (n && is_help(words[0])) {
        help_group(inv, group, inv->out);
        return 0;
    }
    if (n && words[0][0] != '-')
        return refuse_word(inv, group, words[0]);
    (void)err_set(&err, ERR_INVALID, "\"%s %s\" needs a command behind it", inv->program,
                  group->name);
    if (!inv->json)
        help_group(inv, group, inv->err);
    return cli_error(inv, &err);
}

/* ---- what takes long ---- */

static char patience_text[128];

static void on_patience(int number)
{
    int before = errno;

    (void)number;
    (void)!write(STDERR_FILENO, patience_text, strlen(patience_text)); /* it is only for people */
    errno = before;
}

/* Who looks at a terminal hears after a second what it is that takes so long. */
static void patience_begin(const struct invocation *inv)
{
    const struct sigaction action = {.sa_handler = on_patience, .sa_flags = SA_RESTART};
    const char *what = inv->command->takes_time;

    if (!what || inv->json || fileno(inv->err) != STDERR_FILENO || !isatty(STDERR_FILENO))
        return;
    (void)snprintf(patience_text, sizeof patience_text, "%s: still %s…\n", inv->program, what);
    if (sigaction(SIGALRM, &action, NULL) == 0)
        (void)alarm(PATIENCE_S);
}

void patience_end(void)
{
    (void)alarm(0);
}

static int run_command(struct invocation *inv, const struct command *command,
                       const char *const *words, size_t n)
{
    struct err err;
    int status;

    inv->command = command;
    if (has_flag_before_dashes(words, n, "--help") || has_flag_before_dashes(words, n, "-h")) {
        help_command(inv, command, inv->out);
        return 0;
    }
    if (parse_options(inv, words, n, &err) < 0)
        return cli_error(inv, &err);
    if (command_option(command, "--env"))
        env_say_secrets(inv);
    patience_begin(inv);
    status = command_run(inv);
    patience_end();
    return status;
}

/* The longest path wins: "receipts verify" before "receipts". */
static const struct command *command_at(struct invocation *inv, const char *const *words, size_t n,
                                        size_t *out_used)
{
    for (size_t used = n < PATH_WORDS_MAX ? n : PATH_WORDS_MAX; used > 0; used--) {
        const char *path =
            used == 1 ? words[0] : arena_printf(&inv->mem, "%s %s", words[0], words[1]);
        const struct command *command = command_find(path);

        if (command) {
            *out_used = used;
            return command;
        }
    }
    return NULL;
}

static int run_words(struct invocation *inv, const char *const *words, size_t n)
{
    const struct command_group *group;
    const struct command *command;
    size_t used = 0;
    struct err err;

    if (n == 0) {
        help_overview(inv, inv->err);
        return cli_status(inv, ERR_INVALID);
    }
    if (is_help(words[0])) {
        help_overview(inv, inv->out);
        return 0;
    }
    if (strcmp(words[0], "--version") == 0)
        return run_command(inv, command_find("version"), words + 1, n - 1);
    if (words[0][0] == '-') {
        (void)err_set(&err, ERR_INVALID, "option %s stands in front of the command: %s COMMAND %s",
                      words[0], inv->program, words[0]);
        return cli_error(inv, &err);
    }
    command = command_at(inv, words, n, &used);
    if (command)
        return run_command(inv, command, words + used, n - used);
    group = command_group_find(words[0]);
    if (group)
        return run_group(inv, group, words + 1, n - 1);
    return refuse_word(inv, NULL, words[0]);
}

int cli_run(struct invocation *inv, int argc, const char *const *argv)
{
    size_t n = argc > 1 ? (size_t)argc - 1 : 0;

    set_program(inv, argc > 0 ? argv[0] : NULL);
    inv->json = has_flag_before_dashes(argv + 1, n, "--json");
    return run_words(inv, argv + (argc > 0), n);
}

int cli_main(int argc, char **argv)
{
    struct invocation inv;
    int status;

    invocation_init(&inv, stdout, stderr);
    status = cli_run(&inv, argc, (const char *const *)argv);
    /* A result that did not arrive is no result: a full disk behind "> file" shows here. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        struct err err;

        inv.json = false;
        (void)err_os(&err, "writing to standard output");
        status = cli_error(&inv, &err);
    }
    invocation_done(&inv);
    return status;
}
