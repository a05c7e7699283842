/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/keeper/session.h"
#include "lib/base/io.h"

static char dir[] = "/tmp/brig-session-XXXXXX";
static struct session session;
static int dir_fd = -1;

static void begin(void)
{
    CHECK(mkdtemp(dir) != NULL);
    dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    session_init(&session);
}

static void clean(void)
{
    struct err err;

    session_done(&session);
    (void)close(dir_fd);
    CHECK_INT(dir_remove(AT_FDCWD, dir, &err), 0);
}

static struct keeper_request request_of(enum keeper_verb verb)
{
    return (struct keeper_request){.magic = KEEPER_MAGIC,
                                   .version = KEEPER_VERSION,
                                   .verb = (uint16_t)verb,
                                   .serial = 77,
                                   .purpose = KEEPER_RECEIPTS,
                                   .count = verb == KEEPER_SIGN ? 1 : 0};
}

static bool take(const struct keeper_request *request, size_t n, const int *fds, size_t fd_n,
                 struct keeper_answer *out)
{
    unsigned char bytes[sizeof *request + 1] = {0};

    memcpy(bytes, request, sizeof *request);
    return session_take(&session, &(struct session_input){bytes, n, fds, fd_n}, out);
}

static bool say(enum keeper_verb verb, struct keeper_answer *out)
{
    struct keeper_request request = request_of(verb);

    return take(&request, sizeof request, &dir_fd, verb == KEEPER_OPEN ? 1 : 0, out);
}

/* Into the state, by the way that leads there. */
static void reach(enum session_state state)
{
    struct keeper_answer answer;

    if (state >= SESSION_READY)
        CHECK(say(KEEPER_HELLO, &answer));
    if (state >= SESSION_HOLDING)
        CHECK(say(KEEPER_OPEN, &answer));
    CHECK_INT(session.state, state);
}

TEST(every_request_has_its_states_and_is_the_end_in_others)
{
    static const struct {
        enum keeper_verb verb;
        bool allowed[SESSION_HOLDING + 1]; /* new, ready, holding */
    } cases[] = {
        {KEEPER_NO_VERB,          {false, false, false}},
        {KEEPER_HELLO,            {true, false, false} },
        {KEEPER_OPEN,             {false, true, true}  },
        {KEEPER_SIGN,             {false, false, true} },
        {KEEPER_SIGN + 1,         {false, false, false}},
        {(enum keeper_verb)65535, {false, false, false}},
    };

    begin();
    for (size_t i = 0; i < COUNT(cases); i++)
        for (enum session_state state = SESSION_NEW; state <= SESSION_HOLDING; state++) {
            struct keeper_answer answer;

            session_done(&session);
            session_init(&session);
            reach(state);
            CHECK_INT(say(cases[i].verb, &answer), cases[i].allowed[state]);
            CHECK_INT(answer.status, cases[i].allowed[state] ? KEEPER_DONE : KEEPER_REFUSED);
            CHECK_INT(answer.serial, 77);
        }
    clean();
}

TEST(whatever_is_not_a_request_is_the_end)
{
    static const int wrong_fd[] = {0, 0};
    struct keeper_request good = request_of(KEEPER_SIGN);
    /* Version 14 of clang-format dies of this table. */
    /* clang-format off */
    const struct {
        struct keeper_request request;
        size_t n;
        size_t fd_n;
        const char *text;
    } cases[] = {
        {good, 0, 0, "not the size of a request"},
        {good, sizeof good - 1, 0, "not the size of a request"},
        {good, sizeof good + 1, 0, "not the size of a request"},
        {good, sizeof good, 1, "not the descriptors that belong to it"},
        {good, sizeof good, 2, "not the descriptors that belong to it"},
#define WITH(member, value)                                                                        \
    ({                                                                                             \
        struct keeper_request changed = good;                                                      \
        changed.member = value;                                                                    \
        changed;                                                                                   \
    })
        {WITH(magic, 0), sizeof good, 0, "not a request of this version"},
        {WITH(version, 2), sizeof good, 0, "not a request of this version"},
        {WITH(purpose, 0), sizeof good, 0, "nothing of that kind is done here"},
        {WITH(purpose, 2), sizeof good, 0, "nothing of that kind is done here"},
        {WITH(count, 0), sizeof good, 0, "a count out of bounds"},
        {WITH(count, KEEPER_HASHES_MAX + 1), sizeof good, 0, "a count out of bounds"},
        {WITH(count, UINT32_MAX), sizeof good, 0, "a count out of bounds"},
        {WITH(slot, 1), sizeof good, 0, "a slot that was not given out"},
        {WITH(slot, UINT32_MAX), sizeof good, 0, "a slot that was not given out"},
        {WITH(body.hashes[1].b[0], 1), sizeof good, 0, "bytes where none belong"},
        {WITH(body.bytes[KEEPER_BODY_BYTES - 1], 1), sizeof good, 0, "bytes where none belong"},
        {WITH(verb, KEEPER_OPEN), sizeof good, 0, "not the descriptors that belong to it"},
    };
    /* clang-format on */

    begin();
    reach(SESSION_HOLDING);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct keeper_answer answer;

        CHECK(!take(&cases[i].request, cases[i].n, wrong_fd, cases[i].fd_n, &answer));
        CHECK_INT(answer.status, KEEPER_REFUSED);
        CHECK_TEXT(answer.body.text, cases[i].text);
        CHECK_INT(answer.count, 0);
    }
    clean();
}

