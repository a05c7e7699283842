/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/cli/cli.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "lib/base/io.h"
#include "lib/json/json.h"
#include "surface/cli/commands.h"
#include "test.h"

#define WORDS_MAX 24

/* One call with everything it printed. */
struct call {
    struct invocation inv;
    char *out;
    char *err;
    size_t out_n;
    size_t err_n;
    int status;
};

static void call_run(struct call *call, const char *const *words)
{
    const char *argv[WORDS_MAX + 1] = {0};
    int argc = 0;
    FILE *out = open_memstream(&call->out, &call->out_n);
    FILE *err = open_memstream(&call->err, &call->err_n);

    while (words[argc] && argc < WORDS_MAX) {
        argv[argc] = words[argc];
        argc++;
    }
    invocation_init(&call->inv, out, err);
    call->status = cli_run(&call->inv, argc, argv);
    (void)fclose(out);
    (void)fclose(err);
}

static void call_done(struct call *call)
{
    invocation_done(&call->inv);
    free(call->out);
    free(call->err);
}

/* Cuts "brig version --json" into words; no quoting. */
static void call_line(struct call *call, const char *line)
{
    const char *words[WORDS_MAX + 1] = {0};
    AUTO_FREE char *copy = strdup(line);
    size_t n = 0;

    for (char *word = strtok(copy, " "); word && n < WORDS_MAX; word = strtok(NULL, " "))
        words[n++] = word;
    call_run(call, words);
}

/* A command of the test's own, so that the parser is tested without any handler. */
static const struct cli_option sample_options[] = {
    {"--name",         "TEXT", VALUE_TEXT,     false, false, NULL,     "a text",     NULL},
    {"--env",          "K=V",  VALUE_TEXT,     true,  false, NULL,     "repeatable", NULL},
    {"--may-be-empty", "TEXT", VALUE_TEXT,     false, true,  NULL,     "or none",    NULL},
    {"--mode",         "M",    VALUE_CHOICE,   false, false, "on off", "a choice",   NULL},
    {"--size",         "SIZE", VALUE_SIZE,     false, false, NULL,     "a size",     NULL},
    {"--wait",         "DUR",  VALUE_DURATION, false, false, NULL,     "a duration", NULL},
    {"--cpu",          "N",    VALUE_CPUS,     false, false, NULL,     "processors", NULL},
    {"--count",        "N",    VALUE_COUNT,    false, false, NULL,     "a number",   NULL},
    {"--quiet",        NULL,   VALUE_NONE,     false, false, NULL,     "a flag",     "-q"},
    {NULL,             NULL,   VALUE_NONE,     false, false, NULL,     NULL,         NULL},
};

static const struct command sample = {
    .path = "sample",
    .operands = "FILE...",
    .operand_min = 1,
    .operand_max = 2,
    .summary = "sample",
    .help = "",
    .options = sample_options,
};

static const struct command runner = {
    .path = "runner",
    .operands = "-- CMD [ARG...]",
    .operand_min = 1,
    .operand_max = SIZE_MAX,
    .takes_command = true,
    .summary = "runner",
    .help = "",
    .options = sample_options,
};

static int parse(struct invocation *inv, const struct command *command, const char *const *words,
                 struct err *err)
{
    size_t n = 0;

