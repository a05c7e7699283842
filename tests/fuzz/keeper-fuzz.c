/* SPDX-License-Identifier: Apache-2.0 */

/* A peer that says anything to a keeper, message after message: until it is refused it has had
 * answers only to what the table allows; a refusal carries nothing of a key.
 *
 * An input is messages one behind the other: a byte with how many descriptors come along, a byte
 * that says how much shorter than a request it is, then the request. */

#include "fuzz.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/keeper/session.h"
#include "lib/base/io.h"

static char dir[] = "/tmp/brig-keeper-XXXXXX";
static int dir_fd = -1;

static void forget(void)
{
    struct err err;

    if (dir_remove(AT_FDCWD, dir, &err) < 0)
        abort();
}

static void check(const struct session *session, const struct keeper_answer *answer, bool goes_on)
{
    if (answer->magic != KEEPER_MAGIC || answer->count > KEEPER_HASHES_MAX ||
        goes_on == (answer->status == KEEPER_REFUSED) || answer->status > KEEPER_REFUSED)
        abort();
    if (answer->count && session->state != SESSION_HOLDING)
        abort(); /* signatures before there was a key */
    if (answer->status == KEEPER_REFUSED && (answer->count || strnlen(answer->body.text, 64) == 64))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct session *session = malloc(sizeof *session);
    bool goes_on = true;

    if (!session)
        abort();
    if (dir_fd < 0) {
        if (!mkdtemp(dir) || (dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
            abort();
        (void)atexit(forget);
    }
    session_init(session);
    while (goes_on && n >= 2) {
        const int fds[] = {dir_fd, dir_fd, dir_fd};
        struct keeper_request request = {0};
        struct keeper_answer answer;
        size_t fd_n = bytes[0] % 4, shorter = bytes[1];
        size_t have = n - 2 < sizeof request ? n - 2 : sizeof request;

        memcpy(&request, bytes + 2, have);
        goes_on = session_take(session,
                               &(struct session_input){(const unsigned char *)&request,
                                                       sizeof request - shorter, fds, fd_n},
                               &answer);
        check(session, &answer, goes_on);
        bytes += 2 + have;
        n -= 2 + have;
    }
    session_done(session);
    free(session);
    return 0;
}
