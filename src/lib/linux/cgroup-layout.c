/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/cgroup-parts.h"

#include <string.h>

/* Pure reading of the kernel's texts.
 *
 * /proc/self/cgroup, one line a hierarchy (cgroups(7)):
 *
 *     4:memory:/user/7        v1: id, controllers, our own group
 *     1:name=systemd:/        v1 without a controller
 *     0::/user.slice          v2
 *
 * /proc/self/mountinfo (proc(5)), where a v1 mount names its controllers in the last field:
 *
 *     35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
 *           root ^ ^ mount point        optional fields ^ type ^      ^ super options */

bool cgroup_list_has(struct str list, char separator, struct str word)
{
    while (list.n)
        if (str_eq(str_cut(&list, separator), word))
            return true;
    return false;
}

struct mount_line {
    bool v2;
    struct str root;
    struct str point;
    struct str options;
};

static bool parse_mount(struct str line, struct mount_line *out)
{
    struct str type;

    for (int skipped = 0; skipped < 3; skipped++)
        (void)str_cut(&line, ' ');
    out->root = str_cut(&line, ' ');
    out->point = str_cut(&line, ' ');
    while (line.n && !str_is(str_cut(&line, ' '), "-"))
        continue;
    type = str_cut(&line, ' ');
    (void)str_cut(&line, ' ');
    out->options = line;
    out->v2 = str_is(type, "cgroup2");
    return out->v2 || str_is(type, "cgroup");
}

/* The part of the group below the mount's root; false when the mount does not show it. */
static bool below_root(struct str group, struct str root, struct str *out)
{
    if (str_is(root, "/"))
        root.n = 0;
    if (group.n < root.n || memcmp(group.p, root.p, root.n) != 0)
        return false;
    *out = (struct str){group.p + root.n, group.n - root.n};
    return out->n == 0 || out->p[0] == '/';
}

static bool mount_shows(const struct mount_line *mount, const struct cgroup_hierarchy *hierarchy)
{
    struct str controllers = hierarchy->controllers;
    struct str below;

    if (mount->v2 != hierarchy->v2 || !below_root(hierarchy->group, mount->root, &below))
        return false;
    return mount->v2 || cgroup_list_has(mount->options, ',', str_cut(&controllers, ','));
}

/* Where distributions put it; a copy of the mount in some chroot comes second to that. */
static bool is_usual_place(struct str point)
{
    return str_starts(point, "/sys/fs/cgroup");
}

static void find_mounts(struct str mountinfo, struct cgroup_layout *layout)
{
    while (mountinfo.n) {
        struct mount_line mount;

        if (!parse_mount(str_cut(&mountinfo, '\n'), &mount))
            continue;
        for (size_t i = 0; i < layout->n; i++) {
            struct cgroup_hierarchy *hierarchy = &layout->of[i];

            if (!mount_shows(&mount, hierarchy) ||
                (hierarchy->mount_point.n &&
                 (is_usual_place(hierarchy->mount_point) || !is_usual_place(mount.point))))
                continue;
            hierarchy->mount_root = mount.root;
            hierarchy->mount_point = mount.point;
        }
    }
}

int cgroup_layout_parse(struct str self_cgroup, struct str mountinfo, struct cgroup_layout *out,
                        struct err *err)
{
    struct cgroup_layout layout = {.n = 0};

    while (self_cgroup.n) {
        struct str group = str_cut(&self_cgroup, '\n');
        struct str id = str_cut(&group, ':');
        struct str controllers = str_cut(&group, ':');
        uint64_t number;

        if (!str_u64(id, &number) || !group.n || group.p[0] != '/')
            return err_set(err, ERR_INVALID, "/proc/self/cgroup: line %zu is not \"id:list:/path\"",
                           layout.n + 1);
        if (layout.n == CGROUP_HIERARCHIES_MAX)
            return err_set(err, ERR_LIMIT, "/proc/self/cgroup: more than %d hierarchies",
                           CGROUP_HIERARCHIES_MAX);
        layout.of[layout.n++] = (struct cgroup_hierarchy){
            .v2 = number == 0 && !controllers.n, .controllers = controllers, .group = group};
    }
    find_mounts(mountinfo, &layout);
    *out = layout;
    return 0;
}

/* mountinfo writes blank, tab, newline and backslash as \ooo. */
static bool unescape(struct str text, char *out, size_t size, size_t *used)
{
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++) {
        char byte = text.p[i];

        if (byte == '\\' && text.n - i > 3) {
            byte = (char)((text.p[i + 1] - '0') * 64 + (text.p[i + 2] - '0') * 8 +
                          (text.p[i + 3] - '0'));
            i += 3;
        }
        if (n + 1 >= size)
            return false;
        out[n++] = byte;
    }
    out[n] = '\0';
    *used = n;
    return true;
}

bool cgroup_own_dir(const struct cgroup_hierarchy *hierarchy, char out[CGROUP_PATH_BYTES],
                    size_t *mount_n)
{
    struct str below;

    /* "/../x" is how a group above our cgroup namespace looks; no path leads there. */
    if (!hierarchy->mount_point.n || str_starts(hierarchy->group, "/..") ||
        !below_root(hierarchy->group, hierarchy->mount_root, &below) ||
        !unescape(hierarchy->mount_point, out, CGROUP_PATH_BYTES, mount_n))
        return false;
    if (str_is(below, "/"))
        below.n = 0;
    if (*mount_n + below.n >= CGROUP_PATH_BYTES)
        return false;
    memcpy(out + *mount_n, below.p, below.n);
    out[*mount_n + below.n] = '\0';
    return true;
}

bool cgroup_line_within(struct str proc_cgroup, const struct cgroup_tree *tree, const char *name)
{
    while (proc_cgroup.n) {
        struct str group = str_cut(&proc_cgroup, '\n');

        (void)str_cut(&group, ':');
        if (!str_is(str_cut(&group, ':'), tree->controllers))
            continue;
        if (strcmp(tree->group, "/") != 0) {
            if (!str_starts(group, tree->group))
                return false;
            group.p += strlen(tree->group);
            group.n -= strlen(tree->group);
        }
        /* Now "/name" or "/name/below"; the first cut takes the empty word before the slash. */
        return str_cut(&group, '/').n == 0 && str_is(str_cut(&group, '/'), name);
    }
    return false;
}

bool cgroup_flat_value(struct str text, const char *key, uint64_t *out)
{
    while (text.n) {
        struct str value = str_cut(&text, '\n');

        if (str_is(str_cut(&value, ' '), key))
            return str_u64(value, out);
    }
    return false;
}
