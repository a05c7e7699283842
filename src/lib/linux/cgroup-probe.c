/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/cgroup.h"

/* Which tree serves what, and where in it we may create groups.
 *
 * v1: below our own group, so that whatever holds us holds the sandbox too.
 *
 * v2: a group that has processes cannot give its children controllers (only the root of the
 * whole hierarchy can), so "below our own group" works only sometimes. In this order, taking
 * a later place only when it can limit more:
 *
 *   1. our own group, when it is the hierarchy's root, or when we are alone in it and it was
 *      delegated to us (it belongs to us, or systemd marked it): we vacate it;
 *   2. its parent, and as an ordinary user further up as long as the directories are ours: what
 *      is writable there was delegated to us. Root may write everywhere and stops at the parent;
 *   3. our own group when we are merely alone in it, as the first process of a container.
 *
 * If no place can limit, a plain v2 group below our own still kills, freezes and counts. */

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/linux/cgroup-parts.h"

#define BIT(power) (1U << (power))
#define LIMIT_BITS (BIT(CGROUP_LIMITS) - 1)

/* The v1 name of a power's controller; where v2 has a controller for it, the name is the same. */
static const char *const power_names[CGROUP_POWERS] = {
    [CGROUP_MEMORY] = "memory",  [CGROUP_PIDS] = "pids",        [CGROUP_CPU] = "cpu",
    [CGROUP_FREEZE] = "freezer", [CGROUP_CPU_TIME] = "cpuacct", [CGROUP_KILL] = "kill",
};

const char *cgroup_power_name(enum cgroup_power power)
{
    return power_names[power];
}

const char *cgroup_mode_name(enum cgroup_mode mode)
{
    switch (mode) {
    case CGROUP_NONE:
        return "none";
    case CGROUP_V1:
        return "v1";
    case CGROUP_V2:
        return "v2";
    }
    return "none";
}

int cgroup_tree_for(const struct cgroup_host *host, enum cgroup_power power)
{
    for (size_t i = 0; i < host->tree_n; i++)
        if (host->trees[i].serves & BIT(power))
            return (int)i;
    return -1;
}

enum cgroup_mode cgroup_mode(const struct cgroup_host *host, enum cgroup_power power)
{
    int i = cgroup_tree_for(host, power);

    if (i < 0)
        return CGROUP_NONE;
    return host->trees[i].v2 ? CGROUP_V2 : CGROUP_V1;
}

int cgroup_file_read(int dir_fd, const char *file, char out[CGROUP_TEXT_BYTES], struct err *err)
{
    AUTO_FD int fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC);
    ssize_t got;

    if (fd < 0)
        return err_os(err, "opening %s", file);
    got = read(fd, out, CGROUP_TEXT_BYTES - 1);
    if (got < 0)
        return err_os(err, "reading %s", file);
    out[got] = '\0';
    return 0;
}

bool cgroup_try_write(int dir_fd, const char *file, const char *text)
{
    struct err ignored;

    return file_write(dir_fd, file, text, &ignored) == 0;
}

/* The controllers a file like cgroup.controllers names, as bits. */
static unsigned read_powers(int dir_fd, const char *file)
{
    char text[CGROUP_TEXT_BYTES];
    struct err ignored; /* a directory without the file offers nothing */
    struct str list;
    unsigned bits = 0;

    if (cgroup_file_read(dir_fd, file, text, &ignored) < 0)
        return 0;
    list = (struct str){text, strcspn(text, "\n")};
    for (int power = 0; power < CGROUP_LIMITS; power++)
        if (cgroup_list_has(list, ' ', str_of(power_names[power])))
            bits |= BIT(power);
    return bits;
}

/* Something may be mounted over the place mountinfo names; the file system's type tells. */
static bool is_cgroup_dir(const char *dir, bool v2)
{
    struct statfs fs;

    return statfs(dir, &fs) == 0 && fs.f_type == (v2 ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC);
}

static bool can_write(int dir_fd, const char *path, int how)
{
    return faccessat(dir_fd, path, how, AT_EACCESS) == 0;
}

/* ---- v2 ---- */

enum occupants {
    OTHERS, /* zero: somebody else's processes */
    ONLY_US,
    NOBODY,
};

/* A place in the v2 tree that was looked at. */
struct place {
    size_t dir_n;  /* length of its path: a prefix of our own group's directory */
    bool usable;   /* groups can be made here and processes moved here */
    bool root;     /* of the hierarchy itself, not of a container's view */
    bool ours;     /* delegated to us */
    unsigned able; /* limits that groups made here could have */
    enum occupants occupants;
};

static enum occupants read_occupants(int dir_fd)
{
    char text[CGROUP_TEXT_BYTES];
    char us[24];
    struct err ignored; /* unreadable: assume the worst */

