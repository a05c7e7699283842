/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/landlock.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#define CREATE_RULESET_VERSION 1U
#define RULE_PATH_BENEATH 1
#define SCOPE_ABSTRACT_UNIX_SOCKET 1U
#define SCOPE_SIGNAL 2U

struct ruleset_attr {
    uint64_t handled_access_fs;
    uint64_t handled_access_net; /* ABI 4 */
    uint64_t scoped;             /* ABI 6 */
};

struct path_beneath_attr {
    uint64_t allowed_access;
    int32_t parent_fd;
} __attribute__((packed));

unsigned landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);

    if (abi < 0)
        return 0;
    return abi > (long)LANDLOCK_ABI_KNOWN ? LANDLOCK_ABI_KNOWN : (unsigned)abi;
}

static uint64_t rights_of(unsigned abi)
{
    uint64_t rights = (LANDLOCK_MAKE_SYM << 1) - 1;

    if (abi >= 2)
        rights |= LANDLOCK_REFER;
    if (abi >= 3)
        rights |= LANDLOCK_TRUNCATE;
    if (abi >= 5)
        rights |= LANDLOCK_IOCTL_DEV;
    return rights;
}

/* The kernel refuses a structure with bytes it does not know unless they are zero, and an older
 * one accepts a shorter structure: hand over what the ABI has. */
static size_t attr_size(unsigned abi)
{
    if (abi >= 6)
        return sizeof(struct ruleset_attr);
    return abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
}

int landlock_open(unsigned abi, int *out_fd, struct err *err)
{
    struct ruleset_attr attr = {.handled_access_fs = rights_of(abi)};
    long fd;

    if (abi >= 6)
        attr.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL;
    fd = syscall(SYS_landlock_create_ruleset, &attr, attr_size(abi), 0);
    if (fd < 0)
        return err_os(err, "creating a Landlock ruleset of ABI %u", abi);
    *out_fd = (int)fd; /* close-on-exec from birth */
    return 0;
}

int landlock_allow(int ruleset_fd, unsigned abi, int path_fd, uint64_t rights, struct err *err)
{
    struct path_beneath_attr attr = {.parent_fd = path_fd};
    struct stat st;

    if (fstat(path_fd, &st) < 0)
        return err_os(err, "looking at a path for Landlock");
    attr.allowed_access = rights & rights_of(abi);
    if (!S_ISDIR(st.st_mode))
        attr.allowed_access &= LANDLOCK_ON_FILE;
    if (syscall(SYS_landlock_add_rule, ruleset_fd, RULE_PATH_BENEATH, &attr, 0) < 0)
        return err_os(err, "adding a Landlock rule");
    return 0;
}

int landlock_enforce(int ruleset_fd, struct err *err)
{
    if (syscall(SYS_landlock_restrict_self, ruleset_fd, 0) < 0)
        return err_os(err, "enforcing Landlock");
    return 0;
}
