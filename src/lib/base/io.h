/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/buf.h"

/* Descriptors, whole. All of these go on after EINTR. */
int write_all(int fd, const void *bytes, size_t n, struct err *err) MUST_CHECK;
int read_all(int fd, struct buf *out, struct err *err) MUST_CHECK; /* to the end */

/* A file of the kernel or of the user, relative to dir_fd (or AT_FDCWD); names it in errors. */
int file_read(int dir_fd, const char *path, struct buf *out, struct err *err) MUST_CHECK;
/* One write into an existing file, as cgroup and proc files want it. */
int file_write(int dir_fd, const char *path, const char *text, struct err *err) MUST_CHECK;

/* Makes the file with exactly this content, or leaves what was there: a temporary name beside
 * it, synced, renamed, directory synced. */
int file_replace(const char *path, const void *bytes, size_t n, unsigned mode,
                 struct err *err) MUST_CHECK;

/* The same for what need not survive a power cut: whoever reads sees the old or the new. */
int file_exchange(const char *path, const void *bytes, size_t n, unsigned mode,
                  struct err *err) MUST_CHECK;

/* flock() LOCK_EX or LOCK_SH, waited for so long at most. False: errno says why; EWOULDBLOCK is
 * that somebody else had it all the time. */
bool lock_wait(int fd, int how, unsigned wait_ms);

/* The same alone on a file that nobody keeps for more than a moment; it ends with the descriptor.
 * ERR_UNAVAILABLE: somebody keeps it all the same, because he was stopped, say. */
int file_lock(int fd, const char *path, struct err *err) MUST_CHECK;

/* Like mkdir -p, for a directory only its owner may enter when it is new. */
int dir_make(const char *path, unsigned mode, struct err *err) MUST_CHECK;
/* Makes one folder, or finds it there, for folders that have nothing to do with each other. The
 * file system is asked to lay them apart: without a journal ext4 passes over each inode of a
 * neighbourhood that was freed within the last minutes, one by one, whenever it makes a file there,
 * so that a thousand files removed with one sandbox made each file of the next cost a millisecond.
 */
int dir_make_apart(int dir_fd, const char *path, struct err *err) MUST_CHECK;
/* Removes a tree beneath dir_fd without following anything out of it. Missing is success. */
int dir_remove(int dir_fd, const char *name, struct err *err) MUST_CHECK;
