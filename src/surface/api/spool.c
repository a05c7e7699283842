/* SPDX-License-Identifier: Apache-2.0 */

/* Bodies that must be there as a whole before anything is done with them: archives. They go to a
 * file that has no name from the beginning, so whatever becomes of us, nothing of it stays. */

#include "surface/api/api-private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/crypto/crypto.h"
#include "surface/api/stream.h"

#define PIECE_BYTES (64 * KIB)

static int open_nameless(const char *dir, int *out, struct err *err)
{
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_os(err, "making room for the body");
    *out = fd;
    return 0;
}

/* A client that leaves half way is told by an order; the pipe itself does not end then. */
static int wait_for_bytes(const struct call *call, struct err *err)
{
    struct pollfd fds[] = {
        {.fd = call->body_fd,   .events = POLLIN},
        {.fd = call->orders[0], .events = POLLIN},
    };

    while (poll(fds, COUNT(fds), -1) < 0)
        if (errno != EINTR)
            return err_os(err, "waiting for the body");
    if (fds[1].revents)
        return err_set(err, ERR_UNAVAILABLE, "the body was not complete when its sender left");
    return 0;
}

static int copy_body(struct call *call, int to, struct err *err)
{
    char piece[PIECE_BYTES];
    struct hasher hasher;
    struct hash hash;
    ssize_t n;

    hasher_init(&hasher);
    for (;;) {
        if (wait_for_bytes(call, err) < 0)
            return -1;
        n = read(call->body_fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_os(err, "reading the body");
        if (n == 0)
            break;
        hasher_add(&hasher, piece, (size_t)n);
        if (write_all(to, piece, (size_t)n, err) < 0)
            return err_in(err, "keeping the body");
    }
    hasher_end(&hasher, &hash);
    hash_text(&hash, call->file_hash);
    return 0;
}

int body_to_file(struct call *call, struct err *err)
{
    AUTO_FD int fd = -1;
    const char *dir = NULL;

    if (tenant_spool(call->tenant, &call->mem, &dir, err) < 0 || open_nameless(dir, &fd, err) < 0 ||
        copy_body(call, fd, err) < 0)
        return -1;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_os(err, "rewinding the body");
    call->file_fd = TAKE_FD(fd);
    return 0;
}

const char *call_file_path(struct call *call)
{
    return arena_printf(&call->mem, "/proc/self/fd/%d", call->file_fd);
}

int call_file_failed(struct call *call, struct err *err)
{
    const char *name = arena_printf(&call->mem, "%s: ", call_file_path(call));
    char *at;

    while ((at = strstr(err->text, name)))
        memmove(at, at + strlen(name), strlen(at + strlen(name)) + 1);
    return -1;
}

int call_send_file(struct call *call, const char *path, const char *type, struct err *err)
{
    struct stream_config config = {.frame = FRAME_RAW, .type = type, .sources = 1};
    AUTO_FD int from = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    char piece[PIECE_BYTES];
    int fds[STREAM_SOURCES];
    int failed = 0;
    ssize_t n;
    off_t size;

    if (from < 0)
        return err_os(err, "opening what was written");
    (void)unlink(path); /* the descriptor is all that is needed */
    size = lseek(from, 0, SEEK_END);
    if (size < 0 || lseek(from, 0, SEEK_SET) < 0)
        return err_os(err, "measuring what was written");
    config.length = (uint64_t)size;
    if (stream_open(call, &config, fds, err) < 0)
        return -1;
    while (!failed && (n = read(from, piece, sizeof piece)) != 0)
        failed = n < 0 ? (errno == EINTR ? 0 : err_os(err, "reading what was written"))
                       : write_all(fds[0], piece, (size_t)n, err);
    (void)close(fds[0]);
    return failed;
}
