/* SPDX-License-Identifier: Apache-2.0 */

/* What a process claims to run, and what a file's content is. */

#include "cmd/box/box-identity.h"
#include "lib/linux/sys.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
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

/* ---- who calls ---- */

/* PID 1 of a sandbox, as far as this needs one: its command starts sleep, says its number, and
 * becomes another program when it is told. */
struct world {
    pid_t first, caller;
    int order; /* closed: become another */
    struct commands *commands;
};

static NORETURN void be_first(const int said[2], const int order[2], bool is_noted)
{
    pid_t pid;

    (void)close(order[1]);
    pid = fork();
    if (pid == 0) {
        if (is_noted)
            commands_note();
        (void)dup2(order[0], 0);
        (void)dup2(said[1], 1);
        (void)execl("/bin/bash", "bash", "-c",
                    "sleep 600 </dev/null >/dev/null & echo $!; read; exec perl -e '$| = 1; print "
                    "qq(x\n); sleep 600'",
                    (char *)NULL);
        _exit(1);
    }
    (void)waitpid(pid, NULL, 0);
    _exit(0);
}

/* To its end, or to that of whoever speaks. */
static void read_line(int fd, char *line, size_t size)
{
    size_t n = 0;

    while (n < size - 1 && read(fd, &line[n], 1) == 1 && line[n] != '\n')
        n++;
    line[n] = '\0';
}

static bool is_sleep(pid_t pid)
{
    char path[32], to[64];
    ssize_t n;

    (void)snprintf(path, sizeof path, "/proc/%d/exe", pid);
    n = readlink(path, to, sizeof to);
    return n > 0 && str_ends((struct str){to, (size_t)n}, "/sleep");
}

static int said[2];

static struct world make_world(bool is_noted)
{
    struct world world = {.first = -1};
    int order[2];
    char line[32];

    CHECK_INT(pipe2(said, O_CLOEXEC), 0);
    CHECK_INT(pipe2(order, O_CLOEXEC), 0);
    CHECK_INT(commands_make(&world.commands, &err), 0);
    commands_use(world.commands);
    world.first = fork();
    if (world.first == 0)
        be_first(said, order, is_noted);
    (void)close(order[0]);
    (void)close(said[1]);
    world.order = order[1];
    read_line(said[0], line, sizeof line);
    world.caller = (pid_t)atoi(line);
    CHECK(world.caller > 0);
    for (int i = 0; i < 30000 && !is_sleep(world.caller); i++)
        (void)usleep(1000); /* a shell between fork and exec */
    return world;
}

static void end_world(const struct world *world, pid_t command)
{
    CHECK_INT(kill(world->caller, SIGKILL), 0);
    CHECK_INT(kill(command, SIGKILL), 0);
    CHECK_INT(waitpid(world->first, NULL, 0), world->first);
    (void)close(said[0]);
}

static pid_t parent_of(pid_t pid)
{
    struct process_facts facts = {.parent = -1};
    char path[32];

    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    CHECK(facts_read(AT_FDCWD, path, &facts));
    return facts.parent;
}

/* The last word of its path. */
static const char *name_of(const struct handover_program *program, char out[64])
{
    size_t at = program->path.n;

    while (at > 0 && program->path.p[at - 1] != '/')
        at--;
    (void)snprintf(out, 64, "%.*s", (int)(program->path.n - at), program->path.p + at);
    return out;
}

static struct identity *identity_of(const struct world *world, bool by_folder)
{
    struct identity *identity = calloc(1, sizeof *identity);

    CHECK(identity != NULL);
    identity_init(identity, world->first, world->commands);
    identity->by_folder = by_folder;
    return identity;
}

static int see(struct identity *identity, pid_t pid)
{
    return identity_see(identity, pid, identity->by_folder ? -1 : pidfd_open(pid, 0));
}

static void check_seen(struct identity *identity, const struct world *world, const char *parent)
{
    char name[64];

    CHECK_INT(see(identity, world->caller), 0);
    CHECK_INT(identity->caller.flags, 0);
    CHECK_TEXT(name_of(&identity->caller.exe, name), "sleep");
    CHECK_INT(identity->caller.ancestor_n, 1);
    CHECK_TEXT(name_of(&identity->caller.ancestors[0], name), parent);
    CHECK(identity->caller.ancestors[0].flags & HANDOVER_HASHED);
}

/* Newer kernels tell of a process by its descriptor, older ones in its folder alone. What is
 * remembered of a process must not outlive what it was. */
TEST(who_calls_is_seen_alike_by_descriptor_and_by_folder)
{
    for (int by_folder = 0; by_folder < 2; by_folder++) {
        struct world world = make_world(true);
        struct identity *identity = identity_of(&world, by_folder);
        pid_t command = parent_of(world.caller);
        char line[8];

        for (int i = 0; i < 3; i++)
            check_seen(identity, &world, "bash");
        CHECK_INT(close(world.order), 0);
        read_line(said[0], line, sizeof line);
        CHECK_TEXT(line, "x");
        for (int i = 0; i < 3; i++)
            check_seen(identity, &world, "perl");
        end_world(&world, command);
        free(identity);
    }
}

TEST(a_command_that_nobody_noted_is_lost_by_either)
{
    for (int by_folder = 0; by_folder < 2; by_folder++) {
        struct world world = make_world(false);
        struct identity *identity = identity_of(&world, by_folder);

        for (int i = 0; i < 3; i++) {
            CHECK_INT(see(identity, world.caller), 0);
            CHECK_INT(identity->caller.flags, CALLER_ANCESTOR_LOST);
        }
        end_world(&world, parent_of(world.caller));
        free(identity);
    }
}

TEST(one_whose_parent_ended_is_lost_though_it_was_known)
{
    for (int by_folder = 0; by_folder < 2; by_folder++) {
        struct world world = make_world(true);
        struct identity *identity = identity_of(&world, by_folder);
        pid_t command = parent_of(world.caller);

        check_seen(identity, &world, "bash");
        CHECK_INT(kill(command, SIGKILL), 0);
        CHECK_INT(waitpid(world.first, NULL, 0), world.first);
        CHECK_INT(see(identity, world.caller), 0);
        CHECK_INT(identity->caller.flags, CALLER_ANCESTOR_LOST);
        CHECK_INT(kill(world.caller, SIGKILL), 0);
        free(identity);
    }
}

/* On a kernel that has it, so that what is quick is what was tested. */
TEST(a_descriptor_says_what_the_folder_says)
{
    int fd = pidfd_open(getpid(), 0);
    struct pidfd_facts facts, again;

    if (sys_pidfd_facts(fd, &facts) < 0)
        test_skip("this kernel says nothing by the descriptor of a process");
    CHECK_INT(facts.process, getpid());
    CHECK_INT(facts.parent, getppid());
    CHECK(facts.serial != 0);
    CHECK_INT(sys_pidfd_facts(pidfd_open(getpid(), 0), &again), 0);
    CHECK(again.serial == facts.serial);
    CHECK_INT(sys_pidfd_facts(pidfd_open(getppid(), 0), &again), 0);
    CHECK(again.serial != facts.serial);
    CHECK_INT(sys_pidfd_facts(open("/", O_RDONLY | O_CLOEXEC), &again), -1);
}
