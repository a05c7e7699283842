/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A test is a function in a process of its own: it may enter namespaces, drop rights, crash.
 * Results are TAP. Linked with tests/unit/test.c, which has main().
 *
 *     TEST(buffer_stops_at_its_ceiling)
 *     {
 *         CHECK_INT(buf_add(&b, "x", 1, &err), -1);
 *         CHECK_TEXT(err.text, "more than 4 bytes");
 *     }
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

void test_register(const char *name, void (*run)(void), const char *file, int line);
void test_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void test_skip(const char *why) __attribute__((noreturn)); /* leaves the test */
void test_check_text(const char *file, int line, const char *what, const char *got,
                     const char *wanted);
void test_check_int(const char *file, int line, const char *what, int64_t got, int64_t wanted);

#define TEST(name)                                                                                 \
    static void test_##name(void);                                                                 \
    __attribute__((constructor)) static void test_register_##name(void)                            \
    {                                                                                              \
        test_register(#name, test_##name, __FILE__, __LINE__);                                     \
    }                                                                                              \
    static void test_##name(void)

#define CHECK(condition)                                                                           \
    ((condition) ? (void)0 : test_fail(__FILE__, __LINE__, "not true: %s", #condition))
#define CHECK_INT(got, wanted)                                                                     \
    test_check_int(__FILE__, __LINE__, #got, (int64_t)(got), (int64_t)(wanted))
#define CHECK_TEXT(got, wanted) test_check_text(__FILE__, __LINE__, #got, (got), (wanted))
