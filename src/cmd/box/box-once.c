/* SPDX-License-Identifier: Apache-2.0 */

/* One program and no other: from its first instruction on, a command that may only advise runs
 * nothing else. Not a file, whoever made it and wherever it lies, not a descriptor, not a loader.
 *
 * The filter lets execve() through when its sixth register holds a word that was drawn when the
 * walls were built. The call has three arguments; the kernel hands a filter all six registers.
 * Whoever starts the command knows the word, calls with it, and what it becomes begins with empty
 * registers and new memory; PID 1 forgets it then: nobody inside can know it.
 *
 * Every other call waits until outer has counted and refused it (box-attempts.c). With outer gone
 * the kernel refuses it by itself. A listener could also let it go on, and of two the kernel asks
 * the one whose filter came last: nobody inside makes one. */

#include "cmd/box/box.h"

#include "lib/linux/process.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORD_AT (offsetof(struct seccomp_data, args) + 5 * sizeof(uint64_t))

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the halves of the word are the other way round here"
#endif

static uint64_t word;
static bool stands; /* and the word opens it */

static int load(int *heard_fd, struct err *err)
{
    const struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 6, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execveat, 8, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 0, 8),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, WORD_AT),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)word, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, WORD_AT + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(word >> 32), 4, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, SECCOMP_FILTER_FLAG_NEW_LISTENER, 0, 2),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };

    return seccomp_load_heard(filter, COUNT(filter), heard_fd, err);
}

int once_load(int *heard_fd, struct err *err)
{
    if (getrandom(&word, sizeof word, 0) != (ssize_t)sizeof word)
        return err_os(err, "drawing a word");
    if (load(heard_fd, err) < 0)
        return err_in(err, "one program");
    stands = true;
    return 0;
}

int once_exec(const char *path, char *const *argv, char *const *env)
{
    if (!stands && !box_lacks("one program"))
        return EPERM;
    (void)syscall(SYS_execve, path, argv, env, 0L, 0L, word);
    return errno;
}

void once_forget(void)
{
    explicit_bzero(&word, sizeof word);
    stands = false;
}

/* In a process of its own, because it could succeed: a program that is not there would be ENOENT,
 * were it not refused. */
int once_probe(void)
{
    static char *const none[] = {NULL};
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        (void)execve("/nowhere/else", none, none);
        _exit(errno == EPERM ? 0 : 1);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    errno = EPERM;
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? -1 : 0;
}
