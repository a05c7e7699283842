/* SPDX-License-Identifier: Apache-2.0 */

/* Options that run their value do so in the programs of this machine, and are found.
 *
 * Every command runs in a folder of its own. Whether it ran `touch hit`, or ./prog, which does the
 * same, is there to be seen afterwards, and has to be what the case says. Of one that did, the
 * reader has to have found either command, or to have said that something is hidden; of one that
 * did not, that it is nothing but itself. */

#include "lib/shell/shell.h"

#include "lib/base/limits.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define WORDS_MAX 12

struct ran {
    const char *words[WORDS_MAX];
    bool not ;
};

static void become(const char *folder, const char *const *words)
{
    char home[96];
    char *const env[] = {home,
                         (char *)(uintptr_t) "PATH=/usr/bin:/bin:/usr/sbin:/sbin",
                         (char *)(uintptr_t) "TERM=dumb",
                         (char *)(uintptr_t) "SHELL=/bin/sh",
                         (char *)(uintptr_t) "GIT_CONFIG_NOSYSTEM=1",
                         (char *)(uintptr_t) "GIT_AUTHOR_NAME=a",
                         (char *)(uintptr_t) "GIT_AUTHOR_EMAIL=a@localhost",
                         (char *)(uintptr_t) "GIT_COMMITTER_NAME=a",
                         (char *)(uintptr_t) "GIT_COMMITTER_EMAIL=a@localhost",
                         (char *)(uintptr_t) "FILTER_BRANCH_SQUELCH_WARNING=1",
                         NULL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)snprintf(home, sizeof home, "HOME=%s", folder);
    if (null < 0 || chdir(folder) < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
        dup2(null, 2) < 0)
        _exit(99);
    (void)alarm(60);
    (void)execvpe(words[0], (char *const *)(uintptr_t)words, env);
    _exit(99);
}

static int run(const char *folder, const char *const *words)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0)
        become(folder, words);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static bool has_hit(const char *folder)
{
    char path[96];
    struct stat st;

    (void)snprintf(path, sizeof path, "%s/hit", folder);
    return stat(path, &st) == 0;
}

static bool is_hit(const struct shell_command *command)
{
    if (command->flags & SHELL_HIDES)
        return true;
    if (command->word_n == 0)
        return false;
    return str_is(command->words[0].text, "./prog") ||
           (command->word_n > 1 && str_is(command->words[0].text, "touch") &&
            str_ends(command->words[1].text, "hit"));
}

/* A carrier by its name, as xargs, has what it carries beside it. */
static bool is_alone(const struct shell_script *script)
{
    const struct shell_command *first = &script->commands[0];

    if (first->carrier && !shell_is_carrier(first->carrier))
        return false;
    return script->n == 1 || first->carrier;
}

static bool is_found(const struct ran *one, size_t n, bool *alone)
{
    AUTO_ARENA struct arena mem = ARENA(SHELL_MEMORY_MAX);
    struct shell_script script;

    shell_look(&mem, one->words, n, &script);
    *alone = is_alone(&script);
    for (size_t i = 0; i < script.n; i++)
        if (is_hit(&script.commands[i]))
            return true;
    return false;
}

static void check_one(const char *setup, const struct ran *one, const char *file)
{
    char folder[] = "/tmp/brig-option-XXXXXX";
    const char *const prepare[] = {"sh", "-ec", setup, NULL};
    const char *const clean[] = {"rm", "-rf", folder, NULL};
    bool alone, found, hit;
    size_t n = 0;

    while (one->words[n])
        n++;
    if (!mkdtemp(folder)) {
        test_fail(file, 0, "no folder");
        return;
    }
    CHECK_INT(run(folder, prepare), 0);
    CHECK(!has_hit(folder));
    (void)run(folder, one->words); /* how it ends says nothing: most of them end badly */
    hit = has_hit(folder);
    CHECK_INT(run("/", clean), 0);
    found = is_found(one, n, &alone);
    if (hit == one->not )
        test_fail(file, 0, "%s it: %s %s %s", hit ? "ran" : "did not run", one->words[0],
                  one->words[1], n > 2 ? one->words[2] : "");
    if (one->not ? !alone || found : !found)
        test_fail(file, 0, "%s: %s %s %s", found ? "found" : "not found", one->words[0],
                  one->words[1], n > 2 ? one->words[2] : "");
}

