/* SPDX-License-Identifier: Apache-2.0 */

/* change DIR: every way to change the file DIR/file, its folder, or what is known of them. */

#include "attack.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

static void reopen(const char *name, int fd, int flags)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    (void)attempt(name, open(path, flags | O_CLOEXEC));
}

static void bytes(int dir, int fd)
{
    char *map;

    (void)attempt("open for writing", openat(dir, "file", O_WRONLY));
    (void)attempt("open for both", openat(dir, "file", O_RDWR));
    (void)attempt("open to append", openat(dir, "file", O_WRONLY | O_APPEND));
    (void)attempt("open to truncate", openat(dir, "file", O_RDONLY | O_TRUNC));
    reopen("reopen for writing", fd, O_RDWR);
    reopen("reopen to truncate", fd, O_RDONLY | O_TRUNC);
    (void)attempt("write", write(fd, "x", 1));
    (void)attempt("truncate", truncate("file", 0));
    (void)attempt("ftruncate", ftruncate(fd, 0));
    (void)attempt("fallocate", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1));
    (void)attempt("mmap shared for writing",
                  mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
    map = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
    (void)attempt("mprotect of a shared map", mprotect(map, 1, PROT_READ | PROT_WRITE));
    (void)attempt("copy_file_range", copy_file_range(fd, NULL, fd, NULL, 1, 0));
    (void)attempt("clone", ioctl(fd, FICLONE, fd));
}

static void names(int dir)
{
    (void)attempt("create", openat(dir, "new", O_CREAT | O_WRONLY, 0644));
    (void)attempt("create without a name", openat(dir, ".", O_TMPFILE | O_WRONLY, 0644));
    (void)attempt("mkdir", mkdirat(dir, "new", 0755));
    (void)attempt("mknod", mknodat(dir, "new", S_IFIFO | 0644, 0));
    (void)attempt("symlink", symlinkat("file", dir, "new"));
    (void)attempt("link beside", linkat(dir, "file", dir, "new", 0));
    (void)attempt("link away", linkat(dir, "file", AT_FDCWD, "/tmp/link", 0));
    (void)attempt("unlink", unlinkat(dir, "file", 0));
    (void)attempt("rename", renameat(dir, "file", dir, "new"));
    (void)attempt("rename away", renameat(dir, "file", AT_FDCWD, "/tmp/moved"));
    (void)attempt("exchange", renameat2(dir, "file", dir, "folder", RENAME_EXCHANGE));
    (void)attempt("rmdir", unlinkat(dir, "folder", AT_REMOVEDIR));
}

static void knowledge(int dir, int fd)
{
    struct timespec times[2] = {
        {1, 0},
        {1, 0}
    };
    struct utimbuf old = {1, 1};
    int flags = FS_NOATIME_FL;
    struct fsxattr extended = {.fsx_projid = 7};

    (void)attempt("chmod", chmod("file", 0666));
    (void)attempt("fchmod", fchmod(fd, 0666));
    (void)attempt("chmod of the folder", fchmod(dir, 0777));
    (void)attempt("chown", chown("file", getuid(), getgid()));
    (void)attempt("fchown", fchown(fd, getuid(), getgid()));
    (void)attempt("utimensat", utimensat(dir, "file", times, 0));
    (void)attempt("futimens", futimens(fd, times));
    (void)attempt("utimensat to now", utimensat(dir, "file", NULL, 0));
    (void)attempt("utime", utime("file", &old));
    (void)attempt("setxattr", fsetxattr(fd, "user.attack", "x", 1, 0));
    (void)attempt("setxattr of the folder", fsetxattr(dir, "user.attack", "x", 1, 0));
    (void)attempt("removexattr", fremovexattr(fd, "user.kept"));
    (void)attempt("attributes", ioctl(fd, FS_IOC_SETFLAGS, &flags));
    (void)attempt("extended attributes", ioctl(fd, FS_IOC_FSSETXATTR, &extended));
}

int main(int argc, char **argv)
{
    int dir, fd;
    char byte;

    if (argc != 2 || chdir(argv[1]) < 0)
        usage("change DIR");
    dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fd = openat(dir, "file", O_RDONLY | O_CLOEXEC);
    (void)attempt("read", read(fd, &byte, 1) == 1 ? 0 : -1);
    bytes(dir, fd);
    names(dir);
    knowledge(dir, fd);
    return 0;
}
