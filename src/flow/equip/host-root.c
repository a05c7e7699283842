/* SPDX-License-Identifier: Apache-2.0 */

/* The `host` root: system folders of this machine, read-only, under their own names; an /etc
 * written here; a private /proc, /dev and /run; and the folders every sandbox has. Nothing of
 * anybody's home. */

#include "flow/equip/memory.h"

#include "lib/base/limits.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SHM_BYTES (64ULL << 20)
#define RUN_BYTES (64ULL << 10)
#define VERSIONED_MAX 32

/* Either folders or, on merged systems, links into /usr: taken over as they are. */
static const char *const system_folders[] = {"/usr",   "/bin",   "/sbin",  "/lib",
                                             "/lib32", "/lib64", "/libx32"};

/* What installed programs expect to find of their packages' configuration; public on every
 * Debian. Missing ones are left out. */
static const char *const etc_entries[] = {
    "/etc/alternatives", "/etc/debian_version", "/etc/fonts",           "/etc/ld.so.cache",
    "/etc/ld.so.conf",   "/etc/ld.so.conf.d",   "/etc/magic",           "/etc/mime.types",
    "/etc/perl",         "/etc/ssl/certs",      "/etc/ssl/openssl.cnf", "/etc/terminfo",
};
/* Families of folders that carry a version in their name. */
static const char *const etc_prefixes[] = {"java-", "python3"};

static const char *const devices[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                      "/dev/random", "/dev/urandom", "/dev/tty"};

struct link {
    const char *target;
    const char *to;
};

static const struct link links[] = {
    {"/etc/mtab",       "/proc/self/mounts"    },
    {"/etc/os-release", "../usr/lib/os-release"},
    {"/var/run",        "/run"                 },
    {"/var/tmp",        "/tmp"                 },
};

static const struct link dev_links[] = {
    {"/dev/fd",     "/proc/self/fd"  },
    {"/dev/stdin",  "/proc/self/fd/0"},
    {"/dev/stdout", "/proc/self/fd/1"},
    {"/dev/stderr", "/proc/self/fd/2"},
    {"/dev/ptmx",   "pts/ptmx"       },
};

static const struct {
    const char *target;
    const char *text;
} etc_files[] = {
    {"/etc/hostname",      "sandbox\n"                                                             },
    {"/etc/hosts",         "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost\n"            },
    {"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\nservices: files\n"
                           "protocols: files\n"                          },
    {"/etc/resolv.conf",   RESOLV_CONF                                                             },
    {"/etc/shells",        "/bin/sh\n/bin/bash\n"                                                  },
    {"/etc/services",      "http 80/tcp\nhttps 443/tcp\nssh 22/tcp\ndomain 53/tcp\ndomain 53/udp\n"},
    {"/etc/protocols",     "ip 0 IP\nicmp 1 ICMP\ntcp 6 TCP\nudp 17 UDP\nipv6 41 IPv6\n"           },
};

/* Below /proc: read-only in place, so no sysctl can be written by any uid, ... */
static const char *const proc_readonly[] = {"/proc/sys", "/proc/bus", "/proc/fs", "/proc/irq",
                                            "/proc/sysrq-trigger"};
/* ... or not there at all. */
static const char *const proc_masked[] = {
    "/proc/acpi",       "/proc/asound",        "/proc/config.gz",   "/proc/dynamic_debug",
    "/proc/interrupts", "/proc/kallsyms",      "/proc/kcore",       "/proc/key-users",
    "/proc/keys",       "/proc/kmsg",          "/proc/kpagecgroup", "/proc/kpagecount",
    "/proc/kpageflags", "/proc/latency_stats", "/proc/modules",     "/proc/sched_debug",
    "/proc/scsi",       "/proc/slabinfo",      "/proc/timer_list",  "/proc/timer_stats",
    "/proc/tty",        "/proc/vmallocinfo",   "/proc/zoneinfo",
};

struct plan_mount *mount_add(struct arena *mem, struct mount_list *list, enum mount_kind kind,
                             const char *target)
{
    if (list->n == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 64;
        struct plan_mount *grown = arena_array(mem, struct plan_mount, cap);

        if (list->n)
            memcpy(grown, list->of, list->n * sizeof *grown);
        list->of = grown;
        list->cap = cap;
    }
    list->of[list->n] = (struct plan_mount){.kind = kind, .target = target, .source = "", .fd = -1};
    return &list->of[list->n++];
}

