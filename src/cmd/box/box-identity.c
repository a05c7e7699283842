/* SPDX-License-Identifier: Apache-2.0 */

/* Everything is read through what box-process.c holds of a process: that stays the same process,
 * whoever gets its number later. The caller itself waits in its system call meanwhile and can
 * become no other program; whoever calls us makes sure of that afterwards. Its ancestors can: what
 * a look at one begins with must still be so at its end.
 *
 * What is remembered of a process is only what stays true of it as long as it lives, whatever it
 * executes: that box noted it as a command, and that it is box's own. Which program it runs is
 * looked at for every call. */

#include "cmd/box/box-identity.h"

#include "lib/linux/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#define DELETED " (deleted)"
#define CMDLINE_BYTES 8192
#define NEVER_EXECED 0x40U /* PF_FORKNOEXEC of the kernel's: it still runs what its parent ran */

enum { TEXT_EXE, TEXT_SCRIPT, TEXT_FIRST_ANCESTOR };

static ssize_t read_file(int dir_fd, const char *name, char *out, size_t size)
{
    AUTO_FD int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);

    return fd < 0 ? -1 : read(fd, out, size);
}

/* ---- one program ---- */

/* Beneath the root of the process, as itself would find it. */
static int open_inside(int dir_fd, const char *path)
{
    AUTO_FD int root = openat(dir_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);

    return root < 0 ? -1 : sys_openat2(root, path, O_PATH, RESOLVE_IN_ROOT);
}

static bool leads_to(int dir_fd, const char *path, const struct stat *st)
{
    AUTO_FD int fd = open_inside(dir_fd, path);
    struct stat found;

    return fd >= 0 && fstat(fd, &found) == 0 && found.st_dev == st->st_dev &&
           found.st_ino == st->st_ino;
}

/* What the link says of a file that has no name any more is its last one and a word behind it,
 * which may also be the end of a name. */
static void name_program(int dir_fd, const struct stat *st, char *text,
                         struct handover_program *out)
{
    ssize_t n = readlinkat(dir_fd, "exe", text, IDENTITY_TEXT_BYTES - 1);
    struct str path = {text, n > 0 ? (size_t)n : 0};

    text[path.n] = '\0';
    if (str_ends(path, DELETED) && (st->st_nlink == 0 || !leads_to(dir_fd, text, st))) {
        out->flags |= HANDOVER_UNNAMED;
        path.n -= strlen(DELETED);
    }
    if (path.n == 0 || path.n > HANDOVER_PATH_MAX || path.p[0] != '/')
        out->flags |= HANDOVER_NO_PATH;
    else
        out->path = path;
}

static int see_program(struct identity *identity, int dir_fd, char *text, struct stat *st,
                       struct handover_program *out)
{
    *out = (struct handover_program){.flags = 0};
    if (fstatat(dir_fd, "exe", st, 0) < 0) {
        out->flags = HANDOVER_NO_PATH;
        return -1;
    }
    if (content_hash(&identity->contents, dir_fd, "exe", st, &out->hash))
        out->flags |= HANDOVER_HASHED;
    name_program(dir_fd, st, text, out);
    return 0;
}

/* ---- what an interpreter runs ---- */

/* Into text: the claim itself, or behind the working directory. */
static bool place_claim(int dir_fd, struct str claim, char *text)
{
    size_t n = 0;

    if (claim.p[0] != '/') {
        ssize_t got = readlinkat(dir_fd, "cwd", text, IDENTITY_TEXT_BYTES);

        if (got <= 0 || got >= HANDOVER_PATH_MAX || text[0] != '/')
            return false;
        n = (size_t)got;
        text[n++] = '/';
    }
    if (claim.n + n > HANDOVER_PATH_MAX)
        return false;
    memcpy(text + n, claim.p, claim.n);
    text[n + claim.n] = '\0';
    return true;
}

/* Opened as a path first: what is no regular file is never opened. */
static bool see_script(struct identity *identity, int dir_fd, struct str claim)
{
    struct handover_program *script = &identity->caller.script;
    char *text = identity->texts[TEXT_SCRIPT];
    char shown[32];
    struct stat st;
    AUTO_FD int fd = -1;

    if (!place_claim(dir_fd, claim, text))
        return false;
    fd = open_inside(dir_fd, text);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    (void)snprintf(shown, sizeof shown, "/proc/self/fd/%d", fd);
    *script = (struct handover_program){.path = str_of(text)};
    if (!content_hash(&identity->contents, AT_FDCWD, shown, &st, &script->hash))
        return false;
    script->flags = HANDOVER_HASHED;
    return true;
}

static void see_scripts(struct identity *identity, int dir_fd)
{
    struct handover_caller *caller = &identity->caller;
    char words[CMDLINE_BYTES];
    ssize_t n = read_file(dir_fd, "cmdline", words, sizeof words);
    struct str claim = {NULL, 0};

    switch (script_claim(caller->exe.path, (struct str){words, n > 0 ? (size_t)n : 0}, &claim)) {
    case SCRIPT_NONE:
        return;
    case SCRIPT_CLAIMED:
        if (see_script(identity, dir_fd, claim)) {
            caller->flags |= CALLER_HAS_SCRIPT;
            return;
        }
        caller->script = (struct handover_program){.flags = 0};
        caller->flags |= CALLER_SCRIPT_UNKNOWN;
        return;
    case SCRIPT_UNKNOWN:
        caller->flags |= CALLER_SCRIPT_UNKNOWN;
        return;
    }
}

/* ---- ancestors ---- */

static bool is_known_command(const struct identity *identity, const struct process *process)
{
    return process->serial &&
           identity->known[process->serial % KNOWN_PROCESSES].serial == process->serial;
}

