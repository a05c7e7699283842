/* SPDX-License-Identifier: Apache-2.0 */

/* Runs a fuzz target over the files of a directory, each in a process of its own, and reports
 * them as TAP. An empty directory is a failure: a target without inputs tests nothing. */

#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "lib/base/attrs.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"

#define INPUT_MAX (1 * MIB)
#define DEADLINE_S 60

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int run_input(int dir_fd, const char *name)
{
    AUTO_BUF struct buf bytes = BUF(INPUT_MAX);
    AUTO_FREE uint8_t *exact = NULL;
    struct err err;

    if (file_read(dir_fd, name, &bytes, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    /* Nothing behind the last byte: a sanitizer sees who reads on. */
    exact = xmalloc(bytes.n + !bytes.n);
    memcpy(exact, buf_text(&bytes), bytes.n);
    return LLVMFuzzerTestOneInput(exact, bytes.n);
}

static int run_forked(int dir_fd, const char *name)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        (void)alarm(DEADLINE_S);
        exit(run_input(dir_fd, name)); /* exit, not _exit: leak checks run at exit */
    }
    while (pid > 0 && waitpid(pid, &status, 0) != pid)
        continue;
    return status;
}

static bool report(unsigned number, const char *name, int status)
{
    if (status == 0)
        (void)printf("ok %u %s\n", number, name);
    else
        (void)printf("not ok %u %s\n# status 0x%x\n", number, name, (unsigned)status);
    return status == 0;
}

int main(int argc, char **argv)
{
    AUTO_FD int dir_fd = -1;
    struct dirent **inputs = NULL;
    bool all_passed = true;
    int n;

    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
        return 64;
    }
    dir_fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    n = scandir(argv[1], &inputs, is_input, alphasort);
    if (dir_fd < 0 || n <= 0) {
        (void)printf("Bail out! no inputs in %s\n", argv[1]);
        return 1;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)printf("1..%d\n", n);
    for (int i = 0; i < n; i++) {
        if (!report((unsigned)i + 1, inputs[i]->d_name, run_forked(dir_fd, inputs[i]->d_name)))
            all_passed = false;
        free(inputs[i]);
    }
    free(inputs);
    return all_passed ? 0 : 1;
}
