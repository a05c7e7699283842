/* SPDX-License-Identifier: Apache-2.0 */

/* The mounts of a run: the host root, then what the caller asked for.
 *
 * A source is opened once, through no link in its last part, and judged by what the descriptor
 * says it is, never by how it was spelled: it, and every folder above it, is compared by device
 * and inode with the places that are never handed out; and none of those places may lie below
 * it. The descriptor (or, for an ordinary user, device and inode) is what box mounts. */

#include "flow/equip/parts.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Never handed out, nor anything below; nor a folder that contains them. */
static const char *const forbidden[] = {
    "/etc",          "/proc",           "/sys",
    "/dev",          "/boot",           "/run",
    "/var/run",      "/var/lib/docker", "/var/lib/containerd",
    "/var/lib/brig", "/var/lib/dpkg",   "/var/spool/cron",
};
/* The same below every home we know of. */
static const char *const forbidden_in_home[] = {
    ".ssh",           ".gnupg",
    ".aws",           ".azure",
    ".config/gcloud", ".config/gh",
    ".kube",          ".docker",
    ".netrc",         ".git-credentials",
    ".npmrc",         ".pypirc",
    ".config/op",     ".password-store",
    ".mozilla",       ".local/share/keyrings",
    ".config/brig",   ".local/share/brig",
    ".bash_history",
};

/* Inside, these are Brig's own; nothing can be put over or below them. */
static const char *const own_targets[] = {"/usr",   "/bin",    "/sbin", "/lib", "/lib32",
                                          "/lib64", "/libx32", "/etc",  "/dev", "/proc",
                                          "/sys",   "/run",    "/tmp",  "/var", "/sandbox/tmp"};

