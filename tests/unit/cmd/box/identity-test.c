/* SPDX-License-Identifier: Apache-2.0 */

/* What a process claims to run, and what a file's content is. */

#include "cmd/box/box-identity.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct err err;

/* ---- scripts ---- */

TEST(the_script_is_the_first_word_that_is_no_option)
{
    static const struct {
        const char *exe, *words; /* words end in a blank, which stands for NUL */
        enum script claim;
        const char *script;
    } cases[] = {
        {"/usr/bin/curl",       "curl x ",                   SCRIPT_NONE,    ""       },
        {"/usr/bin/shellcheck", "shellcheck x ",             SCRIPT_NONE,    ""       },
        {"/usr/bin/pythonic",   "pythonic x ",               SCRIPT_NONE,    ""       },
        {"",                    "sh x ",                     SCRIPT_NONE,    ""       },
        {"/usr/bin/python3.11", "python a.py b ",            SCRIPT_CLAIMED, "a.py"   },
        {"/usr/bin/python3",    "anything /x/a.py ",         SCRIPT_CLAIMED, "/x/a.py"},
        {"/usr/bin/python3",    "python3 -u -W error a.py ", SCRIPT_CLAIMED, "a.py"   },
        {"/usr/bin/python3",    "python3 -Werror a.py ",     SCRIPT_CLAIMED, "a.py"   },
        {"/usr/bin/python3",    "python3 -c code a.py ",     SCRIPT_UNKNOWN, ""       },
        {"/usr/bin/python3",    "python3 -Ic code ",         SCRIPT_UNKNOWN, ""       },
        {"/usr/bin/python3",    "python3 -m http.server ",   SCRIPT_UNKNOWN, ""       },
        {"/usr/bin/python3",    "python3 ",                  SCRIPT_UNKNOWN, ""       },
        {"/usr/bin/python3",    "python3 - x ",              SCRIPT_UNKNOWN, ""       },
        {"/usr/bin/python3",    "",                          SCRIPT_UNKNOWN, ""       },
        {"/usr/bin/dash",       "sh -e ./run ",              SCRIPT_CLAIMED, "./run"  },
        {"/usr/bin/dash",       "sh -- -odd ",               SCRIPT_CLAIMED, "-odd"   },
        {"/usr/bin/dash",       "sh -- ",                    SCRIPT_UNKNOWN, ""       },
        {"/usr/bin/bash",       "bash +x -o pipefail run ",  SCRIPT_CLAIMED, "run"    },
        {"/usr/bin/bash",       "bash --norc run ",          SCRIPT_CLAIMED, "run"    },
        {"/usr/bin/bash",       "bash --rcfile f run ",      SCRIPT_CLAIMED, "run"    },
        {"/usr/bin/bash",       "bash -lc run ",             SCRIPT_UNKNOWN, ""       },
        {"/usr/bin/perl",       "perl -w -I lib x.pl ",      SCRIPT_CLAIMED, "x.pl"   },
        {"/usr/bin/perl",       "perl -Ilib x.pl ",          SCRIPT_CLAIMED, "x.pl"   },
        {"/usr/bin/perl",       "perl -ne code x ",          SCRIPT_UNKNOWN, ""       },
        {"/usr/bin/node",       "node --require a b.js ",    SCRIPT_CLAIMED, "b.js"   },
        {"/usr/bin/node",       "node --inspect=1 b.js ",    SCRIPT_CLAIMED, "b.js"   },
        {"/usr/bin/node",       "node --eval code ",         SCRIPT_UNKNOWN, ""       },
        {"/usr/bin/node",       "node --eval=code b.js ",    SCRIPT_UNKNOWN, ""       },
        {"/usr/bin/node",       "node -p 1 ",                SCRIPT_UNKNOWN, ""       },
        {"/bin/busybox",        "wget http://x ",            SCRIPT_UNKNOWN, ""       },
        {"/usr/bin/java",       "java -jar x.jar ",          SCRIPT_UNKNOWN, ""       },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char words[64];
        struct str claim = {"", 0};
        char text[64];

        (void)snprintf(words, sizeof words, "%s", cases[i].words);
        for (char *p = words; *p; p++)
            if (*p == ' ')
                *p = '\0';
        CHECK_INT(
            script_claim(str_of(cases[i].exe), (struct str){words, strlen(cases[i].words)}, &claim),
            cases[i].claim);
        (void)snprintf(text, sizeof text, STR_FMT, STR_ARG(claim));
        CHECK_TEXT(text, cases[i].script);
    }
}

/* ---- contents ---- */

static struct contents contents;

static int make_file(const char *text)
{
    char path[] = "/tmp/brig-content-XXXXXX";
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(write(fd, text, strlen(text)), strlen(text));
    return fd;
}

