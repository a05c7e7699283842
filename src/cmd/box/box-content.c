/* SPDX-License-Identifier: Apache-2.0 */

/* A file is the same as long as device, inode, size and both times are. The time of change cannot
 * be set, but it has steps: a file that was changed twice within one looks unchanged. So what
 * changed a moment ago is hashed and not remembered. */

#include "cmd/box/box-identity.h"

#include "lib/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#define FRESH_S 2 /* longer than any step of a clock that stamps files */
#define PIECE_BYTES 65536
#define WINDOW_US 10000000U
#define WINDOW_BYTES (1UL << 30) /* hashed in one window: nobody inside has us busy for nothing */

static bool is_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool is_same(const struct content *content, const struct stat *st)
{
    return content->size && content->device == st->st_dev && content->inode == st->st_ino &&
           content->size == (uint64_t)st->st_size && is_same_time(content->modified, st->st_mtim) &&
           is_same_time(content->changed, st->st_ctim);
}

static struct content content_of(const struct stat *st, const struct hash *hash)
{
    return (struct content){.device = st->st_dev,
                            .inode = st->st_ino,
                            .size = (uint64_t)st->st_size,
                            .modified = st->st_mtim,
                            .changed = st->st_ctim,
                            .hash = *hash};
}

static size_t set_of(const struct stat *st)
{
    return (size_t)((st->st_ino ^ st->st_dev) % CONTENT_SETS);
}

static const struct content *find(const struct contents *contents, const struct stat *st)
{
    const struct content *set = contents->of[set_of(st)];

    for (size_t i = 0; i < CONTENT_WAYS; i++)
        if (is_same(&set[i], st))
            return &set[i];
    return NULL;
}

static bool is_fresh(const struct stat *st)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return st->st_ctim.tv_sec > now.tv_sec - FRESH_S;
}

static void remember(struct contents *contents, const struct stat *st, const struct hash *hash)
{
    size_t set = set_of(st);

    if (is_fresh(st))
        return;
    contents->of[set][contents->next[set]] = content_of(st, hash);
    contents->next[set] = (uint8_t)((contents->next[set] + 1) % CONTENT_WAYS);
}

static bool may_hash(struct contents *contents, uint64_t bytes)
{
    uint64_t now = clock_us();

    if (now - contents->window_us > WINDOW_US) {
        contents->window_us = now;
        contents->hashed_bytes = 0;
    }
    if (bytes > CONTENT_FILE_MAX || contents->hashed_bytes + bytes > WINDOW_BYTES)
        return false;
    contents->hashed_bytes += bytes;
    return true;
}

/* Exactly so many bytes: a file that grows or shrinks meanwhile is another one. */
static bool hash_bytes(int fd, uint64_t size, struct hash *out)
{
    static char piece[PIECE_BYTES]; /* one thread hashes */
    struct hasher hasher;
    uint64_t at = 0;

    hasher_init(&hasher);
    for (;;) {
        ssize_t got = read(fd, piece, sizeof piece);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || at + (uint64_t)got > size) {
            hasher_end(&hasher, out);
            return got == 0 && at == size;
        }
        hasher_add(&hasher, piece, (size_t)got);
        at += (uint64_t)got;
    }
}

bool content_hash(struct contents *contents, int dir_fd, const char *name, const struct stat *st,
                  struct hash *out)
{
    const struct content *known = find(contents, st);
    struct stat before, after;
    struct hash hash;
    AUTO_FD int fd = -1;

    if (known) {
        *out = known->hash;
        return true;
    }
    if (!S_ISREG(st->st_mode) || st->st_size <= 0 || !may_hash(contents, (uint64_t)st->st_size))
        return false;
    fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &before) < 0 || !hash_bytes(fd, (uint64_t)st->st_size, &hash) ||
        fstat(fd, &after) < 0)
        return false;
    /* What was opened is what was seen, and stayed so. */
    {
        struct content seen = content_of(st, &hash);

        if (!is_same(&seen, &before) || !is_same(&seen, &after))
            return false;
    }
    remember(contents, st, &hash);
    *out = hash;
    return true;
}
