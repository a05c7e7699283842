/* SPDX-License-Identifier: Apache-2.0 */

/* Users and groups an image knows: /etc/passwd and /etc/group as its layers show them.
 *
 * The image was made by a stranger. Its files are opened beneath a layer's folder, through no link,
 * and only when they are ordinary files; read up to a ceiling; and of their lines only those that
 * are well-formed count. */

#include "lib/image/image.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/linux/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#define OPAQUE "user.overlay.opaque"

/* ---- lines ---- */

/* A leading zero reads as octal to some and as decimal to others. */
bool account_number(struct str text, uint32_t *out)
{
    uint64_t id;

    if (!str_u64(text, &id) || id >= UINT32_MAX || (text.n > 1 && text.p[0] == '0'))
        return false;
    *out = (uint32_t)id;
    return true;
}

/* "name:password:uid:gid:comment:home:shell" */
static bool read_user(struct str line, struct account *out, struct str *name)
{
    struct str fields[6];
    struct str rest = line;

    for (size_t i = 0; i < COUNT(fields); i++)
        fields[i] = str_cut(&rest, ':');
    *name = fields[0];
    out->home = fields[5];
    return fields[0].n && account_number(fields[2], &out->uid) &&
           account_number(fields[3], &out->gid);
}

bool account_find(struct str passwd, struct str who, struct account *out)
{
    uint32_t id = 0;
    bool by_number = account_number(who, &id);

    while (passwd.n) {
        struct str line = str_cut(&passwd, '\n');
        struct account account = {0};

        if (!read_user(line, &account, &account.name) ||
            (by_number ? account.uid != id : !str_eq(account.name, who)))
            continue;
        *out = account;
        return true;
    }
    return false;
}

/* "name:password:gid:members" */
bool account_find_group(struct str groups, struct str who, uint32_t *out)
{
    while (groups.n) {
        struct str rest = str_cut(&groups, '\n');
        struct str name = str_cut(&rest, ':');
        uint32_t gid;

        (void)str_cut(&rest, ':');
        if (!name.n || !str_eq(name, who) || !account_number(str_cut(&rest, ':'), &gid))
            continue;
        *out = gid;
        return true;
    }
    return false;
}

/* ---- files ---- */

static bool hides_below(int layer_fd, const char *folder)
{
    char path[64];
    char value = '\0';
    int fd =
        sys_openat2(layer_fd, folder, O_PATH | O_DIRECTORY, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);

    if (fd < 0)
        return errno != ENOENT; /* a file, a link or a whiteout hides what is below, too */
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (getxattr(path, OPAQUE, &value, 1) != 1)
        value = '\0';
    (void)close(fd);
    return value == 'y';
}

static bool is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

/* 1: read; 0: this layer says nothing of it; -1: it hides what is below, or cannot be read. */
static int read_in_layer(const char *layer, const char *path, struct buf *out, struct err *err)
{
    AUTO_FD int layer_fd = open(layer, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    AUTO_FD int found = -1;
    AUTO_FD int fd = -1;
    char again[64];
    struct stat st;

    if (layer_fd < 0)
        return err_os(err, "opening a layer of the image");
    found = sys_openat2(layer_fd, path, O_PATH, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    if (found < 0 && errno != ENOENT && errno != ENOTDIR)
        return err_os(err, "/%s of the image", path);
    if (found < 0 && !hides_below(layer_fd, "etc"))
        return 0;
    if (found < 0 || fstat(found, &st) < 0 || is_whiteout(&st))
        return err_set(err, ERR_NOT_FOUND, "the image has no /%s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_INVALID, "/%s of the image is no ordinary file", path);
    (void)snprintf(again, sizeof again, "/proc/self/fd/%d", found);
    fd = open(again, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return err_os(err, "opening /%s of the image", path);
    return read_all(fd, out, err) < 0 ? err_in(err, "/%s of the image", path) : 1;
}

int image_accounts(const struct image *image, const char *path, struct buf *out, struct err *err)
{
    for (size_t i = image->layer_n; i-- > 0;) {
        int got = read_in_layer(image->layers[i].path, path, out, err);

        if (got != 0)
            return got < 0 ? -1 : 0;
    }
    return err_set(err, ERR_NOT_FOUND, "the image has no /%s", path);
}