static void need(const char *program)
{
    const char *const words[] = {"sh", "-c", "command -v \"$0\"", program, NULL};

    if (run("/", words) != 0)
        test_skip(program);
}

#define PROG "printf '#!/bin/sh\\ntouch hit\\nexec cat\\n' > prog; chmod +x prog; "

#define CHECK_ALL(setup, cases)                                                                    \
    for (size_t i = 0; i < COUNT(cases); i++)                                                      \
    check_one(PROG setup, &(cases)[i], __FILE__)

TEST(git_runs_settings_and_commands)
{
    static const struct ran cases[] = {
        {{"git", "-c", "alias.x=!touch hit", "x"},                                    false},
        {{"git", "-c", "Alias.X=!touch hit", "x"},                                    false},
        {{"git", "-c", "alias.x=-c alias.y='!touch hit' y", "x"},                     false},
        {{"git", "-C", ".", "-c", "core.fsmonitor=touch hit", "status"},              false},
        {{"git", "-c", "core.editor=touch hit", "commit", "--allow-empty"},           false},
        {{"git", "-c", "sequence.editor=touch hit", "rebase", "-i", "--root"},        false},
        {{"git", "-c", "diff.external=touch hit", "diff", "HEAD~1", "HEAD"},          false},
        {{"git", "-c", "tar.x.command=touch hit", "archive", "--format=x", "HEAD"},   false},
        {{"git", "-c", "trailer.x.command=touch hit", "interpret-trailers", "--trailer", "x=1",
          "f"},
         false                                                                             },
        {{"git", "-c", "core.hooksPath=hooks", "commit", "--allow-empty", "-m", "x"}, false},
        {{"git", "-c", "include.path=~/included", "x"},                               false},
        {{"git", "-c", "protocol.ext.allow=always", "ls-remote", "ext::touch hit"},   false},
        {{"git", "--exec-path=exec", "x"},                                            false},
        {{"git", "rebase", "--root", "-x", "touch hit"},                              false},
        {{"git", "rebase", "--root", "-qxtouch hit"},                                 false},
        {{"git", "rebase", "--root", "--exe=touch hit"},                              false},
        {{"git", "ls-remote", "--upload-pack=touch hit;", "."},                       false},
        {{"git", "ls-remote", "--exec", "touch hit;", "."},                           false},
        {{"git", "clone", "-qu", "touch hit;", ".", "c"},                             false},
        {{"git", "push", "--receive-pack=touch hit;", ".", "HEAD:refs/heads/x"},      false},
        {{"git", "archive", "--remote=.", "--exec=touch hit;", "HEAD"},               false},
        {{"git", "grep", "-Otouch hit;", "one"},                                      false},
        {{"git", "difftool", "-yx", "touch hit", "HEAD~1", "HEAD"},                   false},
        {{"git", "filter-branch", "-f", "--tree-filter", "touch ../../hit", "HEAD"},  false},
        {{"git", "status"},                                                           true },
        {{"git", "-c", "color.ui=never", "log"},                                      true },
        {{"git", "-c", "core.pager=cat", "-p", "log"},                                true },
        {{"git", "-calias.x=!touch hit", "x"},                                        true },
        {{"git", "commit", "--allow-empty", "-m", "-c alias.x=!touch hit"},           true },
        {{"git", "grep", "-eO", "-eone"},                                             true },
    };

    need("git");
    CHECK_ALL("mkdir hooks exec; cp prog hooks/pre-commit; cp prog exec/git-x; "
              "printf '[alias]\\nx = !touch hit\\n' > included; "
              "git init -q .; echo one > f; git add f; git commit -qm 1; echo two >> f; "
              "git commit -qam 2",
              cases);
}

