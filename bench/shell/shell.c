/* SPDX-License-Identifier: Apache-2.0 */

/* What a shell text costs to be read, from 1 KiB to 1 MiB, ordinary and hostile; next to it
 * `bash -n` and `dash -n`, which only parse, without what the processes cost to start. All of it
 * in processor time, which moves less than the wall clock where the machine is shared. */

#include "common.h"

#include "lib/base/limits.h"
#include "lib/shell/shell.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#define SAMPLES_MAX 2001
#define PEER_SAMPLES 5

/* A text is `first`, then `again` as often as it fits, then `last` once; or, with `most`, each at
 * most so often. */
struct shape {
    const char *name;
    const char *first;
    const char *again;
    const char *last;
    unsigned most; /* 0: until it is full */
};

/* clang-format off */
static const struct shape shapes[] = {
    {"commands",      "",        "git -C \"$dir\" commit -m 'fix: a thing' --quiet && make test | tee log.txt\n", "", 0},
    {"plain words",   "ls",      " some/path/file.c", "", 0},
    {"quoted words",  "ls",      " 'a b' \"c d\" e\\ f", "", 0},
    {"functions",     "",        "f() { if a; then b; else c; fi; }\n", "", 0},
    {"heredoc",       "cat <<E\n", "some text with $X and `b c` in a line of its own\n", "E\n", 0},
    {"base64",        "echo '",  "cm0gLXJmIHggICAg", "' | base64 -d | sh", 0},
    {"sh -c",         "sh -c '", "make test; ", "'", 0},
    {"nested $(",     "a ",      "$(a ", ")", 60},
    {"many $(",       "a",       " $(a $(b $(c)))", "", 0},
    {"open $(",       "a ",      "$(", "", 0},
    {"backquotes",    "a",       " `b c`", "", 0},
    {"open braces",   "a ",      "{", "", 0},
    {"braces",        "a",       " {a,b}{c,d}{e,f}", "", 0},
    {"one brace word","a ",      "{a,b}", "", 0},
    {"variables",     "V=0123456789abcdef0123456789abcdef;a ", "$V$V$V$V", "", 0},
    {"assignments",   "",        "V=x;W=$V;", "", 0},
    {"heredocs",      "",        "a <<E\nE\n", "", 0},
    {"pending heredocs", "a",    " <<E", "", 0},
    {"near-delimiters", "cat <<AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB\n", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB\n", 0},
    {"carriers",      "",        "env nice nohup env nice nohup env nice a\n", "", 0},
    {"eval in eval",  "",        "eval eval eval eval eval eval eval a\n", "", 0},
    {"options",       "",        "tar -xf a --to-command='rm x'; sed 's/a/b/;e rm y' f; git -c alias.x='!rm z' x\n", "", 0},
    {"option letters", "make -", "k", "", 0},
    {"continued lines", "a",     "\\\n", "", 0},
    {"ands",          "a",       "&&V=x", "", 0},
};
/* clang-format on */

/* As much of the shape as fits into size bytes. */
static char *fill(const struct shape *shape, size_t size, size_t *n)
{
    char *text = calloc(1, size + 4096);
    size_t first = strlen(shape->first), again = strlen(shape->again), last = strlen(shape->last);
    size_t times = 0, at = first;

    if (!text)
        give_up("memory", shape->name);
    memcpy(text, shape->first, first);
    while (at + again + last * (shape->most ? times + 1 : 1) <= size &&
           (!shape->most || times < shape->most)) {
        memcpy(text + at, shape->again, again);
        at += again;
        times++;
    }
    for (size_t i = 0; i < (shape->most ? times : 1); i++, at += last)
        memcpy(text + at, shape->last, last);
    *n = at;
    return text;
}

static uint64_t cpu_ns(void)
{
    struct timespec t;

    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) < 0)
        give_up("clock", "no processor time");
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static uint64_t time_once(const char *text, size_t n, bool *refused, size_t *found)
{
    AUTO_ARENA struct arena mem = ARENA(SHELL_MEMORY_MAX);
    struct shell_script script = {NULL, 0};
    struct err err;
    uint64_t start = cpu_ns();

    *refused = shell_read(&mem, (struct str){text, n}, SHELL_ANY, &script, &err) < 0;
    *found = script.n;
    return cpu_ns() - start;
}

static double read_us(const char *text, size_t n, bool *refused, size_t *found)
{
    static uint64_t ns[SAMPLES_MAX];
    size_t samples = n <= 64 * KIB ? 501 : 15;

    for (size_t i = 0; i < samples; i++)
        ns[i] = time_once(text, n, refused, found);
    sort_ns(ns, samples);
    return (double)ns[samples / 2] / 1000;
}

