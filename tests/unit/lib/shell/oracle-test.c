/* SPDX-License-Identifier: Apache-2.0 */

/* What we call literal is what real shells pass.
 *
 * Texts run in bash and dash, in an empty folder, with a PATH in which every name is this very
 * program: called by such a name it writes its words to a file and ends. What was written is
 * compared with what we read:
 *   - every command that ran is among ours, or we said that there is something we do not know;
 *   - every program that ran is among those we name, or we said that something is hidden;
 *   - every literal command of ours ran with exactly these words (unless the case says that it
 *     need not run: the other branch of an if). */

#include "lib/shell/shell.h"

#include "lib/base/buf.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define LOG "ORACLE_LOG"

static const char *const names[] = {"a", "b", "c", "d"};

/* Before main: called as one of the names, or as an ordinary test? */
__attribute__((constructor)) static void record(int argc, char **argv)
{
    const char *path = getenv(LOG);
    char line[65536];
    size_t n = 0;
    int fd;

    if (!path || argc < 1)
        return;
    n += (size_t)snprintf(line, sizeof line, "%d", argc) + 1;
    for (int i = 0; i < argc; i++) {
        const char *word = i ? argv[i] : shell_base(argv[i]);
        size_t length = strlen(word) + 1;

        if (n + length > sizeof line)
            _exit(3);
        memcpy(line + n, word, length);
        n += length;
    }
    fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    _exit(fd >= 0 && write(fd, line, n) == (ssize_t)n ? 0 : 3);
}

struct place {
    char folder[64];
    char bin[80];
    char work[80];
    char log[96];
};

static bool place_make(struct place *place)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    (void)strcpy(place->folder, "/tmp/brig-oracle-XXXXXX");
    if (n < 0 || !mkdtemp(place->folder))
        return false;
    self[n] = '\0';
    (void)snprintf(place->bin, sizeof place->bin, "%s/bin", place->folder);
    (void)snprintf(place->work, sizeof place->work, "%s/work", place->folder);
    if (mkdir(place->bin, 0700) < 0 || mkdir(place->work, 0700) < 0)
        return false;
    for (size_t i = 0; i < COUNT(names); i++) {
        char path[96];

        (void)snprintf(path, sizeof path, "%s/%s", place->bin, names[i]);
        if (symlink(self, path) < 0)
            return false;
    }
    (void)snprintf(self, sizeof self, "%s/cat", place->bin);
    return symlink("/bin/cat", self) == 0;
}

static void place_remove(const struct place *place)
{
    char path[96];

    for (size_t i = 0; i < COUNT(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", place->bin, names[i]);
        (void)unlink(path);
    }
    (void)snprintf(path, sizeof path, "%s/cat", place->bin);
    (void)unlink(path);
    (void)rmdir(place->bin);
    (void)rmdir(place->work);
    (void)rmdir(place->folder);
}

/* In the child: nothing of ours but what a shell needs. */
static void become_shell(const struct place *place, const char *shell, const char *text)
{
    char path[96], log[112];
    char *const env[] = {path, log, NULL};
    char *const argv[] = {(char *)(uintptr_t)shell, (char *)(uintptr_t) "-c",
                          (char *)(uintptr_t)text, NULL};
    const struct rlimit second = {1, 1};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)snprintf(path, sizeof path, "PATH=%s", place->bin);
    (void)snprintf(log, sizeof log, LOG "=%s", place->log);
    if (null < 0 || chdir(place->work) < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
        dup2(null, 2) < 0)
        _exit(99);
    /* Some texts never end. By the clock, one that has not had its turn yet would be among them;
     * but those that start one process after another have little time of their own. */
    (void)setrlimit(RLIMIT_CPU, &second);
    (void)alarm(10);
    (void)execve(shell, argv, env);
    _exit(99);
}

/* Every run has a file of its own: what one leaves in the background writes nowhere later. */
static bool run_in(struct place *place, const char *shell, const char *text, struct buf *log)
{
    static unsigned runs;
    int fd;
    struct err err;
    int status = 0;
    pid_t pid;

    (void)snprintf(place->log, sizeof place->log, "%s/log-%u", place->folder, runs++);
    fd = open(place->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || close(fd) < 0 || (pid = fork()) < 0)
        return false;
    if (pid == 0)
        become_shell(place, shell, text);
    if (waitpid(pid, &status, 0) != pid || (WIFEXITED(status) && WEXITSTATUS(status) == 99))
        return false;
    buf_clear(log);
    if (file_read(AT_FDCWD, place->log, log, &err) < 0)
        return false;
    return unlink(place->log) == 0;
}

/* ---- comparing ---- */

