/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/attrs.h"

/* Every way to fail, and the face each shows:
 *    id            API name        HTTP  exit */
#define ERR_CODES(X)                                                                               \
    X(INVALID, "invalid", 400, 64)                                                                 \
    X(FORBIDDEN, "forbidden", 403, 77)                                                             \
    X(FROZEN, "frozen", 403, 77)                                                                   \
    X(NOT_FOUND, "not_found", 404, 66)                                                             \
    X(CONFLICT, "conflict", 409, 75)                                                               \
    X(LIMIT, "limit", 429, 75)                                                                     \
    X(STORAGE, "storage", 507, 75)                                                                 \
    X(TIMEOUT, "timeout", 504, 75)                                                                 \
    X(UNAVAILABLE, "unavailable", 503, 69)                                                         \
    X(KEEPER, "keeper", 503, 69)                                                                   \
    X(INTEGRITY, "integrity", 500, 76)                                                             \
    X(INTERNAL, "internal", 500, 70)                                                               \
    X(OS, "os", 500, 71)

enum err_code {
#define X(id, name, http, status) ERR_##id,
    ERR_CODES(X)
#undef X
};

/* One failure, complete: what kind, which errno, and a sentence for a person.
 *
 * The text lives inside the struct so that reporting a failure cannot itself fail: it needs
 * no memory, it is valid in a freshly cloned child, and the whole struct fits in one atomic
 * pipe write, which is how a box that could not be built tells its parent why. */
struct err {
    enum err_code code;
    int os; /* errno at the time, or 0 */
    char text[496];
};

/* Each fills *err and returns -1, so a failing function ends in one line. */
int err_set(struct err *err, enum err_code code, const char *fmt, ...) PRINTF(3, 4);
int err_os(struct err *err, const char *fmt, ...) PRINTF(2, 3);

/* Puts "context: " before the text already there; code and errno stay. */
int err_in(struct err *err, const char *fmt, ...) PRINTF(2, 3);

const char *err_name(enum err_code code);
int err_http(enum err_code code);
int err_exit(enum err_code code);
