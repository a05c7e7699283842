/* SPDX-License-Identifier: Apache-2.0 */

/* open read|write PATH...: opens each, and for "read" reads a byte.
 * open write-below DIR: tries every file there; says how many gave in. */

#include "attack.h"

#include <fcntl.h>
#include <ftw.h>

static long tried, opened;

static int try_write(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    int fd;

    (void)st;
    (void)where;
    if (kind != FTW_F)
        return 0;
    tried++;
    fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return 0;
    opened++;
    (void)printf("%s: worked\n", path);
    (void)close(fd);
    return 0;
}

static void try(const char *path, bool write)
{
    char byte;
    int fd = open(path, (write ? O_WRONLY : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 || write ? 1 : read(fd, &byte, 1);

    if (fd < 0 || n < 0)
        answer(path, errno);
    else if (n == 0)
        (void)printf("%s: empty\n", path);
    else
        answer(path, 0);
    if (fd >= 0)
        (void)close(fd);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "write-below") == 0) {
        (void)nftw(argv[2], try_write, 16, FTW_PHYS);
        (void)printf("tried %s, opened %ld\n", tried > 100 ? "many" : "few", opened);
        return 0;
    }
    if (argc < 3)
        usage("open read|write PATH... | write-below DIR");
    for (int i = 2; i < argc; i++)
        try(argv[i], strcmp(argv[1], "write") == 0);
    return 0;
}