static bool hash_fd(int fd, struct hash *out)
{
    struct stat st;
    char path[32];

    CHECK_INT(fstat(fd, &st), 0);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return content_hash(&contents, AT_FDCWD, path, &st, out);
}

static void check_hash(const struct hash *got, const char *text)
{
    struct hash wanted;

    hash_of(str_of(text), &wanted);
    CHECK(memcmp(got, &wanted, sizeof wanted) == 0);
}

/* Same inode, size, time of modification, and time of change as exact as the file system has it:
 * only that it is fresh tells. */
TEST(a_file_changed_a_moment_ago_is_hashed_again)
{
    static const struct timeval long_ago[2] = {
        {1, 0},
        {1, 0}
    };
    int fd = make_file("one");
    struct hash hash;

    for (int i = 0; i < 50; i++) {
        const char *text = i % 2 ? "two" : "one";

        CHECK_INT(pwrite(fd, text, 3, 0), 3);
        CHECK_INT(futimes(fd, long_ago), 0);
        CHECK(hash_fd(fd, &hash));
        check_hash(&hash, text);
    }
}

TEST(a_file_that_stays_the_same_is_hashed_once)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct hash first, again;
    uint64_t hashed;
    struct stat st;

    CHECK_INT(fstat(fd, &st), 0);
    if (time(NULL) - st.st_ctim.tv_sec < 5)
        test_skip("this program was built a moment ago");
    CHECK(hash_fd(fd, &first));
    hashed = contents.hashed_bytes;
    CHECK_INT(hashed, st.st_size);
    CHECK(hash_fd(fd, &again));
    CHECK_INT(contents.hashed_bytes, hashed);
    CHECK(memcmp(&first, &again, sizeof first) == 0);
}

TEST(what_has_no_content_has_no_hash)
{
    struct hash hash;
    int pipes[2];

    CHECK(!hash_fd(make_file(""), &hash));
    CHECK_INT(pipe(pipes), 0);
    CHECK(!hash_fd(pipes[0], &hash));
    CHECK(!hash_fd(open("/dev/zero", O_RDONLY | O_CLOEXEC), &hash));
    CHECK(!hash_fd(open("/", O_RDONLY | O_CLOEXEC), &hash));
}

TEST(what_is_too_large_has_no_hash)
{
    struct hash hash;
    int fd = make_file("x");

    CHECK_INT(ftruncate(fd, CONTENT_FILE_MAX + 1), 0);
    CHECK(!hash_fd(fd, &hash));
}

TEST(nobody_has_us_hash_without_end)
{
    struct hash hash;
    int fd = make_file("x");
    int hashed = 0;

    contents.window_us = 0;
    CHECK(hash_fd(fd, &hash)); /* opens a window */
    contents.hashed_bytes = (1UL << 30) - 3;
    for (int i = 0; i < 5; i++)
        hashed += hash_fd(fd, &hash);
    CHECK_INT(hashed, 3);
}

/* ---- processes ---- */

TEST(a_process_is_read_whatever_its_name)
{
    struct process_facts facts = {.parent = 0};
    pid_t pid = fork();
    char path[32];
    int dir, status;

    if (pid == 0) {
        int fd = open("/proc/self/comm", O_WRONLY);

        _exit(write(fd, ") R 1 1 1 (", 11) == 11 &&
                      facts_read(AT_FDCWD, "/proc/self/stat", &facts) &&
                      facts.parent == getppid() && facts.flags & 0x40 && facts.started > 0
                  ? 0
                  : 1);
    }
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK_INT(status, 0);
    (void)snprintf(path, sizeof path, "/proc/%d", getpid());
    dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK_INT(facts_inner_pid(dir), getpid());
    CHECK(facts_read(dir, "stat", &facts));
    CHECK_INT(facts.parent, getppid());
    CHECK(!facts_read(dir, "nothing", &facts));
}

TEST(commands_are_those_that_were_noted)
{
    struct commands *commands = NULL;
    struct process_facts facts;
    int status;
    pid_t pid;

    commands_note(); /* nobody asked: nothing happens */
    CHECK_INT(commands_make(&commands, &err), 0);
    commands_use(commands);
    pid = fork();
    if (pid == 0) {
        commands_note();
        _exit(facts_read(AT_FDCWD, "/proc/self/stat", &facts) &&
                      commands_has(commands, getpid(), facts.started) &&
                      !commands_has(commands, getpid(), facts.started + 1)
                  ? 0
                  : 1);
    }
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK_INT(status, 0);
    CHECK(facts_read(AT_FDCWD, "/proc/self/stat", &facts));
    CHECK(!commands_has(commands, getpid(), facts.started));
    CHECK(!commands_has(commands, -1, 0));
}
