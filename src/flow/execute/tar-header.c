/* SPDX-License-Identifier: Apache-2.0 */

/* Headers of tar archives: ustar with pax extensions, as POSIX has them; of GNU's own ways long
 * names and large numbers are read. */

#include "flow/execute/files.h"

#include "lib/base/buf.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OCTAL_11 077777777777ULL
#define OCTAL_7 07777777U
#define NUMBER_MAX (1ULL << 62)

/* Where what stands in a header. */
enum {
    AT_PATH = 0,
    AT_MODE = 100,
    AT_UID = 108,
    AT_GID = 116,
    AT_SIZE = 124,
    AT_MTIME = 136,
    AT_SUM = 148,
    AT_TYPE = 156,
    AT_TARGET = 157,
    AT_MAGIC = 257,
    AT_PREFIX = 345,
};

/* ---- reading ---- */

/* Octal digits with blanks around them, or base 256 when the first bit is set. */
static bool read_number(const char *field, size_t n, uint64_t *out)
{
    uint64_t value = 0;
    size_t i = 0;

    if ((unsigned char)field[0] & 0x80U) {
        if ((unsigned char)field[0] != 0x80U)
            return false; /* negative, or larger than anything */
        for (i = 1; i < n; i++) {
            if (value > NUMBER_MAX >> 8)
                return false;
            value = value << 8 | (unsigned char)field[i];
        }
        *out = value;
        return true;
    }
    while (i < n && field[i] == ' ')
        i++;
    for (; i < n && field[i] >= '0' && field[i] <= '7'; i++)
        value = value << 3 | (uint64_t)(field[i] - '0'); /* at most 12 digits: it fits */
    *out = value;
    return i == n || field[i] == ' ' || field[i] == '\0';
}

static bool sum_holds(const char block[TAR_BLOCK])
{
    uint64_t wanted = 0;
    uint64_t sum = 0;

    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += i >= AT_SUM && i < AT_SUM + 8 ? ' ' : (unsigned char)block[i];
    return read_number(block + AT_SUM, 8, &wanted) && wanted == sum;
}

static void read_path(const char block[TAR_BLOCK], char out[FILE_PATH_BYTES])
{
    const char *prefix = block + AT_PREFIX;
    bool has_prefix = memcmp(block + AT_MAGIC, "ustar\0", 6) == 0 && *prefix;

    (void)snprintf(out, FILE_PATH_BYTES, "%.*s%s%.*s", has_prefix ? 155 : 0, prefix,
                   has_prefix ? "/" : "", 100, block + AT_PATH);
}

static enum tar_kind kind_of(char type)
{
    switch (type) {
    case '\0':
    case '0':
    case '7':
        return TAR_FILE;
    case '5':
        return TAR_FOLDER;
    case '2':
        return TAR_LINK;
    case 'x':
        return TAR_EXTENDED;
    case 'g':
        return TAR_GLOBAL;
    case 'L':
        return TAR_LONG_PATH;
    case 'K':
        return TAR_LONG_TARGET;
    default:
        return TAR_SPECIAL;
    }
}

static bool has_content(char type)
{
    return type != '1' && type != '2' && type != '3' && type != '4' && type != '5' && type != '6';
}

int tar_header_read(const char block[TAR_BLOCK], struct tar_entry *out, struct err *err)
{
    static const char empty[TAR_BLOCK];
    uint64_t mode = 0;
    uint64_t mtime = 0;

    if (memcmp(block, empty, TAR_BLOCK) == 0)
        return 0;
    if (!sum_holds(block))
        return err_set(err, ERR_INVALID, "this is no tar archive, or a damaged one");
    *out = (struct tar_entry){.kind = kind_of(block[AT_TYPE])};
    if (!read_number(block + AT_MODE, 8, &mode) || !read_number(block + AT_SIZE, 12, &out->size) ||
        !read_number(block + AT_MTIME, 12, &mtime) || mtime > INT64_MAX)
        return err_set(err, ERR_INVALID, "a number in the archive is none");
    if (!has_content(block[AT_TYPE]))
        out->size = 0;
    out->mode = (uint32_t)(mode & COPY_MODE_MAX);
    out->mtime_s = (int64_t)mtime;
    read_path(block, out->path);
    (void)snprintf(out->target, sizeof out->target, "%.*s", 100, block + AT_TARGET);
    if (out->kind == TAR_FILE && out->path[0] && out->path[strlen(out->path) - 1] == '/')
        out->kind = TAR_FOLDER; /* as archives older than ustar say it */
    return 1;
}

