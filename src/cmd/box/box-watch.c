/* SPDX-License-Identifier: Apache-2.0 */

/* Limits the kernel does not hold for us here: measured a few times a second, from outside.
 *
 * Memory is what the sandbox's processes have resident, in two looks. The cheap one adds up
 * resident pages, which counts shared ones too often; only when that is over the limit the
 * dear one adds up the proportional shares of anonymous and shared memory. What lies in /dev/shm
 * counts at least as much as what of it is mapped; other memory that is in no process is not to
 * be had (filters.h).
 *
 * Disk is what lies in the run's own folder, plus what its processes hold open or, as far as root
 * looks, mapped there after deleting it, each file once. What cannot be measured is over the limit.
 * Deleted files that wait in a socket are not seen; by an ordinary user neither are those kept by a
 * mapping only or open in a process that hides its descriptors. Decision 0016 says why a kernel
 * that would refuse them is not asked to. */

#include "cmd/box/box.h"

#include "lib/base/clock.h"
#include "lib/base/limits.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#define DISK_PAUSE_US 100000U
/* A single file may be as long as the limit (RLIMIT_FSIZE), and whoever writes it is told so by the
 * kernel. What the folders around it and its own extents take on top must not end the sandbox
 * before he has heard it. */
#define DISK_OVERHEAD_BYTES (256U * 1024U)
#define ENTRIES_BETWEEN_ORDERS 64U
#define OPEN_FILES_MAX 20000U
#define TREE_DEPTH_MAX 256U

static bool read_small(int dir_fd, const char *path, char *text, size_t size)
{
    int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n;

    if (fd < 0)
        return false; /* it ended meanwhile */
    n = read(fd, text, size - 1);
    (void)close(fd);
    if (n < 0)
        return false;
    text[n] = '\0';
    return true;
}

static DIR *open_folder(int dir_fd, const char *name)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (fd >= 0 && !dir)
        (void)close(fd);
    return dir;
}

/* ---- memory ---- */

