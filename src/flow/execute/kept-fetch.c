/* SPDX-License-Identifier: Apache-2.0 */

/* Copies out of a kept sandbox: on this machine name by name, through no link. */

#include "flow/execute/files.h"

#include "lib/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct place {
    int dir_fd; /* on this machine */
    char name[256];
};

static int temp_name(char out[64], struct err *err)
{
    char id[ID_BYTES];

    (void)err;
    id_new(id);
    (void)snprintf(out, 64, ".brig-%s", id);
    return 0;
}

static int set_both(int fd, uint32_t mode, int64_t mtime_s, uint32_t mtime_ns, struct err *err)
{
    struct timespec times[] = {
        {.tv_nsec = UTIME_OMIT},
        { .tv_sec = mtime_s,  .tv_nsec = mtime_ns}
    };

    if (fchmod(fd, mode & COPY_MODE_MAX) < 0 || futimens(fd, times) < 0)
        return err_os(err, "setting mode and time");
    return 0;
}

static int fetch_into(struct files *files, int from, const struct stat *st, int dir_fd,
                      const char *temp, char hash[HASH_TEXT_BYTES], struct err *err)
{
    AUTO_FD int to =
        openat(dir_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (to < 0)
        return err_os(err, "creating a file");
    if (copy_content(files, from, to, st->st_size, hash, err) < 0)
        return -1;
    return set_both(to, st->st_mode, st->st_mtim.tv_sec, (uint32_t)st->st_mtim.tv_nsec, err);
}

static int fetch_file(struct copy *copy, const char *path, bool follow, const struct place *place,
                      const char *shown, struct err *err)
{
    AUTO_FD int from = -1;
    char hash[HASH_TEXT_BYTES];
    char temp[64];
    struct stat st;
    int failed;

    if (copy_open(copy->files, path, follow, &from, &st, err) < 0 || temp_name(temp, err) < 0)
        return -1;
    failed = fetch_into(copy->files, from, &st, place->dir_fd, temp, hash, err);
    if (!failed && renameat(place->dir_fd, temp, place->dir_fd, place->name) < 0)
        failed = err_os(err, "putting it in place");
    if (failed) {
        (void)unlinkat(place->dir_fd, temp, 0); /* ours, if it was made at all */
        return err_in(err, "%.300s", path);
    }
    (void)strcpy(copy->files->moved->hash, hash);
    copy->files->moved->entries++;
    return copy_note(copy, 'f', st.st_mode, hash, shown, err);
}

static int fetch_link(struct copy *copy, const struct file_entry *entry, const struct place *place,
                      const char *shown, struct err *err)
{
    char target[FILE_PATH_BYTES];
    char temp[64];

    if (entry->target.n >= sizeof target || !file_link_stays(entry->target, copy->depth - 1)) {
        copy->files->moved->skipped++;
        return 0;
    }
    memcpy(target, entry->target.p, entry->target.n);
    target[entry->target.n] = '\0';
    if (temp_name(temp, err) < 0)
        return -1;
    if (symlinkat(target, place->dir_fd, temp) < 0)
        return err_os(err, "making a link");
    if (renameat(place->dir_fd, temp, place->dir_fd, place->name) < 0) {
        (void)err_os(err, "putting a link in place");
        (void)unlinkat(place->dir_fd, temp, 0); /* ours, made just now */
        return -1;
    }
    copy->files->moved->entries++;
    return copy_note(copy, 'l', 0, target, shown, err);
}

static int open_place(const struct place *place, int *out, struct err *err)
{
    if (mkdirat(place->dir_fd, place->name, 0700) < 0 && errno != EEXIST)
        return err_os(err, "making the folder %.200s", place->name);
    *out = openat(place->dir_fd, place->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *out < 0 ? err_os(err, "opening the folder %.200s", place->name) : 0;
}

static int fetch_folder(struct copy *copy, const char *path, bool follow,
                        const struct file_entry *self, const struct place *place, const char *shown,
                        struct err *err);

static int fetch_entry(struct copy *copy, const char *folder, const struct file_entry *entry,
                       int dir_fd, const char *shown_folder, struct err *err)
{
    char path[FILE_PATH_BYTES];
    char shown[FILE_PATH_BYTES];
    struct place place = {.dir_fd = dir_fd};

    memcpy(place.name, entry->name.p, entry->name.n); /* at most 255 bytes: it was checked */
    place.name[entry->name.n] = '\0';
    if (copy_join(folder, place.name, path, err) < 0 ||
        copy_join(shown_folder, place.name, shown, err) < 0)
        return -1;
    switch (entry->mode & S_IFMT) {
    case S_IFDIR:
        return fetch_folder(copy, path, false, entry, &place, shown, err);
    case S_IFREG:
        return fetch_file(copy, path, false, &place, shown, err);
    case S_IFLNK:
        return fetch_link(copy, entry, &place, shown, err);
    default:
        copy->files->moved->skipped++;
        return 0;
    }
}

static int fetch_folder(struct copy *copy, const char *path, bool follow,
                        const struct file_entry *self, const struct place *place, const char *shown,
                        struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(COPY_FOLDER_MEMORY_MAX);
    struct file_listing listing;
    AUTO_FD int fd = -1;

    if (copy_enter(copy, err) < 0 ||
        files_list_folder(copy->files, &mem, path, follow, &listing, err) < 0)
        return -1;
    if (listing.more)
        return err_set(err, ERR_LIMIT, "%.300s has more entries than can be copied", path);
    if (open_place(place, &fd, err) < 0 || copy_note(copy, 'd', self->mode, "", shown, err) < 0)
        return -1;
    copy->files->moved->entries++;
    for (size_t i = 0; i < listing.n; i++)
        if (fetch_entry(copy, path, &listing.entries[i], fd, shown, err) < 0)
            return -1;
    copy->depth--;
    return set_both(fd, self->mode, self->mtime_s, self->mtime_ns, err);
}

/* A folder that is there takes the copy in; otherwise the last name is the copy's. */
static int open_destination(const char *host_path, const char *source, struct place *place,
                            struct err *err)
{
    char parent[FILE_PATH_BYTES];
    size_t end = strlen(host_path);
    struct stat st;

    while (end > 0 && host_path[end - 1] == '/')
        end--;
    while (end > 0 && host_path[end - 1] != '/')
        end--;

    if (stat(host_path, &st) == 0 && S_ISDIR(st.st_mode)) {
        copy_last_name(source, place->name);
        (void)snprintf(parent, sizeof parent, "%s", host_path);
    } else {
        copy_last_name(host_path, place->name);
        (void)snprintf(parent, sizeof parent, "%.*s", end ? (int)end : 1, end ? host_path : ".");
    }
    if (!place->name[0])
        return err_set(err, ERR_INVALID, "%.300s: say what the copy is to be called", host_path);
    place->dir_fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return place->dir_fd < 0 ? err_os(err, "%.300s", parent) : 0;
}

int files_fetch(struct files *files, const char *path, const char *host_path, bool recursive,
                struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(COPY_FOLDER_MEMORY_MAX);
    struct copy copy = {.files = files};
    struct place place = {.dir_fd = -1};
    struct file_entry entry;
    int failed;

    hasher_init(&copy.tree);
    if (files_stat(files, &mem, path, true, &entry, err) < 0)
        return -1;
    files->moved->entries = 0;
    if (S_ISDIR(entry.mode) && !recursive)
        return err_set(err, ERR_INVALID, "%.300s is a directory; give --recursive to copy it",
                       path);
    if (open_destination(host_path, path, &place, err) < 0)
        return -1;
    failed = S_ISDIR(entry.mode) ? fetch_folder(&copy, path, true, &entry, &place, "", err)
                                 : fetch_file(&copy, path, true, &place, "", err);
    (void)close(place.dir_fd);
    if (!failed && S_ISDIR(entry.mode))
        copy_finish(&copy);
    return failed;
}
