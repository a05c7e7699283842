/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/keeper/session.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define IN(state) (1U << (state))

struct work {
    struct session *session;
    const struct keeper_request *request;
    int fd; /* -1: none came along */
    struct keeper_answer *answer;
};

static int answer_hello(const struct work *work, struct err *err);
static int answer_open(const struct work *work, struct err *err);
static int answer_sign(const struct work *work, struct err *err);

/* What may be asked in which state. Purposes of other keys will be rows of their own. */
/* clang-format off */
static const struct {
    enum keeper_verb verb;
    enum keeper_purpose purpose;
    unsigned states;
    size_t fds;
    uint32_t count_min, count_max; /* things in the body, */
    size_t size;                   /* of this size each; what is behind them is zero */
    bool has_slot;
    int (*answer)(const struct work *work, struct err *err);
} requests[] = {
    {KEEPER_HELLO, KEEPER_RECEIPTS, IN(SESSION_NEW),                       0, 0, 0,                 0,                   false, answer_hello},
    {KEEPER_OPEN,  KEEPER_RECEIPTS, IN(SESSION_READY)|IN(SESSION_HOLDING), 1, 0, 0,                 0,                   false, answer_open },
    {KEEPER_SIGN,  KEEPER_RECEIPTS, IN(SESSION_HOLDING),                   0, 1, KEEPER_HASHES_MAX, sizeof(struct hash), true,  answer_sign },
};
/* clang-format on */

void session_init(struct session *session)
{
    *session = (struct session){.state = SESSION_NEW};
    (void)pthread_mutex_init(&session->lock, NULL);
}

void session_done(struct session *session)
{
    while (session->key_n)
        signing_key_free(session->keys[--session->key_n]);
    (void)pthread_mutex_destroy(&session->lock);
}

/* ---- what is done ---- */

static int answer_hello(const struct work *work, struct err *err)
{
    (void)err;
    work->session->state = SESSION_READY;
    return 0;
}

static bool is_same_key(const struct signing_key *a, const struct signing_key *b)
{
    return memcmp(signing_key_public(a), signing_key_public(b), sizeof(struct public_key)) == 0;
}

/* The folder may come any number of times; the key has one place. */
static int place_key(struct session *session, struct signing_key **key, uint32_t *out,
                     struct err *err)
{
    uint32_t slot = 0;

    while (slot < session->key_n && !is_same_key(session->keys[slot], *key))
        slot++;
    if (slot == KEEPER_KEYS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d signing keys are in use", KEEPER_KEYS_MAX);
    if (slot == session->key_n)
        session->keys[session->key_n++] = TAKE(*key);
    *out = slot;
    return 0;
}

static int answer_open(const struct work *work, struct err *err)
{
    AUTO(signing_key) struct signing_key *key = NULL;
    struct session *session = work->session;
    uint32_t slot = 0;

    if (signing_key_open_at(work->fd, KEEPER_KEY_NAME, KEEPER_KEY_NAME, &key, err) < 0 ||
        place_key(session, &key, &slot, err) < 0)
        return -1;
    session->state = SESSION_HOLDING;
    work->answer->slot = slot;
    work->answer->body.public_key = *signing_key_public(session->keys[slot]);
    return 0;
}

/* Outside the lock: a key that was placed stays. */
static int answer_sign(const struct work *work, struct err *err)
{
    const struct signing_key *key = work->session->keys[work->request->slot];
    uint32_t n = work->request->count;

    (void)err;
    for (uint32_t i = 0; i < n; i++)
        signing_key_sign(key, &work->request->body.hashes[i], &work->answer->body.signatures[i]);
    work->answer->count = n;
    return 0;
}

/* ---- what may be asked ---- */

static bool is_zero(const unsigned char *bytes, size_t n)
{
    unsigned char seen = 0;

    for (size_t i = 0; i < n; i++)
        seen |= bytes[i];
    return seen == 0;
}

static bool is_folder(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The row for a request that is well-formed, or NULL and what is wrong with it. */
static int find_row(const struct session_input *in, const struct keeper_request *request,
                    const char **why)
{
    size_t row = 0;

    *why = NULL;
    while (row < COUNT(requests) &&
           (requests[row].verb != request->verb || requests[row].purpose != request->purpose))
        row++;
    if (row == COUNT(requests))
        *why = "nothing of that kind is done here";
    else if (in->fd_n != requests[row].fds || (in->fd_n && !is_folder(in->fds[0])))
        *why = "not the descriptors that belong to it";
    else if (request->count < requests[row].count_min || request->count > requests[row].count_max)
        *why = "a count out of bounds";
    else if (!requests[row].has_slot && request->slot)
        *why = "a slot where none belongs";
    else if (!is_zero(request->body.bytes + request->count * requests[row].size,
                      KEEPER_BODY_BYTES - request->count * requests[row].size))
        *why = "bytes where none belong";
    return *why ? -1 : (int)row;
}

/* Under the lock. */
static const char *fault_in_state(const struct session *session, size_t row,
                                  const struct keeper_request *request)
{
    if (!(requests[row].states & IN(session->state)))
        return "out of turn";
    if (requests[row].has_slot && request->slot >= session->key_n)
        return "a slot that was not given out";
    return NULL;
}

static int put_error(struct keeper_answer *out, enum keeper_status status, const struct err *err)
{
    out->status = (uint16_t)status;
    out->slot = out->count = 0;
    out->code = (int32_t)err->code;
    out->os = err->os;
    memset(&out->body, 0, sizeof out->body);
    (void)snprintf(out->body.text, sizeof out->body.text, "%s", err->text);
    return -1;
}

static bool refuse(struct keeper_answer *out, const char *why)
{
    struct err err;

    (void)err_set(&err, ERR_INVALID, "%s", why);
    (void)put_error(out, KEEPER_REFUSED, &err);
    return false;
}

static bool carry_out(struct session *session, size_t row, const struct work *work)
{
    bool is_signing = requests[row].answer == answer_sign;
    const char *why;
    struct err err;
    int failed = 0;

    (void)pthread_mutex_lock(&session->lock);
    why = fault_in_state(session, row, work->request);
    if (!why && !is_signing)
        failed = requests[row].answer(work, &err);
    (void)pthread_mutex_unlock(&session->lock);
    if (why)
        return refuse(work->answer, why);
    if (is_signing)
        failed = answer_sign(work, &err);
    if (failed)
        (void)put_error(work->answer, KEEPER_FAILED, &err);
    return true;
}

bool session_take(struct session *session, const struct session_input *in,
                  struct keeper_answer *out)
{
    struct keeper_request request;
    const struct work work = {session, &request, in->fd_n ? in->fds[0] : -1, out};
    const char *why;
    int row;

    *out = (struct keeper_answer){.magic = KEEPER_MAGIC, .version = KEEPER_VERSION};
    if (in->n != sizeof request)
        return refuse(out, "not the size of a request");
    memcpy(&request, in->bytes, sizeof request);
    out->serial = request.serial;
    if (request.magic != KEEPER_MAGIC || request.version != KEEPER_VERSION)
        return refuse(out, "not a request of this version");
    row = find_row(in, &request, &why);
    if (row < 0)
        return refuse(out, why);
    return carry_out(session, (size_t)row, &work);
}