    if (cgroup_file_read(dir_fd, "cgroup.procs", text, &ignored) < 0)
        return OTHERS;
    (void)snprintf(us, sizeof us, "%d\n", (int)getpid());
    return !*text ? NOBODY : strcmp(text, us) == 0 ? ONLY_US : OTHERS;
}

/* systemd marks what it hands over (systemd.io/CGROUP_DELEGATION); an ordinary user owns it. */
static bool is_delegated(int dir_fd)
{
    struct stat st;
    char mark[2];

    if (fstat(dir_fd, &st) == 0 && st.st_uid == geteuid() && st.st_uid != 0)
        return true;
    return (fgetxattr(dir_fd, "trusted.delegate", mark, sizeof mark) == 1 && *mark == '1') ||
           (fgetxattr(dir_fd, "user.delegate", mark, sizeof mark) == 1 && *mark == '1');
}

/* Below a group in threaded mode there is no room for whole processes. */
static bool is_domain(int dir_fd, bool root)
{
    char type[CGROUP_TEXT_BYTES];
    struct err ignored;

    return root || (cgroup_file_read(dir_fd, "cgroup.type", type, &ignored) == 0 &&
                    strcmp(type, "domain\n") == 0);
}

static struct place look_at(const char *dir)
{
    struct place place = {.dir_n = strlen(dir)};
    AUTO_FD int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || !is_cgroup_dir(dir, true))
        return place;
    place.root = faccessat(fd, "cgroup.type", F_OK, 0) < 0 && errno == ENOENT;
    place.usable = is_domain(fd, place.root) && can_write(fd, ".", W_OK | X_OK) &&
                   can_write(fd, "cgroup.procs", W_OK);
    place.ours = is_delegated(fd);
    place.occupants = place.root ? NOBODY : read_occupants(fd);
    place.able = read_powers(fd, "cgroup.controllers");
    if (place.occupants == OTHERS || !can_write(fd, "cgroup.subtree_control", W_OK))
        place.able &= read_powers(fd, "cgroup.subtree_control");
    return place;
}

static void take_better(struct place *best, const struct place *place)
{
    if (place->usable && place->able &&
        __builtin_popcount(place->able) > __builtin_popcount(best->able))
        *best = *place;
}

static struct place choose_place(const char *own_dir, const struct place *own, size_t mount_n)
{
    struct place best = {.usable = false};
    char dir[CGROUP_PATH_BYTES];
    /* Who has vacated his group once does not vacate the one he went to as well. */
    bool vacated = str_ends(str_of(own_dir), "/" CGROUP_LEFT_NAME);
    bool own_first = !vacated && (own->occupants != ONLY_US || own->ours);

    if (own_first)
        take_better(&best, own);
    (void)snprintf(dir, sizeof dir, "%s", own_dir);
    while (strlen(dir) > mount_n) {
        struct place above;

        *strrchr(dir, '/') = '\0';
        above = look_at(dir);
        if (!above.usable)
            break;
        take_better(&best, &above);
        if (geteuid() == 0)
            break;
    }
    if (!own_first && !vacated)
        take_better(&best, own);
    if (!best.usable)
        best = *own; /* without limits, still good for the rest */
    return best;
}