static bool is_within(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static bool same_object(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether `below` is `above`, or lies somewhere below it, by identity. */
static bool lies_below(int below_fd, const struct stat *above)
{
    AUTO_FD int at = fcntl(below_fd, F_DUPFD_CLOEXEC, 0);
    struct stat st, parent_st;

    for (unsigned depth = 0; at >= 0 && depth < 256; depth++) {
        int parent;

        if (fstat(at, &st) < 0)
            return true; /* what cannot be judged is not handed out */
        if (same_object(&st, above))
            return true;
        if (!S_ISDIR(st.st_mode))
            return false;
        parent = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (parent < 0 || fstat(parent, &parent_st) < 0) {
            if (parent >= 0)
                (void)close(parent);
            return true;
        }
        (void)close(at);
        at = parent;
        if (same_object(&st, &parent_st))
            return false; /* the root of all */
    }
    return true;
}

/* The folder something lies in. */
static int open_holder(int fd, struct err *err)
{
    char link[64], path[PATH_BYTES_MAX];
    ssize_t n;
    char *slash;

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof path - 1);
    if (n <= 0)
        return err_os(err, "reading where a source lies");
    path[n] = '\0';
    slash = strrchr(path, '/');
    if (!slash)
        return err_set(err, ERR_INVALID, "a source without a place: %s", path);
    slash[slash == path ? 1 : 0] = '\0';
    n = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return n < 0 ? err_os(err, "opening %s", path) : (int)n;
}

struct source {
    int fd;
    int folder_fd; /* itself, or the folder it lies in */
    struct stat st;
};

static bool collides(const struct source *source, const char *place)
{
    AUTO_FD int fd = open(place, O_PATH | O_CLOEXEC);
    AUTO_FD int holder = -1;
    struct err ignored;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return false; /* not on this machine */
    if (same_object(&source->st, &st) || lies_below(source->folder_fd, &st))
        return true;
    /* Upwards from where it lies: a folder that is closed to us cannot be left through "..". */
    holder = open_holder(fd, &ignored);
    return holder < 0 || lies_below(holder, &source->st);
}

static const char *home_of_caller(void)
{
    const char *home = getenv("HOME");

    return home && *home == '/' ? home : NULL;
}

/* The forbidden place a source is, contains or lies in; NULL when there is none. */
static const char *forbidden_place(struct run *run, const char *state_dir,
                                   const struct source *source)
{
    const char *const homes[] = {home_of_caller(), "/root"};
    struct stat root;

    if (stat("/", &root) < 0 || same_object(&source->st, &root))
        return "/";
    if (collides(source, state_dir))
        return "Brig's own state";
    for (size_t i = 0; i < COUNT(forbidden); i++)
        if (collides(source, forbidden[i]))
            return forbidden[i];
    for (size_t h = 0; h < COUNT(homes); h++)
        for (size_t i = 0; homes[h] && i < COUNT(forbidden_in_home); i++) {
            const char *place = arena_printf(&run->mem, "%s/%s", homes[h], forbidden_in_home[i]);

            if (collides(source, place))
                return place;
        }
    return NULL;
}

static bool is_plain_target(const char *target)
{
    if (target[0] != '/' || target[1] == '\0' || strlen(target) >= PATH_BYTES_MAX)
        return false;
    for (const char *p = target; *p; p++)
        if (p[0] == '/' && (p[1] == '/' || p[1] == '\0' ||
                            (p[1] == '.' && (p[2] == '/' || p[2] == '\0' ||
                                             (p[2] == '.' && (p[3] == '/' || p[3] == '\0'))))))
            return false;
    return true;
}

static int refuse_target(struct run *run, const struct mount_list *list, const char *target)
{
    if (!is_plain_target(target))
        return refuse(run, REASON_MOUNT_FORBIDDEN,
                      "mount target \"%.200s\": write an absolute path without . or ..", target);
    for (size_t i = 0; i < COUNT(own_targets); i++)
        if (is_within(target, own_targets[i]) || is_within(own_targets[i], target))
            return refuse(run, REASON_MOUNT_FORBIDDEN,
                          "mount target %.200s: %s is Brig's own; use /workspace, /mnt, /opt, "
                          "/srv or /sandbox/input",
                          target, own_targets[i]);
    for (size_t i = 0; i < list->n; i++)
        if (list->of[i].from_user &&
            (is_within(target, list->of[i].target) || is_within(list->of[i].target, target)))
            return refuse(run, REASON_MOUNT_FORBIDDEN, "mount target %.200s overlaps with %.200s",
                          target, list->of[i].target);
    return 0;
}

/* A later mount on the same place replaces an empty folder or a layer of the host root. */
static void make_room(struct mount_list *list, const char *target)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->of[i].target, target) != 0)
            list->of[kept++] = list->of[i];
    list->n = kept;
}

static int open_asked(const struct mount_ask *ask, struct source *out, struct err *err)
{
    /* The last part may be a link of the user's own; what it points to is what is judged. */
    out->fd = open(ask->source, O_PATH | O_CLOEXEC);
    if (out->fd < 0)
        return err_os(err, "mount source %s", ask->source);
    if (fstat(out->fd, &out->st) < 0)
        return err_os(err, "looking at %s", ask->source);
    if (S_ISDIR(out->st.st_mode))
        out->folder_fd = fcntl(out->fd, F_DUPFD_CLOEXEC, 0);
    else
        out->folder_fd = open_holder(out->fd, err);
    return out->folder_fd < 0 ? -1 : 0;
}

static const char *real_path(struct run *run, int fd)
{
    char link[64], path[PATH_BYTES_MAX];
    ssize_t n;

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof path - 1);
    return n > 0 ? arena_text(&run->mem, (struct str){path, (size_t)n}) : NULL;
}

