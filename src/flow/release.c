/* SPDX-License-Identifier: Apache-2.0 */

/* Policies that let an agent run only once it was released, or not at all.
 *
 * What runs is looked at, not what it is called: the program file behind the first word, hashed,
 * must be the version that was released. A program that would run the agent (a shell, env) is
 * another program. */

#include "flow/govern-parts.h"

#include "flow/advise/advise.h"
#include "lib/crypto/crypto.h"
#include "lib/linux/sys.h"
#include "lib/shell/shell.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RELEASE_MEMORY_MAX (512UL * 1024 * 1024) /* an agent may have had 100 000 runs */

static void refuse(struct run *run, enum reason reason, const char *text)
{
    run->verdict = (struct verdict){.kind = VERDICT_DENY, .reason = reason, .text = text};
}

/* Only a path without ".", ".." and empty names says the same here and inside. */
static bool is_plain(const char *path)
{
    struct str rest;

    if (path[0] != '/' || path[1] == '\0' || path[strlen(path) - 1] == '/')
        return false;
    rest = str_of(path + 1);
    while (rest.n) {
        struct str name = str_cut(&rest, '/');

        if (name.n == 0 || str_is(name, ".") || str_is(name, ".."))
            return false;
    }
    return true;
}

/* The read-only mount of the plan it lies below. Of several the last counts. */
static const struct plan_mount *mount_of(const struct run *run, const char *path)
{
    const struct plan_mount *best = NULL;

    for (size_t i = 0; i < run->plan.mount_n; i++) {
        const struct plan_mount *mount = &run->plan.mounts[i];
        size_t n = strlen(mount->target);

        if (strncmp(path, mount->target, n) == 0 && (path[n] == '/' || path[n] == '\0') &&
            (!best || n >= strlen(best->target)))
            best = mount;
    }
    return best && best->kind == MOUNT_BIND && best->access == MOUNT_RO ? best : NULL;
}

/* The file itself: what the mount was validated as, and below it through no link, which could lead
 * somewhere else here than inside. */
static int open_program(const struct run *run, const char *path)
{
    const struct plan_mount *mount = is_plain(path) ? mount_of(run, path) : NULL;
    const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    AUTO_FD int fd = mount ? open(mount->source, flags) : -1;
    const char *below;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 ||
        (mount->inode && (st.st_ino != mount->inode || st.st_dev != mount->device)))
        return -1;
    below = path + strlen(mount->target);
    return *below ? sys_openat2(fd, below + 1, flags, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)
                  : TAKE_FD(fd);
}

/* Whether nothing else has a part in what it does: no interpreter, no loader. */
static bool stands_alone(int fd)
{
    ElfW(Ehdr) header;

    if (pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(ElfW(Phdr)))
        return false;
    for (unsigned i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) segment;

        if (pread(fd, &segment, sizeof segment, (off_t)(header.e_phoff + i * sizeof segment)) !=
                (ssize_t)sizeof segment ||
            segment.p_type == PT_INTERP)
            return false;
    }
    return true;
}

static bool hash_program(int fd, char out[HASH_TEXT_BYTES])
{
    struct hasher hasher;
    struct hash hash;
    struct stat st;
    ssize_t n = -1;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    hasher_init(&hasher);
    do {
        UNFILLED char piece[65536];

        n = read(fd, piece, sizeof piece);
        if (n > 0)
            hasher_add(&hasher, piece, (size_t)n);
    } while (n > 0);
    hasher_end(&hasher, &hash);
    hash_text(&hash, out);
    return n == 0;
}

/* A variable that makes a program load or run something else makes it another one. */
static const char *steering_variable(const struct run *run)
{
    for (size_t i = 0; i < run->action.env.n; i++)
        if (is_steering_variable(run->action.env.v[i]))
            return run->action.env.v[i];
    return NULL;
}

/* Why the program is no released agent, or NULL. */
static const char *unreleased(struct govern *govern, struct run *run, const char *agent_id)
{
    AUTO_ARENA struct arena mem = ARENA(RELEASE_MEMORY_MAX);
    const char *program = run->action.argv.n ? run->action.argv.v[0] : "";
    char version[HASH_TEXT_BYTES];
    struct gate_report report;
    const char *variable = steering_variable(run);
    AUTO_FD int fd = -1;
    const char *why;

    if (run->action.kind != ACTION_RUN)
        return "a released agent runs in a sandbox of its own: \"brig sandbox exec\" without an id";
    if (variable)
        return arena_printf(&run->mem, "the variable %.*s can make it run something else",
                            (int)strcspn(variable, "="), variable);
    fd = open_program(run, program);
    if (fd < 0 || !hash_program(fd, version))
        return "write the whole path of the agent, in a folder or file that is mounted read-only, "
               "without links on the way";
    if (strcmp(run->plan.image, "host") != 0 && !stands_alone(fd))
        return "its interpreter or loader would be that of the image: let it run without one, or "
               "link it statically";
    why = gate_stands_for_run(govern, &mem, agent_id, version, &report);
    if (!why && report.is_claimed)
        why = "it was released for what a harness said it is; only runs of \"brig advisory run\" "
              "speak for a program";
    if (!why && report.n < run->demand.release_runs)
        why = arena_printf(&mem, "it was released over %u runs, and the policy wants %u", report.n,
                           run->demand.release_runs);
    return why ? arena_printf(&run->mem, "agent %.128s: %s", agent_id, why) : NULL;
}

void govern_check_mode(struct run *run)
{
    if (run->verdict.kind != VERDICT_DENY && run->demand.advisory_only)
        refuse(run, REASON_ADVISORY_ONLY,
               "this policy has mode: advisory; let the agent advise with \"brig advisory run\"");
}

void govern_check_release(struct govern *govern, struct run *run)
{
    const char *agent_id = run->demand.requires_release;
    const char *why;

    /* A sandbox by itself runs nothing; each command in it is decided by itself. */
    if (run->verdict.kind == VERDICT_DENY || run->action.advisory || action_keeps(run->action.kind))
        return;
    govern_check_mode(run);
    if (run->verdict.kind == VERDICT_DENY)
        return;
    why = agent_id ? unreleased(govern, run, agent_id) : NULL;
    if (why)
        refuse(run, REASON_RELEASE_REQUIRED, why);
}