static uint64_t resident_bytes(int proc_fd, const char *pid)
{
    char path[64];
    char text[128];
    unsigned long long size = 0, resident = 0;

    (void)snprintf(path, sizeof path, "%.20s/statm", pid);
    if (!read_small(proc_fd, path, text, sizeof text) ||
        sscanf(text, "%llu %llu", &size, &resident) != 2)
        return 0;
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t field_kib(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at ? strtoull(at + strlen(name), NULL, 10) * 1024U : 0;
}

/* ---- open but deleted files ---- */

/* A file is open in many processes when it was inherited: seen once, counted once. */
#define SEEN_SLOTS 4096U /* a power of two; beyond it files count again */

struct seen {
    uint64_t device, inode;
};

struct held {
    uint64_t device; /* of the run's folder: what is deleted elsewhere is not disk */
    uint64_t disk_bytes;
    uint64_t files;
    unsigned looked_at;
    struct seen *seen; /* SEEN_SLOTS of them */
};

/* Its memory is given back after each look: a sandbox mostly has nobody in it, and there are many.
 */
static _Alignas(4096) struct seen seen_slots[SEEN_SLOTS];

static bool is_first_look(struct held *held, const struct stat *st)
{
    size_t at = (size_t)(st->st_ino * 0x9e3779b97f4a7c15ULL >> 32);

    for (unsigned tries = 0; tries < 32; tries++) {
        struct seen *slot = &held->seen[(at + tries) % SEEN_SLOTS];

        if (slot->inode == 0) {
            *slot = (struct seen){st->st_dev, st->st_ino};
            return true;
        }
        if (slot->inode == st->st_ino && slot->device == st->st_dev)
            return false;
    }
    return true;
}

/* Counts the file at this name of a process when it is deleted, on disk, and new to us. */
static void look_at_file(int dir_fd, const char *name, struct held *held)
{
    struct stat st;

    held->looked_at++;
    if (fstatat(dir_fd, name, &st, 0) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 0 ||
        st.st_dev != held->device || !is_first_look(held, &st))
        return;
    held->files++;
    held->disk_bytes += (uint64_t)st.st_blocks * 512U;
}

static void look_at_open_files(int proc_fd, const char *pid, struct held *held)
{
    char path[64];
    DIR *dir;
    const struct dirent *entry;

    (void)snprintf(path, sizeof path, "%.20s/fd", pid);
    dir = open_folder(proc_fd, path);
    if (!dir)
        return;
    while (held->looked_at < OPEN_FILES_MAX && (entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.')
            look_at_file(dirfd(dir), entry->d_name, held);
    (void)closedir(dir);
}

/* A mapping is "BEGIN-END PERMS OFFSET DEVICE INODE PATH", and BEGIN-END its name in map_files,
 * which tells what kind of file it is, to root only. Few are of deleted files; the others cost
 * reading a line. */
static void look_at_mapped_files(int proc_fd, const char *pid, struct held *held)
{
    static const char deleted[] = " (deleted)\n";
    char path[64];
    char line[PATH_BYTES_MAX + 128];
    FILE *maps;
    int fd;

    (void)snprintf(path, sizeof path, "%.20s/maps", pid);
    fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    maps = fd < 0 ? NULL : fdopen(fd, "r");
    if (fd >= 0 && !maps)
        (void)close(fd);
    while (maps && held->looked_at < OPEN_FILES_MAX && fgets(line, sizeof line, maps)) {
        size_t n = strlen(line);
        unsigned long begin, end;

        if (n < sizeof deleted || strcmp(line + n - (sizeof deleted - 1), deleted) != 0 ||
            sscanf(line, "%lx-%lx ", &begin, &end) != 2)
            continue;
        (void)snprintf(path, sizeof path, "%.20s/map_files/%lx-%lx", pid, begin, end);
        look_at_file(proc_fd, path, held);
    }
    if (maps)
        (void)fclose(maps);
}

/* ---- processes ---- */

struct census {
    uint64_t processes;
    uint64_t resident_bytes;
    uint64_t anon_bytes; /* proportional shares, by the dear look only */
    uint64_t shared_bytes;
    struct held held;
};

static void add_shares(int proc_fd, const char *pid, struct census *census)
{
    char path[64];
    char text[4096];

    (void)snprintf(path, sizeof path, "%.20s/smaps_rollup", pid);
    if (!read_small(proc_fd, path, text, sizeof text))
        return;
    census->anon_bytes += field_kib(text, "\nPss_Anon:");
    census->shared_bytes += field_kib(text, "\nPss_Shmem:");
}

static void count_processes(int proc_fd, bool dear, const struct stat *layer, struct census *census)
{
    DIR *dir = open_folder(proc_fd, ".");
    const struct dirent *entry;

    memset(census, 0, sizeof *census);
    if (layer)
        census->held = (struct held){.device = layer->st_dev, .seen = seen_slots};
    if (!dir)
        return;
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        census->processes++;
        census->resident_bytes += resident_bytes(proc_fd, entry->d_name);
        if (dear)
            add_shares(proc_fd, entry->d_name, census);
        if (layer)
            look_at_open_files(proc_fd, entry->d_name, &census->held);
        if (layer && geteuid() == 0)
            look_at_mapped_files(proc_fd, entry->d_name, &census->held);
    }
    (void)closedir(dir);
}

/* ---- the run's folder ---- */

struct tree {
    uint64_t bytes;
    uint64_t entries;
    uint64_t entries_max;
    int orders_fd; /* somebody who waits there comes first; or -1 */
    bool too_deep;
    bool left; /* not measured to the end, for that */
};

static bool goes_on(struct tree *tree)
{
    struct pollfd polled = {.fd = tree->orders_fd, .events = POLLIN};

    if (tree->orders_fd >= 0 &&
        tree->entries % ENTRIES_BETWEEN_ORDERS == ENTRIES_BETWEEN_ORDERS - 1)
        tree->left |= poll(&polled, 1, 0) > 0;
    return !tree->left && tree->entries <= tree->entries_max;
}

/* A folder its owner took his own rights from is opened for as long as we look. We are the same
 * user, or root who needs no rights. */
static DIR *unlock_folder(int dir_fd, const char *name, char unlocked[64], mode_t *mode)
{
    int fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    DIR *dir = NULL;

    unlocked[0] = '\0';
    if (fd < 0)
        return NULL; /* it went meanwhile */
    if (geteuid() != 0 && fstat(fd, &st) == 0 && (st.st_mode & 0500) != 0500) {
        *mode = st.st_mode & 07777;
        (void)snprintf(unlocked, 64, "/proc/self/fd/%d", fd);
        if (chmod(unlocked, *mode | 0500) < 0)
            unlocked[0] = '\0';
    }
    dir = open_folder(dir_fd, name);
    (void)close(fd);
    if (dir && unlocked[0])
        (void)snprintf(unlocked, 64, "/proc/self/fd/%d", dirfd(dir));
    return dir;
}

/* Folders overlayfs works in are shut and hold nothing of the sandbox's. */
static bool is_work(const char *name)
{
    size_t n = strlen(name);

    return n > strlen(LAYER_WORK) && strcmp(name + n - strlen(LAYER_WORK), LAYER_WORK) == 0;
}

static void measure_tree(int dir_fd, const char *name, unsigned depth, struct tree *tree)
{
    char unlocked[64];
    mode_t mode = 0;
    const struct dirent *entry;
    DIR *dir;

    if (depth >= TREE_DEPTH_MAX) {
        tree->too_deep = true;
        return;
    }
    dir = unlock_folder(dir_fd, name, unlocked, &mode);
    if (!dir)
        return;
    while (goes_on(tree) && (entry = readdir(dir)) != NULL) {
        struct stat st;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            (depth == 0 && is_work(entry->d_name)) ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        tree->entries++;
        if (S_ISDIR(st.st_mode))
            measure_tree(dirfd(dir), entry->d_name, depth + 1, tree);
        /* A file with several names here is counted a part at each. */
        tree->bytes += (uint64_t)st.st_blocks * 512U /
                       (S_ISDIR(st.st_mode) || st.st_nlink == 0 ? 1U : (uint64_t)st.st_nlink);
    }
    if (unlocked[0])
        (void)chmod(unlocked, mode);
    (void)closedir(dir);
}

static enum reason look_at_disk(struct watch *watch, const struct census *census)
{
    const struct box_plan *plan = watch->plan;
    /* An order cuts one look short, never two in a row. */
    struct tree tree = {.entries_max = plan->watch_inodes ? plan->watch_inodes : UINT64_MAX,
                        .orders_fd = watch->disk_left ? -1 : plan->control_fd};
    uint64_t began_us = clock_us();

    measure_tree(AT_FDCWD, plan_text(plan, plan->run_dir), 0, &tree);
    watch->disk_left = tree.left;
    if (tree.left)
        return REASON_NONE;
    /* Never spend more than a fifth of one processor on looking. */
    watch->next_disk_us = clock_us() + DISK_PAUSE_US + 4 * (clock_us() - began_us);
    watch->disk_bytes = tree.bytes + census->held.disk_bytes;
    if (plan->watch_inodes && tree.entries + census->held.files > plan->watch_inodes)
        return REASON_LIMIT_INODES;
    if (tree.too_deep || (plan->watch_disk_bytes &&
                          watch->disk_bytes > plan->watch_disk_bytes + DISK_OVERHEAD_BYTES))
        return REASON_LIMIT_DISK;
    return REASON_NONE;
}

/* What lies in the sandbox's /dev/shm, mapped or not. */
static uint64_t shared_files_bytes(const struct watch *watch)
{
    struct statfs fs;

    if (watch->shm_fd < 0 || fstatfs(watch->shm_fd, &fs) < 0)
        return 0;
    return (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
}

static enum reason look_at_memory(struct watch *watch, const struct census *seen)
{
    uint64_t limit = watch->plan->watch_memory_bytes;
    uint64_t files = shared_files_bytes(watch);
    uint64_t used = seen->resident_bytes + files;
    struct census census;

    if (limit && used > limit) {
        count_processes(watch->proc_fd, true, NULL, &census);
        used = census.anon_bytes + (files > census.shared_bytes ? files : census.shared_bytes);
    }
    if (used > watch->peak_memory_bytes)
        watch->peak_memory_bytes = used;
    return limit && used > limit ? REASON_LIMIT_MEMORY : REASON_NONE;
}

enum reason watch_look(struct watch *watch)
{
    const struct box_plan *plan = watch->plan;
    struct stat layer;
    bool disk = (plan->watch_disk_bytes || plan->watch_inodes) &&
                clock_us() >= watch->next_disk_us &&
                stat(plan_text(plan, plan->run_dir), &layer) == 0;
    struct census census = {0};
    enum reason reason = REASON_NONE;

    if (watch->proc_fd >= 0) {
        count_processes(watch->proc_fd, false, disk ? &layer : NULL, &census);
        watch->processes = census.processes;
        watch->memory_bytes = census.resident_bytes;
        watch->pids_reached |= plan->pids && census.processes >= plan->pids;
        reason = look_at_memory(watch, &census);
    }
    if (reason == REASON_NONE && disk)
        reason = look_at_disk(watch, &census);
    /* What cannot be given back must not be taken for what was seen this time. */
    if (disk && madvise(seen_slots, sizeof seen_slots, MADV_DONTNEED) < 0)
        memset(seen_slots, 0, sizeof seen_slots);
    return reason;
}

static uint64_t field_bytes(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

void watch_io(const struct watch *watch, uint64_t *read_bytes, uint64_t *written_bytes)
{
    const struct dirent *entry;
    char path[64], text[512];
    DIR *dir;

    *read_bytes = *written_bytes = 0;
    /* Without PID 1, which has what the dead have used, the sum would be some number. */
    if (!read_small(watch->proc_fd, "1/io", text, sizeof text))
        return;
    dir = open_folder(watch->proc_fd, ".");
    while (dir && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        (void)snprintf(path, sizeof path, "%.20s/io", entry->d_name);
        if (!read_small(watch->proc_fd, path, text, sizeof text))
            continue;
        *read_bytes += field_bytes(text, "\nread_bytes:");
        *written_bytes += field_bytes(text, "\nwrite_bytes:");
    }
    if (dir)
        (void)closedir(dir);
}

uint64_t watch_count(const struct watch *watch)
{
    struct census census;

    count_processes(watch->proc_fd, false, NULL, &census);
    return census.processes;
}

/* "R", "S", "D", "T", "Z"…; 0: it ended meanwhile. */
static char state_of(int proc_fd, const char *pid)
{
    char path[64];
    char text[512];
    const char *name_end;

    (void)snprintf(path, sizeof path, "%.20s/stat", pid);
    if (!read_small(proc_fd, path, text, sizeof text))
        return 0;
    name_end = strrchr(text, ')');
    if (!name_end || name_end[1] != ' ')
        return 'R';
    return name_end[2];
}

/* Whoever made a child that shares its memory sleeps until that one is done with it, and cannot be
 * stopped meanwhile; when the child is stopped it does nothing either. */
static bool waits_for_stopped(int proc_fd, const char *pid)
{
    char path[64];
    char text[256];
    char *end;

    (void)snprintf(path, sizeof path, "%.20s/task/%.20s/children", pid, pid);
    if (!read_small(proc_fd, path, text, sizeof text))
        return false;
    for (char *at = text; strtoul(at, &end, 10), end != at; at = end) {
        char child[24];

        (void)snprintf(child, sizeof child, "%lu", strtoul(at, NULL, 10));
        if (state_of(proc_fd, child) == 'T')
            return true;
    }
    return false;
}

bool watch_all_stopped(const struct watch *watch)
{
    DIR *dir = open_folder(watch->proc_fd, ".");
    const struct dirent *entry;
    bool stopped = dir != NULL;

    while (stopped && (entry = readdir(dir)) != NULL) {
        char state;

        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || strcmp(entry->d_name, "1") == 0)
            continue;
        state = state_of(watch->proc_fd, entry->d_name);
        stopped = !state || strchr("TtZX", state) ||
                  (state == 'D' && waits_for_stopped(watch->proc_fd, entry->d_name));
    }
    if (dir)
        (void)closedir(dir);
    return stopped;
}
