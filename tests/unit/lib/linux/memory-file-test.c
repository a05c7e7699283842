/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/linux/memory-file.h"

static struct err err;

TEST(what_was_written_is_what_is_read)
{
    AUTO_BUF struct buf out = BUF(64);
    AUTO_FD int fd = -1;

    CHECK_INT(memory_file_make("test", STR_LIT("some rules"), &fd, &err), 0);
    CHECK_INT(memory_file_read(fd, &out, &err), 0);
    CHECK_TEXT(buf_text(&out), "some rules");
    CHECK_INT(write(fd, "x", 1), -1); /* and stays that */
    CHECK_INT(ftruncate(fd, 0), -1);
}

TEST(an_empty_one_is_nothing)
{
    AUTO_BUF struct buf out = BUF(64);
    AUTO_FD int fd = -1;

    CHECK_INT(memory_file_make("test", STR_LIT(""), &fd, &err), 0);
    CHECK_INT(memory_file_read(fd, &out, &err), 0);
    CHECK_INT(out.n, 0);
}

TEST(more_than_fits_is_refused)
{
    AUTO_BUF struct buf out = BUF(4);
    AUTO_FD int fd = -1;

    CHECK_INT(memory_file_make("test", STR_LIT("12345"), &fd, &err), 0);
    CHECK_INT(memory_file_read(fd, &out, &err), -1);
    CHECK_INT(err.code, ERR_LIMIT);
    CHECK_TEXT(err.text, "5 bytes in a memory file, 4 are taken");
}

TEST(one_that_can_still_change_is_refused)
{
    AUTO_BUF struct buf out = BUF(64);
    AUTO_FD int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    AUTO_FD int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    CHECK_INT(write(fd, "x", 1), 1);
    CHECK_INT(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW), 0);
    CHECK_INT(memory_file_read(fd, &out, &err), -1);
    CHECK_TEXT(err.text, "not a sealed memory file");
    CHECK_INT(memory_file_read(null_fd, &out, &err), -1);
    CHECK_INT(err.code, ERR_INVALID);
}