/* ---- peers ---- */

static uint64_t run_peer(const char *shell, const char *path)
{
    char *argv[] = {(char *)(uintptr_t)shell, (char *)(uintptr_t) "-n", (char *)(uintptr_t)path,
                    NULL};
    char *env[] = {NULL};
    posix_spawn_file_actions_t actions;
    struct rusage used;
    pid_t pid;

    if (posix_spawn_file_actions_init(&actions) != 0 ||
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0) != 0 ||
        posix_spawn(&pid, shell, &actions, NULL, argv, env) != 0)
        give_up(shell, "cannot be started");
    (void)posix_spawn_file_actions_destroy(&actions);
    if (wait4(pid, NULL, 0, &used) != pid)
        give_up(shell, "cannot be waited for");
    return ((uint64_t)used.ru_utime.tv_sec + (uint64_t)used.ru_stime.tv_sec) * 1000000000U +
           ((uint64_t)used.ru_utime.tv_usec + (uint64_t)used.ru_stime.tv_usec) * 1000U;
}

static double peer_us(const char *shell, const char *text, size_t n)
{
    char path[] = "/tmp/bench-shell-XXXXXX";
    uint64_t ns[PEER_SAMPLES], empty[PEER_SAMPLES];
    int fd = mkstemp(path);

    if (fd < 0 || write(fd, text, n) != (ssize_t)n || close(fd) < 0)
        give_up(path, "cannot be written");
    for (size_t i = 0; i < PEER_SAMPLES; i++) {
        empty[i] = run_peer(shell, "/dev/null");
        ns[i] = run_peer(shell, path);
    }
    (void)unlink(path);
    sort_ns(ns, PEER_SAMPLES);
    sort_ns(empty, PEER_SAMPLES);
    return ns[PEER_SAMPLES / 2] > empty[PEER_SAMPLES / 2]
               ? (double)(ns[PEER_SAMPLES / 2] - empty[PEER_SAMPLES / 2]) / 1000
               : 0;
}

static void measure(const struct shape *shape, const size_t *sizes, size_t count)
{
    double first_per_byte = 0;

    for (size_t i = 0; i < count; i++) {
        size_t n, found;
        bool refused;
        AUTO_FREE char *text = fill(shape, sizes[i], &n);
        double us = read_us(text, n, &refused, &found);
        double per_byte = us * 1000 / (double)n;

        if (i == 0)
            first_per_byte = per_byte;
        (void)printf("%-17s %8zu %7zu %10.1f %8.2f %7.2f", shape->name, n, found, us, per_byte,
                     per_byte / first_per_byte);
        if (!refused && (i + 1 == count || i == 0)) /* what is refused, some parse for minutes */
            (void)printf(" %10.0f %10.0f", peer_us("/bin/dash", text, n),
                         peer_us("/bin/bash", text, n));
        (void)printf("%s\n", refused ? "   refused" : "");
        (void)fflush(stdout);
        if (shape->most)
            break;
    }
}

/* One text, read once: what a profiler is started on, and how much memory it takes. */
static int read_one(const char *name, const char *size)
{
    for (size_t i = 0; i < COUNT(shapes); i++) {
        AUTO_ARENA struct arena mem = ARENA(SHELL_MEMORY_MAX);
        struct shell_script script = {NULL, 0};
        struct err err = {.text = ""};
        AUTO_FREE char *text = NULL;
        size_t n;

        if (strcmp(shapes[i].name, name) != 0)
            continue;
        text = fill(&shapes[i], strtoul(size, NULL, 10), &n);
        if (shell_read(&mem, (struct str){text, n}, SHELL_ANY, &script, &err) < 0)
            script.n = 0;
        (void)printf("%zu bytes, %zu commands, %zu bytes of memory; %s\n", n, script.n, mem.used,
                     err.text);
        return 0;
    }
    give_up(name, "no such shape");
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {1 * KIB, 16 * KIB, 128 * KIB, 1 * MIB};

    if (argc == 3)
        return read_one(argv[1], argv[2]);
    (void)printf("%-17s %8s %7s %10s %8s %7s %10s %10s\n", "shape", "bytes", "found", "us p50",
                 "ns/byte", "x 1 KiB", "dash -n us", "bash -n us");
    for (size_t i = 0; i < COUNT(shapes); i++)
        measure(&shapes[i], sizes, COUNT(sizes));
    return 0;
}
