/* SPDX-License-Identifier: Apache-2.0 */

/* The places of a sandbox that somebody can change, and the way to a file there.
 *
 * Nothing is followed out of what the sandbox shows: links are read here, one component at a time,
 * and mean what they mean inside. */

#include "flow/approve/operands.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/linux/sys.h"

#define LINKS_MAX 40

/* ---- the places ---- */

static bool covers(enum mount_kind kind)
{
    switch (kind) {
    case MOUNT_BIND:
    case MOUNT_TMPFS:
    case MOUNT_PROC:
    case MOUNT_DEVPTS:
    case MOUNT_LAYER:
    case MOUNT_MASK:
        return true;
    case MOUNT_READONLY:
    case MOUNT_PROTECTED:
    case MOUNT_NESTED:
    case MOUNT_SYMLINK:
    case MOUNT_FOLDER:
    case MOUNT_FILE:
        break;
    }
    return false;
}

/* Before it begins, what a sandbox writes itself is empty. */
static bool is_open(const struct plan_mount *mount, bool is_kept)
{
    if (mount->kind == MOUNT_BIND)
        return mount->from_user || (is_kept && mount->access == MOUNT_RW && !mount->is_device);
    return is_kept && (mount->kind == MOUNT_TMPFS || mount->kind == MOUNT_LAYER);
}

