/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/calls.h"

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__riscv)
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#endif

#define CALLS_MAX 128
#define PROTECTION 2 /* which argument of mmap and mprotect it is */
#define REFUSE (SECCOMP_RET_ERRNO | (EPERM & SECCOMP_RET_DATA))
#define LOAD(field)                                                                                \
    (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ANSWER(what) (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, what)
#define JUMP(test, value, yes, no)                                                                 \
    (struct sock_filter) BPF_JUMP(BPF_JMP | (test) | BPF_K, value, yes, no)

/* The calls are compared one after the other; those that map memory have their argument looked at.
 */
static size_t write_filter(const int *numbers, size_t n, struct sock_filter *out)
{
    size_t at = 0;

    out[at++] = LOAD(arch);
    out[at++] = JUMP(BPF_JEQ, ARCHITECTURE, 1, 0);
    out[at++] = ANSWER(SECCOMP_RET_KILL_PROCESS);
    out[at++] = LOAD(nr);
    for (size_t i = 0; i < n; i++) {
        bool maps = numbers[i] == SYS_mmap || numbers[i] == SYS_mprotect;

        out[at++] = JUMP(BPF_JEQ, (unsigned)numbers[i], 0, maps ? 4 : 1);
        if (maps) {
            out[at++] = LOAD(args[PROTECTION]); /* its lower half, on machines of this order */
            out[at++] = JUMP(BPF_JSET, PROT_EXEC, 0, 1);
            out[at++] = ANSWER(REFUSE);
        }
        out[at++] = ANSWER(SECCOMP_RET_ALLOW);
    }
    out[at++] = ANSWER(REFUSE);
    return at;
}

int calls_allow_only(const int *numbers, size_t n, struct err *err)
{
    struct sock_filter filter[5 * CALLS_MAX + 8];
    struct sock_fprog program = {.filter = filter};

    assert(n <= CALLS_MAX);
    program.len = (unsigned short)write_filter(numbers, n, filter);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
        return err_os(err, "allowing %zu system calls and no other", n);
    return 0;
}
