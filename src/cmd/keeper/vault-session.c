/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/keeper/vault-session.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/vault/vault-journal.h"

#define REVEAL_COST_US (1000000U / KEEPER_VAULT_RATE)
#define CREDIT_MAX_US ((uint64_t)KEEPER_VAULT_BURST * REVEAL_COST_US)

struct work {
    struct vault_session *session;
    const struct keeper_vault_request *request;
    struct keeper_vault_answer *answer;
};

static int answer_hello(const struct work *work, struct err *err);
static int answer_open(const struct work *work, struct err *err);
static int answer_reveal(const struct work *work, struct err *err);
static int answer_bound(const struct work *work, struct err *err);

/* What may be asked in which state, and how many bytes of the body it has. */
static const struct {
    enum keeper_vault_verb verb;
    enum vault_session_state state;
    size_t size;
    int (*answer)(const struct work *work, struct err *err);
} requests[] = {
    {KEEPER_VAULT_HELLO,  VAULT_SESSION_NEW,   0,                                    answer_hello },
    {KEEPER_VAULT_OPEN,   VAULT_SESSION_READY, KEEPER_VAULT_KEY_BYTES,               answer_open  },
    {KEEPER_VAULT_REVEAL, VAULT_SESSION_OPEN,  sizeof(struct keeper_vault_question), answer_reveal},
    {KEEPER_VAULT_BOUND,  VAULT_SESSION_OPEN,  sizeof(struct keeper_vault_question), answer_bound },
};

void vault_session_init(struct vault_session *session, int dir_fd)
{
    *session = (struct vault_session){
        .dir_fd = dir_fd, .credit_us = CREDIT_MAX_US, .counted_us = clock_us()};
}

void vault_session_done(struct vault_session *session)
{
    vault_free(session->vault);
}

static bool is_zero(const unsigned char *bytes, size_t n)
{
    unsigned char seen = 0;

    for (size_t i = 0; i < n; i++)
        seen |= bytes[i];
    return seen == 0;
}

/* ---- what is done ---- */

static int answer_hello(const struct work *work, struct err *err)
{
    (void)err;
    work->session->state = VAULT_SESSION_READY;
    return 0;
}

static int answer_open(const struct work *work, struct err *err)
{
    struct str key = {(const char *)work->request->body.key, KEEPER_VAULT_KEY_BYTES};

    if (is_zero(work->request->body.key, KEEPER_VAULT_KEY_BYTES))
        key.n = 0;
    if (vault_open_at(work->session->dir_fd, key, &work->session->vault, err) < 0)
        return -1;
    work->session->state = VAULT_SESSION_OPEN;
    return 0;
}

/* Every text has its end, and nothing hides behind it. */
static const char *text_fault(const struct keeper_vault_question *q)
{
    const struct {
        const char *text;
        size_t size;
    } texts[] = {
        {q->sandbox, sizeof q->sandbox},
        {q->tenant,  sizeof q->tenant },
        {q->subject, sizeof q->subject},
        {q->pack,    sizeof q->pack   },
        {q->host,    sizeof q->host   },
        {q->scheme,  sizeof q->scheme },
        {q->method,  sizeof q->method },
        {q->slot,    sizeof q->slot   },
        {q->name,    sizeof q->name   },
        {q->path,    sizeof q->path   },
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        size_t n = strnlen(texts[i].text, texts[i].size);

        if (n == texts[i].size ||
            !is_zero((const unsigned char *)texts[i].text + n, texts[i].size - n))
            return "a text without its end";
    }
    return q->unused ? "bytes where none belong" : NULL;
}

static struct vault_question question_of(const struct keeper_vault_question *q)
{
    return (struct vault_question){.tenant = q->tenant,
                                   .subject = q->subject,
                                   .pack = q->pack,
                                   .host = q->host,
                                   .port = q->port,
                                   .scheme = q->scheme,
                                   .method = q->method,
                                   .path = q->path,
                                   .name = q->name};
}

