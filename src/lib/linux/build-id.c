/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/build-id.h"

#include "lib/base/text.h"
#include "lib/linux/beside.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define NOTES_MAX 4096

static bool is_build_id(const ElfW(Nhdr) * note)
{
    return note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && note->n_descsz >= 8 &&
           memcmp(note + 1, "GNU", 4) == 0;
}

static bool find_in_segment(const char *notes, size_t n, char *out)
{
    while (n >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const void *)notes;
        size_t size = sizeof *note + ((note->n_namesz + 3U) & ~3U) + ((note->n_descsz + 3U) & ~3U);

        if (size > n)
            return false;
        if (is_build_id(note)) {
            hex_encode(notes + sizeof *note + 4, 8, out);
            return true;
        }
        notes += size;
        n -= size;
    }
    return false;
}

/* The note segments of an ELF file; anything else has no build id. */
static void find_in_file(int fd, char out[BUILD_ID_BYTES])
{
    char notes[NOTES_MAX];
    ElfW(Ehdr) header;

    if (pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(ElfW(Phdr)))
        return;
    for (unsigned i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) segment;
        ssize_t n;

        if (pread(fd, &segment, sizeof segment, (off_t)(header.e_phoff + i * sizeof segment)) !=
            (ssize_t)sizeof segment)
            return;
        if (segment.p_type != PT_NOTE || segment.p_filesz > sizeof notes)
            continue;
        n = pread(fd, notes, segment.p_filesz, (off_t)segment.p_offset);
        if (n > 0 && find_in_segment(notes, (size_t)n, out))
            return;
    }
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int build_id_beside(const char *program, struct build_memo *memo, struct err *err)
{
    AUTO_FD int fd = -1;
    struct stat now;

    if (memo->path[0] && stat(memo->path, &now) == 0 && is_same(&now, &memo->seen))
        return 0;
    if (program_beside(program, memo->path, sizeof memo->path, err) < 0) {
        memo->path[0] = '\0';
        return -1;
    }
    memcpy(memo->id, "unknown", 8);
    fd = open(memo->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &memo->seen) < 0)
        return err_os(err, "opening %s", memo->path);
    find_in_file(fd, memo->id);
    return 0;
}