TEST(git_bisect_and_submodule_run_words)
{
    static const struct ran cases[] = {
        {{"git", "bisect", "run", "touch", "hit"}, false},
        {{"git", "bisect", "log"},                 true },
    };
    static const struct ran modules[] = {
        {{"git", "submodule", "foreach", "touch ../hit"},                              false},
        {{"git", "submodule", "--quiet", "foreach", "--recursive", "touch", "../hit"}, false},
        {{"git", "submodule", "status"},                                               true },
    };

    need("git");
    CHECK_ALL("git init -q .; for i in 1 2 3 4; do echo $i > f; git add f; git commit -qm $i; "
              "done; git bisect start HEAD HEAD~3",
              cases);
    CHECK_ALL("git init -q .; git init -q m; git -C m commit -q --allow-empty -m x; "
              "git -c protocol.file.allow=always submodule --quiet add ./m m",
              modules);
}

TEST(tar_runs_the_values_of_options)
{
    static const struct ran cases[] = {
        {{"tar", "-xf", "a.tar", "--to-command=touch hit"},                                false},
        {{"tar", "xf", "a.tar", "--to-c", "touch hit"},                                    false},
        {{"tar", "--checkpoint=1", "--checkpoint-action=exec=touch hit", "-cf", "b", "f"}, false},
        {{"tar", "--checkpoint=1", "--checkpoint-a", "exec=touch hit", "-cf", "b", "f"},   false},
        {{"tar", "cIf", "touch hit; cat", "b", "f"},                                       false},
        {{"tar", "cfI", "b", "touch hit; cat", "f"},                                       false},
        {{"tar", "-cItouch hit", "-f", "b", "f"},                                          false},
        {{"tar", "-cf", "b", "--use=touch hit", "f"},                                      false},
        {{"tar", "--file", "--", "--use=touch hit", "-c", "f"},                            false},
        {{"tar", "-xf", "a.tar"},                                                          true },
        {{"tar", "-xf", "a.tar", "--", "--to-command=touch hit"},                          true },
        {{"tar", "-cfI", "f"},                                                             true },
        {{"tar", "--checkpoint=1", "--checkpoint-action=dot", "-cf", "b", "f"},            true },
    };

    need("tar");
    CHECK_ALL("echo one > f; tar -cf a.tar f", cases);
}

TEST(make_runs_what_variables_and_options_say)
{
    static const struct ran cases[] = {
        {{"make", "X!=touch hit"},                         false},
        {{"make", "--", "X!=touch hit"},                   false},
        {{"make", "X=$(shell touch hit)"},                 false},
        {{"make", "Y:=${shell touch hit}"},                false},
        {{"make", "X ?= $(if 1,$(shell touch hit))"},      false},
        {{"make", "--eval=$(shell touch hit)"},            false},
        {{"make", "--ev", "$(shell touch hit)"},           false},
        {{"make", "-kE", "$(shell touch hit)"},            false},
        {{"make", "MAKEFLAGS=--eval=$(shell touch hit)"},  false},
        {{"make", ".SHELLFLAGS=-c 'touch hit';", "X=1"},   false},
        {{"make", "SHELL=./prog", "X=;:"},                 false},
        {{"make", "-j2", "all"},                           true },
        {{"make", "X=$(Y) -O2", "Z=$$(touch hit)", "all"}, true },
        {{"make", "SHELL=/bin/sh", "-C", ".", "all"},      true },
        {{"make", "$(shell touch hit)"},                   true },
    };

    need("make");
    CHECK_ALL("printf 'all:\\n\\t@echo $(X)\\n' > Makefile", cases);
}

