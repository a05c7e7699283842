/* SPDX-License-Identifier: Apache-2.0 */

/* execute memfd|deleted FILE...: runs a copy of FILE that has no name, or no longer. Where it
 * works the copy takes our place.
 * execute map PATH: maps PATH as code, as a loader would to run what cannot be executed. */

#include "attack.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

static int copy_to(int to, const char *from)
{
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    for (off_t done = 0; done < st.st_size;)
        if (sendfile(to, fd, &done, (size_t)(st.st_size - done)) <= 0)
            return -1;
    return to;
}

/* Open for writing it would be busy. */
static int for_reading(int fd)
{
    char path[64];
    int again;

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    again = open(path, O_RDONLY | O_CLOEXEC);
    (void)close(fd);
    return again;
}

int main(int argc, char **argv)
{
    int fd = -1;

    if (argc < 3)
        usage("execute memfd|deleted FILE... | map PATH");
    if (strcmp(argv[1], "map") == 0) {
        fd = open(argv[2], O_RDONLY | O_CLOEXEC);
        (void)attempt(
            "map", mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED ? -1 : 0);
        return 0;
    }
    if (strcmp(argv[1], "memfd") == 0) {
        fd = memfd_create("attack", MFD_CLOEXEC);
        if (fd < 0) {
            answer("memfd_create", errno);
            return 1;
        }
        fd = copy_to(fd, argv[2]);
    } else {
        fd = copy_to(open("/tmp/attack", O_RDWR | O_CREAT | O_CLOEXEC, 0755), argv[2]);
        (void)unlink("/tmp/attack");
    }
    fd = for_reading(fd);
    (void)attempt(argv[1], syscall(SYS_execveat, fd, "", argv + 2, environ, AT_EMPTY_PATH));
    return 1;
}
