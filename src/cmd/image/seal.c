/* SPDX-License-Identifier: Apache-2.0 */

/* The list of a tree, one line an entry, names in byte order, a folder before what is in it:
 *
 *     KIND MODE MTIME SIZE HASH XATTRS PATH
 *
 * KIND is d, f, l or w (whiteout), in trees that are not layers also s (pipe, socket); MODE octal;
 * MTIME seconds; SIZE and HASH of a file's contents or of a link's target, else 0 and "-"; XATTRS
 * the hash over name, NUL, length, value of the user attributes in byte order of their names, or
 * "-"; PATH escaped as text_escape() does. The SHA-256 of the list is the seal of the layer. */

#include "cmd/image/worker.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#define CHUNK (256 * KIB)
#define LINE_MAX_BYTES (32 * KIB)
#define XATTR_NAMES_MAX (64 * KIB)

struct sealer {
    struct job *job;
    bool any_kind; /* pipes and sockets may be there */
    FILE *list;    /* or NULL */
    FILE *against; /* or NULL */
    struct hasher hasher;
    struct seal seal;
    char *chunk;
    char path[PATH_BYTES_MAX * 2];
    char was[LINE_MAX_BYTES]; /* the line of the earlier list */
};

/* ---- parts of a line ---- */

static int hash_file(struct sealer *s, int fd, char out[HASH_TEXT_BYTES], struct err *err)
{
    struct hasher hasher;
    struct hash hash;
    ssize_t n;

    hasher_init(&hasher);
    while ((n = read(fd, s->chunk, CHUNK)) > 0 || (n < 0 && errno == EINTR)) {
        if (n < 0)
            continue;
        hasher_add(&hasher, s->chunk, (size_t)n);
        s->seal.bytes += (uint64_t)n;
        if (job_in_time(s->job, err) < 0)
            return -1;
    }
    if (n < 0)
        return err_os(err, "reading");
    hasher_end(&hasher, &hash);
    hash_text(&hash, out);
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int add_xattr(int fd, const char *name, struct hasher *hasher, struct err *err)
{
    AUTO_FREE char *value = xmalloc(IMAGE_XATTR_MAX);
    ssize_t n = fgetxattr(fd, name, value, IMAGE_XATTR_MAX);
    uint64_t length = (uint64_t)n;

    if (n < 0)
        return err_os(err, "reading an attribute");
    hasher_add(hasher, name, strlen(name) + 1);
    hasher_add(hasher, &length, sizeof length);
    hasher_add(hasher, value, (size_t)n);
    return 0;
}

int xattr_names(int fd, char **out_space, const char ***out, size_t *out_n, struct err *err)
{
    AUTO_FREE char *names = xmalloc(XATTR_NAMES_MAX);
    ssize_t n = flistxattr(fd, names, XATTR_NAMES_MAX);
    const char **sorted = NULL;
    size_t count = 0;

    if (n < 0 && errno != EOPNOTSUPP)
        return err_os(err, "listing attributes");
    if (n > 0)
        sorted = xcalloc((size_t)n, sizeof *sorted);
    for (const char *p = names; p < names + n; p += strlen(p) + 1)
        if (strncmp(p, "user.", 5) == 0)
            sorted[count++] = p;
    if (count)
        qsort(sorted, count, sizeof *sorted, by_text);
    *out_space = TAKE(names);
    *out = sorted;
    *out_n = count;
    return 0;
}

/* What an overlay notes for itself says nothing about the contents, but for the one attribute that
 * hides what lies below. */
static bool is_note_of_overlay(const char *name)
{
    return strncmp(name, "user.overlay.", 13) == 0 && strcmp(name, "user.overlay.opaque") != 0;
}

static int hash_xattrs(int fd, char out[HASH_TEXT_BYTES], struct err *err)
{
    AUTO_FREE char *names = NULL;
    AUTO_FREE const char **sorted = NULL;
    size_t count = 0, told = 0;
    struct hasher hasher;
    struct hash hash;

    (void)strcpy(out, "-");
    if (xattr_names(fd, &names, &sorted, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (!is_note_of_overlay(sorted[i]))
            sorted[told++] = sorted[i];
    count = told;
    if (!count)
        return 0;
    hasher_init(&hasher);
    for (size_t i = 0; i < count; i++)
        if (add_xattr(fd, sorted[i], &hasher, err) < 0)
            return -1;
    hasher_end(&hasher, &hash);
    hash_text(&hash, out);
    return 0;
}

/* ---- lines ---- */

/* The first line that is not the one it was. */
static int compare_line(struct sealer *s, const char *line, size_t n, struct err *err)
{
    size_t got = 0;
    int c = EOF;

    while (got < sizeof s->was && (c = fgetc(s->against)) != EOF) {
        s->was[got++] = (char)c;
        if (c == '\n')
            break;
    }
    if (got == n && memcmp(s->was, line, n) == 0)
        return 0;
    return err_set(err, ERR_INTEGRITY, "it or what was before it was changed, added or removed");
}

static int write_line(struct sealer *s, char kind, const struct stat *st, uint64_t size,
                      const char *hash, const char *xattrs, struct err *err)
{
    AUTO_BUF struct buf line = BUF(LINE_MAX_BYTES);

    if (buf_addf(&line, err, "%c %04o %lld %llu %s %s ", kind, st->st_mode & 07777U,
                 (long long)st->st_mtim.tv_sec, (unsigned long long)size, hash, xattrs) < 0 ||
        text_escape(str_of(s->path), &line, err) < 0 || buf_add_byte(&line, '\n', err) < 0)
        return -1;
    hasher_add(&s->hasher, line.p, line.n);
    if (++s->seal.entries > IMAGE_ENTRIES_MAX + 1)
        return err_set(err, ERR_LIMIT, "more than %d entries", IMAGE_ENTRIES_MAX);
    if (s->list && fwrite(line.p, 1, line.n, s->list) != line.n)
        return err_os(err, "writing the list of a layer");
    return s->against ? compare_line(s, line.p, line.n, err) : 0;
}

static int seal_link(struct sealer *s, int at, const char *name, const struct stat *st,
                     struct err *err)
{
    char target[PATH_BYTES_MAX], hash[HASH_TEXT_BYTES];
    ssize_t n = readlinkat(at, name, target, sizeof target);

    if (n < 0)
        return err_os(err, "reading a link");
    hash_text_of((struct str){target, (size_t)n}, hash);
    return write_line(s, 'l', st, (uint64_t)n, hash, "-", err);
}

static int seal_file(struct sealer *s, int at, const char *name, const struct stat *st,
                     struct err *err)
{
    AUTO_FD int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    char hash[HASH_TEXT_BYTES], xattrs[HASH_TEXT_BYTES];

    if (fd < 0)
        return err_os(err, "opening");
    if (hash_file(s, fd, hash, err) < 0 || hash_xattrs(fd, xattrs, err) < 0)
        return -1;
    return write_line(s, 'f', st, (uint64_t)st->st_size, hash, xattrs, err);
}

/* ---- folders ---- */

int folder_names(int fd, struct arena *mem, const char ***out, size_t *n, struct err *err)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    const struct dirent *entry;
    const char **names = NULL;
    size_t count = 0, room = 0;

    if (!dir) {
        if (copy >= 0)
            (void)close(copy);
        return err_os(err, "listing a folder");
    }
    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (count == IMAGE_ENTRIES_MAX || mem->used > IMAGE_MEMORY_MAX / 2)
            break;
        if (count == room) {
            room = room ? 2 * room : 64;
            names = xrealloc(names, room * sizeof *names);
        }
        names[count++] = arena_text(mem, str_of(entry->d_name));
    }
    (void)closedir(dir);
    if (entry) {
        free(names);
        return err_set(err, ERR_LIMIT, "too many entries in one folder");
    }
    if (count)
        qsort(names, count, sizeof *names, by_text);
    *out = names;
    *n = count;
    return 0;
}

static int seal_folder(struct sealer *s, int fd, unsigned depth, struct err *err);

static int seal_entry(struct sealer *s, int at, const char *name, unsigned depth, struct err *err)
{
    AUTO_FD int fd = -1;
    struct stat st;

    if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_os(err, "looking at an entry");
    if (S_ISREG(st.st_mode))
        return seal_file(s, at, name, &st, err);
    if (S_ISLNK(st.st_mode))
        return seal_link(s, at, name, &st, err);
    if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0)) {
        st.st_mtim.tv_sec = 0; /* when it was made, and how, is nobody's business */
        st.st_mode = 0;
        return write_line(s, 'w', &st, 0, "-", "-", err);
    }
    if (s->any_kind && !S_ISDIR(st.st_mode))
        return write_line(s, 's', &st, 0, "-", "-", err);
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ERR_INTEGRITY, "something that is neither file, folder nor link");
    fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_os(err, "opening a folder");
    return seal_folder(s, fd, depth + 1, err);
}