static int take_text(struct str value, char out[FILE_PATH_BYTES], struct err *err)
{
    if (value.n >= FILE_PATH_BYTES || memchr(value.p, '\0', value.n))
        return err_set(err, ERR_INVALID, "a path in the archive is too long or holds a NUL");
    memcpy(out, value.p, value.n);
    out[value.n] = '\0';
    return 0;
}

/* "1700000000.123": what is behind the ninth digit is cut off. */
static int take_time(struct str value, struct tar_entry *out, struct err *err)
{
    struct str fraction = value;
    struct str whole = str_cut(&fraction, '.');
    uint64_t seconds = 0;
    uint64_t ns = 0;
    size_t digits = fraction.n < 9 ? fraction.n : 9;

    if (whole.n && whole.p[0] == '-')
        return 0; /* before 1970: as the plain header has it */
    if (!str_u64(whole, &seconds) || seconds > INT64_MAX ||
        (digits && !str_u64((struct str){fraction.p, digits}, &ns)))
        return err_set(err, ERR_INVALID, "a time in the archive is none");
    for (size_t i = digits; i < 9; i++)
        ns *= 10;
    out->mtime_s = (int64_t)seconds;
    out->mtime_ns = digits ? (uint32_t)ns : 0;
    return 0;
}

static int take_record(struct str key, struct str value, struct tar_entry *out, struct err *err)
{
    if (str_is(key, "path"))
        return take_text(value, out->path, err);
    if (str_is(key, "linkpath"))
        return take_text(value, out->target, err);
    if (str_is(key, "mtime"))
        return take_time(value, out, err);
    if (str_is(key, "size") && (!str_u64(value, &out->size) || out->size > NUMBER_MAX))
        return err_set(err, ERR_INVALID, "a size in the archive is none");
    if (str_starts(key, "GNU.sparse."))
        return err_set(err, ERR_INVALID, "sparse archives are not read; make it without --sparse");
    return 0;
}

/* Each record is "LENGTH KEY=VALUE\n", its length counting all of it. */
int tar_extended_read(struct str records, struct tar_entry *out, struct err *err)
{
    while (records.n) {
        struct str rest = records;
        struct str digits = str_cut(&rest, ' ');
        struct str key;
        uint64_t n = 0;

        if (!str_u64(digits, &n) || n > records.n || n < digits.n + 3 || records.p[n - 1] != '\n')
            return err_set(err, ERR_INVALID, "an extended header of the archive is damaged");
        rest = (struct str){records.p + digits.n + 1, n - digits.n - 2};
        key = str_cut(&rest, '=');
        if (take_record(key, rest, out, err) < 0)
            return -1;
        records = (struct str){records.p + n, records.n - n};
    }
    return 0;
}

bool tar_path_clean(char *path)
{
    char *to = path;
    const char *from = path;

    if (*path == '/')
        return false;
    while (*from) {
        size_t n = strcspn(from, "/");

        if (n == 2 && from[0] == '.' && from[1] == '.')
            return false;
        if (n && !(n == 1 && from[0] == '.')) {
            if (to != path)
                *to++ = '/';
            memmove(to, from, n);
            to += n;
        }
        from += n + (from[n] == '/');
    }
    *to = '\0';
    return true;
}

