/* SPDX-License-Identifier: Apache-2.0 */

/* memory KIND MIB: takes so much memory of a kind, then waits to see what happens.
 * What it says before the limit ends it is "taken: KIND". */

#include "attack.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define MIB ((size_t)1 << 20)
#define PATIENCE_S 20

static void fill(char *p, size_t n)
{
    if (p == MAP_FAILED) {
        answer("memory", errno);
        exit(1);
    }
    for (size_t i = 0; i < n; i += 4096)
        p[i] = 1;
}

static void map(size_t mib, int flags)
{
    /* In steps, so that what there is can be counted while it grows. */
    for (size_t i = 0; i < mib; i++)
        fill(mmap(NULL, MIB, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0), MIB);
}

static void write_mib(int fd)
{
    static char block[MIB];

    memset(block, 1, sizeof block);
    if (write(fd, block, sizeof block) != (ssize_t)sizeof block) {
        answer("write", errno);
        exit(1);
    }
}

static int memory_file(void)
{
    int fd = memfd_create("attack", MFD_CLOEXEC);

    if (fd < 0) {
        answer("memfd_create", errno);
        exit(1);
    }
    return fd;
}

static void take_anon(size_t mib)
{
    map(mib, MAP_PRIVATE);
}

static void take_shared(size_t mib)
{
    map(mib, MAP_SHARED);
}

/* Written to, never mapped: in no process's address space. */
static void take_memfd(size_t mib)
{
    int fd = memory_file();

    while (mib--)
        write_mib(fd);
}

/* The same by somebody whose descriptors others of its user cannot list. */
static void take_hidden_memfd(size_t mib)
{
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        answer("PR_SET_DUMPABLE", errno);
    take_memfd(mib);
}

/* On their way through a socket, in no process's table. */
static void take_memfd_in_flight(size_t mib)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
        exit(1);
    for (; mib; mib--) {
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
        int fd = memory_file();

        write_mib(fd);
        control.head = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
        if (sendmsg(pair[0], &message, 0) < 0) {
            answer("sendmsg", errno);
            exit(1);
        }
        (void)close(fd);
    }
}

/* A segment nobody is attached to. */
static void take_sysv(size_t mib)
{
    for (; mib; mib--) {
        int id = shmget(IPC_PRIVATE, MIB, IPC_CREAT | 0600);
        char *p = id < 0 ? MAP_FAILED : shmat(id, NULL, 0);

        fill(p, MIB);
        (void)shmdt(p);
    }
}

/* A file system in memory; has a size of its own, so this ends by ENOSPC at the latest. */
static void take_tmpfs(size_t mib)
{
    int fd = open("/dev/shm/attack", O_CREAT | O_RDWR, 0600);

    while (mib--)
        write_mib(fd);
}

static void take_stack(size_t mib)
{
    volatile char here[MIB / 16];

    for (size_t i = 0; i < sizeof here; i += 4096)
        here[i] = 1;
    if (mib * 16 > 1)
        take_stack(mib - 1);
    here[0] = here[1];
}

/* A file on disk, mapped and written through the map: page cache that cannot be dropped. */
static void take_private_file(size_t mib)
{
    int fd = open("/tmp/attack", O_CREAT | O_RDWR, 0600);

    for (size_t i = 0; i < mib; i++) {
        if (ftruncate(fd, (off_t)((i + 1) * MIB)) < 0)
            exit(1);
        fill(mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, (off_t)(i * MIB)), MIB);
    }
}

/* Every process small, all of them together large. */
static void take_by_many(size_t mib)
{
    bool small = mib <= 32;
    int status = 0;

    for (; mib >= 8; mib -= 8)
        if (fork() == 0) {
            map(8, MAP_PRIVATE);
            (void)sleep(small ? 0 : PATIENCE_S);
            _exit(0);
        }
    /* The kernel picks one of them; the others, and we, go with it. */
    if (waitpid(-1, &status, 0) > 0 && WIFSIGNALED(status))
        exit(1);
}

static const struct {
    const char *name;
    void (*take)(size_t mib);
} kinds[] = {
    {"anon",            take_anon           },
    {"shared",          take_shared         },
    {"memfd",           take_memfd          },
    {"hidden-memfd",    take_hidden_memfd   },
    {"memfd-in-flight", take_memfd_in_flight},
    {"sysv",            take_sysv           },
    {"tmpfs",           take_tmpfs          },
    {"stack",           take_stack          },
    {"private-file",    take_private_file   },
    {"many",            take_by_many        },
};

int main(int argc, char **argv)
{
    if (argc != 3)
        usage("memory KIND MIB");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(argv[1], kinds[i].name) == 0) {
            kinds[i].take((size_t)atoi(argv[2]));
            (void)printf("taken: %s\n", argv[1]);
            (void)fflush(stdout);
            /* Nothing to do but to be found out. */
            (void)sleep(atoi(argv[2]) > 32 ? PATIENCE_S : 0);
            (void)printf("kept: %s\n", argv[1]);
            return 0;
        }
    usage("memory KIND MIB");
}
