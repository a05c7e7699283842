/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/cgroup.h"

/* Making, finding and filling the groups of one sandbox.
 *
 * Everything after opening goes through the directory descriptors: the paths may mean something
 * else once mounts change. A group is readable by its maker only, or anybody could hold the lock
 * that tells a living maker from a dead one. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/linux/cgroup-parts.h"

#define MAKE_TRIES 3

static int check_name(const char *name, struct err *err)
{
    size_t n = strlen(name);

    if (n == 0 || n >= CGROUP_NAME_BYTES || name[0] < 'a' || name[0] > 'z' ||
        strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") != n)
        return err_set(err, ERR_INVALID,
                       "\"%.80s\" cannot name a cgroup; use a letter and then up to %d of a-z 0-9 "
                       ". -",
                       name, CGROUP_NAME_BYTES - 2);
    return 0;
}

/* ---- v2: bringing the limits within reach of the groups we make ---- */

static int leave_base(int base_fd, struct err *err)
{
    char pid[24];

    if (mkdirat(base_fd, CGROUP_LEFT_NAME, 0755) < 0 && errno != EEXIST)
        return err_os(err, "creating " CGROUP_LEFT_NAME);
    (void)snprintf(pid, sizeof pid, "%d", (int)getpid());
    return file_write(base_fd, CGROUP_LEFT_NAME "/cgroup.procs", pid, err);
}

/* "+memory +cpu": what groups made here shall have and do not have yet. */
static int missing_controllers(const struct cgroup_tree *tree, int base_fd, char *out, size_t size,
                               struct err *err)
{
    char text[CGROUP_TEXT_BYTES];
    struct str enabled;
    size_t n = 0;

    if (cgroup_file_read(base_fd, "cgroup.subtree_control", text, err) < 0)
        return -1;
    enabled = (struct str){text, strcspn(text, "\n")};
    out[0] = '\0';
    for (int power = 0; power < CGROUP_LIMITS; power++) {
        const char *controller = cgroup_power_name((enum cgroup_power)power);

        if (!(tree->serves & 1U << power) || cgroup_list_has(enabled, ' ', str_of(controller)))
            continue;
        n += (size_t)snprintf(out + n, size - n, "%s+%s", n ? " " : "", controller);
    }
    return 0;
}

