/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "cmd/egress/conn.h"
#include "cmd/egress/hub.h"
#include "cmd/egress/pool.h"
#include "lib/base/memory.h"
#include "lib/linux/fd-pass.h"

struct sandbox *sandbox_find(struct hub *hub, const char *id)
{
    struct sandbox *sandbox = hub->sandboxes;

    while (sandbox && strcmp(sandbox->id, id) != 0)
        sandbox = sandbox->next;
    return sandbox;
}

/* ---- what box says ---- */

static int take_listeners(struct sandbox *sandbox, int fds[FD_PASS_MAX], struct err *err)
{
    if (sandbox->has_listeners)
        return err_set(err, ERR_INTEGRITY, "listeners came twice");
    sandbox->has_listeners = true;
    sandbox->diag_fd = TAKE_FD(fds[HANDOVER_DIAG]);
    if (mint_open(sandbox, TAKE_FD(fds[HANDOVER_MINT]), TAKE_FD(fds[HANDOVER_SEED]), err) < 0)
        return -1;
    for (unsigned i = 0; i < HANDOVER_DIAG; i++) {
        struct entrance *entrance = &sandbox->entrances[i];

        entrance->watch.fd = TAKE_FD(fds[i]);
        entrance->watch.on = i == HANDOVER_NAMES_UDP ? names_answer_udp : entrance_accept;
        entrance->kind = (enum handover_fd)i;
        if (loop_watch(&sandbox->hub->loop, &entrance->watch, EPOLLIN, err) < 0)
            return -1;
    }
    return 0;
}

static int take_message(struct sandbox *sandbox, struct str message, int fds[FD_PASS_MAX],
                        size_t fd_n, struct err *err)
{
    static struct handover said; /* too large for comfort on the stack */

    if (handover_read(message, fd_n, &said, err) < 0)
        return -1;
    switch (said.kind) {
    case HANDOVER_LISTENERS:
        return take_listeners(sandbox, fds, err);
    case HANDOVER_CALLER:
        callers_add(sandbox->callers, &said.caller, sandbox->hub->loop.now_ms);
        return 0;
    case HANDOVER_NOTHING:
        break;
    }
    return err_set(err, ERR_INTEGRITY, "a message that says nothing");
}

