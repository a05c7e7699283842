/* SPDX-License-Identifier: Apache-2.0 */

/* The file a key is kept in: one line, nothing else.
 *
 *     brig-ed25519-v1:<64 lower-case hex digits: the RFC 8032 seed>\n
 *     brig-aes256g-v1:<64 lower-case hex digits: the vault's master key>\n
 *
 * It appears under its name complete and synced, or not at all: a new key is written to a file
 * without a name and linked into place. link() never replaces, so of several first users one
 * wins and the others read the winner's key. */

#include "lib/crypto/key.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/clock.h"
#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/base/text.h"

#define HEAD_BYTES KEY_FILE_HEAD_BYTES
#define FILE_BYTES (HEAD_BYTES + 2 * SEED_BYTES + 1)
#define TEMPORARY_BYTES (ID_BYTES + 16)

/* Where it is, and what people are told. */
struct place {
    int dir_fd;
    const char *name;
    const char *path;
    const struct key_file_kind *kind;
};

static int check_file(int fd, const char *what, const char *path, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_os(err, "looking at the %s %s", what, path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_INTEGRITY, "the %s %s is not a regular file", what, path);
    if (st.st_uid != geteuid())
        return err_set(err, ERR_INTEGRITY,
                       "the %s %s belongs to user %u, not to user %u who runs this", what, path,
                       st.st_uid, geteuid());
    if (st.st_mode & 077)
        return err_set(err, ERR_INTEGRITY,
                       "the %s %s can be reached by others (mode %04o); if nobody has "
                       "read it: chmod 600 %s",
                       what, path, (unsigned)st.st_mode & 07777U, path);
    if (st.st_size != (off_t)FILE_BYTES)
        return err_set(err, ERR_INTEGRITY,
                       "the %s %s is %lld bytes long instead of %zu: restore it from a "
                       "backup, or move it and what it is for away to begin anew",
                       what, path, (long long)st.st_size, FILE_BYTES);
    return 0;
}

static int parse_seed(struct str text, const char *head, unsigned char seed[SEED_BYTES])
{
    struct str digits = {text.p + HEAD_BYTES, 2 * SEED_BYTES};

    if (!str_starts(text, head) || text.p[FILE_BYTES - 1] != '\n' ||
        !hex_decode(digits, seed, SEED_BYTES))
        return -1;
    return 0;
}

static int read_seed(int fd, const struct place *place, unsigned char seed[SEED_BYTES],
                     struct err *err)
{
    char text[FILE_BYTES];
    ssize_t got = pread(fd, text, sizeof text, 0); /* a regular file of this size: whole */
    int failed = 0;

    if (got < 0)
        failed = err_os(err, "reading the %s %s", place->kind->what, place->path);
    else if (got != (ssize_t)sizeof text ||
             parse_seed((struct str){text, sizeof text}, place->kind->head, seed) < 0)
        failed = err_set(err, ERR_INTEGRITY, "the %s %s is not of the form %s<64 hex digits>",
                         place->kind->what, place->path, place->kind->head);
    sodium_memzero(text, sizeof text);
    return failed;
}

/* Gives -2 when there is no such file. */
static int open_existing(const struct place *place, unsigned char seed[SEED_BYTES], struct err *err)
{
    /* O_NONBLOCK: a FIFO in its place must not hold us up. */
    AUTO_FD int fd = openat(place->dir_fd, place->name,
                            O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    const char *path = place->path, *what = place->kind->what;

    if (fd < 0 && errno == ENOENT)
        return -2;
    if (fd < 0 && errno == ELOOP)
        return err_set(err, ERR_INTEGRITY, "the %s %s is a symbolic link", what, path);
    if (fd < 0)
        return err_os(err, "opening the %s %s", what, path);
    if (check_file(fd, what, path, err) < 0)
        return -1;
    return read_seed(fd, place, seed, err);
}

static int write_seed(int fd, const char *head, const unsigned char seed[SEED_BYTES],
                      struct err *err)
{
    char text[FILE_BYTES + 1]; /* and the NUL of hex_encode() */
    int failed = 0;

    memcpy(text, head, HEAD_BYTES);
    hex_encode(seed, SEED_BYTES, text + HEAD_BYTES);
    text[FILE_BYTES - 1] = '\n';
    if (write_all(fd, text, FILE_BYTES, err) < 0)
        failed = -1;
    else if (fchmod(fd, 0600) < 0 || fsync(fd) < 0)
        failed = err_os(err, "syncing");
    sodium_memzero(text, sizeof text);
    return failed;
}

/* Opens a file without a name in the folder, or, where the file system knows no such thing, one
 * with a random name that temporary then holds. */
static int open_unnamed(int dir_fd, char temporary[TEMPORARY_BYTES])
{
    char id[ID_BYTES];
    int fd = openat(dir_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
        return fd;
    id_new(id);
    (void)snprintf(temporary, TEMPORARY_BYTES, "key.%s.tmp", id);
    return openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static int link_into_place(int fd, const struct place *place, struct err *err)
{
    char by_fd[32];

    (void)snprintf(by_fd, sizeof by_fd, "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, by_fd, place->dir_fd, place->name, AT_SYMLINK_FOLLOW) < 0 &&
        errno != EEXIST)
        return err_os(err, "naming it");
    return 0;
}

static int write_and_link(int fd, const struct place *place, struct err *err)
{
    unsigned char seed[SEED_BYTES];
    int failed;

    randombytes_buf(seed, sizeof seed);
    failed = write_seed(fd, place->kind->head, seed, err);
    sodium_memzero(seed, sizeof seed);
    CRASH_POINT("key-written");
    return failed < 0 ? failed : link_into_place(fd, place, err);
}

/* Through a descriptor of its own: the one we have may be no more than a path. */
static int sync_dir(int dir_fd, struct err *err)
{
    AUTO_FD int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fsync(fd) < 0)
        return err_os(err, "syncing the folder");
    return 0;
}

static int create(const struct place *place, struct err *err)
{
    char temporary[TEMPORARY_BYTES] = "";
    AUTO_FD int fd = open_unnamed(place->dir_fd, temporary);
    int failed;

    if (fd < 0)
        return err_os(err, "creating the %s %s", place->kind->what, place->path);
    failed = write_and_link(fd, place, err);
    if (temporary[0])
        (void)unlinkat(place->dir_fd, temporary, 0); /* the name in place is the one that counts */
    if (failed < 0 || sync_dir(place->dir_fd, err) < 0)
        return err_in(err, "creating the %s %s", place->kind->what, place->path);
    CRASH_POINT("key-created");
    return 0;
}

int key_file_open(int dir_fd, const char *name, const char *path, const struct key_file_kind *kind,
                  unsigned char seed[SEED_BYTES], struct err *err)
{
    const struct place place = {dir_fd, name, path, kind};
    int answer = open_existing(&place, seed, err);

    if (answer != -2)
        return answer;
    if (create(&place, err) < 0)
        return -1;
    answer = open_existing(&place, seed, err);
    if (answer == -2)
        return err_set(err, ERR_CONFLICT, "the %s %s was removed while it was made", kind->what,
                       path);
    return answer;
}
