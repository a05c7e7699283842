/* SPDX-License-Identifier: Apache-2.0 */

/* Copies into a kept sandbox: on this machine name by name, through no link. */

#include "flow/execute/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int push_file(struct copy *copy, int from, const struct stat *st, const char *path,
                     const char *shown, struct err *err)
{
    AUTO_FD int to = -1;
    char hash[HASH_TEXT_BYTES];

    if (copy_create(copy->files, path, &to, err) < 0)
        return -1;
    if (copy_content(copy->files, from, to, st->st_size, hash, err) < 0)
        return err_in(err, "%.300s", path);
    if (copy_commit(copy->files, 0, st->st_mode, &st->st_mtim, err) < 0)
        return -1;
    (void)strcpy(copy->files->moved->hash, hash);
    return copy_note(copy, 'f', st->st_mode, hash, shown, err);
}

static int push_link(struct copy *copy, int dir_fd, const char *name, const char *path,
                     const char *shown, struct err *err)
{
    struct file_request request;
    char target[FILE_PATH_BYTES];
    ssize_t n = readlinkat(dir_fd, name, target, sizeof target - 1);

    if (n < 0)
        return err_os(err, "reading the link %.200s", name);
    target[n] = '\0';
    if (file_request_fill(&request, FILE_MAKE_LINK, 0, path, target, err) < 0 ||
        files_ask(copy->files, &request, NULL, err) < 0)
        return -1;
    copy->files->moved->entries++;
    return copy_note(copy, 'l', 0, target, shown, err);
}

static int push_folder(struct copy *copy, int fd, const struct stat *st, const char *path,
                       const char *shown, struct err *err);

static int push_entry(struct copy *copy, int dir_fd, const char *name, const char *folder,
                      const char *shown_folder, struct err *err)
{
    char path[FILE_PATH_BYTES];
    char shown[FILE_PATH_BYTES];
    AUTO_FD int fd = -1;
    struct stat st;

    if (copy_join(folder, name, path, err) < 0 || copy_join(shown_folder, name, shown, err) < 0)
        return -1;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_os(err, "%.300s", shown);
    if (S_ISLNK(st.st_mode))
        return push_link(copy, dir_fd, name, path, shown, err);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        copy->files->moved->skipped++;
        return 0;
    }
    fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_os(err, "%.300s", shown);
    if (S_ISDIR(st.st_mode))
        return push_folder(copy, fd, &st, path, shown, err);
    if (S_ISREG(st.st_mode))
        return push_file(copy, fd, &st, path, shown, err);
    return err_set(err, ERR_CONFLICT, "%.300s changed while it was copied", shown);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int read_names(struct arena *mem, int fd, const char ***out, size_t *out_n, struct err *err)
{
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = own < 0 ? NULL : fdopendir(own);
    const struct dirent *entry;
    const char **names = NULL;
    size_t room = 0;
    size_t n = 0;

    if (!dir)
        return err_os(err, "listing a folder");
    while (n < FILE_ENTRIES_MAX && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (n == room) {
            const char **more = arena_array(mem, const char *, room ? 2 * room : 64);

            if (n)
                memcpy(more, names, n * sizeof *names);
            names = more;
            room = room ? 2 * room : 64;
        }
        names[n++] = arena_text(mem, str_of(entry->d_name));
    }
    (void)closedir(dir);
    if (n == FILE_ENTRIES_MAX)
        return err_set(err, ERR_LIMIT, "a folder of more than %u entries", FILE_ENTRIES_MAX);
    if (n)
        qsort(names, n, sizeof *names, by_text);
    *out = names;
    *out_n = n;
    return 0;
}

static int set_inside(struct files *files, const struct stat *st, const char *path, struct err *err)
{
    struct file_request request;

    if (file_request_fill(&request, FILE_SET, FILE_TIMES, path, "", err) < 0)
        return -1;
    request.mode = st->st_mode & COPY_MODE_MAX;
    request.mtime_s = st->st_mtim.tv_sec;
    request.mtime_ns = (uint32_t)st->st_mtim.tv_nsec;
    return files_ask(files, &request, NULL, err) < 0 ? -1 : 0;
}

static int push_folder(struct copy *copy, int fd, const struct stat *st, const char *path,
                       const char *shown, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(COPY_FOLDER_MEMORY_MAX);
    struct file_request request;
    const char **names = NULL;
    size_t n = 0;

    if (copy_enter(copy, err) < 0 || read_names(&mem, fd, &names, &n, err) < 0 ||
        file_request_fill(&request, FILE_MAKE_DIR, FILE_RECURSIVE, path, "", err) < 0)
        return -1;
    request.mode = 0700;
    if (files_ask(copy->files, &request, NULL, err) < 0 ||
        copy_note(copy, 'd', st->st_mode, "", shown, err) < 0)
        return -1;
    copy->files->moved->entries++;
    for (size_t i = 0; i < n; i++)
        if (push_entry(copy, fd, names[i], path, shown, err) < 0)
            return -1;
    copy->depth--;
    return set_inside(copy->files, st, path, err);
}

/* As cp does it: into a folder that is there, else under that name. */
static int push_target(struct files *files, const char *host_path, const char *path,
                       char out[FILE_PATH_BYTES], struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(COPY_FOLDER_MEMORY_MAX);
    struct file_entry entry;
    struct err missing; /* then it is a new name; whatever else is wrong shows when it is made */
    char name[256];
    bool is_folder = files_stat(files, &mem, path, true, &entry, &missing) == 0;

    files->moved->entries = 0;
    if (files->cancelled)
        return err_set(err, ERR_CONFLICT, "interrupted");
    if (!is_folder || !S_ISDIR(entry.mode)) {
        (void)snprintf(out, FILE_PATH_BYTES, "%s", path);
        return 0;
    }
    copy_last_name(host_path, name);
    if (!name[0])
        return err_set(err, ERR_INVALID, "%.300s: say what the copy is to be called", host_path);
    return copy_join(path, name, out, err);
}

int files_push(struct files *files, const char *host_path, const char *path, bool recursive,
               struct err *err)
{
    AUTO_FD int fd = open(host_path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct copy copy = {.files = files};
    char target[FILE_PATH_BYTES];
    struct stat st;
    int failed;

    hasher_init(&copy.tree);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_os(err, "%.300s", host_path);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return err_set(err, ERR_INVALID, "%.300s is neither a regular file nor a directory",
                       host_path);
    if (S_ISDIR(st.st_mode) && !recursive)
        return err_set(err, ERR_INVALID, "%.300s is a directory; give --recursive to copy it",
                       host_path);
    if (push_target(files, host_path, path, target, err) < 0)
        return -1;
    failed = S_ISDIR(st.st_mode) ? push_folder(&copy, fd, &st, target, "", err)
                                 : push_file(&copy, fd, &st, target, "", err);
    if (!failed && S_ISDIR(st.st_mode))
        copy_finish(&copy);
    return failed;
}