/* ---- writing ---- */

static void put_octal(char *field, size_t n, uint64_t value)
{
    char digits[32];

    (void)snprintf(digits, sizeof digits, "%0*llo", (int)n - 1, (unsigned long long)value);
    memcpy(field, digits, n); /* with its NUL */
}

static int put_block(const struct tar_entry *entry, char type, struct buf *out, struct err *err)
{
    static const char magic_and_version[] = {'u', 's', 't', 'a', 'r', '\0', '0', '0'};
    char block[TAR_BLOCK] = {0};
    uint64_t mtime = entry->mtime_s < 0 ? 0 : (uint64_t)entry->mtime_s;
    uint64_t sum = 0;

    memcpy(block + AT_PATH, entry->path, strnlen(entry->path, 100));
    put_octal(block + AT_MODE, 8, entry->mode & COPY_MODE_MAX);
    put_octal(block + AT_UID, 8, geteuid() <= OCTAL_7 ? geteuid() : 0);
    put_octal(block + AT_GID, 8, getegid() <= OCTAL_7 ? getegid() : 0);
    put_octal(block + AT_SIZE, 12, entry->size <= OCTAL_11 ? entry->size : 0);
    put_octal(block + AT_MTIME, 12, mtime <= OCTAL_11 ? mtime : 0);
    block[AT_TYPE] = type;
    memcpy(block + AT_TARGET, entry->target, strnlen(entry->target, 100));
    memcpy(block + AT_MAGIC, magic_and_version, sizeof magic_and_version);
    memset(block + AT_SUM, ' ', 8);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char)block[i];
    put_octal(block + AT_SUM, 7, sum);
    return buf_add(out, block, sizeof block, err);
}

/* The length of a record counts its own digits. */
static int put_record(struct buf *out, const char *key, const char *value, struct err *err)
{
    size_t rest = strlen(key) + strlen(value) + 3;
    size_t n = rest + 1;

    while (n != rest + (size_t)snprintf(NULL, 0, "%zu", n))
        n = rest + (size_t)snprintf(NULL, 0, "%zu", n);
    return buf_addf(out, err, "%zu %s=%s\n", n, key, value);
}

static int put_extended(const struct tar_entry *entry, struct buf *out, struct err *err)
{
    AUTO_BUF struct buf records = BUF(TAR_EXTENDED_MAX);
    struct tar_entry head = {.mode = 0644, .path = "pax"};
    static const char zeros[TAR_BLOCK];
    char text[64];

    if (strlen(entry->path) > 100 && put_record(&records, "path", entry->path, err) < 0)
        return -1;
    if (strlen(entry->target) > 100 && put_record(&records, "linkpath", entry->target, err) < 0)
        return -1;
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)entry->size);
    if (entry->size > OCTAL_11 && put_record(&records, "size", text, err) < 0)
        return -1;
    (void)snprintf(text, sizeof text, "%lld.%09u", (long long)entry->mtime_s, entry->mtime_ns);
    if (entry->mtime_s >= 0 && (entry->mtime_ns || (uint64_t)entry->mtime_s > OCTAL_11) &&
        put_record(&records, "mtime", text, err) < 0)
        return -1;
    if (!records.n)
        return 0;
    head.size = records.n;
    if (put_block(&head, 'x', out, err) < 0 || buf_add(out, records.p, records.n, err) < 0)
        return -1;
    return buf_add(out, zeros, (TAR_BLOCK - records.n % TAR_BLOCK) % TAR_BLOCK, err);
}

int tar_header_write(const struct tar_entry *entry, struct buf *out, struct err *err)
{
    static const char types[] = {[TAR_FILE] = '0', [TAR_FOLDER] = '5', [TAR_LINK] = '2'};

    if (put_extended(entry, out, err) < 0)
        return -1;
    return put_block(entry, types[entry->kind], out, err);
}
