/* SPDX-License-Identifier: Apache-2.0 */

/* disk KIND COUNT: COUNT MiB (files, for "inodes") under /tmp, then waits to be found out. */

#include "attack.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define MIB ((size_t)1 << 20)

static char block[MIB];

static int file_at(long i, bool delete)
{
    char name[64];
    int fd;

    (void)snprintf(name, sizeof name, "/tmp/attack-%ld", i);
    fd = open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {
        answer("open", errno);
        exit(1);
    }
    if (delete)
        (void)unlink(name);
    return fd;
}

static void write_mib(int fd)
{
    if (write(fd, block, sizeof block) != (ssize_t)sizeof block) {
        answer("write", errno);
        exit(1);
    }
}

/* Who has heard that it is too much is still there when the disk is looked at, several times. */
static void one_file(long count)
{
    int fd = file_at(0, false);

    (void)signal(SIGXFSZ, SIG_IGN); /* hear it as an error */
    while (count-- && write(fd, block, sizeof block) == (ssize_t)sizeof block)
        continue;
    if (count < 0)
        return;
    answer("write", errno);
    (void)fflush(stdout);
    (void)sleep(1);
    exit(1);
}

static void many_files(long count)
{
    while (count--) {
        int fd = file_at(count, false);

        write_mib(fd);
        (void)close(fd);
    }
}

static void deep_files(long count)
{
    char name[] = "d";

    if (chdir("/tmp") < 0)
        exit(1);
    for (int depth = 0; depth < 300; depth++)
        if (mkdir(name, 0700) < 0 || chdir(name) < 0)
            exit(1);
    while (count--) {
        int fd = openat(AT_FDCWD, "f", O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);

        write_mib(fd);
        (void)close(fd);
        if (count % 8 == 0) { /* a single file has a limit of its own */
            char other[32];

            (void)snprintf(other, sizeof other, "f%ld", count);
            (void)rename("f", other);
        }
    }
}

/* A folder whose owner may not even look into it. */
static void locked_folder(long count)
{
    if (mkdir("/tmp/locked", 0700) < 0)
        exit(1);
    while (count--) {
        char name[64];
        int fd;

        (void)snprintf(name, sizeof name, "/tmp/locked/%ld", count);
        fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        write_mib(fd);
        (void)close(fd);
        if (count % 8 == 0 && chmod("/tmp/locked", 0300) < 0)
            exit(1);
    }
}

static void deleted_files(long count)
{
    while (count--)
        write_mib(file_at(count, true));
}

static void hidden_deleted_files(long count)
{
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    deleted_files(count);
}

/* Deleted and closed; a mapping keeps them. */
static void mapped_files(long count)
{
    while (count--) {
        int fd = file_at(count, true);

        write_mib(fd);
        if (mmap(NULL, MIB, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
            exit(1);
        (void)close(fd);
    }
}

static void files_in_flight(long count)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
        exit(1);
    while (count--) {
        union {
            struct cmsghdr head;
            char room[CMSG_SPACE(sizeof(int))];
        } control = {0};
        char byte = 0;
        struct iovec iov = {&byte, 1};
        struct msghdr message = {.msg_iov = &iov,
                                 .msg_iovlen = 1,
                                 .msg_control = &control,
                                 .msg_controllen = sizeof control};
        int fd = file_at(count, true);

        write_mib(fd);
        control.head = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
        if (sendmsg(pair[0], &message, 0) < 0)
            exit(1);
        (void)close(fd);
    }
}

/* Room without bytes: size 0, blocks taken. */
static void preallocated(long count)
{
    while (count--) {
        int fd = file_at(count, false);

        if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)MIB) < 0) {
            answer("fallocate", errno);
            exit(1);
        }
        (void)close(fd);
    }
}

static void inodes(long count)
{
    while (count--)
        (void)close(file_at(count, false));
}

static void deleted_inodes(long count)
{
    while (count--)
        (void)file_at(count, true);
}

static const struct {
    const char *name;
    void (*take)(long count);
} kinds[] = {
    {"one-file",       one_file            },
    {"many-files",     many_files          },
    {"deep-files",     deep_files          },
    {"locked-folder",  locked_folder       },
    {"deleted",        deleted_files       },
    {"hidden-deleted", hidden_deleted_files},
    {"mapped",         mapped_files        },
    {"in-flight",      files_in_flight     },
    {"preallocated",   preallocated        },
    {"inodes",         inodes              },
    {"deleted-inodes", deleted_inodes      },
};

int main(int argc, char **argv)
{
    if (argc != 4)
        usage("disk KIND COUNT SECONDS");
    memset(block, 1, sizeof block);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(argv[1], kinds[i].name) == 0) {
            kinds[i].take(atol(argv[2]));
            (void)printf("taken: %s\n", argv[1]);
            (void)fflush(stdout);
            (void)sleep((unsigned)atoi(argv[3]));
            (void)printf("kept: %s\n", argv[1]);
            return 0;
        }
    usage("disk KIND COUNT SECONDS");
}