static void add_bind(struct run *run, struct mount_list *list, const char *path,
                     const struct stat *st)
{
    struct plan_mount *mount = mount_add(&run->mem, list, MOUNT_BIND, path);

    mount->source = path;
    mount->device = st->st_dev;
    mount->inode = st->st_ino;
    mount->is_file = !S_ISDIR(st->st_mode);
}

static int add_link(struct run *run, struct mount_list *list, const char *path, struct err *err)
{
    char to[PATH_BYTES_MAX];
    ssize_t n = readlink(path, to, sizeof to - 1);

    if (n < 0)
        return err_os(err, "reading the link %s", path);
    mount_add(&run->mem, list, MOUNT_SYMLINK, path)->source =
        arena_text(&run->mem, (struct str){to, (size_t)n});
    return 0;
}

/* A system folder, or the link it is, or nothing. */
static int add_system(struct run *run, struct mount_list *list, const char *path, struct err *err)
{
    struct stat st;

    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : err_os(err, "looking at %s", path);
    if (S_ISLNK(st.st_mode))
        return add_link(run, list, path, err);
    add_bind(run, list, path, &st);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_versioned(const char *name)
{
    for (size_t i = 0; i < COUNT(etc_prefixes); i++)
        if (strncmp(name, etc_prefixes[i], strlen(etc_prefixes[i])) == 0)
            return true;
    return false;
}

/* In order: a folder lists its entries as it likes, and the plan is hashed. */
static size_t list_versioned(struct run *run, const char *paths[VERSIONED_MAX])
{
    DIR *dir = opendir("/etc");
    const struct dirent *entry;
    size_t n = 0;

    while (dir && n < VERSIONED_MAX && (entry = readdir(dir)) != NULL)
        if (is_versioned(entry->d_name))
            paths[n++] = arena_printf(&run->mem, "/etc/%s", entry->d_name);
    if (dir)
        (void)closedir(dir);
    qsort(paths, n, sizeof *paths, by_name);
    return n;
}

static int add_etc(struct run *run, struct mount_list *list, struct err *err)
{
    const char *versioned[VERSIONED_MAX];
    size_t n = list_versioned(run, versioned);

    for (size_t i = 0; i < COUNT(etc_entries); i++)
        if (add_system(run, list, etc_entries[i], err) < 0)
            return -1;
    for (size_t i = 0; i < n; i++)
        if (add_system(run, list, versioned[i], err) < 0)
            return -1;
    return 0;
}

static void add_accounts(struct run *run, struct mount_list *list)
{
    const struct plan *plan = &run->plan;

    mount_add(&run->mem, list, MOUNT_FILE, "/etc/passwd")->source =
        arena_printf(&run->mem,
                     "sandbox:x:%u:%u:sandbox:/home/sandbox:/bin/sh\n"
                     "root:x:0:0:root:/:/usr/sbin/nologin\n"
                     "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
                     plan->inside_uid, plan->inside_gid);
    mount_add(&run->mem, list, MOUNT_FILE, "/etc/group")->source =
        arena_printf(&run->mem, "sandbox:x:%u:\nroot:x:0:\nnogroup:x:65534:\n", plan->inside_gid);
}

static int add_devices(struct run *run, struct mount_list *list, struct err *err)
{
    struct plan_mount *mount;

    for (size_t i = 0; i < COUNT(devices); i++) {
        struct stat st;

        if (stat(devices[i], &st) < 0 || !S_ISCHR(st.st_mode))
            return err_set(err, ERR_UNAVAILABLE, "%s is not a device on this machine", devices[i]);
        add_bind(run, list, devices[i], &st);
        /* Read-only keeps the node as it is; what is written to the device passes all the same. */
        list->of[list->n - 1].is_device = true;
        list->of[list->n - 1].noexec = true;
    }
    mount = mount_add(&run->mem, list, MOUNT_DEVPTS, "/dev/pts");
    mount->access = MOUNT_RW;
    mount->noexec = true;
    mount = mount_add(&run->mem, list, MOUNT_TMPFS, "/dev/shm");
    mount->access = MOUNT_RW;
    mount->noexec = true;
    mount->size_bytes = SHM_BYTES;
    if (mount->size_bytes > run->plan.limits.of[LIMIT_MEMORY].value / 2)
        mount->size_bytes = run->plan.limits.of[LIMIT_MEMORY].value / 2;
    return 0;
}

static void add_proc(struct run *run, struct mount_list *list)
{
    struct plan_mount *mount = mount_add(&run->mem, list, MOUNT_PROC, "/proc");
    struct stat st;

    mount->access = MOUNT_RW;
    mount->noexec = true;
    for (size_t i = 0; i < COUNT(proc_readonly); i++)
        if (lstat(proc_readonly[i], &st) == 0)
            mount_add(&run->mem, list, MOUNT_READONLY, proc_readonly[i])->noexec = true;
    for (size_t i = 0; i < COUNT(proc_masked); i++)
        if (lstat(proc_masked[i], &st) == 0) {
            mount = mount_add(&run->mem, list, MOUNT_MASK, proc_masked[i]);
            mount->noexec = true;
            mount->is_file = !S_ISDIR(st.st_mode);
        }
}

static void add_folder(struct run *run, struct mount_list *list, const char *target)
{
    mount_add(&run->mem, list, MOUNT_FOLDER, target);
}

/* On disk, in the run's own folder: memory is not spent on files. */
static void add_layer(struct run *run, struct mount_list *list, const char *target,
                      const char *name)
{
    struct plan_mount *mount = mount_add(&run->mem, list, MOUNT_LAYER, target);

    mount->source = name;
    mount->access = MOUNT_RW;
}

int common_mounts(struct run *run, struct mount_list *list, struct err *err)
{
    struct plan_mount *mount;

    if (add_devices(run, list, err) < 0)
        return -1;
    for (size_t i = 0; i < COUNT(dev_links); i++)
        mount_add(&run->mem, list, MOUNT_SYMLINK, dev_links[i].target)->source = dev_links[i].to;
    add_proc(run, list);
    mount = mount_add(&run->mem, list, MOUNT_TMPFS, "/run");
    mount->access = MOUNT_RW; /* Landlock grants nothing there: it is where that is probed */
    mount->noexec = true;
    mount->size_bytes = RUN_BYTES;
    add_folder(run, list, "/var/empty");
    add_folder(run, list, "/sandbox/input");
    add_folder(run, list, "/workspace");
    add_folder(run, list, "/mnt");
    add_layer(run, list, "/sandbox/output", "output");
    add_layer(run, list, "/sandbox/tmp", "tmp");
    add_layer(run, list, "/tmp", "tmp");
    add_layer(run, list, HOME_TARGET, "home");
    return 0;
}

/* Everything that what is made below depends on. What is in a folder of these is the same while the
 * folder is unchanged and nothing was mounted; /proc keeps no such times. */
static void look_at_root(struct looks *looks)
{
    static const char *const folders[] = {"/", "/etc", "/etc/ssl"};

    looks_begin(looks);
    for (size_t i = 0; i < COUNT(folders); i++)
        looks_add(looks, folders[i], LOOK_CONTENT);
    for (size_t i = 0; i < COUNT(devices); i++)
        looks_add(looks, devices[i], LOOK_WHICH);
    for (size_t i = 0; i < COUNT(proc_readonly); i++)
        looks_add(looks, proc_readonly[i], LOOK_WHICH);
    for (size_t i = 0; i < COUNT(proc_masked); i++)
        looks_add(looks, proc_masked[i], LOOK_WHICH);
}

static int make_root(struct run *run, struct mount_list *list, struct err *err)
{
    for (size_t i = 0; i < COUNT(system_folders); i++)
        if (add_system(run, list, system_folders[i], err) < 0)
            return -1;
    if (add_etc(run, list, err) < 0)
        return -1;
    for (size_t i = 0; i < COUNT(etc_files); i++)
        mount_add(&run->mem, list, MOUNT_FILE, etc_files[i].target)->source = etc_files[i].text;
    add_accounts(run, list);
    for (size_t i = 0; i < COUNT(links); i++)
        mount_add(&run->mem, list, MOUNT_SYMLINK, links[i].target)->source = links[i].to;
    return common_mounts(run, list, err);
}

int host_root_mounts(struct plan_memory *memory, const struct mount_view *table, struct run *run,
                     struct mount_list *list, struct err *err)
{
    struct looks looks;

    if (memory_root(memory, run, table->version, list))
        return 0;
    look_at_root(&looks);
    if (make_root(run, list, err) < 0)
        return -1;
    memory_keep_root(memory, run, table->version, &looks, list);
    return 0;
}
