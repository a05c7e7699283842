/* SPDX-License-Identifier: Apache-2.0 */

/* A file is its SHA-256, as sha256sum prints it. A folder is that over its entries in the order of
 * their names, each as
 *
 *     kind mode-in-octal NUL name NUL content NUL
 *
 * with kind "f", "d", "l" or "s" (what is neither: a socket, a pipe, a device), and as content the
 * hash of a file or folder in hex, the target of a link, or nothing. */

#include "flow/approve/operands.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/text.h"

#define DEPTH_MAX 32
#define CHUNK_BYTES (64 * KIB)

static int reopen(int fd, int flags)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static const char *hash_file(int at, const struct stat *st, struct operand_bounds *left,
                             uint64_t *bytes, struct hash *out)
{
    char chunk[CHUNK_BYTES];
    AUTO_FD int fd = -1;
    struct hasher hasher;
    ssize_t n;

    if ((uint64_t)st->st_size > OPERAND_FILE_MAX || (uint64_t)st->st_size > left->bytes)
        return "is larger than is bound by content";
    fd = reopen(at, O_RDONLY);
    if (fd < 0)
        return errno == EACCES ? "cannot be read here" : strerror(errno);
    hasher_init(&hasher);
    while ((n = read(fd, chunk, sizeof chunk)) > 0) {
        *bytes += (uint64_t)n;
        if (*bytes > OPERAND_FILE_MAX || (uint64_t)n > left->bytes)
            return "grows while it is read";
        left->bytes -= (uint64_t)n;
        hasher_add(&hasher, chunk, (size_t)n);
    }
    if (n < 0)
        return strerror(errno);
    hasher_end(&hasher, out);
    return NULL;
}

/* ---- folders ---- */

struct names {
    char **v;
    size_t n;
};

static void names_done(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->v[i]);
    free(names->v);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static const char *read_names(int fd, struct operand_bounds *left, struct names *out)
{
    DIR *dir = fdopendir(fd);
    const struct dirent *entry;
    const char *why = NULL;

    if (!dir) {
        (void)close(fd);
        return "cannot be listed";
    }
    out->v = xcalloc(left->entries + 1, sizeof *out->v);
    while (!why && (entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (left->entries == 0) {
            why = "is a folder with more in it than is bound by content";
            break;
        }
        left->entries--;
        out->v[out->n++] = xstrdup(entry->d_name);
    }
    (void)closedir(dir);
    qsort(out->v, out->n, sizeof *out->v, by_name);
    return why;
}

static void add_entry(struct hasher *hasher, char kind, const struct stat *st, const char *name,
                      const char *content)
{
    char head[16];
    int n = snprintf(head, sizeof head, "%c%o", kind, (unsigned)(st->st_mode & 07777));

    hasher_add(hasher, head, (size_t)n + 1); /* each with its NUL */
    hasher_add(hasher, name, strlen(name) + 1);
    hasher_add(hasher, content, strlen(content) + 1);
}

struct folder {
    struct operand_bounds *left;
    struct operand *out;
    unsigned depth;
};

static const char *hash_folder(struct folder folder, int at, struct hash *out);

static const char *hash_entry(struct folder folder, int at, const char *name, struct hasher *hasher)
{
    AUTO_FD int fd = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    char content[PATH_BYTES_MAX] = "";
    const char *why = NULL;
    struct hash hash;
    struct stat st;
    char kind = 's';

    if (fd < 0 || fstat(fd, &st) < 0)
        return "changes while it is read";
    folder.out->entries++;
    if (S_ISLNK(st.st_mode)) {
        kind = 'l';
        if (readlinkat(fd, "", content, sizeof content - 1) < 0)
            return "changes while it is read";
    } else if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) {
        kind = S_ISREG(st.st_mode) ? 'f' : 'd';
        why = kind == 'f' ? hash_file(fd, &st, folder.left, &folder.out->bytes, &hash)
                          : hash_folder(folder, fd, &hash);
        if (!why)
            hex_encode(hash.b, sizeof hash.b, content);
    }
    if (!why)
        add_entry(hasher, kind, &st, name, content);
    return why;
}

static const char *hash_folder(struct folder folder, int at, struct hash *out)
{
    __attribute__((cleanup(names_done))) struct names names = {0};
    int fd = reopen(at, O_RDONLY | O_DIRECTORY);
    struct hasher hasher;
    const char *why;

    if (fd < 0)
        return "is a folder that cannot be listed here";
    if (folder.depth++ >= DEPTH_MAX) {
        (void)close(fd);
        return "is a folder deeper than is bound by content";
    }
    why = read_names(fd, folder.left, &names);
    hasher_init(&hasher);
    for (size_t i = 0; !why && i < names.n; i++)
        why = hash_entry(folder, at, names.v[i], &hasher);
    if (!why)
        hasher_end(&hasher, out);
    return why;
}

void operand_hash(struct arena *mem, int fd, const struct stat *st, struct operand_bounds *left,
                  struct operand *out)
{
    const char *why = "is neither a file nor a folder";
    struct hash hash;

    out->kind = S_ISDIR(st->st_mode) ? OPERAND_FOLDER : OPERAND_FILE;
    if (S_ISREG(st->st_mode))
        why = hash_file(fd, st, left, &out->bytes, &hash);
    else if (S_ISDIR(st->st_mode))
        why = hash_folder((struct folder){left, out, 0}, fd, &hash);
    if (why)
        out->why = arena_text(mem, str_of(why));
    else
        hash_text(&hash, out->hash);
}