    while (words[n])
        n++;
    invocation_init(inv, stdout, stderr);
    inv->command = command;
    return parse_options(inv, words, n, err);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(options_come_in_both_spellings_and_between_operands)
{
    struct invocation inv;
    struct err err;

    CHECK_INT(parse(&inv, &sample,
                    WORDS("a", "--name=x=y", "--size", "2K", "--quiet", "b", "--cpu", "0.5",
                          "--wait", "3s", "--count", "7", "--mode", "off"),
                    &err),
              0);
    CHECK_TEXT(option_text(&inv, "--name"), "x=y");
    CHECK_INT(option_number(&inv, "--size"), 2048);
    CHECK_INT(option_number(&inv, "--cpu"), 500);
    CHECK_INT(option_number(&inv, "--wait"), 3000);
    CHECK_INT(option_number(&inv, "--count"), 7);
    CHECK_TEXT(option_text(&inv, "--mode"), "off");
    CHECK(option_flag(&inv, "--quiet"));
    CHECK_INT(inv.operands.n, 2);
    CHECK_TEXT(inv.operands.v[1], "b");
    CHECK(inv.operands.v[2] == NULL);
    invocation_done(&inv);
}

TEST(an_empty_value_can_be_one)
{
    struct invocation inv;
    struct err err;

    CHECK_INT(parse(&inv, &sample, WORDS("a", "--may-be-empty", ""), &err), 0);
    CHECK_TEXT(option_text(&inv, "--may-be-empty"), "");
    invocation_done(&inv);
}

TEST(options_not_given_are_empty)
{
    struct invocation inv;
    struct err err;

    CHECK_INT(parse(&inv, &sample, WORDS("-"), &err), 0); /* a single dash is an operand */
    CHECK(option_text(&inv, "--name") == NULL);
    CHECK_INT(option_number(&inv, "--size"), 0);
    CHECK(!option_flag(&inv, "--quiet"));
    CHECK_INT(option_words(&inv, "--env").n, 0);
    CHECK(option_words(&inv, "--env").v[0] == NULL);
    invocation_done(&inv);
}

TEST(repeatable_options_keep_their_order)
{
    struct invocation inv;
    struct words env;
    struct err err;

    CHECK_INT(parse(&inv, &sample, WORDS("--env", "B=1", "f", "--env=A=", "--env", "B=2"), &err),
              0);
    env = option_words(&inv, "--env");
    CHECK_INT(env.n, 3);
    CHECK_TEXT(env.v[0], "B=1");
    CHECK_TEXT(env.v[1], "A=");
    CHECK_TEXT(env.v[2], "B=2");
    invocation_done(&inv);
}

TEST(behind_the_dashes_nothing_is_looked_at)
{
    struct invocation inv;
    struct err err;
    const char *const words[] = {"--quiet", "--", "-x", "--", "--name", "a b\x01\xff", "", NULL};

    CHECK_INT(parse(&inv, &runner, words, &err), 0);
    CHECK_INT(inv.operands.n, 5);
    for (size_t i = 0; i < 5; i++)
        CHECK(inv.operands.v[i] == words[i + 2]); /* the very bytes */
    CHECK(!option_text(&inv, "--name"));
    invocation_done(&inv);
}

TEST(words_the_row_does_not_allow_are_refused)
{
    static const struct {
        const struct command *command;
        const char *words[6];
        const char *text;
    } cases[] = {
        {&sample, {"f", "--nmae", "x"},             "unknown option --nmae; did you mean --name?"                  },
        {&sample, {"f", "--bogus=1"},               "unknown option --bogus; see \"brig sample --help\""           },
        {&sample, {"f", "-x"},                      "unknown option -x; see \"brig sample --help\""                },
        {&sample, {"f", "--name"},                  "--name needs a value: --name TEXT"                            },
        {&sample, {"f", "--name", "--quiet"},       "--name needs a value: --name TEXT"                            },
        {&sample, {"f", "--name="},                 "--name needs a value"                                         },
        {&sample, {"f", "--quiet=yes"},             "--quiet takes no value"                                       },
        {&sample, {"f", "--name", "a", "--name=b"}, "--name is given twice"                                        },
        {&sample, {"f", "--quiet", "--quiet"},      "--quiet is given twice"                                       },
        {&sample, {"f", "-q", "--quiet"},           "--quiet is given twice"                                       },
        {&sample, {"f", "--mode", "maybe"},         "--mode: \"maybe\" is none of: on off"                         },
        {&sample, {"f", "--mode", "on off"},        "--mode: \"on off\" is none of: on off"                        },
        {&sample, {"f", "--count", "-1"},           "--count: \"-1\" is not a whole number"                        },
        {&sample, {"f", "--count", "0"},            "--count must be more than 0"                                  },
        {&sample,
         {"f", "--count", "18446744073709551616"},
         "--count: \"18446744073709551616\" is not a whole number"                                                 },
        {&sample, {"f", "--cpu", "0.0"},            "--cpu must be more than 0"                                    },
        {&sample,
         {"f", "--cpu", "1.2345"},
         "--cpu: \"1.2345\" is not a number of processors like 2 or 0.5"                                           },
        {&sample,
         {"f", "--cpu", "1."},
         "--cpu: \"1.\" is not a number of processors like 2 or 0.5"                                               },
        {&sample,
         {"f", "--cpu", "99999999999"},
         "--cpu: \"99999999999\" is not a number of processors like 2 or 0.5"                                      },
        {&sample, {NULL},                           "missing argument: brig sample FILE..."                        },
        {&sample, {"a", "b", "c"},                  "unexpected argument \"c\""                                    },
        {&runner, {"echo", "hi"},                   "the command must stand behind \"--\": brig runner -- echo ..."},
        {&runner, {"--quiet"},                      "no command given: brig runner -- CMD [ARG...]"                },
        {&runner, {"--"},                           "missing command: brig runner -- CMD [ARG...]"                 },
        {&runner, {"x", "--", "echo"},              "\"x\" stands in front of \"--\" and is no option"             },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct invocation inv;
        struct err err;

        CHECK_INT(parse(&inv, cases[i].command, cases[i].words, &err), -1);
        CHECK_INT(err.code, ERR_INVALID);
        CHECK_TEXT(err.text, cases[i].text);
        invocation_done(&inv);
    }
}

TEST(sizes_and_durations_name_the_option_when_wrong)
{
    struct invocation inv;
    struct err err;

    CHECK_INT(parse(&inv, &sample, WORDS("f", "--size", "lots"), &err), -1);
    CHECK(strncmp(err.text, "--size: ", 8) == 0);
    invocation_done(&inv);
    CHECK_INT(parse(&inv, &sample, WORDS("f", "--wait", "soon"), &err), -1);
    CHECK(strncmp(err.text, "--wait: ", 8) == 0);
    invocation_done(&inv);
}

TEST(an_argument_of_a_hundred_thousand_bytes_passes)
{
    AUTO_FREE char *big = malloc(100001);
    struct invocation inv;
    struct err err;

    memset(big, 'x', 100000);
    big[100000] = '\0';
    CHECK_INT(parse(&inv, &runner, WORDS("--", "echo", big), &err), 0);
    CHECK(inv.operands.v[1] == big);
    invocation_done(&inv);
    CHECK_INT(parse(&inv, &sample, WORDS(big, big, big), &err), -1); /* and a long error is cut */
    CHECK_INT(err.code, ERR_INVALID);
    invocation_done(&inv);
}

TEST(every_command_has_help_and_a_consistent_row)
{
    for (size_t i = 0; i < command_n; i++) {
        const struct command *c = commands[i];
        struct call call = {0};
        char line[128];

        (void)snprintf(line, sizeof line, "brig %s --help", c->path);
        call_line(&call, line);
        CHECK_INT(call.status, 0);
        CHECK(strstr(call.out, c->path) && strstr(call.out, "Usage: brig "));
        for (const struct cli_option *o = c->options; o->name; o++) {
            CHECK(strstr(call.out, o->name) != NULL);
            CHECK((o->kind == VALUE_NONE) == (o->argument == NULL));
            CHECK(o->kind != VALUE_CHOICE || o->values);
            CHECK(strncmp(o->name, "--", 2) == 0 && *o->help);
        }
        CHECK_INT(call.err_n, 0);
        CHECK(c->operand_min <= c->operand_max);
        CHECK(!strchr(c->path, ' ') ||
              command_group_find(strndupa(c->path, strcspn(c->path, " "))));
        call_done(&call);
    }
}

/* One of the words of a sentence. */
static bool has_word(const char *text, const char *word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz-";
    size_t n = strlen(word);

    for (const char *p = text; (p = strstr(p, word)); p += n)
        if ((p == text || !strchr(letters, p[-1])) && (!p[n] || !strchr(letters, p[n])))
            return true;
    return false;
}

TEST(help_names_all_there_is_to_choose)
{
    for (size_t i = 0; i < command_n; i++)
        for (const struct cli_option *o = commands[i]->options; o->name; o++) {
            AUTO_FREE char *values = xstrdup(o->kind == VALUE_CHOICE ? o->values : "");

            for (char *word = strtok(values, " "); word; word = strtok(NULL, " "))
                if (!has_word(o->help, word))
                    test_fail(__FILE__, __LINE__, "help of %s %s does not name %s",
                              commands[i]->path, o->name, word);
        }
}

TEST(no_line_of_help_is_wider_than_a_terminal)
{
    for (size_t i = 0; i < command_n; i++) {
        struct call call = {0};
        char line[128];

        (void)snprintf(line, sizeof line, "brig help %s", commands[i]->path);
        call_line(&call, line);
        for (char *row = strtok(call.out, "\n"); row; row = strtok(NULL, "\n"))
            if (strlen(row) > 80)
                test_fail(__FILE__, __LINE__, "%s: %zu columns: %s", commands[i]->path, strlen(row),
                          row);
        call_done(&call);
    }
}

TEST(a_command_is_done_in_one_place)
{
    for (size_t i = 0; i < command_n; i++) {
        const struct command *c = commands[i];

        /* By a daemon, or without any state; what is neither may say why. */
        CHECK(!(c->remote && c->local));
        CHECK(!c->apart || (!c->remote && !c->local));
    }
}

TEST(lines_that_name_no_command_are_refused)
{
    static const struct {
        const char *line;
        int status;
        const char *text;
    } cases[] = {
        {"brig verison",                  64, "brig: unknown command \"verison\"; did you mean \"version\"?\n"     },
        {"brig zzzzzzz",                  64, "brig: unknown command \"zzzzzzz\"; \"brig --help\" lists them all\n"},
        {"brig --json version x",         64, NULL                                                                 },
        {"brig version x",                64, "brig: unexpected argument \"x\"\n"                                  },
        {"brig -q version",               64,
         "brig: option -q stands in front of the command: brig COMMAND -q\n"                                       },
        {"helm zzzzzzz",                  2,  "helm: unknown command \"zzzzzzz\"; \"helm --help\" lists them all\n"},
        {"/usr/bin/helm version --bogus", 2,
         "helm: unknown option --bogus; see \"helm version --help\"\n"                                             },
        {"brig completion tcsh",          64,
         "brig: no completion for \"tcsh\"; there are bash, zsh and fish\n"                                        },
        {"brig help nothing",             64,
         "brig: there is no command \"nothing\"; \"brig --help\" lists them all\n"                                 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct call call = {0};

        call_line(&call, cases[i].line);
        CHECK_INT(call.status, cases[i].status);
        if (cases[i].text) {
            CHECK_TEXT(call.err, cases[i].text);
            CHECK_INT(call.out_n, 0);
        }
        call_done(&call);
    }
}

TEST(a_group_without_a_command_shows_its_commands)
{
    for (size_t i = 0; i < command_group_n; i++) {
        const struct command_group *group = &command_groups[i];
        struct call call = {0};
        char line[128];

        (void)snprintf(line, sizeof line, "helm %s", group->name);
        call_line(&call, line);
        CHECK_INT(call.status, 2);
        CHECK(strstr(call.err, "needs a command behind it") != NULL);
        CHECK_INT(call.out_n, 0);
        call_done(&call);

        call = (struct call){0};
        (void)snprintf(line, sizeof line, "brig %s --help", group->name);
        call_line(&call, line);
        CHECK_INT(call.status, 0);
        CHECK(strstr(call.out, group->name) != NULL);
        CHECK(strstr(call.out, group->summary + 1) != NULL); /* begins with a capital */
        CHECK(strstr(call.out, "Commands to") == NULL);
        call_done(&call);
    }
}

TEST(no_words_at_all_are_a_usage_error)
{
    struct call call = {0};

    call_run(&call, (const char *const[]){"brig", NULL});
    CHECK_INT(call.status, 64);
    CHECK(strstr(call.err, "Usage: brig COMMAND") != NULL);
    CHECK_INT(call.out_n, 0);
    call_done(&call);
}

TEST(errors_keep_control_bytes_from_the_terminal)
{
    struct call call = {0};

    call_run(&call, (const char *const[]){"brig", "\033]0;owned\007", NULL});
    CHECK(!strchr(call.err, '\033') && !strchr(call.err, '\007'));
    CHECK(strstr(call.err, "?]0;owned?") != NULL);
    call_done(&call);
}

TEST(with_json_errors_are_objects_on_standard_output)
{
    AUTO_ARENA struct arena mem = ARENA(1 << 20);
    const struct json *answer = NULL;
    struct call call = {0};
    struct mark where;
    struct str text;
    struct err err;

    call_line(&call, "helm version --json --bogus");
    CHECK_INT(call.status, 2);
    CHECK_INT(call.err_n, 0);
    CHECK_INT(json_parse(&mem, str_of(call.out), &answer, &where, &err), 0);
    CHECK(json_is_text(json_at(answer, "/error/type"), &text) && str_is(text, "invalid_request"));
    CHECK(json_is_text(json_at(answer, "/error/code"), &text) && str_is(text, "invalid"));
    CHECK(json_is_text(json_at(answer, "/error/reason_code"), &text) &&
          str_is(text, "REQUEST_INVALID"));
    CHECK(json_is_text(json_at(answer, "/error/message"), &text) &&
          str_starts(text, "unknown option --bogus"));
    call_done(&call);
}

TEST(each_code_has_its_status_and_helm_its_own)
{
    struct invocation inv;

    invocation_init(&inv, stdout, stderr);
    CHECK_INT(cli_status(&inv, ERR_INVALID), 64);
    CHECK_INT(cli_status(&inv, ERR_UNAVAILABLE), 69);
    CHECK_INT(cli_status_denied(&inv), 77);
    inv.as_helm = true;
    CHECK_INT(cli_status(&inv, ERR_INVALID), 2);
    CHECK_INT(cli_status(&inv, ERR_UNAVAILABLE), 69);
    CHECK_INT(cli_status_denied(&inv), 1);
    invocation_done(&inv);
}

TEST(details_and_reason_of_an_error_reach_json)
{
    AUTO_FREE char *out = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&out, &n);
    struct invocation inv;
    struct json *details;
    struct err err;

    invocation_init(&inv, to, stderr);
    inv.json = true;
    details = json_object(&inv.mem);
    json_put_int(&inv.mem, details, "line", 12);
    (void)err_set(&err, ERR_FORBIDDEN, "no");
    CHECK_INT(cli_error_with(&inv, &err, REASON_POLICY_DENY, details), 77);
    (void)fclose(to);
    CHECK(strstr(out, "\"reason_code\": \"POLICY_DENY\"") && strstr(out, "\"line\": 12"));
    CHECK(strstr(out, "\"type\": \"permission_denied\"") != NULL);
    invocation_done(&inv);
}

TEST(suggestions_are_near_or_absent)
{
    static const struct {
        const char *wanted;
        const char *found;
    } cases[] = {
        {"verison",                                            "version"},
        {"vers",                                               "version"},
        {"docter",                                             "doctor" },
        {"x",                                                  NULL     },
        {"",                                                   NULL     },
        {"something else entirely, which is longer than ours", NULL     },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct nearest nearest = {.wanted = cases[i].wanted};

        nearest_try(&nearest, "version");
        nearest_try(&nearest, "doctor");
        CHECK_TEXT(nearest_found(&nearest), cases[i].found);
    }
}

TEST(completions_name_every_command_and_option)
{
    static const char *const shells[] = {"bash", "zsh", "fish", "man"};

    for (size_t s = 0; s < COUNT(shells); s++) {
        struct call call = {0};
        char line[64];

        (void)snprintf(line, sizeof line, "brig completion %s", shells[s]);
        call_line(&call, line);
        CHECK_INT(call.status, 0);
        for (size_t i = 0; i < command_n; i++) {
            const char *last = strrchr(commands[i]->path, ' ');

            CHECK(strstr(call.out, last ? last + 1 : commands[i]->path) != NULL);
            for (const struct cli_option *o = commands[i]->options; o->name; o++)
                if (!strstr(call.out, o->name + 2)) /* fish writes them without dashes */
                    test_fail(__FILE__, __LINE__, "%s lacks %s", shells[s], o->name);
        }
        call_done(&call);
    }
}

/* ---- the state directory ---- */

static char *temporary_directory(char *template)
{
    CHECK(mkdtemp(template) != NULL);
    return template;
}

static int state(struct invocation *inv, const char **out, struct err *err)
{
    invocation_init(inv, stdout, stderr);
    return cli_state(inv, out, err);
}

TEST(the_state_directory_is_made_for_its_owner_only)
{
    char dir[] = "/tmp/brig-cli-XXXXXX";
    char home[64];
    struct invocation inv;
    const char *path = NULL;
    struct stat s;
    struct err err;

    (void)snprintf(home, sizeof home, "%s/a/b", temporary_directory(dir));
    CHECK_INT(setenv("BRIG_HOME", home, 1), 0);
    CHECK_INT(state(&inv, &path, &err), 0);
    CHECK_TEXT(path, home);
    CHECK_INT(stat(home, &s), 0);
    CHECK_INT(s.st_mode & 07777, 0700);
    invocation_done(&inv);
    CHECK_INT(dir_remove(AT_FDCWD, dir, &err), 0);
}

TEST(a_state_directory_others_may_write_to_is_refused)
{
    char dir[] = "/tmp/brig-cli-XXXXXX";
    struct invocation inv;
    const char *path = NULL;
    struct err err;

    CHECK_INT(setenv("BRIG_HOME", temporary_directory(dir), 1), 0);
    CHECK_INT(chmod(dir, 0770), 0);
    CHECK_INT(state(&inv, &path, &err), -1);
    CHECK_INT(err.code, ERR_FORBIDDEN);
    CHECK(strstr(err.text, "others may write to the state directory") != NULL);
    CHECK(path == NULL);
    invocation_done(&inv);
    (void)rmdir(dir);
}

TEST(a_state_directory_of_somebody_else_is_refused)
{
    char dir[] = "/tmp/brig-cli-XXXXXX";
    struct invocation inv;
    const char *path = NULL;
    struct err err;

    if (geteuid() != 0)
        test_skip("needs root to give a directory away");
    CHECK_INT(setenv("BRIG_HOME", temporary_directory(dir), 1), 0);
    CHECK_INT(chown(dir, 65534, 65534), 0);
    CHECK_INT(state(&inv, &path, &err), -1);
    CHECK_INT(err.code, ERR_FORBIDDEN);
    CHECK(strstr(err.text, "belongs to user 65534") != NULL);
    invocation_done(&inv);
    (void)rmdir(dir);
}

TEST(the_state_directory_follows_the_environment_of_an_ordinary_user)
{
    char dir[] = "/tmp/brig-cli-XXXXXX";
    char wanted[96];
    struct invocation inv;
    const char *path = NULL;
    struct err err;

    (void)temporary_directory(dir);
    CHECK_INT(unsetenv("BRIG_HOME"), 0);
    CHECK_INT(chown(dir, geteuid() ? geteuid() : 65534, (gid_t)-1), 0);
    if (geteuid() == 0)
        CHECK_INT(setresuid(65534, 65534, 65534), 0);
    CHECK_INT(setenv("HOME", dir, 1), 0);
    CHECK_INT(setenv("XDG_DATA_HOME", "not/absolute", 1), 0); /* ignored, as its standard says */
    CHECK_INT(state(&inv, &path, &err), 0);
    (void)snprintf(wanted, sizeof wanted, "%s/.local/share/brig", dir);
    CHECK_TEXT(path, wanted);
    invocation_done(&inv);

    (void)snprintf(wanted, sizeof wanted, "%s/data", dir);
    CHECK_INT(setenv("XDG_DATA_HOME", wanted, 1), 0);
    CHECK_INT(state(&inv, &path, &err), 0);
    (void)snprintf(wanted, sizeof wanted, "%s/data/brig", dir);
    CHECK_TEXT(path, wanted);
    invocation_done(&inv);

    CHECK_INT(unsetenv("HOME"), 0);
    CHECK_INT(unsetenv("XDG_DATA_HOME"), 0);
    CHECK_INT(state(&inv, &path, &err), -1);
    CHECK_INT(err.code, ERR_UNAVAILABLE);
    invocation_done(&inv);
    CHECK_INT(dir_remove(AT_FDCWD, dir, &err), 0);
}

static char *message_of(const char *text)
{
    char *shown = NULL;
    size_t n = 0;
    FILE *out = fopen("/dev/null", "w"), *to = open_memstream(&shown, &n);
    struct invocation inv;
    struct err err;

    invocation_init(&inv, out, to);
    (void)err_set(&err, ERR_INVALID, "%s", text);
    CHECK_INT(cli_error(&inv, &err), 64);
    invocation_done(&inv);
    (void)fclose(out);
    (void)fclose(to);
    return shown;
}

TEST(what_others_wrote_stays_on_its_line_and_steers_no_terminal)
{
    static const struct {
        const char *text;
        const char *shown;
    } cases[] = {
        {"plain, \t\xc3\xa4 and \xe2\x80\xa6", "brig: plain, \t\xc3\xa4 and \xe2\x80\xa6\n"},
        {"a\nbrig: b",                         "brig: a?brig: b\n"                         },
        {"a\n12 b",                            "brig: a?12 b\n"                            },
        {"a\r\033[2J\x7f",                     "brig: a??[2J?\n"                           },
        {"a\xc2\x9b"
         "2J",                        "brig: a??2J\n"                             },
        {"a\xe2\x80\xae"
         "b",                         "brig: a???b\n"                             },
        {"cut \xe2\x80",                       "brig: cut ??\n"                            },
 /* The place in a file, as mark_show() shows it. */
        {"no key\n    3 | x: y\n      | ^\n",  "brig: no key\n    3 | x: y\n      | ^\n\n" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_FREE char *shown = message_of(cases[i].text);

        CHECK_TEXT(shown, cases[i].shown);
    }
}
