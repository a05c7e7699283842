/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define TESTS_MAX 512
#define SKIPPED 77
#define DEADLINE_S 400 /* most take none; the longest a minute, where nothing else goes on */

static struct {
    const char *name;
    void (*run)(void);
    const char *file;
    int line;
} tests[TESTS_MAX];

static unsigned count;
static bool failed;

void test_register(const char *name, void (*run)(void), const char *file, int line)
{
    if (count == TESTS_MAX)
        abort();
    tests[count].name = name;
    tests[count].run = run;
    tests[count].file = file;
    tests[count].line = line;
    count++;
}

void test_fail(const char *file, int line, const char *fmt, ...)
{
    va_list args;

    failed = true;
    (void)printf("# %s:%d: ", file, line);
    va_start(args, fmt);
    (void)vprintf(fmt, args);
    va_end(args);
    (void)printf("\n");
}

void test_skip(const char *why)
{
    (void)printf("# SKIPPED %s\n", why);
    (void)fflush(stdout);
    exit(SKIPPED);
}

void test_check_text(const char *file, int line, const char *what, const char *got,
                     const char *wanted)
{
    if (!got || !wanted ? got != wanted : strcmp(got, wanted) != 0)
        test_fail(file, line, "%s is \"%s\", should be \"%s\"", what, got ? got : "(null)",
                  wanted ? wanted : "(null)");
}

void test_check_int(const char *file, int line, const char *what, int64_t got, int64_t wanted)
{
    if (got != wanted)
        test_fail(file, line, "%s is %lld, should be %lld", what, (long long)got,
                  (long long)wanted);
}

static int run_forked(unsigned i)
{
    int status = 0;
    pid_t pid = fork();

    if (pid < 0)
        return -1;
    if (pid == 0) {
        (void)alarm(DEADLINE_S); /* a test that hangs is a failure, not a hanging suite */
        tests[i].run();
        (void)fflush(stdout);
        exit(failed ? 1 : 0); /* exit, not _exit: leak checks run at exit */
    }
    while (waitpid(pid, &status, 0) != pid)
        continue;
    return status;
}

int main(int argc, char **argv)
{
    bool all_passed = true;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)printf("1..%u\n", count);
    for (unsigned i = 0; i < count; i++) {
        int status;

        if (argc > 1 && strcmp(argv[1], tests[i].name) != 0) {
            (void)printf("ok %u %s # SKIP not asked for\n", i + 1, tests[i].name);
            continue;
        }
        status = run_forked(i);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
            (void)printf("ok %u %s\n", i + 1, tests[i].name);
        } else if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
            (void)printf("ok %u %s # SKIP\n", i + 1, tests[i].name);
        } else {
            (void)printf("not ok %u %s\n# %s:%d: status 0x%x\n", i + 1, tests[i].name,
                         tests[i].file, tests[i].line, (unsigned)status);
            all_passed = false;
        }
    }
    return all_passed ? 0 : 1;
}