static bool is_recorded_name(const char *name)
{
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* One record at *at: its words match the command's? Steps over it. */
static bool record_is(const struct buf *log, size_t *at, const struct shell_command *command)
{
    size_t n = (size_t)atoi(log->p + *at);
    bool same = command && command->known == SHELL_LITERAL && command->word_n == n;

    *at += strlen(log->p + *at) + 1;
    for (size_t i = 0; i < n; i++) {
        const char *word = log->p + *at;

        same = same && strcmp(i ? command->words[i].text.p : shell_base(command->words[0].text.p),
                              word) == 0;
        *at += strlen(word) + 1;
    }
    return same;
}

static bool ran(const struct buf *log, const struct shell_command *command)
{
    for (size_t at = 0; at < log->n;)
        if (record_is(log, &at, command))
            return true;
    return false;
}

static bool all_are_ours(const struct buf *log, const struct shell_script *script)
{
    for (size_t at = 0; at < log->n;) {
        size_t next = at;
        bool found = false;

        for (size_t i = 0; i < script->n && !found; i++) {
            next = at;
            found = record_is(log, &next, &script->commands[i]);
        }
        if (!found)
            return false;
        at = next;
    }
    return true;
}

static bool steers(const struct shell_command *command)
{
    for (size_t i = 0; i < command->assignment_n; i++)
        if (is_steering_variable(command->assignments[i].text.p))
            return true;
    return false;
}

static bool knows_all(const struct shell_script *script)
{
    for (size_t i = 0; i < script->n; i++)
        if (script->commands[i].known != SHELL_LITERAL || script->commands[i].flags & SHELL_HIDES ||
            steers(&script->commands[i]))
            return false;
    return true;
}

/* Whether it is said of everything which program it is, as rules that refuse one rely on. */
static bool names_all(const struct shell_script *script)
{
    for (size_t i = 0; i < script->n; i++) {
        const struct shell_command *command = &script->commands[i];

        if (command->flags & (SHELL_HIDES | SHELL_FILE) || steers(command) ||
            (command->word_n ? command->words[0].known : command->known) != SHELL_LITERAL)
            return false;
    }
    return true;
}

static bool is_named(const struct shell_script *script, const char *name)
{
    for (size_t i = 0; i < script->n; i++)
        if (script->commands[i].word_n &&
            strcmp(shell_base(script->commands[i].words[0].text.p), name) == 0)
            return true;
    return false;
}

static bool all_are_named(const struct buf *log, const struct shell_script *script)
{
    for (size_t at = 0; at < log->n; (void)record_is(log, &at, NULL))
        if (!is_named(script, log->p + at + strlen(log->p + at) + 1))
            return false;
    return true;
}

enum expect {
    ANYTHING, /* as long as nothing wrong is said */
    LITERAL,  /* all of it is literal */
    BRANCHES, /* and not all of it runs */
    SKIPS,    /* anything, and not all of it runs */
};

static void compare(struct place *place, const char *shell, const char *text,
                    const struct shell_script *script, enum expect expect)
{
    AUTO_BUF struct buf log = BUF(4 * MIB);

    if (!run_in(place, shell, text, &log)) {
        test_fail(__FILE__, __LINE__, "%s could not be run", shell);
        return;
    }
    if (knows_all(script) && !all_are_ours(&log, script))
        test_fail(__FILE__, __LINE__, "%s ran something else: %s", shell, text);
    if (names_all(script) && !all_are_named(&log, script))
        test_fail(__FILE__, __LINE__, "%s ran a program that is not named: %s", shell, text);
    for (size_t i = 0; i < script->n && expect != BRANCHES && expect != SKIPS; i++) {
        const struct shell_command *command = &script->commands[i];

        if (command->known == SHELL_LITERAL && command->word_n &&
            !(command->flags & SHELL_FUNCTION) &&
            is_recorded_name(shell_base(command->words[0].text.p)) && !ran(&log, command))
            test_fail(__FILE__, __LINE__, "%s did not run command %zu of: %s", shell, i, text);
    }
}

static void check_text(struct place *place, const char *text, enum shell_dialect dialect,
                       enum expect expect)
{
    AUTO_ARENA struct arena mem = ARENA(SHELL_MEMORY_MAX);
    struct shell_script script;
    struct err err;

    if (shell_read(&mem, str_of(text), dialect, &script, &err) < 0) {
        if (expect == LITERAL || expect == BRANCHES)
            test_fail(__FILE__, __LINE__, "%s: %s", err.text, text);
        return;
    }
    if ((expect == LITERAL || expect == BRANCHES) && !knows_all(&script))
        test_fail(__FILE__, __LINE__, "not all of it is literal: %s", text);
    compare(place, "/bin/bash", text, &script, expect);
    if (dialect == SHELL_ANY)
        compare(place, "/bin/dash", text, &script, expect);
}

static void need_shells(void)
{
    if (access("/bin/bash", X_OK) != 0 || access("/bin/dash", X_OK) != 0)
        test_skip("there is no /bin/bash or no /bin/dash to compare with");
}

TEST(literal_words_are_what_bash_and_dash_pass)
{
    static const struct {
        enum expect expect;
        const char *text;
    } cases[] = {
#include "oracle-cases.h"
    };
    struct place place;

    need_shells();
    CHECK(place_make(&place));
    for (size_t i = 0; i < COUNT(cases); i++) {
        check_text(&place, cases[i].text, SHELL_ANY, cases[i].expect);
        if (cases[i].expect == ANYTHING || cases[i].expect == SKIPS)
            check_text(&place, cases[i].text, SHELL_BASH, cases[i].expect);
    }
    place_remove(&place);
}

/* ---- generated texts ---- */

struct random {
    uint64_t state;
    struct buf text;
};

static unsigned pick(struct random *r, unsigned n)
{
    r->state = r->state * 6364136223846793005U + 1442695040888963407U;
    return (unsigned)(r->state >> 33) % n;
}

static void say(struct random *r, const char *text)
{
    struct err err;

    CHECK_INT(buf_add_text(&r->text, text, &err), 0);
}

static const char *const parts[] = {
    "x",
    "yy",
    "-f",
    "'q q'",
    "''",
    "\"d d\"",
    "\"\"",
    "\\ ",
    "\\\\",
    "\"\\$\"",
    "$V",
    "\"$V\"",
    "${W}",
    "\"${W}\"",
    "$IFS",
    "\"$IFS\"",
    "$(echo e)",
    "`echo f`",
    "*",
    "?z",
    "[ab]",
    "[",
    "]",
    "{p,q}",
    "{",
    "}",
    "~",
    "$'\\x41'",
    "$'\\n'",
    "$",
    "#",
    "=",
    "\\\n",
    "\"\\\n\"",
    "\"'\"",
    "'\"'",
    "\"`echo g`\"",
    "$(echo \"h  i\")",
    "\"$(echo 'j  k')\"",
    "${V:-z}",
    "$((1+2))",
    "\"a\\b\"",
    "%",
    ":",
    ",",
    "\"$(printf 'l\\nm\\n')\"",
    "$(printf 'n o')",
    "\\'",
    "!",
    "$(echo)",
    "^",
    "a=b",
    "~/x",
    "$\\\nV",
    "\"$'x'\"",
    "${#V}",
    "\"${V%x}\"",
};

static void say_word(struct random *r)
{
    unsigned n = 1 + pick(r, 3);

    while (n--)
        say(r, parts[pick(r, COUNT(parts))]);
}

static void say_command(struct random *r)
{
    unsigned n = pick(r, 4);

    say(r, names[pick(r, COUNT(names))]);
    while (n--) {
        say(r, pick(r, 8) ? " " : " \\\n ");
        say_word(r);
    }
}

static void say_list(struct random *r, unsigned depth);

static void say_element(struct random *r, unsigned depth)
{
    switch (pick(r, depth ? 12 : 6)) {
    case 0:
        say(r, pick(r, 2) ? "V=" : "W=");
        say_word(r);
        return;
    case 1:
        say(r, "V=t ");
        say_command(r);
        return;
    case 6:
        say(r, "(");
        say_list(r, depth - 1);
        say(r, ")");
        return;
    case 7:
        say(r, "{ ");
        say_list(r, depth - 1);
        say(r, "\n}");
        return;
    case 8:
        say(r, "if a; then ");
        say_list(r, depth - 1);
        say(r, "\nfi");
        return;
    case 9:
        say(r, "for i in 1 2; do ");
        say_list(r, depth - 1);
        say(r, "\ndone");
        return;
    case 10:
        say(r, "case x in y|x) ");
        say_list(r, depth - 1);
        say(r, "\n;; esac");
        return;
    case 11:
        say(r, "b \"$( ");
        say_list(r, depth - 1);
        say(r, ")\"");
        return;
    default:
        say_command(r);
    }
}

static void say_list(struct random *r, unsigned depth)
{
    static const char *const between[] = {"; ", "\n", " && ", " | ", " # c\n", "\n\n"};
    unsigned n = 1 + pick(r, 3);

    while (n--) {
        say_element(r, depth);
        if (n)
            say(r, between[pick(r, COUNT(between))]);
    }
}

/* More of them: ORACLE_TEXTS=1000 ORACLE_SEED=1 build/tests/unit/lib/shell/shell-oracle-test */
TEST(generated_texts_are_read_as_bash_and_dash_do)
{
    const char *many = getenv("ORACLE_TEXTS");
    const char *seed = getenv("ORACLE_SEED");
    int n = many ? atoi(many) : 60;
    struct random r = {.state = seed ? (uint64_t)atoi(seed) : 20261116, .text = BUF(MIB)};
    struct place place;

    need_shells();
    CHECK(place_make(&place));
    for (int i = 0; i < n; i++) {
        buf_clear(&r.text);
        say_list(&r, 2);
        check_text(&place, buf_text(&r.text), i % 4 ? SHELL_ANY : SHELL_BASH, ANYTHING);
    }
    place_remove(&place);
    buf_done(&r.text);
}