TEST(only_a_folder_can_be_opened)
{
    struct keeper_request request = request_of(KEEPER_OPEN);
    struct keeper_answer answer;
    int file_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    begin();
    reach(SESSION_READY);
    CHECK(!take(&request, sizeof request, &file_fd, 1, &answer));
    CHECK_TEXT(answer.body.text, "not the descriptors that belong to it");
    request.slot = 1;
    CHECK(!take(&request, sizeof request, &dir_fd, 1, &answer));
    CHECK_TEXT(answer.body.text, "a slot where none belongs");
    (void)close(file_fd);
    clean();
}

TEST(a_key_is_made_once_and_signs)
{
    struct keeper_request request = request_of(KEEPER_SIGN);
    struct keeper_answer opened, again, answer;

    begin();
    reach(SESSION_READY);
    CHECK(say(KEEPER_OPEN, &opened));
    CHECK(say(KEEPER_OPEN, &again));
    CHECK_INT(again.slot, opened.slot);
    CHECK(memcmp(again.body.bytes, opened.body.bytes, KEEPER_BODY_BYTES) == 0);
    request.count = KEEPER_HASHES_MAX;
    for (unsigned char i = 0; i < KEEPER_HASHES_MAX; i++)
        request.body.hashes[i].b[0] = i;
    CHECK(take(&request, sizeof request, NULL, 0, &answer));
    CHECK_INT(answer.count, KEEPER_HASHES_MAX);
    for (size_t i = 0; i < KEEPER_HASHES_MAX; i++)
        CHECK(signature_holds(&answer.body.signatures[i], &request.body.hashes[i],
                              &opened.body.public_key));
    clean();
}

/* Another key in the same file, as if it had been made there. */
static void put_key(unsigned number)
{
    char path[64];
    char line[96];
    int fd;

    (void)snprintf(path, sizeof path, "%s/" KEEPER_KEY_NAME, dir);
    (void)snprintf(line, sizeof line, "brig-ed25519-v1:%064x\n", number);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK_INT(write(fd, line, 81), 81);
    (void)close(fd);
}

TEST(keys_beyond_the_ceiling_are_refused_and_the_others_stay)
{
    struct keeper_request request = request_of(KEEPER_SIGN);
    struct keeper_answer answer;

    begin();
    reach(SESSION_READY);
    for (unsigned i = 0; i < KEEPER_KEYS_MAX; i++) {
        put_key(i + 1);
        if (!say(KEEPER_OPEN, &answer) || answer.slot != i)
            test_fail(__FILE__, __LINE__, "key %u has slot %u", i, answer.slot);
    }
    put_key(KEEPER_KEYS_MAX + 1);
    CHECK(say(KEEPER_OPEN, &answer));
    CHECK_INT(answer.status, KEEPER_FAILED);
    CHECK_INT(answer.code, ERR_LIMIT);
    put_key(7);
    CHECK(say(KEEPER_OPEN, &answer));
    CHECK_INT(answer.status, KEEPER_DONE);
    CHECK_INT(answer.slot, 6);
    request.slot = KEEPER_KEYS_MAX - 1;
    CHECK(take(&request, sizeof request, NULL, 0, &answer));
    CHECK_INT(answer.count, 1);
    request.slot = KEEPER_KEYS_MAX;
    CHECK(!take(&request, sizeof request, NULL, 0, &answer));
    clean();
}

TEST(a_key_that_cannot_be_opened_is_an_answer_and_no_end)
{
    struct keeper_answer answer;
    char path[64];

    begin();
    reach(SESSION_HOLDING);
    (void)snprintf(path, sizeof path, "%s/" KEEPER_KEY_NAME, dir);
    CHECK_INT(chmod(path, 0644), 0);
    CHECK(say(KEEPER_OPEN, &answer));
    CHECK_INT(answer.status, KEEPER_FAILED);
    CHECK_INT(answer.code, ERR_INTEGRITY);
    CHECK(strstr(answer.body.text, "can be reached by others") != NULL);
    CHECK(say(KEEPER_SIGN, &answer)); /* the one it holds is as good as before */
    CHECK_INT(chmod(path, 0600), 0);
    CHECK(say(KEEPER_OPEN, &answer));
    CHECK_INT(answer.status, KEEPER_DONE);
    clean();
}
