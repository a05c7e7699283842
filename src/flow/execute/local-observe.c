/* SPDX-License-Identifier: Apache-2.0 */

/* What the parked sandbox really is: from outside, what the kernel says of its PID 1 and of its
 * cgroups; from inside, what only shows there (box-report.c in cmd/box lists the sections).
 * Whatever cannot be read stays zero, and zero never equals a plan. */

#include "flow/execute/local.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/linux/landlock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- the report ---- */

static struct str section(struct str report, const char *name)
{
    while (report.n) {
        struct str head = str_cut(&report, '\n');
        uint64_t n = 0;
        struct str mark = str_cut(&head, ' ');
        struct str found = str_cut(&head, ' ');

        if (!str_is(mark, "=") || !str_u64(head, &n) || n > report.n)
            break;
        if (str_is(found, name))
            return (struct str){report.p, (size_t)n};
        report = (struct str){report.p + n, report.n - (size_t)n};
    }
    return (struct str){"", 0};
}

static uint64_t next_number(struct str *line)
{
    uint64_t value = 0;

    return str_u64(str_cut(line, ' '), &value) ? value : UINT64_MAX;
}

static bool all_refused(struct str probes, const char *prefix)
{
    unsigned seen = 0;

    while (probes.n) {
        struct str outcome = str_cut(&probes, '\n');
        struct str name = str_cut(&outcome, ' ');

        if (!str_starts(name, prefix))
            continue;
        if (!str_is(outcome, "refused"))
            return false;
        seen++;
    }
    return seen > 0;
}

static unsigned own_namespaces(struct str section_text)
{
    static const struct {
        const char *name;
        unsigned bit;
    } kinds[] = {
        {"user",   NAMESPACE_USER   },
        {"mnt",    NAMESPACE_MOUNT  },
        {"pid",    NAMESPACE_PID    },
        {"net",    NAMESPACE_NETWORK},
        {"ipc",    NAMESPACE_IPC    },
        {"uts",    NAMESPACE_UTS    },
        {"cgroup", NAMESPACE_CGROUP },
    };
    unsigned own = 0;

    while (section_text.n) {
        struct str line = str_cut(&section_text, '\n');
        struct str name = str_cut(&line, ' ');
        uint64_t inode = next_number(&line);

        for (size_t i = 0; i < COUNT(kinds); i++) {
            char path[64];
            struct stat st;

            (void)snprintf(path, sizeof path, "/proc/self/ns/%s", kinds[i].name);
            if (str_is(name, kinds[i].name) && stat(path, &st) == 0 && st.st_ino != inode)
                own |= kinds[i].bit;
        }
    }
    return own;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void see_interfaces(struct run *run, struct str table)
{
    const char **names = arena_array(&run->mem, const char *, 64);
    size_t n = 0;

    (void)str_cut(&table, '\n');
    (void)str_cut(&table, '\n'); /* two lines of headings */
    while (table.n && n < 64) {
        struct str line = str_cut(&table, '\n');

        names[n++] = arena_text(&run->mem, str_trim(str_cut(&line, ':')));
    }
    qsort(names, n, sizeof *names, by_name);
    run->seen.interfaces = names;
    run->seen.interface_n = n;
}

/* ---- the mount table ---- */

static bool is_octal(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] < '0' || text.p[i] > '7')
            return false;
    return true;
}

/* The kernel writes blank, tab, newline and backslash as \ooo. */
static const char *unescape(struct arena *mem, struct str text)
{
    char *out = arena_text(mem, text);
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '\\' && i + 3 < text.n && is_octal((struct str){text.p + i + 1, 3})) {
            out[n++] = (char)((text.p[i + 1] - '0') << 6 | (text.p[i + 2] - '0') << 3 |
                              (text.p[i + 3] - '0'));
            i += 3;
        } else {
            out[n++] = text.p[i];
        }
    }
    out[n] = '\0';
    return out;
}

static bool has_flag(struct str options, const char *flag)
{
    while (options.n)
        if (str_is(str_cut(&options, ','), flag))
            return true;
    return false;
}

/* What was planned, by target, and what was found there. */
struct planned {
    const char *target;
    size_t at; /* in the plan */
};

struct found {
    bool known;
    uint64_t device;
    uint64_t inode;
};