TEST(sed_runs_what_its_scripts_say)
{
    static const struct ran cases[] = {
        {{"sed", "e touch hit", "f"},                         false},
        {{"sed", "1etouch hit", "f"},                         false},
        {{"sed", "-n", "s/.*/touch hit/e", "f"},              false},
        {{"sed", "-ne", "s,.*,touch hit,pe", "f"},            false},
        {{"sed", "--expr=1e touch hit", "f"},                 false},
        {{"sed", "f", "-e", "1e touch hit"},                  false},
        {{"sed", "--", "$!N;e touch hit", "f"},               false},
        {{"sed", "/o/I,$ e touch hit", "f"},                  false},
        {{"sed", "\\,o,{;e touch hit\n}", "f"},               false},
        {{"sed", "s/[/]/x/;e touch hit", "f"},                false},
        {{"sed", "y/[/]/;:a;e touch hit", "f"},               false},
        {{"sed", "ba;:a;e touch hit", "f"},                   false},
        {{"sed", "-e", "a x", "-e", "e touch hit", "f"},      false},
        {{"sed", "# x\n1~2e touch hit", "f"},                 false},
        {{"sed", "s/x/y/2;l 5;F;z;0,/x/e touch hit", "f"},    false},
        {{"sed", "-l", "5", "-i.e", "1,+2e touch hit", "f"},  false},
        {{"sed", "1e t\\ouch\\ hit", "f"},                    false},
        {{"sed", "s/a/b/", "f"},                              true },
        {{"sed", "-ie", "s/e/e/g", "f"},                      true },
        {{"sed", "s/[/]/e/;/[]/]e/d;s/[[:alpha:]/]/e/", "f"}, true },
        {{"sed", "-n", "/e/,/e/{/e/!p;s/e/[&]/2p}", "f"},     true },
        {{"sed", "ax;e touch hit", "f"},                      true },
        {{"sed", "-e", "a\\", "-e", "e touch hit", "f"},      true },
        {{"sed", "a\\\nfoo\\\ne touch hit", "f"},             true },
        {{"sed", ":e;N;$!be;s/\\n/,/g;te", "f"},              true },
        {{"sed", "s/x/y/w e touch hit", "f"},                 true },
        {{"sed", "1!G;h;$!d;10q", "f"},                       true },
    };

    need("sed");
    CHECK_ALL("printf 'one\\ntwo\\n' > f", cases);
}

TEST(sort_and_split_run_the_values_of_options)
{
    static const struct ran cases[] = {
        {{"sort", "-S", "100k", "--compress-program=./prog", "f"}, false},
        {{"sort", "-S", "100k", "f", "--co", "./prog"},            false},
        {{"split", "--filter=touch hit", "f"},                     false},
        {{"split", "f", "--filt", "touch hit"},                    false},
        {{"sort", "-S", "100k", "f"},                              true },
        {{"split", "-l", "100000", "f"},                           true },
    };

    need("sort");
    CHECK_ALL("seq 200000 > f", cases);
}

TEST(zip_runs_what_is_to_test_it)
{
    static const struct ran cases[] = {
        {{"zip", "a.zip", "f", "-T", "-TT", "touch hit"},         false},
        {{"zip", "a.zip", "f", "-T", "-rTT=touch hit"},           false},
        {{"zip", "a.zip", "f", "-T", "--unzip-com", "touch hit"}, false},
        {{"zip", "-r", "a.zip", "f"},                             true },
    };

    need("zip");
    CHECK_ALL("echo one > f", cases);
}

TEST(vim_runs_commands_behind_a_bang)
{
    static const struct ran cases[] = {
        {{"vim", "-es", "-c", "!touch hit", "-c", "q", "f"},      false},
        {{"vim", "-es", "--cmd", "silent !touch hit", "+q", "f"}, false},
        {{"vim", "-es", "+!touch hit", "+q", "f"},                false},
        {{"vim", "-es", "+call system('touch hit')", "+q", "f"},  false},
        {{"vim", "-es", "-c", "q", "f"},                          true },
        {{"vim", "-es", "+1", "+q", "f"},                         true },
    };

    need("vim");
    CHECK_ALL("echo one > f", cases);
}

TEST(cmake_runs_what_follows_some_of_its_commands)
{
    static const struct ran cases[] = {
        {{"cmake", "-E", "env", "--unset=B", "A=b", "touch", "hit"}, false},
        {{"cmake", "-E", "chdir", ".", "touch", "hit"},              false},
        {{"cmake", "-E", "time", "touch", "hit"},                    false},
        {{"cmake", "-E", "echo", "touch", "hit"},                    true },
    };

    need("cmake");
    CHECK_ALL("", cases);
}