static int add_asked(const char *state_dir, struct run *run, struct mount_list *list,
                     const struct mount_ask *ask, struct err *err)
{
    struct source source = {-1, -1, {0}};
    const char *place;
    struct plan_mount *mount;

    if (refuse_target(run, list, ask->target) < 0 || is_refused(run))
        return 0;
    if (open_asked(ask, &source, err) < 0)
        return refuse(run, REASON_MOUNT_FORBIDDEN, "%s", err->text);
    if (!S_ISDIR(source.st.st_mode) && !S_ISREG(source.st.st_mode)) {
        (void)close(source.fd);
        (void)close(source.folder_fd);
        return refuse(run, REASON_MOUNT_FORBIDDEN,
                      "mount source %.200s: only folders and files can be mounted", ask->source);
    }
    place = forbidden_place(run, state_dir, &source);
    (void)close(source.folder_fd);
    if (place) {
        (void)close(source.fd);
        return refuse(run, REASON_MOUNT_FORBIDDEN,
                      "mount source %.200s is, contains or lies in %.200s, which is never handed "
                      "out; mount the project folder itself",
                      ask->source, place);
    }
    make_room(list, ask->target);
    mount = mount_add(&run->mem, list, MOUNT_BIND, ask->target);
    mount->source = real_path(run, source.fd);
    mount->access = ask->access;
    mount->from_user = true;
    mount->is_file = !S_ISDIR(source.st.st_mode);
    mount->device = source.st.st_dev;
    mount->inode = source.st.st_ino;
    mount->fd = source.fd; /* kept for box; the run's end closes it */
    mount->idmapped = run->offer.started_by_root;
    mount->owner_uid = source.st.st_uid;
    mount->owner_gid = source.st.st_gid;
    return mount->source ? 0 : err_set(err, ERR_OS, "%s has no path", ask->source);
}

/* Mounts that lie below a folder we bind come along, with the flags we set on the whole tree. */
static void add_nested(struct run *run, struct mount_list *list, const char *mount_point)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct plan_mount parent = list->of[i];
        struct plan_mount *nested;

        if (parent.kind != MOUNT_BIND || parent.is_file ||
            strcmp(mount_point, parent.source) == 0 || !is_within(mount_point, parent.source))
            continue;
        nested = mount_add(
            &run->mem, list, MOUNT_NESTED,
            arena_printf(&run->mem, "%s%s", parent.target, mount_point + strlen(parent.source)));
        nested->source = arena_text(&run->mem, str_of(mount_point));
        nested->access = parent.access;
    }
}

static int find_nested(struct run *run, struct mount_list *list, struct err *err)
{
    AUTO_BUF struct buf table = BUF(PROC_TEXT_MAX);
    struct str rest;

    if (file_read(AT_FDCWD, "/proc/self/mountinfo", &table, err) < 0)
        return -1;
    rest = buf_str(&table);
    while (rest.n) {
        struct str line = str_cut(&rest, '\n');

        for (unsigned field = 0; field < 4; field++)
            (void)str_cut(&line, ' ');
        add_nested(run, list, arena_text(&run->mem, str_cut(&line, ' ')));
    }
    return 0;
}

static int plan_workdir(struct run *run, const struct mount_list *list, const struct image *image)
{
    const char *workdir = run->action.workdir;

    if (workdir && !is_plain_target(workdir) && strcmp(workdir, "/") != 0)
        return refuse(run, REASON_REQUEST_INVALID,
                      "working directory \"%.200s\": write an absolute path without . or ..",
                      workdir);
    for (size_t i = 0; !workdir && i < list->n; i++)
        if (list->of[i].from_user && strcmp(list->of[i].target, "/workspace") == 0)
            workdir = "/workspace";
    if (!workdir && image && is_plain_target(image->workdir))
        workdir = image->workdir;
    run->plan.workdir = workdir ? workdir : "/home/sandbox";
    return 0;
}

int plan_mounts(const char *state_dir, const struct image *image, struct run *run, struct err *err)
{
    struct mount_list list = {0};

    if ((image ? image_root_mounts(run, image, &list, err) : host_root_mounts(run, &list, err)) < 0)
        return -1;
    if (is_refused(run))
        return 0;
    for (size_t i = 0; i < run->action.mount_n; i++)
        if (add_asked(state_dir, run, &list, &run->action.mounts[i], err) < 0 || is_refused(run))
            return is_refused(run) ? 0 : -1;
    if (plan_workdir(run, &list, image) < 0 || is_refused(run))
        return 0;
    if (find_nested(run, &list, err) < 0)
        return -1;
    run->plan.mounts = list.of;
    run->plan.mount_n = list.n;
    return 0;
}
