/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/egress/secrets.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "cmd/egress/wiping.h"
#include "lib/base/memory.h"

void secrets_init(struct secrets *secrets, int state_fd)
{
    *secrets = (struct secrets){.keeper.fd = -1};
    unbound_init(&secrets->unbound, state_fd);
    secrets->last = &secrets->first;
}

bool secrets_are_open(const struct secrets *secrets)
{
    return secrets->keeper.fd >= 0;
}

/* ---- the queue ---- */

static void unlink_ask(struct ask *ask)
{
    struct secrets *secrets = ask->secrets;

    *ask->at = ask->next;
    if (ask->next)
        ask->next->at = ask->at;
    else
        secrets->last = ask->at;
    ask->at = NULL;
    secrets->ask_n--;
    free(TAKE(ask->request));
}

static void put_last(struct secrets *secrets, struct ask *ask)
{
    ask->secrets = secrets;
    ask->next = NULL;
    ask->at = secrets->last;
    *secrets->last = ask;
    secrets->last = &ask->next;
    secrets->ask_n++;
}

void ask_cancel(struct ask *ask)
{
    if (ask->at)
        unlink_ask(ask); /* an answer that still comes finds nobody */
    secret_free(TAKE(ask->value));
}

static void end_failed(struct ask *ask)
{
    ask->is_done = ask->failed = true;
    unlink_ask(ask);
    ask->on(ask);
}

/* ---- the keeper ---- */

static void lose_keeper(struct secrets *secrets)
{
    loop_forget(secrets->loop, &secrets->keeper);
    (void)close(TAKE_FD(secrets->keeper.fd));
    secrets->sent_n = 0;
    while (secrets->first) {
        struct ask *ask = secrets->first;

        (void)err_set(&ask->err, ERR_KEEPER, "the keeper of the vault has ended");
        end_failed(ask);
    }
}

/* False: the keeper is gone. */
static bool send_what_fits(struct secrets *secrets)
{
    for (struct ask *ask = secrets->first; ask && secrets->sent_n < ASKS_SENT_MAX;
         ask = ask->next) {
        if (ask->is_sent)
            continue;
        if (send(secrets->keeper.fd, ask->request, sizeof *ask->request,
                 MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof *ask->request)
            return errno == EAGAIN || errno == EINTR; /* the next answer makes room */
        free(TAKE(ask->request));
        ask->is_sent = true;
        secrets->sent_n++;
    }
    return true;
}

static struct ask *find(struct secrets *secrets, uint32_t serial)
{
    struct ask *ask = secrets->first;

    while (ask && !(ask->is_sent && ask->serial == serial))
        ask = ask->next;
    return ask;
}

static void take_answer(struct secrets *secrets, struct keeper_vault_answer *answer)
{
    struct ask *ask = find(secrets, answer->serial);

    if (secrets->sent_n)
        secrets->sent_n--;
    if (!ask) {
        secret_wipe(answer, sizeof *answer);
        return;
    }
    ask->failed = (ask->wants_value ? vault_ask_value(answer, ask->serial, &ask->value, &ask->err)
                                    : vault_ask_slots(answer, ask->serial, ask->slots, &ask->slot_n,
                                                      &ask->err)) < 0;
    if (!ask->wants_value && !ask->failed && ask->slot_n == 0)
        unbound_add(&secrets->unbound, &ask->asked);
    ask->is_done = true;
    unlink_ask(ask);
    ask->on(ask);
}

static void on_keeper(struct watch *watch, uint32_t events)
{
    struct secrets *secrets = (struct secrets *)((char *)watch - offsetof(struct secrets, keeper));
    static struct keeper_vault_answer answer; /* wiped after each */
    ssize_t got;

    (void)events;
    while (watch->fd >= 0) {
        got = recv(watch->fd, &answer, sizeof answer, MSG_TRUNC | MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (got != (ssize_t)sizeof answer) {
            lose_keeper(secrets);
            return;
        }
        take_answer(secrets, &answer);
    }
    if (watch->fd >= 0 && !send_what_fits(secrets))
        lose_keeper(secrets);
}

int secrets_take(struct secrets *secrets, struct loop *loop, int fd, struct err *err)
{
    if (secrets_are_open(secrets)) {
        (void)close(fd);
        return 0;
    }
    secrets->loop = loop;
    secrets->keeper = (struct watch){.fd = fd, .on = on_keeper};
    if (loop_watch(loop, &secrets->keeper, EPOLLIN, err) < 0) {
        secrets->keeper.fd = -1;
        return -1;
    }
    secrets->was_open = true;
    wiping_begin();
    secrets->absence = EGRESS_VAULT_MISSING;
    return 0;
}

/* ---- asking ---- */

static int prepare(struct secrets *secrets, struct ask *ask, enum keeper_vault_verb verb,
                   const char *sandbox, const struct vault_question *question)
{
    char name[sizeof(((struct keeper_vault_question *)0)->sandbox)]; /* for people; cut to fit */

    if (!secrets_are_open(secrets))
        return err_set(&ask->err, ERR_KEEPER, "the keeper of the vault has ended");
    if (secrets->ask_n >= ASKS_MAX)
        return err_set(&ask->err, ERR_LIMIT, "too many requests wait for a secret; try again");
    (void)snprintf(name, sizeof name, "%.*s", (int)sizeof name - 1, sandbox);
    ask->serial = ++secrets->serial;
    ask->request = xcalloc(1, sizeof *ask->request);
    return vault_ask_write(verb, ask->serial, name, question, ask->request, &ask->err);
}

void ask_begin(struct secrets *secrets, struct ask *ask, enum keeper_vault_verb verb,
               const char *sandbox, const struct vault_question *question)
{
    void (*on)(struct ask * ask) = ask->on;

    *ask = (struct ask){.on = on, .wants_value = verb == KEEPER_VAULT_REVEAL};
    if (!ask->wants_value && secrets_are_open(secrets) &&
        unbound_has(&secrets->unbound, question, &ask->asked)) {
        ask->is_done = true;
        return;
    }
    if (prepare(secrets, ask, verb, sandbox, question) < 0) {
        free(TAKE(ask->request));
        ask->is_done = ask->failed = true;
        return;
    }
    put_last(secrets, ask);
    /* A keeper that is gone is noticed by the loop, which fails this one too. */
    (void)send_what_fits(secrets);
}
