/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For the programs that attack: small, static, started inside the sandbox from /mnt/attack.
 *
 * They judge nothing. Each attempt prints one line, "NAME: worked" or "NAME: EPERM", and the
 * .bats file of the same subject says which answer is the right one. */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline void answer(const char *name, int error)
{
    const char *code = error ? strerrorname_np(error) : "worked";

    (void)printf("%s: %s\n", name, code ? code : "an unknown error");
    (void)fflush(stdout);
}

/* A system call's result, or a library function's that sets errno. */
static inline long attempt(const char *name, long result)
{
    answer(name, result == -1 ? errno : 0);
    return result;
}

static inline void usage(const char *text)
{
    (void)fprintf(stderr, "usage: %s\n", text);
    exit(64);
}
