/* SPDX-License-Identifier: Apache-2.0 */

/* set-id DIR: every way to make a file in DIR that runs as somebody else. */

#include "attack.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/xattr.h>

static const struct {
    const char *name;
    unsigned bit;
} bits[] = {
    {"set-user-id",  S_ISUID},
    {"set-group-id", S_ISGID},
};

static int fresh(int dir)
{
    (void)unlinkat(dir, "file", 0);
    return openat(dir, "file", O_RDWR | O_CREAT | O_CLOEXEC, 0755);
}

/* What counts is the mode the file has in the end, whatever the call answered. */
static void judge(const char *how, const char *which, int dir, const char *name, long result)
{
    int error = errno;
    struct stat st;
    char line[128];

    (void)snprintf(line, sizeof line, "%s by %s", which, how);
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_mode & (S_ISUID | S_ISGID))
        (void)printf("%s: THE FILE HAS MODE %o\n", line, st.st_mode & 07777U);
    else
        answer(line, result < 0 ? error : 0);
    (void)unlinkat(dir, name, 0);
}

static void without_a_name(const char *which, int dir, unsigned mode)
{
    char path[64];
    long fd = syscall(SYS_openat, dir, ".", O_TMPFILE | O_RDWR, mode);
    int error = errno;

    if (fd >= 0) {
        (void)snprintf(path, sizeof path, "/proc/self/fd/%ld", fd);
        (void)!linkat(AT_FDCWD, path, dir, "tmpfile", AT_SYMLINK_FOLLOW);
        (void)close((int)fd);
    }
    errno = error;
    judge("O_TMPFILE", which, dir, "tmpfile", fd);
}

static void try_all(const char *which, int dir, unsigned mode)
{
    int fd = fresh(dir);
    long result;

    judge("fchmod", which, dir, "file", syscall(SYS_fchmod, fd, mode));
    (void)close(fd);
    (void)close(fresh(dir));
    judge("fchmodat", which, dir, "file", syscall(SYS_fchmodat, dir, "file", mode));
    (void)close(fresh(dir));
    judge("fchmodat2", which, dir, "file", syscall(452, dir, "file", mode, 0));
#ifdef SYS_chmod
    (void)close(fresh(dir));
    judge("chmod", which, dir, "file", syscall(SYS_chmod, "file", mode));
    judge("creat", which, dir, "file", syscall(SYS_creat, "file", mode));
    judge("open", which, dir, "file", syscall(SYS_open, "file", O_CREAT | O_WRONLY, mode));
    judge("mknod", which, dir, "file", syscall(SYS_mknod, "file", S_IFREG | mode, 0));
#endif
    result = syscall(SYS_openat, dir, "file", O_CREAT | O_WRONLY, mode);
    judge("openat", which, dir, "file", result);
    result = syscall(SYS_openat, dir, "file", O_CREAT | O_WRONLY, mode | 1UL << 32);
    judge("openat with high bits", which, dir, "file", result);
    judge("mknodat", which, dir, "file", syscall(SYS_mknodat, dir, "file", S_IFREG | mode, 0));
    without_a_name(which, dir, mode);
    (void)syscall(SYS_mkdirat, dir, "dir", mode); /* the kernel drops the bit itself */
    judge("mkdir", which, dir, "dir", 0);
    (void)unlinkat(dir, "dir", AT_REMOVEDIR);
}

int main(int argc, char **argv)
{
    /* version 2, effective, cap_setuid */
    static const unsigned capability[] = {0x02000001, 1U << 7, 0, 0, 0};
    int dir, fd;

    if (argc != 2 || chdir(argv[1]) < 0)
        usage("set-id DIR");
    (void)umask(0);
    dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++)
        try_all(bits[i].name, dir, bits[i].bit | 0755U);
    fd = fresh(dir);
    (void)attempt("a file capability",
                  fsetxattr(fd, "security.capability", capability, sizeof capability, 0));
    (void)attempt("an ordinary mode", fchmod(fd, 01755));
    return 0;
}
