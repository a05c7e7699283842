/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to execute: the caller's side of file-wire.h. */

#include "flow/execute/file-wire.h"
#include "flow/execute/kept.h"
#include "lib/crypto/crypto.h"

#include <signal.h>
#include <time.h>

struct files {
    int fd;
    int signals_fd;
    sigset_t before;
    bool cancelled;
    struct moved *moved;
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

/* Signals that would end us, held back and readable. */
int signals_hold(sigset_t *before, int *out_fd, struct err *err) MUST_CHECK;
void signals_release(const sigset_t *before, int fd);

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
