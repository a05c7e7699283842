/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to execute: the caller's side of file-wire.h. */

#include "flow/execute/file-wire.h"
#include "flow/execute/kept.h"
#include "lib/crypto/crypto.h"

#include <signal.h>
#include <sys/types.h>
#include <time.h>

struct files {
    const struct execute *execute;
    int fd;
    int signals_fd;
    sigset_t before;
    bool cancelled;
    struct moved *moved;
    uint64_t file_max; /* of the file that is being written inside; 0: nobody said */
    struct files_progress progress;
};

/* file-record.c: the records of a listing, one after the other. 0: there are no more. */
int file_record_next(struct str *rest, struct file_entry *out, struct err *err) MUST_CHECK;
/* One component of a path, that is not "." or "..". */
bool file_name_is_safe(struct str name);
/* Whether a link with this text, `depth` folders below the top of a tree, stays in the tree. */
bool file_link_stays(struct str target, unsigned depth);
/* "127.0.0.1:80", "[::1]:80", "80": loopback only. */
struct sockaddr_storage;
int port_listen_parse(struct str text, struct sockaddr_storage *out, struct err *err) MUST_CHECK;

/* Waits until fd is ready; ERR_CONFLICT when a signal comes first, ERR_TIMEOUT in the end. */
int files_wait(struct files *files, int fd, short events, int wait_ms, struct err *err) MUST_CHECK;
/* One request; *fd, when asked for, is a regular file. value of the answer is returned. */
int files_ask(struct files *files, const struct file_request *request, int *fd,
              struct err *err) MUST_CHECK;
int file_request_fill(struct file_request *request, enum file_op op, uint32_t flags,
                      const char *path, const char *other, struct err *err) MUST_CHECK;
/* Entries of exactly this folder. */
int files_list_folder(struct files *files, struct arena *mem, const char *path, bool follow,
                      struct file_listing *out, struct err *err) MUST_CHECK;
void files_tell(struct files *files);

/* ---- copies: kept-copy.c ---- */

#define COPY_MODE_MAX 0777U /* no set-id, no sticky bit */
#define COPY_FOLDER_MEMORY_MAX (64UL << 20)

struct copy {
    struct files *files;
    struct hasher tree;
    unsigned depth;
};

struct stat;

/* Between chunks: counts, tells, and fails when a signal came. */
int copy_go_on(struct files *files, uint64_t n, struct err *err) MUST_CHECK;
/* Whether the file inside may become this long: what is written from outside has the limit of what
 * is written inside. */
int copy_fits(const struct files *files, uint64_t size, struct err *err) MUST_CHECK;
/* As long as it was when it was looked at, holes as holes. */
int copy_content(struct files *files, int from, int to, off_t size, char out[HASH_TEXT_BYTES],
                 struct err *err) MUST_CHECK;
/* A regular file inside, open for reading. */
int copy_open(struct files *files, const char *path, bool follow, int *out, struct stat *st,
              struct err *err) MUST_CHECK;
/* To a sink that may be a pipe whose reader takes its time, or is gone. */
int copy_write_out(struct files *files, int fd, const char *bytes, size_t n,
                   struct err *err) MUST_CHECK;
/* A new file beside its place, and then in its place. What is not committed is removed by the
 * keeper with the next request or the end of the connection. */
int copy_create(struct files *files, const char *path, int *out, struct err *err) MUST_CHECK;
int copy_commit(struct files *files, uint32_t flags, uint32_t mode, const struct timespec *mtime,
                struct err *err) MUST_CHECK;
int copy_join(const char *path, const char *name, char out[FILE_PATH_BYTES],
              struct err *err) MUST_CHECK;
/* The last name of a path, or "" when it has none of its own. */
void copy_last_name(const char *path, char out[256]);
/* One line of the tree hash. */
int copy_note(struct copy *copy, char type, uint32_t mode, const char *content, const char *path,
              struct err *err) MUST_CHECK;
int copy_enter(struct copy *copy, struct err *err) MUST_CHECK;
void copy_finish(struct copy *copy);

/* ---- tar: tar-header.c reads and writes headers, kept-tar.c streams ---- */

#define TAR_BLOCK 512U
#define TAR_EXTENDED_MAX (64UL << 10)

enum tar_kind {
    TAR_SPECIAL, /* a device, FIFO, hard link or something newer: left out */
    TAR_FILE,
    TAR_FOLDER,
    TAR_LINK,
    TAR_EXTENDED,    /* its content overrides members of the next entry (pax) */
    TAR_GLOBAL,      /* the same for all that follow: left out */
    TAR_LONG_PATH,   /* its content is the path of the next entry (GNU) */
    TAR_LONG_TARGET, /* and the text of its link */
};

struct tar_entry {
    enum tar_kind kind;
    uint32_t mode;
    uint64_t size;
    int64_t mtime_s;
    uint32_t mtime_ns;
    char path[FILE_PATH_BYTES];
    char target[FILE_PATH_BYTES];
};

/* 1: an entry, 0: the empty block behind the last one. */
int tar_header_read(const char block[TAR_BLOCK], struct tar_entry *out, struct err *err) MUST_CHECK;
/* Applies the records of an extended header. */
int tar_extended_read(struct str records, struct tar_entry *out, struct err *err) MUST_CHECK;
/* Takes "./", "//" and a "/" at the end off; false when it is absolute or leads up. */
bool tar_path_clean(char *path);
/* The header blocks of an entry, with an extended header where the plain one is too small. */
struct buf;
int tar_header_write(const struct tar_entry *entry, struct buf *out, struct err *err) MUST_CHECK;
