/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Ownership and contracts, spelled the same way everywhere.
 *
 * A local that owns something says so where it is declared and starts out empty:
 *
 *     AUTO_FREE char *name = NULL;
 *     AUTO_FD int fd = -1;
 *     AUTO(policy) struct policy *policy = NULL;     policy_free() accepts NULL
 *
 * Ownership leaves a variable only through TAKE() and TAKE_FD(), which leave it empty. */

#include <stdlib.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))
#define MUST_CHECK __attribute__((warn_unused_result))
#define NORETURN __attribute__((noreturn))

static inline void auto_free(void *p)
{
    free(*(void **)p);
}

static inline void auto_close(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* nothing was written through it that we still wait for */
}

#define AUTO_FREE __attribute__((cleanup(auto_free)))
#define AUTO_FD __attribute__((cleanup(auto_close)))

/* AUTO(thing) calls thing_free() on the pointer when it goes out of scope; the type needs
 * AUTO_TYPE(thing) once, in the header that declares thing_free(). */
#define AUTO(type) __attribute__((cleanup(auto_##type##_free)))
#define AUTO_TYPE(type)                                                                            \
    static inline void auto_##type##_free(struct type **p)                                         \
    {                                                                                              \
        type##_free(*p);                                                                           \
    }

#define TAKE(p)                                                                                    \
    __extension__({                                                                                \
        __typeof__(p) taken_ = (p);                                                                \
        (p) = NULL;                                                                                \
        taken_;                                                                                    \
    })

#define TAKE_FD(fd)                                                                                \
    __extension__({                                                                                \
        int taken_ = (fd);                                                                         \
        (fd) = -1;                                                                                 \
        taken_;                                                                                    \
    })

/* A large buffer that a read fills right away: the compiler does not fill it with zeros first
 * (-ftrivial-auto-var-init), which costs as much as the copy it waits for. */
#define UNFILLED __attribute__((uninitialized))
