/* SPDX-License-Identifier: Apache-2.0 */

/* The cases of tests/vectors/scrub, and what they cannot say. */

#include "test.h"

#include "cmd/image/scrub.h"
#include "lib/base/attrs.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define MUCH (2 * MIB)

static const struct json *read_cases(struct arena *mem, const char *name)
{
    AUTO_BUF struct buf text = BUF(MIB);
    char path[PATH_BYTES_MAX];
    const struct json *root = NULL;
    struct mark where = {0, 0};
    struct err err;

    (void)snprintf(path, sizeof path, "%s/%s", VECTORS, name);
    if (file_read(AT_FDCWD, path, &text, &err) < 0 ||
        yaml_parse(mem, arena_str(mem, buf_str(&text)), &root, &where, &err) < 0) {
        test_fail(__FILE__, __LINE__, "%s:%u: %s", path, where.line, err.text);
        return json_array(mem);
    }
    return root;
}

static struct str member(const struct json *item, const char *key)
{
    struct str text = STR_LIT("");

    (void)json_is_text(json_get(item, key), &text);
    return text;
}

/* Each letter as two bytes, behind the mark that says so. */
static struct str as_utf16(struct arena *mem, struct str text)
{
    char *wide = arena_alloc(mem, 2 * text.n + 2);

    memcpy(wide, "\xff\xfe", 2);
    for (size_t i = 0; i < text.n; i++)
        wide[2 * i + 2] = text.p[i];
    return (struct str){wide, 2 * text.n + 2};
}

static struct str with_nuls(struct arena *mem, struct str text)
{
    char *bytes = arena_text(mem, text);

    for (size_t i = 0; i < text.n; i++)
        if (bytes[i] == '|')
            bytes[i] = '\0';
    return (struct str){bytes, text.n};
}

static const char *verdict_name(enum scrub_verdict verdict)
{
    static const char *const names[] = {"drop", "replace", "keep"};

    return names[verdict];
}

static void check_counts(const char *name, const struct json *wanted,
                         const struct scrub_result *result)
{
    for (size_t i = 0; i < SCRUB_RULES; i++) {
        int64_t count = 0;

        (void)json_is_int(wanted ? json_get(wanted, scrub_rule_name(i)) : NULL, &count);
        if (result->counts[i] != (uint64_t)count)
            test_fail(__FILE__, __LINE__, "%s: %s is %llu, should be %lld", name,
                      scrub_rule_name(i), (unsigned long long)result->counts[i], (long long)count);
    }
}

static void check_case(struct arena *mem, const struct json *item)
{
    AUTO_BUF struct buf out = BUF(2 * SCRUB_TEXT_MAX);
    AUTO_BUF struct buf again = BUF(2 * SCRUB_TEXT_MAX);
    const char *name = arena_text(mem, member(item, "name"));
    struct str input = member(item, "input"), path = member(item, "path");
    struct scrub_result result, second;

    if (json_get(item, "utf16"))
        input = as_utf16(mem, member(item, "utf16"));
    if (json_get(item, "binary"))
        input = with_nuls(mem, member(item, "binary"));
    scrub(path, input, &out, &result);
    if (!str_is(member(item, "verdict"), verdict_name(result.verdict)))
        test_fail(__FILE__, __LINE__, "%s: %s, should be " STR_FMT ": %s", name,
                  verdict_name(result.verdict), STR_ARG(member(item, "verdict")), buf_text(&out));
    check_counts(name, json_get(item, "rules"), &result);
    if (json_get(item, "output") && !str_eq(buf_str(&out), member(item, "output")))
        test_fail(__FILE__, __LINE__, "%s: it became\n%s", name, buf_text(&out));
    if (result.verdict != SCRUB_REPLACE)
        return;
    scrub(path, buf_str(&out), &again, &second);
    if (second.verdict != SCRUB_KEEP)
        test_fail(__FILE__, __LINE__, "%s: what was written is not kept the next time: %s", name,
                  buf_text(&again));
}

