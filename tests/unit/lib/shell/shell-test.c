/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/shell/shell.h"

#include "lib/base/buf.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "test.h"

#include <fcntl.h>

#define VECTORS SOURCE_ROOT "/tests/vectors/shell/"

static const struct {
    const char *name;
    unsigned flag;
} flags[] = {
    {"deletes", SHELL_DELETES},
    {"inline",  SHELL_INLINE },
    {"decoded", SHELL_DECODED},
    {"lookup",  SHELL_LOOKUP },
};

static const struct json *vectors(struct arena *mem, const char *path)
{
    AUTO_BUF struct buf text = BUF(MIB);
    const struct json *root = NULL;
    struct mark where;
    struct err err;

    if (file_read(AT_FDCWD, path, &text, &err) < 0 ||
        json_parse(mem, arena_str(mem, buf_str(&text)), &root, &where, &err) < 0) {
        test_fail(path, 0, "%s", err.text);
        return json_array(mem);
    }
    return root;
}

static bool has_words(const struct shell_command *command, const struct json *words)
{
    size_t i = 0;

    if (command->word_n != words->n)
        return false;
    json_each(word, words) if (!str_eq(word->text, command->words[i++].text)) return false;
    return true;
}

static const struct shell_command *find(const struct shell_script *script, const struct json *words)
{
    const struct shell_command *found = NULL;

    for (size_t i = 0; i < script->n; i++)
        if (has_words(&script->commands[i], words))
            found = &script->commands[i];
    return found;
}

static void check_found(const struct json *one, const struct shell_script *script, const char *file,
                        int line)
{
    static const char *const known[] = {"opaque", "partly", "literal"};
    const struct json *wanted_known = json_get(one, "known");
    const struct json *within = json_get(one, "within");

    json_each(words, json_get(one, "finds"))
    {
        const struct shell_command *command = find(script, words);

        if (!command) {
            test_fail(file, line, "a command is not found in " STR_FMT,
                      STR_ARG(json_get(one, "text")->text));
            continue;
        }
        if (wanted_known && !str_is(wanted_known->text, known[command->known]))
            test_fail(file, line, "it is %s: " STR_FMT, known[command->known],
                      STR_ARG(json_get(one, "text")->text));
        if (within && (!command->within || !str_is(within->text, command->within)))
            test_fail(file, line, "it is within %s: " STR_FMT,
                      command->within ? command->within : "nothing",
                      STR_ARG(json_get(one, "text")->text));
    }
}

static unsigned all_flags(const struct shell_script *script)
{
    unsigned all = 0;

    for (size_t i = 0; i < script->n; i++)
        all |= script->commands[i].flags;
    return all;
}

static void check_flags(const struct json *one, const struct shell_script *script, const char *file,
                        int line)
{
    unsigned all = all_flags(script);

    if (json_get(one, "hides") && !(all & SHELL_HIDES))
        test_fail(file, line, "hides nothing: " STR_FMT, STR_ARG(json_get(one, "text")->text));
    if (json_get(one, "seen") && all & SHELL_HIDES)
        test_fail(file, line, "hides something: " STR_FMT, STR_ARG(json_get(one, "text")->text));
    if (!json_get(one, "flags"))
        return;
    json_each(name, json_get(one, "flags"))
    {
        for (size_t i = 0; i < COUNT(flags); i++)
            if (str_is(name->text, flags[i].name) && !(all & flags[i].flag))
                test_fail(file, line, "not flagged %s: " STR_FMT, flags[i].name,
                          STR_ARG(json_get(one, "text")->text));
    }
}

static void check_never(const struct json *one, const struct shell_script *script, const char *file,
                        int line)
{
    json_each(name, json_get(one, "never"))
    {
        for (size_t i = 0; i < script->n; i++)
            if (script->commands[i].word_n &&
                str_is(name->text, shell_base(script->commands[i].words[0].text.p)))
                test_fail(file, line, "found what is not there: " STR_FMT,
                          STR_ARG(json_get(one, "text")->text));
    }
}