TEST(install_and_prove_run_what_options_say)
{
    static const struct ran cases[] = {
        {{"install", "-s", "--strip-program=./prog", "f", "g"}, false},
        {{"install", "-s", "--strip-prog", "./prog", "f", "g"}, false},
        {{"install", "-m", "755", "f", "g"},                    true },
        {{"prove", "-e", "touch hit", "f"},                     false},
        {{"prove", "-qe", "touch hit", "f"},                    false},
        {{"prove", "--exec=touch hit", "f"},                    false},
        {{"prove", "-v", "f"},                                  true },
    };

    need("install");
    need("prove");
    CHECK_ALL("echo one > f", cases);
}

TEST(ssh_agent_runs_its_words)
{
    static const struct ran cases[] = {
        {{"ssh-agent", "-t", "1", "touch", "hit"}, false},
    };

    need("ssh-agent");
    CHECK_ALL("", cases);
}

TEST(ssh_and_scp_run_on_this_machine_what_options_say)
{
    static const struct ran cases[] = {
        {{"ssh", "-o", "ProxyCommand=touch hit", "h"},        false},
        {{"ssh", "-voproxycommand touch hit", "h", "ls"},     false},
        {{"ssh", "h", "-oProxyCommand=touch hit", "ls"},      false},
        {{"scp", "-o", "ProxyCommand=touch hit", "f", "h:x"}, false},
        {{"scp", "-qS./prog", "f", "h:x"},                    false},
        {{"scp", "f", "g"},                                   true },
    };

    need("scp");
    CHECK_ALL("echo one > f", cases);
}

/* The same programs for each of them that there is. */
static void check_awk(const char *const *awk, size_t n)
{
    static const struct ran cases[] = {
        {{"BEGIN { system(\"touch hit\") }"},                       false},
        {{"BEGIN { print \"touch hit\" | \"sh\" }"},                false},
        {{"BEGIN { printf \"%s\", \"touch hit\" |\"sh\" }"},        false},
        {{"BEGIN { \"touch hit\" | getline }"},                     false},
        {{"BEGIN { while ((\"touch hit\" | getline x) > 0) n++ }"}, false},
        {{"BEGIN { print > \"hit\" }"},                             false},
        {{"BEGIN { print 1 >> \"hit\" }"},                          false},
        {{"BEGIN { printf(\"\") > \"hit\" }"},                      false},
        {{"{ print>$1 }", "names"},                                 false},
        {{"-f", "prog.awk", "f"},                                   false},
        {{"-F:", "-fprog.awk", "f"},                                false},
        {{"-v", "x=1", "-f", "prog.awk", "f"},                      false},
        {{"--", "BEGIN { system(\"touch hit\") }"},                 false},
        {{"{ print }", "f", "-f", "prog.awk"},                      true },
        {{"{ print }", "-f", "prog.awk"},                           true },
        {{"{ print }", "x=1", "--", "-fprog.awk"},                  true },
        {{"--", "{ print }", "-fprog.awk"},                         true },
        {{"-v", "x=\"touch hit\" | getline", "{ print x }", "f"},   true },
        {{"-F", "|touch hit", "{ print $1 }", "f"},                 true },
        {{"{ print $1 }", "|touch hit"},                            true },
        {{"{ print $1 }", "touch hit|"},                            true },
        {{"{ print $1 }", "x=$(touch hit)", "f"},                   true },
        {{"$1 > \"hit\" || \"x\" > \"hit\" { print }", "f"},        true },
        {{"/touch hit|x/ { close(\"touch hit\"); print }", "f"},    true },
        {{"{ $0 = \"touch hit\"; close($0); print }", "f"},         true },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ran one = cases[i];

        memmove(one.words + n, one.words, (WORDS_MAX - n) * sizeof one.words[0]);
        memcpy(one.words, awk, n * sizeof one.words[0]);
        check_one(
            "echo one > f; echo hit > names; echo 'BEGIN { system(\"touch hit\") }' > prog.awk",
            &one, __FILE__);
    }
}

TEST(awk_runs_what_its_programs_say)
{
    static const char *const awk[] = {"awk"};

    need("awk");
    check_awk(awk, COUNT(awk));
}

TEST(mawk_runs_the_same)
{
    static const char *const awk[] = {"mawk"};

    need("mawk");
    check_awk(awk, COUNT(awk));
}

