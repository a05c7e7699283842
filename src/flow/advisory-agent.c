/* SPDX-License-Identifier: Apache-2.0 */

/* The agent's program, and the session it begins: a copy runs, and its hash is the version, so that
 * what is signed off later is what was spoken with. Of an interpreter what it was given is part of
 * that. */

#include "flow/advisory-parts.h"
#include "flow/govern-parts.h"

#include "flow/advise/advise.h"
#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/linux/sys.h"
#include "lib/shell/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROGRAM_BYTES_MAX (512UL * MIB)

static int copy_program(const char *path, const char *to, char version[HASH_TEXT_BYTES],
                        struct err *err)
{
    /* A pipe is not waited for: it is none of what can be an agent. */
    AUTO_FD int in_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    AUTO_FD int out_fd = -1;
    struct hasher hasher;
    struct hash hash;
    struct stat st;
    uint64_t all = 0;

    if (in_fd < 0 || fstat(in_fd, &st) < 0)
        return err_os(err, "opening the agent's program %s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_INVALID, "%s is no file: the agent is one program", path);
    out_fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    if (out_fd < 0)
        return err_os(err, "copying the agent's program");
    hasher_init(&hasher);
    for (;;) {
        char piece[65536];
        ssize_t n = read(in_fd, piece, sizeof piece);

        if (n < 0)
            return err_os(err, "reading %s", path);
        if (n == 0)
            break;
        all += (uint64_t)n;
        if (all > PROGRAM_BYTES_MAX)
            return err_set(err, ERR_LIMIT, "%s has more than 512 MiB", path);
        hasher_add(&hasher, piece, (size_t)n);
        if (write_all(out_fd, piece, (size_t)n, err) < 0)
            return err_in(err, "copying the agent's program");
    }
    hasher_end(&hasher, &hash);
    hash_text(&hash, version);
    return fchmod(out_fd, 0755) < 0 ? err_os(err, "copying the agent's program") : 0;
}

/* ---- what an interpreter was given ---- */

#define VERSION_DOMAIN "brig/agent-version/1"

static void add_text(struct hasher *hasher, const char *text)
{
    hasher_add(hasher, text, strlen(text) + 1);
}

static int hash_file(int fd, char out[HASH_TEXT_BYTES], struct err *err)
{
    struct hasher hasher;
    struct hash hash;
    ssize_t n;

    hasher_init(&hasher);
    do {
        UNFILLED char piece[65536];

        n = read(fd, piece, sizeof piece);
        if (n < 0)
            return err_os(err, "reading what the agent is given");
        hasher_add(&hasher, piece, (size_t)n);
    } while (n > 0);
    hasher_end(&hasher, &hash);
    hash_text(&hash, out);
    return 0;
}

/* Of a file of the input folder, when the word names one. */
static int add_named(struct hasher *hasher, int input_fd, const char *word, struct err *err)
{
    static const char shown[] = "input/";
    const char *name = input_fd < 0 ? NULL : strstr(word, shown);
    char hash[HASH_TEXT_BYTES] = "";
    AUTO_FD int fd = -1;
    struct stat st;

    if (name)
        fd = sys_openat2(input_fd, name + strlen(shown),
                         O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, RESOLVE_BENEATH);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && hash_file(fd, hash, err) < 0)
        return -1;
    add_text(hasher, hash);
    return 0;
}

static bool is_carrier(const char *program)
{
    AUTO_FREE char *path = realpath(program, NULL);

    return shell_is_carrier(shell_base(program)) || (path && shell_is_carrier(shell_base(path)));
}

/* python3 is no agent, and python3 with a script is not that with another one. What comes of it is
 * the hash of no file: nothing that is only a program is released with it. */
static int cover_words(const struct advise_talk *talk, char version[HASH_TEXT_BYTES],
                       struct err *err)
{
    AUTO_FD int input_fd = -1;
    struct hasher hasher;
    struct hash hash;

    if (talk->args.n == 0 || !is_carrier(talk->program))
        return 0;
    if (talk->input)
        input_fd = open(talk->input, O_PATH | O_DIRECTORY | O_CLOEXEC);
    hasher_init(&hasher);
    add_text(&hasher, VERSION_DOMAIN);
    add_text(&hasher, version);
    for (size_t i = 0; i < talk->args.n; i++) {
        add_text(&hasher, talk->args.v[i]);
        if (add_named(&hasher, input_fd, talk->args.v[i], err) < 0)
            return -1;
    }
    hasher_end(&hasher, &hash);
    hash_text(&hash, version);
    return 0;
}

/* Beside the sessions first: what the session is called follows from what is in it. Held by
 * sessions_hold() until it is in its session's folder. */
static int take_program(struct govern *govern, struct arena *mem, const struct advise_talk *talk,
                        const char **copy, int *folder_fd, char version[HASH_TEXT_BYTES],
                        struct err *err)
{
    const char *folder = arena_printf(mem, "%s/advisory", govern->state_dir);
    char id[ID_BYTES];

    id_new(id);
    if (sessions_hold(folder, folder_fd, err) < 0)
        return -1;
    *copy = arena_printf(mem, "%s/" AGENT_COPY_PREFIX "%s", folder, id);
    if (copy_program(talk->program, *copy, version, err) == 0 &&
        cover_words(talk, version, err) == 0)
        return 0;
    (void)unlink(*copy);
    return -1;
}

/* What its operator got wrong is no run of the agent: looked at before there is a session. */
static int check_input(const char *path, struct err *err)
{
    struct stat st;

    if (!path)
        return 0;
    if (stat(path, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? err_set(err, ERR_NOT_FOUND, "the input folder %.300s does not exist", path)
                   : err_os(err, "looking at the input folder %.300s", path);
    return S_ISDIR(st.st_mode) ? 0 : err_set(err, ERR_INVALID, "%.300s is no folder", path);
}

int agent_begin(struct govern *govern, const struct request *request,
                const struct advise_terms *terms, const struct advise_talk *talk, struct arena *mem,
                struct advise **out, struct err *err)
{
    char version[HASH_TEXT_BYTES];
    struct advise_terms made = *terms;
    AUTO_FD int folder_fd = -1; /* held */
    const char *copy = NULL;
    struct run opening;
    int failed;

    if (check_input(talk->input, err) < 0 ||
        take_program(govern, mem, talk, &copy, &folder_fd, version, err) < 0)
        return -1;
    CRASH_POINT("advisory-agent-copied");
    made.agent_version = version;
    made.channel = "box";
    run_init(&opening);
    failed = govern_advise_start(govern, request, &made, &opening, out, err);
    run_done(&opening);
    CRASH_POINT("advisory-session-begun");
    if (!failed && rename(copy, arena_printf(mem, "%s/agent", (*out)->dir)) < 0)
        failed = err_os(err, "putting the agent's program into its session");
    CRASH_POINT("advisory-agent-placed");
    if (failed)
        (void)unlink(copy);
    return failed;
}
