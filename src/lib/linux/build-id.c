/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/build-id.h"

#include "lib/base/text.h"

#include <elf.h>
#include <link.h>
#include <string.h>

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

/* Called for each loaded object; the first one is the program itself. */
static int on_object(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

        if (segment->p_type == PT_NOTE &&
            find_in_segment((const char *)(info->dlpi_addr + segment->p_vaddr), segment->p_memsz,
                            out))
            break;
    }
    return 1;
}

void build_id(char out[BUILD_ID_BYTES])
{
    memcpy(out, "unknown", 8);
    (void)dl_iterate_phdr(on_object, out);
}
