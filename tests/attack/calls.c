/* SPDX-License-Identifier: Apache-2.0 */

/* calls GROUP: system calls a sandbox must not reach, with arguments that do no harm where they
 * are reached, and to which the kernel itself would mostly give another answer than EPERM. */

#include "attack.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#define NOWHERE ((long)8) /* an address nothing is mapped at */

struct call {
    const char *group;
    const char *name;
    long number;
    long args[6]; /* all a call can have: what it is not given, it would find somewhere */
};

static const struct call calls[] = {
    {"uring",   "io_uring_setup",    SYS_io_uring_setup,    {0, NOWHERE}                                      },
    {"uring",   "io_uring_enter",    SYS_io_uring_enter,    {-1}                                              },
    {"uring",   "io_uring_register", SYS_io_uring_register, {-1}                                              },

    {"surface", "bpf",               SYS_bpf,               {9999, NOWHERE, 0}                                },
    {"surface", "perf_event_open",   SYS_perf_event_open,   {NOWHERE, 0, -1, -1, 0}                           },
    {"surface", "userfaultfd",       SYS_userfaultfd,       {1}                                               },
    {"surface", "fanotify_init",     SYS_fanotify_init,     {0, -1}                                           },
    {"surface", "fanotify_mark",     SYS_fanotify_mark,     {-1, 0, 0, -1, 0}                                 },
    {"surface", "lookup_dcookie",    212,                   {0, NOWHERE, 0}                                   },
    {"surface", "vhangup",           SYS_vhangup,           {0}                                               },
    {"surface", "remap_file_pages",  SYS_remap_file_pages,  {0, 0, 1, 0, 0}                                   },
    {"surface", "migrate_pages",     SYS_migrate_pages,     {-1, 0, 0, 0}                                     },
    {"surface", "move_pages",        SYS_move_pages,        {-1, 0, 0, 0, 0}                                  },
    {"surface", "process_madvise",   SYS_process_madvise,   {-1, 0, 0, 0, 0}                                  },
    {"surface", "process_mrelease",  448,                   {-1, 0}                                           },
    {"surface", "quotactl",          SYS_quotactl,          {-1, 0, 0, 0}                                     },
    {"surface", "quotactl_fd",       443,                   {-1, -1, 0, 0}                                    },
    {"surface", "syslog",            SYS_syslog,            {10, 0, 0}                                        },
    {"surface", "acct",              SYS_acct,              {NOWHERE}                                         },
#ifdef __x86_64__
    {"surface", "modify_ldt",        SYS_modify_ldt,        {0, 0, 0}                                         },
    {"surface", "uselib",            SYS_uselib,            {NOWHERE}                                         },
#endif

    {"machine", "init_module",       SYS_init_module,       {NOWHERE, 0, NOWHERE}                             },
    {"machine", "finit_module",      SYS_finit_module,      {-1, NOWHERE, 0}                                  },
    {"machine", "delete_module",     SYS_delete_module,     {NOWHERE, 0}                                      },
    {"machine", "kexec_load",        SYS_kexec_load,        {0, 99999, 0, 0}                                  },
    {"machine", "kexec_file_load",   SYS_kexec_file_load,   {-1, -1, 0, 0, -1}                                },
    {"machine", "reboot",            SYS_reboot,            {0, 0, 0, 0}                                      },
    {"machine", "swapon",            SYS_swapon,            {NOWHERE, 0}                                      },
    {"machine", "swapoff",           SYS_swapoff,           {NOWHERE}                                         },
    {"machine", "sethostname",       SYS_sethostname,       {NOWHERE, -1}                                     },
    {"machine", "setdomainname",     SYS_setdomainname,     {NOWHERE, -1}                                     },
    {"machine", "settimeofday",      SYS_settimeofday,      {0, NOWHERE}                                      },
    {"machine", "clock_settime",     SYS_clock_settime,     {-1, NOWHERE}                                     },
    {"machine", "adjtimex",          SYS_adjtimex,          {NOWHERE}                                         },
    {"machine", "clock_adjtime",     SYS_clock_adjtime,     {-1, NOWHERE}                                     },
#ifdef __x86_64__
    {"machine", "iopl",              SYS_iopl,              {0}                                               },
    {"machine", "ioperm",            SYS_ioperm,            {0, 0, 0}                                         },
#endif

    {"mount",   "mount",             SYS_mount,             {NOWHERE, NOWHERE, NOWHERE, 0, 0}                 },
    {"mount",   "umount2",           SYS_umount2,           {NOWHERE, -1}                                     },
    {"mount",   "pivot_root",        SYS_pivot_root,        {NOWHERE, NOWHERE}                                },
    {"mount",   "chroot",            SYS_chroot,            {NOWHERE}                                         },
    {"mount",   "open_tree",         SYS_open_tree,         {-1, NOWHERE, -1}                                 },
    {"mount",   "move_mount",        SYS_move_mount,        {-1, NOWHERE, -1, NOWHERE, -1}                    },
    {"mount",   "fsopen",            SYS_fsopen,            {NOWHERE, -1}                                     },
    {"mount",   "fsconfig",          SYS_fsconfig,          {-1, 0, 0, 0, 0}                                  },
    {"mount",   "fsmount",           SYS_fsmount,           {-1, -1, -1}                                      },
    {"mount",   "fspick",            SYS_fspick,            {-1, NOWHERE, -1}                                 },
    {"mount",   "mount_setattr",     442,                   {-1, NOWHERE, -1, NOWHERE, 0}                     },

    {"handle",  "open_by_handle_at", SYS_open_by_handle_at, {-1, NOWHERE, 0}                                  },
    {"handle",  "name_to_handle_at", SYS_name_to_handle_at, {-1, NOWHERE, NOWHERE, NOWHERE, -1}               },

    {"key",     "keyctl",            SYS_keyctl,            {KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 0} },
    {"key",     "add_key",           SYS_add_key,           {NOWHERE, NOWHERE, 0, 0, KEY_SPEC_PROCESS_KEYRING}},
    {"key",     "request_key",       SYS_request_key,       {NOWHERE, NOWHERE, 0, 0}                          },

 /* Of later kernels than the filter knows: not there, so that libraries fall back. */
    {"later",   "openat2",           SYS_openat2,           {-1, NOWHERE, NOWHERE, 0}                         },
    {"later",   "clone3",            SYS_clone3,            {NOWHERE, 0}                                      },
    {"later",   "listmount",         458,                   {NOWHERE, NOWHERE, 0, 0}                          },
    {"later",   "statmount",         457,                   {NOWHERE, NOWHERE, 0, 0}                          },
    {"later",   "open_tree_attr",    467,                   {-1, NOWHERE, 0, NOWHERE, 0}                      },
    {"later",   "fchmodat2",         452,                   {-1, NOWHERE, 04777, 0}                           },
    {"later",   "memfd_secret",      447,                   {0}                                               },
    {"later",   "a call nobody has", 1000,                  {0}                                               },
};