static int spend(struct vault_session *session, struct err *err)
{
    uint64_t now = clock_us();

    session->credit_us += now - session->counted_us;
    session->counted_us = now;
    if (session->credit_us > CREDIT_MAX_US)
        session->credit_us = CREDIT_MAX_US;
    if (session->credit_us < REVEAL_COST_US)
        return err_set(err, ERR_LIMIT, "more than %d secrets a second are asked for",
                       KEEPER_VAULT_RATE);
    session->credit_us -= REVEAL_COST_US;
    return 0;
}

/* Written down before it is handed out: a use without its line cannot be. */
static int answer_reveal(const struct work *work, struct err *err)
{
    const struct keeper_vault_question *q = &work->request->body.question;
    struct vault_question question = question_of(q);
    struct vault_answer found = {0};
    struct str value;
    int failed;

    if (spend(work->session, err) < 0 ||
        vault_slot_parse(str_of(q->slot), &question.slot, err) < 0 ||
        vault_reveal(work->session->vault, &question, &found, err) < 0)
        return -1;
    failed = vault_journal_add(work->session->dir_fd, q->sandbox, &question, &found, err);
    value = secret_reveal(found.value);
    if (!failed) {
        memcpy(work->answer->body.value, value.p, value.n);
        work->answer->n = (uint32_t)value.n;
    }
    secret_free(found.value);
    return failed;
}

static int answer_bound(const struct work *work, struct err *err)
{
    struct vault_question question = question_of(&work->request->body.question);
    struct vault_slot slots[VAULT_BOUND_MAX];
    size_t n = 0;

    if (vault_bound(work->session->vault, &question, slots, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        vault_slot_text(&slots[i], work->answer->body.slots[i]);
    work->answer->n = (uint32_t)n;
    return 0;
}

/* ---- what may be asked ---- */

static void put_error(struct keeper_vault_answer *out, enum keeper_status status,
                      enum err_code code, const char *text)
{
    secret_wipe(&out->body, sizeof out->body);
    out->n = 0;
    out->status = (uint16_t)status;
    out->code = (int32_t)code;
    (void)snprintf(out->body.text, sizeof out->body.text, "%s", text);
}

static const char *fault_in(const struct vault_session *session,
                            const struct keeper_vault_request *request, size_t *row)
{
    *row = 0;
    while (*row < COUNT(requests) && requests[*row].verb != request->verb)
        (*row)++;
    if (request->magic != KEEPER_VAULT_MAGIC || request->version != KEEPER_VERSION)
        return "not a request of this version";
    if (*row == COUNT(requests))
        return "nothing of that kind is done here";
    if (requests[*row].state != session->state)
        return "out of turn";
    if (request->unused || !is_zero(request->body.bytes + requests[*row].size,
                                    sizeof request->body.bytes - requests[*row].size))
        return "bytes where none belong";
    return requests[*row].size == sizeof request->body.question
               ? text_fault(&request->body.question)
               : NULL;
}

bool vault_session_take(struct vault_session *session, const unsigned char *bytes, size_t n,
                        size_t fd_n, struct keeper_vault_answer *out)
{
    struct keeper_vault_request request;
    const struct work work = {session, &request, out};
    const char *why;
    struct err err;
    size_t row = 0;

    *out = (struct keeper_vault_answer){.magic = KEEPER_VAULT_MAGIC, .version = KEEPER_VERSION};
    if (n != sizeof request || fd_n) {
        put_error(out, KEEPER_REFUSED, ERR_INVALID, "not the size of a request");
        return false;
    }
    memcpy(&request, bytes, sizeof request);
    out->serial = request.serial;
    why = fault_in(session, &request, &row);
    if (why)
        put_error(out, KEEPER_REFUSED, ERR_INVALID, why);
    else if (requests[row].answer(&work, &err) < 0)
        put_error(out, KEEPER_FAILED, err.code, err.text);
    secret_wipe(&request, sizeof request);
    return !why;
}