int cgroup_tree_prepare(const struct cgroup_tree *tree, struct err *err)
{
    AUTO_FD int base_fd = -1;
    char wanted[64];

    if (!tree->v2 || !(tree->serves & ((1U << CGROUP_LIMITS) - 1)))
        return 0; /* no limits are to be had from it */
    base_fd = open(tree->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (base_fd < 0)
        return err_os(err, "opening %s", tree->base);
    if (missing_controllers(tree, base_fd, wanted, sizeof wanted, err) < 0)
        return err_in(err, "%s", tree->base);
    if (!*wanted)
        return 0;
    if ((tree->vacate && leave_base(base_fd, err) < 0) ||
        file_write(base_fd, "cgroup.subtree_control", wanted, err) < 0)
        return err_in(err, "%s", tree->base);
    return 0;
}

int cgroup_settle(struct err *err)
{
    struct cgroup_host host;

    if (cgroup_probe(&host, err) < 0)
        return -1;
    for (size_t i = 0; i < host.tree_n; i++)
        if (host.trees[i].vacate && cgroup_tree_prepare(&host.trees[i], err) < 0)
            return -1;
    return 0;
}

/* ---- make ---- */

static int make_group(const struct cgroup_tree *tree, const char *name, int *out, struct err *err)
{
    char path[CGROUP_PATH_BYTES + CGROUP_NAME_BYTES];

    (void)snprintf(path, sizeof path, "%s/%s", tree->base, name);
    if (mkdir(path, 0700) < 0) {
        if (errno == EEXIST)
            return err_set(err, ERR_CONFLICT, "the cgroup %s exists already", path);
        return err_os(err, "creating the cgroup %s", path);
    }
    *out = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (*out < 0) {
        (void)err_os(err, "opening the cgroup %s", path);
        (void)rmdir(path); /* made a moment ago; the failure to report is the one above */
        return -1;
    }
    return 0;
}

static struct cgroup_set blank_set(const struct cgroup_host *host, const char *name)
{
    struct cgroup_set set = {.host = host, .peak_fd = -1};

    (void)snprintf(set.name, sizeof set.name, "%s", name);
    for (size_t i = 0; i < CGROUP_TREES_MAX; i++)
        set.dir_fd[i] = -1;
    return set;
}

/* The first tree carries the lock that says the set has an owner; v2 groups are those a process can
 * be born into. */
static bool is_early(const struct cgroup_host *host, size_t i)
{
    return i == 0 || host->trees[i].v2;
}

static int make_part(struct cgroup_set *set, bool early, struct err *err)
{
    for (size_t i = 0; i < set->host->tree_n; i++)
        if (is_early(set->host, i) == early &&
            make_group(&set->host->trees[i], set->name, &set->dir_fd[i], err) < 0)
            return -1;
    return 0;
}

static int take_back(struct cgroup_set *set)
{
    struct err ignored; /* the failure to tell of is why it is taken back */

    if (cgroup_set_remove(set, 0, &ignored) < 0)
        cgroup_set_done(set);
    return -1;
}

static int begin_groups(const struct cgroup_host *host, const char *name, struct cgroup_set *out,
                        struct err *err)
{
    struct cgroup_set set = blank_set(host, name);

    set.made = true;
    if (make_part(&set, true, err) < 0 || cgroup_set_claim(&set, err) < 0)
        return take_back(&set);
    *out = set;
    return 0;
}

int cgroup_set_begin(const struct cgroup_host *host, const char *name, struct cgroup_set *out,
                     struct err *err)
{
    int made;

    if (check_name(name, err) < 0)
        return -1;
    if (!host->tree_n)
        return err_set(err, ERR_UNAVAILABLE, "no cgroups can be created: %s",
                       host->why[CGROUP_MEMORY]);
    for (size_t i = 0; i < host->tree_n; i++)
        if (cgroup_tree_prepare(&host->trees[i], err) < 0)
            return err_in(err, "preparing cgroups");
    /* Somebody who sweeps leftovers may take a new group for one before we hold its lock. He
     * removes it, and the next try finds the name free. */
    made = begin_groups(host, name, out, err);
    for (int tries = 1; tries < MAKE_TRIES && made < 0 && err->code == ERR_CONFLICT; tries++)
        made = begin_groups(host, name, out, err);
    return made;
}

int cgroup_set_complete(struct cgroup_set *set, struct err *err)
{
    return make_part(set, false, err);
}

int cgroup_set_make(const struct cgroup_host *host, const char *name, struct cgroup_set *out,
                    struct err *err)
{
    struct cgroup_set set;

    if (cgroup_set_begin(host, name, &set, err) < 0)
        return -1;
    if (cgroup_set_complete(&set, err) < 0)
        return take_back(&set);
    *out = set;
    return 0;
}

int cgroup_set_claim(const struct cgroup_set *set, struct err *err)
{
    for (size_t i = 0; i < set->host->tree_n; i++) {
        if (set->dir_fd[i] < 0)
            continue;
        if (flock(set->dir_fd[i], LOCK_EX | LOCK_NB) == 0)
            return 0;
        if (errno == EWOULDBLOCK)
            return err_set(err, ERR_CONFLICT, "the cgroups %s are in use", set->name);
        return err_os(err, "locking the cgroup %s", set->name);
    }
    return err_set(err, ERR_NOT_FOUND, "there are no cgroups %s", set->name);
}

void cgroup_set_done(struct cgroup_set *set)
{
    if (!set->host)
        return;
    for (size_t i = 0; i < set->host->tree_n; i++)
        if (set->dir_fd[i] >= 0)
            (void)close(set->dir_fd[i]);
    if (set->peak_fd >= 0)
        (void)close(set->peak_fd);
    *set = (struct cgroup_set){.host = NULL};
}

/* ---- find and list ---- */

/* Walks the groups of a tree, parents first, and collects matching names or opens the first. */
struct walk {
    const char *name; /* all of it, or only the beginning */
    bool prefix;
    struct buf *names; /* prefix: each with its NUL */
    int found_fd;      /* otherwise */
    unsigned left;     /* how many groups we still look at */
};

static bool is_wanted(const struct walk *walk, const char *name)
{
    return walk->prefix ? strncmp(name, walk->name, strlen(walk->name)) == 0
                        : strcmp(name, walk->name) == 0;
}

static int walk_group(struct walk *walk, int fd, unsigned depth, struct err *err);

static int walk_entry(struct walk *walk, int dir_fd, const char *name, unsigned depth,
                      struct err *err)
{
    AUTO_FD int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return 0; /* gone meanwhile, or not for us */
    if (walk->left == 0 || depth == 0)
        return err_set(err, ERR_LIMIT, "more than %d cgroups to look through, or deeper than %d",
                       CGROUP_WALK_MAX, CGROUP_WALK_DEPTH_MAX);
    walk->left--;
    if (is_wanted(walk, name)) {
        if (walk->prefix)
            return buf_add(walk->names, name, strlen(name) + 1, err);
        walk->found_fd = TAKE_FD(fd);
        return 0;
    }
    return walk_group(walk, TAKE_FD(fd), depth - 1, err);
}

static int walk_group(struct walk *walk, int fd, unsigned depth, struct err *err)
{
    DIR *dir = fdopendir(fd);
    const struct dirent *entry;
    int failed = 0;

    if (!dir) {
        (void)close(fd);
        return err_os(err, "listing cgroups");
    }
    while (!failed && walk->found_fd < 0 && (entry = readdir(dir)) != NULL)
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            failed = walk_entry(walk, dirfd(dir), entry->d_name, depth, err);
    (void)closedir(dir);
    return failed;
}

static int walk_tree(const struct cgroup_tree *tree, struct walk *walk, struct err *err)
{
    char top[CGROUP_PATH_BYTES];
    int fd;

    (void)snprintf(top, sizeof top, "%.*s", (int)tree->mount_n, tree->base);
    walk->found_fd = -1;
    walk->left = CGROUP_WALK_MAX;
    fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_os(err, "opening %s", top);
    return walk_group(walk, fd, CGROUP_WALK_DEPTH_MAX, err);
}

static int find_group(const struct cgroup_tree *tree, const char *name, int *out, struct err *err)
{
    struct walk walk = {.name = name};
    char path[CGROUP_PATH_BYTES + CGROUP_NAME_BYTES];

    (void)snprintf(path, sizeof path, "%s/%s", tree->base, name);
    *out = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (*out >= 0)
        return 0;
    if (errno != ENOENT)
        return err_os(err, "opening the cgroup %s", path);
    if (walk_tree(tree, &walk, err) < 0)
        return -1;
    *out = walk.found_fd;
    return 0;
}

int cgroup_set_find(const struct cgroup_host *host, const char *name, struct cgroup_set *out,
                    struct err *err)
{
    AUTO_CGROUP_SET struct cgroup_set set = blank_set(host, name);
    bool any = false;

    if (check_name(name, err) < 0)
        return -1;
    for (size_t i = 0; i < host->tree_n; i++) {
        if (find_group(&host->trees[i], name, &set.dir_fd[i], err) < 0)
            return -1;
        any = any || set.dir_fd[i] >= 0;
    }
    if (!any)
        return err_set(err, ERR_NOT_FOUND, "there are no cgroups %s", name);
    *out = set;
    set = (struct cgroup_set){.host = NULL};
    return 0;
}

static bool was_listed(const struct buf *names, size_t before, const char *name)
{
    for (const char *p = names->p; p < names->p + before; p += strlen(p) + 1)
        if (strcmp(p, name) == 0)
            return true;
    return false;
}

int cgroup_list(const struct cgroup_host *host, const char *prefix,
                int (*on_group)(void *context, const char *name, struct err *err), void *context,
                struct err *err)
{
    AUTO_BUF struct buf names = BUF(CGROUP_NAMES_MAX);
    struct walk walk = {.name = prefix, .prefix = true, .names = &names};
    int answer = 0;

    /* First all names, then the calls: what is called may remove groups under the walk. */
    for (size_t i = 0; i < host->tree_n; i++)
        if (walk_tree(&host->trees[i], &walk, err) < 0)
            return -1;
    for (size_t at = 0; at < names.n && answer == 0; at += strlen(names.p + at) + 1)
        if (!was_listed(&names, at, names.p + at))
            answer = on_group(context, names.p + at, err);
    return answer;
}

/* ---- processes ---- */

int cgroup_set_v2_fd(const struct cgroup_set *set)
{
    for (size_t i = 0; set->host && i < set->host->tree_n; i++)
        if (set->host->trees[i].v2)
            return set->dir_fd[i];
    return -1;
}

static int join_tree(const struct cgroup_set *set, size_t i, const char *file, const char *pid,
                     struct err *err)
{
    if (set->dir_fd[i] < 0)
        return err_set(err, ERR_NOT_FOUND, "the cgroup %s is gone from %s", set->name,
                       set->host->trees[i].base);
    if (file_write(set->dir_fd[i], file, pid, err) < 0)
        return err_in(err, "moving a process into the cgroup %s/%s", set->host->trees[i].base,
                      set->name);
    return 0;
}

/* One thread has one folder; the others are "." and "..". */
static bool has_one_thread(void)
{
    struct stat tasks;

    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3;
}

int cgroup_set_enter(const struct cgroup_set *set, enum cgroup_join which, struct err *err)
{
    /* "tasks" moves a thread and "0" is the caller: only these two together spare the lock, and
     * they would leave further threads outside. */
    if (!has_one_thread())
        return err_set(err, ERR_INVALID, "only a process with one thread can enter a cgroup");
    for (size_t i = 0; i < set->host->tree_n; i++) {
        bool v2 = set->host->trees[i].v2;

        if ((!v2 || which == CGROUP_JOIN_ALL) &&
            join_tree(set, i, v2 ? "cgroup.procs" : "tasks", "0", err) < 0)
            return -1;
    }
    return 0;
}

int cgroup_set_doors(const struct cgroup_set *set, int fds[CGROUP_TREES_MAX], size_t *n,
                     struct err *err)
{
    *n = 0;
    for (size_t i = 0; i < set->host->tree_n; i++) {
        if (set->host->trees[i].v2)
            continue;
        fds[*n] = set->dir_fd[i] < 0 ? -1 : openat(set->dir_fd[i], "tasks", O_WRONLY | O_CLOEXEC);
        if (fds[*n] < 0)
            return err_os(err, "opening the cgroup %s/%s", set->host->trees[i].base, set->name);
        (*n)++;
    }
    return 0;
}

int cgroup_enter_doors(const int *fds, size_t n, struct err *err)
{
    if (!has_one_thread())
        return err_set(err, ERR_INVALID, "only a process with one thread can enter a cgroup");
    for (size_t i = 0; i < n; i++)
        if (write(fds[i], "0", 1) != 1)
            return err_os(err, "moving into a cgroup");
    return 0;
}

int cgroup_set_join(const struct cgroup_set *set, pid_t pid, enum cgroup_join which,
                    struct err *err)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%d", (int)pid);
    for (size_t i = 0; i < set->host->tree_n; i++)
        if (!(set->host->trees[i].v2 && which == CGROUP_JOIN_V1) &&
            join_tree(set, i, "cgroup.procs", text, err) < 0)
            return -1;
    return 0;
}

int cgroup_set_contains(const struct cgroup_set *set, pid_t pid, bool *out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(PROC_TEXT_MAX);
    char path[48];
    bool within = true;

    (void)snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    if (file_read(AT_FDCWD, path, &text, err) < 0) {
        if (err->os == ENOENT || err->os == ESRCH)
            return err_set(err, ERR_NOT_FOUND, "there is no process %d", (int)pid);
        return -1;
    }
    for (size_t i = 0; i < set->host->tree_n; i++)
        within = within && set->dir_fd[i] >= 0 &&
                 cgroup_line_within(buf_str(&text), &set->host->trees[i], set->name);
    *out = within && set->host->tree_n > 0;
    return 0;
}
