/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"

/* One descriptor over a unix socket, with one byte to carry it. The received one is
 * close-on-exec. */
int fd_send(int socket_fd, int fd, struct err *err) MUST_CHECK;
int fd_receive(int socket_fd, int *out, struct err *err) MUST_CHECK;