TEST(awk_of_busybox_runs_the_same)
{
    static const char *const awk[] = {"busybox", "awk"};

    need("busybox");
    check_awk(awk, COUNT(awk));
}

TEST(awk_of_gnu_runs_the_same)
{
    static const char *const awk[] = {"gawk"};

    need("gawk");
    check_awk(awk, COUNT(awk));
}

#define HIT_MODULE "data:text/javascript,import{writeFileSync}from'fs';writeFileSync('hit','')"

TEST(node_tests_files_but_loads_what_reports_from_anywhere)
{
    static const struct ran cases[] = {
        {{"node", "--test-reporter=" HIT_MODULE, "--test", "a.js"},                 false},
        {{"node", "--test", "--test-reporter", HIT_MODULE, "a.js"},                 false},
        {{"node", "--import", HIT_MODULE, "--test", "a.js"},                        false},
        {{"node", "--test", "--test-concurrency", "1", "--test-name-pattern", HIT_MODULE,
          "--test-timeout", "60000", "a.js", HIT_MODULE},
         true                                                                            },
        {{"node", "--test", "--test-shard", "1/1", "a.js", "--import", HIT_MODULE}, true },
    };

    need("node");
    CHECK_ALL("echo > a.js", cases);
}

TEST(find_runs_what_follows_exec)
{
    static const struct ran cases[] = {
        {{"find", ".", "-exec", "touch", "hit", ";"},                            false},
        {{"find", "f", "-exec", "cat", "{}", ";", "-exec", "touch", "hit", ";"}, false},
        {{"find", "./prog", "-exec", "{}", ";"},                                 false},
        {{"find", "script", "-exec", "sed", "-f", "{}", "f", ";"},               false},
        {{"find", ".", "-exec", "cat", "{}", "+"},                               true },
        {{"find", ".", "-exec", "grep", "touch hit", "{}", ";"},                 true },
    };

    need("find");
    CHECK_ALL("echo one > f; echo '1e touch hit' > script", cases);
}

TEST(xargs_runs_what_its_input_says_through_some_programs)
{
    static const struct ran cases[] = {
        {{"xargs", "-a", "sorted", "sort", "-S", "100k"}, false},
        {{"xargs", "-a", "script", "sed", "-n", "1p"},    false},
        {{"xargs", "-a", "program", "env"},               false},
        {{"xargs", "-a", "program", "-n1", "cat"},        true },
        {{"xargs", "-a", "program", "-I{}", "cat", "{}"}, true },
        {{"xargs", "-a", "script", "grep", "x"},          true },
    };

    need("xargs");
    need("sed");
    CHECK_ALL("seq 200000 > f; echo --compress-program=./prog f > sorted; "
              "echo '\"-e1e touch hit\" f' > script; echo ./prog > program",
              cases);
}

/* Those that are said to only read, each with options that make others run something. */
TEST(programs_that_only_read_run_nothing_with_any_option)
{
    static const char *const names[] = {
        "b2sum",    "basename", "cat",     "cksum",     "cmp",       "comm",      "cut",
        "dirname",  "du",       "echo",    "expand",    "fold",      "grep",      "head",
        "ls",       "md5sum",   "nl",      "od",        "paste",     "printf",    "readlink",
        "realpath", "rev",      "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum",
        "stat",     "sum",      "tac",     "tail",      "tr",        "unexpand",  "wc"};

    need("xargs");
    for (size_t i = 0; i < COUNT(names); i++) {
        const struct ran one = {
            {"xargs", "-a", "words", "-L1", names[i]},
            true
        };

        check_one(PROG "printf '%s\\n' '-e ./prog f' '-x ./prog f' '-c ./prog f' '-I ./prog f' "
                       "'-z f' '-o hit f' '-w hit f' 'f hit' '--output=hit f' '--pre=./prog f' "
                       "'--exec=./prog f' '--filter=./prog f' '--pager=./prog f' "
                       "'--compress-program=./prog f' '--to-command=./prog f' '-f f hit' > words; "
                       "echo one > f",
                  &one, __FILE__);
    }
}
