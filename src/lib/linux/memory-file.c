/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/memory-file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "lib/base/io.h"

#define SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

int memory_file_make(const char *name, struct str bytes, int *out_fd, struct err *err)
{
    AUTO_FD int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return err_os(err, "making a memory file");
    if (write_all(fd, bytes.p, bytes.n, err) < 0)
        return -1;
    if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
        return err_os(err, "sealing a memory file");
    *out_fd = TAKE_FD(fd);
    return 0;
}

/* Through a mapping: the descriptor's position is shared with whoever sent it. */
int memory_file_read(int fd, struct buf *out, struct err *err)
{
    int seals = fcntl(fd, F_GET_SEALS);
    struct stat st;
    void *bytes;
    int failed;

    if (seals < 0 || (seals & SEALS) != SEALS)
        return err_set(err, ERR_INVALID, "not a sealed memory file");
    if (fstat(fd, &st) < 0)
        return err_os(err, "looking at a memory file");
    if (st.st_size == 0)
        return 0;
    if ((uint64_t)st.st_size > out->max - out->n)
        return err_set(err, ERR_LIMIT, "%lld bytes in a memory file, %zu are taken",
                       (long long)st.st_size, out->max - out->n);
    bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return err_os(err, "mapping a memory file");
    failed = buf_add(out, bytes, (size_t)st.st_size, err);
    (void)munmap(bytes, (size_t)st.st_size);
    return failed;
}