/* 1: one was taken, 0: there is none, -1: the pair has ended, or what came is not box's. */
static int hear_one(struct sandbox *sandbox, struct err *err)
{
    static char bytes[HANDOVER_MESSAGE_MAX + 1]; /* one more: what is longer shows */
    int fds[FD_PASS_MAX];
    size_t fd_n = 0;
    int failed, got;

    if (recv(sandbox->handover.fd, bytes, 1, MSG_PEEK | MSG_DONTWAIT) < 0)
        return 0;
    got = fds_receive_any(sandbox->handover.fd, bytes, sizeof bytes, fds, &fd_n, err);
    failed =
        got <= 0 ? -1 : take_message(sandbox, (struct str){bytes, (size_t)got}, fds, fd_n, err);
    for (size_t i = 0; i < fd_n; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    return failed < 0 ? -1 : 1;
}

bool sandbox_hear(struct sandbox *sandbox)
{
    struct err err;
    int got = 1;

    for (unsigned i = 0; i < HANDOVER_BATCH && got > 0; i++)
        got = hear_one(sandbox, &err);
    return got >= 0;
}

static void on_handover(struct watch *watch, uint32_t events)
{
    struct sandbox *sandbox =
        (struct sandbox *)((char *)watch - offsetof(struct sandbox, handover));

    (void)events;
    if (!sandbox_hear(sandbox))
        sandbox_close(sandbox);
}

/* ---- its life ---- */

int sandbox_open(struct hub *hub, const char *id, struct net_rules *rules, int handover_fd,
                 struct err *err)
{
    static uint64_t last_number;
    struct sandbox *sandbox;

    if (hub->sandbox_n >= SANDBOXES_MAX)
        return err_set(err, ERR_LIMIT, "%u sandboxes have a network already", SANDBOXES_MAX);
    last_number++;
    sandbox = xcalloc(1, sizeof *sandbox);
    *sandbox = (struct sandbox){
        .hub = hub,
        .number = last_number,
        .rules = rules,
        .handover = {.fd = handover_fd, .on = on_handover},
        .who = {                          .tenant = "default"                },
        .diag_fd = -1,
        .mint = { .watch.fd = -1,                 .seed_fd = -1,     .ready_fd = -1},
        .meter = METER_OPEN,
    };
    (void)snprintf(sandbox->id, sizeof sandbox->id, "%s", id);
    for (unsigned i = 0; i < HANDOVER_DIAG; i++)
        sandbox->entrances[i] = (struct entrance){.watch.fd = -1, .sandbox = sandbox};
    if (loop_watch(&hub->loop, &sandbox->handover, EPOLLIN, err) < 0) {
        free(sandbox);
        return -1;
    }
    sandbox->callers = callers_new();
    sandbox->account = account_new();
    sandbox->budget = net_budget_new();
    sandbox->next = hub->sandboxes;
    sandbox->at = &hub->sandboxes;
    if (sandbox->next)
        sandbox->next->at = &sandbox->next;
    hub->sandboxes = sandbox;
    hub->sandbox_n++;
    return 0;
}

static void close_watch(struct hub *hub, struct watch *watch)
{
    if (watch->fd < 0)
        return;
    loop_forget(&hub->loop, watch);
    (void)close(TAKE_FD(watch->fd));
}

void sandbox_close(struct sandbox *sandbox)
{
    struct hub *hub = sandbox->hub;

    while (sandbox->conns)
        conn_close(sandbox->conns);
    while (sandbox->guests)
        conn_close(sandbox->guests);
    pool_drop(hub, sandbox);
    for (unsigned i = 0; i < HANDOVER_DIAG; i++)
        close_watch(hub, &sandbox->entrances[i].watch);
    close_watch(hub, &sandbox->handover);
    mint_close(sandbox);
    if (sandbox->diag_fd >= 0)
        (void)close(sandbox->diag_fd);
    while (sandbox->window_n)
        sandbox_forget_window(sandbox, sandbox->windows[0].mark);
    free(sandbox->windows);
    account_free(sandbox->account);
    callers_free(sandbox->callers);
    names_free(sandbox->names);
    net_budget_free(sandbox->budget);
    net_rules_free(sandbox->rules);
    *sandbox->at = sandbox->next;
    if (sandbox->next)
        sandbox->next->at = sandbox->at;
    hub->sandbox_n--;
    free(sandbox);
    control_consider_end(hub);
}

void sandbox_swap(struct sandbox *sandbox, struct net_rules *rules)
{
    struct net_rules *old = sandbox->rules;
    struct event event = {.class = EVENT_RULES, .allowed = true, .rule = ""};

    sandbox->rules = rules;
    pool_drop(sandbox->hub, sandbox); /* they are bound to rules that are no more */
    for (struct conn *conn = sandbox->conns, *next; conn; conn = next) {
        next = conn_next(conn);
        conn_judge_again(conn);
    }
    for (struct conn *guest = sandbox->guests, *next; guest; guest = next) {
        next = peer_next_guest(guest);
        peer_judge_again(guest);
    }
    sandbox_event(sandbox, &event);
    net_rules_free(old);
}

/* ---- counting ---- */

static struct window *find_window(struct sandbox *sandbox, const char *mark)
{
    for (size_t i = 0; i < sandbox->window_n; i++)
        if (strcmp(sandbox->windows[i].mark, mark) == 0)
            return &sandbox->windows[i];
    return NULL;
}

/* What flowed before a window is not its own, so it is counted before one begins or is read. */
static void flush(struct sandbox *sandbox)
{
    for (struct conn *conn = sandbox->conns; conn; conn = conn_next(conn))
        conn_count(conn);
    for (struct conn *conn = sandbox->guests; conn; conn = peer_next_guest(conn))
        conn_count(conn);
}

struct claims {
    const struct sandbox *sandbox;
    size_t at;
};

static const struct meter_claim *next_claim(void *context)
{
    struct claims *claims = context;
    const struct sandbox *sandbox = claims->sandbox;

    while (claims->at < sandbox->window_n && !sandbox->windows[claims->at].owner)
        claims->at++;
    return claims->at < sandbox->window_n ? &sandbox->windows[claims->at++].claim : NULL;
}

static void bind_meter(struct sandbox *sandbox)
{
    struct claims claims = {.sandbox = sandbox};

    meter_bind(&sandbox->meter, next_claim, &claims);
}

int sandbox_window(struct sandbox *sandbox, const char *mark, uint64_t bytes,
                   const struct controller *owner, struct err *err)
{
    struct window *window;

    if (find_window(sandbox, mark))
        return err_set(err, ERR_CONFLICT, "the run \"%s\" is being counted already", mark);
    if (sandbox->window_n == WINDOWS_MAX)
        return err_set(err, ERR_LIMIT, "%d runs of this sandbox are being counted", WINDOWS_MAX);
    flush(sandbox);
    sandbox->windows =
        xrealloc(sandbox->windows, (sandbox->window_n + 1) * sizeof *sandbox->windows);
    window = &sandbox->windows[sandbox->window_n++];
    *window = (struct window){
        .account = account_new(), .claim = meter_claim(&sandbox->meter, bytes), .owner = owner};
    bind_meter(sandbox);
    (void)snprintf(window->mark, sizeof window->mark, "%s", mark);
    return 0;
}

struct account *sandbox_account(struct sandbox *sandbox, const char *mark)
{
    struct window *window = *mark ? find_window(sandbox, mark) : NULL;

    flush(sandbox);
    if (!*mark)
        return sandbox->account;
    return window ? window->account : NULL;
}

void sandbox_forget_window(struct sandbox *sandbox, const char *mark)
{
    struct window *window = find_window(sandbox, mark);

    if (!window)
        return;
    account_free(window->account);
    *window = sandbox->windows[--sandbox->window_n];
    bind_meter(sandbox);
}

void sandbox_forget_owner(struct sandbox *sandbox, const struct controller *owner)
{
    for (size_t i = sandbox->window_n; i > 0; i--) {
        struct window *window = &sandbox->windows[i - 1];

        if (window->owner != owner)
            continue;
        window->owner = NULL; /* one without a bound goes on counting, for whoever asks */
        if (window->claim.bytes != METER_NO_END)
            sandbox_forget_window(sandbox, window->mark);
    }
    bind_meter(sandbox);
}

bool sandbox_is_spent(struct sandbox *sandbox, const char *mark)
{
    const struct window *window = find_window(sandbox, mark);

    return window && meter_is_spent(&sandbox->meter, &window->claim);
}

void sandbox_count(struct sandbox *sandbox, const char *rule, const struct counts *more)
{
    account_add(sandbox->account, rule, more);
    for (size_t i = 0; i < sandbox->window_n; i++)
        account_add(sandbox->windows[i].account, rule, more);
}

void sandbox_refuse(struct sandbox *sandbox, const char *rule, const struct refusal *refusal)
{
    account_refuse(sandbox->account, rule, refusal);
    for (size_t i = 0; i < sandbox->window_n; i++)
        account_refuse(sandbox->windows[i].account, rule, refusal);
}

/* Floods are in the counts; of events each second has so many. */
void sandbox_event(struct sandbox *sandbox, struct event *event)
{
    uint64_t second = sandbox->hub->loop.now_ms / 1000;

    if (sandbox->event_second != second) {
        sandbox->event_second = second;
        sandbox->event_n = 0;
    }
    if (sandbox->event_n++ >= EVENTS_PER_SECOND)
        return;
    event->sandbox = sandbox->id;
    events_add(&sandbox->hub->events, event);
}