struct places {
    const struct planned *planned;
    size_t n;
    const struct found *found; /* one for each mount of the plan */
};

static bool is_mount(const struct plan_mount *mount)
{
    return mount->kind != MOUNT_SYMLINK && mount->kind != MOUNT_FOLDER && mount->kind != MOUNT_FILE;
}

static int by_place(const void *a, const void *b)
{
    const struct planned *left = a, *right = b;
    int order = strcmp(left->target, right->target);

    return order ? order : (left->at > right->at) - (left->at < right->at);
}

static void list_planned(struct run *run, struct places *out)
{
    struct planned *planned = arena_array(&run->mem, struct planned, run->plan.mount_n + 1);

    out->n = 0;
    for (size_t i = 0; i < run->plan.mount_n; i++)
        if (is_mount(&run->plan.mounts[i]))
            planned[out->n++] = (struct planned){run->plan.mounts[i].target, i};
    qsort(planned, out->n, sizeof *planned, by_place);
    out->planned = planned;
}

/* "INDEX DEVICE INODE" a line; what is said first counts. */
static void list_found(struct run *run, struct str targets, struct places *out)
{
    struct found *found = arena_array(&run->mem, struct found, run->plan.mount_n + 1);

    while (targets.n) {
        struct str line = str_cut(&targets, '\n');
        uint64_t at = next_number(&line);
        uint64_t device = next_number(&line);
        uint64_t inode = next_number(&line);

        if (at < run->plan.mount_n && !found[at].known)
            found[at] = (struct found){true, device, inode};
    }
    out->found = found;
}