static int open_source(const struct plan_mount *mount, int *out, struct err *err)
{
    AUTO_FD int fd = mount->fd >= 0 ? fcntl(mount->fd, F_DUPFD_CLOEXEC, 3)
                                    : open(mount->source, O_PATH | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_os(err, "looking at %.200s", mount->source);
    if (st.st_ino != mount->inode || st.st_dev != mount->device)
        return err_set(err, ERR_CONFLICT, "%.200s is another folder than was planned with",
                       mount->source);
    *out = TAKE_FD(fd);
    return 0;
}

void operand_view_free(struct operand_view *view)
{
    if (!view)
        return;
    for (size_t i = 0; i < view->n; i++) {
        if (view->places[i].fd >= 0)
            (void)close(view->places[i].fd);
        free(view->places[i].target);
    }
    free(view->places);
    if (view->root_fd >= 0)
        (void)close(view->root_fd);
    free(view);
}

/* For what runs without walls: all there is, but for what the kernel makes up as one looks. */
static void show_machine(struct operand_view *view)
{
    static const char *const made_up[] = {"/dev", "/proc", "/sys"};

    view->is_host = true;
    view->places = xcalloc(COUNT(made_up) + 1, sizeof *view->places);
    view->places[view->n++] = (struct operand_place){xstrdup("/"), -1, true};
    for (size_t i = 0; i < COUNT(made_up); i++)
        view->places[view->n++] = (struct operand_place){xstrdup(made_up[i]), -1, false};
}

int operand_view_open(const struct run *run, int root_fd, const struct operand_reader *reader,
                      struct operand_view **out, struct err *err)
{
    AUTO(operand_view) struct operand_view *view = xcalloc(1, sizeof *view);

    view->root_fd = root_fd;
    view->reader = reader;
    if (run->action.kind == ACTION_ELEVATE) {
        show_machine(view);
        *out = TAKE(view);
        return 0;
    }
    view->places = xcalloc(run->plan.mount_n + 1, sizeof *view->places);
    for (size_t i = 0; i < run->plan.mount_n; i++) {
        const struct plan_mount *mount = &run->plan.mounts[i];
        struct operand_place *place = &view->places[view->n];

        if (!covers(mount->kind))
            continue;
        *place = (struct operand_place){xstrdup(mount->target), -1,
                                        is_open(mount, root_fd >= 0 || reader)};
        view->n++;
        if (place->is_open && root_fd < 0 && mount->kind == MOUNT_BIND &&
            open_source(mount, &place->fd, err) < 0)
            return -1;
    }
    *out = TAKE(view);
    return 0;
}

const struct operand_place *operand_place_of(const struct operand_view *view, const char *path)
{
    for (size_t i = view->n; i-- > 0;) {
        size_t n = strlen(view->places[i].target);

        if (n == 1 ||
            (strncmp(view->places[i].target, path, n) == 0 && (path[n] == '/' || path[n] == '\0')))
            return &view->places[i];
    }
    return NULL;
}

bool operand_place_below(const struct operand_view *view, const char *path)
{
    size_t n = strlen(path);

    for (size_t i = 0; i < view->n; i++)
        if (view->places[i].is_open && strncmp(view->places[i].target, path, n) == 0 &&
            view->places[i].target[n] == '/')
            return true;
    return false;
}

bool operand_has_place(const struct operand_view *view)
{
    for (size_t i = 0; i < view->n; i++)
        if (view->places[i].is_open)
            return true;
    return false;
}

/* ---- the way to one ---- */

static int open_at(const struct operand_view *view, const struct operand_place *place,
                   const char *path)
{
    const char *below = path + (place->target[1] ? strlen(place->target) : 0);

    if (view->root_fd >= 0)
        return sys_openat2(view->root_fd, path[1] ? path + 1 : ".", O_PATH | O_NOFOLLOW | O_CLOEXEC,
                           RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
    while (*below == '/')
        below++;
    return *below ? sys_openat2(place->fd, below, O_PATH | O_NOFOLLOW | O_CLOEXEC,
                                RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)
                  : fcntl(place->fd, F_DUPFD_CLOEXEC, 3);
}

static void go_up(struct operand_way *way)
{
    char *slash = strrchr(way->path, '/');

    if (slash)
        *slash = '\0';
}

static bool take_component(struct operand_way *way, char name[PATH_BYTES_MAX])
{
    size_t skip = strspn(way->rest, "/"), n = strcspn(way->rest + skip, "/");

    if (n == 0)
        return false;
    (void)snprintf(name, PATH_BYTES_MAX, "%.*s", (int)(n < PATH_BYTES_MAX ? n : 0),
                   way->rest + skip);
    memmove(way->rest, way->rest + skip + n, strlen(way->rest + skip + n) + 1);
    return true;
}

/* What is still to go begins with what a link says. */
static bool turn_to(struct operand_way *way, struct str target)
{
    size_t left = strlen(way->rest) + 1;

    if (target.n == 0 || ++way->links > LINKS_MAX || target.n + 1 + left > sizeof way->rest) {
        way->why = "its links lead too far";
        return false;
    }
    memmove(way->rest + target.n + 1, way->rest, left);
    memcpy(way->rest, target.p, target.n);
    way->rest[target.n] = '/';
    if (target.p[0] == '/')
        way->path[0] = '\0';
    else
        go_up(way);
    return true;
}

static bool follow(struct operand_way *way)
{
    char target[PATH_BYTES_MAX];
    ssize_t n = readlinkat(way->fd, "", target, sizeof target - 1);

    return turn_to(way, (struct str){target, n > 0 ? (size_t)n : 0});
}

static bool is_of_proc(const char *path)
{
    return strncmp(path, "/proc", 5) == 0 && (path[5] == '/' || path[5] == '\0');
}

/* Links of the kernel's, where a process has its folder and its root: whosever they are, the
 * command's own are meant. Without walls both are all of the machine, which nobody means who names
 * only the link. NULL: another path. */
static const char *kernel_link(const struct operand_view *view, const struct operand_way *way)
{
    const char *name = is_of_proc(way->path) ? strrchr(way->path, '/') : "";

    if (view->is_host && !*way->rest)
        return NULL;
    if (strcmp(name, "/cwd") == 0)
        return view->workdir;
    return strcmp(name, "/root") == 0 ? "/" : NULL;
}

/* Of the image nothing is opened from outside; links into what is ours are not expected there. */
static bool is_looked_into(const struct operand_view *view, const struct operand_place *place,
                           const char *path)
{
    return place && !is_of_proc(path) && (place->is_open || (view->root_fd >= 0 && !view->is_host));
}

/* One component further. False: there is no further. */
static bool step(const struct operand_view *view, struct operand_way *way, const char *name)
{
    const struct operand_place *place;
    const char *leads_to;
    size_t n = strlen(way->path);

    if (way->fd >= 0)
        (void)close(way->fd);
    way->fd = -1;
    if (strcmp(name, ".") == 0)
        name = "";
    else if (strcmp(name, "..") == 0)
        go_up(way);
    else if (n + strlen(name) + 2 > sizeof way->path)
        return false; /* no such file can be */
    else
        (void)snprintf(way->path + n, sizeof way->path - n, "/%s", name);
    leads_to = kernel_link(view, way);
    if (leads_to)
        return turn_to(way, str_of(leads_to));
    place = operand_place_of(view, *way->path ? way->path : "/");
    if (!is_looked_into(view, place, way->path))
        return true;
    if (view->root_fd < 0 && place->fd < 0) {
        way->why = "is a link into the sandbox, where it cannot be followed from here";
        return false;
    }
    way->fd = open_at(view, place, *way->path ? way->path : "/");
    if (way->fd < 0 || fstat(way->fd, &way->st) < 0) {
        if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
            way->why = strerror(errno);
        return false;
    }
    return S_ISLNK(way->st.st_mode) ? follow(way) : true;
}

void operand_go(const struct operand_view *view, const char *path, struct operand_way *way)
{
    char name[PATH_BYTES_MAX];
    const struct operand_place *place;
    bool is_there = true;

    *way = (struct operand_way){.fd = -1};
    (void)snprintf(way->rest, sizeof way->rest, "%s", path);
    while (is_there && take_component(way, name))
        is_there = step(view, way, name);
    if (is_there && way->fd < 0)
        is_there = step(view, way, ".");
    place = operand_place_of(view, *way->path ? way->path : "/");
    if (!is_there || !place || !place->is_open) {
        if (way->fd >= 0)
            (void)close(way->fd);
        way->fd = -1;
    }
    if (!place || !place->is_open)
        way->why = NULL;
}
