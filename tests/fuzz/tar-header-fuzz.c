/* SPDX-License-Identifier: Apache-2.0 */

/* Any block is a header or is refused with a sentence, and so is any extended header; a path that
 * is clean leads nowhere else; what was read can be written and reads the same again. */

#include "fuzz.h"

#include "flow/execute/files.h"
#include "lib/base/buf.h"

#include <stdlib.h>
#include <string.h>

static void check_path(const char *text)
{
    char path[FILE_PATH_BYTES];

    (void)strcpy(path, text);
    if (!tar_path_clean(path))
        return;
    if (path[0] == '/' || strcmp(path, "..") == 0 || strncmp(path, "../", 3) == 0 ||
        strstr(path, "/../") || strstr(path, "//") || strlen(path) > strlen(text))
        abort();
}

static void check_again(const struct tar_entry *entry)
{
    AUTO_BUF struct buf headers = BUF(128UL << 10);
    static struct tar_entry again;
    static struct tar_entry extended;
    size_t at = 0;
    struct err err;

    if (entry->kind != TAR_FILE || entry->size > 1ULL << 40 || !entry->path[0])
        return;
    if (tar_header_write(entry, &headers, &err) < 0 || headers.n % TAR_BLOCK)
        abort();
    if (tar_header_read(headers.p, &again, &err) != 1)
        abort();
    if (again.kind == TAR_EXTENDED) {
        struct str records = {headers.p + TAR_BLOCK, (size_t)again.size};

        at = headers.n - TAR_BLOCK;
        if (tar_header_read(headers.p + at, &extended, &err) != 1 ||
            tar_extended_read(records, &extended, &err) < 0)
            abort();
        again = extended;
    }
    if (strcmp(again.path, entry->path) != 0 || again.size != entry->size ||
        again.mode != entry->mode)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static struct tar_entry entry;
    char block[TAR_BLOCK] = {0};
    struct err err = {0};
    unsigned sum = 0;
    int got;

    memcpy(block, bytes, n < sizeof block ? n : sizeof block);
    /* The sum is put right, so that a search gets past it. */
    memset(block + 148, ' ', 8);
    for (size_t i = 0; i < sizeof block; i++)
        sum += (unsigned char)block[i];
    for (int i = 5; i >= 0; i--, sum >>= 3)
        block[148 + i] = (char)('0' + (sum & 7U));
    block[154] = '\0';
    got = tar_header_read(block, &entry, &err);
    if (got < 0 && !err.text[0])
        abort();
    if (got == 1) {
        check_path(entry.path);
        check_again(&entry);
    }
    memset(&entry, 0, sizeof entry);
    if (tar_extended_read((struct str){(const char *)bytes, n}, &entry, &err) < 0 && !err.text[0])
        abort();
    check_path(entry.path);
    return 0;
}