static bool is_known_ours(const struct identity *identity, const struct process *process)
{
    return process->serial && identity->ours[process->serial % KNOWN_PROCESSES] == process->serial;
}

/* A process between PID 1 and a command is ours: it was forked by PID 1 and has become nothing
 * else. An ordinary user may not look at its program, nor at PID 1's. */
static bool looks_like_ours(const struct identity *identity, const struct process *process)
{
    struct process_facts facts;
    struct stat st;

    if (!facts_read(process->dir_fd, "stat", &facts) || facts.parent != identity->first ||
        !(facts.flags & NEVER_EXECED))
        return false;
    if (fstatat(process->dir_fd, "exe", &st, 0) < 0)
        return errno == EACCES || errno == EPERM;
    return st.st_dev == identity->box.st_dev && st.st_ino == identity->box.st_ino;
}

/* A command was noted when it was about to become one, so it never is. */
static bool is_ours(const struct identity *identity, const struct process *process, pid_t parent)
{
    if (parent != identity->first || is_known_command(identity, process))
        return false;
    return is_known_ours(identity, process) || looks_like_ours(identity, process);
}

/* It is still the parent, so it was all the time; and it still runs the same. */
static bool is_unchanged(struct process *child, const struct process *parent,
                         const struct stat *before)
{
    struct stat after;
    pid_t now;

    return process_parent(child, &now) && now == parent->pid &&
           fstatat(parent->dir_fd, "exe", &after, 0) == 0 && after.st_dev == before->st_dev &&
           after.st_ino == before->st_ino;
}

/* False: nobody can say who it was. */
static bool see_ancestor(struct identity *identity, struct process *child,
                         const struct process *process)
{
    struct handover_caller *caller = &identity->caller;
    uint32_t at = caller->ancestor_n;
    struct stat before;

    if (see_program(identity, process->dir_fd, identity->texts[TEXT_FIRST_ANCESTOR + at], &before,
                    &caller->ancestors[at]) < 0 ||
        !is_unchanged(child, process, &before))
        return false;
    caller->ancestor_n++;
    return true;
}

/* By when it was started, which takes long to ask. */
static bool is_noted(const struct identity *identity, const struct process *process,
                     struct known_command *found)
{
    struct process_facts facts;
    const struct known_command *known = &identity->known[(size_t)process->pid % KNOWN_PROCESSES];

    if (!facts_read(process->dir_fd, "stat", &facts))
        return false;
    *found = (struct known_command){process->serial, process->pid, facts.started};
    if (known->serial == 0 && known->pid == process->pid && known->started == facts.started)
        return true;
    return commands_has(identity->commands, facts_inner_pid(process->dir_fd), facts.started);
}

/* The first below PID 1 is a command that was started as one, or has lost whoever started it. */
static bool is_command(struct identity *identity, const struct process *process)
{
    struct known_command found;

    if (is_known_command(identity, process))
        return true;
    if (!is_noted(identity, process, &found))
        return false;
    identity->known[(found.serial ? found.serial : (uint64_t)found.pid) % KNOWN_PROCESSES] = found;
    return true;
}

/* Ours is remembered only above a command: those that start commands execute nothing themselves.
 * Were it another after all, it would hide nothing: whoever is below it was noted, or is lost. */
static uint32_t end_at(struct identity *identity, const struct process *last,
                       const struct process *ours)
{
    if (!is_command(identity, last))
        return CALLER_ANCESTOR_LOST;
    if (ours && ours->serial)
        identity->ours[ours->serial % KNOWN_PROCESSES] = ours->serial;
    return 0;
}

static bool open_parent(const struct identity *identity, pid_t pid, struct process *out,
                        pid_t *its_parent)
{
    int pid_fd = identity->by_folder || pid <= 0 ? -1 : pidfd_open(pid, 0);

    return process_open(out, pid, pid_fd) && process_parent(out, its_parent);
}

static uint32_t see_ancestors(struct identity *identity, struct process *caller)
{
    AUTO_PROCESS struct process child = *caller;
    pid_t parent, above;

    *caller = NO_PROCESS; /* ours now */
    if (!process_parent(&child, &parent))
        return CALLER_ANCESTOR_LOST;
    for (;; parent = above) {
        AUTO_PROCESS struct process process = NO_PROCESS;

        if (parent == identity->first)
            return end_at(identity, &child, NULL);
        if (!open_parent(identity, parent, &process, &above))
            return CALLER_ANCESTOR_LOST;
        if (is_ours(identity, &process, above))
            return end_at(identity, &child, &process);
        if (identity->caller.ancestor_n == HANDOVER_ANCESTORS_MAX)
            return CALLER_ANCESTORS_CUT;
        if (!see_ancestor(identity, &child, &process))
            return CALLER_ANCESTOR_LOST;
        process_close(&child);
        child = process;
        process = NO_PROCESS;
    }
}

/* ---- the caller ---- */

void identity_init(struct identity *identity, pid_t first, const struct commands *commands)
{
    identity->first = first;
    identity->commands = commands;
    if (stat("/proc/self/exe", &identity->box) < 0)
        identity->box = (struct stat){.st_ino = 0};
}

int identity_see(struct identity *identity, pid_t pid, int pid_fd)
{
    struct handover_caller *caller = &identity->caller;
    AUTO_PROCESS struct process process = NO_PROCESS;
    struct stat st;

    *caller = (struct handover_caller){.pid = (uint32_t)pid};
    if (!process_open(&process, pid, pid_fd) ||
        see_program(identity, process.dir_fd, identity->texts[TEXT_EXE], &st, &caller->exe) < 0)
        return -1;
    if (script_is_possible(caller->exe.path))
        see_scripts(identity, process.dir_fd);
    caller->flags |= see_ancestors(identity, &process);
    return 0;
}