/* It is one command, every word of it is certain, and it runs nothing but itself. */
static void check_plain(const struct json *one, const struct shell_script *script, const char *file,
                        int line)
{
    if (script->n != 1 || script->commands[0].known != SHELL_LITERAL || script->commands[0].flags ||
        script->commands[0].carrier)
        test_fail(file, line, "is not plain: " STR_FMT, STR_ARG(json_get(one, "text")->text));
}

static void check_spans(const struct shell_script *script, struct str text)
{
    for (size_t i = 0; i < script->n; i++) {
        const struct shell_command *command = &script->commands[i];

        CHECK(command->span.start <= command->span.end && command->span.end <= text.n);
        CHECK(command->parent == SHELL_NONE || command->parent < i);
        for (size_t k = 0; k < command->word_n; k++)
            CHECK(command->words[k].span.end <= text.n &&
                  command->words[k].text.p[command->words[k].text.n] == '\0');
    }
}

static void check_one(const struct json *one, const char *file)
{
    AUTO_ARENA struct arena mem = ARENA(SHELL_MEMORY_MAX);
    struct str text = json_get(one, "text")->text;
    const struct json *error = json_get(one, "error");
    struct shell_script script = {NULL, 0};
    int line = (int)one->mark.line;
    struct err err;

    if (shell_read(&mem, text, SHELL_ANY, &script, &err) < 0) {
        test_check_text(file, line, "error", err.text,
                        error ? arena_text(&mem, error->text) : NULL);
        return;
    }
    if (error)
        test_fail(file, line, "is read: " STR_FMT, STR_ARG(text));
    if (json_get(one, "finds"))
        check_found(one, &script, file, line);
    if (json_get(one, "never"))
        check_never(one, &script, file, line);
    if (json_get(one, "plain"))
        check_plain(one, &script, file, line);
    check_flags(one, &script, file, line);
    check_spans(&script, text);
}

static void check_file(const char *file)
{
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    const struct json *cases = vectors(&mem, file);

    CHECK(cases->n > 20);
    json_each(one, cases) check_one(one, file);
}

TEST(commands_are_found_however_they_are_written)
{
    check_file(VECTORS "found.json");
}

TEST(names_that_are_data_are_not_commands)
{
    check_file(VECTORS "not-found.json");
}

TEST(what_no_shell_reads_is_refused_with_its_place)
{
    check_file(VECTORS "refused.json");
}

/* The words of a file that is run are copied for it; a text that defines a function is read twice.
 * Neither may add up. */
TEST(files_in_files_in_a_text_that_is_read_twice_take_memory_once)
{
    static const char head[] = "f() { :; }; V=x; a $V; .";
    AUTO_ARENA struct arena mem = ARENA(64 * MIB); /* stops when that is too little */
    AUTO_FREE char *text = xmalloc(SHELL_TEXT_MAX);
    struct shell_script script = {NULL, 0};
    struct err err;

    memcpy(text, head, sizeof head - 1);
    for (size_t i = sizeof head - 1; i < SHELL_TEXT_MAX; i++)
        text[i] = i % 2 ? '.' : ' ';
    CHECK_INT(shell_read(&mem, (struct str){text, SHELL_TEXT_MAX}, SHELL_ANY, &script, &err), 0);
    CHECK_INT(script.n, 5); /* the second file is one too many */
    CHECK_TEXT(script.commands[4].words[0].text.p, "./.");
    CHECK(script.commands[4].flags & SHELL_FILE);
    CHECK(script.commands[4].flags & SHELL_HIDES);
}

