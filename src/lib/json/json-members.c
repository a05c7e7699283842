/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/json/json-private.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* Up to here comparing every key with every other is the fastest. */
#define PAIRWISE_MAX 16
/* Up to here inserting beats a general sort; past it nothing may be quadratic. */
#define INSERTION_MAX 64
#define SHOWN_KEY_MAX 64
#define PREFIX_BYTES sizeof(uint64_t)
#define NOT_ASCII UINT64_C(0x8080808080808080)

/* UTF-16 order is the byte order of UTF-8 except for one thing: the characters above U+FFFF are
 * written with surrogates, D800 to DFFF, and so come before E000 to FFFF. In UTF-8 the former
 * start with F0 to F4, the latter with EE or EF; swapping the two groups is all it takes, since
 * where two texts first differ both bytes start a character or both continue one. */
static unsigned char utf16_rank(char byte)
{
    unsigned char b = (unsigned char)byte;

    if (b < 0xEE || b > 0xF4)
        return b;
    return (unsigned char)(b < 0xF0 ? b + 5 : b - 2);
}

static uint64_t prefix_of(struct str key)
{
    size_t n = key.n < PREFIX_BYTES ? key.n : PREFIX_BYTES;
    uint64_t prefix = 0;

    if (n == PREFIX_BYTES) {
        memcpy(&prefix, key.p, PREFIX_BYTES);
        if (!(prefix & NOT_ASCII))
            return be64toh(prefix);
        prefix = 0;
    }
    for (size_t i = 0; i < n; i++)
        prefix = prefix << 8 | utf16_rank(key.p[i]);
    return n ? prefix << 8 * (PREFIX_BYTES - n) : 0;
}

/* Keys whose first bytes are known to agree. */
static int compare_rest(struct str a, struct str b)
{
    size_t n = a.n < b.n ? a.n : b.n;

    for (size_t i = n < PREFIX_BYTES ? n : PREFIX_BYTES; i < n; i++)
        if (a.p[i] != b.p[i])
            return utf16_rank(a.p[i]) < utf16_rank(b.p[i]) ? -1 : 1;
    return (a.n > b.n) - (a.n < b.n);
}

static int compare_marks(struct mark a, struct mark b)
{
    if (a.line != b.line)
        return a.line < b.line ? -1 : 1;
    return (a.column > b.column) - (a.column < b.column);
}

static int compare_members(const void *left, const void *right)
{
    const struct json_member *a = left, *b = right;
    int order;

    if (a->prefix != b->prefix)
        return a->prefix < b->prefix ? -1 : 1;
    order = compare_rest(a->json->key, b->json->key);
    return order ? order : compare_marks(a->json->key_mark, b->json->key_mark);
}

static inline bool is_behind(const struct json_member *a, const struct json_member *b)
{
    if (a->prefix != b->prefix)
        return a->prefix > b->prefix;
    return compare_members(a, b) > 0;
}

static void insert_sorted(struct json_member *sorted, size_t n, struct json_member added)
{
    while (n && is_behind(&sorted[n - 1], &added)) {
        sorted[n] = sorted[n - 1];
        n--;
    }
    sorted[n] = added;
}

void json_members_sort(const struct json *object, struct json_member *out)
{
    size_t n = 0;

    json_each(member, object)
    {
        struct json_member added = {prefix_of(member->key), member};

        if (object->n <= INSERTION_MAX)
            insert_sorted(out, n, added);
        else
            out[n] = added;
        n++;
    }
    if (object->n > INSERTION_MAX)
        qsort(out, n, sizeof *out, compare_members);
}

/* The first member in order of appearance whose key was there before, or NULL. */
static const struct json *duplicate_pairwise(const struct json *object)
{
    json_each(later, object) for (const struct json *earlier = object->first; earlier != later;
                                  earlier = earlier->next) if (str_eq(earlier->key,
                                                                      later->key)) return later;
    return NULL;
}

static const struct json *duplicate_sorted(const struct json *object)
{
    AUTO_FREE struct json_member *members = xcalloc(object->n, sizeof *members);
    const struct json *found = NULL;

    json_members_sort(object, members);
    for (size_t i = 1; i < object->n; i++) {
        const struct json *later = members[i].json;

        if (str_eq(members[i - 1].json->key, later->key) &&
            (!found || compare_marks(later->key_mark, found->key_mark) < 0))
            found = later;
    }
    return found;
}

/* The start of a key that may be long, cut between two characters. */
static struct str shorten(struct str key)
{
    size_t n = SHOWN_KEY_MAX;

    if (key.n <= n)
        return key;
    while (n && ((unsigned char)key.p[n] & 0xC0) == 0x80)
        n--;
    return (struct str){key.p, n};
}

int json_refuse_duplicate(const struct json *member, struct err *err)
{
    AUTO_BUF struct buf shown = BUF(4 * SHOWN_KEY_MAX);
    struct str key = shorten(member->key);

    if (text_escape(key, &shown, err) < 0)
        return -1;
    return err_set(err, ERR_INVALID, "duplicate key \"%s%s\"", buf_text(&shown),
                   key.n < member->key.n ? "..." : "");
}

int json_members_unique(const struct json *object, struct mark *where, struct err *err)
{
    const struct json *found =
        object->n <= PAIRWISE_MAX ? duplicate_pairwise(object) : duplicate_sorted(object);

    if (!found)
        return 0;
    *where = found->key_mark;
    return json_refuse_duplicate(found, err);
}