/* The first of those that were planned there, or NULL. */
static const struct planned *planned_at(const struct places *places, const char *target)
{
    size_t from = 0, to = places->n;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (strcmp(places->planned[middle].target, target) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from < places->n && strcmp(places->planned[from].target, target) == 0
               ? &places->planned[from]
               : NULL;
}

static bool is_layer(struct local *local, const struct plan_mount *mount, uint64_t device,
                     uint64_t inode)
{
    struct err ignored;
    struct stat st;
    int fd = layer_fd(local, mount->source, &ignored);

    return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

/* A row that matches what was planned there is called by its planned kind and source; anything
 * else by what the kernel calls it, which no plan says. */
static void name_mount(const struct run *run, struct local *local, const struct places *places,
                       const char *type, struct mount_fact *fact)
{
    const struct planned *planned = planned_at(places, fact->target);
    const struct plan_mount *mount = planned ? &run->plan.mounts[planned->at] : NULL;
    struct found found = planned ? places->found[planned->at] : (struct found){0};
    uint64_t device = found.device, inode = found.inode;
    bool located = found.known;

    fact->kind = type;
    fact->source = "unplanned";
    if (strcmp(fact->target, "/") == 0 && strcmp(type, "tmpfs") == 0)
        fact->source = "";
    if (!mount)
        return;
    switch (mount->kind) {
    case MOUNT_BIND:
        if (located && device == mount->device && inode == mount->inode) {
            fact->kind = "bind";
            fact->source = mount->source;
        }
        return;
    case MOUNT_PROTECTED:
        if (located && device == mount->device && inode == mount->inode) {
            fact->kind = "protected";
            fact->source = mount->source;
        }
        return;
    case MOUNT_NESTED:
        fact->kind = "nested";
        fact->source = mount->source;
        return;
    case MOUNT_LAYER:
        /* box has looked at each of an overlay's folders itself; seen from inside it is one. */
        if (mount->lower_n ? strcmp(type, "overlay") == 0
                           : located && is_layer(local, mount, device, inode)) {
            fact->kind = "layer";
            fact->source = "";
        }
        return;
    case MOUNT_TMPFS:
    case MOUNT_PROC:
    case MOUNT_DEVPTS:
        if (strcmp(type, mount->kind == MOUNT_TMPFS  ? "tmpfs"
                         : mount->kind == MOUNT_PROC ? "proc"
                                                     : "devpts") == 0)
            fact->source = "";
        return;
    case MOUNT_READONLY:
        if (strcmp(type, "proc") == 0) {
            fact->kind = "readonly";
            fact->source = "";
        }
        return;
    case MOUNT_MASK:
        if (strcmp(type, "proc") != 0) {
            fact->kind = "mask";
            fact->source = "";
        }
        return;
    case MOUNT_SYMLINK:
    case MOUNT_FOLDER:
    case MOUNT_FILE:
        return;
    }
}

static int by_target(const void *a, const void *b)
{
    const struct mount_fact *left = a, *right = b;

    return strcmp(left->target, right->target);
}

/* "36 35 98:0 /root /mount rw,noatime master:1 - ext3 /dev/root rw,errors=continue" */
static void see_mounts(struct run *run, struct local *local, struct str table, struct str targets)
{
    size_t most = 0, n = 0;
    struct mount_fact *facts;
    struct places places;

    list_planned(run, &places);
    list_found(run, targets, &places);
    for (size_t i = 0; i < table.n; i++)
        most += table.p[i] == '\n';
    facts = arena_array(&run->mem, struct mount_fact, most + 1);
    while (table.n && n < most) {
        struct str line = str_cut(&table, '\n');
        struct str field[6];
        struct str options;

        for (size_t i = 0; i < COUNT(field); i++)
            field[i] = str_cut(&line, ' ');
        options = field[5];
        while (line.n && !str_is(str_cut(&line, ' '), "-"))
            continue;
        facts[n] = (struct mount_fact){
            .target = unescape(&run->mem, field[4]),
            .writable = has_flag(options, "rw"),
            .nosuid = has_flag(options, "nosuid"),
            .nodev = has_flag(options, "nodev"),
            .noexec = has_flag(options, "noexec"),
        };
        name_mount(run, local, &places, arena_text(&run->mem, str_cut(&line, ' ')), &facts[n]);
        n++;
    }
    qsort(facts, n, sizeof *facts, by_target);
    run->seen.mounts = facts;
    run->seen.mount_n = n;
}

/* ---- PID 1, seen from outside ---- */

static struct str status_field(struct str status, const char *name)
{
    while (status.n) {
        struct str value = str_cut(&status, '\n');
        struct str key = str_cut(&value, ':');

        if (str_is(key, name))
            return str_trim(value);
    }
    return (struct str){"", 0};
}

static bool all_zero(struct str hex)
{
    for (size_t i = 0; i < hex.n; i++)
        if (hex.p[i] != '0')
            return false;
    return hex.n > 0;
}

/* All four of them: real, effective, saved, file system. */
static bool is_never_root(struct str ids)
{
    unsigned seen = 0;

    while (ids.n) {
        uint64_t id = 0;

        if (!str_u64(str_cut(&ids, '\t'), &id) || id == 0)
            return false;
        seen++;
    }
    return seen == 4;
}

/* From its beginning; it is shorter than what is read at a time. */
static int read_again(int fd, struct buf *out, struct err *err)
{
    char text[4096];
    ssize_t n = pread(fd, text, sizeof text, 0);

    if (n < 0)
        return err_os(err, "looking at PID 1 of the sandbox");
    return buf_add(out, text, (size_t)n, err);
}

static int see_process(struct run *run, const struct local *local, struct err *err)
{
    static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};
    AUTO_BUF struct buf text = BUF(PROC_TEXT_MAX);
    struct facts *seen = &run->seen;
    struct str status;
    uint64_t filters = 0;
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)local->inside);
    if (local->joint ? read_again(local->joint->status_fd, &text, err) < 0
                     : file_read(AT_FDCWD, path, &text, err) < 0)
        return -1;
    status = buf_str(&text);
    seen->capabilities_empty = true;
    for (size_t i = 0; i < COUNT(sets); i++)
        seen->capabilities_empty &= all_zero(status_field(status, sets[i]));
    seen->no_new_privs = str_is(status_field(status, "NoNewPrivs"), "1");
    seen->host_user_is_root =
        !is_never_root(status_field(status, "Uid")) || !is_never_root(status_field(status, "Gid"));
    seen->host_groups_left = run->offer.started_by_root && status_field(status, "Groups").n == 0;
    if (str_is(status_field(status, "Seccomp"), "2") &&
        str_u64(status_field(status, "Seccomp_filters"), &filters))
        seen->seccomp_filters = (unsigned)filters;
    return 0;
}

/* ---- limits ---- */