static int seal_folder(struct sealer *s, int fd, unsigned depth, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(IMAGE_MEMORY_MAX);
    AUTO_FREE const char **names = NULL;
    char xattrs[HASH_TEXT_BYTES];
    size_t n = 0, length = strlen(s->path);
    struct stat st;

    if (depth > IMAGE_DEPTH_MAX + 1)
        return err_set(err, ERR_LIMIT, "folders in folders, more than %d deep", IMAGE_DEPTH_MAX);
    if (fstat(fd, &st) < 0)
        return err_os(err, "looking at a folder");
    if (hash_xattrs(fd, xattrs, err) < 0 || write_line(s, 'd', &st, 0, "-", xattrs, err) < 0 ||
        folder_names(fd, &mem, &names, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(s->path + length, sizeof s->path - length, "%s%s", length ? "/" : "",
                       names[i]);
        event_progress(s->job, "sealing", s->seal.bytes, 0);
        if (seal_entry(s, fd, names[i], depth, err) < 0)
            return -1;
    }
    s->path[length] = '\0';
    return 0;
}

/* ---- a tree ---- */

static FILE *stream_of(int fd, const char *mode)
{
    int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    FILE *stream = copy < 0 ? NULL : fdopen(copy, mode);

    if (!stream && copy >= 0)
        (void)close(copy);
    return stream;
}

static int run_sealer(struct sealer *s, int root_fd, struct err *err)
{
    if (seal_folder(s, root_fd, 0, err) < 0)
        return err_in(err, "/%.200s", s->path);
    if (s->against && fgetc(s->against) != EOF)
        return err_set(err, ERR_INTEGRITY, "entries at the end of the layer are missing");
    if (s->list && fflush(s->list) != 0)
        return err_os(err, "writing the list of a layer");
    return 0;
}

static int seal_with(struct job *job, bool any_kind, int root_fd, int list_fd, int against_fd,
                     struct seal *out, struct err *err)
{
    struct sealer *s = xcalloc(1, sizeof *s);
    int failed = 0;

    s->job = job;
    s->any_kind = any_kind;
    s->chunk = xmalloc(CHUNK);
    s->list = stream_of(list_fd, "w");
    s->against = stream_of(against_fd, "r");
    hasher_init(&s->hasher);
    if ((list_fd >= 0 && !s->list) || (against_fd >= 0 && !s->against))
        failed = err_os(err, "opening the list of a layer");
    if (!failed)
        failed = run_sealer(s, root_fd, err);
    hasher_end(&s->hasher, &s->seal.hash);
    if (!failed)
        *out = s->seal;
    if (s->list && fclose(s->list) != 0 && !failed)
        failed = err_os(err, "writing the list of a layer");
    if (s->against)
        (void)fclose(s->against);
    free(s->chunk);
    free(s);
    return failed;
}

int seal_tree(struct job *job, int root_fd, int list_fd, int against_fd, struct seal *out,
              struct err *err)
{
    return seal_with(job, false, root_fd, list_fd, against_fd, out, err);
}

int seal_any(struct job *job, int root_fd, struct seal *out, struct err *err)
{
    return seal_with(job, true, root_fd, -1, -1, out, err);
}
