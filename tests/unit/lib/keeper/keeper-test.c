/* SPDX-License-Identifier: Apache-2.0 */

/* The real program, from the side of its owner and of somebody who is not. */

#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/keeper/keeper-wire.h"
#include "lib/keeper/keeper.h"
#include "lib/linux/beside.h"
#include "lib/linux/fd-pass.h"

static char dir[] = "/tmp/brig-keeper-XXXXXX";
static char beneath[64];
static struct keeper *keeper;
static struct signer *signer;

static void begin(void)
{
    struct err err = {0};

    CHECK(mkdtemp(dir) != NULL);
    (void)snprintf(beneath, sizeof beneath, "%s/tenants", dir);
    CHECK_INT(mkdir(beneath, 0700), 0);
    if (keeper_open(dir, NULL, &keeper, &err) < 0 || keeper_signer(keeper, dir, &signer, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

static void clean(void)
{
    struct err err;

    signer_free(signer);
    keeper_free(keeper);
    CHECK_INT(waitpid(-1, NULL, WNOHANG), -1); /* none is left, not even dead */
    CHECK_INT(dir_remove(AT_FDCWD, dir, &err), 0);
}

/* Our only child. */
static pid_t child(void)
{
    char line[32] = "";
    FILE *list = fopen("/proc/thread-self/children", "r");
    pid_t pid = 0;

    if (list && fgets(line, sizeof line, list))
        pid = (pid_t)atoi(line);
    if (list)
        (void)fclose(list);
    CHECK(pid > 0);
    return pid;
}

static void kill_child(int number)
{
    CHECK_INT(kill(child(), number), 0);
}

static bool signs(struct signer *with, size_t n, struct err *err)
{
    struct hash hashes[SIGNER_BATCH_MAX] = {0};
    struct signature signatures[SIGNER_BATCH_MAX];

    for (size_t i = 0; i < n; i++)
        hashes[i].b[0] = (unsigned char)i;
    if (with->sign(with, hashes, n, signatures, err) < 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!signature_holds(&signatures[i], &hashes[i], &with->public_key))
            return false;
    return true;
}

TEST(batches_of_every_size_are_signed_in_their_order)
{
    struct err err = {0};

    begin();
    for (size_t n = 1; n <= SIGNER_BATCH_MAX; n++)
        CHECK(signs(signer, n, &err));
    CHECK_TEXT(err.text, "");
    clean();
}

TEST(each_folder_has_its_key_and_one_outside_is_out_of_reach)
{
    char outside[] = "/tmp/brig-outside-XXXXXX";
    struct signer *tenant = NULL, *again = NULL, *other = NULL;
    struct err err = {0};

    begin();
    CHECK(mkdtemp(outside) != NULL);
    CHECK_INT(keeper_signer(keeper, beneath, &tenant, &err), 0);
    CHECK(memcmp(&tenant->public_key, &signer->public_key, sizeof tenant->public_key) != 0);
    CHECK_INT(keeper_signer(keeper, beneath, &again, &err), 0);
    CHECK(memcmp(&tenant->public_key, &again->public_key, sizeof tenant->public_key) == 0);
    CHECK(signs(tenant, 3, &err) && signs(signer, 3, &err) && signs(again, 3, &err));
    CHECK_INT(keeper_signer(keeper, outside, &other, &err), -1);
    CHECK_INT(err.os, EACCES);
    CHECK(other == NULL);
    CHECK(signs(tenant, 3, &err)); /* it was an answer, not the end */
    signer_free(tenant);
    signer_free(again);
    CHECK_INT(rmdir(outside), 0); /* and empty */
    clean();
}

TEST(one_that_was_killed_is_replaced_and_nobody_notices)
{
    struct err err = {0};

    begin();
    kill_child(SIGKILL);
    CHECK(signs(signer, 40, &err));
    clean();
}

TEST(one_that_does_not_answer_is_replaced)
{
    struct err err = {0};

    begin();
    kill_child(SIGSTOP);
    CHECK(signs(signer, 1, &err));
    clean();
}

TEST(however_often_it_dies_it_is_not_started_more_often_than_agreed)
{
    uint64_t start = clock_us();
    struct err err = {0};
    unsigned starts = 1;

    begin();
    for (; starts < 9; starts++) {
        kill_child(SIGKILL);
        CHECK(signs(signer, 1, &err));
    }
    CHECK(clock_us() - start >= (starts - 4) * UINT64_C(500000));
    clean();
}

TEST(another_key_in_its_place_is_not_signed_with)
{
    char path[96];
    struct err err = {0};

    begin();
    (void)snprintf(path, sizeof path, "%s/" KEEPER_KEY_NAME, dir);
    CHECK_INT(unlink(path), 0);
    CHECK(signs(signer, 1, &err)); /* the keeper has it still */
    kill_child(SIGKILL);
    CHECK(!signs(signer, 1, &err));
    CHECK_INT(err.code, ERR_INTEGRITY);
    CHECK(!signs(signer, 1, &err));
    clean();
}

/* ---- somebody else at the socket ---- */

static int start_bare(pid_t *pid)
{
    static const char *const argv[] = {"keeper", NULL};
    int sockets[2] = {-1, -1};
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    int state_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct err err;

    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    CHECK_INT(program_start(argv, NULL, (int[]){null_fd, null_fd, null_fd, sockets[1], state_fd}, 5,
                            pid, &err),
              0);
    (void)close(sockets[1]);
    (void)close(null_fd);
    (void)close(state_fd);
    return sockets[0];
}

/* What is said to it, and that it has ended behind its answer. */
static void is_the_end(const void *bytes, size_t n, size_t fd_n)
{
    int fds[3] = {STDERR_FILENO, STDERR_FILENO, STDERR_FILENO};
    struct keeper_answer answer;
    struct err err;
    pid_t pid = -1;
    int status = -1;
    int fd = start_bare(&pid);

    CHECK_INT(fds_send(fd, bytes, n, fds, fd_n, &err), 0);
    CHECK_INT(recv(fd, &answer, sizeof answer, 0), sizeof answer);
    CHECK_INT(answer.status, KEEPER_REFUSED);
    CHECK(recv(fd, &answer, sizeof answer, 0) <= 0);
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    (void)close(fd);
}

TEST(a_stranger_at_its_socket_ends_it_and_gets_nothing)
{
    struct keeper_request request = {.magic = KEEPER_MAGIC,
                                     .version = KEEPER_VERSION,
                                     .purpose = KEEPER_RECEIPTS,
                                     .verb = KEEPER_SIGN,
                                     .count = 1};
    static char large[64 * 1024];
    struct err err;

    CHECK(mkdtemp(dir) != NULL);
    is_the_end("x", 1, 0);
    is_the_end(large, sizeof large, 0);
    is_the_end(large, sizeof request, 0);
    is_the_end(&request, sizeof request, 0); /* out of turn */
    request.verb = KEEPER_OPEN;
    is_the_end(&request, sizeof request, 1);
    request.verb = KEEPER_HELLO;
    request.count = 0;
    is_the_end(&request, sizeof request, 3);
    CHECK_INT(dir_remove(AT_FDCWD, dir, &err), 0);
}

TEST(without_its_owner_it_ends)
{
    struct err err;
    pid_t pid = -1;
    int status = -1;

    CHECK(mkdtemp(dir) != NULL);
    (void)close(start_bare(&pid));
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_INT(dir_remove(AT_FDCWD, dir, &err), 0);
}
