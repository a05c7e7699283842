/* SPDX-License-Identifier: Apache-2.0 */

/* layers: copies, merges and hashes what sandboxes wrote (lib/snapshot/wire.h).
 *
 * It is a program of its own because an ordinary user cannot read what his own sandbox made
 * unreadable, unless he enters a user namespace where he may; brig, which has threads and keys,
 * enters none. It can reach nothing but the folders it was handed: it opens no path but names
 * beneath them. */

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/snapshot/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* A deep tree of many layers needs one for each folder on the way. */
static void use_all_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Root of a namespace in which there is nobody but us. */
static int become_owner(struct err *err)
{
    unsigned uid = geteuid(), gid = getegid();
    char map[64];

    if (uid == 0)
        return 0;
    if (unshare(CLONE_NEWUSER) < 0)
        return err_os(err, "entering a user namespace");
    if (file_write(AT_FDCWD, "/proc/self/setgroups", "deny", err) < 0)
        return -1;
    (void)snprintf(map, sizeof map, "0 %u 1\n", uid);
    if (file_write(AT_FDCWD, "/proc/self/uid_map", map, err) < 0)
        return -1;
    (void)snprintf(map, sizeof map, "0 %u 1\n", gid);
    return file_write(AT_FDCWD, "/proc/self/gid_map", map, err);
}

static void add(struct tree_result *sum, const struct tree_result *one)
{
    sum->bytes += one->bytes;
    sum->entries += one->entries;
    sum->skipped += one->skipped;
}

/* The folder itself is made like the one it is a copy of. */
static int copy_layer(const char *name, int from_fd, bool owners, struct tree_result *out,
                      struct err *err)
{
    AUTO_FD int to_fd = -1;
    struct stat st;

    if (fstat(from_fd, &st) < 0 || mkdirat(LAYERS_FD_OUT, name, 0700) < 0)
        return err_os(err, "creating the layer %s", name);
    to_fd = openat(LAYERS_FD_OUT, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (to_fd < 0)
        return err_os(err, "opening the layer %s", name);
    if (tree_merge(&from_fd, 1, to_fd, owners, out, err) < 0)
        return err_in(err, "layer %s", name);
    if ((owners && fchown(to_fd, st.st_uid, st.st_gid) < 0) ||
        fchmod(to_fd, st.st_mode & 01777) < 0)
        return err_os(err, "finishing the layer %s", name);
    return 0;
}

static int copy_layers(char *const *names, size_t n, bool owners, struct tree_result *out,
                       struct err *err)
{
    *out = (struct tree_result){0};
    for (size_t i = 0; i < n; i++) {
        struct tree_result one;

        if (copy_layer(names[i], LAYERS_FD_FIRST + (int)i, owners, &one, err) < 0)
            return -1;
        add(out, &one);
    }
    return 0;
}

static int merge_sets(bool copy, bool owners, struct tree_result *out, struct err *err)
{
    int sets[SNAPSHOT_STACK_MAX];
    size_t n = 0;

    while (n < COUNT(sets) && fcntl(LAYERS_FD_FIRST + (int)n, F_GETFD) >= 0) {
        sets[n] = LAYERS_FD_FIRST + (int)n;
        n++;
    }
    return tree_merge(sets, n, copy ? LAYERS_FD_OUT : -1, owners, out, err);
}

static int obey(int argc, char **argv, struct tree_result *out, struct err *err)
{
    bool owners = geteuid() == 0; /* before we seem to be root */

    use_all_descriptors();
    (void)umask(0);
    /* Whoever asked is gone: nobody will name what we make. */
    if (prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0) < 0)
        return err_os(err, "tying ourselves to brig");
    if (become_owner(err) < 0)
        return -1;
    if (argc > 2 && strcmp(argv[1], "copy") == 0)
        return copy_layers(argv + 2, (size_t)argc - 2, owners, out, err);
    if (argc == 2 && strcmp(argv[1], "merge") == 0)
        return merge_sets(true, owners, out, err);
    if (argc == 2 && strcmp(argv[1], "hash") == 0)
        return merge_sets(false, owners, out, err);
    return err_set(err, ERR_INVALID, "layers is started by brig, not by hand");
}

int main(int argc, char **argv)
{
    struct layers_answer answer = {0};
    struct err err;

    answer.failed = obey(argc, argv, &answer.result, &answer.err) < 0;
    if (isatty(STDOUT_FILENO)) {
        (void)fprintf(stderr, "layers is started by brig, not by hand\n");
        return 64;
    }
    return write_all(STDOUT_FILENO, &answer, sizeof answer, &err) < 0 || answer.failed;
}