static void check_file(const char *name)
{
    AUTO_ARENA struct arena mem = ARENA(64 * MIB);
    const struct json *cases = read_cases(&mem, name);

    CHECK(cases->n > 0);
    json_each(item, cases) check_case(&mem, item);
}

TEST(fields_of_documents)
{
    check_file("fields.yaml");
}

TEST(settings)
{
    check_file("settings.yaml");
}

TEST(shapes_of_secrets)
{
    check_file("shapes.yaml");
}

TEST(names_of_files)
{
    AUTO_ARENA struct arena mem = ARENA(64 * MIB);
    const struct json *cases = read_cases(&mem, "files.yaml");

    CHECK(cases->n > 0);
    json_each(item, cases)
    {
        struct str path = member(item, "path"), wanted = member(item, "dropped");

        if (scrub_is_dropped(path) != str_is(wanted, "file") ||
            scrub_is_dropped_folder(path) != str_is(wanted, "folder"))
            test_fail(__FILE__, __LINE__, "\"" STR_FMT "\" should be " STR_FMT, STR_ARG(path),
                      STR_ARG(wanted));
    }
}

/* Wherever the pieces of a large file are cut. */
TEST(pieces_meet)
{
    static const char text[] = "xxxx ghp_0123456789abcdefghij yyyy";
    enum scrub_rule rule;

    for (size_t cut = 1; cut < sizeof text - 1; cut++) {
        struct scrub_scan scan = {0};

        scrub_scan_add(&scan, (struct str){text, cut});
        scrub_scan_add(&scan, (struct str){text + cut, sizeof text - 1 - cut});
        CHECK(scrub_scan_end(&scan, &rule));
        CHECK_INT(rule, SCRUB_TOKEN);
    }
}

TEST(pieces_of_one_byte)
{
    static const char text[] = "a ghp_0123456789abcdefghij";
    struct scrub_scan scan = {0};
    enum scrub_rule rule;

    for (size_t i = 0; i < 3 * SCRUB_TAIL_BYTES; i++)
        scrub_scan_add(&scan, STR_LIT("."));
    CHECK(!scrub_scan_end(&scan, &rule));
    for (size_t i = 0; i < sizeof text - 1; i++)
        scrub_scan_add(&scan, (struct str){text + i, 1});
    CHECK(scrub_scan_end(&scan, &rule));
}

TEST(too_large_is_left_out)
{
    AUTO_BUF struct buf out = BUF(SCRUB_TEXT_MAX);
    AUTO_FREE char *text = malloc(SCRUB_TEXT_MAX + 1);
    struct scrub_result result;

    memset(text, 'a', SCRUB_TEXT_MAX + 1);
    scrub(STR_LIT("a.txt"), (struct str){text, SCRUB_TEXT_MAX + 1}, &out, &result);
    CHECK_INT(result.verdict, SCRUB_DROP);
    CHECK_INT(result.counts[SCRUB_TOO_LARGE], 1);
    scrub(STR_LIT("a.txt"), (struct str){text, SCRUB_TEXT_MAX}, &out, &result);
    CHECK_INT(result.verdict, SCRUB_KEEP);
}

/* Texts made to be looked at again and again end in the time of a few readings. */
TEST(no_text_takes_for_ever)
{
    static const char *const pieces[] = {"sk-",
                                         "hf_",
                                         "eyJ-",
                                         "-----BEGIN PRIVATE KEY-----",
                                         "bearer ",
                                         "a=\"",
                                         "12345678:",
                                         "://a:",
                                         "authorization:",
                                         "a: '",
                                         "=",
                                         "\"",
                                         "A_KEY='",
                                         "gsk_a",
                                         "xapp-a"};
    AUTO_BUF struct buf out = BUF(2 * SCRUB_TEXT_MAX);
    AUTO_FREE char *text = malloc(MUCH);

    for (size_t i = 0; i < COUNT(pieces); i++) {
        size_t n = strlen(pieces[i]);
        struct scrub_result result;

        for (size_t at = 0; at + n <= MUCH; at += n)
            memcpy(text + at, pieces[i], n);
        scrub(STR_LIT(".env"), (struct str){text, MUCH / n * n}, &out, &result);
    }
}
