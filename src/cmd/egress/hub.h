/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Everything the program has, joined in one place; and what it knows of each sandbox. */

#include "cmd/egress/account.h"
#include "cmd/egress/callers.h"
#include "cmd/egress/events.h"
#include "cmd/egress/loop.h"
#include "cmd/egress/meter.h"
#include "cmd/egress/names.h"
#include "cmd/egress/own.h"
#include "cmd/egress/proposals.h"
#include "cmd/egress/resolver.h"
#include "cmd/egress/secrets.h"
#include "lib/egress/budget.h"
#include "lib/egress/control-wire.h"
#include "lib/egress/handover.h"
#include "lib/egress/rules.h"

struct conn;
struct controller;
struct pooled;
struct tls_authority;
struct tls_trust;

struct hub {
    struct loop loop;
    struct resolver resolver;
    struct own own;
    struct events events;
    struct proposals proposals;
    struct watch listen; /* controllers come in here */
    struct timer shed;   /* after which listeners are asked again */
    struct timer linger;
    int lock_fd;
    int reserve_fd; /* given up to take, and close, a connection for which there is none left */
    struct controller *controllers;
    size_t controller_n;
    struct sandbox *sandboxes;
    size_t sandbox_n;
    size_t conn_n;
    size_t conn_max;
    struct tls_authority *authority;
    struct tls_trust *trust; /* NULL: this machine has no roots */
    struct pooled *pool;     /* the latest first */
    struct secrets secrets;
    size_t pool_n;
    size_t ws_held; /* bytes of messages, of all sandboxes */
};

struct window {
    char mark[EGRESS_NAME_BYTES];
    struct account *account;
    struct meter_claim claim;
    const struct controller *owner; /* NULL: it is gone, and the claim with it */
};

/* A listener of a sandbox. */
struct entrance {
    struct watch watch;
    struct sandbox *sandbox;
    enum handover_fd kind;
};

/* Where sockets of a sandbox's namespace come from (peer.c). */
struct mint {
    struct watch watch; /* HANDOVER_MINT */
    int seed_fd;
    bool is_busy; /* the seed is on its way */
    uint64_t ends_ms;
    int ready_fd; /* one that came, until somebody takes it */
};

struct sandbox {
    struct sandbox *next;
    struct sandbox **at;
    struct hub *hub;
    char id[EGRESS_NAME_BYTES];
    uint64_t number; /* of all there ever were; never used again */
    struct egress_who_text who;
    struct net_rules *rules;
    struct net_budget *budget; /* what is used of them; stays when they change */
    struct watch handover;
    struct entrance entrances[HANDOVER_DIAG];
    bool has_listeners;
    int diag_fd;
    struct mint mint;
    struct conn *guests; /* of other sandboxes, in this one */
    size_t guest_n;
    struct names *names; /* NULL before the first question */
    struct callers *callers;
    struct account *account;
    struct meter meter; /* what budgets leave its commands */
    struct window *windows;
    size_t window_n;
    struct conn *conns;
    size_t conn_n;
    size_t lookup_n;
    size_t pool_n;
    size_t ws_held;        /* bytes of messages */
    uint64_t event_second; /* events of this second, for their ceiling */
    unsigned event_n;
    uint64_t asked_second; /* bodies of proposals in this second, for theirs */
    unsigned asked_n;
    size_t local_n; /* requests to policy.local that are under way */
};

/* ---- sandboxes (sandbox.c) ---- */

struct sandbox *sandbox_find(struct hub *hub, const char *id);
/* Takes the descriptor on success. */
int sandbox_open(struct hub *hub, const char *id, struct net_rules *rules, int handover_fd,
                 struct err *err) MUST_CHECK;
void sandbox_close(struct sandbox *sandbox);
/* Takes the rules; what lost its rule is closed. */
void sandbox_swap(struct sandbox *sandbox, struct net_rules *rules);
/* Reads what box has said by now. False: the sandbox is gone. */
bool sandbox_hear(struct sandbox *sandbox);
/* bytes: all that may pass while it lasts, or METER_NO_END. */
int sandbox_window(struct sandbox *sandbox, const char *mark, uint64_t bytes,
                   const struct controller *owner, struct err *err) MUST_CHECK;
/* Whether something was kept back because that was used up. */
bool sandbox_is_spent(struct sandbox *sandbox, const char *mark);
struct account *sandbox_account(struct sandbox *sandbox,
                                const char *mark); /* NULL: no such window */
void sandbox_forget_window(struct sandbox *sandbox, const char *mark);
/* It is gone: nothing passes on its account any more. */
void sandbox_forget_owner(struct sandbox *sandbox, const struct controller *owner);

/* Into all accounts that are open. */
void sandbox_count(struct sandbox *sandbox, const char *rule, const struct counts *more);
void sandbox_refuse(struct sandbox *sandbox, const char *rule, const struct refusal *refusal);
void sandbox_event(struct sandbox *sandbox, struct event *event);

/* ---- other sandboxes (peer.c) ---- */

/* Takes both descriptors. */
int mint_open(struct sandbox *sandbox, int mint_fd, int seed_fd, struct err *err) MUST_CHECK;
void mint_close(struct sandbox *sandbox);
/* A connection into this sandbox whose rules are others now: it may be gone afterwards. */
void peer_judge_again(struct conn *conn);
struct conn *peer_next_guest(struct conn *conn);

/* Whether the name is policy.local, and that is there for this sandbox. */
bool local_is_named(const struct sandbox *sandbox, struct str name);
/* A person has answered: whoever waits for it hears it. */
void sandbox_tell_waiting(struct sandbox *sandbox);

/* ---- what comes in (accept.c, dns-serve.c) ---- */

void entrance_accept(struct watch *watch, uint32_t events);
void names_answer_udp(struct watch *watch, uint32_t events);
/* Answers a question of a sandbox; 0 when it deserves no answer. */
size_t names_answer(struct sandbox *sandbox, struct str question, char out[512]);
/* Descriptors are there again: listeners that were put aside are asked again. */
void entrances_resume(struct hub *hub);
/* A descriptor was given back: whoever rests for want of one goes on at once. */
void entrances_have_room(struct hub *hub);

/* ---- controllers (control-serve.c) ---- */

int control_open(struct hub *hub, struct err *err) MUST_CHECK;
/* Ends the program a moment after nobody needs it any more. */
void control_consider_end(struct hub *hub);
