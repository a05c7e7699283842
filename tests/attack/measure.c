/* SPDX-License-Identifier: Apache-2.0 */

/* measure FILE CMD...: runs it and writes its largest resident size in KiB to FILE. Runs outside;
 * what the command has waited for counts as well, so the figure is never too small. */

#include "attack.h"

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

int main(int argc, char **argv)
{
    struct rusage used;
    FILE *out;
    pid_t pid;
    int status = 0;

    if (argc < 3)
        usage("measure FILE CMD...");
    if (posix_spawnp(&pid, argv[2], NULL, NULL, argv + 2, environ) != 0 ||
        wait4(pid, &status, 0, &used) < 0)
        return 71;
    out = fopen(argv[1], "w");
    if (!out || fprintf(out, "%ld\n", used.ru_maxrss) < 0 || fclose(out) != 0)
        return 71;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