/* The table is searched by halves: a row at the wrong place would hide itself or others. */
TEST(every_program_of_the_table_is_found_by_its_name)
{
    static const char *const names[] = {".",           "Rscript",
                                        "alias",       "apt",
                                        "apt-get",     "ash",
                                        "at",          "awk",
                                        "bash",        "batch",
                                        "builtin",     "bun",
                                        "bundle",      "busybox",
                                        "bwrap",       "capsh",
                                        "cargo",       "chpst",
                                        "chronic",     "chroot",
                                        "chrt",        "cmake",
                                        "command",     "compgen",
                                        "coproc",      "coreutils",
                                        "cpio",        "crontab",
                                        "csh",         "dash",
                                        "dbus-launch", "dbus-run-session",
                                        "deno",        "doas",
                                        "docker",      "docker-compose",
                                        "dpkg",        "dumb-init",
                                        "eatmydata",   "emacs",
                                        "entr",        "env",
                                        "eval",        "ex",
                                        "exec",        "expect",
                                        "fakeroot",    "faketime",
                                        "fc",          "fd",
                                        "fdfind",      "find",
                                        "firejail",    "fish",
                                        "flock",       "gawk",
                                        "gdb",         "git",
                                        "gmake",       "go",
                                        "gosu",        "gpg-agent",
                                        "gsed",        "gtar",
                                        "gvim",        "install",
                                        "ionice",      "ip",
                                        "ksh",         "kubectl",
                                        "ld.so",       "less",
                                        "linux32",     "linux64",
                                        "ltrace",      "lua",
                                        "luajit",      "machinectl",
                                        "make",        "man",
                                        "mariadb",     "mawk",
                                        "mksh",        "mysql",
                                        "nawk",        "nerdctl",
                                        "nice",        "node",
                                        "nodejs",      "nohup",
                                        "npm",         "npx",
                                        "nsenter",     "numactl",
                                        "nvim",        "oc",
                                        "osascript",   "osh",
                                        "parallel",    "pdm",
                                        "perf",        "perl",
                                        "php",         "pipenv",
                                        "pipesz",      "pkexec",
                                        "pnpm",        "podman",
                                        "poetry",      "posh",
                                        "prlimit",     "proot",
                                        "prove",       "psql",
                                        "py",          "pypy",
                                        "python",      "rbash",
                                        "rg",          "rsync",
                                        "ruby",        "run-parts",
                                        "run0",        "runcon",
                                        "runuser",     "rview",
                                        "rvim",        "scp",
                                        "screen",      "script",
                                        "sed",         "setarch",
                                        "setpriv",     "setsid",
                                        "sftp",        "sg",
                                        "sh",          "socat",
                                        "sort",        "source",
                                        "split",       "sqlite3",
                                        "ssh",         "ssh-agent",
                                        "sshpass",     "start-stop-daemon",
                                        "stdbuf",      "strace",
                                        "su",          "su-exec",
                                        "sudo",        "systemd-run",
                                        "tar",         "taskset",
                                        "tclsh",       "tcpdump",
                                        "tcsh",        "time",
                                        "timeout",     "tini",
                                        "tmux",        "torsocks",
                                        "toybox",      "trap",
                                        "uclampset",   "unbuffer",
                                        "unshare",     "uv",
                                        "valgrind",    "vi",
                                        "view",        "vim",
                                        "vim.basic",   "vim.tiny",
                                        "vimdiff",     "watch",
                                        "wget",        "xargs",
                                        "xvfb-run",    "yarn",
                                        "yash",        "zip",
                                        "zsh"};

    for (size_t i = 0; i < COUNT(names); i++)
        if (!shell_may_carry(names[i]))
            test_fail(__FILE__, __LINE__, "not found: %s", names[i]);
    CHECK(shell_may_carry("python3.11"));
    CHECK(!shell_may_carry("docker-composer"));
    CHECK(!shell_may_carry("dockers"));
    CHECK(!shell_may_carry(""));
}

/* The same for the table of those to which xargs may give any words. */
TEST(every_program_that_only_reads_is_found_by_its_name)
{
    static const char *const names[] = {
        "b2sum",    "basename", "cat",     "cksum",     "cmp",       "comm",      "cut",
        "dirname",  "du",       "echo",    "expand",    "fold",      "grep",      "head",
        "ls",       "md5sum",   "nl",      "od",        "paste",     "printf",    "readlink",
        "realpath", "rev",      "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum",
        "stat",     "sum",      "tac",     "tail",      "tr",        "unexpand",  "wc",
    };

    for (size_t i = 0; i < COUNT(names); i++) {
        AUTO_ARENA struct arena mem = ARENA(SHELL_MEMORY_MAX);
        const char *const words[] = {"xargs", names[i], "x"};
        struct shell_script script;

        shell_look(&mem, words, COUNT(words), &script);
        CHECK_INT(script.n, 2);
        if (script.commands[0].flags & SHELL_HIDES)
            test_fail(__FILE__, __LINE__, "not found: %s", names[i]);
        CHECK_INT(script.commands[1].known, SHELL_PARTLY);
    }
}
