/* SPDX-License-Identifier: Apache-2.0 */

/* Killed while the authority is made: whoever comes next has one that is whole. Compiled with the
 * crash points of authority.c, whatever the option says. */

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/base/io.h"
#include "lib/tls/tls.h"
#include "test.h"

#define TEXT_MAX 16384

static void die_at(const char *point, int fd, const char *folder)
{
    struct tls_authority *authority = NULL;
    struct err err;
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        (void)setenv("BRIG_CRASH_AT", point, 1);
        _exit(tls_authority_open(fd, folder, &authority, &err) == 0 ? 0 : 1);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* What is there now holds, and stays what it is. */
static void check_whole(int fd, const char *folder, struct buf *key)
{
    AUTO(tls_authority) struct tls_authority *authority = NULL;
    AUTO_BUF struct buf beside = BUF(TEXT_MAX);
    struct stat st;
    struct err err;

    CHECK_INT(tls_authority_open(fd, folder, &authority, &err), 0);
    CHECK_INT(file_read(fd, TLS_AUTHORITY_FILE, key, &err), 0);
    CHECK_INT(file_read(fd, TLS_AUTHORITY_CERTIFICATE, &beside, &err), 0);
    CHECK(str_eq(buf_str(&beside), tls_authority_certificate(authority)));
    CHECK_INT(fstatat(fd, TLS_AUTHORITY_FILE, &st, AT_SYMLINK_NOFOLLOW), 0);
    CHECK_INT(st.st_mode & 07777, 0600);
}

TEST(a_crash_leaves_no_authority_or_a_whole_one)
{
    static const struct {
        const char *point;
        bool is_there;
    } cases[] = {
        {"ca-written", false}, /* it has no name yet */
        {"ca-created", true },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char folder[] = "/tmp/tls-crash-test.XXXXXX";
        AUTO_BUF struct buf left = BUF(TEXT_MAX);
        AUTO_BUF struct buf first = BUF(TEXT_MAX);
        AUTO_BUF struct buf second = BUF(TEXT_MAX);
        AUTO_FD int fd = -1;
        struct err err;

        CHECK(mkdtemp(folder) != NULL);
        fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        die_at(cases[i].point, fd, folder);
        CHECK_INT(file_read(fd, TLS_AUTHORITY_FILE, &left, &err) == 0, cases[i].is_there);
        check_whole(fd, folder, &first);
        CHECK(!cases[i].is_there || str_eq(buf_str(&left), buf_str(&first)));
        check_whole(fd, folder, &second);
        CHECK(str_eq(buf_str(&first), buf_str(&second)));
        CHECK_INT(dir_remove(AT_FDCWD, folder, &err), 0);
    }
}
