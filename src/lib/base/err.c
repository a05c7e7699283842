/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int http;
    int status;
} faces[] = {
#define X(id, name, http, status) [ERR_##id] = {name, http, status},
    ERR_CODES(X)
#undef X
};

const char *err_name(enum err_code code)
{
    return faces[code].name;
}

int err_http(enum err_code code)
{
    return faces[code].http;
}

int err_exit(enum err_code code)
{
    return faces[code].status;
}

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
    va_list args;

    err->code = code;
    err->os = 0;
    va_start(args, fmt);
    (void)vsnprintf(err->text, sizeof err->text, fmt, args); /* a cut sentence still helps */
    va_end(args);
    return -1;
}

/* What the kernel said decides the face a failure shows: a full disk is that, a missing file
 * is not found. Everything without a better name is ERR_OS. */
static enum err_code code_of_errno(int os)
{
    switch (os) {
    case ENOENT:
        return ERR_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return ERR_FORBIDDEN;
    case ENOSPC:
    case EDQUOT:
        return ERR_STORAGE;
    case EMFILE:
    case ENFILE:
    case EAGAIN:
        return ERR_LIMIT;
    case ETIMEDOUT:
        return ERR_TIMEOUT;
    default:
        return ERR_OS;
    }
}

int err_os(struct err *err, const char *fmt, ...)
{
    int os = errno;
    size_t used;
    va_list args;

    err->code = code_of_errno(os);
    err->os = os;
    va_start(args, fmt);
    (void)vsnprintf(err->text, sizeof err->text, fmt, args);
    va_end(args);
    used = strlen(err->text);
    (void)snprintf(err->text + used, sizeof err->text - used, ": %s", strerrordesc_np(os));
    return -1;
}

int err_in(struct err *err, const char *fmt, ...)
{
    char inner[sizeof err->text];
    size_t used;
    va_list args;

    memcpy(inner, err->text, sizeof inner);
    va_start(args, fmt);
    (void)vsnprintf(err->text, sizeof err->text, fmt, args);
    va_end(args);
    used = strlen(err->text);
    (void)snprintf(err->text + used, sizeof err->text - used, ": %s", inner);
    return -1;
}