/* Harmless for whoever does them to itself: outside they work, which is the control. */
static void to_oneself(void)
{
    cpu_set_t set;
    char from = 'x', to = 0;
    struct iovec local = {&to, 1}, remote = {&from, 1};
    long self = getpid();
    long pidfd = syscall(SYS_pidfd_open, self, 0);

    (void)attempt("process_vm_readv",
                  syscall(SYS_process_vm_readv, self, &local, 1, &remote, 1, 0));
    (void)attempt("process_vm_writev",
                  syscall(SYS_process_vm_writev, self, &local, 1, &remote, 1, 0));
    (void)attempt("pidfd_getfd", syscall(SYS_pidfd_getfd, pidfd, 0, 0));
    (void)attempt("kcmp", syscall(SYS_kcmp, self, self, KCMP_VM, 0, 0));
    (void)attempt("ptrace", syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0));
    (void)attempt("unshare", syscall(SYS_unshare, 0));
    (void)sched_getaffinity(0, sizeof set, &set);
    (void)attempt("sched_setaffinity", sched_setaffinity(0, sizeof set, &set));
}

/* Another calling convention numbers its calls differently, so no filter by number fits it. */
static void foreign_convention(const char *which)
{
#ifdef __x86_64__
    long result = 20; /* getpid of 32 bit programs */

    if (strcmp(which, "x32") == 0) {
        (void)attempt("x32", syscall(0x40000000L + SYS_getpid));
        return;
    }
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
    answer("int80", result < 0 ? (int)-result : 0);
#else
    (void)which;
    answer("no foreign convention on this machine", 0);
#endif
}

int main(int argc, char **argv)
{
    if (argc != 2)
        usage("calls GROUP|to-oneself|x32|int80");
    if (strcmp(argv[1], "to-oneself") == 0)
        to_oneself();
    else if (strcmp(argv[1], "x32") == 0 || strcmp(argv[1], "int80") == 0)
        foreign_convention(argv[1]);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        const struct call *call = &calls[i];

        if (strcmp(call->group, argv[1]) == 0)
            (void)attempt(call->name,
                          syscall(call->number, call->args[0], call->args[1], call->args[2],
                                  call->args[3], call->args[4], call->args[5]));
    }
    return 0;
}
