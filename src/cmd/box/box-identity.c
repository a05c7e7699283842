/* SPDX-License-Identifier: Apache-2.0 */

/* Everything is read through one open folder of /proc a process: that stays the same process,
 * whoever gets its number later. The caller itself waits in its system call meanwhile and can
 * become no other program; whoever calls us makes sure of that afterwards. Its ancestors can: what
 * a look at one begins with must still be so at its end. */

#include "cmd/box/box-identity.h"

#include "lib/linux/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DELETED " (deleted)"
#define CMDLINE_BYTES 8192
#define NEVER_EXECED 0x40U /* PF_FORKNOEXEC of the kernel's: it still runs what its parent ran */

enum { TEXT_EXE, TEXT_SCRIPT, TEXT_FIRST_ANCESTOR };

static int open_process(pid_t pid)
{
    char path[32];

    (void)snprintf(path, sizeof path, "/proc/%d", pid);
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

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

static int see_program(struct identity *identity, int dir_fd, char *text,
                       struct handover_program *out)
{
    struct stat st;

    *out = (struct handover_program){.flags = 0};
    if (fstatat(dir_fd, "exe", &st, 0) < 0) {
        out->flags = HANDOVER_NO_PATH;
        return -1;
    }
    if (content_hash(&identity->contents, dir_fd, "exe", &st, &out->hash))
        out->flags |= HANDOVER_HASHED;
    name_program(dir_fd, &st, text, out);
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

/* A process between PID 1 and a command is ours: it was forked by PID 1 and has become nothing
 * else. An ordinary user may not look at its program, nor at PID 1's. */
static bool is_ours(const struct identity *identity, int dir_fd, const struct process_facts *facts)
{
    struct stat st;

    if (facts->parent != identity->first || !(facts->flags & NEVER_EXECED))
        return false;
    if (fstatat(dir_fd, "exe", &st, 0) < 0)
        return errno == EACCES || errno == EPERM;
    return st.st_dev == identity->box.st_dev && st.st_ino == identity->box.st_ino;
}

/* It is still the parent, so it was all the time; and it still runs the same. */
static bool is_unchanged(int child_fd, pid_t parent, int parent_fd, const struct stat *before)
{
    struct process_facts child;
    struct stat after;

    return facts_read(child_fd, "stat", &child) && child.parent == parent &&
           fstatat(parent_fd, "exe", &after, 0) == 0 && after.st_dev == before->st_dev &&
           after.st_ino == before->st_ino;
}

/* False: nobody can say who it was. */
static bool see_ancestor(struct identity *identity, int child_fd, pid_t pid, int fd)
{
    struct handover_caller *caller = &identity->caller;
    uint32_t at = caller->ancestor_n;
    struct stat before;

    if (fstatat(fd, "exe", &before, 0) < 0)
        return false;
    if (see_program(identity, fd, identity->texts[TEXT_FIRST_ANCESTOR + at],
                    &caller->ancestors[at]) < 0 ||
        !is_unchanged(child_fd, pid, fd, &before))
        return false;
    caller->ancestor_n++;
    return true;
}

/* The first below PID 1 is a command that was started as one, or has lost whoever started it. */
static bool is_command(struct identity *identity, int dir_fd, pid_t pid, uint64_t started)
{
    size_t at = (size_t)pid % KNOWN_COMMANDS;

    if (identity->known[at].pid == pid && identity->known[at].started == started)
        return true;
    if (!commands_has(identity->commands, facts_inner_pid(dir_fd), started))
        return false;
    identity->known[at].pid = pid;
    identity->known[at].started = started;
    return true;
}

static uint32_t see_ancestors(struct identity *identity, pid_t pid, int dir_fd)
{
    AUTO_FD int child = dup(dir_fd);
    struct process_facts facts;

    if (child < 0 || !facts_read(child, "stat", &facts))
        return CALLER_ANCESTOR_LOST;
    for (;;) {
        pid_t parent = facts.parent;
        uint64_t started = facts.started;
        AUTO_FD int fd = -1;

        if (parent == identity->first)
            return is_command(identity, child, pid, started) ? 0 : CALLER_ANCESTOR_LOST;
        fd = parent > 0 ? open_process(parent) : -1;
        if (fd < 0 || !facts_read(fd, "stat", &facts))
            return CALLER_ANCESTOR_LOST;
        if (is_ours(identity, fd, &facts))
            return is_command(identity, child, pid, started) ? 0 : CALLER_ANCESTOR_LOST;
        if (identity->caller.ancestor_n == HANDOVER_ANCESTORS_MAX)
            return CALLER_ANCESTORS_CUT;
        if (!see_ancestor(identity, child, parent, fd))
            return CALLER_ANCESTOR_LOST;
        (void)close(child);
        child = TAKE_FD(fd);
        pid = parent;
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

int identity_see(struct identity *identity, pid_t pid)
{
    struct handover_caller *caller = &identity->caller;
    AUTO_FD int dir_fd = open_process(pid);

    *caller = (struct handover_caller){.pid = (uint32_t)pid};
    if (dir_fd < 0 || see_program(identity, dir_fd, identity->texts[TEXT_EXE], &caller->exe) < 0)
        return -1;
    if (script_is_possible(caller->exe.path))
        see_scripts(identity, dir_fd);
    caller->flags |= see_ancestors(identity, pid, dir_fd);
    return 0;
}
