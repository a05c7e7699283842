/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"

#include <stddef.h>

/* Descriptors over a unix socket that keeps message borders, together with the bytes of one
 * message. Received ones are close-on-exec. */
#define FD_PASS_MAX 224 /* the kernel takes 253 */

int fds_send(int socket_fd, const void *bytes, size_t n, const int *fds, size_t fd_n,
             struct err *err) MUST_CHECK;
/* How many bytes came, 0 at the end. Exactly fd_n descriptors are written to fds, or -1 for each
 * when the message carried none; any other number is refused and closed. */
int fds_receive(int socket_fd, void *bytes, size_t n, int *fds, size_t fd_n,
                struct err *err) MUST_CHECK;

/* The same for a sender who says how many they are: up to FD_PASS_MAX of them, *fd_n in all. */
int fds_receive_any(int socket_fd, void *bytes, size_t n, int fds[FD_PASS_MAX], size_t *fd_n,
                    struct err *err) MUST_CHECK;

/* One descriptor, with one byte to carry it. */
int fd_send(int socket_fd, int fd, struct err *err) MUST_CHECK;
int fd_receive(int socket_fd, int *out, struct err *err) MUST_CHECK;
