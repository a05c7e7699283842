/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/record/tar.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/limits.h"

/* Where the members of a ustar head stand. */
#define AT_MODE 100
#define AT_UID 108
#define AT_GID 116
#define AT_SIZE 124
#define AT_TIME 136
#define AT_SUM 148
#define AT_TYPE 156
#define AT_MAGIC 257
#define AT_OWNER 265
#define AT_GROUP 297
#define SUM_BYTES 8
#define SIZE_DIGITS 11
#define SIZE_MAX_BYTES 077777777777ULL

static unsigned sum_of(const char head[TAR_BLOCK])
{
    unsigned sum = 0;

    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += i >= AT_SUM && i < AT_SUM + SUM_BYTES ? ' ' : (unsigned char)head[i];
    return sum;
}

/* Fields are as long as they are: no NUL belongs to them but those that are written. */
static void put(char *at, struct str text)
{
    memcpy(at, text.p, text.n);
}

int tar_head(const char *name, uint64_t size, char out[TAR_BLOCK], struct err *err)
{
    if (strlen(name) > TAR_NAME_MAX || size > SIZE_MAX_BYTES)
        return err_set(err, ERR_LIMIT, "%s does not fit into a tar file", name);
    memset(out, 0, TAR_BLOCK);
    put(out, str_of(name));
    memcpy(out + AT_MODE, "0000644", 8);
    memcpy(out + AT_UID, "0000000", 8);
    memcpy(out + AT_GID, "0000000", 8);
    (void)snprintf(out + AT_SIZE, SIZE_DIGITS + 1, "%011llo", (unsigned long long)size);
    memcpy(out + AT_TIME, "00000000000", SIZE_DIGITS + 1);
    out[AT_TYPE] = '0';
    put(out + AT_MAGIC, STR_LIT("ustar\00000"));
    put(out + AT_OWNER, STR_LIT("root"));
    put(out + AT_GROUP, STR_LIT("root"));
    (void)snprintf(out + AT_SUM, SUM_BYTES, "%06o", sum_of(out));
    out[AT_SUM + SUM_BYTES - 1] = ' ';
    return 0;
}

size_t tar_padding(uint64_t size)
{
    return (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK;
}

static bool is_zero(struct str bytes)
{
    for (size_t i = 0; i < bytes.n; i++)
        if (bytes.p[i])
            return false;
    return true;
}

static bool octal(const char *digits, uint64_t *out)
{
    uint64_t value = 0;

    for (int i = 0; i < SIZE_DIGITS; i++) {
        if (digits[i] < '0' || digits[i] > '7')
            return false;
        value = value << 3 | (uint64_t)(digits[i] - '0');
    }
    *out = value;
    return true;
}

/* A head is good when it is byte for byte the one we would write for this name and size: there is
 * nothing else in it that could mean something. */
static int read_head(const char *head, struct str *name, uint64_t *size, struct err *err)
{
    char again[TAR_BLOCK], text[TAR_NAME_MAX + 1] = {0};

    *name = (struct str){head, strnlen(head, TAR_NAME_MAX + 1)};
    if (name->n == 0 || name->n > TAR_NAME_MAX || !octal(head + AT_SIZE, size))
        return err_set(err, ERR_INVALID, "the archive has a file without a proper name or size");
    memcpy(text, name->p, name->n);
    if (tar_head(text, *size, again, err) < 0 || memcmp(head, again, TAR_BLOCK) != 0)
        return err_set(err, ERR_INVALID, "the archive has something that is no plain file");
    return 0;
}

int tar_next(struct str *rest, struct tar_file *out, struct err *err)
{
    uint64_t size = 0;
    size_t all;

    if (rest->n >= 2 * TAR_BLOCK && is_zero((struct str){rest->p, 2 * TAR_BLOCK}))
        return is_zero(*rest) ? 0 : err_set(err, ERR_INVALID, "the archive goes on after its end");
    if (rest->n < 2 * TAR_BLOCK)
        return err_set(err, ERR_INVALID, "the archive is cut off");
    if (read_head(rest->p, &out->name, &size, err) < 0)
        return -1;
    if (size > rest->n - TAR_BLOCK || tar_padding(size) > rest->n - TAR_BLOCK - size)
        return err_set(err, ERR_INVALID, "the archive is cut off");
    out->content = (struct str){rest->p + TAR_BLOCK, size};
    all = TAR_BLOCK + size + tar_padding(size);
    if (!is_zero((struct str){rest->p + TAR_BLOCK + size, tar_padding(size)}))
        return err_set(err, ERR_INVALID, "the archive has something between its files");
    *rest = (struct str){rest->p + all, rest->n - all};
    return 1;
}