static void see_rlimits(struct run *run, struct str lines)
{
    struct facts *seen = &run->seen;

    while (lines.n && seen->rlimit_n < RLIMITS_MAX) {
        struct str line = str_cut(&lines, '\n');
        uint64_t resource = next_number(&line);
        uint64_t soft = next_number(&line);
        uint64_t hard = next_number(&line);
        struct rlimit_fact fact = {"unplanned", (uint32_t)resource, soft == hard ? hard : 0};

        if (seen->rlimit_n < run->plan.rlimit_n &&
            run->plan.rlimits[seen->rlimit_n].resource == resource)
            fact.name = run->plan.rlimits[seen->rlimit_n].name;
        seen->rlimits[seen->rlimit_n++] = fact;
    }
}

static uint64_t rlimit_value(const struct facts *seen, const char *name)
{
    for (size_t i = 0; i < seen->rlimit_n; i++)
        if (strcmp(seen->rlimits[i].name, name) == 0)
            return seen->rlimits[i].value;
    return 0;
}

static int see_groups(const struct run *run, struct local *local, struct err *err)
{
    AUTO_CGROUP_SET struct cgroup_set own = {0};
    const struct cgroup_set *set = local->joint ? &local->joint->groups : &own;
    char name[CGROUP_NAME_BYTES];
    bool inside = false;

    cgroup_name_of(run->sandbox_id, name);
    if (local->groups->tree_n == 0 ||
        (!local->joint && cgroup_set_find(local->groups, name, &own, err) < 0) || !set->host)
        return 0;
    if (cgroup_set_contains(set, local->inside, &inside, err) < 0)
        return -1;
    return inside ? cgroup_set_read(set, &local->held, err) : 0;
}

/* The value a limit really has, by the means the plan names. What we hold ourselves (watching,
 * relaying) is what box and the relay were given: the plan. */
static uint64_t held_value(const struct run *run, enum limit_kind kind,
                           const struct cgroup_limits *groups, uint64_t processors)
{
    const struct limit *planned = &run->plan.limits.of[kind];

    switch (planned->means) {
    case MEANS_CGROUP:
        return kind == LIMIT_MEMORY ? groups->memory_bytes
               : kind == LIMIT_PIDS ? groups->pids
                                    : groups->cpu_millis;
    case MEANS_RLIMIT:
        return rlimit_value(&run->seen, "nproc");
    case MEANS_AFFINITY:
        /* More processors than there are is as good as all of them. */
        return processors >= run->offer.processors && planned->value / 1000 >= processors
                   ? planned->value
                   : processors * 1000;
    case MEANS_WATCH:
    case MEANS_RELAY:
    case MEANS_NONE:
        return planned->value;
    }
    return 0;
}

static void see_limits(struct run *run, const struct local *local, struct str processors)
{
    struct str line = str_cut(&processors, '\n');
    uint64_t number = next_number(&line);

    for (enum limit_kind kind = 0; kind < LIMIT_COUNT; kind++) {
        run->seen.limits.of[kind] = run->plan.limits.of[kind];
        run->seen.limits.of[kind].value = held_value(run, kind, &local->held, number);
    }
}

int observe_outside(struct run *run, struct local *local, struct err *err)
{
    bool groups = false;

    run->seen = (struct facts){.host_user_is_root = true};
    local->held = (struct cgroup_limits){0};
    for (enum limit_kind kind = 0; kind < LIMIT_COUNT; kind++)
        groups |= run->plan.limits.of[kind].means == MEANS_CGROUP;
    if (see_process(run, local, err) < 0)
        return -1;
    return groups ? see_groups(run, local, err) : 0;
}

void observe_inside(struct run *run, struct local *local, struct str report)
{
    struct str probes = section(report, "probes");

    run->seen.provider_version = run->offer.version;
    run->seen.landlock_abi = landlock_abi();
    run->seen.landlock_refuses = all_refused(probes, "landlock_");
    run->seen.seccomp_refuses = all_refused(probes, "seccomp_");
    run->seen.sockets_refused = all_refused(probes, "sockets_");
    run->seen.exec_refused = all_refused(probes, "exec_");
    run->seen.namespaces = own_namespaces(section(report, "namespaces"));
    see_interfaces(run, section(report, "net"));
    see_mounts(run, local, section(report, "mountinfo"), section(report, "targets"));
    see_rlimits(run, section(report, "rlimits"));
    see_limits(run, local, section(report, "processors"));
}