/* Why the v2 tree does not hold this limit, for whoever wants it to. */
static void explain_v2(const char *own_dir, const struct place *own, const char *controller,
                       char out[CGROUP_WHY_BYTES])
{
    AUTO_FD int fd = open(own_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    unsigned there = fd < 0 ? 0 : read_powers(fd, "cgroup.controllers");
    bool known = false;

    for (int power = 0; power < CGROUP_LIMITS; power++)
        known |= (there & BIT(power)) && strcmp(power_names[power], controller) == 0;
    if (!known)
        (void)snprintf(out, CGROUP_WHY_BYTES,
                       "the controller \"%s\" is not enabled for the cgroup %.120s; enable it in "
                       "cgroup.subtree_control of the groups above",
                       controller, own_dir);
    else if (!own->usable)
        (void)snprintf(out, CGROUP_WHY_BYTES,
                       "no right to create groups in or beside %.120s; start as root or with "
                       "\"systemd-run --user --scope -p Delegate=yes\"",
                       own_dir);
    else
        (void)snprintf(out, CGROUP_WHY_BYTES,
                       "%.120s holds other processes, so groups below it cannot be limited; start "
                       "with \"systemd-run --scope -p Delegate=yes\"",
                       own_dir);
}

static void probe_v2(const struct cgroup_hierarchy *hierarchy, struct cgroup_host *host)
{
    struct cgroup_tree *tree = &host->trees[host->tree_n];
    struct place own;
    struct place best;
    size_t group_n;

    if (!cgroup_own_dir(hierarchy, tree->base, &tree->mount_n))
        return;
    own = look_at(tree->base);
    best = choose_place(tree->base, &own, tree->mount_n);
    for (int power = 0; power < CGROUP_LIMITS; power++)
        if (!(best.usable && (best.able & BIT(power))))
            explain_v2(tree->base, &own, power_names[power], host->why[power]);
    if (!best.usable)
        return;

    /* The place is our own group or above it: cut the same tail off both spellings. */
    group_n = hierarchy->group.n == 1 ? 0 : hierarchy->group.n;
    group_n -= strlen(tree->base) - best.dir_n;
    if (group_n >= sizeof tree->group)
        return;
    tree->base[best.dir_n] = '\0';
    (void)snprintf(tree->group, sizeof tree->group, "%.*s", (int)(group_n ? group_n : 1),
                   hierarchy->group.p);
    tree->v2 = true;
    tree->vacate = best.able && best.occupants == ONLY_US;
    tree->serves = best.able | BIT(CGROUP_FREEZE) | BIT(CGROUP_CPU_TIME) | BIT(CGROUP_KILL);
    host->tree_n++;
}

/* ---- v1 ---- */

static void probe_v1(const struct cgroup_hierarchy *hierarchy, struct cgroup_host *host)
{
    struct cgroup_tree *tree = &host->trees[host->tree_n];
    unsigned carries = 0;

    /* What v2 does for every group is not worth a v1 group, each of which costs an attach. */
    for (int power = 0; power < CGROUP_KILL; power++)
        if (cgroup_list_has(hierarchy->controllers, ',', str_of(power_names[power])) &&
            cgroup_tree_for(host, (enum cgroup_power)power) < 0)
            carries |= BIT(power);
    if (!carries || host->tree_n == CGROUP_TREES_MAX)
        return;
    if (!cgroup_own_dir(hierarchy, tree->base, &tree->mount_n) ||
        !is_cgroup_dir(tree->base, false) || hierarchy->group.n >= sizeof tree->group ||
        hierarchy->controllers.n >= sizeof tree->controllers ||
        !can_write(AT_FDCWD, tree->base, W_OK | X_OK)) {
        for (int power = 0; power < CGROUP_LIMITS; power++)
            if (carries & BIT(power))
                (void)snprintf(host->why[power], CGROUP_WHY_BYTES,
                               "no right to create groups in the cgroup v1 tree \"%s\"; start as "
                               "root",
                               power_names[power]);
        return;
    }
    (void)snprintf(tree->group, sizeof tree->group, STR_FMT, STR_ARG(hierarchy->group));
    (void)snprintf(tree->controllers, sizeof tree->controllers, STR_FMT,
                   STR_ARG(hierarchy->controllers));
    tree->serves = carries;
    host->tree_n++;
}

/* ---- together ---- */

static void clear_unserved_leftovers(struct cgroup_host *host)
{
    if (host->tree_n < CGROUP_TREES_MAX)
        host->trees[host->tree_n] = (struct cgroup_tree){.serves = 0};
    for (int power = 0; power < CGROUP_LIMITS; power++)
        if (cgroup_tree_for(host, (enum cgroup_power)power) >= 0)
            host->why[power][0] = '\0';
}

int cgroup_probe(struct cgroup_host *out, struct err *err)
{
    AUTO_BUF struct buf groups = BUF(PROC_TEXT_MAX);
    AUTO_BUF struct buf mounts = BUF(PROC_TEXT_MAX);
    struct cgroup_layout layout;

    /* No such file: a kernel without cgroups. That is an answer, not a failure. */
    if (file_read(AT_FDCWD, "/proc/self/cgroup", &groups, err) < 0 && err->os != ENOENT)
        return -1;
    if (file_read(AT_FDCWD, "/proc/self/mountinfo", &mounts, err) < 0 ||
        cgroup_layout_parse(buf_str(&groups), buf_str(&mounts), &layout, err) < 0)
        return err_in(err, "finding the cgroups of this process");

    *out = (struct cgroup_host){.tree_n = 0};
    for (int power = 0; power < CGROUP_LIMITS; power++)
        (void)snprintf(out->why[power], CGROUP_WHY_BYTES,
                       "no mounted cgroup tree has the controller \"%s\"", power_names[power]);
    /* v2 first: it decides which v1 helpers are still needed, and its group is the lock. */
    for (size_t i = 0; i < layout.n; i++)
        if (layout.of[i].v2)
            probe_v2(&layout.of[i], out);
    for (size_t i = 0; i < layout.n; i++)
        if (!layout.of[i].v2)
            probe_v1(&layout.of[i], out);
    clear_unserved_leftovers(out);
    return 0;
}
